"""Whom to challenge when answers come with privileged features: three rules in a conversation.

As in the online experiment, but a `SkepticalClassifier` around GPC+ challenges answers as they
come. Who is challenged looks once more: nine second answers in ten are careful.

"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np

from benchmarks._egp_problems import Point, as_points
from benchmarks._gpc_play import auc
from benchmarks._gpc_problems import decision
from benchmarks._harness import Row, standard_error
from streamgp import PrivilegedGPClassifier, SkepticalClassifier
from streamgp.base import Features
from streamgp.query import AlwaysAsk, criteria

_N_TEST = 2000
_SECOND_CARELESS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Who answers.

    Parameters
    ----------
    careless
        Share of careless answers, half of which are wrong.
    false
        Share of the other answers of one of two annotators that are wrong all the same, though
        nothing that came with them shows it.
    telling
        Whether privileged features tell careless answers.

    """

    careless: float = 0.4
    false: float = 0.0
    telling: bool = True


SETTINGS = {
    "40 % careless": Setting(),
    "10 % careless": Setting(careless=0.1),
    "20 % careless, one of two annotators unreliable": Setting(careless=0.2, false=0.4),
    "40 % careless, x* useless": Setting(telling=False),
}


class _ByAnnotator(SkepticalClassifier):
    """Takes no notice of the noise of an answer."""

    def _error_rate_of(self, annotator: str | None, privileged: Features | None) -> float:  # noqa: ARG002
        return self.error_rate(annotator)


class _ByNoise(SkepticalClassifier):
    """Takes no notice of who gave an answer."""

    def _error_rate_of(self, annotator: str | None, privileged: Features | None) -> float:  # noqa: ARG002
        return criteria.flip_probability(self.learner.noise_one(privileged))


UNHEARD = "annotator, learner unaware"
RULES: dict[str, type[SkepticalClassifier]] = {
    "annotator": _ByAnnotator,
    "noise": _ByNoise,
    "both": SkepticalClassifier,
    UNHEARD: SkepticalClassifier,
}
"""What an answer is doubted for, beside what the learner predicts; who is unaware is told nothing
that comes with answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """What came of one conversation.

    Parameters
    ----------
    auc_wrong, auc_careless
        How well the probability that an answer is wrong told wrong answers from right ones, and
        careless from careful ones, but for the first fifth of the answers.
    challenges
        How many answers were challenged.
    precision, recall
        Share of wrong answers among those challenged, and of challenged ones among the wrong.
    error
        Share of wrong predictions in the end, in per cent.

    """

    auc_wrong: float
    auc_careless: float
    challenges: int
    precision: float
    recall: float
    error: float


def talk(setting: Setting, rule: str, seed: int, n: int) -> Talk:
    """Hold a conversation about `n` events; all rules hear the same first answers."""
    rng = np.random.default_rng(seed)
    X, X_test = rng.uniform(-2.0, 2.0, (n, 2)), rng.uniform(-2.0, 2.0, (_N_TEST, 2))
    truths = np.sign(decision(X))
    model = RULES[rule](PrivilegedGPClassifier(), AlwaysAsk(), warm_up=0, seed=1)
    doubts, careless, wrong, challenged = np.zeros((4, n))
    for i, (x, truth) in enumerate(zip(as_points(X, "x"), truths.tolist(), strict=True)):
        annotator = str(rng.choice(["ann", "bob"]))
        careless[i] = rng.random() < setting.careless
        came: Point | None
        second: tuple[float, Point | None]
        given, came = _answer(rng, setting, truth, careless=bool(careless[i]))
        if rng.random() < setting.false and annotator == "bob" and not careless[i]:
            given = -truth
        second = _answer(rng, setting, truth, careless=rng.random() < _SECOND_CARELESS)
        wrong[i] = given != truth
        if rule == UNHEARD:
            came, second = None, (second[0], None)
        doubts[i] = model.probability_wrong_one(x, given, annotator=annotator, privileged=came)
        ask = model.challenge_one(x, given, annotator=annotator, privileged=came).ask
        challenged[i] = ask
        final, known = second if ask else (given, came)
        model.settle_one(
            x, final, given=given, challenged=ask, annotator=annotator, privileged=known
        )
    predicted = [model.learner.predict_one(x) for x in as_points(X_test, "x")]
    settled = slice(n // 5, None)
    both = (challenged * wrong).sum()
    return Talk(
        auc_wrong=auc(doubts[settled], wrong[settled] > 0.0),
        auc_careless=auc(doubts[settled], careless[settled] > 0.0),
        challenges=int(challenged.sum()),
        precision=float(both / max(challenged.sum(), 1.0)),
        recall=float(both / max(wrong.sum(), 1.0)),
        error=100.0 * float(np.mean(np.array(predicted) != np.sign(decision(X_test)))),
    )


def talks(seeds: Sequence[int], n: int, progress: Callable[[str], None]) -> list[Row]:
    """Hold all conversations; one row for each setting and rule, with standard errors."""
    rows: list[Row] = []
    for name, setting in SETTINGS.items() if seeds else ():
        progress(name)
        found = {rule: [talk(setting, rule, seed, n) for seed in seeds] for rule in RULES}
        for rule, runs in found.items():
            before = found["annotator"]
            row: Row = {"conversation": name, "doubted for": rule}
            for field in Talk.__slots__:
                values = [float(getattr(one, field)) for one in runs]
                against = [float(getattr(one, field)) for one in before]
                row[field] = mean(values)
                row[f"se of {field}"] = standard_error(
                    [a - b for a, b in zip(values, against, strict=True)]
                )
            rows.append(row)
    return rows


def _answer(
    rng: np.random.Generator, setting: Setting, truth: float, *, careless: bool
) -> tuple[float, Point]:
    """Return an answer, and what comes with it, as in the online experiment."""
    y = float(rng.choice([-1.0, 1.0])) if careless else truth
    if not setting.telling:
        careless = bool(rng.random() < setting.careless)
    sure = rng.beta(2.5, 3.0) if careless else rng.beta(6.0, 2.0)
    time = rng.normal(0.3 if careless else 1.0, 0.5)
    return y, {"p0": math.log(sure / (1.0 - sure)), "p1": float(time)}
