import math

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

from streamgp.gp import cholesky
from streamgp.gp.cholesky import DOUBLE, SINGLE, NotPositiveDefiniteError, PackedCholesky


def positive_definite(n, seed=0):
    A = np.random.default_rng(seed).normal(size=(n, n))
    return A @ A.T + n * np.eye(n)


def grow(factor, K):
    """Append the rows of the Cholesky factor of `K` that `factor` does not have yet."""
    for i in range(factor.n, len(K)):
        v = factor.solve(K[:i, i].copy())
        factor.append(v, math.sqrt(K[i, i] - v @ v))
    return factor


def of_precision(single):
    """Return an empty factor, and how far its numbers may be off, relative to those of 8 bytes."""
    # Numbers of 4 bytes have 7 digits, of which a solve with a well-conditioned factor loses one.
    return PackedCholesky(SINGLE if single else DOUBLE), 1e-6 if single else 1e-10


sizes = st.sampled_from([0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 150])
block_sizes = st.sampled_from([16, 32, 64])
precisions = st.booleans()


def with_blocks_of(first, function):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cholesky, "_FIRST", first)
        return function()


@given(st.sampled_from([1, 16, 17, 33, 65, 129]), block_sizes, precisions)
def test_every_row_is_handed_out_as_it_was_appended(n, first, single):
    empty, _ = of_precision(single)
    factor = with_blocks_of(first, lambda: grow(empty, positive_definite(n)))
    L = factor.dense()
    for i in range(n):
        v, d = factor.row(i)
        assert v.dtype == (SINGLE if single else DOUBLE)
        assert v.tolist() == L[i, :i].tolist()
        assert d == L[i, i]


@given(sizes, block_sizes, precisions)
def test_a_grown_factor_equals_one_from_scratch(n, first, single):
    K = positive_definite(n)
    empty, tolerance = of_precision(single)
    factor = with_blocks_of(first, lambda: grow(empty, K))
    L = np.linalg.cholesky(K) if n else np.empty((0, 0))
    assert factor.n == n
    np.testing.assert_allclose(factor.dense(), L, rtol=tolerance, atol=tolerance * n)
    assert factor.diagonal().dtype == float
    assert np.array_equal(factor.diagonal(), np.diag(factor.dense()))


@given(sizes, block_sizes, st.integers(0, 5), precisions)
def test_a_solve_equals_a_triangular_solve(n, first, seed, single):
    K = positive_definite(n, seed)
    empty, tolerance = of_precision(single)
    factor = with_blocks_of(first, lambda: grow(empty, K))
    k = np.random.default_rng(seed).normal(size=n)
    L = factor.dense()
    expected = scipy.linalg.solve_triangular(L, k, lower=True) if n else k
    np.testing.assert_allclose(factor.solve(k.copy()), expected, rtol=tolerance, atol=tolerance)


def with_unpacking(cached, unpacked, function):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cholesky, "_CACHED", cached)
        patch.setattr(cholesky, "_UNPACKED", unpacked)
        return function()


