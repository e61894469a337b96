"""Runs of the reproduction of the paper on privileged noise: who learns what, and how well."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks._egp_problems import Point, as_points
from benchmarks._gpc_problems import Draw
from streamgp import PrivilegedGPClassifier
from streamgp.base import Array

GPC, ORDINARY, PLUS, PAPER = "GPC", "GPC, x* as features", "GPC+", "GPC+, preset paper"
"""Without privileged features; with them as features, which are missing in predictions; with them
as privileged ones, and so with the hyper-parameters of the paper."""

ADF, ADF_PLUS = "GPC, no replays", "GPC+, no replays"
BATCH, BATCH_PLUS = "GPC, all at once", "GPC+, all at once"
"""The same online, and by expectation propagation of all labels together."""

LEAST, LATEST, RANDOM, EVERY = "those that tell most", "the latest", "at random", "all of them"
"""Which examples are retained."""

OFFLINE = (GPC, ORDINARY, PLUS, PAPER)
ONLINE = (ADF, GPC, BATCH, ORDINARY, ADF_PLUS, PLUS, BATCH_PLUS)
KEPT = (LEAST, LATEST, RANDOM, EVERY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of one run.

    Parameters
    ----------
    errors
        Share of wrong predictions in per cent, after each number of labels that was asked for.
    auc
        How well the expected noise variance tells careless labels from careful ones, None if it
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
    """Learn one example after the other, and predict after each number of labels."""
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
    """Learn a long stream with GPC+, of which few examples are retained."""
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
    # Scaled, as those of the learner are.
    mean, std = draw.privileged.mean(axis=0), draw.privileged.std(axis=0)
    scaled = as_points((draw.privileged - mean) / np.where(std > 0.0, std, 1.0), "p")
    return [{**x, **p} for x, p in zip(draw.points, scaled, strict=True)]


def _error(model: PrivilegedGPClassifier, draw: Draw) -> float:
    predicted = [model.predict_one(x) for x in as_points(draw.X_test, "x")]
    return 100.0 * float(np.mean(np.array(predicted) != draw.y_test))
