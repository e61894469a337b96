"""Core of the ensembles: experts over dictionaries of features, and when they are fitted.

Settles which feature is which coordinate, what length scales are measured in, and when amplitude
and noise are fitted again. What targets mean is up to the learner around it.

"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import numpy as np
from scipy.special import expit

from streamgp.base import Array, Features, Preset, State, check_preset
from streamgp.common.uncertainty import normalised
from streamgp.common.validation import (
    check_flag,
    check_forgetting,
    check_positive,
    check_several,
    check_whole,
)
from streamgp.gp.arrays import padded
from streamgp.gp.expert_evidence import MIN_NOISE_SHARE, FittedExperts
from streamgp.gp.linear_experts import LogisticExperts, Seen
from streamgp.gp.random_features import RandomFeatures, median_distance
from streamgp.kernels import Kernel, SquaredExponential

# --- Validated constructor arguments of an ensemble, and the kernels they stand for.


# Length scales of the presets: seven in units of the median distance, half a decade apart, and the
# paper's (§IV).
_DEFAULT = tuple(10.0 ** (c / 2.0) for c in range(-3, 4))
_PAPER = tuple(10.0**c for c in range(-4, 7))

# At this number each expert has a matrix of 800 megabytes.
_MOST_FEATURES = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleSettings:
    """The arguments of an ensemble, under their names.

    Parameters
    ----------
    amplitude
        Variance of the kernels that stand for None.
    least_noise_share
        Least noise variance that a fit may find, as a share of the variance of the targets.
    drop_experts
        Drop experts whose weight has been 0 for long.

    Raises
    ------
    TypeError
        If a numeric argument is not a number.
    ValueError
        If an argument is out of range, or the preset is not known.

    """

    kernels: Sequence[Kernel] | None
    n_features: int
    forgetting: float
    refit: bool
    preset: Preset
    noise_variance: float
    n_initial: int
    amplitude: float = 1.0
    least_noise_share: float = MIN_NOISE_SHARE
    drop_experts: bool = False

    def __post_init__(self) -> None:
        check_preset(self.preset)
        if self.kernels is not None:
            check_several("kernels", self.kernels, "kernels")
        check_whole("n_features", self.n_features, 1, _MOST_FEATURES)
        check_forgetting(self.forgetting)
        check_positive("noise_variance", self.noise_variance)
        check_whole("n_initial", self.n_initial, 2)
        check_flag("refit", self.refit)
        check_flag("drop_experts", self.drop_experts)

    @property
    def has_unit(self) -> bool:
        """Whether length scales are in units of the distance between examples."""
        return self.kernels is None and self.preset == "default"

    @property
    def is_paper(self) -> bool:
        """Whether hyperparameters are fitted once, and weights are never reset."""
        return self.preset == "paper"

    def kernels_in_use(self) -> list[Kernel]:
        """Return the kernels, or the preset's if None were given."""
        if self.kernels is not None:
            return list(self.kernels)
        scales = _PAPER if self.is_paper else _DEFAULT
        return [SquaredExponential(scale, self.amplitude) for scale in scales]


# An expert is dropped if its evidence is this many nats below the best one's after two fits in a
# row, the second to twice as many examples: to 100 or more, since a few can be explained by chance.
# Two remain, so that rules that compare experts have some to compare.
_DEAD = 50.0
_LEAST_EXAMPLES = 100
_LEAST_EXPERTS = 2

# The unit of length is at least this share of the typical distance of standardised points. The
# first examples may lie close together, as consecutive events do; the largest length scale must
# reach the others all the same.
_LEAST_UNIT = 0.1


AnyExperts = TypeVar("AnyExperts", bound=FittedExperts | LogisticExperts)


class EnsembleCore(Generic[AnyExperts]):
    """Experts over dictionaries of features, learned one example at a time.

    Parameters
    ----------
    settings
        How the learner was built.
    seed
        That of the random features.
    build
        Makes untrained experts from amplitudes (m,) and a number of features.

    Attributes
    ----------
    experts
        The linear models.
    kept
        Number of the kernel of each expert that was not dropped.
    n_learned
        Number of examples.

    """

    # _features    random features; its columns are those of the experts
    # _first       points and targets of the first examples, None once the unit is settled
    # _seen        the last point and what was seen of it, for learning comes after predicting;
    #              by identity, since `Columns` returns one array for equal features
    def __init__(
        self, settings: EnsembleSettings, seed: int, build: Callable[[Array, int], AnyExperts]
    ) -> None:
        self._settings = settings
        self._build = build
        self._seed = seed
        self._features = self._new_features(1.0)
        self.experts = self._new_experts()
        self.kept = list(range(len(self._features.kernels)))
        self.n_learned = 0
        self._first: list[tuple[Array, Array]] | None = [] if settings.has_unit else None
        self._seen: tuple[Array, Seen] | None = None

    def __getstate__(self) -> State:
        # A cache is not state: predicting changes nothing.
        return {**self.__dict__, "_seen": None}

    @property
    def n_experts(self) -> int:
        """Number of experts, including those that were dropped."""
        return len(self._settings.kernels_in_use())

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

    # --- inside

    def _see(self, vector: Array) -> Seen:
        last = self._seen
        if last is not None and last[0] is vector:
            return last[1]
        seen = self.experts.see(self._features(vector))
        self._seen = vector, seen
        return seen

    def _settle_unit(self, first: list[tuple[Array, Array]]) -> None:
        """Set the unit to the median distance of the first examples, and learn them again in it."""
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
        return RandomFeatures(settings.kernels_in_use(), settings.n_features, self._seed, unit)

    def _new_experts(self) -> AnyExperts:
        amplitudes = [kernel.variance for kernel in self._features.kernels]
        return self._build(np.array(amplitudes), self._features.n_features)


