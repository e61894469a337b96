"""Process of `streamgp flink`: checks, then a job on a cluster in this process or elsewhere."""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from connectors.flink.client_properties import client_properties
from connectors.topics import WORKER_INPUTS, Topics
from connectors.worker.settings import LoopSettings
from streamgp.apps.console import DONE, LOST_BROKER, Stop
from streamgp.apps.deployment.deployment import (
    build_loops,
    check_creation,
    load_deployed,
    open_topics,
    topic_problems,
)
from streamgp.apps.worker.logging import say
from streamgp.config.broker_url import KafkaAddress, parse_address
from streamgp.config.load import parse_worker
from streamgp.config.settings import WorkerConfig
from streamgp.config.validation import ConfigError

_LOOK_EVERY_S = 0.5
_INSTALL = "`bash docker/flink-environment.sh DIR` makes an environment with it (docs/flink.md)"
_PYTHON_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception)): (.*)$", re.MULTILINE)
_LOCAL = {
    "execution.checkpointing.interval": "1 s",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.checkpointing.num-retained": "2",
    # What fails at once again ends the process, and its supervisor has the last word.
    "restart-strategy.type": "failure-rate",
    "restart-strategy.failure-rate.max-failures-per-interval": "3",
    "restart-strategy.failure-rate.failure-rate-interval": "1 min",
    "restart-strategy.failure-rate.delay": "1 s",
    "taskmanager.memory.managed.size": "128m",
}
"""Settings of Flink for a cluster in this process, unless the caller says otherwise."""


@dataclass(frozen=True, kw_only=True)
class FlinkOptions:
    """Options of a job that the configuration file does not have.

    Parameters
    ----------
    parallelism
        Number of tasks among which the keys are divided.
    submit
        Address of a cluster's REST interface; None: a cluster in this process.
    begin_at
        Directory of the checkpoint or savepoint to go on from; None: the last checkpoint of this
        configuration on this machine, if there is one.
    flink
        Settings of Flink, which replace those made here.

    """

    parallelism: int = 1
    submit: str | None = None
    begin_at: str | None = None
    flink: Mapping[str, str]


def run_flink(
    config_file: Path,
    stop: Stop,
    options: FlinkOptions,
    *,
    broker: str | None = None,
    create_topics: bool = False,
) -> int:
    """Run the job until a signal comes, or hand it to a cluster; return the exit status.

    Raises
    ------
    ConfigError
        If something is wrong with the configuration, the topics or the environment.
    BrokerError
        If the broker cannot be reached.

    """
    config = load_deployed(config_file, broker=broker)
    assert config.broker is not None  # or it would not have been loaded
    address = parse_address(config.broker.url)
    if not isinstance(address, KafkaAddress):
        raise ConfigError(
            f'broker = "{config.broker.url}" is not Kafka, and Flink works on topics of Kafka '
            'alone; write broker = "kafka://HOST:PORT", or take `streamgp run`'
        )
    loops = build_loops(config, source=str(config_file))
    if loops.total_budget is not None:
        raise ConfigError(
            f"{config_file}: [total_budget] counts for all keys together, and Flink holds each key "
            "apart; leave it out, and put the limit into [budget]"
        )
    remote = None if options.submit is None else _remote(options.submit)
    _check_environment()
    topics = open_topics(config)
    with closing(topics):
        if create_topics:
            check_creation(config)
            for done in topics.create():
                say(logging.INFO, "topics", done=done)
        problems = topic_problems(topics, config)
        if problems:
            raise ConfigError("; ".join(problems))
        n_partitions = topics.n_partitions()
        checkpoints = Path(config.worker.state) / "flink"
        begin_at = options.begin_at
        if begin_at is None and options.submit is None:
            begin_at = last_checkpoint(checkpoints)
        if begin_at is None:
            _check_fresh(topics, config)
    settings = dict(_LOCAL if remote is None else {})
    if remote is None:
        checkpoints.mkdir(parents=True, exist_ok=True)
        settings["execution.checkpointing.dir"] = checkpoints.resolve().as_uri()
        settings["python.executable"] = sys.executable
    if begin_at is not None:
        settings["execution.state-recovery.path"] = begin_at
    settings |= {"parallelism.default": str(options.parallelism), **options.flink}
    if stop():
        return DONE
    say(
        logging.INFO,
        "started",
        broker=config.broker.url,
        group=config.worker.group,
        parallelism=options.parallelism,
        cluster=options.submit or "in this process",
        goes_on_from=begin_at or "nothing",
    )
    client = client_properties(address.servers, address.security(config))
    job = _submit(config, str(config_file), settings, client, n_partitions, remote)
    if options.submit is not None:
        say(logging.INFO, "submitted", job=str(job.get_job_id()), cluster=options.submit)
        return DONE
    return _follow(job, stop)


