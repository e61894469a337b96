import math
import statistics

import pytest

from streamgp import SimulatedMeasurer
from tests.helpers.messages import challenge, label_request


def asked(n, **changes):
    return label_request(str(n), **changes)


def contested(n, given):
    return challenge(str(n), given=given, suggested=0.0)


def answers(annotator, n=4000):
    annotator.see(-1.0)
    annotator.see(1.0)
    return [annotator.answer(asked(i), 50.0, 0.0).y for i in range(n)]


def test_the_noise_is_normal_around_the_truth():
    found = answers(SimulatedMeasurer(noise=2.0, seed=1))
    assert statistics.mean(found) == pytest.approx(50.0, abs=0.15)
    assert statistics.stdev(found) == pytest.approx(2.0, rel=0.05)
    inside = sum(abs(y - 50.0) < 2.0 for y in found) / len(found)
    assert inside == pytest.approx(0.6827, abs=0.02)


def test_wrong_answers_are_far_off_on_either_side():
    found = answers(SimulatedMeasurer(error_rate=0.25, outlier=5.0, seed=2))
    assert {round(y) for y in found} == {45, 50, 55}
    assert sum(y != 50.0 for y in found) / len(found) == pytest.approx(0.25, abs=0.03)


def test_without_noise_and_errors_the_answer_is_the_truth():
    assert set(answers(SimulatedMeasurer(seed=1), n=20)) == {50.0}


def test_how_exact_the_answers_are_is_said_where_wanted():
    annotator = SimulatedMeasurer(noise=0.5, states_noise=True, seed=1)
    assert annotator.answer(asked(1), 3.0, 0.0).std == 0.5
    assert annotator.answer(asked(1), None, 0.0).std is None
    assert SimulatedMeasurer(noise=0.5, seed=1).answer(asked(1), 3.0, 0.0).std is None


def test_a_challenged_number_is_repeated_if_it_was_measured_and_measured_otherwise():
    annotator = SimulatedMeasurer(noise=0.5, seed=1)
    assert annotator.answer(contested(1, 51.9), 50.0, 0.0).y == 51.9
    second = annotator.answer(contested(1, 80.0), 50.0, 0.0).y
    assert second != 80.0
    assert abs(second - 50.0) < 3.0
    stubborn = SimulatedMeasurer(noise=0.5, stubborn=True, seed=1)
    assert stubborn.answer(contested(1, 80.0), 50.0, 0.0).y == 80.0


@pytest.mark.parametrize("truth", [None, "hall"])
def test_what_is_no_number_cannot_be_measured(truth):
    answer = SimulatedMeasurer(noise=0.5, seed=1).answer(asked(1), truth, 0.0)
    assert answer.declined


def test_the_same_question_has_the_same_answer_after_a_restart():
    annotator = SimulatedMeasurer(error_rate=0.5, noise=0.5, seed=None)
    first = answers(annotator, n=20)
    again = SimulatedMeasurer(error_rate=0.5, noise=0.5)
    again.load_state(annotator.state())
    assert [again.answer(asked(i), 50.0, 0.0).y for i in range(20)] == first


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"noise": -1.0}, "noise must be non-negative and finite"),
        ({"noise": math.inf}, "noise must be non-negative and finite"),
        ({"outlier": math.nan}, "outlier must be non-negative and finite"),
        ({"states_noise": True}, "states_noise needs a noise above 0"),
        ({"error_rate": 2.0}, "error_rate must be between 0 and 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(arguments, match):
    with pytest.raises(ValueError, match=match):
        SimulatedMeasurer(**arguments)
