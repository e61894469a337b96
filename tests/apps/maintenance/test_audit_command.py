"""`streamgp audit`: the story of a label, by what the topics hold."""

from __future__ import annotations

import csv
import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from connectors.embedded.topics import EmbeddedTopics
from connectors.topics import Record
from connectors.wire import state_records
from connectors.wire.codec import encode
from connectors.wire.outbound import Outbound
from connectors.wire.signatures import signature
from connectors.wire.state_records import consensus_key, is_request, line_of
from streamgp import isgp
from streamgp.apps.maintenance import audit
from streamgp.apps.maintenance.audit import Step, Wanted, steps_of
from streamgp.interactive.loop import InteractiveLoop
from streamgp.interactive.messages import (
    Answer,
    Challenge,
    LabelledExample,
    LabelRequest,
    Message,
    Retraction,
)
from streamgp.interactive.people import People
from tests.connectors.worker.test_worker_drift import CHANGE, END, labelled
from tests.helpers.small_deployment import Small
from tests.helpers.topics import everything
from tests.interactive.test_quarantine import told

AGAIN = "under the id of an earlier answer: while that is remembered, only one of them counts"


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    """A deployment in which every label is doubted, and some answers were given."""
    small = Small(tmp_path, monkeypatch, n_partitions=2)
    text = small.config_file.read_text().replace('rule = "never"', 'rule = "always"')
    small.config_file.write_text(text)
    for i, (who, y) in enumerate([("ann", "hall"), ("ann", "hall"), ("bob", "den")]):
        small.put(small.event(f"e{i}", "k1", x={"light": float(i)}))
        small.work()
        request = [m for m in small.said("requests") if isinstance(m, LabelRequest)][-1]
        small.answer(request, y, annotator=who, shown=("suggestion",))
        small.work()
    [challenge] = [m for m in small.said("requests") if isinstance(m, Challenge)]
    small.answer(challenge, "hall", annotator="bob")
    small.answer(challenge, "bath", "again", annotator="eve")
    small.work()
    return small


def rows(small: Small, *arguments: str) -> list[dict[str, object]]:
    text = small.done("audit", *arguments, "--format", "json")
    return [json.loads(line) for line in text.splitlines()]


def test_a_number_that_was_suggested_is_told_with_six_digits_and_others_in_full() -> None:
    step = Step(at=0.0, key="k", event_id="e1", what="doubted", annotator="bob", before=70.12345678)
    text = audit.told([replace(step, probability_wrong=0.9, label=20.18709761141373)])
    assert text.endswith("70.12345678 of bob was doubted, wrong with P 0.9; suggested 20.1871")


def test_the_history_says_who_said_what_and_with_what_result(small: Small) -> None:
    text = small.done("audit", "--event", "e2")
    said = [line.split("  ")[2] for line in text.splitlines() if line.startswith("  ")]
    assert said[0].startswith("a label was asked for (")
    assert said[1] == "bob said 'den' (shown: suggestion)"
    assert said[2].startswith("'den' of bob was doubted, wrong with P ")
    assert said[2].endswith("; suggested 'hall'")
    assert said[3] == "bob said 'hall'"
    assert said[4] == "'hall' of bob was learned in place of 'den' (revised, challenged)"
    assert said[5] == "eve said 'bath'"
    assert said[6].startswith(
        "the answer of eve was not used: request 'e2/challenge/1' has already"
    )
    given = {m.answer_id: (m.annotator, m.y) for m in small.said("answers") if m.event_id == "e2"}
    steps = [row for row in rows(small, "--event", "e2") if row["what"] == "said"]
    assert {row["answer_id"]: (row["annotator"], row["label"]) for row in steps} == given
    assert text.splitlines()[0] == "event e2 of 'k1'"
    assert text.endswith("\n1 event\n")


