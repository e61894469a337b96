"""What all topics must do, wherever they are. New ones get a line in `FACTORIES`, and must pass."""

import json
import os
import shutil
import tempfile
import threading
import time
import uuid
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.embedded.topics import EmbeddedTopics
from connectors.memory import MemoryTopics
from connectors.topics import ALL_TOPICS, BrokerError, FencedError, Outgoing, partition_of
from tests.helpers.kafka_cases import PATIENT
from tests.helpers.laws import examples
from tests.helpers.topics import everything


def kafka_topics(request):
    from connectors.kafka.topics import KafkaTopics, Timeouts

    prefix = request.getfixturevalue("kafka_prefix")
    return KafkaTopics(
        request.getfixturevalue("kafka"),
        names={name: prefix + name for name in ALL_TOPICS},
        partitions=3,
        timeouts=Timeouts(**PATIENT),
    )


FACTORIES = {
    "memory": lambda _: MemoryTopics(),
    "memory with three partitions": lambda _: MemoryTopics(3),
    "embedded": lambda request: EmbeddedTopics(request.getfixturevalue("tmp_path") / "topics"),
    "kafka": kafka_topics,
}
END_WITH_THE_PROCESS = {"memory", "memory with three partitions"}
PATIENCE_S = 60.0  # for a broker; what is local needs none of it


@pytest.fixture(params=FACTORIES)
def topics(request):
    made = FACTORIES[request.param](request)
    made.create()
    yield made
    made.close()


@pytest.fixture(params=[name for name in FACTORIES if name not in END_WITH_THE_PROCESS])
def opened(request):
    """Return a function that opens topics, each time the same ones."""
    return lambda: closing(FACTORIES[request.param](request))


@pytest.fixture
def several(topics):
    """Topics that several workers share."""
    if topics.n_partitions() == 1:
        pytest.skip("one partition cannot be shared")
    return topics


@pytest.fixture
def group():
    return f"group-{uuid.uuid4().hex}"


@pytest.fixture
def join(topics, group):
    """Return a function that opens clients, which are closed at the end."""
    links = []

    def open_one(instance="a", *, group=group, max_records=500):
        links.append(topics.client(group=group, instance=instance, max_records=max_records))
        return links[-1]

    yield open_one
    for link in links:
        link.close()


def event(i, key="ann"):
    return Outgoing(topic="events", key=key.encode(), value=payload(i, key))


def payload(i, key="ann"):
    return json.dumps({"event_id": f"e{i}", "key": key, "x": {}}).encode()


def answer(i, key="ann"):
    value = json.dumps({"type": "answer", "event_id": f"e{i}", "key": key}).encode()
    return Outgoing(topic="answers", key=key.encode(), value=value)


def prediction(i, partition):
    return Outgoing(topic="predictions", partition=partition, key=b"ann", value=payload(i))


def state(name, value, partition=0):
    data = None if value is None else json.dumps({"name": name, "value": value}).encode()
    return Outgoing(topic="state", partition=partition, key=f"\x1f{name}".encode(), value=data)


def write(topics, *records):
    writer = topics.writer("test")
    for record in records:
        writer.send(record)
    writer.close()


def take(source, n):
    """Poll until there are `n` records."""
    records, until = [], time.monotonic() + PATIENCE_S
    while len(records) < n and time.monotonic() < until:
        records += source.poll(0.5)
    assert len(records) == n
    return records


def take_turns(*links):
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        for link in links:
            link.poll(0.1)


def read(topics, *names):
    """Return what is in topics, from the start to the end."""
    return everything(topics, *names, patience_s=PATIENCE_S)


def ids(records):
    return [json.loads(record.value)["event_id"] for record in records]


def by_partition(records):
    found = {}
    for record in records:
        found.setdefault(record.partition, []).append(record)
    return found


def test_topics_that_were_made_have_no_problems_and_are_not_made_again(topics):
    assert topics.problems() == topics.warnings() == []
    assert topics.create() == []


def test_what_is_written_reaches_a_worker_as_it_was_in_the_order_of_its_partition(topics, join):
    sent = [event(i, key) for i in range(20) for key in ("ann", "bob", "eve")]
    write(topics, *sent)
    found = take(join(), 60)
    for key in (b"ann", b"bob", b"eve"):
        theirs = [record for record in found if record.key == key]
        assert [record.value for record in theirs] == [r.value for r in sent if r.key == key]
        assert len({record.partition for record in theirs}) == 1
        offsets = [record.offset for record in theirs]
        assert offsets == sorted(set(offsets))
    assert {record.topic for record in found} == {"events"}


