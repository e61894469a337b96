import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from streamgp.common.annotator_error import ErrorScale
from streamgp.common.normal import Normal
from streamgp.common.running_stats import Moments
from streamgp.query import OutsideInterval
from streamgp.query.criteria import StudentT, answer_expected, probability_outlier
from tests.helpers.laws import examples

numbers = st.floats(-1e6, 1e6)
scales = st.floats(1e-3, 1e3)


def moments(*values):
    found = Moments()
    for value in values:
        found.add(value)
    return found


@given(numbers, numbers, scales, st.integers(1, 500))
def test_student_t_is_that_of_scipy(y, mu, sigma, dof):
    found, expected = StudentT(mu=mu, sigma=sigma, dof=dof), stats.t(dof, mu, sigma)
    assert found.cdf(y) == pytest.approx(expected.cdf(y), abs=1e-12)
    assert found.log_density(y) == pytest.approx(expected.logpdf(y), rel=1e-8, abs=1e-8)


def test_without_a_scale_only_one_value_is_possible():
    exact = StudentT(mu=1.0, sigma=0.0, dof=3)
    assert (exact.cdf(0.9), exact.cdf(1.0), exact.log_density(1.0)) == (0.0, 1.0, math.inf)
    targets = moments(0.0, 1.0, 2.0)
    assert probability_outlier(exact, targets, 1.0, 0.2) == 0.0
    assert probability_outlier(exact, targets, 1.5, 0.2) == 1.0


def test_the_variance_expected_in_closed_form():
    expected = answer_expected(Normal(mu=1.0, sigma=3.0), moments(0.0, 1.0, 5.0), 2.0, 4.0)
    assert expected == StudentT(mu=1.0, sigma=pytest.approx(5.0 * math.sqrt(2.0)), dof=2)


def test_a_forecast_wider_than_the_targets_is_not_believed():
    targets, wide = moments(0.0, 1.0, 5.0), Normal(mu=1.0, sigma=30.0)
    expected = answer_expected(wide, targets, 2.0, 4.0, spread=3.0)
    assert expected == answer_expected(Normal(mu=1.0, sigma=3.0), targets, 2.0, 4.0)


@pytest.mark.parametrize("targets", [(), (1.0,), (2.0, 2.0, 2.0)])
def test_nothing_is_expected_while_the_targets_do_not_differ(targets):
    assert answer_expected(Normal(mu=1.0, sigma=3.0), moments(*targets), 1.0, None) is None
    assert probability_outlier(None, moments(*targets), 9.0, 0.3) == 0.3
    assert OutsideInterval().decide(None, 9.0, probability_wrong=0.3, draw=0.0).score == 0.0


@given(numbers, st.floats(0.01, 0.99), scales, st.integers(2, 100))
def test_the_probability_of_an_outlier_is_bayes_rule(y, e, sigma, dof):
    targets = moments(-10.0, 0.0, 30.0)
    expected = StudentT(mu=3.0, sigma=sigma, dof=dof)
    scale = max(targets.std, sigma)
    right = (1.0 - e) * stats.t(dof, 3.0, sigma).pdf(y)
    wrong = e * stats.cauchy(targets.mean, scale).pdf(y)
    assert probability_outlier(expected, targets, y, e) == pytest.approx(
        wrong / (right + wrong), rel=1e-6, abs=1e-12
    )


def test_the_probabilities_of_right_and_wrong_answers_add_up_to_the_error_rate():
    """Averaged over all answers, the probability of a wrong one is the share of wrong ones."""
    targets, e = moments(0.0, 10.0, 20.0), 0.3
    expected = StudentT(mu=12.0, sigma=1.0, dof=20)
    scale = max(targets.std, 1.0)

    def mass(y):
        right = (1 - e) * math.exp(expected.log_density(y))
        wrong = e * stats.cauchy(targets.mean, scale).pdf(y)
        return (right + wrong) * probability_outlier(expected, targets, y, e)

    pieces = [(-math.inf, 0.0), (0.0, 11.0), (11.0, 13.0), (13.0, 30.0), (30.0, math.inf)]
    assert sum(integrate.quad(mass, *piece)[0] for piece in pieces) == pytest.approx(e, abs=1e-6)


