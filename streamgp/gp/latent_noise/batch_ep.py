"""Expectation propagation for labels with latent noise: all examples at once.

Each label is replaced by a Gaussian factor for the decision function `f` and one for the log noise
variance `g`, until all agree with the result of `tilted` for each label given the others. If the
noise is known, this is probit Gaussian process classification. For labels one by one see
`online_ep.py`; for the fit of the kernels `model.py`.

"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack, solve_triangular

from streamgp.base import Array
from streamgp.gp.latent_noise.tilted_moments import sites, tilted

# Share of a prior variance below which a direction cannot be told from rounding errors.
_RANK = 1e-11

# Half a step is the usual damping. 500 labels then need up to 160 sweeps; with whole steps half
# as many, and sometimes no number of sweeps is enough.
_DAMPING = 0.5
_MOST_SWEEPS = 500
_LEAST_STEP = 1e-3


class UnconvergedError(ArithmeticError):
    """Expectation propagation found no fixed point, or none that is valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """A Gaussian process at `n` points, and the evidence of Gaussian factors for it.

    Parameters
    ----------
    means, variances
        Those at the points, shape (n,).
    half
        `V` such that the posterior covariance is `V'V`, shape (r, n).
    log_norm
        Logarithm of the integral of all factors over the prior, except for their constants.

    """

    means: Array
    variances: Array
    half: Array
    log_norm: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """The fixed point of expectation propagation.

    Parameters
    ----------
    f, g
        Beliefs about the decision function and about the log noise variance.
    tau, nu
        Precisions of the factors, and products of these with their means, for `f` and `g`, shape
        (2, n).
    log_evidence
        Log probability of all labels, in nats; never above 0.
    n_sweeps
        How many times all factors were computed.

    """

    f: Belief
    g: Belief
    tau: Array
    nu: Array
    log_evidence: float
    n_sweeps: int


def factor(K: Array) -> Array:
    """Return `L` of shape (n, r) with `K = L L'`, for a matrix that may be singular.

    By Cholesky's method with pivoting: repeated points and smooth kernels have far fewer columns
    than rows, which is what makes a sweep cheap.

    Examples
    --------
    >>> factor(np.ones((3, 3)))
    array([[1.],
           [1.],
           [1.]])

    """
    largest = float(np.diagonal(K).max(initial=0.0))
    if largest <= 0.0:
        return np.zeros((len(K), 0))
    L, order, rank, _ = lapack.dpstrf(K, tol=_RANK * largest, lower=1)
    found = np.empty((len(K), rank))
    found[order - 1] = np.tril(L)[:, :rank]
    return found


def believe(L: Array, prior_mean: float, tau: Array, nu: Array) -> Belief | None:
    """Return the posterior of a process with factors at its points, None if there is none.

    Precisions may be negative, as long as the posterior covariance `(K⁻¹ + T)⁻¹` is positive. It is
    if and only if `I + L'TL` is. It is computed from that, which is symmetric, and not from
    `I + KT`.

    Parameters
    ----------
    L
        What `factor` returned, shape (n, r).
    prior_mean
        Mean of the process, the same everywhere.
    tau, nu
        Precisions of the factors, and products of these with their means, shape (n,).

    Examples
    --------
    >>> found = believe(np.array([[1.0]]), 0.0, tau=np.array([1.0]), nu=np.array([2.0]))
    >>> found.means, found.variances
    (array([1.]), array([0.5]))
    >>> believe(np.array([[1.0]]), 0.0, tau=np.array([-1.5]), nu=np.array([0.0])) is None
    True

    """
    B = (L.T * tau) @ L
    B[np.diag_indices(len(B))] += 1.0
    if not len(B):
        V, log_det = np.zeros((0, len(L))), 0.0
    else:
        C, info = lapack.dpotrf(B, lower=1)
        if info:
            return None
        log_det = 2.0 * float(np.log(np.diagonal(C)).sum())
        V = solve_triangular(C, L.T, lower=True, check_finite=False)
    pull = nu - tau * prior_mean
    moved = V @ pull
    # log of the integral of exp(nu'f - f'Tf / 2) over N(m0, K), with f = m0 + u.
    constant = prior_mean * float(nu.sum()) - 0.5 * prior_mean**2 * float(tau.sum())
    return Belief(
        means=prior_mean + V.T @ moved,
        variances=np.einsum("ij,ij->j", V, V),
        half=V,
        log_norm=0.5 * float(moved @ moved) - 0.5 * log_det + constant,
    )


