"""Topics in a database: contents, faults, and concurrent use."""

import errno
import json
import os
import re
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from pathlib import Path
from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.embedded import database as database_module
from connectors.embedded import directory as directory_module
from connectors.embedded import topics as topics_module
from connectors.embedded.database import Database
from connectors.embedded.directory import network_flaw
from connectors.embedded.topics import EmbeddedTopics, EmbeddedWorkerClient
from connectors.jsonl import alone_in
from connectors.topics import BrokerError, Outgoing, RefusedError
from connectors.wire.codec import MAX_BYTES, MAX_INPUT_BYTES
from tests.connectors.test_topics_contract import IN_MEMORY, KEYS, STEPS, KilledError, check, fold
from tests.helpers.laws import examples

NOW = 1_000_000_000.0
DAY = 86_400.0
PATIENCE_S = 60.0


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "topics"


@pytest.fixture
def path(directory):
    return directory / "topics.db"


@pytest.fixture
def clock():
    """The time, to be set."""
    return [NOW]


@pytest.fixture
def topics(directory, clock):
    made = EmbeddedTopics(directory, clock=lambda: clock[0])
    made.create()
    yield made
    made.close()


def join(topics, group="g", max_records=500):
    return topics.client(group=group, instance="a", max_records=max_records)


def event(i):
    return Outgoing(topic="events", key=b"ann", value=b'{"event_id":"e%d","key":"ann"}' % i)


def prediction(i):
    return Outgoing(topic="predictions", key=b"ann", value=b'{"event_id":"e%d","key":"ann"}' % i)


def state(name, value, entity="ann"):
    data = None
    if value is not None:
        said = {"type": "state", "version": 1, "key": entity, "name": name, "value": value}
        data = json.dumps(said, separators=(",", ":")).encode()
    return Outgoing(topic="state", partition=0, key=f"{entity}\x1f{name}".encode(), value=data)


def put(topics, *records):
    with closing(topics.writer("test")) as writer:
        for record in records:
            writer.send(record)


def read(topics, *names):
    with closing(topics.reader(names)) as reader:
        records = []
        while found := reader.poll(0.0):
            records += found
        assert reader.caught_up
    return records


def used(topics):
    """Let a worker do a bit of everything, and leave."""
    put(topics, event(1), event(2))
    client = join(topics)
    client.poll(0.0)
    client.commit([prediction(1), state("head", 1), state("head", 2)])
    client.close()


def names_and_values(records):
    return [
        (r.key.decode().split("\x1f")[-1], r.value and json.loads(r.value)["value"])
        for r in records
    ]


