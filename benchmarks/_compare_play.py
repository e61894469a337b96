"""Playing one entry of `benchmarks.compare` over one log, at given numbers of labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from benchmarks._compare_entries import CHALLENGES, LEARNERS, RULES, TIRED, Entry
from benchmarks._conversation import Score, averaged, played
from benchmarks._knobs import matched
from benchmarks._logs import Labelled, Log
from benchmarks._strategies_play import CAP, ERROR_RATE
from benchmarks._strategies_rules import Setting
from streamgp import SimulatedAnnotator, TiredAnnotator
from streamgp.interactive import Annotator

DECLINE_RATE = 0.05
# In events, as is the half-life: these logs have no time in common.
DELAY = 10.0
_HALF_LIFE = 10.0
_TIRING_RATE = 0.1
_SLOWING = 0.3
# What numba compiles at the first label is no part of any time.
_N_UNTIMED = 60


def annotator(log: Log, seed: int) -> Annotator:
    """Return somebody who errs, declines and takes time, always at the same rates."""
    return SimulatedAnnotator(
        error_rate=ERROR_RATE,
        delay=DELAY,
        decline_rate=DECLINE_RATE,
        classes=log.classes,
        seed=seed,
    )


def tired(log: Log, seed: int) -> Annotator:
    """Return somebody who errs when there were many questions of late; whatever else is the same.

    At one question in every ten events that is one answer in ten, in a rush of questions each. The
    answers say how long they took: three tenths longer for every question of late.
    """
    return TiredAnnotator(
        delay=DELAY,
        decline_rate=DECLINE_RATE,
        classes=log.classes,
        seed=seed,
        tiring_rate=_TIRING_RATE,
        half_life_s=_HALF_LIFE,
        slowing=_SLOWING,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What is compared with each other.

    Parameters
    ----------
    entries
        Who takes part, by name.
    annotator
        Who answers.

    """

    entries: Mapping[str, Entry]
    annotator: Callable[[Log, int], Annotator] = annotator


GROUPS: Mapping[str, Group] = {
    "learner": Group(entries=LEARNERS),
    "asks by": Group(entries=RULES),
    "challenges by": Group(entries=CHALLENGES),
    "tired annotator": Group(entries=TIRED, annotator=tired),
}

Scores: TypeAlias = dict[float, Score]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One entry on one log, at all numbers of labels."""

    log: Log
    order: str
    group: str
    name: str
    rates: Sequence[float]
    seeds: Sequence[int]

    def scores(self) -> Scores:
        """Play; return what came out, by the share of the events that was to be asked about."""
        entry = GROUPS[self.group].entries[self.name]
        untimed = self.log.played(self.order, self.seeds[0])[:_N_UNTIMED]
        self._play(entry.start or 1.0, _N_UNTIMED, self.seeds[0], untimed)
        known: dict[float, Score] = {}
        scores: Scores = {}
        for rate in self.rates:
            n = round(rate * len(self.log.events))
            if entry.largest is None:
                scores[rate] = self._score(1.0, n)
                continue
            start = rate if entry.start is None else entry.start
            scores[rate] = matched(self._score, n, known, start, entry.largest)
        return scores

    def _score(self, knob: float, limit: int | None = None) -> Score:
        return averaged(
            [
                self._play(knob, limit, seed, self.log.played(self.order, seed))
                for seed in self.seeds
            ]
        )

    def _play(self, knob: float, limit: int | None, seed: int, events: Sequence[Labelled]) -> Score:
        group, n = GROUPS[self.group], len(self.log.events)
        most = int(CAP * max(self.rates) * n) if limit is None else limit
        setting = Setting(knob=knob, most=most, n_classes=len(self.log.classes), seed=seed)
        model = group.entries[self.name].build(setting)
        return played(events, model, group.annotator(self.log, seed), limit)
