"""The conversation on a standalone Flink cluster: python -m tests.flink.cluster [--help]

A job manager and two task managers, each in a Java process of its own, started as by the scripts of
Flink, and a real broker. The job is submitted; then a Python worker, a task manager with its Python
workers, and the job manager alone are killed in turn, and after the latter the job is submitted
again from its last checkpoint, with another parallelism. Other steps are `unwritable`, in which no
checkpoint can be written for a while, and `stop:N`, a stop with a savepoint, from which the job
resumes with another parallelism. The comparison is the same as in `tests.flink`.

"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from streamgp.apps.flink.cluster import ENDED, last_checkpoint
from tests.flink.__main__ import (
    ENVIRONMENT,
    EXPIRES_S,
    GROUP,
    ROOT,
    Job,
    Written,
    compared,
    deployed,
    processes_of,
    send,
    traffic,
)
from tests.kafka_broker import Broker, Unavailable, free_ports

SETTINGS = """
env.java.opts.all: "{java_options} -Djava.io.tmpdir={directory}/temporary"
jobmanager.bind-host: localhost
jobmanager.rpc.address: localhost
jobmanager.rpc.port: {rpc_port}
jobmanager.memory.process.size: 900m
rest.address: localhost
rest.bind-address: localhost
rest.port: {rest_port}
taskmanager.bind-host: localhost
taskmanager.host: localhost
taskmanager.numberOfTaskSlots: 2
taskmanager.memory.process.size: 1200m
taskmanager.memory.managed.size: 128m
heartbeat.interval: 1 s
heartbeat.timeout: 15 s
restart-strategy.type: fixed-delay
restart-strategy.fixed-delay.attempts: 100
restart-strategy.fixed-delay.delay: 1 s
execution.checkpointing.dir: file://{directory}/checkpoints
execution.checkpointing.savepoint-dir: file://{directory}/savepoints
"""


class StandaloneCluster:
    """A job manager and task managers, each in a session of its own."""

    def __init__(self, python, directory):
        home = next(python.parents[1].glob("lib/python*/site-packages/pyflink"))
        rest_port, rpc_port = free_ports(2)
        self.url = f"http://localhost:{rest_port}"
        default = (home / "conf/config.yaml").read_text()
        java_options = default.partition("all: ")[2].partition("\n")[0]
        conf, lib = directory / "conf", directory / "lib"
        for path in (conf, lib, directory / "temporary"):
            path.mkdir()
        for name in ("log4j-console.properties", "logback-console.xml"):
            (conf / name).symlink_to(home / "conf" / name)
        (conf / "config.yaml").write_text(
            SETTINGS.format(
                directory=directory,
                rest_port=rest_port,
                rpc_port=rpc_port,
                java_options=java_options,
            )
        )
        for jar in (*home.glob("lib/*.jar"), *home.glob("opt/flink-python-*.jar")):
            (lib / jar.name).symlink_to(jar)
        self._home, self._directory, self._python = home, directory, python
        self._environ = {
            **os.environ,
            "FLINK_CONF_DIR": str(conf),
            "FLINK_LIB_DIR": str(lib),
            "FLINK_LOG_DIR": str(directory),
            "FLINK_PID_DIR": str(directory),
            "PYTHONPATH": str(ROOT),
            "PYTHONHASHSEED": "0",
            "TMPDIR": str(directory / "temporary"),
        }
        self._manager, self._workers = None, []

    @property
    def flags(self):
        """Options of `streamgp flink` for a job on this cluster."""
        return ["--submit", self.url, "-D", f"python.executable={self._python}"]

    def start_manager(self, patience_s=120.0):
        self._manager = self._start("jobmanager")
        until = time.monotonic() + patience_s
        while True:
            try:
                with urlopen(f"{self.url}/overview", timeout=5.0):
                    return
            except (URLError, TimeoutError):
                assert time.monotonic() < until, "the job manager does not answer"
                time.sleep(0.5)

    def start_worker(self):
        self._workers.append(self._start("taskmanager"))

    def ask(self, path, body=None, method=None):
        """Return the response of the job manager."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = Request(f"{self.url}{path}", data=data, headers=headers, method=method)
        with urlopen(request, timeout=60.0) as response:
            return json.loads(response.read() or b"null")

    def jobs(self):
        """Return the ids of the jobs that have not ended."""
        jobs = self.ask("/jobs/overview")["jobs"]
        return [job["jid"] for job in jobs if job["state"] not in ENDED]

    def cancel(self):
        """Cancel the only job."""
        (job,) = self.jobs()
        self.ask(f"/jobs/{job}?mode=cancel", method="PATCH")
        while self.jobs():
            time.sleep(0.5)

    def stop(self):
        """Stop the only job; return the address of its savepoint."""
        (job,) = self.jobs()
        while True:
            trigger = self.ask(f"/jobs/{job}/stop", {"drain": False})["request-id"]
            while True:
                found = self.ask(f"/jobs/{job}/savepoints/{trigger}")
                if found["status"]["id"] == "COMPLETED":
                    break
                time.sleep(0.5)
            if "location" in found["operation"]:
                return found["operation"]["location"]
            time.sleep(0.5)  # not all its tasks are running yet

    def kill_manager(self):
        self._manager.kill()  # not the task managers: they go on for a while
        self._manager.wait()

    def kill_worker(self):
        """Kill a task manager and its Python workers, as if its machine were lost."""
        worker = self._workers.pop(random.randrange(len(self._workers)))
        self._kill(worker)

    def kill_a_python_worker(self):
        found = [
            pid
            for worker in self._workers
            for pid, line in processes_of(worker.pid)
            if b"beam_boot" in line
        ]
        os.kill(random.choice(found), signal.SIGKILL)

    def kill(self):
        for process in (self._manager, *self._workers):
            if process is not None:
                self._kill(process)

    def check(self):
        for process in (self._manager, *self._workers):
            assert process.poll() is None, f"{process.args} has ended"

    def _start(self, kind):
        log = (self._directory / f"{kind}.log").open("ab")
        words = ["bash", str(self._home / f"bin/{kind}.sh"), "start-foreground"]
        return subprocess.Popen(
            words, env=self._environ, stdout=log, stderr=log, start_new_session=True
        )

    def _kill(self, process):
        for pid, _ in processes_of(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.wait()


def submit(cluster, python, config, directory, parallelism, *, begin_at=None, flags=()):
    flags = [*cluster.flags, *flags]
    checkpoint = begin_at or last_checkpoint(directory / "checkpoints")
    if checkpoint is not None:
        flags += ["--from", checkpoint]
    job = Job(str(python), config, directory, flags=flags)
    job.start(parallelism)
    try:
        status = job.wait(240)
    finally:
        job.kill()
    assert status == 0, f"it was not submitted: status {status}"


@contextmanager
def unwritable(directory):
    """Make a directory read-only for the duration of the block."""
    is_root = os.geteuid() == 0  # modes do not restrict root
    on, off = (
        (["chattr", "+i"], ["chattr", "-i"]) if is_root else (["chmod", "-w"], ["chmod", "+w"])
    )
    subprocess.run([*on, directory], check=True)
    try:
        yield
    finally:
        subprocess.run([*off, directory], check=True)


class Storm:
    """Performs the steps that happen to the job, by name; a parallelism follows after a colon."""

    def __init__(self, cluster, python, config, directory):
        self._cluster, self._directory = cluster, directory
        self._submit = partial(submit, cluster, python, config, directory)
        self.n_kills = 0

    def __call__(self, step):
        name, _, parallelism = step.partition(":")
        self.n_kills += name in ("python", "worker", "manager")
        match name:
            case "python":
                self._cluster.kill_a_python_worker()
            case "worker":
                self._cluster.kill_worker()
                self._cluster.start_worker()
            case "manager":
                self._cluster.kill_manager()
                self._cluster.start_manager()
                self._submit(int(parallelism))
            case "stop":
                self._submit(int(parallelism), begin_at=self._cluster.stop())
            case "unwritable":
                self._no_checkpoints()

    def _no_checkpoints(self, seconds=6.0):
        (job,) = self._cluster.jobs()
        directory = self._directory / "checkpoints" / job
        until = time.monotonic() + 120.0
        while not directory.exists():
            time.sleep(0.5)

        def count(status):
            return self._cluster.ask(f"/jobs/{job}/checkpoints")["counts"][status]

        with unwritable(directory):
            time.sleep(2.0)  # a checkpoint that had begun may still be completed
            n_complete, n_failed = count("completed"), count("failed")
            time.sleep(seconds)
            while count("failed") == n_failed:
                assert time.monotonic() < until, "no checkpoint has failed"
                time.sleep(0.5)
            assert count("completed") == n_complete


def run(python, directory, *, n_keys, n_moves, steps):
    random.seed(1)
    with Broker() as broker:
        path, config, topics = deployed(broker, directory, GROUP, expires_s=EXPIRES_S)
        records = traffic(n_keys, n_moves)
        cluster = StandaloneCluster(python, directory)
        storm = Storm(cluster, python, path, directory)
        began = time.monotonic()

        def tell(text):
            print(f"{time.monotonic() - began:.0f} s: {text}", flush=True)

        try:
            cluster.start_manager()
            cluster.start_worker()
            cluster.start_worker()
            submit(cluster, python, path, directory, 2)
            tell("submitted")
            written = Written(topics)
            share = -(-len(records) // (len(steps) + 1))
            n_sent = 0
            for n, at in enumerate(range(0, len(records), share)):
                part = records[at : at + share]
                send(topics, part)
                written.wait_for(n_sent + 0.5 * len(part), cluster, 240.0)
                n_sent += len(part)
                tell(f"{written.n_taken} inputs")
                if n < len(steps):
                    storm(steps[n])
                    tell(steps[n])
            written.wait_for(n_sent, cluster, 240.0)
            written.follow(EXPIRES_S + 3.0, cluster)
        finally:
            cluster.kill()
            topics.close()
        good, outcome = compared(written, config, n_sent)
        tell(f"{outcome}; {storm.n_kills} kills")
        return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", type=Path, default=ENVIRONMENT / "bin/python")
    parser.add_argument("--keys", type=int, default=20)
    parser.add_argument("--moves", type=int, default=30, help="for each key")
    parser.add_argument(
        "--steps",
        nargs="*",
        default=[
            *("python", "worker", "unwritable", "stop:4", "python", "worker", "manager:4"),
            *("python", "worker", "stop:1", "python", "worker", "manager:2", "python"),
        ],
        help="what happens, one after the other: python, worker, manager:N, unwritable, stop:N",
    )
    options = parser.parse_args()
    if not options.python.exists():
        print(f"left out: no PyFlink at {options.python}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # also ends the cluster and the broker
    try:
        with tempfile.TemporaryDirectory(prefix="streamgp-flink-") as name:
            good = run(
                options.python,
                Path(name),
                n_keys=options.keys,
                n_moves=options.moves,
                steps=options.steps,
            )
    except Unavailable as missing:
        print(f"left out: {missing}")
        return 0
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
