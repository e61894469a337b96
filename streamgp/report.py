"""Results as people read them: a table for the terminal, a picture of learning curves.

Works from plain rows and writes nothing but to the path it is given. matplotlib is imported only
when a picture is drawn (extra `plot`).

"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MINIMAL_WIDTH = 80

PICTURE_FORMATS = ("png", "svg", "pdf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table of results.

    Parameters
    ----------
    name
        The learner, or whatever the rows differ in.
    n_events
        Events predicted.
    accuracy, macro_f1
        Of the predictions made before any label of the event was seen, between 0 and 1, or None
        where nothing could be scored.
    n_asked, n_challenges
        Label requests and challenges sent.
    challenge_precision
        Share of the challenged labels that were wrong, or None without challenges.
    wrong_kept
        Share of the labels in the consensus log that are wrong, or None if it is empty.
    microseconds
        Time per event, learning included.

    """

    name: str
    n_events: int
    accuracy: float | None
    macro_f1: float | None
    n_asked: int
    n_challenges: int
    challenge_precision: float | None
    wrong_kept: float | None
    microseconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """How one learner fared over time: parallel sequences, one entry per point drawn.

    Parameters
    ----------
    name
        The learner.
    n_events
        Events predicted so far.
    accuracy
        Share of them predicted right, between 0 and 1.
    questions
        Label requests and challenges sent so far.

    """

    name: str
    n_events: Sequence[int]
    accuracy: Sequence[float]
    questions: Sequence[int]


# The breaks in the titles let all columns fit into 80 characters without cutting a word.
_TITLES = (
    "accuracy",
    "macro\nF1",
    "labels\nasked",
    "challenges",
    "challenge\nprecision",
    "wrong\nlabels\nkept",
    "µs per\nevent",
)


def table(rows: Sequence[Row], *, first: str = "learner", width: int = MINIMAL_WIDTH) -> str:
    """Lay out results as text.

    Parameters
    ----------
    rows
        What to show, in this order.
    first
        Title of the first column.
    width
        Characters per line; at least 80 are used.

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
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    grid.add_column(first, overflow="fold")
    for title in _TITLES:
        grid.add_column(title, justify="right", no_wrap=True, vertical="bottom")
    for row in rows:
        # Text, not str: a learner's name or a log's key is never read as rich's markup.
        grid.add_row(Text(row.name), *_cells(row))
    # A long key makes the table wider; it is never cut.
    longest = max((len(word) for row in rows for word in row.name.split()), default=0)
    width = max(width, MINIMAL_WIDTH, longest + _WIDTH_OF_NUMBERS)
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, emoji=False)
    console.print(grid)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


_WIDTH_OF_NUMBERS = 57

_LINE_STYLES = ("-", "--", "-.", ":")


def _cells(row: Row) -> list[str]:
    return [
        _fixed(row.accuracy, 3),
        _fixed(row.macro_f1, 3),
        str(row.n_asked),
        str(row.n_challenges),
        _percent(row.challenge_precision),
        _percent(row.wrong_kept),
        _fixed(row.microseconds, 0),
    ]


def _fixed(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"


def draw_curves(curves: Sequence[Curve], path: Path, *, title: str) -> None:
    """Draw accuracy so far and cumulative questions over the events, one line per learner.

    Parameters
    ----------
    curves
        What to draw, in this order.
    path
        File to write; its ending (png, svg, pdf) decides the format.
    title
        Headline of the picture.

    Raises
    ------
    ModuleNotFoundError
        If matplotlib is not installed.
    OSError
        If the file cannot be written.

    """
    # Figure alone, without pyplot: no global state, no window, no backend to choose.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 6.5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for i, curve in enumerate(curves):
        # The first is a broad line beneath the others, so that curves that coincide all show.
        style = {
            "color": f"C{i}",
            "linewidth": 3.0 if i == 0 else 1.4,
            "linestyle": "-" if i == 0 else _LINE_STYLES[i % len(_LINE_STYLES)],
            "label": curve.name,
        }
        above.plot(curve.n_events, curve.accuracy, **style)
        below.plot(curve.n_events, curve.questions, **style)
    above.set_ylabel("accuracy so far")
    above.legend(fontsize="small")
    below.set_ylabel("questions so far\n(labels and challenges)")
    below.set_xlabel("events")
    for axes in (above, below):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title)
    figure.savefig(path, dpi=120)
