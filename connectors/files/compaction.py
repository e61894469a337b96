"""The file of a compacted topic without what no longer counts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from connectors.files.layout import Layout, in_words
from connectors.files.logs import Tail
from connectors.storage.snapshots import new_part, sync_directory
from connectors.topics import TopicName
from connectors.wire.record_lines import from_line
from streamgp.common.private_files import private

DELETE_RETENTION_S = 86_400.0
"""How long it can be read that a key is gone, as with Kafka. A snapshot of what the topics said
must not be older when it is brought up to date."""
_MANY = 1000


def compact(path: Path, topic: TopicName, end: int, *, now: float) -> int:
    """Keep the last record of each key; what lies behind `end` is cut off.

    A record that says that its key is gone stays for a day. Keyless records stay. A crash at any
    moment leaves the old file or the new one, whole.

    Parameters
    ----------
    path, topic
        The file, and whose records it holds.
    end
        The offset behind the last record.
    now
        The time, POSIX seconds.

    Returns
    -------
    The end of the file that is there now.

    Raises
    ------
    LinkError
        If it cannot be read or written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     path = Path(directory, "state.jsonl")
    ...     _ = path.write_text('{"name":"a","value":1}\\n{"name":"a","value":2}\\n')
    ...     compact(path, "state", 46, now=0.0), path.read_text()
    (70, '{"compacted":{"first":47,"end":70}}\\n{"name":"a","value":2}\\n')

    """
    n_lines = 0
    last: dict[bytes | int, int] = {}  # of each key, or of a line without one: where it is
    sizes: dict[int, int] = {}
    for offset, line in _lines(path, end):
        n_lines += 1
        record = from_line(topic, line)
        if record is not None:
            key = offset if record.key is None else record.key
            is_old = record.value is None and (record.at or 0.0) < now - DELETE_RETENTION_S
            sizes.pop(last.pop(key, -1), None)
            if not is_old:
                last[key] = offset
                sizes[offset] = len(line) + 1
    if len(sizes) == n_lines:
        return end
    layout = Layout(first=end + 1, end=end + 1 + sum(sizes.values()))
    try:
        with new_part(path) as part:
            descriptor = private(str(part), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            with open(descriptor, "wb") as file:
                file.write(layout.to_line())
                for offset, line in _lines(path, end):
                    if offset in sizes:
                        file.write(line + b"\n")
                file.flush()
                os.fsync(descriptor)
            os.replace(part, path)
            sync_directory(path.parent)
    except OSError as error:
        raise in_words(f"cannot write {path}", error) from error
    return layout.end


def _lines(path: Path, end: int) -> Iterator[tuple[int, bytes]]:
    tail = Tail(path)
    while lines := tail.read(_MANY, end):
        yield from lines
