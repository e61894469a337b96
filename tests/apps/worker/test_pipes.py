"""Lines in, lines out: a worker without a broker."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest

from connectors.memory import MemoryTopics
from connectors.topics import Outgoing, Record
from streamgp.apps.worker.process import Pipes, line_of

GROUP = "streamgp"


def test_dead_letter_is_a_line_of_json_with_the_reason() -> None:
    record = Record(
        topic="dead-letters",
        partition=0,
        offset=0,
        key=None,
        value=b"he\xffllo",
        headers=[("dlq.stage", b"decode"), ("dlq.error", b"message must be JSON")],
        at=0.0,
    )
    assert json.loads(line_of(record)) == {
        "type": "dead-letter",
        "stage": "decode",
        "error": "message must be JSON",
        "line": "he\ufffdllo",
    }


def test_everything_that_went_in_is_worked_off_before_it_is_through() -> None:
    topics, out = MemoryTopics(), io.BytesIO()
    pipes = Pipes(topics, GROUP, [b'{"key":"a","x":{}}\n', b"\n", b'{"key":"b","x":{}}\r\n'], out)
    pipes.start()
    link = topics.client(group=GROUP, instance="w", max_records=1)
    seen = []
    while not pipes.is_through():
        records = link.poll(0.2)
        assert not (records and pipes.is_through())
        seen += [record.value for record in records]
        said = [
            Outgoing(topic="predictions", key=record.key, value=record.value) for record in records
        ]
        link.commit(said)
    pipes.close()
    assert seen == [b'{"key":"a","x":{}}', b'{"key":"b","x":{}}']
    assert out.getvalue() == b'{"key":"a","x":{}}\n{"key":"b","x":{}}\n'


def test_answer_waits_for_what_it_answers() -> None:
    topics = MemoryTopics()
    pipes = Pipes(topics, GROUP, [b'{"x":{}}\n', b'{"y":1}\n', b'{"x":{}}\n'], io.BytesIO())
    pipes.start()
    link = topics.client(group=GROUP, instance="w", max_records=10)
    seen: list[str] = []
    while not pipes.is_through():
        seen += [record.topic for record in link.poll(0.2)]
        link.commit([])
    pipes.close()
    # The last event may come with the answer, which is the first of its batch all the same.
    assert seen == ["events", "answers", "events"]


class Gone(io.BytesIO):
    """What `| head` leaves behind."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def write(self, _data: object) -> int:
        raise self.error


@pytest.mark.parametrize(
    ("error", "trouble"),
    [(BrokenPipeError(32, "Broken pipe"), None), (OSError(28, "No space left on device"), "28")],
)
def test_reader_that_has_gone_ends_it(error: OSError, trouble: str | None) -> None:
    topics = MemoryTopics()
    pipes = Pipes(topics, GROUP, [], Gone(error))
    link = topics.client(group=GROUP, instance="w", max_records=1)
    link.poll(0.0)
    link.commit([Outgoing(topic="predictions", key=b"a", value=b"{}")])
    pipes.start()
    pipes.close()
    assert pipes.is_through()
    assert (pipes.trouble is None) == (trouble is None)
    assert trouble is None or trouble in (pipes.trouble or "")


def test_input_that_cannot_be_read_ends_it() -> None:
    def lines() -> Iterator[bytes]:
        yield b'{"key":"a","x":{}}\n'
        raise OSError(5, "Input/output error")

    topics = MemoryTopics()
    pipes = Pipes(topics, GROUP, lines(), io.BytesIO())
    pipes.start()
    link = topics.client(group=GROUP, instance="w", max_records=1)
    while not pipes.is_through():
        link.poll(0.2)
        link.commit([])
    pipes.close()
    assert pipes.trouble == "[Errno 5] Input/output error"
