"""Messages in a directory, one JSON object per line, in the order in which they were sent.

The same messages give the same bytes. Earlier contents of the files are replaced, unless the sizes
from which to continue are given.

"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec

from connectors.broker import Received, Sink
from connectors.storage.snapshots import (
    lock_directory,
    opened_directory,
    replacing,
    state_error,
    sync_file,
    what_is_there,
)
from connectors.wire.codec import MAX_BYTES, DecodeError, decode, encode
from streamgp.common.private_files import make_directory, private
from streamgp.common.validation import check_path
from streamgp.interactive.messages import (
    Answer,
    Cancel,
    Challenge,
    Expired,
    Input,
    LabelledExample,
    LabelRequest,
    Message,
    Prediction,
    Rejected,
    Retraction,
)

FILES: dict[type, str] = {
    Prediction: "predictions.jsonl",
    LabelRequest: "requests.jsonl",
    Challenge: "requests.jsonl",
    Cancel: "requests.jsonl",
    Expired: "requests.jsonl",
    Answer: "answers.jsonl",
    LabelledExample: "consensus.jsonl",
    Rejected: "rejected.jsonl",
}
"""The file of each type of message."""

_BUFFER = 1 << 18


class MessageFiles(Sink):
    """A sink that writes every message to its file.

    Parameters
    ----------
    directory
        Where the files are written; created if it does not exist. All files are created at once, so
        that an empty one means that there were no messages. Only the owner can access what is
        created.
    sizes
        What `sync` returned, to continue from there: anything written afterwards is cut off.

    Raises
    ------
    ValueError
        If the directory is not writable, or a file is shorter than it was.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     files = MessageFiles(directory)
    ...     files.send(Expired(request_id="e1/label", event_id="e1", at=3.0))
    ...     files.close()
    ...     print(Path(directory, "requests.jsonl").read_text(), end="")
    {"type":"expired","version":1,"request_id":"e1/label","event_id":"e1","at":3.0}

    """

    def __init__(self, directory: str | Path, *, sizes: Mapping[str, int] | None = None) -> None:
        self.directory = check_path("directory", directory)
        self._files: dict[str, IO[bytes]] = {}
        try:
            make_directory(self.directory)
            for name in dict.fromkeys(FILES.values()):
                path = self.directory / name
                self._files[name] = _create(path) if sizes is None else _go_on(path, sizes[name])
        except OSError as error:
            self.close()
            raise _in_words(error) from None
        except ValueError:
            self.close()
            raise
        self._by_type = {kind: self._files[name] for kind, name in FILES.items()}

    def send(self, message: Input | Message, *, cause: Received | None = None) -> None:  # noqa: ARG002
        """Write one message; for a `Retraction`, the lines that follow it tell what it changed."""
        if isinstance(message, Retraction):
            return
        file = self._by_type.get(type(message))
        if file is None:
            raise TypeError(f"message must be an answer or an output, got {message!r:.60}")
        file.write(encode(message) + b"\n")
        if not isinstance(message, Prediction):
            # Few and precious: if the process is killed, what was learned is on record.
            file.flush()

    def flush(self) -> None:
        """Return once everything sent is in the files."""
        for file in self._files.values():
            file.flush()

    def sync(self) -> dict[str, int]:
        """Force everything sent to the disk; return the size of each file."""
        self.flush()
        for file in self._files.values():
            sync_file(file.fileno())
        return {name: file.tell() for name, file in self._files.items()}

    def close(self) -> None:
        for file in self._files.values():
            file.close()


@contextmanager
def alone_in(directory: str | Path) -> Iterator[None]:
    """Lock a directory of messages against other users of this lock while the block runs.

    It is created if it does not exist.

    Raises
    ------
    ValueError
        If another process uses it, or it cannot be created or read.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory, alone_in(directory), alone_in(directory):
    ...     pass
    Traceback (most recent call last):
    ValueError: ... is in use by another replay; wait for its end, or name another directory

    """
    try:
        make_directory(directory)
        descriptor = opened_directory(directory)
    except OSError as error:
        raise _in_words(error) from None
    try:
        if not lock_directory(descriptor):
            raise ValueError(
                f"{directory} is in use by another replay; wait for its end, or name another "
                "directory"
            )
        yield
    finally:
        os.close(descriptor)


def _in_words(error: OSError) -> ValueError:
    if isinstance(error, FileExistsError | NotADirectoryError):
        return ValueError(
            f"messages must go to a directory, but {what_is_there(error)}; name another one"
        )
    return ValueError(str(state_error(f"cannot write messages to {error.filename}", error)))


def _create(path: Path) -> IO[bytes]:
    return open(path, "wb", _BUFFER, opener=private)


def _go_on(path: Path, size: int) -> IO[bytes]:
    """Open a file to append after its first bytes; whatever follows them is cut off."""
    check_beginning(path, size)
    file = open(path, "r+b", _BUFFER)  # noqa: SIM115
    file.truncate(size)
    file.seek(size)
    return file


def check_beginning(path: Path, size: int) -> None:
    """Refuse a file whose first bytes cannot be the messages that were written.

    Raises
    ------
    ValueError
        If the file does not exist or is shorter, or if no line ends there.

    """
    try:
        with open(path, "rb") as file:
            there = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            last = file.read(1)
    except FileNotFoundError:
        raise ValueError(
            f"{path} is not there, expected {size} bytes; bring it back, or start over"
        ) from None
    if there < size:
        raise ValueError(
            f"{path} has {there} bytes, expected at least {size}: it was changed; start over"
        )
    if size and last != b"\n":
        raise ValueError(f"{path} has no line that ends at byte {size}: it was changed; start over")


def read_messages(path: str | Path) -> Iterator[Input | Message]:
    """Read the messages of one file.

    Raises
    ------
    DecodeError
        If a line is not a message; the text says which line.

    """
    with open(check_path("path", path), "rb") as file:
        number = 0
        while line := file.readline(MAX_BYTES + 2):
            number += 1
            try:
                yield decode(line.removesuffix(b"\n"))
            except DecodeError as error:
                raise DecodeError(f"{path}, line {number}: {error}") from None


# --- Message files without the lines of some keys: removes what a person said for good.
#
# The lines of others keep their bytes and their order.


def count_lines(path: str | Path, keys: Collection[str]) -> int:
    """Return how many lines of a file belong to one of these keys; 0 if it does not exist.

    Raises
    ------
    StateError
        If it cannot be read.

    """
    path = Path(path)
    try:
        return sum(is_theirs for _, is_theirs in _lines(path, path.stat().st_size, keys))
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise state_error(f"cannot read {path}", error) from error


def remove_lines(path: str | Path, keys: Collection[str], size: int) -> int:
    """Remove the lines of some keys from the first bytes of a file; what follows them is cut off.

    A crash at any time leaves the complete old or new file. Doing it again changes nothing.

    Parameters
    ----------
    path
        The file.
    keys
        Keys whose lines are removed.
    size
        The number of bytes, up to the end of a line.

    Returns
    -------
    The size of the new file.

    Raises
    ------
    StateError
        If it cannot be read, or the new one cannot be written. The old one is then untouched.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     path = Path(directory, "answers.jsonl")
    ...     _ = path.write_text('{"key":"ann"}\\n{"key":"bob"}\\n')
    ...     count_lines(path, ["ann"]), remove_lines(path, ["ann"], 28), path.read_text()
    (1, 14, '{"key":"bob"}\\n')

    """
    path = Path(path)
    try:
        with replacing(path) as part:
            descriptor = private(str(part), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            with open(descriptor, "wb") as file:
                part.chmod(path.stat().st_mode & 0o777)
                for line, is_theirs in _lines(path, size, keys):
                    if not is_theirs:
                        file.write(line)
                file.flush()
                sync_file(descriptor)
                left = file.tell()
    except OSError as error:
        raise state_error(f"cannot write {path}", error) from error
    return left


class _Keyed(msgspec.Struct):
    key: str | None = None


_decoder = msgspec.json.Decoder(_Keyed)


def _lines(path: Path, size: int, keys: Collection[str]) -> Iterator[tuple[bytes, bool]]:
    """Yield the lines in the first bytes of a file, and whether each belongs to one of the keys."""
    # As the codec writes them: only lines that contain a key anywhere need a closer look.
    written = [msgspec.json.encode(key) for key in keys]
    with open(path, "rb") as file:
        while size > 0 and (line := file.readline(size)):
            size -= len(line)
            yield line, any(key in line for key in written) and _belongs(line, keys)


def _belongs(line: bytes, keys: Collection[str]) -> bool:
    try:
        return _decoder.decode(line).key in keys
    except (msgspec.MsgspecError, ValueError):
        return True  # a line that was cut or damaged and names the key: better remove one too many
