"""Draw the picture of docs/skeptical-learning.md: where to ask, and which answers to doubt.

All numbers in it are computed. Needs matplotlib (the extra `plot`). The file to write can be given
on the command line.
"""

import sys

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from streamgp import GPClassifier
from streamgp.query.criteria import doubt, probability_wrong

COLOURS = {"home": "#2c6fbb", "work": "#d97706"}
INK, RED = "#222222", "#b3202c"
CENTRES = {"home": (-1.4, -0.4), "work": (1.35, 0.3)}
WIDTH, HEIGHT = 3.2, 2.3
ERROR_RATE = 0.2  # assumed of an annotator about whom nothing is known yet


def features(a: float, b: float) -> dict[str, float]:
    return {"a": float(a), "b": float(b)}


def draw_beliefs(axes: Axes, model: GPClassifier, points: dict[str, np.ndarray]) -> None:
    """Colour the plane by prediction, paler with growing doubt, and add what was learned."""
    a, b = np.meshgrid(np.linspace(-WIDTH, WIDTH, 161), np.linspace(-HEIGHT, HEIGHT, 121))
    beliefs = [
        model.predict_proba_one(features(*place), with_dist=True)
        for place in zip(a.ravel(), b.ravel(), strict=True)
    ]
    doubts = np.array([doubt(belief) for belief in beliefs]).reshape(a.shape)
    best = [max(belief.mean, key=belief.mean.__getitem__) for belief in beliefs]
    colours = np.array([to_rgb(COLOURS[label]) for label in best]).reshape(*a.shape, 3)
    sureness = 0.55 * np.clip(1.0 - 2.0 * doubts, 0.0, 1.0)[..., None]
    axes.imshow(
        sureness * colours + (1.0 - sureness),
        extent=(-WIDTH, WIDTH, -HEIGHT, HEIGHT),
        origin="lower",
        interpolation="bicubic",
    )
    axes.contour(a, b, doubts, levels=(0.1,), colors=INK, linewidths=1.0, linestyles="dashed")
    axes.plot(
        [], [], color=INK, linewidth=1.0, linestyle="dashed", label="outside: doubt above 0.1"
    )
    for label, places in points.items():
        axes.scatter(
            *places.T, s=34, color=COLOURS[label], edgecolor="white", label=f"learned as {label}"
        )
    axes.set(xlim=(-WIDTH, WIDTH), ylim=(-HEIGHT, HEIGHT), xticks=[], yticks=[])
    axes.set_xlabel("one sensor")
    axes.set_ylabel("another sensor")


def remark(axes: Axes, place: tuple[float, float], at: tuple[float, float], text: str) -> None:
    axes.annotate(
        text,
        xy=place,
        xytext=at,
        ha="center",
        va="center",
        fontsize=10,
        color=INK,
        bbox={"boxstyle": "round,pad=0.4", "facecolor": "white", "edgecolor": INK},
        arrowprops={"arrowstyle": "-", "color": INK, "shrinkB": 7},
    )


def main(path: str) -> None:
    rng = np.random.default_rng(7)
    points = {label: rng.normal(centre, 0.42, (16, 2)) for label, centre in CENTRES.items()}
    model = GPClassifier()
    for label, places in points.items():
        for place in places:
            model.learn_one(features(*place), label)

    figure = Figure(figsize=(12.0, 5.0), layout="constrained")
    asking, doubting = figure.subplots(1, 2)
    draw_beliefs(asking, model, points)
    asking.set_title("A new event: ask for its label?", fontsize=13)
    for place, at, why in (
        ((-1.6, -0.05), (-1.75, -1.95), "like what it knows"),
        ((-0.05, -0.2), (0.9, -1.8), "between two classes"),
        ((-2.6, 1.75), (-0.95, 1.75), "unlike anything it knows"),
    ):
        p = doubt(model.predict_proba_one(features(*place), with_dist=True))
        asking.scatter(*place, s=110, color="white", edgecolor=INK, linewidth=1.8, zorder=3)
        remark(asking, place, at, f"{why}:\nasks with probability {p:.2f}")

    draw_beliefs(doubting, model, points)
    doubting.set_title("An answer: believe it?", fontsize=13)
    for place, given, at, text in (
        ((0.72, 0.15), "home", (0.9, -1.8), "“home”, but its neighbours are work"),
        ((-2.6, 1.75), "gym", (-0.75, 1.75), "“gym”, never heard before"),
    ):
        belief = model.predict_proba_one(features(*place), with_dist=True)
        p = probability_wrong(belief, given, ERROR_RATE)
        colour = COLOURS.get(given, "#3a8f4d")
        edge = RED if p > 0.1 else INK
        doubting.scatter(*place, s=130, color=colour, edgecolor=edge, linewidth=2.5, zorder=3)
        verdict = "challenged" if p > 0.1 else "believed"
        remark(doubting, place, at, f"{text}:\nwrong with probability {p:.2f}, {verdict}")
    figure.legend(*asking.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "skeptical-learning.png")
