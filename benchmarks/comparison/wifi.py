"""The run of `streamgp demo`, repeated: five learners, 2000 WiFi readings, a careless annotator.

Means over five seeds, which determine the annotator's errors and the learners' draws; the log and
its order stay the same. Accuracy is progressive: every reading is predicted before it is learned. A
question is a label request or a challenge. Not measured: other logs, and the effects of length
scale and warm-up (`benchmarks.scaling`).

"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import mean

from benchmarks._harness import (
    Acceptance,
    Options,
    Outcome,
    at_least,
    at_most,
    progress,
    run,
    standard_error,
    widened,
)
from benchmarks._harness import Row as Line
from streamgp.apps.replay.demo import LEARNERS, run_learners
from streamgp.query import SkepticalClassifier
from streamgp.report.tables import Row

SKEPTICAL = "skeptical GP"
NEVER = "GP, never challenging"
_SEEDS = 5
_QUICK_SEEDS = 4


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("wifi", measure, about=__doc__, argv=argv)


def measure(
    options: Options,
    *,
    learners: Mapping[str, Callable[[int], SkepticalClassifier]] = LEARNERS,
    n_seeds: int | None = None,
    n_events: int | None = None,
) -> Outcome:
    """Run the scenario once for every seed."""
    n_seeds = n_seeds or (_QUICK_SEEDS if options.quick else _SEEDS)
    runs: dict[str, list[Row]] = {name: [] for name in learners}
    for seed in range(options.seed, options.seed + n_seeds):
        progress(f"seed {seed}")
        for name, played in run_learners(seed, learners=learners, n_events=n_events).items():
            runs[name].append(played.row(name))
    rows = [_line(name, of_one) for name, of_one in runs.items()]
    note = f"Means over {n_seeds} seeds; se: standard error over the seeds."
    accepted = _accepted(runs[SKEPTICAL], runs[NEVER], slack=2.0 if options.quick else 0.0)
    return Outcome(rows=rows, acceptance=accepted, notes=[note])


def _line(name: str, runs: Sequence[Row]) -> Line:
    accuracy = [_known(run.accuracy) for run in runs]
    asked = [run.n_asked for run in runs]
    kept = [_known(run.wrong_kept) for run in runs]
    precision = [run.challenge_precision for run in runs if run.challenge_precision is not None]
    return {
        "learner": name,
        "accuracy": mean(accuracy),
        "accuracy_se": standard_error(accuracy),
        "macro_f1": mean(_known(run.macro_f1) for run in runs),
        "labels_asked": mean(asked),
        "labels_asked_se": standard_error(asked),
        "challenges": mean(run.n_challenges for run in runs),
        "challenge_precision": mean(precision) if precision else None,
        "wrong_labels_kept": mean(kept),
        "wrong_labels_kept_se": standard_error(kept),
        "us_per_event": mean(_known(run.microseconds) for run in runs),
    }


def _accepted(skeptical: Sequence[Row], never: Sequence[Row], slack: float) -> list[Acceptance]:
    """Compare with the limits, each widened by `slack` standard errors of the limited value."""
    accuracy = [_known(run.accuracy) for run in skeptical]
    asked = [run.n_asked for run in skeptical]
    # Seed by seed, as both have the same annotator.
    gain = [_known(a.accuracy) - _known(b.accuracy) for a, b in zip(skeptical, never, strict=True)]
    ratio = [_questions(a) / _questions(b) for a, b in zip(skeptical, never, strict=True)]
    kept = [_known(run.wrong_kept) for run in skeptical]
    limits: list[tuple[Callable[..., Acceptance], str, Sequence[float], float]] = [
        (at_least, "accuracy of the skeptical GP", accuracy, 0.93),
        (at_most, "labels it asks for", asked, 300.0),
        (at_least, "its accuracy above never challenging", gain, 0.02),
        (at_most, "its questions / those of never challenging", ratio, 1.3),
        (at_most, "share of wrong labels that it keeps", kept, 0.08),
    ]
    return [widened(*limit, slack) for limit in limits]


def _questions(run: Row) -> int:
    return run.n_asked + run.n_challenges


def _known(value: float | None) -> float:
    if value is None:
        raise ValueError("nothing was scored or learned; play more events")
    return value
