"""Drifts while labels are asked for, and some answers are wrong: what is not asked is not known."""

from __future__ import annotations

import random
from collections.abc import Mapping

from benchmarks._array_streams import ArrayStream, as_dictionaries
from streamgp import GPClassifier, SkepticalClassifier
from streamgp.query import AskRule, RandomAsk, SkepticalAsk

_WRONG = 0.2

RULES: Mapping[str, AskRule] = {
    "SkepticalAsk()": SkepticalAsk(),
    "SkepticalAsk(at_least=.05)": SkepticalAsk(at_least=0.05),
    "SkepticalAsk(at_least=.1)": SkepticalAsk(at_least=0.1),
    "RandomAsk(.1)": RandomAsk(0.1),
}


def asked(stream: ArrayStream, rule: AskRule, learner: GPClassifier, seed: int) -> dict[str, float]:
    """Play a stream with an annotator of whose first answers 20 % are random.

    Returns
    -------
    Percent right, the number of questions, and of drifts found.

    """
    rng, n_classes = random.Random(seed), int(stream.y.max()) + 1
    model = SkepticalClassifier(learner, rule, warm_up=0, seed=seed)
    n_right = n_asked = 0
    for x, y in as_dictionaries(stream):
        predicted, ask = model.predict_one(x)
        n_right += predicted == y
        if ask:
            n_asked += 1
            said = rng.randrange(n_classes) if rng.random() < _WRONG else y
            model.learn_one(x, y, annotation=said)
    n_drifts = model.learner.n_drifts  # type: ignore[attr-defined]
    return {
        "right": 100.0 * n_right / len(stream.y),
        "asked": float(n_asked),
        "drifts": float(n_drifts),
    }
