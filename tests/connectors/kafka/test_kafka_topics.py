"""Topics on a real broker: made, looked at, counted."""

import threading
from contextlib import contextmanager

import pytest

from connectors.kafka import topics as kafka_topics
from connectors.kafka.admin import wanted
from connectors.kafka.client_import import (
    OffsetAndMetadata,
    TopicPartition,
    committed,
    kafka_errors,
    servers_of,
)
from connectors.kafka.topics import KafkaTopics
from connectors.topics import ALL_TOPICS, WORKER_INPUTS, BrokerError
from tests.helpers.kafka_cases import (
    PATIENCE_S,
    copy_all,
    error_of,
    eventually,
    linked,
    numbered,
    open_transaction,
    opened,
    out,
    poll,
    write,
)


def make(servers, prefix, **settings):
    """Make topics by other hands, each with its partitions and settings."""
    from kafka.admin import KafkaAdminClient

    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.create_topics(
        {
            prefix + name.replace("_", "-"): {"num_partitions": n, "configs": dict(configs)}
            for name, (n, configs) in settings.items()
        },
        wait_for_metadata=True,
    )
    admin.close()


def test_topics_are_made_once_and_have_nothing_wrong_with_them_then(kafka, kafka_prefix):
    with opened(kafka, kafka_prefix, partitions=3, create=False) as topics:
        assert topics.problems() == [
            f"topics {', '.join(kafka_prefix + name for name in ALL_TOPICS)} are missing; "
            "--create-topics makes them"
        ]
        assert topics.create() == [
            f"created topic {kafka_prefix}{name} with 3 partitions" for name in ALL_TOPICS
        ]
        assert topics.create() == []
        assert topics.problems() == topics.warnings() == []
        assert topics.n_partitions() == 3


def test_a_group_that_two_deployments_share_is_noticed(kafka, kafka_prefix):
    """Workers of both fence each other where they bear one name, whatever topics they read."""
    group, other = f"{kafka_prefix}group", f"{kafka_prefix}other-"
    with (
        opened(kafka, kafka_prefix) as topics,
        opened(kafka, other) as others,
        linked(others, group),
    ):
        assert topics.read_besides(group) == [f"{other}{n}" for n in sorted(WORKER_INPUTS)]
        assert others.read_besides(group) == []


@contextmanager
def reading(servers, group, topic, **options):
    """Let a program that is no worker read a topic as a member of a group."""
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(topic, bootstrap_servers=servers, group_id=group, **options)
    stop = threading.Event()
    thread = threading.Thread(target=lambda: [consumer.poll(50) for _ in iter(stop.is_set, True)])
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        consumer.close()


def test_a_program_that_takes_inputs_from_the_workers_is_named_as_the_cause(kafka, kafka_prefix):
    group, events = f"{kafka_prefix}group", f"{kafka_prefix}events"
    with opened(kafka, kafka_prefix) as topics, linked(topics, group) as link:
        assert topics.read_besides(group) == []
        with reading(kafka, group, events):
            error, _ = error_of(lambda: poll(link, 1))
            assert "; a program that is no worker is in the group: give it one" in str(error)
            assert eventually(lambda: topics.read_besides(group), [events]) == [events]


def test_a_program_with_another_way_to_share_keeps_workers_out_and_is_named(kafka, kafka_prefix):
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

    group, requests = f"{kafka_prefix}group", f"{kafka_prefix}requests"
    ways = {"partition_assignment_strategy": [RoundRobinPartitionAssignor]}  # as KafkaJS does
    with opened(kafka, kafka_prefix) as topics, reading(kafka, group, requests, **ways):
        assert eventually(lambda: topics.read_besides(group), [requests]) == [requests]
        error, _ = error_of(lambda: linked(topics, group).__enter__())
        assert "a program that is no worker is in the group; give it one of its own" in str(error)


def test_coordinators_that_are_gone_are_looked_for_again(kafka, kafka_prefix):
    group = f"{kafka_prefix}group"
    with opened(kafka, kafka_prefix) as topics, linked(topics, group):
        assert topics.n_members(group) == 1
        found = topics._administration._client._manager.cluster._coordinators
        assert found
        found.update(dict.fromkeys(found, 77))  # a server of the cluster that has left it
        assert topics.n_members(group) == 1
        assert 77 not in found.values()


def test_servers_that_came_up_since_are_found(kafka, kafka_prefix):
    """A client that knows only the one that came up first would not ask for others for minutes."""
    with opened(kafka, kafka_prefix) as topics:
        expected = topics.lags("nobody")
        manager = topics._administration._client._manager
        cluster = manager.cluster
        ((number, server),) = cluster._brokers.items()
        cluster._brokers = {77: type(server)(77, server.host, server.port, None)}
        cluster._coordinator_brokers.clear()
        manager.run(manager.close, number)
        assert topics.lags("nobody") == expected
        assert number in cluster._brokers


