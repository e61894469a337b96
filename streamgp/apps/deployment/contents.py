"""Contents of the topics `state` and `consensus`: what workers have learned, and losses."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import click

from connectors.stalls import STALL_S, StallTracker
from connectors.topics import (
    COMPACTED,
    Backlog,
    Obstacle,
    Place,
    Record,
    RefusedError,
    TopicName,
    Topics,
)
from connectors.wire.state_records import History
from connectors.worker.losses import (
    RECOVER,
    Flaw,
    Losses,
    LostRecordsError,
    losses_in,
    vanished,
)
from connectors.worker.partition import Partition
from connectors.worker.settings import LoopSettings
from streamgp.apps.console import number, span
from streamgp.apps.deployment.deployment import PATIENCE_S, everything
from streamgp.evaluation.counts import Drifts
from streamgp.interactive.messages import LabelledExample
from streamgp.interactive.state.serialize import HEAD


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLoop:
    """Contents of the topics about one loop.

    Parameters
    ----------
    entity
        Its entity; empty if one loop serves all keys.

    """

    partition: int
    entity: str
    parts: Mapping[str, Any]
    lines: Sequence[LabelledExample]

    @property
    def name(self) -> str:
        return self.entity or "all keys"


def histories_of(records: Iterable[Record]) -> dict[int, History]:
    """Return the contents of both topics by partition."""
    histories: dict[int, History] = {}
    for record in records:
        histories.setdefault(record.partition, History()).take(record)
    return dict(sorted(histories.items()))


def loops_in(histories: Mapping[int, History], *, keyed: bool) -> Iterator[StoredLoop]:
    """Yield the loops in the topics.

    Raises
    ------
    HistoryError
        If a record cannot be read.
    click.ClickException
        If `keyed` differs from the setting of the workers that wrote them.

    """
    for partition, history in histories.items():
        for entity in sorted(history.entities()):
            found = history.parts(entity)
            parts = {name: value for name, value in found.items() if value is not None}
            lines = history.lines(entity)
            if not (parts or lines):
                continue  # forgotten
            if keyed != bool(entity):
                expected = "true" if entity else "false"
                raise click.ClickException(
                    f"the topics were written by workers with worker.keyed = {expected}; set it in "
                    "the configuration"
                )
            yield StoredLoop(partition=partition, entity=entity, parts=parts, lines=lines)


def empty_partition(number: int, loops: LoopSettings, at: float) -> Partition:
    """Return a partition to be brought up from the topics alone, all of it in memory."""
    in_memory = replace(loops, max_keys=None)
    # There is no snapshot, and so no note about one.
    return Partition(number, in_memory, None, now=at, note=lambda _: None)


# --- Losses in the topics of a deployment, detected from outside the workers.


def losses_of(topics: Topics, group: str, histories: Mapping[int, History]) -> dict[int, Losses]:
    """Return the losses of each partition that has lost records.

    A client that reads two topics while workers write may see one before a batch and the other
    after it. Missing records are therefore checked again, and count only if the state has not
    changed.

    Raises
    ------
    HistoryError
        If a record cannot be read.

    """
    found = _found(histories)
    if found and topics.n_members(group):
        later = histories_of(everything(topics, *COMPACTED, what="reading"))
        lasting = {n: _lasting(n, histories[n], later[n]) for n in found if n in later}
        found = {n: losses for n, losses in lasting.items() if losses.error() is not None}
    return found


def vanished_in(
    topics: Topics, group: str, histories: Mapping[int, History]
) -> dict[int, LostRecordsError]:
    """Return the partitions without any records although the group has processed inputs there.

    Running workers may have written the first ones since the histories were read: what is missing
    is then looked for again, since a position is never ahead of the records of its batch.
    """
    positions = topics.positions(group)
    found = {
        partition: lost
        for partition in range(topics.n_partitions())
        if _is_blank(histories.get(partition))
        and (lost := vanished(partition, positions)) is not None
    }
    if found and topics.n_members(group):
        later = histories_of(everything(topics, *COMPACTED, what="reading"))
        found = {
            partition: lost for partition, lost in found.items() if _is_blank(later.get(partition))
        }
    return found


def _is_blank(history: History | None) -> bool:
    return history is None or (history.configuration is None and not history.entities())


def errors_of(
    topics: Topics, group: str, histories: Mapping[int, History]
) -> list[LostRecordsError]:
    """Return the errors with which workers would stop because of losses."""
    found = [losses.error() for losses in losses_of(topics, group, histories).values()]
    return [
        *(error for error in found if error is not None),
        *vanished_in(topics, group, histories).values(),
    ]


def check_complete(topics: Topics, group: str, histories: Mapping[int, History]) -> None:
    """Refuse topics that have lost what was learned.

    Raises
    ------
    click.ClickException
        With the error with which a worker would stop.

    """
    for lost in errors_of(topics, group, histories):
        raise click.ClickException(str(lost))


def warning_of(topics: Topics) -> str | None:
    """Return a warning if there are labelled examples but no state at all; reads little.

    None if `state` may not be read: a client that only watches needs no right to it.
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
            if any(record.value is not None for record in reader.poll(PATIENCE_S)):
                return True
    return False


