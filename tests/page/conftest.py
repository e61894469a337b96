"""A browser, and pages to be looked at in it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.page_scene import ROOMS, PageScene, known

CARD = "#card"
PATIENCE_MS = 60_000.0  # for what comes about by itself, even on a busy machine
# For a test, on a busy machine, too: the longest take some tens of seconds, at night some minutes.
LONGEST_S = 120.0
LONGEST_BY_NIGHT_S = 540.0
CHROMIUM = os.environ.get("STREAMGP_TEST_CHROMIUM") or shutil.which("chromium")
# For each window Chromium draws lists below its address bar, which nobody opens, and starts a
# process that the next tab may need: more than the tab itself takes. Of two such options it reads
# the last, so this one first repeats what playwright turns off on Linux.
_OFF = (
    "AimEnabled,AvoidCorsURLLoaderRestartOnRedirect,AvoidUnnecessaryBeforeUnloadCheckSync,"
    "DestroyProfileOnBrowserClose,HttpsFirstBalancedModeAutoEnable,HttpsUpgrades,LensOverlay,"
    "MediaRouter,NetworkTimeServiceQuerying,OptimizationHints,PaintHolding,PreconnectToSearch,"
    "ThirdPartyStoragePartitioning,"
    "SpareRendererForSitePerProcess,WebUIOmniboxAimPopup,WebUIOmniboxPopup"
)
LAUNCH = {
    "executable_path": CHROMIUM,
    "args": ["--no-sandbox", f"--disable-features={_OFF}"],
    "timeout": PATIENCE_MS,
}


def missing(what: str) -> None:
    """Skip the test, but fail in CI."""
    if os.environ.get("CI") == "true":
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


class Chromium:
    """Chromium without a window: killed if a test takes too long, and then started again.

    Some calls of playwright, such as `route`, wait for the browser without a limit. Once it is dead
    they raise, so that the test that has met a browser which hangs fails alone.

    """

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._process_id = 0
        self.browser: Any = None
        self.tabs: Tabs | None = None

    @contextlib.contextmanager
    def running(self, longest_s: float) -> Iterator[Any]:
        """Yield the browser, which lives for so long at most."""
        if self.browser is None or not self.browser.is_connected():
            self.browser = self._kind.launch(**LAUNCH)
            self.tabs = Tabs(self.browser)
            processes = self.browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")
            [self._process_id] = [
                one["id"] for one in processes["processInfo"] if one["type"] == "browser"
            ]
        timer = threading.Timer(longest_s, os.kill, (self._process_id, signal.SIGKILL))
        timer.start()
        try:
            yield self.browser
        finally:
            timer.cancel()

    def close(self) -> None:
        if self.browser is not None:
            self.browser.close()


@pytest.fixture(scope="package")
def chromium() -> Iterator[Chromium]:
    """The browser of all tests."""
    try:
        from playwright.sync_api import expect, sync_playwright
    except ImportError:
        missing("needs playwright: pip install 'streamgp[test]'")
    if CHROMIUM is None:
        missing("needs Chromium: apt-get install chromium, or its path in STREAMGP_TEST_CHROMIUM")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright, contextlib.closing(Chromium(playwright.chromium)) as one:
        yield one


@pytest.fixture
def browser(chromium: Chromium, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Chromium, for as long as a test may take."""
    by_night = request.node.get_closest_marker("nightly") is not None
    with chromium.running(LONGEST_BY_NIGHT_S if by_night else LONGEST_S) as browser:
        yield browser


