"""Class probabilities that River can also take as an active learner's pair.

River's active classifiers return `(probabilities, ask)` from `predict_proba_one`; all other
classifiers return probabilities. A skeptical classifier returns probabilities that become the pair
when they are unpacked, which is all that River does with them.

"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from streamgp.base import Label

_UNPACK = dis.opmap["UNPACK_SEQUENCE"]


class UnpackableProbabilities(dict[Label, float]):
    """Dictionary of class probabilities; `probabilities, ask = ...` unpacks it into a pair.

    The pair is made when it is first unpacked, by counting the event as
    `SkepticalClassifier.predict_one` does, and stays the same from then on. Nothing else that is
    done with the dictionary counts anything, including a loop over its classes. Copies are plain
    dictionaries.

    Parameters
    ----------
    proba
        Probability of each class.
    ask
        Counts the event; returns its probabilities and whether a label is asked for.

    Attributes
    ----------
    plain
        The probabilities as they were given, for callers that want to keep them.

    Examples
    --------
    >>> proba = UnpackableProbabilities({"home": 0.8, "work": 0.2}, lambda: ({"home": 1.0}, True))
    >>> list(proba), max(proba, key=proba.get)
    (['home', 'work'], 'home')
    >>> known, ask = proba
    >>> known, ask
    ({'home': 1.0}, True)

    """

    __slots__ = ("_ask", "_pair", "plain")

    def __init__(
        self, proba: dict[Label, float], ask: Callable[[], tuple[dict[Label, float], bool]]
    ) -> None:
        dict.__init__(self, proba)  # without super(), which would take longer than all the rest
        self.plain = proba
        self._ask = ask
        self._pair: tuple[dict[Label, float], bool] | None = None

    def __iter__(self) -> Iterator[Any]:
        if not _unpacks_a_pair(sys._getframe(1)):
            return super().__iter__()
        if self._pair is None:
            self._pair = self._ask()
        return iter(self._pair)

    def __reduce__(self) -> tuple[Any, ...]:
        # `ask` holds the learner and the event: neither belongs in a copy or a pickle.
        return dict, (dict(self),)


def _unpacks_a_pair(frame: FrameType) -> bool:
    """Whether the instruction that a frame executes is the assignment `a, b = ...`."""
    # An iterator cannot tell it from a loop over two classes; the caller's instruction can.
    code, at = frame.f_code.co_code, frame.f_lasti
    return code[at] == _UNPACK and code[at + 1] == 2
