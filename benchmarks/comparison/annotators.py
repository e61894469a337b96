"""Estimated error rates of simulated annotators of many kinds, and the calibration of P(wrong).

Five logs, as recorded where rows follow each other in time, otherwise in random order, with seven
kinds of annotators who answer whatever `isgp()` asks. Wrong answers are evenly distributed over the
other classes. Estimates of an annotator's error rate are compared with the share of first answers
that were wrong, after 35 answers in total and at the end, for annotators who gave at least eight:
the running estimate, by which labels are challenged, and the joint one from all answers together.

P(wrong): its value for each first answer when it came, and how often the answer was wrong, for
annotators who err in 20 % of their answers; classes never heard before also separately, and for 6
and 20 % with `SkepticalChallenge(doubts_new=True)`.

Giving in: annotators of 20 %, some of whom accept what a challenge suggests, right or wrong.

Quarantine: two honest annotators of 5 and 20 %, and one who lies by a fixed rule: always, with and
without quarantine, and with a share of the questions put to a second annotator as well; about one
class only; after 30 honest answers; and about every event, asked or not. The same without the liar.
Accuracy is that of the whole run, and of its second half.

Second questions: three annotators of 5, 20 and 40 %, without and with a share of the questions put
to a second one as well, or to the same one again: over the whole log, and with a fixed total number
of answers of all kinds.

"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from river import metrics

from benchmarks._harness import (
    Acceptance,
    Options,
    Outcome,
    Row,
    at_most,
    progress,
    run,
    standard_error,
)
from benchmarks._logs import Log, read_all
from benchmarks.comparison.conversation import of_all_events
from streamgp import (
    AnnotatorPanel,
    SimulatedAnnotator,
    SkepticalClassifier,
    interactive_val_score,
    isgp,
)
from streamgp.base import Features, Label
from streamgp.interactive import (
    Answer,
    AnswerQueue,
    Challenge,
    Event,
    InteractiveLoop,
    LabelRequest,
    Message,
    People,
    Prediction,
    Request,
    Retraction,
)
from streamgp.query import criteria
from streamgp.simulation import Annotator

_FEWEST_LOGS = 5
_EARLY = 35  # answers
_FEWEST = 8  # answers of an annotator whose estimates count
_N_BINS = 10
_HONEST = [(0.05, False), (0.2, False)]
_LIAR = "liar"
_HONEST_FOR = 30  # answers of one who lies later on
_SHARES = (0.1, 0.2)  # of the questions are put twice
_PANEL = [(0.05, False), (0.2, False), (0.4, False)]
_MOST = 120  # answers of all kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs."""

    logs: Sequence[str] = ("wifi_rooms", "wisdm", "places_1", "occupancy", "pendigits")
    n_events: int = 2000
    n_seeds: int = 3


QUICK = Plan(n_events=500, n_seeds=1)

# Error rate and whether stubborn, of each annotator.
PEOPLE: Mapping[str, Sequence[tuple[float, bool]]] = {
    "6 %": [(0.06, False)],
    "20 %": [(0.2, False)],
    "40 %": [(0.4, False)],
    "20 %, stubborn": [(0.2, True)],
    "40 %, stubborn": [(0.4, True)],
    "2, 20 and 40 %": [(0.02, False), (0.2, False), (0.4, False)],
    "5 %; 40 %, stubborn": [(0.05, False), (0.4, True)],
}
_STUBBORN = "20 %, stubborn"
_USUAL = "20 %"


@dataclass(slots=True)
class Judged:
    """First answers of one annotator: how many, how many wrong, and errors of the estimates.

    `running` is the estimate by which labels are challenged, `joint` the one from all answers.
    """

    n: int = 0
    n_wrong: int = 0
    running: dict[str, float] = field(default_factory=dict)
    joint: dict[str, float] = field(default_factory=dict)

    def judge(self, when: str, running: float, joint: float) -> None:
        """Compare the estimates with the answers so far."""
        if self.n < _FEWEST:
            return
        share = self.n_wrong / self.n
        self.running[when], self.joint[when] = abs(running - share), abs(joint - share)


