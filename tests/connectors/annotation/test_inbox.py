"""The desk against the loop itself: what is open here is what waits there."""

from __future__ import annotations

import contextlib
import random
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.annotation.inbox import AnnotationInbox
from connectors.annotation.open_questions import Question, rank_of
from connectors.annotation.own_answers import N_KEPT, CannotUndoError, OwnAnswers
from streamgp.base import Neighbour
from streamgp.interactive import (
    Answer,
    Cancel,
    Challenge,
    Event,
    Expired,
    InteractiveLoop,
    LabelledExample,
    LabelRequest,
    Message,
    Rejected,
)
from streamgp.interactive.messages import ASKED_AGAIN
from streamgp.interactive.people import People
from streamgp.learners.gp_classifier import GPClassifier
from streamgp.query import SkepticalClassifier
from streamgp.query.strategies import AlwaysAsk, AlwaysChallenge
from tests.helpers import messages as made

request = partial(made.label_request, at=100.0)
challenge = partial(made.challenge, at=110.0, given="hall", suggested="den", annotator="ann")

TOPICS = ("requests", "answers", "consensus")
OUTPUTS = {
    LabelRequest: "requests",
    Challenge: "requests",
    Expired: "requests",
    Cancel: "requests",
    LabelledExample: "consensus",
}


def line(event_id: str = "e1", y: Any = "hall", *, at: float = 110.0, **fields: Any) -> Any:
    return LabelledExample(
        event_id=event_id, sequence=1, x={}, y=y, origin="asked", learned_at=at, **fields
    )


def desk_with(*messages: Any, **options: Any) -> AnnotationInbox:
    desk = AnnotationInbox(**options)
    for message in messages:
        desk.take(message)
    return desk


def ids(desk: AnnotationInbox, now: float = 120.0, annotator: str | None = "ann") -> list[str]:
    return [question.request.request_id for question in desk.questions(now, annotator)]


def said(desk: AnnotationInbox, y: Any, now: float, annotator: str = "ann") -> Answer:
    """Answer the next question, which has to lead to a message."""
    question = desk.next(now, annotator)
    assert question is not None
    answer = desk.answer(question, y, now, annotator=annotator)
    assert answer is not None
    return answer


class Town:
    """A loop, three topics, and annotators who have read some part of each."""

    def __init__(self, expires_after_s: float | None = 50.0, ahead_s: float = 0.0) -> None:
        model = SkepticalClassifier(
            GPClassifier(), query=AlwaysAsk(), challenge=AlwaysChallenge(), warm_up=0, seed=1
        )
        self.loop = InteractiveLoop(model, expires_after_s=expires_after_s)
        self.topics: dict[str, list[Any]] = {topic: [] for topic in TOPICS}
        self.rejected: list[Rejected] = []
        self.now = 0.0
        self.ahead_s = ahead_s
        self.n_events = 0
        self.n_worked = 0
        self.n_read: dict[tuple[int, str], int] = {}

    def put(self, messages: list[Message]) -> None:
        for message in messages:
            if isinstance(message, Rejected):
                self.rejected.append(message)
            elif topic := OUTPUTS.get(type(message)):
                self.topics[topic].append(message)

    def event(self, y: str | None = None) -> None:
        self.n_events += 1
        event = Event(
            event_id=f"e{self.n_events}",
            x={"a": self.n_events % 3, "b": self.n_events % 2},
            occurred_at=self.now + self.ahead_s,
            y=y,
        )
        self.put(self.loop.on_event(event, event.occurred_at))

    def work(self, n: int | None = None) -> None:
        """Let the worker take the next answers, and look at the clock if it has taken all."""
        answers = self.topics["answers"]
        todo = answers[self.n_worked :][: len(answers) if n is None else n]
        for answer in todo:
            self.n_worked += 1
            self.put(self.loop.on_answer(answer, answer.answered_at))
        if self.n_worked == len(answers):
            self.put(self.loop.on_time(self.now))

    def read(self, desk: AnnotationInbox, topic: str, n: int | None = None) -> None:
        place = (id(desk), topic)
        start = self.n_read.get(place, 0)
        fresh = self.topics[topic][start:][: len(self.topics[topic]) if n is None else n]
        for message in fresh:
            desk.take(message)
        self.n_read[place] = start + len(fresh)

    def read_all(self, desk: AnnotationInbox) -> AnnotationInbox:
        for topic in TOPICS:
            self.read(desk, topic)
        return desk

    def waiting(self) -> set[str]:
        """Return the requests that wait in the loop, of those in time."""
        requests = {
            m.request_id: m
            for m in self.topics["requests"]
            if isinstance(m, LabelRequest | Challenge)
        }
        open_ones = [r.open_request for r in self.loop._memory if r.open_request is not None]
        return {
            q.request_id
            for q in open_ones
            if requests[q.request_id].expires_at is None or self.now <= (q.expires_at or 0.0)
        }


LABELS = ("den", "hall", None)


