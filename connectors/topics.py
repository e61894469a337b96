"""Broker interface: records, topics, worker clients, readers, writers.

On this level everything is bytes in partitions; `connectors.wire` gives them their meaning:
`inbound`, `outbound` and `state_records`. Kafka, a SQLite database and this process's memory each
provide `Topics`. A broker derives its classes from the protocols below: what a method does is said
here once, and what only a cluster can report has a default.

"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain
from math import inf
from typing import Literal, Protocol, TypeAlias, get_args

import msgspec

TopicName: TypeAlias = Literal[
    "events", "answers", "predictions", "requests", "consensus", "state", "dead-letters"
]
"""The role of a topic; its name on the broker is configured."""
Place: TypeAlias = tuple[TopicName, int]
"""A topic and one of its partitions."""
ALL_TOPICS: tuple[TopicName, ...] = get_args(TopicName)
WORKER_INPUTS: tuple[TopicName, ...] = ("answers", "consensus", "events")
"""Topics that a worker reads continuously; the consensus topic for what others take back."""
COMPACTED: tuple[TopicName, ...] = ("state", "consensus")
"""Topics in which the last record of each key counts: those of a restore, in its order."""

Headers: TypeAlias = Sequence[tuple[str, bytes]]
Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of records read, and the approximate number of all records."""


class UndecodableName(str):
    r"""Readable name of a header that is not UTF-8: for `caf` and the byte 0xe9, `caf\xe9`."""

    __slots__ = ()


# Structs instead of dataclasses: thousands are made a second, five times as fast.
class TruncatedValue(msgspec.Struct, frozen=True, kw_only=True):
    """Size and digest of a value that was read only in part.

    Parameters
    ----------
    size
        Number of bytes of the whole value.
    sha256
        Their SHA-256, in hexadecimal digits.

    """

    size: int
    sha256: str


