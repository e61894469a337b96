"""Problems for the reproduction of the paper on privileged noise, and for the online experiment.

In the synthetic ones, features are uniform on the square [-2, 2]², the decision function is
`2 sin(1.5 x1) + x2² - 1.2`, and two privileged features are standard normal, unless said otherwise.

"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers.egp.problems import Point, as_points, standardised
from streamgp.base import Array
from streamgp.gp.exact import ExactGP
from streamgp.kernels import SquaredExponential

_N_SYNTHETIC = 100
_N_TEST = 2000
_FLIPPED = 0.2
_CARELESS = 0.4
_N_DIGITS = 100
_N_MNIST = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Data of one run.

    Parameters
    ----------
    X, privileged, y
        Features (n, d), privileged features (n, p) and labels, -1 or 1, of the examples.
    X_test, y_test
        Points that are predicted at the end, and their true labels.
    careless
        Which labels were guessed, where that is known; otherwise empty.

    """

    X: Array
    privileged: Array
    y: Array
    X_test: Array
    y_test: Array
    careless: Array

    @property
    def points(self) -> list[Point]:
        """Features of the examples as dictionaries."""
        return as_points(self.X, "x")

    @property
    def privileged_points(self) -> list[Point]:
        """Privileged features of the examples as dictionaries."""
        return as_points(self.privileged, "p")


def decision(X: Array) -> Array:
    """The decision function of the synthetic problems."""
    f: Array = 2.0 * np.sin(1.5 * X[:, 0]) + X[:, 1] ** 2 - 1.2
    return f


def noise(rng: np.random.Generator) -> Draw:
    """Noise whose variance is a function of the privileged features."""
    X, P = _square(rng), rng.normal(size=(_N_SYNTHETIC, 2))
    g = -3.0 + 6.0 / (1.0 + np.exp(-3.0 * P[:, 0]))
    y = np.sign(decision(X) + rng.normal(size=len(X)) * np.exp(0.5 * g))
    return _synthetic(rng, X, P, y)


def guessed(rng: np.random.Generator) -> Draw:
    """Labels of which half are guessed: those whose first privileged feature is positive."""
    X, P = _square(rng), rng.normal(size=(_N_SYNTHETIC, 2))
    y = np.where(P[:, 0] > 0.0, rng.choice([-1.0, 1.0], len(X)), np.sign(decision(X)))
    return _synthetic(rng, X, P, y)


def useless(rng: np.random.Generator) -> Draw:
    """Labels that all have the same noise, of variance 1."""
    X, P = _square(rng), rng.normal(size=(_N_SYNTHETIC, 2))
    y = np.sign(decision(X) + rng.normal(size=len(X)))
    return _synthetic(rng, X, P, y)


def annotator(rng: np.random.Generator, n: int = 300) -> Draw:
    """Answers of which 40 % are careless: half of these are wrong, quick, and less confident.

    Privileged features are the log odds of the stated confidence (Beta(6, 2) if careful, else
    Beta(2.5, 3)) and a response time (N(1, .5²), else N(.3, .5²)).
    """
    X, careless = _square(rng, n), rng.random(n) < _CARELESS
    y = np.where(careless, rng.choice([-1.0, 1.0], n), np.sign(decision(X)))
    sure = np.where(careless, rng.beta(2.5, 3.0, n), rng.beta(6.0, 2.0, n))
    time = np.where(careless, rng.normal(0.3, 0.5, n), rng.normal(1.0, 0.5, n))
    P = np.column_stack([np.log(sure / (1.0 - sure)), time])
    return _synthetic(rng, X, P, y, careless)


def digits(rng: np.random.Generator, *, margin: bool) -> Draw:
    """Handwritten 3 and 8: features are averages of 2 x 2 pixels, privileged are all 64 pixels.

    20 % of the 100 labels are wrong. With `margin`, the only privileged feature is how strongly the
    other labels support this one, given the 64 pixels: label times leave-one-out mean.
    """
    from sklearn.datasets import load_digits

    pixels, digit = load_digits(return_X_y=True)
    chosen = rng.permutation(np.flatnonzero(np.isin(digit, (3, 8))))
    pixels, y = pixels[chosen], np.where(digit[chosen] == 8, 1.0, -1.0)
    coarse = pixels.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(len(y), 16)
    n = _N_DIGITS
    given = np.where(rng.random(n) < _FLIPPED, -y[:n], y[:n])
    fine = standardised(pixels[:n], n)
    return _divided(standardised(coarse, n), margins(fine, given) if margin else fine, given, y)


