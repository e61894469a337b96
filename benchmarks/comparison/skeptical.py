"""Skeptical Gaussian processes and skeptical boosted forests with 20 % wrong answers.

WiFi rooms as recorded, WISDM and Pendigits in random order, 2000 events each; progressive accuracy
and its cost. All learners have the same annotators, through `interactive_val_score`.

`isgp()`, here without filter and with the scaling of the first events, asks freely. Every other
learner has a budget for as many labels as it asked for on the same stream (`RateBudget`, which asks
where the two best classes are closest), except for the rows that say "as it comes". Challenges: *by
doubt*, as in `isgp()`, weigh the probability of the label against the annotator's record; *by
confidence*, if the prediction is another class and the confidence of boosting, one minus the second
largest probability divided by the largest, exceeds a threshold; *always*, whenever the prediction
is another class.

"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from river import metrics

from benchmarks._harness import Options, Outcome, Row, progress, run, standard_error
from benchmarks._logs import Log, read_all
from benchmarks.papers.isgp.three_stage import online_srf
from streamgp import (
    ConfidenceBoostingClassifier,
    OnlineForestClassifier,
    SimulatedAnnotator,
    SkepticalClassifier,
    interactive_val_score,
    isgp,
)
from streamgp.base import Belief, Decision, Label
from streamgp.evaluate import InteractiveResult
from streamgp.query import (
    AlwaysChallenge,
    BestVersusSecond,
    EqualErrorAsk,
    NeverChallenge,
    RateBudget,
    SkepticalChallenge,
    criteria,
)
from streamgp.query.strategies import AskRule, ChallengeRule

_ERROR_RATE = 0.2
_ISGP = "isgp(), no filter, scaled once"
# Logs, each with the order in which it is played.
_ORDERS = {"wifi_rooms": "recorded", "wisdm": "random", "pendigits": "random"}


@dataclass(frozen=True, slots=True)
class ConfidenceChallenge:
    """Challenge a label that differs from the prediction if the confidence exceeds a threshold."""

    threshold: float

    def decide(
        self,
        belief: Belief,
        given: Label,
        *,
        probability_wrong: float,  # noqa: ARG002 - nothing is known of the annotator
        draw: float,  # noqa: ARG002
    ) -> Decision:
        """Compare the confidence with the threshold."""
        p = criteria.probabilities(belief)
        differs = bool(p) and max(p, key=p.__getitem__) != given
        score = 1.0 - criteria.best_versus_second(p) if differs else 0.0
        return Decision.of(score, self.threshold, type(self).__name__)


def _boosted(
    seed: int,
    challenge: ChallengeRule,
    rate: float | None,
    query: AskRule | None = None,
) -> SkepticalClassifier:
    return SkepticalClassifier(
        ConfidenceBoostingClassifier(seed=seed),
        BestVersusSecond(threshold=0.0) if query is None else query,
        challenge,
        None if rate is None else RateBudget(rate, seed=seed),
        warm_up=0,
        seed=seed,
    )


def _forest(seed: int, rate: float) -> SkepticalClassifier:
    learner = OnlineForestClassifier(n_models=100, min_weight=10, seed=seed)
    query, budget = BestVersusSecond(threshold=0.0), RateBudget(rate, seed=seed)
    return SkepticalClassifier(learner, query, SkepticalChallenge(), budget, warm_up=0, seed=seed)


# Each is built from a seed and the share of the events that isgp() asks about.
LEARNERS: dict[str, Callable[[int, float], Any]] = {
    # Like all others here, it predicts each event by itself and scales by the first events.
    _ISGP: lambda seed, _: isgp(seed=seed).clone({"temporal": None, "rescale": False}),
    "boosted, by doubt": lambda seed, rate: _boosted(seed, SkepticalChallenge(), rate),
    "boosted, by confidence > .2": lambda seed, rate: _boosted(
        seed, ConfidenceChallenge(0.2), rate
    ),
    "boosted, by confidence > .4": lambda seed, rate: _boosted(
        seed, ConfidenceChallenge(0.4), rate
    ),
    "boosted, always": lambda seed, rate: _boosted(seed, AlwaysChallenge(), rate),
    "boosted, never": lambda seed, rate: _boosted(seed, NeverChallenge(), rate),
    "forest of 100, by doubt": _forest,
    "boosted, by doubt, EqualErrorAsk as it comes": lambda seed, _: _boosted(
        seed, SkepticalChallenge(), None, EqualErrorAsk()
    ),
    "SRF, online forest, as it comes": lambda seed, _: online_srf(seed=seed),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs."""

    logs: Sequence[str] = tuple(_ORDERS)
    n_events: int = 2000
    n_seeds: int = 3


QUICK = Plan(logs=("wifi_rooms",), n_events=600, n_seeds=1)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("skeptical", measure, about=__doc__, argv=argv)


def measure(options: Options, plan: Plan | None = None) -> Outcome:
    """Run every learner over every log."""
    plan = plan or (QUICK if options.quick else Plan())
    logs, skipped = read_all(plan.logs, options.data, plan.n_events)
    seeds = range(options.seed, options.seed + plan.n_seeds)
    rows = [row for log in logs for row in _rows(log, seeds)]
    notes = [f"Means of {plan.n_seeds} runs; se: standard error. precision: of challenges."]
    return Outcome(rows=rows, acceptance=[], skipped=skipped, notes=notes)


def _rows(log: Log, seeds: Sequence[int]) -> list[Row]:
    rates = [0.0] * len(seeds)
    rows = []
    for name, build in LEARNERS.items():
        progress(f"{log.name}: {name}")
        results = [
            _played(log, seed, build(seed, rate)) for seed, rate in zip(seeds, rates, strict=True)
        ]
        if name == _ISGP:
            rates = [r.n_asked / r.n_events for r in results]
        rows.append(_row(log, name, results))
    return rows


def _played(log: Log, seed: int, model: Any) -> InteractiveResult:
    annotator = SimulatedAnnotator(error_rate=_ERROR_RATE, classes=log.classes, seed=seed)
    stream = log.played(_ORDERS[log.name], seed)
    return interactive_val_score(stream, model, metrics.Accuracy(), annotator=annotator)


def _row(log: Log, name: str, results: Sequence[InteractiveResult]) -> Row:
    accuracies = [r.metric.get() for r in results]
    precisions = [r.challenge_precision for r in results if r.challenge_precision is not None]
    return {
        "log": f"{log.name}, {_ORDERS[log.name]}",
        "learner": name,
        "accuracy": mean(accuracies),
        "se": standard_error(accuracies) if len(accuracies) > 1 else None,
        "labels": mean(r.n_asked for r in results),
        "challenges": mean(r.n_challenges for r in results),
        "precision": mean(precisions) if precisions else None,
        "wrong_kept": mean(r.wrong_kept or 0.0 for r in results),
    }
