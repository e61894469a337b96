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

    def write(self, parts: Mapping[str, Any], messages: Sequence[Message] = ()) -> None:
        for name, part in parts.items():
            self.parts.append((name, None if part is None else msgspec.json.encode(part)))
        self.note(messages)

    def note(self, messages: Sequence[Message]) -> None:
        self.lines += [m for m in messages if isinstance(m, LabelledExample)]

    @property
    def end(self) -> tuple[int, int]:
        return len(self.parts), len(self.lines)

    def parts_since(self, start: int = 0) -> dict[str, Any]:
        last = dict(self.parts[start:])
        return {name: data and msgspec.json.decode(data) for name, data in last.items()}

    def lines_since(self, start: int, rng: random.Random) -> list[LabelledExample]:
        """Return the lines that compaction leaves, in any order."""
        last = {(line.event_id, line.revision): line for line in self.lines[start:]}
        return rng.sample(list(last.values()), len(last))


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
