"""Inputs that wait, are held back, or were deleted before workers have read them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from connectors.records import Backlog, Obstacle, Place, TopicName, Topics
from connectors.stalls import STALL_S, StallTracker
from streamgp.cli.wording import number, span

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
        """How many inputs wait; of `consensus` these are lines of the workers themselves."""
        return sum(each.n_waiting for (topic, _), each in self.backlog.items() if topic in _SENT)

    @property
    def is_settled(self) -> bool:
        """Whether further looks cannot show progress: everywhere it was seen, or nobody works."""
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
                f"no worker is at work in group {self._group!r}, with "
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
