"""Results of the EGP experiment: errors against label rates, comparisons of rules, limits, curves.

Curves are plain SVG, which scales and can be compared line by line.

"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from xml.etree.ElementTree import Element, tostring

from benchmarks._harness import Acceptance, Row, at_most, differences, standard_error, widened
from benchmarks.papers.egp.experiment import (
    ALL,
    DETERMINISTIC,
    KL_LIVING,
    KL_PAPER,
    RANDOM,
    VARIANCE,
    Cell,
    Gaps,
    Result,
)

# --- tables and limits

Results = Mapping[Cell, Sequence[Result]]

ERROR, NPLL = "error", "NPLL"
"""The measures: NMSE, or the share of classes predicted wrong; and NPLL."""

_DUELS = (
    (KL_PAPER, VARIANCE),
    (KL_PAPER, DETERMINISTIC),
    (KL_PAPER, RANDOM),
    (KL_LIVING, RANDOM),
    (VARIANCE, RANDOM),
    (DETERMINISTIC, RANDOM),
)


def values(results: Sequence[Result], measure: str) -> list[float]:
    """Return a measure run by run; empty if it was not measured."""
    found = [r.error if measure == ERROR else r.npll for r in results]
    return [value for value in found if value is not None]


def rates(results: Results) -> list[float]:
    """Return the label rates in ascending order; 1 stands for all labels."""
    return sorted({cell.rate for cell in results})


def against_rate(results: Results, measure: str, titles: Mapping[str, str]) -> list[Row]:
    """Return means and standard errors, one row per rule.

    Parameters
    ----------
    results
        All runs.
    measure
        `ERROR` or `NPLL`.
    titles
        Title of each problem to show.

    """
    rows: list[Row] = []
    lines = dict.fromkeys((c.preset, c.problem, c.rule) for c in results if c.problem in titles)
    for preset, problem, rule in lines:
        row: Row = {"problem": problem, "preset": preset, "rule": rule}
        for rate in rates(results):
            cell = Cell(problem=problem, preset=preset, rule=rule, rate=rate)
            found = values(results.get(cell, ()), measure)
            row[f"{titles[problem]} {rate:g}"] = mean(found) if found else None
            row[f"se {rate:g}"] = standard_error(found) if found else None
        rows.append(row)
    return rows


def duels(results: Results, classes: Sequence[str]) -> list[Row]:
    """Return in how many cells one rule is better than another, or worse, by two standard errors.

    Compared run by run: both had the same events and the same random features.
    """
    rows: list[Row] = []
    for preset in dict.fromkeys(cell.preset for cell in results):
        mine = {cell: runs for cell, runs in results.items() if cell.preset == preset}
        for measure, title in ((ERROR, "NMSE"), (NPLL, "NPLL"), (ERROR, "error of classes")):
            of_classes = title == "error of classes"
            some = {c: r for c, r in mine.items() if (c.problem in classes) is of_classes}
            rows += [row for pair in _DUELS if (row := _duel(some, preset, measure, title, pair))]
    return rows


def _duel(
    results: Results, preset: str, measure: str, title: str, pair: tuple[str, str]
) -> Row | None:
    this, against = pair
    better = worse = cells = 0
    for cell, runs in results.items():
        other = Cell(problem=cell.problem, preset=preset, rule=against, rate=cell.rate)
        if cell.rule != this or other not in results:
            continue
        gap = differences(values(runs, measure), values(results[other], measure))
        margin = 2.0 * standard_error(gap)
        cells += 1
        better += mean(gap) < -margin
        worse += mean(gap) > margin
    if not cells:
        return None
    return {
        "preset": preset,
        "measure": title,
        "rule": this,
        "against": against,
        "better": better,
        "worse": worse,
        "cells": cells,
    }


def kept_rates(results: Results) -> list[Row]:
    """Return how well the budget kept its rate, for each rule."""
    rows = []
    for rule in dict.fromkeys(cell.rule for cell in results if cell.rule != ALL):
        row: Row = {"rule": rule}
        of_rule = {cell: runs for cell, runs in results.items() if cell.rule == rule}
        for rate in rates(of_rule):
            found = [r.rate for c, runs in of_rule.items() if c.rate == rate for r in runs]
            row[f"mean {rate:g}"] = mean(found)
            row[f"furthest {rate:g}"] = max(found, key=lambda value: abs(value - rate))
        rows.append(row)
    return rows


def accepted(results: Results, identities: Sequence[Gaps], *, slack: float) -> list[Acceptance]:
    """Compare with the limits; those of tables are widened by `slack` standard errors."""
    limits = [
        at_most(
            "recursion - ridge regression, in std of y", max(g.ridge for g in identities), 1e-8
        ),
        at_most(
            "sum of log predictives - log evidence, relative",
            max(g.evidence for g in identities),
            1e-8,
        ),
        at_most("|label rate - rate wanted|, furthest run", furthest_rate(results), 0.01),
    ]
    branin = Cell(problem="Branin", preset="default", rule=VARIANCE, rate=0.1)
    sarcos = Cell(problem="SARCOS", preset="default", rule=VARIANCE, rate=0.2)
    random = Cell(problem="SARCOS", preset="default", rule=RANDOM, rate=0.2)
    if branin in results:
        found = values(results[branin], ERROR)
        limits.append(widened(at_most, "Branin, 10 % labels, variance: NMSE", found, 0.04, slack))
    if sarcos in results:
        found = values(results[sarcos], ERROR)
        limits.append(widened(at_most, "SARCOS, 20 % labels, variance: NMSE", found, 0.085, slack))
        if random in results:
            gap = differences(found, values(results[random], ERROR))
            name = "SARCOS, 20 % labels: NMSE of variance above random"
            limits.append(widened(at_most, name, gap, 0.0, slack))
    return limits


def furthest_rate(results: Results) -> float:
    """Largest distance, over all runs, of the label rate from the one wanted."""
    return max(
        abs(r.rate - cell.rate) for cell, runs in results.items() if cell.rule != ALL for r in runs
    )


# --- curves: error against label rate, a panel for each problem

# Colours of Okabe and Ito, which colour-blind readers can tell apart; dashes differ as well.
_LINES = {
    RANDOM: ("#E69F00", "2 3"),
    KL_PAPER: ("#0072B2", None),
    KL_LIVING: ("#56B4E9", "8 3"),
    VARIANCE: ("#000000", None),
    DETERMINISTIC: ("#D55E00", "8 3 2 3"),
    ALL: ("#999999", "1 2"),
}
_WIDTH, _HEIGHT = 190, 150
_LEFT, _TOP, _RIGHT, _BOTTOM = 46, 24, 8, 30
_FONT = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Curves of one problem.

    Parameters
    ----------
    title
        Title above the panel.
    log
        Whether the vertical axis is logarithmic.
    curves
        Rate, mean and standard error of each point, by rule.

    """

    title: str
    log: bool
    curves: dict[str, list[tuple[float, float, float]]]

    @classmethod
    def of(cls, results: Results, problem: str, measure: str, title: str) -> Panel:
        """Return the curves of one problem and one preset."""
        curves: dict[str, list[tuple[float, float, float]]] = {}
        for rule in _LINES:
            for rate in rates(results):
                runs = [
                    r
                    for c, r in results.items()
                    if (c.problem, c.rule, c.rate) == (problem, rule, rate)
                ]
                for found in (values(r, measure) for r in runs):
                    point = (rate, mean(found), standard_error(found))
                    curves.setdefault(rule, []).append(point)
        return cls(title=f"{problem}: {title}", log=measure == ERROR, curves=curves)


