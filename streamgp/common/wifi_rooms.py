"""The recorded WiFi log that comes with the package, row by row."""

from __future__ import annotations

import csv
import gzip
import importlib.resources
import io
from collections.abc import Iterator
from typing import Any

from streamgp.base import FeatureName


def wifi_rooms() -> Iterator[tuple[dict[FeatureName, Any], int]]:
    """Yield the readings in recorded order: signal strengths in dBm by station, and the room.

    Examples
    --------
    >>> x, room = next(wifi_rooms())
    >>> x["wap1"], room
    (-64.0, 1)

    """
    packed = importlib.resources.files("streamgp") / "data" / "wifi_rooms.csv.gz"
    text = gzip.decompress(packed.read_bytes()).decode("ascii")
    for row in csv.DictReader(io.StringIO(text)):
        room = int(row.pop("room"))
        yield {name: float(level) for name, level in row.items()}, room
