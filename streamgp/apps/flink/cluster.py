"""Flink cluster, in this process or remote, and the jobs submitted to it."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

import msgspec

from streamgp.common.printable import printable
from streamgp.config.validation import ConfigError

_INSTALL = "`bash docker/flink-environment.sh DIR` makes an environment with it (docs/flink.md)"
_PYTHON_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception)): (.*)$", re.MULTILINE)
_CAUSED = "Caused by: "
_JAVA_VERSION = re.compile(r'version "(\d+)[^"]*"')
_OLDEST_JAVA = 11
_CHECKPOINTS = {
    "execution.checkpointing.interval": "1 s",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
}
"""Default settings of each job, which override those of the cluster. Without checkpoints no result
could be read.
"""
_LOCAL = {
    "execution.checkpointing.num-retained": "2",
    # A job that keeps failing ends the process, and its supervisor decides what to do.
    "restart-strategy.type": "failure-rate",
    "restart-strategy.failure-rate.max-failures-per-interval": "3",
    "restart-strategy.failure-rate.failure-rate-interval": "1 min",
    "restart-strategy.failure-rate.delay": "1 s",
    "taskmanager.memory.managed.size": "128m",
}
"""Default settings of Flink for a cluster in this process."""
TAKING_OVER, TAKEN_OVER = "taking-over", "taken-over"
"""Directories, beside the checkpoints, of savepoints being taken over, and taken over, from
workers."""
TAKING, HANDING = "taking over", "handing back"
"""Tasks of temporary jobs."""
TEMPORARY = "temporary"
"""Directory, beside the checkpoints, of Flink's temporary files."""
_SUBMITTED = "submitted"
"""File, beside the checkpoints, with the address of the remote cluster on which a job was last
started: older checkpoints are out of date.
"""
ENDED = ("FINISHED", "CANCELED", "FAILED")
"""Final states of a job."""
_PATIENCE_S = 10.0
_OTHER_OPERATORS = "Cannot map checkpoint/savepoint state for operator"
_open = build_opener(ProxyHandler({})).open  # like Flink itself, without a proxy


class _NoClusterError(ConfigError):
    """No cluster of Flink answers."""


class _Job(msgspec.Struct):
    jid: str
    name: str
    state: str


class _Overview(msgspec.Struct):
    """A cluster's answer about its jobs."""

    jobs: list[_Job]


class _Saved(msgspec.Struct):
    id: int
    external_path: str


class _Latest(msgspec.Struct):
    completed: _Saved | None = None
    savepoint: _Saved | None = None


class _Checkpoints(msgspec.Struct):
    """A cluster's answer about a job's checkpoints."""

    latest: _Latest


_Answer = TypeVar("_Answer")


def leave_out_log_of_py4j() -> None:
    """Leave out what py4j logs, a traceback for each Java object once Java has ended.

    It writes to the root logger, which writes the log of all libraries to stderr from then on
    unless it has a handler.
    """
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.addFilter(lambda record: record.name.partition(".")[0] not in ("root", "py4j"))
    logging.getLogger().addHandler(handler)


@contextmanager
def _unless_java_has_ended() -> Iterator[None]:
    """Leave the block where Flink's Java process does not answer any more."""
    from py4j.protocol import Py4JError, Py4JJavaError

    try:
        yield
    except Py4JJavaError:  # its answer
        raise
    except (Py4JError, OSError):
        return


