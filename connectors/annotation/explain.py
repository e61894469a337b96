"""Explanation of a question: why it is asked, and how its event compares with labelled ones.

A reason is a code with parameters, which a user interface words in its own language; `words` gives
the English text. It is derived from the request (rule, score, threshold) and, if known, the
probabilities of the prediction and the averages of the classes.

"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from math import inf, sqrt
from typing import Any, Final, TypeAlias

from connectors.annotation.label_text import shown_label
from connectors.annotation.timeline import Typed, typed_label
from streamgp.base import FeatureName, Features, Label, Neighbour
from streamgp.common.latest import Latest
from streamgp.common.running_stats import Moments
from streamgp.interactive.messages import (
    ASKED_AGAIN,
    SAME_ANNOTATOR,
    SECOND_ANNOTATOR,
    Challenge,
    Excerpt,
    LabelledExample,
    LabelRequest,
    Prediction,
    Request,
)

# --- Usual values: the average of every feature in every class, for people who look at an event.
#
# Rounding errors of removed values remain: the averages are only displayed, no decision uses them.

_MAX_KEYS = 256
_FEWEST = 3
"""Number of examples from which a class's own spread is used."""
_FAR_STDS = 4.0
"""Root mean square distance, in a class's standard deviations, beyond which an event is unlike
it."""


class _Moments(Moments):
    """Moments without a spread that rounding alone has left; `std` is 0 if there is none."""

    __slots__ = ()

    def remove(self, value: float, weight: float = 1) -> None:
        before = self.m2
        super().remove(value, weight)
        if self.n <= 1 or self.m2 <= 1e-12 * before:
            self.m2 = 0.0

    @property
    def std(self) -> float:
        return sqrt(self.variance)


@dataclass(slots=True)
class _OfKey:
    """Averages of the features over all examples of a key, and over those of each class."""

    # labels  of the events that are counted
    overall: dict[FeatureName, _Moments] = field(default_factory=dict)
    by_class: dict[Typed, dict[FeatureName, _Moments]] = field(default_factory=dict)
    labels: dict[str, Typed] = field(default_factory=dict)

    def add(self, line: LabelledExample, label: Label) -> None:
        """Count an example, which has a label."""
        typed = self.labels[line.event_id] = typed_label(label)
        in_class = self.by_class.setdefault(typed, {})
        for name, value in line.x.items():
            if _is_number(value):
                for means in (self.overall, in_class):
                    means.setdefault(name, _Moments()).add(value)

    def remove(self, line: LabelledExample) -> None:
        """Do not count the event of a line any more, if it is counted."""
        typed = self.labels.pop(line.event_id, None)
        if typed is None:
            return
        for means in (self.overall, self.by_class[typed]):
            for name in [name for name in line.x if name in means and _is_number(line.x[name])]:
                means[name].remove(line.x[name])
                if not means[name].n:
                    del means[name]
        if not self.by_class[typed] and typed not in self.labels.values():
            del self.by_class[typed]

    def rank(self, name: FeatureName, value: Any) -> tuple[bool, float, float]:
        """Return the sort key of a feature of an event; see `Averages.order`."""
        overall = self.overall.get(name)
        if overall is None or not _is_number(value):
            return True, 0.0, 0.0
        means = [means[name] for means in self.by_class.values() if name in means]
        between = sum(of_class.n * (of_class.mean - overall.mean) ** 2 for of_class in means)
        # Rounded to nine digits, so that rounding errors do not decide the order.
        share = round(between / overall.m2, 9) if overall.m2 else 0.0
        gap = max(abs(value - of_class.mean) for of_class in means)
        return False, -share, -(gap / overall.std if overall.std else (inf if gap else 0.0))

    def distances(self, x: Features) -> list[float]:
        """Return the distance of an event from each class; see `Averages.is_unlike_all`."""
        return [self._distance(means, x) for means in self.by_class.values()]

    def _distance(self, means: Mapping[FeatureName, _Moments], x: Features) -> float:
        squares = []
        for name, value in x.items():
            of_class, overall = means.get(name), self.overall.get(name)
            if of_class is None or overall is None or not _is_number(value):
                continue
            std = of_class.std if of_class.n >= _FEWEST else overall.std
            gap = value - of_class.mean
            if std:
                squares.append((gap / std) ** 2)
            elif gap and overall.std:
                squares.append((gap / overall.std) ** 2)
        return sqrt(sum(squares) / len(squares)) if squares else 0.0


