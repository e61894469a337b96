"""The loops of many keys are published by what has changed, wherever they are."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp import GPClassifier, SkepticalClassifier, isgp, query
from streamgp.interactive import Answer, Event, InteractiveLoop, KeyedLoops, SnapshotError
from streamgp.interactive.loop_cache import MemoryStore
from tests.helpers.laws import examples
from tests.interactive.scripted import ScriptedLearner
from tests.interactive.stories import Story, told
from tests.interactive.topics import PublishedState, pages_of

LABELS = ("a", "b", "c")
KEYS = ["ann", "bob", "cid", "", None]
SPANS = {"expires_after_s": 5.0, "answer_horizon_s": 30.0}
FIRST = {"head", "events/1"}
seeds = st.integers(0, 10**6)


def model():
    review = query.LeaveOneOutReview(0.2, every=3)
    return SkepticalClassifier(GPClassifier(), warm_up=8, review=review, seed=3)


def as_they_are(loops):
    """The snapshot of every key's loop, where it is."""
    cache = loops._cache
    keys = {*cache.ready, *cache._store.keys()}
    return {key: cache.look_up(key).snapshot() for key in keys}


class StateChangelog:
    """Keyed loops in the stories of several keys, now and then published and snapshot."""

    def __init__(self, seed, max_keys):
        self.rng = random.Random(seed)
        self.max_keys = max_keys
        self.loops = KeyedLoops(model(), **SPANS, max_keys=max_keys, keep_changes=True)
        self.stories = {key: Story(seed, key=key, labels=LABELS) for key in KEYS}
        self.said = {key: [] for key in KEYS}
        self.topics = {}
        self.wall = 0.0
        self.save()

    def save(self):
        ends = {key: topics.end for key, topics in self.topics.items()}
        self.saved = (self.loops.snapshot(), ends)

    def next(self):
        """The next input and its key, after the time of that input was told."""
        key = self.rng.choice(KEYS)
        step = self.stories[key].next(self.said[key])
        self.wall = max(self.wall, step[2])
        return key, step

    def step(self):
        rng = self.rng
        key, step = self.next()
        messages = self.loops.on_time(self.wall)
        lines = self.topics[key].lines if key in self.topics else []
        if rng.random() < 0.05 and lines:
            messages += self.loops.withdraw(key, rng.choice(lines).event_id, self.wall)
        elif rng.random() < 0.02:
            self.publish(messages)
            messages = []
            if self.loops.forget(key):
                self.topics[key].forget()
                self.saved = None
        else:
            self.said[key] = told(self.loops, step, key=key)
            messages += self.said[key]
        self.note(messages)
        if rng.random() < 0.3:
            self.publish()
        if rng.random() < 0.1:
            self.save()

    def note(self, messages):
        for message in messages:
            self.topics.setdefault(message.key, PublishedState()).note([message])

    def publish(self, messages=()):
        self.note(messages)
        has_changed, found = self.loops.has_changed, self.loops.changes()
        assert has_changed == bool(found)
        for key, parts in found.items():
            self.topics.setdefault(key, PublishedState()).write(parts)
        assert not self.loops.has_changed
        assert self.loops.changes() == {}

    def again(self, loops, starts):
        """Bring loops up to what was published."""
        for key, topics in self.topics.items():
            n_parts, n_lines = starts.get(key, (0, 0))
            parts = topics.parts_since(n_parts)
            loops.take_over(key, parts, topics.lines_since(n_lines, self.rng))
        assert loops.changes() == {}
        return loops

    def cut(self):
        self.publish()
        max_keys = self.rng.choice([1, 2, 3, None])
        loops = KeyedLoops(model(), **SPANS, max_keys=max_keys, keep_changes=True)
        yield self.again(loops, {})
        if self.saved is not None:
            data, starts = self.saved
            max_keys = None if self.max_keys is None else self.rng.randint(1, 3)
            loops = KeyedLoops.restore(data, model(), max_keys=max_keys, keep_changes=True)
            yield self.again(loops, starts)


