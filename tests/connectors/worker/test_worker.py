"""The worker over topics in memory: what it writes, and that crashes change nothing of it."""

import itertools
import json
import logging
from collections import Counter, deque
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.memory import MemoryTopics, MemoryWorkerClient
from connectors.storage.snapshots import StateDirectory, StateError
from connectors.topics import BrokerError, OffsetReset, Outgoing
from connectors.wire.codec import decode, encode
from connectors.wire.outbound import Outbound, letter_of
from connectors.worker import logging as worker_log
from connectors.worker import recovery
from connectors.worker.compatibility import ChangedConfigurationError, UnfitTopicsError
from connectors.worker.partition import MAX_AGE_S, Partition
from connectors.worker.settings import (
    WINDOW,
    LoopSettings,
    TooManyBadError,
    WorkerSettings,
    check_share,
)
from connectors.worker.worker import Session
from streamgp import isgp
from streamgp.interactive import KeyedLoops
from streamgp.interactive.messages import (
    Challenge,
    LabelledExample,
    LabelRequest,
    Prediction,
)
from streamgp.interactive.people import People
from streamgp.interactive.state.snapshot import Snapshot, SnapshotError
from tests.helpers.laws import examples
from tests.helpers.topics import everything, said, write
from tests.helpers.workbench import (
    GROUP,
    Failing,
    answer,
    contents,
    event,
    idle,
    newest,
    put,
    raw,
    work,
    worker,
)

# --- outputs


def test_an_event_comes_out_as_a_prediction_and_a_question_in_its_own_partition():
    topics = MemoryTopics(n_partitions=3)
    put(topics, event(1), event(2, key="bob"))
    work(topics)
    home = {r.key: r.partition for r in everything(topics, "events")}
    out = everything(topics, "predictions", "requests")
    assert Counter(type(decode(r.value)) for r in out) == {Prediction: 2, LabelRequest: 2}
    assert all(home[r.key] == r.partition for r in out)


def test_an_answer_is_learned_under_a_key_of_its_own():
    topics = MemoryTopics()
    put(topics, event(1))
    work(topics)
    put(topics, answer(1))
    work(topics)
    (record,) = everything(topics, "consensus")
    assert record.key == b"ann\x1fe1\x1f0"
    assert decode(record.value).y == "home"


def test_the_state_is_written_with_every_batch_and_only_what_changed():
    topics = MemoryTopics()
    put(topics, event(1), event(2, key="bob"))
    work(topics)
    put(topics, event(3))
    work(topics)
    keys = [r.key for r in everything(topics, "state")]
    assert keys == [b"\x1fconfiguration", b"ann\x1fhead", b"bob\x1fhead", b"ann\x1fhead"]


def test_nothing_is_written_when_nothing_happens():
    topics = MemoryTopics()
    turns = iter(range(5))
    worker(topics).run(lambda: next(turns) == 4)
    assert everything(topics, *("predictions", "state", "consensus")) == []


def test_an_unkeyed_worker_has_one_loop_for_all_keys():
    topics = MemoryTopics()
    put(topics, event(1, y="home"), event(2, key="bob"))
    work(topics, keyed=False)
    first, second = said(topics, "predictions")
    assert (first.n_learned, second.n_learned, second.y) == (0, 1, "home")
    assert {r.key.split(b"\x1f")[0] for r in everything(topics, "state")} == {b""}


def test_a_learner_that_cannot_be_made_ends_the_worker_with_the_first_input_of_its_key(tmp_path):
    topics = MemoryTopics(1)
    put(topics, event(1, y="home"), event(2, key="bob", y="home"))
    work(topics)
    record = newest(topics, "state")[b"ann\x1fhead"]
    raw(topics, "state", key=b"ann\x1fhead", value=record.replace(b'"in_use"', b'"elsewhere"'))
    put(topics, event(3, key="bob"))
    work(topics)
    with StateDirectory(tmp_path) as state:
        put(topics, event(4))
        what = "partition 0: snapshot cannot be restored: .*; if a later version .*streamgp recover"
        with pytest.raises(UnfitTopicsError, match=what) as caught:
            work(topics, state=state)
        assert isinstance(caught.value.__cause__, SnapshotError)
        assert not state.file("partition-0.snapshot").exists()


def test_an_unkeyed_worker_refuses_several_partitions():
    with pytest.raises(UnfitTopicsError, match="one learner for all keys needs one part"):
        work(MemoryTopics(n_partitions=2), keyed=False)


# --- time


