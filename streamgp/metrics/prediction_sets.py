"""Sets of labels that hold the true one as often as promised, however good the classifier."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Mapping

from river import base

from streamgp.base import Label
from streamgp.common.validation import check_number, check_whole


class PredictionSets(base.Base):
    """Conformal prediction sets from class probabilities: split conformal, online and adaptive.

    The nonconformity of a label is one minus its probability. A set holds the labels whose
    nonconformity is at most the `1 - a` quantile of that of recent true labels (Eq. 1 of [^1], with
    the latest `window` in place of a calibration set). `a` moves by `step * (alpha - e)` after each
    label, where `e` is 1 if the set did not hold it and 0 if it did (Eq. 2): after `T` labels, the
    share of sets that missed theirs is `alpha` up to `1 / (step T)` and `1 / T`, even if the stream
    changes, as long as no label is new: one that the classifier has never met is in no set.

    Sets may be empty: an empty set says that no label is likely enough, as for an event unlike all
    before, when the other sets hold their labels often enough. If labels are learned only for
    doubtful events, as with labels on request, sets are larger than necessary.

    Parameters
    ----------
    alpha
        Share of events whose set may miss the label, between 0 and 1.
    step
        How fast `a` adapts, above 0. Larger values react faster and fluctuate more; with the
        default the share is within .02 of `alpha` after 1000 labels, none of them new.
    window
        Number of latest true labels whose nonconformity is kept.

    Attributes
    ----------
    coverage
        Share of the sets so far that held the label; 0 before the first.

    Examples
    --------
    >>> from river.naive_bayes import GaussianNB
    >>> from streamgp import datasets
    >>> model, sets = GaussianNB(), PredictionSets(alpha=0.1)
    >>> for x, y in datasets.GaussianClasses(seed=1).take(500):
    ...     proba = model.predict_proba_one(x)
    ...     sets.update(y, proba)
    ...     model.learn_one(x, y)
    >>> sets.coverage
    0.898
    >>> len(sets.predict_one(proba))
    1

    References
    ----------
    [^1]: Gibbs, I. and Candès, E., 2021. Adaptive conformal inference under distribution shift.
        Advances in Neural Information Processing Systems 34.

    """

    # _latest, _sorted  nonconformities of the latest true labels, in order of time and of size
    # _alpha            `a` above; it may leave [0, 1]
    # _n, _held         number of sets so far, and of those that held their label
    def __init__(self, alpha: float = 0.1, step: float = 0.05, window: int = 500) -> None:
        check_number("alpha", alpha, "between 0 and 1", lambda p: 0.0 < p < 1.0)
        check_number("step", step, "a number above 0", lambda p: 0.0 < p < math.inf)
        check_whole("window", window, 1)
        self.alpha = alpha
        self.step = step
        self.window = window
        self._alpha = alpha
        self._latest: deque[float] = deque()
        self._sorted: list[float] = []
        self._n = 0
        self._held = 0

    @property
    def coverage(self) -> float:
        """Share of the sets so far that held the label; 0 before the first."""
        return self._held / self._n if self._n else 0.0

    def predict_one(self, proba: Mapping[Label, float]) -> list[Label]:
        """Return the labels of the set, the most probable first; changes nothing."""
        most = self._most()
        likely = [y for y, p in proba.items() if 1.0 - p <= most]
        return sorted(likely, key=lambda y: -proba[y])

    def update(self, y_true: Label, y_pred: Mapping[Label, float]) -> None:
        """Learn from the label of an event and the probabilities predicted before it."""
        score = 1.0 - y_pred.get(y_true, -math.inf)
        held = score <= self._most()
        self._n += 1
        self._held += held
        self._alpha += self.step * (self.alpha - (not held))
        if len(self._latest) == self.window:
            gone = self._latest.popleft()
            del self._sorted[bisect_left(self._sorted, gone)]
        self._latest.append(score)
        insort(self._sorted, score)

    def _most(self) -> float:
        """Largest nonconformity of a label in a set."""
        n = len(self._sorted)
        rank = math.ceil((1.0 - self._alpha) * (n + 1))
        if rank > n:  # every known label
            return 1.0
        # At most 1: a label never met, whose nonconformity is infinite, is in no set.
        return min(self._sorted[rank - 1], 1.0) if rank > 0 else -math.inf
