"""Labels and numbers as text: display, parsing, search, and near-duplicates of a new label."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from unicodedata import combining, normalize

from connectors.annotation.timeline import typed_label
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
    return normalize("NFC", text.casefold())


def can_be_written(number: float) -> bool:
    """Return whether workers take a number: an integer of 64 bits, or one not too large."""
    if isinstance(number, int):
        return SMALLEST <= number <= LARGEST
    return abs(number) <= LARGEST_LABEL


# Separators before the precision of a number.
_PLUS_MINUS = re.compile(r"\s*(?:±|\+/?-)\s*")
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
    number, *exact = _PLUS_MINUS.split(text.strip(), maxsplit=1)
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


# --- Search among labels, and near-duplicates of a new label.
#
# Labels are compared without case, accents and separators. A label whose first three letters are
# unique is found by typing them.

_SEPARATORS = str.maketrans(dict.fromkeys(" -_./", " "))
# Letters per typing error: one error in a word of four letters, two in one of eight.
_LETTERS_PER_SLIP = 4
_MOST_SLIPS = 2


def folded(text: str) -> str:
    """Return text without case and accents, and with single spaces between words.

    Examples
    --------
    >>> folded("Café_Nord"), folded("living  room")
    ('cafe nord', 'living room')

    """
    decomposed = normalize("NFKD", text.casefold())
    plain = "".join(c for c in decomposed if not combining(c)).translate(_SEPARATORS)
    return " ".join(plain.split())


def search(query: str, labels: Sequence[Label], *, recent: Sequence[Label] = ()) -> list[Label]:
    """Return the labels that match a query, the best first.

    The label that equals the query comes first, then those that begin with it, those with a word
    that begins with it, those that contain it, and those that contain its letters in order. Among
    equals, recently given labels come first, then the order of `labels` decides.

    Parameters
    ----------
    query
        The typed text; without letters, all labels match.
    recent
        The most recently given labels, the latest first.

    Examples
    --------
    >>> rooms = ["bathroom", "bedroom", "kitchen", "living room"]
    >>> search("ro", rooms), search("kt", rooms), search("b", rooms, recent=["bedroom"])
    (['living room', 'bathroom', 'bedroom'], ['kitchen'], ['bedroom', 'bathroom'])

    """
    wanted = folded(query)
    latest = {typed_label(label): i for i, label in reversed(list(enumerate(recent)))}
    found = []
    for i, label in enumerate(labels):
        tier = _tier(wanted, folded(_text(label)))
        if tier is not None:
            found.append((tier, latest.get(typed_label(label), len(recent)), i))
    return [labels[i] for *_, i in sorted(found)]


def near_duplicate(text: str, labels: Sequence[Label]) -> Label | None:
    """Return the existing label that a new one was probably meant to be, None if there is none.

    Labels are near-duplicates if they differ only in case, accents and separators, or by one typing
    error per four letters, at most two: a letter added, missing, replaced, or two letters swapped.
    Labels that differ in a digit are meant to differ.

    Parameters
    ----------
    text
        The new label; an existing label is no duplicate.

    Examples
    --------
    >>> rooms = ["kitchen", "room 1", "café"]
    >>> [near_duplicate(text, rooms) for text in ("kithcen", "Room-1", "room 2", "Cafe", "garden")]
    ['kitchen', 'room 1', None, 'café', None]

    """
    new = folded(text).replace(" ", "")
    if not new or any(_text(label) == text for label in labels):
        return None
    near = []
    for i, label in enumerate(labels):
        old = folded(_text(label)).replace(" ", "")
        most = min(len(new), len(old)) // _LETTERS_PER_SLIP
        slips = distance(new, old, most=min(most, _MOST_SLIPS))
        if slips is not None and _digits(new) == _digits(old):
            near.append((slips, i))
    return labels[min(near)[1]] if near else None


def distance(a: str, b: str, *, most: int) -> int | None:
    """Return the number of typing errors between two strings, None if it is more than `most`.

    This is the Damerau-Levenshtein distance in which no letter is edited twice (optimal string
    alignment).

    Examples
    --------
    >>> distance("kichten", "kitchen", most=2), distance("ca", "abc", most=3)
    (2, 3)
    >>> distance("hall", "hlal", most=2), distance("hall", "kitchen", most=2)
    (1, None)

    """
    if abs(len(a) - len(b)) > most:
        return None
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, start=1):
        two_before, before, row = before, row, [i]
        for j, other in enumerate(b, start=1):
            slips = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == b[j - 2] and a[i - 2] == other:
                slips = min(slips, two_before[j - 2] + 1)
            row.append(slips)
        if min(row) > most and min(before) > most:
            return None
    return row[-1] if row[-1] <= most else None


def _tier(wanted: str, label: str) -> int | None:
    """Return how well a label matches, 0 for best; None if it does not."""
    if label == wanted:
        return 0
    if label.startswith(wanted):
        return 1
    if f" {wanted}" in f" {label}":
        return 2
    if wanted in label:
        return 3
    return 4 if _is_subsequence(wanted, label) else None


def _is_subsequence(wanted: str, label: str) -> bool:
    letters: Iterator[str] = iter(label)
    return all(letter in letters for letter in wanted if letter != " ")


def _digits(text: str) -> str:
    return "".join(filter(str.isdigit, text))


def _text(label: Label) -> str:
    return label if isinstance(label, str) else shown_label(label)
