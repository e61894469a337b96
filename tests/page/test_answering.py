"""Answers given in a real browser, each exactly once in the topic, whatever happens meanwhile."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from connectors.annotation.desk import N_RESERVE
from connectors.embedded.topics import EmbeddedTopics
from connectors.wire.outbound import Outbound
from streamgp.base import Decision, Neighbour
from streamgp.interactive.messages import CLEAR_SINCE, Cancel, Event, Prediction
from tests.helpers.page_scene import ROOMS, PageScene, challenge, features, known, label_request
from tests.helpers.topics import wait_until, write
from tests.helpers.worker_process import MAIN
from tests.page.conftest import CARD, LAUNCH, PATIENCE_MS, missing, press

try:
    from playwright.sync_api import Request, expect
except ImportError:  # the fixture of the browser says so
    expect = missing

Look = Callable[..., Any]
# What the page says, rather than what it does with answers, is seen at night.
by_night = pytest.mark.nightly


def ask(scene: PageScene, n: int, **fields: Any) -> None:
    at = time.time() - 60.0
    scene.write(*(label_request(i, at=at, **fields) for i in range(n)))


def opened(scene: PageScene, look: Look, n: int, **options: Any) -> Any:
    """Ask `n` questions, start the page, and open it."""
    ask(scene, n)
    scene.start()
    return look(**options)


def asked_for_numbers(scene: PageScene, n: int, settings: str = "") -> None:
    """Ask for `n` numbers, and start the page with more settings of the worker."""
    with (scene.directory / "w.toml").open("a") as config:
        config.write(f'target = "number"\n{settings}')
    ask(scene, n, key="number")
    scene.start()


def card_of(page: Any) -> str:
    """Return the id of the card in front."""
    return str(page.locator(CARD).get_attribute("data-card"))


def open_again(page: Any, scene: PageScene) -> None:
    """Open the page once more, and wait until it has cards to go on with without a connection."""
    page.goto("about:blank")  # what the page before has asked for does not count
    with page.expect_response("**/api/reserve") as reply:
        page.goto(scene.url)
    reply.value.finished()
    expect(page.locator(CARD)).to_be_visible()


def all_sent(page: Any) -> None:
    """Wait until nothing is left to do or to send."""
    expect(page.locator(".rest.done")).to_be_visible()
    expect(page.locator(".past-answer.unsent")).to_have_count(0)
    expect(page.locator("#connection")).to_be_hidden()


def given(scene: PageScene) -> dict[str, Any]:
    """Return the label of every event; one answer of each, and all of them by ann."""
    answers = scene.answers()
    assert len({one.event_id for one in answers}) == len(answers)
    assert {one.annotator for one in answers} <= {"ann"}
    return {one.event_id: one.y for one in answers}


class Trouble:
    """Answers by keys, with one kind of trouble after the other in between."""

    def __init__(self, scene: PageScene, look: Look, *, offline_s: float) -> None:
        self.scene = scene
        self.look = look
        self.offline_s = offline_s
        self.rng = random.Random(2)
        self.page = look(alone=True)
        self.other = self.page.context.new_page()
        self.other.goto(scene.url)

    def answer(self, n: int) -> None:
        """Give n answers, in one tab or the other."""
        for _ in range(n):
            page = self.rng.choice([self.page, self.other])
            page.bring_to_front()
            card = page.locator(f"{CARD}, .rest").first
            expect(card).to_be_visible()
            # The card may have changed by itself just now: then keys are off for a moment.
            page.wait_for_timeout(750)
            if page.locator(CARD).count():
                press(page, str(self.rng.randint(1, len(ROOMS))))

    def server_dies(self) -> None:
        self.scene.kill()
        self.page.bring_to_front()
        self.page.wait_for_timeout(750)
        if self.page.locator(CARD).count():
            press(self.page, "2")
        expect(self.page.locator("#connection")).to_be_visible()
        self.scene.start()
        expect(self.page.locator("#connection")).to_be_hidden()

    def network_is_cut(self) -> None:
        self.page.context.set_offline(True)
        self.page.bring_to_front()
        self.page.wait_for_timeout(750)
        if self.page.locator(CARD).count():
            press(self.page, "4")
        self.page.wait_for_timeout(1000 * self.offline_s)
        expect(self.page.locator("#connection")).to_be_visible()
        self.page.context.set_offline(False)
        expect(self.page.locator("#connection")).to_be_hidden()

    def reload(self) -> None:
        """Answer, and reload at once: the answer is not confirmed yet."""
        self.page.bring_to_front()
        self.page.wait_for_timeout(750)
        if self.page.locator(CARD).count():
            self.page.keyboard.press("5")
            self.page.wait_for_timeout(self.rng.randint(0, 30))
        self.page.reload()
        expect(self.page.locator(f"{CARD}, .rest").first).to_be_visible()

    def finish(self) -> None:
        self.page.bring_to_front()
        end = time.monotonic() + 600.0
        while not self.page.locator(".rest.done").count():
            assert time.monotonic() < end
            if self.page.locator(CARD).count():
                self.page.keyboard.press("1")
            self.page.wait_for_timeout(100)
        all_sent(self.page)


def play(scene: PageScene, look: Look, n: int, kills: int, cuts: int, cut_s: float) -> None:
    ask(scene, n)
    scene.start()
    trouble = Trouble(scene, look, offline_s=cut_s)
    troubles = (
        [trouble.server_dies] * kills + [trouble.network_is_cut] * cuts + [trouble.reload] * cuts
    )
    trouble.rng.shuffle(troubles)
    for happen in troubles:
        trouble.answer(2)
        happen()
    trouble.finish()
    wait_until(lambda: len(given(scene)) == n)
    assert set(given(scene).values()) <= set(ROOMS)


def test_no_answer_is_lost_or_doubled_by_trouble(scene: PageScene, look: Look) -> None:
    play(scene, look, n=12, kills=1, cuts=1, cut_s=1.5)


@pytest.mark.nightly
def test_no_answer_is_lost_or_doubled_by_trouble_for_long(scene: PageScene, look: Look) -> None:
    play(scene, look, n=200, kills=5, cuts=3, cut_s=10.0)


# By day answers are confirmed late; by night the next card comes late, too.
@pytest.mark.parametrize("slow", [pytest.param("next", marks=pytest.mark.nightly), "answers"])
def test_nothing_is_called_done_before_the_server_has_said_so(
    scene: PageScene, look: Look, slow: str
) -> None:
    """Back from a break without a card in front, the page does not know whether there is one."""
    page = opened(scene, look, 2 + N_RESERVE, service_workers="block")
    expect(page.locator(CARD)).to_be_visible()
    page.context.set_offline(True)
    expect(page.locator("#connection")).to_be_visible()
    while page.locator(CARD).count():
        press(page, "3")
    expect(page.locator(".rest.offline")).to_be_visible()
    page.evaluate(
        "seen = []; new MutationObserver(() =>"
        "  document.querySelectorAll('.rest').forEach((one) => seen.push(one.className))"
        ").observe(document.getElementById('main'), { childList: true })"
    )
    page.route(f"**/api/{slow}", lambda route: (time.sleep(0.5), route.continue_()))
    page.context.set_offline(False)
    expect(page.locator(CARD)).to_be_visible()
    assert set(page.evaluate("seen")) == {"rest loading"}


def test_a_person_in_a_lift_goes_on_with_the_next_questions(scene: PageScene, look: Look) -> None:
    page = opened(scene, look, 2 + N_RESERVE, alone=True)
    open_again(page, scene)
    page.context.set_offline(True)
    expect(page.locator("#connection")).to_be_visible()
    cards = []
    while page.locator(CARD).count():
        cards.append(card_of(page))
        if len(cards) == 1:
            page.keyboard.press("n")
            page.keyboard.type("attic")
            press(page, "Enter")
        else:
            expect(page.locator("#choices").get_by_role("button", name="attic")).to_be_visible()
            press(page, "1")
    assert len(cards) == len(set(cards)) == N_RESERVE
    expect(page.locator("#connection")).to_contain_text(f"{N_RESERVE} answers")
    assert given(scene) == {}
    page.context.set_offline(False)
    expect(page.locator(CARD)).to_be_visible()
    wait_until(lambda: len(given(scene)) == N_RESERVE)
    while page.locator(CARD).count():
        press(page, "1")
    all_sent(page)
    assert len(given(scene)) == N_RESERVE + 2


def test_expired_question_is_not_asked_without_a_connection(scene: PageScene, look: Look) -> None:
    at = time.time()
    ends = dict.fromkeys((1, 2, 4), at + 3600.0)
    scene.write(*(label_request(n, at=at - 60.0, expires_at=ends.get(n)) for n in range(6)))
    scene.start()
    page = look(alone=True)
    page.clock.install()
    under_way: set[Request] = set()
    page.on("request", lambda one: one.url.endswith("/api/stream") or under_way.add(one))
    for end in ("requestfinished", "requestfailed"):
        page.on(end, lambda one: under_way.discard(one))
    open_again(page, scene)
    page.context.set_offline(True)
    expect(page.locator("#connection")).to_be_visible()
    # A late reply would say by how much the page's clock is wrong.
    wait_until(lambda: page.wait_for_timeout(10.0) or not under_way)
    page.clock.set_system_time(at + 7200.0)
    cards = []
    while page.locator(CARD).count():
        cards.append(card_of(page))
        press(page, "1")
    assert cards == [f"ann/e{n}/label" for n in (0, 3, 5)]


def test_reserve_that_comes_late_asks_nothing_twice(scene: PageScene, look: Look) -> None:
    page = opened(scene, look, 4, alone=True, service_workers="block")
    page.goto("about:blank")  # or its request might be held
    page.clock.install()
    held = []
    # Ten seconds later, as on a busy machine, the page asks again, and is answered at once.
    page.route("**/api/reserve", lambda route: held.append((route, route.fetch())), times=1)
    page.goto(scene.url)
    expect(page.locator(CARD)).to_be_visible()
    wait_until(lambda: bool(page.wait_for_timeout(50) or held))
    answered = card_of(page)
    press(page, "1")
    expect(page.locator(".past-answer:not(.unsent)")).to_have_count(1)
    [(route, reply)] = held
    with page.expect_response(lambda response: response.request == route.request) as late:
        route.fulfill(response=reply)
    late.value.finished()
    page.context.set_offline(True)
    expect(page.locator("#connection")).to_be_visible()
    page.clock.run_for(31_000)
    cards = []
    while page.locator(CARD).count():
        cards.append(card_of(page))
        press(page, "1")
    assert len(cards) == 3
    assert answered not in cards


def test_nobody_waits_long_for_a_network_that_answers_nothing(scene: PageScene, look: Look) -> None:
    page = opened(scene, look, 4, service_workers="block")
    open_again(page, scene)
    page.route(re.compile("/api/(?!stream)"), lambda _route: None)
    cards = []
    for _ in range(3):  # the third one is not the next that was loaded
        cards.append(card_of(page))
        press(page, "1")
    assert len({*cards, card_of(page)}) == 4
    expect(page.locator(".past-answer.unsent")).to_have_count(3)
    assert scene.answers() == []
    page.unroute_all()
    press(page, "1")
    all_sent(page)
    assert len(given(scene)) == 4


def test_answer_given_offline_survives_a_new_start_of_the_page(
    scene: PageScene, look: Look
) -> None:
    """The shell comes from the service worker, the answer from the outbox."""
    page = opened(scene, look, 3)
    expect(page.locator(CARD)).to_be_visible()
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    first = card_of(page)
    scene.kill()
    press(page, "3")
    page.reload()
    expect(page.locator("#connection")).to_contain_text("1 answer is kept")
    # It is shown and can be changed; of what nobody knows any more, nothing is said.
    expect(page.get_by_role("button", name="den waiting to be sent")).to_be_visible()
    expect(page.locator("#counts")).to_be_empty()
    page.get_by_role("button", name="den waiting to be sent").click()
    expect(page.locator("dialog .choice")).to_have_count(len(ROOMS) - 1)
    page.keyboard.press("Escape")
    with (scene.directory / "w.toml").open("a") as file:
        file.write('[page]\nquestion = "Where was it?"\n')
    with page.expect_response("**/api/me"):
        scene.start()
    expect(page.locator(CARD)).to_be_visible()
    wait_until(lambda: len(scene.answers()) == 1)
    [answer] = scene.answers()
    assert (answer.event_id, answer.y) == (first.split("/")[1], "den")
    press(page, "1")
    expect(page.get_by_role("heading", name="Where was it?")).to_be_visible()
    kept = page.evaluate(
        "caches.keys().then(async (names) => (await Promise.all(names.map(async (name) =>"
        " (await (await caches.open(name)).keys()).map((one) => one.url)))).flat())"
    )
    assert kept
    assert not [url for url in kept if "/api/" in url]


def test_what_another_annotator_left_is_not_sent(scene: PageScene, look: Look) -> None:
    page = opened(scene, look, 2)
    expect(page.locator(CARD)).to_be_visible()
    page.evaluate(
        """() => new Promise((done) => {
          const opening = indexedDB.open("streamgp", 1);
          opening.onsuccess = () => {
            const store = opening.result.transaction("outbox", "readwrite").objectStore("outbox");
            store.add({ id: "x", annotator: "eve", kind: "answer", tries: 0, at: 0, card: null,
              body: { card: "ann/e1/label", action: "label", label: "study" } }).onsuccess = done;
          };
        })"""
    )
    press(page, "1")
    press(page, "2")
    all_sent(page)
    assert given(scene) == {"e0": "bathroom", "e1": "bedroom"}


def test_held_key_answers_once(scene: PageScene, look: Look) -> None:
    page = opened(scene, look, 3)
    expect(page.locator(CARD)).to_be_visible()
    first = card_of(page)
    page.keyboard.down("1")
    for _ in range(5):
        page.keyboard.down("1")  # repeats, as the keyboard of a held key does
    page.keyboard.up("1")
    expect(page.locator(f'{CARD}[data-card="{first}"]')).to_have_count(0)
    wait_until(lambda: len(scene.answers()) == 1)
    page.wait_for_timeout(300)
    assert len(scene.answers()) == 1


def test_keys_are_off_after_a_card_vanished_by_itself(scene: PageScene, look: Look) -> None:
    page = opened(scene, look, 4)
    other = page.context.new_page()
    other.goto(scene.url)
    expect(other.locator(CARD)).to_be_visible()
    expect(page.locator(CARD)).to_be_visible()
    first = card_of(page)
    page.evaluate(
        """() => new MutationObserver((_, watching) => {
          watching.disconnect();
          document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "2", bubbles: true }));
        }).observe(document.getElementById("main"), { childList: true })"""
    )
    press(other, "1")
    expect(page.locator(f'{CARD}[data-card="{first}"]')).to_have_count(0)
    second = card_of(page)
    page.wait_for_timeout(900)
    assert card_of(page) == second
    press(page, "2")
    wait_until(lambda: len(scene.answers()) == 2)
    assert [one.y for one in scene.answers()] == ["bathroom", "bedroom"]


@by_night
def test_withdrawn_question_says_why_in_the_language_of_the_page(
    scene: PageScene, look: Look
) -> None:
    page = opened(scene, look, 2, locale="de-DE")
    expect(page.locator(CARD)).to_be_visible()
    for why, said in ((CLEAR_SINCE, "Die Antwort ist inzwischen klar."), ("<i>other", "<i>other.")):
        request_id = card_of(page).removeprefix("ann/")
        scene.write(Cancel(request_id=request_id, key="ann", why=why, at=time.time()))
        expect(page.locator("#notice")).to_have_text(
            f"Die vorige Frage wurde zurückgezogen: {said}"
        )


def test_time_that_is_left_is_renewed_while_a_card_is_looked_at(
    scene: PageScene, look: Look
) -> None:
    """By the server's clock: that of the browser may be wrong."""
    scene.start()
    page = look(alone=True)
    page.add_init_script("const right = Date.now; Date.now = () => right() + 7_200_000;")
    page.reload()
    scene.write(label_request(0, at=time.time(), expires_at=time.time() + 95.0))
    limit = page.locator(f"{CARD} .limit")
    expect(limit).to_have_text(re.compile(r"^Waits for [1-9]\d s more$"))
    expect(page.locator(f"{CARD} .when")).to_have_text(
        re.compile(r" · (just now|\d+ s ago) · ann$")
    )
    before = limit.text_content()
    card = page.locator(CARD).element_handle()
    expect(limit).not_to_have_text(before)
    assert card.evaluate("(card) => card.isConnected")


