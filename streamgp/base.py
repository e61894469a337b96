"""Types shared by all layers: labels, features, beliefs about an event, decisions.

Everything here is passed between layers; nothing computes more than a few lines.

"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Protocol,
    Self,
    TypeAlias,
    cast,
    get_args,
    runtime_checkable,
)

import msgspec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Array: TypeAlias = "NDArray[np.float64]"
FeatureName: TypeAlias = Hashable
# The key is Any because mappings are invariant in it: a user's dict[str, float] must fit.
Features: TypeAlias = Mapping[Any, Any]
Label: TypeAlias = bool | int | float | str
State: TypeAlias = dict[str, Any]
"""State of an object that must survive a restart: text keys and plain JSON values, at any depth."""
Target: TypeAlias = Literal["label", "number"]
"""What is predicted: names of classes, or numbers."""
Preset: TypeAlias = Literal["default", "paper"]
"""Set of defaults: those that work best, or those of a paper."""
Rescale: TypeAlias = bool | Literal["recent"]
"""Whether scaling is renewed: as in `RenewedScaling`, if True, or as in `RecentScaling`."""


def positive_parts(labels: Iterable[Label], means: list[float]) -> dict[Label, float]:
    """Positive parts of means divided by their sum: the class probabilities of a posterior.

    Uniform if no mean is positive, with the class of largest mean first: the first of the most
    probable classes is always the one of largest mean (ISGP Eq. 6).

    Examples
    --------
    >>> positive_parts(["home", "work", "gym"], [0.6, 0.2, -0.1])
    {'home': 0.75, 'work': 0.25, 'gym': 0.0}
    >>> positive_parts(["home", "work"], [-0.2, -0.1])
    {'work': 0.5, 'home': 0.5}

    """
    # A plain loop: with a handful of classes it is much faster than numpy.
    total = 0.0
    for m in means:
        if m > 0.0:
            total += m
    if total <= 0.0:
        ranked = sorted(zip(labels, means, strict=True), key=lambda pair: -pair[1])
        return {label: 1.0 / len(means) for label, _ in ranked}
    shares = [m / total if m > 0.0 else 0.0 for m in means]
    return dict(zip(labels, shares, strict=True))


def check_label(y: object) -> None:
    """Refuse a value that is not a label: raise TypeError for None, NaN, lists and the like."""
    try:
        is_label = y is not None and type(y).__hash__ is not None and bool(y == y)
    except TypeError:  # pandas.NA, which is neither equal nor unequal to anything
        is_label = False
    if not is_label:
        raise TypeError(f"y must be a label, got {y!r}; do not learn events without a label")


def check_kind(y: Label, known: Label) -> None:
    """Refuse a label that equals a known class of another type.

    `True`, `1` and `1.0` are equal, and thus the same key in every dictionary: a stream that mixes
    them would silently merge classes, or change their type.

    Parameters
    ----------
    y
        A label.
    known
        The class equal to it.

    Raises
    ------
    MixedLabelsError
        If one is a boolean, an integer or another number, and the other is not.

    Examples
    --------
    >>> check_kind(1, 1)
    >>> check_kind(True, 1)
    Traceback (most recent call last):
    streamgp.base.MixedLabelsError: equal labels must be of one type, got True where 1 ...

    """
    if y.__class__ is not known.__class__ and _kind(y) is not _kind(known):
        raise MixedLabelsError(
            f"equal labels must be of one type, got {y!r} where {known!r} is known; Python takes "
            "True, 1 and 1.0 for one class, so give all labels as booleans, all as whole numbers, "
            "or all as texts"
        )


def plain_label(y: Any) -> Any:
    """Return a label, or None, as a value of Python: numpy's scalars cannot be written as JSON."""
    return y.item() if type(y).__module__ == "numpy" else y


def _kind(y: Label) -> type:
    """Return the kind of a label, whether or not it is a numpy scalar."""
    plain = plain_label(y)
    return next((kind for kind in (bool, int, float) if isinstance(plain, kind)), type(plain))


def check_preset(preset: object) -> None:
    """Raise ValueError if there is no such preset."""
    if preset not in get_args(Preset):
        raise ValueError(f"preset must be 'default' or 'paper', got {preset!r}")


class _DataclassFields:
    """Looks up the fields of a struct in the form that `dataclasses` expects."""

    def __get__(self, _: object, owner: type[msgspec.Struct]) -> dict[str, dataclasses.Field[Any]]:
        return _dataclass_fields(owner)


@cache
def _dataclass_fields(kind: type[msgspec.Struct]) -> dict[str, dataclasses.Field[Any]]:
    types: dict[str, Any] = {}
    for one in reversed(kind.__mro__):
        types |= getattr(one, "__annotations__", {})
    names, defaults = kind.__struct_fields__, kind.__struct_defaults__
    n_without = len(names) - len(defaults)
    fields: list[Any] = [(name, types[name]) for name in names[:n_without]]
    for name, default in zip(names[n_without:], defaults, strict=True):
        has_none = default is msgspec.NODEFAULT
        about = dataclasses.field() if has_none else dataclasses.field(default=default)
        fields.append((name, types[name], about))
    made: Any = dataclasses.make_dataclass(kind.__name__, fields, kw_only=True)
    return made.__dataclass_fields__  # type: ignore[no-any-return]


