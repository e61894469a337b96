"""A table of measurements: where its numbers come from, and how they are shown."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
FIELD = re.compile(r"\{([^{}:]+):?([^{}]*)\}")
_MANY = 10_000
VERSIONS = ("python", "river", "numpy", "scipy")


Where: TypeAlias = Mapping[str, Any]
"""Values by which rows of a file are found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Where the numbers of a table come from, and how they are shown.

    A cell takes its number from the one row of the file that has the values of the cell's row and
    of its column, and everything that the column shows.

    A title in braces stands for several rows or columns, one for each value in the file:
    `"{learner}, {noise:.0%}"`. A value whose name begins with `$` is not in the file: it is
    substituted in the texts by which a cell is found and shown, `{"$n": 20}` in `"{labels $n}"`.

    Parameters
    ----------
    measured
        Name of the benchmark, and of its file.
    rows
        Values by title, in the order of the table.
    columns
        Templates by title, filled in with the values of a row of the file; with values of their own
        where the rows of the file are spread over the columns.
    head
        Title of the first column; `|` separates several, as in the titles of the rows.
    best
        Title of the column by which rows are sorted, the largest first; none keeps their order.

    """

    measured: str
    rows: Mapping[str, Where]
    columns: Mapping[str, str | tuple[Where, str]]
    head: str = ""
    best: str | None = None


def each(name: str, *values: Any, **titled: Any) -> dict[str, Where]:
    """Return rows that differ in one value, which is the title unless another one is given."""
    titles = {str(value): value for value in values} | titled
    return {title: {name: value} for title, value in titles.items()}


def crossed(*axes: Mapping[str, Where], by: str = " | ") -> dict[str, Where]:
    """Return rows for each combination of those of several axes."""
    return {
        by.join(title for title, _ in ones): {k: v for _, where in ones for k, v in where.items()}
        for ones in itertools.product(*(axis.items() for axis in axes))
    }


def spread(template: str, wheres: Mapping[str, Where]) -> dict[str, tuple[Where, str]]:
    """Return columns that show the same template for rows that differ in these values."""
    return {title: (where, template) for title, where in wheres.items()}


class Value:
    """A value of a row, formatted as in the pages: .951, −1.20, and - for none.

    Besides the usual formats there are `.1p`, per cent without the sign, `.3s`, a percentage as a
    share, and `~2`, as many decimals as show two significant digits, but at least one; `~2p` is
    both. With `,` a space separates the thousands of large numbers: 13 833, but 1509.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __format__(self, how: str) -> str:
        value = self.value
        if value is None:
            return "-"
        if isinstance(value, str):
            return value
        if how.endswith("p"):
            value, how = 100.0 * value, how[:-1] + "f" * (not how.startswith("~"))
        elif how.endswith("s"):
            value, how = value / 100.0, how[:-1] + "f"
        if how.startswith("~"):
            before = math.floor(math.log10(abs(value))) if value else 0
            how = f".{max(1, int(how[1:]) - 1 - before)}f"
        text = format(value, how).replace(",", " " if abs(value) >= _MANY else "")
        if float(text.replace(" ", "").rstrip("%")) == 0.0:
            text = text.lstrip("+-")
        return re.sub(r"^([-+]?)0\.(?=\d*[1-9])", r"\1.", text).replace("-", "−").replace("%", " %")


def document(measured: str) -> dict[str, Any]:
    """Return the results file of a benchmark."""
    found: dict[str, Any] = json.loads((RESULTS / f"{measured}.json").read_text(encoding="utf-8"))
    return found


def shown(table: Table) -> str:
    """Return a table and, below it, when and where it was measured."""
    found = document(table.measured)
    rows: Sequence[Where] = found["rows"]
    columns: dict[str, tuple[Where, str]] = {}
    for title, column in table.columns.items():
        where, template = ({}, column) if isinstance(column, str) else column
        columns |= {one: (also, template) for one, also in _titled(title, where, rows)}
    lines = [
        [title, *(cell(rows, {**where, **also}, template) for also, template in columns.values())]
        for head, of_rows in table.rows.items()
        for title, where in dict(_titled(head, of_rows, rows)).items()
    ]
    if table.best is not None:
        place = 1 + list(columns).index(table.best)
        lines.sort(key=lambda line: line[place], reverse=True)
    n_titles = table.head.count("|") + 1
    ruled = [[table.head, *columns], [":--"] * n_titles + ["--:"] * len(columns), *lines]
    body = "".join(f"| {' | '.join(line)} |\n" for line in ruled).replace("|  |", "| |")
    return f"{body}\n{provenance(found)}\n"


def _titled(title: str, where: Where, rows: Sequence[Where]) -> Iterator[tuple[str, Where]]:
    """Yield the titles that a title stands for: itself, or one for each value in the file."""
    names = [name for name, _ in FIELD.findall(title)]
    if not names:
        yield title, where
        return
    for row in rows:
        if where.items() <= row.items() and row.keys() >= set(names):
            yield _filled(title, row), {**where, **{name: row[name] for name in names}}


def cell(rows: Sequence[Where], where: Where, template: str) -> str:
    """Return a template filled in from the only row with the given values."""
    put_in = {name: str(value) for name, value in where.items() if name.startswith("$")}

    def with_these(text: str) -> str:
        for name, value in put_in.items():
            text = text.replace(name, value)
        return text

    template = with_these(template)
    wanted = {
        name: with_these(value) if isinstance(value, str) else value
        for name, value in where.items()
        if name not in put_in
    }
    names = {name for name, _ in FIELD.findall(template)}
    found = [row for row in rows if wanted.items() <= row.items() and row.keys() >= names]
    if len(found) != 1:
        raise ValueError(f"expected one row of the file with {wanted}, got {len(found)}")
    # Where nothing was measured, there is no uncertainty either.
    return re.sub(r"^- .*", "-", _filled(template, found[0]))


def _filled(template: str, row: Where) -> str:
    """Fill in a template whose names, unlike those of `str.format`, may have dots and spaces."""
    return FIELD.sub(lambda found: format(Value(row[found[1]]), found[2]), template)


def provenance(found: Mapping[str, Any]) -> str:
    """Return when, where and with what a file was measured, in words."""
    machine, versions = found["machine"], found["versions"]
    names = {"python": "Python", "river": "River"}
    with_what = ", ".join(f"{names.get(name, name)} {versions[name]}" for name in VERSIONS)
    processor = machine["processor"] or machine["architecture"]
    return f"{found['date']}, {machine['cores']} cores of {processor}; {with_what}."
