"""What goes out to a broker: every message becomes one record of its topic, with key and headers.

What could not be used goes to `dead-letters` as it came, byte for byte, with headers that say where
it lay and what was wrong, so that it can be looked at, and sent again once the cause is gone:

    dlq.topic, dlq.partition, dlq.offset   where it lay; missing where a timer was the cause
    dlq.stage                              decode, correlate or learn: how far it came
    dlq.error                              what was wrong, one line
    dlq.at                                 when, RFC 3339

"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from connectors.records import ALL_TOPICS, Outgoing, Record, TopicName
from connectors.wire.cloudevents import headers, posix_seconds, rfc3339
from connectors.wire.codec import TAGS, encode
from connectors.wire.refusals import one_line
from connectors.wire.statelog import consensus_key
from streamgp.interactive.messages import (
    Answer,
    Cancel,
    Challenge,
    Event,
    Expired,
    Fault,
    Input,
    LabelledExample,
    LabelRequest,
    Message,
    Prediction,
    Rejected,
)

_STAGES: dict[Fault, str] = {
    "malformed": "decode",
    "duplicate": "correlate",
    "unknown": "correlate",
    "late": "correlate",
    "ended": "correlate",
    "unlearnable": "learn",
}
_OURS = frozenset(
    f"dlq.{what}" for what in ("topic", "partition", "offset", "stage", "error", "at")
)

_Route: TypeAlias = tuple[TopicName, Callable[[Any], str], Callable[[Any], float]]
_ROUTES: dict[type, _Route] = {
    Event: ("events", lambda m: m.event_id, lambda m: m.occurred_at),
    Answer: ("answers", lambda m: m.answer_id, lambda m: m.answered_at),
    Prediction: ("predictions", lambda m: f"{m.event_id}/prediction", lambda m: m.at),
    LabelRequest: ("requests", lambda m: m.request_id, lambda m: m.requested_at),
    Challenge: ("requests", lambda m: m.request_id, lambda m: m.requested_at),
    Cancel: ("requests", lambda m: f"{m.request_id}/cancel", lambda m: m.at),
    Expired: ("requests", lambda m: f"{m.request_id}/expired", lambda m: m.at),
    LabelledExample: (
        "consensus",
        lambda m: f"{m.event_id}/consensus/{m.sequence}",
        lambda m: m.learned_at,
    ),
}
"""For each message its topic, its id among those of its key, and its time."""


class Outbox:
    """Makes records of messages.

    Parameters
    ----------
    source
        Who writes: `/streamgp/<group>` or `/streamgp/<program>`.
    keyed
        Whether each key has a loop of its own. Then every message needs a key.

    Examples
    --------
    >>> outbox = Outbox("/streamgp/rooms", keyed=True)
    >>> record = outbox.message(Expired(request_id="e1/label", event_id="e1", key="ann", at=3.0), 2)
    >>> record.topic, record.partition, record.key, dict(record.headers)["ce_id"]
    ('requests', 2, b'ann', b'ann/e1/label/expired')

    """

    def __init__(self, source: str, *, keyed: bool) -> None:
        self._source = source.encode()
        self._keyed = keyed

    def message(self, message: Input | Message, partition: int | None) -> Outgoing:
        """Return the record of a message; a `Cancel` is one that the loop says.

        Raises
        ------
        TypeError
            If there is no topic for it; `Rejected` goes into a dead letter.
        ValueError
            If it holds what cannot be read back, or lacks a key.

        """
        route = _ROUTES.get(type(message))
        if route is None:
            names = ", ".join(kind.__name__ for kind in _ROUTES)
            raise TypeError(f"message must be one of {names}, got {type(message).__name__}")
        topic, name_of, time_of = route
        if message.key is None and self._keyed:
            raise ValueError(f"message must have a key, got {message!r:.80}")
        if isinstance(message, LabelledExample):
            entity = message.key if self._keyed and message.key is not None else ""
            record_key: bytes | None = consensus_key(entity, message.event_id, message.revision)
        else:
            record_key = None if message.key is None else message.key.encode()
        return Outgoing(
            topic=topic,
            partition=partition,
            key=record_key,
            value=encode(message),
            headers=headers(
                TAGS[type(message)],
                source=self._source,
                key=message.key,
                name=name_of(message),
                at=time_of(message),
            ),
        )

    def dead_letter(self, rejected: Rejected, cause: Record | None, partition: int) -> Outgoing:
        """Return the dead letter of an input that could not be used.

        Parameters
        ----------
        rejected
            Why.
        cause
            Where it came from: key, value and headers stay as they are, but for the headers of an
            earlier dead letter. None for what a timer brought about; the value is then `rejected`.
        partition
            That of the cause.

        """
        verdict = [
            ("dlq.stage", _STAGES[rejected.fault].encode()),
            ("dlq.error", one_line(rejected.reason).encode()),
            ("dlq.at", rfc3339(rejected.at).encode()),
        ]
        if cause is None:
            about = headers(
                TAGS[Rejected],
                source=self._source,
                key=rejected.key,
                name=f"{rejected.subject}/rejected",
                at=rejected.at,
            )
            return Outgoing(
                topic="dead-letters",
                partition=partition,
                key=None if rejected.key is None else rejected.key.encode(),
                value=encode(rejected),
                headers=[*about, *verdict],
            )
        place = [
            ("dlq.topic", cause.topic.encode()),
            ("dlq.partition", b"%d" % cause.partition),
            ("dlq.offset", b"%d" % cause.offset),
        ]
        return Outgoing(
            topic="dead-letters",
            partition=partition,
            key=cause.key,
            value=cause.value,
            headers=[*_without_ours(cause), *place, *verdict],
        )


def is_dropped(rejected: Rejected, message: object) -> bool:
    """Whether a rejected message needs no dead letter: an answer that was sent again.

    Examples
    --------
    >>> answer = Answer(answer_id="a1", event_id="e1", y="home", answered_at=60.0)
    >>> again = Rejected(subject="a1", fault="duplicate", reason="handled before", at=60.0)
    >>> is_dropped(again, answer)
    True

    """
    return rejected.fault == "duplicate" and isinstance(message, Answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A dead letter, read.

    Parameters
    ----------
    topic, partition, offset
        Where the input lay; None where a timer was the cause.
    stage
        How far it came: `decode`, `correlate` or `learn`.
    error
        What was wrong, one line.
    at
        When it was rejected, POSIX seconds.
    key, value
        The input's bytes.

    """

    topic: TopicName | None
    partition: int | None
    offset: int | None
    stage: str
    error: str
    at: float
    key: bytes | None
    value: bytes | None


