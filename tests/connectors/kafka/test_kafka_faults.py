"""Brokers go away, wires stall, processes are stopped: nothing is lost, nothing comes twice."""

import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from connectors.kafka import record_codec, worker_client
from connectors.kafka.admin import Administration
from connectors.kafka.client import Connection
from connectors.kafka.client_import import kafka_errors
from connectors.kafka.settings import Timeouts
from connectors.topics import AwayError, BrokerError, FencedError, RefusedError
from connectors.worker import logging as reports_module
from connectors.worker.logging import ProgressReports, WorkerLog
from tests.helpers.kafka_cases import (
    BUSY_S,
    PATIENCE_S,
    QUICK,
    Proxy,
    copy_all,
    error_of,
    eventually,
    linked,
    numbered,
    opened,
    out,
    poll,
    read,
    said,
    settle,
    watched,
    write,
)
from tests.kafka_hanging import end_hanging

COPIER = Path(__file__).parents[2] / "helpers" / "kafka_copier.py"
# The transaction, then the attempt to abort it, then the question who bears our name.
COMMIT_S = QUICK["transaction_s"] + 3 * QUICK["request_s"]
N = 1000
ALL = [b"%d" % i for i in range(N)]


# --- processes


def copier(servers, prefix, stop_at="nothing", times=1):
    path = os.pathsep.join([str(COPIER.parents[2]), *sys.path])
    return subprocess.Popen(
        [sys.executable, str(COPIER), servers, prefix, stop_at, str(times)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def stopped(process, timeout_s=PATIENCE_S):
    """Wait until a process has stopped itself."""
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        number, status = os.waitpid(process.pid, os.WNOHANG | os.WUNTRACED)
        if number and os.WIFSTOPPED(status):
            return
        assert not number, process.stdout.read()
        time.sleep(0.02)
    raise AssertionError("did not stop")


@pytest.mark.parametrize(
    "step",
    ["_await"]
    + [
        pytest.param(step, marks=pytest.mark.nightly)
        for step in ("put", "send_positions", "begin_commit")
    ],
)
def test_a_process_stopped_for_longer_than_its_transaction_may_last_loses_nothing(
    kafka, kafka_prefix, step
):
    with opened(kafka, kafka_prefix, partitions=1) as topics:
        write(topics, *numbered("events", N))
        process = copier(kafka, kafka_prefix, step)
        try:
            stopped(process)
            time.sleep(QUICK["transaction_s"] + 2.0)  # the broker looks for old ones every second
            process.send_signal(signal.SIGCONT)
            text, _ = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
        # Where the broker may not have heard of the transaction yet, it may just go on.
        may_go_on = step in ("put", "send_positions")
        assert process.returncode in ((0, 75) if may_go_on else (75,)), text
        assert run(kafka, kafka_prefix) == (0, "")
        assert read(topics, "predictions") == ALL


def run(servers, prefix):
    process = copier(servers, prefix)
    text, _ = process.communicate(timeout=PATIENCE_S)
    return process.returncode, text


def test_a_process_that_is_killed_in_its_transaction_loses_nothing(kafka, kafka_prefix):
    with opened(kafka, kafka_prefix, partitions=1) as topics:
        write(topics, *numbered("events", N))
        for step in ("send_positions", "_await", "begin_commit"):
            process = copier(kafka, kafka_prefix, step)
            stopped(process)
            process.kill()
            process.communicate()
        assert run(kafka, kafka_prefix) == (0, "")
        assert read(topics, "predictions") == ALL


def test_a_process_whose_name_another_has_taken_meanwhile_ends_with_a_code_of_its_own(
    kafka, kafka_prefix
):
    with opened(kafka, kafka_prefix, partitions=1) as topics:
        write(topics, *numbered("events", N))
        # Patient: it must hear from the broker, however busy the machine is.
        older = copier(kafka, kafka_prefix, "_await", times=6)
        try:
            stopped(older)
            assert run(kafka, kafka_prefix)[0] == 0
            with linked(topics, kafka_prefix + "g", "copier"):
                older.send_signal(signal.SIGCONT)
                text, _ = older.communicate(timeout=PATIENCE_S)
        finally:
            older.kill()
            older.wait()
            older.stdout.close()
        assert older.returncode == 76, text
        assert read(topics, "predictions") == ALL


# --- wires


@pytest.fixture(scope="module")
def mortal_and_proxy(broker_of_ones_own):
    """A broker that may be killed, and a proxy that has all the traffic of those who come to it."""
    proxy = Proxy()
    with broker_of_ones_own(apart=True, told=proxy.port) as broker:
        proxy.target = broker.hidden_port
        yield broker, proxy
        proxy.close()


@pytest.fixture
def proxied(mortal_and_proxy):
    yield mortal_and_proxy
    mortal_and_proxy[1].bytes_per_s = float("inf")
    mortal_and_proxy[1].go_on()


@pytest.fixture
def mortal(mortal_and_proxy):
    return mortal_and_proxy[0]


@pytest.mark.parametrize(
    "step",
    ["begin_commit"]
    + [pytest.param(step, marks=pytest.mark.nightly) for step in ("put", "send_positions")],
)
def test_a_wire_that_stalls_in_a_transaction_loses_nothing(
    proxied, kafka_prefix, step, monkeypatch
):
    broker, proxy = proxied
    group = kafka_prefix + "g"
    with (
        opened(broker.servers, kafka_prefix, partitions=1) as direct,
        opened(f"127.0.0.1:{proxy.port}", kafka_prefix, create=False, timeouts=QUICK) as topics,
    ):
        write(direct, *numbered("events", 200))
        link, records = client_at_work(topics, group)
        before = len(read(direct, "predictions"))
        stall_before(step, proxy, monkeypatch)
        start = time.monotonic()
        error, took_s = error_of(
            lambda: link.commit([out("predictions", r.value, 0, r.key) for r in records])
        )
        monkeypatch.undo()
        assert not isinstance(error, FencedError)
        assert "did not answer in time to commit a batch of 0 kB" in str(error)
        assert took_s < COMMIT_S + BUSY_S, error
        start = time.monotonic()
        link.close()
        assert time.monotonic() - start < QUICK["close_s"] + BUSY_S
        proxy.go_on()
        # What the wire held back arrives now; it may even be the commit.
        with linked(direct, group, "a") as again:
            done = len(read(direct, "predictions"))
            assert done in (before, before + len(records))
            copy_all(again, 200 - done)
        assert read(direct, "predictions") == [b"%d" % i for i in range(200)]


def client_at_work(topics, group):
    """Return a client that has committed a batch, and the records of its next one.

    This may take a busy broker more than one try.
    """
    until = time.monotonic() + PATIENCE_S
    while True:
        with ExitStack() as stack:
            try:
                link = topics.client(group=group, instance="a", max_records=10)
                stack.callback(link.close)
                settle(link)
                copy_all(link, 10)
                records = poll(link, 10)
                stack.pop_all()
                return link, records
            except BrokerError:
                assert time.monotonic() < until


def stall_before(step, proxy, monkeypatch):
    original = getattr(worker_client, step)

    def stalling(*arguments, **options):
        proxy.stall()
        return original(*arguments, **options)

    monkeypatch.setattr(worker_client, step, stalling)


def test_a_wire_that_stalls_for_a_moment_is_nothing(proxied, kafka_prefix):
    broker, proxy = proxied
    with (
        opened(broker.servers, kafka_prefix, partitions=1) as direct,
        opened(f"127.0.0.1:{proxy.port}", kafka_prefix, create=False) as topics,
        linked(topics, kafka_prefix + "g", max_records=10) as link,
    ):
        write(direct, *numbered("events", 30))
        for _ in range(3):
            proxy.stall()
            timer = threading.Timer(0.5, proxy.go_on)
            timer.start()
            copy_all(link, 10)
            timer.join()
        assert read(direct, "predictions") == [b"%d" % i for i in range(30)]


@pytest.mark.parametrize("step", ["send_positions", "begin_commit"])
def test_a_coordinator_that_refuses_connections_for_a_moment_is_nothing(
    kafka, kafka_prefix, step, monkeypatch
):
    """As in a cluster, when its broker goes down and another one becomes the coordinator."""

    def refused(producer, *arguments):
        manager = producer._sender._client._manager
        lost = kafka_errors.KafkaConnectionError("socket disconnected")
        for node, connection in list(manager._conns.items()):
            if str(node).startswith("coordinator"):
                manager.call_soon(connection.close, lost)
                manager.call_soon(manager.update_backoff, node)
        return original(producer, *arguments)

    original = getattr(worker_client, step)
    with (
        opened(kafka, kafka_prefix, partitions=1) as topics,
        linked(topics, kafka_prefix + "g", max_records=10) as link,
    ):
        write(topics, *numbered("events", 30))
        copy_all(link, 10)
        with monkeypatch.context() as patched:
            patched.setattr(worker_client, step, refused)
            copy_all(link, 10)
        copy_all(link, 10)
        assert read(topics, "predictions") == [b"%d" % i for i in range(30)]


def test_what_takes_too_long_on_a_slow_wire_is_asked_for_in_smaller_parts(proxied, kafka_prefix):
    """The same was asked for again and again, for ever; how the client is kept from it is ours."""
    broker, proxy = proxied
    with (
        opened(broker.servers, kafka_prefix, partitions=1) as direct,
        opened(f"127.0.0.1:{proxy.port}", kafka_prefix, create=False, timeouts=QUICK) as topics,
    ):
        for _ in range(16):  # not as one batch, which is a part of its own
            write(direct, *(out("events", b"x" * 1000) for _ in range(20)))
        # What is asked for at first, 256 KiB, comes too late for `request_s`.
        proxy.bytes_per_s = 150e3
        with linked(topics, kafka_prefix + "g", max_records=10) as link:
            assert len(poll(link, 10)) == 10


def test_a_writer_on_a_wire_that_stalls_says_so_in_time(proxied, kafka_prefix):
    broker, proxy = proxied
    with (
        opened(broker.servers, kafka_prefix),
        opened(f"127.0.0.1:{proxy.port}", kafka_prefix, create=False, timeouts=QUICK) as topics,
    ):
        writer = writer_at_work(topics)
        proxy.stall()
        writer.send(out("events", b"2"))
        error, took_s = error_of(writer.flush)
        assert type(error) is BrokerError
        assert took_s < QUICK["delivery_s"] + QUICK["request_s"] + BUSY_S
        start = time.monotonic()
        writer.close()
        assert time.monotonic() - start < QUICK["close_s"] + BUSY_S
        proxy.go_on()


def test_a_reader_that_owes_records_says_in_time_that_a_wire_stalls(proxied, kafka_prefix):
    """The client asks again and again, for ever, and every command that reads topics did."""
    broker, proxy = proxied
    with (
        opened(broker.servers, kafka_prefix) as direct,
        opened(f"127.0.0.1:{proxy.port}", kafka_prefix, create=False, timeouts=QUICK) as topics,
    ):
        write(direct, *numbered("events", 3))
        reader = topics.reader(["events"])

        def read_on():
            until = time.monotonic() + PATIENCE_S
            while not reader.caught_up and time.monotonic() < until:
                reader.poll(0.1)

        proxy.stall()
        error, took_s = error_of(read_on)
        reader.close()
        proxy.go_on()
        assert type(error) is AwayError
        assert str(error).endswith(f"{proxy.port}: connected, but no answer")
        assert took_s < 4 * QUICK["request_s"] + BUSY_S


def test_a_reader_says_that_the_broker_is_gone_and_reads_on_when_it_is_back(mortal, kafka_prefix):
    """The page showed what it had read for ever, with the status "ok" and without a word."""
    quick = QUICK | {"silent_s": 0.5}
    with (
        opened(mortal.servers, kafka_prefix) as patient,
        opened(mortal.servers, kafka_prefix, create=False, timeouts=quick) as topics,
    ):
        write(patient, *numbered("events", 3))
        reader = topics.reader(["events"])

        def read_for(seconds):
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                reader.poll(0.1)

        assert eventually(lambda: reader.poll(0.1) is None or reader.caught_up, True)
        read_for(1.5)  # it asks, and is answered
        mortal.stop()
        error, _ = error_of(lambda: read_for(PATIENCE_S))
        mortal.start()
        assert type(error) is AwayError
        assert str(error).endswith(f"{mortal.servers}: connection refused")
        write(patient, *numbered("events", 1))

        def next_one():
            with suppress(AwayError):
                return [record.offset for record in reader.poll(0.1)]

        assert eventually(next_one, [3]) == [3]


def writer_at_work(topics):
    """Return a writer after its first record, which may take a busy broker more than one try."""
    until = time.monotonic() + PATIENCE_S
    while True:
        writer = topics.writer("producer")
        writer.send(out("events", b"1"))
        try:
            writer.flush()
            return writer
        except BrokerError:
            writer.close()
            assert time.monotonic() < until


# --- brokers


def test_a_broker_that_is_not_there_is_named_in_time():
    with opened("127.0.0.1:9", "", create=False, timeouts={"connect_s": 1.0}) as topics:
        text = "broker cannot be reached: 127.0.0.1:9: connection refused"
        for use in (
            topics.problems,
            topics.create,
            topics.n_partitions,
            lambda: topics.reader(["events"]),
            lambda: topics.writer("producer"),
            lambda: topics.client(group="g", instance="a", max_records=1),
        ):
            error, took_s = error_of(use)
            assert str(error) == text
            assert took_s < 1.0 + BUSY_S


def test_a_request_keeps_its_time_when_connecting_took_long(monkeypatch):
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    allowed_s = []

    class Slow(Connection):
        def admin(self):
            clock.now += self.timeouts.connect_s
            return SimpleNamespace(describe_topics=lambda _: [])

    def within(timeout_s, _, call):
        allowed_s.append(timeout_s)
        return call()

    monkeypatch.setattr("connectors.kafka.admin.time", clock)
    monkeypatch.setattr("connectors.kafka.admin.within", within)
    connection = Slow("127.0.0.1:9", timeouts=Timeouts(connect_s=20.0))
    administration = Administration(connection, partitions=1, replication=1)
    assert set(administration.shapes().values()) == {None}
    assert allowed_s == [20.0]


class Admin:
    """An administrator's client that keeps the coordinators it has found, as the library's does."""

    def __init__(self, describe_groups, coordinators=()):
        self.describe_groups = describe_groups
        self.coordinators = dict(coordinators)
        cluster = SimpleNamespace(_coordinators=self.coordinators, request_update=lambda: None)
        self._manager = SimpleNamespace(cluster=cluster)


def test_a_broker_that_is_asked_in_vain_is_named(monkeypatch):
    asked = Admin(None)
    asked.describe_topics = lambda _: time.sleep(0.3)
    monkeypatch.setattr(Connection, "admin", lambda _: asked)
    connection = Connection("127.0.0.1:9", timeouts=Timeouts(connect_s=0.1))
    with pytest.raises(BrokerError) as caught:
        Administration(connection, partitions=1, replication=1).shapes()
    assert str(caught.value) == "broker 127.0.0.1:9 did not answer in time to describe topics"


def describing(monkeypatch, *codes):
    """Return an administration whose topics are described with these errors, the last one again."""
    client, left = Admin(None), list(codes)

    def describe_topics(names):
        code = left.pop(0) if len(left) > 1 else left[0]
        return [{"name": name, "error_code": code, "partitions": [{}]} for name in names]

    client.describe_topics = describe_topics
    client.describe_configs = lambda asked, **_: {"topic": {each.name: {} for each in asked}}
    monkeypatch.setattr(Connection, "admin", lambda _: client)
    monkeypatch.setattr("connectors.kafka.admin._AGAIN_S", 0.001)
    connection = Connection("127.0.0.1:9", timeouts=Timeouts(connect_s=0.1))
    return Administration(connection, partitions=1, replication=1)


def test_topics_that_cannot_be_described_for_a_moment_are_asked_for_again(monkeypatch):
    moment = kafka_errors.LeaderNotAvailableError.errno
    assert describing(monkeypatch, moment, moment, 0).problems() == []
    assert describing(monkeypatch, moment, 0).counts(["events"]) == {"events": 1}


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            kafka_errors.LeaderNotAvailableError,
            "no broker with a copy of one of the partitions is up; `streamgp check` says which is "
            r"down \(\[Error 5\] LeaderNotAvailableError: events\)",
        ),
        (kafka_errors.UnknownError, r"\[Error -1\] UnknownError: events"),
    ],
)
def test_an_error_of_a_topic_that_may_pass_is_no_problem_of_the_topics(monkeypatch, error, said):
    """For a problem a worker ends with a status after which it is not started again."""
    administration = describing(monkeypatch, error.errno)
    for ask in (administration.problems, administration.shapes, lambda: administration.counts([])):
        with pytest.raises(BrokerError, match=f"failed to describe topics: {said}$") as caught:
            ask()
        assert type(caught.value) is BrokerError


