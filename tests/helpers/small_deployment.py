"""A deployment within the test: topics in memory, a worker run by hand, and the commands."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner, Result

from connectors.embedded.topics import EmbeddedTopics
from connectors.memory import MemoryTopics
from connectors.storage.snapshots import StateDirectory
from connectors.topics import BrokerError, Outgoing, Record, TopicName, Writer
from connectors.wire.codec import DecodeError, decode, encode
from connectors.worker import worker
from connectors.worker.settings import WorkerSettings
from connectors.worker.worker import Worker
from streamgp.apps.deployment import deployment
from streamgp.apps.worker.process import build_loops
from streamgp.cli.main import cli
from streamgp.cli.maintenance import (
    audit,
    backup,
    dead_letters,
    forget,
    labels,
    rebuild,
    recover,
    restore,
    retract,
)
from streamgp.cli.worker import watch
from streamgp.config.load import parse_worker
from streamgp.interactive.messages import Answer, Challenge, Event, LabelRequest, Message
from tests.helpers.topics import everything, wait_until, write

COMMANDS = type(cli)(
    name="streamgp",
    commands={
        c.name or "": c
        for c in (
            watch, audit, dead_letters, forget, labels, rebuild, recover, backup, restore, retract,
        )
    },
)  # fmt: skip
TEXT = """\
broker = "kafka://nowhere"
warm_up = 0
[query]
rule = "always"
[challenge]
rule = "never"
"""


class OpenTopics(MemoryTopics):
    """Topics that outlive the command that uses them."""

    said: Sequence[str] = ()

    def problems(self) -> list[str]:
        return list(self.said)

    def close(self) -> None:
        pass

    def lose(
        self, *names: TopicName, which: Callable[[Record], bool] = lambda _record: True
    ) -> None:
        """Take records out of topics, of which no trace stays."""
        for (name, _), records in self._logs._records.items():
            if name in names:
                records[:] = [record for record in records if not which(record)]

    def make_again(self, *names: TopicName) -> None:
        """Delete topics, and make them again."""
        self.lose(*names)
        self._logs._ends |= {place: 0 for place in self._logs._ends if place[0] in names}


class Cut:
    """Factory of writers whose connection ends after a total number of records.

    Attributes
    ----------
    n_left
        Number of records that still pass.

    """

    def __init__(self, writer_of: Callable[[str], Writer], n_left: int) -> None:
        self.writer_of = writer_of
        self.n_left = n_left

    def __call__(self, program: str) -> Writer:
        return _CutWriter(self, self.writer_of(program))


class _CutWriter:
    def __init__(self, cut: Cut, inner: Writer) -> None:
        self.cut = cut
        self.inner = inner

    def send(self, record: Outgoing) -> None:
        if self.cut.n_left == 0:
            raise BrokerError("broker is gone")
        self.cut.n_left -= 1
        self.inner.send(record)
        self.inner.flush()

    def flush(self) -> None:
        self.inner.flush()

    def close(self) -> None:
        self.inner.close()


class Small:
    """A deployment: its configuration, its topics, and a worker."""

    def __init__(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, *, n_partitions: int = 4
    ) -> None:
        self.path = path
        self.topics = OpenTopics(n_partitions)
        self.config_file = path / "worker.toml"
        self.config_file.write_text(TEXT)
        self.sent_at = time.time() - 60.0
        monkeypatch.setattr(deployment, "open_topics", lambda _config: self.topics)
        monkeypatch.setattr(worker, "LONGEST_WAIT_S", 0.05)  # no test waits for an idle worker

    @classmethod
    def in_directory(cls, path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
        """Return a deployment whose topics are in a directory, which commands open themselves."""
        small = cls(path, monkeypatch)
        monkeypatch.undo()
        topics = EmbeddedTopics(path / "topics")
        topics.create()
        monkeypatch.setattr(small, "topics", topics)
        return small

    def add(self, text: str) -> None:
        """Add settings to the configuration."""
        self.config_file.write_text(self.config_file.read_text() + text)

    # --- what people and devices do

    def put(self, *messages: Event | Answer) -> None:
        for message in messages:
            topic: TopicName = "events" if isinstance(message, Event) else "answers"
            self.put_bytes(topic, message.key, encode(message))

    def put_bytes(
        self,
        topic: TopicName,
        key: str | None,
        value: bytes | None,
        headers: tuple[tuple[str, bytes], ...] = (),
    ) -> None:
        key_bytes = None if key is None else key.encode()
        write(self.topics, Outgoing(topic=topic, key=key_bytes, value=value, headers=headers))

    def event(self, name: str, key: str = "ann", **more: Any) -> Event:
        light = float(sum(name.encode()) % 10)
        fields = {"x": {"light": light}, "occurred_at": self.sent_at, **more}
        return Event(event_id=name, key=key, **fields)

    def answer(
        self, request: LabelRequest | Challenge, y: Any, name: str = "", **more: Any
    ) -> None:
        fields = {"answered_at": time.time(), "annotator": "eve", **more}
        self.put(
            Answer(
                answer_id=name or f"to {request.request_id}",
                request_id=request.request_id,
                event_id=request.event_id,
                key=request.key,
                y=y,
                **fields,
            )
        )

    # --- what the topics hold

    def records(self, *names: TopicName) -> list[Record]:
        return everything(self.topics, *names)

    def said(self, *names: TopicName) -> list[Message]:
        found = []
        for record in self.records(*names):
            try:
                found.append(decode(record.value or b""))
            except DecodeError:
                continue
        return found  # type: ignore[return-value]

    # --- programs

    def worker(
        self, config_file: Path | None = None, *, state: StateDirectory | None = None
    ) -> Worker:
        path = config_file or self.config_file
        config = parse_worker(path.read_text(), source=str(path))
        loops = build_loops(config, source=str(path))
        return Worker(self.topics, loops, WorkerSettings(), state=state)

    def work(self, config_file: Path | None = None, *, state: StateDirectory | None = None) -> None:
        """Run a worker until nothing is pending."""
        seen = False

        def is_idle() -> bool:
            nonlocal seen
            was, seen = seen, True
            return was and not any(self.topics.lags("streamgp").values())

        self.worker(config_file, state=state).run(is_idle)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Run a worker in parallel with the block."""
        is_over = False
        thread = Thread(target=lambda: self.worker().run(lambda: is_over))
        thread.start()
        try:
            wait_until(lambda: self.topics.n_members("streamgp") == 1)
            yield
        finally:
            is_over = True
            thread.join()

    def call(self, command: str, *arguments: str | Path, answer: str | None = None) -> Result:
        words = [command, str(self.config_file), *map(str, arguments)]
        return CliRunner().invoke(COMMANDS, words, input=answer)

    def done(self, command: str, *arguments: str | Path, answer: str | None = None) -> str:
        """Call a command that must succeed; return what it prints."""
        result = self.call(command, *arguments, answer=answer)
        assert result.exit_code == 0, result.output
        return result.stdout

    def done_beside_a_worker(self, command: str, *arguments: str | Path) -> str:
        """Call a command that needs a running worker; return what it prints."""
        with self.working():
            return self.done(command, *arguments)

    def wrong(self, command: str, *arguments: str | Path) -> str:
        """Call a command that must fail with one line on stderr; return the line."""
        result = self.call(command, *arguments)
        assert result.exit_code == 2, result.output
        assert result.stderr.count("\n") == 1, result.stderr
        return result.stderr.removeprefix("Error: ").rstrip("\n")
