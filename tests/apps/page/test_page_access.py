"""Clients that may not come in stay out, over real HTTP, and leave one line in the log."""

from __future__ import annotations

import gzip
import http.client
import json
import logging
import re
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from connectors.memory import MemoryTopics
from streamgp.apps.page.access import BURST, MAX_BODY, MAX_STREAMS, Door, Rates
from streamgp.apps.page.invites import Invites
from tests.helpers.messages import challenge
from tests.helpers.page_server import Browser, Served, answers, events_of, request, write
from tests.helpers.topics import wait_until

SECRET_LABEL = "a label of hers"


@pytest.fixture
def invites(tmp_path: Path) -> Invites:
    return Invites(tmp_path / "invites.json")


@pytest.fixture
def served(invites: Invites) -> Iterator[Served]:
    topics = MemoryTopics()
    write(topics, request("e1"), request("e2"), request("other", key="q"))
    with Served(topics, invites=invites) as served:
        yield served


def person(served: Served, invites: Invites, name: str = "ann", key: str | None = None) -> Browser:
    browser = served.browser()
    assert browser.join(invites.invite(name, key=key)).status == 200
    return browser


ROUTES = [
    ("GET", "/api/me"),
    ("GET", "/api/next"),
    ("GET", "/api/card/k%2Fe1%2Flabel"),
    ("GET", "/api/history"),
    ("GET", "/api/timeline?key=k&day=2026-01-01"),
    ("GET", "/api/stats"),
    ("GET", "/api/stream"),
    ("PUT", "/api/preferences"),
    ("POST", "/api/answers"),
    ("POST", "/api/answers/a1/undo"),
    ("POST", "/api/answers/a1/revise"),
    ("POST", "/api/skip"),
    ("POST", "/api/labels/rename"),
]


@pytest.mark.parametrize("cookie", [None, "streamgp-{port}=guess", "streamgp-1={token}", "x"])
def test_without_a_token_of_this_page_nothing_is_reported(
    served: Served, invites: Invites, cookie: str | None
) -> None:
    token = invites.redeem(invites.invite("ann"))
    if cookie is not None:
        cookie = cookie.format(port=served.port, token=token)
    for method, path in ROUTES:
        reply = served.browser(cookie).send(method, path, {})
        assert (reply.status, reply.body["error"]) == (401, "no_token"), path
        assert reply.body.keys() == {"error", "what", "expected"}


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:{port}", "", "10.0.0.1"])
def test_names_of_others_are_refused(served: Served, host: str) -> None:
    for path in ("/", "/api/next", "/healthz", "/metrics"):
        reply = served.browser().get(path, Host=host.format(port=served.port) or " ")
        assert (reply.status, reply.body["error"]) == (403, "wrong_host"), path


def test_own_names_are_heard(served: Served) -> None:
    for host in (f"localhost:{served.port}", "LOCALHOST", f"[::1]:{served.port}", "127.0.0.1"):
        assert served.browser().get("/", Host=host).status == 200, host


def test_a_host_that_lost_its_port_at_a_proxy_is_named(served: Served, invites: Invites) -> None:
    browser = person(served, invites)
    headers = {"Host": "127.0.0.1", "Origin": f"http://127.0.0.1:{served.port}"}
    reply = browser.post("/api/skip", {"card": "k/e1/label"}, headers=headers)
    assert (reply.status, reply.body["error"]) == (403, "wrong_origin")
    assert reply.body["what"] == "another site sent this, or a proxy changed the header Host"
    assert reply.body["expected"] == "the header Origin: http://127.0.0.1, which follows from Host"


