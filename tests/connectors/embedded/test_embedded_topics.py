import errno
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from connectors.files.positions import OUTPUT_LOGS, read_position
from connectors.files.topics import FileTopics
from hypothesis import given, settings
from hypothesis import strategies as st
from test_topics_contract import KEYS, STEPS, KilledError, check, fold

from connectors.files import compaction, layout, logs, streams
from connectors.files import link as link_module
from connectors.jsonl import alone_in
from connectors.storage import snapshots
from connectors.topics import LinkError, Outgoing, RefusedError, Whole

NOW = 1_000_000_000.0
DAY = 86_400.0


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "topics"


@pytest.fixture
def clock():
    """The time, for whoever sets it."""
    return [NOW]


@pytest.fixture
def topics(directory, clock):
    made = FileTopics(directory, clock=lambda: clock[0])
    made.create()
    yield made
    made.close()


def join(topics, group="g", max_records=500):
    return topics.link(group=group, instance="a", max_records=max_records)


def append(path, data):
    with open(path, "ab") as file:
        file.write(data)


def prediction(i):
    return Outgoing(topic="predictions", key=b"ann", value=b'{"event_id":"e%d","key":"ann"}' % i)


def state(name, value, entity="ann"):
    data = None
    if value is not None:
        said = {"type": "state", "version": 1, "key": entity, "name": name, "value": value}
        data = json.dumps(said, separators=(",", ":")).encode()
    return Outgoing(topic="state", partition=0, key=f"{entity}\x1f{name}".encode(), value=data)


def read(topics, *names):
    reader, records = topics.reader(names), []
    while found := reader.poll(0.0):
        records += found
    assert reader.caught_up
    return records


def names_and_values(records):
    return [(r.key.decode().split("\x1f")[-1], value_of(r)) for r in records]


def value_of(record):
    return None if record.value is None else json.loads(record.value)["value"]


# --- lines written by hand


def test_a_line_appended_in_a_shell_is_an_event(topics, directory):
    line = '{"x": {"light": 0.5}, "key": "ann"}'
    subprocess.run(["sh", "-c", f"echo '{line}' >> events.jsonl"], cwd=directory, check=True)
    os.utime(directory / "events.jsonl", (7.0, 7.0))
    [record] = join(topics).poll(0.0)
    assert (record.topic, record.partition, record.offset) == ("events", 0, 0)
    assert (record.key, record.value, record.headers) == (b"ann", line.encode(), ())
    assert record.at == 7.0  # as old as its file


def test_what_is_no_message_is_a_record_of_its_bytes_and_blank_lines_are_none(topics, directory):
    append(directory / "events.jsonl", b'hello\n\n \t\n\xff\xfe\r\n{"x":{},"key":"ann"}\n\n')
    link = join(topics)
    found = link.poll(0.0)
    assert [(r.offset, r.key, r.value) for r in found] == [
        (0, None, b"hello"),
        (10, None, b"\xff\xfe\r"),
        (14, b"ann", b'{"x":{},"key":"ann"}'),
    ]
    link.commit([])
    link.close()
    assert join(topics).poll(0.0) == []


def test_a_line_waits_until_it_is_whole(topics, directory):
    link, path = join(topics), directory / "events.jsonl"
    append(path, b'{"x":')
    assert link.poll(0.0) == []
    append(path, b"{}}\n{")
    assert [record.value for record in link.poll(0.0)] == [b'{"x":{}}']
    assert link.commit([]) == {}
    link.close()
    append(path, b"}\n")
    assert [record.value for record in join(topics).poll(0.0)] == [b"{}"]


def test_a_poll_sees_what_is_written_while_it_waits(topics, directory, monkeypatch):
    naps = []

    def sleep(seconds):
        naps.append(seconds)
        if len(naps) == 3:
            append(directory / "answers.jsonl", b"{}\n")

    monkeypatch.setattr(logs, "sleep", sleep)
    [record] = join(topics).poll(600.0)
    assert record.topic == "answers"
    assert naps == [0.05] * 3


