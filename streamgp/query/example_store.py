"""A learner, the raw examples that it was taught, and the scaling between the two.

Keeps the three consistent. At any time the learner is, bitwise, what a fresh one becomes when it is
taught the examples on record, in their order, through the statistics in use; outdated ones, the
earliest, are left out. So all that has to be saved of it are the examples, how many are outdated,
what running transformers have made of each, and hyperparameters that it has learned. The same holds
for a learner that retains only some of its examples, such as the latest or those since a drift;
when one of them is relabelled or forgotten, all are learned and drifts are detected again. What to
ask and whom to believe is not decided here.

"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from operator import is_
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from streamgp.base import (
    Array,
    Belief,
    Example,
    Features,
    Label,
    LearnerFailedError,
    Neighbour,
    PendingPosterior,
    PendingQuestion,
    Posterior,
    SettledAnswer,
    State,
    check_kind,
    check_label,
    plain_label,
)
from streamgp.common.feature_values import (
    check_features,
    features_of,
    in_python,
    is_missing,
    is_number,
    plain_features,
    privileged_features,
    same_features,
)
from streamgp.features import Columns
from streamgp.learners.gp_core import PROGRESS
from streamgp.learners.river_adapters import EstimatorOptions
from streamgp.query.learner import (
    CountingPending,
    KnowingClasses,
    LeavingOneOut,
    PartlyRefusing,
    PendingAnswers,
    Relabelling,
    RestorableLearner,
    Retaining,
    TellingNoise,
)
from streamgp.query.pool_criteria import Joint
from streamgp.scaling import Scaling, check_finite

B = TypeVar("B")
# An open question, and whether it can be used with the present statistics.
_Known: TypeAlias = tuple[PendingQuestion, bool]

# Errors that River's transformers and estimators raise for features that they do not expect,
# besides ValueError and TypeError.
_FOREIGN = (LookupError, ArithmeticError, AttributeError)

# How far the probabilities of a learner may be from adding up to 1: those of single precision are
# off by some 1e-7 for each class.
_OFF = 1e-3
_PYTHON_NUMBERS = frozenset((float, int))

# Types of which all values can be compared.
_COMPARABLE = frozenset((bool, int, float, str))


class ExampleStore(ABC, Generic[B]):
    """A River estimator with a record of what it was taught, behind a scaling.

    Its belief about an event, a `B`, depends on the kind of target: see `ClassExampleStore` and
    that of `SkepticalRegressor`. A `RestorableLearner` changes nothing when it refuses
    an example, unless its `refuses_whole` says otherwise, and its `state` is what it knows besides
    its examples. Any other learner is trained again where that matters.

    Privileged features of a label reach a learner whose `learn_one` takes `privileged`, as received
    and unscaled; otherwise they are not kept.

    Parameters
    ----------
    template
        The estimator; it is never taught.
    scaling
        How features reach it.

    Attributes
    ----------
    learner
        The estimator in use.
    scaling
        How features reach it.
    n_taught
        Number of examples ever taught; it numbers those without an event id.
    n_outdated
        Number of examples, the earliest, that are on record only, and unknown to the learner.
    n_heard
        Number of answers on record that can be evidence on each annotator.

    """

    # _belief_method  the learner's method that returns its belief, for the kind of target
    # learner    a function of the examples in force, _labels, the statistics in use, its own state
    # _examples  in the order taught; by event id, or by number (in a tuple) if there is none
    # _extracted what running transformers made of the examples, by the same keys; {} without such
    # _n_unnamed how many examples have no event id
    # _labels    every label ever on record, by itself, in order of appearance: a class stays known
    # _passed_over  whether an example on record could not be taught again at the last rebuild
    # _memo      the last features, a copy of them, what the learner sees of them and the belief: a
    #            prediction, a decision and a challenge about one event ask the learner once; None
    #            after any change. By identity, since equal features need not be the same to a
    #            learner: True and 1, another order
    # _relabels_exactly  whether the learner, once relabelled, is bitwise one that learned the new
    #            label at once, while it says so
    # counts_pending  whether the learner knows what answers to pending questions will tell
    # _pending   the last pending questions, and what the learner says of their answers; likewise
    # _seen_points  columns of the first examples in force, as the learner sees them, and a row for
    #            each; None after a rebuild
    _belief_method: str

    def __init__(self, template: Any, scaling: Scaling) -> None:
        self.learner: Any = template.clone()
        self._template = template
        self.scaling = scaling
        options = EstimatorOptions(template, self._belief_method)
        self._options = options.predicting
        self._takes_event_id = options.event_id
        self._takes_privileged = options.privileged
        self._is_restorable = isinstance(template, RestorableLearner)
        is_told = self._is_restorable and self._takes_event_id
        self._relabels_exactly = is_told and isinstance(template, Relabelling)
        self._leaves_one_out = isinstance(template, LeavingOneOut)
        self.counts_pending = isinstance(template, CountingPending)
        self._examples: dict[str | tuple[int], Example] = {}
        self._extracted: dict[str | tuple[int], Features] = {}
        self._n_unnamed = 0
        self.n_heard: Counter[str | None] = Counter()
        self.n_outdated = 0
        self._labels: dict[Label, Label] = {}
        self.n_taught = 0
        self._passed_over = False
        self._memo: tuple[Features, Features, Features, B] | None = None
        self._pending: tuple[Sequence[PendingQuestion], list[_Known], PendingAnswers] | None = None
        self._seen_points: tuple[Columns, Array] | None = None

    def __getstate__(self) -> dict[str, Any]:
        # What is only remembered for speed is not part of the state: asking changes nothing.
        return {**self.__dict__, "_memo": None, "_pending": None, "_seen_points": None}

    def __len__(self) -> int:
        return len(self._examples)

    def observe(self, x: Features) -> B | None:
        """Observe the features of an event, once each; refuse what cannot be predicted.

        Returns
        -------
        The learner's belief; None if it has changed because the statistics in use have.

        Raises
        ------
        TypeError
            If the learner or its scaling cannot use a feature.
        ValueError
            If a feature is infinite.

        """
        check_features(x)
        plain, scaling = in_python(x), self.scaling
        check_finite(plain)
        # The belief is cached, so this costs nothing unless the statistics in use change.
        belief = self.belief(x)
        try:
            renewed = scaling.observe(plain)
        except _FOREIGN as error:
            raise self._refusal(error) from error
        if renewed and (self.n_taught or not self._is_restorable):
            current = self.current()
            scaling.weigh([(self._extracted_of(key), current[key].y) for key in current])
            self._rebuild()
            return None
        if renewed or scaling.extract(plain) is not plain:
            self._note_change()  # and nothing was learned through the statistics before
            return None
        return belief

    def belief(self, x: Features) -> B:
        """Return the learner's belief; changes nothing."""
        return self._seen_and_believed(x)[1]

    def _seen_and_believed(self, x: Features) -> tuple[Features, B]:
        """Return the features of an event as the learner sees them, and its belief."""
        memo = self._memo
        if memo is not None and memo[0] is x and same_features(memo[1], x):
            return memo[2:]
        if type(x) is not dict:
            check_features(x)
        try:
            seen = self._seen(x)
            belief = self._believed(self._learner_to_ask, seen)
        except _FOREIGN as error:
            raise self._refusal(error) from error
        self._memo = x, dict(x), seen, belief
        return seen, belief

    @property
    def _learner_to_ask(self) -> Any:
        # River's ARFClassifier makes its trees for the features of the first event that it sees,
        # even if it only predicts it; a learner that is taught again sees the first example first.
        return self.learner if self._examples or self._is_restorable else self._template.clone()

    def leave_one_out(self) -> Mapping[str, B]:
        """Return the belief about each example by all the others, by event id; {} if unknown."""
        return self.learner.leave_one_out() if self._leaves_one_out else {}

    def noise(self, privileged: Features | None) -> tuple[float, float] | None:
        """Return the noise variances of a label, and of any label; changes nothing.

        None if nothing is known of the label, or the learner does not distinguish noisy labels.

        Raises
        ------
        TypeError
            If privileged features are not features.
        ValueError
            If one of them is infinite or too large.

        """
        known = self._privileged(privileged)
        if known is None or all(map(is_missing, known.values())):
            return None
        learner = self.learner
        if not isinstance(learner, TellingNoise):
            return None
        return float(learner.noise_one(known)), float(learner.noise_one(None))

    def teach(
        self,
        x: Features,
        y: Label,
        event_id: str | None,
        *,
        privileged: Features | None = None,
        answer: SettledAnswer | None = None,
    ) -> None:
        """Teach an example; if the learner cannot take it, nothing changes.

        `answer` is the first answer about the event, to be kept with the example.

        Raises
        ------
        NotPositiveDefiniteError
            If a Gaussian process cannot take it.
        TypeError
            If the label is missing, or privileged features are not features.
        ValueError
            If the event was already taught.

        """
        self._check_label(y)
        known = self._privileged(privileged)
        if event_id is not None and event_id in self._examples:
            raise ValueError(f"event {event_id!r} was already learned; use relabel_one")
        held = dict(in_python(x))
        example = Example(event_id=event_id, x=held, y=y, privileged=known, answer=answer)
        key = (self.n_taught,) if event_id is None else event_id
        before = self._settled()
        try:
            extracted = self.scaling.extract(example.x)
        except _FOREIGN as error:
            raise self._refusal(error) from error
        try:
            self._teach(self.learner, key, example, extracted)
        except (ValueError, TypeError):
            if not self._refuses_whole:
                self._rebuild()  # it may have learned half of it
            raise
        try:
            # What transformers learn from labels is used from the next renewal on.
            self.scaling.learn(extracted, y)
        except (ValueError, TypeError, *_FOREIGN) as error:
            self._rebuild()  # without this example
            raise self._refusal(error) from error
        self._examples[key] = example
        self.n_heard.update(_annotators_concerned(example))
        if extracted is not example.x:
            self._extracted[key] = extracted
        self._n_unnamed += event_id is None
        self._count_label(y)
        self.n_taught += 1
        self._note_change()
        if self._settled() != before and (self._passed_over or not self._retains_all):
            # With other hyperparameters it would have retained or refused other examples, or found
            # other drifts.
            self._rebuild()

    def relabel(
        self,
        event_id: str,
        y: Label,
        *,
        annotator: str | None = None,
        privileged: Features | None = None,
    ) -> None:
        """Change the label of an example; raises KeyError if it was not taught.

        `annotator` has corrected it. If no privileged features are given, those of the old label
        are kept.
        """
        self._check_label(y)
        self._check_taught(event_id)
        old = self._examples[event_id]
        known = self._privileged(privileged)
        answer = old.answer and old.answer.corrected_by(annotator, y)
        privileged = old.privileged if known is None else known
        new = replace(old, y=y, privileged=privileged, answer=answer)
        self._examples[event_id] = new
        if type(old.y) is type(y) and (old.y, old.privileged) == (y, privileged):
            return
        n_labels = len(self._labels)
        self._count_label(y)
        if event_id not in self.current():
            if len(self._labels) > n_labels:
                self._rebuild()  # a learner that is told of classes knows the new one from now on
            return
        # There may now be room for an example that is only on record; and what the learner made of
        # examples that it does not retain depends on all of them.
        if (
            old.privileged == new.privileged
            and self._relabels_exactly
            and not self._passed_over
            and self.learner.is_exact
        ):
            try:
                self.learner.relabel_one(event_id, y)
            except (ValueError, TypeError) as error:  # which would say that nothing has changed
                name = type(self._template).__name__
                raise LearnerFailedError(f"{name} cannot change a label: {error}") from error
            self._note_change()
        else:
            self._rebuild()

    def note_second(self, event_id: str, second: SettledAnswer) -> None:
        """Keep the first answer to a second question together with the answer to the first."""
        example = self._examples[event_id]
        answer = example.answer or SettledAnswer(y=example.y)
        if answer.second is None:
            new = replace(example, answer=replace(answer, second=second))
            self._examples[event_id] = new
            self.n_heard.subtract(_annotators_concerned(example))
            self.n_heard.update(_annotators_concerned(new))

    def forget(self, event_id: str) -> None:
        """Forget an example; raises KeyError if it was not taught."""
        self._check_taught(event_id)
        is_outdated = event_id not in self.current()
        self.n_heard.subtract(_annotators_concerned(self._examples.pop(event_id)))
        self._extracted.pop(event_id, None)
        self.n_outdated -= is_outdated
        if not is_outdated:
            self._rebuild()

    def n_latest(self, event_id: str) -> int:
        """Return the place of an example among the latest, 1 for the last one.

        Raises KeyError if it was not taught.
        """
        self._check_taught(event_id)
        return next(n for n, key in enumerate(reversed(self._examples), 1) if key == event_id)

    def outdate(self, n_kept: int) -> None:
        """Make the learner forget all examples but the latest ones; all stay on record."""
        self.n_outdated = max(self.n_outdated, len(self._examples) - n_kept)
        self._rebuild()

    def examples(self) -> list[Example]:
        """Return the examples on record, in the order taught."""
        return list(self._examples.values())

    def latest(self, n: int) -> dict[str | tuple[int], Example]:
        """Return the last examples on record, by the same keys as `current`."""
        return dict(islice(self._examples.items(), max(0, len(self) - n), None))

    def current(self) -> Mapping[str | tuple[int], Example]:
        """Return the examples that are not outdated, by event id, or by number without one."""
        if not self.n_outdated:
            return self._examples
        return dict(islice(self._examples.items(), self.n_outdated, None))

    def state(self) -> State:
        """Return what must survive a restart besides the examples."""
        unnamed = self._examples if self._n_unnamed else ()
        learned = self._state()
        # Omitted if there is none, as before learners had a state: old snapshots stay the same.
        extra: State = {} if learned is None else {"learner": learned}
        if self.n_outdated:
            extra["n_outdated"] = self.n_outdated
        if self._extracted:
            extra["extracted"] = [
                [key if isinstance(key, str) else key[0], plain_features(extracted)]
                for key, extracted in self._extracted.items()
            ]
        return {
            **extra,
            "n_taught": self.n_taught,
            "numbers": [key[0] for key in unnamed if isinstance(key, tuple)],
            "labels": [plain_label(label) for label in self._labels],
            "scaling": self.scaling.state(),
        }

    def load_state(self, state: State, examples: Sequence[Example]) -> None:
        """Restore `state` and `examples` into an object that has learned nothing."""
        self.scaling.load_state(state["scaling"])
        self.n_taught = int(state["n_taught"])
        for label in state["labels"]:
            check_label(label)
        self._labels = {y: y for y in state["labels"]}
        examples = self.as_held(examples)
        unnamed = [example for example in examples if example.event_id is None]
        numbers = dict(zip(map(id, unnamed), state["numbers"], strict=True))
        self._n_unnamed = len(unnamed)
        self._examples = {
            (numbers[id(example)],) if example.event_id is None else example.event_id: example
            for example in examples
        }
        self.n_heard = Counter(
            name for example in examples for name in _annotators_concerned(example)
        )
        extracted = {
            key if isinstance(key, str) else (key,): features_of(features)
            for key, features in state.get("extracted", ())
        }
        self._extracted = {key: extracted[key] for key in self._examples if key in extracted}
        self.n_outdated = min(int(state.get("n_outdated", 0)), len(self._examples))
        self._rebuild(state.get("learner"))

    def as_held(self, examples: Sequence[Example]) -> list[Example]:
        """Return examples as they would be on record: without what the learner does not use."""
        if self._takes_privileged:
            return list(examples)
        return [_without_privileged(example) for example in examples]

    @staticmethod
    def untaught(state: State, initial: State) -> State:
        """Return a state with the scaling of `state` that has learned no more than `initial`.

        Parameters
        ----------
        state
            State of a store.
        initial
            State of a new store of the same configuration.

        """
        learner, known = initial.get("learner"), state.get("learner")
        if learner and known and "seed" in learner:
            learner = {**learner, "seed": known["seed"]}  # already drawn, and not to be drawn again
        return {**initial, "scaling": state["scaling"], "learner": learner}

    def weigh_by(self, examples: Sequence[Example]) -> None:
        """Weigh features by the labels of examples, before any is taught."""
        scaling = self.scaling
        scaling.weigh([(scaling.extract(in_python(each.x)), each.y) for each in examples])
        self._note_change()

    def neighbours(self, x: Features, n: int) -> list[Neighbour]:
        """Return the examples nearest to `x` as the learner sees them, nearest first."""
        examples = list(self.current().values())
        if not examples:
            return []
        here = _comparable(self._seen(x))
        columns, points = self._points()
        if columns.known_vector(here) is None and (wider := columns.widened(here)) is not columns:
            columns, points = self._rows(wider, 0)
        distances = columns.distances(points, columns.vector(here))
        return [
            Neighbour(
                event_id=examples[i].event_id,
                x=dict(examples[i].x),
                y=examples[i].y,
                distance=float(distances[i]),
            )
            for i in np.argsort(distances, kind="stable")[:n].tolist()
        ]

    def _points(self) -> tuple[Columns, Array]:
        """Return the columns of the examples as the learner sees them, and a row for each."""
        found = self._seen_points
        if found is None:
            found = self._rows(Columns(), 0)
        elif len(found[1]) < len(self.current()):
            columns, late = self._rows(found[0], len(found[1]))
            # Earlier rows lack a column that only a later example has.
            is_wider = columns is not found[0]
            found = self._rows(Columns(), 0) if is_wider else (columns, np.vstack([found[1], late]))
        self._seen_points = found
        return found

    def _rows(self, columns: Columns, first: int) -> tuple[Columns, Array]:
        """Return columns that also cover the examples from the `first` on, and a row for each."""
        keys = islice(self.current(), first, None)
        seen = [_comparable(self.scaling.transform(self._extracted_of(key))) for key in keys]
        for features in seen:
            if columns.known_vector(features) is None:
                columns = columns.widened(features)
        return columns, np.array([columns.vector(features) for features in seen])

    # --- what depends on the kind of target

    @abstractmethod
    def _believed(self, learner: Any, seen: Features) -> B:
        """Return a learner's belief about features as it sees them."""

    @abstractmethod
    def _check_label(self, y: Label) -> None:
        """Refuse a label that the learner cannot take, before anything is changed."""

    @abstractmethod
    def _count_label(self, y: Label) -> None:
        """Count a label that is put on record."""

    def _prime(self, learner: Any, state: State | None) -> None:
        """Tell a fresh learner of ours what does not follow from its examples."""
        learner.load_state(state)

    # --- inside

    def _check_taught(self, event_id: str) -> None:
        """Raise KeyError if an event was not taught."""
        if event_id not in self._examples:
            raise KeyError(f"event {event_id!r} was not learned")

    def _note_change(self) -> None:
        """Drop what was cached for a learner, or for statistics, that have changed."""
        self._memo = self._pending = None

    def _seen(self, x: Features) -> Features:
        """Return the features of an event as the learner sees them."""
        scaling = self.scaling
        return scaling.transform(scaling.extract(in_python(x)))

    def _extracted_of(self, key: str | tuple[int]) -> Features:
        """Return what running transformers made of an example, at its time."""
        extracted = self._extracted.get(key)
        return self.scaling.extract(self._examples[key].x) if extracted is None else extracted

    def _teach(
        self, learner: Any, key: str | tuple[int], example: Example, extracted: Features
    ) -> None:
        options: dict[str, Any] = {}
        if self._takes_event_id:
            # A learner that leaves examples out has to identify each by a name.
            options["event_id"] = key if self._leaves_one_out else example.event_id
        if example.privileged is not None:
            options["privileged"] = example.privileged
        try:
            learner.learn_one(self.scaling.transform(extracted), example.y, **options)
        except _FOREIGN as error:
            raise self._refusal(error) from error

    def _privileged(self, privileged: Features | None) -> Features | None:
        """Return a copy of what the learner hears of a label; refuses what are not features."""
        if privileged is None or not self._takes_privileged:
            return None
        return privileged_features(privileged)

    def _refusal(self, error: Exception) -> ValueError:
        name = type(self._template).__name__
        return ValueError(f"{name} or its transformers cannot use these features: {error!r}")

    @property
    def _refuses_whole(self) -> bool:
        learner = self.learner
        return learner.refuses_whole if isinstance(learner, PartlyRefusing) else self._is_restorable

    @property
    def _retains_all(self) -> bool:
        template = self._template
        return template.retains_all if isinstance(template, Retaining) else True

    def _state(self) -> State | None:
        """Return the state of the learner that does not follow from its examples, or None."""
        return self.learner.state() if self._is_restorable else None

    def _settled(self) -> State | None:
        """Return the part of the state that decides which examples the learner retains."""
        state = self._state()
        return state and {name: value for name, value in state.items() if name != PROGRESS}

    def _rebuild(self, state: State | None = None) -> None:
        """Teach a fresh learner all examples, through the statistics now in use.

        What it knows besides the examples comes from the learner before it, or from `state`.
        """
        try:
            self._teach_all(state)
        except (ValueError, TypeError) as error:  # which would say that nothing has changed
            name = type(self._template).__name__
            raise LearnerFailedError(f"{name} cannot be trained again: {error}") from error

    def _teach_all(self, state: State | None) -> None:
        self._note_change()
        self._seen_points = None
        if state is None:
            state = self._state()
        while True:
            learner = self._template.clone()
            if self._is_restorable:
                self._prime(learner, state)
            self._passed_over = False
            for key, example in self.current().items():
                try:
                    self._teach(learner, key, example, self._extracted_of(key))
                except MemoryError:
                    raise
                except Exception:
                    # With other statistics an example can repeat an earlier one, be too large, or
                    # be more than a learner can handle; it stays on record. If it ended the
                    # rebuild, it would do so again at every later event.
                    self._passed_over = True
            self.learner = learner
            if self._state() == state:
                return
            # It has found other hyperparameters while it was taught, as it holds more examples
            # than the one before: repeat with these. They are sought less and less often.
            state = self._state()


