"""What the options of several commands may hold."""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from pathlib import Path
from typing import Any

import click

# 30 000 years, as for the settings: no sum of times leaves the numbers.
LARGEST = 1e12


class Number(click.FloatRange):
    """A number within bounds; neither "nan" nor "inf" is one.

    Parameters
    ----------
    at_least
        The smallest that is allowed; None for any that is positive.

    Examples
    --------
    >>> Number(at_least=0.0).convert("2.5", None, None)
    2.5
    >>> Number().convert("nan", None, None)
    Traceback (most recent call last):
    click.exceptions.BadParameter: expected a number > 0 and <= 1e+12, got 'nan'

    """

    def __init__(self, *, at_least: float | None = None) -> None:
        super().__init__(min=at_least or 0.0, min_open=at_least is None)
        self._at_least = at_least

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number that a text stands for."""
        try:
            number = float(value)
        except ValueError:
            number = nan
        least = self._at_least
        # Not a number is not in any range.
        is_large_enough = number > 0.0 if least is None else number >= least
        if not (is_large_enough and number <= LARGEST):
            bound = "> 0" if least is None else f">= {least:g}"
            self.fail(
                f"expected a number {bound} and <= {LARGEST:g}, got {str(value)!r:.60}", param, ctx
            )
        return number


def path_to(what: str) -> Callable[[click.Context, click.Parameter, str | None], Path | None]:
    """Return a callback for the path of something that is written."""

    def path(_context: click.Context, _option: click.Parameter, value: str | None) -> Path | None:
        # An empty text would mean the current directory; it comes from an unset variable.
        if value == "":
            raise click.BadParameter(f"expected a {what}, got an empty text")
        return None if value is None else Path(value)

    return path
