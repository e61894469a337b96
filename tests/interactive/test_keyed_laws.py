"""Keys do not touch each other, whichever are evicted."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import forest

from streamgp import GPClassifier, SkepticalClassifier, isgp
from streamgp.interactive import Event, KeyedLoops, SnapshotError
from streamgp.interactive.loop_cache import MemoryStore, PassedTimes
from streamgp.query import LeaveOneOutReview
from tests.helpers.laws import examples
from tests.interactive.stories import Story, told

LABELS = ("a", "b", "c")
SPANS = {"expires_after_s": 5.0, "answer_horizon_s": 40.0}
seeds = st.integers(0, 10**6)


def model():
    review = LeaveOneOutReview(0.2, every=3)
    return SkepticalClassifier(GPClassifier(), warm_up=16, review=review, seed=3)


def script(seed, keys, n=90):
    """Inputs of several keys, each made up as the conversation goes, in the order they came."""
    loops = KeyedLoops(model(), **SPANS)
    stories = {key: Story(seed, key=key, labels=LABELS) for key in keys}
    said = {key: [] for key in keys}
    rng = random.Random(seed)
    steps = []
    for _ in range(n):
        key = rng.choice(keys)
        step = stories[key].next(said[key])
        if step[0] == "on_time":
            continue
        said[key] = told(loops, step, key=key)
        steps.append((key, step))
    return steps


def by_key(loops, steps):
    """All messages of each key, in their order; repr, as NaN does not equal itself."""
    said = {}
    for key, step in steps:
        for message in told(loops, step, key=key):
            said.setdefault(message.key, []).append(repr(message))
    return said


@examples(4)
@given(seed=seeds, other=st.randoms(use_true_random=False))
def test_permuting_inputs_of_different_keys_only_permutes_messages(seed, other):
    steps = script(seed, ["ann", "bob", None])
    queues = {}
    for key, step in steps:
        queues.setdefault(key, []).append(step)
    shuffled = []
    while queues:
        key = other.choice(sorted(queues, key=str))
        shuffled.append((key, queues[key].pop(0)))
        if not queues[key]:
            del queues[key]
    one, two = (KeyedLoops(model(), **SPANS) for _ in range(2))
    assert by_key(one, steps) == by_key(two, shuffled)
    assert {k: one.loops[k].snapshot() for k in one.loops} == {
        k: two.loops[k].snapshot() for k in two.loops
    }


@examples(4)
@given(seed=seeds, max_keys=st.integers(1, 3), cut_every=st.integers(3, 40))
def test_putting_loops_away_and_restarting_changes_no_message(seed, max_keys, cut_every):
    keys = ["ann", "bob", "cid", "", None]
    whole = KeyedLoops(model(), **SPANS)
    bounded = KeyedLoops(model(), **SPANS, max_keys=max_keys)
    rng = random.Random(seed)
    for n, (key, step) in enumerate(script(seed, keys, n=110)):
        assert repr(told(bounded, step, key=key)) == repr(told(whole, step, key=key))
        assert len(bounded.loops) <= max_keys
        if rng.random() < 0.2:  # the time may also go backwards
            now = step[2] + rng.choice([-20.0, 0.0, 6.0, 60.0])
            ended, expected = bounded.on_time(now), whole.on_time(now)
            assert sorted(map(repr, ended)) == sorted(map(repr, expected))
        if n % cut_every == 0:
            bounded = KeyedLoops.restore(bounded.snapshot(), model(), max_keys=max_keys)
        # What only has to be forgotten may be forgotten later.
        expected = whole.next_deadline()
        assert bounded.next_deadline() is None or bounded.next_deadline() >= expected
    assert bounded.n_keys == len(whole.loops)
    for key in whole.loops:
        if key in bounded.loops:
            assert repr(bounded.loops[key].model.examples()) == repr(
                whole.loops[key].model.examples()
            )


@examples(4)
@given(seed=seeds, max_keys=st.sampled_from([None, 2]))
def test_a_snapshot_does_not_depend_on_what_was_prepared_of_it(seed, max_keys):
    rng = random.Random(seed)
    plain, prepared = (
        KeyedLoops(model(), **SPANS, max_keys=max_keys, keep_changes=True) for _ in range(2)
    )
    for key, step in script(seed, ["ann", "bob", "cid", None]):
        for loops in (plain, prepared):
            told(loops, step, key=key)
        match rng.randrange(7):
            case 0:
                assert prepared.snapshot() == plain.snapshot()
            case 1:
                assert repr(prepared.changes()) == repr(plain.changes())
            case 2:
                plain.on_time(step[2]), prepared.on_time(step[2])
            case 3 if rng.random() < 0.2:
                plain.forget("bob"), prepared.forget("bob")
            case _:
                counts = iter(range(5))
                most = rng.randrange(4)
                prepared.prepare_snapshot(lambda: next(counts) >= most)  # noqa: B023
    assert prepared.prepare_snapshot(lambda: False) == 0
    assert prepared.snapshot() == plain.snapshot()


def test_loops_with_an_input_have_to_be_prepared_again():
    loops = KeyedLoops(isgp(seed=1))
    for key in ("ann", "bob", "cid"):
        loops.on_event(event("1", key), 0.0)
    assert loops.prepare_snapshot(lambda: True) == 3
    first = iter([False, True])
    assert loops.prepare_snapshot(lambda: next(first)) == 2
    assert loops.prepare_snapshot(lambda: False) == 0
    loops.on_event(event("2", "bob"), 0.0)
    assert loops.prepare_snapshot(lambda: True) == 1
    loops.snapshot()
    assert loops.prepare_snapshot(lambda: True) == 3


def test_what_was_prepared_of_a_loop_is_dropped_with_it():
    """With one that is forgotten, and one that takes over what was published elsewhere."""
    plain, prepared = (KeyedLoops(isgp(seed=1), keep_changes=True) for _ in range(2))
    for loops in (plain, prepared):
        loops.on_event(event("1", "ann"), 0.0)
        loops.prepare_snapshot(lambda loops=loops: loops is plain)
        loops.forget("ann")
        loops.on_event(event("2", "ann"), 1.0)
    assert prepared.snapshot() == plain.snapshot()
    assert repr(prepared.changes()) == repr(plain.changes())
    there = KeyedLoops.restore(plain.snapshot(), isgp(seed=1), keep_changes=True)
    there.on_event(event("3", "ann"), 2.0)
    parts = there.changes()["ann"]
    assert prepared.prepare_snapshot(lambda: False) == 0
    for loops in (plain, prepared):
        loops.take_over("ann", parts, [])
    assert prepared.snapshot() == plain.snapshot()


@examples(3)
@given(seed=seeds)
def test_no_request_of_a_loop_in_the_store_misses_its_deadline(seed):
    loops = KeyedLoops(model(), **SPANS, max_keys=1)
    expected, ended = {}, {}
    for key, step in script(seed, ["ann", "bob", "cid"]):
        for message in told(loops, step, key=key):
            if type(message).__name__ in ("LabelRequest", "Challenge"):
                expected[message.key, message.request_id] = message.expires_at
    while (deadline := loops.next_deadline()) is not None:
        for message in loops.on_time(deadline + 1e-3):
            if type(message).__name__ == "Expired":
                ended[message.key, message.request_id] = message.at
    for request, at in ended.items():
        assert at <= expected[request] + 1e-3
    assert all(loop.n_open == 0 for loop in loops.loops.values())


@examples(3)
@given(seed=seeds, max_keys=st.sampled_from([None, 1]))
def test_a_forgotten_key_is_new_and_the_others_notice_nothing(seed, max_keys):
    steps = script(seed, ["ann", "bob"])
    half = len(steps) // 2
    whole = KeyedLoops(model(), **SPANS)
    loops = KeyedLoops(model(), **SPANS, max_keys=max_keys)
    by_key(whole, steps[:half])
    by_key(loops, steps[:half])
    n_keys = loops.n_keys
    known = "ann" in whole.loops
    assert loops.forget("ann") == known
    assert not loops.forget("ann")
    assert loops.n_keys == n_keys - known
    fresh = KeyedLoops(model(), **SPANS)
    expected = {
        "ann": by_key(fresh, [s for s in steps[half:] if s[0] == "ann"]).get("ann"),
        "bob": by_key(whole, [s for s in steps[half:] if s[0] == "bob"]).get("bob"),
    }
    said = by_key(loops, steps[half:])
    assert {key: said.get(key) for key in expected} == expected


def test_the_least_recently_used_loop_is_put_away():
    store = MemoryStore()
    loops = KeyedLoops(isgp(seed=1), max_keys=2, store=store)
    for n, key in enumerate(["a", "b", "a", "c"]):
        loops.on_event(Event(event_id=str(n), key=key, x={"f": 1.0}, occurred_at=0.0), now=0.0)
    assert list(loops.loops) == ["a", "c"]
    assert list(store.keys()) == ["b"]
    assert (len(store), loops.n_keys) == (1, 3)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="max_keys must be a whole number of at least 1, got 0"):
        KeyedLoops(isgp(seed=1), max_keys=0)
    with pytest.raises(ValueError, match="a store is of use with max_keys only"):
        KeyedLoops(isgp(seed=1), store=MemoryStore())


def test_a_snapshot_needs_the_store_it_was_taken_with():
    loops = KeyedLoops(isgp(seed=1), max_keys=1)
    data = loops.snapshot()
    with pytest.raises(SnapshotError, match="some of its keys wait in a store; give max_keys"):
        KeyedLoops.restore(data, isgp(seed=1))
    with pytest.raises(SnapshotError, match="taken with another configuration"):
        KeyedLoops.restore(data, isgp(seed=2), max_keys=1)
    with pytest.raises(SnapshotError, match="not a snapshot"):
        KeyedLoops.restore(b"something else", isgp(seed=1))


@given(st.lists(st.integers(-5, 5), max_size=20), st.integers(0, 20))
def test_the_latest_time_since_a_moment_is_that_of_a_full_record(times, n):
    passed = PassedTimes()
    for now in times:
        passed.note(float(now))
    assert passed.latest_since(n) == max(map(float, times[n:]), default=None)


def event(event_id, key, x=None, y="hall", at=0.0):
    return Event(event_id=event_id, key=key, x=x or {"f": 1.0}, y=y, occurred_at=at)


def test_what_could_not_be_evicted_is_rejected_at_once_and_nothing_is_lost():
    loops = KeyedLoops(isgp(seed=1), max_keys=1)
    for n in range(5):
        loops.on_event(event(str(n), "ann"), 0.0)
    [rejected] = loops.on_event(event("odd", "ann", x={("f", 2): 1.0}), 0.0)
    assert rejected.fault == "malformed"
    assert "named by a string or a number can be saved" in rejected.reason
    loops.on_event(event("1", "bob"), 0.0)
    prediction, *_ = loops.on_event(event("9", "ann"), 0.0)
    assert prediction.n_learned == 5


def test_a_store_that_fails_loses_no_loop():
    class Full(MemoryStore):
        def put(self, key, data):  # noqa: ARG002
            raise OSError("no space left")

    loops = KeyedLoops(isgp(seed=1), max_keys=1, store=Full())
    loops.on_event(event("1", "ann"), 0.0)
    with pytest.raises(OSError, match="no space left"):
        loops.on_event(event("1", "bob"), 0.0)
    assert {key: loop.model.n_learned for key, loop in loops.loops.items()} == {"ann": 1, "bob": 1}


def test_a_model_that_could_not_be_evicted_is_refused_at_the_start():
    model = SkepticalClassifier(forest.ARFClassifier())
    with pytest.raises(TypeError, match="ARFClassifier draws random numbers and has no seed"):
        KeyedLoops(model, max_keys=1)
    assert KeyedLoops(SkepticalClassifier(forest.ARFClassifier(seed=1), seed=1), max_keys=1)


def test_a_store_used_before_is_empty_for_loops_that_had_none():
    data = KeyedLoops(isgp(seed=1)).snapshot()
    store = MemoryStore()
    store.put("old", b"of another program")
    loops = KeyedLoops.restore(data, isgp(seed=1), max_keys=1, store=store)
    assert (loops.n_keys, len(store)) == (0, 0)
