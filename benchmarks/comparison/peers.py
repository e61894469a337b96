"""The Gaussian process compared with other classifiers that learn one event at a time.

Each event is predicted, then learned with its true label; all classifiers get the same events in
the same order, the first 3000 of each log, with features standardised by the first 200. A log
recorded class after class (WiFi rooms) is shuffled, the others come as recorded. Accuracy counts
all predictions, including the first; times are those of this run on one core, the mean over all
events and the median over the last tenth.

Classifiers: `GPClassifier()`, the same with at most 200 points, and both with hyperparameters
fitted as they go; River's AMF, KNN, ARF, Hoeffding tree and Gaussian naive Bayes, with River's
default parameters; scikit-learn's Gaussian process with the same kernel, refitted whenever the
number of labels has doubled (needs scikit-learn); GPyTorch's, one for each class, refitted likewise
with ten steps of Adam (needs gpytorch, the extra `[gpytorch]`; takes minutes); no change, which
predicts the last label.

There are no questions and no wrong labels here; `benchmarks.wifi` and `benchmarks.strategies` are
about these.

"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median

from benchmarks._array_streams import ArrayStream, as_dictionaries, recorded, unshuffled
from benchmarks._harness import (
    Acceptance,
    Options,
    Outcome,
    Row,
    at_least,
    one_thread,
    progress,
    run,
)
from benchmarks._logs import skipping
from benchmarks.comparison import peer_learners as peers

_LOGS: Mapping[str, str] = {
    "ImageSegments": "river",
    "pendigits": "recorded",
    "wisdm": "recorded",
    "wifi_rooms": "random",
    "elec2": "recorded",
    "Phishing": "river",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs."""

    logs: Sequence[str] = tuple(_LOGS)
    learners: Sequence[str] = tuple(peers.BUILDERS)
    n_events: int = 3000


_SLOW = (peers.FITTED, peers.BOTH, peers.REFITTED, peers.GPYTORCH)
QUICK = Plan(
    learners=[name for name in peers.BUILDERS if name not in _SLOW],
    n_events=600,
)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("peers", measure, about=__doc__, argv=argv)


def measure(options: Options, *, plan: Plan | None = None) -> Outcome:
    """Run every classifier over every log."""
    plan = plan or (QUICK if options.quick else Plan())
    lacking = {name: peers.missing(name) for name in plan.learners}
    names = [name for name, module in lacking.items() if module is None]
    skipped = [f"{name} (needs {module})" for name, module in lacking.items() if module is not None]
    rows: list[Row] = []
    with one_thread() as how:
        for log in plan.logs:
            with skipping(skipped):
                stream = _stream(log, options, plan.n_events)
                rows += [play(name, stream, options.seed) for name in names]
    notes = [f"One BLAS thread: {how}."]
    return Outcome(
        rows=[*rows, *_means(rows, names)],
        acceptance=_accepted(rows),
        skipped=skipped,
        notes=notes,
    )


def _stream(log: str, options: Options, n: int) -> ArrayStream:
    order = _LOGS[log]
    if order == "river":
        return unshuffled(log, n)
    # Shuffle the whole log: its first events may be of one class.
    most = n if order == "recorded" else sys.maxsize
    return recorded(log, options.data, most, order=order, seed=options.seed).first(n)


def play(name: str, stream: ArrayStream, seed: int) -> Row:
    """Predict and learn every event of a stream; see `benchmarks.peers`."""
    progress(f"{stream.name}: {name}")
    model = peers.BUILDERS[name](seed)
    seconds = []
    n_right = 0
    clock = time.perf_counter
    for x, y in as_dictionaries(stream):
        started = clock()
        predicted = model.predict_one(x)
        model.learn_one(x, y)
        seconds.append(clock() - started)
        n_right += predicted == y
    return {
        "log": stream.name,
        "events": len(seconds),
        "classifier": name,
        "accuracy_%": 100.0 * n_right / len(seconds),
        "us_per_event": 1e6 * mean(seconds),
        "us_at_the_end": 1e6 * median(seconds[-len(seconds) // 10 :]),
    }


def _means(rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    """Return means over the available logs."""
    found = []
    for name in names:
        mine = [row for row in rows if row["classifier"] == name]
        if mine:
            found.append(
                {
                    "log": "mean",
                    "logs": len(mine),
                    "classifier": name,
                    "accuracy_%": mean(row["accuracy_%"] for row in mine),
                    "us_per_event": mean(row["us_per_event"] for row in mine),
                    "us_at_the_end": mean(row["us_at_the_end"] for row in mine),
                }
            )
    return found


def _accepted(rows: Sequence[Row]) -> list[Acceptance]:
    """Check orderings that hold on every machine."""

    def over_logs(name: str, what: str) -> float:
        return mean(row[what] for row in rows if row["classifier"] == name)

    if not {peers.BOUNDED, peers.AMF, peers.TREE, peers.BAYES} <= {r["classifier"] for r in rows}:
        return []
    of_bounded = over_logs(peers.BOUNDED, "accuracy_%")
    accepted = [
        at_least(f"accuracy of {peers.BOUNDED} above {name}, points", of_bounded - theirs, 0.0)
        for name in (peers.TREE, peers.BAYES)
        for theirs in [over_logs(name, "accuracy_%")]
    ]
    ratio = over_logs(peers.AMF, "us_at_the_end") / over_logs(peers.BOUNDED, "us_at_the_end")
    return [*accepted, at_least(f"time of {peers.AMF} / {peers.BOUNDED}", ratio, 5.0)]
