"""Confidence of an annotator: a key after the label, or what stands behind it in a line."""

from __future__ import annotations

import io
import json
import os
import pty
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from connectors.annotation.explain import Averages
from connectors.annotation.open_questions import Question
from connectors.wire.codec import decode
from connectors.wire.signatures import signature
from streamgp.apps.annotate.choices import CONFIDENCES, Choices, in_words, split_confidence
from streamgp.apps.annotate.commands import Command, line_of, typed_label
from streamgp.apps.annotate.line_ui import LineFace, Lines
from streamgp.apps.annotate.question_view import View
from streamgp.apps.annotate.stopwatch import Stopwatch
from streamgp.apps.annotate.terminal_ui import ScreenFace
from tests.helpers.deskwork import Broken, Clock, Town, challenge, label_request, on_screen, program


def view(request: Any = None, labels: tuple[Any, ...] = ("den", "hall"), **fields: Any) -> View:
    given: dict[str, Any] = {
        "annotator": "ann",
        "question": Question(request=label_request() if request is None else request),
        "choices": Choices().offer("k", list(labels), []),
        "averages": Averages(),
        "n_open": 1,
        "n_answered": 0,
        "n_unsent": 0,
        "n_read": None,
        "note": None,
        "trouble": None,
        "now": 1000.0,
        "asks_confidence": True,
    }
    return View(**{**given, **fields})


# --- keys


class Person:
    """An annotator at a terminal, and a clock that advances when told to."""

    def __init__(self) -> None:
        self.keyboard, self._terminal = pty.openpty()
        self.clock = Clock(50.0)
        self.drawn = io.StringIO()
        console = Console(file=self.drawn, force_terminal=True, width=90, height=30)
        self.face = ScreenFace(self._terminal, self._terminal, console, Stopwatch(self.clock))

    def press(self, keys: str, shown: View, *, after_s: float = 0.0) -> list[Command]:
        """Look for a while, then press keys; return the commands that come of them."""
        self.face.show(shown)
        self.clock.now += after_s
        os.write(self.keyboard, keys.encode())
        commands = []
        command = self.face.read(shown, 1.0)
        while command is not None or self.face._pressed:
            commands += [] if command is None else [command]
            self.face.show(shown)
            command = self.face.read(shown, 0.0)
        self.face.show(shown)
        return commands

    def sees(self) -> str:
        return on_screen(self.drawn.getvalue())

    def close(self) -> None:
        os.close(self.keyboard)
        os.close(self._terminal)


@pytest.fixture
def person() -> Iterator[Person]:
    person = Person()
    with person.face:
        yield person
    person.close()


@pytest.mark.parametrize(("key", "confidence"), CONFIDENCES.items())
def test_one_more_key_says_how_sure_the_label_is(
    person: Person, key: str, confidence: float
) -> None:
    [command] = person.press(f"2{key}", view())
    assert (command.label, command.confidence) == ("hall", confidence)


def test_the_five_keys_are_fifths_of_the_way_from_guessed_to_certain() -> None:
    assert CONFIDENCES == {"1": 0.0, "2": 0.25, "3": 0.5, "4": 0.75, "5": 1.0}


@pytest.mark.parametrize("key", ["\r", " "])
def test_enter_or_space_leaves_it_out(person: Person, key: str) -> None:
    [command] = person.press(f"1{key}", view())
    assert (command.label, command.confidence) == ("den", None)


@pytest.mark.parametrize("key", ["\x1b", "u"])
def test_going_back_gives_nothing_and_another_label_can_be_chosen(person: Person, key: str) -> None:
    shown = view()
    assert person.press("1", shown) == []
    assert person.press(key, shown) == []
    [command] = person.press("24", shown)
    assert (command.label, command.confidence) == ("hall", 0.75)


def test_it_is_asked_in_place_of_the_labels(person: Person) -> None:
    shown = view()
    person.press("2", shown)
    assert "How sure are you of" in person.sees()
    assert "hall" in person.sees()
    assert "guessed" in person.sees()
    assert "new label" not in person.sees()
    person.press("\x1b", shown)
    assert "new label" in person.sees()


def test_other_keys_say_what_is_expected_and_answer_nothing(person: Person) -> None:
    shown = view()
    assert person.press("19dsnm\x7f", shown) == []
    assert person.press("x", shown) == []
    assert "how sure: 1 to 5; Enter leaves it out, Esc goes back" in person.sees()
    for pasted in "5 uq?":
        assert person.press(f"\x1b[200~{pasted}\x1b[201~", shown) == []
    assert person.press("??5", shown)[0].confidence == 1.0


