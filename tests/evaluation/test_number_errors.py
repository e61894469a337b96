import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.common.normal import Normal
from streamgp.evaluation.counts import NumberErrors, Tolerances, is_off
from streamgp.metrics import CRPS, NPLL, IntervalCoverage

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


stated = st.lists(st.tuples(numbers, numbers, st.floats(0.01, 100.0)), max_size=20)


def scored(found):
    errors = NumberErrors()
    for truth, guess, std in found:
        errors.count(truth, guess, std)
    return errors


@given(stated)
def test_scores_of_distributions_are_those_of_the_metrics(found):
    errors = scored(found)
    metrics = {"npll": NPLL(), "crps": CRPS(), "coverage": IntervalCoverage(0.9)}
    for truth, guess, std in found:
        for metric in metrics.values():
            metric.update(truth, Normal(mu=guess, sigma=std))
    expected = {name: metric.get() if found else None for name, metric in metrics.items()}
    assert errors.summary() == {"n": len(found), **expected}


@given(stated, stated)
def test_scores_of_a_part_are_taken_out_with_it(first, second):
    errors, part, rest = scored(first + second), scored(second), scored(first)
    errors.remove(part)
    assert (errors.n_with_std, errors.coverage) == (rest.n_with_std, rest.coverage)
    if first:
        assert errors.crps == pytest.approx(rest.crps, abs=1e-6)
        assert errors._log_densities == pytest.approx(rest._log_densities, rel=1e-9, abs=1e-5)


@given(stated)
def test_scores_survive_a_restart_and_a_state_from_before_there_were_any(found):
    errors, again, old = scored(found), NumberErrors(), NumberErrors()
    again.load_state(errors.state())
    assert again.summary() == errors.summary()
    old.load_state({k: v for k, v in errors.state().items() if k != "scores"})
    assert (old.n, old.n_with_std, old.npll) == (errors.n, 0, None)


def test_predictions_without_a_standard_deviation_are_not_scored():
    errors = NumberErrors()
    errors.count(1.0, 2.0)
    errors.count(1.0, 1.0, 0.0)
    assert errors.n == 2
    assert errors.summary() == {"n": 0, "npll": None, "crps": None, "coverage": None}
