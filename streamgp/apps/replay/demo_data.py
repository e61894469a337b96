"""The data of the demos: the recorded WiFi log, also as a CSV file, and a synthetic walk.

The log gets times and names of rooms. The walk is simulated: standing, walking, cycling and riding
a bus, from gravity, steps, pedals, an engine, and noise, so that each has its own spectrum and no
two stretches are alike.

Imports neither numpy nor River, so that writing the log is fast.

"""

from __future__ import annotations

import csv
import io
import math
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from connectors.storage.snapshots import StateError, state_error, write_snapshot
from streamgp.apps.console import tell
from streamgp.base import Features
from streamgp.datasets.readings import wifi_readings

if TYPE_CHECKING:
    from streamgp.interactive.event_windows import EventWindows

ROOM_NAMES = ("kitchen", "hall", "study", "bedroom")
"""Names of the rooms 1 to 4 of the log."""
STEP_S = 60
"""Seconds between readings; the recording has no times."""
STDOUT = Path("-")

ATTRIBUTION = (
    "data: Wireless Indoor Localization by Rajen Bhatt, UCI Machine Learning Repository, 2017, "
    "https://doi.org/10.24432/C51880, CC BY 4.0, https://creativecommons.org/licenses/by/4.0/; "
    "changes: columns and rooms named, times added"
)


def named_readings() -> Iterator[tuple[Features, str]]:
    """Yield the readings in recorded order, each with the name of its room.

    Examples
    --------
    >>> x, room = next(named_readings())
    >>> x["wap1"], room
    (-64.0, 'kitchen')

    """
    for x, room in wifi_readings():
        yield x, ROOM_NAMES[room - 1]


def room_log() -> str:
    """Return the log as CSV.

    Examples
    --------
    >>> print(*room_log().splitlines()[:2], sep="\\n")
    time,wap1,wap2,wap3,wap4,wap5,wap6,wap7,room
    0,-64,-56,-61,-66,-71,-82,-81,kitchen

    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for n, (x, room) in enumerate(named_readings()):
        if n == 0:
            writer.writerow(["time", *x, "room"])
        writer.writerow([STEP_S * n, *(f"{level:.0f}" for level in x.values()), room])
    return text.getvalue()


def write_room_log(path: Path) -> None:
    """Write the log to a file, or to standard output for `-`, and name the source of the data.

    Raises
    ------
    click.ClickException
        If it cannot be written, or the file exists with other contents.

    """
    text = room_log()
    if path == STDOUT:
        if sys.stdout is None:
            raise click.ClickException("standard output is closed; name a file")
        click.echo(text, nl=False)
    else:
        _write(path, text.encode())
        click.echo(f"{text.count(chr(10)) - 1} readings in {len(ROOM_NAMES)} rooms: {path}")
    tell(ATTRIBUTION)


def _write(path: Path, data: bytes) -> None:
    try:
        if path.is_dir():
            raise click.ClickException(f"{path} is a directory; name a file")
        if path.is_file():
            # It may be the user's own recording, which could not be restored.
            if path.read_bytes() != data:
                raise click.ClickException(
                    f"{path} exists and has other content; name another file"
                )
        elif path.exists():  # a device or a pipe
            path.write_bytes(data)
        else:
            write_snapshot(path, data, mode=0o666)  # public data
    except StateError as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(str(state_error(f"cannot write {path}", error))) from None


# --- The walk: its acceleration, fifty times a second, and its windows.


RATE_HZ = 50
WINDOW_S = 5.0
ACTIVITIES = ("standing", "walking", "cycling", "bus")
START = 1_790_000_000.0
_STRETCH_S = (25.0, 45.0)
_GRAVITY = 9.81
_FEATURES = ("basic", "peak_to_peak", "dominant_frequency", "dominant_share", "spectral_entropy")


def walk_windows(label: str, **options: object) -> EventWindows:
    """Return the windows of the demo; `label` and `options` are as in `EventWindows`."""
    from streamgp.interactive.event_windows import EventWindows

    settings = {
        "length_s": WINDOW_S,
        "features": list(_FEATURES),
        "vectors": [["ax", "ay", "az"]],
        "excerpt": True,
        **options,
    }
    return EventWindows(label=label, **settings)  # type: ignore[arg-type]


def walk(seed: int, start: float = START) -> Iterator[tuple[float, dict[str, float], str]]:
    """Yield time, acceleration (metres per square second) and activity, fifty times a second.

    Examples
    --------
    >>> at, x, activity = next(walk(seed=1))
    >>> at, sorted(x), activity in ACTIVITIES
    (1790000000.0, ['ax', 'ay', 'az'], True)

    """
    rng, n, last = random.Random(seed), 0, ""
    while True:
        activity = rng.choice([each for each in ACTIVITIES if each != last])
        last = activity
        pace, strength = rng.uniform(0.9, 1.1), rng.uniform(0.8, 1.2)
        tilt, phase = rng.uniform(-0.3, 0.3), rng.uniform(0.0, 2.0 * math.pi)
        for _ in range(round(RATE_HZ * rng.uniform(*_STRETCH_S))):
            t = n / RATE_HZ
            forward, aside, up = _moved(activity, 2.0 * math.pi * pace * t + phase, rng)
            noise = [rng.gauss(0.0, 0.15) for _ in range(3)]
            x = {
                "ax": _GRAVITY * math.sin(tilt) + strength * forward + noise[0],
                "ay": strength * aside + noise[1],
                "az": _GRAVITY * math.cos(tilt) + strength * up + noise[2],
            }
            yield start + t, {name: round(value, 4) for name, value in x.items()}, activity
            n += 1


def _moved(activity: str, turn: float, rng: random.Random) -> tuple[float, float, float]:
    """Return the acceleration forward, sideways and up; one turn is a second at the usual pace."""
    if activity == "walking":  # two steps a second, each with a hard heel strike
        return (
            0.8 * math.sin(2.0 * turn),
            0.5 * math.sin(turn),
            2.5 * math.sin(2.0 * turn) + math.sin(4.0 * turn),
        )
    if activity == "cycling":  # pedals, and a rough road
        return 0.6 * math.sin(1.2 * turn), 0.9 * math.sin(1.2 * turn + 1.0), rng.gauss(0.0, 0.6)
    if activity == "bus":  # bends, brakes and an engine
        engine = 0.35 * math.sin(14.0 * turn)
        return 0.7 * math.sin(0.15 * turn) + engine, 0.6 * math.sin(0.23 * turn), engine
    return 0.0, 0.0, 0.0
