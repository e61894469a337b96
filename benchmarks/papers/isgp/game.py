"""The synthetic experiment of the ISGP paper, one fold at a time.

600 points of six Gaussian classes (`datasets.GaussianClasses`), ten stratified folds. A learner
gets nine of them as a stream, in conversation with an annotator who errs, and predicts the tenth
after every step. The first example comes with its true label, free of charge. Answers and coin
flips depend on the event and the seed alone: all learners get the same annotator.

"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from benchmarks._logs import Labelled, Log
from streamgp import SimulatedAnnotator
from streamgp.base import Array, Features
from streamgp.datasets import GaussianClasses
from streamgp.interactive import (
    Annotator,
    Challenge,
    Event,
    InteractiveLoop,
    LabelledExample,
    LabelRequest,
    Rejected,
    Request,
    SkepticalLearner,
)

N_CLASSES = 6
N_FOLDS = 10
# Macro F1 of a classifier that knows the six distributions.
BAYES_F1 = 0.895
Ints: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
# Predicts the classes of many points at once.
Predict: TypeAlias = Callable[[Sequence[Features]], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Condition:
    """Order of the points, and how often the annotator errs."""

    order: str
    noise: float

    def __str__(self) -> str:
        return f"{self.order}, {self.noise:.0%}"


CONDITIONS = tuple(
    Condition(order, noise) for order in ("random", "sequential") for noise in (0.1, 0.4)
)


@dataclass(frozen=True, slots=True)
class Fold:
    """One fold of one seed: the stream, and the held-out points."""

    condition: Condition
    seed: int
    number: int
    stream: list[Labelled]
    test: list[Labelled]

    def event_id(self, step: int) -> str:
        """Return an id for a step such that no two folds share an answer or a coin flip."""
        return f"{self.number}.{step}"


def fold(condition: Condition, seed: int, number: int) -> Fold:
    """Return a fold; its points depend on the seed, the order of the stream on both."""
    train: list[Labelled] = []
    test: list[Labelled] = []
    seen = [0] * N_CLASSES
    for x, y in GaussianClasses(seed=seed):
        # The points of a class are in random order, so counting off gives stratified folds.
        (test if seen[y] % N_FOLDS == number else train).append((x, y))
        seen[y] += 1
    log = Log(name="gaussian", events=train, orders=(condition.order,))
    return Fold(condition, seed, number, log.played(condition.order, seed * N_FOLDS + number), test)


@dataclass(frozen=True, slots=True)
class Trace:
    """Progress of a learner, step by step; the counts are cumulative.

    Parameters
    ----------
    f1
        Macro F1 on the held-out fold, after each step.
    asked
        Label requests.
    challenges
        Challenges.
    justified
        Those of them that contested a wrong label.
    refused
        Labels that the learner could not take.
    learned
        Labels learned at the end, the free one included.
    wrong
        Those of them that are wrong.
    seconds
        Processor time of the conversation in each step, without the predictions of held-out points.

    """

    f1: Array
    asked: Ints
    challenges: Ints
    justified: Ints
    refused: Ints
    learned: int
    wrong: int
    seconds: Array

    @property
    def questions(self) -> int:
        """Total number of label requests and challenges."""
        return int(self.asked[-1] + self.challenges[-1])


class TruthfulSecondThought(SimulatedAnnotator):
    """The annotator of the original skeptical learning, whose second answer is always right."""

    def _label(self, request: Request, truth: Any) -> Any:
        return truth if isinstance(request, Challenge) else super()._label(request, truth)


def annotator(
    fold: Fold, kind: type[SimulatedAnnotator] = SimulatedAnnotator
) -> SimulatedAnnotator:
    """Return the annotator of a fold."""
    return kind(fold.condition.noise, classes=range(N_CLASSES), seed=fold.seed)


def play(
    fold: Fold, learner: Any, predict: Predict, who: Annotator, *, scored: str = "steps"
) -> Trace:
    """Run a learner over a fold.

    Parameters
    ----------
    fold
        The fold.
    learner
        A fresh skeptical learner.
    predict
        Function that predicts the held-out points.
    who
        The annotator.
    scored
        `steps`: the F1 is computed whenever something was learned; `end`: only after the last
        step; `never`. It is NaN where it was not computed.

    """
    f1: list[float] = []
    counts: list[tuple[int, ...]] = []
    statistics = _Counts()
    loop = InteractiveLoop(cast(SkepticalLearner, learner))
    points, truths = zip(*fold.test, strict=True)
    seconds: list[float] = []
    unknown = 0.0 if scored == "steps" else math.nan
    for step, (x, truth) in enumerate(fold.stream):
        event = Event(
            event_id=fold.event_id(step),
            x=x,
            occurred_at=float(step),
            truth=truth,
            y=truth if step == 0 else None,
        )
        n_learned = statistics.learned
        started = time.process_time()
        _converse(loop, event, who, statistics)
        seconds.append(time.process_time() - started)
        due = scored == "steps" and statistics.learned > n_learned
        if due or (scored == "end" and step == len(fold.stream) - 1):
            f1.append(macro_f1(truths, predict(points)))
        else:
            f1.append(f1[-1] if f1 else unknown)
        counts.append(
            (statistics.asked, statistics.challenges, statistics.justified, statistics.refused)
        )
    asked, challenges, justified, refused = np.array(counts).T
    return Trace(
        np.array(f1),
        asked,
        challenges,
        justified,
        refused,
        learned=statistics.learned,
        wrong=statistics.wrong,
        seconds=np.array(seconds),
    )


@dataclass(slots=True)
class _Counts:
    asked: int = 0
    challenges: int = 0
    justified: int = 0
    refused: int = 0
    learned: int = 0
    wrong: int = 0


def _converse(loop: InteractiveLoop, event: Event, who: Annotator, statistics: _Counts) -> None:
    """Hold the conversation about one event, until no question is left."""
    messages = loop.on_event(event, event.occurred_at)
    while messages:
        request: Request | None = None
        for message in messages:
            if isinstance(message, LabelledExample):
                statistics.learned += 1
                statistics.wrong += message.y != event.truth
            elif isinstance(message, Rejected):
                statistics.refused += 1
            elif isinstance(message, LabelRequest):
                statistics.asked += 1
                request = message
            elif isinstance(message, Challenge):
                statistics.challenges += 1
                statistics.justified += message.given != event.truth
                request = message
        if request is None:
            return
        answer = who.answer(request, event.truth, event.occurred_at)
        messages = loop.on_answer(answer, event.occurred_at)


def macro_f1(truths: Sequence[int], guesses: Sequence[int]) -> float:
    """Mean F1 over the classes that occur in `truths`; a class that is never predicted counts 0.

    Examples
    --------
    >>> macro_f1([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 4])
    0.777...

    """
    true, guessed = np.asarray(truths), np.asarray(guesses)
    n = int(max(true.max(), guessed.max())) + 1
    there = np.bincount(true, minlength=n)
    hits = np.bincount(true[true == guessed], minlength=n)
    total = there + np.bincount(guessed, minlength=n)
    return float(np.mean((2.0 * hits / np.maximum(total, 1))[there > 0]))
