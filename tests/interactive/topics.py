"""What compacted topics keep of published parts and of a consensus log: what each key says last."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from streamgp.interactive import InteractiveLoop, LabelledExample, Message, event_store
from streamgp.interactive.messages import Retraction
from streamgp.interactive.state import serialize
from tests.interactive.stories import Story, told

SPANS = {"expires_after_s": 5.0, "answer_horizon_s": 25.0}
"""Shorter than those of `stories`: more is forgotten."""


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


class StateChangelog:
    """A loop in a story, now and then published and snapshot.

    Sometimes lines are deleted, and an annotator's labels are taken back and put back.
    """

    def __init__(
        self,
        model: Callable[[], Any],
        seed: int,
        spans: Mapping[str, Any] = SPANS,
        story: Story | None = None,
    ) -> None:
        self.model, self.spans = model, spans
        self.loop = InteractiveLoop(model(), **spans)
        self.rng = random.Random(seed)
        self.story = story or Story(seed)
        self.messages: list[Message] = []
        self.topics = PublishedState()
        self.retractions: list[Retraction] = []
        self.saved = (self.loop.snapshot(), self.topics.end)

    def step(self) -> None:
        rng = self.rng
        if rng.random() < 0.05 and self.topics.lines:
            line = rng.choice(self.topics.lines)
            revision = rng.choice([None, line.revision])
            self.messages = self.loop.withdraw(line.event_id, self.story.now, revision=revision)
            if revision is not None:
                self.topics.erase(line.event_id, revision)
                # An earlier snapshot holds the line.
                self.saved = (self.loop.snapshot(), self.topics.end)
        elif rng.random() < 0.03:
            self.relearn()
            return
        else:
            self.messages = told(self.loop, self.story.next(self.messages))
        self.topics.note(self.messages)
        if rng.random() < 0.3:
            self.topics.write(self.loop.changes())
        if rng.random() < 0.1:
            self.saved = (self.loop.snapshot(), self.topics.end)

    def relearn(self) -> None:
        """Take an annotator's labels back, or put the last ones back."""
        log, now = self.topics.lines_since(0, self.rng), self.story.now
        if self.retractions and self.rng.random() < 0.5:
            done = self.loop.reinstate(self.retractions.pop(), log, now)
        else:
            done = self.loop.retract(self.rng.choice(("ann", "bob")), log, now)
            self.retractions += [done.retraction] if done.retraction else []
        self.messages = done.messages
        self.topics.replace(done.log)
        # No earlier snapshot can be merged.
        self.saved = (self.loop.snapshot(), self.topics.end)

    def steps_and_cut(self, n: int) -> list[InteractiveLoop]:
        """Play on; return the loop as it is made again in different ways, each time the same."""
        for _ in range(n):
            self.step()
        again = list(self.cut())
        assert [loop.snapshot() == self.loop.snapshot() for loop in again] == [True] * 3
        return again

    def cut(self) -> Iterator[InteractiveLoop]:
        """Publish, and return the loop as it can be made again in different ways."""
        self.topics.write(self.loop.changes())
        parts = {k: v for k, v in self.topics.parts_since().items() if v is not None}
        assert msgspec.json.decode(msgspec.json.encode(self.loop.parts())) == parts
        assert self.loop.changes() == {}
        lines = self.topics.lines_since(0, self.rng)
        yield InteractiveLoop.from_parts(parts, lines, self.model(), **self.spans)
        data, (n_parts, n_lines) = self.saved
        # The topic may be read from before the snapshot on.
        n_parts = self.rng.choice([n_parts, n_parts, self.rng.randint(0, n_parts)])
        n_lines = self.rng.choice([n_lines, self.rng.randint(0, n_lines)])
        tail = self.topics.parts_since(n_parts)
        lines = self.topics.lines_since(n_lines, self.rng)
        loop = InteractiveLoop.restore(data, self.model())
        loop = loop.caught_up(tail, lines, self.model())
        assert loop is not None
        yield loop
        once_more = loop.caught_up(tail, lines, self.model())
        assert once_more is not None
        assert once_more.snapshot() == loop.snapshot()
        yield InteractiveLoop.restore(self.loop.snapshot(), self.model())
