"""A worker's client for Kafka: it reads as a member of a group and writes in transactions.

What a worker writes and the positions of what it read become visible together or not at all, and
only while its partitions are its own: the broker checks the group's generation in each transaction.
After an error nothing is retried here; the client refuses all further use, and the worker starts
again.

"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from functools import partial
from threading import Event, Thread
from time import monotonic
from typing import Any

from connectors.kafka.admin import Administration
from connectors.kafka.client import CLIENT_ERRORS, Connection, check_sizes, is_late, within
from connectors.kafka.client_import import (
    OffsetAndMetadata,
    TopicPartition,
    begin_commit,
    close_producer,
    identity_of,
    kafka_errors,
    learn_topics,
    send_positions,
)
from connectors.kafka.consumer import GroupConsumer, Prefetch, UnlikeInputsError
from connectors.kafka.reader_writer import read_history
from connectors.kafka.record_codec import put
from connectors.kafka.topic_identity import Shape, check_same, missing, more_partitions
from connectors.stalls import STALL_S, StallTracker, WakingClock
from connectors.topics import (
    BrokerError,
    FencedError,
    LockedOutError,
    Obstacle,
    OffsetReset,
    Outgoing,
    Place,
    Progress,
    Record,
    RefusedError,
    Silence,
    StalledPartition,
    TopicName,
    WorkerClient,
)
from connectors.wire.outbound import size_of

_SLICE_S = 0.1
_MORE_S = 0.005
_TRACK_EVERY_S = 1.0


class KafkaWorkerClient(WorkerClient):
    """Client of one worker of a group."""

    # _polled    next offset of each input polled since the last commit
    # _buffered  the assignment of partitions (`n_moves`) to which the buffered inputs belong
    # _told      the assignment that the worker knows of
    # _awake     clock of the time spent waiting
    # _lags      the lags since the last poll, None if not requested
    # _others    instance names of the other members, at the start and then at the last assignment
    # _shapes    the topics as they were when this worker started
    # _foreign   positions that another program had set by then; empty once reported
    # _stalls    since when partitions have yielded none of their waiting records

    def __init__(
        self,
        administration: Administration,
        *,
        group: str,
        instance: str,
        max_records: int,
    ) -> None:
        self._connection = connection = administration.connection
        self._timeouts = connection.timeouts
        self._administration = administration
        self._group = group
        self._instance = instance
        self._inputs = Prefetch(max_records)
        self._max_records = max_records
        self._buffered = self._told = 0
        self._awake = WakingClock(2 * _SLICE_S)
        self._polled: dict[TopicPartition, int] = {}
        self._can_write = self._is_closed = False
        self._broken: BrokerError | None = None
        self._lags: dict[Place, int | None] | None = None
        self._stalls: StallTracker[TopicPartition] = StallTracker()
        self._tracked_at = 0.0
        self._shapes = self._checked_shapes()
        self._others: set[str] = set()
        self._follow_members()  # one that is dead by now will be given up before we are a member
        self._producer = connection.transactional_producer(self._transactional_id(instance))
        learn_topics(self._producer, connection.names.values())
        try:
            self._member = GroupConsumer(connection, group=group, instance=instance)
        except BrokerError:
            self._close_producer(self._timeouts.close_s)
            raise
        self._monitor = TopicMonitor(connection, self._shapes)

    @property
    def assigned(self) -> frozenset[int]:
        return self._member.numbers

    @property
    def generation(self) -> int:
        membership = self._member.membership
        return -1 if membership is None else int(membership.generation_id)

    def poll(self, timeout_s: float, held: Set[int] = frozenset()) -> list[Record]:
        """Return the next inputs, answers before events; none if partitions were reassigned.

        While the group rebalances, it waits for the outcome, at most a few seconds.
        """
        self._check()
        if self._monitor.fault is not None:
            self._broken = self._monitor.fault
            raise self._broken
        member = self._member
        self._lags = None
        start = monotonic()
        left_s = 0.0 if len(self._inputs) else timeout_s
        try:
            while True:
                if not member.settle():
                    return []
                member.pause({self._connection.partition(*full) for full in self._inputs.full()})
                self._buffer(member.fetch(min(left_s, _SLICE_S)))
                if 0 < len(self._inputs) < self._max_records:
                    # The pending fetch was answered as soon as there was one record: more have
                    # arrived since then.
                    self._buffer(member.fetch_more(_MORE_S))
                if member.follow():
                    self._check_numbers()
                    self._prepare_to_write()
                    member.check_positions(self._awake())
                    self._track()
                    if self._told != member.n_moves:
                        self._told = member.n_moves
                        self._follow_members()
                        return []
                    records = self._inputs.take(self._answers_behind(), self._awake(), held)
                    if records:
                        return self._note(records)
                left_s = max(0.0, start + timeout_s - monotonic())
                if left_s == 0.0:
                    return []
        except UnlikeInputsError as error:
            raise self._fail(self._monitor.change(self._administration) or error, "read") from error
        except CLIENT_ERRORS as error:
            raise self._fail(error, "read") from error

    def history_batches(
        self, starts: Mapping[int, Mapping[TopicName, int]], progress: Progress | None = None
    ) -> Iterator[Sequence[Record]]:
        self._check()
        return read_history(
            self._administration,
            starts,
            progress=progress,
            keep_alive=self._keep_alive,
        )

    def commit(self, outgoing: Sequence[Outgoing]) -> dict[Place, int]:
        """Write records and commit the offsets polled so far, atomically.

        Raises
        ------
        ValueError
            If a record is larger than any topic accepts.
        FencedError
            If another worker has taken over this one's name.
        BrokerError
            If it is not certain that both have happened.

        """
        self._check()
        check_sizes(outgoing)
        if not outgoing and not self._polled:
            return {}
        membership = self._member.membership
        try:
            if membership is None or self._told != self._member.n_moves:
                raise BrokerError("partitions were reassigned since the last poll")
            # Even if nothing was polled: without a position, the broker does not check the
            # generation.
            offsets = {
                partition: OffsetAndMetadata(
                    self._past_ends(partition, offset), self._mark(partition), -1
                )
                for partition, offset in (self._polled or self._position()).items()
            }
            ends = transact(
                self._producer,
                self._connection,
                outgoing,
                offsets,
                membership,
                timeout_s=self._timeouts.transaction_s + self._timeouts.request_s,
            )
        except CLIENT_ERRORS as error:
            if not isinstance(error, BrokerError):  # otherwise it would hang, or nothing is open
                with suppress(*CLIENT_ERRORS):
                    within(self._timeouts.request_s, "abort", self._producer.abort_transaction)
            if isinstance(error, _LateError) or is_late(error):
                raise self._fail(self._too_slow(outgoing), "commit") from error
            raise self._fail(error, "commit") from error
        self._polled.clear()
        return ends

    def lag(self) -> dict[Place, int | None]:
        self._check()
        if self._lags is None:
            self._lags = {}
            for partition in self._member.partitions():
                here = self._connection.place(partition)
                behind = self._member.behind(partition)
                waiting = self._inputs.n_waiting(*here)
                self._lags[here] = None if behind is None else behind + waiting
        return self._lags

    def begun(self) -> list[OffsetReset]:
        begun, ours = self._member.begun(), self._member.partitions()
        if ours:
            begun += [
                OffsetReset(
                    topic=partition.topic,
                    partition=partition.partition,
                    position=offset,
                    offset=offset,
                )
                for partition, offset in self._foreign.items()
                if partition in ours
            ]
            self._foreign.clear()
        return begun

    def stalled(self) -> list[StalledPartition]:
        member, now = self._member, self._awake()
        return [
            StalledPartition(
                topic=self._connection.roles[partition.topic],
                called=partition.topic,
                partition=partition.partition,
                offset=member.fetched(partition) or 0,
                n_waiting=member.behind(partition) or 0,
                still_s=still_s,
            )
            for partition, still_s in self._stalls.still(now).items()
            if still_s >= STALL_S
        ]

    def obstacles(self, places: Iterable[Place]) -> dict[Place, Obstacle]:
        ask = partial(self._administration.obstacles, list(places))
        return within(self._timeouts.request_s, "describe transactions", ask)

    def silence(self) -> Silence | None:
        return self._monitor.silence

    def close(self, *, leave: bool = False) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._monitor.close()
            with suppress(*CLIENT_ERRORS):
                within(self._timeouts.close_s, "close", partial(self._end, leave=leave))

    # --- internal

    def _buffer(self, batches: Mapping[TopicPartition, list[Record]]) -> None:
        member = self._member
        now = self._awake()
        if self._buffered != member.n_moves:
            self._buffered = member.n_moves
            if self._polled:
                raise BrokerError("partitions were reassigned before what was polled was committed")
            self._inputs.assign({partition.partition for partition in member.partitions()}, now)
        for found in batches.values():
            self._inputs.put(found, now)

    def _prepare_to_write(self) -> None:
        """End the transactions of a previous worker of our name.

        Called only once the group knows us: the previous worker, which then asks the group who has
        taken over, must find us there.
        """
        if self._member.numbers and not self._can_write:
            prepare_transactions(self._producer, self._connection)
            self._can_write = True

    def _follow_members(self) -> None:
        """End the transactions in which members were killed that the group has given up.

        Nothing is lost: they could not commit what they wrote, as the broker checks the generation.
        It would end such a transaction too, but only when its timeout is over, and until then
        no client knows the state and the positions of its partitions.
        """
        with suppress(BrokerError):  # then the broker ends them
            members = self._administration.members(self._group).keys() - {self._instance}
            for name in sorted(self._others - members):
                with suppress(BrokerError):
                    self._end_transaction_of(name)
            self._others = members

    def _end_transaction_of(self, instance: str) -> None:
        """End the open transaction of another worker, if there is one, by taking over its id."""
        transactional_id = self._transactional_id(instance)
        if not self._administration.has_open_transaction(transactional_id):
            return
        producer = self._connection.transactional_producer(transactional_id)
        doing = f"end the transaction of {instance!r}"
        try:
            within(self._timeouts.request_s, doing, producer.init_transactions)
        except CLIENT_ERRORS as error:
            raise self._connection.broker_error(error, doing) from error
        finally:
            with suppress(*CLIENT_ERRORS):
                close_producer(producer, self._timeouts.close_s / 3)

    def _transactional_id(self, instance: str) -> str:
        return f"{self._group}-{instance}"

    def _answers_behind(self) -> dict[int, int | None]:
        member, partition = self._member, self._connection.partition
        return {n: member.behind(partition("answers", n)) for n in member.numbers}

    def _note(self, records: list[Record]) -> list[Record]:
        for record in records:
            partition = self._connection.partition(record.topic, record.partition)
            self._polled[partition] = record.offset + 1
        return records

    def _position(self) -> dict[TopicPartition, int]:
        """Return the position of one input, for a commit without polled records."""
        partition = min(self._member.partitions())
        at = self._inputs.waiting(*self._connection.place(partition))
        if at is None:
            at = self._member.position(partition, self._timeouts.transaction_s)
        if at is None:
            raise BrokerError(
                f"broker does not say where topic {partition.topic} is to be read on, is a "
                f"transaction left open? partition {partition.partition}"
            )
        return {partition: at}

    def _past_ends(self, partition: TopicPartition, offset: int) -> int:
        """Return the position to commit for an input that was polled up to `offset`.

        A transaction marker takes an offset but yields no record: a group whose position stayed
        before the last one would seem to lag for ever.
        """
        if self._inputs.n_waiting(*self._connection.place(partition)):
            return offset
        return max(offset, self._member.fetched(partition) or 0)

    def _keep_alive(self) -> None:
        """Remain a member of the group during a long operation."""
        try:
            self._member.pause(self._member.partitions())
            self._member.settle()
            self._buffer(self._member.fetch(0.0))
        except CLIENT_ERRORS as error:
            raise self._fail(error, "read") from error

    def _check(self) -> None:
        if self._is_closed:
            raise BrokerError("worker client is closed; open a new one")
        if self._broken is not None:
            raise BrokerError(f"client is broken ({self._broken}); open a new one")

    def _fail(self, error: BaseException, doing: str) -> BrokerError:
        """Return the error to raise, and refuse all further use."""
        if isinstance(error, kafka_errors.FencedInstanceIdError) or (
            not isinstance(error, BrokerError | kafka_errors.KafkaTimeoutError)
            and self._has_successor()
        ):
            self._broken = FencedError(
                f"another worker of group {self._group!r} bears the name {self._instance!r} and "
                "has taken over; each needs an instance name of its own"
            )
        else:
            # A topic that is gone explains a timeout, or that the broker has ended a transaction.
            error = self._monitor.fault or error
            self._broken = self._connection.broker_error(error, doing)
        return self._broken

    def _too_slow(self, outgoing: Sequence[Outgoing]) -> BrokerError:
        n_bytes = sum(size_of(record) for record in outgoing)
        return BrokerError(
            f"broker {','.join(self._connection.servers)} did not answer in time to commit a "
            f"batch of {n_bytes / 1e3:.0f} kB; if this repeats on a network that works, make "
            "worker.batch smaller, raise the quota of this client (producer_byte_rate), or see "
            "whether enough brokers are up (min.insync.replicas)"
        )

    def _has_successor(self) -> bool:
        """Return whether the group knows another member under our name."""
        ours = self._member.known_as
        if ours is None:
            return False  # the member with our name may be this worker, now or earlier
        ask = partial(self._administration.members, self._group)
        with suppress(BrokerError):
            members = within(self._timeouts.request_s, "describe the group", ask)
            return members.get(self._instance) not in (None, ours)
        return False

    def _end(self, *, leave: bool) -> None:
        # Nothing more may be written for the partitions once the group gives them to others.
        self._close_producer(self._timeouts.close_s / 3)
        self._member.close()
        ours = self._member.known_as
        if leave and ours is not None:
            self._administration.remove_member(self._group, self._instance, ours)

    def _close_producer(self, timeout_s: float) -> None:
        with suppress(*CLIENT_ERRORS):
            within(timeout_s, "close", partial(close_producer, self._producer, timeout_s))

    # --- checks of the topics, and stall tracking

    def _checked_shapes(self) -> dict[TopicName, Shape]:
        """Return the current topics, after checking that the group's positions belong to them."""
        found = self._administration.shapes()
        if absent := [self._connection.names[name] for name, each in found.items() if each is None]:
            raise BrokerError(missing(absent))
        shapes = {name: shape for name, shape in found.items() if shape is not None}
        marked = self._administration.marked_positions(self._group)
        self._foreign = {
            partition: offset for partition, (offset, is_own) in marked.items() if not is_own
        }
        return shapes

    def _check_numbers(self) -> None:
        """Refuse partitions that the topics did not have when this worker started."""
        n_known, numbers = self._shapes["events"].n_partitions, self._member.numbers
        if numbers and max(numbers) >= n_known:
            called = self._connection.names["events"]
            raise RefusedError(more_partitions(called, n_known, max(numbers) + 1, "this worker"))

    def _mark(self, partition: TopicPartition) -> str:
        return self._shapes[self._connection.roles[partition.topic]].mark

    def _track(self) -> None:
        """Record the positions of partitions with records at the broker but none buffered here."""
        now = self._awake()
        if now - self._tracked_at < _TRACK_EVERY_S:
            return
        self._tracked_at = now
        member = self._member
        positions = {}
        for partition in member.partitions():
            at = member.fetched(partition)
            is_empty_here = not self._inputs.n_waiting(*self._connection.place(partition))
            if at is not None and member.behind(partition) and is_empty_here:
                positions[partition] = at
        self._stalls.update(positions, now)


