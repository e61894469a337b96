"""Drifts while labels are asked for, and some answers are wrong: what is not asked is not known."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks._array_streams import ArrayStream, as_dictionaries
from streamgp import GPClassifier, SkepticalClassifier
from streamgp.base import Belief, Decision
from streamgp.query import AskRule, RandomAsk, SkepticalAsk

_WRONG = 0.2
_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Ask as `SkepticalAsk` does, but with no less than some probability however sure it is."""

    share: float

    def decide(self, belief: Belief, draw: float) -> Decision:
        """Compare the larger of both probabilities with the draw."""
        score = SkepticalAsk().decide(belief, draw).score
        return Decision.of(max(score, self.share), draw, type(self).__name__)


RULES: Mapping[str, AskRule] = {
    "SkepticalAsk": SkepticalAsk(),
    "the same, at least .1": AtLeast(_SHARE),
    "RandomAsk(.1)": RandomAsk(_SHARE),
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
