"""Loss detection: whether the topics `state` and `consensus` still belong together.

Workers write to both in one transaction, and compaction removes only records that were replaced.
Each topic therefore shows what the other must hold, and a topic that was deleted, emptied,
truncated or restored from an older copy is noticed before a worker continues. Otherwise the worker
would number its examples from the start again, and corrupt the log.

"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, Literal, TypeAlias

from connectors.topics import Place
from connectors.wire.state_records import FORGOTTEN, History, HistoryError
from connectors.worker.compatibility import (
    FLINK_KEEPS_IT,
    UnfitTopicsError,
    interrupted_command,
    is_on_flink,
)
from streamgp.interactive.consensus_log import examples_in
from streamgp.interactive.messages import LabelledExample
from streamgp.interactive.state.serialize import HEAD
from streamgp.interactive.state.snapshot import INCONSISTENT

Flaw: TypeAlias = Literal["headless", "behind", "doubled", "short"]
"""Inconsistencies between the records of one learner.

`headless`: labelled examples without state. `behind`: the state is older than the last example.
`doubled`: two examples with the same number. `short`: fewer examples than the state says were
learned.
"""

RECOVER = (
    "stop all workers, then bring state and consensus back from one backup (`streamgp restore`), "
    "or recover state from what consensus holds with `streamgp recover`"
)
IF_UNREADABLE = (
    "if a later version of streamgp has worked here, use that one; if records of state were lost, "
    + RECOVER
)
_BEGIN_ANEW = (
    "the labelled examples are nowhere else: stop all workers, then bring state and consensus back "
    "from one backup (`streamgp restore`), or start over with other topics (topics.prefix)"
)
_TEXTS: dict[Flaw, str] = {
    "headless": "consensus holds labelled examples of {}, and state has no record of {}: state was "
    "deleted, emptied or cut",
    "behind": "consensus goes on after what state says of {}: state is older than consensus, or "
    "has lost its end",
    "doubled": "consensus has sequence numbers twice for {}: workers went on after state was lost",
    "short": "consensus holds fewer labelled examples of {} than state says were learned: "
    "consensus was cut, or labels were deleted and the nulls gone before a worker read them",
}
_EMPTY = (
    "consensus holds no labelled examples of {}, and state says that some were learned: "
    "consensus was deleted, emptied or cut"
)


class LostRecordsError(UnfitTopicsError):
    """A topic that holds what was learned has lost records; the text says which, and what to do."""


class Losses:
    r"""Losses of one partition.

    Parameters
    ----------
    history
        Its complete history.

    Attributes
    ----------
    flaws
        Number of learners with each flaw; the worst one of each learner counts.
    cut
        The command that was interrupted while writing to the partition, "recover" or "restore";
        None if there was none.

    Examples
    --------
    >>> from connectors.wire.outbound import Outbound
    >>> line = LabelledExample(
    ...     event_id="e1", key="ann", sequence=1, x={}, y="hall", origin="asked", learned_at=0.0
    ... )
    >>> history = History()
    >>> history.append(Outbound("/streamgp/rooms", keyed=True).message(line, partition=2))
    >>> losses = Losses(2, history)
    >>> losses.look("ann", history.parts("ann"), history.lines("ann"))
    'headless'
    >>> str(losses.error())
    'partition 2: consensus holds labelled examples, and state has no record of the workers that...

    """

    # _heeded       offset and time up to which others' nulls are accounted for in the state
    # _n_failed     by entity, the number of others' nulls that could not be carried out
    # _n_learners   number of learners checked
    # _n_lines      number of their lines
    # _is_on_flink  whether a Flink job keeps what is learned
    # _is_unsigned  whether no worker's signature is there
    def __init__(self, partition: int, history: History) -> None:
        self.partition = partition
        self.flaws: Counter[Flaw] = Counter()
        configuration = history.configuration
        self.cut = interrupted_command(configuration)
        self._history = history
        self._is_unsigned = configuration is None
        self._is_on_flink = is_on_flink(configuration)
        forgotten = forgotten_in(history)
        self._heeded = heeded_in(forgotten)
        self._n_failed = failed_in(forgotten)
        self._n_learners = self._n_lines = 0

    def look(
        self, entity: str, parts: Mapping[str, Any], lines: Sequence[LabelledExample]
    ) -> Flaw | None:
        """Check the records of one learner; record and return its flaw.

        Parameters
        ----------
        parts
            Its state; None for a deleted part.
        lines
            Its lines of the consensus log, by sequence.

        """
        head = parts.get(HEAD)
        if head is None and not lines:
            return None  # forgotten
        self._n_learners += 1
        self._n_lines += len(lines)
        flaw = self._flaw(entity, head, lines)
        if flaw is not None:
            self.flaws[flaw] += 1
        return flaw

    @property
    def is_empty(self) -> bool:
        """Whether the log is gone: no learner has a line, but some have learned.

        A single learner without lines proves nothing: its labels may have been deleted on purpose.
        """
        return self.flaws["short"] > 0 and self._n_lines == 0

    def error(self) -> LostRecordsError | None:
        """Return the error with which a worker must stop, None if nothing is missing."""
        if self.cut is not None:
            text = f"an earlier `streamgp {self.cut}` was interrupted; run it again"
        elif self._is_on_flink:
            text = FLINK_KEEPS_IT
        elif self.is_empty:
            text = f"{self._text('short', _EMPTY)}; {_BEGIN_ANEW}"
        elif self._is_unsigned and self._n_learners:
            text = (
                "consensus holds labelled examples, and state has no record of the workers that "
                f"wrote them: state was deleted, emptied or cut; {RECOVER}"
            )
        elif self.flaws:
            text = f"{'; '.join(self._text(flaw) for flaw in sorted(self.flaws))}; {RECOVER}"
        else:
            return None
        return LostRecordsError(f"partition {self.partition}: {text}")

    def _text(self, flaw: Flaw, text: str | None = None) -> str:
        # The log names no key: it may be a person's name.
        n, of = self.flaws[flaw], self._n_learners
        return (text or _TEXTS[flaw]).format(f"{n} of {of} learner{'s' * (of != 1)}", "them")

    def _flaw(self, entity: str, head: Any, lines: Sequence[LabelledExample]) -> Flaw | None:
        if len({line.sequence for line in lines}) < len(lines):
            return "doubled"
        if head is None:
            return "headless"
        counted = numbers_in(head)
        if counted is None:
            return None
        sequence, n_learned = counted
        if lines and lines[-1].sequence > sequence:
            return "behind"
        # What others delete is missing from the log until a worker has read the null, and for ever
        # if the learner could not forget the example.
        n_deleted = self._history.n_nulls(entity, *self._heeded) + self._n_failed.get(entity, 0)
        return "short" if len(examples_in(lines)) + n_deleted < n_learned else None


def vanished(partition: int, positions: Mapping[Place, int]) -> LostRecordsError | None:
    """Return the error for a partition without any records, None if the group never processed it.

    Parameters
    ----------
    partition
        A partition without a signature.
    positions
        Offsets at which the group continues.

    Examples
    --------
    >>> vanished(2, {("events", 2): 0}) is None
    True
    >>> print(vanished(2, {("events", 2): 17}))
    partition 2: state and consensus hold nothing, and the group has processed events before ...

    """
    worked = [
        f"{topic} before offset {offset}"
        for topic in ("events", "answers")
        if (offset := positions.get((topic, partition), 0))
    ]
    if not worked:
        return None
    return LostRecordsError(
        f"partition {partition}: state and consensus hold nothing, and the group has processed "
        f"{' and '.join(worked)}: both were deleted or emptied, or a program that is no worker has "
        "read in the group; stop all workers, then bring both back with `streamgp restore`, set "
        "the group back to the start, or begin with nothing by `streamgp recover`"
    )


def numbers_in(head: Any) -> tuple[int, int] | None:
    """Return the number of the last line and of the examples learned, according to a head.

    None if they are not integers: the loop that restores such a head reports what is wrong.
    """
    if not isinstance(head, dict):
        return None
    found = head.get("sequence"), head.get("learned")
    return found if all(isinstance(n, int) for n in found) else None  # type: ignore[return-value]


def forgotten_in(history: History) -> dict[str, Any]:
    """Return the record `forgotten` of a partition, {} if it has none.

    Raises
    ------
    HistoryError
        If it cannot be read, or no worker can have written it.

    """
    found = history.part("", FORGOTTEN) or {}
    try:
        int(found.get("n", 0)), heeded_in(found), failed_in(found)
    except INCONSISTENT as error:
        raise HistoryError(
            f"state {FORGOTTEN!r} is nothing that this streamgp writes: {error!s:.80}"
        ) from None
    return dict(found)


def heeded_in(forgotten: Mapping[str, Any]) -> tuple[int, float]:
    """Return up to which offset and time nulls were processed, from the record `forgotten`.

    If `consensus` loses its end, later nulls get offsets that were processed; their times show that
    these were not. The time is infinite if it is not recorded, as by earlier versions.

    Examples
    --------
    >>> heeded_in({"n": 0, "heeded": 7, "heeded_at": 12.5}), heeded_in({"n": 0, "heeded": 7})
    ((7, 12.5), (7, inf))

    """
    return int(forgotten.get("heeded", 0)), float(forgotten.get("heeded_at", inf))


def failed_in(forgotten: Mapping[str, Any]) -> dict[str, int]:
    """Return how many nulls could not be carried out, by entity, from the record `forgotten`.

    Examples
    --------
    >>> failed_in({"n": 0, "heeded": 7, "failed": {"ann": 1}}), failed_in({"n": 0, "heeded": 7})
    ({'ann': 1}, {})

    """
    return {str(entity): int(n) for entity, n in (forgotten.get("failed") or {}).items()}


def losses_in(partition: int, history: History) -> Losses:
    """Check all learners of a partition.

    Raises
    ------
    HistoryError
        If a record cannot be read.

    """
    losses = Losses(partition, history)
    for entity in history.entities():
        losses.look(entity, history.parts(entity), history.lines(entity))
    return losses