def test_panel_beside_the_card_stays_while_it_says_the_same(scene: PageScene, look: Look) -> None:
    # It says the minute of an answer: first by the browser's clock, then by the server's.
    if (left_s := 60.0 - time.time() % 60.0) < 15.0:
        time.sleep(left_s)
    page = opened(scene, look, 2)
    expect(page.locator(CARD)).to_be_visible()
    press(page, "1")
    expect(page.locator(".past-answer:not(.unsent)")).to_have_count(1)
    page.locator(".past-answer").focus()
    scene.write(label_request(7, at=time.time()))
    expect(page.locator(".tiles dd").first).to_have_text("2")
    expect(page.locator(".past-answer")).to_be_focused()
    page.locator(".past-answer").evaluate("(one) => { one.isFirst = true; }")
    scene.write(label_request(8, at=time.time()))
    expect(page.locator(".tiles dd").first).to_have_text("3")
    assert page.locator(".past-answer").evaluate("(one) => one.isFirst")


def test_single_keys_can_be_turned_off(scene: PageScene, look: Look) -> None:
    page = opened(scene, look, 2)
    expect(page.locator(f"{CARD} kbd").first).to_be_visible()
    page.get_by_role("button", name="Preferences").click()
    page.get_by_label("Answer with single keys").uncheck()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(f"{CARD} kbd").first).to_be_hidden()
    first = card_of(page)
    for key in "1dsnp?":
        page.keyboard.press(key)
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert card_of(page) == first
    page.get_by_role("button", name="bathroom").press("Enter")
    expect(page.locator(f'{CARD}[data-card="{first}"]')).to_have_count(0)


