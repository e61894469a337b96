"""The part of a page that shows which classes are taken for which."""

from __future__ import annotations

from collections.abc import Sequence

from streamgp.report.markup import Html, el, foreign, scrolling
from streamgp.report.numbers import count, percent
from streamgp.report.run import Confusion

N_CLASSES = 30

# The palest and the strongest shade, in percent: text stays readable on both.
_SHADES = (6, 42)


def confusion_table(confusion: Confusion, n_classes: int = N_CLASSES) -> list[Html]:
    """Return the confusion matrix, shaded by share of the true class.

    Parameters
    ----------
    confusion
        The matrix.
    n_classes
        How many classes have a row and a column; the least frequent share one.

    """
    if not any(map(any, confusion.counts)):
        return [el("p", "No prediction could be compared with a truth.", class_="none")]
    groups = _groups(confusion, n_classes)
    names = [foreign(confusion.labels[group[0]]) for group in groups[:n_classes]]
    if len(groups) > len(names):
        names.append(el("i", f"{len(groups[-1])} others"))
    counts = [[_sum(confusion, rows, columns) for columns in groups] for rows in groups]
    # Within the others a prediction may be right or wrong, so the diagonal does not tell.
    hits = [sum(confusion.counts[i][i] for i in group) for group in groups]
    head = [
        el("th", "true", scope="col"),
        *(el("th", name, scope="col") for name in names),
        el("th", "events", scope="col"),
        el("th", "recall", scope="col"),
    ]
    rows = [
        el(
            "tr",
            el("th", name, scope="row"),
            *(_cell(n, sum(row), i, j, n_classes) for j, n in enumerate(row)),
            el("td", count(sum(row))),
            el("td", _share(hits[i], sum(row))),
        )
        for i, (name, row) in enumerate(zip(names, counts, strict=True))
    ]
    predicted = [sum(column) for column in zip(*counts, strict=True)]
    foot = [
        el("th", "precision", scope="row"),
        *(el("td", _share(hit, n)) for hit, n in zip(hits, predicted, strict=True)),
        el("td", count(sum(predicted))),
        el("td", _share(sum(hits), sum(predicted))),
    ]
    table = el(
        "table",
        el("caption", "Events by true class (rows) and predicted class (columns)"),
        el("thead", el("tr", *head)),
        el("tbody", *rows),
        el("tfoot", el("tr", *foot)),
        class_="confusion",
    )
    about = "Rows: true class. Columns: predicted class. Shaded by the share of the true class."
    return [el("p", about), scrolling(table, "Confusion matrix")]


def _groups(confusion: Confusion, n_classes: int) -> list[list[int]]:
    """Return the numbers of the classes of each row: one each, and the least frequent together."""
    every = range(len(confusion.labels))
    if len(every) <= n_classes:
        return [[i] for i in every]
    columns = list(zip(*confusion.counts, strict=True))
    frequent = sorted(every, key=lambda i: -(sum(confusion.counts[i]) + sum(columns[i])))
    first = sorted(frequent[:n_classes])
    return [*([i] for i in first), sorted(frequent[n_classes:])]


def _sum(confusion: Confusion, rows: Sequence[int], columns: Sequence[int]) -> int:
    return sum(confusion.counts[i][j] for i in rows for j in columns)


def _share(part: int, whole: int) -> str:
    return percent(part / whole if whole else None)


def _cell(n: int, of: int, i: int, j: int, n_classes: int) -> Html:
    if not n:
        return el("td", "\N{MIDDLE DOT}", class_="zero")
    low, high = _SHADES
    shade = f"--shade:{low + (high - low) * n / of:.0f}%"
    kind = "mixed" if i == j == n_classes else "hit" if i == j else "miss"
    return el("td", count(n), class_=kind, style=shade)
