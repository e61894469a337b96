"""Topics in a SQLite database in a directory: one worker, one partition, no server.

Any number of processes may write events and answers, and read, while the worker runs. Records that
take examples back wait in a separate table, and become part of `consensus` once the worker has
processed them. Only the worker writes the other topics.

"""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, closing
from pathlib import Path
from time import monotonic, sleep

from connectors.embedded.database import INPUTS, OUTPUTS, TABLES, Database, build
from connectors.embedded.directory import (
    DATABASE,
    OLD_INPUTS,
    database_in,
    flaw_of,
    hold,
    in_words,
    is_held,
    old_files,
)
from connectors.topics import (
    COMPACTED,
    NO_GROUP,
    Backlog,
    BrokerError,
    Checkpoint,
    Outgoing,
    Place,
    Progress,
    Reader,
    Record,
    RefusedError,
    ShortTopicError,
    TopicName,
    Topics,
    WorkerClient,
    Writer,
    content_size,
)
from streamgp.common.private_files import make_directory


def _is_directory(path: Path) -> bool:
    # Since Python 3.14 `Path.is_dir` is false, too, where the system does not look.
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


class EmbeddedTopics(Topics):
    """Topics in a database.

    Parameters
    ----------
    directory
        Directory of the database.
    clock
        Stamps records, POSIX seconds.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from connectors.topics import Outgoing
    >>> with TemporaryDirectory() as directory:
    ...     topics = EmbeddedTopics(directory)
    ...     _ = topics.create()
    ...     writer = topics.writer("sender")
    ...     writer.send(Outgoing(topic="events", key=b"ann", value=b'{"x":{},"key":"ann"}'))
    ...     writer.close()
    ...     client = topics.client(group="streamgp", instance="here", max_records=500)
    ...     print([record.key for record in client.poll(0.0)], topics.lags("streamgp"))
    ...     client.close()
    [b'ann'] {('answers', 0): 0, ('consensus', 0): 0, ('events', 0): 1}

    """

    def __init__(self, directory: str | Path, *, clock: Callable[[], float] = time.time) -> None:
        self.directory = Path(directory)
        self._clock = clock
        self._clients: list[EmbeddedWorkerClient] = []

    def client(
        self,
        *,
        group: str,
        instance: str,  # noqa: ARG002
        max_records: int,
    ) -> EmbeddedWorkerClient:
        """Become the only worker.

        Raises
        ------
        BrokerError
            If there is another one, or the database is not as a worker left it.

        """
        client = EmbeddedWorkerClient(
            self.directory, group=group, max_records=max_records, clock=self._clock
        )
        self._clients.append(client)
        return client

    def reader(
        self, topics: Iterable[TopicName], *, from_end: bool = False, group: str | None = None
    ) -> EmbeddedReader:
        return EmbeddedReader(self.directory, topics, from_end=from_end, group=group)

    def writer(self, program: str) -> EmbeddedWriter:  # noqa: ARG002
        """Write events, answers, and records that take examples back."""
        return EmbeddedWriter(self.directory, clock=self._clock)

    def create(self) -> list[str]:
        """Create the directory and the database if they are missing; return what was created.

        Raises
        ------
        BrokerError
            If they cannot be created, or results of an earlier version are there.

        """
        made = []
        try:
            if not self.directory.is_dir():
                make_directory(self.directory)
                made.append(f"made {self.directory}")
        except OSError as error:
            raise in_words(f"cannot make topics in {self.directory}", error) from error
        if flaw := flaw_of(self.directory):
            raise RefusedError(flaw)
        path = self.directory / DATABASE
        if not path.exists():
            lock = hold(self.directory)
            try:
                if not path.exists():  # another process may just have created it
                    build(path, lambda database: database.set_identity(secrets.token_hex(8)))
                    made.append(f"made {path}")
            finally:
                os.close(lock)
        return made

    def problems(self) -> list[str]:
        """Return what is wrong with the directory, one line each.

        Raises
        ------
        BrokerError
            If it cannot be used for now, such as on a full disk: that may pass.

        """
        try:
            if not _is_directory(self.directory):
                if os.path.lexists(self.directory):
                    return [f"{self.directory} is not a directory; name another place"]
                return [
                    f"directory {self.directory} is not there; make the topics with --create-topics"
                ]
            path = database_in(self.directory)
            found = [
                f"{place} cannot be written; make it accessible, or name another place"
                for place in (self.directory, path)
                if not os.access(place, os.R_OK | os.W_OK)
            ]
            if found:
                return found
            with self._open() as database:
                database.check_lists()
        except OSError as error:
            problem = in_words(f"cannot use {self.directory}", error)
            if isinstance(problem, RefusedError):
                return [str(problem)]
            raise problem from error
        return []

    def warnings(self) -> list[str]:
        """Return files of messages that lie there unread, one line each."""
        return [
            f"{self.directory / name} is not read: topics are in {DATABASE}; send what it holds "
            "with `streamgp send CONFIG.toml -`"
            for name in old_files(self.directory)
            if name in OLD_INPUTS
        ]

    def identity(self) -> str:
        """Return the identity, generated when the topics were created."""
        with self._open() as database:
            return database.identity()

    def n_partitions(self) -> int:
        """Return 1."""
        return 1

    def backlog(self, group: str) -> dict[Place, Backlog]:
        with self._open() as database, database.reading():
            return {
                (topic, 0): Backlog(
                    position=offset,
                    end=database.end(INPUTS[topic]),
                    n_waiting=database.count(INPUTS[topic], offset),
                )
                for topic, offset in database.positions(group).items()
            }

    def positions(self, group: str) -> dict[Place, int]:
        """Return the offsets at which a group continues, 0 for inputs that it has not read."""
        with self._open() as database, database.reading():
            return {(topic, 0): offset for topic, offset in database.positions(group).items()}

    def checkpoint(self, group: str) -> Checkpoint:
        """Return the current positions and ends, which always match: batches are transactions."""
        with self._open() as database, database.reading():
            positions = database.positions(group)
            ends = {(topic, 0): database.end(TABLES[topic]) for topic in COMPACTED}
            waiting: list[Outgoing] = []
            at, table = positions["consensus"], INPUTS["consensus"]
            while found := database.records(table, at, _MANY):
                at = found[-1].offset + 1
                waiting += [
                    Outgoing(topic="consensus", key=record.key, value=None) for record in found
                ]
            return Checkpoint(
                positions={(topic, 0): offset for topic, offset in positions.items()},
                ends=ends,
                heeded={0: ends["consensus", 0]},
                waiting=waiting,
            )

    def n_members(self, group: str) -> int:  # noqa: ARG002
        """Return 1 if a worker of any group holds the directory, otherwise 0."""
        return int(is_held(self.directory))

    def close(self) -> None:
        """Close the worker clients that are open."""
        for client in self._clients:
            client.close()
        self._clients.clear()

    def _open(self) -> closing[Database]:
        return closing(Database(database_in(self.directory)))


