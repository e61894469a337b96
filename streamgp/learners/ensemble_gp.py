"""Ensembles of Gaussian process classifiers and regressors, constant in time and memory.

Dictionaries in; probabilities, numbers, or the mixture of the experts behind them out.

"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np
from river import base

from streamgp.base import (
    Array,
    Features,
    Label,
    Posterior,
    Preset,
    positive_parts,
)
from streamgp.common.normal import GaussianMixture, LightTails, MixturePosterior, mixture_moments
from streamgp.common.running_stats import Moments
from streamgp.common.uncertainty import normalised
from streamgp.gp.linear_experts import Seen
from streamgp.kernels import Kernel
from streamgp.learners.ensemble_core import (
    EnsembleCore,
    EnsembleSettings,
    IndicatorCore,
    LogisticCore,
    RegressionCore,
)
from streamgp.learners.numbering import Classes
from streamgp.learners.river_adapters import Seeded, checked_target, settings_of

# Number of labels at the first fit, the smallest initial set of the paper.
_N_INITIAL = 10
# People err: one label in a hundred may be wrong, however well all of them so far can be explained.
_LEAST_NOISE_SHARE = 0.01
# The latent functions are log odds: one standard deviation, 4, spans probabilities from .02 to .98.
_LOGISTIC_AMPLITUDE = 16.0


class EnsembleGP(Seeded):
    """An estimator around the experts of an `EnsembleCore`."""

    # _core     the experts over dictionaries
    # _weights  probability of each expert kept, a function of what the core has learned
    _core: EnsembleCore[Any]
    _weights: list[float]

    @property
    def n_learned(self) -> int:
        """Number of examples learned; none is retained."""
        return self._core.n_learned

    @property
    def n_experts(self) -> int:
        """Number of experts."""
        return self._core.n_experts

    @property
    def weights(self) -> list[float]:
        """Probability of each expert, in the order of the kernels."""
        weights = [0.0] * self.n_experts
        for number, weight in zip(self._core.kept, self._weights, strict=True):
            weights[number] = weight
        return weights


class EnsembleGPClassifier(EnsembleGP, base.Classifier):
    """Several Gaussian processes, each with its own kernel, weighted by their evidence.

    Every expert is a Gaussian process with random Fourier features, whose step costs the same at
    the first example and at the millionth. New classes may come at any time. For features see
    `GPClassifier`, for the experts `EnsembleGPRegressor`.

    Parameters
    ----------
    kernels
        Kernel of each expert: squared exponential, rational quadratic, Matérn or categorical. None
        stands for those of the preset.
    n_features
        Number of frequencies of each expert, which has twice as many random features.
    forgetting
        Share of the knowledge that is kept whenever a label is learned; the rest reverts to the
        prior. 1 forgets nothing.
    refit
        Fit amplitude and noise variance of each expert to all examples, `n_initial` at first, and
        then whenever their number has doubled; the weights are then recomputed from the evidence.
        Only for regression. On by default, unlike `learn_hyperparameters` of `GPClassifier`:
        evidence compares experts fairly only if each has the noise that suits it, and a fit takes
        milliseconds.
    preset
        `default`: seven squared exponentials, with length scales from .03 to 32 times the median
        distance of the first examples. `paper`: eleven, with length scales from 1e-4 to 1e6, fitted
        once, weights never reset.
    seed
        Seed of the frequencies. None draws one.
    likelihood
        `regression` on 0/1 indicators of the classes, or `logistic`, each class against the others,
        by Laplace's method, whose cost is multiplied by the number of classes (docs/ensembles.md).
    noise_variance
        Variance of the indicators around the latent function before the first fit; lower than the
        0.5 of `GPClassifier`, which is not fitted by default.
    n_initial
        Number of examples at the first fit, and of those whose median distance is taken.

    Attributes
    ----------
    n_learned
        Number of examples learned; none is retained.
    n_experts
        Number of experts.
    labels
        Known classes, in the order in which they appeared.
    weights
        Probability of each expert.

    Examples
    --------
    >>> from streamgp import EnsembleGPClassifier
    >>> model = EnsembleGPClassifier(seed=1)
    >>> for light in range(20):
    ...     model.learn_one({"light": light / 10 - 1.0}, "awake" if light > 10 else "asleep")
    >>> model.predict_one({"light": 0.8})
    'awake'
    >>> belief = model.predict_proba_one({"light": 0.8}, with_dist=True)
    >>> belief.mean["awake"], belief.variance
    (0.97..., 0.003...)

    References
    ----------
    [^1]: Lu, Q., Karanikolas, G.V. and Giannakis, G.B., 2022. Incremental ensemble Gaussian
        processes. IEEE TPAMI 45, §3.3.

    """

    # _core     the experts, which know classes by their number
    # _classes  the known classes
    # _weights  a function of _core
    _core: IndicatorCore | LogisticCore

    def __init__(
        self,
        kernels: Sequence[Kernel] | None = None,
        n_features: int = 50,
        forgetting: float = 1.0,
        refit: bool = True,
        preset: Preset = "default",
        seed: int | None = None,
        likelihood: str = "regression",
        noise_variance: float = 0.1,
        n_initial: int = _N_INITIAL,
    ) -> None:
        self.kernels = kernels
        self.n_features = n_features
        self.forgetting = forgetting
        self.refit = refit
        self.preset = preset
        self.seed = seed
        self.likelihood = likelihood
        self.noise_variance = noise_variance
        self.n_initial = n_initial
        if likelihood not in ("regression", "logistic"):
            raise ValueError(f"likelihood must be 'regression' or 'logistic', got {likelihood!r}")
        self._begin_seeded()

    def _begin(self) -> None:
        is_logistic = self.likelihood == "logistic"
        settings = settings_of(
            EnsembleSettings,
            self,
            amplitude=_LOGISTIC_AMPLITUDE if is_logistic else 1.0,
            least_noise_share=_LEAST_NOISE_SHARE,
        )
        self._core = (LogisticCore if is_logistic else IndicatorCore)(settings, self._seed)
        self._classes = Classes()
        self._weights = self._core.weights()

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def labels(self) -> list[Label]:
        """Known classes, in the order in which they appeared."""
        return self._classes.labels.copy()

    @overload  # type: ignore[override]
    def predict_proba_one(
        self, x: Features, *, with_dist: Literal[False] = False
    ) -> dict[Label, float]: ...
    @overload
    def predict_proba_one(self, x: Features, *, with_dist: Literal[True]) -> MixturePosterior: ...

    def predict_proba_one(
        self, x: Features, *, with_dist: bool = False
    ) -> dict[Label, float] | MixturePosterior:
        """Predict the probability of each known class, or the posterior behind them.

        Parameters
        ----------
        x
            Features.
        with_dist
            Return the means and variances of all experts instead of probabilities.

        Returns
        -------
        Positive parts of the means divided by their sum, uniform if none is positive, `{}` before
        the first label; with `with_dist` a `MixturePosterior`.

        Raises
        ------
        TypeError
            If a feature is neither a number nor a string.
        ValueError
            If a feature is infinite.

        """
        opinions = self._core.opinions(x)
        means, labels = self._mixed(opinions.means), self._classes.labels
        if not with_dist:
            return positive_parts(labels, means.tolist())
        best = int(means.argmax()) if len(means) else None
        if best is None:
            own = opinions.prior_variances
            apart = np.zeros(len(own))
        else:
            own = opinions.variances[:, best]
            apart = opinions.means[:, best] - means[best]
        return MixturePosterior(
            mean=dict(zip(labels, means.tolist(), strict=True)),
            variance=float((own + apart * apart) @ self._weights),  # Eq. 11
            prior_variance=float(opinions.prior_variances @ self._weights),
            weights=tuple(self._weights),
            components=tuple(
                Posterior(
                    mean=dict(zip(labels, row, strict=True)),
                    variance=variance,
                    prior_variance=prior,
                )
                for row, variance, prior in zip(
                    opinions.means.tolist(),
                    own.tolist(),
                    opinions.prior_variances.tolist(),
                    strict=True,
                )
            ),
        )

    def predict_one(self, x: Features) -> Label | None:  # type: ignore[override]
        """Predict the class of largest mean, None before the first label."""
        return self._classes.largest(self._mixed(self._core.opinions(x).means).tolist())

    def learn_one(self, x: Features, y: Label) -> None:
        """Learn that `x` is a `y`.

        Raises
        ------
        TypeError
            If a feature is neither a number nor a string, or the label is missing.
        ValueError
            If a feature is infinite, or the label equals a class of another type (True and 1).

        """
        number = self._classes.number(y)
        if number == len(self._classes):
            self._core.check(x)
            self._add_label(y)
        self._core.learn(x, self._classes.indicator(number))
        self._weights = self._core.weights()

    def _add_label(self, y: Label) -> None:
        # Private: fits and weights depend on all known classes, so a learner told of a class
        # beforehand would differ from one that meets it later.
        self._classes.add(y)
        self._core.add_target()

    def _mixed(self, means: Array) -> Array:
        """Return the weighted mean over the experts, shape (t,)."""
        # Row by row: adding a class changes no bit of the earlier ones.
        mixed: Array = np.vecdot(np.ascontiguousarray(means.T), self._weights)
        return mixed

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"n_features": 20, "seed": 1}
        yield {"n_features": 20, "seed": 1, "likelihood": "logistic"}


class EnsembleGPRegressor(EnsembleGP, base.Regressor):
    """Several Gaussian processes, each with its own kernel, weighted by their evidence.

    Every expert is a Gaussian process with random Fourier features: a Bayesian linear model, whose
    predictions cost the same at the first example and at the millionth. The prediction is the
    mixture of all experts, weighted by their probability given the targets learned.

    Where targets are bounded, for instance by saturation, normal distributions reach beyond the
    bounds and intervals cover too much. If a test at the 1 % level shows that (an e-process [^3]),
    the distribution of each expert is split into two normal parts at equal distances on either side
    of its mean, as wide as 95 % intervals require, and never wider than before (adaptive conformal
    inference [^4]). The mean stays as it is. The preset `paper` leaves this out.

    Kernels and noise refer to targets of mean 0 and variance 1, as for `GPRegressor`. Numbers must
    be scaled; strings and absent features are treated as by `GPClassifier`.

    Parameters
    ----------
    kernels
        Kernel of each expert: squared exponential, rational quadratic, Matérn or categorical. None
        stands for those of the preset.
    n_features
        Number of frequencies of each expert, which has twice as many random features.
    forgetting
        Share of the knowledge that is kept whenever a label is learned; the rest reverts to the
        prior. 1 forgets nothing, .995 suits concept drift within a few hundred labels.
    refit
        Fit amplitude and noise variance of each expert to all examples, `n_initial` at first, and
        then whenever their number has doubled; the weights are then recomputed from the evidence.
        On by default, unlike `learn_hyperparameters` of `GPRegressor`: evidence compares experts
        fairly only if each has the noise that suits it, and a fit takes milliseconds.
    preset
        `default`: seven squared exponentials, with length scales from .03 to 32 times the median
        distance of the first examples. `paper`: eleven, with length scales from 1e-4 to 1e6, fitted
        once, weights never reset.
    seed
        Seed of the frequencies. None draws one.
    noise_variance
        Variance of the observations around the function before the first fit, as a share of the
        variance of all targets.
    n_initial
        Number of examples at the first fit, and of those whose median distance is taken.
    drop_experts
        Drop experts whose weight stays 0 while the examples double, but keep at least two: a step
        with two takes a quarter of the time of one with seven. False keeps all, for rules that
        compare experts; so does forgetting.

    Attributes
    ----------
    n_learned
        Number of examples learned; none is retained.
    n_experts
        Number of experts.
    weights
        Probability of each expert.

    Examples
    --------
    >>> import math
    >>> from streamgp import EnsembleGPRegressor
    >>> model = EnsembleGPRegressor(seed=1)
    >>> for hour in range(48):
    ...     model.learn_one({"hour": hour}, 15.0 + 5.0 * math.sin(hour / 4.0))
    >>> model.predict_one({"hour": 20.5})
    10.4...
    >>> prediction = model.predict_one({"hour": 20.5}, with_dist=True)
    >>> prediction.sigma, prediction.log_density(10.4)
    (0.0..., 2...)

    References
    ----------
    [^1]: Polyzos, K.D., Lu, Q. and Giannakis, G.B., 2023. Active labeling for online ensemble
        learning. Asilomar, Eqs. 4-9.
    [^2]: Lu, Q., Karanikolas, G.V. and Giannakis, G.B., 2022. Incremental ensemble Gaussian
        processes. IEEE TPAMI 45.
    [^3]: Ramdas, A., Grünwald, P., Vovk, V. and Shafer, G., 2023. Game-theoretic statistics and
        safe anytime-valid inference. Statistical Science 38(4).
    [^4]: Gibbs, I. and Candès, E., 2021. Adaptive conformal inference under distribution shift.
        NeurIPS.

    """

    # _core     experts of two targets: the targets, less the first of them, and 1. Means and
    #           evidence follow for all combinations of these: any centre and scale can be used
    # _origin   the first target
    # _moments  mean and variance of the targets, less the first one
    # _lowest, _highest  the smallest and the largest target
    # _last     the last point seen and the experts' predictions of it: learning follows predicting
    # _tails    test for light tails, on all predictions since the first fit; None with preset
    #           `paper`
    # _weights  a function of _core and _moments
    _core: RegressionCore

    def __init__(
        self,
        kernels: Sequence[Kernel] | None = None,
        n_features: int = 50,
        forgetting: float = 1.0,
        refit: bool = True,
        preset: Preset = "default",
        seed: int | None = None,
        noise_variance: float = 0.1,
        n_initial: int = _N_INITIAL,
        drop_experts: bool = True,
    ) -> None:
        self.kernels = kernels
        self.n_features = n_features
        self.forgetting = forgetting
        self.refit = refit
        self.preset = preset
        self.seed = seed
        self.noise_variance = noise_variance
        self.n_initial = n_initial
        self.drop_experts = drop_experts
        self._begin_seeded()

    def _begin(self) -> None:
        self._core = RegressionCore(settings_of(EnsembleSettings, self), self._seed)
        self._core.add_target()
        self._core.add_target()
        self._origin = 0.0
        self._moments = Moments()
        self._lowest, self._highest = math.inf, -math.inf
        self._last: tuple[Seen, list[float], list[float]] | None = None
        self._tails = LightTails(self.forgetting) if self.preset == "default" else None
        self._weights = self._weighed(self._standardised)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": None}

    @overload
    def predict_one(self, x: Features, *, with_dist: Literal[False] = False) -> float: ...
    @overload
    def predict_one(self, x: Features, *, with_dist: Literal[True]) -> GaussianMixture: ...

    def predict_one(self, x: Features, *, with_dist: bool = False) -> float | GaussianMixture:
        """Predict the target, 0 before the first one.

        With the default preset, experts predict at most one standard deviation beyond the range of
        the targets seen.

        Parameters
        ----------
        x
            Features.
        with_dist
            Return the distribution of an observation, noise included (Eq. 7).

        Raises
        ------
        TypeError
            If a feature is neither a number nor a string.
        ValueError
            If a feature is infinite.

        """
        if not with_dist:
            mus = self._means(self._core.see(x))
            return float(sum([w * mu for w, mu in zip(self._weights, mus, strict=True)]))
        forecast = self._forecast(x)
        return forecast if self._tails is None else self._tails.shaped(forecast)

    def learn_one(self, x: Features, y: float) -> None:
        """Learn that the target of `x` is `y`.

        Raises
        ------
        TypeError
            If a feature is neither a number nor a string, or the target is not a number.
        ValueError
            If a feature or the target is infinite, or the target larger than 1e150.

        """
        value = checked_target(y)
        origin = self._origin if self.n_learned else value
        tails = self._tails if self.n_learned >= self.n_initial else None
        expected = None if tails is None else self._expected(x)
        self._core.learn(x, np.array([value - origin, 1.0]))
        self._origin = origin
        if tails is not None and expected is not None:
            tails.learn(*expected, value)
        if self.forgetting < 1.0:
            self._moments.fade(self.forgetting)
        self._moments.add(value - origin)
        self._lowest, self._highest = min(self._lowest, value), max(self._highest, value)
        directions = self._standardised
        self._core.fit_if_due(directions)
        self._weights = self._weighed(directions)

    def log_evidence(self) -> float:
        """Log marginal likelihood of all targets, around the mean of them, in nats.

        That of the mixture of all experts, which are equally probable beforehand. With forgetting,
        what came early counts little.
        """
        logs = self._core.experts.log_evidences(self._standardised)
        largest = float(logs.max())
        mixed = largest + math.log(float(np.exp(logs - largest).mean()))
        return mixed - self._core.experts.n * math.log(self._moments.std)

    # --- inside

    def _means(self, seen: Seen) -> list[float]:
        """Return the mean of each expert."""
        moments = self._moments
        origin, c = self._origin, moments.mean
        # The mean of targets less c is y - c share; what was subtracted is added back.
        mus = [origin + (y + c * (1.0 - share)) for y, share in seen.means.tolist()]
        if self.preset == "default" and self.n_learned:
            # Experts of long length scales are nearly polynomials, unbounded where there was no
            # example.
            low, high = self._lowest - moments.std, self._highest + moments.std
            mus = [min(max(mu, low), high) for mu in mus]
        return mus

    def _parts(self, x: Features) -> tuple[list[float], list[float]]:
        """Return each expert's mean and standard deviation of an observation."""
        seen, last = self._core.see(x), self._last
        if last is not None and last[0] is seen:
            return last[1], last[2]
        mus = self._means(seen)
        variances = seen.variances + self._core.experts.noise_variances
        sigmas: list[float] = (self._moments.std * np.sqrt(variances)).tolist()
        self._last = seen, mus, sigmas
        return mus, sigmas

    def _expected(self, x: Features) -> tuple[float, float]:
        """Return the mean and standard deviation of an observation."""
        mus, sigmas = self._parts(x)
        return mixture_moments(list(zip(self._weights, mus, sigmas, strict=True)))

    def _forecast(self, x: Features) -> GaussianMixture:
        """Return the mixture of the experts' predictions, each a normal distribution."""
        mus, sigmas = self._parts(x)
        return GaussianMixture(weights=tuple(self._weights), mus=tuple(mus), sigmas=tuple(sigmas))

    @property
    def _standardised(self) -> Array:
        """The combination of both targets that has mean 0 and variance 1, shape (2, 1)."""
        std = self._moments.std
        return np.array([[1.0 / std], [-self._moments.mean / std]])

    def _weighed(self, directions: Array) -> list[float]:
        experts = self._core.experts
        if len(experts.amplitudes) == 1:
            return [1.0]  # whatever its evidence
        return normalised(experts.log_evidences(directions).tolist())

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"n_features": 20, "seed": 1}
