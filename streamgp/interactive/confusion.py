"""The confusion matrix of a run, kept sparse, and the scores that follow from it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamgp.base import Label, State


class Confusion:
    """Counts of events by true and predicted label.

    Attributes
    ----------
    n
        Events counted.
    n_hits
        Those predicted rightly.

    Examples
    --------
    >>> confusion = Confusion()
    >>> for truth, guess in [("a", "a"), ("b", "a"), ("b", "b")]:
    ...     confusion.count(truth, guess)
    >>> confusion.summary()
    {'labels': ['a', 'b'], 'counts': [[1, 0], [1, 1]]}
    >>> round(confusion.accuracy, 3), round(confusion.macro_f1, 3)
    (0.667, 0.667)

    """

    # _labels  every label that occurred or was predicted, in order of appearance.
    # _cells   number of events by (true, predicted) label; those that are not 0.

    def __init__(self) -> None:
        self.n = 0
        self.n_hits = 0
        self._labels: dict[Label, None] = {}
        self._cells: defaultdict[tuple[Label, Label], int] = defaultdict(int)

    def count(self, truth: Label, guess: Label) -> None:
        """Count an event."""
        self._labels[truth] = self._labels[guess] = None
        self._cells[truth, guess] += 1
        self.n += 1
        self.n_hits += guess == truth

    def remove(self, part: Confusion) -> None:
        """Take out events that were counted here and in `part`; labels without any go, too."""
        for cell, n in part._cells.items():
            self._cells[cell] -= n
            if not self._cells[cell]:
                del self._cells[cell]
        left = {label for cell in self._cells for label in cell}
        self._labels = {label: None for label in self._labels if label in left}
        self.n -= part.n
        self.n_hits -= part.n_hits

    @property
    def accuracy(self) -> float | None:
        """Share of events predicted rightly; None before the first."""
        return self.n_hits / self.n if self.n else None

    @property
    def macro_f1(self) -> float | None:
        """Mean F1 of the labels that occurred or were predicted; None before the first."""
        if not self.n:
            return None
        margins = dict.fromkeys(self._labels, 0)
        for (truth, guess), n in self._cells.items():
            margins[truth] += n
            margins[guess] += n
        # 2 hits / (true + predicted) is the harmonic mean of precision and recall.
        scores = (2 * self._cells.get((c, c), 0) / margins[c] for c in self._labels)
        return sum(scores) / len(self._labels)

    def summary(self) -> dict[str, Any]:
        """Return the matrix as plain JSON values: rows are true, columns predicted labels."""
        labels = list(self._labels)
        counts = [[self._cells.get((truth, guess), 0) for guess in labels] for truth in labels]
        return {"labels": labels, "counts": counts}

    def state(self) -> State:
        """Return the cells that are not 0."""
        at = {label: i for i, label in enumerate(self._labels)}
        cells = [[at[truth], at[guess], n] for (truth, guess), n in self._cells.items()]
        return {"labels": list(self._labels), "cells": cells}

    def load_state(self, state: State) -> None:
        """Become what the state was taken from."""
        labels = state["labels"]
        self._labels = dict.fromkeys(labels)
        for truth, guess, n in state["cells"]:
            self._cells[labels[truth], labels[guess]] = n
            self.n += n
            self.n_hits += n if truth == guess else 0
