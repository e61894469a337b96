"""Restart of a loop from a snapshot or from its parts, with or without its learner.

The inputs are in `loop.py`.

"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from streamgp.base import Example, State
from streamgp.common.environment import environment, warn_if_different
from streamgp.common.signatures import narrowed
from streamgp.interactive.event_store import EventStore
from streamgp.interactive.learner import HoldsInPart, SkepticalLearner
from streamgp.interactive.messages import LabelledExample
from streamgp.interactive.moderator import SavedModerator
from streamgp.interactive.people import LoopRules
from streamgp.interactive.rollback import SavedModel
from streamgp.interactive.state.serialize import (
    HEAD,
    KIND,
    all_parts,
    changed_parts,
    load,
    part_names,
    resumable,
    save,
    segment_parts,
    take_up,
)
from streamgp.interactive.state.snapshot import INCONSISTENT, Snapshot, SnapshotError


class StoredModel:
    """State and examples of a skeptical learner, without the learner.

    Parameters
    ----------
    model
        A learner of the same configuration; it is not changed.
    fingerprint
        Fingerprint of the learner.

    """

    def __init__(self, model: SkepticalLearner, fingerprint: str) -> None:
        self._model = model
        self._fingerprint = fingerprint
        self._state: State = {}
        self._examples: list[Example] = []

    @property
    def n_learned(self) -> int:
        """Number of examples the learner holds."""
        return len(self._examples)

    def fingerprint(self) -> str:
        """Return the fingerprint of the learner."""
        return self._fingerprint

    def examples(self) -> list[Example]:
        """Return the examples of the learner."""
        return list(self._examples)

    def state(self) -> State:
        """Return the state of the learner."""
        return self._state

    def load_state(self, state: State, examples: Sequence[Example]) -> None:
        """Keep a state and examples."""
        model = narrowed(self._model, HoldsInPart)
        self._state = state
        self._examples = list(examples) if model is None else model.as_held(examples)


class RestartableLoop:
    """A loop without its inputs, which `InteractiveLoop` adds: what it remembers, and its restart.

    Around a `StoredModel` it is kept after a restart until an input needs the learner. Learning a
    key's examples again takes as long as a hundred of its events, and most keys of a partition are
    silent in the minute after a restart.

    Parameters
    ----------
    model
        The learner, or its state and examples.
    arguments
        Those of `LoopRules`.

    Examples
    --------
    >>> from streamgp import InteractiveLoop, isgp
    >>> from streamgp.interactive import Event
    >>> loop = InteractiveLoop(isgp(seed=1), answer_horizon_s=60.0)
    >>> event = Event(event_id="e1", x={"wap1": -64.0}, occurred_at=5.0, y="kitchen")
    >>> messages = loop.on_event(event, now=5.0)
    >>> model = StoredModel(loop.model, loop.model.fingerprint())
    >>> stored = RestartableLoop.restore(loop.snapshot(), model)
    >>> stored.next_deadline(), stored.snapshot() == loop.snapshot()
    (65.0, True)

    """

    # rules       arguments besides the model
    # people      those of `rules`, which every input needs
    # _memory     conversation about each event within the horizon, and when that ends
    # _moderator  changes these records, teaches the model, and keeps the deadlines of requests
    # _fingerprint  that of the model, once needed or told: it never changes
    # _last       the last input, if it can still be undone
    _last: Any

    def __init__(self, model: Any, **arguments: Any) -> None:
        self.model: SkepticalLearner = model
        self.rules = LoopRules(**arguments)
        self.people = self.rules.people
        self._memory = EventStore(self.rules.answer_horizon_s)
        self._moderator = self._new_moderator()
        self._fingerprint: str | None = None
        self._last = None

    def _new_moderator(self) -> SavedModerator:
        return SavedModerator(self.model, self._memory)

    def snapshot(self, *, with_environment: bool = True) -> bytes:
        """Return everything that the loop and its model must not forget.

        A loop restored from it responds to every further input as this one would: bitwise in the
        same numerical environment, and elsewhere up to rounding. The snapshot of a model consists
        of its labelled examples and what else its decisions depend on; the examples are learned
        again when it is restored. Truths of events are not kept. Changes that `changes` has not
        returned yet are in the snapshot, but are not returned by the restored loop.

        Parameters
        ----------
        with_environment
            Whether to record the numerical environment. Without it, equal loops have equal
            snapshots on all machines, and `restore` has nothing to compare.

        Raises
        ------
        TypeError
            If the model cannot be saved.
        ValueError
            If a feature is neither a number nor a string.

        """
        return save(
            self._moderator,
            self.rules.plain(),
            self._fingerprint_of_model,
            environment() if with_environment else None,
        )

    @classmethod
    def restore(
        cls, data: bytes, model: SkepticalLearner, *, fingerprint: str | None = None
    ) -> Self:
        """Return the loop from a snapshot.

        Parameters
        ----------
        data
            What `snapshot` returned.
        model
            A model of the same configuration that has seen nothing; the loop takes it.
        fingerprint
            Fingerprint of the model, if known: it takes as long to compute as some events.

        Warns
        -----
        DifferentEnvironmentWarning
            If the snapshot was taken in another numerical environment.

        Raises
        ------
        SnapshotError
            If the bytes are not a snapshot of a loop, or damaged, or the model has another
            configuration.

        Examples
        --------
        >>> from streamgp import InteractiveLoop, isgp
        >>> from streamgp.interactive import Event
        >>> loop = InteractiveLoop(isgp(seed=1))
        >>> event = Event(event_id="e1", x={"wap1": -64.0}, occurred_at=0.0, y="kitchen")
        >>> messages = loop.on_event(event, now=0.0)
        >>> again = InteractiveLoop.restore(loop.snapshot(), isgp(seed=1))
        >>> again.model.n_learned
        1

        """
        saveable, snapshot = resumable(model), Snapshot.from_bytes(data)
        snapshot.check(KIND, saveable.fingerprint() if fingerprint is None else fingerprint)
        warn_if_different(snapshot.environment)
        try:
            loop = cls(model, **LoopRules.of(snapshot.body["spans"]).arguments)
            load(snapshot, loop._moderator)
        except INCONSISTENT as error:
            raise SnapshotError(f"snapshot cannot be restored: {error!s:.300}") from error
        loop.know_fingerprint(snapshot.fingerprint)
        return loop

    def know_fingerprint(self, fingerprint: str) -> None:
        """Set the fingerprint of the model, for a caller that knows it."""
        self._fingerprint = fingerprint

    @property
    def _fingerprint_of_model(self) -> str:
        if self._fingerprint is None:
            self._fingerprint = resumable(self.model).fingerprint()
        return self._fingerprint

    def begin_from(self, saved: SavedModel | None) -> SavedModel | None:
        """Start from a model that a loop around an equal one has saved; None to save it here.

        Returns
        -------
        What other loops may start from; None if the model cannot be saved.

        """
        journal = self._moderator.journal
        if saved is None:
            journal.begin()
        else:
            journal.saved = saved
        return journal.saved

    # --- what is pending

    def next_deadline(self) -> float | None:
        """Return the earliest time after which `on_time` has something to do, or None.

        Calling `on_time(t)` with any t past that time does it: at exactly that time an answer
        is still in time. Forgetting an event counts, though it may yield no message.
        """
        deadline, horizon = self._moderator.deadlines.first(), self._memory.horizons.first()
        if deadline is None or horizon is None:
            return horizon if deadline is None else deadline
        return min(deadline, horizon)

    def open_events(self) -> Iterator[tuple[str, float]]:
        """Yield the id and the event time of each request that waits."""
        for record in self._memory.open_ones():
            request = record.open_request
            if request is not None:
                yield request.request_id, record.event.occurred_at

    def has_replaced(self, event_id: str, revision: int) -> bool:
        """Whether a later line of the log gives an event its label than that of a revision."""
        return self._moderator.lines.has_replaced(event_id, revision)

    @property
    def quarantined(self) -> list[str]:
        """Annotators in quarantine, in the order named."""
        return list(self._moderator.quarantine.in_force(self.people))

    # --- published piece by piece

    @property
    def has_changed(self) -> bool:
        """Whether `changes` has something to return."""
        return self._memory.segments.has_changed

    def changes(self) -> dict[str, Any]:
        """Return what has changed since the last call, or since the loop was made or restored.

        Returns
        -------
        Named parts as plain JSON values; None for a part that is gone. `from_parts` restores the
        loop from the newest value of every part and the consensus log.

        Raises
        ------
        TypeError
            If the model cannot be saved.
        ValueError
            If a feature is neither a number nor a string.

        Examples
        --------
        >>> from streamgp import InteractiveLoop, isgp
        >>> from streamgp.interactive import Event
        >>> loop = InteractiveLoop(isgp(seed=1))
        >>> messages = [
        ...     loop.on_event(Event(event_id=name, x={"wap1": wap1}, occurred_at=0.0), now=0.0)
        ...     for name, wap1 in (("e1", -64.0), ("e2", -30.0))
        ... ]
        >>> list(loop.changes()), loop.changes()
        (['head'], {})
        >>> cancel = loop.on_cancel("e2/label", now=1.0)
        >>> [[plain[1], plain[5]] for plain in loop.changes()["head"]["recent"]]
        [['e1', 'asked'], ['e2', 'cancelled']]

        """
        self._last = None  # what is published can no longer be undone
        if not self.has_changed:
            return {}
        return changed_parts(self._moderator, self._fingerprint_of_model)

    def parts(self) -> dict[str, Any]:
        """Return all parts, as if everything had changed."""
        return all_parts(self._moderator, self._fingerprint_of_model)

    def part_names(self) -> list[str]:
        """Return the names of all parts that `changes` may have returned and that are not gone."""
        return part_names(self._moderator)

    @classmethod
    def from_parts(
        cls,
        parts: Mapping[str, Any],
        log: Iterable[LabelledExample],
        model: SkepticalLearner,
        **arguments: Any,
    ) -> Self:
        """Return the loop from its parts and a consensus log, bitwise equal.

        If lines of the log are missing, the labels recorded in the conversations count: a caller
        that deletes a line has to `withdraw` it as well.

        Parameters
        ----------
        parts
            The newest value of every part.
        log
            Every `LabelledExample` that the loop has returned, in any order, except the `taken`
            lines of each `Retraction`. Lines that are replaced by a later one of the same event and
            revision may be missing.
        model
            A model of the same configuration that has seen nothing; the loop takes it.
        arguments
            Those of `LoopRules`, as before.

        Raises
        ------
        SnapshotError
            If the parts do not fit together, or the model has another configuration.

        Examples
        --------
        >>> from streamgp import InteractiveLoop, isgp
        >>> from streamgp.interactive import Event
        >>> loop = InteractiveLoop(isgp(seed=1))
        >>> event = Event(event_id="e1", x={"wap1": -64.0}, occurred_at=0.0, y="kitchen")
        >>> prediction, line = loop.on_event(event, now=0.0)
        >>> again = InteractiveLoop.from_parts(loop.changes(), [line], isgp(seed=1))
        >>> again.snapshot() == loop.snapshot()
        True

        """
        return cls(model, **arguments)._taking_up(parts, log)

    def caught_up(
        self, parts: Mapping[str, Any], log: Iterable[LabelledExample], model: SkepticalLearner
    ) -> Self | None:
        """Return what this loop has become elsewhere in the meantime; it is not changed.

        Parameters
        ----------
        parts
            What was published since, the newest value of every part; None for a part that is gone.
        log
            Lines of the consensus log since; older ones are ignored.
        model
            A model of the same configuration that has seen nothing; the new loop takes it.

        Returns
        -------
        The new loop, this one if nothing was published, or None if the loop itself is gone.

        Raises
        ------
        SnapshotError
            If this loop and the parts do not fit together.

        """
        if not parts:
            return self
        if all(part is None for part in parts.values()) and HEAD in parts:
            return None
        lines = self._moderator.lines
        # Without any line so far, this is the whole log, and lines may be missing.
        known = lines.sequence, resumable(self.model).examples(), lines
        after = known if lines.sequence else None
        # What was never published is in the parts by now, or forgotten.
        parts = {**segment_parts(self._moderator), **parts}
        return type(self)(model, **self.rules.arguments)._taking_up(parts, log, after)

    # --- inside

    def _taking_up(
        self,
        parts: Mapping[str, Any],
        log: Iterable[LabelledExample],
        after: tuple[int, Sequence[Example], Iterable[LabelledExample]] | None = None,
    ) -> Self:
        resumable(self.model)  # otherwise it is misuse, and not bad state
        try:
            take_up(parts, log, self._moderator, after=after)
        except INCONSISTENT as error:
            raise SnapshotError(f"published state cannot be taken up: {error!s:.300}") from error
        return self
