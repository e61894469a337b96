"""The log of a worker: one line for each event, for people or for machines."""

from __future__ import annotations

import io
import json
import logging
import threading
import warnings
from datetime import datetime
from typing import Any

import pytest

from connectors.worker.logging import say
from streamgp.apps.log import LogFormat, start_log

pytestmark = pytest.mark.usefixtures("logging_as_it_was")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def logged(kind: LogFormat | None = "json", **fields: Any) -> str:
    stream = io.StringIO()
    start_log(kind, stream=stream)
    say(logging.INFO, "batch", **fields)
    return stream.getvalue()


def test_json_line_has_time_level_event_and_fields() -> None:
    line = json.loads(logged(events=500, lag=0, took_s=0.25, partitions=[0, 3]))
    assert datetime.fromisoformat(line.pop("at")).tzinfo is not None
    assert line == {
        "level": "info",
        "event": "batch",
        "events": 500,
        "lag": 0,
        "took_s": 0.25,
        "partitions": [0, 3],
    }


def test_field_does_not_replace_what_every_line_has() -> None:
    line = json.loads(logged(level="high", event="other", at="noon"))
    assert (line["level"], line["event"]) == ("info", "batch")
    assert line["at"] != "noon"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("nan"), '"nan"'),
        (float("inf"), '"inf"'),
        ({1: {"a": None}}, '{"1":{"a":null}}'),
        ((1, "é"), '[1,"\\u00e9"]'),
        (b"raw", "\"b'raw'\""),
        ("a\nb\x1b[31m", '"a\\nb\\u001b[31m"'),
        ("x" * 5000, '"' + "x" * 1000 + '..."'),
    ],
)
def test_any_value_is_one_line_of_json(value: object, shown: str) -> None:
    text = logged(value=value)
    assert text.count("\n") == 1
    assert text.endswith(f'"value":{shown}}}\n')


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (3, "3"),
        (True, "true"),
        (None, "null"),
        ("word", "word"),
        ("two words", '"two words"'),
        ("a=b", '"a=b"'),
        ("", '""'),
        ("grün", "grün"),
        ("\x1b[31m", '"\\u001b[31m"'),
        ({"events:0": 3}, '{"events:0":3}'),
    ],
)
def test_text_line_shows_values_that_cannot_be_mistaken(value: object, shown: str) -> None:
    text = logged("text", value=value)
    assert text.endswith(f"Z info batch value={shown}\n")


def test_terminal_gets_text_and_a_file_json() -> None:
    for stream, first in ((Terminal(), "2"), (io.StringIO(), "{")):
        start_log(None, stream=stream)
        say(logging.INFO, "started")
        assert stream.getvalue()[0] == first


def test_warnings_of_libraries_are_lines_too() -> None:
    stream = io.StringIO()
    start_log("json", stream=stream)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(False)
        logging.captureWarnings(True)
        warnings.warn("overflow in exp", RuntimeWarning, stacklevel=1)
    line = json.loads(stream.getvalue())
    assert (line["level"], line["event"]) == ("warning", "library-warning")
    assert "overflow in exp" in line["text"]


def test_thread_that_fails_is_one_line() -> None:
    stream = io.StringIO()
    start_log("json", stream=stream)
    thread = threading.Thread(target=lambda: 1 / 0, name="sender")
    thread.start()
    thread.join()
    line = json.loads(stream.getvalue())
    assert (line["event"], line["thread"]) == ("thread-failed", "sender")
    assert line["error"] == "ZeroDivisionError: division by zero"


def test_client_of_the_broker_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    start_log("json", stream=stream)
    logging.getLogger("kafka.client").error("no brokers available")
    assert stream.getvalue() == ""
    assert capfd.readouterr().err == ""


def test_reader_that_has_gone_stops_nothing() -> None:
    stream = io.StringIO()
    start_log("json", stream=stream)
    stream.close()
    say(logging.INFO, "batch")
