"""What cannot be used under chaos, and whether it was put aside: once, with the original bytes."""

from __future__ import annotations

from collections import defaultdict
from typing import TypeAlias

from connectors.records import Record

Place: TypeAlias = tuple[str, int, int]
"""Topic, partition and offset."""


def place_of(record: Record) -> Place:
    """Return where a record lies."""
    return record.topic, record.partition, record.offset


class Letters:
    """Takes the inputs that cannot be used, and the dead letters.

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
    def __init__(self) -> None:
        self._bad: dict[Place, Record] = {}
        self._found: dict[Place | None, list[Record]] = defaultdict(list)

    def expect(self, bad: Record) -> None:
        """Take an input that cannot be used."""
        self._bad[place_of(bad)] = bad

    def take(self, letter: Record) -> None:
        """Take a dead letter."""
        headers = dict(letter.headers)
        if "dlq.topic" not in headers:
            self._found[None].append(letter)
            return
        where = (headers[f"dlq.{name}"].decode() for name in ("topic", "partition", "offset"))
        topic, partition, offset = where
        self._found[topic, int(partition), int(offset)].append(letter)

    def of(self, record: Record) -> list[Record]:
        """Return the dead letters of an input."""
        return self._found.get(place_of(record), [])

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
            if [_bytes(letter) for letter in self.of(record)] != [_bytes(record)]
        ]

    def strays(self) -> list[Place | None]:
        """Return of which inputs there are dead letters without need."""
        return [place for place in self._found if place not in self._bad]


def _bytes(record: Record) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]:
    headers = [(name, value) for name, value in record.headers if not name.startswith("dlq.")]
    return record.key, record.value, headers