def test_a_client_that_is_closed_while_it_is_asked_fails_in_words(kafka, kafka_prefix):
    """As when a program ends while one of its threads looks how far the workers are."""
    with opened(kafka, kafka_prefix) as topics:
        administration = topics._administration

        def closed_meanwhile(client):
            administration.close()
            return client.describe_topics([])

        with pytest.raises(BrokerError, match="failed to describe topics"):
            administration._ask("describe topics", closed_meanwhile)


def test_only_what_is_missing_is_made(kafka, kafka_prefix):
    make(kafka, kafka_prefix, events=(2, {}), answers=(2, {}))
    with opened(kafka, kafka_prefix, create=False) as topics:
        assert len(topics.create()) == len(ALL_TOPICS) - 2
        assert topics.problems() == []


def test_what_is_missing_gets_as_many_partitions_as_the_others(kafka, kafka_prefix):
    make(kafka, kafka_prefix, events=(3, {}), answers=(3, {}))
    with opened(kafka, kafka_prefix, create=False, partitions=2) as topics:
        assert f"created topic {kafka_prefix}state with 3 partitions" in topics.create()
        assert topics.problems() == []


def test_settings_of_topics_are_those_that_a_worker_needs(kafka, kafka_prefix):
    with opened(kafka, kafka_prefix) as topics:
        found = topics._administration._settings(ALL_TOPICS)
    deletes = {"cleanup.policy": "delete", "delete.retention.ms": "86400000"}
    compacts = {"cleanup.policy": "compact", "delete.retention.ms": "604800000"}
    small, large = {"max.message.bytes": "1048588"}, {"max.message.bytes": "16842752"}
    by_sender, by_broker = (
        {
            "message.timestamp.type": each,
            "min.insync.replicas": "1",
            "retention.ms": "604800000",
        }
        for each in ("CreateTime", "LogAppendTime")
    )
    assert found == {
        "events": deletes | small | by_sender,
        "answers": deletes | small | by_broker,
        "predictions": deletes | large | by_sender,
        "requests": deletes | large | by_sender,
        "consensus": compacts | large | by_sender,
        "state": compacts | large | by_sender,
        "dead-letters": deletes | large | by_sender,
    }


def test_compacted_topics_are_compacted_within_a_day_however_little_is_written(
    kafka, kafka_prefix, monkeypatch
):
    names = ("segment.bytes", "max.compaction.lag.ms")
    monkeypatch.setattr("connectors.kafka.admin.CHECKED", names)
    with opened(kafka, kafka_prefix) as topics:
        found = topics._administration._settings(ALL_TOPICS)
    for name in ALL_TOPICS:
        is_own = found[name] == dict(zip(names, ("67108864", "86400000"), strict=True))
        assert is_own == (name in ("consensus", "state"))


def test_topics_with_different_numbers_of_partitions_are_a_problem(kafka, kafka_prefix):
    make(kafka, kafka_prefix, answers=(3, {}), events=(2, {}))
    with opened(kafka, kafka_prefix) as topics:
        others = ", ".join(
            f"{kafka_prefix}{name} {3 if name == 'answers' else 2}" for name in ALL_TOPICS
        )
        assert topics.problems() == [
            f"topics must have the same number of partitions, found {others}; before anything is "
            "learned, give all of them as many, after that make seven new ones ([topics] prefix), "
            "as keys have moved, and move there what was learned by streamgp backup and restore"
        ]
        with pytest.raises(BrokerError, match=r"^inputs must have the same partitions, found .*"):
            topics.client(group=kafka_prefix + "g", instance="a", max_records=1)


def test_settings_that_lose_something_are_a_problem(kafka, kafka_prefix):
    make(
        kafka,
        kafka_prefix,
        state=(2, {"max.message.bytes": "16842752"}),
        consensus=(2, {"cleanup.policy": "compact", "delete.retention.ms": "1000"}),
        events=(2, {"cleanup.policy": "compact"}),
        dead_letters=(2, {}),
    )
    with opened(kafka, kafka_prefix) as topics:
        assert topics.problems() == [
            f"topic {kafka_prefix}{line}"
            for line in (
                "events has cleanup.policy=compact, expected delete",
                "consensus has delete.retention.ms=1000, expected at least 86400000",
                "consensus has max.message.bytes=1048588, expected at least 5242940 for inputs of "
                "the size that events and answers may have",
                "state has cleanup.policy=delete, expected compact",
                "dead-letters has max.message.bytes=1048588, expected at least 5242940 for inputs "
                "of the size that events and answers may have",
            )
        ]


