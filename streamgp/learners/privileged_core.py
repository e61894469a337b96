"""Classes with latent noise over dictionaries of features: names, scales and hyperparameters.

Settles which feature is which coordinate, which event is which example, when privileged features
are rescaled, when hyperparameters are fitted and changed, and what is learned.

"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from streamgp.base import Array, Features, Preset, State
from streamgp.features import Columns
from streamgp.gp.arrays import padded
from streamgp.gp.latent_noise.batch_ep import Fixed, UnconvergedError
from streamgp.gp.latent_noise.model import LabelledPoints, LabelModel, explain, fit_labels
from streamgp.gp.latent_noise.online_ep import OnlineLabels
from streamgp.gp.latent_noise.tilted_moments import flip_angles, tilted
from streamgp.kernels import Kernel
from streamgp.learners.gp_core import default_kernel
from streamgp.learners.numbering import EventNumbers
from streamgp.learners.privileged_inputs import (
    LearnedExample,
    PrivilegedSettings,
    Spaces,
    present_features,
)
from streamgp.scaling import RobustScaling

# --- Fitting of the hyperparameters; see `streamgp.gp.latent_noise.model`.

FIRST_FIT = 60
"""Number of examples at the first fit; the next ones follow at each doubling."""

MOST_EXAMPLES = 256
"""Number of latest examples that a fit uses with two classes; half as many with more."""

# A task of one class against all others tells of noise only if there are some of both.
_LEAST_OTHERS = 10
# Each further class costs as much as the first; rare ones tell little.
_MOST_TASKS = 4


class PrivilegedTuning:
    """State of the hyperparameter search of one classifier.

    Attributes
    ----------
    found
        The hyperparameters in use, None if they are the given ones.

    """

    # _due     number of examples at the next fit
    # _recent  the latest examples
    def __init__(self) -> None:
        self.found: State | None = None
        self._due = FIRST_FIT
        self._recent: deque[LearnedExample] = deque(maxlen=MOST_EXAMPLES)

    def note(self, example: LearnedExample) -> None:
        """Record an example."""
        self._recent.append(example)

    def replace(self, number: int, example: LearnedExample | None) -> None:
        """Record a new label of an example, or forget the example."""
        kept = (one if one.number != number else example for one in self._recent)
        self._recent = deque((one for one in kept if one is not None), maxlen=MOST_EXAMPLES)

    def is_due(self, n: int) -> bool:
        """Whether it is time for a fit, with `n` examples learned and not taken back."""
        return n >= self._due and tells_of_noise(self._recent)

    def search(
        self, prior: LabelModel, spaces: Spaces, columns: Columns, n: int, preset: Preset
    ) -> bool:
        """Fit the hyperparameters to the latest of `n` examples; return whether they changed.

        Parameters
        ----------
        prior
            The model that was given.
        spaces, columns
            The points of the examples.
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
        before, self.found = self.found, _found_in(model)
        return before != self.found

    def applied_to(self, prior: LabelModel) -> LabelModel:
        """Return the model in use, if `prior` is the given one."""
        return prior if self.found is None else _with(prior, self.found)

    def take(self, model: LabelModel, n: int) -> None:
        """Take over hyperparameters that were fitted elsewhere to `n` examples."""
        self.found = _found_in(model)
        self._due = 2 * n

    def state(self) -> State | None:
        """Return the state not determined by the examples, as plain JSON; None if there is none."""
        if self._due == FIRST_FIT:
            return None
        return {"due": self._due, "found": self.found}

    def load_state(self, state: State) -> None:
        """Restore a state; the examples follow."""
        self._due = int(state["due"])
        self.found = state["found"]


def _found_in(model: LabelModel) -> State:
    """Return the hyperparameters of a model as plain JSON values, kernels' as logarithms."""
    g = model.privileged_kernel
    return {
        "theta": model.kernel.theta.tolist(),
        "theta_privileged": None if g is None else g.theta.tolist(),
        "noise_mean": model.noise_mean,
    }


