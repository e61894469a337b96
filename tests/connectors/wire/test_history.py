"""What a worker takes over of the topics `state` and `consensus`, and what it refuses to."""

import json
import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.topics import Outgoing, Record
from connectors.wire.codec import decode, encode
from connectors.wire.outbound import Outbound
from connectors.wire.state_records import (
    ERASED_BY,
    History,
    HistoryError,
    consensus_key,
    parts_of,
    records_of_part,
    retraction_name,
    retraction_value,
    state,
)
from streamgp.interactive import Event, LabelledExample, Retraction

outbox = Outbound("/streamgp/rooms", keyed=True)
for_all = Outbound("/streamgp/rooms", keyed=False)


class Log:
    """Two topics of one partition, as a worker writes them."""

    def __init__(self):
        self.records = []

    def write(self, out, **changes):
        fields = {"topic": out.topic, "partition": 3, "key": out.key, "value": out.value}
        offset = sum(record.topic == out.topic for record in self.records)
        self.records.append(Record(**{**fields, "offset": offset, "at": 0.0, **changes}))

    def history(self):
        history = History()
        for record in self.records:
            history.take(record)
        return history


def line(event_id, sequence, key="ann", **changes):
    fields = {"x": {"a": 0.5}, "y": "home", "origin": "asked", "learned_at": 1.0}
    return LabelledExample(event_id=event_id, sequence=sequence, key=key, **{**fields, **changes})


def raw(topic, key, value):
    return Record(topic=topic, partition=3, offset=7, key=key, value=value, at=0.0)


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**130), 2**130)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


@given(plain.filter(lambda value: value is not None))
def test_state_is_read_as_it_was_written(value):
    log = Log()
    log.write(state("ann", "head", value, 3))
    found = log.history().parts("ann")["head"]
    assert repr(found) == repr(value)


# --- compacted contents


def test_of_each_key_the_last_record_counts():
    log = Log()
    for n in range(3):
        log.write(state("ann", "head", {"n": n}, 3))
        log.write(state("bob", "head", {"n": -n}, 3))
    log.write(state("ann", "events/0", [1], 3))
    log.write(state("ann", "events/0", None, 3))
    history = log.history()
    assert history.entities() == ["ann", "bob"]
    assert history.parts("ann") == {"head": {"n": 2}, "events/0": None}
    assert history.parts("bob") == {"head": {"n": -2}}
    assert history.parts("unknown") == {}


def test_lines_come_in_the_order_of_learning_whatever_compaction_did():
    log = Log()
    lines = [line("e2", 2), line("e1", 3, revision=1, origin="revised"), line("e1", 1)]
    for example in lines:
        log.write(outbox.message(example, 3))
    found = log.history()
    assert [example.sequence for example in found.lines("ann")] == [1, 2, 3]
    assert found.lines("ann") == sorted(lines, key=lambda example: example.sequence)
    assert found.consensus_keys("ann") == [b"ann\x1fe2\x1f0", b"ann\x1fe1\x1f1", b"ann\x1fe1\x1f0"]
    assert (found.lines("bob"), found.consensus_keys("bob")) == ([], [])


def test_a_line_that_was_taken_back_is_not_there():
    log = Log()
    for example in (line("e1", 1), line("e2", 2)):
        log.write(outbox.message(example, 3))
    log.write(outbox.message(line("e1", 1), 3), value=None)
    log.write(outbox.message(line("never", 1), 3), value=None)
    assert [example.event_id for example in log.history().lines("ann")] == ["e2"]


def test_a_record_that_is_appended_comes_after_those_of_its_topic():
    history = History()
    history.take(raw("state", b"ann\x1fhead", b"{}"))
    n = history.ends["state"]
    history.append(state("ann", "head", {"n": 1}, 3))
    history.append(Outgoing(topic="consensus", partition=3, key=b"ann\x1fe1\x1f0", value=None), 9.0)
    assert history.ends == {"state": n + 1, "consensus": 1}
    assert history.part("ann", "head") == {"n": 1}
    assert [history.n_nulls("ann", 1, after) for after in (8.0, 9.0)] == [1, 0]


def test_nulls_that_no_worker_has_written_are_counted_from_an_offset_on():
    history = History()
    for offset, headers in enumerate([[], [], [(ERASED_BY, b"streamgp")], []]):
        key = consensus_key("ann", f"e{offset}", 0)
        history.take(
            Record(
                topic="consensus", partition=3, offset=offset, key=key, value=None,
                at=10.0 - offset, headers=headers,
            )
        )  # fmt: skip
    assert [history.n_nulls("ann", start) for start in range(5)] == [3, 2, 1, 1, 0]
    assert [history.n_nulls("ann", 9, after) for after in (6.5, 7.0, 9.0, 10.0)] == [3, 2, 1, 0]
    assert history.n_nulls("bob", 0) == 0


