"""Metrics of a conversation: they assess questions, not predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

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

    found_in: ClassVar[str]

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self.get():.2%}"


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


class _ChallengeShare(_Share):
    """A share of some of the first answers."""

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
        self._note(challenged, wrong, 1)

    def revert(self, challenged: bool, wrong: bool) -> None:
        """Uncount one answer."""
        self._note(challenged, wrong, -1)

    def _note(self, challenged: bool, wrong: bool, step: int) -> None:
        raise NotImplementedError


class ChallengePrecision(_ChallengeShare):
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

    def _note(self, challenged: bool, wrong: bool, step: int) -> None:
        if challenged:
            self._count(wrong, step)


class ChallengeRecall(_ChallengeShare):
    """Share of the wrong answers that were challenged; the other answers are ignored.

    Examples
    --------
    >>> from streamgp.metrics import ChallengeRecall
    >>> metric = ChallengeRecall()
    >>> for challenged, wrong in [(True, True), (True, False), (False, True), (False, False)]:
    ...     metric.update(challenged, wrong)
    >>> metric
    ChallengeRecall: 50.00%

    """

    found_in = "challenge_recall of the result"

    def _note(self, challenged: bool, wrong: bool, step: int) -> None:
        if wrong:
            self._count(challenged, step)


class WrongLabelsKept(_Share):
    """Share of the kept labels that are wrong.

    Examples
    --------
    >>> from streamgp.metrics import WrongLabelsKept
    >>> metric = WrongLabelsKept()
    >>> metric.update("hall", "hall")
    >>> metric.update("hall", "den")
    >>> metric
    WrongLabelsKept: 50.00%
    >>> metric.revert("hall", "den")  # the label was corrected
    >>> metric.update("hall", "hall")
    >>> metric
    WrongLabelsKept: 0.00%

    """

    found_in = "wrong_kept of the result"

    def update(self, y_true: Label, y_kept: Label) -> None:
        """Count a label.

        Parameters
        ----------
        y_true
            The true label.
        y_kept
            The label that the learner holds.

        """
        self._count(y_true != y_kept)

    def revert(self, y_true: Label, y_kept: Label) -> None:
        """Uncount a label, for one that was corrected or withdrawn."""
        self._count(y_true != y_kept, -1)


class AnnotatorError(ConversationMetric):
    """Distance of the estimated error rate of an annotator from the observed one.

    Examples
    --------
    >>> from streamgp.metrics import AnnotatorError
    >>> metric = AnnotatorError()
    >>> for estimate, wrong in [(0.2, False), (0.17, False), (0.14, True), (0.24, False)]:
    ...     metric.update(estimate, wrong)
    >>> round(metric.get(), 3)
    0.01
    >>> metric
    AnnotatorError: 1.00% (estimated 24.00%, observed 25.00%)

    """

    found_in = "annotators of streamgp.evaluation.RunStatistics"

    # _estimate  the last estimate
    # _observed  share of wrong answers

    def __init__(self) -> None:
        self._estimate = 0.0
        self._observed = _Share()

    def update(self, estimate: float, wrong: bool) -> None:
        """Count one first answer.

        Parameters
        ----------
        estimate
            Error rate that the learner now assumes, this answer included.
        wrong
            Whether the answer was wrong.

        """
        self._estimate = estimate
        self._observed._count(wrong)

    def get(self) -> float:
        """Return `|estimate - observed share|` as of the last answer; 0 before the first."""
        return abs(self._estimate - self._observed.get())

    def __repr__(self) -> str:
        return (
            f"{super().__repr__()} "
            f"(estimated {self._estimate:.2%}, observed {self._observed.get():.2%})"
        )
