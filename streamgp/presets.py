"""Ready-made learners with query strategies, in named presets."""

from __future__ import annotations

from typing import Any

from streamgp.base import Preset, check_preset
from streamgp.kernels import SquaredExponential
from streamgp.learners.gp_classifier import GPClassifier
from streamgp.query.drift_test import DriftTest
from streamgp.query.skeptical_classifier import SkepticalClassifier
from streamgp.query.strategies import PaperAsk, PaperChallenge, SkepticalAsk, SkepticalChallenge
from streamgp.query.temporal import TemporalFilter

# As many questions and as few errors as without a bound; 200 worsens both: docs/bounded.md.
MAX_POINTS = 500


def isgp(
    preset: Preset = "default", seed: int | None = None, **arguments: Any
) -> SkepticalClassifier:
    """Return an incremental skeptical Gaussian process, ready for a stream.

    `default` has a realistic noise variance (0.5), scales and clips the features itself and
    challenges labels that are wrong with probability above 0.1. It is exact up to 500 examples and
    keeps 500 points from then on, so that time and memory stay the same for as long as it runs
    (docs/bounded.md). Its predictions pass through a filter over time (docs/temporal.md). A test
    for concept drift asks now and then where it is sure, and makes it forget what is outdated
    (docs/drift.md). `paper` is exactly the published algorithm: noise 1e-16, length scale 2 on
    unscaled features, both decisions by a coin flip. With so little noise it cannot take the same
    point twice, and follows every wrong label among close points: let it learn only what it asks
    for.

    Parameters
    ----------
    preset
        `default` or `paper`.
    seed
        Seed of the random decisions. None draws one.
    arguments
        Arguments of `SkepticalClassifier` in place of the preset's.

    Raises
    ------
    TypeError
        If `SkepticalClassifier` has no such argument.
    ValueError
        If there is no such preset.

    Examples
    --------
    >>> from streamgp import isgp
    >>> model = isgp(seed=1)
    >>> model.observe_one({"light": 0.3})
    >>> model.query_one({"light": 0.3})
    Decision(ask=True, score=1.0, threshold=0.634..., criterion='SkepticalAsk', budget=None)

    With a budget, and without the drift test:

    >>> from streamgp.budgets import AtMost
    >>> isgp(seed=1, budget=AtMost(100), drift_test=None).budget
    AtMost(100)

    References
    ----------
    [^1]: Bontempelli, A., Teso, S., Giunchiglia, F. and Passerini, A., 2020. Learning in the wild
        with incremental skeptical Gaussian processes. IJCAI.

    """
    check_preset(preset)
    chosen: dict[str, Any]
    if preset == "default":
        chosen = {
            "model": GPClassifier(max_points=MAX_POINTS),
            "query": SkepticalAsk(),
            "challenge": SkepticalChallenge(),
            "temporal": TemporalFilter(),
            "drift_test": DriftTest(),
            "rescale": True,
        }
    else:
        chosen = {
            "model": GPClassifier(SquaredExponential(length_scale=2.0), noise_variance=1e-16),
            "query": PaperAsk(),
            "challenge": PaperChallenge(),
            "warm_up": 0,
        }
    return SkepticalClassifier(**{**chosen, **arguments, "seed": seed})
