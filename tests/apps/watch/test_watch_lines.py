"""Followed records are printed as they are, except for what a terminal would obey."""

from __future__ import annotations

import functools
import io

import pytest

from connectors.memory import MemoryTopics
from connectors.topics import AwayError, Outgoing, Record
from streamgp.apps.watch.view import print_records
from tests.helpers.topics import write

LINE = b'{"x":{"a":1.0},"key":"ann","event_id":"e\xc2\x9b2J\xe2\x80\xae"}'


class Output(io.TextIOWrapper):
    """Standard output of this process, on a terminal or elsewhere."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.mark.parametrize("is_terminal", [True, False])
def test_only_a_terminal_gets_characters_written_out(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    topics = MemoryTopics()
    write(topics, Outgoing(topic="events", key=b"ann", value=LINE))
    output = Output(is_terminal=is_terminal)
    monkeypatch.setattr("sys.stdout", output)
    print_records(topics, "events", lambda: False, from_start=True, once=True)
    shown = LINE.replace(b"\xc2\x9b", b"\\x9b").replace(b"\xe2\x80\xae", b"\\u202e")
    assert output.buffer.getvalue() == (shown if is_terminal else LINE) + b"\n"


class Unsteady:
    """A reader of a broker that is away twice, the first time for two polls."""

    def __init__(self) -> None:
        self.caught_up = False
        self.left: list[bytes | None] = [None, None, LINE, LINE, None, LINE]

    def poll(self, timeout_s: float) -> list[Record]:  # noqa: ARG002
        value = self.left.pop(0)
        if value is None:
            raise AwayError("broker one:9092 did not answer in time")
        return [
            Record(
                topic="events", partition=0, offset=0, key=b"ann", value=value, headers=(), at=0.0
            )
        ]

    def close(self) -> None:
        """Do nothing."""


def test_it_waits_for_a_broker_that_is_away_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader, output = Unsteady(), Output(is_terminal=False)
    monkeypatch.setattr(MemoryTopics, "reader", lambda *_, **__: reader)
    monkeypatch.setattr("sys.stdout", output)
    follow = functools.partial(print_records, MemoryTopics(), "events", from_start=False)
    follow(lambda: not reader.left, once=False)
    assert output.buffer.getvalue() == 3 * (LINE + b"\n")
    away = "broker one:9092 did not answer in time; waiting for it\n"
    assert capsys.readouterr().err == 2 * (away + "the broker is back\n")
    reader.left = [None]
    with pytest.raises(AwayError):
        follow(lambda: False, once=True)
