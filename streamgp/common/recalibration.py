"""Correction of stated probabilities, found from what came true."""

from __future__ import annotations

import math
from collections.abc import Sequence

# Precision of the slope of a calibration beforehand.
_PRECISION = 4.0
# Probabilities closer to 0 or 1 count as this far away, so that their log odds are finite.
_LEAST = 1e-6


class CalibrationSlope:
    """How much surer than stated probabilities are to be, found from what came true.

    Above a threshold `t`, where it is known what came true, a probability `p` is corrected to `p'`:

        logit p' = logit t + slope (logit p - logit t)

    The slope is normal with mean 1 and standard deviation 1/2 beforehand. Each outcome moves it by
    one Newton step of the log posterior, but never below 1: an annotator who insists on a wrong
    answer makes no other one more credible.

    Parameters
    ----------
    threshold
        The probability that stays as it is, as do all below.

    Examples
    --------
    >>> slope = CalibrationSlope(0.1)
    >>> for came_true in (True, True, False, True):
    ...     slope.note(0.4, came_true)
    >>> [round(slope.corrected(p), 2) for p in (0.05, 0.1, 0.2, 0.4, 0.6)]
    [0.05, 0.1, 0.25, 0.56, 0.79]

    References
    ----------
    [^1]: Cox, D.R., 1958. Two further applications of a model for binary regression. Biometrika 45,
        562-565.

    """

    # _information  Fisher information about the slope, and the precision of its prior

    def __init__(self, threshold: float) -> None:
        self._origin = _logit(threshold)
        self._slope, self._information = 1.0, _PRECISION

    def corrected(self, p: float) -> float:
        """Return a stated probability corrected; it is never smaller."""
        above = _logit(p) - self._origin
        if above <= 0.0 or self._slope == 1.0:  # which is exact
            return p
        return max(p, _logistic(self._origin + self._slope * above))

    def note(self, p: float, came_true: bool) -> None:
        """Record whether what had the stated probability `p` came true."""
        above = _logit(p) - self._origin
        if above <= 0.0:
            return
        q = self.corrected(p)
        self._information += q * (1.0 - q) * above * above
        self._slope = max(1.0, self._slope + (came_true - q) * above / self._information)

    def state(self) -> list[float]:
        """Return what the outcomes have told."""
        return [self._slope, self._information]

    def load_state(self, state: Sequence[float]) -> None:
        """Become what the state was taken from."""
        self._slope, self._information = _finite(state)


class LogisticCalibration:
    """How often what is stated to be probable comes true, found from what came true.

    A probability `p` is corrected to `p'`:

        logit p' = a + b logit p

    Beforehand `a` is standard normal, and `b` is normal with mean 1 and standard deviation 1/2.
    Each outcome moves both by one Newton step of the log posterior, but `b` never below 0. What is
    more probable than stated counts at once. What is less probable counts only as far as that is
    certain: with `logit p'` two standard deviations larger, and `p'` at most `p`.

    Examples
    --------
    >>> calibration = LogisticCalibration()
    >>> for came_true in (True, False, True, True):
    ...     calibration.note(0.3, came_true)
    >>> [round(calibration.corrected(p), 2) for p in (0.1, 0.3, 0.5)]
    [0.28, 0.54, 0.7]

    References
    ----------
    [^1]: Cox, D.R., 1958. Two further applications of a model for binary regression. Biometrika 45,
        562-565.

    """

    # _a, _b        intercept and slope
    # _information  Fisher information about them, and the precision of their prior: about a, about
    #               both, about b

    def __init__(self) -> None:
        self._a, self._b = 0.0, 1.0
        self._information = (1.0, 0.0, _PRECISION)

    def corrected(self, p: float) -> float:
        """Return a stated probability corrected."""
        x = _logit(p)
        log_odds = self._a + self._b * x
        if log_odds > x:
            return max(p, _logistic(log_odds))
        aa, ab, bb = self._information
        variance = (bb - 2.0 * ab * x + aa * x * x) / (aa * bb - ab * ab)
        return min(p, _logistic(log_odds + 2.0 * math.sqrt(variance)))

    def note(self, p: float, came_true: bool) -> None:
        """Record whether what had the stated probability `p` came true."""
        x = _logit(p)
        q = _logistic(self._a + self._b * x)
        weight, error = q * (1.0 - q), came_true - q
        aa, ab, bb = self._information
        aa, ab, bb = aa + weight, ab + weight * x, bb + weight * x * x
        self._information = (aa, ab, bb)
        step = error / (aa * bb - ab * ab)
        self._a += step * (bb - ab * x)
        self._b = max(0.0, self._b + step * (aa * x - ab))

    def state(self) -> list[float]:
        """Return what the outcomes have told."""
        return [self._a, self._b, *self._information]

    def load_state(self, state: Sequence[float]) -> None:
        """Become what the state was taken from; one without a slope is `a` and its information."""
        if len(state) == 2:
            a, information = state
            state = (a, 1.0, information, 0.0, _PRECISION)
        self._a, self._b, aa, ab, bb = _finite(state)
        self._information = (aa, ab, bb)


def _finite(state: Sequence[float]) -> list[float]:
    """Return numbers of a state; raise ValueError for one that is not finite."""
    numbers = [float(value) for value in state]
    if not all(map(math.isfinite, numbers)):
        raise ValueError(f"the state of a calibration must be finite, got {state!r:.80}")
    return numbers


def _logit(p: float) -> float:
    p = min(max(p, _LEAST), 1.0 - _LEAST)
    return math.log(p / (1.0 - p))


def _logistic(log_odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-log_odds))
