"""What `benchmarks.strategies` shows: means over logs in which every log has the same weight."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from benchmarks._conversation import Score
from benchmarks._harness import Row, standard_error
from benchmarks._strategies_rules import CONTENDERS, DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one contender made of one stream at one number of labels."""

    contender: str
    log: str
    rate: float
    n: int
    score: Score


_Value = Callable[[Cell], float]


def contenders(cells: Sequence[Cell]) -> list[str]:
    """Names, in the order of the cells."""
    return list(dict.fromkeys(cell.contender for cell in cells))


def above_default(cells: Sequence[Cell], contender: str) -> list[float]:
    """Accuracy of a contender minus that of the default rule, log by log."""
    default = _means(_of(cells, DEFAULT), _accuracy)
    return [a - default[log] for log, a in _means(_of(cells, contender), _accuracy).items()]


def mean_off(cells: Sequence[Cell], contender: str) -> float:
    """Mean difference between labels asked for and wanted, as a share of those wanted."""
    return _mean(_of(cells, contender), _off)


def by_rate(cells: Sequence[Cell]) -> list[Row]:
    """Accuracy and macro F1 at every number of labels."""
    rows = []
    for name in contenders(cells):
        some = _of(cells, name)
        row: Row = {"rule": name, "package": CONTENDERS[name].package}
        for title, value in (("accuracy", _accuracy), ("F1", _macro_f1)):
            for rate in _rates(cells):
                row[f"{title} {rate:.0%}"] = _mean([c for c in some if c.rate == rate], value)
            row[title] = _mean(some, value)
        gap = above_default(cells, name)
        row["above default"], row["se"] = mean(gap), standard_error(gap)
        rows.append(row)
    return rows


def costs(cells: Sequence[Cell], microseconds: Mapping[str, float]) -> list[Row]:
    """Labels against those wanted, challenges, and the time of a decision."""
    return [
        {
            "rule": name,
            "labels / wanted": _mean(_of(cells, name), _labels),
            "furthest off": max(map(_off, _of(cells, name))),
            "hard limit": _mean(_of(cells, name), lambda cell: cell.score.hard_limit),
            "challenges / labels": _mean(_of(cells, name), _challenges),
            "wrong labels kept": _mean(_of(cells, name), lambda cell: cell.score.wrong_kept),
            "us per decision": microseconds[name],
        }
        for name in contenders(cells)
    ]


def by_log(cells: Sequence[Cell]) -> list[Row]:
    """Accuracy log by log, over all numbers of labels."""
    return [{"rule": name, **_means(_of(cells, name), _accuracy)} for name in contenders(cells)]


def winners(cells: Sequence[Cell]) -> list[Row]:
    """Which rule is best where."""
    rows = []
    for log in dict.fromkeys(cell.log for cell in cells):
        for rate in _rates(cells):
            here = [cell for cell in cells if (cell.log, cell.rate) == (log, rate)]
            accuracy = {name: _mean(_of(here, name), _accuracy) for name in contenders(here)}
            best = max(accuracy, key=accuracy.__getitem__)
            rows.append(
                {
                    "log": log,
                    "share": f"{rate:.0%}",
                    "best": best,
                    "its accuracy": accuracy[best],
                    f"of {DEFAULT}": accuracy[DEFAULT],
                    "difference": accuracy[best] - accuracy[DEFAULT],
                }
            )
    return rows


def ranks(alone: Sequence[Cell], with_challenges: Sequence[Cell]) -> list[Row]:
    """Accuracy without challenges beside that with them, at one number of labels."""
    rows: dict[str, Row] = {name: {"rule": name} for name in contenders(alone)}
    for title, cells in (("with challenges", with_challenges), ("without", alone)):
        accuracy = {name: _mean(_of(cells, name), _accuracy) for name in rows}
        ranked = sorted(rows, key=accuracy.__getitem__, reverse=True)
        for name, row in rows.items():
            row[title] = accuracy[name]
            row[f"rank {title}"] = ranked.index(name) + 1
    return list(rows.values())


def ends(cells: Sequence[Cell], names: Mapping[str, str]) -> list[Row]:
    """What rules reach that nothing holds back."""
    return [
        {
            "unlimited": names[name],
            "accuracy": _mean(_of(cells, name), _accuracy),
            "F1": _mean(_of(cells, name), _macro_f1),
            "share of events asked about": _mean(_of(cells, name), _labels),
        }
        for name in contenders(cells)
    ]


def _accuracy(cell: Cell) -> float:
    return cell.score.accuracy


def _macro_f1(cell: Cell) -> float:
    return cell.score.macro_f1


def _labels(cell: Cell) -> float:
    return cell.score.n_asked / cell.n


def _off(cell: Cell) -> float:
    return abs(_labels(cell) - 1.0)


def _challenges(cell: Cell) -> float:
    return cell.score.n_challenges / cell.score.n_asked


def _of(cells: Sequence[Cell], contender: str) -> list[Cell]:
    return [cell for cell in cells if cell.contender == contender]


def _rates(cells: Sequence[Cell]) -> list[float]:
    return list(dict.fromkeys(cell.rate for cell in cells))


def _means(cells: Sequence[Cell], value: _Value) -> dict[str, float]:
    """Mean over the orders and numbers of labels of each log."""
    values: dict[str, list[float]] = defaultdict(list)
    for cell in cells:
        values[cell.log].append(value(cell))
    return {log: mean(of_one) for log, of_one in values.items()}


def _mean(cells: Sequence[Cell], value: _Value) -> float:
    return mean(_means(cells, value).values())