class Averages:
    """Averages over the labelled examples of each of the most recent keys.

    Examples
    --------
    >>> averages = Averages()
    >>> for n, (light, y) in enumerate([(1.0, "den"), (3.0, "den"), (8.0, "hall")], start=1):
    ...     averages.learn(
    ...         LabelledExample(
    ...             event_id=f"e{n}", sequence=n, x={"light": light, "noise": 5.0}, y=y,
    ...             origin="asked", learned_at=0.0,
    ...         )
    ...     )
    >>> averages.mean(None, "den", "light")
    2.0
    >>> averages.order(None, {"noise": 5.0, "light": 8.0})
    ['light', 'noise']

    """

    def __init__(self, max_keys: int = _MAX_KEYS) -> None:
        self._of: Latest[str | None, _OfKey] = Latest(max_keys)

    def learn(self, line: LabelledExample) -> None:
        """Count an example in place of the former one of its event; none if it is taken back."""
        found = self._known(line.key)
        self._of.put(line.key, found)
        found.remove(line)
        if line.y is not None:
            found.add(line, line.y)

    def forget(self, key: str | None) -> None:
        self._of.pop(key, None)

    def mean(self, key: str | None, label: Label, name: FeatureName) -> float | None:
        """Return the average of a feature in a class; None if there is none."""
        mean = self._known(key).by_class.get(typed_label(label), {}).get(name)
        return None if mean is None else mean.mean

    def nearest(self, key: str | None, x: Features, n: int) -> list[Label]:
        """Return the `n` classes nearest to an event, in the order of their first example.

        The distance is that of `is_unlike_all`.
        """
        found = self._known(key)
        far = found.distances(x)
        wanted = nsmallest(n, range(len(far)), key=lambda i: far[i])
        return [y for i, (_, y) in enumerate(found.by_class) if i in wanted]

    def order(self, key: str | None, x: Features) -> list[FeatureName]:
        """Return the features of an event, those that best distinguish the classes first.

        They are sorted by the share of the variance between class averages in their total variance
        (the correlation ratio). Of two features with the same share, the one whose value in the
        event is farther from an average, in standard deviations, comes first. Features about which
        nothing is known come last, in their order.
        """
        found = self._known(key)
        return sorted(x, key=lambda name: found.rank(name, x[name]))

    def is_unlike_all(self, key: str | None, x: Features) -> bool:
        """Return whether an event is far from every class: nothing like it was labelled before.

        The distance from a class is the root mean square, over the features, of the distances from
        its averages in its standard deviations. For classes with fewer than three examples, whose
        spread is not known, the spread of all examples is used.
        """
        return min(self._known(key).distances(x), default=0.0) > _FAR_STDS

    def _known(self, key: str | None) -> _OfKey:
        return self._of.get(key) or _OfKey()


def _is_number(value: object) -> bool:
    """Return whether a feature can be averaged."""
    return isinstance(value, int | float) and not isinstance(value, bool)


# --- Why a question is asked.

Why: TypeAlias = dict[str, Any]
"""A `code`, its parameters, and the English `text`; plain JSON values."""

CODES: Final[Mapping[str, str]] = {
    "SkepticalAsk": "unsure",
    "PaperAsk": "unsure",
    "AlwaysAsk": "every",
    "RandomAsk": "random",
    "DriftTest": "still_true",
    "Entropy": "several",
    "LeastConfidence": "unlikely",
    "BestVersusSecond": "two",
    "Variance": "unsure",
    "KL": "disagree",
    "Deterministic": "disagree",
    "EqualErrorAsk": "unsure",
    "SkepticalChallenge": "doubtful",
    "PaperChallenge": "doubtful",
    "AlwaysChallenge": "other_predicted",
    "OutsideInterval": "outside",
    "LeaveOneOutReview": "doubtful_since",
    "ReservoirAsk": "informative",
    ASKED_AGAIN: "again",
    SECOND_ANNOTATOR: "second",
    SAME_ANNOTATOR: "repeat",
}
"""Reason codes of the rules, by their names in a request."""

