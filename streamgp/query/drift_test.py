"""Test for concept drift: whether answers surprise a learner more than it expects to be surprised.

A learner that asks where it is unsure asks nothing where it is sure, and does not notice when the
world has changed there. The test asks about a few of these events, compares each answer with how
sure the learner was, asks more while answers are surprising, and finds when the change was.

"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from streamgp.base import Belief, Decision, Label, Posterior, State
from streamgp.common.fingerprint import recorded_name
from streamgp.common.uncertainty import most_probable
from streamgp.common.validation import check_number, check_rate
from streamgp.query.criteria import probability_right

# Predictions with at least this probability of being right are sure; how many of them count as seen
# beforehand, all but one of them right.
_SURE: Final = 0.9
_N_BEFOREHAND: Final = 50
# Probability of being right, at most, of a prediction that has become worthless.
_WORTHLESS: Final = 0.5
# How far the disagreement of the labels nearby counts: some of them are wrong, or from before a
# change, and would hide it.
_NEARBY: Final = 0.8
# Largest probability of asking because of a suspicion.
_MOST_ASKED: Final = 0.1
# Number of latest answers, one of which makes an annotator a witness.
_RECENT: Final = 100
# Share of the alarm that the sum without any one annotator must reach: odds of 21 by default. A
# learner soon learns what is new, and is no longer surprised, so that two annotators would often
# not both get to the alarm.
_OF_OTHERS: Final = 1.0 / 3.0
# Least value of a sum without one annotator, so that the others can have spoken against a change;
# about two labels as predicted.
_AGAINST: Final = -1.0
# What remains of an annotator's error rate after an answered challenge, as in a temporal filter.
_LEFT_AFTER_CHALLENGE: Final = 0.25


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

    Labels may be noisy, and learners surer than they should be: no prediction counts as surer than
    .98, nor as surer than labels have agreed with predictions of q >= .9 so far. Labels since S was
    last 0 do not count for that.

    After a drift S grows by one to three for each surprise, and S = log(`run_length`) is an alarm.
    The change is dated to the first label after S was last 0; the learner forgets all examples
    before it. If q and e are as stated, false alarms are `run_length` labels apart on average, or
    more (Lorden 1971).

    Whatever the query strategy decides, each event is asked about with a probability of at least
    `at_least · exp(S)`, up to 0.1: so the test sees events of which the learner is sure, and a
    suspicion is soon confirmed or dropped.

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
        Least probability of asking about an event while no label is surprising.
    run_length
        Mean number of labels between false alarms, at least; finite and more than 1.

    Examples
    --------
    >>> surprise({"day": 0.9, "night": 0.1}, "night", error_rate=0.1)
    1.02...
    >>> surprise({"day": 0.9, "night": 0.1}, "day", error_rate=0.1)
    -0.49...
    >>> surprise({"day": 0.9, "night": 0.1}, "night", error_rate=0.1, most_sure=0.8)
    0.65...

    References
    ----------
    [^1]: Page, E.S., 1954. Continuous inspection schemes. Biometrika 41, 100-115.
    [^2]: Lorden, G., 1971. Procedures for reacting to a change in distribution. Annals of
        Mathematical Statistics 42, 1897-1908.

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
    """Page's sum of some of the labels, and the number of all labels since it was last 0."""

    value: float = 0.0
    n_since: int = 0

    def add(self, surprise: float, largest: float, least: float = 0.0) -> None:
        self.value = min(max(self.value + surprise, least), largest)
        self.n_since = self.n_since + 1 if self.value > 0.0 else 0


