"""A worker's hold on a real broker: what counts, for whom, and what happens if it goes wrong."""

import random
import re
import threading
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain

import pytest

import connectors.kafka.worker_client as link_module
from connectors.kafka import reader_writer
from connectors.kafka.client_import import kafka_errors
from connectors.stalls import WakingClock
from connectors.topics import BrokerError, FencedError, ShortTopicError
from tests.helpers.kafka_cases import (
    PATIENCE_S,
    copy_all,
    error_of,
    eventually,
    linked,
    numbered,
    opened,
    out,
    poll,
    read,
    settle,
    write,
)
from tests.helpers.topics import everything, wait_until

cluster = pytest.importorskip("kafka.cluster")


@pytest.fixture
def topics(kafka, kafka_prefix):
    with opened(kafka, kafka_prefix) as made:
        yield made


@pytest.fixture
def group(kafka_prefix):
    return kafka_prefix + "group"


def values(records):
    return [record.value for record in records]


# --- leaving


def test_a_worker_that_leaves_gives_its_place_up_at_once(kafka, kafka_prefix, group):
    """Without waiting for the end of its session."""
    with (
        opened(kafka, kafka_prefix, timeouts={"session_s": 10.0 * PATIENCE_S}) as topics,
        linked(topics, group) as link,
    ):
        link.close(leave=True)
        assert eventually(lambda: topics.n_members(group), 0) == 0


def test_a_worker_that_leaves_does_not_throw_its_successor_out(topics, group):
    """It is stopped before it has noticed that another one bears its name."""
    with linked(topics, group) as old:
        settle(old)
        with linked(topics, group) as new:
            settle(new)
            old.close(leave=True)
            assert topics.n_members(group) == 1
            write(topics, out("events", b"x"))
            assert values(poll(new, 1)) == [b"x"]
            new.commit([])


# --- reading


def test_a_record_arrives_as_it_was_written(topics, group):
    headers = (("ce_type", b"streamgp.event.v1"), ("ce_type", b"\xff"), ("empty", b""))
    before = time.time() - 1.0
    write(
        topics,
        out("events", b"\xff\x00", 1, key=b"", headers=headers),
        out("events", b"x", 1, key=None),
        out("events", None, 1),
    )
    with linked(topics, group) as link:
        first, second, third = poll(link, 3)
    assert (first.topic, first.partition, first.offset) == ("events", 1, 0)
    assert (first.key, first.value, first.headers) == (b"", b"\xff\x00", headers)
    assert before < first.at < time.time() + 1.0
    assert (second.offset, second.key, second.headers) == (1, None, ())
    assert (third.key, third.value) == (b"ann", None)


def test_news_of_partitions_comes_without_records(topics, group):
    write(topics, *numbered("events", 3))
    with linked(topics, group, wait=False) as link:
        assert (link.assigned, link.generation) == (frozenset(), -1)
        while not link.assigned:
            assert link.poll(0.5) == []
        assert link.assigned == {0, 1}
        assert link.generation >= 1
        assert values(poll(link, 3)) == [b"0", b"1", b"2"]


def test_all_that_came_during_a_batch_comes_with_the_next_poll(topics, group):
    writer = topics.writer("producer")
    sizes = []
    with linked(topics, group) as link:
        while sizes.count(5) < 5:
            assert len(sizes) < 24, sizes
            while link.poll(0.02):
                link.commit([])  # on a busy machine the rest of the last five comes later
            # A fetch waits at the broker, which answers it as soon as there is one record.
            for record in numbered("events", 5):
                writer.send(record)
                writer.flush()
            sizes.append(len(link.poll(5.0)))
            link.commit([])
    writer.close()


def test_answers_come_before_the_events_of_their_partition_also_out_of_a_backlog(topics, group):
    write(topics, *numbered("events", 6000), *numbered("answers", 6000))
    with linked(topics, group) as link:
        found = []
        while len(found) < 12_000:
            records = poll(link, 1)
            found += [record.topic for record in records]
            link.commit([])
    # Some events may be in the batch of the last answers, none in an earlier one.
    last_answer = max(i for i, topic in enumerate(found) if topic == "answers")
    assert last_answer < 6500
    assert found.count("answers") == found.count("events") == 6000


def test_an_open_transaction_of_another_program_on_the_answers_does_not_hold_up_events(
    topics, group
):
    with open_transaction(topics, "answers"), linked(topics, group) as link:
        write(topics, *numbered("events", 100))
        assert len(poll(link, 100)) == 100  # in ten seconds; the transaction may last sixty
        write(topics, *numbered("events", 1, start=100))
        assert values(poll(link, 1)) == [b"100"]