def test_a_record_is_stamped(topics, join):
    before = time.time()
    write(topics, event(1))
    [record] = take(join(), 1)
    assert before - 1.0 <= record.at <= time.time() + 1.0


def test_events_and_answers_of_a_key_are_in_partitions_of_the_same_number(topics, join):
    keys = [f"k{i}" for i in range(12)]
    write(topics, *[make(1, key) for make in (event, answer) for key in keys])
    places = {}
    for record in take(join(), 24):
        places.setdefault(record.key, set()).add(record.partition)
    assert all(len(partitions) == 1 for partitions in places.values())
    assert {n for (n,) in places.values()} == set(range(topics.n_partitions()))


def test_answers_polled_together_with_events_come_first(topics, join):
    write(topics, *[make(i, f"k{i}") for i in range(9) for make in (event, answer)])
    link, n = join(), 0
    while n < 18:
        found = link.poll(PATIENCE_S)
        for records in by_partition(found).values():
            kinds = [record.topic for record in records]
            assert kinds == sorted(kinds)
        n += len(found)


def test_a_poll_gives_no_more_records_than_were_asked_for(topics, join):
    write(topics, *[make(i, f"k{i}") for i in range(10) for make in (event, answer)])
    link, sizes = join(max_records=3), []
    while sum(sizes) < 20:
        sizes.append(len(link.poll(PATIENCE_S)))
    assert max(sizes) <= 3


def test_all_partitions_belong_to_a_lonely_worker_once_it_has_polled(topics, join):
    link = join()
    assert link.assigned == frozenset()
    write(topics, event(1))
    take(link, 1)
    assert link.assigned == frozenset(range(topics.n_partitions()))


def test_outputs_are_read_when_they_are_committed_and_not_before(topics, join):
    write(topics, event(1))
    link, reader = join(), topics.reader(["predictions"])
    [record] = take(link, 1)
    assert reader.poll(0.1) == []
    link.commit([prediction(1, record.partition)])
    [found] = take(reader, 1)
    assert (found.topic, found.partition, found.key) == ("predictions", record.partition, b"ann")
    assert found.value == payload(1)
    reader.close()


def test_what_was_not_committed_comes_again_and_left_no_output(topics, join):
    write(topics, event(1), event(2))
    first = join()
    assert ids(take(first, 2)) == ["e1", "e2"]
    first.close()
    assert ids(take(join("b"), 2)) == ["e1", "e2"]
    assert read(topics, "predictions") == []


def test_what_was_committed_does_not_come_again(topics, join):
    write(topics, event(1))
    first = join()
    take(first, 1)
    first.commit([])
    write(topics, event(2))
    take(first, 1)
    first.close()
    assert ids(take(join("b"), 1)) == ["e2"]


def test_opened_again_topics_have_what_was_committed_and_nothing_else(opened, group):
    with opened() as topics:
        topics.create()
        identity = topics.identity()
        write(topics, event(1), event(2), event(3))
        link = topics.client(group=group, instance="a", max_records=1)
        [record] = take(link, 1)
        link.commit([prediction(1, record.partition), state("a", 1, record.partition)])
        take(link, 1)
        link.close()
    with opened() as topics:
        assert (topics.problems(), topics.create(), topics.identity()) == ([], [], identity)
        assert ids(read(topics, "predictions")) == ["e1"]
        link = topics.client(group=group, instance="a", max_records=500)
        assert ids(take(link, 2)) == ["e2", "e3"]
        history = link.history({record.partition: {}})
        assert [json.loads(found.value) for found in history] == [{"name": "a", "value": 1}]
        link.close()


def test_partitions_held_back_wait_for_a_later_poll(topics, join):
    link = join()
    while not link.assigned:
        link.poll(0.1)
    writer = topics.writer("test")
    numbers = [i % topics.n_partitions() for i in range(6)]
    for i, number in enumerate(numbers):
        writer.send(Outgoing(topic="events", partition=number, key=b"ann", value=payload(i)))
    writer.close()
    free = [f"e{i}" for i, number in enumerate(numbers) if number != 0]
    found = []
    while len(found) < len(free):
        found += link.poll(0.2, {0})
    assert link.poll(0.3, {0}) == []
    assert sorted(ids(found)) == free
    link.commit([])
    assert ids(take(link, len(numbers) - len(free))) == [
        f"e{i}" for i in range(6) if numbers[i] == 0
    ]


