"""Search and near-duplicates in the browser: the same as on the terminal, for all labels."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from connectors.annotation.label_index import near_duplicate, search
from tests.helpers.page_scene import ROOMS, PageScene

Look = Callable[..., Any]
LETTERS = "abcdeéÄ -_12"
LABELS = [*ROOMS, "Café Nord", "room 1", "room 2", "Straße", "naïve", "a", "walking", "walk"]


def drawn(rng: random.Random) -> str:
    """Return a label with slips of a finger, or letters at random."""
    if rng.random() < 0.2:
        return "".join(rng.choices(LETTERS, k=rng.randint(1, 8))).strip() or "x"
    letters = list(rng.choice(LABELS))
    for _ in range(rng.randint(0, 3)):
        at = rng.randrange(len(letters))
        letters[at : at + rng.randint(0, 2)] = rng.choices(LETTERS, k=rng.randint(0, 2))
        letters = letters or ["x"]
    return "".join(letters).strip() or "x"


def test_browser_finds_what_the_terminal_finds(scene: PageScene, look: Look) -> None:
    rng = random.Random(1)
    written = [drawn(rng) for _ in range(400)]
    scene.start()
    found = look().evaluate(
        """async ([written, labels]) => {
          const { nearDuplicate, search } = await import("/static/labels.js");
          return written.map((one) => [nearDuplicate(one, labels), search(one, labels)]);
        }""",
        [written, LABELS],
    )
    for text, (near, fitting) in zip(written, found, strict=True):
        if text not in LABELS:  # what is known is no duplicate, there as here
            assert near == near_duplicate(text, LABELS), text
        assert fitting == search(text, LABELS), text
