"""Topics that have lost what was learned: refused by workers and commands, and made again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.embedded.topics import EmbeddedTopics
from connectors.storage.snapshots import StateDirectory
from connectors.topics import Outgoing, RefusedError, TopicName
from connectors.wire import state_records
from connectors.wire.state_records import FORGOTTEN, parts_of
from connectors.worker.compatibility import BEING_RECOVERED, UnfitTopicsError
from connectors.worker.losses import LostRecordsError
from streamgp.apps.worker import check as checking
from streamgp.interactive.messages import (
    Answer,
    LabelledExample,
    LabelRequest,
    Prediction,
)
from streamgp.interactive.quarantine import Quarantine
from streamgp.interactive.state.serialize import HEAD
from tests.helpers.small_deployment import Cut, OpenTopics, Small
from tests.helpers.topics import write
from tests.interactive.test_quarantine import told

LABELS = ("hall", "den")
N = 12


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    return Small(tmp_path, monkeypatch, n_partitions=2)


def with_labels(
    small: Small, *, start: int = 0, n: int = N, keys: tuple[str, ...] = ("ann", "bob")
) -> None:
    """Let a worker learn some labels of each key."""
    for key in keys:
        for i in range(start, start + n):
            x = {"light": i % 2 + 0.01 * i, "noise": float(i % 3)}
            small.put(small.event(f"e{i}", key, x=x, y=LABELS[i % 2]))
    small.work()


def lines(small: Small) -> list[LabelledExample]:
    newest: dict[bytes | None, Any] = {}
    for record in small.records("consensus"):
        newest.pop(record.key, None)
        newest[record.key] = record
    return [state_records.line_of(r.key, r.value) for r in newest.values() if r.value is not None]


def sequences(small: Small, key: str) -> list[int]:
    return sorted(line.sequence for line in lines(small) if line.key == key)


def refusal(small: Small) -> str:
    with pytest.raises(UnfitTopicsError) as caught:
        small.work()
    return str(caught.value)


def n_learned(small: Small, key: str) -> int:
    """Return how many labels the learner of a key holds, by asking for a prediction."""
    name = f"asked {len(small.records('events'))}"
    small.put(small.event(name, key, x={"light": 0.5, "noise": 1.0}))
    small.work()
    [prediction] = [
        m for m in small.said("predictions") if isinstance(m, Prediction) and m.event_id == name
    ]
    return prediction.n_learned


# --- what is refused


def test_a_lost_state_topic_is_refused_and_nothing_is_written(small: Small) -> None:
    with_labels(small)
    small.topics.lose("state")
    small.put(small.event("late", y="hall"))
    before = small.records("consensus", "predictions", "state")
    text = refusal(small)
    assert "consensus holds labelled examples, and state has no record of the workers" in text
    assert "from one backup (`streamgp restore`), or recover state" in text
    assert "`streamgp recover`" in text
    assert small.records("consensus", "predictions", "state") == before


@pytest.mark.parametrize("topic", ["state", "consensus"])
def test_rebuild_calls_no_lost_topic_normal(small: Small, topic: TopicName) -> None:
    with_labels(small)
    (small.path / "new.toml").write_text("warm_up = 0\n")
    small.topics.lose(topic)
    assert f"{topic} was deleted, emptied or cut" in small.wrong(
        "rebuild", "--learner", small.path / "new.toml"
    )


def test_forget_and_watch_say_that_state_is_lost(small: Small) -> None:
    with_labels(small)
    assert "warning" not in small.call("watch", "--once", "--interval", "0.1").stderr
    small.topics.lose("state")
    assert small.wrong("forget", "ann", "--yes").startswith(
        "state has no record of the 12 labels of 'ann'"
    )
    assert "warning: consensus holds labelled examples, but state holds nothing" in (
        small.call("watch", "--once", "--interval", "0.1").stderr
    )


def test_a_lost_consensus_topic_is_refused(small: Small) -> None:
    with_labels(small)
    small.topics.lose("consensus")
    text = refusal(small)
    assert "consensus holds no labelled examples of 2 of 2 learners, and state says" in text
    assert "the labelled examples are nowhere else" in text
    assert "start over with other topics" in text
    assert small.wrong("recover", "--yes") == text


def test_a_consensus_topic_that_was_cut_is_refused(small: Small) -> None:
    with_labels(small, keys=("ann",))
    small.topics.lose("consensus", which=lambda r: r.offset < 3)
    assert "fewer labelled examples of 1 of 1 learner than state says" in refusal(small)
    small.done("recover", "--yes")  # with what is left
    assert n_learned(small, "ann") == N - 3
    with_labels(small, start=N, n=1, keys=("ann",))
    assert sequences(small, "ann") == list(range(4, N + 2))


def test_a_learner_whose_only_label_is_gone_without_a_trace_is_recovered(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was deleted while no worker ran, and the null was dropped before one read it."""
    monkeypatch.setattr(small, "topics", OpenTopics(1))
    with_labels(small, n=1, keys=("once",))
    with_labels(small)
    small.topics.lose("consensus", which=lambda r: (r.key or b"").startswith(b"once\x1f"))
    assert "fewer labelled examples of 1 of 3 learners" in refusal(small)
    small.done("recover", "--yes")
    assert (n_learned(small, "once"), n_learned(small, "ann")) == (0, N)
    with_labels(small, start=N, n=1, keys=("once",))
    assert sequences(small, "once") == [2]


