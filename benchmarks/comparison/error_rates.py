"""Estimates of annotators' error rates, and which one to use for challenges.

Four people answer for 1200 readings of the WiFi rooms, the rooms in turn, all of which are asked
about: one careful, one careless, one who declines every second question, one who is stubborn. Shown
for each: the share of first answers that were wrong, its running estimate, and its joint estimate
from all answers together.

`isgp()` challenges by the running estimate. It is compared with the same model that uses the joint
estimate, with the same annotators and draws: `gain` is the accuracy of the latter minus that of the
default, ± the standard error over the seeds. The first 2000 events of four logs, as recorded, but
wisdm in random order, since its rows do not follow each other in time; one annotator who errs in
10, 20 or 40 % of the answers, evenly distributed over the other classes; ten seeds.

"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from river import metrics

from benchmarks._harness import Options, Outcome, Row, progress, run, standard_error
from benchmarks._logs import Labelled, Log, read, read_all
from benchmarks.comparison.annotators import Witness
from benchmarks.comparison.conversation import Score, played
from streamgp import (
    AnnotatorPanel,
    DriftTest,
    GPClassifier,
    SimulatedAnnotator,
    SkepticalClassifier,
    TemporalFilter,
    interactive_val_score,
    isgp,
)
from streamgp.base import Decision, Features, Label
from streamgp.common.annotator_error import Reliability
from streamgp.presets import MAX_POINTS
from streamgp.query import AlwaysAsk, SkepticalAsk, SkepticalChallenge

PEOPLE: Mapping[str, Mapping[str, Any]] = {
    "careful": {"error_rate": 0.02},
    "careless": {"error_rate": 0.4},
    "declines every second question": {"error_rate": 0.2, "decline_rate": 0.5},
    "stubborn": {"error_rate": 0.2, "stubborn": True},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs."""

    n_readings: int = 1200
    n_seeds_of_people: int = 4
    logs: Sequence[str] = ("wifi_rooms", "places_1", "occupancy", "wisdm")
    n_events: int = 2000
    n_seeds: int = 10
    error_rates: Sequence[float] = (0.1, 0.2, 0.4)


QUICK = Plan(n_readings=200, n_seeds_of_people=2, n_events=500, n_seeds=2, error_rates=(0.2,))


class ByAllAnswers(SkepticalClassifier):
    """A classifier that challenges by the joint estimate, computed again for each answer."""

    _found: Mapping[str | None, Reliability] = {}

    def challenge_one(self, x: Features, y: Label, **options: Any) -> Decision:
        """Estimate all error rates, and decide whether to challenge a label."""
        self._found = self.estimate_annotators()
        return super().challenge_one(x, y, **options)

    def error_rate(self, annotator: str | None = None) -> float:
        """Return the latest estimate of how often an annotator's first answers are wrong."""
        found = self._found.get(annotator)
        return super().error_rate(annotator) if found is None else found.error_rate


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("error_rates", measure, about=__doc__, argv=argv)


def measure(options: Options, *, plan: Plan | None = None) -> Outcome:
    """Run the four people, and all logs with both estimates."""
    plan = plan or (QUICK if options.quick else Plan())
    rooms = in_turn(read("wifi_rooms", None, 2000).events)[: plan.n_readings]
    rows: list[Row] = []
    for seed in range(options.seed, options.seed + plan.n_seeds_of_people):
        progress(f"four people, seed {seed}")
        rows += _taken_for(rooms, seed)
    logs, missing = read_all(plan.logs, options.data, plan.n_events)
    seeds = range(options.seed, options.seed + plan.n_seeds)
    for log in logs:
        for error_rate in plan.error_rates:
            progress(f"{log.name}, {error_rate:.0%} wrong answers")
            rows.append(_compared(log, error_rate, seeds))
    notes = [f"{plan.n_seeds} seeds, {plan.n_events} events."]
    return Outcome(rows=rows, skipped=missing, notes=notes)


def in_turn(events: Sequence[Labelled]) -> list[Labelled]:
    """Return the first event of each class, the second of each, and so on."""
    of_class: dict[int | str, list[Labelled]] = {}
    for x, y in events:
        of_class.setdefault(y, []).append((x, y))
    return [event for events in zip(*of_class.values(), strict=False) for event in events]


def _taken_for(events: Sequence[Labelled], seed: int) -> Iterator[Row]:
    """Yield the estimated error rates of each of the four people."""
    classes = list(dict.fromkeys(y for _, y in events))
    panel = AnnotatorPanel(
        [
            SimulatedAnnotator(**person, classes=classes, seed=seed, name=name)
            for name, person in PEOPLE.items()
        ],
        seed=seed,
    )
    model = isgp(seed=seed).clone({"query": AlwaysAsk()})
    witness = Witness(panel, model)
    interactive_val_score(events, model, metrics.Accuracy(), annotator=witness)
    together = model.estimate_annotators()
    for name, person in PEOPLE.items():
        judged = witness.people[name]
        yield {
            "annotator": name,
            "told to err": person["error_rate"],
            "seed": seed,
            "answers": judged.n,
            "wrong": judged.n_wrong / judged.n,
            "running": model.error_rate(name),
            "together": together[name].error_rate,
        }


def _compared(log: Log, error_rate: float, seeds: Sequence[int]) -> Row:
    """Return the results of challenges by either estimate."""
    running = [play(isgp(seed=seed), log, error_rate, seed) for seed in seeds]
    together = [play(by_all_answers(seed), log, error_rate, seed) for seed in seeds]
    gains = [b.accuracy - a.accuracy for a, b in zip(running, together, strict=True)]
    row: Row = {"log": log.name, "wrong_answers": error_rate}
    for name, scores in (("running", running), ("together", together)):
        row[f"accuracy, {name}"] = mean(score.accuracy for score in scores)
        row[f"labels, {name}"] = mean(score.n_asked for score in scores)
        row[f"challenges, {name}"] = mean(score.n_challenges for score in scores)
        row[f"wrong_kept, {name}"] = mean(score.wrong_kept for score in scores)
    return {**row, "gain": mean(gains), "gain_se": standard_error(gains)}


def by_all_answers(seed: int) -> ByAllAnswers:
    """Return `isgp()` with challenges by the joint estimate."""
    return ByAllAnswers(
        GPClassifier(max_points=MAX_POINTS),
        SkepticalAsk(),
        SkepticalChallenge(),
        temporal=TemporalFilter(),
        drift_test=DriftTest(),
        rescale=True,
        seed=seed,
    )


def play(model: SkepticalClassifier, log: Log, error_rate: float, seed: int) -> Score:
    """Run a log once."""
    order = "recorded" if "recorded" in log.orders else "random"
    annotator = SimulatedAnnotator(error_rate=error_rate, classes=log.classes, seed=seed)
    return played(log.played(order, seed), model, annotator)
