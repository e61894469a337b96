"""One conversation over a recorded log, and the search for the knob that gives a number of labels.

Counts are means over seeds, so one knob is used for all of them. Where counts jump past the number
wanted, the setting just above it is run again with a hard limit.

"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import mean

from river import metrics

from benchmarks._logs import Labelled
from streamgp import SkepticalClassifier, interactive_val_score
from streamgp.evaluate import InteractiveResult
from streamgp.interactive import Annotator

# --- one conversation


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Means over the seeds.

    Parameters
    ----------
    accuracy
        Share of all events that were predicted right before they were learned.
    macro_f1
        Macro F1 over the events with a prediction.
    n_asked, n_challenges
        Labels asked for and challenged.
    wrong_kept
        Share of the labels held at the end that are wrong.
    hard_limit
        Share of the runs whose labels were cut off at the number wanted.
    us_per_event
        Processor time per event: prediction, decision, learning, loop and annotator.

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
    """Hold a conversation with a model over the events, and return its score.

    Parameters
    ----------
    events
        Features and label of each event, in the order in which they are played.
    model
        The model; it learns in place.
    annotator
        The annotator.
    limit
        Hard limit on labels that its budget sets, if it is the number wanted.

    """
    started = time.process_time()
    result = interactive_val_score(
        events, model, metrics.Accuracy() + metrics.MacroF1(), annotator=annotator
    )
    seconds = time.process_time() - started
    accuracy, macro_f1 = result.metric.get()
    return Score(
        accuracy=of_all_events(accuracy, result),
        macro_f1=macro_f1,
        n_asked=result.n_asked,
        n_challenges=result.n_challenges,
        wrong_kept=result.wrong_kept or 0.0,
        hard_limit=float(result.n_asked == limit),
        us_per_event=1e6 * seconds / result.n_events,
    )


def of_all_events(accuracy: float, result: InteractiveResult) -> float:
    """Return accuracy over all events: one without a prediction is wrong, so late asking costs."""
    return accuracy * result.n_scored / result.n_events


def averaged(scores: Sequence[Score]) -> Score:
    """Return the mean of each number."""
    return Score(
        **{name: mean(getattr(score, name) for score in scores) for name in Score.__slots__}
    )


# --- knobs

TOLERANCE = 0.03
_TRIES = 5
# Largest factor by which a knob that asks far too little or too much is changed.
_STRIDE = 4.0


def matched(
    measure: Callable[..., Score],
    n: int,
    known: dict[float, Score],
    start: float,
    largest: float,
    count: Callable[[Score], float] = attrgetter("n_asked"),
) -> Score:
    """Tune a knob until about `n` labels are asked for, and return the result.

    Parameters
    ----------
    measure
        Function of a setting of the knob, and optionally a hard limit, that returns the score.
    n
        Number of labels.
    known
        Settings measured so far; extended here.
    start, largest
        First and largest setting.
    count
        Function of a score to be matched with `n`, instead of its number of labels.

    Returns
    -------
    A score that fits `n`; if there is none, the closest one below, or one with a hard limit.

    """

    def fits(score: Score) -> bool:
        return abs(count(score) / n - 1.0) <= TOLERANCE

    tries = 0
    while tries < _TRIES and not any(fits(score) for score in known.values()):
        knob = _next_knob({knob: count(score) for knob, score in known.items()}, n, start, largest)
        if knob in known:
            break
        known[knob] = measure(knob)
        tries += 1
    modest = [score for score in known.values() if count(score) <= n or fits(score)]
    above = [knob for knob, score in known.items() if count(score) > n]
    if above and not any(map(fits, modest)):
        modest.append(measure(min(above), n))
    return min(modest, key=lambda score: abs(count(score) - n))


def _next_knob(known: dict[float, float], n: float, start: float, largest: float) -> float:
    """Interpolate between the neighbours of `n`, logarithmically; go on where one is missing."""
    if not known:
        return start
    above = min((k for k, asked in known.items() if asked > n), default=None)
    below = max(
        (k for k, asked in known.items() if asked <= n and (above is None or k < above)),
        default=None,
    )
    if above is None or below is None:
        knob = below or above or start
        # Counts grow more slowly than knobs.
        factor = (n / max(known[knob], 1.0)) ** 1.2
        return min(knob * min(max(factor, 1.0 / _STRIDE), _STRIDE), largest)
    low, high = max(known[below], 0.5), known[above]
    t = math.log(n / low) / math.log(high / low)
    t = min(max(t, 0.15), 0.85)  # counts jump: avoid creeping along one side
    return below ** (1.0 - t) * above**t