TEXTS: Final[Mapping[str, str]] = {
    "first": "nothing was known when this was asked",
    "new": "nothing like this was seen before",
    "unsure": "the prediction is uncertain",
    "several": "several labels are about equally likely",
    "unlikely": "no label is likely",
    "two": "two labels are about equally likely",
    "disagree": "several models predict different things",
    "every": "every event is asked about",
    "random": "a random check",
    "still_true": "to test whether what was learned is still true",
    "again": "asked again because an annotator is in quarantine",
    "second": "asked of a second annotator, to compare",
    "repeat": "asked once more, to compare",
    "informative": "of the latest events, its label would help most",
    "doubtful": "the label does not fit what was learned before",
    "doubtful_since": "the label does not fit what was learned since",
    "other_predicted": "another label was expected",
    "outside": "the number lies outside the interval that was expected",
    "rule": "a rule of this deployment asks",
}
"""English text of each code without numbers."""

_OF_SHARES = frozenset({"unsure", "several", "unlikely", "two"})
_SURE = 0.9
"""Probability from which a question is no sign of doubt."""


@dataclass(frozen=True, slots=True)
class Shares:
    """The prediction of an event at the time of the question.

    Parameters
    ----------
    ranked
        The most probable labels with their probabilities, the most probable first; at most three.
    n_classes
        Number of labels with a probability.
    y
        The prediction; a mean if targets are numbers. None before the first label.
    std
        Standard deviation of an observation, if targets are numbers.

    """

    ranked: tuple[tuple[Label, float], ...]
    n_classes: int
    y: Label | None
    std: float | None = None


def shares_of(prediction: Prediction) -> Shares:
    """Return the part of a prediction that is kept.

    Examples
    --------
    >>> from streamgp.base import Decision
    >>> shares_of(Prediction(
    ...     event_id="e1", y="hall", proba={"den": 0.25, "hall": 0.75}, n_learned=2, at=0.0,
    ...     decision=Decision(ask=True, score=0.25, threshold=0.1, criterion="SkepticalAsk"),
    ... )).ranked
    (('hall', 0.75), ('den', 0.25))

    """
    ranked = sorted(prediction.proba.items(), key=lambda item: -item[1])[:3]
    n_classes = len(prediction.proba)
    return Shares(tuple(ranked), n_classes, prediction.y, prediction.std)


def why(request: Request, shares: Shares | None = None, *, is_new: bool = False) -> Why:
    """Return why a question is asked.

    Parameters
    ----------
    shares
        The prediction, None if not known.
    is_new
        Whether nothing like the event was labelled before.

    Examples
    --------
    >>> ask = LabelRequest(
    ...     request_id="e1/label", event_id="e1", x={}, reason="SkepticalAsk", score=0.3,
    ...     threshold=0.1, requested_at=0.0,
    ... )
    >>> shares = Shares((("walking", 0.44), ("cycling", 0.41)), 3, "walking")
    >>> why(ask, shares)["text"]
    'not sure: walking 44 %, cycling 41 %'
    >>> why(ask)["text"]
    'the prediction is uncertain'

    """
    code = CODES.get(request.reason, "rule")
    found: Why = {"code": code}
    if isinstance(request, LabelRequest) and code in (*_OF_SHARES, "disagree"):
        if shares is not None and shares.y is None:
            found = {"code": "first"}
        elif is_new:
            found = {"code": "new"}
        elif shares is not None and code in _OF_SHARES and shares.ranked:
            found = _of_shares(code, shares.ranked)
    elif isinstance(request, Challenge):
        found["share"] = likely(request)
    elif code == "rule":
        found["rule"] = request.reason
    return {**found, "text": words(found)}


def _of_shares(code: str, ranked: Sequence[tuple[Label, float]]) -> Why:
    first, first_share = ranked[0]
    if first_share >= _SURE:  # the rule asked at random
        return {"code": "random"}
    found: Why = {"code": code, "first": first, "first_share": first_share}
    if len(ranked) > 1:
        found["second"], found["second_share"] = ranked[1]
    return found


def words(why: Why) -> str:
    """Return a reason in English.

    Examples
    --------
    >>> words({"code": "new"})
    'nothing like this was seen before'

    """
    if "first" in why:
        shares = f"{shown_label(why['first'])} {percent(why['first_share'])}"
        if "second" in why:
            shares += f", {shown_label(why['second'])} {percent(why['second_share'])}"
        return f"not sure: {shares}"
    return TEXTS[why["code"]]


