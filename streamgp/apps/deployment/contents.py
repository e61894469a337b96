"""Contents of the topics `state` and `consensus`: what workers have learned, and losses."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import click

from connectors.stalls import STALL_S, StallTracker
from connectors.topics import Backlog, Obstacle, Place, Reader, RefusedError, TopicName, Topics
from connectors.wire.state_records import CONFIGURATION, History
from connectors.worker.losses import (
    FORGOTTEN,
    RECOVER,
    Flaw,
    Losses,
    LostRecordsError,
    losses_in,
    vanished,
)
from streamgp.apps.console import number, span
from streamgp.apps.deployment.deployment import all_of
from streamgp.interactive.keyed import BUDGET
from streamgp.interactive.messages import LabelledExample
from streamgp.interactive.state.serialize import HEAD

NO_LOOP = (CONFIGURATION, FORGOTTEN, BUDGET)
"""Names of what a partition has beside its loops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """Contents of the topics about one loop.

    Parameters
    ----------
    partition
        Where.
    entity
        Whose; nothing where one loop serves all.
    parts
        The newest parts of its state.
    lines
        Its consensus log.

    """

    partition: int
    entity: str
    parts: Mapping[str, Any]
    lines: Sequence[LabelledExample]

    @property
    def name(self) -> str:
        """Name for people."""
        return self.entity or "all keys"


def histories_of(reader: Reader) -> dict[int, History]:
    """Read both topics to their end; return what they hold of each partition."""
    histories: dict[int, History] = {}
    for record in all_of(reader, what="reading"):
        histories.setdefault(record.partition, History()).take(record)
    return dict(sorted(histories.items()))


def loops_in(histories: Mapping[int, History], *, keyed: bool) -> Iterator[Learned]:
    """Return the loops that are there, one after the other.

    Raises
    ------
    HistoryError
        If a record cannot be read.
    click.ClickException
        If they are of workers that keep one learner for all keys, or one for each, as `keyed` does
        not say.

    """
    for partition, history in histories.items():
        for entity in sorted(history.entities()):
            parts = {
                name: value
                for name, value in history.parts(entity).items()
                if value is not None and (entity or name not in NO_LOOP)
            }
            lines = history.lines(entity)
            if not (parts or lines):
                continue  # forgotten
            if keyed != bool(entity):
                expected = "true" if entity else "false"
                raise click.ClickException(
                    f"the topics were written by workers with worker.keyed = {expected}; set it in "
                    "the configuration"
                )
            yield Learned(partition=partition, entity=entity, parts=parts, lines=lines)


# --- Whether the topics of a deployment have lost what was learned, as seen beside the workers.


_PATIENCE_S = 0.5


def losses_of(topics: Topics, group: str, histories: Mapping[int, History]) -> dict[int, Losses]:
    """Return what is missing in each partition that has lost something.

    A client that reads two topics while workers write may see the one before a batch and the
    other after it. So what is missing then is looked for once more, and counts where the state has
    not moved.

    Raises
    ------
    HistoryError
        If a record cannot be read.

    """
    found = _found(histories)
    if found and topics.n_members(group):
        with closing(topics.reader(("state", "consensus"))) as reader:
            later = histories_of(reader)
        lasting = {n: _lasting(n, histories[n], later[n]) for n in found if n in later}
        found = {n: losses for n, losses in lasting.items() if losses.error() is not None}
    return found


def vanished_in(
    topics: Topics, group: str, histories: Mapping[int, History]
) -> dict[int, LostRecordsError]:
    """Return the partitions of which nothing is left, though the group has worked on them.

    Nothing while workers are at work: they look at that themselves, and may begin just now.
    """
    if topics.n_members(group):
        return {}
    positions = topics.positions(group)
    found = {}
    for partition in range(topics.n_partitions()):
        history = histories.get(partition, History())
        if history.configuration is None and not history.entities():
            lost = vanished(partition, positions)
            if lost is not None:
                found[partition] = lost
    return found


def errors_of(
    topics: Topics, group: str, histories: Mapping[int, History]
) -> list[LostRecordsError]:
    """Return what workers would end with, as something was lost."""
    found = [losses.error() for losses in losses_of(topics, group, histories).values()]
    return [
        *(error for error in found if error is not None),
        *vanished_in(topics, group, histories).values(),
    ]


def check_whole(topics: Topics, group: str, histories: Mapping[int, History]) -> None:
    """Refuse topics that have lost what was learned.

    Raises
    ------
    click.ClickException
        With what a worker would end with.

    """
    for lost in errors_of(topics, group, histories):
        raise click.ClickException(str(lost))


def warning_of(topics: Topics) -> str | None:
    """Return what to say where labelled examples are there and no state at all; reads little.

    Nothing where `state` may not be read: a client that only watches needs no right to it.
    """
    try:
        if _holds_something(topics, "state") or not _holds_something(topics, "consensus"):
            return None
    except RefusedError:
        return None
    return (
        "consensus holds labelled examples, but state holds nothing: state was deleted or emptied; "
        f"{RECOVER}"
    )


def _holds_something(topics: Topics, name: TopicName) -> bool:
    with closing(topics.reader((name,))) as reader:
        while not reader.caught_up:
            if any(record.value is not None for record in reader.poll(_PATIENCE_S)):
                return True
    return False


