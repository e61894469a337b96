"""The synthetic experiment of the ISGP paper (Sec. 5.1): six classes, a careless annotator.

600 points, 100 per class; ten stratified folds, five seeds (three for SRF, which takes much
longer); points in random order or class after class; 10 % or 40 % wrong answers. F1 is the macro F1
on the held-out fold, after the last of 540 steps; `f1_run` is its mean over the run. A question is
a label request or a challenge; the first label is free. All learners get the same annotator and
the same coin flips.

Learners: `isgp("paper")`, also without any challenges and challenging always; the rules of `isgp()`
with noise .5 and length scale 3 on unscaled features, at several values of the parameter `c` of
`SkepticalAsk`; the same asking for all labels and trusting them; SRF, skeptical learning with a
random forest (needs scikit-learn), its parameter tuned on three folds of the first seed to ISGP's
F1 and to its number of questions. Each variant changes one thing that the paper leaves open, or
that the default preset changes.

Extra option: --pictures DIR draws the curves into DIR (needs matplotlib).

"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks._harness import Options, Outcome, Row, processes, progress, run_with_pictures
from benchmarks.papers.isgp.game import CONDITIONS, N_FOLDS, Condition
from benchmarks.papers.isgp.learners import (
    DEFAULT,
    FOREST,
    FOREST_F1,
    FOREST_QUESTIONS,
    ISGP,
    ONLINE,
    ONLINE_QUESTIONS,
    PAPER,
    PLAIN,
    TRUSTED,
    TUNED,
    VARIANTS,
    Field,
    knob_for,
)
from benchmarks.papers.isgp.results import (
    WITHIN,
    Played,
    accepted,
    mean_f1,
    mean_questions,
    row,
    row_of_variant,
)

BUDGETS = (40, 80)
_KNOBS = (0.25, 0.5, 1.0, 2.0, 4.0)
_THETAS = tuple(theta / 20 for theta in range(6, 20))
# A knob is tuned to a mean over some folds only, and being "within" a number must not depend on
# luck.
_CAREFUL = 0.97


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs."""

    conditions: Sequence[Condition] = CONDITIONS
    n_seeds: int = 5
    n_forest_seeds: int = 3
    folds: Sequence[int] = range(N_FOLDS)
    tuning_folds: Sequence[int] = range(3)
    thetas: Sequence[float] = _THETAS
    forest: bool = True
    variants: bool = True


QUICK = Plan(n_seeds=1, forest=False, variants=False)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run_with_pictures("isgp", measure, about=__doc__, argv=argv)


def measure(
    options: Options,
    *,
    plan: Plan | None = None,
    pictures: Path | None = None,
    n_processes: int | None = None,
) -> Outcome:
    """Run all conditions."""
    plan = plan or (QUICK if options.quick else Plan())
    skipped = []
    with_forest = plan.forest
    if not with_forest:
        skipped.append("SRF, which takes minutes, and the variants")
    elif importlib.util.find_spec("sklearn") is None:
        with_forest = False
        skipped.append("SRF (needs scikit-learn: the extra `bench`)")
    rows: list[Row] = []
    variants: list[Row] = []
    played: dict[Condition, dict[str, Played]] = {}
    with processes(n_processes) as pool:
        seeds = range(options.seed, options.seed + plan.n_seeds)
        field = Field(seeds, plan.folds, pool)
        for condition in plan.conditions:
            of_one = played[condition] = _gaussian_processes(field, condition)
            if with_forest:
                tuning = Field(seeds[:1], plan.tuning_folds, pool)
                forest = Field(seeds[: plan.n_forest_seeds], plan.folds, pool)
                of_one |= _forests(forest, tuning, condition, plan.thetas)
            rows += [row(condition, p) for p in of_one.values()]
            if plan.variants:
                variants += [row_of_variant(condition, p) for p in _variants(field, condition)]
    traces = {c: {name: p.traces for name, p in of.items()} for c, of in played.items()}
    if pictures is not None:
        from benchmarks.papers.isgp.results import draw

        draw(traces, pictures)
    notes = [
        "Means over the folds of all seeds; se: standard error over these folds.",
        "justified: challenges of labels that were wrong. knob: c, or theta of SRF.",
    ]
    limits = accepted(traces, slack=2.0 if options.quick else 0.0)
    return Outcome(rows=rows + variants, acceptance=limits, skipped=skipped, notes=notes)


