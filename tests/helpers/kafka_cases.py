"""Shared by the tests of the Kafka connectors: short timeouts, topics, records, proxies."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from time import monotonic, sleep

from connectors.topics import ALL_TOPICS, BrokerError, Outgoing
from tests.helpers.topics import everything

PATIENCE_S = 60.0  # for what a broker does with a delay, even on a busy machine
QUICK = {
    "connect_s": 8.0,
    "request_s": 1.5,
    "delivery_s": 3.0,
    "transaction_s": 3.0,
    "session_s": 6.0,
    "stall_s": 12.0,
    "close_s": 3.0,
}
PATIENT = QUICK | {
    "connect_s": 30.0,
    "request_s": 15.0,
    "delivery_s": 30.0,
    "transaction_s": 30.0,
}
"""For tests in which every request is answered, if late by a busy broker."""
BUSY_S = 20.0
"""Delay allowed on a busy machine for what must end in time; the client's own limits are longer."""


@contextmanager
def opened(servers, prefix, *, partitions=2, create=True, timeouts=(), **options):
    """Return the topics of a test, created if `create`; with long timeouts except `timeouts`.

    What the test has opened and not closed, as one that fails, is closed with them: the threads of
    a client would go on in the tests that follow, and draw random numbers there.
    """
    from connectors.kafka.topics import KafkaTopics, Timeouts

    topics = KafkaTopics(
        servers,
        names={name: prefix + name for name in ALL_TOPICS},
        partitions=partitions,
        timeouts=Timeouts(**(PATIENT | dict(timeouts))),
        **options,
    )
    with ExitStack() as stack:
        stack.callback(topics.close)
        for name in ("client", "reader", "writer"):
            setattr(topics, name, partial(_closed_with, stack, getattr(topics, name)))
        if create:
            topics.create()
        yield topics


def _closed_with(stack, function, *arguments, **options):
    made = function(*arguments, **options)
    stack.callback(_close, made)
    return made


def _close(made):
    with suppress(BrokerError):
        made.close()


class Raw(str):
    """Name of a header that is sent as bytes that are no valid text."""

    __slots__ = ("data",)

    def __new__(cls, data):
        made = super().__new__(cls, f"raw {data!r}")
        made.data = data
        return made

    def encode(self, *_):
        return self.data


def out(topic, value, partition=0, key=b"ann", headers=()):
    return Outgoing(topic=topic, partition=partition, key=key, value=value, headers=headers)


def write(topics, *records):
    writer = topics.writer("feeder")
    for record in records:
        writer.send(record)
    writer.close()


def numbered(topic, n, partition=0, start=0):
    return [out(topic, b"%d" % i, partition) for i in range(start, start + n)]


def read(topics, *names):
    """Return the values of everything committed in some topics, one after another."""
    return [record.value for record in everything(topics, *names)]


@contextmanager
def linked(topics, group, instance="a", max_records=500, wait=True, leave=False):
    """Provide a client that has its partitions; it is closed in any case."""
    link = topics.client(group=group, instance=instance, max_records=max_records)
    try:
        if wait:
            settle(link)
        yield link
    finally:
        link.close(leave=leave)


def extend(admin, total, *names):
    """Give topics more partitions, and wait until the broker tells of them."""
    admin.create_partitions(dict.fromkeys(names, total))
    told = eventually(
        lambda: [len(each["partitions"]) for each in admin.describe_topics(list(names))],
        [total] * len(names),
    )
    assert told == [total] * len(names)


def settle(link, *, n=None, timeout_s=PATIENCE_S):
    """Poll until any partitions are assigned, or exactly `n`."""
    until = monotonic() + timeout_s
    while not link.assigned if n is None else len(link.assigned) != n:
        assert monotonic() < until, f"{link.assigned} after {timeout_s} s"
        assert link.poll(0.1) == []


def poll(link, n, timeout_s=PATIENCE_S):
    """Return the next n records."""
    found = []
    until = monotonic() + timeout_s
    while len(found) < n:
        assert monotonic() < until, f"{len(found)} of {n} records after {timeout_s} s"
        found += link.poll(0.2)
    return found


def copy_all(link, n, topic="predictions", timeout_s=PATIENCE_S):
    """Work like a worker: write every polled value to a topic, until n were polled."""
    done = 0
    until = monotonic() + timeout_s
    while done < n:
        assert monotonic() < until, f"{done} of {n} records after {timeout_s} s"
        records = link.poll(0.2)
        link.commit([out(topic, r.value, r.partition, r.key) for r in records])
        done += len(records)


def eventually(call, expected, timeout_s=PATIENCE_S):
    """Call until the result is the expected one; return the last result.

    The broker finishes a transaction a moment after it has confirmed it.
    """
    until = monotonic() + timeout_s
    while (found := call()) != expected and monotonic() < until:
        sleep(0.02)
    return found


def error_of(call):
    """Return the error that a call raises, and how long it took."""
    start = monotonic()
    try:
        call()
    except BrokerError as error:
        return error, monotonic() - start
    raise AssertionError("no error")


@contextmanager
def open_transaction(servers, name, topic, partition=0):
    """Leave a record in a transaction that stays open until the block ends."""
    from connectors.kafka.client import Connection

    producer = Connection(servers).producer(transactional_id=name, transaction_timeout_ms=60_000)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, key=b"ann", value=b"open", partition=partition)
    producer.flush()
    try:
        yield
    finally:
        producer.abort_transaction()
        producer.close()


class Proxy:
    """A proxy that passes bytes on to a port, slowly if told so, until it is told to stall."""

    def __init__(self):
        self.bytes_per_s = float("inf")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.target = None
        self._flows = threading.Event()
        self._flows.set()
        self._sockets = [self._listener]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def stall(self):
        self._flows.clear()

    def go_on(self):
        self._flows.set()

    def close(self):
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._flows.set()
        for thread in self._threads:
            thread.join(5.0)

    def _accept(self):
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                with suppress(OSError):
                    server = socket.create_connection(("127.0.0.1", self.target))
                    self._sockets.append(server)
                    for pair in ((client, server), (server, client)):
                        thread = threading.Thread(target=self._pump, args=pair, daemon=True)
                        self._threads.append(thread)
                        thread.start()

    def _pump(self, source, target):
        with suppress(OSError):
            while data := source.recv(65536):
                self._flows.wait()
                sleep(len(data) / self.bytes_per_s)
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class CuttingProxy:
    """A proxy that passes bytes on to a port, and is gone after `n_pieces` from clients."""

    def __init__(self, target, port, n_pieces):
        self.n_passed = 0
        self._target = target
        self._n_pieces = n_pieces
        self._lock = threading.Lock()
        self._sockets = [socket.create_server(("127.0.0.1", port))]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        with self._lock:
            for each in self._sockets:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
                each.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                client, _ = self._sockets[0].accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                with self._lock:
                    self._sockets += [client, server]
                for ends in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pump, args=ends, daemon=True).start()

    def _pump(self, source, target, is_client):
        with suppress(OSError):
            while data := source.recv(65536):
                self.n_passed += is_client
                if self.n_passed > self._n_pieces:
                    self.cut()
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def watched(link, reports, until, timeout_s=PATIENCE_S):
    """Poll until a condition holds."""
    end = monotonic() + timeout_s
    while not until():
        assert monotonic() < end
        link.poll(0.1)
        reports.look()


def said(caplog, event):
    return [record.fields for record in caplog.records if record.getMessage() == event]
