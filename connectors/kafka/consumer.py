"""Member of a consumer group: which partitions are its own, and as of which generation.

The group reassigns partitions whenever a member joins or leaves. Between the start of a rebalance
and the time when all members know its outcome, a partition that was ours may no longer be. The
broker decides by the generation that a commit states; therefore the generation under which records
were last read is kept here.

"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import suppress
from functools import partial
from itertools import groupby, islice
from typing import Any

from connectors.kafka.client import CLIENT_ERRORS, Connection, within
from connectors.kafka.client_import import (
    EVERYTHING,
    ConsumerRebalanceListener,
    MemberState,
    RangePartitionAssignor,
    TopicPartition,
    await_fetches,
    fetched_to,
    forget_positions,
    has_lost_its_name,
    join,
    join_patiently,
    kafka_errors,
    unread,
)
from connectors.kafka.topic_identity import RESET_HINT, beyond_end, missing
from connectors.topics import (
    WORKER_INPUTS,
    BrokerError,
    OffsetReset,
    Place,
    Record,
    RefusedError,
    TopicName,
    content_size,
)

# Members learn from the answer to a heartbeat that others join or leave; none continues to read
# until all know.
_LONGEST_BEAT_S = 0.3
_SETTLING_S = 5.0
_CHECK_EVERY_S = 1.0
_MAX_RESETS = 3  # at most this often in one fetch, then others get their turn


class UnlikeInputsError(BrokerError):
    """The inputs have different partitions: a topic was deleted, or was given more partitions."""


class GroupConsumer:
    """Reads the inputs of a worker in a group.

    Attributes
    ----------
    membership
        Group, generation and member id under which records were last read; None while it is not
        certain that any partition is ours.
    known_as
        Member id that the group last gave this member; None if it has not had one yet.
    numbers
        The partitions that are ours, the same for all inputs.

    Raises
    ------
    BrokerError
        If the broker cannot be reached, or lacks a topic, or if the topics have different
        partitions.

    """

    # _known_at  when the positions of all inputs were last known
    # _begun     where reading did not start at the group's position, since the last call of `begun`

    def __init__(self, connection: Connection, *, group: str, instance: str) -> None:
        timeouts = connection.timeouts
        self.membership: Any = None
        self.known_as: str | None = None
        self.numbers: frozenset[int] = frozenset()
        self._connection = connection
        self._topics = [connection.names[name] for name in WORKER_INPUTS]
        self._known_at = self._checked_at = 0.0
        self._begun: list[OffsetReset] = []
        self._consumer = connection.consumer(
            group_id=group,
            group_instance_id=instance,
            # This class decides where to start without a valid position, and reports it.
            auto_offset_reset="none",
            # Other strategies could split the events and the answers of a partition between
            # members.
            partition_assignment_strategy=[RangePartitionAssignor],
            session_timeout_ms=round(1e3 * timeouts.session_s),
            # A batch may take long; the session timeout tells whether a worker is alive.
            max_poll_interval_ms=3_600_000,
            heartbeat_interval_ms=round(1e3 * min(_LONGEST_BEAT_S, timeouts.session_s / 4)),
        )
        join_patiently(self._consumer, _SETTLING_S)
        self._rebalances = _RebalanceCounter(partial(forget_positions, self._consumer))
        try:
            self._consumer.subscribe(self._topics, listener=self._rebalances)
            # As the group's leader, a member that does not know the partitions would assign none.
            within(timeouts.connect_s, "describe topics", self._learn_topics)
        except CLIENT_ERRORS as error:
            with suppress(*CLIENT_ERRORS):
                within(timeouts.close_s, "close", self.close)
            raise connection.broker_error(error, "describe topics") from error

    @property
    def n_moves(self) -> int:
        """Number of times that partitions were assigned to this member, or lost."""
        return self._rebalances.count

    def settle(self) -> bool:
        """Wait while the group rebalances; return whether the outcome is known."""
        with suppress(kafka_errors.KafkaConnectionError):  # the next call asks again
            return join(self._consumer)
        return False

    def fetch(self, wait_s: float) -> Mapping[TopicPartition, list[Record]]:
        """Return all records that have arrived; wait at most this long for the first.

        Raises
        ------
        RefusedError
            If a partition ends before the group's position.

        """
        return self._fetched(
            lambda: self._consumer.poll(timeout_ms=round(1e3 * wait_s), max_records=EVERYTHING)
        )

    def fetch_more(self, wait_s: float) -> Mapping[TopicPartition, list[Record]]:
        """Return what the last fetch requested; wait for it at most this long."""
        return self._fetched(lambda: await_fetches(self._consumer, wait_s))

    def begun(self) -> list[OffsetReset]:
        """Return where reading did not start at the group's position, since the last call."""
        begun, self._begun = self._begun, []
        return begun

    def follow(self) -> bool:
        """Record which partitions are ours; return whether that is final.

        Raises
        ------
        FencedInstanceIdError
            If another member uses our name.
        UnlikeInputsError
            If the inputs have different partitions.

        """
        membership = self._consumer.group_metadata()
        if membership.state is MemberState.REBALANCING:
            return False  # the broker compares with the last settled generation
        if has_lost_its_name(self._consumer):
            raise kafka_errors.FencedInstanceIdError
        if membership.generation_id < 0:
            self.membership, self.numbers = None, frozenset()
            return False
        numbers: dict[str, set[int]] = {topic: set() for topic in self._topics}
        for partition in self.partitions():
            numbers[partition.topic].add(partition.partition)
        self.membership, self.numbers = (
            membership,
            _same(numbers, "; a program that is no worker is in the group: give it one of its own"),
        )
        self.known_as = membership.member_id
        return True

    def partitions(self) -> set[TopicPartition]:
        """Return the partitions that the group assigned to us, of each topic."""
        return set(self._consumer.assignment())

    def position(self, partition: TopicPartition, wait_s: float = 0.0) -> int | None:
        """Return the offset that is fetched next, None if it is not known in time."""
        timeout_ms = round(1e3 * wait_s)
        try:
            at: int | None = self._consumer.position(partition, timeout_ms=timeout_ms)
        except kafka_errors.NoOffsetForPartitionError as error:
            self._seek_start(dict.fromkeys(error.args[0]))
            at = self._consumer.position(partition, timeout_ms=timeout_ms)
        return at

    def fetched(self, partition: TopicPartition) -> int | None:
        """Return the offset up to which a partition was fetched, None if that is not known."""
        return fetched_to(self._consumer, partition)

    def behind(self, partition: TopicPartition) -> int | None:
        """Return how many records have not been fetched, None if that is not known."""
        return unread(self._consumer, partition)

    def check_positions(self, now: float) -> None:
        """Raise an error if a position is unknown for too long; to be called regularly.

        `now` is the time spent waiting since the member was created, in seconds.

        Positions are unknown while a transaction of a previous worker is open. The broker times out
        such transactions, but if it has lost track of one, all members wait for ever.
        """
        if now - self._checked_at < _CHECK_EVERY_S:
            return
        self._checked_at = now
        unknown = [partition for partition in self.partitions() if self.position(partition) is None]
        stall_s = self._connection.timeouts.stall_s
        if not unknown:
            self._known_at = now
        elif now - self._known_at > stall_s:
            where = ", ".join(
                f"{partition.topic} partition {partition.partition}" for partition in unknown
            )
            raise BrokerError(
                f"broker has not said for {stall_s:g} s where to read on, is a transaction left "
                f"open? {where}"
            )

    def pause(self, partitions: set[TopicPartition]) -> None:
        """Stop fetching from these partitions, and resume all others."""
        paused = self._consumer.paused()
        self._consumer.resume(*(paused - partitions))
        self._consumer.pause(*((partitions & self.partitions()) - paused))

    def close(self) -> None:
        """Close the connection; the group keeps the membership until the session times out."""
        timeout_ms = round(1e3 * self._connection.timeouts.close_s / 3)
        self._consumer.close(autocommit=False, timeout_ms=timeout_ms)

    def _fetched(
        self, fetch: Callable[[], Mapping[TopicPartition, list[Record]]]
    ) -> Mapping[TopicPartition, list[Record]]:
        for _ in range(_MAX_RESETS):
            try:
                return fetch()
            except kafka_errors.KafkaConnectionError:
                return {}  # the broker that leads the group is away, and the next poll asks again
            except kafka_errors.NoOffsetForPartitionError as error:
                self._seek_start(dict.fromkeys(error.args[0]))
            except kafka_errors.OffsetOutOfRangeError as error:
                self._seek_start(error.args[0])
            except kafka_errors.LogTruncationError as error:
                if None in error.divergent_offsets.values():
                    raise  # the broker does not know the offset: the next start asks again
                where = ", ".join(
                    f"topic {topic} partition {number} from offset {at.offset}"
                    for (topic, number), at in sorted(error.divergent_offsets.items())
                )
                raise RefusedError(
                    f"inputs have lost their end, which was read already: {where}; {RESET_HINT}"
                ) from error
        return {}

    def _seek_start(self, positions: Mapping[TopicPartition, int | None]) -> None:
        """Continue at the first existing record where the group has no usable position.

        Parameters
        ----------
        positions
            The group's positions, None where it has none.

        """
        timeout_ms = round(1e3 * self._connection.timeouts.request_s)
        starts = self._consumer.beginning_offsets(list(positions), timeout_ms=timeout_ms)
        ends = self._consumer.end_offsets(list(positions), timeout_ms=timeout_ms)
        for partition, position in positions.items():
            start = starts[partition]
            if position is not None and position > start:
                raise beyond_end(partition.topic, partition.partition, position)
            self._consumer.seek(partition, start)
            # Of an empty one nothing is read: every start would report it again.
            if ends[partition]:
                self._begun.append(
                    OffsetReset(
                        topic=partition.topic,
                        partition=partition.partition,
                        position=position,
                        offset=start,
                    )
                )

    def _learn_topics(self) -> None:
        numbers = {topic: self._consumer.partitions_for_topic(topic) for topic in self._topics}
        if absent := [topic for topic, found in numbers.items() if not found]:
            raise BrokerError(missing(absent))
        _same(numbers)


