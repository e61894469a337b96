"""Incremental multi-class Gaussian process classifier: the learner of ISGP.

Dictionaries and labels in, probabilities or a posterior out; the mathematics is `streamgp.gp`.

"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from river import base

from streamgp.base import (
    Array,
    Features,
    Label,
    Posterior,
    State,
    positive_parts,
)
from streamgp.common.validation import check_flag
from streamgp.gp.hyperparameters import Hyperparameters
from streamgp.kernels import Kernel
from streamgp.learners.gp_core import FeatureGP, GPSettings, PendingEvents
from streamgp.learners.gp_tuning import are_mixed
from streamgp.learners.numbering import Classes
from streamgp.learners.river_adapters import (
    feature_rows,
    frame_like,
    labelled_rows,
    series_like,
    settings_of,
)

if TYPE_CHECKING:
    import pandas as pd


class GPClassifier(base.MiniBatchClassifier):
    """Gaussian process classifier that learns one example at a time, and new classes as they come.

    One covariance is shared by all classes, each of which has one 0/1 indicator target (an
    incremental multi-class Gaussian process). Far from everything it has learned, the variance
    returns to the prior: the classifier knows what it does not know. Exact: every example is kept,
    and one event costs O(n²). With `max_points`, exact up to that many examples, and from then on
    constant in time and memory (docs/bounded.md).

    Numbers must be scaled (`SkepticalClassifier` does so). A string is one-hot encoded: at distance
    1 from an absent one and √2 from another string (squared exponential), even if it was never seen
    before. A feature that is absent, None or NaN counts as 0. Predictions ignore features that no
    labelled example had.

    Parameters
    ----------
    kernel
        Covariance function. None stands for a squared exponential with unit variance and a length
        scale proportional to the square root of the number of features of the first example.
    noise_variance
        Variance of the indicator targets around the latent function; 0.5 suits labels of which up
        to 40 % are wrong, as people's may be. It stays fixed, whereas the 0.1 of the ensembles is
        soon replaced by a fit, and the 0.1 of `PoolSampler` is for correct labels.
    max_points
        Largest number of examples retained; the others still count, but can be neither relabelled
        nor forgotten. None retains all (in configuration files "all").
    learn_hyperparameters
        Fit the kernel's parameters and the noise variance to the latest 512 examples whenever the
        number of examples has doubled, from 32 on; the given values serve as the prior. The work is
        spread over the examples that follow (docs/kernels.md). Where classes come one after
        another, the fit waits until they alternate: one class alone does not tell what the next
        will be like. Off by default: with labels on request, it gains on some streams what it loses
        on others (docs/choosing.md). It is on for privileged features, of which nothing can be
        known beforehand.
    single_precision
        Store the matrix of an exact process in half the memory and read it in half the time; means
        change in the third or fourth decimal. Needs a noise variance of .001 or more.
    window
        Keep only this many of the latest examples and forget the others: for gradual concept drift.
        None forgets none; excludes `max_points`.
    drift
        Forget all examples when labels are predicted wrongly more often than before, as detected by
        River's ADWIN: for abrupt concept drift (docs/bounded.md). Classes stay known.

    Attributes
    ----------
    n_learned
        Number of examples learned and not forgotten, whether still retained or not.
    n_drifts
        Number of times that all examples were forgotten because of a drift.
    labels
        Known classes, in the order in which they appeared.

    Examples
    --------
    >>> from streamgp import GPClassifier
    >>> model = GPClassifier(noise_variance=0.1)
    >>> model.learn_one({"light": -1.0}, "asleep")
    >>> model.learn_one({"light": 1.0}, "awake")
    >>> model.predict_proba_one({"light": 0.9})
    {'asleep': 0.03..., 'awake': 0.96...}
    >>> belief = model.predict_proba_one({"light": 5.0}, with_dist=True)
    >>> round(belief.mean["awake"], 3), round(belief.variance, 3)
    (0.0, 1.0)

    References
    ----------
    [^1]: Bontempelli, A., Teso, S., Giunchiglia, F. and Passerini, A., 2020. Learning in the wild
        with incremental skeptical Gaussian processes. IJCAI, Eqs. 1-4 and 6.
    [^2]: Lütz, A., Rodner, E. and Denzler, J., 2013. I want to know more: efficient multi-class
        incremental learning using Gaussian processes. Pattern Recognition and Image Analysis 23.

    """

    # _core     the process, and which event is which of its examples
    # _watch    detects drift; None if that is off
    # _classes  the known classes; each has the target of its number
    # _met      those that had an example, in the order of their first one; a dict for its order
    def __init__(
        self,
        kernel: Kernel | None = None,
        noise_variance: float = 0.5,
        max_points: int | None = None,
        learn_hyperparameters: bool = False,
        single_precision: bool = False,
        window: int | None = None,
        drift: bool = False,
    ) -> None:
        self.kernel = kernel
        self.noise_variance = noise_variance
        self.max_points = max_points
        self.learn_hyperparameters = learn_hyperparameters
        self.single_precision = single_precision
        self.window = window
        self.drift = drift
        self._core = FeatureGP(settings_of(GPSettings, self))
        self._watch = DriftWatch() if check_flag("drift", drift) else None
        self._classes = Classes()
        self._met: dict[int, None] = {}

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def n_learned(self) -> int:
        """Number of examples learned and not forgotten, whether still retained or not."""
        return self._core.n_learned

    @property
    def n_drifts(self) -> int:
        """Number of times that all examples were forgotten because of a drift."""
        return 0 if self._watch is None else self._watch.n_drifts

    @property
    def is_exact(self) -> bool:
        """Whether a relabelled example leaves no trace of its old label.

        So it is if all examples that were learned and not forgotten are retained; but not with
        `drift`, as each label may decide when a drift is detected.
        """
        return self._watch is None and self._core.is_exact

    @property
    def retains_all(self) -> bool:
        """Whether no example is ever dropped, whatever follows."""
        return self._watch is None and self._core.retains_all

    @property
    def hyperparameters(self) -> Hyperparameters | None:
        """Kernel and noise variance in use, learned or given; None before the first example."""
        return self._core.hyperparameters

    @property
    def labels(self) -> list[Label]:
        """Known classes, in the order in which they appeared."""
        return self._classes.labels.copy()

    @overload  # type: ignore[override]
    def predict_proba_one(
        self, x: Features, *, with_dist: Literal[False] = False
    ) -> dict[Label, float]: ...
    @overload
    def predict_proba_one(self, x: Features, *, with_dist: Literal[True]) -> Posterior: ...

    def predict_proba_one(
        self, x: Features, *, with_dist: bool = False
    ) -> dict[Label, float] | Posterior:
        """Predict the probability of each known class, or the posterior behind them.

        Parameters
        ----------
        x
            Features.
        with_dist
            Return the posterior means and the variance instead of probabilities.

        Returns
        -------
        Positive parts of the means divided by their sum, uniform if none is positive, `{}` before
        the first label; with `with_dist` a `Posterior`.

        Raises
        ------
        TypeError
            If a feature is neither a number nor a string.
        ValueError
            If a feature is infinite.

        """
        means, variance = self._means(x)
        if with_dist:
            mean = dict(zip(self._classes.labels, means, strict=True))
            prior = self._core.prior_variance(x)
            return Posterior(mean=mean, variance=variance, prior_variance=prior)
        return positive_parts(self._classes.labels, means)

    def predict_one(self, x: Features) -> Label | None:  # type: ignore[override]
        """Predict the class of largest posterior mean (Eq. 6), None before the first label."""
        means, _ = self._means(x)
        return self._classes.largest(means)

    def learn_one(self, x: Features, y: Label, *, event_id: str | None = None) -> None:
        """Learn that `x` is a `y`; `event_id` makes it possible to relabel or forget it later.

        Raises
        ------
        NotPositiveDefiniteError
            If the example is, up to rounding, determined by earlier ones: raise `noise_variance`.
        TypeError
            If a feature is neither a number nor a string, or the label is missing.
        ValueError
            If a feature is infinite, the event id is already taken, or the label equals a class of
            another type (True and 1).

        """
        target = self._classes.number(y)
        indicator = self._classes.indicator(target)
        wrong = None if self._watch is None else self._is_mistaken(x, target)
        self._core.append(x, indicator, event_id)
        if target == len(self._classes):
            self._classes.add(y)
        # From here on nothing can be refused.
        self._met[target] = None
        if wrong is not None and self._watch is not None and self._watch.note(wrong):
            self._core.restart_with(x, indicator, event_id)
        self._core.tune(_identity, _is_correct, are_mixed)

    # --- many at once

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Learn the rows of a data frame, one after the other."""
        for x, label in labelled_rows(X, y):
            self.learn_one(x, label)

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Predict the probability of each known class for each row of a data frame.

        Faster than one by one while the classifier is exact, with equal results up to rounding
        (1e-9, except in single precision).
        """
        labels = self._classes.labels
        rows = [positive_parts(labels, means) for means in self._means_many(X)]
        return frame_like(X, {y: [p[y] for p in rows] for y in labels})

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Predict the class of largest posterior mean for each row of a data frame."""
        return series_like(X, [self._classes.largest(means) for means in self._means_many(X)])

    def joint(self, xs: Sequence[Features]) -> tuple[Array, Array, float]:
        """Return the joint posterior of several events.

        Parameters
        ----------
        xs
            Features of at least one event.

        Returns
        -------
        Posterior means of the indicators of all classes (b, m), in the order of `labels`; the
        posterior covariance of each (b, b), noise not included; and the noise variance.

        Examples
        --------
        >>> model = GPClassifier(noise_variance=1.0)
        >>> model.learn_one({"light": 0.0}, "asleep")
        >>> means, covariances, noise_variance = model.joint([{"light": 0.0}, {"light": 9.0}])
        >>> means.round(3).tolist(), covariances.round(3).tolist(), noise_variance
        ([[0.5], [0.0]], [[0.5, 0.0], [0.0, 1.0]], 1.0)

        """
        means, covariances = self._core.joint(xs)
        if self._core.gp is None:  # a class may be known before its first example
            means = np.zeros((len(xs), len(self._classes)))
        return means, covariances, self._core.noise_variance

    def pending(self) -> PendingEvents:
        """Return a collector of pending events, which predicts the effect of their answers.

        It is valid until something is learned or forgotten. For each event asked about it takes the
        features and a target: see `PendingQuestion`. For another event it gives the posterior mean
        of the share of these answers, and the latent variance given them.

        Examples
        --------
        >>> told = GPClassifier(noise_variance=1.0).pending()
        >>> told.append({"light": 0.0}, 1.0)
        >>> [round(v, 3) for v in (*told.predict({"light": 0.0}), *told.predict({"light": 9.0}))]
        [0.5, 0.5, 0.0, 1.0]

        """
        return self._core.pending()

    # --- changing what was learned

    def know(self, labels: Iterable[Label]) -> None:
        """Make classes known before their first example: they have mean 0.

        Examples
        --------
        >>> model = GPClassifier()
        >>> model.know(["asleep", "awake"])
        >>> model.predict_proba_one({"light": 1.0})
        {'asleep': 0.5, 'awake': 0.5}

        """
        for y in labels:
            if self._classes.number(y) == len(self._classes):
                self._classes.add(y)
                self._core.add_target()

    def relabel_one(self, event_id: str, y: Label) -> None:
        """Change the label of an example. Raises KeyError if it is not retained."""
        self._core.number(event_id)
        self.know([y])
        self._core.relabel(event_id, self._classes.indicator(self._classes.number(y)))

    def forget_one(self, event_id: str) -> None:
        """Forget an example, exactly; its class stays known. Raises KeyError if not retained."""
        self._core.forget(event_id)

    def log_evidence(self) -> float:
        """Log marginal likelihood (evidence) of the indicator targets of all classes, in nats."""
        return self._core.log_evidence()

    def leave_one_out(self) -> dict[str, Posterior]:
        """Return the leave-one-out posterior of each example, by event id.

        In closed form, in O(n³) for all of them; examples without an event id and those not
        retained are left out.

        Examples
        --------
        >>> model = GPClassifier(noise_variance=0.1)
        >>> for n, (light, y) in enumerate([(0.9, "awake"), (1.0, "asleep"), (1.1, "awake")]):
        ...     model.learn_one({"light": light}, y, event_id=str(n))
        >>> belief = model.leave_one_out()["1"]
        >>> belief.mean["awake"], belief.mean["asleep"], belief.variance
        (0.95..., 0.0, 0.04...)

        """
        return {
            event_id: Posterior(
                mean=dict(zip(self._classes.labels, means, strict=True)),
                variance=variance,
                prior_variance=prior_variance,
            )
            for event_id, (means, variance, prior_variance) in self._core.leave_one_out().items()
        }

    def state(self) -> State | None:
        """Return the state not determined by the examples, as plain JSON; None if there is none.

        That is the fitted hyperparameters. A classifier that takes them over with `load_state` and
        learns all examples, in their order, is bitwise this one if none was relabelled or
        forgotten, and either the hyperparameters never changed or all examples are retained.
        """
        return self._core.state()

    def load_state(self, state: State | None) -> None:
        """Take over what `state` returned; this classifier has learned nothing yet."""
        self._core.load_state(state)

    def _means(self, x: Features) -> tuple[list[float], float]:
        means, variance = self._core.predict(x)
        return [0.0] * len(self._classes) if means is None else means.tolist(), variance

    def _means_many(self, X: pd.DataFrame) -> list[list[float]]:
        means, _ = self._core.predict_many(feature_rows(X))
        return [[0.0] * len(self._classes)] * len(X) if means is None else means.tolist()

    def _is_mistaken(self, x: Features, target: int) -> bool | None:
        """Whether the class of an example to be learned differs from the prediction.

        None before the first example. Known classes that had no example are ignored: whether there
        is a drift depends on the examples alone.
        """
        if not self._met:
            return None
        means, _ = self._means(x)
        return max(self._met, key=means.__getitem__) != target

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"noise_variance": 0.1}