HOSTILE: dict[str, tuple[int, str, dict[str, Any]]] = {
    "no origin": (403, "wrong_origin", {"headers": {"Origin": None}}),
    "another origin": (403, "wrong_origin", {"headers": {"Origin": "http://evil.example"}}),
    "null origin": (403, "wrong_origin", {"headers": {"Origin": "null"}}),
    "another port": (403, "wrong_origin", {"headers": {"Origin": "http://127.0.0.1:1"}}),
    "no header": (403, "no_header", {"headers": {"X-Streamgp": None}}),
    "header of another value": (403, "no_header", {"headers": {"X-Streamgp": "0"}}),
    "another site": (403, "wrong_site", {"headers": {"Sec-Fetch-Site": "cross-site"}}),
    "another person": (403, "other_person", {"headers": {"X-Streamgp-As": "bob"}}),
    "a form": (
        415,
        "no_json",
        {"headers": {"Content-Type": "application/x-www-form-urlencoded"}},
    ),
    "plain text": (415, "no_json", {"headers": {"Content-Type": "text/plain"}}),
    "too large": (413, "too_large", {"data": b" " * (MAX_BODY + 1)}),
    "no JSON": (400, "bad_json", {"data": b"{"}),
    "no UTF-8": (400, "bad_json", {"data": b'{"card": "\xff"}'}),
    "deep": (400, "bad_body", {"data": b'{"card": ' + b"[" * 30_000 + b"]" * 30_000 + b"}"}),
    "a list": (400, "bad_body", {"body": []}),
    "nothing": (400, "bad_body", {"body": {}}),
    "a name": (400, "bad_body", {"more": {"annotator": "bob"}}),
    "a time": (400, "bad_body", {"more": {"answered_at": 4e9}}),
    "an answer of another": (400, "bad_body", {"more": {"supersedes": "page/bob/1"}}),
    "no text": (400, "bad_body", {"more": {"answer_id": 7}}),
    "a long id": (400, "bad_body", {"more": {"answer_id": "x" * 201}}),
    "no action": (400, "bad_body", {"more": {"action": "obey"}}),
    "no number": (400, "bad_json", {"data": b'{"number": NaN}'}),
    "a list as a label": (400, "bad_body", {"more": {"label": ["hall"]}}),
    "negative time": (400, "bad_body", {"more": {"response_s": -1}}),
    "confidence of 9": (400, "bad_body", {"more": {"confidence": 9}}),
    "a number for a label": (400, "bad_reply", {"more": {"action": "number", "number": 1.5}}),
    "no label": (400, "bad_reply", {"more": {"label": None}}),
    "an endless integer": (400, "bad_reply", {"more": {"label": 10**400}}),
    "keep where nothing is in doubt": (400, "bad_reply", {"more": {"action": "keep"}}),
    "no such card": (409, "card_gone", {"more": {"card": "k/e9/label"}}),
    "a card of a made-up key": (409, "card_gone", {"more": {"card": "%00/../e1/label"}}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_is_refused_and_written_nowhere(
    served: Served, invites: Invites, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    status, error, how = HOSTILE[name]
    browser = person(served, invites)
    body: Any = {"card": "k/e1/label", "answer_id": "a1", "action": "label", "label": SECRET_LABEL}
    body = how.get("body", {**body, **how.get("more", {})})
    with caplog.at_level(logging.INFO, "streamgp.page"):
        reply = browser.post("/api/answers", body, headers=how.get("headers"), data=how.get("data"))
    assert (reply.status, reply.body["error"]) == (status, error)
    assert answers(served.topics) == []
    wait_until(lambda: caplog.records)  # it is logged when the answer is on its way
    [line] = caplog.records
    fields = line.__dict__["fields"]
    assert fields["route"] == "/api/answers"
    assert (fields["status"], fields["error"]) == (status, error)
    assert SECRET_LABEL not in str(fields)
    assert browser.answer("k/e1/label", "hall", "a1").status == 200  # and all is well


def test_a_body_of_unknown_length_is_cut_off(served: Served, invites: Invites) -> None:
    browser = person(served, invites)
    with closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)) as connection:
        connection.putrequest("POST", "/api/answers")
        for header, value in {
            "Cookie": browser.cookie or "",
            "Origin": f"http://127.0.0.1:{served.port}",
            "X-Streamgp": "1",
            "Content-Type": "application/json",
            "Transfer-Encoding": "chunked",
        }.items():
            connection.putheader(header, value)
        connection.endheaders()
        chunk = b" " * 30_000
        for _ in range(3):
            connection.send(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        assert connection.getresponse().status == 413


PATHS = [
    "/static/../server.py",
    "/static/..%2Fserver.py",
    "/static/%2e%2e/server.py",
    "/static//etc/passwd",
    "/static/texts",
    "/static/.hidden",
    "/api",
    "/api/",
    "/api/next/",
    "/join/",
    "//evil.example/",
    "/etc/passwd",
]


def test_paths_lead_to_the_files_of_the_page_only(served: Served, invites: Invites) -> None:
    browser = person(served, invites)
    for path in PATHS:
        reply = browser.get(path)
        assert (reply.status, reply.body["error"]) == (404, "not_found"), path


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/static/style.css"])
def test_files_are_compressed_for_browsers_that_ask(served: Served, path: str) -> None:
    browser = served.browser()
    plain = browser.get(path, **{"Accept-Encoding": "identity"})
    small = browser.get(path, **{"Accept-Encoding": "gzip, br"})
    assert "content-encoding" not in plain.headers
    assert small.headers["content-encoding"] == "gzip"
    assert int(small.headers["content-length"]) < 0.6 * int(plain.headers["content-length"])
    assert gzip.decompress(small.body) == plain.body
    for reply in (plain, small):
        assert reply.headers["vary"] == "Accept-Encoding"
        again = browser.get(path, **{"If-None-Match": reply.headers["etag"]})
        assert (again.status, again.body) == (304, b"")


def test_responses_of_the_api_are_not_compressed(served: Served) -> None:
    """Their lengths would tell something about what is secret in them."""
    reply = served.browser().get("/api/next", **{"Accept-Encoding": "gzip"})
    assert "content-encoding" not in reply.headers


def test_every_response_has_the_headers_of_security(served: Served) -> None:
    for path in ("/", "/static/app.js", "/api/me", "/api/next", "/healthz", "/nothing", "/join/no"):
        headers = served.browser().get(path).headers
        assert headers["content-security-policy"] == (
            "default-src 'self'; object-src 'none'; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'"
        )
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers


def test_another_method_is_refused(served: Served, invites: Invites) -> None:
    assert person(served, invites).post("/api/next", {}).status == 405


def test_a_link_works_once(served: Served, invites: Invites) -> None:
    link = invites.invite("ann")
    browser = served.browser()
    reply = browser.join(link)
    assert (reply.status, reply.body) == (200, {})
    name, *flags = reply.headers["set-cookie"].split("; ")
    assert name.startswith(f"streamgp-{served.port}=")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(flags)
    assert browser.get("/api/me").body["name"] == "ann"
    again = served.browser().join(link)
    assert (again.status, again.body["error"]) == (403, "bad_link")
    assert "set-cookie" not in again.headers


def test_who_has_not_got_the_cookie_asks_again_but_nobody_else(
    served: Served, invites: Invites
) -> None:
    """A phone whose reply was lost on the way repeats its request."""
    path, secret = f"/join/{invites.invite('ann')}", {"attempt": 16 * "a"}
    lost = served.browser().post(path, secret)
    for other in ({}, {"attempt": None}, {"attempt": 16 * "b"}):
        assert served.browser().post(path, other).body["error"] == "bad_link"
    again = served.browser().post(path, secret)
    assert again.headers["set-cookie"] == lost.headers["set-cookie"]
    with Served(MemoryTopics(), invites=Invites(invites.path)) as restarted:
        token = restarted.browser().post(path, secret).headers["set-cookie"].partition("=")[2]
    assert token == lost.headers["set-cookie"].partition("=")[2]
    bens = f"/join/{invites.invite('ben')}"
    assert served.browser().post(bens, {"attempt": "short"}).body["error"] == "bad_body"
    assert served.browser().post(bens, {}).status == 200
    assert served.browser().post(bens, {}).body["error"] == "bad_link"


def test_who_only_looks_at_a_link_does_not_use_it_up(served: Served, invites: Invites) -> None:
    """A messenger that shows a preview, a scanner of mail, a browser that fetches ahead."""
    link = invites.invite("ann")
    looking = served.browser()
    for accept in ("text/html,application/xhtml+xml,*/*;q=0.8", "*/*"):
        reply = looking.get(f"/join/{link}", Accept=accept)
        assert (reply.status, reply.headers["cache-control"]) == (200, "no-store")
        assert b"<script" not in reply.body
    assert looking.send("HEAD", f"/join/{link}").status == 200
    assert looking.get("/api/me").status == 401
    assert looking.press(link).status == 303
    # To whoever cannot use it, a link names nobody.
    for useless in (link, "guess"):
        reply = looking.get(f"/join/{useless}")
        assert (reply.status, reply.headers["location"], reply.body) == (303, "/", b"")
        assert reply.headers["cache-control"] == "no-store"


def test_a_link_says_for_whom_it_is_and_its_button_lets_in(
    served: Served, invites: Invites
) -> None:
    link = invites.invite("<b>\u202eann")
    shown = served.browser().get(f"/join/{link}", **{"Accept-Language": "fr, de-AT;q=0.8, en"})
    assert "Als <bdi>&lt;b&gt;\\u202eann</bdi> antworten?" in shown.body.decode()
    # Else browsers send no form, or none with an origin.
    assert "form-action 'self'; frame-ancestors 'none'" in shown.headers["content-security-policy"]
    assert shown.headers["referrer-policy"] == "strict-origin"
    attempt, *flags = shown.headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(flags)
    browser = served.browser(attempt)
    lost = browser.press(link)
    assert (lost.status, lost.headers["location"]) == (303, "/")
    for other in (None, attempt.partition("=")[0] + "=", attempt[:-1]):
        assert "set-cookie" not in served.browser(other).press(link).headers
    assert browser.get(f"/join/{link}").status == 200
    again = browser.press(link)
    assert again.headers["set-cookie"] == lost.headers["set-cookie"]
    browser.cookie = again.headers["set-cookie"].partition(";")[0]
    assert browser.get("/api/me").body["name"] == "<b>\u202eann"
    # A secret so short that others may guess it repeats nothing.
    guessed, second = attempt.partition("=")[0] + "=" + 15 * "a", invites.invite("ben")
    assert "set-cookie" in served.browser(guessed).press(second).headers
    assert "set-cookie" not in served.browser(guessed).press(second).headers


def test_who_answers_in_a_browser_is_named_before_another_does(
    served: Served, invites: Invites
) -> None:
    ann, link = person(served, invites), invites.invite("ben")
    # Without the cookie, as from a mail, only the button can tell.
    shown = ann.get(f"/join/{link}"), ann.press(link), ann.press(link, "replaces=guess")
    for reply in shown:
        assert (reply.status, "set-cookie" in reply.headers) == (200, reply is shown[0])
        assert "So far, <bdi>ann</bdi> answers in this browser." in reply.body.decode()
    assert ann.get("/api/me").body["name"] == "ann"
    own = invites.invite("ann")  # remains, for another device
    for reply in (ann.get(f"/join/{own}"), ann.press(own)):
        assert (reply.status, "set-cookie" in reply.headers) == (303, False)
    [replaces] = re.findall('name="replaces" value="(.+?)"', shown[1].body.decode())
    ann.cookie = ann.press(link, f"replaces={replaces}").headers["set-cookie"].partition(";")[0]
    assert ann.get("/api/me").body["name"] == "ben"
    assert served.browser().press(own).headers["location"] == "/"


@pytest.mark.parametrize(
    ("header", "error"),
    [
        ({"Origin": "https://evil.example"}, "wrong_origin"),
        ({"Origin": None}, "wrong_origin"),
        ({"X-Streamgp": None}, "no_header"),
        ({"Content-Type": "text/plain"}, "no_json"),
    ],
)
def test_no_other_site_exchanges_a_link_unseen(
    served: Served,
    invites: Invites,
    header: dict[str, str | None],
    error: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    link = invites.invite("eve")
    browser = person(served, invites)
    reply = browser.post(f"/join/{link}", {}, headers=header)
    assert (reply.body["error"], "set-cookie" in reply.headers) == (error, False)
    if error == "wrong_origin":
        form = browser.press(link, **header)
        assert (form.status, "set-cookie" in form.headers) == (403, False)
        assert "“wrong_origin”" in form.body.decode()
    assert browser.get("/api/me").body["name"] == "ann"
    assert browser.press(link, 11 * "a=1&").status == 400
    assert served.browser().join(link).status == 200
    wait_until(lambda: "bad_body" in str([line.__dict__ for line in caplog.records]))
    assert link not in str([line.__dict__ for line in caplog.records])


def test_a_link_says_that_a_page_without_login_has_no_invites() -> None:
    with Served(MemoryTopics()) as served:
        reply = served.browser().get("/join/any")
        shown = served.browser().get("/join/any", Accept="text/html")
    assert (reply.status, reply.body["error"]) == (403, "no_invites")
    assert reply.body["expected"] == "a page that was started without --as"
    assert (shown.status, b"needs no invite" in shown.body) == (403, True)
    assert b"You need an invite" not in shown.body


def test_behind_tls_the_cookie_is_secure_and_bound_to_the_host(
    invites: Invites,
) -> None:
    def door(port: int) -> Door:
        return Door(port=port, is_tls=True, hosts=frozenset({"labels.example.org"}))

    with Served(MemoryTopics(), invites=invites, door=door) as served:
        browser = Browser(served.port, host="labels.example.org")
        link = invites.invite("ann")
        assert browser.join(link).body["error"] == "wrong_origin"
        joined = browser.join(link, Origin="https://labels.example.org")
        name, *flags = joined.headers["set-cookie"].split("; ")
        assert name.startswith("__Host-streamgp=")
        assert {"Secure", "HttpOnly", "SameSite=strict", "Path=/"} <= set(flags)
        assert browser.post("/api/skip", {"card": "k/e1/label"}).body["error"] == "wrong_origin"
        headers = {"Origin": "https://labels.example.org"}
        assert browser.post("/api/skip", {"card": "k/e1/label"}, headers=headers).status == 200
        assert browser.get("/", Host="127.0.0.1").status == 403


def test_an_invite_for_a_key_shows_nothing_else(served: Served, invites: Invites) -> None:
    browser = person(served, invites, "ben", key="q")
    assert browser.get("/api/me").body["key"] == "q"
    assert browser.card()["event_id"] == "other"
    assert browser.card()["labels_elsewhere"] == []
    assert browser.get("/api/next").body["ahead"] is None
    assert browser.get("/api/next").body["progress"]["waiting"] == 1
    assert browser.get("/api/card/k%2Fe1%2Flabel").status == 409
    assert browser.answer("k/e1/label", "hall", "b1").body["error"] == "card_gone"
    assert browser.post("/api/skip", {"card": "k/e1/label"}).body["error"] == "card_gone"
    assert browser.get("/api/timeline?key=k&day=2026-01-01").body["error"] == "other_key"
    assert browser.get("/api/timeline?day=2026-01-01").body["error"] == "other_key"
    rename = {"key": "k", "old": "hall", "new": "den"}
    assert browser.post("/api/labels/rename", rename).body["error"] == "other_key"
    assert answers(served.topics) == []
    assert browser.answer("q/other/label", "hall", "b1").status == 200
    assert browser.post("/api/answers/b1/revise", {"label": "den"}).status == 200
    assert browser.post("/api/answers/b2/revise", {"label": "den"}).body["error"] == "card_gone"


def test_an_invite_for_a_key_does_not_reveal_labels_of_others_to_who_types_them(
    served: Served, invites: Invites
) -> None:
    ann, ben = person(served, invites), person(served, invites, "ben", key="q")
    assert ann.answer("k/e1/label", "Hall", "a1").status == 200
    assert ben.answer("q/other/label", "hall", "b1").status == 200
    assert [answer.y for answer in answers(served.topics)] == ["Hall", "hall"]


def test_an_invite_for_a_key_tells_of_those_only_who_see_the_key(
    served: Served, invites: Invites
) -> None:
    keys = {"ann": None, "ben": "q", "cy": "q", "dan": "k"}
    browsers = {name: person(served, invites, name, key=key) for name, key in keys.items()}
    for browser in browsers.values():
        browser.get("/api/next")
    seen = {
        "ann": ["ben", "cy", "dan"],
        "ben": ["ann", "cy"],
        "dan": ["ann"],
    }
    for name, expected in seen.items():
        with closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)) as stream:
            stream.request("GET", "/api/stream", headers={"Cookie": browsers[name].cookie or ""})
            told = events_of(stream.getresponse())
            assert next(data for kind, data in told if kind == "others") == expected, name


def test_revoking_works_at_once_also_on_an_open_stream(served: Served, invites: Invites) -> None:
    browser, other = person(served, invites), person(served, invites, "ben")
    with closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)) as connection:
        connection.request("GET", "/api/stream", headers={"Cookie": browser.cookie or ""})
        stream = connection.getresponse()
        assert stream.status == 200
        assert invites.revoke("ann")
        assert browser.get("/api/next").status == 401
        assert other.get("/api/next").status == 200
        stream.read()  # until its end


