import math
import random
from collections import Counter
from statistics import NormalDist, fmean

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streamgp.base import Posterior
from streamgp.common.normal import MixturePosterior
from streamgp.query import criteria

PHI = NormalDist().cdf
shares = st.floats(0.0, 1.0)
means = st.floats(-3.0, 3.0)


def posterior(variance=1.0, **mean):
    return Posterior(mean=mean, variance=variance)


@given(means, st.floats(1e-6, 100.0))
def test_the_normal_distribution_function_is_that_of_the_standard_library(mean, variance):
    expected = PHI(mean / math.sqrt(variance))
    assert criteria.normal_cdf(mean, variance) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize(("mean", "expected"), [(1e-300, 1.0), (-1e-300, 0.0), (0.0, 0.5)])
def test_without_variance_the_distribution_function_is_a_step(mean, expected):
    assert criteria.normal_cdf(mean, 0.0) == expected


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(0.0, 1e308))
def test_the_distribution_function_is_finite_for_all_numbers(mean, variance):
    assert 0.0 <= criteria.normal_cdf(mean, variance) <= 1.0


def test_doubt_is_the_probability_of_a_negative_score_of_the_best_class():
    """ISGP Eq. 7 with mean 0.5 and standard deviation 0.5: 1 - Φ(1)."""
    assert criteria.doubt(posterior(0.25, a=0.5, b=0.4)) == pytest.approx(1 - PHI(1.0))


def test_doubt_is_one_half_far_from_the_data_and_more_only_if_every_mean_is_negative():
    assert criteria.doubt(posterior(1.0, a=0.0, b=0.0)) == 0.5
    assert criteria.doubt(posterior(1.0, a=-0.1, b=-0.2)) == pytest.approx(PHI(0.1))
    assert criteria.doubt(posterior(1.0, a=-0.1, b=1e-9)) < 0.5


def test_doubt_vanishes_beside_a_stored_point():
    assert criteria.doubt(posterior(0.0, a=1.0, b=0.0)) == 0.0


def test_doubt_does_not_grow_with_the_number_of_classes():
    """A softmax over classes would ask for ever with six of them, and never with one."""
    six = posterior(0.04, **{f"c{i}": float(i == 0) for i in range(6)})
    assert criteria.doubt(six) == criteria.doubt(posterior(0.04, c0=1.0))
    assert criteria.doubt(six) == pytest.approx(PHI(-5.0))


@given(st.lists(means, min_size=2, max_size=4), st.floats(1e-6, 100.0))
def test_doubt_of_an_ensemble_is_that_any_score_is_negative_or_above_the_best(scores, variance):
    """Scores of one variance: the second is above the best with Φ((m₂ - m₁) / √(2 v))."""
    mean = {f"c{i}": score for i, score in enumerate(scores)}
    of_mixture = MixturePosterior(mean=mean, variance=variance, weights=(), components=())
    *_, second, best = sorted(scores)
    above = PHI((second - best) / math.sqrt(2.0 * variance))
    negative = criteria.doubt(posterior(variance, **mean))
    assert criteria.doubt(of_mixture) == pytest.approx(max(negative, above), abs=1e-12)


def test_knowing_nothing_is_all_doubt():
    assert criteria.doubt(posterior()) == criteria.doubt({}) == 1.0


@given(st.lists(shares, min_size=1, max_size=5))
def test_doubt_of_plain_probabilities_is_what_the_best_leaves(p):
    assert criteria.doubt(dict(enumerate(p))) == 1.0 - max(p)


def test_contradiction_compares_the_two_means():
    """ISGP Eq. 8 with means 0.9 and 0.4, standard deviation 0.5: Φ(1)."""
    belief = posterior(0.25, a=0.9, b=0.4)
    assert criteria.contradiction(belief, "b") == pytest.approx(PHI(1.0))


def test_contradiction_of_an_agreement_is_zero_where_the_formula_gives_one_half():
    belief = posterior(0.25, a=0.9, b=0.4)
    assert criteria.contradiction(belief, "a") == 0.0
    assert criteria.contradiction({"a": 0.9, "b": 0.1}, "a") == 0.0
    assert PHI(0.0) == 0.5


def test_a_class_never_seen_has_mean_zero():
    assert criteria.contradiction(posterior(0.25, a=0.5), "new") == pytest.approx(PHI(1.0))
    assert criteria.contradiction({"a": 0.7, "b": 0.3}, "new") == 0.7


