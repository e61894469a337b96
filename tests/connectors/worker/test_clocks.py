"""A broker whose clock is ahead of the worker's is reported, as answers take their time from it."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest

from connectors.worker.settings import WorkerSettings
from connectors.worker.worker import Worker
from streamgp.apps.deployment.deployment import build_loops
from streamgp.config.load import parse_worker
from tests.helpers.small_deployment import TEXT, Small


@pytest.mark.parametrize(("behind_s", "n_said"), [(86_400.0, 1), (30.0, 0), (-86_400.0, 0)])
def test_an_answer_dated_ahead_is_reported_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    behind_s: float,
    n_said: int,
) -> None:
    caplog.set_level(logging.INFO, logger="streamgp.worker")
    small = Small(tmp_path, monkeypatch, n_partitions=1)
    small.put(*[small.event(f"e{i}") for i in range(2)])
    loops = build_loops(parse_worker(TEXT, source="test"), source="test")
    topics = small.topics

    def work() -> None:
        worker = Worker(topics, loops, WorkerSettings(), clock=lambda: time.time() - behind_s)
        worker.run(lambda: not any(topics.lags("streamgp").values()))

    work()
    for request in small.said("requests"):
        small.answer(request, "hall")  # type: ignore[arg-type]
    work()
    said = [
        record.__dict__["fields"] for record in caplog.records if record.message == "clock-differs"
    ]
    assert len(said) == n_said
    for line in said:
        assert line["topic"] == "answers"
        assert line["ahead_s"] == pytest.approx(behind_s, abs=60.0)