def play(
    town: Town, desks: dict[str, AnnotationInbox], rng: random.Random, steps: str = "eearrawwusc"
) -> None:
    """Let things happen: events, answers, undoing, reading, working, cancelling, time passing."""
    for _ in range(rng.randint(1, 60)):
        town.now += rng.choice([0.0, 1.0, 1.0, 20.0])
        name, desk = rng.choice(list(desks.items()))
        match rng.choice(steps):
            case "e":
                town.event(rng.choice([None, None, "den", "hall"]))
            case "a" if question := desk.next(town.now, name):
                answer = desk.answer(question, rng.choice(LABELS), town.now, annotator=name)
                town.topics["answers"] += [] if answer is None else [answer]
            case "u":
                with contextlib.suppress(CannotUndoError):
                    message = desk.undo(town.now, annotator=name).message
                    town.topics["answers"] += [] if message is None else [message]
            case "s" if question := desk.next(town.now, name):
                desk.skip(question, name)
            case "r":
                town.read(desk, rng.choice(TOPICS), rng.randint(1, 5))
            case "w":
                town.work(rng.randint(1, 3))
            case "c" if (waiting := town.waiting()) and town.n_worked == len(
                town.topics["answers"]
            ):
                town.put(town.loop.on_cancel(min(waiting), town.now))
    town.work()


def shuffled(town: Town, rng: random.Random) -> list[Any]:
    """Return all messages, those of each topic in their order."""
    order = [topic for topic in TOPICS for _ in town.topics[topic]]
    rng.shuffle(order)
    left = {topic: iter(town.topics[topic]) for topic in TOPICS}
    return [next(left[topic]) for topic in order]


seeds = st.integers(0, 2**32 - 1)


@given(seeds)
def test_any_interleaving_of_the_topics_leaves_open_what_waits_in_the_loop(seed: int) -> None:
    rng, town = random.Random(seed), Town()
    play(town, {"ann": AnnotationInbox()}, rng)
    desk = desk_with(*shuffled(town, rng))
    assert set(ids(desk, town.now, None)) == town.waiting()
    theirs = [q for q in desk.questions(town.now, None) if desk.may_answer(q, "joe")]
    assert desk.questions(town.now, "joe") == theirs


@pytest.mark.parametrize("ahead_s", [0.0, 500.0])
@given(seed=seeds)
def test_one_annotator_never_causes_a_rejection(ahead_s: float, seed: int) -> None:
    rng, town = random.Random(seed), Town(expires_after_s=None, ahead_s=ahead_s)
    play(town, {"ann": AnnotationInbox()}, rng, steps="eearrawwus")
    assert town.rejected == []


@given(seeds)
def test_desk_that_was_there_all_the_time_shows_what_one_that_comes_later_shows(seed: int) -> None:
    rng, town, ann = random.Random(seed), Town(), AnnotationInbox()
    play(town, {"ann": ann}, rng)
    town.read_all(ann)
    later = desk_with(*shuffled(town, rng))
    assert ids(later, town.now) == [
        question.request.request_id
        for question in sorted(ann.questions(town.now, "ann"), key=lambda q: rank_of(q.request))
        if not is_told_to_nobody(question, town)
    ]


def is_told_to_nobody(question: Question, town: Town) -> bool:
    """Whether declining the question was taken back, rather than a label."""
    answers = {answer.answer_id: answer for answer in town.topics["answers"]}
    last = answers.get(question.supersedes or "")
    if last is None:
        return False
    before = answers.get(last.supersedes or "")
    return not last.declined or before is None or before.y is None


@given(seeds)
def test_two_annotators_end_with_the_same_open_questions(seed: int) -> None:
    rng, town = random.Random(seed), Town()
    desks = {name: AnnotationInbox() for name in ("ann", "bob")}
    play(town, desks, rng)
    onlooker = town.read_all(AnnotationInbox())
    for name, desk in desks.items():
        theirs = [q for q in onlooker.questions(town.now, None) if onlooker.may_answer(q, name)]
        questions = town.read_all(desk).questions(town.now, name)
        assert {q.request.request_id for q in questions if q.supersedes is None} == {
            q.request.request_id for q in theirs
        }
    assert set(ids(onlooker, town.now, None)) <= town.waiting()


@given(seeds)
def test_what_is_read_twice_changes_nothing(seed: int) -> None:
    rng, town = random.Random(seed), Town()
    play(town, {"ann": AnnotationInbox()}, rng)
    messages = shuffled(town, rng)
    desk = desk_with(*messages)
    shown = desk.questions(town.now, "ann")
    for message in messages:
        desk.take(message)
    assert desk.questions(town.now, "ann") == shown


# --- the order of questions


def test_challenges_come_first_and_then_the_oldest() -> None:
    desk = desk_with(request("e2", at=102.0), request("e1", at=101.0), challenge("e3", at=103.0))
    assert ids(desk) == ["e3/challenge/1", "e1/label", "e2/label"]
    assert desk.n_open(120.0, "ann") == 3


def test_skipped_questions_come_last_in_the_order_of_skipping() -> None:
    desk = desk_with(*(request(f"e{i}", at=100.0 + i) for i in range(3)))
    for _ in range(2):
        question = desk.next(120.0, "ann")
        assert question is not None
        desk.skip(question, "ann")
    assert ids(desk) == ["e2/label", "e0/label", "e1/label"]
    desk.turn_over()
    assert ids(desk) == ["e2/label", "e0/label", "e1/label"]


def test_question_carries_the_partition_that_the_answer_belongs_into() -> None:
    desk = AnnotationInbox()
    desk.take(request(key="k"), partition=3)
    question = desk.next(120.0, "ann")
    assert question is not None
    assert question.partition == 3
    answer = desk.answer(question, "hall", 120.0, annotator="ann")
    assert answer is not None
    assert (answer.key, answer.event_id, answer.request_id) == ("k", "e1", "e1/label")


