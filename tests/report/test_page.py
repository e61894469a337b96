"""A page is complete, needs nothing else, and shows strangers' texts as texts."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest

from streamgp.evaluation.stopping import Gain
from streamgp.report.html import N_ROWS, N_SHOWN, N_TOLD
from streamgp.report.page import N_CLASSES, page
from streamgp.report.run import (
    AnnotatorCounts,
    ByConfidence,
    Calibration,
    Confusion,
    Contested,
    Counts,
    Distributions,
    Estimate,
    Example,
    Outcome,
    Progress,
    Refusal,
    Reliability,
    Run,
)
from tests.report.html_check import checked

COUNTS = Counts(
    n_events=2000,
    n_scored=1999,
    accuracy=0.948,
    macro_f1=0.947,
    n_asked=179,
    n_challenges=2,
    challenge_precision=0.5,
    challenge_recall=0.25,
    n_answered=180,
    n_declined=1,
    n_expired=0,
    n_rejected=0,
    n_learned=178,
    n_repaired=1,
    n_spoiled=0,
    n_wrong_kept=12,
    wrong_kept=0.067,
)
NOTHING = replace(
    COUNTS,
    **dict.fromkeys((n for n in COUNTS.__slots__ if n.startswith("n_")), 0),
    **dict.fromkeys(
        ("accuracy", "macro_f1", "challenge_precision", "challenge_recall", "wrong_kept")
    ),
)


def contested(event_id: str = "e1", **changes: Any) -> Contested:
    values: dict[str, Any] = {
        "event_id": event_id,
        "key": None,
        "at": 1704112200.0,
        "given": "hall",
        "suggested": "den",
        "probability_wrong": 0.875,
        "annotator": "ann",
        "examples": [Example(event_id="e0", y="den", distance=0.52)],
        "outcome": "revised",
        "y": "attic",
    }
    return Contested(**{**values, **changes})


def run(**changes: Any) -> Run:
    values: dict[str, Any] = {
        "log": "rooms.csv",
        "streamgp": "0.1.0",
        "configuration": {
            "seed": 1,
            "learner": {"name": "gp", "length_scale": None, "options": {}},
            "log": {"label": "room", "time": None, "ignore": ["a", "b"], "features": []},
        },
        "notes": [],
        "interrupted": False,
        "results": COUNTS,
        "keys": None,
        "curve": Progress(
            n_events=[1, 1000, 2000],
            accuracy=[None, 0.9, 0.948],
            n_asked=[1, 100, 178],
            n_challenges=[0, 1, 2],
        ),
        "confusion": Confusion(labels=["hall", "den"], counts=[[9, 1], [0, 5]]),
        "annotators": [
            AnnotatorCounts(name="ann", n_answers=178, n_wrong=36, error_rate=0.2, estimate=0.21)
        ],
        "estimates": [Estimate(name="ann", n_answers=[0, 1], estimate=[0.2, 0.18])],
        "challenges": [contested(), contested("e2", outcome="upheld", y="hall")],
        "outcomes": {"revised": 1, "upheld": 1},
        "refusals": [],
    }
    return Run(**{**values, **changes})


def text(shown: Run) -> str:
    """Return what is read on the page of a run; line breaks of the templates are no spaces."""
    seen = checked(page(shown)).text.replace("\u202f", " ")
    return "".join(line.strip(" ") for line in seen.split("\n"))


def test_headline_shows_every_number() -> None:
    shown = text(run())
    for number in ("2000", "94.8 %", "94.7 %", "179", "50 %", "25 %", "7 %", "12 among 178"):
        assert number in shown
    assert "for 9 % of the events" in shown
    assert "1 repaired, 0 spoiled" in shown
    assert "A replay of 2000 events." in shown
    assert "A replay of 1 event." in text(run(results=replace(COUNTS, n_events=1)))


CALIBRATION = Calibration(
    n=20,
    overconfidence=0.56,
    underconfidence=0.128,
    auc=0.746,
    calibration_error=0.063,
    brier=0.1784,
    reliability=Reliability(n=[5, 15], mean=[0.5, 0.9], share=[0.4, 0.8]),
    confidence=ByConfidence(right=[4, 0, 0, 10], wrong=[3, 3, 0, 0]),
)


def test_confidence_is_shown_in_numbers_and_two_diagrams() -> None:
    html = page(run(calibration=CALIBRATION))
    shown = text(run(calibration=CALIBRATION))
    for number in ("6.3 %", "0.178", "56 %", "13 %", "0.746"):
        assert number in shown
    lines = re.findall(r'<polyline points="([^"]*)"', html)
    assert "500,240 900,80" in lines  # the picture is 1000 wide and 400 high, from above
    assert "0,400 500,200 900,40 1000,0" in lines
    # Half of what is wrong in each of the first two quarters; the chart ends at 80 %.
    assert "0,150 250,150 250,150 500,150 500,400 750,400 750,400 1000,400" in lines


def test_nothing_wrong_has_no_histogram() -> None:
    histogram = ByConfidence(right=[4, 0, 0, 10], wrong=[0, 0, 0, 0])
    calibration = replace(CALIBRATION, overconfidence=None, auc=None, confidence=histogram)
    assert "wrong: nothing." in page(run(calibration=calibration))


def test_runs_without_truths_or_from_before_say_so_or_nothing() -> None:
    none = replace(CALIBRATION, n=0)
    assert "No prediction could be compared" in text(run(calibration=none))
    assert "Confidence" not in text(run())


def test_distributions_of_numbers_are_scored() -> None:
    scores = Distributions(n=9, npll=-0.3456, crps=1.234, coverage=0.875)
    shown = text(run(distributions=scores))
    for number in ("87.5 %", "-0.346", "1.23"):
        assert number in shown
    nothing = Distributions(n=0, npll=None, crps=None, coverage=None)
    assert "No prediction with a standard deviation" in text(run(distributions=nothing))


def test_columns_are_shown_by_their_weight() -> None:
    assert "Weight" not in text(run())
    forms = {"zone": ["name"], "a": ["ranks", "missing"], "c": ["missing"]}
    shown = text(run(weights={"a": 0.5, "<b>": 1.323, "c": 0.3}, forms=forms))
    assert (
        "ColumnWeightWhat countszone-as a name<b>1.32numbersa0.50ranks, where it is missing"
        "c0.30numbers, where it is missing"
    ) in shown


def test_diagrams_must_be_whole() -> None:
    with pytest.raises(ValueError, match="a reliability diagram must have as many points in each"):
        Reliability(n=[1], mean=[0.5, 0.6], share=[1.0])
    with pytest.raises(ValueError, match="a histogram must have as many steps of right and wrong"):
        ByConfidence(right=[1], wrong=[])


def test_every_challenge_is_shown_with_its_outcome() -> None:
    outcomes = ("revised", "upheld", "declined", "expired", "cancelled", "open")
    challenges = [contested(f"e{n}", outcome=outcomes[n % 6]) for n in range(200)]
    tree = checked(page(run(challenges=challenges, outcomes={"revised": 250})))
    rows = [a for a in tree.all("tr") if a.get("role") == "row" and a.get("class")]
    assert [row["class"] for row in rows] == [c.outcome for c in challenges]
    for n in range(200):
        assert f"e{n}" in tree.text
    assert "The first 200 are shown; there are 50 more." in tree.text
    assert "250 revised." in tree.text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "revised to attic"),
        ({"late": True}, "revised to attic, late"),
        ({"outcome": "upheld", "y": "hall"}, "upheld"),
        ({"outcome": "open", "y": None}, "still open"),
    ],
)
def test_outcome_is_reported_in_words(changes: dict[str, Any], words: str) -> None:
    html = page(run(challenges=[contested(**changes)]))
    (found,) = re.findall(r'<span class="outcome">(.*?)</span>', html)
    assert re.sub("<[^>]*>", "", found) == words


def test_choices_are_the_outcomes_there_are() -> None:
    choices = [a["id"] for a in checked(page(run())).all("input")]
    assert choices == ["show-all", "show-revised", "show-upheld"]
    assert checked(page(run(challenges=[contested()]))).all("input") == []


def test_times_are_dates_only_where_the_log_has_times() -> None:
    assert "When (s)" in text(run())
    assert "1704112200" in text(run())
    timed = run(configuration={"log": {"time": "at"}})
    assert "When (UTC)" in text(timed)
    assert "2024-01-01 12:30:00" in text(timed)


def test_keys_are_shown_where_there_are_keys() -> None:
    assert "Keys" not in text(run())
    keyed = run(
        keys={"phone 1": COUNTS, "phone 2": NOTHING},
        challenges=[contested(key="phone 1")],
    )
    shown = text(keyed)
    assert "phone 2" in shown
    assert "all keys are combined" in shown
    many = run(keys={f"k{n}": COUNTS for n in range(5000)})
    assert "The first 200 are shown; there are 4800 more." in text(many)


def test_curve_ends_with_the_results() -> None:
    label = next(
        a["aria-label"] or ""
        for a in checked(page(run())).all("svg")
        if (a.get("aria-label") or "").startswith("Questions")
    )
    assert label.startswith(
        "Questions so far, by events. label requests: 1 at 1, 179 at 2000 events."
    )


def test_estimate_is_drawn_beside_the_truth_if_there_is_one_annotator() -> None:
    assert "true share" in text(run())
    two = run(
        annotators=[*run().annotators, replace(run().annotators[0], name=None, error_rate=None)],
        estimates=[*run().estimates, Estimate(name=None, n_answers=[0], estimate=[0.2])],
    )
    assert "true share" not in text(two)
    assert "no name" in text(two)


def test_run_without_anything_has_a_page() -> None:
    empty = run(
        results=NOTHING,
        curve=Progress(n_events=[], accuracy=[], n_asked=[], n_challenges=[]),
        confusion=Confusion(labels=[], counts=[]),
        annotators=[],
        estimates=[],
        challenges=[],
        outcomes={},
        configuration={},
        keys={},
    )
    shown = text(empty)
    for words in (
        "Accuracy so far: nothing to draw.",
        "No prediction could be compared with a truth.",
        "No label was challenged.",
        "No annotator answered.",
    ):
        assert words in shown


def test_interruption_is_reported() -> None:
    assert "interrupted" not in text(run())
    assert "The run was interrupted." in text(run(interrupted=True))


def test_notes_and_refusals_are_told_and_bounded() -> None:
    shown = text(
        run(
            notes=["left out as text: <note>"],
            refusals=[Refusal(subject="row 7", reason="x" * 900)],
            results=replace(COUNTS, n_rejected=3),
        )
    )
    assert "left out as text: <note>" in shown
    assert "row 7" in shown
    assert "x" * 499 + "…" in shown
    assert "The first 1 are shown; there are 2 more." in shown


def test_settings_are_shown_by_section() -> None:
    shown = text(run())
    for words in (
        "generalseed1",
        "length_scalenot set",
        "optionsnone",
        "ignorea, b",
        "featuresnone",
    ):
        assert words in shown
    configuration = {"annotators": {"ann": {"delay": 3.0}}, "learner": {"options": {"n": [1, {}]}}}
    shown = text(run(configuration=configuration))
    assert "Configurationannotators.anndelay3.0learner.optionsn1, none" in shown


def test_configuration_of_any_shape_has_a_page() -> None:
    for configuration in ({"learner": 3, "log": None}, {"learner": {"name": None}, "log": {}}):
        assert "Learner: none." in text(run(configuration=configuration))


HOSTILE = "</style></title><script>alert(\"x\")</script>' onload='x"


def everywhere(text: str) -> Run:
    """Return a run with a text wherever one comes from outside."""
    return run(
        log=text,
        configuration={text: {text: text}, "x": [text]},
        notes=[text],
        keys={text: COUNTS},
        confusion=Confusion(labels=[text], counts=[[1]]),
        annotators=[replace(run().annotators[0], name=text)],
        estimates=[Estimate(name=text, n_answers=[0, 1], estimate=[0.2, 0.3])],
        challenges=[
            contested(
                text,
                key=text,
                given=text,
                suggested=text,
                annotator=text,
                y=text,
                examples=[Example(event_id=text, y=text, distance=1.0)],
            )
        ],
        refusals=[Refusal(subject=text, reason=text)],
    )


def test_texts_of_strangers_are_never_markup() -> None:
    tree = checked(page(everywhere(HOSTILE)))
    assert tree.text.count(HOSTILE) >= 17
    assert "<script" not in page(everywhere(HOSTILE))


def test_texts_of_strangers_hold_nothing_that_cannot_be_seen() -> None:
    found = page(everywhere("a\u202eb\u200bc\x1b[31m"))
    assert found.count("a\\u202eb\\u200bc\\x1b[31m") >= 17
    assert not {"\u202e", "\u200b", "\x1b"} & set(found)


def test_long_labels_keep_the_page_small() -> None:
    label = '"<&' * 170
    challenges = [
        contested(f"e{n}", given=label, suggested=label, y=label, key=label) for n in range(200)
    ]
    assert len(page(run(challenges=challenges))) < 3_000_000
    plain = "L" * 500
    challenges = [contested(f"e{n}", given=plain, suggested=plain, y=plain) for n in range(60)]
    assert len(page(run(challenges=challenges))) < 300_000


def test_page_runs_nothing_and_loads_nothing_whatever_is_in_it() -> None:
    html = page(run())
    policies = [
        a["content"]
        for a in checked(html).all("meta")
        if a.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]
    assert "http:" not in html
    assert "https:" not in html


def test_page_reads_on_a_phone_and_in_the_dark() -> None:
    html = page(run())
    assert 'name="viewport" content="width=device-width, initial-scale=1"' in html
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html
    assert "@media (max-width" not in html  # Firefox takes an A4 page for a phone


def test_choices_are_there_only_where_they_choose() -> None:
    """Firefox before 121 knows no `:has`; forced colours have no shadows."""
    style = page(run(challenges=[contested(outcome=one) for one in ("revised", "upheld")]))
    assert "@supports not selector(:has(*)) { .filter { display: none; } }" in style
    assert re.search(r"forced-colors: active\) { .filter input:checked \+ span { border", style)


def test_every_table_is_described_and_its_headers_have_a_scope() -> None:
    keyed = run(keys={"a": COUNTS}, refusals=[Refusal(subject="s", reason="r")])
    tree = checked(page(keyed))
    assert len(tree.all("caption")) == len(tree.all("table"))
    assert {a.get("scope") for a in tree.all("th")} == {"row", "col"}
    boxes = [a for a in tree.all("div") if "scroll" in (a.get("class") or "")]
    assert boxes
    assert all(a["tabindex"] == "0" and a["aria-label"] for a in boxes)
    titles = re.findall("<h2[^>]*>(.*?)</h2>", page(keyed))
    names = [*titles, *(a["aria-label"] for a in boxes)]
    assert len({*names}) == len(names)  # of parts and of tables in them, to tell them apart


def test_headings_go_down_step_by_step() -> None:
    levels = [int(tag[1]) for tag, _ in checked(page(run())).elements if re.match("h[1-6]$", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))


# WCAG 2: relative luminance, and the contrast that level AA asks of text.
CONTRAST = 4.5


def luminance(colour: str) -> float:
    full = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    parts = [int(full[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_and_lines_stand_out_in_both_themes(theme: int) -> None:
    blocks = re.findall(r":root \{(.*?)\}", page(run()), re.S)
    colours = dict(re.findall(r"--([\w]+): (#[0-9a-f]+);", blocks[theme]))
    for name in ("ink", "soft", "s1", "s2", "s3", "s4", "s5", "s6"):
        for ground in ("page", "card"):
            pair = sorted((luminance(colours[name]), luminance(colours[ground])))
            assert (pair[1] + 0.05) / (pair[0] + 0.05) >= CONTRAST, (name, ground)


def test_documentation_tells_the_parts_the_outcomes_and_the_limits() -> None:
    document = Path(__file__).parents[2] / "docs" / "report.md"
    if not document.is_file():
        pytest.skip("docs/ is not beside the tests")
    told = document.read_text()
    keyed = run(keys={}, notes=["n"], refusals=[Refusal(subject="s", reason="r")])
    for title in re.findall("<h2[^>]*>(.*?)</h2>", page(keyed)):
        assert re.search(rf"^\| (.*, )?{title}\b", told, re.M), title
    words = re.findall(r"^\| ([a-z ]+) \|", told.partition("| word |")[2], re.M)
    shown = [contested(outcome=outcome) for outcome in get_args(Outcome)]
    said = re.findall(r'<span class="outcome">([a-z ]+)', page(run(challenges=shown)))
    assert words == [words.removesuffix(" to ") for words in said]
    limits = (f"{N_ROWS} challenges", f"{N_CLASSES} most", f"{N_SHOWN} char", f"{N_TOLD}.")
    for limit in limits:
        assert f" {limit}" in told


def test_estimates_by_all_answers_have_columns_where_there_are_any() -> None:
    [ann] = run().annotators
    known = replace(ann, by_all_answers=0.123, insistence=0.88)
    shown = text(run(annotators=[known, replace(ann, name="bob")]))
    assert "By all answersInsistsann1783620.0 %21.0 %12.3 %88 %bob1783620.0 %21.0 %--" in shown
    assert "By all answers" not in text(run())


def test_labels_taken_back_have_a_column_where_there_are_any() -> None:
    [ann] = run().annotators
    shown = text(run(annotators=[replace(ann, n_quarantines=1, n_taken_back=17), ann]))
    assert "Taken backann1783620.0 %21.0 %17ann1783620.0 %21.0 %-" in shown
    assert "Taken back" not in text(run())


def test_advice_stands_below_the_results_where_there_is_any() -> None:
    gain = Gain(n_labels=50, expected=0.004, low=0.0, high=0.012)
    assert f"A{str(gain)[1:]}." in text(run(gain=gain))
    assert "another 50 labels" not in text(run()).lower()