class FlinkJob:
    """A job on a cluster, in this process or remote."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._result = client.get_job_execution_result()  # a remote cluster is asked each time

    @property
    def id(self) -> str:
        return str(self._client.get_job_id())

    def has_ended(self) -> bool:
        """Return whether it has finished.

        Raises
        ------
        ConfigError
            If it has failed, or was cancelled.

        """
        if (reason := self.failure()) is not None:
            raise ConfigError(f"the job has failed: {reason}")
        return bool(self._result.done())

    def failure(self) -> str | None:
        """Return why it failed; None if it has not."""
        with _unless_java_has_ended():
            error = self._result.exception() if self._result.done() else None
            return None if error is None else reason_in(str(error))
        return "Flink's Java process has ended"

    def cancel(self) -> None:
        """End it, unless a job in this process has ended with Flink's Java process."""
        with _unless_java_has_ended():
            self._client.cancel().result()

    def stop_with_savepoint(self, directory: str | None, *, drain: bool) -> Any:
        """Stop it; return a future of its savepoint's address.

        PyFlink's own method calls a Java method that Flink 2 no longer has.

        Parameters
        ----------
        drain
            Whether this ends the inputs, in terms of event time.

        """
        from pyflink.common.completable_future import CompletableFuture
        from pyflink.java_gateway import get_gateway

        kind = get_gateway().jvm.org.apache.flink.core.execution.SavepointFormatType.CANONICAL
        future = self._client._j_job_client.stopWithSavepoint(drain, directory, kind)
        return CompletableFuture(future, str)


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A cluster on which jobs run, and its directory of checkpoints.

    Parameters
    ----------
    checkpoints
        Directory of the checkpoints of a cluster in this process.
    remote
        Host and port of a remote cluster's REST interface; None for a cluster in this process.
    flink
        Settings of Flink, such as the parallelism, which override those made here.

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
        directory: str = ".",
        job_id: str | None = None,
    ) -> FlinkJob:
        """Start a job; on a remote cluster, checkpoints in this process are out of date then.

        Parameters
        ----------
        build
            Adds the job to an environment.
        is_taken_over
            Whether the job that takes over from workers made it.
        directory
            Directory of its checkpoints on a cluster in this process, below that of all jobs.
        job_id
            Its id, 32 hexadecimal digits; None to let Flink choose one.

        """
        settings = self._settings(begin_at, is_taken_over, directory)
        if job_id is not None:
            settings["$internal.pipeline.job-id"] = job_id
        job = self._execute(name, build, settings, begin_at)
        if self.remote is not None:
            address = "http://{}:{}".format(*self.remote)
            (self.checkpoints / _SUBMITTED).write_text(address, encoding="utf-8")
        return job

    def last_checkpoint(self, group: str) -> str | None:
        """Return the last checkpoint of a cluster in this process; None if there is none.

        Raises
        ------
        ConfigError
            If a remote cluster has gone on since, or still runs a job of the group.

        """
        found = last_checkpoint(self.checkpoints)
        submitted = self.checkpoints / _SUBMITTED
        if not submitted.exists():
            return found
        address, at_ns = submitted.read_text(encoding="utf-8"), submitted.stat().st_mtime_ns
        if found is not None and last_checkpoint(self.checkpoints, after_ns=at_ns) is None:
            raise ConfigError(
                f"the last checkpoint here, {found}, is older than the job that was submitted to "
                f"{address}, and what that has done would be done twice; stop it, and name its "
                "last checkpoint or savepoint with --from, or this one if it has made none"
            )
        with suppress(_NoClusterError):  # then it runs no job
            # Its checkpoints may be in this directory, or elsewhere.
            replace(self, remote=remote_of(address)).check_idle(group)
        return found

    def _execute(
        self,
        name: str,
        build: Callable[[Any], None],
        settings: Mapping[str, str],
        begin_at: str | None,
    ) -> FlinkJob:
        # Each task gets its own process; threads of this process would block each other.
        os.environ["_python_worker_execution_mode"] = "process"  # noqa: SIM112 (its name)
        from py4j.protocol import Py4JError
        from pyflink.common import Configuration
        from pyflink.datastream import StreamExecutionEnvironment
        from pyflink.java_gateway import get_gateway

        configuration = Configuration()
        for key, value in settings.items():
            configuration.set_string(key, value)
        if self.remote is None:
            environment = StreamExecutionEnvironment.get_execution_environment(configuration)
        else:
            gateway = get_gateway()
            flink = gateway.jvm.org.apache.flink
            no_jars = gateway.new_array(gateway.jvm.String, 0)
            in_java = configuration._j_configuration
            # Set again: only here does the environment accept that state may be unclaimed.
            restored = flink.runtime.jobgraph.SavepointRestoreSettings.fromConfiguration(in_java)
            environment = StreamExecutionEnvironment(
                flink.streaming.api.environment.RemoteStreamEnvironment(
                    *self.remote, in_java, no_jars, None, restored
                )
            )
        try:
            build(environment)
            return FlinkJob(environment.execute_async(name))
        except (Py4JError, OSError) as error:
            raise ConfigError(refusal_in(str(error), begin_at)) from None

    def attach(self, job_id: str) -> FlinkJob:
        """Return a job that an earlier process submitted to the remote cluster."""
        from pyflink.common import Configuration
        from pyflink.common.job_client import JobClient
        from pyflink.java_gateway import get_gateway

        assert self.remote is not None  # a job of a local cluster ends with its process
        host, port = self.remote
        configuration = Configuration()
        configuration.set_string("rest.address", host)
        configuration.set_string("rest.port", str(port))
        flink = get_gateway().jvm.org.apache.flink
        deployment = flink.client.deployment
        descriptor = deployment.StandaloneClusterDescriptor(configuration._j_configuration)
        provider = descriptor.retrieve(deployment.StandaloneClusterId.getInstance())
        number = flink.api.common.JobID.fromHexString(job_id)
        loader = get_gateway().jvm.Thread.currentThread().getContextClassLoader()
        return FlinkJob(
            JobClient(deployment.ClusterClientJobClientAdapter(provider, number, loader))
        )

    def status_of(self, job_id: str) -> str | None:
        """Return the status of a job on a remote cluster; None if the cluster does not know it.

        Raises
        ------
        ConfigError
            If the cluster does not answer.

        """
        jobs = self._ask("/jobs/overview", _Overview).jobs
        return next((job.state for job in jobs if job.jid == job_id), None)

    def saved_by(self, job_id: str) -> str | None:
        """Return the last checkpoint or savepoint of a job on a remote cluster.

        Raises
        ------
        ConfigError
            If the cluster does not answer.

        """
        latest = self._ask(f"/jobs/{job_id}/checkpoints", _Checkpoints).latest
        saved = [each for each in (latest.completed, latest.savepoint) if each is not None]
        return max(saved, key=lambda each: each.id).external_path if saved else None

    def savepoints(self, kind: str) -> str | None:
        """Return the directory for savepoints of a kind; None for the cluster's default."""
        return (self.checkpoints / kind).resolve().as_uri() if self.remote is None else None

    def check_idle(self, group: str, *, but: Collection[str] = ()) -> None:
        """Check that no job of a group is on a remote cluster.

        Parameters
        ----------
        but
            Ids of jobs that may be there.

        Raises
        ------
        ConfigError
            If there is one, or the cluster does not answer.

        """
        if self.remote is None:
            return
        names = [name_of(group, doing) for doing in (None, TAKING, HANDING)]
        for job in self._ask("/jobs/overview", _Overview).jobs:
            if job.name in names and job.state not in ENDED and job.jid not in but:
                raise ConfigError(
                    f"the cluster already runs {job.name!r} as job {job.jid}, and a second one "
                    "would do everything twice; stop it first (`flink stop`, or `flink cancel` if "
                    "it is to take over or to hand back)"
                )

    def _ask(self, path: str, kind: type[_Answer]) -> _Answer:
        assert self.remote is not None
        url = "http://{}:{}{}".format(*self.remote, path)
        try:
            with _open(url, timeout=_PATIENCE_S) as response:
                return msgspec.json.decode(response.read(), type=kind)
        except (OSError, HTTPException, msgspec.DecodeError) as error:
            reason = printable(str(error).strip())
            raise _NoClusterError(f"no cluster of Flink answers at {url}: {reason}") from None

    def _settings(
        self, begin_at: str | None, is_taken_over: bool, directory: str
    ) -> dict[str, str]:
        settings = dict(_CHECKPOINTS)
        if self.remote is None:
            settings |= _LOCAL
            checkpoints = (self.checkpoints / directory).resolve()
            settings["execution.checkpointing.dir"] = checkpoints.as_uri()
            settings["python.executable"] = sys.executable
        if begin_at is not None:
            settings["execution.state-recovery.path"] = begin_at
            if is_taken_over:
                # It contains the positions of the job that made it, which do not apply to this one.
                settings["execution.state-recovery.ignore-unclaimed-state"] = "true"
        return {**settings, **self.flink}


