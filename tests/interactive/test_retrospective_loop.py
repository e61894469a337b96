"""Learned labels are challenged again when the model asks for it."""

import pytest

from streamgp.interactive import (
    Cancel,
    Challenge,
    Expired,
    InteractiveLoop,
    LabelledExample,
    LabelRequest,
    Prediction,
)
from tests.interactive.scripted import ScriptedLearner, ScriptedTalk, log_of


class Talk(ScriptedTalk):
    """A loop around a learner that asks about all events and doubts those named."""

    def __init__(self, *doubted, **options):
        learner = ScriptedLearner(
            doubts=lambda event_id: event_id in doubted, proba={"loft": 0.6, "hall": 0.4}
        )
        super().__init__(learner, **options)

    def looks(self):
        """The labels that might be doubted, and who gave them, look by look."""
        return [call[1] for call in self.learner.calls if call[0] == "review_one"]

    def unanswered(self):
        return [call for call in self.learner.calls if call[0] == "note_review_unanswered"]


@pytest.fixture
def doubted():
    """A talk in which ann's label of e, learned without a question, is doubted by now."""
    talk = Talk("e", expires_after_s=10.0, answer_horizon_s=100.0)
    talk.event("e")
    talk.answer("e", "hall", "label", annotator="ann", privileged={"sure": False})
    assert talk.state("e") == "doubted"
    return talk


def test_a_doubted_label_is_challenged_after_all_else_that_an_input_leads_to():
    talk = Talk("e")
    messages = talk.event("d", y="den") + talk.event("e", y="hall", at=1.0)
    assert [type(m) for m in messages] == [
        Prediction, LabelledExample, Prediction, LabelledExample, Challenge
    ]  # fmt: skip
    assert messages[-1] == Challenge(
        request_id="e/challenge/1",
        event_id="e",
        x={"f": 1.0},
        reason="Scripted",
        score=1.0,
        threshold=0.5,
        requested_at=1.0,
        given="hall",
        suggested="other",
        probability_wrong=0.9,
        neighbours=messages[-1].neighbours,
    )
    # An example is no neighbour of itself.
    assert [near.event_id for near in messages[-1].neighbours] == ["d"]


def test_as_many_neighbours_are_shown_as_of_a_fresh_label():
    talk = Talk("e2")
    for n in range(6):
        messages = talk.event(f"e{n}", y="hall")
        if n == 2:
            assert len(messages[-1].neighbours) == 2
    talk = Talk("e5")
    for n in range(6):
        messages = talk.event(f"e{n}", y="hall")
    assert [near.event_id for near in messages[-1].neighbours] == ["e0", "e1", "e2"]


def test_the_challenge_may_be_about_another_event_than_the_input():
    talk = Talk()
    talk.event("e", y="hall", key="ann")
    talk.learner.doubts = True
    *_, request, challenge = talk.event("f", at=5.0, key="bob")
    assert isinstance(request, LabelRequest)
    assert (challenge.event_id, challenge.key, challenge.requested_at) == ("e", "ann", 5.0)


@pytest.mark.parametrize(("second", "origin"), [("hall", "upheld"), ("den", "revised")])
@pytest.mark.parametrize("request_id", ["challenge/1", None])
def test_the_answer_goes_on_record_as_a_revision(doubted, second, origin, request_id):
    [line] = doubted.answer("e", second, request_id, at=5.0, annotator="ann")
    assert line == LabelledExample(
        event_id="e",
        revision=1,
        sequence=2,
        x={"f": 0.0},
        y=second,
        origin=origin,
        annotator="ann",
        learned_at=5.0,
        privileged={"sure": False},
    )
    assert doubted.learner.told == [("e", "hall"), ("e", second)]
    assert doubted.state("e") == "learned"
    assert doubted.unanswered() == []


