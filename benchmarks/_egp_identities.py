"""What is true of the recursion whatever it learns: measured on the labels of a problem."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from benchmarks._egp_problems import Draw
from streamgp.base import Array
from streamgp.features import Columns
from streamgp.gp.expert_evidence import FittedExperts
from streamgp.gp.linear_experts import Experts
from streamgp.gp.random_features import RandomFeatures, median_distance
from streamgp.kernels import SquaredExponential

_N_LABELS, _N_TEST = 110, 200
_N_FREQUENCIES = 50
_SCALES = tuple(10.0 ** (c / 2.0) for c in range(-3, 4))  # as in the default preset


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """How far the recursion is from what it should be equal to, at most.

    Parameters
    ----------
    ridge
        Of its predictions from those of ridge regression of all labels at once, in units of the
        standard deviation of the targets.
    evidence
        Of the sum of its one-step log densities from the log marginal likelihood, as a share of
        that.

    """

    ridge: float
    evidence: float


def gaps(draw: Draw, seed: int) -> Gaps:
    """Learn with every expert of the default preset, fitted on the way, and compare."""
    events = [*draw.initial, *draw.stream][:_N_LABELS]
    y = np.array([y for _, y in events])
    y = (y - y.mean()) / y.std()
    columns = Columns(list(events[0][0]))
    points = np.array([columns.vector(x) for x, _ in events])
    unit = median_distance(columns, points)
    features = RandomFeatures(
        [SquaredExponential(scale) for scale in _SCALES], _N_FREQUENCIES, seed, unit
    )
    features.widen(columns)
    Phi = np.array([features(point) for point in points])
    Psi = np.array([features(columns.vector(x)) for x, _ in draw.test[:_N_TEST]])
    fitted = _fitted(Phi, y)
    experts, summed = _recursion(fitted, Phi, y)
    predicted = np.array([experts.see(psi).means[:, 0] for psi in Psi])
    found = [
        _batch(Phi[:, m], y, experts.amplitudes[m], experts.noise_variances[m])
        for m in range(Phi.shape[1])
    ]
    ridge = [
        np.abs(Psi[:, m] @ theta - predicted[:, m]).max() for m, (theta, _) in enumerate(found)
    ]
    evidence = [abs(a - b) / max(1.0, abs(b)) for a, (_, b) in zip(summed, found, strict=True)]
    return Gaps(ridge=float(max(ridge)), evidence=float(max(evidence)))


def _fitted(Phi: Array, y: Array) -> Experts:
    """Return experts with the hyper-parameters of largest evidence."""
    m, p = Phi.shape[1:]
    experts = FittedExperts(np.ones(m), np.full(m, 0.1), p)
    experts.add_target()
    for phi, target in zip(Phi, y, strict=True):
        experts.learn(experts.see(phi), np.array([target]))
    experts.fit(np.eye(1))
    return experts


def _recursion(fitted: Experts, Phi: Array, y: Array) -> tuple[Experts, Array]:
    """Learn one by one; return the experts, and the sum of their one-step log densities."""
    m, p = Phi.shape[1:]
    experts = Experts(fitted.amplitudes, fitted.noise_variances, p)
    experts.add_target()
    summed = np.zeros(m)
    for phi, target in zip(Phi, y, strict=True):
        seen = experts.see(phi)
        v = seen.variances + experts.noise_variances  # Eq. 6
        summed -= 0.5 * ((target - seen.means[:, 0]) ** 2 / v + np.log(2.0 * math.pi * v))
        experts.learn(seen, np.array([target]))
    return experts, summed


def _batch(Phi: Array, y: Array, amplitude: float, noise: float) -> tuple[Array, float]:
    """Return weights (p,) of ridge regression of all labels at once, and the log evidence.

    Least squares with `sqrt(r) I` below the features, where `r = noise / amplitude`. Normal
    equations and the covariance of the targets have twice as many digits of error.
    """
    n, p = Phi.shape
    r = noise / amplitude
    above = np.vstack([Phi, math.sqrt(r) * np.eye(p)])
    targets = np.concatenate([y, np.zeros(p)])
    Q, R = np.linalg.qr(above)
    theta = solve_triangular(R, Q.T @ targets)
    misfit = float(((targets - above @ theta) ** 2).sum()) / noise
    # det(noise I + amplitude Phi Phi') = noise^n det(Phi'Phi + r I) / r^p
    log_det = n * math.log(noise) + 2.0 * float(np.log(np.abs(np.diag(R))).sum()) - p * math.log(r)
    return theta, -0.5 * (misfit + log_det + n * math.log(2.0 * math.pi))  # GPML Eq. 2.30
