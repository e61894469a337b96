"""What reaches a desk from the topics."""

from __future__ import annotations

from connectors.annotation.feed import TURN_S, TopicFeed
from connectors.annotation.inbox import AnnotationInbox
from connectors.topics import Outgoing
from connectors.wire.inbound import TakenBack
from connectors.wire.outbound import Outbound
from streamgp.interactive import Answer, LabelledExample
from tests.helpers.deskwork import Clock, Town, label_request
from tests.helpers.messages import answer_to


def answer(event_id: str = "e1") -> Answer:
    return answer_to(label_request(event_id), "den", 1000.0, answer_id=f"{event_id}/a")


def write(town: Town, *messages: object, at: float | None = None) -> None:
    """Write what a worker, an annotator or a vandal writes."""
    town.clock.now = town.clock.now if at is None else at
    outbox = Outbound("/streamgp/test", keyed=True)
    writer = town.topics.writer("test")
    for message in messages:
        record = message if isinstance(message, Outgoing) else outbox.message(message, None)  # type: ignore[arg-type]
        writer.send(record)
    writer.flush()


def read(town: Town, **options: object) -> tuple[AnnotationInbox, list[object]]:
    desk = AnnotationInbox()
    feed = TopicFeed(town.topics, keyed=True, **options)  # type: ignore[arg-type]
    told: list[object] = []
    while not feed.caught_up:
        told += feed.read_into(desk, 0.0)
    feed.close()
    return desk, told


def open_ids(desk: AnnotationInbox) -> list[str]:
    return [question.request.request_id for question in desk.questions(1000.0, "ann")]


def test_what_cannot_be_understood_is_left_out() -> None:
    town = Town()
    bad = [
        Outgoing(topic="requests", key=b"k", value=b"?"),
        Outgoing(topic="requests", key=b"k", value=None),
        Outgoing(topic="answers", key=b"k", value=b"{}"),
        Outgoing(topic="answers", key=b"k", value=None),
        Outgoing(topic="consensus", key=b"k", value=b"[]"),
        Outgoing(topic="consensus", key=b"\xff", value=None),
    ]
    write(town, *bad, label_request())
    desk, told = read(town)
    assert told == [label_request()]
    assert open_ids(desk) == ["e1/label"]


def test_terse_answer_of_another_program_ends_a_question() -> None:
    town = Town()
    terse = Outgoing(topic="answers", key=b"k", value=b'{"event_id": "e1", "y": "den"}')
    write(town, label_request(), at=1000.0)
    write(town, terse, at=1001.0)
    assert open_ids(read(town)[0]) == []


def test_key_that_was_forgotten_begins_anew_under_the_same_ids() -> None:
    town = Town()
    line = LabelledExample(
        event_id="e1", key="k", sequence=1, x={}, y="den", origin="asked", learned_at=1000.0
    )
    write(town, label_request(), answer(), line, at=1000.0)
    write(town, Outgoing(topic="consensus", key=b"k", value=None), at=1010.0)
    assert open_ids(read(town)[0]) == []
    write(town, label_request(), at=1020.0)
    desk, told = read(town)
    assert TakenBack(key="k") in told
    assert open_ids(desk) == ["e1/label"]
    assert desk.timeline.classes("k") == []


def test_example_that_was_withdrawn_is_told_and_changes_no_question() -> None:
    town = Town()
    write(town, label_request())
    write(town, Outgoing(topic="consensus", key=b"k\x1fe1\x1f0", value=None))
    desk, told = read(town)
    assert TakenBack(key="k", event_id="e1", revision=0) in told
    assert open_ids(desk) == ["e1/label"]


def test_messages_of_other_keys_are_left_out_where_one_is_wanted() -> None:
    town = Town()
    write(town, label_request("e1", key="k"), label_request("e2", key="other"))
    assert open_ids(read(town, only_key="other")[0]) == ["e2/label"]


def test_what_is_settled_is_forgotten_minute_by_minute_once_all_is_read() -> None:
    town, clock, desk = Town(), Clock(), AnnotationInbox()
    feed = TopicFeed(town.topics, keyed=True, clock=clock)
    write(town, answer())
    turns = []
    desk.turn_over = lambda: turns.append(clock.now)  # type: ignore[method-assign]
    for _ in range(5):
        feed.read_into(desk, 0.0)
    clock.now += TURN_S
    feed.read_into(desk, 0.0)
    feed.read_into(desk, 0.0)
    assert turns == [1000.0 + TURN_S]
    assert feed.n_read == 1
