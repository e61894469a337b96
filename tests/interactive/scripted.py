"""A small learner that keeps every example and decides by script: the loop's counterpart."""

# ruff: noqa: ARG002 - a protocol fixes the arguments

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streamgp.base import Decision, Doubt, Example, Features, Label, Neighbour
from streamgp.interactive import Answer, Event, InteractiveLoop, LabelledExample, Message
from streamgp.query import RecentEventsAsk


def decision(ask: bool) -> Decision:
    return Decision.of(1.0 if ask else 0.0, 0.5, "Scripted")


class ScriptedLearner:
    """Predicts the class it holds most often, or `proba`; does all else on command.

    `told` is what it was told to learn, in order, as (event id, label or None for forgetting).
    `calls` are all notes and lessons with their arguments.
    """

    def __init__(
        self,
        asks: bool | Callable[[str], bool] = True,
        contests: bool | Callable[[str], bool] = False,
        refuses: bool | Callable[[str], bool] = False,
        proba: dict[Label, float] | None = None,
        doubts: bool | Callable[[str], bool] = False,
        asks_back: bool | Callable[[str], bool] = False,
        reservoir: RecentEventsAsk | None = None,
    ) -> None:
        self.asks, self.contests, self.refuses, self.proba = asks, contests, refuses, proba
        self.doubts = doubts
        self.asks_back, self.reservoir = asks_back, reservoir
        self.reservoir_due = True
        self.held: dict[str, tuple[Features, Label]] = {}
        self.told: list[tuple[str, Label | None]] = []
        self.calls: list[tuple[Any, ...]] = []
        self.n_observed = 0

    def clone(self) -> ScriptedLearner:
        return type(self)(
            self.asks,
            self.contests,
            self.refuses,
            self.proba,
            self.doubts,
            self.asks_back,
            self.reservoir,
        )

    @staticmethod
    def _says(rule: bool | Callable[[str], bool], event_id: str | None) -> bool:
        return rule(str(event_id)) if callable(rule) else rule

    @property
    def n_learned(self) -> int:
        return len(self.held)

    def observe_one(self, x: Features) -> None:
        if "bad" in x:
            raise x["bad"]
        self.n_observed += 1

    def predict_proba_one(self, x: Features) -> dict[Label, float]:
        if self.proba is not None:
            return dict(self.proba)
        counts: dict[Label, float] = {}
        for _, y in self.held.values():
            counts[y] = counts.get(y, 0.0) + 1.0 / len(self.held)
        return counts

    def query_one(
        self, x: Features, *, event_id: str | None = None, now: float | None = None
    ) -> Decision:
        return decision(self._says(self.asks, event_id))

    def note_query(self, decision: Decision, *, asked: bool, now: float) -> None:
        self.calls.append(("note_query", decision, asked, now))

    def note_unanswered(self, now: float) -> None:
        self.calls.append(("note_unanswered", now))

    def challenge_one(
        self,
        x: Features,
        y: Label,
        *,
        annotator: str | None = None,
        event_id: str | None = None,
    ) -> Decision:
        return decision(self._says(self.contests, event_id))

    def probability_wrong_one(
        self, x: Features, y: Label, *, annotator: str | None = None
    ) -> float:
        return 0.75

    def neighbours_one(self, x: Features, n: int = 3) -> list[Neighbour]:
        return [
            Neighbour(event_id=event_id, x=x, y=y, distance=1.0)
            for event_id, (x, y) in self.held.items()
        ][:n]

    def settle_one(
        self,
        x: Features,
        y: Label,
        *,
        given: Label,
        challenged: bool,
        annotator: str | None = None,
        event_id: str | None = None,
    ) -> float:
        assert event_id is not None
        assert event_id not in self.held, f"{event_id} was learned twice"
        if self._says(self.refuses, event_id):
            raise ValueError("cannot learn this; use another learner")
        self.held[event_id] = (x, y)
        self.told.append((event_id, y))
        self.calls.append(("settle_one", event_id, y, given, challenged, annotator))
        return float(y != given) if challenged else 0.25

    def relabel_one(self, event_id: str, y: Label) -> None:
        if self._says(self.refuses, event_id):
            raise ValueError("cannot learn this; use another learner")
        self.held[event_id] = (self.held[event_id][0], y)
        self.told.append((event_id, y))

    def forget_one(self, event_id: str) -> None:
        del self.held[event_id]
        self.told.append((event_id, None))

    @property
    def review_due(self) -> bool:
        return self.doubts is not False

    def review_one(self, annotators: Mapping[str, str | None], *, now: float) -> Doubt | None:
        self.calls.append(("review_one", dict(annotators), now))
        found = next((name for name in annotators if self._says(self.doubts, name)), None)
        if found is None:
            return None
        return Doubt(
            event_id=found, decision=decision(True), suggested="other", probability_wrong=0.9
        )

    def note_review(self, doubt: Doubt | None, *, now: float) -> None:
        self.calls.append(("note_review", None if doubt is None else doubt.event_id, now))

    def note_review_unanswered(self, now: float) -> None:
        self.calls.append(("note_review_unanswered", now))

    def ask_among_one(
        self, candidates: Mapping[str, Features], *, now: float
    ) -> tuple[str, Decision] | None:
        self.calls.append(("ask_among_one", list(candidates), now))
        found = next((name for name in candidates if self._says(self.asks_back, name)), None)
        if found is not None:
            return found, decision(True)
        return next(((name, decision(False)) for name in candidates), None)

    def note_reservoir(self, decision: Decision | None, *, now: float) -> None:
        self.calls.append(("note_reservoir", decision, now))

    def note_reservoir_unanswered(self, now: float, *, asked_at: float) -> None:
        self.calls.append(("note_reservoir_unanswered", now, asked_at))

    def examples(self) -> list[Example]:
        return [Example(event_id=name, x=x, y=y) for name, (x, y) in self.held.items()]