def test_all_of_a_large_backlog_is_read_in_the_order_of_each_partition(topics, group):
    n = 15_000
    write(topics, *numbered("events", n, 0), *numbered("events", n, 1))
    with linked(topics, group, max_records=300) as link:
        found = {0: [], 1: []}
        while sum(map(len, found.values())) < 2 * n:
            for record in poll(link, 1):
                found[record.partition].append(int(record.value))
            link.commit([])
        assert all(lag == 0 for (topic, _), lag in link.lag().items() if topic == "events")
    assert found == {0: list(range(n)), 1: list(range(n))}


def test_an_idle_poll_takes_as_long_as_it_may(topics, group):
    def seconds_of(timeout_s):
        start = time.monotonic()
        assert link.poll(timeout_s) == []
        return time.monotonic() - start

    with linked(topics, group) as link:
        # Anything takes longer now and then on a busy machine: the quickest of some counts.
        assert 0.45 < min(seconds_of(0.5) for _ in range(3)) < 1.5
        assert min(seconds_of(0.0) for _ in range(9)) < 0.4


def test_a_record_that_comes_while_a_poll_waits_ends_it(topics, group):
    with linked(topics, group) as link:
        link.poll(0.3)
        timer = threading.Timer(0.3, write, (topics, out("events", b"x")))
        timer.start()
        start = time.monotonic()
        assert values(link.poll(60.0)) == [b"x"]
        assert time.monotonic() - start < 30.0
        timer.join()


def test_the_lag_counts_what_was_not_handed_over(topics, group):
    write(topics, *numbered("events", 5, 0), *numbered("answers", 2, 1))
    with linked(topics, group, max_records=3) as link:
        assert len(poll(link, 3)) == 3
        lag = link.lag()
        assert lag["events", 0] + lag["answers", 1] == 4
        assert lag["consensus", 0] == lag["events", 1] == 0
        assert set(lag) == {(t, n) for t in ("events", "answers", "consensus") for n in (0, 1)}


# --- writing


def test_what_is_written_and_what_was_read_become_visible_together(topics, group):
    write(topics, *numbered("events", 3))
    with linked(topics, group) as link:
        records = poll(link, 3)
        ends = link.commit([out("predictions", r.value, 1) for r in records])
        assert ends == {("predictions", 1): 3}
        assert link.commit([out("predictions", b"3", 1), out("state", b"s")]) == {
            ("predictions", 1): 5,  # the end of the first transaction took a place
            ("state", 0): 1,
        }
    assert read(topics, "predictions") == [b"0", b"1", b"2", b"3"]
    assert eventually(lambda: topics.lags(group)["events", 0], 0) == 0
    write(topics, out("events", b"new"))
    with linked(topics, group) as link:
        assert values(poll(link, 1)) == [b"new"]


def test_what_was_polled_and_not_committed_is_delivered_again(topics, group):
    write(topics, *numbered("events", 3))
    with linked(topics, group, max_records=2) as link:
        assert values(poll(link, 2)) == [b"0", b"1"]
        link.commit([])
        assert values(poll(link, 1)) == [b"2"]
    assert eventually(lambda: topics.lags(group)["events", 0], 1) == 1
    with linked(topics, group) as link:
        assert values(poll(link, 1)) == [b"2"]


def test_of_what_was_worked_off_not_even_the_end_of_its_transaction_waits(topics, group):
    def n_waiting():
        return sum(topics.lags(group).values())

    with linked(topics, group, max_records=2) as link:
        link.commit([out("consensus", b"%d" % i) for i in range(3)])
        assert values(poll(link, 2)) == [b"0", b"1"]
        link.commit([])
        assert eventually(n_waiting, 2) == 2  # the third, and the end
    with linked(topics, group) as link:
        assert values(poll(link, 1)) == [b"2"]
        link.commit([])
        assert eventually(n_waiting, 0) == 0
    write(topics, out("consensus", None))
    with linked(topics, group) as link:
        assert values(poll(link, 1)) == [None]


def test_a_record_without_a_partition_goes_where_its_key_belongs(topics, group):
    with linked(topics, group) as link:
        keys = [b"ann", b"bob", b"eve", b"dan"]
        link.commit([out("dead-letters", key, None, key) for key in keys])
    write(topics, *[out("events", key, None, key) for key in keys])
    for records in zip(
        *(sorted_by_key(topics, t) for t in ("dead-letters", "events")), strict=True
    ):
        assert records[0].partition == records[1].partition