def _with(model: LabelModel, found: State) -> LabelModel:
    """Return a model with hyperparameters that were found; what was not learned stays."""
    g, theta = model.privileged_kernel, found["theta_privileged"]
    return LabelModel(
        kernel=model.kernel.with_theta(np.array(found["theta"], dtype=float)),
        privileged_kernel=g if g is None or theta is None else g.with_theta(np.array(theta)),
        noise_mean=float(found["noise_mean"]),
    )


def tells_of_noise(examples: Collection[LearnedExample]) -> bool:
    """Whether the labels are varied enough to learn hyperparameters from."""
    counts = Counter(example.label for example in examples)
    return len(examples) - max(counts.values(), default=0) >= _LEAST_OTHERS


def labelled(
    examples: Sequence[LearnedExample], labels: Sequence[int], spaces: Spaces, d: int
) -> LabelledPoints:
    """Return examples as arrays, with a task for each of the given classes."""
    y = np.array([example.label for example in examples])
    return LabelledPoints(
        X=np.array([padded(example.x, d) for example in examples]),
        X_privileged=np.array(
            [spaces.privileged_vector(example.privileged) for example in examples]
        ),
        known=np.array([example.privileged is not None for example in examples]),
        Y=np.array([np.where(y == label, 1.0, -1.0) for label in labels]),
    )


def fitted(
    prior: LabelModel,
    found: State | None,
    points: LabelledPoints,
    spaces: Spaces,
    columns: Columns,
    preset: Preset,
) -> tuple[LabelModel, tuple[Fixed, ...]]:
    """Fit hyperparameters, starting from those found before; raises UnconvergedError."""
    expected = spaces.bound(prior, columns)
    start = expected if found is None else _with(expected, found)
    return fit_labels(start, expected, points, preset=preset)


def _frequent(examples: Sequence[LearnedExample]) -> list[int]:
    """Return the most informative classes: the first of two, the most frequent of more."""
    counts = Counter(example.label for example in examples)
    if len(counts) <= 2:
        return [min(counts)]
    return sorted(sorted(counts, key=lambda label: (-counts[label], label))[:_MOST_TASKS])


# --- Two-class tasks about the same examples, and which of these are retained.
#
# With two classes, one task separates the first from the second; with three or more, each class has
# a task of its own, against all others.


