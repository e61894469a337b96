"""Where offsets lie in the files of topics, and whether the files are what they were.

The offset of a record is the byte at which its line begins, counted as if nothing had ever been
compacted. A compacted file begins with a line that says where its offsets begin, and where they
ended when it was compacted: `{"compacted":{"first":1201,"end":1544}}`. The offset before `first` is
the end of the file that it replaced, so that who had read that to its end goes on behind `end`,
and who had not, reads all that is left.

"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

import msgspec

from connectors.storage.snapshots import StateError, state_error
from connectors.topics import LinkError, RefusedError
from connectors.wire.record_lines import COMPACTED_MARK

COMPACTED_FILES = frozenset({"consensus.jsonl", "state.jsonl"})
_CHUNK = 1 << 20
# Faults that go away without anybody naming another place.
_PASSING = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EIO,
    errno.EINTR,
    errno.EAGAIN,
    errno.ENFILE,
    errno.EMFILE,
}


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """Where the offsets of a file lie.

    Parameters
    ----------
    header
        Bytes of the first line, if it says that the file was compacted, else 0.
    first
        Offset of the byte behind it.
    end
        Offset behind the last line that was compacted.

    Examples
    --------
    >>> layout = Layout(header=40, first=1201, end=1544)
    >>> [layout.place(offset) for offset in (0, 1200, 1201, 1300, 1544)]
    [40, 383, 40, 139, 383]

    """

    header: int = 0
    first: int = 0
    end: int = 0

    def place(self, offset: int) -> int:
        """Return the byte at which somebody reads on who has read up to an offset."""
        if offset == self.first - 1:
            offset = self.end
        return self.header + max(0, offset - self.first)

    def offset(self, place: int) -> int:
        """Return the offset of a byte behind the first line."""
        return self.first + place - self.header

    def to_line(self) -> bytes:
        """Return the first line."""
        return COMPACTED_MARK + b'{"first":%d,"end":%d}}\n' % (self.first, self.end)


class _Compacted(msgspec.Struct, forbid_unknown_fields=True):
    first: int
    end: int


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    compacted: _Compacted


_headers = msgspec.json.Decoder(_Header)


def layout_of(path: Path, file: FileIO) -> Layout:
    """Return where the offsets of an open file lie.

    Raises
    ------
    LinkError
        If its first line is damaged.

    """
    if path.name not in COMPACTED_FILES:
        return Layout()
    line = os.pread(file.fileno(), 128, 0).partition(b"\n")[0]
    if not line.startswith(COMPACTED_MARK):
        return Layout()
    try:
        header = _headers.decode(line).compacted
    except (msgspec.MsgspecError, ValueError) as error:
        raise changed(path, f"its first line is damaged ({error})") from None
    return Layout(header=len(line) + 1, first=header.first, end=header.end)


def committed_end(path: Path, end: int) -> int:
    """Return the end of a file, given the one that counted before it was perhaps compacted."""
    with opened(path) as file:
        return max(end, layout_of(path, file).end)


def check_end(path: Path, end: int) -> int:
    """Return how many bytes of a file count, if a line ends where they do.

    Raises
    ------
    LinkError
        If the file is not there or shorter, or no line ends there.

    """
    with opened(path) as file:
        layout = layout_of(path, file)
        if layout.first and end != layout.first - 1 and end < layout.end:
            raise changed(path, f"offset {end} is not in it")
        place = layout.place(end)
        size = os.fstat(file.fileno()).st_size
        if size < place:
            raise too_short(path, size, place)
        if place and os.pread(file.fileno(), 1, place - 1) != b"\n":
            raise changed(path, f"no line ends at byte {place}")
    return place


def end_of_lines(path: Path) -> int:
    """Return the offset behind the last line that has an end."""
    with opened(path) as file:
        layout = layout_of(path, file)
        stop = os.fstat(file.fileno()).st_size
        while stop > layout.header:
            start = max(layout.header, stop - _CHUNK)
            found = os.pread(file.fileno(), stop - start, start).rfind(b"\n")
            if found >= 0:
                return layout.offset(start + found + 1)
            stop = start
        return layout.offset(layout.header)


def count_lines(path: Path, start: int, end: int | None = None) -> int:
    """Return how many lines follow an offset; about how many, if there is more than a sample.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     path = Path(directory, "events.jsonl")
    ...     _ = path.write_text("{}\\n[]\\n{")
    ...     count_lines(path, 0), count_lines(path, 3)
    (2, 1)

    """
    with opened(path) as file:
        layout = layout_of(path, file)
        place = layout.place(start)
        stop = os.fstat(file.fileno()).st_size if end is None else layout.place(end)
        n_bytes = max(0, stop - place)
        sample = os.pread(file.fileno(), min(_CHUNK, n_bytes), place)
    n = sample.count(b"\n")
    return n if len(sample) == n_bytes else round(n * n_bytes / len(sample))


@contextmanager
def opened(path: Path) -> Iterator[FileIO]:
    """Open a file to be read, and say in a sentence what the system has against it.

    Raises
    ------
    LinkError
        If it cannot be read.

    """
    try:
        with FileIO(path) as file:
            yield file
    except LinkError:
        raise
    except FileNotFoundError:
        raise changed(path, "it is not there") from None
    except OSError as error:
        raise in_words(f"cannot read {path}", error) from error


def in_words(what: str, error: OSError) -> LinkError:
    """Say what went wrong, why, and what to do; refuse what only somebody can change."""
    if isinstance(error, LinkError):
        return error
    if isinstance(error, StateError):
        return LinkError(str(error))
    kind = LinkError if error.errno in _PASSING else RefusedError
    return kind(str(state_error(what, error)))


def changed(path: Path, what: str) -> RefusedError:
    """Say that a file is not what it was."""
    return RefusedError(
        f"{path} was changed: {what}; bring it back, or begin anew in another directory"
    )


def no_record(path: Path, offset: int) -> LinkError:
    """Say that a line in a file which a worker alone writes is none of its own."""
    with opened(path) as file:
        place = layout_of(path, file).place(offset)
    return changed(path, f"no worker has written the line at byte {place}")


def too_short(path: Path, size: int, expected: int) -> LinkError:
    """Say that a file lost its end."""
    return changed(path, f"it has {size} bytes, expected at least {expected}")
