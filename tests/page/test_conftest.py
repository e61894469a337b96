"""The browser of the tests."""

from __future__ import annotations

import pytest

from tests.page.conftest import LONGEST_S, Chromium


def test_browser_that_hangs_fails_one_test_only(chromium: Chromium) -> None:
    from playwright.sync_api import Error

    with chromium.running(longest_s=1.0) as hung, pytest.raises(Error, match="closed"):
        hung.new_page().evaluate("new Promise(() => {})")
    with chromium.running(longest_s=LONGEST_S) as other:
        assert other is not hung
        assert other.new_page().evaluate("1 + 1") == 2
