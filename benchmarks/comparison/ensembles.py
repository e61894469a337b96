"""Ensembles of Gaussian processes: the likelihood for classes, and query rules for numbers.

Classes: five logs, all labels given, each event predicted before it is learned, features
standardised by the first 200; WiFi rooms are shuffled, the others come as they were recorded.
`EnsembleGPClassifier` with the likelihoods `regression` and `logistic`, the first also with four
times as many random features, compared with `GPClassifier(max_points=300)`. One seed. Times are
means for a prediction plus a label, with one BLAS thread.

Numbers: `SkepticalRegressor(EnsembleGPRegressor())` in conversation over two short data sets of
River, in their own order and in one random order, one event in ten asked about, by three rules; no
answer is wrong. Ensemble and budget have the seed of the run: mean and standard deviation of the
mean absolute error over ten seeds.

"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

import numpy as np
from river import base, datasets, metrics

from benchmarks._array_streams import ArrayStream, as_dictionaries, recorded
from benchmarks._harness import Options, Outcome, Row, one_thread, progress, run
from benchmarks._logs import skipping
from streamgp import (
    EnsembleGPClassifier,
    EnsembleGPRegressor,
    GPClassifier,
    SkepticalRegressor,
    interactive_val_score,
)
from streamgp.query import KL, AlwaysAsk, AskRule, RateBudget, Variance

_RATE = 0.1
LOGS: Mapping[str, int] = {
    "wifi_rooms": 2000, "pendigits": 1500, "dna": 1000, "occupancy": 2056, "letter": 1500,
}  # fmt: skip
LEARNERS: Mapping[str, Callable[[int], base.Classifier]] = {
    "regression": lambda seed: EnsembleGPClassifier(seed=seed),
    "logistic": lambda seed: EnsembleGPClassifier(likelihood="logistic", seed=seed),
    "regression, 200 features": lambda seed: EnsembleGPClassifier(n_features=200, seed=seed),
    "GPClassifier(max_points=300)": lambda _: GPClassifier(max_points=300),
}
RULES: Mapping[str, AskRule] = {
    "Variance()": Variance(),
    "KL(least_weight=0.01)": KL(least_weight=0.01),
    "at random": AlwaysAsk(),  # the budget chooses
}
_ORDERS = ("recorded", "random")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs."""

    logs: Sequence[str] = tuple(LOGS)
    learners: Sequence[str] = tuple(LEARNERS)
    n_events: int = sys.maxsize  # of each log at most
    numbers: Sequence[str] = ("TrumpApproval", "ChickWeights")
    n_numbers: int = sys.maxsize
    n_seeds: int = 10


QUICK = Plan(learners=("regression", *list(LEARNERS)[3:]), n_events=400, n_numbers=250, n_seeds=2)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("ensembles", measure, about=__doc__, argv=argv)


def measure(options: Options, *, plan: Plan | None = None) -> Outcome:
    """Run all logs, and hold all conversations."""
    plan = plan or (QUICK if options.quick else Plan())
    skipped: list[str] = []
    rows: list[Row] = []
    with one_thread() as how:
        for log in plan.logs:
            order = "random" if log == "wifi_rooms" else "recorded"
            most = sys.maxsize if order == "random" else LOGS[log]
            with skipping(skipped):
                stream = recorded(log, options.data, most, order=order, seed=options.seed)
                stream = stream.first(min(LOGS[log], plan.n_events))
                rows += [_classified(log, stream, name, options.seed) for name in plan.learners]
        seeds = range(options.seed, options.seed + plan.n_seeds)
        for name in plan.numbers:
            rows += _conversed(name, plan.n_numbers, seeds)
    return Outcome(rows=rows, skipped=skipped, notes=[f"One BLAS thread: {how}."])


def _classified(log: str, stream: ArrayStream, name: str, seed: int) -> Row:
    progress(f"{log}: {name}")
    model = LEARNERS[name](seed)
    n_right, started = 0, time.process_time()
    for x, y in as_dictionaries(stream):
        n_right += model.predict_one(x) == y
        model.learn_one(x, y)
    n = len(stream.y)
    return {
        "log": log,
        "events": n,
        "learner": name,
        "accuracy": n_right / n,
        "us": 1e6 * (time.process_time() - started) / n,
    }


def _conversed(name: str, most: int, seeds: Sequence[int]) -> Iterator[Row]:
    events: list[Any] = list(getattr(datasets, name)())[:most]
    shuffled = [events[i] for i in np.random.default_rng(0).permutation(len(events)).tolist()]
    for order, played in zip(_ORDERS, (events, shuffled), strict=True):
        progress(f"{name}, {order}")
        for rule in RULES:
            runs = [conversation(played, rule, seed) for seed in seeds]
            errors = [error for error, _ in runs]
            yield {
                "numbers": name,
                "order": order,
                "rule": rule,
                "asked": mean(n_asked for _, n_asked in runs),
                "MAE": mean(errors),
                "sd": stdev(errors) if len(errors) > 1 else 0.0,
            }


def conversation(events: Sequence[Any], rule: str, seed: int) -> tuple[float, int]:
    """Return the mean absolute error of one conversation, and how often it asked."""
    model = SkepticalRegressor(
        EnsembleGPRegressor(seed=seed),
        RULES[rule],
        budget=RateBudget(_RATE, seed=seed),
        seed=seed,
    )
    result = interactive_val_score(events, model, metrics.MAE())
    return result.metric.get(), result.n_asked
