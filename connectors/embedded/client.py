"""Worker client, reader and writer of an embedded broker.

A commit is one transaction: the records written, and how far the inputs are worked off.

"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, sleep

from connectors.embedded.database import INPUTS, OUTPUTS, TABLES, Database
from connectors.embedded.directory import database_in, hold
from connectors.topics import (
    COMPACTED,
    NO_GROUP,
    Begun,
    BrokerError,
    Obstacle,
    Outgoing,
    Place,
    Progress,
    Record,
    ShortTopicError,
    Stalled,
    TopicName,
)

_MANY = 500
_TOLD_EVERY = 10_000
_MOST_UNSENT = 5000
_MOST_UNSENT_BYTES = 1 << 20
_STEP_S = 0.02


class EmbeddedWorkerClient:
    """The only worker of an embedded broker.

    Parameters
    ----------
    directory
        Where the database is.
    group
        Whose positions are used; a group starts at the beginning.
    max_records
        How many records a poll returns at most.
    clock
        Stamps what is written, POSIX seconds.

    Raises
    ------
    BrokerError
        If another worker has the directory, or the database is not as a worker has left it.

    """

    # _committed   how far the inputs are committed
    # _polled      how far they were polled
    # _taken_back  polled since the last commit: goes to `consensus`, to be part of the history
    # _fault       why a commit has failed

    def __init__(
        self, directory: Path, *, group: str, max_records: int, clock: Callable[[], float]
    ) -> None:
        self._group = group
        self._max_records = max_records
        self._clock = clock
        self._has_polled = False
        self._fault: str | None = None
        self._taken_back: list[Outgoing] = []
        with ExitStack() as undo:
            self._lock: int | None = hold(directory)
            undo.callback(os.close, self._lock)
            self._database = Database(database_in(directory))
            undo.callback(self._database.close)
            self._database.check()
            for topic in COMPACTED:
                self._database.compact(TABLES[topic], clock())
            with self._database.reading():
                self._committed = self._database.positions(group)
            self._polled = dict(self._committed)
            undo.pop_all()

    @property
    def assigned(self) -> frozenset[int]:
        """The only partition, once it was polled."""
        return frozenset({0} if self._has_polled else ())

    @property
    def generation(self) -> int:
        """0, once it was polled: no other worker ever gets the partition."""
        return 0 if self._has_polled else -1

    def poll(self, timeout_s: float) -> list[Record]:
        """Return the next inputs, answers before events."""
        self._check()
        self._has_polled = True
        records = _wait_for(self._read, timeout_s)
        self._taken_back += [
            Outgoing(topic="consensus", key=record.key, value=None)
            for record in records
            if record.topic == "consensus" and record.value is None
        ]
        return records

    def history(
        self, starts: Mapping[int, Mapping[TopicName, int]], progress: Progress | None = None
    ) -> Iterator[Record]:
        """Return what was written to `state` and `consensus`."""
        self._check()
        spans: list[tuple[TopicName, int, int]] = []
        n_all = 0
        with self._database.reading():
            for number, offsets in starts.items():
                _check_partition(number)
                for topic in sorted(COMPACTED, reverse=True):
                    start, end = offsets.get(topic, 0), self._database.end(TABLES[topic])
                    if start > end:
                        raise ShortTopicError(
                            {
                                number: f"{topic} in {self._database.path} ends at offset {end}, "
                                f"but is known up to {start}: it was made anew, or has lost its end"
                            }
                        )
                    spans.append((topic, start, end))
                    n_all += self._database.count(TABLES[topic], start, end)
        return self._history(spans, n_all, progress)

    def commit(self, outgoing: Sequence[Outgoing]) -> dict[tuple[TopicName, int], int]:
        """Write records, and that everything polled so far is done with: both or none."""
        self._check()
        records: dict[TopicName, list[Outgoing]] = {}
        for record in (*self._taken_back, *outgoing):
            _check_partition(record.partition or 0)
            if record.topic not in OUTPUTS:
                raise ValueError(f"topic must be one of {', '.join(OUTPUTS)}, got {record.topic!r}")
            records.setdefault(record.topic, []).append(record)
        if not records and self._polled == self._committed:
            return {}
        now = self._clock()
        try:
            with self._database.writing():
                ends = {
                    (topic, 0): self._database.append(TABLES[topic], some, now)
                    for topic, some in records.items()
                }
                self._database.move(self._group, self._polled)
        except BrokerError as error:
            self._fault = str(error)
            raise
        self._committed = dict(self._polled)
        self._taken_back.clear()
        return ends

    def lag(self) -> dict[tuple[TopicName, int], int | None]:
        """Return how many records wait in each input."""
        self._check()
        with self._database.reading():
            return {
                (topic, 0): self._database.count(table, self._polled[topic])
                for topic, table in INPUTS.items()
            }

    def begun(self) -> list[Begun]:
        """Return an empty list: a group begins with the first record, and nothing is deleted."""
        return []

    def stalled(self) -> list[Stalled]:
        """Return an empty list: what is there can be read."""
        return []

    def obstacles(self, places: Iterable[Place]) -> dict[Place, Obstacle]:  # noqa: ARG002
        """Return nothing."""
        return {}

    def close(self, *, leave: bool = False) -> None:  # noqa: ARG002
        """Let another worker in; what was polled and not committed is delivered again."""
        if self._lock is not None:
            self._database.close()
            os.close(self._lock)
            self._lock = None

    def _check(self) -> None:
        if self._lock is None:
            raise ValueError("link is closed; open another one")
        if self._fault is not None:
            raise BrokerError(f"link has failed ({self._fault}); start again")

    def _read(self) -> list[Record]:
        records: list[Record] = []
        with self._database.reading():
            for topic, table in INPUTS.items():
                most = self._max_records - len(records)
                found = self._database.records(table, self._polled[topic], most)
                if found:
                    self._polled[topic] = found[-1].offset + 1
                    records += found
        return records

    def _history(
        self, spans: Sequence[tuple[TopicName, int, int]], n_all: int, progress: Progress | None
    ) -> Iterator[Record]:
        n_done = n_told = 0
        for topic, start, end in spans:
            while True:
                self._check()
                with self._database.reading():
                    records = self._database.records(TABLES[topic], start, _MANY, end)
                if not records:
                    break
                yield from records
                start = records[-1].offset + 1
                n_done += len(records)
                if progress is not None and n_done - n_told >= _TOLD_EVERY:
                    n_told = n_done
                    progress(n_done, max(n_done, n_all))


class EmbeddedReader:
    """Reads topics of an embedded broker, with a group from where it has committed."""

    # _offsets  where each topic is read on
    # _goals    their ends when the reader was opened

    def __init__(
        self, directory: Path, topics: Iterable[TopicName], *, from_end: bool, group: str | None
    ) -> None:
        self._database = Database(database_in(directory))
        self._group = group
        with self._database.reading():
            self._goals = {topic: self._database.end(TABLES[topic]) for topic in topics}
            known = {} if group is None else self._database.reader_positions(group)
        starts = self._goals if from_end else dict.fromkeys(self._goals, 0)
        self._offsets = {topic: known.get(topic, start) for topic, start in starts.items()}

    def poll(self, timeout_s: float) -> list[Record]:
        """Return the next records, committed ones only; an empty list if none came in time."""
        return _wait_for(self._read, timeout_s)

    @property
    def caught_up(self) -> bool:
        """Whether everything has been read that was there when the reader was opened."""
        return all(self._offsets[topic] >= goal for topic, goal in self._goals.items())

    def commit(self) -> None:
        """Let the group's next reader begin behind what was polled."""
        if self._group is None:
            raise ValueError(NO_GROUP)
        with self._database.writing():
            self._database.move_reader(self._group, self._offsets)

    def close(self) -> None:
        """Let go."""
        self._database.close()

    def _read(self) -> list[Record]:
        records: list[Record] = []
        with self._database.reading():
            for topic, offset in self._offsets.items():
                table = TABLES[topic]
                found = self._database.records(table, offset, _MANY)
                # What was compacted away behind the last record is read, too.
                end = found[-1].offset + 1 if found else self._database.end(table)
                self._offsets[topic] = end
                records += found
        return records


