"""What the ledger finds, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What was found.

    Parameters
    ----------
    events, answers, requests, challenges, learned
        How much there was: good events, answers and cancellations, questions of both kinds, lines
        of the consensus log.
    open
        Questions that were still open at the end, within their time.
    fed
        How many numbers of events there were.
    lost, duplicated
        Predictions that are missing, and those that are too many.
    dead_expected, dead_found, dead_too_many
        Inputs that cannot be used; those of them that are dead letters exactly once, with the
        original bytes; all other dead letters.
    waiting
        Answers that will be dead letters unless their event comes, within the time that they wait.
    hostile, hostile_dead
        Hostile events, and those of them that are dead letters.
    ends_wrong
        Questions that have not exactly one end.
    lines_wrong
        Lines of the consensus log that are missing or too many.
    nulls_wrong
        Lines that were not taken out of the log after the example was withdrawn, and nulls without
        need.
    gaps
        Lines that do not follow the line before.
    counts_wrong
        Predictions whose number of examples is none that the log allows.
    longest_stall_s
        For how long nothing came out of a partition though an event lay there.

    """

    events: int
    answers: int
    requests: int
    challenges: int
    learned: int
    open: int
    fed: int
    lost: int
    duplicated: int
    dead_expected: int
    dead_found: int
    dead_too_many: int
    waiting: int
    hostile: int
    hostile_dead: int
    ends_wrong: int
    lines_wrong: int
    nulls_wrong: int
    gaps: int
    counts_wrong: int
    longest_stall_s: float
    examples: list[str] = field(default_factory=list)
