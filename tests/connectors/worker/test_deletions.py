"""What others do to the topic `consensus`: it is taken back, told, or passed over."""

import functools
import itertools
from contextlib import closing

import pytest

from connectors.memory import MemoryTopics
from connectors.storage.snapshots import StateDirectory, StateError
from connectors.wire.codec import encode
from connectors.wire.inbound import retraction_key
from connectors.wire.state_records import FORGOTTEN, History, line_of, records_of_part, state
from connectors.worker.compatibility import UnfitTopicsError
from streamgp import SkepticalClassifier, isgp
from streamgp.interactive.messages import Answer, Cancel
from streamgp.interactive.rebuild import head_around
from streamgp.interactive.teaching import teach
from tests.helpers.topics import everything, said
from tests.helpers.workbench import (
    event,
    idle,
    letters,
    lose_positions,
    newest,
    put,
    raw,
    work,
    worker,
)


def test_a_tombstone_on_a_labelled_example_takes_it_back():
    topics = MemoryTopics()
    put(topics, event(1, y="home"), event(2, y="work"))
    work(topics)
    raw(topics, "consensus", key=b"ann\x1fe1\x1f0", value=None)
    work(topics)
    put(topics, event(3))
    work(topics)
    assert said(topics, "consensus")[-1].origin == "withdrawn"
    assert set(said(topics, "predictions")[-1].proba) == {"home", "work"}
    assert said(topics, "predictions")[-1].n_learned == 1


def test_a_forgotten_key_leaves_nothing_and_may_begin_anew(tmp_path):
    topics = MemoryTopics()
    with StateDirectory(tmp_path / "state") as state:
        put(topics, event(1, y="home"), event(2, y="work"), event(1, key="bob", y="home"))
        work(topics, state=state)
        old = state.read("partition-0.snapshot")
        raw(topics, "consensus", key=b"ann", value=None)
        put(topics, event(5, y="shop"))
        work(topics, state=state)
        assert b"work" not in state.read("partition-0.snapshot")
        # A worker that was away while this happened does not bring it back.
        state.write("partition-0.snapshot", old)
        put(topics, event(6))
        work(topics, state=state)
    last = {}
    for record in everything(topics, "state", "consensus"):
        last[record.topic, record.key] = record.value
    left = b"".join(value for value in last.values() if value is not None)
    assert b"work" not in left
    assert b"shop" in left
    (again,) = [m for m in said(topics, "consensus") if m.event_id == "e5"]
    assert again.sequence == 1
    prediction = said(topics, "predictions")[-1]
    assert (prediction.event_id, list(prediction.proba)) == ("e6", ["shop"])


def test_a_key_leaves_nothing_though_labels_of_it_are_taken_back_in_the_same_batch():
    topics = MemoryTopics()
    put(topics, event(1), event(2), event(3), event(1, key="bob", y="home"))
    work(topics)
    put(topics, given(1, "home", "eve"), given(2, "work", "eve"), given(3, "work", "cid"))
    work(topics)
    raw(topics, "consensus", key=retraction_key("ann", "eve", 1), value=None)
    raw(topics, "consensus", key=b"ann", value=None)
    work(topics)
    found = newest(topics, "state") | newest(topics, "consensus")
    assert [key for key, value in found.items() if key.startswith(b"ann") and value] == []
    put(topics, event(5, y="shop"), event(6, y="shop"), event(7, y="shop"))
    work(topics)  # refuses to start if numbers of the forgotten key were left
    assert said(topics, "predictions")[-1].n_learned == 2


def given(i, y, annotator):
    return Answer(
        answer_id=f"a{i}",
        request_id=None,
        event_id=f"e{i}",
        key="ann",
        y=y,
        annotator=annotator,
        answered_at=float(i),
    )


def test_the_questions_of_a_forgotten_key_are_taken_back():
    topics = MemoryTopics()
    put(topics, event(1), event(2, key="bob"))
    work(topics)
    raw(topics, "consensus", key=b"ann", value=None)
    work(topics)
    assert [(m.key, m.request_id) for m in said(topics, "requests") if isinstance(m, Cancel)] == [
        ("ann", "e1/label")
    ]


