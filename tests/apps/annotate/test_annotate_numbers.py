"""`streamgp annotate` where targets are numbers: typed, with how exact they are, and contested."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from connectors.annotation.label_text import parse_number
from streamgp import GPRegressor, SkepticalRegressor
from streamgp.apps.annotate.question_view import shown_suggestion
from streamgp.interactive import Answer, Challenge, LabelledExample
from tests.helpers.deskwork import Town, annotate
from tests.helpers.messages import challenge

NUMBERS = {"e1": 10.0, "e2": 11.0, "e3": 12.0, "e4": 13.0, "e5": 14.0, "e6": 15.0}


@pytest.fixture
def town(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Town:
    """Topics behind an address, with six questions about numbers."""
    town = Town(model=SkepticalRegressor(GPRegressor(noise_variance=0.05), warm_up=0, seed=1))
    town.clock.now = time.time()  # as the command has it: answers from the future are refused
    for i, name in enumerate(NUMBERS):
        town.clock.now += 0.001
        town.event(name, float(i), truth=NUMBERS[name])
    return town.behind_an_address(monkeypatch, tmp_path, 'target = "number"\n')


def answers(town: Town) -> list[tuple[str, Any, Any]]:
    return [(answer.event_id, answer.y, answer.std) for answer in town.said("answers")]


def taught(town: Town) -> Challenge:
    """Let all six be answered, and one more wrongly; return what the worker says to that."""
    annotate(lines="".join(f"{y}\n" for y in NUMBERS.values()))
    town.work()
    town.clock.now += 0.001
    town.event("e7", 2.5)
    town.work()
    annotate(lines="900\n")
    town.work()
    return [message for message in town.said("requests") if isinstance(message, Challenge)][-1]


def test_numbers_are_typed_with_or_without_how_exact_they_are(town: Town) -> None:
    result = annotate(lines="10\n11.5 ± 0.5\nn 12 +- 1\nd\n13e0 +/- .25\n")
    assert result.exit_code == 0, result.output
    assert answers(town) == [
        ("e1", 10.0, None), ("e2", 11.5, 0.5), ("e3", 12.0, 1.0), ("e4", None, None),
        ("e5", 13.0, 0.25),
    ]  # fmt: skip
    assert result.stdout.count("How much is it?") >= 5
    assert "21.5 or 21.5 +- 0.5   d don't know" in result.stdout
    assert "event e2: 11.5 ± 0.5" in result.stdout


def test_what_was_typed_is_learned_with_how_exact_it_is(town: Town) -> None:
    annotate(lines="10 +- 0.5\n11\n")
    town.work()
    lines = [(line.event_id, line.y, line.std) for line in town.said("consensus")]
    assert lines == [("e1", 10.0, 0.5), ("e2", 11.0, None)]


def test_a_number_that_does_not_fit_comes_back_with_what_was_expected(town: Town) -> None:
    challenge = taught(town)
    assert challenge.given == 900.0
    assert challenge.std is not None
    out = annotate(lines="12.4\n").stdout
    assert "Are you sure?" in out
    assert "Judging by the examples so far, it would be about " in out
    assert f" ± {challenge.std:.3g}" in out
    assert "k keep 900.0" in out
    town.work()
    line = [m for m in town.said("consensus") if isinstance(m, LabelledExample)][-1]
    assert (line.event_id, line.y, line.origin) == ("e7", 12.4, "revised")


@pytest.mark.parametrize(("key", "origin"), [("k", "upheld"), ("c", "revised")])
def test_a_key_stands_by_the_number_or_takes_the_one_expected(
    town: Town, key: str, origin: str
) -> None:
    challenge = taught(town)
    annotate(lines=f"{key}\n")
    town.work()
    line = town.said("consensus")[-1]
    expected = challenge.given if key == "k" else challenge.suggested
    assert (line.y, line.origin) == (expected, origin)


def test_a_line_that_is_no_number_ends_it(town: Town) -> None:
    result = annotate(lines="10\nmany\n11\n")
    assert result.exit_code == 2
    assert "line 2 of the input: 'many' is no number; write one as 21.5, or 21.5 +- 0.5" in (
        result.stderr
    )
    assert answers(town) == [("e1", 10.0, None)]


def test_the_last_number_can_be_taken_back(town: Town) -> None:
    annotate(lines="10\nu\n10.5\n")
    assert [y for _, y, _ in answers(town)] == [10.0, None, 10.5]


def test_a_simulated_annotator_measures(town: Town) -> None:
    result = annotate("--simulate", "noise=0.1,states_noise=true", "--stop-when-idle", "0")
    assert result.exit_code == 0, result.output
    found = answers(town)
    assert [name for name, _, _ in found] == list(NUMBERS)
    assert all(0.0 < abs(y - NUMBERS[name]) < 0.5 and std == 0.1 for name, y, std in found)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "many",
        "12 kg",
        "1.234,5",
        "1,234,567",
        "1_000",
        "nan",
        "inf",
        "1e101",
        "5 +- 0",
        "5 +- 1e101",
        "5 +- -1",
        "5 ± x",
    ],
)
def test_what_is_no_number_is_refused_as_such(text: str) -> None:
    with pytest.raises(ValueError, match="is no number; write one as"):
        parse_number(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("-3", (-3.0, None)),
        (" 21.5±.5 ", (21.5, 0.5)),
        ("1e3 +/- 10", (1000.0, 10.0)),
        ("-1 +- 2", (-1.0, 2.0)),
        ("21,5 ± 0,25", (21.5, 0.25)),
        ("0,125", (0.125, None)),
        ("1.234", (1.234, None)),
        ("\uff0d\uff12\uff11\uff0c\uff15 \u00b1 \uff10\uff0e\uff15", (-21.5, 0.5)),
        ("\u0662\u06f1\u066b\u0665", (21.5, None)),
    ],
)
def test_numbers_as_people_write_them(text: str, found: tuple[float, float | None]) -> None:
    assert parse_number(text) == found


@pytest.mark.parametrize("text", ["1,234", "7 ± 1,234"])
def test_a_comma_that_may_separate_thousands_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"'1,234' has two meanings; write 1234 or 1\.234"):
        parse_number(text)


@pytest.mark.parametrize(
    ("suggested", "std", "shown"),
    [
        (2.389975952009391, 0.714, "2.39"),
        (-0.26444163706459456, 0.714, "-0.26"),
        (21534.6, 9e3, "21500.0"),
        (1.23456789e-12, 1e-14, "1.2346e-12"),
        (1e-9, 5.0, "1e-09"),
        (0.0, 1.0, "0.0"),
        (7.25, None, "7.25"),
        (1e10 / 3, 1e-300, "3333333333.333333"),
    ],
)
def test_what_is_suggested_has_no_digits_that_are_not_certain(
    suggested: float, std: float | None, shown: str
) -> None:
    request = challenge(given=3.0, suggested=suggested, std=std)
    assert shown_suggestion(request) == shown


def test_a_review_says_when_the_number_was_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A challenge of a fresh answer is as old as the answer; that of a review is not."""
    model = SkepticalRegressor(GPRegressor(noise_variance=0.05), warm_up=0, seed=1)
    town = Town(model=model)
    now = time.time()
    for i, (name, y) in enumerate({**NUMBERS, "e1": 900.0, "e7": 16.0}.items()):
        town.clock.now = now - 7200.0 if name == "e1" else now - 60.0
        town.event(name, float(i))
        town.put(
            Answer(
                answer_id=f"{name}/a",
                event_id=name,
                key="k",
                y=y,
                annotator="ann",
                answered_at=town.clock.now,
            )
        )
        town.work()
    town.behind_an_address(monkeypatch, tmp_path, 'target = "number"\n')
    doubted = [message for message in town.said("requests") if isinstance(message, Challenge)]
    assert [(each.event_id, each.reason) for each in doubted] == [("e1", "LeaveOneOutReview")]
    assert "You said 900.0 2 h ago." in annotate(lines="").stdout
