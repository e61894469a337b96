"""How a worker works, and when it gives up."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

WINDOW = 1000
"""Number of inputs of which not too many may be unusable."""


class TooManyBadError(Exception):
    """More inputs than allowed could not be used; the text says how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """How a worker works, whatever it learns.

    Parameters
    ----------
    group
        Workers of one group share the partitions.
    instance
        Name of this worker, of its own within the group, the same after a restart.
    batch
        How many records are worked off together at most.
    save_every_s
        Seconds between two snapshots on the local disk.
    max_bad_share
        Share of the last 1000 inputs that may be unusable.
    strict
        Whether to refuse partitions that were worked on in another numerical environment.
    leave
        Whether to leave the group when stopped, so that others take over at once; otherwise the
        group keeps the partitions for a while for a worker of the same name.

    """

    group: str = "streamgp"
    instance: str = "worker"
    batch: int = 1000
    save_every_s: float = 30.0
    max_bad_share: float = 0.5
    strict: bool = False
    leave: bool = False


def check_share(recent: deque[bool], verdicts: Iterable[bool], max_bad_share: float) -> None:
    """Take note of which inputs could not be used, and give up if that were too many.

    Parameters
    ----------
    recent
        What was noted before; it holds the last 1000.
    verdicts
        For each further input, whether it could not be used.
    max_bad_share
        How many of 1000 may be so.

    Raises
    ------
    TooManyBadError
        If there were more.

    """
    recent.extend(verdicts)
    n_bad = sum(recent)
    if len(recent) == WINDOW and n_bad > max_bad_share * WINDOW:
        raise TooManyBadError(
            f"{n_bad} of the last {WINDOW} inputs could not be used, expected at most "
            f"{max_bad_share:.0%}; look at the dead letters"
        )
