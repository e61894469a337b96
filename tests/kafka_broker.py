"""A real Kafka broker of one node, started and stopped by tests and benchmarks.

It needs Java 17 or newer, and Maven the first time: the jars that `kafka_pom.xml` names are kept in
a cache outside the tree. STREAMGP_TEST_KAFKA_VERSION names another version, 3.5 or newer. The cache
also holds what saves a second at each start: classes as loaded by the JVM, and formatted
directories. Nothing here needs pytest or a Kafka client.

    with Broker() as broker:
        print(broker.servers)

"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

POM = Path(__file__).with_name("kafka_pom.xml")
INSTALL = (
    "Kafka tests need Java 17 and Maven: apt-get install openjdk-17-jre-headless maven, or name a "
    "broker in STREAMGP_TEST_KAFKA"
)
USERS = {"ada": "ada-secret", "stranger": "stranger-secret"}
"""Users who may log in to a broker with security; `stranger` then has no rights."""
_SESSION_S = 4.0
_NOTICED_S = _SESSION_S + 1.5
_JAVA = ("-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_CLUSTER = "c3RyZWFtZ3AtdGVzdHMtMA"  # the same for every broker, so formatted data can be copied


class Unavailable(Exception):  # noqa: N818
    """No broker is available on this machine; the text says what to install."""


class Broker:
    """A broker of one node; `with` starts it, stops it and removes its data.

    It dies with the thread that started it if `setpriv` is installed.

    Parameters
    ----------
    security
        Whether to listen for passwords (PLAIN and SCRAM) and TLS as well, and to forbid everything
        to the user `stranger`; needs `openssl`.
    heap_mb
        Largest heap of the broker.
    told
        A port of this machine. Clients that connect to `hidden_port` are told that the broker is
        at this port; a proxy that listens there and passes on to `hidden_port` gets all traffic.
    apart
        Whether the cluster's controller runs separately from the broker and outlives it, as with
        more than one server. Only then does the broker keep its promises when it is killed: a
        single node that comes back believes for a moment that its topics are gone, and that
        transactions it was about to end have ended.
    properties
        Added to the broker's settings, or replacing them.

    Attributes
    ----------
    servers
        Address for clients without security: "127.0.0.1:29092".
    sasl_servers, ssl_servers, sasl_ssl_servers
        Addresses for clients with security; the host of the certificate is "localhost".
    hidden_port
        Port to which a proxy passes on.
    directory
        Holds everything the broker writes; `ca.pem`, `client.pem` and `client.key` with security.

    """

    def __init__(
        self,
        *,
        security: bool = False,
        heap_mb: int = 256,
        told: int | None = None,
        apart: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self._java = _java()
        self._jars = jars()
        self._class_data: tuple[str, ...] | None = None
        self._security = security
        self._heap_mb = heap_mb
        self._told = told
        self._apart = apart
        self._more = dict(properties or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._controller: subprocess.Popen[bytes] | None = None
        self._ended_at: float | None = None
        self.directory = Path(tempfile.mkdtemp(prefix="streamgp-kafka-"))
        if security:
            _certificates(self.directory)
        self._settle()

    def __enter__(self) -> Broker:
        try:
            self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        self._end_controller()
        self.remove()

    @property
    def pid(self) -> int | None:
        """Return the process id while it runs."""
        return self._process.pid if self._process is not None else None

    def start(self, timeout_s: float = 60.0) -> None:
        """Start, or restart with the same data and ports, and wait until it responds."""
        if self._process is not None:
            raise RuntimeError("broker is running; stop it first")
        if self._class_data is None:
            self._class_data = _class_data(self._java, self._jars)
        until = time.monotonic() + timeout_s
        if self._apart and self._ended_at is not None:
            # Until the controller notices, it would tell the broker that nothing has changed.
            time.sleep(max(0.0, self._ended_at + _NOTICED_S - time.monotonic()))
        self._ended_at = None
        while True:
            self._launch()
            while time.monotonic() < until and self._alive():
                if _answers(self._port):
                    return
                time.sleep(0.05)
            taken = not self._alive() and "Address already in use" in self.log_tail(200)
            self.kill()
            self._end_controller()
            if not taken or time.monotonic() > until:
                raise RuntimeError(f"broker did not start; its last words:\n{self.log_tail()}")
            self._settle()

    def launch(self) -> None:
        """Start it, or restart it, without waiting: one of several may need the others."""
        if self._class_data is None:
            self._class_data = _class_data(self._java, self._jars)
        self._launch()

    def wait(self, timeout_s: float = 120.0) -> None:
        """Wait until it responds."""
        until = time.monotonic() + timeout_s
        while not _answers(self._port):
            if not self._alive() or time.monotonic() > until:
                raise RuntimeError(f"broker did not start; its last words:\n{self.log_tail()}")
            time.sleep(0.1)

    def stop(self, timeout_s: float = 30.0) -> None:
        """Terminate it, and wait until it has ended."""
        self._end(signal.SIGTERM, timeout_s)

    def kill(self) -> None:
        """Kill it; its data remains."""
        self._end(signal.SIGKILL, 10.0)

    def remove(self) -> None:
        """Delete its data."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def log_tail(self, n_lines: int = 30) -> str:
        """Return the last lines that the broker wrote."""
        path = self.directory / "broker.log"
        if not path.exists():
            return ""
        return "\n".join(path.read_text(errors="replace").splitlines()[-n_lines:])

    def _settle(self) -> None:
        """Choose ports and write the settings."""
        ports = free_ports(6)
        self._port = ports[0]
        self.servers = f"127.0.0.1:{ports[0]}"
        self.sasl_servers = f"127.0.0.1:{ports[2]}"
        self.ssl_servers = f"localhost:{ports[3]}"
        self.sasl_ssl_servers = f"localhost:{ports[4]}"
        self.hidden_port = ports[5]
        self._settings = self.directory / "server.properties"
        properties = _properties(self.directory, ports)
        if self._security:
            properties |= _security(self.directory, ports)
        if self._told is not None:
            for name, port in (("listeners", ports[5]), ("advertised.listeners", self._told)):
                properties[name] += f",HIDDEN://127.0.0.1:{port}"
            properties["listener.security.protocol.map"] += ",HIDDEN:PLAINTEXT"
        properties |= self._more
        if self._apart:
            controller = f"127.0.0.1:{ports[1]}"
            voters = {"controller.quorum.voters": f"2@{controller}"}
            own = {
                "process.roles": "controller",
                "node.id": "2",
                "listeners": f"CONTROLLER://{controller}",
                "log.dirs": str(self.directory / "controller"),
            }
            dropped = ("advertised.listeners", "inter.broker.listener.name")
            rest = {name: value for name, value in properties.items() if name not in dropped}
            _write(self.directory / "controller.properties", rest | voters | own)
            listeners = properties["listeners"].replace(f",CONTROLLER://{controller}", "")
            properties |= voters | {"process.roles": "broker", "listeners": listeners}
        _write(self._settings, properties)

    def _command(self, main: str, *arguments: str) -> list[str]:
        options = (f"-Xmx{self._heap_mb}m", *_JAVA, *(self._class_data or ()))
        return [self._java, *options, "-cp", f"{self._jars}/*", main, *arguments]

    def _launch(self) -> None:
        settings = [self._settings]
        if self._apart:
            settings.insert(0, self.directory / "controller.properties")
        with (self.directory / "broker.log").open("ab") as log:
            if not (self.directory / "data").exists():
                for each in settings:
                    self._format(each, log)
            if self._apart and self._controller is None:
                self._controller = self._run(settings[0], log)
            self._process = self._run(self._settings, log)

    def _format(self, settings: Path, log: BinaryIO) -> None:
        """Format the data directory; all but the first of a kind are copied, without a JVM."""
        made = self.directory / ("data" if settings == self._settings else settings.stem)
        kind = f"{settings.stem}{'-apart' * self._apart}{'-users' * self._security}"
        kept = self._jars.with_name(f"{self._jars.name}-{kind}")
        if kept.is_dir():
            shutil.copytree(kept, made)
            return
        users = [f"SCRAM-SHA-256=[name={u},password={p}]" for u, p in USERS.items()]
        scram = [word for user in users for word in ("--add-scram", user)]
        done = subprocess.run(
            self._command(
                "kafka.tools.StorageTool",
                *("format", "--cluster-id", _CLUSTER, "--config", str(settings)),
                *(scram if self._security else []),
            ),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            timeout=60.0,
        )
        if done.returncode == 0:  # otherwise the broker's own message says more
            with tempfile.TemporaryDirectory(dir=kept.parent) as fresh:
                copy = shutil.copytree(made, Path(fresh, kind))
                with contextlib.suppress(OSError):  # another process was faster
                    copy.rename(kept)

    def _run(self, settings: Path, log: BinaryIO) -> subprocess.Popen[bytes]:
        guard = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        return subprocess.Popen(
            guard + self._command("kafka.Kafka", str(settings)),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=self.directory,
        )

    def _end_controller(self) -> None:
        controller, self._controller = self._controller, None
        if controller is not None:
            controller.kill()
            controller.wait(10.0)

    def _alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _end(self, number: signal.Signals, timeout_s: float) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10.0)
        self._ended_at = time.monotonic()


