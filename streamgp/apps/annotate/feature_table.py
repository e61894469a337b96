"""The features of an event as a table: beside each value what it can be compared to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from streamgp.apps.annotate.choices import Choice, shown_label
from streamgp.base import FeatureName, Features, Label
from streamgp.common.printable import printable
from streamgp.interactive.messages import Challenge, LabelledExample, Request

# --- What is usual: the average of every feature in every class, for people who look at an
# event.
#
# Corrected labels count beside the first ones; it is a help for the eye, nothing is decided by
# it.


_MAX_KEYS = 256


class _Mean:
    """A running mean, and the sum of squared distances from it (Welford 1962)."""

    __slots__ = ("mean", "n", "squares")

    def __init__(self) -> None:
        self.n = 0
        self.mean = 0.0
        self.squares = 0.0

    def add(self, value: float) -> None:
        self.n += 1
        before = value - self.mean
        self.mean += before / self.n
        self.squares += before * (value - self.mean)

    @property
    def std(self) -> float:
        return sqrt(self.squares / self.n) if self.n else 0.0


class _OfKey:
    def __init__(self) -> None:
        self.overall: dict[FeatureName, _Mean] = {}
        self.by_class: dict[tuple[str, Label], dict[FeatureName, _Mean]] = {}


class Averages:
    """Averages over the labelled examples of each of the last keys.

    Examples
    --------
    >>> averages = Averages()
    >>> for n, (light, y) in enumerate([(1.0, "den"), (3.0, "den"), (8.0, "hall")], start=1):
    ...     averages.learn(
    ...         LabelledExample(
    ...             event_id=f"e{n}", sequence=n, x={"light": light, "noise": 5.0}, y=y,
    ...             origin="asked", learned_at=0.0,
    ...         )
    ...     )
    >>> averages.mean(None, "den", "light")
    2.0
    >>> averages.by_distance(None, {"noise": 5.0, "light": 8.0})
    ['light', 'noise']

    """

    def __init__(self, max_keys: int = _MAX_KEYS) -> None:
        self._max_keys = max_keys
        self._of: dict[str | None, _OfKey] = {}

    def learn(self, line: LabelledExample) -> None:
        """Count an example; one that was taken back is not taken out."""
        if line.y is None:
            return
        found = self._of.pop(line.key) if line.key in self._of else _OfKey()
        self._of[line.key] = found  # the last one
        if len(self._of) > self._max_keys:
            del self._of[next(iter(self._of))]
        in_class = found.by_class.setdefault((type(line.y).__name__, line.y), {})
        for name, value in line.x.items():
            if is_number(value):
                for means in (found.overall, in_class):
                    means.setdefault(name, _Mean()).add(value)

    def forget(self, key: str | None) -> None:
        """Forget a key."""
        self._of.pop(key, None)

    def mean(self, key: str | None, label: Label, name: FeatureName) -> float | None:
        """Return the average of a feature in a class; None if there is none."""
        found = self._of.get(key)
        if found is None:
            return None
        mean = found.by_class.get((type(label).__name__, label), {}).get(name)
        return None if mean is None else mean.mean

    def by_distance(self, key: str | None, x: Features) -> list[FeatureName]:
        """Return the features of an event, first what is farthest from the average of a class.

        Distances are in standard deviations of the feature over all examples of the key. Features
        about which nothing is known come last, in their order.
        """
        found = self._of.get(key)
        if found is None:
            return list(x)
        return sorted(x, key=lambda name: -_distance(found, name, x[name]))


def _distance(found: _OfKey, name: FeatureName, value: Any) -> float:
    overall = found.overall.get(name)
    if overall is None or not is_number(value):
        return -1.0
    means = [means[name].mean for means in found.by_class.values() if name in means]
    gap = max(abs(value - mean) for mean in means)
    return gap / overall.std if overall.std else (inf if gap else 0.0)


def is_number(value: object) -> bool:
    """Say whether a feature can be averaged."""
    return isinstance(value, int | float) and not isinstance(value, bool)


MAX_COLUMNS = 5
"""Classes whose averages, or examples whose features, stand beside the event."""
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
    """Return the features of the event: value, and averages or nearest examples beside it.

    Parameters
    ----------
    request
        The label request or challenge.
    averages
        What is usual in each class.
    choices
        The classes, in the order in which they are offered.
    start
        Number of features to leave out before.
    most
        Number of features to show, None for all.

    """
    names = averages.by_distance(request.key, request.x)
    shown = names[start:] if most is None else names[start : start + most]
    if not names:
        return Text("no features", style="dim")
    beside = (
        _examples(request)
        if isinstance(request, Challenge)
        else _means(request.key, averages, choices, shown)
    )
    table = _FittingTable(names=shown, x=request.x, beside=beside)
    left = len(names) - len(shown)
    if not left:
        return table
    more = f"features {start + 1} to {start + len(shown)} of {len(names)}; m: more"
    return Group(table, Text(more, style="dim"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _FittingTable:
    """An event, with as much beside it as there is room for: no number is cut."""

    names: Sequence[FeatureName]
    x: Features
    beside: Sequence[tuple[str, Features]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Return the widest table that fits."""
        yield self._fitting(console, options)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Return how wide that is."""
        return self._fitting(console, options).__rich_measure__(console, options)

    def _fitting(self, console: Console, options: ConsoleOptions) -> Table:
        unbound = options.update(width=_UNBOUND)
        for n_beside in range(len(self.beside), 0, -1):
            table = self._table(n_beside)
            if table.__rich_measure__(console, unbound).maximum <= options.max_width:
                return table
        return self._table(0)

    def _table(self, n_beside: int) -> Table:
        beside = self.beside[:n_beside]
        table = Table(box=None, pad_edge=False, header_style="dim")
        table.add_column("feature")
        table.add_column("this event", justify="right", style="bold")
        for title, _ in beside:
            table.add_column(Text(title), justify="right")
        for name in self.names:
            cells = [_value(self.x, name), *(_value(x, name) for _, x in beside)]
            table.add_row(Text(cut(printable(str(name)))), *map(Text, cells))
        return table


def _examples(request: Challenge) -> list[tuple[str, Features]]:
    """Return the nearest earlier examples, under their labels."""
    return [
        (f"{cut(shown_label(near.y))}\n{cut(_name_of(near.event_id))}", near.x)
        for near in request.neighbours[:MAX_COLUMNS]
    ]


def _name_of(event_id: str | None) -> str:
    return "earlier" if event_id is None else f"event {printable(event_id)}"


def _means(
    key: str | None, averages: Averages, choices: Sequence[Choice], names: Sequence[FeatureName]
) -> list[tuple[str, Features]]:
    """Return the averages of the first classes that have any."""
    found = []
    for choice in choices:
        means = {name: averages.mean(key, choice.label, name) for name in names}
        x: Features = {name: mean for name, mean in means.items() if mean is not None}
        if x:
            found.append((f"average\n{cut(shown_label(choice.label))}", x))
    return found[:MAX_COLUMNS]


def _value(x: Features, name: FeatureName) -> str:
    if name not in x:
        return "-"
    value = x[name]
    return f"{value:.4g}" if isinstance(value, float) else cut(printable(str(value)))


def cut(text: str) -> str:
    """Return a text that fits into a column."""
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."
