"""The WiFi rooms scenario: five learners, one log, one careless annotator.

`streamgp demo` shows it once, `benchmarks.wifi` repeats it over several seeds.

"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click
from river.forest import AMFClassifier, ARFClassifier

from connectors.storage.snapshots import StateError, write_snapshot
from streamgp.apps.console import tell
from streamgp.apps.replay.engine import EventSource, play
from streamgp.base import Features
from streamgp.datasets import WiFiRooms
from streamgp.interactive import Event, InteractiveLoop
from streamgp.learners.gp_classifier import GPClassifier
from streamgp.presets import isgp
from streamgp.query import AlwaysChallenge, NeverChallenge, SkepticalClassifier
from streamgp.report.charts import Curve
from streamgp.report.tables import Row
from streamgp.simulation import SimulatedAnnotator

ERROR_RATE = 0.2
ROOMS = (1, 2, 3, 4)

# River's two forests were the strongest of its classifiers here (mean accuracy of six seeds):
# AMF .94 with 470 labels, ARF .90 with 320, softmax regression .89 with 400, Hoeffding tree .79
# with 320. Nearest neighbours reached .95 to .97 in four of the seeds, .25 and .64 in the others,
# naive Bayes .25 throughout: sure of the first room, they stop asking before the second.
# None has a temporal filter: it would hide most of what the answers and challenges do to a learner.
# All scale by the first events, so that learners of one kind differ in their challenges only.
LEARNERS: Mapping[str, Callable[[int], SkepticalClassifier]] = {
    "skeptical GP": lambda seed: isgp(seed=seed).clone({"temporal": None, "rescale": False}),
    "GP, never challenging": lambda seed: SkepticalClassifier(
        GPClassifier(), challenge=NeverChallenge(), seed=seed
    ),
    "GP, always challenging": lambda seed: SkepticalClassifier(
        GPClassifier(), challenge=AlwaysChallenge(), seed=seed
    ),
    "skeptical AMF (River)": lambda seed: SkepticalClassifier(AMFClassifier(seed=seed), seed=seed),
    "skeptical ARF (River)": lambda seed: SkepticalClassifier(ARFClassifier(seed=seed), seed=seed),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerRun:
    """One learner's line of the table and its learning curve."""

    row: Row
    curve: Curve
    interrupted: bool


def room_events(n_events: int | None = None) -> list[Event]:
    """Return the log as events, one a second, with their truth; all, or the first ones.

    Examples
    --------
    >>> event = room_events(1)[0]
    >>> event.event_id, event.x["wap1"], event.truth, event.occurred_at
    ('1', -64.0, 1, 1.0)

    """
    return [
        Event(event_id=str(i), x=x, occurred_at=float(i), truth=room)
        for i, (x, room) in enumerate(WiFiRooms().take(2000 if n_events is None else n_events), 1)
    ]


def run_learners(
    seed: int = 1,
    *,
    learners: Mapping[str, Callable[[int], SkepticalClassifier]] = LEARNERS,
    n_events: int | None = None,
    on_progress: Callable[[str, float], None] | None = None,
) -> list[LearnerRun]:
    """Let every learner play through the log with the same annotator.

    Parameters
    ----------
    seed
        Seed of the annotator and of every learner.
    learners
        What builds each learner from the seed, by name.
    n_events
        Number of readings to play; None for all 2000.
    on_progress
        Called for every event with the learner's name and the share of all work done.

    Returns
    -------
    One run per learner; fewer if the user interrupted, the last of them then incomplete.

    Examples
    --------
    >>> runs = run_learners(seed=1, n_events=50)
    >>> [run.row.name for run in runs][:2], runs[0].row.accuracy
    (['skeptical GP', 'GP, never challenging'], 1.0)

    """
    events = room_events(n_events)
    runs: list[LearnerRun] = []
    for i, (name, build) in enumerate(learners.items()):

        def on_event(n: int, name: str = name, before: int = i * len(events)) -> None:
            if on_progress is not None:
                on_progress(name, (before + n) / (len(learners) * len(events)))

        played = play(
            InteractiveLoop(build(seed)),
            EventSource(events),
            SimulatedAnnotator(error_rate=ERROR_RATE, classes=ROOMS, seed=seed),
            on_event=on_event,
        )
        interrupted = played.result.interrupted
        curve = played.points.curve(name)
        runs.append(LearnerRun(row=played.row(name), curve=curve, interrupted=interrupted))
        if interrupted:
            break
    return runs


# --- The recorded WiFi log as a file of one's own: `rooms.csv`, with times and named rooms.


ROOM_NAMES = ("kitchen", "hall", "study", "bedroom")
"""What the rooms 1 to 4 of the log are called."""
STEP_S = 60
"""Seconds from one reading to the next; the recording does not tell them."""
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
    for x, room in WiFiRooms():
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
    """Write the log to a file, or to standard output for `-`, and say whose data it is.

    Raises
    ------
    click.ClickException
        If it cannot be written, or the file is there and holds something else.

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
            # It may be a recording of theirs, which cannot be restored.
            if path.read_bytes() != data:
                raise click.ClickException(
                    f"{path} is there and holds something else; name another file"
                )
        elif path.exists():  # a device or a pipe
            path.write_bytes(data)
        else:
            write_snapshot(path, data, mode=0o666)  # public data
    except StateError as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror or error}") from None
