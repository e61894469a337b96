"""A person at work: from the topics to a question, and back with the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from connectors.annotation.sender import AnswerSender
from connectors.topics import Outgoing
from streamgp.apps.annotate import session
from streamgp.apps.annotate.commands import Command
from streamgp.apps.annotate.question_view import View
from streamgp.apps.annotate.session import Answering, SessionSettings
from streamgp.interactive import Answer, Cancel, LabelledExample
from tests.helpers.deskwork import Broken, Town
from tests.helpers.topics import write

DECLINE, SKIP, UNDO, QUIT = (
    Command(kind="decline"),
    Command(kind="skip"),
    Command(kind="undo"),
    Command(kind="quit"),
)


def label(y: Any) -> Command:
    return Command(kind="label", label=y)


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread waits for what cannot come: everything happens in one thread."""
    monkeypatch.setattr("streamgp.apps.annotate.session.LOOK_S", 0.0)
    monkeypatch.setattr("connectors.worker.worker.LONGEST_WAIT_S", 0.0)


Step = Command | Callable[[], object] | None


class Person:
    """Does one thing after the other: a command, or something that happens meanwhile."""

    def __init__(self, *steps: Step) -> None:
        self._steps: Iterator[Step] = iter(steps)
        self.views: list[View] = []
        self.n_ended = 0
        self.is_released = False

    def __enter__(self) -> Person:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def show(self, view: View) -> None:
        self.views.append(view)

    def read(self, view: View, timeout_s: float) -> Command | None:  # noqa: ARG002
        if view.n_read is not None or (view.question is None and view.trouble is not None):
            return None
        step = next(self._steps, QUIT)
        if callable(step):
            step()
            return None
        return step

    def question_ended(self) -> None:
        self.n_ended += 1

    def release(self) -> None:
        self.is_released = True

    def asked(self) -> list[str]:
        """Return the requests that were shown, each time one was."""
        shown = [v.question.request.request_id for v in self.views if v.question is not None]
        return [one for one, before in zip(shown, [None, *shown], strict=False) if one != before]

    def notes(self) -> list[str]:
        return list(dict.fromkeys(v.note for v in self.views if v.note is not None))


class Straight:
    """A courier who does not wait: what is sent is there."""

    n_unsent = 0
    trouble = None
    refusal = None

    def __init__(self, topics: Any) -> None:
        self._writer = topics.writer("annotate")

    def send(self, record: Outgoing) -> None:
        self._writer.send(record)
        self._writer.flush()

    def finish(self, timeout_s: float) -> int:  # noqa: ARG002
        return 0

    def close(self) -> None:
        pass


def sit(town: Town, person: Person, topics: Any = None, **options: Any) -> Answering:
    """Let a person work until they leave, and what they said be sent."""
    found = town.topics if topics is None else topics
    sender: Any = Straight(town.topics)
    if topics is not None:
        sender = AnswerSender(lambda: found.writer("annotate"), pause_s=0.0)
    settings = SessionSettings(**{"annotator": "ann", "keyed": town.keyed, **options})
    answering = Answering(found, settings, person, sender, clock=town.clock)
    answering.run(lambda: False)
    assert sender.finish(20.0) == 0
    answering.close()
    sender.close()
    return answering


def answers(town: Town) -> list[tuple[str | None, Any, str | None]]:
    return [(a.request_id, a.y, a.supersedes) for a in town.said("answers")]


def town_with_events(n: int = 3, **options: Any) -> Town:
    town = Town(**options)
    for i in range(1, n + 1):
        town.clock.now += 1.0
        town.event(f"e{i}", float(i))
    town.work()
    return town


def test_every_question_is_asked_until_the_annotator_leaves() -> None:
    town = town_with_events(3)
    person = Person(label("den"), DECLINE, QUIT)
    answering = sit(town, person)
    assert person.asked() == ["e1/label", "e2/label", "e3/label"]
    assert answers(town) == [("e1/label", "den", None), ("e2/label", None, None)]
    assert (answering.n_answered, answering.n_open()) == (2, 1)
    assert person.is_released


