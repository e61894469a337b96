"""What `streamgp run` does once its options are known: open, check, work, and end with a reason."""

from __future__ import annotations

import logging
import sys
import traceback
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO

from connectors.records import FencedError, LinkError, RefusedError, Topics
from connectors.wire.history import HistoryError
from connectors.worker.agreement import UnfitTopicsError
from connectors.worker.worker import TooManyBadError, Worker, WorkerSettings
from streamgp import __version__
from streamgp.cli import exit_codes
from streamgp.cli.configuration.addresses import MemoryAddress, parse_address
from streamgp.cli.configuration.validation import ConfigError
from streamgp.cli.configuration.worker_checks import check_name
from streamgp.cli.configuration.worker_settings import WorkerConfig
from streamgp.cli.deployment.deployed import damage, load_deployed, open_topics
from streamgp.cli.deployment.readiness import build_loops, check_creation, topic_problems
from streamgp.cli.stopping import Stop
from streamgp.cli.worker.collecting import collect_seldom
from streamgp.cli.worker.log import say
from streamgp.cli.worker.pipes import Pipes
from streamgp.cli.worker.slots import Slot, origin_of_state, take_slot
from streamgp.interactive.snapshot import SnapshotError


def run_worker(
    config_file: Path,
    stop: Stop,
    *,
    create_topics: bool = False,
    instance: str | None = None,
    broker: str | None = None,
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
    strict
        Whether to refuse what was learned in another numerical environment.
    debug
        Whether to log the traceback of an error.

    Returns
    -------
    The exit status, see `exit_codes`.

    """
    try:
        _run(
            config_file,
            stop,
            broker=broker,
            instance=instance,
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
    return exit_codes.DONE


def reason_of(error: Exception) -> tuple[int, dict[str, str]]:
    """Return the exit status for an error that ends a worker, and what to say of it.

    Examples
    --------
    >>> reason_of(LinkError("broker does not answer"))
    (75, {'reason': 'broker does not answer', 'advice': 'nothing is lost; start again'})

    """
    reason = " ".join(str(error).split())
    match error:
        case ConfigError() | UnfitTopicsError() | HistoryError() | SnapshotError():
            return exit_codes.WRONG_USE, {"reason": reason}
        case TooManyBadError():
            return exit_codes.TOO_MANY_BAD, {"reason": reason}
        case FencedError():
            return exit_codes.FENCED, {
                "reason": reason,
                "advice": "another worker has this instance name; do not start again",
            }
        case RefusedError():
            return exit_codes.WRONG_USE, {"reason": reason}
        case LinkError():
            return exit_codes.LOST_BROKER, {
                "reason": reason,
                "advice": "nothing is lost; start again",
            }
        case _:
            return exit_codes.INTERNAL_ERROR, {
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
    create_topics: bool,
    strict: bool,
) -> None:
    config = load_deployed(config_file, broker=broker)
    if instance is not None:
        check_name(instance, where="--instance")
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
        with nullcontext() if slot.state is None else closing(slot.state):
            say(
                logging.INFO,
                "started",
                streamgp=__version__,
                broker=config.broker.url,
                group=config.worker.group,
                instance=slot.instance,
                state=None if slot.state is None else str(slot.state.path),
            )
            collect_seldom()
            worker = Worker(topics, loops, _settings(config, slot, strict=strict), state=slot.state)
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
    # After an error nobody comes here: where a broker is gone, leaving it takes long, and the
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
            consequence="goes on without; a restart reads the topics from the start",
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
        raise ConfigError(f"cannot go on between standard input and output: {pipes.trouble}")


def _standard_streams() -> tuple[BinaryIO, BinaryIO]:
    if sys.stdin is None or sys.stdout is None:  # closed by the shell: `<&-`
        raise ConfigError("memory:// needs standard input and output, which are closed")
    return sys.stdin.buffer, sys.stdout.buffer