KEYS = {
    "a digit": ("3", "Digit3", False, "3"),
    "Persian": ("\u06f3", "Digit3", False, "3"),
    "French": ('"', "Digit3", False, "3"),
    "French, a sign": ("-", "Digit6", False, "-"),
    "French, below Latin letters": (",", "KeyM", False, ","),
    "French, moved": ("w", "KeyZ", False, "w"),
    "English": ("#", "Digit3", True, "#"),
    "German": ("/", "Digit7", True, "/"),
    "Hebrew": ("\u05d3", "KeyS", False, "s"),
    "Hebrew, no letter elsewhere": ("\u05e3", "Semicolon", False, "\u05e3"),
    "Russian": ("\u0412", "KeyD", True, "D"),
    "Turkish": ("\u0131", "KeyI", False, "i"),
    "Arabic": ("\u061f", "Slash", True, "?"),
    "none that types": ("Enter", "Enter", False, "Enter"),
}


def test_keys_of_other_scripts_mean_what_is_usually_at_their_place(
    scene: PageScene, look: Look
) -> None:
    page = opened(scene, look, 1)
    meant = page.evaluate(
        """async (keys) => {
          const { keyOf } = await import("/static/dom.js");
          return keys.map(([key, code, shiftKey]) => keyOf({ key, code, shiftKey }));
        }""",
        [key[:3] for key in KEYS.values()],
    )
    assert dict(zip(KEYS, meant, strict=True)) == {name: key[3] for name, key in KEYS.items()}
    page.wait_for_timeout(300)  # keys are off just after a card has appeared
    page.evaluate(
        "([key, code]) => document.body.dispatchEvent("
        "new KeyboardEvent('keydown', { key, code, bubbles: true }))",
        KEYS["Persian"][:2],
    )
    all_sent(page)
    assert given(scene) == {"e0": ROOMS[2]}


def test_screen_reader_is_led_to_what_is_said_when_nothing_waits(
    scene: PageScene, look: Look
) -> None:
    page = opened(scene, look, 1)
    expect(page.get_by_role("heading", name="Which is it?")).to_be_focused()
    press(page, "1")
    expect(page.get_by_role("heading", name="All done")).to_be_focused()
    page.keyboard.press("p")
    expect(page.get_by_role("heading", name="Paused")).to_be_focused()


def test_screen_reader_hears_once_that_nothing_waits(scene: PageScene, look: Look) -> None:
    page = opened(scene, look, 0, service_workers="block")
    expect(page.get_by_role("heading", name="All done")).to_be_focused()
    page.evaluate("heading = document.activeElement; true")
    for _ in range(2):  # once the page asks again, it has shown what came before
        with page.expect_response("**/api/next"):
            page.evaluate("dispatchEvent(new Event('online'))")
    assert page.evaluate("document.activeElement === heading")


@by_night
def test_page_says_why_no_more_questions_wait(scene: PageScene, look: Look) -> None:
    with (scene.directory / "w.toml").open("a") as file:
        file.write("[questions]\nopen_at_most = 2\n")
    page = opened(scene, look, 2)
    expect(page.get_by_text("No more than 2 questions of each")).to_be_visible()
    press(page, "1")
    expect(page.get_by_text("No more than 2 questions of each")).to_have_count(0)


def test_closed_dialog_leaves_the_focus_at_the_question_if_its_button_is_gone(
    scene: PageScene, look: Look
) -> None:
    page = opened(scene, look, 3)
    expect(page.locator(CARD)).to_be_visible()
    press(page, "1")
    expect(page.locator(".past-answer:not(.unsent)")).to_have_count(1)
    page.locator(".past-answer").press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    other = page.context.new_page()
    other.goto(scene.url)
    expect(other.locator(CARD)).to_be_visible()
    press(other, "1")
    expect(page.locator(".past-answer:not(.unsent)")).to_have_count(2)
    page.bring_to_front()
    page.keyboard.press("Escape")
    expect(page.locator("#question")).to_be_focused()