def test_a_question_that_nobody_answers_expires_by_the_clock():
    topics = MemoryTopics()
    put(topics, event(1, at=100.0))
    now = [100.0]

    def stop():
        now[0] += 1.0
        return now[0] > 112.0

    worker(topics, expires_after_s=10.0, clock=lambda: now[0]).run(stop)
    kinds = [type(m).__name__ for m in said(topics, "requests")]
    assert kinds == ["LabelRequest", "Expired"]


# --- bad input


@pytest.mark.parametrize(
    ("value", "stage"),
    [
        (b"\xff\xfe", b"decode"),
        (b"{", b"decode"),
        (b'{"x": {"light": NaN}}', b"decode"),
        (b'{"x": {"light": 1e999}}', b"decode"),
        (b"[1]", b"decode"),
        (b'{"y": 1}', b"decode"),
    ],
)
def test_what_cannot_be_read_becomes_a_dead_letter_with_its_bytes(value, stage):
    topics = MemoryTopics()
    put(topics, event(1))
    raw(topics, value=value, headers=[("trace", b"7")])
    put(topics, event(2))
    work(topics)
    (letter,) = everything(topics, "dead-letters")
    assert (letter.key, letter.value) == (b"ann", value)
    headers = dict(letter.headers)
    assert (headers["trace"], headers["dlq.stage"], headers["dlq.offset"]) == (b"7", stage, b"1")
    assert len(said(topics, "predictions")) == 2


def test_an_answer_to_a_request_that_was_never_made_is_a_dead_letter_and_a_repeated_one_is_not():
    topics = MemoryTopics()
    put(topics, event(1))
    work(topics)
    put(topics, replace(answer(9), request_id="e9/label"), answer(1), answer(1))
    work(topics)
    (letter,) = everything(topics, "dead-letters")
    assert dict(letter.headers)["dlq.stage"] == b"correlate"
    assert len(said(topics, "consensus")) == 1


@pytest.mark.parametrize(("n", "text"), [(0, "0%"), (10, "1%"), (500, "50%"), (999, "100%")])
def test_inputs_are_too_bad_beyond_the_share_of_the_last_thousand(n, text):
    recent = deque([True] * 7, maxlen=WINDOW)
    check_share(recent, [False] * (WINDOW - 8), n / WINDOW)  # not a thousand yet
    check_share(recent, [True] * n + [False] * (WINDOW - n), n / WINDOW)
    message = f"^{n + 1} of the last 1000 inputs could not be used, expected at most {text}; look"
    with pytest.raises(TooManyBadError, match=message):
        check_share(recent, [False] * (WINDOW - n - 1) + [True] * (n + 1), n / WINDOW)


def test_too_many_bad_inputs_end_the_worker_after_they_are_dead_letters():
    topics = MemoryTopics()
    for i in range(1000):
        raw(topics, value=b"%d" % i)
    with pytest.raises(TooManyBadError, match="1000 of the last 1000 inputs could not be used"):
        work(topics)
    assert len(everything(topics, "dead-letters")) == 1000
    work(topics)  # and it goes on where it ended
    assert len(everything(topics, "dead-letters")) == 1000


def test_answers_to_ended_requests_are_dead_letters_but_do_not_end_the_worker():
    topics = MemoryTopics()
    put(topics, event(1))
    work(topics)
    put(topics, answer(1), *(replace(answer(1), answer_id=f"slow-{n}") for n in range(1000)))
    work(topics)
    assert len(everything(topics, "dead-letters")) == 1000
    assert len(said(topics, "consensus")) == 1


class _Explosive(type(isgp())):
    """A learner with a fault of its own."""

    error: Exception = ZeroDivisionError("a fault")

    def predict_proba_one(self, x, **options):
        if x.get("light") == 13.0:
            raise self.error
        return super().predict_proba_one(x, **options)


class _Exhausted(_Explosive):
    error = MemoryError("none left")


def test_an_input_over_which_a_learner_raises_is_a_dead_letter_and_the_next_one_is_predicted():
    topics = MemoryTopics()
    model = _Explosive(isgp(seed=1).model, seed=1)
    put(topics, event(1), event(2, x={"light": 13.0}), event(3))
    work(topics, model=model)
    assert [m.event_id for m in said(topics, "predictions")] == ["e1", "e3"]
    [letter] = everything(topics, "dead-letters")
    found = letter_of(letter)
    assert (found.stage, found.error) == ("predict", "ZeroDivisionError: a fault")
    assert found.cause.offset == 1
    assert letter.value == everything(topics, "events")[1].value
    assert sum(topics.lags(GROUP).values()) == 0


