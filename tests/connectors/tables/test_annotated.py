from collections import deque

import pytest

from connectors.broker import Received
from connectors.jsonl import MessageFiles, read_messages
from connectors.runner import run
from connectors.tables.log_source import AnnotatedLog
from streamgp.base import Decision
from streamgp.interactive import (
    Answer,
    AnswerQueue,
    Cancel,
    Challenge,
    Event,
    InteractiveLoop,
    KeyedLoops,
    LabelledExample,
    LabelRequest,
    Rejected,
    SimulatedAnnotator,
)
from tests.helpers.messages import challenge, label_request


class ListSource:
    """A log in memory, some records at a time."""

    def __init__(self, messages, batch=3):
        self.left = deque(messages)
        self.batch = batch
        self.n_commits = 0

    def poll(self, timeout_s=0.0):
        assert timeout_s >= 0.0
        taken = [self.left.popleft() for _ in range(min(self.batch, len(self.left)))]
        return [Received(message=m, at=getattr(m, "occurred_at", 0.0)) for m in taken]

    @property
    def exhausted(self):
        return not self.left

    def commit(self):
        self.n_commits += 1

    def close(self):
        self.left.clear()


class ListSink:
    def __init__(self):
        self.messages = []

    def send(self, message, *, cause=None):
        assert cause is None or isinstance(cause, Received)
        self.messages.append(message)

    def flush(self):
        pass

    def close(self):
        self.messages = None


class Asker:
    """Asks about every event; challenges every first answer."""

    def on_event(self, event, now, **_):
        return [label_request(event.event_id, now)]

    def on_answer(self, answer, now, **_):
        if answer.request_id.endswith("/label"):
            return [challenge(answer.event_id, now)]
        return []

    def on_time(self, now):  # noqa: ARG002 - nothing is ever due
        return []

    def next_deadline(self):
        return None


def events(*times):
    return [
        Event(event_id=f"e{i}", x={"a": i}, occurred_at=float(t), truth="home")
        for i, t in enumerate(times, 1)
    ]


def play(log, loop, delay):
    """Return what the loop was told, in order, as (id, time)."""
    sink = ListSink()
    annotated = AnnotatedLog(log, sink, AnswerQueue(SimulatedAnnotator(delay=delay, seed=1)))
    told = []
    run(loop, annotated, annotated, on_input=told.append)
    assert annotated.exhausted
    return [
        (getattr(r.message, "request_id", None) or r.message.event_id, r.at) for r in told
    ], sink


def test_a_question_that_was_taken_back_is_not_answered_even_at_the_same_moment():
    class Withdrawing(Asker):
        """The first answer makes the second question needless, and the third event its own."""

        def on_event(self, event, now, **_):
            return [label_request(event.event_id, now)] if now < 5.0 else [cancel("e3")]

        def on_answer(self, answer, now, **_):  # noqa: ARG002
            return [cancel("e2")] if answer.event_id == "e1" else []

    def cancel(event_id):
        return Cancel(request_id=f"{event_id}/label", key=None, why="clear by now", at=5.0)

    told, _ = play(ListSource(events(0, 0, 4, 5)), Withdrawing(), delay=4.0)
    assert told == [("e1", 0.0), ("e2", 0.0), ("e1/label", 4.0), ("e3", 4.0), ("e4", 5.0)]


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_answers_come_between_events_at_their_time(batch):
    log = ListSource(events(0, 10, 20), batch)
    told, _ = play(log, Asker(), delay=7.0)
    assert told == [
        ("e1", 0.0),
        ("e1/label", 7.0),
        ("e2", 10.0),
        ("e1/challenge/1", 14.0),
        ("e2/label", 17.0),
        ("e3", 20.0),
        ("e2/challenge/1", 24.0),
        ("e3/label", 27.0),
        ("e3/challenge/1", 34.0),
    ]


def test_an_answer_due_at_the_time_of_an_event_comes_first():
    told, _ = play(ListSource(events(0, 10)), Asker(), delay=10.0)
    assert told[:3] == [("e1", 0.0), ("e1/label", 10.0), ("e2", 10.0)]


def test_without_delay_everything_is_settled_before_the_next_event():
    told, _ = play(ListSource(events(1, 1)), Asker(), delay=0.0)
    assert [name for name, _ in told] == [
        "e1",
        "e1/label",
        "e1/challenge/1",
        "e2",
        "e2/label",
        "e2/challenge/1",
    ]


def test_answers_are_written_to_the_sink_as_they_are_given():
    _, sink = play(ListSource(events(0, 10)), Asker(), delay=3.0)
    found = [(type(m).__name__, m.request_id) for m in sink.messages]
    assert found == [
        ("LabelRequest", "e1/label"),
        ("Answer", "e1/label"),
        ("Challenge", "e1/challenge/1"),
        ("Answer", "e1/challenge/1"),
        ("LabelRequest", "e2/label"),
        ("Answer", "e2/label"),
        ("Challenge", "e2/challenge/1"),
        ("Answer", "e2/challenge/1"),
    ]


def test_rejected_rows_pass_through():
    rejected = Rejected(subject="row 1", fault="malformed", reason="why", at=0.0)
    annotated = AnnotatedLog(ListSource([rejected]), ListSink(), AnswerQueue(SimulatedAnnotator()))
    assert [r.message for r in annotated.poll()] == [rejected]
    assert annotated.poll() == []
    assert annotated.exhausted


