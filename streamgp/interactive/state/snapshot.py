"""Snapshots as bytes: a header of JSON, numbers in binary, and a checksum. No pickle, no code.

    8 bytes "streamgp" | version | bytes in all | bytes of the header | header | blobs | checksum

The header holds the kind of snapshot, the fingerprint of the configuration that it was taken from,
a body of plain JSON values, the length of each blob, and the numerical environment, if it is
recorded. The meaning of the body is up to the caller that packs it. Files are written in
`connectors.storage.snapshots`.

"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, Any

import msgspec

VERSION = 2
_MAGIC = b"streamgp"
_HEAD = struct.Struct("<8sHQQ")
_DIGEST_SIZE = 16
_WHAT_TO_DO = "restore an older snapshot, or replay the log"


# Errors caused by a body that does not hold what it should, though its checksum is right.
INCONSISTENT = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, struct.error)


class SnapshotError(ValueError):
    """Bytes that are not a snapshot, or not one that can be used here; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Contents of a snapshot.

    Parameters
    ----------
    kind
        What was saved.
    fingerprint
        Fingerprint of the configuration that it was taken from.
    body
        Plain JSON values.
    blobs
        Numbers in binary, and nested snapshots.
    environment
        The numerical environment in which it was taken; None if it is not recorded.

    Examples
    --------
    >>> data = Snapshot(kind="counter", fingerprint="1f", body={"n": 3}).to_bytes()
    >>> data[:8], Snapshot.from_bytes(data).body
    (b'streamgp', {'n': 3})
    >>> Snapshot.from_bytes(data[:-1])
    Traceback (most recent call last):
    streamgp.interactive.state.snapshot.SnapshotError: snapshot is cut off: it has 106 bytes of ...

    """

    kind: str
    fingerprint: str
    body: dict[str, Any]
    blobs: Sequence[bytes] = ()
    environment: Mapping[str, Any] | None = None

    def to_bytes(self) -> bytes:
        """Return the snapshot as bytes.

        Raises
        ------
        TypeError
            If the body holds a value that is not a plain JSON value.

        """
        header = msgspec.json.encode(
            _Header(
                kind=self.kind,
                configuration=self.fingerprint,
                body=self.body,
                blobs=[len(blob) for blob in self.blobs],
                environment=None if self.environment is None else dict(self.environment),
            ),
            enc_hook=_plain,
        )
        size = _HEAD.size + len(header) + sum(map(len, self.blobs)) + _DIGEST_SIZE
        parts = [_HEAD.pack(_MAGIC, VERSION, size, len(header)), header, *self.blobs]
        data = b"".join(parts)
        return data + _digest(data)

    @classmethod
    def from_bytes(cls, data: bytes) -> Snapshot:
        """Read a snapshot.

        Raises
        ------
        SnapshotError
            If it is not a snapshot, cut off, damaged, or of another version.

        """
        if not isinstance(data, bytes):
            raise TypeError(f"a snapshot is bytes, got {type(data).__name__}")
        start = data[: len(_MAGIC)]
        if start != _MAGIC[: len(data)]:
            raise SnapshotError(
                f"not a snapshot of streamgp: it begins with {bytes(start)!r}, "
                f"expected {_MAGIC!r}; name another one"
            )
        if len(data) < _HEAD.size:
            raise SnapshotError(
                f"snapshot is cut off: it has {len(data)} bytes, expected at least {_HEAD.size}; "
                f"{_WHAT_TO_DO}"
            )
        _, version, size, header_size = _HEAD.unpack_from(data)
        if version != VERSION:
            raise SnapshotError(
                f"snapshot has version {version}, this streamgp reads version {VERSION}; "
                "use the streamgp that wrote it, or replay the log"
            )
        if len(data) < size:
            raise SnapshotError(
                f"snapshot is cut off: it has {len(data)} bytes of {size}; {_WHAT_TO_DO}"
            )
        if len(data) > size or _digest(data[:-_DIGEST_SIZE]) != data[-_DIGEST_SIZE:]:
            raise SnapshotError(f"snapshot is damaged: its checksum does not fit; {_WHAT_TO_DO}")
        header_end = _HEAD.size + header_size
        try:
            header = _decoder.decode(data[_HEAD.size : header_end])
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise SnapshotError(
                f"snapshot has no readable header: {error!s:.200}; {_WHAT_TO_DO}"
            ) from None
        if header_end + sum(header.blobs) + _DIGEST_SIZE != size:
            raise SnapshotError(f"snapshot has parts of a wrong length; {_WHAT_TO_DO}")
        blobs, at = [], header_end
        for length in header.blobs:
            blobs.append(data[at : at + length])
            at += length
        return cls(
            kind=header.kind,
            fingerprint=header.configuration,
            body=header.body,
            blobs=blobs,
            environment=header.environment,
        )

    def check(self, kind: str, fingerprint: str) -> None:
        """Refuse a snapshot of another kind, or of another configuration.

        Raises
        ------
        SnapshotError
            If either differs.

        """
        if self.kind != kind:
            raise SnapshotError(f"snapshot holds {self.kind:.40}, expected {kind}")
        if self.fingerprint != fingerprint:
            raise SnapshotError(
                f"snapshot was taken with another configuration ({self.fingerprint:.16}, "
                f"this one is {fingerprint}); restore it with the one it was taken with, "
                "or replay the log"
            )


# Fields that were added later are not written at their default.
class _Header(msgspec.Struct, omit_defaults=True):
    kind: str
    configuration: str
    body: dict[str, Any]
    blobs: list[Annotated[int, msgspec.Meta(ge=0)]]
    environment: dict[str, Any] | None = None


_decoder = msgspec.json.Decoder(_Header)


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST_SIZE).digest()


def _plain(value: Any) -> bool | int | float | str:
    """Return the plain value of a scalar of numpy: a time, an id or a setting of a caller's."""
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        plain = value.item()
        if isinstance(plain, bool | int | float | str):
            return plain
    raise TypeError(f"a snapshot holds plain JSON values, got {value!r:.60}")
