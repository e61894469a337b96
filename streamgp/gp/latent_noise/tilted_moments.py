"""Tilted moments of a decision function and of a label's noise, by quadrature.

A label `y`, -1 or +1, is the sign of `f + e`, where the noise `e` has the variance `exp(g)`. Both
`f` and `g` are latent. Given what all other labels tell about them, their means and variances with
this label follow from the derivatives of the logarithm of its probability. This module computes
these, and the Gaussian factors, called sites, that replace the label.

"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from streamgp.base import Array

Flags: TypeAlias = NDArray[np.bool_]

N_NODES = 96
"""Number of points at which the log noise variance is evaluated."""

_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# exp(g) and its products with finite numbers stay finite.
_LARGEST = 300.0
# Below this variance of `g`, derivatives by its mean and variance are those of the integrand, which
# has them where the noise is known. Above it they follow from the moments of the nodes: these are a
# distribution however far apart they lie, whereas derivatives between nodes go unseen.
_NARROW = 1e-4


def _quadrature(n: int) -> tuple[Array, Array]:
    """Nodes in standard deviations, and logarithms of weights, of a standard normal variable."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    return nodes, np.log(weights / weights.sum())


_NODES, _LOG_WEIGHTS = _quadrature(N_NODES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tilted:
    """Log probabilities of labels, and their derivatives with respect to the beliefs.

    Parameters
    ----------
    log_z
        Log probability of each label, in nats, shape (n,).
    by_means, by_variances
        Its derivatives with respect to the means and variances of `f` (first row) and `g`, shape
        (2, n).

    """

    log_z: Array
    by_means: Array
    by_variances: Array


def tilted(y: Array, means: Array, variances: Array) -> Tilted:
    """Return the log probabilities of labels and their derivatives.

    `Z = E[Phi(u)]` over the normal distribution of `g`, with `u = y m_f / s`, `s² = v_f + exp(g)`.
    `exp(g)` is a variance, as in Eqs. 5, 7 and 12 of the paper; the numbers in its Figure 1 take it
    for a standard deviation (.58 is Phi(1 / 5), .98 is Phi(1 / .5)).

    Parameters
    ----------
    y
        Labels, -1 or 1, shape (n,).
    means, variances
        Those of `f` (first row) and of `g` without these labels, shape (2, n).

    Examples
    --------
    >>> told = tilted(np.array([1.0]), np.array([[1.0], [0.0]]), np.array([[1.0], [0.0]]))
    >>> np.exp(told.log_z)  # Phi(1 / sqrt(2))
    array([0.76024994])

    References
    ----------
    [^1]: Hernández-Lobato, D., Sharmanska, V., Kersting, K., Lampert, C.H. and Quadrianto, N.,
        2014. Mind the nuisance: Gaussian process classification using privileged noise. NIPS,
        Eq. 12.

    """
    (m_f, m_g), (v_f, v_g) = means, variances
    nodes, log_weights = _NODES, _LOG_WEIGHTS
    if not v_g.any():
        nodes, log_weights = np.zeros(1), np.zeros(1)  # the noise is known
    g = m_g[:, None] + np.sqrt(v_g)[:, None] * nodes
    noise = np.exp(np.minimum(g, _LARGEST))
    s2 = v_f[:, None] + noise
    s = np.sqrt(s2)
    u = (y * m_f)[:, None] / s
    log_phi = log_ndtr(u)
    parts = log_phi + log_weights
    highest = parts.max(axis=1)
    p = np.exp(parts - highest[:, None])
    total = p.sum(axis=1)
    p /= total[:, None]
    log_z = highest + np.log(total)
    # phi(u) / Z at each node, with its weight: no difference of small numbers anywhere.
    h = np.exp(log_weights - 0.5 * u * u - _LOG_ROOT_TWO_PI - log_z[:, None])
    hu = h * u
    # By the mean E'[g - m] / v, and by the variance (E'[(g - m)²] - v) / 2v², where E' knows y.
    spread = np.maximum(v_g, _NARROW)
    first, second = np.vecdot(p, nodes), np.vecdot(p, nodes * nodes)
    by_g = np.array([first / np.sqrt(spread), 0.5 * (second - 1.0) / spread])
    narrow = v_g < _NARROW
    if narrow.any():
        # d²Phi(u)/dg² by du/dg = -u r / 2 and dr/dg = r (1 - r); half of it is the derivative by v.
        r = noise / s2
        curvature = 0.25 * r * r * (1.0 - u * u) - 0.5 * r * (1.0 - r)
        of_phi = np.array([-0.5 * (hu * r).sum(axis=1), 0.5 * (hu * curvature).sum(axis=1)])
        by_g = np.where(narrow, of_phi, by_g)
    return Tilted(
        log_z=log_z,
        by_means=np.array([y * (h / s).sum(axis=1), by_g[0]]),
        by_variances=np.array([-0.5 * (hu / s2).sum(axis=1), by_g[1]]),
    )


def flip_angles(means: Array, variances: Array) -> Array:
    """Return `E[atan(exp(g / 2))]` for normal `g`: pi times how often noise flips a sign.

    Noise of standard deviation `s` flips the sign of a number that is `N(0, 1)` with probability
    `atan(s) / pi` (Sheppard). Noise whose variance is known, and is the squared tangent of the
    angle, flips as many.

    Parameters
    ----------
    means, variances
        Those of `g`, shape (n,).

    Examples
    --------
    >>> angles = flip_angles(np.array([0.0, 3.0, 3.0]), np.array([9.0, 0.0, 9.0]))
    >>> np.round(angles / np.pi, 3), np.round(np.tan(angles) ** 2, 2)
    (array([0.25 , 0.43 , 0.382]), array([ 1.  , 20.09,  6.67]))

    """
    g = means[:, None] + np.sqrt(variances)[:, None] * _NODES
    angles: Array = np.arctan(np.exp(0.5 * np.minimum(g, _LARGEST))) @ np.exp(_LOG_WEIGHTS)
    return angles


def sites(told: Tilted, means: Array, variances: Array) -> tuple[Array, Array, Flags]:
    """Return the Gaussian factors that replace labels, and whether these are finite.

    With `alpha` and `beta` the derivatives by mean and variance, and `q = alpha² - 2 beta`, the
    label changes a mean by `v alpha` and a variance by `-v² q`. Precisions may be negative: a label
    can widen the belief about its noise.

    Parameters
    ----------
    told, means, variances
        What `tilted` returned, and its arguments.

    Returns
    -------
    Precisions `tau` and precisions times means `nu` of `f` and `g`, shape (2, n), and whether they
    are finite, shape (n,).

    Examples
    --------
    Noise of variance 1, which is known:

    >>> means, variances = np.array([[0.0], [0.0]]), np.array([[1.0], [0.0]])
    >>> tau, nu, _ = sites(tilted(np.array([1.0]), means, variances), means, variances)
    >>> tau[0], nu[0]  # q = 1 / pi and alpha = 1 / sqrt(pi)
    (array([0.46694221]), array([0.82763351]))

    References
    ----------
    [^1]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning,
        Eqs. 3.57 to 3.59.

    """
    alpha = told.by_means
    q = alpha * alpha - 2.0 * told.by_variances
    left = 1.0 - variances * q  # share of the variance that the label leaves
    ok: Flags = np.logical_and.reduce((left > 0.0) & np.isfinite(left))
    left = np.where(ok, left, 1.0)
    return q / left, (alpha + means * q) / left, ok
