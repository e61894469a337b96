"""Dictionary of bounded size, which keeps the items put last."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Latest(dict[K, V]):
    """A dictionary that keeps the `most` items that were put last.

    Examples
    --------
    >>> latest = Latest(2)
    >>> for name in ("a", "b", "a", "c"):
    ...     latest.put(name, 0)
    >>> list(latest)
    ['a', 'c']

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
