import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp import GPClassifier, SkepticalClassifier, isgp
from streamgp.interactive import (
    Answer,
    Event,
    InteractiveLoop,
    KeyedLoops,
    LabelledExample,
    Prediction,
)
from streamgp.interactive.loop_cache import copier
from tests.interactive.scripted import ScriptedLearner

KEYS = [None, "ann", "bob"]


def event(key, event_id="e", at=0.0, **fields):
    return Event(event_id=event_id, key=key, x={"f": 1.0}, occurred_at=at, **fields)


def answer(key, y="a", at=1.0, event_id="e", answer_id="a1"):
    return Answer(answer_id=answer_id, event_id=event_id, key=key, y=y, answered_at=at)


@pytest.fixture
def loops():
    return KeyedLoops(ScriptedLearner(), expires_after_s=10.0, answer_horizon_s=100.0)


def test_every_key_has_a_learner_of_its_own(loops):
    for key in KEYS:
        prediction, _ = loops.on_event(event(key), 0.0)
        [example] = loops.on_answer(answer(key), 1.0)
        assert (prediction.n_learned, example.key, example.sequence) == (0, key, 1)
    assert list(loops.loops) == KEYS
    assert len(loops.loops) == 3
    assert len({id(loop.model) for loop in loops.loops.values()}) == 3
    assert loops.model.n_learned == 0


def test_unknown_key_is_rejected_and_gets_no_learner(loops):
    [rejected] = loops.on_answer(answer("eve"), 1.0)
    assert (rejected.subject, rejected.key, rejected.fault, rejected.reason) == (
        "a1",
        "eve",
        "unknown",
        "no event of key 'eve' was ever seen",
    )
    [rejected] = loops.on_cancel("e/label", 1.0, key="eve")
    assert (rejected.subject, rejected.key, rejected.fault) == ("e/label", "eve", "unknown")
    assert len(loops.loops) == 0


def test_a_log_of_an_unknown_key_is_refused_by_its_name(loops):
    _, line = loops.on_event(event("ann", y="a"), 0.0)
    fresh = KeyedLoops(ScriptedLearner())
    with pytest.raises(ValueError, match="log must be of keys that were seen, got 'ann'"):
        fresh.retract("ann", [line], now=1.0)


def test_malformed_input_of_a_new_key_gets_no_learner(loops):
    [rejected] = loops.on_event(event("eve", event_id=""), 0.0)
    assert (rejected.fault, rejected.key) == ("malformed", "eve")
    [rejected] = loops.on_event(event(["eve"]), 0.0)
    assert (rejected.fault, rejected.key) == ("malformed", None)
    [rejected] = loops.on_answer(answer(["eve"]), 0.0)
    assert (rejected.fault, rejected.key) == ("malformed", None)
    assert len(loops.loops) == 0


def test_cancellation_finds_the_loop_of_its_key(loops):
    for key in KEYS:
        loops.on_event(event(key), 0.0)
    [cancel] = loops.on_cancel("e/label", 1.0, key="bob", why="enough")
    assert (cancel.key, cancel.why) == ("bob", "enough")
    [rejected] = loops.on_cancel("e/label", 1.0, key="bob")
    assert (rejected.key, rejected.fault) == ("bob", "ended")


def test_time_passes_in_every_key_in_the_order_of_the_deadlines(loops):
    for key, at in ((None, 3.0), ("ann", 1.0), ("bob", 2.0)):
        loops.on_event(event(key, at=at), at)
    assert loops.next_deadline() == 11.0
    assert loops.on_time(11.0) == []
    assert [m.key for m in loops.on_time(12.5)] == ["ann", "bob"]
    assert loops.next_deadline() == 13.0
    assert [m.key for m in loops.on_time(200.0)] == [None]
    assert loops.next_deadline() is None


def test_misuse_raises(loops):
    with pytest.raises(TypeError, match="on_event takes an Event, got None"):
        loops.on_event(None, 0.0)
    with pytest.raises(TypeError, match="on_answer takes an Answer, got None"):
        loops.on_answer(None, 0.0)
    for call in (
        lambda: loops.on_event(event(None), float("nan")),
        lambda: loops.on_answer(answer(None), float("nan")),
        lambda: loops.on_time(float("nan")),
        lambda: loops.on_cancel("e/label", float("nan")),
    ):
        with pytest.raises(ValueError, match="now must be a finite number of seconds, got nan"):
            call()
    with pytest.raises(ValueError, match="answer_horizon_s must be a positive number of seconds"):
        KeyedLoops(ScriptedLearner(), answer_horizon_s=-1.0)
    with pytest.raises(ValueError, match="expires_after_s must be a positive number of seconds"):
        KeyedLoops(ScriptedLearner(), expires_after_s=0.0)


STEP = st.tuples(
    st.sampled_from(KEYS),
    st.sampled_from(["event", "answer", "cancel"]),
    st.sampled_from(["e1", "e2"]),
    st.sampled_from(["a", "b"]),
)


def play(loops, steps):
    """Each key's inputs have the times 1, 2, 3, ...; returns the messages of each key."""
    clock = dict.fromkeys(KEYS, 0.0)
    out = {key: [] for key in KEYS}
    for key, kind, event_id, y in steps:
        clock[key] += 1.0
        now = clock[key]
        if kind == "event":
            out[key] += loops.on_event(event(key, event_id, now), now)
        elif kind == "answer":
            given = answer(key, y, now, event_id, answer_id=f"a{now}")
            out[key] += loops.on_answer(given, now)
        else:
            out[key] += loops.on_cancel(f"{event_id}/label", now, key=key)
    for message in loops.on_time(50.0):
        out[message.key].append(message)
    return out


