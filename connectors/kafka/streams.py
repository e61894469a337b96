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
from connectors.kafka.transaction import check_sizes
from connectors.records import LinkError, Outgoing, Record, TopicName

_MANY_RECORDS = 5_000
_MANY_BYTES = 8 * 2**20
_DONE_S = 1.0
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
            at = self._consumer.position(place, timeout_ms=0)
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

    # _sent     what was taken and is not known to be safe
    # _n_bytes  its size

    def __init__(
        self, connection: Connection, names: Mapping[TopicName, str], program: str
    ) -> None:
        self._connection = connection
        self._names = names
        self._sent: list[Any] = []
        self._n_bytes = 0
        self._broken: LinkError | None = None
        self._is_closed = False
        self._producer = connection.producer(client_id=f"streamgp-{program}")

    def send(self, record: Outgoing) -> None:
        """Take a record; waits now and then, so that not too many are under way."""
        self._check()
        check_sizes([record])
        try:
            self._sent.append(
                self._producer.send(
                    self._names[record.topic],
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=record.partition,
                )
            )
        except CLIENT_ERRORS as error:
            raise self._fail(error) from error
        self._n_bytes += len(record.value or b"")
        if len(self._sent) >= _MANY_RECORDS or self._n_bytes >= _MANY_BYTES:
            self.flush()

    def flush(self) -> None:
        """Return when everything taken is safe with the broker.

        Raises
        ------
        LinkError
            If something is not; it may be there all the same, and the writer takes no more.

        """
        self._check()
        timeouts = self._connection.timeouts
        wait_s = timeouts.delivery_s + timeouts.request_s
        try:
            within(wait_s, "take records", partial(self._producer.flush, timeout=wait_s))
            for future in self._sent:
                future.get(timeout=_DONE_S)
        except CLIENT_ERRORS as error:
            raise self._fail(error) from error
        self._sent.clear()
        self._n_bytes = 0

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