class _WordlessError(Exception):
    def __str__(self):
        raise ValueError("no words")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (_WordlessError(), "_WordlessError: its text cannot be read"),
        (
            RuntimeError("half \ud800 a pair\nand \x1b[2J"),
            "RuntimeError: half \\ud800 a pair\\nand ",
        ),
        (RuntimeError("x" * 10**6), "RuntimeError: xxx"),
        (ExceptionGroup("several", [ValueError("a"), KeyError("b")]), "ExceptionGroup: several"),
        (StopIteration(), "StopIteration: "),
    ],
)
def test_an_error_is_reported_whatever_its_text_is_also_where_a_timer_brings_it_about(error, told):
    class Faulty(type(isgp())):
        def query_one(self, x, **options):
            if x["light"] == 13.0:
                raise error
            return super().query_one(x, **options)

        def note_unanswered(self, _now, **_options):
            raise error

    topics, now = MemoryTopics(), [0.0]
    settings = {"model": Faulty(isgp().model, seed=1), "expires_after_s": 5.0}
    put(topics, event(1), event(2, x={"light": 13.0}))
    work(topics, clock=lambda: now[0], **settings)
    now[0] = 30.0
    put(topics, event(3, at=30.0))
    work(topics, clock=lambda: now[0], **settings)
    assert [m.event_id for m in said(topics, "predictions")] == ["e1", "e3"]
    letters = [letter_of(record) for record in everything(topics, "dead-letters")]
    assert [letter.cause and letter.cause.offset for letter in letters] == [1, None]
    assert all(letter.error.startswith(told) for letter in letters)


def test_a_late_answer_is_no_dead_letter_because_the_learner_failed_at_the_expiry():
    class Faulty(type(isgp())):
        def note_unanswered(self, _now, **_options):
            raise ZeroDivisionError("a fault")

    topics, now = MemoryTopics(), [0.0]
    settings = {"model": Faulty(isgp().model, seed=1), "expires_after_s": 5.0}
    put(topics, event(1))
    work(topics, clock=lambda: now[0], **settings)
    now[0] = 30.0
    put(topics, answer(1, at=30.0))
    work(topics, clock=lambda: now[0], **settings)
    assert [(line.event_id, line.late) for line in said(topics, "consensus")] == [("e1", True)]
    [letter] = map(letter_of, everything(topics, "dead-letters"))
    assert (letter.cause, letter.error) == (None, "ZeroDivisionError: a fault")


def test_an_input_whose_messages_cannot_be_written_is_undone(monkeypatch):
    topics, calm = MemoryTopics(), MemoryTopics()
    written = Outbound.message

    def message(self, said, partition):
        if getattr(said, "event_id", None) == "e2":
            raise ValueError("message must have at most 16777216 bytes, got more")
        return written(self, said, partition)

    put(topics, event(1), event(2), event(3))
    put(calm, event(1), event(3))
    with monkeypatch.context() as patch:
        patch.setattr(Outbound, "message", message)
        work(topics)
    work(calm)
    [letter] = everything(topics, "dead-letters")
    assert letter_of(letter).stage == "encode"
    assert said(topics, "predictions") == said(calm, "predictions")


def test_that_no_memory_is_left_ends_the_worker_with_nothing_committed():
    topics = MemoryTopics()
    model = _Exhausted(isgp(seed=1).model, seed=1)
    put(topics, event(1), event(2, x={"light": 13.0}))
    with pytest.raises(MemoryError):
        work(topics, model=model)
    assert everything(topics, "predictions", "state", "dead-letters") == []
    assert sum(topics.lags(GROUP).values()) == 2


# --- restarts


scripts = st.lists(
    st.one_of(
        st.tuples(st.just("event"), st.integers(0, 30), st.sampled_from("ab"), st.booleans()),
        st.tuples(st.just("answer"), st.integers(0, 30), st.sampled_from("ab"), st.booleans()),
        st.tuples(st.just("garbage"), st.integers(0, 30), st.sampled_from("ab"), st.booleans()),
    ),
    min_size=1,
    max_size=25,
)


def play(topics, script, chunk, **kw):
    for start in range(0, len(script), chunk):
        for kind, i, key, flag in script[start : start + chunk]:
            if kind == "event":
                put(topics, event(i, key=key, y="home" if flag else None))
            elif kind == "answer":
                put(topics, answer(i, "home" if flag else "work", key=key))
            else:
                raw(topics, key=key.encode(), value=b"garbage %d" % i)
        while not idle(topics)():
            try:
                work(topics, batch=3, **kw)
            except BrokerError:
                continue


