"""Commands of an annotator, and their parsing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from connectors.annotation.label_text import parse_label, parse_number, shown_label
from streamgp.apps.annotate.choices import (
    CHANGE,
    KEEP,
    Choice,
    in_words,
    split_confidence,
)
from streamgp.apps.annotate.question_view import View
from streamgp.base import Label
from streamgp.interactive.messages import Challenge


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of the annotator.

    Parameters
    ----------
    label
        The label, if one is given; when renaming, the new one.
    old
        The label to rename.
    std
        Precision of a number, if given.
    confidence
        Confidence, from 0 to 1, if given.
    response_s
        How long the question had been shown when it was answered or declined, in seconds.

    """

    kind: Literal["label", "decline", "skip", "undo", "rename", "quit"]
    label: Label | None = None
    old: Label | None = None
    std: float | None = None
    confidence: float | None = None
    response_s: float | None = None


def said(command: Command) -> str:
    """Return an answer as text.

    Examples
    --------
    >>> said(Command(kind="label", label=21.5, std=0.5, confidence=0.75))
    '21.5 ± 0.5, sure'

    """
    if command.label is None:
        return "don't know"
    text = shown_label(command.label)
    if command.std is not None:
        text += f" \N{PLUS-MINUS SIGN} {shown_label(command.std)}"
    return text if command.confidence is None else f"{text}, {in_words(command.confidence)}"


COMMANDS = {
    "d": Command(kind="decline"),
    "s": Command(kind="skip"),
    "u": Command(kind="undo"),
    "q": Command(kind="quit"),
}
"""Commands by letter, besides the labels."""


class UnclearLineError(Exception):
    """An invalid line in a pipe, which no person can correct."""


def line_of(text: str, view: View) -> Command:
    """Parse a line about a question; raise ValueError if it is invalid."""
    if "\N{REPLACEMENT CHARACTER}" in text:  # once learned, what was meant is lost
        raise ValueError(f"{text!r} is not UTF-8")
    request = None if view.question is None else view.question.request

    def read_line(line: str) -> Command:
        if isinstance(request, Challenge):
            return challenge_of_line(line, request, view)
        return number_of_line(line) if view.of_numbers else command_of_line(line, view.choices)

    return _with_confidence(text, view, read_line)


def challenge_of_line(line: str, request: Challenge, view: View) -> Command:
    """Parse a line about a challenge: `k`, `c`, a command, `n LABEL`, or a label in full.

    Raises
    ------
    ValueError
        If it is invalid or ambiguous. A label's key is invalid here, as a typing error would be
        final.

    """
    word = line.strip()
    written = [choice for choice in view.choices if word == shown_label(choice.label)]
    if word in (KEEP, CHANGE):
        label = request.given if word == KEEP else request.suggested
        answer = Command(kind="label", label=label)
        if written and written[0].label != answer.label:
            raise ValueError(
                f"{word!r} is both a key and a label; write n {word}, or n {said(answer)}"
            )
        return answer
    choices = [replace(choice, character=None) for choice in view.choices]
    try:
        return number_of_line(word) if view.of_numbers else command_of_line(word, choices)
    except ValueError:
        if word not in [choice.character for choice in view.choices]:
            raise
        raise ValueError(
            f"{word!r} is the key of a label, which does not answer a challenge; write k (keep), c "
            "(change), or n LABEL"
        ) from None


def _with_confidence(text: str, view: View, read: Callable[[str], Command]) -> Command:
    """Parse typed text, with a confidence if it is asked for."""
    if not view.asks_confidence:
        return read(text)
    rest, confidence = split_confidence(text)
    if confidence is None:
        return read(text)
    written = text.strip()
    for label in (shown_label(choice.label) for choice in view.choices):
        if label in (written, written.removeprefix("n ").strip()):
            raise ValueError(
                f"{label!r} is itself a label; put it in double quotes (in a line, after n), or "
                "only the part before ?"
            )
    command = read(rest)
    if command.kind != "label":
        raise ValueError(f"{rest!r} does not clearly name a label")
    return replace(command, confidence=confidence)


def renaming(old: str, new: str, choices: Sequence[Choice]) -> Command:
    """Return the command that renames a label; raise ValueError if the label is not known."""
    known = [choice.label for choice in choices]
    for label in known:
        if old in (label, shown_label(label)):
            renamed = parse_label(new, known)
            if type(renamed) is type(label) and renamed == label:
                raise ValueError(f"{old!r:.60} already has that name")
            return Command(kind="rename", old=label, label=renamed)
    raise ValueError(f"{old!r:.60} is not a label here; write r OLD -> NEW")


def number_of_line(line: str) -> Command:
    """Parse a line if answers are numbers: a command, or a number.

    Raises
    ------
    ValueError
        If it is invalid; the text lists what is possible.

    Examples
    --------
    >>> number_of_line("21.5 +- 0.5").std
    0.5

    """
    word = line.strip()
    if word in COMMANDS:
        return COMMANDS[word]
    y, std = parse_number(word.removeprefix("n "))
    return Command(kind="label", label=y, std=std)


def command_of_line(line: str, choices: Sequence[Choice]) -> Command:
    """Parse a line: a key, `n LABEL`, or a known label in full.

    Raises
    ------
    ValueError
        If it is invalid or ambiguous; the text lists what is possible.

    Examples
    --------
    >>> hall = Choice(character="1", label="hall")
    >>> [command_of_line(line, [hall]).label for line in ("1", "hall", "n attic")]
    ['hall', 'hall', 'attic']
    >>> renaming = command_of_line("r hall -> corridor", [hall])
    >>> renaming.kind, renaming.old, renaming.label
    ('rename', 'hall', 'corridor')

    """
    word, _, rest = line.strip().partition(" ")
    if word == "r" and "->" in rest:
        old, new = rest.split("->", maxsplit=1)
        return renaming(old.strip(), new, choices)
    if word == "n":
        return Command(kind="label", label=parse_label(rest, [c.label for c in choices]))
    line = line.strip()
    if line in COMMANDS:
        return COMMANDS[line]
    meant = {shown_label(c.label): c.label for c in choices if line == c.character}
    meant |= {shown_label(c.label): c.label for c in choices if line == shown_label(c.label)}
    if len(meant) > 1:
        pressed, written = meant
        raise ValueError(
            f"{line!r} is the key of {pressed} and also a label; write n {pressed} or n {written}"
        )
    for label in meant.values():
        return Command(kind="label", label=label)
    if word == "r":
        raise ValueError("to rename a label, write r OLD -> NEW")
    raise ValueError(
        f"{line!r:.60} is neither a key nor a known label; write n LABEL for a new one"
    )