def last_checkpoint(directory: Path) -> str | None:
    """Return the newest complete checkpoint of all jobs that have used a directory, as an address.

    Examples
    --------
    >>> last_checkpoint(Path("/nonexistent")) is None
    True

    """
    found = directory.glob("*/chk-*/_metadata")
    newest = max(found, key=lambda path: path.stat().st_mtime_ns, default=None)
    return None if newest is None else newest.parent.resolve().as_uri()


def reason_in(trace: str) -> str:
    r"""Return what a Python function says in an error of Flink, else the error's first line.

    Examples
    --------
    >>> reason_in("java.lang.X: Traceback\nconnectors.worker.UnfitTopicsError: other keys\n at Y")
    'UnfitTopicsError: other keys'
    >>> reason_in("org.apache.flink.JobException: no slot\n at Y")
    'org.apache.flink.JobException: no slot'

    """
    found = [
        f"{match[1]}: {match[2]}"
        for match in _PYTHON_ERROR.finditer(trace)
        if not match[0].startswith(("java.", "org.", "Caused"))
    ]
    return found[-1] if found else trace.strip().partition("\n")[0]


# --- inside


def _check_environment() -> None:
    spec = find_spec("pyflink")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(f"PyFlink is not installed in {sys.prefix}; {_INSTALL}")
    home = Path(os.environ.get("FLINK_HOME", spec.submodule_search_locations[0]))
    if not list(home.glob("lib/flink-sql-connector-kafka-*.jar")):
        raise ConfigError(f"{home / 'lib'} has no Kafka connector of Flink; {_INSTALL}")


def _check_fresh(topics: Topics, config: WorkerConfig) -> None:
    """Refuse to begin with nothing where something was learned."""
    cure = (
        "go on from a checkpoint or savepoint with --from, or use another group and other topics "
        "(worker.group, topics.prefix)"
    )
    with closing(topics.reader(["state", "consensus"])) as reader:
        while not reader.caught_up:
            kept = [record for record in reader.poll(1.0) if record.value is not None]
            if kept:
                raise ConfigError(
                    f"the topic {config.topics.names()[kept[0].topic]} holds what was learned, and "
                    f"no checkpoint of Flink goes with it; {cure}"
                )
    group = config.worker.group
    if any(at for (topic, _), at in topics.positions(group).items() if topic in WORKER_INPUTS):
        raise ConfigError(f"the group {group!r} has read before, and no checkpoint is left; {cure}")


def _remote(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise ConfigError(f"--submit must be http://HOST:PORT of a cluster, got {url!r}")
    return parts.hostname, parts.port or 8081


def _submit(
    config: WorkerConfig,
    source: str,
    flink: Mapping[str, str],
    client: Mapping[str, str],
    n_partitions: int,
    remote: tuple[str, int] | None,
) -> Any:
    """Start the job; return what Flink gives to hold it by."""
    os.environ.setdefault("JVM_ARGS", "-Xmx512m")
    # In a process of its own for each task; threads of this one would wait for each other.
    os.environ["_python_worker_execution_mode"] = "process"  # noqa: SIM112 (its name)
    from pyflink.common import Configuration
    from pyflink.datastream import StreamExecutionEnvironment
    from pyflink.java_gateway import get_gateway

    from connectors.flink.function import LoopFunction
    from connectors.flink.job import JobSettings, build

    configuration = Configuration()
    for name, value in flink.items():
        configuration.set_string(name, value)
    if remote is None:
        environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    else:
        gateway = get_gateway()
        environments = gateway.jvm.org.apache.flink.streaming.api.environment
        no_jars = gateway.new_array(gateway.jvm.String, 0)
        environment = StreamExecutionEnvironment(
            environments.StreamExecutionEnvironment.createRemoteEnvironment(
                *remote, configuration._j_configuration, no_jars
            )
        )
    settings = JobSettings(
        group=config.worker.group,
        names=config.topics.names(),
        n_partitions=n_partitions,
        client=client,
        keyed=config.worker.keyed,
    )
    # The file, as classes of its settings are made when it is read and cannot travel.
    text = Path(source).read_text(encoding="utf-8-sig")
    make_loops = partial(_loops_of, text, source)
    build(
        environment,
        settings,
        LoopFunction(make_loops, group=settings.group, names=settings.names),
    )
    return environment.execute_async(f"streamgp {settings.group}")


def _loops_of(text: str, source: str) -> LoopSettings:
    """Return what the loops are made of, in a process of Flink."""
    return build_loops(parse_worker(text, source=source), source=source)


def _follow(job: Any, stop: Stop) -> int:
    """Wait for a signal or the end of the job."""
    result = job.get_job_execution_result()
    while not result.done():
        if stop():
            # What came since the last checkpoint is not committed, and comes again.
            job.cancel().result()
            say(logging.INFO, "stopped", signal=stop.signal)
            return DONE
        time.sleep(_LOOK_EVERY_S)
    say(logging.ERROR, "failed", status=LOST_BROKER, reason=reason_in(str(result.exception())))
    return LOST_BROKER
