"""What has changed in the loops of all keys, until somebody asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from streamgp.interactive.loop import InteractiveLoop


class KeyedChanges:
    """Parts of loops that have changed; of each part the newest value, None if it is gone.

    Examples
    --------
    >>> from streamgp import InteractiveLoop, isgp
    >>> changes, loop = KeyedChanges(), InteractiveLoop(isgp(seed=1))
    >>> changes.note("ann", loop)
    >>> changes.forget("bob", ["head"])
    >>> changes.take({"ann": loop})
    {'bob': {'head': None}}

    """

    # _touched  keys of loops held ready that have changed
    # _parts    what was collected before a loop was put away or forgotten
    __slots__ = ("_parts", "_touched")

    def __init__(self) -> None:
        self._touched: dict[str | None, None] = {}
        self._parts: dict[str | None, dict[str, Any]] = {}

    def note(self, key: str | None, loop: InteractiveLoop) -> None:
        """Take note that a loop may have changed."""
        if loop.has_changed:
            self._touched[key] = None

    def collect(self, key: str | None, loop: InteractiveLoop) -> None:
        """Collect what has changed in a loop before it is put away."""
        if loop.has_changed:
            # Taken before anything of this key is replaced: it may fail.
            parts = loop.changes()
            self._parts.setdefault(key, {}).update(parts)
        self._touched.pop(key, None)

    def forget(self, key: str | None, names: Iterable[str]) -> None:
        """Say of all parts of a key that they are gone."""
        self._touched.pop(key, None)
        self._parts.setdefault(key, {}).update(dict.fromkeys(names))

    def drop(self, key: str | None) -> None:
        """Say nothing of a key that is there no longer, and of which nothing was ever said."""
        self._touched.pop(key, None)

    def take(self, ready: Mapping[str | None, InteractiveLoop]) -> dict[str | None, dict[str, Any]]:
        """Return what has changed since the last call, by key."""
        for key in list(self._touched):
            self.collect(key, ready[key])
        parts, self._parts = self._parts, {}
        return parts