def test_what_nulls_of_others_have_deleted_is_there_for_a_worker_that_has_not_read_them():
    log, worker = Log(), [(ERASED_BY, b"/streamgp/rooms")]
    lines = [line(f"e{n}", n) for n in range(4)]
    for example in lines:
        log.write(outbox.message(example, 3))
    log.write(outbox.message(lines[3], 3), value=b"note to self")
    for example in lines:  # offsets 5 to 8
        log.write(outbox.message(example, 3), value=None, headers=())
    log.write(outbox.message(lines[0], 3), value=None, headers=worker)
    log.write(outbox.message(lines[1], 3))
    history = log.history()
    assert history.lines("ann") == [lines[1]]
    assert history.deleted_lines("ann", 5) == history.deleted_lines("ann", 7) == [lines[2]]
    assert history.deleted_lines("ann", 8) == []
    assert history.deleted_keys("ann") == [b"ann\x1fe2\x1f0", b"ann\x1fe3\x1f0"]
    assert history.deleted_keys("bob") == history.deleted_lines("bob", 0) == []


def test_a_null_that_forgets_a_key_is_left_to_the_worker():
    log = Log()
    log.write(outbox.message(line("e1", 1), 3))
    log.write(outbox.message(line("e1", 1), 3), key=b"ann", value=None)
    assert len(log.history().lines("ann")) == 1


def test_annotators_who_are_gone_are_still_named():
    log = Log()
    log.write(state("ann", "head", {"n": 1}, 3))
    log.write(state("ann", "head", None, 3))
    assert log.history().entities() == ["ann"]
    assert log.history().parts("ann") == {"head": None}


def test_the_configuration_is_no_state():
    log = Log()
    assert log.history().configuration is None
    log.write(state("", "configuration", {"fingerprint": "1f"}, 3))
    history = log.history()
    assert history.configuration == {"fingerprint": "1f"}
    assert (history.entities(), history.parts("")) == ([], {})
    log.write(state("", "head", {"n": 1}, 3))
    assert (log.history().entities(), log.history().parts("")) == ([""], {"head": {"n": 1}})


def test_what_a_partition_spent_and_forgot_belongs_to_no_loop():
    log = Log()
    log.write(state("", "budget", {"spent": 2}, 3))
    log.write(state("", "forgotten", {"n": 1}, 3))
    history = log.history()
    assert (history.entities(), history.parts(""), history.names("")) == ([], {}, [])
    assert (history.part("", "budget"), history.part("", "forgotten")) == ({"spent": 2}, {"n": 1})


def test_where_one_loop_serves_all_lines_keep_the_keys_of_their_events():
    log = Log()
    for sequence, key in enumerate(["ann", None, "bob"]):
        log.write(for_all.message(line(f"e{sequence}", sequence, key=key), 3))
    history = log.history()
    assert history.entities() == [""]
    assert [example.key for example in history.lines("")] == ["ann", None, "bob"]


# --- records that no worker can have written

good = encode(line("e1", 1))
FOREIGN = [b"ann", None, b"\xff\x1fa"]
LATER = ("state", b"ann\x1fhead\x1f1", b"{}", r"^state:3:7 .*: its key must not be b'ann\\x1fhead")
UNREADABLE = [
    ("state", b"ann\x1fhead", b"hello", "^state:3:7 .*: JSON is malformed: "),
    ("state", b"ann\x1fhead", b"[" * 100_000, "^state:3:7 .* that this streamgp writes: "),
    ("state", b"ann\x1fhead", b'{"type":"event"}', "^state:3:7 .*: Invalid enum value 'event'"),
    (
        "state",
        b"ann\x1fhead",
        state("ann", "head", 1, 0).value.replace(b"1", b"2"),
        "^state:3:7 .*: version must be 1, got 2; use the streamgp that wrote it, or stop all",
    ),
    (
        "state",
        b"ann\x1fhead",
        state("bob", "head", 1, 0).value,
        "^state:3:7 .*: it must be about 'ann', 'head', got 'bob', 'head'; ",
    ),
    ("consensus", b"ann\x1fe1\x1f0", b"hello", "^consensus:3:7 .*: message must be JSON, got malf"),
    (
        "consensus",
        b"ann\x1fe1\x1f0",
        encode(Event(event_id="e1", x={}, occurred_at=0.0)),
        "^consensus:3:7 .*: it must hold a labelled example, got Event; ",
    ),
    (
        "consensus",
        b"ann\x1fe2\x1f0",
        good,
        r"^consensus:3:7 .*: its key must be b'ann\\x1fe1\\x1f0',",
    ),
    (
        "consensus",
        b"bob\x1fe1\x1f0",
        good,
        r"^consensus:3:7 .*: its key must be b'bob\\x1fe1\\x1f0',",
    ),
    (
        "consensus",
        b"ann\x1fe1\x1f0",
        good.replace(b'"e1"', b'"e\\u001f1"'),
        r"^consensus:3:7 .*: its key must be b'ann\\x1fe\\x1f1\\x1f0',",
    ),
]


