"""What goes out to a broker: each message becomes a record of its topic, with key and headers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from connectors.records import Outgoing, Record, TopicName
from connectors.wire.cloudevents import headers, rfc3339
from connectors.wire.codec import TAGS, encode
from connectors.wire.cutting import cut
from connectors.wire.dead_letters import original_headers, place
from connectors.wire.refusals import one_line
from connectors.wire.statelog import ERASED_BY, consensus_key
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
    "failed": "learn",
}

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
    names
        What the topics are called on the broker; one left out is called what it is.

    Examples
    --------
    >>> outbox = Outbox("/streamgp/rooms", keyed=True)
    >>> record = outbox.message(Expired(request_id="e1/label", event_id="e1", key="ann", at=3.0), 2)
    >>> record.topic, record.partition, record.key, dict(record.headers)["ce_id"]
    ('requests', 2, b'ann', b'ann/e1/label/expired')

    """

    def __init__(
        self, source: str, *, keyed: bool, names: Mapping[TopicName, str] | None = None
    ) -> None:
        self._source = source.encode()
        self._keyed = keyed
        self._names = dict(names or {})

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

    def erase(self, key: bytes, partition: int) -> Outgoing:
        r"""Return the null with which a worker takes a line out of the consensus log.

        To workers it means nothing: whoever writes it has done what it says.

        Examples
        --------
        >>> Outbox("/streamgp/rooms", keyed=True).erase(b"ann\x1fe1\x1f0", 2).headers
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
        rejected
            Why.
        cause
            Where it came from: key, value and headers stay as they are, but for the headers of an
            earlier dead letter, and for what is too large. None for what a timer brought about; the
            value is then `rejected`.
        partition
            That of the cause.

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
        cause, cut_off = cut(cause)
        return Outgoing(
            topic="dead-letters",
            partition=partition,
            key=cause.key,
            value=cause.value,
            headers=[
                *original_headers(cause),
                *place(cause, self._names.get(cause.topic, cause.topic)),
                *verdict,
                *cut_off,
            ],
        )
