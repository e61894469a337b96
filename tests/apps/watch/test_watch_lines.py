"""Followed records are printed as they are, except for what a terminal would obey."""

from __future__ import annotations

import io

import pytest

from connectors.memory import MemoryTopics
from connectors.topics import Outgoing
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