def _write(path: Path, properties: Mapping[str, str]) -> None:
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))


def jars() -> Path:
    """Return the folder with the broker's jars; Maven fills it the first time."""
    found = re.findall(r"<kafka\.version>(.*)</kafka\.version>", POM.read_text())
    version = os.environ.get("STREAMGP_TEST_KAFKA_VERSION") or found[0]
    cache = _cache()
    home = cache / f"kafka-{version}"
    if home.is_dir():
        return home
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable(INSTALL)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of two runs, the second finds the files of the first
        if home.is_dir():
            return home
        fresh = Path(tempfile.mkdtemp(dir=cache))
        try:
            shutil.copy(POM, fresh / "pom.xml")
            done = subprocess.run(
                [
                    *(maven, "-q", "-B", "dependency:copy-dependencies"),
                    *("-DoutputDirectory=jars", f"-Dkafka.version={version}"),
                ],
                cwd=fresh,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=600.0,
            )
            if done.returncode != 0:
                lines = (done.stdout + done.stderr).strip().splitlines()
                raise Unavailable(
                    f"Maven could not get the broker's jars: {lines[0] if lines else '?'}; "
                    "name a broker in STREAMGP_TEST_KAFKA"
                )
            (fresh / "jars").rename(home)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return home


def _cache() -> Path:
    """Return a folder that outlasts the tests, even without a writable home directory."""
    try:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        cache = caches / "streamgp-tests"
        cache.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        raise Unavailable(
            f"There is no folder for the broker's jars: {error}; name one in XDG_CACHE_HOME, or a "
            "broker in STREAMGP_TEST_KAFKA"
        ) from error
    return cache


