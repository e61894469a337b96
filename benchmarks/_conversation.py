"""One conversation over a recorded log, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from river import metrics

from benchmarks._logs import Labelled
from streamgp import SkepticalClassifier, interactive_val_score
from streamgp.interactive import Annotator


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Means over the seeds.

    Parameters
    ----------
    accuracy
        Share of all events that were predicted right, before anything was learned of them.
    macro_f1
        Macro F1 of those for which there was a prediction.
    n_asked, n_challenges
        Labels asked for and challenged.
    wrong_kept
        Share of the labels held in the end that are wrong.
    hard_limit
        Share of the runs whose labels were cut off at the number wanted.
    us_per_event
        Time of the processor for an event: prediction, decision, learning, loop and annotator.

    """

    accuracy: float
    macro_f1: float
    n_asked: float
    n_challenges: float
    wrong_kept: float
    hard_limit: float = 0.0
    us_per_event: float = 0.0


def played(
    events: Sequence[Labelled],
    model: SkepticalClassifier,
    annotator: Annotator,
    limit: int | None = None,
) -> Score:
    """Let a model converse over the events; say what came of it.

    Parameters
    ----------
    events
        Features and label of each event, in the order in which they are played.
    model
        Who learns, in place.
    annotator
        Who answers.
    limit
        Largest number of labels that its budget allows, where it is one that was wanted.

    """
    started = time.process_time()
    result = interactive_val_score(
        events, model, metrics.Accuracy() + metrics.MacroF1(), annotator=annotator
    )
    seconds = time.process_time() - started
    accuracy, macro_f1 = result.metric.get()
    return Score(
        # An event that nothing was predicted for counts as wrong: who asks late shall pay.
        accuracy=accuracy * result.n_scored / result.n_events,
        macro_f1=macro_f1,
        n_asked=result.n_asked,
        n_challenges=result.n_challenges,
        wrong_kept=result.wrong_kept or 0.0,
        hard_limit=float(result.n_asked == limit),
        us_per_event=1e6 * seconds / result.n_events,
    )


def averaged(scores: Sequence[Score]) -> Score:
    """Return the mean of each number."""
    return Score(
        **{name: mean(getattr(score, name) for score in scores) for name in Score.__slots__}
    )
