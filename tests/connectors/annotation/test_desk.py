"""The desk of many annotators: one answer for each reply, whatever is repeated or restarted."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from connectors.annotation.annotators import SEEN_S, Progress
from connectors.annotation.cards import as_json
from connectors.annotation.desk import N_RESERVE, AnnotationDesk
from connectors.annotation.own_answers import CannotUndoError
from connectors.annotation.question_budget import QuestionBudget
from connectors.annotation.replies import BadReplyError, CardGoneError, DifferentBodyError, Reply
from connectors.wire.codec import decode, encode
from streamgp.base import Decision, Neighbour, QuestionsLeft
from streamgp.budgets import AtMost
from streamgp.interactive import (
    Answer,
    Cancel,
    Challenge,
    Event,
    Expired,
    InteractiveLoop,
    LabelledExample,
    LabelRequest,
    People,
    Prediction,
)
from streamgp.learners.gp_classifier import GPClassifier
from streamgp.query import SkepticalClassifier
from streamgp.query.strategies import AlwaysAsk, SkepticalChallenge
from tests.helpers.laws import examples

PEOPLE = ("ann", "bob", "cy")
LABELS = ("hall", "den", "spa")
ORDERS = ("useful", "newest", "oldest")


def request(event_id: str = "e1", *, at: float = 100.0, **fields: Any) -> LabelRequest:
    given = {
        "x": {"light": 0.5},
        "reason": "SkepticalAsk",
        "score": 0.3,
        "threshold": 0.1,
        "requested_at": at,
    }
    return LabelRequest(request_id=f"{event_id}/label", event_id=event_id, **{**given, **fields})


def challenge(event_id: str = "e1", *, at: float = 110.0, **fields: Any) -> Challenge:
    given = {
        "x": {"light": 0.5, "noise": 1.0},
        "reason": "SkepticalChallenge",
        "score": 0.87,
        "threshold": 0.1,
        "requested_at": at,
        "given": "hall",
        "suggested": "study",
        "probability_wrong": 0.87,
        "annotator": "ann",
    }
    return Challenge(request_id=f"{event_id}/challenge/1", event_id=event_id, **{**given, **fields})


def line(event_id: str, y: str) -> LabelledExample:
    return LabelledExample(
        event_id=event_id, sequence=1, x={}, y=y, origin="provided", learned_at=90.0
    )


def desk_with(*messages: Any, **options: Any) -> AnnotationDesk:
    desk = AnnotationDesk(**{"keyed": False, **options})
    for message in messages:
        desk.take(message)
    return desk


def test_questions_are_spread_over_what_was_predicted_the_most_doubtful_first() -> None:
    """Five hundred of one class do not come before the first of another."""
    desk = desk_with()
    for n in range(503):
        y = "hall" if n < 500 else "den"
        decision = Decision.of(0.9, 0.1, "SkepticalAsk")
        told = {"y": y, "proba": {y: 1.0}, "n_learned": 2, "at": 100.0, "decision": decision}
        asked = request(f"e{n}", at=100.0 + n, score=0.9 - n / 1000.0)
        # Whichever is read first.
        for message in ([Prediction(event_id=f"e{n}", **told), asked])[:: 1 if n % 2 else -1]:
            desk.take(message)
    cards = []
    for n in range(8):
        card = desk.next("ann", 700.0)
        assert card is not None
        ahead = desk.peek("ann", 700.0, after=card.id)
        cards.append(card.event_id)
        desk.reply("ann", say("spa", card=card.id, answer_id=f"c{n}"), 700.0 + n)
        following = desk.next("ann", 700.0 + n)
        assert ahead is not None
        assert following is not None
        assert ahead.event_id == following.event_id
    assert cards == ["e0", "e1", "e500", "e2", "e3", "e501", "e4", "e5"]
    ordered = [desk_with(*(request(f"e{n}", at=n) for n in range(3)), order=o) for o in ORDERS]
    firsts = [each.next("ann", 700.0) for each in ordered]
    assert [card and card.event_id for card in firsts] == ["e0", "e2", "e0"]


def test_labels_are_offered_before_anybody_has_given_one() -> None:
    """In their order, before those that were given; once each, a number and its text are two."""
    desk = desk_with(request("e1"), request("e2"), labels=("walking", "sitting", 2))
    card = desk.next("ann", 130.0)
    assert card is not None
    assert card.labels == ("walking", "sitting", 2)
    for answer_id, label in (("c1", "walking"), ("c2", "running")):
        card = desk.next("ann", 130.0)
        assert card is not None
        reply = say(label, card=card.id, answer_id=answer_id)
        assert desk.reply("ann", reply, 131.0).answer.y == label  # type: ignore[union-attr]
    assert desk.timeline.classes(None) == ["walking", "sitting", 2, "running"]
    numbers = desk_with(request("e1"), of_numbers=True, labels=())
    assert numbers.timeline.classes(None) == []


def test_an_offered_label_is_not_beside_the_same_that_was_given_decomposed() -> None:
    """Programs may give labels in any form; an annotator's choice joins theirs."""
    given = Answer(
        request_id="e1/label", event_id="e1", y="cafe\u0301", answered_at=120.0, answer_id="p"
    )
    desk = desk_with(request("e1"), request("e2"), given, labels=("hall", "caf\u00e9"))
    assert desk.timeline.classes(None) == ["hall", "cafe\u0301"]


