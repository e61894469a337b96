"""Losses seen while workers run count only if they were not half of a batch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from connectors.topics import Record
from connectors.wire.codec import encode
from connectors.wire.state_records import CONFIGURATION, History, state
from streamgp.apps.deployment import contents
from streamgp.interactive.messages import LabelledExample


def history(sequence: int, *lines: int) -> History:
    """Return what is read when the state says one sequence, and the log holds some lines."""
    found = History()
    parts = [
        state("", CONFIGURATION, {"fingerprint": "x"}, partition=0),
        state("ann", "head", {"sequence": sequence, "learned": 0}, partition=0),
    ]
    for offset, out in enumerate(parts):
        found.take(
            Record(topic="state", partition=0, offset=offset, key=out.key, value=out.value, at=0.0)
        )
    for offset, n in enumerate(lines):
        line = LabelledExample(
            event_id=f"e{offset}", key="ann", sequence=n, x={}, y="hall", origin="asked",
            learned_at=0.0,
        )  # fmt: skip
        key = b"ann\x1fe%d\x1f0" % offset
        found.take(
            Record(
                topic="consensus", partition=0, offset=offset, key=key, value=encode(line), at=0.0
            )
        )
    return found


def seen(monkeypatch: pytest.MonkeyPatch, first: History, second: History) -> list[str]:
    reader = SimpleNamespace(close=lambda: None)
    topics: Any = SimpleNamespace(n_members=lambda _: 1, reader=lambda _: reader)
    monkeypatch.setattr(contents, "histories_of", lambda _: {0: second})
    return [str(each.error()) for each in contents.losses_of(topics, "group", {0: first}).values()]


def test_two_reads_in_the_middle_of_batches_are_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = history(1, 1, 2), history(2, 1, 2, 3)
    assert seen(monkeypatch, first, second) == []


def test_a_state_that_stays_behind_is_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    [text] = seen(monkeypatch, history(1, 1, 2), history(1, 1, 2))
    assert "consensus goes on after what state says of 1 of 1 learner" in text


def test_numbers_that_are_there_twice_are_a_loss_of_a_worker_at_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [text] = seen(monkeypatch, history(2, 1, 1, 2), history(3, 1, 1, 2, 3))
    assert "sequence numbers twice for 1 of 1 learner" in text
