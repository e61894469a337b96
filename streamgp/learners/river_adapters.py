"""Adapters for pandas data frames and River estimators; pandas itself is optional."""

from __future__ import annotations

import dis
import math
import secrets
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from river import base
from river.active.base import ActiveLearningClassifier

from streamgp.base import Features, Label, State
from streamgp.common.counter_rng import check_seed, uniform
from streamgp.common.feature_values import LARGEST, is_number
from streamgp.common.signatures import parameters

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


def check_frame(X: object) -> None:
    """Raise TypeError for anything but a pandas data frame."""
    if not (hasattr(X, "iloc") and hasattr(X, "columns")):
        remedy = "X.to_pandas()" if hasattr(X, "to_pandas") else "pandas.DataFrame(X)"
        raise TypeError(
            f"X must be a data frame of pandas, got {type(X).__name__}; {remedy} is one"
        )


def feature_rows(X: pd.DataFrame) -> list[Features]:
    """Return the rows of a data frame as dictionaries of features, each with its column's type.

    Raises
    ------
    TypeError
        If it is not a pandas data frame.
    ValueError
        If two columns have the same name.

    """
    check_frame(X)
    names = X.columns.tolist()
    if not X.columns.is_unique:
        twice = X.columns[X.columns.duplicated()].tolist()[0]
        raise ValueError(f"X has several columns named {twice!r}; rename all but one")
    columns: list[list[Any]] = [X.iloc[:, j].tolist() for j in range(len(names))]
    if not columns:
        return [{} for _ in range(len(X))]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def labelled_rows(X: pd.DataFrame, y: Iterable[Any]) -> list[tuple[Features, Any]]:
    """Return the rows of a data frame, each with its label or target.

    Raises
    ------
    TypeError
        If it is not a pandas data frame.
    ValueError
        If there are not as many labels as rows.

    """
    rows = feature_rows(X)
    return list(zip(rows, one_for_each_row(X, "y", y), strict=True))


def one_for_each_row(X: pd.DataFrame, name: str, values: Any) -> list[Any]:
    """Return values as a list of Python objects; raise ValueError unless there is one per row."""
    if hasattr(values, "columns"):  # a list of it would be the names of its columns
        raise TypeError(
            f"{name} must be a series or a list, got {type(values).__name__}; take one column of it"
        )
    listed = values.tolist() if hasattr(values, "tolist") else list(values)
    if len(listed) != len(X):
        raise ValueError(
            f"{name} must have one value for each row of X, got {len(listed)} for {len(X)} rows"
        )
    return listed


def frame_like(X: pd.DataFrame, columns: dict[Any, Sequence[Any]]) -> pd.DataFrame:
    """Return a data frame with the index of another one."""
    import pandas as pd  # installed, as the caller has a frame

    return pd.DataFrame(columns, index=X.index)


def series_like(X: pd.DataFrame, values: Sequence[Any]) -> pd.Series:
    """Return one value for each row of a data frame."""
    import pandas as pd

    return pd.Series(values, index=X.index, dtype=None if values else object)


# --- River classifiers wrapped by ours: taken apart, and checked.


def split(model: Any, checked: Callable[[Any], Any]) -> tuple[list[Any], Any]:
    """Separate the transformers of a pipeline from the estimator at its end, and check that."""
    from river.compose import Pipeline

    steps = list(model.steps.values()) if isinstance(model, Pipeline) else [model]
    *transformers, learner = steps
    if transformers and hasattr(learner, "query_one"):
        kind = type(learner).__name__
        raise TypeError(
            f"model must be {kind}(transformer | estimator), as it scales and asks by itself, "
            f"got transformer | {kind}"
        )
    return transformers, checked(learner)


