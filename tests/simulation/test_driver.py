"""One driver: a replay and `interactive_val_score` play the same conversation over the same log."""

from itertools import islice

import pytest
from river import metrics

from streamgp import InteractiveLoop, KeyedLoops, SimulatedAnnotator, datasets, isgp
from streamgp import interactive_val_score as val_score
from streamgp.apps.replay.engine import EventSource, Replay
from streamgp.interactive.messages import Cancel, Event, Expired, LabelRequest, Prediction
from streamgp.query import SkepticalClassifier
from streamgp.query.budgets import RateBudget
from streamgp.simulation.driver import Driver, just_after

N_EVENTS = 300


def readings():
    return [(x, room) for x, room in islice(datasets.WiFiRooms(), 0, 4 * N_EVENTS, 4)]


def budgeted():
    return SkepticalClassifier(isgp(seed=1).model, budget=RateBudget(0.2), seed=1)


@pytest.mark.parametrize("model", [lambda: isgp(seed=1), budgeted], ids=["isgp", "with a budget"])
@pytest.mark.parametrize(
    ("annotator", "expires_after_s"),
    [
        ({}, None),
        ({"error_rate": 0.3, "delay": 7.0}, None),
        ({"error_rate": 0.2, "delay": 20.0, "decline_rate": 0.2}, 12.0),
        ({"error_rate": 0.2, "delay": 5.5, "stubborn": True}, 5.0),
    ],
)
def test_a_replay_and_a_progressive_evaluation_come_to_the_same_counts(
    model, annotator, expires_after_s
):
    result = val_score(
        readings(),
        model(),
        metrics.Accuracy(),
        annotator=SimulatedAnnotator(**annotator, seed=2),
        expires_after_s=expires_after_s,
    )
    events = [
        Event(event_id=str(n), x=x, occurred_at=float(n), truth=room)
        for n, (x, room) in enumerate(readings())
    ]
    played = Replay(
        InteractiveLoop(model(), expires_after_s=expires_after_s),
        EventSource(events),
        SimulatedAnnotator(**annotator, seed=2),
    ).run()
    counts = played.statistics.summary()
    assert counts["n_events"] == N_EVENTS
    assert counts["n_asked"] > 20
    for name in type(result).__slots__:
        if name not in ("metric", "quarantined", "n_taken_back", "n_second"):
            assert getattr(result, name) == counts[name], name
    assert result.n_second == counts.get("n_second", 0)


def drive(loop):
    said = []
    return Driver(loop, lambda message, now: said.append((type(message), now))), said


def test_what_is_due_between_two_inputs_ends_at_its_time_and_in_turn():
    loop = KeyedLoops(isgp(seed=1), expires_after_s=10.0)
    driver, said = drive(loop)
    for n, (key, at) in enumerate([("ann", 0.0), ("bob", 3.0)]):
        driver.take(Event(event_id=str(n), key=key, x={"a": 0.5}, occurred_at=at), at)
    driver.take(Event(event_id="later", key="ann", x={"a": 0.5}, occurred_at=100.0), 100.0)
    assert said == [
        (Prediction, 0.0),
        (LabelRequest, 0.0),
        (Prediction, 3.0),
        (LabelRequest, 3.0),
        (Expired, just_after(10.0)),
        (Expired, just_after(13.0)),
        (Prediction, 100.0),
        (LabelRequest, 100.0),
    ]


def test_a_cancellation_is_an_input_like_others():
    driver, said = drive(InteractiveLoop(isgp(seed=1)))
    driver.take(Event(event_id="e", x={"a": 0.5}, occurred_at=0.0), 0.0)
    driver.take(Cancel(request_id="e/label", why="gone", at=1.0), 1.0)
    assert said[-1] == (Cancel, 1.0)


def test_time_goes_on_where_floats_have_no_room_for_a_millisecond():
    assert just_after(2.0**60) > 2.0**60
    assert just_after(5.0) == 5.001
