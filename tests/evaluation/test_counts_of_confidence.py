"""What class probabilities were worth, counted over a run."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.base import Decision
from streamgp.evaluation.counts import N_BINS, N_STEPS, Calibration
from streamgp.interactive import Event, Prediction, RunStatistics
from streamgp.metrics import (
    Brier,
    CalibrationError,
    Overconfidence,
    RightWrongAUC,
    Underconfidence,
)

LABELS = ("hall", "den", "attic")
forecasts = st.lists(
    st.tuples(
        st.sampled_from(LABELS),
        st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3).map(
            lambda q: {label: v / sum(q) for label, v in zip(LABELS, q, strict=True)}
        ),
    ),
    max_size=15,
)


def counted(pairs):
    calibration = Calibration()
    for truth, p in pairs:
        calibration.count(truth, p)
    return calibration


@given(forecasts)
def test_its_numbers_are_those_of_the_metrics(pairs):
    calibration = counted(pairs)
    metrics = {
        "overconfidence": Overconfidence(),
        "underconfidence": Underconfidence(),
        "calibration_error": CalibrationError(N_BINS),
        "brier": Brier(),
    }
    for truth, p in pairs:
        for metric in metrics.values():
            metric.update(truth, p)
    for name, metric in metrics.items():
        found = getattr(calibration, name)
        assert (0.0 if found is None else found) == pytest.approx(metric.get(), abs=1e-9)


def test_the_area_is_that_of_the_metric_up_to_ties():
    pairs = [(LABELS[n % 2], {"hall": 0.5 + n / 400, "den": 0.5 - n / 400}) for n in range(190)]
    metric = RightWrongAUC()
    for truth, p in pairs:
        metric.update(truth, p)
    assert counted(pairs).auc == pytest.approx(metric.get(), abs=0.01)


@given(forecasts)
def test_every_prediction_stands_once_in_each_diagram(pairs):
    summary = counted(pairs).summary()
    right, wrong = summary["confidence"]["right"], summary["confidence"]["wrong"]
    assert len(right) == len(wrong) == N_STEPS
    assert sum(right) + sum(wrong) == sum(summary["reliability"]["n"]) == summary["n"] == len(pairs)
    n_right = sum(max(p, key=p.get) == truth for truth, p in pairs)
    assert sum(right) == n_right
    json.dumps(summary, allow_nan=False)


@given(forecasts, forecasts)
def test_a_part_that_is_taken_out_leaves_the_rest(first, second):
    calibration, rest = counted(first + second), counted(first)
    calibration.remove(counted(second))
    found, expected = calibration.summary(), rest.summary()
    assert found["confidence"] == expected["confidence"]
    assert calibration.auc == rest.auc
    for name in ("overconfidence", "underconfidence", "calibration_error", "brier"):
        if expected[name] is None:
            assert found[name] is None
        else:
            assert found[name] == pytest.approx(expected[name], abs=1e-9)


@given(forecasts, forecasts)
def test_it_survives_a_restart_as_text(before, after):
    calibration, again = counted(before), Calibration()
    again.load_state(json.loads(json.dumps(calibration.state())))
    for truth, p in after:
        calibration.count(truth, p)
        again.count(truth, p)
    assert again.summary() == calibration.summary()


def test_a_tally_counts_predictions_with_a_truth_and_takes_over_states_from_before():
    statistics, old = RunStatistics(), RunStatistics()
    for n, (truth, p) in enumerate([("hall", {"hall": 0.8, "den": 0.2}), (None, {"hall": 1.0})]):
        statistics.event(Event(event_id=str(n), x={}, occurred_at=n, truth=truth))
        decision = Decision.of(0.0, 1.0, "NeverAsk")
        statistics.message(
            Prediction(event_id=str(n), y="hall", proba=p, decision=decision, n_learned=1, at=n)
        )
    assert statistics.calibration.n == 1
    assert statistics.calibration.underconfidence == 0.25
    old.load_state({k: v for k, v in statistics.state().items() if k != "calibration"})
    assert (old.n_scored, old.calibration.n) == (1, 0)
    part = RunStatistics()
    part.load_state(statistics.state())
    statistics.remove(part)
    assert statistics.calibration.n == 0