class Liar(SimulatedAnnotator):
    """An annotator who gives the label after the true one, also when challenged.

    With `of_one` only for events of the first class; `honest_for` is the number of honest answers
    before that.
    """

    def __init__(
        self, classes: Sequence[Label], *, of_one: bool = False, honest_for: int = 0
    ) -> None:
        super().__init__(classes=classes, name=_LIAR)
        self._labels = list(classes)
        self._lied_about = self._labels[:1] if of_one else self._labels
        self._n_honest = honest_for

    def _label(self, request: Request, truth: Label) -> Label:
        if self._n_honest > 0:
            self._n_honest -= not isinstance(request, Challenge)
            return truth
        return self.lie_about(truth)

    def lie_about(self, truth: Label) -> Label:
        """Return the label given instead of the true one."""
        if truth not in self._lied_about:
            return truth
        return self._labels[(self._labels.index(truth) + 1) % len(self._labels)]


class Witness:
    """Annotators together with what the model states about their answers.

    Attributes
    ----------
    people
        Results of each annotator, by name.
    n_given, n_second
        Number of answers of all kinds, and of those to second questions.
    alike
        For each second answer of the same annotator to the same question, whether it equals the
        first.
    stated
        P(wrong) of each first answer when it came, whether it was wrong, and whether its class was
        heard for the first time.
    doubted
        The same for new classes only, with `SkepticalChallenge(doubts_new=True)`.

    """

    def __init__(
        self, annotator: Annotator, model: SkepticalClassifier, most: int | None = None
    ) -> None:
        self._annotator = annotator
        self._most = most
        self.n_given = 0
        self.n_second = 0
        self._model = model
        self._heard: set[Label] = set()
        self._first: dict[str, Label] = {}
        self._n = 0
        self.alike: dict[str | None, list[bool]] = {}
        self.people: dict[str | None, Judged] = {}
        self.stated: list[tuple[float, bool, bool]] = []
        self.doubted: list[tuple[float, bool, bool]] = []

    def see(self, truth: Label) -> None:
        """Learn that a label exists."""
        self._annotator.see(truth)

    def answer(self, request: Request, truth: Label | None, now: float) -> Answer | None:
        """Answer, and record what the model states about a first answer."""
        if self.n_given == self._most:
            return None
        is_second = isinstance(request, LabelRequest) and request.is_second
        is_first = not (is_second or isinstance(request, Challenge))
        if is_first:
            if self._n == _EARLY:
                self.judge("at 35")
            self._n += 1
        answer = self._annotator.answer(request, truth, now)
        if answer is None:
            return None
        self.n_given += 1
        self.n_second += is_second
        if is_second and answer.y is not None and request.annotator is not None:
            same = answer.y == self._first[request.event_id]
            self.alike.setdefault(answer.annotator, []).append(same)
        if is_first and answer.y is not None:
            is_wrong, name = answer.y != truth, answer.annotator
            self._first[request.event_id] = answer.y
            person = self.people.setdefault(name, Judged())
            person.n += 1
            person.n_wrong += is_wrong
            stated = self._model.probability_wrong_one(request.x, answer.y, annotator=name)
            is_new = answer.y not in self._heard
            self.stated.append((stated, is_wrong, is_new))
            if is_new and self._heard:
                self.doubted.append((self._doubt(request.x, answer.y, name), is_wrong, True))
        if answer.y is not None:
            self._heard.add(answer.y)
        return answer

    def _doubt(self, x: Features, y: Label, annotator: str | None) -> float:
        store = self._model._store
        heard = Counter(example.y for example in store.examples())
        rate = self._model.error_rate(annotator)
        return criteria.probability_wrong(store.belief(x), y, rate, heard=heard)

    def judge(self, when: str) -> None:
        """Compare the estimates of all annotators with their answers so far."""
        found = self._model.estimate_annotators()
        for name, person in self.people.items():
            running = self._model.error_rate(name)
            joint = found[name].error_rate if name in found else running
            person.judge(when, running, joint)


class Halves(metrics.Accuracy):
    """Accuracy, and which predictions were right."""

    def __init__(self) -> None:
        super().__init__()
        self.right: list[bool] = []

    def update(self, y_true: Label, y_pred: Label, w: float = 1.0) -> None:
        """Count one prediction."""
        self.right.append(y_true == y_pred)
        super().update(y_true, y_pred, w)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """Result of one run."""

    accuracy: float
    second_half: float
    n_asked: int
    n_learned: int
    n_challenges: int
    n_spoiled: int
    wrong_kept: float
    witness: Witness
    quarantined: Sequence[str]
    n_lies: int


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("annotators", measure, about=__doc__, argv=argv)


