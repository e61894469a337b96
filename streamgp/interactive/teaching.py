"""Teaches a learner the contents of a consensus log.

The learner is taught each example once, with its final label; no request is made.

"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from streamgp.base import Example, Label
from streamgp.common.label_context import AcceptedOptions, LabelContext
from streamgp.common.signatures import narrowed
from streamgp.interactive.consensus_log import by_sequence, examples_in
from streamgp.interactive.learner import ComparesAnswers, SkepticalLearner, predicted_target
from streamgp.interactive.messages import LabelledExample
from streamgp.interactive.validation import with_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Taught:
    """One example of the log, and the learner's reaction to it.

    Parameters
    ----------
    event_id
        The event.
    y
        Its label.
    predicted
        What the learner predicted before it saw the label; None if it made no prediction.
    refusal
        Why the learner could not take the example; None if it did.
    probability_wrong
        How much the first answer counts as wrong by what the learner then knew; None if it could
        not take the example.

    """

    event_id: str
    y: Label
    predicted: Label | None
    refusal: str | None = None
    probability_wrong: float | None = None


def teach(
    model: SkepticalLearner, log: Iterable[LabelledExample], *, observed: bool = False
) -> Iterator[Taught]:
    """Teach a learner the examples that a consensus log has of one key, in the order learned.

    Each is predicted before it is learned. The estimate of how often an annotator errs counts a
    challenged answer as it was counted at the time, and any other answer as the learner itself
    judges it, whatever it was corrected to later. A rule that learns from labels is told of those
    that it has asked for, and of unasked labels that were challenged: the log does not distinguish
    these. The budget is told of no question.

    Parameters
    ----------
    model
        A learner that has been taught nothing.
    log
        The lines of one key, in any order.
    observed
        Whether it has already observed the events.

    Yields
    ------
    One entry for each example.

    Examples
    --------
    >>> from streamgp import isgp
    >>> log = [
    ...     LabelledExample(
    ...         event_id=f"e{n}", sequence=n, x={"light": light}, y=y, origin="asked",
    ...         learned_at=float(n), probability_wrong=0.1,
    ...     )
    ...     for n, (light, y) in enumerate([(0.1, "night"), (0.9, "day"), (0.2, "night")])
    ... ]
    >>> [taught.predicted for taught in teach(isgp(seed=1), log)]
    [None, 'night', 'night']

    """
    lines = list(log)
    first_answers = {line.event_id: line for line in by_sequence(lines) if _is_first_answer(line)}
    examples = examples_in(lines)
    labels = list(dict.fromkeys(example.y for example in examples))
    accepted, comparing = AcceptedOptions(model), narrowed(model, ComparesAnswers)
    for example in examples:
        event_id, x, y = example.event_id, example.x, example.y
        assert event_id is not None  # a line names its event
        predicted = None
        try:
            if not observed:
                model.observe_one(x)
            found = predicted_target(model, x)
            predicted = found.y
            line = first_answers.get(event_id)
            challenged, given = _first_label(line, y, labels, found.mean)
            context = _context(line, example, challenged=challenged)
            w = model.settle_one(
                x,
                y,
                given=given,
                challenged=challenged,
                annotator=context.annotator,
                event_id=event_id,
                **accepted.of("settle_one", context),
            )
            second = None if example.answer is None else example.answer.second
            if comparing is not None and second is not None and second.y is not None:
                comparing.note_second(
                    event_id, second.y, annotator=second.annotator, probability_wrong=w
                )
        except (ValueError, TypeError) as error:
            yield Taught(event_id=event_id, y=y, predicted=predicted, refusal=with_names(error, x))
        else:
            yield Taught(event_id=event_id, y=y, predicted=predicted, probability_wrong=w)


def _is_first_answer(line: LabelledExample) -> bool:
    """Whether the line is about a first answer; corrections and withdrawals are not."""
    return line.probability_wrong is not None and line.y is not None


def _first_label(
    line: LabelledExample | None, y: Label, labels: list[Label], mean: float | None
) -> tuple[bool, Label]:
    """Return whether a first answer was challenged, and what it said.

    Lines of earlier versions do not contain a label that was given up: any other one stands for it.
    For a number, where `mean` is the forecast, one far enough off to count as given up.
    """
    if line is None:
        return False, y
    if line.given is not None:
        return True, line.given
    if line.origin == "upheld":
        return True, y
    if line.origin != "revised":
        assert line.y is not None  # a first answer has a label
        return False, line.y
    if mean is not None and not isinstance(y, str):
        return True, y + (2.0 * (y - mean) if line.probability_wrong else 0.0)
    other = next((label for label in labels if label != y), None)
    return (False, y) if other is None else (True, other)


def _context(line: LabelledExample | None, example: Example, *, challenged: bool) -> LabelContext:
    """Return the context of a label for a learner that is taught from the log."""
    if line is None:
        return LabelContext(privileged=example.privileged, asked=False)
    annotator = line.first_by
    # Stated with the first answer if that was not challenged, or confirmed by its annotator.
    is_of_first = not challenged or (line.origin == "upheld" and line.annotator == annotator)
    return LabelContext(
        annotator=annotator,
        std=line.std if is_of_first else None,
        privileged=example.privileged,
        # What came with a correction says nothing about the answer that it corrects.
        given_privileged=line.privileged or {},
        asked=not (line.origin == "volunteered" or line.volunteered or line.asked_back),
        answer=example.answer,
    )
