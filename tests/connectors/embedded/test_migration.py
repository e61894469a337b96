"""Topics of an earlier version: files of lines, moved into a database and nothing lost."""

import json
import os
import shutil
import stat
import subprocess
import sys
from contextlib import closing

import pytest

from connectors.embedded import migration
from connectors.embedded.directory import hold
from connectors.embedded.migration import migrate
from connectors.embedded.topics import EmbeddedTopics
from connectors.topics import BrokerError, Outgoing, RefusedError
from connectors.wire.record_lines import from_line, to_line

IDENTITY = "5afc27c6bc4e271f"
FILES = {
    "events.jsonl": b'{"event_id":"e1","key":"ann","x":{}}\n\n \t\nhello\n{"x":{},"key":"bob"}',
    "answers.jsonl": b'{"type":"answer","event_id":"e1","key":"ann"}\n',
    "taken-back.jsonl": b'{"record":{"at":3.0,"key":"ann\\u001fe1\\u001f0"}}\n',
    "predictions.jsonl": b'{"event_id":"e1","key":"ann"}\n{"never":"committed',
    "requests.jsonl": b"",
    "consensus.jsonl": b'{"event_id":"e1","key":"ann"}\n',
    "state.jsonl": (
        b'{"compacted":{"first":101,"end":136}}\n'
        b'{"key":"ann","name":"a","value":1}\n'
        b'{"key":"ann","name":"b","value":2}\n'
    ),
    "dead-letters.jsonl": (
        b'{"record":{"at":5.0,"headers":[["dlq.stage","decode"]],"bytes":{"base64":"/w=="}}}\n'
    ),
}
ENDS = {"predictions": 30, "requests": 0, "consensus": 30, "state": 171, "dead-letters": 83}
POSITION = {
    "version": 1,
    "identity": IDENTITY,
    "ends": ENDS,
    "groups": {"g": {"events": 41, "answers": 46, "consensus": 0}},
}


@pytest.fixture
def directory(tmp_path):
    path = tmp_path / "topics"
    path.mkdir(mode=0o700)
    for name, data in FILES.items():
        (path / name).write_bytes(data)
        os.utime(path / name, (7.0, 7.0))
    (path / "position.json").write_text(json.dumps(POSITION))
    return path


def read(directory, *topics):
    with closing(EmbeddedTopics(directory).reader(topics)) as reader:
        return reader.poll(0.0)


def test_an_earlier_directory_is_refused_with_the_command_that_migrates_it(directory):
    topics = EmbeddedTopics(directory)
    for call in (
        topics.create,
        topics.identity,
        lambda: topics.reader(["events"]),
        lambda: topics.writer("w"),
        lambda: topics.client(group="g", instance="a", max_records=1),
    ):
        with pytest.raises(RefusedError, match=r"as files of an earlier version \(.*\); stop") as e:
            call()
        assert str(e.value).endswith(f"then run: streamgp migrate {directory}")
    assert topics.problems() == [str(e.value)]


def test_the_end_of_what_waits_counts_the_gaps_between_offsets(directory):
    migrate(directory)
    topics = EmbeddedTopics(directory)
    with closing(topics.writer("retract")) as writer:
        writer.send(Outgoing(topic="consensus", key=b"bob", value=None))
    # A line of 49 bytes, and the new record after it: whoever waits for that waits until 50.
    backlog = topics.backlog("g")["consensus", 0]
    assert (backlog.position, backlog.n_waiting, backlog.end) == (0, 2, 50)