def change(path, sql, *values):
    """Do what a person with the tool of SQLite may do."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql, values)


# --- contents


def test_topics_are_refused_in_a_process_forked_from_that_which_opened_them(topics, monkeypatch):
    reader = topics.reader(["events"])
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: 0)
        with pytest.raises(RuntimeError, match=r"topics.db was opened before this process was for"):
            reader.poll(0.0)
    assert reader.poll(0.0) == []
    reader.close()


def test_a_name_that_is_taken_back_becomes_part_of_the_history(topics, clock):
    put(topics, Outgoing(topic="consensus", key=b"ann", value=None))
    client = join(topics)
    [found] = client.poll(0.0)
    assert (found.topic, found.key, found.value) == ("consensus", b"ann", None)
    assert list(client.history({0: {}})) == []
    clock[0] += 5.0
    assert client.commit([]) == {("consensus", 0): 1}
    [known] = client.history({0: {}})
    assert (known.key, known.value, known.at) == (b"ann", None, NOW + 5.0)
    assert [r.key for r in read(topics, "consensus")] == [b"ann"]
    assert client.commit([]) == {}


def test_a_clock_that_jumps_back_changes_no_order(topics, clock):
    put(topics, event(1))
    clock[0] -= 2 * DAY
    put(topics, event(2))
    client = join(topics)
    assert [r.at for r in client.poll(0.0)] == [NOW, NOW - 2 * DAY]
    client.commit([state("head", 1)])
    clock[0] -= DAY
    client.commit([state("head", 2), state("gone", None)])
    client.close()
    clock[0] -= DAY
    assert names_and_values(join(topics).history({0: {}})) == [("head", 2), ("gone", None)]


def test_files_are_their_owners_alone_also_while_they_are_in_use(topics, directory):
    assert os.listdir(directory) == ["topics.db"]
    used(topics)
    client = join(topics)
    client.commit([prediction(1)])
    assert sorted(os.listdir(directory)) == ["topics.db", "topics.db-shm", "topics.db-wal"]
    for place in (directory, *directory.iterdir()):
        assert stat.S_IMODE(place.stat().st_mode) & 0o077 == 0
    client.close()
    assert os.listdir(directory) == ["topics.db"]


def test_the_name_of_a_directory_need_not_be_utf_8(tmp_path):
    with closing(EmbeddedTopics(tmp_path / os.fsdecode(b"ger\xe4te"))) as topics:
        topics.create()
        put(topics, event(1))
        assert [record.key for record in read(topics, "events")] == [b"ann"]


def test_making_says_what_was_made(tmp_path):
    directory = tmp_path / "a" / "b"
    made = EmbeddedTopics(directory).create()
    assert made == [f"made {directory}", f"made {directory / 'topics.db'}"]


def test_a_commit_without_news_writes_nothing(topics, directory):
    client = join(topics)
    client.poll(0.0)
    before = (directory / "topics.db-wal").stat().st_size
    assert client.commit([]) == {}
    assert (directory / "topics.db-wal").stat().st_size == before


def test_a_worker_writes_outputs_only_and_others_write_inputs_only(topics):
    client, writer = join(topics), topics.writer("w")
    with pytest.raises(ValueError, match=r"^topic must be one of predictions, .*, got 'events'$"):
        client.commit([prediction(1), event(1)])
    match = r"got one for predictions; a worker alone writes there$"
    with pytest.raises(ValueError, match=match):
        writer.send(prediction(1))
    with pytest.raises(ValueError, match=r"got one for consensus; a worker alone writes there$"):
        writer.send(Outgoing(topic="consensus", key=b"a", value=b""))
    writer.close()
    assert read(topics, "predictions", "events") == []


def test_there_is_one_partition(topics):
    client, writer = join(topics), topics.writer("w")
    match = r"^partition must be 0, the only one, got 1$"
    with pytest.raises(ValueError, match=match):
        client.commit([Outgoing(topic="state", partition=1, key=b"a", value=b"{}")])
    with pytest.raises(ValueError, match=match):
        client.history({1: {}})
    with pytest.raises(ValueError, match=match):
        writer.send(Outgoing(topic="events", partition=1, key=b"a", value=b"{}"))


@pytest.mark.parametrize("limit", ["_MOST_UNSENT", "_MOST_UNSENT_BYTES"])
def test_a_writer_does_not_gather_records_without_end(topics, monkeypatch, limit):
    monkeypatch.setattr(topics_module, limit, 1)
    writer = topics.writer("w")
    for i in range(3):
        writer.send(event(i))
    assert len(read(topics, "events")) == 3


def test_of_an_input_that_is_too_long_the_beginning_comes_with_its_size_and_digest(topics):
    long = b"." * (MAX_BYTES + 1)
    put(topics, Outgoing(topic="events", key=b"ann", value=long), event(2))
    client = join(topics)
    [first] = client.poll(0.0)  # so much at once is enough
    assert (first.value, first.truncated.size) == (long[:MAX_INPUT_BYTES], len(long))
    [second] = client.poll(0.0)
    assert (second.offset, second.truncated) == (1, None)


def test_progress_of_a_long_history_is_reported(topics):
    told = []
    client = join(topics)
    client.commit([state(f"{i}", i) for i in range(20_001)])
    history = client.history({0: {}}, lambda *numbers: told.append(numbers))
    assert len(list(history)) == 20_001
    assert told == [(10_000, 20_001), (20_000, 20_001)]


# --- many processes

HOLDER = """
import sys
from connectors.embedded.topics import EmbeddedTopics
client = EmbeddedTopics(sys.argv[1]).client(group="g", instance="other", max_records=1)
print("ready", flush=True)
sys.stdin.read()
"""
WRITER = """
import sys
from connectors.embedded.topics import EmbeddedTopics
from connectors.topics import Outgoing
directory, name = sys.argv[1:]
writer = EmbeddedTopics(directory).writer(name)
for i in range(100):
    value = b'{"key":"%s","i":%d,"x":"%s"}' % (name.encode(), i, b"." * 1000)
    writer.send(Outgoing(topic="events", key=name.encode(), value=value))
    writer.flush()