@examples(40)
@given(
    scripts,
    st.integers(1, 10),
    st.lists(st.sampled_from([None, "before", "after"]), max_size=12),
    st.sampled_from([None, 1]),
)
def test_crashes_around_commits_change_nothing_that_is_committed(script, chunk, fails, max_keys):
    calm, rough = MemoryTopics(n_partitions=2), Failing(fails, n_partitions=2)
    play(calm, script, chunk)
    play(rough, script, chunk, max_keys=max_keys)
    assert contents(rough) == contents(calm)


def test_the_worker_says_what_the_loops_say():
    topics = MemoryTopics(n_partitions=2)
    loops = KeyedLoops(isgp(seed=1))
    inputs = [event(i, key="ab"[i % 2], y="work" if i < 4 else None) for i in range(20)]
    expected = [m for one in inputs for m in loops.on_event(one, one.occurred_at)]
    for one in inputs:
        put(topics, one)
        work(topics, batch=2)
    for key in "ab":
        mine = [m for m in said(topics, "predictions", "consensus") if m.key == key]
        for kind in (Prediction, LabelledExample):
            assert [m for m in mine if type(m) is kind] == [
                m for m in expected if type(m) is kind and m.key == key
            ]


# --- snapshots on the local disk


@pytest.fixture
def logged(caplog):
    caplog.set_level(logging.INFO, logger="streamgp.worker")
    return lambda name: [r.fields for r in caplog.records if r.getMessage() == name]


def test_failures_are_reported_by_where_the_records_lie_and_no_more_than_five_of_a_batch(logged):
    topics = MemoryTopics()
    put(topics, *[event(i, x={"light": 13.0}) for i in range(8)])
    work(topics, model=_Explosive(isgp().model, seed=1))
    *told, more = logged("record-failed")
    assert more == {"more": 3}
    assert told[0] == {
        "topic": "events",
        "partition": 0,
        "offset": 0,
        "stage": "predict",
        "reason": "ZeroDivisionError: a fault",
        "consequence": "it is a dead letter; the learner is as it was before",
    }
    assert [each["offset"] for each in told] == [0, 1, 2, 3, 4]
    [batch] = logged("batch")
    assert batch["failed"] == 8


def test_a_label_that_hides_something_is_logged_once_without_the_label(logged):
    topics = MemoryTopics()
    hidden = "kit\u200bchen"
    put(topics, event(1, y=hidden), event(2, y=hidden), event(3, y="k\u00fcche"))
    put(topics, event(4, y="ku\u0308che"), event(5, y="k\u00fcche"), event(6, y="ku\u0308che"))
    work(topics)
    assert logged("hidden-characters") == [
        {
            "topic": "events",
            "partition": 0,
            "offset": 0,
            "characters": ["U+200B"],
            "consequence": "a label may look like another one",
        },
        {
            "topic": "events",
            "partition": 0,
            "offset": 3,
            "characters": ["U+0075", "U+0308"],
            "consequence": "a label may look like another one",
        },
    ]
    assert next(line.y for line in said(topics, "consensus")) == hidden


def test_numbers_that_come_as_texts_are_logged_once_by_the_names_of_their_features(logged):
    topics = MemoryTopics()
    x = {"light": "13.5", "noise": "1,25", "room": "101", "version": "1.2.3", "heat": 20.5}
    put(topics, event(1, x=x), event(2, x={**x, "wind": " -.5e3", "rain": "NaN"}), event(3, x=x))
    work(topics)
    told = {
        "topic": "events",
        "partition": 0,
        "consequence": "they are compared as names; send numbers without quotes, and none if "
        "unknown",
    }
    assert logged("numbers-as-texts") == [
        {**told, "offset": 0, "features": ["light", "noise"]},
        {**told, "offset": 1, "features": ["wind", "rain"]},
    ]


def test_a_producer_that_chooses_partitions_differently_is_logged_once(logged):
    topics = MemoryTopics(n_partitions=4)
    put(topics, event(1))
    work(topics)
    assert logged("other-partitioner") == []
    for i in (2, 3):
        write(topics, Outgoing(topic="events", key=b"ann", value=encode(event(i)), partition=1))
    work(topics)
    [told] = logged("other-partitioner")
    assert (told["topic"], told["partition"], told["expected"]) == ("events", 1, 2)


def test_one_learner_for_all_is_not_told_of_partitioners(logged):
    topics = MemoryTopics(n_partitions=1)
    raw(topics, key=None, value=b'{"x": {}}')
    put(topics, event(1))
    work(topics, keyed=False)
    assert logged("other-partitioner") == []


