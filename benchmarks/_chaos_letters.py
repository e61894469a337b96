"""What cannot be used under chaos, and whether it was put aside: once, with the original bytes.

An answer that names no request may be the label of an event that is still to come. So a worker
lets it wait for its event, in the topic `state`, also if that came long ago and is forgotten; only
then is it a dead letter.

"""

from __future__ import annotations

from collections import defaultdict
from math import inf
from typing import TypeAlias

import msgspec

from benchmarks._chaos_ends import GRACE_S
from connectors.topics import Record
from connectors.wire.state_records import EARLY, split_key
from connectors.worker.early_answers import PATIENCE_S

Place: TypeAlias = tuple[str, int, int]
"""Topic, partition and offset."""


def place_of(record: Record) -> Place:
    """Return where a record lies."""
    return record.topic, record.partition, record.offset


class Letters:
    """Takes the inputs that cannot be used, the dead letters, and the answers that wait.

    Attributes
    ----------
    n_waiting
        How many answers were excused.

    Examples
    --------
    >>> place = {"topic": "events", "partition": 0, "offset": 7, "at": 60.0}
    >>> letters = Letters()
    >>> letters.expect(Record(key=b"ann", value=b"?", **place))
    >>> letters.missing(), letters.n_found, letters.n_too_many
    ([('events', 0, 7)], 0, 0)

    """

    # _bad    inputs that must be dead letters
    # _found  dead letters by where their input lay; None for a timer
    # _since  when an answer that waits for its event was read, by where it lies
    def __init__(self) -> None:
        self.n_waiting = 0
        self._bad: dict[Place, Record] = {}
        self._found: dict[Place | None, list[Record]] = defaultdict(list)
        self._since: dict[Place, float] = {}

    def expect(self, bad: Record) -> None:
        """Take an input that cannot be used."""
        self._bad[place_of(bad)] = bad

    def take(self, letter: Record) -> None:
        """Take a dead letter."""
        headers = dict(letter.headers)
        if "dlq.topic" not in headers:
            self._found[None].append(letter)
            return
        role = "role" if "dlq.role" in headers else "topic"
        where = (headers[f"dlq.{name}"].decode() for name in (role, "partition", "offset"))
        topic, partition, offset = where
        self._found[topic, int(partition), int(offset)].append(letter)

    def take_state(self, record: Record) -> None:
        """Take a record of the topic `state`, which may be an answer that waits or no longer."""
        name = split_key(record.key or b"")[-1]
        if not name.startswith(EARLY):
            return
        topic, partition, offset = name.removeprefix(EARLY).split(":")
        place = topic, int(partition), int(offset)
        if record.value is None:
            self._since.pop(place, None)
        else:
            self._since[place] = msgspec.json.decode(record.value)["value"]["since"]

    def excuse_waiting(self, stopped_at: float) -> None:
        """Excuse the answers that wait and whose time was not over when the workers stopped."""
        for place, since in self._since.items():
            if since + PATIENCE_S > stopped_at - GRACE_S and self._bad.pop(place, None):
                self.n_waiting += 1

    def has(self, record: Record) -> bool:
        """Whether there is a dead letter of an input."""
        return bool(self._of(place_of(record)))

    def read_by(self, record: Record) -> float:
        """Return by when an answer was read that waits or is a dead letter; of others -inf."""
        place = place_of(record)
        ats = [letter.at for letter in self._of(place)]
        return max([*ats, self._since.get(place, -inf)])

    @property
    def n_expected(self) -> int:
        """How many inputs cannot be used."""
        return len(self._bad)

    @property
    def n_found(self) -> int:
        """How many of them are dead letters as they should be."""
        return len(self._bad) - len(self.missing())

    @property
    def n_too_many(self) -> int:
        """How many other dead letters there are."""
        return sum(map(len, self._found.values())) - self.n_found

    def missing(self) -> list[Place]:
        """Return which inputs are not a dead letter exactly once, with their bytes."""
        return [
            place
            for place, record in self._bad.items()
            if [_bytes(letter) for letter in self._of(place)] != [_bytes(record)]
        ]

    def strays(self) -> list[Place | None]:
        """Return of which inputs there are dead letters without need."""
        return [place for place in self._found if place not in self._bad]

    def _of(self, place: Place) -> list[Record]:
        return self._found.get(place, [])


def _bytes(record: Record) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]:
    headers = [(name, value) for name, value in record.headers if not name.startswith("dlq.")]
    return record.key, record.value, headers
