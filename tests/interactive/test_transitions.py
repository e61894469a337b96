"""The table at the head of the loop, read from its docstring and tried cell by cell."""

import re
from itertools import product

import pytest

from streamgp.interactive import Answer, Event, InteractiveLoop, Rejected
from streamgp.interactive import loop as loop_module
from streamgp.query import ReservoirAsk
from tests.interactive.scripted import ScriptedLearner, log_of

TEXT = loop_module.__doc__ or ""
LEGEND, _, REST = TEXT.partition("The transitions.")
TABLE = [re.split(" {2,}", line.strip()) for line in REST.splitlines() if "  " in line.strip()]
ROWS = [
    (states.split(), inputs.split(), next_state, messages.split())
    for states, inputs, next_state, messages in TABLE[2:]
]
STATES = re.findall(r"^    (\w+) {2,}", LEGEND.split("The inputs.")[0], re.MULTILINE)
INPUTS = [
    "event",
    "event+",
    "label",
    "unasked",
    "same",
    "other",
    "restate",
    "replace",
    "takeback",
    "decline",
    "cancel",
    "erase",
    "deadline",
    "horizon",
    "review",
    "back",
]


def expected(state, given):
    for states, inputs, next_state, messages in ROWS:
        if (state in states or "*" in states) and (
            given in inputs or given.rstrip("?!#") in inputs or "*" in inputs
        ):
            return (state if next_state == "=" else next_state), [m for m in messages if m != "-"]
    raise LookupError(f"the table has no row for {given} in {state}")


class Conversation:
    """One event, driven into a state; opens at 0, expires 10 s after a question, forgets at 100.

    Where a label is learned, somebody has upheld it, unless told otherwise.
    """

    def __init__(self, state, upheld=True):
        self.upheld = upheld
        self.learner = ScriptedLearner(proba={"b": 0.6, "a": 0.4}, reservoir=ReservoirAsk())
        self.loop = InteractiveLoop(self.learner, expires_after_s=10.0, answer_horizon_s=100.0)
        self.messages = []
        self.now = 0.0
        self.n_answers = 0
        self.standing = "nobody"
        self.challenged = False
        getattr(self, f"to_{state}")()
        assert self.state == state

    @property
    def state(self):
        record = self.loop._memory.get("e")
        return "unknown" if record is None else record.state

    def event(self, y=None):
        event = Event(event_id="e", x={"f": 1.0}, occurred_at=self.now, y=y)
        return self.note(self.loop.on_event(event, self.now))

    def answer(self, y, request=None, supersedes=None):
        self.n_answers += 1
        answer = Answer(
            answer_id=f"a{self.n_answers}",
            event_id="e",
            request_id=request and f"e/{request}",
            y=y,
            declined=y is None,
            answered_at=self.now,
            supersedes=supersedes,
        )
        return self.note(self.loop.on_answer(answer, self.now))

    def review(self):
        """Let another event happen, after which the model looks through its labels."""
        self.learner.doubts = True
        messages = self.another_event()
        self.learner.doubts = False
        return messages

    def back(self):
        """Let another event happen, after which the model looks through the latest events."""
        self.learner.asks_back = lambda event_id: event_id == "e"
        messages = self.another_event()
        self.learner.asks_back = False
        return messages

    def another_event(self):
        other = Event(event_id=f"f{len(self.learner.calls)}", x={"f": 1.0}, occurred_at=self.now)
        messages = self.loop.on_event(other, self.now)
        return [m for m in messages if m.event_id == "e"]

    def note(self, messages):
        self.messages += messages
        return messages

    def to_unknown(self):
        pass

    def to_seen(self):
        self.learner.asks = False
        self.event()

    def to_asked(self):
        self.event()
        self.now = 1.0

    def to_expired(self):
        self.to_asked()
        self.now = 20.0
        self.loop.on_time(self.now)

    def to_declined(self):
        self.to_asked()
        self.answer(None, "label")
        self.standing = "a1"

    def to_cancelled(self):
        self.to_asked()
        self.loop.on_cancel("e/label", self.now)

    def to_challenged(self):
        self.to_asked()
        self.learner.contests = True
        self.answer("a", "label")
        self.learner.contests = False
        self.standing = "a1"
        self.challenged = True
        self.now = 2.0

    def to_learned(self):
        if not self.upheld:
            self.to_asked()
            self.answer("a", "label")
            return
        self.to_challenged()
        self.answer("a", "challenge/1")
        self.standing = "a2"

    def to_kept(self):
        self.to_challenged()
        self.now = 20.0
        self.note(self.loop.on_time(self.now))

    def to_doubted(self):
        self.to_asked()
        self.answer("a", "label")
        self.input("review")
        self.standing = "a1"
        self.challenged = True
        self.now = 2.0

    def to_withdrawn(self):
        self.to_learned()
        self.answer(None, supersedes="a2")
        self.standing = "a3"

    def to_refused(self):
        self.to_challenged()
        self.learner.refuses = True
        self.answer("a", "challenge/1")
        self.learner.refuses = False
        self.standing = "a2"

    def input(self, given):
        self.learner.asks = given.endswith("?")
        self.learner.contests = given.endswith("!")
        self.learner.refuses = given.endswith("#")
        last = "challenge/1" if self.challenged else "label"
        match given.rstrip("?!#"):
            case "event":
                return self.event()
            case "event+":
                return self.event(y="a")
            case "label":
                return self.answer("a", "label")
            case "unasked":
                return self.answer("a")
            case "same":
                return self.answer("a", "challenge/1")
            case "other":
                return self.answer("c", "challenge/1")
            case "restate":
                return self.answer("a", supersedes=self.standing)
            case "replace":
                return self.answer("c", supersedes=self.standing)
            case "takeback":
                return self.answer(None, supersedes=self.standing)
            case "decline":
                return self.answer(None, None if self.state == "seen" else last)
            case "cancel":
                return self.note(self.loop.on_cancel(f"e/{last}", self.now))
            case "erase":
                return self.note(self.loop.withdraw("e", self.now))
            case "deadline":
                return self.note(self.loop.on_time(30.0))
            case "horizon":
                return self.note(self.loop.on_time(100.5))
            case "review":
                return self.note(self.review())
            case "back":
                return self.note(self.back())
        raise LookupError(given)