def test_leaving_in_between_gives_no_answer(person: Person) -> None:
    assert person.press("1q", view()) == [Command(kind="quit")]


def test_question_that_ends_in_between_takes_the_label_with_it(person: Person) -> None:
    assert person.press("1", view()) == []
    person.face.question_ended()
    assert person.face._unrated is None
    assert person.press("1", view()) == []
    assert person.press("5", view(label_request("e2"))) == []


def test_without_the_option_nothing_more_is_asked(person: Person) -> None:
    commands = person.press("12", view(asks_confidence=False))
    assert [(c.label, c.confidence) for c in commands] == [("den", None), ("hall", None)]


def test_an_annotator_who_does_not_know_is_not_asked_how_sure(person: Person) -> None:
    assert [c.kind for c in person.press("ds", view())] == ["decline", "skip"]


def test_typed_labels_and_numbers_are_rated_too(person: Person) -> None:
    [command] = person.press("nspa\r4", view())
    assert (command.label, command.confidence) == ("spa", 0.75)
    [command] = person.press("nspa ?1\r", view())
    assert (command.label, command.confidence) == ("spa", 0.0)
    [command] = person.press("21.5 +- .5\r2", view(of_numbers=True))
    assert (command.label, command.std, command.confidence) == (21.5, 0.5, 0.25)


def test_numbers_of_a_challenge_are_rated_too(person: Person) -> None:
    contested = view(challenge(given=3.0, suggested=4.0), of_numbers=True, choices=[])
    [command] = person.press("c5", contested)
    assert (command.label, command.confidence) == (4.0, 1.0)


# --- times on a terminal


def test_time_runs_until_the_label_is_chosen_not_until_it_is_rated(person: Person) -> None:
    shown = view()
    assert person.press("1", shown, after_s=2.5) == []
    [command] = person.press("4", shown, after_s=10.0)
    assert command.response_s == 2.5


def test_time_goes_on_where_a_choice_is_given_up(person: Person) -> None:
    shown = view()
    person.press("1", shown, after_s=2.0)
    person.press("\x1b", shown, after_s=1.0)
    [command] = person.press("25", shown, after_s=4.0)
    assert (command.label, command.response_s) == ("hall", 7.0)


def test_help_in_front_of_a_question_does_not_count(person: Person) -> None:
    shown = view()
    person.press("?", shown, after_s=2.0)
    person.press("x", shown, after_s=100.0)
    [command] = person.press("d", shown, after_s=1.0)
    assert command.response_s == 3.0


def test_question_put_off_goes_on_from_where_it_was(person: Person) -> None:
    plain = {"asks_confidence": False}
    first, second = view(**plain), view(label_request("e2"), **plain)
    person.press("s", first, after_s=5.0)
    assert person.press("1", second, after_s=7.0)[0].response_s == 7.0
    person.press("", view(question=None, trouble="the broker is away", **plain), after_s=60.0)
    assert person.press("1", first, after_s=1.0)[0].response_s == 6.0


def test_answer_given_again_has_a_time_of_its_own(person: Person) -> None:
    shown = view(asks_confidence=False)
    assert person.press("1", shown, after_s=5.0)[0].response_s == 5.0
    assert person.press("2", shown, after_s=1.5)[0].response_s == 1.5


def test_reading_what_was_asked_so_far_does_not_count(person: Person) -> None:
    plain = {"asks_confidence": False}
    person.press("", view(n_read=7, **plain), after_s=30.0)
    assert person.press("1", view(**plain), after_s=2.0)[0].response_s == 2.0


# --- lines


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
    with pytest.raises(ValueError, match="is itself a label"):
        typed_label("hall ?3", shown)


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
    monkeypatch.setattr("connectors.worker.worker.LONGEST_WAIT_S", 0.0)
    monkeypatch.setattr("streamgp.apps.annotate.session.LOOK_S", 0.0)
    monkeypatch.setattr(
        "streamgp.apps.deployment.deployment.open_topics", lambda _config: Broken(town.topics)
    )
    monkeypatch.chdir(tmp_path)
    Path("w.toml").write_text('broker = "file://topics"\n')
    town.work()
    return town


def annotate(*options: str, lines: str = "") -> Result:
    return CliRunner().invoke(program, ["annotate", "w.toml", "--as", "ann", *options], input=lines)


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
