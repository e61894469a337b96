"""Workers on a real Kafka broker under chaos: is anything lost, duplicated or forgotten?

A broker is started on this machine (needs Java and Maven), and with it, each in a process of its
own: workers (`streamgp run`); a simulated annotator who is wrong in one of five answers (`streamgp
annotate --simulate`); a feeder of events, including bad and hostile inputs of every kind (hostile
ones can be read, but contain values that a learner may be unable to handle); and a meddler who
sends answers twice, corrects them, takes them back and cancels questions. Meanwhile workers are
killed, terminated, or stopped for longer than their session lasts, and start again as under a
supervisor; the broker is killed and stopped, and starts again.

When all events are processed, the topics are read from their start, committed records only, and the
output is compared with what must follow from the input:

lost, duplicated       missing and surplus predictions
dead_expected, _found  unusable inputs; those of them that are dead letters exactly once, with the
                       original bytes
hostile, _dead         hostile events, each of which has one prediction or one dead letter; and how
                       many have a dead letter. Otherwise they are checked like all others.
waiting                answers that are unusable, too, but wait for their event, as they may for a
                       minute, and are not yet dead letters
unexplained            predictions of every fourth key that the learner rebuilt from the consensus
                       log does not repeat: probabilities, score and draw of the rule
state_differences      keys whose loop in the last snapshot differs from that of `state` and
                       `consensus`
ends_wrong             questions without exactly one end: an answer, a cancellation or the expiry.
                       Only those whose time is not over may be open.
lines_wrong, gaps      lines of the consensus log that do not follow from the answers, or not from
                       the line before; counts_wrong: predictions with another number of examples
ended_by_hand          transactions that the broker itself lost track of when it went down; no
                       consumer could read on if they were not ended, as an operator would
nulls_wrong            lines of withdrawn examples that were not removed from the log, and others
                       that were
counted_, written_     predictions, label requests, labels learned and dead letters, as counted by
                       the workers' metrics, all lives together, and as in the topics. The former
                       never exceed the latter; with --calm they are equal (but for records after
                       the last scrape).

Options beside those of all benchmarks: --seconds S of chaos (600; quick 60), --workers N (2),
--events N (300000; quick 15000), --hostile SHARE of hostile events per good event (0.02), --brokers
N (1, or 3 with three copies of everything, one of which at a time goes down), --calm without any
harm.

"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks._harness import Options, Outcome, Row, at_least, at_most, progress, run
from streamgp.apps.deployment.deployment import build_loops, load_deployed

from .learners import Explained, explain
from .processes import HARMS, Plan
from .scene import Scene
from .scraping import COUNTERS, Written
from .senders import N_PARTITIONS
from .traffic import HOSTILE_SHARE

_LEAVE_S = 60.0
# Records are written a little before the worker counts them.
_SETTLED_S = 2.0
_MUST_BE_ZERO = (
    "lost", "duplicated", "dead_too_many", "ends_wrong", "lines_wrong", "nulls_wrong", "gaps",
    "counts_wrong", "unexplained", "state_differences", "not_fed", "given_up",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Amount of chaos.

    Parameters
    ----------
    seconds
        Duration of harm and of events.
    events
        Number of events.
    workers
        Number of workers.
    hostile
        Number of hostile events per good event.
    brokers
        Number of brokers, 1 or 3.
    calm
        Whether no harm is done.

    """

    seconds: float
    events: int
    workers: int = 2
    hostile: float = HOSTILE_SHARE
    brokers: int = 1
    calm: bool = False


QUICK = Size(seconds=60.0, events=15_000)
FULL = Size(seconds=600.0, events=300_000)


def main(argv: list[str] | None = None) -> int:
    """Run it; return the exit status."""
    own = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    own.add_argument("--seconds", type=float)
    own.add_argument("--events", type=int)
    own.add_argument("--workers", type=int)
    own.add_argument("--hostile", type=float)
    own.add_argument("--brokers", type=int, choices=(1, 3))
    own.add_argument("--calm", action="store_true")
    asked, rest = own.parse_known_args(argv)
    given = {name: value for name, value in vars(asked).items() if value is not None}
    sizes = (given.get(name, 1) for name in ("seconds", "events", "workers"))
    if any(value <= 0 for value in sizes):
        own.error("--seconds, --events and --workers must be greater than 0")
    if not 0.0 <= given.get("hostile", HOSTILE_SHARE) <= 1.0:
        own.error("--hostile must be between 0 and 1")

    def measured(options: Options) -> Outcome:
        return measure(options, replace(QUICK if options.quick else FULL, **given))

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # also ends everything it started
    return run("chaos", measured, about=__doc__, argv=rest)


def measure(options: Options, size: Size = QUICK) -> Outcome:
    """Start everything, do harm, wait until everything is processed, and check the topics."""
    home = Path(tempfile.mkdtemp(prefix="streamgp-chaos-"))
    is_interrupted, is_good = False, False
    try:
        outcome = _measure(options, size, home)
        is_good = all(accepted.ok for accepted in outcome.acceptance)
        return outcome
    except (KeyboardInterrupt, SystemExit):
        is_interrupted = True
        raise
    finally:
        if is_good or is_interrupted:
            shutil.rmtree(home, ignore_errors=True)
        else:
            shutil.rmtree(home / "state", ignore_errors=True)
            progress(f"the logs of all programs are kept in {home / 'logs'}")


