"""Warnings about partitions that have inputs and yield none, and about inputs that are gone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from time import monotonic

from connectors.topics import Begun, BrokerError, Obstacle, Place, Stalled, WorkerClient
from connectors.worker.logging import Journal

_LOOK_EVERY_S = 1.0
REPEAT_S = 300.0


class ProgressReports:
    """Writes into a worker's log what keeps it from its inputs.

    Parameters
    ----------
    link
        The hold on the topics.
    journal
        The log.

    """

    # _said_at   when the warning about a partition was last written
    # _called    what the topics of these partitions are called on the broker
    # _asked_at  when the link was last asked

    def __init__(self, link: WorkerClient, journal: Journal) -> None:
        self._link = link
        self._journal = journal
        self._said_at: dict[Place, float] = {}
        self._called: dict[Place, str] = {}
        self._asked_at = 0.0

    def look(self) -> None:
        """Write what is new; to be called after every poll."""
        begun = self._link.begun()
        if begun:
            self._say_begun(begun)
        now = monotonic()
        if now - self._asked_at >= _LOOK_EVERY_S:
            self._asked_at = now
            self._say_stalled({(each.topic, each.partition): each for each in self._link.stalled()})

    def _say_begun(self, begun: Sequence[Begun]) -> None:
        anew: dict[str, dict[int, int]] = {}
        for each in begun:
            if each.position is None:
                anew.setdefault(each.topic, {})[each.partition] = each.offset
            else:
                self._journal.warning(
                    "missed",
                    topic=each.topic,
                    partition=each.partition,
                    n=each.offset - each.position,
                    first=each.position,
                    last=each.offset - 1,
                    reason="these records were deleted before they were read",
                    consequence="goes on with the first that is there",
                )
        if anew:
            self._journal.info(
                "begins", offsets=anew, reason="the group has no position in these partitions"
            )

    def _say_stalled(self, stalled: dict[Place, Stalled]) -> None:
        now = monotonic()
        for place in [place for place in self._said_at if place not in stalled]:
            del self._said_at[place]
            self._journal.info("progressing", topic=self._called.pop(place), partition=place[1])
        due = [
            place
            for place in stalled
            if place not in self._said_at or now - self._said_at[place] >= REPEAT_S
        ]
        if not due:
            return
        obstacles: dict[Place, Obstacle] = {}
        with suppress(BrokerError):
            obstacles = self._link.obstacles(due)
        for place in due:
            self._said_at[place] = now
            each, obstacle = stalled[place], obstacles.get(place)
            self._called[place] = each.called
            self._journal.warning(
                "stuck",
                topic=each.called,
                partition=each.partition,
                offset=each.offset,
                waiting=each.n_waiting,
                still_s=round(each.still_s),
                reason="the broker does not say why" if obstacle is None else obstacle.text,
            )
