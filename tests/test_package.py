import ast
import importlib
import inspect
import subprocess
import sys

import pytest
import river.datasets

import streamgp
import streamgp.evaluate


def loaded_by(statement):
    """Top-level modules that a fresh interpreter has loaded after a statement."""
    program = f"{statement}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return set(done.stdout.decode().split())


def test_importing_the_package_loads_no_numerics():
    loaded = loaded_by("import streamgp; dir(streamgp); streamgp.__version__; streamgp.__all__")
    assert "streamgp" in loaded
    assert not loaded & {"numpy", "scipy", "river", "pandas", "sklearn", "rich", "click", "msgspec"}


def test_the_loop_loads_no_numerics_either():
    loaded = loaded_by("from streamgp import InteractiveLoop, SimulatedAnnotator, Decision")
    assert not loaded & {"numpy", "scipy", "river"}


def test_a_learner_loads_no_test_dependency():
    loaded = loaded_by("from streamgp import isgp; isgp()")
    assert not loaded & {"sklearn", "hypothesis", "pytest", "matplotlib", "pyarrow"}


def test_data_sets_load_with_the_first_one_asked_for():
    """River's own data sets load scikit-learn and pandas where these are installed."""
    loaded = loaded_by("from streamgp import datasets; dir(datasets)")
    assert not loaded & {"river", "numpy", "pandas", "sklearn"}
    assert issubclass(streamgp.datasets.WiFiRooms, river.datasets.base.Dataset)
    with pytest.raises(AttributeError, match="has no attribute 'WiFiRoom'"):
        _ = streamgp.datasets.WiFiRoom


@pytest.mark.parametrize("name", streamgp.__all__)
def test_every_public_name_resolves(name):
    public = getattr(streamgp, name)
    assert public is getattr(streamgp, name)
    assert public.__doc__
    assert name.startswith(public.__name__.rpartition(".")[2])


def test_a_star_import_brings_exactly_the_public_names():
    names = {}
    exec("from streamgp import *", names)
    del names["__builtins__"]
    assert sorted(names) == streamgp.__all__


def test_dir_names_the_public_names_and_the_version():
    assert set(streamgp.__all__) | {"__version__"} <= set(dir(streamgp))
    assert streamgp.__all__ == sorted(streamgp.__all__)


LAZY = ("connectors", *(f"streamgp{name}" for name in ("", ".datasets", ".interactive", ".query")))


def names_of(statements):
    """Names that a module defines or imports, as a type checker finds them without running it."""
    for one in statements:
        if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING":
            yield from names_of(one.body)
        elif isinstance(one, ast.ImportFrom) and one.names[0].name == "*":
            yield from importlib.import_module(one.module).__all__
        elif isinstance(one, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in one.names)
        elif isinstance(one, ast.FunctionDef):
            yield one.name


@pytest.mark.parametrize("package", LAZY)
def test_editors_and_type_checkers_know_lazy_names_and_no_others(package):
    """To type checkers, a module with `__getattr__` has every name."""
    module = importlib.import_module(package)
    known = set(names_of(ast.parse(inspect.getsource(module)).body))
    assert set(module.__all__) <= known & set(dir(module))
    assert "__getattr__" not in known


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'streamgp' has no attribute 'isgpp'"):
        _ = streamgp.isgpp
    with pytest.raises(ImportError, match="cannot import name 'isgpp'"):
        exec("from streamgp import isgpp")


@pytest.mark.parametrize("module", ["kernels", "query", "datasets", "metrics", "budgets"])
def test_submodules_are_reached_as_attributes(module):
    program = f"import streamgp; print(streamgp.{module}.__name__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.decode().strip().endswith(module)


def test_query_names_all_resolve():
    query = importlib.import_module("streamgp.query")
    # Names in capitals first, as ruff sorts them.
    assert query.__all__ == sorted(query.__all__, key=lambda name: (not name.isupper(), name))
    assert all(hasattr(query, name) for name in query.__all__)


def test_every_budget_of_query_is_among_the_budgets():
    query = importlib.import_module("streamgp.query")
    budgets = importlib.import_module("streamgp.budgets")
    found = {name for name in query.__all__ if hasattr(getattr(query, name), "refund")}
    assert found == set(budgets.__all__)


