"""Commands on Windows and macOS, emulated as `tests/helpers/platforms.py` says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

ROOT = Path(__file__).parents[1]
BROKER = ("--broker", "file://./topics")
LOG = "".join(
    # Names that no file has on Windows, and two of one file where case does not count.
    f"{i},{i % 2},{('CON', 'a:b', 'ann', 'Ann')[i % 4]},{('café', 'kitchen')[i % 2]}\n"
    for i in range(40)
)
_PATIENCE_S = 120.0


class Machine:
    """Runs commands on a platform, in a directory of its own."""

    def __init__(self, platform: str, directory: Path) -> None:
        self.directory = directory / platform
        self.directory.mkdir()
        self._pretend = "from tests.helpers.platforms import pretend\n"
        self._pretend += f"pretend({platform!r})\n" if platform != "linux" else ""

    def start(
        self,
        *words: str,
        code: str = "from streamgp.__main__ import main\nmain()",
        seed: str | None = "0",
        out: int = subprocess.PIPE,
    ) -> subprocess.Popen[bytes]:
        """Start a command, or a program."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": str(seed)}
        if seed is None:
            del environment["PYTHONHASHSEED"]
        return subprocess.Popen(
            [sys.executable, "-c", f"{self._pretend}{code}", *words],
            cwd=self.directory,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
        )

    def run(self, *words: str, stdin: bytes = b"", status: int = 0, seed: str | None = "0") -> str:
        """Run a command to its end; return what it writes."""
        process = self.start(*words, seed=seed)
        try:
            out, _ = process.communicate(stdin, _PATIENCE_S)
        finally:
            process.kill()
            process.wait()
        assert process.returncode == status, (words, out)
        assert b"\r" not in out
        return out.decode()

    @contextmanager
    def running(self, *words: str) -> Iterator[Path]:
        """Run a command during the block; yield the file of what it writes."""
        log = self.directory / f"{words[0]}.log"
        with log.open("wb") as file:
            process = self.start(*words, out=file.fileno())
        try:
            yield log
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=_PATIENCE_S)
            assert process.returncode == 0, log.read_text("utf-8")
        finally:
            process.kill()
            process.communicate()


def line_of(log: Path, text: str) -> str:
    """Return the first line of a file that contains a text, once there is one."""
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        for line in log.read_text("utf-8").splitlines(keepends=True):
            if text in line and line.endswith("\n"):
                return line.rstrip()
        time.sleep(0.05)
    raise AssertionError(f"no {text} in time: {log.read_text('utf-8')}")


def test_a_replay_writes_the_same_messages_everywhere(tmp_path: Path) -> None:
    command = (
        *("replay", "log.csv", "--label", "room", "--time", "t", "--key", "who"),
        *("--annotator", "error_rate=0.2,seed=1", "--out", "out", "--state", "state"),
    )
    written = []
    for platform in ("linux", "win32", "darwin"):
        machine = Machine(platform, tmp_path)
        (machine.directory / "log.csv").write_text(f"t,x,who,room\n{LOG}", encoding="utf-8")
        machine.run(*command)
        out = machine.directory / "out"
        written.append({path.name: path.read_bytes() for path in out.glob("*.jsonl")})
        if platform == "win32":
            assert "forgot 'CON'" in machine.run("forget", "state", "CON", "--yes")
            assert b'"CON"' not in (out / "consensus.jsonl").read_bytes()
    assert written[1:] == written[:1] * 2
    assert b"caf\xc3\xa9" in written[0]["consensus.jsonl"]


# Of the two, Windows lacks more; by day a replay runs on both.
@pytest.mark.parametrize("platform", ["win32", pytest.param("darwin", marks=pytest.mark.nightly)])
def test_a_deployment_in_a_directory_runs_everywhere(platform: str, tmp_path: Path) -> None:
    machine = Machine(platform, tmp_path)
    (machine.directory / "worker.toml").write_text(machine.run("init", "--worker"), "utf-8")
    with machine.running("run", "worker.toml", *BROKER, "--create-topics") as log:
        line_of(log, '"event":"assigned"')
        lines = b'{"event_id":"e1","key":"CON","x":{"a":1}}\n{"event_id":"e2","key":"con","x":{}}'
        assert "2 records sent" in machine.run("send", "worker.toml", *BROKER, "-", stdin=lines)
        line_of(log, '"requests":')
        answered = machine.run(
            *("annotate", "worker.toml", *BROKER, "--as", "ann"), stdin="n caf\u00e9\n1\n".encode()
        )
        assert "2 answers given" in answered
        assert "in use by another worker" in machine.run("run", "worker.toml", *BROKER, status=2)
        page_at = ("--bind", "127.0.0.1:0")
        with machine.running("page", "worker.toml", *BROKER, "--as", "ann", *page_at) as page:
            url = line_of(page, "page: ").removeprefix("page: ")
            with urlopen(url, timeout=_PATIENCE_S) as response:
                assert response.status == 200
    copied = machine.run("backup", "worker.toml", "copy", *BROKER)
    assert copied.startswith("2 learners with 2 lines of consensus")
    other = ("--broker", "file://./restored")
    machine.run("check", "worker.toml", *other, "--create-topics")
    restored = machine.run("restore", "worker.toml", "copy", *other, "--yes")
    assert restored.startswith("copy: 2 learners with 2 lines of consensus")


def test_windows_keeps_the_shell_waiting_for_the_exit_status(tmp_path: Path) -> None:
    """Without PYTHONHASHSEED a command starts another process, which `exec` would not wait for."""
    machine = Machine("win32", tmp_path)
    assert "No such command" in machine.run("nothing", status=2, seed=None)


ON_WINDOWS = """
from pathlib import Path
from unittest import mock
from connectors.storage.snapshots import InUseError, StateDirectory, locked, write_snapshot
from streamgp.cli.options import login_name
from streamgp.common.validation import path_in_url
from streamgp.config.broker_url import parse_address

assert parse_address("file:///C:/data").directory == Path("C:/data")
assert parse_address("file:///data").directory == Path("/data")
with mock.patch("getpass.getuser", side_effect=ModuleNotFoundError):
    assert login_name() == "user"
write_snapshot("bytes", b"a\\nb")
assert Path("bytes").read_bytes() == b"a\\nb"
with StateDirectory("state"), locked(Path("file")):
    try:
        StateDirectory("state")
    except InUseError as error:
        print(error)
"""


def test_windows_details(tmp_path: Path) -> None:
    machine = Machine("win32", tmp_path)
    process = machine.start(code=ON_WINDOWS)
    out, _ = process.communicate(timeout=_PATIENCE_S)
    assert out.decode().startswith(f"state is in use by process {process.pid}; stop it")
