"""Broker interface: records, topics, worker clients, readers, writers.

Here everything is bytes in partitions; `connectors.wire` gives them their meaning: `inbound`,
`outbound` and `state_records`. Kafka, a SQLite database and this process's memory each provide
`Topics`.

"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias, get_args

import msgspec

TopicName: TypeAlias = Literal[
    "events", "answers", "predictions", "requests", "consensus", "state", "dead-letters"
]
"""The role of a topic; what it is called on the broker is a matter of configuration."""
Place: TypeAlias = tuple[TopicName, int]
"""A topic and one of its partitions."""
ALL_TOPICS: tuple[TopicName, ...] = get_args(TopicName)
WORKER_INPUTS: tuple[TopicName, ...] = ("answers", "consensus", "events")
"""What a worker reads as it comes; the consensus topic for what others take back."""
COMPACTED: frozenset[TopicName] = frozenset({"consensus", "state"})
"""Topics of which the last record of each key counts."""

Headers: TypeAlias = Sequence[tuple[str, bytes]]
Progress: TypeAlias = Callable[[int, int], None]
"""Called with how many records were read, and about how many there are."""


class UndecodableName(str):
    r"""Name of a header that is not UTF-8, made readable: of `caf` and the byte 0xe9, `caf\xe9`."""

    __slots__ = ()


# Structs and no dataclasses: thousands are made a second, and these are made five times as fast.
class TruncatedValue(msgspec.Struct, frozen=True, kw_only=True):
    """Size and digest of a value of which only the beginning was read.

    Parameters
    ----------
    size
        How many bytes there were.
    sha256
        Their SHA-256, in hexadecimal digits.

    """

    size: int
    sha256: str


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One record as it lies in a topic.

    Parameters
    ----------
    topic, partition, offset
        Where.
    key, value
        Bytes; a value of None is a tombstone.
    headers
        Names with their bytes; a name that is none is `UndecodableName`.
    at
        Timestamp set by the broker or the producer; POSIX seconds.
    truncated
        What the value was before it was cut; None where it is all there.

    """

    topic: TopicName
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    at: float
    truncated: TruncatedValue | None = None


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """One record to be written; without a partition it goes where its key belongs."""

    topic: TopicName
    partition: int | None = None
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """Position of a group in one partition of an input.

    Parameters
    ----------
    position
        The offset at which the group reads on.
    n_waiting
        How many records wait there, those of open transactions included.
    n_missed
        How many records were deleted before the group has read them.

    """

    position: int
    n_waiting: int
    n_missed: int = 0


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """How far a group has read and what it had written by then, each partition at one moment.

    Parameters
    ----------
    positions
        The offsets at which the group reads on, of the inputs of which it has a position.
    ends
        The offsets that follow what was written to `state` and `consensus`.
    heeded
        By partition the offset in `consensus` up to which the group has heeded what others wrote.
    waiting
        What takes examples back, is not heeded, and lies elsewhere than in `consensus`.

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
        Since when, POSIX seconds; None if that is not known.
    text
        What it is, in words.

    """

    offset: int
    since: float | None
    text: str


class OffsetReset(msgspec.Struct, frozen=True, kw_only=True):
    """Offset at which a worker begins a partition, if not at the group's position.

    Parameters
    ----------
    topic
        The topic's name on the broker.
    partition
        Of that topic.
    position
        The group's position; None if it has none.
    offset
        Where the worker reads on: the first record that is still there.

    """

    topic: str
    partition: int
    position: int | None
    offset: int


class StalledPartition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition of an input that has records and yields none.

    Parameters
    ----------
    topic
        The topic.
    called
        The topic's name on the broker.
    partition, offset
        Where it stands still.
    n_waiting
        How many records wait there.
    still_s
        For how many seconds.

    """

    topic: TopicName
    called: str
    partition: int
    offset: int
    n_waiting: int
    still_s: float


class WorkerClient(Protocol):
    """A worker's hold on the topics: what it reads and writes counts together or not at all."""

    @property
    def assigned(self) -> frozenset[int]:
        """The partitions that are this worker's, as of the last poll."""
        ...

    @property
    def generation(self) -> int:
        """Number of the last distribution of partitions, as of the last poll.

        For a worker that took part in every one it rises by one at a time. After a larger step,
        others may have worked on any partition, also on those that are this worker's again.
        """
        ...

    def poll(self, timeout_s: float) -> list[Record]:
        """Return the next inputs: of each partition in order, answers before events.

        Returns early with what there is. Records of a partition may come together with the news
        that it is assigned.
        """
        ...

    def history(
        self, starts: Mapping[int, Mapping[TopicName, int]], progress: Progress | None = None
    ) -> Iterator[Record]:
        """Return what was written to `state` and `consensus` of some partitions, to their end.

        Everything committed by any worker before this call is in it; what was aborted is not.

        Parameters
        ----------
        starts
            For each partition the first offset of each of the two topics, 0 for one not named.
        progress
            Told from time to time how far it is.

        Raises
        ------
        ShortTopicError
            If a topic ends before such an offset. Nothing has been returned then.

        """
        ...

    def commit(self, outgoing: Sequence[Outgoing]) -> dict[tuple[TopicName, int], int]:
        """Write records and commit the offsets polled so far, atomically.

        Nothing is written for a worker whose partitions were given to others, polled or not.

        Returns
        -------
        For each topic and partition written to, the offset that follows the last record.

        Raises
        ------
        BrokerError
            If it cannot be said that both have happened.

        """
        ...

    def lag(self) -> dict[tuple[TopicName, int], int | None]:
        """Return about how many records wait in each assigned partition of the inputs.

        None where that is not known yet.
        """
        ...

    def begun(self) -> Sequence[OffsetReset]:
        """Return where reading did not begin at the group's position, since last asked."""
        ...

    def stalled(self) -> Sequence[StalledPartition]:
        """Return the partitions that have records and yield none for long."""
        ...

    def obstacles(self, places: Iterable[Place]) -> dict[Place, Obstacle]:
        """Return what keeps partitions from being read, as far as the broker tells."""
        ...

    def close(self, *, leave: bool = False) -> None:
        """End; what was polled and not committed is delivered again, here or elsewhere.

        Parameters
        ----------
        leave
            Whether to leave the group, so that others get the partitions at once. Otherwise the
            group keeps them for a while for a worker of the same name.

        """
        ...


