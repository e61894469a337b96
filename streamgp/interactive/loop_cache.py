"""LRU cache of loops; evicted loops are stored as snapshots.

Deadlines and messages are handled by `keyed.py`; this module only loads and evicts loops, and
catches up on what they would have done in the meantime. After a restart every loop is a snapshot
until its key is needed, since making a loop means learning its examples again.

"""

from __future__ import annotations

import pickle
from base64 import b64decode, b64encode
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from struct import Struct
from typing import Any, Protocol, Self

from streamgp.base import State
from streamgp.common.budget_account import SharedBudget
from streamgp.interactive.learner import SkepticalLearner
from streamgp.interactive.loop import InteractiveLoop
from streamgp.interactive.messages import LabelledExample
from streamgp.interactive.people import LoopRules
from streamgp.interactive.rollback import SavedModel
from streamgp.interactive.state.restartable_loop import RestartableLoop, StoredModel
from streamgp.interactive.state.snapshot import INCONSISTENT

# --- Store of evicted loops.
#
# Only bytes are stored here. A store that outlives the process is `connectors.storage.sqlite`.


class LoopStore(Protocol):
    """Bytes by key, and marks: states of the store that it can be reset to."""

    def get(self, key: str | None) -> bytes | None:
        """Return what was last put under a key, or None."""

    def put(self, key: str | None, data: bytes) -> None:
        """Store bytes under a key, replacing what was there."""

    def discard(self, key: str | None) -> None:
        """Delete a key for good, if it is there."""

    def keys(self) -> Iterator[str | None]:
        """Return all keys."""

    def __len__(self) -> int:
        """Return the number of keys."""

    def mark(self) -> State:
        """Make durable what was put so far; return a plain JSON value that names this state."""

    def reset(self, mark: State) -> None:
        """Reset the store to one of the last two marks, whatever was put since."""


class MemoryStore(LoopStore):
    """A store within this process. Its marks contain everything in it.

    Examples
    --------
    >>> store = MemoryStore()
    >>> store.put("ann", b"1")
    >>> mark = store.mark()
    >>> store.put("ann", b"2")
    >>> store.reset(mark)
    >>> store.get("ann"), store.get("bob")
    (b'1', None)

    """

    def __init__(self) -> None:
        self._kept: dict[str | None, bytes] = {}

    def get(self, key: str | None) -> bytes | None:
        return self._kept.get(key)

    def put(self, key: str | None, data: bytes) -> None:
        self._kept[key] = data

    def discard(self, key: str | None) -> None:
        self._kept.pop(key, None)

    def keys(self) -> Iterator[str | None]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def mark(self) -> State:
        """Return everything stored."""
        return {"kept": [[key, b64encode(data).decode()] for key, data in self._kept.items()]}

    def reset(self, mark: State) -> None:
        """Restore what was stored at the mark."""
        self._kept = {key: b64decode(text) for key, text in mark["kept"]}


_WHEN = Struct("<Q")


class CloneableLearner(SkepticalLearner, Protocol):
    """A skeptical learner that can be cloned unlearned, as River's estimators can."""

    def clone(self) -> Self:
        """Return a fresh learner with the same parameters."""


def copier(model: CloneableLearner) -> Callable[[], CloneableLearner]:
    """Return a function that clones a model, by a faster way if that gives the same.

    River's `clone` reads signatures and copies parameters one by one, which takes longer than a
    first event. If two clones pickle to the same bytes, all clones are unpickled from these.

    Examples
    --------
    >>> from streamgp import isgp
    >>> model = isgp(seed=1)
    >>> copied = copier(model)
    >>> copied == model.clone, copied().state() == model.clone().state()
    (False, True)

    """
    try:
        data = pickle.dumps(model.clone())
        if data == pickle.dumps(model.clone()) == pickle.dumps(pickle.loads(data)):
            return partial(pickle.loads, data)  # unlike a lambda, it can be pickled itself
    except (pickle.PicklingError, *INCONSISTENT, RecursionError, NotImplementedError):
        pass  # a user-defined part that cannot be pickled
    return model.clone


