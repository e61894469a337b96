"""After a restart a loop waits as bytes until its key is needed, and nothing shows it."""

import pytest

from streamgp import isgp
from streamgp.interactive import Event, KeyedLoops
from streamgp.interactive.keyed import _SILENT_AT_ONCE
from streamgp.interactive.loop_cache import WaitingLoop
from streamgp.interactive.state.snapshot import Snapshot, SnapshotError
from streamgp.query import SkepticalClassifier

SPANS = {"expires_after_s": 20.0, "answer_horizon_s": 50.0}
LABELS = ("home", "work")


def event(n, key, at, y=None):
    return Event(event_id=f"e{n}", key=key, x={"light": n % 7 / 7.0}, occurred_at=at, y=y)


def taught(n_keys, **settings):
    """Loops of keys that have seen four events, the first two labelled; and their lines."""
    loops, lines = KeyedLoops(isgp(seed=1), **SPANS, keep_changes=True, **settings), {}
    for i in range(n_keys):
        key = f"key {i}"
        for n in range(4):
            at = 10.0 * n + i / n_keys
            _, *others = loops.on_event(event(n, key, at, LABELS[n] if n < 2 else None), at)
            lines.setdefault(key, []).extend(m for m in others if hasattr(m, "sequence"))
    return loops, lines


def again(loops, **settings):
    return KeyedLoops.restore(loops.snapshot(), isgp(seed=1), keep_changes=True, **settings)


def n_waiting(loops):
    return sum(isinstance(loop, WaitingLoop) for loop in loops._cache.held.values())


@pytest.fixture
def n_made(monkeypatch):
    """Counts the learners that have learned their examples again."""
    made, load_state = [], SkepticalClassifier.load_state

    def counted(self, *args):
        made.append(self)
        return load_state(self, *args)

    monkeypatch.setattr(SkepticalClassifier, "load_state", counted)
    return lambda: len(made)


def test_a_restart_makes_a_learner_with_the_first_input_of_its_key(n_made):
    loops, _ = taught(5)
    loops.changes()
    restored = again(loops)
    assert (n_made(), restored.n_keys, restored.next_deadline()) == (0, 5, loops.next_deadline())
    assert restored.snapshot() == loops.snapshot()
    assert list(restored.open_events()) == list(loops.open_events()) != []
    for key in ("key 3", "key 3", "key 0"):
        one = event(9, key, 40.0)
        assert restored.on_event(one, 40.0) == loops.on_event(one, 40.0)
    assert (n_made(), n_waiting(restored)) == (2, 3)
    assert restored.snapshot() == loops.snapshot()
    assert restored.changes() == loops.changes()


def test_what_was_published_waits_without_a_learner(n_made):
    loops, lines = taught(5)
    taken_over = KeyedLoops(isgp(seed=1), **SPANS, keep_changes=True)
    for key, parts in loops.changes().items():
        taken_over.take_over(key, parts, lines[key])
    assert (n_made(), n_waiting(taken_over)) == (0, 5)
    assert taken_over.snapshot() == loops.snapshot()
    for key in list(taken_over.loops):
        loops.on_event(event(9, key, 40.0), 40.0)
    for key, parts in loops.changes().items():
        taken_over.take_over(key, parts, [])  # once more, on top of what waits
    assert n_made() == 0
    assert taken_over.snapshot() == loops.snapshot()
    assert taken_over.on_time(1e3) == loops.on_time(1e3)
    assert taken_over.snapshot() == loops.snapshot()


def test_questions_of_loops_that_wait_end_in_time():
    loops, _ = taught(3)
    restored = again(loops)
    told = [restored.on_time(now) for now in (25.0, 45.0, 1e3)]
    assert told == [loops.on_time(now) for now in (25.0, 45.0, 1e3)]
    assert any(told)


def test_events_are_forgotten_little_by_little_after_a_long_stop(n_made):
    n_keys = _SILENT_AT_ONCE + 20
    loops = KeyedLoops(isgp(seed=1), **SPANS, keep_changes=True)
    for i in range(n_keys):
        loops.on_event(event(1, f"key {i}", 0.0, "home"), 0.0)
    restored = again(loops)
    assert restored.on_time(60.0) == loops.on_time(60.0) == []
    assert (n_made(), restored.next_deadline()) == (_SILENT_AT_ONCE, 50.0)
    # The event is forgotten by then, whether its loop was made before or is made now.
    late = f"key {n_keys - 1}"
    assert not restored.knows(late, "e1")
    assert restored.on_time(61.0) == []
    assert restored.next_deadline() is loops.next_deadline() is None
    assert restored.snapshot() == loops.snapshot()


def test_loops_that_wait_are_evicted_first_and_come_back_as_they_were():
    few, _ = taught(5, max_keys=3)
    store = few._cache._store
    restored = KeyedLoops.restore(
        few.snapshot(), isgp(seed=1), max_keys=3, store=store, keep_changes=True
    )
    all_ready, _ = taught(5)
    for n, key in enumerate(["key 0", "key 4", "key 2", "key 3", "key 1", "key 0"]):
        one = event(9 + n, key, 40.0 + n)
        assert restored.on_event(one, 40.0 + n) == all_ready.on_event(one, 40.0 + n)
    assert list(restored.loops) == ["key 3", "key 1", "key 0"]


def test_a_state_that_no_learner_can_take_up_is_reported_with_the_first_input():
    loops, lines = taught(1)
    parts = loops.changes()["key 0"]
    parts["head"]["model"]["taught"]["scaling"] = "nothing that a scaling has said"
    taken_over = KeyedLoops(isgp(seed=1), **SPANS, keep_changes=True)
    taken_over.take_over("key 0", parts, lines["key 0"])
    with pytest.raises(SnapshotError, match="snapshot cannot be restored: "):
        taken_over.on_event(event(9, "key 0", 40.0), 40.0)


def test_a_snapshot_of_an_earlier_version_is_restored_with_all_loops_made(n_made):
    loops, _ = taught(2)
    snapshot = Snapshot.from_bytes(loops.snapshot())
    del snapshot.body["residents"]["asked"]
    restored = KeyedLoops.restore(snapshot.to_bytes(), isgp(seed=1), keep_changes=True)
    assert (n_made(), n_waiting(restored)) == (2, 0)
    assert restored.snapshot() == loops.snapshot()
