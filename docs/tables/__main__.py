"""Write tables of measurements into pages: `python docs/tables`.

A table stands between `<!-- table NAME -->` and `<!-- end of table -->`; its entry in one of the
modules beside this one says from which file of `benchmarks/results` its numbers come. The
benchmarks write these files: `python -m benchmarks.NAME --json benchmarks/results/NAME.json`. A
test checks that the pages are what this program writes.

With `--list` it prints which table of which page comes from which file, which page has sentences
that are compared with a file, and which pages name a benchmark whose numbers were typed by hand
when they were measured.

"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import boosting
import learners
import papers
import people
import speed
import strategies
from table import RESULTS, ROOT, Table, Where, cell, document, shown

BLOCK = re.compile(r"<!-- table (\S+) -->\n(.*?)<!-- end of table -->\n", re.S)
COMMAND = re.compile(r"python -m benchmarks\.(\w+)")

TABLES: dict[str, Table] = {
    name: table
    for module in (boosting, learners, papers, people, speed, strategies)
    for name, table in module.TABLES.items()
}

_BAYES = "River Gaussian naive Bayes at a rate"
_RANDOM: Where = {"order": "random", "noise": 0.1}
_PENDIGITS: Where = {"set": "Pendigits", "way": "active"}
_ALL_FIVE: Where = {"log": "all", "wrong": "20%"}

SENTENCES: Sequence[tuple[str, str, Where, str]] = (
    (
        "CHANGELOG.md",
        "annotators",
        {"quarantine": "with the liar", "log": "all"},
        "is named after {lies, mean:.0f} answers on average",
    ),
    (
        "docs/choosing.md",
        "compare",
        {"learner": "learner of isgp()", "share": "10%"},
        "{accuracy:.3f} with {labels:.0f} labels in 2000 events",
    ),
    (
        "docs/choosing.md",
        "compare",
        {"learner": "learner of isgp()", "share": "3%"},
        "{accuracy:.3f} with {labels:.0f} labels; other Gaussian processes",
    ),
    (
        "docs/choosing.md",
        "compare",
        {"challenges by": "SkepticalChallenge (default)"},
        "20 % of the answers are wrong, {wrong kept:.1%} of the labels in the end",
    ),
    (
        "docs/choosing.md",
        "compare",
        {"challenges by": "NeverChallenge"},
        "believed, {wrong kept:.1%} are",
    ),
    (
        "docs/choosing.md",
        "drift_test",
        {"streams": "abrupt", "stream": "mean"},
        "{drift_test:.3f} instead of {without:.3f} on streams that change abruptly",
    ),
    (
        "docs/drift.md",
        "drift_test",
        {"streams": "abrupt", "stream": "mean"},
        "its accuracy is {drift_test:.3f} instead of {without:.3f}, with as many labels",
    ),
    (
        "docs/choosing.md",
        "kafka",
        {"loop": "worker, 50 examples per key"},
        "one worker on Kafka does {events per s:,.0f} events per second with a Gaussian process",
    ),
    (
        "docs/choosing.md",
        "peers",
        {"log": "wisdm, recorded", "classifier": "no change"},
        "On WISDM in the order of its file it has {accuracy_%:.3s},",
    ),
    (
        "docs/choosing.md",
        "peers",
        {"log": "wisdm, recorded", "classifier": "200 points, learning hyperparameters"},
        "the best learner {accuracy_%:.3s} ",
    ),
    *(
        ("docs/measured.md", measured, where, words)
        for measured, where, words in (
            (
                "compare",
                {"learner": "learner of isgp()", "share": "3%"},
                "accuracy is {accuracy:.3f} and",
            ),
            (
                "compare",
                {"learner": "learner of isgp()", "share": "10%"},
                "and {accuracy:.3f} for the learner of `isgp()`",
            ),
            ("compare", {"learner": _BAYES, "share": "3%"}, "and {accuracy:.3f} and"),
            ("compare", {"learner": _BAYES, "share": "10%"}, "and {accuracy:.3f} for River's best"),
            ("strategies", {"rule": "SkepticalAsk"}, "a mean accuracy of {accuracy:.3f},"),
            ("strategies", {"rule": "Split"}, "`Split` of scikit-activeml {accuracy:.3f},"),
            ("strategies", {"rule": "RandomAsk"}, "asking at random {accuracy:.3f},"),
            ("strategies", {"rule": "EntropySampler"}, "`EntropySampler` {accuracy:.3f} |"),
            ("isgp", {"learner": "paper: ISGP", **_RANDOM}, "F1 is {f1:.3f} with"),
            ("isgp", {"learner": "default, within 70", **_RANDOM}, "{f1:.3f} with the default"),
            ("isgp", {"learner": "default: all labels, trusted", **_RANDOM}, "{f1:.3f} with all"),
            ("boosting", {"setting": "paper", "method": "CB", **_PENDIGITS}, "asking, {error:.1%}"),
            (
                "boosting",
                {"setting": "paper", "method": "GB", **_PENDIGITS},
                "instead of {error:.1%}",
            ),
            (
                "boosting",
                {"setting": "default", "method": "CB", **_PENDIGITS},
                "and {error:.1%} with the default",
            ),
            ("kafka", {"loop": "worker, 50 examples per key"}, "| {events per s:,.0f} per second"),
            ("kafka", {"loop": "bare client"}, "a bare client {events per s:,.0f} |"),
            ("label_errors", _ALL_FIVE, "{challenged:.0%} of the wrong ones are challenged;"),
            ("label_errors", _ALL_FIVE, "random forest, ranks {random forest:.0%} of them"),
            (
                "label_errors",
                _ALL_FIVE,
                "classifiers {Gaussian process:.0p} to {10 neighbours:.0%}; annotators'",
            ),
            (
                "label_errors",
                {"overlap": 0.1},
                "{off, streamgp:.3f} off, by crowd-kit {off, one coin:.3f} and "
                "{off, Dawid and Skene:.3f} |",
            ),
            *(
                (
                    "egp",
                    {"problem": problem, "preset": "default", "rule": "all labels"},
                    f"{{NMSE 1:~2p}} ({problem})",
                )
                for problem in ("Branin", "Currin", "SARCOS")
            ),
        )
    ),
    *(
        ("docs/choosing.md", "public", where, words)
        for where, words in (
            ({"logs": "all", "wrong": "0%"}, "{n} tables and logs of github.com/"),
            (
                {"logs": "all", "wrong": "0%"},
                "asked about {asked:.0f} events and challenged {challenges:.0f} answers",
            ),
            (
                {"logs": "all", "wrong": "20%"},
                "asked about {asked:.0f} and challenged {challenges:.0f} where 20 %",
            ),
            ({"logs": "labels last", "wrong": "0%"}, "Labels last on {n} of these logs"),
            ({"logs": "others", "wrong": "0%"}, "for the {n} others"),
            (
                {"learner": "River ARF, asking", "logs": "all"},
                "River's ARF is {behind_0%:.2f} and {behind_20%:.2f} behind instead of",
            ),
            (
                {"learner": "River ARF", "logs": "all"},
                "behind instead of {behind_0%:.2f} and {behind_20%:.2f},",
            ),
            (
                {"learner": "River logistic regression, asking", "logs": "all"},
                "logistic regression {behind_0%:.2f} and {behind_20%:.2f} instead of",
            ),
            (
                {"learner": "River logistic regression", "logs": "all"},
                "instead of {behind_0%:.2f} and {behind_20%:.2f}.",
            ),
            (
                {"learner": "isgp(temporal=None)", "logs": "labels last"},
                "without it `isgp()` is {behind_0%:.2f} and {behind_20%:.2f} behind",
            ),
            (
                {"learner": "isgp(temporal=None)", "logs": "others"},
                "and elsewhere {behind_0%:.3f} and {behind_20%:.3f}.",
            ),
            (
                {"learner": "random forest, retrained, asking", "logs": "others"},
                "come closest: {behind_0%:.2f} and {behind_20%:.2f} behind",
            ),
            ({"logs": "sorted", "wrong": "0%"}, "on the {n} logs that are sorted"),
            (
                {"learner": "the last answer", "logs": "sorted"},
                "and {behind_20%:.2f} behind if 20 % are wrong",
            ),
            ({"logs": "labels last and return", "wrong": "0%"}, "On the {n} where labels last"),
            (
                {"learner": "the last answer", "logs": "labels last and return"},
                "and {behind_20%:.2f} behind.",
            ),
            ({"learner": "the last answer", "logs": "all"}, "and the last answer on {ahead_both}"),
            (
                {"learner": "random forest, retrained", "logs": "all"},
                "on at most {ahead_both} logs",
            ),
            (
                {"learner": "River ARF, asking", "logs": "all"},
                "on {ahead_both} if it is River's ARF that asks",
            ),
        )
    ),
    ("README.md", "public", {"logs": "all", "wrong": "0%"}, "On {n} public tables and logs,"),
    (
        "README.md",
        "public",
        {"learner": "River ARF", "logs": "all"},
        "`isgp()` is {behind_0%:.2f} to",
    ),
    (
        "README.md",
        "public",
        {"learner": "River Gaussian naive Bayes", "logs": "all"},
        "to {behind_0%:.2f} more accurate than five learners",
    ),
    (
        "README.md",
        "public",
        {"learner": "River ARF, asking", "logs": "all"},
        "and {behind_0%:.2f} to",
    ),
    (
        "README.md",
        "public",
        {"learner": "logistic regression, retrained, asking", "logs": "all"},
        "to {behind_20%:.2f} more than four",
    ),
    ("docs/measured.md", "public", {"logs": "all", "wrong": "0%"}, "on {n} public logs,"),
    (
        "docs/measured.md",
        "public",
        {"learner": "River ARF", "logs": "all"},
        "River's ARF is {behind_0%:.2f} and {behind_20%:.2f} behind",
    ),
    (
        "docs/measured.md",
        "public",
        {"learner": "River ARF, asking", "logs": "all"},
        "{behind_0%:.2f} and {behind_20%:.2f} if it chooses them",
    ),
    (
        "docs/choosing.md",
        "reservoir",
        {"log": "mean", "asks": "l2fm alone"},
        "the share of the log that is right in the end is {whole_log_advantage:.3f} larger",
    ),
    *(
        (page, "review_numbers", {"function": "all", "wrong_answers": 0.2, "review": arm}, words)
        for page, arm, words in (
            (
                "docs/numbers.md",
                "none, more labels",
                "than with more labels in {with_review_lower} of {runs} runs",
            ),
            ("docs/numbers.md", "leave one out", "wrong in the end in {many_wrong_kept} run,"),
            ("docs/numbers.md", "none", "without a review in {many_wrong_kept},"),
            ("docs/numbers.md", "none, more labels", "with more labels in {many_wrong_kept}."),
            ("docs/measured.md", "leave one out", "squared error is {NMSE:.3f} of the variance"),
            ("docs/measured.md", "none, more labels", "but no review {NMSE:.3f} |"),
            ("docs/decisions/old-labels.md", "leave one out", "with a review is {NMSE:.3f},"),
            ("docs/decisions/old-labels.md", "none, more labels", "and none {NMSE:.3f};"),
        )
    ),
    *(
        (
            "docs/numbers.md",
            "review_numbers",
            {"function": function, "wrong_answers": 0.1, "review": arm},
            words,
        )
        for function, arm, words in (
            ("skewed targets", "leave one out", "with skewed targets, {NMSE:.3f} instead"),
            ("skewed targets", "none, more labels", "instead of {NMSE:.3f} with more labels;"),
            ("all", "none, more labels", "lower in {with_review_lower} of {runs} runs."),
        )
    ),
)
"""Sentences with numbers from files that their page does not show: page, benchmark, row, words.

