"""Process of `streamgp run`: open, check, work, and end with a reason."""

from __future__ import annotations

import gc
import logging
import re
import secrets
import socket
import sys
import traceback
from collections.abc import Iterable
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from connectors.storage.snapshots import InUseError, StateDirectory
from connectors.topics import BrokerError, FencedError, RefusedError, Topics
from connectors.wire.state_records import HistoryError
from connectors.worker.compatibility import UnfitTopicsError
from connectors.worker.worker import TooManyBadError, Worker, WorkerSettings
from streamgp import __version__
from streamgp.apps import console
from streamgp.apps.console import Stop
from streamgp.apps.deployment.deployment import (
    build_loops,
    check_creation,
    damage,
    load_deployed,
    open_topics,
    topic_problems,
)
from streamgp.apps.worker.logging import Pipes, say
from streamgp.apps.worker.observe import observed
from streamgp.config.broker_url import MemoryAddress, parse_address
from streamgp.config.load import check_bind, check_name
from streamgp.config.settings import WorkerConfig
from streamgp.config.validation import ConfigError
from streamgp.interactive.state.snapshot import SnapshotError

# --- Identity of the worker: its instance name, and the directory that goes with it.
#
# A restarted worker should be the same as before: it finds its snapshots, and the broker gives it
# back its partitions at once. Where no name is configured, the workers of one machine count
# through; the lock of a directory says which numbers are taken, and a process that ends gives its
# number back.


_ORIGIN = "topics"


@dataclass(frozen=True, slots=True)
class Slot:
    """A worker's place.

    Parameters
    ----------
    instance
        Its name within the group.
    state
        Where it keeps snapshots, None if it cannot keep any.
    trouble
        Why not, in one line.

    """

    instance: str
    state: StateDirectory | None = None
    trouble: str | None = None


def take_slot(root: Path, instance: str | None, *, origin: str) -> Slot:
    """Take a place and lock its directory.

    Parameters
    ----------
    root
        Directory of the directories of all instances.
    instance
        Name of this one; None for the first that is free.
    origin
        Which topics the snapshots belong to. Those of other topics are removed: they hold nothing
        that is not in those topics.

    Raises
    ------
    ConfigError
        If the instance that was named is at work already.

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
        # Without a lock the taken numbers are unknown: one that no other worker has.
        return Slot(instance or f"{_host()}-{secrets.token_hex(4)}", trouble=str(error))


def origin_of_state(url: str, names: Iterable[str], group: str, identity: str) -> str:
    """Return which topics a worker's snapshots belong to, in a form that can be compared.

    The identity tells topics from earlier ones that were called the same.
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
    """Make sure that everything in a directory belongs to some topics."""
    if state.read(_ORIGIN) == origin.encode():
        return
    for name in state.names():
        with suppress(FileNotFoundError):
            state.file(name).unlink()
    state.write(_ORIGIN, origin.encode())


def _host() -> str:
    """Return the name of this machine, as far as it can be part of an instance name."""
    return re.sub(r"[^a-zA-Z0-9._-]+", "-", socket.gethostname())[:150].strip(".-") or "worker"


# --- Thresholds of the garbage collector for a process with many long-lived objects.


# New containers between two looks at the newest, and after how many looks the next older are
# looked at too. At 30 000 events a minute everything is looked at a few times an hour.
_THRESHOLDS = (50_000, 20, 50)


