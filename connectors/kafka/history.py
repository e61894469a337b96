"""Reads what was written to some partitions, to their very end.

The end is where it is when the reading begins, with what is in open transactions: a worker that
was killed may have left one, and only when it has ended is it known whether its records count. A
reader that stopped before would bring back a state that misses them.

"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any

from connectors.kafka.admin import Administration
from connectors.kafka.client import (
    CLIENT_ERRORS,
    Connection,
    TopicPartition,
    record_of,
    within,
)
from connectors.records import LinkError, Progress, Record, ShortTopicError, TopicName

_READS: tuple[TopicName, ...] = ("state", "consensus")
_TELL_EVERY_S = 1.0
_WAIT_MS = 100
_MANY = 5000


def read_history(
    connection: Connection,
    administration: Administration,
    names: Mapping[TopicName, str],
    starts: Mapping[int, Mapping[TopicName, int]],
    *,
    progress: Progress | None,
    keep_alive: Callable[[], None],
) -> Iterator[Record]:
    """Return the records of `state` and `consensus`, all partitions in one go.

    Parameters
    ----------
    connection, administration
        Where.
    names
        What the topics are called there.
    starts
        For each partition the first offset of each of the two topics, 0 for one not named.
    progress
        Told about once a second how far it is.
    keep_alive
        Called about once a second, so that the reader's owner does not seem dead meanwhile.

    Raises
    ------
    ShortTopicError
        If a topic ends before the first offset asked for.
    LinkError
        If it gets no further.

    """
    places = {
        TopicPartition(names[topic], number): (topic, offsets.get(topic, 0))
        for number, offsets in starts.items()
        for topic in _READS
    }
    if not places:
        return
    ends = administration.ends(places)
    short = {
        place.partition: f"topic {place.topic} ends at offset {ends[place]} in partition "
        f"{place.partition}, but is known up to {start}: it was made anew, or has lost its end"
        for place, (_, start) in places.items()
        if start > ends[place]
    }
    if short:
        raise ShortTopicError(short)
    unread = {place: start for place, (_, start) in places.items() if start < ends[place]}
    n_all = sum(ends[place] - start for place, start in unread.items())
    if unread:
        consumer = connection.consumer(max_partition_fetch_bytes=2**20)
        try:
            consumer.assign(list(unread))
            for place, start in unread.items():
                consumer.seek(place, start)
            reading = _Reading(connection, consumer, ends, unread, n_all, progress, keep_alive)
            for place, found in reading.records():
                yield record_of(places[place][0], place.partition, found)
        except CLIENT_ERRORS as error:
            raise connection.said(error, "read the state") from error
        finally:
            timeout_s = connection.timeouts.close_s
            with suppress(*CLIENT_ERRORS):  # or it would hide why the reading has ended
                within(timeout_s, "close", partial(consumer.close, autocommit=False))
    if progress is not None:
        progress(n_all, n_all)


class _Reading:
    # _at  where each partition that has not reached its end is read on

    def __init__(
        self,
        connection: Connection,
        consumer: Any,
        ends: Mapping[TopicPartition, int],
        starts: Mapping[TopicPartition, int],
        n_all: int,
        progress: Progress | None,
        keep_alive: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._consumer = consumer
        self._ends = ends
        self._at = dict(starts)
        self._n_all = n_all
        self._progress = progress
        self._keep_alive = keep_alive

    def records(self) -> Iterator[tuple[TopicPartition, Any]]:
        """Return what the consumer finds before the ends."""
        told_at = moved_at = monotonic()
        stall_s = self._connection.timeouts.stall_s
        while self._at:
            batches = self._consumer.poll(timeout_ms=_WAIT_MS, max_records=_MANY)
            for place, found in batches.items():
                end = self._ends[place]
                for record in found:
                    if record.offset < end:
                        yield place, record
            now = monotonic()
            if self._advance():
                moved_at = now
            if now - moved_at > stall_s:
                raise LinkError(self._stuck(stall_s))
            if now - told_at >= _TELL_EVERY_S:
                told_at = now
                self._keep_alive()
                if self._progress is not None:
                    left = sum(self._ends[place] - at for place, at in self._at.items())
                    self._progress(self._n_all - left, self._n_all)

    def _advance(self) -> bool:
        """Take note of how far it is; return whether that is further than before."""
        moved = False
        for place, before in list(self._at.items()):
            # Passes what was aborted, of which no record comes.
            at = self._consumer.position(place, timeout_ms=0)
            if at is None or at == before:
                continue
            moved = True
            if at >= self._ends[place]:
                del self._at[place]
                self._consumer.pause(place)
            else:
                self._at[place] = at
        return moved

    def _stuck(self, stall_s: float) -> str:
        where = ", ".join(
            f"{place.topic} partition {place.partition} at {at} of {self._ends[place]}"
            for place, at in self._at.items()
        )
        return f"nothing could be read for {stall_s:g} s, is a transaction left open? {where}"
