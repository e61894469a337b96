"""Predictions, labels and challenges beside the truth, whichever is read first.

Everything about one event is joined when the last of it is there. Only so many events are
remembered; what has been counted of older ones stays counted.

"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TypeAlias

from streamgp.base import Label
from streamgp.interactive.judge import Target
from streamgp.interactive.number_errors import NumberErrors, Tolerances, is_off
from streamgp.values import is_number

N_LAST = 500

_Id: TypeAlias = "tuple[str | None, str]"


class _Known:
    """What is known of one event."""

    # truth  None while it is unknown, or if nobody knows it
    # tolerance  for numbers: how far one may be from it and still be right
    # guess  what was predicted; None while that is unknown, or if nothing could be
    # label  what the consensus log says
    # given  the label that was challenged last
    __slots__ = ("given", "guess", "label", "tolerance", "truth")

    def __init__(self) -> None:
        self.truth: Label | None = None
        self.guess: Label | None = None
        self.label: Label | None = None
        self.given: Label | None = None
        self.tolerance = 0.0


class Joined:
    """Counts over what is known of each event.

    Parameters
    ----------
    n_remembered
        Number of events to remember.
    target
        What the labels are: `label`, names of classes, or `number`.

    Attributes
    ----------
    n_scored, n_hits
        Predictions of events whose truth is known, and those of them that were right; not counted
        for numbers, whose `errors` are.
    errors
        How far predictions of numbers were off.
    n_contested, n_justified
        Challenged labels whose truth is known, and those of them that were wrong.
    n_repaired, n_spoiled
        Challenged labels that were wrong as given and are right in the log; that were right and
        are wrong.
    n_judged, n_wrong
        Labels in the log whose truth is known, and those of them that are wrong.

    Examples
    --------
    >>> joined = Joined()
    >>> joined.note_guess(("ann", "e1"), "den")
    >>> joined.note_label(("ann", "e1"), "hall")
    >>> joined.note_truth(("ann", "e1"), "hall")
    >>> joined.accuracy, joined.n_judged, joined.n_wrong
    (0.0, 1, 0)

    """

    # _known   what is known of the events seen last
    # _recent  whether the last predictions scored were right, or by how much they were off
    # _tolerances  None for classes

    def __init__(self, n_remembered: int = 100_000, target: Target = "label") -> None:
        self.target = target
        self.errors = NumberErrors()
        self._tolerances = Tolerances() if target == "number" else None
        self.n_scored = 0
        self.n_hits = 0
        self.n_contested = 0
        self.n_justified = 0
        self.n_repaired = 0
        self.n_spoiled = 0
        self.n_judged = 0
        self.n_wrong = 0
        self._n_remembered = n_remembered
        self._known: OrderedDict[_Id, _Known] = OrderedDict()
        self._recent: deque[float] = deque(maxlen=N_LAST)

    @property
    def accuracy(self) -> float | None:
        """Share of right predictions; None before the first whose truth is known."""
        return self.n_hits / self.n_scored if self.n_scored else None

    @property
    def recent_accuracy(self) -> float | None:
        """The same of the last 500; for numbers their mean absolute error."""
        return sum(self._recent) / len(self._recent) if self._recent else None

    def note_truth(self, event: _Id, truth: Label) -> None:
        """Take note of the truth of an event."""
        known = self._of(event)
        if known.truth is None:
            if self._tolerances is not None:
                known.tolerance = self._tolerances.next(truth)
            self._note(known, "truth", truth)
            self._score(known)

    def note_guess(self, event: _Id, guess: Label) -> None:
        """Take note of a prediction."""
        known = self._of(event)
        if known.guess is None:
            known.guess = guess
            self._score(known)

    def note_contested(self, event: _Id, given: Label) -> None:
        """Take note that a label was challenged."""
        self._note(self._of(event), "given", given)

    def note_label(self, event: _Id, label: Label | None) -> None:
        """Take note of the label in the log; None if it was withdrawn."""
        self._note(self._of(event), "label", label)

    def _score(self, known: _Known) -> None:
        if known.truth is None or known.guess is None:
            return
        self.n_scored += 1
        if self.target == "number":
            if is_number(known.truth) and is_number(known.guess):
                self.errors.count(known.truth, known.guess)
                self._recent.append(abs(float(known.guess) - float(known.truth)))
            return
        is_hit = known.guess == known.truth
        self.n_hits += is_hit
        self._recent.append(is_hit)

    def _is_wrong(self, known: _Known, y: Label) -> bool:
        if self._tolerances is None:
            return y != known.truth
        return is_off(y, known.truth, known.tolerance)

    def _note(self, known: _Known, name: str, label: Label | None) -> None:
        """Change what is known of an event, and the counts with it."""
        self._count(known, -1)
        setattr(known, name, label)
        self._count(known, 1)

    def _count(self, known: _Known, step: int) -> None:
        truth, label, given = known.truth, known.label, known.given
        if truth is None:
            return
        was_wrong = given is not None and self._is_wrong(known, given)
        if given is not None:
            self.n_contested += step
            self.n_justified += step * was_wrong
        if label is not None:
            is_wrong = self._is_wrong(known, label)
            self.n_judged += step
            self.n_wrong += step * is_wrong
            if given is not None:
                self.n_repaired += step * (was_wrong and not is_wrong)
                self.n_spoiled += step * (is_wrong and not was_wrong)

    def _of(self, event: _Id) -> _Known:
        known = self._known.get(event)
        if known is None:
            known = self._known[event] = _Known()
            if len(self._known) > self._n_remembered:
                self._known.popitem(last=False)
        return known
