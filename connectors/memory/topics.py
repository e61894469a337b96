"""Topics in this process, for tests and for trying out: nothing is on a disk.

Workers share partitions as they do with Kafka, only at once: a worker that opens or closes its link
moves partitions there and then, and one that is in the middle of a batch finds out when it commits.
That is what Kafka does to a worker that has been stopped for too long.

"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from time import monotonic

from connectors.memory.link import Group, MemoryLink
from connectors.memory.logs import Logs
from connectors.records import (
    ALL_TOPICS,
    Backlog,
    LinkError,
    Obstacle,
    Outgoing,
    Place,
    Record,
    TopicName,
)
from streamgp.arguments import check_whole

_MANY = 500


class MemoryTopics:
    """Topics in memory.

    Parameters
    ----------
    n_partitions
        Of each topic.
    clock
        Stamps the records, POSIX seconds.

    Examples
    --------
    >>> topics = MemoryTopics()
    >>> feeder = topics.writer("feeder")
    >>> feeder.send(Outgoing(topic="events", key=b"ann", value=b"{}"))
    >>> feeder.flush()
    >>> link = topics.link(group="streamgp", instance="here", max_records=500)
    >>> [record.key for record in link.poll(0.0)], topics.lags("streamgp")["events", 0]
    ([b'ann'], 1)
    >>> link.commit([Outgoing(topic="predictions", key=b"ann", value=b"{}")])
    {('predictions', 0): 1}
    >>> topics.lags("streamgp")["events", 0]
    0

    """

    def __init__(self, n_partitions: int = 1, *, clock: Callable[[], float] = time.time) -> None:
        check_whole("n_partitions", n_partitions, 1)
        self._logs = Logs(n_partitions, clock)
        self._groups: dict[str, Group] = {}

    def link(self, *, group: str, instance: str, max_records: int) -> MemoryLink:
        """Join a group of workers; who has joined it under the same name is fenced."""
        with self._logs.news:
            self._check()
            members = self._groups.setdefault(group, Group(self._logs.n_partitions))
            return MemoryLink(self._logs, members, instance=instance, max_records=max_records)

    def reader(self, topics: Iterable[TopicName], *, from_end: bool = False) -> MemoryReader:
        """Read topics."""
        with self._logs.news:
            self._check()
            return MemoryReader(self._logs, topics, from_end=from_end)

    def writer(self, program: str) -> MemoryWriter:  # noqa: ARG002
        """Write to topics."""
        return MemoryWriter(self._logs)

    def compact(self) -> None:
        """Drop from the compacted topics what was replaced, and what is gone without a trace."""
        with self._logs.news:
            self._logs.compact()

    def create(self) -> list[str]:
        """Do nothing: the topics are there."""
        return []

    def problems(self) -> list[str]:
        """Return an empty list."""
        return []

    def warnings(self) -> list[str]:
        """Return an empty list."""
        return []

    def identity(self) -> str:
        """Return the number of this object within the process."""
        return str(id(self))

    def names(self) -> Mapping[TopicName, str]:
        """Return the names that the topics have everywhere."""
        return {name: name for name in ALL_TOPICS}

    def n_partitions(self) -> int:
        """Return the number of partitions of each topic."""
        return self._logs.n_partitions

    def lags(self, group: str) -> dict[tuple[TopicName, int], int]:
        """Return how many records of each input partition a group has not worked off."""
        return {place: each.n_waiting for place, each in self.backlog(group).items()}

    def backlog(self, group: str) -> dict[Place, Backlog]:
        """Return how far a group is in each input partition."""
        with self._logs.news:
            members = self._groups.get(group, Group(self._logs.n_partitions))
            return {
                place: Backlog(position=offset, n_waiting=self._logs.n_after(*place, offset))
                for place, offset in members.positions.items()
            }

    def readable(self, positions: Mapping[Place, int]) -> set[Place]:
        """Return all of them: what waits is records."""
        return set(positions)

    def obstacles(self, places: Iterable[Place]) -> dict[Place, Obstacle]:  # noqa: ARG002
        """Return nothing: what is there can be read."""
        return {}

    def n_members(self, group: str) -> int:
        """Return how many links of a group are open."""
        with self._logs.news:
            return len(self._groups.get(group, ()))

    def close(self) -> None:
        """Let go of everything: whoever still polls gets a `LinkError`."""
        with self._logs.news:
            self._logs.is_closed = True
            self._logs.news.notify_all()

    def _check(self) -> None:
        if self._logs.is_closed:
            raise LinkError("topics are closed; open new ones")


class MemoryReader:
    """Reads topics in memory."""

    # _offsets  where each partition is read on
    # _goals    their ends when the reader was opened

    def __init__(self, logs: Logs, topics: Iterable[TopicName], *, from_end: bool) -> None:
        self._logs = logs
        self._goals = {
            (topic, number): logs.end(topic, number)
            for topic in topics
            for number in range(logs.n_partitions)
        }
        self._offsets = dict(self._goals) if from_end else dict.fromkeys(self._goals, 0)

    def poll(self, timeout_s: float) -> list[Record]:
        """Return the next records; an empty list if none came in time."""
        until = monotonic() + timeout_s
        with self._logs.news:
            while True:
                records = self._next()
                left = until - monotonic()
                if records or left <= 0.0:
                    return records
                if self._logs.is_closed:
                    raise LinkError("topics are closed; open new ones")
                self._logs.news.wait(left)

    @property
    def caught_up(self) -> bool:
        """Whether everything has been read that was there when the reader was opened."""
        with self._logs.news:
            return all(self._offsets[place] >= goal for place, goal in self._goals.items())

    def close(self) -> None:
        """Let go."""

    def _next(self) -> list[Record]:
        records: list[Record] = []
        for (topic, number), offset in self._offsets.items():
            found = self._logs.after(topic, number, offset, _MANY)
            records += found
            # What was compacted away between the last record and the end is read, too.
            self._offsets[topic, number] = (
                found[-1].offset + 1 if len(found) == _MANY else self._logs.end(topic, number)
            )
        return records


class MemoryWriter:
    """Writes to topics in memory."""

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self._unsent: list[Outgoing] = []

    def send(self, record: Outgoing) -> None:
        """Take a record until the next flush."""
        self._logs.partition(record)
        self._unsent.append(record)

    def flush(self) -> None:
        """Append everything taken."""
        with self._logs.news:
            if self._logs.is_closed:
                raise LinkError("topics are closed; open new ones")
            self._logs.append(self._unsent)
        self._unsent.clear()

    def close(self) -> None:
        """Flush and let go."""
        self.flush()