def test_every_record_keeps_its_place_its_bytes_and_its_time(directory):
    assert migrate(directory) == [
        "events.jsonl: 3 records",
        "answers.jsonl: 1 record",
        "predictions.jsonl: 1 record",
        "consensus.jsonl: 1 record",
        "state.jsonl: 2 records",
        "dead-letters.jsonl: 1 record",
        "taken-back.jsonl: 1 record",
        f"made {directory}/topics.db",
        f"moved the files to {directory}/migrated, which can be deleted",
    ]
    topics = EmbeddedTopics(directory)
    assert topics.problems() == topics.warnings() == []
    assert topics.identity() == IDENTITY
    assert [(r.offset, r.key, r.value, r.at) for r in read(directory, "events")] == [
        (0, b"ann", b'{"event_id":"e1","key":"ann","x":{}}', 7.0),
        (41, None, b"hello", 7.0),
        (47, b"bob", b'{"x":{},"key":"bob"}', 7.0),  # its end was forgotten
    ]
    assert [(r.offset, r.key) for r in read(directory, "state")] == [
        (101, b"ann\x1fa"),
        (136, b"ann\x1fb"),
    ]
    [letter] = read(directory, "dead-letters")
    assert (letter.value, letter.headers, letter.at) == (b"\xff", (("dlq.stage", b"decode"),), 5.0)
    assert [r.value for r in read(directory, "predictions")] == [b'{"event_id":"e1","key":"ann"}']
    assert [r.key for r in read(directory, "consensus")] == [b"ann\x1fe1\x1f0"]


def test_a_worker_goes_on_where_it_was(directory):
    migrate(directory)
    topics = EmbeddedTopics(directory)
    assert topics.lags("g") == {("answers", 0): 0, ("consensus", 0): 1, ("events", 0): 2}
    client = topics.client(group="g", instance="a", max_records=500)
    found = client.poll(0.0)
    assert [(r.topic, r.offset) for r in found] == [
        ("consensus", 0),
        ("events", 41),
        ("events", 47),
    ]
    assert sum(client.lag().values()) == 0
    assert [r.offset for r in client.history({0: {"state": 136}})] == [136, 0]  # as in a snapshot
    assert list(client.history({0: {"state": 171, "consensus": 30}})) == []
    assert client.commit([Outgoing(topic="predictions", key=None, value=b"{}")]) == {
        ("predictions", 0): 31,
        ("consensus", 0): 31,
    }
    client.close()
    assert topics.lags("g")["events", 0] == 0


def test_files_and_folder_stay_their_owners_alone_and_hold_what_they_held(directory):
    migrate(directory)
    moved = {path.name: path.read_bytes() for path in (directory / "migrated").iterdir()}
    assert moved == {**FILES, "position.json": json.dumps(POSITION).encode()}
    assert sorted(os.listdir(directory)) == ["migrated", "topics.db"]
    for name in ("migrated", "topics.db"):
        assert stat.S_IMODE((directory / name).stat().st_mode) & 0o077 == 0


def test_done_twice_it_does_nothing_the_second_time_also_beside_files_that_came_later(directory):
    migrate(directory)
    assert migrate(directory) == []
    (directory / "events.jsonl").write_text("{}\n")
    assert migrate(directory) == []
    assert (directory / "events.jsonl").exists()


def test_a_directory_in_which_no_worker_has_been_is_migrated_with_an_identity_of_its_own(tmp_path):
    (tmp_path / "events.jsonl").write_text('{"key":"ann","x":{}}\n')
    migrate(tmp_path)
    assert EmbeddedTopics(tmp_path).identity() != IDENTITY
    assert [r.key for r in read(tmp_path, "events")] == [b"ann"]


def test_results_without_a_position_are_refused(directory):
    (directory / "position.json").unlink()
    with pytest.raises(RefusedError, match=r"predictions\.jsonl holds results, and position\.json"):
        migrate(directory)


def test_a_directory_without_topics_is_refused(tmp_path):
    with pytest.raises(
        RefusedError, match=r"holds no topics, expected the files of an earlier ver"
    ):
        migrate(tmp_path)


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("position.json", b"{", "it is damaged"),
        ("position.json", b'{"version":1,"identity":"a","ends":{"state":0}}', "ends of state"),
        ("predictions.jsonl", b"{}\n", "no line ends at offset 30, but 3"),
        ("predictions.jsonl", b"." * 40, "no line ends at offset 30, but 40"),
        ("state.jsonl", b'{"compacted":{"first":1}}\n', "its first line is damaged"),
        ("consensus.jsonl", b"." * 29 + b"\n", "no worker has written the line at offset 0"),
        ("answers.jsonl", b"", "answers ends at offset 0, but is worked off to 46"),
    ],
)
def test_files_that_are_damaged_are_named_and_left_alone(directory, name, data, why):
    (directory / name).write_bytes(data)
    with pytest.raises(RefusedError, match=why):
        migrate(directory)
    assert {path.name for path in directory.iterdir()} == {*FILES, "position.json"}


