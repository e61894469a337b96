"""What a bounded memory costs in accuracy, and that it takes the same time for ever.

*Accuracy.* Seven streams that do not change, and logs whose events come in their own order or class
after class, all labels given; each event is predicted before it is learned. Shown is by how many
points the accuracy of `SparseGP` with a number of points falls short of the exact process, which
keeps every example. Kernel and noise are those of `GPClassifier`; features are standardised by the
first 200 events. ImageSegments and digits come in three random orders one after the other, Shuttle
and Bananas as recorded. Limits are on the streams that do not change.

*Time.* A step is `predict` and `append` of the same new point: 20 features, 10 classes, one BLAS
thread. It is measured at the 1000th event or where the bound is passed, whichever comes later, and
after the last event; each step takes turns with the BLAS calls that its arithmetic consists of, on
arrays of the same sizes that lie elsewhere: covariances with the points (dgemv), what follows from
them (two dsymv), means (dgemv); then what is learned (dsymv, dsyr, dger), and two dsyr more if a
point took the place of another. Medians; what the microseconds are depends on the machine.

"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import mean
from typing import TypeAlias

from benchmarks._array_learners import (
    NOISE_VARIANCE,
    kernel_for,
    right_exactly,
    right_one_by_one,
)
from benchmarks._array_streams import STATIONARY, ArrayStream, recorded, stationary
from benchmarks._blas import one_thread
from benchmarks._bounded_times import timed
from benchmarks._harness import (
    Acceptance,
    Options,
    Outcome,
    Row,
    at_most,
    progress,
    run,
    standard_error,
)
from benchmarks._logs import MissingLogError
from streamgp.base import Array
from streamgp.gp.sparse import SparseGP

# Of a step over its BLAS calls.
_LIMITS = {100: 5.0, 200: 3.0, 500: 2.0}
# Of the gap, in points of accuracy, at so many points: on average, and on the worst stream.
_AT = 200
_MEAN_GAP = 0.3
_WORST_GAP = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured."""

    streams: Sequence[str] = STATIONARY
    logs: Sequence[tuple[str, str]] = (
        ("wifi_rooms", "recorded"),
        ("occupancy", "recorded"),
        ("elec2", "recorded"),
        ("places_1", "recorded"),
        ("places_24", "recorded"),
        ("pendigits", "sequential"),
        ("letter", "sequential"),
        ("wisdm", "sequential"),
        ("keystroke", "sequential"),
    )
    sizes: Sequence[int] = (100, 200, 500)
    n_events: int = 5400
    n_seeds: int = 3
    n_steps: int = 50_000
    n_timed: int = 1000


QUICK = Plan(
    logs=(("wifi_rooms", "recorded"), ("letter", "sequential")),
    n_events=1500,
    n_seeds=1,
    n_steps=20_000,
    n_timed=500,
)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("bounded", measure, about=__doc__, argv=argv)


def measure(options: Options, plan: Plan | None = None) -> Outcome:
    """Measure accuracies on all streams, then times."""
    plan = plan or (QUICK if options.quick else Plan())
    with one_thread() as how:
        times = [timed(m, plan.n_steps, plan.n_timed, options.seed) for m in plan.sizes]
        seeds = range(options.seed, options.seed + plan.n_seeds)
        gaps, skipped = _gaps(_stationary(plan), seeds, plan.sizes)
        others, missing = _gaps(_logs(plan, options.data), seeds, plan.sizes)
    rows = [*_gap_rows(gaps, plan.sizes), *_gap_rows(others, plan.sizes, "log"), *times]
    accepted = [*_accepted_gaps(gaps, quick=options.quick), *_accepted_times(times)]
    return Outcome(
        rows=rows,
        acceptance=accepted,
        skipped=[*skipped, *missing],
        notes=[f"One BLAS thread: {how}."],
    )


# --- accuracy


@dataclass(slots=True)
class _Gap:
    """Accuracies on one stream, in percent, one entry per seed."""

    exact: list[float] = field(default_factory=list)
    bounded: dict[int, list[float]] = field(default_factory=dict)

    def at(self, m: int) -> list[float]:
        """Points of accuracy that are lost with `m` points."""
        return [e - b for e, b in zip(self.exact, self.bounded[m], strict=True)]


_Make: TypeAlias = Callable[[int], ArrayStream]


def _stationary(plan: Plan) -> dict[str, _Make]:
    return {name: partial(stationary, name, plan.n_events) for name in plan.streams}


def _logs(plan: Plan, data: Path | None) -> dict[str, _Make]:
    return {
        f"{name}, {order}": lambda seed, name=name, order=order: recorded(
            name, data, plan.n_events, order=order, seed=seed
        )
        for name, order in plan.logs
    }


def _gaps(
    streams: Mapping[str, _Make], seeds: Iterable[int], sizes: Sequence[int]
) -> tuple[dict[str, _Gap], list[str]]:
    """Return what is lost on each stream that can be had, and which cannot."""
    gaps, skipped = {}, []
    for name, make in streams.items():
        gap = _Gap()
        try:
            # As recorded, it is the same whatever the seed.
            for seed in list(seeds)[: 1 if name.endswith("recorded") else None]:
                progress(f"{name}, seed {seed}")
                _add(gap, make(seed), sizes)
        except MissingLogError as error:
            skipped.append(str(error))
        else:
            gaps[name] = gap
    return gaps, skipped


def _add(gap: _Gap, stream: ArrayStream, sizes: Sequence[int]) -> None:
    gap.exact.append(_percent(right_exactly(stream)))
    for m in sizes:
        gp = SparseGP(kernel_for(stream), NOISE_VARIANCE, m)
        gap.bounded.setdefault(m, []).append(_percent(right_one_by_one(stream, gp)))


def _percent(right: Array) -> float:
    return 100.0 * float(right.mean())


def _gap_rows(gaps: dict[str, _Gap], sizes: Sequence[int], what: str = "stream") -> list[Row]:
    rows: list[Row] = [
        {
            what: name,
            "exact_%": mean(gap.exact),
            **{f"points_lost_m={m}": mean(gap.at(m)) for m in sizes},
        }
        for name, gap in gaps.items()
    ]
    if rows:
        names = list(rows[0])[1:]
        rows.append({what: "mean", **{n: mean(row[n] for row in rows) for n in names}})
    return rows


def _accepted_gaps(gaps: dict[str, _Gap], *, quick: bool) -> list[Acceptance]:
    at = {name: mean(gap.at(_AT)) for name, gap in gaps.items() if _AT in gap.bounded}
    if not at:
        return []
    lost = list(at.values())
    # Over the streams: what a shorter run, of one seed, is uncertain about.
    widened = 2.0 * standard_error(lost) if quick else 0.0
    told = f", {{}} widened by 2 standard errors of {len(lost)} streams" if quick else ""
    return [
        at_most(
            f"points lost with {_AT} points, mean{told.format(_MEAN_GAP)}",
            mean(lost),
            _MEAN_GAP + widened,
        ),
        at_most(
            f"points lost with {_AT} points, worst{told.format(_WORST_GAP)}",
            max(lost),
            _WORST_GAP + widened,
        ),
    ]


# --- time


def _accepted_times(times: list[Row]) -> list[Acceptance]:
    accepted = []
    for row in times:
        m = row["points"]
        if m in _LIMITS:
            name = f"step / its BLAS calls, {m} points"
            accepted.append(at_most(name, row["step_per_blas"], _LIMITS[m]))
        accepted.append(at_most(f"late / early step, {m} points", row["late_per_early"], 1.2))
    return accepted


if __name__ == "__main__":
    sys.exit(main())
