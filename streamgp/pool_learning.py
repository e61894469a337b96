"""Pool-based active learning in rounds."""

from __future__ import annotations

import copy
import importlib.util
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from river import base

from streamgp.base import Belief, Features, Label, Preset, check_preset
from streamgp.common.calibration import is_right
from streamgp.common.counter_rng import check_seed, uniform, uniforms
from streamgp.common.feature_values import is_number
from streamgp.common.validation import check_flag, check_rate, check_whole
from streamgp.learners.river_adapters import EstimatorOptions
from streamgp.metrics import Overconfidence, RightWrongAUC, Underconfidence
from streamgp.query.criteria import probabilities
from streamgp.query.equal_error import EqualErrorRounds
from streamgp.query.strategies import AskRule, LearningAskRule, check_decides

# --- Optional methods of a rule that decides in rounds.


@runtime_checkable
class RoundRule(Protocol):
    """A rule that is notified at the end of each round."""

    def next_round(self) -> None:
        """Begin the next round."""


@runtime_checkable
class ThresholdRule(Protocol):
    """A rule with a threshold, which a round reports."""

    @property
    def threshold(self) -> float:
        """Threshold that a score has to exceed."""


# --- Settings of pool-based learning: first labels, draws per round, replay.


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Plan of an experiment on a pool.

    Parameters
    ----------
    initial
        Share of the pool whose labels are given.
    per_round
        Share of the pool that is drawn in each round; or the number of events for each round.
    replay
        Whether each round learns all known labels again, in random order, rather than the new ones
        only.

    """

    initial: float
    per_round: float | Sequence[int]
    replay: bool

    def __post_init__(self) -> None:
        check_rate("initial", self.initial)
        if isinstance(self.per_round, float | int):
            check_rate("per_round", self.per_round)
        else:
            for n in self.per_round:
                check_whole("each of per_round", n, 0)

    def n_drawn(self, number: int, n: int) -> int:
        """Return how many of a pool of `n` events are drawn in a round, the first being 1."""
        if isinstance(self.per_round, float | int):
            return round(self.per_round * n)
        return self.per_round[number - 1]


PLANS: Mapping[Preset, Plan] = {
    "default": Plan(initial=0.02, per_round=0.14, replay=True),
    "paper": Plan(initial=0.06, per_round=0.14, replay=False),
}
"""Plan of each preset; the paper gives no numbers, so these were chosen by measurement."""


# --- Beliefs of a classifier about known events, in batches where it can.


class Beliefs:
    """Events, and a classifier's beliefs about them while it learns.

    Posteriors are used where the classifier has them. Probabilities come in batches from a
    classifier with `predict_proba_many` if pandas is installed and all events have the same
    features, all of them numbers: others do not fit into a data frame as they are.

    Parameters
    ----------
    model
        A River classifier; it learns elsewhere.
    events
        Features of each event.

    Examples
    --------
    >>> from streamgp import GPClassifier
    >>> model = GPClassifier(noise_variance=0.1)
    >>> beliefs = Beliefs(model, [{"light": -1.0}, {"light": 1.0}])
    >>> model.learn_one({"light": 1.0}, "awake")
    >>> [round(belief.mean["awake"], 2) for belief in beliefs.of([0, 1])]
    [0.08, 0.91]

    """

    # _frame  the events as a data frame, None if they are predicted one by one
    def __init__(self, model: Any, events: Sequence[Features]) -> None:
        self._model = model
        self._events = events
        self._options = EstimatorOptions(model, "predict_proba_one").predicting
        batches = isinstance(model, base.MiniBatchClassifier) and not self._options
        self._frame = _frame(events) if batches else None

    def of(self, which: Iterable[int]) -> list[Belief]:
        """Return the current beliefs about some of the events, given by number."""
        if self._frame is None:
            one = self._model.predict_proba_one
            return [one(self._events[i], **self._options) for i in which]
        found = self._model.predict_proba_many(self._frame.iloc[list(which)])
        labels = found.columns.tolist()
        return [dict(zip(labels, row, strict=True)) for row in found.to_numpy().tolist()]


def _frame(events: Sequence[Features]) -> Any:
    if not events or importlib.util.find_spec("pandas") is None:
        return None
    names = events[0].keys()
    if not all(x.keys() == names and all(map(is_number, x.values())) for x in events):
        return None
    import pandas as pd

    return pd.DataFrame.from_records(events, columns=list(names))


# --- A model and a pool: which events have a label, which are drawn and asked about, and scoring.


Pair: TypeAlias = tuple[Features, Label]


class Learner(Protocol):
    """Protocol of a model, satisfied by River's classifiers and pipelines."""

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn an example."""

    def predict_proba_one(self, x: Any) -> Any:
        """Predict the probability of each known class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Result of one round, scored on the test set after its labels were learned.

    Parameters
    ----------
    number
        0 for the initial set, whose labels are given.
    n_drawn
        Number of events drawn from the pool.
    labelled
        Numbers, in the pool, of the events whose labels became known.
    n_labels
        Number of labels known by now, those of the initial set included.
    threshold
        The rule's threshold, if it has an attribute of that name.
    error
        Share of the test set that is predicted wrongly.
    overconfidence, underconfidence
        Mean confidence of the wrong predictions, mean uncertainty of the right ones.
    right_wrong_auc
        Probability that a right prediction is more confident than a wrong one.

    """

    number: int
    n_drawn: int
    labelled: tuple[int, ...]
    n_labels: int
    threshold: float | None
    error: float
    overconfidence: float
    underconfidence: float
    right_wrong_auc: float

    @property
    def n_asked(self) -> int:
        """Number of events asked about; the labels of the initial set are given."""
        return len(self.labelled) if self.number else 0


class PoolExperiment:
    """A model, a pool, and which of its labels are known."""

    # _known      numbers of the events whose labels are known, in the order first learned
    # _unlabelled the others, ascending
    def __init__(
        self,
        model: Learner,
        pool: Sequence[Pair],
        test: Sequence[Pair],
        uncertainty: str,
        seed: int,
    ) -> None:
        self._model = model
        self._pool = pool
        self._test = test
        self._uncertainty = uncertainty
        self._seed = seed
        self._beliefs = Beliefs(model, [x for x, _ in pool])
        self._tested = Beliefs(model, [x for x, _ in test])
        self._known: list[int] = []
        self._unlabelled = list(range(len(pool)))

    @property
    def is_used_up(self) -> bool:
        """Whether all labels are known."""
        return not self._unlabelled

    def drawn(self, number: int, n: int) -> list[int]:
        """Return `n` events without a label, or all that are left, in random order."""
        return self._shuffled(self._unlabelled, number, "draw")[:n]

    def asked(self, number: int, drawn: list[int], rule: AskRule) -> list[int]:
        """Return which of the events drawn are asked about; a learning rule gets their labels."""
        beliefs = self._beliefs.of(drawn)
        asked: list[int] = []
        for i, belief in zip(drawn, beliefs, strict=True):
            if rule.decide(belief, draw=uniform(self._seed, f"{number}/{i}", "ask")).ask:
                asked.append(i)
                if isinstance(rule, LearningAskRule):
                    rule.hear(belief, self._pool[i][1])
        if isinstance(rule, RoundRule):
            rule.next_round()
        return asked

    def learn(self, number: int, asked: list[int], *, replay: bool) -> None:
        """Learn the labels that have become known, or all that are known."""
        self._known += asked
        known = set(self._known)
        self._unlabelled = [i for i in self._unlabelled if i not in known]
        for i in self._shuffled(self._known, number, "replay") if replay else asked:
            self._model.learn_one(*self._pool[i])

    def score(
        self, number: int, *, n_drawn: int, labelled: list[int], threshold: float | None
    ) -> Round:
        """Predict the test set, and return the scores of the round."""
        over, under = Overconfidence(self._uncertainty), Underconfidence(self._uncertainty)
        area, n_wrong = RightWrongAUC(self._uncertainty), 0
        beliefs = self._tested.of(range(len(self._test)))
        for (_, y), belief in zip(self._test, beliefs, strict=True):
            p = probabilities(belief)
            n_wrong += not (p and is_right(p, y))
            for metric in (over, under, area):
                metric.update(y, p)
        return Round(
            number=number,
            n_drawn=n_drawn,
            labelled=tuple(labelled),
            n_labels=len(self._known),
            threshold=threshold,
            error=n_wrong / len(self._test),
            overconfidence=over.get(),
            underconfidence=under.get(),
            right_wrong_auc=area.get(),
        )

    def _shuffled(self, events: Sequence[int], number: int, purpose: str) -> list[int]:
        keys = uniforms(len(events), self._seed, f"round {number}", purpose)
        return [events[i] for i in np.argsort(keys, kind="stable").tolist()]


# The model predicts events in each, even if nothing is asked.
_MOST_ROUNDS = 10_000


def active_learning_rounds(
    model: Learner,
    pool: Iterable[Pair],
    test: Iterable[Pair],
    rule: AskRule | None = None,
    *,
    n_rounds: int = 10,
    preset: Preset = "default",
    initial: float | None = None,
    per_round: float | Sequence[int] | None = None,
    replay: bool | None = None,
    uncertainty: str = "bvsb",
    seed: int | None = None,
) -> list[Round]:
    """Run rounds of pool-based active learning.

    The model learns a random share of the pool. In each round, events without a label are drawn,
    the model predicts them, the rule decides which of them to ask about, and the model learns their
    labels. Events not asked about go back to the pool.

    Parameters
    ----------
    model
        A classifier, which learns in place.
    pool
        Events that may be asked about, with their labels.
    test
        Events that the model is scored on, with their labels.
    rule
        Decides what to ask about; a rule that learns serves as a template. None stands for
        `EqualErrorRounds`, which asks about all events drawn in the first round, and later about
        those below an adaptive threshold of confidence. For passive learning use `AlwaysAsk()`,
        with numbers for `per_round` to compare at equal numbers of labels.
    n_rounds
        Number of rounds after the initial set; fewer if the pool is used up.
    preset
        `default`: 2 % of the pool at first, 14 % drawn in each round, all labels replayed. `paper`:
        6 %, 14 %, every label learned once.
    initial, per_round, replay
        Values that replace those of the preset: see `Plan`.
    uncertainty
        Measure of over- and underconfidence: `bvsb` or `entropy`.
    seed
        Seed of all draws. None draws one.

    Returns
    -------
    The initial set as round 0, then the rounds.

    Raises
    ------
    TypeError
        If a share, or one of rounds or events, is not a number, or the seed not a whole one.
    ValueError
        If there is no such preset or uncertainty, a share is not between 0 and 1, the number of
        rounds or one of events is negative or not whole, `per_round` has fewer numbers than rounds,
        or pool or test set is empty.

    Examples
    --------
    >>> from river.naive_bayes import GaussianNB
    >>> from streamgp import active_learning_rounds
    >>> from streamgp.datasets import WiFiRooms
    >>> rooms = list(WiFiRooms())
    >>> rounds = active_learning_rounds(GaussianNB(), rooms[::4], rooms[1::4], n_rounds=3, seed=1)
    >>> [(r.n_asked, r.n_labels, round(r.error, 3)) for r in rounds]
    [(0, 10, 0.462), (70, 80, 0.02), (38, 118, 0.016), (30, 148, 0.016)]

    References
    ----------
    [^1]: Mund, D., Triebel, R. and Cremers, D., 2015. Active online confidence boosting for
        efficient object classification. ICRA, Sec. II-A.

    """
    check_seed(seed)
    n_rounds = check_whole("n_rounds", n_rounds, 0, _MOST_ROUNDS)
    check_decides("rule", rule, "draw")
    if isinstance(model, type) or not hasattr(model, "predict_proba_one"):
        raise TypeError(f"model must be a classifier of River, got {model!r}")
    if replay is not None:
        check_flag("replay", replay)
    check_preset(preset)
    own: dict[str, Any] = {"initial": initial, "per_round": per_round, "replay": replay}
    plan = replace(PLANS[preset], **{k: value for k, value in own.items() if value is not None})
    pool, test = list(pool), list(test)
    if not pool or not test:
        raise ValueError(f"pool and test must not be empty, got {len(pool)} and {len(test)} events")
    if isinstance(plan.per_round, Sequence) and len(plan.per_round) < n_rounds:
        raise ValueError(
            f"per_round must have a number for each of {n_rounds} rounds, got {plan.per_round!r}"
        )
    experiment = PoolExperiment(
        model, pool, test, uncertainty, secrets.randbits(32) if seed is None else seed
    )
    rule = EqualErrorRounds(uncertainty) if rule is None else copy.deepcopy(rule)
    given = experiment.drawn(0, round(plan.initial * len(pool)))
    experiment.learn(0, given, replay=False)
    rounds = [experiment.score(0, n_drawn=len(given), labelled=given, threshold=None)]
    for number in range(1, n_rounds + 1):
        if experiment.is_used_up:
            break
        drawn = experiment.drawn(number, plan.n_drawn(number, len(pool)))
        threshold = rule.threshold if isinstance(rule, ThresholdRule) else None
        asked = experiment.asked(number, drawn, rule)
        experiment.learn(number, asked, replay=plan.replay)
        rounds.append(
            experiment.score(number, n_drawn=len(drawn), labelled=asked, threshold=threshold)
        )
    return rounds
