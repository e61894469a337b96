"""Core of the learners: one Gaussian process over dictionaries of features.

Settles which feature is which coordinate, which event is which example, and when hyperparameters
change. What the targets mean is up to the learner around it.

"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from streamgp.base import Array, Features, State
from streamgp.common.validation import check_flag, check_whole
from streamgp.features import Columns
from streamgp.gp.arrays import padded
from streamgp.gp.bounded import BoundedGP, NumberedGP, UnboundedGP
from streamgp.gp.cholesky import (
    MIN_NOISE_IN_SINGLE_PRECISION,
    NotPositiveDefiniteError,
    check_noise_variance,
)
from streamgp.gp.hyperparameters import MIN_NOISE_VARIANCE, Hyperparameters
from streamgp.gp.joint_posterior import PendingPoints
from streamgp.gp.sparse import SparseGP, WindowGP
from streamgp.kernels import Kernel, SquaredExponential
from streamgp.kernels.base import check_kernel
from streamgp.learners.gp_tuning import WORK, Score, Search, Tuning
from streamgp.learners.numbering import EventNumbers

# --- Validated constructor arguments of a learner, and what is derived from them.


# Default length scale: this times the square root of the number of features, for standardised
# features. Measured on four sensor logs, docs/decisions/scaling.md.
LENGTH_SCALE_PER_ROOT_FEATURE = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class GPSettings:
    """The arguments of a learner, under their names.

    Raises
    ------
    TypeError
        If `kernel` is not a kernel.
    ValueError
        If `noise_variance`, `max_points` or `window` is out of range, or two arguments exclude
        each other.

    """

    kernel: Kernel | None
    noise_variance: float
    max_points: int | None
    learn_hyperparameters: bool
    single_precision: bool
    window: int | None = None

    def __post_init__(self) -> None:
        check_noise_variance(self.noise_variance, single_precision=self.single_precision)
        if self.kernel is not None:
            check_kernel(self.kernel)
        check_flag("single_precision", self.single_precision)
        check_flag("learn_hyperparameters", self.learn_hyperparameters)
        if self.learn_hyperparameters and self.noise_variance == 0.0:
            raise ValueError(
                "noise_variance must be positive to be learned, got 0.0; "
                f"start from {MIN_NOISE_VARIANCE}"
            )
        for name in ("max_points", "window"):
            most = getattr(self, name)
            if most is not None:
                check_whole(name, most, 1)
            if most is not None and self.single_precision:
                raise ValueError(
                    "single_precision is for a learner that keeps all examples, "
                    f"got {name}={most!r} as well; do without one of them"
                )
        if self.max_points is not None and self.window is not None:
            raise ValueError(
                "window is a bound already, "
                f"got max_points={self.max_points!r} as well; do without one of them"
            )

    @property
    def bound(self) -> int | None:
        """Largest number of examples retained, None for all."""
        return self.max_points if self.window is None else self.window

    def tuning(self) -> Tuning | None:
        """Return the state of the hyperparameter search, None if they stay fixed."""
        if not self.learn_hyperparameters:
            return None
        return Tuning(self.bound, self._bounded_kind)

    @property
    def min_noise_variance(self) -> float:
        """Least noise variance that may be learned."""
        # In single precision twice the limit: it passes through a logarithm, and rounding must not
        # take it below.
        single = self.single_precision
        return 2.0 * MIN_NOISE_IN_SINGLE_PRECISION if single else MIN_NOISE_VARIANCE

    def kernel_for(self, d: int) -> Kernel:
        """Return the kernel, or the default for a first point with `d` features."""
        if self.kernel is not None:
            return self.kernel
        return default_kernel(d)

    def given(self, kernel: Kernel, columns: Columns) -> Hyperparameters:
        """Return the prior hyperparameters for points with these columns."""
        return Hyperparameters(kernel=kernel.bound(columns), noise_variance=self.noise_variance)

    def process(self, these: Hyperparameters) -> NumberedGP:
        """Return a process that has learned nothing."""
        if self.bound is not None:
            return self._bounded_kind(these.kernel, these.noise_variance, self.bound)
        single = self.single_precision
        return UnboundedGP(these.kernel, these.noise_variance, single_precision=single)

    @property
    def _bounded_kind(self) -> type[BoundedGP]:
        return SparseGP if self.window is None else WindowGP


@lru_cache(maxsize=64)
def default_kernel(d: int) -> Kernel:
    """Return the kernel for points with `d` features where none was given."""
    # Cached: until it has learned, a process makes one for every event.
    return SquaredExponential(LENGTH_SCALE_PER_ROOT_FEATURE * math.sqrt(max(d, 1)))


PROGRESS = "progress"
"""Part of a learner's state that changes with every example, but not with which are retained."""