def test_nothing_known_contradicts_nothing():
    assert criteria.contradiction(posterior(), "a") == criteria.contradiction({}, "a") == 0.0


@given(st.lists(means, min_size=1, max_size=5), st.integers(0, 6), st.floats(0.0, 2.0))
def test_contradiction_lies_between_one_half_and_one_or_is_zero(m, given_label, variance):
    belief = Posterior(mean=dict(enumerate(m)), variance=variance)
    value = criteria.contradiction(belief, given_label)
    best = m.index(max(m))
    if given_label == best:
        assert value == 0.0
    elif given_label < len(m):
        assert 0.5 <= value <= 1.0
    else:
        assert 0.0 <= value <= 1.0


def by_enumeration(prior, given, e):
    """P(truth != given | given): the annotator errs with rate e, evenly over the other classes."""
    c = len(prior)
    joint = {truth: p * ((1 - e) if truth == given else e / (c - 1)) for truth, p in prior.items()}
    return 1.0 - joint[given] / sum(joint.values())


@given(
    st.lists(st.floats(0.01, 1.0), min_size=2, max_size=6),
    st.integers(0, 5),
    st.floats(0.01, 0.99),
)
def test_the_probability_of_being_wrong_equals_bayes_by_enumeration(weights, i, e):
    assume(i < len(weights))
    p = {k: w / sum(weights) for k, w in enumerate(weights)}
    assert criteria.probability_wrong(p, i, e) == pytest.approx(by_enumeration(p, i, e), abs=1e-12)
    # Means that sum to one are the same belief, where nothing is left open.
    belief = Posterior(mean=p, variance=0.0)
    assert criteria.probability_wrong(belief, i, e) == pytest.approx(
        by_enumeration(p, i, e), abs=1e-12
    )


@given(st.floats(0.0, 0.5), st.floats(0.0, 0.4), st.floats(0.01, 0.99), st.booleans())
def test_what_the_means_leave_of_one_belongs_to_classes_never_seen(a, b, e, new):
    """Means a + b < 1: the enumeration has one more class with the rest."""
    belief = posterior(0.0, a=a, b=b, c=-0.5)
    given_label = "new" if new else "a"
    q = 1.0 - a - b if new else a
    c = 4 if new else 3
    prior = {"given": q, **dict.fromkeys(range(c - 1), (1 - q) / (c - 1))}
    found = criteria.probability_wrong(belief, given_label, e)
    assert found == pytest.approx(by_enumeration(prior, "given", e), abs=1e-12)


def test_positive_parts_beyond_one_are_divided_by_their_sum():
    belief = posterior(0.0, a=1.2, b=0.3, c=-1.0)
    prior = {"a": 0.8, "b": 0.2, "c": 0.0}
    for y in "ab":
        found = criteria.probability_wrong(belief, y, 0.2)
        assert found == pytest.approx(by_enumeration(prior, y, 0.2))
    # Nothing is left for a new class then.
    assert criteria.probability_wrong(belief, "new", 0.2) == 1.0


def test_a_new_class_far_from_everything_known_is_not_suspicious():
    """Although its mean is 0: all means are, there."""
    belief = posterior(1.0, a=0.01, b=0.0)
    assert criteria.probability_wrong(belief, "new", 0.2) < 0.01


@given(
    st.dictionaries(st.integers(0, 4), means, min_size=1, max_size=5),
    st.floats(0.01, 0.99),
    st.floats(0.1, 10.0),
)
def test_where_nothing_is_known_a_label_is_as_wrong_as_its_annotator(m, e, prior):
    belief = Posterior(mean=m, variance=prior, prior_variance=prior)
    # By hand: q = 1/C, so (1 - 1/C) e / (C - 1) = e / C against (1 - e) / C.
    for y in m:
        assert criteria.probability_wrong(belief, y, e) == pytest.approx(e)


