import math
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from streamgp import GPClassifier, isgp
from streamgp.interactive import (
    Cancel,
    Challenge,
    Expired,
    InteractiveLoop,
    LabelledExample,
    LabelRequest,
    Prediction,
    Rejected,
)
from tests.helpers import messages as made
from tests.helpers.messages import event
from tests.interactive.scripted import ScriptedLearner, log_of

answer = partial(made.answer, request_id="e/label")


def kinds(messages):
    return [type(m) for m in messages]


@pytest.fixture
def learner():
    return ScriptedLearner(proba={"b": 0.6, "a": 0.4})


@pytest.fixture
def loop(learner):
    return InteractiveLoop(learner, expires_after_s=10.0, answer_horizon_s=100.0)


class TestEvents:
    def test_prediction_comes_first_and_repeats_the_decision(self, loop, learner):
        prediction, request = loop.on_event(event(key="ann", at=5.0), 5.0)
        assert prediction == Prediction(
            event_id="e",
            key="ann",
            y="b",
            proba={"b": 0.6, "a": 0.4},
            decision=learner.query_one({}),
            n_learned=0,
            at=5.0,
        )
        assert request == LabelRequest(
            request_id="e/label",
            event_id="e",
            key="ann",
            x={"f": 1.0},
            reason="Scripted",
            score=1.0,
            threshold=0.5,
            requested_at=5.0,
            expires_at=15.0,
        )

    def test_prediction_is_empty_before_the_first_label(self):
        prediction, _ = InteractiveLoop(ScriptedLearner()).on_event(event(), 0.0)
        assert prediction.y is None
        assert prediction.proba == {}

    def test_request_never_expires_by_default(self):
        loop = InteractiveLoop(ScriptedLearner())
        _, request = loop.on_event(event(), 0.0)
        assert request.expires_at is None
        assert loop.next_deadline() is None
        assert loop.on_time(1e12) == []

    def test_every_event_is_observed_and_noted_once(self, loop, learner):
        loop.on_event(event("a"), 0.0)
        learner.asks = False
        loop.on_event(event("b", at=1.0), 1.0)
        loop.on_event(event("b", at=2.0), 2.0)
        assert learner.n_observed == 2
        assert [(c[2], c[3]) for c in learner.calls] == [(True, 0.0), (False, 1.0)]

    def test_volunteered_label_spares_the_question(self, loop, learner):
        prediction, example = loop.on_event(event(y="a"), 0.0)
        assert prediction.decision.budget == "volunteered"
        assert not prediction.decision.ask
        assert learner.calls[0] == ("note_query", prediction.decision, False, 0.0)
        assert (example.y, example.origin, example.learned_at) == ("a", "volunteered", 0.0)

    def test_volunteered_label_leaves_an_unwilling_decision_alone(self, loop, learner):
        learner.asks = False
        prediction, _ = loop.on_event(event(y="a"), 0.0)
        assert prediction.decision == learner.query_one({})

    def test_volunteered_label_can_be_challenged(self, loop, learner):
        learner.contests = True
        _, challenge = loop.on_event(event(y="a"), 0.0)
        assert challenge.request_id == "e/challenge/1"
        [example] = loop.on_answer(answer("b", request_id="e/challenge/1"), 1.0)
        assert (example.y, example.origin, example.revision) == ("b", "revised", 0)

    def test_volunteered_label_is_superseded_by_the_id_of_its_event(self, loop):
        loop.on_event(event(y="a"), 0.0)
        [example] = loop.on_answer(answer("c", request_id=None, supersedes="e"), 1.0)
        assert (example.y, example.origin, example.revision) == ("c", "revised", 1)

    def test_x_is_kept_as_received(self, loop):
        x = {"f": 1.0}
        _, request = loop.on_event(event(x=x), 0.0)
        [example] = loop.on_answer(answer(), 1.0)
        assert request.x is x
        assert example.x is x

    def test_truth_reaches_no_learner(self, loop, learner):
        loop.on_event(event(truth="secret"), 0.0)
        loop.on_answer(answer("a"), 1.0)
        assert "secret" not in repr((learner.calls, learner.told, learner.held))

    @pytest.mark.parametrize(
        ("fields", "reason"),
        [
            ({"event_id": ""}, "event_id must be a string of at least one character, got ''"),
            ({"event_id": 7}, "event_id must be a string of at least one character, got 7"),
            ({"key": 7}, "key must be a string or None, got 7"),
            ({"x": [1.0]}, "x must be a mapping from feature names to values, got [1.0]"),
            (
                {"occurred_at": float("nan")},
                "occurred_at must be a finite number of seconds, got nan",
            ),
            (
                {"occurred_at": np.int64(3)},
                "occurred_at must be a finite number of seconds, got np.int64(3); convert it with "
                "float()",
            ),
            ({"occurred_at": True}, "occurred_at must be a finite number of seconds, got True"),
            ({"occurred_at": "noon"}, "occurred_at must be a finite number of seconds, got 'noon'"),
            (
                {"y": float("inf")},
                "a label must be a finite number, a bool or a string, got inf",
            ),
            ({"y": ("a",)}, "a label must be a finite number, a bool or a string, got ('a',)"),
            (
                {"x": {"bad": ValueError("f must be finite")}},
                "the learner refuses it: f must be finite",
            ),
            (
                {"x": {"bad": TypeError("f must be a number")}},
                "the learner refuses it: f must be a number",
            ),
        ],
    )
    def test_malformed_event_is_rejected_and_not_remembered(self, loop, learner, fields, reason):
        [rejected] = loop.on_event(event(**fields), 3.0)
        assert (rejected.fault, rejected.reason, rejected.at) == ("malformed", reason, 3.0)
        assert rejected.subject == (
            "7" if fields.get("event_id") == 7 else event(**fields).event_id
        )
        assert learner.n_observed == 0
        assert learner.calls == []
        assert loop.next_deadline() is None
        assert Prediction in kinds(loop.on_event(event(), 4.0))

    def test_error_of_the_learner_that_is_no_fault_of_the_event_rejects_it(self, loop):
        [rejected] = loop.on_event(event(x={"bad": ZeroDivisionError("by what?")}), 0.0)
        assert (rejected.fault, rejected.stage) == ("failed", "predict")
        assert rejected.reason == "ZeroDivisionError: by what?"

    @pytest.mark.parametrize("p", [math.nan, math.inf])
    def test_event_whose_probabilities_are_not_finite_is_rejected(self, p):
        loop = InteractiveLoop(ScriptedLearner(proba={"a": 0.5, "b": p}))
        [rejected] = loop.on_event(event(), 0.0)
        assert rejected.fault == "failed"
        assert rejected.reason.startswith("ArithmeticError: probabilities must be finite, got {")

    def test_event_with_slashes_in_its_id_is_answered_like_any_other(self, loop):
        for event_id in ("a", "a/label", "a/challenge/1", "/"):
            loop.on_event(event(event_id), 0.0)
        for event_id in ("a", "a/label", "a/challenge/1", "/"):
            given = answer(answer_id=event_id, event_id=event_id, request_id=f"{event_id}/label")
            [example] = loop.on_answer(given, 1.0)
            assert example.event_id == event_id


