"""Metrics of a conversation: they assess questions and annotators, not predictions."""

from __future__ import annotations

from collections import defaultdict
from math import sqrt
from typing import TYPE_CHECKING, ClassVar

from streamgp.common.validation import check_whole
from streamgp.metrics.metric import Metric

if TYPE_CHECKING:
    from streamgp.base import Label


class ConversationMetric(Metric):
    """Base class of metrics of a conversation.

    Attributes
    ----------
    found_in
        Where streamgp itself reports the same number: in the result of `interactive_val_score` or
        in a `RunStatistics`.

    """

    _format = ".2%"
    found_in: ClassVar[str]


class _Share(ConversationMetric):
    """A share of the updates."""

    def __init__(self) -> None:
        self._n_hits = 0
        self._n = 0

    def get(self) -> float:
        """Return the share; 0 before the first update, as River's metrics do."""
        return self._n_hits / self._n if self._n else 0.0

    def _count(self, is_hit: bool, step: int = 1) -> None:
        self._n_hits += step * bool(is_hit)
        self._n += step


class LabelRate(_Share):
    """Share of the events whose label was asked for.

    Examples
    --------
    >>> from streamgp.metrics import LabelRate
    >>> metric = LabelRate()
    >>> for asked in (True, False, False, True, False):
    ...     metric.update(asked)
    >>> metric.get()
    0.4
    >>> metric
    LabelRate: 40.00%

    """

    found_in = "n_asked / n_events of the result"

    def update(self, asked: bool) -> None:
        """Count one event.

        Parameters
        ----------
        asked
            Whether its label was asked for.

        """
        self._count(asked)

    def revert(self, asked: bool) -> None:
        """Uncount one event."""
        self._count(asked, -1)


class ChallengePrecision(_Share):
    """Share of the challenged answers that were wrong; the other answers are ignored.

    Examples
    --------
    >>> from streamgp.metrics import ChallengePrecision
    >>> metric = ChallengePrecision()
    >>> for challenged, wrong in [(True, True), (True, False), (False, True), (True, True)]:
    ...     metric.update(challenged, wrong)
    >>> metric
    ChallengePrecision: 66.67%

    """

    found_in = "challenge_precision of the result"

    @property
    def bigger_is_better(self) -> bool:
        return True

    def update(self, challenged: bool, wrong: bool) -> None:
        """Count one first answer.

        Parameters
        ----------
        challenged
            Whether it was challenged.
        wrong
            Whether it was wrong.

        """
        if challenged:
            self._count(wrong)

    def revert(self, challenged: bool, wrong: bool) -> None:
        """Uncount one answer."""
        if challenged:
            self._count(wrong, -1)