def test_inputs_larger_than_a_dead_letter_or_dated_ahead_cause_warnings(kafka, kafka_prefix):
    large = {"max.message.bytes": "16842753"}
    make(kafka, kafka_prefix, events=(2, large), answers=(2, {"max.message.bytes": "16842752"}))
    with opened(kafka, kafka_prefix) as topics:
        assert topics.problems() == []
        assert topics.warnings() == [
            f"topic {kafka_prefix}events has max.message.bytes=16842753, but workers write at most "
            "16842752: of a larger record a dead letter has only the beginning",
            f"topic {kafka_prefix}answers has message.timestamp.type=CreateTime, expected "
            "LogAppendTime: its senders may date answers ahead",
        ]


def test_topics_with_too_few_copies_cause_warnings(kafka, kafka_prefix):
    make(kafka, kafka_prefix, state=(2, wanted("state") | {"min.insync.replicas": "2"}))
    with opened(kafka, kafka_prefix) as topics:
        assert topics.problems() == []
        assert topics.warnings() == [
            f"topic {kafka_prefix}state has partitions with 1 of 1 copies in sync, but "
            "min.insync.replicas=2: brokers may take no records for them until more are in sync "
            "(from Kafka 3.7 on they do if there are no more copies)"
        ]


def test_a_broker_that_sends_clients_where_none_answers_causes_a_warning(
    kafka, kafka_prefix, monkeypatch
):
    with opened(kafka, kafka_prefix) as topics:
        found = servers_of(topics._administration._client)
        assert [f"{host}:{port}" for host, port in found] == [kafka]
        found.append(("no-such-host.invalid", 9092))
        monkeypatch.setattr("connectors.kafka.admin.servers_of", lambda _: found)
        assert topics.warnings() == [
            "a broker of the cluster cannot be reached: it sends clients to "
            "no-such-host.invalid:9092 (there is no such host); correct its advertised.listeners "
            "if it is up"
        ]


def test_a_broker_that_is_down_or_behind_causes_a_warning(kafka, kafka_prefix, monkeypatch):
    """As between the steps of a rolling restart, when another one would stop the workers."""
    with opened(kafka, kafka_prefix) as topics:
        described = topics._administration._describe()
        described["events"]["partitions"][0]["replica_nodes"].append(7)
        monkeypatch.setattr(topics._administration, "_describe", lambda: described)
        assert topics.warnings() == [
            "copies are not in sync on broker 7, which is down or has not caught up: restart no "
            "other broker before it has"
        ]


def test_a_topic_that_cannot_be_made_is_named(kafka, kafka_prefix):
    with (
        opened(kafka, kafka_prefix, create=False, replication=3) as topics,
        pytest.raises(
            BrokerError, match=rf"^topic {kafka_prefix}events cannot be created: .*[Rr]eplicat"
        ),
    ):
        topics.create()


def test_without_its_topics_nothing_is_read_and_no_annotator_counts(kafka, kafka_prefix):
    missing = rf"^topic {kafka_prefix}%s is missing; --create-topics makes it$"
    with opened(kafka, kafka_prefix, create=False) as topics:
        with pytest.raises(BrokerError, match=missing % "events"):
            topics.n_partitions()
        with pytest.raises(BrokerError, match=missing % "answers"):
            topics.lags("unknown")
        with pytest.raises(BrokerError, match=missing % "state"):
            topics.reader(["state"])
        with pytest.raises(BrokerError, match=f"^topics {kafka_prefix}events, .* are missing"):
            topics.client(group="g", instance="a", max_records=1)


def test_a_group_reads_on_where_it_is_put(kafka, kafka_prefix):
    group = f"{kafka_prefix}moved"
    with opened(kafka, kafka_prefix, partitions=2) as topics:
        assert topics.positions(group, ("state",)) == {}
        topics.set_positions(group, {("events", 1): 7, ("state", 0): 3})
        assert topics.positions(group) == {("events", 1): 7}
        assert topics.positions(group, ("state",)) == {("state", 0): 3}
        topics.set_positions(group, {("events", 1): 0})
        wrong = pytest.raises(BrokerError, match="set the positions of group")
        with linked(topics, group=group), wrong:
            topics.set_positions(group, {("events", 1): 0})


