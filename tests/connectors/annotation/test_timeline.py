"""The labels of a key's events against a list of all that was said."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from connectors.annotation.timeline import Timeline

said = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from(["home", "work", None])), max_size=12
)


@given(said=said, data=st.data())
def test_the_last_label_of_each_event_stands_in_whatever_order_it_is_read(
    said: list[tuple[str, Any]], data: Any
) -> None:
    times = {event_id: float(ord(event_id)) for event_id in "abcd"}
    timeline = Timeline()
    read = data.draw(st.permutations(list(enumerate(said))))
    for at, (event_id, label) in read:
        timeline.occurred(None, event_id, times[event_id])
        timeline.label(None, event_id, label, at=float(at), answer_id=f"a{at}")
    last = dict(said)
    stands = {event_id: label for event_id, label in last.items() if label is not None}
    moments = timeline.between(None, 0.0, 1e9)
    assert [(m.event_id, m.label) for m in moments] == sorted(stands.items())
    assert set(timeline.classes(None)) == set(stands.values())
    for label in ("home", "work"):
        assert timeline.count(None, label) == list(stands.values()).count(label)
        assert {one.event_id for one in timeline.standing(None, label)} == {
            event_id for event_id, found in stands.items() if found == label
        }
    for event_id in stands:
        before, after = timeline.neighbours(None, event_id, times[event_id])
        names = sorted(stands)
        i = names.index(event_id)
        assert (before.event_id if before else None) == (names[i - 1] if i else None)
        assert (after.event_id if after else None) == (names[i + 1] if i + 1 < len(names) else None)


@given(
    max_keys=st.integers(1, 3),
    moves=st.lists(
        st.tuples(
            st.sampled_from(["label", "mention", "forget", "look"]),
            st.sampled_from("pqr"),
            st.sampled_from("abc"),
            st.sampled_from(["home", "work", "gym"]),
        ),
        max_size=30,
    ),
)
def test_labels_of_all_keys_are_those_of_each(
    max_keys: int, moves: list[tuple[str, str, str, str]]
) -> None:
    timeline = Timeline(max_events=4, max_keys=max_keys)
    for at, (what, key, event_id, label) in enumerate(moves):
        now = {"at": float(at), "got": float(at)}
        if what == "label":
            timeline.label(key, event_id, label if at % 4 else None, **now)
        elif what == "mention":
            timeline.mention(key, label, event_id=event_id, **now)
        elif what == "forget":
            timeline.forget(key, float(at))
        else:
            timeline.all_classes()
        assert len(timeline._of) <= max_keys
    assert set(timeline.all_classes()) == set().union(*map(timeline.classes, "pqr"))


def test_labels_offered_from_the_start_come_first_each_where_it_is_named_first() -> None:
    timeline = Timeline(["hall", "den", "hall"])
    timeline.label("k", "e1", "attic", at=1.0)
    timeline.label("k", "e2", "den", at=1.0)
    assert timeline.classes("k") == ["hall", "den", "attic"]


def test_numbers_are_labels_of_events_and_are_not_offered_again() -> None:
    timeline = Timeline(with_classes=False)
    timeline.label("k", "e1", 21.5, at=1.0)
    assert [m.label for m in timeline.between("k", 0.0, 9.0)] == [21.5]
    assert timeline.classes("k") == timeline.all_classes() == []


def test_events_beyond_the_limit_go_and_their_labels_stay_choices() -> None:
    timeline = Timeline(max_events=2)
    for i, label in enumerate(["home", "work", "gym"]):
        timeline.label("k", f"e{i}", label, at=float(i))
    assert [m.event_id for m in timeline.between("k", 0.0, 9.0)] == ["e1", "e2"]
    assert set(timeline.classes("k")) == {"home", "work", "gym"}


def test_of_keys_that_come_and_go_only_those_mentioned_last_are_kept() -> None:
    timeline = Timeline(max_keys=2)
    for i, key in enumerate("abac"):
        timeline.label(key, f"e{i}", f"of {key}", at=float(i))
    assert [timeline.classes(key) for key in "abc"] == [["of a"], [], ["of c"]]
    assert timeline.all_classes() == ["of a", "of c"]
    assert [len(timeline.between(key, 0.0, 9.0)) for key in "abc"] == [2, 0, 1]
    timeline.mention("b", "of b", at=5.0)
    assert timeline.classes("b") == ["of b"]
    assert set(timeline._order) == {("c", "e3")}


def test_a_label_spoken_of_is_a_choice_unless_its_event_has_another_by_now() -> None:
    timeline = Timeline()
    timeline.label(None, "e1", "work", at=5.0)
    timeline.mention(None, "wrok", at=4.0, event_id="e1")
    timeline.mention(None, "gym", at=4.0, event_id="e2")
    assert set(timeline.classes(None)) == {"work", "gym"}
    assert timeline.classes("another") == []


def test_what_came_before_the_forgetting_goes_and_what_came_behind_it_stays() -> None:
    timeline = Timeline()
    for i, got in enumerate([10.0, 60.0]):
        timeline.label("k", f"e{i}", "home" if i else "work", at=1.0, got=got)
    timeline.forget("k", 50.0)
    assert [m.event_id for m in timeline.between("k", 0.0, 9.0)] == ["e1"]
    assert set(timeline.classes("k")) == {"home"}
    timeline.forget("k", 60.0)
    assert timeline.classes("k") == []
    assert timeline._of == {}
    assert timeline._order == {}