class TestAnswers:
    def test_uncontested_answer_is_learned_at_once(self, loop, learner):
        loop.on_event(event(), 0.0)
        [example] = loop.on_answer(
            answer("a", at=3.0, annotator="eve", privileged={"hint": 1}), 3.0
        )
        assert example == LabelledExample(
            event_id="e",
            revision=0,
            sequence=1,
            x={"f": 1.0},
            y="a",
            origin="asked",
            annotator="eve",
            learned_at=3.0,
            probability_wrong=0.25,
            privileged={"hint": 1},
        )
        assert learner.calls[-1] == ("settle_one", "e", "a", "a", False, "eve")

    def test_challenge_says_what_the_model_believes(self, loop, learner):
        loop.on_event(event("n", y="b"), 0.0)
        loop.on_event(event(key="ann"), 0.0)
        learner.contests = True
        [challenge] = loop.on_answer(answer("a", key="ann", annotator="eve"), 1.0)
        assert challenge == Challenge(
            request_id="e/challenge/1",
            event_id="e",
            key="ann",
            x={"f": 1.0},
            reason="Scripted",
            score=1.0,
            threshold=0.5,
            requested_at=1.0,
            expires_at=11.0,
            given="a",
            suggested="b",
            probability_wrong=0.75,
            annotator="eve",
            neighbours=tuple(learner.neighbours_one({})),
            occurred_at=0.0,
        )
        assert len(challenge.neighbours) == 1

    def test_challenge_suggests_what_fits_the_event_alone_and_not_what_the_stream_is_at_now(self):
        class Filtered(ScriptedLearner):
            def own_proba_one(self, _x):
                return {"b": 1.0}

        loop = InteractiveLoop(Filtered(contests=True, proba={"c": 1.0}))
        [predicted, _] = loop.on_event(event(), 0.0)
        [challenge] = loop.on_answer(answer("a"), 1.0)
        assert (predicted.y, challenge.suggested) == ("c", "b")

    @pytest.mark.parametrize("proba", [{"a": 0.6, "b": 0.4}, {}])
    def test_challenge_is_dropped_where_the_model_suggests_nothing_else(self, proba):
        loop = InteractiveLoop(ScriptedLearner(contests=True, proba=proba))
        loop.on_event(event(), 0.0)
        assert kinds(loop.on_answer(answer("a"), 1.0)) == [LabelledExample]

    @pytest.mark.parametrize(
        ("second", "origin", "privileged"),
        [("a", "upheld", {"n": 1}), ("b", "revised", {"n": 1}), ("c", "revised", {"n": 1})],
    )
    def test_second_answer_is_final(self, loop, learner, second, origin, privileged):
        loop.on_event(event(), 0.0)
        learner.contests = True
        loop.on_answer(answer("a", annotator="eve", privileged=privileged), 1.0)
        [example] = loop.on_answer(
            answer(second, answer_id="a2", request_id="e/challenge/1", annotator="eve"), 2.0
        )
        assert (example.y, example.origin, example.annotator) == (second, origin, "eve")
        assert example.privileged == privileged
        assert learner.calls[-1] == ("settle_one", "e", second, "a", True, "eve")

    @pytest.mark.parametrize("ending", ["decline", "expire", "cancel"])
    def test_label_stands_when_the_challenge_is_not_answered(self, loop, learner, ending):
        loop.on_event(event(), 0.0)
        learner.contests = True
        loop.on_answer(answer("a", annotator="eve"), 1.0)
        messages = {
            "decline": lambda: loop.on_answer(
                answer(None, answer_id="a2", request_id="e/challenge/1", annotator="eve"), 2.0
            ),
            "expire": lambda: loop.on_time(11.5),
            "cancel": lambda: loop.on_cancel("e/challenge/1", 2.0),
        }[ending]()
        assert (messages[-1].y, messages[-1].origin) == ("a", "asked")
        assert learner.calls[-1] == ("settle_one", "e", "a", "a", False, "eve")
        assert ("note_unanswered", 2.0) not in learner.calls

    def test_declined_and_cancelled_and_expired_requests_refund_the_budget(self, loop, learner):
        for name in ("e", "f", "g"):
            loop.on_event(event(name), 0.0)
        assert loop.on_answer(answer(None, at=1.0), 1.0) == []
        assert loop.on_cancel("f/label", 2.0, why="enough") == [
            Cancel(request_id="f/label", why="enough", at=2.0)
        ]
        assert loop.on_time(10.5) == [Expired(request_id="g/label", event_id="g", at=10.5)]
        assert [c for c in learner.calls if c[0] == "note_unanswered"] == [
            ("note_unanswered", 1.0),
            ("note_unanswered", 2.0),
            ("note_unanswered", 10.5),
        ]

    def test_taking_a_contested_answer_back_refunds_the_budget_and_teaches_nothing(
        self, loop, learner
    ):
        loop.on_event(event(), 0.0)
        learner.contests = True
        loop.on_answer(answer("a"), 1.0)
        back = answer(None, answer_id="a2", request_id=None, supersedes="a1")
        assert loop.on_answer(back, 2.0) == []
        assert learner.calls[-1] == ("note_unanswered", 2.0)
        assert learner.told == []
        assert loop.next_deadline() == 100.0  # only the horizon of the event is left

    def test_superseding_the_contested_answer_answers_the_challenge(self, loop, learner):
        loop.on_event(event(), 0.0)
        learner.contests = True
        loop.on_answer(answer("a"), 1.0)
        second = answer("c", answer_id="a2", request_id=None, supersedes="a1")
        [example] = loop.on_answer(second, 2.0)
        assert (example.y, example.origin, example.revision) == ("c", "revised", 0)

    def test_corrections_count_revisions_and_lines(self, loop, learner):
        loop.on_event(event(), 0.0)
        lines = []
        steps = [
            answer("a", answer_id="1"),
            answer("b", answer_id="2", supersedes="1"),
            answer(None, answer_id="3", supersedes="2"),
            answer("c", answer_id="4", request_id=None),
        ]
        for step in steps:
            lines += loop.on_answer(step, 1.0)
        assert [(m.sequence, m.revision, m.y, m.origin) for m in lines] == [
            (1, 0, "a", "asked"),
            (2, 1, "b", "revised"),
            (3, 2, None, "withdrawn"),
            (4, 3, "c", "volunteered"),
        ]
        assert learner.told == [("e", "a"), ("e", "b"), ("e", None), ("e", "c")]

    def test_second_challenge_has_a_number_of_its_own(self, loop, learner):
        loop.on_event(event(), 0.0)
        learner.contests = True
        loop.on_answer(answer("a", answer_id="1"), 1.0)
        loop.on_answer(answer("a", answer_id="2", request_id="e/challenge/1"), 1.0)
        loop.on_answer(answer(None, answer_id="3", supersedes="2"), 1.0)
        [challenge] = loop.on_answer(answer("a", answer_id="4"), 1.0)
        assert challenge.request_id == "e/challenge/2"
        [rejected] = loop.on_answer(answer("c", answer_id="5", request_id="e/challenge/1"), 1.0)
        assert rejected.fault == "ended"

    def test_superseding_with_the_same_label_changes_its_owner(self, loop):
        loop.on_event(event(), 0.0)
        loop.on_answer(answer("a", answer_id="1"), 1.0)
        assert loop.on_answer(answer("a", answer_id="2", supersedes="1"), 1.0) == []
        [stale] = loop.on_answer(answer("b", answer_id="3", supersedes="1"), 1.0)
        assert (stale.fault, stale.reason) == (
            "ended",
            "answer '1' stands no longer; supersede the last",
        )
        [example] = loop.on_answer(answer("b", answer_id="3", supersedes="2"), 1.0)
        assert (example.y, example.revision) == ("b", 1)

    def test_numpy_labels_become_plain(self, loop, learner):
        for name, y in {"i": np.int64(3), "b": np.bool_(True), "s": np.str_("x")}.items():
            loop.on_event(event(name, y=y), 0.0)
        assert [(type(y), y) for _, y in learner.told] == [(int, 3), (bool, True), (str, "x")]

    @pytest.mark.parametrize(
        ("fields", "fault", "reason"),
        [
            (
                {"answer_id": ""},
                "malformed",
                "answer_id must be a string of at least one character, got ''",
            ),
            (
                {"event_id": None},
                "malformed",
                "event_id must be a string of at least one character, got None",
            ),
            ({"request_id": 3}, "malformed", "request_id must be a string or None, got 3"),
            ({"annotator": 3}, "malformed", "annotator must be a string or None, got 3"),
            ({"privileged": 3}, "malformed", "privileged must be a mapping or None, got 3"),
            (
                {"answered_at": float("-inf")},
                "malformed",
                "answered_at must be a finite number of seconds, got -inf",
            ),
            (
                {"y": float("nan")},
                "malformed",
                "a label must be a finite number, a bool or a string, got nan",
            ),
            (
                {"key": "bob"},
                "malformed",
                "key must be that of the event, None, got 'bob'",
            ),
            (
                {"request_id": "other/label"},
                "malformed",
                "request 'other/label' is not about event 'e'",
            ),
            ({"request_id": "e/challenge/1"}, "unknown", "request 'e/challenge/1' was never made"),
            ({"request_id": "none/label"}, "unknown", "request 'none/label' was never made"),
            ({"request_id": "nonsense"}, "unknown", "request 'nonsense' was never made"),
            ({"event_id": "f"}, "unknown", "event 'f' was never seen, or over 100.0 s ago"),
            ({"supersedes": "a0"}, "unknown", "answer 'a0' gave no label to event 'e'"),
            ({"supersedes": "o1"}, "unknown", "answer 'o1' gave no label to event 'e'"),
        ],
    )
    def test_answer_that_does_not_fit_is_rejected_and_changes_nothing(
        self, loop, learner, fields, fault, reason
    ):
        loop.on_event(event("other"), 0.0)
        loop.on_event(event(), 0.0)
        loop.on_answer(
            answer(answer_id="o1", event_id="other", request_id=None), 1.0
        )  # answers other/label
        told, deadline = list(learner.told), loop.next_deadline()
        [rejected] = loop.on_answer(answer(**fields), 1.0)
        assert (rejected.fault, rejected.reason) == (fault, reason)
        assert (learner.told, loop.next_deadline()) == (told, deadline)
        assert kinds(loop.on_answer(answer(), 1.0)) == [LabelledExample]

    def test_only_the_canonical_name_of_a_challenge_is_known(self, loop, learner):
        loop.on_event(event(), 0.0)
        learner.contests = True
        loop.on_answer(answer("a"), 1.0)
        for number in ("0", "2", "01", "+1", "1 ", "١"):
            given = answer(answer_id=number, request_id=f"e/challenge/{number}")
            [rejected] = loop.on_answer(given, 1.0)
            assert rejected.fault == "unknown"

    def test_never_seen_event_is_unknown_without_a_horizon_too(self):
        [rejected] = InteractiveLoop(ScriptedLearner()).on_answer(answer(), 1.0)
        assert (rejected.fault, rejected.reason) == ("unknown", "event 'e' was never seen")

    def test_second_annotator_comes_too_late(self, loop):
        loop.on_event(event(), 0.0)
        loop.on_answer(answer("a"), 1.0)
        [by_request] = loop.on_answer(answer("b", answer_id="a2"), 1.0)
        [by_event] = loop.on_answer(answer("b", answer_id="a3", request_id=None), 1.0)
        [decline] = loop.on_answer(answer(None, answer_id="a4"), 1.0)
        assert (by_request.fault, by_request.reason) == (
            "ended",
            "request 'e/label' has already ended; to change the label, supersede the last answer",
        )
        assert (by_event.fault, by_event.reason) == (
            "ended",
            "event 'e' has its label; supersede the answer that gave it",
        )
        assert (decline.fault, decline.reason) == (
            "ended",
            "event 'e' has no such open request to decline",
        )

    def test_rejected_answer_may_come_again(self, loop):
        assert kinds(loop.on_answer(answer(), 1.0)) == [Rejected]
        loop.on_event(event(), 0.0)
        assert kinds(loop.on_answer(answer(), 1.0)) == [LabelledExample]

    def test_unlearnable_example_is_rejected_under_the_id_of_its_answer(self, loop, learner):
        learner.refuses = True
        loop.on_event(event(key="ann"), 0.0)
        [rejected] = loop.on_answer(answer(key="ann"), 1.0)
        assert rejected == Rejected(
            subject="a1",
            key="ann",
            fault="unlearnable",
            reason="the learner refuses it: cannot learn this; use another learner",
            at=1.0,
        )
        _, rejected = loop.on_event(event("f", y="a"), 1.0)
        assert (rejected.fault, rejected.subject) == ("unlearnable", "f")

    def test_refused_correction_leaves_the_old_label(self, loop, learner):
        loop.on_event(event(), 0.0)
        loop.on_answer(answer("a"), 1.0)
        learner.refuses = True
        [rejected] = loop.on_answer(answer("b", answer_id="a2", supersedes="a1"), 1.0)
        assert rejected.fault == "unlearnable"
        learner.refuses = False
        [example] = loop.on_answer(answer("b", answer_id="a3", supersedes="a1"), 1.0)
        assert (example.revision, example.sequence) == (1, 2)

    def test_other_errors_of_the_learner_reject_the_answer(self, loop, learner, monkeypatch):
        def broken(*_, **__):
            raise RuntimeError("broken")

        loop.on_event(event(), 0.0)
        with monkeypatch.context() as patch:
            patch.setattr(learner, "settle_one", broken)
            [rejected] = loop.on_answer(answer(), 1.0)
        assert (rejected.fault, rejected.stage) == ("failed", "learn")
        assert rejected.reason == "RuntimeError: broken"
        [example] = loop.on_answer(answer(), 2.0)  # the question is still open
        assert example.origin == "asked"