@given(st.floats(0.01, 0.9), st.floats(0.1, 20.0))
def test_far_off_answers_are_wrong_for_certain(e, sigma):
    targets = moments(0.0, 1.0, 2.0)
    expected = StudentT(mu=1.0, sigma=sigma, dof=30)
    assert probability_outlier(expected, targets, 1e9, e) > 0.99


@pytest.mark.parametrize("y", [-1e100, 1e100, 1e308])
@pytest.mark.parametrize("unit", [1.0, 1e-60, 1e-150])
def test_so_are_those_whose_squared_deviation_is_no_float(y, unit):
    targets = moments(0.0, unit, 2.0 * unit)
    expected = StudentT(mu=unit, sigma=unit, dof=30)
    assert probability_outlier(expected, targets, y, 0.2) == pytest.approx(1.0)


@given(numbers, st.integers(1, 100), st.floats(0.5, 0.999))
def test_the_interval_ends_where_the_quantiles_are(mu, dof, level):
    rule, expected = OutsideInterval(level), StudentT(mu=mu, sigma=2.0, dof=dof)
    end = 2.0 * stats.t(dof).ppf(0.5 + level / 2)
    for sign in (-1, 1):
        inside = rule.decide(expected, mu + sign * 0.99 * end, probability_wrong=0.0, draw=0.0)
        outside = rule.decide(expected, mu + sign * 1.01 * end, probability_wrong=0.0, draw=0.0)
        assert (inside.ask, outside.ask) == (False, True)
        assert inside.threshold == level


@pytest.mark.parametrize("level", [-0.1, 1.1, math.nan])
def test_a_level_is_a_probability(level):
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        OutsideInterval(level)


@examples(5)
@given(st.floats(0.2, 5.0), st.integers(0, 10_000))
def test_the_scatter_of_honest_answers_is_found(true, seed):
    """After 12 000, it is off by 2 % on average where it is far from 1, with a deviation of 2 %."""
    rng, trust = random.Random(seed), ErrorScale()
    for _ in range(12_000):
        trust.note_deviation(rng.gauss(0.0, math.sqrt(true)) ** 2, w=0.0)
    assert trust.scatter == pytest.approx(true, rel=0.12)


def test_an_answer_that_was_insisted_on_counts_for_one_and_a_half_deviations_at_most():
    most = 2.25 / (stats.chi2(3).cdf(2.25) + 2.25 * stats.chi2(1).sf(2.25))
    trust = ErrorScale()
    trust.note_deviation(1e12, w=0.0)
    first = (5 + most) / 6
    assert trust.scatter == pytest.approx(first)
    trust.note_deviation(1e12, w=0.0)
    assert trust.scatter == pytest.approx((5 + most + most * first) / 7)


def test_one_wrong_answer_in_five_that_is_not_recognised_leaves_the_others_doubtful():
    """The scatter stays well below the mean of all squares, which is 4."""
    rng, trust = random.Random(1), ErrorScale()
    for i in range(3000):
        trust.note_deviation(rng.gauss(0.0, 1.0) ** 2 if i % 5 else 16.0, w=0.0)
    assert trust.scatter < 2.5


def test_an_answer_that_was_wrong_says_nothing_of_the_scatter():
    trust = ErrorScale()
    trust.note_deviation(50.0, w=1.0)
    assert trust.scatter == 1.0


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 1)), max_size=10))
def test_trust_in_numbers_survives_a_restart(notes):
    trust = ErrorScale()
    for z2, w in notes:
        trust.note(w)
        trust.note_deviation(z2, w)
    again = ErrorScale.of(trust.numbers())
    assert (again.scatter, again.estimate, again.n) == (trust.scatter, trust.estimate, trust.n)