def _lasting(number: int, before: History, after: History) -> Losses:
    """Return what is missing of a partition in both of two reads of it.

    Whatever belongs to a head was written with it, and so before the second read. If that finds
    another one, it may have missed what was written with that.
    """
    first, losses = Losses(number, before), Losses(number, after)
    for entity in after.entities():
        was, flaw = _looked_at(first, entity, before), _looked_at(losses, entity, after)
        has_moved = _sequence(before, entity) != _sequence(after, entity)
        # Numbers that are there twice are seen in one topic alone.
        if flaw is not None and (flaw != was or (has_moved and flaw != "doubled")):
            losses.flaws -= Counter([flaw])
    return losses


def _looked_at(losses: Losses, entity: str, history: History) -> Flaw | None:
    return losses.look(entity, history.parts(entity), history.lines(entity))


def _sequence(history: History, entity: str) -> object:
    head = history.parts(entity).get(HEAD)
    return head.get("sequence") if isinstance(head, dict) else None


def _found(histories: Mapping[int, History]) -> dict[int, Losses]:
    every = {number: losses_in(number, history) for number, history in histories.items()}
    return {number: losses for number, losses in every.items() if losses.error() is not None}


# --- Inputs that wait, are held back, or were deleted before workers have read them.


_SENT: tuple[TopicName, ...] = ("events", "answers")


class InputProgress:
    """Looks again and again at how far a group is, and tells what needs an operator.

    Parameters
    ----------
    topics, names
        The topics, and what they are called on the broker.
    group
        The group.
    monotonic, clock
        Tell the time: for spans, and POSIX seconds.

    Attributes
    ----------
    backlog
        How far the group is in each input partition, as of the last look.
    n_workers
        How many workers are at work, as of the last look.

    """

    # _stalls  since when partitions with inputs that wait are where they are
    # _first   where they were at the first look

    def __init__(
        self,
        topics: Topics,
        names: Mapping[TopicName, str],
        group: str,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._topics = topics
        self._names = names
        self._group = group
        self._monotonic = monotonic
        self._clock = clock
        self._stalls: StallTracker[Place] = StallTracker()
        self._first: dict[Place, int] | None = None
        self.backlog: Mapping[Place, Backlog] = {}
        self.n_workers = 0
        self.look()

    @property
    def n_waiting(self) -> int:
        """Number of inputs that wait; of `consensus` these are lines of the workers themselves."""
        return sum(each.n_waiting for (topic, _), each in self.backlog.items() if topic in _SENT)

    @property
    def is_settled(self) -> bool:
        """Whether further looks cannot show progress: everywhere it was seen, or no worker runs."""
        return not self.n_workers or not any(
            each.n_waiting and (self._first or {}).get(place) == each.position
            for place, each in self.backlog.items()
        )

    def look(self) -> None:
        """Ask the broker how far the group is."""
        self.n_workers = self._topics.n_members(self._group)
        self.backlog = self._topics.backlog(self._group)
        waiting = {place: each.position for place, each in self.backlog.items() if each.n_waiting}
        self._stalls.update(waiting, self._monotonic())
        if self._first is None:
            self._first = waiting

    def troubles(self) -> list[str]:
        """Return what needs an operator, one line each."""
        still = self._stalls.still(self._monotonic())
        obstacles = self._topics.obstacles(still) if still else {}
        held_s = {place: self._held_s(s, obstacles.get(place)) for place, s in still.items()}
        long = {place for place, s in held_s.items() if s >= STALL_S or not self.n_workers}
        # What a transaction that was aborted has left takes places like records, but none waits.
        free = {place: self.backlog[place].position for place in long - obstacles.keys()}
        readable = self._topics.readable(free) if free else set()
        lines = self._missed()
        if not self.n_workers and any(topic in _SENT for topic, _ in readable | obstacles.keys()):
            lines.append(
                f"no worker is running in group {self._group!r}, with "
                f"{number(self.n_waiting, 'input')} waiting"
            )
        for place in sorted(long):
            if place in obstacles and held_s[place] >= STALL_S:
                lines.append(self._stuck(place, held_s[place], obstacles[place].text))
            elif place in readable and self.n_workers:
                why = "no open transaction holds them back; see the logs of the workers"
                lines.append(self._stuck(place, held_s[place], why))
        return lines

    def _held_s(self, still_s: float, obstacle: Obstacle | None) -> float:
        """Return for how long a partition has yielded nothing, as far as is known."""
        if obstacle is None or obstacle.since is None:
            return still_s
        return max(still_s, self._clock() - obstacle.since)

    def _missed(self) -> list[str]:
        return [
            f"{number(each.n_missed, 'record')} of {self._name(place)} deleted before they were "
            f"read (offsets {each.position} to {each.position + each.n_missed - 1})"
            for place, each in sorted(self.backlog.items())
            if each.n_missed
        ]

    def _stuck(self, place: Place, held_s: float, why: str) -> str:
        return (
            f"{number(self.backlog[place].n_waiting, 'record')} waiting in {self._name(place)}, "
            f"without progress for {span(held_s)}: {why}"
        )

    def _name(self, place: Place) -> str:
        topic, partition = place
        return f"topic {self._names[topic]} partition {partition}"
