"""`streamgp check`: a line for each thing, and whether anything is wrong."""

from __future__ import annotations

import json
import math
import resource
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from click.testing import CliRunner

from connectors.embedded.topics import EmbeddedTopics
from connectors.memory import MemoryTopics
from connectors.topics import Backlog, BrokerError, Record, TopicName
from connectors.wire import state_records
from connectors.wire.state_records import History
from connectors.worker.partition import Partition
from connectors.worker.settings import LoopSettings, WorkerSettings
from connectors.worker.worker import Worker
from streamgp.apps.console import NEEDS_OPERATOR
from streamgp.apps.worker import check as checking
from streamgp.apps.worker.check import findings
from streamgp.cli import worker
from streamgp.cli.main import cli
from streamgp.config.build import build_model
from streamgp.config.load import load_worker
from streamgp.interactive.messages import Event
from tests.connectors.worker.test_worker_drift import END, labelled
from tests.helpers.workbench import idle, put


class FakeTopics(MemoryTopics):
    """Topics of which something may be wrong."""

    said: Sequence[str] = ()
    warned: Sequence[str] = ()
    kept_s = math.inf
    error: BrokerError | None = None

    def problems(self) -> list[str]:
        if self.error is not None:
            raise self.error
        return list(self.said)

    def warnings(self) -> list[str]:
        return list(self.warned)

    def requests_kept_s(self) -> float:
        return self.kept_s


class Endless:
    """A reader of a topic without an end, and the clock while it is read."""

    caught_up = False
    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def poll(self, timeout_s: float) -> list[Record]:
        assert timeout_s > 0.0
        self.now += min(timeout_s, 0.05)
        return []

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def leave_like_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(status: int) -> None:
        raise SystemExit(status)

    monkeypatch.setattr(worker, "leave", leave)


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> FakeTopics:
    found = FakeTopics(4)
    monkeypatch.setattr(checking, "open_topics", lambda _config: found)
    return found


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "worker.toml"
    state = json.dumps(str(tmp_path / "state"))
    path.write_text(
        'broker = "kafka://a"\n[loop]\nexpires_after_s = 60\nanswer_horizon_s = 600\n'
        f"[worker]\nstate = {state}\n"
    )
    return path


def checked(*arguments: str | Path) -> tuple[int, dict[str, tuple[str, str]]]:
    """Return the exit status, and for each thing the verdict and the text."""
    result = CliRunner().invoke(cli, ["check", *map(str, arguments)])
    assert result.stderr == ""
    found = {}
    for line in result.stdout.splitlines():
        verdict, what, text = line.split(maxsplit=2)
        assert verdict in ("ok", "warning", "alert", "wrong")
        found[what.rstrip(":")] = (verdict, text)
    return result.exit_code, found


def worked_on(
    config: Path,
    topics: MemoryTopics,
    value: Any,
    partition: int = 2,
    change: Callable[[dict[str, Any]], object] = lambda _: None,
) -> None:
    """Leave what a worker of a configuration leaves behind, or with a changed head."""
    loops = LoopSettings(model=build_model(load_worker(config))).new(None)
    loops.on_event(Event(event_id="1", key="ann", x={"light": 1.0}, occurred_at=0.0), 0.0)
    [(_, parts)] = loops.changes_by_key()
    change(parts["head"])
    link = topics.client(group="streamgp", instance="w", max_records=1)
    link.poll(0.0)
    link.commit(
        [
            state_records.state("", "configuration", value, partition),
            *(state_records.state("ann", name, part, partition) for name, part in parts.items()),
        ]
    )
    link.close()


def test_everything_is_well(config: Path, tmp_path: Path, topics: FakeTopics) -> None:
    assert topics is not None
    status, found = checked(config)
    assert status == 0
    assert {verdict for verdict, _ in found.values()} == {"ok"}
    assert {name: text for name, (_, text) in found.items()} == {
        "configuration": f"{config}: gp, a learner for each key, query skeptical, challenge "
        "skeptical",
        "state": f"snapshots go into {tmp_path / 'state'}",
        "broker": "kafka://a",
        "topics": "all seven exist, with 4 partitions",
        "group": "0 workers running in group 'streamgp', 0 inputs waiting",
        "learned": "nothing yet",
    }
    assert not (tmp_path / "state").exists()  # it only looks


