"""Reading and writing Kafka topics without transactions.

For programs that watch, annotate or send: a reader reads all partitions itself, and a writer's
records are independent of each other.

"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from time import monotonic
from typing import Any

from connectors.kafka.admin import Administration
from connectors.kafka.client import CLIENT_ERRORS, Connection, check_sizes, close_consumer, within
from connectors.kafka.client_import import OffsetAndMetadata, TopicPartition, close_producer
from connectors.kafka.record_codec import put
from connectors.stalls import WakingClock
from connectors.topics import (
    COMPACTED,
    NO_GROUP,
    AwayError,
    BrokerError,
    Outgoing,
    Progress,
    Reader,
    Record,
    RefusedError,
    ShortTopicError,
    TopicName,
    Writer,
)
from streamgp.common.validation import check_process

_MANY_RECORDS = 5_000
_MANY_BYTES = 8 * 2**20
_SOON_S = 0.005
_SLICE_S = 0.1
# While it does not know who leads a partition, the client sleeps this long.
_RETRY_MS = 25


class KafkaReader(Reader):
    """Reads all partitions of some topics; only committed records.

    Parameters
    ----------
    topics
        The topics to read.
    from_end
        Whether to start with records that arrive from now on.
    group
        Group whose positions to start from and to commit; None for no group.

    """

    # _partitions  all partitions
    # _ends        end offsets at the start, of the partitions not yet read up to there
    # _awake       a clock that stands still while the caller does not poll
    # _heard_at    when the broker last gave a record or an answer, on that clock
    # _at          next offsets of the partitions of `_ends`, when it was last asked for an answer
    # _moved_at    since when they are the same
    # _polled      next offsets of the partitions polled since the last commit
    # _process     the process that has made it: threads of the client do not survive a fork

    def __init__(
        self,
        administration: Administration,
        topics: Iterable[TopicName],
        *,
        from_end: bool,
        group: str | None = None,
    ) -> None:
        self._connection = connection = administration.connection
        self._group = group
        self._process = os.getpid()
        self._polled: dict[TopicPartition, int] = {}
        self._is_closed = False
        self._awake = WakingClock(10 * _SLICE_S)
        self._heard_at = self._moved_at = self._awake()
        self._at: dict[TopicPartition, int] = {}
        self._administration = administration
        self._partitions = partitions = list(administration.partitions_of(topics))
        self._ends = {} if from_end else administration.ends(partitions)
        self._consumer = connection.consumer(
            max_partition_fetch_bytes=2**20, retry_backoff_ms=_RETRY_MS, group_id=group
        )
        try:
            self._consumer.assign(partitions)
            # Before the first open transaction, not after it: its records are still to come.
            ends = self._consumer.end_offsets(partitions) if from_end else {}
            for partition in partitions:
                if group is None or self._consumer.committed(partition) is None:
                    self._consumer.seek(partition, ends.get(partition, 0))
        except CLIENT_ERRORS as error:
            self.close()
            raise connection.broker_error(error, "read topics") from error

    @property
    def caught_up(self) -> bool:
        for partition, end in list(self._ends.items()):
            try:
                at = self._consumer.position(partition, timeout_ms=0)
            except CLIENT_ERRORS as error:
                raise self._connection.broker_error(error, "read topics") from error
            if at is not None and at >= end:
                del self._ends[partition]
        return not self._ends

    def look_again(self) -> None:
        self._ends = self._administration.ends(self._partitions)

    def poll(self, timeout_s: float) -> list[Record]:
        if self._is_closed:
            raise BrokerError("reader is closed; open a new one")
        check_process(self._process, "this reader of Kafka")
        until = monotonic() + timeout_s
        was_behind = not self.caught_up
        try:
            while True:
                left_s = max(0.0, until - monotonic())
                batches = self._consumer.poll(
                    timeout_ms=round(1e3 * min(left_s, _SLICE_S)), max_records=_MANY_RECORDS
                )
                now = self._awake()
                records = [record for batch in batches.values() for record in batch]
                self._polled |= {
                    partition: each[-1].offset + 1 for partition, each in batches.items()
                }
                # The last records may belong to an aborted transaction and never be returned.
                if records or left_s == 0.0 or (was_behind and self.caught_up):
                    break
        except CLIENT_ERRORS as error:
            raise self._connection.broker_error(error, "read topics") from error
        if records:
            self._heard_at = now
        elif now - self._heard_at > self._patience_s:
            self._check_answers()
        return records

    @property
    def _patience_s(self) -> float:
        """For how long a broker may be silent: less if it owes records."""
        timeouts = self._connection.timeouts
        return timeouts.request_s if self._ends else timeouts.silent_s

    def _check_answers(self) -> None:
        """Ask a silent broker whether it is there: the client would wait for ever."""
        try:
            self._administration.ends(self._ends or self._partitions)
        except RefusedError:
            raise
        except BrokerError as error:
            raise AwayError(self._connection.why_away(error, "read topics")) from error
        self._heard_at = now = self._awake()
        if not self._ends:
            return
        stall_s = self._connection.timeouts.stall_s
        try:
            at = {each: self._consumer.position(each, timeout_ms=0) or 0 for each in self._ends}
        except CLIENT_ERRORS as error:
            raise self._connection.broker_error(error, "read topics") from error
        if at != self._at:
            self._at, self._moved_at = at, now
        elif now - self._moved_at > stall_s:
            raise BrokerError(_stuck(at, self._ends, stall_s))

    def commit(self) -> None:
        if self._group is None:
            raise ValueError(NO_GROUP)
        check_process(self._process, "this reader of Kafka")
        offsets = {partition: OffsetAndMetadata(n, "", -1) for partition, n in self._polled.items()}
        timeout_ms = round(1e3 * self._connection.timeouts.delivery_s)
        try:
            if offsets:
                self._consumer.commit(offsets, timeout_ms=timeout_ms)
        except CLIENT_ERRORS as error:
            raise self._connection.broker_error(error, "take positions") from error
        self._polled.clear()

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            close_consumer(self._connection, self._consumer)


def partitions_with_records(
    administration: Administration, starts: Mapping[TopicPartition, int]
) -> set[TopicPartition]:
    """Return the partitions that have a committed record at or after an offset.

    Transaction markers and aborted records take offsets too; only reading tells them apart.
    """
    connection = administration.connection
    firsts = administration.starts(starts)
    left = administration.ends(starts)
    found: set[TopicPartition] = set()
    consumer = connection.consumer()
    try:
        consumer.assign(list(starts))
        for partition, start in starts.items():
            consumer.seek(partition, max(start, firsts[partition]))
        until = monotonic() + connection.timeouts.request_s
        while left and monotonic() < until:
            found |= consumer.poll(timeout_ms=round(1e3 * _SLICE_S)).keys()
            left = {
                partition: end
                for partition, end in left.items()
                if partition not in found
                and (consumer.position(partition, timeout_ms=0) or 0) < end
            }
    except CLIENT_ERRORS as error:
        raise connection.broker_error(error, "read topics") from error
    finally:
        close_consumer(connection, consumer)
    return found


class KafkaWriter(Writer):
    """Appends records independently; they are sent soon, and at the latest by `flush`."""

    # _taken    records not sent yet; the first one of a burst is sent alone
    # _n_bytes  size of the records since the last flush
    # _left_at  when records were last sent
    # _lasts    futures of sent batches that are not known to be stored
    # _n_left   number of records in these batches
    # _process  the process that has made it: threads of the client do not survive a fork

    def __init__(self, connection: Connection, program: str) -> None:
        self._connection = connection
        self._process = os.getpid()
        self._taken: list[Outgoing] = []
        self._n_bytes = 0
        self._left_at = 0.0
        self._lasts: list[Any] = []
        self._n_left = 0
        self._broken: BrokerError | None = None
        self._is_closed = False
        self._producer = connection.producer(client_id=f"streamgp-{program}")

    def send(self, record: Outgoing) -> None:
        """Take a record; wait if too many are in flight.

        Raises
        ------
        BrokerError
            If an earlier one could not be sent.
        ValueError
            If it is larger than any topic accepts.

        """
        self._check()
        check_sizes([record])
        self._taken.append(record)
        self._n_bytes += len(record.value or b"")
        n_under_way = self._n_left + len(self._taken)
        if n_under_way >= _MANY_RECORDS or self._n_bytes >= _MANY_BYTES:
            self.flush()
        elif monotonic() - self._left_at >= _SOON_S:
            self._leave()

    def flush(self) -> None:
        """Return once everything taken is safely stored by the broker.

        Raises
        ------
        BrokerError
            If something is not (it may be stored all the same); the writer accepts no more records.

        """
        self._check()
        self._leave()
        timeouts = self._connection.timeouts
        try:
            for last in self._lasts:
                last.get(timeout=timeouts.delivery_s + timeouts.request_s)
        except CLIENT_ERRORS as error:
            raise self._fail(error) from error
        self._lasts.clear()
        self._n_left = self._n_bytes = 0

    def _leave(self) -> None:
        records = self._taken
        topics = [self._connection.names[record.topic] for record in records]
        try:
            self._lasts += [last for _, last in put(self._producer, topics, records)]
        except CLIENT_ERRORS as error:
            raise self._fail(error) from error
        self._n_left += len(records)
        self._taken = []
        self._left_at = monotonic()

    def close(self) -> None:
        if self._is_closed:
            return
        try:
            if self._broken is None:
                self.flush()
        finally:
            self._is_closed = True
            timeout_s = self._connection.timeouts.close_s
            with suppress(*CLIENT_ERRORS):
                within(timeout_s, "close", partial(close_producer, self._producer, timeout_s / 2))

    def _check(self) -> None:
        if self._is_closed:
            raise BrokerError("writer is closed; open a new one")
        check_process(self._process, "this writer of Kafka")
        if self._broken is not None:
            raise BrokerError(f"writer is broken ({self._broken}); open a new one")

    def _fail(self, error: BaseException) -> BrokerError:
        self._broken = self._connection.broker_error(error, "take records")
        return self._broken


# --- Reading what was written to some partitions, to their very end.
#
# The end is that at the start of the reading, open transactions included: a killed worker may have
# left one, and only once it has ended is it known whether its records count. A reader that stopped
# before it would restore a state without them.


_TELL_EVERY_S = 1.0
_WAIT_MS = 100


def read_history(
    administration: Administration,
    starts: Mapping[int, Mapping[TopicName, int]],
    *,
    progress: Progress | None,
    keep_alive: Callable[[], None],
) -> Iterator[list[Record]]:
    """Return batches of the records of `state` and `consensus` of all these partitions.

    They are read in one pass; a batch is empty if none has come for a moment.

    Parameters
    ----------
    starts
        For each partition the first offset of each of the two topics, 0 if not given.
    progress
        Called about once a second with the progress.
    keep_alive
        Called about once a second, so that the reader's owner is not considered dead.

    Raises
    ------
    ShortTopicError
        If a topic ends before its first offset.
    BrokerError
        If it makes no progress.

    """
    connection = administration.connection
    partitions = {
        connection.partition(topic, number): (topic, offsets.get(topic, 0))
        for number, offsets in starts.items()
        for topic in COMPACTED
    }
    if not partitions:
        return
    ends = administration.ends(partitions)
    short = {
        partition.partition: f"topic {partition.topic} ends at offset {ends[partition]} in "
        f"partition {partition.partition}, but is known up to {start}: it was recreated, or has "
        "lost its end"
        for partition, (_, start) in partitions.items()
        if start > ends[partition]
    }
    if short:
        raise ShortTopicError(short)
    # The next offset of each partition that has not been read to its end.
    at = {
        partition: start for partition, (_, start) in partitions.items() if start < ends[partition]
    }
    n_all = _n_left(at, ends)
    told_at = monotonic()
    with closing(_to_the_ends(connection, at, ends)) as batches:
        for batch in batches:
            yield batch
            if monotonic() - told_at >= _TELL_EVERY_S:
                told_at = monotonic()
                keep_alive()
                if progress is not None:
                    progress(n_all - _n_left(at, ends), n_all)
    if progress is not None:
        progress(n_all, n_all)


def _to_the_ends(
    connection: Connection, at: dict[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> Generator[list[Record], None, None]:
    """Read partitions from the offsets `at`, which are updated and dropped, to their ends."""
    if not at:
        return
    stall_s = connection.timeouts.stall_s
    consumer = connection.consumer(max_partition_fetch_bytes=2**20, retry_backoff_ms=_RETRY_MS)
    try:
        consumer.assign(list(at))
        for partition, start in at.items():
            consumer.seek(partition, start)
        # Between two batches the caller may be busy, which is no stall.
        awake = WakingClock(2e-3 * _WAIT_MS)
        moved_at = awake()
        while at:
            batches = consumer.poll(timeout_ms=_WAIT_MS, max_records=_MANY_RECORDS)
            if _advance(consumer, at, ends):
                moved_at = awake()
            elif awake() - moved_at > stall_s:
                raise BrokerError(_stuck(at, ends, stall_s))
            for partition, found in batches.items():
                end = ends[partition]
                yield [record for record in found if record.offset < end]
            if not batches:
                yield []
    except CLIENT_ERRORS as error:
        raise connection.broker_error(error, "read the state") from error
    finally:
        close_consumer(connection, consumer)


def _n_left(positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> int:
    return sum(ends[partition] - at for partition, at in positions.items())


def _advance(
    consumer: Any, positions: dict[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> bool:
    """Update the positions, and drop those at their end; return whether any has advanced."""
    moved = False
    for partition, before in list(positions.items()):
        # The position also moves past aborted records, which are never returned.
        at = consumer.position(partition, timeout_ms=0)
        if at is None or at == before:
            continue
        moved = True
        if at >= ends[partition]:
            del positions[partition]
            consumer.pause(partition)
        else:
            positions[partition] = at
    return moved


def _stuck(
    positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], stall_s: float
) -> str:
    where = ", ".join(
        f"{partition.topic} partition {partition.partition} at {at} of {ends[partition]}"
        for partition, at in positions.items()
    )
    return f"nothing could be read for {stall_s:g} s, is a transaction left open? {where}"
