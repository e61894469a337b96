"""Quarantine of annotators who mislead: their further answers are not learned.

An annotator is judged by the labels of the others (`streamgp.common.annotator_quarantine`), before
an answer is weighed, whenever the number of answers has grown by an eighth. If the evidence exceeds
the threshold, all annotators are judged, and the one with the most evidence against them is put in
quarantine: an annotator who floods a learner with lies makes the others look like liars, but less
so. The next judgement leaves out the labels of those in quarantine.

Annotators are told apart by the log, and nothing else decides: who is in quarantine follows from
the inputs in their order. What the annotator has taught before is then retracted (`retract.py`).

"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, cast, runtime_checkable

from streamgp.common.annotator_quarantine import FEWEST, THRESHOLD, WITNESSES
from streamgp.common.signatures import has_methods
from streamgp.interactive.learner import KnowsNames, SkepticalLearner
from streamgp.interactive.people import People


@runtime_checkable
class JudgesAnnotators(KnowsNames, Protocol):
    """A learner that returns the evidence against an annotator."""

    def n_answers(self, annotator: str | None) -> int:
        """Return the number of first answers of an annotator that were learned."""

    def evidence_against(self, annotator: str, without: Collection[str] = ()) -> float:
        """Return the evidence that an annotator misleads; pure.

        `without` names annotators whose labels are left out.
        """


def as_judge(model: SkepticalLearner) -> JudgesAnnotators | None:
    """Return a model if it judges annotators, else None."""
    judges = has_methods(type(model), JudgesAnnotators)
    return cast("JudgesAnnotators", model) if judges else None


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Annotators in quarantine, and the number of answers of each annotator when last judged.

    Examples
    --------
    >>> quarantine = Quarantine(names=("eve",), judged={"ann": 12, "eve": 16})
    >>> quarantine.state()
    {'names': ['eve'], 'judged': {'ann': 12, 'eve': 16}}
    >>> Quarantine.of(quarantine.state()) == quarantine, Quarantine().state()
    (True, {})

    """

    names: tuple[str, ...] = ()
    judged: Mapping[str, int] = field(default_factory=dict)

    def is_due(self, annotator: str, n_answers: int) -> bool:
        """Whether it is time to judge an annotator with this number of answers."""
        last = self.judged.get(annotator, 0)
        # Fewer than last time if labels were retracted.
        return n_answers >= FEWEST and abs(n_answers - last) >= max(1, last // 8)

    def in_force(self, people: People) -> tuple[str, ...]:
        """Return those in quarantine whom the rules do not exempt by now, in the order named."""
        return tuple(filter(people.may_be_quarantined, self.names))

    def state(self) -> dict[str, Any]:
        """Return it as plain values, {} if empty."""
        if not (self.names or self.judged):
            return {}
        return {"names": list(self.names), "judged": dict(self.judged)}

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Self:
        """Return the quarantine from which `state` was made."""
        return cls(tuple(state.get("names", ())), dict(state.get("judged", {})))


def judged(
    quarantine: Quarantine, judge: JudgesAnnotators, annotator: str, people: People
) -> Quarantine:
    """Return the quarantine before an answer of an annotator, who is judged if it is time.

    Parameters
    ----------
    quarantine
        The quarantine so far; it is returned if nothing has changed.

    """
    if len(judge.annotators()) <= WITNESSES:
        return quarantine
    n_answers = judge.n_answers(annotator)
    if annotator in quarantine.names or not quarantine.is_due(annotator, n_answers):
        return quarantine
    # An annotator who is trusted by now counts as a witness again.
    without = quarantine.in_force(people)
    after = replace(quarantine, judged={**quarantine.judged, annotator: n_answers})
    against = judge.evidence_against(annotator, without)
    if against <= THRESHOLD:
        return after
    found = {annotator: against}
    for name in judge.annotators():
        if name is not None and name != annotator and name not in without:
            found[name] = judge.evidence_against(name, without)
    worst = max(found, key=found.__getitem__)
    if not people.may_be_quarantined(worst):
        return after
    return replace(after, names=(*quarantine.names, worst))
