"""Connections of the page, closed if a client sends or reads too slowly.

Anyone who can reach the page may open connections, with or without an invite, and the server holds
only a limited number. Each therefore needs a timeout: uvicorn has one for a connection that is idle
after a request, but none for a client that never completes a request or never reads the response.

"""

from __future__ import annotations

import asyncio
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from streamgp.apps.page.access import SECURITY_HEADERS, Traffic, no_http, note_response

HEAD_S = 10.0
"""How long the head of a request may take, from the connection or its first byte on."""
STALL_S = 60.0
"""How long a client may leave sent data unread."""


def connections(traffic: Traffic) -> type[asyncio.Protocol]:
    """Return the connection class of a page whose requests are counted in `traffic`."""
    return type("PageConnection", (_Connection,), {"traffic": traffic})


class _Connection(H11Protocol):
    """One connection.

    Attributes
    ----------
    traffic
        Counts of requests.

    """

    # _head_due   timer that ends the connection unless the head of a request has arrived
    # _stall_due  timer that ends it unless the client has read
    traffic: ClassVar[Traffic]
    _head_due: asyncio.TimerHandle | None = None
    _stall_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_has_come()
        self._client_reads()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
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
            note_response(
                self.traffic,
                route="other",
                method="other",
                status=response.status_code,
                error=refused.error,
            )
        # In the middle of a body, the request already has its response, or its route notices that
        # the client has gone.
        self._close()

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
