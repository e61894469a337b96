"""How accurate `isgp()` is on public logs, beside learners with as many labels.

The logs are not part of streamgp. `python -m benchmarks.public --clones` prints the commands that
fetch their repositories; run in an empty folder, they make the one that `--logs DIR` expects. Logs
that are not there, or have changed, are left out. `--kept FILE` keeps the numbers of each log as it
is done, and takes from there what is in it: so a run, which takes half an hour, can be stopped.
Delete the file when the code has changed. Needs scikit-learn (the extra `[bench]`).

Of each log, the first 1500 rows are played as recorded; answers come at once, and are all right or
wrong in 20 % of the cases, uniformly over the other labels. The others learn as many labels as
`isgp()` asks for and challenges: at random, or, where the table says *asking*, those with the
smallest margin. `isgp()` without its temporal filter asks for itself. Accuracy counts all events
with a label; one without a prediction is wrong.

The table shows how far `isgp()` is ahead, with the standard error over the logs, and on how many
logs another learner is more than .03 ahead of it, and on how many so both without and with wrong
answers. Labels last in a log if nine in ten are those of the event before; it is sorted if each of
them comes once, for a number of events.

"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from statistics import mean
from typing import Any, TypeAlias

from benchmarks._harness import Options, Outcome, Row, progress, run, standard_error
from benchmarks.comparison.public.logs import available, clone_commands, events_of, manifest
from benchmarks.comparison.public.rivals import (
    NAMES,
    RETRAINED,
    STREAMING,
    UNSURE,
    Predicted,
    Retrained,
    SmallestMargin,
    bounded,
    matrix,
    streamed,
)
from streamgp import SimulatedAnnotator, SkepticalClassifier, isgp
from streamgp.__main__ import fix_hashes
from streamgp.apps.replay.demo import room_events
from streamgp.apps.replay.engine import EventSource, Replay
from streamgp.evaluation import RunStatistics
from streamgp.interactive import Event, InteractiveLoop

RATES: Mapping[str, float] = {"0%": 0.0, "20%": 0.2}
AHEAD = 0.03
LASTING = 0.9
UNFILTERED = "isgp(temporal=None)"
_N_ROWS = 1500

Numbers: TypeAlias = dict[str, Any]
"""Numbers of a log: `events` with a label, the share whose label is the `same` as that before,
whether it is `sorted`, and for each rate how often `isgp()` `asked`, its `challenges`, and the
accuracy of all learners."""


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark, or print how to fetch the logs."""
    own = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    own.add_argument("--logs", type=Path)
    own.add_argument("--kept", type=Path)
    own.add_argument("--clones", action="store_true")
    known, rest = own.parse_known_args(argv)
    if known.clones:
        print(*clone_commands(manifest()), sep="\n")
        return 0
    if argv is None:
        fix_hashes()
    return run(
        "public", partial(measure, logs=known.logs, kept=known.kept), about=__doc__, argv=rest
    )


def measure(options: Options, *, logs: Path | None = None, kept: Path | None = None) -> Outcome:
    """Play all logs; a quick run without a folder plays readings of the packaged log."""
    if options.quick and logs is None:
        rooms = numbers_of("WiFiRooms", room_events()[::10], options.seed)
        return Outcome(rows=list(rows_of([rooms])))
    found, skipped = available(manifest(), logs)
    if logs is None or not found:
        raise SystemExit(
            f"found none of the logs{'' if logs is None else f' in {logs}'}; expected --logs DIR "
            "with their repositories, each in DIR/OWNER/NAME and with the files measured; the "
            "commands that fetch them are printed by python -m benchmarks.public --clones"
        )
    if options.quick:
        found = found[:2]
    done = {} if kept is None or not kept.exists() else _read(kept)
    numbers: list[Numbers] = []
    for log in found:
        key = f"{log.name}, {log.label}, {log.sha256}, seed {options.seed}"
        if key not in done:
            progress(log.name)
            done[key] = numbers_of(log.name, events_of(log, logs, _N_ROWS), options.seed)
            if kept is not None:
                with kept.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps([key, done[key]]) + "\n")
        numbers.append(done[key])
    return Outcome(rows=list(rows_of(numbers)), skipped=skipped)


def _read(kept: Path) -> dict[str, Numbers]:
    done: dict[str, Numbers] = {}
    for n, line in enumerate(kept.read_text(encoding="utf-8").splitlines(), 1):
        try:
            key, done[key] = json.loads(line)
        except ValueError:
            raise SystemExit(
                f"line {n} of {kept} is none that --kept writes, or cut off; remove it, or name "
                "another file"
            ) from None
    return done


# --- a log


