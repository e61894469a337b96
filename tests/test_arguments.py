import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamgp
from streamgp.arguments import check_non_negative, check_positive, check_rate, check_whole
from streamgp.query import AtMostPer, LeaveOneOutReview, RateBudget, ReservoirAsk, SkepticalAsk

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


@given(st.floats() | st.integers(-5, 5), st.integers(-3, 3))
def test_whole_numbers_pass_from_the_least_on(value, least):
    if math.isfinite(value) and value == int(value) and value >= least:
        found = check_whole("n", value, least)
        assert found == value
        assert type(found) is int
    else:
        with pytest.raises(ValueError, match=f"n must be a whole number of at least {least}, got"):
            check_whole("n", value, least)


@pytest.mark.parametrize("check", [*CHECKS, lambda name, value: check_whole(name, value, 1)])
@pytest.mark.parametrize("value", ["1", None, [1.0], np.ones(2), 1j])
def test_what_is_no_number_is_said_to_be_none(check, value):
    with pytest.raises(TypeError, match=r"size must be .*, got"):
        check("size", value)


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        (streamgp.GPClassifier, "max_points"),
        (streamgp.GPClassifier, "noise_variance"),
        (streamgp.GPClassifier, "window"),
        (streamgp.GPRegressor, "max_points"),
        (streamgp.PrivilegedGPClassifier, "max_points"),
        (streamgp.PrivilegedGPClassifier, "n_replays"),
        (streamgp.EnsembleGPClassifier, "n_features"),
        (streamgp.EnsembleGPRegressor, "noise_variance"),
        (streamgp.OnlineForestClassifier, "n_models"),
        (streamgp.ConfidenceBoostingClassifier, "n_models"),
        (streamgp.TiredAnnotator, "error_rate"),
        (streamgp.kernels.SquaredExponential, "length_scale"),
        (SkepticalAsk, "c"),
        (RateBudget, "rate"),
        (AtMostPer, "n"),
        (LeaveOneOutReview, "threshold"),
        (ReservoirAsk, "size"),
    ],
)
def test_words_in_the_place_of_numbers_are_refused_by_name(cls, name):
    others = {"span_s": 60.0} if cls is AtMostPer else {}
    with pytest.raises(TypeError, match=rf"^{name}.* must be .*, got 'many'"):
        cls(**{name: "many"}, **others)
