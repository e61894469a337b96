"""Live stream of the demo, for people who answer: readings arrive while the page is open.

The topics are in memory; a worker and a producer run beside the page in their own threads. The
producer waits while some questions are open, so that a newcomer is neither rushed nor bored.

"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice

from connectors.annotation.feed import TopicFeed
from connectors.annotation.inbox import AnnotationInbox
from connectors.memory import MemoryTopics
from connectors.wire.codec import decode
from connectors.wire.outbound import Outbound
from connectors.worker.settings import LoopSettings, WorkerSettings
from connectors.worker.worker import Worker
from streamgp.apps.replay.demo_data import (
    RATE_HZ,
    WINDOW_S,
    named_readings,
    walk,
    walk_windows,
)
from streamgp.base import Features
from streamgp.interactive.messages import Event, Input, Message, Prediction
from streamgp.learners.gp_classifier import GPClassifier
from streamgp.query.skeptical_classifier import SkepticalClassifier

N_TAUGHT = 4
"""Number of labelled readings of each room, with which a newcomer can compare others."""
WARM_UP = 20
MOST_OPEN = 3
PACE_S = 0.15
"""Seconds between two readings without a question."""
GAP_S = 3.0
"""Seconds between two questions while one is already waiting."""
WINDOW = 50
"""Number of predictions whose accuracy is reported."""
# Chosen from 240 combinations (40 seeds, 3 to 5 taught labels per room, 2 warm-ups): of 57 single
# wrong answers to questions 1 to 19, three for each question with all others right, 55 are
# challenged, and no taught label is.
SEED = 39
_GROUP = "demo"
_POINT_EVERY = 10
_PATIENCE_S = 0.05
_HOURS_S = 14_400.0
"""How long ago a walk begins: its rows are sent faster than in real time."""


def shuffled() -> Iterator[tuple[Features, str, bool]]:
    """Yield WiFi readings in random order, with their room and whether the label is volunteered.

    Volunteered ones come first.

    Examples
    --------
    >>> readings = list(shuffled())
    >>> len(readings), sum(told for _, _, told in readings)
    (2000, 16)

    """
    readings = list(named_readings())
    random.Random(SEED).shuffle(readings)
    taught: Counter[str] = Counter()
    told: list[tuple[Features, str]] = []
    untold: list[tuple[Features, str]] = []
    for x, room in readings:
        taught[room] += 1
        (told if taught[room] <= N_TAUGHT else untold).append((x, room))
    yield from ((x, room, True) for x, room in told)
    yield from ((x, room, False) for x, room in untold)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Events that lead to one prediction: a reading, or the raw rows of a window.

    Parameters
    ----------
    told
        Whether the label is volunteered.

    """

    event_id: str
    events: Sequence[Event]
    truth: str
    told: bool


def readings() -> Iterator[Step]:
    """Yield the readings of `shuffled` with the current time."""
    for n, (x, room, told) in enumerate(shuffled(), 1):
        y = room if told else None
        event = Event(event_id=str(n), x=x, occurred_at=time.time(), truth=room, y=y)
        yield Step(event_id=str(n), events=[event], truth=room, told=told)


