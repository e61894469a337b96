"""The demos in a terminal: five learners on the WiFi rooms, or one on the windows of a raw walk.

`streamgp demo` shows the rooms once, `benchmarks.wifi` repeats them over several seeds; all five
learners have the same careless annotator.

"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice

from river.forest import AMFClassifier, ARFClassifier

from streamgp.apps.replay.demo_data import ACTIVITIES, RATE_HZ, WINDOW_S, walk, walk_windows
from streamgp.apps.replay.engine import EventSource, Played, Replay
from streamgp.datasets.readings import wifi_readings
from streamgp.interactive import Event, InteractiveLoop
from streamgp.interactive.messages import Input, LabelRequest, Message, Prediction
from streamgp.learners.gp_classifier import GPClassifier
from streamgp.presets import isgp
from streamgp.query import AlwaysChallenge, NeverChallenge, SkepticalClassifier
from streamgp.report.tables import table
from streamgp.simulation import SimulatedAnnotator

ERROR_RATE = 0.2
ROOMS = (1, 2, 3, 4)

# River's two forests were the strongest of its classifiers here (mean accuracy of six seeds): AMF
# .94 with 470 labels, ARF .90 with 320, softmax regression .89 with 400, Hoeffding tree .79 with
# 320. Nearest neighbours reached .95 to .97 with four of the seeds, .25 and .64 with the others,
# naive Bayes .25 throughout: certain of the first room, they stop asking before the second one.
# None has a temporal filter, which would hide most of the effect of answers and challenges on a
# learner. All scale by the first events, so that learners of one kind differ only in their
# challenges.
LEARNERS: Mapping[str, Callable[[int], SkepticalClassifier]] = {
    "skeptical GP": lambda seed: isgp(seed=seed, temporal=None, rescale=False),
    "GP, never challenging": lambda seed: SkepticalClassifier(
        GPClassifier(), challenge=NeverChallenge(), seed=seed
    ),
    "GP, always challenging": lambda seed: SkepticalClassifier(
        GPClassifier(), challenge=AlwaysChallenge(), seed=seed
    ),
    "skeptical AMF (River)": lambda seed: SkepticalClassifier(AMFClassifier(seed=seed), seed=seed),
    "skeptical ARF (River)": lambda seed: SkepticalClassifier(ARFClassifier(seed=seed), seed=seed),
}


def room_events(n_events: int | None = None) -> list[Event]:
    """Return the log as events, one a second, with their truth; all of them, or the first ones.

    Examples
    --------
    >>> event = room_events(1)[0]
    >>> event.event_id, event.x["wap1"], event.truth, event.occurred_at
    ('1', -64.0, 1, 1.0)

    """
    return [
        Event(event_id=str(i), x=x, occurred_at=float(i), truth=room)
        for i, (x, room) in enumerate(islice(wifi_readings(), n_events), 1)
    ]


def run_learners(
    seed: int = 1,
    *,
    learners: Mapping[str, Callable[[int], SkepticalClassifier]] = LEARNERS,
    n_events: int | None = None,
    on_progress: Callable[[str, float], None] | None = None,
) -> dict[str, Played]:
    """Run every learner through the log with the same annotator.

    Parameters
    ----------
    on_progress
        Called for every event with the learner's name and the share of all work done.

    Returns
    -------
    The run of each learner; fewer if the user interrupted, the last of them then incomplete.

    Examples
    --------
    >>> runs = run_learners(seed=1, n_events=50)
    >>> list(runs)[:2], runs["skeptical GP"].statistics.accuracy
    (['skeptical GP', 'GP, never challenging'], 1.0)

    """
    events = room_events(n_events)
    runs: dict[str, Played] = {}
    for i, (name, build) in enumerate(learners.items()):

        def on_event(n: int, name: str = name, before: int = i * len(events)) -> None:
            if on_progress is not None:
                on_progress(name, (before + n) / (len(learners) * len(events)))

        runs[name] = Replay(
            InteractiveLoop(build(seed)),
            EventSource(events),
            SimulatedAnnotator(error_rate=ERROR_RATE, classes=ROOMS, seed=seed),
        ).run(on_event=on_event)
        if runs[name].result.interrupted:
            break
    return runs


# --- The walk, in windows, with questions about some of them.


_WALK_ERROR_RATE = 0.1
_PER_LINE = 60


@dataclass(slots=True)
class _Timeline:
    """Predictions, truths and questions, in the order of the windows."""

    predicted: list[str]
    asked: list[str]
    ids: dict[str, int]

    def send(self, message: Input | Message, *, cause: object = None) -> None:  # noqa: ARG002
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
    played = Replay(
        InteractiveLoop(isgp(seed=seed)),
        EventSource(events),
        SimulatedAnnotator(error_rate=_WALK_ERROR_RATE, classes=ACTIVITIES, seed=seed),
        timeline,
    ).run()
    truth = [str(event.truth)[0] for event in events]
    lines = [
        f"{windows.n_rows} rows of acceleration, {RATE_HZ} a second, make {len(events)} windows of "
        f"{WINDOW_S:.0f} s ({len(events[0].x)} features).",
        f"Labels come from an annotator who is wrong {_WALK_ERROR_RATE:.0%} of the time.",
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
