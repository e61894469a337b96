"""The state of one key under an engine says and keeps what a worker does."""

import dataclasses
import json
import re
from collections import Counter, defaultdict
from pathlib import Path
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
from connectors.wire.inbound import retraction_key
from connectors.wire.state_records import state
from connectors.worker.compatibility import UnfitTopicsError
from connectors.worker.settings import LoopSettings
from streamgp import GPClassifier, SkepticalClassifier, __version__, isgp
from streamgp.apps.deployment.deployment import build_loops
from streamgp.budgets import AtMost
from streamgp.config.load import parse_worker
from streamgp.interactive.event_windows import EventWindows
from streamgp.interactive.messages import ASKED_AGAIN, Answer, Event
from streamgp.interactive.people import People
from streamgp.query import AlwaysAsk, NeverChallenge
from streamgp.query.budgets import AvailabilityBudget
from tests.connectors.worker.test_deletions import stubborn
from tests.helpers.conversations import MOVES, OnWorker, by_entity, conversation
from tests.helpers.laws import examples
from tests.interactive.test_quarantine import told

GOLDEN = Path(__file__).parents[1] / "golden" / "v1" / "keyed"
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


def played(made, steps, *, fails_every=7):
    """Return an engine that has said and kept what a worker does, though it fails at times."""
    worker, engine = OnWorker(made, GROUP), KeyByKey(made)
    for n, (record, now) in enumerate(steps):
        if n % fails_every == 0:
            engine.fail()
        worker.step(record, now)
        engine.step(record, now)
    assert by_entity(engine.written) == by_entity(worker.written)
    kept = [item for store in engine.stores.values() for item in store.items()]
    assert without_partition(kept) == without_partition(worker.store.items())
    return engine


def step_of(topic, message, n, now):
    """Return a message as the n-th record of its topic, and when it is taken."""
    key = message.key.encode()
    value = encode(message)
    return Record(topic=topic, partition=0, offset=n, key=key, value=value, at=now), now


def without_partition(items):
    """Leave out what belongs to a partition, not to a key."""
    return {(t, k): v for t, k, v in items if not k.startswith(b"\x1f")}


def asked_back(n, annotator, now, **given):
    key = retraction_key("k", annotator, n, **given)
    return Record(topic="consensus", partition=0, offset=n, key=key, value=None, at=now), now


def taught(n, *, without=()):
    """Return steps of three annotators who answer in turn, but for some of them."""
    steps = []
    for i in range(n):
        at, by = float(i), ("ada", "ben", "cyd")[i % 3]
        x = {"light": 0.37 * i % 1.0, "noise": float(i % 3)}
        event = Event(event_id=f"e{i}", key="k", x=x, occurred_at=at)
        answer = Answer(
            answer_id=f"a{i}", event_id=f"e{i}", key="k", y="home" if x["light"] < 0.5 else "work",
            annotator=by, answered_at=at,
        )  # fmt: skip
        steps.append(step_of("events", event, i, at))
        if by not in without:
            steps.append(step_of("answers", answer, i, at))
    return steps


def lines_of(engine):
    return {key: json.loads(v) for t, key, v in engine.stores[b"k"].items() if t == "consensus"}


def belief(engine, name):
    """Return what is predicted of one more event, and what is thought of annotators."""
    event = Event(event_id=name, key="k", x={"light": 0.45, "noise": 1.0}, occurred_at=900.0)
    engine.written.clear()
    engine.step(*step_of("events", event, 900 + len(name), 900.0))
    (said,) = [json.loads(r.value) for r in engine.written if r.topic == "predictions"]
    model = engine.state(b"k", 900.0)._partition.loops._loop("k").model
    rates = [model.error_rate(each) for each in ("ada", "ben", "cyd")]
    return said["y"], said.get("proba"), said["n_learned"], rates


@pytest.fixture
def asked_of():
    # Without questions that are open, and answers that are challenged: each answer counts alone.
    model = SkepticalClassifier(GPClassifier(), challenge=NeverChallenge(), warm_up=0, seed=1)
    return LoopSettings(model=model)


def test_a_key_goes_on_as_if_an_annotator_had_never_answered_and_comes_back(asked_of):
    steps = taught(60)
    engine = played(asked_of, [*steps, asked_back(0, "ben", 60.0)], fails_every=9)
    never = played(asked_of, taught(60, without=("ben",)))
    assert not [each for each in lines_of(engine).values() if each.get("annotator") == "ben"]
    engine.fail()
    assert belief(engine, "after") == belief(never, "after")

    back = played(
        asked_of, [*steps, asked_back(0, "ben", 60.0), asked_back(1, "ben", 61.0, undo=True)]
    )
    stayed = played(asked_of, steps)
    assert lines_of(back) == lines_of(stayed)
    assert belief(back, "after") == belief(stayed, "after")
    assert not [key for _, key, _ in back.stores[b"k"].items() if b"retracted" in key]