def kind_of(value: object) -> str:
    """Return the name of the class of a value, or of a class that was not instantiated.

    Examples
    --------
    >>> kind_of(0.5), kind_of(float)
    ('float', 'the class float')

    """
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def reseeded(value: Any, seed: int, purpose: str, *, missing_only: bool = False) -> Any:
    """Return a clone of a model, where everything random in it has a seed that follows from one.

    Parameters
    ----------
    value
        The model, or a part of one; a list, a tuple or a dictionary stands for clones of what it
        holds.
    seed
        The seed from which the others follow.
    purpose
        What the clone is for: another purpose gives other seeds.
    missing_only
        Whether what has a seed keeps it.

    Examples
    --------
    >>> from river.forest import ARFClassifier
    >>> reseeded(ARFClassifier(), 1, "example").seed
    3601796616
    >>> reseeded(ARFClassifier(seed=7), 1, "example", missing_only=True).seed
    7

    """
    from river.compose import Pipeline, TransformerUnion

    def within(part: Any, name: object) -> Any:
        return reseeded(part, seed, f"{purpose}/{name}", missing_only=missing_only)

    if type(value) in (list, tuple):
        return type(value)(within(part, i) for i, part in enumerate(value))
    if type(value) is dict:
        return {name: within(part, name) for name, part in value.items()}
    if not isinstance(value, base.Base):
        return value
    if isinstance(value, Pipeline | TransformerUnion):
        steps = value.steps if isinstance(value, Pipeline) else value.transformers
        return value.clone({name: within(step, name) for name, step in steps.items()})
    found: dict[str, Any] = {}
    for name in value._get_params():
        part = getattr(value, name, None)  # positional arguments have no name
        if name == "seed" and not (missing_only and part is not None):
            found[name] = int(uniform(seed, purpose, "seed") * 2**32)
        elif isinstance(part, base.Base) or type(part) in (list, tuple, dict):
            found[name] = within(part, name)
    return value.clone(found)


def as_classifier(learner: Any) -> Any:
    """Return a classifier that can be wrapped; raise TypeError for anything else."""
    if not isinstance(learner, base.Classifier) or isinstance(learner, ActiveLearningClassifier):
        raise TypeError(
            "model must be a River classifier that is not an active learner itself, or a pipeline "
            f"that ends in one, got {kind_of(learner)}"
        )
    if type(learner).predict_proba_one is base.Classifier.predict_proba_one:
        raise TypeError(
            f"model must predict probabilities, which {type(learner).__name__} does not; "
            "take one with predict_proba_one"
        )
    return learner


def written_out(estimator: Any, representation: str) -> str:
    """Return River's representation of an estimator, with those inside it written out as well.

    River does so with its own estimators; of others it writes only the name of the class.
    """
    for name in parameters(type(estimator)):
        value = getattr(estimator, name)
        if isinstance(value, base.Estimator):
            inside = repr(value).replace("\n", "\n  ")
            representation = representation.replace(
                f"\n  {name}={value}\n", f"\n  {name}={inside}\n", 1
            )
    return representation


class EstimatorOptions:
    """Optional arguments that the methods of an estimator take, looked up once.

    Parameters
    ----------
    predict
        Name of the method that asks it for a prediction.

    Attributes
    ----------
    predicting
        Arguments with which a prediction includes its uncertainty: `with_dist=True`, where the
        method takes that.
    event_id, privileged, weight
        Whether `learn_one` takes the id of the event, privileged features, a weight `w`.

    Examples
    --------
    >>> from river.naive_bayes import GaussianNB
    >>> from streamgp import GPClassifier
    >>> options = EstimatorOptions(GPClassifier(), "predict_proba_one")
    >>> options.predicting, options.event_id, options.privileged
    ({'with_dist': True}, True, False)
    >>> EstimatorOptions(GaussianNB(), "predict_proba_one").predicting
    {}

    """

    __slots__ = ("event_id", "predicting", "privileged", "weight")

    def __init__(self, estimator: Any, predict: str) -> None:
        takes_dist = "with_dist" in parameters(getattr(estimator, predict))
        self.predicting: dict[str, Any] = {"with_dist": True} if takes_dist else {}
        learned = parameters(estimator.learn_one)
        self.event_id = "event_id" in learned
        self.privileged = "privileged" in learned
        self.weight = "w" in learned


# --- Validation of arguments and targets.


def settings_of(kind: type[T], estimator: Any, **others: Any) -> T:
    """Return settings, a dataclass whose fields are arguments of an estimator or `others`.

    The estimator has kept its arguments under their names. They are not taken from its signature:
    a subclass may have another one.
    """
    kept = vars(estimator)
    given = {field.name: kept[field.name] for field in fields(kind) if field.name in kept}  # type: ignore[arg-type]
    return kind(**given, **others)


def as_target(y: object) -> float | None:
    """Return a number as a float, infinite if it is beyond all floats; None for anything else."""
    try:
        return float(y) if is_number(y) else None  # type: ignore[arg-type]
    except OverflowError:  # an integer beyond the largest float
        return math.inf
    except (TypeError, ValueError):  # an array
        return None


