"""Prequential score of a learner on a recorded log: test on each event, then learn it.

The log is read into memory once: features, true labels, and an annotator's answers.

"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Literal, TypeAlias

import click

from connectors.tables.readers import TableError
from streamgp.apps.console import in_one_line, number
from streamgp.apps.recorded_logs import Notes, open_log, tell_rejected, useless_log
from streamgp.base import Belief, Features, Label
from streamgp.common.counter_rng import uniform
from streamgp.common.uncertainty import most_probable
from streamgp.config import build
from streamgp.config.settings import Config
from streamgp.interactive.messages import Event, LabelRequest, Rejected
from streamgp.learners.gp_classifier import GPClassifier
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
    is_cut
        Whether reading ended before the log, as there were enough events.

    """

    by_key: dict[str | None, list[Recorded]] = field(default_factory=dict)
    rejected: list[str] = field(default_factory=list)
    spans: dict[str | None, tuple[float, float]] = field(default_factory=dict)
    n_rows: int = 0
    is_cut: bool = False

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


def read_recording(
    path: Path, config: Config, *, source: str, enough: float = math.inf
) -> Recording:
    """Read the log of a configuration, and have its annotator label every event.

    The annotator's response times are ignored.

    Parameters
    ----------
    enough
        Number of events after which reading ends, with the rows that are polled together.

    Raises
    ------
    click.ClickException
        If the log cannot be read, or has fewer than two classes.

    """
    recording, notes, annotator = Recording(), Notes(), build.build_annotator(config)
    with closing(open_log(path, config, notes, source=source)) as log:
        with in_one_line(TableError):
            while not log.exhausted and recording.n_events < enough:
                for received in log.poll():
                    message = received.message
                    if isinstance(message, Event):
                        _note(recording, message, annotator)
                    elif isinstance(message, Rejected):
                        recording.rejected.append(f"rejected {message.subject}: {message.reason}")
        recording.n_rows, recording.is_cut = log.n_rows, not log.exhausted
    if not recording.n_events:
        if not recording.rejected:
            notes.show()
        raise useless_log(path, recording.rejected, see="see the notes above")
    # First: perhaps the others cannot be used because of these rows.
    tell_rejected(recording.rejected, len(recording.rejected))
    _check(recording, config)
    notes.show()
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


def _check(recording: Recording, config: Config) -> None:
    n, labels, column = recording.n_events, recording.labels, config.log.label
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


By: TypeAlias = Literal["accuracy", "log-loss"]

LEAST_PROBABILITY = 0.01
"""A smaller probability counts as this one in the log loss.

Positive parts are often exactly 0, whose logarithm would dominate all others.
"""


@dataclass(slots=True, kw_only=True)
class Score:
    """Score of predictions, and the number of questions that they would have led to.

    Parameters
    ----------
    query
        The rule that decides on questions. Here it only counts: every label is learned.

    Attributes
    ----------
    n_asked
        Number of those whose label would have been asked for.
    loss, squared_loss
        Sums of the negative logarithms of the probabilities of the true labels, in nats, and of
        their squares.

    Examples
    --------
    >>> from streamgp.base import Posterior
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


def judge(
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
    taught = ClassExampleStore(learner, scaling)
    for event in events:
        on_event()
        start = perf_counter()
        taught.observe(event.x)
        if event.given is None:
            continue
        score.note(event.truth, taught.belief(event.x))
        taught.teach(event.x, event.given, None)
        score.seconds += perf_counter() - start