_UNKNOWN: tuple[Kernel | None, float] = (None, 0.0)


class FeatureGP:
    """Several functions over dictionaries of features, learned one example at a time.

    Parameters
    ----------
    settings
        How the learner was built.

    Attributes
    ----------
    columns
        Which feature is which coordinate.
    gp
        The process; None until the first example fixes the default kernel.

    """

    # _prior    the kernel as given, or from the first example on the default in place of None
    # _tuning   None if hyperparameters stay fixed
    # _events   which event is which example
    # _constant the kernel in use and its prior variance, if that is the same everywhere
    def __init__(self, settings: GPSettings) -> None:
        self._settings = settings
        self._prior = settings.kernel
        self._tuning = settings.tuning()
        self.columns = Columns()
        self.gp: NumberedGP | None = None
        self._events = EventNumbers()
        self._constant = _UNKNOWN

    def __getstate__(self) -> State:
        # A cache is not state: predicting changes nothing.
        return {**self.__dict__, "_constant": _UNKNOWN}

    @property
    def n_learned(self) -> int:
        """Number of examples learned and not forgotten, whether still retained or not."""
        return 0 if self.gp is None else self.gp.n

    @property
    def n_examples(self) -> int:
        """Number of examples learned and not taken back, retained or not."""
        return self._events.n

    @property
    def is_exact(self) -> bool:
        """Whether all examples that were learned and not taken back are retained."""
        return self.gp is None or self.n_examples == len(self.gp.retained)

    @property
    def retains_all(self) -> bool:
        """Whether no example is ever dropped."""
        return self._settings.bound is None

    def predict(self, x: Features) -> tuple[Array | None, float]:
        """Posterior means, None before the first example, and the latent variance."""
        gp, columns = self.gp, self.columns
        if gp is None:
            return None, self._prior_variance_at_first(x)
        vector = columns.known_vector(x)
        return gp.predict(columns.vector(x) if vector is None else vector)

    def predict_many(self, xs: Sequence[Features]) -> tuple[Array | None, Array]:
        """Posterior means (b, m), None before the first example, and latent variances (b,)."""
        gp, columns = self.gp, self.columns
        if gp is None:
            return None, np.array([self._prior_variance_at_first(x) for x in xs])
        X = np.array([columns.vector(x) for x in xs]).reshape(len(xs), len(columns))
        return gp.predict_many(X)

    def joint(self, xs: Sequence[Features]) -> tuple[Array, Array]:
        """Posterior means (b, m), with m = 0 before the first example, and covariances."""
        gp, columns = self.or_prior(xs)
        return gp.joint(np.array([columns.vector(x) for x in xs]).reshape(len(xs), len(columns)))

    def pending(self) -> PendingEvents:
        """Return a collector of pending events; valid until something is learned or forgotten."""
        return PendingEvents(self)

    def prior_variance(self, x: Features) -> float:
        """Latent variance before anything was learned."""
        gp, columns = self.gp, self.columns
        if gp is None:
            return self._prior_variance_at_first(x)
        kernel = gp.kernel
        if kernel is self._constant[0]:  # first: checking whether it is stationary takes longer
            return self._constant[1]
        if not kernel.stationary:
            return kernel.prior_variance(kernel.embed(columns.vector(x)))
        # The same everywhere. Taken at the origin, since a point far away could not be embedded
        # without the origin that the Gaussian process measures from.
        origin = kernel.embed(np.zeros(len(columns)))
        self._constant = kernel, kernel.prior_variance(origin)
        return self._constant[1]

    def append(self, x: Features, y: Array, event_id: str | None) -> None:
        """Learn targets (m,); a longer `y` adds functions that were zero until now.

        If the example is refused, nothing changes.
        """
        self._events.check_new(event_id)
        gp, columns, prior = self.gp, self.columns, self._prior
        vector = columns.known_vector(x)
        if vector is None or gp is None:
            columns = columns.widened(x)
            vector = columns.vector(x)
            if gp is None:
                prior = self._settings.kernel_for(len(columns))
                gp = self._settings.process(self._hyperparameters(prior, columns))
            elif columns is not self.columns:
                gp.resize(len(columns), gp.kernel.bound(columns))
        try:
            gone = gp.append(vector, y)
        except ValueError:
            gp.resize(len(self.columns), gp.kernel.bound(self.columns))
            raise
        self.gp, self.columns, self._prior = gp, columns, prior
        number = self._events.append(event_id)
        if self._tuning is not None:
            self._tuning.note(number, vector, y)
        self._events.drop(gone)

    def add_target(self) -> None:
        """Add a function that was zero wherever it has been observed."""
        if self.gp is not None:
            self.gp.add_target()

    def relabel(self, event_id: str, y: Array) -> None:
        """Replace the targets of an example. Raises KeyError if it is not retained."""
        number = self.number(event_id)
        self._learned().relabel(number, y)
        if self._tuning is not None:
            self._tuning.relabel(number, y, self.n_examples)

    def forget(self, event_id: str) -> None:
        """Forget an example. Raises KeyError if it is not retained."""
        number = self.number(event_id)
        self._learned().remove(number)
        self._events.n_taken_back += 1
        self._events.drop([number])
        if self._tuning is not None:
            self._tuning.forget(number, self.n_examples)

    def restart_with(self, x: Features, y: Array, event_id: str | None) -> None:
        """Revert to the prior, and learn the latest example, passed again, as the first."""
        self._events.drop(self._learned().reset_to_prior())
        if self._tuning is not None:
            self._tuning.restart()
        self._events.n_taken_back += 1
        # What could be learned beside others can be learned alone: its variance is no smaller.
        self.append(x, y, event_id)

    def number(self, event_id: str) -> int:
        """Return the number of an example; raises KeyError if it is not retained."""
        return self._events.number(event_id)

    def targets(self, event_id: str) -> Array:
        """Return the targets of an example; raises KeyError if it is not retained."""
        number, gp = self.number(event_id), self._learned()
        return gp.targets[gp.retained.index(number)]

    def quadratic_forms(self) -> tuple[Array, float] | None:
        """Return what `ExactGP.quadratic_forms` does, None before the first example."""
        return None if self.gp is None else self.gp.quadratic_forms()

    def log_evidence(self) -> float:
        """Log density of all targets, each given those before it, in nats."""
        return 0.0 if self.gp is None else self.gp.log_evidence()

    def leave_one_out(self) -> dict[str, tuple[list[float], float, float]]:
        """Return means, variance and prior variance by event id, had each not been learned."""
        gp = self.gp
        if gp is None or not gp.retained:
            return {}
        kernel, d = gp.kernel, len(self.columns)
        means, variances = gp.leave_one_out()
        # As in `prior_variance`.
        points = [np.zeros(d) if kernel.stationary else padded(x, d) for x in gp.points]
        return {
            event_id: (
                means[i].tolist(),
                float(variances[i]),
                kernel.prior_variance(kernel.embed(points[i])),
            )
            for i, number in enumerate(gp.retained)
            if (event_id := self._events.event_id(number)) is not None
        }

    # --- hyperparameters

    def tune(
        self,
        standardise: Callable[[Array], Array],
        score: Score,
        is_informative: Callable[[Array], bool] | None = None,
    ) -> bool:
        """Do some of the work of fitting hyperparameters, if it is time, or of adopting the result.

        Parameters
        ----------
        standardise, score, is_informative
            As for `Tuning.begin`.

        Returns
        -------
        Whether hyperparameters have changed.

        """
        tuning, gp, prior, n = self._tuning, self.gp, self._prior, self.n_examples
        if tuning is None or gp is None or prior is None:
            return False
        if (
            tuning.search is None
            and tuning.is_due(n)
            and not tuning.begin(
                self._settings.given(prior, self.columns),
                len(self.columns),
                gp.n_targets,
                standardise=standardise,
                score=score,
                is_informative=is_informative,
                min_noise_variance=self._settings.min_noise_variance,
            )
        ):
            tuning.settle(tuning.vector, n)
        search = tuning.search
        return search is not None and self._advance(tuning, search, gp, prior)

    @property
    def noise_variance(self) -> float:
        """Noise variance in use."""
        if self.gp is not None:
            return self.gp.noise_variance
        tuning = self._tuning
        vector = None if tuning is None else tuning.vector
        return self._settings.noise_variance if vector is None else math.exp(vector[-1])

    @property
    def hyperparameters(self) -> Hyperparameters | None:
        """Kernel and noise variance in use, None before the first example."""
        gp = self.gp
        if gp is None:
            return None
        return Hyperparameters(kernel=gp.kernel, noise_variance=gp.noise_variance)

    def state(self) -> State | None:
        """Return the state not determined by the examples, as plain JSON; None if there is none."""
        return None if self._tuning is None else self._tuning.state()

    def load_state(self, state: State | None) -> None:
        """Restore a state; the examples are learned after that."""
        if state is not None and self._tuning is not None:
            self._tuning.load_state(state)

    def _advance(self, tuning: Tuning, search: Search, gp: NumberedGP, prior: Kernel) -> bool:
        """Do some of the work of a search; return whether hyperparameters have changed."""
        before, n = tuning.vector, self.n_examples
        left = WORK if search.adoption is not None else search.advance(WORK)
        if left is None:
            return False
        if search.adoption is None or search.taken is before:
            tuning.settle(before, n)
            return False
        if left < WORK and not self.is_exact:
            return False  # where examples were dropped, a copy is made, which takes time as well
        given, columns = self._settings.given(prior, self.columns), self.columns
        kernel = given.kernel if search.taken is None else given.moved_to(search.taken).kernel

        def kernel_for(d: int) -> Kernel:
            return kernel.bound(columns.first(d))

        try:
            gone = gp.adopt(search.adoption, kernel_for, left)
        except NotPositiveDefiniteError:
            tuning.settle(before, n)
            return False
        if gone is None:
            return False
        self._events.drop(gone)
        tuning.settle(search.taken, n)
        return True

    def _hyperparameters(self, prior: Kernel, columns: Columns) -> Hyperparameters:
        given, tuning = self._settings.given(prior, columns), self._tuning
        return given if tuning is None else tuning.moved(given)

    # --- inside

    def or_prior(self, xs: Iterable[Features]) -> tuple[NumberedGP, Columns]:
        """Return the process and its columns; before the first example, those made for `xs`."""
        gp, columns = self.gp, self.columns
        if gp is None:
            for x in xs:
                columns = columns.widened(x)
            prior = self._settings.kernel_for(len(columns))
            gp = self._settings.process(self._hyperparameters(prior, columns))
        return gp, columns

    def _prior_variance_at_first(self, x: Features) -> float:
        columns = self.columns.widened(x)
        kernel = self._hyperparameters(self._settings.kernel_for(len(columns)), columns).kernel
        return kernel.prior_variance(kernel.embed(columns.vector(x)))

    def _learned(self) -> NumberedGP:
        if self.gp is None:
            raise KeyError("nothing has been learned yet")
        return self.gp


