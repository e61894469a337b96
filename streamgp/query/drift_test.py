"""Test for concept drift: whether answers surprise a learner more than it expects to be surprised.

A learner that asks where it is unsure asks nothing where it is sure, and does not notice when the
world has changed there. The test asks about a few of these events, compares each answer with how
sure the learner was, asks more while answers are surprising, and finds when the change was.

"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from streamgp.base import Belief, Decision, Label, Posterior, State, plain_label
from streamgp.common.annotator_error import INSISTED, WRONG
from streamgp.common.fingerprint import recorded_name
from streamgp.common.recalibration import LogisticCalibration
from streamgp.common.validation import check_number, check_rate
from streamgp.query import criteria

# Predictions with at least this probability of being right are sure; how many of them count as seen
# beforehand, all but one of them right.
_SURE: Final = 0.9
_N_BEFOREHAND: Final = 50
# Number of latest labels that do not yet say how surprising labels are without a change.
_N_LATEST: Final = 25
# Probability of being right, at most, of a prediction that has become worthless.
_WORTHLESS: Final = 0.5
# How far the disagreement of the labels nearby counts: some of them are wrong, or from before a
# change, and would hide it.
_NEARBY: Final = 0.8
# Largest probability of asking because of a suspicion.
_MOST_ASKED: Final = 0.1
# Number of events for which a learner is a beginner, and the largest probability of asking because
# it is one.
_BEGINNING: Final = 2000
_MOST_AT_FIRST: Final = 0.05
# Number of latest answers, one of which makes an annotator a witness.
_RECENT: Final = 100
# Share of the alarm that the sum without any one annotator must reach: odds of 21 or 27 by default.
# A learner soon learns what is new, and is no longer surprised, so that two annotators would often
# not both get to the alarm.
_OF_OTHERS: Final = 1.0 / 3.0
# Least value of a sum without one annotator, so that the others can have spoken against a change;
# about two labels as predicted.
_AGAINST: Final = -1.0


@dataclass(frozen=True, slots=True)
class DriftTest:
    """Sequential test for concept drift: Page's CUSUM of how surprising the labels are.

    Before a label is learned, the learner's prediction is right with a stated probability q, and
    the annotator errs with an estimated probability e. So the label differs from the prediction
    with probability `(1 - q)(1 - e / (K - 1)) + q e` of K classes, or with four fifths of the
    share of labels nearby that differ from it, if that is more: a posterior can be sure which class
    is the most frequent one where classes overlap. After a change q is worthless: at most 1/2. With
    the ratio of the probabilities of what was seen,

        S = max(0, S + log(P(seen | q worthless) / P(seen | q as stated)))

    There is such a sum of all labels, and one for each class, of the labels of events predicted to
    be of that class, if there are more than two: what has changed for a few classes only is not
    outweighed by labels of the others.

    Labels may be noisy, and learners surer than they should be, or less sure. No prediction counts
    as surer than .98, nor as surer than labels have agreed with predictions of q >= .9 so far.
    Within these limits, the probability that a label differs is corrected by how often labels have
    differed from predictions of about the same probability (`LogisticCalibration`). The latest 25
    labels do not count for that yet, nor does any of them once there is an alarm: a change must not
    pass for what is usual.

    After a drift S grows by one to three for each surprise, and S = log(n `run_length`) is an
    alarm, where n is the number of sums that each label is in, one or two. The change is dated to
    the first label after this sum was last 0; the learner forgets all examples before it, and all
    sums are 0 again. If q and e are as stated, false alarms are `run_length` labels apart on
    average, or more, however many classes there are. For exp(S) > 1 is at most R, where each label
    makes R = (R + 1) P(seen | q worthless) / P(seen | q as stated), and R minus the number of its
    labels is a martingale (Pollak 1987).

    Whatever the query strategy decides, each event is asked about with a probability of at least
    `at_least · exp(S)`, up to 0.1, where S is the larger of the sum of all labels and that of the
    predicted class: so the test sees events of which the learner is sure, and a suspicion is soon
    confirmed or dropped. A beginner may be sure because it has not met the other classes yet: so
    the n-th of the first 2000 events is asked about with a probability of at least
    `2000 at_least / n`, up to 0.05.

    One annotator who insists on wrong answers looks like a change, too. Therefore the same sum over
    the labels of all others must reach a third of the alarm, whichever annotator is left out. While
    the others speak against a change, no more is asked either. One annotator is enough if no other
    has given one of the latest 100 answers. Answers without an annotator count as those of one.

    Labels that were not asked for count only if they have no annotator and none was ever asked for,
    as where labels come with their events: people correct predictions that are wrong, and one who
    misleads could give any number of labels.

    Parameters
    ----------
    at_least
        Least probability of asking about an event while no label is surprising, from the 2000th
        event on.
    run_length
        Mean number of labels between false alarms, at least; finite and more than 1.

    Examples
    --------
    After 600 events day and night change places:

    >>> from streamgp import DriftTest, GPClassifier, SkepticalClassifier
    >>> model = SkepticalClassifier(GPClassifier(), drift_test=DriftTest(), seed=1)
    >>> for n in range(1200):
    ...     light = n % 10
    ...     predicted, ask = model.predict_one({"light": light})
    ...     if ask:
    ...         model.learn_one({"light": light}, "day" if (light > 4) == (n < 600) else "night")
    >>> model.n_drifts, model.n_outdated, model.n_learned
    (1, 30, 52)

    References
    ----------
    [^1]: Page, E.S., 1954. Continuous inspection schemes. Biometrika 41, 100-115.
    [^2]: Pollak, M., 1987. Average run lengths of an optimal method of detecting a change in
        distribution. Annals of Statistics 15, 749-779.

    """

    at_least: float = 0.005
    run_length: float = 10_000.0

    def __post_init__(self) -> None:
        check_rate("at_least", self.at_least)
        # The exponential of an infinite sum overflows: no probability of asking.
        wanted = "finite and above 1"
        check_number("run_length", self.run_length, wanted, lambda n: n > 1.0 and math.isfinite(n))


@dataclass(slots=True)
class _Sum:
    """Page's sum S of some labels, and the number of all labels since it was last 0."""

    value: float = 0.0
    n_since: int = 0

    def add(self, surprise: float, largest: float, least: float = 0.0) -> None:
        """Add the latest label, which is counted already."""
        if self.value <= 0.0:
            self.n_since = 1
        self.value = min(max(self.value + surprise, least), largest)


