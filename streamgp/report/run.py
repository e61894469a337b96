"""A run as plain values for a page, and the outcomes of its challenges from its messages.

Parts that are named like fields of `summary.json` are read from it unchanged. `Outcomes` takes the
messages in the order of a run's files: all requests, then all answers, then all labels learned,
whatever their times.

"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from streamgp.base import Label
from streamgp.common.annotator_error import ErrorRate
from streamgp.evaluation.counts import Drifts
from streamgp.evaluation.stopping import Gain
from streamgp.interactive.messages import (
    Answer,
    Cancel,
    Challenge,
    Expired,
    Input,
    LabelledExample,
    Message,
    Rejected,
)

Outcome: TypeAlias = Literal["revised", "upheld", "declined", "expired", "cancelled", "open"]
"""Outcome of a challenge.

`upheld`: the same label again. `revised`: another label. `declined`: the annotator could not say.
`expired`: no answer in time. `cancelled`: withdrawn. `open`: the run ended before an answer.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Counts and rates of a run, or of one key; None where nothing could be counted.

    If targets are numbers, `mae` and `nmse` take the place of `accuracy` and `macro_f1`.
    """

    n_events: int
    n_scored: int
    accuracy: float | None = None
    macro_f1: float | None = None
    mae: float | None = None
    nmse: float | None = None
    n_asked: int
    n_challenges: int
    challenge_precision: float | None
    challenge_recall: float | None
    n_answered: int
    n_declined: int
    n_expired: int
    n_rejected: int
    n_learned: int
    n_repaired: int | None
    n_spoiled: int | None
    n_wrong_kept: int | None
    wrong_kept: float | None
    n_second: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of the run: parallel sequences, one entry per point.

    `accuracy`, or `mae` if targets are numbers, covers all predictions so far and is None before
    the first that could be scored; the other one is empty.
    """

    n_events: Sequence[int]
    accuracy: Sequence[float | None] = ()
    mae: Sequence[float | None] = ()
    n_asked: Sequence[int]
    n_challenges: Sequence[int]

    def __post_init__(self) -> None:
        lengths = {len(self.n_events), len(self.accuracy or self.mae), len(self.n_asked)}
        if lengths != {len(self.n_challenges)}:
            raise ValueError("a curve must have as many points in each of its lists")
        if any(b <= a for a, b in pairwise(self.n_events)):
            raise ValueError("the n_events of a curve must grow")


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """Events by true label (rows) and predicted label (columns), in the order of `labels`."""

    labels: Sequence[Label]
    counts: Sequence[Sequence[int]]

    def __post_init__(self) -> None:
        n = len(self.labels)
        if len(self.counts) != n or any(len(row) != n for row in self.counts):
            raise ValueError(f"a confusion matrix must have {n} rows and columns, one per label")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """Predictions by the probability of the predicted class: parallel sequences, ascending.

    `mean` is the mean of that probability, `share` the share of right predictions.
    """

    n: Sequence[int]
    mean: Sequence[float]
    share: Sequence[float]

    def __post_init__(self) -> None:
        if not len(self.n) == len(self.mean) == len(self.share):
            raise ValueError("a reliability diagram must have as many points in each of its lists")