def _gaussian_processes(field: Field, condition: Condition) -> dict[str, Played]:
    progress(f"{condition}: Gaussian processes")
    played = [
        Played(learner=name, knob=None, traces=field.traces(condition, name)) for name in PAPER
    ]
    limit = WITHIN[condition.noise][0]
    targets = {f"{DEFAULT}, {n} questions": float(n) for n in BUDGETS}
    targets[f"{DEFAULT}, within {limit}"] = _CAREFUL * limit
    knobs = _knobs_for(field, condition, DEFAULT, _KNOBS, list(targets.values()))
    for name, c in zip(targets, knobs, strict=True):
        played.append(Played(learner=name, knob=c, traces=field.traces(condition, DEFAULT, c)))
    trusted = field.traces(condition, TRUSTED, scored="end")
    played.append(Played(learner=TRUSTED, knob=None, traces=trusted))
    return {p.learner: p for p in played}


def _knobs_for(
    field: Field,
    condition: Condition,
    name: str,
    knobs: Sequence[float],
    targets: Sequence[float],
) -> list[float]:
    """Return the knobs at which a learner asks the wanted numbers of questions."""
    counts = [mean_questions(field.traces(condition, name, knob, "never")) for knob in knobs]
    return [knob_for(knobs, counts, target) for target in targets]


def _forests(
    field: Field, tuning: Field, condition: Condition, thetas: Sequence[float]
) -> dict[str, Played]:
    """Run SRF, tuned on the tuning folds to the F1 of ISGP, and to its number of questions."""
    isgp = tuning.traces(condition, ISGP)
    f1, questions = mean_f1(isgp), mean_questions(isgp)
    reached, counts = [], []
    for theta in thetas:
        progress(f"{condition}: SRF, trying theta = {theta:g}")
        traces = tuning.traces(condition, FOREST, theta)
        reached.append(mean_f1(traces))
        counts.append(mean_questions(traces))
        if max(reached) >= f1 and max(counts) >= questions:
            break
    enough = [theta for theta, value in zip(thetas, reached, strict=False) if value >= f1]
    chosen = {
        FOREST_F1: enough[0] if enough else thetas[-1],
        FOREST_QUESTIONS: knob_for(thetas[: len(counts)], counts, questions),
    }
    played = {}
    for name, theta in chosen.items():
        progress(f"{condition}: {name}, theta = {theta:.3g}")
        traces = field.traces(condition, FOREST, theta)
        played[name] = Played(learner=name, knob=theta, traces=traces)
    progress(f"{condition}: {ONLINE}")
    [theta] = _knobs_for(tuning, condition, ONLINE, thetas, [questions])
    online = field.traces(condition, ONLINE, theta)
    return {
        **played,
        ONLINE_QUESTIONS: Played(learner=ONLINE_QUESTIONS, knob=theta, traces=online),
    }


def _variants(field: Field, condition: Condition) -> list[Played]:
    played: list[Played] = []
    for name in VARIANTS:
        progress(f"{condition}: {name}")
        knob = 0.0
        if name in TUNED:
            [plain] = [p for p in played if p.learner == PLAIN]
            target = mean_questions(plain.traces)
            [knob] = _knobs_for(field, condition, name, TUNED[name], [target])
        traces = field.traces(condition, name, knob, scored="end")
        played.append(Played(learner=name, knob=knob or None, traces=traces))
    return played
