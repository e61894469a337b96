"""Metrics of a conversation: they assess questions, not predictions."""

from __future__ import annotations

from typing import ClassVar

from streamgp.metrics.metric import Metric


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
