"""Draw the picture of docs/temporal.md: a filter's predictions over some days, and its weight.

All numbers in it are computed. Needs matplotlib (the extra `plot`). The file to write can be given
on the command line.
"""

import sys

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from streamgp import isgp
from streamgp.base import Label

COLOURS = {"home": "#2c6fbb", "bus": "#3a8f4d", "work": "#d97706"}
INK = "#222222"
CENTRES = {"home": (-1.0, 0.0), "bus": (0.0, 1.2), "work": (1.0, 0.0)}
VISITS = (("home", 60), ("bus", 25), ("work", 80), ("bus", 25), ("home", 60))
SPREAD = 0.75
N_SHOWN = 250
SHUFFLED = "the same events, shuffled"


def morning(rng: np.random.Generator, n_days: int) -> list[tuple[dict[str, float], str]]:
    """Return readings of two sensors, place after place over several days; places overlap."""
    places = [place for _ in range(n_days) for place, n in VISITS for _ in range(n)]
    readings = [rng.normal(CENTRES[place], SPREAD) for place in places]
    return [
        (dict(zip("ab", reading.tolist(), strict=True)), place)
        for reading, place in zip(readings, places, strict=True)
    ]


def played(
    events: list[tuple[dict[str, float], str]], rng: np.random.Generator
) -> tuple[list[Label], list[Label], list[float]]:
    """Predict every event, and answer every question, wrongly one time in five.

    Returns the predictions from each event by itself and with the filter, and the weight of memory.
    """
    # Scaled only once, so that the rows of the picture differ in the filter alone.
    model = isgp(seed=1, rescale=False)
    alone, filtered, memory = [], [], []
    for x, place in events:
        y, asks = model.predict_one(x)
        own = model.own_proba_one(x)
        alone.append(max(own, key=own.__getitem__) if own else "home")
        filtered.append("home" if y is None else y)
        if asks:
            said = place if rng.random() > 0.2 else rng.choice(list(CENTRES)).item()
            model.learn_one(x, place, annotation=said)
        used = model.temporal_in_use
        assert used is not None  # the filter of `isgp()`
        weights = zip(used.weights(), used.experts, strict=True)
        memory.append(sum(weight for weight, (stays, _) in weights if stays > 0.0))
    return alone, filtered, memory


def right(places: list[Label], truths: list[Label]) -> float:
    return float(np.mean([p == t for p, t in zip(places, truths, strict=True)]))


def main(path: str) -> None:
    rng = np.random.default_rng(4)
    events = morning(rng, n_days=3)
    alone, filtered, memory = played(events, np.random.default_rng(5))
    shuffled = [events[i] for i in rng.permutation(len(events))]
    _, _, of_shuffled = played(shuffled, np.random.default_rng(5))

    figure = Figure(figsize=(12.0, 4.4), layout="constrained")
    day, weighing = figure.subplots(1, 2, width_ratios=(3, 2))
    truths: list[Label] = [place for _, place in events]
    for row, (title, places) in enumerate(
        (
            ("with the filter: {:.0%} right", filtered),
            ("by each event alone: {:.0%} right", alone),
            ("where the person is", truths),
        )
    ):
        share = right(places[-N_SHOWN:], truths[-N_SHOWN:])
        for n, place in enumerate(places[-N_SHOWN:]):
            day.broken_barh([(n, 1)], (row, 0.62), color=COLOURS[str(place)], linewidth=0)
        day.text(0, row + 0.67, title.format(share), fontsize=11, color=INK)
    day.set(xlim=(0, N_SHOWN), ylim=(-0.1, 2.95), yticks=[])
    day.set_xlabel("events of the third day")
    day.set_title("What is predicted", fontsize=13)
    for side in ("left", "right", "top"):
        day.spines[side].set_visible(False)
    day.legend(
        handles=[Patch(color=colour, label=place) for place, colour in COLOURS.items()],
        loc="upper right",
        ncols=3,
        fontsize=9,
        frameon=False,
    )

    weighing.plot(memory, color=INK, linewidth=1.8, label="as it happened")
    weighing.plot(of_shuffled, color="#b3202c", linewidth=1.8, label=SHUFFLED)
    weighing.set(xlim=(0, len(events)), ylim=(0.0, 1.02))
    weighing.set_xlabel("events so far")
    weighing.set_ylabel("weight of the experts with memory")
    weighing.set_title("How the filter weighs itself", fontsize=13)
    weighing.legend(fontsize=10, frameon=False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "temporal.png")
