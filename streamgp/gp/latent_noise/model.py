"""Labels with latent noise: prior, evidence of its hyperparameters, its gradient, and their fit.

The decision function has one kernel, over ordinary features. The log noise variance has another,
over privileged features, and a mean. Several one-against-all tasks may share them: evidences add
up.

"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from streamgp.base import Array, Preset, check_preset
from streamgp.gp.hyperparameters import maximum_a_posteriori
from streamgp.gp.latent_noise.batch_ep import Belief, Fixed, UnconvergedError, factor, propagate
from streamgp.gp.latent_noise.tilted_moments import Flags
from streamgp.gp.marginal_likelihood import embedded
from streamgp.kernels import Kernel
from streamgp.kernels.stationary import Radial


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelModel:
    """Prior of labels with latent noise.

    Parameters
    ----------
    kernel
        Covariance of the decision function `f`, whose mean is 0.
    privileged_kernel
        Covariance of the log noise variance `g` over privileged features; None if the noise is the
        same for all labels.
    noise_mean
        Mean of `g`.

    """

    kernel: Kernel
    privileged_kernel: Kernel | None
    noise_mean: float

    @property
    def vector(self) -> Array:
        """Hyperparameters: logarithms of those of the kernels, and the mean itself."""
        g = self.privileged_kernel
        return np.concatenate([self.kernel.theta, [] if g is None else g.theta, [self.noise_mean]])

    def moved_to(self, vector: Array) -> LabelModel:
        """Return a copy with other values."""
        n, g = len(self.kernel.theta), self.privileged_kernel
        return LabelModel(
            kernel=self.kernel.with_theta(vector[:n]),
            privileged_kernel=None if g is None else g.with_theta(vector[n:-1]),
            noise_mean=float(vector[-1]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledPoints:
    """Examples as arrays.

    Parameters
    ----------
    X
        Features, shape (n, d).
    X_privileged
        Privileged features, shape (n, p).
    known
        Whether an example has privileged features, shape (n,). The noise of an example without any
        is independent of all others.
    Y
        Labels of each task, -1 or 1, shape (m, n).

    """

    X: Array
    X_privileged: Array
    known: Flags
    Y: Array

    @classmethod
    def of(cls, X: Array, Y: Array, X_privileged: Array | None = None) -> LabelledPoints:
        """Return examples that all have privileged features, or none; `Y` may be (n,)."""
        n = len(X)
        P = np.zeros((n, 0)) if X_privileged is None else X_privileged
        known = np.full(n, X_privileged is not None)
        return cls(X=X, X_privileged=P, known=known, Y=np.atleast_2d(Y))


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Approximate log evidence of a model, and its gradient.

    Parameters
    ----------
    value
        Log probability of the labels of all tasks, in nats.
    gradient
        Its derivatives with respect to `LabelModel.vector`.
    fixed
        The fixed points it is computed from, one for each task.

    """

    value: float
    gradient: Array
    fixed: tuple[Fixed, ...]


def covariances(model: LabelModel, points: LabelledPoints) -> tuple[Array, Array]:
    """Prior covariances of `f` and of `g` at the examples, shape (n, n) each."""
    K_f = model.kernel.matrix(embedded(model.kernel, points.X))
    g = model.privileged_kernel
    if g is None:
        return K_f, np.zeros_like(K_f)
    return K_f, g.matrix(embedded(g, points.X_privileged)) * _together(points.known)


def explain(
    model: LabelModel,
    points: LabelledPoints,
    *,
    start: tuple[Fixed, ...] | None = None,
    tolerance: float = 1e-6,
) -> tuple[Fixed, ...]:
    """Return the fixed point of expectation propagation for each task.

    Parameters
    ----------
    model, points
        The prior, and the labelled examples.
    start
        Fixed points to start from; if they lead nowhere, the search starts over.
    tolerance
        As in `propagate`.

    Raises
    ------
    UnconvergedError
        If a task has none.

    """
    L_f, L_g = map(factor, covariances(model, points))
    found = []
    for i, y in enumerate(points.Y):
        begin = None if start is None else (start[i].tau, start[i].nu)
        try:
            one = propagate(L_f, L_g, model.noise_mean, y, start=begin, tolerance=tolerance)
        except UnconvergedError:
            if begin is None:
                raise
            one = propagate(L_f, L_g, model.noise_mean, y, tolerance=tolerance)
        found.append(one)
    return tuple(found)


