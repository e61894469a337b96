import json
import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.interactive import (
    AnnotatorPanel,
    Answer,
    AnswerQueue,
    Cancel,
    Event,
    SimulatedAnnotator,
    SimulatedMeasurer,
)
from tests.helpers.messages import label_request as request


class Clerk:
    """Answers after the delay that stands in the event id; remembers which labels it saw."""

    def __init__(self):
        self.seen = []

    def see(self, truth):
        self.seen.append(truth)

    def answer(self, request, truth, now):
        return Answer(
            answer_id=f"{request.request_id}/answer",
            event_id=request.event_id,
            y=truth,
            declined=truth is None,
            answered_at=now + float(request.event_id.split("-")[1]),
        )


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5))))
def test_answers_come_in_order_of_time_then_of_asking(questions):
    queue = AnswerQueue(Clerk())
    for n, (now, delay) in enumerate(questions):
        queue.ask(request(f"{n}-{delay}"), float(now))
    expected = sorted((now + delay, n) for n, (now, delay) in enumerate(questions))
    assert len(queue) == len(questions)
    assert queue.next_at() == (expected[0][0] if expected else None)
    came = [(a.answered_at, int(a.event_id.split("-")[0])) for a in queue.due(100.0)]
    assert came == expected
    assert queue.next_at() is None


def test_a_pickled_queue_answers_the_same():
    queue = AnswerQueue(SimulatedAnnotator(delay=1.0, seed=1))
    queue.see(Event(event_id="e-1", x={}, occurred_at=0.0, truth="hall"))
    queue.ask(request("e-1"), 0.0)
    assert list(pickle.loads(pickle.dumps(queue)).due(9.0)) == list(queue.due(9.0))


def test_what_an_annotator_returns_is_an_answer():
    class Truthful(Clerk):
        def answer(self, request, truth, now):  # noqa: ARG002
            return truth

    queue = AnswerQueue(Truthful())
    queue.see(Event(event_id="e-1", x={}, occurred_at=0.0, truth="hall"))
    refused = r"^Truthful.answer must return an Answer or None, got 'hall'$"
    with pytest.raises(TypeError, match=refused):
        queue.ask(request("e-1"), 0.0)


@pytest.mark.parametrize("at", [float("nan"), float("inf"), None])
def test_an_answer_without_a_time_is_refused(at):
    class Timeless(Clerk):
        def answer(self, request, truth, now):  # noqa: ARG002
            return Answer(answer_id="a", event_id=request.event_id, y="hall", answered_at=at)

    refused = f"^Timeless.answer must return an Answer with a finite answered_at, got {at}$"
    with pytest.raises(ValueError, match=refused):
        AnswerQueue(Timeless()).ask(request("e-1"), 0.0)


def test_only_answers_given_by_then_are_due():
    queue = AnswerQueue(Clerk())
    for delay in (1, 2, 3):
        queue.ask(request(f"e-{delay}"), 0.0)
    assert [a.answered_at for a in queue.due(2.0)] == [1.0, 2.0]
    assert list(queue.due(2.5)) == []
    assert queue.next_at() == 3.0


def test_what_is_asked_again_is_answered_once_by_one_who_is_not_excluded():
    panel = AnnotatorPanel(
        [SimulatedAnnotator(delay=5.0, name=name) for name in ("ann", "bob", "eve")], seed=1
    )
    queue, asked = AnswerQueue(panel), [request(str(n)) for n in range(20)]
    for question in asked:
        queue.see(Event(event_id=question.event_id, x={}, occurred_at=0.0, truth="a"))
        queue.ask(question, 0.0)
    for question in asked:
        queue.ask(replace(question, excluded=("eve",)), 1.0)
    given = list(queue.due(10.0))
    counting = [answer.event_id for answer in given if answer.annotator != "eve"]
    assert sorted(counting) == sorted(question.event_id for question in asked)
    assert len(given) > 20  # those of eve come, too


def test_a_question_that_was_taken_back_is_not_answered():
    queue = AnswerQueue(SimulatedAnnotator(delay=1.0))
    for name in ("a", "b", "c"):
        queue.ask(request(name), 0.0)
    for key, name in ((None, "b"), ("another", "c")):
        queue.cancel(Cancel(request_id=f"{name}/label", key=key, why="clear by now", at=0.5))
    assert [answer.event_id for answer in queue.due(9.0)] == ["a", "c"]


