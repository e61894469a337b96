"""Outbound messages: each becomes a record of its topic, with key and headers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from msgspec.structs import replace

from connectors.topics import WORKER_INPUTS, Headers, Outgoing, Record, TopicName, content_size
from connectors.wire.cloudevents import headers, posix_seconds, rfc3339
from connectors.wire.codec import MAX_BYTES, MAX_INPUT_BYTES, TAGS, encode
from connectors.wire.explain import one_line
from connectors.wire.signatures import Signatures
from connectors.wire.state_records import ERASED_BY, consensus_key
from streamgp.interactive.messages import (
    ASKED_AGAIN,
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
    Retraction,
)

# --- Excerpt of an input that is too large for a dead letter.
#
# The topics of the inputs may take larger records than those that workers write. No input of this
# size can be used, but it must not keep the worker from the next one either: its beginning is
# kept.


TRUNCATED = "dlq.truncated"
"""Header with the original number of bytes."""
DIGEST = "dlq.sha256"
"""Header with the digest of the whole value, in hexadecimal digits."""
_AROUND = 8  # bytes per header, for the lengths of its name and its value


def cut_cause(cause: Record) -> tuple[Record, Sequence[tuple[str, bytes]]]:
    """Return what a dead letter keeps of its cause, and headers that tell what is missing.

    If it exceeds 16 MiB, or was cut when it was read, a key and a value keep their first
    MiB, and of the headers those that fit into another MiB are kept.

    Examples
    --------
    >>> value = b"?" * 2**24
    >>> large = Record(topic="events", partition=0, offset=7, key=b"ann", value=value, at=0.0)
    >>> kept, more = cut_cause(large)
    >>> kept.key, len(kept.value), more[0], more[1][1][:8]
    (b'ann', 1048576, ('dlq.truncated', b'16777219'), b'6a79d046')
    >>> cut_cause(kept) == (kept, [])
    True

    """
    size = size_of(cause) if cause.truncated is None else cause.truncated.size
    if size <= MAX_BYTES:
        return cause, []
    digest = None if cause.value is None else hashlib.sha256(cause.value).hexdigest()
    if cause.truncated is not None:
        digest = cause.truncated.sha256
    headers: list[tuple[str, bytes]] = []
    left = MAX_INPUT_BYTES
    for header in cause.headers:
        if _size(*header) <= left:
            left -= _size(*header)
            headers.append(header)
    kept = replace(
        cause,
        key=None if cause.key is None else cause.key[:MAX_INPUT_BYTES],
        value=None if cause.value is None else cause.value[:MAX_INPUT_BYTES],
        headers=headers,
        truncated=None,
    )
    told = [] if digest is None else [(DIGEST, digest.encode())]
    return kept, [(TRUNCATED, b"%d" % size), *told]


def check_uncut(letter: Record) -> None:
    """Refuse a dead letter that does not contain all of its input.

    Raises
    ------
    ValueError
        If it was cut.

    """
    size = dict(letter.headers).get(TRUNCATED)
    if size is not None:
        raise ValueError(
            f"dead-letters:{letter.partition}:{letter.offset} holds only the beginning of an input "
            f"of {size.decode(errors='replace')} bytes, more than any that could be used"
        )


def size_of(record: Record | Outgoing) -> int:
    """Return the largest number of bytes that key, value and headers of a record take."""
    return content_size(record) + sum(_size(name, value) for name, value in record.headers)


def _size(name: str, value: bytes) -> int:
    return len(name.encode()) + len(value) + _AROUND


# --- Dead letters: unusable records, as they came, and what is known about them.
#
# An input that cannot be used goes to `dead-letters` byte for byte, with headers that say where
# it was and what was wrong, so that it can be examined, and sent again once the cause is fixed:
#
#     dlq.topic, dlq.partition, dlq.offset   where it was, by the topic's name on the
#                                            broker; missing if a timer was the cause
#     dlq.role                               events, answers or consensus; only if the topic has
#                                            another name
#     dlq.stage                              how far it came: decode, correlate, quarantine or
#                                            learn; if the learner or a rule failed: predict, ask,
#                                            challenge, learn, review or encode
#     dlq.error                              what was wrong, one line
#     dlq.at                                 when, RFC 3339
#     dlq.truncated                          only for an input too large to be kept: its bytes
#     dlq.sha256                             only in this case: of its whole value


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
    """A decoded dead letter.

    Parameters
    ----------
    cause
        The input as it came, and where it was, with the time when it was rejected; None if a timer
        was the cause.
    name
        Name of its topic on the broker, in letters of older workers its role; empty for a timer.
    stage
        How far it came: `decode`, `correlate` or `learn`, or the stage of a `Rejected`.
    error
        What was wrong, one line.
    at
        When it was rejected, by the time of its input, POSIX seconds.

    """

    cause: Record | None
    name: str
    stage: str
    error: str
    at: float


def letter_of(record: Record) -> Letter:
    """Read a record of the topic `dead-letters`.

    Raises
    ------
    ValueError
        If its headers are not those of a dead letter.

    Examples
    --------
    >>> from connectors.wire.outbound import Outbound
    >>> bad = Record(topic="events", partition=3, offset=17, key=b"ann", value=b"?", at=60.0)
    >>> why = Rejected(subject="events:3:17", fault="malformed", reason="must be JSON", at=60.0)
    >>> out = Outbound("/streamgp/rooms", keyed=True).dead_letter(why, bad, 3)
    >>> dead = Record(
    ...     topic="dead-letters", partition=3, offset=0, key=out.key, value=out.value,
    ...     headers=out.headers, at=61.0,
    ... )
    >>> letter = letter_of(dead)
    >>> letter.cause.topic, letter.cause.offset, letter.stage, letter.error, letter.at
    ('events', 17, 'decode', 'must be JSON', 60.0)
    >>> resend(dead)
    Outgoing(topic='events', partition=None, key=b'ann', value=b'?', headers=[])

    """
    found = {name: value for name, value in record.headers if name in _OURS}
    try:
        texts = {name.removeprefix("dlq."): value.decode() for name, value in found.items()}
        name, at = texts.get("topic"), posix_seconds(texts["at"])
        cause = None
        if name is not None:
            cause = Record(
                topic=_topic(texts.get("role", name)),
                partition=int(texts["partition"]),
                offset=int(texts["offset"]),
                key=record.key,
                value=record.value,
                headers=_original(record.headers),
                at=at,
            )
        return Letter(
            cause=cause, name=name or "", stage=texts["stage"], error=texts["error"], at=at
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
        If it is not a dead letter, or a timer was its cause, so that there is no input to repeat,
        or not all of it was kept.

    """
    letter = letter_of(record)
    cause = letter.cause
    if cause is None:
        raise ValueError(
            f"dead-letters:{record.partition}:{record.offset} came of no input that could be sent "
            f"again: {letter.error:.200}"
        )
    check_uncut(record)
    return Outgoing(
        topic=cause.topic,
        # By its key, as it should have been; but the key of a consensus line contains more than
        # that.
        partition=cause.partition if cause.topic == "consensus" else None,
        key=cause.key,
        value=cause.value,
        headers=cause.headers,
    )