@dataclass(frozen=True, slots=True)
class WaitingLoop:
    """A loop that has had no input since a restart, or since it was evicted.

    Parameters
    ----------
    data
        Its snapshot.
    when
        Number of times that had been told before it was taken.
    asked
        Id of each request that waits for an answer, and when its event occurred.
    quarantined
        Annotators in quarantine.

    """

    data: bytes
    when: int
    asked: Sequence[tuple[str, float]] = ()
    quarantined: Sequence[str] = ()

    @property
    def n_open(self) -> int:
        """Number of requests that wait for an answer."""
        return len(self.asked)

    def open_events(self) -> Iterator[tuple[str, float]]:
        """Yield the id of each waiting request, and when its event occurred."""
        return iter(self.asked)


class HeldLoops(Mapping[str | None, InteractiveLoop]):
    """The loops in memory, by key; a waiting loop is made when it is accessed."""

    # _held   the contents of the cache
    # _ready  makes a waiting loop
    def __init__(
        self,
        held: Mapping[str | None, InteractiveLoop | WaitingLoop],
        ready: Callable[[str | None], InteractiveLoop],
    ) -> None:
        self._held = held
        self._ready = ready

    def __getitem__(self, key: str | None) -> InteractiveLoop:
        return self._ready(key)

    def __iter__(self) -> Iterator[str | None]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)


