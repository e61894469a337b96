"""The labels and commands below a question, with their keys: as many in a line as there is room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

_GAP = "   "


@dataclass(frozen=True, slots=True, kw_only=True)
class Legend:
    """Entries beside each other; a line ends between two of them.

    Parameters
    ----------
    entries
        What stands in it.
    title
        What stands before the first one.

    Examples
    --------
    >>> legend = Legend(entries=[Text("1 den"), Text("2 living room"), Text("d don't know")])
    >>> Console(width=24).print(legend)
    1 den   2 living room
    d don't know

    """

    entries: Sequence[Text]
    title: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Return the lines."""
        line = Text(self.title, style="dim")
        is_empty = True
        for entry in self.entries:
            gap = "" if is_empty else _GAP
            if line.cell_len + len(gap) + entry.cell_len > options.max_width and line:
                yield line
                line, gap = Text(), ""
            line = Text.assemble(line, gap, entry)
            is_empty = False
        yield line
