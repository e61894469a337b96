"""Evidence on annotators: which answers on record speak about whom, and how much they prove.

An annotator is judged by what the others have said alone: by their second answers about the same
events, and by the beliefs of a learner that was taught their labels only. The test is that of
`streamgp.common.annotator_quarantine`.

"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from streamgp.base import Array, Belief, Example, Label, SettledAnswer
from streamgp.common.annotator_em import estimate, sharpened, witnessed
from streamgp.common.annotator_error import Reliability
from streamgp.common.annotator_quarantine import FEWEST, HEAD_START, evidence, spread
from streamgp.query import criteria

Answers: TypeAlias = dict[Any, tuple[SettledAnswer, Belief]]
"""Answers about events, by the key of each event, and the belief about it."""
# Latest answers of one annotator, and labels of the others, when that one is judged separately.
_MOST_OWN, _MOST_OF_OTHERS = 200, 500


def answers_about(examples: Iterable[Example]) -> Iterator[SettledAnswer]:
    """Yield the answers about examples, the first and the second, as far as they are known."""
    for example in examples:
        for answer in (example.answer, example.answer and example.answer.second):
            if answer is not None:
                yield answer


def annotators_concerned(example: Example) -> tuple[str | None, ...]:
    """Return the annotators on whom the answers about an event can be evidence.

    If its label was not asked for, that is the annotator of the label alone, and only if there is a
    second answer.
    """
    first = example.answer
    if first is None:
        return ()
    second = first.second
    if second is None:
        return (first.annotator,) if first.was_asked else ()
    is_other = first.was_asked and second.annotator != first.annotator
    return (first.annotator, second.annotator) if is_other else (first.annotator,)


def n_witnesses(examples: Iterable[Example], without: set[str | None]) -> int:
    """Return how many annotators except these have enough answers on record to judge others."""
    answers = answers_about(examples)
    counts = Counter(answer.annotator for answer in answers if answer.was_asked)
    others = counts.keys() - without
    return sum(counts[name] >= FEWEST for name in others)


def own_and_others(
    examples: Mapping[Any, Example], annotator: str, without: Collection[str | None]
) -> tuple[dict[Any, Example], dict[Any, Example]]:
    """Return the latest examples that one annotator has answered, and those of the others.

    `without` names annotators who do not count among the others. An example of the others has the
    label that they alone have given it. Of a label that was not asked for, only what another
    annotator has said about the event counts as such, and is evidence on the first one: one who
    labels much could otherwise accuse others, and what others believe may be long out of date where
    only one annotator labels.
    """
    own: deque[tuple[Any, Example]] = deque(maxlen=_MOST_OWN)
    others: deque[tuple[Any, Example]] = deque(maxlen=_MOST_OF_OTHERS)
    for key, example in examples.items():
        first = example.answer or SettledAnswer(y=None)
        second = first.second
        was_asked = first.was_asked or first.annotator is None
        if first.annotator == annotator or not was_asked:
            witness = _witness_of(first, (annotator, *without))
            if witness is not None and witness.y is not None:
                others.append((key, replace(example, y=witness.y, answer=witness)))
            if first.annotator == annotator and (was_asked or witness is not None):
                own.append((key, example))
            continue
        if first.annotator in without:
            continue
        if second is not None and second.annotator in (annotator, *without):
            word = _before_second(example.y, first, second)
            if second.annotator == annotator:
                turned = replace(second, second=replace(first, y=word, second=None))
                own.append((key, replace(example, answer=turned)))
            if word is None:
                continue
            example = replace(example, y=word)
        others.append((key, example))
    return _told_by_several(own), dict(others)


def labels_among(
    own: Iterable[Example], others: Iterable[Example], without: Collection[str | None]
) -> list[Label]:
    """Return the labels of the others, and those of the annotator that others could have given.

    The latter are those of events about which another annotator has answered, too.
    """
    said = (example.answer for example in own)
    new = (one.y for one in said if one and one.y is not None and _witness_of(one, without))
    return list(dict.fromkeys((*(example.y for example in others), *new)))


def less_believed(example: Example, belief: Belief | None, labels: Sequence[Label]) -> Example:
    """Return an example whose answer is the label less believed, if its annotator corrected it.

    One who gives the right label first, and corrects it to a wrong one, teaches the latter. A label
    that is not among those to choose from counts as the other one of the two.
    """
    answer = example.answer
    if belief is None or answer is None or answer.corrected not in labels:
        return example
    if answer.y in labels:
        shares = criteria.shares(belief, labels)
        if shares[labels.index(answer.y)] < shares[labels.index(answer.corrected)]:
            return example
    return replace(example, answer=replace(answer, y=answer.corrected))


def answers_with(
    examples: Mapping[Any, Example], beliefs: Mapping[Any, Belief], labels: Sequence[Label]
) -> Answers:
    """Return the first answers about examples with a belief, and these beliefs."""
    found: Answers = {}
    for key, example in examples.items():
        answer = example.answer
        if answer is None or key not in beliefs:
            continue
        if answer.y is None:  # any other label stands in for it
            other = next((label for label in labels if label != example.y), None)
            if other is None:
                continue
            answer = replace(answer, y=other)
        found[key] = answer, beliefs[key]
    return found


def evidence_of(
    own: Answers, others: Answers, labels: Sequence[Label], without: Collection[str]
) -> float:
    """Return the evidence that an annotator misleads; see `SkepticalClassifier.evidence_against`.

    Parameters
    ----------
    own, others
        Answers of the annotator and of the others, with the beliefs of the others alone.
    labels
        The labels to choose from.
    without
        Annotators whose second answers do not count.

    """
    columns = {label: column for column, label in enumerate(labels)}
    told = [each for each in own.values() if each[0].y in columns]
    # Where the first label was given up and is not known, there is no belief about it.
    known = [each for each in others.values() if each[0].y in columns]
    if not (told and known):
        return 0.0
    # Whether an answer was upheld tells about the annotator, not about the beliefs.
    given_by_others = [replace(answer, upheld=None, second=None) for answer, _ in known]
    of_others = shares_table([belief for _, belief in known], labels)
    found = estimate(given_by_others, of_others, labels)
    contradicted = [one.error_rate for one in found.reliability.values() if one.n_answers >= FEWEST]
    shares = sharpened(shares_table([belief for _, belief in told], labels), found.sharpening)
    shares = spread(shares, len(labels), min(contradicted, default=0.0))
    testimonies = [
        _testimony(answer.second, columns, found.reliability, without) for answer, _ in told
    ]
    shares = witnessed(shares, testimonies)
    given = [columns[answer.y] for answer, _ in told if answer.y is not None]
    q = shares[np.arange(len(given)), given].tolist()
    head_start = HEAD_START if len(own) < _MOST_OWN else 0.0
    return evidence(q, len(labels), head_start)


def mostly_own(
    beliefs: Mapping[Any, Belief], own: Collection[Any], labels: Sequence[Label]
) -> set[Any]:
    """Return the events that are of a kind about which the annotator has answered more than others.

    Where most answers are the annotator's, that is more than about events of other kinds, too: of
    one who answers nearly all questions there would be nothing left to judge. There are none unless
    events tell who has answered, better than the numbers of events do: by the log-likelihood, each
    event left out.

    Parameters
    ----------
    beliefs
        For each event, the belief in who has answered about it, by all other events or, of a
        learner that cannot leave it out, by those before.
    own
        The events about which the annotator has answered, and none of the others.
    labels
        What stands in the beliefs for the others, and for the annotator.

    Examples
    --------
    >>> ann, others = {"ann": 0.8, "others": 0.2}, {"ann": 0.1, "others": 0.9}
    >>> beliefs = {"e1": ann, "e2": others, "e3": others, "e4": ann, "e5": others}
    >>> sorted(mostly_own(beliefs, own=["e1", "e3", "e4"], labels=["others", "ann"]))
    ['e1', 'e4']
    >>> mostly_own(beliefs, own=["e2", "e3"], labels=["others", "ann"])
    set()

    Of one who has answered about nine in thirteen events, a share of six in ten is none of a kind:

    >>> beliefs |= {f"e{n}": {"ann": 0.6, "others": 0.4} for n in range(6, 14)}
    >>> own = beliefs.keys() - {"e2", "e3", "e5", "e6"}
    >>> sorted(mostly_own(beliefs, own, labels=["others", "ann"]))
    ['e1', 'e4']

    """
    n = len(beliefs)
    if n == 0:  # no event can be used with the present statistics
        return set()
    is_own = np.array([key in own for key in beliefs])
    shares = spread(shares_table(list(beliefs.values()), labels), n_labels=2)
    shares /= shares.sum(axis=1, keepdims=True)
    by_events = np.where(is_own, shares[:, 1], shares[:, 0])
    n_alike = np.where(is_own, is_own.sum(), n - is_own.sum()) - 1
    if np.log(by_events).sum() <= np.log((n_alike + 0.5) / n).sum():
        return set()
    most = max(0.5, float(is_own.mean()))
    return {key for key, share in zip(beliefs, shares[:, 1], strict=True) if share > most}


def shares_table(beliefs: Sequence[Belief], labels: Sequence[Label]) -> Array:
    """Return the share of each label in each belief, shape (n, K)."""
    return np.array([criteria.shares(belief, labels) for belief in beliefs])


def _told_by_several(own: Iterable[tuple[Any, Example]]) -> dict[Any, Example]:
    """Return examples of one annotator, without those for which one witness speaks too often.

    Of labels that were not asked for, only as many count by the second answers of one witness as by
    those of all others, and the latest five more: an annotator who always answers such questions
    first could otherwise accuse another one alone.
    """
    own = list(own)
    told = Counter(second.annotator for _, each in own if (second := _unasked_second(each)))
    left = {name: FEWEST + told.total() - n for name, n in told.items()}
    kept = []
    for key, example in reversed(own):
        second = _unasked_second(example)
        if second is not None:
            left[second.annotator] -= 1
        if second is None or left[second.annotator] >= 0:
            kept.append((key, example))
    return dict(reversed(kept))


def _unasked_second(example: Example) -> SettledAnswer | None:
    """Return the second answer about an example whose first one was not asked for, None if none."""
    answer = example.answer
    return None if answer is None or answer.was_asked else answer.second


def _witness_of(answer: SettledAnswer, without: Collection[str | None]) -> SettledAnswer | None:
    """Return what another annotator has said about an event; None if that is not known."""
    second = answer.second
    if second is None or second.y is None or second.annotator in without:
        return None
    return second


def _before_second(y: Label, first: SettledAnswer, second: SettledAnswer) -> Label | None:
    """Return the label that stood before a second answer, None if that is not known.

    `y` is the current one.
    """
    if y != second.y:
        return y
    # Both answers agree, or the second one has prevailed over the label left by a challenge.
    return first.y if first.upheld is not False else None


def _testimony(
    answer: SettledAnswer | None,
    columns: Mapping[Label, int],
    reliability: Mapping[str | None, Reliability],
    without: Collection[str],
) -> tuple[int, float] | None:
    """Return the column of a witness's label and the error rate of the witness, None for none."""
    if answer is None or answer.y is None or answer.y not in columns or answer.annotator in without:
        return None
    return columns[answer.y], reliability.get(answer.annotator, Reliability()).error_rate
