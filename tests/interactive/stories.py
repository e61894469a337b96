"""Random sequences of inputs, for laws about real models: the events, answers and times of keys."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from streamgp.interactive import (
    Answer,
    Challenge,
    Event,
    InteractiveLoop,
    LabelRequest,
    Message,
)

LABELS = ("a", "b", 2, 2.5)
MIXED = ("a", "b", "c", 1, True, 2.5)
"""Labels of which some are one key of a dictionary, as True, 1 and 1.0 are."""
SPANS = {"expires_after_s": 5.0, "answer_horizon_s": 60.0}
CUTS = st.sampled_from((7, 1, 2, 3, 5, 12))
"""Inputs from one restart to the next. A restart after each costs most, and is not drawn first."""


class Story:
    """Makes up the next input from the messages so far, the same for the same seed.

    Everything happens: labels that come along, right, wrong, late, unasked, superseding, declined,
    cancelled and repeated answers, unknown names, features that come and go, time that jumps.
    """

    def __init__(self, seed: int, *, key: str | None = None, labels: tuple[Any, ...] = LABELS):
        self.rng = random.Random(f"{seed}{key}")
        self.key = key
        self.labels = labels
        self.now = 0.0
        self.n = 0
        self.requests: list[Any] = []
        self.answers: list[Answer] = []

    def next(self, messages: list[Message]) -> tuple[str, Any, float]:
        """Return the method of the loop to call, its first argument, and `now`."""
        rng = self.rng
        self.requests += [m for m in messages if isinstance(m, LabelRequest | Challenge)]
        self.n += 1
        self.now += rng.choice([0.0, 1.0, 1.0, 2.0, 7.0, -3.0])
        kind = rng.random()
        if kind < 0.5 or not self.requests:
            return "on_event", self.event(), self.now
        if kind < 0.9:
            answer = self.answer()
            self.answers.append(answer)
            return "on_answer", answer, self.now
        if kind < 0.94:
            return "on_cancel", rng.choice(self.requests).request_id, self.now
        if kind < 0.97 and self.answers:
            return "on_answer", rng.choice(self.answers), self.now
        return "on_time", self.now, self.now

    def event(self) -> Event:
        rng = self.rng
        centre = rng.randrange(3)
        x: dict[Any, Any] = {name: rng.gauss(centre * 3.0, 1.0) for name in ("u", "v")}
        if rng.random() < 0.3:
            x["n"] = rng.randrange(5)
        if self.n > 30 and rng.random() < 0.5:
            x["late"] = rng.random()
        if rng.random() < 0.1:
            del x["v"]
        if rng.random() < 0.05:
            x["u"] = float("nan")
        if rng.random() < 0.05:
            x[7] = 1.0
        return Event(
            event_id=f"e{self.n if rng.random() < 0.95 else rng.randrange(self.n)}",
            key=self.key,
            x=x,
            occurred_at=self.now,
            y=rng.choice(self.labels) if rng.random() < 0.15 else None,
            truth=self.labels[centre],
        )

    def answer(self) -> Answer:
        rng = self.rng
        request = rng.choice(self.requests[-6:])
        supersedes = None
        if rng.random() < 0.25:
            earlier = [a for a in self.answers if a.event_id == request.event_id]
            supersedes = earlier[-1].answer_id if earlier else request.event_id
        y = rng.choice(self.labels) if rng.random() < 0.85 else None
        return Answer(
            answer_id=f"a{self.n}",
            request_id=request.request_id if rng.random() < 0.8 and not supersedes else None,
            event_id=request.event_id if rng.random() < 0.95 else "unknown",
            key=self.key,
            y=y,
            declined=y is None,
            annotator=rng.choice(["ann", "bob", None]),
            answered_at=self.now,
            privileged={"confidence": 0.5} if rng.random() < 0.2 else None,
            supersedes=supersedes,
        )


class TextStory(Story):
    """A story whose places tell the classes apart, and whose numbers are texts now and then."""

    def event(self) -> Event:
        event, rng = super().event(), self.rng
        x = dict(event.x)
        if rng.random() < 0.8:
            place = ["hall", "bath", "attic"][self.labels.index(event.truth)]
            x["place"] = place if rng.random() < 0.7 else f"place {rng.randrange(40)}"
        if rng.random() < 0.1:
            x["u"] = rng.choice(["", "out of range"])
        if rng.random() < 0.2:
            x["open"] = rng.random() < 0.5
        return replace(event, x=x)


def told(loop: Any, step: tuple[str, Any, float], *, key: str | None = None) -> list[Message]:
    """Hand one input over; return the messages."""
    method, argument, now = step
    if method == "on_time":
        return loop.on_time(now)  # type: ignore[no-any-return]
    if method == "on_cancel":
        return loop.on_cancel(argument, now, key=key)  # type: ignore[no-any-return]
    return getattr(loop, method)(argument, now)  # type: ignore[no-any-return]


def played_with_cuts(
    model: Callable[[], Any], story: Story, every: int, *, n: int = 110
) -> tuple[InteractiveLoop, list[Message]]:
    """Play a story to a loop, and to one that is restored from snapshots: both say the same.

    Returns the former, and all messages.
    """
    whole, cut = (InteractiveLoop(model(), **SPANS) for _ in range(2))
    messages: list[Message] = []
    said: list[Message] = []
    for i in range(n):
        step = story.next(messages)
        messages = told(whole, step)
        said += messages
        assert repr(told(cut, step)) == repr(messages)  # repr: NaN does not equal itself
        if i % every == 0:
            cut = InteractiveLoop.restore(cut.snapshot(), model())
            assert cut.next_deadline() == whole.next_deadline()
            assert cut.n_open == whole.n_open
    assert cut.snapshot() == whole.snapshot()
    return whole, said
