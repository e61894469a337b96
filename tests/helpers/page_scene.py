"""A page in a process of its own, on embedded topics, with questions written as by a worker."""

from __future__ import annotations

import multiprocessing
import os
import random
import socket
import sys
import time
import urllib.error
import urllib.request
from contextlib import closing
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from connectors.embedded.topics import EmbeddedTopics
from connectors.topics import TopicName
from connectors.wire.outbound import Outbound
from streamgp.base import Neighbour
from streamgp.interactive.messages import Answer, Challenge, LabelledExample, LabelRequest
from tests.helpers.topics import said, write

ROOMS = ("bathroom", "bedroom", "den", "hall", "kitchen", "living room", "study")
_PATIENCE_S = 60.0
# Pages are forked from a process that has loaded what they need, which takes most of a start.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["streamgp.cli.main", "streamgp.apps.page.program", __name__])


def _serve(directory: Path, address: str) -> None:
    """Be `streamgp page` in a directory, with its output in a file there."""
    from streamgp.cli.main import main

    os.chdir(directory)
    log = os.open("page.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(log, sys.stdout.fileno())
    os.dup2(log, sys.stderr.fileno())
    sys.argv = ["streamgp", "page", "w.toml", "--as", "ann", "--bind", address]
    main()


class PageScene:
    """A deployment in a directory, and its page.

    Parameters
    ----------
    directory
        Directory of its files.
    settings
        Additional lines for its configuration.

    Attributes
    ----------
    url
        Address of the page; the same after each restart.

    """

    def __init__(self, directory: Path, settings: str = "") -> None:
        self.directory = directory
        # Bound until the end, or while there is no page another program may get the port.
        self._bound = _bound_socket()
        self._process: ForkServerProcess | None = None
        self.url = f"http://127.0.0.1:{self._bound.getsockname()[1]}"
        (directory / "w.toml").write_text(f'broker = "file://{directory}/topics"\n{settings}')
        EmbeddedTopics(directory / "topics").create()

    # --- topics

    def write(self, *messages: Any) -> None:
        """Write messages as a worker would."""
        outbound = Outbound("/streamgp/test", keyed=True)
        topics = EmbeddedTopics(self.directory / "topics")
        link = topics.client(group="streamgp", instance="test", max_records=10)
        link.poll(0.0)
        link.commit([outbound.message(message, 0) for message in messages])
        link.close()
        topics.close()

    def say(self, *answers: Answer) -> None:
        """Write answers as another program would."""
        outbound = Outbound("/streamgp/test", keyed=True)
        with closing(EmbeddedTopics(self.directory / "topics")) as topics:
            write(topics, *(outbound.message(answer, 0) for answer in answers))

    def read(self, topic: TopicName) -> list[Any]:
        """Return all messages of a topic."""
        return said(EmbeddedTopics(self.directory / "topics"), topic)

    def answers(self) -> list[Answer]:
        """Return all answers in order."""
        return [one for one in self.read("answers") if isinstance(one, Answer)]

    # --- the process

    def start(self) -> None:
        """Start the page and wait until it responds."""
        self._process = _PROCESSES.Process(
            target=_serve, args=(self.directory, self.url[7:]), daemon=True
        )
        self._process.start()
        end = time.monotonic() + _PATIENCE_S
        while not self._is_healthy():
            assert self._process.is_alive(), self.log()
            assert time.monotonic() < end, self.log()
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill the page."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None

    def close(self) -> None:
        """Kill the page, and give its port back."""
        self.kill()
        self._bound.close()

    def log(self) -> str:
        """Return the output of the page."""
        return (self.directory / "page.log").read_text(errors="replace")

    def _is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=5.0) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError as error:
            error.close()
            return False
        except OSError:
            return False


_ports: set[int] = set()


def _bound_socket() -> socket.socket:
    """Return a socket on a port that no scene has had: browsers keep what they store by address.

    It does not listen, so that a page can.
    """
    while True:
        found = socket.socket()
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
        if port not in _ports:
            _ports.add(port)
            return found
        found.close()


# --- Messages

FEATURES = ("light", "noise", "temperature", "humidity", "acc_x_mean", "acc_y_std", "wifi_strength")


def features(seed: int) -> dict[str, float]:
    """Return the features of an event."""
    rng = random.Random(seed)
    return {name: round(rng.uniform(0.0, 10.0), 3) for name in FEATURES}


def known(labels: tuple[Any, ...], *, at: float, key: str = "ann") -> list[LabelledExample]:
    """Return examples that make labels known, two of each."""
    return [
        LabelledExample(
            event_id=f"known{n}",
            key=key,
            sequence=n + 1,
            x=features(1000 + n),
            y=label,
            origin="asked",
            annotator="bob",
            learned_at=at - 3600.0 + 10.0 * n,
        )
        for n, label in enumerate(labels * 2)
    ]


def label_request(n: int, *, at: float, key: str = "ann", **fields: Any) -> LabelRequest:
    """Return the label request for event n, asked n milliseconds after `at`."""
    given: dict[str, Any] = {"x": features(n), "reason": "AlwaysAsk", **fields}
    return LabelRequest(
        request_id=f"e{n}/label",
        event_id=f"e{n}",
        key=key,
        score=1.0,
        threshold=0.0,
        requested_at=at + n / 1000.0,
        **given,
    )


def challenge(n: int, *, at: float, key: str = "ann", **fields: Any) -> Challenge:
    """Return the challenge for event n: hall was given, study is suggested."""
    x = features(n)
    near = [
        Neighbour(event_id=f"known{i}", x={**x, "light": x["light"] + i + 1.0}, y=y, distance=1.0)
        for i, y in enumerate(("study", "study", "hall"))
    ]
    given: dict[str, Any] = {
        "given": "hall",
        "suggested": "study",
        "annotator": "ann",
        "neighbours": tuple(near),
        **fields,
    }
    return Challenge(
        request_id=f"e{n}/challenge/1",
        event_id=f"e{n}",
        key=key,
        x=x,
        reason="SkepticalChallenge",
        score=0.87,
        threshold=0.1,
        requested_at=at + n / 1000.0,
        probability_wrong=0.87,
        **given,
    )