def test_a_withdrawn_label_does_not_come_back_when_its_last_line_is_deleted():
    topics = MemoryTopics()
    put(topics, event(1, y="home"), event(2, y="work"))
    work(topics, answer_horizon_s=10.0)
    raw(topics, "consensus", key=b"ann\x1fe1\x1f0", value=None)
    work(topics, answer_horizon_s=10.0)
    raw(topics, "consensus", key=b"ann\x1fe1\x1f1", value=None)
    work(topics, answer_horizon_s=10.0, clock=lambda: 100.0)
    topics.compact()
    put(topics, event(103, at=103.0))
    work(topics, answer_horizon_s=10.0)
    assert said(topics, "predictions")[-1].n_learned == 1


def test_a_null_that_is_delivered_again_takes_nothing_back_that_came_since():
    topics = MemoryTopics()
    put(topics, event(1, y="home"))
    work(topics)
    raw(topics, "consensus", key=b"ann", value=None)
    work(topics)
    put(topics, event(2, y="work"))
    work(topics)
    lose_positions(topics)
    work(topics)
    # The event of the forgotten key is a new one; what was learned since is still there.
    lines = [(m.event_id, m.sequence) for m in said(topics, "consensus")]
    assert lines == [("e1", 1), ("e2", 1), ("e1", 2)]


def test_a_null_of_an_absurd_time_is_heeded():
    topics = MemoryTopics(clock=lambda: 1e300)
    put(topics, event(1, y="home"))
    work(topics)
    raw(topics, "consensus", key=b"ann\x1fe1\x1f0", value=None)
    work(topics)
    assert said(topics, "consensus")[-1].origin == "withdrawn"


class _FullDisk(StateDirectory):
    def write(self, name, data):  # noqa: ARG002
        raise StateError("cannot write: no space left on device; free some space")


def test_what_was_forgotten_does_not_stay_on_a_full_disk(tmp_path):
    topics = MemoryTopics()
    put(topics, event(1, y="home"))
    with StateDirectory(tmp_path / "state") as state:
        work(topics, state=state)
    raw(topics, "consensus", key=b"ann", value=None)
    with _FullDisk(tmp_path / "state") as state:
        work(topics, state=state)
        assert state.read("partition-0.snapshot") is None


def correct(i, y, at):
    """Return the answer that replaces the label with which an event came."""
    name = f"e{i}"
    return Answer(
        answer_id=f"c{i}", event_id=name, key="ann", y=y, supersedes=name, answered_at=float(at)
    )


def run(topics, *steps, **kw):
    """Run one worker; take a step whenever it has nothing to do."""
    left, turns = [*steps], itertools.count()

    def stop():
        if next(turns) < 2 or not idle(topics)():
            return False
        if left:
            left.pop(0)()
        return not left and idle(topics)()

    worker(topics, **kw).run(stop)


def labels(topics, **kw):
    """Return how many labels are held, and the likeliest, as a like event shows them."""
    put(topics, event(900, at=kw.get("clock", lambda: 0.0)(), x=event(1).x))
    work(topics, **kw)
    prediction = said(topics, "predictions")[-1]
    assert prediction.event_id == "e900"
    return prediction.n_learned, prediction.y


# --- line in force


@pytest.mark.parametrize("now", [2.0, 200.0])
@pytest.mark.parametrize("restarts", ["never", "from topics", "from snapshot"])
def test_a_deleted_line_that_was_replaced_takes_nothing_back(tmp_path, now, restarts):
    """Within the horizon (100 s) or beyond it."""
    topics, clock = MemoryTopics(), [1.0]
    kw = {"answer_horizon_s": 100.0, "clock": lambda: clock[0]}
    state = StateDirectory(tmp_path / "state") if restarts == "from snapshot" else None
    steps = [
        lambda: put(topics, correct(1, "work", at=1.5)),
        lambda: (clock.__setitem__(0, now), put(topics, event(2, at=now))),
        lambda: raw(topics, "consensus", key=b"ann\x1fe1\x1f0", value=None),
    ]
    put(topics, event(1, y="home", at=1.0))
    if restarts == "never":
        run(topics, *steps, **kw)
    else:
        for step in [lambda: None, *steps]:
            step()
            work(topics, state=state, **kw)
    assert labels(topics, state=state, **kw) == (1, "work")
    assert letters(topics) == []
    if state is not None:
        state.close()