@examples(3)
@given(
    seed=seeds,
    max_keys=st.sampled_from([1, 2, 3, None]),
    recent=st.sampled_from([0, 500, 1 << 10]),
    every=st.integers(10, 80),
)
def test_what_was_published_last_makes_all_loops_again(seed, max_keys, recent, every):
    published = StateChangelog(seed, max_keys)
    with pages_of(700, recent=recent):
        for n in range(1, 161):
            published.step()
            if n % every == 0:
                again = list(published.cut())
                expected = as_they_are(published.loops)
                for loops in again:
                    assert as_they_are(loops) == expected
                    assert loops.n_keys == published.loops.n_keys


@examples(3)
@given(seed=seeds, max_keys=st.sampled_from([1, 2, 3, None]))
def test_loops_made_again_say_the_same_from_then_on(seed, max_keys):
    published = StateChangelog(seed, max_keys)
    for _ in range(80):
        published.step()
    every = [published.loops, *published.cut()]
    for _ in range(60):
        key, step = published.next()
        ended = [sorted(map(repr, loops.on_time(published.wall))) for loops in every]
        assert ended == [ended[0]] * len(every)
        said = [told(loops, step, key=key) for loops in every]
        assert [repr(s) for s in said] == [repr(said[0])] * len(every)
        published.said[key] = said[0]


# --- changed and unchanged parts


@pytest.fixture(autouse=True)
def pages_at_once():
    """Put every conversation on a page when it is published first, but in the laws above."""
    with pages_of():
        yield


def event(name="e", key="ann", at=0.0, **fields):
    return Event(event_id=name, key=key, x={"f": 1.0}, occurred_at=at, **fields)


def answer(y="a", name="e", key="ann", at=1.0, answer_id="a1"):
    return Answer(answer_id=answer_id, event_id=name, key=key, y=y, answered_at=at)


def asking():
    return SkepticalClassifier(
        GPClassifier(), query.AlwaysAsk(), challenge=query.NeverChallenge(), warm_up=0, seed=1
    )


def names(changes):
    return {key: set(parts) for key, parts in changes.items()}


def filled(max_keys=None, **options):
    """Loops of three keys with an open request each, all published."""
    loops = KeyedLoops(
        asking(),
        expires_after_s=10.0,
        answer_horizon_s=100.0,
        max_keys=max_keys,
        keep_changes=True,
        **options,
    )
    for key in ("ann", "bob", "cid"):
        loops.on_event(event(key=key), 0.0)
    assert names(loops.changes()) == dict.fromkeys(("ann", "bob", "cid"), FIRST)
    return loops


every_size = pytest.mark.parametrize("max_keys", [None, 1])


@every_size
def test_only_keys_that_something_happened_to_are_returned(max_keys):
    loops = filled(max_keys)
    loops.on_answer(answer(key="bob"), 1.0)
    loops.on_event(event("f", "cid"), 1.0)
    assert names(loops.changes()) == {"bob": {"head", "events/1"}, "cid": {"head", "events/2"}}
    assert loops.changes() == {}


@every_size
@pytest.mark.parametrize(
    "read",
    [
        lambda loops: loops.on_event(event(), 1.0),
        lambda loops: loops.on_event(event("", "dan"), 1.0),
        lambda loops: loops.on_event(
            Event(event_id="g", key="ann", x={("odd", 1): 1.0}, occurred_at=0.0), 0.0
        ),
        lambda loops: loops.on_answer(answer(name="unknown"), 1.0),
        lambda loops: loops.on_answer(answer(key="dan"), 1.0),
        lambda loops: loops.on_cancel("e/challenge/1", 1.0, key="ann"),
        lambda loops: loops.on_time(10.0),
        lambda loops: loops.forget("dan"),
        lambda loops: (loops.snapshot(), loops.next_deadline(), loops.n_keys),
    ],
)
def test_a_key_that_is_only_read_is_not_returned(max_keys, read):
    loops = filled(max_keys)
    read(loops)
    assert loops.changes() == {}