def sorted_by_key(topics, name):
    return sorted(everything(topics, name), key=lambda record: record.key)


def test_of_a_batch_that_fails_nothing_is_visible(topics, group):
    write(topics, *numbered("events", 3))
    with linked(topics, group) as link:
        poll(link, 3)
        with pytest.raises(BrokerError, match="Unrecognized partition 7 for topic"):
            link.commit([out("predictions", b"x"), out("state", b"y", 7)])
    assert read(topics, "predictions", "state") == []
    assert topics.lags(group)["events", 0] == 3


def test_what_a_commit_writes_to_a_partition_is_sent_at_once(topics, group, monkeypatch):
    """Of several batches of a partition, each is sent once the one before is acknowledged."""
    n_batches = []

    def counted(*arguments):
        sent = put(*arguments)
        n_batches.append(len(sent))
        return sent

    put = link_module.put
    monkeypatch.setattr(link_module, "put", counted)
    with linked(topics, group) as link:
        link.commit([out("state", b"x" * 10_000) for _ in range(40)])
    assert n_batches == [1]


def test_a_batch_that_is_not_stored_in_time_is_told_with_what_to_do(topics, group, monkeypatch):
    def delayed(*_, **__):
        raise kafka_errors.KafkaTimeoutError("12005 ms have passed")  # as with a quota

    write(topics, *numbered("events", 1))
    with linked(topics, group) as link:
        poll(link, 1)
        monkeypatch.setattr(link_module, "transact", delayed)
        with pytest.raises(BrokerError) as caught:
            link.commit([out("predictions", b"x" * 20_000)])
    assert "did not answer in time to commit a batch of 20 kB; if this repeats" in str(caught.value)
    assert "make worker.batch smaller, raise the quota" in str(caught.value)
    assert str(caught.value).endswith("enough brokers are up (min.insync.replicas)")


def test_a_link_that_has_failed_or_was_closed_refuses_everything(topics, group):
    with linked(topics, group) as link:
        failed, _ = error_of(lambda: link.commit([out("state", b"y", 7)]))
        for use in (
            lambda: link.poll(0.0),
            lambda: link.commit([]),
            link.lag,
            lambda: link.history({}),
        ):
            with pytest.raises(
                BrokerError, match=r"^client is broken \(.*; open a new one$"
            ) as caught:
                use()
            assert str(failed) in str(caught.value)
    with pytest.raises(BrokerError, match=r"^worker client is closed; open a new one$"):
        link.poll(0.0)
    link.close()


def test_records_of_sixteen_megabytes_go_through(topics, group):
    large = b"x" * (16 * 2**20)
    with linked(topics, group) as link:
        link.commit([out("state", large), out("dead-letters", large)])
        assert [len(r.value) for r in link.history({0: {}})] == [2**24]
    assert list(map(len, read(topics, "dead-letters"))) == [2**24]


def test_inputs_of_a_megabyte_are_read(topics, group):
    write(topics, *[out("events", b"%d" % i * 10**6) for i in range(9)])
    with linked(topics, group) as link:
        assert [(r.value[:1], len(r.value)) for r in poll(link, 9)] == [
            (b"%d" % i, 10**6) for i in range(9)
        ]


def test_a_record_that_no_topic_takes_is_refused_before_anything_is_written(topics, group):
    with linked(topics, group) as link:
        with pytest.raises(
            ValueError, match=r"^record for state has \d+ bytes, expected at most 16842752$"
        ):
            link.commit([out("predictions", b"x"), out("state", b"x" * 16842752)])
        link.commit([out("predictions", b"y")])
    assert read(topics, "predictions") == [b"y"]


def test_a_transaction_that_was_open_when_the_worker_died_is_ended_by_its_successor(
    kafka, kafka_prefix, group
):
    with ExitStack() as stack:
        options = {"timeouts": {"transaction_s": 60.0}}  # after which the broker would end it
        topics = stack.enter_context(opened(kafka, kafka_prefix, **options))
        write(topics, *numbered("events", 2))
        dead = topics.client(group=group, instance="a", max_records=10)
        stack.callback(dead.close)
        settle(dead)
        poll(dead, 2)
        begin(dead, topics, b"half")
        link = stack.enter_context(linked(topics, group))
        copy_all(link, 2)
        assert read(topics, "predictions") == [b"0", b"1"]


