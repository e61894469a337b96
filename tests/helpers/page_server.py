"""A page served from a thread of the test, and browsers that are plain HTTP clients."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import pytest

from connectors.annotation.desk import AnnotationDesk
from connectors.topics import Topics
from connectors.wire.outbound import Outbound
from connectors.wire.signatures import Signatures
from streamgp.apps.page import program
from streamgp.apps.page.access import Door
from streamgp.apps.page.invites import Invites, Person
from streamgp.apps.page.live import LiveDesk
from streamgp.apps.page.preferences import PreferenceFile
from streamgp.apps.page.program import Address, listening, run_server
from streamgp.apps.page.server import Page, PageSettings
from streamgp.interactive.messages import Answer, LabelRequest
from streamgp.interactive.people import DEFAULT_PEOPLE, People
from tests.helpers.topics import said, wait_until

_PATIENCE_S = 60.0


def request(event_id: str, *, key: str = "k", at: float | None = None) -> LabelRequest:
    """Return a label request."""
    return LabelRequest(
        request_id=f"{event_id}/label",
        event_id=event_id,
        key=key,
        x={"a": 1.0},
        reason="AlwaysAsk",
        score=1.0,
        threshold=0.0,
        requested_at=time.time() if at is None else at,
    )


def write(topics: Topics, *messages: Any) -> None:
    """Write messages as a worker would."""
    outbound = Outbound("/streamgp/test", keyed=True)
    link = topics.client(group="asking", instance="asking", max_records=10)
    end = time.monotonic() + _PATIENCE_S
    while not link.assigned and time.monotonic() < end:
        link.poll(0.1)
    link.commit([outbound.message(each, 0) for each in messages])
    link.close(leave=True)


def answers(topics: Topics) -> list[Answer]:
    """Return all answers in order."""
    return [each for each in said(topics, "answers") if isinstance(each, Answer)]


class Reply(NamedTuple):
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: Any


class Browser:
    """A client that sends what a page would, unless told otherwise.

    Parameters
    ----------
    port
        Port of the page.
    cookie
        Cookie to send.
    host
        What the page takes for its host.

    """

    def __init__(self, port: int, cookie: str | None = None, host: str | None = None) -> None:
        self.port = port
        self.cookie = cookie
        self.host = host or f"127.0.0.1:{port}"

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str | None] | None = None,
        data: bytes | None = None,
    ) -> Reply:
        """Send a request; headers that are None are left out."""
        sent: dict[str, str | None] = {"Host": self.host, "Cookie": self.cookie}
        if method not in ("GET", "HEAD"):
            sent |= {
                "Origin": f"http://{self.host}",
                "X-Streamgp": "1",
                "Content-Type": "application/json",
            }
            data = json.dumps(body).encode() if data is None else data
        sent |= headers or {}
        with closing(
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE_S)
        ) as connection:
            connection.request(
                method, path, data, {name: value for name, value in sent.items() if value}
            )
            reply = connection.getresponse()
            raw = reply.read()
        told = {name.lower(): value for name, value in reply.getheaders()}
        is_json = told.get("content-type") == "application/json" and raw
        return Reply(reply.status, told, json.loads(raw) if is_json else raw)

    def get(self, path: str, **headers: str) -> Reply:
        """Send a GET."""
        return self.send("GET", path, headers=headers)

    def post(self, path: str, body: Any, **options: Any) -> Reply:
        """Send a POST."""
        return self.send("POST", path, body, **options)

    def card(self) -> Any:
        """Return the next card, once there is one."""
        wait_until(lambda: self.get("/api/next").body["card"])
        return self.get("/api/next").body["card"]

    def answer(self, card: str, label: Any, answer_id: str, **more: Any) -> Reply:
        """Give a label."""
        body = {"card": card, "answer_id": answer_id, "action": "label", "label": label, **more}
        return self.post("/api/answers", body)

    def press(self, link: str, form: str = "", **headers: str | None) -> Reply:
        """Press the button of the page that a link opens."""
        sent = {"X-Streamgp": None, "Content-Type": "application/x-www-form-urlencoded"}
        return self.post(f"/join/{link}", None, data=form.encode(), headers={**sent, **headers})

    def join(self, link: str, **headers: str | None) -> Reply:
        """Exchange a link, as a program does, and keep the cookie."""
        reply = self.post(f"/join/{link}", {}, headers=headers)
        self.cookie = reply.headers.get("set-cookie", "").partition(";")[0] or None
        return reply


class Served:
    """A page in a thread.

    Parameters
    ----------
    topics
        The topics.
    invites
        Who is invited; without them `ann` answers, and needs no login.
    door, settings
        As for the page.
    preferences
        File of preferences; None to keep them in memory.
    people
        Who may answer for whom.
    signatures
        Signs and verifies answers.

    """

    def __init__(
        self,
        topics: Topics,
        *,
        invites: Invites | None = None,
        settings: PageSettings | None = None,
        preferences: Path | None = None,
        door: Callable[[int], Door] | None = None,
        clock: Callable[[], float] = time.time,
        people: People = DEFAULT_PEOPLE,
        signatures: Signatures | None = None,
    ) -> None:
        self.topics = topics
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._listening = listening(Address(host="127.0.0.1", port=0))
        self._socket = self._listening.__enter__()
        self.port: int = self._socket.getsockname()[1]
        local = Person(name="ann") if invites is None else None
        settings = settings or PageSettings()
        self.live = LiveDesk(
            topics,
            lambda: AnnotationDesk(keyed=settings.keyed, people=people),
            keyed=settings.keyed,
            signatures=signatures,
            clock=clock,
        )
        self.page = Page(
            self.live,
            settings,
            door=Door(port=self.port, local=local) if door is None else door(self.port),
            invites=invites,
            preferences=PreferenceFile(preferences),
            clock=clock,
        )
        self._thread = threading.Thread(target=self._run, name="served")

    def _run(self) -> None:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(program, "_LOOK_S", 0.01)  # tests wait for each start and each end
            asyncio.run(
                run_server(self.page, self.live, self._socket, self._stop.is_set, self._ready.set)
            )

    def __enter__(self) -> Served:
        self._thread.start()
        assert self._ready.wait(_PATIENCE_S)
        wait_until(lambda: self.live.is_ready)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._listening.__exit__(kind, error, trace)

    @property
    def is_running(self) -> bool:
        """Whether the server has not ended by itself."""
        return self._thread.is_alive()

    def browser(self, cookie: str | None = None) -> Browser:
        """Return a browser for this page."""
        return Browser(self.port, cookie)


def events_of(lines: Iterable[bytes]) -> Iterable[tuple[str, Any]]:
    """Yield the events of a stream, which sends something now and then, for a limited time."""
    kind, end = "", time.monotonic() + 4.0 * _PATIENCE_S
    for line in lines:
        assert time.monotonic() < end, "no such event in time"
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            yield kind, json.loads(value)
