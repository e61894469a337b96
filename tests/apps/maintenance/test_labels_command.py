"""`streamgp labels`: the labels in force as a table, by what the topics hold."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from connectors.tables.log_source import LogSource
from connectors.topics import Outgoing, Record
from connectors.wire.outbound import Outbound
from connectors.wire.state_records import consensus_key
from streamgp import isgp
from streamgp.apps.maintenance.labels import rows_of
from streamgp.cli.main import cli
from streamgp.interactive.loop import InteractiveLoop
from streamgp.interactive.messages import (
    Answer,
    Challenge,
    Event,
    LabelledExample,
    LabelRequest,
    Message,
)
from streamgp.interactive.people import People
from tests.helpers.small_deployment import Small
from tests.helpers.topics import write
from tests.interactive.test_quarantine import told


@pytest.fixture(params=["memory", "embedded"])
def small(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    if request.param == "memory":
        return Small(tmp_path, monkeypatch, n_partitions=2)
    small = Small.in_directory(tmp_path, monkeypatch)
    text = small.config_file.read_text()
    url = json.dumps(f"file://{tmp_path / 'topics'}")
    small.config_file.write_text(text.replace('"kafka://nowhere"', url))
    return small


def rows(small: Small, *arguments: str) -> list[dict[str, Any]]:
    text = small.done("labels", *arguments, "--format", "jsonl")
    return [json.loads(line) for line in text.split("\n") if line]


def labels(small: Small) -> dict[str, Any]:
    return {row["event_id"]: row["label"] for row in rows(small)}


def ask(small: Small, event: Event) -> LabelRequest:
    """Send an event; return the request for its label."""
    small.put(event)
    small.work()
    [request] = [
        m
        for m in small.said("requests")
        if isinstance(m, LabelRequest) and m.event_id == event.event_id
    ]
    return request


def put(small: Small, key: bytes, value: bytes | None, partition: int) -> None:
    write(small.topics, Outgoing(topic="consensus", partition=partition, key=key, value=value))


def line(event_id: str, sequence: int, y: Any, **fields: Any) -> LabelledExample:
    known = {"x": {}, "origin": "asked", "annotator": "ann", "learned_at": float(sequence)}
    return LabelledExample(event_id=event_id, sequence=sequence, y=y, **{**known, **fields})


def records_of(messages: Sequence[Message]) -> list[Record]:
    outbound = Outbound("/streamgp/test", keyed=False)
    found = []
    for offset, message in enumerate(messages):
        out = outbound.message(message, 0)
        found.append(
            Record(
                topic=out.topic, partition=0, offset=offset, key=out.key, value=out.value, at=0.0
            )
        )
    return found


def table(*lines: LabelledExample) -> list[dict[str, Any]]:
    return rows_of(records_of(lines))


def test_a_row_says_what_was_learned_from_whom_and_when(small: Small) -> None:
    text = small.config_file.read_text()
    small.config_file.write_text(text.replace('rule = "never"', 'rule = "always"'))
    x = {"light": 0.5, "is_on": True, "place": "Küche", "level": None}
    for name, who, y in (("e0", "ann", "hall"), ("e1", "bob", "den")):
        small.answer(ask(small, small.event(name, "k1", x=x)), y, annotator=who)
        small.work()
    [challenge] = [m for m in small.said("requests") if isinstance(m, Challenge)]
    small.answer(challenge, "hall", annotator="bob")
    small.work()
    small.put(small.event("e2", "k2", x={"light": 7}, y="bath"))
    small.work()
    learned_at = {
        m.event_id: m.learned_at for m in small.said("consensus") if isinstance(m, LabelledExample)
    }
    third, first, second = rows(small)
    assert first == {
        "key": "k1", "event_id": "e0", "label": "hall", "first_label": "hall", "annotator": "ann",
        "origin": "asked", "challenged": False, "occurred_at": small.sent_at,
        "learned_at": learned_at["e0"],
        "x.light": 0.5, "x.is_on": True, "x.place": "Küche",
    }  # fmt: skip
    assert second == {
        **first, "event_id": "e1", "first_label": "den", "annotator": "bob", "origin": "revised",
        "challenged": True, "learned_at": learned_at["e1"],
    }  # fmt: skip
    # No question was asked about this one: only its own record tells when it occurred.
    assert third == {
        "key": "k2", "event_id": "e2", "label": "bath", "first_label": "bath", "annotator": None,
        "origin": "volunteered", "challenged": False, "occurred_at": None,
        "learned_at": small.sent_at, "x.light": 7,
    }  # fmt: skip


def test_corrected_labels_are_there_once_and_those_taken_back_are_not(small: Small) -> None:
    given = {}
    for name in ("corrected", "taken back", "again", "kept"):
        request = ask(small, small.event(name, "k1"))
        small.answer(request, "hall", name, annotator="ann")
        small.work()
        given[name] = next(
            m for m in small.said("answers") if isinstance(m, Answer) and m.answer_id == name
        )
    for name, y in (("corrected", "den"), ("taken back", None), ("again", None), ("again", "bath")):
        before = given[name]
        given[name] = replace(
            before, answer_id=f"{before.answer_id}!", request_id=None, y=y, declined=y is None,
            supersedes=before.answer_id, answered_at=before.answered_at + 1e-3,
        )  # fmt: skip
        small.put(given[name])
        small.work()
    assert labels(small) == {"corrected": "den", "again": "bath", "kept": "hall"}
    assert [r["first_label"] for r in rows(small) if r["event_id"] == "corrected"] == ["hall"]


def test_retracted_labels_are_left_out_until_they_are_put_back(small: Small) -> None:
    for name, who in (("e0", "ann"), ("e1", "bob"), ("e2", "bob")):
        small.answer(ask(small, small.event(name, "k1")), "hall", annotator=who)
        small.work()
    every = rows(small)
    small.done_beside_a_worker("retract", "--annotator", "bob", "--yes")
    assert labels(small) == {"e0": "hall"}
    small.done_beside_a_worker("retract", "--annotator", "bob", "--undo", "--yes")
    assert rows(small) == every


@pytest.mark.parametrize(("revision", "left"), [(0, {"e": "den"}), (1, {})])
def test_a_label_that_a_null_takes_back_is_gone_before_and_after_a_worker_reads_it(
    small: Small, revision: int, left: dict[str, str]
) -> None:
    """A null for the line before a correction leaves the corrected label."""
    small.answer(ask(small, small.event("e", "k1")), "hall", "first", annotator="ann")
    small.work()
    [first] = [m for m in small.said("answers") if isinstance(m, Answer)]
    correction = replace(first, answer_id="second", request_id=None, y="den", supersedes="first")
    small.put(correction)
    small.work()
    [partition] = {r.partition for r in small.records("consensus")}
    put(small, consensus_key("k1", "e", revision), None, partition)
    assert labels(small) == left
    small.work()
    assert labels(small) == left


def test_a_forgotten_key_is_gone_before_and_after_a_worker_reads_that(small: Small) -> None:
    for key in ("k1", "k2"):
        small.put(small.event("e", key, y="hall"), small.event("f", key, y="den"))
    small.work()
    small.put_bytes("consensus", "k1", None)
    assert [row["key"] for row in rows(small)] == ["k2", "k2"]
    small.work()
    assert [row["key"] for row in rows(small)] == ["k2", "k2"]
    small.put(small.event("anew", "k1", y="bath"))
    small.work()
    assert [row["event_id"] for row in rows(small, "--key", "k1")] == ["anew"]


def test_the_table_is_what_the_learner_holds() -> None:
    loop = InteractiveLoop(isgp(seed=1), people=People(quarantine=False))
    messages: list[Message] = []
    for n in range(60):
        event, by, y = told(n, liar="bob")
        messages += loop.on_event(event, float(n))
        first = Answer(
            answer_id=f"a{n}", event_id=f"e{n}", y=y, annotator=by, answered_at=float(n)
        )  # fmt: skip
        said = loop.on_answer(first, float(n))
        for challenge in [m for m in said if isinstance(m, Challenge)]:
            label = challenge.given if n % 2 else challenge.suggested
            second = replace(first, answer_id=f"b{n}", request_id=challenge.request_id, y=label)
            said += loop.on_answer(second, float(n))
        if n % 7 == 0:
            changed = replace(first, answer_id=f"c{n}", y="else", supersedes=f"a{n}")
            said += loop.on_answer(changed, float(n))
        if n % 5 == 0:
            gone = replace(first, answer_id=f"d{n}", y=None, declined=True, supersedes=f"a{n}")
            said += loop.on_answer(gone, float(n))
        messages += said
    learned = [m for m in messages if isinstance(m, LabelledExample | LabelRequest | Challenge)]
    assert {m.origin for m in learned if isinstance(m, LabelledExample)} > {"revised", "withdrawn"}
    found = rows_of(records_of(learned))
    held = {e.event_id: (e.y, e.x) for e in loop.model.examples()}  # type: ignore[attr-defined]
    assert len(held) > 20
    assert {
        row["event_id"]: (
            row["label"],
            {name[2:]: value for name, value in row.items() if name.startswith("x.")},
        )
        for row in found
    } == held
    assert any(row["challenged"] and row["first_label"] != row["label"] for row in found)


def test_a_label_that_was_weighed_is_that_of_the_annotator_who_prevailed() -> None:
    def by(*lines: LabelledExample) -> object:
        [row] = table(line("e", 1, "hall"), *lines)
        return row["label"], row["first_label"], row["annotator"]

    weighed = {"revision": 1, "origin": "aggregated", "annotator": "bob"}
    assert by(line("e", 2, "den", **weighed)) == ("den", "hall", "bob")
    assert by(line("e", 2, "hall", given="den", **weighed)) == ("hall", "hall", "ann")
    assert by(line("e", 2, "hall", **weighed)) == ("hall", "hall", "ann")
    assert by(line("e", 2, "hall", **{**weighed, "annotator": None})) == ("hall", "hall", "ann")


def test_a_label_was_challenged_if_any_line_about_it_says_so() -> None:
    def is_challenged(*lines: LabelledExample) -> object:
        [row] = table(*lines)
        return row["challenged"]

    asked, revised = line("e", 1, "hall"), line("e", 2, "den", revision=1, origin="revised")
    assert is_challenged(asked, revised) is False
    assert is_challenged(line("e", 1, "hall", challenged=True), revised) is True
    assert is_challenged(asked, line("e", 2, "hall", revision=1, origin="upheld")) is True


def test_of_an_id_that_was_used_again_only_the_later_event_counts() -> None:
    lines = line("e", 1, "hall"), line("e", 2, "den", revision=1), line("e", 3, "bath")
    assert [(row["label"], row["first_label"]) for row in table(*lines)] == [("bath", "bath")]


NASTY = 'hall, "upper"; Küche', "=cmd()", "@a", "-1+1", "true", "0.50", "a\u2028b", "'", "中"


@pytest.mark.parametrize(
    ("format", "given"),
    [
        ("csv", NASTY),
        ("csv", (1, 2, -7, 2**53)),
        ("jsonl", NASTY),
        ("jsonl", (1, "1", 2, "two", "2.0")),
        ("jsonl", (True, False)),
        ("jsonl", ("1", "2", "007")),
    ],
)
def test_a_table_is_read_again_with_the_same_labels_times_and_features(
    small: Small, format: str, given: Sequence[Any]
) -> None:
    x = {"light": 0.1 + 0.2, "text": 'a,b\r\n"c" ', "of": None}
    events = [
        small.event(
            f"e{n}",
            f"k{n % 2}",
            y=y,
            occurred_at=small.sent_at + n / 3,
            x={**x, "n": n, "is_on": n % 2 > 0},
        )
        for n, y in enumerate(given)
    ]
    for event in events:
        small.put(event)
        small.work()
    out = small.path / "labels"
    result = small.call("labels", "--format", format, "--out", out)
    assert (result.exit_code, result.stderr) == (0, "")
    log = LogSource(out, label="label", time="learned_at", key="key", features=["x.*"])
    read = [one.message for one in log.poll()]
    assert all(isinstance(event, Event) for event in read)
    assert [(type(e.truth), e.truth, e.key) for e in read] == [  # type: ignore[union-attr]
        (type(event.y), event.y, event.key) for event in events
    ]
    assert [e.occurred_at for e in read] == [row["learned_at"] for row in rows(small)]  # type: ignore[union-attr]
    assert [e.x for e in read] == [  # type: ignore[union-attr]
        {"x.light": 0.1 + 0.2, "x.text": 'a,b\r\n"c"', "x.n": n, "x.is_on": n % 2}
        for n in range(len(given))
    ]


@pytest.mark.parametrize("given", [("1", "2"), (True, False), (1, "1")])
def test_labels_that_csv_would_change_are_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: Sequence[Any]
) -> None:
    small = Small(tmp_path, monkeypatch)
    small.put(*(small.event(f"e{n}", y=y) for n, y in enumerate(given)))
    small.work()
    told = small.call("labels").stderr
    assert told.startswith("note: who reads these labels from CSV may take them for another type")
    assert told.count("\n") == 1
    assert small.call("labels", "--format", "jsonl").stderr == ""


def test_the_table_can_be_replayed(small: Small) -> None:
    for n in range(8):
        small.put(small.event(f"e{n}", "k1", x={"light": float(n)}, y=("hall", "den")[n % 2]))
        small.work()
    out = small.path / "labels.csv"
    small.done("labels", "--out", out)
    words = ["replay", str(out), "--label", "label", "--time", "learned_at", "--features", "x.*"]
    result = CliRunner().invoke(cli, [*words, "--out", str(small.path / "run")])
    assert result.exit_code == 0, result.output
    assert (small.path / "run" / "rejected.jsonl").read_text() == ""
    assert len((small.path / "run" / "predictions.jsonl").read_text().splitlines()) == 8


def test_csv_has_a_column_for_every_feature_and_empty_cells(small: Small) -> None:
    small.put(small.event("e0", "k1", x={"a": 1}, y="hall"))
    small.put(small.event("e1", "k1", x={"b": "c"}, y="den"))
    small.work()
    found = list(csv.DictReader(small.done("labels").splitlines()))
    assert list(found[0])[:3] == ["key", "event_id", "label"]
    assert [(row["x.a"], row["x.b"]) for row in found] == [("1", ""), ("", "c")]
    assert [row["occurred_at"] for row in found] == ["", ""]


def test_the_precision_that_was_stated_with_a_number_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Small(tmp_path, monkeypatch)
    text = small.config_file.read_text()
    small.config_file.write_text(f'target = "number"\n{text}')
    for name, std in (("e0", 0.25), ("e1", None)):
        small.answer(ask(small, small.event(name)), 21.5, std=std)
        small.work()
    result = small.call("labels")
    assert result.stderr == ""
    found = list(csv.DictReader(result.stdout.splitlines()))
    assert [(row["label"], row["std"]) for row in found] == [("21.5", "0.25"), ("21.5", "")]


def test_keys_are_chosen_and_unknown_ones_reported(small: Small) -> None:
    small.put(*(small.event("e", key, y="hall") for key in ("k1", "k2", "k3")))
    small.work()
    found = rows(small, "--key", "k3", "--key", "k1")
    assert sorted(row["key"] for row in found) == ["k1", "k3"]
    assert small.wrong("labels", "--key", "k9") == "the topics hold no label of key 'k9'"


def test_without_labels_there_is_a_header_alone_and_a_note(small: Small) -> None:
    result = small.call("labels")
    assert result.stdout.startswith("key,event_id,label,")
    assert result.stderr == (
        "note: the topics hold no labels; if there were some, `streamgp check` says whether "
        "records were lost\n"
    )
    assert small.done("labels").count("\n") == 1
    assert small.done("labels", "--format", "jsonl") == ""


def test_a_file_is_for_its_owner_and_the_configuration_is_not_replaced(small: Small) -> None:
    small.put(small.event("e", "k1", y="hall"))
    small.work()
    out = small.path / "labels.csv"
    assert small.done("labels", "--out", out) == f"1 label written to {out}\n"
    assert out.read_text() == small.done("labels")
    assert out.stat().st_mode & 0o777 == 0o600
    assert "would be overwritten" in small.wrong("labels", "--out", small.config_file)
    assert "is a directory" in small.wrong("labels", "--out", small.path)


def test_a_record_that_no_worker_wrote_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Small(tmp_path, monkeypatch)
    small.put(small.event("e", "k1", y="hall"))
    small.work()
    [partition] = {r.partition for r in small.records("consensus")}
    put(small, consensus_key("k1", "e", 1), b"note to self", partition)
    told = small.wrong("labels")
    assert told.startswith("consensus:")
    assert "is nothing that this streamgp writes" in told
