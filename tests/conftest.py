"""Settings of all tests, and the broker that the Kafka tests share.

Hypothesis draws the same examples each time, without a time limit; `--hypothesis-profile=nightly`
draws more of them, `search` draws new ones each time, and with `-m quick` there are few.

"""

import atexit
import contextlib
import gc
import importlib
import logging
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import threading
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

# The matrices of tests are small: BLAS threads would wait for each other longer than they compute,
# and many times as long when tests run in parallel. numpy reads this when it is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Tests connect to this machine, which the proxy of a network (http_proxy) does not reach.
os.environ["no_proxy"] = "*"

if sys.dont_write_bytecode and not sys.pycache_prefix:
    # No bytecode should lie beside the sources. Without any, each worker would rewrite all asserts,
    # and each of the hundreds of programs that tests start would compile the sources again. They
    # inherit this folder; in a virtual environment it also serves later runs, and goes with it.
    if sys.prefix != sys.base_prefix and os.access(sys.prefix, os.W_OK):
        sys.pycache_prefix = os.path.join(sys.prefix, "bytecode-of-tests")
    else:
        sys.pycache_prefix = tempfile.mkdtemp(prefix="streamgp-bytecode-")
        atexit.register(shutil.rmtree, sys.pycache_prefix, ignore_errors=True)
    sys.dont_write_bytecode = False
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import pytest
from hypothesis import HealthCheck, settings

from streamgp.apps import gc_tuning
from tests.helpers.laws import BY_DAY
from tests.helpers.worker_process import Process
from tests.kafka_broker import Broker, Unavailable

# A busy machine may draw slowly, too; so may the rules of a state machine, which draw and compute.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", UNTIMED, derandomize=True, max_examples=BY_DAY)
settings.register_profile("nightly", UNTIMED, derandomize=True, max_examples=500)
settings.register_profile("search", UNTIMED, max_examples=2000)
settings.register_profile("quick", UNTIMED, derandomize=True, max_examples=3)
settings.load_profile("ci")


def pytest_configure(config: pytest.Config) -> None:
    """Draw few examples with `-m quick`; this is before the tests are imported."""
    chosen = config.getoption("--hypothesis-profile", None)
    if config.getoption("markexpr") == "quick" and not chosen:
        settings.load_profile("quick")


