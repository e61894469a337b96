"""Learners with the default rule, rules with the default learner, and runs of one entry.

Each has a knob, a positive number: the larger, the more labels are asked for. Learners of streamgp
have their default parameters unless their name says otherwise. Trees get unscaled features, all
others standardised ones, as by default.

"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from river import base

from benchmarks._logs import Labelled, Log
from benchmarks.comparison import peer_learners as peers
from benchmarks.comparison.conversation import Score, averaged, matched, played
from benchmarks.comparison.strategies.rules import CAP, CONTENDERS, ERROR_RATE, Contender, Setting
from benchmarks.papers.isgp.three_stage import StagedSkepticalClassifier, online_srf
from streamgp import (
    ConfidenceBoostingClassifier,
    EnsembleGPClassifier,
    GPClassifier,
    OnlineForestClassifier,
    OnlineGradientBoostingClassifier,
    PrivilegedGPClassifier,
    SimulatedAnnotator,
    SkepticalClassifier,
    TiredAnnotator,
    isgp,
)
from streamgp.base import Features, Label
from streamgp.interactive import Annotator
from streamgp.presets import MAX_POINTS
from streamgp.query import (
    KL,
    AdaptiveThreshold,
    AlwaysChallenge,
    AskRule,
    AtMost,
    BestVersusSecond,
    Budget,
    ChallengeRule,
    Deterministic,
    EqualErrorAsk,
    LeaveOneOutReview,
    NeverChallenge,
    PaperChallenge,
    RateBudget,
    RecentEventsAsk,
    SkepticalAsk,
    SkepticalChallenge,
    Variance,
)

# --- entries

# Without filter, renewed scaling and drift test, which suit any learner.
ISGP = "learner of isgp()"
PRIVILEGED = "PrivilegedGPClassifier()"
ENSEMBLE = "EnsembleGPClassifier()"
CHALLENGED, BELIEVED = "SkepticalChallenge (default)", "NeverChallenge"
OUTSIDERS = (peers.BAYES, peers.TREE, peers.AMF, "River ARF")
# `benchmarks.strategies` has all of scikit-activeml's; here are the simplest and the best.
_OTHERS = ("EntropySampler", "PeriodicSampling", "Split")

_Learner: TypeAlias = Callable[[int], base.Classifier]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A learner or rule in the comparison.

    Parameters
    ----------
    build
        Builds the skeptical classifier.
    start
        The knob tried first; None for the share of events that is to be asked about.
    largest
        The largest knob; None for an entry without one, which takes the number of labels itself.

    """

    build: Callable[[Setting], SkepticalClassifier]
    start: float | None = None
    largest: float | None = 1.0


def _hard_limit(s: Setting) -> Budget:
    return AtMost(s.most, gives_back=False)


def _by_doubt(learner: _Learner, *, warm_up: int = 200, at_least: float = 0.0) -> Entry:
    """Return a learner that asks by the default rule."""

    def build(s: Setting) -> SkepticalClassifier:
        ask = SkepticalAsk(s.knob, at_least=at_least)
        return SkepticalClassifier(
            learner(s.seed), ask, None, _hard_limit(s), warm_up=warm_up, seed=s.seed
        )

    return Entry(build=build, start=1.0, largest=100.0)


def _ranked(learner: _Learner, *, warm_up: int = 200, ask: AskRule | None = None) -> Entry:
    """Return a learner that asks at a rate, where the two best classes are closest."""

    def build(s: Setting) -> SkepticalClassifier:
        rule = BestVersusSecond(0.0) if ask is None else ask
        budget = RateBudget(s.knob, seed=s.seed)
        return SkepticalClassifier(
            learner(s.seed), rule, None, budget, warm_up=warm_up, seed=s.seed
        )

    return Entry(build=build)


def _paper(s: Setting) -> SkepticalClassifier:
    changed = {"query": SkepticalAsk(s.knob), "budget": _hard_limit(s)}
    found: SkepticalClassifier = isgp("paper", seed=s.seed).clone(changed)
    return found


def _staged(s: Setting) -> SkepticalClassifier:
    found: StagedSkepticalClassifier = online_srf(theta=s.knob, seed=s.seed).clone(
        {"budget": _hard_limit(s)}
    )
    return found


