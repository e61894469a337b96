"""Topics change under a worker: deleted, recreated, with more partitions, with records removed."""

import threading
import time

import pytest

from connectors.kafka.admin import Administration
from connectors.kafka.client import Connection
from connectors.kafka.client_import import TopicPartition, kafka_errors
from connectors.kafka.topic_identity import Shape, check_mark, check_same, shape_of
from connectors.topics import ALL_TOPICS, BrokerError, OffsetReset, RefusedError
from connectors.worker.logging import ProgressReports, WorkerLog
from tests.helpers.kafka_cases import (
    BUSY_S,
    PATIENCE_S,
    PATIENT,
    QUICK,
    copy_all,
    error_of,
    eventually,
    extend,
    linked,
    numbered,
    opened,
    out,
    poll,
    settle,
    write,
)

QUICKLY_NOTICED = PATIENT | {"look_s": 0.3}


@pytest.fixture
def topics(kafka, kafka_prefix):
    with opened(kafka, kafka_prefix, timeouts=QUICKLY_NOTICED) as made:
        yield made


@pytest.fixture
def group(kafka_prefix):
    return kafka_prefix + "group"


@pytest.fixture
def admin(kafka):
    client = Connection(kafka).admin()
    yield client
    client.close()


def delete(admin, *names):
    admin.delete_topics(list(names))


def delete_records(admin, topic, before, partition=0):
    place = TopicPartition(topic, partition)
    admin.delete_records({place: before})


def made_again(admin, topics, name, timeout_s=PATIENCE_S):
    """Delete a topic, and make it again as soon as the broker lets us."""
    delete(admin, name)
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        try:
            if topics.create():
                return
        except BrokerError:
            pass  # it is about to be deleted
        time.sleep(0.05)
    raise AssertionError(f"{name} could not be made again")


def polled_to_its_end(link, timeout_s=PATIENCE_S):
    """Return the error that ends a link which has nothing to do."""
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        try:
            link.poll(0.1)
        except BrokerError as error:
            return error
    raise AssertionError("the link goes on")


# --- topics that are gone


@pytest.mark.parametrize(
    "name",
    # By day an input, an output, and what a worker both reads and writes.
    [
        pytest.param(
            name, marks=() if name in ("answers", "requests", "state") else pytest.mark.nightly
        )
        for name in ALL_TOPICS
    ],
)
def test_a_topic_that_is_deleted_ends_an_idle_worker(topics, group, admin, kafka_prefix, name):
    with linked(topics, group) as link:
        delete(admin, kafka_prefix + name)
        error = polled_to_its_end(link)
    assert type(error) is BrokerError
    assert str(error) == f"topic {kafka_prefix}{name} was deleted while this worker was at work"


def test_a_topic_that_is_deleted_is_why_a_busy_worker_cannot_commit(
    kafka, kafka_prefix, group, admin
):
    with opened(kafka, kafka_prefix, timeouts=QUICK | {"look_s": 0.1}) as topics:
        write(topics, *numbered("events", 10))
        with linked(topics, group) as link:
            settle(link)
            poll(link, 10)
            delete(admin, kafka_prefix + "state")
            error, _ = error_of(lambda: link.commit([out("state", b"x")]))
    assert str(error) == f"topic {kafka_prefix}state was deleted while this worker was at work"


def test_a_worker_that_comes_back_under_its_name_notices_a_topic_that_was_deleted(
    topics, group, admin, kafka_prefix
):
    with linked(topics, group) as link:
        settle(link)
    with linked(topics, group) as link:
        delete(admin, kafka_prefix + "events")
        assert "was deleted" in str(polled_to_its_end(link))
    error, took_s = error_of(lambda: topics.client(group=group, instance="a", max_records=1))
    assert "events is missing" in str(error)
    assert took_s < BUSY_S


@pytest.mark.parametrize("name", ["events", "predictions", "state"])
def test_a_topic_that_is_created_anew_ends_an_idle_worker(topics, group, admin, kafka_prefix, name):
    with linked(topics, group) as link:
        made_again(admin, topics, kafka_prefix + name)
        error = polled_to_its_end(link)
    assert type(error) is BrokerError
    assert "was deleted" in str(error)


def test_a_topic_that_was_created_anew_is_read_from_its_beginning(
    topics, group, admin, kafka_prefix
):
    write(topics, *numbered("events", 20))
    with linked(topics, group) as link:
        copy_all(link, 20)
    made_again(admin, topics, kafka_prefix + "events")
    write(topics, *numbered("events", 30, start=100))
    with linked(topics, group) as link:
        assert [r.value for r in poll(link, 30)] == [b"%d" % i for i in range(100, 130)]