def test_a_name_in_taken_back_forgets_it_and_becomes_part_of_the_history(topics, directory, clock):
    append(directory / "taken-back.jsonl", b'{"record":{"key":"ann"}}\n{"key":"bob"}\n')
    link = join(topics)
    found = link.poll(0.0)
    assert (found[0].topic, found[0].key, found[0].value) == ("consensus", b"ann", None)
    assert list(link.history({0: {}})) == []
    clock[0] += 5.0
    assert set(link.commit([])) == {("consensus", 0)}
    [known] = link.history({0: {}})
    assert (known.key, known.value, known.at) == (b"ann", None, NOW + 5.0)
    assert [r.key for r in read(topics, "consensus")] == [b"ann"]
    assert link.commit([]) == {}


def test_an_editor_may_replace_the_file_of_the_events(topics, directory):
    link, path = join(topics), directory / "events.jsonl"
    append(path, b"[1]\n")
    assert len(link.poll(0.0)) == 1
    other = directory / "events.jsonl~"
    other.write_bytes(b"[1]\n[2]\n")
    os.replace(other, path)
    assert [record.value for record in link.poll(0.0)] == [b"[2]"]


# --- what is written


def test_messages_are_lines_that_people_and_other_programs_read(topics, directory):
    link = join(topics)
    headers = [("ce_type", b"streamgp.prediction.v1"), ("ce_id", b"ann/e1/prediction")]
    said = b'{"type":"prediction","key":"ann"}'
    letter = Outgoing(
        topic="dead-letters", key=None, value=b"\xff", headers=[("dlq.stage", b"decode")]
    )
    link.commit(
        [
            Outgoing(topic="predictions", key=b"ann", value=said, headers=headers),
            state("head", 1),
            state("head", None),
            letter,
        ]
    )
    assert (directory / "predictions.jsonl").read_bytes() == said + b"\n"
    assert (directory / "state.jsonl").read_bytes().splitlines() == [
        b'{"type":"state","version":1,"key":"ann","name":"head","value":1}',
        b'{"record":{"at":1000000000.0,"key":"ann\\u001fhead"}}',
    ]
    assert json.loads((directory / "dead-letters.jsonl").read_bytes()) == {
        "record": {
            "at": NOW,
            "headers": [["dlq.stage", "decode"]],
            "bytes": {"base64": "/w=="},
        }
    }


def test_files_are_their_owners_alone(topics, directory):
    assert sorted(os.listdir(directory)) == [
        "answers.jsonl",
        "consensus.jsonl",
        "dead-letters.jsonl",
        "events.jsonl",
        "position.json",
        "predictions.jsonl",
        "requests.jsonl",
        "state.jsonl",
        "taken-back.jsonl",
    ]
    for path in (directory, *directory.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    join(topics).commit([state("head", 1), state("head", 2)])
    topics.close()
    join(topics)
    assert stat.S_IMODE((directory / "state.jsonl").stat().st_mode) == 0o600


def test_making_says_what_was_made(tmp_path):
    directory = tmp_path / "a" / "b"
    made = FileTopics(directory).create()
    assert made[0] == f"made {directory}"
    assert {line.split("/")[-1] for line in made[1:]} == {*os.listdir(directory)}


def test_a_commit_without_news_touches_nothing(topics, directory):
    link = join(topics)
    before = (directory / "position.json").stat().st_ino
    link.poll(0.0)
    assert link.commit([]) == {}
    assert (directory / "position.json").stat().st_ino == before


def test_a_worker_writes_outputs_only_and_others_write_inputs_only(topics):
    link, writer = join(topics), topics.writer("w")
    with pytest.raises(ValueError, match=r"^topic must be one of predictions, .*, got 'events'$"):
        link.commit([prediction(1), Outgoing(topic="events", key=None, value=b"{}")])
    match = r"got one for predictions; that file is the worker's$"
    with pytest.raises(ValueError, match=match):
        writer.send(prediction(1))
    with pytest.raises(ValueError, match=r"got one for consensus; that file is the worker's$"):
        writer.send(Outgoing(topic="consensus", key=b"a", value=b""))
    assert read(topics, "predictions") == []


def test_there_is_one_partition(topics):
    link, writer = join(topics), topics.writer("w")
    match = r"^partition must be 0, the only one, got 1$"
    with pytest.raises(ValueError, match=match):
        link.commit([Outgoing(topic="state", partition=1, key=b"a", value=b"{}")])
    with pytest.raises(ValueError, match=match):
        link.history({1: {}})
    with pytest.raises(ValueError, match=match):
        writer.send(Outgoing(topic="events", partition=1, key=b"a", value=b"{}"))


def test_a_writer_keeps_its_lines_apart_from_an_unfinished_one(topics, directory):
    append(directory / "events.jsonl", b'{"x":{}')
    writer = topics.writer("w")
    writer.send(Outgoing(topic="events", key=None, value=b"[1]"))
    writer.close()
    assert (directory / "events.jsonl").read_bytes() == b'{"x":{}\n[1]\n'


def test_a_writer_does_not_gather_lines_without_end(topics, directory, monkeypatch):
    monkeypatch.setattr(streams, "_MOST_UNSENT", 10)
    writer = topics.writer("w")
    for i in range(3):
        writer.send(Outgoing(topic="events", key=None, value=b"[%d]" % i))
    assert (directory / "events.jsonl").read_bytes() == b"[0]\n[1]\n[2]\n"


WRITER = """
import sys
from connectors.files.topics import FileTopics
from connectors.topics import Outgoing
directory, name = sys.argv[1:]
writer = FileTopics(directory).writer(name)
for i in range(100):
    value = b'{"key":"%s","i":%d,"x":"%s"}' % (name.encode(), i, b"." * 1000)
    writer.send(Outgoing(topic="events", key=name.encode(), value=value))
    writer.flush()
"""


def test_lines_of_several_processes_do_not_mix(topics, directory):
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, directory, name]) for name in ("a", "b")
    ]
    shell = 'for i in $(seq 0 99); do echo \'{"key":"c","i":\'$i\'}\'; done >> events.jsonl'
    writers.append(subprocess.Popen(["sh", "-c", shell], cwd=directory))
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    found = {}
    for record in join(topics).poll(0.0):
        found.setdefault(record.key, []).append(json.loads(record.value)["i"])
    assert found == {b"a": [*range(100)], b"b": [*range(100)], b"c": [*range(100)]}


