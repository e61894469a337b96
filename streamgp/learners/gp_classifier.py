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
    check_kind,
    check_label,
    positive_parts,
)
from streamgp.common.validation import check_flag, check_number
from streamgp.gp.hyperparameters import Hyperparameters
from streamgp.kernels import Kernel
from streamgp.learners.gp_core import (
    LENGTH_SCALE_PER_ROOT_FEATURE as LENGTH_SCALE_PER_ROOT_FEATURE,
)
from streamgp.learners.gp_core import FeatureGP, GPSettings, Learn, PendingEvents
from streamgp.learners.gp_tuning import are_mixed
from streamgp.learners.river_adapters import feature_rows, frame_like, labelled_rows, series_like

if TYPE_CHECKING:
    import pandas as pd


class GPClassifier(base.MiniBatchClassifier):
    """Gaussian process classifier that learns one example at a time, and new classes as they come.

    One covariance for all classes and one 0/1 indicator target per class (an incremental
    multi-class Gaussian process). Far from everything it has learned, the variance returns to the
    prior: the classifier knows what it does not know. Exact: every example is kept, one event
    costs O(n²). With `max_points`, exact up to that many examples, and from then on constant in
    time and memory (docs/bounded.md).

    Numbers must be scaled (`SkepticalClassifier` does it). A string is one-hot encoded: distance 1
    from absent, sqrt 2 from another string (squared exponential), also if it was never seen before.
    A feature that is absent, None or NaN counts as 0. Predictions leave out features
    that no labelled example had.

    Parameters
    ----------
    kernel
        Covariance function. None stands for a squared exponential with unit variance and a length
        scale proportional to the square root of the number of features of the first example.
    noise_variance
        Variance of the indicator targets around the latent function; 0.5 suits labels of which up
        to 40 % are wrong, as those of people may be. It stays, whereas that of the ensembles, 0.1,
        is soon replaced by a fit, and that of `PoolSampler`, 0.1, is for labels that are right.
    max_points
        Largest number of examples that are retained; the others count, but can be neither
        relabelled nor forgotten. None retains all (in configuration files "all").
    learn_hyperparameters
        Fit the parameters of the kernel and the noise variance to the latest 512 examples whenever
        their number has doubled, from 32 on; what was given is what is expected beforehand. The
        work is spread over the examples that follow (docs/kernels.md). True fits to the marginal
        likelihood, "leave_one_out" to what each example is predicted to be by all others. Where
        classes come one after another it waits until they alternate: a class alone does not tell
        what the next one will be like. Off by default: while labels are asked for it gains on some
        streams what it loses on others (docs/choosing.md); of privileged features nothing can be
        known beforehand, so there it is on.
    single_precision
        Keep the matrix of an exact process in half the room and read it in half the time; means
        change in the third or fourth decimal. Needs a noise variance of .001 or more.
    window
        Keep the latest examples only, at most so many, and forget the others: for gradual concept
        drift. None forgets none; excludes `max_points`.
    drift
        Forget all examples when labels are predicted wrongly more often than they were, as found
        by River's ADWIN: for abrupt concept drift (docs/bounded.md). Classes stay known.

    Attributes
    ----------
    n_learned
        Number of examples learned and not forgotten, whether they are still retained or not.
    n_drifts
        How often all examples were forgotten because of a drift.
    labels
        Known classes, in the order in which they appeared.

    Examples
    --------
    >>> from streamgp import GPClassifier
    >>> model = GPClassifier(noise_variance=0.1)
    >>> model.learn_one({"light": -1.0}, "asleep")
    >>> model.learn_one({"light": 1.0}, "awake")
    >>> model.predict_proba_one({"light": 0.9})
    {'asleep': 0.0, 'awake': 1.0}
    >>> belief = model.predict_proba_one({"light": 5.0}, with_dist=True)
    >>> belief.mean["awake"], belief.variance
    (0.000..., 0.999...)

    References
    ----------
    [^1]: Bontempelli, A., Teso, S., Giunchiglia, F. and Passerini, A., 2020. Learning in the wild
        with incremental skeptical Gaussian processes. IJCAI, Eqs. 1-4 and 6.
    [^2]: Lütz, A., Rodner, E. and Denzler, J., 2013. I want to know more: efficient multi-class
        incremental learning using Gaussian processes. Pattern Recognition and Image Analysis 23.

    """

    # _core    the process, and which event is which of its examples
    # _watch   None if drifts are not watched for
    # _met     classes that had an example, in the order of the first one; a dict for its order
    # _labels  class of each target; _targets is its inverse
    def __init__(
        self,
        kernel: Kernel | None = None,
        noise_variance: float = 0.5,
        max_points: int | None = None,
        learn_hyperparameters: Learn = False,
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
        settings = GPSettings(
            kernel=kernel,
            noise_variance=noise_variance,
            max_points=max_points,
            learn_hyperparameters=learn_hyperparameters,
            single_precision=single_precision,
            window=window,
        )
        self._core = FeatureGP(settings)
        self._watch = DriftWatch() if check_flag("drift", drift) else None
        self._met: dict[Label, None] = {}
        self._labels: list[Label] = []
        self._targets: dict[Label, int] = {}

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def n_learned(self) -> int:
        """Number of examples learned and not forgotten, whether they are still retained or not."""
        return self._core.n_learned

    @property
    def n_drifts(self) -> int:
        """Number of times that all examples were forgotten because of a drift."""
        return 0 if self._watch is None else self._watch.n_drifts

    @property
    def is_exact(self) -> bool:
        """Whether a relabelled example leaves no trace of its old label.

        That is so if all examples that were learned and not forgotten are retained; not if drifts
        are watched for, since each label may decide when one is found.
        """
        return self._watch is None and self._core.is_exact

    @property
    def retains_all(self) -> bool:
        """Whether no example is ever given up, whatever follows."""
        return self._watch is None and self._core.retains_all

    @property
    def hyperparameters(self) -> Hyperparameters | None:
        """Kernel and noise variance in use, learned or given; None before the first example."""
        return self._core.hyperparameters

    @property
    def labels(self) -> list[Label]:
        """Known classes, in the order in which they appeared."""
        return list(self._labels)

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
            If a feature is neither a number nor a text.
        ValueError
            If a feature is infinite.

        """
        means, variance = self._means(x)
        if with_dist:
            mean = dict(zip(self._labels, means, strict=True))
            # Before the first example they are the same.
            prior = variance if self._core.gp is None else self._core.prior_variance(x)
            return Posterior(mean=mean, variance=variance, prior_variance=prior)
        return positive_parts(self._labels, means)

    def predict_one(self, x: Features) -> Label | None:  # type: ignore[override]
        """Predict the class of largest posterior mean (Eq. 6), None before the first label."""
        means, _ = self._means(x)
        return self._largest(means)

    def learn_one(self, x: Features, y: Label, *, event_id: str | None = None) -> None:
        """Learn that `x` is a `y`; `event_id` makes it possible to relabel or forget it later.

        Raises
        ------
        NotPositiveDefiniteError
            If the example is, up to rounding, determined by earlier ones: raise `noise_variance`.
        TypeError
            If a feature is neither a number nor a text, or the label is missing.
        ValueError
            If a feature is infinite, the event id is already taken, or the label equals a class of
            another type (True and 1).

        """
        check_label(y)
        n = len(self._labels)
        target = self._targets.get(y, n)
        if target < n:
            check_kind(y, self._labels[target])
        indicator = _indicator(max(n, target + 1), target)
        wrong = None if self._watch is None else self._is_mistaken(x, y)
        self._core.append(x, indicator, event_id)
        if target == n:
            self._add_label(y)
        # Now that nothing can be refused any more.
        self._met[y] = None
        if wrong is not None and self._watch is not None and self._watch.note(wrong):
            self._core.restart_with(x, indicator, event_id)
        self._core.tune(_as_they_are, _right, are_mixed)

    # --- many at once

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Learn the rows of a data frame, one after the other."""
        for x, label in labelled_rows(X, y):
            self.learn_one(x, label)

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Predict the probability of each known class for each row of a data frame.

        Faster than one by one while the classifier is exact, and equal to it up to rounding (1e-9,
        but in single precision).
        """
        labels = self._labels
        rows = [positive_parts(labels, means) for means in self._means_many(X)]
        return frame_like(X, {y: [p[y] for p in rows] for y in labels})

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Predict the class of largest posterior mean for each row of a data frame."""
        return series_like(X, [self._largest(means) for means in self._means_many(X)])

    def joint(self, xs: Sequence[Features]) -> tuple[Array, Array, float]:
        """Return what is believed of several events at once.

        Parameters
        ----------
        xs
            Features of at least one event.

        Returns
        -------
        Posterior means of the indicators of all classes (b, m), in the order of `labels`; posterior
        covariances of each (b, b), noise not included; and the noise variance.

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
            means = np.zeros((len(xs), len(self._labels)))
        return means, covariances, self._core.noise_variance

    def pending(self) -> PendingEvents:
        """Return what takes events asked about, and tells what the answers will tell of others.

        It is valid until something is learned or forgotten. For each event asked about it takes the
        features and a target: see `PendingQuestion`. Of another event it gives the posterior mean
        of the share of these answers, and the latent variance with them.

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
        """Make classes known before the first example of them: they have a mean of 0.

        Examples
        --------
        >>> model = GPClassifier()
        >>> model.know(["asleep", "awake"])
        >>> model.predict_proba_one({"light": 1.0})
        {'asleep': 0.5, 'awake': 0.5}

        """
        for y in labels:
            check_label(y)
            if y in self._targets:
                check_kind(y, self._labels[self._targets[y]])
            else:
                self._add_label(y)
                self._core.add_target()

    def relabel_one(self, event_id: str, y: Label) -> None:
        """Change the label of an example; raises KeyError if it is not retained."""
        self._core.number(event_id)
        self.know([y])
        self._core.relabel(event_id, _indicator(len(self._labels), self._targets[y]))

    def forget_one(self, event_id: str) -> None:
        """Forget an example, exactly; its class stays known. Raises KeyError if not retained."""
        self._core.forget(event_id)

    def log_evidence(self) -> float:
        """Log marginal likelihood (evidence) of the indicator targets of all classes, in nats."""
        return self._core.log_evidence()

    def leave_one_out(self) -> dict[str, Posterior]:
        """Return the leave-one-out posterior of each example, by event id.

        In closed form, for all of them in O(n³); examples without an event id, and those that are
        not retained, are left out.

        Examples
        --------
        >>> model = GPClassifier(noise_variance=0.1)
        >>> for n, (light, y) in enumerate([(0.9, "awake"), (1.0, "asleep"), (1.1, "awake")]):
        ...     model.learn_one({"light": light}, y, event_id=str(n))
        >>> belief = model.leave_one_out()["1"]
        >>> belief.mean["awake"], belief.mean["asleep"], belief.variance
        (0.95..., 0.0..., 0.05...)

        """
        return {
            event_id: Posterior(
                mean=dict(zip(self._labels, means, strict=True)),
                variance=variance,
                prior_variance=prior_variance,
            )
            for event_id, (means, variance, prior_variance) in self._core.leave_one_out().items()
        }

    def state(self) -> State | None:
        """Return the state not determined by the examples, as plain JSON; None if there is none.

        That is the fitted hyper-parameters. A classifier that takes them over with `load_state`
        and learns all examples, in their order, is bitwise this one if none was
        relabelled or forgotten, and either the hyper-parameters never changed or all examples are
        retained.
        """
        return self._core.state()

    def load_state(self, state: State | None) -> None:
        """Take over what `state` returned; this classifier has learned nothing yet."""
        self._core.load_state(state)

    def _means(self, x: Features) -> tuple[list[float], float]:
        means, variance = self._core.predict(x)
        return [0.0] * len(self._labels) if means is None else means.tolist(), variance

    def _means_many(self, X: pd.DataFrame) -> list[list[float]]:
        means, _ = self._core.predict_many(feature_rows(X))
        return [[0.0] * len(self._labels)] * len(X) if means is None else means.tolist()

    def _largest(self, means: list[float]) -> Label | None:
        return self._labels[means.index(max(means))] if means else None

    def _is_mistaken(self, x: Features, y: Label) -> bool | None:
        """Whether the label of an example to be learned is not what examples so far speak for.

        None before the first. Classes that are known, but had no example, play no part: whether
        there is a drift depends on the examples alone.
        """
        if not self._met:
            return None
        means, _ = self._means(x)
        return bool(max(self._met, key=lambda label: means[self._targets[label]]) != y)

    def _add_label(self, y: Label) -> None:
        self._targets[y] = len(self._labels)
        self._labels.append(y)

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"noise_variance": 0.1}


