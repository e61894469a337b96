"""Wrong labels and careless annotators, against cleanlab and crowd-kit at the end of the stream.

Five logs, 2000 events each, as recorded where rows follow each other in time, otherwise in random
order; whatever `isgp()` asks is answered.

Wrong labels: one annotator who errs in 10, 20 or 40 % of the answers, evenly distributed over the
other classes, or in 20 % with always the next class. A challenge is sent when the label arrives.
cleanlab ranks the same first answers when all of them are there, by the probability that a
classifier of scikit-learn gives to the label in a cross-validation of five folds; as many of them
as were challenged count as found. Labels of classes with fewer than five are not ranked. Shown are
the shares of the wrong first answers that were found.

Careless annotators: three who err in 5, 20 and 40 % of their answers, and a share of the questions
that is put to a second one as well. Shown are the mean distance of their estimated error rates from
the share of their answers that were wrong, and the share of labels that are wrong at the end. The
models of Dawid and Skene in crowd-kit have the answers to all questions, and nothing else; CROWDLAB
of cleanlab has the features, too, by way of a classifier; `estimate_annotators` also uses features
and answers to challenges. What CROWDLAB says of annotators is a score, and no error rate.

"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from statistics import mean
from typing import Any, TypeAlias

import numpy as np
from river import metrics

from benchmarks._harness import Options, Outcome, Row, progress, run
from benchmarks._logs import Log, read_all
from streamgp import AnnotatorPanel, SimulatedAnnotator, interactive_val_score, isgp
from streamgp.base import Array, Features, Label
from streamgp.interactive import Answer, Challenge, People, Request
from streamgp.simulation import Annotator

_N_FOLDS = 5
_NEEDED = ("cleanlab", "crowdkit", "sklearn")
_CROWD = {"Dawid and Skene": "DawidSkene", "one coin": "OneCoinDawidSkene"}
_COUNTS = ("labels", "wrong labels", "challenges")
_PANEL = (0.05, 0.2, 0.4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs."""

    logs: Sequence[str] = ("wifi_rooms", "wisdm", "places_1", "occupancy", "pendigits")
    n_events: int = 2000
    n_seeds: int = 3
    error_rates: Sequence[float] = (0.1, 0.2, 0.4)
    overlaps: Sequence[float] = (0.1, 0.2, 1.0)


# Of fewer events, those of wifi_rooms would all have one class.
QUICK = Plan(n_events=1000, n_seeds=1, error_rates=(0.2,), overlaps=(1.0,))


