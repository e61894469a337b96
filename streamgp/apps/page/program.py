"""Program of `streamgp page`: open, serve, send the last answers."""

from __future__ import annotations

import asyncio
import errno
import logging
import shlex
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import click
import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from connectors.annotation.desk import AnnotationDesk
from connectors.annotation.question_budget import QuestionBudget
from connectors.storage.snapshots import StateError
from connectors.topics import BrokerError, Topics
from connectors.wire.signatures import Signatures
from streamgp.apps.console import (
    DONE,
    INTERNAL_ERROR,
    INTERRUPTED,
    LOST_BROKER,
    Stop,
    in_one_line,
    number,
    tell,
)
from streamgp.apps.deployment.answer_keys import signatures_of
from streamgp.apps.deployment.deployment import visit
from streamgp.apps.page.access import (
    SECURITY_HEADERS,
    Door,
    Traffic,
    hosts_of,
    is_loopback,
    no_http,
    note_response,
    place_of,
    say,
)
from streamgp.apps.page.invites import Invites, Person, invites_of
from streamgp.apps.page.live import LiveDesk
from streamgp.apps.page.preferences import PREFERENCES, PreferenceFile
from streamgp.apps.page.server import Page, PageSettings
from streamgp.base import Label
from streamgp.config.build import build_counting_budgets
from streamgp.config.settings import WorkerConfig

