"""Learners that are given as many labels as `isgp()` asks for, at random or where they are unsure.

River's learn each label at once. scikit-learn's begin again whenever the labels are a third more.

"""

from __future__ import annotations

import random
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from river import compose, dummy, forest, linear_model, multiclass, naive_bayes, neighbors, tree
from river.preprocessing import StandardScaler

from streamgp.base import Array, Features

Predicted: TypeAlias = list[str | None]
"""The label that is predicted for each event before it is learned."""

Asks: TypeAlias = Callable[[int, dict[Any, float]], bool]
"""Whether the label of an event is wanted: a function of its number and predicted probabilities."""


_LARGEST = 1e38
"""Largest number of single precision, with which scikit-learn's trees compute."""


def bounded(x: Features) -> Features:
    """Return features without numbers that only `isgp()` can take: River's trees square them.

    Examples
    --------
    >>> bounded({"light": 2, "power": 1e300, "door": "open"})
    {'light': 2, 'power': 1e+38, 'door': 'open'}

    """
    return {
        name: value if isinstance(value, str) else max(-_LARGEST, min(value, _LARGEST))
        for name, value in x.items()
    }


def encoded(x: Features) -> dict[Any, float]:
    """Return features as numbers; a text becomes an indicator.

    Examples
    --------
    >>> encoded({"light": 2, "door": "open"})
    {'light': 2.0, 'door=open': 1.0}

    """
    return dict(
        (f"{name}={value}", 1.0) if isinstance(value, str) else (name, float(value))
        for name, value in x.items()
    )


def _numbers() -> Any:
    return compose.FuncTransformer(encoded)


def _arf() -> Any:
    return forest.ARFClassifier(n_models=10, seed=1)


def _logistic() -> Any:
    one = linear_model.LogisticRegression()
    return _numbers() | StandardScaler() | multiclass.OneVsRestClassifier(one)


def _nearest() -> Any:
    # The default engine is random; with some seeds it loses its way on logs in order of time.
    engine = neighbors.LazySearch(window_size=2000)
    return _numbers() | StandardScaler() | neighbors.KNNClassifier(n_neighbors=5, engine=engine)


def _bayes() -> Any:
    model: Any = naive_bayes.GaussianNB
    return _numbers() | model()


STREAMING: dict[str, Callable[[], Any]] = {
    "River ARF": _arf,
    "River logistic regression": _logistic,
    "River nearest neighbours": _nearest,
    "River Hoeffding adaptive tree": lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=1),
    "River Gaussian naive Bayes": _bayes,
    "the last answer": dummy.NoChangeClassifier,
    "the most frequent answer": dummy.PriorClassifier,
}
_WINDOW = 150


class SmallestMargin:
    """Ask where the two most probable labels are closest, as often as labels are left.

    An event is asked about if its margin is among the smallest of the last 150, of which the share
    counts that the labels left are of the events left. Ties are broken at random. In the end all
    labels are asked for, if there are as many events.

    Parameters
    ----------
    n_labels
        Number of labels.
    n_events
        Number of events whose label can be asked for.
    seed
        Seed of the ties.

    Examples
    --------
    >>> asks = SmallestMargin(2, 4, seed=1)
    >>> [asks(i, {"hall": p, "kitchen": 1.0 - p}) for i, p in enumerate([0.9, 1.0, 0.6, 0.8])]
    [True, False, True, False]

    """

    def __init__(self, n_labels: int, n_events: int, *, seed: int) -> None:
        self._n_labels = n_labels
        self._n_events = n_events
        self._rng = random.Random(seed)
        self._recent: deque[tuple[float, float]] = deque(maxlen=_WINDOW)

    def __call__(self, _i: int, proba: dict[Any, float]) -> bool:
        """Whether the next event's label is wanted."""
        first, second = sorted([*proba.values(), 0.0, 0.0], reverse=True)[:2]
        margin = (first - second, self._rng.random())
        self._recent.append(margin)
        n_smaller = sum(other < margin for other in self._recent)
        asks = n_smaller * self._n_events < self._n_labels * len(self._recent)
        self._n_events -= 1
        self._n_labels -= asks
        return asks


