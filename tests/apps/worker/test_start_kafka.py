"""A broker that goes down at any moment of a worker's start: the worker ends with 75."""

from __future__ import annotations

import gc
import json
import logging
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from connectors.kafka import client
from connectors.kafka.settings import Timeouts
from connectors.topics import Topics
from streamgp.apps import console
from streamgp.apps.console import Stop
from streamgp.apps.deployment.deployment import load_deployed, open_topics
from streamgp.apps.worker import process
from streamgp.config.settings import WorkerConfig
from tests.helpers.kafka_cases import CuttingProxy
from tests.kafka_broker import free_ports

# The client of Kafka never closes a socket that could not connect.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"
)
SHORT = {
    "connect_s": 1.0,
    "request_s": 0.5,
    "delivery_s": 1.0,
    "transaction_s": 2.0,
    "session_s": 6.0,
    "stall_s": 3.0,
    "close_s": 1.0,
}


@pytest.fixture(scope="module")
def broker_and_port(broker_of_ones_own: Any) -> Iterator[tuple[Any, int]]:
    """A broker, and the port at which its clients are told to find it."""
    [port] = free_ports(1)
    with broker_of_ones_own(told=port) as broker:
        yield broker, port


@pytest.fixture
def config(broker_and_port: tuple[Any, int], tmp_path: Path) -> Path:
    broker, port = broker_and_port
    path = tmp_path / "worker.toml"
    path.write_text(
        f'broker = "kafka://127.0.0.1:{port}"\nwarm_up = 0\n[topics]\npartitions = 1\n'
        f"[worker]\nstate = {json.dumps(str(tmp_path / 'state'))}\n"
        "[loop]\nexpires_after_s = 60\nanswer_horizon_s = 600\n"
    )
    direct = f"kafka://{broker.servers}"
    with closing(open_topics(load_deployed(path, broker=direct))) as topics:
        topics.create()
    return path


@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.nightly)])
def test_a_broker_that_goes_down_at_any_moment_of_the_start_ends_a_worker_with_75(
    step: int,
    broker_and_port: tuple[Any, int],
    config: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Or waits for it, where it has come as far as to join its group."""
    caplog.set_level(logging.INFO, "streamgp.worker")
    monkeypatch.setattr(client, "Timeouts", partial(Timeouts, **SHORT))
    broker, port = broker_and_port
    said: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(process, "say", lambda _level, event, **more: said.append((event, more)))
    made: list[Topics] = []

    def open_and_keep(config: WorkerConfig) -> Topics:
        made.append(open_topics(config))
        return made[-1]

    monkeypatch.setattr(process, "open_topics", open_and_keep)
    before = set(threading.enumerate())
    for n_pieces in range(0, 80, step):
        proxy = CuttingProxy(broker.hidden_port, port, n_pieces)
        said.clear()
        caplog.clear()
        try:
            status = process.run_worker(config, _Stopping(), instance="w")
        finally:
            proxy.cut()
            made.pop().close()  # a process would be at its end now
        if "restored" in caplog.messages and status == console.DONE:
            break  # the start needs no more: an idle worker waits for the broker
        if n_pieces >= 30 and status == console.DONE:
            continue
        assert (n_pieces, status, said[-1]) == (n_pieces, console.LOST_BROKER, said[-1])
    else:
        raise AssertionError("the start had no end")
    assert n_pieces > 30
    # A client that fails while it is made leaves its thread; all others end soon.
    until = monotonic() + 5.0
    while set(threading.enumerate()) - before and monotonic() < until:
        sleep(0.05)
    gc.collect()  # while the warnings about its sockets are let pass


class _Stopping(Stop):
    """Stops a worker after a few polls."""

    def __init__(self) -> None:
        super().__init__()
        self._n_left = 5

    def __call__(self) -> bool:
        self._n_left -= 1
        return self._n_left < 0
