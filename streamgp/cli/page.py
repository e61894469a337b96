"""The commands `streamgp page` and `streamgp invite`: people answer in a browser."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamgp.cli.options import (
    GivenPath,
    annotator_name,
    broker_option,
    config_argument,
    log_format_option,
    no_response_time_option,
)
from streamgp.config.validation import parse_bind

if TYPE_CHECKING:
    from streamgp.apps.log import LogFormat
    from streamgp.apps.page.program import Address

DEFAULT_BIND = "127.0.0.1:8080"
_NEEDED = ("starlette", "uvicorn")

bind_option = click.option(
    "--bind",
    metavar="HOST:PORT",
    default=DEFAULT_BIND,
    show_default=True,
    help="Address to serve on; port 0 picks a free one.",
)
"""Address at which a page is served, for every command that serves one."""

invites_option = click.option(
    "--invites",
    "invites_file",
    metavar="FILE",
    type=GivenPath("file", refuses_dash=True),
    help="File that holds the invites.  [default: invites.json in the workers' state directory]",
)
"""File in which invites are kept, for every command that reads them."""


def check_installed() -> None:
    """Raise ClickException if packages that serve pages are missing."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise click.ClickException(
            f"the page needs {' and '.join(missing)}; install with: pip install {' '.join(missing)}"
        )


def address_of(bind: str, **how: Any) -> Address:
    """Return the address at which to serve a page; `how` are further fields of `Address`."""
    from streamgp.apps.page.program import Address

    try:
        host, port = parse_bind(bind)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--bind'") from None
    return Address(host=host, port=port, **how)


def _host_names(
    _context: click.Context, _option: click.Parameter, names: tuple[str, ...]
) -> tuple[str, ...]:
    for name in names:
        # A URL, say, is in no header Host: the page would refuse every request.
        if re.fullmatch(r"([\w.-]+|\[[\w:.]+\])(:[0-9]+)?", name) is None:
            raise click.BadParameter(
                f"expected a host name, as in labels.example.org, got {name!r:.80}"
            )
    return names


@click.command()
@config_argument
@bind_option
@broker_option
@click.option(
    "--as",
    "annotator",
    metavar="NAME",
    callback=annotator_name,
    help="Sign all answers with this name and require no login: for one annotator on this machine. "
    "Needs a loopback address.",
)
@invites_option
@click.option(
    "--behind-proxy",
    is_flag=True,
    help="Expect a proxy in front that terminates TLS, so that browsers use https. The proxy must "
    "not change the Host header; give the name that browsers use with --host.",
)
@click.option(
    "--plain-http",
    is_flag=True,
    help="Serve other machines without TLS. Use it only on a private network without "
    "eavesdroppers.",
)
@click.option(
    "--host",
    "hosts",
    metavar="NAME",
    multiple=True,
    callback=_host_names,
    help="Host name, besides the address, under which browsers may request the page. May be "
    "repeated; requests for other names are refused.",
)
@click.option(
    "--confidence", "asks_confidence", is_flag=True, help="Ask how sure each answer is, 1 to 5."
)
@no_response_time_option
@log_format_option
def page(
    config_file: Path,
    bind: str,
    broker: str | None,
    annotator: str | None,
    invites_file: Path | None,
    behind_proxy: bool,
    plain_http: bool,
    hosts: tuple[str, ...],
    asks_confidence: bool,
    no_response_time: bool,
    log_format: LogFormat | None,
) -> None:
    """Let people answer label requests and challenges in a browser.

    CONFIG.toml is the workers' configuration. Anyone with a link from `streamgp invite` may answer;
    with --as NAME, anyone on this machine may, under that name. Several people can answer at once:
    each question is reserved for one of them for a minute. An answer is written to the topic before
    it is confirmed to the browser. Without a confirmation the browser sends it again, and it still
    counts once.

    The log goes to stderr: one line for each refused request, and why the broker cannot be read or
    written. It never contains labels, ids, names or links. /healthz reports whether the page works,
    /metrics has its metrics, and /api/openapi.json describes the API.

    \b
    Examples:
      streamgp page worker.toml --as ann
      streamgp page worker.toml --bind 127.0.0.1:8090
      streamgp page worker.toml --behind-proxy --host labels.example.org
      streamgp invite worker.toml ann --url https://labels.example.org

    Exit status: 0 stopped by SIGTERM, 2 wrong usage, 75 lost the broker: answers could not be
    sent (browsers send them again), or it lets the page in no longer, 130 interrupted by Ctrl-C.
    """
    from streamgp.apps.log import start_log

    if annotator is not None and invites_file is not None:
        raise click.UsageError("--as requires no login and so no --invites; leave one of them out")
    check_installed()
    from streamgp.apps.page.program import run_page

    address = address_of(bind, behind_proxy=behind_proxy, plain_http=plain_http, names=hosts)
    start_log(log_format)
    status = run_page(
        config_file,
        address,
        broker=broker,
        annotator=annotator,
        invites_file=invites_file,
        asks_confidence=asks_confidence,
        notes_response_time=not no_response_time,
    )
    click.get_current_context().exit(status)


# --- The command `streamgp invite`: who may answer in a browser.


@click.command()
@config_argument
@click.argument("name", metavar="NAME", callback=annotator_name)
@click.option("--key", metavar="KEY", help="Show only events of this key.")
@click.option("--revoke", is_flag=True, help="Revoke all links and cookies of this name.")
@invites_option
@click.option(
    "--url",
    metavar="URL",
    default=f"http://{DEFAULT_BIND}",
    show_default=True,
    help="Address of the page; the link begins with it.",
)
def invite(
    config_file: Path,
    name: str,
    key: str | None,
    revoke: bool,
    invites_file: Path | None,
    url: str,
) -> None:
    """Print a link that lets a browser answer as NAME.

    The link opens a page with a button, which works once, within a week; the browser gets a cookie
    and stays invited. Each browser needs a link of its own. --revoke shuts all of them out at once,
    including those that have the page open. Their answers stay.

    \b
    Examples:
      streamgp invite worker.toml ann
      streamgp invite worker.toml ann --url http://127.0.0.1:8090
      streamgp invite worker.toml ann --key phone-3 --url https://labels.example.org
      streamgp invite worker.toml ann --revoke
    """
    from connectors.storage.snapshots import StateError
    from connectors.wire.inbound import flaw_of_name
    from streamgp.apps.console import in_one_line
    from streamgp.apps.deployment.answer_keys import signatures_of
    from streamgp.apps.page.invites import InviteError, invites_of
    from streamgp.config.load import load_worker

    if revoke and key is not None:
        raise click.UsageError("--revoke takes everything back; leave out --key")
    if key is not None and (flaw := flaw_of_name(key)):
        raise click.UsageError(f"--key {flaw}")
    if re.fullmatch(r"https?://\S+", url) is None:
        raise click.BadParameter(
            f"expected http://HOST:PORT or https://HOST, got {url!r:.80}", param_hint="'--url'"
        )
    config = load_worker(config_file)  # invites are in a file: no broker is needed
    if key is not None and not config.worker.keyed:
        raise click.UsageError(
            "--key cannot be used here: the workers have one learner for all keys (worker.keyed = "
            "false)"
        )
    invites = invites_of(config, invites_file)
    with in_one_line(InviteError, StateError):
        if not revoke:
            signatures_of(config, make_for=(name,))
            click.echo(f"{url.rstrip('/')}/join/{invites.invite(name, key=key)}")
        elif invites.revoke(name):
            click.echo(f"{name} is no longer invited")
        else:
            raise click.ClickException(f"{name!r} is not invited in {invites.path}")
