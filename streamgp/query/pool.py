"""A fixed pool of inputs, of which the most informative ones are to be labelled.

What a criterion measures is in `pool_criteria`; this module chooses the next point and keeps what
is known so far. For streams there are query strategies instead (`streamgp.query.strategies`), and
strategies that ask about an earlier event (`streamgp.query.retrospective`).

"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgp.base import Array, Features, Label, check_kind, check_label
from streamgp.common.counter_rng import check_seed, uniforms
from streamgp.common.feature_values import LARGEST, is_missing
from streamgp.features import Columns
from streamgp.gp.joint_posterior import PoolPosterior
from streamgp.kernels import Kernel
from streamgp.kernels.base import check_kernel
from streamgp.learners.gp_core import default_kernel
from streamgp.query.pool_criteria import CRITERIA, Mask, assumed

# --- The points of a pool: from an array or from dictionaries to prior covariances.
#
# A pool is known in full before the first label. Without a kernel it is standardised by itself, so
# that callers need not do it; a given kernel has its length scale in units of `X`.


def prior_covariances(X: Array | Sequence[Features], kernel: Kernel | None) -> Array:
    """Return the prior covariances (P, P) of all points.

    Parameters
    ----------
    X
        An array of shape (P, d), NaN where a value is missing, or `P` dictionaries of features. The
        columns of an array are named by their numbers, from 0.
    kernel
        Covariance function; None for a squared exponential with a length scale of `.9 √d` on
        standardised features, as elsewhere.

    Raises
    ------
    TypeError
        If `X` is neither, a feature is neither a number nor a string, or `kernel` is not a kernel.
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
        kernel = default_kernel(len(columns))
    bound = kernel.bound(columns)
    return bound.matrix(np.array([bound.embed(point) for point in points]))


def _coordinates(X: Array | Sequence[Features]) -> tuple[Array, NDArray[np.bool_], Columns]:
    """Return points (P, d) with 0 for missing values, what is present, and the columns."""
    if isinstance(X, Sequence) and all(isinstance(x, Mapping) for x in X):
        points, present, columns = _of_dictionaries(X)
    else:
        points, present, columns = _of_array(X)
    if not len(points):
        raise ValueError("X must have at least one point, got none")
    return points, present, columns


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
    except (TypeError, ValueError, OverflowError):
        points = np.empty(0)
    if points.ndim != 2:
        raise TypeError(
            "X must be an array of numbers of shape (P, d) or a list of dictionaries of features, "
            f"got {type(X).__name__}"
        )
    present = ~np.isnan(points)
    points[~present] = 0.0
    if (np.abs(points) > LARGEST).any():
        raise ValueError(
            f"X must be finite and at most {LARGEST:.0e} in size; NaN stands for unknown"
        )
    return points, present, Columns(range(points.shape[1]))


def _standardised(points: Array, present: NDArray[np.bool_]) -> Array:
    """Return standardised numbers, by what is present; 0, the mean, where a value is missing."""
    n = np.maximum(present.sum(axis=0), 1)
    means = np.where(present, points, 0.0).sum(axis=0) / n
    centred = np.where(present, points - means, 0.0)
    stds = np.sqrt(np.square(centred).sum(axis=0) / n)
    # Below this, the spread is the rounding error of a constant, as in `Moments`.
    stds[stds <= 1e-12 * np.abs(means)] = 1.0
    scaled: Array = centred / stds
    return scaled


