"""Concept drift: light means awake, and from the 1500th event on, asleep.

What was learned becomes wrong where the learner is sure, so it asks nothing there and does not
notice. The drift test of `isgp()` asks about one event in two hundred anyway, and about more when
an answer is surprising. ADWIN (`drift=True`) and a window need more labels: one event in ten is
asked about, however sure the learner is.

Prints:

    nothing: 95% right before, 7% after, 52 labels asked
    drift test: 96% right before, 81% after, 89 labels asked
    drift=True: 97% right before, 85% after, 316 labels asked
    window=100: 97% right before, 70% after, 308 labels asked
"""

import random

from streamgp import DriftTest, GPClassifier, SkepticalClassifier
from streamgp.query import SkepticalAsk

CHANGE, N_EVENTS, WRONG = 1500, 3000, 0.1


def main() -> None:
    points, often = GPClassifier(max_points=200), SkepticalAsk(at_least=0.1)
    for name, model in {
        "nothing": SkepticalClassifier(points, seed=1),
        "drift test": SkepticalClassifier(points, drift_test=DriftTest(), seed=1),
        "drift=True": SkepticalClassifier(points.clone({"drift": True}), often, seed=1),
        "window=100": SkepticalClassifier(GPClassifier(window=100), often, seed=1),
    }.items():
        rng = random.Random(1)
        right, n_asked = [0, 0], 0
        for n in range(N_EVENTS):
            x = {"light": rng.uniform(-1.0, 1.0), "noise": rng.uniform(-1.0, 1.0)}
            y, other = "awake", "asleep"
            if (x["light"] > 0.0) != (n < CHANGE):
                y, other = other, y
            predicted, ask = model.predict_one(x)
            right[n >= CHANGE] += predicted == y
            said = other if rng.random() < WRONG else y
            if ask:
                n_asked += 1
                model.learn_one(x, y, annotation=said)
        before, after = right[0] / CHANGE, right[1] / (N_EVENTS - CHANGE)
        print(f"{name}: {before:.0%} right before, {after:.0%} after, {n_asked} labels asked")


if __name__ == "__main__":
    main()
