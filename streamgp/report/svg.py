"""Line charts as inline SVG with labels in HTML.

No charting library: a few polylines are all that is drawn, and these scale with the page. The
picture is stretched to the room there is, its lines keep their width (`vector-effect`), and the
labels beside it, which are no part of the picture, keep their size: a chart reads on a phone.

"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from streamgp.report.markup import Child, Html, el, foreign
from streamgp.report.numbers import count, percent

WIDTH, HEIGHT = 1000, 400
N_NUMBERS = 11

_STEPS = (0.2, 0.25, 0.5, 1.0, 2.0, 2.5, 5.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a chart; x does not fall. y is None where nothing is drawn."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]

    def points(self) -> list[tuple[float, float]]:
        """Return what is drawn."""
        return [(x, y) for x, y in zip(self.x, self.y, strict=True) if y is not None]


def chart(
    lines: Sequence[Line],
    *,
    title: str,
    of: str,
    show: Callable[[float], str],
    top: float | None = None,
    least: float = 0.0,
    shares: bool = False,
) -> Html:
    """Return a chart with its legend and, folded away, its numbers.

    Parameters
    ----------
    lines
        What to draw. The n-th looks as the style sheet says for class `s<n>`.
    title
        What is drawn upwards.
    of
        What is counted, or measured, to the right.
    show
        How a number is written.
    top
        Upper end of the chart; None for the next round number above all points.
    least
        Least distance of two numbers beside the chart: 1 for counts.
    shares
        Whether shares of 1 go to the right, and not counts. What a line ends with says nothing
        then, and is not told in its legend.

    """
    across = percent if shares else count
    drawn = [point for line in lines for point in line.points()]
    if not drawn:
        return el("p", f"{title}: nothing to draw.", class_="none")
    right = 1.0 if shares else max(x for x, _ in drawn) or 1.0
    x_ticks = ticks(right, least=0.0 if shares else 1.0)
    highest = max(y for _, y in drawn) if top is None else top
    y_ticks = ticks(highest, over=top is None, least=least)
    top = y_ticks[-1]
    grid = "".join(f"M0 {_n(HEIGHT * (1 - y / top))}H{WIDTH}" for y in y_ticks)
    pictures = [
        el("polyline", points=_points(line.points(), right, top), class_=f"line s{n}")
        for n, line in enumerate(lines, 1)
    ]
    picture = el(
        "svg",
        el("title", title),
        el("path", d=grid, class_="grid"),
        *pictures,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{title}, by {of}. "
        + " ".join(_sentence(line, of, show, across) for line in lines),
    )
    return el(
        "figure",
        el("figcaption", el("h3", title), _legend(lines, None if shares else show)),
        el(
            "div",
            _axis("ys", [(f"bottom:{_n(100 * y / top)}%", show(y)) for y in y_ticks]),
            picture,
            _axis("xs", [(f"left:{_n(100 * x / right)}%", across(x)) for x in x_ticks]),
            el("div", of, class_="of", aria_hidden="true"),
            class_="plot",
        ),
        _numbers(lines, title, of, show, across),
    )


def ticks(largest: float, *, over: bool = False, least: float = 0.0) -> list[float]:
    """Return a few round numbers from 0 up to a number, or to the next one over it.

    They are multiples of `least`, if that is not 0.

    Examples
    --------
    >>> ticks(2000)
    [0.0, 500.0, 1000.0, 1500.0, 2000.0]
    >>> ticks(764), ticks(764, over=True)
    ([0.0, 200.0, 400.0, 600.0], [0.0, 200.0, 400.0, 600.0, 800.0])
    >>> ticks(0.23, over=True)
    [0.0, 0.1, 0.2, 0.3]
    >>> ticks(10, least=1.0), ticks(2, least=1.0), ticks(0, over=True)
    ([0.0, 5.0, 10.0], [0.0, 1.0, 2.0], [0.0, 1.0])

    """
    if largest <= 0:
        return [0.0, 1.0] if over else [0.0]
    size = 10.0 ** floor(log10(largest))
    # A little more than 4 steps, for numbers such as 0.4 / 0.1.
    steps = (max(least, f * size) for f in _STEPS)
    step = next(s for s in steps if largest <= 4.0001 * s and not (least and s % least))
    n = ceil(largest / step - 1e-9) if over else floor(largest / step + 1e-9)
    return [round(i * step, 12) for i in range(n + 1)]


def _points(points: Sequence[tuple[float, float]], right: float, top: float) -> str:
    return " ".join(f"{_n(WIDTH * x / right)},{_n(HEIGHT * (1 - y / top))}" for x, y in points)


def _n(value: float) -> str:
    """Return a coordinate in as few characters as it needs."""
    return f"{value:.1f}".removesuffix(".0")


def _axis(name: str, marks: list[tuple[str, str]]) -> Html:
    # The numbers are told by the chart's label and by its table.
    spans = [el("span", text, style=place) for place, text in marks]
    return el("div", *spans, class_=name, aria_hidden="true")


def _sentence(
    line: Line, of: str, show: Callable[[float], str], across: Callable[[float], str]
) -> str:
    points = line.points()
    if not points:
        return f"{line.name}: nothing."
    (first, start), (last, end) = points[0], points[-1]
    return f"{line.name}: {show(start)} at {across(first)}, {show(end)} at {across(last)} {of}."


def _legend(lines: Sequence[Line], show: Callable[[float], str] | None) -> Html:
    entries = []
    for n, line in enumerate(lines, 1):
        key = el("path", d="M0 4H28", class_=f"line s{n}")
        swatch = el("svg", key, width=28, height=8, viewBox="0 0 28 8", aria_hidden="true")
        entries.append(el("li", swatch, foreign(line.name), *_last(line, show)))
    return el("ul", *entries, class_="legend")


def _last(line: Line, show: Callable[[float], str] | None) -> list[Child]:
    if show is None:
        return []
    points = line.points()
    return [" ", el("b", show(points[-1][1]) if points else "-")]


def _numbers(
    lines: Sequence[Line],
    title: str,
    of: str,
    show: Callable[[float], str],
    across: Callable[[float], str],
) -> Html:
    """Return a table with some of the points, for those who cannot see the chart."""
    xs = sorted({x for line in lines for x in line.x})
    last = len(xs) - 1
    chosen = [xs[i] for i in sorted({round(i * last / (N_NUMBERS - 1)) for i in range(N_NUMBERS)})]
    head = [el("th", of, scope="col")]
    head += [el("th", foreign(line.name), scope="col") for line in lines]
    rows = []
    for x in chosen:
        at = [_at(line, x) for line in lines]
        cells = [el("td", "-" if y is None else show(y)) for y in at]
        rows.append(el("tr", el("th", across(x), scope="row"), *cells))
    table = el(
        "table",
        el("caption", title),
        el("thead", el("tr", *head)),
        el("tbody", *rows),
        class_="numbers",
    )
    return el("details", el("summary", "Numbers"), table)


def _at(line: Line, x: float) -> float | None:
    """Return the height of a line at the last point that is not beyond x."""
    i = bisect_right(line.x, x)
    return None if i == 0 or x > line.x[-1] else line.y[i - 1]