def test_another_number_of_partitions_than_the_topics_have_is_for_new_ones(
    config: Path, topics: FakeTopics
) -> None:
    assert topics is not None
    config.write_text(config.read_text() + "\n[topics]\npartitions = 6\n")
    _, found = checked(config)
    assert found["topics"] == (
        "ok",
        "all seven exist, with 4 partitions; topics.partitions = 6 is for new topics alone",
    )


def test_questions_that_are_deleted_while_they_are_open_are_a_warning(
    config: Path, topics: FakeTopics
) -> None:
    config.write_text('broker = "kafka://a"')  # questions stay open for ever
    topics.kept_s = 30 * 86_400.0
    status, found = checked(config)
    assert (status, found["topics"][0]) == (0, "warning")
    assert found["topics"][1].startswith("topic requests keeps a question for 30 d, and ")
    assert found["topics"][1].endswith(
        "set retention.ms there to -1 (for ever), or loop.expires_after_s to 2592000 or less"
    )


def test_what_workers_can_live_with_is_a_warning(config: Path, topics: FakeTopics) -> None:
    topics.warned = ["topic events takes large records"]
    status, found = checked(config)
    assert status == 0
    assert found["topics"] == ("warning", "topic events takes large records")
    assert found["learned"][0] == "ok"


def test_files_that_every_user_can_access_are_warned_of(topics: FakeTopics) -> None:
    assert topics is not None
    with TemporaryDirectory() as name:  # unlike tmp_path within a directory that is open to others
        root = Path(name)
        (root / "state").mkdir()
        keys, snapshot, config = root / "keys", root / "state" / "one", root / "worker.toml"
        keys.write_text(json.dumps({"ann": "0" * 64}))
        snapshot.touch()
        config.write_text(
            f'broker = "kafka://a"\n[worker]\nstate = "{root}/state"\n'
            f'[people]\nkeys_file = "{keys}"\n'
        )

        def warned(**modes: int) -> list[str]:
            for path in (root, root / "state", keys, snapshot, config):
                path.chmod(modes.get(path.name if path != root else "root", 0o700))
            return [
                finding.text.partition("; ")[0].removeprefix("every user of this machine can ")
                for finding in findings(config, broker=None, timeout_s=1.0)
                if finding.what == "files"
            ]

        everything = {"state": 0o777, "keys": 0o644, "one": 0o666, "worker.toml": 0o646}
        assert warned(root=0o755, **everything) == [
            "read the file of people.keys_file",
            f"write {config}",
            f"write {root}/state",
            f"write {snapshot}",
        ]
        assert (
            warned(root=0o755, state=0o755, one=0o640, keys=0o640, **{"worker.toml": 0o644}) == []
        )
        assert warned(root=0o755, one=0o666) == []
        assert warned(**everything) == []


def test_a_group_that_reads_other_topics_is_warned_of(
    config: Path, topics: FakeTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics, "read_besides", lambda group: [f"{group}-of-others"])
    status, found = checked(config)
    assert status == 0
    verdict, text = found["group"]
    assert verdict == "warning"
    assert text.startswith("other members of group 'streamgp' read streamgp-of-others: give each ")


def test_wrong_configuration_is_all_there_is_to_say(config: Path) -> None:
    config.write_text("seed = 1")
    status, found = checked(config)
    assert status == 2
    assert list(found) == ["configuration"]
    assert found["configuration"][0] == "wrong"
    assert "broker is missing" in found["configuration"][1]


def test_learner_that_cannot_be_built_is_wrong(config: Path) -> None:
    config.write_text('broker = "file://topics"\n[learner]\nname = "river.none.X"')
    status, found = checked(config)
    assert (status, found["configuration"][0]) == (2, "wrong")
    assert "river.none.X" in found["configuration"][1]