class PendingEvents:
    """Events with pending answers, on top of what a `FeatureGP` has learned; see `PendingPoints`.

    Parameters
    ----------
    core
        The process; the events are valid until it changes.

    """

    # Before the first example the columns, and with them the process, follow from the events.
    __slots__ = ("_columns", "_core", "_events", "_points")

    def __init__(self, core: FeatureGP) -> None:
        self._core = core
        self._events: list[tuple[Features, float]] = []
        self._columns, self._points = self._of([])

    @property
    def n(self) -> int:
        """Number of events."""
        return self._points.n

    def append(self, x: Features, target: float) -> None:
        """Add an event and the target of the share there; if it is refused, nothing changes."""
        columns = self._columns
        if self._core.gp is None and columns.widened(x) is not columns:
            self._columns, self._points = self._of([*self._events, (x, target)])
        else:
            self._points.append(columns.vector(x), target)
        self._events.append((x, target))

    def keep(self, kept: Sequence[int]) -> None:
        """Keep only the events with these numbers, which ascend."""
        self._events = [self._events[i] for i in kept]
        if self._core.gp is None:
            self._columns, self._points = self._of(self._events)
        else:
            self._points.keep(kept)

    def predict(self, x: Features) -> tuple[float, float]:
        """Posterior mean of the share, and latent variance, at an event."""
        return self._points.predict(self._columns.vector(x))

    def _of(self, events: Sequence[tuple[Features, float]]) -> tuple[Columns, PendingPoints]:
        gp, columns = self._core.or_prior(x for x, _ in events)
        points = PendingPoints(gp)
        for x, target in events:
            points.append(columns.vector(x), target)
        return columns, points