def say(label: str, *, card: str = "e1/label", answer_id: str = "c1", **fields: Any) -> Reply:
    return Reply(card=card, answer_id=answer_id, action="label", label=label, **fields)


# --- the law: what is repeated is sent once, and a desk set up again is the one that was


class Town(RuleBasedStateMachine):
    """A worker, its topics, and a desk for three annotators that is restarted now and then."""

    def __init__(self) -> None:
        super().__init__()
        model = SkepticalClassifier(
            GPClassifier(), query=AlwaysAsk(), challenge=SkepticalChallenge(0.05), warm_up=0, seed=1
        )
        self.loop = InteractiveLoop(model, expires_after_s=500.0)
        self.said: list[Answer] = []
        self.asked: list[Any] = []
        self.learned: list[LabelledExample] = []
        self.rejected: list[Any] = []
        self.n_worked = 0
        self.n_events = 0
        self.n_replies = 0
        self.now = 1000.0
        self.desk = AnnotationDesk(keyed=False)
        self.replies: list[tuple[str, Reply]] = []

    def put(self, messages: list[Any]) -> None:
        for message in messages:
            if isinstance(message, LabelRequest | Challenge | Expired | Cancel):
                self.asked.append(message)
                self.desk.take(message)
            elif isinstance(message, LabelledExample):
                self.learned.append(message)
                self.desk.take(message)
            elif not isinstance(message, Prediction):
                self.rejected.append(message)

    def send(self, answer: Answer | None) -> None:
        if answer is not None:
            answer = decode(encode(answer))  # type: ignore[assignment]
            assert isinstance(answer, Answer)
            self.said.append(answer)

    @rule(n=st.integers(1, 3))
    def events_come(self, n: int) -> None:
        for _ in range(n):
            self.n_events += 1
            self.now += 1.0
            x = {"a": float(self.n_events % 3), "b": float(self.n_events % 2)}
            event = Event(event_id=f"e{self.n_events}", x=x, occurred_at=self.now)
            self.put(self.loop.on_event(event, self.now))

    @rule()
    def worker_takes_answers(self) -> None:
        for answer in self.said[self.n_worked :]:
            self.put(self.loop.on_answer(answer, answer.answered_at))
            self.desk.take(answer)  # the topic gives back what was sent
        self.n_worked = len(self.said)

    @rule(
        who=st.sampled_from(PEOPLE),
        label=st.sampled_from(LABELS),
        action=st.sampled_from(["label", "keep", "change", "decline"]),
    )
    def annotator_replies(self, who: str, label: str, action: Any) -> None:
        self.now += 1.0
        card = self.desk.next(who, self.now)
        if card is None:
            return
        if card.kind == "label" and action in ("keep", "change"):
            action = "label"
        self.n_replies += 1
        reply = Reply(
            card=card.id,
            answer_id=f"c{self.n_replies}",
            action=action,
            label=label if action == "label" else None,
            response_s=1.5,
            shown=("suggestion",),
        )
        accepted = self.desk.reply(who, reply, self.now)
        assert not accepted.again
        if accepted.answer is not None:
            self.replies.append((who, reply))
        self.send(accepted.answer)

    @precondition(lambda self: self.replies)
    @rule(data=st.data())
    def reply_is_repeated(self, data: Any) -> None:
        who, reply = data.draw(st.sampled_from(self.replies))
        self.now += 1.0
        assert self.desk.reply(who, reply, self.now).again

    @precondition(lambda self: self.replies)
    @rule(data=st.data())
    def answer_is_taken_back(self, data: Any) -> None:
        # That declining was taken back stands in no topic until the question is answered.
        of_labels = [said for said in self.replies if said[1].action != "decline"]
        if not of_labels:
            return
        who, reply = data.draw(st.sampled_from(of_labels))
        self.now += 1.0
        try:
            accepted = self.desk.undo(who, reply.answer_id, self.now)
        except CannotUndoError:
            return
        if not accepted.again:
            self.send(accepted.answer)

    @precondition(lambda self: self.replies)
    @rule(data=st.data(), label=st.sampled_from(LABELS))
    def answer_is_changed(self, data: Any, label: str) -> None:
        who = data.draw(st.sampled_from(PEOPLE))
        changeable = [past for past in self.desk.history(who, self.now) if past.can_change]
        if not changeable:
            return
        past = data.draw(st.sampled_from(changeable))
        self.now += 1.0
        accepted = self.desk.revise(who, past.answer_id, label, self.now)
        assert not accepted.again
        assert self.desk.revise(who, past.answer_id, label, self.now).again
        self.send(accepted.answer)

    @rule(who=st.sampled_from(PEOPLE), old=st.sampled_from(LABELS), new=st.sampled_from(LABELS))
    def label_is_renamed(self, who: str, old: str, new: str) -> None:
        if old == new or old not in self.desk.timeline.classes(None):
            return
        self.now += 1.0
        for accepted in self.desk.rename(who, None, old, new, self.now):
            self.send(accepted.answer)

    @rule(seed=st.randoms(use_true_random=False))
    def server_restarts(self, seed: Any) -> None:
        """The topics are read again, each in its order, mixed with the others as it happens."""
        self.desk = self.rebuilt(seed)

    def rebuilt(self, rng: Any) -> AnnotationDesk:
        topics: list[list[Any]] = [list(self.asked), list(self.said), list(self.learned)]
        desk = AnnotationDesk(keyed=False)
        while any(topics):
            desk.take(rng.choice([topic for topic in topics if topic]).pop(0))
        return desk

    @invariant()
    def nothing_is_sent_twice(self) -> None:
        ids = [answer.answer_id for answer in self.said]
        assert len(ids) == len(set(ids))

    @invariant()
    def worker_can_use_whatever_the_desk_has_accepted(self) -> None:
        assert self.rejected == []

    @invariant()
    def nobody_answers_under_another_name(self) -> None:
        names = {f"page/{who}/{reply.answer_id}": who for who, reply in self.replies}
        assert all(answer.annotator == names.get(answer.answer_id, answer.annotator)
                   for answer in self.said)  # fmt: skip

    @invariant()
    def desk_set_up_anew_is_the_one_that_was(self) -> None:
        if self.n_worked < len(self.said):
            return
        other = self.rebuilt(Random(self.n_events))
        for who in PEOPLE:
            assert _state(other, who, self.now) == _state(self.desk, who, self.now)