# --- one worker

HOLDER = """
import sys
from connectors.files.topics import FileTopics
link = FileTopics(sys.argv[1]).link(group="g", instance="other", max_records=1)
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_directory_serves_one_worker_and_readers_and_writers_beside_it(topics, directory):
    command = [sys.executable, "-c", HOLDER, str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"ready\n"
        match = (
            r"topics is in use by another worker, and serves only one; stop that one, or use "
            r"another broker$"
        )
        with pytest.raises(LinkError, match=match):
            join(topics)
        assert topics.n_members("g") == 1
        writer = topics.writer("w")
        writer.send(Outgoing(topic="events", key=None, value=b"{}"))
        writer.close()
        assert len(read(topics, "events")) == 1
        holder.kill()
        holder.wait()
        assert topics.n_members("g") == 0
        assert len(join(topics).poll(0.0)) == 1


def test_a_replay_does_not_write_into_the_directory_of_a_worker(topics, directory):
    join(topics)
    with pytest.raises(ValueError, match="in use"), alone_in(directory):
        pass


def test_where_no_directory_can_be_locked_the_worker_works_all_the_same(topics, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr("fcntl.flock", refuse)
    writer = topics.writer("w")
    writer.send(Outgoing(topic="events", key=None, value=b"{}"))
    writer.close()
    assert len(join(topics).poll(0.0)) == 1


def test_a_closed_link_is_of_no_use(topics):
    link = join(topics)
    link.close()
    link.close()
    with pytest.raises(ValueError, match=r"^link is closed; open another one$"):
        link.poll(0.0)


# --- what is wrong


def test_what_is_missing_is_named(tmp_path, topics, directory):
    advice = "make the topics with --create-topics"
    other = tmp_path / "other"
    assert FileTopics(other).problems() == [f"{other} is not there; {advice}"]
    with pytest.raises(LinkError, match=r"^cannot use .*other: No such file or directory; create"):
        join(FileTopics(other))
    with pytest.raises(LinkError, match=r"^cannot use .*other: No such file or directory; create"):
        FileTopics(other).n_members("g")
    other.touch()
    assert FileTopics(other).problems() == [f"{other} is not a directory; {advice}"]
    match = r"^cannot make topics in .*other: File exists; name another place$"
    with pytest.raises(LinkError, match=match):
        FileTopics(other).create()
    for name in ("events.jsonl", "position.json"):
        (directory / name).unlink()
    assert topics.problems() == [
        f"{directory / name} is not there; {advice}" for name in ("events.jsonl", "position.json")
    ]
    with pytest.raises(LinkError, match=r"position\.json is not there; make the topics with --cre"):
        join(topics)


def test_a_missing_file_is_named_by_who_needs_it(topics, directory):
    (directory / "events.jsonl").unlink()
    match = r"events\.jsonl was changed: it is not there; bring it back, or begin anew in another"
    with pytest.raises(LinkError, match=match):
        join(topics)
    with pytest.raises(LinkError, match=match):
        topics.reader(["events"])
    writer = topics.writer("w")
    writer.send(Outgoing(topic="events", key=None, value=b"{}"))
    with pytest.raises(LinkError, match=r"^cannot write .*events\.jsonl: No such file or direc"):
        writer.close()


def test_results_of_somebody_else_are_not_overwritten(tmp_path):
    (tmp_path / "events.jsonl").write_text("{}\n")
    (tmp_path / "predictions.jsonl").write_text("{}\n")
    match = r"predictions\.jsonl holds other results, expected none; name another directory$"
    with pytest.raises(LinkError, match=match):
        FileTopics(tmp_path).create()
    (tmp_path / "predictions.jsonl").unlink()
    topics = FileTopics(tmp_path)
    topics.create()
    assert len(join(topics).poll(0.0)) == 1
    topics.close()


def test_what_cannot_be_written_is_named(topics, directory, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, _: path.name != "state.jsonl")
    [problem] = topics.problems()
    path = directory / "state.jsonl"
    assert problem == f"{path} cannot be written; make it accessible, or name another place"


def test_what_cannot_be_read_is_named(topics, directory):
    for name in ("events.jsonl", "position.json"):
        (directory / name).unlink()
        (directory / name).mkdir()
    match = r"^cannot read .*position\.json: Is a directory; name another place$"
    with pytest.raises(LinkError, match=match):
        topics.lags("g")
    (directory / "position.json").rmdir()
    with pytest.raises(LinkError, match=r"^cannot read .*events\.jsonl: Is a directory; name"):
        layout.end_of_lines(directory / "events.jsonl")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Input data was truncated"),
        ("{", "Input data was truncated"),
        ('{"version":1,"identity":"1"}', "Object missing required field `ends`"),
        ('{"version":2,"ends":{}}', r"Invalid enum value 2 - at `\$.version`"),
        ('{"version":1,"ends":{"state":-1}}', r"Expected `int` >= 0 - at `\$.ends\[...\]`"),
        ('{"version":1,"ends":{"x":0}}', r"Invalid enum value 'x' - at `key` in `\$.ends`"),
        (
            '{"version":1,"identity":"1","ends":{"state":0}}',
            "ends of state, expected consensus, dead-letters, pr",
        ),
    ],
)
def test_a_damaged_position_is_named(topics, directory, text, why):
    (directory / "position.json").write_text(text)
    match = rf"position\.json is damaged \({why}.*\); bring it back, or begin anew in another direc"
    for call in (lambda: join(topics), lambda: topics.reader(["state"]), lambda: topics.lags("g")):
        with pytest.raises(LinkError, match=match):
            call()
    [problem] = topics.problems()
    assert "is damaged" in problem


def used(topics, directory):
    """Let a worker do something of everything, and leave."""
    append(directory / "events.jsonl", b"[1]\n[2]\n")
    link = join(topics)
    link.poll(0.0)
    link.commit([prediction(1), state("head", 1), state("head", 2)])
    link.close()


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("events.jsonl", b"[1]\n", "it has 4 bytes, expected at least 8"),
        ("events.jsonl", b"[1]\n[2] \n", "no line ends at byte 8"),
        ("predictions.jsonl", b"", r"it has 0 bytes, expected at least \d+"),
        ("state.jsonl", b"?" * 1000, r"no line ends at byte \d+"),
        ("state.jsonl", b'{"compacted":?}\n', r"its first line is damaged \(.*\)"),
        ("state.jsonl", b'{"compacted":{"first":9,"end":900}}\n', r"offset \d+ is not in it"),
    ],
)
def test_a_file_that_is_not_what_it_was_is_named(topics, directory, name, data, why):
    used(topics, directory)
    (directory / name).write_bytes(data)
    match = rf"{name} was changed: {why}; bring it back, or begin anew in another directory$"
    with pytest.raises(LinkError, match=match):
        join(topics)
    [problem] = topics.problems()
    assert f"{name} was changed: " in problem


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"", "it has 0 bytes, expected at least 4"), (b"[1]  \n[2]\n", "no line begins at byte 4")],
)
def test_a_file_that_changes_under_the_worker_is_named(topics, directory, data, why):
    append(directory / "events.jsonl", b"[1]\n")
    link = join(topics)
    link.poll(0.0)
    (directory / "events.jsonl").write_bytes(data)
    with pytest.raises(LinkError, match=rf"events\.jsonl was changed: {why}; bring it back"):
        link.poll(0.0)


@pytest.mark.parametrize("name", ["events.jsonl", "state.jsonl", "position.json"])
def test_a_file_that_held_something_is_to_be_brought_back_not_made_anew(topics, directory, name):
    used(topics, directory)
    kept = (directory / name).read_bytes()
    (directory / name).unlink()
    expected = (
        f"{directory / name} was changed: it is not there; bring it back, or begin anew in another "
        "directory"
    )
    assert topics.problems() == [expected]
    if name != "position.json":  # which is refused where there are results of somebody
        assert topics.create() == []
    assert topics.problems() == [expected]
    (directory / name).write_bytes(kept)
    assert topics.problems() == []


def test_a_file_that_held_nothing_is_made_anew(topics, directory):
    used(topics, directory)
    (directory / "dead-letters.jsonl").unlink()
    [problem] = topics.problems()
    assert problem.endswith("dead-letters.jsonl is not there; make the topics with --create-topics")
    assert topics.create() == [f"made {directory / 'dead-letters.jsonl'}"]


def test_a_damaged_line_of_what_was_learned_is_named(topics, directory):
    """One that is nobody's would be passed over where anybody may write, as on Kafka."""
    used(topics, directory)
    label = b'{"event_id":"e1","key":"ann","revision":0,"y":"hall"}'
    line = Outgoing(topic="consensus", partition=0, key=b"ann\x1fe1\x1f0", value=label)
    for record, is_compacted in ((line, False), (state("tail", 1), True)):
        link = join(topics)
        link.commit([record])
        link.close()
        path = directory / f"{record.topic}.jsonl"
        whole = path.read_bytes()
        assert whole.startswith(b'{"compacted"') == is_compacted
        place = len(whole) - len(record.value) - 1
        path.write_bytes(whole[:place] + b"?" + whole[place + 1 :])
        match = rf"{path.name} was changed: no worker has written the line at byte {place}; bring"
        link = join(topics)
        with pytest.raises(RefusedError, match=match):
            list(link.history({0: {}}))
        link.close()
        path.write_bytes(whole)