"""


def test_a_directory_serves_one_worker_and_readers_and_writers_beside_it(topics, directory):
    command = [sys.executable, "-c", HOLDER, str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"ready\n"
        match = (
            r"topics is in use by another worker, and serves only one; stop that one, or use "
            r"another broker$"
        )
        with pytest.raises(BrokerError, match=match):
            join(topics)
        assert topics.n_members("g") == 1
        put(topics, event(1))
        assert len(read(topics, "events")) == 1
        holder.kill()
        holder.wait()
        assert topics.n_members("g") == 0
        assert len(join(topics).poll(0.0)) == 1


def test_a_program_that_looks_for_a_worker_while_one_starts_only_delays_it(
    topics, directory, monkeypatch
):
    """On a busy machine it may have to wait for the processor before it lets the directory go."""
    monkeypatch.setattr(directory_module, "_PATIENCE_S", 0.0)
    looking = directory_module.opened_directory(directory)
    assert directory_module.lock_directory(looking, shared=True)
    timer = threading.Timer(0.2, os.close, (looking,))
    timer.start()
    join(topics)
    timer.join()


def test_a_replay_does_not_write_into_the_directory_of_a_worker(topics, directory):
    join(topics)
    with pytest.raises(ValueError, match="in use"), alone_in(directory):
        pass


def test_several_processes_write_at_once_while_a_worker_commits(topics, directory):
    names = ("a", "b", "c")
    command = [sys.executable, "-c", WRITER, directory]
    writers = [subprocess.Popen([*command, name]) for name in names]
    client, found = join(topics, max_records=7), {}
    n = 0
    while n < 300:
        records = client.poll(PATIENCE_S)
        assert records
        for record in records:
            found.setdefault(record.key, []).append(json.loads(record.value)["i"])
        client.commit([prediction(n)])
        n += len(records)
    assert [writer.wait(PATIENCE_S) for writer in writers] == [0, 0, 0]
    assert found == {name.encode(): [*range(100)] for name in names}


def test_a_reader_sees_batches_as_a_whole_while_the_worker_commits(topics):
    client, reader = join(topics), topics.reader(["predictions", "state"])
    seen = {"predictions": 0, "state": 0}
    for i in range(50):
        client.commit([prediction(i), state("head", i)])
        for record in reader.poll(0.0):
            seen[record.topic] += 1
        assert seen == {"predictions": i + 1, "state": i + 1}


def test_a_writer_that_is_waited_for_too_long_is_reported(topics, path, monkeypatch):
    monkeypatch.setattr(database_module, "BUSY_S", 0.05)
    client = join(topics)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        match = r"topics\.db is busy: another program has written to it for over 0\.05 s; stop it, "
        with pytest.raises(BrokerError, match=match) as raised:
            client.commit([prediction(1)])
        assert not isinstance(raised.value, RefusedError)
        with pytest.raises(BrokerError, match=r"^worker client has failed \(.*\); start again$"):
            client.poll(0.0)


def test_a_file_system_without_locks_is_reported_before_writers_are_waited_for(
    topics, path, monkeypatch
):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(database_module, "FIRST_S", 0.01)
    # What SQLite makes of it: somebody else has the lock.
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr("fcntl.lockf", no_locks)
        for use in (topics.identity, lambda: join(topics)):
            with pytest.raises(RefusedError, match=r"^files in .*topics cannot be locked, as "):
                use()


@pytest.mark.usefixtures("topics")
def test_a_database_that_is_busy_when_it_is_opened_is_waited_for(path, monkeypatch):
    monkeypatch.setattr(database_module, "FIRST_S", 0.01)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        n_tried = 0

        def locks_another_time(*_):
            nonlocal n_tried
            n_tried += 1
            other.close()  # the other program ends while it is looked for locks
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))

        monkeypatch.setattr("fcntl.lockf", locks_another_time)
        Database(path).close()
        assert n_tried == 1


def test_a_closed_client_is_unusable(topics):
    client = join(topics)
    client.close()
    client.close()
    with pytest.raises(ValueError, match=r"^worker client is closed; open another one$"):
        client.poll(0.0)


# --- faults


def test_what_is_missing_is_named(tmp_path, topics, path):
    advice = "make the topics with --create-topics"
    other = tmp_path / "other"
    assert EmbeddedTopics(other).problems() == [f"directory {other} is not there; {advice}"]
    for call in (lambda: join(EmbeddedTopics(other)), lambda: EmbeddedTopics(other).n_members("")):
        with pytest.raises(
            BrokerError, match=r"^cannot use .*other: No such file or directory; cre"
        ):
            call()
    other.touch()
    wrong = f"{other} is not a directory; name another place"
    assert EmbeddedTopics(other).problems() == [wrong]
    match = r"^cannot make topics in .*other: File exists; name another place$"
    with pytest.raises(BrokerError, match=match):
        EmbeddedTopics(other).create()
    path.unlink()
    assert topics.problems() == [f"{path} is not there; {advice}"]
    for call in (lambda: join(topics), lambda: topics.reader(["state"]), topics.identity):
        with pytest.raises(RefusedError, match=r"topics\.db is not there; make the topics with --"):
            call()


def test_a_database_that_held_something_is_to_be_brought_back_not_made_anew(topics, path):
    client = join(topics)
    client.commit([prediction(1)])
    kept = path.read_bytes()
    path.unlink()
    match = r"topics\.db was changed: it is not there; bring it back, or start over in another dir"
    with pytest.raises(RefusedError, match=match):
        client.commit([prediction(2)])
    with pytest.raises(RefusedError, match=match):
        topics.create()  # which would take what is in -wal for its own
    path.write_bytes(kept)
    with pytest.raises(BrokerError, match="another file is in its place"):
        put(topics, event(1)), client._database.writing().__enter__()


def test_a_directory_that_the_system_does_not_look_at_is_a_problem(tmp_path):
    """A worker ended as after an error of its own (70), also if its user may not enter a parent."""
    directory = tmp_path / ("d" * 256)
    assert EmbeddedTopics(directory).problems() == [
        f"cannot use {directory}: File name too long; choose a shorter one"
    ]


def test_a_file_of_another_program_is_left_alone(directory, path):
    directory.mkdir()
    change(path, "CREATE TABLE songs (title)")
    [problem] = EmbeddedTopics(directory).problems()
    assert problem == f"{path} belongs to another program; name another directory"
    path.write_bytes(b"")
    [problem] = EmbeddedTopics(directory).problems()
    assert "topics.db is empty: it was cut, or never written; bring it back, or remove" in problem
    path.write_bytes(b"no database" * 1000)
    [problem] = EmbeddedTopics(directory).problems()
    assert problem.startswith(f"{path} was changed: file is not a database; bring it back")


@pytest.mark.parametrize(
    ("name", "sql"),
    [
        ("evil", "CREATE TRIGGER evil AFTER INSERT ON events BEGIN DELETE FROM consensus; END"),
        ("endless", "CREATE VIEW endless AS SELECT 1 AS offset"),
        ("search", "CREATE VIRTUAL TABLE search USING fts5(a)"),
    ],
)
def test_a_database_in_which_something_runs_is_refused(topics, path, name, sql):
    change(path, sql)
    match = rf"topics\.db was changed: it has '{name}', which is no table; bring it back"
    with pytest.raises(RefusedError, match=match):
        join(topics)


def test_another_version_is_named(topics, path):
    change(path, "PRAGMA user_version = 7")
    match = r"has version 7, expected 1; use the version of streamgp that wrote it, or name another"
    with pytest.raises(RefusedError, match=match):
        join(topics)


@pytest.mark.parametrize(
    ("sql", "values", "why"),
    [
        ("UPDATE state SET value = ?", [b"{}"], "the record of state at offset 0 is damaged"),
        ("UPDATE state SET key = ?", ["ann"], "the record of state at offset 0 is damaged"),
        ("UPDATE state SET at = NULL", [], "the record of state at offset 0 is damaged"),
        ("UPDATE state SET headers = ?", [3], "the record of state at offset 0 is damaged"),
        ("UPDATE events SET offset = 7 WHERE offset = ?", [1], "record of events at offset 1 is m"),
        ("UPDATE positions SET offset = ?", [1], "the position of group g is damaged"),
        ("UPDATE ends SET next = ?", [1], "the end of .* is damaged"),
        ("UPDATE deployment SET identity = ?", ["me"], "its identity is damaged"),
        ("DELETE FROM deployment", [], "its identity is damaged"),
        ("DELETE FROM ends", [], "the end of .* is damaged"),
        ("DROP TABLE state", [], "no such table: state"),
    ],
)
def test_a_row_that_was_changed_by_hand_is_named(topics, path, sql, values, why):
    used(topics)
    change(path, sql, *values)
    match = rf"topics\.db was changed: .*{why}.*; bring it back, or start over in another directory"
    with pytest.raises(RefusedError, match=match):
        join(topics, group="g").poll(0.0), read(topics, "events")


@pytest.mark.parametrize("offset", [0, 1])
def test_an_event_that_is_missing_is_named(topics, path, offset):
    put(topics, event(1), event(2))
    change(path, "DELETE FROM events WHERE offset = ?", offset)
    match = rf"the record of events at offset {offset} is missing; bring it back"
    with pytest.raises(RefusedError, match=match):
        read(topics, "events")


def test_a_position_behind_the_end_is_named(topics, path):
    used(topics)
    with closing(Database(path)) as database, database.writing():
        database.move("g", {"events": 7})
    match = r"events ends at offset 2, but is worked off to 7; bring it back"
    with pytest.raises(RefusedError, match=match):
        join(topics)


def test_state_of_other_topics_is_named(topics):
    client = join(topics)
    match = r"state in .*topics\.db ends at offset 0, but is known up to 7: it was recreated, or "
    with pytest.raises(BrokerError, match=match):
        client.history({0: {"state": 7}})


def test_events_in_a_file_beside_the_database_are_not_read_and_that_is_said(topics, directory):
    (directory / "events.jsonl").write_text("{}\n")
    [warning] = topics.warnings()
    assert warning == (
        f"{directory}/events.jsonl is not read: topics are in topics.db; send what it holds with "
        "`streamgp send CONFIG.toml -`"
    )
    assert topics.problems() == []


LOOK = """
import sys
from connectors.embedded.topics import EmbeddedTopics
topics = EmbeddedTopics(sys.argv[1])
print(topics.problems())
for call in (
    lambda: topics.client(group="g", instance="a", max_records=1),
    lambda: topics.reader(["events"]),
    lambda: topics.writer("w"),
):
    try:
        call()
    except OSError as error:
        print(type(error).__name__, error)
