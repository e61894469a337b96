"""What the topics must be like, and what is wrong with those that are there.

Nothing is asked of a broker here: what it says of its topics comes in, sentences go out.

"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from connectors.kafka.client import MAX_RECORD_BYTES
from connectors.kafka.library import kafka_errors
from connectors.records import COMPACTED, TopicName

Settings: TypeAlias = Mapping[TopicName, Mapping[str, str]]
"""Settings of topics, those of `CHECKED` that we may see."""

DAY_MS = 86_400_000
CHECKED = ("cleanup.policy", "delete.retention.ms", "max.message.bytes")
SENT_BY_OTHERS: tuple[TopicName, ...] = ("events", "answers")
_KEEP_DELETIONS_MS = 7 * DAY_MS
# Nothing is dropped from the segment that is written to, by default the last GiB or the last week:
# all of that would be read at each start without a snapshot.
_SEGMENT_BYTES = 64 * 2**20
_COMPACTED_WITHIN_MS = DAY_MS
# A challenge holds its event and three neighbours.
_OUTPUTS_PER_INPUT = 5
_FORBIDDEN = 29
_RIGHTS: dict[TopicName, tuple[str, ...]] = {
    "events": ("READ",),
    "answers": ("READ",),
    "predictions": ("WRITE",),
    "requests": ("WRITE",),
    "consensus": ("READ", "WRITE"),
    "state": ("READ", "WRITE"),
    "dead-letters": ("WRITE",),
}


def wanted(name: TopicName) -> dict[str, str]:
    """Return the settings of a topic that is to be made.

    Examples
    --------
    >>> wanted("events")
    {'cleanup.policy': 'delete'}

    """
    settings = {"cleanup.policy": "compact" if name in COMPACTED else "delete"}
    if name in COMPACTED:
        settings["delete.retention.ms"] = str(_KEEP_DELETIONS_MS)
        settings["segment.bytes"] = str(_SEGMENT_BYTES)
        settings["max.compaction.lag.ms"] = str(_COMPACTED_WITHIN_MS)
    if name not in SENT_BY_OTHERS:
        settings["max.message.bytes"] = str(MAX_RECORD_BYTES)
    return settings


def flaws(name: TopicName, called: str, topic: Mapping[str, Any] | None) -> list[str]:
    """Return why a topic cannot be used.

    Parameters
    ----------
    name, called
        The topic, and what it is called on the broker.
    topic
        What the broker says of it; None if it is not there.

    Examples
    --------
    >>> flaws("events", "rooms.events", None)
    ['topic rooms.events is missing; --create-topics makes it']
    >>> flaws("state", "state", {"error_code": 0, "authorized_operations": ["READ"]})
    ['no right to write topic state']

    """
    if topic is None:
        return [f"topic {called} is missing; --create-topics makes it"]
    if topic["error_code"] == _FORBIDDEN:
        return [f"no right to see topic {called}"]
    if topic["error_code"]:
        reason = kafka_errors.for_code(topic["error_code"]).__name__
        return [f"topic {called} cannot be used: {reason}"]
    rights = topic.get("authorized_operations")
    if rights is None:
        return []
    lacking = [right.lower() for right in _RIGHTS[name] if right not in rights]
    return [f"no right to {' and '.join(lacking)} topic {called}"] if lacking else []


def misfits(name: TopicName, called: str, settings: Settings) -> list[str]:
    """Return which settings of a topic lose something.

    Examples
    --------
    >>> misfits("state", "state", {"state": {"delete.retention.ms": "60000"}})
    ['topic state has delete.retention.ms=60000, expected at least 86400000']

    """
    own = settings[name]
    lines = []
    policy = own.get("cleanup.policy")
    expected = "compact" if name in COMPACTED else "delete"
    if policy is not None and policy != expected:
        lines.append(f"topic {called} has cleanup.policy={policy}, expected {expected}")
    kept_ms = own.get("delete.retention.ms")
    if name in COMPACTED and kept_ms is not None and int(kept_ms) < DAY_MS:
        # A worker trusts a snapshot for half a day, and must find all deletions since.
        lines.append(
            f"topic {called} has delete.retention.ms={kept_ms}, expected at least {DAY_MS}"
        )
    limits = [_limit(settings, each) for each in SENT_BY_OTHERS]
    needed = min(MAX_RECORD_BYTES, _OUTPUTS_PER_INPUT * max(limits))
    limit = own.get("max.message.bytes")
    if name not in SENT_BY_OTHERS and limit is not None and int(limit) < needed:
        lines.append(
            f"topic {called} has max.message.bytes={limit}, expected at least {needed} for "
            "inputs of the size that events and answers may have"
        )
    return lines


def excess(name: TopicName, called: str, settings: Settings) -> list[str]:
    """Return whether records of an input may be larger than those that workers write.

    Examples
    --------
    >>> excess("events", "events", {"events": {"max.message.bytes": "20000000"}})
    ['topic events has max.message.bytes=20000000, but workers write at most 16842752: of a ...

    """
    limit = _limit(settings, name)
    if limit <= MAX_RECORD_BYTES:
        return []
    return [
        f"topic {called} has max.message.bytes={limit}, but workers write at most "
        f"{MAX_RECORD_BYTES}: of a larger record a dead letter has only the beginning"
    ]


def _limit(settings: Settings, name: TopicName) -> int:
    return int(settings.get(name, {}).get("max.message.bytes", 0))
