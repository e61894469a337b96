"""Draw the picture of docs/windows.md: a stream cut into windows, and the questions about them.

The stream is the walk of `streamgp demo --raw`; everything else is computed. Needs matplotlib (the
extra `plot`). The file to write can be given on the command line.
"""

import sys

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from streamgp import isgp
from streamgp.apps.replay.demo_data import WINDOW_S, walk
from streamgp.windows import Windows

COLOURS = {"standing": "#2c6fbb", "walking": "#3a8f4d", "cycling": "#d97706", "bus": "#8b5bb0"}
INK = "#222222"
N_WINDOWS = 40


def main(path: str) -> None:
    windows = Windows(WINDOW_S, features="activity", vectors=[["ax", "ay", "az"]], label="activity")
    model = isgp(seed=1)
    figure = Figure(figsize=(12.0, 4.2), layout="constrained")
    signal, strip = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    seconds: list[float] = []
    upward: list[float] = []
    start, n = None, 0
    for at, x, activity in walk(seed=1):
        start = at if start is None else start
        seconds.append(at - start)
        upward.append(x["az"])
        for window in windows.update_one({"time": at, **x, "activity": activity}):
            left, truth = window["start"] - start, window["y"]
            y, asks = model.predict_one(window["x"])
            if asks:
                model.learn_one(window["x"], truth)
                middle = left + WINDOW_S / 2
                strip.text(middle, 2.0, "?", ha="center", fontsize=13, weight="bold", color=INK)
            for row, label in ((0.0, truth), (1.0, y)):
                colour = COLOURS.get(label, "#dddddd")
                strip.broken_barh([(left, WINDOW_S)], (row, 0.8), color=colour, ec="white")
            signal.axvspan(left, left + WINDOW_S, color=COLOURS[truth], alpha=0.12, linewidth=0)
            signal.axvline(left, color=INK, linewidth=0.4)
            n += 1
        if n == N_WINDOWS:
            break
    signal.plot(seconds, upward, color=INK, linewidth=0.5)
    signal.set_ylabel("az, m/s²")
    signal.set_title(
        f"{len(seconds) - 1} rows of acceleration, {N_WINDOWS} windows of {WINDOW_S:.0f} s",
        fontsize=13,
    )
    signal.legend(
        handles=[Patch(color=colour, label=label) for label, colour in COLOURS.items()],
        loc="upper right",
        ncols=4,
        fontsize=9,
    )
    strip.set(xlim=(0.0, N_WINDOWS * WINDOW_S), ylim=(-0.1, 2.9), yticks=[0.4, 1.4, 2.4])
    strip.set_yticklabels(["true", "predicted", "asked"])
    strip.set_xlabel("seconds")
    for side in ("left", "right", "top"):
        strip.spines[side].set_visible(False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "windows.png")
