"""Quarantine of annotators who mislead: their further answers are not learned.

An annotator is judged by the labels of the others (`streamgp.common.annotator_quarantine`), before
an answer is weighed, whenever the number of answers has grown by an eighth. If the evidence exceeds
the threshold, all annotators are judged: one who misleads makes others look as if they did, above
all those who answer much. Of those with more evidence against them than before their first answer,
the one without whom the others contradict each other least is put in quarantine, if the evidence
exceeds the threshold, too, and unless they would contradict each other about as little without
another one: who gives one label to everything makes others look like liars, and yet is hard to
judge by them; and who of two misleads cannot be told, though a third has given some answers. Of
four or more, none is named with whom as many agree as with those who contradict: two may lie alike.
The next judgement leaves out the labels of those in quarantine.

Annotators are told apart by the log, and nothing else decides: who is in quarantine follows from
the inputs in their order. What the annotator has taught before is then retracted (`retract.py`).

Before that, an annotator with more evidence against them than before the first answer is suspected:
the events that they label are also put to an annotator with less (`Quarantine.barred`).

Labels that were not asked for are evidence on their annotator only where another one has answered,
too: what the others have taught may be long out of date where only one annotator labels. The first
of them are therefore put to another annotator, and a share of the later ones. An annotator who
floods a learner with lies would otherwise make it so sure that it asks no one else.

"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, Protocol, Self

from streamgp.common.annotator_quarantine import FEWEST, HEAD_START, THRESHOLD, WITNESSES
from streamgp.interactive.people import People

# Number of answers that are evidence on an annotator until which each label that was not asked for
# is checked, unless the evidence is less than before the first of them; and the share afterwards. A
# liar from the start is named by 10 to 30; an honest annotator costs up to 40 second questions in
# 500 labels.
_CHECKED: Final = 30
_SHARE_CHECKED: Final = 0.03
# It may be another one who misleads, if without that one the others contradict each other less than
# ten times as much, and with less evidence than this.
_CERTAIN: Final = 10.0
_AGREED: Final = THRESHOLD / 100.0
# Those who agree with an annotator count if together they have a sixth of the annotator's answers:
# a liar could otherwise bring one who gives five.
_FEWER: Final = 6


class AnnotatorJudge(Protocol):
    """A judge of annotators by what a learner was taught; it changes nothing."""

    def annotators(self) -> Collection[str | None]:
        """Return the annotators who have answered."""

    def n_answers(self, annotator: str | None) -> int:
        """Return the number of answers of an annotator on record that are evidence."""

    def evidence_against(self, annotator: str, without: Collection[str] = ()) -> float:
        """Return the evidence that an annotator misleads.

        `without` names annotators whose labels are left out.
        """

    def contradiction_without(self, annotator: str, without: Collection[str] = ()) -> float:
        """Return the most evidence against any of the others, if one is left out."""


class JudgesAnnotators(Protocol):
    """A learner whose examples tell who misleads."""

    def annotator_judge(self) -> AnnotatorJudge:
        """Return a judge of annotators by the present examples."""


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Annotators in quarantine, and what is known of each annotator since last judged.

    `judged` is the number of answers, `against` the evidence; it is 0 if it cannot be measured yet.

    Examples
    --------
    >>> quarantine = Quarantine(names=("eve",), judged={"ann": 12, "eve": 16})
    >>> quarantine.state()
    {'names': ['eve'], 'judged': {'ann': 12, 'eve': 16}, 'against': {}}
    >>> Quarantine.of(quarantine.state()) == quarantine, Quarantine().state()
    (True, {})

    """

    names: tuple[str, ...] = ()
    judged: Mapping[str, int] = field(default_factory=dict)
    against: Mapping[str, float] = field(default_factory=dict)

    def is_due(self, annotator: str, n_answers: int) -> bool:
        """Whether it is time to judge an annotator with this number of answers."""
        last = self.judged.get(annotator, 0)
        # Fewer than last time if labels were retracted.
        return n_answers >= FEWEST and abs(n_answers - last) >= max(1, last // 8)

    def barred(
        self, annotator: str, among: Collection[str], unasked_draw: float | None = None
    ) -> tuple[str, ...] | None:
        """Return who is not asked about a label of an annotator; None if no one is to be asked.

        A second annotator is asked if there is more evidence against the first one than before the
        first answer. Of the annotators `among` whom to choose, only those with less evidence
        against them are asked: an annotator who misleads must not be the witness against one who
        does not.

        About a label that was not asked for, any other annotator is asked, too, if there is no one
        with less evidence, or no evidence on the first one yet; after the first 30 answers only if
        `unasked_draw`, uniform in [0, 1), is below .03. It is None for a label that was asked for.

        Examples
        --------
        >>> quarantine = Quarantine(against={"ann": 900.0, "bob": 20.0, "eve": 4000.0})
        >>> quarantine.barred("ann", among=["ann", "bob", "eve"])
        ('eve',)
        >>> quarantine.barred("bob", among=["ann", "bob", "eve"]) is None
        True
        >>> quarantine.barred("cyd", among=["ann", "bob", "cyd"], unasked_draw=0.9)
        ()

        """
        most = self.against.get(annotator, 0.0)
        others = [name for name in among if name != annotator]
        if len(others) < WITNESSES:
            return None
        barred = tuple(name for name in others if not 0.0 < self.against.get(name, 0.0) < most)
        is_suspected = most > HEAD_START and len(barred) < len(others)
        if unasked_draw is None:
            return barred if is_suspected else None
        is_cleared = 0.0 < most <= HEAD_START or self.judged.get(annotator, 0) >= _CHECKED
        if is_cleared and unasked_draw >= _SHARE_CHECKED:
            return None
        return barred if is_suspected else ()

    def in_force(self, people: People) -> tuple[str, ...]:
        """Return those in quarantine whom the rules do not exempt by now, in the order named."""
        return tuple(filter(people.may_be_quarantined, self.names))

    def state(self) -> dict[str, Any]:
        """Return it as plain values, {} if empty."""
        if not (self.names or self.judged):
            return {}
        judged, against = dict(self.judged), dict(self.against)
        return {"names": list(self.names), "judged": judged, "against": against}

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Self:
        """Return the quarantine from which `state` was made."""
        judged, against = (dict(state.get(name, {})) for name in ("judged", "against"))
        return cls(tuple(state.get("names", ())), judged, against)


def judged(
    quarantine: Quarantine, judge: AnnotatorJudge, annotator: str, people: People
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
    found = {annotator: judge.evidence_against(annotator, without)}
    after = replace(
        quarantine,
        judged={**quarantine.judged, annotator: n_answers},
        against={**quarantine.against, **found},
    )
    if found[annotator] <= THRESHOLD:
        return after
    for name in judge.annotators():
        if name is not None and name != annotator and name not in without:
            found[name] = judge.evidence_against(name, without)
    after = replace(after, against={**after.against, **found})
    worst = _worst(judge, found, without, people)
    if worst is None:
        return after
    name, left = worst
    if left <= HEAD_START or _is_outvoted(judge, name, without, people):
        return replace(after, names=(*quarantine.names, name))
    # Until there are more answers, the same would come of judging another one.
    numbers = {name: judge.n_answers(name) for name in found}
    return replace(after, judged={**after.judged, **numbers})


def _worst(
    judge: AnnotatorJudge, found: Mapping[str, float], without: Collection[str], people: People
) -> tuple[str, float] | None:
    """Return the annotator who misleads, None if it is uncertain who does.

    With it comes how far the others contradict each other without this one.
    """
    found = {name: found[name] for name in found if people.may_be_quarantined(name)}
    # One who gives few answers cannot make others look as if they misled.
    many = sum(map(judge.n_answers, found)) / 6
    left = {
        name: judge.contradiction_without(name, without)
        for name, against in found.items()
        if against > HEAD_START or judge.n_answers(name) >= many
    }
    suspects = [name for name in left if found[name] > HEAD_START]
    worst = min(suspects, key=lambda name: (left[name], -found[name]), default=None)
    if worst is None or found[worst] <= THRESHOLD:
        return None
    most = min(_AGREED, _CERTAIN * left[worst])
    if any(left[name] < most for name in left if name != worst):
        return None
    return worst, left[worst]


def _is_outvoted(
    judge: AnnotatorJudge, annotator: str, without: Collection[str], people: People
) -> bool:
    """Whether one who contradicts an annotator agrees with more others, or the latter with none.

    Two annotators agree if, all others left out, there is no more evidence against either than
    answers give that tell nothing. One who cannot be put in quarantine counts more than all others.
    Those who agree with an annotator are as none if all of them have given few answers. Of three
    annotators, it is known from leaving out each who of them agree.
    """
    everyone = [name for name in judge.annotators() if name is not None and name not in without]
    names = [name for name in everyone if judge.n_answers(name) >= FEWEST]
    if len(names) <= WITNESSES + 1:
        return True

    @cache
    def agree(*pair: str) -> bool:
        first, *rest = (name for name in everyone if name not in pair)
        most = HEAD_START + max(map(judge.n_answers, pair))
        return judge.contradiction_without(first, (*rest, *without)) <= most

    def allies(name: str) -> list[str]:
        return [other for other in names if other != name and agree(*sorted((name, other)))]

    def votes(name: str) -> int:
        return sum(1 if people.may_be_quarantined(ally) else len(names) for ally in allies(name))

    own = allies(annotator)
    others = [name for name in names if name not in (annotator, *own)]
    n_theirs = sum(map(judge.n_answers, own))
    if _FEWER * n_theirs < judge.n_answers(annotator) and all(map(people.may_be_quarantined, own)):
        return True
    return any(votes(name) > votes(annotator) for name in others)
