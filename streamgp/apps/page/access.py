"""Access to the page: hosts, tokens, origins, sizes and rates; every refused request is logged.

Middleware around the whole application. Requests that it passes on come from a known annotator and
from the page itself, have the expected form, and are not too frequent. Only this module sets the
annotator's name, which is never taken from a request.

"""

from __future__ import annotations

import ipaddress
import logging
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from urllib.parse import quote, unquote

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamgp.apps.page.invites import Invites, Person
from streamgp.common.latest import Latest

MAX_BODY = 64 * 1024
"""The largest body of a request, in bytes."""
MAX_STREAMS = 4
"""The largest number of open event streams per token."""
RATE, BURST = 20.0, 300.0
"""Sustained requests a second per token, and the size of a burst."""
LINE_RATE, LINE_BURST = 1.0, 100.0
"""Lines a second that the log has for each error in the long run, and the size of a burst."""
HEADER = "x-streamgp"
AS_HEADER = "x-streamgp-as"
"""Name of the annotator whose answer the page means to send, percent-encoded; only compared, never
trusted."""
COOKIE_AGE_S = 400 * 86_400
"""The longest that browsers keep a cookie."""
ATTEMPT_AGE_S = 7 * 86_400
"""How long a browser that has seen a link may repeat the exchange, after a reply that was lost."""
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
JOIN = "/join/"
"""How the paths of links begin."""
MIN_ATTEMPT = 16
"""Least length of the secret with which a browser may repeat the exchange of a link."""
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_SAFE_METHODS = ("GET", "HEAD")
_MAX_BUCKETS = 10_000

_log = logging.getLogger("streamgp.page")


def say(level: int, event: str, /, **fields: Any) -> None:
    """Log one event with its fields; never a label, an id, a name or a secret."""
    _log.log(level, event, extra={"fields": fields})


ErrorCode: TypeAlias = Literal[
    "bad_body",
    "bad_day",
    "bad_http",
    "bad_json",
    "bad_link",
    "bad_preferences",
    "bad_reply",
    "cannot_undo",
    "card_gone",
    "cut_off",
    "different_body",
    "http",
    "internal",
    "no_broker",
    "no_disk",
    "no_header",
    "no_invites",
    "no_json",
    "no_supervisor",
    "no_token",
    "not_found",
    "other_key",
    "other_person",
    "reading",
    "too_large",
    "too_many_requests",
    "too_many_streams",
    "too_slow",
    "wrong_host",
    "wrong_origin",
    "wrong_site",
]


class Refused(Exception):  # noqa: N818 (a response to the client, not an error of ours)
    """A request that is answered with an error.

    Parameters
    ----------
    error
        The error code, one word for programs; the page has a text for each that people can meet.
    expected
        What was expected instead, or what to do.
    reason
        The reason in particular, likewise, where an error has several.
    retry_after_s
        After how many seconds a retry may succeed, None if it never will.
    closes
        Whether the connection ends, since what follows on it may be part of this request.

    """

    def __init__(
        self,
        status: int,
        error: ErrorCode,
        what: str,
        expected: str,
        *,
        reason: str | None = None,
        retry_after_s: float | None = None,
        closes: bool = False,
    ) -> None:
        super().__init__(what)
        self.status = status
        self.error = error
        self.what = what
        self.expected = expected
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.closes = closes

    @property
    def headers(self) -> dict[str, str]:
        """The headers that every response to it has, whatever its body."""
        headers = {"connection": "close"} if self.closes else {}
        if self.retry_after_s is not None:
            headers["retry-after"] = str(max(1, round(self.retry_after_s)))
        return headers

    def response(self) -> Response:
        body = {"error": self.error, "what": self.what, "expected": self.expected}
        if self.reason is not None:
            body["reason"] = self.reason
        return json_response(body, status=self.status, headers=self.headers)


