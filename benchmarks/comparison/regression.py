"""Accuracy of `GPRegressor(max_points=200)`, and calibration of its intervals and the ensemble's.

The problems of `benchmarks.egp`, two of scikit-learn's, and inputs with heavy tails: 20 features of
Student's t distribution with two degrees of freedom, y = tanh(x'w), a random w of length 1, 2 or 4.
All targets are given, and features are standardised by the first ones. Shown are means of four
runs: the mean squared error on a test set as a share of its variance (NMSE), without fits and with
a noise of .5 and of .1, and by default, with fits; the same on the stream, from the 101st example
on, each forecast before it was learned; then, for the default, the share of targets of the test set
and of the stream within the central 95 % interval, and the negative log density on the test set, in
nats.

`SARCOS, in order` is the file as it is, one run. As a log it is judged by its stream: the test set,
its last thousand rows, is unlike the rows before it.

Finally, `EnsembleGPRegressor` with heavy tails, each run by itself: also the mean squared error
divided by the stated variance, the largest distance of a prediction from the range of the targets
seen, in units of that range, and the number of experts left.

"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from benchmarks._harness import (
    Acceptance,
    Options,
    Outcome,
    Row,
    at_least,
    at_most,
    one_thread,
    progress,
    run,
)
from benchmarks._logs import MissingLogError, skipping
from benchmarks.papers.egp.problems import FILES, REGRESSION, Draw, Problem, of_table, read
from streamgp import EnsembleGPRegressor, GPRegressor
from streamgp.base import Array

_N_POINTS = 200
_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "noise .5": {"noise_variance": 0.5, "learn_hyperparameters": False},
    "noise .1": {"noise_variance": 0.1, "learn_hyperparameters": False},
    "learned": {},
}
# Forecasts of the stream count from here on; before, hardly anything is known.
_FIRST_JUDGED = 100
_TAIL = 0.025

_MOST_LOST = 1.05
_LEAST_COVERED, _MOST_COVERED = 0.90, 0.98
_FURTHEST = 2.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs."""

    problems: Sequence[str] = (
        *REGRESSION,
        "SARCOS, in order",
        "diabetes",
        "Friedman 1",
        "heavy tails",
    )
    n_seeds: int = 4
    lengths: Sequence[float] = (1.0, 2.0, 4.0)


