"""Gaussian process classifier that also learns which labels to trust: privileged noise (GPC+).

Dictionaries and labels in, probabilities out; the mathematics is in
`streamgp.gp.latent_noise.online_ep`.

"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

from river import base

from streamgp.base import Features, Label, Preset, State
from streamgp.common.uncertainty import most_probable, normalised
from streamgp.gp.latent_noise.model import LabelModel
from streamgp.kernels import Kernel
from streamgp.learners.numbering import Classes
from streamgp.learners.privileged_core import PrivilegedCore
from streamgp.learners.privileged_inputs import PrivilegedSettings
from streamgp.learners.river_adapters import settings_of


class PrivilegedGPClassifier(base.Classifier):
    """Gaussian process classifier that learns how noisy labels are from privileged features.

    What is known of an answer when it is learned, but not when a label is predicted, is called
    privileged: how sure the annotator was, how long the answer took, a second sensor. A label is
    the sign of a decision function of the features plus noise, the logarithm of whose variance is a
    function of the privileged features; both functions are Gaussian processes. An answer given in
    circumstances in which answers contradicted others counts less. Predictions use features alone.

    Labels are learned one by one, each in O(n²), by assumed density filtering with replays of
    earlier ones; `learn_log` learns a whole log at once. Without privileged features this is probit
    classification, with the same noise for all labels.

    Features must be scaled, as for `GPClassifier`; privileged ones are scaled here, by the first 60
    examples that have some. Strings and missing values in both are treated as by `GPClassifier`.

    Parameters
    ----------
    kernel
        Covariance function of the decision function. None stands for a squared exponential with a
        length scale proportional to the square root of the number of features.
    privileged_kernel
        The same for the logarithm of the noise variance.
    max_points
        Largest number of examples retained. Beyond it the least informative one is dropped: the one
        whose removal changes least (docs/gpc-plus.md). None retains all.
    n_replays
        Number of earlier labels, in turn, that are replayed with each label.
    preset
        `default` learns length scales, and the mean and variance of the log noise variance. `paper`
        learns length scales only; the log noise variance has mean 0 and variance 1.
    learn_hyperparameters
        Whether these are learned at all: at the 60th example, and then at each doubling, from the
        latest 256. That example takes a second or two. On by default, unlike that of
        `GPClassifier`: what a response time or a confidence tells of the noise cannot be known
        beforehand.

    Attributes
    ----------
    n_learned
        Number of examples learned and not forgotten, whether still retained or not.
    labels
        Known classes, in the order in which they appeared.

    Examples
    --------
    An annotator who answers at once has not looked:

    >>> from streamgp import PrivilegedGPClassifier
    >>> model = PrivilegedGPClassifier()
    >>> for i in range(120):
    ...     light, hasty = (i * 0.618) % 2 - 1, i % 3 == 0
    ...     wrong = hasty and i % 2 == 0
    ...     y = "awake" if (light > 0) != wrong else "asleep"
    ...     model.learn_one({"light": light}, y, privileged={"seconds": 0.5 if hasty else 3.0})
    >>> model.predict_one({"light": 0.5})
    'awake'
    >>> model.noise_one({"seconds": 0.5}) > 10 * model.noise_one({"seconds": 3.0})
    True

    References
    ----------
    [^1]: Hernández-Lobato, D., Sharmanska, V., Kersting, K., Lampert, C.H. and Quadrianto, N.,
        2014. Mind the nuisance: Gaussian process classification using privileged noise. NIPS.

    """

    # _core     the functions; it knows classes by number
    # _classes  the known classes
    def __init__(
        self,
        kernel: Kernel | None = None,
        privileged_kernel: Kernel | None = None,
        max_points: int | None = 300,
        n_replays: int = 3,
        preset: Preset = "default",
        learn_hyperparameters: bool = True,
    ) -> None:
        self.kernel = kernel
        self.privileged_kernel = privileged_kernel
        self.max_points = max_points
        self.n_replays = n_replays
        self.preset = preset
        self.learn_hyperparameters = learn_hyperparameters
        self._core = self._new_core()
        self._classes = Classes()

    def _new_core(self) -> PrivilegedCore:
        return PrivilegedCore(settings_of(PrivilegedSettings, self))

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def n_learned(self) -> int:
        """Number of examples learned and not forgotten, whether still retained or not."""
        return self._core.n_learned

    @property
    def is_exact(self) -> bool:
        """Whether a relabelled example leaves no trace: no, the other examples still reflect it."""
        return False

    @property
    def retains_all(self) -> bool:
        """Whether no example is ever dropped, whatever follows."""
        return self._core.retains_all

    @property
    def hyperparameters(self) -> LabelModel | None:
        """Kernels and mean of the log noise variance in use; None before the first example."""
        return self._core.model

    @property
    def labels(self) -> list[Label]:
        """Known classes, in the order in which they appeared."""
        return self._classes.labels.copy()

    def predict_proba_one(  # type: ignore[override]
        self,
        x: Features,
        *,
        privileged: Features | None = None,  # noqa: ARG002 - unknown when predicting
    ) -> dict[Label, float]:
        """Predict the probability that an annotator would give each known class as the label.

        Parameters
        ----------
        x
            Features.
        privileged
            Ignored: predictions never see privileged features.

        Returns
        -------
        `E[Phi(m / sqrt(v + exp g))]` with the prior of `g`, as nothing privileged is known (Eq. 9).
        With three or more classes, such probabilities of each against all others, divided by their
        sum; `{}` before the first label.

        Raises
        ------
        TypeError
            If a feature is neither a number nor a string.
        ValueError
            If a feature is infinite.

        """
        logs = self._core.log_probabilities(x)
        return dict(zip(self._classes.labels, normalised(logs), strict=True)) if logs else {}

    def predict_one(  # type: ignore[override]
        self, x: Features, *, privileged: Features | None = None
    ) -> Label | None:
        """Predict the most probable class, None before the first label."""
        return most_probable(self.predict_proba_one(x, privileged=privileged))

    def learn_one(
        self,
        x: Features,
        y: Label,
        *,
        privileged: Features | None = None,
        event_id: str | None = None,
    ) -> None:
        """Learn that `x` is a `y`.

        Parameters
        ----------
        x, y
            Features and label.
        privileged
            What else is known of this label; None if nothing is.
        event_id
            Makes it possible to relabel or forget the example later.

        Raises
        ------
        TypeError
            If a feature is neither a number nor a string, or the label is missing.
        ValueError
            If a feature is infinite, the event id is already taken, or the label equals a class of
            another type (True and 1).

        """
        self._core.learn(x, self._classes.number(y), privileged, event_id)
        # There is no `know`: which examples are dropped depends on all known classes, so a
        # classifier told of a class beforehand would differ from one that meets it later.
        self._classes.add(y)

    def learn_log(
        self,
        xs: Sequence[Features],
        ys: Sequence[Label],
        *,
        privileged: Iterable[Features | None] | None = None,
        event_ids: Iterable[str | None] | None = None,
    ) -> None:
        """Learn a whole log at once, instead of one example after the other.

        By expectation propagation over all labels together, with hyperparameters fitted to all of
        them; `learn_one` approximates this. Takes O(n³), and is for a classifier that has learned
        nothing; continue with `learn_one`. If an example is refused, nothing is learned.

        Parameters
        ----------
        xs, ys
            Features and labels.
        privileged, event_ids
            As for `learn_one`, one for each example; None for none.

        Raises
        ------
        TypeError
            If a feature is neither a number nor a string, or a label is missing.
        ValueError
            If a feature is infinite, an event id occurs twice, the lists differ in length,
            something was already learned, or two labels are equal and of different types.
        UnconvergedError
            If expectation propagation finds no explanation of the labels.

        Examples
        --------
        >>> model = PrivilegedGPClassifier()
        >>> xs = [{"light": light / 20 - 1} for light in range(41)]
        >>> model.learn_log(xs, [x["light"] > 0 for x in xs])
        >>> model.predict_one({"light": 0.1})
        True

        """
        if len(self._classes):
            raise ValueError(
                "learn_log is for a classifier that has learned nothing, "
                f"this one knows {len(self._classes)} classes; use a clone"
            )
        classes = Classes()
        log = zip(
            xs,
            [classes.add(y) for y in ys],
            repeat(None, len(xs)) if privileged is None else privileged,
            repeat(None, len(xs)) if event_ids is None else event_ids,
            strict=True,
        )
        core = self._new_core()
        core.learn_log(log, len(classes))
        self._core, self._classes = core, classes

    def noise_one(self, privileged: Features | None) -> float:
        """Noise variance of a label; the decision function has variance 1.

        As the variance itself is uncertain, this is the one that flips as many labels: a share
        `E[atan(s)] / pi` of them, with the standard deviation `s` of the noise. It is `exp(g)` if
        the log noise variance `g` is known.

        Parameters
        ----------
        privileged
            What is known of the label; None if nothing is.

        Raises
        ------
        TypeError
            If a feature is neither a number nor a string.
        ValueError
            If a feature is infinite.

        """
        return self._core.noise_variance(privileged)

    def relabel_one(self, event_id: str, y: Label) -> None:
        """Change the label of an example. Raises KeyError if it is not retained.

        Its old label is divided out. Its effect on how the other labels were learned is corrected
        by the replays that follow.
        """
        number = self._classes.number(y)
        self._core.check_retained(event_id)
        if number == len(self._classes):
            self._core.add_label()
            self._classes.add(y)
        self._core.relabel(event_id, number)

    def forget_one(self, event_id: str) -> None:
        """Forget an example: divide its label out. Raises KeyError if it is not retained."""
        self._core.forget(event_id)

    def state(self) -> State | None:
        """Return the state not determined by the examples, as plain JSON; None if there is none.

        That is the fitted hyperparameters. A classifier that takes them over with `load_state` and
        learns all examples, in their order, is bitwise this one if none was relabelled or
        forgotten, all came by `learn_one`, and either the hyperparameters never changed or all
        examples are retained.
        """
        return self._core.state()

    def load_state(self, state: State | None) -> None:
        """Take over what `state` returned; this classifier has learned nothing yet."""
        self._core.load_state(state)

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"max_points": 50}
