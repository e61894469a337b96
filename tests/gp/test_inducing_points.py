import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.gp.inducing_points import NOVELTY, Basis
from streamgp.gp.marginal_likelihood import at_once
from tests.helpers.gp_cases import assert_same


def correlation(X, Z, length_scale=1.0):
    square = ((X[:, None] - Z[None]) ** 2).sum(axis=2)
    return np.exp(-square / (2 * length_scale**2))


class Dense:
    """The same model in information form: precisions of the values at the points are summed."""

    def __init__(self, points, m, length_scale=1.0):
        self.points, self.length_scale = points, length_scale
        self.K = correlation(points, points, length_scale)
        self.precision = np.linalg.inv(self.K)
        self.shift = np.zeros((len(points), m))

    def learn(self, x, y, noise_variance, sign=1.0):
        e, variance = self.seen(x)
        self.precision += sign * np.outer(e, e) / (variance + noise_variance)
        self.shift += sign * np.outer(e, y) / (variance + noise_variance)

    def seen(self, x):
        k = correlation(x[None], self.points, self.length_scale)[0]
        e = np.linalg.solve(self.K, k)
        return e, max(1.0 - k @ e, 0.0)

    def predict(self, x):
        e, variance = self.seen(x)
        S = np.linalg.inv(self.precision)
        return e @ S @ self.shift, e @ S @ e + variance


class Machine:
    """A basis, and the points in its slots."""

    def __init__(self, capacity, m, d=2, length_scale=1.0):
        self.basis = Basis(capacity)
        for _ in range(m):
            self.basis.add_target()
        self.points = np.zeros((0, d))
        self.length_scale = length_scale

    def look(self, x):
        return self.basis.look(correlation(x[None], self.points, self.length_scale)[0], 1.0)

    def learn(self, x, y, noise_variance):
        look = self.look(x)
        means = self.basis.means(look)
        slot = self.basis.learn(look, means, y - means, noise_variance)
        if slot is not None:
            self.points = np.vstack([self.points[:slot], x, self.points[slot + 1 :]])
        return slot

    def predict(self, x):
        look = self.look(x)
        return self.basis.means(look), look.variance

    def full(self):
        """Inverse prior covariance, posterior covariance, means and weights."""
        n = self.basis.n
        Q, S = (
            np.triu(A[:n, :n]) + np.triu(A[:n, :n], 1).T
            for A in (self.basis._Q._a, self.basis._S._a)
        )
        means, weights = (half[:, :n].copy() for half in self.basis._halves())
        return Q, S, means, weights


def problem(n, d=2, m=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n, m))


grid = np.array([[i, j] for i in range(4) for j in range(4)], dtype=float) * 1.5


@given(st.integers(0, 100), st.floats(1e-3, 10.0), st.integers(1, 3))
def test_learning_is_exact_in_the_model(seed, noise_variance, m):
    """Points that are new join the basis, observations of others only add to what is known."""
    X, Y = problem(60, m=m, seed=seed)
    machine, dense = Machine(len(grid), m), Dense(grid, m)
    for x, y in zip(grid, Y, strict=False):
        assert machine.learn(x, y, noise_variance) is not None
        dense.learn(x, y, noise_variance)
    for x, y in zip(X, Y, strict=True):
        x = grid[int(abs(10 * x[0])) % len(grid)] + 1e-2 * x
        assert machine.learn(x, y, noise_variance) is None
        dense.learn(x, y, noise_variance)
    assert_same(machine, dense, X[:5])
    means, variances = machine.basis.marginals()
    S = np.linalg.inv(dense.precision)
    np.testing.assert_allclose(means, S @ dense.shift, atol=1e-9)
    np.testing.assert_allclose(variances, np.diagonal(S), atol=1e-9)


@given(st.integers(0, 100), st.floats(1e-3, 1.0))
def test_absorbing_is_learning_the_point_and_dropping_it_again(seed, noise_variance):
    X, Y = problem(3, seed=seed)
    small, large = Machine(len(grid), 2), Machine(len(grid) + 1, 2)
    for machine in (small, large):
        for n, x in enumerate(grid):
            machine.learn(x, np.full(2, (-1.0) ** n), noise_variance)
    # Where it is new, but observed to be nearly what was expected: needed least.
    x = grid[5] + 0.5 + 0.2 * np.tanh(X[0])
    assert small.look(x).is_new
    y = small.predict(x)[0] + 1e-3 * Y[0]
    assert small.learn(x, y, noise_variance) is None
    assert large.learn(x, y, noise_variance) == len(grid)
    _, S, means, _ = small.full()
    _, expected_S, expected_means, _ = large.full()
    np.testing.assert_allclose(S, expected_S[:-1, :-1], atol=1e-9)
    np.testing.assert_allclose(means, expected_means[:, :-1], rtol=1e-9)


