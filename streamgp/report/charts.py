"""Line charts: on a page as inline SVG with labels in HTML, and in a file by matplotlib.

A page needs only a few polylines, and no charting library: the picture is stretched to the
available space, its lines keep their width (`vector-effect`), and the labels beside it, which are
not part of the picture, keep their size. matplotlib (extra `plot`) is imported when a file is
drawn.

"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from math import ceil, floor, log10
from pathlib import Path

from streamgp.common.printable import cut, printable
from streamgp.common.private_files import write_private
from streamgp.report.html import N_SHOWN, count, percent

WIDTH, HEIGHT = 1000, 400
N_NUMBERS = 11

_STEPS = (0.2, 0.25, 0.5, 1.0, 2.0, 2.5, 5.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a chart; x never decreases. y is None where nothing is drawn."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]

    def points(self) -> list[tuple[float, float]]:
        """Return the points that are drawn."""
        return [(x, y) for x, y in zip(self.x, self.y, strict=True) if y is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnLine:
    """A line as `chart.html` shows it.

    Parameters
    ----------
    points
        Points of the polyline, in units of the picture.
    last
        Text of the height at the end of the line; None if the legend leaves it out.

    """

    name: str
    points: str
    last: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart as `chart.html` shows it.

    Parameters
    ----------
    title, of
        Names of the vertical and the horizontal axis.
    lines
        The lines; the n-th has the style of class `s<n>`. Empty if no line has a point.
    grid
        Path of the grid lines behind them.
    label
        The chart in words, for readers who cannot see it.
    left, below
        Numbers beside the chart: their position (a CSS declaration) and their text.
    numbers
        Rows of the table below the chart: x, and the height of each line there.

    """

    title: str
    of: str
    lines: Sequence[DrawnLine] = ()
    grid: str = ""
    label: str = ""
    left: Sequence[tuple[str, str]] = ()
    below: Sequence[tuple[str, str]] = ()
    numbers: Sequence[tuple[str, Sequence[str]]] = ()


def chart(
    lines: Sequence[Line],
    *,
    title: str,
    of: str,
    show: Callable[[float], str],
    top: float | None = None,
    least: float = 0.0,
    shares: bool = False,
) -> Chart:
    """Lay out a chart with its legend and its numbers.

    Parameters
    ----------
    title
        Name of the vertical axis.
    of
        Name of the horizontal axis.
    show
        Formats a number of the vertical axis.
    top
        Upper end of the chart; None for the next round number above all points.
    least
        Smallest step between numbers beside the chart: 1 for counts.
    shares
        Whether the horizontal axis shows shares from 0 to 1 instead of counts. The end of a line
        then means nothing, and the legend leaves it out.

    Examples
    --------
    >>> c = chart([Line(name="n", x=[0, 5], y=[0, 1])], title="T", of="events", show=str, top=1.0)
    >>> c.lines[0].points, c.label
    ('0,400 1000,0', 'T, by events. n: 0 at 0, 1 at 5 events.')

    """
    drawn = [point for line in lines for point in line.points()]
    if not drawn:
        return Chart(title=title, of=of)
    across = percent if shares else count
    right = 1.0 if shares else max(x for x, _ in drawn) or 1.0
    highest = max(y for _, y in drawn) if top is None else top
    marks = ticks(highest, over=top is None, least=least)
    top = marks[-1]
    sentences = " ".join(_sentence(line, of, show, across) for line in lines)
    return Chart(
        title=title,
        of=of,
        lines=[
            DrawnLine(
                name=line.name,
                points=_points(line.points(), right, top),
                last=None if shares else _last(line, show),
            )
            for line in lines
        ],
        grid="".join(f"M0 {_n(HEIGHT * (1 - y / top))}H{WIDTH}" for y in marks),
        label=f"{title}, by {of}. {sentences}",
        left=[(f"bottom:{_n(100 * y / top)}%", show(y)) for y in marks],
        below=[
            (f"left:{_n(100 * x / right)}%", across(x))
            for x in ticks(right, least=0.0 if shares else 1.0)
        ],
        numbers=_numbers(lines, show, across),
    )


