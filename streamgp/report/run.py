"""A run as a page tells it: plain values, gathered by whoever reads the run's files.

The parts named like the fields of `summary.json` are read from it as they stand.

"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from streamgp.base import Label

Outcome: TypeAlias = Literal["revised", "upheld", "declined", "expired", "cancelled", "open"]
"""What came of a challenge.

`upheld`: the same label again. `revised`: another one. `declined`: the annotator could not say.
`expired`: no answer in time. `cancelled`: taken back. `open`: the run ended before an answer.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Counts and rates of a run, or of one key; None where nothing could be counted.

    Where targets are numbers, `mae` and `nmse` stand in place of `accuracy` and `macro_f1`.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How the run went on: parallel sequences, one entry per point.

    `accuracy`, or `mae` where targets are numbers, is that of all predictions so far, None before
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

    `mean` is that probability, `share` how many were right.
    """

    n: Sequence[int]
    mean: Sequence[float]
    share: Sequence[float]

    def __post_init__(self) -> None:
        if not len(self.n) == len(self.mean) == len(self.share):
            raise ValueError("a reliability diagram must have as many points in each of its lists")


@dataclass(frozen=True, slots=True, kw_only=True)
class ByConfidence:
    """How many predictions were right and wrong, in equal steps of confidence from 0 to 1."""

    right: Sequence[int]
    wrong: Sequence[int]

    def __post_init__(self) -> None:
        if len(self.right) != len(self.wrong):
            raise ValueError("a histogram must have as many steps of right and wrong predictions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What class probabilities were worth; a number is None where nothing could be counted."""

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
    within the central interval of 90 %.
    """

    n: int
    npll: float | None
    crps: float | None
    coverage: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorCounts:
    """First answers of one annotator.

    `n_wrong` and `error_rate` (their share) are about answers whose truth is known; `estimate` is
    what the learner made of the annotator, without the truth.
    """

    name: str | None
    n_answers: int
    n_wrong: int
    error_rate: float | None
    estimate: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """How the estimate of one annotator's error rate went on, answer by answer."""

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
    """A challenge and what came of it.

    `y` is the annotator's last word on it, None where there was none; `late` says that it came
    after the challenge had expired.
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
class Run:
    """All that a page shows.

    Parameters
    ----------
    log
        Name of the log.
    version
        Version of streamgp that made the run.
    configuration
        Sections and their settings.
    notes
        What the log's reader had to say.
    interrupted
        Whether the run was ended before the log did.
    results
        Counts over everything.
    keys
        The same for each key shown; None if the run knows no keys.
    n_keys
        Number of keys there are.
    curve, confusion, annotators
        As in `summary.json`.
    estimates
        Error estimates over time, of the annotators with most answers.
    challenges
        The first challenges, in order.
    outcomes
        How many of all challenges, those not in `challenges` included, came to what.
    refusals
        The first inputs rejected.
    calibration, distributions
        As in `summary.json`, the first for classes, the second for numbers; None for the other
        kind, and for runs that were made before they were counted.

    """

    log: str
    version: str
    configuration: Mapping[str, Any]
    notes: Sequence[str]
    interrupted: bool
    results: Counts
    keys: Sequence[tuple[str, Counts]] | None
    n_keys: int
    curve: Progress
    confusion: Confusion
    annotators: Sequence[AnnotatorCounts]
    estimates: Sequence[Estimate]
    challenges: Sequence[Contested]
    outcomes: Mapping[Outcome, int]
    refusals: Sequence[Refusal]
    calibration: Calibration | None = None
    distributions: Distributions | None = None

    @property
    def of_numbers(self) -> bool:
        """Whether the targets are numbers."""
        return self.configuration.get("target") == "number"

    def setting(self, section: str, name: str) -> Any:
        """Return one setting of the configuration, or None if it has none of that name."""
        settings = self.configuration.get(section)
        return settings.get(name) if isinstance(settings, Mapping) else None