@given(st.integers(0, 100), st.floats(1e-3, 10.0), st.integers(0, 15))
def test_unlearning_leaves_what_would_be_known_without(seed, noise_variance, i):
    X, Y = problem(40, seed=seed)
    machine, dense = Machine(len(grid), 2), Dense(grid, 2)
    for x, y in [*zip(grid, Y, strict=False), *zip(grid[:12] + 0.02, Y[20:], strict=False)]:
        machine.learn(x, y, noise_variance)
        dense.learn(x, y, noise_variance)
    dense.learn(grid[i], Y[i], noise_variance, sign=-1.0)
    machine.basis.unlearn(i, Y[i], noise_variance)
    machine.points = np.delete(machine.points, i, axis=0)
    S = np.linalg.inv(dense.precision)
    kept = np.delete(np.arange(len(grid)), i)
    means, variances = machine.basis.marginals()
    np.testing.assert_allclose(means, (S @ dense.shift)[kept], atol=1e-7)
    np.testing.assert_allclose(variances, np.diagonal(S)[kept], atol=1e-7)
    consistent(machine)
    # It goes on as a basis with a free slot.
    assert machine.learn(grid[i], Y[i], noise_variance) == len(grid) - 1
    consistent(machine)
    assert X.shape == (40, 2)


@given(st.integers(0, 100), st.floats(1e-3, 10.0), st.integers(0, 15))
def test_a_changed_observation_is_as_if_it_had_been_made_so(seed, noise_variance, i):
    _, Y = problem(40, seed=seed)
    machine, twin = Machine(len(grid), 2), Machine(len(grid), 2)
    for n, (x, y) in enumerate(
        [*zip(grid, Y, strict=False), *zip(grid[:12] + 0.02, Y[20:], strict=False)]
    ):
        machine.learn(x, y, noise_variance)
        twin.learn(x, y if n != i else np.array([3.0, y[1]]), noise_variance)
    machine.basis.shift(i, np.array([3.0, Y[i, 1]]) - Y[i], noise_variance)
    for mine, others in zip(machine.full(), twin.full(), strict=True):
        np.testing.assert_allclose(mine, others, atol=1e-8)


def consistent(machine, tolerance=1e-9):
    """What is kept incrementally equals what follows from the points and the means.

    A tolerance for `Q K`: the inverse of a bordered matrix loses the digits of what the new point
    leaves unexplained, three at most, to those that the condition number costs anyway.
    """
    Q, S, means, weights = machine.full()
    K = correlation(machine.points, machine.points, machine.length_scale)
    np.testing.assert_allclose(Q @ K, np.eye(len(K)), atol=tolerance)
    expected = means @ np.linalg.inv(K)
    scale = np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(weights, expected, atol=10.0 * tolerance * scale)
    n, basis = machine.basis.n, machine.basis
    assert basis._diagonal[:n].tolist() == np.diagonal(Q).tolist()
    assert np.linalg.eigvalsh(S).min() > -tolerance
    # Nothing is left where nothing should be.
    assert not basis._diagonal[n:].any()
    assert not any(half[:, n:].any() for half in basis._halves())
    assert not basis._M[:, basis.capacity].any()
    assert not basis._M[:, -1].any()
    assert all(np.all(A[n:] == 0) and np.all(A[:, n:] == 0) for A in (basis._Q._a, basis._S._a))