def test_a_record_with_a_key_of_too_many_parts_is_reported():
    """A later version may have written it."""
    *record, reason = LATER
    history = History()
    history.take(raw(*record))
    with pytest.raises(HistoryError, match=reason):
        history.entities()
    assert [each.key for each in history.unreadable()] == [record[1]]


@pytest.mark.parametrize("key", FOREIGN)
def test_a_record_under_a_key_of_no_streamgp_is_left_out_and_listed(key):
    log = Log()
    log.write(state("ann", "head", {"n": 1}, 3))
    history = log.history()
    history.take(raw("state", key, b"{}"))
    assert (history.entities(), history.parts("ann")) == (["ann"], {"head": {"n": 1}})
    assert history.foreign == {key: 7}
    # A null needs a key.
    assert [each.key for each in history.unreadable()] == ([] if key is None else [key])
    history.take(raw("state", key, None))
    assert (history.foreign, history.unreadable()) == ({}, [])


@pytest.mark.parametrize(("topic", "key", "value", "reason"), UNREADABLE)
def test_a_record_that_cannot_be_read_is_reported(topic, key, value, reason):
    history = History()
    history.take(raw(topic, key, value))
    (entity,) = history.entities()
    with pytest.raises(HistoryError, match=reason) as caught:
        (history.parts if topic == "state" else history.lines)(entity)
    assert str(caught.value).isprintable()
    [found] = history.unreadable()
    assert (found.topic, found.key) == (topic, key)
    assert str(caught.value).startswith(f"{found.what}; use the streamgp that wrote it, or stop")


@pytest.mark.parametrize(("topic", "key", "value", "reason"), [LATER, *UNREADABLE])
def test_a_null_takes_such_a_record_away(topic, key, value, reason):  # noqa: ARG001
    history = History()
    history.take(raw(topic, key, value))
    history.take(raw(topic, key, None))
    for entity in history.entities():
        assert not any(history.parts(entity).values())
        assert history.lines(entity) == []


@pytest.mark.parametrize("value", [b"hello", state("", "configuration", [1], 0).value])
def test_an_invalid_configuration_is_reported(value):
    history = History()
    history.take(raw("state", b"\x1fconfiguration", value))
    with pytest.raises(HistoryError, match=r"^state:3:7 is nothing that this streamgp writes: "):
        _ = history.configuration
    assert [each.key for each in history.unreadable()] == [b"\x1fconfiguration"]


def test_a_history_is_of_one_partition_and_two_topics():
    history = History()
    history.take(raw("state", b"ann\x1fhead", None))
    other = Record(topic="state", partition=4, offset=0, key=b"a\x1fb", value=None, at=0.0)
    with pytest.raises(
        ValueError, match=r"^partition must be 3 as that of the first record, got 4"
    ):
        history.take(other)
    with pytest.raises(ValueError, match=r"^topic must be state or consensus, got 'events'$"):
        history.take(raw("events", b"ann", b""))


def test_a_history_takes_little_more_memory_than_its_bytes():
    out = outbox.message(line("e1", 1), 3)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        history = History()
        for n in range(2000):
            key, value = consensus_key("ann", f"e{n}", 0), bytes(bytearray(out.value))
            history.take(Record(topic="consensus", partition=3, offset=n, key=key, value=value,
                                headers=list(out.headers), at=float(n)))  # fmt: skip
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 2000 * (len(out.value) + 350)


def test_a_part_that_is_too_large_for_a_record_is_cut_and_comes_back_whole():
    value = {"names": ["é" * 1000, '"' * 7] * 4000, "n": 3}
    log = Log()
    records = records_of_part("ann", "head", value, 2)
    assert len(records) > 3
    assert max(len(record.value) for record in records) < 5 * 2**20
    for record in records:
        log.write(record)
    assert log.history().parts("ann") == {"head": value}
    assert len(log.history().names("ann")) == len(records)
    # Smaller again, it is one record; what is left of the pieces does not matter.
    log.write(*records_of_part("ann", "head", {"n": 4}, 2))
    assert log.history().parts("ann") == {"head": {"n": 4}}


