"""The tutorial is run: what it shows is what happens."""

import os
import re
import signal
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from connectors.embedded.topics import EmbeddedTopics
from streamgp import isgp
from streamgp.apps.replay.demo import run_learners
from streamgp.cli.main import cli
from tests.helpers.documents import PATIENCE_S, Document, Machine, end
from tests.helpers.page_server import Browser
from tests.helpers.topics import wait_until

PATH = Path(__file__).parents[1] / "docs" / "tutorial.md"
if not PATH.is_file():
    pytest.skip("docs/ is not beside the tests", allow_module_level=True)

TUTORIAL = Document(PATH)
LINES = TUTORIAL.shell_lines()


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """A machine on which the log of the tutorial has been written."""
    made = Machine(tmp_path_factory.mktemp("machine"))
    made.run(LINES[1])
    return made


def without_times(table: str) -> list[str]:
    """Return the lines of a table without the last column, which differs between machines."""
    return [re.sub(r" +\d+$", "", line.rstrip()) for line in table.strip("\n").splitlines()]


def test_every_command_is_run_here():
    """What the tutorial adds has to be run below."""
    assert [line.split()[1] for line in LINES] == [
        *("demo", "demo", "replay", "tune", "init", "tune", "replay"),
        *("init", "run", "send", "page", "annotate", "watch"),
    ]


def test_table_of_the_demo_is_what_it_prints():
    [(command, promised)] = [(c, out) for c, out in TUTORIAL.outputs() if c == "streamgp demo\n"]
    # In this process: it has loaded River and what that needs.
    done = CliRunner().invoke(cli, command.split()[1:])
    assert (done.exit_code, done.stderr) == (0, "")
    printed = done.stdout
    assert max(map(cell_len, printed.splitlines())) <= 80
    assert "…" not in printed
    shown = without_times(promised)
    if sys.version_info >= (3, 12):
        # `sum` rounds floats less since then, and River's adaptive random forest splits otherwise.
        assert shown.pop().startswith("skeptical ARF (River)")
    assert "\n".join(shown) in "\n".join(without_times(printed))


def test_what_filter_and_scaling_do_is_what_the_sentence_below_the_table_says():
    builders = {
        "both": lambda seed: isgp(seed=seed),
        "the filter alone": lambda seed: isgp(seed=seed, rescale=False),
    }
    both, alone = (run.statistics for run in run_learners(1, learners=builders).values())
    sentence = (
        f"the first learner asks for {both.n_asked} labels and is right in "
        f"{both.accuracy:.1%}; with the filter alone for {alone.n_asked}, and in "
        f"{alone.accuracy:.1%}."
    )
    assert sentence.replace("%", " %") in " ".join(TUTORIAL.text.split())


def test_replay_prints_what_is_shown(machine):
    [head] = [code for kind, code in TUTORIAL.blocks if kind == "csv"]
    assert (machine.folder / "rooms.csv").read_text(encoding="utf-8").startswith(head)
    [(command, promised)] = [
        (code, out) for code, out in TUTORIAL.outputs() if code.startswith("streamgp replay")
    ]
    assert without_times(machine.run(command)) == without_times(promised)
    assert len(list((machine.folder / "results").iterdir())) == 7


def test_order_of_the_rooms_is_that_of_the_log(machine):
    lines = (machine.folder / "rooms.csv").read_text(encoding="utf-8").splitlines()[1:]
    rooms = [line.rpartition(",")[2] for line in lines]
    assert list(dict.fromkeys(rooms)) == ["kitchen", "hall", "study", "bedroom"]
    assert rooms == sorted(rooms, key=rooms.index)
    assert {rooms.count(room) for room in rooms} == {500}


def test_tuning_goes_as_told(machine):
    tune, init, compare, replay = LINES[3:7]
    log = machine.folder / "rooms.csv"
    whole = log.read_bytes()
    head, *rows = whole.splitlines(keepends=True)
    log.write_bytes(b"".join([head, *rows[460:540]]))  # two rooms, in a fraction of the time
    try:
        assert "configuration: best.toml" in machine.run(tune)
        machine.run(init)
        table = machine.run(compare).splitlines()
        assert [line.split()[0] for line in table[-2:]] == ["default", "best"]
        assert "80 events" in machine.run(replay)
    finally:
        log.write_bytes(whole)


eventually = partial(wait_until, patience_s=PATIENCE_S, pause_s=0.1)


def held(topics, topic):
    with closing(EmbeddedTopics(topics).reader([topic])) as reader:
        return str([record.value for record in reader.poll(0.0)])


def test_deployment_works_as_the_tutorial_says(machine):
    init, run, send, page, annotate, watch = LINES[7:]
    machine.run(init)
    topics, seen = machine.folder / "topics", machine.folder / "seen.txt"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [machine.start(run, **quiet)]
    try:
        eventually(lambda: (topics / "topics.db").exists())
        started.append(machine.start(send, **quiet))
        eventually(lambda: "label.request" in held(topics, "requests"))
        answer_in_a_browser(machine, page, started)
        eventually(lambda: held(topics, "consensus").count("kitchen") == 1)
        machine.run(annotate, said="kitchen\nkitchen\nd\nq\n")
        eventually(lambda: held(topics, "consensus").count("kitchen") >= 3)
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


def answer_in_a_browser(machine, page, started):
    """Answer one card of the page, on a free port, and end it."""
    log = machine.folder / "page.txt"
    with log.open("w") as file:
        served = machine.start(f"{page} --bind 127.0.0.1:0", stdout=file, stderr=file)
    started.append(served)
    eventually(lambda: "page: http" in log.read_text())
    browser = Browser(int(re.search(r"127\.0\.0\.1:(\d+)", log.read_text())[1]))
    card = browser.card()
    assert card["labels"] == []
    assert browser.answer(card["id"], "kitchen", "a1").status == 200
    end(served)
