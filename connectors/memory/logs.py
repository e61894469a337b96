"""The records of topics that are in this process, by partition."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from operator import attrgetter
from threading import Condition

from connectors.partitioning import partition_of
from connectors.records import ALL_TOPICS, COMPACTED, Outgoing, Record, TopicName

_offset = attrgetter("offset")


class Logs:
    """The records of all topics.

    Parameters
    ----------
    n_partitions
        Of each topic.
    clock
        Stamps the records.

    Attributes
    ----------
    news
        To be held by whoever looks at the logs or changes them; told of every change.
    is_closed
        Whether nothing more is to come.

    """

    # _records  of each topic and partition, in order of their offsets, which may have gaps
    # _ends     the next offsets

    def __init__(self, n_partitions: int, clock: Callable[[], float]) -> None:
        self.n_partitions = n_partitions
        self.news = Condition()
        self.is_closed = False
        self._clock = clock
        places = [(topic, number) for topic in ALL_TOPICS for number in range(n_partitions)]
        self._records: dict[tuple[TopicName, int], list[Record]] = {place: [] for place in places}
        self._ends = dict.fromkeys(places, 0)

    def append(self, outgoing: Sequence[Outgoing]) -> dict[tuple[TopicName, int], int]:
        """Append records, all or none; return the ends of where they went."""
        places = [(record.topic, self.partition(record)) for record in outgoing]
        now = self._clock()
        for (topic, number), record in zip(places, outgoing, strict=True):
            self._records[topic, number].append(
                Record(
                    topic=topic,
                    partition=number,
                    offset=self._ends[topic, number],
                    key=record.key,
                    value=record.value,
                    headers=tuple(record.headers),
                    at=now,
                )
            )
            self._ends[topic, number] += 1
        self.news.notify_all()
        return {place: self._ends[place] for place in places}

    def after(
        self, topic: TopicName, number: int, offset: int, most: int | None = None
    ) -> list[Record]:
        """Return records from an offset on, all of them or so many at most."""
        records = self._records[topic, number]
        first = bisect_left(records, offset, key=_offset)
        return records[first : None if most is None else first + most]

    def n_after(self, topic: TopicName, number: int, offset: int) -> int:
        """Return how many records there are from an offset on."""
        records = self._records[topic, number]
        return len(records) - bisect_left(records, offset, key=_offset)

    def end(self, topic: TopicName, number: int) -> int:
        """Return the offset of the next record."""
        return self._ends[topic, number]

    def compact(self) -> None:
        """Keep the last record of each key, and of those that are gone not even that."""
        for (topic, number), records in self._records.items():
            if topic in COMPACTED:
                last = {record.key: record.offset for record in records if record.key is not None}
                self._records[topic, number] = [
                    record
                    for record in records
                    if record.key is None
                    or (record.value is not None and last[record.key] == record.offset)
                ]

    def partition(self, record: Outgoing) -> int:
        """Return where a record goes."""
        if record.topic not in ALL_TOPICS:
            raise ValueError(f"topic must be one of {', '.join(ALL_TOPICS)}, got {record.topic!r}")
        number = record.partition
        if number is None:
            return partition_of(record.key, self.n_partitions)
        if not 0 <= number < self.n_partitions:
            raise ValueError(f"partition must be 0 to {self.n_partitions - 1}, got {number}")
        return number
