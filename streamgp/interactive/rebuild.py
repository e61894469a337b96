"""Loops around another learner taught from the consensus log, and loops made from the log alone.

The rest of a loop's state, its conversations and numbering, is kept.

"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from streamgp.base import State
from streamgp.interactive.consensus_log import by_event, by_sequence, last_answer
from streamgp.interactive.conversation_record import Conversation, SecondQuestion
from streamgp.interactive.event_store import EventStore
from streamgp.interactive.loop import InteractiveLoop
from streamgp.interactive.messages import Event, LabelledExample
from streamgp.interactive.moderator import SavedModerator
from streamgp.interactive.people import LoopRules
from streamgp.interactive.quarantine import Quarantine
from streamgp.interactive.state.serialize import HEAD, Resumable, all_parts, resumable
from streamgp.interactive.state.snapshot import SnapshotError
from streamgp.interactive.teaching import teach


def head_around(
    model: Resumable, parts: Mapping[str, Any], log: Iterable[LabelledExample], fresh: Resumable
) -> State:
    """Return the head of a loop that continues with another model; its other parts stay.

    What the model refused to learn stays on record, as in any loop whose learner is rebuilt, and is
    tried again at every rebuild.

    Parameters
    ----------
    model
        The model, taught with `teach`.
    parts
        The newest parts of the loop.
    log
        Its lines of the consensus log, in any order.
    fresh
        Another model of the same configuration that has seen nothing; it cannot be used afterwards.

    Raises
    ------
    SnapshotError
        If the parts do not fit together, or there is no head among them.
    TypeError
        If the model cannot be saved.

    Examples
    --------
    >>> from streamgp import isgp
    >>> from streamgp.interactive import Event
    >>> loop = InteractiveLoop(isgp(seed=1))
    >>> event = Event(event_id="e1", x={"wap1": -64.0}, occurred_at=0.0, y="kitchen")
    >>> prediction, line = loop.on_event(event, now=0.0)
    >>> other = isgp(preset="paper", seed=1)
    >>> for taught in teach(other, [line]):
    ...     print(taught.y, taught.refusal)
    kitchen None
    >>> head = head_around(other, loop.parts(), [line], isgp(preset="paper", seed=1))
    >>> head["sequence"], head["fingerprint"] == other.fingerprint()
    (1, True)

    """
    resumable(model)
    head = parts.get(HEAD)
    if head is None:
        raise SnapshotError("published state has no head; bring it back first")
    head = {**head, "model": model.state(), "fingerprint": model.fingerprint()}
    return InteractiveLoop.from_parts({**parts, HEAD: head}, log, fresh).parts()[HEAD]  # type: ignore[no-any-return]


# --- Recovery of a loop from its consensus log, when the rest of its state was lost.
#
# The log tells which labels stand, in which order they were learned and how often they were
# corrected. It does not tell which questions are open, how much of a budget was spent, which
# events have no label, the ids of answers, or who is in quarantine, whose lines are gone.


def renumbered(lines: Iterable[LabelledExample]) -> list[int]:
    """Return the numbers that lines of a log should have, given in the order of writing.

    If no number occurs twice, all stay. If some were assigned again after the state was lost,
    numbers must rise from line to line: a number that does so stays; any other becomes one more
    than that of the line before.

    Examples
    --------
    >>> def line(event_id, sequence):
    ...     return LabelledExample(
    ...         event_id=event_id, sequence=sequence, x={}, y="hall", origin="asked", learned_at=0.0
    ...     )
    >>> renumbered([line("a", 1), line("b", 3), line("c", 1), line("d", 2), line("e", 9)])
    [1, 3, 4, 5, 9]
    >>> renumbered([line("a", 1), line("e", 9), line("b", 3)])
    [1, 9, 3]

    """
    lines = list(lines)
    given = [line.sequence for line in lines]
    if len(set(given)) == len(given):
        return given
    numbers: list[int] = []
    last = 0
    for line in lines:
        last = max(line.sequence, last + 1)
        numbers.append(last)
    return numbers


def recovered_parts(
    log: Iterable[LabelledExample],
    model: Resumable,
    fresh: Resumable,
    *,
    at_least: int = 0,
    quarantine: Quarantine | None = None,
    **arguments: Any,
) -> dict[str, Any]:
    """Return the state of a loop that continues where its log ends.

    The model has learned every label that stands; its scaling has seen the labelled events only.
    Each event of the log is remembered as long as any event, counted from its first label: it is
    not learned again, its label may be doubted, and a label that came with the event can
    be corrected. Other answers are not known by id, so nothing can supersede them.

    Parameters
    ----------
    log
        The lines of the loop, in any order, each number once.
    model
        A model that has seen nothing; it is taught.
    fresh
        Another model of the same configuration; it cannot be used afterwards.
    at_least
        Number of the last line that is known to have been written, in the log or not.
    quarantine
        Annotators in quarantine, as far as known; None if nothing is.
    arguments
        Those of `LoopRules`.

    Raises
    ------
    SnapshotError
        If the model cannot take what is in the log.
    TypeError
        If the model cannot be saved.

    Examples
    --------
    >>> from streamgp import isgp
    >>> loop = InteractiveLoop(isgp(seed=1))
    >>> event = Event(event_id="e1", x={"wap1": -64.0}, occurred_at=0.0, y="kitchen")
    >>> prediction, line = loop.on_event(event, now=0.0)
    >>> parts = recovered_parts([line], isgp(seed=1), isgp(seed=1))
    >>> again = InteractiveLoop.from_parts(parts, [line], isgp(seed=1))
    >>> again.model.n_learned, again.knows("e1"), again.on_event(event, now=1.0)[0].fault
    (1, True, 'duplicate')

    """
    lines = by_sequence(log)
    for _ in teach(model, lines):
        pass  # what it refuses stays on record, as in any rebuilt learner
    rules = LoopRules(**arguments)
    moderator = SavedModerator(model, EventStore(rules.answer_horizon_s))
    for record in _records(lines):
        if rules.people.asks_twice or rules.people.quarantine:
            record.second = SecondQuestion()  # nor may the name of a second question
        moderator.memory.take_over(record)
    moderator.memory.n_added = len(moderator.memory)
    moderator.lines.sequence = max(at_least, lines[-1].sequence if lines else 0)
    moderator.quarantine = quarantine or Quarantine()
    parts = all_parts(moderator, model.fingerprint())
    return InteractiveLoop.from_parts(parts, lines, fresh, **arguments).parts()


def _records(lines: list[LabelledExample]) -> list[Conversation]:
    """Return the conversations contained in a log, the earliest first."""
    records = [_record(of_event) for of_event in by_event(lines).values()]
    for serial, record in enumerate(records, start=1):
        record.serial = serial
    return records


def _record(lines: list[LabelledExample]) -> Conversation:
    """Return the conversation about an event; its last line tells what stands."""
    first, last, answer = lines[0], lines[-1], last_answer(lines)
    event = Event(event_id=last.event_id, key=last.key, x=last.x, occurred_at=first.learned_at)
    record = Conversation(event)
    record.was_asked = any(line.origin != "volunteered" for line in lines)
    record.asked_back_at = first.learned_at if any(line.asked_back for line in lines) else None
    # An unanswered challenge leaves no trace. No name of a question may be used again.
    record.n_challenges = 1
    # The log does not tell the ids of answers, nor which labels came with their event: any that was
    # given unasked may be superseded as if it had.
    if last.origin == "volunteered":
        record.standing = last.event_id
    record.agree_with(last, None if answer is None else answer.annotator)
    return record