def test_a_position_of_a_topic_that_was_deleted_is_refused(topics, group, admin, kafka_prefix):
    """A worker that commits at the very moment may leave one: nothing is skipped by it."""
    write(topics, *numbered("events", 5))
    # Positions of a group at work cannot be set.
    with linked(topics, group, leave=True) as link:
        copy_all(link, 5)
    place = TopicPartition(kafka_prefix + "events", 0)

    def position():
        return admin.list_group_offsets({group: [place]})[group][place]

    assert eventually(lambda: position().offset, 5) == 5
    committed = position()
    made_again(admin, topics, kafka_prefix + "events")
    write(topics, *numbered("events", 30))
    admin.alter_group_offsets(group, {place: committed})
    text = "events was deleted and made again, and group .* has a position of the former one"
    with pytest.raises(RefusedError, match=text):
        topics.client(group=group, instance="a", max_records=10)
    with pytest.raises(RefusedError, match=text):
        topics.backlog(group)


# --- more partitions


def test_more_partitions_end_a_worker_before_it_works_on_them(topics, group, admin, kafka_prefix):
    names = [kafka_prefix + name for name in ALL_TOPICS]
    with linked(topics, group) as link:
        extend(admin, 3, *names)
        error = polled_to_its_end(link)
    assert type(error) is RefusedError
    assert "has 3 partitions, but had 2 when this worker began: keys have moved" in str(error)
    assert "make seven new topics with 3 partitions" in str(error)


def test_more_partitions_than_when_the_group_began_are_refused_at_the_start(
    topics, group, admin, kafka_prefix
):
    write(topics, *numbered("events", 5))
    with linked(topics, group) as link:
        copy_all(link, 5)
    extend(admin, 3, *(kafka_prefix + name for name in ALL_TOPICS))
    with (
        pytest.raises(RefusedError, match="has 3 partitions, but had 2 when group"),
        linked(topics, group),
    ):
        pass


# --- records that are gone


def test_records_deleted_before_they_were_read_are_told_and_work_goes_on(
    topics, group, admin, kafka_prefix
):
    write(topics, *numbered("events", 100))
    with linked(topics, group, max_records=10) as link:
        copy_all(link, 10)
        # The partitions that were never written to are not reported, at this start or at any.
        assert link.begun() == [
            OffsetReset(topic=kafka_prefix + "events", partition=0, position=None, offset=0)
        ]
    delete_records(admin, kafka_prefix + "events", before=60)
    assert topics.backlog(group)["events", 0].n_missed == 50
    with linked(topics, group, max_records=100) as link:
        assert [r.value for r in poll(link, 40)] == [b"%d" % i for i in range(60, 100)]
        told = [each for each in link.begun() if each.position is not None]
    assert told == [OffsetReset(topic=kafka_prefix + "events", partition=0, position=10, offset=60)]


def test_a_position_that_another_program_has_set_is_told_once(
    topics, group, admin, kafka_prefix, caplog
):
    def told(link):
        caplog.clear()
        before = {(kafka_prefix + "events", 0): 5}
        ProgressReports(link, WorkerLog(None), before.get).look()
        return [record.fields for record in caplog.records if record.message == "position-set"]

    write(topics, *numbered("events", 20))
    # Positions of a group at work cannot be set.
    with linked(topics, group, leave=True) as link:
        copy_all(link, 5)
    place = TopicPartition(kafka_prefix + "events", 0)
    admin.alter_group_offsets(group, {place: committed_at(12)})
    with linked(topics, group, leave=True) as link:
        [warning] = told(link)
        assert (warning["topic"], warning["partition"]) == (kafka_prefix + "events", 0)
        assert (warning["offset"], warning["was"], warning["n"]) == (12, 5, 7)
        assert told(link) == []
        copy_all(link, 8)
    topics.set_positions(group, {("answers", 0): 0})  # by a command of streamgp
    with linked(topics, group) as link:
        assert told(link) == []