def measure(options: Options, *, plan: Plan | None = None) -> Outcome:
    """Run all logs with all annotators."""
    plan = plan or (QUICK if options.quick else Plan())
    logs, missing = read_all(plan.logs, options.data, plan.n_events)
    seeds = range(options.seed, options.seed + plan.n_seeds)
    played: dict[str, list[Played]] = {}
    for people in PEOPLE:
        progress(people)
        played[people] = [play(log, seed, PEOPLE[people]) for log in logs for seed in seeds]
    rows = [_row(people, runs) for people, runs in played.items()]
    stated = [one for run_ in played[_USUAL] for one in run_.witness.stated]
    rows += reliability(stated)
    for name in ("6 %", _USUAL):
        doubted = [one for run_ in played[name] for one in run_.witness.doubted]
        rows += _doubted(name, doubted)
    for suggestible in (0.0, 0.1, 0.3):
        progress(f"suggestible {suggestible}")
        runs = played[_USUAL]
        if suggestible:
            runs = [
                play(log, seed, PEOPLE[_USUAL], suggestible=suggestible)
                for log in logs
                for seed in seeds
            ]
        rows.append(_giving_in(suggestible, runs, played[_USUAL]))
    rows += _quarantines(logs, seeds)
    rows += _second_questions(logs, seeds)
    ece = expected_error(stated)
    notes = [f"{plan.n_seeds} seeds; expected calibration error of P(wrong) {ece:.4f}."]
    whole = len(logs) == _FEWEST_LOGS and not options.quick
    return Outcome(
        rows=rows, acceptance=_accepted(played) if whole else [], skipped=missing, notes=notes
    )


def _quarantines(logs: Sequence[Log], seeds: Sequence[int]) -> Iterator[Row]:
    """Yield the results with lying annotators, on each log and on all."""
    always: Mapping[str, Any] = {}
    scenes: Sequence[tuple[str, Mapping[str, Any] | None, Mapping[str, Any]]] = (
        ("without the liar", None, {}),
        ("with the liar", always, {}),
        ("with the liar, no quarantine", always, {"quarantine": False}),
        ("with the liar, overlap .2", always, {"overlap": 0.2}),
        ("lies about one class", {"of_one": True}, {}),
        ("lies about one class, overlap .2", {"of_one": True}, {"overlap": 0.2}),
        (f"lies after {_HONEST_FOR} answers", {"honest_for": _HONEST_FOR}, {}),
    )
    for people, lies, options in scenes:
        progress(people)
        by_log = [
            [play(log, seed, _HONEST, lies=lies, **options) for seed in seeds] for log in logs
        ]
        for log, runs in zip(logs, by_log, strict=True):
            yield _lying(people, runs, log.name)
        yield _lying(people, [one for runs in by_log for one in runs], "all")
    progress("flooding")
    yield _lying("flooding", [flooded(log, seed) for log in logs for seed in seeds], "all")


def _second_questions(logs: Sequence[Log], seeds: Sequence[int]) -> Iterator[Row]:
    """Yield gains and costs of putting a share of the questions twice."""

    def played(most: int | None, **twice: Any) -> list[Played]:
        progress(", ".join(f"{name} {share}" for name, share in twice.items()) or "all once")
        return [play(log, seed, _PANEL, most=most, **twice) for log in logs for seed in seeds]

    for most in (None, _MOST):
        once = played(most)
        for name in ("overlap", "repeat"):
            yield {name: 0.0, **_compared(most, once, once)}
            for share in _SHARES:
                yield {name: share, **_compared(most, played(most, **{name: share}), once)}


