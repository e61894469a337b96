"""How numbers and times are written on a page."""

from __future__ import annotations

from datetime import datetime, timedelta

NARROW_SPACE = "\N{NARROW NO-BREAK SPACE}"
_START = datetime(1970, 1, 1)


def count(n: float) -> str:
    """Return a count; groups of three digits from 10 000 on.

    Examples
    --------
    >>> count(2000), count(1234567).split(NARROW_SPACE)
    ('2000', ['1', '234', '567'])

    """
    return f"{n:.0f}" if n < 10_000 else f"{n:,.0f}".replace(",", NARROW_SPACE)


def amount(value: float | None) -> str:
    """Return a number with a unit of its own, or a dash for None.

    Examples
    --------
    >>> amount(0.01234), amount(1234.5), amount(None)
    ('0.0123', '1234', '-')

    """
    if value is None:
        return "-"
    return f"{value:.3g}" if abs(value) < 1000.0 else f"{value:.0f}"


def percent(share: float | None, digits: int = 0) -> str:
    """Return a share in percent, or a dash for None; what is not all or nothing never reads so.

    Examples
    --------
    >>> [percent(share).replace(NARROW_SPACE, " ") for share in (0.126, 0.9999, 1.0, 0.001, None)]
    ['13 %', '>99 %', '100 %', '<1 %', '-']

    """
    if share is None:
        return "-"
    text = f"{100 * share:.{digits}f}"
    least = 10.0**-digits
    if share < 1.0 and float(text) == 100.0:
        text = f">{100 - least:.{digits}f}"
    elif share > 0.0 and float(text) == 0.0:
        text = f"<{least:.{digits}f}"
    return f"{text}{NARROW_SPACE}%"


def utc(at: float) -> str:
    """Return a moment as people write it, or the number of seconds beyond the years 1 to 9999.

    Examples
    --------
    >>> utc(1704112200.75), utc(1e15)
    ('2024-01-01 12:30:00', '1e+15')

    """
    try:
        return (_START + timedelta(seconds=at)).isoformat(" ", "seconds")
    except OverflowError:
        return f"{at:g}"


def seconds(at: float) -> str:
    """Return a moment of a log without times, whose rows count as seconds.

    Examples
    --------
    >>> seconds(2193.0), seconds(0.25)
    ('2193', '0.25')

    """
    return f"{at:.2f}".rstrip("0").rstrip(".")