def use_temporary(directory: Path) -> None:
    """Use a directory for temporary files of Java and Python, after removing earlier leftovers.

    Must be called before Flink is started, and by only one process.
    """
    directory = directory.resolve()
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    os.environ["TMPDIR"] = str(directory)
    if " " not in str(directory):  # PyFlink splits these options at spaces, and supports no quotes
        arguments = os.environ.get("JVM_ARGS", "-Xmx512m")
        os.environ["JVM_ARGS"] = f"-Djava.io.tmpdir={directory} {arguments}"


def check_environment() -> None:
    """Check that PyFlink, its Kafka connector and Java are installed.

    Raises
    ------
    ConfigError
        If one is missing.

    """
    spec = find_spec("pyflink")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(f"PyFlink is not installed in {sys.prefix}; {_INSTALL}")
    home = Path(os.environ.get("FLINK_HOME", spec.submodule_search_locations[0]))
    if not list(home.glob("lib/flink-sql-connector-kafka-*.jar")):
        raise ConfigError(f"{home / 'lib'} has no Kafka connector for Flink; {_INSTALL}")
    _check_java()


def _check_java() -> None:
    where = os.environ.get("JAVA_HOME")  # if set, PyFlink looks only there
    java = "java" if where is None else str(Path(where) / "bin/java")
    cure = "install Java 17, and set JAVA_HOME to its directory or unset it"
    try:
        asked = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise ConfigError(
            f"Flink needs Java, and {java} could not be run: {error}; {cure}"
        ) from None
    said = asked.stderr.strip()
    version = _JAVA_VERSION.search(said)
    if asked.returncode != 0 or version is None:
        raise ConfigError(
            f"Flink needs Java, and {java} exited with status {asked.returncode}: "
            f"{printable(_first_line(said))}; {cure}"
        )
    if int(version[1]) < _OLDEST_JAVA:
        raise ConfigError(
            f"Flink needs Java {_OLDEST_JAVA} or newer, and {java} is {version[0]}; {cure}"
        )


