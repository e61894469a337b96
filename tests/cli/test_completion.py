"""Completion by Tab: the answers that shells get, and the scripts that ask for them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from streamgp.cli import COMPLETE_VARIABLE
from streamgp.cli.main import cli

SHELLS = ("bash", "zsh", "fish")
# As the command is installed: a user who starts it this way gets the hashes fixed, if need be.
SCRIPT = "from streamgp.__main__ import main\nmain()\n"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Return a program named as the installed one."""
    path = tmp_path / "streamgp"
    path.write_text(f"#!{sys.executable}\n{SCRIPT}")
    path.chmod(0o755)
    return path


def environment(**more: str) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    return {**own, "PYTHONPATH": os.pathsep.join(sys.path), **more}


def completed(program: Path, *words: str) -> list[str]:
    """Ask as bash does: with the words before the cursor, and the number of the last one."""
    asked = environment(
        COMP_WORDS=" ".join(["streamgp", *words]),
        COMP_CWORD=str(len(words)),
        **{COMPLETE_VARIABLE: "bash_complete"},
    )
    result = subprocess.run([program], env=asked, capture_output=True, text=True, check=True)
    assert result.stderr == ""
    return result.stdout.splitlines()


def test_commands_are_completed(program: Path) -> None:
    assert completed(program, "re") == [
        "plain,rebuild",
        "plain,recover",
        "plain,replay",
        "plain,report",
        "plain,restore",
        "plain,retract",
    ]
    assert set(completed(program, "")) >= {f"plain,{name}" for name in cli.commands}


def test_options_and_their_choices_are_completed(program: Path) -> None:
    options = completed(program, "replay", "log.csv", "--")
    assert {"plain,--label", "plain,--preset", "plain,--report"} <= set(options)
    assert completed(program, "replay", "--pre") == ["plain,--preset"]
    assert completed(program, "annotate", "w.toml", "--conf") == ["plain,--confidence"]
    assert completed(program, "replay", "log.csv", "--preset", "") == [
        "plain,default",
        "plain,paper",
    ]
    assert completed(program, "completion", "") == [f"plain,{shell}" for shell in SHELLS]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("replay", "ro"), "file"),
        (("replay", "log.csv", "--config", "ro"), "file"),
        (("replay", "log.csv", "--report", "ro"), "file"),
        (("replay", "log.csv", "--out", "ro"), "dir"),
        (("demo", "--picture", "ro"), "file"),
        (("report", "ro"), "dir"),
        (("report", "out", "ro"), "file"),
    ],
    ids=" ".join,
)
def test_files_are_left_to_the_shell(program: Path, words: tuple[str, ...], kind: str) -> None:
    assert completed(program, *words) == [f"{kind},ro"]


def test_completion_starts_python_once_and_loads_nothing_heavy(tmp_path: Path) -> None:
    program = tmp_path / "streamgp"
    program.write_text(
        f"#!{sys.executable}\n"
        "import atexit, sys\n"
        "print('started', file=sys.stderr)\n"
        "heavy = {'numpy', 'scipy', 'river', 'rich'}\n"
        "atexit.register(lambda: print(sorted(heavy & set(sys.modules)), file=sys.stderr))\n"
        f"{SCRIPT}"
    )
    program.chmod(0o755)
    asked = environment(
        COMP_WORDS="streamgp re", COMP_CWORD="1", **{COMPLETE_VARIABLE: "bash_complete"}
    )
    result = subprocess.run([program], env=asked, capture_output=True, text=True, check=True)
    assert result.stderr.splitlines() == ["started", "[]"]


@pytest.mark.parametrize("shell", SHELLS)
def test_script_is_one_that_its_shell_accepts(shell: str) -> None:
    result = CliRunner().invoke(cli, ["completion", shell])
    assert result.exit_code == 0
    assert f"{COMPLETE_VARIABLE}={shell}_complete" in result.stdout
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    subprocess.run([shell, "-n"], input=result.stdout, text=True, check=True)


def test_help_says_where_the_script_belongs() -> None:
    result = CliRunner().invoke(cli, ["completion", "--help"])
    for words in ("~/.bashrc", "~/.zshrc", "~/.config/fish/completions/streamgp.fish"):
        assert words in result.stdout


def test_unknown_shell_is_one_line() -> None:
    result = CliRunner().invoke(cli, ["completion", "tcsh"])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "'tcsh' is not one of" in result.stderr


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_with_the_printed_script(program: Path, tmp_path: Path) -> None:
    (tmp_path / "rooms.csv").touch()
    script = CliRunner().invoke(cli, ["completion", "bash"]).stdout
    asked = (
        'compopt() { printf "%s " compopt "$@"; }\n'  # bash has it only while it completes
        f"{script}\n"
        "COMP_WORDS=(streamgp rep); COMP_CWORD=1\n"
        f'_streamgp_completion "{program}"; echo "${{COMPREPLY[*]}}"\n'
        "COMP_WORDS=(streamgp replay ro); COMP_CWORD=2\n"
        f'_streamgp_completion "{program}"; echo "${{COMPREPLY[*]}}"\n'
        "complete -p streamgp\n"
    )
    result = subprocess.run(
        ["bash", "--norc"],
        input=asked,
        env=environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    first, second, third = result.stdout.splitlines()
    assert first.split() == ["replay", "report"]
    assert second.split() == ["compopt", "-o", "default"]
    assert third == "complete -o nosort -F _streamgp_completion streamgp"