"""


def test_a_directory_that_cannot_be_written_is_named(topics, directory):
    used(topics)
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", script, directory]
    try:
        subprocess.run([*command, "true"], check=True, capture_output=True, timeout=PATIENCE_S)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root may mount")
    done = subprocess.run(
        [*command, sys.executable, "-c", LOOK, directory],
        capture_output=True, text=True, check=True, timeout=PATIENCE_S,
    )  # fmt: skip
    problems, *errors = done.stdout.splitlines()
    assert f"{directory} cannot be written; make it accessible, or name another place" in problems
    assert len(errors) == 3
    match = r"RefusedError cannot use .*topics\.db: .*; make it and its directory writable, or name"
    assert all(re.match(match, error) for error in errors), errors


@pytest.mark.parametrize(
    ("line", "is_refused"),
    [
        ("36 35 0:43 / /srv rw - nfs4 nas:/data rw", True),
        ("36 35 0:43 / /srv/my\\040topics rw - cifs //nas/data rw", True),
        ("36 35 0:43 / / rw - ext4 /dev/sda rw", False),
        ("36 35 0:43 / /srv2 rw - nfs4 nas:/data rw", False),
    ],
)
def test_a_network_file_system_is_refused(tmp_path, line, is_refused):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"20 1 0:1 / / rw - ext4 /dev/sda rw\n{line}\n")
    flaw = network_flaw(Path("/srv/my topics/a"), mounts)
    assert (flaw is not None and "is on a network file system" in flaw) == is_refused
    assert network_flaw(Path("/srv"), tmp_path / "nowhere") is None


# --- disks that fail


def test_what_a_full_disk_did_not_take_was_not_committed(topics):
    used(topics)
    put(topics, event(3))
    client, reader = join(topics), topics.reader(["predictions"], from_end=True)
    assert len(client.poll(0.0)) == 1
    pages = client._database._execute("PRAGMA page_count")[0][0]
    client._database._execute(f"PRAGMA max_page_count = {pages}")
    large = Outgoing(topic="predictions", key=b"ann", value=b"." * 100_000)
    match = r"^cannot write .*topics\.db: database or disk is full; free some space$"
    with pytest.raises(BrokerError, match=match) as raised:
        client.commit([large, state("head", 3)])
    assert not isinstance(raised.value, RefusedError)
    with pytest.raises(
        BrokerError, match=r"^worker client has failed \(.*free some space\); start again$"
    ):
        client.poll(0.0)
    client.close()
    assert reader.poll(0.0) == []
    again = join(topics)
    assert [record.value for record in again.poll(0.0)] == [event(3).value]
    assert names_and_values(again.history({0: {}})) == [("head", 2)]
    again.commit([large, state("head", 3)])
    assert len(reader.poll(0.0)) == 1


@pytest.mark.parametrize("opened", [join, lambda topics: topics.reader(["answers", "events"])])
def test_after_a_fault_in_one_topic_what_was_read_of_others_is_read_once_more(topics, path, opened):
    answer = Outgoing(topic="answers", key=b"ann", value=b"{}")
    put(topics, event(1), answer)
    with closing(opened(topics)) as reading:
        change(path, "UPDATE events SET value = ?", b"[]")
        with pytest.raises(RefusedError, match="the record of events at offset 0 is damaged"):
            reading.poll(0.0)
        change(path, "UPDATE events SET value = ?", event(1).value)
        assert [record.value for record in reading.poll(0.0)] == [answer.value, event(1).value]
        assert reading.poll(0.0) == []


def test_what_a_writer_has_said_is_not_written_is_not_written_when_it_closes(topics):
    writer = topics.writer("send")
    pages = writer._database._execute("PRAGMA page_count")[0][0]
    writer._database._execute(f"PRAGMA max_page_count = {pages}")
    large = Outgoing(topic="events", key=b"ann", value=b"." * 100_000)
    writer.send(large)
    with pytest.raises(BrokerError, match="free some space"):
        writer.flush()
    writer._database._execute("PRAGMA max_page_count = 1000000")
    writer.close()
    assert read(topics, "events") == []
    with closing(topics.writer("send")) as again:
        again.send(large)
    assert len(read(topics, "events")) == 1


def test_a_batch_is_committed_though_the_disk_has_no_room_for_a_compaction(topics, monkeypatch):
    monkeypatch.setattr(topics_module, "COMPACT_BYTES", 200_000)
    client = join(topics)
    client.commit([state(f"n{i}", "." * 5_000) for i in range(36)])
    pages = client._database._execute("PRAGMA page_count")[0][0]
    client._database._execute(f"PRAGMA max_page_count = {pages + 8}")
    client.commit([state("n0", "a" * 25_000)])
    assert len(read(topics, "state")) == 36 + 1
    assert client.poll(0.0) == []
    client._database._execute("PRAGMA max_page_count = 1000000")
    client.commit([state("n0", "b")])
    assert len(read(topics, "state")) == 36 + 2
    client.commit([state("n1", "." * 250_000)])
    assert len(read(topics, "state")) == 36
    client.close()
    with closing(join(topics)) as again:
        assert dict(names_and_values(again.history({0: {}})))["n0"] == "b"


LIMITED = """
import resource, signal, sys
from connectors.embedded.topics import EmbeddedTopics
from connectors.topics import Outgoing
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
topics = EmbeddedTopics(sys.argv[1])
writer = topics.writer("w")
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
n = 0
try:
    for n in range(1000):
        writer.send(Outgoing(topic="events", key=None, value=b"." * 3000))
        writer.flush()