def _lasting(number: int, before: History, after: History) -> Losses:
    """Return the losses of a partition that appear in both of two reads.

    Everything that belongs to a head was written with it, and so before the second read. If the
    second read finds a different head, it may have missed what was written with that one.
    """
    first, losses = Losses(number, before), Losses(number, after)
    for entity in after.entities():
        was, flaw = _looked_at(first, entity, before), _looked_at(losses, entity, after)
        has_moved = _sequence(before, entity) != _sequence(after, entity)
        # Duplicate numbers are visible in one topic alone.
        if flaw is not None and (flaw != was or (has_moved and flaw != "doubled")):
            losses.flaws -= Counter([flaw])
    return losses


def _looked_at(losses: Losses, entity: str, history: History) -> Flaw | None:
    return losses.look(entity, history.parts(entity), history.lines(entity))


def _sequence(history: History, entity: str) -> object:
    head = history.part(entity, HEAD)
    return head.get("sequence") if isinstance(head, dict) else None


def _found(histories: Mapping[int, History]) -> dict[int, Losses]:
    every = {number: losses_in(number, history) for number, history in histories.items()}
    return {number: losses for number, losses in every.items() if losses.error() is not None}


def drifts_in(history: History, entity: str) -> Drifts | None:
    """Return the concept drifts that the learner of an entity has found, None for none."""
    model = (history.part(entity, HEAD) or {}).get("model", {})
    n_found = model.get("drift", {}).get("n_drifts", 0)
    if not n_found:
        return None
    return Drifts(n_found=n_found, n_outdated=model["taught"].get("n_outdated", 0))


# --- Inputs that wait, are held back, or were deleted before workers had read them.


_SENT: tuple[TopicName, ...] = ("events", "answers")


class InputProgress:
    """Observes a group's progress, and reports what needs an operator.

    Parameters
    ----------
    topics, names
        The topics, and their names on the broker.
    monotonic, clock
        Return the time: monotonic for durations, and in POSIX seconds.

    Attributes
    ----------
    backlog
        Progress of the group in each input partition, as of the last look.
    n_workers
        Number of running workers, as of the last look.

    """

    # _stalls  since when partitions with waiting inputs have not advanced
    # _first   their positions at the first look

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
    def lags(self) -> dict[Place, int]:
        """Numbers of waiting inputs, without `consensus`, which workers write themselves.

        What a worker has written there last stays unread once it has stopped.
        """
        return {place: each.n_waiting for place, each in self.backlog.items() if place[0] in _SENT}

    @property
    def n_waiting(self) -> int:
        """Number of waiting inputs."""
        return sum(self.lags.values())

    @property
    def is_settled(self) -> bool:
        """Whether no further look can help: all partitions have advanced, or no worker runs."""
        return not self.n_workers or not any(
            each.n_waiting and (self._first or {}).get(place) == each.position
            for place, each in self.backlog.items()
        )

    def look(self) -> None:
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
        # Aborted records take offsets like others, but nothing waits there.
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
        """Return for how long a partition has yielded nothing, as far as known."""
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
