"""Ensemble of Gaussian process classifiers, constant in time and memory.

Dictionaries and labels in, probabilities or a mixture of posteriors out.

"""

from __future__ import annotations

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
    check_label,
    positive_parts,
)
from streamgp.kernels import Kernel
from streamgp.learners.class_experts import (
    LEAST_NOISE_SHARE,
    LOGISTIC_AMPLITUDE,
    ClassExperts,
    IndicatorExperts,
    LogisticClassExperts,
)
from streamgp.learners.ensemble import EnsembleGP
from streamgp.learners.ensemble_settings import N_INITIAL, EnsembleSettings
from streamgp.learners.mixture_posterior import MixturePosterior


class EnsembleGPClassifier(EnsembleGP, base.Classifier):
    """Several Gaussian processes with kernels of their own, each counting as much as it has proved.

    Every expert is a Gaussian process with random Fourier features, whose step costs the same at
    the first example and at the millionth. New classes may come at any time. For what is said of
    features see `GPClassifier`, for the experts `EnsembleGPRegressor`.

    Parameters
    ----------
    kernels
        Kernel of each expert: squared exponential, rational quadratic, Matérn or categorical. None
        stands for those of the preset.
    n_features
        Number of frequencies of each expert, which has twice as many random features.
    forgetting
        What share of what is known is kept whenever a label is learned; the rest falls back to the
        prior. 1 forgets nothing.
    refit
        Fit amplitude and noise variance of each expert to all examples, `n_initial` at first, and
        then whenever their number has doubled; weights become those of the evidence. Only for
        regression. On by default, unlike `learn_hyperparameters` of `GPClassifier`: evidence
        compares experts fairly only if each has the noise that suits it, and a fit takes
        milliseconds.
    preset
        `default`: seven squared exponentials, length scales from .03 to 32 times the median
        distance of the first examples. `paper`: eleven, with length scales from 1e-4 to 1e6, fitted
        once, weights never set anew.
    seed
        Seed of the frequencies. None draws one.
    likelihood
        `regression` on 0/1 indicators of the classes, or `logistic`, each class against the others,
        by Laplace's method; that takes as many times as long as there are classes
        (docs/ensembles.md).
    noise_variance
        Variance of the indicators around the latent function before the first fit; less than that
        of `GPClassifier`, 0.5, which is not fitted by default.
    n_initial
        Number of examples at the first fit; and of those whose median distance is taken.

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
    (1.0..., 0.0...)

    References
    ----------
    [^1]: Lu, Q., Karanikolas, G.V. and Giannakis, G.B., 2022. Incremental ensemble Gaussian
        processes. IEEE TPAMI 45, §3.3.

    """

    # _experts  know classes by their number, over the _core
    # _labels   class of each number; _numbers is its inverse
    # _weights  function of _experts
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
        n_initial: int = N_INITIAL,
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
        is_logistic = likelihood == "logistic"
        settings = EnsembleSettings(
            kernels=kernels,
            n_features=n_features,
            forgetting=forgetting,
            refit=refit,
            preset=preset,
            seed=seed,
            noise_variance=noise_variance,
            n_initial=n_initial,
            amplitude=LOGISTIC_AMPLITUDE if is_logistic else 1.0,
            least_noise_share=LEAST_NOISE_SHARE,
        )
        self._experts: ClassExperts = (
            LogisticClassExperts(settings) if is_logistic else IndicatorExperts(settings)
        )
        self._core = self._experts.core
        self._labels: list[Label] = []
        self._numbers: dict[Label, int] = {}
        self._weights = self._experts.weights()

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def labels(self) -> list[Label]:
        """Known classes, in the order in which they appeared."""
        return list(self._labels)

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
            If a feature is neither a number nor a text.
        ValueError
            If a feature is infinite.

        """
        opinions = self._experts.opinions(x)
        means = self._mixed(opinions.means)
        if not with_dist:
            return positive_parts(self._labels, means.tolist())
        best = int(means.argmax()) if len(means) else None
        if best is None:
            own = opinions.prior_variances
            apart = np.zeros(len(own))
        else:
            own = opinions.variances[:, best]
            apart = opinions.means[:, best] - means[best]
        return MixturePosterior(
            mean=dict(zip(self._labels, means.tolist(), strict=True)),
            variance=float((own + apart * apart) @ self._weights),  # Eq. 11
            prior_variance=float(opinions.prior_variances @ self._weights),
            weights=tuple(self._weights),
            components=tuple(
                Posterior(
                    mean=dict(zip(self._labels, row, strict=True)),
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
        means = self._mixed(self._experts.opinions(x).means)
        return self._labels[int(means.argmax())] if len(means) else None

    def learn_one(self, x: Features, y: Label) -> None:
        """Learn that `x` is a `y`.

        Raises
        ------
        TypeError
            If a feature is neither a number nor a text, or the label is missing.
        ValueError
            If a feature is infinite.

        """
        check_label(y)
        if y not in self._numbers:
            self._core.check(x)
            self._add_label(y)
        indicators = np.zeros(len(self._labels))
        indicators[self._numbers[y]] = 1.0
        self._experts.learn(x, indicators)
        self._weights = self._experts.weights()

    def _add_label(self, y: Label) -> None:
        # Not for others to call: fits and weights are about all classes that are known, and who
        # knew one beforehand is not as who met it later.
        self._numbers[y] = len(self._labels)
        self._labels.append(y)
        self._experts.add_class()

    def _mixed(self, means: Array) -> Array:
        """Return the mean of what experts say, shape (t,)."""
        # Row by row: another class changes no bit of those before.
        mixed: Array = np.vecdot(np.ascontiguousarray(means.T), self._weights)
        return mixed

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"n_features": 20, "seed": 1}
        yield {"n_features": 20, "seed": 1, "likelihood": "logistic"}
