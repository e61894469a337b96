"""Query strategies, challenge rules and budgets, and the learners around them.

`criteria` measure, `strategies` decide, `budgets` limit; `SkepticalClassifier` and
`SkepticalRegressor` put them around a learner. A module is loaded when one of its names is first
used, since rules load quickly and learners do not.

"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from streamgp.common.renames import current_name

if TYPE_CHECKING:
    from streamgp.base import Budget as Budget
    from streamgp.query.budgets import *  # noqa: F403
    from streamgp.query.equal_error import *  # noqa: F403
    from streamgp.query.retrospective import *  # noqa: F403
    from streamgp.query.skeptical_classifier import *  # noqa: F403
    from streamgp.query.skeptical_regressor import *  # noqa: F403
    from streamgp.query.strategies import *  # noqa: F403

# Their `__all__` lists are the public names of this package; what is slow to load comes last.
_MODULES = (
    "strategies",
    "equal_error",
    "retrospective",
    "budgets",
    "skeptical_classifier",
    "skeptical_regressor",
)
_RENAMED = {"ReservoirAsk": "RecentEventsAsk"}


if not TYPE_CHECKING:  # to type checkers, every name would exist

    def __getattr__(name: str) -> object:
        if name == "__all__":
            return __dir__()
        if name == "Budget":
            return importlib.import_module("streamgp.base").Budget
        name = current_name(__name__, name, _RENAMED)
        # Names of modules begin with a small letter, and are found when imported.
        for module in _MODULES if name[:1].isupper() else ():
            loaded = importlib.import_module(f"{__name__}.{module}")
            if name in loaded.__all__:
                return getattr(loaded, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    modules = [importlib.import_module(f"{__name__}.{module}") for module in _MODULES]
    names = {"Budget", *(name for module in modules for name in module.__all__)}
    return sorted(names, key=lambda name: (not name.isupper(), name))
