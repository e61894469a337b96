import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.gp.cholesky import NotPositiveDefiniteError
from streamgp.gp.exact import ExactGP
from streamgp.gp.sparse import WindowGP
from streamgp.kernels import SquaredExponential
from tests.helpers.gp_cases import bits


def problem(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), rng.normal(size=(n, 2))


def taught(X, Y, max_points=8, noise_variance=0.1):
    gp = WindowGP(SquaredExponential(), noise_variance, max_points)
    for x, y in zip(X, Y, strict=True):
        gp.append(x, y)
    return gp


@given(st.integers(0, 60), st.integers(1, 12), st.integers(0, 100), st.sampled_from([0.0, 1e6]))
def test_it_is_the_exact_process_of_the_latest_examples_bitwise(n, m, seed, offset):
    X, Y = problem(n, seed)
    X = X + offset
    gp = taught(X, Y, m)
    exact = ExactGP(SquaredExponential(), 0.1)
    for _ in range(gp.n_targets):
        exact.add_target()
    for x, y in zip(X[n - gp.n :], Y[n - gp.n :], strict=True):
        exact.append(x, y)
    assert gp.retained == list(range(n - gp.n, n))
    assert bits(gp.predict(np.full(2, offset))) == bits(exact.predict(np.full(2, offset)))
    assert gp.log_evidence() == exact.log_evidence()
    for mine, others in zip(gp.leave_one_out(), exact.leave_one_out(), strict=True):
        assert mine.tobytes() == others.tobytes()


@pytest.mark.parametrize(("max_points", "fewest"), [(1, 1), (2, 2), (3, 3), (8, 7), (100, 76)])
def test_the_oldest_quarter_goes_when_there_is_one_too_many(max_points, fewest):
    X, Y = problem(300)
    gp = WindowGP(SquaredExponential(), 0.1, max_points)
    sizes, gone = [], []
    for x, y in zip(X, Y, strict=True):
        gone += gp.append(x, y)
        sizes.append(gp.n)
        assert [*gone, *gp.retained] == list(range(len(sizes)))
    assert max(sizes) == max_points
    assert min(sizes[max_points:]) == fewest


def test_an_example_outside_the_window_cannot_be_called():
    X, Y = problem(20)
    gp = taught(X, Y)
    for call in (lambda: gp.relabel(0, Y[0]), lambda: gp.remove(0), lambda: gp.remove(20)):
        with pytest.raises(KeyError, match=r"example \d+ is not retained"):
            call()


def test_an_example_in_the_window_is_changed_and_removed_without_a_trace():
    X, Y = problem(20)
    gp, exact = taught(X, Y), ExactGP(SquaredExponential(), 0.1)
    gp.relabel(15, -Y[15])
    gp.remove(17)
    for number in gp.retained:
        exact.append(X[number], -Y[15] if number == 15 else Y[number])
    assert 17 not in gp.retained
    assert bits(gp.predict(X[0])) == bits(exact.predict(X[0]))


def test_falling_back_leaves_the_prior():
    X, Y = problem(20)
    gp = taught(X, Y)
    known = gp.retained
    assert gp.reset_to_prior() == known
    means, variance = gp.predict(X[0])
    assert (gp.n, means.tolist(), variance) == (0, [0.0, 0.0], 1.0)


def test_new_features_are_zero_at_the_old_points():
    X, Y = problem(6)
    wide = np.column_stack([X, np.zeros(6)])
    gp, twin = taught(X, Y), taught(wide, Y)
    gp.resize(3)
    assert bits(gp.predict(wide[0])) == bits(twin.predict(wide[0]))
    for x in problem(9, seed=1)[0]:
        gp.append(np.append(x, 1.0), np.ones(2))
        twin.append(np.append(x, 1.0), np.ones(2))
    assert bits(gp.predict(wide[0])) == bits(twin.predict(wide[0]))


def test_a_repeated_point_without_noise_is_refused_and_nothing_changes():
    X, Y = problem(20)
    gp = taught(X, Y, noise_variance=0.0)
    before = pickle.dumps(gp)
    with pytest.raises(NotPositiveDefiniteError, match="raise noise_variance or drop repeated"):
        gp.append(X[19].copy(), np.ones(2))
    assert pickle.dumps(gp) == before
