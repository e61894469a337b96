"""`streamgp replay --state`: however often it is cut, the output is that of one run."""

from __future__ import annotations

import copy
import gzip
import importlib.resources
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from click import ClickException
from click.testing import Result

from connectors.storage.sqlite import SqliteStore
from connectors.tables import log_source
from streamgp.apps.replay import checkpoint
from streamgp.apps.replay.checkpoint import check_same, origin_of
from streamgp.config.settings import Config, Learner
from tests.helpers.commands import interrupt, replay

SAME = (
    "predictions.jsonl",
    "requests.jsonl",
    "answers.jsonl",
    "consensus.jsonl",
    "rejected.jsonl",
    "summary.json",
)
PEOPLE = ("ann", "bob", "cy")


def wrong(*arguments: str | Path) -> str:
    """Run what must fail in one line on stderr, after notes on the log; return the line."""
    result = replay(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    said = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
    assert len(said) == 1, result.stderr
    assert said[0].startswith("Error: ")
    return said[0].removeprefix("Error: ")


def cells(i: int) -> str:
    """Two rooms in turn, three people; every eighth reading comes late, some rows are damaged."""
    den = i // 10 % 2
    at = 30 * i - (200 if i % 8 == 0 else 0)
    if i % 23 == 5:
        return "1,2"
    label = "" if i % 17 == 3 else ("hall", "den")[den]
    near = "near" if i % 29 == 7 else str(i % 7 + 40 * den)
    return f"{near},{i % 5},{PEOPLE[i % 3]},{at},{label}"


def write_log(folder: Path) -> Path:
    """Write a log that tries everything: out of time order, unusable rows, missing labels."""
    path = folder / "rooms.csv"
    path.write_text("\n".join(["near,far,who,at,room", *(cells(i) for i in range(120))]) + "\n")
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path)


OPTIONS = ("--label", "room", "--time", "at", "--ignore", "who")
KEYED = ("--label", "room", "--time", "at", "--key", "who")
SLOW = ("--annotator", "error_rate=0.3,delay=100,decline_rate=0.1")
TWO = ("--annotator", "name=eve,error_rate=0.5,delay=45", "--annotator", "name=flo,delay=400")
TIRED = ("--annotator", "error_rate=0.1,tiring_rate=0.05,half_life_s=300,delay=50")
BRIEF = "[loop]\nexpires_after_s = 90.0\nanswer_horizon_s = 300.0\n"
ONE_READY = "[loop]\nmax_keys = 1\n"
FORGETFUL = f"{BRIEF}max_keys = 1\n"
ALWAYS = '[query]\nrule = "always"\n[challenge]\nrule = "always"\n'
TREE = (
    ALWAYS
    + '[learner]\nname = "river.tree.HoeffdingTreeClassifier"\noptions = {grace_period = 5}\n'
)
EARLIER = '[query]\nrule = "never"\n[reservoir]\nrule = "latest"\nsize = 9\nevery = 2\n'

REPLAYS: dict[str, tuple[tuple[str, ...], str]] = {
    "one learner": ((*OPTIONS, *SLOW), ALWAYS),
    "one learner, requests expire": ((*OPTIONS, *SLOW), BRIEF + ALWAYS),
    "a learner of River's": ((*OPTIONS, *SLOW), TREE),
    "earlier events, requests expire": ((*OPTIONS, *SLOW), EARLIER + BRIEF),
    "earlier events of a key, requests expire": ((*KEYED, *SLOW), EARLIER + FORGETFUL),
    "tired": ((*OPTIONS, *TIRED), ALWAYS),
    "all keys ready": ((*KEYED, *TWO), ALWAYS),
    "one key ready": ((*KEYED, *TWO), ONE_READY + ALWAYS),
    "one key ready, requests expire": ((*KEYED, *SLOW), FORGETFUL + ALWAYS),
}


def arguments_of(name: str, folder: Path) -> list[str | Path]:
    """Return the arguments of a replay."""
    options, text = REPLAYS[name]
    path = folder / "replay.toml"
    path.write_text(text)
    return [*options, "--config", path]