def test_topics_that_cannot_be_created_in_time_are_created_by_the_next_request(monkeypatch):
    administration = describing(monkeypatch, 3)  # they are missing
    client, late = administration.connection.admin(), kafka_errors.RequestTimedOutError.errno
    client.wait_for_topics = lambda _: None
    codes = iter([*(7 * [late]), *(3 * [kafka_errors.TopicAlreadyExistsError.errno]), 0, 0, 0, 0])

    def create_topics(new, **_):
        # An answer has the code of each topic; the first is late, but made three of them.
        return {
            "topics": [{"name": n, "error_code": next(codes), "error_message": ""} for n in new]
        }

    client.create_topics = create_topics
    assert len(administration.create()) == 4
    codes = iter(7 * [kafka_errors.UnknownError.errno])
    with pytest.raises(BrokerError, match="failed to create topics: ") as caught:
        administration.create()
    assert type(caught.value) is BrokerError


@pytest.mark.parametrize(
    ("kind", "n_errors"),
    [
        (kafka_errors.NotCoordinatorError, 1),
        (kafka_errors.CoordinatorLoadInProgressError, 3),
        (kafka_errors.KafkaConnectionError, 1),
    ],
)
def test_a_group_whose_coordinator_has_moved_has_its_members(monkeypatch, kind, n_errors):
    """The client tells the broker's errors by a text, beside an empty list of members."""
    member = {"group_instance_id": "a", "member_id": "a-1"}
    errors = [kind("moved")] * n_errors

    def describe_groups(_):
        if not errors:
            assert client.coordinators == {}
            return {"g": {"members": [member], "error": None}}
        error = errors.pop()
        if not isinstance(error, kafka_errors.BrokerResponseError):
            raise error
        return {"g": {"members": [], "error": str(error)}}

    client = Admin(describe_groups, coordinators={"g": 3})
    monkeypatch.setattr(Connection, "admin", lambda _: client)
    monkeypatch.setattr("connectors.kafka.admin._AGAIN_S", 0.001)
    administration = Administration(Connection("127.0.0.1:9"), partitions=1, replication=1)
    assert administration.members("g") == {"a": "a-1"}


