"""What is kept of an input that is too large for a dead letter.

The topics of the inputs may take larger records than those that workers write. No input of such a
size can be used, and it must not keep the worker from the next one either: the beginning is kept.

"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from msgspec.structs import replace

from connectors.records import Outgoing, Record
from connectors.wire.codec import MAX_BYTES, MAX_INPUT_BYTES

CUT = "dlq.truncated"
"""The header that says how many bytes there were."""
DIGEST = "dlq.sha256"
"""The header that tells the whole value from others, in hexadecimal digits."""
_AROUND = 8  # of each header, the lengths of its name and its value


def cut(cause: Record) -> tuple[Record, Sequence[tuple[str, bytes]]]:
    """Return what a dead letter keeps of its cause, and the headers that say what it does not.

    Of more than 16 MiB, or of what was cut when it was read, a key and a value keep their first
    MiB, and of the headers those that fit into one more are left.

    Examples
    --------
    >>> value = b"?" * 2**24
    >>> large = Record(topic="events", partition=0, offset=7, key=b"ann", value=value, at=0.0)
    >>> kept, more = cut(large)
    >>> kept.key, len(kept.value), more[0], more[1][1][:8]
    (b'ann', 1048576, ('dlq.truncated', b'16777219'), b'6a79d046')
    >>> cut(kept) == (kept, [])
    True

    """
    size = size_of(cause) if cause.whole is None else cause.whole.size
    if size <= MAX_BYTES:
        return cause, []
    digest = None if cause.value is None else hashlib.sha256(cause.value).hexdigest()
    if cause.whole is not None:
        digest = cause.whole.sha256
    headers: list[tuple[str, bytes]] = []
    left = MAX_INPUT_BYTES
    for header in cause.headers:
        if _size(*header) <= left:
            left -= _size(*header)
            headers.append(header)
    kept = replace(
        cause,
        key=None if cause.key is None else cause.key[:MAX_INPUT_BYTES],
        value=None if cause.value is None else cause.value[:MAX_INPUT_BYTES],
        headers=headers,
        whole=None,
    )
    told = [] if digest is None else [(DIGEST, digest.encode())]
    return kept, [(CUT, b"%d" % size), *told]


def check_whole(letter: Record) -> None:
    """Refuse a dead letter that does not hold all of its input.

    Raises
    ------
    ValueError
        If it was cut.

    """
    size = dict(letter.headers).get(CUT)
    if size is not None:
        raise ValueError(
            f"dead-letters:{letter.partition}:{letter.offset} holds only the beginning of an input "
            f"of {size.decode(errors='replace')} bytes, more than any that could be used"
        )


def size_of(record: Record | Outgoing) -> int:
    """Return how many bytes key, value and headers of a record take at most."""
    size = len(record.key or b"") + len(record.value or b"")
    return size + sum(_size(name, value) for name, value in record.headers)


def _size(name: str, value: bytes) -> int:
    return len(name.encode()) + len(value) + _AROUND