def assert_same(one: Path, other: Path) -> None:
    for name in SAME:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def without_times(table: str) -> list[str]:
    """Return what was printed without the last column, and without the name of the directory."""
    lines = [line.rstrip() for line in table.splitlines() if "timing.json" not in line]
    return [
        line.rpartition(" ")[0].rstrip() if line[-1:] in "-0123456789" else line for line in lines
    ]


class CrashError(Exception):
    """Stands for whatever ends a process."""


@pytest.fixture
def crash_after(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that makes every further replay save after a number of inputs, and crash.

    It crashes at once, or a number of inputs later, when more has been written.
    """
    saved = checkpoint.Keeper.save
    n = due = 0
    every = lag = fatal = 0

    def is_due(_: checkpoint.Keeper) -> bool:
        nonlocal n, due
        n += 1
        if n == fatal:
            raise CrashError
        due = every and n % every == 0
        return bool(due)

    def save(self: checkpoint.Keeper, now: Callable[[], checkpoint.Cut]) -> None:
        nonlocal due, fatal
        saved(self, now)
        if due:
            due, fatal = 0, n + lag
            if not lag:
                raise CrashError

    monkeypatch.setattr(checkpoint.Keeper, "is_due", is_due)
    monkeypatch.setattr(checkpoint.Keeper, "save", save)

    def after(n_inputs: int, lag_inputs: int = 0) -> None:
        nonlocal every, lag
        every, lag = n_inputs, lag_inputs

    return after


def play_in_pieces(log: Path, arguments: list[str | Path]) -> tuple[int, Result]:
    """Replay as often as it takes; return how often it crashed, and the last result."""
    for n_crashes in range(10_000):
        result = replay(log, *arguments)
        if not isinstance(result.exception, CrashError):
            assert result.exit_code == 0, result.output
            return n_crashes, result
    raise AssertionError("it never ends")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The messages of "one key ready", replayed at once."""
    folder = tmp_path_factory.mktemp("whole")
    log = write_log(folder)
    result = replay(log, *arguments_of("one key ready", folder), "--out", folder / "whole")
    assert result.exit_code == 0, result.output
    return folder / "whole"


# --- the same output as if it had never stopped


def test_names_of_files_need_not_be_utf_8(log: Path, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"ger\xe4te")
    folder.mkdir()
    log.rename(folder / os.fsdecode(b"r\xe4ume.csv"))
    play = [
        *("replay", os.fsdecode(b"r\xe4ume.csv"), *arguments_of("one key ready", tmp_path)),
        *("--limit", "30", "--out", "out", "--state", "state"),
    ]
    # The second one goes on where the first was done.
    commands = (play, play, ["report", "out", "run.html"], ["forget", "state", "ann"])
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", "streamgp", *command],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.getcwd()},
            stderr=subprocess.PIPE,
            check=False,
            timeout=300,
        )
        assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr


# The other replays have the same settings in other mixtures, or a learner of River's, which
# tests/interactive/test_snapshot.py restores.
BY_DAY = {"tired", "all keys ready", "earlier events of a key, requests expire"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in BY_DAY else pytest.mark.nightly) for name in REPLAYS],
)
@pytest.mark.parametrize("every", [40, pytest.param(17, marks=pytest.mark.nightly)])
def test_cut_after_every_nth_input_changes_nothing(
    name: str, every: int, log: Path, tmp_path: Path, crash_after: Any
) -> None:
    arguments = arguments_of(name, tmp_path)
    whole, pieces = tmp_path / "whole", tmp_path / "pieces"
    expected = replay(log, *arguments, "--out", whole)
    assert expected.exit_code == 0, expected.output
    summary = json.loads((whole / "summary.json").read_text())["results"]
    assert summary["n_rejected"] >= 8
    assert summary["n_challenges"] >= 3
    assert ("expire" in name) == (summary["n_expired"] > 0)
    crash_after(every, 3)
    options = [*arguments, "--out", pieces, "--state", tmp_path / "state"]
    n_crashes, result = play_in_pieces(log, options)
    assert n_crashes >= 120 // every
    assert_same(whole, pieces)
    assert without_times(result.stdout) == without_times(expected.stdout)
    again = replay(log, *options)  # it is complete: nothing is left to do but to say it again
    assert again.stderr.splitlines()[-1].startswith("0 events in")
    assert without_times(again.stdout) == without_times(expected.stdout)
    assert_same(whole, pieces)