except OSError as error:
    print(n, error)
"""


@pytest.mark.parametrize("n_bytes", [150_000, 200_001, 300_002])
def test_a_file_that_may_not_grow_keeps_all_that_was_acknowledged(topics, directory, n_bytes):
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, directory, str(n_bytes)],
        capture_output=True, text=True, check=True, timeout=PATIENCE_S,
    )  # fmt: skip
    n, _, said = done.stdout.partition(" ")
    assert re.search("free some space", said), done.stdout
    assert topics.problems() == []
    assert len(read(topics, "events")) == int(n)
    put(topics, event(1))
    assert len(read(topics, "events")) == int(n) + 1


CROWDED = """
import os, resource, sys
from connectors.embedded.topics import EmbeddedTopics
topics = EmbeddedTopics(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
for n_free in range(3):
    held = [os.dup(0) for _ in range(64 - len(os.listdir("/proc/self/fd")) + 1 - n_free)]
    try:
        topics.reader(["events"])
    except OSError as error:
        print(type(error).__name__, error)
    for number in held:
        os.close(number)
"""


def test_too_many_open_files_are_said_to_be_so_and_may_pass(topics, directory):
    assert topics.problems() == []
    done = subprocess.run(
        [sys.executable, "-c", CROWDED, directory], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == 3 * [
        f"BrokerError cannot use {directory}/topics.db: Too many open files; raise the limit on "
        "open files"
    ]


WITHOUT_INODES = """
import sys
from pathlib import Path
from connectors.embedded.topics import EmbeddedTopics
topics = EmbeddedTopics(sys.argv[1])
topics.create()
try:
    for i in range(64):
        Path(sys.argv[1], str(i)).touch()
except OSError:
    try:
        topics.reader(["events"])
    except OSError as error:
        print(type(error).__name__, error)
"""


def test_a_disk_that_takes_no_more_files_is_said_to_be_full_and_may_have_room_again(directory):
    directory.mkdir()
    script = 'mount -t tmpfs -o nr_inodes=16 tmpfs "$0" && exec "$@"'
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, directory]
    try:
        subprocess.run([*command, "true"], check=True, capture_output=True, timeout=PATIENCE_S)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root may mount")
    done = subprocess.run(
        [*command, sys.executable, "-c", WITHOUT_INODES, directory],
        capture_output=True, text=True, check=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.stdout == (
        f"BrokerError cannot use {directory}/topics.db: No space left on device; free some space\n"
    )


# --- damage

FLIPS = st.lists(st.tuples(st.floats(0.0, 1.0), st.integers(1, 255)), min_size=1, max_size=3)


@examples(60)
@given(flips=FLIPS, cut=st.none() | st.floats(0.0, 1.0))
def test_a_database_with_other_bytes_is_noticed_or_as_it_was(flips, cut):
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as place:
        topics = EmbeddedTopics(place, clock=lambda: NOW)
        topics.create()
        _fill(topics)
        expected = _everything(topics)
        path = Path(place, "topics.db")
        path.write_bytes(_torn(path.read_bytes(), flips, cut))
        try:
            found = _everything(topics)
        except BrokerError as error:
            found = str(error)
        assert found == expected or re.search(
            "was changed: |belongs to another program|is empty|disk I/O error|has version", found
        )
        topics.close()


@examples(60)
@given(flips=FLIPS, cut=st.none() | st.floats(0.0, 1.0))
def test_a_torn_log_leaves_the_state_of_a_commit_before(flips, cut):
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as place:
        topics = EmbeddedTopics(Path(place, "a"), clock=lambda: NOW)
        topics.create()
        client = join(topics)
        seen = [([], {})]
        for i in range(6):
            put(topics, event(i))
            client.poll(0.0)
            client.commit([prediction(i), state("head", i)])
            seen.append((seen[-1][0] + [i], {"head": i}))
        shutil.copytree(Path(place, "a"), Path(place, "b"))
        client.close()
        log = Path(place, "b", "topics.db-wal")
        log.write_bytes(_torn(log.read_bytes(), flips, cut))
        Path(place, "b", "topics.db-shm").unlink()
        copied = EmbeddedTopics(Path(place, "b"), clock=lambda: NOW)
        again = join(copied)
        done = [int(json.loads(r.value)["event_id"][1:]) for r in read(copied, "predictions")]
        known = dict(names_and_values(again.history({0: {}})))
        assert (done, known) in seen
        waiting = [int(json.loads(r.value)["event_id"][1:]) for r in again.poll(0.0)]
        assert waiting in ([], [len(done)])  # an event whose batch is gone comes again
        copied.close()


def _torn(data, flips, cut):
    torn = bytearray(data)
    for where, bits in flips:
        torn[min(int(where * len(torn)), len(torn) - 1)] ^= bits
    return bytes(torn if cut is None else torn[: int(cut * len(torn))])


def _fill(topics):
    put(topics, *[event(i) for i in range(40)])
    client = join(topics, max_records=10)
    for i in range(3):
        client.poll(0.0)
        client.commit([prediction(i), *[state(f"n{k}", i) for k in range(30)]])
    client.close()


def _everything(topics):
    client = join(topics)
    found = [client.history({0: {}}), client.poll(0.0), read(topics, "events", "predictions")]
    values = [[(r.topic, r.offset, r.key, r.value) for r in records] for records in found]
    client.close()
    return values, topics.identity(), topics.backlog("g")


# --- compaction


def test_what_was_replaced_or_forgotten_is_gone_from_the_bytes_when_a_worker_starts(
    topics, path, clock
):
    client = join(topics)
    client.commit([state("head", "a secret"), state("head", 1, "bob"), state("head", 2, "bob")])
    client.commit([state("head", None), prediction(1)])
    client.close()
    clock[0] += DAY / 2
    join(topics).close()
    assert b"secret" not in path.read_bytes()
    client = join(topics)
    assert names_and_values(client.history({0: {}})) == [("head", 2), ("head", None)]
    client.close()
    clock[0] += DAY
    client = join(topics)
    assert names_and_values(client.history({0: {}})) == [("head", 2)]
    client.close()
    assert b"ann\x1fhead" not in path.read_bytes()
    assert topics.problems() == []


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 30), st.sampled_from([1, 3, 20, 200])), max_size=40),
        min_size=1,
        max_size=6,
    )
)
def test_no_byte_of_what_was_replaced_is_left_whatever_moves_in_the_file(batches):
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as place:
        topics, n, last = EmbeddedTopics(place, clock=lambda: NOW), 0, {}
        topics.create()
        for batch in batches:
            client = join(topics)
            for name, size in batch:
                n += 1
                client.commit([state(f"n{name}", f"<{n:05}>" * size)])
                last[name] = n
            client.close()
        join(topics).close()
        left = set(re.findall(rb"<(\d{5})>", Path(place, "topics.db").read_bytes()))
        assert left == {b"%05d" % n for n in last.values()}


def test_what_was_read_to_its_end_is_not_read_again_after_a_compaction(topics):
    client = join(topics)
    ends = [client.commit([state("a", i), state("b", i)])["state", 0] for i in range(3)]
    reader, behind = topics.reader(["state"]), topics.reader(["state"])
    assert len(reader.poll(0.0)) == 6
    client.close()
    client = join(topics)
    assert reader.poll(0.0) == []
    assert list(client.history({0: {"state": ends[2]}})) == []
    ends.append(client.commit([state("a", 3)])["state", 0])
    assert ends == sorted(ends)
    assert names_and_values(reader.poll(0.0)) == [("a", 3)]
    assert names_and_values(client.history({0: {"state": ends[2]}})) == [("a", 3)]
    assert not behind.caught_up
    assert names_and_values(behind.poll(0.0)) == [("a", 2), ("b", 2), ("a", 3)]
    assert behind.caught_up


def test_a_worker_that_is_never_restarted_keeps_replaced_records_for_a_while_only(
    topics, path, monkeypatch
):
    monkeypatch.setattr(topics_module, "COMPACT_BYTES", 8_000)
    with closing(join(topics)) as client, closing(topics.reader(["state"])) as reader:
        for i in range(40):
            value = f"<{i:05}>" * 200
            client.commit([prediction(i), state("head", value)])
            assert names_and_values(reader.poll(0.0)) == [("head", value)]
            assert len(read(topics, "state")) <= 1 + 8_000 // len(value)
        assert names_and_values(client.history({0: {}}))[-1] == ("head", value)
    assert len(set(re.findall(rb"<(\d{5})>", path.read_bytes()))) <= 1 + 8_000 // len(value)
    assert len(read(topics, "predictions")) == 40


def test_a_reader_that_was_stopped_holds_up_no_worker(topics, path, monkeypatch):
    monkeypatch.setattr(database_module, "EMPTY_S", 0.01)
    client = join(topics)
    client.commit([state("head", "a secret"), state("head", 1)])
    client.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as stopped:
        stopped.execute("BEGIN")
        stopped.execute("SELECT * FROM state").fetchone()
        start = monotonic()
        client = join(topics)
        assert monotonic() - start < database_module.BUSY_S / 2
        client.commit([state("head", 2)])
        client.close()
    join(topics).close()
    assert names_and_values(read(topics, "state")) == [("head", 2)]
    assert b"secret" not in path.read_bytes()


def test_what_was_removed_before_a_crash_is_gone_once_a_worker_has_started(topics, path):
    used(topics)
    page = topics.reader(["state"])  # keeps the log when a worker ends
    with closing(join(topics)) as client:
        client.commit([state("head", "<secret>")])
        client.commit([state("head", None)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "_empty_log", die)
        with pytest.raises(KilledError):
            join(topics)
    assert b"<secret>" in everything_in(path)
    with closing(join(topics)):
        assert b"<secret>" not in everything_in(path)
    page.close()


def die(*_):
    raise KilledError


def everything_in(path):
    return b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*"))


def test_a_worker_compacts_no_topic_before_it_has_doubled(topics, monkeypatch):
    monkeypatch.setattr(topics_module, "COMPACT_BYTES", 1)
    compacted = []
    compact = Database.compact

    def note(self, table, now):
        compacted.append(table)
        return compact(self, table, now)

    monkeypatch.setattr(Database, "compact", note)
    with closing(join(topics)) as client:
        for i in range(64):
            client.commit([state(f"n{i:02}", "kept")])
    assert compacted.count("state") <= 1 + 7  # when it starts, and at 1, 2, 4, ..., 64 records


def test_offsets_go_on_where_nothing_is_left(topics, clock):
    client = join(topics)
    end = client.commit([state("a", 1), state("a", None)])["state", 0]
    client.close()
    clock[0] += 2 * DAY
    for i in range(3):
        client = join(topics)
        assert len(list(client.history({0: {}}))) == min(i, 1)
        assert client.commit([state("b", i)])["state", 0] == end + i + 1
        client.close()
    assert names_and_values(read(topics, "state")) == [("b", 1), ("b", 2)]


# --- laws


class Dying:
    """Kills a worker in one of the next statements that it has its database execute."""

    def __init__(self, patch):
        self.left = None
        self.is_worker = False
        for name in ("__init__", "poll", "commit"):
            self.wrap(patch, EmbeddedWorkerClient, name, self.work)
        for name in ("_execute", "insert"):
            self.wrap(patch, Database, name, self.count)

    def __call__(self, arguments):
        (self.left,) = arguments or (None,)

    @staticmethod
    def wrap(patch, owner, name, around):
        call = getattr(owner, name)
        patch.setattr(owner, name, lambda *a, **options: around(lambda: call(*a, **options)))

    def work(self, call):
        self.is_worker = True
        try:
            return call()
        finally:
            self.is_worker = False

    def count(self, call):
        if self.is_worker and self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise KilledError
        return call()


@given(steps=STEPS, data=st.data())
def test_killed_at_any_statement_every_event_counts_once_and_in_order(steps, data):
    calls = st.tuples(st.just("disturb"), st.integers(0, 40))
    deaths = data.draw(st.lists(st.tuples(st.integers(len(KEYS), len(steps)), calls), max_size=6))
    for place, death in sorted(deaths, reverse=True):
        steps.insert(place, death)
    with (
        tempfile.TemporaryDirectory(dir=IN_MEMORY) as directory,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(topics_module, "COMPACT_BYTES", 200)
        check(EmbeddedTopics(directory), steps, 1, disturb=Dying(patch))


@examples(20)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.integers(0, 9)), max_size=6))
def test_a_directory_copied_between_two_commits_is_that_of_the_first(records):
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as place:
        topics = EmbeddedTopics(Path(place, "a"), clock=lambda: NOW)
        topics.create()
        client = join(topics)
        for i, record in enumerate(records):
            known = fold(client.history({0: {}}), "state")
            copy = Path(place, "copy")
            shutil.copytree(Path(place, "a"), copy)
            client.commit([state(*record), prediction(i)])
            copied = EmbeddedTopics(copy, clock=lambda: NOW)
            assert fold(join(copied).history({0: {}}), "state") == known
            assert len(read(copied, "predictions")) == i
            copied.close()
            shutil.rmtree(copy)
        topics.close()
