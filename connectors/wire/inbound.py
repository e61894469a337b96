"""Inbound records: each becomes one input of the loop, or is rejected with a reason.

Input from outside is not trusted. Whatever a record contains, `read` returns; what cannot be
understood is returned as `Rejected` with the fault `malformed`, and named by its position:
`events:3:1234`.

"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from operator import attrgetter
from typing import Any

from connectors.topics import Record, TopicName
from connectors.wire.cloudevents import (
    EARLIEST,
    LATEST,
    HeaderError,
    check_header_names,
    type_of,
)
from connectors.wire.codec import (
    INPUT_TYPES,
    MAX_INPUT_BYTES,
    TAGS,
    DecodeError,
    decode_input,
)
from connectors.wire.explain import misspelt_fields
from connectors.wire.signatures import Signatures
from connectors.wire.state_records import SEPARATOR, is_request
from streamgp.interactive.messages import Answer, Event, Fault, Input, Rejected

# --- Keys, ids, annotators and labels that are texts: which ones are allowed in input from
# outside.
#
# They end up in record keys, in stored state and on terminals: they have at most 1024
# characters, none of them a control character or one that UTF-8 cannot encode, and all but
# annotators and labels have at least one.


MAX_NAME = 1024
"""Most characters of a name."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")  # from a command line that is not UTF-8


def flaw_of_name(name: str, least: int = 1, most: int = MAX_NAME) -> str | None:
    """Return what is wrong with a key, an id or another name, or None.

    Examples
    --------
    >>> flaw_of_name("")
    'must have at least one character, got none'

    """
    if least <= len(name) <= most and (
        name.isprintable() or not (_CONTROL.search(name) or _SURROGATE.search(name))
    ):
        return None
    if len(name) > most:
        return f"must have at most {most} characters, got {len(name)}: {name[:40]!r}..."
    if not name:
        return "must have at least one character, got none"
    what = "have no control characters" if _CONTROL.search(name) else "be valid Unicode"
    return f"must {what}, got {name!r:.80}"


@lru_cache(maxsize=1 << 14)
def key_of(data: bytes) -> str:
    """Return the key of a record.

    Raises
    ------
    DecodeError
        If it is not a valid key.

    """
    text = text_of(data)
    if flaw := flaw_of_name(text):
        raise DecodeError(f"key {flaw}")
    return text


def text_of(data: bytes) -> str:
    """Return a record's key as a text.

    Raises
    ------
    DecodeError
        If it is not UTF-8.

    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DecodeError(
            f"key must be UTF-8, got the byte 0x{data[error.start]:02x} at position {error.start}"
        ) from None


# --- Records of `events`, `answers` and `consensus`.


MAX_AHEAD_S = 86_400.0
"""Largest number of seconds by which an input's own time may be later than its record's."""
MAX_ANSWER_AHEAD_S = 60.0
"""Number of seconds after its record to which the time of an answer is limited.