@given(
    sizes,
    block_sizes,
    st.sampled_from([0, 1, 2, 7]),
    st.sampled_from([0, 20, 512]),
    st.sampled_from([1, 8, 100]),
    precisions,
)
def test_solving_for_many_equals_solving_for_each(n, first, b, cached, unpacked, single):
    """However the blocks are cut, and whether their triangles are unpacked or not."""
    empty, tolerance = of_precision(single)
    factor = with_blocks_of(first, lambda: grow(empty, positive_definite(n)))
    K = np.random.default_rng(n).normal(size=(b, n))
    expected = np.array([factor.solve(k.copy()) for k in K]).reshape(b, n)
    solved = with_unpacking(cached, unpacked, lambda: factor.solve_many(K))
    assert (solved is K) == (not single)
    np.testing.assert_allclose(solved, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.nightly  # by day small blocks have as many borders
def test_solving_for_many_crosses_the_real_borders():
    n = 2 * cholesky._FIRST + cholesky._CACHED + 1
    factor = PackedCholesky()
    rng = np.random.default_rng(0)
    for i in range(n):
        factor.append(rng.normal(size=i) / n, 1.0)
    K = rng.normal(size=(3, n))
    expected = [factor.solve(k.copy()) for k in K]
    np.testing.assert_allclose(factor.solve_many(K), expected, atol=1e-12)


def test_in_single_precision_numbers_are_rounded_and_what_comes_out_is_what_is_stored():
    factor = PackedCholesky(SINGLE)
    assert factor.append(np.empty(0), 0.1) == np.float32(0.1)
    assert factor.append(np.array([0.2]), 0.3) == np.float32(0.3)
    assert factor.row(1) == ([np.float32(0.2)], np.float32(0.3))
    solved = factor.solve(np.array([0.1, 0.7]))
    assert solved.dtype == SINGLE
    assert factor.append(solved, 1.0) == 1.0
    assert factor.row(2)[0].tolist() == solved.tolist()


@given(sizes, st.floats(0, 1), block_sizes)
def test_truncated_and_grown_again_equals_grown_in_one_go(n, share, first):
    kept = round(share * n)
    one, other = positive_definite(n), positive_definite(n, seed=1)
    other[:kept, :kept] = one[:kept, :kept]
    other += np.diag(np.full(n, 10.0 * n))
    one = one + np.diag(np.full(n, 10.0 * n))

    def detour():
        factor = grow(PackedCholesky(), one)
        factor.truncate(kept)
        return factor.dense(), grow(factor, other)

    after_truncation, factor = with_blocks_of(first, detour)
    straight = with_blocks_of(first, lambda: grow(PackedCholesky(), other))
    assert np.array_equal(after_truncation, straight.dense()[:kept, :kept])
    # The blocks are cut where a truncation left them, which moves rounding only.
    np.testing.assert_allclose(factor.dense(), straight.dense(), rtol=1e-10, atol=1e-12)


@pytest.mark.usefixtures("small_blocks")
def test_any_series_of_truncations_keeps_the_factor():
    K = positive_definite(140)
    factor = grow(PackedCholesky(), K)
    L = np.linalg.cholesky(K)
    for n in (139, 128, 127, 64, 63, 17, 16, 15, 1, 0):
        factor.truncate(n)
        assert factor.n == n
        assert factor.diagonal().shape == (n,)
        np.testing.assert_allclose(factor.dense(), L[:n, :n], rtol=1e-10, atol=1e-12)
        grow(factor, K[: n + 20, : n + 20])
        np.testing.assert_allclose(factor.dense(), L[: n + 20, : n + 20], rtol=1e-10, atol=1e-12)


def test_the_first_block_ends_without_a_seam():
    """One crossing of the real border, with a factor known in closed form."""
    n = cholesky._FIRST + 3
    # exp(-|i - j| a) is the covariance of a Markov process: each row depends on the last one only.
    decay = 0.5
    step = math.sqrt(1.0 - decay**2)
    factor = PackedCholesky()
    powers = decay ** np.arange(n + 1)
    for i in range(n):
        row = step * powers[i:0:-1]
        row[:1] = powers[i]
        if i > n - 6:
            solved = factor.solve(powers[i:0:-1].copy())
            np.testing.assert_allclose(solved, row, atol=1e-14)
        factor.append(row, step if i else 1.0)
    assert [block.n for block in factor._blocks] == [cholesky._FIRST, 3]
    k = np.sin(np.arange(n))
    solved = factor.solve(k.copy())
    assert solved[0] == k[0]
    np.testing.assert_allclose(solved[1:], (k[1:] - decay * k[:-1]) / step, atol=1e-12)


@pytest.mark.usefixtures("small_blocks")
def test_blocks_once_full_are_never_copied():
    K = positive_definite(100)
    factor = grow(PackedCholesky(), K[:40, :40])
    addresses = [block.triangle.ctypes.data for block in factor._blocks]
    grow(factor, K)
    assert [b.triangle.ctypes.data for b in factor._blocks[: len(addresses)]] == addresses


def test_a_solve_overwrites_its_argument():
    factor = grow(PackedCholesky(), np.array([[4.0]]))
    k = np.array([2.0])
    assert factor.solve(k) is k
    assert k.tolist() == [1.0]


def test_an_empty_factor_solves_nothing():
    assert PackedCholesky().solve(np.empty(0)).shape == (0,)
    assert PackedCholesky().dense().shape == (0, 0)
    assert PackedCholesky().diagonal().shape == (0,)


@pytest.mark.parametrize("d", [0.0, -1.0, math.nan, math.inf])
def test_a_diagonal_that_is_not_positive_is_refused_and_nothing_changes(d):
    factor = grow(PackedCholesky(), positive_definite(3))
    before = factor.dense()
    with pytest.raises(
        NotPositiveDefiniteError, match=r"must be positive, got .*; raise noise_variance or drop"
    ):
        factor.append(np.zeros(3), d)
    assert factor.n == 3
    assert np.array_equal(factor.dense(), before)


def test_the_error_is_a_value_error():
    assert issubclass(NotPositiveDefiniteError, ValueError)