def collect_seldom() -> None:
    """Look for garbage in cycles seldom, and never among what is there now.

    A worker holds all its loops for as long as it runs, and looking through them took a tenth of
    its time, 40 ms at once with a hundred small loops, many times that with large ones. What is not
    in cycles, nearly everything, goes at once as always.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


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
    """Run a worker until a signal comes or something goes wrong, and say which in one log line.

    Parameters
    ----------
    config_file
        The configuration.
    stop
        Tells whether a signal came.
    create_topics
        Whether to make missing topics first.
    instance
        Name of this worker; replaces the configured one.
    broker
        Address of the broker; replaces the configured one.
    observe
        Where to serve metrics, health and readiness; replaces the configured address.
    strict
        Whether to refuse what was learned in another numerical environment.
    debug
        Whether to log the traceback of an error.

    Returns
    -------
    The exit status, see `streamgp.apps.console`.

    """
    try:
        _run(
            config_file,
            stop,
            broker=broker,
            instance=instance,
            observe=observe,
            create_topics=create_topics,
            strict=strict,
        )
    # Whatever it is that ends the process has to be told in a line.
    except Exception as error:
        status, fields = reason_of(error)
        if debug:
            fields["traceback"] = "".join(traceback.format_exception(error))
        say(logging.ERROR, "failed", status=status, **fields)
        return status
    return console.DONE


def reason_of(error: Exception) -> tuple[int, dict[str, str]]:
    """Return the exit status for an error that ends a worker, and what to say of it.

    Examples
    --------
    >>> reason_of(BrokerError("broker does not answer"))
    (75, {'reason': 'broker does not answer', 'advice': 'nothing is lost; start again'})

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
                "advice": "nothing is lost; start again",
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


def _run(
    config_file: Path,
    stop: Stop,
    *,
    broker: str | None,
    instance: str | None,
    observe: str | None,
    create_topics: bool,
    strict: bool,
) -> None:
    config = load_deployed(config_file, broker=broker)
    if instance is not None:
        check_name(instance, where="--instance")
    if observe is not None:
        check_bind(observe, where="--observe")
    assert config.broker is not None  # or it would not have been loaded
    loops = build_loops(config, source=str(config_file))
    topics = open_topics(config)
    if create_topics:
        check_creation(config)
        for done in topics.create():
            say(logging.INFO, "topics", done=done)
    _check_topics(topics, config)
    if not stop():
        is_memory = isinstance(parse_address(config.broker.url), MemoryAddress)
        slot = _slot(config, instance, topics, is_memory=is_memory)
        bind = config.observe.bind if observe is None else observe
        with (
            nullcontext() if slot.state is None else closing(slot.state),
            nullcontext()
            if bind is None
            else observed(bind, names_annotators=config.observe.annotators) as observation,
        ):
            say(
                logging.INFO,
                "started",
                streamgp=__version__,
                broker=config.broker.url,
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
                if is_memory:
                    _work_between_pipes(worker, topics, config, stop)
                else:
                    worker.run(stop)
            except UnfitTopicsError as error:
                if isinstance(error.__cause__, HistoryError | SnapshotError):
                    raise UnfitTopicsError(damage(error, config)) from error
                raise
    say(logging.INFO, "stopped", signal=stop.signal)
    # Not reached after an error: where a broker is gone, leaving it takes long, and the
    # process is about to end.
    with suppress(OSError):
        topics.close()


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
    """Log what is wrong with the topics, and raise ConfigError if anything is."""
    problems = topic_problems(topics, config)
    for problem in problems[:-1]:
        say(logging.ERROR, "topics", problem=problem)
    if problems:
        raise ConfigError(problems[-1])


def _slot(config: WorkerConfig, instance: str | None, topics: Topics, *, is_memory: bool) -> Slot:
    """Take this worker's place; topics in memory leave nothing that a snapshot could spare."""
    settings = config.worker
    assert config.broker is not None
    if is_memory:
        return Slot(instance or settings.instance or "memory")
    slot = take_slot(
        Path(settings.state),
        instance or settings.instance,
        origin=origin_of_state(
            config.broker.url, config.topics.names().values(), settings.group, topics.identity()
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


def _work_between_pipes(worker: Worker, topics: Topics, config: WorkerConfig, stop: Stop) -> None:
    pipes = Pipes(topics, config.worker.group, *_standard_streams())
    pipes.start()

    def is_done() -> bool:
        return stop() or pipes.is_through()

    try:
        worker.run(is_done)
    finally:
        pipes.close()
    if pipes.trouble is not None:
        raise ConfigError(f"cannot continue with standard input and output: {pipes.trouble}")


def _standard_streams() -> tuple[BinaryIO, BinaryIO]:
    if sys.stdin is None or sys.stdout is None:  # closed by the shell: `<&-`
        raise ConfigError("memory:// needs standard input and output, which are closed")
    return sys.stdin.buffer, sys.stdout.buffer