@given(
    st.dictionaries(st.integers(0, 4), means, min_size=1, max_size=5),
    st.integers(0, 5),
    st.floats(0.01, 0.99),
    st.floats(0.0, 1.0),
    st.floats(0.1, 10.0),
)
def test_a_posterior_is_believed_as_far_as_it_knows_something(m, y, e, v, prior):
    """`q` by hand, for Bayes by enumeration; and only its share of the prior variance counts."""
    positive = sum(max(mean, 0.0) for mean in m.values())
    share = max(m.get(y, 1.0 - positive), 0.0) / max(1.0, positive)
    c = max(2, len({*m, y}))
    q = (1.0 - v) * share + v / c
    if y not in m:
        q = max(q, share)
    assume(0.0 < q < 1.0)
    joint = {"given": q, **dict.fromkeys(range(c - 1), (1 - q) / (c - 1))}
    belief = Posterior(mean=m, variance=v * prior, prior_variance=prior)
    found = criteria.probability_wrong(belief, y, e)
    assert found == pytest.approx(by_enumeration(joint, "given", e), abs=1e-9)


def test_a_label_of_negative_mean_is_not_wrong_for_certain_while_anything_is_open():
    """By hand: q = .1 / 2, e = .01, so .0095 against .0495."""
    belief = posterior(0.1, a=0.9, b=-0.2)
    assert criteria.probability_wrong(belief, "b", 0.01) == pytest.approx(0.0095 / 0.059)
    assert criteria.probability_wrong(posterior(0.0, a=0.9, b=-0.2), "b", 0.01) == 1.0


def test_a_posterior_without_prior_variance_is_believed():
    belief = Posterior(mean={"a": 0.5, "b": 0.5}, variance=0.0, prior_variance=0.0)
    assert criteria.probability_wrong(belief, "a", 0.2) == pytest.approx(0.2)


def test_a_new_class_is_never_suspicious_to_plain_probabilities():
    assert criteria.probability_wrong({"a": 1.0}, "new", 0.2) == 0.0


def test_the_very_first_label_is_not_suspicious():
    assert criteria.probability_wrong(posterior(), "a", 0.2) == 0.0
    assert criteria.probability_wrong({}, "a", 0.2) == 0.0


def test_how_new_labels_come_by_hand():
    # One class heard ten times: Laplace's 1/12; an error names the one that is unheard.
    assert criteria.new_label_rates({"a": 10}) == (1 / 12, 1.0)
    # Three of four were heard once: Chao estimates three more, beside the one that has come.
    assert criteria.new_label_rates({"a": 7, "b": 1, "c": 1, "d": 1}) == (4 / 12, 4 / 7)
    assert criteria.new_label_rates({"a": 7, "b": 2, "c": 1}) == (2 / 12, 1 / 3)


heard_counts = st.dictionaries(st.integers(0, 4), st.integers(1, 50), min_size=1, max_size=5)


@given(heard_counts, st.floats(0.01, 0.99), st.floats(0.0, 0.9), st.floats(0.0, 1.0))
def test_a_new_label_is_weighed_by_how_seldom_it_comes_and_where(heard, e, mean, v):
    """Bayes by enumeration: right and new, or wrong and new; no more, and no other label."""
    belief = Posterior(mean={0: mean}, variance=v, prior_variance=1.0)
    g, w = criteria.new_label_rates(heard)
    assert 0.0 < g < 1.0
    assert 0.0 < w <= 1.0
    right, wrong = (1 - e) * g * (1 - (1 - v) * mean), e * w
    found = criteria.probability_wrong(belief, "new", e, heard=heard)
    assert found == pytest.approx(wrong / (right + wrong))
    known = criteria.probability_wrong(belief, 0, e, heard=heard)
    assert known == criteria.probability_wrong(belief, 0, e)
    plain = criteria.probability_wrong({0: 1.0}, "new", e, heard=heard)
    assert plain == pytest.approx(wrong / ((1 - e) * g + wrong))
    assert criteria.probability_wrong(belief, "new", e, heard={}) == pytest.approx(
        criteria.probability_wrong(belief, "new", e)
    )


@pytest.mark.parametrize(("n_classes", "n"), [(4, 6), (8, 8), (20, 20)])
def test_of_labels_drawn_evenly_the_estimates_are_right_on_average(n_classes, n):
    """Good and Turing's rate of new labels, and Chao's share of unheard ones."""
    rng = random.Random(1)
    true, told = [], []
    for _ in range(2000):
        drawn = [rng.randrange(n_classes) for _ in range(n)]
        n_unheard = n_classes - len(set(drawn))
        if n_unheard:  # else no new one can come
            true.append((n_unheard / n_classes, n_unheard / (n_classes - 1)))
            told.append(criteria.new_label_rates(Counter(drawn)))
    for i in range(2):
        assert abs(fmean(one[i] for one in true) - fmean(one[i] for one in told)) < 0.08


