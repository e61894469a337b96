"""What learned hyper-parameters gain over those of `GPClassifier()`, and what a fit costs.

Eight logs as they were recorded, the first 3000 events of each, all labels given; each event is
predicted before it is learned. Features are standardised by the first 200 events. Shown is the
percentage of right predictions, also the first ones, of `GPClassifier()` and of
`GPClassifier(learn_hyperparameters=True)`, the difference in points, how often it was time for the
latter to fit, and the event that took it longest, to predict and to learn; the same of
`GPClassifier(learn_hyperparameters="leave_one_out")`. WiFi rooms has 2000 events, and they are
recorded class after class: nothing is fitted, nor on occupancy.

Nothing in the learner was chosen by these numbers.

"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks._array_streams import ArrayStream, played, recorded
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
from benchmarks._logs import MissingLogError
from streamgp import GPClassifier
from streamgp.base import Array
from streamgp.learners.gp_core import Learn
from streamgp.learners.gp_tuning import FIRST_FIT

_LOGS = ("pendigits", "letter", "usps", "dna", "wisdm", "wifi_rooms", "occupancy", "elec2")
# Of all logs: how many have to gain, and how many points may be lost on any.
_GAINING = 6
_MOST_LOST = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is played."""

    logs: Sequence[str] = _LOGS
    n_events: int = 3000


QUICK = Plan(logs=("pendigits", "wifi_rooms", "occupancy"), n_events=1200)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("hyperparameters", measure, about=__doc__, argv=argv)


def measure(options: Options, plan: Plan | None = None) -> Outcome:
    """Play every log with given and with learned hyper-parameters."""
    plan = plan or (QUICK if options.quick else Plan())
    rows: list[Row] = []
    skipped = []
    with one_thread() as how:
        for log in plan.logs:
            try:
                stream = recorded(log, options.data, plan.n_events)
            except MissingLogError as error:
                skipped.append(str(error))
            else:
                rows.append(compared(stream))
    return Outcome(
        rows=rows,
        acceptance=_accepted(rows),
        skipped=skipped,
        notes=[f"One BLAS thread: {how}."],
    )


def compared(stream: ArrayStream) -> Row:
    """Return what the classifiers make of a stream."""
    progress(f"{stream.name}: given")
    right, _ = played(stream, GPClassifier())
    before = _percent(right)
    row: Row = {"log": stream.name, "events": len(right), "given_%": before}
    aims: Sequence[tuple[str, Learn]] = (("", True), ("left_out_", "leave_one_out"))
    for prefix, aim in aims:
        progress(f"{stream.name}: learned, {aim}")
        model = GPClassifier(learn_hyperparameters=aim)
        right, seconds = played(stream, model)
        row |= {
            f"{prefix}learned_%": _percent(right),
            f"{prefix}gain_points": _percent(right) - before,
            f"{prefix}fits": n_fits(model),
            f"{prefix}longest_event_ms": 1e3 * float(seconds.max()),
            f"{prefix}learned_noise": _noise(model),
        }
    return row


def n_fits(model: GPClassifier) -> int:
    """Return how many fits of a classifier have ended, or waited for classes to alternate."""
    state = model.state()
    return 0 if state is None else round(math.log2(state["due"] / FIRST_FIT))


def _percent(right: Array) -> float:
    return 100.0 * float(right.mean())


def _noise(model: GPClassifier) -> float | None:
    these = model.hyperparameters
    return None if these is None else these.noise_variance


def _accepted(rows: Sequence[Row]) -> list[Acceptance]:
    """Judge what was played; how many have to gain, only if all were."""
    if not rows:
        return []
    gains = [row["gain_points"] for row in rows]
    worst = at_most("points lost, most on any log", max(0.0, -min(gains)), _MOST_LOST)
    if len(gains) < len(_LOGS):
        return [worst]
    return [at_least("logs that gain", sum(gain > 0.0 for gain in gains), _GAINING), worst]