# Frozen values are in no cycles, so the garbage collector need not look at them: to go through the
# events that a worker remembers would stop it for tenths of a second at once.
class FrozenStruct(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base of messages: frozen, and created and decoded several times as fast as a dataclass.

    The functions of `dataclasses` nevertheless accept instances as if they were dataclasses.

    Examples
    --------
    >>> from streamgp.interactive import Cancel
    >>> cancel = Cancel(request_id="e1/label", why="gone", at=60.0)
    >>> dataclasses.replace(cancel, at=61.0)
    Cancel(request_id='e1/label', key=None, why='gone', at=61.0)
    >>> [field.name for field in dataclasses.fields(cancel)]
    ['request_id', 'key', 'why', 'at']

    """

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]] = cast(
        "Any", _DataclassFields()
    )


class PendingQuestion(NamedTuple):
    """An open question about an event: `x` as received, and the value that stands for its answer.

    `target` is 1 less the means of the known classes when the question was asked.
    """

    x: Features
    target: float


class PendingPosterior(NamedTuple):
    """What the answers to open questions will tell about an event.

    `mean` is the posterior mean of the share of these answers, whichever classes they name;
    `variance` is the posterior variance after these answers.
    """

    mean: float
    variance: float


class Posterior(FrozenStruct, frozen=True, kw_only=True):
    """Posterior of a Gaussian process at one event, one latent function per class.

    The classes share one covariance, hence one variance.

    Parameters
    ----------
    mean
        Posterior mean of each known class, in units of its 0/1 indicator.
    variance
        Posterior variance of the latent function (without observation noise).
    prior_variance
        The same before anything was learned.
    pending
        What the answers to open questions will tell; None if there are none, or if they do not
        count.

    Examples
    --------
    >>> from streamgp import Posterior
    >>> belief = Posterior(mean={"home": 0.75, "work": 0.25, "gym": -0.1}, variance=0.2)
    >>> belief.probabilities()
    {'home': 0.75, 'work': 0.25, 'gym': 0.0}

    """

    mean: dict[Label, float]
    variance: float
    prior_variance: float = 1.0
    pending: PendingPosterior | None = None

    def probabilities(self) -> dict[Label, float]:
        """Positive parts of the means divided by their sum; uniform if no mean is positive."""
        return positive_parts(self.mean, list(self.mean.values()))


Belief: TypeAlias = Posterior | Mapping[Label, float]
"""A posterior, or plain class probabilities from a learner without one."""


class MixedLabelsError(ValueError):
    """A label equals a known class of another type, as True and 1 do, and can never be learned."""


class LearnerFailedError(RuntimeError):
    """A learner has failed half-way through a change, and is no longer in its earlier state.

    A ValueError or TypeError of a method that learns means the opposite: nothing has changed.
    """


class Distribution(Protocol):
    """Predictive distribution of a number at one event."""

    @property
    def mu(self) -> float:
        """Mean of an observation."""

    @property
    def sigma(self) -> float:
        """Standard deviation of an observation, noise included."""


@runtime_checkable
class Mixture(Protocol):
    """A belief composed of those of several experts."""

    @property
    def weights(self) -> Sequence[float]:
        """Weight of each expert; they sum to 1."""

    @property
    def components(self) -> Sequence[Any]:
        """Belief of each expert: a `Distribution` of a number, or a `Posterior` of classes."""


class Decision(FrozenStruct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether to ask, and everything needed to understand why; true if it asks.

    `ask` is true exactly when the score exceeds the threshold and no budget refused. A randomised
    rule records its draw as the threshold, so every decision can be verified from a log.

    Parameters
    ----------
    ask
        Whether the question is to be asked.
    score
        What the criterion measured, finite; higher is a better reason to ask.
    threshold
        What the score had to exceed, finite.
    criterion
        Name of the rule that decided.
    budget
        Name of the budget, or other limit, that refused a question the rule wanted; else None.

    Examples
    --------
    >>> from streamgp import Decision
    >>> Decision(ask=True, score=0.4, threshold=0.1, criterion="SkepticalAsk").ask
    True
    >>> Decision(ask=True, score=0.1, threshold=0.4, criterion="SkepticalAsk")
    Traceback (most recent call last):
    ValueError: ask must equal score > threshold and budget is None, got ask=True, score=0.1, ...

    """

    ask: bool
    score: float
    threshold: float
    criterion: str
    budget: str | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.score) and math.isfinite(self.threshold)):
            raise ValueError(
                "score and threshold must be finite, got "
                f"score={self.score!r}, threshold={self.threshold!r}"
            )
        if self.ask != (self.score > self.threshold and self.budget is None):
            raise ValueError(
                "ask must equal score > threshold and budget is None, got "
                f"ask={self.ask}, score={self.score}, threshold={self.threshold}, "
                f"budget={self.budget!r}"
            )

    def __bool__(self) -> bool:
        # Else `if model.query_one(x)` would be true of any decision.
        return self.ask

    @classmethod
    def of(cls, score: float, threshold: float, criterion: str) -> Decision:
        """Decide by comparison alone, before any budget has been consulted."""
        # Learners that compute in numpy pass its scalars, which cannot be encoded.
        score, threshold = float(score), float(threshold)
        return cls(ask=score > threshold, score=score, threshold=threshold, criterion=criterion)

    def refused_by(self, budget: str) -> Decision:
        """Return the same decision, not asked because `budget` refused."""
        return Decision(
            ask=False,
            score=self.score,
            threshold=self.threshold,
            criterion=self.criterion,
            budget=budget,
        )


