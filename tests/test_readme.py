"""The README is run: what it shows is what happens."""

import itertools
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import streamgp as package
from connectors.embedded.topics import EmbeddedTopics

ROOT = Path(__file__).parents[1]
PACKAGES = Path(package.__file__).parents[1]
if not (ROOT / "README.md").is_file():
    pytest.skip("README.md is not beside the tests", allow_module_level=True)

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.M | re.S)
PATIENCE_S = 300.0


def outputs_of(language: str) -> list[tuple[str, str]]:
    """Return the blocks of a language that are followed by a block of what they print."""
    return [
        (code, output)
        for (kind, code), (after, output) in itertools.pairwise(BLOCKS)
        if (kind, after) == (language, "text")
    ]


def shell_lines() -> list[str]:
    """Return the commands of the README in their order, but for those that install."""
    lines = [
        line
        for kind, code in BLOCKS
        if kind in ("bash", "console")
        for line in code.strip().splitlines()
    ]
    return [line for line in lines if not line.startswith("python3 -m venv")]


class Machine:
    """An empty folder and a shell that finds streamgp, as after `. .venv/bin/activate`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "here"
        self.folder.mkdir()
        programs = folder / "bin"
        programs.mkdir()
        program = programs / "streamgp"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m streamgp.cli.main "$@"\n')
        program.chmod(0o755)
        self._environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(PACKAGES),
        }

    def start(self, line: str, **streams: int) -> subprocess.Popen[str]:
        """Run a line in a process group of its own, to be ended as one."""
        return subprocess.Popen(
            ["bash", "-c", line],
            cwd=self.folder,
            env=self._environment,
            text=True,
            start_new_session=True,
            **streams,
        )

    def run(self, line: str, said: str = "") -> str:
        """Run a line to its end, with something typed; return what it prints."""
        pipe = subprocess.PIPE
        process = self.start(line, stdin=pipe, stdout=pipe, stderr=pipe)
        try:
            out, errors = process.communicate(said, timeout=PATIENCE_S)
        finally:
            end(process, signal.SIGKILL)
        assert process.returncode == 0, f"{line}\n{errors}"
        return out


def end(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> None:
    """End a process with what it has started, unless it has ended."""
    if process.poll() is None:
        os.killpg(process.pid, number)
    process.wait(PATIENCE_S)


def eventually(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """A machine on which the log of the README has been written."""
    made = Machine(tmp_path_factory.mktemp("machine"))
    [line] = [line for line in shell_lines() if line.startswith("streamgp demo")]
    made.run(line)
    return made


def without_times(table: str) -> list[str]:
    """Return the lines of a table without the last column, which differs between machines."""
    return [re.sub(r" +\d+$", "", line.rstrip()) for line in table.strip("\n").splitlines()]


def test_command_lines_are_those_that_were_promised():
    lines = [code.strip() for kind, code in BLOCKS if kind == "bash"]
    install = "python3 -m venv .venv && .venv/bin/pip install"
    assert lines[:3] == [
        f"{install} . && .venv/bin/streamgp demo",
        f'{install} -e ".[test]" && .venv/bin/pytest -n auto',
        f'{install} ".[page]" && .venv/bin/streamgp demo --page',
    ]


def test_every_other_command_is_run_here():
    """What the README adds has to be run below."""
    assert [line.split()[1] for line in shell_lines()] == [
        *("demo", "replay", "tune", "init", "tune", "replay"),
        *("init", "run", "send", "annotate", "watch"),
    ]


def test_table_of_the_demo_is_what_it_prints(machine):
    promised = next(output for kind, output in BLOCKS if kind == "text")
    printed = machine.run("streamgp demo --no-picture")
    assert "\n".join(without_times(promised)) in "\n".join(without_times(printed))


def test_replay_prints_what_the_readme_shows(machine):
    [head] = [code for kind, code in BLOCKS if kind == "csv"]
    assert (machine.folder / "rooms.csv").read_text(encoding="utf-8").startswith(head)
    [(command, promised)] = [
        (code, output) for code, output in outputs_of("bash") if code.startswith("streamgp replay")
    ]
    assert without_times(machine.run(command)) == without_times(promised)
    assert len(list((machine.folder / "results").iterdir())) == 7


def test_tuning_goes_as_the_readme_says(machine):
    tune, init, compare, replay = shell_lines()[2:6]
    log = machine.folder / "rooms.csv"
    whole = log.read_bytes()
    log.write_bytes(b"".join(whole.splitlines(keepends=True)[:601]))  # a third of the time
    try:
        assert "configuration: best.toml" in machine.run(tune)
        machine.run(init)
        table = machine.run(compare).splitlines()
        assert [line.split()[0] for line in table[-2:]] == ["default", "best"]
        assert "600 events" in machine.run(replay)
    finally:
        log.write_bytes(whole)


def held(topics, topic):
    with closing(EmbeddedTopics(topics).reader([topic])) as reader:
        return str([record.value for record in reader.poll(0.0)])


def test_a_worker_is_tried_without_kafka_as_the_readme_says(machine):
    init, run, send, annotate, watch = shell_lines()[6:]
    machine.run(init)
    topics, seen = machine.folder / "topics", machine.folder / "seen.txt"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [machine.start(run, **quiet)]
    try:
        eventually(lambda: (topics / "topics.db").exists())
        started.append(machine.start(send, **quiet))
        eventually(lambda: "label.request" in held(topics, "requests"))
        machine.run(annotate, said="n kitchen\nkitchen\nd\nq\n")
        eventually(lambda: held(topics, "consensus").count("kitchen") >= 2)
        with seen.open("w") as file:
            started.append(machine.start(watch, stdout=file, stderr=subprocess.DEVNULL))
            eventually(lambda: "accuracy" in seen.read_text())
        worker = started[0]
        os.killpg(worker.pid, signal.SIGTERM)
        assert worker.wait(PATIENCE_S) == 0
    finally:
        for process in started:
            end(process, signal.SIGKILL)
    assert "1 in group streamgp at file://./topics" in seen.read_text()


@pytest.mark.parametrize(
    ("code", "promised"),
    outputs_of("python"),
    ids=[code.splitlines()[0] for code, _ in outputs_of("python")],
)
def test_python_block_prints_what_the_readme_shows(code, promised, capsys):
    exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == promised


def test_every_python_block_is_followed_by_its_output():
    assert len(outputs_of("python")) == [kind for kind, _ in BLOCKS].count("python")


def test_links_lead_somewhere():
    targets = re.findall(r"\]\(([^)#]*)(?:#[^)]*)?\)", README)
    missing = [t for t in targets if t and "://" not in t and not (ROOT / t).exists()]
    assert missing == []


def test_versions_are_those_of_the_package_metadata():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "River 0.26" in README
    assert "river>=0.26,<0.27" in project["dependencies"]
    extras = set(re.findall(r'"?\.\[([a-z,]+)\]"?', README))
    assert extras <= set(project["optional-dependencies"])