def test_queues_that_hand_out_lists_will_do_too():
    class Eager:
        def __init__(self):
            self.answers = []

        def see(self, event):
            self.seen = event

        def ask(self, request, now):
            self.answers.append(
                Answer(
                    answer_id=request.request_id,
                    request_id=request.request_id,
                    event_id=request.event_id,
                    y="home",
                    answered_at=now + 1.0,
                )
            )

        def due(self, until):
            due = [a for a in self.answers if a.answered_at <= until]
            self.answers = [a for a in self.answers if a.answered_at > until]
            return due

        def next_at(self):
            return min((a.answered_at for a in self.answers), default=None)

    annotated = AnnotatedLog(ListSource(events(0, 0, 5)), ListSink(), Eager())
    told = []
    run(Asker(), annotated, annotated, on_input=told.append)
    names = [getattr(r.message, "request_id", None) or r.message.event_id for r in told]
    assert names == [
        "e1",
        "e2",
        "e1/label",
        "e2/label",
        "e1/challenge/1",
        "e2/challenge/1",
        "e3",
        "e3/label",
        "e3/challenge/1",
    ]


def test_committing_and_closing_reach_the_log_and_the_sink():
    log, sink = ListSource(events(0)), ListSink()
    annotated = AnnotatedLog(log, sink, AnswerQueue(SimulatedAnnotator()))
    annotated.commit()
    annotated.close()
    assert log.n_commits == 1
    assert log.exhausted
    assert sink.messages is None


class Majority:
    """A skeptical learner that predicts the most frequent label and asks about everything."""

    def __init__(self):
        self.labels = {}

    @property
    def n_learned(self):
        return len(self.labels)

    def clone(self):
        return Majority()

    def observe_one(self, x):
        pass

    def predict_proba_one(self, _x):
        found = list(self.labels.values())
        return {y: found.count(y) / len(found) for y in sorted(set(found))}

    def query_one(self, _x, *, event_id=None, now=None):
        assert event_id is not None
        assert now is not None
        return Decision.of(1.0, 0.0, "always")

    def note_query(self, decision, *, asked, now):
        assert asked == decision.ask
        assert now is not None

    def note_unanswered(self, now):
        pass

    def challenge_one(self, x, y, *, annotator=None, event_id=None):
        assert event_id is not None
        score = self.probability_wrong_one(x, y, annotator=annotator)
        return Decision.of(score, 0.5, "majority")

    def probability_wrong_one(self, x, y, *, annotator=None):
        assert annotator is None or annotator
        return 1.0 - self.predict_proba_one(x).get(y, 0.0) if self.labels else 0.0

    def neighbours_one(self, _x, n=3):
        assert n > 0
        return []

    def settle_one(self, x, y, *, given, challenged, annotator=None, event_id=None):
        assert challenged or given == y
        assert x is not None
        assert annotator is None or annotator
        self.labels[event_id] = y

    def relabel_one(self, event_id, y):
        self.labels[event_id] = y

    def forget_one(self, event_id):
        del self.labels[event_id]


def replay(directory, delay):
    log = ListSource(
        [
            Event(event_id=f"e{i}", x={"a": i}, occurred_at=10.0 * i, truth="home")
            for i in range(1, 201)
        ]
    )
    files = MessageFiles(directory)
    annotator = SimulatedAnnotator(
        error_rate=0.2, decline_rate=0.1, delay=delay, classes=["home", "work"], seed=1
    )
    annotated = AnnotatedLog(log, files, AnswerQueue(annotator))
    loop = InteractiveLoop(Majority(), expires_after_s=25.0)
    result = run(loop, annotated, annotated)
    annotated.close()
    return result, {p.name: list(read_messages(p)) for p in sorted(directory.iterdir())}


@pytest.mark.parametrize("delay", [0.0, 12.0, 30.0])
def test_the_interactive_loop_is_replayed_alike_every_time(tmp_path, delay):
    result, found = replay(tmp_path / "first", delay)
    assert result.n_events == len(found["predictions.jsonl"]) == 200
    asked = [m for m in found["requests.jsonl"] if isinstance(m, LabelRequest | Challenge)]
    assert result.n_answers == len(found["answers.jsonl"]) == len(asked)
    assert any(m.declined for m in found["answers.jsonl"])
    assert found["rejected.jsonl"] == []  # one that declines after the request expired included
    assert any(isinstance(m, Challenge) for m in asked)
    assert len(found["consensus.jsonl"]) > 150
    times = [m.answered_at for m in found["answers.jsonl"]]
    assert times == sorted(times)
    replay(tmp_path / "second", delay)
    for path in (tmp_path / "first").iterdir():
        assert path.read_bytes() == (tmp_path / "second" / path.name).read_bytes()


def test_keyed_loops_are_replayed_as_well():
    log = ListSource(
        [
            Event(event_id=f"e{i}", key=f"k{i % 3}", x={}, occurred_at=10.0 * i, truth="home")
            for i in range(1, 100)
        ]
    )
    sink = ListSink()
    queue = AnswerQueue(SimulatedAnnotator(delay=30.0, seed=1))
    annotated = AnnotatedLog(log, sink, queue)
    result = run(KeyedLoops(Majority(), expires_after_s=25.0), annotated, annotated)
    learned = [m for m in sink.messages if isinstance(m, LabelledExample)]
    assert result.n_events == result.n_answers == len(learned) == 99
    assert all(m.late for m in learned)
    assert [m.sequence for m in learned if m.key == "k0"] == list(range(1, 34))
