"""Temporal filter: predicts an event from beliefs about it and about the events before it.

Sensor streams are persistent: what was done a minute ago is probably being done now. A filter
carries beliefs from event to event, as a hidden Markov model does, and weighs them against the
learner's belief about the event alone. It only knows beliefs, and no kind of learner.

"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamgp.base import Array, Belief, Features, Label, State, plain_label
from streamgp.common.array_text import array_of, text_of
from streamgp.common.feature_values import plain_features, same_features
from streamgp.common.validation import check_several
from streamgp.query import criteria

Expert: TypeAlias = tuple[float, float]
"""Probability that the class stays from one event to the next, and the weight of the evidence."""

EXPERTS: Final[tuple[Expert, ...]] = (
    *((0.0, tau) for tau in (0.5, 1.0, 2.0)),
    *((stay, tau) for stay in (0.8, 0.95, 0.99) for tau in (0.15, 0.5, 1.0)),
    # Labels alone: with this expert no learner does worse than repeating the last answer.
    (0.99, 0.0),
)

# Share of the evidence that is spread evenly: one event never rules a class out for good.
_SPREAD: Final = 0.05
_KEPT: Final = 1.0 - _SPREAD
# Extra evidence for the class of largest mean: ties are broken as without a filter.
_EXTRA: Final = 0.001
# What remains of an expert's score after one more label.
_DECAY: Final = 0.995
# Score of an expert with memory before the first label: memory has to prove itself.
_FIRST_SCORE: Final = -3.0
# Least weight of an expert, in units of the largest one's.
_LEAST_WEIGHT: Final = 0.001
# Smallest error rates in the scores and in the beliefs, and what remains of an error rate after an
# answered challenge.
_LEAST_ERROR_IN_SCORES: Final = 0.02
_LEAST_ERROR_IN_BELIEFS: Final = 0.01
_LEFT_IN_SCORES: Final = 0.5
_LEFT_IN_BELIEFS: Final = 0.25

MOST_AWAITED: Final = 16
"""Number of events whose beliefs are kept until their label is known; the oldest are dropped first.
They are saved with the state of a loop after every event."""


class TemporalFilter:
    """Beliefs about the class of the present event, carried from event to event.

    Thirteen experts (s, tau) each hold a belief `b` over the K known classes. An event multiplies
    it by the evidence, `b(c) ~ g(c)**tau (s b(c) + (1 - s) / K)`, where `g` is the learner's share
    of class c (its positive mean divided by their sum, or its probability), 5 % of it spread over
    all classes. A label multiplies it by the probability of that label, as far as the class is
    still the same. Experts are weighed by how probable they have made the labels. Those with s = 0
    have no memory, and win where the past tells nothing, as on a shuffled stream. One with tau = 0
    believes labels alone, and wins where a learner is worse than repeating the last label.

    As an argument of `SkepticalClassifier` a filter is a template and does not change.

    Parameters
    ----------
    experts
        Pairs of s, the probability that the class stays from one event to the next, in [0, 1), and
        tau, the weight of the evidence of one event, 0 for none.

    Examples
    --------
    >>> from streamgp import TemporalFilter
    >>> beliefs = TemporalFilter(experts=[(0.8, 1.0)])
    >>> beliefs.label("home", error_rate=0.1, n_since=0)
    >>> beliefs.label("work", error_rate=0.1, n_since=0)
    >>> beliefs.step({"home": 0.5, "work": 0.5})
    >>> beliefs.probabilities()
    {'home': 0.18..., 'work': 0.81...}

    References
    ----------
    [^1]: Rabiner, L.R., 1989. A tutorial on hidden Markov models and selected applications in
        speech recognition. Proceedings of the IEEE 77, Eq. 19-20.
    [^2]: Herbster, M. and Warmuth, M.K., 1998. Tracking the best expert. Machine Learning 32.

    """

    # _stays    s of each expert, (F,)
    # _constants  constants of the experts for one step, for the number of classes at the last step
    # _labels   the K classes known, in order of appearance
    # _beliefs  b of each expert and class, (F, K); rows sum to 1
    # _stepped  the beliefs after the last step; their classes are the first of _labels
    # _scores   l of each expert, (F,)
    # _weights  a function of _scores, (F,); they sum to 1
    # _mixture  cached `probabilities`, None after a change: it is needed twice for an event
    # _n_events events observed
    # _awaited  by event id, the number of the event and its beliefs, until its label is known; also
    #           as plain values, since the state is needed after every few events
    # Parameters that topics may have been written without: `common.fingerprint` omits them at their
    # default, so that older snapshots still match.
    ADDED: ClassVar = ("experts",)

    def __init__(self, experts: Sequence[Expert] = EXPERTS) -> None:
        self.experts = _checked(experts)
        columns: Array = np.array(self.experts)
        self._stays: Array = columns[:, 0]
        self._constants: _Constants | None = None
        self._labels: list[Label] = []
        self._beliefs: Array = np.zeros((len(columns), 0))
        self._stepped = self._beliefs
        self._scores: Array = np.where(self._stays == 0.0, 0.0, _FIRST_SCORE)
        self._weights = _weights_of(self._scores)
        self._mixture: dict[Label, float] | None = None
        self._n_events = 0
        self._awaited: dict[str, tuple[int, Array, list[int | str]]] = {}

    def __getstate__(self) -> State:
        # What is only remembered for speed is not part of the state: asking changes nothing.
        return {**self.__dict__, "_mixture": None}

    def __repr__(self) -> str:
        return f"TemporalFilter({'' if self.experts == EXPERTS else f'experts={self.experts}'})"

    # --- events

    def step(self, belief: Belief) -> None:
        """Advance to the next event, about which the learner's belief is `belief`."""
        self._n_events += 1
        labels, kept, beliefs = self._stepping(belief)
        if kept is not None:
            for event_id, (n, then, _) in self._awaited.items():
                then = then[:, [i for i in kept if i < then.shape[1]]]
                self._awaited[event_id] = n, then, _plain(then)
        self._labels, self._beliefs = labels, beliefs
        self._stepped, self._mixture = beliefs, None

    def probabilities(self) -> dict[Label, float]:
        """Probability of each class at the present event, `{}` while none is known."""
        if self._mixture is None:
            self._mixture = self._mixed(self._labels, self._beliefs)
        return self._mixture.copy()

    def probabilities_of(self, belief: Belief) -> dict[Label, float]:
        """Probability of each class if this were the next event; changes nothing."""
        labels, _, beliefs = self._stepping(belief)
        return self._mixed(labels, beliefs)

    def weights(self) -> list[float]:
        """Weight of each expert in the mixture, in the order of `experts`; they sum to 1."""
        return self._weights.tolist()  # type: ignore[no-any-return]

    # --- labels

    def await_label(self, event_id: str) -> None:
        """Keep the beliefs about the present event until its label is known, or `give_up`."""
        self._awaited[event_id] = self._n_events, self._stepped, _plain(self._stepped)
        if len(self._awaited) > MOST_AWAITED:
            del self._awaited[next(iter(self._awaited))]

    def give_up(self, event_id: str) -> None:
        """Stop waiting for the label of an event."""
        self._awaited.pop(event_id, None)

    def label(
        self,
        y: Label,
        *,
        error_rate: float,
        reconsidered: bool = False,
        event_id: str | None = None,
        n_since: int | None = None,
    ) -> None:
        """Weigh the experts by the final label of an event, and use it as far as it still holds.

        Parameters
        ----------
        y
            The label.
        error_rate
            How often the annotator's first answers are wrong, estimated before this one.
        reconsidered
            Whether the annotator was asked to reconsider, and answered.
        event_id
            Id of the event. Unless its label was awaited, or it is the present event, the label
            does not weigh the experts.
        n_since
            Number of events observed after it. If None, it is not known, and unless the label was
            awaited, it tells nothing about the present.

        """
        self._mixture = None
        awaited = None if event_id is None else self._awaited.pop(event_id, None)
        then = self._stepped if n_since == 0 else None
        if awaited is not None:
            n_since, then = self._n_events - awaited[0], awaited[1]
        known = y in self._labels
        n_classes = max(2, len(self._labels) + (not known))
        if known and then is not None:
            left = error_rate * (_LEFT_IN_SCORES if reconsidered else 1.0)
            self._score(y, then, max(_LEAST_ERROR_IN_SCORES, left), n_classes)
        left = error_rate * (_LEFT_IN_BELIEFS if reconsidered else 1.0)
        error = max(_LEAST_ERROR_IN_BELIEFS, left)
        # Probability that the class is still the same; 0**0 = 1 in numpy, too.
        same = self._stays ** (math.inf if n_since is None else n_since)
        changed = (1.0 - same) / n_classes
        at_label = same * (1.0 - error) + changed
        if known:
            elsewhere = same * (error / (n_classes - 1)) + changed
            self._weigh(self._labels.index(y), at_label, elsewhere)
        else:
            self._enter(y, at_label)

    def _score(self, y: Label, then: Array, error: float, n_classes: int) -> None:
        i = self._labels.index(y)
        # A class that was unknown then had no probability.
        of_label = then[:, i] if i < then.shape[1] else np.zeros(len(then))
        told = (1.0 - error) * of_label + error * (1.0 - of_label) / (n_classes - 1)
        self._scores = _DECAY * self._scores + np.log(told)
        self._weights = _weights_of(self._scores)

    def _weigh(self, i: int, at_label: Array, elsewhere: Array) -> None:
        beliefs = self._beliefs * elsewhere[:, None]
        beliefs[:, i] = self._beliefs[:, i] * at_label
        self._beliefs = beliefs / _row_sums(beliefs)

    def _enter(self, y: Label, mass: Array) -> None:
        if not self._labels:
            mass = np.ones_like(mass)  # the only class there is
        others = self._beliefs * (1.0 - mass)[:, None]
        self._beliefs = np.hstack([others, mass[:, None]])
        self._labels = [*self._labels, y]

    # --- surviving a restart

    def state(self) -> State:
        """Return what must survive a restart, as plain JSON values."""
        # Usually nothing has happened since the last step.
        moved = {} if self._stepped is self._beliefs else {"stepped": _plain(self._stepped)}
        return {
            "n_events": self._n_events,
            "labels": [plain_label(label) for label in self._labels],
            "beliefs": _plain(self._beliefs),
            "scores": text_of(self._scores),
            "awaited": [[event_id, n, plain] for event_id, (n, _, plain) in self._awaited.items()],
            **moved,
        }

    def load_state(self, state: State) -> None:
        """Restore what `state` returned."""
        state = _with_all_experts(state, self._scores)
        n_experts = len(self.experts)
        self._n_events = int(state["n_events"])
        self._labels = list(state["labels"])
        self._beliefs = _array(state["beliefs"], n_experts)
        self._stepped = _array(state["stepped"], n_experts) if "stepped" in state else self._beliefs
        self._scores = array_of(state["scores"], n_experts)
        self._weights, self._mixture = _weights_of(self._scores), None
        self._awaited = {
            event_id: (int(n), _array(plain, n_experts), list(plain))
            for event_id, n, plain in state["awaited"]
        }

    # --- inside

    def _stepping(self, belief: Belief) -> tuple[list[Label], list[int] | None, Array]:
        """Return classes and beliefs after the next event; changes nothing.

        Between the two: numbers of the classes known so far that are still known; None for all.
        """
        scores = criteria.scores(belief)
        labels, kept, before = self._labels, None, self._beliefs
        if list(scores) != labels:
            labels, kept, before = self._aligned(scores)
            scores = {y: scores[y] for y in labels}
        n = len(labels)
        if not n:
            return labels, kept, before
        constants = self._constants
        if constants is None or constants.n != n:
            constants = self._constants = _constants_of(self.experts, n)
        _, stays, leaves, taus, columns, ones = constants
        beliefs = stays * before
        beliefs += leaves
        # The same for all experts, in all their rows.
        evidence: Array = np.array(_evidence(list(scores.values())))
        beliefs *= np.power(evidence[columns], taus)
        # `dot` alone is quicker, but lets other threads in: one that waits for the interpreter, as
        # a client's may, is woken in vain. The operator does not do so for products this small.
        beliefs /= beliefs @ ones
        return labels, kept, beliefs

    def _aligned(
        self, scores: Mapping[Label, float]
    ) -> tuple[list[Label], list[int] | None, Array]:
        """Return the learner's classes, those that stay, and the beliefs in them.

        A new class has no mass yet; the mass of a class that is gone goes to the others.
        """
        kept = [i for i, y in enumerate(self._labels) if y in scores]
        labels = [self._labels[i] for i in kept]
        known = set(labels)
        labels += [y for y in scores if y not in known]
        before: Array = np.zeros((len(self.experts), len(labels)))
        before[:, : len(kept)] = self._beliefs[:, kept]
        if len(kept) == len(self._labels) and kept:
            return labels, None, before
        mass = _row_sums(before)
        if np.all(mass > 0.0):
            before /= mass
        elif labels:
            before[:] = 1.0 / len(labels)
        return labels, kept, before

    def _mixed(self, labels: list[Label], beliefs: Array) -> dict[Label, float]:
        mixed: list[float] = (self._weights @ beliefs).tolist()
        total = sum(mixed)  # 1 but for rounding
        # Two operations take half the time of one.
        return dict(zip(labels, [p / total for p in mixed], strict=True))


