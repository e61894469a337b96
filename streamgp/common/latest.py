"""Memory of the latest items: a dictionary of bounded size."""

from __future__ import annotations

from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Latest(dict[K, V]):
    """A dictionary that keeps the `most` items that were put last.

    Examples
    --------
    >>> latest = Latest(2)
    >>> for name in (("ann", "e1"), ("bob", "e2"), ("ann", "e1"), ("ann", "e3")):
    ...     latest.put(name, 0)
    >>> list(latest)
    [('ann', 'e1'), ('ann', 'e3')]

    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def put(self, name: K, value: V) -> None:
        """Put an item at the end, and drop the first one if there are too many."""
        self.pop(name, None)
        self[name] = value
        if len(self) > self._most:
            del self[next(iter(self))]

    def forget(self: Latest[tuple[Any, str], Any], key: str | None) -> None:
        """Drop the items of a key, if their names begin with it."""
        for name in [name for name in self if name[0] == key]:
            del self[name]
