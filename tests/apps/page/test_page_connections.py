"""No client holds a connection by sending or reading slowly, and anything but HTTP is refused."""

from __future__ import annotations

import logging
import resource
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress

import pytest

from connectors.memory import MemoryTopics
from streamgp.apps.page import program
from streamgp.apps.page.access import SECURITY_HEADERS, Rates
from tests.helpers.page_server import Served
from tests.helpers.topics import wait_until


@pytest.fixture
def served() -> Iterator[Served]:
    with Served(MemoryTopics()) as served:
        yield served


def connect(served: Served) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", served.port))
    connection.settimeout(60.0)
    return connection


def rest(connection: socket.socket) -> bytes:
    """Return everything until the server closes the connection."""
    found = b""
    while chunk := connection.recv(1 << 16):
        found += chunk
    return found


def head(served: Served, path: str, *fields: str) -> bytes:
    lines = (f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{served.port}", *fields, "", "")
    return "\r\n".join(lines).encode()


def takes_more(connection: socket.socket, data: bytes) -> bool:
    """Send, and say whether the connection is still there."""
    try:
        connection.sendall(data)
    except TimeoutError:
        return connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    except ConnectionError:
        return False
    return True


@pytest.mark.parametrize("start", [b"", b"G", b"GET / HTTP/1.1\r\nHost: 127.0"])
def test_a_request_that_never_ends_does_not_hold_its_connection(
    served: Served, monkeypatch: pytest.MonkeyPatch, start: bytes
) -> None:
    monkeypatch.setattr(program, "HEAD_S", 0.2)
    with closing(connect(served)) as connection:
        connection.sendall(start)
        assert rest(connection) == b""


def test_a_body_that_no_route_wants_does_not_hold_its_connection(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "HEAD_S", 0.2)
    with closing(connect(served)) as connection:
        connection.sendall(head(served, "/healthz", "Content-Length: 9"))
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
        connection.sendall(b"x")  # the server no longer takes it for idle
        assert b"HTTP/1.1" not in rest(connection)


def test_a_stream_stays_open_for_longer_than_a_head_may_take(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "HEAD_S", 0.2)
    with closing(connect(served)) as connection:
        connection.sendall(head(served, "/api/stream"))
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
        connection.settimeout(1.0)
        with pytest.raises(TimeoutError):
            rest(connection)


def test_a_client_that_reads_nothing_does_not_hold_its_connection(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "STALL_S", 0.5)
    with closing(socket.socket()) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(0.2)
        connection.connect(("127.0.0.1", served.port))
        asked = b"".join(head(served, "/static/texts/en.json") for _ in range(100))
        wait_until(lambda: not takes_more(connection, asked))


def test_a_request_for_the_head_of_a_stream_holds_nothing(served: Served) -> None:
    with closing(connect(served)) as connection:
        asked = head(served, "/api/stream").replace(b"GET", b"HEAD")
        connection.sendall(asked + head(served, "/healthz", "Connection: close"))
        told = rest(connection)
    assert told.startswith(b"HTTP/1.1 200")
    assert b"text/event-stream" in told
    assert told.endswith(b'{"status":"ok"}')
    assert served.page.traffic.streams.total() == 0


@pytest.mark.parametrize("path", ["/healthz", "/join/link"])  # one is refused in JSON, one in HTML
def test_a_request_whose_end_is_said_twice_ends_the_connection(served: Served, path: str) -> None:
    with closing(connect(served)) as connection:
        fields = ("Accept: text/html", "Content-Length: 4", "Transfer-Encoding: chunked")
        connection.sendall(head(served, path, *fields) + b"0\r\n\r\n" + head(served, "/"))
        told = rest(connection)
    assert told.startswith(b"HTTP/1.1 400 ")
    assert told.count(b"HTTP/1.1") == 1 + told.count(b'"expected":"HTTP/1.1"')


NO_HTTP = {
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "no request line": b"hello\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "a negative length": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
}


@pytest.mark.parametrize("name", NO_HTTP)
def test_what_is_no_http_is_refused_like_anything_else(
    served: Served, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(connect(served)) as connection:
        connection.sendall(NO_HTTP[name])
        answer, _, body = rest(connection).partition(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"error":"bad_http"' in body
    for header in SECURITY_HEADERS:
        assert header.encode() in answer
    wait_until(lambda: caplog.records)
    [line] = caplog.records
    assert (line.name, line.levelno) == ("streamgp.page", logging.WARNING)
    assert line.__dict__["fields"] == {
        "status": 400,
        "method": "other",
        "route": "other",
        "error": "bad_http",
    }
    assert (
        'streamgp_page_refused_total{error="bad_http"} 1'
        in served.browser().get("/metrics").body.decode()
    )


@pytest.mark.parametrize("path", ["/healthz", "/api/stream"])
def test_a_bad_chunk_after_the_response_ends_the_connection_and_nothing_else(
    served: Served, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(connect(served)) as connection:
        connection.sendall(head(served, path, "Transfer-Encoding: chunked"))
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
        connection.sendall(b"zz\r\n")
        rest(connection)
    wait_until(lambda: served.page.traffic.streams.total() == 0)
    assert served.browser().get("/healthz").status == 200
    assert caplog.records == []


def test_clients_that_reset_their_streams_leave_none_behind(served: Served) -> None:
    for _ in range(20):
        connection = connect(served)
        connection.sendall(head(served, "/api/stream"))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    wait_until(lambda: served.page.traffic.streams.total() == 0)
    assert served.browser().get("/api/me").status == 200


def test_connections_above_the_limit_are_closed_and_noted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(program, "_MOST_CONNECTIONS", 3)
    with Served(MemoryTopics()) as served, ExitStack() as stack:
        held = [stack.enter_context(closing(connect(served))) for _ in range(3)]
        for one in held:
            one.sendall(head(served, "/api/stream"))
            assert one.recv(1 << 16).startswith(b"HTTP/1.1 200")
        with closing(connect(served)) as another, suppress(ConnectionError):
            assert rest(another) == b""
        held[0].close()
        wait_until(lambda: served.page.traffic.streams.total() == 2)
        assert served.browser().get("/healthz").status == 200
        assert served.page.traffic.refused["too_many_connections"] == 1
    assert [line.__dict__["fields"]["error"] for line in caplog.records] == ["too_many_connections"]


@pytest.mark.parametrize("what", ["nothing", "half a head", "a request", "unread requests"])
def test_a_client_that_holds_all_connections_keeps_no_one_out(
    monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(program, "_MOST_CONNECTIONS", 4)
    monkeypatch.setattr(program, "HEAD_S", 1000.0)
    with Served(MemoryTopics()) as served, ExitStack() as stack:
        stream = stack.enter_context(closing(connect(served)))
        stream.sendall(head(served, "/api/stream"))
        assert stream.recv(1 << 16).startswith(b"HTTP/1.1 200")
        sent = {
            "nothing": b"",
            "half a head": b"GET / HT",
            "a request": head(served, "/healthz"),
            "unread requests": head(served, "/static/texts/en.json") * 500,
        }[what]
        for _ in range(6):
            held = stack.enter_context(closing(connect(served)))
            with suppress(ConnectionError):
                held.sendall(sent)
        for _ in range(3):
            wait_until(lambda: answers(served))
        assert served.page.traffic.streams.total() == 1


def answers(served: Served) -> bool:
    with suppress(ConnectionError):
        return served.browser().get("/healthz").status == 200
    return False


def test_a_flood_of_refused_requests_fills_no_disk(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(served.page.traffic, "lines", Rates(rate=1e-6, burst=3.0))
    browser = served.browser()
    for _ in range(20):
        assert browser.get("/nothing").status == 404
    assert browser.get("/metrics", Host="other.example").status == 403
    wait_until(lambda: served.page.traffic.refused == {"not_found": 20, "wrong_host": 1})
    wait_until(lambda: len(caplog.records) > 3)  # what is counted is logged next
    logged = [line.__dict__["fields"]["error"] for line in caplog.records]
    assert logged == [*3 * ["not_found"], "wrong_host"]


@pytest.mark.parametrize(("n_files", "most"), [(200, 100), (3000, 1000)])
def test_connections_leave_half_of_the_files_to_the_rest_of_the_program(
    n_files: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (n_files, n_files))
    assert program._most_connections() == most
