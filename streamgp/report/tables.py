"""Results as a text table, for the terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from streamgp.common.printable import printable

MINIMAL_WIDTH = 80
LARGE = 1000.0
"""Scores from here on have three significant digits: an NMSE has no upper end, and would leave no
room for the names of the rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table of results.

    Parameters
    ----------
    name
        The learner, or whatever distinguishes the rows.
    accuracy, macro_f1
        Scores of the predictions made before any label of the event was seen, between 0 and 1; None
        if nothing could be scored.
    mae, nmse
        The same for numbers: mean absolute error, in units of the target, and mean squared error
        over the variance of the truths.
    n_asked, n_challenges
        Number of label requests and challenges sent; None for a baseline that knows all labels.
    challenge_precision
        Share of the challenged labels that were wrong; None without challenges.
    wrong_kept
        Share of the labels in the consensus log that are wrong; None if it is empty.
    microseconds
        Time per event, learning included.

    """

    name: str
    n_events: int
    accuracy: float | None
    macro_f1: float | None
    n_asked: int | None = None
    n_challenges: int | None = None
    challenge_precision: float | None = None
    wrong_kept: float | None = None
    microseconds: float | None = None
    mae: float | None = None
    nmse: float | None = None


# The line breaks in the titles let all columns fit into 80 characters without breaking a word.
_SCORES = ("accuracy", "macro\nF1")
_NUMBER_SCORES = ("mean abs.\nerror", "NMSE")
_TITLES = (
    "labels\nasked",
    "challenges",
    "challenge\nprecision",
    "wrong\nlabels\nkept",
    "µs per\nevent",
)


def table(
    rows: Sequence[Row],
    *,
    first: str = "learner",
    numbers: bool = False,
) -> str:
    """Lay out results as text.

    Parameters
    ----------
    first
        Title of the first column.
    numbers
        Whether the targets are numbers.

    Examples
    --------
    >>> print(table([Row(name="skeptical", n_events=2000, accuracy=0.948, macro_f1=0.947,
    ...     n_asked=179, n_challenges=52, challenge_precision=0.596, wrong_kept=0.07,
    ...     microseconds=81.4)]))
                                                          wrong
                       macro labels            challenge labels µs per
    learner   accuracy    F1  asked challenges precision   kept  event
    ──────────────────────────────────────────────────────────────────
    skeptical    0.948 0.947    179         52      60 %    7 %     81
    <BLANKLINE>

    """
    lines = []
    for row in rows:
        nmse = _fixed if row.nmse is None or row.nmse < LARGE else _significant
        scores = [_significant(row.mae), nmse(row.nmse)]
        if not numbers:
            scores = [_fixed(row.accuracy), _fixed(row.macro_f1)]
        lines.append((row.name, [*scores, *_cells(row)]))
    titles = (*(_NUMBER_SCORES if numbers else _SCORES), *_TITLES)
    return text_table(lines, titles, first=first)


def text_table(
    rows: Sequence[tuple[str, Sequence[str]]],
    titles: Sequence[str],
    *,
    first: str = "learner",
) -> str:
    """Lay out rows, each a name and cells, below titles; `first` as for `table`."""
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    grid.add_column(Text(printable(first)), overflow="fold")
    for title in titles:
        grid.add_column(title, justify="right", no_wrap=True, vertical="bottom")
    for name, cells in rows:
        # Text, not str: a learner's name or a log's key must not be parsed as rich markup.
        grid.add_row(Text(printable(name)), *cells)
    # A long key makes the table wider; it is never truncated.
    words = (word for name, _ in rows for word in printable(name).split())
    longest = max(map(cell_len, words), default=0)
    width = max(MINIMAL_WIDTH, longest + _WIDTH_OF_NUMBERS)
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, emoji=False)
    console.print(grid)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


_WIDTH_OF_NUMBERS = 57


def _cells(row: Row) -> list[str]:
    return [
        "all" if row.n_asked is None else str(row.n_asked),
        "-" if row.n_challenges is None else str(row.n_challenges),
        percent(row.challenge_precision),
        percent(row.wrong_kept),
        _fixed(row.microseconds, 0),
    ]


def _fixed(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _significant(value: float | None) -> str:
    whole = value is None or _is_in_whole_units(value)
    return amount(value) if whole else f"{value:#.3g}".removesuffix(".")


# --- Numbers as text, for tables and sentences.


def percent(share: float | None, digits: int = 0) -> str:
    """Return a share in percent, a dash for None.

    Examples
    --------
    >>> percent(0.126), percent(0.126, digits=1), percent(None)
    ('13 %', '12.6 %', '-')

    """
    return "-" if share is None else f"{100 * share:.{digits}f} %"


def amount(value: float | None) -> str:
    """Return a number in three significant digits, from 1000 to ten millions in whole units.

    A dash for None.

    Examples
    --------
    >>> amount(0.01234), amount(1234.5), amount(1.42e11), amount(None)
    ('0.0123', '1234', '1.42e+11', '-')

    """
    if value is None:
        return "-"
    return f"{value:.0f}" if _is_in_whole_units(value) else f"{value:.3g}"


def _is_in_whole_units(value: float) -> bool:
    """Whether `amount` writes a number in whole units; 999.5 has four digits once it is rounded."""
    return 999.5 <= abs(value) < 1e7


def short(y: object) -> object:
    """Return a label, floats rounded to six significant digits.

    Examples
    --------
    >>> short(1.23456789), short("den")
    (1.23457, 'den')

    """
    return float(f"{y:.6g}") if isinstance(y, float) else y