def test_cut_after_every_input_changes_nothing(log: Path, tmp_path: Path, crash_after: Any) -> None:
    arguments = [*arguments_of("one key ready, requests expire", tmp_path), "--limit", "6"]
    whole, pieces = tmp_path / "whole", tmp_path / "pieces"
    replay(log, *arguments, "--out", whole)
    crash_after(1)
    options = [*arguments, "--out", pieces, "--state", tmp_path / "state"]
    n_crashes, _ = play_in_pieces(log, options)
    assert n_crashes > 6  # after the last row, too, and after every answer
    assert_same(whole, pieces)


def test_ctrl_c_is_a_cut_like_any_other(
    whole: Path, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_source, "BATCH", 60)  # the log has two of them
    arguments = arguments_of("one key ready", tmp_path)
    cut = tmp_path / "cut"
    interrupt(monkeypatch, n_polls=2)
    options = [*arguments, "--out", cut, "--state", tmp_path / "state"]
    result = replay(log, *options)
    assert result.exit_code == 130
    assert "what was done so far is kept; the same command continues from here" in result.stderr
    assert json.loads((cut / "summary.json").read_text())["interrupted"] is True
    assert replay(log, *options).exit_code == 0
    assert_same(whole, cut)


CHILD = """
import sys
from streamgp.apps.replay import checkpoint
checkpoint._SHORTEST_PAUSE_S, checkpoint._PAUSE_PER_COST = 0.02, 1.0
from streamgp.cli.main import cli
cli.main(sys.argv[1:])
"""


