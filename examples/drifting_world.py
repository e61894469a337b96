"""Concept drift: light means awake, and from the 1500th event on, asleep.

What was learned becomes wrong. `drift=True` forgets it when errors become more frequent; a window
always forgets the oldest events. Both need labels where the learner is sure, or the change goes
unnoticed: one event in ten is asked about, however sure the learner is.

Prints:

    max_points=200: 97% right before, 17% after, 308 labels asked
    window=100: 97% right before, 70% after, 308 labels asked
    drift=True: 97% right before, 85% after, 316 labels asked
"""

import random

from streamgp import GPClassifier, SkepticalClassifier
from streamgp.query import SkepticalAsk

CHANGE, N_EVENTS, WRONG = 1500, 3000, 0.1


def main() -> None:
    for name, learner in (
        ("max_points=200", GPClassifier(max_points=200)),
        ("window=100", GPClassifier(window=100)),
        ("drift=True", GPClassifier(max_points=200, drift=True)),
    ):
        model = SkepticalClassifier(learner, SkepticalAsk(at_least=0.1), seed=1)
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