def _state(desk: AnnotationDesk, who: str, now: float) -> Any:
    history = [(past.answer_id, past.label, past.can_change) for past in desk.history(who, now)]
    progress = desk.progress(who, now)
    counts = (progress.answered, progress.kept, progress.changed)
    moments = [(m.event_id, m.label) for m in desk.timeline.between(None, 0.0, 1e12)]
    return history, counts, moments


TestTown = Town.TestCase
TestTown.settings = settings(examples(20), stateful_step_count=25)


# --- leases


def test_a_card_is_kept_for_one_annotator_for_a_minute() -> None:
    desk = desk_with(request("e1", at=1.0), request("e2", at=2.0))
    first = desk.next("ann", 10.0)
    assert first is not None
    assert (first.id, first.lease_until) == ("e1/label", 70.0)
    other = desk.next("bob", 11.0)
    assert other is not None
    assert other.id == "e2/label"
    assert desk.next("cy", 12.0) is None


def test_a_lease_is_renewed_and_ends() -> None:
    desk = desk_with(request("e1", at=1.0))
    desk.next("ann", 10.0)
    renewed = desk.next("ann", 60.0)
    assert renewed is not None
    assert renewed.lease_until == 120.0
    assert desk.next("bob", 119.9) is None
    free = desk.next("bob", 120.0)
    assert free is not None
    assert free.id == "e1/label"


def test_a_card_of_ones_own_stays_in_front_when_a_challenge_comes() -> None:
    desk = desk_with(request("e1"))
    desk.next("ann", 120.0)
    desk.take(challenge("e2"))
    again, ahead = desk.next("ann", 121.0), desk.peek("ann", 121.0, after="e1/label")
    assert again is not None
    assert ahead is not None
    assert (again.id, ahead.id, ahead.lease_until) == ("e1/label", "e2/challenge/1", None)


def test_an_answer_for_a_card_of_another_counts_unless_that_one_has_answered() -> None:
    desk = desk_with(request("e1"), request("e2"))
    desk.next("ann", 120.0)
    accepted = desk.reply("bob", say("hall"), 121.0)
    assert accepted.answer is not None
    assert accepted.answer.annotator == "bob"
    with pytest.raises(CardGoneError, match="card e1/label waits for no answer any more"):
        desk.reply("ann", say("den"), 122.0)


def test_a_skipped_card_comes_last_and_is_free_for_others() -> None:
    desk = desk_with(request("e1", at=1.0), request("e2", at=2.0))
    desk.next("ann", 10.0)
    desk.skip("ann", "e1/label", 11.0)
    ids = []
    for who in ("ann", "bob"):
        card = desk.next(who, 12.0)
        assert card is not None
        ids.append(card.id)
    assert ids == ["e2/label", "e1/label"]
    with pytest.raises(CardGoneError):
        desk.skip("ann", "e9/label", 12.0)


def test_only_the_cards_of_one_key_are_shown_to_who_may_see_no_other() -> None:
    desk = desk_with(request("e1", key="a/b"), request("e2", key="c"), keyed=True)
    card = desk.next("ann", 120.0, only_key="a/b")
    assert card is not None
    assert (card.id, card.key) == ("a%2Fb/e1/label", "a/b")
    assert desk.peek("ann", 120.0, after=card.id, only_key="a/b") is None
    assert desk.progress("ann", 120.0, only_key="a/b").waiting == 1
    assert desk.progress("ann", 120.0).waiting == 2


# --- replies


