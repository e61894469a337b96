"""The first contact with a broker: on a clock that is set, and with one that is played."""

import socket
import struct
import threading
import time
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import pytest

from connectors.kafka import client
from connectors.kafka.client_import import fit_fetches, kafka_errors
from connectors.topics import BrokerError, RefusedError
from tests.helpers.kafka_cases import PATIENCE_S


@pytest.fixture
def tried(monkeypatch):
    """Return a function that probes a server which takes some time to show what it wants."""

    def tried(takes_s, timeout_s):
        now, waits = 100.0, []

        def pass_by(seconds):
            nonlocal now
            now += seconds

        def try_server(_server, _context, _login, wait_s):
            waits.append(wait_s)
            pass_by(min(takes_s, wait_s))
            return "it wants TLS" if takes_s <= wait_s else "no answer"

        monkeypatch.setattr(client, "_try_server", try_server)
        clock = SimpleNamespace(monotonic=lambda: now, sleep=pass_by)
        monkeypatch.setattr(client, "time", clock)
        with pytest.raises(BrokerError) as caught:
            client.probe(["there:1"], context=None, login=None, until=100.0 + timeout_s)
        return str(caught.value), len(waits), now - 100.0

    return tried


def test_what_a_server_has_shown_is_told_though_there_is_time_for_half_a_try(tried):
    text, n_tries, took_s = tried(takes_s=0.75, timeout_s=1.5)
    assert text == "broker cannot be reached: there:1: it wants TLS"
    assert (n_tries, took_s) == (1, 0.75)


def test_a_server_is_tried_again_and_again_until_the_time_is_over(tried):
    text, n_tries, took_s = tried(takes_s=0.0, timeout_s=1.9)
    assert text == "broker cannot be reached: there:1: it wants TLS"
    assert n_tries == 10
    assert 1.7 < took_s < 1.9


def test_a_server_that_shows_nothing_gives_no_answer(tried):
    assert tried(takes_s=60.0, timeout_s=1.0) == (
        "broker cannot be reached: there:1: no answer",
        1,
        1.0,
    )


@contextmanager
def server(*addresses, metadata=12):
    """Play a broker: it supports a version of metadata, and names the addresses of its cluster."""
    listening = socket.create_server(("127.0.0.1", 0))
    own = f"127.0.0.1:{listening.getsockname()[1]}"
    brokers = b""
    for number, address in enumerate(addresses or [own]):
        host, _, port = address.rpartition(":")
        brokers += struct.pack(f">ih{len(host)}si", number, len(host), host.encode(), int(port))
        brokers += struct.pack(">h", -1)  # no rack
    answers = {
        18: struct.pack(">hi6h", 0, 2, 3, 0, metadata, 18, 0, 3),
        3: struct.pack(">ii", 0, len(addresses or [own])) + brokers + struct.pack(">hii", -1, 0, 0),
    }

    def answer():
        while True:
            connection, _ = listening.accept()
            with connection, suppress(struct.error, ConnectionError):
                while True:
                    (size,) = struct.unpack(">i", connection.recv(4))
                    kind, _, number = struct.unpack_from(">hhi", connection.recv(size))
                    said = struct.pack(">i", number) + answers[kind]
                    connection.sendall(struct.pack(">i", len(said)) + said)

    def answer_until_closed():
        with suppress(OSError):
            answer()

    thread = threading.Thread(target=answer_until_closed)
    thread.start()
    try:
        yield own
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


@pytest.fixture
def probe(monkeypatch):
    """Return a function that tries a server once, and waits for it on a busy machine, too."""
    monkeypatch.setattr(client, "_ONE_TRY_S", PATIENCE_S)
    monkeypatch.setattr(client, "_AGAIN_S", PATIENCE_S)

    def probe(server):
        until = time.monotonic() + PATIENCE_S
        client.probe([server], context=None, login=None, until=until)

    return probe


def test_a_server_that_sends_clients_to_itself_or_to_one_that_answers_is_enough(probe):
    with server() as one, server("no-such-host.invalid:9092", one) as other:
        probe(one)
        probe(other)


def test_a_server_that_sends_clients_where_none_answers_is_told_what_to_correct(probe):
    with server("no-such-host.invalid:9092", "no..host:9092", "127.0.0.1:9") as one:
        with pytest.raises(BrokerError) as caught:
            probe(one)
        assert type(caught.value) is BrokerError  # it may be the others that are starting
        assert str(caught.value) == (
            f"broker cannot be reached: {one}: it sends clients to no-such-host.invalid:9092 "
            "(there is no such host), no..host:9092 (there is no such host), 127.0.0.1:9 "
            "(connection refused); correct its advertised.listeners"
        )


