"""Pool criteria of Kotova and Panov, corrected.

`f` is the function learned so far, `f_t^u` what it would become if point `u` had the label `t` that
changes it least. A criterion measures `f_t^u`, or its distance from `f`; the larger, the better.
All criteria follow from the posterior at the pool in closed form, without learning anything.

The formulas are theirs, with labels of -1 and +1, except for these lines of their document:

* What they write as `y' K y` is `y' K⁻¹ y`, the square of a norm. The criteria RKHS
and Hvar are made of squared norms, too; as printed, they mix norms with squares.
* In the second line of the RKHS chain `a / b` is one factor too much; its last term is
  `t² / (b - a' K⁻¹ a)`. In the fourth line `y(u)` is `t`.
* `t` is never defined. It is the label of smaller norm, hence the sign of `f(u)`.
* `(1 - t f(u))²` of Hvar grows again where `|f(u)| > 2`: the surest points would be asked about. It
  is 0 here where `|f(u)| > 1`.
* In l2fm (printed 12fm) the vector `a` of `v` stands on the left and that of `u` on the right of
  `K⁻¹`.

With more than two classes there is a function for each, +1 for its own and -1 for the others. They
share the covariance, and `t` is +1 for the class predicted. Squares are summed over the classes;
two classes have twice the squares of the document, which makes no difference to what is largest.

"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamgp.base import Array

Mask: TypeAlias = NDArray[np.bool_]


class JointBelief(Protocol):
    """Protocol of a joint belief about several points; a `PoolPosterior` is one."""

    @property
    def functions(self) -> Array:
        """Posterior means of the functions, whose codes are -1 and +1, shape (m, P)."""

    @property
    def covariances(self) -> Array:
        """Posterior covariances of the points, noise not included, shape (P, P)."""

    @property
    def variances(self) -> Array:
        """Posterior variance of an observation at each point, noise included, shape (P,)."""

    @property
    def square_norms(self) -> Array:
        """`y' Γ y` of each function, shape (m,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """Joint belief of a learner of indicators, in the terms of the criteria.

    Attributes
    ----------
    functions, covariances, variances
        As in `JointBelief`.
    square_norms
        Zeros: as they are the same for all points, they change no order.

    """

    functions: Array
    covariances: Array
    variances: Array
    square_norms: Array

    @classmethod
    def of_indicators(cls, means: Array, covariances: Array, noise_variance: float) -> Self:
        """Turn functions that were 1 or 0 where they were observed into functions of +1 and -1.

        Wherever something was learned, the indicators of all classes sum to 1. What is linear in
        the targets is linear in the functions: `F_k = 2 M_k - sum over j of M_j`.

        Parameters
        ----------
        means
            Posterior means of the indicators, shape (P, m). Before the first class, with m = 0,
            there is one function of zeros.
        covariances
            Posterior covariances, noise not included, shape (P, P).
        noise_variance
            Variance of the observation noise.

        Examples
        --------
        >>> means = np.array([[0.6, 0.2], [0.0, 0.0]])
        >>> Joint.of_indicators(means, np.eye(2), noise_variance=0.5).functions
        array([[ 0.4,  0. ],
               [-0.4,  0. ]])

        """
        M = means.T
        functions = 2.0 * M - M.sum(axis=0) if len(M) else np.zeros((1, len(means)))
        return cls(
            functions=functions,
            covariances=covariances,
            variances=covariances.diagonal() + noise_variance,
            square_norms=np.zeros(len(functions)),
        )


Criterion: TypeAlias = Callable[[JointBelief, Mask], Array]
"""Function of the posterior and a mask (P,) of unlabelled points that scores each point."""


def assumed(functions: Array) -> Array:
    """Return the labels of smallest norm, as codes of -1 and +1, for functions (m, P).

    For one function its sign, +1 where it is 0. For several functions +1 for the largest, the first
    if two are equal, and -1 for the others.

    Examples
    --------
    >>> assumed(np.array([[0.7, 0.0, -0.2]]))
    array([[ 1.,  1., -1.]])
    >>> assumed(np.array([[0.7, -0.5], [-0.9, -0.1], [-0.8, -0.4]]))
    array([[ 1., -1.],
           [-1.,  1.],
           [-1., -1.]])

    """
    if len(functions) == 1:
        return np.where(functions >= 0.0, 1.0, -1.0)
    codes = np.full(functions.shape, -1.0)
    codes[functions.argmax(axis=0), np.arange(functions.shape[1])] = 1.0
    return codes


def shortfalls(functions: Array) -> Array:
    """How far the functions fall short of the assumed labels, `1 - t f(u)`, shape (m, P).

    That is `|1 - |f(u)||` for one function, with its sign; negative where `f` exceeds the label.
    """
    return 1.0 - assumed(functions) * functions


def rand(posterior: JointBelief, unlabelled: Mask) -> Array:  # noqa: ARG001
    """Give all points the same score; the caller breaks ties at random."""
    return np.zeros(len(posterior.covariances))


def mvar(posterior: JointBelief, unlabelled: Mask) -> Array:  # noqa: ARG001
    """Posterior variance of an observation, `s2(u)`."""
    return posterior.variances


def rkhs(posterior: JointBelief, unlabelled: Mask) -> Array:  # noqa: ARG001
    """Squared norm of `f_t^u`: `y' Γ y + (1 - |f(u)|)² / s2(u)`."""
    squares = np.square(shortfalls(posterior.functions)).sum(axis=0)
    found: Array = posterior.square_norms.sum() + squares / posterior.variances
    return found


def hvar(posterior: JointBelief, unlabelled: Mask) -> Array:  # noqa: ARG001
    """Return the growth of the squared norm, times the variance: `max(0, 1 - |f(u)|)²`."""
    found: Array = np.square(np.maximum(shortfalls(posterior.functions), 0.0)).sum(axis=0)
    return found


def l2fm(posterior: JointBelief, unlabelled: Mask) -> Array:
    """Euclidean distance of `f_t^u` from `f` at the points without a label.

    `|1 - |f(u)|| / s2(u) * sqrt(sum over v of c(u, v)²)`.
    """
    squares = np.square(shortfalls(posterior.functions)).sum(axis=0)
    C = posterior.covariances
    reach = np.einsum("uv,uv,v->u", C, C, unlabelled.astype(float))
    found: Array = np.sqrt(squares * reach) / posterior.variances
    return found


CRITERIA: Mapping[str, Criterion] = {
    "rand": rand,
    "mvar": mvar,
    "rkhs": rkhs,
    "hvar": hvar,
    # The document computes the same in two ways: sqsm fits `f_t^u` again for each candidate.
    "sqsm": l2fm,
    "l2fm": l2fm,
}
"""The criteria by the names used in the document, in lower case."""
