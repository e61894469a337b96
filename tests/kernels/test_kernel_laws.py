"""What every kernel must do; a new one adds a line to `kernel_cases.CASES`."""

import copy
import math
import pickle
from dataclasses import is_dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp import kernels
from streamgp.common.fingerprint import fingerprint
from streamgp.features import Columns
from tests.helpers.kernel_cases import CASES, bound_rows, columns_of, hyperparameters, obvious

numbers = st.floats(-10, 10).map(lambda value: round(value, 3))
texts = st.sampled_from(["hall", "bath", "attic", ""])
events = st.fixed_dictionaries(
    {},
    optional={
        "a": numbers,
        "b": numbers,
        "place": texts,
        "mixed": numbers | texts,
        "open": st.booleans(),
    },
)
logs = st.lists(events, min_size=1, max_size=7)


def some_events(n=12, seed=0):
    rng = np.random.default_rng(seed)
    for i in range(n):
        x = {"a": rng.normal(), "b": 2 * rng.normal(), "open": bool(rng.integers(2))}
        x["place"] = ["hall", "bath", "attic"][rng.integers(3)]
        x["mixed"] = rng.normal() if i % 3 else x["place"]
        yield {name: x[name] for name in rng.permutation(list(x))[: 3 + i % 3].tolist()}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def test_every_public_kernel_has_a_case():
    public = {getattr(kernels, name) for name in kernels.__all__}
    made = {one.__name__ for one in public if is_dataclass(one) and hasattr(one, "embed")}
    printed = " ".join(repr(case.kernel) for case in CASES.values())
    assert made
    assert sorted(name for name in made if f"{name}(" not in printed) == []


@given(st.sampled_from(list(CASES)), logs)
def test_the_matrix_is_that_of_the_formula(name, log):
    kernel, rows = bound_rows(CASES[name].kernel, log)
    K = kernel.matrix(rows)
    np.testing.assert_allclose(K, obvious(CASES[name], log), rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(K, K.T)


@given(st.sampled_from(list(CASES)), logs)
def test_the_vector_is_a_row_of_the_matrix(name, log):
    kernel, rows = bound_rows(CASES[name].kernel, log)
    K = obvious(CASES[name], log)
    for i, row in enumerate(rows):
        others = np.delete(rows, i, axis=0)
        found = kernel.vector(others, row)
        np.testing.assert_allclose(found, np.delete(K[i], i), rtol=1e-9, atol=1e-11)
        assert kernel.prior_variance(row) == pytest.approx(K[i, i], rel=1e-12, abs=1e-300)


@given(st.sampled_from(list(CASES)), logs)
def test_no_combination_of_values_has_a_negative_variance(name, log):
    kernel, rows = bound_rows(CASES[name].kernel, log)
    K = kernel.matrix(rows)
    assert np.linalg.eigvalsh(K).min() >= -1e-12 * max(np.trace(K), 1.0)


def test_gradients_are_those_of_central_differences(case):
    log = list(some_events())
    kernel, rows = bound_rows(case.kernel, log)
    columns = columns_of(log)
    gradients = list(kernel.gradients(rows))
    assert len(gradients) == len(kernel.theta)
    step = 1e-5
    for j, gradient in enumerate(gradients):
        around = []
        for sign in (-1.0, 1.0):
            theta = kernel.theta
            theta[j] += sign * step
            moved, moved_rows = bound_rows(case.kernel.with_theta(theta), log, columns)
            around.append(moved.matrix(moved_rows))
        difference = (around[1] - around[0]) / (2 * step)
        # Differences lose half the digits.
        np.testing.assert_allclose(gradient, difference, rtol=1e-6, atol=1e-8)


def test_theta_holds_the_logarithms_of_what_was_given(case):
    given_values = list(hyperparameters(case.kernel))
    assert case.kernel.theta.tolist() == [math.log(value) for value in given_values]


def test_theta_makes_the_same_kernel_and_another_theta_another_one(case):
    log = list(some_events())
    columns = columns_of(log)
    for kernel in (case.kernel, case.kernel.bound(columns)):
        same = kernel.with_theta(kernel.theta)
        np.testing.assert_allclose(same.theta, kernel.theta, rtol=1e-15, atol=1e-15)
        same, rows = bound_rows(same, log, columns)
        np.testing.assert_allclose(same.matrix(rows), obvious(case, log), rtol=1e-9, atol=1e-11)
        theta = kernel.theta + 0.1 * np.arange(1, len(kernel.theta) + 1)
        assert kernel.with_theta(theta) != kernel
        np.testing.assert_allclose(kernel.with_theta(theta).theta, theta, rtol=1e-14, atol=1e-15)


def test_other_hyperparameters_of_a_bound_kernel_leave_it_bound(case):
    log = list(some_events())
    columns = columns_of(log)
    theta = case.kernel.theta + 0.3
    bound_first, rows = case.kernel.bound(columns).with_theta(theta), None
    rows = np.array([bound_first.embed(columns.vector(x)) for x in log])
    bound_last, others = bound_rows(case.kernel.with_theta(theta), log)
    np.testing.assert_array_equal(rows, others)
    np.testing.assert_array_equal(bound_first.matrix(rows), bound_last.matrix(others))


def test_a_kernel_may_be_bound_again_to_more_columns_or_fewer(case):
    few, many = [{"a": 1.0, "b": -0.5}, {"a": 0.3}], list(some_events())
    for log in (few, many, few):
        kernel = case.kernel.bound(columns_of(many)).bound(columns_of(log))
        fresh, rows = bound_rows(case.kernel, log)
        np.testing.assert_array_equal(bound_rows(kernel, log)[1], rows)
        np.testing.assert_array_equal(kernel.matrix(rows), fresh.matrix(rows))


def test_kernels_are_compared_by_what_they_were_given(case):
    kernel = case.kernel
    bound = kernel.bound(columns_of(some_events()))
    for twin in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(bound)), bound):
        assert twin == kernel
        assert hash(twin) == hash(kernel)
        assert repr(twin) == repr(kernel)
        assert fingerprint(twin) == fingerprint(kernel)
    assert eval(repr(kernel), vars(kernels)) == kernel
    same = [name for name, other in CASES.items() if other.kernel == kernel]
    assert len(same) == 1
    alike = [name for name, c in CASES.items() if fingerprint(c.kernel) == fingerprint(kernel)]
    assert alike == same


