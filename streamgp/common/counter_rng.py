"""Random numbers that belong to their cause, not to the order of the calls.

A draw is a function of the seed, the event and its purpose, so that decisions repeat after a
restart, in any order of unrelated events, and however often they are requested.

"""

from __future__ import annotations

import hashlib
from numbers import Integral
from struct import Struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_2_TO_53 = float(1 << 53)
_WORD = Struct(">Q")


def check_seed(seed: object) -> None:
    """Raise TypeError if a seed is neither a whole number nor None (to draw one)."""
    if not (seed is None or isinstance(seed, Integral)):
        raise TypeError(f"seed must be a whole number or None, got {seed!r}")


def uniform(seed: int, cause: str, purpose: str) -> float:
    """Draw a number uniform in [0, 1) for one cause and one purpose.

    Parameters
    ----------
    seed
        Seed of the run.
    cause
        Id or number of the event.
    purpose
        What the number decides; different purposes are independent.

    Examples
    --------
    >>> uniform(1, "event-7", "ask") == uniform(1, "event-7", "ask")
    True
    >>> uniform(1, "event-7", "ask") == uniform(1, "event-8", "ask")
    False

    """
    digest = hashlib.blake2b(f"{seed}\x1f{purpose}\x1f{cause}".encode(), digest_size=8).digest()
    (word,) = _WORD.unpack(digest)
    return (word >> 11) / _2_TO_53  # type: ignore[no-any-return]


def uniforms(n: int, seed: int, cause: str, purpose: str) -> NDArray[np.float64]:
    """Draw `n` numbers uniform in (0, 1), ends excluded, for one cause and one purpose.

    Parameters
    ----------
    n
        How many.
    seed
        Seed of the run.
    cause
        Id or name of what they belong to.
    purpose
        What they decide; different purposes are independent.

    Examples
    --------
    >>> uniforms(2, 1, "temperature", "frequencies")
    array([0.42265308, 0.95305184])

    """
    import numpy as np  # late: single draws do not need it

    text = f"{seed}\x1f{purpose}\x1f{cause}".encode("utf-8", "surrogatepass")
    words = np.frombuffer(hashlib.shake_256(text).digest(8 * n), dtype="<u8")
    drawn: NDArray[np.float64] = ((words >> np.uint64(11)).astype(float) + 0.5) / _2_TO_53
    return drawn
