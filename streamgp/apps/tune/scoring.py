"""Prequential score of a learner on a recorded log: test on each event, then learn it.

The log is read into memory once: features, true labels, and an annotator's answers. An exact
Gaussian process with fixed hyperparameters needs no stream: a single factorisation gives all
predictions. Any other learner goes through the log event by event.

"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Literal, TypeAlias

import click
import numpy as np

from connectors.tables.readers import TableError
from streamgp.apps.console import in_one_line, number
from streamgp.apps.recorded_logs import Notes, open_log, tell_rejected
from streamgp.base import Array, Belief, Features, Label, Posterior, State
from streamgp.common.counter_rng import uniform
from streamgp.common.uncertainty import most_probable
from streamgp.config import build
from streamgp.config.settings import Config
from streamgp.features import Columns
from streamgp.gp.hyperparameters import predicted_before_learned
from streamgp.interactive.messages import Event, LabelRequest, Rejected
from streamgp.learners.gp_classifier import GPClassifier
from streamgp.learners.gp_core import GPSettings
from streamgp.query.criteria import probabilities
from streamgp.query.example_store import ClassExampleStore
from streamgp.query.strategies import AskRule
from streamgp.scaling import Scaling, check_finite
from streamgp.simulation.annotators import Annotator


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One event of a log.

    Parameters
    ----------
    x
        Features as recorded.
    truth
        The true label, None if there is none.
    given
        The annotator's label, None if there is no answer.

    """

    x: Features
    truth: Label | None
    given: Label | None


@dataclass(slots=True)
class Recording:
    """A log, separated by key.

    Attributes
    ----------
    by_key
        The events of each key, in order; all events together without keys.
    rejected
        Reasons why events could not be used, one line each.
    spans
        Times of the first and the last event of each key, POSIX seconds.
    n_rows
        Number of rows read.

    """

    by_key: dict[str | None, list[Recorded]] = field(default_factory=dict)
    rejected: list[str] = field(default_factory=list)
    spans: dict[str | None, tuple[float, float]] = field(default_factory=dict)
    n_rows: int = 0

    @property
    def days(self) -> float:
        """Days from the first to the last event of each key, summed over keys."""
        return sum(last - first for first, last in self.spans.values()) / 86400.0

    @property
    def n_events(self) -> int:
        return sum(map(len, self.by_key.values()))

    @property
    def n_examples(self) -> int:
        """Number of events with a label."""
        return sum(event.given is not None for events in self.by_key.values() for event in events)

    @property
    def labels(self) -> list[Label]:
        """The true labels, in order of appearance."""
        events = (event for events in self.by_key.values() for event in events)
        return list(dict.fromkeys(event.truth for event in events if event.truth is not None))


def read_recording(path: Path, config: Config, *, source: str) -> Recording:
    """Read the log of a configuration, and have its annotator label every event.

    The annotator's response times are ignored.

    Raises
    ------
    click.ClickException
        If the log cannot be read, or has fewer than two classes.

    """
    recording, notes, annotator = Recording(), Notes(), build.build_annotator(config)
    with closing(open_log(path, config, notes, source=source)) as log:
        with in_one_line(TableError):
            while not log.exhausted:
                for received in log.poll():
                    message = received.message
                    if isinstance(message, Event):
                        _note(recording, message, annotator)
                    elif isinstance(message, Rejected):
                        recording.rejected.append(f"rejected {message.subject}: {message.reason}")
        recording.n_rows = log.n_rows
    _check(recording, path, config)
    notes.show()
    tell_rejected(recording.rejected, len(recording.rejected))
    return recording


def _note(recording: Recording, event: Event, annotator: Annotator) -> None:
    try:
        check_finite(event.x)
    except ValueError as error:
        recording.rejected.append(f"rejected row {event.event_id}: {error}")
        return
    given = None
    if event.truth is not None:
        annotator.see(event.truth)
        answer = annotator.answer(_request(event), event.truth, event.occurred_at)
        given = None if answer is None else answer.y
    at = event.occurred_at
    first, last = recording.spans.get(event.key, (at, at))
    recording.spans[event.key] = min(first, at), max(last, at)
    events = recording.by_key.setdefault(event.key, [])
    events.append(Recorded(x=event.x, truth=event.truth, given=given))


def _request(event: Event) -> LabelRequest:
    # With the id that a replay would give it, so that the annotator errs on the same events.
    return LabelRequest(
        request_id=f"{event.event_id}/label",
        event_id=event.event_id,
        key=event.key,
        x=event.x,
        reason="",
        score=1.0,
        threshold=0.0,
        requested_at=event.occurred_at,
    )