@pytest.mark.parametrize("what", ["state", "positions"])
def test_a_transaction_in_which_a_worker_was_killed_is_ended_by_another_one(
    kafka, kafka_prefix, group, what, monkeypatch
):
    # The broker would end it after a minute, and nothing can be read before.
    timeouts = {"transaction_s": 60.0, "stall_s": 15.0}
    with ExitStack() as stack:
        topics = stack.enter_context(opened(kafka, kafka_prefix, timeouts=timeouts))
        link = stack.enter_context(linked(topics, group, "b"))
        dead = topics.client(group=group, instance="a", max_records=10)
        stack.callback(dead.close)
        all_settle(link, dead, n=1)
        [number] = dead.assigned
        dead.commit([out("state", b"whole", number)])
        write(topics, *numbered("events", 2, number))
        poll(dead, 2)
        dead._producer.begin_transaction()
        if what == "state":
            send(dead, topics, "state", b"half", number)
        else:
            send_offset(dead._producer, topics, group, 2, number)
        remove(kafka, group, "a")  # as the broker does when it hears nothing for `session_s`
        settle(link, n=2)
        assert values(link.history({0: {}, 1: {}})) == [b"whole"]
        copy_all(link, 2)
        assert read(topics, "predictions") == [b"0", b"1"]
        # It was only slow, and goes on with the transaction that it had begun.
        monkeypatch.setattr(dead._producer, "begin_transaction", lambda: None)
        with pytest.raises(BrokerError, match="commit: this program was silent for too long"):
            dead.commit([out("predictions", b"late", number)])
        assert read(topics, "state") == [b"whole"]


def test_a_transaction_in_which_the_only_worker_was_killed_is_ended_by_one_of_another_name(
    kafka, kafka_prefix, group
):
    timeouts = {"transaction_s": 60.0, "stall_s": 15.0}
    with ExitStack() as stack:
        topics = stack.enter_context(opened(kafka, kafka_prefix, timeouts=timeouts))
        dead = topics.client(group=group, instance="a", max_records=10)
        stack.callback(dead.close)
        settle(dead, n=2)
        dead.commit([out("state", b"whole")])
        dead._producer.begin_transaction()
        send(dead, topics, "state", b"half", 0)
        link = stack.enter_context(linked(topics, group, "b", wait=False))
        remove(kafka, group, "a")  # before the other one is a member
        settle(link, n=2)
        assert values(link.history({0: {}, 1: {}})) == [b"whole"]


def test_a_transaction_of_a_worker_that_the_group_knows_is_left_alone(kafka, kafka_prefix, group):
    with (
        opened(kafka, kafka_prefix, partitions=6, timeouts={"transaction_s": 60.0}) as topics,
        linked(topics, group, "a") as first,
        linked(topics, group, "b", wait=False) as second,
    ):
        all_settle(first, second, n=3)
        first._producer.begin_transaction()
        send(first, topics, "state", b"whole", 0)
        with linked(topics, group, "c", wait=False) as third:
            all_settle(first, second, third, n=2)
            timer = threading.Timer(1.0, first._producer.commit_transaction)
            timer.daemon = True  # it would wait for ever to commit what another one has ended
            timer.start()
            assert values(second.history({0: {}})) == [b"whole"]
            timer.join(PATIENCE_S)


# --- groups


def test_two_workers_share_the_partitions_of_all_inputs_alike(kafka, kafka_prefix, group):
    with (
        opened(kafka, kafka_prefix, partitions=4) as topics,
        linked(topics, group, "a") as first,
    ):
        assert first.assigned == {0, 1, 2, 3}
        generation = first.generation
        with linked(topics, group, "b", wait=False) as second:
            all_settle(first, second, n=2)
            assert first.generation == second.generation == generation + 1
            assert first.assigned | second.assigned == {0, 1, 2, 3}
            write(topics, *[out(t, b"%d" % n, n) for t in ("events", "answers") for n in range(4)])
            for link in (first, second):
                found = {(r.topic, r.partition) for r in poll(link, 4)}
                assert found == {(t, n) for t in ("events", "answers") for n in link.assigned}


def all_settle(*links, n):
    """Poll, as workers of their own would, until each has n partitions."""

    def poll_on(link):
        until = time.monotonic() + PATIENCE_S
        while any(len(each.assigned) != n for each in links):
            assert time.monotonic() < until, f"{link.assigned} after {PATIENCE_S} s"
            assert link.poll(0.1) == []

    threads = [threading.Thread(target=poll_on, args=(link,)) for link in links]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(link.assigned) for link in links] == [n] * len(links)


