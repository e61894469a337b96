"""The part of a page that lists the challenges, each with what came of it."""

from __future__ import annotations

from collections.abc import Callable

from streamgp.base import Label
from streamgp.report.markup import Html, el, foreign, join, left_out, scrolling
from streamgp.report.numbers import percent, seconds, utc
from streamgp.report.run import Contested, Outcome, Run

# In this order wherever they are counted.
_WORDS: dict[Outcome, str] = {
    "revised": "revised",
    "upheld": "upheld",
    "declined": "declined",
    "expired": "expired",
    "cancelled": "cancelled",
    "open": "still open",
}


def challenges(run: Run) -> list[Html]:
    """Return the challenges of a run as a table that becomes a list of cards on a phone."""
    total = sum(run.outcomes.values())
    if not total:
        return [el("p", "No label was challenged.", class_="none")]
    counted = [f"{run.outcomes[o]} {_WORDS[o]}" for o in _WORDS if run.outcomes.get(o)]
    parts = [
        el(
            "p",
            "A label that is probably wrong is not learned: the annotator is asked again. ",
            f"{', '.join(counted)}. Nearest examples: label, event, distance.",
        )
    ]
    parts += left_out(len(run.challenges), total)
    shown = [o for o in _WORDS if any(c.outcome == o for c in run.challenges)]
    if len(shown) > 1:
        parts.append(_filter(shown))
    parts.append(_table(run))
    return parts


def _filter(outcomes: list[Outcome]) -> Html:
    """Return buttons that choose what is shown: the style sheet hides the other rows."""
    choices = [
        el(
            "label",
            el("input", type="radio", name="outcome", id=f"show-{name}", checked=name == "all"),
            el("span", word),
        )
        for name, word in (("all", "all"), *((o, _WORDS[o]) for o in outcomes))
    ]
    return el("fieldset", el("legend", "Show"), *choices, class_="filter")


def _table(run: Run) -> Html:
    timed = run.setting("log", "time") is not None
    show_time: Callable[[float], str] = utc if timed else seconds
    keyed = run.keys is not None
    titles = [
        "Event",
        *(["Key"] if keyed else []),
        "When (UTC)" if timed else "When (s)",
        "Given",
        "Suggested",
        "P(wrong)",
        "Annotator",
        "Nearest examples",
        "In the end",
    ]
    # The roles stay when the style sheet takes the table apart.
    head = el(
        "thead",
        el("tr", *(el("th", t, scope="col", role="columnheader") for t in titles), role="row"),
        role="rowgroup",
    )
    rows = [_row(contested, titles, keyed, show_time) for contested in run.challenges]
    body = el("tbody", *rows, role="rowgroup")
    table = el("table", el("caption", "Challenges in their order"), head, body, role="table")
    return scrolling(table, "Challenges in their order", "scroll cards")


def _row(
    contested: Contested, titles: list[str], keyed: bool, show_time: Callable[[float], str]
) -> Html:
    share = contested.probability_wrong
    cells = [
        foreign(contested.event_id),
        *([foreign(contested.key)] if keyed else []),
        show_time(contested.at),
        foreign(_short(contested.given)),
        foreign(_short(contested.suggested)),
        el("span", percent(share), class_="bar", style=f"--share:{100 * share:.0f}%"),
        foreign(contested.annotator),
        _examples(contested),
        _outcome(contested),
    ]
    first, *rest = (
        el(
            "th" if i == 0 else "td",
            cell,
            scope="row" if i == 0 else None,
            data_t=title,
            role="rowheader" if i == 0 else "cell",
        )
        for i, (title, cell) in enumerate(zip(titles, cells, strict=True))
    )
    return el("tr", first, *rest, class_=contested.outcome, role="row")


def _short(y: Label | None) -> Label | None:
    """Return a label with no more digits than anybody reads."""
    return float(f"{y:.6g}") if isinstance(y, float) else y


def _examples(contested: Contested) -> Html:
    if not contested.examples:
        return el("i", "none")
    items = [
        el(
            "li",
            el("b", foreign(_short(e.y))),
            " ",
            el("small", foreign(e.event_id), f" \N{MIDDLE DOT} {e.distance:.2f}"),
        )
        for e in contested.examples
    ]
    return el("ul", *items, class_="near")


def _outcome(contested: Contested) -> Html:
    words: list[Html | str] = [_WORDS[contested.outcome]]
    if contested.outcome == "revised":
        words += [" to ", el("b", foreign(_short(contested.y)))]
    if contested.late:
        words.append(", late")
    return el("span", join(words), class_="outcome")