def test_question_asked_meanwhile_is_answered_in_the_same_round():
    queue = AnswerQueue(Clerk())
    queue.ask(request("a-1"), 0.0)
    queue.ask(request("b-3"), 0.0)
    came = []
    for answer in queue.due(5.0):
        came.append(answer.event_id)
        if answer.event_id == "a-1":
            queue.ask(request("c-1"), answer.answered_at)
    assert came == ["a-1", "c-1", "b-3"]


def test_annotator_sees_the_truth_of_every_event_that_has_one():
    clerk = Clerk()
    queue = AnswerQueue(clerk)
    for n, truth in enumerate(["a", None, False, "a"]):
        queue.see(Event(event_id=f"{n}-0", x={}, occurred_at=0.0, truth=truth))
    for n in range(5):
        queue.ask(request(f"{n}-0"), 0.0)
    assert clerk.seen == ["a", False, "a"]
    assert [a.y for a in queue.due(0.0)] == ["a", None, False, "a", None]


def test_truths_of_different_keys_are_kept_apart():
    queue = AnswerQueue(SimulatedAnnotator())
    for key in ("ann", "bob"):
        queue.see(Event(event_id="e", key=key, x={}, occurred_at=0.0, truth=key))
    for key in ("ann", "bob"):
        queue.ask(request("e", key=key), 0.0)
    assert [(a.key, a.y) for a in queue.due(0.0)] == [("ann", "ann"), ("bob", "bob")]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("see"), st.integers(0, 9), st.sampled_from(["a", "b", 3, False, None])),
        st.tuples(st.just("ask"), st.integers(0, 9), st.integers(0, 20)),
        st.tuples(st.just("due"), st.integers(0, 40), st.none()),
    ),
    max_size=40,
)


def play(queue, step):
    """Do one step; return the answers that came of it."""
    what, n, more = step
    if what == "see":
        queue.see(Event(event_id=str(n), x={}, occurred_at=0.0, truth=more))
    elif what == "ask":
        queue.ask(request(str(n)), float(more))
    else:
        return list(queue.due(float(n)))
    return []


@given(STEPS, st.integers(0, 40), st.booleans())
def test_cut_anywhere_hands_out_the_same_answers(steps, cut, see_first):
    """The truths come from the log, before or after the state is taken over."""

    def fresh():
        return AnswerQueue(SimulatedAnnotator(error_rate=0.5, decline_rate=0.1, delay=5.0, seed=1))

    whole, first, second = fresh(), fresh(), fresh()
    expected = [play(whole, step) for step in steps]
    came = [play(first, step) for step in steps[:cut]]
    state = json.loads(json.dumps(first.state()))
    if not see_first:
        second.load_state(state)
    for step in steps[:cut]:
        if step[0] == "see":
            play(second, step)
    if see_first:
        second.load_state(state)
    came += [play(second, step) for step in steps[cut:]]
    assert came == expected
    assert second.state() == whole.state()
    assert len(second) == len(whole)


def test_state_holds_the_answers_on_their_way_and_no_truths():
    queue = AnswerQueue(SimulatedAnnotator(delay=5.0, seed=1))
    queue.see(Event(event_id="1", x={}, occurred_at=0.0, truth="a"))
    queue.ask(request("1"), 0.0)
    state = queue.state()
    assert list(state) == ["annotator", "n_asked", "waiting"]
    assert state["n_asked"] == 1
    [[number, answer]] = state["waiting"]
    assert (number, answer["answer_id"], answer["y"]) == (1, "1/label/answer", "a")


def test_queue_whose_annotator_cannot_be_saved_cannot_be_saved():
    message = "Clerk cannot be saved; give it the methods state and load_state"
    with pytest.raises(TypeError, match=message):
        AnswerQueue(Clerk()).state()
    with pytest.raises(TypeError, match=message):
        AnswerQueue(Clerk()).load_state({"annotator": {}})


def test_what_is_no_label_is_nothing_that_an_annotator_can_say():
    queue = AnswerQueue(SimulatedMeasurer(seed=1))
    queue.see(Event(event_id="e1", x={}, occurred_at=0.0, truth=1e155))
    queue.ask(request("e1"), 0.0)
    [answer] = queue.due(0.0)
    assert answer.declined
