"""A Cholesky factor that grows by one row at a time and is read once per solve.

This module has only the factor: no kernel, no targets.

"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.linalg.blas import dgemv, dtpsv, dtrsm, sgemv, stpsv, strsm

from streamgp.base import Array
from streamgp.common.validation import check_non_negative

# --- Precision of a stored factor, and of what follows from it.


DOUBLE: np.dtype[Any] = np.dtype(np.float64)
SINGLE: np.dtype[Any] = np.dtype(np.float32)

MIN_NOISE_IN_SINGLE_PRECISION = 1e-3
"""Noise, in units of the prior variance, below which single precision changes predictions."""


def check_noise_variance(value: float, *, single_precision: bool = False) -> None:
    """Refuse a noise variance that is not a number, negative, not finite, or too small."""
    check_non_negative("noise_variance", value)
    if single_precision and value < MIN_NOISE_IN_SINGLE_PRECISION:
        raise ValueError(
            f"noise_variance must be at least {MIN_NOISE_IN_SINGLE_PRECISION} in single precision, "
            f"whose rounding errors would change predictions otherwise, got {value!r}; "
            "raise it or do without single_precision"
        )


class NotPositiveDefiniteError(ValueError):
    """A new point is, up to rounding, determined by the old ones."""


# Rows of the first block, which doubles by copying up to here (16 MiB are moved at most); later
# blocks are never copied. For one point a triangle is read faster than a panel and a triangle: with
# half as many rows, 3000 points take 3 % more, and 8 % in single precision (32 at once 10 % less).
_FIRST = 4096
_SMALLEST = 16
# Number of rows of a triangle that several right-hand sides share as an ordinary matrix at a time.
# They are copied for that, which pays off once the triangle no longer fits into the second cache.
_UNPACKED = 128
_CACHED = 512


class _Block:
    """Rows [start, start + n) of the factor: a dense panel left of a packed triangle."""

    __slots__ = ("capacity", "n", "panel", "start", "triangle")

    def __init__(self, start: int, capacity: int, dtype: np.dtype[Any]) -> None:
        self.start = start
        self.capacity = capacity
        self.n = 0
        self.panel: Array = np.empty((capacity, start), dtype)
        self.triangle: Array = np.empty(capacity * (capacity + 1) // 2, dtype)

    def double(self) -> None:
        self.capacity *= 2
        dtype = self.triangle.dtype
        triangle: Array = np.empty(self.capacity * (self.capacity + 1) // 2, dtype)
        used = self.n * (self.n + 1) // 2
        triangle[:used] = self.triangle[:used]
        self.triangle = triangle
        self.panel = np.empty((self.capacity, 0), dtype)


class PackedCholesky:
    """Lower Cholesky factor `L` of a growing matrix, stored as packed rows.

    Memory is one triangle, read once per solve. Blocks of
    4096, 4096, 8192, ... rows hold the factor, so that a large one is never copied as it grows.

    Parameters
    ----------
    dtype
        Type of what is stored, used for solving, and returned by `solve`, `solve_many` and `row`:
        `DOUBLE` or `SINGLE`. Input is rounded to it.

    Examples
    --------
    The factor of `[[4, 2], [2, 5]]`, row by row:

    >>> factor = PackedCholesky()
    >>> factor.append(np.empty(0), 2.0)
    2.0
    >>> factor.append(factor.solve(np.array([2.0])), 2.0)
    2.0
    >>> factor.dense()
    array([[2., 0.],
           [1., 2.]])

    References
    ----------
    [^1]: Golub, G.H. and Van Loan, C.F., 2013. Matrix Computations, 4th ed., §4.2.

    """

    # n        rows of L so far
    # _blocks  consecutive blocks of rows; only the last one has room
    # _double  whether they are stored in double precision
    __slots__ = ("_blocks", "_double", "n")

    def __init__(self, dtype: np.dtype[Any] = DOUBLE) -> None:
        self.n = 0
        self._double = dtype == DOUBLE
        self._blocks = [_Block(0, _SMALLEST, dtype)]

    def solve(self, k: Array) -> Array:
        """Return `L⁻¹ k` for `k` of shape (n,), which is overwritten if it has the right type."""
        gemv, tpsv = (dgemv, dtpsv) if self._double else (sgemv, stpsv)
        for block in self._blocks:
            n, start = block.n, block.start
            # Row-major is column-major transposed, a lower packed triangle an upper one. Arguments
            # are positional for speed; nothing is copied.
            if start:
                # a, x, beta, y, offx, incx, offy, incy, trans, overwrite_y
                gemv(-1.0, block.panel[:n].T, k[:start], 1.0, k, 0, 1, start, 1, 1, 1)
            if n:
                # incx, offx, lower, trans, diag, overwrite_x; in the precision of the factor now
                k = tpsv(n, block.triangle, k, 1, start, 0, 1, 0, 1)
        return k

    def solve_many(self, K: Array) -> Array:
        """Return `L⁻¹` times each row of `K`, shape (b, n), which is overwritten likewise.

        The factor is read once for all of them. The result equals that of `solve` only up to
        rounding: products of matrices sum in another order than products of a matrix and a vector
        do.
        """
        X: Array = K.astype(self._blocks[0].triangle.dtype, copy=False)
        for block in self._blocks:
            n, start = block.n, block.start
            if start:
                X[:, start : start + n] -= X[:, :start] @ block.panel[:n].T
            if n > _CACHED:
                _solve_unpacked(block.triangle, X[:, start : start + n])
            elif n:
                tpsv = dtpsv if self._double else stpsv
                for x in X:
                    tpsv(n, block.triangle, x, 1, start, 0, 1, 0, 1)  # as in `solve`
        return X

    def append(self, v: Array, d: float) -> float:
        """Add the row `[v, d]`: `v = L⁻¹ k`, `d` the square root of the residual variance, κ - v'v.

        Returns
        -------
        The diagonal as it is stored: rounded, in single precision.

        Raises
        ------
        NotPositiveDefiniteError
            If `d` is not positive and finite.

        """
        if not (d > 0.0 and math.isfinite(d)):
            raise NotPositiveDefiniteError(
                f"the diagonal of a Cholesky factor must be positive, got {d!r}; "
                "raise noise_variance or drop repeated points"
            )
        block = self._blocks[-1]
        if block.n == block.capacity:
            block = self._grow(block)
        n, start = block.n, block.start
        offset = n * (n + 1) // 2
        if start:
            block.panel[n] = v[:start]
            v = v[start:]
        block.triangle[offset : offset + n] = v
        block.triangle[offset + n] = d
        block.n = n + 1
        self.n += 1
        return float(block.triangle[offset + n])

    def truncate(self, n: int) -> None:
        """Keep only the first `n` rows."""
        while len(self._blocks) > 1 and self._blocks[-1].start >= n:
            self._blocks.pop()
        self._blocks[-1].n = n - self._blocks[-1].start
        self.n = n

    def row(self, i: int) -> tuple[Array, float]:
        """Return row `i` as it was appended: `v` of shape (i,), a copy, and the diagonal `d`."""
        block = next(b for b in reversed(self._blocks) if b.start <= i)
        r = i - block.start
        offset = r * (r + 1) // 2
        stored = block.triangle[offset : offset + r]
        # Aligned in memory as `v` was: some kernels of BLAS sum from where a vector is aligned.
        stored = np.concatenate([block.panel[r], stored]) if block.start else stored.copy()
        return stored, float(block.triangle[offset + r])

    def diagonal(self) -> Array:
        """Return the diagonal of `L`, shape (n,)."""
        parts = []
        for block in self._blocks:
            i = np.arange(block.n)
            parts.append(block.triangle[i * (i + 3) // 2])
        return np.concatenate(parts, dtype=float)

    def dense(self) -> Array:
        """Return `L` as an ordinary array, shape (n, n)."""
        L = np.zeros((self.n, self.n))
        for block in self._blocks:
            n, start = block.n, block.start
            L[start : start + n, :start] = block.panel[:n]
            rows, columns = np.tril_indices(n)
            L[start + rows, start + columns] = block.triangle[: n * (n + 1) // 2]
        return L

    def _grow(self, block: _Block) -> _Block:
        if block.capacity < _FIRST:
            block.double()
            return block
        block = _Block(self.n, self.n, block.triangle.dtype)
        self._blocks.append(block)
        return block


def _solve_unpacked(triangle: Array, X: Array) -> None:
    """Overwrite each row of `X`, shape (b, n), with the inverse of a packed triangle times it."""
    n = X.shape[1]
    trsm = dtrsm if X.dtype == DOUBLE else strsm
    rows = np.zeros((_UNPACKED, n), X.dtype)
    end = offset = 0
    while end < n:
        first, end = end, min(end + _UNPACKED, n)
        m = end - first
        for i in range(m):
            rows[i, : first + i + 1] = triangle[offset : offset + first + i + 1]
            offset += first + i + 1
        part = X[:, first:end]
        part -= X[:, :first] @ rows[:m, :first].T
        # Row-major L is column-major L': an upper triangle, transposed.
        part[:] = trsm(1.0, rows[:m, first:end].T, part.T, trans_a=1).T
