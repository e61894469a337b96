"""Evaluation of the interactive loop on a River dataset, in the style of River's evaluators.

Only this module measures durations; its printed output has the form of River's.

"""

from __future__ import annotations

import datetime as dt
import math
import time
import warnings
from collections import Counter, UserList
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from streamgp.common.feature_values import is_missing, is_number
from streamgp.common.normal import Normal
from streamgp.common.signatures import lacking
from streamgp.common.validation import check_flag, check_whole
from streamgp.evaluation import RunStatistics
from streamgp.interactive import (
    Cancel,
    Challenge,
    Event,
    InteractiveLoop,
    LabelRequest,
    People,
    Prediction,
    Rejected,
)
from streamgp.interactive.learner import PredictsClasses, SkepticalLearner
from streamgp.interactive.people import DEFAULT_PEOPLE
from streamgp.interactive.validation import flaw_of_label
from streamgp.learners.river_adapters import as_target, kind_of
from streamgp.metrics import ConversationMetric, DistributionMetric
from streamgp.metrics.metric import WeightedMetric
from streamgp.simulation import Annotator, AnswerQueue, SimulatedAnnotator, SimulatedMeasurer
from streamgp.simulation.driver import Driver

if TYPE_CHECKING:
    from river import metrics

    from streamgp.base import Features, Label, Target
    from streamgp.interactive import Fault, Message

AnyMetric: TypeAlias = "metrics.base.Metric | WeightedMetric"
Moment: TypeAlias = "str | Callable[[dict[Any, Any]], float | dt.date] | None"

