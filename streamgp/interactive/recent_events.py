"""Facts about events from elsewhere, such as their truth, while a loop remembers them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import Generic, TypeVar

from streamgp.interactive.deadlines import DeadlineQueue
from streamgp.interactive.messages import Event, EventKey

Value = TypeVar("Value")


def _not_needed(_: EventKey) -> bool:
    return False


class RecentEvents(Generic[Value]):
    """Values by event, for as long as a loop remembers the events.

    Parameters
    ----------
    horizon_s
        `answer_horizon_s` of the loop; None to keep all values.
    is_needed
        Whether the value of an event beyond the horizon is kept.

    Examples
    --------
    >>> truths: RecentEvents[str] = RecentEvents(60.0)
    >>> for n, at in enumerate([0.0, 61.0, 62.0]):
    ...     truths.put(Event(event_id=f"e{n}", x={}, occurred_at=at), "hall")
    >>> truths.get((None, "e0")), truths.get((None, "e1"))
    (None, 'hall')

    """

    # _of        the values
    # _horizons  when each of them may go; empty if all are kept
    # _told      the time of the event before, up to which the loop has forgotten by now. What ends
    #            between it and the next one may first cause a last question
    def __init__(
        self,
        horizon_s: float | None = None,
        is_needed: Callable[[EventKey], bool] = _not_needed,  # no lambda: it is pickled
    ) -> None:
        self._horizon_s = horizon_s
        self._is_needed = is_needed
        self._of: dict[EventKey, Value] = {}
        self._horizons: DeadlineQueue[EventKey] = DeadlineQueue()
        self._told = -inf

    def __iter__(self) -> Iterator[EventKey]:
        return iter(self._of)

    def __contains__(self, name: EventKey) -> bool:
        return name in self._of

    def put(self, event: Event, value: Value) -> None:
        """Remember a value of an event that the loop is about to take."""
        name = (event.key, event.event_id)
        self._of[name] = value
        if self._horizon_s is None:
            return
        self._horizons.clear(name)
        while (end := self._horizons.first()) is not None and end < self._told:
            past = self._horizons.pop()
            if not self._is_needed(past):
                del self._of[past]
        self._horizons.set(name, event.occurred_at + self._horizon_s)
        self._told = event.occurred_at

    def get(self, name: EventKey) -> Value | None:
        """Return the value of an event, None if there is none."""
        return self._of.get(name)

    def discard(self, name: EventKey) -> None:
        """Forget the value of an event, if there is one."""
        self._of.pop(name, None)
        self._horizons.clear(name)
