"""Backups: `state`, `consensus` and open questions, as line files with checksums.

A directory has three files for each partition, `partition-<n>.state.jsonl`,
`partition-<n>.consensus.jsonl` and `partition-<n>.requests.jsonl`, with one record a line
(`connectors.wire.record_lines`), and `manifest.json`, which is written last: without it a directory
is no backup. The manifest lists the number of records, the size and the SHA-256 of each file, and
has a checksum itself. Only the owner may read the files, as they contain what people said.

"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from connectors.storage.snapshots import (
    check_writable,
    read_snapshot,
    state_error,
    write_snapshot,
)
from connectors.topics import COMPACTED, Outgoing, Place, TopicName
from connectors.wire.record_lines import from_line, to_line
from connectors.wire.state_records import is_foreign
from streamgp.common.private_files import make_directory

MANIFEST = "manifest.json"
VERSION = 1
REQUESTS: TopicName = "requests"
TOPICS: tuple[TopicName, ...] = (*sorted(COMPACTED), REQUESTS)
"""Topics whose records a backup holds."""

Contents: TypeAlias = Mapping[Place, Sequence[Outgoing]]
"""Records of the topics `state`, `consensus` and `requests`, by partition, in their order."""


class BackupError(ValueError):
    """A directory that is no backup, or a damaged one; the text says why, and what to do."""


class BackupFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a backup: its place, size and digest."""

    name: str
    topic: TopicName
    partition: int
    n_records: int
    n_bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup contains, and its time.

    Parameters
    ----------
    group
        The group whose workers wrote it.
    streamgp
        The version of streamgp that wrote the backup.
    at
        When it was written, POSIX seconds.
    n_partitions
        Number of partitions of each topic.
    configuration
        The record with which the workers signed the topics; None if no worker has signed.
    positions
        By topic and partition, the offset at which the group continued in the topics of that time;
        partitions without a position are left out.
    files
        The files.

    """

    group: str
    streamgp: str
    at: float
    n_partitions: int
    configuration: dict[str, Any] | None
    positions: dict[str, dict[int, int]]
    files: list[BackupFile] = []
    checksum: str = ""
    version: int = VERSION
    format: Literal["streamgp backup"] = "streamgp backup"


class _Head(msgspec.Struct):
    format: str = ""
    version: int = 0


_head = msgspec.json.Decoder(_Head)
_decoder = msgspec.json.Decoder(Manifest)


def write_backup(
    directory: Path,
    manifest: Manifest,
    contents: Contents,
    beside: Mapping[str, bytes] | None = None,
) -> Manifest:
    r"""Write a backup; return its manifest with the files.

    Parameters
    ----------
    directory
        The directory to write to; it must be empty, or not exist.
    manifest
        The manifest, without files.
    contents
        The records.
    beside
        Files, by name, that a restore does not read.

    Raises
    ------
    BackupError
        If the directory is not empty.
    StateError
        If it cannot be written to disk.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> about = Manifest(
    ...     group="rooms", streamgp="0.1.0", at=0.0, n_partitions=1, configuration=None,
    ...     positions={"events": {0: 17}},
    ... )
    >>> line = Outgoing(topic="state", partition=0, key=b"ann\x1fhead", value=b"{}")
    >>> with TemporaryDirectory() as directory:
    ...     _ = write_backup(Path(directory), about, {("state", 0): [line]})
    ...     manifest, contents = read_backup(Path(directory))
    >>> manifest.positions, contents["state", 0] == [line]
    ({'events': {0: 17}}, True)

    """
    check_free(directory)
    try:
        make_directory(directory)
    except OSError as error:
        raise state_error(f"cannot write a backup to {directory}", error) from error
    for name, data in (beside or {}).items():
        write_snapshot(directory / name, data)
    files = []
    for topic in TOPICS:
        for partition in range(manifest.n_partitions):
            records = contents.get((topic, partition), ())
            data = b"".join(to_line(record, manifest.at) + b"\n" for record in records)
            name = _file_name(topic, partition)
            write_snapshot(directory / name, data)
            files.append(
                BackupFile(
                    name=name,
                    topic=topic,
                    partition=partition,
                    n_records=len(records),
                    n_bytes=len(data),
                    sha256=hashlib.sha256(data).hexdigest(),
                )
            )
    manifest = replace(manifest, files=files)
    manifest = replace(manifest, checksum=_checksum(manifest))
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    write_snapshot(directory / MANIFEST, text + b"\n")
    return manifest


def check_free(directory: Path) -> None:
    """Check that a backup can be written to a directory; changes nothing.

    Raises
    ------
    BackupError
        If it is not empty.
    StateError
        If it cannot be written.

    """
    check_writable(directory / MANIFEST, makes_directory=True)
    try:
        if directory.exists() and any(directory.iterdir()):
            raise BackupError(f"{directory} is not empty; name a new or an empty directory")
    except OSError as error:
        raise state_error(f"cannot write a backup to {directory}", error) from error


def read_backup(directory: Path) -> tuple[Manifest, Contents]:
    """Read a backup and verify that everything is as it was written.

    Raises
    ------
    BackupError
        If it is no backup, of a later version, or damaged.
    StateError
        If it cannot be read.

    """
    manifest = _manifest(directory)
    contents = {}
    for file in manifest.files:
        path = directory / file.name
        data = _read(path)
        if data is None:
            raise BackupError(f"{path} is missing; {_OTHER}")
        lines = data.split(b"\n")[:-1]
        found = len(lines), len(data), hashlib.sha256(data).hexdigest()
        if found != (file.n_records, file.n_bytes, file.sha256):
            raise BackupError(
                f"{path} is damaged: it has {len(lines)} lines, {len(data)} bytes and SHA-256 "
                f"{found[2]:.12}..., expected {file.n_records}, {file.n_bytes} and "
                f"{file.sha256:.12}...; {_OTHER}"
            )
        contents[file.topic, file.partition] = [
            _record(path, n, file, line) for n, line in enumerate(lines, start=1)
        ]
    return manifest, contents


_OTHER = "take another backup"


def _manifest(directory: Path) -> Manifest:
    path = directory / MANIFEST
    if directory.is_file():
        raise BackupError(f"{directory} is a file; name the directory of a backup")
    data = _read(path)
    if data is None:
        raise BackupError(
            f"{path} is missing: {directory} is no backup, or one that was cut while it was "
            f"written; {_OTHER}"
        )
    try:
        head = _head.decode(data)
        if head.format == "streamgp backup" and head.version > VERSION:
            raise BackupError(
                f"{path} has version {head.version}, expected {VERSION} at most; use the version "
                "of streamgp that wrote it"
            )
        manifest = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BackupError(f"{path} is damaged or no manifest: {error}; {_OTHER}") from None
    if manifest.checksum != _checksum(manifest):
        raise BackupError(f"{path} is damaged: its checksum does not fit; {_OTHER}")
    # A checksum is no signature: who edits a manifest can make it fit. No file elsewhere is read.
    for file in manifest.files:
        is_known = file.topic in TOPICS and 0 <= file.partition < manifest.n_partitions
        if not is_known or file.name != _file_name(file.topic, file.partition):
            raise BackupError(
                f"{path} names {file.name!r} for partition {file.partition} of {file.topic}, "
                f"expected a file of a backup of {manifest.n_partitions} partitions; {_OTHER}"
            )
    return manifest


def _read(path: Path) -> bytes | None:
    """Return what a file holds, None if it is not there; a pipe or a device may have no end."""
    with suppress(OSError):  # `read_snapshot` says why it cannot be read
        if path.exists() and not path.is_file():
            raise BackupError(f"{path} is no file; {_OTHER}")
    return read_snapshot(path)


def _file_name(topic: TopicName, partition: int) -> str:
    return f"partition-{partition}.{topic}.jsonl"


def _record(path: Path, number: int, file: BackupFile, line: bytes) -> Outgoing:
    read = from_line(file.topic, line)
    if (
        read is None
        or (read.key is None and file.topic in COMPACTED)
        or (file.topic == "state" and is_foreign(read.key))
    ):
        raise BackupError(f"{path}, line {number}, is no record of {file.topic}; {_OTHER}")
    return Outgoing(
        topic=file.topic,
        partition=file.partition,
        key=read.key,
        value=read.value,
        headers=read.headers,
    )


def _checksum(manifest: Manifest) -> str:
    return hashlib.sha256(msgspec.json.encode(replace(manifest, checksum=""))).hexdigest()
