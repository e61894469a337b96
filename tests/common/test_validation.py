import inspect
import math
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from river import metrics as river_metrics
from river import naive_bayes

import streamgp
from connectors import (
    LogSource,
    MessageFiles,
    SqliteStore,
    StateDirectory,
    decode,
    read_messages,
    read_snapshot,
    write_snapshot,
)
from connectors.memory import MemoryTopics
from streamgp import datasets, kernels, metrics, query, windows
from streamgp.common.validation import (
    check_bytes,
    check_column,
    check_flag,
    check_forgetting,
    check_non_negative,
    check_path,
    check_positive,
    check_rate,
    check_several,
    check_up_to,
    check_whole,
)
from streamgp.interactive.people import People
from streamgp.learners.gp_classifier import DriftWatch
from streamgp.simulation import AwayAnnotator

CHECKS = {
    check_rate: lambda value: 0.0 <= value <= 1.0,
    check_non_negative: lambda value: 0.0 <= value < math.inf,
    check_positive: lambda value: 0.0 < value < math.inf and 1.0 / value < math.inf,
}


@pytest.mark.parametrize("check", CHECKS)
@given(st.floats() | st.integers())
def test_a_number_passes_exactly_if_it_is_in_range(check, value):
    if CHECKS[check](value):
        check("size", value)
    else:
        with pytest.raises(ValueError, match="size must be"):
            check("size", value)


@given(st.floats() | st.integers())
def test_a_number_from_0_to_the_maximum_passes(value):
    if 0.0 <= value <= 1e6:
        check_up_to("delay", value, 1e6, " seconds")
    else:
        with pytest.raises(ValueError, match=r"delay must be from 0 to 1e\+06 seconds, got"):
            check_up_to("delay", value, 1e6, " seconds")


@given(st.floats() | st.integers())
def test_something_but_not_everything_may_be_forgotten(value):
    if 0.0 < value <= 1.0:
        check_forgetting(value)
    else:
        with pytest.raises(ValueError, match="forgetting must be above 0 and at most 1, got"):
            check_forgetting(value)


@given(st.floats() | st.integers(-5, 5), st.integers(-3, 3))
@example(float(2**63), 0)
def test_whole_numbers_pass_from_the_least_on(value, least):
    if math.isfinite(value) and value == int(value) and least <= value <= sys.maxsize:
        found = check_whole("n", value, least)
        assert found == value
        assert type(found) is int
    else:
        too_many = sys.maxsize < value < math.inf
        wanted = f"from {least} to {sys.maxsize}" if too_many else f"of at least {least}"
        with pytest.raises(ValueError, match=f"n must be a whole number {wanted}, got"):
            check_whole("n", value, least)


@given(st.integers() | st.floats(allow_nan=False))
def test_whole_numbers_pass_up_to_the_most(value):
    if value == math.floor(min(max(value, 0), 10)) and 0 <= value <= 10:
        assert check_whole("n", value, 0, 10) == value
    else:
        with pytest.raises(
            ValueError, match=r"n must be a whole number (from 0 to 10|of at least 0), got"
        ):
            check_whole("n", value, 0, 10)


def test_a_number_above_the_maximum_is_refused_with_both_ends():
    with pytest.raises(ValueError, match=r"^n must be a whole number from 1 to 10, got 11$"):
        check_whole("n", 11, 1, 10)
    # What no count in memory can reach, whatever it is of.
    with pytest.raises(ValueError, match=f"from 1 to {sys.maxsize}, got 1e\\+300$"):
        check_whole("n", 1e300, 1)


@pytest.mark.parametrize("value", [True, False, np.True_, np.False_])
def test_truth_values_pass_also_those_of_numpy(value):
    assert check_flag("refit", value) is bool(value)


@pytest.mark.parametrize("values", [["a", "b"], ("a", "b"), {"a": 1, "b": 2}, np.array(["a", "b"])])
def test_several_values_come_as_a_tuple(values):
    assert check_several("ignore", values, "columns") == ("a", "b")


@pytest.mark.parametrize("values", ["ab", b"ab", None, 3, math.nan])
def test_what_holds_no_several_values_is_refused(values):
    with pytest.raises(TypeError, match=r"^ignore must be a list of columns, got"):
        check_several("ignore", values, "columns")


@pytest.mark.parametrize("value", [True, np.float32(0.5), np.float64(0.5), np.int64(1)])
@pytest.mark.parametrize("check", CHECKS)
def test_bools_and_numbers_of_numpy_are_numbers(check, value):
    check("size", value)


# --- everything public that takes numbers