def _identity(Y: Array) -> Array:
    return Y


def _is_correct(means: Array, variances: Array, Y: Array) -> Array:  # noqa: ARG001
    """Whether labels were predicted correctly before they were learned, 1 or 0, shape (n,)."""
    right: Array = (means.argmax(axis=1) == Y.argmax(axis=1)).astype(float)
    return right


# How readily chance is taken for a change: River's default. The smaller, the longer a change takes
# to be noticed.
_DELTA = 0.002


class DriftWatch:
    """Detects when wrong predictions become more frequent.

    River's ADWIN keeps a window of outcomes that grows until its newer part differs from the older
    one by more than chance explains. If there are more errors now, that is a drift. If there are
    fewer, the classifier has learned something; the window then starts over as well.

    Attributes
    ----------
    n_drifts
        Number of drifts so far.

    Examples
    --------
    A classifier that is right up to the 500th label, and wrong ever after:

    >>> watch = DriftWatch()
    >>> [i for i in range(1000) if watch.note(wrong=i >= 500)]
    [511]

    References
    ----------
    [^1]: Bifet, A. and Gavaldà, R., 2007. Learning from time-changing data with adaptive windowing.
        SIAM International Conference on Data Mining, 443-448.

    """

    # _adwin  outcomes since the last drift or improvement
    def __init__(self) -> None:
        self.n_drifts = 0
        self._begin()

    def note(self, wrong: bool) -> bool:
        """Record whether a prediction was wrong; return whether a drift is detected."""
        before = self._adwin.estimation
        self._adwin.update(int(wrong))  # type: ignore[no-untyped-call]
        if not self._adwin.drift_detected:
            return False
        worse = bool(self._adwin.estimation > before)
        self.n_drifts += worse
        self._begin()
        return worse

    def _begin(self) -> None:
        from river.drift import ADWIN  # late: takes most of a second

        self._adwin = ADWIN(delta=_DELTA)  # type: ignore[no-untyped-call]
