"""Choices of labels with their keys, and the confidence of an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase

from connectors.annotation.label_text import shown_label
from connectors.annotation.timeline import Typed, typed_label
from streamgp.base import Label

COMMAND_LETTERS = "dmnqrsux"
"""Letters of commands, which are not available for labels."""
KEEP, CHANGE = "k", "c"
"""Letters for the answers to a challenge: the label given, the suggested one."""
CHARACTERS = "123456789" + "".join(c for c in ascii_lowercase if c not in COMMAND_LETTERS)
_MAX_KEYS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A label on offer.

    Parameters
    ----------
    character
        The key that stands for it; None if the label must be written in full.
    is_here
        Whether it is known for the question's key, not only for others.

    """

    character: str | None
    label: Label
    is_here: bool = True


class Choices:
    """Assigns every label a key, and keeps it for as long as possible.

    A label has the same key in every conversation, unless two labels of one conversation would
    share it. A label that is written like a key, such as 2, gets that key if it is free.

    Examples
    --------
    >>> choices = Choices()
    >>> [(c.character, c.label) for c in choices.offer("ann", ["den", "hall"], [])]
    [('1', 'den'), ('2', 'hall')]
    >>> [(c.character, c.label, c.is_here) for c in choices.offer("bob", ["hall"], ["den"])]
    [('2', 'hall', True), ('1', 'den', False)]

    """

    # _usual   the first key of each label
    # _of_key  the labels of each conversation with their keys
    def __init__(self) -> None:
        self._usual: dict[Typed, str] = {}
        self._of_key: dict[str | None, dict[Typed, str]] = {}

    def offer(
        self, key: str | None, here: Sequence[Label], elsewhere: Sequence[Label]
    ) -> list[Choice]:
        """Return the labels to choose from.

        Parameters
        ----------
        here
            The labels known for that key.
        elsewhere
            Labels of other keys; they are offered while there are keys left.

        """
        given = self._of_key.setdefault(key, {})
        known = [typed_label(label) for label in here]
        others = [typed for typed in map(typed_label, elsewhere) if typed not in known]
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
        given: dict[Typed, str],
        typed: Typed,
        *,
        spare: list[Typed],
    ) -> None:
        taken = set(given.values())
        usual = self._usual.get(typed)
        free = [c for c in CHARACTERS if c not in taken]
        if usual is not None and usual not in taken:
            character = usual
        elif (written := shown_label(typed[1])) in free:
            character = written
        elif free:
            # Prefer an unused one, so that no two labels share a key.
            used = set(self._usual.values())
            character = next((c for c in free if c not in used), free[0])
        elif spare:
            character = given.pop(spare[-1])
        else:
            return
        given[typed] = character
        self._usual.setdefault(typed, character)


def _rank(choice: Choice) -> tuple[bool, int]:
    character = choice.character
    return not choice.is_here, len(CHARACTERS) if character is None else CHARACTERS.index(character)


# --- Confidence of an answer: a suffix of a label.


WORDS = {"1": "guessed", "2": "doubtful", "3": "rather sure", "4": "sure", "5": "certain"}
"""Meanings of the keys."""
CONFIDENCES = {key: i / (len(WORDS) - 1) for i, key in enumerate(WORDS)}
"""The confidence, between 0 and 1, of each key."""
IN_A_LINE = "how sure: ?1 (guessed) to ?5 (certain) after the answer, or nothing"
"""Instruction for answers."""
_BEHIND = re.compile(r"(.*\S)\s+\?(\d+)")


def split_confidence(text: str) -> tuple[str, float | None]:
    """Split typed text into the answer and its confidence.

    Raises
    ------
    ValueError
        If there is no such confidence.

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
        raise ValueError(f"?{key:.10} is not allowed, expected ?1 (guessed) to ?5 (certain)")
    return rest, CONFIDENCES[key]


def in_words(confidence: float) -> str:
    """Return a confidence as a word.

    Examples
    --------
    >>> in_words(0.75)
    'sure'

    """
    key = next(key for key, value in CONFIDENCES.items() if value == confidence)
    return WORDS[key]