def checked_target(y: object) -> float:
    """Return a target as a float.

    Raises
    ------
    TypeError
        If it is not a number.
    ValueError
        If it is not finite, or further from 0 than `LARGEST`: its square would not be finite.

    Examples
    --------
    >>> checked_target(1e155)
    Traceback (most recent call last):
    ValueError: y must be finite and at most 1e+150 in size, got 1e+155

    """
    value = as_target(y)
    if value is None:
        raise TypeError(f"y must be a number, got {y!r}; do not learn events without a target")
    if not abs(value) <= LARGEST:
        raise ValueError(f"y must be finite and at most {LARGEST:.0e} in size, got {y!r:.60}")
    return value


# --- Learners that keep no examples, as their wrapper sees them.


class Unretained:
    """A learner whose treatment of an example does not depend on which others it retains."""

    @property
    def is_exact(self) -> bool:
        """Whether an example can be relabelled without a trace: no, since none is retained."""
        return False

    @property
    def retains_all(self) -> bool:
        """Whether no example is ever dropped, whatever follows."""
        return True


class Seeded(Unretained, ABC):
    """A learner that retains no example, and whose only other state is the seed of its draws."""

    # _seed  the seed in use: the one given, or one that was drawn
    seed: int | None
    _seed: int

    def _begin_seeded(self) -> None:
        """Begin with the seed given, or draw one."""
        check_seed(self.seed)
        self._seed = secrets.randbits(32) if self.seed is None else int(self.seed)
        self._begin()

    @abstractmethod
    def _begin(self) -> None:
        """Begin with nothing learned, and the seed in use."""

    def state(self) -> State | None:
        """Return the state not determined by the examples, as plain JSON; None if there is none.

        That is a seed in use that was not given. A learner that takes it over with `load_state`,
        and learns all examples in their order, is bitwise this one.
        """
        return None if self._seed == self.seed else {"seed": self._seed}

    def load_state(self, state: State | None) -> None:
        """Take over what `state` returned; this learner has learned nothing yet."""
        if state is not None:
            self._seed = int(state["seed"])
            self._begin()


# --- Class probabilities that River can also take as an active learner's pair.
#
# River's active classifiers return `(probabilities, ask)` from `predict_proba_one`; all other
# classifiers return probabilities. A skeptical classifier returns probabilities that become the
# pair when they are unpacked, which is all that River does with them.

_UNPACK = dis.opmap["UNPACK_SEQUENCE"]


class UnpackableProbabilities(dict[Label, float]):
    """Dictionary of class probabilities; `probabilities, ask = ...` unpacks it into a pair.

    The pair is made when it is first unpacked, by counting the event as
    `SkepticalClassifier.predict_one` does, and stays the same from then on. Nothing else that is
    done with the dictionary counts anything, including a loop over its classes. Copies are plain
    dictionaries.

    Parameters
    ----------
    proba
        Probability of each class.
    ask
        Counts the event; returns its probabilities and whether a label is asked for.

    Attributes
    ----------
    plain
        The probabilities as they were given, for callers that want to keep them.

    Examples
    --------
    >>> proba = UnpackableProbabilities({"home": 0.8, "work": 0.2}, lambda: ({"home": 1.0}, True))
    >>> list(proba), max(proba, key=proba.get)
    (['home', 'work'], 'home')
    >>> known, ask = proba
    >>> known, ask
    ({'home': 1.0}, True)

    """

    __slots__ = ("_ask", "_pair", "plain")

    def __init__(
        self, proba: dict[Label, float], ask: Callable[[], tuple[dict[Label, float], bool]]
    ) -> None:
        dict.__init__(self, proba)  # without super(), which would take longer than all the rest
        self.plain = proba
        self._ask = ask
        self._pair: tuple[dict[Label, float], bool] | None = None

    def __iter__(self) -> Iterator[Any]:
        if not _unpacks_a_pair(sys._getframe(1)):
            return super().__iter__()
        if self._pair is None:
            self._pair = self._ask()
        return iter(self._pair)

    def __reduce__(self) -> tuple[Any, ...]:
        # `ask` holds the learner and the event: neither belongs in a copy or a pickle.
        return dict, (dict(self),)


def _unpacks_a_pair(frame: FrameType) -> bool:
    """Whether the instruction that a frame executes is the assignment `a, b = ...`."""
    # An iterator cannot tell it from a loop over two classes; the caller's instruction can.
    code, at = frame.f_code.co_code, frame.f_lasti
    return code[at] == _UNPACK and code[at + 1] == 2
