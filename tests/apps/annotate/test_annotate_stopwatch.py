"""How long a question was shown: all the time in which it was, and no other."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.apps.annotate import line_ui
from streamgp.apps.annotate.commands import COMMANDS, Command
from streamgp.apps.annotate.line_ui import Stopwatch
from tests.helpers.deskwork import Clock, challenge, label_request

REQUESTS = [label_request("e1"), label_request("e2"), label_request("e1", key="other"), None]
LABEL = Command(kind="label", label="den")


@pytest.fixture
def clock() -> Clock:
    return Clock(100.0)


@given(st.lists(st.tuples(st.floats(0.0, 100.0), st.sampled_from(range(4))), max_size=30))
def test_time_is_the_sum_of_all_times_in_front(looks: list[tuple[float, int]]) -> None:
    clock = Clock(0.0)
    watch = Stopwatch(clock)
    spent = [0.0] * len(REQUESTS)
    front = 3
    for seconds, which in looks:
        clock.now += seconds
        spent[front] += seconds
        watch.look(REQUESTS[which])
        front = which
    for which, request in enumerate(REQUESTS[:3]):
        watch.look(request)
        assert watch.seconds() == pytest.approx(spent[which])
    watch.look(None)
    assert watch.seconds() == 0.0


def test_what_was_answered_begins_anew(clock: Clock) -> None:
    watch = Stopwatch(clock)
    watch.look(label_request())
    clock.now += 5.0
    watch.stop()
    clock.now += 1.0
    assert watch.seconds() == 0.0
    watch.look(label_request())
    clock.now += 2.0
    assert watch.seconds() == 2.0


def test_a_challenge_is_another_question_than_the_request_before(clock: Clock) -> None:
    watch = Stopwatch(clock)
    watch.look(label_request())
    clock.now += 5.0
    watch.look(challenge())
    clock.now += 1.0
    assert watch.seconds() == 1.0


def test_answers_alone_are_timed_to_the_millisecond(clock: Clock) -> None:
    watch = Stopwatch(clock)
    watch.look(label_request())
    clock.now += 1.23456
    assert watch.timed(LABEL).response_s == 1.235
    assert watch.timed(COMMANDS["d"]).response_s == 1.235
    for key in "suq":
        assert watch.timed(COMMANDS[key]) == COMMANDS[key]


def test_time_asleep_does_not_count(clock: Clock) -> None:
    watch = Stopwatch(clock)
    watch.listen()
    try:
        watch.look(label_request())
        clock.now += 5.0
        watch.look(label_request())
        clock.now += 3600.0
        os.kill(os.getpid(), signal.SIGCONT)
        clock.now += 1.0
        assert watch.seconds() == 6.0
    finally:
        watch.close()
    clock.now += 10.0
    os.kill(os.getpid(), signal.SIGCONT)
    assert watch.seconds() == 16.0


def test_handler_of_before_is_back_afterwards() -> None:
    before = signal.getsignal(signal.SIGCONT)
    watch = Stopwatch()
    watch.listen()
    assert signal.getsignal(signal.SIGCONT) != before
    watch.close()
    assert signal.getsignal(signal.SIGCONT) == before


def test_times_of_the_last_questions_alone_are_kept(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_ui, "N_KEPT", 2)
    watch = Stopwatch(clock)
    found: dict[str, Any] = {}
    for event_id in ("e1", "e2", "e3", "e1", "e3"):
        watch.look(label_request(event_id))
        clock.now += 1.0
        found[event_id] = watch.seconds()
    assert found == {"e1": 1.0, "e2": 1.0, "e3": 2.0}
