"""Open transactions of other programs: found out, named, and told when they are over."""

import time
from types import SimpleNamespace

import pytest

import connectors.kafka.worker_client as link_module
from connectors.kafka.admin import open_transactions
from connectors.kafka.client_import import TopicPartition, kafka_errors
from connectors.topics import Obstacle
from connectors.worker import logging as reports_module
from connectors.worker.logging import ProgressReports, WorkerLog
from tests.helpers.kafka_cases import (
    PATIENT,
    copy_all,
    linked,
    numbered,
    open_transaction,
    opened,
    poll,
    said,
    watched,
    write,
)


@pytest.fixture
def topics(kafka, kafka_prefix):
    with opened(kafka, kafka_prefix, timeouts=PATIENT) as made:
        yield made


@pytest.fixture
def group(kafka_prefix):
    return kafka_prefix + "group"


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(link_module, "STALL_S", 2.0)
    monkeypatch.setattr(link_module, "_TRACK_EVERY_S", 0.1)
    monkeypatch.setattr(reports_module, "_LOOK_EVERY_S", 0.1)


def test_an_open_transaction_is_a_warning_that_names_it_and_its_end_is_reported(
    topics, group, kafka, kafka_prefix, caplog
):
    caplog.set_level("INFO", logger="streamgp.worker")
    events, producer = kafka_prefix + "events", kafka_prefix + "producer"
    write(topics, *numbered("events", 4), *numbered("events", 3, partition=1))
    with linked(topics, group) as link:
        reports = ProgressReports(link, WorkerLog(None), {}.get)
        copy_all(link, 7)
        with open_transaction(kafka, producer, events):
            write(topics, *numbered("events", 5, start=10))
            watched(link, reports, lambda: said(caplog, "stuck"))
            [stuck] = said(caplog, "stuck")
            assert (stuck["topic"], stuck["partition"], stuck["offset"]) == (events, 0, 4)
            assert stuck["waiting"] == 6
            assert stuck["still_s"] >= 2
            assert (
                f"open transaction of transactional id '{producer}' (producer " in stuck["reason"]
            )
            assert " since 20" in stuck["reason"]
            assert stuck["reason"].endswith("holds back everything from offset 4 on")
            watched(link, reports, lambda: True)
            assert len(said(caplog, "stuck")) == 1
        records = poll(link, 5)
        assert [r.value for r in records] == [b"%d" % i for i in range(10, 15)]
        watched(link, reports, lambda: said(caplog, "progressing"))
    assert said(caplog, "progressing") == [{"topic": events, "partition": 0}]


def test_a_stall_is_reported_again_now_and_then(
    topics, group, kafka, kafka_prefix, caplog, monkeypatch
):
    monkeypatch.setattr(reports_module, "REPEAT_S", 1.0)
    with (
        linked(topics, group) as link,
        open_transaction(kafka, kafka_prefix + "producer", kafka_prefix + "answers"),
    ):
        reports = ProgressReports(link, WorkerLog(None), {}.get)
        watched(link, reports, lambda: len(said(caplog, "stuck")) >= 2)


def test_a_partition_that_waits_for_a_slow_worker_is_not_stuck(topics, group, caplog):
    write(topics, *numbered("events", 30))
    with linked(topics, group, max_records=1) as link:
        reports = ProgressReports(link, WorkerLog(None), {}.get)
        until = time.monotonic() + 4.0
        while time.monotonic() < until:
            link.poll(0.1)
            link.commit([])
            reports.look()
            time.sleep(0.2)
    assert said(caplog, "stuck") == []


def test_an_idle_worker_is_not_stuck_behind_what_was_aborted(
    topics, group, kafka, kafka_prefix, caplog
):
    with linked(topics, group) as link:
        reports = ProgressReports(link, WorkerLog(None), {}.get)
        with open_transaction(kafka, kafka_prefix + "producer", kafka_prefix + "events"):
            pass
        until = time.monotonic() + 4.0
        watched(link, reports, lambda: time.monotonic() > until)
    assert said(caplog, "stuck") == []


def test_obstacles_are_those_of_partitions_that_are_held_back(topics, kafka, kafka_prefix):
    assert topics.obstacles([("events", 0), ("events", 1)]) == {}
    with open_transaction(kafka, kafka_prefix + "producer", kafka_prefix + "events", partition=1):
        [(place, obstacle)] = topics.obstacles([("events", 0), ("events", 1)]).items()
    assert place == ("events", 1)
    assert obstacle.offset == 0
    assert time.time() - 30.0 < obstacle.since < time.time() + 1.0


def test_a_broker_that_cannot_be_asked_about_transactions_is_not_said_to_know_none():
    partition = TopicPartition("events", 0)
    active = SimpleNamespace(producer_id=7, current_transaction_start_offset=4)

    def list_partition_offsets(_, isolation_level=None):
        return {partition: SimpleNamespace(offset=9 if isolation_level is None else 4)}

    def list_transactions(**_):
        raise kafka_errors.IncompatibleBrokerVersion  # before Kafka 3.0

    client = SimpleNamespace(
        list_partition_offsets=list_partition_offsets,
        describe_producers=lambda _: {partition: SimpleNamespace(active_producers=[active])},
        list_transactions=list_transactions,
    )
    text = "an open transaction of producer 7 holds back everything from offset 4 on"
    assert open_transactions(client, [partition]) == {
        partition: Obstacle(offset=4, since=None, text=text)
    }
