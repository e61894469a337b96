"""`streamgp report` and `replay --report`: the same page, from the run's files alone."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.commands import interrupt, streamgp, wrong

ANNOTATOR = "error_rate=0.4,delay=2,decline_rate=0.1"


def rows(n: int) -> list[str]:
    """Two rooms, twenty readings in each at a time, of two phones in turn."""
    return [
        f"{i % 7 + 40 * (i // 20 % 2)},{i % 5},{'ab'[i % 2]},{['hall', 'den'][i // 20 % 2]}"
        for i in range(n)
    ]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "rooms.csv"
    path.write_text("\n".join(["near,far,phone,room", *rows(240)]) + "\n")
    return path


@pytest.fixture
def out(log: Path, tmp_path: Path) -> Path:
    """Return the directory of a run with challenges and two keys."""
    path = tmp_path / "out"
    arguments = ("--label", "room", "--key", "phone", "--annotator", ANNOTATOR, "--out", path)
    assert streamgp("replay", log, *arguments).exit_code == 0
    return path


def challenges(out: Path) -> list[dict[str, Any]]:
    lines = (out / "requests.jsonl").read_text().splitlines()
    return [m for m in map(json.loads, lines) if m["type"] == "label.challenge"]


# --- the same page, however it is made


def test_page_is_the_same_during_and_after_the_run_and_with_or_without_files(
    log: Path, tmp_path: Path
) -> None:
    run = ("replay", log, "--label", "room", "--annotator", ANNOTATOR)
    out = tmp_path / "out"
    pages = [tmp_path / f"{n}.html" for n in range(3)]
    first = streamgp(*run, "--out", out, "--report", pages[0])
    second = streamgp(*run, "--report", pages[1])
    third = streamgp("report", out, pages[2])
    assert [r.exit_code for r in (first, second, third)] == [0, 0, 0]
    assert f"report: {pages[0]}" in first.stdout
    assert f"report: {pages[1]}" in second.stdout
    assert third.stdout == f"report: {pages[2]}\n"
    one, two, three = (page.read_bytes() for page in pages)
    assert one == two == three
    assert str(tmp_path).encode() not in one
    # Without --out nothing else is left behind.
    assert {path.name for path in tmp_path.iterdir()} == {
        "rooms.csv",
        "out",
        "0.html",
        "1.html",
        "2.html",
    }


def test_every_challenge_and_every_key_of_the_run_is_on_the_page(out: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert streamgp("report", out, page).exit_code == 0
    html = page.read_text()
    asked = challenges(out)
    assert len(asked) >= 5
    for challenge in asked:
        assert f'role="rowheader"><bdi>{challenge["event_id"]}</bdi>' in html
    assert html.count('role="rowheader"') == len(asked)
    assert '<th scope="row"><bdi>a</bdi></th>' in html


def test_page_may_stand_beside_the_files_of_its_run(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    page = out / "pages" / "report.html"
    arguments = ("--label", "room", "--ignore", "phone", "--out", out, "--report", page)
    assert streamgp("replay", log, *arguments).exit_code == 0
    before = page.read_bytes()
    assert streamgp("report", out, page).exit_code == 0
    assert page.read_bytes() == before


def test_interrupted_run_has_a_page_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "long.csv"
    path.write_text("\n".join(["near,far,phone,room", *rows(2000)]) + "\n")
    interrupt(monkeypatch, n_polls=3)
    page = tmp_path / "page.html"
    result = streamgp("replay", path, "--label", "room", "--report", page)
    assert result.exit_code == 130
    assert "The run was interrupted." in page.read_text()


def test_log_that_is_damaged_further_on_has_a_page_of_what_came_before(tmp_path: Path) -> None:
    whole = gzip.compress("\n".join(["near,far,phone,room", *rows(5000)]).encode(), mtime=0)
    path = tmp_path / "log.csv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    page = tmp_path / "page.html"
    result = streamgp("replay", path, "--label", "room", "--ignore", "phone", "--report", page)
    assert result.exit_code == 2
    n_events = int(result.stderr.split(" events in")[0])
    assert n_events > 100
    assert f"<dt>Events</dt><dd>{n_events}</dd>" in page.read_text()


# --- what is refused, and when


@pytest.mark.parametrize("command", ["replay", "report"])
def test_page_never_replaces_what_it_is_made_from(log: Path, out: Path, command: str) -> None:
    before = (out / "consensus.jsonl").read_bytes()
    arguments = {
        "replay": (log, "--label", "room", "--out", out, "--report", out / "consensus.jsonl"),
        "report": (out, out / "consensus.jsonl"),
    }[command]
    assert wrong(command, *arguments) == (
        f"{out / 'consensus.jsonl'} would be overwritten; name another file"
    )
    assert (out / "consensus.jsonl").read_bytes() == before


def test_page_never_replaces_the_log_or_the_configuration(log: Path, tmp_path: Path) -> None:
    config = tmp_path / "my.toml"
    config.write_text('[log]\nlabel = "room"\n')
    link = tmp_path / "link.html"
    link.symlink_to(log)
    for file, page in ((log, log), (log, link), (config, config)):
        assert wrong("replay", log, "--config", config, "--report", page) == (
            f"{file} would be overwritten; name another file"
        )
    assert log.read_text().startswith("near")


def test_page_that_cannot_be_written_is_refused_before_the_run(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(page: Path) -> str:
        return wrong("replay", log, "--label", "room", "--report", page)

    assert run(tmp_path) == f"{tmp_path} is a directory; name a file"
    below = log / "page.html"
    assert run(below) == f"cannot write {below}: {log} is not a directory"
    page = tmp_path / "deep" / "page.html"
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode, **_: path != tmp_path and may(path, mode))
    assert run(page) == f"cannot write {page}: {tmp_path} is not writable"
    assert not page.parent.exists()
    monkeypatch.undo()
    page = tmp_path / "loop.html"
    page.symlink_to(page.name)
    assert run(page).startswith(f"cannot write {page}: Too many levels of symbolic links; remove")
    assert "expected a file, got an empty text" in wrong(
        "replay", log, "--label", "room", "--report", ""
    )


@pytest.mark.parametrize(
    ("option", "what"), [("--report", "file"), ("--out", "directory"), ("--state", "directory")]
)
def test_standard_output_is_no_file(log: Path, option: str, what: str) -> None:
    told = wrong("replay", log, "--label", "room", option, "-")
    assert f"expected a {what}, got -, which has no meaning here; for a {what} of that" in told
    assert not Path("-").exists()


def test_page_that_cannot_be_written_after_all_leaves_the_results(
    log: Path,
) -> None:
    page = Path("/dev/full")
    arguments = ("--label", "room", "--ignore", "phone", "--report", page)
    result = streamgp("replay", log, *arguments)
    assert result.exit_code == 2
    assert "240 events" in result.stdout
    assert (
        result.stderr == f"Error: cannot write {page}: No space left on device; free some space\n"
    )


# --- files that are missing, damaged, or of another run


def test_missing_files_are_named(out: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    remedy = "No such file or directory; name a directory that `streamgp replay --out` wrote"
    assert wrong("report", tmp_path, page) == f"cannot read {tmp_path / 'summary.json'}: {remedy}"
    for name in ("requests", "answers", "rejected", "consensus"):
        path = out / f"{name}.jsonl"
        kept = path.read_bytes()
        path.unlink()
        assert wrong("report", out, page) == f"cannot read {path}: {remedy}"
        path.write_bytes(kept)
    assert streamgp("report", out, page).exit_code == 0


def test_page_needs_neither_predictions_nor_timing(out: Path, tmp_path: Path) -> None:
    (out / "predictions.jsonl").unlink()
    (out / "timing.json").unlink()
    assert streamgp("report", out, tmp_path / "page.html").exit_code == 0


def test_directory_that_is_none_is_one_line(log: Path, tmp_path: Path) -> None:
    assert "rooms.csv" in wrong("report", log, tmp_path / "page.html")
    missing = tmp_path / "missing"
    assert wrong("report", missing, tmp_path / "page.html").startswith(
        f"cannot read {missing / 'summary.json'}: "
    )


@pytest.mark.parametrize("name", ["curve", "confusion", "annotators"])
def test_summary_of_an_older_version_is_refused(out: Path, tmp_path: Path, name: str) -> None:
    path = out / "summary.json"
    summary = json.loads(path.read_text())
    del summary[name]
    path.write_text(json.dumps(summary))
    assert wrong("report", out, tmp_path / "page.html") == (
        f"{path} is not in the format of this version (there is no '{name}'); run "
        "`streamgp replay` again"
    )


def test_summary_that_is_damaged_is_refused(out: Path, tmp_path: Path) -> None:
    path, page = out / "summary.json", tmp_path / "page.html"
    whole = path.read_bytes()
    damaged = f"{path} is damaged: it is not JSON; run `streamgp replay` again"
    for data in (b"", whole[:200], b"\xff\xfe", b'{"configuration":' + b'{"a":' * 100_000):
        path.write_bytes(data)
        assert wrong("report", out, page) == damaged
    path.write_bytes(whole.replace(b'"n_asked": ', b'"n_asked": "many", "n": '))
    message = wrong("report", out, page)
    assert message.startswith(
        f"{path} is not in the format of this version (Expected 'int', got 'str'"
    )
    summary = json.loads(whole)
    for name, values, words in (
        ("curve", {"n_asked": [1]}, "a curve must have as many points in each of its lists"),
        (
            "curve",
            {"n_events": summary["curve"]["n_events"][::-1]},
            "n_events of a curve must grow",
        ),
        ("confusion", {"labels": ["a"]}, "a confusion matrix must have 1 rows and columns"),
    ):
        path.write_text(json.dumps({**summary, name: {**summary[name], **values}}))
        assert words in wrong("report", out, page)
    assert not page.exists()


def test_message_that_is_damaged_is_named(out: Path, tmp_path: Path) -> None:
    path = out / "consensus.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], lines[2][:40], *lines[3:]]) + "\n")
    message = wrong("report", out, tmp_path / "page.html")
    assert message.startswith(f"{path}, line 3: message must be JSON")
    assert message.endswith("; run `streamgp replay` again")


def test_files_of_two_runs_are_refused(out: Path, tmp_path: Path) -> None:
    n_challenges = len(challenges(out))
    path = out / "requests.jsonl"
    lines = path.read_text().splitlines()
    last = max(i for i, line in enumerate(lines) if '"label.challenge"' in line)
    path.write_text("\n".join(lines[:last]) + "\n")
    assert wrong("report", out, tmp_path / "page.html") == (
        f"{out} holds {n_challenges - 1} challenges and its summary.json tells of {n_challenges}: "
        "damaged, or of two runs; run `streamgp replay` again"
    )
