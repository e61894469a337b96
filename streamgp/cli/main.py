"""The command `streamgp`: its subcommands, and how every command ends.

The modules imported here are light; slow ones (numpy, River, rich) are imported by a command when
it runs, so that help appears at once.

"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import RawIOBase
from typing import Any, NoReturn

import click
from click.shell_completion import get_completion_class

from connectors.topics import BrokerError, RefusedError
from streamgp.apps.console import (
    INTERNAL_ERROR,
    INTERRUPTED,
    LOST_BROKER,
    UNREAD,
    WRONG_USE,
    tell,
)
from streamgp.apps.release import release
from streamgp.cli import COMPLETE_VARIABLE
from streamgp.cli.annotate import annotate
from streamgp.cli.demo import demo
from streamgp.cli.flink import flink
from streamgp.cli.init import init
from streamgp.cli.maintenance import (
    audit,
    backup,
    dead_letters,
    forget,
    labels,
    migrate,
    rebuild,
    recover,
    restore,
    retract,
)
from streamgp.cli.page import invite, page
from streamgp.cli.replay import replay, report
from streamgp.cli.send import send
from streamgp.cli.tune import tune
from streamgp.cli.worker import check, run, watch
from streamgp.common.environment import use_one_thread
from streamgp.config.validation import ConfigError

_PROGRAM = "streamgp"


class _UnreadError(Exception):
    """The reader of the output has gone."""


@contextmanager
def _detecting_closed_pipe() -> Iterator[None]:
    """Detect a closed pipe before click or rich do: they end the process with status 1."""
    try:
        yield
    except BrokenPipeError:
        raise _UnreadError from None
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):
            raise _UnreadError from None
        raise


class _Streamgp(click.Group):
    """A group whose expected errors give one line on stderr and an exit status, mostly 2."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: ARG002 (it always exits with a status)
        **extra: Any,
    ) -> NoReturn:
        try:
            status = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message(), err=True)
            sys.exit(WRONG_USE)
        except click.UsageError as error:
            path = error.ctx.command_path if error.ctx else "streamgp"
            sys.exit(_fail(f"{_usage(error)} (see `{path} --help`)"))
        except click.ClickException as error:
            sys.exit(_fail(error.format_message()))
        except click.Abort:  # click's form of Ctrl-C
            tell("interrupted")
            sys.exit(INTERRUPTED)
        except (ConfigError, RefusedError) as error:
            sys.exit(_fail(str(error)))
        except _UnreadError:
            sys.exit(UNREAD)
        except BrokerError as error:
            sys.exit(_fail(str(error), LOST_BROKER))
        except (MemoryError, ImportError) as error:
            # As the dynamic linker says of a library that does not fit into memory; numpy before
            # 2.3 gives advice instead.
            said = f"{error} {error.__cause__}"
            if isinstance(error, ImportError) and "failed to map segment" not in said:
                raise
            sys.exit(
                _fail(
                    "memory ran out; raise the limit of this process (ulimit -v, that of its "
                    "container or job), or end other programs",
                    INTERNAL_ERROR,
                )
            )
        except OSError as error:
            sys.exit(_fail(_message_of(error)))
        sys.exit(status if isinstance(status, int) else 0)

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        """Parse the arguments, which may print a help text."""
        with _detecting_closed_pipe():
            return super().make_context(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        with _detecting_closed_pipe():
            try:
                return super().invoke(ctx)
            except click.UsageError as error:
                name = ctx.invoked_subcommand
                # click leaves the context out if an option lacks its value.
                if error.ctx is None and name is not None:
                    error.ctx = click.Context(self.commands[name], parent=ctx, info_name=name)
                raise


def _usage(error: click.UsageError) -> str:
    """Return the text of an error; an option that is a setting of the files is said to be one."""
    if isinstance(error, click.NoSuchOption):
        from streamgp.config.settings import WorkerConfig

        name = error.option_name.lstrip("-").replace("-", "_")
        for setting in (name, f"{name}s"):
            if setting in WorkerConfig.__struct_fields__:
                return (
                    f"No such option {error.option_name!r}; {setting} is a setting of the "
                    "configuration file, which `streamgp init` prints"
                )
    text = error.format_message().rstrip(".")
    if text.startswith("Got unexpected extra") and error.ctx and "log" in error.ctx.params:
        return f"{text}; it takes one LOG: join several, as docs/logs.md shows"
    return text


def _message_of(error: OSError) -> str:
    """Return an OSError as a message; without a file name, it concerns an output stream."""
    if not error.strerror:
        return str(error)
    if error.filename is None:
        if isinstance(error, FileNotFoundError):  # only the working directory has no name
            return "the working directory has been removed; change to another one"
        return f"cannot write the results: {error.strerror}"
    from connectors.storage.snapshots import state_error

    return str(state_error(f"cannot use {error.filename}", error))


def _fail(message: str, status: int = WRONG_USE) -> int:
    tell(f"Error: {' '.join(message.split())}")
    return status


def _tell_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        click.echo(f"streamgp {release()}")
        context.exit()


@click.group(cls=_Streamgp, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_tell_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Online learning from people who make mistakes.

    A learner predicts every event of a stream, asks an annotator for a label when it is unsure,
    and challenges the annotator when a given label is probably wrong.

    \b
    See it at work:               streamgp demo
    Replay a log of your own:     streamgp replay log.csv --label activity
    Get a log to try it on:       streamgp demo --write rooms.csv
    Change the settings:          streamgp init > streamgp.toml
                                  streamgp replay log.csv --label activity \\
                                      --config streamgp.toml
    View a run in a browser:      streamgp replay log.csv --label activity \\
                                      --report report.html
    Tune the learner:             streamgp tune log.csv --label activity \\
                                      --output best.toml
    Resume after a crash:         streamgp replay log.csv --label activity \\
                                      --out results --state state
    Remove one person's data:     streamgp forget --help
    Run on Apache Kafka:          streamgp init --worker > worker.toml
                                  streamgp check worker.toml
                                  streamgp run worker.toml --create-topics
    Send it a recorded log:       streamgp send worker.toml log.csv --label activity
    Answer its questions:         streamgp annotate worker.toml
    Or in a browser:              streamgp page worker.toml --as ann
    Let others answer there:      streamgp invite worker.toml ben
    Watch the workers:            streamgp watch worker.toml
    Get the labels as a table:    streamgp labels worker.toml --out labels.csv
    Complete words with Tab:      streamgp completion --help

    Exit status: 0 success, 2 wrong usage or unreadable input (one line on stderr says what), 70
    memory ran out, 75 the broker cannot be reached, 130 interrupted by Ctrl-C (what was done so far
    is kept), 141 the reader of the output has gone. Some commands have more; see their --help.
    """


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that lets a shell complete commands, options and files with Tab.

    It takes effect in the next shell that you start.

    \b
    bash 4.4 or later: add to ~/.bashrc
      eval "$(streamgp completion bash)"
    zsh: add to ~/.zshrc, below the line with compinit
      eval "$(streamgp completion zsh)"
    fish: run once
      streamgp completion fish > ~/.config/fish/completions/streamgp.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None  # click supports all three
    root = click.get_current_context().find_root().command
    # On Tab the script runs `streamgp` itself, with the variable set; click answers.
    # Not `source()`: for bash, that runs bash to ask for its version, and there may be none here.
    script = kind(root, {}, _PROGRAM, COMPLETE_VARIABLE)
    click.echo(script.source_template % script.source_vars())


for _command in (
    demo, replay, report, tune, init, check, run, flink, send, annotate, page, invite, watch,
    dead_letters, rebuild, recover, backup, restore, audit, labels, retract, forget, migrate,
    completion,
):  # fmt: skip
    cli.add_command(_command)


def main() -> NoReturn:
    # Whatever the environment says: results must not depend on how a sum is split among cores, and
    # at the sizes of one event, more threads only wait for each other.
    use_one_thread()
    if sys.stderr is None:  # closed by the shell, `2>&-`: messages go nowhere
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (as long as the process)
    if isinstance(getattr(sys.stdout, "buffer", None), RawIOBase):
        # With PYTHONUNBUFFERED, Python loses what a reader that goes has not yet taken, without an
        # error.
        number, encoding = sys.stdout.fileno(), sys.stdout.encoding
        sys.stdout = open(number, "w", buffering=1, encoding=encoding, closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is None:
            continue
        reconfigure(errors="replace")  # a terminal without µ gets a question mark, not a traceback
        if not stream.isatty():
            # As read again from files and pipes, on every machine, newlines within values included;
            # in the locale's encoding labels could be question marks.
            reconfigure(encoding="utf-8", errors="replace", newline="\n")
    _wait_for_readers()
    try:
        cli.main(prog_name=_PROGRAM)
    except KeyboardInterrupt:  # before or after a command could handle it
        sys.exit(INTERRUPTED)
    finally:
        _flush_quietly()


def _wait_for_readers() -> None:
    """Let writes wait for a slow reader, as shells do with streams that came non-blocking.

    Another program that shares a stream may have made it so. Otherwise output would be an error,
    or with `PYTHONUNBUFFERED=1` be lost, as soon as a pipe is full.
    """
    if sys.platform != "win32":
        for stream in (sys.stdin, sys.stdout, sys.stderr):
            if stream is not None:
                with suppress(OSError):  # not a file
                    os.set_blocking(stream.fileno(), True)


def _flush_quietly() -> None:
    """Flush the output; a reader that has gone (`| head`) shows only in the exit status."""
    unread = False
    for stream in (sys.stdout, sys.stderr):
        if stream is None:  # closed by the shell: `>&-`
            continue
        try:
            stream.flush()
        except OSError as error:
            # The interpreter flushes again at exit, and would exit with 120, for example when a
            # terminal was closed; give it something that accepts the bytes.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            unread = unread or (stream is sys.stdout and isinstance(error, BrokenPipeError))
    if unread:
        sys.exit(UNREAD)