@pytest.mark.parametrize(("second", "origin"), [("hall", "upheld"), ("den", "revised")])
def test_superseding_the_doubted_answer_answers_the_challenge(doubted, second, origin):
    [line] = doubted.answer("e", second, supersedes="a1", at=5.0, annotator="ann")
    assert (line.y, line.origin, line.revision) == (second, origin, 1)
    assert doubted.loop.n_open == 0


def test_taking_the_doubted_answer_back_withdraws_the_label_and_ends_the_challenge(doubted):
    [line] = doubted.answer("e", None, supersedes="a1", at=5.0, annotator="ann")
    assert (line.origin, line.y) == ("withdrawn", None)
    assert doubted.loop.n_open == 0
    assert doubted.loop.next_deadline() == 100.0
    assert doubted.unanswered() == []


@pytest.mark.parametrize(
    ("ending", "state", "kinds"),
    [
        (
            lambda talk: talk.answer("e", None, "challenge/1", at=5.0, annotator="ann"),
            "learned",
            [],
        ),
        (lambda talk: talk.loop.on_cancel("e/challenge/1", 5.0), "learned", [Cancel]),
        (lambda talk: talk.loop.on_time(11.5), "kept", [Expired]),
    ],
)
def test_a_label_stays_when_nobody_answers_and_the_question_is_given_back(
    doubted, ending, state, kinds
):
    doubted.learner.doubts = False
    assert [type(m) for m in ending(doubted)] == kinds
    assert doubted.state("e") == state
    assert doubted.learner.told == [("e", "hall")]
    assert len(doubted.unanswered()) == 1


def test_a_label_that_is_deleted_while_it_is_doubted_is_asked_about_no_more(doubted):
    cancel, line = doubted.loop.withdraw("e", 5.0, revision=0)
    assert (cancel.request_id, cancel.why) == ("e/challenge/1", "the label was deleted")
    assert (line.origin, line.revision) == ("withdrawn", 1)
    assert doubted.loop.n_open == 0
    assert len(doubted.unanswered()) == 1


def test_a_late_answer_revises_the_label(doubted):
    doubted.learner.doubts = False
    expired, line = doubted.answer("e", "den", "challenge/1", at=12.0, annotator="ann")
    assert isinstance(expired, Expired)
    assert (line.y, line.origin, line.late) == ("den", "revised", True)


def test_a_forgotten_event_ends_its_challenge(doubted):
    doubted.loop.on_time(1.0)
    [expired] = doubted.loop.on_time(101.0)
    assert expired.request_id == "e/challenge/1"
    assert doubted.loop.open_requests() == []


def test_a_refused_revision_leaves_the_old_label(doubted):
    doubted.learner.refuses, doubted.learner.doubts = True, False
    [rejected] = doubted.answer("e", "den", "challenge/1", at=5.0, annotator="ann")
    assert (rejected.fault, rejected.subject) == ("unlearnable", "a2")
    assert doubted.state("e") == "learned"
    [line] = doubted.answer("e", None, supersedes="a1", at=6.0, annotator="ann")
    assert line.y is None


# --- labels that may be doubted


def test_labels_with_their_annotators_may_be_doubted():
    talk = Talk()
    talk.learner.asks = lambda event_id: event_id != "seen"
    talk.event("volunteered", y="hall")
    talk.event("asked")
    talk.answer("asked", "den", "label", annotator="ann")
    talk.event("open")
    talk.event("seen")
    assert talk.looks()[-1] == {"volunteered": None, "asked": "ann"}


def test_a_label_is_not_doubted_once_an_annotator_has_upheld_or_corrected_it():
    talk = Talk()
    for name, y in (("same", "hall"), ("other", "den")):
        talk.learner.contests = True
        talk.event(name)
        talk.answer(name, "hall", "label")
        talk.learner.contests = False
        talk.answer(name, y, "challenge/1")
    talk.event("corrected", y="hall")
    talk.answer("corrected", "den", supersedes="corrected")
    talk.event("restated", y="hall")
    talk.answer("restated", "hall", supersedes="restated")
    talk.event("withdrawn", y="hall")
    talk.answer("withdrawn", None, supersedes="withdrawn")
    talk.event("last", y="hall")
    assert talk.looks()[-1] == {"last": None}


