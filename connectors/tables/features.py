"""Which columns of a log are features, and how their cells become values.

What a column holds is judged by the first rows (`connectors.tables.judging`), and one that is empty
there by its first cell. From then on a column keeps its kind: a text among numbers makes the row
unusable, a number among texts is a text.

"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from connectors.tables.cells import (
    float_of_text,
    integer_of_text,
    is_integer_text,
    is_missing,
    is_number,
    number_of,
    seconds_of,
    text_of,
)
from connectors.tables.judging import Kind, kind_of
from streamgp.base import FeatureName

Parser: TypeAlias = Callable[[Any], float | str | None]
Cells: TypeAlias = dict[str, Any]


class FeatureColumns:
    """The features of one table.

    Parameters
    ----------
    names
        The columns that may be features.
    rows
        The first rows, by which they are judged.
    named
        Whether the user named these columns: then they are features even if their kind is none.
    texts
        Whether columns of texts are features without being named.
    typed
        Whether cells have types; else all are text.
    notes
        Called with a line about columns that are left out, or texts.

    """

    # _plan       parser of each feature; grows when an undecided column shows its first cell.
    # _undecided  columns that have been empty so far.

    def __init__(
        self,
        names: Iterable[str],
        rows: Sequence[Cells],
        *,
        named: bool,
        texts: bool,
        typed: bool,
        notes: Callable[[str], None],
    ) -> None:
        self._named = named
        self._texts = texts
        self._typed = typed
        self._notes = notes
        self._plan: dict[str, Parser] = {}
        self._undecided: set[str] = set()
        said: dict[str, list[str]] = {}
        for name in names:
            cells = [row[name] for row in rows if not is_missing(row.get(name))]
            found = self._judge(name, cells)
            if found is not None:
                said.setdefault(found[0], []).append(found[1])
        for what, columns in said.items():
            notes(f"{what}: {', '.join(columns)}")

    @property
    def empty(self) -> bool:
        """Whether there is nothing that is or may become a feature."""
        return not self._plan and not self._undecided

    def add(self, names: Iterable[str]) -> None:
        """Take in columns that turn up late; their first cells will tell what they are."""
        self._undecided.update(names)

    def read(self, cells: Cells) -> dict[FeatureName, float | str]:
        """Return the features of a row, without the missing ones.

        Raises
        ------
        ValueError
            If a cell is not what its column holds.

        """
        if self._undecided:
            self._decide(cells)
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
            raise ValueError(f"{name!r} {error}") from None
        return x

    def _judge(self, name: str, cells: list[Any]) -> tuple[str, str] | None:
        """Decide what a column is; return what is to be said, and the column in these words."""
        kind = kind_of(cells)
        if kind is Kind.EMPTY:
            self._undecided.add(name)
            return None
        numbers = [cell for cell in cells if is_number(cell)]
        parse = self._parser(kind, whole=not self._typed and all(map(is_integer_text, numbers)))
        if parse is None:
            return f"left out, {kind.value}", name
        self._plan[name] = parse
        if parse is text_of:
            n = len({str(cell).strip() for cell in cells})
            return "features that are texts", f"{name} ({n} different)"
        return None

    def _decide(self, cells: Cells) -> None:
        """Judge columns that were empty so far by their first cell."""
        for name in [n for n in cells if n in self._undecided and not is_missing(cells[n])]:
            self._undecided.discard(name)
            kind = kind_of([cells[name]])
            # Not whole, whatever the cell: one number says nothing about the fractions to come.
            parse = self._parser(kind, whole=False)
            example = f"{name} (for example {cells[name]!r:.40})"
            if parse is None:
                self._notes(f"left out, {kind.value}: {example}")
                continue
            self._plan[name] = parse
            if parse is text_of:
                self._notes(f"features that are texts: {example}")

    def _parser(self, kind: Kind, *, whole: bool) -> Parser | None:
        """Return what reads the cells of a column, None if it is no feature."""
        if kind in (Kind.TEXT, Kind.UNIQUE):
            return text_of if self._named or (self._texts and kind is Kind.TEXT) else None
        if kind is Kind.TIME:
            return seconds_of if self._named else None
        if kind is Kind.OTHER or (kind is Kind.RISING and not self._named):
            return None
        if self._typed:
            return number_of
        return integer_of_text if whole else float_of_text
