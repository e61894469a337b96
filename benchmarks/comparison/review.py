"""Whether old labels are worth a second question, and how often right labels are challenged.

A review (`LeaveOneOutReview`) challenges labels that were learned before. It is compared with no
review at the same number of questions, label requests and challenges together: its advantage is its
accuracy minus that of the same classifier without it and with as many questions, interpolated on a
curve over the parameter `c` of `SkepticalAsk`; ± is the standard error over the seeds. Once
together with challenges of fresh labels, as in `isgp()`, and once with fresh labels believed
(`NeverChallenge`).

The second table is about the learner of `isgp()` without a review: challenges, and how many of them
were about right labels, for annotators with several error rates.

Three logs, 2000 events each: wifi_rooms and places_1 (an ExtraSensory user) as recorded, wisdm,
whose rows do not follow each other in time, in random order. Wrong answers, 20 % in the first
table, are evenly distributed over the other classes. Ten seeds, which determine the errors, the
draws of the learner, and the order of wisdm.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np
from river import metrics

from benchmarks._harness import (
    Acceptance,
    Options,
    Outcome,
    Row,
    at_least,
    progress,
    run,
    standard_error,
)
from benchmarks._logs import Log, read_all
from benchmarks.comparison.conversation import of_all_events
from streamgp import GPClassifier, SimulatedAnnotator, SkepticalClassifier, interactive_val_score
from streamgp.base import Label
from streamgp.interactive import Answer, Challenge, Request
from streamgp.query import ChallengeRule, LeaveOneOutReview, NeverChallenge, SkepticalAsk

_REVIEW = LeaveOneOutReview.__name__
_ERROR_RATE = 0.2
_FRESH: dict[str, ChallengeRule | None] = {"challenged": None, "believed": NeverChallenge()}
_FEWEST_LOGS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs."""

    logs: Sequence[str] = ("wifi_rooms", "wisdm", "places_1")
    n_events: int = 2000
    n_seeds: int = 10
    knobs: Sequence[float] = (0.8, 1.0, 1.25)  # all other runs use the second one
    error_rates: Sequence[float] = (0.0, 0.1, 0.2, 0.4)


