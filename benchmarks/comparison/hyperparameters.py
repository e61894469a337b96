"""What learned hyperparameters gain over those of `GPClassifier()`, and what a fit costs.

Eight logs as recorded, the first 3000 events of each, all labels given; each event is predicted
before it is learned. Features are standardised by the first 200 events. Shown are the percentage of
right predictions, including the first, of `GPClassifier()` and of
`GPClassifier(learn_hyperparameters=True)`, the difference in points, and how often a fit of the
latter was due. WiFi rooms has 2000 events, recorded class after class: nothing is fitted there, nor
on occupancy.

Then the time that an event waits for a fit: the largest additional CPU time in milliseconds, to
predict and learn an event, over the time without fits, by the number of examples at which the fit
begins. 1200 synthetic examples with 16 features; for each event the shortest time of three runs.

No part of the learner was chosen by these numbers.

"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks._array_streams import ArrayStream, percent, played, recorded
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
from benchmarks._logs import skipping
from streamgp import GPClassifier, GPRegressor
from streamgp.base import Array, Features
from streamgp.learners.gp_tuning import FIRST_FIT

_LOGS = ("pendigits", "letter", "usps", "dna", "wisdm", "wifi_rooms", "occupancy", "elec2")
# How many of all logs have to gain, and how many points may be lost on any.
_GAINING = 6
_MOST_LOST = 1.5
_LONGEST_MS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs."""

    logs: Sequence[str] = _LOGS
    n_events: int = 3000
    n_waiting: int = 1200
    n_runs: int = 3


QUICK = Plan(logs=("pendigits", "wifi_rooms", "occupancy"), n_events=1200, n_waiting=130, n_runs=1)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("hyperparameters", measure, about=__doc__, argv=argv)


def measure(options: Options, plan: Plan | None = None) -> Outcome:
    """Run every log with given and with learned hyperparameters."""
    plan = plan or (QUICK if options.quick else Plan())
    rows: list[Row] = []
    skipped: list[str] = []
    with one_thread() as how:
        for log in plan.logs:
            with skipping(skipped):
                rows.append(compared(recorded(log, options.data, plan.n_events)))
        waits = [waited(title, make, plan) for title, make in LEARNERS.items()]
    return Outcome(
        rows=[*rows, *waits],
        # A single run also measures the other load of the machine.
        acceptance=[*_accepted(rows), *(_accepted_waits(waits) if plan.n_runs > 1 else [])],
        skipped=skipped,
        notes=[f"One BLAS thread: {how}."],
    )


def compared(stream: ArrayStream) -> Row:
    """Return the results of the classifiers on a stream."""
    progress(f"{stream.name}: given")
    right, _ = played(stream, GPClassifier())
    before = percent(right)
    progress(f"{stream.name}: learned")
    model = GPClassifier(learn_hyperparameters=True)
    right, _ = played(stream, model)
    return {
        "log": stream.name,
        "events": len(right),
        "given_%": before,
        "learned_%": percent(right),
        "gain_points": percent(right) - before,
        "fits": n_fits(model),
        "learned_noise": _noise(model),
    }


def n_fits(model: GPClassifier) -> int:
    """Return how many fits of a classifier have ended or are waiting for classes to alternate."""
    state = model.state()
    return 0 if state is None else round(math.log2(state["due"] / FIRST_FIT))


LEARNERS: Mapping[str, tuple[type[GPClassifier | GPRegressor], Mapping[str, Any]]] = {
    f"{kind.__name__}({'' if most is None else f'max_points={most}'})": (kind, {"max_points": most})
    for kind in (GPRegressor, GPClassifier)
    for most in (None, 200, 500)
}
"""Learners that wait for fits: class and arguments, by title."""


def waited(
    title: str, how: tuple[type[GPClassifier | GPRegressor], Mapping[str, Any]], plan: Plan
) -> Row:
    """Return the largest delay of an event in ms, by the number of examples when the fit begins."""
    progress(f"{title}: events that wait for a fit")
    kind, arguments = how
    rng = np.random.default_rng(1)
    X = rng.normal(size=(plan.n_waiting, 16))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=plan.n_waiting)
    targets = y.tolist() if kind is GPRegressor else [str(round(v)) for v in np.clip(y, -2, 2)]
    events = list(zip([dict(enumerate(x)) for x in X.tolist()], targets, strict=True))
    without, with_fits = (
        np.min(
            [
                _seconds(kind(learn_hyperparameters=learns, **arguments), events)
                for _ in range(plan.n_runs)
            ],
            axis=0,
        )
        for learns in (False, True)
    )
    longer = 1e3 * (with_fits - without)
    row: Row = {"learner": title}
    start = FIRST_FIT
    while start <= len(longer):
        row[f"{start}_ms"] = float(longer[start - 1 : 2 * start - 1].max())
        start *= 2
    return row


def _seconds(model: Any, events: Sequence[tuple[Features, Any]]) -> Array:
    """Return the CPU seconds that a learner takes to predict and learn each event."""
    seconds, clock = np.zeros(len(events)), time.process_time
    for i, (x, y) in enumerate(events):
        started = clock()
        model.predict_one(x)
        model.learn_one(x, y)
        seconds[i] = clock() - started
    return seconds


def _noise(model: GPClassifier) -> float | None:
    these = model.hyperparameters
    return None if these is None else these.noise_variance


def _accepted_waits(waits: Sequence[Row]) -> list[Acceptance]:
    longest = max(ms for row in waits for ms in row.values() if isinstance(ms, float))
    return [at_most("ms that an event takes longer for a fit", longest, _LONGEST_MS)]


def _accepted(rows: Sequence[Row]) -> list[Acceptance]:
    """Check the results; the number of logs that have to gain, only if all logs were run."""
    if not rows:
        return []
    gains = [row["gain_points"] for row in rows]
    worst = at_most("points lost, most on any log", max(0.0, -min(gains)), _MOST_LOST)
    if len(gains) < len(_LOGS):
        return [worst]
    return [at_least("logs that gain", sum(gain > 0.0 for gain in gains), _GAINING), worst]