class RunningDriftTest:
    """State of a drift test: the sum, and since when it is above 0.

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

    # _all      S
    # _without  S of the labels of all others, by annotator, from `_AGAINST` on; S if not there
    # _heard    number of answers since the last one of each annotator, if at most `_RECENT`
    # _n_sure, _n_sure_since  sure predictions, and how many of them labels contradicted: before
    #           S was last 0, and since
    def __init__(self, test: DriftTest) -> None:
        self._test = test
        self._n_sure = [0, 0]
        self._heard: dict[str | None, int] = {}
        self._begin()
        self.n_drifts = 0

    def _begin(self) -> None:
        self._all = _Sum()
        self._without: dict[str | None, _Sum] = {}
        self._n_sure_since = [0, 0]

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
        """Record a label that was learned; see `surprise` and `note`."""
        if not asked and (annotator is not None or self._heard):
            return self.note(0.0, annotator, asked=False)  # it counts in dates only
        told = surprise(
            belief, y, error_rate=error_rate, reconsidered=reconsidered, most_sure=self.most_sure
        )
        known = _scores(belief)
        # Also if `most_sure` leaves no surprise, or many wrong labels would end the test for good.
        if y in known and probability_right(belief) >= _SURE:
            self._n_sure_since[0] += 1
            self._n_sure_since[1] += y != most_probable(known)
        return self.note(told, annotator, asked=asked)

    @property
    def least(self) -> float:
        """Least probability of asking about an event."""
        at_least = self._test.at_least
        if self._shown.value < 0.0:
            return at_least
        return min(max(_MOST_ASKED, at_least), at_least * math.exp(self._all.value))

    @property
    def _shown(self) -> _Sum:
        """The least of the sums: none of the annotators alone has shown it."""
        heard = [*self._heard] or [None]
        sums = [one for name, one in self._without.items() if [name] != heard]
        return min([self._all, *sums], key=lambda one: one.value)

    def decided(self, wish: Decision, draw: float) -> Decision:
        """Return a decision that asks with at least the probability of the test; changes nothing.

        `draw` is that of the query strategy: one that asks at random asks with the larger of the
        two probabilities.
        """
        if wish.ask:
            return wish
        own = Decision.of(self.least, draw, recorded_name(DriftTest))
        return own if own.ask else wish

    def note(
        self, surprise: float, annotator: str | None = None, *, asked: bool = True
    ) -> int | None:
        """Record the surprise of a label that was learned, and its annotator.

        `asked` says that it was asked for.

        Returns
        -------
        If a drift is found, the number of the latest labels since, this one included; else None.

        """
        alarm = math.log(self._test.run_length)
        if asked:
            self._heard = {name: n + 1 for name, n in self._heard.items() if n < _RECENT}
            self._heard[annotator] = 0
        self._without.setdefault(annotator, replace(self._all))
        for name, others in self._without.items():
            others.add(0.0 if name == annotator else surprise, alarm, _AGAINST)
        self._all.add(surprise, alarm)
        if self._all.value <= 0.0:
            before, since = self._n_sure, self._n_sure_since
            self._n_sure = [before[0] + since[0], before[1] + since[1]]
            self._n_sure_since = [0, 0]
            self._without = {name: one for name, one in self._without.items() if one.value > 0.0}
        shown = self._shown
        if self._all.value < alarm or shown.value < _OF_OTHERS * alarm:
            return None
        self._begin()
        self.n_drifts += 1
        return shown.n_since

    def forget(self, n_latest: int) -> None:
        """Count the labels since a sum was last 0 without the `n_latest`-th latest one."""
        for one in (self._all, *self._without.values()):
            one.n_since -= n_latest <= one.n_since

    def state(self) -> State:
        """Return the state as plain JSON values."""
        return {
            "sum": self._all.value,
            "n_since": self._all.n_since,
            "without": [[name, one.value, one.n_since] for name, one in self._without.items()],
            "heard": [[name, n] for name, n in self._heard.items()],
            "n_sure": [*self._n_sure, *self._n_sure_since],
            "n_drifts": self.n_drifts,
        }

    def load_state(self, state: State) -> None:
        """Restore `state`."""
        self._all = _Sum(float(state["sum"]), int(state["n_since"]))
        self._without = {name: _Sum(float(told), int(n)) for name, told, n in state["without"]}
        self._heard = {name: int(n) for name, n in state["heard"]}
        counts = [int(n) for n in state["n_sure"]]
        self._n_sure, self._n_sure_since = counts[:2], counts[2:]
        self.n_drifts = int(state["n_drifts"])


def surprise(
    belief: Belief,
    y: Label,
    *,
    error_rate: float,
    reconsidered: bool = False,
    most_sure: float = 1.0 - 1.0 / _N_BEFOREHAND,
) -> float:
    """Return the log likelihood ratio of a label for `DriftTest`, in nats.

    A label that is new, or comes before the first prediction, does not tell anything.

    Parameters
    ----------
    belief
        What the learner believed about the event before it learned the label.
    y
        The label.
    error_rate
        Estimate of how often its annotator errs, strictly between 0 and 1.
    reconsidered
        Whether the annotator was asked to reconsider.
    most_sure
        How sure a prediction counts at most.

    """
    known = _scores(belief)
    if y not in known:
        return 0.0
    predicted = most_probable(known)
    q = min(probability_right(belief), most_sure)
    e = error_rate * (_LEFT_AFTER_CHALLENGE if reconsidered else 1.0)
    others = max(len(known), 2) - 1

    nearby = _disagreement_nearby(belief, predicted)

    def probability(right: float) -> float:
        """Probability of what was seen, if predictions are right with this probability."""
        differs = max((1.0 - right) * (1.0 - e / others) + right * e, nearby)
        return 1.0 - differs if y == predicted else differs

    return math.log(probability(min(q, _WORTHLESS)) / probability(q))


def _disagreement_nearby(belief: Belief, predicted: Label | None) -> float:
    """Four fifths of the share of labels nearby that are not of the predicted class.

    They are weighed as the posterior weighs them. 0 if no mean is positive, and for probabilities
    of other learners, which count it themselves.
    """
    if not isinstance(belief, Posterior) or predicted is None:
        return 0.0
    total = sum([m for m in belief.mean.values() if m > 0.0])
    share = max(belief.mean[predicted], 0.0) / total if total > 0.0 else 1.0
    return _NEARBY * (1.0 - share)


def _scores(belief: Belief) -> Mapping[Label, float]:
    """Means or probabilities of the known classes."""
    return belief.mean if isinstance(belief, Posterior) else belief