class TestTime:
    def test_answer_at_the_moment_of_expiry_is_in_time(self, loop):
        loop.on_event(event(), 0.0)
        assert loop.next_deadline() == 10.0
        assert loop.on_time(10.0) == []
        [example] = loop.on_answer(answer(at=10.0), 10.0)
        assert not example.late

    @pytest.mark.parametrize("timer_ran", [True, False])
    def test_late_answer_is_learned_and_marked(self, loop, learner, timer_ran):
        loop.on_event(event(), 0.0)
        messages = loop.on_time(12.0) if timer_ran else []
        messages += loop.on_answer(answer(at=12.0), 12.0)
        assert kinds(messages) == [Expired, LabelledExample]
        assert messages[1].late
        assert messages[1].origin == "asked"
        assert learner.told == log_of(messages)

    @pytest.mark.parametrize("timer_ran", [True, False])
    def test_late_answer_to_a_challenge_revises_the_label_kept(self, loop, learner, timer_ran):
        loop.on_event(event(), 0.0)
        learner.contests = True
        loop.on_answer(answer("a"), 1.0)
        messages = loop.on_time(12.0) if timer_ran else []
        late = answer("b", at=12.0, answer_id="a2", request_id="e/challenge/1")
        messages += loop.on_answer(late, 12.0)
        assert kinds(messages) == [Expired, LabelledExample, LabelledExample]
        assert [(m.y, m.origin, m.revision, m.late) for m in messages[1:]] == [
            ("a", "asked", 0, False),
            ("b", "revised", 1, True),
        ]
        assert learner.told == log_of(messages)

    def test_late_answer_can_be_contested_and_stays_late(self, loop, learner):
        loop.on_event(event(), 0.0)
        learner.contests = True
        expired, challenge = loop.on_answer(answer("a", at=12.0), 12.0)
        assert (type(expired), challenge.expires_at) == (Expired, 22.0)
        [example] = loop.on_answer(
            answer("a", at=13.0, answer_id="a2", request_id="e/challenge/1"), 13.0
        )
        assert example.late

    def test_answer_given_in_time_is_not_late_though_the_clock_ran_ahead(self, loop):
        loop.on_event(event(), 0.0)
        assert kinds(loop.on_time(50.0)) == [Expired]
        [example] = loop.on_answer(answer(at=9.0), 9.0)
        assert not example.late

    def test_correction_is_never_late(self, loop):
        loop.on_event(event(), 0.0)
        loop.on_answer(answer("a"), 1.0)
        [example] = loop.on_answer(answer("b", at=50.0, answer_id="a2", supersedes="a1"), 50.0)
        assert not example.late

    @pytest.mark.parametrize("timer_ran", [True, False])
    def test_answer_beyond_the_horizon_is_rejected(self, timer_ran):
        learner = ScriptedLearner()
        loop = InteractiveLoop(learner, answer_horizon_s=100.0)
        loop.on_event(event(), 0.0)
        assert loop.next_deadline() == 100.0
        assert loop.on_time(100.0) == []
        messages = loop.on_time(100.5) if timer_ran else []
        messages += loop.on_answer(answer(at=100.5), 100.5)
        assert kinds(messages) == [Expired, Rejected]
        assert messages[1].fault == ("unknown" if timer_ran else "late")
        assert ("note_unanswered", 100.5) in learner.calls
        assert loop.next_deadline() is None

    def test_reason_of_a_late_rejection_names_both_times(self, loop):
        loop.on_event(event(), 0.0)
        rejected = loop.on_answer(answer(at=101.0), 101.0)[-1]
        assert rejected.reason == "answered 101.0 s after the event, expected at most 100.0 s"

    def test_answer_at_the_horizon_itself_is_learned(self, loop):
        loop.on_event(event(), 0.0)
        assert kinds(loop.on_answer(answer(at=100.0), 100.0)) == [Expired, LabelledExample]

    @pytest.mark.parametrize("timer_ran", [True, False])
    def test_event_id_may_be_used_again_beyond_the_horizon(self, timer_ran):
        loop = InteractiveLoop(ScriptedLearner(), answer_horizon_s=100.0)
        loop.on_event(event(), 0.0)
        messages = loop.on_time(101.0) if timer_ran else []
        messages += loop.on_event(event(at=101.0), 101.0)
        assert kinds(messages) == [Expired, Prediction, LabelRequest]
        assert loop.next_deadline() == 201.0

    def test_forgotten_events_leave_nothing_behind(self, loop, learner):
        for n in range(300):
            name, at = str(n), float(n)
            loop.on_time(at)
            loop.on_event(event(name, at=at), at)
            given = answer(at=at, answer_id=f"a{n}", event_id=name, request_id=None)
            loop.on_answer(given, at)
        assert len(loop._memory) == len(loop._memory._answers) == 101
        loop.on_time(1e6)
        assert len(loop._memory) == len(loop._memory._answers) == 0
        assert loop.next_deadline() is None
        assert len(learner.told) == 300

    def test_deadlines_hold_when_the_time_goes_backwards(self, loop):
        loop.on_event(event("late", at=50.0), 50.0)
        loop.on_event(event("early", at=20.0), 20.0)
        assert loop.next_deadline() == 30.0
        assert [m.request_id for m in loop.on_time(30.5)] == ["early/label"]
        assert loop.next_deadline() == 60.0

    def test_requests_expire_in_the_order_of_their_deadlines(self, loop):
        for name, at in (("c", 3.0), ("a", 1.0), ("b", 2.0)):
            loop.on_event(event(name, at=at), at)
        assert [m.event_id for m in loop.on_time(99.0)] == ["a", "b", "c"]

    def test_answered_request_has_no_deadline(self):
        loop = InteractiveLoop(ScriptedLearner(), expires_after_s=10.0)
        loop.on_event(event(), 0.0)
        loop.on_answer(answer(), 1.0)
        assert loop.next_deadline() is None
        assert loop.on_time(1e6) == []