def test_stray_key_never_answers_a_challenge(scene: PageScene, look: Look) -> None:
    at = time.time() - 40.0
    scene.write(challenge(0, at=at), label_request(1, at=at))
    scene.start()
    page = look()
    expect(page.get_by_role("button", name="Keep hall", exact=True)).to_be_visible()
    for name in ("Change to study", "Another label", "I don't know"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_visible()
    first = card_of(page)
    for key in [
        *"0123456789abdeghijlmnoqrtuvwxyzABCDKNSU/",
        "Enter",
        " ",
        "Backspace",
        "ArrowDown",
    ]:
        page.keyboard.press(key)
        assert card_of(page) == first, key
    assert scene.answers() == []
    page.keyboard.press("c")
    wait_until(lambda: len(scene.answers()) == 1)
    [answer] = scene.answers()
    assert (answer.request_id, answer.y) == ("e0/challenge/1", "study")
    assert answer.shown == ("examples",)


def test_another_label_of_a_challenge_is_chosen_from_the_list(scene: PageScene, look: Look) -> None:
    scene.write(challenge(0, at=time.time() - 40.0))
    scene.start()
    page = look()
    page.get_by_role("button", name="Another label", exact=True).click()
    expect(page.get_by_role("button", name="study", exact=True)).to_have_count(0)
    page.keyboard.press("Enter")  # nothing is chosen beforehand
    page.get_by_role("button", name="kitchen", exact=True).click()
    wait_until(lambda: len(scene.answers()) == 1)
    assert scene.answers()[0].y == "kitchen"


def test_challenge_can_be_answered_with_a_label_that_is_new(scene: PageScene, look: Look) -> None:
    scene.write(challenge(0, at=time.time() - 40.0))
    scene.start()
    page = look()
    page.get_by_role("button", name="Another label", exact=True).click()
    page.get_by_role("button", name="New label", exact=True).click()
    page.keyboard.type("atic")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Keep hall", exact=True)).to_be_visible()
    page.get_by_role("button", name="Another label", exact=True).click()
    page.get_by_role("button", name="New label", exact=True).click()
    page.keyboard.type("attic")
    page.keyboard.press("Enter")
    wait_until(lambda: len(scene.answers()) == 1)
    [answer] = scene.answers()
    assert (answer.request_id, answer.y) == ("e0/challenge/1", "attic")


@pytest.mark.parametrize("scene", [()], indirect=True)
def test_first_label_of_all_is_asked_for_openly(scene: PageScene, look: Look) -> None:
    page = opened(scene, look, 1)
    expect(page.get_by_text("No label is known yet")).to_be_visible()
    page.get_by_role("button", name="New label").click()  # the only one of this name
    page.keyboard.type("hall")
    page.keyboard.press("Enter")
    all_sent(page)
    assert given(scene) == {"e0": "hall"}


def test_new_label_like_a_known_one_is_asked_back(scene: PageScene, look: Look) -> None:
    page = opened(scene, look, 2)
    expect(page.locator(CARD)).to_be_visible()
    page.keyboard.press("n")
    page.keyboard.type("Kitchne")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Did you mean kitchen?")).to_be_visible()
    assert scene.answers() == []
    press(page, "Enter")
    page.keyboard.press("n")
    page.keyboard.type("garden 2")
    press(page, "Enter")
    all_sent(page)
    assert given(scene) == {"e0": "kitchen", "e1": "garden 2"}


MANY = """
airport archery badminton bakery balcony banquet bathroom bedroom bicycle billiards bookshop
bowling breakfast bus cafe camping canoeing car carpentry ceramics chess church cinema cleaning
climbing clinic coffee concert cooking corridor cricket cycling dancing den dentist desk dining
doctor drawing driving elevator embroidery escalator exercising factory ferry fishing football
forest gallery garage garden gaming golf gym hairdresser hall hiking hospital hotel hunting
ironing jogging judo kayaking kitchen knitting laboratory laundry lecture library living lunch
market massage meeting museum napping nursery office opera orchestra packing painting park
pharmacy phoning photography picnic plane playground pub reading reception restaurant rowing
running sailing school shopping shower singing skating skiing sleeping
"""


def test_any_of_many_labels_takes_at_most_five_keys(scene: PageScene, look: Look) -> None:
    labels = tuple(sorted(MANY.split()))
    assert len(labels) == 105
    starts = [label[:3] for label in labels]
    own = [label for label in labels if starts.count(label[:3]) == 1]
    chosen = own[:: len(own) // 3]  # what is found is that of test_label_search.py
    at = time.time()
    scene.write(*known(labels, at=at, key="many"))
    scene.write(*(label_request(i, at=at - 60.0, key="many") for i in range(len(chosen))))
    scene.start()
    page = look()
    wanted = {}
    for label in chosen:
        wanted[card_of(page).split("/")[1]] = label
        page.keyboard.press("/")
        for letter in label[:3]:
            page.keyboard.press(letter)
        press(page, "Enter")
    all_sent(page)
    assert given(scene) == wanted


def test_suggestion_is_hidden_until_it_is_wanted(scene: PageScene, look: Look) -> None:
    at = time.time() - 60.0
    scene.write(
        *(
            Prediction(
                event_id=f"e{n}",
                key="ann",
                y="den",
                proba={"den": 0.5, "hall": 0.3, "study": 0.2},
                decision=Decision(ask=True, score=0.5, threshold=0.1, criterion="BestVersusSecond"),
                n_learned=9,
                at=at,
            )
            for n in range(2)
        )
    )
    ask(scene, 2, reason="BestVersusSecond")
    scene.start()
    page = look()
    expect(page.locator(CARD)).to_be_visible()
    assert "%" not in page.locator(CARD).inner_text()
    press(page, "3")
    page.keyboard.press("h")
    expect(page.locator(".suggestion")).to_contain_text("den")
    expect(page.locator(".suggestion")).to_be_focused()
    press(page, "3")
    wait_until(lambda: len(scene.answers()) == 2)
    first, second = scene.answers()
    assert (first.shown, second.shown) == ((), ("suggestion",))


def test_commands_go_along_with_answers(scene: PageScene, look: Look) -> None:
    """A flag with a note, a reason for not knowing, and a question that was put off."""
    page = opened(scene, look, 3)
    first = page.locator(CARD).get_attribute("data-card")
    page.keyboard.press("s")
    expect(page.locator(f'{CARD}[data-card="{first}"]')).to_have_count(0)
    page.keyboard.press("f")
    page.keyboard.type("sensor 1 moved")  # a key is no command while it is typed
    page.keyboard.press("Enter")
    expect(page.locator(".flagged")).to_contain_text("sensor 1 moved")
    press(page, "4")
    page.keyboard.press("Shift+D")
    expect(page.get_by_role("button", name="Bad data")).to_be_visible()
    expect(page.get_by_text("Why can't you tell?")).to_be_focused()
    press(page, "3")
    assert card_of(page) == first
    press(page, "d")
    all_sent(page)
    flagged, reasoned, declined = scene.answers()
    assert (flagged.y, flagged.flag, flagged.note) == ("hall", True, "sensor 1 moved")
    assert (reasoned.declined, reasoned.reason) == (True, "bad_data")
    assert (declined.event_id, declined.declined, declined.reason) == ("e0", True, None)


def test_skipped_card_stays_behind_whatever_was_asked_before(scene: PageScene, look: Look) -> None:
    """A reply from before the skip arrives after it, as on a slow network."""
    page = opened(scene, look, 4, service_workers="block")
    expect(page.locator(f'{CARD}[data-card="ann/e0/label"]')).to_be_visible()
    held: list[Any] = []
    page.route("**/api/next", lambda route: held.append((route, route.fetch())), times=1)
    page.evaluate("dispatchEvent(new Event('online'))")  # the page asks again
    wait_until(lambda: bool(page.wait_for_timeout(10) or held))
    with page.expect_response("**/api/skip"):
        press(page, "s")
    page.wait_for_timeout(200)
    for route, reply in held:
        route.fulfill(response=reply)
    page.wait_for_timeout(500)
    order = []
    for key in ("1", "2", "3"):
        order.append(card_of(page))
        press(page, key)
    assert order == ["ann/e1/label", "ann/e2/label", "ann/e3/label"]
    assert card_of(page) == "ann/e0/label"


def test_answer_is_taken_back_and_given_again(scene: PageScene, look: Look) -> None:
    page = opened(scene, look, 2)
    expect(page.locator(CARD)).to_be_visible()
    first = card_of(page)
    press(page, "1")
    wait_until(lambda: len(scene.answers()) == 1)
    page.reload()
    # The card is there before what was answered.
    page.get_by_role("button", name="Undo: bathroom").click()
    expect(page.locator(f'{CARD}[data-card="{first}"]')).to_be_visible()
    press(page, "2")
    press(page, "3")
    all_sent(page)
    assert [(one.event_id, one.y) for one in scene.answers()] == [
        ("e0", "bathroom"),
        ("e0", None),
        ("e0", "bedroom"),
        ("e1", "den"),
    ]


def test_focus_on_an_answer_that_is_taken_back_goes_to_the_card(
    scene: PageScene, look: Look
) -> None:
    page = opened(scene, look, 2, alone=True)
    press(page, "1")
    expect(page.locator(".past-answer:not(.unsent)")).to_have_count(1)
    page.context.set_offline(True)  # the card stays, and takes no focus
    expect(page.locator("#connection")).to_be_visible()
    page.locator(".past-answer").focus()
    page.keyboard.press("u")
    expect(page.locator(".past-answer")).to_have_count(0)
    expect(page.locator("#question")).to_be_focused()


def test_declining_once_more_stands_among_the_last_answers(scene: PageScene, look: Look) -> None:
    page = opened(scene, look, 1)
    press(page, "d")
    all_sent(page)
    page.keyboard.press("u")
    expect(page.locator(CARD)).to_be_visible()
    # The answer is kept in the page until the server's history is there, which has the first one.
    with page.expect_response("**/api/history"):
        press(page, "d")
    page.wait_for_timeout(200)
    all_sent(page)
    expect(page.locator(".past-answer")).to_contain_text("don't know")
    page.keyboard.press("u")
    expect(page.locator(CARD)).to_be_visible()
    assert len(scene.answers()) == 1


def test_answer_that_was_never_sent_is_taken_back_without_a_trace(
    scene: PageScene, look: Look
) -> None:
    page = opened(scene, look, 2 + N_RESERVE, alone=True)
    open_again(page, scene)
    page.context.set_offline(True)
    expect(page.locator("#connection")).to_be_visible()
    press(page, "1")  # the page tries to send it
    second = card_of(page)
    press(page, "2")
    page.keyboard.press("u")
    expect(page.locator(f'{CARD}[data-card="{second}"]')).to_be_visible()
    expect(page.locator(".past-answer")).to_have_text(re.compile("bathroom"))
    expect(page.get_by_role("button", name="Undo: bathroom")).to_be_visible()
    press(page, "3")
    press(page, "4")
    expect(page.locator(".past-answer")).to_have_count(3)
    key = "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'u', bubbles: true}))"
    page.evaluate(f"{key}; {key}")  # faster than the first one is written
    expect(page.locator(f'{CARD}[data-card="{second}"]')).to_be_visible()
    expect(page.locator(".past-answer")).to_have_text(re.compile("bathroom"))


def test_earlier_answer_is_changed_in_the_strip(scene: PageScene, look: Look) -> None:
    page = opened(scene, look, 2)
    press(page, "1")
    page.locator(".past-answer:not(.unsent)").first.click()
    page.get_by_role("dialog").get_by_role("button", name="study").click()
    wait_until(lambda: [one.y for one in scene.answers()] == ["bathroom", "study"])
    assert scene.answers()[1].supersedes == scene.answers()[0].answer_id
    expect(page.locator(".past-answer").first).to_contain_text("study")


def test_earlier_answer_is_changed_when_no_card_says_what_there_is_to_choose_from(
    scene: PageScene, look: Look
) -> None:
    page = opened(scene, look, 1)
    press(page, "1")
    all_sent(page)
    page.reload()
    page.locator(".past-answer").click()
    page.get_by_role("dialog").get_by_role("button", name="study").click()
    wait_until(lambda: [one.y for one in scene.answers()] == ["bathroom", "study"])


def test_change_that_takes_long_is_shown_in_the_strip(scene: PageScene, look: Look) -> None:
    page = opened(scene, look, 2, service_workers="block")
    page.route("**/revise", lambda route: (time.sleep(1.5), route.continue_()))
    press(page, "1")
    page.locator(".past-answer:not(.unsent)").first.click()
    page.get_by_role("dialog").get_by_role("button", name="study").click()
    expect(page.locator(".past-answer").first).to_contain_text("study")


@pytest.mark.nightly
def test_late_history_hides_no_answer_and_no_change(scene: PageScene, look: Look) -> None:
    """A history from before an answer, or a change, arrives after it, as on a slow network."""
    page = opened(scene, look, 3, service_workers="block")
    held: list[Any] = []

    def hold(route: Any) -> None:
        reply = route.fetch()
        if reply.json()["history"]:
            held.append((route, reply))
        else:  # asked for at the start
            route.fulfill(response=reply)

    page.route("**/api/history", hold)

    def arrive(number: int) -> None:
        route, reply = held[number]
        with page.expect_response(lambda one: one.request == route.request) as late:
            route.fulfill(response=reply)
        late.value.finished()
        page.wait_for_timeout(100)

    press(page, "1")
    wait_until(lambda: bool(page.wait_for_timeout(10) or held))
    press(page, "2")
    expect(page.locator(".past-answer:not(.unsent)")).to_have_count(2)
    arrive(0)
    assert page.locator(".past-answer").count() == 2
    wait_until(lambda: bool(page.wait_for_timeout(10) or len(held) == 2))
    page.locator(".past-answer").last.click()
    page.get_by_role("dialog").get_by_role("button", name="study").click()
    wait_until(lambda: bool(page.wait_for_timeout(10) or len(held) == 3))
    arrive(2)
    expect(page.locator(".past-answer").first).to_contain_text("study")
    arrive(1)
    assert "study" in page.locator(".past-answer").first.text_content()


def test_changed_answer_may_be_a_new_label_and_is_no_typing_error_of_a_known_one(
    scene: PageScene, look: Look
) -> None:
    page = opened(scene, look, 1)
    press(page, "1")
    for written, shown, learned in (
        ("kithcen", ["kitchen", "New label: kithcen"], "kitchen"),
        ("attic", ["New label: attic"], "attic"),
    ):
        all_sent(page)
        page.locator(".past-answer").first.click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("The right label").fill(written)
        expect(dialog.locator(".grid button")).to_have_text(shown)
        page.keyboard.press("Enter")
        expect(page.locator(".past-answer").first).to_contain_text(learned)
    wait_until(lambda: [one.y for one in scene.answers()] == ["bathroom", "kitchen", "attic"])


@by_night
def test_closest_example_is_corrected_though_its_answer_is_not_among_the_last(
    scene: PageScene, look: Look
) -> None:
    page = opened(scene, look, 12)
    for _ in range(12):
        press(page, "1")
    all_sent(page)
    near = Neighbour(event_id="e0", x=features(0), y="bathroom", distance=1.0)
    scene.write(challenge(11, at=time.time(), neighbours=(near,), given="bathroom"))
    page.get_by_role("button", name="Correct the example bathroom").click()
    page.get_by_role("dialog").get_by_role("button", name="study").click()
    wait_until(lambda: len(scene.answers()) == 13)
    first, last = scene.answers()[0], scene.answers()[-1]
    assert (last.event_id, last.y, last.supersedes) == ("e0", "study", first.answer_id)
    expect(page.locator(f'{CARD}[data-kind="challenge"]')).to_be_visible()


def test_number_is_answered_with_how_exact_it_is(scene: PageScene, look: Look) -> None:
    asked_for_numbers(scene, 2)
    page = look()
    expect(page.locator(CARD)).to_be_visible()
    page.keyboard.type("21,5 +- 0.5")
    press(page, "Enter")
    page.keyboard.type("-3")
    page.get_by_role("button", name="Flag").click()
    page.keyboard.type("cold")
    page.keyboard.press("Enter")
    page.get_by_label("Value", exact=True).focus()
    press(page, "Enter")
    all_sent(page)
    assert [(one.y, one.std) for one in scene.answers()] == [(21.5, 0.5), (-3.0, None)]
    assert [one.note for one in scene.answers()] == [None, "cold"]


def test_numbers_are_typed_one_after_the_other_on_a_phone(scene: PageScene, look: Look) -> None:
    asked_for_numbers(scene, 3)
    page = look(has_touch=True, is_mobile=True, viewport={"width": 390, "height": 844})
    field = page.locator("#value")
    expect(field).to_have_attribute("inputmode", "decimal")
    expect(field).to_have_attribute("enterkeyhint", "send")
    field.tap()
    for written in ("21.5", "22"):  # the keyboard stays open for the second one
        page.keyboard.type(written)
        page.keyboard.press("Enter")
        expect(field).to_have_value("")
        expect(field).to_be_focused()
    page.keyboard.type("3")
    page.get_by_role("button", name="Change the sign").tap()
    page.keyboard.press("Enter")
    expect(page.get_by_text("All done")).to_be_visible()
    all_sent(page)
    assert [one.y for one in scene.answers()] == [21.5, 22.0, -3.0]


def test_question_guidelines_and_labels_of_the_configuration_are_there_from_the_start(
    scene: PageScene, look: Look
) -> None:
    with (scene.directory / "w.toml").open("a") as file:
        file.write('''[page]
            question = "What did <b>you</b> do?"
            guidelines = """
sitting: also in a bus
walking: also on <b>stairs</b>"""
            labels = ["walking", "sitting"]''')
    page = opened(scene, look, 1)
    told = "sitting: also in a bus\nwalking: also on <b>stairs</b>"
    dialog = page.get_by_role("dialog", name="Guidelines")
    expect(dialog.locator(".prose")).to_have_text(told, use_inner_text=True)
    expect(dialog.locator(".prose")).to_be_focused()  # a screen reader begins with it
    page.keyboard.press("Enter")  # was meant for a card
    expect(page.locator(CARD)).to_have_count(0)  # it is nobody's yet
    dialog.get_by_role("button", name="Go on").click()
    expect(page.get_by_role("heading", name="What did <b>you</b> do?")).to_be_visible()
    page.reload()
    expect(page.locator(CARD)).to_be_visible()
    expect(dialog).to_have_count(0)
    page.keyboard.press("?")
    help_ = page.get_by_role("dialog", name="Help")
    expect(help_.locator(".prose")).to_have_text(told, use_inner_text=True)
    page.keyboard.press("Escape")
    choices = page.locator("#choices")
    expect(choices.get_by_role("button", name="sitting")).to_be_visible()
    choices.get_by_role("button", name="walking").click()
    wait_until(lambda: [one.y for one in scene.answers()] == ["walking"])


@by_night
def test_suggested_number_is_shown_as_exact_as_it_is_and_taken_as_it_is(
    scene: PageScene, look: Look
) -> None:
    with (scene.directory / "w.toml").open("a") as config:
        config.write('target = "number"\n')
    exact = 2.389975952009391
    scene.write(challenge(0, at=time.time(), given=5.0, suggested=exact, std=0.714, neighbours=()))
    scene.start()
    page = look()
    expect(page.locator(".suggested")).to_have_text("2.39")
    page.get_by_role("button", name="2.39").click()
    wait_until(lambda: [one.y for one in scene.answers()] == [exact])


def test_number_has_its_unit_a_slider_and_what_the_budget_leaves(
    scene: PageScene, look: Look
) -> None:
    page_of_celsius = '[page]\nunit = "°C"\nlow = -10.0\nhigh = 40.0\n'
    asked_for_numbers(scene, 2, page_of_celsius + '[budget]\nrule = "at_most"\nn = 30\n')
    page = look()
    expect(page.locator(".unit")).to_have_text("°C")
    # A screen reader says the unit with the field.
    expect(page.get_by_label("Value", exact=True)).to_have_accessible_description("°C")
    expect(page.locator(CARD)).to_contain_text("28 of 30 questions left")
    slider = page.get_by_label("Value on a scale")
    slider.focus()
    page.keyboard.press("End")
    expect(page.get_by_label("Value", exact=True)).to_have_value("40")
    page.get_by_label("Value", exact=True).fill("-3")
    expect(slider).to_have_js_property("value", "-3")
    press(page, "Enter")
    wait_until(lambda: [one.y for one in scene.answers()] == [-3.0])


def test_slider_is_as_fine_where_numbers_are_far_from_zero(scene: PageScene, look: Look) -> None:
    asked_for_numbers(scene, 1, "[page]\nlow = 990.0\nhigh = 1040.0\n")
    page = look()
    page.get_by_label("Value on a scale").focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_label("Value", exact=True)).to_have_value("1039.75")


def test_quiet_hours_are_kept(scene: PageScene, look: Look) -> None:
    page = opened(scene, look, 1)
    expect(page.locator(CARD)).to_be_visible()
    page.get_by_role("button", name="Preferences").click()
    for name, hours in (("Quiet from", -2), ("Quiet until", 2)):
        at = time.localtime(time.time() + 3600 * hours)
        page.get_by_label(name).fill(time.strftime("%H:%M", at))
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).to_have_count(0)  # saved
    page.reload()
    expect(page.get_by_role("heading", name="Quiet hours")).to_be_visible()
    expect(page.locator(".rest")).to_contain_text("Questions wait until ")