def test_metrics_without_their_package_are_wrong(
    config: Path, topics: FakeTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert topics is not None
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    assert checked(config)[0] == 0  # not needed
    config.write_text(config.read_text() + '[observe]\nbind = "127.0.0.1:9464"\n')
    status, found = checked(config)
    assert (status, list(found)) == (2, ["configuration"])
    assert found["configuration"][1] == (
        "observe.bind needs prometheus-client; install it with: pip install prometheus-client"
    )


def test_worker_that_forgets_nothing_is_warned_of(config: Path, topics: FakeTopics) -> None:
    assert topics is not None
    config.write_text('broker = "kafka://a"')
    result = CliRunner().invoke(cli, ["check", str(config)])
    assert result.exit_code == 0
    memory = [line for line in result.stdout.splitlines() if " memory:" in line]
    assert [line.split()[0] for line in memory] == ["warning", "warning"]
    assert "without loop.answer_horizon_s every event is remembered forever" in memory[0]
    assert "an unanswered request stays open for ever" in memory[1]


def test_password_that_crosses_the_network_as_it_is_is_warned_of(
    config: Path, topics: FakeTopics
) -> None:
    assert topics is not None
    config.write_text(
        '[broker]\nurl = "kafka://a"\n[broker.security]\nprotocol = "SASL_PLAINTEXT"\n'
        'mechanism = "PLAIN"\nusername = "ann"\npassword_env = "P"'
    )
    status, found = checked(config)
    assert (status, found["security"][0]) == (0, "warning")
    # Nothing is sent to topics that are elsewhere.
    assert "security" not in checked(config, "--broker", "file://topics")[1]


def test_secret_that_is_missing_is_wrong(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STREAMGP_TEST_NOT_SET", raising=False)
    config.write_text(
        '[broker]\nurl = "kafka://a"\n[broker.security]\nprotocol = "SASL_SSL"\n'
        'mechanism = "PLAIN"\nusername = "ann"\npassword_env = "STREAMGP_TEST_NOT_SET"'
    )
    status, found = checked(config)
    assert (status, found["broker"][0]) == (2, "wrong")
    assert "password_env: the environment variable that it names is not set" in found["broker"][1]


def test_lines_that_workers_have_written_themselves_are_no_inputs_that_wait(
    config: Path, topics: FakeTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    lags = {("consensus", 0): 3, ("events", 0): 1, ("answers", 1): 0}
    backlog = {place: Backlog(position=0, end=n, n_waiting=n) for place, n in lags.items()}
    monkeypatch.setattr(topics, "backlog", lambda _group: backlog)
    status, found = checked(config)
    assert found["group"][1].endswith(", 1 input waiting")
    alert = "no worker is running in group 'streamgp', with 1 input waiting"
    assert (status, found["inputs"]) == (NEEDS_OPERATOR, ("alert", alert))


@pytest.mark.parametrize("n_members", [0, 1])
def test_what_is_lost_is_told_while_a_worker_counts_as_running(
    n_members: int, config: Path, topics: FakeTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for ten seconds after a worker has refused to start for that reason."""
    monkeypatch.setattr(topics, "positions", lambda _group: {("events", 2): 17})
    monkeypatch.setattr(topics, "n_members", lambda _group: n_members)
    status, found = checked(config)
    assert (status, found["learned"][0]) == (2, "wrong")
    assert "partition 2: state and consensus hold nothing, and the" in found["learned"][1]


def test_first_batch_of_a_worker_is_not_taken_for_a_loss(
    config: Path, topics: FakeTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be committed between the looks at the topics and at the positions."""
    monkeypatch.setattr(topics, "n_members", lambda _group: 1)
    fingerprint = build_model(load_worker(config)).fingerprint()
    ours = {"fingerprint": fingerprint, "keyed": True, "group": "streamgp"}

    def positions(_group: str) -> dict[tuple[str, int], int]:
        worked_on(config, topics, ours)
        return {("events", 2): 1}

    monkeypatch.setattr(topics, "positions", positions)
    status, found = checked(config)
    assert (status, found["learned"][0]) == (0, "ok")


def test_group_is_told_as_it_is_after_the_wait(
    config: Path, topics: FakeTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group keeps a worker that was killed for ten seconds."""
    monkeypatch.setattr(checking, "_LOOK_EVERY_S", 0.0)
    n_members = iter([1, 1, 0])
    monkeypatch.setattr(topics, "n_members", lambda _group: next(n_members, 0))
    waiting = Backlog(position=0, end=5, n_waiting=5)
    monkeypatch.setattr(topics, "backlog", lambda _group: {("events", 0): waiting})
    status, found = checked(config)
    assert found["group"][1] == "0 workers running in group 'streamgp', 5 inputs waiting"
    alert = "no worker is running in group 'streamgp', with 5 inputs waiting"
    assert (status, found["inputs"]) == (NEEDS_OPERATOR, ("alert", alert))


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("file", "{here}/file is not a directory; name another place: "),
        ("file/below/it", "{here}/file is not a directory; name another place: "),
        ("link/below/it", "cannot keep state in {here}/link/below/it: "),
        ("x" * 300, "cannot keep state in {here}/xxx"),
        ("/proc/state", "cannot keep state in /proc/state: "),
        ("/proc/self/fd/state", "cannot keep state in /proc/self/fd/state: "),
    ],
    ids=lambda text: text[:20],
)
def test_state_that_cannot_be_kept_is_warned_of(
    state: str, why: str, config: Path, tmp_path: Path, topics: FakeTopics
) -> None:
    """Also where nothing but trying it shows it, as for who may do everything."""
    assert topics is not None
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    config.write_text(f'broker = "kafka://a"\n[worker]\nstate = "{tmp_path / state}"\n')
    before = sorted(tmp_path.iterdir())
    status, found = checked(config)
    assert (status, found["state"][0]) == (0, "warning")
    assert found["state"][1].startswith(why.format(here=tmp_path))
    assert "runs without snapshots" in found["state"][1]
    assert sorted(tmp_path.iterdir()) == before


def test_state_on_a_full_disk_is_warned_of(
    config: Path, tmp_path: Path, topics: FakeTopics
) -> None:
    assert topics is not None
    config.write_text(f'broker = "kafka://a"\n[worker]\nstate = "{tmp_path / "state"}"\n')
    before = sorted(tmp_path.iterdir())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        _, found = checked(config)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert found["state"][0] == "warning"
    assert f"cannot keep state in {tmp_path / 'state'}: File too large" in found["state"][1]
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("state", ["state", "some/where/below"])
def test_state_that_can_be_kept_is_not_made_yet(
    state: str, config: Path, tmp_path: Path, topics: FakeTopics
) -> None:
    assert topics is not None
    config.write_text(f'broker = "kafka://a"\n[worker]\nstate = "{tmp_path / state}"\n')
    before = sorted(tmp_path.iterdir())
    assert checked(config)[1]["state"] == ("ok", f"snapshots go into {tmp_path / state}")
    assert sorted(tmp_path.iterdir()) == before


def test_broker_that_cannot_be_reached_is_one_line(config: Path, topics: FakeTopics) -> None:
    topics.error = BrokerError("a:9092 cannot be reached:\nname is not known")
    status, found = checked(config)
    assert status == 2
    assert found["broker"] == ("wrong", "a:9092 cannot be reached: name is not known")
    assert "topics" not in found


def test_broker_that_lets_no_worker_write_is_wrong(
    config: Path, topics: FakeTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(group: str) -> None:
        raise BrokerError(f"broker a:9092 does not let {group} write")

    monkeypatch.setattr(topics, "check_writing", refuse)
    status, found = checked(config)
    assert status == 2
    assert found["broker"] == ("wrong", "broker a:9092 does not let streamgp write")


def test_each_problem_of_the_topics_is_a_line(config: Path, topics: FakeTopics) -> None:
    topics.said = ["topic events is missing", "topic state may not be read"]
    result = CliRunner().invoke(cli, ["check", str(config)])
    assert result.exit_code == 2
    assert [line.split(maxsplit=2)[2] for line in result.stdout.splitlines()[-2:]] == topics.said
    assert result.stdout.count("wrong") == 2


def test_one_learner_for_all_needs_one_partition(config: Path, topics: FakeTopics) -> None:
    assert topics is not None
    config.write_text(config.read_text() + "keyed = false\n")
    status, found = checked(config)
    assert status == 2
    assert found["topics"][1].startswith("the topics have 4 partitions, but one learner for all")


def test_same_configuration_is_recognised(config: Path, topics: FakeTopics) -> None:
    fingerprint = build_model(load_worker(config)).fingerprint()
    theirs = {"fingerprint": fingerprint, "keyed": True, "group": "streamgp", "streamgp": "0.0"}
    worked_on(config, topics, theirs)
    status, found = checked(config)
    assert (status, found["learned"]) == (0, ("ok", "with this configuration"))
    assert "partitions" not in found


def test_keys_that_other_clients_than_kafkas_own_have_placed_are_warned_of(
    config: Path, topics: FakeTopics
) -> None:
    fingerprint = build_model(load_worker(config)).fingerprint()
    theirs = {"fingerprint": fingerprint, "keyed": True, "group": "streamgp", "streamgp": "0.0"}
    worked_on(config, topics, theirs, partition=2)  # where they would place ann
    worked_on(config, topics, theirs, partition=1)
    status, found = checked(config)
    verdict, text = found["partitions"]
    assert (status, verdict) == (0, "warning")
    assert text.startswith(
        "1 learner in other partitions than Kafka's own clients choose, such as that of 'ann' in "
        "1, not in 2; let every producer choose as they do, by murmur2 (librdkafka: "
        "partitioner=murmur2_random)"
    )


def test_concept_drifts_are_counted(config: Path, topics: FakeTopics) -> None:
    config.write_text(f"warm_up = 0\n{config.read_text()}")
    put(topics, *labelled(range(END)))
    loops = LoopSettings(model=build_model(load_worker(config)))
    settings = WorkerSettings(group="streamgp", instance="w", leave=True)
    Worker(topics, loops, settings, state=None).run(idle(topics))
    status, found = checked(config)
    assert (status, found["drift"]) == (
        0,
        ("ok", "1 concept drift found, in 1 key; 149 labels are outdated"),
    )


@pytest.mark.parametrize(
    ("value", "difference"),
    [
        (
            {"fingerprint": "0123456789abcdef", "keyed": True},
            "fingerprint 0123456789abcdef; here fingerprint {}); go back to it, or take the new "
            "one over with `streamgp rebuild`; if you changed nothing, the defaults of this "
            "version of streamgp differ: its changelog says how to set the former ones",
        ),
        (
            {"fingerprint": None, "keyed": False},
            "keyed False; here keyed True); go back to it, or use other topics",
        ),
    ],
)
def test_changed_configuration_is_wrong(
    value: dict[str, Any], difference: str, config: Path, topics: FakeTopics
) -> None:
    fingerprint = build_model(load_worker(config)).fingerprint()
    worked_on(config, topics, {**value, "fingerprint": value["fingerprint"] or fingerprint})
    status, found = checked(config)
    assert (status, found["learned"][0]) == (2, "wrong")
    assert found["learned"][1] == (
        f"partition 2 was processed with another configuration ({difference.format(fingerprint)}"
    )


@pytest.mark.parametrize(
    "change", [lambda head: head.clear(), lambda head: head["model"]["taught"].clear()]
)
def test_learner_that_no_worker_could_restore_is_wrong(
    config: Path, topics: FakeTopics, change: Callable[[dict[str, Any]], object]
) -> None:
    fingerprint = build_model(load_worker(config)).fingerprint()
    theirs = {"fingerprint": fingerprint, "keyed": True, "group": "streamgp", "streamgp": "0.0"}
    worked_on(config, topics, theirs, change=change)
    status, found = checked(config)
    verdict, text = found["learned"]
    assert (status, verdict) == (2, "wrong")
    assert text.startswith("partition 2: ")
    assert "if a later version of streamgp has worked here, use that one" in text


@pytest.mark.parametrize(
    ("timeout_s", "expected"),
    [
        ("2", ("ok", "with this configuration")),
        (
            "1",
            (
                "warning",
                "what was learned could not be restored completely in 1 s, so it is unknown "
                "whether a worker can; give a longer --timeout",
            ),
        ),
    ],
)
def test_restoring_ends_in_time(
    timeout_s: str,
    expected: tuple[str, str],
    config: Path,
    topics: FakeTopics,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fingerprint = build_model(load_worker(config)).fingerprint()
    theirs = {"fingerprint": fingerprint, "keyed": True, "group": "streamgp", "streamgp": "0.0"}
    worked_on(config, topics, theirs)
    bring_up, now = Partition.bring_up_by_key, [0.0]

    def slowly(partition: Partition, history: History) -> Generator[None, None, bool]:
        for _ in bring_up(partition, history):
            now[0] += 1.5
            yield
        return True

    monkeypatch.setattr(Partition, "bring_up_by_key", slowly)
    monkeypatch.setattr(checking.time, "monotonic", lambda: now[0])
    status, found = checked(config, "--timeout", timeout_s)
    assert (status, found["learned"]) == (0, expected)


def test_restoring_shows_how_far_it_is(
    config: Path, topics: FakeTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many keys take as long to restore as to read, or longer."""
    shown: list[tuple[str, float]] = []

    @contextmanager
    def progress() -> Iterator[Callable[[str, float], None]]:
        yield lambda line, share: shown.append((line, share))

    monkeypatch.setattr(checking, "progress", progress)
    fingerprint = build_model(load_worker(config)).fingerprint()
    theirs = {"fingerprint": fingerprint, "keyed": True, "group": "streamgp", "streamgp": "0.0"}
    worked_on(config, topics, theirs)
    assert checked(config)[0] == 0
    line, share = shown[-1]
    assert line == "1 learner restored"
    assert 0.0 <= share <= 1.0


def test_changed_group_is_wrong(config: Path, topics: FakeTopics) -> None:
    """It would read all events again; a worker refuses, too."""
    fingerprint = build_model(load_worker(config)).fingerprint()
    worked_on(config, topics, {"fingerprint": fingerprint, "keyed": True, "group": "streamgp"})
    config.write_text(config.read_text() + 'group = "rooms"\n')
    status, found = checked(config)
    assert (status, found["group"][0]) == (2, "ok")
    assert found["learned"] == (
        "wrong",
        "partition 2 belongs to the group 'streamgp', this worker is in 'rooms', and two "
        "groups would corrupt each other's learners; use the group name 'streamgp', or "
        "other topics",
    )


def test_configuration_that_streamgp_does_not_write_is_wrong(
    config: Path, topics: FakeTopics
) -> None:
    worked_on(config, topics, 7)
    status, found = checked(config)
    assert (status, found["learned"][0]) == (2, "wrong")
    assert "state:2:0 is nothing that this streamgp writes" in found["learned"][1]


def test_looking_for_the_configuration_ends_in_time(
    config: Path, topics: FakeTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = Endless()

    def reader(_topics: Iterable[TopicName]) -> Endless:
        return endless

    monkeypatch.setattr(topics, "reader", reader)
    monkeypatch.setattr(checking, "time", endless)
    status, found = checked(config, "--timeout", "1")
    assert 1.0 <= endless.now < 1.1
    assert (status, found["learned"][0]) == (0, "warning")
    assert "could not be read completely in 1 s" in found["learned"][1]


def test_topics_in_a_directory_are_told_what_is_missing(config: Path, tmp_path: Path) -> None:
    url = f"file://{tmp_path / 'topics'}"
    status, found = checked(config, "--broker", url)
    assert (status, found["topics"][0]) == (2, "wrong")
    EmbeddedTopics(tmp_path / "topics").create()
    status, found = checked(config, "--broker", url)
    assert status == 0
    assert found["topics"] == ("ok", "all seven exist, with 1 partition")


def test_missing_topics_are_made_where_that_is_wanted(tmp_path: Path) -> None:
    config = tmp_path / "worker.toml"
    config.write_text(
        f'broker = "file://{tmp_path}/topics"\n[worker]\nstate = "{tmp_path}/state"\n'
    )
    done = CliRunner().invoke(cli, ["check", str(config), "--create-topics"])
    assert done.exit_code == 0, done.output
    assert f"ok       created:        made {tmp_path}/topics" in done.output.splitlines()
    again = CliRunner().invoke(cli, ["check", str(config), "--create-topics"])
    assert "created" not in again.output
