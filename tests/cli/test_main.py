"""The command as a whole: help at once, one line for what is wrong, quiet ends."""

from __future__ import annotations

import errno
import itertools
import os
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import streamgp
from connectors.topics import BrokerError
from streamgp.apps.release import release
from streamgp.cli.main import cli

MAIN = "from streamgp.cli.main import main; main()"


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MAIN, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
    )


def test_help_names_every_command_and_an_example() -> None:
    result = CliRunner().invoke(cli, ["--help"])
    assert result.exit_code == 0
    for word in (
        "demo",
        "replay",
        "report",
        "init",
        "completion",
        "run",
        "check",
        "streamgp replay log.csv --label activity",
        "streamgp run worker.toml --create-topics",
    ):
        assert word in result.stdout


@pytest.mark.parametrize(
    ("option", "setting"),
    [("--window", "windows"), ("--warm-up", "warm_up"), ("--challenge", "challenge")],
)
def test_an_option_that_is_a_setting_of_the_file_is_said_to_be_one(
    option: str, setting: str
) -> None:
    result = CliRunner().invoke(cli, ["replay", "log.csv", option, "5"])
    assert result.exit_code == 2
    assert result.stderr.startswith(
        f"Error: No such option '{option}'; {setting} is a setting of the configuration file, "
        "which `streamgp init` prints (see "
    )


def test_several_logs_are_to_be_joined() -> None:
    result = CliRunner().invoke(cli, ["replay", "may.csv", "june.csv", "--label", "room"])
    assert result.exit_code == 2
    assert result.stderr.startswith(
        "Error: Got unexpected extra argument (june.csv); it takes one LOG: join several, as "
        "docs/logs.md shows (see "
    )


@pytest.mark.parametrize("command", cli.commands)
def test_every_option_of_every_command_has_a_help_text(command: str) -> None:
    result = CliRunner().invoke(cli, [command, "--help"])
    assert result.exit_code == 0
    assert f"streamgp {command}" in result.stdout
    for parameter in cli.commands[command].params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
            assert parameter.opts[0] in result.stdout


def test_help_loads_nothing_heavy() -> None:
    heavy = {"numpy", "scipy", "river", "rich", "matplotlib", "pyarrow", "kafka", "threadpoolctl"}
    heavy |= {"connectors.wire.codec", "connectors.worker", "streamgp.apps.deployment.deployment"}
    code = (
        "import sys; from streamgp.cli.main import cli\n"
        "for a in ([], *([name] for name in cli.commands)):\n"
        "    try: cli([*a, '--help'])\n"
        "    except SystemExit: pass\n"
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines()[-1] == "[]"


def test_version() -> None:
    result = run("--version")
    assert result.stdout == f"streamgp {release()}\n"
    assert result.returncode == 0


def test_without_arguments_help_is_shown_on_stderr() -> None:
    result = run()
    assert (result.returncode, result.stdout) == (2, "")
    assert "Usage: streamgp" in result.stderr


# click words its messages differently from version to version; what they are about stays.
WRONG = {
    ("--foo",): ("--foo", "`streamgp --help`"),
    ("replai",): ("replai", "`streamgp --help`"),
    ("replay",): ("LOG", "`streamgp replay --help`"),
    ("replay", "--limit", "x"): ("--limit", "`streamgp replay --help`"),
    ("init", "more"): ("more", "`streamgp init --help`"),
    ("send", "--limit"): ("--limit", "`streamgp send --help`"),
    ("replay", "--seeds", "99999999999"): ("1<=x<=1000", "`streamgp replay --help`"),
}


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_use_is_one_line_and_status_2(arguments: tuple[str, ...]) -> None:
    subject, remedy = WRONG[arguments]
    result = CliRunner().invoke(cli, arguments, prog_name="streamgp")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert result.stderr.endswith(f" (see {remedy})\n")
    assert subject in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_ctrl_c_outside_a_run_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_context: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.commands["init"], "invoke", interrupted)
    result = CliRunner().invoke(cli, ["init"])
    assert result.exit_code == 130
    assert result.stderr.strip() == "interrupted"


