from threading import Thread

import pytest

from connectors.memory import MemoryTopics
from connectors.topics import BrokerError, FencedError, Outgoing

KEYS = [b"tom", b"sam", b"ann"]  # of three partitions, the first, second and last


def event(number, value=b"{}"):
    return Outgoing(topic="events", partition=number, key=KEYS[number], value=value)


def prediction(number):
    return Outgoing(topic="predictions", partition=number, key=KEYS[number], value=b"{}")


def write(topics, *records):
    writer = topics.writer("test")
    for record in records:
        writer.send(record)
    writer.close()


def join(topics, instance, group="g"):
    link = topics.client(group=group, instance=instance, max_records=100)
    link.poll(0.0)
    return link


def test_partitions_are_dealt_in_ranges_by_name():
    topics = MemoryTopics(5)
    b, c, a = (join(topics, name) for name in "bca")
    for link in (b, c):
        link.poll(0.0)
    assert [sorted(link.assigned) for link in (a, b, c)] == [[0, 1], [2, 3], [4]]


def test_workers_beyond_the_number_of_partitions_have_nothing():
    topics = MemoryTopics(1)
    join(topics, "a")
    assert join(topics, "b").assigned == frozenset()


def test_a_worker_that_leaves_hands_its_partitions_to_the_others():
    topics = MemoryTopics(3)
    a, b = join(topics, "a"), join(topics, "b")
    a.close()
    b.poll(0.0)
    assert b.assigned == {0, 1, 2}
    assert topics.n_members("g") == 1


def test_a_poll_does_not_wait_when_partitions_come_or_go():
    topics = MemoryTopics(3)
    a = join(topics, "a")
    join(topics, "b")
    assert a.poll(600.0) == []
    assert a.assigned == {0, 1}


def test_a_waiting_poll_ends_with_the_first_record():
    topics = MemoryTopics()
    link = join(topics, "a")
    producer = Thread(target=write, args=(topics, event(0)))
    producer.start()
    assert len(link.poll(600.0)) == 1
    producer.join()


def test_a_waiting_reader_ends_with_the_first_record():
    topics = MemoryTopics()
    reader = topics.reader(["events"])
    producer = Thread(target=write, args=(topics, event(0)))
    producer.start()
    assert len(reader.poll(600.0)) == 1
    producer.join()


def test_the_generation_rises_by_one_for_who_takes_part_in_every_distribution():
    topics = MemoryTopics(2)
    a = topics.client(group="g", instance="a", max_records=1)
    assert a.generation == -1
    a.poll(0.0)
    first = a.generation
    b = join(topics, "b")
    a.poll(0.0)
    assert a.generation == first + 1
    b.close()
    join(topics, "b").close()
    a.poll(0.0)
    assert a.generation == first + 4


def test_a_worker_that_lost_a_partition_commits_nothing_polled_or_not():
    topics = MemoryTopics(3)
    a = join(topics, "a")
    write(topics, event(0))
    a.poll(0.0)
    join(topics, "b")
    with pytest.raises(
        BrokerError, match=r"^partition 2 was given to another worker; start again$"
    ):
        a.commit([prediction(0)])
    assert topics.reader(["predictions"]).poll(0.0) == []
    assert topics.lags("g")["events", 0] == 1


def test_a_worker_that_lost_a_partition_and_has_it_again_commits_nothing():
    topics = MemoryTopics(2)
    a = join(topics, "a")
    write(topics, event(1))
    a.poll(0.0)
    b = join(topics, "b")
    b.poll(0.0)
    b.commit([prediction(1)])
    b.close()
    with pytest.raises(BrokerError, match="partition 1 was given to another worker"):
        a.commit([prediction(1)])


def test_a_worker_that_lost_nothing_commits_though_others_came():
    topics = MemoryTopics(1)
    a = join(topics, "a")
    write(topics, event(0))
    a.poll(0.0)
    join(topics, "b")
    assert a.commit([prediction(0)]) == {("predictions", 0): 1}


def test_what_was_polled_before_a_distribution_and_not_committed_comes_again():
    topics = MemoryTopics(1)
    a = join(topics, "a")
    write(topics, event(0))
    assert len(a.poll(0.0)) == 1
    assert a.poll(0.0) == []
    join(topics, "b")
    assert len(a.poll(0.0)) == 1


