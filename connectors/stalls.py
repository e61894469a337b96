"""Tells of places that should move on how long they have stood still."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

_Place = TypeVar("_Place", bound=Hashable)

STALL_S = 30.0
"""A partition that has inputs waiting, and no progress for so long, is worth a warning."""


class StallTracker(Generic[_Place]):
    """Remembers since when each place has been where it is.

    Examples
    --------
    >>> tracker = StallTracker()
    >>> tracker.update({"a": 7, "b": 3}, now=0.0)
    >>> tracker.update({"a": 7, "b": 4}, now=40.0)
    >>> tracker.still(now=45.0)
    {'a': 45.0, 'b': 5.0}

    """

    # _since  of each place: its position, and when it was first seen there

    def __init__(self) -> None:
        self._since: dict[_Place, tuple[int, float]] = {}

    def update(self, positions: Mapping[_Place, int], now: float) -> None:
        """Take note of where the places are that should move on; others are forgotten."""
        since = self._since
        self._since = {
            place: since[place] if since.get(place, (None,))[0] == position else (position, now)
            for place, position in positions.items()
        }

    def still(self, now: float) -> dict[_Place, float]:
        """Return for how many seconds each place has stood still."""
        return {place: now - at for place, (_, at) in self._since.items()}
