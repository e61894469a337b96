"""Fitting of a learner's hyperparameters: when, and what is accepted.

For the fit itself see `streamgp.gp.hyperparameters`.

"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from streamgp.base import Array, State
from streamgp.gp.arrays import padded
from streamgp.gp.bounded import Adoption, BoundedGP, microseconds
from streamgp.gp.cholesky import NotPositiveDefiniteError
from streamgp.gp.hyperparameters import (
    MIN_NOISE_VARIANCE,
    Hyperparameters,
    fit_steps,
    prediction_steps,
)
from streamgp.gp.marginal_likelihood import Spread, Steps
from streamgp.gp.sparse import SparseGP

FIRST_FIT = 32
"""Number of examples at the first search; the next ones follow at each doubling."""

MOST_EXAMPLES = 512
"""Number of latest examples that a fit uses; they determine its cost."""

WORK = 4000.0
"""Microseconds, estimated and not measured, that each example spends on a search under way."""

# What was found for a bounded process is tried on this many times as many examples as it has
# points: only then does the cost of dropping points show.
_TRIED_ON = 4

Score: TypeAlias = Callable[[Array, Array, Array], Array]
"""Scores (n,) of predicted means (n, m) and observation variances (n,) on targets (n, m)."""


class Tuning:
    """State of the hyperparameter search of one learner.

    The work of a search is spread over the examples that follow: hyperparameters are fitted, those
    found are tried, and then a process with them learns the examples, or, if examples were dropped,
    takes over what the old process knows. The search sees the examples as they were at its start,
    so that it finds what it would find if done at once.

    A search under way is not saved: when the examples are learned again, it begins at the same one.
    For that reason it starts over if an example is relabelled or forgotten meanwhile.

    Parameters
    ----------
    max_points
        Largest number of examples that the learner retains, None for all.
    kind
        Class of its process if `max_points` is given.

    Attributes
    ----------
    vector
        The hyperparameters in use, as `Hyperparameters.moved_to` takes them; None if they are the
        given ones.
    search
        The search under way, None between searches.

    """

    # _due     number of examples at which the next search begins, or the one under way began
    # _recent  the latest examples by number: points and targets, as they were learned
    def __init__(
        self,
        max_points: int | None = None,
        kind: type[BoundedGP] = SparseGP,
    ) -> None:
        import scipy.optimize  # noqa: F401 - takes a tenth of a second; no example should wait

        self.vector: Array | None = None
        self._kind = kind
        self._max_points = max_points
        self._due = FIRST_FIT
        most = min(sys.maxsize, max(MOST_EXAMPLES, _TRIED_ON * int(max_points or 0)))
        self._recent: deque[tuple[int, Array, Array]] = deque(maxlen=most)
        self.search: Search | None = None

    def note(self, number: int, x: Array, y: Array) -> None:
        """Record an example."""
        self._recent.append((number, x, y))
        if self.search is not None and self.search.adoption is not None:
            self.search.adoption.note(x, y)

    def relabel(self, number: int, y: Array, n: int) -> None:
        """Record new targets of an example, one of `n`."""
        for i, (other, x, _) in enumerate(self._recent):
            if other == number:
                self._recent[i] = number, x, y
        self._begin_again(n)

    def forget(self, number: int, n: int) -> None:
        """Forget an example; `n` remain."""
        kept = [found for found in self._recent if found[0] != number]
        self._recent = deque(kept, maxlen=self._recent.maxlen)
        self._begin_again(n)

    def restart(self) -> None:
        """Forget all examples and any search under way; the hyperparameters found stay in use."""
        self._recent.clear()
        self.search = None

    def moved(self, prior: Hyperparameters) -> Hyperparameters:
        """Return the hyperparameters in use, if `prior` are the given ones."""
        return prior if self.vector is None else prior.moved_to(self.vector)

    def is_due(self, n: int) -> bool:
        """Whether it is time for a search, with `n` examples learned and not taken back."""
        return n >= self._due and len(self._recent) >= FIRST_FIT

    def begin(
        self,
        prior: Hyperparameters,
        d: int,
        m: int,
        *,
        standardise: Callable[[Array], Array],
        score: Score,
        is_informative: Callable[[Array], bool] | None = None,
        min_noise_variance: float = MIN_NOISE_VARIANCE,
    ) -> bool:
        """Begin a search on the latest examples; return False if their targets are uninformative.

        Parameters
        ----------
        prior
            The hyperparameters that were given.
        d, m
            Number of features and of functions.
        standardise
            Converts targets (n, m) to those that hyperparameters refer to, (n, k).
        score
            Score of a prediction of these.
        is_informative
            Whether targets (n, k) are informative enough to fit to, None for always.
        min_noise_variance
            Least noise variance that may be found.

        """
        X = np.array([padded(x, d) for _, x, _ in self._recent])
        Y = standardise(np.array([padded(y, m) for _, _, y in self._recent]))
        if is_informative is not None and not is_informative(Y[-MOST_EXAMPLES:]):
            return False
        self.search = Search(
            prior=prior,
            used=self.vector,
            X=X,
            Y=Y,
            score=score,
            min_noise_variance=min_noise_variance,
            max_points=self._max_points,
            kind=self._kind,
        )
        return True

    def settle(self, vector: Array | None, n: int) -> None:
        """Use a vector from now on; the next search is due at the next doubling of `n` examples."""
        self.vector = vector
        self.search = None
        self._due = FIRST_FIT
        while self._due <= n:
            self._due *= 2

    def state(self) -> State | None:
        """Return the state not determined by the examples, as plain JSON; None if there is none."""
        if self._due == FIRST_FIT:
            return None
        return {"due": self._due, "vector": None if self.vector is None else self.vector.tolist()}

    def load_state(self, state: State) -> None:
        """Restore a state; the examples follow."""
        vector = state["vector"]
        self._due = int(state["due"])
        self.vector = None if vector is None else np.array(vector, dtype=float)

    def _begin_again(self, n: int) -> None:
        """Start a search under way over, with the next example."""
        if self.search is not None:
            self.search = None
            self._due = n + 1


@dataclass(kw_only=True)
class Search:
    """A search for hyperparameters on given examples, some steps at a time.

    Those found are accepted if they predict each example from those before it no worse than those
    in use and those given: with a process of as many points as the learner's. Once that has to drop
    points, any but the given ones must be better than these by more than the standard error of the
    difference [^1]: the trial sees only the first points that are dropped, and length scales that
    suit all examples are mostly too short for a part of them. A copy repeats the steps already done
    along with its next ones.

    Parameters
    ----------
    prior
        The hyperparameters that were given.
    used
        Vector of those in use, None for the given ones.
    X, Y
        Points (n, d), and the targets (n, k) that hyperparameters refer to.
    score, min_noise_variance, max_points, kind
        As for `Tuning`.

    Attributes
    ----------
    taken
        Vector of the hyperparameters to use once the search has ended, None for the given ones.
    adoption
        Progress of a process that adopts them; None before the end.

    References
    ----------
    [^1]: Breiman, L., Friedman, J., Olshen, R. and Stone, C., 1984. Classification and Regression
        Trees, Section 3.4.3, the 1 SE rule.

    """

    prior: Hyperparameters
    used: Array | None
    X: Array
    Y: Array
    score: Score
    min_noise_variance: float = MIN_NOISE_VARIANCE
    max_points: int | None
    kind: type[BoundedGP]
    # _spread  the search, until it has ended
    taken: Array | None = field(default=None, init=False)
    adoption: Adoption | None = field(default=None, init=False)
    _spread: Spread[Array | None] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._spread = Spread(self._all_steps)

    def advance(self, work: float = math.inf) -> float | None:
        """Do some steps, as `Spread.advance` does."""
        left = self._spread.advance(work)
        if left is not None:
            self.taken = self._spread.result
            self.adoption = Adoption(self._with(self.taken).noise_variance)
        return left

    def _with(self, vector: Array | None) -> Hyperparameters:
        return self.prior if vector is None else self.prior.moved_to(vector)

    def _all_steps(self) -> Steps[Array | None]:
        """Find hyperparameters, and return the vector of those to use."""
        latest = slice(-MOST_EXAMPLES, None)
        fitted = yield from fit_steps(
            self._with(self.used),
            self.prior,
            self.X[latest],
            self.Y[latest],
        )
        found = fitted.vector
        found[-1] = max(found[-1], math.log(self.min_noise_variance))
        best, taken = -math.inf, self.used
        first: Array | None = None  # scores of the given ones, if they can be tried
        for vector in (None, found) if self.used is None else (None, self.used, found):
            these = self._with(vector)
            try:
                means, variances = yield from self._prediction_steps(these)
            except NotPositiveDefiniteError:
                continue
            scores = self.score(means, variances + these.noise_variance, self.Y)
            value = float(scores.sum())
            if first is None:
                first = scores
            elif self._gives_up:
                value -= float(np.linalg.norm(scores - first))
            if value >= best:
                best, taken = value, vector
        return taken

    @property
    def _gives_up(self) -> bool:
        """Whether the learner has more examples than points."""
        return self.max_points is not None and len(self.X) > self.max_points

    def _prediction_steps(self, these: Hyperparameters) -> Steps[tuple[Array, Array]]:
        """Compute what `prediction_steps` does, for a process with as many points."""
        X, Y, most = self.X, self.Y, self.max_points
        if most is None or not self._gives_up:
            return (yield from prediction_steps(these, X, Y))
        gp = self.kind(these.kernel, these.noise_variance, most, Y.shape[1])
        means, variances = np.empty_like(Y), np.empty(len(Y))
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            yield microseconds(i) if i < most else gp.cost
            means[i], variances[i] = gp.predict(x)
            yield from gp.append_steps(x, y)
        return means, variances


# --- Whether classes alternate, or come one after another.


_N_PARTS = 4
# Two labels of a part differ with this probability if a quarter of them are not of its main class.
# In a part of one class whose annotator gets one in five wrong (the prior mean of an annotator), it
# is at most .36: wrong labels do not pass for other classes.
_LEAST = 0.375
# Nor do they by chance. With a share p = .8 of the class, the standard error of 2 p (1 - p) over
# all parts together is 2 (2 p - 1) sqrt(p (1 - p) / n), about 1 / (2 sqrt(n)).
_ERROR = 0.5


def are_mixed(Y: Array) -> bool:
    """Return whether examples that are close in time are of different classes.

    The examples are cut into four parts of equal length. Two of the same part, drawn with
    replacement, are of different classes with probability `1 - Σ_c p_c²`, with the shares `p_c` of
    the classes in that part; the mean over all parts has to be at least `3/8 + 1 / (2 √n)`.

    Parameters
    ----------
    Y
        Indicators of the classes (n, m), in the order in which the examples came.

    Examples
    --------
    Day and night in turn, and a run of days before a run of nights:

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