def child(*arguments: str | Path) -> subprocess.Popen[bytes]:
    """Start a replay that saves often, in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, "replay", *map(str, arguments)],
        env={**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def play(*arguments: str | Path) -> None:
    """Let such a replay end by itself."""
    process = child(*arguments)
    try:
        assert process.wait() == 0
    finally:
        process.kill()


def saved_at(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


# By day replays are cut where they save, and tests/connectors/storage kills what writes the files.
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("options", "text"),
    [
        pytest.param(SLOW, "", id="one learner"),
        pytest.param(("--key", "wap7", "--limit", "250", *TWO), ONE_READY, id="keys, one ready"),
    ],
)
def test_a_killed_process_leaves_what_the_next_one_needs(
    options: tuple[str, ...], text: str, tmp_path: Path
) -> None:
    packed = importlib.resources.files("streamgp") / "data" / "wifi_rooms.csv.gz"
    log, config = tmp_path / "wifi.csv.gz", tmp_path / "my.toml"
    log.write_bytes(packed.read_bytes())
    config.write_text(text)
    arguments = [log, "--label", "room", *options, "--config", config]
    whole, cut, kept = tmp_path / "whole", tmp_path / "cut", tmp_path / "state" / checkpoint.REPLAY
    draw, n_killed_midway = random.Random(len(text)), 0
    for _ in range(2):
        before = saved_at(kept)
        process = child(*arguments, "--out", cut, "--state", kept.parent)
        deadline = monotonic() + 60.0
        while saved_at(kept) == before and process.poll() is None and monotonic() < deadline:
            sleep(0.005)
        sleep(draw.uniform(0.0, 0.1))
        process.kill()
        was_killed = process.wait() == -signal.SIGKILL
        n_killed_midway += was_killed and not (cut / "summary.json").exists()
    assert n_killed_midway > 0
    play(*arguments, "--out", cut, "--state", kept.parent)
    play(*arguments, "--out", whole)
    assert_same(whole, cut)


# --- what it refuses


@pytest.fixture
def kept(log: Path, tmp_path: Path, crash_after: Any) -> list[str | Path]:
    """The arguments of a keyed replay that was cut: state in `state`, messages in `out`."""
    arguments = arguments_of("one key ready", tmp_path)
    arguments += ["--limit", "60", "--out", tmp_path / "out", "--state", tmp_path / "state"]
    crash_after(60)
    assert isinstance(replay(log, *arguments).exception, CrashError)
    crash_after(0)
    return arguments


@pytest.mark.parametrize(
    ("option", "value", "difference"),
    [
        ("--seed", "2", "seed = 1, this one has 2"),
        ("--limit", "61", "log.limit = 60, this one has 61"),
        ("--preset", "paper", "preset = 'default', this one has 'paper'"),
        ("--time", "far", "log.time = 'at', this one has 'far'"),
        ("--annotator", "name=eve,delay=46", "annotators.eve.delay = 45.0, this one has 46.0"),
    ],
)
def test_another_configuration_is_named(
    option: str, value: str, difference: str, log: Path, tmp_path: Path, kept: list[str | Path]
) -> None:
    if option == "--annotator":
        i = kept.index(TWO[1])
        kept[i] = "name=eve,error_rate=0.5,delay=46"
    else:
        kept += [option, value]
    assert wrong(log, *kept) == (
        f"{tmp_path / 'state'} holds a replay with {difference}; continue with the same "
        "configuration, or name another directory to start over"
    )


def test_a_state_from_before_there_was_a_setting_is_one_without_it(
    log: Path, tmp_path: Path
) -> None:
    here = origin_of(Config(), log, None)
    there = copy.deepcopy(here)
    for section, name in (("learner", "window"), ("learner", "drift"), ("query", "at_least")):
        del there["configuration"][section][name]
    check_same(tmp_path, there, here)
    other = origin_of(Config(learner=Learner(drift=True)), log, None)
    with pytest.raises(
        ClickException, match=r"learner\.drift = False, this one has True; continue wi"
    ):
        check_same(tmp_path, there, other)


def test_another_log_is_refused(log: Path, tmp_path: Path, kept: list[str | Path]) -> None:
    size = log.stat().st_size
    with log.open("a") as file:
        file.write("1,2,ann,9000,den\n")
    assert wrong(log, *kept) == (
        f"{tmp_path / 'state'} holds a replay of another log, or rooms.csv has changed since; "
        f"restore rooms.csv of {size} bytes, or name another directory to start over"
    )


def test_other_messages_are_refused(log: Path, tmp_path: Path, kept: list[str | Path]) -> None:
    out, i = tmp_path / "out", kept.index("--out")
    kept[i + 1] = tmp_path / "other"
    assert wrong(log, *kept) == (
        f"{tmp_path / 'state'} holds a replay with --out {out}, this one is with --out "
        f"{tmp_path / 'other'}; continue as it began, or name another directory to start over"
    )
    assert "this one is without --out; continue as it began" in wrong(
        log, *kept[:i], *kept[i + 2 :]
    )
    assert not (tmp_path / "other").exists()


def test_another_version_is_refused(
    log: Path, kept: list[str | Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamgp.apps.replay.checkpoint.__version__", "9.9")
    assert wrong(log, *kept).endswith(
        ", this is 9.9; continue with that version, or name another directory to start over"
    )


def test_messages_that_were_changed_are_refused(
    log: Path, tmp_path: Path, kept: list[str | Path]
) -> None:
    path = tmp_path / "out" / "answers.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    assert wrong(log, *kept) == (
        f"{path} has {len(whole) - 5} bytes, expected at least {len(whole)}: it was changed; "
        "start over"
    )
    path.write_bytes(whole[:-1] + b"?" + whole)
    assert wrong(log, *kept) == (
        f"{path} has no line that ends at byte {len(whole)}: it was changed; start over"
    )
    shutil.rmtree(path.parent)
    assert "is not there, expected" in wrong(log, *kept)


@pytest.mark.parametrize("damage", ["cut", "changed", "replaced"])
@pytest.mark.parametrize("name", [checkpoint.REPLAY, checkpoint.LOOPS])
def test_damaged_state_is_refused_in_a_line(
    name: str, damage: str, log: Path, tmp_path: Path, kept: list[str | Path]
) -> None:
    path = tmp_path / "state" / name
    data = path.read_bytes()
    half = len(data) // 2
    path.write_bytes(
        {
            "cut": data[:half],
            "changed": data[:half] + bytes(byte ^ 0xFF for byte in data[half:]),
            "replaced": b"Dear diary, today it rained.\n" * 200,
        }[damage]
    )
    former = (tmp_path / "state" / checkpoint.REPLAY).read_bytes()
    assert str(path) in wrong(log, *kept)
    assert (tmp_path / "state" / checkpoint.REPLAY).read_bytes() == former


def test_a_store_that_is_gone_is_missed(log: Path, tmp_path: Path, kept: list[str | Path]) -> None:
    path = tmp_path / "state" / checkpoint.LOOPS
    path.unlink()
    for _ in range(2):  # an empty one is not put in its place
        assert wrong(log, *kept) == (
            f"{path} is gone; restore it, or delete {path.parent} to start over"
        )


def test_a_store_of_another_time_is_refused(
    log: Path, tmp_path: Path, kept: list[str | Path]
) -> None:
    path = tmp_path / "state" / checkpoint.LOOPS
    path.unlink()
    SqliteStore(path).close()
    assert wrong(log, *kept) == (
        f"{path} cannot go back to the snapshot that is restored: one of the two was replaced; "
        "bring both back, or delete both and start over"
    )


def test_an_empty_state_is_damaged(log: Path, tmp_path: Path, kept: list[str | Path]) -> None:
    path = tmp_path / "state" / checkpoint.REPLAY
    path.write_bytes(b"")
    assert wrong(log, *kept) == (
        f"{path}: snapshot is damaged: it is empty; restore it, or delete it to start over"
    )


def test_another_order_of_hashes_is_refused(
    log: Path, tmp_path: Path, kept: list[str | Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    was = os.environ.get("PYTHONHASHSEED", "random")
    monkeypatch.setenv("PYTHONHASHSEED", "77")
    assert wrong(log, *kept) == (
        f"{tmp_path / 'state'} holds a replay with PYTHONHASHSEED={was}, this one has 77; set that "
        "environment variable as before, or name another directory to start over"
    )


def test_directory_in_use_is_refused(log: Path, tmp_path: Path, kept: list[str | Path]) -> None:
    with checkpoint.StateDirectory(tmp_path / "state"):
        assert wrong(log, *kept) == (
            f"{tmp_path / 'state'} is in use by process {os.getpid()}; stop it, or name another "
            "directory"
        )


def test_state_needs_a_directory_and_a_log_that_can_be_read_again(
    log: Path, tmp_path: Path
) -> None:
    file, pipe = tmp_path / "file", tmp_path / "pipe"
    file.touch()
    os.mkfifo(pipe)
    assert f"state must be kept in a directory, but {file} is a file" in wrong(
        log, *OPTIONS, "--state", file
    )
    assert wrong(pipe, *OPTIONS, "--state", tmp_path / "state") == (
        f"{pipe} cannot be read a second time, which --state needs; save it to a file first"
    )
    assert "missing.csv does not exist" in wrong(
        tmp_path / "missing.csv", *OPTIONS, "--state", tmp_path / "state"
    )
    assert "expected a directory, got an empty text" in wrong(log, *OPTIONS, "--state", "")
    assert not (tmp_path / "state").exists()  # none of these leaves one behind


def test_a_page_of_a_run_that_may_be_cut_needs_its_messages(log: Path, tmp_path: Path) -> None:
    options = [*OPTIONS, "--state", tmp_path / "state", "--report", tmp_path / "page.html"]
    assert wrong(log, *options).startswith(
        "--report with --state needs the messages of the whole run, also of earlier parts; give "
        "--out DIR as well"
    )


@contextmanager
def files_of_at_most(n_bytes: int) -> Iterator[None]:
    """Let every file be full at a size, as if the disk were."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    ("name", "n_bytes", "file"),
    [("one learner", 9_000, checkpoint.REPLAY), ("one key ready", 24_000, checkpoint.LOOPS)],
)
def test_full_disk_leaves_the_state_before(
    name: str, n_bytes: int, file: str, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "_SHORTEST_PAUSE_S", 0.0)
    arguments = arguments_of(name, tmp_path)
    whole = replay(log, *arguments)
    arguments += ["--state", tmp_path / "state"]
    with files_of_at_most(n_bytes):
        message = wrong(log, *arguments)
    assert str(tmp_path / "state" / file) in message
    result = replay(log, *arguments)
    assert result.exit_code == 0, result.output
    # It did not start over.
    assert 0 < int(result.stderr.splitlines()[-1].split()[0]) < 112
    assert without_times(result.stdout) == without_times(whole.stdout)