def test_a_consensus_topic_that_lost_its_end_is_refused(small: Small) -> None:
    with_labels(small, keys=("ann",))
    small.topics.lose("consensus", which=lambda r: r.offset >= 9)
    assert "fewer labelled examples" in refusal(small)
    small.done("recover", "--yes")
    with_labels(small, start=N, n=1, keys=("ann",))
    assert sequences(small, "ann") == [*range(1, 10), N + 1]  # no number is given twice


def test_a_state_topic_that_lost_its_end_is_refused(small: Small) -> None:
    with_labels(small, keys=("ann",))
    n_records = len(small.records("state"))
    with_labels(small, start=N, keys=("ann",))
    small.topics.lose("state", which=lambda r: r.offset >= n_records)
    assert "consensus goes on after what state says of 1 of 1 learner" in refusal(small)


def test_a_state_topic_that_lost_its_beginning_is_refused(small: Small) -> None:
    with_labels(small)
    # Of each partition the record of the configuration.
    small.topics.lose("state", which=lambda r: r.offset < 1)
    assert "state has no record of the workers" in refusal(small)


def test_what_was_deleted_on_purpose_is_no_loss(small: Small) -> None:
    with_labels(small)
    with small.working():
        small.done("forget", "bob", "--yes")
    [first, second, *_] = [line for line in lines(small) if line.key == "ann"]
    take_out(small, first)
    small.work()  # which reads that
    take_out(small, second)  # no worker has read that when the next one starts
    assert n_learned(small, "ann") == N - 2


def take_out(small: Small, line: LabelledExample) -> None:
    key = state_records.consensus_key(line.key or "", line.event_id, line.revision)
    [partition] = {r.partition for r in small.records("consensus") if r.key == key}
    write(small.topics, Outgoing(topic="consensus", partition=partition, key=key, value=None))


def test_nothing_learned_is_no_loss(small: Small) -> None:
    small.put(small.event("e1"))
    small.work()
    small.topics.lose("consensus")
    small.work()


# --- what comes back


def test_recovered_learners_go_on_with_their_sequences(small: Small) -> None:
    with_labels(small)
    small.topics.lose("state")
    text = small.done("recover", "--yes")
    assert "comes back: 24 labelled examples" in text
    assert "cannot come back: open questions" in text
    assert text.splitlines()[-1] == (
        f"rebuilt the state of 2 learners in {len(partitions(small))} partition"
        f"{'s' * (len(partitions(small)) != 1)}; now start the workers"
    )
    with_labels(small, start=N, n=5)
    for key in ("ann", "bob"):
        assert sequences(small, key) == list(range(1, N + 6))
        assert n_learned(small, key) == N + 5
    (small.path / "new.toml").write_text("warm_up = 0\n")
    small.done("rebuild", "--learner", small.path / "new.toml")


def partitions(small: Small) -> set[int]:
    return {record.partition for record in small.records("consensus")}


def test_recovery_is_whole_after_corrections_and_withdrawals(small: Small) -> None:
    with_labels(small, keys=("ann",))
    correct(small, "e1", "bath", "a1")
    correct(small, "e2", None, "a2")
    small.work()
    before = lines(small)
    assert Counter(line.origin for line in before) == {
        "volunteered": N - 1,
        "revised": 1,
        "withdrawn": 1,
    }
    small.topics.lose("state")
    small.done("recover", "--yes")
    assert lines(small) == before
    assert n_learned(small, "ann") == N - 1
    # A label that came with its event can be corrected; no other one is known by name.
    correct(small, "e3", "bath", "a3")
    correct(small, "e1", "attic", "a4", supersedes="a1")
    small.work()
    last = lines(small)[-1]
    assert (last.event_id, last.y, last.revision, last.sequence) == ("e3", "bath", 1, N + 3)
    assert "answer 'a1' gave no label to event 'e1'" in reasons(small)[-1]


