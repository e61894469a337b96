import inspect
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import metrics as river_metrics

import streamgp
from connectors import LogSource
from connectors.memory import MemoryTopics
from streamgp import datasets, kernels, metrics, query
from streamgp.common.validation import (
    check_forgetting,
    check_non_negative,
    check_positive,
    check_rate,
    check_up_to,
    check_whole,
)
from streamgp.learners.gp_classifier import DriftWatch

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
def test_a_number_from_0_to_the_most_passes(value):
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
def test_whole_numbers_pass_from_the_least_on(value, least):
    if math.isfinite(value) and value == int(value) and value >= least:
        found = check_whole("n", value, least)
        assert found == value
        assert type(found) is int
    else:
        with pytest.raises(ValueError, match=f"n must be a whole number of at least {least}, got"):
            check_whole("n", value, least)


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
# What must be given beside numbers.
OTHERS = {
    streamgp.InteractiveLoop: lambda: {"model": streamgp.isgp()},
    streamgp.KeyedLoops: lambda: {"model": streamgp.isgp()},
    streamgp.PoolSampler: lambda: {"X": np.zeros((2, 1))},
    streamgp.SkepticalClassifier: lambda: {"model": streamgp.GPClassifier()},
    streamgp.SkepticalRegressor: lambda: {"model": streamgp.GPRegressor()},
    streamgp.StagedSkepticalClassifier: lambda: {"model": streamgp.GPClassifier()},
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
# Numbers whose range is told by a type of `streamgp.query.registry`.
NUMBERS |= {"Share", "Remainder", "NonNegative", "Positive", "Seconds", "Count", "Limit"}


def arguments(makers):
    """Return what takes a number under which name, and whether None stands for something.

    But for seeds, which `test_draws.py` goes through.
    """
    for maker in makers:
        for name, parameter in inspect.signature(maker).parameters.items():
            kind, _, rest = str(parameter.annotation).partition(" | ")
            if kind in NUMBERS and rest in ("", "None") and name != "seed":
                yield pytest.param(maker, name, bool(rest), id=f"{maker.__name__}({name})")


def everything_public():
    modules = (streamgp, datasets, kernels, metrics, query)
    public = [getattr(module, name) for module in modules for name in module.__all__]
    makers = [one for one in public if callable(one) and one not in RESULTS]
    return dict.fromkeys([*makers, DriftWatch, LogSource, MemoryTopics])


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
