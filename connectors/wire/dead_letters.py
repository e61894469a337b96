"""Dead letters: what could not be used, as it came, and what is known of it.

An input that cannot be used goes to `dead-letters` byte for byte, with headers that say where it
lay and what was wrong, so that it can be looked at, and sent again once the cause is gone:

    dlq.topic, dlq.partition, dlq.offset   where it lay, by the name that the topic has on the
                                           broker; missing where a timer was the cause
    dlq.role                               events, answers or consensus; only where the topic has
                                           another name
    dlq.stage                              how far it came: decode, correlate or learn; where the
                                           learner or a rule failed over it, predict, ask,
                                           challenge, learn, review or encode
    dlq.error                              what was wrong, one line
    dlq.at                                 when, RFC 3339
    dlq.truncated                          only of an input too large to be kept: its bytes
    dlq.sha256                             only there: of its whole value

"""

from __future__ import annotations

from dataclasses import dataclass

from connectors.records import WORKER_INPUTS, Headers, Outgoing, Record, TopicName
from connectors.wire.cloudevents import posix_seconds
from connectors.wire.cutting import check_whole
from streamgp.interactive.messages import Answer, Rejected

_OURS = frozenset(
    f"dlq.{what}"
    for what in (
        *("topic", "role", "partition", "offset"),
        *("stage", "error", "at", "truncated", "sha256"),
    )
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
    name
        What that topic was called on the broker; of letters that older workers have written, the
        same as `topic`.
    stage
        How far it came: `decode`, `correlate` or `learn`, or the stage of a `Rejected`.
    error
        What was wrong, one line.
    at
        When it was rejected, POSIX seconds.
    key, value
        The input's bytes.

    """

    topic: TopicName | None
    name: str | None
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
    >>> from connectors.wire.outbox import Outbox
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
        name = texts.get("topic")
        topic = None if name is None else _topic(texts.get("role", name))
        return Letter(
            topic=topic,
            name=name,
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
        If it is no dead letter, or a timer was its cause, so that there is no input to repeat, or
        not all of it was kept.

    """
    letter = letter_of(record)
    if letter.topic is None:
        raise ValueError(
            f"dead-letters:{record.partition}:{record.offset} came of no input that could be sent "
            f"again: {letter.error:.200}"
        )
    check_whole(record)
    return Outgoing(
        topic=letter.topic,
        # By its key, as it should have been; only of a consensus line the key says too much.
        partition=letter.partition if letter.topic == "consensus" else None,
        key=record.key,
        value=record.value,
        headers=original_headers(record),
    )


def place(cause: Record, name: str) -> Headers:
    """Return the headers that say where an input lay.

    Parameters
    ----------
    cause
        The input.
    name
        What its topic is called on the broker.

    Examples
    --------
    >>> bad = Record(topic="events", partition=3, offset=17, key=b"ann", value=b"?", at=60.0)
    >>> [text for _, text in place(bad, "rooms.events")]
    [b'rooms.events', b'events', b'3', b'17']
    >>> place(bad, "events")
    [('dlq.topic', b'events'), ('dlq.partition', b'3'), ('dlq.offset', b'17')]

    """
    role = [] if name == cause.topic else [("dlq.role", cause.topic.encode())]
    return [
        ("dlq.topic", name.encode()),
        *role,
        ("dlq.partition", b"%d" % cause.partition),
        ("dlq.offset", b"%d" % cause.offset),
    ]


def _topic(role: str) -> TopicName:
    for topic in WORKER_INPUTS:
        if topic == role:
            return topic
    raise ValueError(f"dlq.role must be one of {', '.join(WORKER_INPUTS)}, got {role!r}")


def original_headers(record: Record) -> list[tuple[str, bytes]]:
    """Return the headers of a record but for those of an earlier dead letter."""
    return [header for header in record.headers if header[0] not in _OURS]
