import errno
import fcntl
import os
import subprocess
import sys

import pytest

from connectors.jsonl import FILES, MessageFiles, alone_in, read_messages
from connectors.wire.codec import DecodeError, decode, encode
from streamgp.base import Decision
from streamgp.interactive.messages import (
    Answer,
    Cancel,
    Challenge,
    Event,
    Expired,
    LabelledExample,
    LabelRequest,
    Prediction,
    Rejected,
)

REQUEST = {
    "request_id": "e1/label",
    "event_id": "e1",
    "x": {"light": 0.5},
    "reason": "unsure",
    "score": 1.0,
    "threshold": 0.0,
    "requested_at": 1.0,
}
PREDICTION = Prediction(
    event_id="e1", y=None, proba={}, decision=Decision.of(1.0, 0.0, "c"), n_learned=0, at=1.0
)
QUESTIONS = [
    LabelRequest(**REQUEST),
    Challenge(**REQUEST, given="home", suggested="work", probability_wrong=0.9),
    Cancel(request_id="e1/label", why="gone", at=2.0),
    Expired(request_id="e1/label", event_id="e1", at=3.0),
]
ANSWER = Answer(answer_id="a1", event_id="e1", y="home", answered_at=2.0)
EXAMPLE = LabelledExample(event_id="e1", sequence=1, x={}, y=1, origin="asked", learned_at=2.0)
REJECTED = Rejected(subject="row 3", fault="malformed", reason="why", at=3.0)


def test_every_message_is_written_to_its_file_in_order(tmp_path):
    files = MessageFiles(tmp_path / "new" / "directory")
    for message in [PREDICTION, *QUESTIONS, ANSWER, EXAMPLE, REJECTED]:
        files.send(message)
    files.close()
    found = {p.name: list(read_messages(p)) for p in (tmp_path / "new" / "directory").iterdir()}
    assert found == {
        "predictions.jsonl": [PREDICTION],
        "requests.jsonl": QUESTIONS,
        "answers.jsonl": [ANSWER],
        "consensus.jsonl": [EXAMPLE],
        "rejected.jsonl": [REJECTED],
    }


def test_a_line_is_an_encoded_message(tmp_path):
    files = MessageFiles(tmp_path)
    files.send(ANSWER)
    files.send(ANSWER)
    files.close()
    assert (tmp_path / "answers.jsonl").read_bytes() == 2 * (encode(ANSWER) + b"\n")


def test_all_but_predictions_are_on_disk_at_once_and_these_after_a_flush(tmp_path):
    prediction = Prediction(
        event_id="e", y=None, proba={}, decision=Decision.of(1.0, 0.0, "A"), n_learned=0, at=0.0
    )
    files = MessageFiles(tmp_path)
    files.send(ANSWER)
    files.send(prediction)
    assert list(read_messages(tmp_path / "answers.jsonl")) == [ANSWER]
    assert (tmp_path / "predictions.jsonl").read_bytes() == b""
    files.flush()
    assert list(read_messages(tmp_path / "predictions.jsonl")) == [prediction]
    files.close()


def test_files_of_an_earlier_run_are_replaced_and_others_stay(tmp_path):
    (tmp_path / "answers.jsonl").write_text("old")
    (tmp_path / "notes.txt").write_text("mine")
    MessageFiles(tmp_path).close()
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {
        **dict.fromkeys(FILES.values(), b""),
        "notes.txt": b"mine",
    }


def test_a_file_is_no_directory(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    match = "^messages must go to a directory, but .*file is a file; name another one$"
    with pytest.raises(ValueError, match=match):
        MessageFiles(path)
    with pytest.raises(ValueError, match=r"is a file; name another one$|Not a directory"):
        MessageFiles(path / "below")


def test_a_link_that_leads_nowhere_is_named(tmp_path):
    path = tmp_path / "link"
    path.symlink_to("nowhere")
    match = "^messages must go to a directory, but .*link is a link that leads nowhere; name anoth"
    with pytest.raises(ValueError, match=match):
        MessageFiles(path / "below")


def test_one_process_at_a_time_is_alone_in_a_directory_whatever_it_is_called(tmp_path):
    (tmp_path / "link").symlink_to("out")
    with alone_in(tmp_path / "out"):
        match = "link is in use by another replay; wait for its end, or name another directory$"
        with pytest.raises(ValueError, match=match), alone_in(tmp_path / "link"):
            pass
        with alone_in(tmp_path):
            assert os.listdir(tmp_path / "out") == []
    with alone_in(tmp_path / "out"):
        pass


HOLDER = """
import sys
from connectors.jsonl import alone_in
with alone_in(sys.argv[1]):
    print("ready", flush=True)
    sys.stdin.read()
"""


def test_the_lock_of_a_directory_ends_with_its_process(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"ready\n"
        with pytest.raises(ValueError, match="in use by another replay"), alone_in(tmp_path):
            pass
        holder.kill()
        holder.wait()
        with alone_in(tmp_path):
            pass


def test_where_no_directory_can_be_locked_the_files_are_written_all_the_same(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with alone_in(tmp_path):
        MessageFiles(tmp_path).close()


def test_a_place_where_nobody_can_be_alone_is_named(tmp_path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(ValueError, match=r"but .*file is a file; name another one$"),
        alone_in(tmp_path / "file"),
    ):
        pass
    with (
        pytest.raises(ValueError, match=r"^cannot write .*: File name too long; choose a shorter"),
        alone_in(tmp_path / ("d" * 300)),
    ):
        pass


def test_a_directory_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "requests.jsonl").mkdir()
    match = r"^cannot write messages to .*requests\.jsonl: Is a directory; name another place$"
    with pytest.raises(ValueError, match=match):
        MessageFiles(tmp_path)


def test_events_are_not_written(tmp_path):
    files = MessageFiles(tmp_path)
    event = Event(event_id="e1", x={}, occurred_at=0.0)
    with pytest.raises(TypeError, match=r"^message must be an answer or an output, got Event"):
        files.send(event)
    files.close()


def test_a_line_that_is_no_message_is_named(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_bytes(encode(ANSWER) + b"\nhello\n")
    messages = read_messages(path)
    assert next(messages) == ANSWER
    with pytest.raises(
        DecodeError, match=r"answers\.jsonl, line 2: message must be JSON, got malf"
    ):
        next(messages)


def test_the_last_line_may_lack_its_end(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_bytes(encode(ANSWER))
    assert list(read_messages(path)) == [decode(encode(ANSWER))]