def test_groups_read_on_their_own(topics, join):
    write(topics, event(1))
    first = join()
    take(first, 1)
    first.commit([])
    first.close()
    assert ids(take(join(group=f"group-{uuid.uuid4().hex}"), 1)) == ["e1"]


def test_a_commit_of_nothing_writes_nothing(topics, join):
    link = join()
    link.poll(0.1)
    assert link.commit([]) == {}
    assert read(topics, *ALL_TOPICS) == []


def test_a_commit_tells_where_the_records_end(topics, join):
    write(topics, event(1))
    link = join()
    [record] = take(link, 1)
    n = record.partition
    ends = link.commit([state("a", 1, n), state("b", 2, n), prediction(1, n)])
    assert set(ends) == {("state", n), ("predictions", n)}
    assert ids(read(topics, "predictions")) == ["e1"]
    link.commit([state("a", 3, n)])
    assert [r.key for r in link.history({n: {"state": ends["state", n]}})] == [b"\x1fa"]
    found = list(link.history({n: {}}))
    assert [json.loads(r.value)["value"] for r in found] == [1, 2, 3]
    assert [r.offset for r in found] == sorted({r.offset for r in found})
    start = {"state": found[1].offset + 1}
    assert list(link.history({n: start})) == found[2:]


def test_history_is_what_was_committed_to_state_and_consensus_whoever_did_it(topics, join):
    n = topics.n_partitions() - 1
    first = join()
    while n not in first.assigned:
        first.poll(0.1)
    example = Outgoing(topic="consensus", partition=n, key=b"ann\x1fe1\x1f0", value=payload(1))
    first.commit([state("a", 1, n), example, prediction(1, n)])
    first.commit([state("a", None, n)])
    first.close()
    second = join("b")
    while n not in second.assigned:
        second.poll(0.1)
    found = {(r.topic, r.key, r.value) for r in second.history({n: {}})}
    assert ("consensus", example.key, example.value) in found
    assert found <= {
        ("consensus", example.key, example.value),
        ("state", b"\x1fa", None),
        ("state", b"\x1fa", state("a", 1).value),
    }
    assert list(second.history({})) == []


def test_an_example_taken_back_reaches_the_worker_and_is_history_after_its_commit(topics, join):
    write(topics, Outgoing(topic="consensus", key=b"ann\x1fe1\x1f0", value=None))
    link = join()
    [record] = [record for record in take(link, 1) if record.value is None]
    assert (record.topic, record.key) == ("consensus", b"ann\x1fe1\x1f0")
    link.commit([])
    [known] = link.history({record.partition: {}})
    assert (known.topic, known.key, known.value) == ("consensus", b"ann\x1fe1\x1f0", None)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"ann", b"\xff\x00 no text"),
        (b"\xff", b'{"x": '),
        (None, b"two\nlines"),
        (b"", b""),
        (b"ann", b' {"key":"ann"} '),
        (b"ann", b'{"record":{"key":"bob","value":{}}}'),
        (b"ann", b"[" * 5000),
        (b"ann", None),
    ],
)
def test_dead_letters_keep_their_bytes_and_headers(topics, join, key, value):
    write(topics, event(1))
    link = join()
    [record] = take(link, 1)
    headers = (("ce_type", b"streamgp.event.v9"), ("dlq.error", b"why\xff"), ("dlq.error", b""))
    link.commit(
        [
            Outgoing(
                topic="dead-letters",
                partition=record.partition,
                key=key,
                value=value,
                headers=headers,
            )
        ]
    )
    [letter] = read(topics, "dead-letters")
    assert (letter.key, letter.value, tuple(letter.headers)) == (key, value, headers)


def test_a_reader_may_begin_at_the_end(topics):
    write(topics, event(1), answer(1))
    reader = topics.reader(["events"], from_end=True)
    assert reader.poll(0.1) == []
    write(topics, event(2))
    assert ids(take(reader, 1)) == ["e2"]
    reader.close()


