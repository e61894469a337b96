"""What our ensembles share: experts over dictionaries of features, and when they are fitted.

Which feature is which coordinate, what length scales are measured in, and when amplitude and noise
are fitted anew is settled here. What targets mean is the business of the learner around it.

"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from functools import partial
from typing import Generic, Protocol, TypeVar

import numpy as np

from streamgp.base import Array, Features, State
from streamgp.gp.evidence_of_experts import FittedExperts
from streamgp.gp.experts import Seen
from streamgp.gp.points import padded
from streamgp.gp.random_features import RandomFeatures, median_distance
from streamgp.learners.ensemble_settings import EnsembleSettings

# The unit of length is at least this share of the typical distance of standardised points. The
# first examples may lie close together, as events in a row do: the largest length scale must reach
# the others all the same.
_LEAST_UNIT = 0.1


class Models(Protocol):
    """Several models of the same targets, on features of their own."""

    @property
    def n_targets(self) -> int:
        """Number of targets."""

    def add_target(self) -> None:
        """Add a target that was 0 wherever something has been observed."""

    def see(self, features: Array) -> Seen:
        """Return what is known of a point with these features, shape (m, p)."""

    def learn(self, seen: Seen, y: Array) -> None:
        """Learn targets (t,) of a point, seen since the last example was learned."""


AnyModels = TypeVar("AnyModels", bound=Models)


class EnsembleCore(Generic[AnyModels]):
    """Experts over dictionaries of features, learned one example at a time.

    Parameters
    ----------
    settings
        How the learner was built.
    build
        Makes experts that have learned nothing of amplitudes (m,) and a number of features.

    Attributes
    ----------
    experts
        The linear models.
    n_learned
        Number of examples.

    """

    # _features    random features; its columns are those of the experts
    # _first       points and targets of the first examples, None once the unit is settled
    # _seen        the last point and what was seen of it, for learning comes after predicting;
    #              by identity, since `Columns` returns one array for equal features
    def __init__(
        self, settings: EnsembleSettings, build: Callable[[Array, int], AnyModels]
    ) -> None:
        self._settings = settings
        self._build = build
        self.seed = secrets.randbits(32) if settings.seed is None else int(settings.seed)
        self._features = self._new_features(1.0)
        self.experts = self._new_experts()
        self.n_learned = 0
        self._first: list[tuple[Array, Array]] | None = [] if settings.has_unit else None
        self._seen: tuple[Array, Seen] | None = None

    def __getstate__(self) -> State:
        # What is only remembered for speed is no state: asking changes nothing.
        return {**self.__dict__, "_seen": None}

    def see(self, x: Features) -> Seen:
        """Return what the experts know of a point; changes nothing."""
        columns = self._features.columns
        vector = columns.known_vector(x)
        if vector is None:
            return self.experts.see(self._features(columns.vector(x)))
        return self._see(vector)

    def add_target(self) -> None:
        """Add a target that was 0 wherever something has been observed."""
        self.experts.add_target()
        self._seen = None
        if self._first is not None:
            self._first = [(x, padded(y, len(y) + 1)) for x, y in self._first]

    def check(self, x: Features) -> None:
        """Refuse features that cannot be learned; changes nothing."""
        self._features.columns.widened(x).vector(x)

    def learn(self, x: Features, y: Array) -> None:
        """Learn targets (t,); if the example is refused, nothing changes."""
        columns = self._features.columns
        vector = columns.known_vector(x)
        if vector is None:
            columns = columns.widened(x)
            vector = columns.vector(x)
            if columns is not self._features.columns:
                if self.n_learned == 0 and self._first is not None:
                    self._features = self._new_features(_standard_distance(len(columns)))
                self._features.widen(columns)
                self._seen = None
        seen = self._see(vector)
        self._seen = None
        self.experts.learn(seen, y)
        self.n_learned += 1
        if self._first is not None:
            self._first.append((vector, y))
            if self.n_learned == self._settings.n_initial:
                self._settle_unit(self._first)
                self._first = None

    def state(self) -> State | None:
        """Return what is no function of the examples, as plain JSON values; None for nothing."""
        return {"seed": self.seed} if self._settings.seed is None else None

    def load_state(self, state: State | None) -> None:
        """Become what the state was taken from; the examples are learned after that."""
        if state is not None:
            self.seed = int(state["seed"])
            self._features = self._new_features(1.0)

    # --- inside

    def _see(self, vector: Array) -> Seen:
        last = self._seen
        if last is not None and last[0] is vector:
            return last[1]
        seen = self.experts.see(self._features(vector))
        self._seen = vector, seen
        return seen

    def _settle_unit(self, first: list[tuple[Array, Array]]) -> None:
        """Measure distances of the first examples, and learn them again in that unit."""
        columns, n_targets = self._features.columns, self.experts.n_targets
        points = np.array([padded(x, len(columns)) for x, _ in first])
        least = _LEAST_UNIT * _standard_distance(len(columns))
        self._features = self._new_features(max(median_distance(columns, points), least))
        self._features.widen(columns)
        self.experts = self._new_experts()
        for _ in range(n_targets):
            self.experts.add_target()
        for point, (_, y) in zip(points, first, strict=True):
            self.experts.learn(self.experts.see(self._features(point)), y)

    def _new_features(self, unit: float) -> RandomFeatures:
        settings = self._settings
        return RandomFeatures(settings.kernels_in_use(), settings.n_features, self.seed, unit)

    def _new_experts(self) -> AnyModels:
        amplitudes = [kernel.variance for kernel in self._features.kernels]
        return self._build(np.array(amplitudes), self._features.n_features)


class RegressionCore(EnsembleCore[FittedExperts]):
    """Experts that predict numbers, whose amplitudes and noise variances are fitted at times.

    Parameters
    ----------
    settings
        How the learner was built.

    """

    # _due    number of examples at the next fit, None if there is none
    # _since  number of examples when something new came: the others are counted, and doubled
    def __init__(self, settings: EnsembleSettings) -> None:
        super().__init__(settings, partial(_experts, settings))
        self._due = settings.n_initial if settings.refit else None
        self._since = 0

    def fit_anew(self) -> None:
        """Fit again after a few examples, and whenever the number of those has doubled."""
        if self._due is not None:
            self._since = self.n_learned
            self._due = self.n_learned + self._settings.n_initial

    def fit_if_due(self, directions: Array) -> None:
        """Fit amplitudes and noise variances if it is time.

        Parameters
        ----------
        directions
            What they are about: combinations of the targets, shape (t, k).

        """
        if self._due is None or self.n_learned < self._due:
            return
        self._seen = None
        self.experts.fit(directions)
        if self._settings.is_paper:
            # Weights are products of predictions from here on (Eq. 8), and never set anew.
            self.experts.forget_evidence()
            self.experts.stop_fitting()
            self._due = None
        else:
            self._due += self._due - self._since


def _experts(settings: EnsembleSettings, amplitudes: Array, n_features: int) -> FittedExperts:
    noise_variances = np.full(len(amplitudes), settings.noise_variance)
    experts = FittedExperts(
        amplitudes,
        noise_variances,
        n_features,
        settings.forgetting,
        least_noise_share=settings.least_noise_share,
    )
    if not settings.refit:
        experts.stop_fitting()
    return experts


def normalised(log_weights: list[float]) -> list[float]:
    """Return weights that sum to 1 from their logarithms, up to a constant.

    Examples
    --------
    >>> normalised([-5000.0, -5000.0 + math.log(3.0)])
    [0.25, 0.75]

    """
    # A plain loop: with a handful of experts it beats numpy by far.
    largest = max(log_weights)
    weights = [math.exp(value - largest) for value in log_weights]
    total = sum(weights)
    return [w / total for w in weights]


def _standard_distance(d: int) -> float:
    """Root mean squared distance of standardised points with `d` features."""
    return math.sqrt(2.0 * max(d, 1))