def test_a_deleted_line_that_was_replaced_counts_no_more_whatever_a_worker_starts_from(tmp_path):
    """An older snapshot still has it."""
    said_of = {}
    for restarts in ("never", "from topics", "from an older snapshot"):
        topics, kw = MemoryTopics(), {"answer_horizon_s": 100.0}
        with StateDirectory(tmp_path / restarts) as state:
            put(topics, event(1, y="home"), event(2, y="work"))
            work(topics, **kw)
            put(topics, correct(1, "shop", at=2.5))
            work(topics, state=state, **kw)
            old = state.read("partition-0.snapshot")
            raw(topics, "consensus", key=b"ann\x1fe1\x1f0", value=None)
            steps = [lambda topics=topics: put(topics, event(3, x=event(1).x))]
            if restarts == "never":
                run(topics, *steps, **kw)
            else:
                work(topics, state=state, **kw)
                steps[0]()
                state.write("partition-0.snapshot", old)
                work(topics, state=state if restarts == "from an older snapshot" else None, **kw)
        said_of[restarts] = said(topics, "predictions")[-1]
        assert set(said_of[restarts].proba) == {"work", "shop"}
    assert len({repr(prediction) for prediction in said_of.values()}) == 1


@pytest.mark.parametrize("now", [2.0, 200.0])
def test_a_deleted_line_that_counts_takes_the_corrected_label_back(now):
    topics, clock = MemoryTopics(), [1.0]
    kw = {"answer_horizon_s": 100.0, "clock": lambda: clock[0]}
    put(topics, event(1, y="home", at=1.0))
    work(topics, **kw)
    put(topics, correct(1, "work", at=1.5))
    work(topics, **kw)
    clock[0] = now
    put(topics, event(2, at=now))
    work(topics, **kw)
    raw(topics, "consensus", key=b"ann\x1fe1\x1f1", value=None)
    work(topics, **kw)
    assert labels(topics, **kw)[0] == 0


def test_a_label_does_not_come_back_when_its_correction_is_deleted_while_no_worker_runs():
    topics, clock = MemoryTopics(), [1.0]
    kw = {"answer_horizon_s": 100.0, "clock": lambda: clock[0]}
    put(topics, event(1, y="home", at=1.0))
    work(topics, **kw)
    put(topics, correct(1, "work", at=1.5))
    work(topics, **kw)
    clock[0] = 200.0
    put(topics, event(2, at=200.0))
    work(topics, **kw)
    raw(topics, "consensus", key=b"ann\x1fe1\x1f1", value=None)
    work(topics, **kw)
    assert labels(topics, **kw)[0] == 0


@pytest.mark.parametrize("keyed", [True, False])
def test_a_label_deleted_while_no_worker_runs_keeps_none_from_starting(keyed):
    """Its event is forgotten, so nothing but the null tells of the label."""
    topics, clock = MemoryTopics(), [1.0]
    kw = {"answer_horizon_s": 100.0, "clock": lambda: clock[0], "keyed": keyed}
    put(topics, event(1, y="home", at=1.0), event(2, y="work", at=1.0))
    work(topics, **kw)
    clock[0] = 200.0
    put(topics, event(3, at=200.0))
    work(topics, **kw)
    raw(topics, "consensus", key=(b"ann" if keyed else b"") + b"\x1fe1\x1f0", value=None)
    assert labels(topics, **kw) == (1, "work")
    assert letters(topics) == []


def lines_after(steps, restarts, **kw):
    """Return the lines that workers leave in `consensus`; letters of theirs are an error."""
    topics, clock = MemoryTopics(), [1.0]
    kw = {"clock": lambda: clock[0], **kw}
    steps = [functools.partial(step, topics, clock) for step in steps]
    if restarts:
        for step in steps:
            step()
            work(topics, **kw)
    else:
        steps[0]()
        run(topics, *steps[1:], **kw)
    assert letters(topics) == []
    return [
        (line.event_id, line.revision, line.sequence, line.y)
        for key, value in newest(topics, "consensus").items()
        if value is not None
        for line in [line_of(key, value)]
    ]


