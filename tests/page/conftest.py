"""A browser, and pages to be looked at in it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.page_scene import ROOMS, PageScene, known

PATIENCE_MS = 60_000.0  # for what comes about by itself, even on a busy machine
CHROMIUM = os.environ.get("STREAMGP_TEST_CHROMIUM") or shutil.which("chromium")


def missing(what: str) -> None:
    """Skip the test, but fail in CI."""
    if os.environ.get("CI") == "true":
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Chromium without a window."""
    try:
        from playwright.sync_api import expect, sync_playwright
    except ImportError:
        missing("needs playwright: pip install 'streamgp[test]'")
    if CHROMIUM is None:
        missing("needs Chromium: apt-get install chromium, or its path in STREAMGP_TEST_CHROMIUM")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def scene(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[PageScene]:
    """A deployment in which seven rooms are known, or the labels of the test's parameter.

    Its page is not started yet.
    """
    scene = PageScene(tmp_path)
    scene.write(*known(getattr(request, "param", ROOMS), at=time.time()))
    yield scene
    scene.kill()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens an address in a context of its own; errors of the page's scripts fail the test."""
    contexts = []
    errors: list[str] = []

    def opened(url: str, **options: Any) -> Any:
        context = browser.new_context(**{"locale": "en-GB", **options})
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: note_refusal(said.text))
        page.goto(url)
        return page

    def note_refusal(said: str) -> None:
        if "Content Security Policy" in said:
            errors.append(said)

    yield opened
    for context in contexts:
        context.close()
    assert errors == []


@pytest.fixture
def look(open_page: Callable[..., Any], scene: PageScene) -> Callable[..., Any]:
    """Opens the page of the scene."""
    return lambda **options: open_page(scene.url, **options)


@pytest.fixture(scope="session")
def pictures() -> Path | None:
    """The folder for screenshots, where one is named."""
    named = os.environ.get("STREAMGP_TEST_SCREENSHOTS")
    if named is None:
        return None
    folder = Path(named)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
