"""Backups: what is restored predicts as what was never stopped, and what cannot be is refused."""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from connectors.embedded.topics import EmbeddedTopics
from connectors.storage import backups
from connectors.storage.backups import MANIFEST, Manifest
from connectors.storage.snapshots import StateError
from connectors.topics import Outgoing, Topics
from connectors.wire.codec import encode
from connectors.worker.losses import LostRecordsError
from streamgp.apps.maintenance.forget import NOT_YET
from streamgp.interactive.messages import Answer, Challenge, Event, LabelRequest, Prediction
from tests.helpers.small_deployment import Cut, OpenTopics, Small
from tests.helpers.topics import wait_until, write

KEYS = ("ann", "bob", "eve", "zoe")
N = 160
QUESTIONS = LabelRequest | Challenge
TEXT = """\
broker = "kafka://nowhere"
seed = 1
warm_up = 6
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    found = Small(tmp_path, monkeypatch, n_partitions=2)
    found.config_file.write_text(TEXT)
    return found


def inputs(small: Small) -> list[Event | Answer]:
    """Return events of four people, some with a label, of which one in eight is wrong."""
    rng = random.Random(7)
    found: list[Event | Answer] = []
    for i in range(N):
        key = KEYS[i % len(KEYS)]
        x = {"light": rng.random(), "noise": rng.random()}
        y = ("hall", "den")[(x["light"] > 0.5) ^ (rng.random() < 0.125)]
        label = {"y": y} if rng.random() < 0.4 and i < N - 1 else {}
        at = small.sent_at + 0.01 * i
        found.append(small.event(f"e{i}", key, x=x, occurred_at=at, **label))
    return found


def predictions(small: Small, start: int) -> dict[str, bytes]:
    """Return the predictions of the events from one on, byte for byte."""
    wanted = {f"e{i}" for i in range(start, N)}
    return {
        m.event_id: encode(m)
        for m in small.said("predictions")
        if isinstance(m, Prediction) and m.event_id in wanted
    }


@contextmanager
def elsewhere(small: Small, topics: Topics) -> Iterator[None]:
    """Have the deployment work on other topics for a while."""
    before, small.topics = small.topics, topics  # type: ignore[assignment]
    yield
    small.topics = before


def answers(small: Small, kinds: Any = LabelRequest) -> list[Answer]:
    """Return answers to everything that was asked, in its order."""
    return [
        Answer(
            answer_id=f"to {m.request_id}",
            request_id=m.request_id,
            event_id=m.event_id,
            key=m.key,
            y="hall",
            annotator="eve",
            answered_at=small.sent_at + 5.0,
        )
        for m in small.said("requests")
        if isinstance(m, kinds)
    ]


@pytest.mark.parametrize("n_partitions", [2, 3, 1])
def test_a_restored_deployment_predicts_as_the_one_that_went_on(
    small: Small, n_partitions: int
) -> None:
    sent = inputs(small)
    half = N // 2
    early = Answer(
        answer_id="early",
        event_id=f"e{N - 1}",
        key=KEYS[-1],
        y="den",
        annotator="eve",
        answered_at=small.sent_at,
    )
    small.put(*sent[:half], early)
    small.work()
    said = small.done("backup", small.path / "backup")
    assert "4 learners with" in said
    rest = [*answers(small), *sent[half:]]
    assert len(rest) > half  # something was asked
    small.put(*rest)
    small.work()
    expected = predictions(small, half)
    assert len(expected) == N - half
    with elsewhere(small, OpenTopics(n_partitions)):
        said = small.done("restore", small.path / "backup", "--yes")
        assert f"restored to {n_partitions} partition" in said
        small.put(*rest)
        small.work()
        assert predictions(small, half) == expected
        assert small.records("dead-letters") == []
        again = small.done("backup", small.path / "again")
        assert "4 learners with" in again


@pytest.mark.parametrize("n_partitions", [2, 3, 1])
def test_two_learners_of_a_key_are_restored_beside_each_other_or_not_at_all(
    small: Small, n_partitions: int
) -> None:
    event = encode(small.event("e1", "ann", y="den"))
    for place in (0, 1):  # by producers that choose partitions differently
        write(small.topics, Outgoing(topic="events", key=b"ann", value=event, partition=place))
    small.work()
    small.done("backup", small.path / "backup")
    before = [(r.partition, r.key, r.value) for r in small.records("consensus")]
    with elsewhere(small, OpenTopics(n_partitions)):
        result = small.call("restore", small.path / "backup", "--yes")
        if n_partitions == 2:
            assert [(r.partition, r.key, r.value) for r in small.records("consensus")] == before
        else:
            assert "'ann' has a learner in each of the partitions 0 and 1" in result.stderr
            assert "restore it into topics with 2 partitions" in result.stderr
            assert small.records("consensus", "state") == []


def test_a_person_who_was_forgotten_since_is_restored_and_can_be_forgotten_again(
    small: Small,
) -> None:
    small.put(small.event("e1", "ann", y="den"), small.event("e2", "bob", y="den"))
    small.work()
    small.done("backup", small.path / "backup")
    assert small.call("forget", "ann", "--yes").exit_code == NOT_YET
    small.work()
    with elsewhere(small, OpenTopics(2)):
        said = small.done("restore", small.path / "backup", "--yes")
        assert "\nit still holds what was forgotten or taken back since then: " in said
        assert any(m.key == "ann" for m in small.said("consensus"))
        assert "forgot 'ann': 1 label" in small.done_beside_a_worker("forget", "ann", "--yes")


def test_a_backup_moves_between_kafka_and_a_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From four partitions into a database, and from there into three."""
    small = Small(tmp_path, monkeypatch)
    small.config_file.write_text(TEXT)
    sent = inputs(small)
    third = N // 4
    small.put(*sent[:third])
    small.work()
    small.done("backup", tmp_path / "first")
    small.put(*sent[third:])
    small.work()
    expected = predictions(small, third)
    text = small.config_file.read_text()
    small.config_file.write_text(text.replace("kafka://nowhere", f"file://{tmp_path}/topics"))
    with closing(EmbeddedTopics(tmp_path / "topics")) as topics, elsewhere(small, topics):
        topics.create()
        small.done("restore", tmp_path / "first", "--yes")
        small.put(*sent[third : 2 * third])
        small.work()
        small.done("backup", tmp_path / "second")
    small.config_file.write_text(text)
    with elsewhere(small, OpenTopics(3)):
        small.done("restore", tmp_path / "second", "--yes")
        small.put(*sent[2 * third :])
        small.work()
        found = predictions(small, 2 * third)
    assert found == {name: expected[name] for name in found}
    assert len(found) == N - 2 * third


