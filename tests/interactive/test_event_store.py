"""Conversations are published on pages."""

import gc

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.interactive import Event, event_store
from streamgp.interactive.conversation_record import Conversation
from streamgp.interactive.event_store import StateSegments
from streamgp.interactive.recent_events import RecentEvents
from tests.interactive.topics import pages_of


def record(name, size=0):
    return Conversation(Event(event_id=name, x={"text": "x" * size}, occurred_at=0.0))


def plain(record):
    return [record.event.event_id, record.event.x["text"], record.state]


def publish(book, fresh, plain_again=plain):
    return book.publish(fresh, [plain(record) for record in fresh], plain_again)


def names(published):
    return {n: segment and [plain[0] for plain in segment] for n, segment in published.items()}


def test_the_garbage_collector_passes_over_remembered_events():
    one = record("a")
    assert not gc.is_tracked(one)
    assert not gc.is_tracked(one.event)


def test_what_comes_between_two_publications_shares_a_page():
    book = StateSegments()
    assert names(publish(book, [record("a"), record("b")])) == {1: ["a", "b"]}
    book.settle()
    assert names(publish(book, [record("c")])) == {2: ["c"]}
    book.settle()
    assert publish(book, []) == {}


def test_a_page_is_published_again_when_one_of_its_conversations_changes():
    book, records = StateSegments(), [record(name) for name in "abc"]
    publish(book, records[:2])
    publish(book, records[2:])
    book.settle()
    records[1].state = "asked"
    book.note(records[1])
    assert publish(book, []) == {1: [["a", "", "seen"], ["b", "", "asked"]]}


def test_a_page_whose_conversations_are_all_forgotten_is_gone_and_its_number_is_not_used_again():
    book, records = StateSegments(), [record(name) for name in "ab"]
    publish(book, records)
    book.settle()
    book.remove(records[0])
    book.remove(records[1])
    assert publish(book, [record("c")]) == {1: None, 2: [["c", "", "seen"]]}
    book.settle()
    assert dict(book).keys() == {2}


def test_what_was_published_counts_as_changed_until_it_is_settled():
    book = StateSegments()
    assert publish(book, [record("a")]) == publish(book, []) != {}


def test_a_conversation_that_was_never_published_can_be_forgotten_without_a_trace():
    book, a = StateSegments(), record("a")
    book.note(a)
    book.remove(a)
    assert publish(book, []) == {}


def test_a_failure_leaves_everything_to_be_published_once_more():
    book, a, b = StateSegments(), record("a"), record("b")
    publish(book, [a])
    book.settle()
    book.note(a)

    def fails(_):
        return 1 / 0

    with pytest.raises(ZeroDivisionError):
        publish(book, [b], fails)
    assert (book.n, a.segment, b.segment) == (1, 1, None)
    assert names(publish(book, [b])) == {1: ["a"], 2: ["b"]}


@given(st.lists(st.integers(0, 400), max_size=30))
def test_no_page_begins_with_more_bytes_than_allowed_unless_with_one_conversation(sizes):
    book = StateSegments()
    records = [record(str(n), size) for n, size in enumerate(sizes)]
    with pages_of(500):
        published = publish(book, records)
    assert [name for segment in names(published).values() for name in segment] == [
        str(n) for n in range(len(sizes))
    ]
    for segment in published.values():
        assert len(segment) == 1 or len(msgspec.json.encode(segment)) <= 501
    for one, other in zip(list(published.values()), list(published.values())[1:], strict=False):
        # No page was begun needlessly.
        assert len(msgspec.json.encode([*one, other[0]])) > 501


def test_a_page_that_has_grown_too_large_is_divided():
    book, records = StateSegments(), [record(name, 100) for name in "abcd"]
    with pages_of(600):
        assert names(publish(book, records)) == {1: ["a", "b", "c", "d"]}
        book.settle()
        records[1].event.x["text"] *= 4
        book.note(records[1])
        assert names(publish(book, [record("e")])) == {1: ["a", "b"], 2: ["c", "d"], 3: ["e"]}
        book.settle()
        book.note(records[0])
        book.note(records[2])
        assert names(publish(book, [])) == {1: ["a", "b"], 2: ["c", "d"]}


def test_a_page_that_only_loses_conversations_is_not_measured(monkeypatch):
    book, records = StateSegments(), [record(name, 100) for name in "abc"]
    publish(book, records)
    book.settle()
    monkeypatch.setattr(event_store, "_encode", None)
    book.remove(records[0])
    assert names(publish(book, [])) == {1: ["b", "c"]}


def test_a_page_of_one_conversation_is_never_divided():
    book, a = StateSegments(), record("a", 10)
    with pages_of(50):
        publish(book, [a])
        book.settle()
        a.event.x["text"] *= 100
        book.note(a)
        assert names(publish(book, [])) == {1: ["a"]}


def test_pages_may_grow_before_they_are_divided():
    assert 2 * event_store.SEGMENT_BYTES < event_store.MOST_BYTES <= 1 << 19


@pytest.mark.parametrize("number", [0, 4, -1])
def test_a_page_that_never_was_is_refused(number):
    book = StateSegments()
    book.n = 3
    with pytest.raises(ValueError, match=rf"segment {number} was never published, expected 1 to 3"):
        book.put(record("a"), number)


def test_the_value_of_an_id_that_is_used_again_is_kept_for_as_long_as_that_of_a_new_one():
    values = RecentEvents(60.0)
    for name, at in (("a", 0.0), ("b", 100.0), ("a", 101.0), ("c", 150.0), ("d", 160.0)):
        values.put(Event(event_id=name, x={}, occurred_at=at), at)
    assert {name: values.get(name) for name in values} == {
        (None, "b"): 100.0, (None, "a"): 101.0, (None, "c"): 150.0, (None, "d"): 160.0,
    }  # fmt: skip
    for n, at in enumerate((160.5, 170.0)):
        values.put(Event(event_id=f"e{n}", x={}, occurred_at=at), at)
    assert (None, "a") in values
    assert (None, "b") not in values