They are written by hand; a test checks that the pages contain them.
"""


def sentences() -> Iterator[tuple[Path, str]]:
    """Yield pages, and the words that they must contain according to the files."""
    for page, measured, where, template in SENTENCES:
        yield ROOT / page, cell(document(measured)["rows"], where, template)


def written(text: str) -> str:
    """Return a page with its tables renewed from their files."""

    def renewed(block: re.Match[str]) -> str:
        return f"<!-- table {block[1]} -->\n{shown(TABLES[block[1]])}<!-- end of table -->\n"

    return BLOCK.sub(renewed, text)


def pages() -> Iterator[Path]:
    """Yield the README and the pages of the documentation."""
    yield ROOT / "README.md"
    yield from sorted((ROOT / "docs").rglob("*.md"))


def sources() -> Iterator[tuple[str, str, str]]:
    """Yield page and line, the table or benchmark there, and where its numbers come from."""
    for path in pages():
        text = path.read_text(encoding="utf-8")
        place = path.relative_to(ROOT)
        quoted = {measured for page, measured, _, _ in SENTENCES if page == str(place)}
        backed = set(quoted)
        for block in BLOCK.finditer(text):
            table = TABLES[block[1]]
            backed.add(table.measured)
            line = text.count("\n", 0, block.start()) + 1
            yield f"{place}:{line}", f"table {block[1]}", _measured(table.measured)
        for name in sorted(quoted):
            yield f"{place}", "sentences", _measured(name)
        for name in sorted({*COMMAND.findall(text)} - backed):
            yield f"{place}", f"benchmarks.{name}", "typed, as measured at the time"


def _measured(name: str) -> str:
    """Return the results file of a benchmark, and when it was written."""
    file = (RESULTS / f"{name}.json").relative_to(ROOT)
    return f"{file}, measured {document(name)['date']}"


def main() -> None:
    """Write the pages, or print where their numbers come from."""
    if sys.argv[1:] not in ([], ["--list"]):
        sys.exit(f"expected --list or nothing, got {' '.join(sys.argv[1:])}")
    if sys.argv[1:]:
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
