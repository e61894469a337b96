"""What holds for the loop under any sequence of inputs."""

import hashlib
import math
from unittest import mock

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

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
    Rejected,
    moderator,
)
from streamgp.query import RecentEventsAsk
from tests.helpers.laws import examples
from tests.interactive.scripted import ComparingLearner, log_of


def chance(purpose, odds):
    """A rule that says yes to some event ids, always the same ones."""
    return lambda event_id: hashlib.sha256(f"{purpose}{event_id}".encode()).digest()[0] < odds


LABELS = st.sampled_from(["a", "b", "c"])
NAMES = st.sampled_from([f"e{n}" for n in range(12)])
REQUESTS = st.sampled_from(
    [None, "label", "challenge/1", "challenge/2", "label/second", "label/again"]
)
SECOND = ("/label/second", "/label/again")


class ForgetfulLearner(ComparingLearner):
    """Lets an event id that the loop has forgotten be learned again, as an example of its own."""

    def settle_one(self, x, y, *, event_id=None, **rest):
        self.held.pop(event_id, None)
        return super().settle_one(x, y, event_id=event_id, **rest)


class Conversations(RuleBasedStateMachine):
    """Throws everything at a loop, and keeps its own account."""

    horizon_s: float | None = 100.0
    people = People()
    annotators: tuple[str | None, ...] = (None,)

    def __init__(self):
        super().__init__()
        learner = ComparingLearner if self.horizon_s is None else ForgetfulLearner
        self.learner = learner(
            asks=chance("ask", 200),
            contests=chance("contest", 128),
            refuses=chance("refuse", 40),
            doubts=chance("doubt", 100),
            asks_back=chance("back", 128),
            reservoir=RecentEventsAsk(size=5, max_age_s=60.0),
        )
        self.learner.drawn = lambda name: hashlib.sha256(name.encode()).digest()[0] / 256
        self.loop = InteractiveLoop(
            self.learner,
            expires_after_s=10.0,
            answer_horizon_s=self.horizon_s,
            people=self.people,
        )
        self.now = 0.0
        self.log = []  # every message
        self.open = {}  # request that has not ended yet, by event id
        self.handled = []  # inputs that were not rejected
        self.n_answers = 0
        self.standing = {}  # last accepted answer of each event
        self.lives = {}  # how often each event id has been reused
        self.requests = {}  # second questions
        self.requested = set()  # events, with their life, whose label was asked for

    def account(self, messages):
        """Follow the messages of one call; a request that ends must be open."""
        for message in messages:
            self.log.append(message)
            if isinstance(message, LabelRequest | Challenge):
                assert message.event_id not in self.open
                self.open[message.event_id] = message.request_id
            elif isinstance(message, Expired | Cancel):
                event_id = message.request_id.split("/")[0]
                assert self.open.pop(event_id) == message.request_id
        return messages

    @rule(step=st.floats(-3.0, 30.0))
    def time_moves(self, step):
        self.now += step

    @rule(name=NAMES, y=st.none() | LABELS, broken=st.booleans())
    def event(self, name, y, broken):
        x = {"bad": ValueError("broken")} if broken and y is None else {"f": 1.0}
        event = Event(event_id=name, x=x, occurred_at=self.now, y=y)
        messages = self.account(self.loop.on_event(event, self.now))
        faults = [m.fault for m in messages if isinstance(m, Rejected)]
        predictions = [m for m in messages if isinstance(m, Prediction)]
        accepted = not {"duplicate", "malformed"} & set(faults)
        assert len(predictions) == accepted
        if accepted:
            self.handled.append(event)
            asked = [m for m in messages if isinstance(m, LabelRequest) and not m.is_second]
            assert len(asked) <= 1
            if predictions[0].decision.ask:
                assert asked[0].event_id == name
            self.lives[name] = self.lives.get(name, -1) + 1
            self.standing.pop(name, None)
            for request in asked:
                self.check_request(request)

    def check_request(self, request):
        """No annotator is asked twice for the label of an event."""
        name = request.event_id
        assert (name, self.lives[name]) not in self.requested
        self.requested.add((name, self.lives[name]))
        at = self.loop._memory[name].event.occurred_at
        assert request.occurred_at in (at, None if at == self.now else at)
        if self.loop._memory[name].asked_back_at is not None:
            assert name in [record.event.event_id for record in self.loop._memory][-5:]
            assert self.now <= at + 60.0
            assert self.horizon_s is None or request.expires_at <= at + self.horizon_s

    @rule(
        name=NAMES,
        request=REQUESTS,
        y=st.none() | LABELS,
        correct=st.booleans(),
        n=st.integers(0, 5),
    )
    def answer(self, name, request, y, correct, n):
        self.n_answers += 1
        before = self.open.get(name)
        answer = Answer(
            answer_id=f"a{self.n_answers}",
            event_id=name,
            request_id=request and f"{name}/{request}",
            y=y,
            declined=y is None,
            annotator=self.annotators[n % len(self.annotators)],
            answered_at=self.now,
            supersedes=self.standing.get(name) if correct else None,
        )
        messages = self.loop.on_answer(answer, self.now)
        rejected = [
            m for m in messages if isinstance(m, Rejected) and m.subject == answer.answer_id
        ]
        accepted = all(m.fault == "unlearnable" for m in rejected)
        expired = any(isinstance(m, Expired) for m in messages)
        # A correction of the first answer is none to the second question.
        is_other = before is not None and before.endswith(SECOND) and answer.supersedes is not None
        if accepted and before is not None and not expired and not is_other:
            del self.open[name]
        self.account(messages)
        if accepted:
            self.handled.append(answer)
            if y is not None or before is None or not before.startswith(f"{name}/challenge"):
                self.standing[name] = answer.answer_id
        else:
            assert self.open.get(name) == (None if expired else before)
        # What has ended can be declined by anyone: that changes nothing.
        self.check_second(answer, messages, accepted and (y is not None or before is not None))

    def check_second(self, answer, messages, accepted):
        """A second question is asked of whom it is for, and answered by no other."""
        for request in messages:
            if isinstance(request, LabelRequest) and request.is_second:
                said = self.loop._memory[request.event_id].speakers
                assert set(request.excluded) == (set() if request.annotator else set(said))
                assert said == [request.annotator] or request.annotator is None
                self.requests[request.request_id] = request
        request = self.requests.get(answer.request_id)
        if accepted and request is not None and answer.supersedes is None:
            assert request.may_answer(answer.annotator)

    @rule(name=NAMES, request=REQUESTS.filter(bool))
    def cancel(self, name, request):
        is_open = self.open.get(name) == f"{name}/{request}"
        messages = self.account(self.loop.on_cancel(f"{name}/{request}", self.now))
        assert isinstance(messages[0], Cancel if is_open else Rejected)

    @rule(name=NAMES)
    def erase(self, name):
        held = name in self.learner.held
        messages = self.account(self.loop.withdraw(name, self.now))
        assert [type(m) for m in messages if not isinstance(m, Cancel)] == [LabelledExample] * held
        assert name not in self.learner.held

    @rule(ahead=st.floats(0.0, 120.0))
    def time_passes(self, ahead):
        deadline = self.loop.next_deadline()
        messages = self.account(self.loop.on_time(self.now + ahead))
        if deadline is None or deadline >= self.now + ahead:
            assert messages == []
        following = self.loop.next_deadline()
        assert following is None or following >= self.now + ahead

    @precondition(lambda self: self.loop.next_deadline() is not None)
    @rule()
    def time_passes_the_next_deadline(self):
        deadline = self.loop.next_deadline()
        assert self.loop.on_time(deadline) == []
        n_known = len(self.loop._memory)
        messages = self.account(self.loop.on_time(math.nextafter(deadline, math.inf)))
        assert messages or len(self.loop._memory) < n_known

    @precondition(lambda self: self.handled)
    @rule(data=st.data())
    def repetition(self, data):
        """Within the horizon, what was handled before is a duplicate and changes nothing."""
        again = data.draw(st.sampled_from(self.handled))
        if self.loop._memory.get(again.event_id) is None:
            return
        told, calls = list(self.learner.told), list(self.learner.calls)
        deadline = self.loop.next_deadline()
        if isinstance(again, Event):
            if self.loop._memory[again.event_id].event is not again:
                return  # another life of this id
            [rejected] = self.loop.on_event(again, again.occurred_at)
            assert rejected.fault == "duplicate"
        elif again.answer_id in self.loop._memory._answers:
            [rejected] = self.loop.on_answer(again, again.answered_at)
            assert rejected.fault == "duplicate"
        assert (self.learner.told, self.learner.calls) == (told, calls)
        assert self.loop.next_deadline() == deadline

    @invariant()
    def model_was_told_what_the_consensus_log_says(self):
        assert self.learner.told == log_of(self.log)

    @invariant()
    def lines_are_numbered_without_gaps(self):
        sequences = [m.sequence for m in self.log if isinstance(m, LabelledExample)]
        assert sequences == list(range(1, len(sequences) + 1))

    @invariant()
    def open_requests_are_those_of_the_account(self):
        for event_id, request_id in self.open.items():
            request = self.loop._memory[event_id].open_request
            assert request is not None
            assert request.request_id == request_id

    def teardown(self):
        """At the end every request has ended, and everything is forgotten."""
        self.account(self.loop.on_time(1e9))
        assert self.open == {}
        assert self.horizon_s is None or len(self.loop._memory) == 0
        assert self.loop.next_deadline() is None


