"""The worker: reads events and answers, drives the loops of its partitions, writes what comes out.

What was polled together is worked off together, and everything that comes of it (outputs, labelled
examples, state, dead letters, the positions of the inputs) becomes visible at once, or nothing
does. A worker that is killed at any moment has therefore never done half of anything; the next
one brings the loops back from the topics, equal to the last bit, and goes on.

After an error the loops in memory may be ahead of the topics, so nothing is repaired: `run` raises,
and whoever watches over the process starts it again.

"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable

from connectors.records import Topics
from connectors.storage.snapshots import StateDirectory, StateError
from connectors.worker.agreement import UnfitTopicsError
from connectors.worker.journal import say
from connectors.worker.loop_settings import LoopSettings
from connectors.worker.session import Session
from connectors.worker.settings import WINDOW, TooManyBadError, WorkerSettings

__all__ = ["LoopSettings", "TooManyBadError", "UnfitTopicsError", "Worker", "WorkerSettings"]


class Worker:
    """Works on the partitions that its group gives it, until it is told to stop.

    Parameters
    ----------
    topics
        Where it works.
    loops
        What the loops are made of.
    settings
        How it works.
    state
        Directory for snapshots; None to go without, and read the topics from the start instead.
    clock
        Tells the time, in seconds; timers follow it.

    """

    # _state   where snapshots are kept; given up for good when the disk fails.
    # _recent  of the last inputs, which could not be used.

    def __init__(
        self,
        topics: Topics,
        loops: LoopSettings,
        settings: WorkerSettings,
        *,
        state: StateDirectory | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._topics = topics
        self._loops = loops
        self._settings = settings
        self._state = state
        self._clock = clock
        self._recent: deque[bool] = deque(maxlen=WINDOW)

    def run(self, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Work until `should_stop` says so; then the batch at hand is finished first.

        Raises
        ------
        FencedError
            If another worker with the same instance name has taken over.
        LinkError
            If the broker is gone, or a transaction failed. Nothing was lost; start again.
        TooManyBadError
            If too many inputs could not be used.
        UnfitTopicsError
            If there is one learner for several partitions, or the topics hold what another
            configuration has learned.

        """
        self._check()
        while True:
            try:
                self._work(should_stop)
                return
            except StateError as error:
                if self._state is None:
                    raise
                # What waited on the disk is gone with it; the topics have everything.
                say(logging.WARNING, "state-lost", reason=str(error), consequence="goes on without")
                self._state = None

    def _check(self) -> None:
        n_partitions = self._topics.n_partitions()
        if not self._loops.keyed and n_partitions != 1:
            raise UnfitTopicsError(
                f"one learner for all keys needs one partition, got {n_partitions}; "
                "make topics with one, or give every key a learner of its own (worker.keyed)"
            )

    def _work(self, should_stop: Callable[[], bool]) -> None:
        settings = self._settings
        link = self._topics.link(
            group=settings.group, instance=settings.instance, max_records=settings.batch
        )
        session = Session(
            link,
            self._loops,
            settings,
            self._state,
            self._clock,
            self._recent,
            self._topics.names(),
        )
        is_stopped = False
        try:
            while not should_stop():
                session.turn()
            session.save_all()
            is_stopped = True
        finally:
            session.close(leave=is_stopped and settings.leave)