# --- Worker client, reader and writer. A commit is one transaction: records and input positions.

_MANY = 500
_TOLD_EVERY = 10_000
_MOST_UNSENT = 5000
_MOST_UNSENT_BYTES = 1 << 20
_STEP_S = 0.02
COMPACT_BYTES = 64 << 20
"""How much is written to a compacted topic, at least, between two compactions of a worker: as much
as its segments have on Kafka. Each takes about a second."""


class EmbeddedWorkerClient(WorkerClient):
    """The only worker of an embedded broker.

    Parameters
    ----------
    directory
        Directory of the database.
    group
        Group whose positions are used; a new group starts at the first record.
    max_records
        The largest number of records that a poll returns.
    clock
        Stamps the records written, POSIX seconds.

    Raises
    ------
    BrokerError
        If another worker holds the directory, or the database is not as a worker left it.

    """

    # _committed   positions committed in the inputs
    # _polled      positions polled in the inputs
    # _taken_back  polled since the last commit; written to `consensus`, to be part of the history
    # _fault       why a commit has failed
    # _n_left      bytes to write to each compacted topic before it is compacted again

    def __init__(
        self, directory: Path, *, group: str, max_records: int, clock: Callable[[], float]
    ) -> None:
        self._group = group
        self._max_records = max_records
        self._clock = clock
        self._has_polled = False
        self._fault: str | None = None
        self._taken_back: list[Outgoing] = []
        self._n_left: dict[TopicName, int] = {}
        with ExitStack() as undo:
            self._lock: int | None = hold(directory)
            undo.callback(os.close, self._lock)
            self._database = Database(database_in(directory))
            undo.callback(self._database.close)
            self._database.check()
            for topic in COMPACTED:
                self._compact(topic)
            with self._database.reading():
                self._committed = self._database.positions(group)
            self._polled = dict(self._committed)
            undo.pop_all()

    @property
    def assigned(self) -> frozenset[int]:
        """The only partition, after the first poll."""
        return frozenset({0} if self._has_polled else ())

    @property
    def generation(self) -> int:
        """0 after the first poll: no other worker ever gets the partition."""
        return 0 if self._has_polled else -1

    def poll(self, timeout_s: float, held: Set[int] = frozenset()) -> list[Record]:
        self._check()
        self._has_polled = True
        records = [] if held else _wait_for(self._read, timeout_s)
        self._taken_back += [
            Outgoing(topic="consensus", key=record.key, value=None)
            for record in records
            if record.topic == "consensus" and record.value is None
        ]
        return records

    def history_batches(
        self, starts: Mapping[int, Mapping[TopicName, int]], progress: Progress | None = None
    ) -> Iterator[Sequence[Record]]:
        self._check()
        spans: list[tuple[TopicName, int, int]] = []
        n_all = 0
        with self._database.reading():
            for number, offsets in starts.items():
                _check_partition(number)
                for topic in COMPACTED:
                    start, end = offsets.get(topic, 0), self._database.end(TABLES[topic])
                    if start > end:
                        raise ShortTopicError(
                            {
                                number: f"{topic} in {self._database.path} ends at offset {end}, "
                                f"but is known up to {start}: it was recreated, or has lost its end"
                            }
                        )
                    spans.append((topic, start, end))
                    n_all += self._database.count(TABLES[topic], start, end)
        return self._history(spans, n_all, progress)

    def commit(self, outgoing: Sequence[Outgoing]) -> dict[Place, int]:
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
        for topic in COMPACTED:
            self._n_left[topic] -= sum(map(content_size, records.get(topic, ())))
            if self._n_left[topic] <= 0:
                self._compact_written(topic)
        return ends

    def lag(self) -> dict[Place, int | None]:
        self._check()
        with self._database.reading():
            return {
                (topic, 0): self._database.count(table, self._polled[topic])
                for topic, table in INPUTS.items()
            }

    def close(self, *, leave: bool = False) -> None:  # noqa: ARG002
        """Release the directory; what was polled and not committed is delivered again."""
        if self._lock is not None:
            self._database.close()
            os.close(self._lock)
            self._lock = None

    def _check(self) -> None:
        if self._lock is None:
            raise ValueError("worker client is closed; open another one")
        if self._fault is not None:
            raise BrokerError(f"worker client has failed ({self._fault}); start again")

    def _compact(self, topic: TopicName) -> None:
        """Compact a topic, which at most doubles until the next time, or grows by little."""
        n_kept = self._database.compact(TABLES[topic], self._clock())
        self._n_left[topic] = max(COMPACT_BYTES, n_kept)

    def _compact_written(self, topic: TopicName) -> None:
        """Compact a topic after a commit, which a lack of space for a second copy does not undo.

        It is then tried again after as many bytes, and when a worker starts.
        """
        self._n_left[topic] = COMPACT_BYTES
        try:
            self._compact(topic)
        except RefusedError as error:
            self._fault = str(error)
            raise
        except BrokerError:
            return

    def _read(self) -> list[Record]:
        records: list[Record] = []
        polled = dict(self._polled)
        with self._database.reading():
            for topic, table in INPUTS.items():
                most = self._max_records - len(records)
                found = self._database.records(table, polled[topic], most)
                if found:
                    polled[topic] = found[-1].offset + 1
                    records += found
        self._polled = polled  # only now: after an error, nothing that was read is returned
        return records

    def _history(
        self, spans: Sequence[tuple[TopicName, int, int]], n_all: int, progress: Progress | None
    ) -> Iterator[list[Record]]:
        n_done = n_told = 0
        for topic, start, end in spans:
            while True:
                self._check()
                with self._database.reading():
                    records = self._database.records(TABLES[topic], start, _MANY, end)
                if not records:
                    break
                yield records
                start = records[-1].offset + 1
                n_done += len(records)
                if progress is not None and n_done - n_told >= _TOLD_EVERY:
                    n_told = n_done
                    progress(n_done, max(n_done, n_all))


