"""Statistics of the messages of a loop: how good it was, and what it cost the annotator.

The truth comes with the events only. Nothing here changes what the loop does.

"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from streamgp.evaluation.agreement import AgreementCounts
from streamgp.evaluation.baselines import ClassBaselines, NumberBaselines
from streamgp.evaluation.counts import (
    Calibration,
    Confusion,
    FirstAnswers,
    NumberErrors,
    Tolerances,
    is_off,
)
from streamgp.interactive.messages import (
    ASKED_AGAIN,
    Answer,
    Challenge,
    Event,
    EventKey,
    Expired,
    LabelledExample,
    LabelRequest,
    Message,
    Prediction,
    Rejected,
    Retraction,
)
from streamgp.interactive.recent_events import RecentEvents

if TYPE_CHECKING:
    from streamgp.base import Label, State, Target

_COUNTS = ("n_judged", "n_wrong_kept", "n_repaired", "n_spoiled")

SCORES: dict[Target, tuple[str, str]] = {
    "label": ("accuracy", "macro_f1"),
    "number": ("mae", "nmse"),
}
"""Scores of the predictions; for classes larger is better, for numbers smaller."""

_SENT = (
    "n_events",
    "n_asked",
    "n_second",
    "n_challenges",
    "n_answered",
    "n_declined",
    "n_expired",
    "n_rejected",
)


class RunStatistics:
    """Counts over events, answers and messages.

    Pass it every event before the messages that the loop returns for it, and every answer given to
    the loop. A label is wrong if it differs from the truth; a number, if it is off by more than the
    standard deviation of all truths so far: see `Tolerances`.

    Parameters
    ----------
    target
        What the labels are: `label`, names of classes, or `number`.
    asks_twice
        Whether there are second questions; their answers are counted then.
    horizon_s
        `answer_horizon_s` of the loop. Without it the truth of every event is kept for good: any of
        them may still be learned.

    Attributes
    ----------
    n_events
        Number of events.
    n_known
        Number of events whose truth is known.
    n_asked
        Number of label requests, without challenges and second questions.
    n_second
        Number of second questions about events, to another annotator or to the same one.
    n_challenges
        Number of challenges.
    n_answered
        Number of answers with a label, whatever their outcome.
    n_declined
        Number of answers without a label.
    n_expired
        Number of requests, challenges included, that were not answered in time.
    n_rejected
        Number of inputs and examples that could not be used.
    confusion
        Predictions by true and predicted label, of events whose truth is known; empty for numbers.
    calibration
        Quality of their probabilities; empty for numbers.
    agreement
        Agreement of second answers with first ones.
    errors
        Errors of the predictions of numbers; empty for classes.
    n_judged, n_wrong_kept, n_repaired, n_spoiled
        Number of labels now in the consensus log whose truth is known; of those that are wrong; of
        contested labels that were wrong as given and are right now; of those that were right and
        are wrong now.
    annotators
        Outcomes of the first answers of each annotator, by name, in order of appearance. The name
        is None for labels that came with their events.

    Examples
    --------
    >>> from streamgp.base import Decision
    >>> from streamgp.evaluation import RunStatistics
    >>> from streamgp.interactive import Event, Prediction
    >>> statistics = RunStatistics()
    >>> for n, (truth, y) in enumerate([("a", "a"), ("b", "a"), ("b", "b"), ("b", None)]):
    ...     statistics.event(Event(event_id=str(n), x={}, occurred_at=n, truth=truth))
    ...     statistics.message(
    ...         Prediction(
    ...             event_id=str(n), y=y, proba={}, n_learned=0, at=n,
    ...             decision=Decision.of(0.0, 1.0, "NeverAsk"),
    ...         )
    ...     )
    >>> statistics.n_events, statistics.n_scored
    (4, 3)
    >>> round(statistics.accuracy, 3), round(statistics.macro_f1, 3)
    (0.667, 0.667)

    """

    # _truths     truths of the events that were learned, or may be, with their tolerances
    # _tolerances  for numbers, the tolerances; else None
    # _baselines  the true labels so far, as predictions of the next ones
    # _held       the label of each event in the log, in its last revision
    # _contested  the label contested last, and its annotator, by event. It changes only between two
    #             calls of `_count`, so that what is subtracted is exactly what was added
    # _pending    contested events whose first challenge has not been resolved yet

    def __init__(
        self,
        target: Target = "label",
        *,
        asks_twice: bool = False,
        horizon_s: float | None = None,
    ) -> None:
        self.target = target
        self.asks_twice = asks_twice
        self.n_events = 0
        self.n_known = 0
        self.n_asked = 0
        self.n_second = 0
        self.n_challenges = 0
        self.n_answered = 0
        self.n_declined = 0
        self.n_expired = 0
        self.n_rejected = 0
        self.confusion = Confusion()
        self.calibration = Calibration()
        self.errors = NumberErrors()
        self.agreement = AgreementCounts()
        self.n_judged = 0
        self.n_wrong_kept = 0
        self.n_repaired = 0
        self.n_spoiled = 0
        self.annotators: dict[str | None, FirstAnswers] = {}
        self._tolerances = Tolerances() if target == "number" else None
        self._baselines: Any = NumberBaselines() if target == "number" else ClassBaselines()
        self._truths: RecentEvents[tuple[Label, float]] = RecentEvents(horizon_s, self._is_needed)
        self._held: dict[EventKey, Label] = {}
        self._contested: dict[EventKey, tuple[Label, str | None]] = {}
        self._pending: dict[EventKey, None] = {}

    def event(self, event: Event) -> None:
        """Count an event and remember its truth."""
        self.n_events += 1
        name = (event.key, event.event_id)
        # The label of an earlier event with this id is in the log until the next one replaces it.
        self._count(name, -1)
        self.see(event)
        self._count(name, 1)

    def see(self, event: Event) -> None:
        """Remember the truth of an event."""
        if event.truth is not None:
            if (event.key, event.event_id) not in self._truths:
                self.n_known += 1
                self._baselines.count(event.key, event.truth)
            tolerance = 0.0 if self._tolerances is None else self._tolerances.next(event.truth)
            self._truths.put(event, (event.truth, tolerance))

    def truth_of(self, key: str | None, event_id: str) -> Label | None:
        """Return the truth of an event; None if unknown, or beyond the horizon and not learned."""
        known = self._truths.get((key, event_id))
        return None if known is None else known[0]

    def answer(self, answer: Answer) -> None:
        """Count an answer that was given to the loop."""
        if answer.declined:
            self.n_declined += 1
        else:
            self.n_answered += 1

    def message(self, message: Message) -> None:
        """Count a message that the loop returned."""
        if isinstance(message, Prediction):
            self._begin((message.key, message.event_id))
            truth = self.truth_of(message.key, message.event_id)
            if truth is not None and message.y is not None:
                self._score(truth, message.y, message)
        elif isinstance(message, LabelRequest):
            # A request that repeats an earlier one does not count.
            if message.reason != ASKED_AGAIN:
                self.n_asked += not message.is_second
                self.n_second += message.is_second
        elif isinstance(message, LabelledExample):
            self._learn(message)
            if self.asks_twice:
                self.agreement.take(message)
        elif isinstance(message, Challenge):
            self.n_challenges += 1
            self._contest(message)
        elif isinstance(message, Retraction):
            self._take_back(message)
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
        """Uncount what another object counted of some of these events, as if not counted here.

        The remaining sums of floats are exact up to rounding.

        Examples
        --------
        >>> everybody, ann = RunStatistics(), RunStatistics()
        >>> for key in ("ann", "bob"):
        ...     event = Event(event_id="1", key=key, x={}, occurred_at=0.0, truth="hall")
        ...     for statistics in (everybody, ann) if key == "ann" else (everybody,):
        ...         statistics.event(event)
        >>> everybody.remove(ann)
        >>> everybody.n_events, everybody.truth_of("ann", "1"), everybody.truth_of("bob", "1")
        (1, None, 'hall')

        """
        for name in (*_SENT, *_COUNTS):
            setattr(self, name, getattr(self, name) - getattr(part, name))
        self.confusion.remove(part.confusion)
        self.calibration.remove(part.calibration)
        self.errors.remove(part.errors)
        self.agreement.remove(part.agreement)
        for annotator, answers in part.annotators.items():
            self.annotators[annotator].remove(answers)
            if not self.annotators[annotator].n_answers:
                del self.annotators[annotator]
        self.n_known -= part.n_known
        self._baselines.remove(part._baselines)
        for event in {*part._truths, *part._held, *part._contested}:
            self._truths.discard(event)
            self._held.pop(event, None)
            self._contested.pop(event, None)
            self._pending.pop(event, None)

    @property
    def n_scored(self) -> int:
        """Number of predictions with a label, of events whose truth is known."""
        return self.confusion.n if self.target == "label" else self.errors.n

    @property
    def accuracy(self) -> float | None:
        """Share of correct predictions; None before the first, and for numbers."""
        return self.confusion.accuracy

    @property
    def macro_f1(self) -> float | None:
        """Mean F1 of the classes that occurred or were predicted; None as for `accuracy`."""
        return self.confusion.macro_f1

    @property
    def mae(self) -> float | None:
        """Mean absolute error of predicted numbers; None before the first, and for classes."""
        return self.errors.mae

    @property
    def nmse(self) -> float | None:
        """Mean squared error of predicted numbers over the variance of the truths, 1 - R²."""
        return self.errors.nmse

    @property
    def n_learned(self) -> int:
        """Number of events whose label is now in the log."""
        return len(self._held)

    @property
    def wrong_kept(self) -> float | None:
        """Share of wrong labels among those in the log whose truth is known; None without any."""
        return self.n_wrong_kept / self.n_judged if self.n_judged else None

    @property
    def challenge_precision(self) -> float | None:
        """Share of wrong answers among the first answers challenged; None without any.

        Counts answers whose challenge is resolved and whose truth is known.
        """
        n_contested = sum(answers.n_contested for answers in self.annotators.values())
        return self._n_justified / n_contested if n_contested else None

    @property
    def challenge_recall(self) -> float | None:
        """Share of challenged answers among the first answers that were wrong; None without any.

        Counts answers that are settled (see `FirstAnswers`) and whose truth is known.
        """
        n_wrong = sum(answers.n_wrong for answers in self.annotators.values())
        return self._n_justified / n_wrong if n_wrong else None

    @property
    def _n_justified(self) -> int:
        return sum(answers.n_justified for answers in self.annotators.values())

    def baselines(self) -> dict[str, dict[str, float | None]]:
        """Return the scores, by name, of baselines that use no features but all true labels."""
        return {
            name: {score: getattr(kept, score) for score in SCORES[self.target]}
            for name, kept in self._baselines.found.items()
            if kept.n
        }

    @property
    def label_rate(self) -> float | None:
        """Label requests per event; None before the first event."""
        return self.n_asked / self.n_events if self.n_events else None

    def summary(self) -> dict[str, Any]:
        """Return all counts and rates as plain JSON values, in a fixed order.

        A value is None where nothing could be counted because no truth is known.
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
        # If nothing could be judged, the count is unknown, not 0.
        unknown = set() if self.is_judged else {"n_repaired", "n_spoiled"}
        if self.n_learned and not self.n_judged:
            unknown.add("n_wrong_kept")
        found = {name: None if name in unknown else getattr(self, name) for name in names}
        return {**found, "n_second": self.n_second} if self.n_second else found

    @property
    def is_judged(self) -> bool:
        """Whether the effect of challenges is known: some with a known truth, or no challenges."""
        return self.challenge_precision is not None or not self.n_challenges

    def state(self) -> State:
        """Return all counts, and what later counts depend on, except for the truths of the events.

        Every label in the log is part of it, so it grows with the log.
        """
        return {
            "counts": {name: getattr(self, name) for name in _COUNTS},
            "annotators": [[name, answers.state()] for name, answers in self.annotators.items()],
            "held": [[*name, y] for name, y in self._held.items()],
            "contested": [[*name, *contested] for name, contested in self._contested.items()],
            "pending": [list(name) for name in self._pending],
            "sent": {name: n for name in _SENT if (n := getattr(self, name)) or name != "n_second"},
            **({"agreement": self.agreement.state()} if self.asks_twice else {}),
            "confusion": self.confusion.state(),
            # Each target without the part of the other.
            **(
                {"calibration": self.calibration.state()}
                if self.target == "label"
                else {"errors": self.errors.state()}
            ),
        }

    def load_state(self, state: State) -> None:
        """Restore a state; then, or before if there is no horizon, pass the events to `see`."""
        for name in _COUNTS:
            setattr(self, name, state["counts"][name])
        self.annotators = {name: FirstAnswers(**counts) for name, counts in state["annotators"]}
        self._held = {(key, event_id): y for key, event_id, y in state["held"]}
        self._contested = {(key, e): (given, who) for key, e, given, who in state["contested"]}
        self._pending = dict.fromkeys((key, event_id) for key, event_id in state["pending"])
        for name in _SENT:
            setattr(self, name, state["sent"].get(name, 0))
        self.asks_twice = "agreement" in state
        if self.asks_twice:
            self.agreement.load_state(state["agreement"])
        self.confusion.load_state(state["confusion"])
        if self.target == "number":
            self.errors.load_state(state["errors"])
        elif "calibration" in state:  # not in the state of a replay begun before there was any
            self.calibration.load_state(state["calibration"])

    # --- The consensus log judged by the truth: which labels are wrong, whose they are, and the
    # effect of challenges.

    def _begin(self, name: EventKey) -> None:
        """Forget the challenges of an earlier event with the id of a new one."""
        if name in self._contested:
            self._count(name, -1)
            del self._contested[name]
            self._pending.pop(name, None)
            self._count(name, 1)

    def _contest(self, challenge: Challenge) -> None:
        """Record a challenge, of a fresh label or of one in the log."""
        name = (challenge.key, challenge.event_id)
        if name not in self._held or name not in self._contested:
            self._pending[name] = None
        self._count(name, -1)
        self._contested[name] = (challenge.given, challenge.annotator)
        self._count(name, 1)

    def _learn(self, example: LabelledExample) -> None:
        """Record a line of the log."""
        name = (example.key, example.event_id)
        if example.y is None:
            self._pending.pop(name, None)
        elif example.probability_wrong is not None:
            self._judge(name, (example.y, example.annotator), example.probability_wrong)
        elif name in self._pending and example.origin != "aggregated":
            self._judge_again(name)
        # Subtract the old label from the counts, then add the new one.
        self._count(name, -1)
        if example.y is None:
            self._held.pop(name, None)
        else:
            self._held[name] = example.y
        self._count(name, 1)

    def _take_back(self, retraction: Retraction) -> None:
        """Record that an annotator is in quarantine; changed labels follow as lines of the log."""
        answers = self.annotators.setdefault(retraction.annotator, FirstAnswers())
        answers.note_quarantine(len(retraction.own))

    def _judge(self, name: EventKey, learned: tuple[Label, str | None], w: float) -> None:
        """Count a first answer: the one contested, or what was learned if none was."""
        contested = name in self._pending
        self._pending.pop(name, None)
        given, annotator = self._contested[name] if contested else learned
        known = self._truths.get(name)
        self.annotators.setdefault(annotator, FirstAnswers()).note(
            w,
            is_wrong=None if known is None else self._is_wrong(given, *known),
            contested=contested,
        )

    def _judge_again(self, name: EventKey) -> None:
        """Count the challenge of a first answer that was counted when it was learned."""
        del self._pending[name]
        given, annotator = self._contested[name]
        known = self._truths.get(name)
        if known is not None:
            answers = self.annotators.setdefault(annotator, FirstAnswers())
            answers.note_challenge(is_wrong=self._is_wrong(given, *known))

    def _is_wrong(self, y: Label, truth: Label, tolerance: float) -> bool:
        return y != truth if self._tolerances is None else is_off(y, truth, tolerance)

    def _is_needed(self, name: EventKey) -> bool:
        """Whether lines of the log may still be about an event beyond the horizon."""
        return name in self._held or name in self._contested or name in self._pending

    def _count(self, name: EventKey, step: int) -> None:
        known, label = self._truths.get(name), self._held.get(name)
        if known is None or label is None:
            return
        self.n_judged += step
        is_wrong = self._is_wrong(label, *known)
        self.n_wrong_kept += step * is_wrong
        if name in self._contested:
            given, _ = self._contested[name]
            was_wrong = self._is_wrong(given, *known)
            self.n_repaired += step * (was_wrong and not is_wrong)
            self.n_spoiled += step * (is_wrong and not was_wrong)
