import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy as scipy_entropy

from streamgp.common.uncertainty import (
    UNCERTAINTIES,
    best_versus_second,
    entropy,
    normalised_entropy,
    uncertainty,
)

NUMBERS = st.lists(st.floats(0.0, 1.0), min_size=2, max_size=6).filter(lambda q: sum(q) > 1e-3)


def shares(numbers):
    return {n: q / sum(numbers) for n, q in enumerate(numbers)}


def test_values_by_hand():
    assert best_versus_second({"a": 0.6, "b": 0.3, "c": 0.1}) == 0.5
    assert normalised_entropy({"a": 0.5, "b": 0.5}) == 1.0
    assert normalised_entropy({"a": 0.5, "b": 0.5, "c": 0.0, "d": 0.0}) == 0.5
    assert entropy({"a": 0.25, "b": 0.75}) == pytest.approx(
        0.25 * math.log(4) + 0.75 * math.log(4 / 3)
    )


@given(NUMBERS)
def test_normalised_entropy_is_scipys_to_the_base_of_the_classes(numbers):
    p = shares(numbers)
    expected = scipy_entropy(list(p.values()), base=len(p))
    assert normalised_entropy(p) == pytest.approx(expected, abs=1e-12)


@given(NUMBERS)
def test_best_versus_second_is_a_ratio_of_the_two_most_frequent(numbers):
    p = shares(numbers)
    (_, best), (_, second) = Counter(p).most_common(2)
    assert best_versus_second(p) == second / best


@pytest.mark.parametrize("h", UNCERTAINTIES.values(), ids=UNCERTAINTIES)
@given(st.lists(st.floats(-1.0, 2.0), max_size=5))
def test_whatever_the_numbers_are_uncertainty_is_between_0_and_1(h, numbers):
    assert 0.0 <= h(dict(enumerate(numbers))) <= 1.0


@pytest.mark.parametrize("h", UNCERTAINTIES.values(), ids=UNCERTAINTIES)
def test_a_certain_prediction_is_0_and_a_tie_of_all_is_1(h):
    assert h({"a": 1.0, "b": 0.0, "c": 0.0}) == 0.0
    assert h({"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}) == pytest.approx(1.0)
    assert h({"a": 1.0}) == 0.0
    assert h({}) == 1.0


def test_an_unknown_name_is_refused():
    sentence = "uncertainty must be 'bvsb' or 'entropy', got 'margin'"
    with pytest.raises(ValueError, match=sentence):
        uncertainty("margin")