def test_what_was_asked_twice_or_of_a_stranger_changes_nothing(asked_of):
    once = [*taught(30), asked_back(0, "ben", 60.0)]
    engine = played(asked_of, once)
    more = [
        asked_back(1, "ben", 61.0),
        asked_back(2, "zoe", 62.0),
        asked_back(3, "zoe", 63.0, undo=True),
    ]
    again = played(asked_of, [*once, *more], fails_every=5)
    assert by_entity(again.written) == by_entity(engine.written)
    assert lines_of(again) == lines_of(engine)


def test_labels_taken_back_in_two_parts_are_put_back_together(asked_of):
    steps = taught(30)
    moments = sorted(
        each["learned_at"]
        for each in lines_of(played(asked_of, steps)).values()
        if each.get("annotator") == "ben"
    )
    parts = [asked_back(0, "ben", 60.0, since=moments[-2]), asked_back(1, "ben", 61.0)]
    first = played(asked_of, [*steps, parts[0]])
    left = [each for each in lines_of(first).values() if each.get("annotator") == "ben"]
    assert len(left) == len(moments) - 2
    back = played(asked_of, [*steps, *parts, asked_back(2, "ben", 62.0, undo=True)])
    assert lines_of(back) == lines_of(played(asked_of, steps))


def test_a_key_that_was_never_seen_or_is_forgotten_is_refused_and_leaves_nothing(asked_of):
    forget = Record(topic="consensus", partition=0, offset=1, key=b"k", value=None, at=31.0)
    engine = played(asked_of, [*taught(30), (forget, 31.0), asked_back(2, "ben", 60.0)])
    (letter,) = [r for r in engine.written if r.topic == "dead-letters"]
    assert dict(letter.headers)["dlq.error"] == b"key 'k' is not known in partition 0"
    assert engine.stores[b"k"].items() == []


def test_the_later_of_two_retractions_of_an_event_is_undone_first(asked_of):
    steps = taught(12)
    correction = Answer(
        answer_id="c", event_id="e0", key="k", y="shop", annotator="ben", supersedes="a0",
        answered_at=20.0,
    )  # fmt: skip
    people = People(supervisors=frozenset({"ben"}))
    made = dataclasses.replace(asked_of, people=people)
    steps += [
        step_of("answers", correction, 90, 20.0),
        asked_back(0, "ben", 21.0),
        asked_back(1, "ada", 22.0),
        asked_back(2, "ben", 23.0, undo=True),
    ]
    engine = played(made, steps)
    (letter,) = [r for r in engine.written if r.topic == "dead-letters"]
    assert b"labels of 'ada' about the same events were taken" in dict(letter.headers)["dlq.error"]


def test_one_loop_for_all_keys_takes_labels_back(asked_of):
    made = dataclasses.replace(asked_of, keyed=False)
    steps = taught(30)
    for n, undo in enumerate((False, True, False)):
        key = retraction_key("", "ben", n, undo=undo)
        at = 60.0 + n
        asked = Record(topic="consensus", partition=0, offset=n, key=key, value=None, at=at)
        steps.append((asked, at))
    worker, store = OnWorker(made, GROUP), Unordered()
    state, written = KeyedState(0, made, store, group=GROUP, names={}, now=0.0), []
    for n, (record, now) in enumerate(steps):
        if n % 9 == 0:
            state = KeyedState(0, made, store, group=GROUP, names={}, now=now)
        written += state.step(record, now)
        worker.step(record, now)
    shown = [each for each in written if each.topic != "state"]
    assert shown == [each for each in worker.written if each.topic != "state"]
    lines = [value for topic, _, value in store.items() if topic == "consensus"]
    assert lines
    assert not [line for line in lines if b'"annotator":"ben"' in line]
    told = [each.key for each in written if each.topic == "state"]
    assert told == [b"\x1fretracted/ben"] * 3  # the topic tells whose labels there are to put back


