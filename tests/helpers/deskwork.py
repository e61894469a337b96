"""A deployment in this process: topics in memory, a worker, and brokers that fail on command."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from connectors.annotation.explain import Averages
from connectors.annotation.open_questions import Question
from connectors.memory import MemoryTopics
from connectors.topics import BrokerError, Outgoing, Reader, Record, TopicName, Writer
from connectors.wire.outbound import Outbound
from connectors.worker.settings import LoopSettings, WorkerSettings
from connectors.worker.worker import Worker
from streamgp.apps.annotate.choices import Choices
from streamgp.apps.annotate.question_view import View
from streamgp.base import Label
from streamgp.cli.annotate import annotate as annotate_command
from streamgp.cli.main import cli
from streamgp.cli.send import send
from streamgp.interactive import Answer, Cancel, Event
from streamgp.learners.gp_classifier import GPClassifier
from streamgp.query import SkepticalClassifier
from streamgp.query.strategies import AlwaysAsk, AlwaysChallenge, NeverChallenge
from tests.helpers import messages as made
from tests.helpers.topics import said, write

label_request = partial(made.label_request, key="k", at=1000.0)
challenge = partial(made.challenge, key="k", at=1000.0, annotator="ann")

GROUP = "streamgp"

program = type(cli)("streamgp", commands={"annotate": annotate_command, "send": send})
assert isinstance(program, click.Group)


def view(
    question: Question | None, labels: Sequence[Label] = ("den", "hall"), **fields: Any
) -> View:
    """Return what Ann sees of a question, the only one, with labels known for its key."""
    given: dict[str, Any] = {
        "annotator": "ann",
        "choices": Choices().offer("k", list(labels), []),
        "averages": Averages(),
        "n_open": 1,
        "n_answered": 0,
        "n_unsent": 0,
        "n_read": None,
        "note": None,
        "trouble": None,
        "now": 1000.0,
    }
    return View(question=question, **{**given, **fields})


class Clock:
    """A clock that shows the time it was set to."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Town:
    """Topics and a worker that asks about every event and challenges every unexpected label.

    All of them share `clock`.
    """

    def __init__(
        self,
        *,
        keyed: bool = True,
        n_partitions: int = 1,
        contests: bool = True,
        model: Any = None,
        **spans: Any,
    ) -> None:
        self.clock = Clock()
        self.topics = MemoryTopics(n_partitions, clock=self.clock)
        self.keyed = keyed
        model = model or SkepticalClassifier(
            GPClassifier(),
            query=AlwaysAsk(),
            challenge=AlwaysChallenge() if contests else NeverChallenge(),
            warm_up=0,
            seed=1,
        )
        self._worker = Worker(
            self.topics,
            LoopSettings(model=model, keyed=keyed, **spans),
            WorkerSettings(group=GROUP, instance="one"),
            clock=self.clock,
        )
        self._outbox = Outbound("/streamgp/test", keyed=keyed)

    def put(self, *messages: Event | Answer | Cancel) -> None:
        """Write events, answers and cancellations."""
        write(self.topics, *(self._outbox.message(message, None) for message in messages))

    def event(self, event_id: str, x: float = 0.0, *, key: str = "k", **fields: Any) -> None:
        self.put(
            Event(event_id=event_id, key=key, x={"a": x}, occurred_at=self.clock.now, **fields)
        )

    def work(self) -> None:
        """Let the worker do all pending work."""
        self._worker.run(lambda: not any(self.topics.lags(GROUP).values()))

    def behind_an_address(
        self, monkeypatch: pytest.MonkeyPatch, folder: Path, settings: str = ""
    ) -> Town:
        """Let commands in a folder, now the current one, use the topics; do all pending work."""
        monkeypatch.setattr("connectors.worker.worker.LONGEST_WAIT_S", 0.0)
        monkeypatch.setattr("streamgp.apps.annotate.session.LOOK_S", 0.0)
        monkeypatch.setattr(
            "streamgp.apps.deployment.deployment.open_topics", lambda _config: Broken(self.topics)
        )
        monkeypatch.chdir(folder)
        Path("w.toml").write_text(f'broker = "file://topics"\n{settings}')
        self.work()
        return self

    def said(self, *names: TopicName) -> list[Any]:
        """Return all messages of some topics."""
        return said(self.topics, *names)


def annotate(*options: str, lines: str = "") -> Result:
    """Call `streamgp annotate` for Ann, who types lines, on topics behind an address."""
    return CliRunner().invoke(program, ["annotate", "w.toml", "--as", "ann", *options], input=lines)


class Broken:
    """Topics that outlive the inbox that closes them, and raise an error as long as told to."""

    def __init__(self, topics: MemoryTopics) -> None:
        self.topics = topics
        self.error: type[BrokerError] = BrokerError
        self.reads_fail = False
        self.writes_fail = False
        self.n_flushes = 0

    def reader(self, topics: Iterable[TopicName], *, from_end: bool = False) -> Reader:
        self.check(self.reads_fail)
        return _Reader(self, self.topics.reader(topics, from_end=from_end))

    def writer(self, program: str) -> Writer:
        self.check(self.writes_fail)
        return _Writer(self, self.topics.writer(program))

    def problems(self) -> list[str]:
        return []

    def close(self) -> None:
        pass

    def check(self, fails: bool) -> None:
        if fails:
            raise self.error("the broker\ndoes not answer")


class _Reader:
    def __init__(self, broken: Broken, reader: Any) -> None:
        self._broken, self._reader = broken, reader

    def poll(self, timeout_s: float) -> list[Record]:
        self._broken.check(self._broken.reads_fail)
        return list(self._reader.poll(timeout_s))

    @property
    def caught_up(self) -> bool:
        return bool(self._reader.caught_up)

    def close(self) -> None:
        self._broken.check(self._broken.reads_fail)


class _Writer:
    def __init__(self, broken: Broken, writer: Any) -> None:
        self._broken, self._writer = broken, writer

    def send(self, record: Outgoing) -> None:
        self._writer.send(record)

    def flush(self) -> None:
        self._broken.n_flushes += 1
        self._broken.check(self._broken.writes_fail)
        self._writer.flush()

    def close(self) -> None:
        self._broken.check(self._broken.writes_fail)
