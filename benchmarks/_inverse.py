"""The paper's way to keep a Gaussian process up to date: an explicit inverse that grows.

The rival of `benchmarks.gp_speed`, written to be fast in numpy: room for all points is there
beforehand, nothing is copied to grow, and learning reuses what predicting found out. Its inputs
and outputs are those of `GPClassifier`, converted by the same code.

"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamgp.base import Array, FeatureName, Features, Label, positive_parts
from streamgp.features import Columns
from streamgp.kernels import SquaredExponential


class InverseGPClassifier:
    """Gaussian process classifier with `Γ = (K + noise_variance I)⁻¹` as a matrix.

    A new point changes Γ by the block matrix inversion formula: with `g = Γ k` and
    `s = k(x, x) + noise_variance - k' g`, `Γ` becomes `[[Γ + g g' / s, -g / s], [-g' / s, 1 / s]]`.

    Parameters
    ----------
    names
        Names of the features.
    labels
        All classes.
    capacity
        Number of points for which there is room.
    length_scale, noise_variance
        Of the squared exponential kernel, and of the indicator targets.

    References
    ----------
    [^1]: Lütz, A., Rodner, E. and Denzler, J., 2013. I want to know more: efficient multi-class
        incremental learning using Gaussian processes. Pattern Recognition and Image Analysis 23.

    """

    def __init__(
        self,
        names: Sequence[FeatureName],
        labels: Sequence[Label],
        capacity: int,
        *,
        length_scale: float,
        noise_variance: float = 0.5,
    ) -> None:
        self.n = 0
        self._columns = Columns(names)
        self._targets = {label: j for j, label in enumerate(labels)}
        self._kernel = SquaredExponential(length_scale)
        self._noise_variance = noise_variance
        self._rows: Array = np.empty((capacity, len(names) + 2))
        self._gamma: Array = np.zeros((capacity, capacity))
        self._update: Array = np.zeros(capacity * capacity)
        self._alpha: Array = np.zeros((capacity, len(labels)))
        self._last: tuple[bytes, Array, Array, float, Array] | None = None

    def predict_proba_one(self, x: Features) -> dict[Label, float]:
        """Predict the probability of each class."""
        *_, means = self._solve(self._columns.vector(x))
        return positive_parts(self._targets, means.tolist())

    def learn_one(self, x: Features, y: Label) -> None:
        """Learn an example."""
        _, row, g, variance, means = self._solve(self._columns.vector(x))
        n = self.n
        s = variance + self._noise_variance
        residual = -means
        residual[self._targets[y]] += 1.0
        residual /= s
        scaled = g / s
        update = np.multiply(scaled[:, None], g, self._update[: n * n].reshape(n, n))
        inner = self._gamma[:n, :n]
        np.add(inner, update, inner)
        self._gamma[:n, n] = self._gamma[n, :n] = -scaled
        self._gamma[n, n] = 1.0 / s
        # The same formula for Γ Y, so that the targets are not multiplied anew.
        self._alpha[:n] -= g[:, None] * residual
        self._alpha[n] = residual
        self._rows[n] = row
        self.n = n + 1
        self._last = None

    def learn_at_once(self, events: Sequence[tuple[Features, Label]]) -> None:
        """Learn the first examples by one inversion, to arrive at the same Γ sooner."""
        n = len(events)
        for i, (x, _) in enumerate(events):
            self._rows[i] = self._kernel.embed(self._columns.vector(x))
        K = np.array([self._kernel.vector(self._rows[:n], row) for row in self._rows[:n]])
        gamma = np.linalg.inv(K + self._noise_variance * np.eye(n))
        self._gamma[:n, :n] = gamma
        targets = np.array([self._targets[y] for _, y in events])
        self._alpha[:n] = gamma @ np.eye(len(self._targets))[targets]
        self.n = n

    def _solve(self, x: Array) -> tuple[bytes, Array, Array, float, Array]:
        key = x.tobytes()
        if self._last is not None and self._last[0] == key:
            return self._last
        n = self.n
        row = self._kernel.embed(x)
        k = self._kernel.vector(self._rows[:n], row)
        g = self._gamma[:n, :n] @ k
        variance = self._kernel.prior_variance(row) - float(k @ g)
        self._last = (key, row, g, variance, k @ self._alpha[:n])
        return self._last
