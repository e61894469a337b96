"""Consensus log without the answers of one annotator, and with them again.

What others have said about the same events before or after stands again. The log is read here, and
nothing is taught: see `retract.py`.

"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from streamgp.common.printable import printable
from streamgp.interactive.consensus_log import by_event, by_sequence, in_force, name_of
from streamgp.interactive.messages import LabelledExample, Origin, Retraction


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
    lines = {name_of(line): line for line in in_force(log) if name_of(line) not in made}
    back = [
        line
        for line in retraction.taken
        if name_of(line) not in lines or lines[name_of(line)].sequence == line.sequence
    ]
    found = in_force({**lines, **{name_of(line): line for line in back}}.values())
    return found, [line for line in back if line in found]


def merged(earlier: Retraction | None, later: Retraction) -> Retraction:
    """Combine two retractions of one annotator into one that undoes both."""
    if earlier is None:
        return later
    known = {name_of(line) for line in earlier.taken}
    both = earlier.since, later.since
    since = None if None in both else min(each for each in both if each is not None)
    return replace(
        later,
        since=since,
        taken=(*earlier.taken, *(line for line in later.taken if name_of(line) not in known)),
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


# --- inside


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
                found = _with_details(found, before, left[-1] if left else None)
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
    origin: Origin = "volunteered" if line.volunteered else "asked"
    return replace(
        alone, y=line.said, origin=origin, annotator=line.given_by, privileged=None, std=None
    )


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
        y=line.said,
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
