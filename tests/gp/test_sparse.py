import copy
import math
import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.gp.bounded import Adoption
from streamgp.gp.cholesky import NotPositiveDefiniteError
from streamgp.gp.exact import ExactGP
from streamgp.gp.marginal_likelihood import Spread
from streamgp.gp.sparse import SparseGP, WindowGP
from streamgp.kernels import SquaredExponential
from tests.helpers.gp_cases import assert_same, bits


def problem(n, d=2, m=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n, m))


def taught(X, Y, *, max_points=10, noise_variance=0.5, length_scale=1.0):
    gp = SparseGP(SquaredExponential(length_scale), noise_variance, max_points)
    for x, y in zip(X, Y, strict=True):
        gp.append(x, y.copy())
    return gp


def seen(gp, x):
    """All that can be seen of a process, bitwise; its predictions at a point."""
    left_out = [array.tobytes() for array in gp.leave_one_out()]
    sums = bits(gp.quadratic_forms())
    return gp.n, gp.n_targets, gp.retained.copy(), bits(gp.predict(x)), left_out, sums


def spread(n, d=2, seed=0):
    """Points of which each is new to all others, and observations there."""
    rng = np.random.default_rng(seed)
    side = math.ceil(n ** (1 / d))
    corners = np.stack(np.meshgrid(*[np.arange(side)] * d), axis=-1).reshape(-1, d)
    X = 1.2 * corners[rng.permutation(len(corners))[:n]] + 0.1 * rng.normal(size=(n, d))
    return X, rng.normal(size=(n, 2))


# --- until the bound is passed


