import enum
import re

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.wire.codec import decode, encode
from streamgp import isgp
from streamgp.interactive import InteractiveLoop, KeyedLoops
from streamgp.interactive.messages import Answer, Event
from streamgp.interactive.validation import (
    as_label,
    flaw_of_answer,
    flaw_of_event,
    flaw_of_keeping,
    is_finite,
    rejected,
)


class Room(enum.StrEnum):
    HALL = "hall"


class Level(enum.IntEnum):
    LOW = 1


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ("hall", "hall"),
        (True, True),
        (3, 3),
        (1.5, 1.5),
        (Room.HALL, "hall"),
        (Level.LOW, 1),
        (np.int8(3), 3),
        (np.float32(0.5), 0.5),
        (np.float64(0.5), 0.5),
        (np.bool_(False), False),
        (np.str_("hall"), "hall"),
    ],
)
def test_label_becomes_plain(given, plain):
    label = as_label(given)
    assert label == plain
    assert type(label) is type(plain)


@pytest.mark.parametrize(
    "given", [None, [], b"hall", 1j, np.array([1, 2]).tolist(), float("nan"), np.float64("inf")]
)
def test_anything_else_is_no_label(given):
    with pytest.raises(ValueError, match="a label must be a finite number, a bool or a string"):
        as_label(given)


def test_an_array_is_no_label():
    with pytest.raises(ValueError, match="a label must be a finite number"):
        as_label(np.array([1.0, 2.0]))


@pytest.mark.parametrize("value", [0, 1.5, -1e9, np.float64(2.0), 10**20])
def test_numbers_of_python_and_numpy_are_finite(value):
    assert is_finite(value)


@pytest.mark.parametrize("value", [True, None, "1", float("nan"), float("inf"), 10**400])
def test_what_is_no_number_or_not_finite_is_refused(value):
    assert not is_finite(value)


def test_half_a_surrogate_pair_is_rejected_wherever_it_stands():
    broken = "\ud800"
    for event in (
        Event(event_id=broken, x={}, occurred_at=0.0),
        Event(event_id="e", key=broken, x={}, occurred_at=0.0),
        Event(event_id="e", x={}, occurred_at=0.0, y=broken),
    ):
        assert "ud800" in flaw_of_event(event)
    for x in ({broken: 1.0}, {"place": broken}):
        assert "ud800" in flaw_of_keeping(x)
    message = rejected(broken, broken, "malformed", "why", 0.0)
    assert (message.subject, message.key) == (repr(broken), None)


@pytest.mark.parametrize(
    "privileged",
    [{"a": float("nan")}, {"a": (1,)}, {"a": {1: 2}}, {1: 2}, {"a": b"x"}, {"a": {"b": {1, 2}}}],
)
def test_privileged_must_survive_being_written(privileged):
    answer = Answer(answer_id="a", event_id="e", y="p", answered_at=0.0, privileged=privileged)
    assert "privileged must hold plain JSON values" in flaw_of_answer(answer)
    fine = Answer(
        answer_id="a", event_id="e", y="p", answered_at=0.0, privileged={"a": [1, {"b": None}, 2.5]}
    )
    assert flaw_of_answer(fine) is None


@given(
    st.dictionaries(
        st.text(max_size=3) | st.integers(-5, 5),
        st.floats(allow_nan=False, allow_infinity=False, width=32) | st.integers(-9, 9) | st.text(),
        max_size=4,
    ),
    st.none() | st.sampled_from(["hall", 3, 1e120]),
)
def test_what_was_decoded_is_taken_as_what_a_caller_hands_over(x, y):
    """The decoder has checked it: not to do so again changes no message and no state."""
    event = decode(encode(Event(event_id="e", key="ann", x=x, occurred_at=1.0, y=y)))
    found = []
    for is_checked in (False, True):
        loops = KeyedLoops(isgp(seed=1), keep_changes=True)
        said = loops.on_event(event, 1.0, is_checked=is_checked)
        answer = Answer(answer_id="a", event_id="e", key="ann", y="den", std=y, answered_at=2.0)
        said += loops.on_answer(answer, 2.0, is_checked=is_checked)
        found.append((said, msgspec.json.encode(loops.changes().get("ann", {}))))
    assert found[0] == found[1]


def booleans_for_ones(n_mixed=0):
    """A loop that knows the class 1, has asked about event `asked`, and is then told True."""
    loop = InteractiveLoop(isgp(seed=1))
    loop.on_event(Event(event_id="1", x={"a": 1.0}, occurred_at=1.0, y=1), now=1.0)
    loop.on_event(Event(event_id="asked", x={"a": 2.0}, occurred_at=2.0), now=2.0)
    said = []
    for n in range(n_mixed):
        event = Event(event_id=f"mixed {n}", x={"a": 3.0}, occurred_at=3.0, y=True)
        said.append(loop.on_event(event, now=3.0))
    return loop, said


def test_a_label_that_equals_a_class_of_another_type_is_unlearnable():
    loop, [[prediction, refused]] = booleans_for_ones(1)
    assert (prediction.event_id, prediction.y) == ("mixed 0", 1)
    before = loop.model.state(), loop.model.examples()
    answer = Answer(answer_id="a", event_id="asked", y=True, annotator="ann", answered_at=3.0)
    [also_refused] = loop.on_answer(answer, now=3.0)
    words = "equal labels must be of one type, got True where 1 is known; .* all as texts$"
    for rejection in (refused, also_refused):
        assert rejection.fault == "unlearnable"
        assert re.search(words, rejection.reason)
    assert (loop.model.state(), loop.model.examples()) == before
    corrected = Answer(
        answer_id="b", event_id="asked", y=1, annotator="ann", answered_at=3.0, supersedes="a"
    )
    [learned] = loop.on_answer(corrected, now=3.0)
    assert learned.y == 1


def test_labels_of_another_type_keep_no_other_input_from_being_tried():
    loop, _ = booleans_for_ones(30)
    [learned] = loop.on_answer(
        Answer(answer_id="b", event_id="asked", y=1, answered_at=3.0), now=3.0
    )
    assert learned.y == 1
