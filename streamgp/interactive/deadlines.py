"""Times at which something is due, one per name: a heap with lazy deletion.

This module knows no requests or keys; the loop keeps its deadlines in such a queue, and the keyed
loops the deadline of each key.

"""

from __future__ import annotations

import heapq
from typing import Generic, TypeVar

Name = TypeVar("Name", bound="str | tuple[str | None, str] | None")


class DeadlineQueue(Generic[Name]):
    """At most one time per name, the earliest first.

    Setting, clearing and reading cost O(log n) amortised. Equal times come in the order in
    which their names were set.

    Attributes
    ----------
    n_set
        Number of settings so far; each has its number.

    Examples
    --------
    >>> deadlines: DeadlineQueue[str] = DeadlineQueue()
    >>> deadlines.set("b", 20.0)
    >>> deadlines.set("a", 10.0)
    >>> deadlines.first()
    10.0
    >>> deadlines.clear("a")
    >>> deadlines.first(), deadlines.pop(), deadlines.first()
    (20.0, 'b', None)

    """

    # _live     (time, number, name) of the last setting of each name; the only source of truth.
    # _heap     those of all settings since the last clean-up; an entry counts only while _live
    #           holds it, stale ones are dropped as they surface.
    # n_set     numbers make heap entries comparable and unique.
    __slots__ = ("_heap", "_live", "n_set")

    def __init__(self) -> None:
        self._live: dict[Name, tuple[float, int, Name]] = {}
        self._heap: list[tuple[float, int, Name]] = []
        self.n_set = 0

    def __len__(self) -> int:
        return len(self._live)

    def get(self, name: Name) -> float | None:
        """Return the time of a name, or None."""
        entry = self._live.get(name)
        return None if entry is None else entry[0]

    def number(self, name: Name) -> int | None:
        """Return the number under which the time of a name was set, or None."""
        entry = self._live.get(name)
        return None if entry is None else entry[1]

    def set(self, name: Name, at: float) -> None:
        """Set, or change, the time of a name."""
        self.n_set += 1
        self._put(name, at, self.n_set)

    def reset(self, name: Name, at: float, number: int) -> None:
        """Set the time of a name again under the number that it had before a restart.

        Raises
        ------
        ValueError
            If that number has not been assigned yet: set `n_set` first.

        """
        if not 1 <= number <= self.n_set:
            raise ValueError(
                f"deadline {number!r} of {name!r} was never set, expected 1 to {self.n_set}"
            )
        self._put(name, at, number)

    def _put(self, name: Name, at: float, number: int) -> None:
        entry = self._live[name] = (at, number, name)
        heapq.heappush(self._heap, entry)
        # Stale entries with distant times would otherwise stay until those times come.
        if len(self._heap) > 64 + 2 * len(self._live):
            self._heap = list(self._live.values())
            heapq.heapify(self._heap)

    def clear(self, name: Name) -> None:
        """Clear the time of a name, if it has one."""
        self._live.pop(name, None)

    def items(self) -> list[tuple[Name, float]]:
        """Return every name with its time, in the order in which they were set."""
        ordered = sorted(self._live.values(), key=lambda entry: entry[1])
        return [(name, at) for at, _, name in ordered]

    def first(self) -> float | None:
        """Return the earliest time, or None."""
        heap = self._heap
        while heap:
            entry = heap[0]
            if self._live.get(entry[2]) is entry:
                return entry[0]
            heapq.heappop(heap)
        return None

    def pop(self) -> Name:
        """Remove the earliest time and return its name.

        Raises
        ------
        IndexError
            If there is none.

        """
        if self.first() is None:
            raise IndexError("no deadline is set")
        name = heapq.heappop(self._heap)[2]
        del self._live[name]
        return name
