"""Reading a directory of topics along with a worker, and writing for it to read."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from connectors.files.layout import committed_end, end_of_lines, in_words
from connectors.files.logs import Tail, next_records, wait_for
from connectors.files.positions import INPUT_LOGS, LOGS, read_position
from connectors.topics import Outgoing, Record, TopicName
from connectors.wire.record_lines import to_line

_MANY = 500
_MOST_UNSENT = 1 << 20


class FileReader:
    """Reads topics of a directory."""

    # _goals  up to where was written when the reader was opened

    def __init__(self, directory: Path, topics: Iterable[TopicName], *, from_end: bool) -> None:
        self._directory = directory
        self._tails: dict[TopicName, Tail] = {}
        self._goals: dict[TopicName, int] = {}
        ends = read_position(directory).ends
        for topic in topics:
            path = directory / LOGS[topic]
            end = committed_end(path, ends[topic]) if topic in ends else end_of_lines(path)
            self._goals[topic] = end
            self._tails[topic] = Tail(path, end if from_end else 0)

    def poll(self, timeout_s: float) -> list[Record]:
        """Return the next records, committed ones only; an empty list if none came in time."""
        return wait_for(self._read, timeout_s)

    @property
    def caught_up(self) -> bool:
        """Whether everything has been read that was there when the reader was opened."""
        return all(
            tail.offset >= max(self._goals[topic], tail.compacted_end)
            for topic, tail in self._tails.items()
        )

    def close(self) -> None:
        """Let go."""

    def _read(self) -> list[Record]:
        ends = read_position(self._directory).ends
        records: list[Record] = []
        for topic, tail in self._tails.items():
            records += next_records(topic, tail, _MANY, ends.get(topic))
        return records


class FileWriter:
    """Appends to the inputs of a worker; several at a time do not mix their lines."""

    # _unsent  whole lines, for each file

    def __init__(self, directory: Path, *, clock: Callable[[], float]) -> None:
        self._directory = directory
        self._clock = clock
        self._unsent: dict[str, bytearray] = {}

    def send(self, record: Outgoing) -> None:
        """Take a record; it leaves with the next flush, or when there are many."""
        if record.partition not in (None, 0):
            raise ValueError(f"partition must be 0, the only one, got {record.partition}")
        is_example = record.topic == "consensus" and record.value is not None
        if record.topic not in INPUT_LOGS or is_example:
            raise ValueError(
                "record must be an event, an answer or one that takes an example back, got one for "
                f"{record.topic}; that file is the worker's"
            )
        unsent = self._unsent.setdefault(INPUT_LOGS[record.topic], bytearray())
        unsent += to_line(record, self._clock()) + b"\n"
        if len(unsent) > _MOST_UNSENT:
            self.flush()

    def flush(self) -> None:
        """Return when everything taken is on the disk.

        Raises
        ------
        LinkError
            If something is not; it is kept for the next attempt.

        """
        for name, unsent in self._unsent.items():
            path = self._directory / name
            try:
                while unsent:
                    del unsent[: _append(path, bytes(unsent))]
            except OSError as error:
                raise in_words(f"cannot write {path}", error) from error

    def close(self) -> None:
        """Flush and let go."""
        self.flush()


def _append(path: Path, lines: bytes) -> int:
    """Append lines to a file that others append to as well; return how many bytes are safe."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # some file systems lock nothing; a write is whole all the same
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        size = os.fstat(descriptor).st_size
        # Somebody may have been interrupted within a line, or have forgotten its end.
        mend = b"\n" if size and os.pread(descriptor, 1, size - 1) != b"\n" else b""
        data = mend + lines
        n_written = os.write(descriptor, data)
        if n_written < len(data):
            # The disk is full. What is whole may have been read already; the rest is taken back.
            n_whole = data.rfind(b"\n", 0, n_written) + 1
            end = os.lseek(descriptor, 0, os.SEEK_CUR)
            if os.fstat(descriptor).st_size == end:
                os.ftruncate(descriptor, end - n_written + n_whole)
            if n_whole <= len(mend):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            n_written = n_whole
        os.fsync(descriptor)
        return n_written - len(mend)
    finally:
        os.close(descriptor)
