"""Online learning from people who make mistakes, on River.

A learner predicts every event of a stream, asks an annotator for a label when it is unsure, and
challenges the annotator when a given label is probably wrong. Names load on first use, so that
importing the package costs next to nothing.

"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamgp import budgets, datasets, kernels, metrics, query, windows
    from streamgp.base import Decision, Posterior
    from streamgp.evaluate import InteractiveResult, interactive_val_score
    from streamgp.gp.cholesky import NotPositiveDefiniteError
    from streamgp.interactive import InteractiveLoop, KeyedLoops
    from streamgp.learners.boosting import (
        ConfidenceBoostingClassifier,
        OnlineGradientBoostingClassifier,
    )
    from streamgp.learners.ensemble_gp import EnsembleGPClassifier, EnsembleGPRegressor
    from streamgp.learners.forest import OnlineForestClassifier
    from streamgp.learners.gp_classifier import GPClassifier
    from streamgp.learners.gp_regressor import GPRegressor
    from streamgp.learners.privileged_gp import PrivilegedGPClassifier
    from streamgp.pool_learning import active_learning_rounds
    from streamgp.presets import isgp
    from streamgp.query.drift_test import DriftTest
    from streamgp.query.pool import PoolSampler
    from streamgp.query.skeptical_classifier import SkepticalClassifier
    from streamgp.query.skeptical_regressor import SkepticalRegressor
    from streamgp.query.temporal import TemporalFilter
    from streamgp.simulation import (
        AnnotatorPanel,
        SimulatedAnnotator,
        SimulatedMeasurer,
        TiredAnnotator,
    )

__version__ = "0.1.0"

_HOMES = {
    "AnnotatorPanel": "streamgp.simulation",
    "ConfidenceBoostingClassifier": "streamgp.learners.boosting",
    "Decision": "streamgp.base",
    "DriftTest": "streamgp.query.drift_test",
    "Posterior": "streamgp.base",
    "EnsembleGPClassifier": "streamgp.learners.ensemble_gp",
    "EnsembleGPRegressor": "streamgp.learners.ensemble_gp",
    "GPClassifier": "streamgp.learners.gp_classifier",
    "GPRegressor": "streamgp.learners.gp_regressor",
    "InteractiveLoop": "streamgp.interactive",
    "InteractiveResult": "streamgp.evaluate",
    "KeyedLoops": "streamgp.interactive",
    "NotPositiveDefiniteError": "streamgp.gp.cholesky",
    "OnlineForestClassifier": "streamgp.learners.forest",
    "OnlineGradientBoostingClassifier": "streamgp.learners.boosting",
    "PoolSampler": "streamgp.query.pool",
    "PrivilegedGPClassifier": "streamgp.learners.privileged_gp",
    "SimulatedAnnotator": "streamgp.simulation",
    "SimulatedMeasurer": "streamgp.simulation",
    "SkepticalClassifier": "streamgp.query.skeptical_classifier",
    "SkepticalRegressor": "streamgp.query.skeptical_regressor",
    "TemporalFilter": "streamgp.query.temporal",
    "TiredAnnotator": "streamgp.simulation",
    "active_learning_rounds": "streamgp.pool_learning",
    "interactive_val_score": "streamgp.evaluate",
    "isgp": "streamgp.presets",
}
_MODULES = ("budgets", "datasets", "kernels", "metrics", "query", "windows")

__all__ = [
    "AnnotatorPanel",
    "ConfidenceBoostingClassifier",
    "Decision",
    "DriftTest",
    "EnsembleGPClassifier",
    "EnsembleGPRegressor",
    "GPClassifier",
    "GPRegressor",
    "InteractiveLoop",
    "InteractiveResult",
    "KeyedLoops",
    "NotPositiveDefiniteError",
    "OnlineForestClassifier",
    "OnlineGradientBoostingClassifier",
    "PoolSampler",
    "Posterior",
    "PrivilegedGPClassifier",
    "SimulatedAnnotator",
    "SimulatedMeasurer",
    "SkepticalClassifier",
    "SkepticalRegressor",
    "TemporalFilter",
    "TiredAnnotator",
    "active_learning_rounds",
    "budgets",
    "datasets",
    "interactive_val_score",
    "isgp",
    "kernels",
    "metrics",
    "query",
    "windows",
]


if not TYPE_CHECKING:  # to type checkers, every name would exist

    def __getattr__(name: str) -> object:
        if name in _HOMES:
            return getattr(importlib.import_module(_HOMES[name]), name)
        if name in _MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
