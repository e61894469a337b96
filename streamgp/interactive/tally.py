"""Counts over the messages of a loop: how good it was, and what it cost the annotator.

The truth comes with the events and nowhere else. Nothing here changes what the loop does.

"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from streamgp.interactive.calibration import Calibration
from streamgp.interactive.confusion import Confusion
from streamgp.interactive.judge import Judge, Target
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
from streamgp.interactive.number_errors import NumberErrors

if TYPE_CHECKING:
    from streamgp.base import Label, State

SCORES: dict[Target, tuple[str, str]] = {
    "label": ("accuracy", "macro_f1"),
    "number": ("mae", "nmse"),
}
"""What says how good the predictions were; for classes more is better, for numbers less."""

_SENT = (
    "n_events",
    "n_asked",
    "n_challenges",
    "n_answered",
    "n_declined",
    "n_expired",
    "n_rejected",
)


class Tally(Judge):
    """Counts over events, answers and messages.

    Tell it every event before the messages that the loop returns for it, and every answer handed
    to the loop.

    Parameters
    ----------
    target
        What the labels are: `label`, names of classes, or `number`.

    Attributes
    ----------
    n_events
        Events.
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
    confusion
        Predictions by true and predicted label, of events whose truth is known; empty for numbers.
    calibration
        What their probabilities were worth; empty for numbers.
    errors
        How far the predictions of numbers are off; empty for classes.
    n_judged, n_wrong_kept, n_repaired, n_spoiled
        Labels in the consensus log now whose truth is known; those that are wrong; contested
        labels that were wrong as given and are right in the log now; that were right and are wrong.
    annotators
        What became of the first answers of each annotator, by name, in order of appearance. The
        name is None for labels that came with their events.

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

    def __init__(self, target: Target = "label") -> None:
        super().__init__(target)
        self.n_events = 0
        self.n_asked = 0
        self.n_challenges = 0
        self.n_answered = 0
        self.n_declined = 0
        self.n_expired = 0
        self.n_rejected = 0
        self.confusion = Confusion()
        self.calibration = Calibration()
        self.errors = NumberErrors()

    def event(self, event: Event) -> None:
        """Count an event and remember its truth."""
        self.n_events += 1
        self.see(event)

    def answer(self, answer: Answer) -> None:
        """Count an answer that was handed to the loop."""
        if answer.declined:
            self.n_declined += 1
        else:
            self.n_answered += 1

    def message(self, message: Message) -> None:
        """Count a message that the loop returned."""
        if isinstance(message, Prediction):
            truth = self.truth_of(message.key, message.event_id)
            if truth is not None and message.y is not None:
                self._score(truth, message.y, message)
        elif isinstance(message, LabelRequest):
            self.n_asked += 1
        elif isinstance(message, LabelledExample):
            self.learn(message)
        elif isinstance(message, Challenge):
            self.n_challenges += 1
            self.contest(message)
        elif isinstance(message, Expired):
            self.n_expired += 1
        elif isinstance(message, Rejected):
            self.n_rejected += 1

    def _score(self, truth: Label, y: Label, prediction: Prediction) -> None:
        if self.target == "number":
            self.errors.count(truth, y, prediction.std)
        else:
            self.confusion.count(truth, y)
            self.calibration.count(truth, prediction.proba)

    def remove(self, part: Self) -> None:
        """Take out what another tally counted of the same messages; see `Judge.remove`.

        Examples
        --------
        >>> everybody, ann = Tally(), Tally()
        >>> for key in ("ann", "bob"):
        ...     event = Event(event_id="1", key=key, x={}, occurred_at=0.0, truth="hall")
        ...     for tally in (everybody, ann) if key == "ann" else (everybody,):
        ...         tally.event(event)
        >>> everybody.remove(ann)
        >>> everybody.n_events, everybody.truth_of("ann", "1"), everybody.truth_of("bob", "1")
        (1, None, 'hall')

        """
        super().remove(part)
        for name in _SENT:
            setattr(self, name, getattr(self, name) - getattr(part, name))
        self.confusion.remove(part.confusion)
        self.calibration.remove(part.calibration)
        self.errors.remove(part.errors)

    @property
    def n_scored(self) -> int:
        """Predictions with a label, of events whose truth is known."""
        return self.confusion.n if self.target == "label" else self.errors.n

    @property
    def accuracy(self) -> float | None:
        """Share of correct predictions; None before the first, and for numbers."""
        return self.confusion.accuracy

    @property
    def macro_f1(self) -> float | None:
        """Mean F1 of the classes that occurred or were predicted; None as for the accuracy."""
        return self.confusion.macro_f1

    @property
    def mae(self) -> float | None:
        """Mean absolute error of the predictions of numbers; None before the first, and else."""
        return self.errors.mae

    @property
    def nmse(self) -> float | None:
        """Their mean squared error over the variance of the truths; 1 - R²."""
        return self.errors.nmse

    @property
    def label_rate(self) -> float | None:
        """Label requests per event; None before the first event."""
        return self.n_asked / self.n_events if self.n_events else None

    def summary(self) -> dict[str, Any]:
        """Return all counts and rates as plain JSON values, in a fixed order.

        None stands where nothing could be counted since no truth is known.
        """
        names = (
            "n_events",
            "n_scored",
            *SCORES[self.target],
            "n_asked",
            "n_challenges",
            "challenge_precision",
            "challenge_recall",
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
        # A count of nothing that could be judged is no 0: nobody knows.
        unknown = set() if self.is_judged else {"n_repaired", "n_spoiled"}
        if self.n_learned and not self.n_judged:
            unknown.add("n_wrong_kept")
        return {name: None if name in unknown else getattr(self, name) for name in names}

    @property
    def is_judged(self) -> bool:
        """Whether it is known what challenges did: of one of them the truth, or there were none."""
        return self.challenge_precision is not None or not self.n_challenges

    def state(self) -> State:
        """Return all counts and what later ones depend on; no truths, see `Judge.state`."""
        return {
            **super().state(),
            "sent": {name: getattr(self, name) for name in _SENT},
            "confusion": self.confusion.state(),
            # Each kind without what is for the other.
            **(
                {"calibration": self.calibration.state()}
                if self.target == "label"
                else {"errors": self.errors.state()}
            ),
        }

    def load_state(self, state: State) -> None:
        """Become what the state was taken from, once `see` has been told the events again."""
        super().load_state(state)
        for name in _SENT:
            setattr(self, name, state["sent"][name])
        self.confusion.load_state(state["confusion"])
        if self.target == "number":
            self.errors.load_state(state["errors"])
        elif "calibration" in state:  # else of a replay that was begun before there was any
            self.calibration.load_state(state["calibration"])
