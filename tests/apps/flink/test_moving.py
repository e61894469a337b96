"""What is looked at before a deployment moves to Flink, and who keeps away while it is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from connectors.keyed_state import FORGOTTEN_KEY
from connectors.topics import Place
from connectors.wire import state_records
from connectors.wire.state_records import UNHEEDED, value_of
from connectors.worker.compatibility import UnfitTopicsError
from connectors.worker.losses import FORGOTTEN
from streamgp.apps.deployment.deployment import Deployment, build_loops, write_all
from streamgp.apps.flink.cluster import Cluster, last_checkpoint
from streamgp.apps.flink.moving import Move, is_mark
from streamgp.config.load import parse_worker
from streamgp.config.validation import ConfigError
from tests.helpers.small_deployment import Small

FLINK_KEEPS_IT = "Flink keeps what is learned; go on with `streamgp flink`"


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    small = Small(tmp_path, monkeypatch, n_partitions=2)
    for key in ("ann", "bob"):
        for n in range(4):
            small.put(small.event(f"e{n}", key, y=("hall", "den")[n % 2]))
    return small


def move(small: Small) -> Move:
    source = str(small.config_file)
    config = parse_worker(small.config_file.read_text(), source=source)
    return Move(
        there=Deployment(config=config, topics=small.topics),
        loops=build_loops(config, source=source),
        cluster=Cluster(checkpoints=small.path / "flink", remote=None, flink={}),
        stop=lambda: False,
    )


def test_what_belongs_to_no_key_is_found(small: Small) -> None:
    small.work()
    found = move(small).learned()
    assert found.keys() == {record.partition for record in small.records("state")}
    assert all(b'"group":"streamgp"' in configuration for configuration, _ in found.values())


def test_where_no_worker_was_there_is_nothing_to_take_over(small: Small) -> None:
    with pytest.raises(ConfigError, match="has learned anything; start without --take-over"):
        move(small).learned()


def test_what_another_configuration_has_learned_is_not_taken_over(small: Small) -> None:
    small.work()
    small.config_file.write_text(small.config_file.read_text().replace('"never"', '"always"'))
    with pytest.raises(ConfigError, match="was worked on with another configuration"):
        move(small).learned()


def test_deletions_that_wait_are_the_workers_business(small: Small) -> None:
    small.work()
    small.put_bytes("consensus", "ann", None)
    with pytest.raises(ConfigError, match="something was deleted that the workers have not heeded"):
        move(small).learned()
    small.work()
    assert move(small).learned()


def test_no_worker_and_no_command_touches_what_flink_keeps(small: Small) -> None:
    small.work()
    move(small).mark()
    assert sum(is_mark(record) for record in small.records("state")) == 2
    with pytest.raises(UnfitTopicsError, match=FLINK_KEEPS_IT):
        small.work()
    for words in (
        ("backup", "there"),
        ("retract", "--annotator", "ann"),
        ("recover",),
        ("rebuild", "--learner", small.config_file),
    ):
        result = small.call(*words)
        assert result.exit_code != 0
        assert FLINK_KEEPS_IT in result.stderr, words
    with pytest.raises(ConfigError, match=FLINK_KEEPS_IT):
        move(small).learned()


def test_state_from_before_is_erased_but_for_the_marks(small: Small) -> None:
    small.work()
    there = move(small)
    there.mark()
    there.erase_state()
    left = {}
    for record in small.records("state"):
        left[record.partition, record.key] = record
    assert all(is_mark(record) for record in left.values() if record.value is not None)


def test_where_the_way_back_was_interrupted_no_job_works(small: Small) -> None:
    there = move(small)
    there.check_not_begun()
    (small.path / "flink").mkdir()
    (small.path / "flink/hand-back.json").write_text("[]")
    with pytest.raises(ConfigError, match="`streamgp flink --hand-back` was interrupted; run it"):
        there.check_not_begun()


# --- what was interrupted


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Has a savepoint written in place of the job that takes over; lists where."""
    written: list[str] = []

    def load(self: Move, _: Any) -> str:
        directory = self.cluster.checkpoints / f"taking-over/savepoint-{len(written)}"
        directory.mkdir(parents=True)
        (directory / "_metadata").touch()
        written.append(directory.as_uri())
        return written[-1]

    monkeypatch.setattr(Move, "_load", load)
    return written


def no_job(*_: Any) -> Any:
    raise AssertionError("no job is made")


def take_over(small: Small, saved_at: str | None = None) -> str:
    return move(small).take_over(no_job, saved_at=saved_at)


def kill_take_over_at(
    small: Small, monkeypatch: pytest.MonkeyPatch, owner: type, step: str
) -> None:
    """Take over up to a step, before which nothing is there to go on from."""
    with monkeypatch.context() as killed:
        killed.setattr(owner, step, no_job)
        with pytest.raises(AssertionError):
            take_over(small)
    assert last_checkpoint(small.path / "flink") is None


def checkpoint(small: Small, name: str) -> str:
    (small.path / "flink" / name).mkdir(parents=True)
    (small.path / "flink" / name / "_metadata").touch()
    return (small.path / "flink" / name).as_uri()