def test_another_body_under_the_same_id_is_refused_also_after_a_restart() -> None:
    desk = desk_with(request("e1"), request("e2"))
    reply = say("hall", response_s=2.0, note="dark")
    accepted = desk.reply("ann", reply, 120.0)
    assert accepted.answer is not None
    again = desk_with(request("e1"), request("e2"), decode(encode(accepted.answer)))
    others = [
        say("den", response_s=2.0, note="dark"),
        say("hall", response_s=2.5, note="dark"),
        say("hall", response_s=2.0),
        say("hall", card="e2/label", response_s=2.0, note="dark"),
        Reply(card="e1/label", answer_id="c1", action="decline", response_s=2.0, note="dark"),
    ]
    for place in (desk, again):
        assert place.reply("ann", reply, 130.0).again
        for other in others:
            with pytest.raises(DifferentBodyError, match="another reply came with answer_id 'c1'"):
                place.reply("ann", other, 131.0)


def test_a_challenge_that_was_upheld_is_not_given_in_to_under_the_same_id() -> None:
    card, read = "e1/challenge/1", [challenge("e1")]
    desk = desk_with(*read)
    keep = Reply(card=card, answer_id="c1", action="keep")
    accepted = desk.reply("ann", keep, 120.0)
    assert accepted.answer is not None
    for place in (desk, desk_with(*read, accepted.answer)):
        assert place.reply("ann", keep, 130.0).again
        with pytest.raises(DifferentBodyError, match="another reply came with answer_id 'c1'"):
            place.reply("ann", Reply(card=card, answer_id="c1", action="change"), 131.0)


def test_the_same_id_of_another_annotator_is_another_reply() -> None:
    desk = desk_with(request("e1"), request("e2"))
    answers = [
        desk.reply("a/1", say("hall"), 120.0).answer,
        desk.reply("a", say("hall", card="e2/label"), 120.0).answer,
    ]
    assert [answer.answer_id for answer in answers if answer] == ["page/a%2F1/c1", "page/a/c1"]


def test_everything_that_is_known_of_an_answer_goes_with_it() -> None:
    desk = desk_with(request("e1"), request("e2"))
    fields = {"confidence": 4, "response_s": 3.0, "shown": ("suggestion",), "flag": True}
    answer = desk.reply("ann", say("hall", note="dark", **fields), 120.0).answer
    assert answer is not None
    assert answer.privileged == {"response_s": 3.0, "confidence": 0.75}
    assert (answer.shown, answer.flag, answer.note) == (("suggestion",), True, "dark")
    declined = Reply(card="e2/label", answer_id="c2", action="decline", why_not="unclear")
    answer = desk.reply("ann", declined, 121.0).answer
    assert answer is not None
    assert (answer.declined, answer.reason, answer.privileged) == (True, "unclear", None)


def test_declining_once_more_is_known_by_its_own_id() -> None:
    desk = desk_with(request("e1"))
    first, second = (
        Reply(card="e1/label", answer_id=name, action="decline", response_s=n)
        for name, n in (("c1", 2.0), ("c2", 1.0))
    )
    desk.reply("ann", first, 120.0)
    desk.undo("ann", "c1", 121.0)
    assert desk.reply("ann", second, 122.0).answer is None  # nothing has changed for the workers
    assert desk.reply("ann", second, 123.0).again
    assert [one.answer_id for one in desk.history("ann", 124.0)] == ["c1"]
    assert desk.next("ann", 124.0) is None
    desk.undo("ann", "c2", 125.0)
    card = desk.next("ann", 126.0)
    assert card is not None
    assert card.supersedes is not None


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"action": "keep"}, "action 'keep' for a question that is no challenge; expected label"),
        ({"action": "label"}, "action 'label'; expected label with a value in 'label'"),
        ({"action": "number", "number": 1.0}, "action 'number'; expected label with"),
        ({"label": float("nan")}, "label is nan; expected a string, a boolean or a number"),
        ({"label": 2**63}, "label is 9223372036854775808; expected a string, a boolean or"),
        ({"label": 1e101}, r"label is 1e\+101; .* a number, at most 1e\+100 in size"),
        ({"label": 10**400}, "label is 1000000000"),
        ({"label": " "}, "label is ' '; expected a label has at least one character"),
        (
            {"label": "x", "std": 1.0},
            "std is 1.0; expected a number above 0, .* with action number",
        ),
        ({"label": "x", "number": 1.0, "std": 1.0}, "std is 1.0; expected a number above 0"),
        ({"label": "x", "shown": 17 * ("a",)}, "shown is too long; expected at most 16 short"),
    ],
)
def test_a_reply_that_cannot_be_is_refused_and_changes_nothing(fields: Any, what: str) -> None:
    desk = desk_with(request("e1"))
    given = {"card": "e1/label", "answer_id": "c1", "action": "label", **fields}
    with pytest.raises(BadReplyError, match=what):
        desk.reply("ann", Reply(**given), 120.0)
    assert desk.progress("ann", 121.0) == Progress(
        waiting=1, oldest_s=21.0, answered=0, today=0, seconds_per_question=None, per_minute=None,
        kept=0, changed=0,
    )  # fmt: skip