Its time decides whether a question has expired and an event is forgotten, and the clock of one
client must not do that for all others."""

_ACCEPTED: dict[TopicName, tuple[str, ...]] = {
    "events": ("event",),
    "answers": ("answer", "label.cancel"),
}
"""Types of message on each topic, first that of a message that does not tell its type."""
_REQUEST = MAX_NAME + 32  # an event id and the suffix of a request's id
# names in each type, with the least and largest number of characters
_NAMES: dict[str, tuple[tuple[str, int, int], ...]] = {
    "event": (
        ("event_id", 1, MAX_NAME),
        ("key", 1, MAX_NAME),
        ("y", 0, MAX_NAME),
        ("truth", 0, MAX_NAME),
    ),
    "answer": (
        ("answer_id", 1, MAX_NAME),
        ("request_id", 1, _REQUEST),
        ("event_id", 1, MAX_NAME),
        ("key", 1, MAX_NAME),
        ("y", 0, MAX_NAME),
        ("annotator", 0, MAX_NAME),
        ("supersedes", 1, MAX_NAME),
    ),
    "label.cancel": (("request_id", 1, _REQUEST), ("key", 1, MAX_NAME)),
}
_TIMES = {"event": "occurred_at", "answer": "answered_at", "label.cancel": "at"}
# Reads the names and the time of a message, in this order, all at once.
_read_checked = {
    tag: attrgetter(*(name for name, _, _ in names), _TIMES[tag]) for tag, names in _NAMES.items()
}
_REVISION = re.compile(r"0|[1-9][0-9]{0,17}")
_SECONDS = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenBack:
    """Deletion request: a null on the consensus topic, for an example or a whole key.

    Parameters
    ----------
    key
        Key of the example; None if one loop serves all.
    event_id
        Event of the example; None for everything of the key.
    revision
        Revision of the deleted line of the example, None for all.

    """

    key: str | None
    event_id: str | None = None
    revision: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetractionRequest:
    """Request to retract the labels of one annotator, or to undo that: a null on `consensus`.

    Parameters
    ----------
    key
        Key of the learner; None if one loop serves all.
    since
        Only labels learned at this time or later, POSIX seconds; None for all.
    undo
        Whether to undo the retraction.

    """

    key: str | None
    annotator: str
    since: float | None = None
    undo: bool = False


class _UnsignedError(DecodeError):
    """It is not proved that the annotator has said this."""


def read(
    record: Record, *, keyed: bool, signatures: Signatures | None = None
) -> Input | Rejected | TakenBack | RetractionRequest | None:
    """Return the contents of one record of `events`, `answers` or `consensus`.

    Parameters
    ----------
    keyed
        Whether each key has a loop of its own. Then every record needs a key; otherwise an empty
        one counts as none.
    signatures
        Verifies the signatures of answers; None if they have none.

    Returns
    -------
    An input for the loop, a request to forget or retract, or the reason why it is neither. None if
    there is nothing to do: for a null among events or answers, a line of the consensus log, or a
    null with which a worker has removed one.

    Raises
    ------
    ValueError
        If the record is of another topic.

    Examples
    --------
    >>> place = {"topic": "events", "partition": 3, "offset": 17, "at": 60.0}
    >>> read(Record(key=b"ann", value=b'{"x": {"light": 0.5}}', **place), keyed=True)
    Event(event_id='events:3:17', key='ann', x={'light': 0.5}, occurred_at=60.0, ...)
    >>> read(Record(key=None, value=b'{"x": {"light": 0.5}}', **place), keyed=True).reason
    'key is missing, expected 1 to 1024 characters that say whose event or answer it is'

    """
    if record.topic == "consensus":
        if not is_request(record):
            return None
    elif record.topic not in _ACCEPTED:
        raise ValueError(f"topic must be events, answers or consensus, got {record.topic!r}")
    elif record.value is None:
        return None
    key = None
    try:
        if record.value is None:
            check_header_names(record.headers)
            asked = retraction_request(record.key, keyed=keyed)
            return taken_back(record.key, keyed=keyed) if asked is None else asked
        if record.key:
            key = key_of(record.key)
        elif keyed:
            # Records that cannot be read at all are reported first.
            _input(record, record.value, None, signatures)
            raise DecodeError(
                f"key is missing, expected 1 to {MAX_NAME} characters that say whose event or "
                "answer it is"
            )
        return _input(record, record.value, key, signatures)
    except DecodeError as error:
        reason = str(error)
        if not isinstance(error, HeaderError):
            reason += misspelt_fields(record.value, INPUT_TYPES.values())
        fault: Fault = "unauthorised" if isinstance(error, _UnsignedError) else "malformed"
    at = record_time(record)
    return Rejected(subject=record.position, key=key, fault=fault, reason=reason, at=at)


def record_time(record: Record) -> float:
    """Return the time of a record, within the years that RFC 3339 can express."""
    # Its producer can have stamped it with anything.
    return min(max(record.at, EARLIEST), LATEST)


def _input(record: Record, value: bytes, key: str | None, signatures: Signatures | None) -> Input:
    accepted = _ACCEPTED[record.topic]
    announced = type_of(record.headers)
    if announced is not None and announced not in accepted:
        raise DecodeError(_misplaced(record.topic, announced))
    if record.truncated is not None:
        raise DecodeError(
            f"message must have at most {MAX_INPUT_BYTES} bytes, got {record.truncated.size}"
        )
    message = decode_input(
        value, announced or accepted[0], name=record.position, key=key, at=record.at
    )
    tag = TAGS[type(message)]
    if tag not in accepted:
        raise DecodeError(_misplaced(record.topic, tag))
    if announced is not None and announced != tag:
        raise DecodeError(f"{tag}: type must be {announced}, as ce_type says, got {tag}")
    if key is not None and message.key != key:
        raise DecodeError(f"{tag}: key must be that of the record, {key!r}, got {message.key!r}")
    *names, at = _read_checked[tag](message)
    for name in names:
        if name.__class__ is str and not (0 < len(name) <= MAX_NAME and name.isprintable()):
            _check_names(tag, names)  # this check is sufficient for all of them
            break
    if len(value) > MAX_NAME:  # a shorter message holds no longer name
        _check_feature_names(tag, message)
    if not EARLIEST <= at <= LATEST or at > record.at + MAX_AHEAD_S:
        raise DecodeError(f"{tag}: {_TIMES[tag]} {_flaw_of_time(at, record.at)}")
    if signatures is not None and not isinstance(message, Event):
        flaw = signatures.flaw(message, record.headers)
        if flaw is not None:
            raise _UnsignedError(flaw)
    latest = record.at + MAX_ANSWER_AHEAD_S
    if isinstance(message, Answer) and message.answered_at > latest:
        return replace(message, answered_at=latest)
    return message


def _check_names(tag: str, names: Sequence[Any]) -> None:
    """Refuse names that are too short, too long or hold control characters."""
    for (field, least, most), name in zip(_NAMES[tag], names, strict=True):
        if name.__class__ is str and (flaw := flaw_of_name(name, least, most)):
            raise DecodeError(f"{tag}: {field} {flaw}")


def _check_feature_names(tag: str, message: Input) -> None:
    """Refuse long names of features: a learner and its state keep each of them for ever."""
    for field in ("x", "privileged"):
        for name in getattr(message, field, None) or ():
            if isinstance(name, str) and len(name) > MAX_NAME:
                raise DecodeError(f"{tag}: a name in {field} {flaw_of_name(name)}")


def _misplaced(topic: TopicName, tag: str) -> str:
    return f"type must be {' or '.join(_ACCEPTED[topic])} on the topic {topic}, got {tag}"


def _flaw_of_time(at: float, written_at: float) -> str:
    if not EARLIEST <= at <= LATEST:
        return f"must be POSIX seconds within the years 1 to 9999, got {at!r}"
    return f"must be at most a day after its record was written, {written_at!r}, got {at!r}"


def taken_back(key: bytes | None, *, keyed: bool) -> TakenBack:
    r"""Return what a null with a record key in the consensus topic deletes.

    Raises
    ------
    DecodeError
        If it is not a key that a record there can have.

    Examples
    --------
    >>> taken_back(b"ann\x1fe1\x1f0", keyed=True)
    TakenBack(key='ann', event_id='e1', revision=0)

    """
    entity, *line = text_of(key or b"").split(SEPARATOR)
    if key is None or len(line) not in (0, 2):
        got = "none" if key is None else f"{key!r:.80}"
        raise DecodeError(
            "key of a null must be <key>\\x1f<event_id>\\x1f<revision>, to withdraw an example, "
            f"or <key>, to forget all of it, got {got}"
        )
    theirs = _key_of_null(entity, keyed=keyed)
    if not line:
        return TakenBack(key=theirs)
    event_id, revision = line
    if flaw := flaw_of_name(event_id):
        raise DecodeError(f"event_id in the key of a null {flaw}")
    if not _REVISION.fullmatch(revision):
        raise DecodeError(f"revision in the key of a null must be a number, got {revision!r:.80}")
    return TakenBack(key=theirs, event_id=event_id, revision=int(revision))


def _key_of_null(entity: str, *, keyed: bool) -> str | None:
    """Return the key of the learner that a null concerns, None if one loop serves all."""
    if keyed:
        return key_of(entity.encode())
    if entity:
        raise DecodeError(
            f"key of a null must name no key where one loop serves all, got {entity!r:.80}"
        )
    return None


# --- Requests to retract the labels of one annotator. Their keys have five parts, unlike those of
# lines and of deletions: a worker that does not know them makes dead letters of them.


_RETRACT, _REINSTATE = "retract", "reinstate"
_N_PARTS = 5


def retraction_key(
    entity: str, annotator: str, number: int, *, since: float | None = None, undo: bool = False
) -> bytes:
    r"""Return the key of a null that requests to retract, or to reinstate, an annotator's labels.

    Parameters
    ----------
    entity
        Key of the learner; empty if one loop serves all.
    number
        Distinguishes the request from similar ones, so that compaction keeps each.
    since
        Only labels learned at this time or later, POSIX seconds; None for all.
    undo
        Whether to reinstate them.

    Examples
    --------
    >>> retraction_key("k1", "bob", 7, since=60.0)
    b'k1\x1fretract\x1fbob\x1f60.0\x1f7'

    """
    verb = _REINSTATE if undo else _RETRACT
    # All digits of a time, without exponent as in 1e-05.
    when = "" if since is None else f"{Decimal(repr(float(since))):f}"
    parts = entity, verb, annotator, when, str(number)
    return SEPARATOR.join(parts).encode()


def retraction_request(key: bytes | None, *, keyed: bool) -> RetractionRequest | None:
    r"""Return the retraction that a null requests by its record key; None for other keys.

    Raises
    ------
    DecodeError
        If it is meant as a request, but not made like those of `retraction_key`.

    Examples
    --------
    >>> retraction_request(b"k1\x1fretract\x1fbob\x1f60.0\x1f7", keyed=True)
    RetractionRequest(key='k1', annotator='bob', since=60.0, undo=False)
    >>> retraction_request(b"k1\x1fe1\x1f0", keyed=True)

    """
    parts = text_of(key or b"").split(SEPARATOR)
    if len(parts) != _N_PARTS or parts[1] not in (_RETRACT, _REINSTATE):
        return None
    entity, verb, annotator, since, _ = parts
    theirs = _key_of_null(entity, keyed=keyed)
    if flaw := flaw_of_name(annotator):
        raise DecodeError(f"annotator in the key of a null {flaw}")
    if since and not _SECONDS.fullmatch(since):
        raise DecodeError(f"time in the key of a null must be POSIX seconds, got {since!r:.80}")
    return RetractionRequest(
        key=theirs,
        annotator=annotator,
        since=float(since) if since else None,
        undo=verb == _REINSTATE,
    )