def log_evidence(
    model: LabelModel,
    points: LabelledPoints,
    *,
    start: tuple[Fixed, ...] | None = None,
    tolerance: float = 1e-6,
) -> Evidence:
    """Return the log evidence of a model and its gradient.

    At a fixed point the factors do not contribute:
    `d log Z / d theta = tr[(b b' - R) dK/dtheta] / 2` with `b = nu - T mu` and `R = T - T Sigma T`,
    and `d log Z / d m0` is the sum of `b` of `g`. Multiplying `f` by a number is the same as adding
    to `m0`: `d log Z / d log theta_f`, for the variance of `f`, is `-d log Z / d m0`, so that one
    of them can be held fixed.

    Parameters
    ----------
    model, points, start, tolerance
        As in `explain`.

    Raises
    ------
    UnconvergedError
        If a task has no fixed point.

    Examples
    --------
    One label tells nothing about either:

    >>> from streamgp.kernels import SquaredExponential
    >>> model = LabelModel(kernel=SquaredExponential(), privileged_kernel=None, noise_mean=0.0)
    >>> points = LabelledPoints.of(np.zeros((1, 1)), np.ones(1))
    >>> found = log_evidence(model, points)
    >>> round(found.value, 6), np.abs(found.gradient).max() < 1e-6
    (-0.693147, np.True_)

    References
    ----------
    [^1]: Seeger, M., 2006. Expectation propagation for exponential families. Technical report,
        University of California, Berkeley.
    [^2]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning,
        Eq. 5.27.

    """
    fixed = explain(model, points, start=start, tolerance=tolerance)
    by_f = _weights([(one.f, one.tau[0], one.nu[0]) for one in fixed])
    rows = embedded(model.kernel, points.X)
    gradient = [0.5 * float(np.vdot(by_f, D)) for D in model.kernel.gradients(rows)]
    if model.privileged_kernel is not None:
        by_g = _weights([(one.g, one.tau[1], one.nu[1]) for one in fixed])
        by_g *= _together(points.known)
        gradient += [0.5 * float(np.vdot(by_g, D)) for D in _privileged(model, points)]
    by_mean = sum(float((one.nu[1] - one.tau[1] * one.g.means).sum()) for one in fixed)
    return Evidence(
        value=sum(one.log_evidence for one in fixed),
        gradient=np.array([*gradient, by_mean]),
        fixed=fixed,
    )


def _privileged(model: LabelModel, points: LabelledPoints) -> Iterator[Array]:
    kernel = model.privileged_kernel
    return iter(()) if kernel is None else kernel.gradients(embedded(kernel, points.X_privileged))


def _together(known: Flags) -> Array:
    """Return 1 where the noise of two labels is related, or the same, and 0 elsewhere."""
    together: Array = np.outer(known, known).astype(float)
    np.fill_diagonal(together, 1.0)
    return together


def _weights(beliefs: list[tuple[Belief, Array, Array]]) -> Array:
    """Sum of `b b' - R` over tasks."""
    total = np.zeros(2 * beliefs[0][1].shape)
    for belief, tau, nu in beliefs:
        b = nu - tau * belief.means
        VT = belief.half * tau
        total += np.outer(b, b) + VT.T @ VT
        total[np.diag_indices(len(b))] -= tau
    return total


# No logarithm of a hyperparameter, and no mean of the log noise variance, is searched farther from
# its start.
_FARTHEST = 6.0
# Precision of fixed points during the search; gradients are off by as much.
_TOLERANCE = 1e-5
# Cost, in nats, of not explaining labels at all.
_UNEXPLAINED = 10.0
# How many times as close to the labels as a fit plain GPC must be to replace it. Fits that take all
# labels of one class for noise have a closeness of about 0, others seldom less than half of GPC's.
_MUCH_CLOSER = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """Hyperparameters that are learned for labels with latent noise, and their priors.

    The amplitude of the decision function is always held fixed: multiplying it is the same as
    lowering the noise. So only a composite kernel has one that is learned; there the two share the
    change.

    Parameters
    ----------
    noise_mean
        Prior mean of the log noise variance. The decision function has a variance of 1.
    learns_noise
        Whether mean and amplitude of the log noise variance are learned.
    std
        Standard deviation of the prior of the logarithm of a hyperparameter.
    std_of_noise_mean
        The same for the mean of the log noise variance.

    """

    noise_mean: float
    learns_noise: bool
    std: float
    std_of_noise_mean: float