def test_a_retraction_and_a_null_written_while_no_worker_runs_are_as_if_one_had_run():
    steps = [
        lambda topics, _: put(topics, event(1), event(6, y="work")),
        lambda topics, _: put(topics, given(1, "shop", "eve")),
        lambda topics, _: (
            raw(topics, "consensus", key=retraction_key("ann", "eve", 1), value=None),
            raw(topics, "consensus", key=b"ann\x1fe6\x1f0", value=None),
        ),
    ]
    expected = [("e1", 1, 3, None), ("e6", 1, 4, None)]
    assert lines_after(steps, restarts=False) == lines_after(steps, restarts=True) == expected


def test_a_null_on_a_forgotten_event_takes_a_number_though_written_while_no_worker_runs():
    steps = [
        lambda topics, _: put(topics, event(1, y="home", at=1.0), event(2, y="work", at=1.0)),
        lambda topics, clock: (clock.__setitem__(0, 200.0), put(topics, event(3, at=200.0))),
        lambda topics, _: raw(topics, "consensus", key=b"ann\x1fe1\x1f0", value=None),
        lambda topics, _: put(topics, event(4, y="shop", at=200.0)),
    ]
    expected = [("e2", 0, 2, "work"), ("e1", 1, 3, None), ("e4", 0, 4, "shop")]
    assert lines_after(steps, False, answer_horizon_s=100.0) == expected
    assert lines_after(steps, True, answer_horizon_s=100.0) == expected


def test_a_log_that_was_taught_again_without_what_is_deleted_starts_without_it():
    """As `streamgp rebuild` does, before a worker reads the null."""
    topics, clock = MemoryTopics(), [1.0]
    kw = {"answer_horizon_s": 100.0, "clock": lambda: clock[0]}
    put(topics, event(1, y="home", at=1.0), event(2, y="work", at=1.0))
    work(topics, **kw)
    clock[0] = 200.0
    put(topics, event(3, at=200.0))
    work(topics, **kw)
    raw(topics, "consensus", key=b"ann\x1fe1\x1f0", value=None)
    found = history(topics)
    lines, model = found.lines("ann"), isgp(seed=1)
    assert [taught.y for taught in teach(model, lines)] == ["work"]
    head = head_around(model, found.parts("ann"), lines, isgp(seed=1))
    with closing(topics.writer("test")) as writer:
        for record in records_of_part("ann", "head", head, 0):
            writer.send(record)
    assert labels(topics, **kw) == (1, "work")
    assert letters(topics) == []
    assert [line.event_id for line in said(topics, "consensus")] == ["e1", "e2"]  # none withdrawn


def history(topics):
    """Return what the topics hold about the only partition."""
    found = History()
    for record in everything(topics, "state", "consensus"):
        found.take(record)
    return found


def test_a_forgotten_key_leaves_no_line_that_a_later_null_deletes():
    """A start between the two nulls would learn it again, for a key that may have begun anew."""
    topics = MemoryTopics()
    put(topics, event(1, y="home"))
    work(topics)
    for key in (b"ann", b"ann\x1fe1\x1f0"):
        raw(topics, "consensus", key=key, value=None)
    work(topics)
    found = history(topics)
    assert found.consensus_keys("ann") == found.deleted_keys("ann") == []


def test_what_was_corrected_of_a_forgotten_key_leaves_no_trace(tmp_path):
    topics = MemoryTopics()
    with StateDirectory(tmp_path / "state") as state:
        for step in (
            lambda: put(topics, event(77, y="home")),
            lambda: put(topics, correct(77, "work", at=77.5)),
        ):
            step()
            work(topics, state=state)
        assert b"e77" in state.read("partition-0.snapshot")
        raw(topics, "consensus", key=b"ann", value=None)
        work(topics, state=state)
        assert b"e77" not in state.read("partition-0.snapshot")


def test_forgotten_keys_are_counted_through_snapshots(tmp_path):
    """An older snapshot, with a smaller number, may hold a key that was forgotten since."""
    topics = MemoryTopics()
    with StateDirectory(tmp_path / "state") as state:
        put(topics, event(1, key="ann", y="home"), event(1, key="bob", y="work"))
        for key in (b"ann", b"bob"):
            work(topics, state=state)
            raw(topics, "consensus", key=key, value=None)
        work(topics, state=state)
    assert b'"n":2' in newest(topics, "state")[b"\x1fforgotten"]


# --- examples that a learner cannot forget