@given(st.integers(0, 20), st.integers(1, 20), st.integers(0, 100))
def test_up_to_the_bound_it_is_exact_bitwise(n, max_points, seed):
    n = min(n, max_points)
    X, Y = problem(n + 1, seed=seed)
    gp, exact = SparseGP(SquaredExponential(), 0.1, max_points), ExactGP(SquaredExponential(), 0.1)
    for i in range(n):
        x, y = X[i], Y[i]
        assert bits(gp.predict(x)) == bits(exact.predict(x))
        assert gp.append(x, y) == []
        exact.append(x, y)
        if i == n // 2:
            gp.relabel(i // 2, -y)
            exact.relabel(i // 2, -y)
            gp.add_target()
            exact.add_target()
            Y = np.column_stack([Y, np.ones(len(Y))])
    assert bits(gp.predict(X[n])) == bits(exact.predict(X[n]))
    assert (gp.n, gp.n_targets, gp.retained) == (n, exact.n_targets, list(range(n)))
    assert gp.log_evidence() == exact.log_evidence()
    for mine, others in zip(gp.leave_one_out(), exact.leave_one_out(), strict=True):
        assert mine.tobytes() == others.tobytes()


@pytest.mark.parametrize("gone", [[0], [19], [10, 3], [0, 1, 2, 19]])
def test_up_to_the_bound_a_removed_example_leaves_no_bit(gone):
    X, Y = problem(20)
    gp = taught(X, Y, max_points=20)
    for number in gone:
        gp.remove(number)
    kept = [i for i in range(20) if i not in gone]
    twin = ExactGP(SquaredExponential(), 0.5)
    for i in kept:
        twin.append(X[i], Y[i])
    assert gp.retained == kept
    assert bits(gp.predict(np.ones(2))) == bits(twin.predict(np.ones(2)))
    # There is room for as many again, and they get new numbers.
    for x in X[: len(gone)]:
        assert gp.append(x + 0.5, np.ones(2)) == []
    assert gp.retained == [*kept, *range(20, 20 + len(gone))]


@pytest.mark.parametrize("noise_variance", [1e-8, 1e-4, 0.5, 100.0])
def test_what_is_known_at_the_bound_is_kept_beyond_it(noise_variance):
    """The posterior of twenty points that are new to each other does not change at all."""
    X, Y = spread(20)
    exact = ExactGP(SquaredExponential(), noise_variance)
    for x, y in zip(X, Y, strict=True):
        exact.append(x, y)
    # A point far away, of which the others know nothing, where nothing is observed but 0.
    far = np.array([1e3, 1e3])
    gp = taught([*X, far], [*Y, np.zeros(2)], max_points=20, noise_variance=noise_variance)
    assert gp.retained == list(range(20))
    assert_same(gp, exact, [*X[:5], *X[:5] + 0.3], tolerance=1e-7)
    exact.append(far, np.zeros(2))
    assert gp.n == exact.n
    assert gp.log_evidence() == pytest.approx(exact.log_evidence(), rel=1e-7)


def test_points_that_follow_from_others_are_let_go_at_the_bound():
    X, Y = spread(10)
    twice = np.repeat(X, 2, axis=0) + np.tile([[0.0], [1e-4]], (10, 1))
    gp = SparseGP(SquaredExponential(), 0.5, 20)
    exact = ExactGP(SquaredExponential(), 0.5)
    for x, y in zip(twice, np.repeat(Y, 2, axis=0), strict=True):
        gp.append(x, y)
        exact.append(x, y)
    gone = gp.append(X[0] + 2e-4, Y[0])
    exact.append(X[0] + 2e-4, Y[0])
    assert len(gp.retained) == 10
    # One of each pair, and the last one.
    assert sorted(number // 2 for number in gone) == list(range(11))
    assert_same(gp, exact, X, tolerance=1e-6)


# --- beyond


@given(st.integers(1, 12), st.integers(0, 60), st.integers(0, 100), st.floats(0.2, 5.0))
def test_every_example_is_retained_or_was_let_go_once(max_points, n, seed, length_scale):
    X, Y = problem(n, seed=seed)
    gp = SparseGP(SquaredExponential(length_scale), 0.5, max_points)
    gone = []
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        gone += gp.append(x, y)
        assert sorted([*gone, *gp.retained]) == list(range(i + 1))
        assert len(gp.retained) <= max_points
        assert gp.n == i + 1
    means, variances = gp.leave_one_out()
    assert means.shape == (len(gp.retained), gp.n_targets)
    assert variances.shape == (len(gp.retained),)


@pytest.mark.parametrize("seed", range(3))
def test_it_stays_close_to_the_exact_process(seed):
    """Ten times as many examples as points, in a space that the points cover."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(600, 2))
    Y = np.column_stack([np.sin(X[:, 0]), np.cos(X[:, 1])]) + 0.3 * rng.normal(size=(600, 2))
    gp, exact = SparseGP(SquaredExponential(), 0.09, 60), ExactGP(SquaredExponential(), 0.09)
    for x, y in zip(X, Y, strict=True):
        gp.append(x, y)
        exact.append(x, y)
    assert_same(gp, exact, rng.uniform(-2.0, 2.0, size=(50, 2)), tolerance=0.02)
    assert gp.log_evidence() == pytest.approx(exact.log_evidence(), rel=0.01)


@given(st.integers(0, 100), st.lists(st.integers(1, 80), max_size=4))
def test_one_more_function_of_zeros_changes_no_bit(seed, added_at):
    X, Y = problem(90, seed=seed)
    one, other = (SparseGP(SquaredExponential(), 0.5, 12) for _ in range(2))
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        for _ in range(added_at.count(i)):
            other.add_target()
        wide = np.append(y, np.zeros(max(other.n_targets, 2) - 2))
        assert one.append(x, y) == other.append(x, wide)
        probe = X[i - 1] + 0.1
        (means, variance), (wider, same_variance) = one.predict(probe), other.predict(probe)
        assert means.tolist() == wider[:2].tolist()
        assert variance == same_variance


def test_a_longer_target_brings_a_function_that_was_zero_before():
    X, Y = problem(60)
    one, other = taught(X, Y), taught(X, np.column_stack([Y, np.zeros(60)]))
    one.append(np.ones(2), np.ones(3))
    other.append(np.ones(2), np.ones(3))
    assert bits(one.predict(X[0])) == bits(other.predict(X[0]))


def test_learning_after_predicting_changes_no_bit():
    X, Y = problem(60)
    one, other = (SparseGP(SquaredExponential(), 0.1, 10) for _ in range(2))
    for x, y in zip(X, Y, strict=True):
        one.append(x, y)
        other.predict(x + 1.0)
        other.predict(x)
        other.append(x, y)
        other.predict(x)
    assert bits(one.predict(X[0])) == bits(other.predict(X[0]))


@pytest.mark.parametrize("offset", [1e6, -1e6])
def test_an_offset_of_all_points_changes_nothing(offset):
    X, Y = problem(80)
    X = np.round(X, 4)
    assert_same(
        taught(X, Y),
        Shifted(taught(X + offset, Y), offset),
        X[:10] + 0.1,
        tolerance=1e-6,  # an offset of 1e6 leaves ten digits behind the point
    )


class Shifted:
    """A process whose points are all moved by an offset."""

    def __init__(self, gp, offset):
        self.gp, self.offset = gp, offset

    def predict(self, x):
        return self.gp.predict(x + self.offset)


# --- changing what was learned


def test_an_example_that_is_not_retained_cannot_be_called():
    X, Y = problem(60)
    gp = taught(X, Y)
    before = bits(gp.predict(X[0]))
    [gone] = [number for number in range(60) if number not in gp.retained][:1]
    for call in (lambda: gp.relabel(gone, Y[0]), lambda: gp.remove(gone), lambda: gp.remove(60)):
        with pytest.raises(KeyError, match=r"example \d+ is not retained"):
            call()
    assert bits(gp.predict(X[0])) == before


def crowded(n, seed=0):
    """Points that are new to each other, then many beside them that are not."""
    X, Y = spread(20, seed=seed)
    rng = np.random.default_rng(seed)
    near = X[rng.integers(20, size=n)] + 1e-3 * rng.normal(size=(n, 2))
    return np.vstack([X, near]), np.vstack([Y, rng.normal(size=(n, 2))])


@pytest.mark.parametrize("number", [0, 7, 19])
@pytest.mark.parametrize("noise_variance", [1e-3, 0.5])
def test_a_relabelled_example_is_as_if_it_had_been_learned_so(number, noise_variance):
    X, Y = crowded(200)
    gp = taught(X, Y, max_points=20, noise_variance=noise_variance)
    Y[number] = [3.0, Y[number, 1]]
    gp.relabel(number, Y[number])
    twin = taught(X, Y, max_points=20, noise_variance=noise_variance)
    assert gp.n == twin.n == 220
    assert_same(gp, twin, [*X[:20], *X[:20] + 0.2], tolerance=1e-8)
    assert gp.log_evidence() == pytest.approx(twin.log_evidence(), rel=1e-9)
    for mine, others in zip(gp.leave_one_out(), twin.leave_one_out(), strict=True):
        np.testing.assert_allclose(mine, others, atol=1e-7)


@pytest.mark.parametrize("number", [0, 7, 19])
def test_a_removed_example_is_as_if_it_had_not_been_learned(number):
    """With nothing absorbed, the exact process of the others is left."""
    X, Y = spread(21)
    Y[20] = 0.0
    X[20] = 1e3
    gp = taught(X, Y, max_points=20)
    gp.remove(number)
    exact = ExactGP(SquaredExponential(), 0.5)
    for i in [*range(number), *range(number + 1, 21)]:
        exact.append(X[i], Y[i])
    assert gp.n == 20
    assert number not in gp.retained
    assert_same(gp, exact, X[:20])
    assert gp.log_evidence() == pytest.approx(exact.log_evidence(), rel=1e-9)
    # There is room for another one.
    assert gp.append(X[number], Y[number]) == []
    assert gp.retained[-1] == 21


def test_removing_one_keeps_what_was_absorbed():
    """What others have said about its place is not forgotten with it."""
    X, Y = crowded(2000)
    Y = np.sin(X)
    gp = taught(X, Y, max_points=20)
    gp.remove(5)
    assert gp.n == 2019
    np.testing.assert_allclose(gp.predict(X[4])[0], np.sin(X[4]), atol=0.05)
    for number in gp.retained.copy():
        gp.remove(number)
    assert gp.predict(X[4])[1] == 1.0
    assert gp.append(X[4], Y[4]) == []


def test_leaving_one_out_equals_the_exact_process():
    X, Y = spread(21)
    X[20], Y[20] = 1e3, 0.0
    gp, exact = taught(X, Y, max_points=20), ExactGP(SquaredExponential(), 0.5)
    for x, y in zip(X, Y, strict=True):
        exact.append(x, y)
    for mine, others in zip(gp.leave_one_out(), exact.leave_one_out(), strict=True):
        np.testing.assert_allclose(mine, others[:20], atol=1e-9)


def test_leaving_one_out_is_relabelling_it_to_what_the_others_say():
    X, Y = crowded(100)
    gp = taught(X, Y, max_points=20)
    means, _ = gp.leave_one_out()
    for i, number in enumerate(gp.retained):
        twin = copy.deepcopy(gp)
        twin.relabel(number, means[i])
        np.testing.assert_allclose(twin.predict(X[number])[0], means[i], atol=1e-9)
        np.testing.assert_allclose(twin.leave_one_out()[0][i], means[i], atol=1e-9)


@pytest.mark.parametrize("noise_variance", [0.0, 1e-16, 1e-9])
def test_without_noise_a_change_leaves_the_exact_process_of_the_retained(noise_variance):
    """Two things that are equally sure cannot be told apart; the absorbed examples are given up."""
    X, Y = spread(30)
    gp = taught(X, np.sin(X), max_points=20, noise_variance=noise_variance)
    gone, changed, *kept = gp.retained
    gp.relabel(changed, Y[0])
    gp.remove(gone)
    exact = ExactGP(SquaredExponential(), noise_variance)
    for number in [changed, *kept]:
        exact.append(X[number], Y[0] if number == changed else np.sin(X[number]))
    assert gp.retained == [changed, *kept]
    assert gp.n == 19
    assert bits(gp.predict(X[3] + 0.1)) == bits(exact.predict(X[3] + 0.1))
    twin = taught(X, np.sin(X), max_points=20, noise_variance=noise_variance)
    for array in twin.leave_one_out():
        assert np.isfinite(array).all()


def test_falling_back_leaves_the_prior_and_what_comes_next_is_exact():
    X, Y = problem(60, m=3)
    gp, exact = taught(X, Y), ExactGP(SquaredExponential(), 0.5)
    known = gp.retained
    assert gp.reset_to_prior() == known
    means, variance = gp.predict(X[0])
    assert (gp.n, gp.n_targets, gp.retained) == (0, 3, [])
    assert (means.tolist(), variance) == ([0.0] * 3, 1.0)
    for i, (x, y) in enumerate(zip(X[:10], Y, strict=False)):
        assert gp.append(x, y) == []
        exact.append(x, y)
        assert gp.retained[-1] == 60 + i
    assert bits(gp.predict(X[0])) == bits(exact.predict(X[0]))


# --- other hyperparameters


def adopt(gp, kernel, noise_variance):
    return gp.adopt(Adoption(noise_variance), lambda _: kernel)


@pytest.mark.parametrize("kind", [SparseGP, WindowGP])
def test_adopting_by_and_by_while_examples_come_is_adopting_at_once(kind):
    X, Y = problem(40)
    gp, twin = (kind(SquaredExponential(), 0.5, 40) for _ in range(2))
    adoption, steps = Adoption(0.1), 0
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        for one in (gp, twin):
            one.append(x, y)
        if i >= 12 and gp.noise_variance == 0.5:
            steps += 1
            gp.adopt(adoption, lambda _: SquaredExponential(2.0), work=0.0)
    assert steps == 12  # two examples at a time catch up with one
    adopt(twin, SquaredExponential(2.0), 0.1)
    assert bits(gp.predict(X[0])) == bits(twin.predict(X[0]))


@given(
    st.integers(0, 30),
    st.lists(st.sampled_from([0.0, 100.0, 500.0, math.inf]), min_size=1, max_size=5),
    st.sampled_from([0.0, 0.1]),
    st.booleans(),
)
def test_where_examples_were_given_up_it_is_as_if_adopted_at_the_first_call(n, work, noise, copied):
    """Wherever it is cut, with new features and functions meanwhile, and of a copy as well."""
    X, Y = problem(n + 400, d=3, m=2)
    gp, twin = (SparseGP(SquaredExponential(), 0.5, 20) for _ in range(2))
    adoption, kernel, found = Adoption(noise), SquaredExponential(2.0), None
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        d, m = (2, 1) if i < 25 + n else (3, 2)
        for one in (gp, twin):
            one.resize(d)
            one.append(x[:d], y[:m])
        adoption.note(x[:d], y[:m])
        if i == 21 + n:
            adopt(twin, kernel, noise)
        if i >= 21 + n:
            if copied:
                gp, adoption = pickle.loads(pickle.dumps((gp, adoption)))
            found = gp.adopt(adoption, lambda _: kernel, work[i % len(work)])
        if found is not None:
            break
    assert found is not None
    assert seen(gp, X[0, :d]) == seen(twin, X[0, :d])


def test_what_is_no_longer_retained_after_an_adoption_is_reported():
    X, Y = problem(90)
    gp, adoption = taught(X[:40], Y[:40], max_points=20), Adoption(0.1)
    for x, y in zip(X[40:], Y[40:], strict=True):
        before = gp.retained.copy()
        gone = gp.adopt(adoption, lambda _: SquaredExponential(3.0), work=0.0)
        if gone is not None:
            break
        gp.append(x, y)
        adoption.note(x, y)
    assert gone
    assert set(before) - set(gp.retained) == set(gone)


def test_an_adoption_that_ends_in_an_example_it_cannot_learn_changes_nothing():
    X, Y = problem(41)
    gp, twin = (taught(X[:40], Y[:40], max_points=20) for _ in range(2))
    adoption = Adoption(0.0)  # the retained examples, and they are known exactly

    def adopted(work=0.0):
        return gp.adopt(adoption, lambda _: SquaredExponential(0.7), work=work)

    assert adopted() is None
    for one in (gp, twin):
        one.append(gp.points[3], Y[40])
    adoption.note(gp.points[3], Y[40])
    with pytest.raises(NotPositiveDefiniteError):
        adopted(math.inf)
    assert seen(gp, X[0]) == seen(twin, X[0])


@pytest.mark.parametrize("kind", [SparseGP, WindowGP])
def test_learning_in_steps_is_learning_at_once(kind):
    X, Y = problem(70)
    gp, twin = (kind(SquaredExponential(), 0.5, 20) for _ in range(2))
    n_steps = 0
    for x, y in zip(X, Y, strict=True):
        learning = Spread(partial(gp.append_steps, x, y))
        while learning.advance(work=0.0) is None:
            n_steps += 1
        assert learning.result == twin.append(x, y)
    assert n_steps >= 10
    assert seen(gp, X[0]) == seen(twin, X[0])


def test_a_window_that_moves_on_is_adopted_from_its_first_example():
    X, Y = problem(45)
    gp, twin = (WindowGP(SquaredExponential(), 0.5, 40) for _ in range(2))
    adoption, found = Adoption(0.1), []
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        gone = gp.append(x, y)
        twin.append(x, y)
        if i >= 35:
            work = 0.0 if i < 44 else math.inf
            found.append(gp.adopt(adoption, lambda _: SquaredExponential(2.0), work=work))
    assert found == [None] * 9 + [[]]
    assert (gone, gp.retained[0]) == ([], 10)
    adopt(twin, SquaredExponential(2.0), 0.1)
    assert bits(gp.predict(X[0])) == bits(twin.predict(X[0]))


@pytest.mark.parametrize("noise_variance", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("n_near", [0, 300])
def test_adopted_hyperparameters_are_as_if_they_had_always_been_these(noise_variance, n_near):
    X, Y = crowded(n_near)
    X[20:] = np.round(X[20:] / 1e-3) * 1e-3  # and some of them repeatedly
    far = np.array([[1e3, 1e3]])
    X, Y = np.vstack([X, far]), np.vstack([Y, np.zeros((1, 2))])
    gp, exact = taught(X, Y, max_points=20), ExactGP(SquaredExponential(0.8, 2.0), noise_variance)
    for x, y in zip(X, Y, strict=True):
        exact.append(x, y)
    assert adopt(gp, SquaredExponential(0.8, 2.0), noise_variance) == []
    assert (gp.kernel, gp.noise_variance) == (SquaredExponential(0.8, 2.0), noise_variance)
    # Absorbed observations follow from the points by the prior of then: a millionth of it is lost.
    assert_same(gp, exact, X[:20], tolerance=1e-3 if n_near else 1e-9)
    if not n_near:
        assert_same(gp, exact, X[:20] + 0.2)
    # It goes on learning with them.
    gp.append(X[0], np.ones(2))
    exact.append(X[0], np.ones(2))
    assert_same(gp, exact, X[:20], tolerance=1e-3 if n_near else 1e-9)


@pytest.mark.parametrize("kind", [SparseGP, WindowGP])
def test_up_to_the_bound_adopting_is_learning_anew(kind):
    X, Y = problem(20)
    gp, twin = kind(SquaredExponential(), 0.5, 20), ExactGP(SquaredExponential(2.0), 0.1)
    for x, y in zip(X, Y, strict=True):
        gp.append(x, y)
        twin.append(x, y)
    assert adopt(gp, SquaredExponential(2.0), 0.1) == []
    assert bits(gp.predict(X[0])) == bits(twin.predict(X[0]))
    with pytest.raises(ValueError, match="noise_variance must be non-negative"):
        adopt(gp, SquaredExponential(2.0), -0.1)


def test_points_that_follow_from_others_under_a_new_kernel_are_let_go():
    X, Y = problem(200)
    gp = taught(X, np.sin(X) + 0.1 * Y, max_points=30, length_scale=0.5)
    known = gp.retained
    gone = adopt(gp, SquaredExponential(3.0), 0.5)
    assert gone
    assert sorted([*gone, *gp.retained]) == sorted(known)
    assert gp.n == 200
    assert gp.append(X[0] + 5.0, Y[0]) == []
    assert all(np.isfinite(array).all() for array in gp.leave_one_out())


@pytest.mark.parametrize("noise_variance", [0.0, 1e-16])
def test_without_noise_adopting_leaves_the_exact_process_of_the_retained(noise_variance):
    X, _ = spread(30)
    gp = taught(X, np.sin(X), max_points=20, noise_variance=1e-16)
    assert adopt(gp, SquaredExponential(0.7), noise_variance) == []
    exact = ExactGP(SquaredExponential(0.7), noise_variance)
    for number in gp.retained:
        exact.append(X[number], np.sin(X[number]))
    assert bits(gp.predict(X[0] + 0.1)) == bits(exact.predict(X[0] + 0.1))


# --- features that come and go


def test_new_features_are_zero_at_the_old_points():
    X, Y = problem(80, d=4)
    X[:40, 2:] = 0.0
    gp, twin = taught(X[:40, :2], Y[:40]), taught(X[:40], Y[:40])
    gp.resize(4)
    gp.resize(4)
    assert_same(gp, twin, X[38:44])
    for x, y in zip(X[40:], Y[40:], strict=True):
        assert gp.append(x, y) == twin.append(x, y)
    assert_same(gp, twin, X[38:44])


@pytest.mark.parametrize("n", [8, 40])
def test_narrowing_undoes_widening(n):
    X, Y = problem(n)
    gp, twin = taught(X, Y), taught(X, Y)
    gp.resize(5)
    gp.resize(2)
    assert bits(gp.predict(X[0])) == bits(twin.predict(X[0]))


@pytest.mark.parametrize("n", [8, 40])
def test_a_kernel_that_fails_leaves_the_number_of_features(n):
    X, Y = problem(n)
    gp, twin = taught(X, Y), taught(X, Y)
    with pytest.raises(TypeError, match="which of 3 coordinates"):
        gp.resize(3, SquaredExponential({"a": 1.0}))
    gp.remove(gp.retained[0])
    twin.remove(twin.retained[0])
    assert_same(gp, twin, X[:5])
    gp.resize(3)
    twin.resize(3)
    assert_same(gp, twin, np.pad(X[:5], ((0, 0), (0, 1))))


def test_new_features_may_come_after_a_fall_back():
    X, Y = problem(30, d=3)
    gp = taught(X[:, :2], Y)
    gp.reset_to_prior()
    gp.resize(3, SquaredExponential(2.0))
    for x, y in zip(X, Y, strict=True):
        gp.append(x, y)
    assert bits(gp.predict(X[0])) == bits(taught(X, Y, length_scale=2.0).predict(X[0]))


# --- what cannot be learned


@pytest.mark.parametrize("noise_variance", [0.0, 1e-16])
@pytest.mark.parametrize("n", [10, 40])
def test_a_repeated_point_without_noise_is_refused_and_nothing_changes(noise_variance, n):
    """Also where it would be the first one beyond the bound."""
    X, _ = spread(n)
    gp = taught(X, np.sin(X), noise_variance=noise_variance)
    number = gp.retained[3]
    before = seen(gp, X[0] + 0.1)
    with pytest.raises(
        NotPositiveDefiniteError,
        match=r"residual variance .*, expected more than .*; raise noise_variance or drop",
    ):
        gp.append(X[number].copy(), np.ones(2))
    assert seen(gp, X[0] + 0.1) == before


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 1e-9, 1e-5, 0.1, 0.5, 1.0, 3.0, 1e3, 1e8]),
            st.sampled_from([-1.0, 0.0, 1.0, 1e6]),
        ),
        max_size=60,
    ),
    st.sampled_from([0.0, 1e-16, 1e-8, 1e-4, 1.0, 1e8]),
    st.sampled_from([1e-3, 1.0, 1e3]),
    st.sampled_from([1e-8, 1.0, 1e8]),
    st.integers(1, 8),
)
def test_no_input_makes_a_prediction_infinite(examples, noise_variance, scale, variance, m):
    """Each example is learned, or refused by a ValueError that says what to do."""
    gp = SparseGP(SquaredExponential(scale, variance), noise_variance, m)
    refusals = []
    for x, y in examples:
        try:
            gp.append(np.array([x, 0.0]), np.array([y]))
        except NotPositiveDefiniteError as error:
            refusals.append(str(error))
        for probe in (x, 0.3):
            means, found = gp.predict(np.array([probe, 0.0]))
            assert np.isfinite(means).all()
            assert 0.0 <= found <= variance * (1.0 + 1e-12)
    assert math.isfinite(gp.log_evidence())
    assert all(r.endswith("raise noise_variance or drop repeated points") for r in refusals)


# --- copies

steps = st.lists(
    st.one_of(
        st.just("learn"), st.just("learn"), st.just("learn"), st.just("remove"),
        st.just("relabel"), st.just("widen"), st.just("add"), st.just("fall back"),
        st.just("adopt"),
    ),
    max_size=60,
)  # fmt: skip


class Hand:
    """Does things to a process, the same to each of its kind."""

    def __init__(self, gp, seed=0):
        self.gp, self.d = gp, 1
        self.rng = np.random.default_rng(seed)

    def do(self, step):
        gp, rng = self.gp, self.rng
        i = int(rng.integers(1 << 30))
        if step == "learn":
            # Now and then with a feature fewer than there is room for.
            x = rng.normal(size=self.d) + 1e3
            return gp.append(x, rng.normal(size=gp.n_targets))
        if step == "widen":
            self.d += 1
            gp.resize(self.d)
        elif step == "add":
            gp.add_target()
        elif step == "fall back":
            return gp.reset_to_prior()
        elif step == "adopt":
            scale = float(rng.uniform(0.5, 1.0))
            return adopt(gp, SquaredExponential(scale), 1.0 - 0.5 * scale)
        elif gp.retained:
            number = gp.retained[i % len(gp.retained)]
            if step == "remove":
                gp.remove(number)
            else:
                gp.relabel(number, rng.normal(size=gp.n_targets))
        return None


@given(steps, steps, st.integers(1, 6), st.sampled_from([SparseGP, WindowGP]))
def test_a_copy_goes_on_with_the_same_bits_whatever_happens(before, after, max_points, kind):
    hand = Hand(kind(SquaredExponential(0.7), 0.5, max_points))
    for step in before:
        hand.do(step)
    twin = copy.deepcopy(hand)
    twin.gp = pickle.loads(pickle.dumps(hand.gp))
    for step in ["relabel", *after, "learn"]:
        assert hand.do(step) == twin.do(step)
        probe = np.full(hand.d, 1e3)
        if hand.gp.n:
            assert seen(hand.gp, probe) == seen(twin.gp, probe)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda gp: pickle.loads(pickle.dumps(gp))])
@pytest.mark.parametrize("n", [5, 40])
def test_a_copy_goes_its_own_way_from_the_same_bits(copied, n):
    X, Y = problem(60)
    gp = taught(X[:n], Y[:n])
    gp.predict(X[30])
    twin, untouched = copied(gp), copied(gp)
    before = bits(untouched.predict(X[35]))
    for x, y in zip(X[30:], Y[30:], strict=True):
        assert gp.append(x, y) == twin.append(x, y)
        assert bits(gp.predict(np.ones(2))) == bits(twin.predict(np.ones(2)))
    assert bits(untouched.predict(X[35])) == before


@pytest.mark.parametrize("n", [5, 40])
def test_predicting_leaves_no_trace_in_a_pickle(n):
    X, Y = problem(n)
    gp = taught(X, Y)
    before = pickle.dumps(gp)
    gp.predict(X[0])
    assert pickle.dumps(gp) == before


def test_arguments_are_neither_changed_nor_kept_as_the_same():
    X, Y = problem(40)
    gp, twin = (SparseGP(SquaredExponential(), 0.1, 10) for _ in range(2))
    for x, y in zip(X, Y, strict=True):
        mine, target = x.copy(), y.copy()
        gp.predict(mine)
        gp.append(mine, target)
        assert np.array_equal(mine, x)
        assert np.array_equal(target, y)
        twin.append(x, y)
    assert bits(gp.predict(np.zeros(2))) == bits(twin.predict(np.zeros(2)))