@contextmanager
def settling(link):
    """Have a client settle in a thread, which ends with the block, also if that fails."""
    thread = threading.Thread(target=settle, args=(link,))
    thread.start()
    try:
        yield thread
    finally:
        thread.join()


def test_what_was_fetched_and_not_handed_over_is_fetched_again_when_partitions_move(topics, group):
    n = 10_000
    write(topics, *numbered("events", n, 0), *numbered("events", n, 1))
    with (
        linked(topics, group, "a", max_records=100) as first,
        linked(topics, group, "b", wait=False) as second,
    ):
        with settling(second):
            while len(first.assigned) != 1:
                records = first.poll(0.2)  # none, if the other one is so late that all are done
                first.commit([out("predictions", r.value, r.partition, r.key) for r in records])
        done = everything(topics, "predictions")
        for link in (first, second):
            (number,) = link.assigned
            copy_all(link, n - sum(record.partition == number for record in done))
    copied = everything(topics, "predictions")
    for number in (0, 1):
        assert [int(r.value) for r in copied if r.partition == number] == list(range(n))


def test_a_worker_that_ends_leaves_its_partitions_when_its_session_runs_out(topics, group):
    with linked(topics, group, "a") as first, linked(topics, group, "b", wait=False) as second:
        all_settle(first, second, n=1)
        write(topics, *numbered("events", 3, min(second.assigned)))
        generation = first.generation
        second.close()
        settle(first, n=2)
        assert first.generation > generation
        copy_all(first, 3)
    assert read(topics, "predictions") == [b"0", b"1", b"2"]


def test_of_a_partition_that_stays_it_is_known_at_once_that_no_answers_wait(topics, group):
    def lag_of_answers(link, number):
        link.poll(0.1)
        return link.lag()["answers", number]

    with linked(topics, group, "a") as first, linked(topics, group, "b", wait=False) as second:
        for number in (0, 1):
            assert eventually(lambda n=number: lag_of_answers(first, n), 0) == 0
        all_settle(first, second, n=1)
        (number,) = first.assigned
        assert eventually(lambda: lag_of_answers(first, number), 0) == 0


def test_a_worker_that_comes_back_in_time_has_its_partitions_and_disturbs_nobody(topics, group):
    with linked(topics, group, "a") as first:
        with linked(topics, group, "b", wait=False) as second:
            all_settle(first, second, n=1)
            generation, numbers = first.generation, second.assigned
        with linked(topics, group, "b") as second:
            first.poll(0.5)
            assert (first.generation, second.generation) == (generation, generation)
            assert second.assigned == numbers


def test_more_workers_than_partitions_wait_without_any(topics, group):
    with ExitStack() as stack:
        links = [stack.enter_context(linked(topics, group, name, wait=False)) for name in "abc"]
        until = time.monotonic() + PATIENCE_S
        while sorted(len(link.assigned) for link in links) != [0, 1, 1]:
            assert time.monotonic() < until
            run_together([lambda link=link: link.poll(0.2) for link in links])
        idle = next(link for link in links if not link.assigned)
        assert idle.commit([]) == {}
        assert topics.n_members(group) == 3


def run_together(calls):
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)


def test_partitions_given_anew_between_poll_and_commit_end_the_link(topics, group):
    write(topics, *numbered("events", 3))
    with linked(topics, group, "a") as first, linked(topics, group, "b", wait=False) as second:
        poll(first, 3)
        with settling(second):
            with pytest.raises(BrokerError, match="partitions were reassigned before what was"):
                keep_polling(first)
            first.close()
        settle(second, n=2)
        assert values(poll(second, 3)) == [b"0", b"1", b"2"]


def test_the_outcome_of_a_rearrangement_is_not_lost_between_short_fetches(topics, group):
    """Otherwise the group rebalances again, which a member that does not poll holds up."""
    with linked(topics, group, "a") as first, linked(topics, group, "b", wait=False) as second:
        before = first.generation
        with settling(second) as thread:
            while thread.is_alive():
                first._member.fetch(0.001)  # in which no answer of the group comes
                time.sleep(0.1)
        settle(first, n=1)
        assert (first.generation, second.generation) == (before + 1, before + 1)


def test_a_worker_waits_while_the_broker_that_leads_its_group_is_away(topics, group, monkeypatch):
    """The client mostly retries by itself, but not if it cannot connect to any broker."""

    def away(**_):
        raise kafka_errors.KafkaConnectionError("111 ECONNREFUSED")

    with linked(topics, group) as link:
        consumer = link._member._consumer
        with monkeypatch.context() as patch:
            patch.setattr(consumer, "poll", away)
            assert link.poll(0.1) == []
            patch.setattr(consumer._coordinator, "need_rejoin", lambda: True)
            patch.setattr(consumer._coordinator, "ensure_active_group", away)
            assert link.poll(0.1) == []
        write(topics, *numbered("events", 3))
        assert values(poll(link, 3)) == [b"0", b"1", b"2"]