def test_days_begin_where_the_browser_is_unless_a_limit_was_saved_elsewhere(
    scene: PageScene, look: Look
) -> None:
    page = opened(scene, look, 1, timezone_id="Asia/Kathmandu")
    me = "async () => (await (await fetch('/api/me')).json()).preferences"
    wait_until(lambda: page.evaluate(me)["time_zone"] in ("Asia/Kathmandu", "Asia/Katmandu"))
    page.get_by_role("button", name="Preferences").click()
    page.get_by_label("Maximum questions per day").fill("30")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    elsewhere = look(timezone_id="Europe/Berlin")
    expect(elsewhere.locator(CARD)).to_be_visible()
    kept = elsewhere.evaluate(me)
    assert (kept["per_day"], kept["time_zone"][:8]) == (30, "Asia/Kat")


@pytest.mark.parametrize("scene", [()], indirect=True)
def test_undo_after_learning_revises_the_label(scene: PageScene, look: Look) -> None:
    """With a worker beside the page: the consensus log shows the revision."""
    (scene.directory / "w.toml").write_text(
        f'broker = "file://{scene.directory}/topics"\nwarm_up = 0\n[query]\nrule = "always"\n'
        f'[challenge]\nrule = "never"\n[worker]\nstate = "{scene.directory}/state"\n'
    )
    with (scene.directory / "worker.log").open("wb") as log:
        worker = subprocess.Popen(
            [sys.executable, "-c", MAIN, "run", "w.toml"],
            cwd=scene.directory,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    try:
        _send_event(scene, Event(event_id="e1", key="new", x=features(1), occurred_at=time.time()))
        scene.start()
        page = look()
        expect(page.locator(CARD)).to_be_visible()
        page.keyboard.press("n")
        page.get_by_label("Name of the new label").fill("attic")
        press(page, "Enter")
        wait_until(lambda: _learned(scene) == [("attic", "asked")])
        page.keyboard.press("u")
        expect(page.locator(".again")).to_be_visible()
        page.keyboard.press("n")
        page.get_by_label("Name of the new label").fill("cellar")
        page.keyboard.press("Enter")
        corrected = [("attic", "asked"), (None, "withdrawn"), ("cellar", "asked")]
        wait_until(lambda: _learned(scene) == corrected)
    finally:
        worker.kill()
        worker.wait()


def _send_event(scene: PageScene, event: Any) -> None:
    with closing(EmbeddedTopics(scene.directory / "topics")) as topics:
        write(topics, Outbound("/streamgp/test", keyed=True).message(event, None))


def _learned(scene: PageScene) -> list[tuple[Any, str]]:
    return [(one.y, one.origin) for one in scene.read("consensus") if one.key == "new"]


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("x" * 201, "ein neuer Name hat höchstens 200 Zeichen"),
        # That there is a text, test_appearance.py says by day.
        *(
            pytest.param(*row, marks=pytest.mark.nightly)
            for row in (
                ("kit\u200bchenette", "der Name enthält unsichtbare Zeichen"),
                ('"halb', "in doppelten Anführungszeichen"),
            )
        ),
    ],
)
def test_a_refused_answer_is_explained_in_the_language_of_the_page(
    scene: PageScene, look: Look, written: str, why: str
) -> None:
    """And its card comes back, instead of waiting for half a minute."""
    page = opened(scene, look, 1, locale="de-DE")
    expect(page.locator(CARD)).to_be_visible()
    page.keyboard.press("n")
    page.get_by_label("Der neue Name").fill(written)
    page.keyboard.press("Enter")
    expect(page.locator("#notice")).to_contain_text(why)
    expect(page.locator(f"{CARD} .commands")).to_be_visible(timeout=20_000.0)
    page.wait_for_timeout(750)  # keys are off where a card has come by itself
    press(page, "4")
    all_sent(page)
    assert given(scene) == {"e0": "hall"}


