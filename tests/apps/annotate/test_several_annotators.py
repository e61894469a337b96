"""A replay with several annotators: who they are, and what the summary says of each."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from connectors.jsonl import read_messages
from streamgp.datasets import WiFiRooms
from streamgp.interactive import Answer, Challenge, LabelledExample
from tests.helpers.commands import streamgp

TWO = (
    "--annotator", "name=ann,error_rate=0.05,seed=1",
    "--annotator", "name=bob,error_rate=0.4,seed=11",
)  # fmt: skip


@pytest.fixture(scope="module")
def rooms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Readings of two rooms, one after the other; labels are integers."""
    path = tmp_path_factory.mktemp("logs") / "rooms.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        rows = list(WiFiRooms())[:1000]
        writer.writerow([*rows[0][0], "room"])
        writer.writerows([*x.values(), y] for x, y in rows)
    return path


def replay(log: Path, *arguments: str) -> Result:
    return streamgp("replay", log, "--label", "room", *arguments)


def summary_of(log: Path, out: Path, *arguments: str) -> dict[str, Any]:
    result = replay(log, "--out", str(out), *arguments)
    assert result.exit_code == 0, result.stderr
    summary: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return summary


def test_two_annotators_share_the_questions_and_are_judged_apart(
    rooms: Path, tmp_path: Path
) -> None:
    result = replay(rooms, *TWO, "--out", str(tmp_path))
    assert result.exit_code == 0, result.stderr
    summary = json.loads((tmp_path / "summary.json").read_text())
    people = {person["name"]: person for person in summary["annotators"]}
    assert set(people) == {"ann", "bob"}
    assert sum(person["n_answers"] for person in people.values()) == summary["results"]["n_learned"]
    assert 2.0 * people["ann"]["error_rate"] < people["bob"]["error_rate"]
    for name, person in people.items():
        line = (
            f"{name}: {100 * person['error_rate']:.0f} % wrong, "
            f"estimated {100 * person['estimate']:.0f} %, of {person['n_answers']} answers"
        )
        assert f"\n{line}; by all answers together " in result.stdout
    assert "annotator" not in summary["configuration"]
    assert set(summary["configuration"]["annotators"]) == {"ann", "bob"}


def test_challenge_is_answered_by_whoever_is_contested(rooms: Path, tmp_path: Path) -> None:
    summary_of(rooms, tmp_path, *TWO)
    contested = {
        m.request_id: m.annotator
        for m in read_messages(tmp_path / "requests.jsonl")
        if isinstance(m, Challenge)
    }
    answers = [m for m in read_messages(tmp_path / "answers.jsonl") if isinstance(m, Answer)]
    again = {m.request_id: m.annotator for m in answers if m.request_id in contested}
    assert len(contested) > 3
    assert again == contested


def test_estimates_in_the_summary_follow_from_the_files(rooms: Path, tmp_path: Path) -> None:
    summary = summary_of(rooms, tmp_path, *TWO)
    who = {
        m.event_id: m.annotator
        for m in read_messages(tmp_path / "requests.jsonl")
        if isinstance(m, Challenge)
    }
    weights: dict[str | None, list[float]] = {}
    for m in read_messages(tmp_path / "consensus.jsonl"):
        if isinstance(m, LabelledExample) and m.probability_wrong is not None:
            weights.setdefault(who.get(m.event_id, m.annotator), []).append(m.probability_wrong)
    for person in summary["annotators"]:
        w = weights[person["name"]]
        assert person["n_answers"] == len(w)
        assert person["estimate"] == (1 + sum(w)) / (5 + len(w))


def test_one_annotator_has_no_line_of_its_own(rooms: Path, tmp_path: Path) -> None:
    result = replay(rooms, "--out", str(tmp_path), "--annotator", "name=ann")
    assert "ann:" not in result.stdout
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert [person["name"] for person in summary["annotators"]] == ["ann"]
    assert summary["configuration"]["annotator"]["name"] == "ann"
    assert "annotators" not in summary["configuration"]


def test_classes_of_the_option_fit_integer_labels(rooms: Path, tmp_path: Path) -> None:
    """In the first room no annotator has seen another label: only given classes allow an error."""
    few = ("--limit", "300", "--annotator")
    without = summary_of(rooms, tmp_path / "a", *few, "error_rate=0.5")
    assert without["annotators"][0]["n_wrong"] == 0
    given = summary_of(rooms, tmp_path / "b", *few, "error_rate=0.5,classes=1|2|3|4")
    assert given["annotators"][0]["n_wrong"] > 0
    lines = read_messages(tmp_path / "b" / "answers.jsonl")
    labels = {m.y for m in lines if isinstance(m, Answer)}
    assert {type(label) for label in labels} == {int}
    assert labels <= {1, 2, 3, 4}


def test_summary_holds_the_curve_and_the_confusion_matrix(rooms: Path, tmp_path: Path) -> None:
    summary = summary_of(rooms, tmp_path, "--annotator", "error_rate=0.2")
    results, curve, confusion = summary["results"], summary["curve"], summary["confusion"]
    assert curve["n_events"] == list(range(4, 1001, 4))
    assert curve["accuracy"][-1] == results["accuracy"]
    assert curve["n_asked"][-1] <= results["n_asked"]
    assert curve["n_challenges"][-1] <= results["n_challenges"]
    assert len(curve["n_asked"]) == len(curve["n_challenges"]) == len(curve["accuracy"]) == 250
    counts = confusion["counts"]
    assert confusion["labels"] == [1, 2]
    assert sum(map(sum, counts)) == results["n_scored"]
    assert counts[0][0] + counts[1][1] == pytest.approx(results["accuracy"] * results["n_scored"])
    # Every list of numbers stands on one line, so that the file can be read.
    assert len((tmp_path / "summary.json").read_text().splitlines()) < 200


def test_accuracy_is_null_in_the_curve_until_something_is_scored(
    rooms: Path, tmp_path: Path
) -> None:
    summary = summary_of(rooms, tmp_path, "--limit", "5", "--annotator", "delay=100")
    assert summary["curve"]["accuracy"] == [None] * 5
    assert summary["confusion"] == {"labels": [], "counts": []}


def test_wrong_value_of_a_second_option_is_reported(rooms: Path) -> None:
    result = replay(rooms, "--annotator", "name=ann", "--annotator", "delay=1")
    assert result.exit_code == 2
    assert "'delay=1' has no name" in result.stderr
    assert result.stderr.count("\n") == 1