def _java() -> str:
    java = shutil.which("java")
    if java is None:
        raise Unavailable(INSTALL)
    said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60.0).stderr
    found = re.search(r'version "(\d+)', said)
    if found is None or int(found[1]) < 17:
        first = said.strip().partition("\n")[0]
        raise Unavailable(f"{INSTALL} (java is there, but says {first!r})")
    return java


def _class_data(java: str, jars: Path) -> tuple[str, ...]:
    """Return the JVM options to start with classes that an earlier broker has loaded."""
    said = subprocess.run([java, "-version"], capture_output=True, timeout=60.0).stderr
    build = hashlib.sha256(said).hexdigest()[:12]  # other builds cannot use the archive
    archive = jars.with_name(f"{jars.name}-{build}.jsa")
    with (jars.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            with tempfile.TemporaryDirectory(dir=jars.parent) as fresh:
                written = Path(fresh, "classes.jsa")
                first = Broker()
                first._class_data = (f"-XX:ArchiveClassesAtExit={written}",)
                with first:
                    first.stop(120.0)
                if not written.exists():
                    return ()
                written.rename(archive)
    return (f"-XX:SharedArchiveFile={archive}",)


def free_ports(n: int) -> list[int]:
    """Return ports below those of outgoing connections, so that they stay free over a restart."""
    with contextlib.ExitStack() as held:
        ports: list[int] = []
        for port in random.SystemRandom().sample(range(20000, 32000), 1000):
            taken = held.enter_context(socket.socket())
            try:
                taken.bind(("127.0.0.1", port))
            except OSError:
                continue
            ports.append(port)
            if len(ports) == n:
                return ports
    raise RuntimeError(f"no {n} free ports between 20000 and 32000")


def _answers(port: int) -> bool:
    """Ask for the versions of all requests, as clients do first."""
    ask = b"\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff"  # ApiVersions v0, number 1, no client id
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0) as connection:
            connection.sendall(len(ask).to_bytes(4, "big") + ask)
            return len(connection.recv(8)) == 8
    except OSError:
        return False