def test_a_reader_knows_when_it_has_caught_up_with_what_was_there(topics):
    empty = topics.reader(["events", "answers"])
    empty.poll(0.1)
    assert empty.caught_up
    empty.close()
    write(topics, event(1), answer(1))
    reader = topics.reader(["events", "answers"])
    assert not reader.caught_up
    take(reader, 2)
    reader.poll(0.0)
    assert reader.caught_up
    reader.close()


def test_a_reader_that_looks_again_catches_up_with_what_came_since(topics):
    write(topics, event(1), answer(1))
    reader = topics.reader(["events", "answers"])
    take(reader, 2)
    reader.poll(0.0)
    write(topics, event(2))
    assert reader.caught_up
    reader.look_again()
    assert not reader.caught_up
    assert ids(take(reader, 1)) == ["e2"]
    reader.poll(0.0)
    assert reader.caught_up
    reader.close()


def test_a_reader_with_a_group_goes_on_where_the_group_has_committed(topics, group):
    write(topics, event(1), event(2))
    with closing(topics.reader(["events"], group=group)) as first:
        assert len(take(first, 2)) == 2
        first.commit()
    write(topics, event(3))
    with closing(topics.reader(["events"], group=group)) as second:
        [record] = take(second, 1)
        assert ids([record]) == ["e3"]
    with closing(topics.reader(["events"], group=group)) as third:  # nothing more was committed
        assert ids(take(third, 1)) == ["e3"]


def test_readers_of_groups_take_nothing_from_each_other_nor_from_workers(topics, join, group):
    write(topics, event(1))
    other = f"other-{group}"
    with closing(topics.reader(["events"], group=other)) as reader:
        assert len(take(reader, 1)) == 1
        reader.commit()
    with closing(topics.reader(["events"], group=f"third-{group}")) as reader:
        assert len(take(reader, 1)) == 1
    assert len(take(join(), 1)) == 1
    with closing(topics.reader(["events"])) as reader:
        assert len(take(reader, 1)) == 1


def test_a_group_that_begins_at_the_end_reads_what_comes_later(topics, group):
    write(topics, event(1))
    with closing(topics.reader(["events"], from_end=True, group=group)) as reader:
        write(topics, event(2))
        assert ids(take(reader, 1)) == ["e2"]


def test_a_reader_without_a_group_has_no_position_to_commit(topics):
    with (
        closing(topics.reader(["events"])) as reader,
        pytest.raises(ValueError, match=r"^reader has no group .*; open one with group=\.\.\.$"),
    ):
        reader.commit()


def test_lags_count_what_is_not_worked_off(topics, join, group):
    write(topics, *[event(i, f"k{i}") for i in range(7)], answer(1))
    link = join(max_records=4)
    n = 0
    while n < 8:
        n += len(link.poll(PATIENCE_S))
        assert sum(link.lag().values()) == 8 - n
    assert sum(topics.lags(group).values()) == 8
    link.commit([])
    until = time.monotonic() + PATIENCE_S
    while any(topics.lags(group).values()):  # a broker's coordinator learns of it a little later
        assert time.monotonic() < until
    assert {topic for topic, _ in topics.lags(group)} == {"events", "answers", "consensus"}


def test_a_backlog_says_what_waits_and_that_it_can_be_read(topics, join, group):
    write(topics, event(1))
    backlog = topics.backlog(group)
    assert {place: each.n_waiting for place, each in backlog.items()} == topics.lags(group)
    waiting = {place: each.position for place, each in backlog.items() if each.n_waiting}
    [(topic, _)] = waiting
    assert topic == "events"
    assert topics.obstacles(waiting) == {}
    assert topics.readable(waiting) == set(waiting)
    link = join()
    take(link, 1)
    link.commit([])
    assert (link.stalled(), link.obstacles(waiting)) == ([], {})
    assert all(each.position is None for each in link.begun())
    link.close(leave=True)