@every_size
def test_timers_withdrawals_and_cancellations_are_changes(max_keys):
    loops = filled(max_keys)
    loops.on_cancel("e/label", 1.0, key="ann")
    assert names(loops.changes()) == {"ann": {"head", "events/1"}}
    assert len(loops.on_time(11.0)) == 2
    assert names(loops.changes()) == {"bob": FIRST, "cid": FIRST}
    loops.on_event(event("f", at=12.0, y="a"), 12.0)
    loops.changes()
    [line] = loops.withdraw("ann", "f", 13.0, revision=0)
    assert (line.key, line.y, line.sequence) == ("ann", None, 2)
    assert names(loops.changes()) == {"ann": {"head", "events/2"}}


def test_what_a_loop_in_the_store_forgets_is_a_change_when_it_comes_back():
    loops = filled(max_keys=1)
    loops.on_time(11.0)
    loops.changes()
    loops.on_time(150.0)
    assert "ann" not in loops.changes()
    [rejected] = loops.on_answer(answer(at=150.0), 150.0)
    assert rejected.fault == "unknown"
    assert loops.changes()["ann"]["events/1"] is None


def test_of_a_part_that_changed_before_and_after_it_was_in_the_store_the_last_value_counts():
    loops = filled(max_keys=1)
    loops.on_event(event("f", at=1.0), 1.0)
    loops.on_event(event("f", "bob", 1.0), 1.0)
    loops.on_answer(answer(name="f", at=2.0), 2.0)
    loops.on_event(event("g", "bob", 2.0), 2.0)
    parts = loops.changes()["ann"]
    assert set(parts) == {"events/2", "head"}
    assert [plain[5] for plain in parts["events/2"]] == ["learned"]
    assert parts["head"]["sequence"] == 1


def test_changes_of_a_loop_that_the_store_refuses_are_kept():
    class Full(MemoryStore):
        def put(self, key, data):  # noqa: ARG002
            raise OSError("no space left")

    loops = KeyedLoops(asking(), max_keys=1, store=Full(), keep_changes=True)
    loops.on_event(event(), 0.0)
    with pytest.raises(OSError, match="no space left"):
        loops.on_event(event(key="bob"), 0.0)
    assert names(loops.changes()) == {"ann": FIRST, "bob": FIRST}


@every_size
def test_all_parts_of_a_forgotten_key_are_gone(max_keys):
    loops = filled(max_keys)
    loops.on_event(event("f"), 1.0)
    loops.changes()
    assert loops.forget("ann")
    assert loops.changes() == {"ann": dict.fromkeys(("events/1", "events/2", "head"))}
    assert not loops.forget("ann")
    assert loops.changes() == {}


@every_size
def test_changes_of_a_key_that_is_forgotten_meanwhile_are_not_told(max_keys):
    loops = filled(max_keys)
    loops.on_event(event("f"), 1.0)
    loops.on_event(event("f", "bob"), 1.0)
    loops.on_time(150.0)
    loops.forget("ann")
    assert set(loops.changes()["ann"].values()) == {None}


@every_size
def test_a_key_that_comes_again_after_it_was_forgotten_is_new(max_keys):
    loops = filled(max_keys)
    loops.on_event(event("f"), 1.0)
    loops.changes()
    loops.forget("ann")
    loops.on_event(event("g", at=2.0), 2.0)
    parts = loops.changes()["ann"]
    assert [plain[1] for plain in parts["events/1"]] == ["g"]
    assert parts["events/2"] is None
    assert parts["head"]["pages"] == 1