def _annotators_concerned(example: Example) -> tuple[str | None, ...]:
    """Return the annotators on whom the answers about an event can be evidence.

    If its label was not asked for, that is the annotator of the label alone, and only if there is a
    second answer.
    """
    first = example.answer
    if first is None:
        return ()
    second = first.second
    if second is None:
        return (first.annotator,) if first.was_asked else ()
    is_other = first.was_asked and second.annotator != first.annotator
    return (first.annotator, second.annotator) if is_other else (first.annotator,)


def _without_privileged(example: Example) -> Example:
    return example if example.privileged is None else replace(example, privileged=None)


def _comparable(x: Features) -> Features:
    if _COMPARABLE.issuperset(map(type, x.values())):  # the usual case: nothing to leave out
        return x
    return {name: value for name, value in x.items() if is_number(value) or isinstance(value, str)}


# --- A learner of classes, the raw examples that it was taught, and the scaling between the two.


class ClassExampleStore(ExampleStore[Belief]):
    """A River classifier with a record of what it was taught, behind a scaling."""

    _belief_method = "predict_proba_one"

    def joint(self, xs: Mapping[str, Features]) -> tuple[list[str], Joint | None]:
        """Return the joint belief about several events; changes nothing.

        Returns
        -------
        The events that can be used, and the belief about them in this order, None for none. The
        statistics in use may have changed since an event came, so that it is too large by now.

        """
        try:
            return self._joint(xs)
        except (ValueError, TypeError, *_FOREIGN):
            return self._joint({event_id: x for event_id, x in xs.items() if self._can_use(x)})

    def belief_about(self, event_id: str) -> Belief:
        """Return the belief about an example on record; changes nothing.

        It is that of all others, if the learner retains the example and can leave it out, else of
        all.
        """
        found = self.leave_one_out().get(event_id)
        return self.belief(self._examples[event_id].x) if found is None else found

    def answer_about(self, event_id: str) -> SettledAnswer | None:
        """Return the first answer about an example on record, None if it is not known."""
        return self._examples[event_id].answer

    def labels_with(self, *labels: Label) -> list[Label]:
        """Return all labels on record together with these."""
        return list(dict.fromkeys([*self._labels, *labels]))

    def judged_apart(
        self, examples: Mapping[Any, Example], about: Iterable[Any] = ()
    ) -> tuple[dict[Any, Belief], dict[Any, Belief]]:
        """Teach examples to a fresh learner, through the statistics now in use; changes nothing.

        Returns
        -------
        Its belief about each example by all others, or, if it does not retain the example or cannot
        leave it out, the belief beforehand; and its belief about each other event on record in
        `about` that can be used with the present statistics.

        """
        learner, found = self.taught_apart(examples, believed=not self._leaves_one_out)
        if self._leaves_one_out:
            left_out = learner.leave_one_out()
            if not examples.keys() <= left_out.keys():  # rarely, as beliefs take time
                found = self.taught_apart(examples)[1]
            found |= left_out
        others: dict[Any, Belief] = {}
        for key in about:
            if key in found:
                continue
            try:
                seen = self.scaling.transform(self._extracted_of(key))
                others[key] = self._believed(learner, seen)
            except (ValueError, TypeError, *_FOREIGN):
                continue
        return found, others

    def taught_apart(
        self, examples: Mapping[Any, Example], *, believed: bool = True
    ) -> tuple[Any, dict[Any, Belief]]:
        """Teach examples to a fresh learner; return it, and its belief about each beforehand."""
        learner = self._template.clone()
        if self._is_restorable:
            self._prime(learner, self._state())
        found: dict[Any, Belief] = {}
        for key, example in examples.items():
            try:
                extracted = self._extracted_of(key)
                if believed:
                    found[key] = self._believed(learner, self.scaling.transform(extracted))
                self._teach(learner, key, example, extracted)
            except MemoryError:
                raise
            except Exception:
                continue  # as in `_teach_all`: passed over, and on record
        return learner, found

    def _joint(self, xs: Mapping[str, Features]) -> tuple[list[str], Joint | None]:
        if not xs:
            return [], None
        seen = [self._seen(x) for x in xs.values()]
        return list(xs), Joint.of_indicators(*self.learner.joint(seen))

    def belief_with(self, x: Features, questions: Sequence[PendingQuestion]) -> Belief:
        """Return the learner's belief, including what the answers to open questions will tell.

        A question about an event that cannot be used with the present statistics has no effect.
        """
        seen, belief = self._seen_and_believed(x)
        if not (self.counts_pending and isinstance(belief, Posterior)):
            return belief
        told = self._told(questions)
        if not told.n:
            return belief
        # By hand: `replace` takes several times as long.
        return Posterior(
            mean=belief.mean,
            variance=belief.variance,
            prior_variance=belief.prior_variance,
            pending=PendingPosterior(*told.predict(seen)),
        )

    def _told(self, questions: Sequence[PendingQuestion]) -> PendingAnswers:
        """Return what the answers will tell; most questions are those of last time."""
        if self._pending is None:
            self._pending = (), [], self.learner.pending()
        asked, known, told = self._pending
        if asked is questions:
            return told
        self._pending = None  # if what follows fails
        # Nearly always so; one by one takes several times as long.
        if len(questions) < len(asked) or not all(map(is_, asked, questions)):
            known, kept = _still_asked(known, questions)
            told.keep(kept)
        for question in questions[len(known) :]:
            try:
                told.append(self._seen(question.x), question.target)
            except (ValueError, TypeError, *_FOREIGN):
                known.append((question, False))
            else:
                known.append((question, True))
        self._pending = questions, known, told
        return told

    def _can_use(self, x: Features) -> bool:
        try:
            self.belief(x)
        except (ValueError, TypeError):
            return False
        return True

    def _believed(self, learner: Any, seen: Features) -> Belief:
        belief: Belief = learner.predict_proba_one(seen, **self._options)
        return belief if isinstance(belief, Posterior) else self._checked(belief)

    def _checked(self, belief: Mapping[Label, float]) -> Mapping[Label, float]:
        """Return the probabilities of a learner as numbers of Python; refuse what are none.

        Some learners return zeros where they know nothing.
        """
        if not isinstance(belief, Mapping):
            raise self._no_probabilities(belief)
        shares = belief.values()
        total = sum(shares)
        if not math.isfinite(total):
            raise ValueError(
                f"{type(self._template).__name__} or its transformers make no finite probabilities "
                "of these features; leave out what is missing, or scale what comes late"
            )
        if None in belief or (total and abs(total - 1.0) > _OFF) or min(shares, default=0.0) < 0.0:
            raise self._no_probabilities(dict(belief))
        if _PYTHON_NUMBERS.issuperset(map(type, shares)):
            return belief
        return {label: float(share) for label, share in belief.items()}

    def _no_probabilities(self, belief: object) -> RuntimeError:
        # No ValueError: the features are not to blame.
        return RuntimeError(
            f"{type(self._template).__name__}.predict_proba_one must return a probability of "
            f"each label, none of them negative, and they must add up to 1, got {belief!r:.200}"
        )

    def _check_label(self, y: Label) -> None:
        self.check_class(y)
        if y not in (False, True) and not self._template._multiclass:
            raise ValueError(
                f"{type(self._template).__name__} knows the labels False and True only, got {y!r}; "
                "wrap it in river.multiclass.OneVsRestClassifier, or let its property _multiclass "
                "be True if it knows others"
            )

    def check_class(self, y: Label) -> None:
        """Refuse what is not a label, or equals a class of another type; see `check_kind`."""
        check_label(y)
        known = self._labels.get(y)
        if known is not None:
            check_kind(y, known)

    def _count_label(self, y: Label) -> None:
        self._labels.setdefault(y, y)

    def _prime(self, learner: Any, state: State | None) -> None:
        super()._prime(learner, state)
        # An ensemble learns of classes by their examples; one that has none left is new to it.
        if isinstance(learner, KnowingClasses):
            learner.know(self._labels)


def _still_asked(
    known: Sequence[_Known], questions: Sequence[PendingQuestion]
) -> tuple[list[_Known], list[int]]:
    """Return what is known of the first questions, and their numbers among those that count.

    Features are compared by identity, which is faster.
    """
    found: list[_Known] = []
    kept: list[int] = []
    number = 0
    for question, counts in known:
        if len(found) == len(questions):
            break
        other = questions[len(found)]
        if question.x is other.x and question.target == other.target:
            found.append((question, counts))
            if counts:
                kept.append(number)
        number += counts
    return found, kept
