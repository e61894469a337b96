"""What `streamgp flink` says where it cannot begin; tests/flink has it at work."""

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from streamgp.apps.flink import cluster
from streamgp.cli.main import cli

ROOT = Path(__file__).parents[3]
KAFKA = 'broker = "kafka://127.0.0.1:1"\n'


def run(tmp_path, text, *options):
    path = tmp_path / "worker.toml"
    path.write_text(text)
    result = CliRunner().invoke(cli, ["flink", str(path), *options])
    assert result.exit_code == 2, result.output
    return result.stderr


@pytest.fixture
def no_pyflink(monkeypatch):
    monkeypatch.setattr(cluster, "find_spec", lambda _: None)


@pytest.mark.usefixtures("no_pyflink")
def test_without_pyflink_one_line_says_how_to_install_it(tmp_path):
    (line,) = run(tmp_path, KAFKA).splitlines()
    assert line.startswith("Error: PyFlink is not installed in ")
    assert "bash docker/flink-environment.sh DIR" in line
    assert (ROOT / "docker/flink-environment.sh").exists()
    assert (ROOT / "docs/flink.md").exists()


def test_a_missing_connector_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "find_spec", lambda _: sys.modules["json"].__spec__)
    monkeypatch.setenv("FLINK_HOME", str(tmp_path))
    assert f"{tmp_path / 'lib'} has no Kafka connector of Flink" in run(tmp_path, KAFKA)


@pytest.mark.parametrize(
    ("text", "options", "error"),
    [
        (
            'broker = "file://topics"\n',
            (),
            'broker = "file://topics" is not Kafka, and Flink works on',
        ),
        (
            KAFKA + '[total_budget]\nrule = "at_most"\nn = 5\n',
            (),
            "[total_budget] counts for all keys together, and Flink holds each key apart; leave it",
        ),
        (KAFKA, ("-D", "state.backend.type"), "-D must be KEY=VALUE, got 'state.backend.type'"),
        (KAFKA, ("--submit", "here:8081"), "--submit must be http://HOST:PORT of a cluster, got"),
    ],
)
@pytest.mark.usefixtures("no_pyflink")
def test_what_flink_cannot_do_is_refused_in_words(tmp_path, text, options, error):
    assert error in run(tmp_path, text, *options)


def test_the_newest_checkpoint_that_is_complete_is_taken(tmp_path):
    for n, name in enumerate(["job1/chk-7", "job2/chk-1", "job2/chk-2"]):
        directory = tmp_path / name
        directory.mkdir(parents=True)
        if name != "job2/chk-2":  # it was not finished
            metadata = directory / "_metadata"
            metadata.touch()
            os.utime(metadata, (n, n))
    assert cluster.last_checkpoint(tmp_path) == (tmp_path / "job2/chk-1").as_uri()


def test_no_other_module_imports_pyflink_and_no_dependency_brings_it():
    importing = set()
    for path in [*(ROOT / "streamgp").rglob("*.py"), *(ROOT / "connectors").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] == "pyflink" for name in names):
                importing.add(path.relative_to(ROOT).as_posix())
    of_flink = {"connectors/flink/function.py", "connectors/flink/job.py"}
    assert importing == of_flink | {"streamgp/apps/flink/cluster.py"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "flink" not in str([project["dependencies"], project["optional-dependencies"]])


def test_everything_but_the_job_is_loaded_without_pyflink():
    code = (
        "import sys; sys.modules['pyflink'] = None\n"
        "import connectors.keyed_state, connectors.flink.client_properties\n"
        "import streamgp.apps.flink.process, streamgp.cli.main"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
