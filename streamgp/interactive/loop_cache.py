"""LRU cache of loops; evicted loops are stored as snapshots.

Deadlines and messages are the business of `keyed.py`; here loops only come and go, and what they
would have done in the meantime is made up for.

"""

from __future__ import annotations

from base64 import b64decode, b64encode
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from struct import Struct
from typing import Any, Protocol, Self

from streamgp.base import State
from streamgp.interactive.loop import InteractiveLoop, SkepticalLearner
from streamgp.interactive.messages import LabelledExample
from streamgp.interactive.shared_budget import SharedBudget

# --- Store of evicted loops.
#
# Only bytes are kept here. A store that outlives the process is `connectors.storage.sqlite`.


class LoopStore(Protocol):
    """Bytes by key, and marks: moments to which all of it can be taken back."""

    def get(self, key: str | None) -> bytes | None:
        """Return what was put last under a key, or None."""

    def put(self, key: str | None, data: bytes) -> None:
        """Keep bytes under a key, in place of what was there."""

    def discard(self, key: str | None) -> None:
        """Forget a key for good, if it is there."""

    def keys(self) -> Iterator[str | None]:
        """Return all keys."""

    def __len__(self) -> int:
        """Return the number of keys."""

    def mark(self) -> State:
        """Make durable what was put so far; the plain JSON value returned names this moment."""

    def reset(self, mark: State) -> None:
        """Come back to the moment of one of the last two marks, whatever was put since."""


class MemoryStore:
    """A store within this process. Its marks hold everything on it.

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
        """Return what was put last under a key, or None."""
        return self._kept.get(key)

    def put(self, key: str | None, data: bytes) -> None:
        """Keep bytes under a key, in place of what was there."""
        self._kept[key] = data

    def discard(self, key: str | None) -> None:
        """Forget a key, if it is there."""
        self._kept.pop(key, None)

    def keys(self) -> Iterator[str | None]:
        """Return all keys."""
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def mark(self) -> State:
        """Return everything kept."""
        return {"kept": [[key, b64encode(data).decode()] for key, data in self._kept.items()]}

    def reset(self, mark: State) -> None:
        """Keep what was kept at the mark."""
        self._kept = {key: b64decode(text) for key, text in mark["kept"]}


_WHEN = Struct("<Q")


class CloneableLearner(SkepticalLearner, Protocol):
    """A skeptical learner that can be copied unlearned, as River's estimators can."""

    def clone(self) -> Self:
        """Return a fresh learner with the same parameters."""


