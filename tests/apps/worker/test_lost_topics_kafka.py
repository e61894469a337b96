"""Topics deleted on a real broker: what workers and `check` say, and what is to be done."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from click.testing import CliRunner, Result

from connectors.kafka.topics import KafkaTopics
from connectors.topics import Outgoing, TopicName
from connectors.wire.state_records import line_of
from streamgp.apps import console
from streamgp.apps.console import Stop
from streamgp.apps.deployment.deployment import load_deployed, open_topics
from streamgp.apps.maintenance.forget import NOT_YET
from streamgp.apps.worker.check import check_deployment
from streamgp.apps.worker.process import run_worker
from streamgp.cli.maintenance import backup, forget, recover, restore
from tests.helpers.topics import again, everything
from tests.helpers.worker_process import Process

KAFKA = pytest.importorskip("kafka")
from kafka.admin import ConfigResource, ConfigResourceType  # noqa: E402
from kafka.errors import KafkaError  # noqa: E402

N_KEYS, N = 6, 10


class Until(Stop):
    """Stops a worker once a condition holds."""

    def __init__(self, is_so: Callable[[], bool]) -> None:
        super().__init__()
        self._is_so = is_so

    def __call__(self) -> bool:
        return self._is_so()


class Deployed:
    """A deployment on a broker, and what an operator does with it."""

    def __init__(self, config: Path, servers: str, prefix: str) -> None:
        self.config = config
        self.servers = servers
        self.prefix = prefix
        self.n_sent = 0

    def send(self, n: int) -> None:
        """Send events that bring their labels, of keys that lie in all partitions."""
        with closing(open_topics(load_deployed(self.config))) as topics:
            writer = topics.writer("test")
            for i in range(self.n_sent, self.n_sent + n):
                key = f"key{i % N_KEYS}"
                value = {"event_id": f"e{i}", "key": key, "x": {"light": i % 2 + 0.01 * i}}
                value["y"] = ("hall", "den")[i % 2]
                writer.send(
                    Outgoing(topic="events", key=key.encode(), value=json.dumps(value).encode())
                )
            writer.close()
        self.n_sent += n

    def work(self) -> int:
        """Run a worker until nothing waits; return its exit status."""
        with closing(open_topics(load_deployed(self.config))) as topics:
            end = monotonic() + 90.0

            def is_done() -> bool:
                assert monotonic() < end, "not worked off in time"
                return not any(topics.lags(f"{self.prefix}group").values())

            return run_worker(self.config, Until(is_done), instance="w")

    def wait_until_nobody_works(self) -> None:
        with closing(open_topics(load_deployed(self.config))) as topics:
            _wait(lambda: topics.n_members(f"{self.prefix}group") == 0)

    def delete(self, topic: TopicName) -> None:
        name = f"{self.prefix}{topic}"
        with closing(KAFKA.KafkaAdminClient(bootstrap_servers=self.servers)) as admin:
            admin.delete_topics([name])
            _wait(lambda: name not in admin.list_topics())

    def cut(self, topic: TopicName) -> None:
        """Take the first records of each partition away; brokers allow it by one setting only."""
        name = f"{self.prefix}{topic}"
        with closing(KAFKA.KafkaAdminClient(bootstrap_servers=self.servers)) as admin:
            for policy in ("compact,delete", "compact"):
                setting = {"cleanup.policy": policy}
                admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, setting)])
                if policy != "compact":
                    places = [KAFKA.TopicPartition(name, n) for n in range(2)]
                    _wait(lambda places=places: _deleted(admin, places))

    def refusal(self) -> str:
        """Run a worker that is refused; return why."""
        status, log = Process(self.config).end()
        assert status == console.WRONG_USE
        return str(log[-1]["reason"])

    def check(self, *, create_topics: bool = False) -> tuple[int, str]:
        """Return the exit status of `streamgp check`, and what it prints."""
        with redirect_stdout(StringIO()) as out:
            status = check_deployment(
                self.config, broker=None, timeout_s=60.0, create_topics=create_topics
            )
        return status, out.getvalue()

    def recover(self) -> Result:
        return CliRunner().invoke(recover, [str(self.config), "--yes"])

    def left_of(self, key: str) -> list[bytes]:
        """Return the keys of the records of a key in the topics of labels and state."""
        with closing(open_topics(load_deployed(self.config))) as topics:
            newest = {r.key: r.value for r in everything(topics, "state", "consensus")}
        return [
            name
            for name, value in newest.items()
            if value is not None and name is not None and name.startswith(f"{key}\x1f".encode())
        ]

    def sequences(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        with closing(open_topics(load_deployed(self.config))) as topics:
            for record in everything(topics, "consensus"):
                line = line_of(record.key, record.value or b"")
                found.setdefault(line.key or "", []).append(line.sequence)
        return found


def _deleted(admin: Any, places: list[Any]) -> bool:
    """Delete the first records of some partitions, once the broker allows it."""
    with suppress(KafkaError):
        admin.delete_records(dict.fromkeys(places, 1))
        return True
    return False


def _wait(is_so: Callable[[], bool]) -> None:
    end = monotonic() + 60.0
    while not is_so():
        assert monotonic() < end, "it does not come about"
        sleep(0.2)


@pytest.fixture
def deployed(kafka: str, kafka_prefix: str, tmp_path: Path) -> Deployed:
    path = tmp_path / "worker.toml"
    state = json.dumps(str(tmp_path / "state"))
    path.write_text(
        f'broker = "kafka://{kafka}"\nwarm_up = 0\n'
        f'[topics]\nprefix = "{kafka_prefix}"\npartitions = 2\nreplication = 1\n'
        f'[worker]\ngroup = "{kafka_prefix}group"\nstate = {state}\nleave = true\n'
    )
    found = Deployed(path, kafka, kafka_prefix)
    with closing(open_topics(load_deployed(path))) as topics:
        topics.create()
    found.send(N_KEYS * N)
    assert found.work() == console.DONE
    return found


def test_a_deleted_state_topic_is_noticed_and_made_anew(deployed: Deployed) -> None:
    before = deployed.sequences()
    assert before == {f"key{n}": list(range(1, N + 1)) for n in range(N_KEYS)}
    deployed.wait_until_nobody_works()
    deployed.delete("state")
    status, said = deployed.check()
    assert status == console.WRONG_USE
    assert f"topic {deployed.prefix}state is missing; --create-topics makes it" in said
    status, said = deployed.check(create_topics=True)
    assert status == console.WRONG_USE
    assert "wrong    learned:" in said
    assert "`streamgp recover`" in said
    deployed.send(2 * N_KEYS)
    assert "state has no record of the workers that wrote them" in deployed.refusal()
    assert deployed.sequences() == before
    deployed.wait_until_nobody_works()
    found = deployed.recover()
    assert found.exit_code == 0, found.output
    assert "rebuilt the state of 6 learners in 2 partitions" in found.output
    assert "ok       learned:" in deployed.check()[1]
    assert deployed.work() == console.DONE
    assert deployed.sequences() == {f"key{n}": list(range(1, N + 3)) for n in range(N_KEYS)}
    assert deployed.check()[0] == 0


# By day both are deleted, and consensus alone in test_recover_command.py.
@pytest.mark.nightly
def test_a_deleted_consensus_topic_is_noticed(deployed: Deployed) -> None:
    deployed.wait_until_nobody_works()
    deployed.delete("consensus")
    status, said = deployed.check(create_topics=True)
    assert status == console.WRONG_USE
    assert "the labelled examples are nowhere else" in said
    deployed.send(N_KEYS)
    assert "consensus was deleted, emptied or cut" in deployed.refusal()
    deployed.wait_until_nobody_works()
    found = deployed.recover()
    assert found.exit_code != 0
    assert "start over with other topics" in found.output
    assert deployed.sequences() == {}


def test_both_topics_deleted_come_back_from_a_backup(deployed: Deployed, tmp_path: Path) -> None:
    directory = str(tmp_path / "backup")
    config = str(deployed.config)
    assert CliRunner().invoke(backup, [config, directory]).exit_code == 0
    deployed.wait_until_nobody_works()
    deployed.delete("state")
    deployed.delete("consensus")
    status, said = deployed.check(create_topics=True)
    assert status == console.WRONG_USE
    assert "state and consensus hold nothing, and the group has processed events" in said
    deployed.send(N_KEYS)
    assert "`streamgp restore`" in deployed.refusal()
    assert deployed.sequences() == {}
    deployed.wait_until_nobody_works()
    found = CliRunner().invoke(restore, [config, directory, "--yes"])
    assert found.exit_code == 0, found.output
    assert deployed.work() == console.DONE
    assert deployed.sequences() == {f"key{n}": list(range(1, N + 2)) for n in range(N_KEYS)}
    deployed.wait_until_nobody_works()
    deployed.delete("state")
    deployed.delete("consensus")
    deployed.check(create_topics=True)
    found = CliRunner().invoke(restore, [config, directory, "--yes"])
    assert found.exit_code != 0
    assert "is older than the positions of group" in found.output
    found = deployed.recover()
    assert "2 partitions will begin with nothing" in found.output
    deployed.send(N_KEYS)
    assert deployed.work() == console.DONE
    assert deployed.sequences() == {f"key{n}": [1] for n in range(N_KEYS)}


def test_a_state_topic_that_was_cut_is_noticed_without_a_snapshot(deployed: Deployed) -> None:
    deployed.cut("state")
    status, said = deployed.check()
    assert status == console.WRONG_USE
    assert "deleted, emptied or cut" in said


def test_a_key_is_forgotten_after_consensus_has_lost_its_end(deployed: Deployed) -> None:
    """The request gets an offset at which workers have seen another null."""
    with closing(open_topics(load_deployed(deployed.config))) as topics:
        lines = [record for record in everything(topics, "consensus") if record.value is not None]
        places = {record.key: record.partition for record in lines}
        writer = topics.writer("test")
        for key, number in places.items():  # nulls that change nothing
            absent = (key or b"").rpartition(b"\x1f")[0] + b"7\x1f0"
            writer.send(Outgoing(topic="consensus", partition=number, key=absent, value=None))
        writer.close()
    assert deployed.work() == console.DONE
    deployed.wait_until_nobody_works()
    deployed.delete("consensus")
    assert deployed.check(create_topics=True)[0] == console.WRONG_USE
    with closing(open_topics(load_deployed(deployed.config))) as topics:
        writer = topics.writer("test")
        for line in lines:
            writer.send(again(line))
        writer.close()
        assert isinstance(topics, KafkaTopics)
        topics.set_positions(
            f"{deployed.prefix}group", {("consensus", number): 0 for number in range(2)}
        )
    found = CliRunner().invoke(forget, [str(deployed.config), "key0", "--yes"])
    assert found.exit_code == NOT_YET, found.output
    assert deployed.work() == console.DONE
    assert deployed.left_of("key0") == []