class BrokerError(OSError):
    """The broker cannot be worked with any longer; start again, it may have come back."""


class ShortTopicError(BrokerError):
    """Topics end before the offset to read from: they were recreated, or have lost their end.

    Attributes
    ----------
    reasons
        For each such partition, which topic it is.

    """

    def __init__(self, reasons: Mapping[int, str]) -> None:
        super().__init__("; ".join(reasons.values()))
        self.reasons = dict(reasons)


class RefusedError(BrokerError):
    """The broker is there and does not let us work; starting again does not help."""


class FencedError(BrokerError):
    """Another worker with the same instance name has taken over; do not start again."""


class Reader(Protocol):
    """Reads all partitions of topics from their start or end, or where a group has committed."""

    def poll(self, timeout_s: float) -> list[Record]:
        """Return the next records, committed ones only; an empty list if none came in time."""
        ...

    @property
    def caught_up(self) -> bool:
        """Whether everything has been read that was there when the reader was opened."""
        ...

    def commit(self) -> None:
        """Let the group's next reader begin behind what was polled.

        Raises
        ------
        ValueError
            If the reader was opened without a group.

        """
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


NO_GROUP = "reader has no group whose position it could commit; open one with group=..."


class Writer(Protocol):
    """Appends records, not bound to anything read."""

    def send(self, record: Outgoing) -> None:
        """Take a record; it may leave later."""
        ...

    def flush(self) -> None:
        """Return when everything taken is safe with the broker.

        Raises
        ------
        BrokerError
            If something is not.

        """
        ...

    def close(self) -> None:
        """Flush and close the connection."""
        ...


class Topics(Protocol):
    """The topics of one deployment, on whatever broker."""

    def client(self, *, group: str, instance: str, max_records: int) -> WorkerClient:
        """Join a group of workers under an instance name of one's own."""
        ...

    def reader(
        self, topics: Iterable[TopicName], *, from_end: bool = False, group: str | None = None
    ) -> Reader:
        """Read topics.

        Parameters
        ----------
        topics
            Which.
        from_end
            Whether to begin with what comes from now on.
        group
            Whose positions to begin at and to commit; what a group has not read begins at its
            first record. It shares no partitions with others: one reader a group.

        """
        ...

    def writer(self, program: str) -> Writer:
        """Write to topics."""
        ...

    def create(self) -> list[str]:
        """Make the topics that are missing; return what was done, one line each."""
        ...

    def problems(self) -> list[str]:
        """Return what is wrong with the topics, one line each; an empty list if nothing is."""
        ...

    def warnings(self) -> list[str]:
        """Return what workers can live with, one line each; for topics without problems."""
        ...

    def identity(self) -> str:
        """Return what tells these topics from others that had the same names before."""
        ...

    def names(self) -> Mapping[TopicName, str]:
        """Return what each topic is called on the broker."""
        ...

    def n_partitions(self) -> int:
        """Return the number of partitions of the inputs."""
        ...

    def lags(self, group: str) -> dict[tuple[TopicName, int], int]:
        """Return how many records of each input partition a group has not worked off."""
        ...

    def backlog(self, group: str) -> dict[Place, Backlog]:
        """Return how far a group is in each input partition."""
        ...

    def positions(self, group: str) -> dict[Place, int]:
        """Return the offsets at which a group reads on, of the inputs of which it has one."""
        ...

    def checkpoint(self, group: str) -> Checkpoint:
        """Return a moment of each partition at which no batch was half written.

        Workers may be at work meanwhile.

        Raises
        ------
        BrokerError
            If a partition never stood still for long enough.

        """
        ...

    def obstacles(self, places: Iterable[Place]) -> dict[Place, Obstacle]:
        """Return what keeps partitions from being read, as far as the broker tells."""
        ...

    def readable(self, positions: Mapping[Place, int]) -> set[Place]:
        """Return the places that hold a committed record at or behind an offset."""
        ...

    def n_members(self, group: str) -> int:
        """Return how many workers of a group are at work."""
        ...

    def read_besides(self, group: str) -> list[str]:
        """Return what else members of a group read: names on the broker, of other topics."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


# --- Partition of a key, as Kafka's own clients choose it.
#
# A producer, an annotator's program and a worker put the records of one entity into partitions of
# the same number, whatever wrote them.


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