def rows_of_a_walk() -> Iterator[Step]:
    """Yield the raw rows of a walk; the first windows of each activity carry their label.

    The first row of the next window closes a window, and is sent with it.
    """
    start = WINDOW_S * (time.time() // WINDOW_S) - _HOURS_S
    n_rows, taught = round(RATE_HZ * WINDOW_S), Counter[str]()
    rows = walk(SEED, start)
    first = next(rows)
    for n in count():
        window = [first, *islice(rows, n_rows - 1)]
        first = next(rows)
        labels = Counter(activity for _, _, activity in window)
        [(activity, n_labels)] = labels.most_common(1)
        told = n_labels == n_rows and taught[activity] < N_TAUGHT
        taught[activity] += told
        y = activity if told else None
        events = [Event(event_id=f"{at:.2f}", x=x, occurred_at=at, y=y) for at, x, _ in window]
        # Without its label, which belongs to the next window; this one only ends there.
        end = Event(event_id=f"{first[0]:.2f}", x=first[1], occurred_at=first[0])
        event_id = f"{start + n * WINDOW_S:.0f}"
        yield Step(event_id=event_id, events=[*events[n > 0 :], end], truth=activity, told=told)


class DemoStream:
    """A worker and a producer on topics in memory.

    Parameters
    ----------
    raw
        Whether raw rows of a walk are sent instead of WiFi readings.
    pace_s, gap_s
        Seconds between two readings, and between two questions while one is waiting.

    Attributes
    ----------
    trouble
        Why a thread has ended, None while both run.

    """

    # _truth    the room of each reading, by event id
    # _right    whether each of the last predictions was right
    # _curve    numbers of readings, with the accuracy over the most recent ones
    # _raw      whether raw rows are sent
    # _n        number of predictions
    def __init__(self, *, raw: bool = False, pace_s: float = PACE_S, gap_s: float = GAP_S) -> None:
        self._raw = raw
        self._n = 0
        self.topics = MemoryTopics()
        self.trouble: str | None = None
        self._pace_s = pace_s
        self._gap_s = gap_s
        self._truth: dict[str, str] = {}
        self._right: deque[bool] = deque(maxlen=WINDOW)
        self._curve: list[tuple[int, float]] = []
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._guarded, args=(task,), name=name, daemon=True)
            for name, task in (("demo-worker", self._work), ("demo-producer", self._feed))
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop both threads, if they were started: the page may have failed before."""
        self._stopping.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        self.topics.close()

    def accuracy(self) -> list[tuple[int, float]]:
        """Return pairs: number of readings, and accuracy over the last fifty of them."""
        return self._curve

    def truth(self, event_id: str) -> str | None:
        """Return the room of a reading, None if none with this id has been sent."""
        return self._truth.get(event_id)

    def _guarded(self, task: Callable[[], None]) -> None:
        try:
            task()
        except Exception as error:  # reported by the program that serves the page
            self.trouble = f"the demo's stream has ended: {type(error).__name__}: {error}"

    def _work(self) -> None:
        model = SkepticalClassifier(GPClassifier(max_points=500), warm_up=WARM_UP, seed=SEED)
        windows = walk_windows("y", keep_changes=True) if self._raw else None
        Worker(
            self.topics,
            LoopSettings(model=model, keyed=False, windows=windows),
            WorkerSettings(group=_GROUP, instance="demo"),
        ).run(self._stopping.is_set)

    def _feed(self) -> None:
        outbound = Outbound("/streamgp/demo", keyed=False)
        inbox = AnnotationInbox(is_for_reading=True)
        questions = TopicFeed(self.topics, keyed=False)
        predictions = self.topics.reader(["predictions"])
        writer = self.topics.writer("demo")
        for step in (rows_of_a_walk if self._raw else readings)():
            self._truth[step.event_id] = step.truth
            for event in step.events:
                writer.send(outbound.message(event, 0))
            writer.flush()
            while not (found := predictions.poll(_PATIENCE_S)):
                if self._stopping.is_set():
                    return
            asked = [self._judge(decode(record.value)) for record in found if record.value]
            asked_at = time.monotonic()
            if not any(asked):
                self._stopping.wait(0.0 if step.told else self._pace_s)
            while not self._stopping.is_set():
                questions.read_into(inbox, _PATIENCE_S)
                n_open = inbox.n_open(time.time(), None)
                is_early = any(asked) and time.monotonic() - asked_at < self._gap_s
                if n_open == 0 or (n_open < MOST_OPEN and not is_early):
                    break
            if self._stopping.is_set():
                return

    def _judge(self, prediction: Message | Input) -> bool:
        """Record a prediction; return whether its event is asked about."""
        assert isinstance(prediction, Prediction)  # that topic contains nothing else
        self._right.append(prediction.y == self._truth[prediction.event_id])
        self._n += 1
        n = self._n
        if n % _POINT_EVERY == 0:
            # A new list, as the page may be reading the old one.
            self._curve = [*self._curve, (n, sum(self._right) / len(self._right))]
        return prediction.decision.ask
