"""Choices of labels: their keys, and typed labels."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from string import ascii_lowercase

from connectors.tables.cells import is_integer_text
from connectors.wire.inbound import MAX_NAME
from streamgp.base import Label
from streamgp.common.printable import printable

COMMAND_LETTERS = "dmnqsu"
"""Letters that mean something else than a label."""
GIVEN, SUGGESTED = "g", "p"
"""Letters for the two numbers of a challenge: the one given, and the one predicted."""
CHARACTERS = "123456789" + "".join(c for c in ascii_lowercase if c not in COMMAND_LETTERS)
_MAX_KEYS = 1000
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|true|false|nan|inf(inity)?", re.I)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A label that may be given.

    Parameters
    ----------
    character
        The key to press; None if the label has to be typed.
    label
        The label.
    is_here
        Whether it is known for the key of the question, not only elsewhere.

    """

    character: str | None
    label: Label
    is_here: bool = True


class Choices:
    """Gives every label a key to press, the same for as long as possible.

    A label has the same key in every conversation, unless two labels of one conversation would
    have to share it. One that is written as a key, as 2 is, has that key as long as it is free.

    Examples
    --------
    >>> choices = Choices()
    >>> [(c.character, c.label) for c in choices.offer("ann", ["den", "hall"], [])]
    [('1', 'den'), ('2', 'hall')]
    >>> [(c.character, c.label, c.is_here) for c in choices.offer("bob", ["hall"], ["den"])]
    [('2', 'hall', True), ('1', 'den', False)]

    """

    # _usual   the key that each label got first
    # _of_key  the labels of each conversation with their keys
    def __init__(self) -> None:
        self._usual: dict[tuple[str, Label], str] = {}
        self._of_key: dict[str | None, dict[tuple[str, Label], str]] = {}

    def offer(
        self, key: str | None, here: Sequence[Label], elsewhere: Sequence[Label]
    ) -> list[Choice]:
        """Return the labels to choose from.

        Parameters
        ----------
        key
            Whose event it is.
        here
            The labels known for that key.
        elsewhere
            Labels of others; they are offered as far as there are keys left.

        """
        given = self._of_key.setdefault(key, {})
        known = [_typed(label) for label in here]
        others = [typed for typed in map(_typed, elsewhere) if typed not in known]
        for typed in known:
            if typed not in given:
                self._give(given, typed, spare=[other for other in given if other not in known])
        for typed in others:
            if typed not in given:
                self._give(given, typed, spare=[])
        while len(self._of_key) > _MAX_KEYS:
            del self._of_key[next(iter(self._of_key))]
        offered = [Choice(character=given.get(typed), label=typed[1]) for typed in known]
        offered += [
            Choice(character=given[typed], label=typed[1], is_here=False)
            for typed in others
            if typed in given
        ]
        return sorted(offered, key=_rank)

    def _give(
        self,
        given: dict[tuple[str, Label], str],
        typed: tuple[str, Label],
        *,
        spare: list[tuple[str, Label]],
    ) -> None:
        taken = set(given.values())
        usual = self._usual.get(typed)
        free = [c for c in CHARACTERS if c not in taken]
        if usual is not None and usual not in taken:
            character = usual
        elif (written := shown_label(typed[1])) in free:
            character = written
        elif free:
            # One that stands for nothing yet, so that no two labels share theirs.
            used = set(self._usual.values())
            character = next((c for c in free if c not in used), free[0])
        elif spare:
            character = given.pop(spare[-1])
        else:
            return
        given[typed] = character
        self._usual.setdefault(typed, character)


def _typed(label: Label) -> tuple[str, Label]:
    return type(label).__name__, label


def _rank(choice: Choice) -> tuple[bool, int]:
    character = choice.character
    return not choice.is_here, len(CHARACTERS) if character is None else CHARACTERS.index(character)


def shown_label(label: Label) -> str:
    """Return a label as text; one that is text and looks like a number is in quotes.

    Examples
    --------
    >>> [shown_label(label) for label in ("hall", "7", 7, 7.0, True, " ")]
    ['hall', '"7"', '7', '7.0', 'true', '" "']

    """
    if isinstance(label, bool):
        return "true" if label else "false"
    if not isinstance(label, str):
        return repr(label)
    text = printable(label)
    if not text or text != text.strip() or text[0] == '"' or _NUMBER.fullmatch(text):
        return json.dumps(text, ensure_ascii=False)
    return text