def test_one_known_class_counts_as_two():
    """q = .5, e = .2, C = 2 by hand: .5 .2 / (.5 .8 + .5 .2)."""
    assert criteria.probability_wrong(posterior(1.0, a=0.5), "a", 0.2) == pytest.approx(0.2)


def test_an_impossible_label_is_wrong_for_certain():
    assert criteria.probability_wrong({"a": 1.0, "b": 0.0}, "b", 1e-9) == 1.0


@given(
    st.dictionaries(st.integers(0, 4), means, max_size=5), st.integers(0, 5), st.floats(1e-9, 0.999)
)
def test_the_probability_of_being_wrong_is_one(m, y, e):
    value = criteria.probability_wrong(Posterior(mean=m, variance=0.1), y, e)
    assert 0.0 <= value <= 1.0


@given(st.floats(0.01, 0.98), st.floats(0.01, 0.98), st.floats(0.01, 0.5))
def test_a_less_reliable_annotator_is_more_often_wrong(q, e, more):
    p = {"a": q, "b": 1 - q}
    less, greater = (criteria.probability_wrong(p, "a", r) for r in (e, min(e + more, 0.99)))
    assert less <= greater + 1e-12


@pytest.mark.parametrize("n", [1, 2, 10])
def test_the_entropy_of_equal_probabilities_is_the_logarithm_of_their_number(n):
    p = dict.fromkeys(range(n), 1 / n)
    assert criteria.entropy(p) == pytest.approx(math.log(n))


def test_impossible_classes_add_no_entropy():
    assert criteria.entropy({"a": 1.0, "b": 0.0}) == 0.0


def test_best_versus_second_by_hand():
    assert criteria.best_versus_second({"a": 0.2, "b": 0.5, "c": 0.3}) == pytest.approx(0.6)
    assert criteria.best_versus_second({"a": 0.5, "b": 0.5}) == 1.0
    assert criteria.best_versus_second({"a": 1.0, "b": 0.0}) == 0.0
    assert criteria.best_versus_second({"a": 1.0}) == 0.0


def test_classes_without_any_probability_are_a_tie():
    assert criteria.best_versus_second({"a": 0.0, "b": 0.0}) == 1.0


def test_least_confidence_is_what_the_best_leaves():
    assert criteria.least_confidence({"a": 0.75, "b": 0.25}) == 0.25


def test_probabilities_of_any_belief():
    assert criteria.probabilities(posterior(a=3.0, b=1.0)) == {"a": 0.75, "b": 0.25}
    p = {"a": 1.0}
    assert criteria.probabilities(p) is p


@pytest.mark.parametrize("belief", [posterior(0.3, a=0.6, b=0.3), {"a": 0.7, "b": 0.2}])
def test_shares_are_those_of_the_labels_asked_for(belief):
    found = criteria.shares(belief, ["b", "a", "c"])
    if isinstance(belief, Posterior):
        assert found == pytest.approx([0.7 * 0.3 + 0.1, 0.7 * 0.6 + 0.1, 0.1])
    else:
        assert found == [0.2, 0.7, 0.0]


def test_one_class_is_as_probably_right_as_its_score_is_positive():
    for mean in (0.5, -0.5):
        belief = posterior(variance=0.5, a=mean)
        expected = 0.5 * PHI(mean / math.sqrt(2 * 0.5)) + 0.5 / 2
        assert criteria.probability_right(belief) == pytest.approx(expected)


@given(st.lists(means, min_size=2, max_size=6), st.floats(1e-3, 1.0))
def test_the_prediction_is_probably_right_as_far_as_it_is_ahead_of_the_next(values, variance):
    belief = Posterior(mean=dict(enumerate(values)), variance=variance)
    *_, second, first = sorted(values)
    ahead = PHI((first - second) / math.sqrt(2 * variance))
    expected = (1.0 - variance) * ahead + variance / len(values)
    assert criteria.probability_right(belief) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("belief", [{}, Posterior(mean={}, variance=1.0)])
def test_no_prediction_is_never_right(belief):
    assert criteria.probability_right(belief) == 0.0
