"""Incremental multi-class Gaussian process classifier: the learner of ISGP.

Dictionaries and labels in, probabilities or a posterior out; the mathematics is `streamgp.gp`.

"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal, overload

import numpy as np
from river import base

from streamgp.base import Array, Features, Label, Posterior, check_label, positive_parts
from streamgp.features import Columns
from streamgp.gp.exact import ExactGP, check_noise_variance
from streamgp.kernels import Kernel, SquaredExponential
from streamgp.kernels.kernel import check_kernel

# Default length scale: this times the square root of the number of features, standardised.
# Measured on four sensor logs, docs/decisions/scaling.md.
LENGTH_SCALE_PER_ROOT_FEATURE = 0.9


class GPClassifier(base.Classifier):
    """Gaussian process classifier that learns one example at a time, and new classes as they come.

    One covariance for all classes and one 0/1 indicator target per class (an incremental
    multi-class Gaussian process). Far from everything it has learned, the variance returns to the
    prior: the classifier knows what it does not know. Exact: every example is kept, one event
    costs O(n²).

    Numbers must be scaled (`SkepticalClassifier` does it). A text is a point at distance 1 from
    none, in a direction of its own: no encoder is needed, and a text that was never seen is unlike
    all others. A feature that is absent, None or NaN counts as 0. Predictions leave out features
    that no labelled example had.

    Parameters
    ----------
    kernel
        Covariance function. None stands for a squared exponential with unit variance and a length
        scale proportional to the square root of the number of features of the first example.
    noise_variance
        Variance of the indicator targets around the latent function; 0.5 suits labels of which up
        to 40 % are wrong.

    Attributes
    ----------
    n_learned
        Number of examples learned and not forgotten.
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

    # _columns  which feature is which coordinate
    # _gp       None until the first example fixes the default kernel
    # _labels   class of each target; _targets is its inverse
    # _ids      event id of each point, or None; _points is its inverse
    def __init__(self, kernel: Kernel | None = None, noise_variance: float = 0.5) -> None:
        check_noise_variance(noise_variance)
        if kernel is not None:
            check_kernel(kernel)
        self.kernel = kernel
        self.noise_variance = noise_variance
        self._columns = Columns()
        self._gp: ExactGP | None = None
        self._labels: list[Label] = []
        self._targets: dict[Label, int] = {}
        self._ids: list[str | None] = []
        self._points: dict[str, int] = {}

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def n_learned(self) -> int:
        """Number of examples learned and not forgotten."""
        return 0 if self._gp is None else self._gp.n

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
            prior = variance if self._gp is None else self._prior_variance(self._gp.kernel, x)
            return Posterior(mean=mean, variance=variance, prior_variance=prior)
        return positive_parts(self._labels, means)

    def predict_one(self, x: Features) -> Label | None:  # type: ignore[override]
        """Predict the class of largest posterior mean (Eq. 6), None before the first label."""
        means, _ = self._means(x)
        return self._labels[means.index(max(means))] if means else None

    def learn_one(self, x: Features, y: Label, *, event_id: str | None = None) -> None:
        """Learn that `x` is a `y`; `event_id` makes it possible to relabel or forget it later.

        Raises
        ------
        NotPositiveDefiniteError
            If the example is, up to rounding, determined by earlier ones: raise `noise_variance`.
        TypeError
            If a feature is neither a number nor a text, or the label is missing.
        ValueError
            If a feature is infinite, or the event id is already taken.

        """
        check_label(y)
        if event_id is not None and event_id in self._points:
            raise ValueError(f"event {event_id!r} was already learned; use relabel_one")
        target = self._targets.get(y, len(self._labels))
        gp, columns = self._gp, self._columns
        vector = columns.known_vector(x)
        if vector is None or gp is None:
            columns = columns.widened(x)
            vector = columns.vector(x)
            if gp is None:
                kernel = self._kernel_for(len(columns)).bound(columns)
                gp = ExactGP(kernel, self.noise_variance)
            elif columns is not self._columns:
                gp.widen(len(columns), gp.kernel.bound(columns))
        try:
            gp.append(vector, _indicator(max(len(self._labels), target + 1), target))
        except ValueError:
            gp.narrow(len(self._columns), gp.kernel.bound(self._columns))
            raise
        self._gp, self._columns = gp, columns
        if target == len(self._labels):
            self._add_label(y)
        if event_id is not None:
            self._points[event_id] = len(self._ids)
        self._ids.append(event_id)

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
            if y not in self._targets:
                self._add_label(y)
                if self._gp is not None:
                    self._gp.add_target()

    def relabel_one(self, event_id: str, y: Label) -> None:
        """Change the label of an example that was learned; raises KeyError if it was not."""
        i = self._points[event_id]
        gp = self._learned()
        self.know([y])
        gp.relabel(i, _indicator(gp.n_targets, self._targets[y]))

    def forget_one(self, event_id: str) -> None:
        """Forget an example, exactly; its class stays known. Raises KeyError if not learned."""
        i = self._points.pop(event_id)
        self._learned().remove(i)
        del self._ids[i]
        self._points = {e: j for j, e in enumerate(self._ids) if e is not None}

    def log_evidence(self) -> float:
        """Log marginal likelihood of the indicator targets of all classes, in nats."""
        return 0.0 if self._gp is None else self._gp.log_evidence()

    def leave_one_out(self) -> dict[str, Posterior]:
        """Return what would be believed about each example, by event id, had it not been learned.

        In closed form, for all of them in O(n³); examples without an event id are left out.

        Examples
        --------
        >>> model = GPClassifier(noise_variance=0.1)
        >>> for n, (light, y) in enumerate([(0.9, "awake"), (1.0, "asleep"), (1.1, "awake")]):
        ...     model.learn_one({"light": light}, y, event_id=str(n))
        >>> belief = model.leave_one_out()["1"]
        >>> belief.mean["awake"], belief.mean["asleep"], belief.variance
        (0.95..., 0.0..., 0.05...)

        """
        gp, labels = self._gp, self._labels
        if gp is None:
            return {}
        means, variances = gp.leave_one_out()
        return {
            event_id: Posterior(
                mean=dict(zip(labels, means[i].tolist(), strict=True)),
                variance=float(variances[i]),
                prior_variance=gp.kernel.prior_variance(gp.points.rows[i]),
            )
            for event_id, i in self._points.items()
        }

    def _prior_variance(self, kernel: Kernel, x: Features) -> float:
        columns = self._columns
        # That of a stationary kernel is the same everywhere; the row of a point far away could not
        # be made without the origin that the Gaussian process measures from.
        point = np.zeros(len(columns)) if kernel.stationary else columns.vector(x)
        return kernel.prior_variance(kernel.embed(point))

    def _means(self, x: Features) -> tuple[list[float], float]:
        gp = self._gp
        if gp is None:
            columns = self._columns.widened(x)
            kernel = self._kernel_for(len(columns)).bound(columns)
            prior = kernel.prior_variance(kernel.embed(columns.vector(x)))
            return [0.0] * len(self._labels), prior
        columns = self._columns
        vector = columns.known_vector(x)
        means, variance = gp.predict(columns.vector(x) if vector is None else vector)
        return means.tolist(), variance

    def _kernel_for(self, d: int) -> Kernel:
        if self.kernel is not None:
            return self.kernel
        return SquaredExponential(LENGTH_SCALE_PER_ROOT_FEATURE * math.sqrt(max(d, 1)))

    def _add_label(self, y: Label) -> None:
        self._targets[y] = len(self._labels)
        self._labels.append(y)

    def _learned(self) -> ExactGP:
        if self._gp is None:
            raise KeyError("nothing has been learned yet")
        return self._gp

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"noise_variance": 0.1}


def _indicator(n_targets: int, target: int) -> Array:
    y = np.zeros(n_targets)
    y[target] = 1.0
    return y
