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


class LatestByKey(Latest[tuple[K, str], V]):
    """The same for names that begin with a key, whose items can be dropped together.

    Examples
    --------
    >>> latest = LatestByKey(3)
    >>> for name in (("ann", "e1"), ("bob", "e2"), ("ann", "e3"), ("ann", "e4")):
    ...     latest.put(name, 0)
    >>> latest.forget("ann")
    >>> list(latest)
    [('bob', 'e2')]

    """

    # _of  the rest of each name, by key
    def __init__(self, most: int) -> None:
        super().__init__(most)
        self._of: dict[K, set[str]] = {}

    def __setitem__(self, name: tuple[K, str], value: V) -> None:
        super().__setitem__(name, value)
        self._of.setdefault(name[0], set()).add(name[1])

    def __delitem__(self, name: tuple[K, str]) -> None:
        self.pop(name)

    def pop(self, name: tuple[K, str], *default: Any) -> Any:
        """Remove an item and return its value, or the default if there is none."""
        if name in self:
            key, rest = name
            self._of[key].discard(rest)
            if not self._of[key]:
                del self._of[key]
        return super().pop(name, *default)

    def forget(self, key: K) -> None:
        """Drop the items of a key."""
        for rest in list(self._of.get(key, ())):
            del self[key, rest]
