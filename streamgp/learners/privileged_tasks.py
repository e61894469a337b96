"""Two-class tasks about the same examples, and which of these are retained.

Of two classes one task tells the first from the second; from three on each class has a task of its
own, against all others. What examples are called, and with which hyper-parameters they are taught,
is settled in `privileged_core.py`.

"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from streamgp.base import Array, Features
from streamgp.features import Columns
from streamgp.gp.ep import Fixed
from streamgp.gp.label_model import LabelModel
from streamgp.gp.online_ep import OnlineLabels
from streamgp.gp.tilted import tilted
from streamgp.learners.privileged_settings import PrivilegedSettings
from streamgp.learners.privileged_spaces import Spaces, Taught
from streamgp.scaling import RobustScaling

# Labels of more noise tell nothing anyway; the variance stays finite.
_LARGEST_LOG = 300.0


class PrivilegedTasks:
    """Decision functions and log noise variances of classes, which are numbers here.

    Parameters
    ----------
    settings
        How the classifier was built.
    scaling
        How privileged features are scaled; it is not taught here.

    Attributes
    ----------
    examples
        Those that are retained, by their slot: one that is given up leaves it to the next.
    n_labels
        Number of classes.
    spaces
        Where the examples are, None before the first.

    """

    # _tasks  what is believed of the examples
    def __init__(self, settings: PrivilegedSettings, scaling: RobustScaling) -> None:
        self._settings = settings
        self._scaling = scaling
        self.examples: list[Taught] = []
        self.n_labels = 0
        self.spaces: Spaces | None = None
        self._tasks: list[OnlineLabels] = []

    # --- predicting

    def log_probabilities(self, x: Array) -> list[float]:
        """Log probability of "yes" for each task at a point, whatever the noise of the label.

        `E[Phi(m / sqrt(v + exp g))]` with `g` as it is beforehand (Eq. 9): of a new event nothing
        privileged is known.
        """
        spaces = self.spaces
        if spaces is None:
            return [math.log(0.5)] * len(self._tasks)
        by_f, by_g = spaces.seen_from(x), spaces.seen_from_privileged(None)
        found = np.array([task.f.predict(*by_f) for task in self._tasks])
        means, variances = np.zeros((2, len(found))), np.zeros((2, len(found)))
        means[0], variances[0] = found.T
        means[1], variances[1] = spaces.model.noise_mean, 0.0 if by_g is None else by_g[1]
        return tilted(np.ones(len(found)), means, variances).log_z.tolist()  # type: ignore[no-any-return]

    def noise_variance(self, privileged: Features | None) -> float:
        """Expected noise variance `E[exp g]` of a label; the mean over tasks."""
        spaces = self.spaces
        if spaces is None:
            return math.exp(self._settings.noise_mean)
        by_g = spaces.seen_from_privileged(privileged)
        if by_g is None:
            return math.exp(spaces.model.noise_mean)
        found = [task.g.predict(*by_g) for task in self._tasks if task.g is not None]
        logs = [min(mean + 0.5 * variance, _LARGEST_LOG) for mean, variance in found]
        return sum(map(math.exp, logs)) / len(found)

    # --- learning

    def add_label(self, model: LabelModel | None, columns: Columns) -> None:
        """Add a class of which there was no example: it has been told "no" at every label."""
        n = self.n_labels
        self.n_labels = n + 1
        if n == 2:
            # The second class was the other side of the first one's task.
            self._tasks.append(self._tasks[0].mirrored())
        if n != 1:
            self._tasks.append(self._taught_anew([n], model, columns)[1][0])

    def learn(self, taught: Taught, slot: int | None, columns: Columns) -> None:
        """Learn the class of an example, at the end or in a slot that was left."""
        self._place(taught, slot)
        if self.spaces is not None:
            self._teach(self.spaces, self._tasks, self.yes(), taught, columns, slot)

    def learn_anew(
        self,
        taught: Taught | None,
        slot: int | None,
        model: LabelModel | None,
        columns: Columns,
    ) -> None:
        """Learn all retained examples, and one more if there is one, in the order of their numbers.

        With another model, or other scales of privileged features.
        """
        if taught is not None:
            self._place(taught, slot)
        self.examples.sort(key=lambda taught: taught.number)
        self.spaces, self._tasks = self._taught_anew(self.yes(), model, columns)

    def adopt(self, spaces: Spaces, fixed: Sequence[Fixed], Y: Array) -> None:
        """Go on from what was found for all examples at once, with labels (m, n) of the tasks."""
        self.spaces = spaces
        self._tasks = [
            OnlineLabels.of(
                one,
                y,
                spaces.model.noise_mean,
                has_noise_process=spaces.model.privileged_kernel is not None,
                n_replays=self._settings.n_replays,
            )
            for one, y in zip(fixed, Y, strict=True)
        ]

    def relabel(self, i: int, label: int) -> Taught:
        """Change the class of an example, and return the example with it."""
        self.examples[i] = taught = replace(self.examples[i], label=label)
        for task, yes in zip(self._tasks, self.yes(), strict=True):
            task.relabel(i, _told(taught, yes))
        return taught

    # --- giving up

    def least(self) -> int:
        """Return the slot of the example that tells least, of those that can be divided out."""
        tells: Array = np.sum([task.tells() for task in self._tasks], axis=0)
        order: list[int] = np.argsort(tells, kind="stable").tolist()
        return next((i for i in order if self._is_divisible(i)), order[0])

    def divide_out(self, i: int) -> bool:
        """Divide the labels of an example out; False if the others leave no posterior then."""
        divisible = self._is_divisible(i)
        if divisible:
            for task in self._tasks:
                task.divide_out(i)
        return divisible

    def close(self, i: int) -> None:
        """Take the slot of an example away that was divided out; later ones move up."""
        for task in self._tasks:
            task.drop(i)
        if self.spaces is not None:
            self.spaces.drop(i)
        del self.examples[i]

    # --- inside

    def yes(self) -> list[int]:
        """Return the class that is "yes" in each task."""
        return list(range(self.n_labels if self.n_labels > 2 else min(self.n_labels, 1)))

    def placed(self, model: LabelModel, columns: Columns) -> Spaces:
        """Return where the examples are with a model, without learning them."""
        spaces = Spaces(model, self._scaling)
        for taught in self.examples:
            spaces.add(columns, taught)
        return spaces

    def _place(self, taught: Taught, slot: int | None) -> None:
        i = len(self.examples) if slot is None else slot
        self.examples[i : i + 1] = [taught]

    def _taught_anew(
        self, yes: Sequence[int], model: LabelModel | None, columns: Columns
    ) -> tuple[Spaces | None, list[OnlineLabels]]:
        """Teach tasks the examples in the order of their slots."""
        tasks = [
            OnlineLabels(
                self._settings.noise_mean if model is None else model.noise_mean,
                has_noise_process=model is not None and model.privileged_kernel is not None,
                n_replays=self._settings.n_replays,
                most=self._settings.max_points,
            )
            for _ in yes
        ]
        if model is None or not self.examples:
            return None, tasks
        spaces = Spaces(model, self._scaling)
        for taught in self.examples:
            self._teach(spaces, tasks, yes, taught, columns)
        return spaces, tasks

    @staticmethod
    def _teach(
        spaces: Spaces,
        tasks: Sequence[OnlineLabels],
        yes: Sequence[int],
        taught: Taught,
        columns: Columns,
        slot: int | None = None,
    ) -> None:
        by_f, by_g = spaces.add(columns, taught, slot)
        for task, label in zip(tasks, yes, strict=True):
            task.learn(by_f, by_g, _told(taught, label), slot)

    def _is_divisible(self, i: int) -> bool:
        return all(task.is_divisible(i) for task in self._tasks)


def _told(taught: Taught, yes: int) -> float:
    return 1.0 if taught.label == yes else -1.0