def name_of(group: str, doing: str | None = None) -> str:
    """Return the name of a job.

    Examples
    --------
    >>> name_of("rooms"), name_of("rooms", TAKING)
    ('streamgp rooms', 'streamgp rooms: taking over')

    """
    return f"streamgp {group}" if doing is None else f"streamgp {group}: {doing}"


def remote_of(url: str) -> tuple[str, int]:
    """Return host and port of a cluster.

    Raises
    ------
    ConfigError
        If the address is not valid.

    Examples
    --------
    >>> remote_of("http://jobmanager")
    ('jobmanager', 8081)

    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:  # not a number, or too large
        host = port = None
    if host is None or parts.scheme != "http":
        raise ConfigError(f"--submit must be http://HOST:PORT of a cluster, got {url!r}")
    return host, 8081 if port is None else port


def last_checkpoint(directory: Path, *, after_ns: int = 0) -> str | None:
    """Return the address of the newest complete checkpoint of all jobs that used a directory.

    It may be the savepoint taken over from workers, once the topics say so. None if there is none
    that was made after `after_ns`, in nanoseconds since 1970.
    """
    paths = [*directory.glob("*/chk-*"), *directory.glob(f"{TAKEN_OVER}/savepoint-*")]
    return _newest(paths, after_ns)


def last_savepoint(directory: Path) -> str | None:
    """Return the address of the newest complete savepoint in a directory, None if there is none."""
    return _newest(directory.glob("savepoint-*"))


def _newest(directories: Iterable[Path], after_ns: int = 0) -> str | None:
    files = [path / "_metadata" for path in directories]
    made = {path: path.stat().st_mtime_ns for path in files if path.exists()}
    newest = max(made, key=made.__getitem__, default=None)
    if newest is None or made[newest] <= after_ns:
        return None
    return newest.parent.resolve().as_uri()


def was_taken_over(begin_at: str | None) -> bool:
    """Return whether an address is that of a savepoint taken over from workers on this machine.

    Examples
    --------
    >>> was_taken_over("file:///state/flink/taken-over/savepoint-1"), was_taken_over(None)
    (True, False)

    """
    return begin_at is not None and f"/{TAKEN_OVER}/" in begin_at


def refusal_in(trace: str, begin_at: str | None) -> str:
    """Return why Flink did not accept a job that was to continue from `begin_at`.

    Where Flink's own advice is to ignore the state of operators that are gone, positions in the
    inputs may be among it, so the text gives another one.

    Examples
    --------
    >>> refusal_in("org.apache.flink.JobException: no slot", None)
    'Flink did not accept the job: org.apache.flink.JobException: no slot'
    >>> refusal_in(f"X: {_OTHER_OPERATORS} 03cb to the new program. You can ignore", "file:/chk-9")
    'the job that wrote file:/chk-9 has other operators than that of this version of streamgp; ...'

    """
    reason = reason_in(trace)
    if _OTHER_OPERATORS in reason:
        return (
            f"the job that wrote {begin_at} has other operators than that of this version of "
            "streamgp; hand back with the version that wrote it (`streamgp flink --hand-back`), "
            "and start this one with --take-over"
        )
    return f"Flink did not accept the job: {reason}"


def reason_in(trace: str) -> str:
    r"""Return the Python error within an error of Flink, otherwise the root cause.

    Examples
    --------
    >>> reason_in("java.lang.X: Traceback\nconnectors.worker.UnfitTopicsError: other keys\n at Y")
    'UnfitTopicsError: other keys'
    >>> reason_in("org.apache.flink.JobException: no slot\n at Y")
    'org.apache.flink.JobException: no slot'
    >>> reason_in("java.lang.X: no start\n at Y\nCaused by: java.io.IOException: disk full\n at Z")
    'java.io.IOException: disk full'

    """
    found = [
        f"{match[1]}: {match[2]}"
        for match in _PYTHON_ERROR.finditer(trace)
        if not match[0].startswith(("java.", "org.", "Caused"))
    ]
    causes = [line.strip() for line in trace.splitlines() if line.lstrip().startswith(_CAUSED)]
    return (found or [line.removeprefix(_CAUSED) for line in causes] or [_first_line(trace)])[-1]


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