def word(message):
    return message.fault if isinstance(message, Rejected) else type(message).__name__


def test_table_uses_the_documented_states_and_inputs_only():
    assert len(STATES) == 12
    assert {s for states, *_ in ROWS for s in states} <= {*STATES, "*"}
    assert {n for _, _, n, _ in ROWS} <= {*STATES, "="}
    assert {i.rstrip("?!#") for _, inputs, *_ in ROWS for i in inputs} == {*INPUTS, "*"}
    assert all(re.search(rf"  {re.escape(i)}  ", LEGEND) for i in INPUTS)


@pytest.mark.parametrize(
    ("state", "given"),
    [(s, i + mark) for s, i, mark in product(STATES, INPUTS, ("", "!", "#"))]
    + [(s, "event?") for s in STATES],
)
def test_every_cell_of_the_table_holds(state, given):
    is_review = given.rstrip("!#") == "review"
    conversation = Conversation(state, upheld=not (is_review and state == "learned"))
    told = list(conversation.learner.told)
    messages = conversation.input(given)
    next_state, words = expected(state, given)
    assert [word(m) for m in messages] == words
    assert conversation.state == next_state
    # The model was told what the consensus log says, and nothing by an input without effect.
    assert conversation.learner.told == log_of(conversation.messages)
    if "LabelledExample" not in words:
        assert conversation.learner.told == told


def test_a_label_that_somebody_has_upheld_is_not_doubted():
    conversation = Conversation("learned")
    assert conversation.input("review") == []
    assert conversation.state == "learned"


@pytest.mark.parametrize("state", STATES)
def test_repeating_an_answer_changes_nothing_in_any_state(state):
    conversation = Conversation(state)
    for n in range(conversation.n_answers):
        conversation.n_answers = n
        [rejected] = conversation.answer("z", "label")
        assert (rejected.fault, rejected.subject) == ("duplicate", f"a{n + 1}")
        assert conversation.state == state
