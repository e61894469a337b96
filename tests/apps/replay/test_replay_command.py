"""`streamgp replay`: what it writes, what it shows, and what it says to unkind users."""

from __future__ import annotations

import gzip
import importlib.resources
import json
import os
import random
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from connectors.jsonl import MessageFiles, alone_in
from connectors.storage import snapshots
from streamgp import isgp
from streamgp.apps.replay import run
from streamgp.apps.replay.engine import reliability_of
from streamgp.common.printable import printable
from streamgp.config.load import load, with_options
from streamgp.config.settings import Annotator, Config, Log
from streamgp.interactive import (
    Challenge,
    Event,
    InteractiveLoop,
    KeyedLoops,
    LabelledExample,
    RunStatistics,
    event_store,
)
from tests.helpers import commands
from tests.helpers.commands import interrupt, replay

NAMES = {
    "predictions.jsonl",
    "requests.jsonl",
    "answers.jsonl",
    "consensus.jsonl",
    "rejected.jsonl",
    "summary.json",
    "timing.json",
}


wrong = partial(commands.wrong, "replay")


def rows(n: int = 60) -> list[str]:
    """Two rooms, ten readings in each at a time, two phones in turn, a reading every 30 s."""
    return [
        f"{i % 7 + 40 * den},{i % 5},{'ab'[i % 2]},{30 * i},{'den' if den else 'hall'}"
        for i, den in ((i, i // 10 % 2) for i in range(n))
    ]


HEADER = "near,far,phone,at,room"


def write(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("\n".join([HEADER, *lines]) + "\n")
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write(tmp_path / "rooms.csv", rows())


@pytest.fixture
def wifi(tmp_path: Path) -> Path:
    packed = importlib.resources.files("streamgp") / "data" / "wifi_rooms.csv.gz"
    path = tmp_path / "wifi.csv.gz"
    path.write_bytes(packed.read_bytes())
    return path


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# --- what it does


def test_files_hold_every_message_and_agree_with_the_summary(wifi: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    arguments = ["--label", "room", "--annotator", "error_rate=0.2,delay=3,decline_rate=0.05"]
    result = replay(wifi, *arguments, "--out", out, "--limit", "700")
    assert result.exit_code == 0
    assert {path.name for path in out.iterdir()} == NAMES
    summary = json.loads((out / "summary.json").read_text())
    counts = summary["results"]
    assert counts["n_events"] == len(lines(out / "predictions.jsonl")) == 700
    requests = lines(out / "requests.jsonl")
    assert counts["n_asked"] + counts["n_challenges"] == len(requests)
    assert counts["n_answered"] + counts["n_declined"] == len(lines(out / "answers.jsonl"))
    assert counts["n_learned"] == len(lines(out / "consensus.jsonl"))
    assert counts["n_declined"] > 0
    assert lines(out / "rejected.jsonl") == []
    assert summary["log"] == "wifi.csv.gz"
    assert summary["configuration"]["annotator"]["delay"] == 3.0
    assert f"messages, summary.json and timing.json are in {out}" in result.stdout


def test_same_seed_and_log_give_equal_bytes_in_any_process(wifi: Path, tmp_path: Path) -> None:
    outs = []
    for hash_seed in ("1", "2"):
        out = tmp_path / hash_seed
        outs.append(out)
        options = ["--annotator", "error_rate=0.2,delay=20", "--limit", "400", "--out", str(out)]
        code = "from streamgp.cli.main import main; main()"
        subprocess.run(
            [sys.executable, "-c", code, "replay", str(wifi), "--label", "room", *options],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
        )
    for name in NAMES - {"timing.json"}:
        assert (outs[0] / name).read_bytes() == (outs[1] / name).read_bytes(), name


def test_seed_changes_the_run(wifi: Path, tmp_path: Path) -> None:
    answers = []
    for seed in ("1", "2"):
        out = tmp_path / seed
        replay(wifi, "--label", "room", "--limit", "300", "--seed", seed, "--out", out)
        answers.append((out / "requests.jsonl").read_bytes())
    assert answers[0] != answers[1]


def test_seed_is_1_by_default(log: Path, tmp_path: Path) -> None:
    outs = [tmp_path / "a", tmp_path / "b"]
    replay(log, "--label", "room", "--out", outs[0])
    replay(log, "--label", "room", "--seed", "1", "--out", outs[1])
    for name in NAMES - {"timing.json"}:
        assert (outs[0] / name).read_bytes() == (outs[1] / name).read_bytes(), name


def test_only_the_timing_file_holds_durations_and_no_file_holds_a_path(
    log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    replay(log, "--label", "room", "--out", out)
    timing = json.loads((out / "timing.json").read_text())
    assert set(timing) == {"n_events", "loop_s", "microseconds_per_event", "wall_s"}
    for name in NAMES:
        text = (out / name).read_text()
        assert str(tmp_path) not in text
        if name != "timing.json":
            assert "loop_s" not in text


def test_every_key_has_its_own_learner_and_line(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = replay(log, "--label", "room", "--time", "at", "--key", "phone", "--out", out)
    assert result.exit_code == 0
    firsts = [p for p in lines(out / "predictions.jsonl") if p["n_learned"] == 0 and not p["proba"]]
    assert {p["key"] for p in firsts} == {"a", "b"}
    summary = json.loads((out / "summary.json").read_text())
    assert list(summary["keys"]) == ["a", "b"]
    assert "weights" not in summary
    counts = summary["results"]
    assert counts["n_asked"] == sum(key["n_asked"] for key in summary["keys"].values())
    assert counts["n_events"] == 60
    names = [line.split("  ")[0] for line in result.stdout.splitlines()]
    assert {"phone", "a", "b", "all 2 keys"} <= set(names)


def test_one_key_is_not_called_keys(tmp_path: Path) -> None:
    path = write(tmp_path / "one.csv", [f"{i},1,p,{i},hall" for i in range(30)])
    assert "\nall 1 key  " in replay(path, "--label", "room", "--key", "phone").stdout


def test_many_keys_are_not_all_shown(tmp_path: Path) -> None:
    path = write(tmp_path / "many.csv", [f"{i},1,p{i % 30},{i},hall" for i in range(60)])
    result = replay(path, "--label", "room", "--key", "phone")
    assert "all 30 keys, 20 of them shown" in " ".join(result.stdout.split())
    assert "p19" in result.stdout
    assert "p20" not in result.stdout


def test_accuracy_says_nothing_where_only_one_class_is_measured(tmp_path: Path) -> None:
    lines = [f"{i % 7},0,a,{i},{'' if i % 2 else 'den'}" for i in range(40)]
    said = "\nevery label that is measured is den: accuracy and F1 say nothing\n"
    alone = replay(write(tmp_path / "one.csv", lines), "--label", "room").stdout
    assert said in alone
    two = write(tmp_path / "two.csv", [*lines, "1,0,b,40,attic"])
    assert said not in replay(two, "--label", "room").stdout
    # The first event of a key is not predicted, so its label is not measured.
    assert said in replay(two, "--label", "room", "--key", "phone").stdout


@pytest.mark.parametrize(
    ("keys", "shown"),
    [
        (["/data/pump/2026/march/1.csv", "/data/pump/2026/march/2.csv"], "…mp/2026/march/2.csv"),
        (["a pump with a long name", "b pump with a long name"], "b pump with a long …"),
        (["a pump with a long name"] * 2, "a pump with a long …"),
    ],
)
def test_long_keys_are_shown_by_where_they_differ(
    tmp_path: Path, keys: list[str], shown: str
) -> None:
    path = write(tmp_path / "two.csv", [f"{i},1,{keys[i % 2]},{i},hall" for i in range(40)])
    assert f"\n{shown}  " in replay(path, "--label", "room", "--key", "phone").stdout


def test_message_times_are_those_of_the_log(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    replay(log, "--label", "room", "--time", "at", "--out", out)
    assert [p["at"] for p in lines(out / "predictions.jsonl")] == [30.0 * i for i in range(60)]
    replay(log, "--label", "room", "--out", out)
    assert [p["at"] for p in lines(out / "predictions.jsonl")] == [1.0 + i for i in range(60)]


def test_features_and_ignored_columns(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for options in (
        ["--features", "near"],
        ["--ignore", "far,phone", "--ignore", "at"],
        ["--ignore", "far", "--ignore", "phone", "--ignore", "at"],
    ):
        assert replay(log, "--label", "room", *options, "--out", out).exit_code == 0
        assert all(set(r["x"]) == {"near"} for r in lines(out / "requests.jsonl"))


def test_what_columns_are_is_said(log: Path) -> None:
    result = replay(log, "--label", "room")
    assert result.exit_code == 0
    assert result.stderr.splitlines()[:2] == [
        "note: features that are texts: phone (at least 2 different)",
        "note: left out, a number that rises with every row: at",
    ]


def test_texts_are_not_given_to_a_learner_that_may_not_take_them(log: Path, tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text('[learner]\nname = "river.neighbors.KNNClassifier"')
    result = replay(log, "--label", "room", "--ignore", "at", "--config", path)
    assert result.exit_code == 0
    assert result.stderr.splitlines()[0] == "note: left out, texts: phone"


NEAREST = """
import math
from collections import defaultdict

from river import base, stats


class NearestMean(base.Classifier):
    def __init__(self):
        self.means = defaultdict(lambda: defaultdict(stats.Mean))

    @property
    def _multiclass(self):
        return True

    def learn_one(self, x, y):
        for name, value in x.items():
            self.means[y][name].update(value)

    def predict_proba_one(self, x):
        near = {
            y: math.exp(-math.dist(x.values(), [means[name].get() for name in x]))
            for y, means in self.means.items()
        }
        return {y: value / sum(near.values()) for y, value in near.items()}
"""


def test_a_custom_learner_gets_texts_that_are_named_as_features(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "nearest_mean.py").write_text(NEAREST)
    config = tmp_path / "own.toml"
    config.write_text('[learner]\nname = "nearest_mean:NearestMean"\n')
    arguments = ["--label", "room", "--ignore", "at", "--config", config]
    result = replay(log, *arguments)
    assert result.exit_code == 0, result.stderr
    assert "note: left out, texts: phone" in result.stderr
    assert "rejected" not in result.stderr
    result = replay(log, *arguments, "--features", "near,phone")
    assert result.exit_code == 2
    assert "rejected 1/label/answer: the learner refuses it: unsupported operand" in result.stderr
    assert "Error: the learner could not learn a single label" in result.stderr


def test_a_text_that_decides_the_class_is_learned(tmp_path: Path) -> None:
    """Numbers say nothing about the room in this log, the phone's network says everything."""
    drawn = random.Random(1)
    path = tmp_path / "networks.csv"
    with path.open("w") as file:
        file.write("light,network,room\n")
        for _ in range(300):
            room = drawn.choice(["den", "hall", "bath"])
            network = {"den": drawn.choice(["up", "roof"]), "hall": "main"}.get(room, "")
            file.write(f"{drawn.random():.3f},{network},{room}\n")
    accuracies = []
    for out, options in ((tmp_path / "with", []), (tmp_path / "without", ["--ignore", "network"])):
        arguments = ["--label", "room", "--annotator", "error_rate=0.1,seed=1", "--seed", "1"]
        assert replay(path, *arguments, *options, "--out", out).exit_code == 0
        results = json.loads((out / "summary.json").read_text())["results"]
        accuracies.append(results["accuracy"])
    assert accuracies[0] > 0.9
    assert accuracies[1] < 0.5


def test_unreadable_rows_are_counted_shown_and_the_run_goes_on(tmp_path: Path) -> None:
    bad = [*rows(20), "1,2", "one,2,a,5,hall", "1,2,a,5,hall,6", *rows(20)]
    path = write(tmp_path / "bad.csv", bad)
    out = tmp_path / "out"
    result = replay(path, "--label", "room", "--out", out)
    assert result.exit_code == 0
    assert "40 events" in result.stdout
    assert "3 rejected" in result.stdout
    rejected = lines(out / "rejected.jsonl")
    assert len(rejected) == 3
    for message, number in zip(rejected, (22, 23, 24), strict=True):
        assert f"line {number}" in message["reason"]
        assert message["reason"] in result.stderr


def test_of_many_unreadable_rows_the_first_are_shown(tmp_path: Path) -> None:
    path = write(tmp_path / "bad.csv", [*rows(20), *["1,2"] * 12])
    result = replay(path, "--label", "room")
    assert result.stderr.count("rejected row") == 5
    assert "and 7 more rejected; --out DIR writes them all" in result.stderr
    result = replay(path, "--label", "room", "--out", tmp_path / "out")
    assert "and 7 more rejected, see rejected.jsonl" in result.stderr


def test_former_results_are_replaced_and_other_files_kept(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    (out / "summary.json").write_text("old")
    assert replay(log, "--label", "room", "--out", out).exit_code == 0
    assert (out / "mine.txt").read_text() == "mine"
    assert json.loads((out / "summary.json").read_text())["results"]["n_events"] == 60


def test_where_stderr_is_no_terminal_progress_is_one_line_at_the_end(log: Path) -> None:
    result = replay(log, "--label", "room", "--ignore", "phone,at")
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("60 events in ")


def test_rivers_classifier_is_named_in_the_table(log: Path, tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text('[learner]\nname = "river.naive_bayes.GaussianNB"')
    result = replay(log, "--label", "room", "--config", path)
    assert "skeptical GaussianNB" in result.stdout


def test_budget_of_the_file_is_kept(log: Path, tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text('[query]\nrule = "always"\n[budget]\nrule = "at_most"\nn = 7')
    out = tmp_path / "out"
    replay(log, "--label", "room", "--config", path, "--out", out)
    assert json.loads((out / "summary.json").read_text())["results"]["n_asked"] == 7


def test_unanswered_requests_expire(log: Path, tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text('[log]\nlabel = "room"\n[loop]\nexpires_after_s = 5.0\nanswer_horizon_s = 8.0')
    result = replay(log, "--config", path, "--annotator", "delay=10")
    assert result.exit_code == 0
    assert "0 labels learned" in result.stdout


def test_empty_labels_are_events_that_the_annotator_cannot_label(tmp_path: Path) -> None:
    path = write(tmp_path / "unlabelled.csv", [f"{i},1,a,{i}," for i in range(20)])
    result = replay(path, "--label", "room")
    assert result.exit_code == 0
    assert "0 labels learned" in result.stdout
    assert "0 answers" in result.stdout


# --- the command line and the file


def test_options_override_the_file_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text(
        'seed = 3\npreset = "paper"\n[annotator]\nerror_rate = 0.1\ndelay = 5.0\n'
        '[log]\nlabel = "a"\ntime = "t"\nignore = ["b"]\nlimit = 9'
    )
    config = load(path)
    assert with_options(config) == config
    changed = with_options(
        config,
        label="z",
        key="k",
        ignore=("c",),
        features=("f",),
        annotator=("error_rate=0.3",),
        preset="default",
        seed=8,
        limit=2,
    )
    assert changed == Config(
        preset="default",
        seed=8,
        annotator=Annotator(error_rate=0.3, delay=5.0),
        log=Log(label="z", time="t", key="k", ignore=("c",), features=("f",), limit=2),
    )
    assert with_options(config, time="u").log.time == "u"


# --- unkind users


def test_label_is_required_here_or_in_the_file(log: Path) -> None:
    assert wrong(log).startswith(
        "name the column that holds the label: --label COLUMN, or label in section [log] of the "
        "configuration file (see `"
    )


def test_unreadable_logs_are_one_line(tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.touch()
    blank = tmp_path / "blank.csv"
    blank.write_text("\n\n \n")
    binary = tmp_path / "binary.csv"
    binary.write_bytes(bytes(range(256)) * 20)
    prose = tmp_path / "prose.txt"
    prose.write_text("Dear diary,\ntoday it rained.\n")
    damaged = tmp_path / "damaged.csv.gz"
    damaged.write_bytes(gzip.compress(b"a,room\n1,x\n")[:15])
    header = tmp_path / "header.csv"
    header.write_text(HEADER + "\n")
    expected = {
        tmp_path / "missing.csv": "missing.csv does not exist",
        tmp_path: "is a directory",
        empty: "empty.csv is empty",
        blank: "blank.csv is empty",
        binary: "binary.csv is binary",
        prose: "prose.txt has no column 'room' (label); columns: ",
        damaged: "damaged.csv.gz",
        header: "header.csv has a header but no rows",
    }
    for path, message in expected.items():
        assert message in wrong(path, "--label", "room")


def test_missing_columns_are_named_with_those_there_are(log: Path) -> None:
    message = wrong(log, "--label", "rom")
    assert "has no column 'rom' (label); columns: near, far, phone, at, room" in message
    assert "did you mean 'room'" in message
    for option in ("--time", "--key", "--ignore", "--features"):
        assert "has no column 'nope'" in wrong(log, "--label", "room", option, "nope")


def test_columns_that_contradict_each_other_are_reported(log: Path) -> None:
    assert wrong(log, "--label", "room", "--time", "room") == (
        "command line: column 'room' is both label and time; give each its own column"
    )
    assert "remove it from the ignore columns" in wrong(log, "--label", "room", "--ignore", "room")
    assert "name it only once" in wrong(
        log, "--label", "room", "--ignore", "far", "--features", "far"
    )
    assert "column names must not be empty" in wrong(log, "--label", "room", "--ignore", "far,,at")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--annotator", "error_rate=2", "expected a number from 0 to 1"),
        ("--annotator", "error_rate=nan", "error_rate = nan is not allowed"),
        ("--annotator", "speed=2", "speed is not known"),
        ("--preset", "papers", "'papers' is not one of 'default', 'paper'"),
        ("--seed", "-1", "-1 is not in the range"),
        ("--seed", "x", "Invalid value for '--seed'"),
        ("--limit", "0", "0 is not in the range"),
        ("--config", "missing.toml", "missing.toml: cannot be read: No such file or directory"),
    ],
)
def test_wrong_values_are_one_line(log: Path, option: str, value: str, message: str) -> None:
    assert message in wrong(log, "--label", "room", option, value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[query]\nrule = "entropi"', 'query.rule = "entropi" is not allowed, expected one of'),
        ("[annotator]\nerror_rate = nan", "annotator.error_rate = nan is not allowed"),
        ('[query]\nrule = "random"\nrate = -1', "query.rate = -1 is not allowed"),
        ('[learner]\nname = "river.tree.Nope"', 'learner.name = "river.tree.Nope" is not a River'),
        ('preset = "mine"', 'preset = "mine" is not allowed, expected one of'),
    ],
)
def test_wrong_configuration_is_one_line(
    log: Path, tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "my.toml"
    path.write_text(text)
    assert wrong(log, "--label", "room", "--config", path).startswith(f"{path}: {message}")


def test_results_never_overwrite_the_log(tmp_path: Path) -> None:
    former = tmp_path / "predictions.jsonl"
    former.write_text('{"near": 1, "room": "hall"}\n')
    assert wrong(former, "--label", "room", "--out", tmp_path).endswith(
        f"would be overwritten by what is written to {tmp_path}; name another directory"
    )
    assert former.read_text() == '{"near": 1, "room": "hall"}\n'
    log = tmp_path / "log.jsonl"
    log.hardlink_to(former)
    assert f"{log} would be overwritten by" in wrong(log, "--label", "room", "--out", tmp_path)
    assert log.read_text() == '{"near": 1, "room": "hall"}\n'


def test_directory_that_cannot_be_written_is_one_line(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    options = ["--label", "room", "--ignore", "phone", "--out"]
    assert "is a file; name another one" in wrong(log, *options, file)
    assert "is a file; name another one" in wrong(log, *options, file / "below")

    def refused(self: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refused)
    assert "cannot write messages to /etc/out: Permission denied" in wrong(
        log, *options, "/etc/out"
    )


@pytest.mark.parametrize(("option", "what"), [("--out", "go to"), ("--state", "be kept in")])
def test_a_link_that_leads_nowhere_is_named(
    option: str, what: str, log: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to("nowhere")
    message = wrong(log, "--label", "room", "--ignore", "phone", option, link)
    assert f"must {what} a directory, but {link} is a link that leads nowhere" in message


@pytest.mark.parametrize("option", ["--out", "--state", "--report"])
def test_a_link_to_itself_is_one_line(option: str, log: Path, tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    result = replay(log, "--label", "room", "--ignore", "phone", option, loop)
    assert result.exit_code == 2
    assert f"{loop}" in result.stderr.splitlines()[-1]
    assert "link" in result.stderr.splitlines()[-1]


def test_directory_that_another_replay_writes_to_is_refused(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--label", "room", "--ignore", "phone", "--out", out]
    message = f"{out} is in use by another replay; wait for its end, or name another directory"
    with alone_in(out):
        assert wrong(log, *options) == message
        assert wrong(log, *options, "--state", tmp_path / "state") == message
        assert list(out.iterdir()) == []
    assert replay(log, *options).exit_code == 0


def test_directory_is_kept_until_the_page_is_made(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, refused = tmp_path / "out", []

    def look(directory: Path, *_: object, **__: object) -> None:
        with pytest.raises(ValueError, match="in use by another replay"), alone_in(directory):
            pass
        refused.append(directory)

    monkeypatch.setattr(run, "write_results", look)
    monkeypatch.setattr(run, "write_report", look)
    options = ["--label", "room", "--ignore", "phone", "--report", tmp_path / "page.html"]
    assert replay(log, *options, "--out", out).exit_code == 0
    assert refused == [out, out]


def test_unreadable_log_leaves_no_directory_behind(tmp_path: Path) -> None:
    wrong(tmp_path / "missing.csv", "--label", "room", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_full_disk_is_one_line(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(MessageFiles, "send", full)
    out = tmp_path / "out"
    assert wrong(log, "--label", "room", "--ignore", "phone,at", "--out", out) == (
        f"cannot write to {out}: No space left on device; free some space"
    )


def test_summary_is_whole_or_not_there(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = os.write

    def fill(descriptor: int, data: memoryview) -> int:
        if len(data) == 1:
            raise OSError(28, "No space left on device")
        return written(descriptor, data[: len(data) // 2])

    monkeypatch.setattr(snapshots, "os", SimpleNamespace(**vars(os) | {"write": fill}))
    out = tmp_path / "out"
    assert wrong(log, "--label", "room", "--ignore", "phone,at", "--out", out) == (
        f"cannot write {out / 'summary.json'}: No space left on device; free some space"
    )
    assert {path.name for path in out.iterdir()}.isdisjoint({"summary.json", "timing.json"})
    assert not list(out.glob(".*.part"))


def test_summary_has_the_permissions_of_the_messages(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    umask = os.umask(0o027)
    try:
        command = (log, "--label", "room", "--ignore", "phone", "--out", out)
        assert replay(*command).exit_code == 0
        for path in out.glob("*.jsonl"):
            path.chmod(0o640)
        assert replay(*command).exit_code == 0
    finally:
        os.umask(umask)
    assert {oct(path.stat().st_mode & 0o777) for path in out.glob("*.json*")} == {"0o640"}


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.parquet"
    path.write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install pyarrow" in wrong(path, "--label", "room")


def test_log_that_is_damaged_further_on_keeps_what_came_before(tmp_path: Path) -> None:
    whole = gzip.compress("\n".join([HEADER, *rows(5000)]).encode(), mtime=0)
    path = tmp_path / "log.csv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    out = tmp_path / "out"
    result = replay(path, "--label", "room", "--out", out)
    assert result.exit_code == 2
    n_events = json.loads((out / "summary.json").read_text())["results"]["n_events"]
    assert n_events > 100
    assert f"{n_events} events" in result.stdout
    assert result.stderr.splitlines()[-1].startswith(f"Error: {path}")
    assert result.stderr.endswith("(what came before it is kept)\n")


def test_ctrl_c_keeps_and_shows_what_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "long.csv", rows(2000))
    interrupt(monkeypatch, n_polls=3)
    out = tmp_path / "out"
    result = replay(path, "--label", "room", "--out", out)
    assert result.exit_code == 130
    summary = json.loads((out / "summary.json").read_text())
    assert summary["interrupted"] is True
    n_events = summary["results"]["n_events"]
    assert 256 <= n_events < 2000
    assert len(lines(out / "predictions.jsonl")) == n_events
    assert f"{n_events} events" in result.stdout
    assert "interrupted; what was done so far is kept" in result.stderr
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_empty_directory_name_is_wrong_use(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("a,room\n1,x\n2,y\n")
    result = replay(path, "--label", "room", "--out", "")
    assert result.exit_code == 2
    assert "expected a directory, got an empty text" in result.stderr


@pytest.mark.filterwarnings("default::RuntimeWarning")
def test_a_log_of_which_nothing_is_forgotten_is_noted_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(event_store, "MANY", 2)
    path = tmp_path / "log.csv"
    path.write_text("a,room\n1,x\n2,y\n3,x\n")
    result = replay(path, "--label", "room")
    assert result.stderr.splitlines()[0].startswith(
        "note: 2 events are remembered, and none is ever forgotten; give answer_horizon_s, the "
    )
    with pytest.warns(UserWarning, match="elsewhere"):  # it is restored
        warnings.warn("elsewhere", stacklevel=1)


def test_a_log_without_one_readable_row_is_an_error(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b"a,room\n1,k\xfcche\n2,hall,\n")
    result = replay(path, "--label", "room")
    assert result.exit_code == 2
    assert f"Error: no row of {path} could be read" in result.stderr


def test_a_rule_that_fails_over_every_event_is_an_error(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "rules_that_fail.py").write_text(
        "class Half:\n    def decide(self, belief, draw):\n        return belief and True\n"
    )
    path = tmp_path / "log.csv"
    path.write_text("a,room\n" + "1,x\n2,y\n" * 20)  # so many that some are not tried
    config = tmp_path / "own.toml"
    config.write_text('[query]\nrule = "rules_that_fail:Half"\n')
    result = replay(path, "--label", "room", "--config", config)
    assert result.exit_code == 2
    assert "rejected 1 (ask): TypeError: Half.decide must return a Decision" in result.stderr
    assert "Error: the learner or a rule failed on every event" in result.stderr


def test_a_text_that_cannot_be_written_rejects_its_row(tmp_path):
    path, out = tmp_path / "log.jsonl", tmp_path / "out"
    rows = ['{"k": "u", "a": 1, "room": "x"}', '{"k": "\\ud800", "a": 2, "room": "x"}']
    path.write_text("\n".join(rows) + "\n")
    result = replay(path, "--label", "room", "--key", "k", "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "must be valid Unicode" in (out / "rejected.jsonl").read_text()


def test_results_of_an_earlier_run_are_gone_from_the_start(tmp_path, monkeypatch):
    path, out = tmp_path / "log.csv", tmp_path / "out"
    path.write_text("a,room\n1,x\n2,y\n")
    assert replay(path, "--label", "room", "--out", out).exit_code == 0
    monkeypatch.setattr("streamgp.apps.replay.run.Replay.run", lambda *_, **__: 1 / 0)
    result = replay(path, "--label", "room", "--out", out)
    assert isinstance(result.exception, ZeroDivisionError)
    assert not {"summary.json", "timing.json"} & {p.name for p in out.iterdir()}


def test_output_that_cannot_be_written_is_one_line(tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    path = tmp_path / "log.csv"
    path.write_text("a,room\n1,x\n2,y\n")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "streamgp", "replay", str(path), "--label", "room"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("Error: cannot write the results: No space left")


def test_keys_of_any_length_and_with_line_breaks_keep_the_table_in_shape(tmp_path):
    path = tmp_path / "log.jsonl"
    rows = [{"k": k, "a": i, "room": "x"} for i, k in enumerate(["two\nlines", "k" * 100])]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = replay(path, "--label", "room", "--key", "k")
    assert r"two\nlines" in result.stdout
    assert "k" * 19 + "…" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


# --- what is measured, and what is not


def log_with_labels(path: Path, *, every: int) -> Path:
    """Write a log of which some rows have a label; none if `every` is 0."""
    lines = rows(120)
    for i, line in enumerate(lines):
        if not every or i % every:
            lines[i] = line[: line.rindex(",") + 1]
    path.write_text("\n".join(["light,noise,phone,at,room", *lines]) + "\n")
    return path


def test_without_labels_nothing_is_said_to_be_measured(tmp_path: Path) -> None:
    log, out = log_with_labels(tmp_path / "log.csv", every=0), tmp_path / "out"
    page = tmp_path / "page.html"
    result = replay(log, "--label", "room", "--ignore", "phone,at", "--out", out, "--report", page)
    assert result.exit_code == 0, result.output
    [row] = [line for line in result.stdout.splitlines() if line.startswith("skeptical GP")]
    assert row.split()[2:-1] == ["-", "-", "120", "0", "-", "-"]
    assert "no event has a label: accuracy and F1, challenge precision and wrong" in result.stdout
    assert "spoiled" not in result.stdout
    results = json.loads((out / "summary.json").read_text())["results"]
    for name in ("accuracy", "macro_f1", "challenge_precision", "challenge_recall", "wrong_kept"):
        assert results[name] is None
    assert page.is_file()


def test_with_some_labels_it_is_said_how_many_the_measures_are_of(tmp_path: Path) -> None:
    log = log_with_labels(tmp_path / "log.csv", every=3)
    result = replay(log, "--label", "room", "--ignore", "at", "--key", "phone")
    assert "\n40 of the events have a label; accuracy and F1, challenge" in result.stdout


def test_many_events_before_the_first_label_are_said_not_to_be_measured(tmp_path: Path) -> None:
    log = write(tmp_path / "log.csv", rows())
    of_all = ["--label", "room", "--ignore", "phone,at"]
    said = (
        "\naccuracy and F1 leave out {} events without a prediction, such as those before the first"
    )
    late = replay(log, *of_all, "--annotator", "delay=30")
    assert said.format(30) in late.stdout
    assert "leave out" not in replay(log, *of_all, "--annotator", "delay=1").stdout


def test_answers_that_all_come_after_the_last_event_are_the_reason_why_nothing_is_measured(
    tmp_path: Path,
) -> None:
    log = write(tmp_path / "log.csv", rows())
    said = "\nno event with a label was predicted: "
    late = replay(log, "--label", "room", "--ignore", "phone,at", "--annotator", "delay=60")
    assert f"{said}the first label was learned after them\n" in late.stdout
    declining = ["--annotator", "decline_rate=1"]
    result = replay(log, "--label", "room", "--ignore", "phone,at", *declining)
    assert f"{said}no label was learned\n" in result.stdout
    assert said not in replay(log, "--label", "room", "--ignore", "phone,at").stdout


def test_classes_that_were_never_predicted_are_named_as_accuracy_hides_them(
    tmp_path: Path,
) -> None:
    lines = [f"{i % 7},0,a,{i},{'attic' if i % 100 == 99 else 'den'}" for i in range(500)]
    lines[298] = "3,0,a,298,\x1broof"
    log = write(tmp_path / "log.csv", lines)
    arguments = [log, "--label", "room", "--ignore", "phone,at"]
    said = replay(*arguments).stdout
    assert "\nnever predicted: attic (5 events), \\x1broof (1 event)\n" in said
    assert "never predicted" not in replay(*arguments, "--limit", 90).stdout


def test_of_many_classes_that_were_never_predicted_some_are_named(tmp_path: Path) -> None:
    log = write(tmp_path / "log.csv", (f"{i % 7},0,a,{i},r{i % 20}" for i in range(40)))
    config = tmp_path / "few.toml"
    config.write_text('[budget]\nrule = "at_most"\nn = 1\n')
    said = replay(log, "--label", "room", "--ignore", "phone,at", "--config", config).stdout
    assert "\nnever predicted: r1 (2 events), r2 (2 events), " in said
    assert ", and 14 more\n" in said


def test_weights_of_columns_are_written_the_largest_first(tmp_path: Path) -> None:
    log = write(
        tmp_path / "log.csv", (f"{3 * (i % 2) + i % 3},0,a,{i},r{i % 2}" for i in range(40))
    )
    config = tmp_path / "all.toml"
    config.write_text('[query]\nrule = "always"\n')
    replay(log, "--label", "room", "--ignore", "at", "--config", config, "--out", tmp_path / "out")
    weights = json.loads((tmp_path / "out" / "summary.json").read_text())["weights"]
    assert list(weights) == ["near", "far"]
    assert weights["near"] > 1.0 > weights["far"]


def test_a_fall_of_the_accuracy_is_told_with_what_may_help(tmp_path: Path) -> None:
    turned = {"den": "hall", "hall": "den"}
    lines = [line.rsplit(",", 1) for line in rows(1000)]
    lines[600:] = [[x, turned[room]] for x, room in lines[600:]]
    log = write(tmp_path / "log.csv", map(",".join, lines))
    arguments = [log, "--label", "room", "--ignore", "phone,at"]
    said = replay(*arguments, "--out", tmp_path / "out").stdout
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    n_outdated, since = summary["drifts"]["n_outdated"], summary["drifts"]["since"]
    told = f"1 concept drift found; {n_outdated} labels, those before that of event {since}, are"
    assert f"\n{told} outdated\n" in said
    assert 595 <= int(since) < 700
    assert 0 < n_outdated < summary["results"]["n_learned"]
    assert "[drift_test]" not in said
    assert "another 50 labels" not in said  # the record is no learning curve
    assert "gain" not in summary
    page = tmp_path / "page.html"
    replay(*arguments, "--report", page)
    assert f"{told} outdated." in page.read_text()
    config = tmp_path / "without.toml"
    config.write_text("[drift_test]\nenabled = false\n")
    said = replay(*arguments, "--config", config).stdout
    assert "\naccuracy fell from 1.000 in quarter 2 of the events to 0.000 in the last\n" in said
    assert "\nif it is concept drift, enabled = true in [drift_test] may help\n" in said
    assert "another 50 labels" not in said
    assert "found" not in said


def test_what_challenges_did_to_labels_of_unknown_truth_is_unknown() -> None:
    statistics = RunStatistics()
    statistics.event(Event(event_id="e1", x={}, occurred_at=0.0))
    assert statistics.summary()["n_repaired"] == 0
    statistics.message(
        Challenge(
            request_id="e1/challenge", event_id="e1", requested_at=1.0, x={}, given="den",
            suggested="hall", probability_wrong=0.9, reason="always", score=1.0, threshold=0.0,
        )
    )  # fmt: skip
    learned = LabelledExample(
        event_id="e1", sequence=1, x={}, y="hall", origin="revised", annotator="ann",
        learned_at=2.0, probability_wrong=1.0,
    )  # fmt: skip
    statistics.message(learned)
    summary = statistics.summary()
    for name in ("n_repaired", "n_spoiled", "n_wrong_kept", "wrong_kept", "challenge_precision"):
        assert summary[name] is None
    assert (summary["n_challenges"], summary["n_learned"]) == (1, 1)


# --- labels that hide something


def test_a_label_that_hides_something_is_written_out_and_warned_of_and_kept(
    tmp_path: Path,
) -> None:
    log, out, page = tmp_path / "log.csv", tmp_path / "out", tmp_path / "page.html"
    hidden = "de\u200bn\u202e\x1b[31m"
    text = "\n".join(["light,noise,phone,at,room", *rows(60)]).replace(",den", f",{hidden}")
    log.write_text(text.replace(",a,", ",an\u2066n,") + "\n")
    options = ("--label", "room", "--ignore", "at", "--key", "phone")
    result = replay(log, *options, "--out", out, "--report", page)
    assert result.exit_code == 0, result.output
    shown = printable(hidden)
    assert result.stderr.count("holds what cannot be seen") == 1
    assert f"note: label {shown} holds what cannot be seen (U+200B, U+202E, U+001B)" in (
        result.stderr
    )
    for text in (result.stdout, result.stderr):
        assert [line for line in text.splitlines() if printable(line) != line] == []
    assert not set("\u200b\u202e\u2066\x1b") & set(page.read_text())
    assert shown in page.read_text()
    assert r"an\u2066n" in result.stdout
    assert hidden in {
        json.loads(line)["y"] for line in (out / "consensus.jsonl").read_text().splitlines()
    }


def test_labels_and_keys_that_look_the_same_are_told(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    text = "\n".join(["light,noise,phone,at,room", *rows(60)])
    log.write_text(text.replace(",den", ",de\u0301n", 5).replace(",den", ",d\u00e9n") + "\n")
    result = replay(log, "--label", "room", "--ignore", "at,phone")
    assert result.exit_code == 0, result.output
    told = r"note: label d\u00e9n is written in 2 Unicode forms, which count as different labels: "
    assert told.encode().decode("unicode_escape") in result.stderr
    assert r"'de\u0301n'" in result.stderr
    assert r"'d\xe9n'" in result.stderr
    log.write_text(
        "\n".join(["x,who,room", *("1,e\u0301,a", "2,\u00e9,b", "1,\u00e9,b") * 3]) + "\n"
    )
    said = replay(log, "--label", "room", "--key", "who").stderr
    assert "note: key \u00e9 is written in 2 Unicode forms, which count as different keys: " in said
    both = result.stderr.count("note: ")
    log.write_text(log.read_text().replace("e\u0301", "\u00e9"))
    result = replay(log, "--label", "room", "--ignore", "at,phone")
    assert result.stderr.count("note: ") == both - 1


LIAR_OF_THREE = {"ann": 0.02, "bob": 0.02, "eve": 1.0}
PEOPLE = ("--annotator", "name=ann", "--annotator", "name=bob,error_rate=0.4,stubborn=true")


def annotators(out: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((out / "summary.json").read_text())["annotators"]
    return found


def test_annotators_are_estimated_by_all_answers_of_all_keys(log: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.toml"
    few.write_text("[loop]\nmax_keys = 1\n")
    arguments = ("--label", "room", "--key", "phone", *PEOPLE, "--out")
    shown = replay(log, *arguments, tmp_path / "all").stdout
    assert replay(log, "--config", few, *arguments, tmp_path / "few").exit_code == 0
    found = annotators(tmp_path / "all")
    assert found == annotators(tmp_path / "few")
    assert {each["name"] for each in found} == {"ann", "bob"}
    for each in found:
        assert 0.0 < each["by_all_answers"] < 1.0
        together = f"{100 * each['by_all_answers']:.0f} % wrong, and {100 * each['insistence']:.0f}"
        assert f"; by all answers together {together} % of the wrong ones insisted on" in shown


def test_annotators_who_mislead_are_shown_with_the_labels_taken_back(tmp_path: Path) -> None:
    rng = random.Random(3)
    log = tmp_path / "rooms.csv"
    near = [rng.random() for _ in range(300)]
    lines = (f"{60 * n},{u},{'hall' if u < 0.5 else 'den'}\n" for n, u in enumerate(near))
    log.write_text("time,near,room\n" + "".join(lines))
    people = [f"--annotator=name={name},error_rate={rate}" for name, rate in LIAR_OF_THREE.items()]
    rule = tmp_path / "often.toml"
    rule.write_text('[query]\nrule = "always"\n')
    out, report = tmp_path / "out", tmp_path / "report.html"
    options = ("--label", "room", "--time", "time", "--config", rule, *people)
    shown = replay(log, *options, "--out", out, "--report", report).stdout
    [eve] = [each for each in annotators(out) if each["name"] == "eve"]
    assert eve["n_quarantines"] == 1
    n = eve["n_taken_back"]
    assert n > 5
    [line] = [line for line in shown.splitlines() if line.startswith("eve: ")]
    assert line.endswith(f" answers; then in quarantine, {n} labels taken back")
    assert f"<td>{n}</td></tr>" in report.read_text()
    assert not any("n_quarantines" in each for each in annotators(out) if each["name"] != "eve")


def test_one_learner_says_of_its_annotators_what_it_knows() -> None:
    loop = InteractiveLoop(isgp(seed=1))
    for n in range(12):
        y = "den" if n % 2 else "hall"
        loop.on_event(Event(event_id=str(n), x={"near": n % 2}, occurred_at=n, y=y), n)
    known = loop.model.estimate_annotators()
    assert known[None].n_answers == 12
    assert reliability_of(loop, []) == known


def test_what_many_keys_know_is_left_alone() -> None:
    loops = KeyedLoops(isgp(seed=1))
    keys = [str(n) for n in range(101)]
    for key in keys:
        if loops.n_keys == 100:
            assert reliability_of(loops, keys[:100])[None].n_answers == 100
        loops.on_event(Event(event_id="1", key=key, x={"near": 1}, occurred_at=0.0, y="den"), 0.0)
    assert reliability_of(loops, keys) == {}


def test_what_more_labels_would_gain_is_said_and_written(wifi: Path, tmp_path: Path) -> None:
    shown = replay(wifi, "--label", "room", "--seed", 2, "--out", tmp_path / "out").stdout
    gain = json.loads((tmp_path / "out" / "summary.json").read_text())["gain"]
    assert 0.0 <= gain["low"] <= gain["expected"] <= gain["high"]
    assert f"{gain['n_labels']} labels are expected to bring about +{gain['expected']:.3f}" in shown


def test_few_labels_lead_to_no_advice(log: Path, tmp_path: Path) -> None:
    assert "labels are expected" not in replay(log, "--label", "room", "--out", tmp_path).stdout
    assert "gain" not in json.loads((tmp_path / "summary.json").read_text())