def test_a_restart_resumes_from_the_snapshot_with_the_same_messages(tmp_path, logged):
    with_disk, without = MemoryTopics(), MemoryTopics()
    for i in range(6):
        for topics in (with_disk, without):
            put(topics, event(i, y="home" if i < 3 else None))
        with StateDirectory(tmp_path / "state") as state:
            work(with_disk, state=state)
        work(without)
    assert contents(with_disk) == contents(without)
    assert [fields["from_snapshot"] for fields in logged("restored")][2] == [0]


@pytest.mark.parametrize("has_snapshot", [True, False])
@pytest.mark.parametrize(("offset", "n"), [(9, 6), (1, 0)])
def test_a_worker_with_a_snapshot_knows_how_many_inputs_another_program_has_skipped(
    tmp_path, logged, monkeypatch, has_snapshot, offset, n
):
    topics = MemoryTopics()
    put(topics, *[event(i) for i in range(3)])
    with StateDirectory(tmp_path / "state") as state:
        work(topics, state=state)
        begun = [[OffsetReset(topic="events", partition=0, position=offset, offset=offset)]]
        monkeypatch.setattr(MemoryWorkerClient, "begun", lambda _: begun.pop() if begun else [])
        put(topics, event(4))
        work(topics, state=state if has_snapshot else None)
    [told] = logged("position-set")
    expected = {"was": 3, "n": n} if has_snapshot else {}
    assert {name: told[name] for name in ("was", "n") if name in told} == expected


@pytest.mark.parametrize("is_busy", [False, True])
def test_a_snapshot_is_prepared_between_batches_while_that_gets_further(
    tmp_path, monkeypatch, logged, is_busy
):
    """A slice of time suffices for two of the ten loops; with a busy stream all change again."""
    topics, ticks, left = MemoryTopics(n_partitions=1), itertools.count(), []
    numbers, prepare = itertools.count(), Partition.prepare

    def noting(partition, is_enough):
        assert not logged("snapshot")
        left.append(prepare(partition, is_enough))
        if is_busy:
            put(topics, *[event(next(numbers), key=key) for key in "abcdefghij"])
        return left[-1]

    monkeypatch.setattr(recovery, "perf_counter", lambda: next(ticks) * 0.02)
    monkeypatch.setattr(Partition, "prepare", noting)
    put(topics, *[event(next(numbers), key=key) for key in "abcdefghij"])
    with StateDirectory(tmp_path / "state") as state:
        running = worker(topics, state=state, save_every_s=0.001)
        running.run(lambda: bool(logged("snapshot")))
    assert left == ([8, 8] if is_busy else [8, 6, 4, 2, 0])
    [told] = logged("snapshot")
    assert told["took_ms"] > told["pause_ms"] > 0
    put(topics, event(next(numbers), key="a"))
    with StateDirectory(tmp_path / "state") as state:
        work(topics, state=state)
    assert logged("restored")[-1]["from_snapshot"] == [0]


@pytest.mark.parametrize("leave", [True, False])
def test_a_worker_that_leaves_lets_no_other_wait_for_its_snapshots(tmp_path, monkeypatch, leave):
    done = []
    write, close = StateDirectory.write, MemoryWorkerClient.close
    monkeypatch.setattr(
        StateDirectory, "write", lambda *words: (done.append("save"), write(*words))
    )
    monkeypatch.setattr(
        MemoryWorkerClient, "close", lambda *words, **kw: (done.append(kw), close(*words, **kw))
    )
    topics = MemoryTopics()
    put(topics, event(1, y="home"))
    with StateDirectory(tmp_path / "state") as state:
        work(topics, state=state, leave=leave)
    assert done == ([{"leave": True}, "save", {}] if leave else ["save", {}])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"clock": lambda: MAX_AGE_S + 1.0}, "snapshot is 43201 s old, expected 0 to 43200"),
        ({"clock": lambda: -1.0}, "snapshot is -1 s old, expected 0 to 43200"),
        ({"answer_horizon_s": 5e9}, "settings were changed since: answer_horizon_s"),
        ({"people": People(trusted=["ann"])}, "settings were changed since: people"),
    ],
)
def test_a_snapshot_that_does_not_fit_is_not_used(tmp_path, logged, change, why):
    topics = MemoryTopics()
    put(topics, event(1, y="home"))
    with StateDirectory(tmp_path / "state") as state:
        work(topics, state=state)
    put(topics, event(2))
    with StateDirectory(tmp_path / "state") as state:
        work(topics, state=state, **change)
    assert logged("snapshot-unused")[0]["reason"].startswith(why)
    assert said(topics, "predictions")[1].y == "home"