# --- One transaction: records and positions, and once both are acknowledged, the commit.
#
# Every record must be waited for: the client can report a commit that did not happen, namely if the
# broker ended the transaction while records were still unsent, or if the client gave up on one.


def prepare_transactions(producer: Any, connection: Connection) -> None:
    """Make a new transactional producer ready; this ends what one of the same id has left open."""
    try:
        producer.init_transactions()
    except kafka_errors.KafkaTimeoutError as error:
        raise BrokerError(
            f"broker {','.join(connection.servers)} did not answer in time to prepare "
            "transactions; if it is new, start again, else look at the topic __transaction_state, "
            "which needs as many brokers as transaction.state.log.replication.factor and "
            "transaction.state.log.min.isr say"
        ) from error
    except CLIENT_ERRORS as error:
        raise connection.broker_error(error, "prepare transactions") from error


def transact(
    producer: Any,
    connection: Connection,
    outgoing: Sequence[Outgoing],
    offsets: Mapping[TopicPartition, Any],
    membership: Any,
    *,
    timeout_s: float,
) -> dict[Place, int]:
    """Write records and positions, all or nothing.

    Parameters
    ----------
    producer
        A transactional producer.
    connection
        Knows the names of the topics.
    outgoing
        The records to write.
    offsets, membership
        Where the group continues, and the membership under which this is committed. The broker
        refuses a member that no longer belongs to the group.
    timeout_s
        Timeout of the whole transaction.

    Returns
    -------
    For each topic and partition written to, the offset after the last record.

    Raises
    ------
    BrokerError
        If the broker has ended the transaction on its own, or does not answer.

    """
    until = monotonic() + timeout_s
    before = identity_of(producer)
    producer.begin_transaction()
    lasts = put(producer, [connection.names[record.topic] for record in outgoing], outgoing)
    positions = send_positions(producer, offsets, membership)
    ends: dict[Place, int] = {}
    # Wait for the last one first: once it is acknowledged, most others are too, and waiting for
    # them wakes no thread.
    for partition, last in reversed(lasts):
        end = last.get(timeout=_left(until)).offset + 1
        ends.setdefault(connection.place(partition), end)
    _await(positions, until)
    _await(begin_commit(producer), until)
    if identity_of(producer) != before:
        raise BrokerError("broker has ended the transaction of its own accord")
    return ends