class SavedLearner(ScriptedLearner):
    """One that can be saved."""

    def fingerprint(self) -> str:
        return "scripted"

    def state(self) -> dict[str, Any]:
        return {}

    def load_state(self, _state: Any, examples: Sequence[Example]) -> None:
        self.held = {str(e.event_id): (e.x, e.y) for e in examples}


class ComparingLearner(SavedLearner):
    """Draws `drawn` for every event; of two answers the second one stands if it `gives_way`."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.drawn, self.gives_way = 0.99, True

    def draw_one(self, event_id, purpose):
        return self.drawn(event_id) if callable(self.drawn) else self.drawn

    def aggregate_one(self, event_id, given, y, *, given_by=None, annotator=None):
        assert event_id in self.held
        return y if self.gives_way else given

    def note_second(self, event_id, y, *, annotator=None, probability_wrong=None):
        self.calls.append(("note_second", event_id, y, annotator, probability_wrong))


class JudgingLearner(SavedLearner):
    """Knows three annotators, with `n` answers each, and what speaks `against` them.

    Without the one against whom most speaks, the others agree.
    """

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.against, self.n = {"eve": 1e9}, 8

    def annotators(self):
        return [None, "ann", "bob", "eve"]

    def n_features_with(self, x):
        return len(x)

    def annotator_judge(self):
        return self

    def n_answers(self, annotator):
        return self.n

    def evidence_against(self, annotator, without=()):
        assert annotator not in without
        return self.against.get(annotator, 0.0)

    def contradiction_without(self, annotator, without=()):
        return 0.0 if annotator == max(self.against, key=self.against.get) else 1e9


def log_of(messages: list[Message]) -> list[tuple[str, Label | None]]:
    """What the consensus messages say the model was told."""
    return [(m.event_id, m.y) for m in messages if isinstance(m, LabelledExample)]


class ScriptedTalk:
    """A loop around a scripted learner; answers are numbered.

    Parameters
    ----------
    learner
        The learner.
    options
        Those of the loop.

    """

    def __init__(self, learner, **options):
        self.learner = learner
        self.loop = InteractiveLoop(learner, **options)
        self.n_answers = 0

    def event(self, name, at=0.0, **fields):
        return self.loop.on_event(Event(event_id=name, x={"f": at}, occurred_at=at, **fields), at)

    def answer(self, name, y, request=None, at=1.0, **fields):
        self.n_answers += 1
        answer = Answer(
            answer_id=f"a{self.n_answers}",
            event_id=name,
            request_id=request and f"{name}/{request}",
            y=y,
            declined=y is None,
            answered_at=at,
            **fields,
        )
        return self.loop.on_answer(answer, at)

    def state(self, name):
        return self.loop._memory[name].state
