"""Two ways to make experts that predict numbers predict classes.

Either each class is a target of 0 or 1 that is regressed upon, as in `GPClassifier`: cheap, since
all classes share one covariance, and fitted in closed form. Or each has a logistic likelihood of
its own. Both say what each expert believes of each class, and how much the expert counts.

"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit

from streamgp.base import Array, Features
from streamgp.gp.logistic_experts import LogisticExperts
from streamgp.learners.ensemble_core import EnsembleCore, RegressionCore, normalised
from streamgp.learners.ensemble_settings import EnsembleSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinions:
    """What experts believe of the classes of a point.

    Parameters
    ----------
    means
        In units of 0/1 indicators, shape (m, t).
    variances
        Of these, without observation noise, shape (m, t).
    prior_variances
        The same before anything was learned, shape (m,).

    """

    means: Array
    variances: Array
    prior_variances: Array


class ClassExperts(Protocol):
    """Experts that know classes by number."""

    @property
    def core(self) -> RegressionCore | EnsembleCore[LogisticExperts]:
        """The experts over dictionaries."""

    def add_class(self) -> None:
        """Add a class of which there was no example."""

    def opinions(self, x: Features) -> Opinions:
        """Return what the experts believe of the classes of `x`; changes nothing."""

    def learn(self, x: Features, y: Array) -> None:
        """Learn 0/1 indicators (t,) of a class."""

    def weights(self) -> list[float]:
        """Probability of each expert."""


class IndicatorExperts:
    """Regression on 0/1 indicators, one for each class, all with one covariance.

    Parameters
    ----------
    settings
        How the learner was built.

    """

    def __init__(self, settings: EnsembleSettings) -> None:
        self.core = RegressionCore(settings)

    def add_class(self) -> None:
        """Add a class of which there was no example."""
        self.core.add_target()
        # Of one class alone there is no noise to be found, and no length scale.
        self.core.fit_anew()

    def opinions(self, x: Features) -> Opinions:
        """Return what the experts believe of the classes of `x`; changes nothing."""
        experts, seen = self.core.experts, self.core.see(x)
        means = seen.means
        return Opinions(
            means=means,
            variances=np.broadcast_to(seen.variances[:, None], means.shape),
            prior_variances=experts.amplitudes,
        )

    def learn(self, x: Features, y: Array) -> None:
        """Learn 0/1 indicators (t,) of a class."""
        self.core.learn(x, y)
        self.core.fit_if_due(np.eye(len(y)))

    def weights(self) -> list[float]:
        """Probability of each expert."""
        experts = self.core.experts
        return normalised(experts.log_evidences(np.eye(experts.n_targets)).tolist())


class LogisticClassExperts:
    """Logistic likelihoods, one for each class against the others.

    Parameters
    ----------
    settings
        How the learner was built.

    """

    def __init__(self, settings: EnsembleSettings) -> None:
        self.core = EnsembleCore(settings, _Build(settings.forgetting))

    def add_class(self) -> None:
        """Add a class of which there was no example."""
        self.core.add_target()

    def opinions(self, x: Features) -> Opinions:
        """Return what the experts believe of the classes of `x`; changes nothing."""
        experts, seen = self.core.experts, self.core.see(x)
        p = experts.probabilities(seen)[:-1]
        share = p / np.maximum(p.sum(axis=0), 1e-300)
        # To first order a probability varies by the slope of the sigmoid; it cannot vary by more
        # than one of 0 or 1 does.
        yes = expit(seen.means[:-1])
        slope = yes * (1.0 - yes)
        return Opinions(
            means=share.T,
            variances=np.minimum(slope * slope * seen.variances[:-1], slope).T,
            prior_variances=np.minimum(experts.amplitudes / 16.0, 0.25),
        )

    def learn(self, x: Features, y: Array) -> None:
        """Learn 0/1 indicators (t,) of a class."""
        self.core.learn(x, y)

    def weights(self) -> list[float]:
        """Probability of each expert."""
        return normalised(self.core.experts.log_likelihoods.tolist())


@dataclass(frozen=True, slots=True)
class _Build:
    """Makes logistic experts; an object, since functions inside of functions cannot be pickled."""

    forgetting: float

    def __call__(self, amplitudes: Array, n_features: int) -> LogisticExperts:
        return LogisticExperts(amplitudes, n_features, self.forgetting)


# People err: one label in a hundred may be wrong, however well all so far can be explained.
LEAST_NOISE_SHARE = 0.01

# The latent functions are log odds: a standard deviation of 4 makes probabilities from .02 to .98
# as probable beforehand as not.
LOGISTIC_AMPLITUDE = 16.0
