r"""Buffer of answers that arrive before their event, dropped after `PATIENCE_S`.

A worker reads answers before events, even older ones. A volunteered label therefore
comes first wherever both wait to be read. It is kept as it came, in a record of the topic `state`
of its own, `<entity>\x1fearly/<topic:partition:offset>`: as safe as what the loops remember, and
good for a faithful dead letter if the event never comes.

"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from bisect import insort
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from connectors.topics import Record
from connectors.wire.inbound import read
from connectors.wire.state_records import EARLY
from streamgp.interactive.messages import Answer, Rejected
from streamgp.interactive.people import DEFAULT_PEOPLE
from streamgp.interactive.state.snapshot import INCONSISTENT, SnapshotError

PATIENCE_S = 60.0
"""How long an answer waits for an event that is not written yet. Of one sender, or of several
whose records take some seconds longer, both are there by then."""
MAX_WAITING = 10_000
"""Answers that wait in one partition at most."""
MAX_WAITING_BYTES = 2**23
"""How large they are together at most; also what a record of state can hold of a single one."""

Part: TypeAlias = tuple[str, str, Any | None]
"""Entity, name and value of a record of state; None: it is gone."""

_NAME = re.compile(re.escape(EARLY) + r"answers:([0-9]+):([0-9]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyAnswer:
    """An answer that waits.

    Parameters
    ----------
    record, message
        The record and what it says; why it cannot be read, if that is so by now.
    entity
        Whose it is.
    since
        When it was first read, POSIX seconds.

    """

    record: Record
    message: Answer | Rejected
    entity: str
    since: float

    @property
    def event_id(self) -> str:
        """The event that it waits for; nothing if the answer can no longer be understood."""
        return self.message.event_id if isinstance(self.message, Answer) else ""

    @property
    def key(self) -> str | None:
        """The key of the answer."""
        return self.message.key

    @property
    def name(self) -> str:
        """The name of its record of state."""
        return f"{EARLY}{self.record.position}"

    @property
    def size(self) -> int:
        """Size in bytes."""
        record = self.record
        in_headers = sum(len(name) + len(value) for name, value in record.headers)
        return len(record.key or b"") + len(record.value or b"") + in_headers


class EarlyAnswers:
    """The answers of one partition that wait for their events, in the order of the topic.

    Who takes some out has to do something with them: they are no longer kept.

    Parameters
    ----------
    partition
        Its number.
    keyed
        Whether each key has a loop of its own.
    most_of_key
        How many answers of one key may wait.

    """

    # _of_key   the offsets by the answers' own key
    # _waiting  by offset, rising
    # _of       the offsets by entity and event, rising
    # _size     of all, in bytes
    # _changed  by entity and name what is different from what `changes` returned last; None: gone
    def __init__(
        self, partition: int, *, keyed: bool, most_of_key: int = DEFAULT_PEOPLE.max_early_answers
    ) -> None:
        self._partition = partition
        self._most_of_key = most_of_key
        self._of_key: dict[str | None, set[int]] = {}
        self._keyed = keyed
        self._waiting: OrderedDict[int, EarlyAnswer] = OrderedDict()
        self._of: dict[tuple[str, str], list[int]] = {}
        self._size = 0
        self._changed: dict[tuple[str, str], EarlyAnswer | None] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def has(self, record: Record) -> bool:
        """Whether an answer waits that lies where a record does."""
        return record.offset in self._waiting

    def keep(self, record: Record, answer: Answer, entity: str, now: float) -> list[EarlyAnswer]:
        """Keep an answer; take out those, the oldest, for which there is no room any more.

        Of one key's own answers there is room for so many, and where all are too many, the key
        that has the most of them makes room.
        """
        early = EarlyAnswer(record=record, message=answer, entity=entity, since=now)
        self._add([early])
        self._changed[entity, early.name] = early
        oldest = []
        while len(self._of_key.get(answer.key, ())) > self._most_of_key:
            oldest.append(self._take(min(self._of_key[answer.key])))
        while len(self._waiting) > MAX_WAITING or self._size > MAX_WAITING_BYTES:
            most = max(self._of_key.values(), key=len)
            oldest.append(self._take(min(most)))
        return oldest

    def take_for(self, entity: str, event_id: str) -> list[EarlyAnswer]:
        """Take out what waits for an event, in its order."""
        return [self._take(offset) for offset in list(self._of.get((entity, event_id), ()))]

    def next_deadline(self) -> float | None:
        """Return the moment after which the oldest has waited long enough, None if none waits."""
        oldest = next(iter(self._waiting.values()), None)
        return None if oldest is None else oldest.since + PATIENCE_S

    def is_overdue(self, now: float) -> bool:
        """Whether the oldest has waited long enough."""
        # With a clock that was set back, the age of an answer is unknown.
        oldest = next(iter(self._waiting.values()), None)
        return oldest is not None and abs(now - oldest.since) > PATIENCE_S

    def take_overdue(self, now: float) -> list[EarlyAnswer]:
        """Take out what has waited long enough; a younger one does not leave before an older."""
        overdue = []
        while self.is_overdue(now):
            overdue.append(self._take(next(iter(self._waiting))))
        return overdue

    def forget(self, entity: str) -> bool:
        """Forget what an entity has said; return whether there was anything."""
        offsets = [offset for offset, early in self._waiting.items() if early.entity == entity]
        for offset in offsets:
            self._take(offset)
        return bool(offsets)

    # --- state

    def state(self) -> list[Part]:
        """Return all records of state."""
        return [(early.entity, early.name, _plain(early)) for early in self._waiting.values()]

    def changes(self) -> list[Part]:
        """Return the records of state that have changed since the last call."""
        changed, self._changed = self._changed, {}
        return [
            (entity, name, None if early is None else _plain(early))
            for (entity, name), early in changed.items()
        ]

    def take_over(self, parts: Iterable[Part]) -> None:
        """Take over records of state, of each the last one; that does not count as a change.

        Raises
        ------
        SnapshotError
            If they cannot be understood.

        """
        found: list[EarlyAnswer] = []
        for entity, name, value in parts:
            try:
                offset = self._offset(name)
                if offset in self._waiting:
                    self._take(offset)
                if value is not None:
                    found.append(self._early(entity, offset, value))
            except INCONSISTENT as error:
                raise SnapshotError(
                    f"state {name!r:.80} of {entity!r:.80} is no answer that waits: {error!s:.80}"
                ) from error
        self._add(found)
        self._changed.clear()

    # --- inside

    def _add(self, found: Iterable[EarlyAnswer]) -> None:
        is_rising = True
        for early in found:
            offset = early.record.offset
            is_rising &= not self._waiting or next(reversed(self._waiting)) < offset
            self._waiting[offset] = early
            insort(self._of.setdefault((early.entity, early.event_id), []), offset)
            self._of_key.setdefault(early.key, set()).add(offset)
            self._size += early.size
        if not is_rising:  # delivered once more, or in the order of a compacted topic
            self._waiting = OrderedDict(sorted(self._waiting.items()))

    def _take(self, offset: int) -> EarlyAnswer:
        early = self._waiting.pop(offset)
        event = early.entity, early.event_id
        self._of[event].remove(offset)
        if not self._of[event]:
            del self._of[event]
        of_key = self._of_key[early.key]
        of_key.remove(offset)
        if not of_key:
            del self._of_key[early.key]
        self._size -= early.size
        if self._changed.pop((early.entity, early.name), None) is None:
            self._changed[early.entity, early.name] = None  # else it was never written
        return early

    def _offset(self, name: str) -> int:
        found = _NAME.fullmatch(name)
        if found is None or int(found[1]) != self._partition:
            raise ValueError(f"its name must be {EARLY}answers:{self._partition}:<offset>")
        return int(found[2])

    def _early(self, entity: str, offset: int, plain: dict[str, Any]) -> EarlyAnswer:
        record = Record(
            topic="answers",
            partition=self._partition,
            offset=offset,
            key=None if plain["key"] is None else b64decode(plain["key"], validate=True),
            value=b64decode(plain["value"], validate=True),
            headers=[(str(name), b64decode(data)) for name, data in plain["headers"]],
            at=float(plain["at"]),
        )
        message = read(record, keyed=self._keyed)
        assert isinstance(message, Answer | Rejected)  # it was an answer when it was kept
        return EarlyAnswer(
            record=record, message=message, entity=entity, since=float(plain["since"])
        )


def _plain(early: EarlyAnswer) -> dict[str, Any]:
    record = early.record
    return {
        "since": early.since,
        "at": record.at,
        "key": None if record.key is None else b64encode(record.key).decode(),
        "value": b64encode(record.value or b"").decode(),
        "headers": [[name, b64encode(data).decode()] for name, data in record.headers],
    }
