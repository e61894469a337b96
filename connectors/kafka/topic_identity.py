"""Identity and number of partitions of a topic, and their mark in a committed position.

A topic that is deleted and created again under its name has another id: offsets of the old one mean
nothing in it. If a topic gets more partitions, keys move to other partitions, and what was learned
about them stays behind. This module never contacts a broker.

"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from connectors.topics import BrokerError, RefusedError, TopicName

_MARK = re.compile(r"(?:topic=(\S+) )?partitions=(\d+)\Z")
_NO_ID = str(UUID(int=0))
RESET_HINT = "say where to read on with kafka-consumer-groups.sh --reset-offsets"


@dataclass(frozen=True, slots=True)
class Shape:
    """Identity of a topic: what distinguishes it from another one of the same name.

    Parameters
    ----------
    topic_id
        The id that the broker generated when the topic was created; zeros if it generates none.
    n_partitions
        Its number of partitions.

    """

    topic_id: str
    n_partitions: int

    @property
    def mark(self) -> str:
        """The metadata of a committed position.

        Examples
        --------
        >>> Shape("0S6oFzd3", 4).mark
        'topic=0S6oFzd3 partitions=4'

        Without an id from a broker:

        >>> Shape("00000000-0000-0000-0000-000000000000", 4).mark
        'partitions=4'

        """
        partitions = f"partitions={self.n_partitions}"
        return partitions if self.topic_id == _NO_ID else f"topic={self.topic_id} {partitions}"

    def is_other(self, shape: Shape) -> bool:
        """Return whether this is a different topic, as far as both ids are known."""
        return self.topic_id != shape.topic_id and _NO_ID not in (self.topic_id, shape.topic_id)


def shape_of(mark: str) -> Shape | None:
    """Parse the mark of a committed position; None if another program committed it.

    Examples
    --------
    >>> shape_of("topic=0S6oFzd3 partitions=4")
    Shape(topic_id='0S6oFzd3', n_partitions=4)
    >>> shape_of("") is None
    True

    """
    found = _MARK.match(mark)
    return None if found is None else Shape(found[1] or _NO_ID, int(found[2]))


def check_mark(called: str, then: Shape, now: Shape, group: str) -> None:
    """Compare the topic for which a position was committed with the current one.

    Parameters
    ----------
    called
        The topic's name on the broker.
    then, now
        The topic when the position was committed, and now.
    group
        The group whose position it is.

    Raises
    ------
    RefusedError
        If keys have moved, or the position belongs to a topic that was deleted.

    Examples
    --------
    >>> check_mark("events", Shape("a", 4), Shape("a", 6), "rooms")
    Traceback (most recent call last):
    connectors.topics.RefusedError: topic events has 6 partitions, but had 4 when group 'rooms' ...

    """
    if now.is_other(then):
        raise RefusedError(
            f"topic {called} was deleted and made again, and group {group!r} has a position of the "
            "former one; say where to read on in the new one: kafka-consumer-groups.sh --group "
            f"{group} --topic {called} --reset-offsets --to-earliest --execute"
        )
    if then.n_partitions != now.n_partitions:
        raise RefusedError(
            more_partitions(called, then.n_partitions, now.n_partitions, f"group {group!r}")
        )


def check_same(
    names: Mapping[TopicName, str],
    then: Mapping[TopicName, Shape],
    now: Mapping[TopicName, Shape | None],
) -> None:
    """Compare the topics with which a worker started with the current ones.

    Parameters
    ----------
    names
        The names of the topics on the broker.
    then, now
        The topics at the start, and now; None for a missing topic.

    Raises
    ------
    RefusedError
        If keys have moved.
    BrokerError
        If a topic was deleted, or deleted and created again.

    Examples
    --------
    >>> check_same({"events": "rooms.events"}, {"events": Shape("a", 4)}, {"events": None})
    Traceback (most recent call last):
    connectors.topics.BrokerError: topic rooms.events was deleted while this worker was at work

    """
    for name, before in then.items():
        called, found = names[name], now[name]
        if found is None:
            raise BrokerError(f"topic {called} was deleted while this worker was at work")
        if found.is_other(before):
            raise BrokerError(
                f"topic {called} was deleted and made again while this worker was at work"
            )
    for name, before in then.items():
        found = now[name]
        if found is not None and found.n_partitions != before.n_partitions:
            raise RefusedError(
                more_partitions(names[name], before.n_partitions, found.n_partitions, "this worker")
            )


def missing(called: Sequence[str]) -> str:
    """Say that topics are missing, and what to do.

    Examples
    --------
    >>> missing(["events"]), missing(["events", "state"])
    ('topic events is missing; --create-topics makes it',
     'topics events, state are missing; --create-topics makes them')

    """
    if len(called) == 1:
        return f"topic {called[0]} is missing; --create-topics makes it"
    return f"topics {', '.join(called)} are missing; --create-topics makes them"


def more_partitions(called: str, then: int, now: int, who: str) -> str:
    """Return why workers refuse a topic with more partitions than before, and what to do."""
    return (
        f"topic {called} has {now} partitions, but had {then} when {who} began: keys have moved to "
        "other partitions than what was learned of them; make seven new topics with "
        f"{now} partitions ([topics] prefix), move what was learned there by streamgp backup and "
        "restore, and send the events there"
    )


def beyond_end(called: str, partition: int, position: int) -> RefusedError:
    """Say that a group would read on behind the end of a partition, and what to do."""
    return RefusedError(
        f"the group's position in topic {called} partition {partition} is {position}, but the "
        f"partition ends before: it was recreated, or has lost its end; {RESET_HINT}"
    )
