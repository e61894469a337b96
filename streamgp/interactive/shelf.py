"""Where the loops of keys wait that have not been heard of for a while.

Only bytes are kept here. A shelf that outlives the process is `connectors.storage.shelf`.

"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Protocol

from streamgp.base import State


class Shelf(Protocol):
    """Bytes by key, and marks: moments to which all of it can be taken back."""

    def get(self, key: str | None) -> bytes | None:
        """Return what was put last under a key, or None."""

    def put(self, key: str | None, data: bytes) -> None:
        """Keep bytes under a key, in place of what was there."""

    def discard(self, key: str | None) -> None:
        """Forget a key for good, if it is there."""

    def keys(self) -> Iterator[str | None]:
        """Return all keys."""

    def __len__(self) -> int:
        """Return the number of keys."""

    def mark(self) -> State:
        """Make durable what was put so far; the plain JSON value returned names this moment."""

    def reset(self, mark: State) -> None:
        """Come back to the moment of one of the last two marks, whatever was put since."""


class MemoryShelf:
    """A shelf within this process. Its marks hold everything on it.

    Examples
    --------
    >>> shelf = MemoryShelf()
    >>> shelf.put("ann", b"1")
    >>> mark = shelf.mark()
    >>> shelf.put("ann", b"2")
    >>> shelf.reset(mark)
    >>> shelf.get("ann"), shelf.get("bob")
    (b'1', None)

    """

    def __init__(self) -> None:
        self._kept: dict[str | None, bytes] = {}

    def get(self, key: str | None) -> bytes | None:
        """Return what was put last under a key, or None."""
        return self._kept.get(key)

    def put(self, key: str | None, data: bytes) -> None:
        """Keep bytes under a key, in place of what was there."""
        self._kept[key] = data

    def discard(self, key: str | None) -> None:
        """Forget a key, if it is there."""
        self._kept.pop(key, None)

    def keys(self) -> Iterator[str | None]:
        """Return all keys."""
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def mark(self) -> State:
        """Return everything kept."""
        return {"kept": [[key, b64encode(data).decode()] for key, data in self._kept.items()]}

    def reset(self, mark: State) -> None:
        """Keep what was kept at the mark."""
        self._kept = {key: b64decode(text) for key, text in mark["kept"]}
