"""Numbers by which the core of a learner knows classes and examples."""

from __future__ import annotations

from collections.abc import Sequence

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
