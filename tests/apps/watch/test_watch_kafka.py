"""Watching, dead letters, forgetting and rebuilding on a real broker."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner, Result

from connectors.topics import Outgoing
from connectors.wire.codec import encode
from connectors.worker.settings import WorkerSettings
from connectors.worker.worker import Worker
from streamgp.apps.deployment.deployment import load_deployed, open_topics
from streamgp.apps.worker.process import build_loops
from streamgp.interactive.messages import Event
from tests.helpers.small_deployment import COMMANDS
from tests.helpers.topics import wait_until

BAYES = '[learner]\nname = "river.naive_bayes.GaussianNB"\n'


class Deployed:
    """A deployment on a real broker, with a worker in a thread."""

    def __init__(self, path: Path, broker: str, prefix: str) -> None:
        self.path = path
        self.group = f"{prefix}group"
        self.config_file = path / "worker.toml"
        self.config_file.write_text(
            f'broker = "kafka://{broker}"\nwarm_up = 0\n'
            f'[query]\nrule = "always"\n[challenge]\nrule = "never"\n'
            f'[topics]\nprefix = "{prefix}"\npartitions = 3\nreplication = 1\n'
            f'[worker]\ngroup = "{self.group}"\n'
        )
        self.topics = open_topics(load_deployed(self.config_file))
        self.topics.create()

    def put(self, *records: Outgoing) -> None:
        writer = self.topics.writer("test")
        for record in records:
            writer.send(record)
        writer.close()

    @contextmanager
    def working(self, config_file: Path | None = None) -> Iterator[None]:
        """Run a worker in parallel with the block, which begins once no input waits."""
        path = config_file or self.config_file
        is_over, failed = False, []

        def work() -> None:
            config = load_deployed(path)
            with closing(open_topics(config)) as topics:
                settings = WorkerSettings(group=self.group, instance="one", leave=True)
                try:
                    Worker(topics, build_loops(config, source=str(path)), settings).run(
                        lambda: is_over
                    )
                except Exception as error:
                    failed.append(error)

        thread = Thread(target=work)
        thread.start()
        try:
            wait_until(lambda: bool(failed) or self.is_idle())
            assert not failed
            yield
        finally:
            is_over = True
            thread.join()

    def is_idle(self) -> bool:
        lags = self.topics.lags(self.group).values()
        return self.topics.n_members(self.group) == 1 and max(lags) == 0

    def call(self, *words: str | Path) -> Result:
        command, *rest = map(str, words)
        return CliRunner().invoke(COMMANDS, [command, str(self.config_file), *rest])

    def done(self, *words: str | Path) -> str:
        result = self.call(*words)
        assert result.exit_code == 0, result.output
        return result.stdout


def event(name: str, key: str, y: str | None) -> Outgoing:
    x = {"light": float(sum(name.encode()) % 7)}
    happened = Event(
        event_id=name, key=key, x=x, occurred_at=time.time(), y=y, truth="hall" if y else None
    )
    return Outgoing(topic="events", key=key.encode(), value=encode(happened))


@pytest.fixture
def deployed(tmp_path: Path, kafka: str, kafka_prefix: str) -> Iterator[Deployed]:
    found = Deployed(tmp_path, kafka, kafka_prefix)
    yield found
    found.topics.close()


def test_day_of_a_deployment(deployed: Deployed) -> None:
    people = ("ann", "bob", "eve")
    deployed.put(*(event(f"e{n}", key, "hall") for key in people for n in range(5)))
    deployed.put(*(event("open", key, None) for key in people))
    deployed.put(Outgoing(topic="events", key=b"ann", value=b"?", headers=[("trace", b"17")]))
    with deployed.working():
        screen = deployed.done("watch", "--once", "--from-start")
        assert f"1 in group {deployed.group} at kafka://" in screen
        assert "18" in screen.splitlines()[2].split()
        assert "3 label requests and 0 challenges wait" in screen
        assert "15 learned, 0 corrected, 0 withdrawn" in screen
        assert "1: 1 decode" in screen

        listed = deployed.done("dead-letters", "list").splitlines()
        number = listed[1].split()[0]
        assert "trace          17" in deployed.done("dead-letters", "show", number).splitlines()
        sent = deployed.done("dead-letters", "resend", number, "--yes")
        assert sent == "sent 1 record: 1 to events\n"
        wait_until(lambda: deployed.done("dead-letters", "list").endswith("2 dead letters\n"))

        assert deployed.done("forget", "ann", "--yes").startswith("forgot 'ann': 5 labels and ")
        assert deployed.call("forget", "ann", "--yes").exit_code == 2
        new = deployed.path / "new.toml"
        new.write_text(BAYES)
        busy = deployed.call("rebuild", "--learner", new, "--take-over", "--yes")
        assert (busy.exit_code, "still running" in busy.stderr) == (2, True)

    said = deployed.done("rebuild", "--learner", new, "--take-over", "--yes")
    assert [line.split()[:2] for line in said.splitlines()[2:5]] == [
        ["bob", "5"], ["eve", "5"], ["all", "2"],
    ]  # fmt: skip
    assert "2 new learners took over in " in said
    both = deployed.path / "both.toml"
    both.write_text(deployed.config_file.read_text() + BAYES)
    deployed.put(event("late", "bob", None))
    with deployed.working(both):
        wait_until(lambda: n_learned_at(deployed, "late") == 5)


def n_learned_at(deployed: Deployed, name: str) -> int | None:
    """Return how much the learner held when it predicted an event."""
    with closing(deployed.topics.reader(["predictions"])) as reader:
        while not reader.caught_up:
            for record in reader.poll(0.5):
                message = json.loads(record.value or b"{}")
                if message["event_id"] == name:
                    return int(message["n_learned"])
    return None
