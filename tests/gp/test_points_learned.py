import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.features import Columns
from streamgp.gp.arrays import padded
from streamgp.gp.exact import Points, enlarged
from streamgp.kernels import Linear, SquaredExponential


def placed(X, kernel=None):
    points = Points(kernel or SquaredExponential())
    for x in X:
        if points.d is None:
            points.settle(x)
        points.append(x, points.covariances_with(x)[0])
    return points


def some(n=20, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@given(st.integers(1, 40), st.sampled_from([0.0, 3.0, 1e6]))
def test_covariances_are_those_of_the_points_themselves(n, offset):
    """Wherever they are measured from, and however often the room for them had to grow."""
    X = some(n)
    points = placed(X + offset)
    row, prior, k = points.covariances_with(X[0] + offset)
    square = ((X - X[0]) ** 2).sum(axis=1)
    # An offset of 1e6 leaves 10 digits behind the point.
    np.testing.assert_allclose(k, np.exp(-square / 2), atol=1e-8)
    assert prior == 1.0
    assert points.n == len(points.rows) == len(points.given) == n
    assert points.rows[0].tolist() == row.tolist()


@pytest.mark.parametrize(("offset", "measured_from_it"), [(0.0, False), (5.0, False), (1e3, True)])
def test_points_are_measured_from_the_first_if_it_knows_nothing_of_zero(offset, measured_from_it):
    X = some() + offset
    points = placed(X)
    assert (points.origin is not None) == measured_from_it
    if measured_from_it:
        assert points.origin.tolist() == X[0].tolist()
        assert points.origin is not X[0]


def test_a_kernel_that_knows_where_zero_is_measures_from_there():
    points = placed(some() + 1e6, Linear())
    assert points.origin is None


@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_widened_points_have_zeros_in_the_new_features(offset):
    X = some(d=2) + offset
    points = placed(X)
    points.widen(4)
    points.widen(3)
    assert points.d == 4
    wide = np.pad(X, ((0, 0), (0, 2)))
    probe = wide[3] + [0.1, 0.2, 0.3, 0.4]
    k = points.covariances_with(probe)[2]
    square = ((wide - probe) ** 2).sum(axis=1)
    np.testing.assert_allclose(k, np.exp(-square / 2), atol=1e-9)
    points.narrow(2)
    assert points.covariances_with(X[3])[2].tolist() == placed(X).covariances_with(X[3])[2].tolist()


def test_before_the_first_point_there_is_nothing_to_widen():
    points = Points(SquaredExponential())
    points.widen(3)
    points.narrow(1)
    assert points.d is None
    row, prior, k = points.covariances_with(np.zeros(2))
    assert (len(row), prior, k.shape) == (4, 1.0, (0,))


def test_room_is_widened_even_where_no_point_is_left():
    points = placed(some(d=2))
    points.truncate(0)
    points.widen(3)
    x = np.ones(3)
    points.append(x, points.covariances_with(x)[0])
    assert points.covariances_with(x)[2] == pytest.approx([1.0])


def test_a_kernel_that_knows_names_is_bound_to_the_columns_there_are():
    kernel = SquaredExponential({"a": 1.0, "b": 10.0})
    points = placed([np.array([0.0])], kernel.bound(Columns(["a"])))
    points.widen(2, kernel.bound(Columns(["a", "b"])))
    for probe, distance in (([1.0, 0.0], 1.0), ([0.0, 1.0], 0.1)):
        k = points.covariances_with(np.array(probe))[2]
        assert k == pytest.approx([np.exp(-(distance**2) / 2)])


@given(st.integers(0, 20))
def test_points_that_are_cut_off_come_back_with_all_features(n):
    X = some(d=2)
    points = placed(X)
    points.widen(3)
    others = points.truncate(n)
    assert points.n == len(points.given) == len(points.rows) == n
    assert [x.tolist() for x in others] == [[*x, 0.0] for x in X[n:].tolist()]


def test_arrays_grow_and_vectors_are_padded_with_zeros():
    assert enlarged(np.ones((1, 2)), (2, 3)).tolist() == [[1, 1, 0], [0, 0, 0]]
    assert padded(np.ones(2), 3).tolist() == [1, 1, 0]
    assert padded(np.ones(2), 1).tolist() == [1]
