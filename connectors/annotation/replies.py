"""Annotators' replies to cards, their checks and their effects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias
from unicodedata import normalize

import msgspec
from msgspec import Meta

from connectors.annotation.label_text import can_be_written, parse_label
from connectors.annotation.timeline import is_same
from streamgp.base import Label
from streamgp.common.printable import hidden_characters
from streamgp.interactive.messages import CONFIDENCE, RESPONSE_S, Answer, Challenge, Request
from streamgp.interactive.validation import LARGEST_LABEL

_MAX_SHOWN = 16
_MAX_NAME = 10_000
MAX_NEW_LABEL = 200
"""The largest length of a label that is new; each card holds all labels of its key."""


class CardGoneError(Exception):
    """The question no longer waits for an answer."""


class DifferentBodyError(Exception):
    """Another reply was sent under the same id."""


BadReply: TypeAlias = Literal[
    "malformed",
    "bad_label",
    "hidden_characters",
    "long_label",
    "many_labels",
    "unknown_label",
    "same_label",
]


class BadReplyError(ValueError):
    """A reply that cannot be used.

    Parameters
    ----------
    code
        The reason, for programs: `malformed` (the client's error, not the annotator's), `bad_label`
        (not written as a label), `hidden_characters`, `long_label`, `many_labels` (a new one, and
        the workers take no more), or, in renaming, `unknown_label` and `same_label`.

    """

    def __init__(self, what: str, expected: str, code: BadReply = "malformed") -> None:
        super().__init__(f"{what}; expected {expected}")
        self.what = what
        self.expected = expected
        self.code = code


Id: TypeAlias = Annotated[str, Meta(min_length=1, max_length=_MAX_NAME)]
AnswerId: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200)]
PlainLabel: TypeAlias = (
    bool | int | float | Annotated[str, Meta(min_length=1, max_length=_MAX_NAME)]
)
Finite: TypeAlias = Annotated[float, Meta(gt=-1e300, lt=1e300)]


class Reply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An annotator's reply to a card, as clients send it.

    Parameters
    ----------
    answer_id
        Id of the reply, chosen by the client; a repeat of the same reply has the same id.
    action
        `label` (give `label`), `number` (give `number`), `keep` or `change` (of a challenge: the
        label given, or the one suggested; with a value, that one), `decline` (don't know).
    label, number
        The answer, for these actions. Text that is no known label is parsed as if typed.
    std
        Precision of the number, as a standard deviation.
    confidence
        The annotator's confidence, from 1 (guessed) to 5 (certain).
    response_s
        How long the question had been shown, in seconds.
    shown
        What else was shown: `suggestion`, `examples`, `excerpt` and the like.
    flag, note
        Whether it should be reviewed, and the annotator's remark.
    why_not
        Why it was declined: `unclear`, `not_applicable`, `bad_data`, or other text.

    """

    card: Id
    answer_id: AnswerId
    action: Literal["label", "number", "keep", "change", "decline"]
    label: PlainLabel | None = None
    number: Finite | None = None
    std: Annotated[float, Meta(gt=0, lt=1e300)] | None = None
    confidence: Annotated[float, Meta(ge=1, le=5)] | None = None
    response_s: Annotated[float, Meta(ge=0, lt=1e9)] | None = None
    shown: Annotated[tuple[Annotated[str, Meta(max_length=100)], ...], Meta(max_length=20)] = ()
    flag: bool = False
    note: Annotated[str, Meta(max_length=2000)] | None = None
    why_not: Annotated[str, Meta(max_length=100)] | None = None

    @property
    def gives_value(self) -> bool:
        """Whether it gives a label or number of its own, even if that is missing."""
        has_value = self.label is not None or self.number is not None
        return self.action in ("label", "number") or (self.action == "change" and has_value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """Effect of a reply, or of taking one back.

    Parameters
    ----------
    answer
        The answer to send; None if there is nothing to send.
    again
        Whether it was already known: it was sent, or is being sent.

    """

    answer: Answer | None
    partition: int | None = None
    again: bool = False


def check(reply: Reply) -> None:
    """Check fields whose meaning does not depend on the card; the caller has checked their form.

    Raises
    ------
    BadReplyError
        If one cannot be used.

    """
    std, is_number = reply.std, reply.number is not None and reply.label is None
    if std is not None and not (reply.gives_value and is_number and std <= LARGEST_LABEL):
        raise BadReplyError(
            f"std is {std!r}", f"a number above 0, at most {LARGEST_LABEL:.0e}, with action number"
        )
    if len(reply.shown) > _MAX_SHOWN:
        raise BadReplyError("shown is too long", f"at most {_MAX_SHOWN} short names")


def details_of(reply: Reply) -> dict[str, Any]:
    """Return the fields of an answer besides the label."""
    confidence = None if reply.confidence is None else (reply.confidence - 1.0) / 4.0
    return {
        "std": reply.std,
        "privileged": privileged_of(reply.response_s, confidence),
        "shown": tuple(reply.shown),
        "flag": reply.flag,
        "note": reply.note or None,
        "reason": reply.why_not if reply.action == "decline" else None,
    }


def privileged_of(response_s: float | None, confidence: float | None) -> dict[str, float] | None:
    """Return the privileged information of an answer, None if there is none."""
    known = {RESPONSE_S: response_s, CONFIDENCE: confidence}
    return {name: value for name, value in known.items() if value is not None} or None


def label_of(
    reply: Reply, request: Request, known: Sequence[Label], *, of_numbers: bool
) -> Label | None:
    """Return the label that a reply to a request gives, None if it declines.

    Parameters
    ----------
    of_numbers
        Whether numbers are asked for, not names of classes.

    Raises
    ------
    BadReplyError
        If the reply does not fit such a request.

    """
    if reply.action == "decline":
        return None
    if not reply.gives_value:
        if not isinstance(request, Challenge):
            raise BadReplyError(
                f"action {reply.action!r} for a question that is no challenge",
                "number or decline" if of_numbers else "label or decline",
            )
        return request.given if reply.action == "keep" else request.suggested
    field = "number" if of_numbers else "label"
    value: Label | None = getattr(reply, field)
    if reply.action not in (field, "change") or value is None:
        raise BadReplyError(f"action {reply.action!r}", f"{field} with a value in {field!r}")
    return read_label(value, known, of_numbers=of_numbers)


def read_label(value: Label, known: Sequence[Label], *, of_numbers: bool) -> Label:
    """Return the label that a client means: JSON has one type of number, and text was typed.

    Raises
    ------
    BadReplyError
        If it is not valid; or if it is new, and too long or with invisible characters, by which it
        would look like another one.

    Examples
    --------
    >>> read_label(2, [2.0, 3.0], of_numbers=False), read_label(" hall", ["hall"], of_numbers=False)
    (2.0, 'hall')

    """
    if of_numbers:
        if isinstance(value, bool | str) or not can_be_written(value):
            raise BadReplyError(
                f"number is {value!r:.80}", f"a number of at most {LARGEST_LABEL:.0e} in size"
            )
        return float(value)
    if isinstance(value, str):
        if any(is_same(value, label) for label in known):
            return value
        try:
            label = parse_label(value, known)
        except ValueError as error:
            raise BadReplyError(f"label is {value!r:.80}", str(error), "bad_label") from None
        if isinstance(label, str) and not any(is_same(label, each) for each in known):
            _check_new(label)
        return label
    if not isinstance(value, bool | int | float) or not can_be_written(value):
        raise BadReplyError(
            f"label is {value!r:.80}",
            f"a string, a boolean or a number, at most {LARGEST_LABEL:.0e} in size",
        )
    if any(is_same(value, label) for label in known) or isinstance(value, bool):
        return value
    alike = (y for y in known if not isinstance(y, bool | str) and y == value)
    return next(alike, value)


def can_be_offered(label: Label) -> bool:
    """Return whether an annotator could give a label as a new one.

    Typed labels have no blanks around them, and are in Unicode's composed form.

    Examples
    --------
    >>> can_be_offered("hall"), can_be_offered(" hall"), can_be_offered(float("inf"))
    (True, False, False)

    """
    if not isinstance(label, str):
        return can_be_written(label)
    try:
        _check_new(label)
    except BadReplyError:
        return False
    return bool(label) and label == normalize("NFC", label.strip())


def _check_new(label: str) -> None:
    if hidden := hidden_characters(label):
        raise BadReplyError(
            f"label holds what cannot be seen: {', '.join(hidden[:5])}",
            "characters that show",
            "hidden_characters",
        )
    if len(label) > MAX_NEW_LABEL:
        raise BadReplyError(
            f"label has {len(label)} characters",
            f"at most {MAX_NEW_LABEL} in a new label",
            "long_label",
        )
