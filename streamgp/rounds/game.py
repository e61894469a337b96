"""A model and a pool in play: who has a label, who is drawn and asked, and how it is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from streamgp.base import Features, Label
from streamgp.confidences import is_right
from streamgp.draws import uniform, uniforms
from streamgp.metrics import Overconfidence, RightWrongAUC, Underconfidence
from streamgp.query.criteria import probabilities
from streamgp.query.rules import AskRule
from streamgp.rounds.beliefs import Beliefs

Pair: TypeAlias = tuple[Features, Label]


class Learner(Protocol):
    """What is asked of a model: River's classifiers have it, and pipelines."""

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn an example."""

    def predict_proba_one(self, x: Any) -> Any:
        """Predict the probability of each known class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What came out of one round, judged on the test set after its labels were learned.

    Parameters
    ----------
    number
        0 for the initial set, whose labels are given.
    n_drawn
        Events drawn from the pool.
    labelled
        Events whose labels became known, by their numbers in the pool.
    n_labels
        Labels known by now, those of the initial set included.
    threshold
        What the rule compared with, if it has an attribute of that name.
    error
        Share of the test set that is predicted wrong.
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
        """Events that were asked about; the labels of the initial set are given."""
        return len(self.labelled) if self.number else 0


class Game:
    """A model, a pool, and which of its labels are known."""

    # _known      numbers of the events whose labels are known, in the order learned first
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
        """Return which of the events drawn are asked about; the rule hears of their labels."""
        beliefs = self._beliefs.of(drawn)
        asked: list[int] = []
        for i, belief in zip(drawn, beliefs, strict=True):
            if rule.decide(belief, draw=uniform(self._seed, f"{number}/{i}", "ask")).ask:
                asked.append(i)
                if hasattr(rule, "hear"):
                    rule.hear(belief, self._pool[i][1])
        if hasattr(rule, "next_round"):
            rule.next_round()
        return asked

    def learn(self, number: int, asked: list[int], *, replay: bool) -> None:
        """Teach labels that have become known, or all that are."""
        self._known += asked
        known = set(self._known)
        self._unlabelled = [i for i in self._unlabelled if i not in known]
        for i in self._shuffled(self._known, number, "replay") if replay else asked:
            self._model.learn_one(*self._pool[i])

    def judged(
        self, number: int, *, n_drawn: int, labelled: list[int], threshold: float | None
    ) -> Round:
        """Predict the test set."""
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