class LoopCache:
    """The loops of all keys: those used last are ready, the others are snapshots in a store.

    Parameters
    ----------
    model
        Cloned for every loop.
    spans
        Keyword arguments of every loop.
    max_keys
        Number of loops to hold ready; None for all.
    store
        Where the others wait.
    total
        A budget that they share; None for none.

    Attributes
    ----------
    ready
        The loops held ready; with `max_keys` the least recently used first.
    n_keys
        Number of keys, in the store or not.

    """

    # _passed  the times told since the beginning
    def __init__(
        self,
        model: CloneableLearner,
        spans: dict[str, Any],
        max_keys: int | None,
        store: LoopStore,
        shared_budget: SharedBudget | None = None,
    ) -> None:
        self._shared_budget = shared_budget
        self._model = model
        self._spans = spans
        self._max_keys = max_keys
        self._store = store
        self.ready: OrderedDict[str | None, InteractiveLoop] = OrderedDict()
        self.n_keys = 0
        self._passed = PassedTimes()

    def new(self) -> InteractiveLoop:
        """Return a loop that belongs to no key yet."""
        return InteractiveLoop(self._model.clone(), **self._spans).share(self._shared_budget)

    def add(self, key: str | None, loop: InteractiveLoop) -> None:
        """Give a new key its loop."""
        self.ready[key] = loop
        self.n_keys += 1

    def caught_up(
        self,
        loop: InteractiveLoop | None,
        parts: Mapping[str, Any],
        log: Iterable[LabelledExample],
    ) -> InteractiveLoop | None:
        """Return what a loop, or none, became elsewhere; see `InteractiveLoop.caught_up`."""
        model = self._model.clone()
        if loop is not None:
            found = loop.caught_up(parts, log, model)
            return None if found is None else found.share(self._shared_budget)
        if all(part is None for part in parts.values()):
            return None
        return InteractiveLoop.from_parts(parts, log, model, **self._spans).share(
            self._shared_budget
        )

    def replace(self, key: str | None, loop: InteractiveLoop) -> None:
        """Give a key another loop in place of the one that it has."""
        self.ready[key] = loop
        if self._max_keys is not None:
            self.ready.move_to_end(key)

    def look_up(self, key: str | None) -> InteractiveLoop | None:
        """Return the loop of a key as it is, or None; one in the store also stays there."""
        return self.ready.get(key) or self._from_store(key)[0]

    def get(self, key: str | None) -> InteractiveLoop | None:
        """Return the loop of a key, from the store if need be, or None if there is none."""
        loop = self.ready.get(key)
        if self._max_keys is None:
            return loop
        if loop is not None:
            self.ready.move_to_end(key)
            return loop
        loop, when = self._from_store(key)
        if loop is None:
            return None
        passed = self._passed.latest_since(when)
        if passed is not None:
            # Only events to forget can have been due: a loop whose request waits is woken in time.
            loop.on_time(passed)
        self.ready[key] = loop
        return loop

    def note_time(self, now: float) -> None:
        """Record a time that was passed to all loops."""
        if self._max_keys is not None:
            self._passed.note(now)

    def put_away(
        self, leave: Callable[[str | None, InteractiveLoop], None]
    ) -> list[tuple[str | None, InteractiveLoop]]:
        """Put loops in the store until few enough are ready; return them with their keys.

        Parameters
        ----------
        leave
            Called for each of them before.

        """
        away = []
        while self._max_keys is not None and len(self.ready) > self._max_keys:
            key, loop = next(iter(self.ready.items()))
            leave(key, loop)
            # In the store before it leaves: whatever fails, no loop is lost.
            self._store.put(key, _WHEN.pack(self._passed.n) + _plain_snapshot(loop))
            del self.ready[key]
            away.append((key, loop))
        return away

    def forget(self, key: str | None) -> bool:
        """Forget a key for good; False if there is no such key."""
        waits = self._store.get(key) is not None
        if self.ready.pop(key, None) is None and not waits:
            return False
        self._store.discard(key)
        self.n_keys -= 1
        return True

    def save(self) -> tuple[State, list[bytes]]:
        """Return what must survive a restart: plain values, and the loops held ready."""
        state = {
            "keys": list(self.ready),
            "passed": self._passed.state(),
            "shelf": None if self._max_keys is None else self._store.mark(),
        }
        return state, [_plain_snapshot(loop) for loop in self.ready.values()]

    def load(self, state: State, blobs: Sequence[bytes]) -> None:
        """Become what was saved."""
        if state["shelf"] is not None:
            if self._max_keys is None:
                raise ValueError("some of its keys wait in a store; give max_keys and the store")
            self._store.reset(state["shelf"])
        else:
            for key in list(self._store.keys()):  # of its previous user
                self._store.discard(key)
        for key, data in zip(state["keys"], blobs, strict=True):
            self.ready[key] = self._restored(data)
        self.n_keys = len({*self.ready, *self._store.keys()})
        self._passed.load_state(state["passed"])

    def _from_store(self, key: str | None) -> tuple[InteractiveLoop | None, int]:
        """Return the loop that waits in the store, and how many times were told before it came."""
        data = None if self._max_keys is None else self._store.get(key)
        if data is None:
            return None, 0
        (when,) = _WHEN.unpack_from(data)
        return self._restored(data[_WHEN.size :]), when

    def _restored(self, data: bytes) -> InteractiveLoop:
        return InteractiveLoop.restore(data, self._model.clone()).share(self._shared_budget)


def _plain_snapshot(loop: InteractiveLoop) -> bytes:
    """Return the snapshot of one loop among many; the environment is recorded once for all."""
    return loop.snapshot(with_environment=False)


class PassedTimes:
    """The latest time told since any moment.

    Time may go backwards, so the last time told need not be the latest; only those count that no
    later one has reached, usually one.

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

    # _numbers, _times  which times count, and what they are: falling
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
        """Become what the state was taken from."""
        self.n = int(state["n"])
        self._numbers = [int(n) for n in state["numbers"]]
        self._times = [float(at) for at in state["times"]]
