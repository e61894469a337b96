"""What came of a search: its trials, in order, the best of them, and the table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from streamgp.cli.configuration.settings import Learner
from streamgp.cli.tune.judging import By, Score
from streamgp.cli.wording import aligned

N_SHOWN = 20
_TITLES = ["length scale", "noise variance", "accuracy", "log loss", "asks", "µs per event", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One learner and how good it was.

    Parameters
    ----------
    learner
        The learner.
    score
        How good it was; None if it could not learn this log.
    is_given
        Whether it is the one of the configuration.

    """

    learner: Learner
    score: Score | None
    is_given: bool


def ranking(trials: Sequence[Trial], by: By) -> list[Trial]:
    """Return trials: the best first, those last that could not learn; of equals in their order."""

    def merit(trial: Trial) -> tuple[float, ...]:
        score = trial.score
        if score is None:
            return (math.inf,)
        values = (-score.accuracy, score.log_loss)
        return values if by == "accuracy" else values[::-1]

    return sorted(trials, key=merit)


def best_of(ranked: Sequence[Trial], by: By) -> Trial | None:
    """Return the trial with the fewest questions among those as good as the first.

    As good is what is worse by one standard error of the first at most: that much is chance.

    Parameters
    ----------
    ranked
        What `ranking` returned.
    by
        What the first is best in.

    References
    ----------
    [^1]: Breiman, L., Friedman, J., Olshen, R. and Stone, C., 1984. Classification and Regression
        Trees, Sec. 3.4.3: the one standard error rule.

    """
    first = ranked[0].score
    if first is None:
        return None
    error = first.standard_error(by)

    def is_as_good(score: Score) -> bool:
        if by == "accuracy":
            return score.accuracy >= first.accuracy - error
        return score.log_loss <= first.log_loss + error

    good = [(t.score, t) for t in ranked if t.score is not None and is_as_good(t.score)]
    return min(good, key=lambda pair: pair[0].n_asked)[1]


def trials_text(ranked: Sequence[Trial], best: Trial) -> str:
    """Return the table: the first ones, the best, and that of the configuration."""
    shown = [t for i, t in enumerate(ranked) if i < N_SHOWN or t.is_given or t is best]
    rows = [_TITLES, *(_cells(trial, best) for trial in shown)]
    more = len(ranked) - len(shown)
    return aligned(rows, right=range(6)) + (f"\nand {more} more" if more else "")


def _cells(trial: Trial, best: Trial) -> list[str]:
    learner, score = trial.learner, trial.score
    return [
        "default" if learner.length_scale is None else f"{learner.length_scale:g}",
        f"{learner.noise_variance:g}",
        *(["-"] * 4 if score is None else _numbers(score)),
        ", ".join(_remarks(trial, best)),
    ]


def _numbers(score: Score) -> list[str]:
    return [
        f"{score.accuracy:.3f}",
        f"{score.log_loss:.3f}",
        f"{100 * score.asked_share:.0f} %",
        f"{score.microseconds:.0f}",
    ]


def _remarks(trial: Trial, best: Trial) -> list[str]:
    remarks = {
        "best": trial is best,
        "as it is": trial.is_given,
        "too little noise for this log": trial.score is None,
    }
    return [words for words, holds in remarks.items() if holds]
