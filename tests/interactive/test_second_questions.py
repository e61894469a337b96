"""Second questions: of whom they are asked, what comes of the answers, and laws about them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp import GPClassifier, GPRegressor, SkepticalClassifier, SkepticalRegressor, isgp, query
from streamgp.common.annotator_quarantine import HEAD_START
from streamgp.interactive import (
    Answer,
    Cancel,
    Event,
    Expired,
    InteractiveLoop,
    KeyedLoops,
    LabelledExample,
    LabelRequest,
    People,
    Rejected,
    examples_in,
    moderator,
)
from streamgp.interactive.consensus_log import by_event, in_force, last_answer
from streamgp.interactive.messages import ASKED_AGAIN, SAME_ANNOTATOR, SECOND_ANNOTATOR
from streamgp.interactive.rebuild import recovered_parts
from streamgp.interactive.retracted_log import without
from streamgp.interactive.teaching import teach
from tests.helpers.laws import examples
from tests.interactive.scripted import ComparingLearner, JudgingLearner, ScriptedTalk
from tests.interactive.stories import Story, told
from tests.interactive.topics import SPANS, StateChangelog

ANN, BOB, DAN, EVE = "ann", "bob", "dan", "eve"
OVERLAP, REPEAT = People(overlap=1.0), People(repeat=1.0)


def talk(people=OVERLAP, **options):
    """A loop that asks about every event a second time."""
    learner = ComparingLearner(proba={"b": 0.6, "a": 0.4})
    learner.drawn = 0.0
    return ScriptedTalk(learner, people=people, **options)


def asked(conversation, y="a", name="e", at=1.0):
    """Let ann label an event; return the second question."""
    conversation.event(name)
    line, *rest = conversation.answer(name, y, "label", at, annotator=ANN)
    assert isinstance(line, LabelledExample)
    return rest


def line_of(messages):
    [line] = messages
    assert isinstance(line, LabelledExample)
    return line.y, line.origin, line.annotator, line.given, line.revision


# --- who is asked


def test_another_annotator_is_asked_blind_as_soon_as_the_label_is_learned():
    conversation = talk(expires_after_s=10.0)
    [request] = asked(conversation, "secret")
    assert request == LabelRequest(
        request_id="e/label/second",
        event_id="e",
        x={"f": 0.0},
        reason=SECOND_ANNOTATOR,
        score=0.0,
        threshold=0.0,
        requested_at=1.0,
        expires_at=11.0,
        occurred_at=0.0,
        excluded=(ANN,),
    )
    assert conversation.loop.open_requests() == ["e/label/second"]
    assert "secret" not in repr(request)


def test_the_same_annotator_is_asked_when_twenty_more_labels_are_learned():
    conversation = talk(REPEAT)
    assert asked(conversation) == []
    for n in range(moderator.LATER):
        assert conversation.loop.open_requests() == []
        messages = conversation.event(f"f{n}", at=float(n), y="a")
    request = messages[-1]
    assert (request.request_id, request.reason) == ("e/label/again", SAME_ANNOTATOR)
    assert (request.annotator, request.excluded) == (ANN, ())
    [rejected] = conversation.answer("e", "a", "label/again", 30.0, annotator=BOB)
    assert (rejected.fault, rejected.reason) == (
        "unauthorised",
        "the second question is for 'ann' alone, got 'bob'",
    )
    assert line_of(conversation.answer("e", "b", "label/again", 30.0, annotator=ANN)) == (
        "b", "aggregated", ANN, None, 1,
    )  # fmt: skip
    # Two answers of one annotator tell nothing of how often the annotator errs.
    assert not [call for call in conversation.learner.calls if call[0] == "note_second"]


@pytest.mark.parametrize("is_given_anew", [False, True])
def test_nobody_is_asked_again_about_a_label_that_is_now_another_annotators(is_given_anew):
    conversation = talk(replace(REPEAT, supervisors=frozenset([EVE])))
    asked(conversation)
    if is_given_anew:
        conversation.answer("e", None, annotator=ANN, supersedes="a1")
        line = conversation.answer("e", "b", annotator=BOB)
    else:
        line = conversation.answer("e", "b", annotator=EVE, supersedes="a1")
    assert line_of(line)[0] == "b"
    for n in range(2 * moderator.LATER):
        conversation.event(f"f{n}", at=float(n), y="a")
    assert conversation.loop.open_requests() == []


@pytest.mark.parametrize("annotator", [ANN, None])
@pytest.mark.parametrize("request_", ["label/second", None])
@pytest.mark.parametrize("y", ["a", None])
def test_annotators_who_have_answered_or_have_no_name_are_no_second_annotators(
    annotator, request_, y
):
    conversation = talk()
    asked(conversation)
    [rejected] = conversation.answer("e", y, request_, annotator=annotator)
    assert (rejected.fault, conversation.state("e")) == ("unauthorised", "compared")
    assert "an annotator other than 'ann'" in rejected.reason


def test_labels_without_a_name_are_not_compared():
    conversation = talk()
    conversation.event("e")
    assert len(conversation.answer("e", "a", "label")) == 1


def test_labels_that_came_unasked_are_not_compared():
    conversation = talk()
    conversation.learner.asks = False
    conversation.event("e")
    assert len(conversation.answer("e", "a", annotator=ANN)) == 1


@pytest.mark.parametrize(
    ("wrong", "y", "people", "is_asked"),
    [
        (0.95, "a", People(overlap=0.001), True),
        (0.9, "a", People(overlap=0.001), False),
        (0.95, "c", People(overlap=0.001), False),
        (0.95, "a", People(repeat=0.001), False),
    ],
)
def test_an_improbable_label_that_is_upheld_goes_to_another_annotator(wrong, y, people, is_asked):
    conversation = talk(people)
    conversation.learner.drawn, conversation.learner.contests = 0.5, True
    conversation.learner.probability_wrong_one = lambda *_, **__: wrong
    conversation.event("e")
    conversation.answer("e", "a", "label", annotator=ANN)
    _, *rest = conversation.answer("e", y, "challenge/1", annotator=ANN)
    assert [request.request_id for request in rest] == ["e/label/second"] * is_asked


def test_draws_are_those_of_seed_and_event_whatever_came_before():
    def asked_twice(names):
        loop = InteractiveLoop(
            SkepticalClassifier(GPClassifier(), query.AlwaysAsk(), query.NeverChallenge(), seed=3),
            people=People(overlap=0.3),
        )
        found = set()
        for n, name in enumerate(names):
            loop.on_event(Event(event_id=name, x={"f": float(n % 7)}, occurred_at=n), n)
            answer = Answer(
                answer_id=name, event_id=name, y="a", annotator=ANN, answered_at=float(n)
            )
            messages = loop.on_answer(answer, n)
            found |= {m.event_id for m in messages if isinstance(m, LabelRequest)}
        return found

    names = [f"e{n}" for n in range(200)]
    found = asked_twice(names)
    assert found == asked_twice(names[::-1])
    assert 40 <= len(found) <= 80


def test_no_second_question_is_asked_beyond_the_limit_of_open_ones():
    conversation = talk(open_at_most=2)
    for name in ("e", "f", "g"):
        conversation.learner.asks = lambda event_id: event_id != "g"
        conversation.event(name)
    assert len(conversation.answer("e", "a", "label", annotator=ANN)) == 2
    assert conversation.loop.open_requests() == ["e/label/second", "f/label"]
    conversation.learner.asks = True
    conversation.event("h")
    assert conversation.loop.n_open == 2  # another label request has made room, or was not made
    assert "e/label/second" in conversation.loop.open_requests()


@pytest.mark.parametrize(("open_at_most", "n_second"), [(2, 0), (3, 1)])
def test_an_upheld_label_is_not_compared_while_challenges_leave_no_room(open_at_most, n_second):
    conversation = talk(open_at_most=open_at_most)
    conversation.learner.contests = True
    for name in "ef":
        conversation.event(name)
        conversation.answer(name, "a", "label", annotator=ANN)
    conversation.event("g")
    assert conversation.loop.open_requests() == ["e/challenge/1", "f/challenge/1", "g/label"]
    line, *second = conversation.answer("e", "a", "challenge/1", annotator=ANN)
    assert (line.origin, len(second)) == ("upheld", n_second)


def test_the_same_annotator_is_not_asked_again_before_there_is_room():
    conversation = talk(REPEAT, open_at_most=1)
    asked(conversation)
    conversation.event("g")
    for n in range(moderator.LATER):
        conversation.event(f"f{n}", at=float(n), y="a")
    assert conversation.loop.open_requests() == ["g/label"]
    *_, again = conversation.answer("g", "a", "label", 30.0, annotator=BOB)
    assert conversation.loop.open_requests() == [again.request_id] == ["e/label/again"]


# --- what comes of the answers


@pytest.mark.parametrize("gives_way", [True, False])
def test_the_label_is_what_both_answers_come_to(gives_way):
    conversation = talk()
    asked(conversation)
    conversation.learner.gives_way = gives_way
    y, given_ = ("c", None) if gives_way else ("a", "c")
    messages = conversation.answer(
        "e", "c", "label/second", annotator=BOB, privileged={"seen by bob": 1.0}
    )
    assert line_of(messages) == (y, "aggregated", BOB, given_, 1)
    # What was told with an answer belongs to its label.
    assert messages[0].privileged == ({"seen by bob": 1.0} if gives_way else None)
    assert conversation.learner.held["e"][1] == y
    assert conversation.learner.calls[-1] == ("note_second", "e", "c", BOB, 0.25)
    assert conversation.state("e") == "learned"
    [rejected] = conversation.answer("e", "c", "label/second", annotator=EVE)
    assert rejected.fault == "ended"


def test_a_second_answer_is_not_the_one_that_the_first_annotator_supersedes():
    conversation = talk()
    asked(conversation)
    conversation.answer("e", "c", "label/second", annotator=BOB)
    assert line_of(conversation.answer("e", "b", annotator=ANN, supersedes="a1")) == (
        "b", "revised", ANN, None, 2,
    )  # fmt: skip
    # What bob's correction is weighed against is ann's by now.
    conversation.learner.gives_way = False
    assert line_of(conversation.answer("e", "d", annotator=BOB, supersedes="a2")) == (
        "b", "aggregated", BOB, "d", 3,
    )  # fmt: skip


def test_a_label_that_a_second_answer_has_brought_about_stays_if_the_first_annotator_adopts_it():
    conversation = talk()
    asked(conversation)
    assert line_of(conversation.answer("e", "c", "label/second", annotator=BOB))[0] == "c"
    assert line_of(conversation.answer("e", "c", annotator=ANN, supersedes="a1")) == (
        "c", "revised", ANN, None, 2,
    )  # fmt: skip
    # Said once more, it changes nothing.
    assert conversation.answer("e", "c", annotator=ANN, supersedes="a3") == []
    assert line_of(conversation.answer("e", None, annotator=BOB, supersedes="a2")) == (
        "c", "aggregated", None, None, 3,
    )  # fmt: skip


def test_a_second_answer_is_corrected_and_taken_back_by_its_own_annotator_alone():
    conversation = talk()
    asked(conversation)
    conversation.answer("e", "c", "label/second", annotator=BOB)
    [rejected] = conversation.answer("e", "d", annotator=ANN, supersedes="a2")
    assert (rejected.fault, rejected.reason) == (
        "unauthorised",
        "the answer that it supersedes is that of 'bob', got 'ann'",
    )
    assert line_of(conversation.answer("e", "d", annotator=BOB, supersedes="a2")) == (
        "d", "aggregated", BOB, None, 2,
    )  # fmt: skip
    assert line_of(conversation.answer("e", None, annotator=BOB, supersedes="a4")) == (
        "a", "aggregated", None, None, 3,
    )  # fmt: skip
    assert line_of(conversation.answer("e", "c", annotator=BOB, supersedes="a5")) == (
        "c", "aggregated", BOB, None, 4,
    )  # fmt: skip
    # It counts as it was given first.
    notes = [call for call in conversation.learner.calls if call[0] == "note_second"]
    assert notes == [("note_second", "e", "c", BOB, 0.25)]


def test_two_annotators_may_give_their_answers_the_same_id():
    conversation = talk()
    asked(conversation)
    conversation.n_answers = 0
    conversation.answer("e", "c", "label/second", annotator=BOB)
    line = line_of(conversation.answer("e", "d", annotator=BOB, supersedes="a1"))
    assert line[:2] == ("d", "aggregated")
    line = line_of(conversation.answer("e", "b", annotator=ANN, supersedes="a1"))
    assert line[:2] == ("b", "revised")


def test_a_label_that_is_taken_back_takes_the_second_question_with_it():
    conversation = talk()
    asked(conversation)
    cancel, line = conversation.answer("e", None, annotator=ANN, supersedes="a1")
    assert cancel == Cancel(request_id="e/label/second", why="the label was taken back", at=1.0)
    assert (line.origin, line.y) == ("withdrawn", None)
    [rejected] = conversation.answer("e", "c", "label/second", annotator=BOB)
    assert rejected.fault == "ended"
    assert ("note_unanswered", 1.0) not in conversation.learner.calls


def test_a_late_answer_is_data_as_well():
    conversation = talk(expires_after_s=10.0)
    asked(conversation)
    expired, line = conversation.answer("e", "c", "label/second", 20.0, annotator=BOB)
    assert expired == Expired(request_id="e/label/second", event_id="e", at=20.0)
    assert (line.y, line.late) == ("c", True)


# --- quarantine and retraction


class Judging(ComparingLearner, JudgingLearner):
    """Compares answers, and judges annotators."""


def judging(people, **options):
    learner = Judging(proba={"b": 0.6, "a": 0.4})
    learner.drawn, learner.n = 0.0, 0
    return ScriptedTalk(learner, people=people, **options)


def test_a_second_question_is_sent_again_without_annotators_in_quarantine():
    conversation = judging(OVERLAP)
    asked(conversation)
    conversation.event("f")
    conversation.learner.n = 8
    rejected, again, _ = conversation.answer("f", "a", "label", annotator=EVE)
    assert isinstance(rejected, Rejected)
    assert (again.request_id, again.reason) == ("e/label/second", ASKED_AGAIN)
    assert again.excluded == (EVE, ANN)


def test_a_second_question_is_sent_again_without_the_supervisor_who_has_answered_meanwhile():
    conversation = talk(replace(OVERLAP, supervisors=frozenset({"sue"})))
    asked(conversation)
    line, again = conversation.answer("e", "b", annotator="sue", supersedes="a1")
    assert (line.y, line.annotator, conversation.state("e")) == ("b", "sue", "compared")
    assert (again.request_id, again.reason) == ("e/label/second", ASKED_AGAIN)
    assert again.excluded == (ANN, "sue")
    # Of the next words of theirs there is nothing new to say.
    [line] = conversation.answer("e", "c", annotator="sue", supersedes="a2")
    assert (line.y, conversation.state("e")) == ("c", "compared")


def suspecting(people=None, open_at_most=None, n=8, **against):
    conversation = judging(people or People(), open_at_most=open_at_most)
    conversation.learner.n, conversation.learner.against = n, {BOB: 5.0, **against}
    for n, name in enumerate((BOB, EVE, ANN)):
        conversation.event(f"{n}")
        messages = conversation.answer(f"{n}", "a", "label", annotator=name)
    return conversation, [m for m in messages if isinstance(m, LabelRequest)]


def test_events_of_who_is_suspected_are_put_to_an_annotator_who_is_less_so():
    conversation, [request] = suspecting(ann=900.0, eve=4000.0)
    assert (request.reason, request.excluded) == (SECOND_ANNOTATOR, (ANN, EVE))
    [refused] = conversation.answer("2", "b", "label/second", annotator=EVE)
    assert refused.fault == "unauthorised"
    assert "other than 'ann', 'eve', got 'eve'" in refused.reason
    [line] = conversation.answer("2", "b", "label/second", annotator=BOB)
    assert (line.origin, line.y, line.annotator) == ("aggregated", "b", BOB)


@pytest.mark.parametrize(("open_at_most", "n_second"), [(1, 0), (3, 1), (4, 2), (None, 4)])
def test_a_suspected_annotator_who_is_alone_is_still_asked(open_at_most, n_second):
    conversation, _ = suspecting(open_at_most=open_at_most, ann=900.0)
    for n in range(3, 6):
        prediction, *_ = conversation.event(f"{n}")
        assert prediction.decision.ask
        conversation.answer(f"{n}", "a", "label", annotator=ANN)
    found = [name for name in conversation.loop.open_requests() if name.endswith("/second")]
    assert len(found) == n_second


@pytest.mark.parametrize(
    ("people", "against"),
    [
        (People(quarantine=False), 900.0),
        (People(), HEAD_START),
        (People(trusted=frozenset({ANN})), 900.0),
    ],
)
def test_who_is_not_suspected_is_asked_alone(people, against):
    _, requests = suspecting(people, ann=against)
    assert requests == []


def unasked(conversation, name="f"):
    """Let ann label an event that is not asked about; return the second questions."""
    conversation.learner.asks = False
    conversation.event(name)
    line, *requests = conversation.answer(name, "a", annotator=ANN)
    assert isinstance(line, LabelledExample)
    return requests


@pytest.mark.parametrize(
    ("n", "drawn", "against", "excluded"),
    [
        (29, 0.99, {ANN: 0.0}, (ANN,)),  # there is no evidence yet
        (32, 0.03, {ANN: 0.0}, None),
        (32, 0.02, {ANN: 0.0}, (ANN,)),
        (8, 0.03, {ANN: HEAD_START}, None),
        (8, 0.02, {ANN: HEAD_START}, (ANN,)),
        (8, 0.99, {ANN: 900.0, EVE: 5.0}, (ANN, BOB)),  # as for labels that were asked for
        (8, 0.99, {ANN: 900.0, EVE: 4000.0}, (ANN,)),  # no one with less evidence is left
        (32, 0.02, {ANN: 900.0, EVE: 5.0}, (ANN, BOB)),
        (32, 0.03, {ANN: 900.0, EVE: 5.0}, None),
    ],
)
def test_the_first_labels_that_came_unasked_are_compared_and_a_share_of_the_later_ones(
    n, drawn, against, excluded
):
    conversation, _ = suspecting(n=n, **{BOB: 2000.0, **against})
    conversation.learner.drawn = drawn
    requests = unasked(conversation)
    assert [request.excluded for request in requests] == ([] if excluded is None else [excluded])


@pytest.mark.parametrize("people", [People(quarantine=False), People(trusted=frozenset({ANN}))])
def test_unasked_labels_of_who_cannot_be_in_quarantine_are_not_compared(people):
    conversation, _ = suspecting(people, ann=0.0)
    assert unasked(conversation) == []


def test_a_label_that_names_no_request_counts_as_unasked_where_the_request_has_ended():
    conversation, _ = suspecting(n=32, ann=900.0, eve=5.0)
    conversation.learner.drawn = 0.03
    for name in ("f", "g"):
        conversation.event(name)
        conversation.loop.on_cancel(f"{name}/label", 1.0)
    [line, request] = conversation.answer("f", "a", "label", annotator=ANN)
    assert (line.origin, request.excluded) == ("asked", (ANN,))
    [line] = conversation.answer("g", "a", annotator=ANN)
    assert line.origin == "volunteered"


def test_only_so_many_unasked_labels_wait_for_a_second_annotator():
    conversation, _ = suspecting(ann=0.0)
    assert [len(unasked(conversation, f"f{n}")) for n in range(12)] == [1] * 10 + [0] * 2
    conversation.answer("f0", "a", "label/second", annotator=BOB)
    assert len(unasked(conversation)) == 1


def test_a_question_from_which_some_are_barred_ends_when_another_is_in_quarantine():
    conversation, _ = suspecting(ann=900.0, eve=4000.0)
    conversation.learner.against = {BOB: 1e9}
    conversation.learner.n = 16
    conversation.event("f")
    cancels = [
        m for m in conversation.answer("f", "a", "label", annotator=BOB) if isinstance(m, Cancel)
    ]
    assert [m.request_id for m in cancels] == ["1/label/second", "2/label/second"]
    assert conversation.loop.quarantined == [BOB]


def test_a_question_asked_as_another_is_put_in_quarantine_stays_open():
    conversation, _ = suspecting(ann=900.0)
    learner = conversation.learner
    learner.n, learner.against = 16, {ANN: 1e7, BOB: 5.0, DAN: 1e8, EVE: 1e9}
    learner.annotators = lambda: [ANN, BOB, DAN, EVE]
    conversation.event("f")
    messages = conversation.answer("f", "a", "label", annotator=ANN)
    assert conversation.loop.quarantined == [EVE]
    [request] = [m for m in messages if getattr(m, "request_id", None) == "f/label/second"]
    assert request.excluded == (EVE, ANN, DAN)
    assert "f/label/second" in conversation.loop.open_requests()


def test_who_is_barred_from_a_second_question_survives_a_restart():
    conversation, _ = suspecting(ann=900.0, eve=4000.0)
    loop = conversation.loop
    again = InteractiveLoop.restore(loop.snapshot(), Judging(proba={"b": 0.6, "a": 0.4}))
    assert again.snapshot() == loop.snapshot()
    assert again._memory["2"].second.barred == (EVE,)


def test_what_only_an_annotator_in_quarantine_is_asked_is_taken_back(monkeypatch):
    monkeypatch.setattr(moderator, "LATER", 1)
    conversation = judging(REPEAT)
    conversation.event("e")
    conversation.answer("e", "a", "label", annotator=EVE)
    conversation.event("f", y="a")
    assert "e/label/again" in conversation.loop.open_requests()
    conversation.event("g")
    conversation.learner.n = 8
    messages = conversation.answer("g", "a", "label", annotator=EVE)
    assert "e/label/again" in [m.request_id for m in messages if isinstance(m, Cancel)]


def played(seed, people, n=120):
    """A real loop in a story; the loop and its log."""
    loop = InteractiveLoop(
        SkepticalClassifier(
            GPClassifier(), query.AlwaysAsk(), query.SkepticalChallenge(0.3), warm_up=8, seed=3
        ),
        people=people,
    )
    story, log, messages = Story(seed, labels=("a", "b", "c")), [], []
    for _ in range(n):
        messages = told(loop, story.next(messages))
        log += [m for m in messages if isinstance(m, LabelledExample)]
    return loop, log


BOTH = People(overlap=0.6, repeat=0.3, quarantine=False)


@examples(10)
@given(seed=st.integers(0, 10**6), who=st.sampled_from([ANN, BOB]))
def test_without_an_annotator_the_learner_is_what_the_rest_of_the_log_teaches(seed, who):
    loop, log = played(seed, BOTH)
    done = loop.retract(who, log, loop._moderator.lines.sequence)
    assert who not in {line.annotator for line in done.log if line.y is not None}
    others = {(line.event_id, y) for line in in_force(log) for by, y in words_in(line) if by != who}
    assert {(example.event_id, example.y) for example in loop.model.examples()} <= others
    assert loop.model.as_held(examples_in(done.log)) == loop.model.examples()
    taught = loop.model.unlearned()
    assert not [one for one in teach(taught, done.log, observed=True) if one.refusal]
    assert taught.state()["annotators"] == loop.model.state()["annotators"]
    if done.retraction is not None:
        again = loop.reinstate(done.retraction, done.log, 1e6)
        assert list(again.log) == in_force(log)


def assert_agree(loop, log, made=()):
    """Every conversation has the label of its last line, in the name of the last first answer.

    The lines in `made` are no answers: a retraction tells with them what stands again.
    """
    about = by_event(in_force(log))
    for record in loop._memory:
        lines = about.get(record.event.event_id, [])
        if record.is_learned:
            label, line = record.label, lines[-1]
            answer = last_answer(
                [each for each in lines if (each.event_id, each.revision) not in made]
            )
            assert (label.y, record.revision) == (line.y, line.revision)
            assert label.annotator == record.standing_by == answer.annotator
        elif record.state == "withdrawn":
            assert record.label is None
            assert (lines[-1].y, record.revision) == (None, lines[-1].revision)


@examples(4)
@given(seed=st.integers(0, 10**6), who=st.sampled_from([ANN, BOB]))
def test_conversations_agree_with_the_log_however_they_came_about(seed, who):
    loop, log = played(seed, BOTH)
    assert_agree(loop, log)
    done = loop.retract(who, log, 1e6)
    assert_agree(loop, done.log, done.retraction.made if done.retraction else ())
    for lines in (log, list(done.log)):
        parts = recovered_parts(lines, loop.model.clone(), loop.model.clone(), people=BOTH)
        again = InteractiveLoop.from_parts(parts, lines, loop.model.clone(), people=BOTH)
        assert_agree(again, lines)
    if done.retraction is not None:
        assert_agree(loop, loop.reinstate(done.retraction, done.log, 1e6).log)


def words_in(line):
    """Who says what in a line of the log."""
    y = line.y if line.given is None else line.given
    if line.origin == "aggregated":
        return [] if line.annotator is None else [(line.annotator, y)]
    return [(line.annotator, line.y), *([(line.given_by, y)] if line.challenged else [])]


def test_a_second_answer_stands_alone_if_the_first_one_is_removed():
    lines = []
    conversation = talk()
    conversation.learner.gives_way = False
    for messages in (
        conversation.event("e"),
        conversation.answer("e", "a", "label", annotator=ANN),
        conversation.answer("e", "c", "label/second", annotator=BOB),
    ):
        lines += [m for m in messages if isinstance(m, LabelledExample)]
    left, taken = without(lines, ANN)
    assert [(one.y, one.annotator, one.origin) for one in left] == [("c", BOB, "asked")]
    assert taken == lines
    left, taken = without(lines, BOB)
    assert (left, taken) == (lines[:1], lines[1:])
    # A second answer that was taken back says nothing on its own.
    revoked = [lines[0], replace(lines[1], annotator=None, given=None)]
    assert without(revoked, ANN) == ([], revoked)


SUE = "sue"
FIRST, SECOND = (ANN, "a", None), (BOB, "c", None)
TAKEN_BACK = (BOB, None, "second")


@pytest.mark.parametrize(
    ("words", "who", "stands"),
    [
        ([FIRST, SECOND, TAKEN_BACK], ANN, None),
        ([FIRST, SECOND, (ANN, "b", "first"), TAKEN_BACK], ANN, None),
        ([FIRST, SECOND, TAKEN_BACK, (BOB, "d", "second")], ANN, "d"),
        ([FIRST, SECOND, TAKEN_BACK, (SUE, "b", "first")], ANN, "b"),
        ([FIRST, SECOND, (BOB, "d", "second")], ANN, "d"),
        ([FIRST, SECOND, (SUE, "b", "first"), TAKEN_BACK], SUE, "a"),
        ([FIRST, SECOND, (SUE, "b", "first"), (BOB, "d", "second")], SUE, "ad"),
        ([FIRST, SECOND, (SUE, "d", "second")], BOB, "ad"),
    ],
)
@pytest.mark.parametrize("gives_way", [True, False])
def test_words_about_second_answers_are_those_that_are_left(words, who, stands, gives_way):
    """An entry is an annotator, a label, and the answer it supersedes; either of two may stand."""
    conversation = talk(replace(OVERLAP, supervisors=frozenset([SUE])))
    lines = [m for m in conversation.event("e") if isinstance(m, LabelledExample)]
    last, questions = {}, ["label", "label/second"]
    for n, (annotator, y, superseded) in enumerate(words, 1):
        if superseded == "second":
            conversation.learner.gives_way = gives_way
        request = None if superseded else questions.pop(0)
        name = superseded or ("first" if request == "label" else "second")
        about = {"supersedes": last.get(name)} if superseded else {}
        lines += conversation.answer("e", y, request, annotator=annotator, **about)
        last[name] = f"a{n}"
    lines = [m for m in lines if isinstance(m, LabelledExample)]
    assert len(lines) == len(words)
    left, taken = without(lines, who)
    found = None if not left else left[-1].y
    assert found == (stands if stands != "ad" else "ad"[gives_way])
    assert all(line in left or line in taken for line in lines)


A1, A2 = ("ann", "a", {"request_id": "e/label"}), ("bob", "c", {"request_id": "e/label/second"})
CORRECTED = ("sue", "b", {"supersedes": "a1"})


@pytest.mark.parametrize(
    ("words", "who", "stands", "corrections"),
    [
        ([A1, A2], ANN, ("c", BOB), [(BOB, "a2")]),
        ([A1, A2], BOB, ("a", ANN), [(ANN, "a1")]),
        ([A1, CORRECTED], SUE, ("a", ANN), [(ANN, "a1")]),
        ([A1, A2, CORRECTED], SUE, ("?", None), [(ANN, "a1"), (BOB, "a2")]),
        ([A1, A2, CORRECTED], ANN, ("b", SUE), [(SUE, "a3")]),
    ],
)
def test_who_has_given_what_stands_after_a_retraction_can_correct_it(
    words, who, stands, corrections
):
    people = People(overlap=1.0, supervisors=frozenset([SUE]), quarantine=False)
    for annotator, answer_id in corrections:
        model = SkepticalClassifier(
            GPClassifier(), query.AlwaysAsk(), query.NeverChallenge(), warm_up=0, seed=1
        )
        loop = InteractiveLoop(model, people=people)
        loop.on_event(Event(event_id="e", x={"f": 1.0}, occurred_at=0.0), 0.0)
        log = []
        for n, (by, y, about) in enumerate(words, 1):
            answer = Answer(
                answer_id=f"a{n}", event_id="e", y=y, annotator=by, answered_at=1.0, **about
            )
            log += [m for m in loop.on_answer(answer, 1.0) if isinstance(m, LabelledExample)]
        done = loop.retract(who, log, 2.0)
        line = done.log[-1]
        if stands[0] == "?":  # either of both words, in the name of who has said it
            stands = ("a", ANN) if line.y == "a" else ("c", BOB)
        assert (line.y, line.annotator) == stands
        again = InteractiveLoop.from_parts(loop.parts(), done.log, model.clone(), people=people)
        assert again.snapshot() == loop.snapshot()
        for each in (loop, again):
            word = Answer(
                answer_id="new", event_id="e", y="d", annotator=annotator, answered_at=3.0,
                supersedes=answer_id,
            )  # fmt: skip
            [line] = each.on_answer(word, 3.0)
            assert isinstance(line, LabelledExample)
            assert (line.annotator, line.revision) == (annotator, done.log[-1].revision + 1)


def test_a_label_that_came_with_its_event_can_be_superseded_again_after_a_retraction():
    model = SkepticalClassifier(
        GPClassifier(), query.AlwaysAsk(), query.NeverChallenge(), warm_up=0, seed=1
    )
    loop = InteractiveLoop(model)
    log = loop.on_event(Event(event_id="e", x={"f": 1.0}, y="a", occurred_at=0.0), 0.0)[1:]
    words = [
        Answer(
            answer_id=f"of {by}", event_id="e", y=y, annotator=by, answered_at=1.0, supersedes="e"
        )
        for by, y in ((EVE, "b"), (BOB, "c"))
    ]
    log += loop.on_answer(words[0], 1.0)
    loop.retract(EVE, log, 2.0)
    [line] = loop.on_answer(words[1], 3.0)
    assert (line.y, line.annotator, line.revision) == ("c", BOB, 3)


# --- restart, rollback


@examples(6)
@given(seed=st.integers(0, 10**6), every=st.sampled_from((20, 5, 12, 40, 60)))
def test_what_was_published_last_makes_the_loop_again(seed, every):
    def model():
        return SkepticalClassifier(
            GPClassifier(), query.AlwaysAsk(), query.SkepticalChallenge(0.3), warm_up=8, seed=3
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moderator, "LATER", 3)
        published = StateChangelog(model, seed, {**SPANS, "people": BOTH})
        for _ in range(120 // every):
            published.loop = published.rng.choice(published.steps_and_cut(every))


def test_second_questions_and_answers_survive_a_restart():
    loop, log = played(5, BOTH, 200)
    kinds = {m.origin for m in log}
    assert "aggregated" in kinds
    seconds = [e.answer.second for e in loop.model.examples() if e.answer and e.answer.second]
    assert seconds
    again = InteractiveLoop.restore(loop.snapshot(), isgp_like())
    assert again.model.examples() == loop.model.examples()
    assert again.people == BOTH
    parts = InteractiveLoop.from_parts(loop.parts(), log, isgp_like(), people=BOTH)
    assert parts.snapshot() == loop.snapshot()


def isgp_like():
    return SkepticalClassifier(
        GPClassifier(), query.AlwaysAsk(), query.SkepticalChallenge(0.3), warm_up=8, seed=3
    )


@pytest.mark.parametrize("method", ["draw_one", "aggregate_one", "relabel_one", "note_second"])
def test_an_answer_over_which_the_learner_fails_changes_nothing(method, monkeypatch):
    loop = InteractiveLoop(
        SkepticalClassifier(GPClassifier(), query.AlwaysAsk(), query.NeverChallenge(), seed=3),
        people=OVERLAP,
    )
    for n in range(9):
        loop.on_event(Event(event_id=f"e{n}", x={"f": float(n)}, occurred_at=n), n)
        first, second = (
            Answer(
                answer_id=f"{name}{n}", event_id=f"e{n}", y="ab"[n % 2], annotator=name,
                answered_at=n,
            )
            for name in (ANN, BOB)
        )  # fmt: skip
        if n < 8:
            loop.on_answer(first, n)
            loop.on_answer(second, n)
    failing = first
    if method != "draw_one":
        loop.on_answer(first, n)
        failing = replace(second, y="b")
    before = loop.snapshot()

    working = getattr(SkepticalClassifier, method)

    def fail(model, event_id, *arguments, **options):
        if event_id == "e8":
            raise ArithmeticError("broken")
        return working(model, event_id, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(SkepticalClassifier, method, fail)
        [rejected] = loop.on_answer(failing, n)
    assert rejected.fault == "failed"
    loop._moderator.journal.credit = 100  # which alone is not what it was
    assert loop.snapshot() == before
    assert loop.on_answer(failing, n) == InteractiveLoop.restore(
        before, loop.model.clone()
    ).on_answer(failing, n)


# --- off by default


@examples(3)
@given(seed=st.integers(0, 10**6))
def test_without_the_settings_nothing_is_different(seed):
    loop, log = played(seed, People(quarantine=False))
    assert not [line for line in log if line.origin == "aggregated"]
    for plain in loop.parts()["head"]["recent"]:
        assert len(plain) <= 19
    assert People().state() == {}


def test_keys_have_second_questions_of_their_own():
    loops = KeyedLoops(
        SkepticalClassifier(GPClassifier(), query.AlwaysAsk(), query.NeverChallenge(), seed=3),
        people=OVERLAP,
        max_keys=1,
    )
    for key in ("k", "l"):
        loops.on_event(Event(event_id="e", key=key, x={"f": 1.0}, occurred_at=0.0), 0.0)
        answer = Answer(answer_id="a", event_id="e", key=key, y="a", annotator=ANN, answered_at=1.0)
        _, request = loops.on_answer(answer, 1.0)
        assert (request.key, request.request_id) == (key, "e/label/second")
    again = KeyedLoops.restore(loops.snapshot(), loops.model, max_keys=1)
    assert again.rules.people == OVERLAP
    answer = Answer(
        answer_id="b", event_id="e", key="k", request_id="e/label/second", y="b", annotator=BOB,
        answered_at=2.0,
    )  # fmt: skip
    [line] = again.on_answer(answer, 2.0)
    assert line.origin == "aggregated"


def test_a_learner_that_cannot_compare_is_refused():
    with pytest.raises(TypeError, match="need a learner that compares answers"):
        InteractiveLoop(SkepticalRegressor(GPRegressor(), seed=1), people=OVERLAP)


@pytest.mark.parametrize("shares", [{"overlap": 1.5}, {"repeat": -0.1}])
def test_shares_are_between_0_and_1(shares):
    with pytest.raises(ValueError, match="must be between 0 and 1"):
        People(**shares)


def test_shares_come_to_one_at_most():
    with pytest.raises(ValueError, match=r"expected a sum of at most 1, got 1\.0 and 0\.5"):
        People(overlap=1.0, repeat=0.5)


def test_isgp_compares_answers():
    loop = InteractiveLoop(isgp(seed=1), people=People(overlap=1.0))
    loop.on_event(Event(event_id="e", x={"f": 1.0}, occurred_at=0.0), 0.0)
    answer = Answer(answer_id="a", event_id="e", y="a", annotator=ANN, answered_at=0.0)
    assert loop.on_answer(answer, 0.0)[-1].reason == SECOND_ANNOTATOR


def test_a_loop_made_of_its_log_alone_knows_whose_answers_are_whose():
    model = SkepticalClassifier(GPClassifier(), query.AlwaysAsk(), query.NeverChallenge(), seed=3)
    loop, log = InteractiveLoop(model.clone(), people=OVERLAP), []
    loop.on_event(Event(event_id="e", x={"f": 1.0}, occurred_at=0.0), 0.0)
    for name, y in ((ANN, "a"), (BOB, "b")):
        answer = Answer(answer_id=name, event_id="e", y=y, annotator=name, answered_at=1.0)
        log += [m for m in loop.on_answer(answer, 1.0) if isinstance(m, LabelledExample)]
    parts = recovered_parts(log, model.clone(), model.clone(), people=OVERLAP)
    again = InteractiveLoop.from_parts(parts, log, model.clone(), people=OVERLAP)
    assert again.model.examples() == loop.model.examples()
    assert again.model.state()["annotators"] == loop.model.state()["annotators"]
    record = again._memory.get("e")
    assert (record.standing_by, record.label.origin) == (ANN, "aggregated")
    # The second question had this name, and has it once.
    assert (record.second_request_id, again.open_requests()) == ("e/label/second", [])
