"""Drift detector: a classifier errs more often than it did.

What is to be done about it is the classifier's business.

"""

from __future__ import annotations

from streamgp.common.validation import check_number


class DriftWatch:
    """Watches whether predictions were wrong, and tells when that has become more frequent.

    River's ADWIN keeps a window of outcomes that grows until its newer part differs from the older
    one more than chance explains. If there are more errors now, that is a drift. If there are
    fewer, the classifier has learned something; the window then begins anew as well.

    Parameters
    ----------
    delta
        How easily chance is taken for a change; the smaller, the longer it takes to notice one.

    Attributes
    ----------
    n_drifts
        Drifts so far.

    Examples
    --------
    A classifier that is right, and from the 500th label on always wrong:

    >>> watch = DriftWatch()
    >>> [i for i in range(1000) if watch.note(wrong=i >= 500)]
    [511]

    References
    ----------
    [^1]: Bifet, A. and Gavaldà, R., 2007. Learning from time-changing data with adaptive windowing.
        SIAM International Conference on Data Mining, 443-448.

    """

    # _adwin  what was noted since the last drift, or change for the better
    def __init__(self, delta: float = 0.002) -> None:
        check_number("delta", delta, "between 0 and 1", lambda p: 0.0 < p < 1.0)
        self.delta = delta
        self.n_drifts = 0
        self._begin()

    def note(self, wrong: bool) -> bool:
        """Take note of whether a prediction was wrong, and tell whether there is a drift."""
        before = self._adwin.estimation
        self._adwin.update(int(wrong))  # type: ignore[no-untyped-call]
        if not self._adwin.drift_detected:
            return False
        worse = bool(self._adwin.estimation > before)
        self.n_drifts += worse
        self._begin()
        return worse

    def _begin(self) -> None:
        from river.drift import ADWIN  # late: takes most of a second

        self._adwin = ADWIN(delta=self.delta)  # type: ignore[no-untyped-call]