def _properties(directory: Path, ports: list[int]) -> dict[str, str]:
    broker, controller = f"127.0.0.1:{ports[0]}", f"127.0.0.1:{ports[1]}"
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{controller}",
        "listeners": f"PLAINTEXT://{broker},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{broker}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(directory / "data"),
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "3000",
        # A killed broker starts again only once the session of its predecessor has expired.
        "broker.session.timeout.ms": f"{_SESSION_S * 1e3:.0f}",
        "broker.heartbeat.interval.ms": "500",
        "log.cleaner.dedupe.buffer.size": "2097152",
        "num.network.threads": "2",
        "num.io.threads": "2",
        "background.threads": "2",
    }


def _security(directory: Path, ports: list[int]) -> dict[str, str]:
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    where = [f"127.0.0.1:{port}" for port in ports]
    open_to = f"PLAINTEXT://{where[0]},SASL_PLAINTEXT://{where[2]}"
    settings = {
        "listeners": f"{open_to},SSL://{where[3]},SASL_SSL://{where[4]},CONTROLLER://{where[1]}",
        "advertised.listeners": f"{open_to},SSL://localhost:{ports[3]},"
        f"SASL_SSL://localhost:{ports[4]}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "server.keystore.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "ca.pem"),
        "ssl.client.auth": "requested",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:ada;User:CN=client",
    }
    for listener in ("sasl_plaintext", "sasl_ssl"):
        name = f"listener.name.{listener}"
        settings[f"{name}.plain.sasl.jaas.config"] = f"{login} {users};"
        settings[f"{name}.scram-sha-256.sasl.jaas.config"] = scram
    return settings


def _certificates(directory: Path) -> None:
    """Create an authority, and certificates for "localhost" and for a client."""
    if shutil.which("openssl") is None:
        raise Unavailable("Kafka tests with TLS need openssl: apt-get install openssl")
    for line in _openssl():
        subprocess.run(
            ["openssl", *line.split()], cwd=directory, check=True, capture_output=True, timeout=60.0
        )
    for name in ("server", "client"):
        both = (directory / f"{name}.key").read_text() + (directory / f"{name}.pem").read_text()
        (directory / f"{name}.keystore.pem").write_text(both)


def _openssl() -> Iterator[str]:
    new = "-newkey rsa:2048 -nodes -days 30"
    # Python 3.13 and newer reject an authority that does not state its key usage.
    usage = "-addext keyUsage=critical,keyCertSign,cRLSign"
    yield f"req -x509 {new} -keyout ca.key -out ca.pem -subj /CN=authority {usage}"
    for name, host in (("server", "localhost"), ("client", "client")):
        yield (
            f"req -x509 {new} -keyout {name}.key -out {name}.pem -subj /CN={name} -CA ca.pem "
            f"-CAkey ca.key -addext subjectAltName=DNS:{host} -addext basicConstraints=CA:FALSE"
        )
