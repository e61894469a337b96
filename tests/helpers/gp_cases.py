"""Reference posteriors: the same Gaussian process, computed slowly and obviously."""

import math

import numpy as np
import pytest

from streamgp.gp.exact import ExactGP
from streamgp.kernels import SquaredExponential


class Dense:
    """The posterior by a dense solve, from scratch each time."""

    def __init__(self, X, Y, *, length_scale=1.0, variance=1.0, noise_variance):
        self.X, self.Y = np.asarray(X), np.asarray(Y)
        self.scales = length_scale, variance
        self.noise_variance = noise_variance
        self.G = self.k(self.X, self.X) + noise_variance * np.eye(len(self.X))

    def k(self, A, B):
        length_scale, variance = self.scales
        square = ((A[:, None] - B[None]) ** 2).sum(axis=2)
        return variance * np.exp(-square / (2 * length_scale**2))

    def predict(self, x):
        k = self.k(np.asarray(x)[None], self.X)[0]
        solved = np.linalg.solve(self.G, np.column_stack([self.Y, k]))
        return k @ solved[:, :-1], self.scales[1] - k @ solved[:, -1]

    def log_evidence(self):
        n, m = self.Y.shape
        _, log_det = np.linalg.slogdet(self.G)
        fit = sum(y @ np.linalg.solve(self.G, y) for y in self.Y.T)
        return -0.5 * (fit + m * (log_det + n * math.log(2 * math.pi)))

    def without(self, i):
        return self.like(np.delete(self.X, i, axis=0), np.delete(self.Y, i, axis=0))

    def like(self, X, Y):
        length_scale, variance = self.scales
        return Dense(
            X,
            Y,
            length_scale=length_scale,
            variance=variance,
            noise_variance=self.noise_variance,
        )


def taught(X, Y, *, length_scale=1.0, variance=1.0, noise_variance, single_precision=False):
    kernel = SquaredExponential(length_scale, variance)
    gp = ExactGP(kernel, noise_variance, single_precision=single_precision)
    for x, y in zip(X, Y, strict=True):
        gp.append(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
    return gp


def problem(n=40, d=3, m=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n, m))


def bits(prediction):
    means, variance = prediction
    return means.tobytes(), variance


def assert_same(gp, dense, probes, tolerance=1e-9):
    for x in probes:
        means, variance = gp.predict(x)
        expected_means, expected_variance = dense.predict(x)
        np.testing.assert_allclose(means, expected_means, rtol=0, atol=tolerance)
        assert variance == pytest.approx(expected_variance, abs=tolerance)
