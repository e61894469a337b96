"""Labels and numbers as text: display and parsing."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from unicodedata import normalize

from connectors.tables.cells import is_integer_text, with_point
from connectors.wire.explain import LARGEST, SMALLEST
from connectors.wire.inbound import MAX_NAME
from streamgp.base import Label
from streamgp.common.printable import printable
from streamgp.interactive.validation import LARGEST_LABEL

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|true|false|nan|inf(inity)?", re.I)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def shown_label(label: Label) -> str:
    """Return a label as text; text that looks like a number is quoted.

    Examples
    --------
    >>> [shown_label(label) for label in ("hall", "7", 7, 7.0, True, " ")]
    ['hall', '"7"', '7', '7.0', 'true', '" "']

    """
    if isinstance(label, bool):
        return "true" if label else "false"
    if not isinstance(label, str):
        return repr(label)
    text = printable(label)
    if not text or text != text.strip() or text[0] == '"' or _NUMBER.fullmatch(text):
        return json.dumps(text, ensure_ascii=False)
    return text


def parse_label(text: str, known: Sequence[Label]) -> Label:
    r"""Parse a typed label: a known one, or a new one of the same kind.

    Keyboards write an accented letter as one character or as two; both are one label, as they look
    the same. A new one is in Unicode's composed form (NFC).

    Parameters
    ----------
    text
        The typed text. In quotes it is always a text label.
    known
        The labels known so far. If all of them are numbers, a new one is a number.

    Raises
    ------
    ValueError
        If it cannot be a label.

    Examples
    --------
    >>> parse_label("7", []), parse_label("7", ["1", "2"]), parse_label('"7"', [1, 2])
    (7, '7', '7')
    >>> parse_label("Hall", ["hall"])
    'hall'
    >>> parse_label("cafe\u0301", []) == "caf\u00e9"
    True

    """
    text = normalize("NFC", text.strip())
    if not text:
        raise ValueError("a label has at least one character")
    if len(text) > MAX_NAME or _CONTROL.search(text):
        raise ValueError(f"a label has at most {MAX_NAME} characters, all of them printable")
    for label in known:
        if normalize("NFC", shown_label(label)) == text:
            return label
    if text.startswith('"'):
        return _quoted(text)
    for label in known:
        if isinstance(label, str) and _without_case(label) == _without_case(text):
            return label
    kinds = {type(label) for label in known}
    if kinds <= {int} and is_integer_text(text) and can_be_written(number := int(text)):
        return number
    if kinds == {float} and (real := _float(text)) is not None:
        return real
    if not kinds or str in kinds:
        return text
    raise ValueError(
        f"the labels here are {_names(known)}; put {text!r} in double quotes if you mean a text"
    )


def _without_case(text: str) -> str:
    return normalize("NFC", text.lower())  # not casefold: "Maße" is not "Masse"


def can_be_written(number: float) -> bool:
    """Return whether workers take a number: an integer of 64 bits, or one not too large."""
    if isinstance(number, int):
        return SMALLEST <= number <= LARGEST
    return abs(number) <= LARGEST_LABEL


# Separators before the precision of a number.
_PLUS_MINUS = re.compile(r"\s*(?:±|\+/?-)\s*")
# Keyboards of Japanese type wide digits, those of Arabic and Persian their own.
_IN_ASCII = str.maketrans("\uff0b\uff0d\u2212\uff0c\uff0e\u066b", "+--,..") | {
    zero + i: str(i) for zero in (0x660, 0x6F0, 0xFF10) for i in range(10)
}
# In English a thousand times as much as in German.
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")


def parse_number(text: str) -> tuple[float, float | None]:
    """Parse a typed number and its precision, None if none was given.

    Point and comma both separate decimals, but a comma not where it may separate thousands.

    Raises
    ------
    ValueError
        If it is no number.

    Examples
    --------
    >>> parse_number("21.5"), parse_number("21,5 ± 0,5"), parse_number("-3 +- 1")
    ((21.5, None), (21.5, 0.5), (-3.0, 1.0))

    """
    number, *exact = _PLUS_MINUS.split(text.strip().translate(_IN_ASCII), maxsplit=1)
    for each in (number, *exact):
        if _THOUSANDS.fullmatch(each):
            raise ValueError(
                f"{each!r} has two meanings; write {each.replace(',', '')} or "
                f"{each.replace(',', '.')}, whichever you mean"
            )
    y, std = _float(with_point(number)), _float(with_point(exact[0])) if exact else None
    if y is None or (exact and (std is None or std <= 0.0)):
        raise ValueError(
            f"{text.strip()!r:.60} is no number; write one as 21.5, or 21.5 +- 0.5 to say how "
            "exact it is (its standard deviation)"
        )
    return y, std


def _quoted(text: str) -> str:
    try:
        label = json.loads(text)
    except ValueError:
        label = None
    if not isinstance(label, str) or not label.strip() or _CONTROL.search(label):
        raise ValueError(f"{text} is no text in double quotes")
    return label


def _float(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if can_be_written(number) and "_" not in text else None


def _names(known: Sequence[Label]) -> str:
    shown = ", ".join(shown_label(label) for label in known[:3])
    return shown if len(known) <= 3 else f"{shown}, ..."
