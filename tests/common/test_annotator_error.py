import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.common.annotator_error import ErrorRate


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


def test_a_copy_goes_on_alike():
    rate = ErrorRate()
    rate.note(0.3)
    twin = pickle.loads(pickle.dumps(rate))
    rate.note(1.0)
    twin.note(1.0)
    assert twin.estimate == rate.estimate == pytest.approx(2.3 / 7)
