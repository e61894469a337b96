"""Validation of a loop's inputs: all checks and conversions.

A flaw of an input is described in words, also one that the learner finds (the loop makes a
`Rejected` of it); the wrong type of message, or a clock that returns no number, is a programming
error and raises.

"""

from __future__ import annotations

import numbers
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from streamgp.common.feature_values import plain_features
from streamgp.common.validation import check_number
from streamgp.interactive.messages import (
    MOST_IN_EXCERPT,
    Answer,
    Event,
    Excerpt,
    Fault,
    Rejected,
    Stage,
)

if TYPE_CHECKING:
    from streamgp.base import Features, Label


_LARGEST = sys.float_info.max
# Largest number that can be learned: sums of squares of differences of such numbers, and the
# squares of those, are finite.
LARGEST_LABEL = 1e100
# Labels that need no conversion; a number has to be checked to be finite and not too large.
_PLAIN = frozenset((str, bool))
# The largest number of features that a refusal names.
_N_NAMES = 5


def is_finite(value: object) -> bool:
    """Whether a value is a finite number; NaN, infinities and bools are not."""
    if type(value) is float:  # nearly always; takes a third of the time, twice for each event
        return -_LARGEST <= value <= _LARGEST
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and -_LARGEST <= value <= _LARGEST
    )


def check_now(now: object) -> None:
    """Refuse a clock that does not return a finite number.

    Examples
    --------
    >>> check_now(float("nan"))
    Traceback (most recent call last):
    ValueError: now must be a finite number of seconds, got nan

    """
    if not is_finite(now):
        raise ValueError(_no_time("now", now))


def checked_writing(at: float | None) -> float | None:
    """Return when something is written, None if that is not known; refuse what is not a time.

    Examples
    --------
    >>> checked_writing(2.0), checked_writing(None)
    (2.0, None)
    >>> checked_writing(float("inf"))
    Traceback (most recent call last):
    ValueError: written_at must be a finite number of seconds or None, got inf

    """
    if at is not None and not is_finite(at):
        raise ValueError(_no_time("written_at", at, " or None"))
    return at


def check_duration(name: str, value: float, wanted: str = "a positive number of seconds") -> None:
    """Refuse a duration that is not positive and finite."""
    check_number(name, value, wanted, lambda span: 0.0 < span < float("inf"))


def check_span(name: str, value: float | None) -> None:
    """Refuse a duration that is not positive and finite; None stands for no limit."""
    if value is not None:
        check_duration(name, value, "a positive number of seconds or None")


def as_label(y: object) -> Label:
    """Convert a label to a plain bool, int, float or str.

    NumPy scalars, and members of enumerations with plain values, become the plain value, so that a
    label means the same in a dictionary, in a message and in a log.

    Raises
    ------
    ValueError
        If the value is none of these, or not finite.

    Examples
    --------
    >>> as_label("kitchen"), as_label(True), as_label(3)
    ('kitchen', True, 3)
    >>> as_label(float("inf"))
    Traceback (most recent call last):
    ValueError: a label must be a finite number, a bool or a string, got inf

    """
    plain: Any = y
    if isinstance(plain, str) and not _is_text(plain):
        raise ValueError(f"a label must be valid Unicode, got {y!r}")
    if type(plain) in _PLAIN:
        return plain  # type: ignore[no-any-return]
    if type(plain).__module__ == "numpy" and getattr(plain, "shape", None) == ():
        plain = plain.item()
    if isinstance(plain, int | float) and LARGEST_LABEL < abs(plain) < float("inf"):
        raise ValueError(f"a label must be at most {LARGEST_LABEL:.0e} in size, got {y!r:.40}")
    # Subclasses (such as members of an enumeration) lose their class; bool comes before int, as a
    # bool is an int.
    if isinstance(plain, str):
        return str.__str__(plain)
    if isinstance(plain, bool):
        return plain
    if isinstance(plain, int):
        return int(plain)
    if isinstance(plain, float) and -_LARGEST <= plain <= _LARGEST:
        return float(plain)
    raise ValueError(f"a label must be a finite number, a bool or a string, got {y!r}")


