"""Posterior with pending points, against processes that learn them explicitly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.gp.bounded import UnboundedGP
from streamgp.gp.exact import ExactGP
from streamgp.gp.joint_posterior import PendingPoints
from streamgp.gp.sparse import SparseGP, WindowGP
from streamgp.kernels import Linear, SquaredExponential
from tests.helpers.laws import examples


def pending_points(gp, X, targets):
    pending = PendingPoints(gp)
    for x, target in zip(X, targets, strict=True):
        pending.append(x, target)
    return pending


KERNELS = (SquaredExponential(0.8), SquaredExponential(1.5) + Linear())


def points(rng, n):
    return list(rng.normal(size=(n, 2)))


@examples(40)
@given(
    st.integers(0, 99), st.integers(0, 8), st.integers(1, 6), st.sampled_from([1e-3, 0.5]),
    st.sampled_from(KERNELS),
)  # fmt: skip
def test_it_is_a_process_that_learns_the_pending_points_as_rows(seed, n, b, noise, kernel):
    rng = np.random.default_rng(seed)
    X, P, x = points(rng, n), points(rng, b), rng.normal(size=2)
    targets = rng.uniform(size=b).tolist()
    gp, explicit = ExactGP(kernel, noise), ExactGP(kernel, noise)
    explicit.add_target()
    for i, learned in enumerate(X):
        gp.append(learned, np.eye(2)[i % 2])
        explicit.append(learned, np.array([0.0]))
    pending = pending_points(gp, P, targets)
    grown = pending_points(
        gp, [*X, P[0], *X, *P[1:]], [0.5] * n + targets[:1] + [0.5] * n + targets[1:]
    )
    grown.keep([n, *range(2 * n + 1, 2 * n + b)])
    assert grown.predict(x) == pending.predict(x)  # whatever was there in between
    grown.append(x, 0.5)
    pending.append(x, 0.5)
    assert grown.predict(P[0]) == pending.predict(P[0])
    pending.keep(range(b))
    for asked, target in zip(P, targets, strict=True):
        explicit.append(asked, np.array([target]))
    for at in (x, P[0]):
        means, variance = explicit.predict(at)
        # Rounding grows as the noise shrinks.
        assert pending.predict(at) == pytest.approx((means[0], variance), abs=1e-9)


@pytest.mark.parametrize("bounded", [SparseGP, WindowGP])
def test_a_bounded_process_is_conditioned_on_its_own_joint_posterior(bounded):
    rng = np.random.default_rng(3)
    gp = bounded(SquaredExponential(0.8), 0.3, 8)
    for learned in points(rng, 40):
        gp.append(learned, np.array([float(learned[0] > 0)]))
    P, x, targets = points(rng, 5), rng.normal(size=2), rng.uniform(size=5)
    C = gp.joint(np.array([*P, x]))[1]
    A, c = C[:5, :5] + 0.3 * np.eye(5), C[:5, 5]
    share, variance = pending_points(gp, P, targets.tolist()).predict(x)
    assert share == pytest.approx(c @ np.linalg.solve(A, targets))
    assert variance == pytest.approx(C[5, 5] - c @ np.linalg.solve(A, c))
    assert variance < gp.predict(x)[1]


def test_single_precision_is_the_same_up_to_its_rounding():
    rng = np.random.default_rng(4)
    X, P, x = points(rng, 20), points(rng, 4), rng.normal(size=2)
    found = []
    for single in (False, True):
        gp = UnboundedGP(SquaredExponential(), 0.1, single_precision=single)
        for learned in X:
            gp.append(learned, np.array([1.0]))
        found.append(pending_points(gp, P, [1.0] * 4).predict(x))
    assert found[1] == pytest.approx(found[0], abs=1e-4)


def test_a_point_asked_about_twice_without_noise_is_known_and_nothing_breaks():
    x = np.array([0.5])
    pending = pending_points(ExactGP(SquaredExponential(), 1e-16), [x, x], [1.0, 1.0])
    assert pending.predict(x) == pytest.approx((1.0, 0.0), abs=1e-5)
