"""Gaussian process regressor that learns one example at a time.

Dictionaries and numbers in, a number or a normal distribution out; what is shared with the
classifier is in `gp_core.py`.

"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from river import base

from streamgp.base import Array, Features, State
from streamgp.common.normal import Normal
from streamgp.common.running_stats import Moments
from streamgp.gp.hyperparameters import Hyperparameters
from streamgp.kernels import Kernel
from streamgp.learners.gp_core import PROGRESS, FeatureGP, GPSettings
from streamgp.learners.river_adapters import (
    checked_target,
    feature_rows,
    labelled_rows,
    series_like,
    settings_of,
)

if TYPE_CHECKING:
    import pandas as pd


class GPRegressor(base.MiniBatchRegressor):
    """Gaussian process regressor that learns one example at a time.

    Far from everything it has learned it predicts the mean of the targets, with a large variance.
    Kernel and noise variance refer to targets of mean 0 and variance 1: those learned, less their
    current mean, divided by their current standard deviation. When these change, nothing has to be
    learned again. For features and memory, see `GPClassifier`. There is neither `window` nor
    `drift`: under concept drift use `EnsembleGPRegressor(forgetting=0.995)`.

    Parameters
    ----------
    kernel
        Covariance function. None stands for a squared exponential with unit variance and a length
        scale proportional to the square root of the number of features of the first example.
    noise_variance
        Variance of the observations around the function, as a share of that of all targets: used
        before the first fit, and the prior of each fit.
    max_points
        Largest number of examples retained; the others still count, but can be neither changed nor
        forgotten. None retains all (in configuration files "all").
    learn_hyperparameters
        Fit the kernel's parameters and the noise variance to the latest 512 examples whenever the
        number of examples has doubled, from 32 on; the given values serve as the prior. False keeps
        the given values, and predicted distributions are those of the process, not rescaled by past
        errors.
    single_precision
        Store the matrix of an exact process in half the memory and read it in half the time.

    Attributes
    ----------
    n_learned
        Number of examples learned and not forgotten, whether still retained or not.

    Examples
    --------
    >>> from streamgp import GPRegressor
    >>> model = GPRegressor(noise_variance=0.01)
    >>> for hour, temperature in [(0, 12.0), (1, 14.0), (2, 16.0)]:
    ...     model.learn_one({"hour": hour}, temperature)
    >>> model.predict_one({"hour": 1.5})
    15.3...
    >>> model.predict_one({"hour": 1.5}, with_dist=True)
    Normal(mu=15.3..., sigma=0.35...)
    >>> model.predict_one({"hour": 50.0}, with_dist=True)
    Normal(mu=14.0, sigma=1.64...)

    References
    ----------
    [^1]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning,
        Eqs. 2.25 and 2.26.

    """

    # _core     two functions that share one covariance: the targets, less the first of them, and 1.
    #           The posterior mean is linear in the targets: with both, any centre can be used
    # _origin   the first target
    # _moments  mean and variance of the targets, less the first one
    # _spread   ratio of squared errors to predicted variances, None if nothing is fitted
    def __init__(
        self,
        kernel: Kernel | None = None,
        noise_variance: float = 0.1,
        max_points: int | None = None,
        learn_hyperparameters: bool = True,
        single_precision: bool = False,
    ) -> None:
        self.kernel = kernel
        self.noise_variance = noise_variance
        self.max_points = max_points
        self.learn_hyperparameters = learn_hyperparameters
        self.single_precision = single_precision
        self._core = FeatureGP(settings_of(GPSettings, self))
        self._origin = 0.0
        self._moments = Moments()
        self._spread = PrequentialSpread() if learn_hyperparameters else None

    @property
    def n_learned(self) -> int:
        """Number of examples learned and not forgotten, whether still retained or not."""
        return self._core.n_learned

    @property
    def is_exact(self) -> bool:
        """Whether all examples that were learned and not forgotten are retained."""
        return self._core.is_exact

    @property
    def retains_all(self) -> bool:
        """Whether no example is ever dropped."""
        return self._core.retains_all

    @property
    def hyperparameters(self) -> Hyperparameters | None:
        """Kernel and noise variance in use, learned or given; None before the first example."""
        return self._core.hyperparameters

    @overload
    def predict_one(self, x: Features, *, with_dist: Literal[False] = False) -> float: ...
    @overload
    def predict_one(self, x: Features, *, with_dist: Literal[True]) -> Normal: ...

    def predict_one(self, x: Features, *, with_dist: bool = False) -> float | Normal:
        """Predict the target; 0 before the first one.

        Parameters
        ----------
        x
            Features.
        with_dist
            Return the distribution of an observation, noise included.

        Raises
        ------
        TypeError
            If a feature is neither a number nor a string.
        ValueError
            If a feature is infinite.

        """
        means, variance = self._core.predict(x)
        mu = 0.0 if means is None else self._value(self._moments.mean, *means.tolist())
        if not with_dist:
            return mu
        return Normal(mu=mu, sigma=self._sigma(variance, self._moments.std))

    def learn_one(self, x: Features, y: float, *, event_id: str | None = None) -> None:
        """Learn that the target of `x` is `y`; `event_id` makes it possible to change it later.

        Raises
        ------
        NotPositiveDefiniteError
            If the example is, up to rounding, determined by earlier ones: raise `noise_variance`.
        TypeError
            If a feature is neither a number nor a string, or the target is not a number.
        ValueError
            If a feature or the target is infinite, or the event id is already taken.

        """
        value = checked_target(y)
        origin = self._origin if self._moments.n else value
        core, spread = self._core, self._spread
        surprise = None if spread is None else self._surprise(x, value)
        core.append(x, _targets(value - origin), event_id)
        self._origin = origin
        self._moments.add(value - origin)
        if spread is not None and surprise is not None:
            spread.note(core.n_examples, surprise)
        if core.tune(self._standardised, _log_density) and spread is not None:
            spread.restart()

    def relabel_one(self, event_id: str, y: float) -> None:
        """Change the target of an example. Raises KeyError if it is not retained."""
        value, old = checked_target(y) - self._origin, self._core.targets(event_id)[0]
        self._core.relabel(event_id, _targets(value))
        self._moments.remove(float(old))
        self._moments.add(value)

    def forget_one(self, event_id: str) -> None:
        """Forget an example, exactly. Raises KeyError if it is not retained."""
        old = self._core.targets(event_id)[0]
        self._core.forget(event_id)
        self._moments.remove(float(old))

    def log_evidence(self) -> float:
        """Log marginal likelihood of all targets, centred on their mean, in nats.

        Examples
        --------
        >>> model = GPRegressor(noise_variance=0.5)
        >>> for hour, temperature in [(0, 12.0), (1, 14.0), (2, 16.0)]:
        ...     model.learn_one({"hour": hour}, temperature)
        >>> model.log_evidence()
        -5.75...

        """
        found = self._core.quadratic_forms()
        if found is None:
            return 0.0
        (yy, yo, oo), log_det = (found[0][0, 0], found[0][0, 1], found[0][1, 1]), found[1]
        c, s, n = self._moments.mean, self._moments.std, self._core.n_learned
        misfit = (yy - 2.0 * c * yo + c * c * oo) / (s * s)
        return -0.5 * float(misfit + log_det + n * math.log(2.0 * math.pi * s * s))

    def leave_one_out(self) -> dict[str, Normal]:
        """Return the distribution of each target as the others predict it, by event id.

        In closed form, in O(n³) for all of them; hyperparameters are those in use. Examples without
        an event id and those not retained are left out, as is the only example of all.

        Examples
        --------
        >>> model = GPRegressor(noise_variance=0.01)
        >>> for hour, temperature in enumerate([12.0, 14.0, 61.0, 18.0, 20.0]):
        ...     model.learn_one({"hour": hour}, temperature, event_id=str(hour))
        >>> model.leave_one_out()["2"]
        Normal(mu=16.0..., sigma=...)

        References
        ----------
        [^1]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning,
            Eq. 5.12.

        """
        if self._moments.n < 2:
            return {}
        found = {}
        for event_id, (means, variance, _) in self._core.leave_one_out().items():
            others = Moments.of(*self._moments.plain())
            others.remove(float(self._core.targets(event_id)[0]))
            found[event_id] = Normal(
                mu=self._value(others.mean, *means), sigma=self._sigma(variance, others.std)
            )
        return found

    # --- many at once

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Learn the rows of a data frame, one after the other."""
        for x, target in labelled_rows(X, y):
            self.learn_one(x, target)

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Predict the target for each row of a data frame.

        Faster than one by one while the regressor is exact, with equal results up to rounding.
        """
        means, _ = self._core.predict_many(feature_rows(X))
        if means is None:
            return series_like(X, [0.0] * len(X))
        mean = self._moments.mean
        return series_like(X, [self._value(mean, *row) for row in means.tolist()])

    # --- surviving a restart

    def state(self) -> State | None:
        """Return the state not determined by the examples, as for `GPClassifier`."""
        state, spread = self._core.state(), self._spread
        if spread is None or spread.n_examples == 0:
            return state
        return {**(state or {}), PROGRESS: {"spread": spread.state()}}

    def load_state(self, state: State | None) -> None:
        """Take over what `state` returned; this regressor has learned nothing yet."""
        if state is None:
            return
        rest = {name: value for name, value in state.items() if name != PROGRESS}
        self._core.load_state(rest or None)
        if self._spread is not None and PROGRESS in state:
            self._spread.load_state(state[PROGRESS]["spread"])

    # --- inside

    def _value(self, centre: float, mean: float, share: float) -> float:
        """Return a prediction from the posterior means of the targets and of 1."""
        # For targets less c it is mean - c share; what was subtracted is added back.
        return self._origin + (mean + centre * (1.0 - share))

    def _sigma(self, variance: float, scale: float) -> float:
        """Return the standard deviation of an observation from the latent variance."""
        share = variance + self._core.noise_variance
        if self._spread is not None:
            share *= self._spread.ratio
        return scale * math.sqrt(share)

    def _surprise(self, x: Features, value: float) -> float | None:
        """Return the squared error of a prediction over its variance, None if too little is known.

        The process solves for `x` here, and not again when it learns it.
        """
        if self._core.n_learned < _FEWEST or not self._moments.varies:
            return None
        means, variance = self._core.predict(x)
        if means is None:
            return None
        error = (value - self._value(self._moments.mean, *means.tolist())) / self._moments.std
        return error * error / (variance + self._core.noise_variance)

    def _standardised(self, Y: Array) -> Array:
        return (Y[:, :1] - self._moments.mean) / self._moments.std

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"noise_variance": 0.1}


# Mean and variance of fewer targets say little about the next one.
_FEWEST = 10

# Number of past predictions averaged over, and of fictitious ones before them whose errors were as
# large as expected.
_LATEST = 200
_EXPECTED = 10
# A single squared error, however large, counts as at most this many times what was expected.
_LARGEST_SURPRISE = 25.0
_LEAST_RATIO = 0.25


class PrequentialSpread:
    """Running ratio of the squared errors of a process's predictions to their variances.

    Attributes
    ----------
    ratio
        Mean of squared errors over predicted variances: the factor by which to multiply a variance.
    n_examples
        Number of examples when the last prediction was noted. Examples learned again after a
        restart are predicted with other hyperparameters, and are not noted again.

    Examples
    --------
    >>> spread = PrequentialSpread()
    >>> for n in range(1, 301):
    ...     spread.note(n, 4.0)
    >>> round(spread.ratio, 1)
    3.9

    References
    ----------
    [^1]: Dawid, A.P., 1984. Present position and potential developments: some personal views.
        Statistical theory: the prequential approach. JRSS A 147.

    """

    # _n  number of predictions since the hyperparameters changed
    def __init__(self) -> None:
        self.ratio = 1.0
        self._n = 0
        self.n_examples = 0

    def note(self, n_examples: int, surprise: float) -> None:
        """Record the squared error of a prediction over its variance.

        Parameters
        ----------
        n_examples
            Number of examples, including this one.
        surprise
            The ratio; 1 is expected.

        """
        if n_examples <= self.n_examples:
            return
        self.n_examples = n_examples
        self._n += 1
        step = min(surprise / self.ratio, _LARGEST_SURPRISE) - 1.0
        self.ratio *= 1.0 + step / min(_EXPECTED + self._n, _LATEST)
        self.ratio = max(self.ratio, _LEAST_RATIO)

    def restart(self) -> None:
        """Forget errors made with other hyperparameters."""
        self.ratio, self._n = 1.0, 0

    def state(self) -> State:
        """Return plain values from which `load_state` restores this object."""
        return {"ratio": self.ratio, "n": self._n, "n_examples": self.n_examples}

    def load_state(self, state: State) -> None:
        """Restore a state; the examples are learned after that."""
        self.ratio, self._n = float(state["ratio"]), int(state["n"])
        self.n_examples = int(state["n_examples"])


def _targets(value: float) -> Array:
    return np.array([value, 1.0])


def _log_density(means: Array, variances: Array, Y: Array) -> Array:
    """Log densities (n,) of targets as predicted before they were learned, up to a constant."""
    steps = Y - means
    squares = steps * steps / variances[:, None] + np.log(variances)[:, None]
    densities: Array = -0.5 * squares.sum(axis=1)
    return densities