def propagate(
    L_f: Array,
    L_g: Array,
    noise_mean: float,
    y: Array,
    *,
    start: tuple[Array, Array] | None = None,
    tolerance: float = 1e-6,
) -> Fixed:
    """Return the fixed point of expectation propagation.

    Parameters
    ----------
    L_f, L_g
        Factors of the prior covariances of `f` and `g` at the examples, shapes (n, r) and (n, q). A
        matrix without columns means that the noise is known: then this is the probit classifier.
    noise_mean
        Prior mean of `g`; that of `f` is 0.
    y
        Labels, -1 or 1, shape (n,).
    start
        Precisions of the factors, and products of these with their means, to start from; None for
        none.
    tolerance
        Largest change of a mean or variance in the last sweep.

    Raises
    ------
    UnconvergedError
        If no fixed point is found, or one at which labels have a probability above 1.

    Examples
    --------
    One label and known noise: the posterior is that of `tilted`, and the evidence is one half.

    >>> one, none = np.array([[1.0]]), np.zeros((1, 0))
    >>> found = propagate(one, none, 0.0, np.array([1.0]))
    >>> found.f.means, float(np.exp(found.log_evidence))
    (array([0.56418885]), 0.5)

    References
    ----------
    [^1]: Hernández-Lobato, D. et al., 2014. Mind the nuisance: Gaussian process classification
        using privileged noise. NIPS, §3.
    [^2]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning, Alg.
        3.5, of which this is a parallel form.

    """
    n = len(y)
    tau, nu = (np.zeros((2, n)), np.zeros((2, n))) if start is None else start
    beliefs = _beliefs(L_f, L_g, noise_mean, tau, nu)
    if beliefs is None:
        raise UnconvergedError("the factors to begin with leave no posterior; begin without any")
    for sweep in range(1, _MOST_SWEEPS + 1):
        means, variances = _cavities(beliefs, tau, nu)
        tau_wanted, nu_wanted, ok = sites(tilted(y, means, variances), means, variances)
        to_tau, to_nu = np.where(ok, tau_wanted - tau, 0.0), np.where(ok, nu_wanted - nu, 0.0)
        step = _DAMPING
        while True:
            tau_tried, nu_tried = tau + step * to_tau, nu + step * to_nu
            tried = _beliefs(L_f, L_g, noise_mean, tau_tried, nu_tried)
            if tried is not None:
                break
            step *= 0.5
            if step < _LEAST_STEP:
                raise UnconvergedError(f"no step leaves a posterior in sweep {sweep}")
        change = _change(beliefs, tried)
        beliefs, tau, nu = tried, tau_tried, nu_tried
        if change < tolerance and step == _DAMPING:
            return _fixed(beliefs, tau, nu, y, sweep)
    raise UnconvergedError(f"means and variances still change by {change:.2g}")


def _beliefs(
    L_f: Array, L_g: Array, noise_mean: float, tau: Array, nu: Array
) -> tuple[Belief, Belief] | None:
    """Both posteriors; None unless both exist, even without any single label."""
    f = believe(L_f, 0.0, tau[0], nu[0])
    g = None if f is None else believe(L_g, noise_mean, tau[1], nu[1])
    if f is None or g is None:
        return None
    left = 1.0 - np.array([f.variances, g.variances]) * tau
    return (f, g) if left.min(initial=1.0) > 1e-10 else None


def _cavities(beliefs: tuple[Belief, Belief], tau: Array, nu: Array) -> tuple[Array, Array]:
    """Means and variances without the factor of each label itself, shape (2, n)."""
    means = np.array([belief.means for belief in beliefs])
    variances = np.array([belief.variances for belief in beliefs])
    left = 1.0 - variances * tau  # GPML Eq. 3.56, times the variance
    return (means - variances * nu) / left, variances / left


def _change(before: tuple[Belief, Belief], after: tuple[Belief, Belief]) -> float:
    return max(
        float(np.abs(new - old).max(initial=0.0))
        for a, b in zip(before, after, strict=True)
        for old, new in ((a.means, b.means), (a.variances, b.variances))
    )


def _fixed(beliefs: tuple[Belief, Belief], tau: Array, nu: Array, y: Array, n_sweeps: int) -> Fixed:
    means, variances = _cavities(beliefs, tau, nu)
    # Integral of a factor over its cavity, except for its constant, which is such that
    # the integral is Z (GPML Eqs. 3.58 and 3.65).
    grown = 1.0 + variances * tau
    integrals = (
        -0.5 * np.log(grown)
        + (0.5 * variances * nu * nu + means * nu - 0.5 * means * means * tau) / grown
    )
    log_evidence = float(tilted(y, means, variances).log_z.sum() - integrals.sum())
    log_evidence += sum(belief.log_norm for belief in beliefs)
    if log_evidence > 0.0:
        raise UnconvergedError(f"labels cannot have a log probability of {log_evidence:.3g}")
    f, g = beliefs
    return Fixed(f=f, g=g, tau=tau, nu=nu, log_evidence=log_evidence, n_sweeps=n_sweeps)