def test_while_the_invites_cannot_be_read_annotators_wait_and_the_log_says_why(
    served: Served, invites: Invites, caplog: pytest.LogCaptureFixture
) -> None:
    ann, kept = person(served, invites), invites.path.read_bytes()
    invites.path.write_bytes(kept[:20])
    reply = ann.get("/api/me")
    assert (reply.status, reply.body["error"]) == (503, "no_disk")
    wait_until(lambda: caplog.records)
    [told] = caplog.records
    assert "invites.json is not a file of invites" in told.__dict__["fields"]["cause"]
    invites.path.write_bytes(kept)
    assert ann.get("/api/me").status == 200


def test_no_annotator_can_change_answers_of_others(served: Served, invites: Invites) -> None:
    ann, ben = person(served, invites), person(served, invites, "ben")
    assert ann.answer("k/e1/label", "hall", "a1").status == 200
    for path, body in (
        ("/api/answers/a1/undo", {}),
        ("/api/answers/page%2Fann%2Fa1/undo", {}),
        ("/api/answers/page%2Fann%2Fa1/revise", {"label": "den"}),
    ):
        reply = ben.post(path, body)
        assert (reply.status, reply.body["error"]) == (409, "cannot_undo")
    assert ben.get("/api/history").body == {"history": []}
    renamed = ben.post("/api/labels/rename", {"key": "k", "old": "hall", "new": "den"})
    assert (renamed.status, renamed.body["changed"]) == (200, 0)
    # Nor are their ids taken: that of an answer is made of the name of who gives it.
    write(served.topics, request("e7"))
    wait_until(lambda: ben.get("/api/card/k/e7/label").status == 200)
    assert ben.answer("k/e7/label", "den", "page/ann/a2").status == 200
    first, other = answers(served.topics)
    assert (first.annotator, first.y, first.answer_id) == ("ann", "hall", "page/ann/a1")
    assert (other.annotator, other.answer_id) == ("ben", "page/ben/page%2Fann%2Fa2")


