"""A run as one self-contained web page: no script, and no font or picture from elsewhere.

The same run gives the same bytes. The page is assembled by the templates in `templates/`, one file
for each part; this module computes what they cannot read from the run itself.

"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamgp.base import Label
from streamgp.report.charts import Chart, Line, chart
from streamgp.report.html import count, foreign, percent, render
from streamgp.report.run import Calibration, Confusion, Outcome, Progress, Run
from streamgp.report.tables import amount

N_CLASSES = 30
"""Number of classes with a row and a column of their own in the confusion matrix."""

# The palest and the strongest shade, in percent: text stays legible on both.
_SHADES = (6, 42)

_OWN_LEARNERS = {"gp": "Gaussian process", "ensemble": "ensemble of Gaussian processes"}

# Outcomes are listed in this order wherever they are counted.
_OUTCOMES: dict[Outcome, str] = {
    "revised": "revised",
    "upheld": "upheld",
    "declined": "declined",
    "expired": "expired",
    "cancelled": "cancelled",
    "open": "still open",
}


def page(run: Run) -> str:
    """Return the HTML of the page."""
    learner = run.setting("learner", "name")
    return render(
        "page.html",
        run=run,
        parts=list(_parts(run)),
        learner=_OWN_LEARNERS.get(str(learner)) or foreign(learner),
        curves=_curves(run),
        confusion=confusion_matrix(run.confusion),
        reliability=_reliability(run.calibration),
        outcomes=_OUTCOMES,
        estimates=_estimates(run),
        settings=list(_settings("general", run.configuration)),
    )


def _parts(run: Run) -> Iterator[tuple[str, str]]:
    """Yield the name and title of each part of the page; the name is that of its template."""
    yield "results", "Results"
    yield "curves", "Curves"
    if not run.of_numbers:
        yield "confusion", "Confusion matrix"
    if run.calibration is not None:
        yield "confidence", "Confidence"
    if run.distributions is not None:
        yield "distributions", "Distributions"
    yield "challenges", "Challenges"
    yield "annotators", "Annotators"
    if run.weights or run.forms:
        yield "columns", "Columns"
    if run.keys is not None:
        yield "keys", "Keys"
    if run.refusals:
        yield "rejected", "Rejected"
    if run.notes:
        yield "notes", "Notes"
    yield "configuration", "Configuration"


def _curves(run: Run) -> tuple[Chart, Chart]:
    """Return the charts of the score and of the questions over the events."""
    curve = _to_the_end(run)
    if run.of_numbers:
        score = chart(
            [Line(name="mean absolute error", x=curve.n_events, y=curve.mae)],
            title="Mean absolute error so far",
            of="events",
            show=amount,
        )
    else:
        score = chart(
            [Line(name="accuracy", x=curve.n_events, y=curve.accuracy)],
            title="Accuracy so far",
            of="events",
            show=percent,
            top=1.0,
        )
    questions = chart(
        [
            Line(name="label requests", x=curve.n_events, y=curve.n_asked),
            Line(name="challenges", x=curve.n_events, y=curve.n_challenges),
        ],
        title="Questions so far",
        of="events",
        show=count,
        least=1.0,
    )
    return score, questions


def _to_the_end(run: Run) -> Progress:
    """Return a curve that ends with the results: its last point may lie slightly before them."""
    curve, results = run.curve, run.results
    n = sum(at < results.n_events for at in curve.n_events)
    return Progress(
        n_events=[*curve.n_events[:n], results.n_events],
        accuracy=() if run.of_numbers else [*curve.accuracy[:n], results.accuracy],
        mae=[*curve.mae[:n], results.mae] if run.of_numbers else (),
        n_asked=[*curve.n_asked[:n], results.n_asked],
        n_challenges=[*curve.n_challenges[:n], results.n_challenges],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Number of events of one true and one predicted class; kind and shade (percent) colour it."""

    n: int
    kind: str
    shade: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRow:
    """A row of the confusion matrix, and the precision of its column.

    `label` is the class, or None for the `n_others` least frequent ones together.
    """

    label: Label | None
    n_others: int
    cells: Sequence[Cell]
    n: int
    recall: float | None
    precision: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A confusion matrix as `confusion.html` shows it."""

    rows: Sequence[ClassRow]
    n: int
    accuracy: float | None


def confusion_matrix(confusion: Confusion, n_classes: int = N_CLASSES) -> Matrix | None:
    """Lay out a confusion matrix, shaded by share of the true class; None if it counts nothing.

    Parameters
    ----------
    n_classes
        Number of classes with a row and a column of their own; all others share one.

    """
    if not any(map(any, confusion.counts)):
        return None
    groups = _groups(confusion, n_classes)
    counts = [
        [sum(confusion.counts[i][j] for i in rows for j in columns) for columns in groups]
        for rows in groups
    ]
    # In the cell of the others, predictions may be right or wrong, so the diagonal does not tell.
    hits = [sum(confusion.counts[i][i] for i in group) for group in groups]
    true = [sum(row) for row in counts]
    predicted = [sum(column) for column in zip(*counts, strict=True)]
    rows = [
        ClassRow(
            label=confusion.labels[group[0]] if i < n_classes else None,
            n_others=0 if i < n_classes else len(group),
            cells=[_cell(n, true[i], i, j, n_classes) for j, n in enumerate(counts[i])],
            n=true[i],
            recall=_share(hits[i], true[i]),
            precision=_share(hits[i], predicted[i]),
        )
        for i, group in enumerate(groups)
    ]
    total = sum(predicted)
    return Matrix(rows=rows, n=total, accuracy=_share(sum(hits), total))


def _groups(confusion: Confusion, n_classes: int) -> list[list[int]]:
    """Return the indices of the classes of each row: one each, and the least frequent together."""
    every = range(len(confusion.labels))
    if len(every) <= n_classes:
        return [[i] for i in every]
    columns = list(zip(*confusion.counts, strict=True))
    frequent = sorted(every, key=lambda i: -(sum(confusion.counts[i]) + sum(columns[i])))
    first = sorted(frequent[:n_classes])
    return [*([i] for i in first), sorted(frequent[n_classes:])]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _cell(n: int, of: int, i: int, j: int, n_classes: int) -> Cell:
    low, high = _SHADES
    kind = "mixed" if i == j == n_classes else "hit" if i == j else "miss"
    shade = low + (high - low) * n / of if n else 0.0
    return Cell(n=n, kind=kind if n else "zero", shade=f"{shade:.0f}%")


def _reliability(calibration: Calibration | None) -> tuple[Chart, ...]:
    """Return the reliability diagram and the histogram of confidences."""
    if calibration is None:
        return ()
    reliability, confidence = calibration.reliability, calibration.confidence
    diagonal = (0.0, *reliability.mean, 1.0)  # every point, for the table of numbers
    return (
        chart(
            [
                Line(name="right", x=reliability.mean, y=reliability.share),
                Line(name="calibrated", x=diagonal, y=diagonal),
            ],
            title="Share right, by probability",
            of="probability of the predicted class",
            show=percent,
            top=1.0,
            shares=True,
        ),
        chart(
            [_steps("right", confidence.right), _steps("wrong", confidence.wrong)],
            title="Right and wrong predictions, by confidence",
            of="confidence; each kind adds up to 100 %",
            show=percent,
            shares=True,
        ),
    )


def _steps(name: str, counts: Sequence[int]) -> Line:
    """Return the outline of a histogram, in shares of its total."""
    total, n = sum(counts), len(counts)
    if not total:
        return Line(name=name, x=(), y=())
    x = [edge / n for i in range(n) for edge in (i, i + 1)]
    return Line(name=name, x=x, y=[c / total for c in counts for _ in range(2)])


def _estimates(run: Run) -> Chart:
    """Return the estimated share of wrong answers of each annotator."""
    lines = [Line(name=e.name or "no name", x=e.n_answers, y=e.estimate) for e in run.estimates]
    if len(lines) == len(run.annotators) == 1 and run.annotators[0].error_rate is not None:
        # With several annotators it would not be clear whose share it is.
        ends = (lines[0].x[0], lines[0].x[-1])
        lines.append(Line(name="true share", x=ends, y=(run.annotators[0].error_rate,) * 2))
    return chart(lines, title="Estimated share of wrong answers", of="first answers", show=percent)


def _settings(
    title: str, settings: Mapping[str, Any], above: str = ""
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the title and settings of a section, then those of its subsections."""
    within = {name: v for name, v in settings.items() if isinstance(v, Mapping) and v}
    own = {name: value for name, value in settings.items() if name not in within}
    if own:
        yield title, own
    for name, section in within.items():
        yield from _settings(f"{above}{name}", section, f"{above}{name}.")
