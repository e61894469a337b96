"""Effect of each parameter of an online forest, on data without drift.

`OnlineForestClassifier` learns 60 % of a data set in one pass, in random order, and is tested on
the rest: the share of wrong predictions in %, the mean over six data sets of at most 5000 events
each, and three seeds, which determine order and trees. Features are standardised by the first 200
events.

First the parameters of growth, with 20 tests: the weight after which a leaf is split, and whether
children inherit the examples of a leaf or, as in the paper of Saffari and others, do not. Then one
parameter at a time is changed from its default, with true labels, and with one label in five
replaced by another class at random.

"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

import numpy as np

from benchmarks._array_streams import ArrayStream, as_dictionaries, recorded, stationary, unshuffled
from benchmarks._harness import Options, Outcome, Row, progress, run, standard_error
from benchmarks._logs import skipping
from streamgp import OnlineForestClassifier

_LEARNED = 0.6
_ERROR_RATE = 0.2
_N_DIGITS = 1797
_PARAMETERS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "n_models=30": {"n_models": 30},
    "n_tests=10": {"n_tests": 10},
    "min_weight=20": {"min_weight": 20},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs."""

    data: Sequence[str] = (
        "ImageSegments", "Phishing", "digits", "wifi_rooms", "wisdm", "elec2",
    )  # fmt: skip
    most: int = 5000
    n_seeds: int = 3
    weights: Sequence[int] = (100, 50, 25)


QUICK = Plan(data=("Phishing", "wifi_rooms"), most=500, n_seeds=1, weights=(100, 25))


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("forest", measure, about=__doc__, argv=argv)


def measure(options: Options, *, plan: Plan | None = None) -> Outcome:
    """Grow all forests on all data sets."""
    plan = plan or (QUICK if options.quick else Plan())
    seeds = range(options.seed, options.seed + plan.n_seeds)
    streams: list[ArrayStream] = []
    skipped: list[str] = []
    for name in plan.data:
        with skipping(skipped):
            streams.append(_stream(name, options, plan.most))
    rows: list[Row] = []
    for inherit in (False, True):
        for weight in plan.weights:
            progress(f"inherit={inherit}, min_weight={weight}")
            found = _wrong(
                streams, seeds, {"n_tests": 20, "inherit": inherit, "min_weight": weight}
            )
            rows.append({"inherit": str(inherit), "min_weight": weight, **found})
    for name, values in _PARAMETERS.items():
        for error_rate in (0.0, _ERROR_RATE):
            progress(f"{name}, {error_rate:.0%} wrong labels")
            found = _wrong(streams, seeds, values, error_rate)
            rows.append({"parameters": name, "wrong_labels": error_rate, **found})
    return Outcome(rows=rows, skipped=skipped)


def _stream(name: str, options: Options, most: int) -> ArrayStream:
    if name == "digits":
        return stationary(name, min(most, _N_DIGITS), options.seed)  # one pass of its three
    if name in ("ImageSegments", "Phishing"):
        return unshuffled(name, most)
    if name == "wifi_rooms":  # recorded class after class
        stream = recorded(name, None, sys.maxsize, order="random", seed=options.seed)
        return stream.first(most)
    return recorded(name, options.data, most)


def _wrong(
    streams: Sequence[ArrayStream],
    seeds: Sequence[int],
    values: Mapping[str, Any],
    error_rate: float = 0.0,
) -> Row:
    """Return the share of wrong predictions, in %, as a mean over equally weighted data sets."""
    by_seed = [
        [wrong_share(stream, seed, values, error_rate) for stream in streams] for seed in seeds
    ]
    means = [100.0 * mean(of_seed) for of_seed in by_seed]
    return {"wrong_%": mean(means), "se": standard_error(means)}


def wrong_share(
    stream: ArrayStream, seed: int, values: Mapping[str, Any], error_rate: float = 0.0
) -> float:
    """Learn part of a data set, in random order; return the share of errors on the rest."""
    rng = np.random.default_rng(seed)
    events = list(as_dictionaries(stream))
    events = [events[i] for i in rng.permutation(len(events)).tolist()]
    n_learned, n_classes = round(_LEARNED * len(events)), int(stream.y.max()) + 1
    model = OnlineForestClassifier(**values, seed=seed)
    for x, y in events[:n_learned]:
        is_wrong, other = rng.random() < error_rate, int(rng.integers(1, n_classes))
        model.learn_one(x, (y + other) % n_classes if is_wrong else y)
    return mean(model.predict_one(x) != y for x, y in events[n_learned:])