def test_a_snapshot_of_another_version_is_not_used(tmp_path, logged):
    topics = MemoryTopics()
    put(topics, event(1, y="home"))
    with StateDirectory(tmp_path / "state") as state:
        work(topics, state=state)
        snapshot = Snapshot.from_bytes(state.read("partition-0.snapshot"))
        del snapshot.body["positions"]
        state.write("partition-0.snapshot", snapshot.to_bytes())
    put(topics, event(2))
    with StateDirectory(tmp_path / "state") as state:
        work(topics, state=state)
    assert logged("snapshot-unused")[0]["reason"] == "snapshot cannot be restored: 'positions'"
    assert said(topics, "predictions")[1].y == "home"


def test_a_damaged_snapshot_is_not_used(tmp_path, logged):
    topics = MemoryTopics()
    put(topics, event(1, y="home"))
    with StateDirectory(tmp_path / "state") as state:
        work(topics, state=state)
        state.write("partition-0.snapshot", state.read("partition-0.snapshot")[:-3])
    put(topics, event(2))
    with StateDirectory(tmp_path / "state") as state:
        work(topics, state=state)
    assert "cut off" in logged("snapshot-unused")[0]["reason"]
    assert said(topics, "predictions")[1].y == "home"


class _FullDisk(StateDirectory):
    def write(self, name, data):  # noqa: ARG002
        raise StateError("cannot write: no space left on device; free some space")


def test_a_full_disk_costs_the_snapshot_and_nothing_else(tmp_path, logged):
    topics = MemoryTopics()
    put(topics, event(1, y="home"))
    with _FullDisk(tmp_path / "state") as state:
        work(topics, state=state)
    assert "no space left" in logged("snapshot-failed")[0]["reason"]
    assert len(said(topics, "predictions")) == 1


def test_a_store_that_breaks_costs_nothing_either(tmp_path, logged, monkeypatch):
    topics, calm = MemoryTopics(), MemoryTopics()
    for i in range(8):
        for one in (topics, calm):
            put(one, event(i, key="abc"[i % 3], y="home" if i < 6 else None))
    puts = iter(range(100))

    def failing(self, key, data):
        if next(puts) == 1:
            raise StateError("cannot write: no space left on device; free some space")
        real(self, key, data)

    from connectors.storage.sqlite import SqliteStore

    real = SqliteStore.put
    monkeypatch.setattr(SqliteStore, "put", failing)
    with StateDirectory(tmp_path / "state") as state:
        work(topics, state=state, max_keys=1)
    work(calm)
    assert contents(topics) == contents(calm)
    assert "no space left" in logged("state-lost")[0]["reason"]


@pytest.mark.parametrize(
    ("save_every_s", "told"),
    [(0.0, "state-lost"), (60.0, "snapshot-failed")],
    ids=["amid the work", "at the end"],
)
def test_a_store_that_breaks_while_it_is_saved_costs_nothing_either(
    tmp_path, logged, monkeypatch, save_every_s, told
):
    topics, calm = MemoryTopics(), MemoryTopics()
    for one in (topics, calm):
        put(one, *[event(i, key="abc"[i % 3], y="home" if i < 12 else None) for i in range(24)])

    def full(self):
        self._file._abandon()  # as after any error of SQLite
        raise StateError("cannot write: database or disk is full; free some space")

    monkeypatch.setattr("connectors.storage.sqlite.SqliteStore.mark", full)
    with StateDirectory(tmp_path / "state") as state:
        work(topics, state=state, max_keys=1, batch=3, save_every_s=save_every_s)
    work(calm)
    assert contents(topics) == contents(calm)
    assert ["disk is full" in fields["reason"] for fields in logged(told)] == [True]
    assert logged("snapshot") == []  # nor is one told of that would have no place


def test_a_changed_configuration_is_refused():
    topics = MemoryTopics()
    put(topics, event(1))
    work(topics)
    put(topics, event(2))
    with pytest.raises(ChangedConfigurationError, match="processed with another configuration"):
        work(topics, model=isgp("paper", seed=1))
    work(topics)
    assert len(said(topics, "predictions")) == 2


# --- odd times, odd orders, odd disks


