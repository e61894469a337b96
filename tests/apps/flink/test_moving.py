"""What is looked at before a deployment moves to Flink, and who keeps away while it is there."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from connectors.keyed_state import CONFIGURATION_KEY, FORGOTTEN_KEY
from connectors.topics import Backlog, Place
from connectors.wire import state_records
from connectors.wire.state_records import FORGOTTEN, UNHEEDED, value_of
from connectors.worker.compatibility import UnfitTopicsError
from streamgp.apps.console import Stop
from streamgp.apps.deployment.deployment import Deployment, build_loops, marks, write_all
from streamgp.apps.flink import moving, process
from streamgp.apps.flink.cluster import Cluster, last_checkpoint
from streamgp.apps.flink.moving import Move, is_mark
from streamgp.cli.main import cli
from streamgp.config.load import parse_worker
from streamgp.config.validation import ConfigError
from tests.helpers.small_deployment import Small

pytestmark = pytest.mark.usefixtures("logging_as_it_was")
FLINK_KEEPS_IT = "Flink holds what was learned; continue with `streamgp flink`"


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
    with_another_learner(small)
    with pytest.raises(ConfigError, match="was processed with another configuration"):
        move(small).learned()


def test_deletions_that_wait_are_the_workers_business(small: Small) -> None:
    small.work()
    small.put_bytes("consensus", "ann", None)
    with pytest.raises(ConfigError, match="the workers have not yet processed a deletion"):
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
        ("recover",),
        ("rebuild", "--learner", small.config_file),
    ):
        result = small.call(*words)
        assert result.exit_code != 0
        assert FLINK_KEEPS_IT in result.stderr, words
    with pytest.raises(ConfigError, match=FLINK_KEEPS_IT):
        move(small).learned()


def with_another_learner(small: Small) -> None:
    small.config_file.write_text(small.config_file.read_text().replace('"never"', '"always"'))


def test_flink_goes_on_with_the_configuration_that_learned_and_no_other(small: Small) -> None:
    small.work()
    move(small).mark([])
    move(small).check_configuration()
    with_another_learner(small)
    with pytest.raises(
        ConfigError, match=r"with another configuration .*; before `streamgp rebuild`, hand back"
    ):
        move(small).check_configuration()
    move(small).mark([])  # for a second time, as on the way back
    with pytest.raises(ConfigError, match="with another configuration"):
        move(small).check_configuration()
    move(small).mark()  # from nothing
    move(small).check_configuration()


@pytest.mark.parametrize("option", ["--hand-back", "--take-over", "--from=file:/stopped"])
def test_the_command_starts_no_job_with_another_configuration(
    small: Small, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.chdir(small.path)
    monkeypatch.setattr(process, "open_topics", lambda _: small.topics)
    for name in ("check_environment", "use_temporary"):
        monkeypatch.setattr(process, name, lambda *_: None)
    monkeypatch.setattr(Cluster, "start", no_job)
    small.work()
    move(small).mark([])
    with_another_learner(small)
    result = CliRunner().invoke(cli, ["flink", str(small.config_file), option])
    assert result.exit_code == 2, result.output
    assert "was processed with another configuration" in result.stderr


def test_a_directory_to_continue_from_is_found_by_a_cluster_elsewhere(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []

    def start(*_: object, begin_at: str | None, **__: object) -> None:
        asked.append(begin_at)
        raise ConfigError("this is enough")

    monkeypatch.chdir(small.path)
    monkeypatch.setattr(process, "open_topics", lambda _: small.topics)
    for name in ("check_environment", "use_temporary"):
        monkeypatch.setattr(process, name, lambda *_: None)
    monkeypatch.setattr(Cluster, "check_idle", lambda *_, **__: None)
    monkeypatch.setattr(Cluster, "start", start)
    checkpoint(small, "chk-7")
    for begin_at in ("flink/chk-7", "s3://bucket/chk-7"):
        CliRunner().invoke(
            cli, ["flink", str(small.config_file), "--submit=http://one", f"--from={begin_at}"]
        )
    assert asked == [str(small.path / "flink/chk-7"), "s3://bucket/chk-7"]


@pytest.mark.parametrize("signalled", [True, False])
def test_a_signal_that_ends_flink_while_the_job_starts_is_no_error(
    small: Small, monkeypatch: pytest.MonkeyPatch, signalled: bool
) -> None:
    def end(*_: object, **__: object) -> None:
        if signalled:
            signal.raise_signal(signal.SIGTERM)
        raise ConfigError("Flink did not accept the job")

    monkeypatch.chdir(small.path)
    monkeypatch.setattr(process, "open_topics", lambda _: small.topics)
    for name in ("check_environment", "use_temporary"):
        monkeypatch.setattr(process, name, lambda *_: None)
    monkeypatch.setattr(Cluster, "start", end)
    options = process.FlinkOptions(
        parallelism=1, submit=None, begin_at=None, take_over=False, hand_back=False, flink={}
    )
    expected = nullcontext() if signalled else pytest.raises(ConfigError, match="did not accept")
    with Stop() as stop, expected:
        status = process.run_flink(
            small.config_file, stop, options, broker=None, create_topics=False
        )
        assert status == process.DONE


def test_what_flink_keeps_for_another_group_is_left_alone(small: Small) -> None:
    small.work()
    move(small).mark([])
    small.add('[worker]\ngroup = "phones"\n')
    with pytest.raises(ConfigError, match="belongs to the group 'streamgp'"):
        move(small).check_configuration()


def test_marks_of_earlier_versions_say_nothing_of_what_learned(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.work()
    there = move(small)
    with monkeypatch.context() as earlier:
        sign = Move._sign
        earlier.setattr(
            Move,
            "_sign",
            lambda self, signed: sign(
                self, {name: value for name, value in signed.items() if name != "learned as"}
            ),
        )
        there.mark([])
    with_another_learner(small)
    move(small).check_configuration()
    move(small).mark([])
    move(small).check_configuration()


def given_more_partitions(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the topics a third partition, with five events."""
    backlog = small.topics.backlog
    new: Place = ("events", 2)
    monkeypatch.setattr(small.topics, "n_partitions", lambda: 3)
    monkeypatch.setattr(
        small.topics,
        "backlog",
        lambda group: {**backlog(group), new: Backlog(position=0, end=5, n_waiting=5)},
    )