class Doubt(FrozenStruct, frozen=True, kw_only=True):
    """A label that was learned and has become improbable since.

    Parameters
    ----------
    event_id
        The event.
    decision
        Whether to challenge the label.
    suggested
        Another label, which the other examples support.
    probability_wrong
        Probability that the label is wrong.
    std
        Standard deviation around what is suggested, if that is a number.

    """

    event_id: str
    decision: Decision
    suggested: Label
    probability_wrong: float
    std: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledAnswer:
    """First answer about an event, and its outcome.

    Parameters
    ----------
    y
        Label that was given first; None if it is not known, but differed from the label
        that was learned.
    annotator
        The annotator.
    upheld
        Whether it was kept when challenged; None if no challenge was answered.
    second
        Another annotator's answer to a second question, given without knowing the first; None if
        there is none.
    was_asked
        Whether the answer was asked for.
    corrected
        Label to which the annotator has changed it last, when challenged or unasked; None if not.

    """

    y: Label | None
    annotator: str | None = None
    upheld: bool | None = None
    second: SettledAnswer | None = None
    was_asked: bool = True
    corrected: Label | None = None

    @classmethod
    def settled(
        cls,
        given: Label,
        final: Label,
        annotator: str | None,
        *,
        challenged: bool,
        was_asked: bool = True,
        final_by: str | None = None,
    ) -> Self:
        """Return a first answer about an event with the label it has got.

        `final_by` has given that label when the first one was challenged; None if not known.

        Examples
        --------
        >>> SettledAnswer.settled("gym", "home", "ann", challenged=True)
        SettledAnswer(y='gym', annotator='ann', upheld=False, ..., was_asked=True, corrected=None)

        """
        is_same = final == given
        # As a log tells it: one of two equal labels, True and 1, is the final one.
        answer = cls(
            y=final if is_same else given,
            annotator=annotator,
            upheld=is_same if challenged else None,
            was_asked=was_asked,
        )
        return answer.corrected_by(final_by, final) if answer.upheld is False else answer

    def corrected_by(self, annotator: str | None, y: Label) -> Self:
        """Return it after a correction to `y`, which counts if it is of the same annotator."""
        if annotator is None or annotator != self.annotator:
            return self
        return replace(self, corrected=y)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """An event with its label, as it is learned.

    Parameters
    ----------
    event_id
        The event, or None if it is learned without an id.
    x
        Features as received.
    y
        Label.
    privileged
        What came with the label and is not known at prediction time, as received; None if there is
        nothing, or if the learner does not use it.
    answer
        The answer that the label comes from, even if it was corrected since; None if that is not
        known.

    """

    event_id: str | None
    x: Features
    y: Label
    privileged: Features | None = None
    answer: SettledAnswer | None = None


class Neighbour(FrozenStruct, frozen=True, kw_only=True):
    """A labelled example near an event, shown to the annotator with a challenge.

    Parameters
    ----------
    event_id
        The example's event, or None if it was learned without an id.
    x
        Its features as received.
    y
        Its label.
    distance
        Euclidean distance from the event in the learner's feature space.

    """

    event_id: str | None
    x: Features
    y: Label
    distance: float


# --- Protocol of a budget; `streamgp.budgets` has implementations.


class QuestionsLeft(NamedTuple):
    """What is left of a budget: `left` of `of` questions, within `span_s` seconds (None: ever)."""

    left: int
    of: int
    span_s: float | None = None


@runtime_checkable
class Budget(Protocol):
    """Decides whether one more question may be asked."""

    def allows(self, decision: Decision, now: float) -> bool:
        """Whether the question may be asked now; changes nothing."""

    def note(self, decision: Decision, asked: bool, now: float) -> None:
        """Record an event and whether it was asked about; called once for each event."""

    def refund(self, now: float) -> None:
        """Record that a question ended without an answer.

        A budget that takes `asked_at` is also told when the question was asked, if that is known.
        """

    def state(self) -> State:
        """Return what must survive a restart, as plain JSON values."""

    def load_state(self, state: State) -> None:
        """Restore what `state` returned."""


@runtime_checkable
class CountingBudget(Budget, Protocol):
    """A budget that can tell how much of it is left."""

    def left(self, now: float) -> QuestionsLeft | None:
        """Return how many questions are left, None if that is not known."""
