"""How good a learner is on a recording: every event is predicted before its label is learned.

An exact Gaussian process whose hyper-parameters stay as they are needs no stream for that: one
factorisation holds all predictions. Any other goes through the log event by event.

"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Literal, TypeAlias

from streamgp.base import Belief, Label, Posterior
from streamgp.cli.tune.recording import Recorded
from streamgp.cli.tune.stages import Stages
from streamgp.draws import uniform
from streamgp.gp.hyperparameters import predicted_before_learned
from streamgp.learners.gp_classifier import GPClassifier
from streamgp.learners.settings import Settings
from streamgp.query.arguments import scaling_for
from streamgp.query.criteria import probabilities
from streamgp.query.rules import AskRule
from streamgp.query.taught_classes import TaughtClasses

By: TypeAlias = Literal["accuracy", "log-loss"]

LEAST_PROBABILITY = 0.01
"""A smaller probability counts as this one in the log loss.

Positive parts are often exactly 0, whose logarithm would drown all others.
"""

MOST_AT_ONCE = 5000
"""Number of examples that are factorised at once, at most: the matrix takes 200 MB by then."""


@dataclass(slots=True, kw_only=True)
class Score:
    """How good predictions were, and how many questions they would have led to.

    Parameters
    ----------
    query
        The rule that decides on questions. In this game it does not: every label is learned.
    seed
        Seed of its draws.

    Attributes
    ----------
    n
        Events predicted.
    n_right
        Those predicted rightly.
    n_asked
        Those whose label would have been asked for.
    loss, squared_loss
        Sums of the negative logarithms of the probabilities of the true labels, in nats, and of
        their squares.
    seconds
        Time for predicting and learning.

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
        """Count one prediction; as in a replay there is none before the first label."""
        p = probabilities(belief)
        if not p:
            return
        draw = uniform(self.seed, str(self.n), "ask")
        self.n_asked += self.query.decide(belief, draw).ask
        self.n += 1
        self.n_right += max(p, key=p.__getitem__) == truth
        # Nobody answers where there is no truth, so that an event without one is not judged.
        assert truth is not None
        loss = -math.log(max(p.get(truth, 0.0), LEAST_PROBABILITY))
        self.loss += loss
        self.squared_loss += loss * loss

    @property
    def accuracy(self) -> float:
        """Share of the events predicted rightly."""
        return self.n_right / self.n

    @property
    def asked_share(self) -> float:
        """Share of the events whose label would have been asked for."""
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
    """Whether a learner is exact and the same from the first to the last of so many examples."""
    most = MOST_AT_ONCE if learner.max_points is None else min(learner.max_points, MOST_AT_ONCE)
    # Whatever else it can do, such as to fit its hyper-parameters, makes it another one later.
    plain = GPClassifier(learner.kernel, learner.noise_variance, learner.max_points)
    return n_examples <= most and learner._get_params() == plain._get_params()


def judge_at_once(learner: GPClassifier, recorded: Stages, score: Score) -> None:
    """Predict all examples of one key, each by those before it, from one factorisation a stage.

    Equal to `judge_one_by_one` up to rounding (1e-9), but that an example which brings a feature
    that none before it had is predicted with this feature.

    Raises
    ------
    NotPositiveDefiniteError
        If the noise variance is too small for this log.

    """
    start = perf_counter()
    settings = Settings(
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
    warm_up: int,
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
    taught = TaughtClasses(learner, scaling_for([], warm_up))
    for event in events:
        on_event()
        taught.observe(event.x)
        if event.given is None:
            continue
        score.note(event.truth, taught.belief(event.x))
        taught.teach(event.x, event.given, None)
    score.seconds += perf_counter() - start
