import pytest

from streamgp.interactive import Answer, Event, LabelledExample, Retraction


@pytest.mark.parametrize(("y", "declined"), [(None, False), ("a", True)])
def test_answer_has_a_label_or_is_declined(y, declined):
    message = f"an answer has a label or is declined, got y={y!r} and declined={declined}"
    with pytest.raises(ValueError, match=message):
        Answer(answer_id="a", event_id="e", y=y, declined=declined, answered_at=0.0)


def test_false_and_zero_are_labels():
    for y in (False, 0, 0.0, ""):
        assert Answer(answer_id="a", event_id="e", y=y, answered_at=0.0).y == y


@pytest.mark.parametrize(
    ("said", "lost"),
    [
        ("bob den", [0]),
        ("bob den, ann hall", [0]),
        ("bob den, ann den", [0]),
        ("bob den, ann hall, bob den", [0, 2]),
        ("bob den, ann hall, bob hall", [0, 2]),
        ("bob den, bob hall", [0, 1]),
        ("bob den, bob den", [0]),  # it stood again when the label of another was retracted
        ("bob den, ann hall, bob den, bob den", [0, 2]),
    ],
)
def test_a_label_that_stands_again_is_not_lost_twice(said, lost):
    lines = tuple(
        LabelledExample(
            event_id="e", revision=n, sequence=n + 1, x={}, y=y, annotator=annotator,
            origin="revised" if n else "asked", learned_at=0.0,
        )
        for n, (annotator, y) in enumerate(one.split() for one in said.split(", "))
    )  # fmt: skip
    retraction = Retraction(annotator="bob", since=None, at=1.0, taken=lines)
    assert [line.revision for line in retraction.own] == lost


def test_messages_cannot_be_changed():
    event = Event(event_id="e", x={}, occurred_at=0.0)
    with pytest.raises(AttributeError, match="immutable"):
        event.event_id = "f"