def test_of_an_input_that_is_too_long_the_beginning_comes_with_its_size_and_digest(
    topics, directory, monkeypatch
):
    monkeypatch.setattr(logs, "_CHUNK", 4)
    monkeypatch.setattr(logs, "_SKIMMED", 24)
    monkeypatch.setattr(logs, "LONGEST_INPUT", 16)
    monkeypatch.setattr(logs, "MAX_INPUT_BYTES", 7)
    events = directory / "events.jsonl"
    long = b"." * 99 + b"?"
    append(events, b"[1]\n" + long[:50])
    link = join(topics)
    assert [record for _ in range(8) for record in polled(link)] == [(0, b"[1]", None)]
    assert link.lag()["events", 0] == 0
    append(events, long[50:] + b"\n[2]\n")
    found = [record for _ in range(8) for record in polled(link)]
    whole = Whole(size=100, sha256=hashlib.sha256(long).hexdigest())
    assert found == [(4, b".......", whole), (105, b"[2]", None)]
    link.commit([])
    link.close()
    again = join(topics)
    assert polled(again) == []
    reader = topics.reader(["events"])
    read = []
    while not reader.caught_up:
        read += [(record.offset, record.value, record.whole) for record in reader.poll(0.0)]
    assert read == [(0, b"[1]", None), *found]


