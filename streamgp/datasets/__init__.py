"""Example streams: a recorded sensor log and the synthetic classes of the ISGP paper.

The data sets subclass River's, which load scikit-learn and pandas where these are installed; so
they are imported only when one is accessed.

"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamgp.datasets.river_datasets import GaussianClasses, WiFiRooms

__all__ = ["GaussianClasses", "WiFiRooms"]


if not TYPE_CHECKING:  # to type checkers, every name would exist

    def __getattr__(name: str) -> object:
        if name in __all__:
            return getattr(importlib.import_module("streamgp.datasets.river_datasets"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