@pytest.fixture
def scene(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[PageScene]:
    """A deployment in which seven rooms are known, or the labels of the test's parameter.

    Its page is not started yet.
    """
    scene = PageScene(tmp_path)
    scene.write(*known(getattr(request, "param", ROOMS), at=time.time()))
    yield scene
    scene.close()


# The card is noted first: where nothing is stored, the next one is there before the key is done.
_NOTE_KEY = """addEventListener("keydown", () => {
    const card = document.querySelector("#card")?.dataset.card;
    addEventListener("keydown", (event) => {
        // A field or a button takes Enter by itself.
        answered = (event.defaultPrevented || event.key === "Enter") && card;
    }, { once: true });
}, { capture: true, once: true })"""


def press(page: Any, key: str) -> None:
    """Answer the card in front by a key, and wait until another thing is there.

    A card that came by itself a moment ago takes no keys: people press once more then. What was
    answered takes none either.
    """
    from playwright.sync_api import expect

    expect(page.locator(CARD)).to_be_visible()
    end = time.monotonic() + PATIENCE_MS / 1000.0
    while True:
        page.evaluate(_NOTE_KEY)
        page.keyboard.press(key)
        if answered := page.evaluate("answered"):
            break
        assert time.monotonic() < end, f"no card takes {key}"
        page.wait_for_timeout(100)
    expect(page.locator(f'{CARD}[data-card="{answered}"]')).to_have_count(0)


class Tabs:
    """Tabs of the browser; each is alone in a context, with storage of its own.

    One is used again with the same options: to make it takes as long as all that a test does with
    it. What the page of one scene has stored, that of another does not find, as no two have the
    same address.

    A test that cuts the network, or holds back requests of the context, needs a new one: playwright
    asks all service workers that the context has had. If one is stopped, and no page is left that
    would start it, the call never returns.

    """

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self._kept: defaultdict[str, list[Any]] = defaultdict(list)

    def new(self, **options: Any) -> Any:
        """Return a new tab, whose context is to be closed by the caller."""
        context = self._browser.new_context(**{"locale": "en-GB", **options})
        context.set_default_timeout(PATIENCE_MS)
        return context.new_page()

    @contextlib.contextmanager
    def lent(self, **options: Any) -> Iterator[Any]:
        """Yield a tab that nobody else uses; the test may open others and hold back requests."""
        kept = self._kept[repr(options)]
        tab = kept.pop() if kept else self.new(**options)
        yield tab
        if not self._browser.is_connected():
            return
        for other in tab.context.pages:
            if other is not tab:
                other.close()
        tab.goto("about:blank")
        tab.unroute_all()
        tab.context.unroute_all()
        tab.context.set_offline(False)
        kept.append(tab)


@pytest.fixture
def tabs(chromium: Chromium, browser: Any) -> Tabs:
    assert chromium.browser is browser
    assert chromium.tabs is not None
    return chromium.tabs


@pytest.fixture
def watched() -> Iterator[Callable[[Any], Any]]:
    """Watches a tab until the test ends, which errors of a page's scripts fail."""
    tabs, errors = [], []

    def note_error(error: Any) -> None:
        errors.append(str(error))

    def note_refusal(said: Any) -> None:
        if "Content Security Policy" in said.text:
            errors.append(said.text)

    def watch(tab: Any) -> Any:
        tab.on("pageerror", note_error)
        tab.on("console", note_refusal)
        tabs.append(tab)
        return tab

    yield watch
    for tab in tabs:
        tab.remove_listener("pageerror", note_error)
        tab.remove_listener("console", note_refusal)
    assert errors == []


@pytest.fixture
def open_page(tabs: Tabs, watched: Callable[[Any], Any]) -> Iterator[Callable[..., Any]]:
    """Opens an address in a tab of its own."""
    with contextlib.ExitStack() as opened:

        def open_it(url: str, **options: Any) -> Any:
            tab = watched(tabs.new(**options))
            opened.callback(tab.context.close)
            tab.goto(url)
            return tab

        yield open_it


@pytest.fixture
def look(
    open_page: Callable[..., Any],
    tabs: Tabs,
    watched: Callable[[Any], Any],
    scene: PageScene,
) -> Iterator[Callable[..., Any]]:
    """Opens the page of the scene; `alone`, in a tab of its own, if it sets a clock or a size."""
    with contextlib.ExitStack() as lent:

        def look_at_it(*, alone: bool = False, **options: Any) -> Any:
            if alone:
                return open_page(scene.url, **options)
            tab = watched(lent.enter_context(tabs.lent(**options)))
            tab.goto(scene.url)
            return tab

        yield look_at_it


@pytest.fixture(scope="session")
def pictures() -> Path | None:
    """The folder for screenshots, where one is named."""
    named = os.environ.get("STREAMGP_TEST_SCREENSHOTS")
    if named is None:
        return None
    folder = Path(named)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