SEND_FOR_S = 15.0
"""How long to keep trying to send the last answers."""
_LOOK_S = 0.1
_GRACE_S = 3
_MOST_CONNECTIONS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Address and reachability of a page.

    Parameters
    ----------
    host, port
        The address to bind; port 0 for any free port.
    behind_proxy
        Whether a proxy in front terminates TLS.
    plain_http
        Whether other machines may reach it without TLS, for example within a private network.
    names
        Further host names that browsers use for it.

    """

    host: str
    port: int
    behind_proxy: bool = False
    plain_http: bool = False
    names: tuple[str, ...] = ()


def check_address(address: Address, *, has_login: bool) -> None:
    """Refuse an address that others could reach without TLS or a login, or not at all by a proxy.

    Raises
    ------
    click.UsageError
        If that is so.

    """
    local = is_loopback(address.host)
    if not has_login and (not local or address.behind_proxy):
        raise click.UsageError(
            "--as NAME lets in everyone who can reach the page, so it works only on a loopback "
            "address without a proxy; invite people with `streamgp invite`"
        )
    if local and address.behind_proxy and not address.names:
        raise click.UsageError(
            "--behind-proxy needs --host NAME, the name that browsers use: requests that a proxy "
            f"passes on for another name than {address.host} are refused"
        )
    if not local and not address.behind_proxy and not address.plain_http:
        raise click.UsageError(
            f"{address.host} can be reached by others, and what they send would travel in plain "
            "text; bind 127.0.0.1 behind a proxy with TLS, or give --behind-proxy if the proxy "
            "runs elsewhere, or --plain-http within a private network"
        )


@contextmanager
def listening(address: Address) -> Iterator[socket.socket]:
    """Bind a socket, and close it at the end.

    Raises
    ------
    click.ClickException
        If it cannot be bound.

    """
    where = f"{address.host}:{address.port}"
    try:
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, place = found[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise click.ClickException(
            f"cannot listen at {where}: {error.strerror or error}; give another --bind"
        ) from None
    with closing(bound):
        try:
            if sys.platform == "win32":  # where SO_REUSEADDR shares the port with any program
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
            else:
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(place)
            bound.listen(socket.SOMAXCONN)
        except OSError as error:
            why = (
                "another program uses this address"
                if error.errno == errno.EADDRINUSE
                else error.strerror
            )
            raise click.ClickException(
                f"cannot listen at {where}: {why}; give another --bind, with port 0 for a free one"
            ) from None
        yield bound


def url_of(address: Address, port: int) -> str:
    """Return the URL to open in a browser."""
    scheme = "https" if address.behind_proxy else "http"
    if address.names:
        name = address.names[0]
        return f"{scheme}://{name}/" if address.behind_proxy else f"{scheme}://{name}:{port}/"
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(address.host, address.host)
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"{scheme}://{host}:{port}/"


def run_page(
    config_file: Path,
    address: Address,
    *,
    broker: str | None,
    annotator: str | None,
    invites_file: Path | None,
    asks_confidence: bool,
    notes_response_time: bool,
) -> int:
    """Serve the page as the options of `streamgp page` say; return the status after a signal."""
    check_address(address, has_login=annotator is None)
    with visit(config_file, broker) as deployment:
        config = deployment.config
        invites = invites_of(config, invites_file) if annotator is None else None
        place = Path(config.worker.state) if invites is None else invites.path.parent
        with in_one_line(StateError):
            preferences = PreferenceFile(place / PREFERENCES)
        if invites is not None and invites.trouble is not None:
            raise click.ClickException(invites.trouble)

        def is_ready(url: str) -> None:
            lacks_invites = invites is not None and not invites.names()
            click.echo(f"page: {url}")  # a program that waits for this line may invite at once
            if lacks_invites:
                kept = [] if invites_file is None else ["--invites", str(invites_file)]
                options = [*kept, "--url", url.rstrip("/")]
                command = shlex.join(["streamgp", "invite", str(config_file), "NAME", *options])
                tell(f"no annotator is invited yet: {command}")

        names = [] if annotator is None else [annotator]
        signatures = signatures_of(config, make_for=names if invites is None else invites.names())
        settings = PageSettings(
            keyed=config.worker.keyed,
            of_numbers=config.target == "number",
            asks_confidence=asks_confidence,
            notes_response_time=notes_response_time,
            open_at_most=config.questions.open_at_most,
            question=config.page.question,
            guidelines=config.page.guidelines,
            supervisors=frozenset(config.people.supervisors),
        )
        return serve(
            deployment.topics,
            settings,
            address,
            annotator=annotator,
            invites=invites,
            preferences=preferences,
            make_desk=partial(_desk_of, config),
            is_ready=is_ready,
            signatures=signatures,
        )


def _desk_of(config: WorkerConfig) -> AnnotationDesk:
    page = config.page
    ends = None if page.low is None or page.high is None else (page.low, page.high)
    return AnnotationDesk(
        keyed=config.worker.keyed,
        answer_horizon_s=config.loop.answer_horizon_s,
        of_numbers=config.target == "number",
        unit=page.unit,
        value_range=ends,
        budget=QuestionBudget(*build_counting_budgets(config)),
        people=config.rules(),
        order=config.questions.order,
        labels=page.labels,
    )


def serve(
    topics: Topics,
    settings: PageSettings,
    address: Address,
    *,
    annotator: str | None,
    invites: Invites | None,
    preferences: PreferenceFile,
    make_desk: Callable[[], AnnotationDesk],
    is_ready: Callable[[str], None],
    trouble: Callable[[], str | None] = lambda: None,
    signatures: Signatures | None = None,
) -> int:
    """Serve a page over some topics until a signal comes; return the exit status.

    Parameters
    ----------
    annotator, invites, preferences
        The annotator if there is no login, the invites, and the annotators' preferences.
    is_ready
        Called with the URL of the page once it can be opened.
    trouble
        Returns any other reason why the program cannot continue, None while there is none.

    """
    with listening(address) as bound, Stop() as stop:
        port = bound.getsockname()[1]
        hosts, any_address = hosts_of(address.host, address.names, socket.gethostname())
        door = Door(
            hosts=hosts,
            any_address=any_address,
            port=port,
            is_tls=address.behind_proxy,
            local=None if annotator is None else Person(name=annotator),
        )
        live = LiveDesk(topics, make_desk, keyed=settings.keyed, signatures=signatures)
        page = Page(live, settings, door=door, invites=invites, preferences=preferences)

        def is_over() -> bool:
            return stop() or trouble() is not None

        url = url_of(address, port)
        n_unsent = asyncio.run(run_server(page, live, bound, is_over, lambda: is_ready(url)))
        if isinstance(live.failure, BrokerError):
            raise live.failure
        if live.failure is not None:
            tell(f"Error: the page has failed: {place_of(live.failure)}")
            return INTERNAL_ERROR
        if (found := trouble()) is not None:
            tell(f"Error: {found}")
            return INTERNAL_ERROR
        if n_unsent:
            tell(f"Error: {number(n_unsent, 'answer')} not sent; the browsers send them again")
            return LOST_BROKER
        return INTERRUPTED if stop.signal == "SIGINT" else DONE


def serve_alone(
    topics: Topics,
    address: Address,
    *,
    annotator: str,
    accuracy: Callable[[], list[tuple[int, float]]],
    truth: Callable[[str], Label | None],
    is_ready: Callable[[str], None],
    trouble: Callable[[], str | None],
) -> int:
    """Serve a page for one annotator over topics of this process; see `serve`.

    Parameters
    ----------
    topics
        The topics, of workers with one learner for all keys.
    address
        Where to serve, a loopback address.
    accuracy, truth
        As in `PageSettings`.
    is_ready, trouble
        As for `serve`.

    """
    check_address(address, has_login=False)
    return serve(
        topics,
        PageSettings(keyed=False, accuracy=accuracy, truth=truth),
        address,
        annotator=annotator,
        invites=None,
        preferences=PreferenceFile(None),
        make_desk=lambda: AnnotationDesk(keyed=False),
        is_ready=is_ready,
        trouble=trouble,
    )


class _Server(uvicorn.Server):
    """A server that leaves signals to the surrounding program."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing."""
        yield


