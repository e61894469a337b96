"""Labels that are volunteered before a worker has seen their events, over topics in memory."""

import itertools
import json
from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.memory import MemoryTopics
from connectors.storage.snapshots import StateDirectory
from connectors.topics import BrokerError
from connectors.wire.codec import decode
from connectors.worker import early_answers
from connectors.worker.early_answers import PATIENCE_S
from streamgp import GPClassifier, SkepticalClassifier, isgp
from streamgp.interactive import KeyedLoops
from streamgp.interactive.messages import Answer, Event, Rejected
from streamgp.query import AlwaysAsk, NeverChallenge
from tests.helpers.laws import examples
from tests.helpers.topics import everything, said
from tests.helpers.workbench import (
    Failing,
    answer,
    contents,
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


def learned(topics):
    """Return the labels of the consensus log, in their order."""
    return [(line.event_id, line.y) for line in said(topics, "consensus")]


def waiting(topics):
    """Return the records of state of the answers that wait."""
    return [k for k, v in newest(topics, "state").items() if b"\x1fearly/" in k and v is not None]


def credulous():
    """Return a model that asks about everything and believes every answer."""
    return SkepticalClassifier(
        GPClassifier(), query=AlwaysAsk(), challenge=NeverChallenge(), warm_up=0, seed=1
    )


# --- an answer waits for its event


@pytest.mark.parametrize("keyed", [True, False])
def test_a_label_that_is_read_before_its_event_is_learned_with_it(keyed):
    topics = MemoryTopics()
    put(topics, answer(1), answer(2))
    work(topics, keyed=keyed)
    assert len(waiting(topics)) == 2
    put(topics, event(1), event(2))
    work(topics, keyed=keyed, batch=1)
    assert learned(topics) == [("e1", "home"), ("e2", "home")]
    assert (waiting(topics), letters(topics)) == ([], [])


def test_it_is_handed_over_right_behind_its_event():
    topics = MemoryTopics()
    put(topics, answer(1), event(1), event(2))
    work(topics)
    assert [m.n_learned for m in said(topics, "predictions")] == [0, 1]


def test_where_it_waits_it_is_state_of_its_key_byte_for_byte():
    topics = MemoryTopics()
    value = b'{"event_id": "e1",\n "y": "home"}'
    raw(topics, "answers", value=value, headers=[("trace", b"\xff")])
    work(topics, clock=lambda: 7.0)
    first, record = everything(topics, "state")
    assert (first.key, record.key) == (b"\x1fconfiguration", b"ann\x1fearly/answers:0:0")
    state = json.loads(record.value)["value"]
    assert b64decode(state["value"]) == value
    assert [(name, b64decode(data)) for name, data in state["headers"]] == [("trace", b"\xff")]
    assert state["since"] == 7.0


def test_answers_to_one_event_keep_their_order():
    topics = MemoryTopics()
    correction = Answer(
        answer_id="a2", event_id="e1", key="ann", y="work", supersedes="a1", answered_at=2.0
    )
    for each in (answer(1), correction, event(1)):
        put(topics, each)
        work(topics, model=credulous())
    assert learned(topics) == [("e1", "home"), ("e1", "work")]


def test_an_answer_goes_on_waiting_where_the_event_cannot_be_used():
    topics = MemoryTopics()
    put(topics, answer(1))
    raw(topics, value=b'{"event_id": "e1", "x": {"light": 1e200}}')
    work(topics)
    assert len(letters(topics)) == len(waiting(topics)) == 1
    put(topics, event(1))
    work(topics)
    assert learned(topics) == [("e1", "home")]


def test_an_answer_waits_for_its_event_alone():
    """Not for a request, which is made when its event was seen, nor for an earlier answer."""
    topics = MemoryTopics()
    put(topics, event(1, y="home"))
    work(topics)
    wrong = {"key": "ann", "y": "home", "answered_at": 1.0}
    put(
        topics,
        Answer(answer_id="a", event_id="e2", request_id="e2/label", **wrong),
        Answer(answer_id="b", event_id="e1", supersedes="never said", **wrong),
    )
    work(topics)
    assert waiting(topics) == []
    assert letters(topics) == [
        "event 'e2' was never seen",
        "answer 'never said' gave no label to event 'e1'",
    ]


def test_where_one_loop_serves_all_an_answer_must_bear_the_key_of_its_event():
    topics = MemoryTopics()
    put(topics, answer(1, key="bob"), answer(2, key="bob"))
    work(topics, keyed=False)
    put(topics, event(1, key="ann"), event(2, key="bob"))
    work(topics, keyed=False)
    assert learned(topics) == [("e2", "home")]
    assert letters(topics) == ["key must be that of the event, 'ann', got 'bob'"]


# --- end of the wait


def passing(topics, seconds, *, start=0.0, **kw):
    """Run a worker while a number of seconds pass, one at each turn."""
    now, turns = [start], itertools.count()

    def stop():
        if next(turns) >= 2:  # it has its partitions by then
            now[0] += 1.0
        return now[0] > start + seconds and idle(topics)()

    worker(topics, clock=lambda: now[0], **kw).run(stop)


def test_an_answer_whose_event_never_comes_is_a_dead_letter_once_as_it_was(monkeypatch):
    monkeypatch.setattr("connectors.worker.worker.LONGEST_WAIT_S", 0.0)
    topics = MemoryTopics()
    value = b'{"event_id": "e1",\n "y": "home"}'
    put(topics, event(7))
    raw(topics, "answers", value=b'{"event_id": "e7", "y": "home"}')
    raw(topics, "answers", value=value, headers=[("trace", b"\xff")])
    passing(topics, PATIENCE_S)
    assert letters(topics) == []
    passing(topics, 5.0, start=PATIENCE_S)
    (letter,) = everything(topics, "dead-letters")
    assert (letter.key, letter.value, letter.headers[0]) == (b"ann", value, ("trace", b"\xff"))
    told = {name: value.decode() for name, value in letter.headers[1:]}
    told.pop("dlq.at")
    assert told == {
        "dlq.topic": "answers",
        "dlq.partition": "0",
        "dlq.offset": "1",
        "dlq.stage": "correlate",
        "dlq.error": "event 'e1' was never seen",
    }
    assert waiting(topics) == []
    passing(topics, 500.0, start=PATIENCE_S)
    put(topics, event(1))
    work(topics)
    assert len(letters(topics)) == 1
    assert learned(topics) == [("e7", "home")]


def test_no_early_answer_is_given_up_while_events_wait_to_be_read(monkeypatch):
    monkeypatch.setattr("connectors.worker.worker.LONGEST_WAIT_S", 0.0)
    topics = MemoryTopics()
    put(topics, *[event(i) for i in range(300)], answer(299))
    passing(topics, PATIENCE_S, batch=1)  # one event at each turn, and each second
    assert learned(topics) == [("e299", "home")]
    assert letters(topics) == []


def test_of_too_many_that_wait_the_oldest_are_dead_letters_at_once(monkeypatch):
    monkeypatch.setattr(early_answers, "MAX_WAITING", 2)
    topics = MemoryTopics()
    put(topics, *[answer(i) for i in range(4)])
    work(topics)
    assert letters(topics) == ["no event of key 'ann' was ever seen in partition 0"] * 2
    put(topics, *[event(i) for i in range(4)])
    work(topics)
    assert learned(topics) == [("e2", "home"), ("e3", "home")]


# --- restarts and failures meanwhile


@pytest.mark.parametrize("disk", [True, False])
def test_it_waits_on_after_a_restart(tmp_path, disk, monkeypatch):
    monkeypatch.setattr("connectors.worker.worker.LONGEST_WAIT_S", 0.0)
    topics = MemoryTopics()
    state = StateDirectory(tmp_path / "state") if disk else None
    put(topics, event(0), answer(1), answer(2))
    work(topics, state=state)
    put(topics, event(1))
    work(topics, state=state)
    assert learned(topics) == [("e1", "home")]
    passing(topics, 1.0, start=PATIENCE_S, state=state)  # counted from when it was read
    assert letters(topics) == ["event 'e2' was never seen"]
    if state is not None:
        state.close()


def test_an_older_snapshot_brings_back_nothing_that_has_left(tmp_path):
    topics = MemoryTopics()
    with StateDirectory(tmp_path / "state") as state:
        put(topics, event(0), answer(1))
        work(topics, state=state)
        put(topics, event(1))
        work(topics)
        work(topics, state=state)
        put(topics, event(2))
        work(topics, state=state)
    assert learned(topics) == [("e1", "home")]
    assert letters(topics) == []


def test_it_goes_where_its_partition_goes():
    topics = MemoryTopics(n_partitions=2)
    keys = [str(n) for n in range(8)]
    put(topics, *[answer(1, key=key) for key in keys])
    turns = iter(range(100))

    def meanwhile():
        turn = next(turns)
        if turn == 3:
            put(topics, *[event(1, key=key) for key in keys])
            other = iter(range(4))
            worker(topics, instance="other", batch=2).run(lambda: next(other) == 3)
        return turn > 5 and idle(topics)()

    worker(topics).run(meanwhile)
    assert sorted(line.key for line in said(topics, "consensus")) == keys


def test_what_a_forgotten_key_has_said_is_forgotten():
    topics = MemoryTopics()
    put(topics, answer(1), answer(2, key="bob"))
    work(topics)
    raw(topics, "consensus", key=b"ann", value=None)
    work(topics)
    assert waiting(topics) == [b"bob\x1fearly/answers:0:1"]
    put(topics, event(1), event(2, key="bob"))
    work(topics, clock=lambda: 2 * PATIENCE_S)
    assert [line.key for line in said(topics, "consensus")] == ["bob"]
    assert letters(topics) == []


def test_what_is_read_and_forgotten_in_one_batch_is_never_written():
    topics = MemoryTopics()
    put(topics, answer(1))
    raw(topics, "consensus", key=b"ann", value=None)
    work(topics)
    assert [r for r in everything(topics, "state") if r.key.startswith(b"ann")] == []


def test_an_answer_that_is_delivered_again_waits_once():
    topics = MemoryTopics()
    put(topics, answer(1))
    work(topics)
    before = everything(topics, "state")
    lose_positions(topics)
    work(topics, clock=lambda: 10.0)
    assert everything(topics, "state") == before  # nor does its time begin again
    put(topics, event(1))
    work(topics)
    lose_positions(topics)
    work(topics)
    assert learned(topics) == [("e1", "home")]
    assert letters(topics) == ["event 'e1' was seen before; give every event an id of its own"]


# --- laws


class _Watched(MemoryTopics):
    """Remembers in which order workers have read."""

    def __init__(self, **kw):
        super().__init__(**kw)
        self.read = []

    def client(self, **kw):
        link = super().client(**kw)
        poll = link.poll

        def watched(*args):
            records = poll(*args)
            self.read += records
            return records

        link.poll = watched
        return link


def by_hand(records, model):
    """Return what loops say that are given each answer behind its event, wherever it was read."""
    loops, seen, early, messages = KeyedLoops(model), set(), [], []
    for record in records:
        one = decode(record.value) if record.topic in ("events", "answers") else None
        if isinstance(one, Event):
            messages += loops.on_event(one, one.occurred_at)
            seen.add((one.key, one.event_id))
            early, now = (
                [e for e in early if (e.key, e.event_id) not in seen],
                [e for e in early if (e.key, e.event_id) in seen],
            )
            messages += [m for e in now for m in loops.on_answer(e, e.answered_at)]
        elif isinstance(one, Answer) and (one.key, one.event_id) in seen:
            messages += loops.on_answer(one, one.answered_at)
        elif isinstance(one, Answer):
            early.append(one)
    return [m for m in messages if not isinstance(m, Rejected)], early


steps = st.lists(
    st.tuples(
        st.sampled_from(["event", "answer", "correction"]),
        st.integers(0, 8),
        st.sampled_from("ab"),
        st.sampled_from(["home", "work", None]),
    ),
    max_size=25,
)


def message(kind, i, key, y):
    if kind == "event":
        return event(i, key=key, y=y)
    if kind == "answer":
        return answer(i, y or "shop", key=key)
    return Answer(
        answer_id=f"c{i}",
        event_id=f"e{i}",
        key=key,
        y=y,
        declined=y is None,
        supersedes=f"a{i}",
        answered_at=float(i),
    )


@examples(15)
@given(steps, st.integers(1, 10), st.integers(1, 5))
def test_workers_say_what_loops_say_that_hear_each_answer_behind_its_event(steps, chunk, batch):
    topics = _Watched(n_partitions=2)
    for start in range(0, len(steps), chunk):
        put(topics, *[message(*step) for step in steps[start : start + chunk]])
        work(topics, batch=batch)
    expected, early = by_hand(topics.read, isgp(seed=1))
    topic_of = {"Prediction": "predictions", "LabelledExample": "consensus"}
    for key in "ab":
        for topic in ("predictions", "requests", "consensus"):
            mine = [m for m in said(topics, topic) if m.key == key]
            assert mine == [
                m
                for m in expected
                if m.key == key and topic_of.get(type(m).__name__, "requests") == topic
            ]
    assert len(waiting(topics)) == len(early)


@examples(15)
@given(
    st.permutations([(i, key) for i in range(4) for key in "ab"]),
    st.permutations([(i, key) for i in range(4) for key in "ab"]),
    st.lists(st.booleans(), min_size=16, max_size=16),
    st.integers(1, 8),
    st.integers(1, 8),
)
def test_no_label_is_lost_however_answers_and_events_are_mixed(
    events, answers, turns, chunk, batch
):
    """As many as there are, each once, and nothing is a dead letter."""
    events, answers = (
        [event(i, key=key) for i, key in events],
        [answer(i, f"label {i % 3}", key=key) for i, key in answers],
    )
    mixed = []
    for is_event in turns:
        mixed.append((events if is_event and events else answers or events).pop())
    topics = MemoryTopics(n_partitions=2)
    for start in range(0, len(mixed), chunk):
        put(topics, *mixed[start : start + chunk])
        work(topics, model=credulous(), batch=batch)
    found = sorted((line.key, line.event_id, line.y) for line in said(topics, "consensus"))
    assert found == sorted((k, f"e{i}", f"label {i % 3}") for i in range(4) for k in "ab")
    assert (letters(topics), waiting(topics)) == ([], [])


@examples(15)
@given(steps)
def test_the_size_of_batches_changes_nothing_where_all_answers_are_read_first(steps):
    found = []
    for batch in (1, 3, 1000):
        topics = MemoryTopics(n_partitions=2)
        put(topics, *[message(*step) for step in steps])
        work(topics, batch=batch)
        found.append(contents(topics))
    assert found[0] == found[1] == found[2]


@examples(20)
@given(
    steps,
    st.integers(1, 10),
    st.lists(st.sampled_from([None, "before", "after"]), max_size=10),
)
def test_crashes_change_nothing_of_what_waits(steps, chunk, fails):
    calm, rough = MemoryTopics(n_partitions=2), Failing(fails, n_partitions=2)
    for topics in (calm, rough):
        for start in range(0, len(steps), chunk):
            put(topics, *[message(*step) for step in steps[start : start + chunk]])
            now = 100.0 * start  # an answer that waited since the last chunk has waited in vain
            while not idle(topics)():
                try:
                    work(topics, batch=3, clock=lambda now=now: now)
                except BrokerError:
                    continue
    assert contents(rough) == contents(calm)
    assert waiting(rough) == waiting(calm)