class Confuser(SimulatedAnnotator):
    """An annotator whose wrong answers are always the class after the true one."""

    def _label(self, request: Request, truth: Label) -> Label | None:
        y = super()._label(request, truth)
        if y is None or y == truth:
            return y
        labels = list(self._known)
        return labels[(labels.index(truth) + 1) % len(labels)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One answer to a label request."""

    event_id: str
    x: Features
    y: Label
    truth: Label
    annotator: str | None


@dataclass
class Listener:
    """An annotator, and what was said: answers to label requests, and events challenged."""

    annotator: Annotator
    said: list[Said] = field(default_factory=list)
    challenged: set[str] = field(default_factory=set)

    def see(self, truth: Label) -> None:
        """Learn that a label exists."""
        self.annotator.see(truth)

    def answer(self, request: Request, truth: Label | None, now: float) -> Answer | None:
        """Answer, and record it."""
        answer = self.annotator.answer(request, truth, now)
        if isinstance(request, Challenge):
            self.challenged.add(request.event_id)
        elif answer is not None and answer.y is not None and truth is not None:
            self.said.append(
                Said(
                    event_id=request.event_id,
                    x=request.x,
                    y=answer.y,
                    truth=truth,
                    annotator=answer.annotator,
                )
            )
        return answer


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("label_errors", measure, about=__doc__, argv=argv)


def measure(options: Options, *, plan: Plan | None = None) -> Outcome:
    """Run all logs with one annotator, and with three."""
    plan = plan or (QUICK if options.quick else Plan())
    lacking = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if lacking:
        return Outcome(
            rows=[], skipped=[f"{name} (install the extra label-errors)" for name in lacking]
        )
    logs, missing = read_all(plan.logs, options.data, plan.n_events)
    seeds = range(options.seed, options.seed + plan.n_seeds)
    people: dict[str, tuple[type[SimulatedAnnotator], float]] = {
        **{f"{rate:.0%}": (SimulatedAnnotator, rate) for rate in plan.error_rates},
        "20%, next class": (Confuser, 0.2),
    }
    rows: list[Row] = []
    for name, (kind, rate) in people.items():
        progress(f"wrong answers: {name}")
        runs = [[searched(log, partial(kind, rate), seed) for seed in seeds] for log in logs]
        for log, of_log in zip(logs, runs, strict=True):
            rows.append({"log": log.name, "wrong": name, **_pooled(of_log)})
        rows.append({"log": "all", "wrong": name, **_pooled(list(chain.from_iterable(runs)))})
    for overlap in plan.overlaps:
        progress(f"{overlap:.0%} of the questions put twice")
        rows.append(_judged(logs, seeds, overlap))
    return Outcome(rows=rows, skipped=missing, notes=[f"{plan.n_seeds} seeds."])


def played(log: Log, annotator: Annotator, seed: int, **people: Any) -> tuple[Listener, Any, Any]:
    """Run a log once; return what was said, the model and the result."""
    order = "recorded" if "recorded" in log.orders else "random"
    model, listener = isgp(seed=seed), Listener(annotator)
    result = interactive_val_score(
        log.played(order, seed),
        model,
        metrics.Accuracy(),
        annotator=listener,
        people=People(**people),
    )
    return listener, model, result


# --- wrong labels


def searched(log: Log, annotator: Callable[..., SimulatedAnnotator], seed: int) -> dict[str, int]:
    """Run a log once; count the labels, those that are wrong, and those found by each method."""
    one = annotator(classes=log.classes, seed=seed)
    heard, _, _ = played(log, one, seed)
    is_wrong = np.array([said.y != said.truth for said in heard.said])
    challenged = np.array([said.event_id in heard.challenged for said in heard.said])
    found = {"challenged": challenged}
    for name, scores in label_scores(heard.said).items():
        found[name] = np.isfinite(scores)
        found[name][np.argsort(scores, kind="stable")[challenged.sum() :]] = False
    counts = {"labels": len(is_wrong), "wrong labels": is_wrong, "challenges": challenged}
    counts |= {name: is_wrong & those for name, those in found.items()}
    return {name: int(np.sum(count)) for name, count in counts.items()}


def _pooled(runs: Sequence[Mapping[str, int]]) -> Row:
    """Return mean numbers of labels and challenges, and the shares found of all wrong labels."""
    total = {name: sum(run[name] for run in runs) for name in runs[0]}
    n_wrong = total["wrong labels"]
    return {
        name: count / len(runs) if name in _COUNTS else count / n_wrong if n_wrong else None
        for name, count in total.items()
    }


def label_scores(said: Sequence[Said]) -> dict[str, Array]:
    """Return cleanlab's score of each label, by classifier: the lower, the more likely wrong.

    It is infinite for classes with fewer labels than folds.
    """
    from cleanlab.rank import get_label_quality_scores

    X, y = _matrix([one.x for one in said]), [one.y for one in said]
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    many = counts[codes] >= _N_FOLDS
    _, codes = np.unique(codes[many], return_inverse=True)
    scores = {name: np.full(len(said), np.inf) for name in _classifiers()}
    if codes.any():  # else there is nothing to tell apart
        for name, p in _cross_validated(X[many], codes):
            scores[name][many] = get_label_quality_scores(codes, p, method="self_confidence")
    return scores


def _cross_validated(X: Array, codes: Array) -> Iterator[tuple[str, Array]]:
    """Yield the probabilities of all classes by each classifier, from a cross-validation."""
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    folds = StratifiedKFold(_N_FOLDS, shuffle=True, random_state=0)
    for name, classifier in _classifiers().items():
        yield name, cross_val_predict(classifier, X, codes, cv=folds, method="predict_proba")


def _matrix(xs: Sequence[Features]) -> Array:
    names = sorted({name for x in xs for name in x})
    return np.array([[x.get(name, np.nan) for name in names] for x in xs], dtype=float)


def _classifiers() -> Mapping[str, Any]:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kinds = {
        "logistic regression": LogisticRegression(max_iter=1000),
        "random forest": RandomForestClassifier(200, random_state=0),
        "10 neighbours": KNeighborsClassifier(10),
        "Gaussian process": GaussianProcessClassifier(RBF(3.0), random_state=0),
    }
    return {
        name: make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(), kind)
        for name, kind in kinds.items()
    }


# --- careless annotators

Estimates: TypeAlias = Mapping[str | None, float]


def _judged(logs: Sequence[Log], seeds: Sequence[int], overlap: float) -> Row:
    """Return the errors of the estimates, and the shares of wrong labels, means over all runs."""
    rows = []
    for log in logs:
        for seed in seeds:
            panel = AnnotatorPanel(
                [
                    SimulatedAnnotator(rate, classes=log.classes, seed=seed, name=f"{i}")
                    for i, rate in enumerate(_PANEL)
                ],
                seed=seed,
            )
            heard, model, result = played(log, panel, seed, overlap=overlap)
            shares = wrong_shares(heard.said)
            own = {name: one.error_rate for name, one in model.estimate_annotators().items()}
            # Nothing is left of an annotator in quarantine but the running estimate.
            own = {name: model.error_rate(name) for name in shares} | own
            row: Row = {
                "answers": len(heard.said),
                "challenges": result.n_challenges,
                "off, streamgp": _distance(own, shares),
                "wrong, streamgp": result.wrong_kept or 0.0,
            }
            for name, kind in _CROWD.items():
                estimates, wrong = by_crowdkit(kind, heard.said)
                row[f"off, {name}"] = _distance(estimates, shares)
                row[f"wrong, {name}"] = wrong
            for name, wrong in by_crowdlab(heard.said).items():
                row[f"wrong, CROWDLAB, {name}"] = wrong
            rows.append(row)
    return {"overlap": overlap, **{name: mean(row[name] for row in rows) for name in rows[0]}}


def wrong_shares(said: Sequence[Said]) -> dict[str | None, float]:
    """Return the share of wrong answers of each annotator."""
    names = dict.fromkeys(one.annotator for one in said)
    return {
        name: mean(one.y != one.truth for one in said if one.annotator == name) for name in names
    }


def by_crowdkit(kind: str, said: Sequence[Said]) -> tuple[Estimates, float]:
    """Return each annotator's error rate by a model of crowd-kit, and its share of wrong labels."""
    import pandas as pd
    from crowdkit import aggregation

    answers = pd.DataFrame(
        {
            "task": [one.event_id for one in said],
            "worker": [one.annotator for one in said],
            "label": [one.y for one in said],
        }
    )
    model = getattr(aggregation, kind)(n_iter=100)
    labels, p = model.fit_predict(answers), model.probas_
    truths = {one.event_id: one.truth for one in said}
    wrong = mean(bool(labels[event] != truth) for event, truth in truths.items())
    doubts: dict[str | None, list[float]] = {}
    for one in said:
        doubts.setdefault(one.annotator, []).append(1.0 - float(p.loc[one.event_id, one.y]))
    return {name: mean(each) for name, each in doubts.items()}, wrong


def by_crowdlab(said: Sequence[Said]) -> dict[str, float]:
    """Return the share of wrong labels by CROWDLAB of cleanlab, with each classifier.

    The classifiers learn the first answer to each question, in a cross-validation: there are two at
    most, and of two that differ neither has a majority.
    """
    import pandas as pd
    from cleanlab.multiannotator import get_label_quality_multiannotator

    labels, codes = np.unique([one.y for one in said], return_inverse=True)
    events = [one.event_id for one in said]
    answers = pd.DataFrame(
        {"task": events, "worker": [one.annotator for one in said], "label": codes}
    ).pivot(index="task", columns="worker", values="label")
    first = [events.index(event) for event in answers.index]
    X, y = _matrix([said[n].x for n in first]), codes[first]
    truths = np.array([said[n].truth for n in first])
    found = {}
    for name, known in _cross_validated(X, y):
        p = np.zeros((len(X), len(labels)))
        p[:, np.unique(y)] = known
        result = get_label_quality_multiannotator(answers, p, verbose=False)
        best = result["label_quality"]["consensus_label"].to_numpy(dtype=int)
        found[name] = float(np.mean(labels[best] != truths))
    return found


def _distance(estimates: Estimates, shares: Estimates) -> float:
    return mean(abs(estimates[name] - share) for name, share in shares.items())
