"""Fitting of a learner's hyperparameters: when, to which objective, and what is accepted.

For the fit itself see `streamgp.gp.hyperparameters`.

"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from streamgp.base import Array, State
from streamgp.gp.arrays import padded
from streamgp.gp.bounded import BoundedGP
from streamgp.gp.cholesky import NotPositiveDefiniteError
from streamgp.gp.hyperparameters import (
    MIN_NOISE_VARIANCE,
    Hyperparameters,
    fit,
    predicted_before_learned,
)
from streamgp.gp.marginal_likelihood import Criterion, log_marginal_likelihood
from streamgp.gp.sparse import SparseGP

FIRST_FIT = 32
"""Number of examples at the first fit; from then on whenever there are twice as many."""

MOST_EXAMPLES = 512
"""A fit looks at the latest examples, so many of them, and costs as much as they do."""

# What was found for a bounded process is tried on so many times as many examples as it has points:
# what it costs to give points up, shows only then.
_TRIED_ON = 4

Score: TypeAlias = Callable[[Array, Array, Array], float]
"""How good means (n, m) and variances (n,) of observations predicted targets (n, m)."""


class Tuning:
    """State of the hyperparameter search of one learner.

    Parameters
    ----------
    max_points
        Largest number of examples that the learner retains, None for all.
    kind
        What it then is.
    criterion
        What a fit makes large.

    Attributes
    ----------
    vector
        The hyper-parameters in use, as `Hyperparameters.moved_to` takes them; None if they are
        those that it was given.

    """

    # _due     number of examples at the next fit
    # _recent  the latest examples by number: points and targets, as they were learned
    def __init__(
        self,
        max_points: int | None = None,
        kind: type[BoundedGP] = SparseGP,
        criterion: Criterion = log_marginal_likelihood,
    ) -> None:
        self.vector: Array | None = None
        self._kind = kind
        self._criterion = criterion
        self._max_points = max_points
        self._due = FIRST_FIT
        most = max(MOST_EXAMPLES, _TRIED_ON * (max_points or 0))
        self._recent: deque[tuple[int, Array, Array]] = deque(maxlen=most)

    def note(self, number: int, x: Array, y: Array) -> None:
        """Record an example."""
        self._recent.append((number, x, y))

    def relabel(self, number: int, y: Array) -> None:
        """Record other targets of an example."""
        for i, (other, x, _) in enumerate(self._recent):
            if other == number:
                self._recent[i] = number, x, y

    def forget(self, number: int) -> None:
        """Forget an example."""
        kept = [found for found in self._recent if found[0] != number]
        self._recent = deque(kept, maxlen=self._recent.maxlen)

    def restart(self) -> None:
        """Forget all examples; what was found in them stays in use."""
        self._recent.clear()

    def is_due(self, n: int) -> bool:
        """Whether it is time for a fit, with so many examples learned and not taken back."""
        return n >= self._due and len(self._recent) >= FIRST_FIT

    def moved(self, prior: Hyperparameters) -> Hyperparameters:
        """Return the hyper-parameters in use, of which `prior` were given."""
        return prior if self.vector is None else prior.moved_to(self.vector)

    def postpone(self) -> None:
        """Wait until there are twice as many examples."""
        self._due *= 2

    def search(
        self,
        prior: Hyperparameters,
        d: int,
        m: int,
        *,
        standardise: Callable[[Array], Array],
        score: Score,
        is_informative: Callable[[Array], bool] | None = None,
        min_noise_variance: float = MIN_NOISE_VARIANCE,
    ) -> Array | None:
        """Return the vector of the hyper-parameters to go on with, None for those given.

        Fitted to the latest examples. They are taken if what each example was predicted to be by
        those before it is no worse with them than with those in use, and with those given: by a
        process with as many points as that of the learner.

        Parameters
        ----------
        prior
            The hyper-parameters that were given.
        d, m
            Number of features and of functions.
        standardise
            Makes of targets (n, m) those that hyper-parameters are about, (n, k).
        score
            How good a prediction of these is.
        is_informative
            Whether targets (n, k) say enough to be learned from, None for always; if not, the
            hyper-parameters in use stay.
        min_noise_variance
            Least noise variance that may be found.

        """
        X = np.array([padded(x, d) for _, x, _ in self._recent])
        Y = standardise(np.array([padded(y, m) for _, _, y in self._recent]))
        latest = slice(-MOST_EXAMPLES, None)
        if is_informative is not None and not is_informative(Y[latest]):
            return self.vector
        start = self.moved(prior)
        found = fit(start, prior, X[latest], Y[latest], criterion=self._criterion).vector
        found[-1] = max(found[-1], math.log(min_noise_variance))
        best, taken = -math.inf, self.vector
        for vector in (None, self.vector, found):
            these = prior if vector is None else prior.moved_to(vector)
            try:
                means, variances = self._predicted(these, X, Y)
            except NotPositiveDefiniteError:
                continue
            value = score(means, variances + these.noise_variance, Y)
            if value >= best:
                best, taken = value, vector
        return taken

    def _predicted(self, these: Hyperparameters, X: Array, Y: Array) -> tuple[Array, Array]:
        """Return what `predicted_before_learned` does, for a process with as many points."""
        if self._max_points is None or len(X) <= self._max_points:
            return predicted_before_learned(these, X, Y)
        gp = self._kind(these.kernel, these.noise_variance, self._max_points)
        means, variances = np.empty_like(Y), np.empty(len(Y))
        for _ in range(Y.shape[1]):
            gp.add_target()
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            means[i], variances[i] = gp.predict(x)
            gp.append(x, y)
        return means, variances

    def state(self) -> State | None:
        """Return what is no function of the examples, as plain JSON values; None for nothing."""
        if self._due == FIRST_FIT:
            return None
        return {"due": self._due, "vector": None if self.vector is None else self.vector.tolist()}

    def load_state(self, state: State) -> None:
        """Become what the state was taken from; the examples follow."""
        vector = state["vector"]
        self._due = int(state["due"])
        self.vector = None if vector is None else np.array(vector, dtype=float)


# --- Whether classes alternate, or come one after another.


_N_PARTS = 4
# Two labels of the same part differ with this probability if a quarter of them is not of its class.
# In a part of one class, of which an annotator gets one in five wrong (the prior mean of an
# annotator), it is at most .36: wrong labels do not pass for other classes.
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
