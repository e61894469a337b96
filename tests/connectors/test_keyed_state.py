"""The state of one key under an engine says and keeps what a worker does."""

import re
from collections import defaultdict
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.keyed_state import KeyedState, MemoryKeyStore, entity_of
from connectors.worker.compatibility import UnfitTopicsError
from connectors.worker.settings import LoopSettings
from streamgp import isgp
from streamgp.budgets import AtMost
from tests.helpers.conversations import MOVES, OnWorker, by_entity, conversation
from tests.helpers.laws import examples

GROUP = "rooms"
KEYS = ("ann", "bob", "cy")


def settings(**given):
    spans = {"expires_after_s": 30.0, "answer_horizon_s": 200.0}
    return LoopSettings(model=isgp(seed=1), **{**spans, **given})


class Unordered(MemoryKeyStore):
    """A store whose order says nothing."""

    def items(self):
        return sorted(super().items(), key=lambda item: crc32(item[1]))


class KeyByKey:
    """An engine that keeps a store for each key, in no order, and may lose loops in memory."""

    def __init__(self, made=None):
        self.settings = settings() if made is None else made
        self.stores = defaultdict(Unordered)
        self.live = {}
        self.written = []

    def state(self, entity, now):
        if entity not in self.live:
            self.live[entity] = KeyedState(
                0, self.settings, self.stores[entity], group=GROUP, names={}, now=now
            )
        return self.live[entity]

    def step(self, record, now):
        if record is not None:
            entity = entity_of(record.topic, record.key, keyed=True)
            self.written += self.state(entity, now).step(record, now)
            return
        for entity in list(self.stores):
            state = self.state(entity, now)
            deadline = state.next_deadline()
            if deadline is not None and deadline < now:
                self.written += state.on_time(now)

    def fail(self):
        self.live.clear()


def without_partition(items):
    """Leave out what belongs to a partition, not to a key."""
    return {(t, k): v for t, k, v in items if not k.startswith(b"\x1f")}


moves = st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(MOVES)), max_size=60)


@examples(15)
@given(moves, st.sets(st.integers(0, 60), max_size=5))
def test_key_by_key_says_and_keeps_what_a_worker_does(moves, failures):
    worker, engine = OnWorker(settings(), GROUP), KeyByKey()
    for n, (record, now) in enumerate(conversation(moves)):
        if n in failures:
            engine.fail()
        worker.step(record, now)
        engine.step(record, now)
    assert by_entity(engine.written) == by_entity(worker.written)
    kept = [item for store in engine.stores.values() for item in store.items()]
    assert without_partition(kept) == without_partition(worker.store.items())


@pytest.fixture(scope="module")
def long_conversation():
    """Every kind of move in many places, the same in every run."""
    n = len(MOVES)
    return conversation([(KEYS[i % 3], MOVES[(7 * i + i // 11) % n]) for i in range(300)])


def test_a_long_conversation_with_everything_in_it(long_conversation):
    worker, engine = OnWorker(settings(), GROUP), KeyByKey()
    for n, (record, now) in enumerate(long_conversation):
        if n % 37 == 0:
            engine.fail()
        worker.step(record, now)
        engine.step(record, now)
    assert by_entity(engine.written) == by_entity(worker.written)
    topics = {each.topic for each in engine.written}
    assert topics == {"predictions", "requests", "consensus", "dead-letters"}
    said = b"".join(each.value or b"" for each in engine.written)
    for what in (b"label.request", b"label.challenge", b"label.cancel", b"expired"):
        assert re.search(b'"type":"' + what, said), what


def test_a_deadline_is_the_next_of_requests_and_of_answers_that_wait():
    engine = KeyByKey()
    steps = conversation([("ann", "event"), ("bob", "event"), ("bob", "early")])
    for record, now in steps:
        engine.step(record, now)
    ann, bob = (engine.live[key].next_deadline() for key in (b"ann", b"bob"))
    assert (ann, bob) == (1001.0 + 30.0, 1002.0 + 30.0)
    engine.step(None, 1040.0)
    assert engine.live[b"bob"].next_deadline() == 1003.0 + 60.0  # an answer waits a minute


def test_a_forgotten_key_leaves_nothing():
    engine = KeyByKey()
    for record, now in conversation([("ann", "labelled")] * 3 + [("ann", "forget")]):
        engine.step(record, now)
    assert engine.stores[b"ann"].items() == []
    assert engine.live[b"ann"].next_deadline() is None


def test_state_of_another_configuration_is_refused():
    engine = KeyByKey()
    for record, now in conversation([("ann", "labelled")]):
        engine.step(record, now)
    other = KeyByKey(LoopSettings(model=isgp(seed=2)))
    other.stores = engine.stores
    with pytest.raises(UnfitTopicsError, match="another configuration"):
        other.state(b"ann", 0.0)


def test_a_total_budget_is_refused_in_words():
    with pytest.raises(ValueError, match=r"counts for all keys .* put the limit into \[budget\]"):
        KeyByKey(settings(total_budget=AtMost(3))).state(b"ann", 0.0)


def test_one_loop_for_all_keys_is_one_state():
    assert entity_of("events", b"ann", keyed=False) == entity_of("answers", b"bob", keyed=False)
