"""How close one step of the Gaussian process comes to the time of reading its factor once.

A step is `GPClassifier.predict_proba_one` and `learn_one` of the same new event: 20 features in a
dictionary, 10 classes, one BLAS thread. Four kinds of steps take turns, some of each at a time:
steps directly followed by one reading of the factor (`ddot` with itself), which is a lower bound on
the cost of a step; steps directly followed by one triangular solve (`dtpsv`) on a packed triangle
of the same size that lies elsewhere, so that both find as little of it in the caches; undisturbed
steps; and steps of the paper's explicit inverse, with the same input and output, which are compared
with the undisturbed ones.

Then, on arrays, further options of the same process. A factor in single precision: its step,
`predict` and `append`, either in a row with others or directly after a reading of the triangle of
doubles, compared with such a reading; and the number of events for which it predicts another class,
on River's ImageSegments and logs of a data folder. Batches of points, predicted at once or one by
one. A replay in which each event is predicted before it is learned, as one factorisation or one by
one.

Medians are shown, and their ratios within this run. Microseconds depend on the machine and its
load. The ratios, too, depend on the processor: on how fast one core reads its caches and its
memory, which is measured as well (GB/s, in the same readings), and on the kernels that OpenBLAS has
picked for it. The limits name the processors that they hold for. Not measured: scaling, rules and
the loop (`benchmarks.loop`), and the time of the first points.

"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks._array_streams import ArrayStream, recorded, stationary
from benchmarks._harness import Acceptance, Options, Outcome, Row, at_least, at_most, processor, run
from benchmarks._harness import kernels as _kernels
from benchmarks._harness import one_thread as _one_thread
from benchmarks._logs import skipping
from benchmarks.performance.gp_speed.arrays import NOISE_VARIANCE, replay_row, rows_at, same_classes
from benchmarks.performance.gp_speed.steps import LARGEST_INVERSE, step_row

_LOGS = ("pendigits", "letter")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured.

    Parameters
    ----------
    steps
        Number of points -> steps of the inverse in a row, repetitions. One and a half times as
        many are followed by either measurement, and twice as many by none; few at 50 points, to
        stay near 50.
    arrays
        Number of points -> steps and batches, and places in memory where the steps are repeated.
    n_replayed, n_replays
        Events of a replay, and number of measurements.
    n_events
        Events of a log that are predicted in both precisions.
    logs
        Logs of the data folder, besides ImageSegments.
    decisive
        Whether enough is measured to check limits that are nearly reached.

    """

    steps: dict[int, tuple[int, int]]
    arrays: dict[int, tuple[int, int]]
    n_replayed: int = 1000
    n_replays: int = 21
    n_events: int = 4000
    logs: tuple[str, ...] = _LOGS
    decisive: bool = True