def test_labels_keep_their_types_though_json_has_fewer() -> None:
    lines = [
        LabelledExample(event_id=f"e{i}", sequence=i, x={}, y=y, origin="asked", learned_at=1.0)
        for i, y in enumerate([1.0, 7, "Hall"], start=5)
    ]
    found = []
    for i, said in enumerate([1, 7.0, "hall", "7", True]):
        desk = desk_with(*lines, request("e1"))
        answer = desk.reply("ann", Reply(card="e1/label", answer_id=f"c{i}", action="label",
                                         label=said), 120.0).answer  # fmt: skip
        assert answer is not None
        found.append(repr(answer.y))
    assert found == ["1.0", "7", "'Hall'", "7", "True"]


def test_labels_of_other_keys_are_offered_but_to_those_who_see_one_key_alone() -> None:
    told = {"x": {}, "origin": "asked", "learned_at": 1.0}
    lines = [
        LabelledExample(event_id=f"e{i}", sequence=i, key=key, y=y, **told)
        for i, (key, y) in enumerate([("a", "hall"), ("b", "den"), ("b", "hall"), ("b", "2")], 5)
    ]
    desk = desk_with(*lines, request("e1", key="a"), keyed=True)
    card = desk.next("ann", 120.0)
    assert card is not None
    assert (card.labels, card.labels_elsewhere) == (("hall",), ("2", "den"))
    only = desk.card("ann", card.id, 120.0, only_key="a")
    assert only is not None
    assert (only.labels, only.labels_elsewhere) == (("hall",), ())
    # It keeps its type, where a text like a number would be one.
    reply = Reply(card=card.id, answer_id="c1", action="label", label="2")
    answer = desk.reply("ann", reply, 121.0).answer
    assert answer is not None
    assert answer.y == "2"


def test_who_sees_one_key_alone_learns_no_label_of_another_by_typing() -> None:
    def typed(elsewhere: Any, only_key: str | None) -> Any:
        line = LabelledExample(
            event_id="e5", sequence=5, key="b", x={}, y=elsewhere, origin="asked", learned_at=1.0
        )
        desk = desk_with(line, request("e1", key="a"), keyed=True)
        reply = Reply(card="a/e1/label", answer_id="c1", action="label", label="den")
        answer = desk.reply("ann", reply, 121.0, only_key=only_key).answer
        return None if answer is None else answer.y

    assert (typed("Den", None), typed("Den", "a")) == ("Den", "den")
    with pytest.raises(BadReplyError, match="the labels here are 7"):
        typed(7, None)
    assert typed(7, "a") == "den"


def test_challenges_are_kept_changed_or_answered_by_another_label() -> None:
    said = {}
    for action in ("keep", "change", "label", "decline"):
        desk = desk_with(challenge())
        reply = Reply(
            card="e1/challenge/1",
            answer_id="c1",
            action=action,  # type: ignore[arg-type]
            label="spa" if action == "label" else None,
        )
        answer = desk.reply("ann", reply, 120.0).answer
        assert answer is not None
        progress = desk.progress("ann", 121.0)
        said[action] = (answer.y, progress.kept, progress.changed)
    assert said == {
        "keep": ("hall", 1, 0),
        "change": ("study", 0, 1),
        "label": ("spa", 0, 1),
        "decline": (None, 0, 0),
    }


def test_numbers_are_asked_with_unit_and_range() -> None:
    desk = desk_with(request("e1"), of_numbers=True, unit="lux", value_range=(0.0, 9.0))
    card = desk.next("ann", 120.0)
    assert card is not None
    assert (card.kind, card.of_numbers, card.labels) == ("number", True, ())
    assert (card.unit, card.range) == ("lux", (0.0, 9.0))
    reply = Reply(card=card.id, answer_id="c1", action="number", number=21, std=0.5)
    answer = desk.reply("ann", reply, 121.0).answer
    assert answer is not None
    assert (repr(answer.y), answer.std) == ("21.0", 0.5)


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"number": -1e101}, r"number is -1e\+101; expected a number of at most 1e\+100 in size"),
        ({"number": 1.0, "std": 1e101}, r"std is 1e\+101; expected a number above 0, at most 1e"),
    ],
)
def test_a_number_that_the_workers_would_refuse_is_refused(fields: Any, what: str) -> None:
    desk = desk_with(request("e1"), of_numbers=True)
    with pytest.raises(BadReplyError, match=what):
        desk.reply("ann", Reply(card="e1/label", answer_id="c1", action="number", **fields), 121.0)
    assert desk.progress("ann", 121.0).waiting == 1


CAFE, CAFE_OF_TWO = "caf\u00e9", "cafe\u0301"


@pytest.mark.parametrize("known", [CAFE, CAFE_OF_TWO, "CAF\u00c9"])
@pytest.mark.parametrize("typed", [CAFE, CAFE_OF_TWO])
def test_a_letter_written_as_two_characters_makes_no_other_label(known: str, typed: str) -> None:
    desk = desk_with(request("e1"), line("e0", known))
    answer = desk.reply("ann", say(typed), 120.0).answer
    assert answer is not None
    assert answer.y == (typed if typed == known else known)
    assert len(desk.timeline.classes(None)) == 1