# --- what ends a question


@pytest.mark.parametrize(
    "end",
    [
        Answer(answer_id="a", request_id="e1/label", event_id="e1", y="den", answered_at=110.0),
        Answer(answer_id="a", request_id="e1/label", event_id="e1", declined=True, answered_at=1.0),
        Answer(answer_id="a", event_id="e1", y="den", answered_at=110.0),
        Expired(request_id="e1/label", event_id="e1", at=110.0),
        Cancel(request_id="e1/label", why="gone", at=110.0),
        challenge(),
        line(),
    ],
    ids=lambda end: type(end).__name__,
)
@pytest.mark.parametrize("is_read_first", [False, True])
@pytest.mark.parametrize("annotator", [None, "ann"])
def test_label_request_ends_with(end: Any, is_read_first: bool, annotator: str | None) -> None:
    messages = [end, request()] if is_read_first else [request(), end]
    assert "e1/label" not in ids(desk_with(*messages), annotator=annotator)


def test_questions_whose_time_is_over_are_not_shown() -> None:
    desk = desk_with(request("e1", expires_at=119.0), request("e2", expires_at=120.0))
    assert ids(desk) == ["e2/label"]
    assert ids(desk_with(request(), answer_horizon_s=19.0)) == []
    question = desk_with(request(expires_at=130.0)).next(120.0, "ann")
    assert question is not None
    assert desk.is_open(question, 119.0, "ann")
    assert not desk.is_open(question, 131.0, "ann")


@pytest.mark.parametrize("asked", [request, challenge])
def test_a_question_about_an_earlier_event_is_open_until_the_horizon_of_that(asked: Any) -> None:
    desk = desk_with(asked(at=100.0, occurred_at=40.0), answer_horizon_s=80.0)
    question = desk.next(120.0, "ann")
    assert question is not None
    assert not desk.is_open(question, 121.0, "ann")
    assert desk.n_open(121.0, "ann") == 0
    desk.answer(question, "hall", 110.0, annotator="ann")
    desk.undo(111.0, annotator="ann")
    assert [desk.n_open(now, "ann") for now in (120.0, 121.0)] == [1, 0]


def test_cancelling_what_is_no_request_changes_nothing() -> None:
    assert ids(desk_with(request(), Cancel(request_id="?", why="", at=1.0))) == ["e1/label"]


def test_what_is_settled_is_forgotten_after_two_turns() -> None:
    answered = Answer(
        answer_id="a", request_id="e1/label", event_id="e1", y="den", answered_at=110.0
    )
    for n_turns, shown in [(0, []), (1, []), (2, ["e1/label"])]:
        desk = desk_with(answered)
        for _ in range(n_turns):
            desk.turn_over()
        desk.take(request())
        assert ids(desk) == shown


def test_settled_events_are_limited_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connectors.annotation.open_questions.MAX_PAST", 10)
    desk = desk_with(*(line(f"e{i}") for i in range(40)))
    desk.take(request("e0"))
    desk.take(request("e39"))
    assert ids(desk) == ["e0/label"]
    assert len(desk._waiting._past) + len(desk._waiting._older) <= 22


def test_settled_questions_leave_nothing_behind() -> None:
    desk = AnnotationInbox()
    for i in range(100):
        desk.take(request(f"e{i}"))
        desk.take(line(f"e{i}"))
    for _ in range(3):
        desk.turn_over()
    assert not desk._waiting._bodies
    assert not desk._waiting._past


# --- undo


def test_undone_label_is_taken_back_and_asked_again() -> None:
    desk = desk_with(request())
    first = said(desk, "hall", 120.0)
    undone = desk.undo(121.0, annotator="ann")
    assert undone.message == Answer(
        answer_id="e1/label/answer/ann/2",
        request_id="e1/label",
        event_id="e1",
        declined=True,
        annotator="ann",
        answered_at=121.0,
        supersedes=first.answer_id,
    )
    second = said(desk, "den", 122.0)
    assert (second.answer_id, second.y) == ("e1/label/answer/ann/3", "den")
    assert second.supersedes == undone.message.answer_id
    assert ids(desk) == []


def test_the_skip_of_a_question_that_is_open_for_one_annotator_is_undone_for_that_one() -> None:
    desk = desk_with(request())
    said(desk, "hall", 120.0)
    desk.undo(121.0, annotator="ann")
    asked_again = desk.next(122.0, "ann")
    assert asked_again is not None
    desk.skip(asked_again, "ann")
    assert desk.unskip("ben") is None
    assert desk.unskip("ann") == asked_again
    assert desk.unskip("ann") is None


def test_what_is_known_of_an_answer_goes_with_it_and_with_no_other() -> None:
    desk = desk_with(request())
    known = {"response_s": 2.5}
    first = desk.answer(
        desk.questions(120.0, "ann")[0], "hall", 120.0, annotator="ann", privileged=known
    )
    assert first is not None
    assert (first.y, first.std, first.privileged) == ("hall", None, known)
    undone = desk.undo(121.0, annotator="ann")
    assert undone.answer == first
    assert undone.message is not None
    assert undone.message.privileged is None
    assert said(desk, "den", 122.0).privileged is None