def parse_label(text: str, known: Sequence[Label]) -> Label:
    """Return the label that somebody typed: a known one, or a new one of the same kind.

    Parameters
    ----------
    text
        What was typed. In quotes it is text in any case.
    known
        The labels known so far. Where all of them are numbers, a new one is a number.

    Raises
    ------
    ValueError
        If it cannot be a label.

    Examples
    --------
    >>> parse_label("7", []), parse_label("7", ["1", "2"]), parse_label('"7"', [1, 2])
    (7, '7', '7')
    >>> parse_label("Hall", ["hall"])
    'hall'

    """
    text = text.strip()
    if not text:
        raise ValueError("a label has at least one character")
    if len(text) > MAX_NAME or _CONTROL.search(text):
        raise ValueError(f"a label has at most {MAX_NAME} characters, all of them printable")
    for label in known:
        if shown_label(label) == text:
            return label
    if text.startswith('"'):
        return _quoted(text)
    for label in known:
        if isinstance(label, str) and label.casefold() == text.casefold():
            return label
    kinds = {type(label) for label in known}
    if kinds <= {int} and is_integer_text(text):
        return int(text)
    if kinds == {float} and (number := _float(text)) is not None:
        return number
    if not kinds or str in kinds:
        return text
    raise ValueError(
        f"the labels here are {_names(known)}; put {text!r} in double quotes if you mean a text"
    )


# How exact a number is stands behind one of these.
_PLUS_MINUS = re.compile(r"\s*(?:±|\+/?-)\s*")


def parse_number(text: str) -> tuple[float, float | None]:
    """Return the number that somebody typed, and how exact it is, None if that was not said.

    Raises
    ------
    ValueError
        If it is none.

    Examples
    --------
    >>> parse_number("21.5"), parse_number("21.5 ± 0.5"), parse_number("-3 +- 1")
    ((21.5, None), (21.5, 0.5), (-3.0, 1.0))

    """
    number, *exact = _PLUS_MINUS.split(text.strip(), maxsplit=1)
    y, std = _float(number), _float(exact[0]) if exact else None
    if y is None or (exact and (std is None or std <= 0.0)):
        raise ValueError(
            f"{text.strip()!r:.60} is no number; write one as 21.5, or 21.5 +- 0.5 to say how "
            "exact it is (its standard deviation)"
        )
    return y, std


def _quoted(text: str) -> str:
    try:
        label = json.loads(text)
    except ValueError:
        label = None
    if not isinstance(label, str) or not label.strip() or _CONTROL.search(label):
        raise ValueError(f"{text} is no text in double quotes")
    return label


def _float(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) and "_" not in text else None


def _names(known: Sequence[Label]) -> str:
    shown = ", ".join(shown_label(label) for label in known[:3])
    return shown if len(known) <= 3 else f"{shown}, ..."


# --- How sure somebody is of an answer: a key, or what stands behind a label.


WORDS = {"1": "guessed", "2": "doubtful", "3": "rather sure", "4": "sure", "5": "certain"}
"""What the keys mean."""
CONFIDENCES = {key: i / (len(WORDS) - 1) for i, key in enumerate(WORDS)}
"""The number between 0 and 1 that each key stands for."""
IN_A_LINE = "how sure: ?1 (guessed) to ?5 (certain) behind the answer, or nothing"
"""How it is said where an answer is a line."""
_BEHIND = re.compile(r"(.*\S)\s+\?(\d+)")


def split_confidence(text: str) -> tuple[str, float | None]:
    """Return what was typed without what stands behind it, and how sure that says to be.

    Raises
    ------
    ValueError
        If there is no such number.

    Examples
    --------
    >>> split_confidence("kitchen ?4"), split_confidence("kitchen?"), split_confidence("1 ?1")
    (('kitchen', 0.75), ('kitchen?', None), ('1', 0.0))

    """
    found = _BEHIND.fullmatch(text.strip())
    if found is None:
        return text, None
    rest, key = found.groups()
    if key not in CONFIDENCES:
        raise ValueError(f"?{key:.10} is none of ?1 (guessed) to ?5 (certain)")
    return rest, CONFIDENCES[key]


def in_words(confidence: float) -> str:
    """Say how sure somebody is.

    Examples
    --------
    >>> in_words(0.75)
    'sure'

    """
    key = next(key for key, value in CONFIDENCES.items() if value == confidence)
    return WORDS[key]
