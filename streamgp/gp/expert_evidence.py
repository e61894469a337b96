"""Sufficient statistics of experts, and the amplitude and noise with the largest evidence.

Bayesian linear models need not keep examples: the effect of hyperparameters on them follows from
`Phi'Phi`, `Phi'Y` and `Y'Y`, which do not depend on the hyperparameters.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamgp.base import Array
from streamgp.gp.arrays import enlarged
from streamgp.gp.linear_experts import Experts, Seen

# Rows of features that are added together, which is thirty times as fast as one by one.
_WAITING = 64

MIN_NOISE_SHARE = 1e-4
"""Default of the least noise variance that is found, as a share of that of the targets."""

# Range of noise variance divided by amplitude that is searched.
_RATIOS = np.logspace(-8.0, 3.0, 45)
_ZOOMS = 4


class Statistics:
    """`Phi'Phi`, `Phi'Y` and `Y'Y` of the examples of several experts.

    Parameters
    ----------
    m, n_features
        Number of experts, and number of features of each.
    forgetting
        Factor by which the weight of an example falls with each one learned after it.
    least_noise_share
        Least noise variance that may be found, as a share of the mean square of the targets.

    Attributes
    ----------
    n
        Number of examples; with forgetting the sum of their weights.

    """

    # _A, _B, _yy       the sums, (m, p, p), (m, p, t) and (t, t), without what waits
    # _rows, _targets   features and targets that wait, in the order learned
    # _spectrum         eigenvalues and -vectors of _A at the last fit, None after new examples
    def __init__(
        self,
        m: int,
        n_features: int,
        forgetting: float = 1.0,
        least_noise_share: float = MIN_NOISE_SHARE,
    ) -> None:
        self._least_noise_share = least_noise_share
        self._forgetting = forgetting
        self._A = np.zeros((m, n_features, n_features))
        self._B = np.zeros((m, n_features, 0))
        self._yy = np.zeros((0, 0))
        self._rows: list[Array] = []
        self._targets: list[Array] = []
        self._spectrum: tuple[Array, Array] | None = None
        self.n = 0.0

    def add_target(self) -> None:
        """Add a target that has been 0 so far."""
        self._fold()
        m, p, t = self._B.shape
        self._B = enlarged(self._B, (m, p, t + 1))
        self._yy = enlarged(self._yy, (t + 1, t + 1))

    def keep(self, kept: Sequence[int]) -> None:
        """Drop the sums of all experts except these."""
        self._fold()
        self._A, self._B = self._A[kept], self._B[kept]
        if self._spectrum is not None:
            a, Q = self._spectrum
            self._spectrum = a[kept], Q[kept]

    def note(self, features: Array, y: Array) -> None:
        """Add an example: features (m, p) and targets (t,)."""
        self._spectrum = None
        self._rows.append(features)
        self._targets.append(y)
        self.n = self._forgetting * self.n + 1.0
        if len(self._rows) == _WAITING:
            self._fold()

    def fit(self, experts: Experts, directions: Array) -> bool:
        """Give experts the hyperparameters of largest evidence, and the resulting posteriors.

        Targets that are all the same tell nothing about their spread: nothing changes then, and the
        result is False.

        Parameters
        ----------
        experts
            They have learned the same examples, and are updated to what they would be if they had
            learned them with the new hyperparameters.
        directions
            What hyperparameters are judged by: combinations of the targets, shape (t, k).

        """
        self._fold()
        if self._spectrum is None:
            self._spectrum = np.linalg.eigh(self._A)
        a, Q = self._spectrum
        # Rounding can leave slightly less than 0.
        a = np.maximum(a, 0.0)
        C = np.matmul(Q.transpose(0, 2, 1), self._B)
        curve = _Evidence(
            a=a,
            c=((C @ directions) ** 2).sum(axis=2),
            yy=float(np.trace(directions.T @ self._yy @ directions)),
            n=self.n,
            k=directions.shape[1],
            least_noise_share=self._least_noise_share,
        )
        if curve.yy <= 0.0:
            return False
        ratios = curve.best()
        noise = curve.noise_variances(ratios[:, None])[:, 0]
        shrunk = a + ratios[:, None]
        experts.noise_variances = noise
        experts.amplitudes = noise / ratios
        roots = Q * np.sqrt(noise[:, None] / shrunk)[:, None, :]
        experts.covariances.become(roots, experts.amplitudes)
        weights = C / shrunk[:, :, None]
        experts.theta = np.ascontiguousarray(np.matmul(Q, weights).transpose(0, 2, 1))
        explained = np.matmul(C.transpose(0, 2, 1), weights)
        experts.quadratic_forms = (self._yy - explained) / noise[:, None, None]
        experts.log_dets = self.n * np.log(noise) + np.log1p(a / ratios[:, None]).sum(axis=1)
        experts.n = self.n
        return True

    def _fold(self) -> None:
        """Add the rows that wait."""
        if not self._rows:
            return
        b = len(self._rows)
        Phi, Y = np.stack(self._rows, axis=1), np.array(self._targets)
        before = self._forgetting**b
        shares = self._forgetting ** np.arange(b - 1.0, -1.0, -1.0)
        weighted = Phi.transpose(0, 2, 1) * shares
        self._A *= before
        self._A += np.matmul(weighted, Phi)
        self._B *= before
        self._B += np.matmul(weighted, Y)
        self._yy *= before
        self._yy += (shares * Y.T) @ Y
        self._rows, self._targets = [], []


class FittedExperts(Experts):
    """Experts that can be given the hyperparameters with the largest evidence at any time.

    Parameters
    ----------
    amplitudes, noise_variances, n_features, forgetting
        As in `Experts`.
    least_noise_share
        As in `Statistics`.

    """

    # _statistics  those of the examples learned, None if no fit will follow
    def __init__(
        self,
        amplitudes: Array,
        noise_variances: Array,
        n_features: int,
        forgetting: float = 1.0,
        least_noise_share: float = MIN_NOISE_SHARE,
    ) -> None:
        super().__init__(amplitudes, noise_variances, n_features, forgetting)
        self._statistics: Statistics | None = Statistics(
            len(amplitudes), n_features, forgetting, least_noise_share
        )

    def add_target(self) -> None:
        super().add_target()
        if self._statistics is not None:
            self._statistics.add_target()

    def learn(self, seen: Seen, y: Array) -> None:
        super().learn(seen, y)
        if self._statistics is not None:
            self._statistics.note(seen.features, y)

    def fit(self, directions: Array) -> bool:
        """Switch to the hyperparameters with the largest evidence, and the resulting posteriors.

        False if there are none, as the targets are all the same or no more fits follow.

        Parameters
        ----------
        directions
            What hyperparameters are judged by: combinations of the targets, shape (t, k).

        """
        return self._statistics is not None and self._statistics.fit(self, directions)

    def keep(self, kept: Sequence[int], directions: Array) -> None:
        """Drop all experts except these, and fit those; `directions` as in `fit`."""
        if self._statistics is not None:
            self._statistics.keep(kept)
            self._statistics.fit(self, directions)

    def stop_fitting(self) -> None:
        """Keep the present hyperparameters, and no statistics, from now on."""
        self._statistics = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evidence:
    """Log evidence of `m` experts as a function of `r`, noise variance over amplitude.

    Parameters
    ----------
    a
        Eigenvalues of Phi'Phi, shape (m, p).
    c
        Squares of Phi'Y in its eigenvectors, added up over the `k` targets, shape (m, p).
    yy
        Sum of the squares of the targets.
    n
        Number of examples.
    k
        Number of targets.
    least_noise_share
        As in `Statistics`.

    """

    a: Array
    c: Array
    yy: float
    n: float
    k: int
    least_noise_share: float

    def best(self) -> Array:
        """Ratios of largest evidence, shape (m,): on a grid, then on finer ones around the best."""
        m = len(self.a)
        ratios = np.broadcast_to(_RATIOS, (m, len(_RATIOS)))
        rows = np.arange(m)
        for _ in range(_ZOOMS):
            best = self.values(ratios).argmax(axis=1)
            low = ratios[rows, np.maximum(best - 1, 0)]
            high = ratios[rows, np.minimum(best + 1, ratios.shape[1] - 1)]
            ratios = np.geomspace(low, high, 9, axis=1)
        found: Array = ratios[rows, self.values(ratios).argmax(axis=1)]
        return found

    def noise_variances(self, ratios: Array) -> Array:
        """Noise variance with the largest evidence for each ratio (m, g), not below its limit."""
        return self._noise_variances(self._unexplained(ratios))

    def values(self, ratios: Array) -> Array:
        """Log evidence for each ratio (m, g), up to a constant."""
        unexplained = self._unexplained(ratios)
        noise = self._noise_variances(unexplained)
        log_det = self.n * np.log(noise) + np.log1p(self.a[:, None, :] / ratios[:, :, None]).sum(
            axis=2
        )
        values: Array = -0.5 * (unexplained / noise + self.k * log_det)
        return values

    def _noise_variances(self, unexplained: Array) -> Array:
        least = self.least_noise_share * self.yy / (self.n * self.k)
        # d/d noise of (unexplained / noise + n k log noise) = 0
        found: Array = np.maximum(unexplained / (self.n * self.k), max(least, 1e-300))
        return found

    def _unexplained(self, ratios: Array) -> Array:
        """Return `y'y - y'Phi (Phi'Phi + r I)^-1 Phi'y`: noise variance times misfit."""
        explained = (self.c[:, None, :] / (self.a[:, None, :] + ratios[:, :, None])).sum(axis=2)
        unexplained: Array = np.maximum(self.yy - explained, 0.0)
        return unexplained
