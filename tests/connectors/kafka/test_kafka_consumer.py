"""Queues of inputs: what is handed over when, and what is to be fetched."""

from hypothesis import given
from hypothesis import strategies as st

from connectors.kafka.consumer import Prefetch
from connectors.topics import Record


def record(topic, offset, partition=0, value=b""):
    return Record(topic=topic, partition=partition, offset=offset, key=None, value=value, at=0.0)


def inputs(*records, max_records=10, partitions=(0,)):
    made = Prefetch(max_records)
    made.assign(partitions, now=0.0)
    made.put(records, now=0.0)
    return made


def short(records):
    return [(r.topic[0] + str(r.partition), r.offset) for r in records]


def test_answers_go_before_what_others_take_back_and_that_before_events():
    made = inputs(*[record(t, i) for i in (1, 2) for t in ("events", "consensus", "answers")])
    assert short(made.take({0: 0}, 0.0)) == [
        ("a0", 1), ("a0", 2), ("c0", 1), ("c0", 2), ("e0", 1), ("e0", 2),
    ]  # fmt: skip


def test_no_more_is_handed_over_than_asked_for():
    made = inputs(*[record("events", i) for i in range(25)])
    assert [len(made.take({0: 0}, 0.0)) for _ in range(4)] == [10, 10, 5, 0]


def test_events_wait_while_answers_of_their_partition_come():
    made = inputs(record("events", 1), record("events", 7, partition=1), partitions=(0, 1))
    assert short(made.take({0: 3, 1: 0}, 0.1)) == [("e1", 7)]
    assert made.take({0: 3, 1: 0}, 0.1) == []
    made.put([record("answers", 1)], now=0.4)
    assert short(made.take({0: 2, 1: 0}, 0.4)) == [("a0", 1)]
    assert made.take({0: 2, 1: 0}, 0.8) == []
    assert short(made.take({0: 0, 1: 0}, 0.8)) == [("e0", 1)]


def test_events_do_not_wait_for_answers_that_are_there_and_do_not_come():
    made = inputs(record("events", 1))
    assert made.take({0: 3}, 0.49) == []
    assert short(made.take({0: 3}, 0.51)) == [("e0", 1)]


def test_events_wait_until_it_is_known_whether_there_are_answers():
    made = inputs(record("events", 1))
    assert made.take({0: None}, 0.2) == []
    assert short(made.take({0: 0}, 0.2)) == [("e0", 1)]


def test_events_wait_for_answers_that_did_not_fit_into_the_batch():
    made = inputs(record("events", 0), *[record("answers", i) for i in range(11)])
    assert len(made.take({0: 0}, 0.0)) == 10
    assert short(made.take({0: 0}, 0.0)) == [("a0", 10), ("e0", 0)]


def test_partitions_take_turns():
    made = inputs(
        *[record("events", i, n) for n in (0, 1) for i in range(20)],
        max_records=5,
        partitions=(0, 1),
    )
    first = {made.take({0: 0, 1: 0}, 0.0)[0].partition for _ in range(2)}
    assert first == {0, 1}


def test_enough_is_enough_but_answers_are_always_welcome():
    made = inputs(max_records=1)
    for topic in ("events", "answers", "consensus"):
        made.put([record(topic, i) for i in range(8)], now=0.0)
    assert made.full() == {("events", 0), ("consensus", 0)}
    made.take({0: 0}, 0.0)
    assert made.full() == {("events", 0), ("consensus", 0)}
    for _ in range(8):
        made.take({0: 0}, 0.0)
    assert made.full() == {("events", 0)}


def test_few_large_records_are_enough_too():
    made = inputs(record("events", 1, value=b"x" * 2**22))
    assert made.full() == {("events", 0)}
    made.take({0: 0}, 0.0)
    assert made.full() == set()


def test_new_partitions_begin_with_nothing():
    made = inputs(record("events", 1))
    assert made
    assert (made.waiting("events", 0), made.n_waiting("events", 0)) == (1, 1)
    made.assign([1], now=0.0)
    assert not made
    assert (made.waiting("events", 0), made.waiting("events", 1)) == (None, None)
    assert made.n_waiting("events", 0) == 0
    assert made.take({1: 0}, 0.0) == []


@given(st.lists(st.tuples(st.sampled_from(["events", "answers", "consensus"]), st.booleans())))
def test_everything_is_handed_over_once_and_in_the_order_of_its_partition(steps):
    made = inputs(max_records=3, partitions=(0, 1))
    put, taken = [], []
    for i, (topic, second) in enumerate(steps):
        put.append(record(topic, i, int(second)))
        made.put(put[-1:], now=float(i))
        if i % 2:
            taken += made.take({0: 0, 1: 0}, now=float(i))
    while made:
        taken += made.take({0: 0, 1: 0}, now=1e9)
    for topic in ("events", "answers", "consensus"):
        for n in (0, 1):
            one = [r for r in put if (r.topic, r.partition) == (topic, n)]
            assert [r for r in taken if (r.topic, r.partition) == (topic, n)] == one
