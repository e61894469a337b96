"""Topics as files of lines: reading them as they grow."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from time import monotonic, sleep

from connectors.files.layout import changed, layout_of, opened, too_short
from connectors.files.positions import INPUT_LOGS
from connectors.topics import Record, TopicName, Whole
from connectors.wire.codec import MAX_BYTES, MAX_INPUT_BYTES
from connectors.wire.record_lines import Line, from_line

LONGEST_LINE = 1 << 26
"""More bytes without the end of a line are no record of a worker."""
LONGEST_INPUT = MAX_BYTES
"""Of a longer line that others have written the beginning is read: no such input can be used."""
STEP_S = 0.05
"""How often it is looked whether a file has grown."""
_CHUNK = 1 << 20
_SKIMMED = 1 << 26
"""How much of a line that is too long is read at a time, so that a worker still hears signals."""
_INPUT_FILES = frozenset(INPUT_LOGS.values())


class Tail:
    """Reads the whole lines of a file, from an offset on, as it grows.

    Parameters
    ----------
    path
        The file.
    start
        The first offset that is wanted; between two lines, or within one that is not wanted.

    Attributes
    ----------
    offset
        Where the next line begins.
    modified_at
        When the file was last written to before its lines were read, POSIX seconds.
    compacted_end
        The offset behind what was compacted, as of the last reading; 0 if nothing was.
    cut
        Of the lines read last, which are only the beginning of one, by offset.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     path = Path(directory, "events.jsonl")
    ...     _ = path.write_text("{}\\n[]\\n{")
    ...     tail = Tail(path)
    ...     tail.read(10), tail.offset
    ([(0, b'{}'), (3, b'[]')], 6)

    """

    # _buffer    bytes read and not yet given away, from `offset` on
    # _aligned   whether `offset` is known to be the beginning of a line
    # _long      the line at `offset`, as far as it was read, if it is too long; None otherwise

    def __init__(self, path: Path, start: int = 0) -> None:
        self.path = path
        self.offset = start
        self.modified_at = 0.0
        self.compacted_end = 0
        self._buffer = b""
        self._aligned = start == 0
        self._long: _LongLine | None = None
        self.cut: dict[int, Whole] = {}

    def read(self, most: int, end: int | None = None) -> list[tuple[int, bytes]]:
        """Return the next lines with their offsets, without their ends; blank ones are left out.

        Of an input that is too long it returns the beginning, once it has an end; see `cut`.

        Parameters
        ----------
        most
            How many at most; fewer, if they are long.
        end
            What lies behind this offset is not to be read yet.

        Raises
        ------
        LinkError
            If the file cannot be read, or is not what it was.

        """
        lines: list[tuple[int, bytes]] = []
        self.cut = {}
        first = self.offset
        while len(lines) < most and self.offset - first < _CHUNK:
            if not self._buffer and not self._fill(end):
                break
            if self._long is not None:
                lines.append((self.offset, self._long.head))
                self.cut[self.offset] = self._long.whole()
                self.offset += self._long.size + 1
                self._long = None
                continue
            start = 0
            while len(lines) < most and (stop := self._buffer.find(b"\n", start)) >= 0:
                line = self._buffer[start:stop]
                if line and not line.isspace():
                    lines.append((self.offset + start, line))
                start = stop + 1
            self._buffer = self._buffer[start:]
            self.offset += start
        return lines

    def _fill(self, end: int | None) -> bool:
        """Read on up to the last end of a line, or of one that is too long; return whether."""
        with opened(self.path) as file:
            layout = layout_of(self.path, file)
            self.compacted_end = layout.end
            status = os.fstat(file.fileno())
            place = layout.place(self.offset)
            stop = status.st_size if end is None else layout.place(end)
            stop = max(place, stop)
            if status.st_size < stop:
                raise too_short(self.path, status.st_size, stop)
            if not self._aligned:
                found = _next_line(file, place, stop) if place > layout.header else place
                if found is None:
                    return False
                place = found
                self._aligned = True
            elif place > layout.header and os.pread(file.fileno(), 1, place - 1) != b"\n":
                raise changed(self.path, f"no line begins at byte {place}")
            self.offset = layout.offset(place)
            self.modified_at = status.st_mtime
            if self._long is None:
                is_input = self.path.name in _INPUT_FILES
                longest = LONGEST_INPUT if is_input else LONGEST_LINE
                whole = _whole_lines(file, place, stop, longest)
                if whole is not None:
                    self._buffer = whole
                    return bool(whole)
                if not is_input:
                    raise changed(
                        self.path,
                        f"no worker has written the line of more than {longest} bytes at byte "
                        f"{place}",
                    )
                self._long = _LongLine()
            return self._long.read_on(file, place, stop)


class _LongLine:
    """A line that is too long for an input, read piece by piece.

    Attributes
    ----------
    head
        Its beginning, as much as dead letters keep.
    size
        How many bytes of it were read.

    """

    def __init__(self) -> None:
        self.head = b""
        self.size = 0
        self._hash = hashlib.sha256()

    def read_on(self, file: FileIO, place: int, stop: int) -> bool:
        """Read what there is of it, up to a limit; return whether it has ended.

        Parameters
        ----------
        file
            Where it lies.
        place
            The byte at which it begins.
        stop
            The byte up to which may be read.

        """
        stop = min(stop, place + self.size + _SKIMMED)
        while place + self.size < stop:
            data = os.pread(file.fileno(), min(_CHUNK, stop - place - self.size), place + self.size)
            if not data:
                break
            found = data.find(b"\n")
            data = data if found < 0 else data[:found]
            self.head += data[: MAX_INPUT_BYTES - len(self.head)]
            self.size += len(data)
            self._hash.update(data)
            if found >= 0:
                return True
        return False

    def whole(self) -> Whole:
        """Return what is known of it."""
        return Whole(size=self.size, sha256=self._hash.hexdigest())


def next_records(topic: TopicName, tail: Tail, most: int, end: int | None = None) -> list[Record]:
    """Return the next records of a file."""
    records = []
    for offset, text in tail.read(most, end):
        whole = tail.cut.get(offset)
        line = Line(key=None, value=text) if whole is not None else from_line(topic, text)
        if line is not None:
            records.append(
                Record(
                    topic=topic,
                    partition=0,
                    offset=offset,
                    key=line.key,
                    value=line.value,
                    headers=line.headers,
                    at=tail.modified_at if line.at is None else line.at,
                    whole=whole,
                )
            )
    return records


def wait_for(read: Callable[[], list[Record]], timeout_s: float) -> list[Record]:
    """Return what can be read; look again until there is something, or the time is over."""
    until = monotonic() + timeout_s
    while not (records := read()) and (left := until - monotonic()) > 0.0:
        sleep(min(STEP_S, left))
    return records


def _whole_lines(file: FileIO, place: int, stop: int, longest: int) -> bytes | None:
    """Return some of the lines between two bytes, at least one if there is one.

    None if the first of them has more bytes than allowed.
    """
    wanted = _CHUNK
    while True:
        data = os.pread(file.fileno(), min(wanted, stop - place), place)
        whole = data[: data.rfind(b"\n") + 1]
        if whole or len(data) < wanted:
            return whole
        if wanted >= longest:
            return None
        wanted *= 2


def _next_line(file: FileIO, place: int, stop: int) -> int | None:
    """Return the first byte at or behind a place at which a line begins, if there is one."""
    place -= 1  # where the end of the line before may be
    while place < stop:
        data = os.pread(file.fileno(), min(_CHUNK, stop - place), place)
        found = data.find(b"\n")
        if found >= 0:
            return place + found + 1
        if not data:
            break
        place += len(data)
    return None
