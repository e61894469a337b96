"""Program of `streamgp page`: open, serve, send the last answers."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click
import uvicorn

from connectors.annotation.desk import AnnotationDesk
from connectors.annotation.question_budget import QuestionBudget
from connectors.storage.snapshots import StateError
from connectors.topics import RefusedError, Topics
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
from streamgp.apps.page.access import Door, place_of
from streamgp.apps.page.address import Address, check_address, hosts_of, listening, url_of
from streamgp.apps.page.connections import connections
from streamgp.apps.page.invites import Invites, Person, invites_of, state_of
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


def run_page(
    config_file: Path,
    address: Address,
    *,
    broker: str | None = None,
    annotator: str | None = None,
    invites_file: Path | None = None,
    asks_confidence: bool = False,
    notes_response_time: bool = True,
) -> int:
    """Serve the page as the options of `streamgp page` say; return the status after a signal."""
    check_address(address, has_login=annotator is None)
    with visit(config_file, broker) as deployment:
        config = deployment.config
        invites = invites_of(config, invites_file) if annotator is None else None
        place = (state_of(config) if invites is None else invites.path.parent) / PREFERENCES
        with in_one_line(StateError):
            preferences = PreferenceFile(place)
        if invites is not None and invites.trouble is not None:
            raise click.ClickException(invites.trouble)

        def is_ready(url: str) -> None:
            click.echo(f"page: {url}")
            if invites is not None and not invites.names():
                tell(f"no annotator is invited yet: streamgp invite {config_file} NAME")

        names = [] if annotator is None else [annotator]
        signatures = signatures_of(config, make_for=names if invites is None else invites.names())
        settings = PageSettings(
            keyed=config.worker.keyed,
            of_numbers=config.target == "number",
            asks_confidence=asks_confidence,
            notes_response_time=notes_response_time,
            open_at_most=config.questions.open_at_most,
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
        if isinstance(live.failure, RefusedError):
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
    server = _Server(
        uvicorn.Config(
            page.app,
            http=connections(page.traffic),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=_GRACE_S,
            h11_max_incomplete_event_size=32_768,
        )
    )
    serving = asyncio.create_task(_serve(server, bound))
    is_told = False
    while not serving.done():
        if server.started and not is_told:
            is_told = True
            is_ready()
        if is_over() or (server.started and live.has_failed):
            page.end_streams()
            server.should_exit = True
        await asyncio.wait([serving], timeout=_LOOK_S)
    return await live.stop(SEND_FOR_S) if await serving else 0


async def _serve(server: uvicorn.Server, bound: socket.socket) -> bool:
    """Serve until told to stop; return whether the page could start (see `failure`)."""
    try:
        await server.serve(sockets=[bound])
    except SystemExit:  # raised by uvicorn if it could not start
        return False
    return True
