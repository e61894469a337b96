"""Process of `streamgp flink`: checks, then a job on a local or remote cluster."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from connectors.kafka.settings import client_properties
from connectors.storage.snapshots import InUseError, StateDirectory, StateError
from connectors.topics import COMPACTED, WORKER_INPUTS, BrokerError, Place, Topics
from connectors.worker.logging import say
from connectors.worker.settings import LoopSettings
from streamgp.apps.console import DONE, LOST_BROKER, WRONG_USE, Stop
from streamgp.apps.deployment.deployment import (
    Deployment,
    address_of,
    broker_of,
    build_loops,
    everything,
    load_deployed,
    make_topics,
    open_topics,
    topic_problems,
)
from streamgp.apps.flink.cluster import (
    TEMPORARY,
    Cluster,
    FlinkJob,
    check_environment,
    leave_out_log_of_py4j,
    name_of,
    remote_of,
    use_temporary,
    was_taken_over,
)
from streamgp.apps.flink.moving import Move, Stopped, is_mark, more_partitions
from streamgp.config.broker_url import KafkaAddress
from streamgp.config.load import parse_worker, text_of
from streamgp.config.settings import WorkerConfig
from streamgp.config.validation import ConfigError

_LOOK_EVERY_S = 0.5
_LOOKS_PER_CHECK = 10
_FORBIDDEN = "AuthorizationException"
"""In the reason of a job that lacks a right on a topic, a group or a transaction, as Kafka's Java
client names it. Started again, the job would only end again."""


@dataclass(frozen=True, kw_only=True)
class FlinkOptions:
    """Options of a job that are not in the configuration file.

    Parameters
    ----------
    parallelism
        Number of tasks among which the keys are divided.
    submit
        Address of a remote cluster's REST interface; None for a cluster in this process.
    begin_at
        Directory of the checkpoint or savepoint from which to continue; None for the last
        checkpoint of this configuration on this machine, if there is one.
    take_over
        Whether to start with what workers have learned.
    hand_back
        Whether to hand back what was learned to workers, and end.
    flink
        Settings of Flink, which override those made here.

    """

    parallelism: int
    submit: str | None
    begin_at: str | None
    take_over: bool
    hand_back: bool
    flink: Mapping[str, str]


def run_flink(
    config_file: Path,
    stop: Stop,
    options: FlinkOptions,
    *,
    broker: str | None,
    create_topics: bool,
) -> int:
    """Run the job until a signal arrives, or submit it to a cluster; return the exit status.

    Raises
    ------
    ConfigError
        If the configuration, the topics or the environment are not valid.
    BrokerError
        If the broker cannot be reached.

    """
    config = load_deployed(config_file, broker=broker)
    address = address_of(config)
    if not isinstance(address, KafkaAddress):
        raise ConfigError(
            f'broker = "{broker_of(config).url}" is not Kafka, but Flink works only with topics in '
            'Kafka; write broker = "kafka://HOST:PORT", or use `streamgp run`'
        )
    loops = build_loops(config, source=str(config_file))
    if loops.total_budget is not None:
        raise ConfigError(
            f"{config_file}: [total_budget] covers all keys together, but Flink keeps the keys "
            "apart; leave it out, and put the limit into [budget]"
        )
    remote = None if options.submit is None else remote_of(options.submit)
    check_environment()
    leave_out_log_of_py4j()
    checkpoints = Path(config.worker.state) / "flink"
    settings = {"parallelism.default": str(options.parallelism), **options.flink}
    cluster = Cluster(checkpoints=checkpoints, remote=remote, flink=settings)
    with _alone(checkpoints):
        use_temporary(checkpoints / TEMPORARY)
        with closing(open_topics(config)) as topics:
            _check_topics(topics, config, create_topics=create_topics)
            client = client_properties(address.servers, address.security(config))
            plan = _Plan(config, str(config_file), client, topics.n_partitions())
            there = Deployment(config=config, topics=topics)
            move = Move(there=there, loops=loops, cluster=cluster, stop=stop)
            begin_at = options.begin_at
            if begin_at is not None and Path(begin_at).exists():
                begin_at = str(Path(begin_at).absolute())  # a cluster has another directory
            if begin_at is None and remote is None:
                begin_at = cluster.last_checkpoint(config.worker.group)
            if begin_at is not None or options.take_over or options.hand_back:
                move.check_configuration()
            try:
                if stop() or _is_done(move, plan, options, begin_at):
                    return DONE
                begin_at = _begin(move, plan, options, begin_at)
                return _work(move, plan, options, begin_at)
            except (Stopped, ConfigError):  # a signal to all processes has ended Flink, too
                if not stop():
                    raise
                return DONE


# --- internal


def _is_done(move: Move, plan: _Plan, options: FlinkOptions, begin_at: str | None) -> bool:
    """Do what needs no new main job; return whether that was all that was asked for."""
    submitted = move.working_job() if options.take_over else None
    if submitted is not None:  # the process that submitted it was killed
        move.has_taken_over()
        say(logging.INFO, "submitted", job=submitted, cluster=options.submit)
        return True
    moves = options.take_over or options.hand_back
    move.cluster.check_idle(move.there.group, but=move.left_behind() if moves else ())
    if options.hand_back:
        say(logging.INFO, "handing-back", group=move.there.group)
        move.hand_back(plan.hand_back, begin_at=begin_at)
    return options.hand_back


def _begin(move: Move, plan: _Plan, options: FlinkOptions, begin_at: str | None) -> str | None:
    """Return the checkpoint or savepoint from which the main job continues, None for none."""
    move.check_not_begun()
    if begin_at is not None or options.take_over:
        move.check_partitions()
    if options.take_over:
        say(logging.INFO, "taking-over", group=move.there.group)
        return move.take_over(plan.load, saved_at=begin_at)
    if begin_at is None:
        _check_fresh(move.there.topics, move.there.config)
        move.mark()
    return begin_at


def _work(move: Move, plan: _Plan, options: FlinkOptions, begin_at: str | None) -> int:
    """Start the main job, and follow it unless it runs on a remote cluster."""
    say(
        logging.INFO,
        "started",
        broker=move.there.url,
        group=move.there.group,
        parallelism=options.parallelism,
        cluster=options.submit or "in this process",
        goes_on_from=begin_at or "nothing",
    )
    job = move.cluster.start(
        name_of(move.there.group),
        plan.work,
        begin_at=begin_at,
        is_taken_over=options.take_over or was_taken_over(begin_at),
        job_id=move.new_working_job() if options.take_over else None,
    )
    if options.submit is not None:
        move.has_taken_over()
        say(logging.INFO, "submitted", job=job.id, cluster=options.submit)
        return DONE
    return _follow(job, move.stop, partial(_check_count, move.there.topics, plan.n_partitions))


def _check_count(topics: Topics, n_partitions: int) -> None:
    """Raise a ConfigError if the topics were given more partitions."""
    with suppress(BrokerError):  # the job itself waits for the broker, or fails
        now = topics.n_partitions()
        if now != n_partitions:
            raise more_partitions(n_partitions, now)


def _alone(directory: Path) -> StateDirectory:
    """Lock the checkpoints against other processes of this machine."""
    try:
        return StateDirectory(directory)
    except InUseError as error:
        raise ConfigError(f"another `streamgp flink` is running: {error}") from None
    except StateError as error:
        raise ConfigError(str(error)) from None


def _check_topics(topics: Topics, config: WorkerConfig, *, create_topics: bool) -> None:
    """Create the topics if requested, and refuse those that do not fit the configuration."""
    if create_topics:
        for done in make_topics(topics, config):
            say(logging.INFO, "topics", done=done)
    problems = topic_problems(topics, config)
    if problems:
        raise ConfigError("; ".join(problems))


def _check_fresh(topics: Topics, config: WorkerConfig) -> None:
    """Refuse to start from nothing if something was learned before."""
    cure = (
        "continue from a checkpoint or savepoint with --from, take over from workers with "
        "--take-over, or use another group and other topics (worker.group, topics.prefix)"
    )
    for record in everything(topics, *COMPACTED, what="looking"):
        if record.value is not None and not is_mark(record):
            raise ConfigError(
                f"the topic {config.topics.names()[record.topic]} holds what was learned, but "
                f"there is no Flink checkpoint for it; {cure}"
            )
    group = config.worker.group
    if any(at for (topic, _), at in topics.positions(group).items() if topic in WORKER_INPUTS):
        raise ConfigError(f"the group {group!r} has read before, but no checkpoint is left; {cure}")


@dataclass(frozen=True)
class _Plan:
    config: WorkerConfig
    source: str
    client: Mapping[str, str]
    n_partitions: int

    def work(self, environment: Any) -> None:
        """Add the main job to an environment."""
        self._work(environment, self.config.worker.group, None)

    def hand_back(
        self, group: str, ends: Mapping[Place, int], is_drained: bool
    ) -> Callable[[Any], None]:
        """Return a function that adds the job that hands back."""
        return lambda environment: self._work(environment, group, ends, is_drained=is_drained)

    def load(self, group: str, shared: Mapping[int, Any]) -> Callable[[Any], None]:
        """Return a function that adds the loading job."""

        def add(environment: Any) -> None:
            from connectors.flink.function import LoadFunction
            from connectors.flink.job import build_load

            settings = self._settings(group, None)
            build_load(environment, settings, LoadFunction(settings.names, shared))

        return add

    def _work(
        self,
        environment: Any,
        reads_as: str,
        ends: Mapping[Place, int] | None,
        *,
        is_drained: bool = False,
    ) -> None:
        from connectors.flink.function import LoopFunction
        from connectors.flink.job import build

        settings = self._settings(reads_as, ends)
        # The text of the file, as its settings' classes are generated at reading and cannot be
        # pickled.
        text = text_of(Path(self.source))
        function = LoopFunction(
            partial(_loops_of, text, self.source),
            group=self.config.worker.group,
            names=settings.names,
            hands_back=ends is not None,
            is_drained=is_drained,
        )
        build(environment, settings, function)

    def _settings(self, reads_as: str, ends: Mapping[Place, int] | None) -> Any:
        from connectors.flink.job import JobSettings

        return JobSettings(
            group=self.config.worker.group,
            reads_as=reads_as,
            names=self.config.topics.names(),
            n_partitions=self.n_partitions,
            client=self.client,
            keyed=self.config.worker.keyed,
            ends=ends,
        )


def _loops_of(text: str, source: str) -> LoopSettings:
    """Return the settings of the loops, in a process of Flink."""
    return build_loops(parse_worker(text, source=source), source=source)


def _follow(job: FlinkJob, stop: Stop, check: Callable[[], None]) -> int:
    """Wait for a signal or the end of the job; end it if a check fails."""
    looks = itertools.count(1)
    while (reason := job.failure()) is None and not job.has_ended():
        if stop():
            # Inputs since the last checkpoint are not committed, and are delivered again.
            job.cancel()
            break
        time.sleep(_LOOK_EVERY_S)
        if next(looks) % _LOOKS_PER_CHECK == 0:
            try:
                check()
            except ConfigError:
                job.cancel()
                raise
    if stop():  # perhaps by a signal to all processes, which has ended Flink first
        say(logging.INFO, "stopped", signal=stop.signal)
        return DONE
    status = WRONG_USE if reason is not None and _FORBIDDEN in reason else LOST_BROKER
    say(logging.ERROR, "failed", status=status, reason=reason or "it has ended")
    return status