QUICK = Plan(problems=("Branin", "diabetes"), n_seeds=1, lengths=(1.0,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """Result of one run."""

    nmse: float
    nmse_in_stream: float
    covered: float
    covered_in_stream: float
    nlpd: float
    squared: float
    reach: float


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("regression", measure, about=__doc__, argv=argv)


def measure(options: Options, plan: Plan | None = None) -> Outcome:
    """Run every problem with and without fits, and the ensemble with heavy tails."""
    plan = plan or (QUICK if options.quick else Plan())
    problems, skipped = _problems(plan.problems, options.data)
    seeds = range(options.seed, options.seed + plan.n_seeds)
    with one_thread() as how:
        rows = [compared(problem, seeds) for problem in problems]
        tails = [ensemble(length, seed) for length in plan.lengths for seed in seeds]
    return Outcome(
        rows=[*rows, *tails],
        acceptance=_accepted(rows, tails),
        skipped=skipped,
        notes=[f"{plan.n_seeds} runs. One BLAS thread: {how}."],
    )


def compared(problem: Problem, seeds: Sequence[int]) -> Row:
    """Return the results of the regressor on a problem, with and without fits."""
    # A file in its own order has only one draw.
    is_log = "order" in problem.name
    draws = [problem.draw(seed) for seed in (seeds[:1] if is_log else seeds)]
    row: Row = {"problem": problem.name, "examples": problem.n_initial + problem.n_stream}
    runs: list[Play] = []
    for title, arguments in _SETTINGS.items():
        progress(f"{problem.name}: {title}")
        runs = [play(GPRegressor(max_points=_N_POINTS, **arguments), draw) for draw in draws]
        row[title] = mean(one.nmse for one in runs)
        row[f"{title}, stream"] = mean(one.nmse_in_stream for one in runs)
    where = ", stream" if is_log else ""
    learned, *given = (row[f"{title}{where}"] for title in ("learned", "noise .5", "noise .1"))
    return row | {
        "ratio": learned / min(given),
        "covered": mean(one.covered for one in runs),
        "covered, stream": mean(one.covered_in_stream for one in runs),
        "NLPD": mean(one.nlpd for one in runs),
    }


def ensemble(length: float, seed: int) -> Row:
    """Return the results of the ensemble in one run with heavy tails."""
    progress(f"heavy tails, w of length {length:g}: ensemble, seed {seed}")
    model = EnsembleGPRegressor(seed=seed)
    found = play(model, _heavy_tails(length).draw(seed))
    return {
        "w": length,
        "seed": seed,
        "NMSE": found.nmse,
        "covered": found.covered,
        "covered, stream": found.covered_in_stream,
        "squared": found.squared,
        "reach": found.reach,
        "experts": sum(weight > 0.0 for weight in model.weights),
    }


def play(model: GPRegressor | EnsembleGPRegressor, draw: Draw) -> Play:
    """Learn a stream, each target after it was forecast, and forecast the test set."""
    inside, off, reach = [], [], 0.0
    low, high = math.inf, -math.inf
    stream = [*draw.initial, *draw.stream]
    for i, (x, y) in enumerate(stream):
        if i >= _FIRST_JUDGED:
            forecast = model.predict_one(x, with_dist=True)
            inside.append(_is_inside(forecast, y))
            off.append((y - forecast.mu) ** 2)
            reach = max(reach, _beyond(forecast.mu, low, high))
        model.learn_one(x, y)
        low, high = min(low, y), max(high, y)
    forecasts = [model.predict_one(x, with_dist=True) for x, _ in draw.test]
    targets = [y for _, y in draw.test]
    errors = np.array(targets) - np.array([one.mu for one in forecasts])
    stated = np.array([one.sigma for one in forecasts])
    return Play(
        nmse=float(np.mean(errors**2) / np.var(targets)),
        nmse_in_stream=float(mean(off) / np.var([y for _, y in stream[_FIRST_JUDGED:]])),
        covered=mean(map(_is_inside, forecasts, targets)),
        covered_in_stream=mean(inside),
        nlpd=-mean(one.log_density(y) for one, y in zip(forecasts, targets, strict=True)),
        squared=float(np.mean((errors / stated) ** 2)),
        reach=max(reach, *(_beyond(one.mu, low, high) for one in forecasts)),
    )


def _is_inside(forecast: Any, y: float) -> bool:
    """Whether a target lies within the central interval."""
    return bool(_TAIL <= forecast.cdf(y) <= 1.0 - _TAIL)


def _beyond(mu: float, low: float, high: float) -> float:
    """Return how far a prediction is outside the range of targets seen, in units of that range."""
    return max(low - mu, mu - high, 0.0) / (high - low)


# --- problems


def _heavy_tails(length: float) -> Problem:
    def draws(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        X, w = rng.standard_t(2, size=(n, 20)), rng.normal(size=20)
        return X, np.tanh(X @ (w * length / np.linalg.norm(w)))

    # Unscaled: with heavy tails, a scaling by the first events would be arbitrary.
    return Problem(name="heavy tails", draws=draws, in_box=True, n_stream=1950, n_test=500)


def _sarcos_in_order(data: Path | None) -> Problem:
    path = None if data is None else data / FILES["SARCOS"]
    if path is None or not path.exists():
        raise MissingLogError("SARCOS, in order (needs --data)")
    with np.load(path) as table:
        X, y = table["X"].astype(float), table["y"][:, 0].astype(float)
    return Problem(
        name="SARCOS, in order",
        draws=lambda n, _: (X[:n], y[:n]),
        n_initial=200,
        n_stream=len(y) - 1200,
    )


def _diabetes() -> Problem:
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    return Problem(name="diabetes", draws=of_table(X, y), n_stream=292, n_test=100)


def _friedman() -> Problem:
    from sklearn.datasets import make_friedman1

    def draws(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        X, y = make_friedman1(n, noise=1.0, random_state=int(rng.integers(2**31)))
        return X, y

    return Problem(name="Friedman 1", draws=draws, n_stream=950)


def _problems(names: Sequence[str], data: Path | None) -> tuple[list[Problem], list[str]]:
    """Return problems, and what had to be left out."""
    problems, skipped = read([name for name in names if name in REGRESSION], data)
    others: Mapping[str, Callable[[], Problem]] = {
        "SARCOS, in order": partial(_sarcos_in_order, data),
        "diabetes": _diabetes,
        "Friedman 1": _friedman,
        "heavy tails": partial(_heavy_tails, 1.0),
    }
    for name, make in others.items():
        if name in names:
            with skipping(skipped):
                problems.append(make())
    return problems, skipped


def _accepted(rows: Sequence[Row], tails: Sequence[Row]) -> list[Acceptance]:
    covered = [row["covered"] for row in tails]
    return [
        *(
            at_most(f"{row['problem']}: NMSE, of that without fits", row["ratio"], _MOST_LOST)
            for row in rows
        ),
        *(
            at_least(
                f"{row['problem']}: targets of the stream in 95 % intervals",
                row["covered, stream"],
                _LEAST_COVERED,
            )
            for row in rows
        ),
        at_least(
            "ensemble, heavy tails: targets in 95 % intervals, least", min(covered), _LEAST_COVERED
        ),
        at_most(
            "ensemble, heavy tails: targets in 95 % intervals, most", max(covered), _MOST_COVERED
        ),
        at_most(
            "ensemble, heavy tails: ranges beyond the targets",
            max(row["reach"] for row in tails),
            _FURTHEST,
        ),
    ]
