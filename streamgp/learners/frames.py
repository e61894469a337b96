"""Between data frames and the dictionaries that learners know; pandas is the caller's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from streamgp.base import Features

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
