"""Pauses of predictions while workers come and go."""

import pytest

from benchmarks._harness import Options
from benchmarks.performance import takeovers


@pytest.mark.nightly  # by day tests/apps/worker/test_run_kafka.py has workers that come and go
def test_own_partitions_pause_until_the_other_worker_has_them(kafka, monkeypatch):
    monkeypatch.setenv("STREAMGP_TEST_KAFKA", kafka)
    plans = {True: (takeovers.STOPPED, takeovers.STARTED)}
    outcome = takeovers.measure(Options(quick=True), plans=plans)
    assert tuple(row["what"] for row in outcome.rows) == plans[True]
    assert all(0.0 < row["own s"] < 60.0 and 0.0 < row["others s"] < 60.0 for row in outcome.rows)
    assert [accepted.limit for accepted in outcome.acceptance] == [2.0, 1.0]