def test_alone_nobody_takes_the_question_that_is_shown(scene: PageScene, look: Look) -> None:
    """A more useful question that came meanwhile is the next one."""
    page = opened(scene, look, 2, service_workers="block")
    expect(page.locator(f'{CARD}[data-card="ann/e0/label"]')).to_be_visible()
    held: list[Any] = []
    page.route("**/api/next", lambda route: held.append(route))  # what is loaded ahead stays
    page.evaluate("dispatchEvent(new Event('online'))")  # the page asks again
    wait_until(lambda: bool(page.wait_for_timeout(10) or held))
    scene.write(label_request(2, at=time.time() - 120.0))
    expect(page.locator(".tiles dd").first).to_have_text("3")
    press(page, "1")
    expect(page.locator(".past-answer:not(.unsent)")).to_have_count(1)
    page.wait_for_timeout(500)
    assert card_of(page) == "ann/e1/label"
    expect(page.locator("#notice")).to_be_hidden()
    press(page, "2")
    assert card_of(page) == "ann/e2/label"
    for route in held:
        route.abort()


def test_a_screen_reader_hears_what_is_shown(scene: PageScene, look: Look) -> None:
    page = opened(scene, look, 2, service_workers="block")
    expect(page.locator(CARD)).to_be_visible()
    # What appears in a region is announced only if the region was there before.
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    regions = [node for node in tree if node.get("role", {}).get("value") == "status"]
    assert len(regions) == 3
    assert not any(node["ignored"] for node in regions)
    press(page, "1")
    wait_until(lambda: len(scene.answers()) == 1)
    expect(page.locator(".past-answer.unsent")).to_have_count(0)
    page.keyboard.press("u")
    expect(page.locator("#live")).to_contain_text("You took your answer back; please answer again.")
    page.keyboard.press("p")
    resume = page.get_by_role("navigation").get_by_role("button", name="Continue")
    expect(resume).to_be_visible()
    assert resume.get_attribute("aria-pressed") is None  # its name says it
    page.keyboard.press("p")
    press(page, "1")
    wait_until(lambda: len(scene.answers()) == 3)
    expect(page.locator(".past-answer.unsent")).to_have_count(0)
    held: list[Any] = []
    page.route("**/api/answers", lambda route: held.append(route))
    page.keyboard.press("1")
    expect(page.locator("#notice")).to_have_text("One moment")
    page.wait_for_timeout(7000)  # others go after six seconds
    expect(page.locator("#notice")).to_be_visible()
    for route in held:
        route.continue_()
    expect(page.locator(".rest.done")).to_be_visible()
    expect(page.locator("#notice")).to_be_hidden()


