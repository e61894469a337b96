"""What `benchmarks.compare` shows: means over logs in which every log has the same weight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean

from benchmarks._conversation import Score
from benchmarks._harness import Row, standard_error


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one entry made of one log at one number of labels."""

    group: str
    name: str
    log: str
    rate: float
    score: Score


def names(cells: Sequence[Cell], group: str) -> list[str]:
    """Names of those of a group, in the order of the cells."""
    return list(dict.fromkeys(cell.name for cell in cells if cell.group == group))


def accuracies(cells: Sequence[Cell], group: str, name: str, rate: float) -> list[float]:
    """Accuracies of an entry, log by log."""
    return [cell.score.accuracy for cell in _of(cells, group, name, rate)]


def gaps(cells: Sequence[Cell], group: str, name: str, other: str, rate: float) -> list[float]:
    """Accuracy of an entry minus that of another one of its group, log by log."""
    mine, theirs = (accuracies(cells, group, one, rate) for one in (name, other))
    return [a - b for a, b in zip(mine, theirs, strict=True)]


def summary(cells: Sequence[Cell], group: str, rate: float) -> list[Row]:
    """What each entry of a group came to, and how far it is above the first one."""
    rows: list[Row] = []
    first, *_ = names(cells, group)
    for name in names(cells, group):
        some = _of(cells, group, name, rate)
        gap = gaps(cells, group, name, first, rate)

        def over_logs(value: Callable[[Score], float], some: Sequence[Cell] = some) -> float:
            return mean(value(cell.score) for cell in some)

        rows.append(
            {
                group: name,
                "share": f"{rate:.0%}",
                "accuracy": over_logs(lambda s: s.accuracy),
                "F1": over_logs(lambda s: s.macro_f1),
                "above first": mean(gap),
                "se": standard_error(gap),
                "labels": over_logs(lambda s: s.n_asked),
                "hard limit": over_logs(lambda s: s.hard_limit),
                "challenges": over_logs(lambda s: s.n_challenges),
                "wrong kept": over_logs(lambda s: s.wrong_kept),
                "us per event": over_logs(lambda s: s.us_per_event),
            }
        )
    return rows


def by_log(cells: Sequence[Cell], group: str, rate: float) -> list[Row]:
    """Accuracy and labels asked for, log by log."""
    rows: list[Row] = []
    for name in names(cells, group):
        row: Row = {f"{group}, log by log": name, "share": f"{rate:.0%}"}
        for cell in _of(cells, group, name, rate):
            row[cell.log] = cell.score.accuracy
            row[f"{cell.log} labels"] = cell.score.n_asked
        rows.append(row)
    return rows


def _of(cells: Sequence[Cell], group: str, name: str, rate: float) -> list[Cell]:
    return [cell for cell in cells if (cell.group, cell.name, cell.rate) == (group, name, rate)]