def place(cause: Record, name: str) -> Headers:
    """Return the headers with the position of an input.

    Parameters
    ----------
    name
        Name of its topic on the broker.

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


def _original(headers: Headers) -> Headers:
    """Return headers without those of a dead letter."""
    return [header for header in headers if header[0] not in _OURS]


_STAGES: dict[Fault, str] = {
    "malformed": "decode",
    "duplicate": "correlate",
    "unknown": "correlate",
    "late": "correlate",
    "ended": "correlate",
    "unauthorised": "correlate",
    "excessive": "correlate",
    "quarantined": "quarantine",
    "unlearnable": "learn",
    "failed": "learn",
}


def _id_of(request: LabelRequest) -> str:
    """Return the id of the record of a label request; a repeated request has a different one."""
    again = request.reason == ASKED_AGAIN
    return f"{request.request_id}/again/{len(request.excluded)}" if again else request.request_id


_Route: TypeAlias = tuple[TopicName, Callable[[Any], str]]
ROUTES: dict[type, _Route] = {
    Event: ("events", lambda m: m.event_id),
    Answer: ("answers", lambda m: m.answer_id),
    Prediction: ("predictions", lambda m: f"{m.event_id}/prediction"),
    LabelRequest: ("requests", _id_of),
    Challenge: ("requests", lambda m: m.request_id),
    Cancel: ("requests", lambda m: f"{m.request_id}/cancel"),
    Expired: ("requests", lambda m: f"{m.request_id}/expired"),
    LabelledExample: ("consensus", lambda m: f"{m.event_id}/consensus/{m.sequence}"),
}
"""For each type of message its topic, and its id among those of its key."""


def time_of(message: Input | Message) -> float:
    """Return a message's own time."""
    match message:
        case Prediction() | Cancel() | Expired() | Rejected() | Retraction():
            return message.at
        case Event():
            return message.occurred_at
        case Answer():
            return message.answered_at
        case LabelRequest() | Challenge():
            return message.requested_at
        case LabelledExample():
            return message.learned_at


