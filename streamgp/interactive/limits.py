"""Limits of what one loop learns of: what an input would add, and whether that is too much.

What is kept for each label, feature and annotator is kept for ever; without limits a client
that may write inputs could make a loop, and its state, as large as it likes.

"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamgp.interactive.conversation_record import Record
from streamgp.interactive.learner import KnowsNames, SkepticalLearner, predicted_target
from streamgp.interactive.messages import Answer
from streamgp.interactive.people import People

if TYPE_CHECKING:
    from streamgp.base import Features, Label


def excess_of_features(known: KnowsNames | None, x: Features, people: People) -> str | None:
    """Say by what the features of an event go beyond the limit, None if they do not."""
    n = len(x) if known is None else known.n_features_with(x)
    return _excess(n, "max_features", people.max_features, "names of features")


def excess_of_label(
    model: SkepticalLearner, x: Features, y: Label | None, people: People
) -> str | None:
    """Say by what the label of an event goes beyond the limit, None if it does not, or is None."""
    # A learner of fewer examples cannot know so many.
    if y is None or model.n_learned < people.max_labels:
        return None
    known = predicted_target(
        model, x
    ).proba  # of each label that it knows; of numbers there is none
    if not known or y in known:
        return None
    return _excess(len(known) + 1, "max_labels", people.max_labels, "different labels")


def excess_of_answer(
    model: SkepticalLearner,
    known: KnowsNames | None,
    record: Record,
    answer: Answer,
    people: People,
) -> str | None:
    """Say by what an answer goes beyond the limits, None if it does not.

    Parameters
    ----------
    model
        The model.
    known
        The same, if it tells which names it knows.
    record
        The conversation about the event of the answer.
    answer
        The answer.
    people
        The limits.

    """
    excess = _excess(len(record.answers), "max_corrections", people.max_corrections, "corrections")
    if excess is not None:
        return excess
    if known is not None:
        names = known.annotators()
        if answer.annotator is not None and answer.annotator not in names:
            n = len(names) + 1
            excess = _excess(n, "max_annotators", people.max_annotators, "annotators")
    return excess or excess_of_label(model, record.event.x, answer.y, people)


def _excess(n: int, name: str, most: int, what: str) -> str | None:
    if n <= most:
        return None
    return f"this would be {n} {what}, expected at most {most}; raise {name} if they are meant"
