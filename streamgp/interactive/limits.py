"""Limits of what one loop learns: what an input would add, and whether that is too much.

What is stored for each label, feature and annotator is stored for ever: without limits a client
that may write inputs could make a loop, and its state, as large as it likes. Labels that were not
asked for have a limit per hour, which bounds what an annotator can teach before the others can
judge it.

"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from streamgp.interactive.conversation_record import Conversation
from streamgp.interactive.learner import KnowsNames, SkepticalLearner, predicted_target
from streamgp.interactive.messages import Answer
from streamgp.interactive.people import People

if TYPE_CHECKING:
    from streamgp.base import Features, Label


_HOUR_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class UnaskedLabels:
    """Number of labels that each annotator of one loop has given unasked in the current hour.

    A label is unasked if its event was neither asked about nor challenged, and it does not correct
    what its annotator has said. All answers without an annotator count as those of one annotator. A
    label that comes with an event is not an answer and does not count.

    The time is that of answers and their events, and does not run backwards: an annotator gains
    nothing by backdating answers.

    Parameters
    ----------
    hour
        Number of the hour since the epoch.
    counts
        Number of labels given in it, by annotator.

    Examples
    --------
    >>> unasked = UnaskedLabels().plus("ann", at=7200.0).plus("ann", at=60.0)
    >>> unasked.n_of("ann", at=7300.0), unasked.n_of("ann", at=10800.0), unasked.state()
    (2, 0, {'hour': 2, 'counts': [['ann', 2]]})
    >>> UnaskedLabels.of(unasked.state()) == unasked, UnaskedLabels().state()
    (True, {})

    """

    hour: int = 0
    counts: Mapping[str | None, int] = field(default_factory=dict)

    def n_of(self, annotator: str | None, at: float) -> int:
        """Return the number of labels of an annotator in the hour of a time, in seconds."""
        return 0 if _hour(at) > self.hour else self.counts.get(annotator, 0)

    def plus(self, annotator: str | None, at: float) -> UnaskedLabels:
        """Return the counts with one more label."""
        hour = _hour(at)
        counts = {} if hour > self.hour else self.counts
        n = counts.get(annotator, 0) + 1
        return UnaskedLabels(max(hour, self.hour), {**counts, annotator: n})

    def state(self) -> dict[str, Any]:
        """Return the counts as plain values, {} if there are none."""
        if not self.counts:
            return {}
        return {"hour": self.hour, "counts": [list(each) for each in self.counts.items()]}

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Self:
        """Return the counts from which `state` was made."""
        return cls(int(state.get("hour", 0)), {name: int(n) for name, n in state.get("counts", ())})


def _hour(at: float) -> int:
    return int(at // _HOUR_S)


def is_unasked(record: Conversation, answer: Answer) -> bool:
    """Whether an answer gives or withdraws a label that its annotator was not asked for."""
    if record.was_asked or record.n_challenges or (answer.declined and answer.supersedes is None):
        return False
    return answer.annotator is None or record.standing_by != answer.annotator


def excess_of_unasked(
    unasked: UnaskedLabels, annotator: str | None, at: float, people: People
) -> str | None:
    """Say how an unasked label exceeds the limit, None if it does not."""
    if people.is_trusted(annotator):
        return None
    n, most = unasked.n_of(annotator, at) + 1, people.max_unasked_per_hour
    return _excess(n, "max_unasked_per_hour", most, "labels within an hour that were not asked for")


def excess_of_features(known: KnowsNames | None, x: Features, people: People) -> str | None:
    """Say how the features of an event exceed the limit, None if they do not."""
    n = len(x) if known is None else known.n_features_with(x)
    return _excess(n, "max_features", people.max_features, "names of features")


def excess_of_label(
    model: SkepticalLearner, x: Features, y: Label | None, people: People
) -> str | None:
    """Say how the label of an event exceeds the limit, None if it does not or there is no label."""
    # A learner with fewer examples cannot know so many.
    if y is None or model.n_learned < people.max_labels:
        return None
    # Of each label that it knows; of numbers there is none.
    known = predicted_target(model, x).proba
    if not known or y in known:
        return None
    return _excess(len(known) + 1, "max_labels", people.max_labels, "different labels")


def excess_of_answer(
    model: SkepticalLearner,
    known: KnowsNames | None,
    record: Conversation,
    answer: Answer,
    people: People,
    quarantined: Collection[str],
) -> str | None:
    """Say how an answer exceeds the limits, None if it does not."""
    n, most = len(record.answers), people.max_corrections
    if n > most:
        said_by = [name for name, _ in record.answers if name not in quarantined]
        is_second = record.is_second_of(answer.annotator)
        n = people.n_said(said_by, answer.annotator, is_second=is_second)
    excess = _excess(n, "max_corrections", most, "corrections")
    if excess is None and answer.privileged is not None:
        n = len(answer.privileged)
        excess = _excess(n, "max_features", people.max_features, "names of privileged features")
    if excess is not None:
        return excess
    # A client that uses up the names must not keep supervisors from taking its labels back.
    if known is not None and not people.is_trusted(answer.annotator):
        names = known.annotators()
        if answer.annotator is not None and answer.annotator not in names:
            n = len(names) + 1
            excess = _excess(n, "max_annotators", people.max_annotators, "annotators")
    return excess or excess_of_label(model, record.event.x, answer.y, people)


def _excess(n: int, name: str, most: int, what: str) -> str | None:
    if n <= most:
        return None
    return f"this would be {n} {what}, expected at most {most}; raise {name} if they are meant"
