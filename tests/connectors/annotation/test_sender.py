"""Answers get to the broker, once it is there."""

from __future__ import annotations

import pytest

from connectors.annotation.sender import AnswerSender
from connectors.memory import MemoryTopics
from connectors.topics import BrokerError, Outgoing, RefusedError
from tests.helpers.deskwork import Broken
from tests.helpers.topics import wait_until


def outgoing(n: int) -> Outgoing:
    return Outgoing(topic="answers", key=b"k", value=b"%d" % n)


def values(topics: MemoryTopics) -> list[bytes | None]:
    return [record.value for record in topics.reader(["answers"]).poll(0.0)]


def test_records_are_sent_in_their_order() -> None:
    topics = MemoryTopics()
    courier = AnswerSender(lambda: topics.writer("annotate"))
    for n in range(5):
        courier.send(outgoing(n))
    assert courier.finish(20.0) == 0
    assert values(topics) == [b"0", b"1", b"2", b"3", b"4"]


def test_courier_without_records_opens_no_writer() -> None:
    def never() -> None:
        raise AssertionError

    assert AnswerSender(never).finish(20.0) == 0  # type: ignore[arg-type]


def test_records_wait_while_the_broker_is_away_and_go_when_it_is_back() -> None:
    topics = Broken(MemoryTopics())
    courier = AnswerSender(lambda: topics.writer("annotate"), pause_s=0.0)
    topics.writes_fail = True
    courier.send(outgoing(0))
    wait_until(lambda: courier.trouble is not None)
    assert courier.trouble == "the broker\ndoes not answer"
    assert courier.refusal is None
    courier.send(outgoing(1))
    assert courier.n_unsent == 2
    topics.writes_fail = False
    wait_until(lambda: courier.n_unsent == 0)
    assert courier.trouble is None
    topics.writes_fail, topics.error = True, RefusedError
    courier.send(outgoing(2))
    wait_until(lambda: courier.refusal is not None)
    topics.writes_fail = False
    wait_until(lambda: courier.n_unsent == 0)
    assert courier.refusal is None
    assert courier.finish(20.0) == 0
    assert values(topics.topics) == [b"0", b"1", b"2"]


def test_writer_that_fails_on_the_way_is_replaced() -> None:
    topics = Broken(MemoryTopics())
    courier = AnswerSender(lambda: topics.writer("annotate"), pause_s=0.0)
    courier.send(outgoing(0))
    wait_until(lambda: courier.n_unsent == 0)
    topics.writes_fail = True
    n = topics.n_flushes
    courier.send(outgoing(1))
    wait_until(lambda: topics.n_flushes > n)
    topics.writes_fail = False
    assert courier.finish(20.0) == 0
    assert values(topics.topics)[-1] == b"1"


def test_writer_that_fails_is_closed_before_the_pause() -> None:
    """Its close flushes: after the pause, what is about to be sent again might be written."""
    steps: list[str] = []

    class Full:
        def send(self, record: Outgoing) -> None: ...

        def flush(self) -> None:
            steps.append("flush")
            raise BrokerError("disk is full")

        def close(self) -> None:
            steps.append("close")

    courier = AnswerSender(Full, pause_s=60.0)
    courier.send(outgoing(0))
    wait_until(lambda: len(steps) == 2)
    assert steps == ["flush", "close"]
    assert courier.trouble == "disk is full"
    courier.close()
    courier._thread.join(60.0)


def test_what_cannot_be_sent_in_time_is_counted() -> None:
    topics = Broken(MemoryTopics())
    topics.writes_fail = True
    courier = AnswerSender(lambda: topics.writer("annotate"), pause_s=60.0)
    for n in range(3):
        courier.send(outgoing(n))
    wait_until(lambda: courier.trouble is not None)
    assert courier.finish(0.0) == 3
    courier.close()
    courier._thread.join(60.0)
    assert courier.n_unsent == 3


def test_error_of_our_own_is_raised_where_it_is_seen() -> None:
    def broken() -> None:
        raise TypeError("no writer at all")

    courier = AnswerSender(broken)  # type: ignore[arg-type]
    courier.send(outgoing(0))
    with pytest.raises(TypeError, match="no writer at all"):
        wait_until(lambda: courier.n_unsent == 0)


def test_a_record_is_reported_safe_only_once_the_broker_has_it() -> None:
    topics = Broken(MemoryTopics())
    topics.writes_fail = True
    courier = AnswerSender(lambda: topics.writer("annotate"), pause_s=0.0)
    safe: list[int] = []
    for n in range(3):
        courier.send(outgoing(n), lambda n=n: safe.append(n))  # type: ignore[misc]
    wait_until(lambda: courier.trouble is not None)
    assert safe == []
    topics.writes_fail = False
    wait_until(lambda: len(safe) == 3)
    assert safe == [0, 1, 2]
    assert courier.finish(20.0) == 0