def test_a_worker_writes_in_one_batch_what_it_writes_in_several(asked_of):
    steps = [*taught(30), asked_back(0, "ben", 60.0), asked_back(1, "ben", 61.0, undo=True)]
    steps.append(asked_back(2, "ada", 62.0))
    for n, name in ((3, b"e2"), (4, b"e1")):  # of cyd, who is no part of this, and of ben
        key = b"k\x1f" + name + b"\x1f0"
        null = Record(topic="consensus", partition=0, offset=n, key=key, value=None, at=62.0)
        steps.append((null, 62.0))
    apart, together = OnWorker(asked_of, GROUP), OnWorker(asked_of, GROUP)
    for record, now in steps:
        apart.step(record, now)
    for record, now in steps[:-6]:
        together.step(record, now)
    together.step_all([record for record, _ in steps[-6:]], 62.0)
    assert not [each for each in together.written if each.topic == "dead-letters"]
    assert sorted(together.store.items()) == sorted(apart.store.items())


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
    engine = played(settings(), long_conversation, fails_every=37)
    topics = {each.topic for each in engine.written}
    assert topics == {"predictions", "requests", "consensus", "dead-letters", "state"}
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
        (People(max_features=1), b"raise max_features"),
        (People(max_annotators=1), b"raise max_annotators"),
        (People(max_unasked_per_hour=1), b"raise max_unasked_per_hour"),
    ],
)
def test_rules_for_people_hold_as_on_a_worker(people, text):
    moves = [*("event", "answer", "correct", "correct", "correct", "early", "early"), "wait"]
    steps = conversation([(key, move) for move in moves * 6 for key in KEYS[:2]])
    engine = played(settings(people=people), by_annotators(steps), fails_every=5)
    said = {dict(r.headers)["dlq.error"] for r in engine.written if r.topic == "dead-letters"}
    assert any(text in each for each in said), said


@pytest.mark.parametrize(
    ("people", "text"),
    [
        (People(max_corrections=1), b"raise max_corrections"),
        (People(max_early_answers=1), b"was never seen"),  # it made room for a later one
    ],
)
def test_limits_of_corrections_and_of_early_answers_hold_as_on_a_worker(people, text):
    moves = ("event", "answer", "correct", "correct", "correct", "early", "early", "early", "event")
    steps = conversation([(key, move) for move in moves * 3 for key in KEYS[:2]])

    def letters(made):
        written = played(made, steps).written
        return {dict(r.headers)["dlq.error"] for r in written if r.topic == "dead-letters"}

    assert any(text in each for each in letters(settings(people=people)))
    assert not any(text in each for each in letters(settings()))


def test_what_a_liar_has_taught_is_taken_back_and_asked_again_as_on_a_worker():
    model = SkepticalClassifier(GPClassifier(), AlwaysAsk(), NeverChallenge(), seed=1)
    steps = []
    for n in range(90):
        event, by, y = told(n)
        answer = Answer(
            answer_id=f"a{n}", event_id=event.event_id, key="k", y=y, annotator=by,
            answered_at=float(n),
        )  # fmt: skip
        steps.append(step_of("events", dataclasses.replace(event, key="k"), n, float(n)))
        if n % 9:  # some questions stay open
            steps.append(step_of("answers", answer, n, float(n)))
    engine = played(LoopSettings(model=model), steps, fails_every=20)
    kept = engine.stores[b"k"].items()
    taken_back = [json.loads(value) for _, key, value in kept if b"retracted/eve/" in key]
    assert [one["value"]["annotator"] for one in taken_back] == ["eve"]
    assert not [key for _, key, value in kept if b'"annotator":"eve"' in value and b"/" not in key]
    requests = [json.loads(r.value) for r in engine.written if r.topic == "requests"]
    again = [each for each in requests if each.get("reason") == ASKED_AGAIN]
    assert again
    assert {tuple(each["excluded"]) for each in again} == {("eve",)}


def test_rows_become_windows_as_on_a_worker():
    windows = EventWindows(
        label="y", keep_changes=True, length_s=10.0, hop_s=5.0, features=["mean"], idle_s=30.0
    )
    steps, n = [], 0
    for t in range(80):
        now = 1000.0 + t
        for key in KEYS[:2]:
            label = "home" if t % 20 < 10 else "work"
            row = Event(
                event_id=f"{key}{t}", key=key, x={"v": t % 7.0}, occurred_at=now,
                y=label if key == "bob" else None,
            )  # fmt: skip
            steps.append(step_of("events", row, n, now))
            n += 1
        if t % 10 == 6 and t > 20:
            event_id = f"ann@{now // 5 * 5 - 15:.0f}"
            answer = Answer(
                answer_id=f"a{t}", event_id=event_id, key="ann", y="home", answered_at=now
            )
            steps.append(step_of("answers", answer, t, now))
    forgotten = Record(topic="consensus", partition=0, offset=0, key=b"bob", value=None, at=1080.0)
    steps += [(forgotten, 1080.0), (None, 1200.0)]
    engine = played(settings(windows=windows), steps)
    said = [json.loads(r.value) for r in engine.written if r.topic == "predictions"]
    assert {each["key"] for each in said} == {"ann", "bob"}
    # The last window of ann is closed by time alone.
    assert max(each["end"] for each in said if each["key"] == "ann") > 1079.0
    lines = [json.loads(r.value) for r in engine.written if r.topic == "consensus" and r.value]
    assert {each["key"] for each in lines} == {"ann", "bob"}
    assert engine.stores[b"bob"].items() == []