class TestCancel:
    @pytest.mark.parametrize(
        ("request_id", "fault", "reason"),
        [
            (
                "f/label",
                "unknown",
                "request 'f/label' was never made, or its event is forgotten",
            ),
            (
                "e/challenge/2",
                "unknown",
                "request 'e/challenge/2' was never made, or its event is forgotten",
            ),
            ("e", "unknown", "request 'e' was never made, or its event is forgotten"),
            ("e/label", "ended", "request 'e/label' has already ended"),
        ],
    )
    def test_request_that_is_not_open_cannot_be_cancelled(
        self, loop, learner, request_id, fault, reason
    ):
        loop.on_event(event(), 0.0)
        learner.contests = True
        loop.on_answer(answer("a"), 1.0)
        [rejected] = loop.on_cancel(request_id, 2.0)
        assert (rejected.subject, rejected.fault, rejected.reason) == (request_id, fault, reason)
        assert kinds(loop.on_cancel("e/challenge/1", 2.0)) == [Cancel, LabelledExample]


class TestMisuse:
    def test_wrong_message_raises(self, loop):
        with pytest.raises(TypeError, match="on_event takes an Event, got 'e'"):
            loop.on_event("e", 0.0)
        with pytest.raises(TypeError, match="on_answer takes an Answer, got None"):
            loop.on_answer(None, 0.0)

    @pytest.mark.parametrize("now", [float("nan"), float("inf"), None, "noon", True])
    def test_clock_without_a_finite_number_raises(self, loop, now):
        message = f"now must be a finite number of seconds, got {now!r}"
        for call in (
            lambda: loop.on_event(event(), now),
            lambda: loop.on_answer(answer(), now),
            lambda: loop.on_time(now),
            lambda: loop.on_cancel("e/label", now),
            lambda: loop.withdraw("e", now),
        ):
            with pytest.raises(ValueError, match=message):
                call()

    @pytest.mark.parametrize("name", ["expires_after_s", "answer_horizon_s"])
    @pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
    def test_span_that_is_not_positive_raises(self, name, value):
        message = f"{name} must be a positive number of seconds or None, got {value}"
        with pytest.raises(ValueError, match=message):
            InteractiveLoop(ScriptedLearner(), **{name: value})


def test_the_loop_loads_neither_river_nor_numpy():
    code = (
        "import sys, streamgp.interactive; "
        "print(*(name for name in ('numpy', 'river', 'scipy') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("model", [None, GPClassifier()])
def test_a_model_that_cannot_converse_is_refused_at_once(model):
    with pytest.raises(TypeError, match="model must be a skeptical learner, such as"):
        InteractiveLoop(model)


def test_cancelling_what_is_no_request_is_rejected():
    [message] = InteractiveLoop(isgp(seed=1)).on_cancel(5, 0.0)
    assert (message.fault, message.subject) == ("malformed", "5")
