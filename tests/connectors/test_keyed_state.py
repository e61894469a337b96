"""The state of one key under an engine says and keeps what a worker does."""

import dataclasses
import json
import re
from collections import defaultdict
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from connectors.keyed_state import (
    KeyedState,
    MemoryKeyStore,
    entity_of,
    failed_in_partition,
    failed_of,
    shared_records,
    state_for_workers,
)
from connectors.topics import Record
from connectors.wire.codec import encode
from connectors.wire.state_records import state
from connectors.worker.compatibility import UnfitTopicsError
from connectors.worker.settings import LoopSettings
from streamgp import GPClassifier, SkepticalClassifier, isgp
from streamgp.budgets import AtMost
from streamgp.interactive.messages import Answer
from streamgp.interactive.people import People
from streamgp.query import NeverChallenge
from tests.connectors.worker.test_deletions import stubborn
from tests.helpers.conversations import MOVES, OnWorker, by_entity, conversation
from tests.helpers.laws import examples
from tests.interactive.test_quarantine import told

GROUP = "rooms"
KEYS = ("ann", "bob", "cy")


def settings(**given):
    spans = {"expires_after_s": 30.0, "answer_horizon_s": 200.0}
    return LoopSettings(**{"model": isgp(seed=1), **spans, **given})


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


CONFIGURATION, FORGOTTEN = b"\x1fconfiguration", b"\x1fforgotten"


def taken_over(worker):
    """Return an engine that has what a worker keeps, each key its own."""
    engine = KeyByKey()
    kept = {(topic, key): value for topic, key, value in worker.store.items()}
    configuration = kept.pop(("state", CONFIGURATION))
    failed = failed_of(kept.pop(("state", FORGOTTEN), None))
    for (topic, key), value in kept.items():
        store = engine.stores[entity_of(topic, key, keyed=True)]
        store.put(topic, key, value)
        for each in shared_records(configuration, failed, key.split(b"\x1f")[0].decode()):
            store.put(*each)
    return engine


def handed_back(engine, worker):
    """Return a worker that has what an engine keeps, and the partition's own record."""
    after = OnWorker(engine.settings, GROUP)
    items = [item for store in engine.stores.values() for item in store.items()]
    kept = {key: value for _, key, value in worker.store.items()}
    after.store.put("state", CONFIGURATION, kept[CONFIGURATION])
    for store in engine.stores.values():
        for key, value in state_for_workers(store.items()):
            after.store.put("state", key, value)
    for topic, key, value in items:
        if topic == "consensus":
            after.store.put(topic, key, value)
    failed, own = failed_in_partition({key: v for t, key, v in after.store.items() if t == "state"})
    forgotten = state("", "forgotten", {"n": 1, "heeded": 0, "failed": failed}, 0)
    after.store.put("state", FORGOTTEN, forgotten.value)
    for key in own:
        after.store.put("state", key, None)
    after.partition.bring_up(after.history(0))
    return after


@examples(10)
@given(moves, st.integers(0, 60), st.integers(0, 60))
def test_what_moves_from_a_worker_to_an_engine_and_back_goes_on_as_if_it_had_stayed(
    moves, one_cut, other_cut
):
    steps = conversation([("ann", "labelled"), *moves])
    there, back = sorted((1 + one_cut % len(steps), 1 + other_cut % len(steps)))
    stayed, moved = OnWorker(settings(), GROUP), OnWorker(settings(), GROUP)
    for record, now in steps:
        stayed.step(record, now)
    for record, now in steps[:there]:
        moved.step(record, now)
    engine = taken_over(moved)
    for record, now in steps[there:back]:
        engine.step(record, now)
    after = handed_back(engine, moved)
    for record, now in steps[back:]:
        after.step(record, now)
    written = [*moved.written, *engine.written, *after.written]
    assert by_entity(written) == by_entity(stayed.written)
    assert without_partition(after.store.items()) == without_partition(stayed.store.items())