def draw(panels: Sequence[Sequence[Panel]], path: Path) -> None:
    """Write rows of panels, with a legend below."""
    path.parent.mkdir(parents=True, exist_ok=True)
    width = max(len(row) for row in panels) * (_LEFT + _WIDTH + _RIGHT)
    below = len(panels) * (_TOP + _HEIGHT + _BOTTOM)
    pieces = [
        _element("g", *_panel(panel), transform=f"translate({_n(x)} {_n(y)})")
        for i, row in enumerate(panels)
        for j, panel in enumerate(row)
        for x, y in [(j * (_LEFT + _WIDTH + _RIGHT) + _LEFT, i * (_TOP + _HEIGHT + _BOTTOM) + _TOP)]
    ]
    shown = [rule for rule in _LINES if any(rule in p.curves for row in panels for p in row)]
    for i, rule in enumerate(shown):
        x, y = _LEFT + i * 160, below + 12
        pieces.append(_line(f"M{x} {y}h30", rule))
        pieces.append(_text(x + 36, y + 4, rule, "start"))
    picture = _element(
        "svg",
        _element("rect", width="100%", height="100%", fill="#fff"),
        *pieces,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {below + 26}",
        width=width,
        height=below + 26,
        font_family="sans-serif",
        font_size=_FONT,
    )
    text = tostring(picture, encoding="unicode", short_empty_elements=False)
    path.write_text(text.replace("><", ">\n<") + "\n")