# Made by streamgp itself.
RESULTS = {
    streamgp.Decision,
    streamgp.InteractiveResult,
    streamgp.NotPositiveDefiniteError,
    streamgp.Posterior,
}
# Required arguments besides numbers.
OTHERS = {
    streamgp.InteractiveLoop: lambda: {"model": streamgp.isgp()},
    streamgp.KeyedLoops: lambda: {"model": streamgp.isgp()},
    streamgp.PoolSampler: lambda: {"X": np.zeros((2, 1))},
    streamgp.SkepticalClassifier: lambda: {"model": streamgp.GPClassifier()},
    streamgp.SkepticalRegressor: lambda: {"model": streamgp.GPRegressor()},
    streamgp.active_learning_rounds: lambda: {
        "model": streamgp.OnlineForestClassifier(),
        "pool": [({}, "a")],
        "test": [({}, "a")],
    },
    streamgp.interactive_val_score: lambda: {
        "dataset": [],
        "model": streamgp.isgp(),
        "metric": river_metrics.Accuracy(),
    },
    LogSource: lambda: {"path": "never read"},
}
NUMBERS = {"int", "float", "LengthScale"}
# Numbers whose range follows from a type of `streamgp.query.registry`.
NUMBERS |= {"Share", "Remainder", "NonNegative", "Positive", "Seconds", "Count", "Limit"}


def arguments(makers, kinds=frozenset(NUMBERS)):
    """Return what takes a number under which name, and whether None stands for something.

    But for seeds, which `test_draws.py` goes through.
    """
    for maker in makers:
        for name, parameter in inspect.signature(maker).parameters.items():
            kind, _, rest = str(parameter.annotation).partition(" | ")
            if kind in kinds and rest in ("", "None") and name != "seed":
                yield pytest.param(maker, name, bool(rest), id=f"{maker.__name__}({name})")


def everything_public():
    modules = (streamgp, datasets, kernels, metrics, query)
    public = [getattr(module, name) for module in modules for name in module.__all__]
    makers = [one for one in public if callable(one) and one not in RESULTS]
    return dict.fromkeys([*makers, DriftWatch, LogSource, MemoryTopics, People, windows.Windows])


def made(maker, name, value):
    required = {
        other: 1
        for other, parameter in inspect.signature(maker).parameters.items()
        if parameter.annotation in NUMBERS and parameter.default is inspect.Parameter.empty
    }
    return maker(**{**required, **OTHERS.get(maker, dict)(), name: value})


ARGUMENTS = list(arguments(everything_public()))
NO_NUMBERS = ["many", [1.0], np.ones(2), np.ones(1), np.array(1.0), 1j, float]


def test_all_public_arguments_are_gone_through():
    found = {(parameter.values[0], parameter.values[1]) for parameter in ARGUMENTS}
    assert {
        (streamgp.GPClassifier, "window"),
        (streamgp.InteractiveLoop, "expires_after_s"),
        (streamgp.TiredAnnotator, "response_spread"),
        (streamgp.active_learning_rounds, "n_rounds"),
        (kernels.SquaredExponential, "length_scale"),
        (query.AtMostPer, "span_s"),
        (metrics.Brier, "n_bins"),
    } <= found
    assert len(found) > 70


@pytest.mark.parametrize(("maker", "name", "may_be_none"), ARGUMENTS)
def test_what_is_no_number_is_refused_by_name(maker, name, may_be_none):
    for value in [*NO_NUMBERS, *([] if may_be_none else [None])]:
        with pytest.raises(TypeError, match=rf"^{name}.* must be .*, got"):
            made(maker, name, value)


@pytest.mark.parametrize(("maker", "name", "may_be_none"), ARGUMENTS)
def test_nan_is_refused_by_name(maker, name, may_be_none):  # noqa: ARG001
    with pytest.raises(ValueError, match=rf"^{name}.* must be .*, got nan"):
        made(maker, name, math.nan)


# Of which there is something at once for each one counted, or which each take their time.
COSTLY = [
    (streamgp.OnlineForestClassifier, "n_models"),
    (streamgp.OnlineForestClassifier, "n_tests"),
    (streamgp.OnlineForestClassifier, "min_weight"),
    (streamgp.OnlineGradientBoostingClassifier, "n_models"),
    (streamgp.ConfidenceBoostingClassifier, "n_models"),
    (streamgp.EnsembleGPClassifier, "n_features"),
    (streamgp.EnsembleGPRegressor, "n_features"),
    (streamgp.active_learning_rounds, "n_rounds"),
    (datasets.GaussianClasses, "n_per_class"),
    (metrics.Brier, "n_bins"),
    (metrics.CalibrationError, "n_bins"),
    (MemoryTopics, "n_partitions"),
]


@pytest.mark.parametrize(("maker", "name"), COSTLY)
def test_what_would_exhaust_the_machine_is_refused(maker, name):
    with pytest.raises(ValueError, match=rf"^{name} must be a whole number from \d to \d+, got"):
        made(maker, name, 10**8)