def test_an_answer_that_was_given_in_time_is_learned_however_late_it_is_read():
    topics = MemoryTopics()
    put(topics, event(1, at=100.0))
    work(topics, answer_horizon_s=60.0, clock=lambda: 100.0)
    put(topics, answer(1, at=110.0))
    work(topics, answer_horizon_s=60.0, clock=lambda: 7300.0)
    assert [m.y for m in said(topics, "consensus")] == ["home"]
    assert everything(topics, "dead-letters") == []


def test_a_label_may_come_right_behind_its_event():
    topics = MemoryTopics()
    put(topics, *[event(i) for i in range(5)], *[answer(i) for i in range(5)])
    work(topics)
    assert (
        len(said(topics, "consensus"))
        + len([m for m in said(topics, "requests") if isinstance(m, Challenge)])
        == 5
    )
    assert everything(topics, "dead-letters") == []


def test_events_that_are_sent_twice_do_not_end_the_worker():
    topics = MemoryTopics()
    for _ in range(2):
        put(topics, *[event(i) for i in range(600)])
        work(topics)
    assert len(said(topics, "predictions")) == 600
    assert len(everything(topics, "dead-letters")) == 600


def test_every_partition_has_its_turn_to_be_saved(tmp_path, logged):
    topics = MemoryTopics(n_partitions=3)
    numbers = itertools.count()

    def stop():
        put(topics, *[event(next(numbers), key=key) for key in "abcdef"])
        return len(logged("snapshot")) >= 3

    with StateDirectory(tmp_path / "state") as state:
        worker(topics, state=state, save_every_s=0.0).run(stop)
    assert {fields["partition"] for fields in logged("snapshot")[:3]} == {0, 1, 2}


def test_a_damaged_store_is_replaced(tmp_path, logged):
    topics = MemoryTopics()
    for turn in range(2):
        put(topics, *[event(10 * turn + i, key="abc"[i % 3]) for i in range(6)])
        with StateDirectory(tmp_path / "state") as state:
            work(topics, state=state, max_keys=1)
            state.file("partition-0.loops").write_bytes(b"garbage" * 1000)
    assert logged("state-lost") == []
    assert len(said(topics, "predictions")) == 12


# --- sharing the work


def to_compare():
    """Return topics with labelled events, others where all is done, and the events that follow."""
    topics, calm = MemoryTopics(n_partitions=2), MemoryTopics(n_partitions=2)
    keys = "abcdef"
    first = [event(i, key=keys[i % 6], y="home" if i < 6 else "work") for i in range(18)]
    second = [event(100 + i, key=keys[i % 6]) for i in range(12)]
    put(topics, *first)
    for events in (first, second):
        put(calm, *events)
        work(calm)
    return topics, calm, second


def test_partitions_that_move_take_their_loops_with_them():
    topics, calm, second = to_compare()
    turns = iter(range(100))
    others = []

    def meanwhile():
        turn = next(turns)
        if turn == 3:  # another worker comes, works off some of the rest, and goes
            put(topics, *second)
            other = iter(range(4))
            worker(topics, instance="other", batch=2).run(lambda: next(other) == 3)
            others.append(sum(topics.lags(GROUP).values()))
        return turn > 3 and idle(topics)()

    worker(topics, batch=100).run(meanwhile)
    assert 0 < others[0] < 12
    assert sorted(map(repr, contents(topics))) == sorted(map(repr, contents(calm)))


@pytest.mark.parametrize("comes_first", ["stop", "events"])
def test_a_worker_that_is_stopped_while_it_restores_its_first_partitions_ends(
    monkeypatch, logged, comes_first
):
    topics, calm, second = to_compare()
    work(topics)
    n_restored = len(logged("restored"))
    if comes_first == "events":
        put(topics, *second)
    with monkeypatch.context() as patch:
        patch.setattr("connectors.worker.worker._LOOK_S", 0.0)  # it asks after each step
        worker(topics).run(lambda: len(logged("assigned")) > n_restored)
    assert len(logged("restored")) == n_restored
    if comes_first == "stop":
        put(topics, *second)
    work(topics)
    assert sorted(map(repr, contents(topics))) == sorted(map(repr, contents(calm)))


def test_a_partition_is_restored_while_another_one_is_predicted(monkeypatch, caplog):
    monkeypatch.setattr("connectors.worker.worker._SLICE_S", 0.0)  # one step at a time
    caplog.set_level(logging.INFO, logger="streamgp.worker")
    topics, calm, second = to_compare()
    work(topics)
    others, served = [], []
    turns = iter(range(1000))

    def meanwhile():
        turn = next(turns)
        if turn == 2:  # another worker comes, and is given a partition
            others.append(topics.client(group=GROUP, instance="other", max_records=1))
        elif turn == 4:
            others[0].close()
            put(topics, *second)
        told = [r.message for r in caplog.records if r.message in ("assigned", "restored")]
        if turn > 4 and told[-1] == "assigned":
            served.append({r.partition for r in everything(topics, "predictions")[18:]})
        return turn > 5 and idle(topics)()

    caplog.clear()
    worker(topics, batch=1).run(meanwhile)
    assert served[-1] == {1}
    assert len(served) > 10
    assert sorted(map(repr, contents(topics))) == sorted(map(repr, contents(calm)))


