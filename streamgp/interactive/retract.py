"""Retraction of one annotator's labels, as if the learner had never been taught them; and its undo.

The consensus log is what counts. The answers of one annotator are removed from it
(`retracted_log.py`); a learner is taught what is left, in the order learned, and the conversations
are made to agree. So the learner and the reliability of annotators afterwards are, bitwise, those
rebuilt from the log without that annotator's lines. What was asked, spent and predicted is not
undone.

"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from streamgp.interactive.consensus_log import by_event, examples_in, in_force, last_answer, name_of
from streamgp.interactive.learner import SkepticalLearner
from streamgp.interactive.messages import Cancel, LabelledExample, Message, Retraction
from streamgp.interactive.retracted_log import with_again, without
from streamgp.interactive.rollback import ResettableLearner
from streamgp.interactive.state.serialize import HEAD, record_of
from streamgp.interactive.teaching import teach

if TYPE_CHECKING:
    from streamgp.base import Example, State
    from streamgp.interactive.conversation_record import Conversation
    from streamgp.interactive.moderator import Moderator

_WHY = "the label was taken back with all others of its annotator"
_WHY_AGAIN = "a label of the event that was taken back is there again"


@runtime_checkable
class Unlearning(ResettableLearner, Protocol):
    """A learner from which labels can be retracted."""

    def unlearned(self, examples: Sequence[Example] | None = None) -> Self:
        """Return a learner that has observed the same events but was taught no label.

        What it made of labels before follows from those of `examples`, if given.
        """

    def state_taught_as(self, other: Self) -> State:
        """Return the state that this learner would have if it had been taught what `other` was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relearned:
    """Result of a retraction, or of its undo.

    Parameters
    ----------
    messages
        To be sent: cancelled challenges, and lines that say what stands now.
    log
        The new consensus log, in the order learned. Lines that are not in it must be
        deleted.
    retraction
        What is needed to undo it; None if nothing was retracted.

    """

    messages: Sequence[Message]
    log: Sequence[LabelledExample]
    retraction: Retraction | None = None


def contests(parts: Mapping[str, Any], annotator: str) -> bool:
    """Whether a label of an annotator is contested and was not learned yet."""
    segments = [part["recent"] if name == HEAD else part for name, part in parts.items()]
    for plain in chain.from_iterable(segment or () for segment in segments):
        record, _ = record_of(plain, lambda _: None)
        if _is_contested(record, annotator):
            return True
    return False


def take_back(
    moderator: Moderator,
    *,
    annotator: str,
    log: Iterable[LabelledExample],
    now: float,
    since: float | None,
) -> Relearned:
    """Retract the labels of one annotator from a loop; see `InteractiveLoop.retract`."""
    before = _lines_of(moderator.model, log)
    after, taken = without(before, annotator, since)
    cancels: list[Message] = [*disregarded(moderator, annotator, now, _WHY)]
    if not taken:
        return Relearned(messages=cancels, log=before)
    first = moderator.lines.sequence + 1
    messages, left = _relearned(moderator, before, after, now)
    made = tuple(name_of(line) for line in left if line.sequence >= first)
    retraction = Retraction(annotator=annotator, since=since, at=now, taken=tuple(taken), made=made)
    return Relearned(messages=[*cancels, *messages], log=left, retraction=retraction)


def known_lines(moderator: Moderator) -> list[LabelledExample] | None:
    """Return the lines that a loop holds; None if they do not tell all that its model was taught.

    They do not if it cannot be taught again, or some were missing in the log from which the loop
    was made.
    """
    model, log = moderator.model, list(moderator.lines)
    return log if isinstance(model, Unlearning) and _is_log_of(model, log) else None


def take_back_known(
    moderator: Moderator,
    *,
    annotator: str,
    now: float,
) -> list[Message]:
    """Retract the labels of one annotator, using the lines that the loop itself holds.

    Returns
    -------
    The retraction, the lines that replace it, and the cancelled challenges; nothing if there are no
    such labels, or the lines do not tell all that the model was taught.

    """
    log = known_lines(moderator)
    if log is None:
        return []
    done = take_back(moderator, annotator=annotator, log=log, now=now, since=None)
    if done.retraction is None:
        return list(done.messages)
    before = {name_of(line): line for line in log}
    sequences = {m.sequence for m in done.messages if isinstance(m, LabelledExample)}
    changed = [
        line
        for line in done.log
        if before.get(name_of(line)) != line and line.sequence not in sequences
    ]
    return [done.retraction, *changed, *done.messages]


def leave_out(moderator: Moderator, event_id: str, revision: int) -> list[Message]:
    """Teach the log again without a line that a later one about the same event has replaced.

    The label stays. What the deleted answer told about its annotator is no longer counted, and the
    label takes its place in the order of learning from the first line about the event that is left:
    so the log, which has lost the line, would also teach another learner.

    It changes nothing if the loop does not hold all lines, or its model cannot be taught again.

    Returns
    -------
    No messages.

    """
    model = moderator.model
    left = [line for line in moderator.lines if name_of(line) != (event_id, revision)]
    if isinstance(model, Unlearning) and _is_log_of(model, left):
        taught = model.unlearned()
        for _ in teach(taught, left, observed=True):
            pass  # what it refuses stays on record, as in any learner taught again
        _take_up(moderator, model, taught, left)
    return []


def put_back(
    moderator: Moderator,
    *,
    retraction: Retraction,
    log: Iterable[LabelledExample],
    now: float,
) -> Relearned:
    """Undo a retraction; see `InteractiveLoop.reinstate`."""
    before = _lines_of(moderator.model, log)
    after, _ = with_again(before, retraction)
    messages, left = _relearned(moderator, before, after, now, is_undo=True)
    return Relearned(messages=messages, log=left)