def test_a_star_import_of_the_datasets_brings_the_datasets():
    names = {}
    exec("from streamgp.datasets import *", names)
    del names["__builtins__"]
    assert sorted(names) == ["GaussianClasses", "WiFiRooms"]


HOST = """
import gc, importlib, logging, os, random, signal, sys, threading, warnings
import numpy, river.linear_model, scipy.stats, threadpoolctl

def settings():
    loggers = {name: logging.getLogger(name) for name in (None, *logging.root.manager.loggerDict)}
    return {
        "loggers": {
            name: (one.level, one.propagate)
            for name, one in loggers.items()
            if (one.level, one.propagate) != (logging.NOTSET, True)
        },
        "handlers": (logging.root.handlers[:], logging.raiseExceptions, warnings.showwarning),
        "warnings": warnings.filters[:],
        "signals": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "hooks": (sys.excepthook, sys.unraisablehook, threading.excepthook, sys.stdout, sys.stderr),
        "garbage": (gc.get_threshold(), gc.isenabled(), gc.get_freeze_count(), gc.callbacks[:]),
        "process": (os.getcwd(), dict(os.environ), sys.getrecursionlimit()),
        "draws": (random.getstate(), str(numpy.random.get_state())),
        "numpy": (numpy.geterr(), numpy.get_printoptions()),
        "threads": [(one["prefix"], one["num_threads"]) for one in threadpoolctl.threadpool_info()],
    }

logging.getLogger("kafka").setLevel(logging.INFO)
before = settings()
for package in ("streamgp", "streamgp.query", "streamgp.interactive", "connectors"):
    module = importlib.import_module(package)
    for name in module.__all__:
        getattr(module, name)
import connectors.kafka.topics
from connectors import MemoryBroker, run
from streamgp import *
from streamgp.interactive import Event

for model in (EnsembleGPClassifier(), isgp()):
    for n in range(20):
        model.predict_one({"a": n})
        model.learn_one({"a": n}, n % 3)
broker = MemoryBroker()
inputs = broker.publisher()
inputs.send(Event(event_id="e", x={"a": 1.0}, occurred_at=0.0))
inputs.flush()
stops = iter([False, True])
result = run(InteractiveLoop(isgp()), broker.source(), broker.sink(), should_stop=stops.__next__)
assert result.n_sent == 2
for name, after in settings().items():
    assert after == before[name], (name, after, before[name])
"""


def test_a_program_that_embeds_the_packages_keeps_its_settings():
    done = subprocess.run([sys.executable, "-c", HOST], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_kernels_the_gp_and_the_trees_know_no_river():
    program = "import streamgp.gp.exact, streamgp.kernels, streamgp.trees.forest"
    assert "river" not in loaded_by(program)


@pytest.mark.parametrize(
    ("package", "old", "new"),
    [
        ("connectors", "SqliteShelf", "SqliteStore"),
        ("streamgp.interactive", "Tally", "RunStatistics"),
        ("streamgp.query", "ReservoirAsk", "RecentEventsAsk"),
    ],
)
def test_a_former_name_is_reported_with_its_new_one(package, old, new):
    module = importlib.import_module(package)
    with pytest.warns(DeprecationWarning, match=rf"^{package}\.{old} is called {new} now"):
        found = getattr(module, old)
    assert found is getattr(module, new)


@pytest.mark.parametrize(
    "name",
    [
        "ConfidenceBoostingClassifier",
        "OnlineGradientBoostingClassifier",
        "SkepticalClassifier",
        "SkepticalRegressor",
    ],
)
def test_a_model_may_be_a_pipeline_by_its_type(name):
    """To mypy, no pipeline of River is a classifier or a regressor."""
    kind = getattr(streamgp, name)
    model = inspect.signature(kind).parameters["model"]
    assert "Pipeline" in model.annotation.split(" | ")


def test_metrics_of_streamgp_are_metrics_by_their_type():
    """To mypy, they are none of River's, from which they do not derive."""
    metric = inspect.signature(streamgp.interactive_val_score).parameters["metric"].annotation
    assert metric == "AnyMetric"
    assert streamgp.evaluate.AnyMetric.split(" | ") == ["metrics.base.Metric", "WeightedMetric"]