def ticks(low: float, high: float, *, log: bool) -> list[float]:
    """Return round numbers between two; powers of ten where a logarithmic axis has several.

    Examples
    --------
    >>> ticks(-1.2, 1.4, log=False), ticks(0.1, 0.42, log=True)
    ([-1.0, 0.0, 1.0], [0.1, 0.2, 0.3, 0.4])
    >>> ticks(0.004, 1.0, log=True)
    [0.01, 0.1, 1.0]

    """
    if log and high / low > 15.0:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        found = [float(f"1e{k}") for k in powers]
    else:
        size = 10.0 ** math.floor(math.log10(high - low))
        step = next(f * size for f in (0.25, 0.5, 1.0, 2.5) if (high - low) / (f * size) <= 5.0)
        found = [
            round(i * step, 10) for i in range(math.floor(low / step), math.ceil(high / step) + 1)
        ]
    return [value for value in found if low <= value <= high]


def _panel(panel: Panel) -> list[Element]:
    points = [point for curve in panel.curves.values() for point in curve]
    bottom = min(m for _, m, _ in points)
    top = max(m + e for _, m, e in points)
    low, high = _padded(bottom, top, log=panel.log)
    asked = sorted({rate for rate, _, _ in points if rate < 1.0})

    def across(rate: float) -> float:
        if len(asked) < 2:
            return _WIDTH / 2
        return 10 + (_WIDTH - 20) * math.log(rate / asked[0]) / math.log(asked[-1] / asked[0])

    def up(value: float) -> float:
        value = min(max(value, low), high)
        share = (
            math.log(value / low) / math.log(high / low)
            if panel.log
            else (value - low) / (high - low)
        )
        return _HEIGHT * (1.0 - share)

    marks = ticks(low, high, log=panel.log)
    grid = "".join(f"M0 {_n(up(v))}h{_WIDTH}" for v in marks)
    pieces = [
        _element("path", d=grid + f"M0 0v{_HEIGHT}h{_WIDTH}", stroke="#ccc", fill="none"),
        _element("text", text=panel.title, x=0, y=-8, font_weight="bold"),
    ]
    pieces += [_text(-5, up(v) + 4, f"{v:g}", "end") for v in marks]
    pieces += [_text(across(rate), _HEIGHT + 15, f"{rate:g}", "middle") for rate in asked]
    for rule, curve in panel.curves.items():
        if rule == ALL:
            pieces.append(_line(f"M0 {_n(up(curve[0][1]))}h{_WIDTH}", rule))
            continue
        middle = "L".join(f"{_n(across(r))} {_n(up(m))}" for r, m, _ in curve)
        bars = "".join(f"M{_n(across(r))} {_n(up(m - e))}V{_n(up(m + e))}" for r, m, e in curve)
        pieces.append(_line(f"M{middle}", rule))
        pieces.append(_element("path", d=bars, stroke=_LINES[rule][0], fill="none"))
    return pieces


def _padded(low: float, high: float, *, log: bool) -> tuple[float, float]:
    """Return the ends of an axis, a little beyond the values."""
    if log:
        # An error of 0, as few test events may give, has no place on a logarithmic axis.
        low, high = max(low, 1e-9), max(high, 1e-9)
        room = max((high / low) ** 0.08, 1.05)
        return low / room, high * room
    room = max(0.08 * (high - low), 0.01)
    return low - room, high + room


def _line(d: str, rule: str) -> Element:
    colour, dash = _LINES[rule]
    return _element("path", d=d, stroke=colour, stroke_width=2, stroke_dasharray=dash, fill="none")


def _text(x: float, y: float, text: str, anchor: str) -> Element:
    return _element("text", text=text, x=_n(x), y=_n(y), text_anchor=anchor)


def _element(
    name: str, *children: Element, text: str | None = None, **attributes: str | float | None
) -> Element:
    """Return an element; underscores in attribute names become hyphens, None leaves one out."""
    given = {k.replace("_", "-"): str(v) for k, v in attributes.items() if v is not None}
    element = Element(name, given)
    element.text = text
    element.extend(children)
    return element


def _n(value: float) -> str:
    """Return a coordinate in as few characters as it needs."""
    return f"{value:.1f}".removesuffix(".0")
