"""What helps under concept drift, and what it costs without drift.

Streams from River's generators, between two concepts of the same kind: no change, an abrupt one in
the middle, a slow one through the middle half, and three changes there and back again. All labels
are given; each event is predicted before it is learned. Compared are

* the exact process, which forgets nothing, `GPClassifier()`,
* a bounded one, which does not forget deliberately, `GPClassifier(max_points=200)`,
* the same that falls back to the prior when River's ADWIN detects more errors, with `drift=True`,
* a sliding window, `GPClassifier(window=200)`,
* the bounded one in `SkepticalClassifier(drift_test=DriftTest())`, which forgets what was learned
  before a change in how surprising the labels are, and
* the last label as the prediction, which is hard to beat on many recorded logs.

Features are standardised by the first 200 events. Elec2, from the data folder, in chronological
order: its first 10 000 events with the exact process, and all of them without it. What changes
there, and when, is not known.

Finally, the same streams of one seed where `SkepticalClassifier` asks for labels, of which a fifth
are first given at random: by its own rule, by the same with a minimum probability of asking, and
about a tenth of the events at random; each also with the drift test, which asks about some more.
With the third rule and the learner that detects drift, three scalings are compared, also on streams
where only the sensors change: each feature is shifted, and multiplied by a factor of its own,
through the middle half of the stream.

"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean

import numpy as np

from benchmarks._array_streams import (
    CONCEPTS,
    KINDS,
    ArrayStream,
    as_dictionaries,
    drifting,
    percent,
    played,
    recorded,
    right_exactly,
    right_without_change,
)
from benchmarks._harness import (
    Acceptance,
    Options,
    Outcome,
    Row,
    at_least,
    one_thread,
    progress,
    run,
)
from benchmarks._logs import skipping
from streamgp import DriftTest, GPClassifier, SkepticalClassifier
from streamgp.base import Rescale
from streamgp.query import AskRule, RandomAsk, SkepticalAsk

# --- labels on request, some of them wrong; all other labels stay unknown

_WRONG = 0.2

RULES: Mapping[str, AskRule] = {
    "SkepticalAsk()": SkepticalAsk(),
    "SkepticalAsk(at_least=.05)": SkepticalAsk(at_least=0.05),
    "SkepticalAsk(at_least=.1)": SkepticalAsk(at_least=0.1),
    "RandomAsk(.1)": RandomAsk(0.1),
}


SCALINGS: Mapping[str, Rescale] = {"frozen": False, "renewed": True, "recent": "recent"}


def asked(
    stream: ArrayStream,
    rule: AskRule,
    learner: GPClassifier,
    seed: int,
    *,
    drift_test: DriftTest | None = None,
    warm_up: int = 0,
    rescale: Rescale = False,
) -> dict[str, float]:
    """Run a stream with an annotator whose first answers are random in 20 % of the cases.

    Returns
    -------
    Percentage of right predictions, number of questions, and number of drifts detected.

    """
    rng, n_classes = random.Random(seed), int(stream.y.max()) + 1
    model = SkepticalClassifier(
        learner, rule, drift_test=drift_test, warm_up=warm_up, rescale=rescale, seed=seed
    )
    n_right = n_asked = 0
    for x, y in as_dictionaries(stream):
        predicted, ask = model.predict_one(x)
        n_right += predicted == y
        if ask:
            n_asked += 1
            said = rng.randrange(n_classes) if rng.random() < _WRONG else y
            model.learn_one(x, y, annotation=said)
    n_drifts = model.n_drifts + model.learner.n_drifts  # type: ignore[attr-defined]
    return {
        "right": 100.0 * n_right / len(stream.y),
        "asked": float(n_asked),
        "drifts": float(n_drifts),
    }


# Largest shift of a sensor, in standard deviations, and its factor.
_FARTHEST = 3.0
_MOST_CHANGED = 3.0


def moving(stream: ArrayStream, seed: int) -> ArrayStream:
    """Return the stream as seen by sensors that change through its middle half."""
    n, d = stream.X.shape
    rng = np.random.default_rng(seed)
    offsets = rng.uniform(-_FARTHEST, _FARTHEST, size=d)
    factors = _MOST_CHANGED ** rng.uniform(-1.0, 1.0, size=d)
    passed = np.clip(2.0 * np.arange(n)[:, None] / n - 0.5, 0.0, 1.0)
    return replace(stream, X=stream.X * factors**passed + offsets * passed)


# --- the benchmark

_MAX_POINTS = 200
_WARM_UP = 200
# Number of events beyond which the exact process takes over a minute and two gigabytes.
_MOST_EXACTLY = 10_000
_EXACT, _SPARSE, _WATCHED, _WINDOW = "exact", "sparse", "sparse_+_ADWIN", "window"
_TESTED = "drift_test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs."""

    concepts: Sequence[str] = CONCEPTS
    kinds: Sequence[str] = KINDS
    n_events: int = 5000
    n_seeds: int = 3
    n_recorded: Sequence[int] = (_MOST_EXACTLY, 45_312)
    rules: Sequence[str] = tuple(RULES)
    kinds_asked: Sequence[str] = ("none", "abrupt", "recurring")
    scalings: Sequence[str] = tuple(SCALINGS)