@dataclass(slots=True)
class _Suspicion:
    """Page's sum of some labels, and the same of those without each annotator's."""

    # all      S
    # without  S of the labels of all others, by annotator, from `_AGAINST` on; S if not there
    all: _Sum = field(default_factory=_Sum)
    without: dict[str | None, _Sum] = field(default_factory=dict)

    def add(self, surprise: float, annotator: str | None, alarm: float) -> None:
        self.without.setdefault(annotator, replace(self.all))
        for name, others in self.without.items():
            others.add(0.0 if name == annotator else surprise, alarm, _AGAINST)
        self.all.add(surprise, alarm)
        if self.all.value <= 0.0:
            self.without = {name: one for name, one in self.without.items() if one.value > 0.0}

    def shown(self, annotators: Collection[str | None]) -> _Sum:
        """Return the least sum: what none of several annotators alone has shown."""
        sums = [one for name, one in self.without.items() if annotators != {name}]
        return min([self.all, *sums], key=lambda one: one.value)


class RunningDriftTest:
    """State of a drift test: its sums, and since when they are above 0.

    Parameters
    ----------
    test
        Its settings.

    Attributes
    ----------
    n_drifts
        Number of drifts found.
    most_sure
        How sure a prediction counts at most.

    Examples
    --------
    >>> running = RunningDriftTest(DriftTest(run_length=100))
    >>> [running.note(1.5, "ann") for _ in range(4)]
    [None, None, None, 4]
    >>> running.n_drifts
    1
    >>> [running.note(1.5, "bob") for _ in range(5)]
    [None, None, None, None, None]
    >>> [running.note(1.5, "ann") for _ in range(2)]
    [None, 2]

    """

    # _suspicions  those that are not 0, by class (see `_class_of_sum`); under None of all labels
    # _heard   number of answers since the last one of each annotator, if at most `_RECENT`
    # _usual   how often labels differ from predictions, compared with what is stated
    # _n_sure  sure predictions, and how many of them labels contradicted
    # _latest  what the latest labels will tell these two: for each the probability, as stated, that
    #          it differs, whether it did, and whether the prediction was sure
    def __init__(self, test: DriftTest) -> None:
        self._test = test
        self._suspicions: dict[Label | None, _Suspicion] = {}
        self._heard: dict[str | None, int] = {}
        self._usual = LogisticCalibration()
        self._n_sure = [0, 0]
        self._latest: list[tuple[float, bool, bool]] = []
        self.n_drifts = 0

    @property
    def most_sure(self) -> float:
        """How sure a prediction counts at most."""
        n, n_contradicted = self._n_sure
        return 1.0 - max((n_contradicted + 1) / (n + _N_BEFOREHAND), 1.0 / _N_BEFOREHAND)

    def learn(
        self,
        belief: Belief,
        y: Label,
        *,
        annotator: str | None,
        asked: bool,
        error_rate: float,
        reconsidered: bool,
    ) -> int | None:
        """Record a label that was learned; see `note`."""
        if not asked and (annotator is not None or self._heard):
            self._count()  # it counts in dates only
            return None
        told = 0.0  # a label that is new, or comes before the first prediction
        if y in criteria.scores(belief):
            e = error_rate * (INSISTED / WRONG if reconsidered else 1.0)
            right = criteria.probability_right(belief)
            stated, worthless = differing(belief, min(right, self.most_sure), error_rate=e)
            differs = bool(y != criteria.predicted(belief))
            # However long labels have agreed, a few that differ are no proof of a change.
            least = min(stated, 1.0 - self.most_sure)
            expected = max(self._usual.corrected(stated), least)
            told = surprise(differs, expected, max(worthless, expected))
            self._latest.append((stated, differs, right >= _SURE))
            if len(self._latest) > _N_LATEST:
                self._count_as_usual(*self._latest.pop(0))
        concerned = _class_of_sum(belief)
        return self.note(told, annotator, concerned, asked=asked)

    def least(self, concerned: Label | None = None, n_events: int = _BEGINNING) -> float:
        """Least probability of asking about the n-th event, given the class of its sum."""
        at_least, largest = self._test.at_least, 0.0
        for key in (None, concerned):
            one = self._suspicions.get(key)
            if one is not None and one.shown(self._witnesses).value >= 0.0:
                largest = max(largest, one.all.value)
        # Not more than the logarithm of a float, or the exponential overflows.
        suspicion = min(largest, math.log(self._test.run_length))
        suspected = min(max(_MOST_ASKED, at_least), at_least * math.exp(suspicion))
        # From the end of the beginning on this is `at_least` or less.
        at_first = min(_MOST_AT_FIRST, at_least * _BEGINNING / max(n_events, 1))
        return max(suspected, at_first)

    def decided(self, belief: Belief, wish: Decision, draw: float, n_events: int) -> Decision:
        """Return a decision that asks with at least the probability of the test; changes nothing.

        `draw` is that of the query strategy: one that asks at random asks with the larger of the
        two probabilities. `n_events` is the number of events so far, this one included.
        """
        # It never asks with a larger probability than this, and most draws are above it.
        if wish.ask or draw >= max(_MOST_ASKED, self._test.at_least):
            return wish
        least = self.least(_class_of_sum(belief), n_events)
        return Decision.of(least, draw, recorded_name(DriftTest)) if least > draw else wish

    def note(
        self,
        surprise: float,
        annotator: str | None = None,
        concerned: Label | None = None,
        *,
        asked: bool = True,
    ) -> int | None:
        """Record the surprise of a label that was learned, its annotator, and the class of its sum.

        `asked` says that it was asked for.

        Returns
        -------
        If a drift is found, the number of the latest labels since, this one included; else None.

        """
        keys = dict.fromkeys((None, concerned))
        # No logarithm of the product, which may be infinite.
        alarm = math.log(len(keys)) + math.log(self._test.run_length)
        if asked:
            self._heard = {name: n + 1 for name, n in self._heard.items() if n < _RECENT}
            self._heard[annotator] = 0
        for key in keys:
            self._suspicions.setdefault(key, _Suspicion())
        self._count()
        for key in keys:
            suspicion = self._suspicions[key]
            suspicion.add(surprise, annotator, alarm)
            shown = suspicion.shown(self._witnesses)
            if suspicion.all.value >= alarm and shown.value >= _OF_OTHERS * alarm:
                self._suspicions, self._latest = {}, []
                self.n_drifts += 1
                return shown.n_since
            if suspicion.all.value <= 0.0 and not suspicion.without:
                del self._suspicions[key]
        return None

    def _count_as_usual(self, stated: float, differs: bool, is_sure: bool) -> None:
        self._usual.note(stated, differs)
        if is_sure:
            self._n_sure[0] += 1
            self._n_sure[1] += differs

    @property
    def _witnesses(self) -> Collection[str | None]:
        return self._heard.keys() or {None}

    def _count(self) -> None:
        """Count a label among those since each sum was last 0."""
        for one in self._sums():
            one.n_since += 1

    def _sums(self) -> Iterator[_Sum]:
        for suspicion in self._suspicions.values():
            yield suspicion.all
            yield from suspicion.without.values()

    def forget(self, n_latest: int) -> None:
        """Count the labels since each sum was last 0 without the `n_latest`-th latest one."""
        for one in self._sums():
            one.n_since -= n_latest <= one.n_since

    def state(self) -> State:
        """Return the state as plain JSON values."""
        return {
            "suspicions": [
                [
                    plain_label(key),
                    *_plain(one.all),
                    [[name, *_plain(s)] for name, s in one.without.items()],
                ]
                for key, one in self._suspicions.items()
            ],
            "heard": [[name, n] for name, n in self._heard.items()],
            "usual": self._usual.state(),
            "n_sure": [*self._n_sure],
            "latest": [[*one] for one in self._latest],
            "n_drifts": self.n_drifts,
        }

    def load_state(self, state: State) -> None:
        """Restore `state`; one with a single sum is restored without suspicion."""
        self._suspicions = {
            key: _Suspicion(
                _Sum(float(value), int(n_since)),
                {name: _Sum(float(told), int(n)) for name, told, n in without},
            )
            for key, value, n_since, without, *_ in state.get("suspicions", ())
        }
        self._heard = {name: int(n) for name, n in state.get("heard", ())}
        self._usual.load_state(state.get("usual", (0.0, 1.0)))
        self._n_sure = [int(n) for n in state["n_sure"][:2]]
        self._latest = [
            (float(stated), bool(differs), bool(is_sure))
            for stated, differs, is_sure in state.get("latest", ())
        ]
        self.n_drifts = int(state["n_drifts"])


