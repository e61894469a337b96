"""The squared exponential in more digits than the laws of all kernels ask for."""

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


@given(arrays(float, 4, elements=st.floats(min_value=-1e6, max_value=1e6)))
def test_a_point_has_the_prior_variance_with_itself_wherever_it_lies(x):
    kernel = SquaredExponential(2.0, variance=3.0)
    # What the tiny noise of the paper can tell from 1 after a handful of points.
    assert covariances(kernel, [x], x)[0] == pytest.approx(3.0, rel=1e-14)
    assert kernel.prior_variance(kernel.embed(x)) == 3.0


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
