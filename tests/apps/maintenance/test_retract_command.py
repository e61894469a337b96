"""`streamgp retract`: the labels of one annotator are gone from a deployment, and come back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from connectors.embedded.topics import EmbeddedTopics
from connectors.storage.snapshots import StateDirectory
from connectors.topics import BrokerError
from connectors.wire.state_records import History
from streamgp.interactive.messages import Answer, Cancel, LabelledExample, LabelRequest, Prediction
from tests.helpers.small_deployment import Small
from tests.interactive.test_quarantine import told

KEYS = ("k1", "k2")
N = 10


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    return deployment(tmp_path, monkeypatch)


def deployment(path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    small = Small(path, monkeypatch, n_partitions=2)
    small.add("[temporal]\nenabled = false\n")  # its past is not undone
    small.add('[people]\nsupervisors = ["bob"]\n')  # who corrects ann
    return small


def labels_given(small: Small, *annotators: str, keys: tuple[str, ...] = KEYS) -> None:
    """Let a worker ask about some events, and people answer in turn."""
    for key in keys:
        for i in range(N):
            x = {"light": i % 2 + 0.1 * i, "noise": float(i % 3)}
            small.put(small.event(f"e{i}", key, x=x))
    small.work()
    for i, request in enumerate(requests(small)):
        who = annotators[i % len(annotators)]
        if who:
            small.answer(request, "hall" if i % 4 < 2 else "den", annotator=who)
    small.work()


def requests(small: Small) -> list[LabelRequest]:
    found = [m for m in small.said("requests") if isinstance(m, LabelRequest)]
    return sorted(found, key=lambda request: (str(request.key), request.event_id))


def prediction(small: Small, event_id: str) -> Prediction:
    said = [m for m in small.said("predictions") if isinstance(m, Prediction)]
    return next(each for each in said if each.event_id == event_id)


def proba(small: Small, key: str = "k1") -> tuple[object, int]:
    """Return what the worker predicts of a new event, and the number of labels learned."""
    name = f"asked {len(small.records('events'))}"
    small.put(small.event(name, key, x={"light": 0.5, "noise": 1.0}))
    small.work()
    found = prediction(small, name)
    return found.proba, found.n_learned


def lines(small: Small) -> list[LabelledExample]:
    histories: dict[int, History] = {}
    for record in small.records("consensus", "state"):
        histories.setdefault(record.partition, History()).take(record)
    return [
        line
        for history in histories.values()
        for e in history.entities()
        for line in history.lines(e)
    ]


@pytest.mark.parametrize("is_embedded", [False, True])
def test_workers_go_on_as_if_the_annotator_had_never_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_embedded: bool
) -> None:
    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        small = deployment(tmp_path / name, monkeypatch)
        if is_embedded:
            small.topics = EmbeddedTopics(tmp_path / name / "topics")
            small.topics.create()
            monkeypatch.setattr(small.topics, "close", lambda: None)
        labels_given(small, "ann", "bob" if name == "one" else "")
        if name == "one":
            said = small.done("retract", "--annotator", "bob", "--yes")
            assert "10 labels of 'bob' in 2 learners: 10 events would have no label, 0" in said
            assert "took back 10 labels of 'bob'; now start the workers" in said
        found.append([proba(small, key) for key in KEYS])
    assert found[0] == found[1]


def test_a_dry_run_counts_beside_workers_and_changes_nothing(small: Small) -> None:
    labels_given(small, "ann", "bob")
    before = small.records("consensus", "state")
    with small.working():
        said = small.done("retract", "--annotator", "bob", "--dry-run")
        assert said.startswith("10 labels of 'bob' in 2 learners")
        wrong = small.wrong("retract", "--annotator", "bob", "--yes")
        assert "1 worker of group streamgp still at work; stop them all" in wrong
    assert small.records("consensus", "state") == before
    assert "changed nothing" in small.done("retract", "--annotator", "bob", answer="n\n")
    assert small.records("consensus", "state") == before


def test_a_worker_that_begins_meanwhile_keeps_it_from_being_written(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels_given(small, "ann", "bob")
    before = small.records("consensus", "state")
    monkeypatch.setattr("streamgp.apps.maintenance.retract.check_idle", lambda *_: None)
    with small.working():
        said = small.wrong("retract", "--annotator", "bob", "--yes")
    assert "a worker has begun meanwhile, nothing was changed" in said
    assert small.records("consensus", "state") == before


def test_what_was_taken_back_is_put_back(small: Small) -> None:
    labels_given(small, "ann", "bob")
    before = sorted(map(repr, lines(small)))
    was = proba(small)
    small.done("retract", "--annotator", "bob", "--yes")
    assert not [line for line in lines(small) if line.annotator == "bob"]
    assert proba(small)[1] == 5
    said = small.done("retract", "--annotator", "bob", "--undo", "--yes")
    assert "10 labels of 'bob' in 2 learners can be put back" in said
    assert "with these labels among them" in said
    assert sorted(map(repr, lines(small))) == before
    assert proba(small) == was
    assert small.wrong("retract", "--annotator", "bob", "--undo") == (
        "no labels of 'bob' were taken back; there is nothing to undo"
    )


def test_what_a_quarantine_took_back_is_put_back_and_no_snapshot_from_before_is_merged(
    small: Small, tmp_path: Path
) -> None:
    state = StateDirectory(tmp_path / "state")
    given: list[Answer] = []
    for n in range(90):
        event, by, y = told(n)
        small.put(replace(event, key="k1"))
        given.append(
            Answer(
                answer_id=f"a{n}", event_id=f"e{n}", key="k1", y=y, annotator=by,
                answered_at=float(n),
            )
        )  # fmt: skip
    small.put(*given[:30])
    small.work(state=state)
    before = {path.name: path.read_bytes() for path in (tmp_path / "state").iterdir()}
    small.put(*given[30:])
    small.work(state=state)
    assert not [line for line in lines(small) if line.annotator == "eve"]
    for name, data in before.items():
        (tmp_path / "state" / name).write_bytes(data)
    small.put(small.event("later", "k1", x=told(0)[0].x))
    small.work(state=state)
    found = prediction(small, "later")
    small.put(small.event("again", "k1", x=told(0)[0].x))
    small.work()
    assert (prediction(small, "again").proba, prediction(small, "again").n_learned) == (
        found.proba,
        found.n_learned,
    )
    small.add('trusted = ["eve"]\n')
    said = small.done("retract", "--annotator", "eve", "--undo", "--yes")
    n_lies = int(said.split()[0])
    assert f"{n_lies} labels of 'eve' in 1 learner can be put back" in said
    assert 8 <= n_lies <= 40
    assert sum(line.annotator == "eve" for line in lines(small)) == n_lies
    small.put(*(replace(each, answer_id=f"again {n}") for n, each in enumerate(given[30:])))
    small.work(state=state)
    assert sum(line.annotator == "eve" for line in lines(small)) > n_lies


def test_no_snapshot_from_before_is_merged(small: Small, tmp_path: Path) -> None:
    def work() -> None:
        directory = StateDirectory(tmp_path / "state")
        try:
            small.work(state=directory)
        finally:
            directory.close()

    labels_given(small, "ann", "bob")
    work()
    small.done("retract", "--annotator", "bob", "--yes")
    small.put(small.event("new", "k1", x={"light": 0.5, "noise": 1.0}))
    work()
    assert prediction(small, "new").n_learned == 5


def test_labels_of_others_about_the_same_event_stand_again(small: Small) -> None:
    labels_given(small, "ann", keys=("k1",))
    [first] = [m for m in small.said("answers") if isinstance(m, Answer) and m.event_id == "e0"]
    small.put(
        Answer(
            answer_id="correction",
            event_id="e0",
            key="k1",
            y="bath",
            annotator="bob",
            supersedes=first.answer_id,
            answered_at=first.answered_at + 1.0,
        )
    )
    small.work()
    said = small.done("retract", "--annotator", "bob", "--yes")
    assert "1 label of 'bob' in 1 learner: 0 events would have no label, 1 event one" in said
    left = [line for line in lines(small) if line.event_id == "e0"]
    about = [(line.revision, line.y, line.annotator) for line in left]
    assert about == [(0, first.y, "ann"), (2, first.y, "ann")]
    assert proba(small)[1] == N
    small.done("retract", "--annotator", "bob", "--undo", "--yes")
    assert [line.y for line in lines(small) if line.event_id == "e0"] == [first.y, "bath"]


def test_retractions_of_the_same_events_are_undone_in_turn(small: Small) -> None:
    test_labels_of_others_about_the_same_event_stand_again(small)
    for who in ("bob", "ann"):
        small.done("retract", "--annotator", who, "--yes")
    assert lines(small) == [line for line in lines(small) if line.y is None]
    assert small.wrong("retract", "--annotator", "bob", "--undo") == (
        "labels of 'ann' about the same events were taken back later; undo that first"
    )
    for who in ("ann", "bob"):
        small.done("retract", "--annotator", who, "--undo", "--yes")
    assert [line.y for line in lines(small) if line.event_id == "e0"][-1] == "bath"
    assert proba(small)[1] == N


def test_labels_taken_back_in_two_parts_are_put_back_together(small: Small) -> None:
    labels_given(small, "ann", "bob")
    before = sorted(map(repr, lines(small)))
    moments = sorted(line.learned_at for line in lines(small) if line.annotator == "bob")
    since = f"@{moments[-1]}"
    late = small.call("retract", "--annotator", "bob", "--since", since, "--yes")
    assert late.exit_code == 2  # no such way to say a moment
    small.done("retract", "--annotator", "bob", "--since", "1s", "--yes")
    small.call("retract", "--annotator", "bob", "--yes")
    assert not [line for line in lines(small) if line.annotator == "bob"]
    small.done("retract", "--annotator", "bob", "--undo", "--yes")
    assert sorted(map(repr, lines(small))) == before


def test_a_contested_label_is_not_learned_and_its_question_ends(small: Small) -> None:
    text = small.config_file.read_text().replace('rule = "never"', 'rule = "always"')
    small.config_file.write_text(text)
    for i in range(3):
        small.put(small.event(f"e{i}", "k1", x={"light": float(i), "noise": 0.0}))
    small.work()
    for request, y in zip(requests(small), ("hall", "hall", "den"), strict=True):
        small.answer(request, y, annotator="bob")
        small.work()
    said = small.done("retract", "--annotator", "bob", "--yes")
    assert "in 1 learner labels that are contested and not learned yet" in said
    [cancel] = [m for m in small.said("requests") if isinstance(m, Cancel)]
    assert cancel.request_id == "e2/challenge/1"
    assert proba(small)[1] == 0


def test_forgetting_a_key_takes_what_was_taken_back_with_it(small: Small) -> None:
    labels_given(small, "ann", "bob")
    small.done("retract", "--annotator", "bob", "--yes")
    with small.working():
        small.done("forget", "k1", "--yes")
    newest = {record.key: record for record in small.records("state")}
    left = [key for key, record in newest.items() if record.value and b"retracted/" in (key or b"")]
    assert left == [b"k2\x1fretracted/bob"]


def test_what_was_taken_back_survives_backup_and_recovery(small: Small, tmp_path: Path) -> None:
    labels_given(small, "ann", "bob")
    small.done("retract", "--annotator", "bob", "--yes")
    assert "2 learners with" in small.done("backup", tmp_path / "backup")
    logs = small.topics._logs._records
    for (name, _), records in logs.items():
        if name == "state":
            records[:] = [record for record in records if b"retracted/" in (record.key or b"")]
    small.done("recover", "--yes")
    small.done("retract", "--annotator", "bob", "--undo", "--yes")
    assert proba(small)[1] == N


def test_what_cannot_be_done_is_said(small: Small) -> None:
    assert "has no such" not in small.wrong("retract", "--annotator", "bob", "--yes")
    labels_given(small, "ann")
    assert small.wrong("retract", "--annotator", "bob", "--yes") == (
        "no learner holds a label of 'bob'; nothing was taken back"
    )
    result = small.call("retract", "--annotator", "ann", "--undo", "--since", "2d")
    assert "--since goes with taking back, not with --undo" in result.stderr


def test_nothing_is_written_where_the_transaction_fails(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels_given(small, "ann", "bob")
    before = small.records("consensus", "state")
    client = small.topics.client

    def failing(**options: object) -> object:
        made = client(**options)  # type: ignore[arg-type]

        def commit(_: object) -> None:
            raise BrokerError("broker is gone")

        monkeypatch.setattr(made, "commit", commit)
        return made

    with monkeypatch.context() as patched:
        patched.setattr(small.topics, "client", failing)
        assert small.call("retract", "--annotator", "bob", "--yes").exit_code != 0
    assert small.records("consensus", "state") == before
    assert proba(small)[1] == N