def _same(numbers: Mapping[str, set[int]], why: str = "") -> frozenset[int]:
    """Return the partitions, which must be the same for all inputs."""
    first, *others = numbers.values()
    if any(other != first for other in others):
        found = ", ".join(f"{topic} {sorted(each)}" for topic, each in numbers.items())
        raise UnlikeInputsError(f"inputs must have the same partitions, found {found}{why}")
    return frozenset(first)


class _RebalanceCounter(ConsumerRebalanceListener):  # type: ignore[misc]
    """Counts how often partitions were reassigned; the client calls it on its own thread."""

    def __init__(self, forget: Callable[[], None]) -> None:
        self.count = 0
        self._forget = forget

    def on_partitions_assigned(self, _assigned: object) -> None:
        self._forget()
        self.count += 1

    on_partitions_lost = on_partitions_assigned

    def on_partitions_revoked(self, _revoked: object) -> None:
        """Do nothing yet: they remain ours until the next assignment."""


# --- Records fetched and not yet polled: answers go first, and the queues are bounded.
#
# A consumer returns what it has fetched partition by partition: with a backlog, thousands of events
# would come before the first answer. Here the records wait in one queue per topic and partition,
# and events wait for the answers of their partition as long as these keep coming. The owner asks
# which queues are full and stops fetching for those.


