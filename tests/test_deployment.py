"""The pages for operators say what the code does."""

import configparser
import json
import re
import shlex
from pathlib import Path

import click
import pytest

import connectors
import streamgp
from connectors.topics import ALL_TOPICS, COMPACTED
from streamgp.apps import console
from streamgp.cli.main import cli
from streamgp.config import load
from tests.helpers import exit_statuses
from tests.helpers.documents import rows, section

DOCS = Path(__file__).parents[1] / "docs"
if not DOCS.is_dir():
    pytest.skip("docs/ is not beside the tests", allow_module_level=True)

PAGES = ("deployment", "sizing", "monitoring", "operating", "troubleshooting", "changes")
TEXT = "\n".join((DOCS / f"{name}.md").read_text(encoding="utf-8") for name in PAGES)
SOURCES = [
    path.read_text(encoding="utf-8")
    for package in (streamgp, connectors)
    for path in Path(package.__file__).parent.rglob("*.py")
]


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.M | re.S)


def test_all_topics_are_listed_with_their_clean_up():
    listed = {row[0].strip("`"): row[3] for row in rows(section(TEXT, "Topics", until="## "))}
    assert listed == {name: "compact" if name in COMPACTED else "delete" for name in ALL_TOPICS}


def test_the_service_is_started_again_where_that_helps():
    [unit] = blocks("ini")
    parsed = configparser.ConfigParser(interpolation=None)
    parsed.optionxform = str
    parsed.read_string(unit)
    kept_down = {int(status) for status in parsed["Service"]["RestartPreventExitStatus"].split()}
    helped = {console.DONE, console.LOST_BROKER}
    assert kept_down == {s for s in exit_statuses.OF_A_WORKER if s < 128} - helped


def logged():
    """Return the events that a worker may log."""
    said = "\n".join(SOURCES)
    calls = re.findall(r"\bsay\(\s*(?:logging\.\w+|level),\s*\"([a-z-]+)\"", said)
    log = re.findall(r"_log\.(?:info|warning)\(\s*\"([a-z-]+)\"", said)
    return {*calls, *log, "library-warning"}


def test_every_event_of_the_log_is_explained():
    listed = rows(section(TEXT, "Logs", until="## "))
    assert {row[0].strip("`") for row in listed} == logged()
    assert {word for row in listed for word in row[1].split(", ")} == {"info", "warning", "error"}


def test_the_line_of_a_log_has_fields_that_exist():
    line = json.loads(next(block for block in blocks("json") if '"level"' in block))
    said = "\n".join(SOURCES)
    assert [name for name in line if f'"{name}"' not in said and f"{name}=" not in said] == []


@pytest.mark.parametrize("block", blocks("toml"))
def test_configurations_are_valid(block):
    assert load.parse_worker(block, source="a page").broker is not None


LINES = [line.removeprefix("$ ") for block in blocks("console") for line in block.splitlines()]
RUNNING_TEXT = re.sub(r"^```.*?^```$", "", TEXT, flags=re.MULTILINE | re.DOTALL)
COMMANDS = sorted(
    {
        command
        for line in [*LINES, *re.findall(r"`([^`]*)`", RUNNING_TEXT)]
        for command in line.partition("  #")[0].split(" | ")
        if re.match("streamgp [a-z]", command)
    }
)


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_exist_with_their_options(line):
    _, name, *words = shlex.split(line)
    command = cli.commands[name]
    parts = [command]
    if isinstance(command, click.Group):
        parts += [command.commands[word] for word in words if word in command.commands]
    known = {option for part in parts for given in part.params for option in given.opts}
    assert [word for word in words if word.startswith("--") and word not in known] == []
