"""A worker's hold on a directory of topics.

A commit appends to the files of the outputs, forces them to the disk, and then replaces the
position file. What lies behind the ends that it names was never committed: readers do not look at
it, and the next worker cuts it off.

"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from msgspec.structs import replace

from connectors.files.compaction import compact
from connectors.files.layout import check_end, committed_end, count_lines, in_words, no_record
from connectors.files.locks import hold
from connectors.files.logs import Tail, next_records, wait_for
from connectors.files.positions import (
    INPUT_LOGS,
    LOGS,
    OUTPUT_LOGS,
    read_position,
    write_position,
)
from connectors.topics import (
    COMPACTED,
    Begun,
    LinkError,
    Obstacle,
    Outgoing,
    Place,
    Progress,
    Record,
    ShortTopicError,
    Stalled,
    TopicName,
)
from connectors.wire.record_lines import to_line

_MANY = 500
_TOLD_EVERY = 10_000


class FileLink:
    """The only worker on a directory of topics.

    Parameters
    ----------
    directory
        Where the topics are.
    group
        Whose positions are used; a group starts at the beginning.
    max_records
        How many records a poll returns at most.
    clock
        Stamps what is written.

    Raises
    ------
    LinkError
        If another worker has the directory, or it is not as a worker has left it.

    """

    # _tails       the inputs, from what was polled last
    # _committed   how far the inputs are committed
    # _ends        how far the outputs are committed
    # _files       descriptors of the outputs
    # _taken_back  polled since the last commit: goes to `consensus`, to be part of the history
    # _fault       why a commit has failed; what was written of it waits to be cut off

    def __init__(
        self, directory: Path, *, group: str, max_records: int, clock: Callable[[], float]
    ) -> None:
        self._directory = directory
        self._group = group
        self._max_records = max_records
        self._clock = clock
        self._has_polled = False
        self._fault: str | None = None
        self._taken_back: list[Outgoing] = []
        self._files: dict[TopicName, int] = {}
        self._lock: int | None = hold(directory)
        with ExitStack() as undo:
            undo.callback(self.close)
            self._position = read_position(directory)
            self._committed = self._position.of(group)
            self._ends = self._recover()
            self._tails = {
                topic: Tail(directory / name, self._committed[topic])
                for topic, name in INPUT_LOGS.items()
            }
            undo.pop_all()

    @property
    def assigned(self) -> frozenset[int]:
        """The only partition, once it was polled."""
        return frozenset({0} if self._has_polled else ())

    @property
    def generation(self) -> int:
        """0, once it was polled: nobody else ever gets the partition."""
        return 0 if self._has_polled else -1

    def poll(self, timeout_s: float) -> list[Record]:
        """Return the next inputs, answers before events."""
        self._check()
        self._has_polled = True
        records = wait_for(self._read, timeout_s)
        for record in records:
            if record.topic == "consensus" and record.value is None:
                self._taken_back.append(Outgoing(topic="consensus", key=record.key, value=None))
        return records

    def history(
        self, starts: Mapping[int, Mapping[TopicName, int]], progress: Progress | None = None
    ) -> Iterator[Record]:
        """Return what was written to `state` and `consensus`."""
        self._check()
        tails: list[tuple[TopicName, Tail, int]] = []
        n_all = 0
        for number, offsets in starts.items():
            _check_partition(number)
            for topic in sorted(COMPACTED, reverse=True):
                path, start, end = self._path(topic), offsets.get(topic, 0), self._ends[topic]
                if start > end:
                    raise ShortTopicError(
                        {
                            number: f"{path} ends at offset {end}, but is known up to {start}: it "
                            "was made anew, or has lost its end"
                        }
                    )
                tails.append((topic, Tail(path, start), end))
                n_all += count_lines(path, start, end)
        return _history(tails, n_all, progress)

    def commit(self, outgoing: Sequence[Outgoing]) -> dict[tuple[TopicName, int], int]:
        """Write records, and take note that everything polled so far is done with."""
        self._check()
        now = self._clock()
        lines: dict[TopicName, list[bytes]] = {}
        for record in (*self._taken_back, *outgoing):
            _check_partition(record.partition or 0)
            if record.topic not in OUTPUT_LOGS:
                raise ValueError(
                    f"topic must be one of {', '.join(OUTPUT_LOGS)}, got {record.topic!r}"
                )
            lines.setdefault(record.topic, []).append(to_line(record, now))
        reached = {topic: tail.offset for topic, tail in self._tails.items()}
        if not lines and reached == self._committed:
            return {}
        try:
            ends = dict(self._ends)
            for topic, some in lines.items():
                ends[topic] += self._append(topic, b"\n".join(some) + b"\n")
            groups = {**self._position.groups, self._group: reached}
            position = replace(self._position, ends=ends, groups=groups)
            write_position(self._directory, position)
        except LinkError as error:
            self._fault = str(error)
            raise
        self._position, self._committed, self._ends = position, reached, ends
        self._taken_back.clear()
        return {(topic, 0): ends[topic] for topic in lines}

    def lag(self) -> dict[tuple[TopicName, int], int | None]:
        """Return about how many records wait in each input."""
        self._check()
        return {
            (topic, 0): count_lines(tail.path, tail.offset) for topic, tail in self._tails.items()
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
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files.clear()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _path(self, topic: TopicName) -> Path:
        return self._directory / LOGS[topic]

    def _check(self) -> None:
        if self._lock is None:
            raise ValueError("link is closed; open another one")
        if self._fault is not None:
            raise LinkError(f"link has failed ({self._fault}); start again")

    def _recover(self) -> dict[TopicName, int]:
        """Cut off what was not committed, and compact; return the end of each output."""
        for topic, name in INPUT_LOGS.items():
            check_end(self._directory / name, self._committed[topic])
        sizes = {
            topic: check_end(self._path(topic), self._position.ends[topic]) for topic in OUTPUT_LOGS
        }
        ends = {
            topic: committed_end(self._path(topic), end)
            for topic, end in self._position.ends.items()
        }
        if ends != self._position.ends:
            # A file is compacted once between two positions, or they would not fit together.
            self._position = replace(self._position, ends=ends)
            write_position(self._directory, self._position)
        for topic, size in sizes.items():
            path = self._path(topic)
            try:
                os.truncate(path, size)
                if topic in COMPACTED:
                    ends[topic] = compact(path, topic, ends[topic], now=self._clock())
                self._files[topic] = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            except OSError as error:
                raise in_words(f"cannot write {path}", error) from error
        return ends

    def _append(self, topic: TopicName, data: bytes) -> int:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._files[topic], rest) :]
            os.fsync(self._files[topic])
        except OSError as error:
            raise in_words(f"cannot write {self._path(topic)}", error) from error
        return len(data)

    def _read(self) -> list[Record]:
        records: list[Record] = []
        for topic, tail in self._tails.items():
            records += next_records(topic, tail, self._max_records - len(records))
        return records


def _history(
    tails: list[tuple[TopicName, Tail, int]], n_all: int, progress: Progress | None
) -> Iterator[Record]:
    n_done = n_told = 0
    for topic, tail, end in tails:
        while records := next_records(topic, tail, _MANY, end):
            for record in records:
                if record.key is None:
                    raise no_record(tail.path, record.offset)
                yield record
            n_done += len(records)
            if progress is not None and n_done - n_told >= _TOLD_EVERY:
                n_told = n_done
                progress(n_done, max(n_done, n_all))


def _check_partition(number: int) -> None:
    if number != 0:
        raise ValueError(f"partition must be 0, the only one, got {number}")