@pytest.mark.parametrize("scene", [tuple(f"place {n}" for n in range(60))], indirect=True)
def test_a_search_says_what_enter_takes(scene: PageScene, look: Look) -> None:
    page = opened(scene, look, 1)
    expect(page.locator(CARD)).to_be_visible()
    page.keyboard.press("/")
    for typed, said in (
        ("17", "1 label matches. Enter takes place 17."),
        ("place 5", "15 labels match. Enter takes place 5."),
        ("garden", "No label matches. Enter adds garden."),
    ):
        page.locator("#search").fill(typed)
        expect(page.locator("#found")).to_have_text(said)


# Of a Japanese keyboard, and of Arabic and Persian ones.
OTHER_DIGITS = {
    "\uff0d\uff12\uff11\uff0e\uff15": -21.5,
    "\u0662\u06f1\u066b\u0665": 21.5,
    "21\u00b2": None,
}


@pytest.mark.parametrize(
    ("locale", "typed"),
    [
        ("de-DE", {"1.234": None, "-1.234": None, "1,234": 1.234, "0.125": 0.125, "21.5": 21.5}),
        ("en-GB", {"1,234": None, "1.234": 1.234, "12,34": 12.34, "1234": 1234.0, **OTHER_DIGITS}),
    ],
)
def test_a_number_that_may_mean_thousands_is_asked_about(
    scene: PageScene, look: Look, locale: str, typed: dict[str, float | None]
) -> None:
    scene.start()
    page = look(locale=locale)
    expect(page.locator(".rest.done")).to_be_visible()
    read = """async (all) => {
      const { typedNumber, whyNoNumber } = await import("/static/cards.js");
      return all.map((one) => [typedNumber(one), whyNoNumber(one)]);
    }"""
    for (text, wanted), (found, why) in zip(
        typed.items(), page.evaluate(read, [*typed]), strict=True
    ):
        assert found == wanted, text
        if wanted is None and "234" in text:
            assert "1234" in why
            assert ("1,234" if locale == "de-DE" else "1.234") in why


def test_a_tab_that_ended_while_the_clock_was_wrong_keeps_no_answers_back(
    scene: PageScene, look: Look
) -> None:
    """Without locks, as on plain HTTP, a tab notes until when the others wait for it."""
    page = opened(scene, look, 1, alone=True)
    page.add_init_script("Object.defineProperty(navigator, 'locks', { get: () => undefined });")
    page.evaluate(
        "localStorage.setItem('streamgp.streamgp.outbox', JSON.stringify("
        "{ own: '1', until: Date.now() + 365 * 86_400_000 }))"
    )
    page.reload()
    expect(page.locator(CARD)).to_be_visible()
    press(page, "3")
    all_sent(page)


# Firefox does, where cookies are blocked.
_REFUSES_MORE = """
    const refuse = () => { throw new DOMException("The operation is insecure.", "SecurityError") };
    Object.defineProperty(Navigator.prototype, "serviceWorker", { get: refuse });
    BroadcastChannel = class { constructor() { refuse() } };
"""


def test_answers_are_sent_though_the_browser_stores_nothing(
    scene: PageScene, browser: Any, tmp_path: Path
) -> None:
    """With cookies blocked there is no storage and no lock, and closing the page loses answers."""
    (tmp_path / "profile/Default").mkdir(parents=True)
    (tmp_path / "profile/Default/Preferences").write_text(
        '{"profile": {"default_content_setting_values": {"cookies": 2}}}'
    )
    ask(scene, 4)
    scene.start()
    context = browser.browser_type.launch_persistent_context(tmp_path / "profile", **LAUNCH)
    context.set_default_timeout(PATIENCE_MS)
    context.add_init_script(_REFUSES_MORE)
    page = context.new_page()
    page.goto(scene.url)
    expect(page.locator(CARD)).to_be_visible()
    for n in range(3):
        press(page, "3")
        wait_until(lambda n=n: len(given(scene)) == n + 1)
    expect(page.locator(".past-answer.unsent")).to_have_count(0)  # the browser knows, too
    scene.kill()
    press(page, "3")
    expect(page.locator("#connection")).to_contain_text("1 answer is kept")
    with page.expect_event("dialog") as asked:
        page.close(run_before_unload=True)
    assert asked.value.type == "beforeunload"
    asked.value.accept()
    context.close()


def test_answers_are_sent_though_what_the_browser_stores_is_cleared(
    scene: PageScene, look: Look
) -> None:
    page = opened(scene, look, 3)
    expect(page.locator(CARD)).to_be_visible()
    devtools = page.context.new_cdp_session(page)
    devtools.send("Storage.clearDataForOrigin", {"origin": scene.url, "storageTypes": "all"})
    for _ in range(3):
        press(page, "3")
    all_sent(page)
    assert len(given(scene)) == 3


def test_answers_are_sent_though_the_browser_ends_what_it_stores(
    scene: PageScene, look: Look
) -> None:
    """As on a full disk, or where data are cleared while an answer is written."""
    page = opened(scene, look, 1)
    expect(page.locator(CARD)).to_be_visible()
    page.evaluate("""() => {
        const { add } = IDBObjectStore.prototype;
        IDBObjectStore.prototype.add = function (entry) {
            const asked = add.call(this, entry);
            this.transaction.abort();
            return asked;
        };
    }""")
    press(page, "3")
    all_sent(page)
    assert given(scene) == {"e0": "den"}


def test_what_a_proxy_says_refuses_no_answer(scene: PageScene, look: Look) -> None:
    """While the server is replaced, its proxy may have a page of its own for what is not found."""
    page = opened(scene, look, 3, service_workers="block")
    expect(page.locator(CARD)).to_be_visible()
    page.route("**/api/**", lambda route: route.fulfill(status=404, body="<h1>no backend</h1>"))
    press(page, "3")
    press(page, "2")
    expect(page.locator("#connection")).to_contain_text("2 answers are kept")
    page.reload()
    expect(page.locator(".rest.offline")).to_be_visible()
    page.unroute("**/api/**")
    expect(page.locator(CARD)).to_be_visible()
    wait_until(lambda: list(given(scene).values()) == ["den", "bedroom"])


def test_answer_that_is_too_long_for_a_proxy_is_refused(scene: PageScene, look: Look) -> None:
    """It would be as long whenever it is sent, and must keep no other answer back."""
    page = opened(scene, look, 3, service_workers="block")
    expect(page.locator(CARD)).to_be_visible()
    page.route("**/api/answers", lambda route: route.fulfill(status=413, body="<h1>too big</h1>"))
    page.keyboard.press("3")  # the card is back before long
    expect(page.locator("#notice")).to_contain_text("not accepted: it is too long")
    expect(page.locator("#connection")).to_be_hidden()
    page.unroute("**/api/answers")
    for _ in range(3):
        press(page, "2")
    all_sent(page)
    assert [*given(scene).values()] == ["bedroom"] * 3


@pytest.mark.parametrize(
    "key", ["__proto__", pytest.param("constructor", marks=pytest.mark.nightly)]
)
def test_key_may_be_called_like_a_property_of_every_object(
    scene: PageScene, look: Look, key: str
) -> None:
    at = time.time() - 60.0
    labels = tuple(f"room {n}" for n in range(12))
    scene.write(*known(labels, at=at, key=key), *(label_request(n, at=at, key=key) for n in (1, 2)))
    scene.start()
    page = look()
    press(page, "3")
    expect(page.get_by_role("heading", name="Recent", exact=True)).to_be_visible()
    press(page, "3")
    all_sent(page)
    assert given(scene) == {"e1": "room 2", "e2": "room 2"}


def test_double_click_counts_once(scene: PageScene, look: Look) -> None:
    """The second click meets the next card, at the place where the first one was."""
    page = opened(scene, look, 4)

    def double_click(name: str) -> None:
        card = card_of(page)
        place = page.get_by_role("button", name=name, exact=True).bounding_box()
        page.mouse.move(place["x"] + 9, place["y"] + 9)
        for count in (1, 2):
            page.mouse.down(click_count=count)
            page.mouse.up(click_count=count)
            page.wait_for_timeout(150)
        expect(page.locator(f'{CARD}[data-card="{card}"]')).to_have_count(0)

    double_click("Don't know")
    double_click("hall")
    page.wait_for_timeout(500)
    expect(page.locator(".past-answer:not(.unsent)")).to_have_count(2)
    assert given(scene) == {"e0": None, "e1": "hall"}
    double_click("Undo: hall")
    expect(page.locator(".again")).to_be_visible()
    page.wait_for_timeout(500)
    assert page.locator(".past-answer").count() == 1
    assert card_of(page) == "ann/e1/label"


