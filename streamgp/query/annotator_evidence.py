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

from streamgp.base import Array, Belief, Example, Label, Posterior, SettledAnswer
from streamgp.common.annotator_em import estimate, estimate_mean, sharpened, witnessed
from streamgp.common.annotator_error import Reliability
from streamgp.common.annotator_quarantine import (
    FEWEST,
    HEAD_START,
    THRESHOLD,
    WITNESSES,
    evidence,
    spread,
)
from streamgp.query import criteria
from streamgp.query.example_store import ClassExampleStore

_Answers: TypeAlias = dict[Any, tuple[SettledAnswer, Belief]]
"""Answers about events, by the key of each event, and the belief about it."""
# Latest answers by which annotators are judged together. A learner that cannot leave examples out
# is taught these once more, which must not take ever longer.
_MOST_ANSWERS = 2000
# Latest answers of one annotator, and labels of the others, when that one is judged separately.
_MOST_OWN, _MOST_OF_OTHERS = 200, 500


class AnnotatorJudge:
    """Judge of annotators by the examples that a learner has on record; it changes nothing.

    Parameters
    ----------
    store
        The learner, and its examples with the answers about them.
    annotators
        The annotators who have answered.

    Examples
    --------
    >>> from streamgp import isgp
    >>> model = isgp(seed=1)
    >>> lies = {"dark": "dim", "dim": "day", "day": "dark"}
    >>> for n in range(90):
    ...     light, name = n % 10, ("ann", "bob", "eve")[n % 3]
    ...     truth = ("dark", "dim", "day")[light // 4]
    ...     model.observe_one({"light": light})
    ...     y = lies[truth] if name == "eve" else truth
    ...     w = model.settle_one(
    ...         {"light": light}, y, given=y, challenged=False, annotator=name, event_id=f"e{n}"
    ...     )
    >>> judge = model.annotator_judge()
    >>> judge.evidence_against("ann"), judge.evidence_against("eve") > 1e6
    (7.363..., True)

    """

    def __init__(self, store: ClassExampleStore, annotators: Collection[str | None]) -> None:
        self._store = store
        self._annotators = annotators

    def annotators(self) -> Collection[str | None]:
        """Return the annotators who have answered."""
        return self._annotators

    def n_answers(self, annotator: str | None) -> int:
        """Return the number of answers of an annotator on record that are evidence.

        See `evidence_against`. What was taken back is not on record.
        """
        return self._store.n_heard[annotator]

    def answered(self) -> tuple[list[SettledAnswer], list[Belief], list[Label]]:
        """Return the latest answers on record, the beliefs about their events, and all labels.

        For an example that the learner retains and can leave out, it is the belief by all others;
        for any other, the belief of a fresh learner just before it is taught the example, through
        the statistics now in use.
        """
        store = self._store
        examples, found = store.latest(_MOST_ANSWERS), dict(store.leave_one_out())
        if not examples.keys() <= found.keys():
            found = {**store.taught_apart(examples)[1], **found}
        answers = _answers_about(examples.values())
        labels = store.labels_with(*(answer.y for answer in answers if answer.y is not None))
        told = _answers_with(examples, found, labels).values()
        return [answer for answer, _ in told], [belief for _, belief in told], labels

    def reliability(self) -> dict[str | None, Reliability]:
        """Return error rate and insistence of each annotator, by `answered`."""
        answers, beliefs, labels = self.answered()
        if not answers:
            return {}
        are_shares = all(isinstance(belief, Posterior) for belief in beliefs)
        table = _shares_table(beliefs, labels)
        return estimate_mean(answers, table, labels, are_shares=are_shares)

    def evidence_against(self, annotator: str, without: Collection[str] = ()) -> float:
        """Return the evidence that an annotator misleads.

        It is that of `streamgp.common.annotator_quarantine.evidence` for the latest 200 answers, by
        a learner that was taught the latest 500 labels of the others alone. Its beliefs are
        sharpened as far as the answers of the others justify (`streamgp.common.annotator_em`), and
        count no more than they agree with the one of the others whom they contradict least. If one
        of the others has answered about the same event without seeing this answer, as first or
        second answer, that counts with the error rate that the beliefs show for that annotator
        (`streamgp.common.annotator_em.witnessed`). Where none of the others has answered about the
        event, labels that were not asked for have no effect, nor have labels that none of the
        others has ever given. Of an answer that the annotator has changed, the label less believed
        counts, the one before or the one after. There is a head start if these answers are all that
        the annotator has given, or all since the last drift. The evidence is 0 unless two of the
        others have five answers each on record.

        The evidence exceeds `THRESHOLD` only if it does so even where nothing is believed about
        events of a kind about which the annotator answers more than all others, and more than
        elsewhere, unless one of these has answered about the very event: of such events the others
        have taught little, however sure the learner is (`mostly_own`).

        Parameters
        ----------
        annotator
            The annotator.
        without
            Annotators whose labels are left out as well.

        """
        if self._n_witnesses(annotator, without) < WITNESSES:
            return 0.0
        own, others, labels = self.answered_by(annotator, without)
        found = _evidence_of(own, others, labels, without)
        if found <= THRESHOLD:
            return found
        unknown = self._mostly_own(annotator, without)
        own = {k: (answer, {} if k in unknown else q) for k, (answer, q) in own.items()}
        return max(THRESHOLD, _evidence_of(own, others, labels, without))

    def contradiction_without(self, annotator: str, without: Collection[str] = ()) -> float:
        """Return the most evidence against any of the others.

        As `evidence_against`, but one witness with five answers is enough: of three annotators of
        whom one misleads, the other two do not contradict each other. Answers that cannot be
        judged count as such that tell nothing.

        Parameters
        ----------
        annotator
            The annotator who is left out.
        without
            Annotators who are left out as well.

        Examples
        --------
        Eve always says "day" instead of "dark", and the reverse:

        >>> from streamgp import isgp
        >>> model = isgp(seed=1)
        >>> for n in range(90):
        ...     light, name = n % 10, ("ann", "bob", "eve")[n % 3]
        ...     model.observe_one({"light": light})
        ...     y = "day" if (light < 5) == (name == "eve") else "dark"
        ...     w = model.settle_one(
        ...         {"light": light}, y, given=y, challenged=False, annotator=name, event_id=f"e{n}"
        ...     )
        >>> judge = model.annotator_judge()
        >>> judge.contradiction_without("eve"), judge.contradiction_without("ann") > 1e6
        (0.841..., True)

        """
        left_out = (annotator, *without)
        others = [name for name in self._annotators if name is not None and name not in left_out]

        def evidence(name: str) -> float:
            if not self._n_witnesses(name, left_out):
                return 0.0
            return _evidence_of(*self.answered_by(name, left_out), left_out)

        found = (evidence(name) or HEAD_START + self.n_answers(name) for name in others)
        return max(found, default=0.0)

    def _n_witnesses(self, annotator: str, without: Collection[str]) -> int:
        """Return how many of the others have enough answers on record to judge an annotator."""
        answers = _answers_about(self._store.examples())
        counts = Counter(answer.annotator for answer in answers if answer.was_asked)
        others = counts.keys() - {annotator, None, *without}
        return sum(counts[name] >= FEWEST for name in others)

    def answered_by(
        self, annotator: str, without: Collection[str] = ()
    ) -> tuple[_Answers, _Answers, list[Label]]:
        """Return the latest answers of one annotator and of the others, judged by the others.

        Those about outdated examples are left out.

        The beliefs about the annotator's events are those of a fresh learner that is taught the
        latest labels of the others alone, through the statistics now in use; those about the events
        of the others are as in `answered`. `without` names annotators who do not count as others.

        Returns
        -------
        The answers of the annotator and the belief about each, those of the others, and all labels:
        those of the others, and those that the annotator has given to events about which another
        has answered. Of an answer that the annotator has corrected, the label less believed counts,
        the one before or the one after. `second` of an answer of the annotator is what someone else
        has said about the same event without knowing that answer, whichever of the two was asked
        first.

        """
        own, others = _own_and_others(self._store.current(), annotator, without)
        of_others, of_own = self._store.judged_apart(others, about=own)
        beliefs = of_others | of_own  # one of the others may have been asked first
        said = (example.answer for example in own.values())
        new = (one.y for one in said if one and one.y is not None and _witness_of(one, without))
        labels = list(dict.fromkeys((*(example.y for example in others.values()), *new)))
        own = {key: _less_believed(each, beliefs.get(key), labels) for key, each in own.items()}
        heard = _answers_with(own, beliefs, labels)
        return heard, _answers_with(others, of_others, labels), labels

    def _mostly_own(self, annotator: str, without: Collection[str]) -> set[Any]:
        """Return the events of a kind about which an annotator answers more than the others.

        Those about which none of the others has answered, by a fresh learner that is taught who has
        answered about each event, through the statistics now in use.
        """
        current = self._store.current()
        own, others = _own_and_others(current, annotator, without)
        answered = {k: each for k, each in current.items() if k in own or k in others}
        # A learner may refuse other labels than those that it knows.
        labels = list(dict.fromkeys(example.y for example in answered.values()))[:2]
        if len(labels) < 2:
            return set()
        by_whom = {k: replace(each, y=labels[k not in others]) for k, each in answered.items()}
        alone = own.keys() - others.keys()
        return alone & mostly_own(self._store.judged_apart(by_whom)[0], alone, labels)


