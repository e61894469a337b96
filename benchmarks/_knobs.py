"""Turning a knob until the number of labels fits, whatever comes of it.

Counts are means over seeds, so it is one knob for all of them. Where counts jump past the number
wanted, the setting just above it is played once more, with a hard limit.

"""

from __future__ import annotations

import math
from collections.abc import Callable

from benchmarks._conversation import Score

TOLERANCE = 0.03
_TRIES = 5
# A knob that asks far too little or too much is multiplied or divided by at most this.
_STRIDE = 4.0


def matched(
    measure: Callable[..., Score],
    n: int,
    known: dict[float, Score],
    start: float,
    largest: float,
) -> Score:
    """Turn a knob until about `n` labels are asked for, and return what came out.

    Parameters
    ----------
    measure
        What comes out at a setting of the knob, and at one with a hard limit.
    n
        Number of labels.
    known
        Settings measured so far; grows.
    start, largest
        First and largest setting.

    Returns
    -------
    A result that fits `n`; if there is none, the closest that is below, or under a hard limit.

    """

    def fits(score: Score) -> bool:
        return abs(score.n_asked / n - 1.0) <= TOLERANCE

    tries = 0
    while tries < _TRIES and not any(fits(score) for score in known.values()):
        knob = _next_knob(known, n, start, largest)
        if knob in known:
            break
        known[knob] = measure(knob)
        tries += 1
    modest = [score for score in known.values() if score.n_asked <= n or fits(score)]
    above = [knob for knob, score in known.items() if score.n_asked > n]
    if above and not any(map(fits, modest)):
        modest.append(measure(min(above), n))
    return min(modest, key=lambda score: abs(score.n_asked - n))


def _next_knob(known: dict[float, Score], n: float, start: float, largest: float) -> float:
    """Interpolate between the neighbours of `n`, logarithmically; go on where one is missing."""
    if not known:
        return start
    above = min((k for k, score in known.items() if score.n_asked > n), default=None)
    below = max(
        (k for k, score in known.items() if score.n_asked <= n and (above is None or k < above)),
        default=None,
    )
    if above is None or below is None:
        knob = below or above or start
        # Counts grow slower than knobs.
        factor = (n / max(known[knob].n_asked, 1.0)) ** 1.2
        return min(knob * min(max(factor, 1.0 / _STRIDE), _STRIDE), largest)
    low, high = max(known[below].n_asked, 0.5), known[above].n_asked
    t = math.log(n / low) / math.log(high / low)
    t = min(max(t, 0.15), 0.85)  # counts jump: never crawl along one side
    return below ** (1.0 - t) * above**t