def test_annotators_who_decline_may_say_how_long_it_took() -> None:
    desk = desk_with(request())
    answer = desk.answer(
        desk.questions(120.0, "ann")[0],
        None,
        120.0,
        annotator="ann",
        privileged={"response_s": 0.5},
    )
    assert answer is not None
    assert (answer.declined, answer.privileged) == (True, {"response_s": 0.5})


def test_undone_question_is_there_in_the_next_session() -> None:
    desk = desk_with(request())
    answers = [said(desk, "hall", 120.0), desk.undo(121.0, annotator="ann").message]
    for messages in ([request(), *answers], [*answers, request()]):
        [question] = desk_with(*messages).questions(130.0, "ann")
        assert question.supersedes == "e1/label/answer/ann/2"
        assert ids(desk_with(*messages), 130.0, "bob") == []


def test_declining_again_ends_an_undone_question() -> None:
    desk = desk_with(request())
    answers = [
        said(desk, "hall", 120.0),
        desk.undo(121.0, annotator="ann").message,
        said(desk, None, 122.0),
    ]
    assert answers[-1].supersedes == answers[1].answer_id  # type: ignore[union-attr]
    assert ids(desk) == []
    assert ids(desk_with(request(), *answers)) == []


def test_undoing_a_decline_sends_nothing_until_the_next_answer() -> None:
    desk = desk_with(request())
    declined = said(desk, None, 120.0)
    undone = desk.undo(121.0, annotator="ann")
    assert undone.message is None
    assert desk.answer(undone.question, None, 122.0, annotator="ann") is None
    assert ids(desk) == []
    desk.undo(123.0, annotator="ann")
    assert said(desk, "den", 124.0).supersedes == declined.answer_id


@pytest.mark.parametrize("remark", [{"note": "two people"}, {"flag": True}, {"reason": "unclear"}])
def test_a_remark_on_declining_again_is_sent_and_changes_nothing_else(
    remark: dict[str, Any],
) -> None:
    town = Town()
    town.event()
    desk = town.read_all(AnnotationInbox())
    first = said(desk, None, 1.0)
    question = desk.undo(2.0, annotator="ann").question
    again = desk.answer(question, None, 3.0, annotator="ann", **remark)
    assert again is not None
    assert (again.declined, again.supersedes) == (True, first.answer_id)
    assert {name: getattr(again, name) for name in remark} == remark
    town.topics["answers"] += [first, again]
    town.work()
    assert town.rejected == town.topics["consensus"] == []
    for each in (desk, town.read_all(AnnotationInbox())):
        assert ids(each, 4.0) == []
    assert desk.undo(5.0, annotator="ann").answer is again


def test_a_remark_on_declining_a_challenge_again_does_not_take_back_its_label() -> None:
    desk = desk_with(request())
    said(desk, "hall", 110.0)
    desk.take(challenge())
    said(desk, None, 120.0)
    question = desk.undo(121.0, annotator="ann").question
    assert desk.answer(question, None, 122.0, annotator="ann", note="dark") is None


def test_undoing_a_declined_challenge_corrects_the_label_that_was_given() -> None:
    desk = desk_with(request())
    first = said(desk, "hall", 110.0)
    desk.take(challenge())
    said(desk, None, 120.0)
    desk.undo(121.0, annotator="ann")
    assert said(desk, "den", 122.0).supersedes == first.answer_id


def test_declined_challenge_of_somebody_elses_label_cannot_be_undone() -> None:
    desk = desk_with(challenge(annotator="bob"), people=People(supervisors=frozenset(["ann"])))
    said(desk, None, 120.0)
    with pytest.raises(CannotUndoError, match=r"'hall' of event e1 stands now, and only bob"):
        desk.undo(121.0, annotator="ann")


def test_undo_goes_back_answer_by_answer_across_events() -> None:
    desk = desk_with(request("e1", at=101.0), request("e2", at=102.0))
    said(desk, "hall", 120.0)
    said(desk, "den", 121.0)
    assert [
        desk.undo(122.0, annotator="ann").answer.event_id,
        desk.undo(123.0, annotator="ann").answer.event_id,
    ] == ["e2", "e1"]
    with pytest.raises(CannotUndoError, match="there is no answer to take back"):
        desk.undo(124.0, annotator="ann")


def test_a_label_is_changed_as_often_as_the_workers_take_it_and_no_more() -> None:
    town = Town(expires_after_s=None)
    town.event()
    desk = town.read_all(AnnotationInbox())
    last = said(desk, "hall", 1.0)
    town.topics["answers"].append(last)
    for n in range(1, 11):  # each takes two corrections
        withdrawal = desk.undo(2.0 * n, annotator="ann").message
        last = said(desk, f"room {n}", 2.0 * n + 1.0)
        town.topics["answers"] += [withdrawal, last]
    with pytest.raises(CannotUndoError, match="event e1 was changed too often") as caught:
        desk.undo(100.0, annotator="ann")
    assert caught.value.code == "too_often"
    assert desk.rename(None, "room 10", "den", 101.0, annotator="ann") == []
    town.work()
    assert town.rejected == []
    more = replace(last, answer_id="more", supersedes=last.answer_id, answered_at=102.0)
    town.topics["answers"].append(more)
    town.work()
    [refused] = town.rejected
    assert "this would be 21 corrections, expected at most 20" in refused.reason


