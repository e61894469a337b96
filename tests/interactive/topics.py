"""What compacted topics keep of published parts and of a consensus log: what each key says last."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from streamgp.interactive import LabelledExample, Message, event_store
from streamgp.interactive.state import serialize


class PublishedState:
    """The parts and lines of one loop, in the order in which they were published.

    Parts are kept as bytes: nothing that the loop does later can change them.
    """

    def __init__(self) -> None:
        self.parts: list[tuple[str, bytes | None]] = []
        self.lines: list[LabelledExample] = []
        self._erased: set[int] = set()  # places of the lines that are deleted

    def erase(self, event_id: str, revision: int) -> None:
        """Delete the last line of an event and a revision."""
        name = event_id, revision
        named = [(line.event_id, line.revision) for line in self.lines]
        self._erased.add(max(n for n, each in enumerate(named) if each == name))

    def replace(self, lines: Sequence[LabelledExample]) -> None:
        """Replace all lines, as after a retraction."""
        self.forget()
        self.lines += lines

    def forget(self) -> None:
        """Delete all lines."""
        self.lines.clear()
        self._erased.clear()

    def write(self, parts: Mapping[str, Any], messages: Sequence[Message] = ()) -> None:
        for name, part in parts.items():
            self.parts.append((name, None if part is None else msgspec.json.encode(part)))
        self.note(messages)

    def note(self, messages: Sequence[Message]) -> None:
        for line in (m for m in messages if isinstance(m, LabelledExample)):
            if line.y is None:  # workers delete the earlier lines of what is withdrawn
                events = (each.event_id for each in self.lines)
                self._erased |= {n for n, each in enumerate(events) if each == line.event_id}
            self.lines.append(line)

    @property
    def end(self) -> tuple[int, int]:
        return len(self.parts), len(self.lines)

    def parts_since(self, start: int = 0) -> dict[str, Any]:
        last = dict(self.parts[start:])
        return {name: data and msgspec.json.decode(data) for name, data in last.items()}

    def lines_since(self, start: int, rng: random.Random) -> list[LabelledExample]:
        """Return the lines that compaction leaves, in any order."""
        last = {
            (line.event_id, line.revision): n for n, line in enumerate(self.lines) if n >= start
        }
        left = [self.lines[n] for n in last.values() if n not in self._erased]
        return rng.sample(left, len(left))


@contextmanager
def pages_of(n_bytes: int = event_store.SEGMENT_BYTES, *, recent: int = 0) -> Iterator[None]:
    """Make pages so small that a short story fills several, and an answer may divide one.

    Of the latest conversations, at most `recent` bytes are published with the head.
    """
    before = event_store.SEGMENT_BYTES, event_store.MOST_BYTES, serialize.RECENT_BYTES
    event_store.SEGMENT_BYTES, event_store.MOST_BYTES, serialize.RECENT_BYTES = (
        n_bytes,
        n_bytes + 30,
        recent,
    )
    try:
        yield
    finally:
        event_store.SEGMENT_BYTES, event_store.MOST_BYTES, serialize.RECENT_BYTES = before
