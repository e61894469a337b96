"""Counts over the messages of a loop: how good it was, and what it cost the annotator.

The truth comes with the events and nowhere else. Nothing here changes what the loop does.

"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, TypeAlias

from streamgp.interactive.messages import (
    Answer,
    Challenge,
    Event,
    Expired,
    LabelledExample,
    LabelRequest,
    Message,
    Prediction,
    Rejected,
)

if TYPE_CHECKING:
    from streamgp.base import Label

_Id: TypeAlias = "tuple[str | None, str]"


class Tally:
    """Counts over events, answers and messages.

    Tell it every event before the messages that the loop returns for it, and every answer handed
    to the loop.

    Attributes
    ----------
    n_events
        Events.
    n_scored
        Predictions with a label, of events whose truth is known.
    n_asked
        Label requests, without challenges.
    n_challenges
        Challenges.
    n_answered
        Answers with a label, whatever became of them.
    n_declined
        Answers without one.
    n_expired
        Requests, challenges included, that nobody answered in time.
    n_rejected
        Inputs and examples that could not be used.
    n_learned
        Events whose label is in the consensus log now.
    n_repaired
        Contested labels that were wrong as given, and are right in the log now.
    n_spoiled
        Contested labels that were right as given, and are wrong in the log now.
    n_wrong_kept
        Labels in the log now that differ from the truth.

    Examples
    --------
    >>> from streamgp.base import Decision
    >>> from streamgp.interactive import Event, Prediction, Tally
    >>> tally = Tally()
    >>> for n, (truth, y) in enumerate([("a", "a"), ("b", "a"), ("b", "b"), ("b", None)]):
    ...     tally.event(Event(event_id=str(n), x={}, occurred_at=n, truth=truth))
    ...     tally.message(
    ...         Prediction(
    ...             event_id=str(n), y=y, proba={}, n_learned=0, at=n,
    ...             decision=Decision.of(0.0, 1.0, "NeverAsk"),
    ...         )
    ...     )
    >>> tally.n_events, tally.n_scored
    (4, 3)
    >>> round(tally.accuracy, 3), round(tally.macro_f1, 3)
    (0.667, 0.667)

    """

    # _truths      truth of every event that has one.
    # _held        the label of each event in the consensus log, as its last revision says.
    # _n_judged    how many of the labels held belong to an event with known truth.
    # _contested   the label given and contested last, by event; for events with known truth. It
    #              changes only while the event has no label in the log, so that `_count` can take
    #              out exactly what it put in.
    # _pending     those of them whose challenge has not been resolved yet.
    # _n_resolved, _n_justified
    #              challenges resolved, and those whose contested label was wrong.
    # _hits, _by_truth, _by_guess
    #              correct, true and predicted events of each class: the margins of the confusion
    #              matrix and its diagonal.

    def __init__(self) -> None:
        self.n_events = 0
        self.n_scored = 0
        self.n_asked = 0
        self.n_challenges = 0
        self.n_answered = 0
        self.n_declined = 0
        self.n_expired = 0
        self.n_rejected = 0
        self.n_repaired = 0
        self.n_spoiled = 0
        self.n_wrong_kept = 0
        self._truths: dict[_Id, Label] = {}
        self._held: dict[_Id, Label] = {}
        self._n_judged = 0
        self._contested: dict[_Id, Label] = {}
        self._pending: set[_Id] = set()
        self._n_resolved = 0
        self._n_justified = 0
        self._hits: defaultdict[Label, int] = defaultdict(int)
        self._by_truth: defaultdict[Label, int] = defaultdict(int)
        self._by_guess: defaultdict[Label, int] = defaultdict(int)

    def event(self, event: Event) -> None:
        """Count an event and remember its truth."""
        self.n_events += 1
        if event.truth is not None:
            self._truths[event.key, event.event_id] = event.truth

    def answer(self, answer: Answer) -> None:
        """Count an answer that was handed to the loop."""
        if answer.declined:
            self.n_declined += 1
        else:
            self.n_answered += 1

    def message(self, message: Message) -> None:
        """Count a message that the loop returned."""
        if isinstance(message, Prediction):
            self._score(message)
        elif isinstance(message, LabelRequest):
            self.n_asked += 1
        elif isinstance(message, LabelledExample):
            self._learn(message)
        elif isinstance(message, Challenge):
            self.n_challenges += 1
            name = (message.key, message.event_id)
            if name in self._truths:
                self._contested[name] = message.given
                self._pending.add(name)
        elif isinstance(message, Expired):
            self.n_expired += 1
        elif isinstance(message, Rejected):
            self.n_rejected += 1

    @property
    def n_learned(self) -> int:
        return len(self._held)

    @property
    def accuracy(self) -> float | None:
        """Share of correct predictions; None before the first."""
        return sum(self._hits.values()) / self.n_scored if self.n_scored else None

    @property
    def macro_f1(self) -> float | None:
        """Mean F1 of the classes that occurred or were predicted; None before the first."""
        classes = [*self._by_truth, *(c for c in self._by_guess if c not in self._by_truth)]
        if not classes:
            return None
        # 2 hits / (true + predicted) is the harmonic mean of precision and recall.
        scores = (
            2 * self._hits.get(c, 0) / (self._by_truth.get(c, 0) + self._by_guess.get(c, 0))
            for c in classes
        )
        return sum(scores) / len(classes)

    @property
    def challenge_precision(self) -> float | None:
        """Share of the resolved challenges whose contested label was wrong; None without any."""
        return self._n_justified / self._n_resolved if self._n_resolved else None

    @property
    def wrong_kept(self) -> float | None:
        """Share of the labels in the log that differ from the known truth; None without any."""
        return self.n_wrong_kept / self._n_judged if self._n_judged else None

    @property
    def label_rate(self) -> float | None:
        """Label requests per event; None before the first event."""
        return self.n_asked / self.n_events if self.n_events else None

    def summary(self) -> dict[str, Any]:
        """Return all counts and rates as plain JSON values, in a fixed order."""
        names = (
            "n_events",
            "n_scored",
            "accuracy",
            "macro_f1",
            "n_asked",
            "n_challenges",
            "challenge_precision",
            "n_answered",
            "n_declined",
            "n_expired",
            "n_rejected",
            "n_learned",
            "n_repaired",
            "n_spoiled",
            "n_wrong_kept",
            "wrong_kept",
            "label_rate",
        )
        return {name: getattr(self, name) for name in names}

    def _score(self, prediction: Prediction) -> None:
        guess = prediction.y
        truth = self._truths.get((prediction.key, prediction.event_id))
        if truth is None or guess is None:
            return
        self.n_scored += 1
        self._by_truth[truth] += 1
        self._by_guess[guess] += 1
        if guess == truth:
            self._hits[truth] += 1

    def _learn(self, example: LabelledExample) -> None:
        name = (example.key, example.event_id)
        if name in self._pending:
            self._pending.discard(name)
            self._n_resolved += 1
            self._n_justified += self._contested[name] != self._truths[name]
        # Take the old label out of the counts, then put the new one in.
        self._count(name, -1)
        if example.y is None:
            self._held.pop(name, None)
        else:
            self._held[name] = example.y
        self._count(name, 1)

    def _count(self, name: _Id, step: int) -> None:
        truth, label = self._truths.get(name), self._held.get(name)
        if truth is None or label is None:
            return
        self._n_judged += step
        is_wrong = label != truth
        self.n_wrong_kept += step * is_wrong
        given = self._contested.get(name)
        if given is not None:
            self.n_repaired += step * (given != truth and not is_wrong)
            self.n_spoiled += step * (given == truth and is_wrong)
