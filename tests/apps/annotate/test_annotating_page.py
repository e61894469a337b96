"""The page for those who answer says what the program does."""

import re
from pathlib import Path

import pytest

from connectors.annotation.own_answers import N_KEPT
from streamgp.apps.annotate.choices import COMMAND_LETTERS, CONFIDENCES, WORDS
from streamgp.apps.annotate.line_ui import DEAF_S
from streamgp.apps.annotate.question_view import HELP
from streamgp.apps.annotate.session import SEND_FOR_S
from streamgp.apps.annotate.simulated import MAX_TRUTHS
from streamgp.cli.annotate import annotate
from streamgp.cli.demo import demo
from streamgp.cli.maintenance import audit
from streamgp.cli.page import invite, page
from streamgp.cli.send import send
from streamgp.cli.worker import watch

PAGE = Path(__file__).parents[3] / "docs" / "annotating.md"
if not PAGE.is_file():
    pytest.skip("docs/ is not beside the tests", allow_module_level=True)
TEXT = " ".join(PAGE.read_text(encoding="utf-8").split())


def test_options_on_the_page_are_options_of_the_commands() -> None:
    known = {
        name
        for command in (annotate, audit, demo, invite, page, send, watch)
        for p in command.params
        for name in p.opts
    }
    assert set(re.findall(r"--[a-z][a-z-]+", TEXT)) <= known


def test_page_and_help_explain_every_key() -> None:
    for key in (*COMMAND_LETTERS, "?"):
        assert re.search(rf"\| `{re.escape(key)}[ `]", TEXT)
    for key in COMMAND_LETTERS:
        assert f"\n  {key} " in HELP


def test_page_and_help_explain_how_to_say_how_sure_one_is() -> None:
    assert ", ".join(f"{key} ({word})" for key, word in WORDS.items()) in TEXT
    assert ", ".join(f"{value:g}" for value in list(CONFIDENCES.values())[:-1]) + " or 1" in TEXT
    for key in (min(WORDS), max(WORDS)):
        assert f"{key} ({WORDS[key]})" in " ".join(HELP.split())


def test_numbers_on_the_page_are_those_of_the_program() -> None:
    assert f"within {DEAF_S} seconds" in TEXT
    assert f"tries for {SEND_FOR_S:.0f} seconds more" in TEXT
    assert f"the last {N_KEPT} events" in TEXT
    assert 2 * MAX_TRUTHS == 1_000_000
    assert "at most a million events" in TEXT


def test_words_of_a_question_on_the_page_are_those_of_the_program() -> None:
    for words in (
        "because the prediction is uncertain",
        "Earlier examples like this were study (86 % likely). Were they?",
        "n new label r rename d don't know s skip u undo ? help q quit",
        "k keep kitchen c change to study",
        "n another d don't know s skip u undo ? help q quit",
        "ann: 3 wait, 17 answers given",
    ):
        assert words in TEXT
