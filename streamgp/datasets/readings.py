"""Recorded sensor logs included in the package, row by row."""

from __future__ import annotations

import csv
import gzip
import importlib.resources
import io
from collections.abc import Iterator
from typing import Any

from streamgp.base import FeatureName


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