def _checked(experts: Sequence[Expert]) -> tuple[Expert, ...]:
    given = check_several("experts", experts, "pairs (s, tau)")
    if any(len(check_several("an expert", one, "two numbers")) != 2 for one in given):
        raise ValueError(f"each expert must be a pair (s, tau), got {experts!r}")
    pairs = tuple((float(stay), float(tau)) for stay, tau in given)
    if not pairs or not all(0.0 <= stay < 1.0 and 0.0 <= tau < math.inf for stay, tau in pairs):
        raise ValueError(
            "experts must be pairs (s, tau) with s in [0, 1) and tau of 0 or more, at least one, "
            f"got {experts!r}"
        )
    return pairs


class _Constants(NamedTuple):
    """Constants of F experts with n classes for one step.

    All have the full shape: numpy takes two to four times as long if it has to broadcast a
    column.

    Parameters
    ----------
    n
        Number of classes.
    stays, leaves, taus
        s, (1 - s) / n and tau of each expert, all of shape (F, n).
    columns
        Number of the class, in each row, shape (F, n).
    ones
        Ones of shape (n, n), with many classes (n, 1): a product with them is the sum of each row,
        which takes less time than `sum`.

    """

    n: int
    stays: Array
    leaves: Array
    taus: Array
    columns: NDArray[np.intp]
    ones: Array