@given(st.integers(0, 100), st.integers(1, 8), st.floats(0.3, 3.0))
def test_a_replaced_point_is_as_if_it_had_never_been_there(seed, capacity, length_scale):
    """The rest of the posterior is as it was: only what the point alone knew is lost."""
    X, Y = problem(40, seed=seed)
    machine = Machine(capacity, 2, length_scale=length_scale)
    for x, y in zip(X, Y, strict=True):
        before = machine.points
        _, S, means, _ = machine.full()
        look = machine.look(x)
        q = (y - machine.basis.means(look)) / (look.variance + 0.1)
        slot = machine.learn(x, y, 0.1)
        consistent(machine, 1e-6)
        if slot is not None and slot < len(before):
            stay = np.delete(np.arange(len(before)), slot)
            _, new_S, new_means, _ = machine.full()
            h = look.h[stay]
            expected = S[np.ix_(stay, stay)] - np.outer(h, h) / (look.variance + 0.1)
            np.testing.assert_allclose(new_S[np.ix_(stay, stay)], expected, atol=1e-9)
            np.testing.assert_allclose(
                new_means[:, stay], means[:, stay] + np.outer(q, h), atol=1e-9
            )


def test_the_point_goes_without_which_late_examples_would_be_told_least():
    """By brute force: the change at each point without it, and how much it was relied on."""
    X, Y = problem(300)
    machine, n_compared = Machine(6, 2), 0
    for x, y in zip(X, Y, strict=True):
        if len(machine.points) < 6 or not machine.look(x).is_new:
            machine.learn(x, y, 0.5)
            continue
        whole = Machine(7, 2)
        whole.points, (_, S, means, _) = machine.points, machine.full()
        K = correlation(whole.points, whole.points)
        whole.basis = at_once(Basis.of_steps(7, K, means, S))
        look, use = machine.look(x), machine.basis._use[:6].copy()
        slot = machine.learn(x, y, 0.5)
        whole.learn(x, y, 0.5)
        use = np.append(use * (1.0 - 1.0 / 60.0) + look.e[:6] ** 2 / 60.0, 1.0 / 6.0)
        _, _, means, _ = whole.full()
        K = correlation(whole.points, whole.points)
        losses = []
        for i in range(7):
            stay = np.delete(np.arange(7), i)
            rest = np.linalg.solve(K[np.ix_(stay, stay)], K[stay, i])
            losses.append(use[i] * ((means[:, i] - means[:, stay] @ rest) ** 2).sum())
        assert int(np.argmin(losses)) == (6 if slot is None else slot)
        n_compared += 1
    assert n_compared > 100


def test_what_is_new_finds_its_place_and_what_is_used_stays():
    """Also where all points are taken, each of them far from the others and known for certain."""
    rng = np.random.default_rng(0)
    machine = Machine(20, 1, d=1)
    here, there = 10.0 * np.arange(20), 10.0 * np.arange(20, 30)

    def learn(places, n):
        for place in rng.choice(places, size=n):
            machine.learn(np.array([place]), np.ones(1), 0.5)

    def known():
        return [float(machine.predict(np.array([place]))[0][0]) > 0.7 for place in [*here, *there]]

    learn(here, 1000)
    assert known() == [True] * 20 + [False] * 10
    # Half of the old places are visited no more.
    learn([*here[:10], *there], 1000)
    assert known() == [True] * 10 + [False] * 10 + [True] * 10


def test_one_more_function_of_zeros_changes_no_bit():
    X, Y = problem(300)
    machines = Machine(12, 2), Machine(12, 2)
    for n, (x, y) in enumerate(zip(X, Y, strict=True)):
        if n % 37 == 36:
            machines[1].basis.add_target()
        wide = np.append(y, np.zeros(machines[1].basis.n_targets - 2))
        assert machines[0].learn(x, y, 0.5) == machines[1].learn(x, wide, 0.5)
        one, other = (machine.predict(x) for machine in machines)
        assert one[0].tolist() == other[0][:2].tolist()
        assert one[1] == other[1]
        assert not other[0][2:].any()
    assert machines[1].basis.n_targets == 10


@pytest.mark.parametrize("length_scale", [0.5, 3.0, 30.0])
def test_a_point_that_follows_from_the_others_is_not_new(length_scale):
    X, Y = problem(300)
    machine = Machine(50, 2, length_scale=length_scale)
    for x, y in zip(X, Y, strict=True):
        look = machine.look(x)
        dense = Dense(machine.points, 2, length_scale)
        assert look.residual == pytest.approx(dense.seen(x)[1], abs=1e-8)
        assert look.is_new == (look.residual > NOVELTY)
        machine.learn(x, y, 0.5)
    consistent(machine, 1e-5)