def polled(link):
    return [(record.offset, record.value, record.whole) for record in link.poll(0.0)]


def test_a_line_that_is_too_long_for_a_worker_to_have_written_it_is_refused(
    topics, directory, monkeypatch
):
    used(topics, directory)
    monkeypatch.setattr(logs, "_CHUNK", 4)
    monkeypatch.setattr(logs, "LONGEST_LINE", 16)
    match = r"state\.jsonl was changed: no worker has written the line of more than 16 bytes at by"
    with pytest.raises(RefusedError, match=match):
        join(topics)


def test_state_of_other_topics_is_named(topics):
    link = join(topics)
    match = (
        r"state\.jsonl ends at offset 0, but is known up to 7: it was made anew, or has lost its "
        r"end$"
    )
    with pytest.raises(LinkError, match=match):
        link.history({0: {"state": 7}})


# --- disks that fail


class FullDisk:
    """Takes so many bytes more."""

    def __init__(self, monkeypatch, n_bytes):
        self.left = n_bytes
        self.write = os.write
        monkeypatch.setattr(os, "write", self)

    def __call__(self, descriptor, data):
        if self.left == 0 and len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        n = self.write(descriptor, bytes(data[: self.left]))
        self.left -= n
        return n


@pytest.mark.parametrize("n_bytes", range(0, 240, 16))
def test_what_a_full_disk_did_not_take_as_a_whole_was_not_committed(
    topics, directory, monkeypatch, n_bytes
):
    used(topics, directory)
    append(directory / "events.jsonl", b"[3]\n")
    link, reader = join(topics), topics.reader(["predictions"], from_end=True)
    assert len(link.poll(0.0)) == 1
    with monkeypatch.context() as patch:
        FullDisk(patch, n_bytes)
        for _ in range(2):
            with pytest.raises(LinkError, match=r"No space left on device; free some space"):
                link.commit([prediction(3), state("head", 3)])
    with pytest.raises(LinkError, match=r"^link has failed \(.*free some space\); start again$"):
        link.poll(0.0)
    link.close()
    assert reader.poll(0.0) == []
    again = join(topics)
    assert [record.value for record in again.poll(0.0)] == [b"[3]"]
    assert names_and_values(again.history({0: {}})) == [("head", 2)]
    again.commit([prediction(3), state("head", 3)])
    assert len(reader.poll(0.0)) == 1
    assert (directory / "predictions.jsonl").read_bytes().count(b"\n") == 2


