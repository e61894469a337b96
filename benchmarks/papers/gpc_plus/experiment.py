"""Runs of the GPC+ experiment, and conversations in which answers are challenged.

In a conversation a `SkepticalClassifier` around GPC+ challenges answers as they come. An annotator
who is challenged looks again: nine second answers in ten are careful. The rules differ in what
makes an answer suspicious.

"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np

from benchmarks._harness import Row, standard_error
from benchmarks.papers.egp.problems import Point, as_points
from benchmarks.papers.gpc_plus.problems import Draw, decision
from streamgp import PrivilegedGPClassifier, SkepticalClassifier
from streamgp.base import Array, Features
from streamgp.query import AlwaysAsk, criteria

GPC, ORDINARY, PLUS, PAPER = "GPC", "GPC, x* as features", "GPC+", "GPC+, preset paper"
"""Without privileged features; with them as ordinary features, which are missing in predictions;
with them as privileged ones; the same with the hyperparameters of the paper."""

ADF, ADF_PLUS = "GPC, no replays", "GPC+, no replays"
BATCH, BATCH_PLUS = "GPC, all at once", "GPC+, all at once"
"""Without and with privileged features: online without replays, and by expectation propagation of
all labels together."""

LEAST, LATEST, RANDOM, EVERY = "those that tell most", "the latest", "at random", "all of them"
"""Which examples are retained."""

# --- runs: learners, and how well they learn

OFFLINE = (GPC, ORDINARY, PLUS, PAPER)
ONLINE = (ADF, GPC, BATCH, ORDINARY, ADF_PLUS, PLUS, BATCH_PLUS)
KEPT = (LEAST, LATEST, RANDOM, EVERY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Result of one run.

    Parameters
    ----------
    errors
        Share of wrong predictions in per cent, after each number of labels in `checks`.
    auc
        How well the noise variance tells careless labels from careful ones; None if it
        was not measured.

    """

    errors: tuple[float, ...]
    auc: float | None = None

    @property
    def error(self) -> float:
        """The last one."""
        return self.errors[-1]


Results = Mapping[tuple[str, str], Sequence[Result]]
"""Runs by problem and method."""


def fit(draw: Draw, method: str) -> Result:
    """Learn all examples at once, and predict."""
    model = PrivilegedGPClassifier(preset="paper" if method == PAPER else "default")
    model.learn_log(
        _features(draw, method),
        draw.y.tolist(),
        privileged=draw.privileged_points if method in (PLUS, PAPER) else None,
    )
    return Result(errors=(_error(model, draw),))


def stream(draw: Draw, method: str, checks: Sequence[int]) -> Result:
    """Learn one example after the other, and predict after each number of labels in `checks`."""
    plus = method in (PLUS, ADF_PLUS, BATCH_PLUS)
    xs, ys = _features(draw, method), draw.y.tolist()
    ps: list[Point | None] = [*draw.privileged_points] if plus else [None] * len(ys)
    errors, model = [], _online(method)
    if method in (BATCH, BATCH_PLUS):
        for n in checks:
            model = _online(method)
            model.learn_log(xs[:n], ys[:n], privileged=ps[:n])
            errors.append(_error(model, draw))
    else:
        for n, (x, y, p) in enumerate(zip(xs, ys, ps, strict=True), 1):
            model.learn_one(x, y, privileged=p)
            if n in checks:
                errors.append(_error(model, draw))
    if not plus:
        return Result(errors=tuple(errors))
    expected = np.array([model.noise_one(p) for p in ps])
    return Result(errors=tuple(errors), auc=auc(expected, draw.careless.astype(bool)))


def keep(draw: Draw, method: str, n_kept: int) -> Result:
    """Learn a long stream with GPC+, which retains few examples."""
    model = PrivilegedGPClassifier(max_points=n_kept if method == LEAST else None)
    rng, kept = np.random.default_rng(len(draw.y)), []
    for i, (x, y, p) in enumerate(
        zip(draw.points, draw.y.tolist(), draw.privileged_points, strict=True)
    ):
        if method in (LATEST, RANDOM) and len(kept) == n_kept:
            model.forget_one(kept.pop(0 if method == LATEST else int(rng.integers(n_kept))))
        model.learn_one(x, y, privileged=p, event_id=str(i))
        kept.append(str(i))
    return Result(errors=(_error(model, draw),))