def test_a_server_that_is_too_old_is_refused_whoever_sends_clients_to_it(probe):
    text = (
        "supports less than Apache Kafka 2.8, the oldest version that streamgp works with: it "
        "cannot tell a topic from a deleted one of the same name"
    )
    with server(metadata=9) as old, server(old) as new:
        with pytest.raises(RefusedError) as caught:
            probe(old)
        assert str(caught.value) == f"broker {old} {text}"
        with pytest.raises(BrokerError) as caught:
            probe(new)
        assert str(caught.value) == (
            f"broker cannot be reached: {new}: it sends clients to {old} ({text}); correct its "
            "advertised.listeners"
        )


def test_clients_begin_with_a_server_that_answers_which_is_tried_first_from_then_on(monkeypatch):
    """A client that draws one by itself waits for it, and fails if it hangs or is switched off."""
    tried = []

    def try_server(server, *_):
        tried.append(server)
        return None if server == "two:9092" else "no answer"

    monkeypatch.setattr(client, "_try_server", try_server)
    there = client.Connection("one,two,three")
    for _ in range(2):
        assert there._make(dict, {})["bootstrap_servers"] == ["two:9092"]
    assert tried == ["one:9092", "two:9092", "two:9092"]


def test_a_connection_that_idles_is_kept_alive(monkeypatch):
    """A worker without work writes for hours over none of them, which a firewall may forget."""
    monkeypatch.setattr(client, "probe", lambda *_, **__: None)
    with socket.socket() as one:
        for option in client.Connection("there")._make(dict, {})["socket_options"]:
            one.setsockopt(*option)
        assert one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_readers_get_a_batch_of_a_worker_in_time_where_bytes_come_slowly(monkeypatch):
    """No fetch is smaller than a batch: of one of 1 MiB, 150 kB/s brought no record in 45 s."""
    monkeypatch.setattr(client.Connection, "_make", lambda _self, _kind, options: options)
    monkeypatch.setattr(client, "keep_requests", lambda _producer: None)
    there = client.Connection("there")
    batch_size = there.transactional_producer("group-a")["batch_size"]
    assert 128 * 2**10 < batch_size < 150e3 * there.timeouts.request_s


def test_a_worker_s_records_wait_for_another_leader_as_long_as_their_transaction(monkeypatch):
    """A cluster gives up a killed broker after 9 s; on a busy machine others led after 12."""
    monkeypatch.setattr(client.Connection, "_make", lambda _self, _kind, options: options)
    monkeypatch.setattr(client, "keep_requests", lambda _producer: None)
    options = client.Connection("there").transactional_producer("group-a")
    assert options["delivery_timeout_ms"] == options["transaction_timeout_ms"] == 15_000


def test_a_worker_that_a_broker_has_forgotten_is_told_to_start_again():
    """After `transactional.id.expiration.ms` (seven days) without a commit."""
    error = kafka_errors.KafkaError(kafka_errors.InvalidProducerIdMappingError())
    text = str(client.Connection("there").broker_error(error, "commit"))
    assert "commit: this program was silent for too long" in text
    assert "start it again, nothing is lost" in text


def test_a_consumer_asks_for_less_while_answers_come_too_late_and_for_more_again():
    """On 150 kB/s a worker asked for 1 MB again and again, and never got an event."""
    asked = {"fetch_max_bytes": 6400, "max_partition_fetch_bytes": 640, "request_timeout_ms": 5000}
    heard = []
    fetcher = SimpleNamespace(
        config=asked.copy(),
        _handle_fetch_error=lambda *news: heard.append(news),
        _handle_fetch_response=lambda *news: heard.append(news),
    )
    fit_fetches(SimpleNamespace(_fetcher=fetcher))

    def sizes():
        return fetcher.config["fetch_max_bytes"], fetcher.config["max_partition_fetch_bytes"]

    fetcher._handle_fetch_error("node", kafka_errors.KafkaConnectionError())
    assert sizes() == (6400, 640)
    fetcher._handle_fetch_error("node", kafka_errors.RequestTimedOutError())
    assert sizes() == (1600, 160)
    for waited_s, expected in ((2.0, 1600), (0.0, 3200), (0.0, 6400), (0.0, 6400)):
        fetcher._handle_fetch_response("node", {}, time.monotonic() - waited_s, "answer")
        assert sizes() == (expected, expected // 10)
    for _ in range(9):
        fetcher._handle_fetch_error("node", kafka_errors.RequestTimedOutError())
    assert sizes() == (100, 10)
    assert len(heard) == 15
