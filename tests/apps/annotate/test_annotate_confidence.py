"""Confidence of an annotator, behind the label in a line; and how long an answer took."""

from __future__ import annotations

import io
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.annotation.open_questions import Question
from connectors.wire.codec import decode
from connectors.wire.signatures import signature
from streamgp.apps.annotate.choices import CONFIDENCES, in_words, split_confidence
from streamgp.apps.annotate.commands import Command, line_of
from streamgp.apps.annotate.line_ui import LineFace, Lines, Stopwatch
from streamgp.apps.annotate.question_view import View
from streamgp.apps.deployment.answer_keys import AnswerKeys
from tests.helpers import deskwork
from tests.helpers.deskwork import Clock, Town, annotate, challenge, label_request


def view(request: Any = None, labels: tuple[Any, ...] = ("den", "hall"), **fields: Any) -> View:
    question = Question(request=label_request() if request is None else request)
    return deskwork.view(question, labels, **{"asks_confidence": True, **fields})


def test_the_five_keys_are_fifths_of_the_way_from_guessed_to_certain() -> None:
    assert CONFIDENCES == {"1": 0.0, "2": 0.25, "3": 0.5, "4": 0.75, "5": 1.0}


def test_the_suggested_number_of_a_challenge_is_rated_too() -> None:
    contested = view(challenge(given=3.0, suggested=4.0), of_numbers=True, choices=[])
    assert line_of("c ?5", contested) == Command(kind="label", label=4.0, confidence=1.0)


@pytest.mark.parametrize(
    ("line", "label", "confidence"),
    [
        ("hall ?3", "hall", 0.5),
        ("2  ?5 ", "hall", 1.0),
        ("n attic ?1", "attic", 0.0),
        ("hall", "hall", None),
        ('n "hall ?3"', "hall ?3", None),
        ('n "7" ?2', "7", 0.25),
        ("n why?", "why?", None),
        ("n hall?3", "hall?3", None),
    ],
)
def test_line_says_behind_the_label_how_sure_it_is(
    line: str, label: str, confidence: float | None
) -> None:
    command = line_of(line, view())
    assert (command.label, command.confidence) == (label, confidence)


