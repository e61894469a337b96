"""What is counted of a replay, also of one that was cut and taken up again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest

from streamgp import isgp
from streamgp.apps.replay import engine
from streamgp.apps.replay.demo import room_events
from streamgp.apps.replay.engine import CountingSink, EventSource, Played, Replay
from streamgp.interactive import (
    Event,
    Input,
    KeyedLoops,
    Message,
    Rejected,
    SimulatedAnnotator,
)
from streamgp.interactive.people import People
from streamgp.simulation import AnnotatorPanel, AnswerQueue

EVENTS = [
    Event(
        event_id=e.event_id, key="ab"[i // 10 % 2], x=e.x, occurred_at=e.occurred_at, truth=e.truth
    )
    for i, e in enumerate(room_events(1200)[300:])
]


class Recorder:
    """A sink that keeps everything."""

    def __init__(self) -> None:
        self.kept: list[Input | Message] = []

    def send(self, message: Input | Message, *, cause: object = None) -> None:  # noqa: ARG002
        self.kept.append(message)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def recorded() -> tuple[Played, list[Input | Message]]:
    """A replay, and all that was counted in it, in order."""
    recorder = Recorder()
    replay = Replay(
        KeyedLoops(isgp(seed=1)),
        EventSource(EVENTS),
        SimulatedAnnotator(error_rate=0.2, decline_rate=0.1, seed=1),
        recorder,
    )
    played = replay.run(on_event=lambda n: recorder.kept.append(EVENTS[n - 1]))
    return played, recorder.kept


def tell(counter: CountingSink, messages: Iterable[Input | Message]) -> None:
    for message in messages:
        if isinstance(message, Event):
            counter.event(message)
        else:
            counter.send(message)


@pytest.mark.parametrize("cut", [0, 1, 500, 1000])
def test_cut_anywhere_counts_the_same_of_a_run(
    recorded: tuple[Played, list[Input | Message]], cut: int
) -> None:
    played, kept = recorded
    assert played.statistics.n_challenges > 10
    assert len(kept) > 1000
    first, second = CountingSink(), CountingSink()
    tell(first, kept[:cut])
    second.load_state(json.loads(json.dumps(first.state(), allow_nan=False)))
    for message in kept[:cut]:
        if isinstance(message, Event):
            second.see(message)
    tell(second, kept[cut:])
    assert second.statistics.state() == played.statistics.state()
    assert second.points.summary() == played.points.summary()
    assert list(second.by_key) == list(played.by_key) == ["a", "b"]
    for key, statistics in played.by_key.items():
        assert second.by_key[key].summary() == statistics.summary()


@pytest.mark.parametrize(
    ("horizon_s", "delay", "jitter_s", "max_keys"), [(40.0, 15.0, 60.0, None), (5.0, 4.0, 0.0, 1)]
)
def test_truths_beyond_the_horizon_are_forgotten_and_nothing_else_changes(
    horizon_s: float,
    delay: float,
    jitter_s: float,
    max_keys: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = Random(1)
    log = [replace(e, occurred_at=e.occurred_at + rng.uniform(0.0, jitter_s)) for e in EVENTS]

    def run() -> tuple[Played, list[Input | Message]]:
        recorder = Recorder()
        loops = KeyedLoops(
            isgp(seed=1),
            answer_horizon_s=horizon_s,
            expires_after_s=delay + 5.0,
            people=People(overlap=0.3),
            max_keys=max_keys,
        )
        annotators = AnnotatorPanel(
            [
                SimulatedAnnotator(error_rate=0.2, delay=delay, seed=1, name="ann"),
                SimulatedAnnotator(error_rate=0.1, delay=delay / 4, seed=2, name="bob"),
                SimulatedAnnotator(delay=3.0 * delay, seed=3, name="too late"),
            ],
            seed=1,
        )
        replay = Replay(loops, EventSource(log), annotators, recorder)
        return replay.run(on_event=lambda n: recorder.kept.append(log[n - 1])), recorder.kept

    played, kept = run()
    found = played.statistics
    whole = CountingSink(asks_twice=True)
    tell(whole, kept)
    expected = whole.statistics
    assert found.n_challenges > 10
    assert found.n_second > 5
    assert found.n_expired > 5
    assert found.state() == expected.state()
    assert found.summary() == expected.summary()
    assert found.baselines() == expected.baselines()
    for key, own in played.by_key.items():
        assert own.summary() == whole.by_key[key].summary()
        assert own.baselines() == whole.by_key[key].baselines()
    known = [e for e in log if found.truth_of(e.key, e.event_id) is not None]
    assert found.n_learned <= len(known) < 0.7 * found.n_known
    assert found.n_known == len(log)
    # An annotator who remembers everything answers the same.
    monkeypatch.setattr(engine, "AnswerQueue", lambda who, **_: AnswerQueue(who))
    assert run()[1] == kept


def test_counts_of_keys_add_up_to_those_of_all(
    recorded: tuple[Played, list[Input | Message]],
) -> None:
    played, _ = recorded
    for name in ("n_events", "n_asked", "n_challenges", "n_learned", "n_repaired", "n_declined"):
        parts = [getattr(statistics, name) for statistics in played.by_key.values()]
        assert getattr(played.statistics, name) == sum(parts)


def test_counts_without_a_key_are_those_of_the_others(
    recorded: tuple[Played, list[Input | Message]],
) -> None:
    _, kept = recorded
    counter, others = CountingSink(), CountingSink()
    tell(counter, kept)
    tell(others, (message for message in kept if message.key != "a"))
    own = counter.forget("a")
    assert own is not None
    assert own.n_challenges > 5
    assert counter.forget("a") is None
    left, expected = counter.statistics, others.statistics
    assert left.summary() == expected.summary()
    assert left.annotators.keys() == expected.annotators.keys()
    for name, answers in left.annotators.items():
        assert answers.summary() == pytest.approx(expected.annotators[name].summary(), abs=1e-12)
    assert set(left.confusion.summary()["labels"]) == set(expected.confusion.summary()["labels"])
    for name in ("held", "contested", "pending"):
        assert left.state()[name] == expected.state()[name]
    curve = counter.points.summary()
    assert 0 < curve["n_events"][-1] <= left.n_events
    assert max(curve["n_asked"]) <= left.n_asked
    assert max(curve["n_challenges"]) <= left.n_challenges


def test_counts_of_a_forgotten_key_are_gone() -> None:
    events = [
        Event(event_id=str(n), key="a", x={}, occurred_at=0.0, truth="hall") for n in range(3)
    ]
    counter = CountingSink()
    tell(counter, events)
    counter.forget("a")
    assert counter.statistics.state() == CountingSink().statistics.state()
    counter.see(events[0])  # read again after a restart: of no annotator's
    assert counter.statistics.truth_of("a", "0") is None


def test_rejected_row_counts_for_its_key_though_it_is_the_first() -> None:
    counter = CountingSink()
    rejected = {"subject": "row 1", "fault": "malformed", "reason": "", "at": 0.0}
    tell(counter, [Rejected(key="a", **rejected), Rejected(**rejected)])
    assert {key: statistics.n_rejected for key, statistics in counter.by_key.items()} == {"a": 1}
    assert counter.statistics.n_rejected == 2
