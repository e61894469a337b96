"""Predictive distributions with lighter tails than normal ones.

Where targets are bounded, a normal distribution of the right variance reaches beyond the bounds:
its intervals cover too much. Two normal parts, at equal distances on both sides of the mean, have
the same variance and lighter tails. Whether they fit better is tested as targets arrive.

"""

from __future__ import annotations

import math
from dataclasses import dataclass

from streamgp.common.normal import GaussianMixture

# Three quarters of the variance come from the distance of the parts from the mean: a kurtosis of
# 1.9, where that of a uniform distribution is 1.8 and that of a normal one 3.
_DISTANCE = math.sqrt(0.75)
_WIDTH = 0.5
# One target in twenty is taken to follow the normal distribution, so that an outlier costs little.
_STRAY = 0.05
# A test at the 1 % level, valid at any time (Ville's inequality).
_EVIDENCE = math.log(100.0)
# Adaptive conformal inference: steps of the logarithm of the factor, towards intervals that cover
# 95 %. It only narrows: whether variances are too small was not tested.
_STEP = 0.02
_OUTSIDE = 0.05
_LEAST_FACTOR = 0.5
# Further away, all densities but that of a stray target are 0.
_FURTHEST = 40.0
_ROOT_2 = math.sqrt(2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LightTailedMixture(GaussianMixture):
    """A mixture in which each normal distribution is split in two, except for a stray share.

    Parameters
    ----------
    factor
        Factor of the standard deviations of the split ones.

    Examples
    --------
    >>> normal = GaussianMixture(weights=(1.0,), mus=(0.0,), sigmas=(1.0,))
    >>> light = LightTailedMixture(weights=(1.0,), mus=(0.0,), sigmas=(1.0,), factor=1.0)
    >>> light.sigma, 1.0 - light.cdf(1.96), 1.0 - normal.cdf(1.96)
    (1.0, 0.0080..., 0.0249...)

    """

    factor: float

    @property
    def parts(self) -> list[tuple[float, float, float]]:
        """Weight, mean and standard deviation of each normal part."""
        parts = []
        for w, mu, sigma in zip(self.weights, self.mus, self.sigmas, strict=True):
            half, scaled = 0.5 * (1.0 - _STRAY) * w, self.factor * sigma
            distance, width = _DISTANCE * scaled, _WIDTH * scaled
            parts += [
                (_STRAY * w, mu, sigma),
                (half, mu - distance, width),
                (half, mu + distance, width),
            ]
        return parts


class LightTails:
    """Test of whether prediction errors have lighter tails than normal ones.

    The evidence is the product, over the targets, of the density under the split distribution
    divided by that under the predicted one. If predictions are right, the probability that it ever
    exceeds 100 is at most 1 %. Distributions are split only while it does.

    Parameters
    ----------
    forgetting
        Share of the log evidence so far that is kept whenever a target arrives.

    Attributes
    ----------
    log_evidence
        Logarithm of the evidence, in nats.
    factor
        Factor of the standard deviations that makes central intervals of split distributions cover
        95 % of the targets; at most 1.

    Examples
    --------
    >>> tails = LightTails()
    >>> predicted = GaussianMixture(weights=(1.0,), mus=(0.0,), sigmas=(1.0,))
    >>> for y in [-1.0, 1.0] * 10:
    ...     tails.learn(0.0, 1.0, y)
    >>> tails.log_evidence, tails.factor, tails.shaped(predicted) is predicted
    (9.00..., 0.98..., False)

    References
    ----------
    [^1]: Ramdas, A., Grünwald, P., Vovk, V. and Shafer, G., 2023. Game-theoretic statistics and
        safe anytime-valid inference. Statistical Science 38(4).
    [^2]: Gibbs, I. and Candès, E., 2021. Adaptive conformal inference under distribution shift.
        NeurIPS.

    """

    def __init__(self, forgetting: float = 1.0) -> None:
        self._forgetting = forgetting
        self.log_evidence = 0.0
        self.factor = 1.0

    def shaped(self, predicted: GaussianMixture) -> GaussianMixture:
        """Return a prediction, with light tails if the evidence calls for them."""
        if self.log_evidence <= _EVIDENCE:
            return predicted
        return LightTailedMixture(
            weights=predicted.weights,
            mus=predicted.mus,
            sigmas=predicted.sigmas,
            factor=self.factor,
        )

    def learn(self, mu: float, sigma: float, y: float) -> None:
        """Learn a target for which this mean and standard deviation were predicted."""
        z = abs(y - mu) / sigma
        if not z < _FURTHEST:
            z = _FURTHEST
        near, far = (z / self.factor - _DISTANCE) / _WIDTH, (z / self.factor + _DISTANCE) / _WIDTH
        densities = math.exp(0.5 * (z * z - near * near)) + math.exp(0.5 * (z * z - far * far))
        ratio = 0.5 * densities / (_WIDTH * self.factor)
        self.log_evidence *= self._forgetting
        self.log_evidence += math.log((1.0 - _STRAY) * ratio + _STRAY)
        # Twice the probability of a target further from the mean on the same side.
        above = 0.5 * (1.0 - _STRAY) * (math.erfc(near / _ROOT_2) + math.erfc(far / _ROOT_2))
        above += _STRAY * math.erfc(z / _ROOT_2)
        is_outside = above < _OUTSIDE
        factor = self.factor * math.exp(_STEP * (is_outside - _OUTSIDE))
        self.factor = min(1.0, max(_LEAST_FACTOR, factor))