def streamed(
    model: Any,
    xs: Sequence[Any],
    truths: Sequence[str | None],
    answers: Sequence[str | None],
    asks: Asks,
) -> Predicted:
    """Return what a classifier with River's methods predicts, which learns the answers it asks for.

    It is not asked whether it wants those of events whose truth is unknown. Features are
    standardised by all events so far.
    """
    predicted: Predicted = []
    with compose.learn_during_predict():
        for i, (x, truth, answer) in enumerate(zip(xs, truths, answers, strict=True)):
            proba = model.predict_proba_one(x)
            predicted.append(max(proba, key=proba.__getitem__) if proba else None)
            if truth is not None and asks(i, proba):
                model.learn_one(x, answer)
    return predicted


# --- retrained

_MORE = 1.35


def _random_forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(30, random_state=1)


def _batch_logistic() -> Any:
    from sklearn import impute, linear_model, pipeline, preprocessing

    return pipeline.make_pipeline(
        impute.SimpleImputer(keep_empty_features=True),
        preprocessing.StandardScaler(),
        linear_model.LogisticRegression(max_iter=200),
    )


RETRAINED: dict[str, Callable[[], Any]] = {
    "random forest, retrained": _random_forest,
    "logistic regression, retrained": _batch_logistic,
}
UNSURE = ("River ARF", "River logistic regression", *RETRAINED)
"""Those that also choose their labels themselves."""
NAMES = (*STREAMING, *RETRAINED, *(f"{name}, asking" for name in UNSURE))
"""All learners, with *asking* where they choose their labels."""


def matrix(xs: Sequence[Features]) -> Array:
    """Return features as rows of numbers; a missing number is NaN, a missing text has no indicator.

    Examples
    --------
    >>> matrix([{"door": "open"}, {"light": 2.0}])
    array([[ 1., nan],
           [ 0.,  2.]])

    """
    rows = [encoded(x) for x in xs]
    numbers = {name for x in xs for name, value in x.items() if not isinstance(value, str)}
    absent = {name: np.nan if name in numbers else 0.0 for row in rows for name in row}
    columns = sorted(absent.items())
    return np.array([[row.get(name, without) for name, without in columns] for row in rows])


class Retrained:
    """A classifier of scikit-learn that is fitted again whenever its labels are a third more.

    It has River's methods, for rows of a matrix. Each fit predicts all rows at once.

    Parameters
    ----------
    build
        Function that returns the classifier.
    X
        The features, shape (n, d).

    Examples
    --------
    >>> forest = Retrained(RETRAINED["random forest, retrained"], np.array([[0.0], [1.0], [0.9]]))
    >>> forest.learn_one(0, "hall")
    >>> forest.learn_one(1, "kitchen")
    >>> proba = forest.predict_proba_one(2)
    >>> max(proba, key=proba.get)
    'kitchen'

    """

    def __init__(self, build: Callable[[], Any], X: Array) -> None:
        self._build = build
        self._X = X
        self._rows: list[int] = []
        self._labels: list[str | None] = []
        self._due = 1
        self._classes: list[str] = []
        self._probas: Array | None = None

    def predict_proba_one(self, row: int) -> dict[str, float]:
        """Return the probabilities of the labels that the last fit has seen."""
        if self._probas is None:
            return {}
        return dict(zip(self._classes, self._probas[row].tolist(), strict=True))

    def learn_one(self, row: int, y: str | None) -> None:
        """Learn the label of a row, perhaps not at once."""
        from sklearn.dummy import DummyClassifier

        self._rows.append(row)
        self._labels.append(y)
        n = len(self._rows)
        if n < self._due:
            return
        model = self._build() if len(set(self._labels)) > 1 else DummyClassifier()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not converged, or a feature that is constant
            model.fit(self._X[self._rows], self._labels)
        self._classes = model.classes_.tolist()
        self._probas = model.predict_proba(self._X)
        self._due = max(n + 1, int(_MORE * n))
