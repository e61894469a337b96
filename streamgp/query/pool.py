"""A fixed pool of inputs, of which the most telling ones are to be labelled.

What a criterion measures is in `pool_criteria`; here is who is asked next, and what is known so
far. For streams there are rules instead (`streamgp.query.rules`), and a reservoir of their latest
events (`streamgp.query.reservoir`).

"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from numbers import Integral

import numpy as np

from streamgp.base import Array, Features, Label, check_label
from streamgp.draws import check_seed, uniforms
from streamgp.gp.pool import PoolPosterior
from streamgp.kernels import Kernel
from streamgp.query.pool_criteria import CRITERIA, Mask, assumed
from streamgp.query.pool_points import prior_covariances


class PoolSampler:
    """Picks the points of a pool whose labels tell most, and predicts the labels of the others.

    A Gaussian process on the whole pool, with targets of -1 and +1 for each class. A label costs
    O(P²) for `P` points, and so does a pick; the pool takes `8 P²` bytes.

    Parameters
    ----------
    X
        The pool: an array of shape (P, d), NaN where a value is missing, or a list of dictionaries
        of features. It is copied.
    criterion
        Which point is picked: `"hvar"`, where the prediction is least sure; `"l2fm"` (also called
        `"sqsm"`), where a label would change the predictions of the pool most, best with few
        labels; `"rkhs"`, where it would bend the function most; `"mvar"`, where the variance is
        largest; `"rand"`, anywhere.
    kernel
        Covariance function, with its length scale in units of `X`. None: a squared exponential
        with a length scale of .9 times the square root of the number of features, which are
        standardised by the pool itself.
    noise_variance
        Variance of the observation noise, in units of the squared codes: how far labels may be
        from the function. Labels of a pool are taken to be right; where many are not, take more, as
        `GPClassifier` does. Next to 0, where classes overlap, `"rkhs"` and `"l2fm"` chase outliers.
    seed
        Seed of `"rand"`, and of the lots drawn among points that are alike. None draws one.

    Attributes
    ----------
    labels
        The labels told, by index, to be read.

    Raises
    ------
    TypeError
        If `X`, a feature, `kernel` or `seed` is none.
    ValueError
        If the pool is empty or not finite, there is no such criterion, or `noise_variance` is less
        than a millionth of the prior variance.

    Examples
    --------
    Two heaps, one label in the first: the next one to ask about is in the other.

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
    #             one to whatever class comes first
    # _unlabelled  which points may be picked
    # _lots      drawn once, so that picking again finds the same; an order as good as any other
    def __init__(
        self,
        X: Array | Sequence[Features],
        criterion: str = "hvar",
        kernel: Kernel | None = None,
        noise_variance: float = 0.1,
        seed: int | None = None,
    ) -> None:
        if criterion not in CRITERIA:
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
        """Return the `n` points without a label that are to be asked about next; changes nothing.

        Each but the first is picked as if those before it had been given the labels that are
        expected of them, so that no two tell the same.

        Raises
        ------
        ValueError
            If there are not so many points without a label.

        """
        left = int(self._unlabelled.sum())
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

        A class never heard of before is one more function, -1 at all points told so far.

        Raises
        ------
        IndexError
            If there is no such point.
        TypeError
            If `y` is None or NaN, or `index` is not a whole number.
        ValueError
            If the point has a label already.

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
        if y not in self._classes:
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

        For a point with a label this is what all labels together say of it: where labels are wrong
        now and then, it may differ from what was told.

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