def keep_polling(link, seconds=PATIENCE_S):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        link.poll(0.1)


def test_a_worker_that_lost_its_partitions_can_write_nothing_not_even_without_inputs(
    topics, group, kafka
):
    with linked(topics, group, "a") as link:
        remove(kafka, group, "a")
        error, _ = error_of(lambda: link.commit([out("predictions", b"timer")]))
        assert not isinstance(error, FencedError)
    assert read(topics, "predictions") == []


def remove(kafka, group, instance):
    from kafka.admin import KafkaAdminClient, MemberToRemove

    admin = KafkaAdminClient(bootstrap_servers=kafka)
    admin.remove_group_members(group, [MemberToRemove(group_instance_id=instance)])
    admin.close()


def test_a_worker_that_was_thrown_out_joins_anew(topics, group, kafka):
    with linked(topics, group, "a") as link:
        generation = link.generation
        remove(kafka, group, "a")
        until = time.monotonic() + PATIENCE_S
        while link.generation == generation or not link.assigned:
            assert time.monotonic() < until
            assert link.poll(0.2) == []
        assert link.generation > generation
        write(topics, *numbered("events", 3))
        copy_all(link, 3)
    assert read(topics, "predictions") == [b"0", b"1", b"2"]


def test_where_to_read_on_is_asked_anew_when_partitions_come_back(topics, group, kafka):
    from kafka.future import Future
    from kafka.structs import OffsetAndMetadata

    write(topics, *numbered("events", 3))
    with linked(topics, group, "a") as link:
        copy_all(link, 3)
        # An answer from before, which came too late for the poll that asked.
        partitions = frozenset(link._member.partitions())
        late = Future().success(
            {partition: OffsetAndMetadata(0, "", -1) for partition in partitions}
        )
        link._member._consumer._coordinator._offset_fetch_futures[partitions] = late
        generation = link.generation
        remove(kafka, group, "a")
        until = time.monotonic() + PATIENCE_S
        while link.generation == generation or not link.assigned:
            assert time.monotonic() < until
            assert link.poll(0.2) == []
        write(topics, *numbered("events", 1, start=3))
        assert values(poll(link, 1)) == [b"3"]


def test_a_client_that_a_test_leaves_open_does_not_outlast_it(kafka, kafka_prefix, group):
    before = set(threading.enumerate())
    with opened(kafka, kafka_prefix) as topics:
        topics.client(group=group, instance="a", max_records=1)
        topics.reader(["events"])
        topics.writer("feeder")
        assert set(threading.enumerate()) > before
    wait_until(lambda: set(threading.enumerate()) <= before)


def test_a_client_draws_no_random_numbers_of_a_law(topics, group):
    before = random.getstate()
    with linked(topics, group) as link:
        write(topics, *numbered("events", 3))
        copy_all(link, 3)
    assert random.getstate() == before


# --- two of one name


def test_of_two_workers_with_one_name_the_older_is_fenced_when_it_commits(topics, group):
    write(topics, *numbered("events", 3))
    with linked(topics, group) as older:
        poll(older, 3)
        with linked(topics, group) as newer:
            with pytest.raises(FencedError, match=r"bears the name 'a' and has taken over"):
                older.commit([out("predictions", b"older")])
            copy_all(newer, 3)
    assert read(topics, "predictions") == [b"0", b"1", b"2"]


def test_of_two_workers_with_one_name_the_older_is_fenced_also_when_there_is_nothing_to_do(
    topics, group
):
    with linked(topics, group) as older, linked(topics, group) as newer:
        with pytest.raises(FencedError, match=f"^another worker of group '{group}' bears the n"):
            keep_polling(older)
        write(topics, *numbered("events", 3))
        copy_all(newer, 3)


def test_a_transaction_that_the_broker_ended_is_no_fencing(topics, group):
    write(topics, *numbered("events", 3))
    with linked(topics, group) as link:
        poll(link, 3)
        end_transactions_of(topics, group, "a")
        error, _ = error_of(lambda: link.commit([out("predictions", b"x")]))
        assert type(error) is BrokerError
    assert read(topics, "predictions") == []
    with linked(topics, group) as link:
        copy_all(link, 3)
    assert read(topics, "predictions") == [b"0", b"1", b"2"]