def test_a_client_waits_until_the_next_token_is_there() -> None:
    rates = Rates(rate=2.0, burst=1.0)
    times = (0.0, 0.0, 0.125, 0.25, 0.5, 0.5)
    assert [rates.wait_s("ann", now) for now in times] == [0.0, 0.5, 0.375, 0.25, 0.0, 0.5]


def test_streams_and_requests_of_one_token_are_limited(
    served: Served, invites: Invites, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_s = Rates.wait_s  # on a busy machine requests come more slowly than they are allowed
    monkeypatch.setattr(Rates, "wait_s", lambda rates, client, _: wait_s(rates, client, 0.0))
    browser, other = person(served, invites), person(served, invites, "ben")
    streams = []
    for _ in range(MAX_STREAMS):
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
        connection.request("GET", "/api/stream", headers={"Cookie": browser.cookie or ""})
        assert connection.getresponse().status == 200
        streams.append(connection)
    refused = browser.get("/api/stream")
    assert (refused.status, refused.body["error"]) == (429, "too_many_streams")
    for connection in streams:
        connection.close()
    found = [browser.get("/api/me").status for _ in range(int(BURST))]
    assert found[0] == 200
    assert found[-1] == 429  # the streams were requests, too
    limited = browser.get("/api/me")
    assert limited.body["error"] == "too_many_requests"
    assert int(limited.headers["retry-after"]) >= 1
    assert other.get("/api/me").status == 200


def test_a_closed_stream_makes_room_for_another(served: Served, invites: Invites) -> None:
    browser = person(served, invites)
    for _ in range(2 * MAX_STREAMS):
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
        with closing(connection):
            connection.request("GET", "/api/stream", headers={"Cookie": browser.cookie or ""})
            reply = connection.getresponse()
            assert reply.status == 200
            assert next(iter(events_of(reply)))[0] in ("card", "progress", "others")
            reply.close()
        wait_until(lambda: served.page.traffic.streams.total() == 0)


def test_what_fails_inside_is_reported_without_what_was_said(
    served: Served,
    invites: Invites,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    browser = person(served, invites)

    def fail(*_: object, **__: object) -> None:
        raise ArithmeticError(SECRET_LABEL)

    monkeypatch.setattr(served.live.desk, "reply", fail)
    reply = browser.answer("k/e1/label", SECRET_LABEL, "a1")
    assert (reply.status, reply.body["error"]) == (500, "internal")
    assert SECRET_LABEL not in json.dumps(reply.body)
    wait_until(lambda: caplog.records)
    [line] = [record for record in caplog.records if record.name == "streamgp.page"]
    assert "ArithmeticError at" in line.__dict__["fields"]["cause"]
    assert SECRET_LABEL not in caplog.text


def test_metrics_count_and_name_nobody(served: Served, invites: Invites) -> None:
    browser = person(served, invites)
    browser.answer("k/e1/label", SECRET_LABEL, "a1")
    write(served.topics, challenge("e9", key="k", at=time.time(), annotator="ann"))
    wait_until(lambda: browser.get("/api/next").body["progress"]["waiting"] == 3)
    text = browser.get("/metrics").body.decode()
    assert "streamgp_page_answer_seconds_count 1" in text
    assert "streamgp_page_open_questions 3" in text
    assert 'route="/api/answers",method="POST",status="200"} 1' in text
    assert "ann" not in text.replace("answer", "")
    assert SECRET_LABEL not in text