def restore_signals():
    """Restore signals that the runner was started with ignored or blocked, as tests expect.

    `nohup` ignores SIGHUP, a script's background jobs ignore SIGINT; programs inherit that, and so
    would those that tests end by signals. A signal with a handler is not inherited as ignored, even
    if the handler does nothing: programs get the default, and the runner still ignores it.

    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # code that handles Ctrl-C replaces this
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:  # no program would have an exit status
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT, signal.SIGTSTP, signal.SIGCONT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


restore_signals()


def start_broker(**options):
    """Return a broker to be entered; if none is available, skip the test, but fail in CI."""
    try:
        return Broker(**options)
    except Unavailable as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


# The Kafka client never closes a socket that could not connect.
UNCLOSED = "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"


def mind_the_client(config):
    """Ignore sockets that the client leaves open, also after the test that has used it.

    Its threads may outlast the test, too, and draw random numbers. They get generators of their
    own, as Hypothesis fails each law during which the state of the usual one changes.

    """
    config.addinivalue_line("filterwarnings", UNCLOSED)
    importlib.import_module("connectors.kafka.client_import")
    for name, module in list(sys.modules.items()):
        if name.startswith("kafka.") and getattr(module, "random", None) is random:
            module.random = random.Random()


def needs_broker(item: pytest.Item) -> bool:
    """Whether a test uses a real broker, according to its fixtures or a parameter of one."""
    fixtures = getattr(item, "fixturenames", ())
    if "kafka" in fixtures or "broker_of_ones_own" in fixtures:
        return True
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return "request" in fixtures and any(str(value) == "kafka" for value in parameters)


# Files and folders that are slow for their number of tests: most start programs or a browser.
LONG = re.compile(
    r"tests/(benchmarks|chaos|page"
    r"|test_(conftest|deployment|docker|docs|examples|notebooks|observe|package|platforms|tutorial)\.py"
    r"|.*/test_(annotate_terminal|demo_command|forget_command|fuzz|hostile_records|kill_storm"
    r"|long_lines|migration|replay_environments|run_command|send_lines|sqlite|state_option"
    r"|worker_environments)\.py)"
)
# Not slow for their number of tests, which `-m quick` includes. The first has 1800; the others come
# late in the alphabet.
LARGE = (
    "tests/learners/test_contract.py",
    "tests/test_pool_learning.py",
    "tests/trees/test_forest_of_trees.py",
)


def start_order(item: pytest.Item) -> tuple[bool, bool, bool]:
    """Put first what would keep one worker busy after the others have finished.

    The longest file is one of the page, whose browser is a program of its own.

    """
    in_browser = item.nodeid.startswith("tests/page/")
    is_long = item.nodeid.startswith(LARGE) or LONG.match(item.nodeid) is not None
    return not needs_broker(item), not in_browser, not is_long


def mark_quick(items: list[pytest.Item]) -> None:
    """Mark one row of each test that starts no broker and is in no file that takes long."""
    seen = set()
    for item in items:
        name = item.nodeid.partition("[")[0]
        if name in seen or needs_broker(item) or item.get_closest_marker("nightly"):
            continue
        if not LONG.match(name):
            seen.add(name)
            item.add_marker(pytest.mark.quick)


def collect_in_an_order_of_its_own(config: pytest.Config) -> None:
    """Let each worker import the files of all tests in another order.

    The first time, asserts are rewritten and installed packages compiled, which is cached. Workers
    in step would each do that for every file, before any of them has cached it.

    """
    tests = Path(__file__).parent
    if hasattr(config, "workerinput") and [Path(arg).resolve() for arg in config.args] == [tests]:
        names = {path.relative_to(tests).parts[0] for path in tests.rglob("test_*.py")}
        parts = [str(tests / name) for name in sorted(names)]
        random.Random(config.workerinput["workerid"]).shuffle(parts)
        config.args[:] = parts


@pytest.hookimpl(tryfirst=True)  # before marks select
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that need a broker. They come last, so that other failures show sooner.

    Not so with several workers: these tests mostly wait, and the others compute meanwhile.

    """
    mark_quick(items)
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (start_order(item), item.path.parts))
    else:
        items.sort(key=needs_broker)
    for item in filter(needs_broker, items):
        item.add_marker(pytest.mark.kafka)
        item.add_marker(pytest.mark.timeout(900.0))  # the first one may have to fetch the jars
        # The filters of a test are set before its fixtures, so even the first one needs this.
        item.add_marker(pytest.mark.filterwarnings(UNCLOSED))
    if "nightly" not in config.getoption("markexpr"):
        left_out = {item for item in items if item.get_closest_marker("nightly")}
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=list(left_out))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Exclude the tests and their modules from garbage collection.

    They are half a million objects, none of them garbage: each collection would take a third of a
    second. Workers and replays in this process neither freeze all objects, as cycles that a test
    leaves would then stay for good, nor look for garbage before, or count what is frozen: together
    that would take a tenth of a second, in each of a thousand.

    """
    collect_in_an_order_of_its_own(session.config)
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        nothing = dict.fromkeys(("collect", "freeze", "unfreeze", "get_freeze_count"), lambda: 0)
        thresholds = {"get_threshold": gc.get_threshold, "set_threshold": gc.set_threshold}
        gc_tuning.gc = SimpleNamespace(**nothing, **thresholds)
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[object]:
    """Collect what a failed test has left open: warnings about it would fail another one."""
    n_failed = item.session.testsfailed
    result = yield
    if item.session.testsfailed > n_failed:
        sys.last_value = sys.last_traceback = sys.last_exc = None  # which have all its variables
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gc.collect()
    return result


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """With `-n auto`, start three more workers than cores.

    At first, three mostly wait for their brokers, and one for its browser.
    """
    return len(os.sched_getaffinity(0)) + 3


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """With `-n`, give each file as a whole to one worker, and so the Kafka tests of a folder.

    The tests of a file share fixtures, and the Kafka tests in apps, in connectors/kafka and in the
    rest of connectors a broker: in one group, the latter two would outlast everything else. Two
    files that wait for brokers that are away, or for the ends of transactions, count among the
    rest. While they wait for it, the other workers have the cores. Of the tests in a browser, all
    but the longest file share one.

    """
    if config.getvalue("dist") != "load":  # the user chose another one
        return None
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False  # by `start_order`, not by the number of tests

    class FilesAndBrokers(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            folder = re.search(
                r"(?:^|/)(apps|connectors(?:/kafka(?!/test_kafka_(?:faults|stalls)))?)/", file
            )
            if folder and "kafka" in nodeid:
                return f"kafka in {folder[1]}"
            return re.sub(r"^tests/page/test_(?!answering).*", "browser", file)

    return FilesAndBrokers(config, log)


@pytest.fixture
def logging_as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo the log settings that a worker or a page makes for the whole process."""
    monkeypatch.setattr(logging, "raiseExceptions", logging.raiseExceptions)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    names = ("root", "streamgp", "streamgp.worker", "py.warnings", "kafka")
    loggers = [logging.getLogger(name) for name in names]
    kept = [(logger.handlers[:], logger.level, logger.propagate) for logger in loggers]
    yield
    logging.captureWarnings(False)
    for logger, (handlers, level, propagate) in zip(loggers, kept, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left_to_the_end():
    """Collect remaining garbage while warnings about it still count as those of tests."""
    yield
    gc.collect()


@pytest.fixture(autouse=True)
def garbage_is_collected_as_before():
    """Restore garbage collection, which a worker in this process makes rare.

    Otherwise files in reference cycles would stay open until no more can be opened. Of what the
    test has left, nearly all is still among the young objects.
    """
    before = gc.get_threshold()
    yield
    if gc.get_threshold() != before:
        gc.set_threshold(*before)
        gc.collect(1)


@pytest.fixture(autouse=True)
def workers_end_with_their_test():
    """Kill the workers that a test has left running, as one does that fails."""
    before = [*Process.running]
    yield
    for worker in [*Process.running]:
        if worker not in before:
            worker.kill()


shared_broker = contextlib.ExitStack()
servers: list[str] = []


@pytest.fixture(scope="module")
def kafka(pytestconfig):
    """Return the address of the broker that all tests share: "host:port"."""
    mind_the_client(pytestconfig)
    named = os.environ.get("STREAMGP_TEST_KAFKA")
    if named:
        return named
    if not servers:
        servers.append(shared_broker.enter_context(start_broker()).servers)
        shared_broker.callback(servers.clear)
        pytestconfig.add_cleanup(shared_broker.close)
    return servers[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Iterator[None]:
    """Stop the shared broker after the last test that needs it: even an idle one uses the CPU."""
    try:
        yield
    finally:
        if nextitem is None or not needs_broker(nextitem):
            shared_broker.close()


@pytest.fixture
def kafka_prefix(request):
    """Return a unique prefix for the topics and groups of this test."""
    assert request.node.get_closest_marker("kafka"), "a fixture's parameter must be 'kafka'"
    name = re.sub(r"[^a-zA-Z0-9]+", "-", request.node.name)
    return f"{name[:80]}-{uuid.uuid4().hex[:8]}."


@pytest.fixture(scope="session")
def broker_of_ones_own(pytestconfig):
    """Return a function that creates a broker that a test may kill: `with broker_of_ones_own()`."""
    mind_the_client(pytestconfig)
    return start_broker
