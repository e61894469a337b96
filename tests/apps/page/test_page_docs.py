"""The guide to the page says what the page does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from connectors.annotation.desk import LEASE_S
from connectors.memory import MemoryTopics
from streamgp.apps.page import server
from streamgp.apps.page.access import BURST, MAX_BODY, MAX_STREAMS, RATE
from streamgp.apps.page.invites import INVITES, LINK_VALID_S, Invites
from streamgp.apps.page.preferences import PREFERENCES
from streamgp.apps.replay.demo_stream import MOST_OPEN, N_TAUGHT
from streamgp.cli.page import DEFAULT_BIND, page
from tests.helpers.page_server import Reply, Served, request, write
from tests.helpers.topics import said

GUIDE = Path(__file__).parents[3] / "docs" / "page.md"
if not GUIDE.is_file():
    pytest.skip("docs/ is not beside the tests", allow_module_level=True)
TEXT = " ".join(GUIDE.read_text(encoding="utf-8").split())


def test_numbers_are_those_of_the_code() -> None:
    for text in (
        f"at most {MAX_BODY // 1024} kB",
        f"ask {RATE:g} times a second in the long run, {BURST:g} times at once",
        f"hold {MAX_STREAMS} streams",
        f"for one annotator for {LEASE_S:g} seconds",
        f"{DEFAULT_BIND} if not given",
        INVITES,
        PREFERENCES,
    ):
        assert text in TEXT
    assert LINK_VALID_S == 7 * 86_400
    assert (N_TAUGHT, MOST_OPEN) == (4, 3)
    assert "first four readings" in TEXT
    assert "three at a time" in TEXT


def test_options_of_the_page_are_explained() -> None:
    options = {name for p in page.params for name in p.opts if name.startswith("--")}
    explained = set(re.findall(r"--[a-z][a-z-]+", TEXT))
    assert options - {"--broker", "--log-format"} <= explained


def test_link_and_answer_by_hand_are_taken(tmp_path: Path) -> None:
    bodies = re.findall(r"-d '(\{.*?\})'", TEXT)
    headers = [dict(re.findall(r"-H '(\S+): (\S+)'", part)) for part in TEXT.split("-d '{")[:2]]
    topics, invites = MemoryTopics(1), Invites(tmp_path / "invites.json")
    write(topics, request("1842", key="phone-3"))
    with Served(topics, invites=invites) as served:
        browser = served.browser()

        def sent(path: str, n: int) -> Reply:
            # The server of the test has another port.
            given = {k: v.replace("127.0.0.1:8080", browser.host) for k, v in headers[n].items()}
            left_out = {"Origin": None, "X-Streamgp": None, "Content-Type": None}
            return browser.send("POST", path, data=bodies[n].encode(), headers=left_out | given)

        joined = sent(f"/join/{invites.invite('robot')}", 0)
        browser.cookie = joined.headers["set-cookie"].partition(";")[0]
        assert json.loads(bodies[1])["card"] == browser.card()["id"]
        assert sent("/api/answers", 1).status == 200
    [answer] = said(topics, "answers")
    assert (answer.event_id, answer.key, answer.y) == ("1842", "phone-3", "hall")
    assert answer.annotator == "robot"


def test_every_request_of_the_interface_is_listed() -> None:
    described = json.loads((Path(server.__file__).parent / "openapi.json").read_text())["paths"]
    for path in described:
        if path.startswith("/api/") or path in ("/healthz", "/metrics"):
            assert path.rpartition("}")[2] in TEXT
            assert path.partition("{")[0].rstrip("/") in TEXT
