"""Fitting of the hyperparameters of a classifier with privileged noise.

How that is done is told in `streamgp.gp.latent_noise.fit`.

"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Sequence

import numpy as np

from streamgp.base import Preset, State
from streamgp.features import Columns
from streamgp.gp.latent_noise.batch_ep import Fixed, UnconvergedError
from streamgp.gp.latent_noise.fit import fit_labels
from streamgp.gp.latent_noise.model import LabelledPoints, LabelModel
from streamgp.gp.training_set import padded
from streamgp.learners.privileged_inputs import Found, Spaces, Taught

FIRST_FIT = 60
"""Number of examples at the first fit; from then on whenever there are twice as many."""

MOST_EXAMPLES = 256
"""A fit looks at the latest examples, so many of two classes, and half of them of more."""

# A label against all others tells of noise only if there are some of both kinds.
_LEAST_OTHERS = 10
# Each class costs as much as the first; rare ones tell little.
_MOST_TASKS = 4


class PrivilegedTuning:
    """State of the hyperparameter search of one classifier.

    Attributes
    ----------
    found
        Those in use, None if they are those that were given.

    """

    # _due     number of examples at the next fit
    # _recent  the latest examples
    def __init__(self) -> None:
        self.found: Found | None = None
        self._due = FIRST_FIT
        self._recent: deque[Taught] = deque(maxlen=MOST_EXAMPLES)

    def note(self, taught: Taught) -> None:
        """Take note of an example."""
        self._recent.append(taught)

    def replace(self, number: int, taught: Taught | None) -> None:
        """Take note of another label of an example, or forget it."""
        kept = (one if one.number != number else taught for one in self._recent)
        self._recent = deque((one for one in kept if one is not None), maxlen=MOST_EXAMPLES)

    def is_due(self, n: int) -> bool:
        """Whether it is time for a fit, with so many examples learned and not taken back."""
        return n >= self._due and tells_of_noise(self._recent)

    def search(
        self, prior: LabelModel, spaces: Spaces, columns: Columns, n: int, preset: Preset
    ) -> bool:
        """Fit the hyper-parameters to the latest of `n` examples; whether others were found.

        Parameters
        ----------
        prior
            The model that was given.
        spaces, columns
            Where examples are.
        n
            Number of examples.
        preset
            As for `fit_labels`.

        """
        self._due = 2 * n
        recent = list(self._recent)
        labels = _frequent(recent)
        if len(labels) > 1:
            recent = recent[-MOST_EXAMPLES // 2 :]
        points = labelled(recent, labels, spaces, len(columns))
        try:
            model, _ = fitted(prior, self.found, points, spaces, columns, preset)
        except UnconvergedError:
            return False
        before, self.found = self.found, Found.of(model)
        return before is None or before.state() != self.found.state()

    def applied_to(self, prior: LabelModel) -> LabelModel:
        """Return the model in use, of which `prior` was given."""
        return prior if self.found is None else self.found.applied_to(prior)

    def take(self, model: LabelModel, n: int) -> None:
        """Take over what was found elsewhere, for `n` examples."""
        self.found = Found.of(model)
        self._due = 2 * n

    def state(self) -> State | None:
        """Return what is no function of the examples, as plain JSON values; None for nothing."""
        if self._due == FIRST_FIT:
            return None
        return {"due": self._due, "found": None if self.found is None else self.found.state()}

    def load_state(self, state: State) -> None:
        """Become what the state was taken from; the examples follow."""
        self._due = int(state["due"])
        self.found = None if state["found"] is None else Found.from_state(state["found"])


def tells_of_noise(examples: Collection[Taught]) -> bool:
    """Whether hyper-parameters can be learned from labels: there are some of more than one kind."""
    counts = Counter(taught.label for taught in examples)
    return len(examples) - max(counts.values(), default=0) >= _LEAST_OTHERS


def labelled(
    examples: Sequence[Taught], labels: Sequence[int], spaces: Spaces, d: int
) -> LabelledPoints:
    """Return examples as arrays, with a task for each of some classes."""
    y = np.array([taught.label for taught in examples])
    return LabelledPoints(
        X=np.array([padded(taught.x, d) for taught in examples]),
        X_privileged=np.array([spaces.privileged_vector(taught.privileged) for taught in examples]),
        known=np.array([taught.privileged is not None for taught in examples]),
        Y=np.array([np.where(y == label, 1.0, -1.0) for label in labels]),
    )


def fitted(
    prior: LabelModel,
    found: Found | None,
    points: LabelledPoints,
    spaces: Spaces,
    columns: Columns,
    preset: Preset,
) -> tuple[LabelModel, tuple[Fixed, ...]]:
    """Fit hyper-parameters, from those found before on; raises UnconvergedError."""
    expected = spaces.bound(prior, columns)
    start = expected if found is None else found.applied_to(expected)
    return fit_labels(start, expected, points, preset=preset)


def _frequent(examples: Sequence[Taught]) -> list[int]:
    """Return the classes that tell most: of two the first, of more the most frequent ones."""
    counts = Counter(taught.label for taught in examples)
    if len(counts) <= 2:
        return [min(counts)]
    return sorted(sorted(counts, key=lambda label: (-counts[label], label))[:_MOST_TASKS])