def test_a_group_that_the_broker_does_not_describe_is_no_group_without_members(monkeypatch):
    errors = [kafka_errors.GroupIdNotFoundError(), kafka_errors.GroupAuthorizationFailedError()]
    answers = [{"g": {"members": [], "error": str(error)}} for error in errors]
    monkeypatch.setattr(Connection, "admin", lambda _: Admin(lambda _: answers.pop(0)))
    administration = Administration(Connection("127.0.0.1:9"), partitions=1, replication=1)
    assert administration.members("g") == {}  # it does not know any
    with pytest.raises(RefusedError, match="has no right to describe group g at "):
        administration.members("g")


def test_the_first_group_of_a_broker_may_take_longer_than_connecting(monkeypatch):
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)

    def sleep(seconds):
        clock.now += seconds

    def describe_groups(_):
        clock.now += 1.0
        if clock.now < ready_at:
            raise kafka_errors.CoordinatorNotAvailableError
        return {"g": {"members": [], "error": None}}

    class Fresh(Connection):
        def admin(self):
            return Admin(describe_groups)

    clock.sleep = sleep
    monkeypatch.setattr("connectors.kafka.admin.time", clock)
    monkeypatch.setattr("connectors.kafka.admin.within", lambda _timeout_s, _doing, call: call())
    connection = Fresh("127.0.0.1:9", timeouts=Timeouts(connect_s=10.0))
    administration = Administration(connection, partitions=1, replication=1)
    ready_at = 45.0
    assert administration.members("g") == {}
    ready_at = math.inf
    with pytest.raises(
        BrokerError,
        match=r"has no coordinator for the group \(.*CoordinatorNotAvailableError\); .* needs as "
        "many brokers as offsets.topic.replication.factor says$",
    ):
        administration.members("g")
    assert 100.0 < clock.now < 110.0


