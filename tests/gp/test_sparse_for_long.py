"""What must hold after months: memory, and digits, do not depend on how much was learned."""

import gc
import tracemalloc

import numpy as np
import pytest

from streamgp.gp.sparse import SparseGP, WindowGP
from streamgp.kernels import SquaredExponential


class Extended:
    """The same arithmetic in 80-bit numbers, from the textbook: no slots, no triangles, no reuse.

    Told which point takes the place of which, since a rounding error may decide that.
    """

    def __init__(self, m, noise_variance, length_scale):
        self.noise, self.length_scale = np.longdouble(noise_variance), np.longdouble(length_scale)
        self.points = np.zeros((0, 2), np.longdouble)
        self.means = np.zeros((m, 0), np.longdouble)
        self.Q = self.S = np.zeros((0, 0), np.longdouble)

    def seen(self, x):
        square = ((self.points - x) ** 2).sum(axis=1)
        k = np.exp(-square / (2 * self.length_scale**2))
        e = self.Q @ k
        h = self.S @ e
        residual = 1 - k @ e
        return e, h, residual, residual + e @ h

    def predict(self, x):
        e, _, _, variance = self.seen(x.astype(np.longdouble))
        return self.means @ e, variance

    def learn(self, x, y, slot):
        x, y = x.astype(np.longdouble), y.astype(np.longdouble)
        e, h, residual, variance = self.seen(x)
        q = (y - self.means @ e) / (variance + self.noise)
        mean = self.means @ e + q * variance
        self.means = self.means + np.outer(q, h)
        self.S = self.S - np.outer(h, h) / (variance + self.noise)
        if slot is None:
            return
        share = self.noise / (variance + self.noise)
        e = np.append(e, -1)
        self.Q = np.pad(self.Q, (0, 1)) + np.outer(e, e) / residual
        self.S = np.block([[self.S, share * h[:, None]], [share * h[None], share * variance]])
        self.means = np.column_stack([self.means, mean])
        self.points = np.vstack([self.points, x])
        n = len(h)
        if slot < n:
            order = [n if i == slot else i for i in range(n)]
            gone = self.Q[slot]
            self.Q = (self.Q - np.outer(gone, gone) / gone[slot])[np.ix_(order, order)]
            self.S = self.S[np.ix_(order, order)]
            self.means, self.points = self.means[:, order], self.points[order]


@pytest.mark.parametrize(
    ("n", "noise_variance", "length_scale", "tolerance"),
    [
        pytest.param(50_000, 0.5, 2.0, 1e-10, marks=pytest.mark.nightly),
        (5_000, 0.5, 2.0, 1e-10),
        pytest.param(10_000, 0.5, 0.7, 1e-12, marks=pytest.mark.nightly),
        # Believed to the fourth decimal, noise makes functions of the size of thousands.
        (10_000, 1e-4, 0.7, 1e-5),
    ],
)
def test_tens_of_thousands_of_events_cost_no_digits(n, noise_variance, length_scale, tolerance):
    """Also not where points are new all the time, and what is observed is noise alone."""
    if np.finfo(np.longdouble).eps > 1e-18:
        pytest.skip("there are no 80-bit numbers")
    rng = np.random.default_rng(1)
    gp = SparseGP(SquaredExponential(length_scale), noise_variance, 12)
    twin, errors, n_replaced = None, [], 0
    probes = rng.normal(size=(10, 2))
    for i in range(n):
        x, y = rng.normal(size=2), rng.normal(size=2)
        before = gp.retained.copy()
        gp.append(x, y)
        if i < 12:
            continue
        if twin is None:
            twin = begun(gp, noise_variance, length_scale)
        else:
            slot = gp.retained.index(i) if i in gp.retained else None
            twin.learn(x, y, slot)
            n_replaced += slot is not None and slot < len(before)
        if (i + 1) % 1000 == 0:
            errors.append(0.0)
            for probe in probes:
                (means, variance), (expected, exactly) = gp.predict(probe), twin.predict(probe)
                error = max(abs(means - expected).max(), abs(variance - exactly))
                errors[-1] = max(errors[-1], float(error))
    assert n_replaced > 100
    assert max(errors) < tolerance


def begun(gp, noise_variance, length_scale):
    """The twin of a process, from its points and what it knows there."""
    basis, points = gp._gp._basis, gp._gp._points
    twin = Extended(2, noise_variance, length_scale)
    n = basis.n
    twin.points = np.array(points.given).astype(np.longdouble)
    square = ((twin.points[:, None] - twin.points) ** 2).sum(axis=2)
    K = np.exp(-square / (2 * twin.length_scale**2))
    inverse = np.linalg.inv(K.astype(float)).astype(np.longdouble)
    for _ in range(3):  # Newton's iteration, since LAPACK knows no 80-bit numbers
        inverse = inverse @ (2 * np.eye(n) - K @ inverse)
    twin.Q = inverse
    S = basis._S._a[:n, :n]
    twin.S = (np.triu(S) + np.triu(S, 1).T).astype(np.longdouble)
    twin.means = basis.marginals()[0].T.astype(np.longdouble)
    return twin


@pytest.mark.parametrize(
    ("kind", "n"),
    [
        (SparseGP, 6_000),
        pytest.param(WindowGP, 6_000, marks=pytest.mark.nightly),
        pytest.param(SparseGP, 50_000, marks=pytest.mark.nightly),
    ],
)
def test_memory_is_flat_for_ever(kind, n):
    rng = np.random.default_rng(1)
    gp = kind(SquaredExponential(2.0), 0.5, 50)
    X, Y = rng.normal(size=(2000, 5)), np.eye(3)[rng.integers(3, size=2000)]

    def learn():
        for i in range(2000):
            x, y = X[i].copy(), Y[i].copy()
            gp.predict(x)
            gp.append(x, y)

    learn()
    gc.collect()
    tracemalloc.start()
    try:
        learn()  # what is allocated once more from here on is counted
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(n // 2000 - 2):
            learn()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert gp.n == n if kind is SparseGP else gp.n <= 50
    assert len(gp.retained) <= 50
    # A number for each event would be some times as much, with 2000 events already.
    assert after - before < 20_000
