"""One loop for all keys stands where keyed loops can."""

import pytest

from streamgp import GPClassifier, SkepticalClassifier, query
from streamgp.interactive import Answer, Event, KeyedLoops
from streamgp.interactive.state.snapshot import SnapshotError
from tests.interactive.scripted import ScriptedLearner


def model():
    return SkepticalClassifier(
        GPClassifier(), query.AlwaysAsk(), challenge=query.NeverChallenge(), warm_up=0, seed=1
    )


def event(name="e", key="ann", at=0.0, **fields):
    return Event(event_id=name, key=key, x={"f": 1.0}, occurred_at=at, **fields)


def one_loop(**options):
    return KeyedLoops(model(), keyed=False, keep_changes=True, **options)


@pytest.fixture
def loops():
    loops = one_loop(expires_after_s=10.0, answer_horizon_s=100.0)
    loops.on_event(event(y="a"), 0.0)
    return loops


def test_several_loops_are_needed_to_put_some_away_or_to_share_a_budget():
    for option in ({"max_keys": 1}, {"total_budget": query.AtMost(1)}):
        with pytest.raises(ValueError, match="one loop for all keys takes neither max_keys nor"):
            KeyedLoops(model(), keyed=False, **option)


def test_a_snapshot_of_one_loop_is_no_snapshot_of_loops_by_key(loops):
    for data, keyed in ((loops.snapshot(), True), (KeyedLoops(model()).snapshot(), False)):
        with pytest.raises(SnapshotError, match="loop"):
            KeyedLoops.restore(data, model(), keyed=keyed)


def test_all_keys_talk_to_one_learner(loops):
    prediction, request = loops.on_event(event("f", "bob"), 1.0)
    assert (prediction.y, request.key) == ("a", "bob")
    given = Answer(answer_id="1", event_id="f", key="bob", y="b", answered_at=2.0)
    [line] = loops.on_answer(given, 2.0)
    assert (line.key, line.sequence) == ("bob", 2)
    assert loops.model.n_learned == 0


def test_cancellations_and_timers_pass_through(loops):
    loops.on_event(event("f", "bob"), 1.0)
    loops.on_event(event("g", "bob"), 2.0)
    [cancel] = loops.on_cancel("f/label", 3.0, key="bob", why="enough")
    assert (cancel.key, cancel.why) == ("bob", "enough")
    assert loops.next_deadline() == 12.0
    [expired] = loops.on_time(13.0)
    assert (expired.request_id, expired.key) == ("g/label", "bob")


def test_the_open_requests_of_a_key_are_those_of_the_one_loop(loops):
    loops.on_event(event("f", key="bob"), 0.0)
    assert loops.open_requests("bob") == loops.open_requests(None) == ["f/label"]


def test_changes_stand_under_no_key(loops):
    assert {key: list(parts) for key, parts in loops.changes().items()} == {None: ["head"]}
    assert loops.changes() == {}


def test_a_label_is_withdrawn_whatever_the_key(loops):
    [line] = loops.withdraw("", "e", 1.0, revision=0)
    assert (line.key, line.y) == ("ann", None)
    assert loops.withdraw("ann", "e", 1.0) == []


def test_no_key_can_be_forgotten(loops):
    assert loops.forget("ann") is False
    assert loops.loops[None].model.n_learned == 1


def test_features_that_could_not_be_published_are_rejected(loops):
    loops.changes()
    odd = Event(event_id="g", key="ann", x={("odd", 1): 1.0}, occurred_at=0.0)
    [rejected] = loops.on_event(odd, 0.0)
    assert (rejected.fault, rejected.key) == ("malformed", "ann")
    assert "named by a string or a number can be saved" in rejected.reason
    assert loops.changes() == {}
    with pytest.raises(TypeError, match="on_event takes an Event, got None"):
        loops.on_event(None, 0.0)
    with pytest.raises(ValueError, match="now must be a finite number of seconds, got nan"):
        loops.on_event(odd, float("nan"))


def test_it_is_restored_and_takes_over_what_was_published_since(loops):
    loops.changes()
    here = KeyedLoops.restore(loops.snapshot(), model(), keyed=False, keep_changes=True)
    assert here.snapshot() == loops.snapshot()
    _, line = loops.on_event(event("f", "bob", y="b"), 1.0)
    for key, parts in loops.changes().items():
        here.take_over(key, parts, [line])
    assert here.snapshot() == loops.snapshot()
    assert here.changes() == {}


def test_it_takes_over_everything(loops):
    _, line = loops.on_event(event("f", "bob", y="b"), 1.0)
    here = one_loop(expires_after_s=10.0, answer_horizon_s=100.0)
    [first] = one_loop().on_event(event(y="a"), 0.0)[1:]
    here.take_over(None, loops.loops[None].parts(), [line, first])
    loops.changes()
    assert here.snapshot() == loops.snapshot()


def test_when_nothing_is_left_it_begins_anew(loops):
    loops.changes()
    loops.take_over(None, {"head": None, "events/1": None}, [])
    fresh = one_loop(expires_after_s=10.0, answer_horizon_s=100.0)
    assert loops.snapshot() == fresh.snapshot()


def test_it_has_nothing_of_its_own_for_a_key(loops):
    with pytest.raises(ValueError, match="has nothing of its own for a key, got 'ann'"):
        loops.take_over("ann", loops.loops[None].parts(), [])


def test_a_model_that_cannot_be_published_is_refused_at_the_start():
    with pytest.raises(TypeError, match="ScriptedLearner cannot be saved; give it the methods"):
        KeyedLoops(ScriptedLearner(), keyed=False, keep_changes=True)


def test_an_event_is_known_as_long_as_it_is_remembered(loops):
    assert (loops.knows(None), loops.knows("unknown")) == (True, True)
    assert (loops.knows("ann", "e"), loops.knows(None, "e"), loops.knows("ann", "f")) == (
        True,
        True,
        False,
    )
    loops.on_time(101.0)
    assert not loops.knows("ann", "e")
