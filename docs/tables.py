"""Writes tables of measurements into pages: `python docs/tables.py`.

A table stands between `<!-- table NAME -->` and `<!-- end of table -->`; its row in `TABLES` says
from which file of `benchmarks/results` its numbers come. The benchmarks write these files:
`python -m benchmarks.NAME --json benchmarks/results/NAME.json`. A test holds that the pages are as
this writes them.

With `--list` it prints which table of which page comes from which file, and which pages name a
benchmark whose numbers were typed as they were measured.

"""

from __future__ import annotations

import itertools
import json
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
BLOCK = re.compile(r"<!-- table (\S+) -->\n(.*?)<!-- end of table -->\n", re.S)
FIELD = re.compile(r"\{([^{}:]+):?([^{}]*)\}")
COMMAND = re.compile(r"python -m benchmarks\.(\w+)")
VERSIONS = ("python", "river", "numpy", "scipy")


Where: TypeAlias = Mapping[str, Any]
"""Values by which rows of a file are found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Where the numbers of a table come from, and how they are shown.

    The number of a cell is in the one row of the file that has the values of the cell's row and of
    its column, and all that the column shows.

    A title in braces stands for several rows, or columns: one for each value that the file has,
    `"{learner}, {noise:.0%}"`. A value whose name begins with `$` is not in the file: it is put
    into the texts by which a cell is found and shown, `{"$n": 20}` into `"{labels $n}"`.

    Parameters
    ----------
    measured
        Name of the benchmark, and of its file.
    rows
        Values by title, in the order of the table.
    columns
        Templates by title, filled in with the values of a row of the file; with values of their own
        where the rows of the file are spread over the columns.
    head
        Title of the first column; `|` parts several, as in the titles of the rows.
    best
        Title of the column by which rows are sorted, the largest first; none is in order.

    """

    measured: str
    rows: Mapping[str, Where]
    columns: Mapping[str, str | tuple[Where, str]]
    head: str = ""
    best: str | None = None


def each(name: str, *values: Any, **titled: Any) -> dict[str, Where]:
    """Return rows that are told apart by one value: by itself as the title, or by another one."""
    titles = {str(value): value for value in values} | titled
    return {title: {name: value} for title, value in titles.items()}


def crossed(*axes: Mapping[str, Where], by: str = " | ") -> dict[str, Where]:
    """Return rows for each combination of those of several axes."""
    return {
        by.join(title for title, _ in ones): {k: v for _, where in ones for k, v in where.items()}
        for ones in itertools.product(*(axis.items() for axis in axes))
    }


def spread(template: str, wheres: Mapping[str, Where]) -> dict[str, tuple[Where, str]]:
    """Return columns that show the same of rows that are told apart by these values."""
    return {title: (where, template) for title, where in wheres.items()}


_BOUNDED = {
    "exact": "{exact_%:.1f}",
    "m = 100": "{points_lost_m=100:.2f}",
    "m = 200": "{points_lost_m=200:.2f}",
    "m = 500": "{points_lost_m=500:.2f}",
}


_LOGS_AS_RECORDED = {
    "WiFi rooms": "wifi_rooms",
    "occupancy": "occupancy",
    "Elec2": "elec2",
    "WISDM, user after user": "wisdm_by_user",
    "places of user 1": "places_1",
    "places of user 24": "places_24",
    "activities of user 10": "activities_10",
    "activities of user 5": "activities_5",
}
_LOGS_SHUFFLED = {
    "WISDM": "wisdm",
    "keystroke": "keystroke",
    "pendigits": "pendigits",
    "letter": "letter",
    "WiFi rooms": "wifi_rooms",
    "occupancy": "occupancy",
}
_TEMPORAL = {
    "before": "{before:.3f}",
    "filter": "{filter:.3f}",
    "clip": "{clip:.3f}",
    "clip and renewal": "{rescale:.3f}",
    "all, as in `isgp()`": "{all:.3f}",
    "gain": "{gain:+.3f} ± {gain_se:.3f}",
    "in macro F1": "{F1_gain:+.3f} ± {F1_gain_se:.3f}",
}


