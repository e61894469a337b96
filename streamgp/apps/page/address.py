"""Address of the page: where it is bound, how it is reached, and which addresses are refused."""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

import click

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


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
    """Refuse an address that other machines could reach without TLS or without a login.

    Raises
    ------
    click.UsageError
        If they could.

    """
    local = is_loopback(address.host)
    if not has_login and (not local or address.behind_proxy):
        raise click.UsageError(
            "--as NAME lets in everyone who can reach the page, so it works only on a loopback "
            "address without a proxy; invite people with `streamgp invite`"
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
