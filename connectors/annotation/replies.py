"""Replies of annotators to cards, what becomes of them, and how they are checked."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, Literal, TypeAlias, get_args

from streamgp.base import Label
from streamgp.interactive.messages import CONFIDENCE, RESPONSE_S, Answer

Action: TypeAlias = Literal["label", "number", "keep", "change", "decline"]
ACTIONS: tuple[Action, ...] = get_args(Action)

_MAX_ID = 200
_MAX_SHOWN = 16
_MAX_NOTE = 2_000


class CardGoneError(Exception):
    """The question waits for no answer any more."""


class DifferentBodyError(Exception):
    """Another reply was sent under the same id."""


class BadReplyError(ValueError):
    """A reply that cannot be used.

    Parameters
    ----------
    what
        What is wrong.
    expected
        What was expected.

    """

    def __init__(self, what: str, expected: str) -> None:
        super().__init__(f"{what}; expected {expected}")
        self.what = what
        self.expected = expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What an annotator says to a card.

    Parameters
    ----------
    card
        Id of the card.
    answer_id
        Id of the reply, chosen by the client; the same again for a repeat of the same reply.
    action
        `label` (give `label`), `number` (give `number`), `keep` or `change` (of a challenge: the
        label given, or the one suggested), `decline` (don't know).
    label, number
        The answer, for these actions. A text that is no known label is read as if it was typed.
    std
        How exact the number is, as a standard deviation.
    confidence
        How sure the annotator is, from 0 (guessed) to 1 (certain).
    response_s
        For how many seconds the question had been shown.
    shown
        What else was shown: `suggestion`, `examples`, `excerpt` and the like.
    flag, note
        Whether it should be looked at again, and what the annotator wrote about it.
    why_not
        Why it was declined: `unclear`, `not_applicable`, `bad_data`, or other words.

    """

    card: str
    answer_id: str
    action: Action
    label: Label | None = None
    number: float | None = None
    std: float | None = None
    confidence: float | None = None
    response_s: float | None = None
    shown: tuple[str, ...] = ()
    flag: bool = False
    note: str | None = None
    why_not: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """Effect of a reply, or of taking one back.

    Parameters
    ----------
    answer
        What has to be sent; None where nothing has to be.
    partition
        Where it belongs to.
    again
        Whether it was known already: it was sent, or is on its way.

    """

    answer: Answer | None
    partition: int | None = None
    again: bool = False


def check(reply: Reply) -> None:
    """Check the fields of a reply that mean the same for every card.

    Raises
    ------
    BadReplyError
        If one cannot be used.

    """
    if reply.action not in ACTIONS:
        raise BadReplyError(f"action is {reply.action!r:.80}", f"one of {', '.join(ACTIONS)}")
    if not 0 < len(reply.answer_id) <= _MAX_ID:
        n = len(reply.answer_id)
        raise BadReplyError(f"answer_id has {n} characters", f"1 to {_MAX_ID}")
    confidence, response_s, std = reply.confidence, reply.response_s, reply.std
    if confidence is not None and not 0.0 <= confidence <= 1.0:
        raise BadReplyError(f"confidence is {confidence!r}", "a number from 0 to 1")
    if response_s is not None and not 0.0 <= response_s < inf:
        raise BadReplyError(f"response_s is {response_s!r}", "seconds, 0 or more")
    if std is not None and not (reply.action == "number" and 0.0 < std < inf):
        raise BadReplyError(f"std is {std!r}", "a positive number, with action number")
    for name, value in (("note", reply.note), ("why_not", reply.why_not)):
        if value is not None and len(value) > _MAX_NOTE:
            raise BadReplyError(
                f"{name} has {len(value)} characters", f"at most {_MAX_NOTE} of them"
            )
    if len(reply.shown) > _MAX_SHOWN or any(len(name) > _MAX_ID for name in reply.shown):
        raise BadReplyError("shown is too long", f"at most {_MAX_SHOWN} short names")


def details_of(reply: Reply) -> dict[str, Any]:
    """Return what an answer says beside the label."""
    known = {RESPONSE_S: reply.response_s, CONFIDENCE: reply.confidence}
    privileged = {name: value for name, value in known.items() if value is not None}
    return {
        "std": reply.std,
        "privileged": privileged or None,
        "shown": tuple(reply.shown),
        "flag": reply.flag,
        "note": reply.note or None,
        "reason": reply.why_not if reply.action == "decline" else None,
    }