@dataclass(frozen=True, slots=True, kw_only=True)
class ByConfidence:
    """Numbers of right and wrong predictions, in equal steps of confidence from 0 to 1."""

    right: Sequence[int]
    wrong: Sequence[int]

    def __post_init__(self) -> None:
        if len(self.right) != len(self.wrong):
            raise ValueError("a histogram must have as many steps of right and wrong predictions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Quality of class probabilities; a value is None where nothing could be counted."""

    n: int
    overconfidence: float | None
    underconfidence: float | None
    auc: float | None
    calibration_error: float | None
    brier: float | None
    reliability: Reliability
    confidence: ByConfidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Distributions:
    """Scores of predicted distributions of numbers; None where nothing could be counted.

    `n` is the number of predictions with a standard deviation, `coverage` the share of the truths
    within the central 90 % interval.
    """

    n: int
    npll: float | None
    crps: float | None
    coverage: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorCounts:
    """First answers of one annotator.

    `n_wrong` and `error_rate` (their share) cover answers whose truth is known. `estimate` is the
    learner's running estimate of the error rate, without the truth; `by_all_answers` is its
    estimate from all answers together at the end, and `insistence` that of the share of wrong
    answers that the annotator upholds when challenged; both None where they are not estimated.
    `n_quarantines` is the number of loops in which the annotator is in quarantine, `n_taken_back`
    that of their labels taken back there.
    """

    name: str | None
    n_answers: int
    n_wrong: int
    error_rate: float | None
    estimate: float | None
    by_all_answers: float | None = None
    insistence: float | None = None
    n_quarantines: int = 0
    n_taken_back: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreed:
    """Agreement of two answers about one event: share, Gwet's AC1 and its standard error.

    Of two `annotators`, of one `annotator` with their own earlier answers, or of all pairs on
    whether an event has a `label`.
    """

    n: int
    raw: float
    ac1: float
    standard_error: float
    annotators: Sequence[str] = ()
    annotator: str | None = None
    label: Label | None = None

    @property
    def name(self) -> str:
        """The annotators, or the label, of the agreement."""
        if self.annotators:
            return " and ".join(self.annotators)
        return str(self.label) if self.annotator is None else self.annotator


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Agreement of first and second answers: of pairs, on each class, and of each annotator."""

    pairs: Sequence[Agreed]
    classes: Sequence[Agreed]
    repeats: Sequence[Agreed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Estimates of one annotator's error rate, answer by answer."""

    name: str | None
    n_answers: Sequence[int]
    estimate: Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A labelled example shown beside a challenge."""

    event_id: str | None
    y: Label
    distance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Contested:
    """A challenge and its outcome.

    `y` is the annotator's final label, None if there was none; `late` tells whether it came after
    the challenge had expired.
    """

    event_id: str
    key: str | None
    at: float
    given: Label
    suggested: Label
    probability_wrong: float
    annotator: str | None
    examples: Sequence[Example]
    outcome: Outcome
    y: Label | None
    late: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An input that could not be used, and why."""

    subject: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Contents of `summary.json`, as far as a page shows them.

    Parameters
    ----------
    streamgp
        Version that made the run.
    interrupted
        Whether the run ended before the log.
    keys
        The same for each key; None if the run has no keys.
    baselines
        Scores of baselines without features, by name; empty for runs of versions that had none.
    calibration, distributions
        The first for classes, the second for numbers; None for the other kind, and for runs of
        versions that did not count them.
    gain
        Expected gain from further labels; None if too little is known.
    drifts
        Concept drifts found; None if there were none.
    agreement
        Agreement of first and second answers; None if there were no second questions.
    weights
        Weights of the columns, the largest first; empty if they count alike.
    forms
        What columns count as that do not count as the numbers that they hold.

    """

    streamgp: str
    log: str
    configuration: dict[str, Any]
    notes: list[str]
    interrupted: bool
    results: Counts
    curve: Progress
    confusion: Confusion
    annotators: list[AnnotatorCounts]
    keys: dict[str, Counts] | None = None
    baselines: dict[str, dict[str, float | None]] = field(default_factory=dict)
    calibration: Calibration | None = None
    distributions: Distributions | None = None
    gain: Gain | None = None
    drifts: Drifts | None = None
    agreement: Agreement | None = None
    weights: dict[str, float] = field(default_factory=dict)
    forms: dict[str, list[Literal["name", "ranks", "missing"]]] = field(default_factory=dict)

    @property
    def columns(self) -> list[tuple[str, float | None, list[str]]]:
        """Name, weight and forms of each column: those without a weight, then by their weights."""
        unweighed = [name for name in self.forms if name not in self.weights]
        by_weight = sorted(self.weights, key=lambda name: -self.weights[name])
        return [
            (name, self.weights.get(name), [*self.forms.get(name, ())])
            for name in (*unweighed, *by_weight)
        ]

    @property
    def of_numbers(self) -> bool:
        return self.configuration.get("target") == "number"

    def setting(self, section: str, name: str) -> Any:
        """Return one setting of the configuration, or None if there is none of that name."""
        settings = self.configuration.get(section)
        return settings.get(name) if isinstance(settings, Mapping) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(Summary):
    """Everything that a page shows.

    Parameters
    ----------
    estimates
        Error estimates over time, of the annotators with the most answers.
    challenges
        The first challenges, in order.
    outcomes
        Number of challenges by outcome, including those not in `challenges`.
    refusals
        The first inputs rejected.

    """

    estimates: Sequence[Estimate]
    challenges: Sequence[Contested]
    outcomes: Mapping[Outcome, int]
    refusals: Sequence[Refusal]


# Faults for which the loop refused an answer. An answer that the learner could not learn was
# accepted, and a duplicate has the id of an accepted one.
_REFUSED = ("late", "ended", "unknown", "malformed")

N_POINTS = 400
N_SHOWN = 200
"""Number of challenges that are kept in full."""

_Id: TypeAlias = "tuple[str | None, str]"


@dataclass(slots=True)
class _Question:
    """A challenge, as far as it is kept, and the messages about it.

    Attributes
    ----------
    challenge
        The message, or None if it is not among those shown.
    replies
        Answers to it: their ids and labels (None: declined).
    ended
        How it ended without an answer.
    settled
        The event's label in the consensus log since then, or None if it was taken back; empty if
        there is none.

    """

    challenge: Challenge | None
    given: Label
    annotator: str | None
    at: float
    replies: list[tuple[str, Label | None]]
    ended: Outcome | None = None
    settled: tuple[Label | None, ...] = ()


class Outcomes:
    """Outcomes of the challenges of a run.

    Add all requests, then all answers and rejected inputs, then the consensus log.

    Examples
    --------
    >>> outcomes = Outcomes()
    >>> outcomes.add(Challenge(
    ...     request_id="e1/challenge/1", event_id="e1", x={}, reason="", score=0.9, threshold=0.1,
    ...     requested_at=5.0, given="hall", suggested="den", probability_wrong=0.9,
    ... ))
    >>> outcomes.counts()
    Counter({'open': 1})
    >>> outcomes.add(Answer(
    ...     answer_id="a1", request_id="e1/challenge/1", event_id="e1", y="den", answered_at=6.0
    ... ))
    >>> outcomes.counts(), outcomes.challenges()[0].y
    (Counter({'revised': 1}), 'den')

    """

    # _questions  every challenge, by key and request id, in order
    # _by_event   the challenges of each event, in order
    # _refused    ids of the answers that the loop refused
    # _lines      estimates of each annotator so far

    def __init__(self) -> None:
        self._questions: dict[_Id, _Question] = {}
        self._by_event: defaultdict[_Id, list[_Question]] = defaultdict(list)
        self._refused: set[_Id] = set()
        self._lines: defaultdict[str | None, _Line] = defaultdict(_Line)

    def add(self, message: Input | Message) -> None:
        """Add a message; most kinds change nothing."""
        if isinstance(message, Challenge):
            self._add_challenge(message)
        elif isinstance(message, Expired | Cancel):
            question = self._questions.get((message.key, message.request_id))
            if question is not None:
                question.ended = "expired" if isinstance(message, Expired) else "cancelled"
        elif isinstance(message, Rejected):
            if message.fault in _REFUSED:
                self._refused.add((message.key, message.subject))
        elif isinstance(message, Answer):
            self._add_answer(message)
        elif isinstance(message, LabelledExample):
            self._add_label(message)

    @property
    def n_challenges(self) -> int:
        return len(self._questions)

    def counts(self) -> Counter[Outcome]:
        """Return the number of challenges by outcome."""
        return Counter(self._outcome(name)[0] for name in self._questions)

    def challenges(self) -> list[Contested]:
        """Return the first challenges, each with its outcome."""
        shown = [(name, q.challenge) for name, q in self._questions.items() if q.challenge]
        return [self._contested(name, challenge) for name, challenge in shown]

    def estimates(self, n_annotators: int) -> list[Estimate]:
        """Return the estimates over time of the annotators with the most answers."""
        most = sorted(self._lines.items(), key=lambda item: -item[1].rate.n)[:n_annotators]
        for _, line in most:
            line.keep()
        return [
            Estimate(name=name, n_answers=line.at, estimate=line.estimates) for name, line in most
        ]

    def _add_challenge(self, challenge: Challenge) -> None:
        question = _Question(
            challenge=challenge if len(self._questions) < N_SHOWN else None,
            given=challenge.given,
            annotator=challenge.annotator,
            at=challenge.requested_at,
            replies=[],
        )
        self._questions[challenge.key, challenge.request_id] = question
        self._by_event[challenge.key, challenge.event_id].append(question)

    def _add_answer(self, answer: Answer) -> None:
        if answer.request_id is not None:
            question = self._questions.get((answer.key, answer.request_id))
            if question is not None:
                question.replies.append((answer.answer_id, answer.y))

    def _add_label(self, example: LabelledExample) -> None:
        contested = self._by_event.get((example.key, example.event_id), ())
        before = [question for question in contested if question.at <= example.learned_at]
        if before:
            before[-1].settled = (example.y,)
        if example.probability_wrong is not None:
            # It counts for the annotator who was challenged, not for the one who answered last.
            annotator = before[-1].annotator if before else example.annotator
            self._lines[annotator].add(example.probability_wrong)

    def _outcome(self, name: _Id) -> tuple[Outcome, Label | None]:
        """Return the outcome of a challenge, and the annotator's final label."""
        question = self._questions[name]
        key = name[0]
        accepted = [y for answer_id, y in question.replies if (key, answer_id) not in self._refused]
        if accepted:
            y = accepted[-1]
        elif question.ended is not None:
            return question.ended, None
        elif question.settled:  # by an answer that did not name the challenge
            y = question.settled[0]
        else:
            return "open", None
        if y is None:
            return "declined", None
        return ("upheld" if y == question.given else "revised"), y

    def _contested(self, name: _Id, challenge: Challenge) -> Contested:
        outcome, y = self._outcome(name)
        return Contested(
            event_id=challenge.event_id,
            key=challenge.key,
            at=challenge.requested_at,
            given=challenge.given,
            suggested=challenge.suggested,
            probability_wrong=challenge.probability_wrong,
            annotator=challenge.annotator,
            examples=[
                Example(event_id=near.event_id, y=near.y, distance=near.distance)
                for near in challenge.neighbours
            ],
            outcome=outcome,
            y=y,
            late=y is not None and self._questions[name].ended == "expired",
        )


class _Line:
    """An annotator's estimates over time, in a bounded number of points.

    Every k-th is kept, and k doubles when there would be more than the limit.
    """

    def __init__(self) -> None:
        self.rate = ErrorRate()
        self.at = [self.rate.n]
        self.estimates = [self.rate.estimate]
        self._every = 1

    def add(self, w: float) -> None:
        self.rate.note(w)
        if self.rate.n % self._every == 0:
            self.keep()
            if len(self.at) > N_POINTS:
                self._every *= 2
                self.at = self.at[::2]
                self.estimates = self.estimates[::2]

    def keep(self) -> None:
        """Add the current point, unless it is already there."""
        if self.at[-1] != self.rate.n:
            self.at.append(self.rate.n)
            self.estimates.append(self.rate.estimate)
