"""Learners as a picture: a line for each, a mark for each number of labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks._harness import Row
from benchmarks._isgp_picture import save

# Colours of Okabe and Ito, which the colour-blind tell apart; shares differ in what is filled.
_RIVERS, _OWN = "#D55E00", "#0072B2"
_INCHES_PER_LINE = 0.24


def draw(by_share: Sequence[Sequence[Row]], path: Path) -> None:
    """Draw the rows of the learners, the same ones at each share; the best of the last on top."""
    from matplotlib.figure import Figure

    path.parent.mkdir(parents=True, exist_ok=True)
    ranked = sorted(by_share[-1], key=lambda row: row["accuracy"])
    places = {row["learner"]: place for place, row in enumerate(ranked)}
    colours = [_RIVERS if name.startswith("River") else _OWN for name in places]
    figure = Figure(figsize=(7.5, _INCHES_PER_LINE * len(places) + 1.2), layout="constrained")
    axis = figure.subplots()
    for rows in by_share:
        accuracy = {row["learner"]: row["accuracy"] for row in rows}
        axis.scatter(
            [accuracy[name] for name in places],
            range(len(places)),
            facecolors=colours if rows is by_share[-1] else "none",
            edgecolors=colours,
            label=f"{rows[0]['share']} of the events asked about",
        )
    axis.set_yticks(range(len(places)), places)
    axis.set_xlabel("accuracy, mean of the logs")
    axis.grid(alpha=0.25)
    figure.legend(loc="outside lower center", ncols=len(by_share), frameon=False)
    save(figure, path)
