"""Programs that write into the topics under chaos, run as processes of their own.

    python -m tests.chaos.senders feed SERVERS SEED N_EVENTS SECONDS HOSTILE_SHARE
    python -m tests.chaos.senders meddle SERVERS SEED

The feeder sends events, and ends when all are stored. The meddler reads questions and answers, and
does what people do: sends an answer twice, corrects one, takes one back, cancels a question,
answers an expired one; it ends with SIGTERM.

"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import msgspec

from connectors.kafka.topics import KafkaTopics, Timeouts
from connectors.topics import BrokerError, Outgoing, Reader, Record, Writer
from streamgp.common.counter_rng import uniform
from tests.helpers.topics import again

from .traffic import CLASSES, MARK, Traffic

N_PARTITIONS = 4
_TICK_S = 0.02
_FLUSH_S = 0.2
_RETRY_S = 0.5
_TWICE, _CORRECTED, _CANCELLED, _LATE = 0.05, 0.05, 0.02, 0.5
_TAKEN_BACK = 0.2


def topics_of(servers: str) -> KafkaTopics:
    """Return the topics; writers are patient with a broker that is away."""
    timeouts = Timeouts(connect_s=30.0, delivery_s=60.0)
    return KafkaTopics(servers, partitions=N_PARTITIONS, replication=-1, timeouts=timeouts)


class Sender:
    """Writer that goes on until it is done, whatever happens to the broker.

    Records that may have been lost are sent again, and may then be there twice: events have ids.
    """

    def __init__(self, servers: str) -> None:
        self._topics = topics_of(servers)
        self._writer: Writer | None = None
        self._unsure: list[Outgoing] = []

    def send(self, records: Iterable[Outgoing]) -> None:
        """Write records; they are sent with the next flush at the latest."""
        for record in records:
            self._unsure.append(record)
            self._try(lambda writer, record=record: writer.send(record))

    def flush(self) -> None:
        """Return once everything is stored."""
        while self._unsure:
            if self._try(lambda writer: writer.flush()):
                self._unsure.clear()

    def close(self) -> None:
        """Close the connections."""
        if self._writer is not None:
            with suppress(BrokerError):
                self._writer.close()
        self._topics.close()

    def _try(self, write: Callable[[Writer], None]) -> bool:
        try:
            if self._writer is None:
                self._writer = self._topics.writer("chaos")
                for record in self._unsure:
                    self._writer.send(record)
            else:
                write(self._writer)
                return True
        except BrokerError as error:
            print(f"once more, {error}", file=sys.stderr, flush=True)
            if self._writer is not None:
                with suppress(BrokerError):
                    self._writer.close()
            self._writer = None
            time.sleep(_RETRY_S)
        return False


def feed(servers: str, seed: int, n_events: int, seconds: float, hostile_share: float) -> None:
    """Send events, evenly over `seconds`; delayed ones are sent at once."""
    traffic = Traffic(seed, n_events, hostile_share=hostile_share)
    sender = Sender(servers)
    start = flushed = time.monotonic()
    n_sent = 0
    while n_sent < n_events:
        now = time.monotonic()
        due = min(n_events, int((now - start) / seconds * n_events) + 1)
        for number in range(n_sent, due):
            sender.send(traffic.next(number, time.time()))
        n_sent = due
        if now - flushed > _FLUSH_S:
            sender.flush()
            flushed = now
        time.sleep(_TICK_S)
    sender.flush()


class Meddler:
    """Decides how to meddle with a question or an answer; each is meddled with at most once.

    Parameters
    ----------
    seed
        Seed of the draws; each belongs to an id.

    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._done: set[tuple[str, bytes | None, str]] = set()

    def respond(self, record: Record, now: float) -> list[Outgoing]:
        """Return the records to write in response to one of `requests` or `answers`."""
        if record.value is None or MARK in record.value:
            return []
        value = msgspec.json.decode(record.value)
        kind = value["type"]
        name = value["answer_id"] if kind == "answer" else value.get("request_id", "")
        if (kind, record.key, name) in self._done:
            return []
        self._done.add((kind, record.key, name))
        if kind == "answer":
            return self._about_answer(record, value, now)
        answer = None
        if kind in ("label.request", "label.challenge") and self._draws(_CANCELLED, record, name):
            answer = {"type": "label.cancel", "request_id": name, "why": "chaos", "at": now}
        elif kind == "expired" and self._draws(_LATE, record, name):
            answer = self._answer(f"{name}/late", value, now) | {"request_id": name}
        return [] if answer is None else [_outgoing(record, answer)]

    def _about_answer(self, record: Record, value: dict[str, Any], now: float) -> list[Outgoing]:
        name = value["answer_id"]
        meddled = []
        if self._draws(_TWICE, record, name):
            meddled.append(again(record))
        is_original = "supersedes" not in value and value.get("y") is not None
        if is_original and self._draws(_CORRECTED, record, f"{name} corrected"):
            answer = self._answer(f"{name}/correction", value, now) | {"supersedes": name}
            if self._draws(_TAKEN_BACK, record, f"{name} taken back"):
                answer = {k: v for k, v in answer.items() if k != "y"} | {"declined": True}
            meddled.append(_outgoing(record, answer))
        return meddled

    def _answer(self, name: str, about: dict[str, Any], now: float) -> dict[str, Any]:
        which = int(uniform(self._seed, f"{about['key']} {name}", "label") * len(CLASSES))
        return {
            "type": "answer",
            "answer_id": name,
            "event_id": about["event_id"],
            "y": CLASSES[which],
            "annotator": "meddler",
            "answered_at": now,
        }

    def _draws(self, rate: float, record: Record, name: str) -> bool:
        return uniform(self._seed, f"{record.key!r} {name}", "meddle") < rate


def _outgoing(record: Record, message: dict[str, Any]) -> Outgoing:
    value = msgspec.json.encode({**message, "version": 1, "key": (record.key or b"").decode()})
    return Outgoing(topic="answers", partition=record.partition, key=record.key, value=value)


def meddle(servers: str, seed: int, should_stop: Callable[[], bool]) -> None:
    """Meddle until told to stop."""
    topics, sender, meddler = topics_of(servers), Sender(servers), Meddler(seed)
    reader: Reader | None = None
    while not should_stop():
        try:
            if reader is None:
                reader = topics.reader(["requests", "answers"])
            records = reader.poll(_FLUSH_S)
        except BrokerError as error:
            print(f"once more, {error}", file=sys.stderr, flush=True)
            reader = None
            time.sleep(_RETRY_S)
            continue
        for record in records:
            sender.send(meddler.respond(record, time.time()))
        sender.flush()


def _main(what: str, servers: str, seed: str, *numbers: str) -> None:
    if what == "feed":
        n_events, seconds, hostile_share = numbers
        feed(servers, int(seed), int(n_events), float(seconds), float(hostile_share))
        return
    signals: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
    meddle(servers, int(seed), lambda: bool(signals))


if __name__ == "__main__":
    _main(*sys.argv[1:])