def percent(share: float) -> str:
    """Return a probability as text, never 0 or 100 % for what is not certain.

    Examples
    --------
    >>> percent(0.444), percent(0.999), percent(0.001)
    ('44 %', '99 %', '1 %')

    """
    return f"{min(99, max(1, round(100 * share)))} %"


def likely(challenge: Challenge) -> float:
    """Return the probability that the label of a challenge is wrong."""
    return min(1.0, max(0.0, challenge.probability_wrong))


# --- The features of an event and their comparison values; its location.

MAX_EXAMPLES = 3
MAX_CLASSES = 5
"""The largest number of classes whose averages are shown beside the features."""
_LATITUDES = ("lat", "latitude")
_LONGITUDES = ("lon", "lng", "longitude")


def feature_rows(request: Request, averages: Averages) -> list[dict[str, Any]]:
    """Return the features of an event, those that best distinguish classes first.

    Returns
    -------
    For each feature its `name`, its `value` and `mean_by_class`, a list of `[label, mean]` of the
    classes nearest to the event, at most `MAX_CLASSES`.

    """
    key, x = request.key, request.x
    classes = averages.nearest(key, x, MAX_CLASSES)
    return [
        {
            "name": name,
            "value": x[name],
            "mean_by_class": [
                [y, mean] for y in classes if (mean := averages.mean(key, y, name)) is not None
            ],
        }
        for name in averages.order(key, x)
    ]


def examples(challenge: Challenge, averages: Averages) -> list[dict[str, Any]]:
    """Return the closest earlier examples of a challenge, with the features in which they differ.

    Features that all of them share with the event are left out.

    Returns
    -------
    For each its `event_id`, its `label` and `x`, a list of `{"name", "value", "differs"}`.

    """
    near = challenge.neighbours[:MAX_EXAMPLES]
    names = differing(challenge.x, near, averages.order(challenge.key, challenge.x))
    return [
        {
            "event_id": one.event_id,
            "label": one.y,
            "x": [
                {
                    "name": name,
                    "value": one.x.get(name),
                    "differs": _differs(name, one, challenge.x),
                }
                for name in names
            ],
        }
        for one in near
    ]


def differing(
    x: Features, near: Sequence[Neighbour], names: Sequence[FeatureName]
) -> list[FeatureName]:
    """Return the features in which at least one example differs from an event.

    Examples
    --------
    >>> near = [Neighbour(event_id="e1", x={"light": 1.0, "noise": 5.0}, y="den", distance=1.0)]
    >>> differing({"light": 2.0, "noise": 5.0}, near, ["noise", "light"])
    ['light']

    """
    return [name for name in names if any(_differs(name, one, x) for one in near)]


def _differs(name: FeatureName, one: Neighbour, x: Features) -> bool:
    return name not in one.x or bool(one.x[name] != x[name])


def track(x: Features, excerpt: Excerpt | None) -> list[list[float]] | None:
    """Return the location of an event: `[latitude, longitude]` pairs in degrees, None if not known.

    Taken from the channels `lat` or `latitude` and `lon`, `lng` or `longitude` of the excerpt,
    otherwise from the features of these names, in any case.

    Examples
    --------
    >>> track({"Lat": 52.5, "lng": 13.4}, None)
    [[52.5, 13.4]]
    >>> track({}, {"latitude": [52.5, 52.6], "longitude": [13.4, 13.5]})
    [[52.5, 13.4], [52.6, 13.5]]

    """
    if excerpt is not None:
        latitudes, longitudes = _named(excerpt, _LATITUDES), _named(excerpt, _LONGITUDES)
        if latitudes is not None and longitudes is not None:
            points = [
                [a, b] for a, b in zip(latitudes, longitudes, strict=False) if _is_place(a, b)
            ]
            if points:
                return points
    latitude, longitude = _named(x, _LATITUDES), _named(x, _LONGITUDES)
    return [[latitude, longitude]] if _is_place(latitude, longitude) else None


def _named(values: Mapping[Any, Any], names: Sequence[str]) -> Any:
    for name, value in values.items():
        if isinstance(name, str) and name.casefold() in names:
            return value
    return None


def _is_place(latitude: Any, longitude: Any) -> bool:
    if not (_is_number(latitude) and _is_number(longitude)):
        return False
    return bool(abs(latitude) <= 90.0 and abs(longitude) <= 180.0)
