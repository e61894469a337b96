"""Learning curves as a picture. matplotlib (extra `plot`) is imported when one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from streamgp.common.private_files import private

PICTURE_FORMATS = ("png", "svg", "pdf")

_LINE_STYLES = ("-", "--", "-.", ":")


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
        Share of them predicted right, between 0 and 1; nan where that is not known.
    questions
        Label requests and challenges sent so far.

    """

    name: str
    n_events: Sequence[int]
    accuracy: Sequence[float]
    questions: Sequence[int]


def draw_curves(curves: Sequence[Curve], path: Path, *, title: str) -> None:
    """Draw accuracy so far and cumulative questions over the events, one line per learner.

    Parameters
    ----------
    curves
        What to draw, in this order.
    path
        File to write; its ending (png, svg, pdf) decides the format; png without one.
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
    ending = path.suffix.removeprefix(".").lower()
    with open(path, "wb", opener=private) as file:
        figure.savefig(file, format=ending or "png", dpi=120)
