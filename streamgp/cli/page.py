"""The commands `streamgp page` and `streamgp invite`: people answer in a browser."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamgp.cli.options import (
    annotator_name,
    broker_option,
    config_argument,
    log_format_option,
    path_to,
)
from streamgp.config.validation import parse_bind

if TYPE_CHECKING:
    from streamgp.apps.page.address import Address
    from streamgp.apps.worker.logging import LogFormat

DEFAULT_BIND = "127.0.0.1:8080"
_NEEDED = ("starlette", "uvicorn")

bind_option = click.option(
    "--bind",
    metavar="HOST:PORT",
    default=DEFAULT_BIND,
    show_default=True,
    help="Where to serve; port 0 for any that is free.",
)
"""Where a page is served, for every command that serves one."""

invites_option = click.option(
    "--invites",
    "invites_file",
    metavar="FILE",
    type=click.Path(),
    callback=path_to("file"),
    help="File of the invites.  [default: invites.json in the workers' state directory]",
)
"""Where invites are kept, for every command that looks at them."""


def check_installed() -> None:
    """Refuse to go on without the packages that serve pages."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise click.ClickException(
            f"the page needs {' and '.join(missing)}; install what it needs with: "
            "pip install 'streamgp[page]'"
        )


def address_of(bind: str, **how: Any) -> Address:
    """Return where a page is to be served; `how` as the fields of `Address`."""
    from streamgp.apps.page.address import Address

    try:
        host, port = parse_bind(bind)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--bind'") from None
    return Address(host=host, port=port, **how)


@click.command()
@config_argument
@bind_option
@broker_option
@click.option(
    "--as",
    "annotator",
    metavar="NAME",
    callback=annotator_name,
    help="How the answers are signed, without a login: for one annotator at this machine. Works on "
    "a loopback address only.",
)
@invites_option
@click.option(
    "--behind-proxy",
    is_flag=True,
    help="A proxy in front ends TLS; browsers come with https. It must leave the header Host as it "
    "is; name what browsers ask for with --host.",
)
@click.option(
    "--plain-http",
    is_flag=True,
    help="Let others reach it without TLS: for a private network only, without eavesdroppers.",
)
@click.option(
    "--host",
    "hosts",
    metavar="NAME",
    multiple=True,
    help="Name under which browsers ask for the page, beside its address. May be given several "
    "times; requests for other names are refused.",
)
@click.option(
    "--confidence", "asks_confidence", is_flag=True, help="Ask how sure each answer is, 1 to 5."
)
@click.option(
    "--no-response-time",
    is_flag=True,
    help="Do not note how long each answer took. Without this option every answer says so.",
)
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

    CONFIG.toml is that of the workers. Anyone with a link of `streamgp invite` may answer; with
    --as NAME everybody at this machine may, under that name. Several people can answer at once: a
    question is kept for one of them for a minute. What is answered is in the topic before the
    browser is told so; a browser that was not told sends it again, and it counts once.

    The log goes to stderr, a line for each request that was refused. It never holds labels, ids,
    names or links. /healthz tells whether it works, /metrics how much, /api/openapi.json what
    programs can ask.

    \b
    Examples:
      streamgp page worker.toml --as ann
      streamgp page worker.toml --bind 127.0.0.1:8090
      streamgp page worker.toml --behind-proxy --host labels.example.org
      streamgp invite worker.toml ann --url https://labels.example.org

    Exit status: 0 stopped by SIGTERM, 2 wrong use, 75 the broker is lost: answers could not be
    sent (the browsers send them again), 130 ended by Ctrl-C.
    """
    from streamgp.apps.worker.logging import start_log

    if annotator is not None and invites_file is not None:
        raise click.UsageError("--as needs no login, and so no --invites; leave one of them out")
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
@click.option("--revoke", is_flag=True, help="Take all links and cookies of this name back.")
@invites_option
@click.option(
    "--url",
    metavar="URL",
    default=f"http://{DEFAULT_BIND}",
    show_default=True,
    help="How the page is reached; the link begins with it.",
)
def invite(
    config_file: Path,
    name: str,
    key: str | None,
    revoke: bool,
    invites_file: Path | None,
    url: str,
) -> None:
    """Print a link with which a browser may answer as NAME.

    The link works once, within a week; the browser that opens it gets a cookie and stays invited.
    Each browser needs a link of its own. With --revoke all of them are out at once, also those that
    look at the page. What was answered stays.

    \b
    Examples:
      streamgp invite worker.toml ann
      streamgp invite worker.toml ann --key phone-3 --url https://labels.example.org
      streamgp invite worker.toml ann --revoke
    """
    from connectors.storage.snapshots import StateError
    from connectors.wire.inbound import flaw_of_name
    from streamgp.apps.deployment.answer_keys import signatures_of
    from streamgp.apps.deployment.deployment import load_deployed
    from streamgp.apps.page.invites import InviteError, invites_of

    if revoke and key is not None:
        raise click.UsageError("--revoke takes everything back; leave out --key")
    if key is not None and (flaw := flaw_of_name(key)):
        raise click.UsageError(f"--key {flaw}")
    if not url.startswith(("http://", "https://")):
        raise click.BadParameter(
            f"expected http://HOST:PORT or https://HOST, got {url!r:.80}", param_hint="'--url'"
        )
    config = load_deployed(config_file)
    if key is not None and not config.worker.keyed:
        raise click.UsageError(
            "--key is of no use here: the workers have one learner for all keys (worker.keyed = "
            "false)"
        )
    invites = invites_of(config, invites_file)
    try:
        if not revoke:
            signatures_of(config, make_for=(name,))
            click.echo(f"{url.rstrip('/')}/join/{invites.invite(name, key=key)}")
        elif invites.revoke(name):
            click.echo(f"{name} is not invited any more")
        else:
            raise click.ClickException(f"{name!r} is not invited in {invites.path}")
    except (InviteError, StateError) as error:
        raise click.ClickException(str(error)) from None
