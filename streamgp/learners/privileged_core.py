"""Classes with latent noise over dictionaries of features: names, scales and hyper-parameters.

Which feature is which coordinate, which event is which example, when privileged features are scaled
anew and when hyper-parameters change is settled here; what is learned, in `privileged_tasks.py`.

"""

from __future__ import annotations

from collections.abc import Iterable

from streamgp.base import Features, State
from streamgp.features import Columns
from streamgp.gp.label_model import LabelModel, explain
from streamgp.kernels import Kernel
from streamgp.learners.privileged_settings import PrivilegedSettings
from streamgp.learners.privileged_spaces import Taught, given
from streamgp.learners.privileged_tasks import PrivilegedTasks
from streamgp.learners.privileged_tuning import PrivilegedTuning, fitted, labelled, tells_of_noise
from streamgp.scaling import RobustScaling

WARM_UP = 60
"""Privileged features are scaled by the first examples that have some, so many of them."""


class PrivilegedCore:
    """What a classifier with privileged noise has learned, of classes that are numbers here.

    At any time it is, to the last bit, what a new one with the same hyper-parameters becomes that
    is taught the same examples in their order, as long as all of them are retained.

    Parameters
    ----------
    settings
        How the classifier was built.

    """

    # _columns   which feature is which coordinate
    # _scaling   of privileged features
    # _kernels   as they were given, or what stands for None since the first example that has
    #            features, and privileged features; None before
    # _tuning    hyper-parameters
    # _tasks     what was learned
    # _numbers   number of each retained example by event id; _events is its inverse
    # _n_appended, _n_taken_back  examples ever, and those of them that count as never learned
    def __init__(self, settings: PrivilegedSettings) -> None:
        self._settings = settings
        self._columns = Columns()
        self._scaling = RobustScaling(WARM_UP)
        self._kernels: tuple[Kernel | None, Kernel | None] = (settings.kernel, None)
        self._tuning = PrivilegedTuning()
        self._tasks = PrivilegedTasks(settings, self._scaling)
        self._numbers: dict[str, int] = {}
        self._events: dict[int, str] = {}
        self._n_appended = 0
        self._n_taken_back = 0

    @property
    def n_learned(self) -> int:
        """Number of examples learned and not forgotten, whether they are still retained or not."""
        return self._n_appended - self._n_taken_back

    @property
    def retains_all(self) -> bool:
        """Whether no example is ever given up."""
        return self._settings.max_points is None

    @property
    def model(self) -> LabelModel | None:
        """Kernels and mean of the log noise variance in use, None before the first example."""
        spaces = self._tasks.spaces
        return None if spaces is None else spaces.bound(spaces.model, self._columns)

    def log_probabilities(self, x: Features) -> list[float]:
        """Log probability of "yes" for each task: see `PrivilegedTasks`."""
        return self._tasks.log_probabilities(self._columns.vector(x))

    def noise_variance(self, privileged: Features | None) -> float:
        """Expected noise variance `E[exp g]` of a label."""
        return self._tasks.noise_variance(given(privileged))

    # --- learning

    def learn(
        self, x: Features, label: int, privileged: Features | None, event_id: str | None
    ) -> None:
        """Learn the class of an example, the next number for a new one.

        If the example is refused, nothing changes.
        """
        tasks = self._tasks
        taught, renewed = self._note(x, label, privileged, event_id)
        if label == tasks.n_labels:
            self.add_label()
        slot = self._room()
        if renewed or tasks.spaces is None:
            tasks.learn_anew(taught, slot, self._model(), self._columns)
        else:
            tasks.learn(taught, slot, self._columns)
        self._tune()

    def learn_log(
        self, log: Iterable[tuple[Features, int, Features | None, str | None]], n_labels: int
    ) -> None:
        """Learn features, classes, privileged features and event ids of many examples at once.

        Nothing has been learned yet; if an example is refused, nothing can be said of this object.

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
        """Add a class of which there was no example."""
        self._tasks.add_label(self._model(), self._columns)

    def check_retained(self, event_id: str) -> None:
        """Raise KeyError if an example is not retained."""
        self._numbers[event_id]

    def relabel(self, event_id: str, label: int) -> None:
        """Change the class of an example; raises KeyError if it is not retained."""
        taught = self._tasks.relabel(self._index(event_id), label)
        self._tuning.replace(taught.number, taught)

    def forget(self, event_id: str) -> None:
        """Forget an example; raises KeyError if it is not retained."""
        i = self._index(event_id)
        self._n_taken_back += 1
        self._tuning.replace(self._tasks.examples[i].number, None)
        self._remove(i)

    def state(self) -> State | None:
        """Return what is no function of the examples, as plain JSON values; None for nothing."""
        return self._tuning.state()

    def load_state(self, state: State | None) -> None:
        """Become what the state was taken from; the examples are learned after that."""
        if state is not None:
            self._tuning.load_state(state)

    # --- inside

    def _note(
        self, x: Features, label: int, privileged: Features | None, event_id: str | None
    ) -> tuple[Taught, bool]:
        """Make an example of what was received; whether privileged features are scaled anew.

        If it is refused, nothing changes.
        """
        if event_id is not None and event_id in self._numbers:
            raise ValueError(f"event {event_id!r} was already learned; use relabel_one")
        columns = self._columns.widened(x)
        vector = columns.vector(x)
        kernel, privileged_kernel = self._kernels
        kernel = kernel or self._settings.kernel_for(len(columns))
        if self._tasks.spaces is None:
            kernel.bound(columns).embed(vector)
        else:
            self._tasks.spaces.check(columns, vector)
        known = given(privileged)
        # Nothing is refused from here on.
        renewed = known is not None and self._scaling.observe(known)
        if known is not None and privileged_kernel is None:
            d = len(self._scaling.transform(known))
            privileged_kernel = self._settings.privileged_kernel_for(d)
        self._columns, self._kernels = columns, (kernel, privileged_kernel)
        taught = Taught(number=self._n_appended, x=vector, privileged=known, label=label)
        self._n_appended += 1
        if event_id is not None:
            self._numbers[event_id] = taught.number
            self._events[taught.number] = event_id
        self._tuning.note(taught)
        return taught, renewed

    def _prior(self) -> LabelModel | None:
        """Return what is expected beforehand, None before the first example."""
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
        """Give an example up if there is no room; return its slot, None for the end."""
        tasks, most = self._tasks, self._settings.max_points
        if most is None or len(tasks.examples) < most:
            return None
        i = tasks.least()
        if tasks.divide_out(i):
            self._let_go(i)
            return i
        self._remove(i)
        return None

    def _remove(self, i: int) -> None:
        tasks = self._tasks
        divided = tasks.divide_out(i)
        self._let_go(i)
        tasks.close(i)
        if not divided:
            tasks.learn_anew(None, None, self._model(), self._columns)

    def _let_go(self, i: int) -> None:
        """Take the name of an example back that is retained no longer."""
        event_id = self._events.pop(self._tasks.examples[i].number, None)
        if event_id is not None:
            del self._numbers[event_id]

    def _index(self, event_id: str) -> int:
        number = self._numbers[event_id]
        examples = enumerate(self._tasks.examples)
        return next(i for i, taught in examples if taught.number == number)