@pytest.mark.parametrize(
    ("label", "reason"),
    [
        (
            "kit\u200bchen",
            "label holds what cannot be seen: U\\+200B; expected characters",
        ),
        ("\u202enehctik", "label holds what cannot be seen: U\\+202E"),
        ('"kit\\u200bchen"', "label holds what cannot be seen: U\\+200B"),
        (201 * "x", "label has 201 characters; expected at most 200 in a new label"),
    ],
)
def test_a_new_label_can_be_read_and_one_that_is_there_is_taken_as_it_is(
    label: str, reason: str
) -> None:
    desk = desk_with(request("e1"), line("e0", "hall"))
    with pytest.raises(BadReplyError, match=reason):
        desk.reply("ann", say(label), 120.0)
    if not label.startswith('"'):
        desk.take(line("e2", label))
        answer = desk.reply("ann", say(label), 120.0).answer
        assert answer is not None
        assert answer.y == label


def test_no_more_labels_are_made_than_the_workers_take() -> None:
    people = People(max_labels=2)
    desk = desk_with(request("e1"), line("e0", "hall"), line("e2", "den"), people=people)
    with pytest.raises(BadReplyError, match="label is new, and there are 2 already"):
        desk.reply("ann", say("attic"), 120.0)
    assert desk.reply("ann", say("Den"), 121.0).answer.y == "den"  # type: ignore[union-attr]
    with pytest.raises(BadReplyError, match="label is new, and there are 2 already"):
        desk.rename("ann", None, "den", "attic", 122.0)


# --- taking back, changing, renaming


def test_undo_says_why_not() -> None:
    desk = desk_with(request("e1"), answer_horizon_s=100.0)
    desk.reply("ann", say("hall"), 120.0)
    with pytest.raises(CannotUndoError, match="answer c9 of ann is not known here"):
        desk.undo("ann", "c9", 121.0)
    with pytest.raises(CannotUndoError, match="of bob is not known here"):
        desk.undo("bob", "page/ann/c1", 121.0)
    [past] = desk.history("ann", 200.0)
    assert (past.label, past.can_change, past.why_not) == ("hall", True, None)
    [past] = desk.history("ann", 201.0)
    assert past.why_not == {
        "code": "forgotten",
        "text": "event e1 is too long ago: the workers have forgotten it",
    }
    with pytest.raises(CannotUndoError, match="too long ago") as caught:
        desk.undo("ann", "c1", 201.0)
    assert caught.value.code == "forgotten"


def test_an_answer_that_was_taken_back_is_asked_again_and_once() -> None:
    desk = desk_with(request("e1"))
    first = desk.reply("ann", say("hall"), 120.0).answer
    back = desk.undo("ann", "c1", 121.0)
    assert first is not None
    assert back.answer is not None
    assert (back.answer.answer_id, back.answer.supersedes) == ("page/ann/c1/undo", "page/ann/c1")
    assert desk.undo("ann", "c1", 122.0).again
    assert desk.next("bob", 123.0) is None
    card = desk.next("ann", 123.0)
    assert card is not None
    assert card.supersedes
    assert desk.history("ann", 123.0) == []
    second = desk.reply("ann", say("den", answer_id="c2"), 124.0).answer
    assert second is not None
    assert second.supersedes == "page/ann/c1/undo"


def test_an_answer_is_changed_once_by_each_revision() -> None:
    desk = desk_with(request("e1"))
    desk.reply("ann", say("hall"), 120.0)
    revised = desk.revise("ann", "c1", "den", 121.0)
    assert revised.answer is not None
    assert (revised.answer.y, revised.answer.supersedes) == ("den", "page/ann/c1")
    assert desk.revise("ann", "c1", "den", 122.0).again
    with pytest.raises(DifferentBodyError, match="was changed to another label already"):
        desk.revise("ann", "c1", "spa", 122.0)
    [past] = desk.history("ann", 123.0)
    assert (past.answer_id, past.label) == ("page/ann/c1/revise", "den")
    assert desk.revise("ann", past.answer_id, "spa", 124.0).answer is not None


def test_a_misspelt_label_is_renamed_and_no_choice_any_more() -> None:
    desk = desk_with(*(request(f"e{i}", at=100.0 + i) for i in range(4)))
    for i, label in enumerate(["kithcen", "kitchen", "kithcen"]):
        desk.reply("ann", say(label, card=f"e{i}/label", answer_id=f"c{i}"), 120.0)
    desk.reply("bob", say("kithcen", card="e3/label"), 120.0)
    renamed = [a.answer for a in desk.rename("ann", None, "kithcen", "kitchen", 130.0)]
    assert [(a.event_id, a.y, a.annotator, a.supersedes) for a in renamed if a] == [
        ("e0", "kitchen", "ann", "page/ann/c0"),
        ("e2", "kitchen", "ann", "page/ann/c2"),
    ]
    assert desk.timeline.classes(None) == ["kitchen", "kithcen"]  # of bob's
    assert len(desk.rename("eve", None, "kithcen", "kitchen", 131.0)) == 0
    [by_supervisor] = desk.rename("eve", None, "kithcen", "kitchen", 132.0, of_everyone=True)
    assert by_supervisor.answer is not None
    assert by_supervisor.answer.annotator == "eve"
    assert desk.timeline.classes(None) == ["kitchen"]
    with pytest.raises(BadReplyError, match="old is 'kithcen'; expected one of the labels"):
        desk.rename("ann", None, "kithcen", "kitchen", 133.0)
    with pytest.raises(BadReplyError, match="new is the old label, 'kitchen'; expected another"):
        desk.rename("ann", None, "kitchen", "kitchen", 133.0)