def test_files_stay_beside_a_database_that_was_not_made_of_them(directory):
    (directory / "topics.db").touch()
    with pytest.raises(RefusedError, match=r"topics\.db is empty: it was cut, or never written"):
        migrate(directory)
    (directory / "topics.db").unlink()
    other = directory.parent / "other"
    EmbeddedTopics(other).create()
    shutil.copy(other / "topics.db", directory)
    with pytest.raises(RefusedError, match=r"topics\.db was not made of the files beside it; move"):
        migrate(directory)
    assert (directory / "events.jsonl").exists()


def test_a_file_that_is_missing_is_named(directory):
    (directory / "state.jsonl").unlink()
    with pytest.raises(RefusedError, match=r"state\.jsonl was changed: it is not there"):
        migrate(directory)


def test_while_a_worker_uses_the_directory_it_is_left_alone(directory):
    lock = hold(directory)
    with pytest.raises(RefusedError, match="is in use by another worker"):
        migrate(directory)
    os.close(lock)
    assert not (directory / "topics.db").exists()


# Of each directory that is named, a process of its own migrates it and is killed.
KILLED = """
import os, signal, sys
from pathlib import Path
from connectors.embedded import database, migration

def dying(call):
    def wrapper(*arguments, **options):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments, **options)
    return wrapper

for name in ("replace", "rename", "fsync"):
    setattr(os, name, dying(getattr(os, name)))
database.Database._execute = dying(database.Database._execute)
for line in sys.stdin:
    place, _, n = line.rpartition(" ")
    left, child = int(n), os.fork()
    if child == 0:
        migration.migrate(Path(place))
        os._exit(0)
    print(os.waitpid(child, 0)[1], flush=True)
"""


def test_killed_at_any_moment_it_leaves_the_old_or_the_new_and_completes_when_run_again(directory):
    whole = directory.parent / "whole"
    shutil.copytree(directory, whole)
    migrate(whole)
    expected = _all(whole)
    n = n_killed = 0
    seen = set()
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", KILLED], stdin=pipe, stdout=pipe, text=True
    ) as runs:
        while n_killed == n:
            place = directory.parent / f"killed-{n}"
            shutil.copytree(directory, place)
            runs.stdin.write(f"{place} {n}\n")
            runs.stdin.flush()
            was_killed = runs.stdout.readline() != "0\n"
            n_killed += was_killed
            is_new = (place / "topics.db").exists()
            seen.add((is_new, (place / "position.json").exists()))
            if (place / "position.json").exists():
                with pytest.raises(RefusedError, match="streamgp migrate"):
                    EmbeddedTopics(place).reader(["events"])
                migrate(place)
            assert _all(place) == expected
            assert sorted(os.listdir(place)) == ["migrated", "topics.db"]
            n += 3
            n_killed += 2 * was_killed
    assert seen >= {(False, True), (True, True), (True, False)}


def _all(directory):
    topics = EmbeddedTopics(directory)
    records = read(directory, "events", "answers", "consensus", "state", "dead-letters")
    assert topics.problems() == []
    return [(r.topic, r.offset, r.key, r.value) for r in records], topics.backlog("g")


def test_lines_that_were_printed_are_records_again(directory):
    migrate(directory)
    for record in read(directory, "events", "answers"):
        line = to_line(Outgoing(topic=record.topic, key=record.key, value=record.value), record.at)
        # What is no JSON is printed in an envelope.
        [printed] = [line] if record.value != b"hello" else [from_line("events", line).value]
        assert printed in FILES[f"{record.topic}.jsonl"].splitlines()


def test_a_full_disk_leaves_the_files(directory, monkeypatch):
    def refuse(*_):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(migration, "sync_directory", lambda _: None)
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(
        BrokerError, match=r"^cannot write .*topics\.db: No space left on device; fre"
    ):
        migrate(directory)
    assert {path.name for path in directory.iterdir()} == {*FILES, "position.json"}
