"""The cost of the conversation on top of the learner, and the time a process takes to start.

An event: `InteractiveLoop.on_event` around `SkepticalClassifier(GPClassifier())` that holds 200
examples of 20 features and 10 classes (observe, scale, predict, decide, make the messages, a label
request among them every third time), minus `GPClassifier.predict_proba_one` of the same scaled
event by a copy of the learner, which has to solve for it again. No request is answered meanwhile,
so `SkepticalAsk` soon has to consider a hundred open questions. The same again with `NeverAsk`,
which leaves no question open. An answer: from the answer to the message that says it is learned,
minus `GPClassifier.learn_one` by that copy; nothing is challenged. Both sides are timed in turns;
medians are shown.

A start: wall-clock time of a whole process, interpreter included, median of five. Not measured: the
learner itself (`benchmarks.gp_speed`), connectors and files.

"""

from __future__ import annotations

import copy
import subprocess
import sys
import time
from pathlib import Path
from statistics import mean, median, pstdev
from typing import Any

import numpy as np

import streamgp
from benchmarks._harness import Options, Outcome, Row, at_most, run
from streamgp import GPClassifier, InteractiveLoop, SkepticalClassifier
from streamgp.base import Features
from streamgp.interactive import Answer, Event, LabelRequest
from streamgp.query import NeverAsk, NeverChallenge
from streamgp.query.strategies import AskRule

_N_FEATURES = 20
_N_CLASSES = 10
_N_LEARNED = 200
_N_ANSWERS = 50
OPEN, NONE_OPEN = "event, questions open", "event, no question open"
_STARTS = {
    "import streamgp": ["-c", "import streamgp"],
    "streamgp --help": ["-c", "from streamgp.cli.main import main; main()", "--help"],
    "from streamgp import isgp": ["-c", "from streamgp import isgp"],
    "the interpreter alone": ["-c", ""],
}


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("loop", measure, about=__doc__, argv=argv)


def measure(options: Options, *, n_events: int | None = None, n_starts: int = 5) -> Outcome:
    """Measure events, then answers, then starts."""
    n_events = n_events or (3_000 if options.quick else 20_000)
    conversation = _Conversation(n_events, options.seed)
    event, answer = conversation.events(OPEN), conversation.answers()
    quiet = _Conversation(n_events, options.seed, NeverAsk()).events(NONE_OPEN)
    starts = {what: _seconds(arguments, n_starts) for what, arguments in _STARTS.items()}
    accepted = [at_most("microseconds of an event above the learner", event["above_us"], 30.0)]
    for what in ("import streamgp", "streamgp --help"):
        accepted.append(at_most(f"seconds of {what}", starts[what], 0.5))
    rows = [event, quiet, answer, *({"start": k, "seconds": v} for k, v in starts.items())]
    return Outcome(rows=rows, acceptance=accepted)


class _Conversation:
    """A loop that holds 200 examples, a copy of its learner, and events to come."""

    def __init__(self, n_events: int, seed: int, query: AskRule | None = None) -> None:
        xs, ys = _stream(_N_LEARNED + n_events, seed)
        model = SkepticalClassifier(
            GPClassifier(), query, NeverChallenge(), warm_up=_N_LEARNED, seed=seed
        )
        self._loop = InteractiveLoop(model)
        for i, (x, y) in enumerate(zip(xs[:_N_LEARNED], ys, strict=False)):
            self._loop.on_event(Event(event_id=f"first{i}", x=x, occurred_at=float(i), y=y), i)
        self._learner: Any = copy.deepcopy(model.learner)
        columns = {name: [x[name] for x in xs[:_N_LEARNED]] for name in xs[0]}
        self._scales = {name: (mean(column), pstdev(column)) for name, column in columns.items()}
        self._xs, self._ys = xs[_N_LEARNED:], ys[_N_LEARNED:]
        self._requests: list[tuple[LabelRequest, int]] = []

    def events(self, step: str) -> Row:
        """Time events, by the loop and by the learner alone."""
        whole, alone = [], []
        clock = time.perf_counter
        for i, (x, y) in enumerate(zip(self._xs, self._ys, strict=True)):
            event = Event(event_id=f"e{i}", x=x, occurred_at=float(i))
            scaled = self._scaled(x)
            t0 = clock()
            messages = self._loop.on_event(event, event.occurred_at)
            t1 = clock()
            self._learner.predict_proba_one(scaled)
            t2 = clock()
            whole.append(t1 - t0)
            alone.append(t2 - t1)
            self._requests += [(m, y) for m in messages if isinstance(m, LabelRequest)]
        return _row(step, whole, alone)

    def answers(self) -> Row:
        """Time answers to the requests that the events have led to."""
        whole, alone = [], []
        clock = time.perf_counter
        for request, y in self._requests[:_N_ANSWERS]:
            answer = Answer(
                answer_id=f"{request.request_id}/answer",
                request_id=request.request_id,
                event_id=request.event_id,
                y=y,
                answered_at=float(len(self._xs)),
            )
            scaled = self._scaled(request.x)
            t0 = clock()
            self._loop.on_answer(answer, answer.answered_at)
            t1 = clock()
            self._learner.learn_one(scaled, y)
            t2 = clock()
            whole.append(t1 - t0)
            alone.append(t2 - t1)
        return _row("answer -> learned", whole, alone)

    def _scaled(self, x: Features) -> Features:
        return {name: (x[name] - m) / std for name, (m, std) in self._scales.items()}


def _row(step: str, whole: list[float], alone: list[float]) -> Row:
    loop, learner = 1e6 * median(whole), 1e6 * median(alone)
    return {"step": step, "loop_us": loop, "learner_us": learner, "above_us": loop - learner}


def _stream(n: int, seed: int) -> tuple[list[Features], list[int]]:
    rng = np.random.default_rng(seed)
    names = [f"f{j}" for j in range(_N_FEATURES)]
    X = rng.normal(3.0, 2.0, size=(n, _N_FEATURES)).tolist()
    y: list[int] = rng.integers(_N_CLASSES, size=n).tolist()
    return [dict(zip(names, x, strict=True)) for x in X], y


def _seconds(arguments: list[str], n: int) -> float:
    """Median wall-clock time of a Python process that imports the streamgp in use here."""
    home = Path(streamgp.__file__).parents[1]
    durations = []
    for _ in range(n):
        started = time.perf_counter()
        subprocess.run(
            [sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, cwd=home
        )
        durations.append(time.perf_counter() - started)
    return median(durations)