def test_a_directory_holds_nothing_of_partitions_that_another_worker_has_taken(tmp_path, logged):
    topics = MemoryTopics(n_partitions=2)
    put(topics, *[event(i, key="abcdef"[i % 6], y="home") for i in range(18)])
    turns = itertools.count()
    with StateDirectory(tmp_path) as state:
        work(topics, state=state, max_keys=1)
        files = {n: {f"partition-{n}.{what}" for what in ("loops", "snapshot")} for n in (0, 1)}
        assert files[0] | files[1] <= set(state.names())
        topics.client(group=GROUP, instance="other", max_records=1).poll(0.0)
        worker(topics, state=state, max_keys=1).run(lambda: next(turns) == 3)
        [mine] = logged("restored")[-1]["partitions"]
        assert files[mine] <= set(state.names())
        assert files[1 - mine].isdisjoint(state.names())


@examples(50)
@given(
    st.lists(
        st.sampled_from(["first", "second", "second", "put", "comes or goes", "is killed"]),
        min_size=10,
        max_size=60,
    )
)
def test_workers_that_come_and_go_while_partitions_are_restored_change_nothing(moves):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("connectors.worker.worker._SLICE_S", 0.0)  # one step at a time
        patch.setattr("connectors.worker.worker.LONGEST_WAIT_S", 0.0)
        come_and_go(moves)


def come_and_go(moves):
    topics, calm = MemoryTopics(n_partitions=3), MemoryTopics(n_partitions=3)
    n_put = itertools.count()
    sessions = {}

    def turn(name):
        if name not in sessions:
            sessions[name] = session(topics, name)
        try:
            sessions[name].turn()
        except BrokerError:
            sessions.pop(name).close()

    for move in ["put", "first", "first", *moves]:
        if move == "put":
            i = next(n_put)
            batch = [
                event(10 * i + j, key="abcdef"[j % 6], y=["home", "work", None][(i + j) % 3])
                for j in range(8)
            ]
            put(topics, *batch)
            put(calm, *batch)
        elif move == "first" or (move == "second" and move in sessions):
            turn(move)
        elif move == "comes or goes" and "second" in sessions:
            sessions.pop("second").leave()
        elif move == "comes or goes":
            turn("second")
        elif "first" in sessions:
            sessions.pop("first").close()
    for _ in range(500):
        for name in list(sessions) or ["first"]:
            turn(name)
        if idle(topics)():
            break
    for each in sessions.values():
        each.close()
    work(calm)
    assert sorted(map(repr, contents(topics))) == sorted(map(repr, contents(calm)))


def session(topics, instance):
    return Session(
        topics,
        LoopSettings(model=isgp(seed=1)),
        WorkerSettings(group=GROUP, instance=instance, batch=2),
        state=None,
        clock=lambda: 0.0,
        recent=deque(maxlen=WINDOW),
    )


def test_the_log_sums_up_the_batches_of_a_second_and_loses_none(logged, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(worker_log, "perf_counter", lambda: now[0])
    topics = Failing([None] * 7 + ["before"])
    put(topics, *[event(i) for i in range(16)])

    def passes():
        now[0] += 0.25
        return False

    with pytest.raises(BrokerError):
        worker(topics, batch=2).run(passes)
    # One at once, after a second four, and what is left when the broker is gone.
    assert [line["batches"] for line in logged("batch")] == [1, 4, 2]
    assert [line["events"] for line in logged("batch")] == [2, 8, 4]
    assert len(everything(topics, "predictions")) == 14


def test_the_log_has_no_payload(caplog):
    caplog.set_level(logging.INFO, logger="streamgp.worker")
    topics = MemoryTopics()
    put(topics, event(1, key="secret-key", y="secret-label"))
    work(topics)
    (batch,) = [r.fields for r in caplog.records if r.getMessage() == "batch"]
    assert (batch["events"], batch["predictions"], batch["learned"]) == (1, 1, 1)
    lines = json.dumps([r.fields for r in caplog.records])
    assert "secret" not in lines
