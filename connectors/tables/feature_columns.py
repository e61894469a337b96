"""Feature columns of a log: which columns they are, judged by the first rows, and their values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from enum import Enum
from itertools import pairwise
from typing import Any, TypeAlias

from connectors.tables.cells import (
    first_with_thousands,
    first_with_unit,
    float_of_text,
    has_decimal_commas,
    integer_of_text,
    is_integer_text,
    is_missing,
    is_no_number,
    is_number,
    number_of,
    recurring_text,
    seconds_of,
    text_of,
    time_of,
)
from streamgp.base import FeatureName

Cells: TypeAlias = dict[str, Any]
"""The cells of a row, by column."""


# --- Kind of a column, judged by its first cells: numbers, text, or nothing to learn from.
#
# A column holds numbers if at least half of its cells do, unless these are few whole numbers beside
# texts, as names are; otherwise the majority of the other cells decides. Text that occurs in only
# one row says nothing about other rows, so a column of text that hardly ever repeats is no feature.
# Neither is a number that rises with every row, like row numbers and times: nothing learned from
# past values applies to future ones.


ENOUGH = 20
"""The smallest number of cells from which a column can be judged to hardly ever repeat."""

MOST_DIFFERENT = 0.9
"""The largest share of distinct values in a column that is a feature."""

OFTEN = 5
"""How often a cell occurs on average, in a column of names that may be whole numbers."""

# With a year of four digits: three other numbers may be a version or a place in a machine.
_DATE = re.compile(
    r"(?:[0-9]{1,2}([./-])[0-9]{1,2}\1(?:19|20)[0-9]{2}"
    r"|(?:19|20)[0-9]{2}([./])[0-9]{1,2}\2[0-9]{1,2})(?![^\s,T])"
)
_POSIX = 1e9  # POSIX seconds in 2001: times may have fractions, counters do not
_POSIX_END = 2.2e9  # in 2039
_YEAR = 3.2e7  # other numbers as large, such as frequencies in Hz, rise by more at once
_UNITS = (1, 10**3, 10**6, 10**9)  # of seconds, milliseconds, microseconds, nanoseconds


class Kind(Enum):
    """Kind of the values of a column."""

    EMPTY = "nothing yet"
    NUMBER = "numbers"
    TEXT = "texts"
    RISING = "a number that rises with every row"
    TIME = "times"
    DATE = "dates in a form that is not read"
    UNIQUE = "a different text in nearly every one of the first rows"
    OTHER = "neither numbers nor texts"


def kind_of(cells: Sequence[Any]) -> Kind:
    """Return the kind of a column.

    Parameters
    ----------
    cells
        Its first cells, without missing ones, in order.

    Examples
    --------
    >>> kind_of(["0.5", "3", "warm"]), kind_of(["hall", "bath", "2"])
    (<Kind.NUMBER: 'numbers'>, <Kind.TEXT: 'texts'>)
    >>> kind_of(["1", "2", "EG", "2"] * 5)
    <Kind.TEXT: 'texts'>
    >>> kind_of(["2015-02-02 14:19:00", "2015-02-02 14:20:00"])
    <Kind.TIME: 'times'>
    >>> kind_of(["10/03/2004", "10/03/2004"]), kind_of(["1.2.3", "1.2.3"])
    (<Kind.DATE: 'dates in a form that is not read'>, <Kind.TEXT: 'texts'>)
    >>> kind_of([f"u{n}" for n in range(100)]), kind_of([f"u{n % 50}" for n in range(100)])
    (<Kind.UNIQUE: 'a different text in nearly every one of the first rows'>, <Kind.TEXT: 'texts'>)

    """
    if not cells:
        return Kind.EMPTY
    others = [cell for cell in cells if not is_number(cell)]
    if 2 * len(others) <= len(cells) and not _are_names(cells, others):
        return Kind.RISING if _rises(cells, whole=True) else Kind.NUMBER
    if 2 * sum(map(_is_time, others)) > len(others):
        return Kind.TIME
    texts = [cell for cell in others if isinstance(cell, str)]
    if 2 * len(texts) <= len(others):
        return Kind.OTHER
    if 2 * sum(_DATE.match(text.strip()) is not None for text in texts) > len(texts):
        return Kind.DATE
    return Kind.UNIQUE if _differ([text.strip() for text in texts]) else Kind.TEXT


def _are_names(cells: Sequence[Any], others: Sequence[Any]) -> bool:
    """Return whether whole numbers are names, as floors 1, 2 and EG; `others` are no numbers.

    More than a tenth are no numbers, and each cell occurs `OFTEN` times on average. Taken for a
    number, such a column would cost every row with a text.
    """
    n_whole = sum(is_integer_text(str(cell)) for cell in cells)
    return (
        10 * len(others) > len(cells) == n_whole + len(others)
        and all(isinstance(cell, str) for cell in others)
        and OFTEN * len({str(cell).strip() for cell in cells}) <= len(cells)
    )


def _differ(values: Sequence[Any]) -> bool:
    return len(values) >= ENOUGH and len(set(values)) > MOST_DIFFERENT * len(values)


def _rises(cells: Sequence[Any], *, whole: bool) -> bool:
    """Return whether cells are rising numbers that hardly ever repeat, or times.

    With `whole`, fractions are allowed in POSIX times only.
    """
    numbers = _ascending(cells, whole=whole)
    return numbers is not None and _go_on(numbers)


def _go_on(numbers: Sequence[float]) -> bool:
    """Return whether ascending numbers hardly ever repeat, or are times, which rows may share."""
    if _differ(numbers):
        return True
    if len(numbers) < ENOUGH:
        return False
    first, last = numbers[0], numbers[-1]
    return any(
        unit * _POSIX <= first < last < unit * _POSIX_END and last - first < unit * _YEAR
        for unit in _UNITS
    )


def _ascending(cells: Sequence[Any], *, whole: bool) -> list[float] | None:
    """Return cells as numbers that never fall, None if they are not; `whole` is as in `_rises`."""
    numbers = []
    for cell in cells:
        try:
            number = float_of_text(cell) if isinstance(cell, str) else float(cell)
        except (TypeError, ValueError, OverflowError):
            return None
        if number is None or (whole and not (number >= _POSIX or float(number).is_integer())):
            return None
        numbers.append(number)
    return numbers if all(a <= b for a, b in pairwise(numbers)) else None


def _rise(runs: Sequence[Sequence[Any]], *, whole: bool) -> bool:
    """Return whether cells fall in no key, and most are of keys with enough to see them rise."""
    n_rising = 0
    for cells in runs:
        numbers = _ascending(cells, whole=whole)
        if numbers is None or (len(numbers) >= ENOUGH and not _go_on(numbers)):
            return False
        n_rising += len(numbers) if len(numbers) >= ENOUGH else 0
    return 2 * n_rising > sum(map(len, runs))


def _is_time(cell: Any) -> bool:
    if isinstance(cell, date):
        return True
    if not isinstance(cell, str):
        return False
    try:
        time_of(cell)
    except ValueError:
        return False
    return True


# --- Feature columns of a log, and conversion of their cells to values.
#
# A column's kind is judged by the first rows, or, if it is empty there, by its first cell. From
# then on it keeps its kind: text among numbers makes the row unusable, a number among text is text.


Parser: TypeAlias = Callable[[Any], float | str | None]

_TEXTS = "features that are texts"
_PARTS = "values within lists and objects are features only in fields of their own, such as"
_COMMAS = "not numbers, because decimal commas need semicolons between the cells of a table"
_THOUSANDS = "not numbers, because thousands are separated"
_WITH_UNIT = "not numbers, because something follows them"
_NO_NUMBERS = (_COMMAS, _THOUSANDS, _WITH_UNIT)
_METERS = (
    "features that rise with every row; if these are meters, leave them out or take differences"
)
_MIXED = "taken for numbers, so rows with a text there are rejected, unless the column is ignored"


class FeatureColumns:
    """The features of one table.

    Parameters
    ----------
    names
        The columns that may be features.
    rows
        The first rows, by which the columns are judged.
    key
        The column with the keys of the rows, None without one: rows of several keys take turns.
    named
        Whether the user named these columns: then they are features whatever their kind.
    texts
        Whether text columns are features without being named.
    typed
        Whether cells have types; else all are text.
    unnamed
        Columns without a name in the header, which are left out.
    notes
        Called with a line about columns that are left out, or are text.

    """

    # left_out    names of columns that are not features, by reason.
    # _advice     what to do if there is no feature.
    # _plan       parser of each feature; grows when an undecided column shows its first cell.
    # _undecided  columns that have been empty so far.
    # _constant   the text of columns that had one text only in the first rows.
    # _n_more     of these columns, by how many later cells are numbers rather than other texts.
    # n_unusable  number of rows that could not be used, by the column whose cell did not fit.

    def __init__(
        self,
        names: Iterable[str],
        rows: Sequence[Cells],
        *,
        key: str | None,
        named: bool,
        texts: bool,
        typed: bool,
        unnamed: Sequence[str],
        notes: Callable[[str], None],
    ) -> None:
        self._named = named
        self._texts = texts
        self._typed = typed
        self._notes = notes
        self._plan: dict[str, Parser] = {}
        self._undecided: set[str] = set()
        self._constant: dict[str, str] = {}
        self._n_more: Counter[str] = Counter()
        self.n_unusable: Counter[str] = Counter()
        said = {"left out without a name": [*unnamed]} if unnamed else {}
        odd: dict[str, list[str]] = {}
        of_keys: dict[str, list[Cells]] = {}
        if key is not None:
            for row in rows:
                of_keys.setdefault(str(row.get(key)), []).append(row)
        for name in names:
            cells = [row[name] for row in rows if not is_missing(row.get(name))]
            runs = [
                [row[name] for row in some if not is_no_number(row.get(name))]
                for some in of_keys.values()
            ]
            found = self._judge(name, cells, runs)
            if found is not None:
                said.setdefault(found[0], []).append(found[1])
            for what, example in self._oddities(name, cells, runs):
                odd.setdefault(what, []).append(example)
        self.left_out = {what: columns for what, columns in said.items() if what != _TEXTS}
        advice = [f"{_PARTS} {odd[_PARTS][0]!r:.60}"] if _PARTS in odd else []
        advice += _listed({what: odd[what] for what in _NO_NUMBERS if what in odd})
        self._advice = "; ".join(advice) or "name the columns that are features"
        doubtful = {what: odd[what] for what in (_METERS, _MIXED) if what in odd}
        for note in (*_listed(said), *advice, *_listed(doubtful)):
            notes(note)

    @property
    def empty(self) -> bool:
        """Whether no column is or may become a feature."""
        return not self._plan and not self._undecided

    @property
    def undecided(self) -> list[str]:
        """Columns that have been empty so far."""
        return sorted(self._undecided)

    @property
    def placeholders(self) -> dict[str, str]:
        """The text of the first rows, by column, where later cells are mostly numbers."""
        return {name: self._constant[name] for name, n in self._n_more.items() if n > 0}

    def why_empty(self) -> str:
        """Return why there are no features, and what to do."""
        found = "; ".join(_listed(self.left_out))
        if self._named:
            return f"has no numbers or texts in the columns named as features ({found})"
        if not found:
            return (
                "has no column besides label, time, key and ignored ones; expected others, from "
                "which the label is predicted"
            )
        return (
            "has no column of numbers or of recurring texts besides label, time and key "
            f"({found}); {self._advice}"
        )

    def add(self, names: Iterable[str]) -> None:
        """Add columns that first appear in later rows; their first cells determine their kind."""
        self._undecided.update(names)

    def read(self, cells: Cells) -> dict[FeatureName, float | str]:
        """Return the features of a row, without missing ones.

        Raises
        ------
        ValueError
            If a cell does not fit its column's kind.

        """
        if self._undecided:
            self._decide(cells)
        for name, text in self._constant.items():
            if not is_no_number(cell := cells.get(name)) and str(cell).strip() != text:
                self._n_more[name] += 1 if is_number(cell) else -1
        x: dict[FeatureName, float | str] = {}
        name = ""
        try:
            for name, parse in self._plan.items():
                cell = cells.get(name)
                if cell is not None and cell != "":
                    value = parse(cell)
                    if value is not None:
                        x[name] = value
        except ValueError as error:
            self.n_unusable[name] += 1
            raise ValueError(f"{name!r} {error}") from None
        return x

    def _judge(self, name: str, cells: list[Any], runs: list[list[Any]]) -> tuple[str, str] | None:
        """Decide the kind of a column; return a note for the user and the column's name in it.

        Its `runs` are the cells of each key.
        """
        kind = kind_of([cell for cell in cells if not is_no_number(cell)])
        if kind is Kind.NUMBER and _rise(runs, whole=True):
            kind = Kind.RISING
        if kind is Kind.EMPTY:
            self._undecided.add(name)
            return None
        numbers = [cell for cell in cells if is_number(cell)]
        if kind is Kind.TEXT and len(texts := {str(cell).strip() for cell in cells}) == 1:
            self._constant[name] = texts.pop()
        parse = self._parser(kind, whole=not self._typed and all(map(is_integer_text, numbers)))
        if parse is None:
            return f"left out, {kind.value}", name
        self._plan[name] = parse
        if parse is text_of:
            # Not all of them: a weekday changes but every few hundred rows.
            n = len({str(cell).strip() for cell in cells})
            return _TEXTS, f"{name} (at least {n} different)"
        return None

    def _oddities(
        self, name: str, cells: list[Any], runs: list[list[Any]]
    ) -> Iterator[tuple[str, str]]:
        """Yield what the user may have meant otherwise with a judged column, with an example."""
        yield from why_no_numbers(name, cells)
        text = recurring_text(cells)
        if text is not None and self._plan.get(name, text_of) is not text_of:
            yield _MIXED, _with_example(name, text)
        if name not in self._plan:
            yield from ((_PARTS, part) for part in _part_of(name, cells))
        elif not self._named and (_rises(cells, whole=False) or _rise(runs, whole=False)):
            yield _METERS, name

    def _decide(self, cells: Cells) -> None:
        """Judge columns that have been empty so far by their first usable cell."""
        for name in [n for n in cells if n in self._undecided and not is_no_number(cells[n])]:
            self._undecided.discard(name)
            kind = kind_of([cells[name]])
            # Never whole: a single number does not show whether fractions will follow.
            parse = self._parser(kind, whole=False)
            example = _with_example(name, cells[name])
            if parse is None:
                self._notes(f"left out, {kind.value}: {example}")
                continue
            self._plan[name] = parse
            if parse is text_of:
                self._notes(f"{_TEXTS}: {example}")

    def _parser(self, kind: Kind, *, whole: bool) -> Parser | None:
        """Return the parser of a column's cells, None if it is no feature."""
        if kind in (Kind.TEXT, Kind.DATE, Kind.UNIQUE):
            return text_of if self._named or (self._texts and kind is Kind.TEXT) else None
        if kind is Kind.TIME:
            return seconds_of if self._named else None
        if kind is Kind.OTHER or (kind is Kind.RISING and not self._named):
            return None
        if self._typed:
            return number_of
        return integer_of_text if whole else float_of_text


def why_no_numbers(name: str, cells: list[Any]) -> Iterator[tuple[str, str]]:
    """Yield why cells are no numbers although people read them as such, with the column's name."""
    if has_decimal_commas(cells):
        yield _COMMAS, name
    if (example := first_with_thousands(cells)) is not None:
        yield _THOUSANDS, _with_example(name, example)
    if (example := first_with_unit(cells)) is not None:
        yield _WITH_UNIT, _with_example(name, example)


def _with_example(name: str, cell: Any) -> str:
    return f"{name} (for example {cell!r:.40})"


def _listed(columns: Mapping[str, Iterable[str]]) -> list[str]:
    """Return a line for each thing to be said, with the columns that it is said of."""
    return [f"{what}: {', '.join(names)}" for what, names in columns.items()]


def _part_of(name: str, cells: Iterable[Any]) -> list[str]:
    """Return what a field for one value of a column of lists or objects might be called."""
    for cell in cells:
        if isinstance(cell, dict) and cell:
            return [f"{name}_{next(iter(cell))}"]
        if isinstance(cell, list) and cell:
            return [f"{name}_0"]
    return []
