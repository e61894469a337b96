"""Rollback of the last input, for a loop whose learner, rules or encoding failed.

Any call of a model may raise: it is a River estimator behind rules and budgets, some of them
user-defined, and it may have done half of its work by then. The loop then continues from its state
before the input, bitwise. Nothing is copied for that while nothing fails: the few conversations
that an input changes are saved before, and a model is restored by repetition. Its state and
examples are saved after every `SAVE_EVERY` calls that change it, and the calls since then are kept.

"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeVar,
    runtime_checkable,
)

import msgspec
from msgspec.structs import asdict

from streamgp.common.signatures import has_methods
from streamgp.interactive.conversation_record import Conversation
from streamgp.interactive.learner import HoldsExamples
from streamgp.interactive.messages import Stage

if TYPE_CHECKING:
    from streamgp.base import Example, State
    from streamgp.interactive.moderator import Moderator, SavedModerator

P = ParamSpec("P")
T = TypeVar("T")

SAVE_EVERY = 64
"""Least number of calls after which a model is saved: two for every event. Saving costs about as
much as three events, a kept call half a kilobyte, and a rollback repeats half of them."""
_CALL_BYTES: Final = 512
FULL_CREDIT: Final = 100
REBUILD: Final = 10
"""A rebuild of the model costs `REBUILD` of the credit of a loop; every input earns 1 of it back.
Ten rebuilds in a row are free, and of records that fail one after the other every tenth is tried:
so a sender cannot decide how much a worker computes."""

# What was being done, by the name of the function that did it: of a learner, the moderator or
# `Consensus`. It is read from the traceback, which costs nothing while nothing fails; of several,
# the outermost counts. Rename a function here as well; a test holds that all of them exist.
_STAGES: dict[str, Stage] = {
    "observe_one": "predict",
    "predicted_target": "predict",
    "query_one": "ask",
    "note_query": "ask",
    "ask_back": "ask",
    "contest": "challenge",
    "contest_again": "review",
    "settle": "learn",
    "revise": "learn",
    "compare": "ask",
    "aggregate": "learn",
    "withdraw": "learn",
    "forget": "learn",
    "look_through": "review",
}

# Methods that may refuse their input, with a ValueError or TypeError.
_REFUSING = frozenset(("observe_one", "settle_one", "relabel_one"))


def stage_of(error: BaseException) -> Stage:
    """Return what was being done when an error was raised.

    Examples
    --------
    >>> def query_one():
    ...     raise ZeroDivisionError
    >>> try:
    ...     query_one()
    ... except ZeroDivisionError as error:
    ...     print(stage_of(error))
    ask

    """
    frame: TracebackType | None = error.__traceback__
    while frame is not None:
        stage = _STAGES.get(frame.tb_frame.f_code.co_name)
        if stage is not None:
            return stage
        frame = frame.tb_next
    return "predict"


def reason_of(error: Exception) -> str:
    r"""Return type and text of an error, in words that can be written whatever the text contains.

    Examples
    --------
    >>> print(reason_of(ZeroDivisionError("by what?")), reason_of(ValueError("half: \ud800")))
    ZeroDivisionError: by what? ValueError: half: \ud800

    """
    try:
        text = str(error)
    except Exception:  # the text of a user-defined error may fail, too
        text = "its text cannot be read"
    reason = f"{type(error).__name__}: {text:.300}"
    return reason.encode(errors="backslashreplace").decode()


@runtime_checkable
class ResettableLearner(HoldsExamples, Protocol):
    """A learner that can be reset to an earlier state."""

    def state(self) -> State:
        """Return what its decisions depend on besides the examples, as plain JSON values."""

    def reset_to(self, state: State, examples: Sequence[Example]) -> None:
        """Reset to `state` and `examples`, whatever was learned since."""


class SavedModel(NamedTuple):
    """A saved model; later changes of the model do not affect it.

    Parameters
    ----------
    read_state
        Returns its state.
    examples
        The examples that it held.
    most_calls
        Number of calls after which it is saved again: a large state less often, as long as the kept
        calls take no more memory than it does.

    """

    read_state: Callable[[], State]
    examples: list[Example]
    most_calls: int


class CallJournal:
    """The calls that have changed a model since it was saved.

    Parameters
    ----------
    model
        The model. If it cannot be saved (without `state`, `examples` and `reset_to`, or with a
        component that has no state to save), a failure leaves it as it is then.

    Attributes
    ----------
    credit
        Credit left for rebuilds of the model; see `REBUILD`.
    saved
        The model before the calls that are kept; None if it has not been saved yet.

    Examples
    --------
    >>> from streamgp import isgp
    >>> model = isgp(seed=1)
    >>> journal = CallJournal(model)
    >>> journal.begin()
    >>> journal.call(model.observe_one, {"wap1": -64.0})
    >>> model.state()["n_events"]
    1
    >>> journal.roll_back()
    >>> model.state()["n_events"], journal.credit
    (0, 90)

    """

    # _calls  name and arguments of each call since the model was saved
    # _mark   number of calls before the current input
    __slots__ = ("_calls", "_can_save", "_mark", "_model", "credit", "saved")

    def __init__(self, model: Any) -> None:
        self._model = model
        kind: Any = type(model)
        self._can_save = has_methods(kind, ResettableLearner)
        self.saved: SavedModel | None = None
        self._calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self._mark = 0
        self.credit = FULL_CREDIT

    def may_try(self) -> bool:
        """Whether there is credit for one more failure; called once for every input."""
        if self.credit == FULL_CREDIT:
            return True
        self.credit += 1
        return self.credit > REBUILD

    def begin(self) -> None:
        """Begin an input: `roll_back` restores the model as it is now."""
        if not self._can_save:
            self._calls.clear()
        elif self.saved is None or len(self._calls) >= self.saved.most_calls:
            self._save()
        self._mark = len(self._calls)

    def call(self, method: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a method that changes the model.

        If a method that takes an event or a label raises a ValueError or TypeError, it has refused
        it and nothing has changed; after any other error nothing is certain, and the caller has to
        roll back.
        """
        calls = self._calls
        calls.append((method.__name__, args, kwargs))
        try:
            return method(*args, **kwargs)
        except (ValueError, TypeError):
            if method.__name__ in _REFUSING:
                calls.pop()
            raise

    def roll_back(self) -> None:
        """Restore the model as it was when the input began."""
        if len(self._calls) == self._mark:
            return
        del self._calls[self._mark :]
        if self.saved is None:
            return
        self.credit = max(0, self.credit - REBUILD)
        self._model.reset_to(self.saved.read_state(), self.saved.examples)
        for name, args, kwargs in self._calls:
            getattr(self._model, name)(*args, **kwargs)

    def save_early(self, state: State) -> None:
        """Save the model if that is soon due; nothing done so far can be rolled back any longer.

        For a caller that has needed the state: to compute it is most of the work of saving.

        Parameters
        ----------
        state
            What the model's `state` has just returned.

        """
        if self.saved is not None and 2 * len(self._calls) >= self.saved.most_calls:
            self._save(state)
            self._mark = 0

    def _save(self, state: State | None = None) -> None:
        try:
            n_bytes, read_state = _written(self._model.state() if state is None else state)
            most_calls = max(SAVE_EVERY, n_bytes // _CALL_BYTES)
            self.saved = SavedModel(read_state, self._model.examples(), most_calls)
        except (TypeError, ValueError):  # a budget or learner in it has no state to save
            self._can_save = False
            self.saved = None
        self._calls.clear()


def _written(state: State) -> tuple[int, Callable[[], State]]:
    """Encode a state; return the number of bytes, and a function that decodes them."""
    try:
        # A hundredth of the time of JSON: numbers are written as they are, even infinite ones.
        packed = msgspec.msgpack.encode(state, enc_hook=_plain)
    except OverflowError:  # an integer of more than 64 bits, such as a seed
        text = json.dumps(state, allow_nan=False)
        return len(text), partial(json.loads, text)
    return len(packed), partial(msgspec.msgpack.decode, packed)


def _plain(value: Any) -> Any:
    """Return the plain value of a numpy scalar, as in a label or the state of a budget."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"a state must consist of plain JSON values, got {value!r}")


class Rollback:
    """Changes of a loop by the current input, which can be undone.

    Parameters
    ----------
    moderator
        The moderator of the loop; it is not kept.

    """

    # _touched  conversations that the input changes, as they were before it
    # _counts   counters that only increase, as they were before it
    # _shared   state of the budget that is shared with other loops
    # _quarantine  who was in quarantine; it is replaced, never modified
    # _unasked     labels that were given unasked; likewise
    __slots__ = (
        "_counts",
        "_deadlines",
        "_memory",
        "_quarantine",
        "_shared",
        "_touched",
        "_unasked",
    )

    def __init__(self, moderator: SavedModerator) -> None:
        self._memory = moderator.memory
        self._deadlines = moderator.deadlines
        self._touched: list[tuple[Conversation, dict[str, Any], float | None, int | None]] = []
        self._counts = (0, 0, 0)
        self._shared: State | None = None
        self._quarantine = moderator.quarantine
        self._unasked = moderator.unasked

    def begin(self, moderator: Moderator) -> None:
        """Begin an input: `undo` restores the present state."""
        memory = self._memory
        moderator.journal.begin()
        self._touched.clear()
        self._counts = memory.n_added, memory.horizons.n_set, self._deadlines.n_set
        self._quarantine = moderator.quarantine
        self._unasked = moderator.unasked
        moderator.lines.begin()
        shared_budget = moderator.shared_budget
        self._shared = None if shared_budget is None else shared_budget.state()

    def save(self, record: Conversation) -> None:
        """Save a conversation that may change."""
        deadlines, event_id = self._deadlines, record.event.event_id
        at, number = deadlines.get(event_id), deadlines.number(event_id)
        self._touched.append((record, asdict(record), at, number))
        self._memory.note_change()

    def touch(self, record: Conversation) -> None:
        """Save a conversation before it changes, and mark it as changed."""
        self.save(record)
        self._memory.segments.note(record)

    def undo(self, moderator: Moderator) -> None:
        """Restore the state in which the input began."""
        memory, deadlines = self._memory, self._deadlines
        n_added, n_horizons, n_deadlines = self._counts
        if memory.n_added > n_added:
            added = memory.latest()
            deadlines.clear(added.event.event_id)
            memory.forget(added)
        for record, saved, at, number in reversed(self._touched):
            if record.serial > n_added:
                continue  # it was added by this input, and is forgotten by now
            memory.restore(record, saved)
            if at is None or number is None:
                deadlines.clear(record.event.event_id)
            else:
                deadlines.reset(record.event.event_id, at, number)
        self._touched.clear()
        memory.n_added, memory.horizons.n_set = n_added, n_horizons
        moderator.quarantine = self._quarantine
        moderator.unasked = self._unasked
        moderator.lines.undo()
        deadlines.n_set = n_deadlines
        if moderator.shared_budget is not None and self._shared is not None:
            moderator.shared_budget.reset_to(self._shared)
        moderator.journal.roll_back()