class PrivilegedTasks:
    """Decision functions and log noise variances of classes, which are numbers here.

    Parameters
    ----------
    settings
        How the classifier was built.
    scaling
        How privileged features are scaled; it learns elsewhere.

    Attributes
    ----------
    examples
        Those retained, by slot: an example that is dropped leaves its slot to the next.
    n_labels
        Number of classes.
    spaces
        The points of the examples, None before the first.

    """

    # _tasks  posterior of each task
    def __init__(self, settings: PrivilegedSettings, scaling: RobustScaling) -> None:
        self._settings = settings
        self._scaling = scaling
        self.examples: list[LearnedExample] = []
        self.n_labels = 0
        self.spaces: Spaces | None = None
        self._tasks: list[OnlineLabels] = []

    # --- predicting

    def log_probabilities(self, x: Array) -> list[float]:
        """Log probability of each class at a point, over the noise of the label.

        `E[Phi(m / sqrt(v + exp g))]` with the prior of `g` (Eq. 9): nothing privileged is known of
        a new event. With three or more classes, that of each against all others.
        """
        spaces, n = self.spaces, self.n_labels
        if spaces is None:
            return [math.log(0.5)] * n
        by_f, by_g = spaces.covariances_with(x), spaces.covariances_with_privileged(None)
        y, found = np.ones(n), np.array([task.f.predict(*by_f) for task in self._tasks])
        if n == 2:
            # Not 1 - p of the first: far from everything p is one half up to rounding, and which of
            # the two is more probable would depend on the nodes of the integral over the noise.
            y[1], found = -1.0, np.repeat(found, 2, axis=0)
        means, variances = np.zeros((2, n)), np.zeros((2, n))
        means[0], variances[0] = found.T
        means[1], variances[1] = spaces.model.noise_mean, 0.0 if by_g is None else by_g[1]
        return tilted(y, means, variances).log_z.tolist()  # type: ignore[no-any-return]

    def noise_variance(self, privileged: Features | None) -> float:
        """Variance of known noise that flips as many labels, on average over tasks.

        Unlike `E[exp g]` it is finite and small where little is known of `g`.
        """
        spaces = self.spaces
        if spaces is None:
            return math.exp(self._settings.noise_mean)
        by_g = spaces.covariances_with_privileged(privileged)
        if by_g is None:
            return math.exp(spaces.model.noise_mean)
        found = [task.g.predict(*by_g) for task in self._tasks if task.g is not None]
        means, variances = np.array(found).T
        return math.tan(flip_angles(means, variances).mean()) ** 2

    # --- learning

    def add_label(self, model: LabelModel | None, columns: Columns) -> None:
        """Add a class that has had no example: its task counts every label as "no"."""
        n = self.n_labels
        self.n_labels = n + 1
        if n == 2:
            # The second class was the other side of the first one's task.
            self._tasks.append(self._tasks[0].mirrored())
        if n != 1:
            self._tasks.append(self._relearned([n], model, columns)[1][0])

    def learn(self, example: LearnedExample, slot: int | None, columns: Columns) -> None:
        """Learn the class of an example, at the end or in a free slot."""
        self._place(example, slot)
        if self.spaces is not None:
            self._teach(self.spaces, self._tasks, self.yes(), example, columns, slot)

    def learn_anew(
        self,
        example: LearnedExample | None,
        slot: int | None,
        model: LabelModel | None,
        columns: Columns,
    ) -> None:
        """Learn all retained examples again, and one more if given, in the order of their numbers.

        For a new model, or new scales of privileged features.
        """
        if example is not None:
            self._place(example, slot)
        self.examples.sort(key=lambda example: example.number)
        self.spaces, self._tasks = self._relearned(self.yes(), model, columns)

    def adopt(self, spaces: Spaces, fixed: Sequence[Fixed], Y: Array) -> None:
        """Continue from a batch posterior of all examples, with labels (m, n) of the tasks."""
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

    def relabel(self, i: int, label: int) -> LearnedExample:
        """Change the class of an example, and return the changed example."""
        self.examples[i] = example = replace(self.examples[i], label=label)
        for task, yes in zip(self._tasks, self.yes(), strict=True):
            task.relabel(i, _sign(example, yes))
        return example

    # --- dropping examples

    def least(self) -> int:
        """Return the slot of the least informative example, of those that can be divided out."""
        tells: Array = np.sum([task.tells() for task in self._tasks], axis=0)
        order: list[int] = np.argsort(tells, kind="stable").tolist()
        return next((i for i in order if self._is_divisible(i)), order[0])

    def divide_out(self, i: int) -> bool:
        """Divide the labels of an example out; return False if no posterior would remain."""
        divisible = self._is_divisible(i)
        if divisible:
            for task in self._tasks:
                task.divide_out(i)
        return divisible

    def close(self, i: int) -> None:
        """Remove the slot of an example that was divided out; later ones move up."""
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
        """Return the points of the examples under a model, without learning them."""
        spaces = Spaces(model, self._scaling)
        for example in self.examples:
            spaces.add(columns, example)
        return spaces

    def _place(self, example: LearnedExample, slot: int | None) -> None:
        i = len(self.examples) if slot is None else slot
        self.examples[i : i + 1] = [example]

    def _relearned(
        self, yes: Sequence[int], model: LabelModel | None, columns: Columns
    ) -> tuple[Spaces | None, list[OnlineLabels]]:
        """Return points, and tasks that have learned the examples in the order of their slots."""
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
        for example in self.examples:
            self._teach(spaces, tasks, yes, example, columns)
        return spaces, tasks

    @staticmethod
    def _teach(
        spaces: Spaces,
        tasks: Sequence[OnlineLabels],
        yes: Sequence[int],
        example: LearnedExample,
        columns: Columns,
        slot: int | None = None,
    ) -> None:
        by_f, by_g = spaces.add(columns, example, slot)
        for task, label in zip(tasks, yes, strict=True):
            task.learn(by_f, by_g, _sign(example, label), slot)

    def _is_divisible(self, i: int) -> bool:
        return all(task.is_divisible(i) for task in self._tasks)


