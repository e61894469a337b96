"""The transition table: played cell by cell on the loop, and held against laws of its own."""

from itertools import product
from pathlib import Path

import pytest

from streamgp.interactive import Answer, Event, InteractiveLoop, People, Rejected
from streamgp.interactive.moderator import LATER
from streamgp.interactive.transitions import (
    CELLS,
    INPUTS,
    MARKS,
    STATES,
    TABLE,
)
from streamgp.query import RecentEventsAsk
from tests.interactive.scripted import ComparingLearner, log_of

OPEN = ("asked", "challenged", "doubted", "compared")
LEARNED = ("learned", "kept", "doubted", "compared", "uncompared")
OF_SECOND = ("second", "amend", "revoke")
MESSAGES = {"Prediction", "LabelRequest", "Challenge", "Cancel", "LabelledExample", "Expired"}
FAULTS = {"duplicate", "unknown", "ended", "unlearnable"}


class Conversation:
    """One event, driven into a state; opens at 0, expires 10 s after a question, forgets at 100.

    Where a label is learned, an annotator has upheld it, unless stated otherwise.

    `second` is whether a second annotator was asked about the event, and has answered or declined,
    where the state allows it; `later` whether the first one is to be asked once more.
    """

    def __init__(self, state, upheld=True, second=False, later=False):
        self.upheld, self.second = upheld, second
        self.learner = ComparingLearner(proba={"b": 0.6, "a": 0.4}, reservoir=RecentEventsAsk())
        self.learner.drawn = 0.0 if second else 0.5 if later else 0.99
        self.second_standing = "none"
        self.loop = InteractiveLoop(
            self.learner,
            expires_after_s=10.0,
            answer_horizon_s=100.0,
            people=People(overlap=0.4, repeat=0.4),
        )
        self.messages = []
        self.now = 0.0
        self.n_answers = 0
        self.standing = "none"
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

    def answer(self, y, request=None, supersedes=None, annotator="ann"):
        self.n_answers += 1
        answer = Answer(
            answer_id=f"a{self.n_answers}",
            event_id="e",
            request_id=request and f"e/{request}",
            y=y,
            declined=y is None,
            annotator=annotator,
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

    def compare(self):
        """Let labels of other events be learned, after which the first annotator is asked again."""
        found = []
        self.learner.contests = self.learner.refuses = False
        for n in range(LATER):
            event = Event(event_id=f"g{n}", x={"f": 1.0}, occurred_at=self.now, y="z")
            found += self.loop.on_event(event, self.now)
            self.learner.told.pop()
        return [m for m in found if getattr(m, "event_id", None) == "e"]

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
        self.decline_too_late()

    def decline_too_late(self):
        self.answer(None, "label")
        self.standing = f"a{self.n_answers}"

    def to_declined(self):
        if self.second:
            self.to_challenged()
            self.answer(None, supersedes=self.standing)
            return
        self.to_asked()
        self.answer(None, "label")
        self.standing = "a1"

    def to_cancelled(self):
        self.to_asked()
        self.loop.on_cancel("e/label", self.now)
        self.decline_too_late()

    def to_challenged(self):
        if self.second:
            self.to_withdrawn()
            self.learner.contests = True
            self.answer("a", "label")
            self.learner.contests = False
            self.standing = f"a{self.n_answers}"
            return
        self.to_asked()
        self.learner.contests = True
        self.answer("a", "label")
        self.learner.contests = False
        self.standing = "a1"
        self.challenged = True
        self.now = 2.0

    def to_compared(self):
        self.to_asked()
        self.learner.drawn = 0.0
        self.answer("a", "label")
        self.standing = "a1"
        self.now = 2.0

    def to_uncompared(self):
        self.to_compared()
        self.now = 20.0
        self.note(self.loop.on_time(self.now))

    def to_learned(self):
        if self.second:
            self.to_compared()
            self.answer("a", "label/second", annotator="bob")
            self.second_standing = "a2"
            return
        if not self.upheld:
            self.to_asked()
            self.answer("a", "label")
            return
        self.to_challenged()
        self.answer("a", "challenge/1")
        self.standing = "a2"

    def to_kept(self):
        if self.second:
            self.to_doubted()
        else:
            self.to_challenged()
        self.now = 20.0
        self.note(self.loop.on_time(self.now))

    def to_doubted(self):
        self.to_asked()
        self.answer("a", "label")
        if self.second:
            self.answer(None, "label/second", annotator="bob")
            self.second_standing = "a2"
        self.input("review")
        self.standing = "a1"
        self.challenged = True
        self.now = 2.0

    def to_withdrawn(self):
        self.to_learned()
        self.answer(None, supersedes=self.standing)
        self.standing = f"a{self.n_answers}"

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
        annotator = "ann"
        if self.state in ("compared", "uncompared"):
            last, annotator = "label/second", "bob"
        match given.rstrip("?!#"):
            case "event":
                return self.event()
            case "event+":
                return self.event(y="a")
            case "label":
                return self.answer("a", "label")
            case "unasked":
                return self.answer("a", annotator=annotator)
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
                request = None if self.state == "seen" else last
                return self.answer(None, request, annotator=annotator)
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
            case "compare":
                return self.note(self.compare())
            case "second":
                return self.answer("c", "label/second", annotator="bob")
            case "amend":
                return self.answer("c", supersedes=self.second_standing, annotator="bob")
            case "revoke":
                return self.answer(None, supersedes=self.second_standing, annotator="bob")
        raise LookupError(given)


def word(message):
    return message.fault if isinstance(message, Rejected) else type(message).__name__


def outcome_of(state, given):
    """What the table says; its first row that fits counts, and is looked for row by row here."""
    name, mark = given.rstrip("?!#"), given[len(given.rstrip("?!#")) :]
    for states, inputs, row_mark, following, messages in TABLE:
        fits = states == "*" or state in states.split()
        if fits and (inputs == "*" or name in inputs.split()) and row_mark in ("", mark):
            return (state if following == "=" else following), messages.split()
    raise LookupError(f"the table has no row for {given} in {state}")


def test_table_uses_the_documented_states_inputs_and_messages_only():
    assert len(STATES) == 14
    assert {s for row in TABLE for s in row.states.split()} <= {*STATES, "*"}
    assert {row.next for row in TABLE} <= {*STATES, "="}
    assert {i for row in TABLE for i in row.inputs.split()} == {*INPUTS, "*"}
    assert {row.mark for row in TABLE} == {"", *MARKS}
    assert {m for row in TABLE for m in row.messages.split()} == MESSAGES | FAULTS


def test_nothing_has_changed_in_a_conversation_that_is_only_seen():
    """It is written in short."""
    for (state, _), cell in CELLS.items():
        for row in cell.values():
            if row.next == "seen" and state != "unknown":
                assert set(row.messages) <= FAULTS


def test_every_row_decides_some_cell():
    """A row that others hide is a mistake, or a transition that was never played."""
    used = set()
    for state, given, mark in product(STATES, INPUTS, ("", *MARKS)):
        fitting = (
            number
            for number, row in enumerate(TABLE)
            if (row.states == "*" or state in row.states.split())
            and (row.inputs == "*" or given in row.inputs.split())
            and row.mark in ("", mark)
        )
        used.add(next(fitting))
    assert used == set(range(len(TABLE)))


@pytest.mark.parametrize(("state", "given"), CELLS)
def test_every_cell_obeys_the_laws_of_a_conversation(state, given):
    for outcome in CELLS[state, given].values():
        messages = outcome.messages
        opened = {"asked": "LabelRequest", "challenged": "Challenge", "doubted": "Challenge"}
        opened["compared"] = "LabelRequest"
        if outcome.next != state and outcome.next in OPEN:  # a question opens with its message
            assert messages[-1] == opened[outcome.next]
        else:
            assert not {"LabelRequest", "Challenge"} & {*messages}
        if {"Cancel", "Expired"} & {*messages}:  # only what is open ends
            assert state in OPEN
            assert outcome.next not in OPEN
        if state == "unknown":
            assert given in ("event", "event+") or outcome.next == "unknown"
        if "LabelledExample" in messages:  # the log says what the model holds
            assert outcome.next in (*LEARNED, "withdrawn", "unknown")
            assert outcome.next != "doubted"
        elif outcome.next in LEARNED:
            assert state in LEARNED
        if outcome.fault is not None:  # an input that is rejected changes nothing
            assert (outcome.next, messages) == (state, (outcome.fault,))
        if given == "horizon":
            assert outcome.next == "unknown"
        if given in ("deadline", "horizon") and state in OPEN:
            assert messages[0] == "Expired"


def documented():
    """The table as Markdown."""
    lines = ["| State | Meaning |", "| --- | --- |"]
    lines += [f"| `{state}` | {meaning} |" for state, meaning in STATES.items()]
    lines += ["", "| Input | Meaning |", "| --- | --- |"]
    lines += [f"| `{given}` | {meaning} |" for given, meaning in INPUTS.items()]
    lines += ["", "| Mark | Meaning |", "| --- | --- |"]
    lines += [f"| `{mark}` | {meaning} |" for mark, meaning in MARKS.items()]
    lines += ["", "| States | Inputs | Next state | Messages |", "| --- | --- | --- | --- |"]
    for row in TABLE:
        states = " ".join(f"`{state}`" for state in row.states.split())
        inputs = " ".join(f"`{given}{row.mark}`" for given in row.inputs.split())
        lines.append(f"| {states} | {inputs} | `{row.next}` | {row.messages or '-'} |")
    return "\n".join(lines)


def test_the_documentation_prints_the_table():
    path = Path(__file__).parents[2] / "docs/conversation.md"
    if not path.is_file():
        pytest.skip("docs/ is not beside the tests")
    assert documented() in path.read_text(encoding="utf-8"), "print documented() there"


@pytest.mark.parametrize(
    ("state", "given"),
    [(s, i + mark) for s, i, mark in product(STATES, INPUTS, ("", "!", "#"))]
    + [(s, "event?") for s in STATES],
)
def test_every_cell_of_the_table_holds(state, given):
    name = given.rstrip("?!#")
    is_review = name == "review"
    conversation = Conversation(
        state,
        upheld=not (is_review and state == "learned"),
        second=name in OF_SECOND,
        later=name == "compare",
    )
    told = list(conversation.learner.told)
    messages = conversation.input(given)
    next_state, words = outcome_of(state, given)
    if name in ("same", "other") and not conversation.challenged:
        # A request that was never made is unknown in every state.
        next_state, words = state, ["unknown"]
    assert [word(m) for m in messages] == words
    assert conversation.state == next_state
    # The model was told what the consensus log says, and nothing by an input without effect.
    assert conversation.learner.told == log_of(conversation.messages)
    if "LabelledExample" not in words:
        assert conversation.learner.told == told


def test_a_label_that_an_annotator_has_upheld_is_not_doubted():
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


@pytest.mark.parametrize("state", ["expired", "cancelled", "kept", "uncompared"])
@pytest.mark.parametrize("names_it", [True, False])
def test_declining_a_question_that_has_just_ended_is_no_fault_and_ends_nothing(state, names_it):
    conversation = Conversation(state)
    last = {"kept": "challenge/1", "uncompared": "label/second"}.get(state, "label")
    assert conversation.answer(None, last if names_it else None, annotator="zoe") == []
    assert conversation.state == state
    if state in ("expired", "cancelled"):  # the next one to answer is welcome, or the same one
        [line] = conversation.answer("b", "label", annotator="bob")
        assert (line.y, line.annotator, line.origin) == ("b", "bob", "asked")
    else:
        record = conversation.loop._memory.get("e")
        assert (record.standing, record.label.y) == (conversation.standing, "a")
        [rejected] = conversation.answer(None, "label")
        assert (rejected.fault, conversation.state) == ("ended", state)


@pytest.mark.parametrize("state", ["expired", "cancelled"])
def test_who_declined_a_question_that_had_ended_can_still_give_the_label(state):
    conversation = Conversation(state)
    assert conversation.input("takeback") == []
    assert conversation.state == state
    conversation.standing = f"a{conversation.n_answers}"
    [line] = conversation.input("replace")
    assert (line.y, line.late, line.origin) == ("c", state == "expired", "asked")


def test_an_answer_to_a_challenge_taken_back_has_ended():
    conversation = Conversation("challenged")
    conversation.input("takeback")
    assert conversation.state == "declined"
    assert [word(m) for m in conversation.input("same")] == ["ended"]


@pytest.mark.parametrize("y", ["a", None])
def test_an_answer_to_the_challenge_before_the_last_has_ended(y):
    conversation = Conversation("withdrawn")
    conversation.learner.contests = True
    conversation.answer("a", "label")
    assert conversation.state == "challenged"
    [rejected] = conversation.answer(y, "challenge/1")
    assert rejected.fault == "ended"
    assert conversation.state == "challenged"
