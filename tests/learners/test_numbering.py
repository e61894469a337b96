"""Numbers of classes and of examples."""

import pytest

from streamgp.learners.numbering import Classes


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