@pytest.mark.parametrize("n_partitions", [2, 3])
def test_questions_that_were_open_are_asked_again_after_a_restore(
    small: Small, n_partitions: int
) -> None:
    """As they were asked; those that were answered or have ended are not."""
    small.put(*inputs(small))
    small.work()
    first = answers(small, QUESTIONS)[0]
    small.put(first)
    small.work()
    # The answer may be challenged.
    is_open = [answer for answer in answers(small, QUESTIONS) if answer != first]
    n_open = f"and {len(is_open)} open questions"
    assert f"{n_open} in 2 partitions" in small.done("backup", small.path / "backup")
    with elsewhere(small, OpenTopics(n_partitions)):
        said = small.done("restore", small.path / "backup", "--yes")
        assert f"{n_open}, of" in said
        found = answers(small, QUESTIONS)
        assert sorted(found, key=str) == sorted(is_open, key=str)
        small.put(*found)
        small.work()
        assert small.records("dead-letters") == []


def test_questions_that_the_topic_has_dropped_are_reported(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.put(*inputs(small))
    small.work()
    n, reader, emptied = len(answers(small, QUESTIONS)), small.topics.reader, OpenTopics(2)
    monkeypatch.setattr(
        small.topics,
        "reader",
        lambda names: (emptied.reader if names == ("requests",) else reader)(names),
    )
    said = small.done("backup", small.path / "backup")
    assert f"{n} open questions no longer in topic requests, and not in the backup" in said
    assert "and 0 open questions in 2 partitions" in said


def test_a_backup_beside_a_worker_is_of_one_moment(small: Small) -> None:
    sent = inputs(small)
    with small.working():
        for event in sent[: N // 2]:
            small.put(event)
        wait_until(lambda: len(small.records("predictions")) > 0)
        small.done("backup", small.path / "backup")
        small.put(*sent[N // 2 :])
        wait_until(lambda: not any(small.topics.lags("streamgp").values()))
    manifest = json.loads((small.path / "backup" / MANIFEST).read_text())
    left = [
        record
        for record in small.records("events")
        if record.offset >= manifest["positions"]["events"][str(record.partition)]
    ]
    expected = predictions(small, 0)
    with elsewhere(small, OpenTopics(2)):
        small.done("restore", small.path / "backup", "--yes")
        for record in left:
            small.put_bytes("events", (record.key or b"").decode(), record.value)
        small.work()
        found = predictions(small, 0)
    assert len(found) == len(left) >= N // 2
    assert len(left) < N
    assert found == {name: expected[name] for name in found}


@pytest.mark.parametrize("key", [b"ann", b"ann\x1fe0\x1f0"])
def test_what_was_asked_to_be_taken_back_is_taken_back_after_a_restore(
    small: Small, key: bytes
) -> None:
    small.put(*(small.event(f"e{i}", y="hall") for i in range(6)))
    small.work()
    small.put_bytes("consensus", key.decode(), None)
    small.done("backup", small.path / "backup")
    with elsewhere(small, OpenTopics(2)):
        small.done("restore", small.path / "backup", "--yes")
        small.work()
        small.put(small.event("last"))
        small.work()
        [prediction] = [m for m in small.said("predictions") if isinstance(m, Prediction)]
        assert prediction.n_learned == (0 if key == b"ann" else 5)


def test_what_a_directory_was_asked_to_take_back_is_taken_back_after_a_restore(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Small(tmp_path, monkeypatch)
    monkeypatch.setattr(small, "topics", EmbeddedTopics(tmp_path / "topics"))
    small.topics.create()
    small.put(*(small.event(f"e{i}", y="hall") for i in range(6)))
    small.work()
    small.put_bytes("consensus", "ann", None)
    small.topics.close()
    small.done("backup", tmp_path / "backup")
    with elsewhere(small, OpenTopics(2)):
        small.done("restore", tmp_path / "backup", "--yes")
        small.work()
        small.put(small.event("last"))
        small.work()
        [prediction] = [m for m in small.said("predictions") if isinstance(m, Prediction)]
        assert prediction.n_learned == 0


# --- what is refused


@pytest.fixture
def backed_up(small: Small) -> Path:
    small.put(*inputs(small)[:40])
    small.work()
    small.done("backup", small.path / "backup")
    return small.path / "backup"


def test_nothing_is_backed_up_over_something_else(small: Small, backed_up: Path) -> None:
    assert "is not empty; name a new or an empty directory" in small.wrong("backup", backed_up)


def test_a_backup_is_its_owners_alone(backed_up: Path) -> None:
    for path in (backed_up, *backed_up.iterdir()):
        assert path.stat().st_mode & 0o077 == 0


def test_the_file_of_positions_has_every_partition_of_the_inputs(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.put(*inputs(small)[:40])
    small.work()
    found = small.topics.checkpoint("streamgp")
    # As on Kafka, where a group has no position in a partition from which it has read nothing.
    started = {place: at for place, at in found.positions.items() if at > 0}
    monkeypatch.setattr(
        small.topics, "checkpoint", lambda _: msgspec.structs.replace(found, positions=started)
    )
    small.done("backup", small.path / "backup")
    lines = (small.path / "backup" / "positions.csv").read_text().splitlines()
    assert ("answers", 0) not in started
    assert lines == [
        f"{topic},{n},{found.positions[topic, n]}"
        for topic in ("answers", "events")
        for n in (0, 1)
    ]


def test_a_backup_whose_positions_are_not_written_is_none(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.put(*inputs(small)[:40])
    small.work()
    write = backups.write_snapshot

    def fail(path: Path, data: bytes) -> None:
        if path.name == "positions.csv":
            raise StateError("cannot write positions.csv: no space left")
        write(path, data)

    monkeypatch.setattr(backups, "write_snapshot", fail)
    assert small.call("backup", small.path / "backup").exit_code != 0
    assert not (small.path / "backup" / MANIFEST).exists()


def test_a_directory_of_no_use_is_refused_before_the_topics_are_read(small: Small) -> None:
    # Nothing has been learned, which only the topics tell.
    assert f"{small.path} is not empty" in small.wrong("backup", small.path)
    file = small.config_file
    assert f"{file} is not a directory" in small.wrong("backup", file / "monday")


def test_nothing_learned_is_not_backed_up(small: Small) -> None:
    assert "nothing to back up" in small.wrong("backup", small.path / "backup")


def test_topics_that_have_lost_something_are_not_backed_up(small: Small, backed_up: Path) -> None:
    small.topics.lose("state")
    assert "state was deleted, emptied or cut" in small.wrong("backup", small.path / "other")
    assert backed_up.exists()


@pytest.mark.parametrize("what", ["state", "consensus", "manifest"])
def test_every_damage_to_a_file_is_noticed(small: Small, backed_up: Path, what: str) -> None:
    small.topics = OpenTopics(2)
    path = backed_up / (MANIFEST if what == "manifest" else f"partition-0.{what}.jsonl")
    data = path.read_bytes()
    for at in range(0, len(data) - 1, 1 + len(data) // 12):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert "damaged" in small.wrong("restore", backed_up, "--yes")
    path.write_bytes(data[: len(data) // 2])
    assert "damaged" in small.wrong("restore", backed_up, "--yes")
    path.unlink()
    assert "is missing" in small.wrong("restore", backed_up, "--yes")
    assert small.records("state", "consensus") == []


@pytest.mark.parametrize(
    "forged",
    [
        {"name": "../worker.toml"},
        {"name": "/etc/hostname"},
        {"topic": "events", "name": "partition-0.events.jsonl"},
        {"partition": 2, "name": "partition-2.state.jsonl"},
        {"partition": -1, "name": "partition--1.state.jsonl"},
    ],
)
def test_a_manifest_leads_to_the_files_of_its_backup_only(
    small: Small, backed_up: Path, forged: dict[str, Any]
) -> None:
    small.topics = OpenTopics(2)
    files = manifest_of(backed_up).files
    forge(backed_up, files=[msgspec.structs.replace(files[0], **forged), *files[1:]])
    told = small.wrong("restore", backed_up, "--yes")
    assert "expected a file of a backup of 2 partitions" in told
    assert small.records("state", "consensus") == []


def manifest_of(backup: Path) -> Manifest:
    return msgspec.json.decode((backup / MANIFEST).read_bytes(), type=Manifest)


def forge(backup: Path, **fields: Any) -> None:
    """Change a manifest, and make its checksum fit."""
    manifest = msgspec.structs.replace(manifest_of(backup), **fields, checksum="")
    checksum = hashlib.sha256(msgspec.json.encode(manifest)).hexdigest()
    manifest = msgspec.structs.replace(manifest, checksum=checksum)
    (backup / MANIFEST).write_bytes(msgspec.json.encode(manifest))


def test_a_manifest_without_files_or_positions_is_refused_in_one_line(
    small: Small, backed_up: Path
) -> None:
    positions = small.topics.positions("streamgp")
    assert any(positions.values())
    forge(backed_up, positions={}, at=1e300)
    small.topics.lose("state", "consensus")
    assert "older than the positions" in small.wrong("restore", backed_up, "--yes")
    forge(backed_up, files=[])
    assert "no partition has a record of its conf" in small.wrong("restore", backed_up, "--yes")
    assert small.records("state", "consensus") == []


def test_a_record_of_state_that_no_worker_writes_is_refused_in_one_line(
    small: Small, backed_up: Path
) -> None:
    small.topics = OpenTopics(2)
    files = {file.name: file for file in manifest_of(backed_up).files}
    first = files.pop("partition-0.state.jsonl")
    data = (backed_up / first.name).read_bytes() + b'{"record":{"key":"ann","value":{}}}\n'
    (backed_up / first.name).write_bytes(data)
    sizes = {"n_records": data.count(b"\n"), "n_bytes": len(data)}
    digest = hashlib.sha256(data).hexdigest()
    forge(
        backed_up, files=[msgspec.structs.replace(first, **sizes, sha256=digest), *files.values()]
    )
    assert "is no record of state" in small.wrong("restore", backed_up, "--yes")
    assert small.records("state", "consensus") == []


@pytest.mark.parametrize("name", [MANIFEST, "partition-0.state.jsonl"])
def test_a_pipe_in_a_backup_is_refused_and_not_waited_for(
    small: Small, backed_up: Path, name: str
) -> None:
    small.topics = OpenTopics(2)
    (backed_up / name).unlink()
    os.mkfifo(backed_up / name)
    assert f"{name} is no file" in small.wrong("restore", backed_up, "--yes")


def test_a_backup_of_a_later_version_is_refused(small: Small, backed_up: Path) -> None:
    path = backed_up / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 2}))
    assert "has version 2, expected 1 at most; use the version" in small.wrong(
        "restore", backed_up, "--yes"
    )


def test_topics_that_hold_something_are_not_written_over(small: Small, backed_up: Path) -> None:
    before = small.records("state", "consensus")
    assert "topics state and consensus are not empty" in small.wrong("restore", backed_up, "--yes")
    assert small.records("state", "consensus") == before


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("seed = 2\n", "another configuration"),
        ("[worker]\nkeyed = false\n", "another configuration"),
        ('[learner]\nname = "ensemble"\n', "another configuration"),
        ('[worker]\ngroup = "rooms"\n', "set worker.group to 'streamgp'"),
    ],
)
def test_another_configuration_is_refused(
    small: Small, backed_up: Path, text: str, reason: str
) -> None:
    small.topics = OpenTopics(2)
    head = TEXT.replace("seed = 1\n", "") if text.startswith("seed") else TEXT
    at = head.index("warm_up") if text.startswith("seed") else len(head)
    small.config_file.write_text(head[:at] + text + head[at:])
    assert reason in small.wrong("restore", backed_up, "--yes")
    assert small.records("state", "consensus") == []


def test_a_backup_older_than_the_positions_is_refused(small: Small, backed_up: Path) -> None:
    small.put(*inputs(small)[40:44])
    small.work()
    small.topics.make_again("state", "consensus")
    said = small.wrong("restore", backed_up, "--yes")
    assert f"{backed_up} is older than the positions of group streamgp" in said
    assert small.records("state", "consensus") == []


def test_a_backup_of_just_these_positions_mends_what_was_lost(
    small: Small, backed_up: Path
) -> None:
    sent = inputs(small)
    small.topics.make_again("state", "consensus")
    small.done("restore", backed_up, "--yes")
    small.put(*sent[40:])
    small.work()
    twin = Small.__new__(Small)
    twin.__dict__ = small.__dict__ | {"topics": OpenTopics(2)}
    twin.put(*sent)
    twin.work()
    assert predictions(small, 40) == predictions(twin, 40)


def test_nothing_is_restored_while_a_worker_runs(small: Small, backed_up: Path) -> None:
    with small.working():
        assert "still running" in small.wrong("restore", backed_up, "--yes")


def test_nothing_is_restored_unless_the_user_confirms(small: Small, backed_up: Path) -> None:
    small.topics = OpenTopics(2)
    assert small.done("restore", backed_up, answer="n\n").endswith("changed nothing\n")
    assert small.records("state", "consensus") == []


@pytest.mark.parametrize("n_written", [1, 2, 9])
def test_an_interrupted_restore_stops_all_workers_until_it_is_repeated(
    small: Small, backed_up: Path, monkeypatch: pytest.MonkeyPatch, n_written: int
) -> None:
    expected = small.records("consensus")
    small.topics = OpenTopics(2)
    cut: Any = Cut(small.topics.writer, n_written)
    with monkeypatch.context() as patched:
        patched.setattr(small.topics, "writer", cut)
        assert small.call("restore", str(backed_up), "--yes").exit_code == 75
    with pytest.raises(LostRecordsError, match="`streamgp restore` was interrupted; run it again"):
        small.work()
    assert "`streamgp restore` was interrupted" in small.wrong("recover", "--yes")
    small.done("restore", backed_up, "--yes")
    small.put(*inputs(small)[40:])
    small.work()
    assert len(predictions(small, 40)) == N - 40
    values = {record.key: record.value for record in small.records("consensus")}
    assert all(values[record.key] == record.value for record in expected if record.value)


def interrupt(
    small: Small,
    backed_up: Path,
    monkeypatch: pytest.MonkeyPatch,
    n_partitions: int,
    n_lacking: int,
) -> None:
    """Restore into new topics, interrupted before the last records."""
    n_left, status = 1_000_000, 0
    for _ in range(2):
        small.topics = OpenTopics(n_partitions)
        cut: Any = Cut(small.topics.writer, n_left)
        with monkeypatch.context() as patched:
            patched.setattr(small.topics, "writer", cut)
            assert small.call("restore", str(backed_up), "--yes").exit_code == status
        n_left, status = n_left - cut.n_left - n_lacking, 75


@pytest.mark.parametrize(("n_partitions", "n_signed"), [(2, 1), (3, 1), (3, 2)])
def test_a_restore_interrupted_among_its_signatures_is_completed_while_workers_went_on(
    small: Small,
    backed_up: Path,
    monkeypatch: pytest.MonkeyPatch,
    n_partitions: int,
    n_signed: int,
) -> None:
    sent = inputs(small)[40:]
    small.put(*sent)
    small.work()
    expected = predictions(small, 40)
    interrupt(small, backed_up, monkeypatch, n_partitions, n_partitions - n_signed)
    small.put(*sent)
    # A worker of the first partition alone may work: what it needs is complete.
    others = [
        small.topics.client(group="streamgp", instance=f"{name}", max_records=1)
        for name in [f"z{n}" for n in range(1, n_partitions)]
    ]
    small.worker().run(lambda: small.topics.lags("streamgp")["events", 0] == 0)
    for other in others:
        other.close(leave=True)
    said = small.done("restore", backed_up, "--yes")
    assert f"has completed {n_signed} partition{'s' * (n_signed > 1)} of {n_partitions}" in said
    small.work()
    assert predictions(small, 40) == expected
    assert "are not empty (partition 0)" in small.wrong("restore", str(backed_up), "--yes")


def test_a_partition_that_a_restore_was_about_to_mark_is_refused(
    small: Small, backed_up: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.topics = OpenTopics(2)
    cut: Any = Cut(small.topics.writer, 1)
    with monkeypatch.context() as patched:
        patched.setattr(small.topics, "writer", cut)
        assert small.call("restore", str(backed_up), "--yes").exit_code == 75
    with (
        # The other worker has the partition with the mark.
        closing(small.topics.client(group="streamgp", instance="a", max_records=1)),
        pytest.raises(LostRecordsError, match="partition 0: an earlier `streamgp restore` was"),
    ):
        small.work()
    small.done("restore", backed_up, "--yes")


def test_an_interrupted_restore_of_another_backup_is_refused(
    small: Small, backed_up: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.put(*inputs(small)[40:80])
    small.work()
    later = small.path / "later"
    small.done("backup", later)
    interrupt(small, backed_up, monkeypatch, 2, 2)
    assert "of another backup was interrupted: run it again with that one" in small.wrong(
        "restore", later, "--yes"
    )
    small.done("restore", backed_up, "--yes")


class Busy:
    """Takes checkpoints while workers go on, and the broker compacts what they have replaced."""

    def __init__(self, small: Small, n_before: int, n_times: int, *, n_after: int = 20) -> None:
        self.n_after = n_after
        self.small = small
        self.checkpoint = small.topics.checkpoint
        self.left = inputs(small)[40:]
        self.n_before, self.n_times, self.n_taken = n_before, n_times, 0

    def __call__(self, group: str) -> Any:
        self.n_taken += 1
        if self.n_taken > self.n_times:
            return self.checkpoint(group)
        self._work(self.n_before)
        taken = self.checkpoint(group)
        self._work(self.n_after)
        self.small.topics.compact()
        return taken

    def _work(self, n: int) -> None:
        self.small.put(*self.left[:n])
        self.left = self.left[n:]
        self.small.work()


@pytest.mark.usefixtures("backed_up")
@pytest.mark.parametrize(("n_before", "n_times"), [(0, 1), (20, 1), (20, 2), (0, 5)])
def test_a_backup_is_whole_though_the_broker_compacts_what_workers_replace_meanwhile(
    small: Small, monkeypatch: pytest.MonkeyPatch, n_before: int, n_times: int
) -> None:
    later = small.path / "later"
    with monkeypatch.context() as patched:
        busy = Busy(small, n_before, n_times)
        patched.setattr(small.topics, "checkpoint", busy)
        patched.setattr(small.topics, "n_members", lambda _: 1)
        small.done("backup", later)
    assert busy.n_taken == (1 if n_before == 0 else n_times + 1)
    start = json.loads((later / MANIFEST).read_text())["positions"]["events"]
    left = [r for r in small.records("events") if r.offset >= start[str(r.partition)]]
    small.put(*busy.left)
    small.work()
    expected = predictions(small, N - len(left) - len(busy.left))
    small.topics = OpenTopics(2)
    small.done("restore", later, "--yes")
    small.put(*inputs(small)[N - len(left) - len(busy.left) :])
    small.work()
    assert predictions(small, 0) == expected


def test_a_broker_that_compacts_faster_than_it_can_be_read_is_told(
    small: Small, backed_up: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small.topics, "checkpoint", Busy(small, 9, 9, n_after=9))
    monkeypatch.setattr(small.topics, "n_members", lambda _: 1)
    said = small.wrong("backup", backed_up.with_name("later"))
    assert "faster than they can be read; try again when less comes in, or stop the workers" in said
