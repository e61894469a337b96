import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.common.recalibration import CalibrationSlope, LogisticCalibration

PROBABILITIES = st.floats(0.0, 1.0)


def logit(p):
    return math.log(p / (1.0 - p))


def test_an_outcome_is_one_newton_step():
    slope, u = CalibrationSlope(0.1), logit(0.4) - logit(0.1)
    slope.note(0.4, True)
    expected = 1.0 + 0.6 * u / (4.0 + 0.24 * u * u)
    assert slope.state() == [pytest.approx(expected), pytest.approx(4.0 + 0.24 * u * u)]
    assert logit(slope.corrected(0.3)) == pytest.approx(
        logit(0.1) + expected * (logit(0.3) - logit(0.1))
    )


@given(
    PROBABILITIES,
    st.lists(st.tuples(PROBABILITIES, st.booleans()), max_size=20),
    PROBABILITIES,
    PROBABILITIES,
)
def test_the_order_and_what_is_above_the_threshold_stay(threshold, outcomes, p, q):
    slope, restored = CalibrationSlope(threshold), CalibrationSlope(threshold)
    for one, came_true in outcomes:
        slope.note(one, came_true)
    p, q = sorted((p, q))
    assert p <= slope.corrected(p) <= slope.corrected(q) <= 1.0
    assert (slope.corrected(p) > threshold) == (p > threshold)
    restored.load_state(json.loads(json.dumps(slope.state())))
    assert restored.corrected(p) == slope.corrected(p)


def test_what_comes_true_more_often_than_stated_is_found():
    rng, slope = np.random.default_rng(1), CalibrationSlope(0.1)
    for stated in rng.uniform(0.15, 0.6, size=2000):
        true = 1.0 / (1.0 + math.exp(-logit(0.1) - 1.8 * (logit(stated) - logit(0.1))))
        slope.note(stated, rng.random() < true)
    assert slope.state()[0] == pytest.approx(1.8, abs=0.1)


def test_those_who_insist_make_nothing_more_credible():
    slope = CalibrationSlope(0.1)
    for _ in range(50):
        slope.note(0.6, False)
    assert slope.corrected(0.6) == 0.6


# --- the calibration of a drift test

OUTCOMES = st.lists(st.tuples(PROBABILITIES, st.booleans()), max_size=40)


def calibrated(outcomes):
    calibration = LogisticCalibration()
    for p, came_true in outcomes:
        calibration.note(p, came_true)
    return calibration


def test_intercept_and_slope_move_by_one_newton_step():
    x = logit(0.2)
    u = np.array([1.0, x])
    precision = np.diag([1.0, 4.0]) + 0.16 * np.outer(u, u)
    a, b = np.array([0.0, 1.0]) + np.linalg.solve(precision, 0.8 * u)
    state = [a, b, precision[0, 0], precision[0, 1], precision[1, 1]]
    calibration = calibrated([(0.2, True)])
    assert calibration.state() == pytest.approx(state)
    assert logit(calibration.corrected(0.2)) == pytest.approx(a + b * x)


def test_what_is_less_probable_than_stated_is_taken_two_standard_deviations_above_the_mean():
    x = logit(0.4)
    u = np.array([1.0, x])
    precision = np.diag([1.0, 4.0]) + 0.24 * np.outer(u, u)
    mean = x - 0.4 * u @ np.linalg.solve(precision, u)
    std = math.sqrt(u @ np.linalg.solve(precision, u))
    assert mean < x < mean + 2.0 * std
    assert calibrated([(0.4, False)]).corrected(0.4) == 0.4  # not certain yet
    calibration = calibrated([(0.4, False)] * 20)
    a, b, *precision = calibration.state()
    covariance = np.linalg.inv(np.array(precision)[[[0, 1], [1, 2]]])
    expected = a + b * x + 2.0 * math.sqrt(u @ covariance @ u)
    assert logit(calibration.corrected(0.4)) == pytest.approx(expected)
    assert calibration.corrected(0.4) < 0.4


def test_nothing_is_corrected_before_the_first_outcome():
    assert [LogisticCalibration().corrected(p) for p in (0.01, 0.3, 0.99)] == [0.01, 0.3, 0.99]


@given(OUTCOMES, PROBABILITIES)
def test_a_restored_calibration_corrects_bitwise_the_same(outcomes, p):
    calibration, restored = calibrated(outcomes), LogisticCalibration()
    restored.load_state(json.loads(json.dumps(calibration.state())))
    assert restored.corrected(p) == calibration.corrected(p)
    assert 0.0 <= calibration.corrected(p) <= 1.0


@given(OUTCOMES)
def test_the_slope_is_never_negative(outcomes):
    assert calibrated(outcomes).state()[1] >= 0.0


def test_an_offset_without_a_slope_is_an_intercept():
    calibration = LogisticCalibration()
    calibration.load_state([0.7, 6.5])
    assert calibration.state() == [0.7, 1.0, 6.5, 0.0, 4.0]
    assert logit(calibration.corrected(0.3)) == pytest.approx(logit(0.3) + 0.7)


@pytest.mark.parametrize(("a", "b"), [(-0.8, 1.0), (0.5, 1.0), (-0.4, 0.3)])
def test_how_often_it_comes_true_is_found(a, b):
    rng, calibration = np.random.default_rng(1), LogisticCalibration()
    for stated in rng.uniform(0.05, 0.6, size=4000):
        calibration.note(stated, rng.random() < 1.0 / (1.0 + math.exp(-a - b * logit(stated))))
    for stated in (0.1, 0.3, 0.5):
        true = 1.0 / (1.0 + math.exp(-a - b * logit(stated)))
        assert calibration.corrected(stated) == pytest.approx(true, abs=0.04)


# --- both


@pytest.mark.parametrize(
    ("calibration", "state"),
    [
        (CalibrationSlope(0.1), [1.0, "nan"]),
        (LogisticCalibration(), [0.0, 1.0, "inf", 0.0, 4.0]),
    ],
)
def test_a_state_that_is_not_finite_is_refused(calibration, state):
    with pytest.raises(ValueError, match=r"^the state of a calibration must be finite, got \["):
        calibration.load_state(state)
