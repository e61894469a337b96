"""Hyper-parameters of labels with latent noise: type-II maximum likelihood, bounded in its cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from streamgp.base import Array, Preset, check_preset
from streamgp.gp.hyperparameters import most_probable
from streamgp.gp.latent_noise.batch_ep import Fixed, UnconvergedError
from streamgp.gp.latent_noise.model import LabelledPoints, LabelModel, log_evidence
from streamgp.gp.latent_noise.tilted_moments import Flags
from streamgp.kernels import Kernel
from streamgp.kernels.stationary import Radial

# No logarithm of a hyper-parameter, and no mean of the log noise variance, is sought farther from
# what was given.
_FARTHEST = 6.0
# Fixed points are found as precisely while searching; gradients are off by as much.
_TOLERANCE = 1e-5
# What it costs, in nats, not to explain labels at all.
_UNEXPLAINED = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """Hyperparameters of labels with latent noise, and their priors.

    The amplitude of the decision function is always held: multiplying it is the same as lowering
    the noise. So only a kernel with parts has one that is learned; there the two share the change.

    Parameters
    ----------
    noise_mean
        Mean of the log noise variance beforehand. The decision function has a variance of 1.
    learns_noise
        Whether mean and amplitude of the log noise variance are learned.
    std
        Standard deviation of what is expected of the logarithm of a hyper-parameter.
    std_of_noise_mean
        The same of the mean of the log noise variance.

    """

    noise_mean: float
    learns_noise: bool
    std: float
    std_of_noise_mean: float


PRESETS: Mapping[Preset, Learned] = {
    # A noise variance of exp(-2) makes one label in nine wrong. A factor of e up or down in a
    # length, and in a standard deviation of the noise, is nothing unusual.
    "default": Learned(noise_mean=-2.0, learns_noise=True, std=1.0, std_of_noise_mean=2.0),
    # The paper learns length scales alone: it cannot say how noisy labels are on the whole.
    "paper": Learned(noise_mean=0.0, learns_noise=False, std=math.inf, std_of_noise_mean=math.inf),
}


def fit_labels(
    start: LabelModel,
    prior: LabelModel,
    points: LabelledPoints,
    *,
    preset: Preset = "default",
    n_evaluations: int = 30,
) -> tuple[LabelModel, tuple[Fixed, ...]]:
    """Return the model that explains labels best, near what was expected beforehand, and its fit.

    Deterministic. Where expectation propagation has no fixed point, a model explains nothing.

    Parameters
    ----------
    start
        Where the search begins.
    prior
        What is expected without labels.
    points
        What was labelled.
    preset
        `default`, or `paper`: amplitudes of 1, a log noise variance with mean 0, no expectation of
        length scales. Without privileged features the noise variance is learned in both.
    n_evaluations
        How often the evidence is computed at most, roughly.

    Raises
    ------
    UnconvergedError
        If not even the start explains the labels.

    Examples
    --------
    Labels without an error leave little room for noise:

    >>> from streamgp.kernels import SquaredExponential
    >>> X = np.linspace(-2.0, 2.0, 40)[:, None]
    >>> model = LabelModel(kernel=SquaredExponential(), privileged_kernel=None, noise_mean=-2.0)
    >>> found, _ = fit_labels(model, model, LabelledPoints.of(X, np.sign(X[:, 0])))
    >>> round(found.noise_mean, 1)
    -3.6

    References
    ----------
    [^1]: Hernández-Lobato, D. et al., 2014. Mind the nuisance: Gaussian process classification
        using privileged noise. NIPS, §4.

    """
    check_preset(preset)
    first = last = log_evidence(start, points, tolerance=_TOLERANCE)
    where = start.vector

    def explained(vector: Array) -> tuple[float, Array]:
        nonlocal last, where
        try:
            tried = start.moved_to(vector)
            last = log_evidence(tried, points, start=last.fixed, tolerance=_TOLERANCE)
        except UnconvergedError:
            # Worse the farther it is from where there was a fixed point: the search turns back.
            off = vector - where
            return last.value - _UNEXPLAINED * (1.0 + float(off @ off)), -2.0 * _UNEXPLAINED * off
        where = vector.copy()
        return last.value, last.gradient

    centre, free = prior.vector, _free(prior, PRESETS[preset])
    std = np.full_like(centre, PRESETS[preset].std)
    std[-1] = PRESETS[preset].std_of_noise_mean
    reach = np.where(free, _FARTHEST, 0.0)
    begin = np.where(free, start.vector, centre)
    found = start.moved_to(
        most_probable(
            explained,
            begin,
            centre,
            std,
            (centre - reach, centre + reach),
            n_evaluations=n_evaluations,
            first_step=1.0,
        )
    )
    try:
        return found, log_evidence(found, points, start=last.fixed).fixed
    except UnconvergedError:
        return start, first.fixed


def _free(model: LabelModel, learned: Learned) -> Flags:
    """Return which entries of the parameter vector are learned."""
    g = model.privileged_kernel
    by_g = np.zeros(0, dtype=bool) if g is None else _lengths(g) | learned.learns_noise
    return np.concatenate([_lengths(model.kernel), by_g, [g is None or learned.learns_noise]])


def _lengths(kernel: Kernel) -> Flags:
    """Return which hyperparameters are no amplitude; of a kernel with parts none is known to be."""
    free = np.ones(len(kernel.theta), dtype=bool)
    if isinstance(kernel, Radial):
        scale = kernel.length_scale
        free[len(scale) if isinstance(scale, Mapping) else 1] = False  # declared behind the lengths
    return free
