import pytest

from streamgp.interactive import Answer, Event


@pytest.mark.parametrize(("y", "declined"), [(None, False), ("a", True)])
def test_answer_has_a_label_or_is_declined(y, declined):
    message = f"an answer has a label or is declined, got y={y!r} and declined={declined}"
    with pytest.raises(ValueError, match=message):
        Answer(answer_id="a", event_id="e", y=y, declined=declined, answered_at=0.0)


def test_false_and_zero_are_labels():
    for y in (False, 0, 0.0, ""):
        assert Answer(answer_id="a", event_id="e", y=y, answered_at=0.0).y == y


def test_messages_cannot_be_changed():
    event = Event(event_id="e", x={}, occurred_at=0.0)
    with pytest.raises(AttributeError, match="immutable"):
        event.event_id = "f"