def test_a_label_that_was_taken_back_is_no_choice_any_more() -> None:
    desk = desk_with(request("e1"))
    desk.reply("ann", say("hlal"), 120.0)
    assert desk.timeline.classes(None) == ["hlal"]
    desk.undo("ann", "c1", 121.0)
    assert desk.timeline.classes(None) == []


# --- cards


def test_a_challenge_says_who_gave_the_label_and_shows_what_differs() -> None:
    near = tuple(
        Neighbour(event_id=f"e{i}", x={"light": 0.5, "noise": float(i)}, y="study", distance=0.1)
        for i in range(5, 9)
    )
    desk = desk_with(
        request("e1"), request("e5", at=50.0), people=People(supervisors=frozenset(["bob"]))
    )
    desk.reply("ann", say("study", card="e5/label", answer_id="c0"), 60.0)
    desk.reply("ann", say("hall"), 105.0)
    desk.take(challenge(at=105.0, neighbours=near))
    card = desk.next("ann", 150.0)
    assert card is not None
    assert (card.kind, card.given, card.given_by, card.given_at) == (
        "challenge", "hall", "you", 105.0,
    )  # fmt: skip
    assert (card.suggested, card.suggested_share) == ("study", 0.87)
    assert card.why == {
        "code": "doubtful",
        "share": 0.87,
        "text": "the label does not fit what was learned before",
    }
    assert [(one["event_id"], one["label"], one["when"]) for one in card.examples] == [
        ("e5", "study", 50.0), ("e6", "study", None), ("e7", "study", None),
    ]  # fmt: skip
    assert card.examples[0]["x"] == [{"name": "noise", "value": 5.0, "differs": True}]
    assert [one["answer_id"] for one in card.examples] == ["c0", None, None]
    other = desk.card("bob", card.id, 151.0)
    assert other is not None
    assert (other.given_by, other.lease_until) == ("ann", None)
    assert [one["answer_id"] for one in other.examples] == [None, None, None]
    assert desk.card("cy", card.id, 151.0) is None
    with pytest.raises(CardGoneError, match="card e1/challenge/1 waits for no answer any more"):
        desk.reply("cy", Reply(card=card.id, answer_id="c3", action="keep"), 151.0)
    with pytest.raises(CardGoneError):
        desk.skip("cy", card.id, 151.0)
    revised = desk.revise("ann", "page/ann/c0", "hall", 152.0).answer
    again = desk.card("ann", card.id, 153.0)
    assert again is not None
    assert revised is not None
    assert again.examples[0]["answer_id"] == revised.answer_id
    desk.undo("ann", revised.answer_id, 154.0)
    undone = desk.card("ann", card.id, 155.0)
    assert undone is not None
    assert undone.examples[0]["answer_id"] is None
    assert as_json(card)["previous"] == {"event_id": "e5", "label": "study", "at": 50.0}


def test_a_prediction_tells_how_sure_it_was() -> None:
    shares = {"cycling": 0.41, "walking": 0.44, "tram": 0.15}
    decision = Decision(ask=True, score=0.3, threshold=0.1, criterion="SkepticalAsk")
    prediction = Prediction(
        event_id="e1", y="walking", proba=shares, decision=decision, n_learned=9, at=99.0
    )
    for messages in ([prediction, request()], [request(), prediction]):
        card = desk_with(*messages).next("ann", 120.0)
        assert card is not None
        assert card.why["text"] == "not sure: walking 44 %, cycling 41 %"
        assert (card.suggested, card.suggested_share) == ("walking", 0.44)


def test_the_raw_excerpt_and_the_track_stand_on_the_card() -> None:
    excerpt = {"lat": [52.5, 52.6], "lon": [13.4, 13.5], "acc": [0.0, 1.0]}
    card = desk_with(decode(encode(request("e1", excerpt=excerpt)))).next("ann", 120.0)
    assert card is not None
    assert card.excerpt == excerpt
    assert card.track == [[52.5, 13.4], [52.6, 13.5]]


# --- what is shown beside the question


def test_the_day_of_a_key_holds_what_was_answered_by_the_time_of_the_events() -> None:
    desk = desk_with(*(request(f"e{i}", at=200.0, occurred_at=float(i)) for i in range(5)))
    for i in (3, 1):
        desk.reply("ann", say(LABELS[i % 2], card=f"e{i}/label", answer_id=f"c{i}"), 210.0 - i)
    desk.take(challenge("e1", at=209.0))
    moments = desk.timeline.between(None, 0.0, 3.5)
    assert [(m.event_id, m.occurred_at, m.label, m.annotator) for m in moments] == [
        ("e1", 1.0, "den", "ann"), ("e3", 3.0, "den", "ann"),
    ]  # fmt: skip
    assert desk.timeline.between(None, 0.0, 1.0) == []
    card = desk.card("bob", "e2/label", 220.0)
    assert card is not None
    assert (card.previous or {})["event_id"] == "e1"
    assert (card.following or {})["event_id"] == "e3"