def _labelled(**where: Any) -> dict[str, Where]:
    return {"5 %": {"labels": 0.05, **where}, "10 %": {"labels": 0.1, **where}}


_HALVES = "{accuracy:.3f}, {second half:.3f}"
_LIES = "{lies, mean:.0f} (at most {lies, most:.0f})"

_RESERVOIR = {"accuracy": "next event", "whole_log": "whole log"}

TABLES = {
    "annotators": Table(
        measured="annotators",
        head="annotators",
        rows={"{annotators}": {}},
        columns={
            "off after 35: running": "{at 35, running:.3f}",
            "together": "{at 35, joint:.3f}",
            "off in the end: running": "{end, running:.3f}",
            "together, in the end": "{end, joint:.3f}",
            "accuracy": "{accuracy:.3f}",
            "labels": "{labels:.0f}",
            "challenges": "{challenges:.0f}",
        },
    ),
    "quarantine": Table(
        measured="annotators",
        head="log",
        rows=each("log", "wifi_rooms", "places_1", "occupancy", "wisdm", "pendigits", "all"),
        columns={
            "without the liar": ({"quarantine": "without the liar"}, _HALVES),
            "with, quarantine": ({"quarantine": "with the liar"}, _HALVES),
            "with, no quarantine": ({"quarantine": "with the liar, no quarantine"}, _HALVES),
            "named": ({"quarantine": "with the liar"}, "{named} of {runs}"),
            "lies": ({"quarantine": "with the liar"}, _LIES),
        },
    ),
    "quarantine-scenes": Table(
        measured="annotators",
        head="the third",
        rows={
            "there is none": {"quarantine": "without the liar", "log": "all"},
            "always lies": {"quarantine": "with the liar", "log": "all"},
            "always lies, no quarantine": {
                "quarantine": "with the liar, no quarantine",
                "log": "all",
            },
            "lies about one class": {"quarantine": "lies about one class", "log": "all"},
            "lies after 30 answers": {"quarantine": "lies after 30 answers", "log": "all"},
        },
        columns={
            "accuracy": _HALVES,
            "asked": "{labels:.0f}",
            "learned in the end": "{learned:.0f}",
            "named": "{named} of {runs}",
            "taken back": _LIES,
            "honest named": "{honest named}",
        },
    ),
    "wifi": Table(
        measured="wifi",
        rows={"{learner}": {}},
        columns={
            "accuracy": "{accuracy:.3f} ± {accuracy_se:.3f}",
            "macro F1": "{macro_f1:.3f}",
            "labels asked": "{labels_asked:.0f}",
            "challenges": "{challenges:.0f}",
            "challenge precision": "{challenge_precision:.0%}",
            "wrong labels kept": "{wrong_labels_kept:.1%}",
        },
    ),
    "loop": Table(
        measured="loop",
        rows={"{step}": {}},
        columns={
            "learner, µs": "{learner_us:.0f}",
            "with loop and `SkepticalClassifier`": "{loop_us:.0f}",
        },
    ),
    "hyperparameters": Table(
        measured="hyperparameters",
        rows={
            "letters": {"log": "letter, recorded"},
            "Elec2": {"log": "elec2, recorded"},
            "pendigits": {"log": "pendigits, recorded"},
            "USPS": {"log": "usps, recorded"},
            "DNA": {"log": "dna, recorded"},
            "WISDM": {"log": "wisdm, recorded"},
            "occupancy": {"log": "occupancy, recorded"},
            "WiFi rooms, class after class": {"log": "wifi_rooms, recorded"},
        },
        columns={
            "events": "{events}",
            "given": "{given_%:.1f}",
            "learned": "{learned_%:.1f}",
            "gain": "{gain_points:+.2f}",
            '"leave_one_out"': "{left_out_learned_%:.1f}",
            "its gain": "{left_out_gain_points:+.2f}",
        },
    ),
    "hyperparameters-waits": Table(
        measured="hyperparameters",
        rows={"`{learner}`": {}},
        columns={f"{n}": f"{{{n}_ms:.1f}}" for n in (32, 64, 128, 256, 512, 1024)},
    ),
    "regression": Table(
        measured="regression",
        rows=each(
            "problem",
            "Branin",
            "Currin",
            "robot pushing",
            "SARCOS",
            "SARCOS, in order",
            **{
                "Pumadyn-32nm": "pumadyn32nm",
                "diabetes (scikit-learn)": "diabetes",
                "Friedman 1 (scikit-learn)": "Friedman 1",
                "heavy tails": "heavy tails",
            },
        ),
        columns={
            "examples": "{examples}",
            "noise .5": "{noise .5:.3f}",
            "noise .1": "{noise .1:.3f}",
            "learned": "{learned:.3f}",
            "stream: noise .1": "{noise .1, stream:.3f}",
            "stream: learned": "{learned, stream:.3f}",
            "in intervals": "{covered:.3f}",
            "stream: in intervals": "{covered, stream:.3f}",
        },
    ),
    "regression-tails": Table(
        measured="regression",
        head="length of w | run",
        rows={"{w} | {seed}": {}},
        columns={
            "NMSE": "{NMSE:.3f}",
            "in intervals": "{covered:.3f}",
            "stream: in intervals": "{covered, stream:.3f}",
            "squared error / variance": "{squared:.2f}",
            "ranges beyond": "{reach:.2f}",
            "experts left": "{experts}",
        },
    ),
    "drift": Table(
        measured="drift",
        rows={
            "no drift": {"drift": "none", "concepts": "mean"},
            "abrupt, in the middle": {"drift": "abrupt", "concepts": "mean"},
            "gradual, over half of the time": {"drift": "gradual", "concepts": "mean"},
            "there and back again, three changes": {"drift": "recurring", "concepts": "mean"},
            "Elec2, first 10 000": {"concepts": "Elec2, 10000 events"},
            "Elec2, all 45 312": {"concepts": "Elec2, 45312 events"},
        },
        columns={
            "exact": "{exact:.1f}",
            "sparse": "{sparse:.1f}",
            "sparse + ADWIN": "{sparse_+_ADWIN:.1f}",
            "window": "{window:.1f}",
            "no change": "{no_change:.1f}",
        },
    ),
    "drift-asked": Table(
        measured="drift",
        head="asked by, change",
        rows=crossed(
            each(
                "asked_by",
                **{
                    f"`{rule}`": rule
                    for rule in (
                        "SkepticalAsk()",
                        "SkepticalAsk(at_least=.05)",
                        "SkepticalAsk(at_least=.1)",
                        "RandomAsk(.1)",
                    )
                },
            ),
            each("drift", "none", "abrupt", **{"there and back again": "recurring"}),
            by=", ",
        ),
        columns={
            "asked": "{questions:.0f}",
            "drifts found": "{drifts_found:.1f}",
            "sparse": "{sparse:.1f}",
            "sparse + ADWIN": "{sparse_+_ADWIN:.1f}",
            "window": "{window:.1f}",
        },
    ),
    "bounded": Table(
        measured="bounded",
        head="streams that do not change",
        rows={
            "digits, three shuffled passes": {"stream": "digits"},
            "ImageSegments, three shuffled passes": {"stream": "ImageSegments"},
            "Shuttle": {"stream": "Shuttle"},
            "Bananas": {"stream": "Bananas"},
            "RandomRBF, 10 classes, 60 centroids": {"stream": "RandomRBF"},
            "Waveform": {"stream": "Waveform"},
            "LED, 10 % noise": {"stream": "LED"},
            "**mean**": {"stream": "mean"},
        },
        columns=_BOUNDED,
    ),
    "bounded-logs": Table(
        measured="bounded",
        head="logs in their own order, or class after class",
        rows={
            "WiFi rooms, recorded": {"log": "wifi_rooms, recorded"},
            "occupancy, recorded": {"log": "occupancy, recorded"},
            "Elec2, recorded, first 5400": {"log": "elec2, recorded"},
            "places of ExtraSensory user 1, recorded": {"log": "places_1, recorded"},
            "places of ExtraSensory user 24, recorded": {"log": "places_24, recorded"},
            "pendigits, class after class": {"log": "pendigits, sequential"},
            "letters, class after class": {"log": "letter, sequential"},
            "WISDM, class after class": {"log": "wisdm, sequential"},
            "keystrokes, class after class": {"log": "keystroke, sequential"},
            "**mean**": {"log": "mean"},
        },
        columns=_BOUNDED,
    ),
    "peers": Table(
        measured="peers",
        rows={
            "`GPClassifier()`": {"classifier": "GPClassifier()"},
            "`max_points=200`": {"classifier": "GPClassifier(max_points=200)"},
            "`learn_hyperparameters=True`": {"classifier": "exact, learning hyper-parameters"},
            "both": {"classifier": "200 points, learning hyper-parameters"},
            **each(
                "classifier",
                "scikit-learn's GP, refitted",
                "River AMF",
                "River KNN",
                "River ARF",
                "River Hoeffding tree",
                "River Gaussian naive Bayes",
            ),
            "no change: the last label": {"classifier": "no change"},
        },
        columns=spread(
            "{accuracy_%:.1f}",
            each(
                "log",
                **{
                    "ImageSegments (2310)": "ImageSegments",
                    "Pendigits": "pendigits, recorded",
                    "WISDM": "wisdm, recorded",
                    "WiFi rooms (2000)": "wifi_rooms, random",
                    "Elec2": "elec2, recorded",
                    "Phishing (1250)": "Phishing",
                    "mean": "mean",
                },
            ),
        ),
    ),
    "asking": Table(
        measured="asking",
        head="log",
        rows={"{log}": {}},
        columns={
            f"{n} a day: {title}": ({"per_day": n}, template)
            for n in (30, 60)
            for title, template in {
                "hindsight": "{hindsight:.3f}",
                "**`PacedBudget`**": "{paced:.3f}",
                "`RateBudget`": "{rate:.3f}",
                "used": "{used:.0%}",
            }.items()
        },
    ),
    "asking-away": Table(
        measured="asking",
        head="log",
        rows={"{log}": {}},
        columns={
            f"{schedule}: {title}": ({"schedule": schedule}, template)
            for schedule in ("night", "work")
            for title, template in {
                "answered": "{answered:.0%} → {answered_available:.0%}",
                "questions": "{asked:.0f} → {asked_available:.0f}",
                "accuracy": "{accuracy:.3f} → {accuracy_available:.3f}",
            }.items()
        },
    ),
    "asking-late": Table(
        measured="asking",
        head="log",
        rows={"{log}": {}},
        columns={
            f"{delay} events late: {title}": ({"delay": delay}, template)
            for delay in (10, 30, 100)
            for title, template in {
                "questions": "{asked:.0f} → {asked_counted:.0f}",
                "accuracy": "{accuracy:.3f} → {accuracy_counted:.3f}",
            }.items()
        },
    ),
    "temporal": Table(
        measured="temporal",
        head="log | labels",
        rows=crossed(each("log", **_LOGS_AS_RECORDED), _labelled(order="recorded")),
        columns=_TEMPORAL,
    ),
    "temporal-shuffled": Table(
        measured="temporal",
        head="log | labels",
        rows=crossed(each("log", **_LOGS_SHUFFLED), _labelled(order="shuffled")),
        columns=_TEMPORAL,
    ),
    "temporal-cost": Table(
        measured="temporal",
        head="classes",
        rows={"{classes}": {}},
        columns={"µs": "{us_per_event:.1f}"},
    ),
    "temporal-late": Table(
        measured="temporal",
        head="log | labels",
        rows=crossed(each("log", **_LOGS_AS_RECORDED), _labelled()),
        columns={
            f"{late} late: {title}": ({"late": late}, template)
            for late in (10, 30)
            for title, template in {
                "before": "{before:.3f}",
                "filter": "{filter:.3f}",
                "all": "{all:.3f}",
                "gain": "{gain:+.3f} ± {gain_se:.3f}",
            }.items()
        },
    ),
    "reservoir": Table(
        measured="reservoir",
        rows={
            **{
                log: {"log": log, **{f"${of}": f" ± {{{of}_se:.1p}}" for of in _RESERVOIR}}
                for log in ("wifi_rooms", "occupancy", "places_1", "elec2", "wisdm", "pendigits")
            },
            "mean": {"log": "mean", **{f"${of}": "" for of in _RESERVOIR}},
        },
        columns={
            f"{judged}: {title}": ({"asks": asks}, f"{{{of}_advantage:+.1p}}${of}")
            for of, judged in _RESERVOIR.items()
            for title, asks in {
                "`RandomAsk`": "RandomAsk",
                "`rand` alone": "rand alone",
                "`hvar` alone": "hvar alone",
                "`l2fm` alone": "l2fm alone",
                "`l2fm` beside": "SkepticalAsk, l2fm",
            }.items()
        },
    ),
    "skeptical": Table(
        measured="skeptical",
        rows={"{learner}": {}},
        columns={
            "{log}": (
                {},
                "{accuracy:.3f} ± {se:.3f}, {labels:.0f} labels<br>"
                "{challenges:.0f}, {precision:.0%}, {wrong_kept:.0%}",
            ),
        },
    ),
}


