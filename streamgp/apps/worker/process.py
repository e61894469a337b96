"""Process of `streamgp run`: open, check, run, and end with a reason."""

from __future__ import annotations

import logging
import re
import secrets
import socket
import traceback
from collections.abc import Iterable
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from connectors.storage.snapshots import InUseError, StateDirectory
from connectors.topics import BrokerError, FencedError, RefusedError, Topics
from connectors.wire.state_records import HistoryError
from connectors.worker.compatibility import UnfitTopicsError
from connectors.worker.logging import say
from connectors.worker.settings import LoopSettings, TooManyBadError, WorkerSettings
from connectors.worker.worker import Worker
from streamgp.apps import console
from streamgp.apps.console import Stop
from streamgp.apps.deployment.deployment import (
    broker_of,
    build_loops,
    damage,
    load_deployed,
    make_topics,
    open_topics,
    topic_problems,
)
from streamgp.apps.gc_tuning import collect_seldom
from streamgp.apps.release import release
from streamgp.apps.worker.observe import observed
from streamgp.config.load import check_bind, check_name
from streamgp.config.settings import WorkerConfig
from streamgp.config.validation import ConfigError
from streamgp.interactive.state.snapshot import SnapshotError

# --- Identity of the worker: its instance name and state directory.
#
# A restarted worker should keep its identity: it finds its snapshots, and the broker returns its
# partitions at once. If no name is configured, the workers of a machine are numbered; directory
# locks tell which numbers are taken, and a process that ends releases its number.


_ORIGIN = "topics"


@dataclass(frozen=True, slots=True)
class Slot:
    """A worker's instance name and state directory.

    Parameters
    ----------
    state
        Its directory of snapshots, None if it cannot have one.
    trouble
        Why not, in one line.

    """

    instance: str
    state: StateDirectory | None = None
    trouble: str | None = None


def take_slot(root: Path, instance: str | None, *, origin: str) -> Slot:
    """Take an instance name and lock its directory.

    Parameters
    ----------
    root
        Parent directory of all instances' directories.
    instance
        Name of this instance; None for the first free one.
    origin
        Identifies the topics of the snapshots. Snapshots of other topics are removed: they hold
        nothing that is not in those topics.

    Raises
    ------
    ConfigError
        If the named instance is already running.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     one, two = (take_slot(Path(directory), None, origin="here") for _ in range(2))
    ...     one.state.close(), two.state.close()
    ...     one.instance[-2:], two.instance[-2:], one.state.path.name == one.instance
    (None, None)
    ('-0', '-1', True)

    """
    try:
        state = _first_free(root) if instance is None else StateDirectory(root / instance)
        try:
            _claim(state, origin)
        except OSError:
            state.close()
            raise
        return Slot(state.path.name, state)
    except InUseError as error:
        raise ConfigError(
            f"worker {instance!r} is already running: {error}, or give this worker a name of its "
            "own with --instance"
        ) from None
    except OSError as error:
        # Without locks the taken numbers are unknown: use a name that no other worker has.
        return Slot(instance or f"{_host()}-{secrets.token_hex(4)}", trouble=str(error))


def origin_of_state(url: str, names: Iterable[str], group: str, identity: str) -> str:
    """Return a string that identifies the topics of a worker's snapshots.

    The identity distinguishes the topics from earlier ones of the same names.
    """
    return "\n".join([url, group, *names, identity, ""])


def _first_free(root: Path) -> StateDirectory:
    """Lock the first directory that no other worker uses."""
    host, n = _host(), 0
    while True:
        try:
            return StateDirectory(root / f"{host}-{n}")
        except InUseError:
            n += 1


def _claim(state: StateDirectory, origin: str) -> None:
    """Make sure that everything in a directory belongs to the topics."""
    # The address may hold a path whose bytes are not UTF-8.
    written = origin.encode(errors="surrogateescape")
    if state.read(_ORIGIN) == written:
        return
    for name in state.names():
        with suppress(FileNotFoundError):
            state.file(name).unlink()
    state.write(_ORIGIN, written)


def _host() -> str:
    """Return the name of this machine, reduced to characters allowed in an instance name."""
    return re.sub(r"[^a-zA-Z0-9._-]+", "-", socket.gethostname())[:150].strip(".-") or "worker"


# --- The process.


def run_worker(
    config_file: Path,
    stop: Stop,
    *,
    create_topics: bool = False,
    instance: str | None = None,
    broker: str | None = None,
    observe: str | None = None,
    strict: bool = False,
    debug: bool = False,
) -> int:
    """Run a worker until a signal arrives or an error occurs, and log which.

    Returns
    -------
    The exit status, see `streamgp.apps.console`.

    """
    try:
        config = _configured(load_deployed(config_file, broker=broker), instance, observe)
        _run(config, str(config_file), stop, create_topics=create_topics, strict=strict)
    except KeyboardInterrupt:
        stop()  # logs the signal
        say(logging.INFO, "stopped", signal=stop.signal)
    # Any error that ends the process must be reported in a line.
    except Exception as error:
        status, fields = reason_of(error)
        if debug:
            fields["traceback"] = "".join(traceback.format_exception(error))
        say(logging.ERROR, "failed", status=status, **fields)
        return status
    return console.DONE


