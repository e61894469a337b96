"""How to derive the learner's probability of a label, which is weighed against the annotator.

`P(wrong)` derives q, the learner's probability of the label, from a posterior: the share s of the
label among the positive means, the variance v in units of the prior's, and the number C of classes.
By default `q = (1 - v) s + v / C` for known classes, and a label never heard before is believed as
far as the means leave a share for it. Compared with this: `q = s`, and the default's formula for
all labels, including new ones. `gain` is the accuracy minus that of the default, with the same
annotators and draws; ± is the standard error over logs and seeds.

Three logs, 2000 events each: wifi_rooms and places_1 (an ExtraSensory user) as recorded, wisdm,
whose rows do not follow each other in time, in random order. Wrong answers are evenly distributed
over the other classes. Five seeds.

"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from benchmarks._harness import Options, Outcome, Row, progress, run, standard_error
from benchmarks._logs import Log, read_all
from benchmarks.comparison.review import Score, play
from streamgp import SkepticalClassifier
from streamgp.base import Label, Posterior

_DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs."""

    logs: Sequence[str] = ("wifi_rooms", "wisdm", "places_1")
    n_events: int = 2000
    n_seeds: int = 5
    error_rates: Sequence[float] = (0.0, 0.1, 0.2, 0.4)


QUICK = Plan(n_events=600, n_seeds=1, error_rates=(0.0, 0.2))


class ByShare(SkepticalClassifier):
    """A classifier whose probability of a label is its share of the positive means."""

    def _probability_wrong(self, belief: Any, y: Label, rate: float) -> float:
        return wrong_by_share(belief, y, rate, hedged=False)


class ByShareOrPrior(SkepticalClassifier):
    """A classifier that, where it knows nothing, also doubts labels never heard before."""

    def _probability_wrong(self, belief: Any, y: Label, rate: float) -> float:
        return wrong_by_share(belief, y, rate, hedged=True)


MODELS: dict[str, type[SkepticalClassifier]] = {
    _DEFAULT: SkepticalClassifier,
    "s": ByShare,
    "(1 - v) s + v / C for all": ByShareOrPrior,
}


def wrong_by_share(belief: Posterior, given: Label, error_rate: float, *, hedged: bool) -> float:
    """Probability that a label is wrong, as in `criteria.probability_wrong` except for q.

    Parameters
    ----------
    belief
        What the learner believes about the event.
    given
        The label.
    error_rate
        How often the annotator errs.
    hedged
        Whether q is `(1 - v) s + v / C`, instead of the share s.

    """
    n_classes = max(2, len(belief.mean) + (given not in belief.mean))
    positive = sum(m for m in belief.mean.values() if m > 0.0)
    q = max(belief.mean.get(given, 1.0 - positive), 0.0) / max(1.0, positive)
    if hedged:
        v = min(belief.variance / belief.prior_variance, 1.0)
        q = (1.0 - v) * q + v / n_classes
    right, wrong = q * (1.0 - error_rate), (1.0 - q) * error_rate / (n_classes - 1)
    return wrong / (right + wrong)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("beliefs", measure, about=__doc__, argv=argv)


def measure(options: Options, *, plan: Plan | None = None) -> Outcome:
    """Run all logs with each definition of q."""
    plan = plan or (QUICK if options.quick else Plan())
    logs, missing = read_all(plan.logs, options.data, plan.n_events)
    seeds = range(options.seed, options.seed + plan.n_seeds)
    rows = [row for rate in plan.error_rates for row in _compared(logs, seeds, rate)]
    notes = [f"{plan.n_seeds} seeds, {plan.n_events} events."]
    return Outcome(rows=rows, skipped=missing, notes=notes)


def _compared(logs: Sequence[Log], seeds: Sequence[int], error_rate: float) -> Iterator[Row]:
    """Yield the challenges with each definition of q."""
    default: list[Score] = []
    for name, model in MODELS.items():
        progress(f"{error_rate:.0%} wrong answers, q = {name}")
        scores = [
            play(log, seed, error_rate=error_rate, build=model) for log in logs for seed in seeds
        ]
        default = default or scores
        gains = [one.accuracy - other.accuracy for one, other in zip(scores, default, strict=True)]
        yield {
            "wrong_answers": error_rate,
            "q": name,
            "accuracy": mean(score.accuracy for score in scores),
            "gain": mean(gains),
            "gain_se": standard_error(gains),
            "labels": mean(score.n_asked for score in scores),
            "challenges": mean(score.n_challenges for score in scores),
            "of_right_labels": mean(score.n_unjustified for score in scores),
            "wrong_kept": mean(score.wrong_kept for score in scores),
        }
