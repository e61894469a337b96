import numpy as np
import pytest

from streamgp.gp.arrays import padded
from streamgp.gp.exact import Points, enlarged
from streamgp.kernels import SquaredExponential


@pytest.mark.parametrize(("offset", "measured_from_it"), [(0.0, False), (5.0, False), (1e3, True)])
def test_points_are_measured_from_the_first_if_it_knows_nothing_of_zero(offset, measured_from_it):
    points, x = Points(SquaredExponential()), np.array([0.2, -0.1]) + offset
    points.settle(x)
    assert (points.origin is not None) == measured_from_it
    if measured_from_it:
        assert points.origin.tolist() == x.tolist()
        assert points.origin is not x


def test_before_the_first_point_there_is_nothing_to_resize():
    points = Points(SquaredExponential())
    points.resize(3)
    assert points.d is None
    row, prior, k = points.covariances_with(np.zeros(2))
    assert (len(row), prior, k.shape) == (4, 1.0, (0,))


def test_arrays_grow_and_vectors_are_padded_with_zeros():
    assert enlarged(np.ones((1, 2)), (2, 3)).tolist() == [[1, 1, 0], [0, 0, 0]]
    assert padded(np.ones(2), 3).tolist() == [1, 1, 0]
    assert padded(np.ones(2), 1).tolist() == [1]