@pytest.mark.parametrize("n", [1, 3])
def test_records_that_the_broker_finds_misdated_are_put_down_to_the_clock(
    kafka, kafka_prefix, monkeypatch, n
):
    """The client raises one error for a single such record in a batch, and another for several."""
    monkeypatch.setattr(record_codec, "time", lambda: time.time() + 7200.0)
    with opened(kafka, kafka_prefix) as topics, linked(topics, kafka_prefix + "g") as link:
        error, _ = error_of(lambda: link.commit(numbered("predictions", n)))
    assert type(error) is BrokerError  # a clock may be set meanwhile: worth another start
    assert re.fullmatch(
        f"broker {kafka} refused to commit: the clock of this machine, which dates records, "
        r"differs too much from the broker's; set it \(.*Timestamp \d+ of message with offset "
        r"\d is out of range.*\)",
        str(error),
    )


def test_records_lost_with_a_connection_are_said_to_be_lacking():
    said = Connection("127.0.0.1:9").broker_error(
        kafka_errors.OutOfOrderSequenceNumberError(None), "commit"
    )
    assert str(said) == (
        "broker 127.0.0.1:9 refused to commit: it lacks records that were sent before, as after a "
        "connection that broke ([Error 45] OutOfOrderSequenceNumberError)"
    )


