"""Keys of a terminal, one by one."""

from __future__ import annotations

import os
import pty
import termios
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.apps.annotate.terminal_ui import Key, KeyParser, Keys


def kinds(text: str) -> list[str]:
    return [key.text or key.kind for key in KeyParser().feed(text)]


def test_characters_are_keys_and_control_characters_are_not() -> None:
    assert kinds("aÉ1\x01\x00 ") == ["a", "É", "1", " "]
    assert kinds("\r\n\x7f\b\x04") == ["enter", "enter", "backspace", "backspace", "end"]


@pytest.mark.parametrize("sequence", ["\x1b[A", "\x1bOP", "\x1b[15~", "\x1b[1;5C", "\x1bx"])
def test_arrows_function_keys_and_alt_are_no_keys(sequence: str) -> None:
    assert kinds(f"1{sequence}2") == ["1", "2"]


@given(st.lists(st.sampled_from(["\x1b[A", "\x1bOP", "a", "\r", "\x1b[200~d d\x1b[201~"])))
def test_keys_are_the_same_however_their_bytes_are_cut(parts: list[str]) -> None:
    parser, text = KeyParser(), "".join(parts)
    assert [key for c in text for key in parser.feed(c)] == KeyParser().feed(text)
    assert not parser.is_waiting


def test_pasted_text_is_one_key_whatever_is_in_it() -> None:
    parser = KeyParser()
    assert parser.feed("\x1b[200~one\rtwo") == []
    assert parser.finish() == []
    assert parser.feed("\x1b[A\x1b[201~3") == [Key("paste", "one\rtwo\x1b[A"), Key("text", "3")]


def test_escape_alone_is_a_key_once_nothing_follows() -> None:
    parser = KeyParser()
    assert parser.feed("\x1b") == []
    assert parser.is_waiting
    assert parser.finish() == [Key("escape")]
    assert parser.feed("\x1b[") == []
    assert parser.finish() == []


def test_paste_without_end_is_given_up() -> None:
    parser = KeyParser()
    assert parser.feed("\x1b[200~" + "x" * 70_000) == []
    assert parser.feed("1") == [Key("text", "1")]


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """The two ends of a terminal: a person's, and the program's."""
    person, program = pty.openpty()
    yield person, program
    os.close(program)
    os.close(person)


def test_terminal_is_held_and_given_back_as_it_was(terminal: tuple[int, int]) -> None:
    person, program = terminal
    before = termios.tcgetattr(program)
    keys = Keys(program, program)
    keys.hold()
    keys.hold()
    held = termios.tcgetattr(program)
    assert not held[3] & (termios.ICANON | termios.ECHO)
    assert held[3] & termios.ISIG  # Ctrl-C stays what it is
    keys.release()
    keys.release()
    assert termios.tcgetattr(program) == before
    shown = os.read(person, 100)
    while len(shown) < 16:  # a terminal may hand over what was written in pieces
        shown += os.read(person, 100)
    assert shown == b"\x1b[?2004h\x1b[?2004l"


def test_keys_are_read_as_they_are_pressed(terminal: tuple[int, int]) -> None:
    person, program = terminal
    keys = Keys(program, program)
    keys.hold()
    assert keys.read(0.0) == []
    os.write(person, "1é".encode())
    assert [key.text for key in keys.read(5.0)] == ["1", "é"]
    os.write(person, b"\x1b")
    assert keys.read(5.0) == [Key("escape")]
    os.write(person, b"12")
    keys.discard()
    assert keys.read(0.0) == []
    keys.release()


def test_terminal_that_is_gone_ends_the_input() -> None:
    person, program = pty.openpty()
    os.close(person)
    assert Keys(program, program).read(1.0) == [Key("end")]
    os.close(program)