def test_the_last_correction_that_workers_take_replaces_a_label_or_renames_it() -> None:
    desk = desk_with(request(), people=People(max_corrections=1))
    first = said(desk, "hall", 110.0)
    with pytest.raises(CannotUndoError, match="too often"):  # nothing could be said after it
        desk.undo(111.0, annotator="ann")
    assert desk.change(first, 112.0).request.event_id == first.event_id
    [(renamed, _)] = desk.rename(None, "hall", "den", 113.0, annotator="ann")
    assert renamed.supersedes == first.answer_id
    with pytest.raises(CannotUndoError, match="too often"):
        desk.change(renamed, 114.0)


def test_answers_that_the_workers_refuse_as_too_many_cost_a_desk_nothing() -> None:
    desk = desk_with(request(), people=People(max_corrections=3))
    before = said(desk, "hall", 110.0)
    for n in range(50):
        y = f"room {n}"
        before = replace(before, answer_id=f"a{n}", supersedes=before.answer_id, y=y)
        desk.take(before)
    # The first one and three corrections.
    assert desk.timeline.classes(None) == ["room 2"]
    assert [answer.answer_id for answer in desk.own("ann").latest(9)] == ["a2"]


def test_others_cannot_keep_a_supervisor_from_renaming_by_changing_a_label_often() -> None:
    people = People(max_corrections=2, supervisors=frozenset(["eve"]))
    desk = AnnotationInbox(people=people)
    desk.take(request())
    said = [
        Answer(answer_id=f"a{n}", event_id="e1", request_id="e1/label", y=f"room {n}",
               annotator="ann", answered_at=110.0 + n, supersedes=f"a{n - 1}" if n else None)
        for n in range(3)
    ]  # fmt: skip
    for answer in said:
        desk.take(answer)
    assert desk.rename(None, "room 2", "den", 120.0, annotator="ann") == []
    [(renamed, _)] = desk.rename(None, "room 2", "den", 120.0, annotator="eve", of_everyone=True)
    assert (renamed.annotator, renamed.supersedes) == ("eve", "a2")


@pytest.mark.parametrize("looks_first", ["ann", "bob"])
def test_answers_of_one_moment_are_listed_as_they_came_whoever_looked_first(
    looks_first: str,
) -> None:
    desk = desk_with(request("e1"), request("e2"))
    assert ids(desk, annotator=looks_first) == ["e1/label", "e2/label"]
    answers = [said(desk, "hall", 120.0, annotator=name) for name in ("bob", "ann")]
    assert desk.of_others("eve", 9) == answers


def test_workers_forget_a_label_that_a_supervisor_takes_back() -> None:
    people = People(supervisors=frozenset(["eve"]))
    town, desk = Town(), AnnotationInbox(people=people)
    town.loop = InteractiveLoop(town.loop.model, people=people)
    town.event()
    [asked] = town.topics["requests"]
    desk.take(asked)
    answer = desk.answer(Question(request=asked), "hall", 1.0, annotator="ann")
    assert answer is not None
    town.put(town.loop.on_answer(answer, 1.0))
    assert desk.of_others("eve", 9) == [answer]
    assert desk.of_others("ann", 9) == []
    with pytest.raises(CannotUndoError, match="the label of event e1 is not yours") as refused:
        desk.overrule(answer, 2.0, annotator="bob", answer_id="b")
    assert refused.value.code == "not_yours"
    taken_back = desk.overrule(answer, 0.0, annotator="eve", answer_id="t")
    assert taken_back.answered_at > answer.answered_at  # whatever the clock of eve says
    town.put(town.loop.on_answer(taken_back, 2.0))
    assert town.rejected == []
    assert [line.y for line in town.topics["consensus"]] == ["hall", None]
    assert (desk.of_others("eve", 9), desk.own("eve").latest(9), desk.timeline.classes(None)) == (
        [],
        [],
        [],
    )
    with pytest.raises(CannotUndoError, match="the label of event e1 is another one now"):
        desk.overrule(answer, 3.0, annotator="eve", answer_id="u")
    with pytest.raises(CannotUndoError, match="eve has answered about event e1 since"):
        desk.undo(3.0, answer, annotator="ann")


def test_a_supervisor_cannot_take_back_what_the_workers_have_forgotten() -> None:
    people = People(supervisors=frozenset(["eve"]), max_corrections=1)
    desk = AnnotationInbox(people=people, answer_horizon_s=50.0)
    desk.take(request())
    answer = desk.answer(desk.questions(110.0, "ann")[0], "hall", 110.0, annotator="ann")
    assert answer is not None
    assert desk.check_overrule(answer, "eve", 150.0).label == "hall"
    with pytest.raises(CannotUndoError, match="the workers have forgotten it"):
        desk.check_overrule(answer, "eve", 151.0)


def test_answer_that_somebody_followed_up_cannot_be_undone() -> None:
    desk = desk_with(request(), people=People(supervisors=frozenset(["bob"])))
    said(desk, "hall", 110.0)
    desk.take(challenge())
    desk.take(
        Answer(
            answer_id="b",
            request_id="e1/challenge/1",
            event_id="e1",
            y="den",
            annotator="bob",
            answered_at=115.0,
        )
    )
    with pytest.raises(CannotUndoError, match="bob has answered about event e1 since"):
        desk.undo(121.0, annotator="ann")


