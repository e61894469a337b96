"""Search and near-duplicates in the browser, against the same in Python."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.helpers.label_search import OTHERS, near_duplicate, search
from tests.helpers.page_scene import ROOMS, PageScene, known, label_request
from tests.helpers.topics import wait_until
from tests.page.conftest import missing

try:
    from playwright.sync_api import expect
except ImportError:  # the fixture of the browser says so
    expect = missing

Look = Callable[..., Any]
LETTERS = "abcdeéÄ -_12\u0661\u0662\u5916\u30d1\u3099\u064e\u0e35"
LABELS = [
    *ROOMS,
    "Café Nord",
    "room 1",
    "room 2",
    "Straße",
    "naïve",
    "a",
    "walking",
    "walk",
    *OTHERS,
    "Cafe Nord",
    -2,
    2,
]


def drawn(rng: random.Random) -> str:
    """Return a label with slips of a finger, or letters at random."""
    if rng.random() < 0.2:
        return "".join(rng.choices(LETTERS, k=rng.randint(1, 8))).strip() or "x"
    letters = list(str(rng.choice(LABELS)))
    for _ in range(rng.randint(0, 3)):
        at = rng.randrange(len(letters))
        letters[at : at + rng.randint(0, 2)] = rng.choices(LETTERS, k=rng.randint(0, 2))
        letters = letters or ["x"]
    return "".join(letters).strip() or "x"


def searching(scene: PageScene, look: Look, typed: str) -> Any:
    """Ask a question, open the page, and type into its search."""
    scene.write(label_request(0, at=time.time() - 60.0))
    scene.start()
    page = look()
    expect(page.locator("#card")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type(typed)
    return page


def test_labels_of_other_keys_are_offered_and_found(scene: PageScene, look: Look) -> None:
    """A person who answers about several keys types no label twice, nor misspells it."""
    at = time.time()
    scene.write(*known(("garage", "kitchen"), at=at, key="bob"))
    scene.write(*(label_request(n, at=at - 60.0, key="bob") for n in range(3)))
    scene.start()
    page = look()
    card = page.locator("#card")
    here = card.locator(".grid:not(.elsewhere) .choice .label")
    elsewhere = card.locator(".elsewhere .choice .label")
    expect(here).to_have_text(["garage", "kitchen"])
    expect(elsewhere).to_have_text([room for room in ROOMS if room != "kitchen"])
    # Typed with a slip, it is recognised.
    page.keyboard.press("n")
    page.keyboard.type("bathrom")
    page.keyboard.press("Enter")
    expect(page.locator(".did-you-mean .choice .label")).to_have_text("bathroom")
    page.keyboard.press("Escape")
    elsewhere.get_by_text("study", exact=True).click()
    # From now on it is one of this key.
    expect(here).to_have_text(["garage", "kitchen", "study"])
    expect(elsewhere.get_by_text("study", exact=True)).to_have_count(0)
    expect(page.locator(".past-answer.unsent")).to_have_count(0)
    assert [(one.key, one.y) for one in scene.answers()] == [("bob", "study")]


@pytest.mark.parametrize("scene", [tuple(f"place {n}" for n in range(20))], indirect=True)
def test_no_key_answers_with_a_label_that_is_not_shown(scene: PageScene, look: Look) -> None:
    at = time.time()
    scene.write(*known(("garage", "kitchen"), at=at, key="bob"))
    scene.write(label_request(0, at=at - 60.0, key="bob"))
    scene.start()
    page = look()
    expect(page.locator("#card .elsewhere .choice")).to_have_count(12)
    shown = page.locator("#card .choice kbd").all_text_contents()
    assert len(shown) == 14
    for key in "123456789abegijlmoqrtvwxyz":
        if key not in shown:
            page.keyboard.press(key)
    page.keyboard.press("1")
    expect(page.locator(".past-answer:not(.unsent)")).to_have_count(1)
    assert [one.y for one in scene.answers()] == ["garage"]


@pytest.mark.parametrize("scene", [tuple(f"place {n}" for n in range(20))], indirect=True)
def test_no_key_answers_with_a_label_that_a_search_hides(scene: PageScene, look: Look) -> None:
    page = searching(scene, look, "19")
    page.keyboard.press("Tab")
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    expect(page.locator(".past-answer:not(.unsent)")).to_have_count(1)
    assert [one.y for one in scene.answers()] == ["place 19"]


@pytest.mark.parametrize("scene", [()], indirect=True)
def test_a_new_label_is_offered_for_the_next_card_of_another_key(
    scene: PageScene, look: Look
) -> None:
    """That card was loaded before the label existed."""
    at = time.time() - 60.0
    scene.write(*(label_request(n, at=at, key=key) for n, key in enumerate(("bob", "eve"))))
    scene.start()
    page = look()
    page.get_by_role("button", name="New label").click()
    page.keyboard.type("garage")
    page.keyboard.press("Enter")
    expect(page.locator("#card .elsewhere .choice .label")).to_have_text("garage")
    expect(page.locator("#card")).not_to_contain_text("No label matches")
    page.keyboard.press("1")
    expect(page.locator(".past-answer")).to_have_count(2)


@pytest.mark.parametrize("scene", [()], indirect=True)
def test_a_label_that_another_key_gets_is_offered_on_the_card_that_is_shown(
    scene: PageScene, look: Look
) -> None:
    at = time.time()
    scene.write(label_request(0, at=at - 60.0, key="eve"))
    scene.start()
    page = look()
    expect(page.locator("#card")).to_contain_text("No label is known yet")
    scene.write(*known(("garage",), at=at, key="bob"), label_request(1, at=at, key="bob"))
    offered = page.locator("#card .elsewhere .choice .label")

    def is_offered() -> bool:
        page.evaluate("dispatchEvent(new Event('online'))")  # the page asks again, as every 25 s
        page.wait_for_timeout(100)
        return bool(offered.count())

    wait_until(is_offered)
    expect(offered).to_have_text("garage")
    expect(page.locator("#card .whose")).to_have_text("eve")


@pytest.mark.parametrize(
    ("scene", "begins"),
    [(tuple(f"{n} of many" for n in range(20)), True), (ROOMS, False)],
    indirect=["scene"],
)
def test_an_answer_is_changed_by_typing_where_labels_are_many(
    scene: PageScene, look: Look, begins: bool
) -> None:
    """With few, a field in focus would hide them behind the keyboard of a phone."""
    at = time.time() - 60.0
    scene.write(*(label_request(n, at=at) for n in range(2)))
    scene.start()
    page = look()
    page.locator("#card .choice").first.click()
    page.locator(".past-answer:not(.unsent)").click()
    field = page.locator("#other-label")
    expect(field).to_be_visible()
    assert field.evaluate("field => field === document.activeElement") is begins


def test_browser_finds_what_the_same_search_in_python_finds(scene: PageScene, look: Look) -> None:
    rng = random.Random(1)
    written = [drawn(rng) for _ in range(400)]
    scene.start()
    page = look()
    found = page.evaluate(
        """async ([written, labels]) => {
          const { nearDuplicate, search } = await import("/static/labels.js");
          return written.map((one) => [nearDuplicate(one, labels), search(one, labels)]);
        }""",
        [written, LABELS],
    )
    assert {"Cafe Nord", "-2", "2"} <= set(written)
    for text, (near, fitting) in zip(written, found, strict=True):
        if text not in map(str, LABELS):  # what is known is no duplicate, there as here
            assert near == near_duplicate(text, LABELS), text
        assert fitting == search(text, LABELS), text
    # The page groups digits: 12,345.
    grouped = "import('/static/labels.js').then(({ search }) => search('12345', [112345, 12345]))"
    assert page.evaluate(grouped) == [12345, 112345]
    # A label that was just typed stands where the server will have it.
    inserted = "import('/static/labels.js').then((to) => to.withLabel(['No 2', 'No 10'], 'no 3'))"
    assert page.evaluate(inserted) == ["No 2", "no 3", "No 10"]


def test_latest_labels_of_the_key_that_was_answered_last_are_recent(
    scene: PageScene, look: Look
) -> None:
    scene.start()
    recent = look().evaluate(
        """async () => {
          const { noteRecent, recentLabels } = await import("/static/labels.js");
          for (let key = 100; key > 0; key -= 1) noteRecent(String(key), "den");
          return ["1", "50", "100"].map((key) => recentLabels(key, ["den", "hall"]));
        }"""
    )
    assert recent == [["den"], ["den"], []]


@pytest.mark.parametrize("scene", [tuple(f"No {n}" for n in range(1, 13))], indirect=True)
def test_search_that_is_given_up_leaves_the_focus_on_the_card(scene: PageScene, look: Look) -> None:
    page = searching(scene, look, "No 1")
    page.keyboard.press("Escape")
    expect(page.locator("#search")).to_have_value("")
    expect(page.locator("#question")).to_be_focused()