def test_no_job_works_on_topics_that_were_given_more_partitions(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.work()
    move(small).mark([])
    move(small).check_partitions()
    given_more_partitions(small, monkeypatch)
    monkeypatch.setattr(moving, "marks", lambda _, mark: marks([0, 1], mark))
    for _ in range(2):
        with pytest.raises(ConfigError, match="have 3 partitions, but had 2 when Flink began"):
            move(small).check_partitions()
        move(small).mark([])  # as on the way back


def test_a_job_ends_when_topics_are_given_more_partitions(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    job: Any = SimpleNamespace(
        failure=lambda: None, has_ended=lambda: False, cancel=lambda: ended.append("cancelled")
    )
    monkeypatch.setattr(process, "_LOOK_EVERY_S", 0.0)
    given_more_partitions(small, monkeypatch)
    with pytest.raises(ConfigError, match="have 3 partitions, but had 2"):
        process._follow(job, lambda: False, lambda: process._check_count(small.topics, 2))
    assert ended == ["cancelled"]


def test_what_came_into_partitions_given_later_is_not_handed_back(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the workers are put to topics of the former number, which they refuse."""
    small.work()
    move(small).mark([])
    given_more_partitions(small, monkeypatch)
    for name in ("_wait_until_read", "_savepoint", "_wait_for_end", "forgotten", "_sign"):
        monkeypatch.setattr(Move, name, lambda *_, **__: [])
    monkeypatch.setattr(Cluster, "start", lambda *_, **__: None)
    put: list[Any] = []
    topics = SimpleNamespace(
        set_positions=lambda _, at, n_partitions=None: put.append((at, n_partitions))
    )
    monkeypatch.setattr(Move, "_topics", topics)
    checkpoint(small, "job/chk-1")
    ends: list[Any] = []

    def build(_group: str, at: Any, _is_drained: bool) -> Any:
        ends.append(at)

    move(small).hand_back(build, begin_at="file:///job/chk-1")
    [(positions, n_partitions)] = put
    assert ends == [positions]
    assert (positions["events", 2], n_partitions) == (0, 2)
    assert positions["events", 0] > 0


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
    (small.path / "flink/hand-back.json").write_text('{"ends": []}')
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


def kept_by_flink(small: Small) -> set[int]:
    """Return the partitions whose last configuration is the mark of Flink."""
    last = {r.partition: r for r in small.records("state") if r.key == CONFIGURATION_KEY}
    return {number for number, record in last.items() if is_mark(record)}


def checkpoint(small: Small, name: str) -> str:
    (small.path / "flink" / name).mkdir(parents=True)
    (small.path / "flink" / name / "_metadata").touch()
    return (small.path / "flink" / name).as_uri()


def test_what_is_taken_over_counts_once_the_topics_say_so(small: Small, loads: list[str]) -> None:
    small.work()
    saved_at = take_over(small)
    assert saved_at == loads[0].replace("taking-over", "taken-over")
    assert last_checkpoint(small.path / "flink") == saved_at
    assert kept_by_flink(small) == {0, 1}


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
    with pytest.raises(ConfigError, match=f"there is {there_is} to continue from; start without"):
        take_over(small, there_is)


def test_where_flink_has_taken_over_its_savepoint_is_asked_for(small: Small) -> None:
    small.work()
    move(small).mark()
    with pytest.raises(ConfigError, match="Flink has already taken over; give the savepoint that"):
        take_over(small)


def test_what_workers_keep_is_not_handed_back(small: Small) -> None:
    small.work()
    before = small.records("state")
    with pytest.raises(ConfigError, match="according to the topics, the workers hold what was"):
        move(small).hand_back(no_job, begin_at=checkpoint(small, "job/chk-1"))
    assert small.records("state") == before


@pytest.mark.parametrize("has_plan", [False, True])
def test_nothing_is_handed_back_without_a_checkpoint(small: Small, *, has_plan: bool) -> None:
    small.work()
    there = move(small)
    there.mark()
    (small.path / "flink").mkdir()
    if has_plan:
        (small.path / "flink/hand-back.json").write_text('{"ends": []}')
    before = small.records("state")
    with pytest.raises(ConfigError, match="no checkpoint or savepoint to hand back; name it with"):
        there.hand_back(no_job, begin_at=None)
    assert small.records("state") == before


def test_workers_that_went_on_are_not_put_back_to_where_flink_ended(small: Small) -> None:
    small.work()  # as if Flink had handed back, and were killed before it cleared up
    checkpoint(small, "job/chk-1")
    (small.path / "flink/hand-back.json").write_text('{"ends": []}')
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
    (small.path / "flink/hand-back.json").write_text('{"ends": []}')
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


# --- what was interrupted on a cluster elsewhere, and has left its job there


class Elsewhere:
    """A cluster elsewhere: what it says of jobs, and what is done there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.status: dict[str, str] = {}
        self.saved: dict[str, str] = {}
        self.done: list[tuple[str, ...]] = []
        monkeypatch.setattr(Cluster, "status_of", lambda _, job: self.status.get(job))
        monkeypatch.setattr(Cluster, "saved_by", lambda _, job: self.saved.get(job))
        monkeypatch.setattr(Cluster, "attach", lambda _, job: LeftJob(self, job))
        monkeypatch.setattr(Cluster, "start", self.start)
        monkeypatch.setattr(Move, "_wait_until_read", lambda *_: None)
        monkeypatch.setattr(Move, "_savepoint", lambda _, job, *__, **___: f"file:/of/{job.id}")
        monkeypatch.setattr(Move, "_put_workers", lambda *_: None)

    def start(self, *_: Any, begin_at: Any, job_id: str, **__: Any) -> LeftJob:
        self.done.append(("started", job_id, begin_at))
        self.status[job_id] = "RUNNING"
        return LeftJob(self, job_id)


class LeftJob:
    def __init__(self, there: Elsewhere, job: str) -> None:
        self.there, self.id = there, job

    def has_ended(self) -> bool:
        self.there.done.append(("waited for", self.id))
        return True

    def cancel(self) -> None:
        self.there.done.append(("cancelled", self.id))
        self.there.status[self.id] = "CANCELED"


@pytest.fixture
def elsewhere(small: Small, monkeypatch: pytest.MonkeyPatch) -> Elsewhere:
    (small.path / "flink").mkdir()
    small.work()
    return Elsewhere(monkeypatch)


def move_elsewhere(small: Small) -> Move:
    cluster = Cluster(checkpoints=small.path / "flink", remote=("one", 8081), flink={})
    return replace(move(small), cluster=cluster)


def loading(_group: str, _shared: Any) -> Any:
    return None


def dies_at(
    step: str, monkeypatch: pytest.MonkeyPatch, call: Callable[[], object], owner: type = Move
) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(owner, step, no_job)
        with pytest.raises(AssertionError):
            call()


def test_a_job_that_loads_and_was_left_is_cancelled(
    small: Small, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take_over() -> str:
        return move_elsewhere(small).take_over(loading, saved_at=None)

    dies_at("_wait_until_read", monkeypatch, take_over)
    ((_, left, _),) = elsewhere.done
    assert move_elsewhere(small).left_behind() == [left]
    savepoint = take_over()
    assert elsewhere.done[1] == ("cancelled", left)
    assert elsewhere.done[2][0] == "started"
    assert savepoint == f"file:/of/{elsewhere.done[2][1]}"


@pytest.mark.usefixtures("elsewhere")
def test_what_was_loaded_elsewhere_counts_once_the_topics_say_so(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    savepoint = move_elsewhere(small).take_over(loading, saved_at=None)
    assert move_elsewhere(small).take_over(no_job, saved_at=None) == savepoint
    monkeypatch.setattr(Move, "_at", lambda _: [("events", 0, 99)])  # a job has gone on
    with pytest.raises(ConfigError, match="Flink has worked on what was taken over; go on without"):
        move_elsewhere(small).take_over(no_job, saved_at=None)
    assert move_elsewhere(small).take_over(no_job, saved_at="file:/chk-9") == "file:/chk-9"


def test_the_job_that_goes_on_from_there_is_submitted_once(
    small: Small, elsewhere: Elsewhere
) -> None:
    assert move_elsewhere(small).working_job() is None
    move_elsewhere(small).take_over(loading, saved_at=None)
    job = move_elsewhere(small).new_working_job()
    assert job is not None
    assert move_elsewhere(small).working_job() is None  # it was not submitted
    elsewhere.status[job] = "RUNNING"
    assert move_elsewhere(small).working_job() == job
    elsewhere.status[job] = "CANCELED"
    with pytest.raises(ConfigError, match=rf"job {job} has gone on .* and has ended \(CANCELED\)"):
        move_elsewhere(small).working_job()
    move_elsewhere(small).has_taken_over()
    assert move_elsewhere(small).working_job() is None
    assert not list((small.path / "flink").iterdir())


def test_a_partition_of_which_flink_has_read_nothing_is_not_read_from_its_start(
    small: Small, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A checkpoint does not say where it would have been read: that is the group's position, and the
    # job that hands back reads as another group.
    groups: dict[str, dict[Place, int]] = {}
    topics = SimpleNamespace(set_positions=lambda group, at: groups.update({group: at}))
    monkeypatch.setattr(Move, "_topics", topics)
    began_at = small.topics.positions("streamgp")
    assert began_at
    move_elsewhere(small).take_over(loading, saved_at=None)
    monkeypatch.setattr(Move, "_at", lambda _: [("events", 0, 99)])  # a job has gone on
    move_elsewhere(small).take_over(no_job, saved_at="file:/chk-9")  # and is called once more
    hand_back(small)
    ((group, at),) = groups.items()
    assert group.startswith("streamgp-to-workers-")
    assert at == began_at
    assert elsewhere.done[-1][0] == "waited for"


def hand_back(small: Small, begin_at: str | None = "file:/stopped") -> None:
    move_elsewhere(small).hand_back(lambda *_: no_job, begin_at=begin_at)


@pytest.fixture
def left(small: Small, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch) -> str:
    """Has a job that hands back left on the cluster, and returns its number."""
    move(small).mark()
    dies_at("_wait_until_read", monkeypatch, lambda: hand_back(small))
    ((_, job, begin_at),) = elsewhere.done
    assert begin_at == "file:/stopped"
    elsewhere.done.clear()
    return job


def committed(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    found = {("events", 0): n} if n else {}
    monkeypatch.setattr(Move, "_topics", SimpleNamespace(positions=lambda *_: found))


@pytest.mark.parametrize("status", ["RUNNING", "RESTARTING", "FINISHED"])
def test_a_job_that_hands_back_and_was_left_is_gone_on_with(
    small: Small, elsewhere: Elsewhere, left: str, status: str
) -> None:
    elsewhere.status[left] = status
    hand_back(small)
    assert elsewhere.done == [("waited for", left)]
    assert not kept_by_flink(small)  # workers may go on


@pytest.mark.parametrize("saved", ["file:/chk-9", None])
def test_a_job_that_handed_back_and_was_cancelled_goes_on_from_what_it_has_saved(
    small: Small, elsewhere: Elsewhere, left: str, saved: str | None
) -> None:
    elsewhere.status[left] = "CANCELED"
    if saved is not None:
        elsewhere.saved[left] = saved
    hand_back(small, None)
    (_, other, begin_at), waited = elsewhere.done
    assert begin_at == (saved or "file:/stopped")
    assert waited == ("waited for", other) != ("waited for", left)


@pytest.mark.usefixtures("left")
def test_a_job_that_was_never_submitted_begins_where_it_would_have(
    small: Small, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere.status.clear()
    committed(monkeypatch, 0)
    hand_back(small)
    assert [each[0] for each in elsewhere.done] == ["started", "waited for"]
    assert elsewhere.done[0][2] == "file:/stopped"


def test_what_a_cluster_has_forgotten_is_asked_for(
    small: Small, elsewhere: Elsewhere, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere.status.clear()
    committed(monkeypatch, 7)
    for begin_at in ("file:/stopped", None):
        with pytest.raises(ConfigError, match=rf"no longer knows job {left}, .* --from \(\.\.\./"):
            hand_back(small, begin_at)
    assert elsewhere.done == []
    hand_back(small, f"file:/{left}/chk-8")
    assert elsewhere.done[0][2] == f"file:/{left}/chk-8"