@pytest.mark.parametrize("answered_first", [True, False])
def test_a_question_that_one_in_quarantine_has_answered_is_open_to_the_others(
    answered_first: bool,
) -> None:
    asked, again = request(), replace(request(at=115.0), reason=ASKED_AGAIN, excluded=("eve",))
    lie = Answer(
        answer_id="lie",
        event_id="e1",
        request_id="e1/label",
        y="den",
        annotator="eve",
        answered_at=114.0,
    )
    rest = [lie, again] if answered_first else [again, lie]
    desk = desk_with(asked, *rest)
    assert ids(desk, annotator="ann") == ["e1/label"]
    assert ids(desk, annotator="eve") == []
    assert (desk.n_open(120.0, "ann"), desk.n_open(120.0, "eve")) == (1, 0)
    assert desk.oldest_at(120.0, "eve") is None
    assert desk.next(120.0, "eve") is None
    [question] = desk.questions(120.0, "ann")
    assert desk.question_of(None, "e1/label", 120.0, "eve") is None
    desk.answer(question, "hall", 121.0, annotator="ann")
    assert ids(desk, annotator="ann") == []


def test_after_a_key_is_forgotten_no_annotator_of_it_is_in_quarantine() -> None:
    desk = desk_with(replace(request(key="k"), excluded=("eve",)))
    assert desk.quarantined.holds("eve", "k")
    desk.forget("k", 1e9)
    assert not desk.quarantined.holds("eve", "k")


def test_one_in_quarantine_is_offered_nothing_and_changes_nothing() -> None:
    asked = request(), request("e2", at=106.0)
    desk = desk_with(*asked)
    answers = []
    for one in asked:
        [question] = [q for q in desk.questions(115.0, None) if q.request == one]
        at = one.requested_at + 10.0
        answers.append(desk.answer(question, "den", at, annotator="eve"))
    desk.undo(130.0, annotator="eve")
    assert ids(desk, annotator="eve") == ["e2/label"]
    desk.take(replace(request("e3", at=117.0), excluded=("eve",)))
    assert ids(desk, annotator="eve") == []
    assert desk.n_open(120.0, "eve") == 0
    first = answers[0]
    assert first is not None
    for act in (
        lambda: desk.change(first, 121.0),
        lambda: desk.undo(121.0, first, annotator="eve"),
        lambda: desk.undo(121.0, annotator="eve"),
    ):
        with pytest.raises(CannotUndoError, match="set aside") as caught:
            act()
        assert caught.value.code == "set_aside"
    assert desk.rename(None, "den", "hall", 121.0, annotator="eve") == []
    desk.take(request("e4", at=122.0))  # heard again
    assert ids(desk, annotator="eve") == ["e2/label", "e4/label"]
    assert desk.change(first, 123.0).request == asked[0]


def test_answer_given_too_late_by_a_moment_cannot_be_undone() -> None:
    """Bob's answer lies before Ann's in the topic: hers was not used."""
    bobs = Answer(
        answer_id="b",
        request_id="e1/label",
        event_id="e1",
        y="den",
        annotator="bob",
        answered_at=1.0,
    )
    anns = said(desk_with(request()), "hall", 120.0)
    for messages in ([request(), bobs, anns], [bobs, anns, request()], [bobs, request(), anns]):
        with pytest.raises(CannotUndoError, match="is not known here"):
            desk_with(*messages).undo(121.0, annotator="ann")


def test_undone_answer_survives_a_clock_that_goes_back() -> None:
    desk = desk_with(request())
    first = said(desk, "hall", 120.0)
    message = desk.undo(90.0, annotator="ann").message
    assert message is not None
    assert message.answered_at > first.answered_at


def test_open_challenge_goes_when_the_answer_that_it_doubts_is_undone() -> None:
    desk = desk_with(request())
    first = said(desk, "hall", 110.0)
    desk.take(challenge(at=110.0))
    back = desk.undo(121.0, annotator="ann").message
    assert ids(desk) == ["e1/label"]
    for messages in ([challenge(at=110.0), first, back], [back, challenge(at=110.0)]):
        assert "e1/challenge/1" not in ids(desk_with(*messages), annotator="bob")


@pytest.mark.parametrize("ahead_s", [0.0, 500.0])
def test_challenge_goes_with_its_answer_also_if_the_clock_of_events_is_ahead(
    ahead_s: float,
) -> None:
    """A challenge has the time of the answer that it doubts, not that of its event."""
    town, desk = Town(expires_after_s=None, ahead_s=ahead_s), AnnotationInbox()
    town.event("den")
    town.event()
    town.now = 10.0
    answer = said(town.read_all(desk), "hall", town.now)
    town.topics["answers"].append(answer)
    town.work()
    assert "e2/challenge/1" in ids(town.read_all(desk))
    town.topics["answers"].append(desk.undo(11.0, annotator="ann").message)
    town.work()
    assert town.rejected == []
    assert ids(town.read_all(AnnotationInbox()), annotator=None) == []


def test_only_the_last_answers_can_be_undone() -> None:
    own = OwnAnswers("ann", n_kept=2)
    for i in (3, 1, 2):
        answer = Answer(
            answer_id=f"a{i}", event_id=f"e{i}", y="hall", annotator="ann", answered_at=float(i)
        )
        own.take(answer, at=0.0)
    assert sorted(event_id for _, event_id in own._threads) == ["e2", "e3"]
    assert N_KEPT == 200


def test_very_long_ids_are_shortened_and_stay_the_same() -> None:
    names = {said(desk_with(request("e" * 1020)), "hall", 120.0).answer_id for _ in range(2)}
    assert [len(name) for name in names] == [64]