class _LateError(BrokerError):
    """An answer did not come within the transaction's time."""


def _await(result: Any, until: float) -> None:
    if not result.wait(timeout_ms=1e3 * _left(until)):
        raise _LateError("broker did not answer in time to commit")


def _left(until: float) -> float:
    return max(0.0, until - monotonic())


# --- A thread that checks every few seconds that the topics are those at the worker's start.
#
# The client itself notices new partitions after five minutes, and does not report topics that were
# deleted, or deleted and created again. A check is one request for the metadata of seven topics.

_N_LOOKS = 2


class TopicMonitor:
    """Compares topics with their initial state, over its own connection.

    Attributes
    ----------
    fault
        Why the worker must end, None if the topics are as they were: a `RefusedError` if a topic
        has another number of partitions, or if the worker may not see it any more; a
        `LockedOutError` if the broker does not let the worker in any more.

    """

    # _silent  since when no check has been answered, on the monotonic clock, and why
    # _n_odd  how many checks in a row have found topics missing or replaced: a single-node
    #         broker that restarts believes for a moment that it has none

    def __init__(self, connection: Connection, shapes: Mapping[TopicName, Shape]) -> None:
        self._connection = connection
        self._administration = Administration(connection, partitions=1, replication=-1)
        self._shapes = shapes
        self._every_s = connection.timeouts.look_s
        self.fault: BrokerError | None = None
        self._silent: tuple[float, str] | None = None
        self._n_odd = 0
        self._is_over = Event()
        self._thread = Thread(target=self._watch, name="streamgp: topic monitor", daemon=True)
        self._thread.start()

    @property
    def silence(self) -> Silence | None:
        """For how long no check has been answered; None if the last one was."""
        silent = self._silent  # the thread may replace it
        return (
            None if silent is None else Silence(since_s=monotonic() - silent[0], reason=silent[1])
        )

    def close(self) -> None:
        """End the thread, which closes its own connection."""
        self._is_over.set()

    def change(self, administration: Administration) -> BrokerError | None:
        """Check now, over the caller's connection; return an error that says what has changed."""
        try:
            check_same(self._connection.names, self._shapes, administration.shapes())
        except BrokerError as error:
            return error
        return None

    def _watch(self) -> None:
        while not self._is_over.wait(self._every_s):
            try:
                self._look()
            except Exception as error:  # or the end of the monitoring would go unnoticed
                self.fault = self._connection.broker_error(error, "describe topics")
        self._administration.close()

    def _look(self) -> None:
        asked_at = monotonic()
        try:
            found = self._administration.shapes()
        except (LockedOutError, RefusedError) as error:
            self.fault = error
            return
        except CLIENT_ERRORS as error:
            # A worker with something to write notices; one without only waits.
            since = asked_at if self._silent is None else self._silent[0]
            try:
                self._silent = since, self._connection.why_away(error, "describe topics")
            except LockedOutError as locked_out:
                self.fault = locked_out
            return
        self._silent = None
        try:
            check_same(self._connection.names, self._shapes, found)
            self._n_odd = 0
        except RefusedError as error:
            self.fault = error
        except BrokerError as error:
            self._n_odd += 1
            if self._n_odd >= _N_LOOKS:
                self.fault = error
