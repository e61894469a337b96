"""Retraction of one annotator's labels, as if the learner had never been taught them; and its undo.

The consensus log is what counts. `without` removes the answers of one annotator from it; a learner
is taught what is left, in the order learned, and the conversations are made to agree. So the
learner and the reliability of annotators afterwards are, bitwise, those rebuilt from the log
without that annotator's lines. What was asked, spent and predicted is not undone.

"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from streamgp.common.printable import printable
from streamgp.interactive.consensus_log import by_event, by_sequence, examples_in, last_answer
from streamgp.interactive.learner import SkepticalLearner
from streamgp.interactive.messages import Cancel, LabelledExample, Message, Origin, Retraction
from streamgp.interactive.rollback import ResettableLearner
from streamgp.interactive.state.serialize import HEAD, record_of
from streamgp.interactive.teaching import teach

if TYPE_CHECKING:
    from streamgp.base import Example, State
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


def in_force(log: Iterable[LabelledExample]) -> list[LabelledExample]:
    """Return the lines of a consensus log that count, in the order learned.

    Lines before a withdrawal do not count, nor withdrawals that are followed by a label, nor lines
    of an earlier event with the same id.

    Examples
    --------
    >>> def line(revision, y):
    ...     return LabelledExample(
    ...         event_id="e1", revision=revision, sequence=revision + 1, x={}, y=y,
    ...         origin="withdrawn" if y is None else "asked", learned_at=0.0,
    ...     )
    >>> [each.revision for each in in_force([line(0, "a"), line(1, None)])]
    [1]
    >>> [each.revision for each in in_force([line(0, "a"), line(1, None), line(2, "b")])]
    [2]

    """
    about: dict[str, list[LabelledExample]] = {}
    for line in by_sequence(log):
        lines = about.setdefault(line.event_id, [])
        if line.y is None or line.revision == 0 or (lines and lines[-1].y is None):
            lines.clear()
        lines.append(line)
    return by_sequence(line for lines in about.values() for line in lines)


def without(
    log: Iterable[LabelledExample], annotator: str, since: float | None = None
) -> tuple[list[LabelledExample], list[LabelledExample]]:
    """Return a consensus log without the answers of one annotator, and the lines that had them.

    A challenged label has two answers: if the last one is taken out, the first stands again; if the
    first one is, the last stands as if it had been the first. In the same way, what others have
    said before or after stands again. Withdrawals stay: what was withdrawn is no longer in the log.

    Parameters
    ----------
    log
        The lines of one key, in any order.
    annotator
        The annotator whose answers are taken out.
    since
        Only those in lines learned at this time or later, POSIX seconds; None for all.

    Returns
    -------
    What is left of the lines in force, and the lines that were taken out or changed, as they were.
    Privileged information that a correction took over from an answer goes with that answer.
    For a first answer, the probability that it was wrong is 0 until a learner has judged it.

    Examples
    --------
    >>> def line(n, y, annotator, **rest):
    ...     return LabelledExample(
    ...         event_id="e1", revision=n, sequence=n + 1, x={}, y=y, annotator=annotator,
    ...         origin="revised", learned_at=float(n), **rest,
    ...     )
    >>> log = [
    ...     line(0, "hall", "ann", probability_wrong=1.0, given="den", challenged=True,
    ...          given_by="bob"),
    ...     line(1, "bath", "bob"),
    ... ]
    >>> left, taken = without(log, "bob")
    >>> [(each.y, each.annotator, each.challenged) for each in left], len(taken)
    ([('hall', 'ann', False)], 2)
    >>> left, taken = without(log, "ann")
    >>> [(each.y, each.annotator) for each in left], len(taken)
    ([('den', 'bob'), ('bath', 'bob')], 1)

    """
    left: list[LabelledExample] = []
    taken: list[LabelledExample] = []
    for lines in by_event(in_force(log)).values():
        left_of_event, taken_of_event = _without(lines, annotator, since)
        left += left_of_event
        taken += taken_of_event
    return by_sequence(left), by_sequence(taken)


def with_again(
    log: Iterable[LabelledExample], retraction: Retraction
) -> tuple[list[LabelledExample], list[LabelledExample]]:
    """Return a consensus log with what a retraction has taken out of it, and the lines put back.

    What was said since stays, and prevails where it came later. An event whose id has been reused
    since stays as it is.
    """
    made = set(retraction.made)
    lines = {_name(line): line for line in in_force(log) if _name(line) not in made}
    back = [
        line
        for line in retraction.taken
        if _name(line) not in lines or lines[_name(line)].sequence == line.sequence
    ]
    found = in_force({**lines, **{_name(line): line for line in back}}.values())
    return found, [line for line in back if line in found]


def merged(earlier: Retraction | None, later: Retraction) -> Retraction:
    """Combine two retractions of one annotator into one that undoes both."""
    if earlier is None:
        return later
    known = {_name(line) for line in earlier.taken}
    both = earlier.since, later.since
    since = None if None in both else min(each for each in both if each is not None)
    return replace(
        later,
        since=since,
        taken=(*earlier.taken, *(line for line in later.taken if _name(line) not in known)),
        made=(*earlier.made, *later.made),
    )


def kept_of(kept: Iterable[Retraction], annotator: str) -> Retraction | None:
    """Return all retractions of an annotator, on request or by a quarantine, as one.

    Parameters
    ----------
    kept
        Retractions of any annotator, the earliest first.

    """
    found: Retraction | None = None
    for each in kept:
        if each.annotator == annotator:
            found = merged(found, each)
    return found


def to_undo(kept: Sequence[Retraction], annotator: str) -> Retraction | None:
    """Return the retraction of an annotator's labels to undo; None if there is none.

    Raises
    ------
    ValueError
        If labels of another annotator about the same events were retracted later.

    """
    mine = kept_of(kept, annotator)
    if mine is None:
        return None
    events = {line.event_id for line in mine.taken}
    for other in kept:
        if other.at > mine.at and events & {line.event_id for line in other.taken}:
            raise ValueError(
                f"labels of {printable(repr(other.annotator))} about the same events were taken "
                "back later; undo that first"
            )
    return mine


def contests(parts: Mapping[str, Any], annotator: str) -> bool:
    """Whether a label of an annotator is contested and was not learned yet."""
    segments = [part["recent"] if name == HEAD else part for name, part in parts.items()]
    for plain in chain.from_iterable(segment or () for segment in segments):
        record, _ = record_of(plain, lambda _: None)
        label = record.label
        if record.state == "challenged" and label is not None and label.annotator == annotator:
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
    made = tuple(_name(line) for line in left if line.sequence >= first)
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
    before = {_name(line): line for line in log}
    sequences = {m.sequence for m in done.messages if isinstance(m, LabelledExample)}
    changed = [
        line
        for line in done.log
        if before.get(_name(line)) != line and line.sequence not in sequences
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
    left = [line for line in moderator.lines if _name(line) != (event_id, revision)]
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
    known, taught = {_name(line): line for line in before}, model.unlearned(examples_in(after))
    judged = {each.event_id: each.probability_wrong for each in teach(taught, after, observed=True)}
    log = [
        line
        if known.get(_name(line)) == line or line.probability_wrong is None or is_undo
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
        label = record.label
        if record.state == "challenged" and label is not None and label.annotator == annotator:
            moderator.rollback.touch(record)
            cancels.append(moderator.disregard(record, now, why))
    return cancels


def _without(
    lines: Sequence[LabelledExample], annotator: str, since: float | None
) -> tuple[list[LabelledExample], list[LabelledExample]]:
    """Return the lines about one event without the answers of an annotator; see `without`."""
    left: list[LabelledExample] = []
    taken: list[LabelledExample] = []
    first: LabelledExample | None = None  # the last line so far that is not about a second answer
    stands: LabelledExample | None = None  # what is left of such lines
    before: LabelledExample | None = None  # the line before
    for line in lines:
        is_meant = since is None or line.learned_at >= since
        found = _line_without(line, annotator) if is_meant else line
        if found is not None and taken:  # an answer before it is gone, or another one
            if line.origin == "aggregated":
                found = _as_second(found, first, stands, is_alone=not left)
            else:
                found = _with_details(found, before, _last(left))
                if not left:
                    found = _as_first(found)  # the answer that it corrects is gone
        if found != line:
            taken.append(line)
        if found is not None:
            left.append(found)
        elif line.annotator is None:
            # The last second answer was taken back, and no first one is left.
            taken += [each for each in left if each in lines]
            left.clear()
        if line.origin != "aggregated":
            first, stands = line, found or stands
        before = line
    return left, taken


def _line_without(line: LabelledExample, annotator: str) -> LabelledExample | None:
    """Return a line without the answers of one annotator, None if nothing is left.

    A challenged label has two answers, any other one has one, and a withdrawal has none.
    """
    is_last = line.annotator == annotator
    is_first = line.challenged and line.given_by == annotator
    if line.y is None or not (is_first or is_last):
        return line
    if is_last and (is_first or not line.challenged):
        return None
    alone = replace(_as_first(line), challenged=False, given=None, given_by=None, volunteered=False)
    if is_first:
        return alone
    # What came with the last answer tells nothing about the first one.
    y = line.y if line.given is None else line.given
    origin: Origin = "volunteered" if line.volunteered else "asked"
    return replace(alone, y=y, origin=origin, annotator=line.given_by, privileged=None, std=None)


def _as_first(line: LabelledExample) -> LabelledExample:
    """Return a line as if it were about the first answer on its event."""
    return replace(line, origin="asked", probability_wrong=0.0)


def _with_details(
    line: LabelledExample, before: LabelledExample | None, left: LabelledExample | None
) -> LabelledExample:
    """Return a correction with the details of what it corrects now, if it took them over.

    A correction without details of its own has those of the label before it, which belong to
    the annotator of that label. The log tells this by equality alone.

    Parameters
    ----------
    line
        The correction.
    before
        The line before it, as it was.
    left
        The line before it that is left, None if there is none.

    """
    if before is None or line.privileged is None or line.privileged != before.privileged:
        return line
    return replace(line, privileged=None if left is None else left.privileged)


def _as_second(
    line: LabelledExample,
    first: LabelledExample | None,
    stands: LabelledExample | None,
    *,
    is_alone: bool,
) -> LabelledExample | None:
    """Return a line about a second answer after an answer before it was removed.

    The two answers are not weighed again: a second answer that has prevailed prevails over any
    first one, any other gives way to whatever first answer stands.

    =================  =====================================  ============================
    first answer       second answer                          what the line tells
    =================  =====================================  ============================
    is the same        any                                    the same
    is another one     has prevailed                          the second answer
    is another one     has given way, or was taken back       the other first answer
    is gone            was given                              the second answer [1]
    is gone            was taken back                         nothing [2]
    =================  =====================================  ============================

    [1] as a first answer or, if it is not alone, as a correction of the one before
    [2] None, and the lines before it are to be removed as well

    Privileged information stays if it came with the answer that the line then tells.

    Parameters
    ----------
    first
        Line of the first answer, against which it was weighed; None if the log lacks it. A
        correction of the first answer takes its place.
    stands
        What is left of first answers; None if nothing is.
    is_alone
        Whether no line about the event is left before it.

    """
    if stands is not None and stands == first:
        return line
    is_taken_back = line.annotator is None
    has_prevailed = line.given is None and not is_taken_back
    # Where both say the same, what is known came with the first one.
    is_its_own = has_prevailed and first is not None and line.y != first.y
    second = replace(
        line,
        y=line.y if line.given is None else line.given,
        given=None,
        privileged=line.privileged if is_its_own else None,
    )
    if stands is not None and not has_prevailed:
        given = None if line.given == stands.y else line.given
        return replace(line, y=stands.y, given=given, privileged=stands.privileged)
    if stands is not None:
        return second
    if is_taken_back:
        return None
    return _as_first(second) if is_alone else replace(second, origin="revised")


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
    one, other = ({_name(line): line for line in lines} for lines in (before, after))
    for name in one.keys() | other.keys():
        if one.get(name) != other.get(name):
            yield one.get(name) or other[name]


def _name(line: LabelledExample) -> tuple[str, int]:
    """Return what identifies a line in the log of one key."""
    return line.event_id, line.revision