# Number of classes up to which a square of ones saves time.
_FEW: Final = 32


@lru_cache(maxsize=16)
def _constants_of(experts: tuple[Expert, ...], n: int) -> _Constants:
    stays, taus = (np.repeat(column[:, None], n, axis=1) for column in np.array(experts).T)
    leaves = (1.0 - stays) / max(n, 1)
    columns = np.tile(np.arange(n), (len(stays), 1))
    return _Constants(n, stays, leaves, taus, columns, np.ones((n, n if n <= _FEW else 1)))


def _evidence(scores: list[float]) -> list[float]:
    """Return g of each class, from means or probabilities; not normalised."""
    # A plain loop, as in `positive_parts`: with a handful of classes it beats numpy.
    total, n = 0.0, len(scores)
    for score in scores:
        if score > 0.0:
            total += score
    spread = _SPREAD / n
    if total > 0.0:
        found = [_KEPT * (score / total) + spread if score > 0.0 else spread for score in scores]
    else:
        found = [1.0 / n] * n
    found[scores.index(max(scores))] += _EXTRA
    return found


def _row_sums(beliefs: Array) -> Array:
    """Return the sum of each row, as a column."""
    sums: Array = beliefs.sum(axis=1, keepdims=True)
    return sums


def _weights_of(scores: Array) -> Array:
    weights = np.exp(scores - scores.max()) + _LEAST_WEIGHT
    found: Array = weights / weights.sum()
    return found