def test_what_a_full_disk_did_not_take_of_a_writer_is_written_later(topics, directory, monkeypatch):
    append(directory / "events.jsonl", b"[0]")
    writer = topics.writer("w")
    for i in range(1, 4):
        writer.send(Outgoing(topic="events", key=None, value=b"[%d]" % i))
    for n_bytes, there in [(0, b"[0]"), (1, b"[0]\n"), (6, b"[0]\n[1]\n"), (2, b"[0]\n[1]\n")]:
        with monkeypatch.context() as patch:
            FullDisk(patch, n_bytes)
            with pytest.raises(LinkError, match=r"^cannot write .*events.jsonl: No space left on"):
                writer.flush()
        assert (directory / "events.jsonl").read_bytes() == there
    writer.close()
    assert (directory / "events.jsonl").read_bytes() == b"[0]\n[1]\n[2]\n[3]\n"


@pytest.mark.parametrize("name", ["truncate", "replace", "mkdir"])
def test_what_the_system_refuses_is_said_in_words(tmp_path, topics, directory, monkeypatch, name):
    used(topics, directory)

    def refuse(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, name, refuse)
    match = r"^cannot .*: Read-only file system; name a place that is writable$"
    with pytest.raises(LinkError, match=match):
        join(topics) if name != "mkdir" else FileTopics(tmp_path / "new").create()


# --- compaction


def test_what_was_replaced_or_forgotten_is_gone_from_the_bytes_when_a_worker_starts(
    topics, directory, clock
):
    link = join(topics)
    link.commit([state("head", "a secret"), state("head", 1, "bob"), state("head", 2, "bob")])
    link.commit([state("head", None), prediction(1)])
    link.close()
    clock[0] += DAY / 2
    join(topics).close()
    text = (directory / "state.jsonl").read_text()
    assert "secret" not in text
    assert len(text.splitlines()) == 3
    link = join(topics)
    assert names_and_values(link.history({0: {}})) == [("head", 2), ("head", None)]
    link.close()
    clock[0] += DAY
    link = join(topics)
    assert "ann" not in (directory / "state.jsonl").read_text()
    assert names_and_values(link.history({0: {}})) == [("head", 2)]
    assert topics.problems() == []