def test_held_enter_takes_back_one_answer(scene: PageScene, look: Look) -> None:
    page = opened(scene, look, 4, service_workers="block")
    for _ in range(3):
        press(page, "3")
    expect(page.locator(".past-answer.unsent")).to_have_count(0)  # which would be withdrawn
    page.route("**/undo", lambda route: (time.sleep(0.5), route.continue_()))
    page.get_by_role("button", name="Undo: den", exact=True).focus()
    for _ in range(5):
        page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    expect(page.locator(".again")).to_be_visible()
    page.wait_for_timeout(1000)
    assert page.locator(".past-answer").count() == 2


def stopped(page: Any, scene: PageScene) -> None:
    """Open the page once more, with a clock that stands still: keys and clicks are off by it."""
    page.goto("about:blank")
    page.clock.install()
    with page.expect_response("**/api/stream"):  # which says what vanishes
        page.goto(scene.url)
    expect(page.locator(CARD)).to_be_visible()
    page.clock.pause_at(time.time() + 10.0)


def vanish(page: Any, event: str) -> None:
    """Let the card of an event vanish, as if it were answered elsewhere."""
    page.evaluate(
        "(card) => fetch('/api/answers', { method: 'POST',"
        " headers: { 'X-Streamgp': '1', 'Content-Type': 'application/json' },"
        " body: JSON.stringify({ card, answer_id: card, action: 'label', label: 'study' }) })",
        f"ann/{event}/label",
    )
    expect(page.locator("#notice")).to_be_visible()


def test_click_that_meets_another_card_does_not_answer(scene: PageScene, look: Look) -> None:
    page = opened(scene, look, 3, alone=True)
    stopped(page, scene)
    place = page.get_by_role("button", name="hall", exact=True).bounding_box()
    vanish(page, "e0")
    page.mouse.click(place["x"] + 9, place["y"] + 9)
    page.wait_for_timeout(750)
    assert card_of(page) == "ann/e1/label"
    page.clock.run_for(750)
    page.mouse.click(place["x"] + 9, place["y"] + 9)
    wait_until(lambda: given(scene) == {"e0": "study", "e1": "hall"})


def test_word_that_is_typed_on_as_its_card_vanishes_does_not_answer(
    scene: PageScene, look: Look
) -> None:
    """Keys are off until there is a pause."""
    page = opened(scene, look, 3, alone=True)
    stopped(page, scene)
    page.keyboard.press("n")
    page.keyboard.type("roo")
    vanish(page, "e0")
    for key in "m numbered":
        page.keyboard.press(key)
        page.clock.run_for(150)
    assert card_of(page) == "ann/e1/label"
    page.clock.run_for(750)
    page.keyboard.press("3")
    wait_until(lambda: given(scene) == {"e0": "study", "e1": "den"})


def test_page_opens_though_its_texts_fail_once(scene: PageScene, look: Look) -> None:
    page = opened(scene, look, 1, service_workers="block")
    failed: list[str] = []

    def fail_once(route: Any) -> None:
        failed.append(route.request.url)
        route.abort() if len(failed) == 1 else route.continue_()

    page.route("**/texts/en.json", fail_once)
    page.reload()
    expect(page.locator(CARD)).to_be_visible()
    assert len(failed) == 2


def test_dialog_closes_only_by_a_click_beside_it(scene: PageScene, look: Look) -> None:
    """Not by one on its edge, nor where a selection of text ends, nor by a double click."""
    page = opened(scene, look, 2)
    press(page, "3")
    page.locator(".past-answer:not(.unsent)").dblclick()
    dialog = page.locator("dialog[open]")
    expect(dialog).to_be_visible()
    place = dialog.bounding_box()
    page.mouse.click(place["x"] + 8, place["y"] + place["height"] - 8)
    field = page.locator("#other-label")
    field.fill("corridor")
    inside = field.bounding_box()
    page.mouse.move(inside["x"] + 60, inside["y"] + 20)
    page.mouse.down()
    page.mouse.move(5, inside["y"] + 20, steps=3)
    page.mouse.up()
    expect(field).to_have_value("corridor")
    page.mouse.click(5, 300)
    expect(dialog).to_have_count(0)


def test_clock_set_back_keeps_no_question_away(scene: PageScene, look: Look) -> None:
    """An answer taken back elsewhere comes again, whatever the clock says meanwhile."""
    page = opened(scene, look, 1, alone=True)
    page.clock.install()
    page.reload()
    press(page, "3")
    all_sent(page)
    page.clock.set_system_time(time.time() - 3600.0)
    page.evaluate(
        "fetch('/api/history').then((reply) => reply.json()).then(({ history: [{ answer_id }] }) =>"
        " fetch(`/api/answers/${answer_id}/undo`, { method: 'POST', body: '{}',"
        " headers: { 'X-Streamgp': '1', 'Content-Type': 'application/json' } }))"
    )
    page.clock.run_for(31_000)
    expect(page.locator(CARD)).to_be_visible()


def test_enter_that_ends_a_composition_takes_no_label(scene: PageScene, look: Look) -> None:
    """In Safari the composition has ended by then, and only the key code tells."""
    labels = tuple(f"room {n}" for n in range(12))
    scene.write(*known(labels, at=time.time()))
    page = opened(scene, look, 1)
    page.locator("#search").fill("room 3")
    for code in (229, 13):
        page.wait_for_timeout(300)
        assert page.locator(CARD).count() == 1
        page.evaluate(
            "(keyCode) => document.getElementById('search').dispatchEvent("
            "new KeyboardEvent('keydown', { key: 'Enter', keyCode, bubbles: true }))",
            code,
        )
    all_sent(page)
    assert given(scene) == {"e0": "room 3"}


def cached(page: Any, name: str, words: str, other: str) -> None:
    """Let the service worker have an older version of a file, with other words."""
    page.evaluate(
        "async ([name, words, other]) => {"
        "  await navigator.serviceWorker.ready;"
        "  const cache = await caches.open((await caches.keys())[0]);"
        "  const kept = await cache.match(`/static/${name}`);"
        "  const { headers } = kept;"
        "  const changed = (await kept.text()).replace(words, other);"
        "  await cache.put(`/static/${name}`, new Response(changed, { headers }));"
        "}",
        [name, words, other],
    )


def test_page_never_mixes_files_of_two_versions(scene: PageScene, look: Look) -> None:
    """A file of the new version that comes slowly is waited for."""
    page = opened(scene, look, 1, alone=True)
    expect(page.locator(CARD)).to_be_visible()
    cached(page, "labels.js", "export function nearDuplicate", "function nearDuplicate")
    page.context.route("**/labels.js", lambda route: (time.sleep(4.0), route.continue_()))
    page.reload()
    expect(page.locator(CARD)).to_be_visible()


def test_full_disk_shows_no_older_page(scene: PageScene, look: Look) -> None:
    page = opened(scene, look, 1)
    expect(page.locator(CARD)).to_be_visible()
    cached(page, "texts/en.json", "Which is it?", "Which was it?")
    devtools = page.context.new_cdp_session(page)
    devtools.send("Storage.overrideQuotaForOrigin", {"origin": scene.url, "quotaSize": 1})
    page.reload()
    expect(page.get_by_role("heading", name="Which is it?")).to_be_visible()


def test_page_tells_a_browser_that_cannot_run_it_so(scene: PageScene, look: Look) -> None:
    """One that does not know what a script uses, and then skips the script as a whole."""
    scene.start()
    page = look(service_workers="block", alone=True)
    page.route("**/dom.js", lambda route: route.abort())
    page.reload()
    words = page.get_by_text("this browser may be too old")
    expect(words).to_be_hidden()
    page.evaluate("document.getAnimations().forEach((late) => late.finish())")
    expect(words).to_be_visible()


def test_page_that_waits_for_the_server_says_so(scene: PageScene, look: Look) -> None:
    scene.start()
    page = look(service_workers="block")
    page.route("**/api/me", lambda _route: None)
    page.reload()
    expect(page.get_by_role("heading", name="One moment")).to_be_visible(timeout=8000.0)
