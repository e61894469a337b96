"""The raw demo: a synthetic walk, its acceleration in windows, and questions about some windows.

Nothing is recorded: standing, walking, cycling and riding a bus are simulated from gravity, steps,
pedals, an engine, and noise, so that each has its own spectrum and no two stretches are alike.

"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from streamgp.apps.replay.engine import EventSource, play
from streamgp.interactive.event_windows import EventWindows
from streamgp.interactive.loop import InteractiveLoop
from streamgp.interactive.messages import Event, Input, LabelRequest, Message, Prediction
from streamgp.presets import isgp
from streamgp.report.tables import table
from streamgp.simulation import SimulatedAnnotator

RATE_HZ = 50
WINDOW_S = 5.0
ERROR_RATE = 0.1
ACTIVITIES = ("standing", "walking", "cycling", "bus")
START = 1_790_000_000.0
_STRETCH_S = (25.0, 45.0)
_GRAVITY = 9.81
_PER_LINE = 60
_FEATURES = ("basic", "peak_to_peak", "dominant_frequency", "dominant_share", "spectral_entropy")


def walk_windows(label: str, **options: object) -> EventWindows:
    """Return the windows of the demo; `label` and `options` are as in `EventWindows`."""
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


@dataclass(slots=True)
class _Timeline:
    """Predictions, truths and questions, in the order of the windows."""

    predicted: list[str]
    asked: list[str]
    ids: dict[str, int]

    def send(self, message: Input | Message, *, cause: object = None) -> None:  # noqa: ARG002
        """Record a message."""
        if isinstance(message, Prediction):
            self.ids[message.event_id] = len(self.predicted)
            self.predicted.append(str(message.y or "·")[0])
            self.asked.append(" ")
        elif isinstance(message, LabelRequest):
            self.asked[self.ids[message.event_id]] = "?"

    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def raw_demo(seed: int = 1, *, n_windows: int = 240) -> str:
    """Run a walk and return the text to show.

    Examples
    --------
    >>> print(raw_demo(n_windows=30).splitlines()[0])
    7501 rows of acceleration, 50 a second, make 30 windows of 5 s (40 features).

    """
    windows = walk_windows("truth")
    events: list[Event] = []
    for at, x, activity in walk(seed):
        row = Event(event_id="", x=x, occurred_at=at, truth=activity)
        events += windows.take(row, now=0.0)
        if len(events) == n_windows:
            break
    timeline = _Timeline([], [], {})
    played = play(
        InteractiveLoop(isgp(seed=seed)),
        EventSource(events),
        SimulatedAnnotator(error_rate=ERROR_RATE, classes=ACTIVITIES, seed=seed),
        sink=timeline,
    )
    truth = [str(event.truth)[0] for event in events]
    lines = [
        f"{windows.n_rows} rows of acceleration, {RATE_HZ} a second, make {len(events)} windows of "
        f"{WINDOW_S:.0f} s ({len(events[0].x)} features).",
        f"Labels come from an annotator who is wrong {ERROR_RATE:.0%} of the time.",
        "",
        table([played.row("skeptical GP")]).rstrip("\n"),
        "",
        "s standing, w walking, c cycling, b bus; ? a label was asked for",
    ]
    for i in range(0, len(events), _PER_LINE):
        for name, letters in (
            ("truth", truth),
            ("predicted", timeline.predicted),
            ("asked", timeline.asked),
        ):
            lines.append(f"{name:<10}{''.join(letters[i : i + _PER_LINE])}".rstrip())
        lines.append("")
    return "\n".join(lines[:-1])
