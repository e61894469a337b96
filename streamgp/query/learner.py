"""Optional methods of a learner, in addition to those of a River estimator.

Skeptical learners use them where a learner has them, and do without where it has not.

"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from streamgp.base import Features, Label, State


@runtime_checkable
class RestorableLearner(Protocol):
    """A learner with knowledge besides its examples, such as hyperparameters."""

    def state(self) -> State:
        """Return what it knows besides its examples, as plain JSON values.

        What changes with every example, and has no part in which ones are retained, is stored under
        the name "progress".
        """

    def load_state(self, state: State) -> None:
        """Restore what another learner knew besides its examples, before the first example."""


@runtime_checkable
class PartlyRefusing(Protocol):
    """A learner that tells whether a refused example has left it unchanged."""

    @property
    def refuses_whole(self) -> bool:
        """Whether a refused example changes nothing."""


@runtime_checkable
class Retaining(Protocol):
    """A learner that tells whether it retains the examples that it has learned."""

    @property
    def retains_all(self) -> bool:
        """Whether no example is ever dropped."""


@runtime_checkable
class Relabelling(Protocol):
    """A learner that can change the label of an example that it has learned.

    It learns with `event_id`, and is a `RestorableLearner`; any other is taught all examples again.
    """

    @property
    def is_exact(self) -> bool:
        """Whether it is, once relabelled, bitwise one that learned the new label at once."""

    def relabel_one(self, event_id: str, y: Label) -> None:
        """Change the label of an example."""


@runtime_checkable
class KnowingClasses(Protocol):
    """A learner that can be told of classes of which it has no example."""

    def know(self, labels: Iterable[Label]) -> None:
        """Count these labels among the known classes."""


@runtime_checkable
class HavingExperts(Protocol):
    """A learner composed of several experts."""

    @property
    def n_experts(self) -> int:
        """Number of experts."""


@runtime_checkable
class LeavingOneOut(Protocol):
    """A learner that judges each of its examples by the others."""

    def leave_one_out(self) -> Mapping[str, Any]:
        """Return the belief about each example by all the others, by event id."""


@runtime_checkable
class BelievingJointly(Protocol):
    """A learner with a joint belief about several events."""

    noise_variance: float

    def joint(self, xs: Sequence[Features]) -> tuple[Any, ...]:
        """Return means and covariances of the events, and what else the classifier knows."""


@runtime_checkable
class TellingNoise(Protocol):
    """A learner that distinguishes noisy labels from others, by their privileged features."""

    def noise_one(self, privileged: Features | None) -> float:
        """Return the variance of known noise that flips as many labels; None stands for any label.

        The decision function has a variance of 1.
        """


class PendingAnswers(Protocol):
    """What the answers to pending questions will tell, whichever answers they are."""

    @property
    def n(self) -> int:
        """Number of questions."""

    def append(self, x: Features, target: float) -> None:
        """Add a question; if it is refused, nothing changes."""

    def keep(self, kept: Sequence[int]) -> None:
        """Keep only the questions with these numbers, which ascend."""

    def predict(self, x: Features) -> tuple[float, float]:
        """Share of the answers, and variance after them, at an event."""


@runtime_checkable
class CountingPending(Protocol):
    """A learner that knows what the answers to pending questions will tell."""

    def pending(self) -> PendingAnswers:
        """Return an object that takes the questions; valid until the learner changes."""