class Record(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One record as stored in a topic.

    Parameters
    ----------
    topic, partition, offset
        Position of the record.
    key, value
        Bytes; a value of None is a tombstone.
    headers
        Names with their bytes; a name that is not UTF-8 is an `UndecodableName`.
    at
        Timestamp set by the broker or the producer; POSIX seconds.
    truncated
        The original value's size and digest, if it was cut; None if it is complete.

    """

    topic: TopicName
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    at: float
    truncated: TruncatedValue | None = None

    @property
    def position(self) -> str:
        """Topic, partition and offset as one text, by which messages name the record."""
        return f"{self.topic}:{self.partition}:{self.offset}"


class Outgoing(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One record to be written; without a partition, its key determines the partition."""

    topic: TopicName
    partition: int | None = None
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def content_size(record: Record | Outgoing) -> int:
    """Return the bytes of a record's key and value."""
    return len(record.key or b"") + len(record.value or b"")


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """Position of a group in one partition of an input.

    Parameters
    ----------
    position
        The offset at which the group continues.
    end
        The offset after the last record. Offsets may have gaps, so it does not follow from the
        number of records.
    n_waiting
        How many records wait there, including those of open transactions.
    n_missed
        How many records were deleted before the group read them.

    """

    position: int
    end: int
    n_waiting: int
    n_missed: int = 0


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """How far a group has read and written, at one point in time for each partition.

    Parameters
    ----------
    positions
        The offsets at which the group continues, for the inputs for which it has a position.
    ends
        The offsets after what was written to `state` and `consensus`.
    heeded
        By partition, the offset in `consensus` up to which the group has processed what others
        wrote.
    waiting
        Records that take examples back, are not processed, and are not in `consensus`.

    """

    positions: dict[Place, int]
    ends: dict[Place, int]
    heeded: dict[int, int]
    waiting: Sequence[Outgoing] = ()


class Obstacle(msgspec.Struct, frozen=True, kw_only=True):
    """Obstacle that keeps the records of a partition from being read.

    Parameters
    ----------
    offset
        The first offset that is held back.
    since
        Start time, POSIX seconds; None if that is not known.
    text
        Description in words.

    """

    offset: int
    since: float | None
    text: str


class OffsetReset(msgspec.Struct, frozen=True, kw_only=True):
    """Offset at which a worker starts a partition, if no worker has committed it.

    Parameters
    ----------
    topic
        The topic's name on the broker.
    partition
        Partition of that topic.
    position
        The group's position; None if it has none.
    offset
        Where the worker continues: the first record that still exists; or at the group's position,
        where another program has set it.

    """

    topic: str
    partition: int
    position: int | None
    offset: int


class StalledPartition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition of an input that has records but yields none.

    Parameters
    ----------
    topic
        The topic.
    called
        The topic's name on the broker.
    partition, offset
        Where reading has stopped.
    n_waiting
        How many records wait there.
    still_s
        For how many seconds it has stopped.

    """

    topic: TopicName
    called: str
    partition: int
    offset: int
    n_waiting: int
    still_s: float


class Silence(msgspec.Struct, frozen=True, kw_only=True):
    """A broker that does not answer.

    Parameters
    ----------
    since_s
        For how many seconds.
    reason
        Why, as far as is known.

    """

    since_s: float
    reason: str


class WorkerClient(Protocol):
    """A worker's client for the topics: atomic for what it reads and writes."""

    @property
    def assigned(self) -> frozenset[int]:
        """The partitions that are this worker's, as of the last poll."""

    @property
    def generation(self) -> int:
        """Number of the last distribution of partitions, as of the last poll.

        For a worker that took part in every distribution it rises by one at a time. After a larger
        step, others may have worked on any partition, including those that this worker has again.
        """

    def poll(self, timeout_s: float, held: Set[int] = frozenset()) -> list[Record]:
        """Return the next inputs: of each partition in order, answers before events.

        Returns early with what is available. Records of a partition may come together with the news
        that it is assigned.

        Parameters
        ----------
        held
            Partitions of which nothing is returned: their records wait for a later poll.

        """

    def history(
        self, starts: Mapping[int, Mapping[TopicName, int]], progress: Progress | None = None
    ) -> Iterator[Record]:
        """Return the records of `history_batches`."""
        return chain.from_iterable(self.history_batches(starts, progress))

    def history_batches(
        self, starts: Mapping[int, Mapping[TopicName, int]], progress: Progress | None = None
    ) -> Iterator[Sequence[Record]]:
        """Return what was written to `state` and `consensus` of some partitions, to their end.

        It includes everything committed by any worker before this call, and nothing that was
        aborted. A batch is empty if no record has come for a moment. Between two batches the caller
        may poll and commit.

        Parameters
        ----------
        starts
            For each partition the first offset of each of the two topics, 0 if not given.
        progress
            Called from time to time with the progress.

        Raises
        ------
        ShortTopicError
            If a topic ends before such an offset. Nothing has been returned in this case.

        """

    def commit(self, outgoing: Sequence[Outgoing]) -> dict[Place, int]:
        """Write records and commit the offsets polled so far, atomically.

        Nothing is written by a worker whose partitions were given to others, polled or not.

        Returns
        -------
        For each topic and partition written to, the offset after the last record.

        Raises
        ------
        BrokerError
            If it is not certain that both have happened.

        """

    def lag(self) -> dict[Place, int | None]:
        """Return about how many records wait in each assigned partition of the inputs.

        None if that is not known yet.
        """

    def begun(self) -> Sequence[OffsetReset]:
        """Return where reading did not start where workers had stopped, since the last call."""
        return []

    def stalled(self) -> Sequence[StalledPartition]:
        """Return the partitions that have records but have yielded none for long."""
        return []

    def obstacles(self, places: Iterable[Place]) -> dict[Place, Obstacle]:  # noqa: ARG002
        """Return what keeps partitions from being read, as far as the broker tells."""
        return {}

    def silence(self) -> Silence | None:
        """Return for how long the broker has not answered; None while it answers."""
        return None

    def close(self, *, leave: bool = False) -> None:
        """End; what was polled and not committed is delivered again, here or elsewhere.

        Parameters
        ----------
        leave
            Whether to leave the group, so that others get the partitions at once. Otherwise the
            group reserves them for a while for a worker of the same name (on Kafka, until the
            session times out).

        """


class BrokerError(OSError):
    """The broker cannot be used any longer; start again, as it may have come back."""


class AwayError(BrokerError):
    """The broker, or one of the topics, is away; the reader can be polled until it is back."""


class ShortTopicError(BrokerError):
    """Topics end before the offset to read from: they were recreated, or have lost their end.

    Attributes
    ----------
    reasons
        For each such partition, the topic.

    """

    def __init__(self, reasons: Mapping[int, str]) -> None:
        super().__init__("; ".join(reasons.values()))
        self.reasons = dict(reasons)


class RefusedError(BrokerError):
    """The broker is there but refuses access; starting again does not help."""


class LockedOutError(BrokerError):
    """The broker lets this client in no longer; a new start may find what lets it in."""


class FencedError(BrokerError):
    """Another worker with the same instance name has taken over; do not start again."""


class Reader(Protocol):
    """Reads all partitions of topics from their start or end, or where a group has committed."""

    def poll(self, timeout_s: float) -> list[Record]:
        """Return the next records, committed ones only; an empty list if none came in time."""

    @property
    def caught_up(self) -> bool:
        """Whether everything that was there when the reader was opened has been read."""

    def look_again(self) -> None:
        """Let `caught_up` count what has come since the reader was opened, too."""

    def commit(self) -> None:
        """Let the group's next reader start after what was polled.

        Raises
        ------
        ValueError
            If the reader was opened without a group.

        """

    def close(self) -> None:
        """Close the connection."""


NO_GROUP = "reader has no group whose position it could commit; open one with group=..."


class Writer(Protocol):
    """Appends records, independently of anything read."""

    def send(self, record: Outgoing) -> None:
        """Take a record; it may be sent later."""

    def flush(self) -> None:
        """Return once everything taken is safely stored by the broker.

        Raises
        ------
        BrokerError
            If something is not.

        """

    def close(self) -> None:
        """Flush and close the connection."""


class Topics(Protocol):
    """The topics of one deployment, on any broker."""

    def client(self, *, group: str, instance: str, max_records: int) -> WorkerClient:
        """Join a group of workers under a unique instance name."""

    def reader(
        self, topics: Iterable[TopicName], *, from_end: bool = False, group: str | None = None
    ) -> Reader:
        """Read topics.

        Parameters
        ----------
        topics
            The topics to read.
        from_end
            Whether to start with records that arrive from now on.
        group
            Group whose positions to start from and to commit; a partition that it has not read
            starts at its first record. The reader shares no partitions with others: one reader per
            group.

        """

    def writer(self, program: str) -> Writer:
        """Write to topics."""

    def create(self) -> list[str]:
        """Create the missing topics; return what was done, one line each."""

    def problems(self) -> list[str]:
        """Return what is wrong with the topics, one line each; an empty list if nothing is."""

    def warnings(self) -> list[str]:
        """Return problems that workers can tolerate, one line each; for topics without others."""
        return []

    def requests_kept_s(self) -> float:
        """Return for how many seconds `requests` keeps records, by default for ever."""
        return inf

    def identity(self) -> str:
        """Return what distinguishes these topics from earlier ones with the same names."""

    def names(self) -> Mapping[TopicName, str]:
        """Return the name of each topic on the broker, by default its role."""
        return {name: name for name in ALL_TOPICS}

    def n_partitions(self) -> int:
        """Return the number of partitions of the inputs."""

    def lags(self, group: str) -> dict[Place, int]:
        """Return how many records of each input partition a group has not processed."""
        return {place: each.n_waiting for place, each in self.backlog(group).items()}

    def backlog(self, group: str) -> dict[Place, Backlog]:
        """Return how far a group is in each input partition."""

    def positions(self, group: str) -> dict[Place, int]:
        """Return the offsets at which a group continues, for the inputs for which it has one."""

    def checkpoint(self, group: str) -> Checkpoint:
        """Return positions and ends of each partition at a time when no batch was half written.

        Workers may be running in the meantime.

        Raises
        ------
        BrokerError
            If a partition was never at rest for long enough.

        """

    def obstacles(self, places: Iterable[Place]) -> dict[Place, Obstacle]:  # noqa: ARG002
        """Return what keeps partitions from being read, as far as the broker tells."""
        return {}

    def readable(self, positions: Mapping[Place, int]) -> set[Place]:
        """Return the places that have a committed record at or after an offset.

        The places are those where records wait; by default, whatever waits can be read.
        """
        return set(positions)

    def n_members(self, group: str) -> int:
        """Return how many workers of a group are running."""

    def check_writing(self, group: str) -> None:  # noqa: ARG002
        """Raise a BrokerError if workers of a group could write nothing."""
        return

    def read_besides(self, group: str) -> list[str]:  # noqa: ARG002
        """Return the topics, by name on the broker, of members of a group that are no workers here.

        They may be of another deployment, or of a program that reads some of the inputs.
        """
        return []

    def close(self) -> None:
        """Close the connection."""


# --- Partition of a key, as chosen by Kafka's own clients.
#
# A producer, an annotator's program and a worker put the records of one entity into partitions of
# the same number, whichever of them writes.


_MASK = 0xFFFFFFFF
_SEED = 0x9747B28C
_M = 0x5BD1E995


def partition_of(key: bytes | None, n_partitions: int) -> int:
    """Return the partition of a key; records without one go to the first.

    Examples
    --------
    >>> [partition_of(key, 4) for key in (b"ann", b"bob", b"eve", None)]
    [2, 2, 0, 0]

    """
    return 0 if key is None else (murmur2(key) & 0x7FFFFFFF) % n_partitions


def murmur2(data: bytes) -> int:
    """Return the 32 bits of MurmurHash2 with Kafka's seed, as an unsigned number.

    Examples
    --------
    >>> murmur2(b"foobar") - 2**32  # as Java's clients print it
    -790332482

    References
    ----------
    [^1]: Appleby, A., 2008. MurmurHash2. Kafka: org.apache.kafka.common.utils.Utils.murmur2.

    """
    n_whole = len(data) & ~3
    h = _SEED ^ len(data)
    for (k,) in struct.iter_unpack("<I", data[:n_whole]):
        k = k * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = (h * _M & _MASK) ^ k
    if rest := data[n_whole:]:
        h = (h ^ int.from_bytes(rest, "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15