PRESETS: Mapping[Preset, Learned] = {
    # A noise variance of exp(-2) makes one label in nine wrong. For a length, and for a standard
    # deviation of the noise, a factor of e up or down is not unusual.
    "default": Learned(noise_mean=-2.0, learns_noise=True, std=1.0, std_of_noise_mean=2.0),
    # The paper learns only length scales: so it cannot learn how noisy labels are overall.
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
    """Return the model that explains labels best, near the prior, and its fit.

    Deterministic. Where expectation propagation has no fixed point, a model counts as explaining
    nothing. If privileged features depend on the label given, the best explanation can be that all
    labels of one class are noise. Then the decision function hardly depends on the labels, and the
    model returned is the best one whose noise hardly depends on privileged features.

    Parameters
    ----------
    start
        Where the search begins.
    points
        The labelled examples.
    preset
        `default`, or `paper`: amplitudes of 1, a log noise variance with mean 0, no prior of
        length scales. Without privileged features the noise variance is learned in both.
    n_evaluations
        Approximate upper limit of evaluations of the evidence.

    Raises
    ------
    UnconvergedError
        If not even the start explains the labels.

    Examples
    --------
    Labels without errors leave little room for noise:

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
            # Worse the farther it is from the last fixed point: the search turns back.
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
        maximum_a_posteriori(
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
        fixed = log_evidence(found, points, start=last.fixed).fixed
        return _unless_one_class_is_noise(found, fixed, start, prior, points, preset)
    except UnconvergedError:
        return start, first.fixed


def _unless_one_class_is_noise(
    found: LabelModel,
    fixed: tuple[Fixed, ...],
    start: LabelModel,
    prior: LabelModel,
    points: LabelledPoints,
    preset: Preset,
) -> tuple[LabelModel, tuple[Fixed, ...]]:
    """Return a fit, or that of GPC if its decision functions are much closer to the labels.

    The evidence prefers the former: a guess costs log 2, and only labels of one class are guesses.
    """
    g = prior.privileged_kernel
    if g is None or not PRESETS[preset].learns_noise or _lengths(g).all():
        return found, fixed
    closeness = _MUCH_CLOSER * _closeness([one.f.means for one in fixed], points.Y)
    if closeness >= _closeness(points.Y, points.Y):
        return found, fixed
    without, centre = (replace(one, privileged_kernel=None) for one in (start, prior))
    gpc, fixed_gpc = fit_labels(without, centre, points, preset=preset)
    if closeness >= _closeness([one.f.means for one in fixed_gpc], points.Y):
        return found, fixed
    least = g.with_theta(g.theta - np.where(_lengths(g), 0.0, _FARTHEST))
    gpc = replace(gpc, privileged_kernel=least)
    return gpc, explain(gpc, points)


def _closeness(means: Iterable[Array], Y: Array) -> float:
    """Sum over tasks of n times the covariance of the signs of decision functions and labels."""
    pairs = zip(means, Y, strict=True)
    return sum(float(np.sign(f) @ (y - y.mean())) for f, y in pairs)


def _free(model: LabelModel, learned: Learned) -> Flags:
    """Return which entries of the parameter vector are learned."""
    g = model.privileged_kernel
    by_g = np.zeros(0, dtype=bool) if g is None else _lengths(g) | learned.learns_noise
    return np.concatenate([_lengths(model.kernel), by_g, [g is None or learned.learns_noise]])


def _lengths(kernel: Kernel) -> Flags:
    """Return which hyperparameters are not amplitudes; in a composite kernel none is known."""
    free = np.ones(len(kernel.theta), dtype=bool)
    if isinstance(kernel, Radial):
        scale = kernel.length_scale
        free[len(scale) if isinstance(scale, Mapping) else 1] = False  # declared after the lengths
    return free