async def run_server(
    page: Page,
    live: LiveDesk,
    bound: socket.socket,
    is_over: Callable[[], bool],
    is_ready: Callable[[], None],
) -> int:
    """Serve until the end; return how many answers could not be sent."""
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    most = _most_connections()
    server = _Server(
        uvicorn.Config(
            page.app,
            http=connections(page.traffic, most=most),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            # So many are accepted at once, before the first of them can be closed.
            backlog=max(1, most // 5),
            timeout_keep_alive=30,
            timeout_graceful_shutdown=_GRACE_S,
            h11_max_incomplete_event_size=32_768,
        )
    )
    serving = asyncio.create_task(_serve(server, bound))
    is_told = False
    trouble: str | None = None
    while not serving.done():
        if server.started and not is_told:
            is_told = True
            is_ready()
        if is_over() or (server.started and live.has_failed):
            page.end_streams()
            server.should_exit = True
        elif server.started:
            trouble = _say_changed(trouble, live.trouble or live.sending_trouble)
        await asyncio.wait([serving], timeout=_LOOK_S)
    return await live.stop(SEND_FOR_S) if await serving else 0


def _say_changed(before: str | None, now: str | None) -> str | None:
    """Log that the broker went away, or came back; return what is wrong now."""
    if before is None and now is not None:
        say(logging.WARNING, "broker-away", reason=" ".join(now.split()))
    elif before is not None and now is None:
        say(logging.INFO, "broker-back")
    return now


async def _serve(server: uvicorn.Server, bound: socket.socket) -> bool:
    """Serve until told to stop; return whether the page could start (see `failure`)."""
    try:
        await server.serve(sockets=[bound])
    except SystemExit:  # raised by newer versions of uvicorn if it could not start
        return False
    return server.started


# --- Connections, closed if a client sends or reads too slowly.
#
# Anyone who can reach the page may open connections, with or without an invite, and the server
# holds only a limited number. Each therefore needs a timeout: uvicorn has one for a connection that
# is idle after a request, but none for a client that never completes a request or never reads the
# response. Above the limit, each new one takes the place of the one that has been idle for longest,
# so that no client keeps the others out by holding many, and is closed if none is idle: without a
# file descriptor left, asyncio would log thousands of tracebacks a second, and the topics could not
# be read.


HEAD_S = 10.0
"""How long the head of a request may take, from the connection or its first byte on."""
STALL_S = 60.0
"""How long a client may leave sent data unread."""


def connections(traffic: Traffic, *, most: int) -> type[asyncio.Protocol]:
    """Return the connection class of a page; see the attributes of `_Connection`."""
    return type("PageConnection", (_Connection,), {"traffic": traffic, "most": most})


def _most_connections() -> int:
    """Return how many connections may be open: at most half of what the process may open."""
    if sys.platform == "win32":  # no limit on sockets
        return _MOST_CONNECTIONS
    import resource

    n_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if n_files == resource.RLIM_INFINITY:
        return _MOST_CONNECTIONS
    return min(_MOST_CONNECTIONS, n_files // 2)


class _Connection(H11Protocol):
    """One connection.

    Attributes
    ----------
    traffic
        Counts of requests.
    most
        How many connections may be open.

    """

    # _head_due   timer that ends the connection unless the head of a request has arrived
    # _stall_due  timer that ends it unless the client has read
    # _heard_at   when the client last sent something, by the clock of the event loop
    traffic: ClassVar[Traffic]
    most: ClassVar[int]
    _head_due: asyncio.TimerHandle | None = None
    _stall_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._heard_at = self.loop.time()
        if len(self.connections) > self.most:
            self._note_refused(503, "too_many_connections")
            known = (each for each in self.connections if isinstance(each, _Connection))
            idle = (each for each in known if each._is_idle)
            oldest = min(idle, key=lambda each: each._heard_at)
            oldest.transport.abort()
            if oldest is self:
                return
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_has_come()
        self._client_reads()
        super().connection_lost(exc)

    @property
    def _is_idle(self) -> bool:
        """Whether it is open, and waits for its client to send a request or to read a response."""
        is_answered = self.cycle is None or self.cycle.response_complete
        is_waiting = is_answered or self._stall_due is not None
        return is_waiting and not self.transport.is_closing()

    def data_received(self, data: bytes) -> None:
        self._heard_at = self.loop.time()
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            # Part of a head, or of a body that no route has read.
            self._await_head()
        else:
            self._head_has_come()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._await_reader()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._client_reads()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 (that of uvicorn has it)
        """Answer invalid HTTP like other refused requests, and close the connection."""
        if self.conn.our_state is h11.IDLE:
            refused = no_http()
            response = refused.response()
            headers = [
                *response.raw_headers,
                *((k.encode(), v.encode()) for k, v in SECURITY_HEADERS.items()),
            ]
            for event in (
                h11.Response(status_code=response.status_code, headers=headers),
                h11.Data(data=bytes(response.body)),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
            self._note_refused(response.status_code, refused.error)
        # In the middle of a body, the request already has its response, or its route notices that
        # the client has gone.
        self._close()

    def _note_refused(self, status: int, error: str) -> None:
        note_response(self.traffic, route="other", method="other", status=status, error=error)

    def _close(self) -> None:
        """Close the connection after the client has read what was sent before."""
        self.transport.close()
        self._await_reader()

    def _await_head(self) -> None:
        if self._head_due is None:
            self._head_due = self.loop.call_later(HEAD_S, self._close)

    def _head_has_come(self) -> None:
        if self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None

    def _await_reader(self) -> None:
        if self._stall_due is None:
            self._stall_due = self.loop.call_later(STALL_S, self.transport.abort)

    def _client_reads(self) -> None:
        if self._stall_due is not None:
            self._stall_due.cancel()
            self._stall_due = None