def _sign(example: LearnedExample, yes: int) -> float:
    return 1.0 if example.label == yes else -1.0


WARM_UP = 60
"""Number of first examples with privileged features by which these are scaled."""


class PrivilegedCore:
    """Core of a classifier with privileged noise; classes are numbers here.

    As long as all examples are retained, it is at any time bitwise equal to a new one with the same
    hyperparameters that has learned the same examples in their order.

    Parameters
    ----------
    settings
        How the classifier was built.

    """

    # _columns   which feature is which coordinate
    # _scaling   of privileged features
    # _kernels   as given, or the defaults that replace None from the first example that has
    #            features, and privileged features; None before
    # _tuning    hyperparameters
    # _tasks     what was learned
    # _events    which event is which example
    def __init__(self, settings: PrivilegedSettings) -> None:
        self._settings = settings
        self._columns = Columns()
        self._scaling = RobustScaling(WARM_UP)
        self._kernels: tuple[Kernel | None, Kernel | None] = (settings.kernel, None)
        self._tuning = PrivilegedTuning()
        self._tasks = PrivilegedTasks(settings, self._scaling)
        self._events = EventNumbers()

    @property
    def n_learned(self) -> int:
        """Number of examples learned and not forgotten, whether still retained or not."""
        return self._events.n

    @property
    def retains_all(self) -> bool:
        """Whether no example is ever dropped."""
        return self._settings.max_points is None

    @property
    def model(self) -> LabelModel | None:
        """Kernels and mean of the log noise variance in use, None before the first example."""
        spaces = self._tasks.spaces
        return None if spaces is None else spaces.bound(spaces.model, self._columns)

    def log_probabilities(self, x: Features) -> list[float]:
        """Log probability of each class: see `PrivilegedTasks`."""
        return self._tasks.log_probabilities(self._columns.vector(x))

    def noise_variance(self, privileged: Features | None) -> float:
        """Noise variance of a label: see `PrivilegedTasks`."""
        return self._tasks.noise_variance(present_features(privileged))

    # --- learning

    def learn(
        self, x: Features, label: int, privileged: Features | None, event_id: str | None
    ) -> None:
        """Learn the class of an example; a new class has the next number.

        If the example is refused, nothing changes.
        """
        tasks = self._tasks
        example, renewed = self._note(x, label, privileged, event_id)
        if label == tasks.n_labels:
            self.add_label()
        slot = self._room()
        if renewed or tasks.spaces is None:
            tasks.learn_anew(example, slot, self._model(), self._columns)
        else:
            tasks.learn(example, slot, self._columns)
        self._tune()

    def learn_log(
        self, log: Iterable[tuple[Features, int, Features | None, str | None]], n_labels: int
    ) -> None:
        """Learn features, classes, privileged features and event ids of many examples at once.

        For an object that has learned nothing; if an example is refused, its state is undefined.

        Raises
        ------
        UnconvergedError
            If expectation propagation finds no explanation of the labels.

        """
        tasks = self._tasks
        tasks.n_labels = n_labels
        for one in log:
            tasks.examples.append(self._note(*one)[0])
        prior, columns = self._prior(), self._columns
        if prior is None:
            return
        spaces = tasks.placed(prior, columns)
        points = labelled(tasks.examples, tasks.yes(), spaces, len(columns))
        if self._settings.learn_hyperparameters and tells_of_noise(tasks.examples):
            model, fixed = fitted(prior, None, points, spaces, columns, self._settings.preset)
            self._tuning.take(model, len(tasks.examples))
            spaces = tasks.placed(self._tuning.applied_to(prior), columns)
        else:
            fixed = explain(spaces.bound(prior, columns), points)
        tasks.adopt(spaces, fixed, points.Y)
        most = self._settings.max_points
        while most is not None and len(tasks.examples) > most:
            self._remove(tasks.least())

    def add_label(self) -> None:
        """Add a class that has had no example."""
        self._tasks.add_label(self._model(), self._columns)

    def check_retained(self, event_id: str) -> None:
        """Raise KeyError if an example is not retained."""
        self._events.number(event_id)

    def relabel(self, event_id: str, label: int) -> None:
        """Change the class of an example. Raises KeyError if it is not retained."""
        example = self._tasks.relabel(self._index(event_id), label)
        self._tuning.replace(example.number, example)

    def forget(self, event_id: str) -> None:
        """Forget an example. Raises KeyError if it is not retained."""
        i = self._index(event_id)
        self._events.n_taken_back += 1
        self._tuning.replace(self._tasks.examples[i].number, None)
        self._remove(i)

    def state(self) -> State | None:
        """Return the state not determined by the examples, as plain JSON; None if there is none."""
        return self._tuning.state()

    def load_state(self, state: State | None) -> None:
        """Restore a state; the examples are learned after that."""
        if state is not None:
            self._tuning.load_state(state)

    # --- inside

    def _note(
        self, x: Features, label: int, privileged: Features | None, event_id: str | None
    ) -> tuple[LearnedExample, bool]:
        """Make an example of the input; also return whether privileged features were rescaled.

        If it is refused, nothing changes.
        """
        self._events.check_new(event_id)
        columns = self._columns.widened(x)
        vector = columns.vector(x)
        kernel, privileged_kernel = self._kernels
        kernel = kernel or default_kernel(len(columns))
        if self._tasks.spaces is None:
            kernel.bound(columns).embed(vector)
        else:
            self._tasks.spaces.check(columns, vector)
        known = present_features(privileged)
        # Nothing is refused from here on.
        renewed = known is not None and self._scaling.observe(known)
        if known is not None and privileged_kernel is None:
            d = len(self._scaling.transform(known))
            privileged_kernel = self._settings.privileged_kernel or default_kernel(d)
        self._columns, self._kernels = columns, (kernel, privileged_kernel)
        number = self._events.append(event_id)
        example = LearnedExample(number=number, x=vector, privileged=known, label=label)
        self._tuning.note(example)
        return example, renewed

    def _prior(self) -> LabelModel | None:
        """Return the prior model, None before the first example."""
        kernel, privileged_kernel = self._kernels
        if kernel is None:
            return None
        return LabelModel(
            kernel=kernel,
            privileged_kernel=privileged_kernel,
            noise_mean=self._settings.noise_mean,
        )

    def _model(self) -> LabelModel | None:
        prior = self._prior()
        return None if prior is None else self._tuning.applied_to(prior)

    def _tune(self) -> None:
        tuning, prior, spaces = self._tuning, self._prior(), self._tasks.spaces
        if not self._settings.learn_hyperparameters or prior is None or spaces is None:
            return
        n, preset = self.n_learned, self._settings.preset
        if tuning.is_due(n) and tuning.search(prior, spaces, self._columns, n, preset):
            self._tasks.learn_anew(None, None, self._model(), self._columns)

    def _room(self) -> int | None:
        """Drop an example if there is no room; return its slot, None for the end."""
        tasks, most = self._tasks, self._settings.max_points
        if most is None or len(tasks.examples) < most:
            return None
        i = tasks.least()
        if tasks.divide_out(i):
            self._events.drop([tasks.examples[i].number])
            return i
        self._remove(i)
        return None

    def _remove(self, i: int) -> None:
        tasks = self._tasks
        divided = tasks.divide_out(i)
        self._events.drop([tasks.examples[i].number])
        tasks.close(i)
        if not divided:
            tasks.learn_anew(None, None, self._model(), self._columns)

    def _index(self, event_id: str) -> int:
        number = self._events.number(event_id)
        examples = enumerate(self._tasks.examples)
        return next(i for i, example in examples if example.number == number)
