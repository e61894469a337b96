"""A cluster of Flink, in this process or elsewhere, and the jobs that are handed to it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from streamgp.config.validation import ConfigError

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
TAKEN_OVER = "taken-over"
"""Directory, beside the checkpoints, of what was taken over from workers."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Where jobs run, and where their checkpoints lie.

    Parameters
    ----------
    checkpoints
        Directory of the checkpoints of a cluster in this process.
    remote
        Host and port of a cluster's REST interface; None: a cluster in this process.
    flink
        Settings of Flink, parallelism among them, which replace those made here.

    """

    checkpoints: Path
    remote: tuple[str, int] | None
    flink: Mapping[str, str]

    def start(
        self,
        name: str,
        build: Callable[[Any], None],
        *,
        begin_at: str | None,
        is_taken_over: bool = False,
    ) -> Any:
        """Start a job; return what Flink gives to hold it by.

        Parameters
        ----------
        name
            What Flink shows.
        build
            Adds the job to an environment.
        begin_at
            Checkpoint or savepoint to go on from.
        is_taken_over
            Whether that was made by the job that takes over from workers.

        """
        os.environ.setdefault("JVM_ARGS", "-Xmx512m")
        # In a process of its own for each task; threads of this one would wait for each other.
        os.environ["_python_worker_execution_mode"] = "process"  # noqa: SIM112 (its name)
        from pyflink.common import Configuration
        from pyflink.datastream import StreamExecutionEnvironment
        from pyflink.java_gateway import get_gateway

        configuration = Configuration()
        for key, value in self._settings(begin_at, is_taken_over).items():
            configuration.set_string(key, value)
        if self.remote is None:
            environment = StreamExecutionEnvironment.get_execution_environment(configuration)
        else:
            gateway = get_gateway()
            environments = gateway.jvm.org.apache.flink.streaming.api.environment
            no_jars = gateway.new_array(gateway.jvm.String, 0)
            environment = StreamExecutionEnvironment(
                environments.StreamExecutionEnvironment.createRemoteEnvironment(
                    *self.remote, configuration._j_configuration, no_jars
                )
            )
        build(environment)
        return environment.execute_async(name)

    def savepoints(self, kind: str) -> str | None:
        """Return where savepoints of a kind are to be written; None: where the cluster says."""
        return (self.checkpoints / kind).resolve().as_uri() if self.remote is None else None

    def _settings(self, begin_at: str | None, is_taken_over: bool) -> dict[str, str]:
        settings: dict[str, str] = {}
        if self.remote is None:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            settings |= _LOCAL
            settings["execution.checkpointing.dir"] = self.checkpoints.resolve().as_uri()
            settings["python.executable"] = sys.executable
        if begin_at is not None:
            settings["execution.state-recovery.path"] = begin_at
            if is_taken_over:
                # It holds how far the job that made it had read, which is nothing to this one.
                settings["execution.state-recovery.ignore-unclaimed-state"] = "true"
        return {**settings, **self.flink}


def check_environment() -> None:
    """Check that PyFlink and its connector for Kafka are there.

    Raises
    ------
    ConfigError
        If not.

    """
    spec = find_spec("pyflink")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(f"PyFlink is not installed in {sys.prefix}; {_INSTALL}")
    home = Path(os.environ.get("FLINK_HOME", spec.submodule_search_locations[0]))
    if not list(home.glob("lib/flink-sql-connector-kafka-*.jar")):
        raise ConfigError(f"{home / 'lib'} has no Kafka connector of Flink; {_INSTALL}")


def remote_of(url: str) -> tuple[str, int]:
    """Return host and port of a cluster.

    Raises
    ------
    ConfigError
        If the address is none.

    Examples
    --------
    >>> remote_of("http://jobmanager")
    ('jobmanager', 8081)

    """
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise ConfigError(f"--submit must be http://HOST:PORT of a cluster, got {url!r}")
    return parts.hostname, parts.port or 8081


def stop_with_savepoint(job: Any, directory: str | None, *, drain: bool) -> Any:
    """Stop a job; return the future of where its savepoint lies.

    PyFlink's own method calls one of Java that Flink 2 no longer has.

    Parameters
    ----------
    job
        What `Cluster.start` returned.
    directory
        Where the savepoint is to be written; None: where the cluster says.
    drain
        Whether the inputs end by that, as event time has it.

    """
    from pyflink.common.completable_future import CompletableFuture
    from pyflink.java_gateway import get_gateway

    kind = get_gateway().jvm.org.apache.flink.core.execution.SavepointFormatType.CANONICAL
    return CompletableFuture(job._j_job_client.stopWithSavepoint(drain, directory, kind), str)


def last_checkpoint(directory: Path) -> str | None:
    """Return the newest complete checkpoint of all jobs that have used a directory, as an address.

    One of them may be what was taken over from workers.

    Examples
    --------
    >>> last_checkpoint(Path("/nonexistent")) is None
    True

    """
    found = [
        *directory.glob("*/chk-*/_metadata"),
        *directory.glob(f"{TAKEN_OVER}/savepoint-*/_metadata"),
    ]
    newest = max(found, key=lambda path: path.stat().st_mtime_ns, default=None)
    return None if newest is None else newest.parent.resolve().as_uri()


def was_taken_over(begin_at: str | None) -> bool:
    """Return whether an address is that of what was taken over from workers on this machine.

    Examples
    --------
    >>> was_taken_over("file:///state/flink/taken-over/savepoint-1"), was_taken_over(None)
    (True, False)

    """
    return begin_at is not None and f"/{TAKEN_OVER}/" in begin_at


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
