"""One learner and one loop per key, or one of each for all keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from streamgp.base import Budget
from streamgp.common.budget_account import SharedBudget, fingerprint_with
from streamgp.common.environment import environment, warn_if_different
from streamgp.common.validation import check_flag, check_whole
from streamgp.interactive.deadlines import DeadlineQueue
from streamgp.interactive.learner import FoundDrift, SkepticalLearner
from streamgp.interactive.loop import InteractiveLoop
from streamgp.interactive.loop_cache import (
    CloneableLearner,
    LoopCache,
    LoopStore,
    MemoryStore,
)
from streamgp.interactive.messages import (
    Answer,
    Event,
    LabelledExample,
    Message,
    Rejected,
    Retraction,
    Stage,
)
from streamgp.interactive.people import DEFAULT_PEOPLE, LoopRules, People
from streamgp.interactive.retract import Relearned
from streamgp.interactive.rollback import reason_of, stage_of
from streamgp.interactive.state.restartable_loop import RestartableLoop
from streamgp.interactive.state.serialize import resumable
from streamgp.interactive.state.snapshot import INCONSISTENT, Snapshot, SnapshotError
from streamgp.interactive.validation import (
    check_now,
    flaw_of_answer,
    flaw_of_event,
    flaw_of_keeping,
    rejected,
)

# --- Pending changes of the loops of all keys.


class KeyedChanges:
    """Changed parts of loops; of each part the newest value, None if it is gone.

    Examples
    --------
    >>> from streamgp import InteractiveLoop, isgp
    >>> changes, loop = KeyedChanges(), InteractiveLoop(isgp(seed=1))
    >>> changes.note("ann", loop)
    >>> changes.forget("bob", ["head"])
    >>> list(changes.take({"ann": loop}))
    [('bob', {'head': None})]

    """

    # _touched  keys of loops held ready that have changed
    # _parts    what was collected before a loop was evicted or forgotten
    __slots__ = ("_parts", "_touched")

    def __init__(self) -> None:
        self._touched: dict[str | None, None] = {}
        self._parts: dict[str | None, dict[str, Any]] = {}

    def note(self, key: str | None, loop: RestartableLoop) -> None:
        """Record that a loop may have changed."""
        if loop.has_changed:
            self._touched[key] = None

    def collect(self, key: str | None, loop: InteractiveLoop) -> None:
        """Collect the changes of a loop before it is evicted."""
        if loop.has_changed:
            # Computed before anything of this key is replaced, as it may fail.
            parts = loop.changes()
            self._parts.setdefault(key, {}).update(parts)
        self._touched.pop(key, None)

    def forget(self, key: str | None, names: Iterable[str]) -> None:
        """Mark all parts of a key as gone."""
        self._touched.pop(key, None)
        self._parts.setdefault(key, {}).update(dict.fromkeys(names))

    def drop(self, key: str | None) -> None:
        """Drop a key that no longer exists and was never published."""
        self._touched.pop(key, None)

    def __bool__(self) -> bool:
        return bool(self._touched or self._parts)

    def take(
        self, ready: Mapping[str | None, InteractiveLoop]
    ) -> Iterator[tuple[str | None, dict[str, Any]]]:
        """Yield what has changed since the last call, key after key."""
        for key in dict.fromkeys([*self._parts, *self._touched]):
            if key in self._touched:
                self.collect(key, ready[key])
            if key in self._parts:
                yield key, self._parts.pop(key)


_KIND, _KIND_OF_ONE = "loops by key", "one loop for all keys"
# Number of loops waiting since a restart that are made at once only to forget events: after a long
# stop all of them may be due, and inputs would have to wait. The others catch up later.
_SILENT_AT_ONCE = 100
BUDGET = "budget"
"""Name of the part with the state of the total budget."""


class KeyedLoops:
    """One interactive loop per key, each around its own clone of the model.

    Has the methods of `InteractiveLoop` and passes every input to the loop of its key; ids need to
    be unique only within a key. The messages and the learning of one key do not depend on the
    others. All have the seed of the model, and draws belong to event ids: if keys number their
    events alike, their draws are the same.

    With `max_keys`, the least recently used loops are evicted as snapshots, and restored with their
    next input as if they had never been away. Call `on_time` before every input, as
    `connectors.run` does: `next_deadline` does not announce what an evicted loop has to forget
    meanwhile; the loop catches up when it is restored.

    After `restore` and `take_over` the learner of a key is made with its first input or deadline. A
    `SnapshotError` then says that none can be made from what was kept. With one loop for all keys
    it is made at once.

    Parameters
    ----------
    model
        Cloned for every key; itself never taught.
    keyed
        Whether every key has a loop of its own. If not, all keys share one learner, and event ids
        are unique among all of them: one loop, that of the key None, takes every input, whatever
        its key, and no key can be forgotten.
    expires_after_s
        As in `InteractiveLoop`.
    answer_horizon_s
        As in `InteractiveLoop`.
    open_at_most
        As in `InteractiveLoop`, for each loop.
    people
        As in `InteractiveLoop`.
    max_keys
        Number of loops to hold ready in memory; None for all.
    store
        Store of the others, such as `connectors.SqliteStore`; None for snapshots in memory.
    keep_changes
        Whether `changes` is going to be called now and then; keeping changes takes memory.
    total_budget
        Budget for the label requests of all keys together, in addition to what the budget of the
        model allows each. It is copied. What one key is asked then depends on the others.

    Attributes
    ----------
    loops
        The loops held ready, by key, in the order in which the keys appeared; with `max_keys` the
        least recently used first. Read only.
    rules
        The arguments of each loop besides its model.

    Examples
    --------
    >>> from streamgp import isgp
    >>> from streamgp.interactive import Event, KeyedLoops
    >>> loops = KeyedLoops(isgp(seed=1), max_keys=1)
    >>> for n, key in enumerate(["ann", "bob", "ann"]):
    ...     event = Event(event_id=str(n), key=key, x={"wap1": 1.0}, occurred_at=0.0, y="hall")
    ...     prediction, example = loops.on_event(event, now=0.0)
    ...     print(example.key, example.sequence, list(loops.loops), loops.n_keys)
    ann 1 ['ann'] 1
    bob 1 ['bob'] 2
    ann 2 ['ann'] 2
    >>> loops = KeyedLoops(isgp(seed=1), keyed=False)
    >>> for n, key in enumerate(["ann", "bob"]):
    ...     event = Event(event_id=str(n), key=key, x={"wap1": 1.0}, occurred_at=0.0, y="hall")
    ...     prediction, example = loops.on_event(event, now=0.0)
    ...     print(example.key, example.sequence, list(loops.loops))
    ann 1 [None]
    bob 2 [None]

    """

    # _cache      the loop of each key, ready or in the store.
    # _deadlines  next deadline of each loop that has one: updated after every input to that loop,
    #             so that no event has to check other keys. A loop in the store is in it only while
    #             one of its requests waits; it forgets whatever else it must when it comes back.
    # _changes    what `changes` is going to return, None if changes are not collected
    # _shared_budget  the copy of `total_budget`, which counts
    # _last       key and loop of the last input, and whether it has created that loop

    def __init__(
        self,
        model: CloneableLearner,
        *,
        keyed: bool = True,
        expires_after_s: float | None = None,
        answer_horizon_s: float | None = None,
        open_at_most: int | None = None,
        people: People = DEFAULT_PEOPLE,
        max_keys: int | None = None,
        store: LoopStore | None = None,
        keep_changes: bool = False,
        total_budget: Budget | None = None,
    ) -> None:
        check_flag("keyed", keyed)
        check_flag("keep_changes", keep_changes)
        self.rules = LoopRules(
            expires_after_s=expires_after_s,
            answer_horizon_s=answer_horizon_s,
            open_at_most=open_at_most,
            people=people,
        )
        is_one = isinstance(model, SkepticalLearner) and hasattr(model, "clone")
        if isinstance(model, type) or not is_one:
            raise TypeError(
                "model must be a skeptical learner that can be cloned, such as "
                f"SkepticalClassifier(...), got {model!r}"
            )
        if not keyed and not (max_keys is None and total_budget is None):
            raise ValueError(
                "one loop for all keys takes neither max_keys nor total_budget; leave them out, or "
                "give the model a budget"
            )
        if max_keys is not None:
            check_whole("max_keys", max_keys, 1)
        elif store is not None:
            raise ValueError("a store is of use with max_keys only; give both or neither")
        self._is_kept = max_keys is not None or keep_changes
        if self._is_kept:
            resumable(model).state()  # refuses what could not be kept later
        self.model = model
        self.keyed = keyed
        self.max_keys = max_keys
        self.total_budget = total_budget
        self._shared_budget = None if total_budget is None else SharedBudget(total_budget)
        self._cache = LoopCache(
            model,
            self.rules,
            max_keys=max_keys,
            store=MemoryStore() if store is None else store,
            shared_budget=self._shared_budget,
            is_published=keep_changes,
        )
        self.loops: Mapping[str | None, InteractiveLoop] = self._cache.ready
        self._deadlines: DeadlineQueue[str | None] = DeadlineQueue()
        self._changes = KeyedChanges() if keep_changes else None
        self._last: tuple[str | None, InteractiveLoop, bool] | None = None
        if not keyed:
            self._cache.add(None, self._cache.new())

    @property
    def n_keys(self) -> int:
        """Number of keys that have a loop, including those in the store."""
        return self._cache.n_keys

    def on_event(
        self,
        event: Event,
        now: float,
        *,
        written_at: float | None = None,
        is_checked: bool = False,
    ) -> list[Message]:
        """Pass an event to the loop of its key, which is made if the key is new."""
        if not isinstance(event, Event):
            raise TypeError(f"on_event takes an Event, got {event!r}")
        check_now(now)
        self._last = None
        flaw = flaw_of_keeping(event.x) if self._is_kept and not is_checked else None
        if flaw is not None:
            return [rejected(event.event_id, event.key, "malformed", flaw, now)]
        loop = self._loop(event.key)
        is_new = loop is None
        if loop is None:
            flaw = flaw_of_event(event, is_checked=is_checked)  # before a learner is made for it
            if flaw is not None:
                return [rejected(event.event_id, event.key, "malformed", flaw, now)]
            loop = self._cache.new()
        messages = loop.on_event(event, now, written_at=written_at, is_checked=is_checked)
        if is_new:
            if isinstance(messages[0], Rejected):
                return messages  # garbage under a new key leaves no learner behind
            self._cache.add(event.key, loop)
        self._watch(event.key, loop, is_new=is_new)
        return messages

    def on_answer(
        self,
        answer: Answer,
        now: float,
        *,
        written_at: float | None = None,
        is_checked: bool = False,
    ) -> list[Message]:
        """Pass an answer to the loop of its key."""
        if not isinstance(answer, Answer):
            raise TypeError(f"on_answer takes an Answer, got {answer!r}")
        check_now(now)
        self._last = None
        loop = self._loop(answer.key)
        if loop is None:
            flaw = flaw_of_answer(answer, is_checked=is_checked)
            if flaw is not None:
                return [rejected(answer.answer_id, answer.key, "malformed", flaw, now)]
            return [rejected(answer.answer_id, answer.key, "unknown", _no_key(answer.key), now)]
        messages = loop.on_answer(answer, now, written_at=written_at, is_checked=is_checked)
        self._watch(answer.key, loop)
        return messages

    def on_time(self, now: float) -> list[Message]:
        """End what is due before `now`, key after key, starting with the earliest deadline."""
        check_now(now)
        self._last = None
        messages: list[Message] = []
        silent: list[tuple[str | None, float]] = []
        while (deadline := self._deadlines.first()) is not None and deadline < now:
            key = self._deadlines.pop()
            if self._cache.is_silent(key):
                silent.append((key, deadline))
                if len(silent) > _SILENT_AT_ONCE:
                    continue
            loop = self._cache.get(key)
            assert loop is not None  # a key with a deadline has a loop
            messages += loop.on_time(now)
            self._update(key, loop)
        for key, at in silent[_SILENT_AT_ONCE:]:
            self._deadlines.set(key, at)
        self._cache.note_time(now)
        return messages

    def on_cancel(
        self,
        request_id: str,
        now: float,
        *,
        key: str | None = None,
        why: str = "cancelled by the caller",
    ) -> list[Message]:
        """Take a question of one key back."""
        check_now(now)
        self._last = None
        loop = self._loop(key)
        if loop is None:
            return [rejected(request_id, key, "unknown", _no_key(key), now)]
        messages = loop.on_cancel(request_id, now, key=key, why=why)
        self._watch(key, loop)
        return messages

    def withdraw(
        self, key: str | None, event_id: str, now: float, *, revision: int | None = None
    ) -> list[Message]:
        """Retract an example of one key whose line was deleted from the consensus log."""
        check_now(now)
        self._last = None
        loop = self._loop(key)
        if loop is None:
            return []
        messages = loop.withdraw(event_id, now, revision=revision, key=key)
        self._watch(key, loop)
        return messages

    def has_replaced(self, key: str | None, event_id: str, revision: int) -> bool:
        """Whether a later line of a key gives an event its label than that of a revision."""
        loop = self._loop(key)
        return loop is not None and loop.has_replaced(event_id, revision)

    def lines(self, key: str | None) -> list[LabelledExample] | None:
        """Return the lines on which a key's labels rest; see `InteractiveLoop.lines`."""
        loop = self._loop(key)
        return None if loop is None else loop.lines()

    def retract(
        self,
        annotator: str,
        log: Iterable[LabelledExample],
        now: float,
        *,
        since: float | None = None,
    ) -> dict[str | None, Relearned]:
        """Retract every label of one annotator, for all keys; see `InteractiveLoop.retract`.

        `log` holds the lines of all keys. The result has an entry for each key from which something
        was retracted. If one fails, those before it stay done.
        """
        check_now(now)
        self._last = None
        lines: dict[str | None, list[LabelledExample]] = {}
        for line in log:
            lines.setdefault(self._home(line.key), []).append(line)
        found = {}
        for key, of_key in lines.items():
            loop = self._loop(key)
            if loop is None:
                raise ValueError(f"log must be of keys that were seen, got {key!r}")
            relearned = loop.retract(annotator, of_key, now, since=since)
            if relearned.messages or relearned.retraction is not None:
                found[key] = relearned
            self._update(key, loop)
        return found

    def reinstate(
        self, key: str | None, retraction: Retraction, log: Iterable[LabelledExample], now: float
    ) -> Relearned:
        """Undo a retraction of one key, with the key's lines; see `InteractiveLoop.reinstate`."""
        self._last = None
        loop = self._loop(key)
        if loop is None:
            raise ValueError(f"key must be one that was seen, got {key!r}")
        relearned = loop.reinstate(retraction, log, now)
        self._update(self._home(key), loop)
        return relearned

    def retract_or_reject(
        self,
        key: str | None,
        annotator: str,
        log: Iterable[LabelledExample],
        now: float,
        *,
        subject: str,
        since: float | None = None,
        undone: Retraction | None = None,
    ) -> Relearned | Rejected:
        """Retract labels of one key, or reinstate them, as an input requests.

        Parameters
        ----------
        key, annotator, log, now, since
            As in `InteractiveLoop.retract`.
        subject
            Name of the input in a rejection.
        undone
            The retraction to undo, as in `reinstate`; None to retract labels.

        Returns
        -------
        The result; or a rejection, after which the loop is as before.

        """
        check_now(now)
        self._last = None
        loop = self._loop(key)
        if loop is None:
            return rejected(subject, key, "unknown", _no_key(key), now)
        try:
            if undone is not None:
                return loop.reinstate(undone, log, now)
            return loop.retract(annotator, log, now, since=since)
        except MemoryError:
            raise
        except Exception as error:  # of a user-defined learner it may be any
            return rejected(subject, key, "failed", reason_of(error), now, stage_of(error))
        finally:
            self._update(self._home(key), loop)

    def reject_last(self, error: Exception, stage: Stage | None = None) -> list[Message] | None:
        """Undo the last input; see `InteractiveLoop.reject_last`."""
        if self._last is None:
            return None
        (key, loop, is_new), self._last = self._last, None
        messages = loop.reject_last(error, stage)
        if messages is not None and is_new:
            self._deadlines.clear(key)
            self._cache.forget(key)
            if self._changes is not None:
                self._changes.drop(key)
        elif messages is not None:
            self._update(key, loop)
        return messages

    def next_deadline(self) -> float | None:
        """Return the earliest time after which `on_time` has something to do, or None."""
        return self._deadlines.first()

    def knows(self, key: str | None, event_id: str | None = None) -> bool:
        """Whether a key has a loop and, if an event is named, this loop remembers the event.

        Examples
        --------
        >>> from streamgp import isgp
        >>> from streamgp.interactive import Event
        >>> loops = KeyedLoops(isgp(seed=1))
        >>> messages = loops.on_event(Event(event_id="1", key="ann", x={}, occurred_at=0.0), 0.0)
        >>> loops.knows("ann"), loops.knows("ann", "1"), loops.knows("ann", "2"), loops.knows("bob")
        (True, True, False, False)

        """
        loop = self._cache.look_up(self._home(key))
        return loop is not None and (event_id is None or loop.knows(event_id))

    def learner(self, key: str | None) -> SkepticalLearner | None:
        """Return the learner of a key, for reading only; None if there is no such key."""
        loop = self._cache.look_up(self._home(key))
        return None if loop is None else loop.model

    def new_drift(self, key: str | None) -> FoundDrift | None:
        """Return the concept drift found since the last call for a key; see `InteractiveLoop`."""
        loop = self.loops.get(self._home(key))
        return None if loop is None else loop.new_drift()

    def open_requests(self, key: str | None) -> list[str]:
        """Return the ids of a key's requests that wait for an answer."""
        loop = self._cache.look_up(self._home(key))
        return [] if loop is None else loop.open_requests()

    def open_events(self) -> Iterator[tuple[str | None, str, float]]:
        """Yield key, id and event time of each request that waits.

        Requests of loops in the store are left out.
        """
        for key, loop in self._cache.held.items():
            for request_id, at in loop.open_events():
                yield key, request_id, at

    def quarantined(self) -> Iterator[tuple[str | None, str]]:
        """Yield key and name of each annotator in quarantine, for loops in memory."""
        for key, loop in self._cache.held.items():
            for name in loop.quarantined:
                yield key, name

    def forget(self, key: str | None) -> bool:
        """Forget a key with all that it said and learned, for good; False if it does not exist."""
        if not self.keyed:  # what one key has taught cannot be told apart from the others
            return False
        self._last = None
        if self._changes is not None:
            loop = self._cache.look_up(key)
            if loop is not None:
                self._changes.forget(key, loop.part_names())
        self._deadlines.clear(key)
        return self._cache.forget(key)

    def changes(self) -> dict[str | None, dict[str, Any]]:
        """Return what has changed since the last call, by key; needs `keep_changes`.

        Returns
        -------
        What `InteractiveLoop.changes` returns, for every key with an input or a deadline that
        changed something, wherever its loop is by now. All parts of a forgotten key are None. The
        total budget, if there is one and it has changed, is the part `budget` of the key None.

        Examples
        --------
        >>> from streamgp import isgp
        >>> from streamgp.interactive import Event
        >>> loops = KeyedLoops(isgp(seed=1), max_keys=1, keep_changes=True)
        >>> for key in ("ann", "bob"):
        ...     event = Event(event_id="1", key=key, x={"wap1": 1.0}, occurred_at=0.0)
        ...     messages = loops.on_event(event, now=0.0)
        >>> {key: list(parts) for key, parts in loops.changes().items()}
        {'ann': ['head'], 'bob': ['head']}
        >>> loops.forget("ann"), loops.changes()
        (True, {'ann': {'head': None}})

        """
        found: dict[str | None, dict[str, Any]] = {}
        for key, parts in self.changes_by_key():
            found.setdefault(key, {}).update(parts)
        return found

    def changes_by_key(self) -> Iterator[tuple[str | None, dict[str, Any]]]:
        """Yield what `changes` returns, key after key; the total budget comes last.

        For a caller that writes it at once: what a key has published is then still in the
        processor's caches.
        """
        if self._changes is None:
            raise ValueError("changes are not kept; make the loops with keep_changes=True")
        self._last = None  # what is published can no longer be undone
        yield from self._changes.take(self._cache.ready)
        change = None if self._shared_budget is None else self._shared_budget.change()
        if change is not None:
            yield None, {BUDGET: change}

    @property
    def has_changed(self) -> bool:
        """Whether `changes` has something to return."""
        budget = self._shared_budget
        return bool(self._changes) or (budget is not None and budget.has_changed)

    def take_over_budget(self, state: Mapping[str, Any]) -> None:
        """Restore the total budget from what `changes` returned elsewhere.

        Raises
        ------
        SnapshotError
            If there is no such budget here, or it is of another kind.

        """
        try:
            if self._shared_budget is None:
                raise ValueError("there is no total budget")
            self._shared_budget.load_state(dict(state))
        except INCONSISTENT as error:
            raise SnapshotError(f"published budget cannot be taken up: {error!s:.300}") from error

    def take_over(
        self, key: str | None, parts: Mapping[str, Any], log: Iterable[LabelledExample]
    ) -> None:
        """Take over what a key said and learned elsewhere, before its first input here.

        That does not count as a change. Anything older than what the key has changes nothing.

        Parameters
        ----------
        key
            The key, known or not.
        parts
            What `changes` returned there: the newest value of each part. For a known key, what was
            returned since the snapshot that it comes from.
        log
            The consensus log of the key, or for a known key its lines since, in any order.

        Raises
        ------
        SnapshotError
            If the parts do not fit together, or do not fit what the key has here. In this case what
            the key has is left unchanged.

        Examples
        --------
        >>> from streamgp import isgp
        >>> from streamgp.interactive import Event
        >>> here, there = (KeyedLoops(isgp(seed=1), keep_changes=True) for _ in range(2))
        >>> event = Event(event_id="1", key="ann", x={"wap1": 1.0}, occurred_at=0.0, y="hall")
        >>> prediction, line = there.on_event(event, now=0.0)
        >>> for key, parts in there.changes().items():
        ...     here.take_over(key, parts, [line])
        >>> here.loops["ann"].model.n_learned, here.changes()
        (1, {})

        """
        if not self.keyed and key is not None:
            raise ValueError(f"one loop for all keys has nothing of its own for a key, got {key!r}")
        if not parts:
            return
        self._last = None
        loop = self._cache.take_over(key, parts, log)
        if loop is not None:
            self._update(key, loop)
            if not self.keyed:  # there are no other loops to wait for
                self._cache.get(key)
            return
        self._deadlines.clear(key)
        if not self.keyed:
            self._cache.add(key, self._cache.new())

    def prepare_snapshot(self, is_enough: Callable[[], bool]) -> int:
        """Do part of the work of the next `snapshot`, so that it takes less time.

        Loops are taken from `loops` afresh afterwards: one that a caller has held on to must not
        get any input before that snapshot.

        Parameters
        ----------
        is_enough
            Called before each loop; if it returns True, the others are left for later.

        Returns
        -------
        How many loops are left; those that get an input will have to be prepared again.

        """
        return self._cache.prepare(is_enough)

    def snapshot(self, *, with_environment: bool = True) -> bytes:
        """Return everything that the loops must not forget; see `InteractiveLoop.snapshot`.

        What waits in a store stays there, and the snapshot contains its mark: a store in memory is
        saved with it, one on a disk must be passed to `restore`.
        """
        model = resumable(self.model)
        state, blobs = self._cache.save()
        body = {
            **self.rules.plain(),
            "residents": state,
            "deadlines": self._deadlines.items(),
        }
        if self._shared_budget is not None:
            body["total_budget"] = self._shared_budget.state()
        return Snapshot(
            kind=_KIND if self.keyed else _KIND_OF_ONE,
            fingerprint=fingerprint_with(model, self.total_budget),
            body=body,
            blobs=blobs,
            environment=environment() if with_environment else None,
        ).to_bytes()

    @classmethod
    def restore(
        cls,
        data: bytes,
        model: CloneableLearner,
        *,
        keyed: bool = True,
        max_keys: int | None = None,
        store: LoopStore | None = None,
        keep_changes: bool = False,
        total_budget: Budget | None = None,
    ) -> KeyedLoops:
        """Return the loops that a snapshot was taken from, with settings such as `expires_after_s`.

        Parameters
        ----------
        data
            What `snapshot` returned.
        model
            A model of the same configuration; cloned for every key.
        keyed
            As before.
        max_keys
            Number of loops to hold ready in memory.
        store
            Store of the others, None if it was in memory. It is reset to its state at the time of
            the snapshot.
        keep_changes
            Whether `changes` is going to be called. It will not return what it could have returned
            before the snapshot.
        total_budget
            As before.

        Warns
        -----
        DifferentEnvironmentWarning
            If the snapshot was taken in another numerical environment.

        Raises
        ------
        SnapshotError
            If the bytes are not a snapshot of keyed loops, or damaged, or taken with another
            configuration or another store.

        """
        resumable(model)
        snapshot = Snapshot.from_bytes(data)
        snapshot.check(_KIND if keyed else _KIND_OF_ONE, fingerprint_with(model, total_budget))
        warn_if_different(snapshot.environment)
        body = snapshot.body
        try:
            loops = cls(
                model,
                keyed=keyed,
                **LoopRules.of(body).arguments,
                max_keys=max_keys,
                store=store,
                keep_changes=keep_changes,
                total_budget=total_budget,
            )
            if loops._shared_budget is not None:
                loops._shared_budget.load_state(body["total_budget"])
            loops._cache.load(body["residents"], snapshot.blobs)
            for key, at in body["deadlines"]:
                loops._deadlines.set(key, at)
        except INCONSISTENT as error:
            raise SnapshotError(f"snapshot cannot be restored: {error!s:.300}") from error
        loops._evict()
        if not keyed:  # there are no other loops to wait for
            loops._cache.get(None)
        return loops

    def _home(self, key: str | None) -> str | None:
        """Return the key of the loop that takes the inputs of a key."""
        return key if self.keyed else None

    def _loop(self, key: str | None) -> InteractiveLoop | None:
        home = self._home(key)
        return self._cache.get(home) if home is None or isinstance(home, str) else None

    def _watch(self, key: str | None, loop: InteractiveLoop, *, is_new: bool = False) -> None:
        """Record an input to the loop of a key as the last one that can be undone."""
        home = self._home(key)
        self._update(home, loop)
        self._last = home, loop, is_new

    def _update(self, key: str | None, loop: RestartableLoop) -> None:
        """Update what is known of a loop."""
        if self._changes is not None:
            self._changes.note(key, loop)
        deadline = loop.next_deadline()
        if deadline is None:
            self._deadlines.clear(key)
        elif deadline != self._deadlines.get(key):
            self._deadlines.set(key, deadline)
        if self.max_keys is not None:
            self._evict()

    def _evict(self) -> None:
        while (surplus := self._cache.surplus()) is not None:
            key, loop = surplus
            if self._changes is not None and isinstance(loop, InteractiveLoop):
                self._changes.collect(key, loop)
            self._cache.evict(key)
            if not loop.n_open:
                self._deadlines.clear(key)


def _no_key(key: str | None) -> str:
    return f"no event of key {key!r} was ever seen"
