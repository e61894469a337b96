"""Sections, tables and code blocks of documents, and a machine on which their commands are run."""

import itertools
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import streamgp as package

PACKAGES = Path(package.__file__).parents[1]
PATIENCE_S = 300.0


def section(text: str, heading: str, *, until: str = "#") -> str:
    """Return what stands under a heading, up to a line that begins with `until`."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^{until}|\Z)", text, re.M | re.S)
    assert found, f"no heading {heading!r}"
    return found[1]


def rows(text: str) -> list[list[str]]:
    """Return the cells of all tables in a text, without their heads."""
    lines = re.findall(r"^\| (.*) \|$", text, re.M)
    cells = [[cell.strip() for cell in line.split(" | ")] for line in lines]
    return [row for row in cells if row[0].startswith("`")]


class Document:
    """A Markdown file and its code blocks, each with its language."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_text(encoding="utf-8")
        self.blocks = re.findall(r"^```(\w+)\n(.*?)^```$", self.text, re.M | re.S)

    def outputs(self) -> list[tuple[str, str]]:
        """Return each block that is followed by a block with its output, and that output."""
        return [
            (code, output)
            for (_, code), (after, output) in itertools.pairwise(self.blocks)
            if after == "text"
        ]

    def shell_lines(self) -> list[str]:
        """Return the commands in order, without comments and without those that install."""
        lines = [
            line.partition("  #")[0].rstrip()
            for kind, code in self.blocks
            if kind in ("bash", "console")
            for line in code.strip().splitlines()
        ]
        return [line for line in lines if line.startswith("streamgp ")]


class Machine:
    """An empty folder and a shell that finds streamgp, as after `. .venv/bin/activate`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "here"
        self.folder.mkdir()
        programs = folder / "bin"
        programs.mkdir()
        program = programs / "streamgp"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m streamgp "$@"\n')
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
        """Run a line to its end, with `said` as typed input; return what it prints."""
        pipe = subprocess.PIPE
        process = self.start(line, stdin=pipe, stdout=pipe, stderr=pipe)
        try:
            out, errors = process.communicate(said, timeout=PATIENCE_S)
        finally:
            end(process, signal.SIGKILL)
        assert process.returncode == 0, f"{line}\n{errors}"
        return out


def end(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> None:
    """End a process and its children, unless it has ended."""
    if process.poll() is None:
        os.killpg(process.pid, number)
    process.wait(PATIENCE_S)