# --- unkind circumstances


def test_state_may_lie_beside_the_messages(
    whole: Path, log: Path, tmp_path: Path, crash_after: Any
) -> None:
    arguments = arguments_of("one key ready", tmp_path)
    both = tmp_path / "both"
    crash_after(50)
    play_in_pieces(log, [*arguments, "--out", both, "--state", both])
    assert_same(whole, both)


def test_a_run_that_ended_before_its_first_save_begins_anew(
    whole: Path, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = arguments_of("one key ready", tmp_path)
    cut = tmp_path / "cut"
    options = [*arguments, "--out", cut, "--state", tmp_path / "state"]
    with monkeypatch.context() as patched:
        patched.setattr(checkpoint.Keeper, "save", lambda *_: 1 / 0)
        assert isinstance(replay(log, *options).exception, ZeroDivisionError)
    assert not (tmp_path / "state" / checkpoint.REPLAY).exists()
    assert replay(log, *options).exit_code == 0
    assert_same(whole, cut)


def test_limit_reached_at_the_cut_is_the_end(log: Path, tmp_path: Path, crash_after: Any) -> None:
    arguments = [*OPTIONS, "--limit", "40"]  # answers come at once: 40 rows, 40 or more inputs
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    replay(log, *arguments, "--out", whole)
    for every in (38, 39, 40, 41):
        crash_after(every)
        shutil.rmtree(cut, ignore_errors=True)
        shutil.rmtree(tmp_path / "state", ignore_errors=True)
        play_in_pieces(log, [*arguments, "--out", cut, "--state", tmp_path / "state"])
        assert_same(whole, cut)


def test_reasons_of_rejected_rows_are_shown_again(
    log: Path, tmp_path: Path, crash_after: Any
) -> None:
    whole = replay(log, *KEYED)
    crash_after(70)
    _, result = play_in_pieces(log, [*KEYED, "--state", tmp_path / "state"])
    assert "and 4 more rejected" in result.stderr
    assert [line for line in result.stderr.splitlines() if "rejected" in line] == [
        line for line in whole.stderr.splitlines() if "rejected" in line
    ]


def test_a_log_without_rows_leaves_no_state(tmp_path: Path) -> None:
    log = tmp_path / "empty.csv"
    log.write_text("near,room\n")
    assert "header but no rows" in wrong(log, "--label", "room", "--state", tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_damaged_log_ends_the_same_again(tmp_path: Path) -> None:
    rows = ["near,far,who,at,room", *(cells(i % 97) for i in range(3000))]
    data = gzip.compress("\n".join(rows).encode(), mtime=0)
    log, arguments = tmp_path / "log.csv.gz", [*OPTIONS, "--preset", "paper"]
    log.write_bytes(data[: len(data) // 3])
    whole = replay(log, *arguments)
    assert whole.exit_code == 2
    results = [replay(log, *arguments, "--state", tmp_path / "state") for _ in range(2)]
    assert results[1].stderr.splitlines()[-2].startswith("0 events in")
    for result in results:
        assert result.exit_code == 2
        assert without_times(result.stdout) == without_times(whole.stdout)
        assert result.stderr.splitlines()[-1] == whole.stderr.splitlines()[-1]