COUNTS = list(arguments(everything_public(), {"int", "Count", "Limit"}))


@pytest.mark.parametrize(("maker", "name", "may_be_none"), COUNTS)
def test_a_truth_value_counts_nothing(maker, name, may_be_none):  # noqa: ARG001
    for value in (True, False):
        with pytest.raises(TypeError, match=rf"{name} must be a whole number.*, got {value}"):
            made(maker, name, value)


@pytest.mark.parametrize(("maker", "name", "may_be_none"), COUNTS)
def test_what_cannot_be_counted_is_refused_by_name(maker, name, may_be_none):  # noqa: ARG001
    for value in (10**30, 1e300):
        with pytest.raises(ValueError, match=rf"^{name} must be a whole number from \d+ to \d+"):
            made(maker, name, value)


@pytest.mark.parametrize("value", [10**9, 10**12])
def test_bounds_on_what_is_retained_take_no_memory_before_there_is_something(value):
    streamgp.GPRegressor(max_points=float(value)).learn_one({"a": 1.0}, 2.0)
    streamgp.GPClassifier(max_points=value).learn_one({"a": 1.0}, "b")
    streamgp.GPClassifier(window=value).learn_one({"a": 1.0}, "b")
    streamgp.PrivilegedGPClassifier(max_points=value, n_replays=value).learn_one({"a": 1.0}, "b")
    query.RateBudget(0.5, window=value, horizon=value)
    query.RecentEventsAsk(size=value, every=value)


FLAGS = list(arguments(everything_public(), {"bool"}))


def test_all_public_switches_are_gone_through():
    found = {(parameter.values[0], parameter.values[1]) for parameter in FLAGS}
    assert {
        (streamgp.EnsembleGPClassifier, "refit"),
        (streamgp.active_learning_rounds, "replay"),
        (query.SkepticalChallenge, "doubts_new"),
        (LogSource, "texts"),
        (People, "owners"),
        (windows.Windows, "excerpt"),
    } <= found
    assert len(found) > 25


@pytest.mark.parametrize(("maker", "name", "may_be_none"), FLAGS)
def test_what_is_no_truth_value_is_refused_by_name(maker, name, may_be_none):
    for value in ("no", "", 2.0, math.nan, [], *([] if may_be_none else [None])):
        with pytest.raises(TypeError, match=rf"^{name} must be True or False, got"):
            made(maker, name, value)


SEVERAL = [
    (streamgp.EnsembleGPClassifier, "kernels", "list of kernels"),
    (streamgp.EnsembleGPRegressor, "kernels", "list of kernels"),
    (streamgp.AnnotatorPanel, "annotators", "list of annotators"),
    (streamgp.TemporalFilter, "experts", r"list of pairs \(s, tau\)"),
    (lambda hours: AwayAnnotator(streamgp.SimulatedAnnotator(), hours), "hours", "list of pairs"),
    (People, "supervisors", "list of names"),
    (People, "trusted", "list of names"),
    (LogSource, "ignore", "list of columns"),
    (LogSource, "features", "list of columns"),
    (LogSource, "channels", "list of columns"),
    (lambda **given: windows.Windows(60.0, **given), "vectors", "list of lists of channels"),
    (lambda **given: windows.Windows(60.0, **given), "gps", "list of channels"),
]


@pytest.mark.parametrize(("maker", "name", "wanted"), SEVERAL)
def test_what_holds_no_several_values_is_refused_by_name(maker, name, wanted):
    others = OTHERS[maker]() if maker in OTHERS else {}
    for value in ("eve", 3, True):
        with pytest.raises(TypeError, match=rf"^{name} must be a {wanted}.*, got {value!r}"):
            maker(**others, **{name: value})


WINDOWS = partial(windows.Windows, 60.0)
LOG = partial(LogSource, "never read")
COLUMNS = [(LOG, "label"), (LOG, "time"), (LOG, "key")]
COLUMNS += [(WINDOWS, "by"), (WINDOWS, "time"), (WINDOWS, "label")]


@pytest.mark.parametrize(("maker", "name"), COLUMNS)
def test_a_column_is_named_by_a_text(maker, name):
    for value in (3, ["a"], {}):
        with pytest.raises(TypeError, match=rf"^{name} must be the name of a column, got "):
            maker(**{name: value})


def test_a_time_zone_is_named_by_a_text():
    for value in (3, None, ["UTC"]):
        with pytest.raises(TypeError, match=r"^zone must be the name of a time zone, got "):
            WINDOWS(zone=value)


NAMED = [
    (streamgp.PoolSampler, "criterion"),
    (streamgp.ConfidenceBoostingClassifier, "uncertainty"),
    (query.EqualErrorAsk, "uncertainty"),
    (metrics.RightWrongAUC, "uncertainty"),
]