def test_copies_give_the_same_bits(case):
    kernel, rows = bound_rows(case.kernel, list(some_events()))
    for twin in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        np.testing.assert_array_equal(twin.matrix(rows), kernel.matrix(rows))
        np.testing.assert_array_equal(twin.vector(rows, rows[3]), kernel.vector(rows, rows[3]))


def test_neither_points_nor_rows_change(case):
    log = list(some_events())
    columns = columns_of(log)
    kernel, rows = bound_rows(case.kernel, log)
    for x in (*log, {"a": 1e6, "place": "cellar"}):
        point = columns.vector(x).copy()
        row = kernel.embed(point)
        before = point.copy(), rows.copy(), row.copy()
        kernel.vector(rows, row)[:] = 7.0
        kernel.matrix(rows)[:] = 7.0
        for gradient in kernel.gradients(rows):
            gradient[:] = 7.0
        kernel.embed(point)[:] = 7.0
        for now, then in zip((point, rows, row), before, strict=True):
            np.testing.assert_array_equal(now, then)


def test_no_points_have_no_covariances(case):
    kernel, rows = bound_rows(case.kernel, list(some_events()))
    none = rows[:0]
    assert kernel.vector(none, rows[0]).shape == (0,)
    assert kernel.matrix(none).shape == (0, 0)
    assert [gradient.shape for gradient in kernel.gradients(none)] == [(0, 0)] * len(kernel.theta)


def test_points_without_features_are_one_point(case):
    kernel, rows = bound_rows(case.kernel, [{}, {}])
    np.testing.assert_allclose(kernel.matrix(rows), obvious(case, [{}, {}]), rtol=1e-12)


@pytest.mark.parametrize("offset", [1e3, -1e6])
def test_far_from_the_origin_differences_are_what_they_are(case, offset):
    """The offset moves every number, with all digits kept."""
    log = [dict(x, a=round(x.get("a", 0.0), 3), b=0.5) for x in some_events()]
    moved = [dict(x, a=x["a"] + offset, b=x["b"] + offset) for x in log]
    kernel, rows = bound_rows(case.kernel, moved)
    expected = obvious(case, moved)
    # -1e6 leaves ten digits behind the point.
    np.testing.assert_allclose(kernel.matrix(rows), expected, rtol=1e-9, atol=1e-9)
    for i, row in enumerate(rows):
        found = kernel.vector(np.delete(rows, i, axis=0), row)
        np.testing.assert_allclose(found, np.delete(expected[i], i), rtol=1e-9, atol=1e-9)


def test_points_far_from_each_other_keep_the_distances_to_their_neighbours(case):
    log = [{"a": a + i, "b": 0.0} for a in (0.0, 1e6, -1e9) for i in (0.0, 0.5)]
    kernel, rows = bound_rows(case.kernel, log)
    expected = obvious(case, log)
    # Over a length scale, 1e9 leaves six digits behind the point.
    np.testing.assert_allclose(kernel.matrix(rows), expected, rtol=1e-6, atol=1e-9)
    found = np.array([kernel.vector(rows, row) for row in rows])
    np.fill_diagonal(found, expected.diagonal())
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_only_kernels_of_differences_are_stationary(case):
    log = [{"a": 0.3, "b": 1.0}, {"a": -1.0, "b": 0.5}]
    moved = [{"a": x["a"] + 2.0, "b": x["b"] - 1.0} for x in log]
    kernel = case.kernel.bound(columns_of(log))
    if kernel.stationary:
        np.testing.assert_allclose(obvious(case, log), obvious(case, moved), rtol=1e-9)


def test_with_names_or_texts_a_kernel_is_bound_and_without_them_it_is_itself():
    columns = Columns(["a", "b"])
    for case in CASES.values():
        named = "On(" in repr(case.kernel) or "{" in repr(case.kernel)
        assert (case.kernel.bound(columns) is case.kernel) != named


@pytest.mark.parametrize(
    "kernel",
    [
        kernels.SquaredExponential({"a": 1.0}),
        kernels.Categorical({"a": 1.0}),
        kernels.On(["a"], kernels.Linear()),
        kernels.Constant() + kernels.On(["a"], kernels.Linear()),
    ],
)
def test_a_kernel_with_names_asks_for_columns(kernel):
    with pytest.raises(TypeError, match="cannot tell which of 3 coordinates are theirs; call `bo"):
        kernel.embed(np.zeros(3))