class Stubborn(SkepticalClassifier):
    """Forgets nothing."""

    def forget_one(self, event_id):
        raise RuntimeError(f"{event_id} is not forgotten")


def stubborn():
    model = isgp(seed=1)
    model.__class__ = Stubborn
    return model


@pytest.mark.parametrize("with_snapshot", [False, True])
def test_nulls_that_failed_keep_no_worker_from_starting(tmp_path, with_snapshot):
    topics = MemoryTopics()
    kw = {"model": stubborn(), "clock": lambda: 50.0}
    with StateDirectory(tmp_path / "state") as state:
        put(topics, event(1, key="once", y="home"), event(1, key="other", y="work"))
        work(topics, state=state if with_snapshot else None, **kw)
        for key in (b"once\x1fe1\x1f0", b"other\x1fe1\x1f0"):
            raw(topics, "consensus", key=key, value=None)
            work(topics, state=state if with_snapshot else None, **kw)
    assert letters(topics) == ["RuntimeError: e1 is not forgotten"] * 2
    topics.compact()
    put(topics, event(2, key="once"))
    work(topics, **kw)
    assert said(topics, "predictions")[-1].n_learned == 1
    raw(topics, "consensus", key=b"once", value=None)
    work(topics, **kw)
    assert b"once" not in newest(topics, "state")[b"\x1fforgotten"]


# --- deletions without effect are reported


def test_a_null_in_a_partition_that_does_not_know_its_key_is_reported():
    topics = MemoryTopics(n_partitions=4)
    put(topics, *[event(i, y="home") for i in range(8)])
    work(topics)
    for i in range(8):
        raw(topics, "consensus", key=f"ann\x1fe{i}\x1f0".encode(), value=None)
    work(topics)
    home = next(record.partition for record in everything(topics, "events"))
    nulls = [
        record
        for record in everything(topics, "consensus")
        if record.value is None and not record.headers
    ]
    astray = [record.partition for record in nulls if record.partition != home]
    assert 0 < len(astray) < 8
    assert sum(line.origin == "withdrawn" for line in said(topics, "consensus")) == 8 - len(astray)
    assert sorted(letters(topics)) == sorted(
        f"key 'ann' is not known in partition {number}, expected a null in the partition of what "
        "it takes back; choose that by the key alone, not by all of the record's key"
        for number in astray
    )


def test_forgetting_a_stranger_is_reported():
    topics = MemoryTopics()
    put(topics, event(1, key="bob"))
    work(topics)
    raw(topics, "consensus", key=b"ann", value=None)
    work(topics)
    (letter,) = letters(topics)
    assert letter.startswith("key 'ann' is not known in partition 0, expected a null in the part")


def test_forgetting_twice_leaves_no_new_trace():
    topics = MemoryTopics()
    put(topics, event(1))
    work(topics)
    for _ in range(2):
        raw(topics, "consensus", key=b"ann", value=None)
        work(topics)
    assert letters(topics) == []


def test_nobody_can_be_taken_out_of_a_loop_that_serves_all():
    topics = MemoryTopics()
    put(topics, event(1, y="home"))
    work(topics, keyed=False)
    raw(topics, "consensus", key=b"", value=None)
    work(topics, keyed=False)
    assert letters(topics) == [
        "one loop serves all keys, so no key can be removed from it; withdraw its examples"
    ]
    assert labels(topics, keyed=False)[0] == 1


def test_the_nulls_of_workers_ask_nothing_of_workers():
    topics = MemoryTopics()
    put(topics, event(1, y="home"), event(1, key="bob", y="home"))
    work(topics)
    raw(topics, "consensus", key=b"ann\x1fe1\x1f0", value=None)
    raw(topics, "consensus", key=b"bob", value=None)
    work(topics)
    before = everything(topics, "state", "consensus")
    work(topics)  # reads its own nulls
    assert everything(topics, "state", "consensus") == before
    assert letters(topics) == []
    by_whom = [dict(r.headers).get("erased-by") for r in before if r.value is None]
    assert by_whom.count(b"/streamgp/streamgp") == 2


# --- records of other producers