def test_events_are_chosen_by_annotator_label_and_time(small: Small) -> None:
    def events(*arguments: str) -> set[object]:
        return {row["event_id"] for row in rows(small, *arguments)}

    assert events("--annotator", "ann") == {"e0", "e1"}
    assert events("--label", "den") == {"e2"}
    assert events("--label", "hall", "--annotator", "bob") == {"e2"}
    assert events("--since", "1h") == {"e0", "e1", "e2"}
    assert events("--since", "2100-01-01T00:00:00Z") == set()
    assert "the last 1 of them shown" in small.done("audit", "--label", "hall", "--last", "1")


def test_events_of_other_keys_are_left_out_also_where_their_ids_are_the_same(small: Small) -> None:
    small.put(small.event("e0", "k2"), small.event("e9", "k2"))
    small.work()

    def events(*arguments: str) -> set[tuple[object, object]]:
        return {(row["key"], row["event_id"]) for row in rows(small, *arguments)}

    assert events("--event", "e0") == {("k1", "e0"), ("k2", "e0")}
    assert events("--key", "k2") == {("k2", "e0"), ("k2", "e9")}
    assert events("--key", "k1", "--event", "e0") == {("k1", "e0")}
    assert small.done("audit", "--key", "k3") == "0 events\n"


def test_a_name_and_a_label_are_found_in_another_unicode_form_and_as_they_are_shown(
    small: Small,
) -> None:
    small.put(small.event("e9", "k1", x={"light": 9.0}))
    small.work()
    request = [m for m in small.said("requests") if isinstance(m, LabelRequest)][-1]
    small.answer(request, "cafe\u0301", annotator="Zoe\u0308\u202e")
    small.work()
    shown = "Zo\u00eb\\u202e"
    for typed in (
        ("--annotator", "Zo\u00eb\u202e"),
        ("--annotator", shown),
        ("--label", "caf\u00e9"),
    ):
        assert {row["event_id"] for row in rows(small, *typed)} == {"e9"}
    assert "no annotator 'None'" in small.wrong("audit", "--annotator", "None")


@pytest.mark.parametrize(
    ("typed", "label", "fits"),
    [
        ("5", 5.0, True),
        ("5.0", 5.0, True),
        ("2.5", 2.5, True),
        ("2", 2.5, False),
        ("5.0", 5, False),
    ],
)
def test_a_whole_number_is_found_without_its_decimals(typed: str, label: float, fits: bool) -> None:
    step = Step(at=0.0, key=None, event_id="e", what="said", label=label)
    assert Wanted(label=typed).fits(step) is fits


def test_an_unknown_name_is_reported_with_the_known_ones(small: Small) -> None:
    refused = small.wrong("audit", "--annotator", "bobb", "--format", "csv")
    assert "no annotator 'bobb' in the topics; they name 'ann', 'bob', 'eve'" in refused


@pytest.mark.parametrize("is_embedded", [False, True])
def test_labels_of_a_forgotten_person_are_not_told_before_the_topic_is_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_embedded: bool
) -> None:
    small = Small(tmp_path, monkeypatch, n_partitions=2)
    if is_embedded:
        small.topics = EmbeddedTopics(tmp_path / "topics")  # type: ignore[assignment]
        small.topics.create()
        monkeypatch.setattr(small.topics, "close", lambda: None)
    for key in ("k1", "k2"):
        small.put(*(small.event(f"e{i}", key, y="hall") for i in range(3)))
    small.work()
    small.put(small.event("asked", "k1"))
    small.work()
    [request] = [m for m in small.said("requests") if isinstance(m, LabelRequest)]
    small.answer(request, "den", annotator="ann")
    small.done_beside_a_worker("forget", "k1", "--yes")
    learned = [row for row in rows(small) if row["what"] == "learned"]
    assert {row["key"] for row in learned} == {"k2"}
    assert len(learned) == 3
    small.put(small.event("anew", "k1", y="hall"))
    small.work()
    assert [row["event_id"] for row in rows(small, "--event", "anew")] == ["anew"]


