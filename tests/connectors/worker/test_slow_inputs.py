"""An input over which the learner or a rule does not come to an end is named in the log."""

from __future__ import annotations

import logging
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from connectors.worker import logging as worker_logging
from connectors.worker.batch import Batch
from tests.helpers.small_deployment import Small


def test_an_input_that_takes_too_long_is_named_once_and_others_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="streamgp.worker")
    monkeypatch.setattr(worker_logging, "STALL_S", 0.2)
    monkeypatch.setattr(worker_logging, "_LOOK_EVERY_S", 0.02)
    small = Small(tmp_path, monkeypatch, n_partitions=1)
    small.put(*[small.event(f"e{i}") for i in range(3)])
    take, end = Batch.take, monotonic() + 60.0

    def said() -> list[dict[str, Any]]:
        return [
            record.__dict__["fields"] for record in caplog.records if record.message == "slow-input"
        ]

    def slow(self: Batch, record: Any, content: Any) -> None:
        while record.offset == 1 and not said() and monotonic() < end:
            sleep(0.02)
        take(self, record, content)

    monkeypatch.setattr(Batch, "take", slow)
    small.work()
    [line] = said()
    assert (line["topic"], line["partition"], line["offset"]) == ("events", 0, 1)
    assert "all inputs of this worker wait" in line["consequence"]
