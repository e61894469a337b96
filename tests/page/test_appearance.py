"""Every card in three sizes, light and dark: nothing is cut off, all of it is accessible."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args
from zoneinfo import ZoneInfo

import pytest

import streamgp
from connectors.annotation import explain
from connectors.annotation.own_answers import CannotUndo
from connectors.annotation.replies import MAX_NEW_LABEL, BadReply
from streamgp.apps.page.access import ErrorCode
from streamgp.apps.page.preferences import BadPreferences
from streamgp.base import Neighbour
from streamgp.common.printable import printable
from tests.helpers.messages import answer_to
from tests.helpers.page_scene import ROOMS, PageScene, challenge, known, label_request
from tests.page.conftest import missing

try:
    from playwright.sync_api import expect
except ImportError:  # the fixture of the browser says so
    expect = missing

Look = Callable[..., Any]
# What only looks wrong is seen at night; whether cards fit into every size, by day as well.
by_night = pytest.mark.nightly
SIZES = {"small": (320, 568), "phone": (390, 844), "desk": (1280, 800)}
HOSTILE = (
    "<b>bold</b>",
    "<script>document.title = 'broken'</script>",
    '"><img src=x onerror="document.title = 1">',
    "\u202eright to left\u202c",
    "x" * 10_000,
    "{label}",
    "__proto__",
    "قهوة",
)
EXCERPT = {
    "acc x": [(n * 7 % 13) / 3.0 for n in range(120)],
    "lat": [52.5, 52.51],
    "lon": [13.4, 13.42],
}


def write_cards(scene: PageScene, kind: str) -> None:
    at = time.time() - 40.0
    if kind == "label":
        scene.write(label_request(0, at=at, excerpt=EXCERPT))
    elif kind == "challenge":
        near = [
            Neighbour(
                event_id=f"known{i}", x={"light": light, "noise": 0.000137}, y=y, distance=1.0
            )
            for i, (y, light) in enumerate((("study", -19_800.0), ("study", 8.1), ("hall", 1e6)))
        ]
        scene.write(challenge(0, at=at, neighbours=tuple(near)))
    elif kind == "many":
        labels = tuple(f"{chr(97 + n % 26)}{n} of many" for n in range(105))
        scene.write(*known(labels, at=at, key="many"), label_request(0, at=at, key="many"))
    elif kind == "hostile":
        scene.write(*known(HOSTILE, at=at, key=HOSTILE[0]), label_request(0, at=at, key=HOSTILE[0]))
    elif kind == "number":
        (scene.directory / "w.toml").write_text(
            (scene.directory / "w.toml").read_text() + 'target = "number"\n'
        )
        scene.write(label_request(0, at=at, key="number"))


def axe() -> str:
    """Return the source of axe-core."""
    found = find_spec("axe_playwright_python")
    if found is None or found.origin is None:
        missing("needs axe-core: pip install 'streamgp[test]'")
        raise AssertionError
    [script] = Path(found.origin).parent.rglob("axe.min.js")
    return script.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "kind",
    # A challenge shows nearly all of a label's card; hostile labels are text, says a test below.
    [
        *("challenge", "many", "number"),
        *(pytest.param(kind, marks=pytest.mark.nightly) for kind in ("label", "hostile", "rest")),
    ],
)
def test_card_fits_and_is_accessible(
    scene: PageScene, look: Look, pictures: Path | None, kind: str
) -> None:
    write_cards(scene, kind)
    scene.start()
    # The policy is left out for axe alone, which puts a script into the page.
    page = look(alone=True, bypass_csp=True, reduced_motion="reduce")
    expect(page.locator(".rest.done" if kind == "rest" else "#card")).to_be_visible()
    if kind == "number":
        page.locator("#value").press("Enter")
        expect(page.get_by_text("Enter a number")).to_be_visible()
    page.wait_for_timeout(500)  # the day comes a moment later
    page.evaluate(axe())
    for name, (width, height) in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            if pictures is not None:
                page.screenshot(path=pictures / f"{kind}-{name}-{scheme}.png", full_page=True)
        assert too_wide(page) == []
        assert too_small(page) == []
        assert cut_off(page) == []
        if name != "phone":
            assert issues(page) == []
    page.emulate_media(color_scheme="light")
    assert issues(page) == []
    assert covered(page) == []


def test_values_between_gaps_of_a_recording_are_dots(scene: PageScene, look: Look) -> None:
    gaps = [1.0, None, 3.0, None, 2.0, 1.0]
    scene.write(label_request(0, at=time.time() - 40.0, excerpt={"acc": gaps}))
    scene.start()
    line = look(alone=True).locator(".line-chart .line")
    expect(line).to_have_attribute("d", "M0.0 56.0h0M120.0 4.0h0M240.0 30.0h0L300.0 56.0")
    expect(line).to_have_css("stroke-linecap", "round")


@pytest.mark.parametrize(
    ("locale", "opens", "take_back", "taken"),
    [
        pytest.param(
            "en-GB",
            "Answers of others",
            "Take back hall of bob",
            "taken back",
            marks=pytest.mark.nightly,
        ),
        ("de-DE", "Antworten anderer", "hall von bob zurücknehmen", "zurückgenommen"),
    ],
)
def test_a_supervisor_takes_back_the_answer_of_another(
    scene: PageScene, look: Look, locale: str, opens: str, take_back: str, taken: str
) -> None:
    with (scene.directory / "w.toml").open("a") as config:
        config.write('[people]\nsupervisors = ["ann"]\n')
    asked = [label_request(n, at=time.time() - 60.0) for n in range(4)]
    given = [
        answer_to(one, y, time.time() - 30.0, annotator="bob", answer_id=f"b{n}")
        for n, (one, y) in enumerate(zip(asked, ("den", "hall", 90 * "w"), strict=False))
    ]
    scene.write(*asked)
    scene.say(*given)
    scene.start()
    page = look(alone=True, bypass_csp=True, reduced_motion="reduce", locale=locale)
    page.get_by_role("button", name=opens).click()
    dialog = page.get_by_role("dialog", name=opens)
    expect(dialog.get_by_role("listitem")).to_have_count(3)
    expect(dialog.locator(".what .quiet").first).to_contain_text("bob · ann · ")  # whose event
    page.evaluate(axe())
    for width, height in SIZES.values():
        page.set_viewport_size({"width": width, "height": height})
        assert (too_wide(page), too_small(page), issues(page)) == ([], [], [])
        for box in (dialog, page.locator("#counts")):
            assert box.evaluate("one => one.scrollWidth - one.clientWidth") == 0
        assert dialog.evaluate("one => getComputedStyle(one).overflowY") == "auto"
    dialog.get_by_role("button", name=take_back).press("Enter")
    expect(dialog.get_by_role("status").filter(has_text=taken)).to_be_visible()
    assert dialog.locator(".what").nth(1).evaluate("one => one === document.activeElement")
    page.keyboard.press("Escape")
    [last] = [one for one in scene.answers() if one.annotator == "ann"]
    assert (last.event_id, last.declined, last.supersedes) == ("e1", True, "b1")
    page.get_by_role("button", name=opens).click()
    expect(dialog.get_by_role("listitem")).to_have_count(2)


def issues(page: Any) -> list[tuple[str, str]]:
    """Return the issues that axe finds."""
    found = page.evaluate("axe.run()")["violations"]
    return [(one["id"], one["nodes"][0]["html"][:200]) for one in found]


def covered(page: Any) -> list[str]:
    """Return what the bar hides while it has the focus, on the way back from the end."""
    page.set_viewport_size({"width": 640, "height": 400})
    page.evaluate("[...document.querySelectorAll('button, summary')].at(-1).focus()")
    found: list[str] = []
    for _ in range(16):
        page.keyboard.press("Shift+Tab")
        found += page.evaluate(
            """() => {
              const { left, top, width, height } = document.activeElement.getBoundingClientRect();
              const above = document.elementFromPoint(left + width / 2, top + height / 2);
              return above?.closest(".bar") && !document.activeElement.closest(".bar")
                ? [document.activeElement.textContent] : [];
            }"""
        )
    return found


def too_wide(page: Any) -> list[str]:
    """Return what makes the page scroll sideways."""
    found: list[str] = page.evaluate(
        """() => {
          const width = document.documentElement.clientWidth;
          if (document.documentElement.scrollWidth <= width) return [];
          return [...document.querySelectorAll("body *")]
            .filter((one) => one.getBoundingClientRect().right > width + 1)
            .map((one) => `${one.tagName}.${one.getAttribute("class")}`);
        }"""
    )
    return found


def cut_off(page: Any) -> list[str]:
    """Return the numbers and texts of tables that are not shown to their ends."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("td, th")]
          .filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent)"""
    )
    return found


def too_small(page: Any) -> list[str]:
    """Return the buttons that are smaller than 44 pixels."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("button")]
          .map((one) => [one.textContent.slice(0, 40), one.getBoundingClientRect()])
          .filter(([, { width, height }]) => height > 0 && (width < 43.5 || height < 43.5))
          .map(([words, { width, height }]) => `${words} ${width} x ${height}`)"""
    )
    return found


def test_hostile_labels_are_text(scene: PageScene, look: Look) -> None:
    write_cards(scene, "hostile")
    at = time.time() - 30.0
    doubtful = HOSTILE[1]
    scene.write(
        challenge(5, at=at, key=HOSTILE[0], given=HOSTILE[2], suggested=doubtful, annotator="<i>")
    )
    written = "<b>Dear Ann</b>,\n\n\tplease " + 400 * "read "
    x = {"n": 1.0, "<i>name</i>": "<img src=x>", "mail": written, "wide": 18 * "W", "قهوة": 1.0}
    scene.write(label_request(6, at=at, key=HOSTILE[0], x=x, reason="<i>rule"))
    with (scene.directory / "w.toml").open("a") as file:  # a challenge of <i>, shown to others
        file.write("[people]\nowners = false\n")
    scene.start()
    page = look()
    expect(page.get_by_role("button", name=f"Keep {HOSTILE[2]}", exact=True)).to_be_visible()
    assert foreign_elements(page) == 0
    page.keyboard.press("k")
    text = page.locator(".features li").first.locator(".prose")
    for n in range(2):
        expect(page.locator("#card.kind-label")).to_be_visible()
        if n == 1:  # the card before it goes a moment later
            expect(text).to_have_text(written[:800] + "…", use_inner_text=True)
        for label in map(printable, HOSTILE[:4]):
            expect(page.get_by_role("button", name=label, exact=True).first).to_be_visible()
        assert foreign_elements(page) == 0
        assert "broken" not in page.title()
        if n == 1:
            expect(page.locator(".feature .name", has_text="قهوة")).to_have_css(
                "text-align", "left"
            )
            for value in page.locator(".feature .value").all():
                assert value.evaluate("shown => shown.scrollWidth <= shown.clientWidth")
            page.get_by_role(
                "button", name=f"Show the other {len(written) - 800:,} characters"
            ).click()
            expect(text).to_have_text(written, use_inner_text=True)
        page.get_by_role("button", name=HOSTILE[1], exact=True).first.click()
    expect(page.locator(".rest.done")).to_be_visible()
    expect(page.locator(".past-answer.unsent")).to_have_count(0)
    assert [one.y for one in scene.answers()] == [HOSTILE[2], HOSTILE[1], HOSTILE[1]]


def test_page_shows_what_cannot_be_seen_as_the_terminal_does(scene: PageScene, look: Look) -> None:
    """What is ordinary in some scripts and emoji is left alone; what imitates a word is not."""
    texts = [
        "kitchen", "kit\u200bchen", "\u202eneddih", "kit\u200dchen", "caf\u00e9", "cafe\u0301",
        "\u0301", " \u0301a", "room\u00a01", "room\ufe0f", "1\ufe0f", "1\ufe0f\u20e3", "a\u3164b",
        "a\u3000b", "\U0001f469\u3000b", "a\u2800", "a\U000e0061", "so\u00adfa",
        "a\u2028b", "\u0661\u0662", "\uff17", "a\tb\n", "\u5c45\u3000", "\u5c45\u3000\u3000\u9593",
        "e\u0301\u200cb", "\u0645\u200d\u0637", "\U0001f469\u200ca", "\U0001f3f4a\U000e0061",
        "\u2764\u200da", "\u3164\u064e", "\u0645\ufe0f\u064e", "\u303d\ufe0f", "\u303d\ufe0e",
        "\u7530\u4e2d\u3000\u82b1\u5b50", "\u30ab\u3099\u30b9\u5ba4", "na\u00efve \U0001d4cd",
        "\U0001f469\u200d\u2695\ufe0f", "\U0001f469\U0001f3fd\u200d\U0001f467", "\u2764\ufe0f",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "\u0645\u06cc\u200c\u0634\u0648\u062f", "\u0915\u094d\u200d\u0937",
        "\u05d7\u05d3\u05e8 12", "\u05e9\u05b8\u05c1", "\u0e01\u0e33\u0e31",
    ]  # fmt: skip
    scene.start()
    script = """async (texts) => texts.map((await import("/static/dom.js")).printable)"""
    assert look().evaluate(script, texts) == [printable(text) for text in texts]


def foreign_elements(page: Any) -> int:
    """Count what no text of ours makes: elements of labels, names and keys."""
    count: int = page.evaluate(
        "document.querySelectorAll('main b, main i, main script, main img').length"
    )
    return count


@by_night
def test_long_labels_can_be_read_on_a_phone(scene: PageScene, look: Look) -> None:
    """They may differ only at their ends, and a touch screen has no tooltips."""
    long = tuple(f"something that happens near the river, on the {side} bank" for side in "ab")
    at = time.time() - 40.0
    scene.write(*known(long, at=at, key="long"), label_request(0, at=at, key="long"))
    scene.write(challenge(1, at=at, key="long", given=long[0], suggested=long[1]))
    scene.start()
    page = look(viewport={"width": 320, "height": 568}, has_touch=True, is_mobile=True)
    cut = """() => [...document.querySelectorAll("#card .label")]
        .filter((one) => one.scrollHeight > one.clientHeight + 2).map((one) => one.textContent)"""
    for kind in ("challenge", "label"):
        expect(page.locator(f"#card.kind-{kind}")).to_be_visible()
        assert page.evaluate(cut) == []
        page.locator("#card .choice").first.tap()


@by_night
@pytest.mark.parametrize("scene", [("heating", "night setback", "Nachtabsenkung")], indirect=True)
def test_long_words_are_not_broken_on_a_phone(scene: PageScene, look: Look) -> None:
    write_cards(scene, "label")
    scene.start()
    page = look(viewport={"width": 360, "height": 640}, has_touch=True, is_mobile=True)
    label = page.locator("#card .choice .label", has_text="Nachtabsenkung")
    expect(label).to_be_visible()
    height = "one => one.clientHeight / parseFloat(getComputedStyle(one).fontSize)"
    assert label.evaluate(height) < 2.0  # one line


@by_night
def test_long_labels_of_averages_can_be_told_apart(scene: PageScene, look: Look) -> None:
    long = tuple(f"something that happens near the river, on the {side} bank" for side in "ab")
    at = time.time() - 40.0
    scene.write(*known(long, at=at, key="long"))
    scene.write(challenge(0, at=at, key="long", given=long[0], suggested=long[1]))
    scene.start()
    page = look(viewport={"width": 320, "height": 568}, has_touch=True, is_mobile=True)
    expect(page.locator(".legend .label")).to_have_count(2)
    cut = """() => [...document.querySelectorAll(".legend .label")]
        .filter((one) => one.scrollHeight > one.clientHeight + 2).map((one) => one.textContent)"""
    assert page.evaluate(cut) == []


def test_help_on_a_touch_screen_explains_buttons(scene: PageScene, look: Look) -> None:
    """A phone has no keys, and a list of nothing but them would be empty there."""
    write_cards(scene, "label")
    scene.start()
    page = look(viewport={"width": 360, "height": 640}, has_touch=True, is_mobile=True)
    page.get_by_role("button", name="Help").tap()
    words = ["Skip", "Undo", "Suggestion", "Flag", "Pause"]
    expect(page.locator(".keys dt").filter(visible=True)).to_have_text(
        [re.compile(f"{word}$") for word in words]
    )
    page = look()
    expect(page.locator("#card")).to_be_visible()
    page.keyboard.press("?")
    expect(page.locator(".keys kbd").filter(visible=True)).to_have_count(14)
    expect(page.locator(".by-touch").filter(visible=True)).to_have_count(0)


def test_day_says_when_it_lists_only_the_nearest_answers(scene: PageScene, look: Look) -> None:
    # Not an hour ago, when it may have been another day.
    noon = datetime.now().replace(hour=12).timestamp() - 86400.0
    scene.write(*known(ROOMS, at=noon, key="noon"), label_request(0, at=noon, key="noon"))
    scene.start()
    page = look()
    list_of_answers = page.locator(".diary summary")
    expect(list_of_answers).to_have_text("14 answers this day · the 8 nearest")
    list_of_answers.click()
    expect(page.locator(".diary li").filter(visible=True)).to_have_count(8)


@by_night
def test_long_key_leaves_room_for_the_question(scene: PageScene, look: Look) -> None:
    key = "k" * 500
    at = time.time() - 40.0
    scene.write(*known(("in", "out"), at=at, key=key), label_request(0, at=at, key=key))
    scene.start()
    page = look(viewport={"width": 320, "height": 568})
    expect(page.get_by_role("button", name="in", exact=True)).to_be_in_viewport(ratio=1.0)
    assert too_wide(page) == []


def test_language_is_that_of_the_browser(scene: PageScene, look: Look) -> None:
    write_cards(scene, "label")
    scene.start()
    page = look(locale="de-AT")
    expect(page.get_by_role("heading", name="Was ist es?")).to_be_visible()
    ago = """import("/static/texts.js").then(({ ago }) =>
        [1, 90, 9 * 365.25].map((days) => ago(0, 86400 * days)))"""
    assert page.evaluate(ago) == ["vor 24 Std.", "vor 90 Tagen", "vor 9 Jahren"]
    others = "import('/static/texts.js').then((texts) => texts.text('text.more', { n: 123456 }))"
    assert "123\u00a0456" in page.evaluate(others)
    page.get_by_role("button", name="Einstellungen").click()
    page.get_by_label("Sprache").select_option("en")
    page.get_by_role("button", name="Speichern").click()
    expect(page.get_by_role("heading", name="Which is it?")).to_be_visible()


@by_night
def test_times_of_a_day_do_not_run_into_each_other(scene: PageScene, look: Look) -> None:
    write_cards(scene, "label")
    scene.start()
    page = look(locale="en-US", timezone_id="UTC", viewport={"width": 320, "height": 568})
    expect(page.get_by_role("heading", name="Which is it?")).to_be_visible()
    overlaps = """import("/static/charts.js").then(({ dayBand }) => {
        const found = [];
        const place = document.querySelector("#card");
        for (const hours of [1, 6, 24]) for (let at = 0; at < 86400; at += 420) {
            const band = dayBand([], at, [], hours);
            place.append(band);
            const words = [...band.querySelectorAll("text")];
            const boxes = words.map((one) => one.getBoundingClientRect());
            boxes.sort((a, b) => a.left - b.left);
            if (boxes.some((box, i) => i && box.left < boxes[i - 1].right)) found.push([hours, at]);
            if (boxes.length < 2) found.push([hours, at, boxes.length]);
            band.remove();
        }
        return found;
    })"""
    assert page.evaluate(overlaps) == []


def test_day_has_its_own_hours_when_clocks_change(scene: PageScene, look: Look) -> None:
    """By the clock of Lord Howe that day has 24 hours and a half."""
    scene.start()
    drawn = """import("/static/charts.js").then(({ dayBand }) => [24, 6].map((hours) => {
        const band = dayBand([{ at: AT, label: 0 }], AT, [0], hours);
        const x = (one) => Number.parseFloat(one.getAttribute("x")) / 100;
        return [[...band.querySelectorAll("text")].map((one) => [one.textContent, x(one)]),
          x(band.querySelector(".now"))];
    }))"""
    for zone, day, length in (
        ("Australia/Lord_Howe", "2026-04-05", 24.5),
        ("Europe/Berlin", "2026-03-29", 23.0),
    ):
        page = look(timezone_id=zone)
        at = datetime.fromisoformat(f"{day} 12:00").replace(tzinfo=ZoneInfo(zone)).timestamp()
        (day_marks, day_now), (marks, now) = page.evaluate(drawn.replace("AT", str(at)))
        noon = 12.0 + length - 24.0
        assert day_marks == [
            [str(hour), pytest.approx((hour + length - 24.0 if hour else 0.0) / length)]
            for hour in (0, 6, 12, 18, 24)
        ]
        assert day_now == pytest.approx(noon / length)
        assert [hour for hour, _ in marks] == [str(hour) for hour in range(9, 16)]
        assert now == pytest.approx(0.5)


# --- The colours and texts, without a browser

STATIC = Path(streamgp.__file__).parent / "apps" / "page" / "static"
DEFINED = r"--([\w-]+): var\(--light, (#\w{6})\) var\(--dark, (#\w{6})\)"


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour, as WCAG 2 defines it."""
    shares = [int(colour[i : i + 2], 16) / 255.0 for i in (1, 3, 5)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return sum(w * s for w, s in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize(
    ("on", "least", "colours"),
    [
        ("ground", 4.5, "ink muted accent"),
        ("surface", 4.5, "ink muted accent warm bad-text"),
        ("raised", 4.5, "ink muted"),
        ("accent-soft", 4.5, "ink muted"),
        ("warm-soft", 4.5, "ink muted warm bad-text"),
        ("accent", 4.5, "on-accent"),
        ("accent-strong", 4.5, "on-accent"),
        ("ink", 4.5, "ground"),
        # Edges of fields, and the focus.
        ("surface", 3.0, "strong-line accent warm"),
        ("warm-soft", 3.0, "warm"),
    ],
)
def test_colours_differ_enough_to_be_read(on: str, least: float, colours: str) -> None:
    css = (STATIC / "style.css").read_text()
    known = {name: pair for name, *pair in re.findall(DEFINED, css)}
    for colour in colours.split():
        for one, other in zip(known[colour], known[on], strict=True):
            dark, light = sorted((luminance(one), luminance(other)))
            assert (light + 0.05) / (dark + 0.05) >= least, f"{colour} on {on}: {one}, {other}"


PLACE = re.compile(r"\{(\w+)\}")
LANGUAGES = sorted(path.stem for path in (STATIC / "texts").glob("*.json"))


def texts(language: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((STATIC / "texts" / f"{language}.json").read_text())
    return found


def places(value: Any) -> set[str]:
    patterns = value.values() if isinstance(value, dict) else [value]
    return {place for pattern in patterns for place in PLACE.findall(pattern)}


def test_every_language_with_texts_can_be_chosen() -> None:
    chosen = re.search(r"LANGUAGES = \{(.*?)\}", (STATIC / "texts.js").read_text())
    assert chosen is not None
    assert sorted(re.findall(r"(\w+): \"", chosen[1])) == LANGUAGES


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages_have_the_same_texts_with_the_same_places(language: str) -> None:
    english, other = texts("en"), texts(language)
    assert english.keys() == other.keys()
    assert [name for name in english if places(english[name]) != places(other[name])] == []


def test_every_text_that_is_used_is_there() -> None:
    english = texts("en")
    used = set()
    for script in STATIC.glob("*.js"):
        used.update(re.findall(r'\b(?:text|parts|hasText)\("([a-z_.]+)"', script.read_text()))
    assert len(used) > 80
    assert sorted(used - english.keys()) == []


ERRORS_OF_PROGRAMS = {
    # Not in the form that the page sends, or from another site.
    *("bad_body", "bad_http", "bad_json", "cut_off", "http", "malformed", "no_header", "no_json"),
    *("not_found", "wrong_host", "wrong_origin", "wrong_site"),
    # Shown with their reason, by the browser itself, or not at all.
    *("bad_preferences", "bad_reply", "cannot_undo"),
    *("bad_day", "bad_link", "too_many_streams"),
}


def test_every_refusal_that_people_can_meet_has_a_text() -> None:
    codes = {*get_args(ErrorCode), *get_args(BadReply), *get_args(BadPreferences)}
    codes |= {*get_args(CannotUndo), "unreachable", "other"}
    worded = {name.removeprefix("because.") for name in texts("en") if name.startswith("because.")}
    assert worded == codes - ERRORS_OF_PROGRAMS
    assert codes >= ERRORS_OF_PROGRAMS
    for language in LANGUAGES:
        assert f" {MAX_NEW_LABEL} " in texts(language)["because.long_label"]


def test_every_reason_for_a_question_has_a_text() -> None:
    assert {f"why.{code}" for code in explain.TEXTS} <= texts("en").keys()


def test_service_worker_keeps_every_file_of_the_shell() -> None:
    script = (STATIC / "sw.js").read_text()
    kept = re.search(r"\.\.\.\[(.*?)\]", script, re.DOTALL)
    assert kept is not None
    there = {path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*") if path.is_file()}
    left_out = {"index.html", "manifest.webmanifest", "sw.js"}  # under other names, and itself
    assert set(re.findall(r'"([^"]+)"', kept[1])) == there - left_out


# What is tempting, and newer than the oldest browsers in docs/page.md: one such expression
# costs them a rule of the style sheet, or the whole page.
TOO_NEW = (
    r"\(\?<[=!]",
    r"\.(toSpliced|toSorted|toReversed|with|isWellFormed|difference|intersection|union)\(",
    r"\b((Object|Map)\.groupBy|Promise\.(withResolvers|try)|AbortSignal\.any|Array\.fromAsync)\b",
    r"\b(URL\.(canParse|parse)|DurationFormat|Iterator|scheduler|popover|moveBefore)\b",
    r"\b(light-dark|color-mix|linear)\(|@(scope|starting-style|property)\b|^\s+&",
)


@pytest.mark.parametrize("path", sorted(STATIC.glob("*.[cj]s*")), ids=lambda path: path.name)
def test_older_browsers_know_all_that_is_used(path: Path) -> None:
    code = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    assert [found[0] for new in TOO_NEW for found in re.finditer(new, code, re.MULTILINE)] == []


def test_words_are_typed_in_their_own_direction() -> None:
    field = r'"input", \{\s*type: "(?:text|search)",(?! inputmode: "decimal")[^}]*'
    fields = [
        found for path in STATIC.glob("*.js") for found in re.findall(field, path.read_text())
    ]
    assert len(fields) == 5
    assert all('dir: "auto"' in found for found in fields)


def test_every_script_is_loaded_at_once() -> None:
    """Not each when another one imports it: on a slow network that is one more wait each."""
    markup = (STATIC / "index.html").read_text()
    scripts = {f"/static/{path.name}" for path in STATIC.glob("*.js")}
    preloaded = set(re.findall(r'rel="modulepreload" href="([^"]+)"', markup))
    assert preloaded == scripts - {"/static/app.js", "/static/sw.js"}


def test_nothing_comes_from_elsewhere_and_nothing_is_inline() -> None:
    """What the content security policy refuses."""
    markup = (STATIC / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=|https?://", markup)
    for script in STATIC.glob("*.js"):
        code = script.read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", code)
        assert set(re.findall(r"https?://[^\"']+", code)) <= {"http://www.w3.org/2000/svg"}
