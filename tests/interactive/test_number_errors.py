import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.interactive.number_errors import NumberErrors, Tolerances, is_off

numbers = st.floats(-1e3, 1e3)
pairs = st.lists(st.tuples(numbers, numbers), max_size=20)


def counted(found):
    errors = NumberErrors()
    for truth, guess in found:
        errors.count(truth, guess)
    return errors


@given(pairs)
def test_the_errors_are_those_of_numpy(found):
    errors = counted(found)
    assert errors.n == len(found)
    if not found:
        assert errors.mae is errors.nmse is None
        return
    truths, guesses = np.array(found).T
    assert errors.mae == pytest.approx(np.abs(truths - guesses).mean())
    if truths.std() > 1e-6:
        assert errors.nmse == pytest.approx(((truths - guesses) ** 2).mean() / truths.var())


@given(pairs, pairs)
def test_a_part_that_is_taken_out_leaves_the_rest(first, second):
    errors, part, rest = counted(first + second), counted(second), counted(first)
    errors.remove(part)
    assert errors.n == rest.n
    if rest.n:
        assert errors.mae == pytest.approx(rest.mae, abs=1e-6)
        assert errors._truths.m2 == pytest.approx(rest._truths.m2, abs=1e-3)


@given(pairs, pairs)
def test_the_errors_survive_a_restart(before, after):
    errors, again = counted(before), NumberErrors()
    again.load_state(errors.state())
    for truth, guess in after:
        errors.count(truth, guess)
        again.count(truth, guess)
    assert again.state() == errors.state()


def test_what_is_no_number_is_not_scored():
    errors = counted([("hall", 1.0), (1.0, "hall")])
    assert errors.n == 0


def test_a_number_counts_as_right_within_a_standard_deviation_of_the_truths():
    tolerances = Tolerances()
    found = [tolerances.next(truth) for truth in (10.0, 10.0, 14.0, "many")]
    assert found == pytest.approx([0.0, 0.0, np.std([10.0, 10.0, 14.0]), 0.0])


@pytest.mark.parametrize(
    ("y", "off"), [(10.0, False), (12.0, False), (12.1, True), (8, False), ("ten", True)]
)
def test_off_is_further_away_than_the_tolerance(y, off):
    assert is_off(y, 10.0, 2.0) is off