class LoopCache:
    """The loops of all keys: the most recently used in memory, the others as snapshots in a store.

    Parameters
    ----------
    model
        Cloned for every loop.
    rules
        Rules of every loop.
    max_keys
        Number of loops to hold in memory; None for all.
    store
        Store of the others.
    shared_budget
        A budget shared by all loops; None for none.
    is_published
        Whether the changes of loops are going to be published.

    Attributes
    ----------
    held
        The loops in memory, made or waiting; with `max_keys` the least recently used first.
    ready
        The same; one that waits is made when it is accessed.
    n_keys
        Number of keys, in the store or not.

    """

    # _passed     the times told since the beginning
    # _prepared   snapshots, by key, of loops that were not handed out since
    # _unlearned  a clone of the model as saved before its first input, once needed
    def __init__(
        self,
        model: CloneableLearner,
        rules: LoopRules,
        *,
        max_keys: int | None,
        store: LoopStore,
        shared_budget: SharedBudget | None,
        is_published: bool,
    ) -> None:
        self._shared_budget = shared_budget
        self._is_published = is_published
        self._model = model
        self._arguments = rules.arguments
        self._max_keys = max_keys
        self._store = store
        self.held: OrderedDict[str | None, InteractiveLoop | WaitingLoop] = OrderedDict()
        self.ready = HeldLoops(self.held, self._made)
        self.n_keys = 0
        self._passed = PassedTimes()
        self._prepared: dict[str | None, bytes] = {}
        self._unlearned: SavedModel | None = None

    def new(self) -> InteractiveLoop:
        """Return a loop that has no key yet."""
        loop = InteractiveLoop(self._cloned(), **self._arguments).share(self._shared_budget)
        if self._cloned != self._model.clone:  # all clones are equal
            self._unlearned = loop.begin_from(self._unlearned)
        if self._is_published:
            loop.know_fingerprint(self._fingerprint)
        return loop

    def add(self, key: str | None, loop: InteractiveLoop) -> None:
        """Add the loop of a new key."""
        self.held[key] = loop
        self.n_keys += 1

    def take_over(
        self, key: str | None, parts: Mapping[str, Any], log: Iterable[LabelledExample]
    ) -> RestartableLoop | None:
        """Update the loop of a key to what was published elsewhere; see `caught_up` of loops.

        Returns
        -------
        The loop that now waits for the key; None if the key is gone.

        """
        known = self._stored(key)
        if known is None:
            if all(part is None for part in parts.values()):
                return None
            loop = RestartableLoop.from_parts(parts, log, self._stored_model(), **self._arguments)
            self.n_keys += 1
        else:
            found = known.caught_up(parts, log, self._stored_model())
            if found is None:
                self.forget(key)
                return None
            loop = found
        self._prepared.pop(key, None)
        self.held[key] = WaitingLoop(
            _plain_snapshot(loop),
            self._passed.n,
            tuple(loop.open_events()),
            tuple(loop.quarantined),
        )
        if self._max_keys is not None:
            self.held.move_to_end(key)
        return loop

    def look_up(self, key: str | None) -> InteractiveLoop | None:
        """Return the loop of a key as it is, or None; a stored one also stays in the store."""
        if key in self.held:
            return self.ready[key]
        waiting = self._from_store(key)
        return None if waiting is None else self._restored(waiting.data)

    def get(self, key: str | None) -> InteractiveLoop | None:
        """Return the loop of a key, from the store if necessary, or None if there is none."""
        loop = self.held.get(key)
        if self._max_keys is not None:
            if loop is not None:
                self.held.move_to_end(key)
            else:
                loop = self._from_store(key)
                if loop is not None:
                    self.held[key] = loop
        return None if loop is None else self._made(key)

    def is_silent(self, key: str | None) -> bool:
        """Whether the loop of a key waits in memory and will have no message as time passes."""
        loop = self.held.get(key)
        return isinstance(loop, WaitingLoop) and not loop.n_open

    def note_time(self, now: float) -> None:
        """Record a time that was passed to all loops."""
        self._passed.note(now)

    def surplus(self) -> tuple[str | None, InteractiveLoop | WaitingLoop] | None:
        """Return the loop to evict next, with its key; None if few enough are in memory."""
        if self._max_keys is None or len(self.held) <= self._max_keys:
            return None
        return next(iter(self.held.items()))

    def evict(self, key: str | None) -> None:
        """Put a loop in the store."""
        loop = self.held[key]
        # Stored before it is removed: whatever fails, no loop is lost.
        when = loop.when if isinstance(loop, WaitingLoop) else self._passed.n
        self._store.put(key, _WHEN.pack(when) + self._snapshot_of(key, loop))
        del self.held[key]
        self._prepared.pop(key, None)

    def forget(self, key: str | None) -> bool:
        """Forget a key for good; False if there is no such key."""
        waits = self._store.get(key) is not None
        if self.held.pop(key, None) is None and not waits:
            return False
        self._prepared.pop(key, None)
        self._store.discard(key)
        self.n_keys -= 1
        return True

    def prepare(self, is_enough: Callable[[], bool]) -> int:
        """Take snapshots of loops for `save`, until it is enough; return how many loops are left.

        A loop that is handed out later has to be prepared again.
        """
        left = [
            (key, loop)
            for key, loop in self.held.items()
            if key not in self._prepared and not isinstance(loop, WaitingLoop)
        ]
        for i, (key, loop) in enumerate(left):
            if is_enough():
                return len(left) - i
            self._prepared[key] = _plain_snapshot(loop)
        return 0

    def save(self) -> tuple[State, list[bytes]]:
        """Return what must survive a restart: plain values, and the loops in memory."""
        loops = self.held.items()
        quarantined = [(key, list(names)) for key, loop in loops if (names := loop.quarantined)]
        state = {
            "keys": list(self.held),
            "asked": [(key, list(loop.open_events())) for key, loop in loops if loop.n_open],
            # Without a store, its deadline alone tells what a loop has missed.
            "passed": (PassedTimes() if self._max_keys is None else self._passed).state(),
            "shelf": None if self._max_keys is None else self._store.mark(),
            **({"quarantined": quarantined} if quarantined else {}),
        }
        saved = [self._snapshot_of(key, loop) for key, loop in loops]
        self._prepared.clear()
        return state, saved

    def load(self, state: State, blobs: Sequence[bytes]) -> None:
        """Restore what `save` returned."""
        if state["shelf"] is not None:
            if self._max_keys is None:
                raise ValueError("some of its keys wait in a store; give max_keys and the store")
            self._store.reset(state["shelf"])
        else:
            for key in list(self._store.keys()):  # left by its previous user
                self._store.discard(key)
        self._passed.load_state(state["passed"])
        saved = state.get("asked")
        asked = {key: [(name, at) for name, at in found] for key, found in saved or ()}
        quarantined = {key: tuple(names) for key, names in state.get("quarantined", ())}
        for key, data in zip(state["keys"], blobs, strict=True):
            # Snapshots of earlier versions do not contain open requests; the loop knows them.
            self.held[key] = (
                self._restored(data)
                if saved is None
                else WaitingLoop(data, self._passed.n, asked.get(key, ()), quarantined.get(key, ()))
            )
        self.n_keys = len({*self.held, *self._store.keys()})

    def _made(self, key: str | None) -> InteractiveLoop:
        """Return the loop of a key in memory, perhaps to be changed, making it if it waits."""
        loop = self.held[key]
        if self._prepared:
            self._prepared.pop(key, None)
        if isinstance(loop, WaitingLoop):
            passed = self._passed.latest_since(loop.when)
            loop = self._restored(loop.data)
            if passed is not None:
                # Only events to forget can be due: a loop whose request waits is made in time.
                loop.on_time(passed)
            self.held[key] = loop
        return loop

    def _from_store(self, key: str | None) -> WaitingLoop | None:
        data = None if self._max_keys is None else self._store.get(key)
        if data is None:
            return None
        (when,) = _WHEN.unpack_from(data)
        return WaitingLoop(data[_WHEN.size :], when)

    def _snapshot_of(self, key: str | None, loop: InteractiveLoop | WaitingLoop) -> bytes:
        prepared = self._prepared.get(key)
        return _plain_snapshot(loop) if prepared is None else prepared

    def _stored(self, key: str | None) -> RestartableLoop | None:
        """Return the loop of a key, without its learner."""
        loop = self.held.get(key) or self._from_store(key)
        if loop is None:
            return None
        return RestartableLoop.restore(_plain_snapshot(loop), self._stored_model())

    def _stored_model(self) -> Any:
        return StoredModel(self._model, self._fingerprint)

    @cached_property
    def _fingerprint(self) -> str:
        model: Any = self._model
        return str(model.fingerprint())

    @cached_property
    def _cloned(self) -> Callable[[], CloneableLearner]:
        """Function that returns a clone of the model."""
        return copier(self._model)

    def _restored(self, data: bytes) -> InteractiveLoop:
        loop = InteractiveLoop.restore(data, self._cloned(), fingerprint=self._fingerprint)
        return loop.share(self._shared_budget)