QUICK = Plan(n_events=2000, n_seeds=1, n_recorded=(3000,), scalings=())


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("drift", measure, about=__doc__, argv=argv)


def measure(options: Options, plan: Plan | None = None) -> Outcome:
    """Run all streams."""
    plan = plan or (QUICK if options.quick else Plan())
    with one_thread() as how:
        rows = [row for kind in plan.kinds for row in _rows_of(kind, plan, options.seed)]
        recorded_rows, skipped = _recorded_rows(options, plan)
        asked_rows = [
            _asked_row(rule, kind, plan, options.seed)
            for rule in plan.rules
            for kind in plan.kinds_asked
        ]
        scaled_rows = [_scaled_row(scaling, plan, options.seed) for scaling in plan.scalings]
    return Outcome(
        rows=[*rows, *recorded_rows, *asked_rows, *scaled_rows],
        acceptance=_accepted(rows),
        skipped=skipped,
        notes=[f"One BLAS thread: {how}."],
    )


def _rows_of(kind: str, plan: Plan, first: int) -> list[Row]:
    """Return a row for each pair of concepts, and one for their mean."""
    rows: list[Row] = []
    scores: list[dict[str, float]] = []
    for concept in plan.concepts:
        found = []
        for seed in range(first, first + plan.n_seeds):
            progress(f"{concept}, {kind}, seed {seed}")
            stream = drifting(concept, kind, plan.n_events, seed)
            found.append({_EXACT: percent(right_exactly(stream)), **_scores(stream)})
        scores.append(_means(found))
        rows.append({"drift": kind, "concepts": concept, **scores[-1]})
    return [*rows, {"drift": kind, "concepts": "mean", **_means(scores)}]


def _recorded_rows(options: Options, plan: Plan) -> tuple[list[Row], list[str]]:
    rows: list[Row] = []
    skipped: list[str] = []
    with skipping(skipped):
        for n in plan.n_recorded:
            progress(f"elec2, {n} events")
            stream = recorded("elec2", options.data, n)
            exact = percent(right_exactly(stream)) if n <= _MOST_EXACTLY else None
            name = f"Elec2, {len(stream.y)} events"
            rows.append({"drift": "unknown", "concepts": name, _EXACT: exact, **_scores(stream)})
    return rows, skipped


def _scores(stream: ArrayStream) -> dict[str, float]:
    """Return the accuracy of each contender in percent, and the number of drifts detected."""
    models = _models()
    scores = {name: percent(played(stream, model)[0]) for name, model in models.items()}
    scores["no_change"] = percent(right_without_change(stream))
    n_found = {"drifts_found": float(models[_WATCHED].n_drifts)}
    return {**scores, **n_found, **_taught_and_tested(stream)}


