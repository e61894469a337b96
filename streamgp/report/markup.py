"""HTML piece by piece: whatever is not markup already is escaped, so nothing can be forgotten.

Labels, keys and names of columns come from strangers: a text is also cut where it is too long, and
what does not print is replaced.

"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TypeAlias

from streamgp.common.printable import printable

N_SHOWN = 60
"""Characters of a text that are shown."""

N_TOLD = 200
"""Characters of it that its tooltip tells."""

N_ROWS = 200
"""Rows of a table that are shown."""

# They have no end tag.
_VOID = frozenset(("meta", "input"))


class Html(str):
    """Text that is markup."""

    __slots__ = ()


Child: TypeAlias = "Html | str | int | None"


def el(name: str, /, *children: Child, **attributes: str | int | bool | None) -> Html:
    """Return an element.

    Parameters
    ----------
    name
        Its tag.
    children
        What is in it; text is escaped, None is left out.
    attributes
        Its attributes: an underscore at the end is dropped, the others become hyphens. None and
        False leave an attribute out; True is one without a value.

    Examples
    --------
    >>> print(el("p", "a < b", el("b", "!"), class_="note", aria_label='"x"'))
    <p class="note" aria-label="&quot;x&quot;">a &lt; b<b>!</b></p>
    >>> print(el("input", type="radio", checked=True, hidden=False))
    <input type="radio" checked>

    """
    head = "".join(
        f" {key.rstrip('_').replace('_', '-')}"
        + ("" if value is True else f'="{escape(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Html(f"<{name}{head}>")
    return Html(f"<{name}{head}>{join(children)}</{name}>")


def join(children: Iterable[Child], between: str = "") -> Html:
    """Return pieces one after another."""
    return Html(
        between.join(
            child if isinstance(child, Html) else escape(str(child))
            for child in children
            if child is not None
        )
    )


def scrolling(table: Html, what: str, class_: str = "scroll") -> Html:
    """Return a table in a box that scrolls, also by keys, where it is wider than the page."""
    return el("div", table, class_=class_, tabindex=0, role="region", aria_label=what)


def left_out(n_shown: int, n: int) -> list[Html]:
    """Return a line that says how many of n are not shown, unless all are."""
    if n_shown == n:
        return []
    text = f"The first {n_shown} are shown; there are {n - n_shown} more."
    return [el("p", text, class_="more")]


def table(
    what: str,
    titles: Sequence[str],
    rows: Sequence[Sequence[Html | str]],
    *,
    n: int | None = None,
    class_: str | None = None,
) -> list[Html]:
    """Return a table and, if there are more rows than are shown, a line that says so.

    Parameters
    ----------
    what
        What its rows are.
    titles
        Titles of the columns; the first one holds the names of the rows.
    rows
        Their cells; at most `N_ROWS` rows are shown.
    n
        How many rows there are; None for those given.
    class_
        Class of the table.

    """
    body = [
        el("tr", el("th", first, scope="row"), *(el("td", cell) for cell in rest))
        for first, *rest in rows[:N_ROWS]
    ]
    whole = el(
        "table",
        el("caption", what.capitalize()),
        el("thead", el("tr", *(el("th", title, scope="col") for title in titles))),
        el("tbody", *body),
        class_=class_,
    )
    return [
        scrolling(whole, what.capitalize()),
        *left_out(len(body), len(rows) if n is None else n),
    ]


def facts_list(facts: Iterable[tuple[str, str, str]]) -> Html:
    """Return numbers in large print: the name, the value and a note of each."""
    items = [
        el("div", el("dt", name), el("dd", value), el("dd", note, class_="note"))
        for name, value, note in facts
    ]
    return el("dl", *items, class_="facts")


def foreign(value: object) -> Html:
    """Return a text of unknown origin: a label, a key, an id.

    Examples
    --------
    >>> print(foreign("<b>"), foreign(3))
    <bdi>&lt;b&gt;</bdi> <bdi>3</bdi>
    >>> print(foreign("kitchen " * 9))
    <bdi title="kitchen kitchen ...">kitchen kitchen kitchen ...…</bdi>
    >>> print(foreign(""), foreign(None))
    <i>empty</i> <i>none</i>

    """
    if value is None:
        return el("i", "none")
    text = printable(str(value))
    if not text.strip():
        return el("i", "blank" if text else "empty")
    if len(text) <= N_SHOWN:
        # bdi: a text that is written from right to left does not turn its neighbours around.
        return el("bdi", text)
    return el("bdi", cut(text, N_SHOWN), title=cut(text, N_TOLD))


def cut(text: str, n: int) -> str:
    """Return a text of at most n characters.

    Examples
    --------
    >>> cut("kitchen", 7), cut("kitchen", 5)
    ('kitchen', 'kitc…')

    """
    return text if len(text) <= n else text[: n - 1] + "…"
