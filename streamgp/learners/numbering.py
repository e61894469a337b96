"""Numbers by which the core of a learner knows classes and examples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from streamgp.base import Array, Label, check_kind, check_label


class Classes:
    """Known classes, numbered from 0 in the order in which they appeared.

    Attributes
    ----------
    labels
        Label of each class.

    Examples
    --------
    >>> classes = Classes()
    >>> [classes.add(y) for y in ("asleep", "awake", "asleep")]
    [0, 1, 0]
    >>> classes.number("out"), len(classes)
    (2, 2)

    """

    # _numbers  number of each class: the inverse of `labels`
    __slots__ = ("_numbers", "labels")

    def __init__(self) -> None:
        self.labels: list[Label] = []
        self._numbers: dict[Label, int] = {}

    def __len__(self) -> int:
        return len(self.labels)

    def number(self, y: Label) -> int:
        """Return the number of a label's class, the next free one for an unknown class.

        Raises
        ------
        TypeError
            If the label is missing.
        ValueError
            If the label equals a class of another type (True and 1).

        """
        check_label(y)
        number = self._numbers.get(y)
        if number is None:
            return len(self.labels)
        check_kind(y, self.labels[number])
        return number

    def add(self, y: Label) -> int:
        """Make a label's class known, unless it is, and return its number; raises as `number`."""
        number = self.number(y)
        if number == len(self.labels):
            self._numbers[y] = number
            self.labels.append(y)
        return number

    def indicator(self, number: int) -> Array:
        """Return 1 for a class and 0 for all others; it may be the next one to become known."""
        y = np.zeros(max(len(self.labels), number + 1))
        y[number] = 1.0
        return y

    def largest(self, values: Sequence[float]) -> Label | None:
        """Return the label with the largest of as many values, None if there is none."""
        return self.labels[values.index(max(values))] if values else None


class EventNumbers:
    """Numbers of examples, from 0 in the order learned, and which event each retained one is.

    Attributes
    ----------
    n_appended
        Number of examples ever.
    n_taken_back
        Number of those that count as never learned.

    Examples
    --------
    >>> events = EventNumbers()
    >>> [events.append(event_id) for event_id in ("e1", None, "e2")]
    [0, 1, 2]
    >>> events.drop([0, 1])
    >>> events.number("e2"), events.event_id(0)
    (2, None)

    """

    # _numbers  number of each retained example by event id; _event_ids is its inverse
    __slots__ = ("_event_ids", "_numbers", "n_appended", "n_taken_back")

    def __init__(self) -> None:
        self.n_appended = 0
        self.n_taken_back = 0
        self._numbers: dict[str, int] = {}
        self._event_ids: dict[int, str] = {}

    @property
    def n(self) -> int:
        """Number of examples learned and not taken back, retained or not."""
        return self.n_appended - self.n_taken_back

    def check_new(self, event_id: str | None) -> None:
        """Refuse an event that is already retained."""
        if event_id in self._numbers:
            raise ValueError(f"event {event_id!r} was already learned; use relabel_one")

    def append(self, event_id: str | None) -> int:
        """Number one more example, of a new event or of none, and return the number."""
        number = self.n_appended
        self.n_appended += 1
        if event_id is not None:
            self._numbers[event_id] = number
            self._event_ids[number] = event_id
        return number

    def number(self, event_id: str) -> int:
        """Return the number of an example; raises KeyError if it is not retained."""
        if event_id not in self._numbers:
            raise KeyError(f"event {event_id!r} was not learned, or is no longer retained")
        return self._numbers[event_id]

    def event_id(self, number: int) -> str | None:
        """Return the event of an example; None if it has none or is not retained."""
        return self._event_ids.get(number)

    def drop(self, numbers: Iterable[int]) -> None:
        """Drop the event ids of examples that are no longer retained."""
        for number in numbers:
            event_id = self._event_ids.pop(number, None)
            if event_id is not None:
                del self._numbers[event_id]