def auc(scores: Array, positive: Array) -> float:
    """Probability that a positive has a higher score than a negative (Mann and Whitney).

    Examples
    --------
    >>> auc(np.array([1.0, 3.0, 2.0]), np.array([False, True, True]))
    1.0

    """
    higher = scores[positive][:, None] - scores[~positive][None]
    return float(((higher > 0.0) + 0.5 * (higher == 0.0)).mean())


def play(
    problems: Mapping[str, Callable[[np.random.Generator], Draw]],
    methods: Sequence[str],
    seeds: Sequence[int],
    run: Callable[[Draw, str], Result],
    progress: Callable[[str], None],
) -> dict[tuple[str, str], list[Result]]:
    """Run all methods on the same draws of all problems."""
    results: dict[tuple[str, str], list[Result]] = {}
    for problem, draws in problems.items():
        progress(problem)
        for seed in seeds:
            draw = draws(np.random.default_rng(seed))
            for method in methods:
                results.setdefault((problem, method), []).append(run(draw, method))
    return results


def _online(method: str) -> PrivilegedGPClassifier:
    return PrivilegedGPClassifier(n_replays=0 if method in (ADF, ADF_PLUS) else 3)


def _features(draw: Draw, method: str) -> list[Point]:
    if method != ORDINARY:
        return draw.points
    # Scaled, as the learner scales privileged features.
    mean, std = draw.privileged.mean(axis=0), draw.privileged.std(axis=0)
    scaled = as_points((draw.privileged - mean) / np.where(std > 0.0, std, 1.0), "p")
    return [{**x, **p} for x, p in zip(draw.points, scaled, strict=True)]


def _error(model: PrivilegedGPClassifier, draw: Draw) -> float:
    predicted = [model.predict_one(x) for x in as_points(draw.X_test, "x")]
    return 100.0 * float(np.mean(np.array(predicted) != draw.y_test))


# --- conversations: whom to challenge

_N_TEST = 2000
_SECOND_CARELESS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How the annotators of a conversation answer.

    Parameters
    ----------
    careless
        Share of careless answers, half of which are wrong.
    false
        Share of the careful answers of one of the two annotators that are wrong although their
        privileged features do not show it.
    telling
        Whether privileged features reveal careless answers.

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
    """Ignores the noise of an answer."""

    def _error_rate_of(self, annotator: str | None, privileged: Features | None) -> float:  # noqa: ARG002
        return self.error_rate(annotator)


class _ByNoise(SkepticalClassifier):
    """Ignores who gave an answer."""

    def _error_rate_of(self, annotator: str | None, privileged: Features | None) -> float:  # noqa: ARG002
        return criteria.flip_probability(self.learner.noise_one(privileged))


UNHEARD = "annotator, learner unaware"
RULES: dict[str, type[SkepticalClassifier]] = {
    "annotator": _ByAnnotator,
    "noise": _ByNoise,
    "both": SkepticalClassifier,
    UNHEARD: SkepticalClassifier,
}
"""What makes an answer suspicious, besides the learner's prediction; a learner that is unaware does
not get the privileged features of answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """Result of one conversation.

    Parameters
    ----------
    auc_wrong, auc_careless
        How well the probability that an answer is wrong tells wrong answers from right ones, and
        careless from careful ones, without the first fifth of the answers.
    challenges
        Number of answers that were challenged.
    precision, recall
        Share of wrong answers among those challenged, and of challenged ones among the wrong.
    error
        Share of wrong predictions at the end, in per cent.

    """

    auc_wrong: float
    auc_careless: float
    challenges: int
    precision: float
    recall: float
    error: float


def talk(setting: Setting, rule: str, seed: int, n: int) -> Talk:
    """Hold a conversation about `n` events; all rules get the same first answers."""
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
    """Return an answer and its privileged features, as in the online experiment."""
    y = float(rng.choice([-1.0, 1.0])) if careless else truth
    if not setting.telling:
        careless = bool(rng.random() < setting.careless)
    sure = rng.beta(2.5, 3.0) if careless else rng.beta(6.0, 2.0)
    time = rng.normal(0.3 if careless else 1.0, 0.5)
    return y, {"p0": math.log(sure / (1.0 - sure)), "p1": float(time)}