_FAULTS_REPORTED: dict[Fault, str] = {
    "failed": "the model failed over",
    "malformed": "the model cannot use",
    "unlearnable": "the model cannot learn",
    "duplicate": "the loop knows the ids of",
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class InteractiveResult:
    """Result of a conversation with a simulated annotator.

    Parameters
    ----------
    metric
        The metric that was passed, updated.
    n_events
        Number of events.
    n_scored
        Number of events passed to the metric: they have a label, and the model made a prediction.
    n_asked
        Number of labels asked for, without challenges.
    n_challenges
        Number of labels challenged.
    challenge_precision
        Share of the challenged labels that were wrong; None if none was challenged.
    challenge_recall
        Share of the wrong first answers that were challenged; None if none was wrong.
    n_repaired
        Number of challenged labels that were wrong as given, and right in the end.
    n_spoiled
        Number of challenged labels that were right as given, and wrong in the end.
    n_declined
        Number of questions that the annotator declined.
    n_expired
        Number of questions that expired unanswered.
    n_rejected
        Number of events and labels that the model could not use.
    n_learned
        Number of labels held in the end.
    wrong_kept
        Share of the labels held in the end that are wrong; None if there are none.
    quarantined
        Annotators who are in quarantine in the end, so that their answers are no longer learned.
    n_taken_back
        Number of their labels that had been learned and were retracted.
    n_second
        Number of second questions about events, to another annotator or to the same one.

    """

    metric: AnyMetric
    n_events: int
    n_scored: int
    n_asked: int
    n_challenges: int
    challenge_precision: float | None
    challenge_recall: float | None
    n_repaired: int
    n_spoiled: int
    n_declined: int
    n_expired: int
    n_rejected: int
    n_learned: int
    wrong_kept: float | None
    quarantined: tuple[str, ...] = ()
    n_taken_back: int = 0
    n_second: int = 0

    def __repr__(self) -> str:
        challenges = _counted(self.n_challenges, "challenge")
        if self.challenge_precision is not None:
            challenges += (
                f" ({self.challenge_precision:.1%} justified, {self.n_repaired:,d} repaired, "
                f"{self.n_spoiled:,d} spoiled)"
            )
        learned = f"{_counted(self.n_learned, 'label')} learned"
        if self.wrong_kept is not None:
            learned += f" ({self.wrong_kept:.1%} wrong)"
        parts = [f"{_counted(self.n_asked, 'label')} asked", challenges, learned]
        for count, what in (
            (self.n_second, "asked twice"),
            (self.n_declined, "declined"),
            (self.n_expired, "expired"),
            (self.n_rejected, "rejected"),
            (self.n_taken_back, "taken back"),
        ):
            if count:
                parts.append(f"{count:,d} {what}")
        return f"{self.metric}\n{_counted(self.n_events, 'event')}: {', '.join(parts)}"


def _counted(n: int, what: str) -> str:
    return f"{n:,d} {what}{'s' * (n != 1)}"


def interactive_val_score(
    dataset: Iterable[Any],
    model: Any,
    metric: AnyMetric,
    *,
    annotator: Annotator | None = None,
    moment: Moment = None,
    expires_after_s: float | None = None,
    answer_horizon_s: float | None = None,
    people: People = DEFAULT_PEOPLE,
    print_every: int = 0,
    show_time: bool = False,
    show_memory: bool = False,
) -> InteractiveResult:
    """Evaluate a model in conversation with an annotator who may err.

    Every event is predicted and scored against its clean label, which the model never sees. The
    model asks; the annotator answers after a delay, rightly or wrongly; the model learns the
    answer, or challenges it, and the annotator answers again. Events whose label is None, NaN or
    pandas.NA are predicted but not scored, and the annotator declines to label them. As in River's
    evaluators, an event without a prediction (before the first label) is not scored.

    Parameters
    ----------
    dataset
        The stream: `(x, y)` pairs or `(x, y, keywords)` triples. Neither `x` nor the keywords are
        changed. The keywords are not used, as only features and labels reach a model
        in a conversation.
    model
        A skeptical classifier or regressor, which learns in place. Any other River model is a
        template for one that always asks and never challenges; if it is a pipeline, its
        transformers learn from the first 200 events.
    metric
        A River metric for such a model, or a sum of them. Metrics that need probabilities get them.
        Regression metrics of `streamgp.metrics` that need the distribution get it, also within
        `river.metrics.base.Metrics`. Metrics of questions, not of predictions, are refused.
    annotator
        The annotator who answers. None stands for one who answers at once and never errs. For
        regression use `SimulatedMeasurer`. For which numbers count as wrong, see `docs/numbers.md`.
    moment
        Time of an event, in seconds or as a date and time (taken as UTC if it names no zone): a
        feature's name or a function of `x`. None stands for the number of the event. A named
        feature that is a date is left out of `x`, unless the model is a pipeline; a number stays.
    expires_after_s
        Seconds after which a question expires, as in `InteractiveLoop`.
    answer_horizon_s
        Seconds for which an event is remembered, as in `InteractiveLoop`.
    people
        Rules for several annotators, as in `InteractiveLoop`.
    print_every
        Events between two printed lines; 0 for none.
    show_time
        Whether to print the time elapsed.
    show_memory
        Whether to print the memory used by the model.

    Returns
    -------
    The metric, and counts of questions and answers.

    Raises
    ------
    TypeError
        If an argument or a value of the dataset is not of the type described.
    ValueError
        If the model could use none of the events.

    Warns
    -----
    RuntimeWarning
        If the model raised an error for some inputs, or cannot use them, or if answers have the ids
        of earlier ones: these were rejected, and changed nothing.

    Examples
    --------
    >>> from river import metrics
    >>> from streamgp import SimulatedAnnotator, datasets, interactive_val_score, isgp
    >>> result = interactive_val_score(
    ...     datasets.WiFiRooms().take(600),
    ...     isgp(seed=1),
    ...     metrics.Accuracy(),
    ...     annotator=SimulatedAnnotator(error_rate=0.2, seed=1),
    ...     print_every=300,
    ... )
    [300] Accuracy: 100.00% – ... samples used
    [600] Accuracy: 9...% – ... samples used
    >>> result
    Accuracy: 9...%
    600 events: ... labels asked, ... challenges (...), ... labels learned (...% wrong)

    """
    learner: Any = _skeptical(model)
    target: Target = "label" if isinstance(learner, PredictsClasses) else "number"
    _check_metric(metric, model)
    check_whole("print_every", print_every, 0)
    check_flag("show_time", show_time)
    check_flag("show_memory", show_memory)
    _check_annotator(annotator, target, model)
    loop = InteractiveLoop(
        learner,
        expires_after_s=expires_after_s,
        answer_horizon_s=answer_horizon_s,
        people=people,
    )
    evaluation = _Evaluation(
        loop, metric, _annotator_for(target) if annotator is None else annotator, target
    )
    started = time.perf_counter()

    def report(n: int) -> None:
        line = f"[{n:,d}] {metric} – {evaluation.statistics.n_learned:,d} samples used"
        if show_time:
            minutes, seconds = divmod(int(time.perf_counter() - started), 60)
            line += f" – {minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}"
        if show_memory:
            from river.utils.pretty import humanize_bytes

            line += f" – {humanize_bytes(learner._raw_memory_usage)}"
        print(line)

    # A model that learned events by their ids in an earlier call now gets other events.
    named = any(example.event_id is not None for example in learner.examples())
    run = f"{learner.n_learned}/" if named else ""
    # A date is no feature, except to a pipeline, whose transformers may make features of it.
    leaves_out_dates = isinstance(moment, str) and not _is_pipeline(learner)
    n = 0
    for x, y, *_ in dataset:
        if not isinstance(x, Mapping):
            raise TypeError(
                f"x must be a dict of features, got {type(x).__name__}; a dataset yields pairs "
                "(x, y), as river.stream.iter_frame(X, y) does for a data frame"
            )
        truth = _truth_of(y, n, target)
        at = _moment_of(x, n, moment)
        # The loop keeps x; a dataset may yield the same dictionary again with new contents.
        features = dict(x)
        if leaves_out_dates and isinstance(x[moment], dt.date):
            del features[moment]
        evaluation.play(Event(event_id=f"{run}{n}", x=features, occurred_at=at, truth=truth))
        n += 1
        if print_every and n % print_every == 0:
            report(n)
    evaluation.finish()
    if evaluation.faults() and not evaluation.has_predicted:
        raise ValueError(f"no event could be used: {evaluation.faults()[0]}")
    for fault in evaluation.faults():
        warnings.warn(fault, RuntimeWarning, stacklevel=2)
    if print_every and n > print_every and n % print_every:
        report(n)
    return evaluation.result()


class _Evaluation:
    """A loop, its annotator and its statistics."""

    def __init__(
        self,
        loop: InteractiveLoop,
        metric: AnyMetric,
        annotator: Annotator,
        target: Target,
    ) -> None:
        horizon_s = loop.rules.answer_horizon_s
        self.statistics = RunStatistics(
            target, asks_twice=loop.people.asks_twice, horizon_s=horizon_s
        )
        self.has_predicted = False
        self._faults: Counter[Fault] = Counter()
        self._reasons: dict[Fault, str] = {}  # the first one for each fault
        self._loop = loop
        self._driver = Driver(loop, self._handle)
        self._queue = AnswerQueue(annotator, horizon_s=horizon_s)
        self._metric = metric
        self._parts = _parts(metric)
        self._wants_labels = bool(getattr(metric, "requires_labels", True))
        self._wants_distribution = any(map(_needs_distribution, self._parts))
        self._truth: Label | None = None
        self._x: Features = {}

    def play(self, event: Event) -> None:
        """Play an event, after the answers due before it and before those it causes."""
        at = event.occurred_at
        self._deliver_answers(at)
        self._queue.see(event)
        self.statistics.event(event)
        self._truth, self._x = event.truth, event.x
        self._driver.take(event, at)
        self._deliver_answers(at)

    def finish(self) -> None:
        """Play the answers that are still pending."""
        while (at := self._queue.next_at()) is not None:
            self._deliver_answers(at)

    def faults(self) -> list[str]:
        """Return what the model could not do with some inputs."""
        return [
            f"{what} {self._faults[fault]} of the inputs, which were rejected; the first time: "
            f"{self._reasons[fault]}"
            for fault, what in _FAULTS_REPORTED.items()
            if fault in self._faults
        ]

    def result(self) -> InteractiveResult:
        """Return the metric and the counts."""
        counts = self.statistics.summary()
        known: dict[str, Any] = {
            "metric": self._metric,
            "quarantined": tuple(self._loop.quarantined),
            "n_taken_back": sum(one.n_taken_back for one in self.statistics.annotators.values()),
            "n_second": self.statistics.n_second,
        }
        names = [name for name in InteractiveResult.__slots__ if name not in known]
        return InteractiveResult(**known, **{name: counts[name] for name in names})

    def _deliver_answers(self, until: float) -> None:
        for answer in self._queue.due(until):
            self.statistics.answer(answer)
            self._driver.take(answer, answer.answered_at)

    def _handle(self, message: Message, now: float) -> None:
        self.statistics.message(message)
        if isinstance(message, Prediction):
            self.has_predicted = True
            self._score(message)
        elif isinstance(message, LabelRequest | Challenge):
            self._queue.ask(message, now)
        elif isinstance(message, Cancel):
            self._queue.cancel(message)
        elif isinstance(message, Rejected):
            self._faults[message.fault] += 1
            self._reasons.setdefault(message.fault, message.reason)

    def _score(self, prediction: Prediction) -> None:
        if self._truth is None or prediction.y is None:
            return
        if self._wants_distribution:
            self._score_distribution(self._truth, prediction.y)
            return
        predicted: Any = prediction.y if self._wants_labels else prediction.proba
        self._metric.update(y_true=self._truth, y_pred=predicted)

    def _score_distribution(self, truth: Label, mean: Label) -> None:
        model: Any = self._loop.model
        # Nothing was learned since the prediction, whose message has only mean and variance.
        distribution = _with_density(model.predict_one(self._x, with_dist=True))
        for metric in self._parts:
            wants = _needs_distribution(metric)
            metric.update(y_true=truth, y_pred=distribution if wants else mean)


def _parts(metric: Any) -> list[Any]:
    """Return the metrics of a sum, or the only one."""
    return list(metric) if isinstance(metric, UserList) else [metric]


def _needs_distribution(metric: Any) -> bool:
    """Whether a metric, or the one inside a wrapper of River's, evaluates distributions."""
    return isinstance(getattr(metric, "obj", metric), DistributionMetric)


def _with_density(distribution: Any) -> Any:
    """Return a distribution with a log density, which River's normal one lacks."""
    if hasattr(distribution, "log_density"):
        return distribution
    return Normal(mu=float(distribution.mu), sigma=float(distribution.sigma))


def _annotator_for(target: Target) -> Annotator:
    return SimulatedAnnotator(seed=0) if target == "label" else SimulatedMeasurer(seed=0)


def _skeptical(model: Any) -> Any:
    """Return a skeptical learner as it is, or wrap any other classifier or regressor in one."""
    if isinstance(model, SkepticalLearner):
        return model
    from river import base, compose

    from streamgp.query import (
        AlwaysAsk,
        NeverChallenge,
        SkepticalClassifier,
        SkepticalRegressor,
    )

    if not isinstance(model, base.Classifier | base.Regressor):
        raise TypeError(f"model must be a River classifier or regressor, got {kind_of(model)}")
    # The transformers of a pipeline need events to learn from; a bare classifier gets x as it is.
    options: dict[str, Any] = {} if isinstance(model, compose.Pipeline) else {"warm_up": 0}
    if isinstance(model, base.Regressor):
        return SkepticalRegressor(model, AlwaysAsk(), NeverChallenge(), **options)
    return SkepticalClassifier(model, AlwaysAsk(), NeverChallenge(), **options)


def _is_pipeline(learner: Any) -> bool:
    """Whether a skeptical learner wraps a pipeline."""
    from river import compose

    return isinstance(getattr(learner, "model", None), compose.Pipeline)


def _check_metric(metric: AnyMetric, model: Any) -> None:
    """Refuse a metric that cannot evaluate the predictions of the model."""
    needed = ("update", "get", "works_with")
    if isinstance(metric, type) or not all(hasattr(metric, name) for name in needed):
        raise TypeError(
            f"metric must be a metric such as metrics.Accuracy(), got {metric!r}; derive one of "
            "your own from a class of river.metrics.base"
        )
    if isinstance(metric, ConversationMetric):
        raise ValueError(
            f"{type(metric).__name__} judges questions, not predictions, and is updated by hand; "
            "pass a metric of River such as metrics.Accuracy(). "
            f"The same number is counted anyway: {metric.found_in}"
        )
    if not all(_works(one, model) for one in _parts(metric)):
        raise ValueError(f"{type(metric).__name__} metric is not compatible with {model}")


def _works(metric: Any, model: Any) -> bool:
    from river import base

    if _needs_distribution(metric):
        return isinstance(model, base.Regressor)
    return bool(metric.works_with(model))


def _check_annotator(annotator: Annotator | None, target: Target, model: Any) -> None:
    """Refuse what is no annotator, or one who answers with numbers about classes."""
    missing = [] if annotator is None else lacking(annotator, Annotator)
    if missing:
        raise TypeError(
            f"annotator must be one such as SimulatedAnnotator(error_rate=0.1), got {annotator!r}; "
            f"it lacks {', '.join(missing)}"
        )
    if isinstance(annotator, SimulatedMeasurer) and target == "label":
        raise TypeError(
            f"SimulatedMeasurer answers with numbers, and {model} predicts classes; "
            "take SimulatedAnnotator"
        )


def _truth_of(y: Any, n: int, target: Target) -> Label | None:
    """Return the label of an event, None if it has none; refuse a value that is not a label."""
    if is_missing(y):  # None, NaN or pandas.NA, as in tables
        return None
    flaw = flaw_of_label(y)
    if flaw is None and target == "number" and not is_number(y):
        flaw = f"the target of a regressor must be a number, got {y!r}"
    if flaw is not None:
        raise TypeError(f"y of event {n}: {flaw}")
    return cast("Label", y)


def _moment_of(x: Mapping[Any, Any], n: int, moment: Moment) -> float:
    if moment is None:
        return float(n)
    if not isinstance(moment, str):
        value = moment(cast("dict[Any, Any]", x))
    elif moment in x:
        value = x[moment]
    else:
        raise KeyError(f"event {n} has no feature {moment!r}, which is its moment")
    if isinstance(value, dt.date) and not is_missing(value):  # pandas.NaT is a date
        if not isinstance(value, dt.datetime):
            value = dt.datetime(value.year, value.month, value.day)
        return (value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value).timestamp()
    seconds = as_target(value)
    if seconds is None:
        raise TypeError(f"moment must give a number of seconds or a datetime, got {value!r}")
    if not math.isfinite(seconds):
        raise ValueError(f"moment must be finite, got {value!r:.60} for event {n}")
    return seconds
