import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.common.annotator_error import ErrorRate, Reliability, combined


def test_before_anything_is_known_one_answer_in_five_is_wrong():
    assert ErrorRate().estimate == 0.2


@given(st.lists(st.floats(0.0, 1.0), max_size=50))
def test_the_estimate_is_the_sum_plus_one_over_the_number_plus_five(weights):
    rate = ErrorRate()
    for w in weights:
        rate.note(w)
    assert rate.estimate == pytest.approx((1 + sum(weights)) / (5 + len(weights)))
    assert 0.0 < rate.estimate < 1.0
    assert rate.n == len(weights)


@pytest.mark.parametrize("w", [0.0, 1.0])
def test_the_estimate_never_reaches_certainty(w):
    """With 0 or 1 the probability of being wrong could become 0 / 0."""
    rate = ErrorRate()
    for _ in range(100_000):
        rate.note(w)
    assert 0.0 < rate.estimate < 1.0
    assert abs(rate.estimate - w) < 1e-4


@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)), max_size=9))
def test_a_corrected_answer_counts_as_if_noted_so(pairs):
    rate, expected = ErrorRate(), ErrorRate()
    for before, now in pairs:
        rate.note(before)
        expected.note(now)
    for before, now in pairs:
        rate.correct(before, now)
    assert (rate.n, rate.sum) == (expected.n, pytest.approx(expected.sum))


def test_rounding_leaves_no_negative_sum():
    rate = ErrorRate()
    for w in (0.1, 0.3, 0.9):
        rate.note(w)
    for w in (0.1, 0.3, 0.9):
        rate.correct(w, 0.0)
    assert rate.sum == 0.0


def test_a_copy_goes_on_alike():
    rate = ErrorRate()
    rate.note(0.3)
    twin = pickle.loads(pickle.dumps(rate))
    rate.note(1.0)
    twin.note(1.0)
    assert twin.estimate == rate.estimate == pytest.approx(2.3 / 7)


def test_estimates_of_several_learners_count_by_their_answers():
    one = {"ann": Reliability(error_rate=0.1, insistence=0.4, n_answers=3), None: Reliability()}
    other = {"ann": Reliability(error_rate=0.5, insistence=0.8, n_answers=1)}
    together = combined([one, {None: Reliability(error_rate=0.3, n_answers=2)}, other])
    assert list(together) == ["ann", None]
    ann = together["ann"]
    assert (ann.error_rate, ann.insistence) == pytest.approx((0.2, 0.5))
    assert (ann.n_answers, together[None].error_rate) == (4, 0.3)
