"""Settings of a worker and of its loops."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connectors.wire.signatures import Signatures
from streamgp.base import Budget
from streamgp.common.budget_account import fingerprint_with
from streamgp.common.fingerprint import fingerprint
from streamgp.common.signatures import parameters
from streamgp.interactive.keyed import KeyedLoops
from streamgp.interactive.loop_cache import LoopStore
from streamgp.interactive.people import LoopRules

if TYPE_CHECKING:
    from streamgp.interactive.event_windows import EventWindows

WINDOWS = "windows"
"""Name of the windows of raw rows in the record `configuration`."""
SETTINGS = "settings"
"""Name of the digests of the learner's settings in the same record; earlier versions left it out.

They say which settings differ; whether any does, the fingerprint decides.
"""
WINDOW = 1000
"""Number of recent inputs over which the share of unusable ones is computed."""


class TooManyBadError(Exception):
    """More inputs than allowed could not be used; the text says how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """Settings of a worker that do not depend on its learner.

    Parameters
    ----------
    group
        Group of workers that share the partitions.
    instance
        Name of this worker, unique within the group and the same after a restart.
    batch
        The largest number of records processed together.
    save_every_s
        Seconds between two snapshots of a partition on the local disk.
    max_bad_share
        The largest share of the last 1000 inputs that may be unusable.
    strict
        Whether to refuse partitions that were processed in another numerical environment.
    leave
        Whether to leave the group when stopped, so that others take over at once; otherwise the
        group reserves the partitions for a while for a worker of the same name.

    """

    group: str = "streamgp"
    instance: str = "worker"
    batch: int = 1000
    save_every_s: float = 30.0
    max_bad_share: float = 0.5
    strict: bool = False
    leave: bool = False


def source_of(group: str) -> str:
    """Return the source that a group's workers write into their records: `ce_source`."""
    return f"/streamgp/{group}"


def check_share(recent: deque[bool], verdicts: Iterable[bool], max_bad_share: float) -> None:
    """Record which inputs could not be used, and raise an error if there were too many.

    Parameters
    ----------
    recent
        Earlier verdicts, at most the last 1000.
    verdicts
        For each further input, whether it could not be used.
    max_bad_share
        The largest share of the last 1000 that may be unusable.

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


# --- Settings of the loops.


def configuration_of(
    model: Any, total_budget: Budget | None, windows: EventWindows | None, *, keyed: bool
) -> dict[str, Any]:
    """Return the record `configuration` of the topic `state`, without a worker's signature."""
    names = (name for name in parameters(type(model)) if hasattr(model, name))
    built = {"learner" if name == "model" else name: getattr(model, name) for name in names}
    settings = {**built, "total_budget": total_budget}
    found = {
        "fingerprint": fingerprint_with(model, total_budget),
        "keyed": keyed,
        SETTINGS: {name: fingerprint(value) for name, value in settings.items()},
    }
    return found if windows is None else {**found, WINDOWS: windows.fingerprint()}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings(LoopRules):
    """Settings of the loops of every partition: the rules of each, and those of all together.

    Parameters
    ----------
    model
        A skeptical classifier; it is cloned and never taught itself.
    keyed
        Whether each key has its own loop, or all keys share one.
    max_keys, total_budget
        As in `streamgp.interactive.KeyedLoops`; the budget is for each partition.
    signatures
        Verifies the signatures of answers; None if answers are not signed.
    windows
        Turns raw rows into events; cloned for each partition. None: records are events.

    """

    model: Any
    keyed: bool = True
    max_keys: int | None = None
    total_budget: Budget | None = None
    windows: EventWindows | None = None
    signatures: Signatures | None = None

    def __post_init__(self) -> None:
        LoopRules.__post_init__(self)
        if self.total_budget is not None and not self.keyed:
            raise ValueError("a total budget is for the loops of many keys; take that of the model")

    @property
    def configuration(self) -> dict[str, Any]:
        """Record `configuration` of the topic `state`, with which the topics must agree."""
        return configuration_of(self.model, self.total_budget, self.windows, keyed=self.keyed)

    def entity(self, key: str | None) -> str:
        """Return the entity of a key's state; it is empty if one loop serves all keys."""
        return (key or "") if self.keyed else ""

    def new(self, store: LoopStore | None) -> KeyedLoops:
        """Return empty loops."""
        return KeyedLoops(self.model, store=store, **self.arguments, **self._kept)

    def restored(self, data: bytes, store: LoopStore | None) -> KeyedLoops:
        """Restore loops from a snapshot."""
        return KeyedLoops.restore(data, self.model, store=store, **self._kept)

    @property
    def _kept(self) -> dict[str, Any]:
        return {
            "keyed": self.keyed,
            "max_keys": self.max_keys if self.keyed else None,
            "keep_changes": True,
            "total_budget": self.total_budget,
        }