def test_records_deleted_while_a_worker_is_behind_are_reported(topics, group, admin, kafka_prefix):
    """It holds some already; nothing of what is still there is skipped, nothing comes twice."""
    value = b"x" * 100_000
    write(topics, *(out("events", b"%d " % i + value) for i in range(120)))
    with linked(topics, group, max_records=1) as link:
        copy_all(link, 3)
        delete_records(admin, kafka_prefix + "events", before=110)
        found = []
        until = time.monotonic() + PATIENCE_S
        while (not found or found[-1] < 119) and time.monotonic() < until:
            got = link.poll(0.2)
            found += [int(r.value.split()[0]) for r in got]
            link.commit([])
        told = [each for each in link.begun() if each.position is not None]
    [gap] = told
    expected = [*range(3, gap.position), *range(gap.offset, 120)]
    assert gap.offset == 110
    assert found == expected


def test_a_position_behind_the_end_is_refused(topics, group, admin, kafka_prefix):
    write(topics, *numbered("events", 5))
    place = TopicPartition(kafka_prefix + "events", 0)
    admin.alter_group_offsets(group, {place: committed_at(400)})
    link = topics.client(group=group, instance="a", max_records=10)
    try:
        error = polled_to_its_end(link)
    finally:
        link.close()
    assert type(error) is RefusedError
    assert "is 400, but the partition ends before" in str(error)
    assert "kafka-consumer-groups.sh --reset-offsets" in str(error)
    with pytest.raises(RefusedError) as told:  # by `streamgp check`, before a worker is started
        topics.lags(group)
    assert str(told.value) == str(error)


def test_an_end_that_an_election_has_lost_is_told_by_its_places(topics, group, kafka_prefix):
    """As after an unclean one, where the broker tells a consumer up to where its log agrees."""
    found = {
        TopicPartition(kafka_prefix + topic, 0): committed_at(n)
        for topic, n in (("events", 40), ("answers", 7))
    }

    def poll(**_):
        raise kafka_errors.LogTruncationError(found)

    with linked(topics, group) as link:
        link._member._consumer.poll = poll
        error = polled_to_its_end(link)
    assert type(error) is RefusedError
    assert str(error) == (
        "inputs have lost their end, which was read already: "
        f"topic {kafka_prefix}answers partition 0 from offset 7, "
        f"topic {kafka_prefix}events partition 0 from offset 40; "
        "say where to read on with kafka-consumer-groups.sh --reset-offsets"
    )


def committed_at(offset):
    from connectors.kafka.client_import import OffsetAndMetadata

    return OffsetAndMetadata(offset, "", -1)


# --- brokers that draw no ids


NONE = "00000000-0000-0000-0000-000000000000"


@pytest.mark.parametrize("mark", [Shape(NONE, 4).mark, f"topic={NONE} partitions=4"])
def test_a_position_without_an_id_belongs_to_the_topic_that_is_there(mark):
    """A broker that draws ids since its upgrade has recreated no topic."""
    then = shape_of(mark)
    assert then == Shape(NONE, 4)
    check_mark("events", then, Shape("drawn", 4), "rooms")
    check_mark("events", Shape("drawn", 4), then, "rooms")
    check_same({"events": "events"}, {"events": then}, {"events": Shape("drawn", 4)})
    with pytest.raises(RefusedError, match="has 6 partitions, but had 4"):
        check_mark("events", then, Shape("drawn", 6), "rooms")


# --- a client that fails while topics are watched


@pytest.mark.parametrize("error", [RuntimeError("no"), ValueError("no"), BrokerError("no")])
def test_topics_are_watched_on_after_an_error_of_the_client(
    topics, group, admin, kafka_prefix, monkeypatch, error
):
    failures = fail_once(monkeypatch, error)
    with linked(topics, group) as link:
        wait_for(failures)
        delete(admin, kafka_prefix + "events")
        assert "was deleted" in str(polled_to_its_end(link))


def test_topics_that_cannot_be_watched_end_a_worker(topics, group, monkeypatch):
    with linked(topics, group) as link:
        fail_once(monkeypatch, KeyError("controller"))
        error = polled_to_its_end(link)
    assert type(error) is BrokerError
    assert "failed to describe topics: " in str(error)


def fail_once(monkeypatch, error):
    """Have the next look at the topics from another thread fail; return the failures."""
    shapes, failures, here = Administration.shapes, [], threading.current_thread()

    def failing(self, *names):
        if threading.current_thread() is not here and not failures:
            failures.append(error)
            raise error
        return shapes(self, *names)

    monkeypatch.setattr(Administration, "shapes", failing)
    return failures


def wait_for(failures, timeout_s=PATIENCE_S):
    until = time.monotonic() + timeout_s
    while not failures:
        assert time.monotonic() < until
        time.sleep(0.05)
