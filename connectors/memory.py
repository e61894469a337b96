"""Topics in this process, for tests and experiments: nothing is stored on a disk.

Workers share partitions as with Kafka, but immediately: a worker that opens or closes its
client moves partitions at once, and a worker in the middle of a batch finds out when it
commits. Kafka does the same to a worker that has been stopped for too long.

"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from operator import attrgetter
from threading import Condition
from time import monotonic

from connectors.topics import (
    ALL_TOPICS,
    COMPACTED,
    NO_GROUP,
    WORKER_INPUTS,
    Backlog,
    BrokerError,
    Checkpoint,
    FencedError,
    Outgoing,
    Place,
    Progress,
    Reader,
    Record,
    TopicName,
    Topics,
    WorkerClient,
    Writer,
    partition_of,
)
from streamgp.common.validation import check_whole

# --- The records of topics in this process, by partition.


_offset = attrgetter("offset")
# Each has its logs at once.
_MOST_PARTITIONS = 10_000


class Logs:
    """The records of all topics.

    Parameters
    ----------
    n_partitions
        Number of partitions of each topic.
    clock
        Stamps the records.

    Attributes
    ----------
    news
        Held by a thread that reads or changes the logs; notified of every change.
    is_closed
        Whether no more records will come.

    """

    # _records  of each topic and partition, in order of their offsets, which may have gaps
    # _ends     the next offsets

    def __init__(self, n_partitions: int, clock: Callable[[], float]) -> None:
        self.n_partitions = n_partitions
        self.news = Condition()
        self.is_closed = False
        self._clock = clock
        places = [(topic, number) for topic in ALL_TOPICS for number in range(n_partitions)]
        self._records: dict[Place, list[Record]] = {place: [] for place in places}
        self._ends = dict.fromkeys(places, 0)

    def check_open(self) -> None:
        """Raise an error if no more records will come."""
        if self.is_closed:
            raise BrokerError("topics are closed; open new ones")

    def append(self, outgoing: Sequence[Outgoing]) -> dict[Place, int]:
        """Append records, all or none; return the end offsets of their partitions."""
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
        """Return records from an offset on, all of them or at most a given number."""
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
        """Keep only the last record of each key, and not even that of deleted keys."""
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
        """Return the partition of a record."""
        if record.topic not in ALL_TOPICS:
            raise ValueError(f"topic must be one of {', '.join(ALL_TOPICS)}, got {record.topic!r}")
        number = record.partition
        if number is None:
            return partition_of(record.key, self.n_partitions)
        if not 0 <= number < self.n_partitions:
            raise ValueError(f"partition must be 0 to {self.n_partitions - 1}, got {number}")
        return number


# --- A worker's client for the topics in this process, and the group that it belongs to.


_TOLD_EVERY = 10_000


class Group:
    """Workers that share the partitions.

    Attributes
    ----------
    generation
        Number of the last distribution of the partitions.
    positions
        Offset at which the group continues in each input.

    """

    # _members  by instance name
    # _owners   for each partition its owner, and since which generation

    def __init__(self, n_partitions: int) -> None:
        self.generation = 0
        self.positions = {
            (topic, number): 0 for topic in WORKER_INPUTS for number in range(n_partitions)
        }
        self._n_partitions = n_partitions
        self._members: dict[str, MemoryWorkerClient] = {}
        self._owners: dict[int, tuple[MemoryWorkerClient, int]] = {}

    def __len__(self) -> int:
        return len(self._members)

    def join(self, instance: str, client: MemoryWorkerClient) -> None:
        """Add a member, replacing an older one of the same name."""
        self._members[instance] = client
        self._distribute()

    def leave(self, instance: str, client: MemoryWorkerClient) -> None:
        """Remove a member, unless it has been replaced."""
        if self._members.get(instance) is client:
            del self._members[instance]
            self._distribute()

    def has(self, instance: str, client: MemoryWorkerClient) -> bool:
        """Return whether a member has not been replaced."""
        return self._members.get(instance) is client

    def partitions(self, client: MemoryWorkerClient) -> frozenset[int]:
        """Return the partitions of a member."""
        return frozenset(n for n, (owner, _) in self._owners.items() if owner is client)

    def since(self, number: int, client: MemoryWorkerClient) -> int | None:
        """Return since which generation a member has had a partition, None if it does not."""
        owner, generation = self._owners[number]
        return generation if owner is client else None

    def _distribute(self) -> None:
        """Give each member, by name, a range of partitions; the first members get one more."""
        self.generation += 1
        members = [self._members[instance] for instance in sorted(self._members)]
        if not members:
            return
        least, n_more = divmod(self._n_partitions, len(members))
        numbers = iter(range(self._n_partitions))
        for i, member in enumerate(members):
            for _ in range(least + (i < n_more)):
                number = next(numbers)
                if number not in self._owners or self._owners[number][0] is not member:
                    self._owners[number] = (member, self.generation)


class MemoryWorkerClient(WorkerClient):
    """One member of a group.

    Parameters
    ----------
    logs, group
        The logs and the group that it works with.
    instance
        Its name.
    max_records
        Largest number of records that a poll returns.

    """

    # _polled  for the partitions as of the last poll, the next offset of each input

    def __init__(self, logs: Logs, group: Group, *, instance: str, max_records: int) -> None:
        self._logs = logs
        self._group = group
        self._instance = instance
        self._max_records = max_records
        self._is_closed = False
        self._generation = -1
        self._assigned: frozenset[int] = frozenset()
        self._polled: dict[Place, int] = {}
        self._n_polls = 0
        with logs.news:
            group.join(instance, self)
            logs.news.notify_all()

    @property
    def assigned(self) -> frozenset[int]:
        return self._assigned

    @property
    def generation(self) -> int:
        return self._generation

    def poll(self, timeout_s: float, held: Set[int] = frozenset()) -> list[Record]:
        """Return the next inputs, answers before events; none if partitions come or go."""
        until = monotonic() + timeout_s
        with self._logs.news:
            while True:
                self._check()
                is_news = self._follow()
                records = self._next(held)
                left = until - monotonic()
                if records or is_news or left <= 0.0:
                    return records
                self._logs.news.wait(left)

    def history_batches(
        self, starts: Mapping[int, Mapping[TopicName, int]], progress: Progress | None = None
    ) -> Iterator[Sequence[Record]]:
        with self._logs.news:
            self._check()
            found = [
                record
                for number, offsets in starts.items()
                for topic in COMPACTED
                for record in self._logs.after(topic, number, offsets.get(topic, 0))
            ]
        return _batches(found, progress)

    def commit(self, outgoing: Sequence[Outgoing]) -> dict[Place, int]:
        with self._logs.news:
            self._check()
            for number in sorted(self._assigned):
                if not self._had(number):
                    raise BrokerError(
                        f"partition {number} was given to another worker; start again"
                    )
            ends = self._logs.append(outgoing)
            self._group.positions.update(self._polled)
            return ends

    def lag(self) -> dict[Place, int | None]:
        with self._logs.news:
            self._check()
            return {
                (topic, number): self._logs.n_after(topic, number, offset)
                for (topic, number), offset in self._polled.items()
            }

    def close(self, *, leave: bool = False) -> None:  # noqa: ARG002
        """Leave; what was polled and not committed is delivered again, here or elsewhere."""
        with self._logs.news:
            self._is_closed = True
            self._group.leave(self._instance, self)
            self._logs.news.notify_all()

    def _check(self) -> None:
        if self._is_closed:
            raise ValueError("worker client is closed; open another one")
        self._logs.check_open()
        if not self._group.has(self._instance, self):
            raise FencedError(
                f"another worker has joined as {self._instance!r}; give each a name of its own"
            )

    def _follow(self) -> bool:
        """Adopt a new distribution of partitions, if any; return whether there was one.

        What was polled before and not committed comes again.
        """
        group = self._group
        if group.generation == self._generation:
            return False
        self._generation = group.generation
        self._assigned = group.partitions(self)
        self._polled = {
            place: position
            for place, position in group.positions.items()
            if place[1] in self._assigned
        }
        return True

    def _had(self, number: int) -> bool:
        """Return whether this worker has had a partition without a break since the last poll."""
        since = self._group.since(number, self)
        return since is not None and since <= self._generation

    def _next(self, held: Set[int]) -> list[Record]:
        """Return the next records of the other partitions, starting with another one each time."""
        self._n_polls += 1
        numbers = sorted(self._assigned - held)
        first = self._n_polls % max(1, len(numbers))
        records: list[Record] = []
        for topic in WORKER_INPUTS:
            for number in numbers[first:] + numbers[:first]:
                most = self._max_records - len(records)
                found = self._logs.after(topic, number, self._polled[topic, number], most)
                if found:
                    self._polled[topic, number] = found[-1].offset + 1
                    records += found
        return records


def _batches(records: list[Record], progress: Progress | None) -> Iterator[list[Record]]:
    for start in range(0, len(records), _TOLD_EVERY):
        batch = records[start : start + _TOLD_EVERY]
        yield batch
        if progress is not None and len(batch) == _TOLD_EVERY:
            progress(start + _TOLD_EVERY, len(records))


_MANY = 500


class MemoryTopics(Topics):
    """Topics in memory.

    Parameters
    ----------
    n_partitions
        Number of partitions of each topic.
    clock
        Stamps the records, POSIX seconds.

    Examples
    --------
    >>> topics = MemoryTopics()
    >>> producer = topics.writer("producer")
    >>> producer.send(Outgoing(topic="events", key=b"ann", value=b"{}"))
    >>> producer.flush()
    >>> client = topics.client(group="streamgp", instance="here", max_records=500)
    >>> [record.key for record in client.poll(0.0)], topics.lags("streamgp")["events", 0]
    ([b'ann'], 1)
    >>> client.commit([Outgoing(topic="predictions", key=b"ann", value=b"{}")])
    {('predictions', 0): 1}
    >>> topics.lags("streamgp")["events", 0]
    0

    """

    def __init__(self, n_partitions: int = 1, *, clock: Callable[[], float] = time.time) -> None:
        n_partitions = check_whole("n_partitions", n_partitions, 1, _MOST_PARTITIONS)
        self._logs = Logs(n_partitions, clock)
        self._groups: dict[str, Group] = {}
        self._positions: dict[str, dict[Place, int]] = {}

    def client(self, *, group: str, instance: str, max_records: int) -> MemoryWorkerClient:
        """Join a group of workers; an earlier member of the same name is fenced."""
        with self._logs.news:
            self._logs.check_open()
            members = self._groups.setdefault(group, Group(self._logs.n_partitions))
            return MemoryWorkerClient(
                self._logs, members, instance=instance, max_records=max_records
            )

    def reader(
        self, topics: Iterable[TopicName], *, from_end: bool = False, group: str | None = None
    ) -> MemoryReader:
        with self._logs.news:
            self._logs.check_open()
            positions = None if group is None else self._positions.setdefault(group, {})
            return MemoryReader(self._logs, topics, from_end=from_end, positions=positions)

    def writer(self, program: str) -> MemoryWriter:  # noqa: ARG002
        return MemoryWriter(self._logs)

    def compact(self) -> None:
        """Remove from the compacted topics what was replaced, and all records of deleted keys."""
        with self._logs.news:
            self._logs.compact()

    def create(self) -> list[str]:
        """Do nothing: the topics exist."""
        return []

    def problems(self) -> list[str]:
        """Return an empty list."""
        return []

    def identity(self) -> str:
        """Return the number of this object within the process."""
        return str(id(self))

    def n_partitions(self) -> int:
        return self._logs.n_partitions

    def backlog(self, group: str) -> dict[Place, Backlog]:
        with self._logs.news:
            members = self._groups.get(group, Group(self._logs.n_partitions))
            return {
                place: Backlog(
                    position=offset,
                    end=self._logs.end(*place),
                    n_waiting=self._logs.n_after(*place, offset),
                )
                for place, offset in members.positions.items()
            }

    def positions(self, group: str) -> dict[Place, int]:
        """Return the offsets at which a group continues, 0 where it has not started."""
        with self._logs.news:
            return dict(self._groups.get(group, Group(self._logs.n_partitions)).positions)

    def checkpoint(self, group: str) -> Checkpoint:
        """Return the present positions and ends."""
        with self._logs.news:
            positions = self.positions(group)
            numbers = range(self._logs.n_partitions)
            return Checkpoint(
                positions=positions,
                ends={(t, n): self._logs.end(t, n) for t in COMPACTED for n in numbers},
                heeded={n: positions["consensus", n] for n in numbers},
            )

    def n_members(self, group: str) -> int:
        """Return how many clients of a group are open."""
        with self._logs.news:
            return len(self._groups.get(group, ()))

    def close(self) -> None:
        """Close the connection: a client that still polls gets a `BrokerError`."""
        with self._logs.news:
            self._logs.is_closed = True
            self._logs.news.notify_all()


class MemoryReader(Reader):
    """Reads topics in memory; `positions` are those of its group, if it has one."""

    # _offsets  the next offset of each partition
    # _goals    their ends when the reader was opened, or looked again

    def __init__(
        self,
        logs: Logs,
        topics: Iterable[TopicName],
        *,
        from_end: bool,
        positions: dict[Place, int] | None,
    ) -> None:
        self._logs = logs
        self._positions = positions
        self._goals = {
            (topic, number): logs.end(topic, number)
            for topic in topics
            for number in range(logs.n_partitions)
        }
        starts = self._goals if from_end else dict.fromkeys(self._goals, 0)
        self._offsets = {place: (positions or {}).get(place, n) for place, n in starts.items()}

    def poll(self, timeout_s: float) -> list[Record]:
        until = monotonic() + timeout_s
        with self._logs.news:
            while True:
                records = self._next()
                left = until - monotonic()
                if records or left <= 0.0:
                    return records
                self._logs.check_open()
                self._logs.news.wait(left)

    @property
    def caught_up(self) -> bool:
        with self._logs.news:
            return all(self._offsets[place] >= goal for place, goal in self._goals.items())

    def look_again(self) -> None:
        with self._logs.news:
            self._goals = {place: self._logs.end(*place) for place in self._goals}

    @property
    def is_at_end(self) -> bool:
        """Whether everything that is there now has been read."""
        with self._logs.news:
            return all(offset >= self._logs.end(*place) for place, offset in self._offsets.items())

    def commit(self) -> None:
        if self._positions is None:
            raise ValueError(NO_GROUP)
        with self._logs.news:
            self._positions.update(self._offsets)

    def close(self) -> None:
        """Close the connection."""

    def _next(self) -> list[Record]:
        records: list[Record] = []
        for (topic, number), offset in self._offsets.items():
            found = self._logs.after(topic, number, offset, _MANY)
            records += found
            # Records compacted away between the last record and the end count as read, too.
            self._offsets[topic, number] = (
                found[-1].offset + 1 if len(found) == _MANY else self._logs.end(topic, number)
            )
        return records


class MemoryWriter(Writer):
    """Writes to topics in memory."""

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self._unsent: list[Outgoing] = []

    def send(self, record: Outgoing) -> None:
        """Keep a record until the next flush."""
        self._logs.partition(record)
        self._unsent.append(record)

    def flush(self) -> None:
        """Append all records kept."""
        with self._logs.news:
            self._logs.check_open()
            self._logs.append(self._unsent)
        self._unsent.clear()

    def close(self) -> None:
        self.flush()