def test_what_was_read_to_its_end_is_not_read_again_after_a_compaction(topics):
    link = join(topics)
    ends = [link.commit([state("a", i), state("b", i)])["state", 0] for i in range(3)]
    reader = topics.reader(["state"])
    assert len(reader.poll(0.0)) == 6
    link.close()
    link = join(topics)
    assert reader.poll(0.0) == []
    assert list(link.history({0: {"state": ends[2]}})) == []
    ends.append(link.commit([state("a", 3)])["state", 0])
    assert ends == sorted(ends)
    assert names_and_values(reader.poll(0.0)) == [("a", 3)]
    assert names_and_values(link.history({0: {"state": ends[2]}})) == [("a", 3)]


def test_who_had_not_read_to_the_end_reads_all_that_a_compaction_left(topics):
    link = join(topics)
    ends = [link.commit([state("a", i), state("b", i)])["state", 0] for i in range(3)]
    behind = topics.reader(["state"])
    link.close()
    link = join(topics)
    link.commit([state("a", 3)])
    left = [("a", 2), ("b", 2), ("a", 3)]
    assert not behind.caught_up
    assert names_and_values(behind.poll(0.0)) == left
    assert behind.caught_up
    for start in (0, ends[0], ends[1]):
        assert names_and_values(link.history({0: {"state": start}})) == left
    found = list(link.history({0: {}}))
    start = {"state": found[0].offset + 1}
    assert names_and_values(link.history({0: start})) == left[1:]


def test_a_reader_that_is_behind_has_caught_up_with_the_end_of_the_compacted_file(
    topics, monkeypatch
):
    monkeypatch.setattr(streams, "_MANY", 1)
    link = join(topics)
    for i in range(3):
        link.commit([state("a", i), state("b", i)])
    reader = topics.reader(["state"])
    link.close()
    join(topics)
    assert (names_and_values(reader.poll(0.0)), reader.caught_up) == ([("a", 2)], False)
    assert (names_and_values(reader.poll(0.0)), reader.caught_up) == ([("b", 2)], True)


def test_a_file_in_which_everything_counts_is_left_as_it_is(topics, directory):
    link = join(topics)
    link.commit([state("a", 1), state("b", 1)])
    link.close()
    before = (directory / "state.jsonl").stat().st_ino
    join(topics)
    assert (directory / "state.jsonl").stat().st_ino == before


def test_a_file_of_which_nothing_is_left_goes_on(topics, clock):
    link = join(topics)
    link.commit([state("a", 1), state("a", None)])
    link.close()
    clock[0] += 2 * DAY
    for i in range(3):
        link = join(topics)
        assert len(list(link.history({0: {}}))) == min(i, 1)
        link.commit([state("b", i)])
        link.close()
    assert names_and_values(read(topics, "state")) == [("b", 1), ("b", 2)]


# --- counting


def test_about_so_many_lines_are_told_of_a_long_file(tmp_path, monkeypatch):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"12345\n" * 1000)
    monkeypatch.setattr(layout, "_CHUNK", 600)
    assert layout.count_lines(path, 0) == 1000
    assert layout.count_lines(path, 600) == 900


def test_progress_of_a_long_history_is_told(topics):
    told = []
    link = join(topics)
    link.commit([state(f"{i}", i) for i in range(20_001)])
    assert len(list(link.history({0: {}}, lambda *numbers: told.append(numbers)))) == 20_001
    # Of more than a sample about so many are counted.
    assert told == [
        (10_000, pytest.approx(20_001, rel=0.01)),
        (20_000, pytest.approx(20_001, 0.01)),
    ]


# --- laws