def _plain(beliefs: Array) -> list[int | str]:
    return [beliefs.shape[1], text_of(beliefs)]


def _with_all_experts(state: State, first_scores: Array) -> State:
    """Return a state in which experts added since then have their first beliefs and scores."""
    scores = array_of(state["scores"], -1)
    n_new = len(first_scores) - len(scores)
    if n_new <= 0:
        return state

    def enlarged(plain: Sequence[int | str]) -> list[int | str]:
        before = _array(plain, len(scores))
        n = max(before.shape[1], 1)
        return _plain(np.vstack([before, np.full((n_new, before.shape[1]), 1.0 / n)]))

    new_scores = scores.max() + first_scores[-n_new:]
    return {
        **state,
        "scores": text_of(np.append(scores, new_scores)),
        **{name: enlarged(state[name]) for name in ("beliefs", "stepped") if name in state},
        "awaited": [[event_id, n, enlarged(plain)] for event_id, n, plain in state["awaited"]],
    }


def _array(plain: Sequence[int | str], n_experts: int) -> Array:
    n_classes, text = plain
    return array_of(str(text), n_experts, int(n_classes))


class FilteredStream:
    """A temporal filter in use, and the features of the event that it has reached.

    Parameters
    ----------
    template
        The filter; it is copied.

    Attributes
    ----------
    filter
        The filter in use.

    """

    # _present  the features of the last event; None if there is none, or only their digest is known
    # _digest   digest of the last event's features, after a restart
    def __init__(self, template: TemporalFilter) -> None:
        self.filter = copy.deepcopy(template)
        self._present: Features | None = None
        self._digest: str | None = None

    def observe(self, x: Features, belief: Belief) -> None:
        """Advance to the next event, about which the learner's belief is `belief`."""
        self.filter.step(belief)
        self._present = dict(x)

    def is_present(self, x: Features) -> bool:
        """Whether these are the features of the last event."""
        if self._present is None:
            return self._digest is not None and self._digest == _digest_of(x)
        # A dictionary, as nearly always, is known in a tenth of the time of any mapping.
        return (type(x) is dict or isinstance(x, Mapping)) and same_features(self._present, x)

    def label(self, x: Features, y: Label, *, n_since: int | None, **about: Any) -> None:
        """Pass a label to the filter; it is for the last event if nothing else is known."""
        if n_since is None and self.is_present(x):
            n_since = 0
        self.filter.label(y, n_since=n_since, **about)

    def state(self) -> State:
        """Return what must survive a restart, as plain JSON values."""
        digest = self._digest if self._present is None else _digest_of(self._present)
        return {**self.filter.state(), "present": digest}

    def load_state(self, state: State) -> None:
        """Restore what `state` returned."""
        self.filter.load_state(state)
        self._present, self._digest = None, state["present"]


def _digest_of(x: Features) -> str | None:
    """Return a digest of features for a state; None for features that cannot be saved."""
    try:
        plain = msgspec.json.encode(plain_features(x))
    except (ValueError, TypeError):
        return None
    return blake2b(plain, digest_size=8).hexdigest()
