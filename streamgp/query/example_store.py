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
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from operator import is_
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np

from streamgp.base import (
    Array,
    Belief,
    Distribution,
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
from streamgp.common.annotator_quarantine import FEWEST
from streamgp.common.feature_values import (
    check_features,
    features_of,
    is_missing,
    is_number,
    plain_features,
    privileged_features,
    without_numpy,
)
from streamgp.common.normal import Normal
from streamgp.common.running_stats import Moments, Quartiles
from streamgp.features import Columns
from streamgp.learners.gp_core import PROGRESS
from streamgp.learners.river_adapters import EstimatorOptions, checked_target
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
_PYTHONS = frozenset((float, int))

# Types of which all values can be compared.
_COMPARABLE = frozenset((bool, int, float, str))

# Number of latest answers by which annotators are judged. A learner that cannot leave examples out
# is taught these once more, which must not take ever longer.
_MOST_ANSWERS = 2000
# Answers, and the belief about the event of each.
Answers: TypeAlias = tuple[list[SettledAnswer], list[Belief]]
# Latest answers of one annotator, and labels of the others, when that one is judged separately.
MOST_OWN, _MOST_OF_OTHERS = 200, 500


# --- Optional methods of a learner, in addition to those of a River estimator.


@runtime_checkable
class RestorableLearner(Protocol):
    """A learner with knowledge besides its examples, such as hyperparameters."""

    def state(self) -> State:
        """Return what it knows besides its examples, as plain JSON values.

        What changes with every example, and has no part in which ones are retained, is stored under
        the name "progress".
        """

    def load_state(self, state: State) -> None:
        """Restore what another learner knew besides its examples, before the first example."""


@runtime_checkable
class PartlyRefusing(Protocol):
    """A learner that tells whether a refused example has left it unchanged."""

    @property
    def refuses_whole(self) -> bool:
        """Whether a refused example changes nothing."""


@runtime_checkable
class Retaining(Protocol):
    """A learner that tells whether it retains the examples that it has learned."""

    @property
    def retains_all(self) -> bool:
        """Whether no example is ever dropped."""


@runtime_checkable
class KnowingClasses(Protocol):
    """A learner that can be told of classes of which it has no example."""

    def know(self, labels: Iterable[Label]) -> None:
        """Count these labels among the known classes."""


@runtime_checkable
class HavingExperts(Protocol):
    """A learner composed of several experts."""

    @property
    def n_experts(self) -> int:
        """Number of experts."""


@runtime_checkable
class LeavingOneOut(Protocol):
    """A learner that judges each of its examples by the others."""

    def leave_one_out(self) -> Mapping[str, Any]:
        """Return the belief about each example by all the others, by event id."""


@runtime_checkable
class BelievingJointly(Protocol):
    """A learner with a joint belief about several events."""

    noise_variance: float

    def joint(self, xs: Sequence[Features]) -> tuple[Any, ...]:
        """Return means and covariances of the events, and what else the classifier knows."""


@runtime_checkable
class TellingNoise(Protocol):
    """A learner that distinguishes noisy labels from others, by their privileged features."""

    def noise_one(self, privileged: Features | None) -> float:
        """Return the noise variance expected of a label; None stands for any label."""


class PendingAnswers(Protocol):
    """What the answers to pending questions will tell, whichever answers they are."""

    @property
    def n(self) -> int:
        """Number of questions."""

    def append(self, x: Features, target: float) -> None:
        """Add a question; if it is refused, nothing changes."""

    def truncate(self, n: int) -> None:
        """Keep only the first `n` questions."""

    def predict(self, x: Features) -> tuple[float, float]:
        """Share of the answers, and variance after them, at an event."""


@runtime_checkable
class CountingPending(Protocol):
    """A learner that knows what the answers to pending questions will tell."""

    def pending(self) -> PendingAnswers:
        """Return an object that takes the questions; valid until the learner changes."""


class ExampleStore(ABC, Generic[B]):
    """A River estimator with a record of what it was taught, behind a scaling.

    Its belief about an event, a `B`, depends on the kind of target: see `ClassExampleStore` and
    `NumberExampleStore`. A `RestorableLearner` changes nothing when it refuses
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

    """

    # _belief_method  the learner's method that returns its belief, for the kind of target
    # learner    a function of the examples in force, _labels, the statistics in use, its own state
    # _examples  in the order taught; by event id, or by number (in a tuple) if there is none
    # _extracted what running transformers made of the examples, by the same keys; {} without such
    # _n_unnamed how many examples have no event id
    # _n_heard   how many answers on record can be evidence on each annotator
    # _labels    every label ever on record, by itself, in order of appearance: a class stays known
    # _passed_over  whether an example on record could not be taught again at the last rebuild
    # _memo      the last features, a copy of them, what the learner sees of them and the belief: a
    #            prediction, a decision and a challenge about one event ask the learner once; None
    #            after any change. By identity, since equal features need not be the same to a
    #            learner: True and 1, another order
    # counts_pending  whether the learner knows what answers to pending questions will tell
    # _pending   the last pending questions, and what the learner says of their answers; likewise
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
        self._leaves_one_out = isinstance(template, LeavingOneOut)
        self.counts_pending = isinstance(template, CountingPending)
        self._examples: dict[str | tuple[int], Example] = {}
        self._extracted: dict[str | tuple[int], Features] = {}
        self._n_unnamed = 0
        self._n_heard: Counter[str | None] = Counter()
        self.n_outdated = 0
        self._labels: dict[Label, Label] = {}
        self.n_taught = 0
        self._passed_over = False
        self._memo: tuple[Features, Features, Features, B] | None = None
        self._pending: tuple[Sequence[PendingQuestion], list[_Known], PendingAnswers] | None = None

    def __getstate__(self) -> dict[str, Any]:
        # What is only remembered for speed is not part of the state: asking changes nothing.
        return {**self.__dict__, "_memo": None, "_pending": None}

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
        # The belief is cached, so this costs nothing unless the statistics in use change.
        check_finite(x)
        belief = self.belief(x)
        x, scaling = without_numpy(x), self.scaling
        try:
            renewed = scaling.observe(x)
        except _FOREIGN as error:
            raise self._refusal(error) from error
        if renewed and (self.n_taught or not self._is_restorable):
            self._rebuild()
            return None
        if renewed or scaling.extract(x) is not x:
            self._note_change()  # and nothing was learned through the statistics before
            return None
        return belief

    def belief(self, x: Features) -> B:
        """Return the learner's belief; changes nothing."""
        return self._seen_and_believed(x)[1]

    def _seen_and_believed(self, x: Features) -> tuple[Features, B]:
        """Return the features of an event as the learner sees them, and its belief."""
        memo = self._memo
        if memo is not None and memo[0] is x and memo[1] == x:
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
        """Return the belief about each example by all the others, by event id."""
        return self.learner.leave_one_out()  # type: ignore[no-any-return]

    def noise(self, privileged: Features | None) -> tuple[float, float] | None:
        """Return the noise variances expected of a label, and of any label; changes nothing.

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
        held = dict(without_numpy(x))
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
        self._n_heard.update(_evidence_on(example))
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

    def relabel(self, event_id: str, y: Label, *, privileged: Features | None = None) -> None:
        """Change the label of an example; raises KeyError if it was not taught.

        If no privileged features are given, those of the old label are kept.
        """
        self._check_label(y)
        old = self._examples[event_id]
        known = self._privileged(privileged)
        new = replace(old, y=y, privileged=old.privileged if known is None else known)
        self._examples[event_id] = new
        if type(old.y) is type(y) and old == new:
            return
        n_labels = len(self._labels)
        self._count_label(y)
        if self._is_outdated(event_id):
            if len(self._labels) > n_labels:
                self._rebuild()  # a learner that is told of classes knows the new one from now on
            return
        # There may now be room for an example that is only on record; and what the learner made of
        # examples that it does not retain depends on all of them.
        is_label_only = old.privileged == new.privileged
        if (
            is_label_only
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
            self._n_heard.subtract(_evidence_on(example))
            self._n_heard.update(_evidence_on(new))

    def forget(self, event_id: str) -> None:
        """Forget an example; raises KeyError if it was not taught."""
        is_outdated = self._is_outdated(event_id)
        self._n_heard.subtract(_evidence_on(self._examples.pop(event_id)))
        self._extracted.pop(event_id, None)
        self.n_outdated -= is_outdated
        if not is_outdated:
            self._rebuild()

    def n_latest(self, event_id: str) -> int:
        """Return the place of an example among the latest, 1 for the last one.

        Raises KeyError if it was not taught.
        """
        if event_id not in self._examples:
            raise KeyError(event_id)
        return next(n for n, key in enumerate(reversed(self._examples), 1) if key == event_id)

    def outdate(self, n_kept: int) -> None:
        """Make the learner forget all examples but the latest ones; all stay on record."""
        self.n_outdated = max(self.n_outdated, len(self._examples) - n_kept)
        self._rebuild()

    def examples(self) -> list[Example]:
        """Return the examples on record, in the order taught."""
        return list(self._examples.values())

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
        self._n_heard = Counter(name for example in examples for name in _evidence_on(example))
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

    def neighbours(self, x: Features, n: int) -> list[Neighbour]:
        """Return the examples nearest to `x` as the learner sees them, nearest first."""
        current = self._current()
        examples = list(current.values())
        if not examples:
            return []
        here = _comparable(self._seen(x))
        seen = [_comparable(self.scaling.transform(self._extracted_of(key))) for key in current]
        columns = Columns()
        for features in (here, *seen):
            if columns.known_vector(features) is None:
                columns = columns.widened(features)
        points: Array = np.array([columns.vector(features) for features in seen])
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

    @property
    @abstractmethod
    def _relabels_exactly(self) -> bool:
        """Whether a relabelled learner is bitwise one that learned the new label at once."""

    # --- inside

    def _note_change(self) -> None:
        """Drop what was cached for a learner, or for statistics, that have changed."""
        self._memo = self._pending = None

    def _seen(self, x: Features) -> Features:
        """Return the features of an event as the learner sees them."""
        scaling = self.scaling
        return scaling.transform(scaling.extract(without_numpy(x)))

    def _current(self) -> Mapping[str | tuple[int], Example]:
        """Return the examples that are not outdated."""
        if not self.n_outdated:
            return self._examples
        return dict(islice(self._examples.items(), self.n_outdated, None))

    def _is_outdated(self, key: str) -> bool:
        return key in self._examples and key not in self._current()

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
        if state is None:
            state = self._state()
        while True:
            learner = self._template.clone()
            if self._is_restorable:
                self._prime(learner, state)
            self._passed_over = False
            for key, example in self._current().items():
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


def answers_about(examples: Iterable[Example]) -> Iterator[SettledAnswer]:
    """Yield the answers about examples, the first and the second, as far as they are known."""
    for example in examples:
        for answer in (example.answer, example.answer and example.answer.second):
            if answer is not None:
                yield answer


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
        found = self.leave_one_out().get(event_id) if self._leaves_one_out else None
        return self.belief(self._examples[event_id].x) if found is None else found

    def answer_about(self, event_id: str) -> SettledAnswer | None:
        """Return the first answer about an example on record, None if it is not known."""
        return self._examples[event_id].answer

    def labels_with(self, *labels: Label) -> list[Label]:
        """Return all labels on record together with these."""
        return list(dict.fromkeys([*self._labels, *labels]))

    def answered(self) -> tuple[list[SettledAnswer], list[Belief], list[Label]]:
        """Return the latest answers on record, the beliefs about their events, and all labels.

        For an example that the learner retains and can leave out, it is the belief by all others;
        for any other, the belief of a fresh learner just before it is taught the example, through
        the statistics now in use. Changes nothing.
        """
        examples = dict(deque(self._examples.items(), maxlen=_MOST_ANSWERS))
        found: dict[Any, Belief] = {}
        if self._leaves_one_out:
            found.update(self.leave_one_out())
        if not examples.keys() <= found.keys():
            found = {**self._taught_apart(examples)[1], **found}
        answers = answers_about(examples.values())
        labels = self.labels_with(*(answer.y for answer in answers if answer.y is not None))
        return *_with_answers(examples, found, labels), labels

    def answered_by(
        self, annotator: str, without: Collection[str | None] = ()
    ) -> tuple[Answers, Answers, list[Label]]:
        """Return the latest answers of one annotator and of the others, judged by the others.

        Those about outdated examples are left out.

        The beliefs about the annotator's events are those of a fresh learner that is taught the
        latest labels of the others alone, through the statistics now in use; those about the events
        of the others are as in `answered`. Changes nothing.

        Parameters
        ----------
        annotator
            The annotator.
        without
            Annotators who are also left out of the others.

        Returns
        -------
        The answers of the annotator and the belief about each, those of the others, and all labels:
        those of the others, and those that the annotator has given to events about which another
        has answered. `second` of an answer of the annotator is what someone else has said about the
        same event without knowing that answer, whichever of the two was asked first.

        """
        own, others = self._own_and_others(annotator, without)
        learner, found = self._taught_apart(others)
        if self._leaves_one_out:
            found.update(learner.leave_one_out())
        beliefs: dict[Any, Belief] = {}
        for key in own:
            if key in found:  # one of the others was asked first
                beliefs[key] = found[key]
                continue
            try:
                seen = self.scaling.transform(self._extracted_of(key))
                beliefs[key] = self._believed(learner, seen)
            except (ValueError, TypeError, *_FOREIGN):
                continue  # it cannot be used with the present statistics
        said = (example.answer for example in own.values())
        new = (one.y for one in said if one and one.y is not None and _witness_of(one, without))
        labels = list(dict.fromkeys((*(example.y for example in others.values()), *new)))
        heard = _with_answers(own, beliefs, labels)
        return heard, _with_answers(others, found, labels), labels

    def _own_and_others(
        self, annotator: str, without: Collection[str | None]
    ) -> tuple[dict[Any, Example], dict[Any, Example]]:
        """Return the latest examples that one annotator has answered, and those of the others.

        See `answered_by`. An example of the others has the label that they alone have given it.
        Of a label that was not asked for, only what another annotator has said about the event
        counts as such, and is evidence on the first one: one who labels much could otherwise accuse
        others, and what others believe may be long out of date where only one annotator labels.
        """
        own: deque[tuple[Any, Example]] = deque(maxlen=MOST_OWN)
        others: deque[tuple[Any, Example]] = deque(maxlen=_MOST_OF_OTHERS)
        for key, example in self._current().items():
            first = example.answer or SettledAnswer(y=None)
            second = first.second
            was_asked = first.was_asked or first.annotator is None
            if first.annotator == annotator or not was_asked:
                witness = _witness_of(first, (annotator, *without))
                if witness is not None and witness.y is not None:
                    others.append((key, replace(example, y=witness.y, answer=witness)))
                if first.annotator == annotator and (was_asked or witness is not None):
                    own.append((key, example))
                continue
            if first.annotator in without:
                continue
            if second is not None and second.annotator in (annotator, *without):
                word = _before_second(example.y, first, second)
                if second.annotator == annotator:
                    turned = replace(second, second=replace(first, y=word, second=None))
                    own.append((key, replace(example, answer=turned)))
                if word is None:
                    continue
                example = replace(example, y=word)
            others.append((key, example))
        return _told_by_several(own), dict(others)

    def n_heard(self, annotator: str | None) -> int:
        """Return the number of answers of an annotator on record that can be evidence on this one.

        A label that was not asked for can be if another annotator has answered, too, whose answer
        is none. What was taken back is not on record.
        """
        return self._n_heard[annotator]

    def _taught_apart(self, examples: Mapping[Any, Example]) -> tuple[Any, dict[Any, Belief]]:
        """Teach examples to a fresh learner; return it, and its belief about each beforehand."""
        learner = self._template.clone()
        if self._is_restorable:
            self._prime(learner, self._state())
        found: dict[Any, Belief] = {}
        for key, example in examples.items():
            try:
                extracted = self._extracted_of(key)
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
        """Return what the answers will tell; the first questions are mostly those of last time."""
        if self._pending is None:
            self._pending = (), [], self.learner.pending()
        asked, known, told = self._pending
        if asked is questions:
            return told
        n = len(asked)
        # Nearly always so; one by one takes several times as long.
        if len(questions) < n or not all(map(is_, asked, questions)):
            n = _n_same(known, questions)
        if n < len(known):
            del known[n:]
            told.truncate(sum(counts for _, counts in known))
        for question in questions[n:]:
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
        shares = belief.values()
        total = sum(shares)
        if not math.isfinite(total):
            raise ValueError(
                f"{type(self._template).__name__} or its transformers make no finite probabilities "
                "of these features; leave out what is missing, or scale what comes late"
            )
        if None in belief or (total and abs(total - 1.0) > _OFF) or min(shares, default=0.0) < 0.0:
            # No ValueError: the features are not to blame.
            raise RuntimeError(
                f"{type(self._template).__name__}.predict_proba_one must return a probability of "
                "each label, none of them negative, and they must add up to 1, got "
                f"{dict(belief)!r:.200}"
            )
        if _PYTHONS.issuperset(map(type, shares)):
            return belief
        return {label: float(share) for label, share in belief.items()}

    def _check_label(self, y: Label) -> None:
        self.check_class(y)
        if y not in (False, True) and not self._template._multiclass:
            raise ValueError(
                f"{type(self._template).__name__} knows the labels False and True only, got {y!r}; "
                "wrap it in river.multiclass.OneVsRestClassifier"
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

    @property
    def _relabels_exactly(self) -> bool:
        return self._is_restorable


def _with_answers(
    examples: Mapping[Any, Example], beliefs: Mapping[Any, Belief], labels: Sequence[Label]
) -> Answers:
    """Return the first answers about examples with a belief, and these beliefs."""
    answers, found = [], []
    for key, example in examples.items():
        answer = example.answer
        if answer is None or key not in beliefs:
            continue
        if answer.y is None:  # any other label stands in for it
            other = next((label for label in labels if label != example.y), None)
            if other is None:
                continue
            answer = replace(answer, y=other)
        answers.append(answer)
        found.append(beliefs[key])
    return answers, found


def _witness_of(answer: SettledAnswer, without: Collection[str | None]) -> SettledAnswer | None:
    """Return what another annotator has said about an event; None if that is not known."""
    second = answer.second
    if second is None or second.y is None or second.annotator in without:
        return None
    return second


def _evidence_on(example: Example) -> tuple[str | None, ...]:
    """Return the annotators on whom the answers about an event can be evidence; see `n_heard`."""
    first = example.answer
    if first is None:
        return ()
    second = first.second
    if second is None:
        return (first.annotator,) if first.was_asked else ()
    is_other = first.was_asked and second.annotator != first.annotator
    return (first.annotator, second.annotator) if is_other else (first.annotator,)


def _told_by_several(own: Iterable[tuple[Any, Example]]) -> dict[Any, Example]:
    """Return examples of one annotator without what another one alone has told of too many.

    Of labels that were not asked for, only as many count by the second answers of one witness as by
    those of all others, and the latest five more: an annotator who always answers such questions
    first could otherwise accuse another one alone.
    """
    own = list(own)
    told = Counter(second.annotator for _, each in own if (second := _unasked_second(each)))
    left = {name: FEWEST + told.total() - n for name, n in told.items()}
    kept = []
    for key, example in reversed(own):
        second = _unasked_second(example)
        if second is not None:
            left[second.annotator] -= 1
        if second is None or left[second.annotator] >= 0:
            kept.append((key, example))
    return dict(reversed(kept))


def _unasked_second(example: Example) -> SettledAnswer | None:
    """Return the second answer about an example whose first one was not asked for, None if none."""
    answer = example.answer
    return None if answer is None or answer.was_asked else answer.second


def _before_second(y: Label, first: SettledAnswer, second: SettledAnswer) -> Label | None:
    """Return the label that stood before a second answer, None if that is not known.

    `y` is the current one.
    """
    if y != second.y:
        return y
    # Both answers agree, or the second one has prevailed over the label left by a challenge.
    return first.y if first.upheld is not False else None


def _n_same(known: Sequence[_Known], questions: Sequence[PendingQuestion]) -> int:
    """Count the first questions that are the same; features by identity, which is faster."""
    n = 0
    for (one, _), other in zip(known, questions, strict=False):
        if one.x is not other.x or one.target != other.target:
            break
        n += 1
    return n


# --- A learner of numbers, the raw examples that it was taught, and the scaling between the two.


_NOTHING_KNOWN = Normal(mu=0.0, sigma=1.0)


# Quartiles of fewer targets say little.
_FEWEST_TARGETS = 8


class NumberExampleStore(ExampleStore[Distribution]):
    """A River regressor with a record of what it was taught, behind a scaling.

    A regressor that gives no distribution with its predictions is expected to be off by as much as
    before: its forecast is normal, with the mean square of its past errors as variance, each made
    before the target was learned. The variance of the targets counts as one more such error.

    Parameters
    ----------
    template
        The regressor; it is never taught.
    scaling
        How features reach it.

    Attributes
    ----------
    targets
        Mean and spread of the targets on record.

    """

    # targets    a function of the examples on record, in their order
    # _n_errors, _squares  errors of a learner without distributions, and the sum of their squares
    _belief_method = "predict_one"

    def __init__(self, template: Any, scaling: Scaling) -> None:
        super().__init__(template, scaling)
        # They are not passed on here, so those in a log are not learned after a restart either.
        self._takes_privileged = False
        self.targets = Moments()
        self._n_errors = 0
        self._squares = 0.0

    def teach(
        self,
        x: Features,
        y: Label,
        event_id: str | None,
        *,
        privileged: Features | None = None,
        answer: SettledAnswer | None = None,  # noqa: ARG002 - see `load_state`
    ) -> None:
        """Teach an example; if the learner cannot take it, nothing changes.

        Raises
        ------
        NotPositiveDefiniteError
            If a Gaussian process cannot take it.
        TypeError
            If the target is not a number.
        ValueError
            If the target is not finite or too large, the event was already taught, or the learner
            is off by more than its forecasts can express.

        """
        checked = checked_target(y)
        if self._options:
            super().teach(x, y, event_id, privileged=privileged)
            return
        forecast = self.belief(x).mu
        squares = self._squares + (checked - forecast) * (checked - forecast)
        if not math.isfinite(squares):
            # It would be the variance of all forecasts to come.
            raise ValueError(
                f"{type(self._template).__name__} forecasts {forecast:.3g} where {y!r} was "
                "observed, expected an error whose square is finite; scale the features"
            )
        super().teach(x, y, event_id, privileged=privileged)
        self._n_errors += 1
        self._squares = squares

    def state(self) -> State:
        """Return what must survive a restart besides the examples."""
        errors = {} if self._options else {"errors": [self._n_errors, self._squares]}
        return {**super().state(), **errors}

    def load_state(self, state: State, examples: Sequence[Example]) -> None:
        """Restore `state` and `examples` into an object that has learned nothing."""
        self._n_errors, self._squares = state.get("errors", [0, 0.0])
        # Annotators who give numbers are judged by running sums alone.
        super().load_state(state, [replace(example, answer=None) for example in examples])

    def _believed(self, learner: Any, seen: Features) -> Distribution:
        answer = learner.predict_one(seen, **self._options)
        if answer is None:
            # Among River's regressors, AMFRegressor before its first label.
            return _NOTHING_KNOWN
        if not self._options:
            answer = Normal(mu=float(answer), sigma=self._usual_error)
        elif not (type(answer.mu) is type(answer.sigma) is float):
            # Those of River's BayesianLinearRegression are of numpy, which no state record takes.
            answer = Normal(mu=float(answer.mu), sigma=float(answer.sigma))
        if not (math.isfinite(answer.mu) and 0.0 <= answer.sigma < math.inf):
            if not self._examples:
                # Some scalers return nothing finite for the first event, as nothing came before it.
                return _NOTHING_KNOWN
            raise ValueError(
                f"{type(self._template).__name__} or its transformers make no finite forecast of "
                "these features; leave out what is missing, or scale what comes late"
            )
        return answer  # type: ignore[no-any-return]

    @property
    def _usual_error(self) -> float:
        spread = self.targets.std
        return math.sqrt((spread * spread + self._squares) / (1 + self._n_errors))

    @property
    def usual_spread(self) -> float:
        """Standard deviation of most targets, by their quartiles; infinite while there are few."""
        quartiles = Quartiles(float(example.y) for example in self._examples.values())
        return quartiles.scale if quartiles.n >= _FEWEST_TARGETS else math.inf

    def _count_label(self, y: Label) -> None:
        self.targets.add(float(y))

    @property
    def _relabels_exactly(self) -> bool:
        # The statistics of the targets would differ by rounding from those of one trained again.
        return False

    def _check_label(self, y: Label) -> None:
        checked_target(y)

    def _rebuild(self, state: State | None = None) -> None:
        self.targets = Moments()
        for example in self._examples.values():
            self._count_label(example.y)
        super()._rebuild(state)