class AnnotatorAgreement(ConversationMetric):
    """Gwet's AC1 of two annotators who labelled the same events independently.

    `(p_a - p_e) / (1 - p_e)` with the share `p_a` of events that both label alike, and the chance
    agreement `p_e = Σ π_k (1 - π_k) / (K - 1)`, where `π_k` is the share of label k among all
    answers, and K the number of labels. 1 if all events are labelled alike, 0 if no more than by
    chance. Unlike Cohen's kappa, it does not collapse where nearly all events are of one class.

    Parameters
    ----------
    n_labels
        Number of labels to choose from, K; None for those that occurred.

    Examples
    --------
    Of 10 events, 9 are labelled alike; `p_e = 2 · .45 · .55 = .495`:

    >>> from streamgp.metrics import AnnotatorAgreement
    >>> metric = AnnotatorAgreement()
    >>> for one, other in [("a", "a")] * 4 + [("b", "b")] * 5 + [("a", "b")]:
    ...     metric.update(one, other)
    >>> metric.raw, round(metric.get(), 4), round(metric.standard_error, 4)
    (0.9, 0.802, 0.1886)
    >>> metric
    AnnotatorAgreement: 80.20% ± 18.86% (raw 90.00%, 10 events)

    References
    ----------
    [^1]: Gwet, K.L., 2008. Computing inter-rater reliability and its variance in the presence of
        high agreement. British Journal of Mathematical and Statistical Psychology 61, 29-48.

    """

    found_in = "agreement of streamgp.evaluation.RunStatistics"

    # _cells  number of events by the two labels, where it is not 0

    def __init__(self, n_labels: int | None = None) -> None:
        if n_labels is not None:
            check_whole("n_labels", n_labels, 1)
        self.n_labels = n_labels
        self._cells: defaultdict[tuple[Label, Label], int] = defaultdict(int)

    @property
    def bigger_is_better(self) -> bool:
        return True

    @property
    def n(self) -> int:
        """Number of events that both have labelled."""
        return sum(self._cells.values())

    @property
    def labels(self) -> list[Label]:
        """Labels that occurred, in order of appearance."""
        return list(dict.fromkeys(label for cell in self._cells for label in cell))

    @property
    def cells(self) -> dict[tuple[Label, Label], int]:
        """Number of events by first and second label, where it is not 0."""
        return dict(self._cells)

    def update(self, first: Label, second: Label) -> None:
        """Count an event that one annotator labelled `first`, and the other `second`."""
        self._count(first, second, 1)

    def revert(self, first: Label, second: Label) -> None:
        """Uncount an event."""
        self._count(first, second, -1)

    def of_class(self, label: Label) -> AnnotatorAgreement:
        """Return the agreement on whether an event is of one class or not.

        Examples
        --------
        >>> metric = AnnotatorAgreement()
        >>> for one, other in [("a", "a"), ("b", "c"), ("c", "c"), ("a", "b")]:
        ...     metric.update(one, other)
        >>> metric.raw, metric.of_class("c").raw
        (0.5, 0.75)

        """
        found = AnnotatorAgreement(2)
        for (one, other), n in self._cells.items():
            found._count(one == label, other == label, n)
        return found

    def plus(self, other: AnnotatorAgreement) -> AnnotatorAgreement:
        """Return the agreement over the events of both metrics."""
        found = AnnotatorAgreement(self.n_labels)
        for part in (self, other):
            for (one, second), n in part._cells.items():
                found._count(one, second, n)
        return found

    @property
    def raw(self) -> float:
        """Share of events that both label alike; 0 before the first."""
        n = self.n
        return sum(m for (one, other), m in self._cells.items() if one == other) / n if n else 0.0

    def get(self) -> float:
        """Return AC1; 0 before the first event."""
        return self._known()[0] if self._cells else 0.0

    @property
    def standard_error(self) -> float:
        """Standard error of AC1 over events, by linearisation (Gwet 2008, Eq. 30); 0 without any.

        It holds for many events; for few it is too small, and it is 0 if all are labelled alike.
        """
        if not self._cells:
            return 0.0
        ac1, by_chance, shares, k = self._known()
        raw, total, n = self.raw, 0.0, self.n
        if by_chance >= 1.0:
            return 0.0
        for (one, other), m in self._cells.items():
            chance = (1.0 - (shares[one] + shares[other]) / 2.0) / max(1, k - 1)
            moved = (one == other) - raw - 2.0 * (1.0 - ac1) * (chance - by_chance)
            total += m * moved * moved
        return sqrt(total / n / n) / (1.0 - by_chance)

    def __repr__(self) -> str:
        return (
            f"{super().__repr__()} ± {self.standard_error:.2%} "
            f"(raw {self.raw:.2%}, {self.n} event{'' if self.n == 1 else 's'})"
        )

    def _known(self) -> tuple[float, float, dict[Label, float], int]:
        """Return AC1, the chance agreement, the share of each label, and the number of labels."""
        n, shares = self.n, dict.fromkeys(self.labels, 0.0)
        for cell, m in self._cells.items():
            for label in cell:
                shares[label] += m / (2 * n)
        k = len(shares) if self.n_labels is None else max(self.n_labels, len(shares))
        by_chance = sum(p * (1.0 - p) for p in shares.values()) / max(1, k - 1)
        return (self.raw - by_chance) / (1.0 - by_chance), by_chance, shares, k

    def _count(self, first: Label, second: Label, step: int) -> None:
        self._cells[first, second] += step
        if not self._cells[first, second]:
            del self._cells[first, second]