@given(st.lists(STEP, max_size=30), st.randoms(use_true_random=False))
def test_interleaving_of_keys_only_permutes_messages(steps, random):
    queues = {key: [s for s in steps if s[0] == key] for key in KEYS}
    order = [s[0] for s in steps]
    random.shuffle(order)
    shuffled = [queues[key].pop(0) for key in order]
    learner = ScriptedLearner(contests=lambda event_id: event_id == "e2")
    one, other = (
        play(KeyedLoops(learner, expires_after_s=5.0, answer_horizon_s=20.0), s)
        for s in (steps, shuffled)
    )
    assert one == other


@given(st.lists(STEP, max_size=30))
def test_each_key_sounds_like_a_loop_of_its_own(steps):
    learner = ScriptedLearner(contests=lambda event_id: event_id == "e2")
    spans = {"expires_after_s": 5.0, "answer_horizon_s": 20.0}
    together = play(KeyedLoops(learner, **spans), steps)
    for key in KEYS:
        mine = [s for s in steps if s[0] == key]
        if any(kind == "event" for _, kind, *_ in mine):
            # A key is known from its first event on.
            first = next(n for n, s in enumerate(mine) if s[1] == "event")
            alone = play(InteractiveLoop(learner.clone(), **spans), mine)[key]
            assert together[key][first:] == alone[first:]


def test_next_deadline_is_the_earliest_of_all_keys():
    loops = KeyedLoops(ScriptedLearner(), expires_after_s=10.0)
    for n in range(200):
        key = f"k{n % 7}"
        now = float(n)
        loops.on_time(now)
        messages = loops.on_event(event(key, f"e{n}", now), now)
        assert isinstance(messages[0], Prediction)
        if n % 3:
            [example] = loops.on_answer(answer(key, "a", now, f"e{n}", f"a{n}"), now)
            assert isinstance(example, LabelledExample)
        deadlines = [d for loop in loops.loops.values() if (d := loop.next_deadline()) is not None]
        assert loops.next_deadline() == min(deadlines, default=None)


def test_garbage_under_a_new_key_leaves_no_learner_behind():
    loops = KeyedLoops(isgp(seed=1))
    [message] = loops.on_event(Event(event_id="e", key="k", x={"a": 1e200}, occurred_at=0.0), 0.0)
    assert (message.fault, dict(loops.loops)) == ("malformed", {})


@pytest.mark.parametrize("key", [[], 5])
def test_cancelling_under_a_key_that_is_none_is_rejected(key):
    [message] = KeyedLoops(isgp(seed=1)).on_cancel("e/label", 0.0, key=key)
    assert message.fault == "unknown"


def test_an_event_is_known_as_long_as_it_is_remembered_wherever_its_loop_is():
    loops = KeyedLoops(isgp(seed=1), answer_horizon_s=100.0, max_keys=1)
    for key in ("ann", "bob"):
        loops.on_event(event(key), 0.0)
    assert list(loops.loops) == ["bob"]
    assert [loops.knows(key) for key in ("ann", "bob", "eve")] == [True, True, False]
    assert [loops.knows(key, "e") for key in ("ann", "bob", "eve")] == [True, True, False]
    assert not loops.knows("ann", "f")
    assert list(loops.loops) == ["bob"]  # to ask changes nothing
    loops.on_time(101.0)
    assert (loops.knows("bob"), loops.knows("bob", "e")) == (True, False)


def test_every_new_key_has_a_clone_of_its_own_whether_or_not_the_model_can_be_pickled():
    class Unpicklable(SkepticalClassifier):
        """A class that no pickle can name."""

    for model in (isgp(seed=1), Unpicklable(GPClassifier(), seed=1)):
        loops = KeyedLoops(model)
        for key in ("ann", "bob"):
            alone = InteractiveLoop(model.clone())
            for n in range(3):
                one = event(key, f"e{n}", float(n), y="hall")
                assert loops.on_event(one, one.occurred_at) == alone.on_event(one, one.occurred_at)
        ann, bob = loops.loops["ann"].model, loops.loops["bob"].model
        assert ann is not bob
        assert ann.state() == bob.state()


@pytest.mark.parametrize("max_keys", [None, 2])
def test_loops_that_are_pickled_go_on_as_they_would_have(max_keys):
    """Also where the learners of other keys have to leave."""
    loops = KeyedLoops(isgp(seed=1), max_keys=max_keys)
    for n in range(12):
        copy = pickle.loads(pickle.dumps(loops))
        key = ("ann", "bob", "cleo")[7 * n % 5 % 3]
        one = event(key, f"e{n}", float(n), y="hall" if n % 2 else None)
        assert copy.on_event(one, float(n)) == loops.on_event(one, float(n))
        assert copy.learner(key).state() == loops.learner(key).state()
        if n % 3 == 0:
            loops = copy


def test_clones_that_draw_a_seed_of_their_own_are_no_copies():
    model = isgp()
    assert copier(model) == model.clone


def test_learner_of_a_key_is_looked_at_where_it_is():
    loops = KeyedLoops(isgp(seed=1), max_keys=1)
    for key in ("ann", "bob"):
        loops.on_event(event(key, y="a"), 0.0)
    assert [loops.learner(key).n_learned for key in ("ann", "bob")] == [1, 1]
    assert loops.learner("eve") is None
    assert list(loops.loops) == ["bob"]
    one = KeyedLoops(isgp(seed=1), keyed=False)
    assert one.learner("ann") is one.learner("bob") is one.loops[None].model
