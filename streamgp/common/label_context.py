"""Context of a label besides its value, and the parts of it that a learner's methods take.

A user's own learner need not take all of it: what its methods take is read from their signatures,
once, when the learner is passed in.

"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from streamgp.common.signatures import parameters

if TYPE_CHECKING:
    from streamgp.base import Features, SettledAnswer


# A struct: two are created for each answer, and a frozen dataclass takes five times as long.
class LabelContext(msgspec.Struct, frozen=True, kw_only=True):
    """Context of a label besides its value; None for what is not known.

    Parameters
    ----------
    annotator
        Who gave the label; after an answered challenge, who gave the first label.
    std
        Standard deviation stated with a number; after an answered challenge, with the first one.
    privileged
        What else came with the label, for learners that take privileged features.
    given_privileged
        What else came with the first answer, where that differs from what came with the label.
    asked
        Whether the learner's query strategy asked for the label.
    asked_at
        When a label that never came was asked for.
    event_id
        Id of the event, for methods that are notified of the request for its label: set while the
        label is awaited, and when it no longer is.
    n_since
        Number of events observed after the one that the label belongs to.
    answer
        The recorded first answer, where the label comes from a log.

    """

    annotator: str | None = None
    std: float | None = None
    privileged: Features | None = None
    given_privileged: Features | None = None
    asked: bool | None = None
    asked_at: float | None = None
    event_id: str | None = None
    n_since: int | None = None
    answer: SettledAnswer | None = None


# Every learner takes `annotator` where it judges or learns a first answer; the rest is optional, as
# is the annotator of a correction.
_OF_LABELS: Final = ("std", "privileged", "given_privileged", "asked", "n_since", "answer")
_OPTIONAL: Final[Mapping[str, tuple[str, ...]]] = {
    "challenge_one": _OF_LABELS,
    "probability_wrong_one": _OF_LABELS,
    "settle_one": _OF_LABELS,
    "relabel_one": ("annotator", *_OF_LABELS),
    "note_query": ("event_id",),
    "note_unanswered": ("asked_at", "event_id"),
}


class AcceptedOptions:
    """The optional arguments that the methods of one learner take.

    Parameters
    ----------
    learner
        A skeptical learner. The signatures of its methods must not change.

    Examples
    --------
    >>> from streamgp import isgp
    >>> accepted = AcceptedOptions(isgp(seed=1))
    >>> context = LabelContext(annotator="ann", std=0.5, asked=True)
    >>> accepted.of("settle_one", context), accepted.of("challenge_one", context)
    ({'asked': True}, {})

    """

    # _accepted  names of the fields of a context that each method takes; shared by all learners of
    #            a class, as there may be one for each of a hundred thousand keys
    __slots__ = ("_accepted",)

    def __init__(self, learner: Any) -> None:
        methods = (getattr(learner, name) for name in _OPTIONAL)
        self._accepted = _fields_taken(tuple(getattr(m, "__func__", m) for m in methods))

    def of(self, method: str, context: LabelContext) -> dict[str, Any]:
        """Return the optional arguments for a method call: those that it takes and are known."""
        found = {}
        for name in self._accepted[method]:
            value = getattr(context, name)
            if value is not None:
                found[name] = value
        return found


@lru_cache(maxsize=64)
def _fields_taken(methods: tuple[Callable[..., Any], ...]) -> Mapping[str, tuple[str, ...]]:
    taken = map(parameters, methods)
    return {
        method: tuple(name for name in optional if name in names)
        for (method, optional), names in zip(_OPTIONAL.items(), taken, strict=True)
    }