@pytest.mark.parametrize(("maker", "name"), NAMED)
def test_one_of_several_names_is_a_text(maker, name):
    for value in (3, ["bvsb"], {}):
        with pytest.raises(ValueError, match=rf"^{name} must be .* or .*|one of .*, got "):
            made(maker, name, value)


KERNELS = [
    (kernels.Sum, "first"),
    (kernels.Product, "second"),
    (streamgp.GPClassifier, "kernel"),
    (streamgp.PrivilegedGPClassifier, "privileged_kernel"),
]


@pytest.mark.parametrize(("maker", "name"), KERNELS)
def test_what_is_no_kernel_is_refused_by_name(maker, name):
    given = dict.fromkeys(("first", "second"), kernels.White()) if "kernel" not in name else {}
    for value in (3, kernels.White):
        with pytest.raises(TypeError, match=rf"^{name} must be one of streamgp\.kernels, got"):
            maker(**{**given, name: value})


@pytest.mark.parametrize("kernel", [kernels.White, kernels.Matern52, kernels.RationalQuadratic])
def test_only_length_scales_may_differ_between_features(kernel):
    with pytest.raises(TypeError, match=r"^variance must be positive and finite, got \{'a': 1.0\}"):
        kernel(variance={"a": 1.0})


PATHS = [
    (LogSource, "path"),
    (MessageFiles, "directory"),
    (SqliteStore, "path"),
    (StateDirectory, "path"),
    (read_snapshot, "path"),
    (partial(write_snapshot, data=b""), "path"),
    (lambda path: next(read_messages(path)), "path"),
]


@pytest.mark.parametrize(("maker", "name"), PATHS)
def test_what_is_no_path_is_refused_by_name(maker, name):
    """Above all a number, which would be the descriptor of an open file, closed at the end."""
    for value in (0, True, None, b"never", ["never"]):
        with pytest.raises(TypeError, match=rf"^{name} must be a string or a pathlib.Path, got"):
            maker(value)


@pytest.mark.parametrize("value", ["home", 3, None, [1]])
def test_what_is_no_bytes_is_refused_by_name(value, tmp_path):
    for call in (decode, partial(write_snapshot, tmp_path / "loop")):
        with pytest.raises(TypeError, match=r"^data must be bytes, got"):
            call(value)
    assert list(tmp_path.iterdir()) == []


def test_paths_and_bytes_pass(tmp_path):
    assert check_path("path", str(tmp_path)) == check_path("path", tmp_path) == tmp_path
    check_bytes("data", bytearray(b"a"))
    check_column("label", None)
    check_column("label", "")


@pytest.mark.parametrize("check", CHECKS)
def test_whole_numbers_beyond_all_floats_are_refused_by_name(check):
    for value, shown in ((10**400, "1000"), (10**5000, "a number of thousands of digits")):
        with pytest.raises(ValueError, match=f"^size must be .*, got {shown}"):
            check("size", value)


@pytest.mark.parametrize("maker", [streamgp.InteractiveLoop, streamgp.KeyedLoops])
def test_rules_of_people_are_what_they_are(maker):
    with pytest.raises(TypeError, match=r"^people must be People\(\.\.\.\), got 'eve'$"):
        made(maker, "people", "eve")


@pytest.mark.parametrize("value", [True, "x", object()])
def test_annotators_and_metrics_are_refused_by_name(value):
    with pytest.raises(TypeError, match=r"^annotator must be one such as SimulatedAnnotator"):
        made(streamgp.interactive_val_score, "annotator", value)
    with pytest.raises(TypeError, match=r"; it lacks see\(truth\), answer\(request, truth, now\)$"):
        made(streamgp.interactive_val_score, "annotator", value)
    bare = SimpleNamespace(update=print, get=print)
    for metric in (value, river_metrics.Accuracy, bare):
        with pytest.raises(TypeError, match=r"^metric must be a metric such as metrics.Accuracy"):
            made(streamgp.interactive_val_score, "metric", metric)
    with pytest.raises(TypeError, match=r"^rule must be .* with a method decide that takes 'draw'"):
        made(streamgp.active_learning_rounds, "rule", value)


@pytest.mark.parametrize("value", [None, "x", streamgp.SkepticalClassifier])
def test_what_is_no_model_is_refused(value):
    with pytest.raises(TypeError, match=r"^model must be a skeptical learner"):
        made(streamgp.KeyedLoops, "model", value)
    with pytest.raises(TypeError, match=r"^model must be a classifier of River, got"):
        made(streamgp.active_learning_rounds, "model", value)


def test_a_classifier_that_neither_asks_nor_challenges_is_no_model_of_loops():
    for maker in (streamgp.InteractiveLoop, streamgp.KeyedLoops):
        with pytest.raises(TypeError, match=r"^model must be a skeptical learner"):
            maker(naive_bayes.GaussianNB())