def test_name_of_the_annotator_cannot_be_mistaken_in_an_id() -> None:
    answer = said(desk_with(request()), "hall", 120.0, "a/1")
    assert answer.answer_id == "e1/label/answer/a%2F1/1"


# --- labels, and keys that are forgotten


def test_labels_are_known_from_examples_suggestions_and_answers() -> None:
    answer = Answer(answer_id="a", event_id="e9", key="k", y="Attic", answered_at=1.0)
    nearby = (Neighbour(event_id="e0", x={}, y="loft", distance=0.1),)
    desk = desk_with(line(y="hall"), challenge(key="k", neighbours=nearby), answer)
    assert desk.timeline.classes("k") == ["Attic", "den", "hall", "loft"]
    assert desk.timeline.classes(None) == ["hall"]
    assert desk.timeline.all_classes() == ["Attic", "den", "hall", "loft"]


def test_labels_of_different_types_are_different_labels() -> None:
    desk = desk_with(*(line(f"e{y!r}", y=y) for y in (2, "1", 1, True, 1.0, None)))
    assert [repr(y) for y in desk.timeline.classes(None)] == ["True", "1.0", "1", "2", "'1'"]


def test_numbers_within_labels_are_in_order_of_their_values() -> None:
    names = ["Room 10", "room 2", "Room 02", "10", "9", "2.10", "2.9", "Room"]
    desk = desk_with(*(line(f"e{y}", y=y) for y in names))
    assert desk.timeline.classes(None) == [
        "2.9",
        "2.10",
        "9",
        "10",
        "Room",
        "Room 02",
        "room 2",
        "Room 10",
    ]


@pytest.mark.parametrize("is_read_first", [False, True])
def test_forgotten_key_leaves_nothing_until_it_comes_again(is_read_first: bool) -> None:
    desk = AnnotationInbox()
    before = [request(key="k"), line(y="den", key="k"), request("e5", key="other")]
    if is_read_first:
        desk.forget("k", at=50.0)
    for message in before:
        desk.take(message, at=10.0)
    if not is_read_first:
        desk.forget("k", at=50.0)
    desk.take(request(key="k"), at=60.0)
    desk.take(line("e7", y="hall", key="k"), at=60.0)
    assert ids(desk) == ["e1/label", "e5/label"]
    assert desk.timeline.classes("k") == ["hall"]


def test_answers_about_a_forgotten_key_cannot_be_undone() -> None:
    desk = AnnotationInbox()
    desk.take(request(key="k"), at=10.0)
    said(desk, "hall", 20.0)
    desk.forget("k", at=50.0)
    with pytest.raises(CannotUndoError, match="there is no answer"):
        desk.undo(60.0, annotator="ann")


def test_a_question_that_was_written_late_can_be_answered_as_much_longer():
    desk = AnnotationInbox(answer_horizon_s=100.0)
    late = LabelRequest(
        request_id="e9/label",
        event_id="e9",
        x={},
        reason="SkepticalAsk",
        score=1.0,
        threshold=0.0,
        requested_at=0.0,
    )
    desk.take(late, at=1000.0)
    assert desk.n_open(1100.0, "ann") == 1
    assert desk.n_open(1100.1, "ann") == 0
    [question] = desk.questions(1050.0, "ann")
    desk.answer(question, "hall", 1050.0, annotator="ann")
    desk.undo(1051.0, annotator="ann")
    assert desk.n_open(1100.0, "ann") == 1
    assert desk.n_open(1100.1, "ann") == 0


def test_an_event_that_came_late_is_remembered_as_long_as_in_the_loop():
    model = SkepticalClassifier(
        GPClassifier(), query=AlwaysAsk(), challenge=AlwaysChallenge(), warm_up=0, seed=1
    )
    loop = InteractiveLoop(model, answer_horizon_s=100.0)
    desk = AnnotationInbox(answer_horizon_s=100.0)
    for n, y in enumerate(("hall", "den")):
        loop.on_event(Event(event_id=f"known-{n}", x={"a": n}, y=y, occurred_at=0.0), 0.0)
    late = Event(event_id="e", x={"a": 0}, occurred_at=0.0)
    [_, request] = loop.on_event(late, 0.0, written_at=1000.0)
    desk.take(request, at=1000.0)
    answer = said(desk, "den", 1050.0)
    [challenge] = loop.on_answer(answer, 1050.0, written_at=1051.0)
    desk.take(challenge, at=1051.0)
    assert [desk.n_open(now, "ann") for now in (1052.0, 1100.0, 1100.1)] == [1, 1, 0]
    answer = said(desk, "hall", 1060.0)
    [line] = loop.on_answer(answer, 1060.0)
    assert (line.y, line.origin) == ("hall", "revised")
    assert desk.rename(None, "hall", "attic", 1100.1, annotator="ann") == []
    [(renamed, _)] = desk.rename(None, "hall", "attic", 1100.0, annotator="ann")
    assert [line.y for line in loop.on_answer(renamed, 1100.0)] == ["attic"]


# --- what other annotators say about an answer, which the workers refuse


def by_bob(**fields: Any) -> Answer:
    given = {"event_id": "e1", "annotator": "bob", "answered_at": 120.0, "y": "den"}
    return Answer(**{"answer_id": "b1", **given, **fields})