def test_progress_counts_and_tells_the_pace() -> None:
    desk = desk_with(*(request(f"e{i}", at=100.0 + i) for i in range(6)))
    for i, at in enumerate([90_000.0, 90_010.0, 90_020.0, 95_000.0, 95_030.0]):
        desk.reply("ann", say("hall", card=f"e{i}/label", answer_id=f"c{i}"), at)
    progress = desk.progress("ann", 95_100.0, day_start=95_000.0)
    assert (progress.waiting, progress.oldest_s) == (1, 94_995.0)
    assert (progress.answered, progress.today) == (5, 2)
    assert (progress.seconds_per_question, progress.per_minute) == (10.0, 6.0)
    assert desk.progress("ann", 95_100.0).today == 5  # since midnight, 86 400 s


def test_others_are_who_was_here_in_the_last_two_minutes() -> None:
    desk = desk_with(request())
    for at, who in enumerate(PEOPLE):
        desk.next(who, float(at))
    assert desk.others(120.0, than="bob") == ["ann", "cy"]
    assert desk.others(121.0, than="bob") == ["cy"]
    assert desk.others(-3600.0, than="bob") == []  # the clock was set back


def test_a_forgotten_key_leaves_nothing() -> None:
    desk = desk_with(keyed=True)
    desk.take(request(key="a"), at=10.0)
    desk.reply("ann", say("hall", card="a/e1/label"), 110.0)
    desk.forget("a", at=200.0)
    assert desk.timeline.classes("a") == []
    assert desk.history("ann", 210.0) == []
    assert desk.timeline.between("a", 0.0, 1e9) == []
    with pytest.raises(CannotUndoError, match="not known here"):
        desk.undo("ann", "c1", 210.0)


def test_what_was_written_before_a_key_was_forgotten_counts_no_more_if_it_is_read_later() -> None:
    """As after a restart, when it is known from the start which keys were forgotten."""
    asked, at = request(key="a"), 150.0
    answered = Answer(
        request_id="e1/label",
        event_id="e1",
        key="a",
        y="hall",
        annotator="ann",
        answered_at=at,
        answer_id="page/ann/c1",
    )
    predicted = Prediction(
        event_id="e1",
        key="a",
        y="hall",
        proba={"hall": 1.0},
        n_learned=2,
        at=100.0,
        decision=Decision.of(0.9, 0.1, "SkepticalAsk"),
    )
    desk = desk_with(keyed=True, budget=QuestionBudget(of_key=AtMost(3)))
    desk.forget("a", at=200.0)
    for message in (asked, answered, predicted):
        desk.take(message, at=at)
    progress = desk.progress("ann", 210.0, only_key="a")
    assert (progress.answered, progress.budget_left) == (0, QuestionsLeft(left=3, of=3))
    with pytest.raises(CannotUndoError, match="not known here"):
        desk.undo("ann", "c1", 210.0)
    desk.take(asked, at=210.0)
    card = desk.next("ann", 220.0)
    assert card is not None
    assert card.suggested is None
    progress = desk.progress("ann", 220.0, only_key="a")
    assert progress.budget_left == QuestionsLeft(left=2, of=3)


def test_an_answer_under_the_id_of_another_annotator_takes_nothing_from_them() -> None:
    desk = desk_with(request())
    stolen = Answer(
        answer_id="page/ann/c1", event_id="e9", y="den", annotator="bob", answered_at=101.0
    )
    desk.take(stolen)
    accepted = desk.reply("ann", say("hall"), 110.0)
    assert not accepted.again
    assert accepted.answer is not None
    assert accepted.answer.answer_id == stolen.answer_id
    assert [past.label for past in desk.history("ann", 120.0)] == ["hall"]


def test_a_reserve_is_of_all_questions_for_one_annotator_alone() -> None:
    desk = desk_with(*(request(f"e{n:02}", at=100.0 + n) for n in range(2 * N_RESERVE)))
    current = desk.next("ann", 150.0)
    assert current is not None
    reserve = desk.reserve("ann", 150.0)
    assert reserve == [f"e{n:02}/label" for n in range(N_RESERVE)]
    cards = [desk.card("ann", card_id, 150.0) for card_id in reserve]
    assert [card and card.lease_until for card in cards] == [current.lease_until, *[None] * 7]


def test_a_reserve_holds_nothing_that_others_may_answer_meanwhile() -> None:
    again = replace(request("e9"), request_id="e9/label/again", annotator="ann")
    desk = desk_with(request("e1"), request("e2"), challenge("e3", annotator="ann"), again)
    desk.reply("ann", say("hall", card="e2/label"), 140.0)
    desk.undo("ann", "c1", 141.0)
    desk.next("bob", 150.0)
    mine = {"e2/label", "e3/challenge/1", "e9/label/again"}
    assert set(desk.reserve("ann", 151.0)) == mine
    assert desk.reserve("bob", 151.0) == []
    assert set(desk.reserve("ann", 150.0 + 2 * SEEN_S)) == {*mine, "e1/label"}
