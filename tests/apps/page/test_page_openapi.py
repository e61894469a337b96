"""`openapi.json` describes the routes that there are, and what they really return."""

from __future__ import annotations

import json
from typing import Any, get_args

import jsonschema
import msgspec
import pytest

from connectors.annotation.own_answers import CannotUndo
from connectors.annotation.replies import BadReply, Reply
from connectors.memory import MemoryTopics
from streamgp.apps.page.access import ErrorCode
from streamgp.apps.page.http import (
    JoinBody,
    OverruleBody,
    RenameBody,
    ReviseBody,
    SkipBody,
    openapi,
)
from streamgp.apps.page.preferences import BadPreferences, Preferences
from tests.helpers.page_server import Served, request, write

TEXT = openapi().decode()
DOCUMENT: dict[str, Any] = json.loads(TEXT)
SCHEMAS = DOCUMENT["components"]["schemas"]


def schema_of(path: str, method: str = "get") -> dict[str, Any]:
    """Return what a route returns, to be checked on its own."""
    found = DOCUMENT["paths"][path][method]["responses"]["200"]["content"]
    return {**found["application/json"]["schema"], "components": DOCUMENT["components"]}


def test_every_route_is_described_with_its_methods_and_none_besides() -> None:
    with Served(MemoryTopics()) as served:
        routes = {
            (route.path.replace(":path", ""), method.lower())
            for route in served.page.app.routes
            for method in route.methods - {"HEAD"}  # type: ignore[attr-defined]
        }
        assert served.browser().get("/api/openapi.json").body == DOCUMENT
    described = {
        (path, method)
        for path, operations in DOCUMENT["paths"].items()
        for method in operations
        if method != "parameters"
    }
    assert described == routes


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("Answer", Reply),
        ("Revision", ReviseBody),
        ("Join", JoinBody),
        ("Skip", SkipBody),
        ("Overrule", OverruleBody),
        ("Rename", RenameBody),
        ("Preferences", Preferences),
    ],
)
def test_bodies_have_the_fields_that_are_described(name: str, body: type[msgspec.Struct]) -> None:
    fields = msgspec.structs.fields(body)
    assert SCHEMAS[name]["properties"].keys() == {field.name for field in fields}
    assert set(SCHEMAS[name].get("required", ())) == {f.name for f in fields if f.required}


def test_every_error_is_described() -> None:
    found = set(get_args(ErrorCode)) - {"internal", "not_found", "too_slow"}
    assert {error for error in found if error not in TEXT} == set()
    reasons = {*get_args(BadReply), *get_args(BadPreferences), *get_args(CannotUndo)}
    assert set(SCHEMAS["Error"]["properties"]["reason"]["enum"]) == reasons


def test_what_comes_back_is_as_described() -> None:
    topics = MemoryTopics()
    write(topics, request("e1"), request("e2"))
    with Served(topics) as served:
        browser = served.browser()
        for path, method, reply in (
            ("/api/me", "get", browser.get("/api/me")),
            ("/api/next", "get", browser.get("/api/next")),
            ("/api/reserve", "get", browser.get("/api/reserve")),
            ("/api/card/{card_id}", "get", browser.get("/api/card/k%2Fe1%2Flabel")),
            ("/api/answers", "post", browser.answer("k/e1/label", "hall", "a1")),
            ("/api/history", "get", browser.get("/api/history")),
            ("/api/timeline", "get", browser.get("/api/timeline?key=k&day=2026-11-23")),
            ("/api/stats", "get", browser.get("/api/stats")),
            (
                "/api/answers/{answer_id}/undo",
                "post",
                browser.post("/api/answers/a1/undo", {}),
            ),
            ("/api/skip", "post", browser.post("/api/skip", {"card": "k/e1/label"})),
        ):
            assert reply.status == 200, path
            jsonschema.validate(reply.body, schema_of(path, method))
        card = browser.get("/api/next").body["card"]
        assert card.keys() == SCHEMAS["Card"]["properties"].keys() - {"truth"}  # of the demo alone