@given(
    lines=st.lists(st.binary(max_size=12).map(lambda data: data.replace(b"\n", b"")), max_size=12),
    rest=st.binary(max_size=6).map(lambda data: data.replace(b"\n", b"")),
    chunk=st.integers(1, 30),
    most=st.integers(1, 5),
    start=st.integers(0, 200),
)
def test_a_tail_reads_all_lines_from_an_offset_on_whatever_the_size_of_its_bites(
    lines, rest, chunk, most, start
):
    data = b"".join(line + b"\n" for line in lines) + rest
    start = min(start, len(data))
    expected, offset = [], 0
    for line in lines:
        if offset >= start and line.strip():
            expected.append((offset, line))
        offset += len(line) + 1
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "_CHUNK", chunk)
        patch.setattr(layout, "_CHUNK", chunk)
        path = Path(directory, "events.jsonl")
        path.write_bytes(data)
        tail, found = logs.Tail(path, start), []
        for _ in range(len(data) + 2):
            found += tail.read(most)
        assert found == expected
        assert layout.end_of_lines(path) == offset


class Dying:
    """A worker's `os`, within which it is killed in one of its next calls that change files."""

    CALLS = ("write", "fsync", "replace", "truncate")

    def __init__(self):
        self.left = None

    def __call__(self, arguments):
        self.left, self.share = arguments or (None, 0.0)

    def __getattr__(self, name):
        call = getattr(os, name)
        if name not in self.CALLS:
            return call

        def wrapper(*arguments, **options):
            if self.left is not None:
                self.left -= 1
                if self.left < 0:
                    self.left = None
                    if name == "write":
                        descriptor, data = arguments
                        call(descriptor, bytes(data[: round(self.share * len(data))]))
                    raise KilledError
            return None if name == "fsync" else call(*arguments, **options)

        return wrapper


@given(steps=STEPS, data=st.data())
def test_killed_at_any_byte_every_event_counts_once_and_in_order(steps, data):
    calls = st.tuples(st.just("disturb"), st.integers(0, 9), st.floats(0.0, 1.0))
    deaths = data.draw(st.lists(st.tuples(st.integers(len(KEYS), len(steps)), calls), max_size=6))
    for place, death in sorted(deaths, reverse=True):
        steps.insert(place, death)
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        dying = Dying()
        for module in (link_module, compaction, snapshots):
            patch.setattr(module, "os", dying)
        check(FileTopics(directory), steps, 1, disturb=dying)


@settings(max_examples=20)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.integers(0, 9)), max_size=6),
    st.floats(0.0, 1.0),
)
def test_a_directory_copied_between_any_two_writes_is_that_of_a_commit_before(records, share):
    """As after a power failure, which leaves any beginning of what was written to each file."""
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        topics = FileTopics(Path(directory, "a"), clock=lambda: NOW)
        topics.create()
        for i, record in enumerate(records):
            link = join(topics)
            old = Path(directory, "a", "position.json").read_bytes()
            known = fold(link.history({0: {}}), "state")
            ends = read_position(Path(directory, "a")).ends
            link.commit([state(*record), prediction(i)])
            link.close()
            copy = Path(directory, "copy")
            shutil.copytree(Path(directory, "a"), copy)
            (copy / "position.json").write_bytes(old)
            for topic, name in OUTPUT_LOGS.items():
                path = copy / name
                start = layout.check_end(path, ends[topic])
                os.truncate(path, start + round(share * (path.stat().st_size - start)))
            copied = FileTopics(copy, clock=lambda: NOW)
            assert fold(join(copied).history({0: {}}), "state") == known
            assert len(read(copied, "predictions")) == i
            copied.close()
            shutil.rmtree(copy)


WORKER = """
import sys
from connectors.files.topics import FileTopics
from connectors.topics import Outgoing
link = FileTopics(sys.argv[1]).link(group="g", instance="a", max_records=7)
while records := link.poll(0.0):
    link.commit([Outgoing(topic="predictions", key=r.key, value=r.value) for r in records])
    print(len(records), flush=True)
"""


def test_a_process_that_is_killed_again_and_again_loses_and_doubles_nothing(topics, directory):
    append(directory / "events.jsonl", b"".join(b'{"i":%d}\n' % i for i in range(1000)))
    n_killed = 0
    while sum(topics.lags("g").values()):
        command = [sys.executable, "-c", WORKER, str(directory)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as worker:
            for _ in range(5 * n_killed + 5):
                worker.stdout.readline()
            n_killed += worker.poll() is None
            worker.kill()
    assert n_killed >= 3
    found = [json.loads(record.value)["i"] for record in read(topics, "predictions")]
    assert found == list(range(1000))
