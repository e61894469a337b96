"""Reading and writing topics of Kafka without a group and without transactions.

For those who watch, annotate or feed: a reader keeps no position but its own, and a writer's
records count one by one.

"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any

from connectors.kafka.admin import Administration
from connectors.kafka.client import CLIENT_ERRORS, Connection, TopicPartition, record_of, within
from connectors.kafka.inside import close_producer
from connectors.kafka.packing import put
from connectors.kafka.transaction import check_sizes
from connectors.records import LinkError, Outgoing, Record, TopicName

_MANY_RECORDS = 5_000
_MANY_BYTES = 8 * 2**20
_SOON_S = 0.005
_SLICE_S = 0.1


class KafkaReader:
    """Reads all partitions of some topics, committed records only.

    Parameters
    ----------
    connection, administration
        Where.
    names
        What the topics to be read are called there.
    from_end
        Whether to begin with what comes from now on.

    """

    # _ends  where partitions ended at the start, of those that have not been read so far

    def __init__(
        self,
        connection: Connection,
        administration: Administration,
        names: Mapping[TopicName, str],
        *,
        from_end: bool,
    ) -> None:
        self._connection = connection
        self._is_closed = False
        self._topics = {called: name for name, called in names.items()}
        counts = administration.counts(names)
        places = [
            TopicPartition(names[name], number)
            for name, count in counts.items()
            for number in range(count)
        ]
        self._ends = {} if from_end else administration.ends(places)
        self._consumer = connection.consumer(max_partition_fetch_bytes=2**20)
        try:
            self._consumer.assign(places)
            # Before the first open transaction, not behind it: what it holds is yet to come.
            ends = self._consumer.end_offsets(places) if from_end else {}
            for place in places:
                self._consumer.seek(place, ends.get(place, 0))
        except CLIENT_ERRORS as error:
            self.close()
            raise connection.said(error, "read topics") from error

    @property
    def caught_up(self) -> bool:
        """Whether everything has been read that was there when the reader was opened."""
        for place, end in list(self._ends.items()):
            try:
                at = self._consumer.position(place, timeout_ms=0)
            except CLIENT_ERRORS as error:
                raise self._connection.said(error, "read topics") from error
            if at is not None and at >= end:
                del self._ends[place]
        return not self._ends

    def poll(self, timeout_s: float) -> list[Record]:
        """Return the next records; an empty list if none came in time."""
        if self._is_closed:
            raise LinkError("reader is closed; open a new one")
        until = monotonic() + timeout_s
        was_behind = not self.caught_up
        try:
            while True:
                left_s = max(0.0, until - monotonic())
                batches = self._consumer.poll(
                    timeout_ms=round(1e3 * min(left_s, _SLICE_S)), max_records=_MANY_RECORDS
                )
                records = [
                    record_of(self._topics[place.topic], place.partition, found)
                    for place, batch in batches.items()
                    for found in batch
                ]
                # What lay at the end may have been aborted, and no record comes of it.
                if records or left_s == 0.0 or (was_behind and self.caught_up):
                    return records
        except CLIENT_ERRORS as error:
            raise self._connection.said(error, "read topics") from error

    def close(self) -> None:
        """Let go."""
        if not self._is_closed:
            self._is_closed = True
            with suppress(*CLIENT_ERRORS):
                within(
                    self._connection.timeouts.close_s,
                    "close",
                    partial(self._consumer.close, autocommit=False),
                )


def partitions_with_records(
    connection: Connection, administration: Administration, starts: Mapping[TopicPartition, int]
) -> set[TopicPartition]:
    """Return the partitions that hold a committed record at or behind an offset.

    Ends of transactions and aborted records take offsets, too, and only reading tells them apart.
    """
    firsts = administration.starts(starts)
    left = administration.ends(starts)
    found: set[TopicPartition] = set()
    consumer = connection.consumer()
    try:
        consumer.assign(list(starts))
        for place, start in starts.items():
            consumer.seek(place, max(start, firsts[place]))
        until = monotonic() + connection.timeouts.request_s
        while left and monotonic() < until:
            found |= consumer.poll(timeout_ms=round(1e3 * _SLICE_S)).keys()
            left = {
                place: end
                for place, end in left.items()
                if place not in found and (consumer.position(place, timeout_ms=0) or 0) < end
            }
    except CLIENT_ERRORS as error:
        raise connection.said(error, "read topics") from error
    finally:
        with suppress(*CLIENT_ERRORS):
            within(connection.timeouts.close_s, "close", partial(consumer.close, autocommit=False))
    return found


class KafkaWriter:
    """Appends records, each for itself; what was taken leaves soon, and with `flush` for certain.

    Parameters
    ----------
    connection
        Where.
    names
        What the topics are called there.
    program
        Who writes, for the broker's log.

    """

    # _taken    what has not left; of what comes at once, the first leaves alone
    # _n_bytes  its size
    # _left_at  when records last left
    # _lasts    the futures of what has left and is not known to be safe
    # _n_left   how many records these are about

    def __init__(
        self, connection: Connection, names: Mapping[TopicName, str], program: str
    ) -> None:
        self._connection = connection
        self._names = names
        self._taken: list[Outgoing] = []
        self._n_bytes = 0
        self._left_at = 0.0
        self._lasts: list[Any] = []
        self._n_left = 0
        self._broken: LinkError | None = None
        self._is_closed = False
        self._producer = connection.producer(client_id=f"streamgp-{program}")

    def send(self, record: Outgoing) -> None:
        """Take a record; waits now and then, so that not too many are under way.

        Raises
        ------
        LinkError
            If an earlier one could not leave.
        ValueError
            If it is larger than any topic takes.

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
        """Return when everything taken is safe with the broker.

        Raises
        ------
        LinkError
            If something is not; it may be there all the same, and the writer takes no more.

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
        topics = [self._names[record.topic] for record in records]
        try:
            self._lasts += [last for _, last in put(self._producer, topics, records)]
        except CLIENT_ERRORS as error:
            raise self._fail(error) from error
        self._n_left += len(records)
        self._taken = []
        self._left_at = monotonic()

    def close(self) -> None:
        """Flush and let go."""
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
            raise LinkError("writer is closed; open a new one")
        if self._broken is not None:
            raise LinkError(f"writer is broken ({self._broken}); open a new one")

    def _fail(self, error: BaseException) -> LinkError:
        self._broken = self._connection.said(error, "take records")
        return self._broken