def numbers_of(name: str, events: Sequence[Event], seed: int) -> Numbers:
    """Play a log with all learners."""
    known = [str(event.truth) for event in events if event.truth is not None]
    found: Numbers = {
        "events": len(known),
        "same": mean(a == b for a, b in pairwise(known)),
        "sorted": len(list(groupby(known))) == len(set(known)),
    }
    return found | {
        title: _played(events, rate, partial(draws, f"{name}, {seed}"))
        for title, rate in RATES.items()
    }


def draws(name: str, purpose: str) -> random.Random:
    """Return the random numbers of a log for one purpose."""
    return random.Random(f"{name}, {purpose}")


def _played(
    events: Sequence[Event], rate: float, drawn: Callable[[str], random.Random]
) -> dict[str, float]:
    """Return what `isgp()` asks, and the accuracy of all learners."""
    truths = [None if event.truth is None else str(event.truth) for event in events]
    known = [i for i, truth in enumerate(truths) if truth is not None]
    seed = drawn("isgp").randrange(2**32)

    def interactive(model: SkepticalClassifier) -> RunStatistics:
        annotator = SimulatedAnnotator(error_rate=rate, seed=seed)
        return Replay(InteractiveLoop(model), EventSource(events), annotator).run().statistics

    counts, unfiltered = interactive(isgp(seed=seed)), interactive(isgp(seed=seed, temporal=None))
    found = {
        "asked": counts.n_asked,
        "challenges": counts.n_challenges,
        "isgp()": (counts.accuracy or 0.0) * counts.n_scored / len(known),
        UNFILTERED: (unfiltered.accuracy or 0.0) * unfiltered.n_scored / len(known),
    }
    n_labels = min(counts.n_asked + counts.n_challenges, len(known))
    chosen = set(drawn("labels").sample(known, n_labels))
    answers = answered(truths, rate, drawn("errors"))
    xs = [bounded(event.x) for event in events]

    def scored(predicted: Predicted) -> float:
        return mean(predicted[i] == truths[i] for i in known)

    def at_random(i: int, _proba: Mapping[str, float]) -> bool:
        return i in chosen

    def unsure() -> SmallestMargin:
        return SmallestMargin(n_labels, len(known), seed=seed)

    X = matrix(xs)
    fitted = {name: partial(Retrained, build, X) for name, build in RETRAINED.items()}
    for inputs, learners in ((xs, STREAMING), (range(len(xs)), fitted)):
        for name, build in learners.items():
            found[name] = scored(streamed(build(), inputs, truths, answers, at_random))
            if name in UNSURE:
                predicted = streamed(build(), inputs, truths, answers, unsure())
                found[f"{name}, asking"] = scored(predicted)
    return found


def answered(truths: Sequence[str | None], rate: float, rng: random.Random) -> list[str | None]:
    """Return what an annotator answers for each event; None where the truth is unknown."""
    labels = sorted({truth for truth in truths if truth is not None})
    return [
        truth
        if truth is None or rng.random() >= rate or len(labels) < 2
        else rng.choice([label for label in labels if label != truth])
        for truth in truths
    ]


# --- rows


def rows_of(numbers: Sequence[Numbers]) -> Iterator[Row]:
    """Yield what was asked, and how far `isgp()` is ahead of each learner: in all, and by kind."""
    lasting = [log for log in numbers if log["same"] > LASTING]
    groups = {
        "all": numbers,
        "labels last": lasting,
        "sorted": [log for log in lasting if log["sorted"]],
        "labels last and return": [log for log in lasting if not log["sorted"]],
        "others": [log for log in numbers if log["same"] <= LASTING],
    }
    groups = {title: logs for title, logs in groups.items() if logs}
    for title, logs in groups.items():
        for rate in RATES:
            row: Row = {"logs": title, "wrong": rate, "n": len(logs)}
            row["events"] = mean(log["events"] for log in logs)
            for name in ("asked", "challenges", "isgp()"):
                row[name] = mean(log[rate][name] for log in logs)
            yield row
    for rival in (UNFILTERED, *NAMES):
        for title, logs in groups.items():
            leads = {
                rate: [log[rate]["isgp()"] - log[rate][rival] for log in logs] for rate in RATES
            }
            row = {"learner": rival, "logs": title}
            for rate, of_rate in leads.items():
                row[f"behind_{rate}"] = mean(of_rate)
                row[f"behind_{rate}_se"] = standard_error(of_rate)
                row[f"ahead_{rate}"] = sum(lead < -AHEAD for lead in of_rate)
            row["ahead_both"] = sum(
                max(both) < -AHEAD for both in zip(*leads.values(), strict=True)
            )
            yield row
