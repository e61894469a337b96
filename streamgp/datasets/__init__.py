"""Example streams: a recorded sensor log and the synthetic classes of the ISGP paper.

The data sets subclass River's, which load scikit-learn and pandas where these are installed; so
they are imported only when one is accessed.

"""

from __future__ import annotations

import csv
import gzip
import importlib.resources
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamgp.base import FeatureName
    from streamgp.datasets.river_datasets import GaussianClasses, WiFiRooms

__all__ = ["GaussianClasses", "WiFiRooms"]


def wifi_readings() -> Iterator[tuple[dict[FeatureName, Any], int]]:
    """Yield the rows of `WiFiRooms`: signal strengths in dBm, and the room, from 1 to 4.

    Examples
    --------
    >>> x, room = next(wifi_readings())
    >>> x["wap1"], room
    (-64.0, 1)

    """
    packed = importlib.resources.files("streamgp") / "data" / "wifi_rooms.csv.gz"
    text = gzip.decompress(packed.read_bytes()).decode("ascii")
    for row in csv.DictReader(io.StringIO(text)):
        room = int(row.pop("room"))
        yield {name: float(level) for name, level in row.items()}, room


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(importlib.import_module("streamgp.datasets.river_datasets"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