def letter_of(record: Record) -> Letter:
    """Read a record of the topic `dead-letters`.

    Raises
    ------
    ValueError
        If its headers are not those of a dead letter.

    Examples
    --------
    >>> bad = Record(topic="events", partition=3, offset=17, key=b"ann", value=b"?", at=60.0)
    >>> why = Rejected(subject="events:3:17", fault="malformed", reason="must be JSON", at=60.0)
    >>> out = Outbox("/streamgp/rooms", keyed=True).dead_letter(why, bad, 3)
    >>> dead = Record(
    ...     topic="dead-letters", partition=3, offset=0, key=out.key, value=out.value,
    ...     headers=out.headers, at=61.0,
    ... )
    >>> letter = letter_of(dead)
    >>> letter.topic, letter.offset, letter.stage, letter.error, letter.at
    ('events', 17, 'decode', 'must be JSON', 60.0)
    >>> resend(dead)
    Outgoing(topic='events', partition=None, key=b'ann', value=b'?', headers=[])

    """
    found = {name: value for name, value in record.headers if name in _OURS}
    try:
        texts = {name.removeprefix("dlq."): value.decode() for name, value in found.items()}
        topic = _topic(texts["topic"]) if "topic" in texts else None
        return Letter(
            topic=topic,
            partition=None if topic is None else int(texts["partition"]),
            offset=None if topic is None else int(texts["offset"]),
            stage=texts["stage"],
            error=texts["error"],
            at=posix_seconds(texts["at"]),
            key=record.key,
            value=record.value,
        )
    except (LookupError, ValueError, AttributeError) as error:
        raise ValueError(
            f"dead-letters:{record.partition}:{record.offset} is no dead letter of streamgp, "
            f"its headers dlq.* do not tell where it came from: {error!s:.80}"
        ) from None


def resend(record: Record) -> Outgoing:
    """Return a dead letter as it was, to be written again into the topic that it came from.

    Raises
    ------
    ValueError
        If it is no dead letter, or a timer was its cause: there is no input to repeat.

    """
    letter = letter_of(record)
    if letter.topic is None:
        raise ValueError(
            f"dead-letters:{record.partition}:{record.offset} came of no input that could be sent "
            f"again: {letter.error:.200}"
        )
    return Outgoing(
        topic=letter.topic,
        # By its key, as it should have been; only of a consensus line the key says too much.
        partition=letter.partition if letter.topic == "consensus" else None,
        key=record.key,
        value=record.value,
        headers=_without_ours(record),
    )


def _topic(name: str) -> TopicName:
    for topic in ALL_TOPICS:
        if topic == name:
            return topic
    raise ValueError(f"dlq.topic must be one of {', '.join(ALL_TOPICS)}, got {name!r}")


def _without_ours(record: Record) -> list[tuple[str, bytes]]:
    return [header for header in record.headers if header[0] not in _OURS]
