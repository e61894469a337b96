"""How sure somebody is of an answer: a key, or what stands behind a label."""

from __future__ import annotations

import re

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