def test_a_checkpoint_beside_a_worker_holds_what_was_committed_together(topics, join, group):
    """Each batch writes the number of events that it has processed."""
    writer, link = topics.writer("test"), join()
    take_none(link)
    is_over = threading.Event()

    def work():
        n_done = 0
        while not is_over.is_set():
            writer.send(event(n_done, "k"))
            writer.flush()
            n_done += len(link.poll(PATIENCE_S))
            link.commit([state("n", n_done, partition)])

    partition = partition_of(b"k", topics.n_partitions())
    worker = threading.Thread(target=work)
    worker.start()
    try:
        found = []
        until = time.monotonic() + PATIENCE_S
        while len(found) < 6 or not found[-1].positions.get(("events", partition)):
            assert time.monotonic() < until, "the worker gets nowhere"
            found.append(topics.checkpoint(group))
            time.sleep(0.05)
    finally:
        is_over.set()
        worker.join()
    written = everything(topics, "state")
    for each in found:
        assert each.ends.keys() == {
            (topic, n) for topic in ("state", "consensus") for n in range(topics.n_partitions())
        }
        before = [r for r in written if r.offset < each.ends["state", partition]]
        position = each.positions.get(("events", partition), 0)
        n_done = json.loads(before[-1].value)["value"] if before else 0
        n_read = sum(
            (r.topic, r.partition) == ("events", partition) and r.offset < position
            for r in everything(topics, "events")
        )
        assert n_read == n_done


def take_none(link):
    """Poll until partitions are assigned."""
    until = time.monotonic() + PATIENCE_S
    while not link.assigned:
        assert time.monotonic() < until
        link.poll(0.1)


def test_workers_are_counted(topics, join, group):
    assert topics.n_members(group) == 0
    link = join()
    link.poll(0.1)
    assert topics.n_members(group) == 1
    assert topics.read_besides(group) == []
    topics.check_writing(group)


def test_workers_share_the_partitions_and_the_work(several, join):
    links = [join("a"), join("b")]
    everything = set(range(several.n_partitions()))
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        for link in links:
            link.poll(0.1)
        a, b = (set(link.assigned) for link in links)
        if a and b and a | b == everything and not a & b:
            break
    else:
        pytest.fail("no distribution of the partitions")
    write(several, *[event(i, f"k{i}") for i in range(12)])
    found = []
    while len(found) < 12:
        for link in links:
            records = link.poll(0.1)
            assert {record.partition for record in records} <= link.assigned
            link.commit([prediction(1, record.partition) for record in records])
            found += ids(records)
    assert sorted(found) == sorted(f"e{i}" for i in range(12))
    assert len(read(several, "predictions")) == 12


def test_a_worker_whose_name_was_taken_is_fenced(several, join):
    older = join("a")
    write(several, event(1))
    take(older, 1)
    younger = join("a")
    with pytest.raises(FencedError):
        take_turns(younger, older)
    assert read(several, "predictions") == []


# --- laws, for what is in this machine

KEYS = ("ann", "sam", "tom")  # of three partitions, each in one of its own
N_WORKERS = 2
IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # where nothing waits for a disk
WORKERS = st.integers(0, N_WORKERS - 1)
HELD = st.frozensets(st.integers(0, 2), max_size=1)
SENDS = st.tuples(st.just("send"), st.sampled_from(KEYS), st.sampled_from(["learn", "forget"]))
STEPS = st.lists(
    st.one_of(
        SENDS,
        st.tuples(st.just("work"), WORKERS, HELD),
        *[st.tuples(st.sampled_from(["work", "work", "commit", "commit", "kill"]), WORKERS)] * 3,
        st.tuples(st.just("look")),
    ),
    min_size=15,  # or most would be shorter than any story
    max_size=40,
).map(lambda steps: [*[("send", key, "learn") for key in KEYS], *steps])


class KilledError(BaseException):
    """A process has ended in the middle of something."""


class Counting:
    """A worker that counts the events of each key, and brings its counts back from the topics."""

    def __init__(self, topics, instance):
        self.link = topics.client(group="g", instance=instance, max_records=3)
        self.counts = {}
        self.out = []
        self.generation = -1

    def work(self, held=frozenset()):
        records = self.link.poll(0.0, held)
        assert held.isdisjoint(record.partition for record in records)
        if self.link.generation != self.generation:
            self.generation = self.link.generation
            history = self.link.history({n: {} for n in self.link.assigned})
            self.counts = {key: json.loads(v)["value"] for key, v in fold(history, "state").items()}
            self.out.clear()  # what it came from was polled again
        for record in records:
            if record.topic == "events":
                self.take(record)

    def commit(self):
        """Return whether it was possible."""
        try:
            self.link.commit(self.out)
        except BrokerError:
            return False
        self.out.clear()
        return True

    def take(self, record):
        said, n = json.loads(record.value), record.partition
        key = b"\x1f" + record.key
        if said["x"]["do"] == "forget":
            self.counts.pop(key, None)
            value = None
        else:
            self.counts[key] = self.counts.get(key, 0) + 1
            value = json.dumps({"name": said["key"], "value": self.counts[key]}).encode()
        self.out.append(Outgoing(topic="state", partition=n, key=key, value=value))
        line = f"{said['key']}\x1f{said['event_id']}\x1f0".encode()
        self.out.append(Outgoing(topic="consensus", partition=n, key=line, value=record.value))
        self.out.append(
            Outgoing(topic="predictions", partition=n, key=record.key, value=record.value)
        )