def _plain_snapshot(loop: InteractiveLoop | RestartableLoop | WaitingLoop) -> bytes:
    """Return the snapshot of one loop among many; the environment is recorded once for all."""
    return loop.data if isinstance(loop, WaitingLoop) else loop.snapshot(with_environment=False)


class PassedTimes:
    """The latest time told since any earlier one.

    Time may go backwards, so the last time told need not be the latest. Only the times that no
    later one has reached are kept, usually one.

    Attributes
    ----------
    n
        Number of times told.

    Examples
    --------
    >>> passed = PassedTimes()
    >>> for now in (10.0, 30.0, 20.0):
    ...     passed.note(now)
    >>> passed.latest_since(0), passed.latest_since(2), passed.latest_since(3)
    (30.0, 20.0, None)

    """

    # _numbers, _times  the times that are kept, in falling order, and their numbers
    def __init__(self) -> None:
        self.n = 0
        self._numbers: list[int] = []
        self._times: list[float] = []

    def note(self, now: float) -> None:
        """Record a time that was passed to all loops."""
        self.n += 1
        while self._times and self._times[-1] <= now:
            self._times.pop()
            self._numbers.pop()
        self._times.append(now)
        self._numbers.append(self.n)

    def latest_since(self, n: int) -> float | None:
        """Return the latest of the times told after the first `n`, or None."""
        i = bisect_right(self._numbers, n)
        return self._times[i] if i < len(self._times) else None

    def state(self) -> State:
        """Return what must survive a restart."""
        return {"n": self.n, "numbers": self._numbers, "times": self._times}

    def load_state(self, state: State) -> None:
        """Restore what `state` returned."""
        self.n = int(state["n"])
        self._numbers = [int(n) for n in state["numbers"]]
        self._times = [float(at) for at in state["times"]]
