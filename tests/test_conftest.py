"""The tests run alike wherever they are started, and none of them waits for ever."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock
from urllib.request import proxy_bypass

import pytest
from hypothesis import HealthCheck, settings

from tests.conftest import collect_in_an_order_of_its_own
from tests.helpers import laws
from tests.kafka_broker import Unavailable, _cache

TESTS = Path(__file__).parent
OF_SIGNALS = (
    "apps/test_stopping.py",
    "cli/test_hangup.py::test_hangup_ends_it_in_order[signalled-run w.toml]",
)
SENT = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def ignore_and_block_signals() -> None:
    """Leave a program with what `nohup`, scripts and careless supervisors leave it with."""
    for number in (*SENT, signal.SIGQUIT, signal.SIGCHLD, signal.SIGTSTP, signal.SIGCONT):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, (*SENT, signal.SIGALRM, signal.SIGCHLD))


def test_signals_arrive_in_tests_though_the_runner_ignores_and_blocks_them() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--timeout=120"]
        + [str(TESTS / name) for name in OF_SIGNALS],
        cwd=TESTS.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=500.0,
        check=False,
        preexec_fn=ignore_and_block_signals,
    )
    assert done.returncode == 0, done.stdout


OF_TWO = """
import gc

def test_that_fails():
    left_open = [open(__file__)]
    left_open.append(left_open)
    assert left_open == []

def test_after_it():
    gc.collect()
"""


def test_what_a_failed_test_leaves_open_fails_no_other(tmp_path: Path) -> None:
    (tmp_path / "test_of_two.py").write_text(OF_TWO)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", "pyproject.toml"),
            *("-p", "no:cacheprovider", str(tmp_path / "test_of_two.py")),
        ],
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        timeout=500.0,
        check=False,
    )
    assert "1 failed, 1 passed" in done.stdout, done.stdout


def test_no_proxy_stands_between_a_test_and_its_program() -> None:
    assert proxy_bypass("127.0.0.1")
    assert proxy_bypass("localhost:8080")


def test_every_test_has_a_deadline(pytestconfig) -> None:
    assert 0.0 < float(pytestconfig.getini("timeout")) <= 600.0


def test_workers_import_all_tests_each_in_another_order() -> None:
    orders = []
    for worker in ("gw0", "gw1", "gw2"):
        config = SimpleNamespace(workerinput={"workerid": worker}, args=[str(TESTS)])
        collect_in_an_order_of_its_own(config)
        orders.append([Path(path) for path in config.args])
    assert len({path for path, *_ in orders}) == 3
    assert all(sorted(order) == sorted(orders[0]) for order in orders)
    for file in TESTS.rglob("test_*.py"):
        assert any(file.is_relative_to(path) for path in orders[0])


def test_tests_that_were_chosen_are_collected_in_their_order() -> None:
    chosen = [str(TESTS / "test_presets.py"), str(TESTS / "gp")]
    config = SimpleNamespace(workerinput={"workerid": "gw1"}, args=[*chosen])
    collect_in_an_order_of_its_own(config)
    assert config.args == chosen


OF_BROKERS = ("connectors/test_broker_contract.py", "apps/worker/test_start_kafka.py")


OF_ALL_KINDS = (*OF_BROKERS, "test_presets.py", "test_package.py")
# Each is a run of pytest; what they import is imported once.
COLLECT = """
import sys, pytest
for expression in ("", "not kafka", "quick", "nightly"):
    print(f"-m {expression}:")
    pytest.main(["-p", "no:cacheprovider", "--collect-only", "-v", "-m", expression, *sys.argv[1:]])
"""


@pytest.fixture(scope="module")
def collected() -> dict[str, list[str]]:
    """The tests of some files that pytest would run, by the expression of `-m`."""
    done = subprocess.run(
        [sys.executable, "-c", COLLECT, *(str(TESTS / name) for name in OF_ALL_KINDS)],
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        timeout=500.0,
        check=True,
    )
    runs = re.findall(r"^-m (.*):\n((?s:.*?))(?=^-m |\Z)", done.stdout, re.M)
    return {expression: re.findall(r"<Function (.*)>", said) for expression, said in runs}


def test_what_needs_a_broker_comes_last_and_can_be_left_out(collected) -> None:
    everything, without = collected[""], collected["not kafka"]
    assert everything[: len(without)] == without
    assert "test_unknown_topics_are_refused[kafka]" not in everything  # it runs by night
    assert any(name.endswith("[memory]") for name in without)
    assert not any(name.endswith(("[kafka]", "[6]")) for name in without)
    assert all(name.endswith(("[kafka]", "[6]")) for name in everything[len(without) :])


def test_one_row_of_each_test_is_quick_but_none_with_a_broker_or_in_a_long_file(collected) -> None:
    text = (TESTS / "test_presets.py").read_text()
    assert "parametrize" in text
    functions = re.findall(r"^def (test_\w+)", text, re.M)
    quick = collected["quick"]
    of_presets = [row for row in quick if not row.endswith("[memory]")]
    assert [row.partition("[")[0] for row in of_presets] == functions
    assert len(of_presets) < len(quick)


@pytest.mark.parametrize("profile", ["ci", "nightly", "search", "quick"])
def test_no_law_fails_for_the_time_that_it_takes(profile) -> None:
    found = settings.get_profile(profile)
    assert found.deadline is None
    assert HealthCheck.too_slow in found.suppress_health_check


@pytest.mark.parametrize(("by_profile", "drawn"), [(3, 6), (15, 30), (500, 600)])
def test_a_law_draws_fewer_examples_where_the_profile_does(monkeypatch, by_profile, drawn) -> None:
    settings = Mock(default=Mock(max_examples=by_profile))
    monkeypatch.setattr(laws, "settings", settings)
    laws.examples(30)
    settings.assert_called_once_with(max_examples=drawn)


def test_every_law_draws_more_examples_by_night() -> None:
    fixed = [
        path.name
        for path in Path(__file__).parent.rglob("*.py")
        if re.search(r"max_examples ?= ?[0-9]", path.read_text(encoding="utf-8"))
    ]
    assert fixed == ["conftest.py"]  # the profiles themselves


def test_what_takes_long_is_run_when_it_is_named(collected) -> None:
    assert {name.rpartition("[")[2] for name in collected["nightly"]} == {"kafka]", "1]"}


def test_without_a_folder_for_the_jars_of_the_broker_there_is_none(tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(Unavailable, match=r"no folder for the broker's jars: .* XDG_CACHE_HOME"):
        _cache()