def play(
    log: Log,
    seed: int,
    people: Sequence[tuple[float, bool]],
    *,
    suggestible: float = 0.0,
    lies: Mapping[str, Any] | None = None,
    quarantine: bool = True,
    overlap: float = 0.0,
    repeat: float = 0.0,
    most: int | None = None,
) -> Played:
    """Run a log once; `lies` says how an additional annotator lies, None for no such annotator.

    `most` limits the total number of answers; None for an answer to each question.
    """
    order = "recorded" if "recorded" in log.orders else "random"
    annotators = [
        SimulatedAnnotator(
            error_rate=rate,
            stubborn=stubborn,
            classes=log.classes,
            seed=seed,
            name=f"{i}",
            suggestible=suggestible,
        )
        for i, (rate, stubborn) in enumerate(people)
    ]
    if lies is not None:
        annotators.append(Liar(log.classes, **lies))
    model = isgp(seed=seed)
    witness = Witness(AnnotatorPanel(annotators, seed=seed), model, most)
    metric = Halves()
    result = interactive_val_score(
        log.played(order, seed),
        model,
        metric,
        annotator=witness,
        people=People(quarantine=quarantine, overlap=overlap, repeat=repeat),
    )
    witness.judge("end")
    return Played(
        accuracy=of_all_events(result.metric.get(), result),
        second_half=mean(metric.right[-(result.n_events // 2) :]),
        n_asked=result.n_asked,
        n_learned=result.n_learned,
        n_challenges=result.n_challenges,
        n_spoiled=result.n_spoiled,
        wrong_kept=result.wrong_kept or 0.0,
        witness=witness,
        quarantined=result.quarantined,
        n_lies=result.n_taken_back or model.annotator_judge().n_answers(_LIAR),
    )


def flooded(log: Log, seed: int) -> Played:
    """Run a log once with an additional annotator who lies about every event, asked or not."""
    order = "recorded" if "recorded" in log.orders else "random"
    liar = Liar(log.classes)
    honest = [
        SimulatedAnnotator(error_rate=rate, classes=log.classes, seed=seed, name=f"{i}")
        for i, (rate, _) in enumerate(_HONEST)
    ]
    model = isgp(seed=seed)
    witness = Witness(AnnotatorPanel([*honest, liar], seed=seed), model)
    loop, queue = InteractiveLoop(model), AnswerQueue(witness)
    truths: dict[str, Label] = {}
    right: list[bool] = []
    seen: list[Message] = []

    def follow(messages: Sequence[Message], now: float) -> None:
        seen.extend(messages)
        for message in messages:
            if isinstance(message, LabelRequest | Challenge):
                queue.ask(message, now)
        for answer in queue.due(now):
            follow(loop.on_answer(answer, now), now)

    for n, (x, y) in enumerate(log.played(order, seed)):
        event, now = Event(event_id=f"{n}", x=x, occurred_at=float(n), truth=y), float(n)
        queue.see(event)
        prediction, *messages = loop.on_event(event, now)
        truths[event.event_id] = y
        right.append(isinstance(prediction, Prediction) and prediction.y == y)
        follow(messages, now)
        if not messages:
            lie = Answer(
                answer_id=f"{n}/lie",
                event_id=f"{n}",
                y=liar.lie_about(y),
                annotator=_LIAR,
                answered_at=now,
            )
            follow(loop.on_answer(lie, now), now)
    retracted = [message for message in seen if isinstance(message, Retraction)]
    return Played(
        accuracy=mean(right),
        second_half=mean(right[-(len(right) // 2) :]),
        n_asked=sum(isinstance(one, LabelRequest) and not one.is_second for one in seen),
        n_learned=model.n_learned,
        n_challenges=sum(isinstance(one, Challenge) for one in seen),
        n_spoiled=0,  # none of them gives in
        wrong_kept=mean(one.y != truths[str(one.event_id)] for one in model.examples()),
        witness=witness,
        quarantined=loop.quarantined,
        n_lies=sum(len(one.taken) for one in retracted) or model.annotator_judge().n_answers(_LIAR),
    )


def reliability(stated: Sequence[tuple[float, bool, bool]]) -> list[Row]:
    """Return the reliability table of P(wrong), with a row for classes never heard before."""
    groups: dict[float, list[tuple[float, bool, bool]]] = {}
    for one in stated:
        groups.setdefault(_bin(one[0]) / _N_BINS, []).append(one)
    new = [one for one in stated if one[2]]
    table = {**dict(sorted(groups.items())), **({"new classes": new} if new else {})}
    return [{"stated_from": name, **_as_stated(group)} for name, group in table.items()]


def _as_stated(group: Sequence[tuple[float, bool, bool]]) -> Row:
    return {
        "answers": len(group),
        "stated": mean(p for p, _, _ in group),
        "wrong": mean(wrong for _, wrong, _ in group),
    }


def _doubted(people: str, doubted: Sequence[tuple[float, bool, bool]]) -> list[Row]:
    """Return what is stated about classes never heard before, if any of these are doubted."""
    if not doubted:
        return []
    wrong = standard_error([float(one) for _, one, _ in doubted])
    return [{"doubted_of": people, **_as_stated(doubted), "wrong_se": wrong}]


def expected_error(stated: Sequence[tuple[float, bool, bool]]) -> float:
    """Expected calibration error over ten bins of equal width."""
    rows = [row for row in reliability(stated) if row["stated_from"] != "new classes"]
    off = sum(row["answers"] * abs(row["stated"] - row["wrong"]) for row in rows)
    return float(off / len(stated)) if stated else 0.0


def errors(runs: Sequence[Played], when: str, *, joint: bool) -> list[float]:
    """Return the errors of all estimates at one time."""
    people = [person for one in runs for person in one.witness.people.values()]
    found = [(person.joint if joint else person.running).get(when) for person in people]
    return [error for error in found if error is not None]


def _bin(p: float) -> int:
    return min(int(p * _N_BINS), _N_BINS - 1)


def _row(people: str, runs: Sequence[Played]) -> Row:
    row: Row = {
        "annotators": people,
        "accuracy": mean(one.accuracy for one in runs),
        "labels": mean(one.n_asked for one in runs),
        "challenges": mean(one.n_challenges for one in runs),
        "wrong_kept": mean(one.wrong_kept for one in runs),
    }
    for when in ("at 35", "end"):
        for name, joint in (("running", False), ("joint", True)):
            row[f"{when}, {name}"] = mean(errors(runs, when, joint=joint) or [0.0])
    return row


def _giving_in(suggestible: float, runs: Sequence[Played], firm: Sequence[Played]) -> Row:
    """Return the cost of giving in; only annotators who do so can spoil a right label."""
    gains = [one.accuracy - other.accuracy for one, other in zip(runs, firm, strict=True)]
    return {
        "suggestible": suggestible,
        "accuracy": mean(one.accuracy for one in runs),
        "gain": mean(gains),
        "gain_se": standard_error(gains),
        "challenges": mean(one.n_challenges for one in runs),
        "wrong_kept": mean(one.wrong_kept for one in runs),
        "spoiled": mean(one.n_spoiled for one in runs) if suggestible else None,
    }


def _compared(most: int | None, runs: Sequence[Played], alone: Sequence[Played]) -> Row:
    """Return what second questions gain or cost, compared with runs without them."""
    gains = [one.accuracy - other.accuracy for one, other in zip(runs, alone, strict=True)]
    kept = [one.wrong_kept - other.wrong_kept for one, other in zip(runs, alone, strict=True)]
    return {
        "answers at most": most,
        "accuracy": mean(one.accuracy for one in runs),
        "gain": mean(gains),
        "gain_se": standard_error(gains),
        "labels": mean(one.n_learned for one in runs),
        "challenges": mean(one.n_challenges for one in runs),
        "second": mean(one.witness.n_second for one in runs),
        "answers": mean(one.witness.n_given for one in runs),
        "wrong_kept": mean(one.wrong_kept for one in runs),
        "wrong_kept_gain": mean(kept),
        "wrong_kept_se": standard_error(kept),
        "end, running": mean(errors(runs, "end", joint=False) or [0.0]),
        "end, joint": mean(errors(runs, "end", joint=True) or [0.0]),
        **{f"alike {i}": _share_alike(runs, f"{i}") for i in range(len(_PANEL))},
    }


def _share_alike(runs: Sequence[Played], annotator: str) -> float | None:
    """Return the share of an annotator's repeated questions that got the same answer, if any."""
    alike = [one for run_ in runs for one in run_.witness.alike.get(annotator, [])]
    return mean(alike) if alike else None


def _lying(people: str, runs: Sequence[Played], log: str) -> Row:
    """Return who was quarantined, and after how many of the liar's labels had been learned."""
    named = [one for one in runs if _LIAR in one.quarantined]
    return {
        "quarantine": people,
        "log": log,
        "accuracy": mean(one.accuracy for one in runs),
        "second half": mean(one.second_half for one in runs),
        "labels": mean(one.n_asked for one in runs),
        "learned": mean(one.n_learned for one in runs),
        "runs": len(runs),
        "named": len(named),
        "lies, mean": mean(one.n_lies for one in named) if named else None,
        "lies, most": max((one.n_lies for one in named), default=None),
        "honest named": sum(name != _LIAR for one in runs for name in one.quarantined),
    }


def _accepted(played: Mapping[str, Sequence[Played]]) -> list[Acceptance]:
    ours = [one for runs in played.values() for one in runs]
    stubborn = mean(errors(played[_STUBBORN], "end", joint=True))
    stated = [one for run_ in played[_USUAL] for one in run_.witness.stated]
    return [
        at_most("error of e at the end", mean(errors(ours, "end", joint=True)), 0.04),
        at_most("error of e after 35 answers", mean(errors(ours, "at 35", joint=True)), 0.065),
        at_most("error of e, stubborn with 20 %", stubborn, 0.06),
        at_most("calibration error of P(wrong)", expected_error(stated), 0.03),
    ]
