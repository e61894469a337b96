"""What is counted of a replay, also of one that was cut and taken up again."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from streamgp import isgp
from streamgp.cli.rooms import room_events
from streamgp.cli.scenario import CountingSink, EventSource, Played, play
from streamgp.interactive import Event, Input, KeyedLoops, Message, SimulatedAnnotator

EVENTS = [
    Event(event_id=e.event_id, key="ab"[i % 2], x=e.x, occurred_at=e.occurred_at, truth=e.truth)
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
    played = play(
        KeyedLoops(isgp(seed=1)),
        EventSource(EVENTS),
        SimulatedAnnotator(error_rate=0.2, decline_rate=0.1, seed=1),
        sink=recorder,
        on_event=lambda n: recorder.kept.append(EVENTS[n - 1]),
    )
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
    assert played.tally.n_challenges > 10
    assert len(kept) > 1000
    first, second = CountingSink(), CountingSink()
    tell(first, kept[:cut])
    second.load_state(json.loads(json.dumps(first.state(), allow_nan=False)))
    for message in kept[:cut]:
        if isinstance(message, Event):
            second.see(message)
    tell(second, kept[cut:])
    assert second.tally.state() == played.tally.state()
    assert second.points.summary() == played.points.summary()
    assert list(second.by_key) == list(played.by_key) == ["a", "b"]
    for key, tally in played.by_key.items():
        assert second.by_key[key].summary() == tally.summary()


def test_counts_of_keys_add_up_to_those_of_all(
    recorded: tuple[Played, list[Input | Message]],
) -> None:
    played, _ = recorded
    for name in ("n_events", "n_asked", "n_challenges", "n_learned", "n_repaired", "n_declined"):
        parts = [getattr(tally, name) for tally in played.by_key.values()]
        assert getattr(played.tally, name) == sum(parts)
