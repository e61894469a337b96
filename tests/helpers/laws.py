"""Numbers of examples, and rows by day, of laws that cost more than others."""

import pytest
from hypothesis import settings

BY_DAY = 15  # the examples of the profile "ci"


def examples(n: int) -> settings:
    """Return settings that draw `n` examples by day, more by night, fewer with `-m quick`."""
    drawn = settings.default.max_examples
    if drawn < BY_DAY:
        return settings(max_examples=max(1, n * drawn // BY_DAY))
    return settings(max_examples=max(n, n * drawn // 25))


def in_turns(names, models, turn):
    """Return a mark for a row of each model: every second one by day, the others by night.

    Parameters
    ----------
    names
        Names of the arguments.
    models
        The models by name; each a tuple if there are several arguments.
    turn
        0 or 1: which models are the first, third, ... by day. Of two laws that hold for the same
        models, one has 0 and the other 1, so that each model is seen by day.

    """
    rows = [
        pytest.param(
            *(made if isinstance(made, tuple) else (made,)),
            id=name,
            marks=() if n % 2 == turn else pytest.mark.nightly,
        )
        for n, (name, made) in enumerate(models.items())
    ]
    return pytest.mark.parametrize(names, rows)
