"""Between data frames and the dictionaries that learners know; pandas is the caller's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from river import base
from river.active.base import ActiveLearningClassifier

from streamgp.base import Features
from streamgp.common.feature_values import is_number

if TYPE_CHECKING:
    import pandas as pd


def feature_rows(X: pd.DataFrame) -> list[Features]:
    """Return the rows of a data frame as dictionaries of features, each with its column's type."""
    names = X.columns.tolist()
    columns: list[list[Any]] = [X.iloc[:, j].tolist() for j in range(len(names))]
    if not columns:
        return [{} for _ in range(len(X))]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def frame_like(X: pd.DataFrame, columns: dict[Any, Sequence[Any]]) -> pd.DataFrame:
    """Return a data frame with the rows of another one."""
    import pandas as pd  # whoever has a frame has it

    return pd.DataFrame(columns, index=X.index)


def series_like(X: pd.DataFrame, values: Sequence[Any]) -> pd.Series:
    """Return one value for each row of a data frame."""
    import pandas as pd

    return pd.Series(values, index=X.index, dtype=None if values else object)


# --- River classifiers that are plugged into something of ours: taken apart, and checked.


def split(model: Any, checked: Callable[[Any], Any]) -> tuple[list[Any], Any]:
    """Separate the transformers of a pipeline from the estimator at its end, which is checked."""
    from river.compose import Pipeline

    steps = list(model.steps.values()) if isinstance(model, Pipeline) else [model]
    *transformers, learner = steps
    return transformers, checked(learner)


def as_classifier(learner: Any) -> Any:
    """Return a classifier that can be wrapped; refuse anything else."""
    if not isinstance(learner, base.Classifier) or isinstance(learner, ActiveLearningClassifier):
        raise TypeError(
            "model must be a River classifier that is not an active learner itself, or a pipeline "
            f"that ends in one, got {type(learner).__name__}"
        )
    if type(learner).predict_proba_one is base.Classifier.predict_proba_one:
        raise TypeError(
            f"model must predict probabilities, which {type(learner).__name__} does not; "
            "take one with predict_proba_one"
        )
    return learner


# --- Numbers that are learned, checked.


def checked_target(y: object, largest: float = math.inf) -> float:
    """Return a target as a float.

    Parameters
    ----------
    y
        The target.
    largest
        How far it may be from 0.

    Raises
    ------
    TypeError
        If it is no number.
    ValueError
        If it is not finite, or too large.

    """
    if not is_number(y):
        raise TypeError(f"y must be a number, got {y!r}; do not learn events without a target")
    value = float(y)  # type: ignore[arg-type]
    if not (math.isfinite(value) and abs(value) <= largest):
        bound = "" if largest == math.inf else f" and at most {largest:.0e}"
        raise ValueError(f"y must be finite{bound}, got {y!r}")
    return value


# --- Learners that keep no examples: what their wrapper may ask of them.


class Unretained:
    """A learner whose knowledge of an example does not depend on which others it keeps."""

    @property
    def is_exact(self) -> bool:
        """Whether an example can be relabelled without a trace: no, since none is retained."""
        return False

    @property
    def retains_all(self) -> bool:
        """Whether no example is ever given up, whatever follows."""
        return True
