"""Random Fourier features: functions of finitely many numbers in place of a kernel.

A kernel of differences is the mean of `cos(v'(x - x'))` over frequencies `v` from its spectral
density. `D` drawn frequencies give features `phi(x)`, D sines and D cosines, with
`variance * phi(x)'phi(x')` close to the kernel. What is learned with them is decided elsewhere.

"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral

import numpy as np
from scipy.special import ndtri

from streamgp.base import Array, FeatureName, State
from streamgp.common.counter_rng import uniforms
from streamgp.features import Columns
from streamgp.gp.arrays import enlarged
from streamgp.kernels import Kernel, Spectral
from streamgp.kernels.hyperparameters import ColumnScales

# Number of texts whose phases are cached; 7 experts of 50 frequencies then keep 1.4 MB.
_REMEMBERED = 512


class RandomFeatures:
    """Random features of several kernels, each with frequencies of its own.

    Frequencies are derived from the name of a feature and the seed, so it does not matter when a
    feature appears, or in which order. A text has a direction of its own, as in the kernels; for
    `Categorical` each value has one.

    Parameters
    ----------
    kernels
        Kernels that state their spectral density (`Spectral`); in `streamgp.kernels` squared
        exponential, rational quadratic, Matérn and categorical do. Their variance is not used.
    n_frequencies
        Number of frequencies of each kernel, D; there are twice as many features.
    seed
        Seed of the frequencies.
    unit
        Factor by which length scales are multiplied.

    Raises
    ------
    TypeError
        If a kernel does not state its spectral density.
    ValueError
        If there is no kernel.

    Examples
    --------
    >>> from streamgp.kernels import SquaredExponential
    >>> features = RandomFeatures([SquaredExponential(2.0)], n_frequencies=2000, seed=1)
    >>> features.widen(Columns(["light"]))
    >>> here, there = (features(np.array([light]))[0] for light in (0.0, 2.0))
    >>> np.array([here @ here, here @ there])  # exp(-1/2) = .6065
    array([1. , 0.606...])

    References
    ----------
    [^1]: Rahimi, A. and Recht, B., 2007. Random features for large-scale kernel machines. NeurIPS.
    [^2]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning,
        Eqs. 4.5, 4.14 and 4.20.

    """

    # _numbers   number of each kernel among those given, which determines its frequencies
    # _categorical  whether a frequency belongs to a kernel that takes numbers for symbols, (m D,)
    # _spreads   factor of each frequency that all features share, (m, D): the scale mixture
    # _matrix    frequencies by column, (m D, d); 0 where values are symbols
    # _symbolic  columns some expert takes for symbols: texts, or any if one takes numbers for them
    # _phases    of symbols, by column and value; cached for speed only
    def __init__(
        self, kernels: Sequence[Kernel], n_frequencies: int, seed: int, unit: float = 1.0
    ) -> None:
        if not kernels:
            raise ValueError("kernels must name at least one kernel, got none; None is the default")
        self.kernels = [_checked(kernel) for kernel in kernels]
        self._numbers = list(range(len(self.kernels)))
        self.n_frequencies = int(n_frequencies)
        self.unit = unit
        self._seed = seed
        categorical = [kernel.symbolic for kernel in self.kernels]
        self._categorical = np.repeat(categorical, self.n_frequencies)
        self._spreads = np.array([self._spread(m) for m in range(len(self.kernels))])
        self.columns = Columns()
        self._matrix = np.empty((len(self.kernels) * self.n_frequencies, 0))
        self._symbolic: list[int] = []
        self._phases: dict[tuple[int, float], Array] = {}

    def __getstate__(self) -> State:
        return {**self.__dict__, "_phases": {}}

    @property
    def n_features(self) -> int:
        """Number of features of each kernel."""
        return 2 * self.n_frequencies

    def widen(self, columns: Columns) -> None:
        """Extend the features to points with these columns; the old columns come first."""
        d, found = len(self.columns), len(columns)
        matrix = enlarged(self._matrix, (len(self._matrix), found))
        for i in range(d, found):
            if i not in columns.texts:
                matrix[:, i] = self._frequencies(
                    columns, i, _spelled(columns.names[i]), symbolic=False
                )
        self.columns, self._matrix = columns, matrix
        self._symbolic = list(range(found) if self._categorical.any() else columns.texts)

    def keep(self, kept: Sequence[int]) -> None:
        """Drop the features of all kernels except these, by their present numbers."""
        d, D = len(self.columns), self.n_frequencies
        self.kernels = [self.kernels[i] for i in kept]
        self._numbers = [self._numbers[i] for i in kept]
        self._categorical = self._categorical.reshape(-1, D)[kept].ravel()
        self._spreads = self._spreads[kept]
        self._matrix = self._matrix.reshape(-1, D, d)[kept].reshape(-1, d)
        self._symbolic = list(range(d) if self._categorical.any() else self.columns.texts)
        self._phases.clear()

    def __call__(self, x: Array) -> Array:
        """Features of a point of shape (d,) for each kernel, shape (m, 2 D), of length 1 each."""
        phases = self._matrix @ x
        for i in self._symbolic:
            if x[i] != 0.0:
                phases += self._phase(i, float(x[i]))
        D = self.n_frequencies
        phases = phases.reshape(len(self.kernels), D)
        # Sines first, then cosines: any order is as good as that of Eq. 5 of the paper.
        features = np.empty((len(self.kernels), 2 * D))
        np.sin(phases, out=features[:, :D])
        np.cos(phases, out=features[:, D:])
        features *= 1.0 / math.sqrt(D)
        return features

    def _phase(self, i: int, value: float) -> Array:
        """Phases that a categorical value adds, shape (m D,)."""
        key = i, value
        phase = self._phases.get(key)
        if phase is None:
            name = _spelled(self.columns.names[i])
            phase = self._frequencies(self.columns, i, f"{name}\x1f{value!r}", symbolic=True)
            if self._categorical.any():
                # For these a missing value is a symbol, too. Its phase is subtracted so that it has
                # none, and a feature that appears late leaves what was learned before unchanged.
                missing = self._frequencies(self.columns, i, f"{name}\x1f0.0", symbolic=True)
                phase = phase - self._categorical * missing
            if len(self._phases) >= _REMEMBERED:
                self._phases.clear()
            self._phases[key] = phase
        return phase

    def _frequencies(self, columns: Columns, i: int, cause: str, *, symbolic: bool) -> Array:
        """Frequencies of all kernels, shape (m D,): of a column, or of a symbol in it."""
        found = np.zeros(self._spreads.shape)
        for m, (number, kernel) in enumerate(zip(self._numbers, self.kernels, strict=True)):
            if symbolic is (kernel.symbolic or i in columns.texts):
                scales = ColumnScales.of(kernel.length_scale, columns).scales
                drawn = uniforms(self.n_frequencies, self._seed, cause, f"frequency {number}")
                normal = ndtri(drawn)
                # Overflow would need a length scale that a kernel refuses.
                found[m] = self._spreads[m] * normal / (scales[i] * self.unit)
        return found.ravel()

    def _spread(self, m: int) -> Array:
        """Factors of the frequencies of a kernel, shape (D,)."""
        D = self.n_frequencies
        factors = self.kernels[m].frequency_factors(
            lambda: uniforms(D, self._seed, "", f"spread {m}")
        )
        return np.broadcast_to(np.asarray(factors, dtype=float), (D,))


def median_distance(columns: Columns, points: Array) -> float:
    """Median Euclidean distance between points (n, d), without pairs at the same place.

    It is 0 if all pairs are.

    Examples
    --------
    >>> median_distance(Columns(["light"]), np.array([[0.0], [1.0], [1.0], [4.0]]))
    3.0

    """
    found = [columns.distances(points[i + 1 :], x) for i, x in enumerate(points[:-1])]
    distances = np.concatenate([np.empty(0), *found])
    apart = distances[distances > 0.0]
    return float(np.median(apart)) if len(apart) else 0.0


def _checked(kernel: Kernel) -> Spectral:
    if isinstance(kernel, type) or not isinstance(kernel, Spectral):
        raise TypeError(
            "random features need kernels that state their spectral density (length_scale, "
            "variance, symbolic, frequency_factors), as SquaredExponential, RationalQuadratic, "
            f"Matern32, Matern52 and Categorical do, got {kernel!r}"
        )
    return kernel


def _spelled(name: FeatureName) -> str:
    """Return a text that two feature names share only if they are equal."""
    if isinstance(name, str):
        return f"text {name}"
    return f"number {int(name)}" if isinstance(name, Integral) else f"other {name!r}"