def test_lags_are_what_a_group_has_not_worked_off(kafka, kafka_prefix):
    group = kafka_prefix + "g"
    with opened(kafka, kafka_prefix) as topics:
        write(topics, *numbered("events", 5, 0), *numbered("answers", 2, 1))
        assert topics.lags(group) == {
            ("answers", 0): 0, ("answers", 1): 2, ("consensus", 0): 0, ("consensus", 1): 0,
            ("events", 0): 5, ("events", 1): 0,
        }  # fmt: skip
        assert topics.n_members(group) == 0
        with linked(topics, group) as link:
            copy_all(link, 7)
            assert topics.n_members(group) == 1
            write(topics, out("events", b"x", 1))
            places = [("events", 0), ("events", 1), ("answers", 1)]
            assert eventually(lambda: [topics.lags(group)[p] for p in places], [0, 1, 0]) == [
                0,
                1,
                0,
            ]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"names": {"events": "a b"}}, "topic must have 1 to 249 of the characters"),
        ({"names": {"events": "x", "answers": "x"}}, "must have different names, got 'x' twice"),
        ({"partitions": 0}, "partitions must be a whole number of at least 1, got 0"),
        ({"replication": 0}, "replication must be at least 1, or -1 for the broker's, got 0"),
        ({"servers": "a:b"}, "server must be host:port, got 'a:b'"),
    ],
)
def test_topics_that_cannot_be_are_refused_before_anything_is_connected(settings, text):
    with pytest.raises(ValueError, match=text):
        KafkaTopics(**({"servers": "nowhere"} | settings))


@pytest.mark.parametrize("name", ["partitions", "replication"])
@pytest.mark.parametrize("value", ["many", None])
def test_words_in_the_place_of_numbers_of_topics_are_refused(name, value):
    with pytest.raises(
        TypeError, match=f"^{name} must be (a whole number of )?at least 1.*, got {value!r}"
    ):
        KafkaTopics("nowhere", **{name: value})


@pytest.mark.parametrize("what", ["group", "instance"])
def test_names_of_groups_and_workers_are_those_that_kafka_allows(what):
    topics = KafkaTopics("nowhere")
    with pytest.raises(ValueError, match=f"^{what} must have 1 to 249 of the characters"):
        topics.client(**({"group": "g", "instance": "a", "max_records": 1} | {what: "a b"}))


def test_a_partition_that_never_stands_still_is_named(kafka, kafka_prefix, monkeypatch):
    monkeypatch.setattr(kafka_topics, "_still", lambda *_: None)
    with opened(kafka, kafka_prefix) as topics:
        wanted = [topics._administration, "group"]
        with pytest.raises(BrokerError, match="partition 0 has not stood still for a moment"):
            kafka_topics.checkpoint(*wanted, patience_s=0.0)


def test_a_partition_in_which_a_transaction_is_open_does_not_stand_still(kafka, kafka_prefix):
    with opened(kafka, kafka_prefix) as topics:
        ask = [topics._administration, "group"]
        assert kafka_topics.checkpoint(*ask, patience_s=PATIENCE_S).ends["state", 0] == 0
        with (
            open_transaction(kafka, kafka_prefix + "open", kafka_prefix + "state"),
            pytest.raises(BrokerError, match="partition 0 has not stood still"),
        ):
            kafka_topics.checkpoint(*ask, patience_s=1.0)


def test_a_broker_that_is_far_away_has_time_to_tell_where_a_group_is(
    kafka, kafka_prefix, monkeypatch
):
    """With .1 s each way, only what came just in time was heard: a backup took 40 s."""

    def later(consumer, partitions, timeout_ms):
        if timeout_ms < 1000.0:
            raise kafka_errors.KafkaTimeoutError
        return committed(consumer, partitions, timeout_ms)

    monkeypatch.setattr(kafka_topics, "committed", later)
    with opened(kafka, kafka_prefix) as topics:
        assert topics.checkpoint("group").ends["state", 0] == 0


def test_an_answer_that_came_too_late_is_not_taken_for_that_to_a_later_question(
    kafka, kafka_prefix
):
    """A backup under load took positions of long ago for those of now, and lost events."""
    with opened(kafka, kafka_prefix) as topics:
        place = TopicPartition(topics.names()["events"], 0)
        consumer = topics._connection.consumer(group_id=kafka_prefix + "group")
        consumer.assign([place])
        consumer.commit({place: OffsetAndMetadata(1, "", -1)})
        with pytest.raises(kafka_errors.KafkaTimeoutError):
            committed(consumer, [place], 0)
        consumer.commit({place: OffsetAndMetadata(2, "", -1)})
        assert committed(consumer, [place], round(1e3 * PATIENCE_S))[place].offset == 2
        consumer.close(autocommit=False)