def _answers_about(examples: Iterable[Example]) -> Iterator[SettledAnswer]:
    """Yield the answers about examples, the first and the second, as far as they are known."""
    for example in examples:
        for answer in (example.answer, example.answer and example.answer.second):
            if answer is not None:
                yield answer


def _own_and_others(
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


def _less_believed(example: Example, belief: Belief | None, labels: Sequence[Label]) -> Example:
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


def _answers_with(
    examples: Mapping[Any, Example], beliefs: Mapping[Any, Belief], labels: Sequence[Label]
) -> _Answers:
    """Return the first answers about examples with a belief, and these beliefs."""
    found: _Answers = {}
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


def _evidence_of(
    own: _Answers, others: _Answers, labels: Sequence[Label], without: Collection[str]
) -> float:
    """Return the evidence that an annotator misleads; see `AnnotatorJudge.evidence_against`.

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
    of_others = _shares_table([belief for _, belief in known], labels)
    found = estimate(given_by_others, of_others, labels)
    contradicted = [one.error_rate for one in found.reliability.values() if one.n_answers >= FEWEST]
    shares = sharpened(_shares_table([belief for _, belief in told], labels), found.sharpening)
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
    shares = spread(_shares_table(list(beliefs.values()), labels), n_labels=2)
    shares /= shares.sum(axis=1, keepdims=True)
    by_events = np.where(is_own, shares[:, 1], shares[:, 0])
    n_alike = np.where(is_own, is_own.sum(), n - is_own.sum()) - 1
    if np.log(by_events).sum() <= np.log((n_alike + 0.5) / n).sum():
        return set()
    most = max(0.5, float(is_own.mean()))
    return {key for key, share in zip(beliefs, shares[:, 1], strict=True) if share > most}


def _shares_table(beliefs: Sequence[Belief], labels: Sequence[Label]) -> Array:
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
