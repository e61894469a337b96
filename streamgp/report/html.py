"""Templates of the page, and the formatting of texts, numbers and times in them.

Labels, keys and names of columns are untrusted: Jinja escapes everything that is not already
markup, long texts are truncated, and unprintable characters are replaced. Jinja is imported only
when a page is made.

"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from streamgp.common.printable import cut, printable
from streamgp.report.tables import amount, short

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

N_SHOWN = 60
"""Number of characters shown of a text."""

N_TOLD = 200
"""Number of characters shown of it in its tooltip."""

N_ROWS = 200
"""Number of rows shown of a table."""

N_REASON = 500
"""Number of characters shown of a note, or of the reason for a rejection."""

NARROW_SPACE = "\N{NARROW NO-BREAK SPACE}"
_START = datetime(1970, 1, 1)


def render(template: str, **values: Any) -> str:
    """Render a template of `streamgp/report/templates`."""
    return environment().get_template(template).render(values)


@cache
def environment() -> Environment:
    """Return the template environment with its filters."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("streamgp.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    written = (amount, count, cut, foreign, percent, printable, seconds, setting, short, utc)
    templates.filters.update({write.__name__: write for write in written})
    templates.globals.update(N_ROWS=N_ROWS, N_REASON=N_REASON)
    return templates


def foreign(value: object) -> Markup:
    """Return the markup of an untrusted text: a label, a key, an id.

    Examples
    --------
    >>> print(foreign("<b>"), foreign(3))
    <bdi>&lt;b&gt;</bdi> <bdi>3</bdi>
    >>> print(foreign("kitchen " * 9))
    <bdi title="kitchen kitchen ...">kitchen kitchen kitchen ...…</bdi>
    >>> print(foreign(""), foreign(None))
    <i>empty</i> <i>none</i>

    """
    from markupsafe import Markup

    if value is None:
        return Markup("<i>none</i>")
    text = printable(str(value))
    if not text.strip():
        return Markup("<i>blank</i>" if text else "<i>empty</i>")
    if len(text) <= N_SHOWN:
        # bdi: right-to-left text does not reorder its neighbours.
        return Markup("<bdi>{}</bdi>").format(text)
    return Markup('<bdi title="{}">{}</bdi>').format(cut(text, N_TOLD), cut(text, N_SHOWN))


def setting(value: object) -> Markup:
    """Return the markup of the value of a setting.

    Examples
    --------
    >>> print(setting(None), setting({}), setting(["a", 0.5]))
    <i>not set</i> <i>none</i> <bdi>a</bdi>, <bdi>0.5</bdi>

    """
    from markupsafe import Markup

    if value is None:
        return Markup("<i>not set</i>")
    if value in ([], {}):
        return Markup("<i>none</i>")
    if isinstance(value, list):
        return Markup(", ").join(map(setting, value))
    return foreign(value if isinstance(value, str) else json.dumps(value))


def count(n: float) -> str:
    """Return a count as text, in groups of three digits from 10 000 on.

    Examples
    --------
    >>> count(2000), count(1234567).split(NARROW_SPACE)
    ('2000', ['1', '234', '567'])

    """
    return f"{n:.0f}" if n < 10_000 else f"{n:,.0f}".replace(",", NARROW_SPACE)


def percent(share: float | None, digits: int = 0) -> str:
    """Return a share in percent, or a dash for None; only exact 0 and 1 read as 0 % and 100 %.

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
    """Return a time in ISO 8601, or as seconds if outside the years 1 to 9999.

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
    """Return a time in a log without times, where each row counts as a second.

    Examples
    --------
    >>> seconds(2193.0), seconds(0.25)
    ('2193', '0.25')

    """
    return f"{at:.2f}".rstrip("0").rstrip(".")