def _gp(_: int) -> GPClassifier:
    return GPClassifier(max_points=MAX_POINTS)


def _ensemble(seed: int) -> EnsembleGPClassifier:
    return EnsembleGPClassifier(seed=seed)


def _forest(seed: int) -> OnlineForestClassifier:
    # Trees that split early, as in `online_srf`.
    return OnlineForestClassifier(n_models=100, min_weight=10, seed=seed)


def _boosted(seed: int) -> ConfidenceBoostingClassifier:
    return ConfidenceBoostingClassifier(seed=seed)


def _gradient(seed: int) -> OnlineGradientBoostingClassifier:
    return OnlineGradientBoostingClassifier(normalise_weights=True, seed=seed)


_TREES: Mapping[str, _Learner] = {
    "OnlineForestClassifier(100 trees)": _forest,
    "ConfidenceBoostingClassifier()": _boosted,
    "OnlineGradientBoosting, normalised": _gradient,
    **{name: peers.BUILDERS[name] for name in OUTSIDERS},
}

LEARNERS: Mapping[str, Entry] = {
    ISGP: _by_doubt(_gp),
    "isgp('paper')": Entry(build=_paper, start=1.0, largest=100.0),
    "GPClassifier(max_points=100)": _by_doubt(lambda _: GPClassifier(max_points=100)),
    "GPClassifier(learn_hyperparameters)": _by_doubt(
        lambda _: GPClassifier(max_points=MAX_POINTS, learn_hyperparameters=True)
    ),
    "GPClassifier(window=100)": _by_doubt(lambda _: GPClassifier(window=100)),
    "GPClassifier(drift), at_least=.02": _by_doubt(
        lambda _: GPClassifier(max_points=MAX_POINTS, drift=True), at_least=0.02
    ),
    ENSEMBLE: _by_doubt(_ensemble),
    "EnsembleGPClassifier, logistic": _by_doubt(
        lambda seed: EnsembleGPClassifier(likelihood="logistic", seed=seed)
    ),
    PRIVILEGED: _by_doubt(lambda _: PrivilegedGPClassifier()),
    **{name: _by_doubt(learner, warm_up=0) for name, learner in _TREES.items()},
    **{f"{name} at a rate": _ranked(learner, warm_up=0) for name, learner in _TREES.items()},
    f"{ENSEMBLE} at a rate": _ranked(_ensemble),
    f"{PRIVILEGED} at a rate": _ranked(lambda _: PrivilegedGPClassifier()),
    "SRF, online forest": Entry(build=_staged, start=0.6),
}


def _rule(contender: Contender) -> Entry:
    """Return a contender of `benchmarks.strategies` with the default learner."""

    def build(s: Setting) -> SkepticalClassifier:
        rule, budget = contender.rule(s), contender.budget(s)
        return SkepticalClassifier(_gp(s.seed), rule, None, budget, seed=s.seed)

    return Entry(build=build, start=contender.start, largest=contender.largest)


def _adaptive(s: Setting) -> SkepticalClassifier:
    budget = AdaptiveThreshold(s.knob)
    return SkepticalClassifier(_gp(s.seed), Variance(), None, budget, seed=s.seed)


def _asking_back(s: Setting) -> SkepticalClassifier:
    """Return a model that, at every fiftieth event, also asks about one of the latest events."""
    back = s.most // 5
    reservoir = RecentEventsAsk(every=50, budget=AtMost(back, gives_back=False))
    budget = AtMost(s.most - back, gives_back=False)
    ask = SkepticalAsk(s.knob)
    return SkepticalClassifier(_gp(s.seed), ask, None, budget, reservoir=reservoir, seed=s.seed)


