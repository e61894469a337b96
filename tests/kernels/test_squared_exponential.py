import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from streamgp.kernels import SquaredExponential


def covariances(kernel, points, x):
    rows = np.array([kernel.embed(point) for point in points])
    return kernel.vector(rows, kernel.embed(x))


def obvious(kernel, points, x):
    square = ((np.asarray(points) - x) ** 2).sum(axis=1)
    return kernel.variance * np.exp(-square / (2 * kernel.length_scale**2))


moderate = st.floats(min_value=-1e3, max_value=1e3)


@given(
    arrays(float, (5, 3), elements=moderate),
    arrays(float, 3, elements=moderate),
    st.floats(min_value=1e-2, max_value=1e3),
    st.floats(min_value=1e-3, max_value=1e3),
)
def test_covariances_equal_the_formula(points, x, length_scale, variance):
    kernel = SquaredExponential(length_scale, variance)
    found = covariances(kernel, points, x)
    # The expanded square is taken up to 1e4 length scales squared: 12 digits remain.
    np.testing.assert_allclose(found, obvious(kernel, points, x), rtol=1e-9, atol=1e-11 * variance)


@given(arrays(float, (2, 4), elements=moderate), st.floats(min_value=0.1, max_value=10))
def test_covariance_is_symmetric_and_bounded_by_the_variance(points, length_scale):
    kernel = SquaredExponential(length_scale, variance=2.0)
    a, b = points
    ab, ba = covariances(kernel, [a], b)[0], covariances(kernel, [b], a)[0]
    assert ab == pytest.approx(ba, rel=1e-9, abs=1e-11)
    assert 0.0 <= ab <= 2.0 * (1 + 1e-11)


@given(arrays(float, 4, elements=st.floats(min_value=-1e6, max_value=1e6)))
def test_a_point_has_the_prior_variance_with_itself_wherever_it_lies(x):
    kernel = SquaredExponential(2.0, variance=3.0)
    # What the tiny noise of the paper can tell from 1 after a handful of points.
    assert covariances(kernel, [x], x)[0] == pytest.approx(3.0, rel=1e-14)
    assert kernel.prior_variance(kernel.embed(x)) == 3.0


def test_far_points_keep_their_distances():
    """At a million length scales the expanded square would be off by more than itself."""
    kernel = SquaredExponential()
    points = np.array([[1e6, -1e6], [1e6 + 1.0, -1e6]])
    assert covariances(kernel, points, points[0]).tolist() == [1.0, math.exp(-0.5)]


def test_points_without_features_are_all_the_same():
    kernel = SquaredExponential(variance=0.5)
    assert covariances(kernel, [np.empty(0)], np.empty(0)).tolist() == [0.5]


def test_the_covariances_of_no_points_are_empty():
    kernel = SquaredExponential()
    assert kernel.vector(np.empty((0, 4)), kernel.embed(np.zeros(2))).shape == (0,)


def test_neither_argument_changes():
    kernel = SquaredExponential(0.1)
    rows = np.array([kernel.embed(np.array([float(i), 0.0])) for i in range(3)])
    for x in ([1.0, 2.0], [9.0, 1.0], [1e9, 0.0]):
        row = kernel.embed(np.array(x))
        before = rows.copy(), row.copy()
        kernel.vector(rows, row)
        assert np.array_equal(rows, before[0])
        assert np.array_equal(row, before[1])


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
@pytest.mark.parametrize("name", ["length_scale", "variance"])
def test_parameters_must_be_positive_and_finite(name, value):
    with pytest.raises(ValueError, match=f"{name} must be positive and finite, got"):
        SquaredExponential(**{name: value})


@pytest.mark.parametrize("value", [math.inf, math.nan, 1e155, 1e308])
def test_a_point_whose_square_is_not_finite_is_refused(value):
    too_large = pytest.raises(ValueError, match="finite and its square too; scale the features")
    with too_large, np.errstate(over="ignore"):  # numpy warns of the infinity before we refuse it
        SquaredExponential(0.5).embed(np.array([0.0, value]))


def test_kernels_are_compared_by_value_and_survive_copies():
    kernel = SquaredExponential(2.0)
    assert kernel == SquaredExponential(2.0) != SquaredExponential(3.0)
    assert hash(kernel) == hash(SquaredExponential(2.0))
    for twin in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        assert twin == kernel
        assert covariances(twin, np.ones((1, 1)), np.zeros(1)) == pytest.approx(math.exp(-1 / 8))
    assert repr(kernel) == "SquaredExponential(length_scale=2.0, variance=1.0)"
    assert kernel.stationary


@pytest.mark.parametrize("n", [63, 64, 65, 200])
def test_matrix_of_many_points_is_symmetric_bitwise(n):
    points = np.random.default_rng(n).normal(size=(n, 3))
    kernel = SquaredExponential(2.0, 3.0)
    K = kernel.matrix(np.array([kernel.embed(x) for x in points]))
    np.testing.assert_array_equal(K, K.T)
    squares = ((points[:, None] - points) ** 2).sum(axis=2)
    np.testing.assert_allclose(K, 3.0 * np.exp(-squares / 8.0), rtol=1e-12)


@pytest.mark.parametrize("length_scale", [1.0, 1e-2, 1e-3])
def test_no_number_of_a_matrix_or_its_gradients_is_subnormal(length_scale):
    kernel = SquaredExponential(length_scale)
    points = np.linspace(0.0, 1.0, 200)[:, None]
    rows = np.array([kernel.embed(point) for point in points])
    for found in (kernel.matrix(rows), *kernel.gradients(rows)):
        sizes = np.abs(found[found != 0.0])
        assert sizes.min() >= np.finfo(float).smallest_normal


@pytest.mark.parametrize("length_scale", [1.0, 1e-1, 3e-2])
def test_a_matrix_equals_the_formula_down_to_the_smallest_numbers(length_scale):
    kernel = SquaredExponential(length_scale)
    points = np.linspace(0.0, 1.0, 50)[:, None]
    found = kernel.matrix(np.array([kernel.embed(point) for point in points]))
    expected = [obvious(kernel, points, x) for x in points]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-303)