def fold(records, topic):
    """Return the last value of each key."""
    found = {}
    for record in records:
        if record.topic == topic:
            found.pop(record.key, None)
            if record.value is not None:
                found[record.key] = record.value
    return found


def run(topics, steps, n_workers, disturb=None):
    """Let workers take the steps, and the last one process everything.

    Returns what was sent, what a concurrent reader has seen, and the history at the end.
    """
    topics.create()
    workers = {}  # those that are alive
    writer = topics.writer("test")
    watcher, seen, sent = topics.reader(["predictions"]), [], []
    for what, *arguments in steps:
        if what == "send":
            key, do = arguments
            said = {"event_id": f"e{len(sent)}", "key": key, "x": {"do": do}}
            value = json.dumps(said).encode()
            sent.append(Outgoing(topic="events", key=key.encode(), value=value))
            writer.send(sent[-1])
            writer.flush()
        elif what == "look":
            seen += watcher.poll(0.0)
        elif what == "disturb":
            disturb(arguments)
        else:
            i = arguments[0] % n_workers
            try:
                if i not in workers:
                    workers[i] = Counting(topics, f"w{i}")
                if what == "work":
                    workers[i].work(*arguments[1:])
                elif what == "kill" or not workers[i].commit():
                    workers.pop(i).link.close()
            except KilledError:
                if i in workers:
                    workers.pop(i).link.close()
    if disturb:
        disturb(None)
    for worker in workers.values():
        worker.link.close()
    last = Counting(topics, "last")
    for _ in range(2 * len(sent) + 1):
        last.work()
        assert last.commit()
        if not any(topics.lags("g").values()):
            break
    history = list(last.link.history({n: {} for n in range(topics.n_partitions())}))
    last.link.close()
    seen += read_on(watcher)
    return sent, seen, history


def read_on(reader):
    records = []
    while found := reader.poll(0.0):
        records += found
    return records


def check(topics, steps, n_workers, disturb=None):
    """Check that every event came out once and in order, and that history says what was counted."""
    sent, seen, history = run(topics, steps, n_workers, disturb)
    found = read(topics, "predictions")
    assert sorted(ids(found)) == sorted(ids(seen)) == sorted(ids(sent))
    for key in KEYS:
        theirs = [r for r in sent if r.key == key.encode()]
        assert ids([r for r in found if r.key == key.encode()]) == ids(theirs)
    counts, lines = {}, set()
    for said in (json.loads(record.value) for record in sent):
        key = b"\x1f" + said["key"].encode()
        counts[key] = 0 if said["x"]["do"] == "forget" else counts.get(key, 0) + 1
        lines.add(said["event_id"])
    known = {key: json.loads(value)["value"] for key, value in fold(history, "state").items()}
    assert known == {key: n for key, n in counts.items() if n}
    assert sorted(ids(r for r in history if r.topic == "consensus")) == sorted(lines)


@examples(100)
@given(steps=STEPS)
def test_memory_whichever_worker_is_killed_every_event_counts_once_and_in_order(steps):
    check(MemoryTopics(3), steps, N_WORKERS)


@given(steps=STEPS)
def test_embedded_whichever_worker_is_killed_every_event_counts_once_and_in_order(steps):
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as directory:
        check(EmbeddedTopics(directory), steps, 1)


def test_topics_have_the_same_identity_whenever_they_are_asked(topics):
    assert topics.identity() == topics.identity() != ""


def test_topics_that_were_made_anew_are_others(tmp_path):
    identities = set()
    for _ in range(2):
        topics = EmbeddedTopics(tmp_path / "topics")
        topics.create()
        identities.add(topics.identity())
        shutil.rmtree(tmp_path / "topics")
    assert len(identities | {MemoryTopics().identity()}) == 3
