"""Random numbers that belong to their cause, not to the order of the calls.

A draw is a function of the seed, the event and what it is for, so that decisions repeat after a
restart, in any order of unrelated events, and however often they are asked for.

"""

from __future__ import annotations

import hashlib

_2_TO_53 = float(1 << 53)


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
    return (int.from_bytes(digest, "big") >> 11) / _2_TO_53
