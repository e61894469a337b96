"""Search among labels, and near-duplicates of a new label, as the page's script has to find them.

Labels are compared without case, accents and separators. A label whose first three letters are
unique is found by typing them.

"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from unicodedata import combining, name, normalize

from connectors.annotation.label_text import shown_label
from connectors.annotation.timeline import typed_label
from streamgp.base import Label

OTHERS = (
    "\u063a\u0631\u0641\u0629 \u0661",
    "\u5185\u79d1\u75c5\u68df",
    "\u30d1\u30b9",
    "\u0e17\u0e35\u0e48 \u0e1a\u0e49\u0e32\u0e19",
)
"""Labels of other scripts: room 1 in Arabic, a ward of a hospital, a pass, a house in Thai."""
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
    plain = "".join(c for c in decomposed if not is_accent(c)).translate(_SEPARATORS)
    return " ".join(plain.split())


def is_accent(c: str) -> bool:
    """Return whether this is an accent, or a point of Hebrew or Arabic; not a mark of Japanese."""
    if combining(c) == 0 or "SOUND MARK" in name(c):
        return False
    return name(c).startswith(("COMBINING", "HEBREW", "ARABIC"))


def search(query: str, labels: Sequence[Label], *, recent: Sequence[Label] = ()) -> list[Label]:
    """Return the labels that match a query, the best first.

    The label that is written like the query comes first, then those that equal it but for case,
    accents and separators, those that begin with it, those with a word that begins with it, those
    that contain it, and those that contain its letters in order. Among equals, recently given
    labels come first, then the order of `labels` decides.

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
    >>> search("5", [-5, 5]), search("-5", [-5, 5])
    ([5, -5], [-5, 5])

    """
    wanted = folded(query)
    latest = {typed_label(label): i for i, label in reversed(list(enumerate(recent)))}
    found = []
    for i, label in enumerate(labels):
        is_written = _text(label) == query.strip()
        tier = -1 if is_written else _tier(wanted, folded(_text(label)))
        if tier is not None:
            found.append((tier, latest.get(typed_label(label), len(recent)), i))
    return [labels[i] for *_, i in sorted(found)]


def near_duplicate(text: str, labels: Sequence[Label]) -> Label | None:
    """Return the existing label that a new one was probably meant to be, None if there is none.

    Labels are near-duplicates if they differ only in case, accents and separators, or by one typing
    error per four letters, at most two: a letter added, missing, replaced, or two letters swapped.
    Labels that differ in a digit or a Chinese character are meant to differ.

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
        if slips is not None and _meant(new) == _meant(old):
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


def _meant(text: str) -> str:
    return "".join(c for c in text if c.isdigit() or name(c, "").startswith("CJK UNIFIED"))


def _text(label: Label) -> str:
    return label if isinstance(label, str) else shown_label(label)
