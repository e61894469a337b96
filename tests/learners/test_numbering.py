"""Numbers of classes and of examples."""

import pytest

from streamgp.learners.numbering import Classes, EventNumbers


def test_classes_are_numbered_in_order_of_appearance():
    classes = Classes()
    assert classes.number("b") == 0
    assert len(classes) == 0
    assert [classes.add(y) for y in ("b", "a", "b", "c")] == [0, 1, 0, 2]
    assert classes.labels == ["b", "a", "c"]
    assert classes.number("a") == 1


def test_indicator_has_room_for_the_next_class():
    classes = Classes()
    classes.add("a")
    classes.add("b")
    assert classes.indicator(0).tolist() == [1.0, 0.0]
    assert classes.indicator(classes.number("c")).tolist() == [0.0, 0.0, 1.0]


def test_first_of_the_largest_values_counts():
    classes = Classes()
    assert classes.largest([]) is None
    for y in "abc":
        classes.add(y)
    assert classes.largest([0.1, 0.4, 0.4]) == "b"


@pytest.mark.parametrize(
    ("y", "error"), [(None, TypeError), (float("nan"), TypeError), (1, ValueError)]
)
def test_refused_label_changes_nothing(y, error):
    classes = Classes()
    classes.add(True)
    for ask in (classes.number, classes.add):
        with pytest.raises(error):
            ask(y)
    assert classes.labels == [True]


def test_numbers_of_examples_never_change():
    events = EventNumbers()
    assert [events.append(e) for e in ("a", None, "b")] == [0, 1, 2]
    events.drop([0, 1])
    assert events.append("a") == 3
    assert (events.number("a"), events.number("b")) == (3, 2)
    assert [events.event_id(n) for n in range(4)] == [None, None, "b", "a"]
    events.n_taken_back += 1
    assert (events.n_appended, events.n) == (4, 3)


def test_event_is_new_once_its_example_is_dropped():
    events = EventNumbers()
    events.append("a")
    events.check_new(None)
    with pytest.raises(ValueError, match="event 'a' was already learned; use relabel_one"):
        events.check_new("a")
    events.drop([0])
    events.check_new("a")
    with pytest.raises(KeyError, match="event 'a' was not learned, or is no longer retained"):
        events.number("a")
