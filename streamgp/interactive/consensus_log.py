"""The consensus log as it stands: its lines, those that count, and the examples that they leave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from streamgp.base import Example, SettledAnswer
from streamgp.interactive.messages import LabelledExample


class HeldLines:
    """The lines of a consensus log that define the current labels: what a loop keeps of its log.

    Iteration yields them in the order learned. The lines about an event end with its withdrawal.

    Attributes
    ----------
    sequence
        Number of the last line of the log.

    Examples
    --------
    >>> from streamgp.interactive.messages import LabelledExample
    >>> def line(event_id, revision, sequence, y):
    ...     return LabelledExample(
    ...         event_id=event_id, revision=revision, sequence=sequence, x={}, y=y,
    ...         origin="withdrawn" if y is None else "asked", learned_at=0.0,
    ...     )
    >>> lines = HeldLines()
    >>> for each in (line("e1", 0, 1, "a"), line("e2", 0, 2, "b"), line("e1", 1, 3, "b")):
    ...     lines.add(each)
    >>> [(each.event_id, each.revision) for each in lines]
    [('e1', 0), ('e2', 0), ('e1', 1)]
    >>> lines.add(line("e1", 2, 4, None))
    >>> [each.event_id for each in lines]
    ['e2']

    """

    # _about   the lines about each event
    # _before  those about the events that the current input concerns, as they were before it
    # _last    `sequence` before the current input
    __slots__ = ("_about", "_before", "_last", "sequence")

    def __init__(self) -> None:
        self.sequence = self._last = 0
        self._about: dict[str, tuple[LabelledExample, ...]] = {}
        self._before: dict[str, tuple[LabelledExample, ...]] = {}

    def __iter__(self) -> Iterator[LabelledExample]:
        return iter(by_sequence(line for about in self._about.values() for line in about))

    def add(self, line: LabelledExample) -> None:
        """Add the next line of the log."""
        before = () if line.revision == 0 else self._about.get(line.event_id, ())
        self._put(line.event_id, () if line.y is None else (*before, line))

    def replace(self, lines: Iterable[LabelledExample]) -> None:
        """Replace all lines by those of another log, in their order."""
        for event_id in list(self._about):
            self._put(event_id, ())
        for line in lines:
            self.add(line)

    def has_replaced(self, event_id: str, revision: int) -> bool:
        """Whether the label of an event is that of a later line than that of a revision."""
        about = self._about.get(event_id)
        return about is not None and about[-1].revision > revision

    def first_probability_wrong(self, event_id: str) -> float | None:
        """Return how much the first answer about an event counts as wrong, None if not known."""
        found = (line.probability_wrong for line in self._about.get(event_id, ()))
        return next((w for w in found if w is not None), None)

    def begin(self) -> None:
        """Begin an input: `undo` restores what is held now."""
        self._last = self.sequence
        self._before.clear()

    def undo(self) -> None:
        """Restore what was held when the input began."""
        for event_id, about in list(self._before.items()):
            self._put(event_id, about)
        self._before.clear()
        self.sequence = self._last

    def _put(self, event_id: str, about: tuple[LabelledExample, ...]) -> None:
        self._before.setdefault(event_id, self._about.get(event_id, ()))
        if about:
            self._about[event_id] = about
        else:
            self._about.pop(event_id, None)


def by_sequence(lines: Iterable[LabelledExample]) -> list[LabelledExample]:
    """Return lines of one key in the order learned."""
    return sorted(lines, key=lambda line: line.sequence)


def by_event(lines: Iterable[LabelledExample]) -> dict[str, list[LabelledExample]]:
    """Return the lines about each event, in their order."""
    about: dict[str, list[LabelledExample]] = {}
    for line in lines:
        about.setdefault(line.event_id, []).append(line)
    return about


def name_of(line: LabelledExample) -> tuple[str, int]:
    """Return what identifies a line in the log of one key."""
    return line.event_id, line.revision


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


def last_answer(lines: Sequence[LabelledExample]) -> LabelledExample | None:
    """Return the line of the last answer about an event, second answers aside, or None."""
    return next((line for line in reversed(lines) if line.origin != "aggregated"), None)


def labelled_by(lines: Sequence[LabelledExample]) -> str | None:
    """Return the annotator of the label that stands, from the lines in force about its event.

    Of a label that was weighed against a second answer it is the annotator who prevailed.

    Examples
    --------
    >>> line = dict(event_id="e1", x={}, y="home", learned_at=0.0)
    >>> first = LabelledExample(sequence=1, annotator="ann", origin="asked", **line)
    >>> second = LabelledExample(
    ...     sequence=2, revision=1, annotator="bob", origin="aggregated", given="gym", **line
    ... )
    >>> labelled_by([first, second])
    'ann'

    """
    answer = last_answer(lines)
    return (lines[-1] if answer is None or answer.y != lines[-1].y else answer).annotator


# --- The examples that a log leaves.


def examples_in(log: Iterable[LabelledExample]) -> list[Example]:
    """Return the examples that a consensus log leaves for one key, in the order learned.

    Parameters
    ----------
    log
        The lines of one key, in any order; `sequence` gives their order.

    Examples
    --------
    >>> line = dict(event_id="e1", x={"light": 0.5}, learned_at=0.0)
    >>> log = [
    ...     LabelledExample(sequence=1, y="home", origin="asked", **line),
    ...     LabelledExample(sequence=2, y="work", origin="revised", revision=1, **line),
    ... ]
    >>> [example.y for example in examples_in(log)]
    ['work']

    """
    held: dict[str, Example] = {}
    read_on(held, log)
    return list(held.values())


def read_on(held: dict[str, Example], log: Iterable[LabelledExample]) -> None:
    """Apply further lines of a consensus log to the examples that a model holds, by event id."""
    for line in by_sequence(log):
        if line.y is None or line.revision == 0:
            # The first line about an event: if an earlier conversation left lines in a compacted
            # log, they are not about an example that is still held.
            held.pop(line.event_id, None)
        if line.y is not None:
            before = held.get(line.event_id)
            answer = settled_answer(line)
            if answer is None and before is not None and before.answer is not None:
                answer = before.answer
                if line.origin != "aggregated":
                    answer = answer.corrected_by(line.annotator, line.y)
            if answer is not None and answer.second is None:
                # A corrected answer counts as it was first given.
                second = second_answer(line, answer.annotator)
                answer = answer if second is None else replace(answer, second=second)
            held[line.event_id] = Example(
                event_id=line.event_id,
                x=line.x,
                y=line.y,
                privileged=line.privileged,
                answer=answer,
            )


def settled_answer(line: LabelledExample) -> SettledAnswer | None:
    """Return the first answer that a line of the consensus log is about, None for a correction.

    Lines of earlier versions do not tell what a changed answer was.

    Examples
    --------
    >>> line = dict(event_id="e1", sequence=1, x={}, y="home", learned_at=0.0, annotator="ann")
    >>> settled_answer(LabelledExample(**line, origin="asked", probability_wrong=0.1))
    SettledAnswer(y='home', annotator='ann', upheld=None, ..., was_asked=True, corrected=None)
    >>> settled_answer(
    ...     LabelledExample(
    ...         **line, origin="revised", probability_wrong=1.0, given="gym", challenged=True,
    ...         given_by="ann",
    ...     )
    ... )
    SettledAnswer(y='gym', ..., upheld=False, second=None, was_asked=True, corrected='home')

    """
    if line.probability_wrong is None or line.y is None or line.said is None:
        return None
    if line.challenged:
        return SettledAnswer.settled(
            line.said,
            line.y,
            line.given_by,
            challenged=True,
            was_asked=not line.volunteered,
            final_by=line.annotator,
        )
    if line.origin == "revised":
        return SettledAnswer(y=None, annotator=line.annotator, upheld=False)
    upheld_then = True if line.origin == "upheld" else None
    was_asked = line.origin != "volunteered"
    return SettledAnswer(
        y=line.y, annotator=line.annotator, upheld=upheld_then, was_asked=was_asked
    )


def second_answer(line: LabelledExample, first_by: str | None) -> SettledAnswer | None:
    """Return the second annotator's answer that a line of the consensus log is about.

    None if there is none, or if it is a second answer of the annotator `first_by`, who gave the
    first one: it tells nothing more about the label.

    Examples
    --------
    >>> line = LabelledExample(
    ...     event_id="e1", sequence=2, revision=1, x={}, y="home", origin="aggregated",
    ...     learned_at=0.0, annotator="bob", given="gym",
    ... )
    >>> second_answer(line, "ann").y, second_answer(line, "bob")
    ('gym', None)

    """
    if line.origin != "aggregated" or line.annotator in (None, first_by):
        return None
    return SettledAnswer(y=line.said, annotator=line.annotator)