SENTENCES: Sequence[tuple[str, str, Where, str]] = (
    (
        "docs/choosing.md",
        "drift",
        {"asked_by": "SkepticalAsk(at_least=.1)", "drift": "abrupt"},
        "{sparse_+_ADWIN:.1f} % right instead of {sparse:.1f} after an abrupt change",
    ),
    (
        "docs/choosing.md",
        "peers",
        {"log": "wisdm, recorded", "classifier": "no change"},
        "On WISDM in the order of its file it is right in {accuracy_%:.1f} %",
    ),
    (
        "docs/choosing.md",
        "peers",
        {"log": "wisdm, recorded", "classifier": "200 points, learning hyper-parameters"},
        "the best learner in {accuracy_%:.1f}",
    ),
    (
        "docs/choosing.md",
        "reservoir",
        {"log": "mean", "asks": "l2fm alone"},
        "{whole_log_advantage:.1p} points more of the log are right in the end",
    ),
)
"""What pages say about files that they do not show: page, benchmark, row, and the words.

They are written by hand, where they fit; a test holds that they stand there.
"""


class _Value:
    """A value of a row, formatted as the pages have it: .951, −1.20, and - for none.

    Beside the usual formats there are `.1p`, per cent without the sign, and `~2`, as many digits
    behind the point as show two that count, one at least; `~2p` is both.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __format__(self, how: str) -> str:
        value = self.value
        if value is None:
            return "-"
        if isinstance(value, str):
            return value
        if how.endswith("p"):
            value, how = 100.0 * value, how[:-1] + "f" * (not how.startswith("~"))
        if how.startswith("~"):
            before = math.floor(math.log10(abs(value))) if value else 0
            how = f".{max(1, int(how[1:]) - 1 - before)}f"
        text = format(value, how)
        if float(text.rstrip("%")) == 0.0:
            text = text.lstrip("+-")
        return re.sub(r"^([-+]?)0\.(?=\d*[1-9])", r"\1.", text).replace("-", "−").replace("%", " %")


def document(measured: str) -> dict[str, Any]:
    """Return what a benchmark has written."""
    found: dict[str, Any] = json.loads((RESULTS / f"{measured}.json").read_text(encoding="utf-8"))
    return found


def shown(table: Table) -> str:
    """Return a table and, below it, when and with what it was measured."""
    found = document(table.measured)
    rows: Sequence[Where] = found["rows"]
    columns: dict[str, tuple[Where, str]] = {}
    for title, column in table.columns.items():
        where, template = ({}, column) if isinstance(column, str) else column
        columns |= {one: (also, template) for one, also in _titled(title, where, rows)}
    lines = [
        [title, *(_cell(rows, {**where, **also}, template) for also, template in columns.values())]
        for head, of_rows in table.rows.items()
        for title, where in dict(_titled(head, of_rows, rows)).items()
    ]
    if table.best is not None:
        place = 1 + list(columns).index(table.best)
        lines.sort(key=lambda line: line[place], reverse=True)
    n_titles = table.head.count("|") + 1
    ruled = [[table.head, *columns], [":--"] * n_titles + ["--:"] * len(columns), *lines]
    body = "".join(f"| {' | '.join(line)} |\n" for line in ruled).replace("|  |", "| |")
    return f"{body}\n{provenance(found)}\n"


def _titled(title: str, where: Where, rows: Sequence[Where]) -> Iterator[tuple[str, Where]]:
    """Yield what a title stands for: itself, or a title for each value that the file has."""
    names = [name for name, _ in FIELD.findall(title)]
    if not names:
        yield title, where
        return
    for row in rows:
        if where.items() <= row.items() and row.keys() >= set(names):
            yield _filled(title, row), {**where, **{name: row[name] for name in names}}


def _cell(rows: Sequence[Where], where: Where, template: str) -> str:
    for name, value in where.items():
        if name.startswith("$"):
            template = template.replace(name, str(value))
    wanted = {name: value for name, value in where.items() if not name.startswith("$")}
    names = {name for name, _ in FIELD.findall(template)}
    found = [row for row in rows if wanted.items() <= row.items() and row.keys() >= names]
    if len(found) != 1:
        raise ValueError(f"expected one row of the file with {wanted}, got {len(found)}")
    # Where nothing was measured, nothing is uncertain either.
    return re.sub(r"^- .*", "-", _filled(template, found[0]))


def _filled(template: str, row: Where) -> str:
    """Fill in a template; names may have points and blanks, which those of `str.format` may not."""
    return FIELD.sub(lambda found: format(_Value(row[found[1]]), found[2]), template)


def sentences() -> Iterator[tuple[Path, str]]:
    """Yield pages, and what the files have them say."""
    for page, measured, where, template in SENTENCES:
        yield ROOT / page, _cell(document(measured)["rows"], where, template)


def provenance(found: Mapping[str, Any]) -> str:
    """Return when, where and with what a file was measured, in words."""
    machine, versions = found["machine"], found["versions"]
    names = {"python": "Python", "river": "River"}
    with_what = ", ".join(f"{names.get(name, name)} {versions[name]}" for name in VERSIONS)
    processor = machine["processor"] or machine["architecture"]
    return f"{found['date']}, {machine['cores']} cores of {processor}; {with_what}."


def written(text: str) -> str:
    """Return a page with its tables as their files have them."""

    def renewed(block: re.Match[str]) -> str:
        return f"<!-- table {block[1]} -->\n{shown(TABLES[block[1]])}<!-- end of table -->\n"

    return BLOCK.sub(renewed, text)


def pages() -> Iterator[Path]:
    """Yield the README and the pages of the documentation."""
    yield ROOT / "README.md"
    yield from sorted((ROOT / "docs").rglob("*.md"))


def sources() -> Iterator[tuple[str, str, str]]:
    """Yield page and line, what stands there, and where its numbers come from."""
    for path in pages():
        text = path.read_text(encoding="utf-8")
        place = path.relative_to(ROOT)
        backed = set()
        for block in BLOCK.finditer(text):
            table = TABLES[block[1]]
            backed.add(table.measured)
            line = text.count("\n", 0, block.start()) + 1
            file = (RESULTS / f"{table.measured}.json").relative_to(ROOT)
            when = document(table.measured)["date"]
            yield f"{place}:{line}", f"table {block[1]}", f"{file}, measured {when}"
        for name in sorted({*COMMAND.findall(text)} - backed):
            yield f"{place}", f"benchmarks.{name}", "typed, as measured at the time"


def main() -> None:
    """Write the pages, or print where their numbers come from."""
    if sys.argv[1:] == ["--list"]:
        for place, what, source in sources():
            print(f"{place:32} {what:26} {source}")
        return
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if (renewed := written(text)) != text:
            path.write_text(renewed, encoding="utf-8")
            print(f"{path.relative_to(ROOT)} written")


if __name__ == "__main__":
    main()
