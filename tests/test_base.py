import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.base import Decision, Neighbour, Posterior, check_kind, positive_parts

finite = st.floats(allow_nan=False, allow_infinity=False)
small = st.floats(min_value=-1e9, max_value=1e9)


def test_probabilities_are_positive_parts_over_their_sum():
    belief = Posterior(mean={"a": 0.3, "b": 0.1, "c": -5.0}, variance=0.5)
    assert belief.probabilities() == pytest.approx({"a": 0.75, "b": 0.25, "c": 0.0})


@pytest.mark.parametrize("means", [[0.0, 0.0], [-1.0, -2.0], [-1e-320, 0.0]])
def test_without_a_positive_mean_all_classes_are_equally_likely(means):
    assert positive_parts("ab", means) == {"a": 0.5, "b": 0.5}


def test_no_class_has_no_probabilities():
    assert positive_parts([], []) == {}
    assert Posterior(mean={}, variance=1.0).probabilities() == {}


@given(st.lists(small, min_size=1, max_size=20))
def test_probabilities_sum_to_one_and_name_every_class(means):
    p = positive_parts(range(len(means)), means)
    assert p.keys() == set(range(len(means)))
    assert all(0.0 <= q <= 1.0 for q in p.values())
    assert math.isclose(sum(p.values()), 1.0, abs_tol=1e-9)


@given(st.lists(small, min_size=1, max_size=20))
def test_a_larger_mean_never_has_a_smaller_probability(means):
    p = positive_parts(range(len(means)), means)
    order = sorted(range(len(means)), key=means.__getitem__)
    assert all(p[i] <= p[j] for i, j in itertools.pairwise(order))


@given(st.lists(small.map(lambda m: round(m, 3)), min_size=1, max_size=20))
def test_the_first_most_probable_class_is_the_first_of_largest_mean(means):
    """Also where no mean is positive and all are equally probable."""
    p = positive_parts(range(len(means)), means)
    assert max(p, key=p.__getitem__) == means.index(max(means))


@given(finite, finite)
def test_a_decision_asks_when_the_score_exceeds_the_threshold(score, threshold):
    decision = Decision.of(score, threshold, "rule")
    assert decision.ask == bool(decision) == (score > threshold)
    assert decision.budget is None


def test_a_score_equal_to_the_threshold_does_not_ask():
    assert not Decision.of(0.5, 0.5, "rule").ask


def test_a_refused_decision_keeps_its_score_and_does_not_ask():
    decision = Decision.of(0.9, 0.1, "rule").refused_by("AtMost")
    assert decision == Decision(
        ask=False, score=0.9, threshold=0.1, criterion="rule", budget="AtMost"
    )


@pytest.mark.parametrize(
    ("ask", "score", "budget"), [(True, 0.0, None), (False, 1.0, None), (True, 1.0, "AtMost")]
)
def test_a_decision_that_contradicts_itself_cannot_be_made(ask, score, budget):
    with pytest.raises(ValueError, match=r"ask must equal score > threshold and budget is None"):
        Decision(ask=ask, score=score, threshold=0.5, criterion="rule", budget=budget)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["score", "threshold"])
def test_a_decision_must_be_finite(name, value):
    values = {"score": 0.0, "threshold": 0.0, name: value}
    with pytest.raises(ValueError, match="score and threshold must be finite, got"):
        Decision.of(**values, criterion="rule")


def test_a_decision_of_numpy_numbers_holds_plain_ones():
    decision = Decision.of(np.float64(0.9), np.float32(0.5), "rule")
    assert type(decision.ask) is bool
    assert type(decision.score) is float
    assert type(decision.threshold) is float


def test_what_travels_is_frozen():
    neighbour = Neighbour(event_id="e", x={"a": 1.0}, y="b", distance=0.0)
    with pytest.raises(AttributeError, match="immutable"):
        neighbour.y = "c"
    with pytest.raises(AttributeError, match="immutable"):
        Decision.of(1.0, 0.0, "rule").ask = False


@pytest.mark.parametrize("known", [True, 1, 1.0])
@pytest.mark.parametrize("y", [True, 1, 1.0, np.bool_(True), np.int64(1), np.float32(1.0)])
def test_only_labels_of_one_type_may_be_equal(y, known):
    plain = y.item() if isinstance(y, np.generic) else y
    if type(plain) is type(known):
        check_kind(y, known)
        check_kind(known, y)
        return
    with pytest.raises(ValueError, match="equal labels must be of one type, got "):
        check_kind(y, known)
