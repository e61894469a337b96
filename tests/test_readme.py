"""The README is run: what it shows is what happens."""

import csv
import itertools
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import streamgp as package
from streamgp import datasets

ROOT = Path(__file__).parents[1]
PACKAGES = Path(package.__file__).parents[1]
if not (ROOT / "README.md").is_file():
    pytest.skip("README.md is not beside the tests", allow_module_level=True)

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.M | re.S)
ROOMS = ("kitchen", "hall", "study", "bedroom")


def outputs_of(language: str) -> list[tuple[str, str]]:
    """Return the blocks of a language that are followed by a block of what they print."""
    return [
        (code, output)
        for (kind, code), (after, output) in itertools.pairwise(BLOCKS)
        if (kind, after) == (language, "text")
    ]


def streamgp(command: str, folder: Path) -> str:
    """Run a command line that begins with streamgp and return what it prints."""
    program, *arguments = shlex.split(command)
    assert program.rpartition("/")[2] == "streamgp"
    done = subprocess.run(
        [sys.executable, "-m", "streamgp.cli.main", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PACKAGES)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def without_times(table: str) -> list[str]:
    """Return the lines of a table without the last column, which differs between machines."""
    return [re.sub(r" +\d+$", "", line.rstrip()) for line in table.strip("\n").splitlines()]


def test_command_lines_are_those_that_were_promised():
    lines = [code.strip() for kind, code in BLOCKS if kind == "bash"]
    assert lines[:2] == [
        "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/streamgp demo",
        'python3 -m venv .venv && .venv/bin/pip install -e ".[test]" && .venv/bin/pytest',
    ]


def test_table_of_the_demo_is_what_it_prints(tmp_path):
    promised = next(output for kind, output in BLOCKS if kind == "text")
    printed = streamgp("streamgp demo --no-picture", tmp_path)
    assert "\n".join(without_times(promised)) in "\n".join(without_times(printed))


def test_replay_prints_what_the_readme_shows(tmp_path):
    path = tmp_path / "rooms.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        for n, (x, room) in enumerate(datasets.WiFiRooms()):
            if n == 0:
                writer.writerow(["time", *x, "room"])
            writer.writerow([60 * n, *(f"{level:.0f}" for level in x.values()), ROOMS[room - 1]])
    [head] = [code for kind, code in BLOCKS if kind == "csv"]
    assert path.read_text(encoding="utf-8").startswith(head)
    [(command, promised)] = [
        (code, output) for code, output in outputs_of("bash") if code.startswith("streamgp replay")
    ]
    assert without_times(streamgp(command, tmp_path)) == without_times(promised)
    assert len(list((tmp_path / "results").iterdir())) == 7


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
