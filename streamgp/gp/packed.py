"""A Cholesky factor that grows by one row at a time and is read once per solve.

Only the factor lives here: no kernel, no targets.

"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.blas import dtpsv

from streamgp.base import Array


class NotPositiveDefiniteError(ValueError):
    """A new point is, up to rounding, determined by the old ones."""


# Rows of the first block, which doubles by copying until here (at most 4 MiB are moved); later
# blocks are never copied.
_FIRST = 1024
_SMALLEST = 16


class _Block:
    """Rows [start, start + n) of the factor: a dense panel left of a packed triangle."""

    __slots__ = ("capacity", "n", "panel", "start", "triangle")

    def __init__(self, start: int, capacity: int) -> None:
        self.start = start
        self.capacity = capacity
        self.n = 0
        self.panel: Array = np.empty((capacity, start))
        self.triangle: Array = np.empty(capacity * (capacity + 1) // 2)

    def double(self) -> None:
        self.capacity *= 2
        triangle: Array = np.empty(self.capacity * (self.capacity + 1) // 2)
        used = self.n * (self.n + 1) // 2
        triangle[:used] = self.triangle[:used]
        self.triangle = triangle
        self.panel = np.empty((self.capacity, 0))


class PackedCholesky:
    """Lower Cholesky factor `L` of a growing matrix, stored as packed rows.

    Memory is one triangle, read once per solve, which is all that a solve has to cost. Blocks of
    1024, 1024, 2048, ... rows hold the factor, so that growing never copies what is there.

    Examples
    --------
    The factor of `[[4, 2], [2, 5]]`, row by row:

    >>> factor = PackedCholesky()
    >>> factor.append(np.empty(0), 2.0)
    >>> factor.append(factor.solve(np.array([2.0])), 2.0)
    >>> factor.dense()
    array([[2., 0.],
           [1., 2.]])

    References
    ----------
    [^1]: Golub, G.H. and Van Loan, C.F., 2013. Matrix Computations, 4th ed., §4.2.

    """

    # n        rows of L so far
    # _blocks  consecutive blocks of rows; only the last one has room
    __slots__ = ("_blocks", "n")

    def __init__(self) -> None:
        self.n = 0
        self._blocks = [_Block(0, _SMALLEST)]

    def solve(self, k: Array) -> Array:
        """Overwrite `k`, shape (n,), with `L⁻¹ k` and return it."""
        for block in self._blocks:
            n, start = block.n, block.start
            if start:
                k[start : start + n] -= block.panel[:n] @ k[:start]
            if n:
                # Row-major packed L is column-major packed L': an upper triangle, transposed.
                # Positional for speed: incx=1, offx=start, lower=0, trans=1, diag=0, overwrite_x=1.
                dtpsv(n, block.triangle, k, 1, start, 0, 1, 0, 1)
        return k

    def append(self, v: Array, d: float) -> None:
        """Add the row `[v, d]`: `v = L⁻¹ k`, `d` the square root of what `v` leaves unexplained.

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

    def truncate(self, n: int) -> None:
        """Keep the first `n` rows only."""
        while len(self._blocks) > 1 and self._blocks[-1].start >= n:
            self._blocks.pop()
        self._blocks[-1].n = n - self._blocks[-1].start
        self.n = n

    def row(self, i: int) -> tuple[Array, float]:
        """Return row `i` as it was appended: `v` of shape (i,) and the diagonal `d`."""
        block = next(b for b in reversed(self._blocks) if b.start <= i)
        r = i - block.start
        offset = r * (r + 1) // 2
        v = block.triangle[offset : offset + r]
        if block.start:
            v = np.concatenate([block.panel[r], v])
        return v, float(block.triangle[offset + r])

    def diagonal(self) -> Array:
        """Return the diagonal of `L`, shape (n,)."""
        parts = []
        for block in self._blocks:
            i = np.arange(block.n)
            parts.append(block.triangle[i * (i + 3) // 2])
        return np.concatenate(parts)

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
        block = _Block(self.n, self.n)
        self._blocks.append(block)
        return block
