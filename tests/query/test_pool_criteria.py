import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.gp.joint_posterior import PoolPosterior
from streamgp.query.pool_criteria import CRITERIA, assumed, hvar, l2fm, mvar, rkhs, shortfalls
from tests.helpers.laws import examples
from tests.helpers.pool_cases import case_of, cases

BINARY = cases(n_classes=st.just(1))
quick = examples(40)


def refits(case):
    """Yield what each candidate's refit with its assumed label is, and the labels."""
    codes = assumed(case.refit()[0])
    for u in np.flatnonzero(case.unlabelled):
        yield u, codes[:, u], case.refit(u, codes[:, u])


@quick
@given(cases())
def test_sqsm_by_refitting_each_candidate_is_l2fm(case):
    f, *_ = case.refit()
    scores = l2fm(case.taught(), case.unlabelled)
    for u, _, (f_u, *_) in refits(case):
        sqsm = np.linalg.norm((f_u - f)[:, case.unlabelled])
        assert scores[u] == pytest.approx(sqsm, rel=1e-8, abs=1e-8)


@quick
@given(cases())
def test_rkhs_by_refitting_each_candidate_is_the_closed_form(case):
    scores = rkhs(case.taught(), case.unlabelled)
    for u, _, (*_, norms) in refits(case):
        assert scores[u] == pytest.approx(norms.sum(), rel=1e-8, abs=1e-8)


@quick
@given(BINARY)
def test_the_assumed_label_is_the_one_of_smaller_norm(case):
    for u, codes, (*_, norms) in refits(case):
        _, _, other = case.refit(u, -codes)
        assert norms[0] <= other[0] + 1e-10


@quick
@given(cases(n_classes=st.integers(3, 5)))
def test_the_assumed_class_is_the_one_of_smallest_norm(case):
    m = case.codes.shape[1]
    every = 2.0 * np.eye(m) - 1.0
    for u, _, (*_, norms) in refits(case):
        least = min(case.refit(u, codes)[2].sum() for codes in every)
        assert norms.sum() == pytest.approx(least, abs=1e-8)


@quick
@given(BINARY)
def test_hvar_is_the_growth_of_the_squared_norm_times_the_variance_where_f_is_small(case):
    f, C, norms = case.refit()
    scores = hvar(case.taught(), case.unlabelled)
    for u, _, (*_, grown) in refits(case):
        growth = (grown - norms)[0] * (C[u, u] + case.noise_variance)
        assert abs(f[0, u]) > 1.0 or scores[u] == pytest.approx(growth, abs=1e-8)


@quick
@given(BINARY, st.sampled_from(sorted(CRITERIA)))
def test_two_classes_have_twice_the_squares_of_one_function(case, name):
    two = type(case)(case.K, case.told, np.hstack([case.codes, -case.codes]), case.noise_variance)
    one = CRITERIA[name](case.taught(), case.unlabelled)
    both = CRITERIA[name](two.taught(), case.unlabelled)
    factor = {"rkhs": 2.0, "hvar": 2.0, "sqsm": math.sqrt(2.0), "l2fm": math.sqrt(2.0)}
    np.testing.assert_allclose(both, factor.get(name, 1.0) * one, rtol=1e-8, atol=1e-8)


@quick
@given(cases())
def test_mvar_is_the_variance_of_an_observation(case):
    _, C, _ = case.refit()
    expected = C.diagonal() + case.noise_variance
    np.testing.assert_allclose(mvar(case.taught(), case.unlabelled), expected, atol=1e-8)


def by_hand(f, k=0.5):
    """Two points of prior covariance `k`, and a function that is `f` at both."""
    posterior = PoolPosterior(np.array([[1.0, k], [k, 1.0]]), 0.25)
    posterior._means[1] = f
    return posterior


EVERYWHERE = np.array([True, True])


@pytest.mark.parametrize("f", [0.2, -0.2])
def test_one_function_by_hand(f):
    posterior = by_hand(f)
    assert mvar(posterior, EVERYWHERE)[0] == 1.25
    assert rkhs(posterior, EVERYWHERE)[0] == pytest.approx(0.8**2 / 1.25)
    assert hvar(posterior, EVERYWHERE)[0] == pytest.approx(0.8**2)
    assert l2fm(posterior, EVERYWHERE)[0] == pytest.approx(0.8 / 1.25 * math.sqrt(1.0 + 0.25))


@pytest.mark.parametrize("f", [1.0, 1.5, 2.5, -2.5])
def test_hvar_never_asks_where_the_function_exceeds_the_label(f):
    assert hvar(by_hand(f), EVERYWHERE)[0] == 0.0
    # (1 - |f|)² of the document would be largest at the surest points.
    assert l2fm(by_hand(f), EVERYWHERE)[0] == pytest.approx(abs(1 - abs(f)) / 1.25 * 1.25**0.5)


def test_nothing_known_is_a_function_of_zero():
    posterior = by_hand(0.0)
    assert assumed(posterior.functions).tolist() == [[1.0, 1.0]]
    assert shortfalls(posterior.functions).tolist() == [[1.0, 1.0]]


def test_points_with_a_label_do_not_count_in_the_distance():
    posterior = by_hand(0.0)
    both, alone = (l2fm(posterior, np.array([True, v]))[0] for v in (True, False))
    assert both == pytest.approx(alone * math.sqrt(1.25))


def test_criteria_change_nothing():
    case = case_of(12, 4, 3, 0.1, seed=2)
    posterior = case.taught()
    before = posterior.functions.tobytes(), posterior.covariances.tobytes()
    for criterion in CRITERIA.values():
        criterion(posterior, case.unlabelled)
    assert (posterior.functions.tobytes(), posterior.covariances.tobytes()) == before
