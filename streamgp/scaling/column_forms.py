"""Weights of columns: how far each tells the labels apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from streamgp.base import Array, Label

FAR: Final = 3.0
"""Distance from the mean, in standard deviations, at which scaled values are clipped."""

# Numbers of labels, in total and of each class on average, from which on features are weighed.
_FEWEST_LABELS: Final = 20
_FEWEST_OF_CLASS: Final = 3
# What each feature gets in addition to what it tells, as part of the mean and in any case: a
# feature that tells nothing alone may tell something together with others.
_EVEN: Final = 0.3
_LEAST_TOLD: Final = 0.05
# Sum of squares, in standard deviations, up to which a feature is constant.
_LEAST_SQUARES: Final = 1e-9


def weights_of(Z: Array, labels: Sequence[Label]) -> Array | None:
    """Return weights by which features are multiplied: the more a feature tells, the larger.

    The square of a weight is proportional to `r + 0.3 mean(r) + (m - 1) / (n - 1) + 0.05`. Here `r`
    is the share of the variance of a feature, or of its square if that is more, that lies between
    the `m` classes (the correlation ratio), less the part that is due to chance among `n` labels.
    The third term is this part, so that weights are about the same while labels are few; the last
    one makes them about the same where no feature tells much alone. The mean of the squares is 1:
    distances stay as long on average, and a length scale is right that was for equal weights.

    Parameters
    ----------
    Z
        Scaled features of the examples, shape (n, d).
    labels
        Their labels.

    Returns
    -------
    The weights, shape (d,); None if there are fewer than 20 labels, fewer than three of each class
    on average, or no two classes.

    Examples
    --------
    >>> Z = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]] * 10)
    >>> weights_of(Z, ["in", "in", "out", "out"] * 10).round(2)
    array([1.3 , 0.56])

    References
    ----------
    [^1]: Kelley, T.L., 1935. An unbiased correlation ratio measure. PNAS 21.

    """
    n = len(labels)
    number = {y: i for i, y in enumerate(dict.fromkeys(labels))}
    m = len(number)
    if m < 2 or n < max(_FEWEST_LABELS, _FEWEST_OF_CLASS * m) or not Z.shape[1]:
        return None
    classes = np.eye(m)[[number[y] for y in labels]]
    ratio = np.maximum(_between(Z, classes), _between(Z * Z, classes))
    chance = (m - 1) / (n - 1)
    told = np.maximum(ratio - chance, 0.0) / (1.0 - chance)
    squares = told + _EVEN * told.mean() + chance + _LEAST_TOLD
    return np.asarray(np.sqrt(squares / squares.mean()))


def _between(Z: Array, classes: Array) -> Array:
    """Return the share of each column's variance between classes, given as indicators (n, m)."""
    Z = Z - Z.mean(axis=0)
    sums = classes.T @ Z / np.sqrt(classes.sum(axis=0))[:, None]
    total: Array = np.square(Z).sum(axis=0)
    share: Array = np.zeros_like(total)
    np.divide(np.square(sums).sum(axis=0), total, out=share, where=total > _LEAST_SQUARES)
    return share
