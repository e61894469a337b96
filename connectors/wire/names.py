"""Keys, ids, annotators and labels that are texts: what they may be, as they come from outside.

They end up in record keys, in state that is kept and on terminals: they have at most 1024
characters, none of them a control character, and all but annotators and labels have at least one.

"""

from __future__ import annotations

import re
from functools import lru_cache

from connectors.wire.codec import DecodeError

MAX_NAME = 1024
"""Characters of a name at most."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def flaw_of_name(name: str, least: int = 1, most: int = MAX_NAME) -> str | None:
    """Say what is wrong with a key, an id or another name, or None.

    Examples
    --------
    >>> flaw_of_name("")
    'must have at least one character, got none'

    """
    if least <= len(name) <= most and (name.isprintable() or not _CONTROL.search(name)):
        return None
    if len(name) > most:
        return f"must have at most {most} characters, got {len(name)}: {name[:40]!r}..."
    if not name:
        return "must have at least one character, got none"
    return f"must have no control characters, got {name!r:.80}"


@lru_cache(maxsize=1 << 14)
def key_of(data: bytes) -> str:
    """Return the key that a record has.

    Raises
    ------
    DecodeError
        If it is none.

    """
    text = text_of(data)
    if flaw := flaw_of_name(text):
        raise DecodeError(f"key {flaw}")
    return text


def text_of(data: bytes) -> str:
    """Return a record's key as a text.

    Raises
    ------
    DecodeError
        If it is not UTF-8.

    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DecodeError(
            f"key must be UTF-8, got the byte 0x{data[error.start]:02x} at position {error.start}"
        ) from None