class RegressionCore(EnsembleCore[FittedExperts]):
    """Regression experts, whose amplitudes and noise variances are fitted at times.

    Parameters
    ----------
    settings, seed
        Those of `EnsembleCore`.

    """

    # _due    number of examples at the next fit, None if there is none
    # _since  number of examples when a class was added: those since are counted, and doubled
    # _dead   kernels of experts whose weight was 0 after the last fit
    def __init__(self, settings: EnsembleSettings, seed: int) -> None:
        super().__init__(settings, seed, partial(_experts, settings))
        self._due = settings.n_initial if settings.refit else None
        self._since = 0
        self._dead: set[int] = set()

    def fit_anew(self) -> None:
        """Fit again after a few more examples, and whenever the number of those has doubled."""
        if self._due is not None:
            self._since = self.n_learned
            self._due = self.n_learned + self._settings.n_initial

    def fit_if_due(self, directions: Array) -> None:
        """Fit amplitudes and noise variances if it is time.

        Parameters
        ----------
        directions
            Combinations of the targets that they are fitted to, shape (t, k).

        """
        if self._due is None or self.n_learned < self._due:
            return
        self._seen = None
        is_fitted = self.experts.fit(directions)
        if self._settings.is_paper:
            # Weights are products of predictions from here on (Eq. 8), and never reset.
            self.experts.forget_evidence()
            self.experts.stop_fitting()
            self._due = None
        else:
            self._due += self._due - self._since
            # With forgetting, any of them may suit what comes.
            if is_fitted and self._settings.drop_experts and self._settings.forgetting == 1.0:
                self._drop(directions)

    def _drop(self, directions: Array) -> None:
        """Drop experts whose weight was 0 after each of the last two fits."""
        if self.n_learned < _LEAST_EXAMPLES:
            return
        logs = self.experts.log_evidences(directions)
        ranked = logs.argsort()[::-1].tolist()
        least = float(logs[ranked[0]]) - _DEAD
        dead = {self.kept[i] for i in ranked[_LEAST_EXPERTS:] if logs[i] < least}
        places = [i for i, number in enumerate(self.kept) if number not in dead & self._dead]
        self._dead = dead
        if len(places) < len(self.kept):
            self.kept = [self.kept[i] for i in places]
            self._features.keep(places)
            self.experts.keep(places, directions)


def _experts(settings: EnsembleSettings, amplitudes: Array, n_features: int) -> FittedExperts:
    noise_variances = np.full(len(amplitudes), float(settings.noise_variance))
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


def _standard_distance(d: int) -> float:
    """Root mean squared distance of standardised points with `d` features."""
    return math.sqrt(2.0 * max(d, 1))


# --- Two ways to classify with experts.
#
# Either each class is regressed on as a target of 0 or 1, as in `GPClassifier`: cheap, since all
# classes share one covariance, and fitted in closed form. Or each has a logistic likelihood of its
# own. Both give each expert's belief about each class, and the weight of the expert.


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinions:
    """Beliefs of experts about the classes of a point.

    Parameters
    ----------
    means
        In units of 0/1 indicators, shape (m, t).
    variances
        Of the same, without observation noise, shape (m, t).
    prior_variances
        Variances before anything was learned, shape (m,).

    """

    means: Array
    variances: Array
    prior_variances: Array


class IndicatorCore(RegressionCore):
    """Regression on 0/1 indicators, one per class, with a shared covariance."""

    def add_target(self) -> None:
        """Add a class that has had no example."""
        super().add_target()
        # One class alone tells nothing of the noise or the length scale.
        self.fit_anew()

    def learn(self, x: Features, y: Array) -> None:
        """Learn 0/1 indicators (t,) of a class."""
        super().learn(x, y)
        self.fit_if_due(np.eye(len(y)))

    def opinions(self, x: Features) -> Opinions:
        """Return what the experts believe about the class of `x`; changes nothing."""
        seen = self.see(x)
        means = seen.means
        return Opinions(
            means=means,
            variances=np.broadcast_to(seen.variances[:, None], means.shape),
            prior_variances=self.experts.amplitudes,
        )

    def weights(self) -> list[float]:
        """Probability of each expert."""
        return normalised(self.experts.log_evidences().tolist())


class LogisticCore(EnsembleCore[LogisticExperts]):
    """Logistic likelihoods, one per class against the others; otherwise like `IndicatorCore`."""

    def __init__(self, settings: EnsembleSettings, seed: int) -> None:
        # A partial, since nested functions cannot be pickled.
        super().__init__(settings, seed, partial(LogisticExperts, forgetting=settings.forgetting))

    def opinions(self, x: Features) -> Opinions:
        """Return what the experts believe about the class of `x`; changes nothing."""
        experts, seen = self.experts, self.see(x)
        p = experts.probabilities(seen)[:-1]
        share = p / np.maximum(p.sum(axis=0), 1e-300)
        # To first order, a probability varies by the slope of the sigmoid; its variance cannot
        # exceed that of a draw of 0 or 1.
        yes = expit(seen.means[:-1])
        slope = yes * (1.0 - yes)
        return Opinions(
            means=share.T,
            variances=np.minimum(slope * slope * seen.variances[:-1], slope).T,
            prior_variances=np.minimum(experts.amplitudes / 16.0, 0.25),
        )

    def weights(self) -> list[float]:
        """Probability of each expert."""
        return normalised(self.experts.log_likelihoods.tolist())
