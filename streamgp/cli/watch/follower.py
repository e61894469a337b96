"""Reading along with the workers, for `streamgp watch`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from connectors.records import Reader
from streamgp.cli.deployment.inputs import InputProgress
from streamgp.cli.deployment.visiting import Deployment
from streamgp.cli.watch.screen import Around, picture, text
from streamgp.cli.watch.watching import FLOW, HISTORY, Watching

if TYPE_CHECKING:
    from rich.console import RenderableType

_TURN_S = 60.0


class Follower:
    """Reads the topics of a deployment into a `Watching`, and shows it.

    Parameters
    ----------
    deployment
        What is watched.
    from_start
        Whether everything that the topics hold is counted.
    clock
        Tells the time, POSIX seconds.

    Attributes
    ----------
    watching
        What was read.

    """

    # _history  what is read from its start
    # _flow     what is read from its end; None if everything is read from its start
    # _is_old   whether the history was there before the watching began
    # _turned   when the desk was last told to forget what is settled
    def __init__(
        self,
        deployment: Deployment,
        *,
        from_start: bool,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._deployment = deployment
        self._clock = clock
        now = clock()
        config = deployment.config
        self.watching = Watching(
            keyed=config.worker.keyed,
            since=now,
            is_whole=from_start,
            answer_horizon_s=config.loop.answer_horizon_s,
            target=config.target,
        )
        topics = deployment.topics
        # The flow first: what comes while the history is opened is then in both or in the flow.
        self._flow: Reader | None = None if from_start else topics.reader(FLOW, from_end=True)
        self._history = topics.reader((*FLOW, *HISTORY) if from_start else HISTORY)
        self._is_old = not from_start
        self._turned = now
        names = deployment.config.topics.names()
        self._inputs = InputProgress(topics, names, deployment.group, clock=clock)

    @property
    def caught_up(self) -> bool:
        """Whether everything was read that was there when the watching began."""
        return self._history.caught_up

    def read_on(self, timeout_s: float) -> None:
        """Read what comes, for so many seconds at most if nothing does."""
        # One poll may reach beyond the end of what was there; that little does not matter.
        is_before = not self._history.caught_up
        self._is_old = self._is_old and is_before
        readers = [self._history] if self._flow is None else [self._history, self._flow]
        for reader in readers:
            is_history = reader is self._history
            records = reader.poll(timeout_s / len(readers))
            now = None if is_history and is_before else self._clock()
            for record in records:
                self.watching.take(record, is_old=self._is_old and is_history, now=now)
        now = self._clock()
        if now - self._turned >= _TURN_S:
            self._turned = now
            self.watching.desk.turn_over()

    def text(self) -> str:
        """Return what there is to see, as plain text."""
        return text(self.watching, self._around(), self._clock())

    def picture(self) -> RenderableType:
        """Return what there is to see, for a terminal."""
        return picture(self.watching, self._around(), self._clock())

    def close(self) -> None:
        """Let go of the topics."""
        self._history.close()
        if self._flow is not None:
            self._flow.close()

    def _around(self) -> Around:
        there, inputs = self._deployment, self._inputs
        inputs.look()
        return Around(
            url=there.url,
            group=there.group,
            n_workers=inputs.n_workers,
            lags={place: each.n_waiting for place, each in inputs.backlog.items()},
            troubles=inputs.troubles(),
        )