def flaw_of_event(event: Event, *, is_checked: bool = False) -> str | None:
    """Return what is wrong with an event, or None.

    Parameters
    ----------
    is_checked
        Whether its fields are known to have the right types: `connectors.wire` ensures everything
        but the size of a number as label.

    Examples
    --------
    >>> flaw_of_event(Event(event_id="", x={}, occurred_at=0.0))
    "event_id must be a string of at least one character, got ''"

    """
    flaw = None if is_checked else _flaw_of_types(event)
    return flaw_of_label(event.y) if flaw is None and event.y is not None else flaw


def _flaw_of_types(event: Event) -> str | None:
    if not (_is_text(event.event_id) and event.event_id):
        return _no_id("event_id", event.event_id)
    if not (event.key is None or _is_text(event.key)):
        return f"key must be a string or None, got {event.key!r}"
    if not isinstance(event.x, Mapping):
        return f"x must be a mapping from feature names to values, got {event.x!r}"
    if not is_finite(event.occurred_at):
        return _no_time("occurred_at", event.occurred_at)
    for name, bound in (("start", event.start), ("end", event.end)):
        if not (bound is None or is_finite(bound)):
            return _no_time(name, bound)
    return None if event.excerpt is None else flaw_of_excerpt(event.excerpt)


def flaw_of_excerpt(excerpt: object) -> str | None:
    """Return what is wrong with the excerpt of an event, or None.

    Examples
    --------
    >>> flaw_of_excerpt({"acc": [0.5, 1]}), flaw_of_excerpt({"acc": [0.5, "1"]})
    (None, "excerpt['acc'] must hold finite numbers, got '1'")

    """
    if not isinstance(excerpt, Mapping):
        return f"excerpt must be a mapping from channels to lists of numbers, got {excerpt!r:.80}"
    for channel, values in excerpt.items():
        if not _is_text(channel):
            return f"channels of an excerpt must be texts, got {channel!r:.80}"
        if not isinstance(values, list | tuple):
            return f"excerpt[{channel!r}] must be a list of numbers, got {values!r:.80}"
        if len(values) > MOST_IN_EXCERPT:
            return (
                f"excerpt[{channel!r}] must have at most {MOST_IN_EXCERPT} numbers, got "
                f"{len(values)}; send every n-th"
            )
        for value in values:
            if not (value is None or is_finite(value)):
                return f"excerpt[{channel!r}] must hold finite numbers, got {value!r:.80}"
    return None


def plain_excerpt(excerpt: Excerpt | None) -> dict[str, list[float | None]] | None:
    """Return an excerpt as plain JSON values: the same before and after a restart."""
    if excerpt is None:
        return None
    return {
        str(channel): [None if v is None else float(v) for v in values]
        for channel, values in excerpt.items()
    }


def flaw_of_answer(answer: Answer, *, is_checked: bool = False) -> str | None:
    """Return what is wrong with an answer, or None; `is_checked` as in `flaw_of_event`.

    Examples
    --------
    >>> flaw_of_answer(Answer(answer_id="a", event_id="e", y=[1], answered_at=0.0))
    'a label must be a finite number, a bool or a string, got [1]'

    """
    flaw = None if is_checked else _flaw_of_types_of_answer(answer)
    if flaw is None and answer.std is not None:
        flaw = _flaw_of_std(answer.std, answer.y)
    return flaw_of_label(answer.y) if flaw is None and answer.y is not None else flaw


def _flaw_of_types_of_answer(answer: Answer) -> str | None:
    ids = {"answer_id": answer.answer_id, "event_id": answer.event_id}
    for name, value in ids.items():
        if not (_is_text(value) and value):
            return _no_id(name, value)
    names = {
        "request_id": answer.request_id,
        "key": answer.key,
        "annotator": answer.annotator,
        "supersedes": answer.supersedes,
    }
    for name, text in names.items():
        if not (text is None or _is_text(text)):
            return f"{name} must be a string or None, got {text!r}"
    if not (answer.privileged is None or isinstance(answer.privileged, Mapping)):
        return f"privileged must be a mapping or None, got {answer.privileged!r}"
    if answer.privileged is not None and not _is_plain(dict(answer.privileged)):
        return f"privileged must hold plain JSON values, got {answer.privileged!r:.200}"
    if not is_finite(answer.answered_at):
        return _no_time("answered_at", answer.answered_at)
    return None