def ticks(largest: float, *, over: bool = False, least: float = 0.0) -> list[float]:
    """Return a few round numbers from 0 up to a number, or to the next one above it.

    They are multiples of `least`, unless that is 0.

    Examples
    --------
    >>> ticks(2000)
    [0.0, 500.0, 1000.0, 1500.0, 2000.0]
    >>> ticks(764), ticks(764, over=True)
    ([0.0, 200.0, 400.0, 600.0], [0.0, 200.0, 400.0, 600.0, 800.0])
    >>> ticks(0.23, over=True), ticks(2.3e-20, over=True)
    ([0.0, 0.1, 0.2, 0.3], [0.0, 1e-20, 2e-20, 3e-20])
    >>> ticks(10, least=1.0), ticks(2, least=1.0), ticks(0, over=True)
    ([0.0, 5.0, 10.0], [0.0, 1.0, 2.0], [0.0, 1.0])

    """
    if largest <= 0:
        return [0.0, 1.0] if over else [0.0]
    size = 10.0 ** floor(log10(largest))
    # Slightly more than 4 steps, for numbers such as 0.4 / 0.1.
    steps = (max(least, f * size) for f in _STEPS)
    step = next(s for s in steps if largest <= 4.0001 * s and not (least and s % least))
    n = ceil(largest / step - 1e-9) if over else floor(largest / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(n + 1)]  # 0.3, not 0.30000000000000004


def _points(points: Sequence[tuple[float, float]], right: float, top: float) -> str:
    return " ".join(f"{_n(WIDTH * x / right)},{_n(HEIGHT * (1 - y / top))}" for x, y in points)


def _n(value: float) -> str:
    """Return a coordinate in as few characters as possible."""
    return f"{value:.1f}".removesuffix(".0")


def _sentence(
    line: Line, of: str, show: Callable[[float], str], across: Callable[[float], str]
) -> str:
    points, name = line.points(), cut(printable(line.name), N_SHOWN)
    if not points:
        return f"{name}: nothing."
    (first, start), (last, end) = points[0], points[-1]
    return f"{name}: {show(start)} at {across(first)}, {show(end)} at {across(last)} {of}."


def _last(line: Line, show: Callable[[float], str]) -> str:
    points = line.points()
    return show(points[-1][1]) if points else "-"


def _numbers(
    lines: Sequence[Line], show: Callable[[float], str], across: Callable[[float], str]
) -> list[tuple[str, list[str]]]:
    """Return the heights of the lines at some of the points."""
    xs = sorted({x for line in lines for x in line.x})
    last = len(xs) - 1
    chosen = [xs[i] for i in sorted({round(i * last / (N_NUMBERS - 1)) for i in range(N_NUMBERS)})]
    heights = ((x, [_at(line, x) for line in lines]) for x in chosen)
    return [(across(x), ["-" if y is None else show(y) for y in ys]) for x, ys in heights]


def _at(line: Line, x: float) -> float | None:
    """Return the height of a line at its last point up to x."""
    i = bisect_right(line.x, x)
    return None if i == 0 or x > line.x[-1] else line.y[i - 1]


PICTURE_FORMATS = ("png", "svg", "pdf")

_LINE_STYLES = ("-", "--", "-.", ":")


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Learning curve of one learner: parallel sequences, one entry per point drawn.

    Parameters
    ----------
    n_events
        Number of events predicted so far.
    accuracy
        Share of them predicted correctly, between 0 and 1; nan where that is not known.

    """

    name: str
    n_events: Sequence[int]
    accuracy: Sequence[float]
    questions: Sequence[int]


def draw_curves(curves: Sequence[Curve], path: Path, *, title: str) -> None:
    """Draw accuracy so far and cumulative questions over the events, one line per learner.

    Parameters
    ----------
    path
        File to write; its extension (png, svg, pdf) determines the format, png without one.

    Raises
    ------
    ModuleNotFoundError
        If matplotlib is not installed.
    OSError
        If the file cannot be written.

    """
    # Figure alone, without pyplot: no global state, no window, no backend to choose. An unknown
    # backend named by the environment would make the import fail.
    named = os.environ.pop("MPLBACKEND", None)
    try:
        from matplotlib.figure import Figure
    finally:
        if named is not None:
            os.environ["MPLBACKEND"] = named

    figure = Figure(figsize=(9.0, 6.5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for i, curve in enumerate(curves):
        # The first is a broad line beneath the others, so that coinciding curves all show.
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
    ending = path.suffix.removeprefix(".").lower()
    picture = BytesIO()
    figure.savefig(picture, format=ending or "png", dpi=120)
    write_private(path, picture.getbuffer())