@pytest.mark.parametrize(
    "error",
    [
        kafka_errors.ProducerFencedError(),
        # Where the client has heard of it before the call.
        kafka_errors.KafkaError("Cannot execute it: [Error 90] ProducerFencedError"),
    ],
)
def test_a_program_whose_work_was_given_to_others_is_told_so(error):
    said = str(Connection("127.0.0.1:9").broker_error(error, "commit"))
    assert said.startswith("broker 127.0.0.1:9 refused to commit: this program was silent for too")


def test_a_server_that_is_never_ready_is_away_or_delays_this_client():
    error = kafka_errors.NodeNotReadyError("Node paused: {'throttle'}")
    said = Connection("127.0.0.1:9").broker_error(error, "describe topics")
    assert str(said) == (
        "broker 127.0.0.1:9 did not answer in time to describe topics: it is away, or a quota "
        "(request_percentage) delays this client (NodeNotReadyError: Node paused: {'throttle'})"
    )


def test_a_topic_that_was_deleted_meanwhile_is_said_to_be_missing():
    error = kafka_errors.UnknownTopicOrPartitionError("rooms.state")
    said = Connection("127.0.0.1:9").broker_error(error, "tell where topics end")
    assert str(said) == (
        "broker 127.0.0.1:9 failed to tell where topics end: a topic is missing, or was deleted "
        "meanwhile; `streamgp check` says which ([Error 3] UnknownTopicOrPartitionError: "
        "rooms.state)"
    )


