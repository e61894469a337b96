"""The points of a pool: from an array or from dictionaries to prior covariances.

A pool is known in full before the first label. Where no kernel is given it is standardised by
itself, so that nobody has to; a kernel that is given has its length scale in units of `X`.

"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgp.base import Array, Features
from streamgp.features import Columns
from streamgp.kernels import Kernel, SquaredExponential
from streamgp.kernels.kernel import check_kernel
from streamgp.learners.settings import LENGTH_SCALE_PER_ROOT_FEATURE
from streamgp.values import LARGEST, is_missing


def prior_covariances(X: Array | Sequence[Features], kernel: Kernel | None) -> Array:
    """Return the covariances (P, P) of all points before anything was learned.

    Parameters
    ----------
    X
        An array of shape (P, d), NaN where a value is missing, or `P` dictionaries of features. The
        columns of an array have their numbers, from 0, as names.
    kernel
        Covariance function; None for a squared exponential with a length scale of `.9 √d` on
        standardised features, as elsewhere.

    Raises
    ------
    TypeError
        If `X` is neither, a feature is neither a number nor a text, or `kernel` is no kernel.
    ValueError
        If there are no points, or a number is infinite or too large.

    Examples
    --------
    >>> prior_covariances([{"light": 100.0}, {"light": 300.0}], kernel=None)
    array([[1.        , 0.08465799],
           [0.08465799, 1.        ]])

    """
    if kernel is not None:
        check_kernel(kernel)
    points, present, columns = _coordinates(X)
    if kernel is None:
        numbers = [j for j in range(len(columns)) if j not in columns.texts]
        points[:, numbers] = _standardised(points[:, numbers], present[:, numbers])
        kernel = SquaredExponential(LENGTH_SCALE_PER_ROOT_FEATURE * math.sqrt(max(len(columns), 1)))
    bound = kernel.bound(columns)
    return bound.matrix(np.array([bound.embed(point) for point in points]))


def _coordinates(X: Array | Sequence[Features]) -> tuple[Array, NDArray[np.bool_], Columns]:
    """Return points (P, d), 0 where a value is missing, which are not, and what the columns are."""
    if not len(X):
        raise ValueError("a pool must have at least one point, got none")
    if isinstance(X, Sequence) and all(isinstance(x, Mapping) for x in X):
        return _of_dictionaries(X)
    return _of_array(X)


def _of_dictionaries(xs: Sequence[Features]) -> tuple[Array, NDArray[np.bool_], Columns]:
    columns = Columns()
    for x in xs:
        columns = columns.widened(x)
    names = [(name, j in columns.texts) for j, name in enumerate(columns.names)]
    present = [[_holds(x.get(name), is_text) for name, is_text in names] for x in xs]
    points = np.array([columns.vector(x) for x in xs])
    return points, np.array(present, dtype=bool).reshape(points.shape), columns


def _holds(value: Any, is_text: bool) -> bool:
    """Whether a feature has a value for its column of texts, or of numbers."""
    return isinstance(value, str) == is_text and not is_missing(value)


def _of_array(X: Any) -> tuple[Array, NDArray[np.bool_], Columns]:
    try:
        points = np.array(X, dtype=float)
    except (TypeError, ValueError):
        points = np.empty(0)
    if points.ndim != 2:
        raise TypeError(
            "X must be an array of numbers of shape (P, d) or a list of dictionaries of features, "
            f"got {type(X).__name__}"
        )
    present = ~np.isnan(points)
    points[~present] = 0.0
    if (np.abs(points) > LARGEST).any():
        raise ValueError(f"X must be finite and at most {LARGEST:.0e}; NaN stands for unknown")
    return points, present, Columns(range(points.shape[1]))


def _standardised(points: Array, present: NDArray[np.bool_]) -> Array:
    """Return numbers by mean and standard deviation of what is present; 0, the mean, elsewhere."""
    n = np.maximum(present.sum(axis=0), 1)
    means = np.where(present, points, 0.0).sum(axis=0) / n
    centred = np.where(present, points - means, 0.0)
    stds = np.sqrt(np.square(centred).sum(axis=0) / n)
    # Below this, the spread is rounding of a constant, as in `Moments`.
    stds[stds <= 1e-12 * np.abs(means)] = 1.0
    scaled: Array = centred / stds
    return scaled
