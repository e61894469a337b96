"""Random numbers of the trees: functions of a key and a counter, and of nothing else."""

from __future__ import annotations

import numpy as np

from streamgp.base import Array
from streamgp.trees.tables import Integers, Keys

# SplitMix64: the step of its counter, and what mixes it.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_2_TO_53 = 9007199254740992.0

MOST_DRAWN = 128
"""More are never drawn of a Poisson variable, whose mean is 17 at most."""


def draw(keys: Keys, counters: Integers) -> Array:
    """Draw a number uniform in (0, 1) for each key and counter.

    Examples
    --------
    >>> draw(np.array([1, 1, 2], np.uint64), np.array([0, 1, 0]))
    array([0.56656158, 0.74578176, 0.59118973])

    References
    ----------
    [^1]: Steele, G.L., Lea, D. and Flood, C.H., 2014. Fast splittable pseudorandom number
        generators. OOPSLA (SplitMix64).

    """
    z = keys + (counters.astype(np.uint64) + np.uint64(1)) * _STEP
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    z = z ^ (z >> _31)
    drawn: Array = ((z >> _11).astype(np.float64) + 0.5) / _2_TO_53
    return drawn


def bag(u: Array, w: float, nothing: float, whole: int) -> Integers:
    """Draw how often each tree learns an example: `whole` and a Poisson variable of mean `w`.

    Parameters
    ----------
    u
        Uniform numbers.
    w
        Mean of the Poisson variables.
    nothing
        Probability that one is 0, exp(-w).
    whole
        What is added.

    Examples
    --------
    >>> bag(np.array([0.3, 0.7, 0.9]), 1.0, np.exp(-1.0), 0)
    array([0, 1, 2])

    """
    top, p, sums = u.max(), nothing, [nothing]
    while sums[-1] < top and len(sums) < MOST_DRAWN:
        p = p * w / len(sums)
        sums.append(sums[-1] + p)
    return np.array(sums).searchsorted(u) + whole
