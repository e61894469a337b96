"""Text for people: counts, durations, moments, columns; what comes from outside made harmless."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from streamgp.printable import printable as printable

_SPANS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def number(n: int, what: str, several: str | None = None) -> str:
    """Return a count with its noun.

    Examples
    --------
    >>> number(1, "record"), number(2, "record"), number(0, "entity", "entities")
    ('1 record', '2 records', '0 entities')

    """
    return f"{n} {what if n == 1 else several or what + 's'}"


def span(seconds: float) -> str:
    """Return a duration as people say it.

    Examples
    --------
    >>> [span(s) for s in (0.4, 59, 250, 7500, 200_000)]
    ['0 s', '59 s', '4 min 10 s', '2 h 5 min', '2 d 7 h']

    """
    rest = int(seconds)
    words: list[str] = []
    for size, unit in _SPANS:
        n, rest = divmod(rest, size)
        if n or words:
            words.append(f"{n} {unit}")
        if len(words) == 2:
            break
    return " ".join(word for word in words if not word.startswith("0 ")) or "0 s"


def clock_time(at: float) -> str:
    """Return a moment as the clocks here show it."""
    return f"{datetime.fromtimestamp(at):%Y-%m-%d %H:%M:%S}"


def aligned(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Return rows as columns of text.

    Parameters
    ----------
    rows
        The cells of each row; all rows have as many.
    right
        Columns that stand to the right, as numbers do.

    Examples
    --------
    >>> print(aligned([["key", "labels"], ["ann", "7"], ["bob", "12"]], right=[1]))
    key  labels
    ann       7
    bob      12

    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            f"{cell:>{width}}" if i in right else f"{cell:{width}}"
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