class PoolSampler:
    """Picks the most informative points of a pool, and predicts the labels of the others.

    A Gaussian process on the whole pool, with targets of -1 and +1 for each class. A label costs
    O(P²) for `P` points, and so does a pick; the pool takes `8 P²` bytes.

    Parameters
    ----------
    X
        The pool: an array of shape (P, d), NaN where a value is missing, or a list of dictionaries
        of features. It is copied.
    criterion
        Which point is picked: `"hvar"`, where the prediction is least certain; `"l2fm"` (also
        called `"sqsm"`), where a label would change the predictions of the pool most, best with few
        labels; `"rkhs"`, where it would bend the function most; `"mvar"`, where the variance is
        largest; `"rand"`, any.
    kernel
        Covariance function, with its length scale in units of `X`. None: a squared exponential
        with a length scale of .9 times the square root of the number of features, which are
        standardised by the pool itself.
    noise_variance
        Variance of the observation noise, in units of the squared codes: how far labels may be from
        the function. Labels of a pool are assumed right; if many are not, take a larger value, as
        `GPClassifier` does. With a value near 0, where classes overlap, `"rkhs"` and `"l2fm"` chase
        outliers.
    seed
        Seed of `"rand"`, and of the draws that break ties. None draws one.

    Attributes
    ----------
    labels
        The labels told so far, by index; read only.

    Raises
    ------
    TypeError
        If `X`, a feature, `kernel` or `seed` is not of its type.
    ValueError
        If the pool is empty or not finite, the criterion is unknown, or `noise_variance` is less
        than a millionth of the prior variance.

    Examples
    --------
    Two clusters, one label in the first: the next point to ask about is in the other.

    >>> import numpy as np
    >>> from streamgp import PoolSampler
    >>> pool = PoolSampler(np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]), seed=1)
    >>> pool.tell(1, "home")
    >>> pool.pick()
    [5]
    >>> pool.tell(5, "work")
    >>> pool.predict()
    ['home', 'home', 'home', 'work', 'work', 'work']

    References
    ----------
    [^1]: Kotova, D. and Panov, M., 2019. Gaussian process in active learning for classification.
        Working file.
    [^2]: Karzand, M. and Nowak, R., 2019. Active learning in the overparameterized and
        interpolating regime. arXiv:1905.12782.

    """

    # _posterior  what follows from `labels`; its function `k` belongs to `_classes[k]`, the first
    #             one to whichever class comes first
    # _unlabelled  which points may be picked
    # _lots      drawn once, so that picking again finds the same points
    def __init__(
        self,
        X: Array | Sequence[Features],
        criterion: str = "hvar",
        kernel: Kernel | None = None,
        noise_variance: float = 0.1,
        seed: int | None = None,
    ) -> None:
        if not (isinstance(criterion, str) and criterion in CRITERIA):
            raise ValueError(f"criterion must be one of {', '.join(CRITERIA)}, got {criterion!r}")
        check_seed(seed)
        self.criterion = criterion
        self.kernel = kernel
        self.noise_variance = noise_variance
        self.seed = seed
        self._posterior = PoolPosterior(prior_covariances(X, kernel), noise_variance)
        drawn = secrets.randbits(32) if seed is None else int(seed)
        self._lots = uniforms(len(self), drawn, "pool", "pick")
        self._unlabelled: Mask = np.ones(len(self), dtype=bool)
        self._classes: list[Label] = []
        self.labels: dict[int, Label] = {}

    def __len__(self) -> int:
        return len(self._posterior.covariances)

    def pick(self, n: int = 1) -> list[int]:
        """Return the next `n` points without a label to ask about; changes nothing.

        Each but the first is picked as if those before it had been given the labels expected of
        them, so that no two tell the same.

        Raises
        ------
        ValueError
            If fewer points are without a label.

        """
        left = int(self._unlabelled.sum())
        if not left:
            raise ValueError(f"all {len(self)} points have a label; there is none to pick")
        if not (isinstance(n, Integral) and 1 <= n <= left):
            raise ValueError(
                f"n must be a whole number from 1 to {left}, the points without a label, got {n!r}"
            )
        posterior, unlabelled = self._posterior, self._unlabelled
        if n > 1:
            posterior, unlabelled = posterior.copy(), unlabelled.copy()
        picks = [self._best(posterior, unlabelled)]
        while len(picks) < n:
            last = picks[-1]
            posterior.learn(last, assumed(posterior.functions[:, last : last + 1])[:, 0])
            unlabelled[last] = False
            picks.append(self._best(posterior, unlabelled))
        return picks

    def tell(self, index: int, y: Label) -> None:
        """Learn the label of a point, whether it was picked or not.

        A class that is new adds one more function, -1 at all points told so far.

        Raises
        ------
        IndexError
            If there is no such point.
        TypeError
            If `y` is None or NaN, or `index` is not a whole number.
        ValueError
            If the point has a label already, or the label equals a class of another type.

        """
        check_label(y)
        if not isinstance(index, Integral):
            raise TypeError(f"index must be a whole number, got {index!r}")
        if not 0 <= index < len(self):
            raise IndexError(f"index must be from 0 to {len(self) - 1}, got {index!r}")
        index = int(index)
        if index in self.labels:
            raise ValueError(
                f"point {index} has the label {self.labels[index]!r} already; "
                "make a new PoolSampler to change it"
            )
        if y in self._classes:
            check_kind(y, self._classes[self._classes.index(y)])
        else:
            if self._classes:
                self._posterior.add_function()
            self._classes.append(y)
        codes = np.full(len(self._classes), -1.0)
        codes[self._classes.index(y)] = 1.0
        self._posterior.learn(index, codes)
        self._unlabelled[index] = False
        self.labels[index] = y

    def predict(self) -> list[Label]:
        """Return the predicted labels of all points, those with a label included.

        For a point with a label this is what all labels together predict: if some labels are wrong,
        it may differ from the label that was learned.

        Raises
        ------
        ValueError
            If nothing has been told.

        """
        if not self._classes:
            raise ValueError("nothing is known of any class; tell a label first")
        best = self._posterior.functions.argmax(axis=0)
        return [self._classes[k] for k in best.tolist()]

    def _best(self, posterior: PoolPosterior, unlabelled: Mask) -> int:
        scores = CRITERIA[self.criterion](posterior, unlabelled)
        largest = scores[unlabelled].max()
        alike = np.flatnonzero(unlabelled & (scores == largest))
        return int(alike[self._lots[alike].argmax()])