def _indicator(n_targets: int, target: int) -> Array:
    y = np.zeros(n_targets)
    y[target] = 1.0
    return y


def _as_they_are(Y: Array) -> Array:
    return Y


def _right(means: Array, variances: Array, Y: Array) -> Array:  # noqa: ARG001
    """Whether labels were predicted rightly before they were learned, 1 or 0 (n,)."""
    right: Array = (means.argmax(axis=1) == Y.argmax(axis=1)).astype(float)
    return right


class DriftWatch:
    """Watches whether predictions were wrong, and tells when that has become more frequent.

    River's ADWIN keeps a window of outcomes that grows until its newer part differs from the older
    one more than chance explains. If there are more errors now, that is a drift. If there are
    fewer, the classifier has learned something; the window then starts over as well.

    Parameters
    ----------
    delta
        How easily chance is taken for a change; the smaller, the longer it takes to notice one.

    Attributes
    ----------
    n_drifts
        Drifts so far.

    Examples
    --------
    A classifier that is right, and from the 500th label on always wrong:

    >>> watch = DriftWatch()
    >>> [i for i in range(1000) if watch.note(wrong=i >= 500)]
    [511]

    References
    ----------
    [^1]: Bifet, A. and Gavaldà, R., 2007. Learning from time-changing data with adaptive windowing.
        SIAM International Conference on Data Mining, 443-448.

    """

    # _adwin  what was noted since the last drift, or change for the better
    def __init__(self, delta: float = 0.002) -> None:
        check_number("delta", delta, "between 0 and 1", lambda p: 0.0 < p < 1.0)
        self.delta = delta
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

        self._adwin = ADWIN(delta=self.delta)  # type: ignore[no-untyped-call]