def test_a_fenced_client_does_not_leave_in_place_of_its_successor():
    topics = MemoryTopics(1)
    older, younger = join(topics, "a"), join(topics, "a")
    match = r"^another worker has joined as 'a'; give each a name of its own$"
    for call in (lambda: older.poll(0.0), lambda: older.commit([]), older.lag):
        with pytest.raises(FencedError, match=match):
            call()
    older.close()
    assert topics.n_members("g") == 1
    assert younger.poll(0.0) == []
    assert younger.assigned == {0}


def test_a_closed_link_is_unusable():
    topics = MemoryTopics()
    link = join(topics, "a")
    link.close()
    link.close()
    with pytest.raises(ValueError, match=r"^worker client is closed; open another one$"):
        link.poll(0.0)


def test_waiting_clients_are_told_that_the_topics_are_closed():
    topics = MemoryTopics()
    link, reader, writer = join(topics, "a"), topics.reader(["events"]), topics.writer("w")
    closer = Thread(target=topics.close)
    closer.start()
    for call in (
        lambda: link.poll(600.0),
        lambda: reader.poll(600.0),
        writer.flush,
        lambda: topics.reader(["events"]),
        lambda: join(topics, "b"),
    ):
        with pytest.raises(BrokerError, match=r"^topics are closed"):
            call()
        closer.join()
    link.close()


def test_polls_do_not_always_begin_with_the_same_partition():
    topics = MemoryTopics(3)
    link = topics.client(group="g", instance="a", max_records=1)
    write(topics, *[event(number) for number in range(3) for _ in range(2)])
    assert {record.partition for _ in range(3) for record in link.poll(0.0)} == {0, 1, 2}


def test_compaction_keeps_the_last_record_of_each_key_and_its_offset():
    topics = MemoryTopics()
    states = [
        Outgoing(topic="state", partition=0, key=key, value=value)
        for key, value in [(b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"b", None), (None, b"3")]
    ]
    link = join(topics, "a")
    link.commit(states)
    topics.compact()
    found = list(link.history({0: {}}))
    assert [(r.offset, r.key, r.value) for r in found] == [(2, b"a", b"2"), (4, None, b"3")]
    assert link.commit(states[:1]) == {("state", 0): 6}
    reader = topics.reader(["state"])
    assert [r.offset for r in reader.poll(0.0)] == [2, 4, 5]
    assert reader.caught_up


def test_a_reader_has_caught_up_though_the_last_records_were_compacted_away():
    topics = MemoryTopics()
    join(topics, "a").commit([Outgoing(topic="state", key=b"a", value=None)])
    topics.compact()
    reader = topics.reader(["state"])
    assert reader.poll(0.0) == []
    assert reader.caught_up


def test_progress_of_a_long_history_is_reported():
    topics, told = MemoryTopics(), []
    link = join(topics, "a")
    link.commit([Outgoing(topic="state", key=b"%d" % i, value=b"0") for i in range(20_001)])
    assert len(list(link.history({0: {}}, lambda *numbers: told.append(numbers)))) == 20_001
    assert told == [(10_000, 20_001), (20_000, 20_001)]


def test_there_is_at_least_one_partition():
    with pytest.raises(
        ValueError, match=r"^n_partitions must be a whole number of at least 1, got 0$"
    ):
        MemoryTopics(0)


def test_partitions_and_topics_that_are_not_there_are_refused():
    topics = MemoryTopics(2)
    with pytest.raises(ValueError, match=r"^partition must be 0 to 1, got 2$"):
        topics.writer("w").send(Outgoing(topic="events", partition=2, key=None, value=b""))
    with pytest.raises(ValueError, match=r"^topic must be one of events, answers, .*, got 'x'$"):
        join(topics, "a").commit([prediction(0), Outgoing(topic="x", key=None, value=b"")])
    assert topics.reader(["predictions"]).poll(0.0) == []


def test_records_are_stamped_by_the_clock():
    topics = MemoryTopics(clock=lambda: 12.5)
    write(topics, event(0))
    [record] = topics.reader(["events"]).poll(0.0)
    assert record.at == 12.5
