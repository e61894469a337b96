"""Places of workers: names, locks, and whose snapshots a directory holds."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

import pytest

from connectors.storage.snapshots import StateDirectory
from streamgp.apps.worker.process import Slot, origin_of_state, take_slot
from streamgp.config.validation import ConfigError


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "host")


def take(root: Path, instance: str | None = None, origin: str = "here") -> Slot:
    return take_slot(root, instance, origin=origin)


def state_of(slot: Slot) -> StateDirectory:
    assert slot.state is not None
    return slot.state


def test_workers_of_one_machine_count_through(tmp_path: Path) -> None:
    slots = [take(tmp_path / "state") for _ in range(3)]
    assert [slot.instance for slot in slots] == ["host-0", "host-1", "host-2"]
    assert [state_of(slot).path.name for slot in slots] == ["host-0", "host-1", "host-2"]
    for slot in slots:
        state_of(slot).close()


def test_restarted_worker_takes_the_same_place_again(tmp_path: Path) -> None:
    one, two, three = (take(tmp_path) for _ in range(3))
    state_of(two).write("kept", b"snapshot")
    state_of(two).close()
    again = take(tmp_path)
    assert again.instance == two.instance
    assert state_of(again).read("kept") == b"snapshot"
    for slot in (one, again, three):
        state_of(slot).close()


def test_named_instance_has_its_own_directory(tmp_path: Path) -> None:
    slot = take(tmp_path, "worker-1")
    assert (slot.instance, state_of(slot).path) == ("worker-1", tmp_path / "worker-1")
    state_of(slot).close()


def test_named_instance_that_is_at_work_is_refused(tmp_path: Path) -> None:
    slot = take(tmp_path, "worker-1")
    with pytest.raises(
        ConfigError,
        match=rf"^worker 'worker-1' is already running: .*worker-1 is in use by process "
        rf"{os.getpid()}; stop it, or name another directory, or give this worker a name of its "
        r"own with --instance$",
    ):
        take(tmp_path, "worker-1")
    state_of(slot).close()


@pytest.mark.parametrize(
    ("name", "instance"),
    [
        ("web.example.org", "web.example.org-0"),
        ("näh kästchen", "n-h-k-stchen-0"),
        ("", "worker-0"),
    ],
)
def test_name_of_the_machine_is_made_fit(
    name: str, instance: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: name)
    slot = take(tmp_path)
    assert slot.instance == instance
    state_of(slot).close()


def test_snapshots_of_other_topics_are_removed(tmp_path: Path) -> None:
    here = origin_of_state("kafka://a:1", ["events"], "one", "1")
    for other in (
        origin_of_state("kafka://b:1", ["events"], "one", "1"),
        origin_of_state("kafka://a:1", ["test.events"], "one", "1"),
        origin_of_state("kafka://a:1", ["events"], "two", "1"),
        origin_of_state("kafka://a:1", ["events"], "one", "2"),
    ):
        slot = take(tmp_path, origin=here)
        state_of(slot).write("partition-0.snapshot", b"mine")
        state_of(slot).close()
        slot = take(tmp_path, origin=other)
        assert state_of(slot).read("partition-0.snapshot") is None
        state_of(slot).close()


def test_snapshots_of_topics_in_a_path_that_is_not_unicode_are_kept(tmp_path: Path) -> None:
    origin = origin_of_state("file:///data/\udcff/topics", ["events"], "one", "1")
    slot = take(tmp_path, origin=origin)
    state_of(slot).write("partition-0.snapshot", b"mine")
    state_of(slot).close()
    slot = take(tmp_path, origin=origin)
    assert state_of(slot).read("partition-0.snapshot") == b"mine"
    state_of(slot).close()


def test_place_that_cannot_be_written_is_told_and_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    slots = [take(tmp_path / "file") for _ in range(2)]
    for slot in slots:
        assert slot.state is None
        assert "is a file; name another place" in (slot.trouble or "")
        # No two workers may have one name, and no lock tells which names are taken.
        assert re.fullmatch(r"host-[0-9a-f]{8}", slot.instance)
    assert slots[0].instance != slots[1].instance
    assert take(tmp_path / "file", "worker-1").instance == "worker-1"


def test_full_disk_is_told_and_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(StateDirectory, "write", full)
    slot = take(tmp_path)
    assert slot.state is None
    assert "No space left on device" in (slot.trouble or "")
    monkeypatch.undo()
    monkeypatch.setattr(socket, "gethostname", lambda: "host")
    after = take(tmp_path)  # the lock was let go
    assert after.instance == "host-0"
    state_of(after).close()