QUICK = Plan(n_events=800, n_seeds=3, error_rates=(0.0, 0.2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Result of one run."""

    accuracy: float
    n_asked: int
    n_challenges: int
    n_reviews: int
    n_unjustified: int  # challenges of right labels, including those of a review
    n_justified_reviews: int
    wrong_kept: float

    @property
    def n_questions(self) -> int:
        """Label requests and challenges, including those of a review."""
        return self.n_asked + self.n_challenges + self.n_reviews


class _Counting(SimulatedAnnotator):
    """An annotator who counts challenges of right and of wrong labels."""

    n_reviews = 0
    n_unjustified = 0
    n_justified_reviews = 0

    def answer(self, request: Request, truth: Label | None, now: float) -> Answer:
        if isinstance(request, Challenge):
            is_review, is_wrong = request.reason == _REVIEW, request.given != truth
            self.n_reviews += is_review
            self.n_unjustified += not is_wrong
            self.n_justified_reviews += is_review and is_wrong
        return super().answer(request, truth, now)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("review", measure, about=__doc__, argv=argv)


def measure(options: Options, *, plan: Plan | None = None) -> Outcome:
    """Run all logs."""
    plan = plan or (QUICK if options.quick else Plan())
    logs, missing = read_all(plan.logs, options.data, plan.n_events)
    seeds = range(options.seed, options.seed + plan.n_seeds)
    rows: list[Row] = []
    advantages: dict[str, list[list[float]]] = {fresh: [] for fresh in _FRESH}
    for fresh, challenge in _FRESH.items():
        for log in logs:
            progress(f"{log.name}, fresh labels {fresh}")
            curve = [
                [play(log, seed, c=c, challenge=challenge) for seed in seeds] for c in plan.knobs
            ]
            review = LeaveOneOutReview()
            with_review = [play(log, seed, challenge=challenge, review=review) for seed in seeds]
            gains = advantage(with_review, curve)
            advantages[fresh].append(gains)
            rows.append(_row(log, fresh, "none", curve[1], [0.0]))
            rows.append(_row(log, fresh, "leave one out", with_review, gains))
    for rate in plan.error_rates:
        progress(f"{rate:.0%} wrong answers")
        rows.append(_about_right_labels(logs, seeds, rate))
    notes = [
        f"{plan.n_seeds} seeds. challenges: of fresh labels; reviews: of old ones.",
        *(_mean_advantage(fresh, gains) for fresh, gains in advantages.items() if gains),
    ]
    slack = 2.0 if options.quick else 0.0
    accepted = _accepted(advantages, slack) if len(logs) >= _FEWEST_LOGS else []
    return Outcome(rows=rows, acceptance=accepted, skipped=missing, notes=notes)


def play(
    log: Log,
    seed: int,
    *,
    c: float = 1.0,
    challenge: ChallengeRule | None = None,
    review: LeaveOneOutReview | None = None,
    error_rate: float = _ERROR_RATE,
    build: type[SkepticalClassifier] = SkepticalClassifier,
) -> Score:
    """Run a log once."""
    order = "recorded" if log.name != "wisdm" else "random"
    annotator = _Counting(error_rate=error_rate, classes=log.classes, seed=seed)
    model = build(GPClassifier(), SkepticalAsk(c), challenge, review=review, seed=seed)
    result = interactive_val_score(
        log.played(order, seed), model, metrics.Accuracy(), annotator=annotator
    )
    return Score(
        accuracy=of_all_events(result.metric.get(), result),
        n_asked=result.n_asked,
        n_challenges=result.n_challenges - annotator.n_reviews,
        n_reviews=annotator.n_reviews,
        n_unjustified=annotator.n_unjustified,
        n_justified_reviews=annotator.n_justified_reviews,
        wrong_kept=result.wrong_kept or 0.0,
    )


def advantage(scores: Sequence[Score], curve: Sequence[Sequence[Score]]) -> list[float]:
    """Return, seed by seed, the accuracy above that of the curve at as many questions.

    Parameters
    ----------
    scores
        One for each seed.
    curve
        Scores without a review, for rising values of the knob. The second value is that of
        `scores`: seed by seed it had the same annotator, so the mean curve has to correct only for
        the difference in the number of questions.

    """
    questions = [mean(s.n_questions for s in at_knob) for at_knob in curve]
    accuracies = [mean(s.accuracy for s in at_knob) for at_knob in curve]
    more = mean(s.n_questions for s in scores) - questions[1]
    bought = float(np.interp(questions[1] + more, questions, accuracies)) - accuracies[1]
    return [
        score.accuracy - base.accuracy - bought
        for score, base in zip(scores, curve[1], strict=True)
    ]


def _row(log: Log, fresh: str, review: str, scores: Sequence[Score], gains: Sequence[float]) -> Row:
    accuracies = [score.accuracy for score in scores]
    return {
        "log": log.name,
        "fresh_labels": fresh,
        "review": review,
        "accuracy": mean(accuracies),
        "accuracy_se": standard_error(accuracies),
        "questions": mean(score.n_questions for score in scores),
        "labels": mean(score.n_asked for score in scores),
        "challenges": mean(score.n_challenges for score in scores),
        "reviews": mean(score.n_reviews for score in scores),
        "reviews_justified": mean(score.n_justified_reviews for score in scores),
        "wrong_kept": mean(score.wrong_kept for score in scores),
        "advantage": mean(gains),
        "advantage_se": standard_error(gains),
    }


def _about_right_labels(logs: Sequence[Log], seeds: Sequence[int], error_rate: float) -> Row:
    scores = [play(log, seed, error_rate=error_rate) for log in logs for seed in seeds]
    return {
        "wrong_answers": error_rate,
        "accuracy": mean(score.accuracy for score in scores),
        "labels": mean(score.n_asked for score in scores),
        "challenges": mean(score.n_challenges for score in scores),
        "of_right_labels": mean(score.n_unjustified for score in scores),
        "wrong_kept": mean(score.wrong_kept for score in scores),
    }


def _mean_advantage(fresh: str, gains: Sequence[Sequence[float]]) -> str:
    per_log = [mean(of_log) for of_log in gains]
    return (
        f"Fresh labels {fresh}: advantage of a review {mean(per_log):+.4f} ± "
        f"{_error_of_mean(gains):.4f}, mean over {len(per_log)} logs."
    )


def _error_of_mean(gains: Sequence[Sequence[float]]) -> float:
    """Standard error, over the seeds, of the mean over logs."""
    return standard_error([mean(of_seed) for of_seed in zip(*gains, strict=True)])


def _accepted(advantages: dict[str, list[list[float]]], slack: float) -> list[Acceptance]:
    # Off by default: it must do no harm with challenges, and be useful without them.
    limits = {"challenged": -0.002, "believed": 0.0}
    accepted = []
    for fresh, limit in limits.items():
        gains = advantages[fresh]
        name = f"advantage of a review, fresh labels {fresh}"
        if slack:
            name += f"; {limit:g} widened by {slack:g} standard errors"
        widened = limit - slack * _error_of_mean(gains)
        accepted.append(at_least(name, mean(mean(of_log) for of_log in gains), widened))
    return accepted