def test_limits_of_the_broker_that_no_session_keeps_are_named():
    error = kafka_errors.InvalidSessionTimeoutError()
    said = Connection("127.0.0.1:9").broker_error(error, "read")
    assert isinstance(said, RefusedError)  # to start again would not help
    assert str(said) == (
        "broker 127.0.0.1:9 refuses workers whose session lasts 10 s; it must lie between its "
        "group.min.session.timeout.ms and group.max.session.timeout.ms"
    )


def test_a_host_that_does_not_exist_is_named():
    with opened("no-such-host.invalid", "", create=False, timeouts={"connect_s": 0.3}) as topics:
        error, _ = error_of(topics.problems)
        assert str(error) == (
            "broker cannot be reached: no-such-host.invalid:9092: there is no such host"
        )


@pytest.mark.parametrize("how", [pytest.param("stop", marks=pytest.mark.nightly), "kill"])
def test_work_goes_on_after_the_broker_was_away(mortal, kafka_prefix, how):
    group = kafka_prefix + "g"
    with (
        opened(mortal.servers, kafka_prefix, partitions=1) as patient,
        opened(mortal.servers, kafka_prefix, create=False, timeouts=QUICK) as topics,
    ):
        write(patient, *numbered("events", N))
        workers = Supervised(topics, group, 2 * N)
        workers.start()
        assert workers.reached(N // 4)
        getattr(mortal, how)()
        mortal.start()
        write(patient, *numbered("events", N, start=N))
        if not workers.reached(2 * N) and (ended := end_hanging(mortal.servers)):
            pytest.skip(f"the broker has lost track of a transaction while it went down: {ended}")
        assert workers.reached(2 * N)
        workers.join(PATIENCE_S)
        assert read(patient, "predictions") == [b"%d" % i for i in range(2 * N)]
    assert not [error for error in workers.errors if isinstance(error, FencedError)]


class Supervised(threading.Thread):
    """Workers one after another: whenever the link of one fails, the next begins."""

    def __init__(self, topics, group, n_events):
        super().__init__(daemon=True)
        self.topics, self.group, self.n_events = topics, group, n_events
        self.n_done = 0
        self.errors = []

    def run(self):
        until = time.monotonic() + 90.0
        while self.n_done < self.n_events and time.monotonic() < until:
            link = None
            try:
                link = self.topics.client(group=self.group, instance="a", max_records=50)
                while self.n_done < self.n_events:
                    records = link.poll(0.2)
                    link.commit([out("predictions", r.value, r.partition, r.key) for r in records])
                    if records:
                        self.n_done = int(records[-1].value) + 1
            except BrokerError as error:
                self.errors.append(error)
            finally:
                if link is not None:
                    link.close()

    def reached(self, n, timeout_s=90.0):
        until = time.monotonic() + timeout_s
        while self.n_done < n and time.monotonic() < until and self.is_alive():
            time.sleep(0.02)
        return self.n_done >= n


def test_without_a_broker_a_commit_fails_and_a_link_closes_in_time(mortal, kafka_prefix):
    with (
        opened(mortal.servers, kafka_prefix, partitions=1) as patient,
        opened(mortal.servers, kafka_prefix, create=False, timeouts=QUICK) as topics,
    ):
        write(patient, *numbered("events", 100))
        link, _ = client_at_work(topics, kafka_prefix + "g")
        done = len(read(patient, "predictions"))
        mortal.kill()
        try:
            while link.poll(0.3):
                pass  # what was fetched before
            error, took_s = error_of(lambda: link.commit([out("predictions", b"x")]))
            assert type(error) is BrokerError
            assert took_s < COMMIT_S + BUSY_S
            start = time.monotonic()
            link.close()
            assert time.monotonic() - start < QUICK["close_s"] + BUSY_S
        finally:
            mortal.start()
        with linked(patient, kafka_prefix + "g") as again:
            copy_all(again, 100 - done)
        assert read(patient, "predictions") == [b"%d" % i for i in range(100)]


def test_a_broker_that_is_away_from_an_idle_worker_is_reported_and_that_it_is_back(
    mortal, kafka_prefix, monkeypatch, caplog
):
    caplog.set_level("INFO", logger="streamgp.worker")
    monkeypatch.setattr(reports_module, "_LOOK_EVERY_S", 0.1)
    monkeypatch.setattr(reports_module, "STALL_S", 2.0)
    with (
        opened(mortal.servers, kafka_prefix, timeouts=QUICK | {"look_s": 0.2}) as topics,
        linked(topics, kafka_prefix + "g") as link,
    ):
        reports = ProgressReports(link, WorkerLog(None), {}.get)
        write(topics, *numbered("events", 2))
        copy_all(link, 2)
        assert link.silence() is None
        mortal.stop()
        watched(link, reports, lambda: said(caplog, "broker-away"))
        [away] = said(caplog, "broker-away")
        assert away["away_s"] >= 2
        assert away["reason"] == f"broker cannot be reached: {mortal.servers}: connection refused"
        mortal.start()
        watched(link, reports, lambda: said(caplog, "broker-back"))
        write(topics, *numbered("events", 2, start=2))
        copy_all(link, 2)