def correct(
    small: Small, event_id: str, y: str | None, name: str, supersedes: str | None = None
) -> None:
    small.put(
        Answer(
            answer_id=name,
            event_id=event_id,
            key="ann",
            y=y,
            declined=y is None,
            answered_at=small.sent_at + 1.0,
            supersedes=supersedes or event_id,
        )
    )


def reasons(small: Small) -> list[str]:
    return [dict(record.headers)["dlq.error"].decode() for record in small.records("dead-letters")]


def test_late_answers_and_events_known_already_become_dead_letters(small: Small) -> None:
    small.put(small.event("asked", x={"light": 0.4, "noise": 1.0}))
    with_labels(small, keys=("ann",))
    [question] = [m for m in small.said("requests") if isinstance(m, LabelRequest)]
    small.topics.lose("state")
    small.done("recover", "--yes")
    small.put(small.event("e1", y="hall"))
    small.answer(question, "hall")
    small.work()
    assert sequences(small, "ann") == list(range(1, N + 1))
    found = " ".join(reasons(small))
    assert "event 'e1' was seen before" in found
    assert "event 'asked' was never seen" in found


def test_only_what_is_broken_is_created_anew(small: Small) -> None:
    with_labels(small)
    small.topics.lose("state", which=lambda r: (r.key or b"").startswith(b"ann\x1f"))
    assert "state has no record of them" in refusal(small)
    before = [r.value for r in small.records("state") if r.key == b"bob\x1fhead"]
    small.done("recover", "--yes")
    assert [r.value for r in small.records("state") if r.key == b"bob\x1fhead"] == before
    assert (n_learned(small, "ann"), n_learned(small, "bob")) == (N, N)


def test_numbers_given_twice_are_given_anew_in_the_order_of_writing(small: Small) -> None:
    """As workers before this version did, which went on without state."""
    with_labels(small, keys=("ann",))
    first = lines(small)
    kept = [r for r in small.records("consensus") if r.value is not None]
    small.topics.lose("state", "consensus", "events")
    small.topics._groups.clear()  # or they would refuse today
    with_labels(small, start=N, n=5, keys=("ann",))
    logs = small.topics._logs
    for (name, number), records in logs._records.items():
        if name == "consensus":
            records[:0] = [r for r in kept if r.partition == number]
            for offset, record in enumerate(records):
                records[offset] = type(record)(
                    **{f: getattr(record, f) for f in record.__struct_fields__} | {"offset": offset}
                )
    assert sequences(small, "ann") == sorted([*range(1, N + 1), *range(1, 6)])
    assert "consensus has sequence numbers twice for 1 of 1 learner" in refusal(small)
    (small.path / "new.toml").write_text("warm_up = 0\n")
    assert "twice" in small.wrong("rebuild", "--learner", small.path / "new.toml")
    text = small.done("recover", "--yes")
    assert "5 lines of consensus whose number was given twice will be renumbered" in text
    assert sequences(small, "ann") == list(range(1, N + 6))
    assert [line for line in lines(small) if line.sequence <= N] == first
    in_order = [line.sequence for line in lines(small)]  # as the broker keeps them
    assert in_order == sorted(in_order)
    assert n_learned(small, "ann") == N + 5


def test_one_learner_for_all_is_recovered(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small, "topics", OpenTopics(1))
    small.add("[worker]\nkeyed = false\n")
    small.put(*(small.event(f"{key}-{i}", key, y="hall") for key in ("ann", "bob") for i in (1, 2)))
    small.work()
    small.topics.lose("state")
    refusal(small)
    small.done("recover", "--yes")
    assert n_learned(small, "ann") == 4
    assert sorted(line.sequence for line in lines(small)) == [1, 2, 3, 4]


# --- who is in quarantine


def heads(small: Small) -> dict[bytes | None, dict[str, Any]]:
    """Return the newest head of each learner."""
    newest = {r.key: r.value for r in small.records("state") if parts_of(r.key)[-1] == HEAD}
    return {
        key: state_records.value_of(parts_of(key)[0], HEAD, value)
        for key, value in newest.items()
        if value is not None
    }


def with_quarantine(small: Small) -> Quarantine:
    """Let the lies of an annotator be found out; return what is known of the quarantine."""
    answers = []
    for n in range(90):
        given, by, y = told(n)
        small.put(replace(given, key="k1"))
        answers.append(word(f"a{n}", n, by, y))
    small.put(*answers)
    small.work()
    known = quarantine(small)
    assert known.names == ("eve",)
    return known