class ShortConversations(Conversations):
    """Events are remembered for ever: their ids are used once, and nothing is learned twice."""

    horizon_s = None


class SecondQuestions(Conversations):
    """Two annotators, who are asked about some events a second time."""

    people = People(overlap=0.4, repeat=0.4)
    annotators = ("ann", "bob", None)

    def __init__(self):
        super().__init__()
        self.soon = mock.patch.object(moderator, "LATER", 2)
        self.soon.start()

    @rule(name=NAMES, said=st.lists(st.tuples(LABELS, st.integers(0, 2)), max_size=3))
    def talk(self, name, said):
        """Say what comes next about an event: most of what is drawn at random leads nowhere."""
        if self.loop._memory.get(name) is None:
            self.event(name, None, False)
        for y, n in said:
            if name in self.open:
                self.answer(name, self.open[name].removeprefix(f"{name}/"), y, False, n)

    @rule(name=NAMES, y=st.none() | LABELS, n=st.integers(0, 5))
    def correct(self, name, y, n):
        """Supersede the last answer about an event, of whichever question it was."""
        if name in self.standing:
            self.answer(name, None, y, True, n)

    def teardown(self):
        super().teardown()
        self.soon.stop()


class SecondQuestionsForEver(SecondQuestions, ShortConversations):
    """The same, of events that are never forgotten."""


TestConversations = Conversations.TestCase
TestConversations.settings = settings(examples(60), stateful_step_count=50)
TestShortConversations = ShortConversations.TestCase
TestShortConversations.settings = settings(examples(60), stateful_step_count=50)
TestSecondQuestions = SecondQuestions.TestCase
TestSecondQuestions.settings = settings(examples(60), stateful_step_count=50)
TestSecondQuestionsForEver = SecondQuestionsForEver.TestCase
TestSecondQuestionsForEver.settings = settings(examples(60), stateful_step_count=50)