def test_what_is_taken_over_counts_once_the_topics_say_so(small: Small, loads: list[str]) -> None:
    small.work()
    saved_at = take_over(small)
    assert saved_at == loads[0].replace("taking-over", "taken-over")
    assert last_checkpoint(small.path / "flink") == saved_at
    assert move(small).kept_by_flink() == {0, 1}


def test_what_was_loaded_before_workers_went_on_is_loaded_again(
    small: Small, loads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small.work()
    kill_take_over_at(small, monkeypatch, Move, "mark")
    small.put(small.event("later", "ann", y="hall"))
    small.work()
    saved_at = take_over(small)
    assert loads[1].replace("taking-over", "taken-over") == saved_at
    assert [path.name for path in (small.path / "flink/taken-over").iterdir()] == ["savepoint-1"]


def test_what_was_loaded_before_the_topics_said_so_is_kept(
    small: Small, loads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small.work()
    kill_take_over_at(small, monkeypatch, Path, "rename")
    saved_at = take_over(small)
    assert last_checkpoint(small.path / "flink") == saved_at
    assert take_over(small, saved_at) == saved_at  # and once more
    assert len(loads) == 1


def test_a_checkpoint_that_goes_with_no_topic_is_not_taken_over(small: Small) -> None:
    small.work()
    there_is = checkpoint(small, "job/chk-1")
    with pytest.raises(ConfigError, match=f"there is {there_is} to go on from; start without"):
        take_over(small, there_is)


def test_where_flink_has_taken_over_its_savepoint_is_asked_for(small: Small) -> None:
    small.work()
    move(small).mark()
    with pytest.raises(ConfigError, match="Flink has taken over already; name what was saved by"):
        take_over(small)


def test_what_workers_keep_is_not_handed_back(small: Small) -> None:
    small.work()
    before = small.records("state")
    with pytest.raises(ConfigError, match="the topics say that workers keep what is learned"):
        move(small).hand_back(no_job, begin_at=checkpoint(small, "job/chk-1"))
    assert small.records("state") == before


@pytest.mark.parametrize("has_plan", [False, True])
def test_nothing_is_handed_back_without_a_checkpoint(small: Small, *, has_plan: bool) -> None:
    small.work()
    there = move(small)
    there.mark()
    (small.path / "flink").mkdir()
    if has_plan:
        (small.path / "flink/hand-back.json").write_text("[]")
    before = small.records("state")
    with pytest.raises(ConfigError, match="no checkpoint or savepoint to hand back; name it with"):
        there.hand_back(no_job, begin_at=None)
    assert small.records("state") == before


def test_workers_that_went_on_are_not_put_back_to_where_flink_ended(small: Small) -> None:
    small.work()  # as if Flink had handed back, and were killed before it cleared up
    checkpoint(small, "job/chk-1")
    (small.path / "flink/hand-back.json").write_text("[]")
    (small.path / "flink/temporary").mkdir()
    positions = small.topics.positions("streamgp")
    move(small).hand_back(no_job, begin_at=None)
    assert small.topics.positions("streamgp") == positions
    assert [path.name for path in (small.path / "flink").iterdir()] == ["temporary"]
    small.work()


def test_what_was_drained_is_only_committed(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    small.work()
    there = move(small)
    there.mark()
    checkpoint(small, "job/chk-1")
    drained = checkpoint(small, "handed-back/savepoint-1")
    (small.path / "flink/handed-back/savepoint-2").mkdir()  # not complete
    (small.path / "flink/hand-back.json").write_text("[]")
    monkeypatch.setattr(Cluster, "start", lambda *words, **options: (words[2], options["begin_at"]))
    for name in ("_wait_until_read", "_savepoint", "_put_workers"):
        monkeypatch.setattr(Move, name, lambda *_, **__: None)
    jobs: list[Any] = []
    monkeypatch.setattr(Move, "_wait_for_end", lambda _, job: jobs.append(job))
    there.hand_back(
        lambda _group, _ends, is_drained: lambda _: is_drained, begin_at="file:///job/chk-1"
    )
    [(build, begin_at)] = jobs
    assert (build(None), begin_at) == (True, drained)
    small.work()  # workers may go on


def test_what_each_key_tells_of_nulls_becomes_the_partitions_record(small: Small) -> None:
    small.work()
    there = move(small)
    kept = {("ann", 1): 3, ("bob", 0): 1, ("cy", 0): 2}
    written = [state_records.state(key, UNHEEDED, n, at) for (key, at), n in kept.items()]
    write_all(there.there, written, program="test")
    small.topics.compact()
    ends: dict[Place, int] = {("consensus", 0): 7, ("consensus", 1): 8}
    for _ in range(2):  # killed, it is called again
        write_all(there.there, there.forgotten(ends), program="test")
        small.topics.compact()
        found = {
            record.partition: value_of("", FORGOTTEN, record.value or b"")
            for record in small.records("state")
            if record.key == FORGOTTEN_KEY
        }
        assert {n: (value["heeded"], value["failed"]) for n, value in found.items()} == {
            0: (7, {"bob": 1, "cy": 2}),
            1: (8, {"ann": 3}),
        }
    left = [record for record in small.records("state") if record.value is not None]
    assert not [record for record in left if (record.key or b"").endswith(UNHEEDED.encode())]
