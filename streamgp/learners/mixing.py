"""Whether classes alternate, or come one after another."""

from __future__ import annotations

import math

import numpy as np

from streamgp.base import Array

_N_PARTS = 4
# Two labels of the same part differ with this probability if a quarter of them is not of its class.
# In a part of one class, of which an annotator gets one in five wrong (what is expected of somebody
# unknown), it is at most .36: wrong labels do not pass for other classes.
_LEAST = 0.375
# Nor do they by chance. With a share p = .8 of the class, the standard error of 2 p (1 - p) over
# all parts together is 2 (2 p - 1) sqrt(p (1 - p) / n), next to 1 / (2 sqrt(n)).
_ERROR = 0.5


def are_mixed(Y: Array) -> bool:
    """Return whether examples are of different classes also where they are close in time.

    The examples are cut into four parts, each as long as the others. Two of the same part, drawn
    with replacement, are of different classes with probability `1 - Σ_c p_c²`, with the shares
    `p_c` of the classes in that part; the mean over all parts has to be `3/8 + 1 / (2 √n)` or more.

    Parameters
    ----------
    Y
        Indicators of the classes (n, m), in the order in which the examples came.

    Examples
    --------
    Day and night by turns, and a week of days before one of nights:

    >>> day, night = [1.0, 0.0], [0.0, 1.0]
    >>> are_mixed(np.array([day, night] * 16)), are_mixed(np.array([day] * 16 + [night] * 16))
    (True, False)

    References
    ----------
    [^1]: Gini, C., 1912. Variabilità e mutabilità. For the index, known as impurity.

    """
    parts = np.array_split(Y, _N_PARTS)
    differ = [1.0 - float(np.square(part.mean(axis=0)).sum()) for part in parts]
    return float(np.mean(differ)) >= _LEAST + _ERROR / math.sqrt(len(Y))