def test_changes_that_are_not_kept_cannot_be_returned():
    loops = KeyedLoops(ScriptedLearner())
    loops.on_event(event(), 0.0)
    with pytest.raises(ValueError, match="changes are not kept; make the loops with keep_changes="):
        loops.changes()
    assert loops.forget("ann")


def test_loops_that_cannot_be_published_are_refused_at_the_start():
    with pytest.raises(TypeError, match="ScriptedLearner cannot be saved; give it the methods"):
        KeyedLoops(ScriptedLearner(), keep_changes=True)


def test_nothing_can_be_withdrawn_from_a_key_that_nobody_knows():
    loops = filled()
    assert loops.withdraw("dan", "e", 1.0) == loops.withdraw([], "e", 1.0) == []
    with pytest.raises(ValueError, match="now must be a finite number of seconds, got nan"):
        loops.withdraw("ann", "e", float("nan"))


# --- taking over


def published(loops):
    """All that loops have published, as if all of it had changed."""
    return {key: loop.parts() for key, loop in loops.loops.items()}


@every_size
def test_what_is_taken_over_is_no_change(max_keys):
    there = filled()
    here = KeyedLoops(asking(), max_keys=max_keys, keep_changes=True, answer_horizon_s=100.0)
    for key, parts in published(there).items():
        here.take_over(key, parts, [])
    assert (here.changes(), here.n_keys) == ({}, 3)
    assert here.next_deadline() == 10.0
    assert [m.key for m in here.on_time(10.5)] == ["ann", "bob", "cid"]


@every_size
def test_a_known_key_takes_over_what_happened_since(max_keys):
    there = filled(max_keys)
    here = KeyedLoops.restore(there.snapshot(), asking(), max_keys=max_keys, keep_changes=True)
    lines = there.on_answer(answer(), 1.0)
    parts = there.changes()["ann"]
    for _ in range(2):  # once more changes nothing
        here.take_over("ann", parts, lines)
        assert as_they_are(here) == as_they_are(there)
    assert here.n_keys == 3
    assert max_keys is None or list(here.loops) == ["ann"]


@every_size
def test_a_key_of_which_nothing_is_left_is_forgotten(max_keys):
    there = filled(max_keys)
    here = KeyedLoops.restore(there.snapshot(), asking(), max_keys=max_keys, keep_changes=True)
    there.forget("ann")
    for key, parts in there.changes().items():
        here.take_over(key, parts, [])
    assert here.n_keys == 2
    assert as_they_are(here) == as_they_are(there)
    assert here.changes() == {}
    here.take_over("ann", {"head": None, "events/1": None}, [])
    assert here.n_keys == 2
    assert [m.key for m in here.on_time(11.0)] == ["bob", "cid"]


@every_size
def test_nothing_to_take_over_makes_no_key(max_keys):
    loops = filled(max_keys)
    before = as_they_are(loops)
    for key in ("ann", "dan"):
        loops.take_over(key, {}, [])
    assert loops.n_keys == 3
    assert as_they_are(loops) == before


@every_size
def test_a_key_is_left_as_it_is_by_what_does_not_fit(max_keys):
    loops = filled(max_keys)
    before = as_they_are(loops)
    for key in ("ann", "dan"):
        with pytest.raises(SnapshotError, match="published state cannot be taken up: there is no"):
            loops.take_over(key, {"events/1": []}, [])
    other = InteractiveLoop(isgp(seed=1)).parts()
    with pytest.raises(SnapshotError, match="cannot be taken up: it is of another configuration"):
        loops.take_over("ann", other, [])
    assert loops.n_keys == 3
    assert as_they_are(loops) == before


def test_what_is_taken_over_stays_until_it_was_used_least_recently():
    there = filled()
    here = KeyedLoops(asking(), max_keys=2, keep_changes=True)
    parts = published(there)
    for key in ("ann", "bob", "ann", "cid"):
        here.take_over(key, parts[key], [])
    assert list(here.loops) == ["ann", "cid"]