def test_a_label_whose_challenge_was_not_answered_in_time_may_be_doubted_until_it_is():
    talk = Talk(expires_after_s=10.0)
    talk.learner.contests = True
    talk.event("e", y="hall")
    talk.loop.on_time(11.0)
    talk.event("f", at=12.0)
    assert talk.looks()[-1] == {"e": None}
    assert talk.answer("e", "hall", "challenge/1", at=13.0) == []
    assert talk.looks()[-1] == {}


def test_no_event_is_asked_about_more_than_twice():
    talk = Talk("e")
    *_, first = talk.event("e", y="hall")
    [second] = talk.answer("e", None, "challenge/1")
    assert (first.request_id, second.request_id) == ("e/challenge/1", "e/challenge/2")
    assert talk.answer("e", None, "challenge/2") == []
    assert talk.looks()[-1] == {}


def test_a_label_beyond_the_horizon_of_its_event_is_not_doubted():
    talk = Talk(answer_horizon_s=10.0)
    for name, at in (("past", 0.0), ("last", 5.0), ("now", 14.0)):
        talk.event(name, at=at, y="hall")
    # `on_time` was not called, so the first event is still remembered.
    assert talk.looks()[-1] == {"last": None, "now": None}
    talk.loop.on_time(16.0)
    talk.event("later", at=15.0)
    assert talk.looks()[-1] == {"now": None}


def test_an_example_that_an_earlier_use_of_its_id_has_left_is_not_doubted():
    talk = Talk(answer_horizon_s=10.0)
    talk.event("e", y="hall")
    talk.loop.on_time(11.0)
    talk.event("e", at=12.0)
    assert talk.learner.held.keys() == {"e"}
    assert talk.looks()[-1] == {}


# --- times of reviews


def test_what_is_rejected_leads_to_no_look():
    talk = Talk("e")
    talk.event("e", y="hall")
    n_looks = len(talk.looks())
    talk.event("e")
    talk.answer("unknown", "hall")
    talk.answer("e", "den", "label")
    assert len(talk.looks()) == n_looks


def test_the_passing_of_time_and_cancellations_lead_to_no_look():
    talk = Talk(expires_after_s=10.0)
    talk.event("e")
    n_looks = len(talk.looks())
    talk.loop.on_cancel("e/label", 1.0)
    talk.event("f", at=2.0)
    talk.loop.on_time(50.0)
    assert len(talk.looks()) == n_looks + 1


def test_every_look_is_noted_with_what_came_of_it():
    talk = Talk("f")
    talk.event("e", y="hall")
    talk.event("f", at=1.0, y="hall")
    notes = [call for call in talk.learner.calls if call[0] == "note_review"]
    assert notes == [("note_review", None, 0.0), ("note_review", "f", 1.0)]


def test_a_model_that_never_looks_back_is_asked_nothing():
    class Forward(ScriptedLearner):
        review_one = None

    talk = Talk()
    talk.loop = InteractiveLoop(Forward(doubts=True))
    assert log_of(talk.event("e", y="hall")) == [("e", "hall")]


def test_a_challenge_outlives_the_model_that_has_made_it(doubted):
    class Forward(ScriptedLearner):
        review_one = None

    loop = InteractiveLoop(Forward(), expires_after_s=10.0)
    loop.model.held["e"] = ({"f": 0.0}, "hall")
    loop._memory.take_over(doubted.loop._memory["e"])
    loop._moderator.deadlines.set("e", 11.0)
    assert [type(m) for m in loop.on_time(12.0)] == [Expired]
    assert loop._memory["e"].state == "kept"
