"""The paper on classification with privileged noise (GPC+), repeated, and its use online.

Whole logs (`learn_log`): three synthetic problems, in which the noise of labels is a function of
privileged features, or these tell which labels were guessed, or tell nothing; handwritten 3 and 8
with 20 % wrong labels; MNIST+, where poets and a Taoist described digits in words. 100 labels (80
of MNIST+), clean test sets. GPC has no privileged features; "x* as features" takes them as ordinary
ones, which predictions then lack; both GPC+ take them as privileged, with the learner's preset
`default` or with `paper`. "margin" stands for one privileged feature that was made of the others:
how much all other labels speak for this one, there.

Online: an annotator, 40 % of whose answers are careless; half of these are wrong. Privileged are
the confidence that was stated and the time that it took. 300 answers are learned one by one, with
and without replays of earlier ones, and all at once; AUC says how well the expected noise of an
answer tells careless ones. A longer stream shows which examples to retain, if few can be.

In a conversation the same answers are challenged when they are probably wrong: by the record of
whoever gave them, by the noise that is expected of them, or by both, as `SkepticalClassifier` does.

Then identities and times. Differences are run by run: all methods meet the same draws.

"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import mean

from benchmarks import _gpc_play as game
from benchmarks._blas import one_thread
from benchmarks._gpc_checks import identities, speed
from benchmarks._gpc_problems import annotator, read
from benchmarks._gpc_talk import talks
from benchmarks._harness import (
    Acceptance,
    Options,
    Outcome,
    Row,
    at_least,
    progress,
    run,
    standard_error,
)

_ONLINE = "annotator"
# Points by which GPC+ has to be below GPC.
_GAINS = {"noise": 1.5, "guessed": 3.0, _ONLINE: 2.0}
_USELESS = 0.3
_AUC = 0.9
_LONG, _KEPT = 800, 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is played.

    Parameters
    ----------
    problems
        Names of those that are learned at once.
    methods, online
        Who learns them, and who learns online.
    n_runs, n_online, n_long, n_talks
        Runs of each, of the longer stream, and of conversations.
    checks
        Numbers of labels after which errors are measured online.
    sizes
        Numbers of labels of the batches whose time is taken.

    """

    problems: Sequence[str] = (
        "noise",
        "guessed",
        "useless",
        "digits, pixels",
        "digits, margin",
        "MNIST+, poetic",
        "MNIST+, poetic margin",
        "MNIST+, yinyang",
        "MNIST+, yinyang margin",
    )
    methods: Sequence[str] = game.OFFLINE
    online: Sequence[str] = game.ONLINE
    n_runs: int = 20
    n_online: int = 20
    n_long: int = 10
    n_talks: int = 12
    checks: Sequence[int] = (60, 100, 200, 300)
    sizes: Sequence[int] = (100, 200, 500)


QUICK = Plan(
    problems=("noise", "guessed", "useless"),
    methods=(game.GPC, game.PLUS),
    online=(game.GPC, game.PLUS),
    n_runs=6,
    n_online=4,
    n_long=0,
    n_talks=0,
    checks=(100, 300),
    sizes=(100, 500),
)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("gpc_plus", measure, about=__doc__, argv=argv)


def measure(options: Options, *, plan: Plan | None = None) -> Outcome:
    """Play all problems, then check identities and take times."""
    plan = plan or (QUICK if options.quick else Plan())
    problems, skipped = read(plan.problems, options.data)
    seeds = range(options.seed, options.seed + plan.n_runs)
    with one_thread():
        offline = game.play(problems, plan.methods, seeds, game.fit, progress)
        online = game.play(
            {_ONLINE: partial(annotator, n=max(plan.checks))},
            plan.online,
            range(options.seed, options.seed + plan.n_online),
            partial(game.stream, checks=plan.checks),
            progress,
        )
        long = game.play(
            {f"{_KEPT} of {_LONG}": partial(annotator, n=_LONG)},
            game.KEPT,
            range(options.seed, options.seed + plan.n_long),
            partial(game.keep, n_kept=_KEPT),
            progress,
        )
        conversations = talks(
            range(options.seed, options.seed + plan.n_talks), max(plan.checks), progress
        )
        progress("identities and times")
        identity_rows, identities_hold = identities(options.seed)
        speed_rows, speeds_hold = speed(plan.sizes, options.seed)
    slack = 2.0 if options.quick else 0.0
    return Outcome(
        rows=[
            *_errors(offline),
            *_curves(online, plan.checks),
            *_retained(long),
            *conversations,
            *identity_rows,
            *speed_rows,
        ],
        acceptance=[*_accepted({**offline, **online}, slack), *identities_hold, *speeds_hold],
        skipped=skipped,
        notes=[
            f"Errors in per cent, means of {plan.n_runs} runs ({plan.n_online} online); "
            "se: standard error; gain: points below GPC. "
            f"Means of {plan.n_talks} conversations; se: of the difference from the first rule."
        ],
    )


def _gains(results: game.Results, problem: str, method: str) -> list[float]:
    """Points below GPC, run by run; none where one of the two was not played."""
    mine, gpc = results.get((problem, method), ()), results.get((problem, game.GPC), ())
    return [b.error - a.error for a, b in zip(mine, gpc, strict=False)]


def _errors(results: game.Results) -> list[Row]:
    rows: list[Row] = []
    for (problem, method), runs in results.items():
        errors, gains = [one.error for one in runs], _gains(results, problem, method)
        rows.append(
            {
                "problem": problem,
                "method": method,
                "error": mean(errors),
                "se": standard_error(errors),
                "gain": mean(gains) if gains else None,
                "se of gain": standard_error(gains),
            }
        )
    return rows


def _curves(results: game.Results, checks: Sequence[int]) -> list[Row]:
    rows: list[Row] = []
    for (problem, method), runs in results.items():
        row: Row = {"online": method}
        for i, n in enumerate(checks):
            row[f"error {n}"] = mean(one.errors[i] for one in runs)
        gains = _gains(results, problem, method)
        found = [one.auc for one in runs if one.auc is not None]
        row["se"] = standard_error([one.error for one in runs])
        row["gain"] = mean(gains) if gains else None
        row["se of gain"] = standard_error(gains)
        row["auc"] = mean(found) if found else None
        rows.append(row)
    return rows


def _retained(results: game.Results) -> list[Row]:
    return [
        {
            "retained": kept,
            "which": method,
            "error": mean(one.error for one in runs),
            "se": standard_error([one.error for one in runs]),
        }
        for (kept, method), runs in results.items()
    ]


def _accepted(results: game.Results, slack: float) -> list[Acceptance]:
    """Compare gains with their limits, widened by so many standard errors."""
    found = []
    for problem, limit in (*_GAINS.items(), ("useless", -_USELESS)):
        gains = _gains(results, problem, game.PLUS)
        if not gains:
            continue
        margin = slack * standard_error(gains)
        widened = f", {limit:g} widened by {slack:g} standard errors" if slack else ""
        found.append(
            at_least(f"{problem}: points of GPC+ below GPC{widened}", mean(gains), limit - margin)
        )
    aucs = [one.auc for one in results.get((_ONLINE, game.PLUS), ()) if one.auc is not None]
    if aucs:
        found.append(at_least("careless answers told by their noise, AUC", mean(aucs), _AUC))
    return found


if __name__ == "__main__":
    sys.exit(main())
