r"""Buffer of answers that arrive before their event, dropped after `PATIENCE_S`.

A worker reads answers before events, even before older ones. If both are waiting, a volunteered
label is therefore read before its event. It is stored unchanged in its own record of the topic
`state`, `<entity>\x1fearly/<topic:partition:offset>`: as durable as the loops' state, and complete
enough for a faithful dead letter if the event never arrives.

"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from bisect import insort
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from connectors.topics import Record, content_size
from connectors.wire.inbound import read
from connectors.wire.state_records import EARLY
from streamgp.interactive.messages import Answer, Rejected
from streamgp.interactive.people import DEFAULT_PEOPLE
from streamgp.interactive.state.snapshot import INCONSISTENT, SnapshotError

PATIENCE_S = 60.0
"""How long an answer waits for an event that is not written yet: enough for one sender, or for
several whose records arrive some seconds apart."""
MAX_WAITING = 10_000
"""The largest number of waiting answers in one partition."""
MAX_WAITING_BYTES = 2**23
"""Their largest total size; a single one must also fit into a record of state."""

Part: TypeAlias = tuple[str, str, Any | None]
"""Entity, name and value of a record of state; None if it is deleted."""

_NAME = re.compile(re.escape(EARLY) + r"answers:([0-9]+):([0-9]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyAnswer:
    """An answer that waits.

    Parameters
    ----------
    record, message
        The record and its content; a `Rejected` if it can no longer be read.
    since
        When it was first read, POSIX seconds.

    """

    record: Record
    message: Answer | Rejected
    entity: str
    since: float

    @property
    def event_id(self) -> str:
        """The event for which it waits; empty if the answer can no longer be read."""
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
        in_headers = sum(len(name) + len(value) for name, value in self.record.headers)
        return content_size(self.record) + in_headers


class EarlyAnswers:
    """Waiting answers of one partition, in the order of the topic.

    The caller is responsible for the answers that it takes out: they are no longer stored.

    Parameters
    ----------
    keyed
        Whether each key has a loop of its own.
    most_of_key
        The largest number of waiting answers of one key.

    """

    # _of_key   the offsets by the answers' key
    # _waiting  by offset, ascending
    # _of       the offsets by entity and event, ascending
    # _size     total size in bytes
    # _changed  by entity and name, what has changed since the last call of `changes`; None: deleted
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
        """Return whether the answer in a record already waits."""
        return record.offset in self._waiting

    def keep(self, record: Record, answer: Answer, entity: str, now: float) -> list[EarlyAnswer]:
        """Store an answer; take out and return the oldest ones if there are too many.

        Each key may have `most_of_key` answers; if there are too many in total, the key with the
        most answers makes room.
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
        """Take out the answers that wait for an event, in order."""
        return [self._take(offset) for offset in list(self._of.get((entity, event_id), ()))]

    def next_deadline(self) -> float | None:
        """Return the time after which the oldest has waited long enough, None if none waits."""
        oldest = self._oldest()
        return None if oldest is None else oldest.since + PATIENCE_S

    def is_overdue(self, now: float) -> bool:
        """Return whether the oldest has waited long enough."""
        # If the clock was set back, the age of an answer is unknown.
        oldest = self._oldest()
        return oldest is not None and abs(now - oldest.since) > PATIENCE_S

    def take_overdue(self, now: float) -> list[EarlyAnswer]:
        """Take out the answers that have waited long enough, always the oldest first."""
        overdue = []
        while self.is_overdue(now):
            overdue.append(self._take(next(iter(self._waiting))))
        return overdue

    def forget(self, entity: str) -> bool:
        """Drop the answers of an entity; return whether there were any."""
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
        """Load records of state, the last one of each; this does not count as a change.

        Raises
        ------
        SnapshotError
            If they cannot be read.

        """
        found: list[EarlyAnswer] = []
        for entity, name, value in parts:
            if value is None and _NAME.fullmatch(name) is None:
                continue  # a record that `streamgp recover` has removed
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

    # --- internal

    def _oldest(self) -> EarlyAnswer | None:
        return next(iter(self._waiting.values()), None)

    def _add(self, found: Iterable[EarlyAnswer]) -> None:
        is_rising = True
        for early in found:
            offset = early.record.offset
            is_rising &= not self._waiting or next(reversed(self._waiting)) < offset
            self._waiting[offset] = early
            insort(self._of.setdefault((early.entity, early.event_id), []), offset)
            self._of_key.setdefault(early.key, set()).add(offset)
            self._size += early.size
        if not is_rising:  # delivered again, or in the order of a compacted topic
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
            self._changed[early.entity, early.name] = None  # otherwise it was never written
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
        assert isinstance(message, Answer | Rejected)  # it was an answer when it was stored
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
