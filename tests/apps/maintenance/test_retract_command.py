"""`streamgp retract`: the labels of one annotator are gone from a deployment, and come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from time import time

import pytest

from connectors.embedded.topics import EmbeddedTopics
from connectors.keyed_state import KeyedState, MemoryKeyStore, entity_of
from connectors.memory import MemoryTopics
from connectors.storage.snapshots import StateDirectory
from connectors.topics import BrokerError, Outgoing, Record, RefusedError
from connectors.wire.state_records import CONFIGURATION, ERASED_BY, History, state
from connectors.worker.compatibility import ON_FLINK, signature
from streamgp.apps.deployment.deployment import build_loops
from streamgp.config.load import parse_worker
from streamgp.interactive.messages import Answer, Cancel, LabelledExample, LabelRequest, Prediction
from tests.helpers.small_deployment import Small
from tests.helpers.topics import write
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


def retracted(small: Small, *arguments: str) -> str:
    return small.done_beside_a_worker("retract", *arguments, "--yes")


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
            said = retracted(small, "--annotator", "bob")
            assert "10 labels of 'bob' in 2 learners: 10 events would have no label, 0" in said
            assert said.endswith("took back 10 labels of 'bob'\n")
        found.append([proba(small, key) for key in KEYS])
    assert found[0] == found[1]


def test_a_dry_run_counts_and_changes_nothing(small: Small) -> None:
    labels_given(small, "ann", "bob")
    before = small.records("consensus", "state")
    with small.working():
        said = small.done("retract", "--annotator", "bob", "--dry-run")
        assert said.startswith("10 labels of 'bob' in 2 learners")
    assert "changed nothing" in small.done("retract", "--annotator", "bob", answer="n\n")
    assert small.records("consensus", "state") == before


def test_without_a_worker_it_is_done_when_one_runs(small: Small) -> None:
    labels_given(small, "ann", "bob")
    result = small.call("retract", "--annotator", "bob", "--yes")
    assert result.exit_code == 3
    assert (
        "request sent: 10 labels of 'bob' will be taken back when a worker runs; none"
        in result.stdout
    )
    assert sum(line.annotator == "bob" for line in lines(small)) == 10
    small.work()
    assert not [line for line in lines(small) if line.annotator == "bob"]


def test_only_learners_with_labels_of_the_annotator_are_asked(small: Small) -> None:
    labels_given(small, "ann", keys=("k1", "k2", "k3"))
    answers = [m for m in small.said("answers") if isinstance(m, Answer)]
    first = next(m for m in answers if (m.key, m.event_id) == ("k2", "e0"))
    correction = {"answer_id": "more", "supersedes": first.answer_id, "annotator": "bob"}
    small.put(replace(first, y="bath", answered_at=first.answered_at + 1.0, **correction))
    small.work()
    retracted(small, "--annotator", "bob")
    asked = [r for r in small.records("consensus") if b"retract" in (r.key or b"")]
    assert [(r.key or b"").split(b"\x1f")[0] for r in asked] == [b"k2"]


def test_a_worker_that_does_not_get_there_in_time_is_reported(small: Small) -> None:
    labels_given(small, "ann", "bob")
    with small.working():
        result = small.call("retract", "--annotator", "bob", "--wait", "0", "--yes")
    assert result.exit_code == 3
    assert "request sent: the workers have not taken back 10 labels of 'bob' yet" in result.stdout


@pytest.mark.parametrize(
    "words", [("retract", "--annotator", "bob"), ("forget", "k1")], ids=["retract", "forget"]
)
def test_a_command_that_is_interrupted_tells_that_its_request_is_sent(
    small: Small, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    labels_given(small, "ann", "bob")

    def interrupted(group: str) -> int:
        if any(r.value is None for r in small.records("consensus")):
            raise KeyboardInterrupt
        return MemoryTopics.n_members(small.topics, group)

    with monkeypatch.context() as patched:
        patched.setattr(small.topics, "n_members", interrupted)
        result = small.call(*words, "--yes")
    assert result.exit_code == 130
    assert result.stderr.startswith("interrupted; the request ")
    assert result.stderr.endswith("; call the command again to see whether it was\n")
    small.work()
    assert small.call(*words, "--yes").exit_code == 2  # there is nothing left to do


@pytest.mark.parametrize(("kind", "status"), [(BrokerError, 75), (RefusedError, 2)])
@pytest.mark.parametrize(
    "words", [("retract", "--annotator", "bob"), ("forget", "k1")], ids=["retract", "forget"]
)
def test_a_command_whose_broker_fails_tells_that_its_request_is_sent(
    small: Small,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    kind: type[BrokerError],
    status: int,
) -> None:
    labels_given(small, "ann", "bob")

    def lost(group: str) -> int:
        if any(r.value is None for r in small.records("consensus")):
            raise kind("broker one:9092 failed to describe the group")
        return MemoryTopics.n_members(small.topics, group)

    with monkeypatch.context() as patched:
        patched.setattr(small.topics, "n_members", lost)
        result = small.call(*words, "--yes")
    assert result.exit_code == status
    assert result.stderr.startswith("Error: broker one:9092 failed to describe the group; the ")
    assert result.stderr.endswith("; call the command again to see whether it was\n")
    small.work()
    assert small.call(*words, "--yes").exit_code == 2  # there is nothing left to do


def test_without_the_right_to_wait_for_it_nothing_is_sent(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels_given(small, "ann", "bob")
    before = len(small.records("consensus"))

    def refused(_group: str) -> None:
        raise RefusedError("user 'ada' has no right to tell where topics end at one:9092")

    monkeypatch.setattr(small.topics, "backlog", refused)
    assert "has no right" in small.wrong("retract", "--annotator", "bob", "--yes")
    assert len(small.records("consensus")) == before


def test_labels_that_a_learner_could_not_be_taught_without_are_reported(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels_given(small, "ann", "bob")
    monkeypatch.setattr("streamgp.apps.maintenance.retract._SETTLED_S", 0.0)

    def failing(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by what?")

    with small.working(), monkeypatch.context() as patched:
        patched.setattr("streamgp.interactive.loop.take_back", failing)
        result = small.call("retract", "--annotator", "bob", "--yes")
    assert result.exit_code == 3
    assert (
        "request sent: 10 labels of 'bob' were not taken back: given since, or refused"
        in result.stdout
    )
    errors = {dict(r.headers)["dlq.error"] for r in small.records("dead-letters")}
    assert errors == {b"ZeroDivisionError: by what?"}
    assert proba(small)[1] == N


def test_what_was_taken_back_is_put_back(small: Small) -> None:
    labels_given(small, "ann", "bob")
    before = sorted(map(repr, lines(small)))
    was = proba(small)
    retracted(small, "--annotator", "bob")
    assert not [line for line in lines(small) if line.annotator == "bob"]
    assert proba(small)[1] == 5
    said = retracted(small, "--annotator", "bob", "--undo")
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
    said = retracted(small, "--annotator", "eve", "--undo")
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
    retracted(small, "--annotator", "bob")
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
    said = retracted(small, "--annotator", "bob")
    assert "1 label of 'bob' in 1 learner: 0 events would have no label, 1 event one" in said
    left = [line for line in lines(small) if line.event_id == "e0"]
    about = [(line.revision, line.y, line.annotator) for line in left]
    assert about == [(0, first.y, "ann"), (2, first.y, "ann")]
    assert proba(small)[1] == N
    retracted(small, "--annotator", "bob", "--undo")
    assert [line.y for line in lines(small) if line.event_id == "e0"] == [first.y, "bath"]


def test_a_label_that_is_only_confirmed_by_another_annotator_is_not_counted(small: Small) -> None:
    labels_given(small, "ann", keys=("k1",))
    answers = [m for m in small.said("answers") if isinstance(m, Answer)]
    for n, first in enumerate(answers[:2]):
        small.put(
            replace(
                first, answer_id=f"c{n}", request_id=None, supersedes=first.answer_id,
                annotator="bob", answered_at=first.answered_at + 1.0,
            )
        )  # fmt: skip
    small.work()
    said = retracted(small, "--annotator", "ann")
    assert said.startswith(f"{N} labels of 'ann' in 1 learner: {N - 2} events would have no label")
    assert said.endswith(f"took back {N} labels of 'ann'\n")
    said = retracted(small, "--annotator", "ann", "--undo")
    assert said.startswith(f"{N} labels of 'ann' in 1 learner can be put back")
    assert said.endswith(f"put back {N} labels of 'ann'\n")


def test_a_label_from_before_may_stand_again(small: Small) -> None:
    labels_given(small, "ann", keys=("k1",))
    [first] = [m for m in small.said("answers") if isinstance(m, Answer) and m.event_id == "e0"]
    later = first.answered_at + 0.002
    correction = replace(
        first, answer_id="c", request_id=None, supersedes=first.answer_id, y="bath",
        answered_at=later,
    )  # fmt: skip
    small.put(correction)
    small.work()
    since = datetime.fromtimestamp(later - 0.001, UTC).isoformat()
    words = ("--annotator", "ann", "--since", since)
    said = retracted(small, *words)
    assert ", 1 event one of another annotator, or an earlier one\n" in said
    assert [line.y for line in lines(small) if line.event_id == "e0"][-1] == first.y
    assert small.wrong("retract", *words) == (
        "no learner holds a label of 'ann' since then; nothing was taken back"
    )


def test_retractions_of_the_same_events_are_undone_in_turn(small: Small) -> None:
    test_labels_of_others_about_the_same_event_stand_again(small)
    for who in ("bob", "ann"):
        retracted(small, "--annotator", who)
    assert lines(small) == [line for line in lines(small) if line.y is None]
    assert small.wrong("retract", "--annotator", "bob", "--undo") == (
        "labels of 'ann' about the same events were taken back later; undo that first"
    )
    for who in ("ann", "bob"):
        retracted(small, "--annotator", who, "--undo")
    assert [line.y for line in lines(small) if line.event_id == "e0"][-1] == "bath"
    assert proba(small)[1] == N


def test_labels_taken_back_in_two_parts_are_put_back_together(small: Small) -> None:
    labels_given(small, "ann", "bob")
    before = sorted(map(repr, lines(small)))
    moments = sorted(line.learned_at for line in lines(small) if line.annotator == "bob")
    since = f"@{moments[-1]}"
    late = small.call("retract", "--annotator", "bob", "--since", since, "--yes")
    assert late.exit_code == 2  # no such way to say a moment
    with small.working():
        small.done("retract", "--annotator", "bob", "--since", "1s", "--yes")
        small.call("retract", "--annotator", "bob", "--yes")  # there may be none left
    assert not [line for line in lines(small) if line.annotator == "bob"]
    retracted(small, "--annotator", "bob", "--undo")
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
    said = retracted(small, "--annotator", "bob")
    assert "in 1 learner labels that are contested and not learned yet" in said
    [cancel] = [m for m in small.said("requests") if isinstance(m, Cancel)]
    assert cancel.request_id == "e2/challenge/1"
    assert proba(small)[1] == 0


@pytest.mark.parametrize("name", ["head", "later"])
def test_state_that_no_worker_can_restore_is_an_error_in_one_line(small: Small, name: str) -> None:
    labels_given(small, "ann", "bob")
    [place] = {record.partition for record in small.records("state") if record.key == b"k1\x1fhead"}
    write(small.topics, state("k1", name, [1], partition=place))
    assert small.wrong("retract", "--annotator", "bob", "--dry-run").startswith(
        f"partition {place}: published state cannot be read: "
    )


def test_forgetting_a_key_takes_what_was_taken_back_with_it(small: Small) -> None:
    labels_given(small, "ann", "bob")
    retracted(small, "--annotator", "bob")
    with small.working():
        small.done("forget", "k1", "--yes")
    newest = {record.key: record for record in small.records("state")}
    left = [key for key, record in newest.items() if record.value and b"retracted/" in (key or b"")]
    assert left == [b"k2\x1fretracted/bob"]


def test_what_was_taken_back_survives_backup_and_recovery(small: Small, tmp_path: Path) -> None:
    labels_given(small, "ann", "bob")
    retracted(small, "--annotator", "bob")
    assert "2 learners with" in small.done("backup", tmp_path / "backup")
    small.topics.lose("state", which=lambda r: b"retracted/" not in (r.key or b""))
    small.done("recover", "--yes")
    retracted(small, "--annotator", "bob", "--undo")
    assert proba(small)[1] == N


def test_what_cannot_be_done_is_reported(small: Small) -> None:
    assert "has no such" not in small.wrong("retract", "--annotator", "bob", "--yes")
    labels_given(small, "ann")
    assert small.wrong("retract", "--annotator", "bob", "--yes") == (
        "no learner holds a label of 'bob'; nothing was taken back"
    )
    result = small.call("retract", "--annotator", "ann", "--undo", "--since", "2d")
    assert "--since cannot be used with --undo" in result.stderr


# --- Where Flink keeps what is learned: an engine in its place, that does what a job does.


class Engine:
    """Takes the inputs key by key, and writes what a job on Flink writes."""

    def __init__(self, small: Small) -> None:
        config = parse_worker(small.config_file.read_text(), source="worker.toml")
        self.loops = build_loops(config, source="worker.toml")
        self.stores: dict[tuple[int, bytes], MemoryKeyStore] = {}
        self.small = small
        signed = {**signature(self.loops.configuration, "streamgp"), "fingerprint": ON_FLINK}
        write(small.topics, *(state("", CONFIGURATION, signed, number) for number in range(2)))

    def work(self, is_over: Callable[[], bool] | None = None) -> None:
        """Work off what waits, or until it is over."""
        client = self.small.topics.client(group="streamgp", instance="job", max_records=100)
        n_idle = 0
        while not is_over() if is_over is not None else n_idle < 3:
            records = client.poll(0.05)
            n_idle = 0 if records else n_idle + 1
            client.commit([out for record in records for out in self._step(record)])
        client.close(leave=True)

    def _step(self, record: Record) -> list[Outgoing]:
        if record.topic == "consensus" and (
            record.value is not None or any(name == ERASED_BY for name, _ in record.headers)
        ):
            return []
        entity = entity_of(record.topic, record.key, keyed=True)
        store = self.stores.setdefault((record.partition, entity), MemoryKeyStore())
        made = KeyedState(
            record.partition, self.loops, store, group="streamgp", names={}, now=time()
        )
        return made.step(record, time())


@contextmanager
def at_work(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    is_over = False
    # A job on Flink is no member of the group.
    monkeypatch.setattr(engine.small.topics, "n_members", lambda _group: 0)
    thread = Thread(target=lambda: engine.work(lambda: is_over))
    thread.start()
    try:
        yield
    finally:
        is_over = True
        thread.join()


def given_on_flink(small: Small, engine: Engine, *annotators: str) -> None:
    for key in KEYS:
        for i in range(N):
            x = {"light": i % 2 + 0.1 * i, "noise": float(i % 3)}
            small.put(small.event(f"e{i}", key, x=x))
    engine.work()
    for i, request in enumerate(requests(small)):
        small.answer(request, "hall" if i % 4 < 2 else "den", annotator=annotators[i % 2])
    engine.work()


def test_flink_takes_back_and_puts_back_while_it_works(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(small)
    given_on_flink(small, engine, "ann", "bob")
    before = sorted(map(repr, lines(small)))
    with at_work(engine, monkeypatch):
        said = small.done("retract", "--annotator", "bob", "--yes")
        assert said.startswith("10 labels of 'bob' in 2 learners: 10 events would have no label")
        assert said.endswith("took back 10 labels of 'bob'\n")
        assert not [line for line in lines(small) if line.annotator == "bob"]
        wrong = small.wrong("retract", "--annotator", "bob", "--yes")
        assert wrong == "no learner holds a label of 'bob'; nothing was taken back"
        said = small.done("retract", "--annotator", "bob", "--undo", "--yes")
        assert said.endswith("put back 10 labels of 'bob'\n")
        assert sorted(map(repr, lines(small))) == before
        wrong = small.wrong("retract", "--annotator", "bob", "--undo", "--yes")
        assert wrong == "no labels of 'bob' were taken back; there is nothing to undo"


def test_flink_that_is_not_at_work_does_it_when_it_is(small: Small) -> None:
    engine = Engine(small)
    given_on_flink(small, engine, "ann", "bob")
    result = small.call("retract", "--annotator", "bob", "--wait", "0.1", "--yes")
    assert result.exit_code == 3
    assert "request sent: Flink has not taken back 10 labels of 'bob' yet" in result.stdout
    engine.work()
    assert not [line for line in lines(small) if line.annotator == "bob"]


def test_a_contested_label_on_flink_is_found_by_its_question(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = small.config_file.read_text().replace('rule = "never"', 'rule = "always"')
    small.config_file.write_text(text)
    engine = Engine(small)
    for i in range(3):
        small.put(small.event(f"e{i}", "k1", x={"light": float(i), "noise": 0.0}))
    engine.work()
    for request, y, by in zip(
        requests(small), ("hall", "hall", "den"), ("ann", "ann", "bob"), strict=True
    ):
        small.answer(request, y, annotator=by)
        engine.work()
    with at_work(engine, monkeypatch):
        said = small.done("retract", "--annotator", "bob", "--yes")
    assert "0 labels of 'bob' in 1 learner: 0 events" in said
    assert "in 1 learner labels that are contested and not learned yet" in said
    [cancel] = [m for m in small.said("requests") if isinstance(m, Cancel)]
    assert cancel.request_id == "e2/challenge/1"
    assert "no learner holds a label of 'bob'" in small.wrong("retract", "--annotator", "bob")


def test_another_group_is_refused_on_flink_too(small: Small) -> None:
    given_on_flink(small, Engine(small), "ann", "bob")
    small.add('[worker]\ngroup = "other"\n')
    assert "partition 0 belongs to the group 'streamgp'" in small.wrong(
        "retract", "--annotator", "bob", "--yes"
    )


def test_a_key_is_forgotten_on_flink(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(small)
    given_on_flink(small, engine, "ann", "bob")
    with at_work(engine, monkeypatch):
        small.done("retract", "--annotator", "bob", "--yes")
        said = small.done("forget", "k1", "--yes")
    assert said.startswith("forgot 'k1': ")
    newest = {(r.topic, r.key): r.value for r in small.records("consensus", "state")}
    left = [key for (_, key), value in newest.items() if value and (key or b"").startswith(b"k1")]
    assert left == []
    assert [
        key for (topic, key), value in newest.items() if topic == "state" and value and key[0] != 31
    ] == [b"k2\x1fretracted/bob"]