def test_labels_of_the_configuration_can_be_chosen_from_the_start() -> None:
    town = town_with_events(1)
    person = Person(label("walking"), QUIT)
    sit(town, person, labels=("walking", "sitting"))
    (view,) = (one for one in person.views[:1] if one.question is not None)
    assert [choice.label for choice in view.choices] == ["walking", "sitting"]
    assert answers(town) == [("e1/label", "walking", None)]


def test_answer_goes_with_key_and_headers_into_the_partition_of_the_question() -> None:
    town = town_with_events(1, n_partitions=5)
    sit(town, Person(label("den")))
    [asked], [answered] = (town.topics.reader([t]).poll(0.0) for t in ("requests", "answers"))
    assert (answered.key, answered.partition) == (asked.key, asked.partition)
    headers = dict(answered.headers)
    assert headers["ce_source"] == b"/streamgp/annotate"
    assert headers["ce_id"] == b"k/e1/label/answer/ann/1"


def test_no_time_passes_between_an_answer_and_the_next_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each answer of a pipe would take a tenth of a second."""
    town = town_with_events(3)
    waited: list[float] = []
    reader = town.topics.reader(["requests"])
    poll = type(reader).poll

    def noted(self: Any, timeout_s: float) -> Any:
        waited.append(timeout_s)
        return poll(self, 0.0)

    monkeypatch.setattr(type(reader), "poll", noted)
    monkeypatch.setattr("streamgp.apps.annotate.session.LOOK_S", 7.0)
    until_then: list[float] = []
    person = Person(
        waited.clear, label("den"), DECLINE, lambda: until_then.extend(waited), label("den"), None
    )
    sit(town, person)
    assert person.asked() == ["e1/label", "e2/label", "e3/label"]
    assert set(until_then) == {0.0}
    assert 7.0 in waited[-3:]  # there is nothing else to do; predictions are never waited for


def test_next_session_goes_on_where_the_last_one_ended() -> None:
    town = town_with_events(3)
    sit(town, Person(label("den"), SKIP))
    person = Person()
    sit(town, person)
    assert person.asked() == ["e2/label"]


def test_questions_that_come_meanwhile_are_asked_and_challenges_first() -> None:
    town = town_with_events(1)

    def more() -> None:
        town.event("e2", 2.0)
        town.event("e3", 1.1, y="hall")
        town.work()

    person = Person(label("den"), town.work, more, label("den"), label("hall"), QUIT)
    sit(town, person)
    assert person.asked() == ["e1/label", "e3/challenge/1", "e2/label"]
    [last] = [view for view in person.views if view.question is not None][-1:]
    assert [choice.label for choice in last.choices] == ["den", "hall"]


def test_question_that_is_shown_stays_although_a_challenge_comes() -> None:
    town = town_with_events(1)
    sit(town, Person(label("den")))
    town.work()
    town.event("e2", 2.0)
    town.work()

    def more() -> None:
        town.event("e3", 1.1, y="hall")
        town.work()

    person = Person(more, None, label("den"), QUIT)
    sit(town, person)
    assert person.asked() == ["e2/label", "e3/challenge/1"]


def test_question_that_another_annotator_answers_goes_and_keys_for_it_are_dropped() -> None:
    town = town_with_events(2)
    person = Person(lambda: sit(town, Person(label("den")), annotator="bob"), None, QUIT)
    sit(town, person)
    assert person.asked() == ["e1/label", "e2/label"]
    assert person.n_ended == 1
    assert person.notes() == ["the question about event e1 has ended"]


def test_a_question_that_is_taken_back_goes_with_the_reason() -> None:
    town = town_with_events(2)
    cancel = Cancel(request_id="e1/label", key="k", why="the answer is clear", at=3.0)
    person = Person(lambda: town.put(cancel), None, QUIT)
    sit(town, person)
    assert person.asked() == ["e1/label", "e2/label"]
    assert person.notes() == ["the question about event e1 has ended: the answer is clear"]


def test_undo_takes_the_answer_back_and_asks_again() -> None:
    town = town_with_events(1, contests=False)
    person = Person(label("den"), UNDO, label("hall"), QUIT)
    sit(town, person)
    town.work()
    assert answers(town) == [
        ("e1/label", "den", None),
        ("e1/label", None, "e1/label/answer/ann/1"),
        ("e1/label", "hall", "e1/label/answer/ann/2"),
    ]
    assert town.said("consensus")[-1].y == "hall"
    assert town.said("dead-letters") == []
    assert person.notes() == [
        "event e1: den",
        "taken back: den, about event e1",
        "event e1: hall",
    ]


def test_undo_works_on_an_answer_of_an_earlier_session() -> None:
    town = town_with_events(1)
    sit(town, Person(label("den")))
    town.work()
    sit(town, Person(UNDO, DECLINE))
    town.work()
    assert [line.y for line in town.said("consensus")] == ["den", None]
    assert town.said("dead-letters") == []


def test_undoing_a_decline_sends_nothing_but_the_answer_that_follows() -> None:
    town = town_with_events(1)
    person = Person(DECLINE, UNDO, label("hall"))
    sit(town, person)
    assert answers(town) == [
        ("e1/label", None, None),
        ("e1/label", "hall", "e1/label/answer/ann/1"),
    ]
    assert "taken back: don't know, about event e1" in person.notes()


def test_nothing_to_undo_is_reported() -> None:
    person = Person(UNDO, None)
    sit(town_with_events(1), person)
    assert person.notes() == ["there is no answer to take back"]


def test_skipped_question_comes_again_after_the_others() -> None:
    person = Person(SKIP, None, SKIP, None, QUIT)
    sit(town_with_events(2), person)
    assert person.asked() == ["e1/label", "e2/label", "e1/label"]
    assert person.notes() == ["event e1: skipped", "event e2: skipped"]


def test_only_the_key_that_is_wanted_is_asked_about() -> None:
    town = Town()
    for key in ("a", "b"):
        town.event("e1", key=key)
    town.work()
    person = Person(label("den"), None, QUIT)
    answering = sit(town, person, only_key="b")
    assert [view.question.request.key for view in person.views if view.question] == ["b"]
    assert answering.n_open() == 0


def test_one_learner_for_all_keys_is_answered_with_the_key_of_the_event() -> None:
    town = Town(keyed=False)
    town.event("e1", key="a")
    town.work()
    sit(town, Person(label("den")))
    town.work()
    assert [line.key for line in town.said("consensus")] == ["a"]


def test_labels_and_averages_of_a_forgotten_key_are_gone() -> None:
    town = town_with_events(1)
    sit(town, Person(label("den")))
    town.work()
    town.clock.now += 10.0

    def forget() -> None:
        write(town.topics, Outgoing(topic="consensus", key=b"k", value=None))
        town.work()
        town.clock.now += 10.0
        town.event("e1", 5.0)
        town.work()

    person = Person(forget, None, None, None)
    sit(town, person)
    asked = [view for view in person.views if view.question is not None]
    assert asked
    assert [choice.label for choice in asked[0].choices] == []
    assert asked[0].averages.mean("k", "den", "a") is None


def test_annotator_leaves_when_nothing_was_asked_for_a_while() -> None:
    town = town_with_events(1)
    person = Person(label("den"), None, lambda: _pass(town, 4.0), None, lambda: _pass(town, 1.0))
    sit(town, person, idle_s=5.0)
    assert person.views[-1].question is None


def _pass(town: Town, seconds: float) -> None:
    town.clock.now += seconds


def test_broker_that_is_away_keeps_the_answer_until_it_is_back() -> None:
    town = town_with_events(3)
    broken = Broken(town.topics)

    def away() -> None:
        broken.writes_fail = True

    def back() -> None:
        broken.writes_fail = False

    person = Person(away, label("den"), *[None] * 3, label("hall"), back)
    courier_views = sit(town, person, topics=broken)
    assert courier_views.n_answered == 2
    assert answers(town) == [("e1/label", "den", None), ("e2/label", "hall", None)]
    assert max(view.n_unsent for view in person.views) >= 1


def test_topics_that_cannot_be_read_further_are_read_again_from_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "RETRY_S", 0.0)
    town = town_with_events(3)
    broken = Broken(town.topics)

    def away() -> None:
        broken.reads_fail = True

    class Waiting(Person):
        def show(self, view: View) -> None:
            super().show(view)
            assert len(self.views) < 100, "it is not read again"
            if view.trouble:  # a clock that is set back delays nothing
                town.clock.now -= 100.0
            if len([v for v in self.views if v.trouble]) == 4:
                broken.reads_fail = False

    person = Waiting(label("den"), SKIP, away, None, label("hall"), QUIT)
    sit(town, person, topics=broken)
    assert answers(town) == [("e1/label", "den", None), ("e2/label", "hall", None)]
    assert {v.trouble for v in person.views} == {None, "the broker does not answer"}
    assert person.n_ended == 1


def test_broker_that_is_not_there_at_the_beginning_is_an_error() -> None:
    from connectors.topics import BrokerError

    town = town_with_events(1)
    broken = Broken(town.topics)
    broken.reads_fail = True
    with pytest.raises(BrokerError, match="does not answer"):
        sit(town, Person(), topics=broken)


def test_two_annotators_at_once_answer_everything_once() -> None:
    town = town_with_events(4)

    bob = Person(label("hall"), label("hall"), QUIT)
    ann = Person(label("den"), lambda: sit(town, bob, annotator="bob"), None, label("den"))
    sit(town, ann)
    town.work()
    assert town.said("dead-letters") == []
    assert sorted((a.event_id, a.annotator) for a in town.said("answers")) == [
        ("e1", "ann"),
        ("e2", "bob"),
        ("e3", "bob"),
        ("e4", "ann"),
    ]


def test_terminal_is_given_back_whatever_goes_wrong() -> None:
    town = town_with_events(1)

    def fail() -> None:
        raise KeyboardInterrupt

    person = Person(fail)
    with pytest.raises(KeyboardInterrupt):
        sit(town, person)
    assert person.is_released


def test_what_is_asked_to_stop_stops() -> None:
    town = town_with_events(1)
    sender = AnswerSender(lambda: town.topics.writer("annotate"))
    answering = Answering(town.topics, SessionSettings(annotator="ann"), Person(), sender)
    answering.run(lambda: True)
    assert sender.finish(20.0) == 0
    answering.close()
    sender.close()


def test_learned_examples_are_what_was_said() -> None:
    """The whole circle: the worker learns what the person says, and asks no more."""
    town = town_with_events(3)
    sit(town, Person(label("den"), label("den"), label("hall")))
    town.work()
    person = Person(label("hall"), QUIT)
    sit(town, person)
    town.work()
    lines = [m for m in town.said("consensus") if isinstance(m, LabelledExample)]
    assert [(line.event_id, line.y) for line in lines][:2] == [("e1", "den"), ("e2", "den")]
    assert all(isinstance(a, Answer) and a.annotator == "ann" for a in town.said("answers"))


@pytest.mark.parametrize("is_first", [True, False])
def test_an_answer_in_place_of_which_another_session_has_answered_is_told(is_first: bool) -> None:
    """Both have the same id, so the worker takes the first one and drops the other."""
    town = town_with_events(2)

    def elsewhere() -> None:
        town.put(
            Answer(
                answer_id="e1/label/answer/ann/1",
                request_id="e1/label",
                event_id="e1",
                key="k",
                y="hall",
                annotator="ann",
                answered_at=town.clock.now,
            )
        )

    def steps() -> Iterator[Step]:
        if is_first:
            elsewhere()  # after the last look at the topics
        yield label("den")
        yield town.work if is_first else elsewhere
        yield None

    person = Person()
    person._steps = steps()
    sit(town, person)
    note = "event e1: den"
    if is_first:
        note += "\nevent e1: hall counts, which another session with your name answered first"
    assert person.notes() == [note]
    town.work()
    assert [line.y for line in town.said("consensus")] == ["hall" if is_first else "den"]