def test_broker_that_cannot_be_reached_ends_any_command_with_75(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unreachable(_context: object) -> None:
        raise BrokerError("host:9092 cannot be reached:\nname is not known")

    monkeypatch.setattr(cli.commands["init"], "invoke", unreachable)
    result = CliRunner().invoke(cli, ["init"])
    assert result.exit_code == 75
    assert result.stderr == "Error: host:9092 cannot be reached: name is not known\n"


def test_memory_that_libraries_do_not_fit_into_is_reported_in_one_line(tmp_path: Path) -> None:
    limited = (
        "import resource, streamgp.cli.main\n"
        "pages = int(open('/proc/self/statm').read().split()[0])\n"
        "most = pages * resource.getpagesize() + 2**24\n"
        "resource.setrlimit(resource.RLIMIT_AS, (most, most))\n"
    )
    (tmp_path / "log.csv").write_text("a,room\n1,hall\n")
    done = subprocess.run(
        [sys.executable, "-c", limited + MAIN, "replay", "log.csv", "--label", "room"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        timeout=300,
    )
    assert done.returncode == 70
    assert done.stderr.startswith("Error: memory ran out; raise the limit of this process")
    assert done.stderr.count("\n") == 1


def test_memory_that_runs_out_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(_context: object) -> None:
        raise MemoryError

    monkeypatch.setattr(cli.commands["init"], "invoke", greedy)
    result = CliRunner().invoke(cli, ["init"])
    assert result.exit_code == 70
    assert result.stderr.startswith("Error: memory ran out; raise the limit of this process")
    assert result.stderr.count("\n") == 1


def test_a_name_that_no_file_can_have_is_reported_with_the_name(tmp_path: Path) -> None:
    log, name = tmp_path / "log.csv", "n" * 300
    log.write_text("a,room\n1,x\n2,y\n")
    result = CliRunner().invoke(cli, ["tune", str(log), "--label", "room", "--output", name])
    assert result.exit_code == 2
    assert (
        result.stderr == f"Error: cannot write {name}: File name too long; choose a shorter one\n"
    )


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EACCES, "make it accessible, or name another place"),
    ],
)
def test_a_file_that_cannot_be_used_is_reported_with_what_helps(
    monkeypatch: pytest.MonkeyPatch, error: int, advice: str
) -> None:
    def failing(_context: object) -> None:
        raise OSError(error, "that is why", "labels.csv")

    monkeypatch.setattr(cli.commands["init"], "invoke", failing)
    result = CliRunner().invoke(cli, ["init"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"Error: cannot use labels.csv: that is why; {advice}\n"


def test_a_removed_working_directory_is_reported_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, gone = tmp_path / "log.csv", tmp_path / "gone"
    log.write_text("a,room\n1,x\n2,y\n")
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    result = CliRunner().invoke(
        cli, ["replay", str(log), "--label", "room", "--report", "report.html"]
    )
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: the working directory has been removed; change to another one\n"
    )


def test_error_of_our_own_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_context: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(cli.commands["init"], "invoke", broken)
    assert isinstance(CliRunner().invoke(cli, ["init"]).exception, ZeroDivisionError)


def test_reader_that_goes_away_in_the_midst_is_reported_by_the_status() -> None:
    """Also without a buffer, where Python would take what was written until then for all."""
    code = (
        "import click\n"
        "from streamgp.cli import main\n"
        "main.cli.commands['init'].callback = lambda **_: click.echo('line\\n' * 100_000)\n"
        "main.main()"
    )
    command = [sys.executable, "-uc", code, "init"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"line\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.parametrize(
    ("buffering", "command"),
    [
        *itertools.product(("", "u"), ("init", "--help", "run --help", "demo --seed x")),
        # Seconds, and rich writes as `--help` does.
        pytest.param("", "demo", marks=pytest.mark.nightly),
    ],
)
def test_reader_that_goes_away_is_reported_by_the_status_alone(
    buffering: str, command: str
) -> None:
    """Noticed by click, by rich, or at the end, when what is left is written out."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        process = subprocess.run(
            [sys.executable, f"-{buffering}c", MAIN, *command.split()],
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writer)
    is_wrong_use = command.endswith("x")  # whose message goes to stderr
    assert process.returncode == (2 if is_wrong_use else 141)
    assert bool(process.stderr) == is_wrong_use


SHORT_WALK = """
from functools import partial
from streamgp.apps.replay import demo as walks
walks.raw_demo = partial(walks.raw_demo, n_windows=60)
"""


@pytest.mark.parametrize(
    ("arguments", "before"),
    [
        pytest.param("demo --raw", SHORT_WALK, marks=pytest.mark.nightly, id="demo --raw"),
        pytest.param("replay rooms.csv --label room --limit 40", "", id="replay"),
    ],
)
def test_closed_stderr_ends_no_command(arguments: str, before: str, tmp_path: Path) -> None:
    assert run("demo", "--write", str(tmp_path / "rooms.csv")).returncode == 0
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {arguments} 2>&-', sys.executable, before + MAIN],
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0
    assert done.stdout


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_slow_reader_gets_everything_from_a_pipe_that_came_non_blocking(unbuffered: str) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    demo = subprocess.Popen(
        [sys.executable, "-c", MAIN, "demo", "--write", "-"],
        stdout=writing,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    os.close(writing)
    with demo, open(reading, "rb") as pipe:
        select.select([pipe], [], [])  # it writes more than a pipe holds, before any is taken
        lines = pipe.read().splitlines()
    assert (demo.returncode, len(lines)) == (0, 2001)


@pytest.mark.parametrize("on_terminal", [True, False])
def test_only_a_terminal_gets_question_marks_for_what_it_cannot_show(
    on_terminal: bool, tmp_path: Path
) -> None:
    """In a file or pipe they would be taken for labels, for example those of `labels`."""
    path = tmp_path / "\u5ba4.csv"
    path.write_text("room\n")
    reading, writing = os.openpty() if on_terminal else os.pipe()
    program = [sys.executable, "-c", MAIN, "replay", str(path), "--label", "none"]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    subprocess.run(program, stderr=writing, check=False, env=environment)
    with open(reading, "rb", buffering=0) as end:
        said = end.read(4096)
    os.close(writing)
    assert ("/?.csv" if on_terminal else "\u5ba4.csv") in said.decode(errors="replace")


def test_what_no_encoding_has_gets_no_traceback() -> None:
    """Half of a surrogate pair, for example of a file name that is not UTF-8."""
    prints = "import streamgp.cli.main as m; m.cli.main = lambda **_: print('a\\udcff'); m.main()"
    said = subprocess.run([sys.executable, "-c", prints], capture_output=True, check=False)
    assert (said.stdout, said.stderr) == (b"a?\n", b"")


@pytest.mark.parametrize("how", ["-m streamgp", "console script"])
def test_one_blas_thread_whatever_the_environment_says(how: str, tmp_path: Path) -> None:
    script = tmp_path / "streamgp"
    program = "from streamgp.__main__ import main\nmain()\n"
    if how == "-m streamgp":
        program = "import runpy\nrunpy.run_module('streamgp', run_name='__main__')\n"
    # What the command would load late, and what it would then find.
    script.write_text(
        "from streamgp.cli import main\n"
        "def show(**_):\n"
        "    import numpy, scipy.linalg, os, threadpoolctl\n"
        "    print(os.environ['OMP_NUM_THREADS'], os.environ['PYTHONHASHSEED'])\n"
        "    print({each['num_threads'] for each in threadpoolctl.threadpool_info()})\n"
        f"main.cli.main = show\n{program}"
    )
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    done = subprocess.run(
        [sys.executable, str(script), "demo"],
        env={**clean, **dict.fromkeys(names, "2"), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "1 0\n{1}\n"


def test_hashes_are_the_same_in_every_process_unless_the_user_says_otherwise(
    tmp_path: Path,
) -> None:
    script = tmp_path / "streamgp"
    script.write_text(
        "import sys\n"
        "from streamgp.__main__ import main\n"
        "from streamgp.cli.main import cli\n"
        "cli.main = lambda **_: print(hash('wap1'), sys.argv[1:])\n"
        "main()\n"
    )

    def printed(**environment: str) -> str:
        return subprocess.run(
            [sys.executable, str(script), "demo"],
            env={**clean, **environment},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    clean = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    clean["PYTHONPATH"] = os.pathsep.join(sys.path)
    first = printed()
    assert first.endswith("['demo']\n")
    assert first == printed() == printed(PYTHONHASHSEED="0")
    assert first != printed(PYTHONHASHSEED="7")


def test_what_a_start_does_twice_loads_no_command() -> None:
    code = (
        "import os, sys\n"
        "from streamgp.__main__ import main\n"
        "os.execv = lambda *_: sys.exit(int('click' in sys.modules))\n"
        "main()\n"
    )
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    assert subprocess.run([sys.executable, "-c", code], env=clean, check=False).returncode == 0


def test_an_interpreter_that_cannot_be_started_again_is_reported_in_one_line() -> None:
    code = "import sys; from streamgp.__main__ import main; sys.executable = '/no/python'; main()"
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    command = [sys.executable, "-c", code, "--version"]
    done = subprocess.run(command, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "Error: cannot start '/no/python' once more: No such file or directory; set "
        "PYTHONHASHSEED=0, then it need not be\n"
    )
    done = subprocess.run(
        command, env=clean | {"PYTHONHASHSEED": "0"}, capture_output=True, check=False
    )
    assert done.returncode == 0


def test_ctrl_c_while_modules_load_ends_with_130() -> None:
    code = (
        "import os, signal, sys\n"
        "from streamgp.__main__ import main\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'streamgp.cli.main':\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "main()\n"
    )
    fixed = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code, "init"], env=fixed, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "")


def test_ctrl_c_while_python_starts_once_more_ends_with_130(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal\n"
        "if 'PYTHONHASHSEED' in os.environ:\n"
        "    signal.raise_signal(signal.SIGINT)\n"
    )
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    clean["PYTHONPATH"] = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "streamgp", "init"],
        env=clean, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_ends_the_first_process_of_a_container(name: str) -> None:
    code = (
        "import signal\n"
        "import streamgp.cli.main as program\n"
        "from streamgp.__main__ import main\n"
        f"program.main = lambda: signal.raise_signal(signal.{name})\n"
        "main()\n"
    )
    container = ["unshare", "--map-root-user", "--pid", "--fork"]
    try:
        subprocess.run([*container, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no namespaces can be made")
    fixed = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [*container, sys.executable, "-c", code], env=fixed, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (128 + getattr(signal, name), b"")


def beside(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command where a package in a folder is found before streamgp's own."""
    path = os.pathsep.join([str(folder), str(Path(streamgp.__file__).parents[1])])
    return subprocess.run(
        [sys.executable, "-c", MAIN, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
        cwd=folder,
    )


@pytest.mark.parametrize("code", ["VERSION = '4.1'", "import of_theirs", ""])
def test_a_connectors_package_of_another_project_is_reported_in_one_line(tmp_path, code):
    (tmp_path / "connectors").mkdir()
    (tmp_path / "connectors" / "__init__.py").write_text(code)
    information = tmp_path / "connectors-4.1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: connectors\nVersion: 4.1\n")
    (information / "top_level.txt").write_text("connectors\n")
    done = beside(tmp_path, "--version")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2
    assert line.startswith("Error: package 'connectors' (")
    assert "belongs to project 'connectors'" in line
    assert "environment of its own" in line


def test_a_file_in_place_of_a_module_is_reported_in_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "streamgp", "--version"]
    fixed = {**os.environ, "PYTHONHASHSEED": "0"}
    for file, code, why in (
        # Two that every start imports: a module of Python, and one of those it is built on.
        ("random.py", "", "ImportError: "),
        ("random.py", "class Random:\n    def choice(self): 1 +", "SyntaxError: "),
        ("click/__init__.py", "import of_theirs", "ModuleNotFoundError: "),
    ):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(code)
        done = subprocess.run(
            command, env=fixed, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        name = Path(file).parts[0].removesuffix(".py")
        (line,) = done.stderr.splitlines()
        assert done.returncode == 2
        assert line.startswith(
            f"Error: {tmp_path / file} was imported in place of the module {name!r} that streamgp "
            f"needs ({why}"
        )
        assert line.endswith("; rename it, or start streamgp in another directory")
        (tmp_path / file).unlink()


def test_a_checkout_whose_dependencies_are_not_installed_is_reported_in_one_line(
    tmp_path: Path,
) -> None:
    for name in ("streamgp", "connectors"):
        (tmp_path / name).symlink_to(Path(streamgp.__file__).parents[1] / name)
    done = subprocess.run(
        [sys.executable, "-S", "-m", "streamgp", "demo"],  # without site-packages
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"Error: package 'click' is not installed for {sys.executable}; install streamgp as its "
        "README says, and start it from there\n"
    )


def test_files_that_hide_nothing_are_not_blamed_for_an_error(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("")
    (tmp_path / "test.py").write_text("")  # hides a module of Python, but nobody imports it
    (tmp_path / "streamgp").write_text(
        "import mine\n"
        "from streamgp.cli import main\n"
        "main.main = lambda: {}['no']\n"
        "from streamgp.__main__ import main\n"
        "main()\n"
    )
    fixed = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "streamgp")],
        env=fixed,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "KeyError: 'no'"