def _check(recording: Recording, path: Path, config: Config) -> None:
    n, labels, column = recording.n_events, recording.labels, config.log.label
    if not n:
        raise click.ClickException(
            f"no row of {path} could be used, the first because: {recording.rejected[0]}"
        )
    if not labels:
        raise click.ClickException(
            f"column {column!r} holds no label in {number(n, 'row')}; name another one with "
            "--label, or read more rows with --limit"
        )
    if len(labels) == 1:
        raise click.ClickException(
            f"column {column!r} holds one label only, {labels[0]!r}, in {number(n, 'row')}; "
            "expected two or more to tell apart: read more rows with --limit, or name another "
            "column with --label"
        )
    if not recording.n_examples:
        raise click.ClickException(
            "the annotator answers no question about this log; lower decline_rate"
        )
    if all(sum(event.given is not None for event in of) < 2 for of in recording.by_key.values()):
        whose = "" if config.log.key is None else f"of the same key, in column {config.log.key!r}, "
        raise click.ClickException(
            f"no two events {whose}are labelled in {number(n, 'row')}; expected one to learn from "
            "and one to predict: read more rows with --limit, or name another column"
        )


# --- A recording as arrays, as seen by a learner behind a scaling.
#
# Scales change a few times: during the warm-up whenever the number of events has doubled, and when
# a new feature appears. A stage lies between two changes; at its start, all examples before it are
# scaled again. Since this depends only on the events, it is done once for many learners.


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The examples up to the next change of scale.

    Parameters
    ----------
    X
        Scaled features of all examples so far, shape (n, d).
    first
        Number of the first example that is predicted in this stage.
    columns
        Features in the columns of X.
    n_first
        Number of features of the very first example, on which the default kernel depends.

    """

    X: Array
    first: int
    columns: Columns
    n_first: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """All stages of one key.

    Parameters
    ----------
    Y
        Indicators of the given labels, shape (n, m).
    labels
        The given labels, in order of appearance, which is that of the columns of Y.
    n_known
        Number of labels known before each example.
    truths
        The true label of each example.

    """

    stages: Sequence[Stage]
    Y: Array
    labels: Sequence[Label]
    n_known: Sequence[int]
    truths: Sequence[Label | None]


def staged(events: Sequence[Recorded], fresh: Callable[[], Scaling]) -> Stages:
    """Divide the events of one key into stages; `fresh` creates a new scaling."""
    examples = [event for event in events if event.given is not None]
    positions: dict[Label, int] = {}
    n_known = []
    Y = np.zeros((len(examples), len({event.given for event in examples})))
    for row, event in zip(Y, examples, strict=True):
        assert event.given is not None
        n_known.append(len(positions))
        row[positions.setdefault(event.given, len(positions))] = 1.0
    return Stages(
        stages=list(_stages(events, examples, fresh)),
        Y=Y,
        labels=list(positions),
        n_known=n_known,
        truths=[event.truth for event in examples],
    )


def _stages(
    events: Sequence[Recorded], examples: Sequence[Recorded], fresh: Callable[[], Scaling]
) -> Iterator[Stage]:
    changes = [*_changes(events, fresh()), (len(examples), {})]
    for (first, state), (last, _) in pairwise(changes):
        if first == last:
            continue
        scaling = fresh()
        scaling.load_state(state)
        xs = [scaling.transform(example.x) for example in examples[:last]]
        yield _stage(xs, first)


def _changes(events: Sequence[Recorded], scaling: Scaling) -> list[tuple[int, State]]:
    """Return the numbers of examples at which the scales changed, with the new scales."""
    changes: list[tuple[int, State]] = [(0, scaling.state())]
    n_examples = 0
    for event in events:
        if scaling.observe(event.x):
            changes.append((n_examples, scaling.state()))
        if event.given is not None:
            n_examples += 1
            scaling.learn(event.x, event.given)
    return changes


def _stage(xs: Sequence[Features], first: int) -> Stage:
    columns = Columns().widened(xs[0])
    n_first = len(columns)
    for x in xs:
        columns = columns.widened(x)
    X = np.array([columns.vector(x) for x in xs]).reshape(len(xs), len(columns))
    return Stage(X=X, first=first, columns=columns, n_first=n_first)


By: TypeAlias = Literal["accuracy", "log-loss"]

LEAST_PROBABILITY = 0.01
"""A smaller probability counts as this one in the log loss.