# --- inside


def _lines_of(model: SkepticalLearner, log: Iterable[LabelledExample]) -> list[LabelledExample]:
    """Return the lines of a log that count; refuse one that is not the log of the loop."""
    if not isinstance(model, Unlearning):
        raise TypeError(
            f"labels cannot be taken back from {type(model).__name__}; give it the methods "
            "unlearned, state_taught_as, reset_to, state and examples, or use SkepticalClassifier"
        )
    lines = in_force(log)
    if not _is_log_of(model, lines):
        n_labels, n_learned = len(examples_in(lines)), len(model.examples())
        raise ValueError(
            "log must hold every line that the loop has returned, and what the last retraction has "
            f"left of it; it holds {n_labels} labels, and the model {n_learned}, or others"
        )
    return lines


def _is_log_of(model: Unlearning, lines: Iterable[LabelledExample]) -> bool:
    """Whether the lines contain every label that a model was taught."""
    theirs, ours = examples_in(lines), model.examples()
    return {e.event_id: e.y for e in theirs} == {e.event_id: e.y for e in ours}


def _relearned(
    moderator: Moderator,
    before: Sequence[LabelledExample],
    after: Sequence[LabelledExample],
    now: float,
    *,
    is_undo: bool = False,
) -> tuple[list[Message], list[LabelledExample]]:
    """Bring a loop into the state that the lines of another log would have led to.

    Parameters
    ----------
    moderator
        The moderator of the loop.
    before
        The lines in force.
    after
        The lines that shall be in force.
    now
        The time, in seconds.
    is_undo
        Whether lines are put back: then they say what stands, and no further line does.

    Returns
    -------
    The messages to be sent, and the new log.

    """
    model, memory = moderator.model, moderator.memory
    assert isinstance(model, Unlearning)  # otherwise there would be no lines
    known, taught = {name_of(line): line for line in before}, model.unlearned(examples_in(after))
    judged = {each.event_id: each.probability_wrong for each in teach(taught, after, observed=True)}
    log = [
        line
        if known.get(name_of(line)) == line or line.probability_wrong is None or is_undo
        # Its first answer is a different one now, and has just been judged.
        else replace(line, probability_wrong=judged.get(line.event_id) or 0.0)
        for line in after
    ]
    messages: list[Message] = []
    was, left = by_event(before), by_event(log)
    changed = {line.event_id for line in _differing(before, log)}
    for event_id in [event_id for event_id in {**was, **left} if event_id in changed]:
        lines = left.get(event_id, [])
        old, line = _last(was.get(event_id, [])), _last(lines)
        if not is_undo and old is not None and old.y is not None:
            added = _restated(old, lines, moderator.lines.sequence + 1, now)
            if added is not None:
                moderator.lines.sequence += 1
                log.append(added)
                messages.append(added)
                line = added
        record = memory.get(event_id)
        if record is not None and (record.is_learned or record.revision) and line is not None:
            moderator.rollback.touch(record)
            why = _WHY_AGAIN if is_undo else _WHY
            messages += moderator.follow(record, line, lines, now, why)
    _take_up(moderator, model, taught, log)
    return messages, log


def _take_up(
    moderator: Moderator, model: Unlearning, taught: Unlearning, log: Sequence[LabelledExample]
) -> None:
    """Bring the model of a loop to what another one was taught from a log, which the loop holds."""
    state = model.state_taught_as(taught)
    moderator.journal.call(model.reset_to, state, examples_in(log))
    moderator.lines.replace(log)


def disregarded(
    moderator: Moderator,
    annotator: str,
    now: float,
    why: str,
) -> list[Cancel]:
    """Drop the labels of an annotator that are contested and were not learned yet."""
    cancels = []
    for record in moderator.memory.open_ones():
        if _is_contested(record, annotator):
            moderator.rollback.touch(record)
            cancels.append(moderator.disregard(record, now, why))
    return cancels


def _is_contested(record: Conversation, annotator: str) -> bool:
    label = record.label
    return record.state == "challenged" and label is not None and label.annotator == annotator


def _restated(
    old: LabelledExample, lines: Sequence[LabelledExample], sequence: int, now: float
) -> LabelledExample | None:
    """Return the line that says what stands now, None if that is unchanged.

    `lines` is what is left of the event.
    """
    line = _last(lines)
    if line is None or line.y is None:
        return LabelledExample(
            event_id=old.event_id,
            key=old.key,
            revision=old.revision + 1,
            sequence=sequence,
            x=old.x,
            y=None,
            origin="withdrawn",
            learned_at=now,
        )
    if line.y == old.y and type(line.y) is type(old.y) and line.privileged == old.privileged:
        return None
    # A line about a second answer that has not prevailed also carries its annotator's name.
    has_prevailed = line.origin == "aggregated" and line.given is None and line.annotator
    answer = line if has_prevailed else last_answer(lines) or line
    return replace(
        line,
        revision=old.revision + 1,
        sequence=sequence,
        origin="revised",
        annotator=answer.annotator,
        learned_at=now,
        probability_wrong=None,
        challenged=False,
        given=None,
        given_by=None,
        volunteered=False,
    )


def _last(lines: Sequence[LabelledExample]) -> LabelledExample | None:
    return lines[-1] if lines else None


def _differing(
    before: Sequence[LabelledExample], after: Sequence[LabelledExample]
) -> Iterable[LabelledExample]:
    """Yield the lines that are in only one of two logs, or differ between them."""
    one, other = ({name_of(line): line for line in lines} for lines in (before, after))
    for name in one.keys() | other.keys():
        if one.get(name) != other.get(name):
            yield one.get(name) or other[name]