RULES: Mapping[str, Entry] = {
    **{
        name: _rule(contender)
        for name, contender in CONTENDERS.items()
        if contender.package == "streamgp" or name in _OTHERS
    },
    "SkepticalAsk + RecentEventsAsk": Entry(build=_asking_back, start=0.8, largest=100.0),
    "EqualErrorAsk + RateBudget": _ranked(_gp, ask=EqualErrorAsk()),
    "Variance + RateBudget": _ranked(_gp, ask=Variance()),
    "Variance + AdaptiveThreshold": Entry(build=_adaptive),
    "ensemble: BestVersusSecond + RateBudget": _ranked(_ensemble),
    "ensemble: Variance + RateBudget": _ranked(_ensemble, ask=Variance()),
    "ensemble: KL + RateBudget": _ranked(_ensemble, ask=KL(least_weight=0.01)),
    "ensemble: Deterministic + RateBudget": _ranked(_ensemble, ask=Deterministic()),
}


def _challenging(challenge: ChallengeRule, review: LeaveOneOutReview | None = None) -> Entry:
    def build(s: Setting) -> SkepticalClassifier:
        return SkepticalClassifier(
            _gp(s.seed), SkepticalAsk(s.knob), challenge, _hard_limit(s), review=review, seed=s.seed
        )

    return Entry(build=build, start=1.0, largest=100.0)


CHALLENGES: Mapping[str, Entry] = {
    CHALLENGED: _challenging(SkepticalChallenge()),
    "with LeaveOneOutReview": _challenging(SkepticalChallenge(), LeaveOneOutReview()),
    "PaperChallenge": _challenging(PaperChallenge()),
    "AlwaysChallenge": _challenging(AlwaysChallenge()),
    BELIEVED: _challenging(NeverChallenge()),
}


class _Unaware(PrivilegedGPClassifier):
    """Ignores the privileged features of answers."""

    def learn_one(  # type: ignore[override]
        self, x: Features, y: Label, *, event_id: str | None = None
    ) -> None:
        super().learn_one(x, y, event_id=event_id)


TIRED: Mapping[str, Entry] = {
    **{name: LEARNERS[name] for name in (ISGP, f"{ENSEMBLE} at a rate", PRIVILEGED)},
    f"{PRIVILEGED}, told no times": _by_doubt(lambda _: _Unaware()),
}


# --- runs

DECLINE_RATE = 0.05
# In events, as is the half-life, since the time scales of these logs differ.
DELAY = 10.0
_HALF_LIFE = 10.0
_TIRING_RATE = 0.1
_SLOWING = 0.3
# Events before timing starts, so that compilation by numba at the first label does not count.
_N_UNTIMED = 60


def annotator(log: Log, seed: int) -> Annotator:
    """Return an annotator who errs, declines and takes time, always at the same rates."""
    return SimulatedAnnotator(
        error_rate=ERROR_RATE,
        delay=DELAY,
        decline_rate=DECLINE_RATE,
        classes=log.classes,
        seed=seed,
    )


def tired(log: Log, seed: int) -> Annotator:
    """Return an annotator who errs after many recent questions, and is otherwise the same.

    With one question in every ten events, one answer in ten is wrong; in a rush of questions, every
    one. Answers state their response time: three tenths longer for every recent question.
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
    """Entries that are compared with each other.

    Parameters
    ----------
    entries
        Entries by name.
    annotator
        Function that returns the annotator.
    with_challenges
        Whether challenges count as questions when the numbers of questions are made equal.

    """

    entries: Mapping[str, Entry]
    annotator: Callable[[Log, int], Annotator] = annotator
    with_challenges: bool = False


GROUPS: Mapping[str, Group] = {
    "learner": Group(entries=LEARNERS),
    "asks by": Group(entries=RULES),
    "challenges by": Group(entries=CHALLENGES),
    "all questions": Group(
        entries={name: CHALLENGES[name] for name in (CHALLENGED, BELIEVED)}, with_challenges=True
    ),
    "tired annotator": Group(entries=TIRED, annotator=tired),
}

Scores: TypeAlias = dict[float, Score]


def _labels(score: Score) -> float:
    return score.n_asked


def _questions(score: Score) -> float:
    return score.n_asked + score.n_challenges


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
        """Run; return the scores by the share of the events that was to be asked about."""
        group = GROUPS[self.group]
        entry = group.entries[self.name]
        count = _questions if group.with_challenges else _labels
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
            scores[rate] = matched(self._score, n, known, start, entry.largest, count)
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