def test_a_partition_that_no_broker_leads_is_named(topics, group, monkeypatch):
    """Other partitions have a leader: their offsets are told, and those of this one left out."""
    leader_of = cluster.ClusterMetadata.leader_for_partition

    def leader(self, partition):
        led = partition != (topics.names()["answers"], 1)
        return leader_of(self, partition) if led else -1

    monkeypatch.setattr(cluster.ClusterMetadata, "leader_for_partition", leader)
    with linked(topics, group, wait=False) as link:
        error, _ = error_of(lambda: poll(link, 1))
    assert type(error) is BrokerError  # once the broker is up again, it works
    assert re.search(
        r"failed to read: no broker with a copy of one of the partitions is up; `streamgp check` "
        r"says which is down \(.*answers partition 1\)$",
        str(error),
    )


def test_positions_that_an_open_transaction_holds_back_are_waited_for_but_not_for_ever(
    kafka, kafka_prefix, group
):
    with (
        opened(kafka, kafka_prefix) as topics,
        opened(kafka, kafka_prefix, create=False, timeouts={"stall_s": 2.0}) as impatient,
    ):
        write(topics, *numbered("events", 3))
        with linked(topics, group) as link:
            copy_all(link, 3)
        with open_transaction(topics, "events", value=b"open") as producer:
            send_offset(producer, topics, group, 2)
            with linked(topics, group, "b", wait=False) as link:
                settle(link, n=2)
                timer = threading.Timer(1.0, producer.abort_transaction)
                timer.start()
                write(topics, *numbered("events", 1, 0, start=3))
                assert values(poll(link, 1)) == [b"3"]
                timer.join()
        with open_transaction(topics, "answers") as producer:
            send_offset(producer, topics, group, 2)
            with (
                linked(impatient, group, "b", wait=False) as link,
                pytest.raises(
                    BrokerError, match=r"not said for 2 s where to read on.*events partit"
                ),
            ):
                keep_polling(link)


def send_offset(producer, topics, group, offset, number=0):
    from kafka import TopicPartition
    from kafka.structs import OffsetAndMetadata

    partition = TopicPartition(topics.names()["events"], number)
    producer.send_offsets_to_transaction({partition: OffsetAndMetadata(offset, "", -1)}, group)


# --- history


def test_history_has_all_committed_records_of_the_partitions_asked_for(topics, group):
    with linked(topics, group) as link:
        link.commit([out(t, t.encode(), n) for t in ("state", "consensus") for n in (0, 1)])
        link.commit([out("state", b"more", 1), out("state", None, 1)])
        both = list(link.history({0: {}, 1: {}}))
        assert sorted((r.topic, r.partition, r.offset, r.value) for r in both if r.value) == [
            ("consensus", 0, 0, b"consensus"),
            ("consensus", 1, 0, b"consensus"),
            ("state", 0, 0, b"state"),
            ("state", 1, 0, b"state"),
            ("state", 1, 2, b"more"),
        ]
        assert [r.value for r in both if r.offset == 3] == [None]
        assert values(link.history({1: {"state": 2, "consensus": 1}})) == [b"more", None]
        ends = {"state": 5, "consensus": 2}
        assert values(link.history({1: ends})) == []
        assert list(link.history({})) == []


def test_history_leaves_out_what_was_aborted(topics, group):
    with linked(topics, group) as link:
        link.commit([out("state", b"1")])
        abort(topics, [b"aborted"] * 300)
        assert values(link.history({0: {}})) == [b"1"]
        link.commit([out("state", b"2")])
        abort(topics, [b"aborted"] * 300)
        told = []
        assert values(link.history({0: {}}, lambda *n: told.append(n))) == [b"1", b"2"]
        assert told[-1] in ((605, 605), (606, 606))  # the end of the last takes a place, in time


@pytest.mark.parametrize("how", ["commit_transaction", "abort_transaction"])
def test_history_waits_until_an_open_transaction_has_ended(topics, group, how):
    with (
        open_transaction(topics, "state", value=b"open") as producer,
        linked(topics, group) as link,
    ):
        timer = threading.Timer(1.0, getattr(producer, how))
        start = time.monotonic()
        timer.start()
        assert values(link.history({0: {}})) == ([b"open"] if how == "commit_transaction" else [])
        assert time.monotonic() - start > 0.9
        timer.join()