def test_number_in_a_line_is_rated_behind_how_exact_it_is() -> None:
    command = line_of("21.5 +- 0.5 ?4", view(of_numbers=True))
    assert (command.label, command.std, command.confidence) == (21.5, 0.5, 0.75)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("hall ?6", r"\?6 is not allowed, expected \?1 \(guessed\) to \?5 \(certain\)"),
        ("d ?3", "'d' does not clearly name a label"),
        ("hal ?3", "'hal' is neither a key nor a known label"),
        ("?3", r"'\?3' is neither a key nor a known label"),
    ],
)
def test_line_that_says_it_wrongly_means_nothing(line: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        line_of(line, view())


@pytest.mark.parametrize("line", ["hall ?3", "n hall ?3", "n  hall ?3"])
def test_label_that_looks_like_a_rated_one_is_not_mistaken(line: str) -> None:
    shown = view(labels=("hall", "hall ?3"))
    with pytest.raises(ValueError, match=r"'hall \?3' is itself a label; put it in double quotes"):
        line_of(line, shown)
    assert line_of('n "hall ?3"', shown) == Command(kind="label", label="hall ?3")
    assert line_of('n "hall" ?3', shown) == Command(kind="label", label="hall", confidence=0.5)


@given(st.text(), st.sampled_from([*CONFIDENCES]))
def test_without_the_option_a_line_means_what_it_meant(text: str, key: str) -> None:
    shown = view(asks_confidence=False)
    line = f"n x{text}x ?{key}"
    if text.isprintable() and len(text) < 1000:
        assert line_of(line, shown).label == f"x{text}x ?{key}"


@given(
    st.text(min_size=1).filter(lambda text: text.strip() == text and text.isprintable()),
    st.sampled_from("12345"),
)
def test_what_is_put_behind_is_found_again(text: str, key: str) -> None:
    assert split_confidence(f"{text} ?{key}") == (text, CONFIDENCES[key])


def test_words_are_those_of_the_keys() -> None:
    assert [in_words(value) for value in CONFIDENCES.values()] == [
        "guessed", "doubtful", "rather sure", "sure", "certain",
    ]  # fmt: skip


def test_lines_are_timed_from_the_question_to_the_line() -> None:
    clock = Clock(50.0)
    out = io.StringIO()
    reading, writing = os.pipe()
    with open(reading) as lines, open(writing, "w") as person:
        face = LineFace(Lines(lines), out, Stopwatch(clock))

        def read(shown: View, after_s: float, line: str) -> Command:
            face.show(shown)
            clock.now += after_s
            print(line, file=person, flush=True)
            command = face.read(shown, 1.0)
            assert command is not None
            return command

        first, second = view(), view(label_request("e2"))
        assert read(first, 3.0, "s") == Command(kind="skip")
        rated = Command(kind="label", label="den", confidence=0.25, response_s=2.0)
        assert read(second, 2.0, "den ?2") == rated
        assert read(first, 1.0, "d") == Command(kind="decline", response_s=4.0)
        assert read(first, 0.5, "den").response_s == 0.5
        face.show(view(n_read=7))  # the topics are read again
        clock.now += 30.0
        assert read(view(label_request("e3")), 1.5, "den").response_s == 1.5
    assert "how sure: ?1 (guessed) to ?5 (certain) after the answer, or nothing" in out.getvalue()


def test_lines_that_were_there_before_their_questions_took_no_time() -> None:
    face = LineFace(Lines(io.StringIO("den\nd\n")), io.StringIO(), Stopwatch(Clock(50.0)))
    for request, kind in (("e1", "label"), ("e2", "decline")):
        shown = view(label_request(request))
        face.show(shown)
        command = face.read(shown, 0.0)
        assert command is not None
        assert (command.kind, command.response_s) == (kind, None)


# --- the command


@pytest.fixture
def town(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Town:
    """Topics behind an address, with three questions."""
    town = Town(contests=False)
    town.clock.now = time.time()  # as the command has it: answers from the future are refused
    for i in range(1, 4):
        town.event(f"e{i}", float(i))
    return town.behind_an_address(monkeypatch, tmp_path)


def test_every_answer_states_its_confidence(town: Town) -> None:
    result = annotate("--confidence", lines="n den ?4\nu\nn den ?2\nd\nden\n")
    assert result.exit_code == 0, result.output
    assert "event e1: den, sure" in result.stdout
    assert "event e1: den, doubtful" in result.stdout
    said = [(a.event_id, a.y, a.privileged) for a in town.said("answers")]
    assert said == [
        ("e1", "den", {"confidence": 0.75}),
        ("e1", None, None),  # takes the answer back: no one was asked
        ("e1", "den", {"confidence": 0.25}),
        ("e2", None, None),
        ("e3", "den", None),
    ]


def test_answers_are_signed_with_the_key_of_the_annotator(town: Town) -> None:
    with Path("w.toml").open("a") as config:
        config.write('[people]\nkeys_file = "keys.json"\n')
    assert annotate(lines="n den\nu\n").exit_code == 0
    key = bytes.fromhex(json.loads(Path("keys.json").read_text())["ann"])
    records = town.topics.reader(["answers"]).poll(0.0)
    for record in records:
        assert dict(record.headers)["signature"] == signature(decode(record.value), key)
    assert len(records) == 2


@pytest.mark.parametrize(
    ("options", "n_given"), [([], "0 answers given"), (["--simulate", ""], "")]
)
def test_a_key_that_was_removed_meanwhile_ends_the_command(
    town: Town, monkeypatch: pytest.MonkeyPatch, options: list[str], n_given: str
) -> None:
    with Path("w.toml").open("a") as config:
        config.write('[people]\nkeys_file = "keys.json"\n')
    monkeypatch.setattr(AnswerKeys, "make", lambda *_: None)
    result = annotate(*options, lines="n den\n")
    assert result.exit_code == 2
    assert "Error: there is no key of annotator" in result.stderr
    assert n_given in result.stderr
    assert town.said("answers") == []


def test_without_the_option_a_line_is_all_label(town: Town) -> None:
    out = annotate(lines="n den ?4\n").stdout
    [answer] = town.said("answers")
    assert answer.y == "den ?4"
    assert answer.privileged is None
    assert "how sure" not in out


def test_times_are_not_told_where_they_are_not_wanted(town: Town) -> None:
    annotate("--no-response-time", "--confidence", lines="n den\nden ?5\nd\n")
    assert [a.privileged for a in town.said("answers")] == [None, {"confidence": 1.0}, None]


def test_what_is_known_of_an_answer_is_in_the_consensus_log(town: Town) -> None:
    annotate("--no-response-time", "--confidence", lines="n den ?1\n")
    town.work()
    assert town.said("consensus")[-1].privileged == {"confidence": 0.0}


@pytest.mark.parametrize("option", ["--confidence", "--no-response-time"])
def test_simulated_annotators_have_no_such_options(town: Town, option: str) -> None:  # noqa: ARG001
    result = annotate(option, "--simulate", "")
    assert result.exit_code == 2
    assert result.stderr.startswith(
        "Error: --confidence and --no-response-time cannot be used with --simulate"
    )


def test_tired_annotator_tells_the_times_of_its_answers(town: Town) -> None:
    settings = "tiring_rate=0.01,response_s=3,slowing=1,response_spread=0,classes=den|hall"
    result = annotate("--simulate", settings, "--stop-when-idle", "0")
    assert result.exit_code == 0, result.output
    times = [a.privileged["response_s"] for a in town.said("answers")]
    assert times == pytest.approx([3.0, 6.0, 9.0], rel=0.01)
