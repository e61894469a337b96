"""The benchmark of the expert that believes labels alone."""

from functools import partial
from itertools import groupby

import numpy as np
import pytest

from benchmarks.comparison import persistence
from streamgp.query.temporal import EXPERTS
from tests.helpers.benchmark_runs import document

SMALL = persistence.Plan(n_events=150, n_seeds=2)


def test_each_stream_is_played_with_and_without_the_expert(tmp_path):
    result, _ = document(
        tmp_path, "persistence", partial(persistence.measure, plan=SMALL), "--quick"
    )
    assert [row["stream"] for row in result["rows"]] == list(persistence.STREAMS)
    for row in result["rows"]:
        assert row["gain"] == pytest.approx(row["thirteen"] - row["twelve"])
        assert min(row["alone"], row["repeated"]) > 0.0
        assert row["labels"] == pytest.approx(150 / 14, abs=8)


def test_one_expert_alone_looks_at_no_reading():
    assert [expert for expert in EXPERTS if expert[1] == persistence._LABELS_ALONE] == [EXPERTS[-1]]


def test_classes_last_as_long_as_they_should_and_come_again():
    events = persistence.Regimes(length=20, spread=1.0, n_classes=3).events(90, seed=1)
    lasts = [(y, len(list(run))) for y, run in groupby(y for _, y in events)]
    assert lasts == [(0, 20), (1, 20), (2, 20), (0, 20), (1, 10)]


def test_readings_that_wander_are_alike_one_after_the_other():
    def alike(wander):
        stream = persistence.Regimes(length=3000, spread=1.0, wander=wander)
        readings = np.array([x["s0"] for x, _ in stream.events(3000, seed=1)])
        return float(np.corrcoef(readings[1:], readings[:-1])[0, 1])

    # Half of the variance is an error with the autocorrelation .98.
    assert alike(0.0) == pytest.approx(0.0, abs=0.1)
    assert alike(1.0) == pytest.approx(0.49, abs=0.15)
