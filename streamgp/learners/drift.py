"""Whether a classifier has begun to err more often than it did: the world has changed.

What is to be done about it is the classifier's business.

"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable

import numpy as np

from streamgp.base import State

# Outcomes that are remembered, and how many of them are left when there is one too many. A window
# of ten thousand shows a change of three in a hundred.
_MOST = 20_000
_LEFT = 10_000


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

    # _adwin     a function of _outcomes
    # _outcomes  since it began anew, one byte each: what can be written down, and told again
    def __init__(self, delta: float = 0.002) -> None:
        if not 0.0 < delta < 1.0:
            raise ValueError(f"delta must lie between 0 and 1, got {delta!r}")
        self.delta = delta
        self.n_drifts = 0
        self._begin(())

    def note(self, wrong: bool) -> bool:
        """Take note of whether a prediction was wrong, and tell whether there is a drift."""
        if len(self._outcomes) == _MOST:
            self._begin(self._outcomes[-_LEFT:])
        before = self._adwin.estimation
        self._outcomes.append(wrong)
        self._adwin.update(int(wrong))  # type: ignore[no-untyped-call]
        if not self._adwin.drift_detected:
            return False
        worse = bool(self._adwin.estimation > before)
        self.n_drifts += worse
        self._begin(())
        return worse

    def state(self) -> State:
        """Return what must survive a restart, as plain JSON values.

        The outcomes, and not the window of ADWIN, whose form is River's own: a bit each, at most
        3.4 kB in all.
        """
        bits = np.packbits(np.frombuffer(self._outcomes, dtype=np.uint8))
        return {
            "n_drifts": self.n_drifts,
            "n": len(self._outcomes),
            "outcomes": b64encode(bits.tobytes()).decode("ascii"),
        }

    def load_state(self, state: State) -> None:
        """Become what the state was taken from."""
        self.n_drifts = int(state["n_drifts"])
        data = b64decode(state["outcomes"], validate=True)
        bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=int(state["n"]))
        self._begin(bits.tolist())

    def _begin(self, outcomes: Iterable[int]) -> None:
        """Begin anew with a few outcomes; what they alone would show is known already."""
        from river.drift import ADWIN  # late: takes most of a second

        self._outcomes = bytearray(outcomes)
        self._adwin = ADWIN(delta=self.delta)  # type: ignore[no-untyped-call]
        for outcome in self._outcomes:
            self._adwin.update(outcome)  # type: ignore[no-untyped-call]
