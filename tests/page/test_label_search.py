"""Search among labels in Python, with which the page is compared, against slow computations."""

from __future__ import annotations

from functools import cache
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.label_search import OTHERS, distance, folded, near_duplicate, search

words = st.text("abcäé -B1", min_size=1, max_size=8)


@given(query=words, labels=st.lists(words, max_size=12, unique=True), data=st.data())
def test_found_is_whatever_has_the_letters_in_their_order_and_the_best_first(
    query: str, labels: list[str], data: Any
) -> None:
    recent = data.draw(st.lists(st.sampled_from(labels), unique=True)) if labels else []
    found = search(query, labels, recent=recent)
    wanted = folded(query)

    def quality(label: str) -> tuple[int, int, int]:
        text = folded(label)
        tier = (
            -1 if label == query.strip()
            else 0 if text == wanted
            else 1 if text.startswith(wanted)
            else 2 if any(text[i:].startswith(wanted) for i in range(1, len(text))
                          if text[i - 1] == " ")
            else 3 if wanted in text
            else 4
        )  # fmt: skip
        latest = recent.index(label) if label in recent else len(recent)
        return tier, latest, labels.index(label)

    assert found == sorted(
        (label for label in labels if _has_in_order(folded(label), wanted)), key=quality
    )


def _has_in_order(text: str, letters: str) -> bool:
    letters = letters.replace(" ", "")
    if not letters:
        return True
    at = text.find(letters[0])
    return at >= 0 and _has_in_order(text[at + 1 :], letters[1:])


@given(st.lists(st.text("abcdé", min_size=3, max_size=6), max_size=15, unique=True))
def test_a_label_whose_first_three_letters_are_its_own_is_found_by_them(labels: list[str]) -> None:
    starts = [folded(label)[:3] for label in labels]
    for label, start in zip(labels, starts, strict=True):
        if starts.count(start) == 1:
            assert search(start, labels)[0] == label


@given(st.text("abc", max_size=5), st.text("abc", max_size=5), st.integers(0, 5))
def test_distance_is_that_of_the_recursion(a: str, b: str, most: int) -> None:
    @cache
    def slips(i: int, j: int) -> int:
        if min(i, j) == 0:
            return max(i, j)
        found = min(
            slips(i - 1, j) + 1, slips(i, j - 1) + 1, slips(i - 1, j - 1) + (a[i - 1] != b[j - 1])
        )
        if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
            found = min(found, slips(i - 2, j - 2) + 1)
        return found

    n = slips(len(a), len(b))
    assert distance(a, b, most=most) == (n if n <= most else None)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("kitchen", None),
        ("Kitchen", "kitchen"),
        ("kitchn", "kitchen"),
        ("kitcehn", "kitchen"),
        ("kichten", None),  # two slips in seven letters
        ("livingrom", "living room"),
        ("living_room", "living room"),
        ("cafe", "Café"),
        ("room 3", None),
        ("room-2", "room 2"),
        ("\u063a\u0631\u0641\u0629 \u0662", None),
        ("\u063a\u0631\u0641\u0647 \u0661", "\u063a\u0631\u0641\u0629 \u0661"),
        ("\u5916\u79d1\u75c5\u68df", None),
        ("\u30d0\u30b9", None),
        ("hal", None),
        ("  ", None),
    ],
)
def test_near_duplicates_are_what_a_slip_of_a_finger_makes(text: str, near: str | None) -> None:
    labels = ["hall", "kitchen", "living room", "Café", "room 1", "room 2", 7, *OTHERS]
    assert near_duplicate(text, labels) == near


def test_the_nearest_label_is_named() -> None:
    for labels in permutations(["stairway", "stairways"]):
        assert near_duplicate("stairwayz", labels) in labels
        assert near_duplicate("stairwys", labels) == "stairways"