def by_annotators(steps):
    """Name the annotator of each answer; corrections are about the first answer to their event."""
    first = {}
    for record, now in steps:
        if record is not None and record.topic == "answers":
            value = json.loads(record.value)
            value["annotator"] = ("ada", "ben", "cyd")[record.offset % 3]
            answer_id = first.setdefault((record.key, value["event_id"]), value["answer_id"])
            if value["y"] == "shop":
                value["supersedes"] = answer_id
            record = replace(record, value=json.dumps(value).encode())
        yield record, now


@pytest.mark.parametrize(
    ("people", "text"),
    [
        (People(), b"may not change, confirm or decline it"),
        (People(max_labels=1), b"raise max_labels"),
    ],
)
def test_rules_for_people_hold_as_on_a_worker(people, text):
    made = settings(people=people)
    worker, engine = OnWorker(made, GROUP), KeyByKey(made)
    moves = [*("event", "answer", "correct", "correct", "correct", "early", "early"), "wait"]
    steps = conversation([(key, move) for move in moves * 6 for key in KEYS[:2]])
    for n, (record, now) in enumerate(by_annotators(steps)):
        if n % 5 == 0:
            engine.fail()
        worker.step(record, now)
        engine.step(record, now)
    assert by_entity(engine.written) == by_entity(worker.written)
    said = {dict(r.headers)["dlq.error"] for r in engine.written if r.topic == "dead-letters"}
    assert any(text in each for each in said)


def test_what_a_liar_has_taught_is_taken_back_as_on_a_worker():
    model = SkepticalClassifier(GPClassifier(), challenge=NeverChallenge(), seed=1)
    made = LoopSettings(model=model)
    worker, engine = OnWorker(made, GROUP), KeyByKey(made)
    for n in range(90):
        event, by, y = told(n)
        answer = Answer(
            answer_id=f"a{n}", event_id=event.event_id, key="k", y=y, annotator=by,
            answered_at=float(n),
        )  # fmt: skip
        for topic, message in (
            ("events", dataclasses.replace(event, key="k")),
            ("answers", answer),
        ):
            record = Record(
                topic=topic, partition=0, offset=n, key=b"k", value=encode(message), at=float(n)
            )
            if n % 20 == 0:
                engine.fail()
            worker.step(record, float(n))
            engine.step(record, float(n))
    assert by_entity(engine.written) == by_entity(worker.written)
    kept = engine.stores[b"k"].items()
    assert without_partition(kept) == without_partition(worker.store.items())
    taken_back = [json.loads(value) for _, key, value in kept if b"retracted/eve/" in key]
    assert [one["value"]["annotator"] for one in taken_back] == ["eve"]
    assert not [key for _, key, value in kept if b'"annotator":"eve"' in value and b"/" not in key]


def test_a_null_that_could_not_be_heeded_moves_with_its_key():
    kept = shared_records(b"{}", {"ann": 2}, "ann")
    assert shared_records(b"{}", {"ann": 2}, "bob") == kept[:1]
    ((key, value),) = state_for_workers(kept)
    assert failed_in_partition({key: value}) == ({"ann": 2}, [b"ann\x1funheeded"])


def test_nulls_of_several_keys_that_could_not_be_heeded_all_come_back_to_the_worker():
    # One record for all would be the last key's, and of the others an example would be missing.
    made = settings(model=stubborn())
    worker, engine = OnWorker(made, GROUP), KeyByKey(made)
    moves = [(key, move) for key in KEYS[:2] for move in ("labelled", "withdraw")]
    for record, now in conversation(moves):
        worker.step(record, now)
        engine.step(record, now)
    letters = [each for each in engine.written if each.topic == "dead-letters"]
    assert [b"is not forgotten" in dict(each.headers)["dlq.error"] for each in letters] == [
        True
    ] * 2
    after = handed_back(engine, worker)
    assert after.partition.n_failed == worker.partition.n_failed == {"ann": 1, "bob": 1}
    assert not [key for _, key, _ in after.store.items() if b"unheeded" in key]


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
