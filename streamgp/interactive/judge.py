"""The consensus log judged by the truth: which labels are wrong, whose, and what challenges did.

The truth comes with the events and nowhere else.

"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from streamgp.interactive.first_answers import FirstAnswers
from streamgp.interactive.number_errors import Tolerances, is_off

if TYPE_CHECKING:
    from streamgp.base import Label, State
    from streamgp.interactive.messages import Challenge, Event, LabelledExample

_Id: TypeAlias = "tuple[str | None, str]"

Target: TypeAlias = Literal["label", "number"]
"""What is predicted: names of classes, or numbers."""

_COUNTS = ("n_judged", "n_wrong_kept", "n_repaired", "n_spoiled")


class Judge:
    """Follows the label of each event through the log.

    A label is wrong if it differs from the truth; a number, if it is off by more than the standard
    deviation of all truths so far, as `Tolerances` says.

    Parameters
    ----------
    target
        What the labels are: `label`, names of classes, or `number`.

    Attributes
    ----------
    n_judged
        Labels in the log now of events whose truth is known.
    n_wrong_kept
        Those of them that are wrong.
    n_repaired
        Contested labels that were wrong as given, and are right in the log now.
    n_spoiled
        Contested labels that were right as given, and are wrong in the log now.
    annotators
        What became of the first answers of each annotator, by name, in order of appearance. The
        name is None for labels that came with their events.

    Examples
    --------
    >>> from streamgp.interactive import Event, LabelledExample
    >>> judge = Judge()
    >>> judge.see(Event(event_id="e1", x={}, occurred_at=0.0, truth="hall"))
    >>> line = LabelledExample(
    ...     event_id="e1", sequence=1, x={}, y="den", origin="asked", annotator="ann",
    ...     learned_at=1.0, probability_wrong=0.3,
    ... )
    >>> judge.learn(line)
    >>> judge.n_learned, judge.wrong_kept, judge.annotators["ann"].error_rate
    (1, 1.0, 1.0)

    """

    # _truths     truth of every event that has one.
    # _tolerances, _tolerance  for numbers, and that of each event; None and empty for classes.
    # _held       the label of each event in the log, as its last revision says.
    # _contested  the label contested last, and who gave it, by event. It changes between two calls
    #             of `_count`, which takes out exactly what it put in.
    # _pending    those of them whose first challenge has not been resolved yet.

    def __init__(self, target: Target = "label") -> None:
        self.target = target
        self._tolerances = Tolerances() if target == "number" else None
        self._tolerance: dict[_Id, float] = {}
        self.n_judged = 0
        self.n_wrong_kept = 0
        self.n_repaired = 0
        self.n_spoiled = 0
        self.annotators: dict[str | None, FirstAnswers] = {}
        self._truths: dict[_Id, Label] = {}
        self._held: dict[_Id, Label] = {}
        self._contested: dict[_Id, tuple[Label, str | None]] = {}
        self._pending: dict[_Id, None] = {}

    def see(self, event: Event) -> None:
        """Remember the truth of an event."""
        if event.truth is not None:
            name = (event.key, event.event_id)
            self._truths[name] = event.truth
            if self._tolerances is not None:
                self._tolerance[name] = self._tolerances.next(event.truth)

    def truth_of(self, key: str | None, event_id: str) -> Label | None:
        """Return the truth of an event, None if nobody knows it."""
        return self._truths.get((key, event_id))

    def contest(self, challenge: Challenge) -> None:
        """Take note of a challenge, of a fresh label or of one in the log."""
        name = (challenge.key, challenge.event_id)
        if name not in self._held or name not in self._contested:
            self._pending[name] = None
        self._count(name, -1)
        self._contested[name] = (challenge.given, challenge.annotator)
        self._count(name, 1)

    def learn(self, example: LabelledExample) -> None:
        """Take note of a line of the log."""
        name = (example.key, example.event_id)
        if example.y is None:
            self._pending.pop(name, None)
        elif example.probability_wrong is not None:
            self._judge(name, (example.y, example.annotator), example.probability_wrong)
        elif name in self._pending:
            self._judge_again(name)
        # Take the old label out of the counts, then put the new one in.
        self._count(name, -1)
        if example.y is None:
            self._held.pop(name, None)
        else:
            self._held[name] = example.y
        self._count(name, 1)

    def remove(self, part: Self) -> None:
        """Take out what another judge was told of the same events, as if nobody had told it here.

        Parameters
        ----------
        part
            A judge that was told some of these events, and everything about them. What is left of
            the sums of floats is exact up to rounding.

        """
        for count in _COUNTS:
            setattr(self, count, getattr(self, count) - getattr(part, count))
        for annotator, answers in part.annotators.items():
            self.annotators[annotator].remove(answers)
            if not self.annotators[annotator].n_answers:
                del self.annotators[annotator]
        for name in part._truths.keys() | part._held.keys() | part._contested.keys():
            self._truths.pop(name, None)
            self._tolerance.pop(name, None)
            self._held.pop(name, None)
            self._contested.pop(name, None)
            self._pending.pop(name, None)

    @property
    def n_known(self) -> int:
        """Events whose truth is known."""
        return len(self._truths)

    @property
    def n_learned(self) -> int:
        """Events whose label is in the log now."""
        return len(self._held)

    @property
    def wrong_kept(self) -> float | None:
        """Share of wrong labels among those in the log whose truth is known; None without any."""
        return self.n_wrong_kept / self.n_judged if self.n_judged else None

    @property
    def challenge_precision(self) -> float | None:
        """Share of wrong answers among the first answers challenged; None without any.

        Counted are answers whose challenge is resolved and whose truth is known.
        """
        n_contested = sum(answers.n_contested for answers in self.annotators.values())
        return self._n_justified / n_contested if n_contested else None

    @property
    def challenge_recall(self) -> float | None:
        """Share of challenged answers among the first answers that were wrong; None without any.

        Counted are answers that came to something, as `FirstAnswers` says, and whose truth is
        known.
        """
        n_wrong = sum(answers.n_wrong for answers in self.annotators.values())
        return self._n_justified / n_wrong if n_wrong else None

    @property
    def _n_justified(self) -> int:
        return sum(answers.n_justified for answers in self.annotators.values())

    def state(self) -> State:
        """Return all counts, and what later counts depend on, but for the truths of the events.

        Every label in the log is part of it, so it grows with the log.
        """
        return {
            "counts": {name: getattr(self, name) for name in _COUNTS},
            "annotators": [[name, answers.state()] for name, answers in self.annotators.items()],
            "held": [[*name, y] for name, y in self._held.items()],
            "contested": [[*name, *contested] for name, contested in self._contested.items()],
            "pending": [list(name) for name in self._pending],
        }

    def load_state(self, state: State) -> None:
        """Become what the state was taken from, once `see` has been told the events again."""
        for name in _COUNTS:
            setattr(self, name, state["counts"][name])
        self.annotators = {name: FirstAnswers(**counts) for name, counts in state["annotators"]}
        self._held = {(key, event_id): y for key, event_id, y in state["held"]}
        self._contested = {(key, e): (given, who) for key, e, given, who in state["contested"]}
        self._pending = dict.fromkeys((key, event_id) for key, event_id in state["pending"])

    def _judge(self, name: _Id, learned: tuple[Label, str | None], w: float) -> None:
        """Count a first answer: the one contested, or what was learned if none was."""
        contested = name in self._pending
        self._pending.pop(name, None)
        given, annotator = self._contested[name] if contested else learned
        truth = self._truths.get(name)
        self.annotators.setdefault(annotator, FirstAnswers()).note(
            w,
            is_wrong=None if truth is None else self._is_wrong(name, given, truth),
            contested=contested,
        )

    def _judge_again(self, name: _Id) -> None:
        """Count the challenge of a first answer that was counted when it was learned."""
        del self._pending[name]
        given, annotator = self._contested[name]
        truth = self._truths.get(name)
        if truth is not None:
            answers = self.annotators.setdefault(annotator, FirstAnswers())
            answers.note_challenge(is_wrong=self._is_wrong(name, given, truth))

    def _is_wrong(self, name: _Id, y: Label, truth: Label) -> bool:
        if self._tolerances is None:
            return y != truth
        return is_off(y, truth, self._tolerance[name])

    def _count(self, name: _Id, step: int) -> None:
        truth, label = self._truths.get(name), self._held.get(name)
        if truth is None or label is None:
            return
        self.n_judged += step
        is_wrong = self._is_wrong(name, label, truth)
        self.n_wrong_kept += step * is_wrong
        if name in self._contested:
            given, _ = self._contested[name]
            was_wrong = self._is_wrong(name, given, truth)
            self.n_repaired += step * (was_wrong and not is_wrong)
            self.n_spoiled += step * (is_wrong and not was_wrong)