Positive parts are often exactly 0, whose logarithm would dominate all others.
"""

MOST_AT_ONCE = 5000
"""The largest number of examples factorised at once: the matrix then takes 200 MB."""


@dataclass(slots=True, kw_only=True)
class Score:
    """Score of predictions, and the number of questions that they would have led to.

    Parameters
    ----------
    query
        The rule that decides on questions. Here it only counts: every label is learned.

    Attributes
    ----------
    n
        Number of events predicted.
    n_right
        Number of those predicted correctly.
    n_asked
        Number of those whose label would have been asked for.
    loss, squared_loss
        Sums of the negative logarithms of the probabilities of the true labels, in nats, and of
        their squares.
    seconds
        Duration of predicting and learning.

    Examples
    --------
    >>> from streamgp.query import SkepticalAsk
    >>> score = Score(query=SkepticalAsk(), seed=1)
    >>> score.note("hall", Posterior(mean={"hall": 0.8, "den": 0.2}, variance=0.1))
    >>> score.note("den", Posterior(mean={"hall": 1.0, "den": 0.0}, variance=0.1))
    >>> score.accuracy, score.log_loss, score.standard_error("accuracy")
    (0.5, 2.414..., 0.353...)

    """

    query: AskRule
    seed: int
    n: int = 0
    n_right: int = 0
    n_asked: int = 0
    loss: float = 0.0
    squared_loss: float = 0.0
    seconds: float = 0.0

    def note(self, truth: Label | None, belief: Belief) -> None:
        """Count one prediction; as in a replay, there is none before the first label."""
        p = probabilities(belief)
        if not p:
            return
        draw = uniform(self.seed, str(self.n), "ask")
        self.n_asked += self.query.decide(belief, draw).ask
        self.n += 1
        self.n_right += most_probable(p) == truth
        # Annotators answer only if there is a truth; events without one are not scored.
        assert truth is not None
        loss = -math.log(max(p.get(truth, 0.0), LEAST_PROBABILITY))
        self.loss += loss
        self.squared_loss += loss * loss

    @property
    def accuracy(self) -> float:
        return self.n_right / self.n

    @property
    def asked_share(self) -> float:
        """Share of events whose label would have been asked for."""
        return self.n_asked / self.n

    @property
    def log_loss(self) -> float:
        """Mean negative logarithm of the probability of the true label, in nats."""
        return self.loss / self.n

    @property
    def microseconds(self) -> float:
        """Time per event."""
        return 1e6 * self.seconds / self.n

    def standard_error(self, by: By) -> float:
        """Standard error of the accuracy or of the log loss."""
        if by == "accuracy":
            variance = self.accuracy * (1.0 - self.accuracy)
        else:
            variance = self.squared_loss / self.n - self.log_loss**2
        return math.sqrt(max(variance, 0.0) / self.n)


def is_at_once(learner: GPClassifier, n_examples: int) -> bool:
    """Return whether a learner is exact and unchanged over this many examples."""
    most = MOST_AT_ONCE if learner.max_points is None else min(learner.max_points, MOST_AT_ONCE)
    # Any other option, such as fitting hyperparameters, changes the learner over time.
    plain = GPClassifier(learner.kernel, learner.noise_variance, learner.max_points)
    return n_examples <= most and learner._get_params() == plain._get_params()


def judge_at_once(learner: GPClassifier, recorded: Stages, score: Score) -> None:
    """Predict all examples of one key, each from those before it, with one factorisation per stage.

    Equal to `judge_one_by_one` up to rounding (1e-9), except that an example with a new feature is
    predicted with this feature.

    Raises
    ------
    NotPositiveDefiniteError
        If the noise variance is too small for this log.

    """
    start = perf_counter()
    settings = GPSettings(
        kernel=learner.kernel,
        noise_variance=learner.noise_variance,
        max_points=None,
        learn_hyperparameters=False,
        single_precision=False,
    )
    for stage in recorded.stages:
        last = len(stage.X)
        these = settings.given(settings.kernel_for(stage.n_first), stage.columns)
        means, variances = predicted_before_learned(these, stage.X, recorded.Y[:last])
        for i in range(stage.first, last):
            k = recorded.n_known[i]
            belief = Posterior(
                mean=dict(zip(recorded.labels[:k], means[i, :k].tolist(), strict=True)),
                variance=float(variances[i]),
                prior_variance=these.kernel.prior_variance(these.kernel.embed(stage.X[i])),
            )
            score.note(recorded.truths[i], belief)
    score.seconds += perf_counter() - start


def judge_one_by_one(
    learner: GPClassifier,
    events: Sequence[Recorded],
    scaling: Scaling,
    score: Score,
    on_event: Callable[[], None],
) -> None:
    """Predict every labelled event of one key, then learn it, as a replay would.

    Raises
    ------
    NotPositiveDefiniteError
        If the noise variance is too small for this log.

    """
    start = perf_counter()
    taught = ClassExampleStore(learner, scaling)
    for event in events:
        on_event()
        taught.observe(event.x)
        if event.given is None:
            continue
        score.note(event.truth, taught.belief(event.x))
        taught.teach(event.x, event.given, None)
    score.seconds += perf_counter() - start