def test_a_note_on_consensus_is_a_dead_letter_and_keeps_no_worker_from_starting():
    topics = MemoryTopics()
    put(topics, event(1, y="home"))
    work(topics)
    raw(topics, "consensus", key=b"ann", value=b"note to self")
    work(topics)
    (letter,) = everything(topics, "dead-letters")
    assert (letter.key, letter.value) == (b"ann", b"note to self")
    assert letters(topics) == [
        "only workers write to consensus, and a correction is an answer: its key must not be "
        r"b'ann', expected that of a line, <key>\x1f<event_id>\x1f<revision>"
    ]
    assert labels(topics) == (1, "home")


def test_a_note_with_the_source_of_another_program_ends_no_worker():
    """Only another group of streamgp must not learn beside this one."""
    topics = MemoryTopics()
    put(topics, event(1, y="home"))
    headers = (("ce_source", b"/billing"),)
    run(topics, lambda: raw(topics, "consensus", key=b"ann", value=b"{}", headers=headers))
    (letter,) = everything(topics, "dead-letters")
    assert (letter.key, letter.value) == (b"ann", b"{}")
    assert labels(topics) == (1, "home")


@pytest.mark.parametrize(
    "value", [b"note to self", encode(event(1)), b'{"type":"consensus","version":1}']
)
def test_what_is_written_over_a_line_is_a_dead_letter_and_the_label_is_taken_back(value):
    topics = MemoryTopics()
    put(topics, event(1, y="home"), event(2, y="work"))
    work(topics)
    run(topics, lambda: raw(topics, "consensus", key=b"ann\x1fe1\x1f0", value=value))
    (letter,) = everything(topics, "dead-letters")
    assert (letter.key, letter.value) == (b"ann\x1fe1\x1f0", value)
    assert newest(topics, "consensus")[b"ann\x1fe1\x1f0"] is None
    assert labels(topics)[0] == 1
    topics.compact()
    assert [line.origin for line in said(topics, "consensus")] == ["volunteered", "withdrawn"]
    lose_positions(topics)
    assert labels(topics)[0] == 1


def test_what_is_deleted_after_the_log_has_lost_its_end_is_taken_back():
    """The offsets up to which nulls were processed are given out again."""
    topics = MemoryTopics()
    put(topics, event(1, y="home"), event(2, y="work"))
    work(topics)
    with closing(topics.writer("test")) as writer:
        writer.send(state("", FORGOTTEN, {"n": 0, "heeded": 1000}, 0))
    run(topics, lambda: raw(topics, "consensus", key=b"ann\x1fe1\x1f0", value=None))
    assert labels(topics)[0] == 1


def lose_end(topics, n):
    """Restore `consensus` from a copy that lacks its last records, and set the group back."""
    records = topics._logs._records["consensus", 0]
    lost = [records.pop() for _ in range(n)]
    topics._logs._ends["consensus", 0] = min(record.offset for record in lost)
    [group] = topics._groups.values()
    group.positions["consensus", 0] = 0


@pytest.mark.parametrize("restarts", ["at once", "first"])
@pytest.mark.parametrize("n_lost", [1, 2])
def test_a_key_is_forgotten_after_the_log_has_lost_its_end(n_lost, restarts):
    """The request gets an offset at which workers have seen another one."""
    now = [0.0]
    topics = MemoryTopics(clock=lambda: now[0])
    put(topics, event(1, y="home"), event(1, key="bob", y="work"))
    work(topics)
    for key in (b"bob\x1fe7\x1f0", b"bob\x1fe8\x1f0"):  # nulls that change nothing
        raw(topics, "consensus", key=key, value=None)
        work(topics)
    lose_end(topics, n_lost)
    if restarts == "first":
        work(topics)
    now[0] = 50.0
    raw(topics, "consensus", key=b"ann", value=None)
    work(topics)
    assert not {
        key: value
        for topic in ("state", "consensus")
        for key, value in newest(topics, topic).items()
        if value is not None and key.startswith(b"ann")
    }


def test_what_is_written_over_a_line_while_no_worker_runs_is_reported_at_the_start():
    topics = MemoryTopics()
    put(topics, event(1, y="home"))
    work(topics)
    raw(topics, "consensus", key=b"ann\x1fe1\x1f0", value=b"note to self")
    with pytest.raises(UnfitTopicsError, match="consensus:0:1 is nothing that this streamgp wri"):
        work(topics)
    raw(topics, "consensus", key=b"ann\x1fe1\x1f0", value=None)
    work(topics)
    assert labels(topics)[0] == 0
