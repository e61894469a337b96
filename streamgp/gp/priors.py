"""What observations would have led to under another prior, from the posterior alone."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from streamgp.base import Array

# Share of the prior variance, in any direction, below which a posterior says nothing of what was
# observed: the digits that it would take to tell are lost.
_KNOWN_FOR_CERTAIN = 1e-9


def under_another_prior(
    K: Array, means: Array, S: Array, prior: Array, gain: float = 1.0
) -> tuple[Array, Array] | None:
    """Return the posterior of functions at some points, had their prior been another one.

    A posterior is the prior times what the observations say, of which the precision is `S⁻¹ - K⁻¹`
    and the mean, times the precision, is `S⁻¹ mean`. Both stay.

    Parameters
    ----------
    K
        Prior covariance then, shape (n, n).
    means, S
        Posterior means then, one row for each function (m, n), and their covariance (n, n).
    prior
        Prior covariance now; it may be singular.
    gain
        How many times more the observations are believed now.

    Returns
    -------
    Means and covariance now; None if posterior or prior are too certain to tell what was observed.

    Examples
    --------
    An observation of 1 with variance 1, under a prior variance of 1 and of 3:

    >>> one = np.array([[1.0]])
    >>> under_another_prior(one, 0.5 * one, 0.5 * one, 3.0 * one)
    (array([[0.75]]), array([[0.75]]))

    """
    try:
        L = cholesky(K, lower=True)
    except np.linalg.LinAlgError:
        return None
    half = solve_triangular(L, S, lower=True)
    share, U = np.linalg.eigh(_symmetric(solve_triangular(L, half.T, lower=True)))
    if not len(share) or share[0] < _KNOWN_FOR_CERTAIN:
        return None
    G = solve_triangular(L, U, lower=True, trans=1)
    # `R R'` is the precision of what was observed; a share above 1 is one, but for rounding.
    R = G * np.sqrt(gain * np.maximum(1.0 / share - 1.0, 0.0))
    KR = prior @ R
    # The prior, conditioned on it (GPML Eq. A.9).
    now = _symmetric(prior - KR @ np.linalg.solve(np.eye(len(R)) + R.T @ KR, KR.T))
    told = gain * (G / share) @ G.T
    # Function after function: the bits of one do not depend on how many there are.
    found = [np.vecdot(now, np.vecdot(told, mean)) for mean in means]
    return np.array(found).reshape(means.shape), now


def _symmetric(A: Array) -> Array:
    return 0.5 * (A + A.T)
