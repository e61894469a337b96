"""Annotators in their browsers: each on every broker, several together, and what each wants."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from connectors.embedded.topics import EmbeddedTopics
from connectors.memory import MemoryTopics
from connectors.topics import Topics
from streamgp.apps.page.invites import Invites
from streamgp.apps.page.server import PageSettings
from tests.helpers.kafka_cases import opened as opened_kafka
from tests.helpers.page_scene import ROOMS, known, label_request
from tests.helpers.page_server import Served, answers, write
from tests.helpers.topics import wait_until
from tests.page.conftest import CARD, missing, press

try:
    from playwright.sync_api import expect
except ImportError:  # the fixture of the browser says so
    expect = missing

Open = Callable[..., Any]
BROKERS = ("embedded", "kafka")


def asked(n: int) -> MemoryTopics:
    """Return topics in which seven rooms are known, and n questions are open."""
    topics = MemoryTopics()
    topics.create()
    at = time.time()
    write(topics, *known(ROOMS, at=at), *(label_request(i, at=at - 60.0) for i in range(n)))
    return topics


def card_of(page: Any) -> str:
    """Return the event of the card in front."""
    expect(page.locator(CARD)).to_be_visible()
    return str(page.locator(CARD).get_attribute("data-card")).split("/")[1]


@pytest.fixture(
    params=["memory", *(pytest.param(name, marks=pytest.mark.nightly) for name in BROKERS)]
)
def topics(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Topics]:
    if request.param == "kafka":
        broker, prefix = map(request.getfixturevalue, ("kafka", "kafka_prefix"))
        with opened_kafka(broker, prefix, replication=1) as made:
            yield made
        return
    plain: Topics = (
        MemoryTopics() if request.param == "memory" else EmbeddedTopics(tmp_path / "topics")
    )
    plain.create()
    with closing(plain):
        yield plain


def test_questions_are_answered_by_keys_each_once(
    topics: Topics, open_page: Open, request: pytest.FixtureRequest
) -> None:
    """Eight of them, at night two hundred."""
    n = 200 if request.node.get_closest_marker("nightly") else 8
    at = time.time()
    write(topics, *known(ROOMS, at=at), *(label_request(i, at=at - 60.0) for i in range(n)))
    rng = random.Random(1)
    wanted = {}
    with Served(topics) as served:
        page = open_page(f"http://127.0.0.1:{served.port}")
        for _ in range(n):
            key = rng.randint(1, len(ROOMS))
            wanted[card_of(page)] = ROOMS[key - 1]
            press(page, str(key))
        expect(page.locator(".rest.done")).to_be_visible()
        expect(page.locator(".past-answer.unsent")).to_have_count(0)
        found = answers(topics)
    assert len(found) == n
    assert {one.event_id: one.y for one in found} == wanted
    assert {one.annotator for one in found} == {"ann"}
    assert all(0.0 < one.privileged["response_s"] < 20.0 for one in found)


def entered(page: Any) -> Any:
    """Press the button of the page that a link opens."""
    page.get_by_role("button").click()
    return page


def test_two_people_see_each_other_and_never_the_same_card(open_page: Open, tmp_path: Path) -> None:
    topics = asked(8)
    invites = Invites(tmp_path / "invites.json")
    with Served(topics, invites=invites) as served:
        pages = {
            name: entered(open_page(f"http://127.0.0.1:{served.port}/join/{invites.invite(name)}"))
            for name in ("ann", "ben")
        }
        expect(pages["ann"].locator("#others")).to_contain_text("ben")
        pages["ben"].set_viewport_size({"width": 320, "height": 568})
        expect(pages["ben"].locator("#others")).to_be_visible()
        expect(pages["ben"].locator("#others")).to_contain_text("ann")
        for _ in range(3):
            # The next card is shown ahead, until the server has said that another annotator has it.
            wait_until(lambda: card_of(pages["ann"]) != card_of(pages["ben"]))
            for page in pages.values():
                press(page, "1")
                # Only then the card in front is sure to be this person's.
                expect(page.locator(".past-answer.unsent")).to_have_count(0)
        invites.revoke("ben")
        pages["ben"].reload()
        expect(pages["ben"].get_by_role("heading", name="You need an invite")).to_be_visible()
        wait_until(lambda: len(answers(topics)) == 6)
    found = answers(topics)
    assert len({one.event_id for one in found}) == 6
    assert sorted(str(one.annotator) for one in found) == 3 * ["ann"] + 3 * ["ben"]


def test_preferences_name_the_annotator_whose_link_was_opened_last(
    open_page: Open, tmp_path: Path
) -> None:
    invites, settings = Invites(tmp_path / "invites.json"), PageSettings(guidelines=999 * "Exact. ")
    # Two questions: ann may have been given one, which is hers for a minute.
    with Served(asked(2), invites=invites, settings=settings) as served:
        url = f"http://127.0.0.1:{served.port}"
        page = open_page(f"{url}/join/{invites.invite('ann')}")
        for name in ("ann", "<b>ben"):
            entered(page)
            expect(page.get_by_role("dialog").locator(".prose")).to_be_focused()
            assert page.get_by_role("dialog").evaluate("shown => shown.scrollTop") == 0
            page.get_by_role("button", name="Go on").click()  # each is told
            page.get_by_role("button", name="Preferences").click()
            expect(page.get_by_role("dialog")).to_contain_text(f"You answer as {name}.")
            page.goto(f"{url}/join/{invites.invite('<b>ben')}")
        expect(page.locator(CARD)).to_be_visible()  # no question: it is ben's browser already


@pytest.mark.parametrize("then", ["revoked", "another annotator"])
def test_browser_stores_nothing_about_who_does_not_answer_in_it_any_more(
    open_page: Open, tmp_path: Path, then: str
) -> None:
    topics, invites = asked(2), Invites(tmp_path / "invites.json")
    with Served(topics, invites=invites) as served:
        url = f"http://127.0.0.1:{served.port}"
        page = entered(open_page(f"{url}/join/{invites.invite('ann-marie')}"))
        card_of(page)
        press(page, "1")
        wait_until(lambda: len(answers(topics)) == 1)
        expect(page.locator(".past-answer.unsent")).to_have_count(0)
        stored = "JSON.stringify(Object.entries(localStorage))"
        assert "ann-marie" in page.evaluate(stored)
        assert ROOMS[0] in page.evaluate(stored)
        if then == "revoked":
            invites.revoke("ann-marie")
            page.reload()
            expect(page.get_by_role("heading", name="You need an invite")).to_be_visible()
        else:
            page.goto(f"{url}/join/{invites.invite('ben', key='other')}")
            entered(page)
            expect(page.locator("#main .rest")).to_be_visible()
        left = page.evaluate(stored)
    assert not [word for word in ("ann-marie", ROOMS[0]) if word in left]


def test_a_link_that_was_used_goes_on_in_the_browser_that_used_it(
    open_page: Open, tmp_path: Path
) -> None:
    invites = Invites(tmp_path / "invites.json")
    with Served(asked(1), invites=invites) as served:
        link = f"http://127.0.0.1:{served.port}/join/{invites.invite('ann')}"
        page = open_page(link, reduced_motion="reduce")
        # The second click of a double click was meant for the page before.
        renewed = """old => {
            const fresh = old.cloneNode(true);
            old.replaceWith(fresh);
            return getComputedStyle(fresh).pointerEvents;
        }"""
        assert page.get_by_role("button").evaluate(renewed) == "none"
        entered(page)
        expect(page.locator(CARD)).to_be_visible()
        assert page.url == f"http://127.0.0.1:{served.port}/"
        page.goto(link)
        expect(page.locator(CARD)).to_be_visible()
        other = open_page(link)
        expect(other.get_by_role("heading", name="You need an invite")).to_be_visible()


def test_how_sure_an_answer_is_can_be_said_or_left_out(open_page: Open) -> None:
    topics = asked(3)
    with Served(topics, settings=PageSettings(asks_confidence=True)) as served:
        page = open_page(f"http://127.0.0.1:{served.port}")
        first = card_of(page)
        page.keyboard.press("4")
        expect(page.get_by_role("button", name="Certain")).to_be_visible()
        # A screen reader says what has the focus.
        expect(page.get_by_text("How sure are you of hall?")).to_be_focused()
        page.keyboard.press("9")  # means nothing here
        page.keyboard.press("Escape")
        expect(page.get_by_role("button", name="Certain")).to_have_count(0)
        assert card_of(page) == first
        for label, sure in (("4", "5"), ("2", "1"), ("1", "Enter")):
            page.keyboard.press(label)
            expect(page.get_by_role("button", name="Certain")).to_be_visible()
            press(page, sure)
        wait_until(lambda: len(answers(topics)) == 3)
    assert [(one.y, (one.privileged or {}).get("confidence")) for one in answers(topics)] == [
        ("hall", 1.0),
        ("bedroom", 0.0),
        ("bathroom", None),
    ]


def test_a_label_that_is_renamed_is_a_choice_no_more(open_page: Open) -> None:
    topics = asked(3)
    with Served(topics) as served:
        page = open_page(f"http://127.0.0.1:{served.port}")
        card_of(page)
        page.keyboard.press("n")
        page.get_by_label("Name of the new label").fill("pantri")
        page.keyboard.press("Enter")
        choice = page.locator(".choice", has_text="pantri")
        expect(choice).to_have_count(1)
        for old, new in (("pantri", "pantry"), ("pantry", "kitchen"), ("hall", "corridor")):
            page.get_by_role("button", name="Preferences").click()
            page.get_by_role("button", name="Rename a label").click()
            dialog = page.get_by_role("dialog")
            dialog.get_by_label("Label").select_option(label=old)
            dialog.get_by_label("New name").fill(new)
            dialog.get_by_role("button", name="Rename", exact=True).click()
            if new == "pantry":  # much like the old name, but that one goes away
                expect(page.locator(".choice", has_text="pantry")).to_have_count(1)
        expect(page.locator(".choice", has_text="pantr")).to_have_count(0)
        expect(page.get_by_text("Nothing was renamed: you have no example")).to_be_visible()
        wait_until(lambda: len(answers(topics)) == 3)
    assert [one.y for one in answers(topics)] == ["pantri", "pantry", "kitchen"]


def test_a_page_in_the_background_tells_of_a_new_question(open_page: Open) -> None:
    topics = asked(0)
    with Served(topics) as served:
        page = open_page(f"http://127.0.0.1:{served.port}", permissions=["notifications"])
        expect(page.locator(".rest.done")).to_be_visible()
        page.evaluate("navigator.serviceWorker.ready.then(() => true)")
        page.get_by_role("button", name="Preferences").click()
        page.get_by_label("Tell me when a question comes").check()
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        page.evaluate("Object.defineProperty(document, 'hidden', { get: () => true })")
        # Chromium drops a notification of which a list is asked for before it is on the screen.
        page.evaluate("""() => {
            const { prototype } = ServiceWorkerRegistration;
            const show = prototype.showNotification;
            window.shown = new Promise((resolve) => {
                setTimeout(resolve, 60_000, false);
                prototype.showNotification = async function (...words) {
                    await show.apply(this, words);
                    resolve(true);
                };
            });
        }""")
        write(topics, label_request(1, at=time.time()))
        expect(page.locator(CARD)).to_be_visible()
        assert page.evaluate("window.shown")
        all_of_them = """navigator.serviceWorker.ready.then((worker) => worker.getNotifications())
            .then((all) => all.map((one) => one.body))"""
        assert page.evaluate(all_of_them) == ["A new question is waiting."]


@pytest.mark.nightly
def test_bar_counts_the_people_whom_it_does_not_name(open_page: Open, tmp_path: Path) -> None:
    invites = Invites(tmp_path / "invites.json")
    with Served(asked(1), invites=invites) as served:
        for name in ("ben", "cleo", "dan", "eve", "fay"):
            browser = served.browser()
            browser.join(invites.invite(name))
            browser.get("/api/next")
        page = entered(open_page(f"http://127.0.0.1:{served.port}/join/{invites.invite('ann')}"))
        expect(page.locator("#others")).to_have_text("Also here: ben, cleo, dan +2")
        expect(page.locator("#others")).to_have_attribute("title", "ben, cleo, dan, eve, fay")


@pytest.mark.nightly
def test_refusals_outside_of_questions_are_in_the_language_of_the_page(
    open_page: Open, tmp_path: Path
) -> None:
    topics, invites = asked(1), Invites(tmp_path / "invites.json")
    with Served(topics, invites=invites) as served:
        link = f"http://127.0.0.1:{served.port}/join/{invites.invite('ann')}"
        page = entered(open_page(link, locale="de-DE"))
        card_of(page)
        page.get_by_role("button", name="Einstellungen").click()
        page.get_by_label("Ruhe von").fill("22:00")
        said = page.locator("dialog .said")
        for why in ("Ruhezeiten brauchen Anfang und Ende", "der Server ist nicht erreichbar"):
            page.get_by_role("button", name="Speichern").click()
            expect(said).to_have_text(f"Nicht gespeichert: {why}.")
            page.context.set_offline(True)
        page.context.set_offline(False)
        # A proxy says so in words of its own.
        page.route("**/api/preferences", lambda route: route.fulfill(status=502, body="<html>"))
        page.get_by_role("button", name="Speichern").click()
        expect(said).to_have_text("Nicht gespeichert: der Server ist nicht erreichbar.")
        page.unroute_all()
        invites.revoke("ann")
        page.reload()
        expect(page.get_by_role("heading", name="Eine Einladung ist nötig")).to_be_visible()
        assert "revoked" not in page.locator("#main").inner_text()


@pytest.mark.parametrize(
    ("locale", "mine", "of_others", "rest"),
    [
        ("en-GB", "Your answers are set aside for now", "answers of eve", "No questions for now"),
        pytest.param(
            "de-DE",
            "Die eigenen Antworten sind vorerst",
            "Antworten von eve",
            "Vorerst keine Fragen",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_banner_says_whose_answers_are_set_aside_and_accuses_nobody(
    open_page: Open, tmp_path: Path, locale: str, mine: str, of_others: str, rest: str
) -> None:
    topics, invites = asked(1), Invites(tmp_path / "invites.json")
    settings = PageSettings(supervisors=frozenset(["zoe"]))
    with Served(topics, invites=invites, settings=settings) as served:
        links = {
            name: f"http://127.0.0.1:{served.port}/join/{invites.invite(name, key='ann')}"
            for name in ("ann", "eve", "zoe")
        }
        pages = {"ann": entered(open_page(links["ann"], locale=locale))}
        card_of(pages["ann"])  # the others come once she has the only question
        for name in ("eve", "zoe"):
            pages[name] = entered(open_page(links[name], locale=locale))
        for page in pages.values():
            expect(page.locator("#set-aside")).to_be_hidden()
        press(pages["ann"], "1")
        write(topics, label_request(7, at=time.time(), excluded=("eve",)))
        expect(pages["eve"].locator("#set-aside")).to_contain_text(mine)
        expect(pages["eve"].get_by_role("heading", name=rest)).to_be_visible()
        expect(pages["eve"].locator(CARD)).to_have_count(0)
        expect(pages["zoe"].locator("#set-aside")).to_contain_text(of_others)
        expect(pages["ann"].locator("#set-aside")).to_be_hidden()
        for page in pages.values():
            shown = page.locator("body").inner_text().lower()
            for word in ("quarant", "wrong", "mislead", "falsch"):
                assert word not in shown
        write(topics, label_request(8, at=time.time()))  # heard again
        for page in pages.values():
            expect(page.locator("#set-aside")).to_be_hidden()