def _class_of_sum(belief: Belief) -> Label | None:
    """Return the class whose sum a label counts in, besides that of all labels; None for none.

    With two classes, a change of one is half of everything.
    """
    return criteria.predicted(belief) if len(criteria.scores(belief)) > 2 else None


def _plain(one: _Sum) -> tuple[float, int]:
    return one.value, one.n_since


def differing(belief: Belief, right: float, *, error_rate: float) -> tuple[float, float]:
    """Return how probable it is that a label differs from the prediction: as stated, if worthless.

    Parameters
    ----------
    belief
        What the learner believes about the event before it learns the label.
    right
        Probability that the prediction is right.
    error_rate
        Estimate of how often the annotator errs, strictly between 0 and 1.

    Examples
    --------
    >>> differing({"day": 0.9, "night": 0.1}, 0.9, error_rate=0.1)
    (0.18..., 0.5)
    >>> differing({"day": 0.9, "night": 0.1}, 0.8, error_rate=0.1)
    (0.26..., 0.5)

    """
    others = max(len(criteria.scores(belief)), 2) - 1
    nearby = _disagreement_nearby(belief, criteria.predicted(belief))

    def probability(right: float) -> float:
        """Probability that it differs, if predictions are right with this probability."""
        return max((1.0 - right) * (1.0 - error_rate / others) + right * error_rate, nearby)

    return probability(right), probability(min(right, _WORTHLESS))


def surprise(differs: bool, stated: float, worthless: float) -> float:
    """Return the log likelihood ratio of a label for `DriftTest`, in nats.

    Parameters
    ----------
    differs
        Whether the label differs from the prediction.
    stated, worthless
        The probabilities that it does, strictly between 0 and 1.

    Examples
    --------
    >>> surprise(True, stated=0.18, worthless=0.5), surprise(False, stated=0.18, worthless=0.5)
    (1.02..., -0.49...)

    """
    return math.log(worthless / stated if differs else (1.0 - worthless) / (1.0 - stated))


def _disagreement_nearby(belief: Belief, predicted: Label | None) -> float:
    """Four fifths of the share of labels nearby that are not of the predicted class.

    They are weighed as the posterior weighs them. 0 if no mean is positive, and for probabilities
    of other learners, which count it themselves.
    """
    if not isinstance(belief, Posterior) or predicted is None:
        return 0.0
    total = criteria.explained(belief)
    share = max(belief.mean[predicted], 0.0) / total if total > 0.0 else 1.0
    return _NEARBY * (1.0 - share)
