"""`streamgp forget`: one person is gone, the others do not notice."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from connectors.jsonl import alone_in
from connectors.storage.snapshots import StateDirectory
from streamgp.apps.replay import checkpoint
from tests.helpers.commands import streamgp, wrong

ANN, BOB, SHE = "ann", "bob", "person-7f3a"
VALUE = 7000.125  # of a feature, and of hers alone
N_ROWS = 108
FILES = ("predictions", "requests", "answers", "consensus", "rejected")


def done(*arguments: str | Path) -> str:
    """Run what must succeed; return what it prints."""
    result = streamgp(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def cells(i: int) -> str:
    key, den = (ANN, BOB, SHE)[i // 3 % 3], i // 12 % 2
    near = VALUE if key == SHE else i % 7 + 40 * den
    near_cell = f"{near}?" if i % 36 == 8 else str(near)  # a row of hers cannot be read
    return f"{near_cell},{i % 5 + 30 * den},{key},{('hall', 'den')[den]}"


class CrashError(Exception):
    """Stands for whatever ends a process."""


class Folder:
    """A log of three people, and a replay of it that is interrupted after a number of inputs."""

    def __init__(self, path: Path, max_keys: int | None) -> None:
        self.log, self.out, self.state = path / "log.csv", path / "out", path / "state"
        self.log.write_text(
            "\n".join(["near,far,who,room", *(cells(i) for i in range(N_ROWS))]) + "\n"
        )
        config = path / "my.toml"
        ready = "" if max_keys is None else f"[loop]\nmax_keys = {max_keys}\n"
        config.write_text(f'{ready}[query]\nrule = "always"\n')
        self.arguments: list[str | Path] = ["replay", self.log, "--label", "room", "--key", "who"]
        self.arguments += ["--annotator", "name=eve,error_rate=0.4,delay=4", "--config", config]
        self.arguments += ["--annotator", "name=flo,delay=9"]

    def play_whole(self, out: Path) -> None:
        done(*self.arguments, "--out", out)

    def play(self) -> Result:
        return streamgp(*self.arguments, "--out", self.out, "--state", self.state)

    def cut(self, after: int) -> None:
        """Replay `n` inputs, save, and replay a little more before the crash."""
        n = 0
        with pytest.MonkeyPatch.context() as patched:

            def is_due(_: Any) -> bool:
                nonlocal n
                n += 1
                if n > after + 10:
                    raise CrashError
                return n == after

            patched.setattr(checkpoint.Keeper, "is_due", is_due)
            assert isinstance(self.play().exception, CrashError)

    def forget(self, key: str) -> str:
        return done("forget", self.state, key)

    def lines(self, name: str) -> list[dict[str, Any]]:
        return lines(self.out, name)

    def summary(self) -> dict[str, Any]:
        summary: dict[str, Any] = json.loads((self.out / "summary.json").read_text())
        return summary

    def traces(self) -> list[str]:
        """Return the names of the files in which something of hers is left."""
        hers = [SHE.encode(), str(VALUE).encode(), struct.pack("<d", VALUE)]
        files = [p for d in (self.out, self.state) for p in sorted(d.rglob("*"))]
        return [path.name for path in files if any(h in path.read_bytes() for h in hers)]


def lines(out: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / f"{name}.jsonl").read_text().splitlines()]


@pytest.fixture(
    params=[None, 1, pytest.param(2, marks=pytest.mark.nightly)],
    ids=["all ready", "one ready", "two ready"],
)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    return Folder(tmp_path, request.param)


# What follows from files, rather than from where the learners are, is seen by day with one of them.
any_folder = pytest.mark.parametrize(
    "folder",
    [None, *(pytest.param(n, marks=pytest.mark.nightly) for n in (1, 2))],
    ids=["all ready", "one ready", "two ready"],
    indirect=True,
)


@pytest.fixture
def one_ready(tmp_path: Path) -> Folder:
    return Folder(tmp_path, 1)


@pytest.mark.parametrize("after", [30, N_ROWS])
def test_nothing_of_a_forgotten_person_is_left(folder: Folder, after: int) -> None:
    folder.cut(after)
    left_over = folder.state / f".{checkpoint.REPLAY}.{'0' * 16}.part"
    left_over.write_text(SHE)  # of a save that was cut
    (folder.out / f".summary.json.{'0' * 16}.part").write_text(SHE)  # and of a run
    assert {"predictions.jsonl", "answers.jsonl", checkpoint.REPLAY} <= set(folder.traces())
    n_hers = sum(m.get("key") == SHE for name in FILES for m in folder.lines(name))
    n_labels = len({m["event_id"] for m in folder.lines("consensus") if m["key"] == SHE})
    said = folder.forget(SHE)
    assert folder.traces() == []
    assert f"{n_hers} messages in {folder.out}; the log itself and pages made by" in said
    assert said.startswith(f"forgot {SHE!r}: a learner with ")
    assert 0 < int(said.split(" with ")[1].split()[0]) <= n_labels
    assert re.search(r"\b(1 answer|[0-9]+ answers) under way", said)


def test_answers_that_are_delivered_next_are_forgotten_too(one_ready: Folder) -> None:
    one_ready.cut(30)
    with StateDirectory(one_ready.state) as directory:
        found = checkpoint.read(directory)
        assert found is not None
        origin, cut = found
        source = cut.around["game"]["source"]
        # As if their time had come before the cut.
        source["given"] += [answer for _, answer in source["queue"]["waiting"]]
        source["queue"]["waiting"] = []
        assert SHE in {answer["key"] for answer in source["given"]}
        checkpoint.write(directory, origin, cut)
    said = one_ready.forget(SHE)
    assert one_ready.traces() == []
    assert re.search(r"\b(1 answer|[0-9]+ answers) under way", said)


def test_the_others_do_not_notice(folder: Folder, tmp_path: Path) -> None:
    folder.play_whole(tmp_path / "whole")
    folder.cut(66)
    folder.forget(SHE)
    assert folder.play().exit_code == 0
    for name in FILES:
        others = [m for m in folder.lines(name) if m.get("key") != SHE]
        assert others == [m for m in lines(tmp_path / "whole", name) if m.get("key") != SHE], name


@any_folder
def test_a_forgotten_key_begins_with_a_learner_that_knows_nothing(folder: Folder) -> None:
    folder.cut(66)
    folder.forget(SHE)
    assert folder.play().exit_code == 0
    predictions = [p for p in folder.lines("predictions") if p["key"] == SHE]
    assert 7 < len(predictions) < 32  # no row from before the cut
    assert predictions[0]["n_learned"] == 0 < predictions[-1]["n_learned"]
    learned = [line for line in folder.lines("consensus") if line["key"] == SHE]
    assert [line["sequence"] for line in learned] == list(range(1, len(learned) + 1))
    assert {line["event_id"] for line in learned} <= {p["event_id"] for p in predictions}


@any_folder
def test_a_cut_after_forgetting_changes_nothing(folder: Folder, tmp_path: Path) -> None:
    folder.cut(66)
    folder.forget(SHE)
    for directory in (folder.out, folder.state):
        shutil.copytree(directory, tmp_path / "kept" / directory.name)
    assert folder.play().exit_code == 0
    expected = {name: (folder.out / f"{name}.jsonl").read_bytes() for name in FILES}
    summary = folder.summary()
    for directory in (folder.out, folder.state):
        shutil.rmtree(directory)
        shutil.copytree(tmp_path / "kept" / directory.name, directory)
    folder.cut(24)
    assert folder.play().exit_code == 0
    assert {name: (folder.out / f"{name}.jsonl").read_bytes() for name in FILES} == expected
    assert folder.summary() == summary


def assert_consistent(folder: Folder) -> None:
    """Check that the counts are those of the messages, and that those of keys add up."""
    summary = folder.summary()
    results, keys = summary["results"], summary["keys"].values()
    for name in ("n_events", "n_asked", "n_challenges", "n_answered", "n_learned", "n_rejected"):
        assert results[name] == sum(key[name] for key in keys), name
    assert results["n_events"] == len(folder.lines("predictions"))
    assert results["n_asked"] + results["n_challenges"] == len(folder.lines("requests"))
    assert results["n_rejected"] == len(folder.lines("rejected"))
    assert sum(map(sum, summary["confusion"]["counts"])) == results["n_scored"]
    assert sum(a["n_answers"] for a in summary["annotators"]) == results["n_learned"]
    curve = summary["curve"]
    for name in ("n_events", "n_asked", "n_challenges"):
        assert curve[name] == sorted(curve[name])
    assert curve["n_events"][-1:] <= [results["n_events"]]
    assert len(set(curve["n_events"])) == len(curve["n_events"])


@any_folder
def test_counts_go_on_from_those_of_the_others(folder: Folder) -> None:
    folder.cut(66)
    folder.forget(SHE)
    assert folder.play().exit_code == 0
    assert_consistent(folder)
    assert list(folder.summary()["keys"]) == [ANN, BOB, SHE]
    done("report", folder.out, folder.out / "page.html")


@any_folder
def test_summary_of_a_run_that_ended_is_brought_up_to_date(folder: Folder, tmp_path: Path) -> None:
    folder.play_whole(tmp_path / "whole")
    assert folder.play().exit_code == 0
    modes = {path.name: path.stat().st_mode for path in folder.out.iterdir()}
    folder.forget(SHE)
    assert folder.traces() == []
    assert_consistent(folder)
    whole = json.loads((tmp_path / "whole" / "summary.json").read_text())
    assert folder.summary()["keys"] == {key: whole["keys"][key] for key in (ANN, BOB)}
    assert folder.summary().keys() == whole.keys()
    assert {path.name: path.stat().st_mode for path in folder.out.iterdir()} == modes
    done("report", folder.out, tmp_path / "page.html")
    result = folder.play()  # nothing is left to do: her rows are not read again
    assert result.exit_code == 0
    assert SHE not in result.stdout
    assert_consistent(folder)


@any_folder
def test_damaged_summary_keeps_nothing_of_her(folder: Folder) -> None:
    assert folder.play().exit_code == 0
    summary = folder.out / "summary.json"
    whole = summary.read_bytes()
    summary.write_bytes(whole[: len(whole) // 2])
    folder.forget(SHE)
    assert not summary.exists()
    assert folder.traces() == []


@any_folder
def test_everybody_can_be_forgotten(folder: Folder) -> None:
    assert folder.play().exit_code == 0
    for key in (ANN, BOB, SHE):
        folder.forget(key)
    assert [folder.lines(name) for name in FILES] == [[], [], [], [], []]
    summary = folder.summary()
    assert (summary["keys"], summary["annotators"]) == ({}, [])
    assert not any(summary["results"].values())
    assert summary["confusion"] == {"labels": [], "counts": []}
    done("report", folder.out, folder.out / "page.html")


@any_folder
def test_rejected_rows_of_hers_are_no_longer_told(folder: Folder) -> None:
    folder.cut(66)
    folder.forget(SHE)
    result = folder.play()
    assert result.exit_code == 0
    told = [line for line in result.stderr.splitlines() if line.startswith("rejected")]
    assert told == [f"rejected {m['subject']}: {m['reason']}" for m in folder.lines("rejected")]


def test_without_messages_the_state_is_all_there_is(tmp_path: Path) -> None:
    folder = Folder(tmp_path, 1)
    arguments = [*folder.arguments, "--state", folder.state]
    done(*arguments)
    said = folder.forget(ANN)
    assert said.endswith(" labels; the log itself and pages made by --report are not touched\n")
    assert ANN not in done(*arguments)
    assert not folder.out.exists()


def test_a_row_that_was_rejected_is_enough_to_be_known(tmp_path: Path) -> None:
    folder = Folder(tmp_path, None)
    folder.log.write_text("near,far,who,room\n1,2,ann,den\n1,2,bob,hall\nx,2,person-7f3a,den\n")
    assert folder.play().exit_code == 0
    assert list(folder.summary()["keys"]) == [ANN, BOB, SHE]
    assert "with 0 labels, 1 message in" in folder.forget(SHE)
    assert folder.traces() == []
    assert_consistent(folder)


# --- cut while it forgets


def snapshot_of(folder: Folder) -> dict[Path, bytes]:
    paths = [p for d in (folder.out, folder.state) for p in d.rglob("*") if p.name != "lock"]
    return {path: path.read_bytes() for path in sorted(paths)}


def test_a_crash_at_any_step_can_be_made_good_by_running_it_again(
    one_ready: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = one_ready
    assert folder.play().exit_code == 0
    before = tmp_path / "before"
    for directory in (folder.out, folder.state):
        shutil.copytree(directory, before / directory.name)
    folder.forget(SHE)
    expected = {p: data for p, data in snapshot_of(folder).items() if p.parent == folder.out}
    table = folder.play().stdout
    replaced = os.replace
    n_refused = n_crashes = left = 0

    def replace(source: Any, target: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise CrashError
        replaced(source, target)

    while True:
        for directory in (folder.out, folder.state):
            shutil.rmtree(directory)
            shutil.copytree(before / directory.name, directory)
        left = n_crashes
        with monkeypatch.context() as patched:
            patched.setattr(os, "replace", replace)
            result = streamgp("forget", folder.state, SHE)
        if result.exit_code == 0:
            break
        assert isinstance(result.exception, CrashError)
        n_crashes += 1
        if n_crashes > 1:  # before the first step nothing has happened
            n_refused += 1
            assert wrong(*folder.arguments, "--out", folder.out, "--state", folder.state) == (
                f"`streamgp forget` was interrupted while it removed {SHE!r} from {folder.state}; "
                "run it again, then continue"
            )
        assert folder.forget(SHE).startswith(f"forgot {SHE!r}: a learner with ")
        assert folder.traces() == []
        files = {p: data for p, data in snapshot_of(folder).items() if p.parent == folder.out}
        assert files == expected
        assert [line[:60] for line in folder.play().stdout.splitlines()] == [
            line[:60] for line in table.splitlines()
        ]
    # The note, the store, five files, the summary, the state.
    assert n_crashes == 9
    assert n_refused == 8


def test_another_person_can_be_forgotten_after_a_cut(
    one_ready: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_ready.cut(66)
    with monkeypatch.context() as patched:
        patched.setattr("streamgp.apps.replay.forget.remove_lines", lambda *_: 1 / 0)
        assert isinstance(streamgp("forget", one_ready.state, SHE).exception, ZeroDivisionError)
    one_ready.forget(ANN)  # finishes what was begun, too
    assert one_ready.traces() == []
    assert "has no key" in wrong("forget", one_ready.state, SHE)
    assert one_ready.play().exit_code == 0
    assert_consistent(one_ready)


def test_full_disk_is_one_line_and_can_be_made_good(
    one_ready: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_ready.cut(66)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        message = wrong("forget", one_ready.state, SHE)
    assert message.endswith("No space left on device; free some space")
    one_ready.forget(SHE)
    assert one_ready.traces() == []


# --- what it refuses


def test_unknown_key_changes_nothing(one_ready: Folder) -> None:
    one_ready.cut(44)
    one_ready.forget(SHE)
    before = snapshot_of(one_ready)
    for key in ("carl", SHE, "", "an"):
        assert wrong("forget", one_ready.state, key) == (
            f"{one_ready.state} has no key {key!r}; nothing was removed"
        )
    assert snapshot_of(one_ready) == before


def test_key_is_read_as_in_the_log(one_ready: Folder) -> None:
    one_ready.cut(44)
    assert one_ready.forget(f" {SHE} ").startswith(f"forgot {SHE!r}")
    assert wrong("forget", one_ready.state, "\udcff").startswith("KEY must be valid Unicode")


def test_replay_without_keys_has_nobody_to_forget(tmp_path: Path) -> None:
    folder = Folder(tmp_path, None)
    done("replay", folder.log, "--label", "room", "--state", folder.state)
    assert wrong("forget", folder.state, ANN) == (
        f"{folder.state} holds a replay without --key: one learner of all rows; to forget it, "
        "delete the directory"
    )


def test_directory_without_a_state_is_left_alone(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        assert wrong("forget", path, ANN) == (
            f"{path} holds no state of a replay; give the directory of --state"
        )
    assert "expected a directory or file, got an empty text" in wrong("forget", "", ANN)
    assert [path.name for path in tmp_path.iterdir()] == []


def test_running_replay_is_not_disturbed(one_ready: Folder) -> None:
    one_ready.cut(44)
    with checkpoint.StateDirectory(one_ready.state):
        assert "is in use by process" in wrong("forget", one_ready.state, ANN)


def test_damaged_state_and_another_version_are_one_line(
    one_ready: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_ready.cut(44)
    with monkeypatch.context() as patched:
        patched.setattr("streamgp.apps.replay.checkpoint.__version__", "9.9")
        assert "this is 9.9; continue with that version" in wrong("forget", one_ready.state, ANN)
    path = one_ready.state / checkpoint.REPLAY
    path.write_bytes(path.read_bytes()[:-1])
    assert f"{path}: snapshot is cut off" in wrong("forget", one_ready.state, ANN)


def test_messages_that_are_gone_are_missed(one_ready: Folder, tmp_path: Path) -> None:
    one_ready.cut(44)
    before = (one_ready.state / checkpoint.REPLAY).read_bytes()
    one_ready.out.rename(tmp_path / "elsewhere")
    message = wrong("forget", one_ready.state, SHE)
    assert "predictions.jsonl is not there, expected" in message
    assert message.endswith("start over; nothing was removed")
    assert (one_ready.state / checkpoint.REPLAY).read_bytes() == before


def test_a_replay_into_the_same_files_keeps_forget_out(one_ready: Folder) -> None:
    one_ready.cut(44)
    before = snapshot_of(one_ready)
    with alone_in(one_ready.out):
        said = wrong("forget", one_ready.state, SHE)
    assert "is in use by another replay; wait for its end" in said
    assert snapshot_of(one_ready) == before