_PLAN = Plan(
    steps={
        50: (4, 60),
        200: (20, 30),
        500: (12, 12),
        1000: (12, 16),
        3000: (10, 4),
        6000: (10, 2),
    },
    arrays={300: (200, 5), 1000: (100, 5), 3000: (60, 15), 6000: (20, 10)},
)
_QUICK = Plan(
    steps={50: (4, 20), 200: (20, 12), 500: (12, 4), 1000: (12, 2), 3000: (10, 1)},
    arrays={300: (40, 1), 1000: (20, 1), 3000: (10, 1)},
    n_events=1500,
    logs=(),
    decisive=False,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits that depend on the processor.

    Parameters
    ----------
    processors
        Description of the processors that they hold for.
    step_per_dtpsv
        Upper limit at 200 points.
    step_per_reading
        Number of points -> upper limit.
    inverse_per_step
        Lower limit.
    replay_ms
        Upper limit for 1000 events as one factorisation.

    """

    processors: str
    step_per_dtpsv: float
    step_per_reading: dict[int, float]
    inverse_per_step: float
    replay_ms: float


# At 1000 points a solve takes as long as a reading of the factor, 4 MB, with any kernels. The rest
# of a step is mostly Python and reads little: the faster a core reads, the more readings it equals.
_INTEL = Limits(
    processors="Intel with AVX-512",  # a Xeon that reads 31 GB/s at 1000 points
    step_per_dtpsv=5.0,
    step_per_reading={1000: 1.6, 3000: 1.4, 6000: 1.4},
    inverse_per_step=10.0,
    replay_ms=15.0,
)
_OTHERS = Limits(
    processors="not Intel with AVX-512",  # an AMD EPYC: 5.9; 1.8, 1.27 and 1.24; 7.8
    step_per_dtpsv=7.0,
    step_per_reading={1000: 2.0, 3000: 1.4, 6000: 1.4},
    inverse_per_step=7.0,
    replay_ms=30.0,
)
_WITH_AVX512 = frozenset({"SkylakeX", "Cooperlake", "SapphireRapids"})


def limits_for(name: str, kernels: str) -> Limits:
    """Return the limits for a processor of this name, and kernels of OpenBLAS."""
    has_avx512 = _WITH_AVX512.issuperset(kernels.split(", "))
    return _INTEL if "Intel" in name and has_avx512 else _OTHERS


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("gp_speed", measure, about=__doc__, argv=argv)


def measure(options: Options, plan: Plan | None = None) -> Outcome:
    """Measure at every size of the plan, the smallest first."""
    plan = plan or (_QUICK if options.quick else _PLAN)
    streams, skipped = _streams(options, plan)
    with _one_thread() as how:
        steps = [step_row(n, *counts, seed=options.seed) for n, counts in plan.steps.items()]
        for n, counts in plan.arrays.items():
            steps.extend(rows_at(n, *counts, options.seed))
        rows = [
            *steps,
            replay_row(plan.n_replayed, plan.n_replays, options.seed),
            *same_classes(streams),
        ]
    return Outcome(
        rows=rows,
        acceptance=_accepted(rows, plan, limits_for(processor(), _kernels())),
        skipped=skipped,
        notes=[f"One BLAS thread: {how}. Its kernels: {_kernels()}.", *_bandwidth(steps)],
    )


def _streams(options: Options, plan: Plan) -> tuple[list[ArrayStream], list[str]]:
    streams = [stationary("ImageSegments", plan.n_events, options.seed)]
    skipped: list[str] = []
    for name in plan.logs:
        with skipping(skipped):
            streams.append(recorded(name, options.data, plan.n_events))
    return streams, skipped


def _bandwidth(steps: list[Row]) -> list[str]:
    """Return a sentence on how fast the largest factor was read."""
    read = [row for row in steps if "reading_gb_per_s" in row]
    if not read:
        return []
    largest = max(read, key=lambda row: int(row["points"]))
    megabytes = 1e-3 * largest["reading_us"] * largest["reading_gb_per_s"]
    return [f"One core reads {megabytes:.0f} MB at {largest['reading_gb_per_s']:.1f} GB/s."]


def _accepted(rows: list[Row], plan: Plan, limits: Limits) -> list[Acceptance]:
    accepted = []
    for row in rows:
        if "step_per_reading" in row:
            accepted += _accepted_step(row, limits)
        elif "single_per_reading" in row and row["points"] >= 3000 and plan.decisive:
            name = f"step in single precision / one reading of doubles at {row['points']} points"
            accepted.append(at_most(name, row["single_per_reading"], 0.6))
        elif row.get("precision") == "double" and row["points"] == 3000:
            name = "one by one / 32 points at once at 3000 points"
            accepted.append(at_least(name, row["gain"], 2.5))
            name = "difference between the two"
            accepted.append(at_most(name, row["largest_difference"], 1e-9))
        elif "replayed_events" in row:
            name = f"replay of {row['replayed_events']} events as one factorisation, ms"
            name += f", {limits.processors}"
            accepted.append(at_most(name, row["one_factorisation_ms"], limits.replay_ms))
            name = "difference from one by one"
            accepted.append(at_most(name, row["largest_difference"], 1e-9))
        elif row.get("noise_variance") == NOISE_VARIANCE:
            name = f"events of {row['log']} of another class in single precision"
            accepted.append(at_most(name, row["of_another_class"], 0))
    return accepted


def _accepted_step(row: Row, limits: Limits) -> list[Acceptance]:
    accepted = []
    n, where = row["points"], limits.processors
    if n == 200:
        name = f"step / one dtpsv at 200 points, {where}"
        accepted.append(at_most(name, row["step_per_dtpsv"], limits.step_per_dtpsv))
    if n in limits.step_per_reading:
        name = f"step / one reading at {n} points, {where}"
        accepted.append(at_most(name, row["step_per_reading"], limits.step_per_reading[n]))
    if 500 <= n <= LARGEST_INVERSE:
        name = f"explicit inverse / step at {n} points, {where}"
        accepted.append(at_least(name, row["inverse_per_step"], limits.inverse_per_step))
    return accepted