def _measure(options: Options, size: Size, home: Path) -> Outcome:
    rng = random.Random(options.seed)
    with Scene(
        options.seed,
        size.workers,
        size.events,
        size.seconds,
        size.hostile,
        size.brokers,
        home,
        progress,
    ) as scene:
        start = time.monotonic()
        plan = Plan() if size.calm else Plan.drawn(seed=options.seed, seconds=size.seconds)
        scene.do_harm(plan, rng)
        scene.wait_until_fed()
        scene.wait_until_idle()
        seconds = time.monotonic() - start
        scene.end_people()
        scene.wait_until_idle()
        scraped_at = scene.scraper.scrape()
        counted = scene.scraper.totals()
        stopped_at = time.time()
        last = scene.workers.end(_LEAVE_S)
        ended_at = time.time()
        progress("reading the topics")
        written, before = Written(), Written(until=scraped_at - _SETTLED_S)
        ledger, state = scene.read(written, before)
    workers = scene.workers
    findings = ledger.findings(stopped_at)
    progress("rebuilding the learners")
    loops = build_loops(load_deployed(scene.config), source=str(scene.config))
    n_keys, differences = state.differences(loops, scene.state, now=ended_at)
    explained = Explained()
    for key, features in sorted(ledger.features.items()):
        explained += explain(
            loops.model, ledger.lines.of_key[key], ledger.predictions[key], features
        )
    for example in [*findings.examples, *differences[:5]]:
        progress(example)
    row: Row = {
        "lost": findings.lost,
        "duplicated": findings.duplicated,
        "dead_expected": findings.dead_expected,
        "dead_found": findings.dead_found,
        **{f"kills_{harm}": scene.harms[harm] for harm in HARMS},
        "broker_restarts": scene.n_restarts,
        "events": findings.events,
        "hostile": findings.hostile,
        "hostile_dead": findings.hostile_dead,
        "answers": findings.answers,
        "challenges": findings.challenges,
        "learned": findings.learned,
        "seconds": round(seconds, 1),
        "longest_stall_s": round(findings.longest_stall_s, 1),
        "restores": sum(line.get("event") == "restored" for line in workers.said()),
    }
    checks: Row = {
        "requests": findings.requests,
        "open": findings.open,
        "dead_too_many": findings.dead_too_many,
        "waiting": findings.waiting,
        "ends_wrong": findings.ends_wrong,
        "lines_wrong": findings.lines_wrong,
        "nulls_wrong": findings.nulls_wrong,
        "gaps": findings.gaps,
        "counts_wrong": findings.counts_wrong,
        "explained": explained.same + explained.close,
        "bit_equal": explained.same,
        "unexplained": explained.unexplained,
        "keys": n_keys,
        "state_differences": len(differences),
        "not_fed": size.events - findings.fed,
        "ended_by_hand": len(scene.ended),
        "given_up": workers.n_given_up + sum(status != 0 for status in last),
    }
    metrics: Row = {"scrapes": scene.scraper.n_scrapes, "backwards": scene.scraper.n_backwards}
    for name in COUNTERS:
        metrics[f"counted_{name}"] = counted[name]
        metrics[f"written_{name}"] = written.counts[name]
    both = row | checks | metrics
    accepted = [at_most(name, both[name], 0) for name in (*_MUST_BE_ZERO, "backwards")]
    accepted.append(at_least("dead_found", row["dead_found"], row["dead_expected"]))
    for name in COUNTERS:
        accepted.append(at_most(f"counted_{name}", counted[name], written.counts[name]))
        if size.calm:
            accepted.append(at_least(f"counted_{name}", counted[name], before.counts[name]))
    harms = () if size.calm else (*(f"kills_{harm}" for harm in HARMS), "broker_restarts")
    accepted += [at_least(name, both[name], 1) for name in (*harms, "explained", "scrapes")]
    notes = [
        f"{size.workers} workers, {N_PARTITIONS} partitions, {size.seconds:g} s of chaos, "
        f"{size.brokers} {'broker' if size.brokers == 1 else 'brokers'}; until "
        f"they were terminated, workers ended {_in_words(workers.statuses)}"
    ]
    if scene.ended:
        ended = "; ".join(scene.ended)
        notes.append(f"transactions ended by hand, as the broker had lost track of them: {ended}")
    return Outcome(rows=[row, checks, metrics], acceptance=accepted, notes=notes)


def _in_words(statuses: Mapping[int | None, int]) -> str:
    """Return how often each exit status occurred."""
    named = {-9: "by a kill"}
    return (
        ", ".join(
            f"{n} times {named.get(status, f'with {status}')}"
            for status, n in sorted(statuses.items())
        )
        or "never"
    )


if __name__ == "__main__":
    sys.exit(main())
