"""Table of an event's features, with comparison values beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from connectors.annotation.explain import MAX_EXAMPLES, Averages, differing
from connectors.annotation.label_text import shown_label
from connectors.annotation.timeline import typed_label
from streamgp.apps.annotate.choices import Choice
from streamgp.base import FeatureName, Features
from streamgp.common.printable import printable
from streamgp.interactive.messages import Challenge, Request

MAX_COLUMNS = 5
"""The largest number of classes whose averages are shown beside the event."""
_WIDEST = 24
_UNBOUND = 10_000


def feature_table(
    request: Request,
    averages: Averages,
    choices: Sequence[Choice],
    *,
    start: int = 0,
    most: int | None = None,
) -> RenderableType:
    """Return the features of the event: values, with averages or nearest examples beside them.

    For a challenge, only features in which the examples differ from the event are included.

    Parameters
    ----------
    start
        Number of features to skip.
    most
        The largest number of features to show, None for all.

    """
    names = averages.order(request.key, request.x)
    if isinstance(request, Challenge) and request.neighbours:
        names = differing(request.x, request.neighbours[:MAX_EXAMPLES], names)
        if not names:
            return Text("the examples most like it are the same in every feature", style="dim")
    shown = names[start:] if most is None else names[start : start + most]
    if not names:
        return Text("no features", style="dim")
    beside = (
        partial(_examples, request)
        if isinstance(request, Challenge)
        else partial(_means, request, averages, choices, shown)
    )
    table = _FittingTable(names=shown, x=request.x, beside=beside)
    left = len(names) - len(shown)
    if not left:
        return table
    more = f"features {start + 1} to {start + len(shown)} of {len(names)}; m: more"
    return Group(table, Text(more, style="dim"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _FittingTable:
    """An event with as many comparison columns as fit without cutting a number.

    `beside` returns at most this many columns, those nearest to the event.
    """

    names: Sequence[FeatureName]
    x: Features
    beside: Callable[[int], Sequence[tuple[str, Features]]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Return the widest table that fits."""
        yield self._fitting(console, options)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Return the width of that table."""
        return self._fitting(console, options).__rich_measure__(console, options)

    def _fitting(self, console: Console, options: ConsoleOptions) -> Table:
        unbound = options.update(width=_UNBOUND)
        for n_beside in range(MAX_COLUMNS, 0, -1):
            table = self._table(n_beside)
            if table.__rich_measure__(console, unbound).maximum <= options.max_width:
                return table
        return self._table(0)

    def _table(self, n_beside: int) -> Table:
        beside = self.beside(n_beside)
        table = Table(box=None, pad_edge=False, header_style="dim")
        table.add_column("feature")
        table.add_column("this event", justify="right", style="bold")
        for title, _ in beside:
            table.add_column(Text(title), justify="right")
        for name in self.names:
            cells = [_value(self.x, name), *(_value(x, name) for _, x in beside)]
            table.add_row(Text(cut(printable(str(name)))), *map(Text, cells))
        return table


def _examples(request: Challenge, n: int) -> list[tuple[str, Features]]:
    """Return the nearest earlier examples, with their labels as headings."""
    return [
        (f"{cut(shown_label(near.y))}\n{cut(_name_of(near.event_id))}", near.x)
        for near in request.neighbours[: min(n, MAX_EXAMPLES)]
    ]


def _name_of(event_id: str | None) -> str:
    return "earlier" if event_id is None else f"event {printable(event_id)}"


def _means(
    request: Request,
    averages: Averages,
    choices: Sequence[Choice],
    names: Sequence[FeatureName],
    n: int,
) -> list[tuple[str, Features]]:
    """Return the averages of the classes nearest to the event, in the order of their keys."""
    key = request.key
    near = {typed_label(label) for label in averages.nearest(key, request.x, n)}
    found = []
    for choice in choices:
        if typed_label(choice.label) not in near:
            continue
        means = {name: averages.mean(key, choice.label, name) for name in names}
        x: Features = {name: mean for name, mean in means.items() if mean is not None}
        if x:
            found.append((f"average\n{cut(shown_label(choice.label))}", x))
    return found


def _value(x: Features, name: FeatureName) -> str:
    if name not in x:
        return "-"
    value = x[name]
    return f"{value:.4g}" if isinstance(value, float) else cut(printable(str(value)))


def cut(text: str) -> str:
    """Return text cut to the width of a column."""
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."
