"""A recording as arrays, as a learner behind a scaling sees it.

Scales change a few times: whenever the number of events has doubled during the warm-up, and when a
late feature joins. A stage is what lies between two changes; where one begins, the examples before
it are scaled anew. All that follows from the events alone, so it is done once for many learners.

"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from streamgp.base import Array, Features, Label, State
from streamgp.cli.tune.recording import Recorded
from streamgp.features import Columns
from streamgp.query.arguments import scaling_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The examples up to the next change of scale.

    Parameters
    ----------
    X
        Scaled features of all examples so far, shape (n, d).
    first
        Number of the first example that is predicted in this stage.
    columns
        What the columns of X are.
    n_first
        Number of features of the very first example, on which the default kernel depends.

    """

    X: Array
    first: int
    columns: Columns
    n_first: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """Everything there is to predict of one key.

    Parameters
    ----------
    stages
        In their order.
    Y
        Indicators of the labels that were given, shape (n, m).
    labels
        The labels given, in order of appearance: those of the columns of Y.
    n_known
        How many of them had been given before each example.
    truths
        The true label of each example.

    """

    stages: Sequence[Stage]
    Y: Array
    labels: Sequence[Label]
    n_known: Sequence[int]
    truths: Sequence[Label | None]


def staged(events: Sequence[Recorded], warm_up: int) -> Stages:
    """Return the events of one key in stages."""
    examples = [event for event in events if event.given is not None]
    positions: dict[Label, int] = {}
    n_known = []
    Y = np.zeros((len(examples), len({event.given for event in examples})))
    for row, event in zip(Y, examples, strict=True):
        assert event.given is not None
        n_known.append(len(positions))
        row[positions.setdefault(event.given, len(positions))] = 1.0
    return Stages(
        stages=list(_stages(events, examples, warm_up)),
        Y=Y,
        labels=list(positions),
        n_known=n_known,
        truths=[event.truth for event in examples],
    )


def _stages(
    events: Sequence[Recorded], examples: Sequence[Recorded], warm_up: int
) -> Iterator[Stage]:
    changes = [*_changes(events, warm_up), (len(examples), {})]
    for (first, state), (last, _) in pairwise(changes):
        if first == last:
            continue
        scaling = scaling_for([], warm_up)
        scaling.load_state(state)
        xs = [scaling.transform(example.x) for example in examples[:last]]
        yield _stage(xs, first)


def _changes(events: Sequence[Recorded], warm_up: int) -> list[tuple[int, State]]:
    """Return at how many examples the scales changed, and to what."""
    scaling = scaling_for([], warm_up)
    changes: list[tuple[int, State]] = [(0, scaling.state())]
    n_examples = 0
    for event in events:
        if scaling.observe(event.x):
            changes.append((n_examples, scaling.state()))
        n_examples += event.given is not None
    return changes


def _stage(xs: Sequence[Features], first: int) -> Stage:
    columns = Columns().widened(xs[0])
    n_first = len(columns)
    for x in xs:
        columns = columns.widened(x)
    X = np.array([columns.vector(x) for x in xs]).reshape(len(xs), len(columns))
    return Stage(X=X, first=first, columns=columns, n_first=n_first)