def test_labels_of_a_person_whom_a_worker_is_yet_to_forget_are_not_told_in_a_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Small.in_directory(tmp_path, monkeypatch)
    text = small.config_file.read_text()
    url = json.dumps(f"file://{tmp_path / 'topics'}")
    small.config_file.write_text(text.replace('"kafka://nowhere"', url))
    small.put(*(small.event("e", key, y="hall") for key in ("k1", "k2")))
    small.work()
    small.put_bytes("consensus", "k1", None)
    assert [row["key"] for row in rows(small) if row["what"] == "learned"] == ["k2"]


def test_a_label_that_was_learned_while_its_key_was_being_forgotten_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The null may be written before the label, and read by the worker after it."""
    small = Small(tmp_path, monkeypatch, n_partitions=1)
    for name in ("first", "late"):
        small.put(small.event(name, "k1", y="hall"))
        small.work()
    small.done_beside_a_worker("forget", "k1", "--yes")
    records = everything(small.topics, "consensus")
    [line] = [r for r in records if r.value and line_of(r.key, r.value).event_id == "late"]
    null = records.index(next(r for r in records if is_request(r)))
    records.remove(line)
    records.insert(null, line)
    swapped = [structs.replace(record, offset=n) for n, record in enumerate(records)]
    assert [r.offset for r in swapped if r.value] == [0, null]
    assert [step for step in steps_of(swapped) if step.what == "learned"] == []


@pytest.mark.parametrize("y", ["hall", None])
def test_a_key_that_came_back_after_it_was_forgotten_has_a_story_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, y: str | None
) -> None:
    small = Small(tmp_path, monkeypatch)
    small.put(small.event("before", "k1", y=y))
    small.work()
    small.done_beside_a_worker("forget", "k1", "--yes")
    small.put(small.event("anew", "k1"))
    small.work()
    request = [m for m in small.said("requests") if isinstance(m, LabelRequest)][-1]
    small.answer(request, "den", "a1", annotator="bob")
    small.answer(request, None, "a2", annotator="bob", supersedes="a1", declined=True)
    small.answer(request, "hall", "a3", annotator="bob")
    small.work()
    small.done_beside_a_worker("retract", "--annotator", "bob", "--yes")
    assert [told.partition(" (")[0] for told in sentences(small, "anew") if " was " in told] == [
        "a label was asked for",
        "'den' of bob was learned",
        "'den' was taken back by bob: the event has no label",
        "'hall' of bob was learned",
        "'hall' was taken back with all other labels of bob",
        "'hall' was taken back: the event has no label",
    ]


def test_rows_are_the_same_in_both_formats(small: Small) -> None:
    as_json = rows(small)
    text = small.done("audit", "--format", "csv")
    as_csv = list(csv.DictReader(text.splitlines()))
    assert [row["what"] for row in as_csv] == [row["what"] for row in as_json]
    assert {row["what"] for row in as_json} == {"asked", "said", "doubted", "learned", "refused"}
    learned = [row for row in as_json if row["what"] == "learned"]
    assert [row["before"] for row in learned] == [None, None, "den"]
    first, second, challenged = learned
    assert (first["error_rate"], challenged["error_rate"]) == (0.2, 0.2)  # nothing was known yet
    assert second["error_rate"] == (1.0 + first["probability_wrong"]) / 6.0  # type: ignore[operator]
    assert challenged["probability_wrong"] is None  # the challenge tells, and the answer to it


def test_reliability_is_what_the_learner_itself_thought_at_that_time() -> None:
    # A quarantine would remove the lines of the liar from the log.
    loop = InteractiveLoop(isgp(seed=1), people=People(quarantine=False))
    outbound = Outbound("/streamgp/test", keyed=False)
    lines: list[LabelledExample] = []
    thought: dict[int, float] = {}

    def hear(given: Answer, about: str | None) -> list[Message]:
        before = loop.model.error_rate(about)  # type: ignore[attr-defined]
        said = loop.on_answer(given, given.answered_at)
        for line in said:
            if isinstance(line, LabelledExample):
                lines.append(line)
                if line.probability_wrong is not None:
                    thought[line.sequence] = before
        return said

    for n in range(60):
        event, by, y = told(n, liar="bob")
        loop.on_event(event, float(n))
        first = Answer(
            answer_id=f"a{n}", event_id=f"e{n}", y=y, annotator=by, answered_at=float(n)
        )  # fmt: skip
        for challenge in hear(first, by):
            if isinstance(challenge, Challenge):
                label = challenge.given if n % 2 else challenge.suggested
                second = replace(first, answer_id=f"b{n}", request_id=challenge.request_id, y=label)
                hear(second, by)
        if n % 7 == 0 and loop.knows(f"e{n}"):
            hear(replace(first, answer_id=f"c{n}", y="else", supersedes=f"a{n}"), by)
    records = []
    for offset, line in enumerate(lines):
        out = outbound.message(line, 0)
        records.append(
            Record(
                topic="consensus", partition=0, offset=offset, key=out.key, value=out.value, at=0.0
            )
        )
    steps = [step for step in steps_of(records, keyed=False) if step.what == "learned"]
    assert {line.challenged for line in lines} == {True, False}
    assert len(set(thought.values())) > 20
    assert [step.error_rate for step in steps] == [thought.get(line.sequence) for line in lines]


def test_without_a_choice_there_are_the_numbers_of_all_annotators(small: Small) -> None:
    table = [line.split() for line in small.done("audit").splitlines()]
    assert table[1:4] == [
        ["ann", "2", "2", "0", "0", "0", "0", "0"],
        ["bob", "2", "1", "1", "0", "0", "0", "0"],
        ["eve", "1", "0", "0", "0", "1", "0", "0"],
    ]


def test_labels_that_were_taken_back_are_in_the_story(small: Small) -> None:
    small.done_beside_a_worker("retract", "--annotator", "bob", "--yes")
    text = small.done("audit", "--event", "e2")
    assert "'hall' of bob was learned in place of 'den'" in text
    assert "'hall' was taken back with all other labels of bob" in text
    assert "'hall' was taken back: the event has no label" in text
    assert [row["event_id"] for row in rows(small, "--annotator", "bob")].count("e2") == 9


def test_labels_that_were_put_back_stand_in_the_story(small: Small) -> None:
    for _ in range(2):
        small.done_beside_a_worker("retract", "--annotator", "bob", "--yes")
        small.done_beside_a_worker("retract", "--annotator", "bob", "--undo", "--yes")
    text = small.done("audit", "--event", "e2")
    told = [line.split("  ")[2] for line in text.splitlines() if line.startswith("  ")]
    assert told[-4:] == [
        "'hall' was taken back: the event has no label",
        "'hall' of bob was put back",
        "'hall' was taken back: the event has no label",
        "'hall' of bob was put back",
    ]
    [challenge] = [m for m in small.said("requests") if isinstance(m, Challenge)]
    last = f"to {challenge.request_id}"
    small.answer(challenge, "bath", "last", annotator="bob", supersedes=last)
    small.work()
    assert "'bath' of bob was learned in place of 'hall'" in small.done("audit", "--event", "e2")
    assert "(no name)" not in small.done("audit")


def test_a_label_stands_that_was_put_back_after_its_topic_was_compacted(small: Small) -> None:
    small.done_beside_a_worker("retract", "--annotator", "bob", "--yes")
    before = small.records("consensus")
    last = {(record.partition, record.key): record.offset for record in before}
    gone = {
        (record.partition, record.offset)
        for record in before
        if record.offset < last[record.partition, record.key]
    }
    small.done_beside_a_worker("retract", "--annotator", "bob", "--undo", "--yes")
    records = small.records("requests", "answers", "consensus", "state")
    kept = [
        record
        for record in records
        if record.topic != "consensus" or (record.partition, record.offset) not in gone
    ]
    assert len(kept) < len(records)
    told = [step for step in steps_of(kept, keyed=True) if step.event_id == "e2"]
    assert [(step.what, step.label) for step in told][-2:] == [
        ("learned", None),
        ("reinstated", "hall"),
    ]


def sentences(small: Small, event_id: str) -> list[str]:
    text = small.done("audit", "--event", event_id)
    return [line.split("  ")[2] for line in text.splitlines() if line.startswith("  ")]


def test_labels_of_one_event_that_were_taken_back_together_are_told_once(small: Small) -> None:
    small.add('\n[people]\nsupervisors = ["eve"]\n')
    said = small.said("answers")[0]
    assert isinstance(said, Answer)
    for n, who in enumerate(("ann", "eve")):
        small.put(
            Answer(
                answer_id=f"c{n}", event_id="e0", key="k1", y="bath", annotator=who,
                supersedes=f"c{n - 1}" if n else said.answer_id,
                answered_at=said.answered_at + n * 1e-3,
            )
        )  # fmt: skip
        small.work()
    small.done_beside_a_worker("retract", "--annotator", "ann", "--yes")
    told = sentences(small, "e0")
    assert told[-1] == "'bath' was taken back with all other labels of ann; that of eve stands"
    assert sum("taken back" in each for each in told) == 1
    # The correction that is a first answer now is told as it was learned.
    assert "'bath' of ann was learned in place of 'hall' (revised)" in told
    assert "'bath' of eve was learned (revised)" in told
    small.done_beside_a_worker("retract", "--annotator", "ann", "--undo", "--yes")
    assert sentences(small, "e0")[-1] == "'bath' of ann was put back; 'bath' stands"
    assert not [row for row in rows(small) if row["what"] == "retracted"]


def bob_is_challenged(small: Small, *, of_eve: str) -> None:
    """Bob says den of e3, and a supervisor answers the challenge."""
    small.add('\n[people]\nsupervisors = ["eve"]\n')
    small.put(small.event("e3", "k1", x={"light": 3.0}))
    small.work()
    request = [m for m in small.said("requests") if isinstance(m, LabelRequest)][-1]
    small.answer(request, "den", annotator="bob")
    small.work()
    challenge = [m for m in small.said("requests") if isinstance(m, Challenge)][-1]
    small.answer(challenge, of_eve, annotator="eve")
    small.work()


def test_the_first_answer_to_a_challenge_is_the_one_that_was_taken_back(small: Small) -> None:
    bob_is_challenged(small, of_eve="hall")
    small.done_beside_a_worker("retract", "--annotator", "bob", "--yes")
    assert sentences(small, "e3")[-1] == "'den' was taken back with all other labels of bob"
    small.done_beside_a_worker("retract", "--annotator", "bob", "--undo", "--yes")
    assert sentences(small, "e3")[-1] == "'den' of bob was put back; 'hall' stands"


def test_a_label_that_was_upheld_by_another_annotator_stands_without_them(small: Small) -> None:
    bob_is_challenged(small, of_eve="den")
    small.done_beside_a_worker("retract", "--annotator", "eve", "--yes")
    taken_back = "'den' was taken back with all other labels of eve"
    assert sentences(small, "e3")[-1] == f"{taken_back}; that of bob stands"
    assert "k1,e3,den,den,bob," in small.done("labels")
    small.done_beside_a_worker("retract", "--annotator", "bob", "--yes")
    assert sentences(small, "e3")[-1] == "'den' was taken back: the event has no label"
    assert taken_back in sentences(small, "e3")


def test_what_was_learned_last_is_told_last_also_if_it_was_said_before(small: Small) -> None:
    at = time.time()
    small.done_beside_a_worker("retract", "--annotator", "ann", "--yes")
    assert sentences(small, "e0")[-1] == "'hall' was taken back: the event has no label"
    late = Answer(
        answer_id="late", event_id="e0", key="k1", y="hall", annotator="ida", answered_at=at - 9.0
    )
    small.put(late)
    small.work()
    assert sentences(small, "e0")[-1].startswith("'hall' of ida was learned")


def test_a_label_that_stands_again_is_not_learned_anew_and_replaces_none(small: Small) -> None:
    small.add('\n[people]\nsupervisors = ["eve"]\n')
    said = small.said("answers")[0]
    assert isinstance(said, Answer)
    correction = replace(
        said, answer_id="c", request_id=None, supersedes=said.answer_id, y="bath",
        annotator="eve", answered_at=said.answered_at + 1e-3,
    )  # fmt: skip
    small.put(correction)
    small.work()
    small.done_beside_a_worker("retract", "--annotator", "eve", "--yes")
    assert sentences(small, "e0")[-2:] == [
        "'bath' was taken back with all other labels of eve",
        "'hall' of ann stands again",
    ]
    counts = {each.split()[0]: each.split()[1:] for each in small.done("audit").splitlines()}
    assert counts["eve"] == ["2", "1", "0", "0", "1", "1", "0"]
    assert counts["ann"] == ["2", "2", "0", "1", "0", "0", "0"]

    small.done_beside_a_worker("retract", "--annotator", "eve", "--undo", "--yes")
    assert sentences(small, "e0")[-2:] == [
        "'hall' of ann stands again",
        "'bath' of eve was put back",
    ]
    counts = {each.split()[0]: each.split()[1:] for each in small.done("audit").splitlines()}
    assert counts["eve"] == ["2", "1", "0", "0", "1", "0", "0"]
    assert counts["ann"] == ["2", "2", "0", "1", "0", "0", "0"]
    # Another correction gets the same revision as the line that the undo has removed.
    small.put(replace(correction, answer_id="d", supersedes="c", y="den", answered_at=time.time()))
    small.work()
    assert sentences(small, "e0")[-1] == "'den' of eve was learned in place of 'bath' (revised)"


def test_a_correction_of_a_label_that_a_quarantine_took_back_is_not_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Small(tmp_path, monkeypatch)
    small.add('[people]\nsupervisors = ["ann"]\n')
    for n in range(60):
        event, by, y = told(n)
        small.put(replace(event, key="k1"))
        answer = Answer(
            answer_id=f"a{n}", event_id=f"e{n}", key="k1", y=y, annotator=by, answered_at=float(n)
        )
        small.put(answer)
        if by == "eve" and n < 30:
            small.put(
                replace(answer, answer_id=f"c{n}", supersedes=f"a{n}", annotator="ann", y="hall")
            )
    small.work()
    what = {row["what"] for row in rows(small)}
    assert "retracted" in what
    assert "reinstated" not in what


def test_a_label_is_replaced_by_another_annotator_and_by_no_retraction(small: Small) -> None:
    def replaced() -> dict[str, str]:
        *rows, _, _, _ = map(str.split, small.done("audit").splitlines())
        return {row[0]: row[4] for row in rows[1:]}

    small.add('\n[people]\nsupervisors = ["eve"]\n')
    said = small.said("answers")[0]
    assert isinstance(said, Answer)
    small.put(
        Answer(
            answer_id="a9", event_id=said.event_id, key=said.key, y="bath", annotator="eve",
            supersedes=said.answer_id, answered_at=said.answered_at + 1.0,
        )
    )  # fmt: skip
    small.work()
    now = {"ann": "1", "bob": "0", "eve": "0"}
    assert replaced() == now
    small.done_beside_a_worker("retract", "--annotator", "bob", "--yes")
    assert replaced() == now
    small.done_beside_a_worker("retract", "--annotator", "bob", "--undo", "--yes")
    assert replaced() == now


def test_labels_from_before_a_concept_drift_are_outdated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Small(tmp_path, monkeypatch)
    small.put(*labelled(range(END)))
    small.work()
    steps = rows(small)
    outdated = {row["event_id"] for row in steps if row["what"] == "outdated"}
    learned = [row["event_id"] for row in steps if row["what"] == "learned" and row["key"] == "ann"]
    n = len(outdated)
    assert CHANGE - 5 <= n <= CHANGE + 5
    assert set(learned[:n]) == outdated
    [last] = [row for row in steps if row["what"] == "outdated"][-1:]
    [since] = [row for row in steps if row["event_id"] == learned[n] and row["what"] == "learned"]
    assert last["at"] == since["at"]
    assert sentences(small, learned[0])[-1] == (
        "'night' of an annotator without a name is outdated: not taught any more, since a concept "
        "drift"
    )
    assert small.done("audit").splitlines()[1].split()[-1] == str(n)


def test_a_short_answer_is_read_as_a_worker_reads_it(small: Small) -> None:
    answer = b'{"answer_id": "a7", "event_id": "e0", "y": "den", "annotator": "ida"}'
    small.put_bytes("answers", "k1", answer)
    small.work()
    text = small.done("audit", "--event", "e0")
    assert "ida said 'den'" in text
    assert "the answer of ida was not used: event 'e0' has its label" in text


def test_topics_without_answers_have_no_story(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Small(tmp_path, monkeypatch)
    assert small.done("audit") == "the topics hold no answers\n"
    assert "no annotator 'bob' in the topics; they name none" in small.wrong(
        "audit", "--annotator", "bob"
    )


def test_answers_of_two_annotators_with_the_same_id_are_both_told(small: Small) -> None:
    for name in ("ida", "joe"):
        small.put(
            Answer(
                answer_id="1",
                event_id="e1",
                key="k1",
                y="den",
                annotator=name,
                answered_at=time.time(),
            )
        )
    small.work()
    said = [row["annotator"] for row in rows(small, "--event", "e1") if row["what"] == "said"]
    assert said == ["ann", "ida", "joe"]


def test_an_answer_under_the_id_of_another_one_of_its_annotator_is_told_to_have_no_effect(
    small: Small,
) -> None:
    [first] = [
        one for one in small.said("answers") if isinstance(one, Answer) and one.event_id == "e1"
    ]
    small.put(replace(first, y="attic", shown=()))
    small.work()
    told = [line for line in sentences(small, "e1") if "attic" in line]
    assert told == [f"ann said 'attic' ({AGAIN})"]


@pytest.mark.parametrize(("keyed", "n_again"), [(True, 0), (False, 1)])
def test_answers_of_one_id_to_two_keys_are_told_as_such_where_one_loop_serves_all(
    keyed: bool, n_again: int
) -> None:
    records = [
        Record(
            topic="answers", partition=0, offset=i, key=key.encode(), at=2.0,
            value=encode(
                Answer(
                    answer_id="1", event_id=f"e{i}", key=key, y="den", annotator="ann",
                    answered_at=1.0,
                )
            ),
        )
        for i, key in enumerate(["k1", "k2"])
    ]  # fmt: skip
    said = steps_of(records, keyed=keyed)
    assert [step.what for step in said] == ["said", "said"]
    assert sum(step.detail == AGAIN for step in said) == n_again


def test_of_two_answers_of_one_id_both_count_once_the_event_of_the_first_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a program numbers its answers from 1 at each start."""
    small = Small(tmp_path, monkeypatch)
    small.config_file.write_text(
        small.config_file.read_text().replace('rule = "always"', 'rule = "never"')
        + "[loop]\nanswer_horizon_s = 10.0\n"
    )
    for name, at, y in (("e1", small.sent_at, "den"), ("e2", small.sent_at + 30.0, "hall")):
        small.put(small.event(name, occurred_at=at))
        small.put(
            Answer(
                answer_id="1", event_id=name, key="ann", y=y, annotator="eve", answered_at=at + 1.0
            )
        )  # fmt: skip
        small.work()
    assert [row["label"] for row in rows(small) if row["what"] == "learned"] == ["den", "hall"]
    assert f"eve said 'hall' ({AGAIN})" in sentences(small, "e2")


