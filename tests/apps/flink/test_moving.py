"""What is looked at before a deployment moves to Flink, and who keeps away while it is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.worker.compatibility import UnfitTopicsError
from streamgp.apps.deployment.deployment import Deployment, build_loops
from streamgp.apps.flink.cluster import Cluster
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