_FULL_POLLS = 8
_FULL_BYTES = 4 * 2**20
_FULL_OF_ANSWERS = 64 * 2**20
_PATIENCE_S = 0.5


class Prefetch:
    """Queues of the inputs of some partitions.

    Parameters
    ----------
    max_records
        The largest number of records returned together.

    Examples
    --------
    >>> inputs = Prefetch(max_records=2)
    >>> inputs.assign([0], now=0.0)
    >>> for topic in ("events", "events", "answers"):
    ...     record = Record(topic=topic, partition=0, offset=0, key=None, value=b"", at=0.0)
    ...     inputs.put([record], now=0.0)
    >>> [[record.topic for record in inputs.take({0: 0}, now=0.0)] for _ in range(3)]
    [['answers', 'events'], ['events'], []]

    """

    # _queues    by topic and partition, in the order in which topics are taken
    # _bytes     size of each queue
    # _moved_at  when the last answer of a partition came, or when the partition was assigned

    def __init__(self, max_records: int) -> None:
        self._max_records = max_records
        self._queues: dict[Place, deque[Record]] = {}
        self._bytes: dict[Place, int] = {}
        self._moved_at: dict[int, float] = {}
        self._next = 0

    def assign(self, numbers: Iterable[int], now: float) -> None:
        """Drop everything and start over with these partitions."""
        self._moved_at = dict.fromkeys(sorted(numbers), now)
        self._queues = {(t, n): deque() for t in WORKER_INPUTS for n in self._moved_at}
        self._bytes = dict.fromkeys(self._queues, 0)

    def put(self, records: Iterable[Record], now: float) -> None:
        """Add records of partitions that are assigned."""
        for place, found in groupby(records, _place):
            queue = self._queues[place]
            before = len(queue)
            queue.extend(found)
            self._bytes[place] += sum(map(content_size, islice(queue, before, None)))
            if place[0] == "answers":
                self._moved_at[place[1]] = now

    def waiting(self, topic: TopicName, number: int) -> int | None:
        """Return the offset of the next record to be taken from a queue, None if it is empty."""
        queue = self._queues.get((topic, number))
        return queue[0].offset if queue else None

    def n_waiting(self, topic: TopicName, number: int) -> int:
        """Return how many records are in a queue."""
        return len(self._queues.get((topic, number), ()))

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def full(self) -> set[Place]:
        """Return the queues that hold enough for now; the limit for answers is much higher."""
        many = _FULL_POLLS * self._max_records
        return {
            place
            for place, queue in self._queues.items()
            if self._bytes[place] >= (_FULL_OF_ANSWERS if place[0] == "answers" else _FULL_BYTES)
            or (place[0] != "answers" and len(queue) >= many)
        }

    def take(
        self, behind: Mapping[int, int | None], now: float, held: Set[int] = frozenset()
    ) -> list[Record]:
        """Return the records to process next.

        Parameters
        ----------
        behind
            For each partition, the number of answers at the broker that have not been fetched; None
            while that is not known.
        now
            Seconds, on the clock of `assign` and `put`; it should stand still while no client
            waits.
        held
            Partitions of which nothing is returned.

        """
        taken: list[Record] = []
        numbers = [number for number in self._in_turn() if number not in held]
        for topic in WORKER_INPUTS:
            for number in numbers:
                if topic == "events" and self._answers_come(number, behind.get(number), now):
                    continue
                place = topic, number
                queue = self._queues[place]
                while queue and len(taken) < self._max_records:
                    record = queue.popleft()
                    self._bytes[place] -= content_size(record)
                    taken.append(record)
        return taken

    def _in_turn(self) -> list[int]:
        """Return the partitions, starting with a different one each time."""
        numbers = list(self._moved_at)
        if not numbers:
            return numbers
        self._next = (self._next + 1) % len(numbers)
        return numbers[self._next :] + numbers[: self._next]

    def _answers_come(self, number: int, behind: int | None, now: float) -> bool:
        """Return whether events of a partition must wait for its answers.

        Answers that exist but do not arrive belong to a transaction that a producer has not ended;
        events do not wait for it.
        """
        if self._queues["answers", number]:
            return True
        return behind != 0 and now - self._moved_at[number] < _PATIENCE_S


def _place(record: Record) -> Place:
    return record.topic, record.partition