class EmbeddedReader(Reader):
    """Reads topics of an embedded broker; with a group, from where it has committed."""

    # _offsets  next offset of each topic
    # _goals    the topics' ends when the reader was opened, or looked again

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
        return _wait_for(self._read, timeout_s)

    @property
    def caught_up(self) -> bool:
        return all(self._offsets[topic] >= goal for topic, goal in self._goals.items())

    def look_again(self) -> None:
        with self._database.reading():
            self._goals = {topic: self._database.end(TABLES[topic]) for topic in self._goals}

    def commit(self) -> None:
        if self._group is None:
            raise ValueError(NO_GROUP)
        with self._database.writing():
            self._database.move_reader(self._group, self._offsets)

    def close(self) -> None:
        self._database.close()

    def _read(self) -> list[Record]:
        records: list[Record] = []
        offsets = {}
        with self._database.reading():
            for topic, offset in self._offsets.items():
                table = TABLES[topic]
                found = self._database.records(table, offset, _MANY)
                # Records compacted away after the last one count as read.
                offsets[topic] = found[-1].offset + 1 if found else self._database.end(table)
                records += found
        self._offsets = offsets  # only now: after an error, nothing that was read is returned
        return records


class EmbeddedWriter(Writer):
    """Writes the inputs of a worker; each flush is one transaction."""

    # _unsent               records of each input that were taken and not written
    # _n_records, _n_bytes  their number and size
    # _has_failed           whether the caller was told that they are not on disk

    def __init__(self, directory: Path, *, clock: Callable[[], float]) -> None:
        self._has_failed = False
        self._database = Database(database_in(directory))
        self._clock = clock
        self._unsent: dict[TopicName, list[Outgoing]] = {}
        self._n_records = self._n_bytes = 0

    def send(self, record: Outgoing) -> None:
        """Take a record; it is written at the next flush, or once there are many."""
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
        """Return once everything taken is on disk.

        Raises
        ------
        BrokerError
            If it is not; then nothing was written, and the records are kept for the next attempt.

        """
        if self._unsent:
            now = self._clock()
            try:
                with self._database.writing():
                    for topic, records in self._unsent.items():
                        self._database.append(INPUTS[topic], records, now)
            except BrokerError:
                self._has_failed = True
                raise
            self._has_failed = False
            self._unsent.clear()
            self._n_records = self._n_bytes = 0

    def close(self) -> None:
        """Write what was taken, except after a failed `flush`: its caller may send it again."""
        try:
            if not self._has_failed:
                self.flush()
        finally:
            self._database.close()


def _wait_for(read: Callable[[], list[Record]], timeout_s: float) -> list[Record]:
    """Return what can be read; poll until there is something, or the timeout has passed."""
    until = monotonic() + timeout_s
    while not (records := read()) and (left := until - monotonic()) > 0.0:
        sleep(min(_STEP_S, left))
    return records


def _check_partition(number: int) -> None:
    if number != 0:
        raise ValueError(f"partition must be 0, the only one, got {number}")
