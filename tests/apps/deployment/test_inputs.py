"""Reports on waiting inputs, from repeated looks at them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from connectors.memory import MemoryTopics
from connectors.topics import ALL_TOPICS, Backlog, Obstacle, Place
from streamgp.apps.deployment.contents import InputProgress

NAMES = {name: f"rooms.{name}" for name in ALL_TOPICS}
EVENTS: Place = ("events", 2)


class Told(MemoryTopics):
    """Topics that report what they are told to."""

    n_workers = 1
    holds_records = True
    now: Mapping[Place, Backlog]
    held: Mapping[Place, Obstacle]

    def __init__(self) -> None:
        super().__init__(4)
        self.now, self.held = {}, {}

    def backlog(self, group: str) -> dict[Place, Backlog]:  # noqa: ARG002
        return dict(self.now)

    def obstacles(self, places: Iterable[Place]) -> dict[Place, Obstacle]:
        return {place: self.held[place] for place in places if place in self.held}

    def readable(self, positions: Mapping[Place, int]) -> set[Place]:
        return set(positions) if self.holds_records else set()

    def n_members(self, group: str) -> int:  # noqa: ARG002
        return self.n_workers


class Looks:
    """Looks at topics with a clock that is set."""

    def __init__(self, position: int, n_waiting: int) -> None:
        self.topics = Told()
        self.at = 0.0
        self.put(position, n_waiting)
        self.inputs = InputProgress(
            self.topics, NAMES, "rooms", monotonic=lambda: self.at, clock=lambda: 1e9 + self.at
        )

    def put(self, position: int, n_waiting: int) -> None:
        self.topics.now = {
            EVENTS: Backlog(position=position, end=position + n_waiting, n_waiting=n_waiting)
        }

    def after(self, seconds: float) -> list[str]:
        self.at += seconds
        self.inputs.look()
        return self.inputs.troubles()


def test_inputs_that_move_on_are_no_trouble_however_many_wait() -> None:
    looks = Looks(0, 100)
    assert not looks.inputs.is_settled
    for position in range(1, 20):
        looks.put(position, 100)
        assert looks.after(10.0) == []
        assert looks.inputs.is_settled


def test_inputs_without_progress_are_reported_after_half_a_minute() -> None:
    looks = Looks(7, 3)
    assert looks.after(29.0) == []
    looks.put(7, 5)  # more come, none is processed
    assert looks.after(1.0) == [
        "5 records waiting in topic rooms.events partition 2, without progress for 30 s: no open "
        "transaction holds them back; see the logs of the workers"
    ]
    looks.put(8, 4)
    assert looks.after(1.0) == []


def test_what_an_aborted_transaction_has_left_is_no_trouble() -> None:
    looks = Looks(7, 1)
    looks.topics.holds_records = False
    assert looks.after(60.0) == []
    looks.topics.n_workers = 0
    assert looks.after(60.0) == []


def test_a_transaction_that_is_open_for_long_is_reported_at_once() -> None:
    looks = Looks(7, 3)
    looks.topics.held = {EVENTS: Obstacle(offset=7, since=1e9 - 20.0, text="a transaction")}
    assert looks.after(1.0) == []
    assert looks.after(9.0) == [
        "3 records waiting in topic rooms.events partition 2, without progress for 30 s: "
        "a transaction"
    ]


def test_records_that_were_deleted_unread_are_counted() -> None:
    looks = Looks(7, 0)
    looks.topics.now = {EVENTS: Backlog(position=7, end=12, n_waiting=0, n_missed=5)}
    assert looks.after(0.0) == [
        "5 records of topic rooms.events partition 2 deleted before they were read "
        "(offsets 7 to 11)"
    ]
