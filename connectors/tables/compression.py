"""Bytes of a file, decompressed on the way, and how far they have been read.

Compression is told by the first bytes, not by the name: a downloaded `.gz` that was unpacked on its
way still opens.

"""

from __future__ import annotations

import gzip
import shutil
import sys
import tempfile
import zlib
from io import BufferedReader, FileIO, RawIOBase
from pathlib import Path
from typing import IO, Any

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_BUFFER = 1 << 17
DAMAGES: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error, zstd.ZstdError)
"""What a damaged or unreadable file raises while it is read."""


class TableError(ValueError):
    """A file that holds no readable table; its text says what is wrong and what to do."""


class BinaryFile:
    """A file opened for reading, whatever its compression.

    Parameters
    ----------
    path
        The file.

    Attributes
    ----------
    path
        The file.
    stream
        Its decompressed bytes.

    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self._raw: BufferedReader[Any] = BufferedReader(FileIO(self.path), _BUFFER)
        except FileNotFoundError:
            raise TableError(f"{path} is not there; expected a file") from None
        except IsADirectoryError:
            raise TableError(f"{path} is a directory; expected a file") from None
        except OSError as error:
            raise TableError(f"{path} cannot be read: {error.strerror}") from None
        self._size = self.path.stat().st_size
        self._inner: Any = None
        try:
            magic = self._raw.peek(4)[:4]
        except OSError as error:
            self._raw.close()
            raise TableError(f"{path} cannot be read: {error.strerror}") from None
        if magic.startswith(b"\x1f\x8b"):
            self._inner = gzip.GzipFile(fileobj=self._raw, mode="rb")
        elif magic == b"\x28\xb5\x2f\xfd":
            self._inner = zstd.ZstdFile(self._raw, mode="rb")
        self.stream: BufferedReader[Any] = self._raw
        if self._inner is not None:
            self.stream = BufferedReader(_Unpacked(self._inner), _BUFFER)

    @property
    def names_json(self) -> bool:
        """Whether the name says that the file holds JSON."""
        suffixes = [s for s in self.path.suffixes if s not in (".gz", ".zst")]
        return suffixes[-1:] in ([".json"], [".jsonl"], [".ndjson"])

    @property
    def progress(self) -> float:
        """Share of the file's own bytes that were read; 1 for what has no size, such as a pipe."""
        if self._raw.closed or self._size == 0:
            return 1.0
        return min(1.0, self._raw.tell() / self._size)

    def seekable(self) -> IO[bytes]:
        """Return the decompressed bytes as a file that can seek: a temporary one if need be."""
        if self._inner is None:
            return self._raw
        unpacked = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            shutil.copyfileobj(self.stream, unpacked, _BUFFER)
        except DAMAGES as error:
            unpacked.close()
            raise self.damaged(0, error) from None
        unpacked.seek(0)
        return unpacked

    def damaged(self, n_rows: int, error: Exception) -> TableError:
        """Return the error of a file that broke off after some rows."""
        return TableError(
            f"{self.path} is damaged after row {n_rows}: {str(error).rstrip('.')}; "
            "the rows before were read, copy the file again for the rest"
        )

    def close(self) -> None:
        """Let go of the file."""
        self._raw.close()


class _Unpacked(RawIOBase):
    """Hands on what the decompressor has, so that nothing before a damage is lost in a buffer."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        data = self._inner.read1(len(view))
        view[: len(data)] = data
        return len(data)