@pytest.mark.parametrize("is_read_first", [True, False])
@pytest.mark.parametrize("by", ["bob", None])
def test_a_challenge_stays_with_the_annotator_whose_label_it_contests(
    is_read_first: bool, by: str | None
) -> None:
    stolen = by_bob(request_id="e1/challenge/1", annotator=by)
    messages = [stolen, challenge()] if is_read_first else [challenge(), stolen]
    desk = AnnotationInbox()
    for message in messages:
        desk.take(message)
    assert [ids(desk, 130.0, name) for name in ("ann", "bob")] == [["e1/challenge/1"], []]
    assert [desk.n_open(130.0, name) for name in ("ann", "bob", None)] == [1, 0, 1]
    assert [desk.oldest_at(130.0, name) for name in ("ann", "bob")] == [110.0, None]
    assert desk.next(130.0, "bob") is None
    desk.take(request("e2", at=115.0))
    assert desk.oldest_at(130.0, "bob") == 115.0
    question, _ = desk.questions(130.0, "ann")
    answer = desk.answer(question, "hall", 140.0, annotator="ann")
    assert answer is not None
    assert desk.undo(150.0, annotator="ann").answer == answer


def test_an_answer_that_another_annotator_corrects_can_still_be_taken_back() -> None:
    desk = AnnotationInbox()
    desk.take(request())
    [question] = desk.questions(130.0, "ann")
    answer = desk.answer(question, "hall", 140.0, annotator="ann", answer_id="a1")
    desk.take(by_bob(supersedes="a1", answered_at=150.0))
    assert desk.undo(160.0, annotator="ann").answer == answer


def test_a_supervisor_is_shown_the_challenges_of_all() -> None:
    people = People(supervisors=frozenset(["eve"]))
    desk = AnnotationInbox(people=people)
    desk.take(challenge())
    assert [ids(desk, 130.0, name) for name in ("eve", "bob")] == [["e1/challenge/1"], []]
    [question] = desk.questions(130.0, "eve")
    desk.answer(question, "den", 140.0, annotator="eve")
    assert ids(desk, 150.0, "ann") == []


# --- second questions


def second(annotator: str | None = None, *excluded: str) -> LabelRequest:
    kind = "second" if annotator is None else "again"
    return replace(
        request(at=110.0), request_id=f"e1/label/{kind}", excluded=excluded, annotator=annotator
    )


SECOND = second(None, "ann")


def answered(y: Any, annotator: str, request_id: str, at: float = 109.0) -> Answer:
    return Answer(
        answer_id=f"{annotator}/{request_id}",
        event_id="e1",
        request_id=request_id,
        y=y,
        annotator=annotator,
        answered_at=at,
    )


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 3, 0, 1)])
def test_a_second_question_is_open_to_the_others_in_whatever_order_topics_are_read(
    order: tuple[int, ...],
) -> None:
    told = [
        request(),
        answered("hall", "ann", "e1/label"),
        line(at=110.0, annotator="ann"),
        SECOND,
    ]
    desk = desk_with(*(told[n] for n in order))
    assert ids(desk, annotator="bob") == ["e1/label/second"]
    assert ids(desk, annotator="ann") == []
    assert (desk.n_open(120.0, "bob"), desk.n_open(120.0, "ann")) == (1, 0)
    # What the first one corrects does not end it.
    desk.take(
        replace(answered("den", "ann", "e1/label", 130.0), answer_id="c", supersedes="ann/e1/label")
    )
    desk.take(line(y="den", at=130.0, annotator="ann", revision=1))
    [question] = desk.questions(140.0, "bob")
    assert desk.answer(question, "hall", 141.0, annotator="bob") is not None
    assert ids(desk, 142.0, annotator="bob") == []


def test_a_second_question_tells_nothing_of_the_first_answer() -> None:
    desk = desk_with(request(), answered("secret", "ann", "e1/label"), SECOND)
    [question] = desk.questions(120.0, "bob")
    assert "secret" not in repr(question)


def test_a_question_for_one_annotator_is_shown_to_no_other() -> None:
    other = replace(request("e2", at=105.0), request_id="e2/label")
    desk = desk_with(other, second("ann"))
    assert ids(desk, annotator="ann") == ["e2/label", "e1/label/again"]
    assert ids(desk, annotator="bob") == ["e2/label"]
    assert (desk.n_open(120.0, "ann"), desk.n_open(120.0, "bob")) == (2, 1)
    assert desk.oldest_at(120.0, "bob") == 105.0


def test_what_a_second_answer_says_is_not_the_label_until_the_log_says_so() -> None:
    desk = desk_with(request(), answered("hall", "ann", "e1/label"), SECOND)
    desk.take(answered("den", "bob", "e1/label/second", 120.0))
    moment = desk.timeline.find(None, "e1")
    assert moment is not None
    assert moment.label == "hall"
    desk.take(replace(line(y="den", at=121.0, annotator="bob", revision=1), origin="aggregated"))
    moment = desk.timeline.find(None, "e1")
    assert moment is not None
    assert moment.label == "den"


def test_a_second_answer_can_be_taken_back() -> None:
    desk = desk_with(request(), answered("hall", "ann", "e1/label"), SECOND)
    given_ = said(desk, "den", 120.0, "bob")
    undone = desk.undo(121.0, annotator="bob")
    assert undone.message is not None
    assert undone.message.supersedes == given_.answer_id
    [question] = desk.questions(122.0, "bob")
    assert question.request.request_id == "e1/label/second"
