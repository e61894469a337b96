"""Where people are, after Sec. 5.2 of the ISGP paper, from the public log ExtraSensory.

The paper's own log is not public. ExtraSensory has, for every minute of some days, statistics of
the sensors of a person's phone and watch, and where the person said to be. Places are reduced to
the paper's three: home, school or workplace, others. Minutes without a place are left out.

Of each person's minutes, 375 are taken, evenly over the log, in their order. They are cut into 25
pieces of 15; every fifth piece is left out to be predicted, so that hardly any moment left out is
next to one in the stream of 300. A person needs ten moments of each place.

"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._isgp_game import Condition, Fold
from benchmarks._logs import EXTRASENSORY, Labelled, MissingLogError, is_feature
from streamgp import SimulatedAnnotator

PLACES = ("home", "school or workplace", "others")
N_FOLDS = 5
N_MOMENTS = 375
_PIECE = 15
_FEWEST = 10

CONDITIONS = (Condition("recorded", 0.1), Condition("recorded", 0.4))
_NO_FEATURES = frozenset({"timestamp", "user", "device", "cv_fold", "activity", "label_source"})
_NUMBERS = {"home": 0, "school": 1, "workplace": 1}


@lru_cache(maxsize=1)
def people(data: Path) -> dict[int, list[Labelled]]:
    """Return the moments of every person who has enough of them.

    Parameters
    ----------
    data
        The data folder.

    Returns
    -------
    User -> features, missing ones left out, and number of the place, of each moment.

    Raises
    ------
    MissingLogError
        If the log is not there, or nothing to read it with.

    """
    path = data / EXTRASENSORY
    if not path.is_file():
        raise MissingLogError(f"ExtraSensory (no {EXTRASENSORY} in the data folder)")
    try:
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise MissingLogError(
            f"ExtraSensory (needs {error.name}; install the extra bench)"
        ) from None
    table = parquet.read_table(path, columns=["user", "place"])
    users, places = table["user"].to_numpy(), np.array(table["place"].to_pylist())
    taken = {int(user): _moments(users == user, places) for user in np.unique(users)}
    whole = parquet.read_table(path)
    found = {}
    for user, rows in taken.items():
        if rows is not None:
            found[user] = [_labelled(row) for row in whole.take(rows).to_pylist()]
    return found


def _moments(mine: Any, places: Any) -> Any:
    """Return the rows of a person's moments, None if there are too few of a place."""
    labelled = np.flatnonzero(mine & (places != "unknown"))
    if len(labelled) < N_MOMENTS:
        return None
    rows = labelled[np.linspace(0, len(labelled) - 1, N_MOMENTS).astype(int)]
    counts = Counter(_NUMBERS.get(place, 2) for place in places[rows].tolist())
    return rows if all(counts[k] >= _FEWEST for k in range(len(PLACES))) else None


def _labelled(row: dict[str, Any]) -> Labelled:
    place = row.pop("place")
    x = {name: float(v) for name, v in row.items() if is_feature(name, v, _NO_FEATURES)}
    return x, _NUMBERS.get(place, 2)


def fold(data: Path, condition: Condition, user: int, seed: int) -> Fold:
    """Return a person's stream and the moments left out, which depend on the seed."""
    moments = people(data)[user]
    out = [i // _PIECE % N_FOLDS == seed % N_FOLDS for i in range(len(moments))]
    return Fold(
        condition,
        seed,
        user,
        stream=[moment for moment, left_out in zip(moments, out, strict=True) if not left_out],
        test=[moment for moment, left_out in zip(moments, out, strict=True) if left_out],
    )


def annotator(played: Fold) -> SimulatedAnnotator:
    """Return who answers in a fold: wrong answers are one of the other two places."""
    return SimulatedAnnotator(played.condition.noise, classes=range(len(PLACES)), seed=played.seed)