def test_questions_are_asked_at_the_hours_of_each_key_as_on_a_worker():
    model = SkepticalClassifier(GPClassifier(), budget=AvailabilityBudget(), warm_up=0, seed=1)
    steps = []
    for hour in range(24 * 6):
        now = 3600.0 * hour
        for key, is_there in (("ann", 8 <= hour % 24 < 20), ("bob", hour % 24 < 8)):
            event = Event(
                event_id=f"e{hour}", key=key, x={"light": 0.37 * hour % 1.0}, occurred_at=now
            )
            steps.append(step_of("events", event, hour, now))
            answer = Answer(
                answer_id=f"a{hour}", event_id=event.event_id, key=key, declined=True,
                request_id=f"{event.event_id}/label", answered_at=now + 1.0,
            )  # fmt: skip
            if is_there:
                steps.append(step_of("answers", answer, hour, now + 1.0))
        steps.append((None, now + 40.0))
    engine = played(settings(model=model), steps, fails_every=11)
    asked = Counter()
    for record in engine.written:
        value = json.loads(record.value)
        if record.topic == "requests" and value["type"] == "label.request":
            asked[value["key"], int(value["requested_at"] // 3600) % 24 in range(8, 20)] += 1
    assert asked["ann", True] > 2 * asked["ann", False] > 0
    assert asked["bob", False] > 0


def test_a_null_that_could_not_be_heeded_moves_with_its_key():
    configuration = state("", "configuration", {"keyed": True}, 0).value
    kept = shared_records(configuration, {"ann": 2}, "ann")
    assert shared_records(configuration, {"ann": 2}, "bob") == kept[:1]
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


def test_what_each_key_has_for_itself_is_short_and_written_once():
    engine = KeyByKey()
    ((first, now),) = conversation([("ann", "event")])
    engine.step(first, now)
    kept = {key: value for _, key, value in engine.stores[b"ann"].items()}
    own = kept.pop(CONFIGURATION)
    signed = json.loads(own)["value"]
    of_all = engine.settings.configuration
    assert of_all.pop("settings")
    assert signed == {**of_all, "group": GROUP, "streamgp": __version__}
    # One event is the least that a worker keeps of a key.
    assert len(CONFIGURATION) + len(own) < 0.2 * sum(len(k) + len(v) for k, v in kept.items())
    engine.fail()
    engine.stores[b"ann"].put = lambda *what: puts.append(what[:2])
    puts = []
    engine.step(replace(first, offset=1), now)
    assert ("state", CONFIGURATION) not in puts


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


# --- what earlier versions have kept


def golden_lines(kind, name):
    return [json.loads(line) for line in (GOLDEN / kind / name).read_text("utf-8").splitlines()]


def bytes_of(text):
    return None if text is None else text.encode()


def assert_alike(found, expected):
    """Compare with what an earlier version wrote: later ones may add fields, and sum otherwise."""
    match expected:
        case dict():
            assert expected.keys() <= found.keys()
            for name, value in expected.items():
                assert_alike(found[name], value)
        case list():
            for one, other in zip(found, expected, strict=True):
                assert_alike(one, other)
        case float():
            assert found == pytest.approx(expected, abs=1e-9)
        case _:
            assert found == expected


@pytest.mark.parametrize("kind", ["events", "windows"])
def test_a_key_that_flink_kept_under_version_1_goes_on(kind):
    text = (GOLDEN / kind / "worker.toml").read_text("utf-8")
    loops = build_loops(parse_worker(text, source=kind), source=kind)
    store = Unordered()
    for topic, key, value in golden_lines(kind, "kept.jsonl"):
        store.put(topic, key.encode(), value.encode())
    inputs = golden_lines(kind, "inputs.jsonl")
    state = KeyedState(0, loops, store, group=GROUP, names={}, now=inputs[0][1])
    written = []
    for taken, now in inputs:
        if taken is None:
            written += state.on_time(now)
            continue
        topic, offset, key, value, at = taken
        record = Record(
            topic=topic, partition=0, offset=offset, key=key.encode(), value=bytes_of(value), at=at
        )
        written += state.step(record, now)
    found = [
        [r.topic, r.key.decode(), r.value and json.loads(r.value)]
        for r in written
        if r.topic != "state"
    ]
    expected = [
        [topic, key, value and json.loads(value)]
        for topic, key, value in golden_lines(kind, "said.jsonl")
    ]
    assert_alike(found, expected)