def mnist_plus(path: Path, which: str, rng: np.random.Generator, *, margin: bool) -> Draw:
    """Digits 5 and 8 in 10 x 10 pixels, and descriptions of 80 of the 100 examples in words."""
    with np.load(path) as found:
        X, y = found["X_train"].astype(float), found["y_train"]
        P = found[f"X_train_{which}"].astype(float)
        X_test, y_test = found["X_test"].astype(float), found["y_test"]
    chosen = rng.permutation(len(y))[:_N_MNIST]
    n = len(chosen)
    X = standardised(np.concatenate([X[chosen], X_test]), n)
    given, P = 2.0 * y[chosen] - 1.0, standardised(P[chosen], n)
    truth = np.concatenate([given, 2.0 * y_test - 1.0])
    return _divided(X, margins(P, given) if margin else P, given, truth)


def margins(P: Array, y: Array) -> Array:
    """Return each label times its leave-one-out mean, predicted from the others, shape (n, 1).

    By regression with a squared exponential, length scale sqrt(d), and noise of variance .5.
    """
    gp = ExactGP(SquaredExponential(float(np.sqrt(P.shape[1]))), noise_variance=0.5)
    gp.add_target()
    for row, label in zip(P, y, strict=True):
        gp.append(row, np.array([label]))
    means, _ = gp.leave_one_out()
    found: Array = y[:, None] * means
    return found


SYNTHETIC: Mapping[str, Callable[[np.random.Generator], Draw]] = {
    "noise": noise,
    "guessed": guessed,
    "useless": useless,
}


def read(
    names: Sequence[str], data: Path | None
) -> tuple[dict[str, Callable[[np.random.Generator], Draw]], list[str]]:
    """Return functions that draw runs of problems, by name, and what was left out and why."""
    found: dict[str, Callable[[np.random.Generator], Draw]] = {}
    skipped = []
    for name in names:
        family, _, rest = name.partition(", ")
        margin = rest.endswith("margin")
        if name in SYNTHETIC:
            found[name] = SYNTHETIC[name]
        elif family == "digits":
            found[name] = _Digits(margin)
        else:
            path = None if data is None else data / "privileged" / "mnist_plus.npz"
            if path is None or not path.is_file():
                skipped.append(f"{name} (needs --data with privileged/mnist_plus.npz)")
                continue
            found[name] = _MnistPlus(path, rest.split()[0], margin)
    return found, skipped


@dataclass(frozen=True, slots=True)
class _Digits:
    margin: bool

    def __call__(self, rng: np.random.Generator) -> Draw:
        return digits(rng, margin=self.margin)


@dataclass(frozen=True, slots=True)
class _MnistPlus:
    path: Path
    which: str
    margin: bool

    def __call__(self, rng: np.random.Generator) -> Draw:
        return mnist_plus(self.path, self.which, rng, margin=self.margin)


def _square(rng: np.random.Generator, n: int = _N_SYNTHETIC) -> Array:
    return rng.uniform(-2.0, 2.0, (n, 2))


def _synthetic(
    rng: np.random.Generator, X: Array, P: Array, y: Array, careless: Any = None
) -> Draw:
    X_test = _square(rng, _N_TEST)
    return Draw(
        X=X,
        privileged=P,
        y=y,
        X_test=X_test,
        y_test=np.sign(decision(X_test)),
        careless=np.zeros(0) if careless is None else careless,
    )


def _divided(X: Array, P: Array, given: Array, y: Array) -> Draw:
    n = len(given)
    return Draw(X=X[:n], privileged=P, y=given, X_test=X[n:], y_test=y[n:], careless=np.zeros(0))
