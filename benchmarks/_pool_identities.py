"""The closed forms against what they stand for: each candidate learned anew, by dense solves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks._pool_problems import NOISE_VARIANCE, Draw
from streamgp.base import Array
from streamgp.gp.joint_posterior import PoolPosterior
from streamgp.query.pool_criteria import assumed, hvar, l2fm, rkhs


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """Largest differences between two ways to compute the same, as shares of its largest value.

    Parameters
    ----------
    update
        Functions and covariances of the pool: label by label, and by one solve.
    l2fm
        The closed form, and sqsm: the distance of each refit from the function before.
    rkhs
        The closed form, and the squared norm of each refit.
    two_classes
        Scores of hvar, rkhs and l2fm for two functions, and for the one of the document.

    """

    update: float
    l2fm: float
    rkhs: float
    two_classes: float

    @property
    def largest(self) -> float:
        """The largest of them."""
        return max(self.update, self.l2fm, self.rkhs, self.two_classes)


def gaps(draw: Draw, told: Sequence[int]) -> Gaps:
    """Measure the differences on one pool with these labels, whatever its classes are."""
    told = list(told)
    codes = np.where(draw.y[told, None] == np.arange(draw.n_classes), 1.0, -1.0)
    K = draw.K[: len(draw.X)]
    posterior = _taught(K, told, codes)
    f, C, _ = _solved(K, told, codes)
    unlabelled = np.ones(len(K), dtype=bool)
    unlabelled[told] = False
    candidates = np.flatnonzero(unlabelled)
    expected = assumed(f)
    refits = [_solved(K, [*told, u], np.vstack([codes, expected[:, u]])) for u in candidates]
    distances = np.array([np.linalg.norm((g - f)[:, unlabelled]) for g, _, _ in refits])
    norms = np.array([norm for _, _, norm in refits])
    return Gaps(
        update=max(_gap(posterior.functions, f), _gap(posterior.covariances, C)),
        l2fm=_gap(l2fm(posterior, unlabelled)[candidates], distances),
        rkhs=_gap(rkhs(posterior, unlabelled)[candidates], norms),
        two_classes=_gap_of_two_classes(K, told, codes[:, :1]),
    )


def _gap_of_two_classes(K: Array, told: list[int], codes: Array) -> float:
    one, two = _taught(K, told, codes), _taught(K, told, np.hstack([codes, -codes]))
    everywhere = np.ones(len(K), dtype=bool)
    return max(
        _gap(criterion(two, everywhere), factor * criterion(one, everywhere))
        for criterion, factor in ((hvar, 2.0), (rkhs, 2.0), (l2fm, 2.0**0.5))
    )


def _taught(K: Array, told: list[int], codes: Array) -> PoolPosterior:
    posterior = PoolPosterior(K.copy(), NOISE_VARIANCE)
    for _ in range(codes.shape[1] - 1):
        posterior.add_function()
    for i, code in zip(told, codes, strict=True):
        posterior.learn(i, code)
    return posterior


def _solved(K: Array, told: list[int], codes: Array) -> tuple[Array, Array, float]:
    """Return functions (m, P), covariances (P, P) and the sum of the squared norms."""
    gram = K[np.ix_(told, told)] + NOISE_VARIANCE * np.eye(len(told))
    a, m = K[told], codes.shape[1]
    solved = np.linalg.solve(gram, np.hstack([codes, a]))
    return solved[:, :m].T @ a, K - a.T @ solved[:, m:], float((codes * solved[:, :m]).sum())


def _gap(found: Array, expected: Array) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())