def reason_of(error: Exception) -> tuple[int, dict[str, str]]:
    """Return the exit status for an error that ends a worker, and the fields of its log line.

    Examples
    --------
    >>> reason_of(BrokerError("broker does not answer"))
    (75, {'reason': 'broker does not answer', 'advice': 'the worker has lost nothing; start again'})

    """
    reason = " ".join(str(error).split())
    match error:
        case ConfigError() | UnfitTopicsError() | HistoryError() | SnapshotError():
            return console.WRONG_USE, {"reason": reason}
        case TooManyBadError():
            return console.TOO_MANY_BAD, {"reason": reason}
        case FencedError():
            return console.FENCED, {
                "reason": reason,
                "advice": "another worker has this instance name; do not start again",
            }
        case RefusedError():
            return console.WRONG_USE, {"reason": reason}
        case BrokerError():
            return console.LOST_BROKER, {
                "reason": reason,
                "advice": "the worker has lost nothing; start again",
            }
        case _:
            return console.INTERNAL_ERROR, {
                "reason": f"{type(error).__name__}: {reason}",
                "raised_at": _raised_at(error),
                "advice": "nothing of this batch was committed",
            }


def _raised_at(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "unknown"


def _configured(config: WorkerConfig, instance: str | None, observe: str | None) -> WorkerConfig:
    """Return a configuration with the options of the command line that override it."""
    if instance is not None:
        check_name(instance, where="--instance")
        config = replace(config, worker=replace(config.worker, instance=instance))
    if observe is not None:
        check_bind(observe, where="--observe")
        config = replace(config, observe=replace(config.observe, bind=observe))
    return config


def _run(
    config: WorkerConfig, source: str, stop: Stop, *, create_topics: bool, strict: bool
) -> None:
    loops = build_loops(config, source=source)
    with stop.ending():  # a broker that hangs takes its time
        topics = open_topics(config)
        if create_topics:
            for done in make_topics(topics, config):
                say(logging.INFO, "topics", done=done)
        _check_topics(topics, config)
    if not stop():
        _work(config, topics, loops, stop, strict=strict)
    say(logging.INFO, "stopped", signal=stop.signal)
    # Not reached after an error: closing takes long if a broker is gone, and the process is about
    # to end anyway.
    with suppress(OSError):
        topics.close()


def _work(
    config: WorkerConfig, topics: Topics, loops: LoopSettings, stop: Stop, *, strict: bool
) -> None:
    slot = _slot(config, topics)
    bind, names_annotators = config.observe.bind, config.observe.annotators
    with (
        nullcontext() if slot.state is None else closing(slot.state),
        nullcontext()
        if bind is None
        else observed(bind, names_annotators=names_annotators) as observation,
    ):
        say(
            logging.INFO,
            "started",
            streamgp=release(),
            broker=broker_of(config).url,
            group=config.worker.group,
            instance=slot.instance,
            state=None if slot.state is None else str(slot.state.path),
            **({} if observation is None else {"observe": observation.url}),
        )
        collect_seldom()
        worker = Worker(
            topics,
            loops,
            _settings(config, slot, strict=strict),
            state=slot.state,
            metrics=None if observation is None else observation.metrics,
        )
        try:
            worker.run(stop)
        except UnfitTopicsError as error:
            if isinstance(error.__cause__, HistoryError | SnapshotError):
                raise UnfitTopicsError(damage(error, config)) from error
            raise


def _settings(config: WorkerConfig, slot: Slot, *, strict: bool) -> WorkerSettings:
    return WorkerSettings(
        group=config.worker.group,
        instance=slot.instance,
        batch=config.worker.batch,
        save_every_s=config.worker.save_every_s,
        max_bad_share=config.worker.max_bad_share,
        strict=strict,
        leave=config.worker.leave,
    )


def _check_topics(topics: Topics, config: WorkerConfig) -> None:
    """Log problems with the topics, and raise ConfigError if there are any."""
    problems = topic_problems(topics, config)
    for problem in problems[:-1]:
        say(logging.ERROR, "topics", problem=problem)
    if problems:
        raise ConfigError(problems[-1])


def _slot(config: WorkerConfig, topics: Topics) -> Slot:
    """Take this worker's slot."""
    settings = config.worker
    slot = take_slot(
        Path(settings.state),
        settings.instance,
        origin=origin_of_state(
            broker_of(config).url,
            config.topics.names().values(),
            settings.group,
            topics.identity(),
        ),
    )
    if slot.trouble is not None:
        say(
            logging.WARNING,
            "state-unused",
            reason=slot.trouble,
            consequence="continues without; a restart reads the topics from the start",
        )
    return slot