class Outbound:
    """Converts messages to records.

    Parameters
    ----------
    source
        The writer: `/streamgp/<group>` or `/streamgp/<program>`.
    keyed
        Whether each key has a loop of its own. Then every message needs a key.
    names
        Names of the topics on the broker; a topic that is left out has its usual name.
    signatures
        Signs answers; None to leave them unsigned.

    Examples
    --------
    >>> outbound = Outbound("/streamgp/rooms", keyed=True)
    >>> expired = Expired(request_id="e1/label", event_id="e1", key="ann", at=3.0)
    >>> record = outbound.message(expired, 2)
    >>> record.topic, record.partition, record.key, dict(record.headers)["ce_id"]
    ('requests', 2, b'ann', b'ann/e1/label/expired')

    """

    def __init__(
        self,
        source: str,
        *,
        keyed: bool,
        names: Mapping[TopicName, str] | None = None,
        signatures: Signatures | None = None,
    ) -> None:
        self._signatures = signatures
        self._source = source.encode()
        self._keyed = keyed
        self._names = dict(names or {})

    def message(self, message: Input | Message, partition: int | None) -> Outgoing:
        """Return the record of a message; a `Cancel` counts as sent by the loop.

        Raises
        ------
        TypeError
            If there is no topic for it; `Rejected` goes into a dead letter.
        ValueError
            If it has a value that cannot be read back, lacks a key, or is to be signed and there is
            no key to sign with.

        """
        route = ROUTES.get(type(message))
        if route is None:
            names = ", ".join(kind.__name__ for kind in ROUTES)
            raise TypeError(f"message must be one of {names}, got {type(message).__name__}")
        topic, name_of = route
        if message.key is None and self._keyed:
            raise ValueError(f"message must have a key, got {message!r:.80}")
        if isinstance(message, LabelledExample):
            entity = message.key if self._keyed and message.key is not None else ""
            record_key: bytes | None = consensus_key(entity, message.event_id, message.revision)
        else:
            record_key = None if message.key is None else message.key.encode()
        described = headers(
            TAGS[type(message)],
            source=self._source,
            key=message.key,
            name=name_of(message),
            at=time_of(message),
        )
        if self._signatures is not None and isinstance(message, Answer):
            described.append(self._signatures.header(message))
        return Outgoing(
            topic=topic,
            partition=partition,
            key=record_key,
            value=encode(message),
            headers=described,
        )

    def erase(self, key: bytes, partition: int) -> Outgoing:
        r"""Return the null with which a worker removes a line from the consensus log.

        Workers ignore it: its writer has already removed the example.

        Examples
        --------
        >>> Outbound("/streamgp/rooms", keyed=True).erase(b"ann\x1fe1\x1f0", 2).headers
        [('erased-by', b'/streamgp/rooms')]

        """
        return Outgoing(
            topic="consensus",
            partition=partition,
            key=key,
            value=None,
            headers=[(ERASED_BY, self._source)],
        )

    def dead_letter(self, rejected: Rejected, cause: Record | None, partition: int) -> Outgoing:
        """Return the dead letter of an input that could not be used.

        Parameters
        ----------
        cause
            The input: key, value and headers stay as they are, except for the headers of an
            earlier dead letter, and for what is too large. None if a timer was the cause; the
            value is then `rejected`.
        partition
            Partition of the cause.

        """
        verdict = [
            ("dlq.stage", (rejected.stage or _STAGES[rejected.fault]).encode()),
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
        cause, cut_off = cut_cause(cause)
        return Outgoing(
            topic="dead-letters",
            partition=partition,
            key=cause.key,
            value=cause.value,
            headers=[
                *_original(cause.headers),
                *place(cause, self._names.get(cause.topic, cause.topic)),
                *verdict,
                *cut_off,
            ],
        )