class EmbeddedWriter:
    """Writes the inputs of a worker; what one flush writes is one transaction."""

    # _unsent               of each input, what was taken and not written
    # _n_records, _n_bytes  how much that is

    def __init__(self, directory: Path, *, clock: Callable[[], float]) -> None:
        self._database = Database(database_in(directory))
        self._clock = clock
        self._unsent: dict[TopicName, list[Outgoing]] = {}
        self._n_records = self._n_bytes = 0

    def send(self, record: Outgoing) -> None:
        """Take a record; it leaves with the next flush, or when there are many."""
        _check_partition(record.partition or 0)
        is_example = record.topic == "consensus" and record.value is not None
        if record.topic not in INPUTS or is_example:
            raise ValueError(
                "record must be an event, an answer or one that takes an example back, got one for "
                f"{record.topic}; a worker alone writes there"
            )
        self._unsent.setdefault(record.topic, []).append(record)
        self._n_records += 1
        self._n_bytes += 0 if record.value is None else len(record.value)
        if self._n_records >= _MOST_UNSENT or self._n_bytes >= _MOST_UNSENT_BYTES:
            self.flush()

    def flush(self) -> None:
        """Return when everything taken is on the disk.

        Raises
        ------
        BrokerError
            If it is not; nothing was written then, and it is kept for the next attempt.

        """
        if self._unsent:
            now = self._clock()
            with self._database.writing():
                for topic, records in self._unsent.items():
                    self._database.append(INPUTS[topic], records, now)
            self._unsent.clear()
            self._n_records = self._n_bytes = 0

    def close(self) -> None:
        """Flush and let go."""
        try:
            self.flush()
        finally:
            self._database.close()


def _wait_for(read: Callable[[], list[Record]], timeout_s: float) -> list[Record]:
    """Return what can be read; look again until there is something, or the time is over."""
    until = monotonic() + timeout_s
    while not (records := read()) and (left := until - monotonic()) > 0.0:
        sleep(min(_STEP_S, left))
    return records


def _check_partition(number: int) -> None:
    if number != 0:
        raise ValueError(f"partition must be 0, the only one, got {number}")
