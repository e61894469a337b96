"""Whether prediction sets contain the label as often as they promise, and how large they are.

`PredictionSets` with `isgp()`, on logs as recorded, but wisdm and pendigits in random order, since
their rows do not follow each other in time; labels are right. Each event gets its set before it is
learned, and all sets count: `held` is the share that contained the label, `in_set` the mean number
of labels in a set, `empty` the share of empty sets.

Once with all labels, and once with only those that `isgp()` asks for, which are about doubtful
events: learner and sets then learn from these alone. Accuracy is progressive, and an event without
a prediction counts as wrong.

The limit is that of Gibbs and Candès: after T labels the share of sets that contained theirs is off
by `1 / (step T) + 1 / T` at most, whatever the log and the learner, except for labels that are new.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from benchmarks._harness import Acceptance, Options, Outcome, Row, at_most, progress, run
from benchmarks._logs import Log, read_all
from streamgp import isgp
from streamgp.metrics import PredictionSets

_AS_RECORDED = ("wifi_rooms", "places_1", "occupancy", "elec2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs."""

    logs: Sequence[str] = ("wifi_rooms", "wisdm", "pendigits", "places_1", "occupancy", "elec2")
    n_events: int = 2000
    n_seeds: int = 3
    alphas: Sequence[float] = (0.1, 0.2)


QUICK = Plan(n_events=400, n_seeds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Result of one run; that of the sets by their `alpha`."""

    accuracy: float
    n_labels: int
    held: dict[float, float]
    in_set: dict[float, float]
    empty: dict[float, float]


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("prediction_sets", measure, about=__doc__, argv=argv)


def measure(options: Options, *, plan: Plan | None = None) -> Outcome:
    """Run all logs."""
    plan = plan or (QUICK if options.quick else Plan())
    logs, missing = read_all(plan.logs, options.data, plan.n_events)
    seeds = range(options.seed, options.seed + plan.n_seeds)
    rows: list[Row] = []
    furthest = 0.0
    for labels in ("all", "asked"):
        for log in logs:
            progress(f"{log.name}, labels: {labels}")
            scores = [play(log, seed, plan.alphas, asked_only=labels == "asked") for seed in seeds]
            rows += [_row(log, labels, alpha, scores) for alpha in plan.alphas]
            if labels == "all":
                furthest = max([furthest, *(_off(score) for score in scores)])
    n = min(len(log.events) for log in logs)
    return Outcome(
        rows=rows,
        acceptance=[_accepted(furthest, n)],
        skipped=missing,
        notes=[f"{plan.n_seeds} seeds, {plan.n_events} events."],
    )


def play(log: Log, seed: int, alphas: Sequence[float], *, asked_only: bool) -> Score:
    """Run a log once, with all labels or only those that were asked for."""
    order = "recorded" if log.name in _AS_RECORDED else "random"
    model = isgp(seed=seed)
    sets = {alpha: PredictionSets(alpha) for alpha in alphas}
    found: dict[float, list[tuple[bool, int]]] = {alpha: [] for alpha in alphas}
    n_right = n_labels = 0
    for x, y in log.played(order, seed):
        model.observe_one(x)
        proba = model.predict_proba_one(x)
        n_right += bool(proba) and max(proba, key=proba.__getitem__) == y
        for alpha, of_alpha in sets.items():
            labels = of_alpha.predict_one(proba)
            found[alpha].append((y in labels, len(labels)))
        if asked_only and not model.query_one(x).ask:
            continue
        n_labels += 1
        for of_alpha in sets.values():
            of_alpha.update(y, proba)
        model.learn_one(x, y)
    return Score(
        accuracy=n_right / len(log.events),
        n_labels=n_labels,
        held={alpha: mean(held for held, _ in of) for alpha, of in found.items()},
        in_set={alpha: mean(size for _, size in of) for alpha, of in found.items()},
        empty={alpha: mean(size == 0 for _, size in of) for alpha, of in found.items()},
    )


def _row(log: Log, labels: str, alpha: float, scores: Sequence[Score]) -> Row:
    return {
        "log": log.name,
        "labelled": labels,
        "alpha": alpha,
        "accuracy": mean(score.accuracy for score in scores),
        "labels": mean(score.n_labels for score in scores),
        "held": mean(score.held[alpha] for score in scores),
        "in_set": mean(score.in_set[alpha] for score in scores),
        "empty": mean(score.empty[alpha] for score in scores),
    }


def _off(score: Score) -> float:
    """Return the largest distance of the share of sets that held the label from the promise."""
    return max(abs(held - (1.0 - alpha)) for alpha, held in score.held.items())


def _accepted(furthest: float, n: int) -> Acceptance:
    step = PredictionSets().step
    return at_most(
        f"share of sets that held the label, all labels known, off what was promised, {n} events",
        furthest,
        1.0 / (step * n) + 1.0 / n,
    )