def test_history_does_not_wait_for_what_is_written_after_it_began(topics, group):
    with linked(topics, group) as link:
        link.commit([out("state", b"1")])
        found = link.history({0: {}})
        first = next(found)
        with open_transaction(topics, "state", value=b"later"):
            assert [first.value, *values(found)] == [b"1"]


def test_history_that_gets_no_further_says_so(kafka, kafka_prefix, group):
    with (
        opened(kafka, kafka_prefix, timeouts={"stall_s": 1.0}) as topics,
        open_transaction(topics, "state"),
        linked(topics, group) as link,
        pytest.raises(BrokerError, match=r"nothing could be read for 1 s, is a transaction left"),
    ):
        list(link.history({0: {}}))


def test_history_is_not_stuck_while_its_reader_does_something_else(topics, group, monkeypatch):
    meanwhile_s = 0.0

    def clock():
        return time.monotonic() + meanwhile_s

    monkeypatch.setattr(reader_writer, "monotonic", clock)
    monkeypatch.setattr(reader_writer, "WakingClock", partial(WakingClock, clock=clock))
    with (
        open_transaction(topics, "state", value=b"open") as producer,
        linked(topics, group) as link,
    ):
        batches = link.history_batches({0: {}})
        assert next(batches) == []
        meanwhile_s = 2.0 * topics._connection.timeouts.stall_s
        assert next(batches) == []
        producer.commit_transaction()
        assert values(chain.from_iterable(batches)) == [b"open"]


def test_history_of_a_topic_that_was_created_anew_says_so_and_where(topics, group):
    write(topics, out("state", b"x", 1))
    with linked(topics, group) as link:
        with pytest.raises(
            ShortTopicError, match=r"consensus ends at offset 0 in partition 1, but is known up to "
        ) as caught:
            list(link.history({0: {}, 1: {"consensus": 9, "state": 1}}))
        assert caught.value.reasons.keys() == {1}
        assert list(link.history({0: {}, 1: {"state": 1}})) == []


def test_history_that_takes_long_holds_up_no_other_worker(kafka, kafka_prefix, group):
    settled = threading.Event()

    def settle_then_let_go():
        settle(second)
        settled.set()
        producer.commit_transaction()

    with (
        opened(kafka, kafka_prefix, timeouts={"stall_s": 30.0}) as topics,
        open_transaction(topics, "state") as producer,
        linked(topics, group, "a") as first,
        linked(topics, group, "b", wait=False) as second,
    ):
        thread = threading.Thread(target=settle_then_let_go)
        thread.start()
        found = values(first.history({0: {}, 1: {}}))
        assert settled.is_set(), "the other had no partitions when the history was read"
        assert found == [b"open"]
        thread.join(PATIENCE_S)
        settle(first, n=1)
        first.commit([out("predictions", b"x", min(first.assigned))])


def test_nothing_waits_for_the_metadata_of_topics(topics, group):
    with linked(topics, group) as link:
        known = link._producer._metadata.partitions_for_topic  # before anything is written
        for name in topics.names().values():
            assert eventually(lambda name=name: known(name), {0, 1}) == {0, 1}
    consumer = topics._connection.consumer()
    cluster = consumer._fetcher._manager.cluster
    cluster._need_update = True
    assert cluster.ttl() == 0  # milliseconds until it asks
    consumer.close()


# --- helpers that reach behind the link


def a_producer(topics, **options):
    return topics._connection.producer(**options)


def open_transaction(topics, name, value=b"open"):
    from contextlib import contextmanager

    @contextmanager
    def opened_transaction():
        producer = a_producer(
            topics, transactional_id=topics.names()[name], transaction_timeout_ms=60_000
        )
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topics.names()[name], value, b"k", partition=0).get(PATIENCE_S)
        try:
            yield producer
        finally:
            if producer._transaction_manager._current_state.name == "IN_TRANSACTION":
                producer.abort_transaction()
            producer.close()

    return opened_transaction()


def abort(topics, found):
    producer = a_producer(topics, transactional_id=topics.names()["state"])
    producer.init_transactions()
    producer.begin_transaction()
    for value in found:
        producer.send(topics.names()["state"], value, b"k", partition=0)
    producer.flush()
    producer.abort_transaction()
    producer.close()


def begin(link, topics, value):
    link._producer.begin_transaction()
    send(link, topics, "predictions", value, 0)


def send(link, topics, name, value, partition):
    link._producer.send(topics.names()[name], value, b"k", partition=partition).get(PATIENCE_S)


def end_transactions_of(topics, group, instance):
    producer = a_producer(topics, transactional_id=f"{group}-{instance}")
    producer.init_transactions()
    producer.close()
