"""One learner and one loop for all keys, with the methods of `KeyedLoops`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from streamgp.interactive.loop import InteractiveLoop
from streamgp.interactive.loop_cache import CloneableLearner
from streamgp.interactive.messages import Answer, Event, LabelledExample, Message, Stage
from streamgp.interactive.state.serialize import check_resumable
from streamgp.interactive.validation import check_now, flaw_of_keeping, rejected


class OneLoop:
    """An `InteractiveLoop` that can stand where `KeyedLoops` can.

    All keys talk to one learner, and event ids are unique among all of them. Its only key is None,
    whatever the keys of its events.

    Parameters
    ----------
    model
        Cloned; itself never taught.
    expires_after_s, answer_horizon_s
        As in `InteractiveLoop`.

    Attributes
    ----------
    loop
        The loop. To be read only.

    Examples
    --------
    >>> from streamgp import isgp
    >>> from streamgp.interactive import Event
    >>> loops = OneLoop(isgp(seed=1))
    >>> for n, key in enumerate(["ann", "bob"]):
    ...     event = Event(event_id=str(n), key=key, x={"wap1": 1.0}, occurred_at=0.0, y="hall")
    ...     prediction, line = loops.on_event(event, now=0.0)
    ...     print(line.key, line.sequence)
    ann 1
    bob 2
    >>> {key: list(parts) for key, parts in loops.changes().items()}
    {None: ['head']}

    """

    def __init__(
        self,
        model: CloneableLearner,
        *,
        expires_after_s: float | None = None,
        answer_horizon_s: float | None = None,
    ) -> None:
        check_resumable(model)
        model.state()  # type: ignore[attr-defined] # refuses what could not be kept later
        self.model = model
        self.loop = InteractiveLoop(
            model.clone(), expires_after_s=expires_after_s, answer_horizon_s=answer_horizon_s
        )

    def on_event(
        self, event: Event, now: float, *, written_at: float | None = None
    ) -> list[Message]:
        """Hand an event over."""
        if isinstance(event, Event):
            check_now(now)
            flaw = flaw_of_keeping(event.x)
            if flaw is not None:
                self.loop.keep_last()
                return [rejected(event.event_id, event.key, "malformed", flaw, now)]
        return self.loop.on_event(event, now, written_at=written_at)

    def on_answer(
        self, answer: Answer, now: float, *, written_at: float | None = None
    ) -> list[Message]:
        """Hand an answer over."""
        return self.loop.on_answer(answer, now, written_at=written_at)

    def on_time(self, now: float) -> list[Message]:
        """End what is due before `now`."""
        return self.loop.on_time(now)

    def on_cancel(
        self,
        request_id: str,
        now: float,
        *,
        key: str | None = None,
        why: str = "cancelled by the caller",
    ) -> list[Message]:
        """Take a question back."""
        return self.loop.on_cancel(request_id, now, key=key, why=why)

    def withdraw(
        self, key: str | None, event_id: str, now: float, *, revision: int | None = None
    ) -> list[Message]:
        """Take an example back that somebody has deleted from the consensus log."""
        return self.loop.withdraw(event_id, now, revision=revision, key=key)

    def reject_last(self, error: Exception, stage: Stage | None = None) -> list[Message] | None:
        """Undo the last input; see `InteractiveLoop.reject_last`."""
        return self.loop.reject_last(error, stage)

    def next_deadline(self) -> float | None:
        """Return the earliest moment after which `on_time` has something to do, or None."""
        return self.loop.next_deadline()

    def knows(self, key: str | None, event_id: str | None = None) -> bool:  # noqa: ARG002
        """Whether an event is remembered; the loop itself is always there, whatever the key."""
        return event_id is None or self.loop.knows(event_id)

    def open_requests(self, key: str | None) -> list[str]:
        """Return the ids of a key's requests that wait for an answer."""
        return self.loop.open_requests() if key is None else []

    def forget(self, key: str | None) -> bool:  # noqa: ARG002 - as in KeyedLoops
        """Return False: what one key has taught cannot be told from what the others have."""
        return False

    def changes(self) -> dict[str | None, dict[str, Any]]:
        """Return what has changed since the last call, all of it under the key None."""
        parts = self.loop.changes()
        return {None: parts} if parts else {}

    def take_over(
        self, key: str | None, parts: Mapping[str, Any], log: Iterable[LabelledExample]
    ) -> None:
        """Take over what was said and learned elsewhere; see `KeyedLoops.take_over`."""
        if key is not None:
            raise ValueError(f"one loop for all keys has nothing of its own for a key, got {key!r}")
        loop = self.loop.caught_up(parts, log, self.model.clone())
        if loop is None:
            loop = InteractiveLoop(
                self.model.clone(),
                expires_after_s=self.loop.expires_after_s,
                answer_horizon_s=self.loop.answer_horizon_s,
            )
        self.loop = loop

    def snapshot(self, *, with_environment: bool = True) -> bytes:
        """Return everything that the loop must not forget; see `InteractiveLoop.snapshot`."""
        return self.loop.snapshot(with_environment=with_environment)

    @classmethod
    def restore(cls, data: bytes, model: CloneableLearner) -> OneLoop:
        """Return the loop that a snapshot was taken from; see `InteractiveLoop.restore`."""
        loop = InteractiveLoop.restore(data, model.clone())
        again = cls(
            model, expires_after_s=loop.expires_after_s, answer_horizon_s=loop.answer_horizon_s
        )
        again.loop = loop
        return again
