"""A run as one web page that needs nothing else: no script, no font, no picture from elsewhere.

The same run gives the same bytes. How the page looks is in `page.css`.

"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from streamgp.common.printable import printable
from streamgp.report.challenges import challenges
from streamgp.report.confidence import confidence, distributions
from streamgp.report.confusion import confusion_table
from streamgp.report.markup import (
    N_ROWS,
    Html,
    cut,
    el,
    facts_list,
    foreign,
    join,
    table,
)
from streamgp.report.numbers import amount, count, percent
from streamgp.report.run import Counts, Progress, Run
from streamgp.report.svg import Line, chart

# Should a text ever slip through as markup, it still runs nothing and loads nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

N_REASON = 500


def page(run: Run) -> str:
    """Return the page.

    Parameters
    ----------
    run
        What it shows.

    """
    log = printable(run.log)
    sections = list(_sections(run))
    links = [el("a", title, href=f"#{name}") for name, title, _ in sections]
    style = files("streamgp.report").joinpath("page.css").read_text(encoding="utf-8")
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{cut(log, 60)} \N{EN DASH} streamgp"),
        el("style", Html(style)),
    )
    body = el(
        "body",
        el("header", el("h1", foreign(run.log)), *_introduction(run)),
        el("nav", *links, aria_label="Parts of this page"),
        el("main", *(_section(name, title, parts) for name, title, parts in sections)),
        el("footer", el("p", f"Made by streamgp {run.version} from the files of a replay.")),
    )
    return f"<!DOCTYPE html>\n{el('html', head, body, lang='en')}\n"


def _sections(run: Run) -> Iterator[tuple[str, str, Sequence[Html]]]:
    yield "results", "Results", [_facts(run)]
    yield "curves", "Curves", [_curves(run)]
    if not run.of_numbers:
        yield "confusion", "Confusion matrix", confusion_table(run.confusion)
    if run.calibration is not None:
        yield "confidence", "Confidence", confidence(run.calibration)
    if run.distributions is not None:
        yield "distributions", "Distributions", distributions(run.distributions)
    yield "challenges", "Challenges", challenges(run)
    yield "annotators", "Annotators", _annotators(run)
    if run.keys is not None:
        yield "keys", "Keys", _keys(run)
    if run.refusals:
        yield "rejected", "Rejected", _rejected(run)
    if run.notes:
        yield "notes", "Notes", [_notes(run)]
    yield "configuration", "Configuration", [_configuration(run.configuration)]


def _section(name: str, title: str, parts: Sequence[Html]) -> Html:
    heading = el("h2", title, id=f"{name}-title")
    return el("section", heading, *parts, id=name, aria_labelledby=f"{name}-title")


_OWN_LEARNERS = {"gp": "Gaussian process", "ensemble": "ensemble of Gaussian processes"}


def _introduction(run: Run) -> list[Html]:
    learner = run.setting("learner", "name")
    name = _OWN_LEARNERS.get(str(learner)) or foreign(learner)
    parts = [el("p", "A replay of ", count(run.results.n_events), " events. Learner: ", name, ".")]
    if run.interrupted:
        text = "The run was interrupted. What is shown here was done until then."
        parts.append(el("p", text, class_="warning", role="note"))
    return parts


def _facts(run: Run) -> Html:
    r = run.results
    share = r.n_asked / r.n_events if r.n_events else None
    facts = [
        ("Events", count(r.n_events), f"{count(r.n_rejected)} rejected"),
        *_scores(run),
        ("Labels asked", count(r.n_asked), f"for {percent(share)} of the events"),
        ("Challenges", count(r.n_challenges), _what_they_did(r)),
        ("Challenge precision", percent(r.challenge_precision), "of them contested a wrong label"),
        ("Challenge recall", percent(r.challenge_recall), "of the wrong labels were challenged"),
        (
            "Wrong labels kept",
            percent(r.wrong_kept),
            f"{_known(r.n_wrong_kept)} among {r.n_learned} learned",
        ),
    ]
    return facts_list(facts)


def _what_they_did(r: Counts) -> str:
    if r.n_repaired is None:
        return "not known what they repaired or spoiled"
    return f"{r.n_repaired} repaired, {r.n_spoiled} spoiled"


def _known(n: int | None) -> str:
    return "not known how many" if n is None else str(n)


def _scores(run: Run) -> list[tuple[str, str, str]]:
    r = run.results
    predictions = f"of {count(r.n_scored)} predictions"
    if run.of_numbers:
        return [
            ("Mean absolute error", amount(r.mae), predictions),
            ("NMSE", amount(r.nmse), "mean squared error over variance"),
        ]
    return [
        ("Accuracy", percent(r.accuracy, 1), predictions),
        ("Macro F1", percent(r.macro_f1, 1), "mean over the classes"),
    ]


def _curves(run: Run) -> Html:
    curve = _to_the_end(run)
    if run.of_numbers:
        score = chart(
            [Line(name="mean absolute error", x=curve.n_events, y=curve.mae)],
            title="Mean absolute error so far",
            of="events",
            show=amount,
        )
    else:
        score = chart(
            [Line(name="accuracy", x=curve.n_events, y=curve.accuracy)],
            title="Accuracy so far",
            of="events",
            show=percent,
            top=1.0,
        )
    questions = chart(
        [
            Line(name="label requests", x=curve.n_events, y=curve.n_asked),
            Line(name="challenges", x=curve.n_events, y=curve.n_challenges),
        ],
        title="Questions so far",
        of="events",
        show=count,
        least=1.0,
    )
    return el("div", score, questions, class_="pair")


def _to_the_end(run: Run) -> Progress:
    """Return a curve that ends with the results: its last point may come a little before."""
    curve, results = run.curve, run.results
    n = sum(at < results.n_events for at in curve.n_events)
    return Progress(
        n_events=[*curve.n_events[:n], results.n_events],
        accuracy=() if run.of_numbers else [*curve.accuracy[:n], results.accuracy],
        mae=[*curve.mae[:n], results.mae] if run.of_numbers else (),
        n_asked=[*curve.n_asked[:n], results.n_asked],
        n_challenges=[*curve.n_challenges[:n], results.n_challenges],
    )


def _annotators(run: Run) -> list[Html]:
    if not run.annotators:
        return [el("p", "Nobody answered.", class_="none")]
    about = (
        "First answers only. Wrong share: of the answers whose truth is known. Estimate: what the "
        "learner makes of the annotator; it never sees the truth."
    )
    if run.keys is not None:
        about += " Every key has an estimate of its own; here all keys are taken together."
    rows = [
        (
            foreign(a.name),
            count(a.n_answers),
            count(a.n_wrong),
            percent(a.error_rate, 1),
            percent(a.estimate, 1),
        )
        for a in run.annotators
    ]
    return [
        el("p", about),
        *table("annotators", ("Annotator", "Answers", "Wrong", "Wrong share", "Estimate"), rows),
        chart(
            _estimates(run),
            title="Estimated share of wrong answers",
            of="first answers",
            show=percent,
        ),
    ]


def _notes(run: Run) -> Html:
    return el("ul", *(el("li", cut(printable(note), N_REASON)) for note in run.notes[:N_ROWS]))


def _estimates(run: Run) -> list[Line]:
    lines = [Line(name=e.name or "no name", x=e.n_answers, y=e.estimate) for e in run.estimates]
    if len(lines) == len(run.annotators) == 1 and run.annotators[0].error_rate is not None:
        # With several annotators nobody could tell whose it is.
        ends = (lines[0].x[0], lines[0].x[-1])
        lines.append(Line(name="true share", x=ends, y=(run.annotators[0].error_rate,) * 2))
    return lines


def _keys(run: Run) -> list[Html]:
    titles = (
        "Key",
        "Events",
        *(("Mean absolute error", "NMSE") if run.of_numbers else ("Accuracy", "Macro F1")),
        "Labels asked",
        "Challenges",
        "Precision",
        "Recall",
        "Wrong kept",
    )
    rows = [
        (
            foreign(key),
            count(c.n_events),
            *(
                (amount(c.mae), amount(c.nmse))
                if run.of_numbers
                else (percent(c.accuracy, 1), percent(c.macro_f1, 1))
            ),
            count(c.n_asked),
            count(c.n_challenges),
            percent(c.challenge_precision),
            percent(c.challenge_recall),
            percent(c.wrong_kept),
        )
        for key, c in run.keys or ()
    ]
    return table("keys", titles, rows, n=run.n_keys)


def _rejected(run: Run) -> list[Html]:
    rows = [(foreign(r.subject), cut(printable(r.reason), N_REASON)) for r in run.refusals]
    titles = ("Input", "Why it could not be used")
    return table("rejected inputs", titles, rows, n=run.results.n_rejected, class_="words")


def _configuration(configuration: Mapping[str, Any]) -> Html:
    return el("div", *_groups("general", configuration), class_="settings")


def _groups(title: str, settings: Mapping[str, Any], above: str = "") -> Iterator[Html]:
    """Yield the settings of a section, and then the sections within it."""
    within = {name: v for name, v in settings.items() if isinstance(v, Mapping) and v}
    own = [
        el("div", el("dt", foreign(name)), el("dd", _setting(value)))
        for name, value in settings.items()
        if name not in within
    ]
    if own:
        yield el("div", el("h3", foreign(title)), el("dl", *own))
    for name, section in within.items():
        yield from _groups(f"{above}{name}", section, f"{above}{name}.")


def _setting(value: Any) -> Html:
    if value is None:
        return el("i", "not set")
    if value in ([], {}):
        return el("i", "none")
    if isinstance(value, list):
        return join(map(_setting, value), ", ")
    return foreign(value if isinstance(value, str) else json.dumps(value))