def _taught_and_tested(stream: ArrayStream) -> dict[str, float]:
    """Return the accuracy with the drift test where all labels are given, and the drifts found."""
    model = SkepticalClassifier(_models()[_SPARSE], warm_up=0, drift_test=DriftTest(), seed=1)
    n_right = 0
    for x, y in as_dictionaries(stream):
        n_right += model.predict_one(x)[0] == y
        model.learn_one(x, y)
    right = 100.0 * n_right / len(stream.y)
    return {_TESTED: right, f"{_TESTED}_found": float(model.n_drifts)}


def _models() -> dict[str, GPClassifier]:
    return {
        _SPARSE: GPClassifier(max_points=_MAX_POINTS),
        _WATCHED: GPClassifier(max_points=_MAX_POINTS, drift=True),
        _WINDOW: GPClassifier(window=_MAX_POINTS),
    }


def _asked_row(rule: str, kind: str, plan: Plan, seed: int) -> Row:
    """Return means over all pairs of concepts where labels are asked for."""
    progress(f"{rule}, {kind}")
    streams = [drifting(concept, kind, plan.n_events, seed) for concept in plan.concepts]
    found = {
        name: _means([asked(stream, RULES[rule], model.clone(), seed) for stream in streams])
        for name, model in _models().items()
    }
    tested = _means(
        [
            asked(stream, RULES[rule], _models()[_SPARSE], seed, drift_test=DriftTest())
            for stream in streams
        ]
    )
    return {
        "asked_by": rule,
        "drift": kind,
        **{name: scores["right"] for name, scores in found.items()},
        "questions": found[_WATCHED]["asked"],
        "drifts_found": found[_WATCHED]["drifts"],
        _TESTED: tested["right"],
        f"{_TESTED}_questions": tested["asked"],
        f"{_TESTED}_found": tested["drifts"],
    }


def _scaled_row(scaling: str, plan: Plan, seed: int) -> Row:
    """Return means over all pairs of concepts with a scaling."""
    progress(f"scaling {scaling}")
    row: Row = {"scaling": scaling}
    for change in ("none", "sensors", *plan.kinds_asked[1:]):
        streams = [
            drifting(concept, "none" if change == "sensors" else change, plan.n_events, seed)
            for concept in plan.concepts
        ]
        if change == "sensors":
            streams = [moving(stream, seed) for stream in streams]
        found = [
            asked(
                stream,
                RULES["SkepticalAsk(at_least=.1)"],
                _models()[_WATCHED],
                seed,
                warm_up=_WARM_UP,
                rescale=SCALINGS[scaling],
            )
            for stream in streams
        ]
        scores = _means(found)
        row |= {change: scores["right"], f"{change}_questions": scores["asked"]}
    return row


def _means(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: mean(one[name] for one in found) for name in found[0]}


def _accepted(rows: Sequence[Row]) -> list[Acceptance]:
    """Check the orderings, which also hold in a shorter run."""
    means = {row["drift"]: row for row in rows if row["concepts"] == "mean"}
    wanted = [
        # Kind of drift, the better and the worse learner, and the gain in points.
        ("none", _WATCHED, _SPARSE, -0.5),
        ("abrupt", _WATCHED, _SPARSE, 5.0),
        ("gradual", _WINDOW, _SPARSE, 5.0),
        ("gradual", _WATCHED, _SPARSE, 2.0),
        ("recurring", _WATCHED, _SPARSE, 5.0),
        ("none", _TESTED, _SPARSE, -0.5),
        ("abrupt", _TESTED, _SPARSE, 5.0),
        ("recurring", _TESTED, _SPARSE, 5.0),
    ]
    return [
        at_least(
            f"{kind} drift: {one.replace('_', ' ')} over {other}",
            means[kind][one] - means[kind][other],
            gain,
        )
        for kind, one, other, gain in wanted
        if kind in means
    ]