def test_a_part_whose_pieces_are_not_all_there_is_no_part():
    log = Log()
    _, *rest = records_of_part("ann", "head", {"names": "x" * 5_000_000}, 2)
    for record in rest:
        log.write(record)
    with pytest.raises(HistoryError, match="it must have 10 pieces"):
        log.history().parts("ann")


@pytest.mark.parametrize(
    ("n_pieces", "pieces", "flaw"),
    [
        ("10", [], "the number of its pieces must be an integer, got '10'"),
        (10**15, ["1"], "it must have 1000000000000000 pieces"),
        (-1, [], "it must have -1 pieces"),
        (0, [], "its pieces do not fit: "),
        (1, ["[" * 100_000], "its pieces do not fit: "),
    ],
)
def test_pieces_that_no_worker_has_written_are_told(n_pieces, pieces, flaw):
    log = Log()
    for n, piece in enumerate(pieces):
        log.write(state("ann", f"head/piece/{n}", piece, 2))
    log.write(state("ann", "head", {"streamgp.pieces": n_pieces}, 2))
    with pytest.raises(HistoryError, match=re.escape(flaw)):
        log.history().parts("ann")


def test_answers_that_wait_are_no_part_of_a_loop():
    log = Log()
    for name, value in [("head", {"n": 1}), ("early/answers:3:7", [1]), ("early/answers:3:8", 2)]:
        log.write(state("ann", name, value, 3))
    log.write(state("bob", "early/answers:3:9", 3, 3))
    log.write(state("ann", "early/answers:3:8", None, 3))
    history = log.history()
    assert history.parts("ann") == {"head": {"n": 1}}
    assert history.entities() == ["ann"]
    assert history.early() == [
        ("ann", "early/answers:3:7", [1]),
        ("ann", "early/answers:3:8", None),
        ("bob", "early/answers:3:9", 3),
    ]
    assert history.names("ann") == ["head", "early/answers:3:7", "early/answers:3:8"]
    assert history.names("bob") == ["early/answers:3:9"]


@pytest.mark.parametrize(
    "key", [b"ann", b"ann\x1fe1", b"a\x1fb\x1fc\x1fd", b"\xff\x1fa\x1f0", None]
)
def test_what_lies_on_consensus_under_the_key_of_no_line_is_passed_over(key):
    history = History()
    history.take(raw("consensus", key, good))
    assert history.entities() == []


def test_a_history_knows_where_it_ends():
    history = History()
    assert history.ends == {}
    history.take(raw("state", b"ann\x1fhead", None))
    history.take(raw("consensus", b"ann", b""))
    assert history.ends == {"state": 8, "consensus": 8}


@pytest.mark.parametrize("n", [1, 24_000])
def test_what_was_taken_back_is_read_as_it_was_written(n: int) -> None:
    line = LabelledExample(
        event_id="e1",
        key="k",
        sequence=3,
        x={"u": 0.1, "place": "a"},
        y="hall",
        origin="asked",
        annotator="Ann Lee",
        learned_at=5.0,
        probability_wrong=0.25,
    )
    kept = Retraction(
        annotator="Ann Lee", since=None, at=9.0, taken=(line,) * n, made=(("e1", 1),) * n
    )
    history = History()
    name = retraction_name(kept.annotator)
    out = records_of_part("k", name, retraction_value(kept), 0)
    assert (len(out) > 1) == (n > 1)  # in pieces
    for each in out:
        history.append(each)
    [found] = history.retractions("k")
    assert (found.at, found.made, len(found.taken)) == (9.0, kept.made, n)
    assert repr(found.taken[-1].x) == repr(decode(encode(line)).x)
    assert history.parts("k") == {}
    assert history.names("k") == [parts_of(each.key)[1] for each in out]


@pytest.mark.parametrize(
    "taken",
    [
        [3],
        [{"type": "streamgp.none"}],
        [json.loads(encode(Event(event_id="e1", x={}, occurred_at=0.0)))],
    ],
)
def test_a_retraction_that_no_worker_can_have_written_is_reported(taken):
    kept = Retraction(annotator="ann", since=None, at=9.0, taken=())
    history = History()
    value = {**retraction_value(kept), "taken": taken}
    history.append(state("k", retraction_name("ann"), value, 0))
    with pytest.raises(HistoryError, match=r"^state:0:0 is nothing that this streamgp writes: "):
        history.retractions("k")
