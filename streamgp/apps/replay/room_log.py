"""The recorded WiFi log as a CSV file, `rooms.csv`, with times and named rooms.

Imports neither River nor a learner, so that writing the log is fast.

"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from connectors.storage.snapshots import StateError, state_error, write_snapshot
from streamgp.apps.console import tell
from streamgp.base import Features
from streamgp.datasets.readings import wifi_readings

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