def test_check_and_watch_name_who_is_in_quarantine(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check() -> str:
        found = checking.findings(small.config_file, broker=None, timeout_s=60.0)
        return "\n".join(f"{each.verdict} {each.what}: {each.text}" for each in found)

    monkeypatch.setattr(checking, "open_topics", lambda _: small.topics)
    with_quarantine(small)
    found = check()
    assert "warning quarantine: answers of eve in 1 key are not learned" in found
    assert "wrong" not in found
    assert "in quarantine  eve in 1 key: answers are not learned" in small.done("watch", "--once")
    small.add('[people]\ntrusted = ["eve"]\n')
    assert "quarantine" not in check() + small.done("watch", "--once")


def word(name: str, n: int, by: str, y: str) -> Answer:
    return Answer(
        answer_id=name, event_id=f"e{n}", key="k1", y=y, annotator=by, answered_at=float(n)
    )


def quarantine(small: Small) -> Quarantine:
    [head] = heads(small).values()
    return Quarantine.of(head.get("quarantine", {}))


def lose_letters(small: Small) -> None:
    small.topics.lose("dead-letters")


def lose_retractions(small: Small) -> None:
    small.topics.lose("state", which=lambda r: b"\x1fretracted/" in (r.key or b""))


def test_quarantine_is_restored_bitwise_from_whatever_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for losses in ((lose_state,), (lose_heads, lose_letters), (lose_heads, lose_retractions)):
        path = tmp_path / str(len(found))
        path.mkdir()
        small = Small(path, monkeypatch, n_partitions=1)
        with_quarantine(small)
        for each in losses:
            each(small)
        assert "in quarantine: 'eve' in 1 learner\n" in small.done("recover", "--yes")
        assert quarantine(small).names == ("eve",)
        recovered = heads(small)
        small.put(small.event("later", "k1", x=told(0)[0].x), word("lie", 0, "eve", "bath"))
        small.work()
        assert "annotator 'eve' is in quarantine" in reasons(small)[-1]
        assert not [line for line in lines(small) if line.annotator == "eve"]
        found.append((recovered, heads(small)))
    assert found[0] == found[1] == found[2]


def lose_state(small: Small) -> None:
    small.topics.lose("state")


def test_a_quarantine_whose_head_is_there_stays_as_it_is(small: Small) -> None:
    before = with_quarantine(small)
    small.topics.lose("consensus", which=lambda r: r.offset < 3)
    lose_letters(small)
    lose_retractions(small)
    small.done("recover", "--yes")
    assert quarantine(small) == before


def test_answers_refused_before_a_learner_was_forgotten_put_none_in_quarantine(
    small: Small,
) -> None:
    with_quarantine(small)
    with small.working():
        small.done("forget", "k1", "--yes")
    with_labels(small, keys=("k1",))
    small.topics.lose("state")
    assert "in quarantine" not in small.done("recover", "--yes").partition("cannot come back")[2]
    assert quarantine(small) == Quarantine()


def test_an_annotator_who_is_trusted_by_now_is_not_reported(small: Small) -> None:
    with_quarantine(small)
    small.topics.lose("state")
    small.add('[people]\ntrusted = ["eve"]\n')
    assert "'eve'" not in small.done("recover", "--yes")


# --- both topics lost


def test_both_topics_lost_are_refused_and_begin_with_nothing_once_that_is_agreed(
    small: Small,
) -> None:
    with_labels(small)
    small.topics.make_again("state", "consensus")
    small.put(small.event("late", y="hall"))
    text = refusal(small)
    assert "state and consensus hold nothing, and the group has processed events before" in text
    assert "or a program that is no worker has read in the group" in text
    assert "`streamgp restore`" in text
    assert small.records("state", "consensus") == []
    said = small.done("recover", "--yes")
    assert "1 partition will begin with nothing" in said
    with_labels(small, start=N, n=2)
    assert sequences(small, "bob") == [1, 2]
    assert "nothing is lost" in small.wrong("recover", "--yes")


def test_a_partition_that_has_seen_dead_letters_alone_has_lost_nothing(small: Small) -> None:
    small.put_bytes("events", "ann", b"{")
    small.work()
    small.put(small.event("e1", y="hall"))
    small.work()
    assert sequences(small, "ann") == [1]


def test_a_group_whose_positions_were_set_back_learns_nothing_twice(small: Small) -> None:
    with_labels(small)
    before = lines(small)
    [group] = small.topics._groups.values()
    group.positions.update(dict.fromkeys(group.positions, 0))
    small.work()
    assert lines(small) == before
    assert len(small.records("dead-letters")) == 2 * N


# --- when it does not


def test_whole_topics_are_not_recovered(small: Small) -> None:
    assert "nothing to recover" in small.wrong("recover", "--yes")
    with_labels(small)
    before = small.records("state", "consensus")
    assert small.wrong("recover", "--yes") == (
        "state and consensus belong together, and nothing is lost; there is nothing to recover"
    )
    assert small.records("state", "consensus") == before


def test_nothing_is_recovered_unless_the_user_confirms(small: Small) -> None:
    with_labels(small)
    small.topics.lose("state")
    before = small.records("state", "consensus")
    text = small.done("recover", answer="n\n")
    assert text.startswith("partition 0: consensus holds labelled examples, and state has no")
    assert "rebuild the state of 2 learners?" in text
    assert text.endswith("changed nothing\n")
    assert small.records("state", "consensus") == before


def test_nothing_is_recovered_for_another_group_or_configuration(small: Small) -> None:
    with_labels(small)
    small.topics.lose("state")
    text = small.config_file.read_text()
    small.config_file.write_text(text + '[worker]\ngroup = "rooms"\n')
    assert "writes what it learns into the same topics" in small.wrong("recover", "--yes")
    small.config_file.write_text(text)
    small.done("recover", "--yes")
    small.topics.lose("state", which=lambda r: (r.key or b"").startswith(b"ann\x1f"))
    small.config_file.write_text("seed = 7\n" + text)
    assert "was processed with another configuration" in small.wrong("recover", "--yes")


def test_nothing_is_recovered_while_a_worker_runs(small: Small) -> None:
    with small.working():
        assert "1 worker of group streamgp still running" in small.wrong("recover", "--yes")


@pytest.mark.parametrize("n_written", [1, 3, 5])
def test_an_interrupted_recovery_stops_all_workers_until_it_is_repeated(
    small: Small, monkeypatch: pytest.MonkeyPatch, n_written: int
) -> None:
    with_labels(small)
    small.topics.lose("state")
    cut = Cut(small.topics.writer, n_written)
    with monkeypatch.context() as patched:
        patched.setattr(small.topics, "writer", cut)
        result = small.call("recover", "--yes")
    if n_written < 5:  # of the five that it writes
        assert (result.exit_code, result.stderr) == (75, "Error: broker is gone\n")
        assert "run it again" in refusal(small) or "no record of the workers" in refusal(small)
        small.done("recover", "--yes")
    assert (n_learned(small, "ann"), n_learned(small, "bob")) == (N, N)
    assert sequences(small, "ann") == list(range(1, N + 1))


def fingerprinted(small: Small, value: dict[str, Any]) -> None:
    """Let a client write what no worker says of who works on each partition."""
    for partition in {record.partition for record in small.records("state")}:
        record = state_records.state("", state_records.CONFIGURATION, value, partition)
        write(small.topics, record)


def test_an_interrupted_recovery_of_windows_can_be_repeated(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.add('[windows]\nlength_s = 10\nfeatures = ["mean"]\n')
    small.put(*(small.event(f"e{at}", occurred_at=at, y=LABELS[at > 20]) for at in range(41)))
    small.work()
    lose_heads(small)
    with monkeypatch.context() as patched:
        patched.setattr(small.topics, "writer", Cut(small.topics.writer, 2))
        small.call("recover", "--yes")
    assert "`streamgp recover` was interrupted; run it again" in refusal(small)
    small.done("recover", "--yes")
    small.put(small.event("late", occurred_at=50.0))
    small.work()
    last = [m for m in small.said("predictions") if isinstance(m, Prediction)][-1]
    assert (last.event_id, last.n_learned) == ("ann@40", 4)


def test_an_interrupted_recovery_is_reported_even_with_a_local_snapshot(small: Small) -> None:
    with StateDirectory(small.path / "local") as local:
        with_labels(small)
        small.put(small.event("more", "ann"))
        small.work(state=local)
        fingerprinted(small, {"fingerprint": BEING_RECOVERED, "keyed": True, "group": "streamgp"})
        with pytest.raises(
            LostRecordsError, match="`streamgp recover` was interrupted; run it again"
        ):
            small.work(state=local)


def test_a_snapshot_from_before_a_recovery_is_not_used(
    small: Small, caplog: pytest.LogCaptureFixture
) -> None:
    with StateDirectory(small.path / "local") as local:
        with_labels(small)
        small.put(*(small.event("asked", key) for key in ("ann", "bob")))
        small.work(state=local)
        old = {n: local.read(f"partition-{n}.snapshot") for n in partitions(small)}
        lose_heads(small)
        refusal(small)
        small.done("recover", "--yes")
        for n, data in old.items():
            assert data is not None
            local.write(f"partition-{n}.snapshot", data)
        caplog.clear()
        small.work(state=local)
    assert any("state was rebuilt since" in str(vars(record)) for record in caplog.records)


def lose_heads(small: Small) -> None:
    small.topics.lose("state", which=lambda r: (r.key or b"").endswith(b"\x1fhead"))


def test_a_foreign_configuration_is_reported(small: Small) -> None:
    with_labels(small)
    fingerprinted(small, {"colour": "red"})
    (small.path / "new.toml").write_text("warm_up = 0\n")
    assert "processed with another configuration" in small.wrong("recover", "--yes")
    small.call("rebuild", "--learner", small.path / "new.toml")
    assert "note: the workers did not learn with the settings of" in (
        small.call("rebuild", "--learner", small.path / "new.toml").stderr
    )


@pytest.fixture
def in_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    """A deployment whose topics are in a directory, with labels of ann."""
    small = Small(tmp_path, monkeypatch)
    monkeypatch.undo()
    config = small.config_file
    config.write_text(config.read_text().replace("kafka://nowhere", f"file://{tmp_path}/topics"))
    with directory_of_topics(small):
        small.topics.create()
        with_labels(small, keys=("ann",))
    return small


def test_a_directory_of_topics_is_recovered(in_directory: Small) -> None:
    small = in_directory
    with directory_of_topics(small):
        link = small.topics.client(group="streamgp", instance="hand", max_records=1)
        link.commit([state_records.state("ann", "head", None, 0)])
        link.close()
        assert "state has no record of them" in refusal(small)
    small.done("recover", "--yes")
    with directory_of_topics(small):
        with_labels(small, start=N, n=2, keys=("ann",))
        assert sequences(small, "ann") == list(range(1, N + 3))
        assert small.records("dead-letters") == []


@contextmanager
def directory_of_topics(small: Small) -> Iterator[None]:
    with closing(EmbeddedTopics(small.path / "topics")) as topics:
        small.topics = topics  # type: ignore[assignment]
        yield


def test_a_directory_that_has_lost_its_database_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Small(tmp_path, monkeypatch)
    with directory_of_topics(small):
        small.topics.create()
        with_labels(small, keys=("ann",))
    (tmp_path / "topics" / "topics.db").unlink()
    match = "topics.db is not there; make the topics with --create-topics"
    with directory_of_topics(small), pytest.raises(RefusedError, match=match):
        small.work()


def test_what_is_deleted_after_a_recovery_of_a_log_without_its_end_is_taken_back(
    small: Small,
) -> None:
    with_labels(small)
    [partition] = {r.partition for r in small.records("consensus") if r.key[:4] == b"ann\x1f"}
    forgotten = {"n": 1, "heeded": 1000}  # that many records were there
    write(small.topics, state_records.state("", FORGOTTEN, forgotten, partition))
    last = small.records("consensus")[-1].offset
    small.topics.lose("consensus", which=lambda r: r.offset >= last)
    small.done("recover", "--yes")
    n = n_learned(small, "ann")
    key = b"ann\x1fe1\x1f0"
    write(small.topics, Outgoing(topic="consensus", partition=partition, key=key, value=None))
    assert n_learned(small, "ann") == n - 1


# --- records that no worker can have written


def overwrite(small: Small, topic: TopicName, key: bytes, value: bytes | None = b"?") -> str:
    """Let another program write into the partition of `ann`; return the record's place."""
    [partition] = {r.partition for r in small.records("consensus") if r.key[:4] == b"ann\x1f"}
    write(small.topics, Outgoing(topic=topic, partition=partition, key=key, value=value))
    return f"{topic}:{partition}:{small.records(topic)[-1].offset}"


def newest(small: Small, topic: TopicName) -> dict[bytes | None, bytes | None]:
    return {record.key: record.value for record in small.records(topic)}


@pytest.mark.parametrize("with_disk", [False, True])
def test_a_learner_whose_head_was_overwritten_is_recovered(small: Small, with_disk: bool) -> None:
    with StateDirectory(small.path / "local") as local:
        with_labels(small)
        small.put(small.event("asked", "ann"))
        small.work(state=local if with_disk else None)
        place = overwrite(small, "state", b"ann\x1fhead")
        for refused in (refusal(small), small.wrong("backup", small.path / "monday")):
            assert f"{place} is nothing that this streamgp writes: JSON is malformed" in refused
            assert "stop all workers and remove it with `streamgp recover`" in refused
        text = small.done("recover", answer="y\n")
        assert f"{place} is nothing that this streamgp writes: JSON" in text
        assert "remove 1 record and rebuild the state of 1 learner?" in text
        assert text.endswith(
            "removed 1 record; rebuilt the state of 1 learner in 1 partition; "
            "now start the workers\n"
        )
        small.put(small.event("next", "ann"))
        small.work(state=local if with_disk else None)
    assert (n_learned(small, "ann"), n_learned(small, "bob")) == (N, N)
    assert sequences(small, "ann") == list(range(1, N + 1))


def test_an_overwritten_label_is_withdrawn_and_its_learner_keeps_the_rest(small: Small) -> None:
    with_labels(small)
    small.put(small.event("asked", "ann"))
    small.work()
    place = overwrite(small, "consensus", b"ann\x1fe3\x1f0")
    assert place in refusal(small)
    text = small.done("recover", "--yes")
    assert f"{place} is nothing that this streamgp writes" in text
    assert "rebuil" not in text
    assert text.endswith("removed 1 record; now start the workers\n")
    [asked] = [m for m in small.said("requests") if m.event_id == "asked"]
    small.answer(asked, "hall")  # type: ignore[arg-type]
    small.work()
    assert n_learned(small, "ann") == N
    in_force = {line.event_id for line in lines(small) if line.key == "ann" and line.y}
    assert {"e2", "e3", "asked"} - in_force == {"e3"}


def test_a_record_under_a_key_of_no_streamgp_stops_nothing_and_can_be_removed(
    small: Small, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "open_topics", lambda _: small.topics)
    with_labels(small)
    place = overwrite(small, "state", b"billing-7")
    caplog.clear()
    small.work()
    [line] = [record for record in caplog.records if record.message == "foreign-records"]
    _, partition, offset = place.split(":")
    assert line.fields["partition"] == int(partition)  # type: ignore[attr-defined]
    assert line.fields["offsets"] == [int(offset)]  # type: ignore[attr-defined]
    checked = checking.findings(small.config_file, broker=None, timeout_s=60.0)
    assert [f.text for f in checked if f.verdict == "warning" and place in f.text] == [
        f"{place} has a key of no streamgp, and is left out: another program has written it; take "
        "away its right to, and remove the record with `streamgp recover`"
    ]
    assert "backed up" in small.done("backup", small.path / "monday")
    kept = b"".join(path.read_bytes() for path in (small.path / "monday").iterdir())
    assert b"billing" not in kept
    before = newest(small, "state")
    text = small.done("recover", answer="y\n")
    assert "its key must not be b'billing-7'" in text
    assert "remove 1 record?" in text
    assert newest(small, "state") == {**before, b"billing-7": None}
    assert "nothing to recover" in small.wrong("recover", "--yes")


def test_a_record_of_another_program_with_a_source_does_not_hinder_recovery(small: Small) -> None:
    with_labels(small)
    headers = (("ce_source", b"/billing"), ("ce_type", b"invoice"))
    small.put_bytes("consensus", "ann", b"{}", headers)
    small.topics.lose("state")
    small.done("recover", "--yes")
    assert n_learned(small, "ann") == N


@pytest.mark.parametrize("n_written", range(5))
def test_an_interrupted_removal_is_repeated(
    small: Small, monkeypatch: pytest.MonkeyPatch, n_written: int
) -> None:
    with_labels(small)
    overwrite(small, "state", b"ann\x1fhead")
    cut = Cut(small.topics.writer, n_written)
    with monkeypatch.context() as patched:
        patched.setattr(small.topics, "writer", cut)
        assert small.call("recover", "--yes").exit_code == 75
    refusal(small)
    small.done("recover", "--yes")
    assert (n_learned(small, "ann"), n_learned(small, "bob")) == (N, N)


@pytest.mark.parametrize("key", [b"\x1fconfiguration", b"\x1fforgotten"])
def test_an_overwritten_record_of_the_partition_is_written_anew(small: Small, key: bytes) -> None:
    with_labels(small)
    place = overwrite(small, "state", key)
    assert place in refusal(small)
    small.done("recover", "--yes")
    assert newest(small, "state")[key]
    assert (n_learned(small, "ann"), n_learned(small, "bob")) == (N, N)


def test_a_waiting_answer_that_cannot_be_read_is_removed(small: Small) -> None:
    with_labels(small)
    key = b"ann\x1fearly/1"
    value = b'{"type":"state","version":1,"key":"ann","name":"early/1","value":{}}'
    overwrite(small, "state", key, value)
    flaw = "state 'early/1' of 'ann' is no answer that waits: its name must be early/answers:"
    assert flaw in refusal(small)
    assert flaw in small.done("recover", "--yes")
    assert newest(small, "state")[key] is None
    assert (n_learned(small, "ann"), n_learned(small, "bob")) == (N, N)


@pytest.mark.parametrize(
    ("name", "value", "flaw"),
    [
        ("forgotten", {"heeded": "a"}, "state 'forgotten' is nothing that this streamgp writes"),
        ("forgotten", [1], "state 'forgotten' is nothing that this streamgp writes"),
        ("budget", {"left": 1}, "published budget cannot be taken up"),
    ],
)
def test_a_record_of_the_partition_with_a_wrong_value_is_removed(
    small: Small, name: str, value: Any, flaw: str
) -> None:
    small.add('[total_budget]\nrule = "at_most"\nn = 1000\n')
    with_labels(small)
    overwrite(
        small, "state", b"\x1f" + name.encode(), state_records.state("", name, value, 0).value
    )
    assert flaw in refusal(small)
    assert flaw in small.done("recover", "--yes")
    assert (n_learned(small, "ann"), n_learned(small, "bob")) == (N, N)


def of_window(part: str, **value: Any) -> tuple[str, bytes | None]:
    return part, state_records.state("ann", f"windows/ann/{part}", value, 0).value


HEAD_OF_ROWS = {"seen_at": None, "held": None, "numbers": [], "texts": []}


@pytest.mark.parametrize(
    ("part", "value", "left"),
    [
        # Without what the head tells, no row of the key is of use.
        (*of_window("head"), []),
        (*of_window("head", bounds=["a", 1, 2, 3], **HEAD_OF_ROWS), []),
        ("head", b"?", []),
        (*of_window("11"), [10, 12]),
        (*of_window("11", times=[0, 1], labels=["hall"], columns={}), [10, 12]),
        (*of_window("x"), [10, 11, 12]),
    ],
)
def test_rows_of_open_windows_that_cannot_be_read_are_removed(
    small: Small, part: str, value: bytes | None, left: list[int]
) -> None:
    small.add('[windows]\nlength_s = 10\nfeatures = ["mean"]\n')
    for at in range(13):
        small.put(small.event(f"e{at}", x={"v": float(at)}, occurred_at=at, y=LABELS[0]))
    small.work()
    overwrite(small, "state", f"ann\x1fwindows/ann/{part}".encode(), value)
    refusal(small)
    text = small.done("recover", "--yes")
    assert text.count("open windows of 'ann' cannot be taken over") == 1
    small.work()
    small.put(small.event("next", x={"v": 0.0}, occurred_at=20.0))
    small.work()
    found = [line.x["v.mean"] for line in lines(small) if line.event_id == "ann@10"]
    assert found == ([sum(left) / len(left)] if left else [])


def test_rows_of_open_windows_that_are_not_at_the_place_of_their_key_are_passed_over(
    small: Small,
) -> None:
    small.add('[windows]\nlength_s = 10\nfeatures = ["mean"]\n')
    small.put(*(small.event(f"e{at}", x={"v": 1.0}, occurred_at=at, y="hall") for at in (0, 10)))
    small.work()
    overwrite(small, "state", b"\x1fwindows/ann/head", of_window("head")[1])
    small.put(small.event("next", x={"v": 1.0}, occurred_at=20.0))
    small.work()
    assert [line.event_id for line in lines(small)] == ["ann@0", "ann@10"]


def test_forget_names_an_overwritten_configuration(small: Small) -> None:
    with_labels(small)
    place = overwrite(small, "state", b"\x1fconfiguration")
    assert f"{place} is nothing that this streamgp writes" in small.wrong("forget", "ann", "--yes")


def test_a_foreign_record_in_a_directory_is_removed(in_directory: Small) -> None:
    small = in_directory
    with directory_of_topics(small):
        link = small.topics.client(group="streamgp", instance="hand", max_records=1)
        keys: list[tuple[TopicName, bytes]] = [("state", b"p1"), ("consensus", b"ann\x1fe3\x1f0")]
        link.commit(
            [Outgoing(topic=topic, partition=0, key=key, value=b"?") for topic, key in keys]
        )
        link.close()
    assert "removed 2 records" in small.done("recover", "--yes")
    with directory_of_topics(small):
        with_labels(small, start=N, n=2, keys=("ann",))
        assert sequences(small, "ann") == [1, 2, 3, *range(5, N + 3)]
        assert small.records("dead-letters") == []