def _flaw_of_std(std: float, y: object) -> str | None:
    if not (is_finite(std) and std > 0.0):
        return f"std must be a positive finite number or None, got {std!r}"
    if std > LARGEST_LABEL:
        return f"std must be at most {LARGEST_LABEL:.0e}, got {std!r}"
    if isinstance(y, bool | str | None):
        return f"std is for numbers, got {std!r} for the label {y!r}"
    return None


def flaw_of_keeping(x: object) -> str | None:
    """Return why features could not be saved, or None; for loops that must be saveable.

    Examples
    --------
    >>> flaw_of_keeping({("a", 1): 0.5})
    "only features named by a string or a number can be saved, got ('a', 1)"

    """
    if not isinstance(x, Mapping):
        return None  # reported as another flaw
    try:
        plain_features(x)
    except (ValueError, TypeError) as error:
        return str(error)
    for text in (*x, *x.values()):
        if isinstance(text, str) and not _is_text(text):
            return f"only features of valid Unicode can be saved, got {text!r}"
    return None


def rejected(
    subject: object,
    key: object,
    fault: Fault,
    reason: str,
    now: float,
    stage: Stage | None = None,
) -> Rejected:
    """Reject an input; its id and key are repeated as far as possible."""
    return Rejected(
        subject=subject if isinstance(subject, str) and _is_text(subject) else repr(subject),
        key=key if isinstance(key, str) and _is_text(key) else None,
        fault=fault,
        reason=reason,
        at=now,
        stage=stage,
    )


def refusal_of(error: Exception, x: Features) -> str:
    """Return the reason given when the learner cannot take an event or an example.

    The text of the error alone would read as if the input could not be read: a user-defined learner
    may raise any text.

    Examples
    --------
    >>> refusal_of(ValueError("could not convert string to float: 'night'"), {"shift": "night"})
    "the learner refuses it: could not convert string to float: 'night'; 'shift' is text"

    """
    return f"the learner refuses it: {with_names(error, x)}"


def with_names(error: Exception, x: Features) -> str:
    """Return the text of an error; of one about text, or None, with the names of these features.

    Python names only types or values.

    Examples
    --------
    >>> with_names(TypeError("unsupported operand: 'NoneType' and 'float'"), {"a": None, "b": 1.0})
    "unsupported operand: 'NoneType' and 'float'; 'a' is missing"

    """
    reason = str(error)
    for kind, of, what in (("str", str, "text"), ("NoneType", type(None), "missing")):
        names = [repr(name) for name, value in x.items() if isinstance(value, of)]
        if names and kind in reason and not any(name in reason for name in names):
            some = ", ".join(names[:_N_NAMES])
            return f"{reason}; {some} {'is' if len(names) == 1 else 'are'} {what}"
    return reason


def _is_plain(value: object, depth: int = 32) -> bool:
    """Whether a value is unchanged by being written as JSON and read."""
    if depth == 0:
        return False
    if type(value) is dict:
        return all(_is_text(k) and _is_plain(v, depth - 1) for k, v in value.items())
    if type(value) is list:
        return all(_is_plain(v, depth - 1) for v in value)
    if type(value) is str:
        return _is_text(value)
    if value is None or type(value) is bool:
        return True
    return type(value) in (int, float) and is_finite(value)


def _is_text(value: object) -> bool:
    """Whether a value is a text that can be written: half a surrogate pair cannot."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _no_id(name: str, value: object) -> str:
    return f"{name} must be a string of at least one character, got {value!r}"


def _no_time(name: str, value: object, besides: str = "") -> str:
    what = f"{name} must be a finite number of seconds{besides}"
    is_foreign = isinstance(value, numbers.Real) and not isinstance(value, int | float)
    return f"{what}, got {value!r}{'; convert it with float()' if is_foreign else ''}"


def flaw_of_label(y: object) -> str | None:
    """Return why a value is not a label, or None."""
    try:
        as_label(y)
    except ValueError as error:
        return str(error)
    return None
