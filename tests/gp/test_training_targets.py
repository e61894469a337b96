import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import solve_triangular

from streamgp.gp.cholesky import PackedCholesky
from streamgp.gp.exact import Targets


def factor_of(n, seed=0):
    """Return the factor of some covariance, grown row by row."""
    A = np.random.default_rng(seed).normal(size=(n, n))
    K = A @ A.T + n * np.eye(n)
    factor = PackedCholesky()
    for i in range(n):
        v = factor.solve(K[:i, i].copy())
        factor.append(v, math.sqrt(K[i, i] - v @ v))
    return factor


def learned(factor, Y):
    targets = Targets()
    for i, y in enumerate(Y):
        v, d = factor.row(i)
        targets.append(y, targets.means(v), d)
    return targets


@given(st.integers(2, 40), st.integers(1, 6), st.integers(0, 50))
def test_what_is_kept_solves_the_triangular_system(n, m, seed):
    """Also of functions that came later, and were zero before."""
    factor = factor_of(n, seed)
    Y = np.random.default_rng(seed).normal(size=(n, m))
    known = np.minimum(1 + np.arange(n), m)
    Y[np.arange(m) >= known[:, None]] = 0.0
    targets = learned(factor, [y[:k] for y, k in zip(Y, known, strict=True)])
    expected = solve_triangular(factor.dense(), Y, lower=True)[:, : targets.m]
    assert targets.m == min(n, m)
    np.testing.assert_allclose(targets.Z.T, expected, atol=1e-12)
    assert targets.dense().tolist() == Y[:, : targets.m].tolist()
    v = factor.row(n - 1)[0]
    np.testing.assert_allclose(learned(factor, Y[:-1]).means(v), v @ expected[:-1], atol=1e-12)


def test_a_function_more_changes_no_bit_of_the_others():
    factor = factor_of(30)
    Y = np.random.default_rng(0).normal(size=(30, 1))
    one, other = learned(factor, Y[:20]), learned(factor, Y[:20])
    for _ in range(9):
        one.add()
    for i in range(20, 30):
        v, d = factor.row(i)
        assert one.means(v)[0] == other.means(v)[0]
        one.append(np.append(Y[i], np.ones(9)), one.means(v), d)
        other.append(Y[i], other.means(v), d)
    assert one.Z[0].tolist() == other.Z[0].tolist()


@pytest.mark.parametrize("i", [0, 7, 19])
def test_relabelled_targets_are_those_learned_so_bitwise(i):
    factor = factor_of(20)
    Y = np.random.default_rng(0).normal(size=(20, 3))
    targets = learned(factor, Y.copy())
    Y[i, 1:] = [5.0, -1.0]
    targets.relabel(i, Y[i], factor)
    assert targets.Z.tolist() == learned(factor, Y).Z.tolist()


def test_a_point_learned_before_a_function_came_is_relabelled_as_if_it_had_been_there():
    factor = factor_of(6)
    Y = np.random.default_rng(0).normal(size=(6, 2))
    Y[:3, 1] = 0.0
    targets = learned(factor, [*Y[:3, :1].copy(), *Y[3:]])
    Y[1, 1] = 4.0
    targets.relabel(1, Y[1], factor)
    assert targets.Z.tolist() == learned(factor, Y).Z.tolist()


def test_targets_that_are_cut_off_come_back_for_all_functions():
    factor = factor_of(4)
    targets = learned(factor, [np.ones(1), np.ones(1), np.ones(2), np.ones(2)])
    assert [y.tolist() for y in targets.truncate(1)] == [[1.0, 0.0], [1.0, 1.0], [1.0, 1.0]]
    assert targets.Z.shape == (2, 1)
    assert targets.dense().tolist() == [[1.0, 0.0]]


def test_no_points_have_no_values():
    targets = Targets()
    targets.add()
    assert targets.dense().shape == (0, 1)
    assert targets.means(np.empty(0)).tolist() == [0.0]
