"""Which key stands for which label, and what people type."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.annotation.label_text import parse_label, shown_label
from streamgp.apps.annotate.choices import (
    CHARACTERS,
    COMMAND_LETTERS,
    Choice,
    Choices,
)
from streamgp.apps.annotate.commands import Command, command_of_line

texts = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1)
labels = st.one_of(st.booleans(), st.integers(-9, 9), st.floats(-9, 9), texts)


def keys(offered: list[Choice]) -> dict[Any, str | None]:
    return {choice.label: choice.character for choice in offered}


def test_no_label_takes_the_letter_of_a_command() -> None:
    assert not set(CHARACTERS) & set(COMMAND_LETTERS)
    assert len(CHARACTERS) == 27


def test_label_keeps_its_key_when_others_come() -> None:
    choices = Choices()
    assert keys(choices.offer("k", ["hall"], [])) == {"hall": "1"}
    assert keys(choices.offer("k", ["attic", "hall"], ["den"])) == {
        "hall": "1",
        "attic": "2",
        "den": "3",
    }


def test_label_that_is_written_as_a_key_has_that_key() -> None:
    assert keys(Choices().offer("k", [2, 3, "hall"], [1, "b"])) == {
        2: "2",
        3: "3",
        "hall": "1",
        1: "4",
        "b": "b",
    }


@given(st.lists(labels, max_size=29, unique_by=lambda label: (type(label), label)))
def test_line_means_the_label_whose_key_it_is_or_that_it_spells(known: list[Any]) -> None:
    choices = Choices().offer("k", known, [])
    for choice in choices:
        written = [other.label for other in choices if shown_label(other.label) == choice.character]
        try:
            meant = command_of_line(str(choice.character), choices).label
        except ValueError:
            assert [(type(y), y) for y in written] != [(type(choice.label), choice.label)]
            continue
        assert (type(meant), meant) == (type(choice.label), choice.label)
        assert all((type(y), y) == (type(meant), meant) for y in written)


def test_label_has_the_same_key_for_everybody() -> None:
    choices = Choices()
    choices.offer("ann", ["den", "hall"], [])
    assert keys(choices.offer("bob", ["hall"], [])) == {"hall": "2"}
    assert keys(choices.offer("bob", ["hall", "spa"], [])) == {"hall": "2", "spa": "3"}


def test_labels_of_others_give_way_when_keys_run_out() -> None:
    choices = Choices()
    everywhere = [f"x{i:02}" for i in range(40)]
    offered = choices.offer("k", [], everywhere)
    assert len(offered) == len(CHARACTERS)
    mine = [f"m{i}" for i in range(27)]
    offered = choices.offer("k", mine, everywhere)
    assert {choice.label for choice in offered if choice.is_here} == set(mine)
    assert all(choice.character for choice in offered)


def test_labels_beyond_all_keys_have_none() -> None:
    mine = [f"m{i:02}" for i in range(29)]
    offered = Choices().offer("k", mine, [])
    assert [choice.character for choice in offered] == [*CHARACTERS, None, None]


def test_conversations_with_labels_of_their_own_do_not_run_out_of_keys() -> None:
    choices = Choices()
    for key in range(10):
        offered = choices.offer(str(key), [f"{key}-{i}" for i in range(10)], [])
        assert None not in keys(offered).values()


def test_keys_of_many_conversations_are_forgotten() -> None:
    choices = Choices()
    for key in range(1100):
        choices.offer(str(key), ["hall"], [])
    assert len(choices._of_key) == 1000


@given(
    st.lists(st.tuples(st.lists(labels, max_size=40), st.lists(labels, max_size=40)), max_size=4)
)
def test_no_two_labels_ever_share_a_key(steps: list[tuple[list[Any], list[Any]]]) -> None:
    choices = Choices()
    for here, elsewhere in steps:
        offered = choices.offer("k", _distinct(here), _distinct(elsewhere))
        taken = [choice.character for choice in offered if choice.character is not None]
        assert len(taken) == len(set(taken))
        here_too = [choice.label for choice in offered if choice.is_here]
        assert sorted(map(repr, here_too)) == sorted(map(repr, _distinct(here)))


def _distinct(found: list[Any]) -> list[Any]:
    return list({(type(label), label): label for label in found}.values())


@given(labels)
def test_label_that_is_typed_as_shown_is_that_label(label: Any) -> None:
    found = parse_label(shown_label(label), [label])
    assert (type(found), found) == (type(label), label)


@given(texts)
def test_new_text_in_quotes_is_that_text(text: str) -> None:
    shown = shown_label(text)
    quoted = shown if shown.startswith('"') else f'"{text}"'
    if "\\" not in quoted and quoted.count('"') == 2:
        assert parse_label(quoted, [1, 2]) == text


@pytest.mark.parametrize(
    ("text", "known", "label"),
    [
        ("attic", [], "attic"),
        (" attic ", ["hall"], "attic"),
        ("Hall", ["hall"], "hall"),
        ("\u00fcBUNG", ["\u00dcbung"], "\u00dcbung"),
        ("Ma\u00dfe", ["Masse"], "Ma\u00dfe"),
        ("7", [], 7),
        ("7", [1, 2], 7),
        ("7", ["1", "2"], "7"),
        ('"7"', ["1"], "7"),
        ("7", ["7", 1], "7"),
        ("7", ["hall", 1], "7"),
        ("0.5", [1.5], 0.5),
        ("1", [True, 1], 1),
        ("true", [False, True], True),
        ("007", [], None),
        ("9223372036854775808", [], None),
    ],
)
def test_typed_label_is_of_the_kind_of_the_known_ones(text: str, known: Any, label: Any) -> None:
    found = parse_label(text, known)
    wanted = text if label is None else label
    assert (type(found), found) == (type(wanted), wanted)


@pytest.mark.parametrize(
    ("text", "known", "message"),
    [
        (" ", [], "a label has at least one character"),
        ("a\tb", [], "all of them printable"),
        ("x" * 1025, [], "at most 1024 characters"),
        ("\ud800", [], "all of them printable"),
        ('"', [], "is no text in double quotes"),
        ('""', [], "is no text in double quotes"),
        ('"a\\u0007"', [], "is no text in double quotes"),
        ("seven", [1, 2], "the labels here are 1, 2; put 'seven' in double quotes"),
        ("maybe", [True, False], "the labels here are true, false; put 'maybe'"),
        ("nan", [1.5], "the labels here are 1.5"),
        ("9223372036854775808", [1], "the labels here are 1; put '9223"),
        ("x", [1, 2, 3, 4], r"the labels here are 1, 2, 3, \.\.\.; put"),
    ],
)
def test_what_cannot_be_a_label_is_reported(text: str, known: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_label(text, known)


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("a", Command(kind="label", label="hall")),
        (" hall\n", Command(kind="label", label="hall")),
        ("1", Command(kind="label", label=1)),
        ("n 1", Command(kind="label", label=1)),
        ("n attic room", Command(kind="label", label="attic room")),
        ("n HALL", Command(kind="label", label="hall")),
        ("d", Command(kind="decline")),
        ("s", Command(kind="skip")),
        ("u", Command(kind="undo")),
        ("q", Command(kind="quit")),
    ],
)
def test_line_is_a_key_a_label_or_a_new_label(line: str, command: Command) -> None:
    choices = [Choice(character="a", label="hall"), Choice(character="1", label=1)]
    found = command_of_line(line, choices)
    assert (found, type(found.label)) == (command, type(command.label))


def test_line_that_is_the_key_of_one_label_and_another_label_is_refused() -> None:
    choices = [Choice(character="1", label=2), Choice(character="2", label=3)]
    with pytest.raises(ValueError, match="'2' is the key of 3 and also a label; write n 3 or n 2"):
        command_of_line("2", choices)


def test_line_that_says_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="'hal' is neither a key nor a known label; write n LABEL"):
        command_of_line("hal", [Choice(character="1", label="hall")])
    with pytest.raises(ValueError, match="to rename a label, write r OLD -> NEW"):
        command_of_line("r hall", [Choice(character="1", label="hall")])