def test_a_forged_answer_under_the_id_of_another_one_does_not_hide_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"ann": bytes(32).hex()}))
    small = Small(tmp_path, monkeypatch, n_partitions=1)
    small.add(f'[people]\nkeys_file = "{keys}"\n')
    small.put(small.event("e1"))
    answer = Answer(
        answer_id="a1", event_id="e1", key="ann", y="hall", annotator="ann", answered_at=1.0
    )
    small.put(replace(answer, y="bath"))
    signed = ("signature", signature(answer, bytes(32)))
    for _ in range(2):
        small.put_bytes("answers", "ann", encode(answer), (signed,))
    small.work()
    said = [line for line in sentences(small, "e1") if "asked for" not in line]
    assert said[:2] == [
        "ann said 'bath'",
        f"ann said 'hall' ({AGAIN})",
    ]
    assert said[2].startswith("the answer of ann was not used: an answer of 'ann' must be signed")
    assert len(said) == 4
    assert said[3].startswith("'hall' of ann was learned (asked")


def test_forgotten_keys_take_no_time_for_each_event_of_the_others() -> None:
    def record(offset: int, key: bytes, value: bytes | None) -> Record:
        place = {"topic": "consensus", "partition": 0, "at": float(offset)}
        return Record(offset=offset, key=key, value=value, **place)  # type: ignore[arg-type]

    n = 6_000
    lines = [
        LabelledExample(
            event_id="e", key=f"k{i}", sequence=1, x={}, y="den", origin="asked", learned_at=1.0
        )
        for i in range(n)
    ]
    records = [
        record(i, consensus_key(f"k{i}", "e", 0), encode(line)) for i, line in enumerate(lines)
    ]
    records += [record(n + i, b"k%d" % i, None) for i in range(n // 2)]
    start = time.process_time()
    assert {step.key for step in steps_of(records)} == {f"k{i}" for i in range(n // 2, n)}
    assert time.process_time() - start < 3.0  # 0.4 s; a look at all events for each takes ten


def test_a_retraction_is_read_once_as_it_comes_and_once_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many others of the same key there are."""
    n, n_read, real = 50, 0, state_records.retraction_of

    def counting(value: object) -> Retraction:
        nonlocal n_read
        n_read += 1
        return real(value)

    monkeypatch.setattr(state_records, "retraction_of", counting)
    made = [state_records.state("k", "head", {}, 0)]
    for i in range(n):
        line = LabelledExample(
            event_id=f"e{i}", key="k", sequence=i + 1, x={}, y="den", origin="asked",
            learned_at=1.0, annotator=f"ann{i}",
        )  # fmt: skip
        retraction = Retraction(annotator=f"ann{i}", since=None, at=2.0, taken=(line,))
        value = state_records.retraction_value(retraction)
        made.append(state_records.state("k", state_records.retraction_name(f"ann{i}"), value, 0))
    records = [
        Record(topic="state", partition=0, offset=i, key=out.key, value=out.value, at=2.0)
        for i, out in enumerate(made)
    ]
    told_of = [step.annotator for step in steps_of(records) if step.what == "retracted"]
    assert sorted(map(str, told_of)) == sorted(f"ann{i}" for i in range(n))
    assert n_read == 2 * n


def test_an_answer_counts_once_and_what_is_no_message_not_at_all() -> None:
    answer = encode(
        Answer(answer_id="a1", event_id="e1", declined=True, annotator="ann", answered_at=1.0)
    )

    def record(offset: int, value: bytes) -> Record:
        return Record(topic="answers", partition=0, offset=offset, key=None, value=value, at=0.0)

    [step] = steps_of([record(0, answer), record(1, answer), record(2, b"?")])
    assert (step.what, step.annotator, step.label) == ("said", "ann", None)