def test_a_copy_of_a_module_on_the_path_hides_no_other_error(tmp_path: Path) -> None:
    """Where clusters keep packages, `PYTHONPATH` names many that are installed, too."""
    copy = tmp_path / "textwrap.py"
    copy.write_text(Path(textwrap.__file__).read_text())
    perhaps = f" perhaps because of files imported in place of other modules: {copy}"
    told = {
        "{}[1]": "KeyError" + perhaps,
        "import no": "ModuleNotFoundError" + perhaps,
        "None.no": "AttributeError" + perhaps,
        "textwrap.dedent(1)": "TypeError" + perhaps,
        "textwrap.no": "SystemExit",
        "try: textwrap.no\nexcept AttributeError as no: raise ValueError from no": "SystemExit",
    }
    code = (
        "import textwrap\n"
        "from streamgp.__main__ import main\n"
        "from streamgp.cli import main as command\n"
        f"for does in {[*told]}:\n"
        "    command.main = lambda: exec(does)\n"
        "    try:\n"
        "        main()\n"
        "    except BaseException as error:\n"
        "        print(type(error).__name__, *getattr(error, '__notes__', []))\n"
    )
    fixed = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=fixed, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [*told.values()]
    for line in done.stderr.splitlines():
        assert line.startswith(f"Error: {copy} was imported in place of the module 'textwrap' ")


def test_a_connectors_folder_of_the_users_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "connectors").mkdir()
    file = tmp_path / "connectors" / "__init__.py"
    for code, why in (("", ""), ("import of_theirs", ": No module named 'of_theirs'")):
        file.write_text(code)
        done = beside(tmp_path, "--version")
        (line,) = done.stderr.splitlines()
        assert done.returncode == 2
        assert line.startswith(
            f"Error: package 'connectors' ({file}{why}) was imported in place of streamgp's own; "
            "rename it, start streamgp in another directory, "
        )


def test_a_text_in_place_of_a_whole_number_is_reported_as_one() -> None:
    done = run("replay", "log.csv", "--label", "room", "--limit", "many")
    assert done.returncode == 2
    assert "'many' is not a valid whole number" in done.stderr


def test_a_file_in_place_of_a_backup_is_reported_as_one(tmp_path: Path) -> None:
    config, backup = tmp_path / "worker.toml", tmp_path / "backup"
    config.write_text(f'broker = "file://{tmp_path}/topics"')
    backup.write_text("")
    assert run("check", str(config), "--create-topics").returncode == 0
    done = run("restore", str(config), str(backup))
    assert done.returncode == 2
    assert done.stderr == f"Error: {backup} is a file; name the directory of a backup\n"
