"""A pool, and its posterior by one dense solve, from scratch each time."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from streamgp.gp.joint_posterior import PoolPosterior


@dataclass(frozen=True)
class Case:
    """Points with their prior covariances, and codes (n, m) of the first `n` of `told`."""

    K: np.ndarray
    told: list[int]
    codes: np.ndarray
    noise_variance: float

    @property
    def unlabelled(self):
        mask = np.ones(len(self.K), dtype=bool)
        mask[self.told] = False
        return mask

    def taught(self):
        """Return the posterior that has learned the codes one by one."""
        posterior = PoolPosterior(self.K.copy(), self.noise_variance)
        for _ in range(self.codes.shape[1] - 1):
            posterior.add_function()
        for i, codes in zip(self.told, self.codes, strict=True):
            posterior.learn(i, codes)
        return posterior

    def refit(self, u=None, codes=None):
        """Return functions (m, P), covariances (P, P) and squared norms (m,) by one solve.

        With `u`, point `u` has been learned as well.
        """
        told = self.told if u is None else [*self.told, u]
        Y = self.codes if u is None else np.vstack([self.codes, codes])
        G = self.K[np.ix_(told, told)] + self.noise_variance * np.eye(len(told))
        a = self.K[told]
        solved = np.linalg.solve(G, np.column_stack([Y, a]))
        m = Y.shape[1]
        return solved[:, :m].T @ a, self.K - a.T @ solved[:, m:], (Y * solved[:, :m]).sum(axis=0)


def case_of(n_points, n_told, n_classes, noise_variance, seed):
    """A random case; `n_classes` 1 stands for two classes with a single function."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_points, 2))
    K = np.exp(-0.5 * np.square(X[:, None] - X).sum(axis=2))
    told = rng.permutation(n_points)[:n_told].tolist()
    classes = rng.integers(max(n_classes, 2), size=n_told)
    codes = np.where(classes[:, None] == np.arange(max(n_classes, 2)), 1.0, -1.0)
    return Case(K, told, codes[:, :n_classes], noise_variance)


ANY = st.integers(1, 4)


def cases(n_classes=ANY):
    """Cases with some points told and some not."""
    return st.builds(
        case_of,
        n_points=st.integers(12, 24),
        n_told=st.integers(1, 10),
        n_classes=n_classes,
        noise_variance=st.sampled_from([1e-3, 0.1, 1.0]),
        seed=st.integers(0, 10_000),
    )