def json_response(
    body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a JSON response that must not be cached."""
    return Response(
        msgspec.json.encode(body),
        status_code=status,
        media_type="application/json",
        headers={"cache-control": "no-store", **(headers or {})},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """How the page is reached, and who may use it.

    Parameters
    ----------
    hosts
        Allowed values of the header Host, in lower case and without ports.
    any_address
        Whether any IP address is allowed too; another site's name cannot be one.
    port
        The port that it listens on; part of the cookie's name, as cookies ignore ports.
    is_tls
        Whether a proxy terminates TLS.
    local
        The annotator if there is no login; None if invites are required.

    """

    hosts: frozenset[str] = LOOPBACK_NAMES
    any_address: bool = False
    port: int = 0
    is_tls: bool = False
    local: Person | None = None

    @property
    def scheme(self) -> str:
        return "https" if self.is_tls else "http"

    @property
    def cookie(self) -> str:
        """The name of the cookie; browsers accept the prefix only with TLS."""
        return "__Host-streamgp" if self.is_tls else f"streamgp-{self.port}"

    def let_in(self, response: Response, token: str) -> None:
        """Give the browser its token."""
        self._set_cookie(response, self.cookie, token, COOKIE_AGE_S, "strict")

    def token(self, headers: Headers) -> str | None:
        return _cookie(headers, self.cookie)

    def set_attempt(self, response: Response, attempt: str) -> None:
        # Lax: most links are opened from a mail, which a strict cookie would not come along with.
        self._set_cookie(response, self._attempt, attempt, ATTEMPT_AGE_S, "lax")

    def end_attempt(self, response: Response) -> None:
        self._set_cookie(response, self._attempt, "", 0, "lax")

    def attempt(self, request: Request) -> str | None:
        """Return the secret with which the browser may repeat the exchange of a link."""
        found = _cookie(request.headers, self._attempt)
        return None if found is None or len(found) < MIN_ATTEMPT else found

    @property
    def _attempt(self) -> str:
        return f"{self.cookie}-link"

    def _set_cookie(
        self, response: Response, name: str, value: str, age_s: int, site: Literal["lax", "strict"]
    ) -> None:
        response.set_cookie(
            name,
            value,
            max_age=age_s,
            path="/",
            secure=self.is_tls,
            httponly=True,
            samesite=site,
        )

    def allows(self, host: str) -> bool:
        """Return whether the header Host names this page."""
        name = host_name(host)
        return name in self.hosts or (self.any_address and _is_address(name))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def host_name(host: str) -> str:
    """Return the name in a header Host, without the port.

    Examples
    --------
    >>> [host_name(host) for host in ("LocalHost:8080", "[::1]:8080", "example.org.")]
    ['localhost', '[::1]', 'example.org']

    """
    host = host.lower()
    end = host.find("]") + 1 if host.startswith("[") else host.find(":")
    name = host if end <= 0 else host[:end]
    return name.removesuffix(".")


def hosts_of(bound: str, names: Iterable[str], machine: str) -> tuple[frozenset[str], bool]:
    """Return the host names of a page, and whether any IP address is allowed.

    Examples
    --------
    >>> sorted(hosts_of("127.0.0.1", [], "mill")[0])
    ['127.0.0.1', '[::1]', 'localhost']
    >>> sorted(hosts_of("0.0.0.0", ["labels.example.org"], "mill")[0] - LOOPBACK_NAMES)
    ['0.0.0.0', 'labels.example.org', 'mill']

    """
    further = frozenset(host_name(name) for name in names)
    if is_loopback(bound):
        return LOOPBACK_NAMES | further | {_written(bound)}, False
    return LOOPBACK_NAMES | further | {_written(bound), machine.lower()}, True


def _written(address: str) -> str:
    return f"[{address}]" if ":" in address else address.lower()


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached only from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Rates:
    """Token buckets: each client has a sustained rate, per second, and a burst.

    Examples
    --------
    >>> rates = Rates(RATE, BURST)
    >>> waits_s = [rates.wait_s("ann", now=0.0) for _ in range(301)]
    >>> waits_s[299:], rates.wait_s("bob", now=0.0)
    ([0.0, 0.05], 0.0)

    """

    # _buckets  what was left of each client's burst, and when
    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._buckets: Latest[str, tuple[float, float]] = Latest(_MAX_BUCKETS)

    def wait_s(self, client: str, now: float) -> float:
        """Take a token from a client's bucket; return 0, or how long to wait for one."""
        left, at = self._buckets.get(client, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        is_due = left >= 1.0
        self._buckets.put(client, (left - 1.0 if is_due else left, now))
        return 0.0 if is_due else (1.0 - left) / self._rate


@dataclass(slots=True)
class Traffic:
    """Counts of requests, over all annotators.

    Attributes
    ----------
    requests
        By route, method and status.
    refused
        By error.
    streams
        Open event streams, by token.
    lines
        Rates of lines in the log, by error.

    """

    requests: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    streams: Counter[str] = field(default_factory=Counter)
    lines: Rates = field(default_factory=lambda: Rates(LINE_RATE, LINE_BURST))


def note_response(
    traffic: Traffic,
    *,
    route: str,
    method: str,
    status: int,
    error: str,
    cause: str | None = None,
) -> None:
    """Count a response, and log it if it refuses the request."""
    traffic.requests[route, method, status] += 1
    if status < 400:
        return
    traffic.refused[error] += 1
    # Anyone who can reach the page can be refused, and must not be able to fill the disk.
    if not traffic.lines.wait_s(error, time.monotonic()):
        say(
            logging.WARNING if cause is None else logging.ERROR,
            "refused",
            status=status,
            method=method,
            route=route,
            error=error,
            **({} if cause is None else {"cause": cause}),
        )


class Guard:
    """ASGI middleware that enforces a `Door`.

    Parameters
    ----------
    door
        How the page is reached.
    invites
        The invites; None if there is no login.
    routes
        The page's routes: a log may contain only their templates, not paths.
    refusal
        Returns the response to a refused request.

    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        door: Door,
        invites: Invites | None,
        traffic: Traffic,
        routes: Sequence[Route],
        refusal: Callable[[Request, Refused], Response],
    ) -> None:
        self._app = app
        self._door = door
        self._invites = invites
        self._traffic = traffic
        self._routes = routes
        self._refusal = refusal
        self._rates = Rates(RATE, BURST)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        status = 0

        async def send_secured(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, receive, send_secured)
        except Refused as refused:
            scope["streamgp.error"] = refused.error
            await self._refusal(Request(scope), refused)(scope, receive, send_secured)
        # A failure must not reveal data of other requests to the client or the log.
        except Exception as error:
            if status:
                raise  # part of a response was sent; the connection ends
            scope["streamgp.error"] = "internal"
            scope["streamgp.cause"] = place_of(error)
            failed = Refused(500, "internal", "the server failed", "tell who runs this page")
            await failed.response()(scope, receive, send_secured)
        finally:
            self._note(scope, status)

    def _check(self, scope: Scope) -> None:
        """Raise Refused for a request that is not allowed."""
        headers = Headers(scope=scope)
        # A proxy that goes by the other one of the two would take the rest for another request.
        if "transfer-encoding" in headers and "content-length" in headers:
            raise no_http()
        host = headers.get("host", "")
        if not self._door.allows(host):
            raise Refused(
                403,
                "wrong_host",
                "this page is not served under the requested name",
                "the address that `streamgp page` printed; other names need --host NAME",
            )
        is_safe = scope["method"] in _SAFE_METHODS
        if not scope["path"].startswith("/api/") or scope["path"] == "/api/openapi.json":
            # A link is exchanged. Another site can open its page, but not press the button there.
            if not is_safe:
                self._check_writing(headers, host, by_form=scope["path"].startswith(JOIN))
            return
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise Refused(
                403, "wrong_site", "another site sent this request", "requests of the page"
            )
        person = self._identified(scope, headers)
        if not is_safe:
            self._check_writing(headers, host)
        wait_s = self._rates.wait_s(person.token_id, time.monotonic())
        if wait_s:
            raise Refused(
                429,
                "too_many_requests",
                "too many requests from one browser",
                f"at most {RATE:g} a second in the long run",
                retry_after_s=wait_s,
            )

    def _identified(self, scope: Scope, headers: Headers) -> Person:
        """Return the annotator who sends a request, and put them into the scope."""
        person = self._person(headers)
        if person is None:
            # The annotator may well be invited: the answers must wait for a repair.
            if self._invites is not None and (trouble := self._invites.trouble) is not None:
                scope["streamgp.cause"] = trouble
                raise no_disk()
            raise Refused(
                401,
                "no_token",
                "this browser has no invite, or the invite was revoked",
                "a link as `streamgp invite` prints it",
            )
        scope["streamgp.person"] = person
        # On a shared device, one annotator's unsent answers must not be sent as another's.
        if unquote(headers.get(AS_HEADER, quote(person.name))) != person.name:
            raise Refused(
                403,
                "other_person",
                "this browser now belongs to another annotator",
                "requests of the annotator to whom the page belongs",
            )
        return person

    def _check_writing(self, headers: Headers, host: str, *, by_form: bool = False) -> None:
        origin = f"{self._door.scheme}://{host}"
        if headers.get("origin") != origin:
            raise Refused(
                403,
                "wrong_origin",
                "another site sent this, or a proxy changed the header Host",
                f"the header Origin: {origin}, which follows from Host",
            )
        if not (by_form and is_form(headers)):  # a form without a script can send neither
            if headers.get(HEADER) != "1":
                raise Refused(
                    403, "no_header", "the header X-Streamgp is missing", "the header X-Streamgp: 1"
                )
            if _media_type(headers) != "application/json":
                raise Refused(
                    415,
                    "no_json",
                    "the body is not JSON",
                    "the header Content-Type: application/json",
                )
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length[:20]) > MAX_BODY:
            raise too_large()

    def _person(self, headers: Headers) -> Person | None:
        if self._invites is None:
            return self._door.local
        token = self._door.token(headers)
        return None if token is None else self._invites.person(token)

    def _note(self, scope: Scope, status: int) -> None:
        """Count a request, and log it if it was refused."""
        # Paths contain ids, and links are secrets: only the route is logged and counted. A request
        # refused here never reaches the router, so the route is matched here.
        matching = (route for route in self._routes if route.matches(scope)[0] is not Match.NONE)
        route = next((route.path for route in matching), "other")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        note_response(
            self._traffic,
            route=route,
            method=method,
            status=status,
            error=scope.get("streamgp.error", "http"),
            cause=scope.get("streamgp.cause"),
        )


_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")


def is_form(headers: Headers) -> bool:
    """Return whether a request comes from a form, as browsers send it without a script."""
    return _media_type(headers) == "application/x-www-form-urlencoded"


def _media_type(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def no_http() -> Refused:
    """Return the refusal of a request that is not HTTP, or whose end is uncertain."""
    return Refused(400, "bad_http", "this is not an HTTP request", "HTTP/1.1", closes=True)


def too_large() -> Refused:
    """Return the refusal of too large a body."""
    return Refused(413, "too_large", "the body is too large", f"at most {MAX_BODY} bytes")


def no_disk() -> Refused:
    """Return the refusal of a request that needs a file which cannot be read or written."""
    return Refused(
        503, "no_disk", "a file of the page cannot be read or written", "tell who runs this page"
    )


def _cookie(headers: Headers, name: str) -> str | None:
    for part in headers.get("cookie", "").split(";"):
        found, _, value = part.strip().partition("=")
        if found == name:
            return value
    return None


def place_of(error: BaseException) -> str:
    """Return where an error was raised, without its text, which may quote annotators."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {frame.filename}:{frame.lineno}"
