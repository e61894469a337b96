"""Asking and challenging together, with the real learner."""

from streamgp import isgp
from streamgp.interactive import (
    Answer,
    Challenge,
    Event,
    InteractiveLoop,
    LabelledExample,
    LabelRequest,
)


def around(*places):
    """A loop that has learned ten readings at each place."""
    loop = InteractiveLoop(isgp(seed=2))
    for n in range(10):
        for place, (u, v) in places:
            x = {"u": u + 0.1 * (n % 3), "v": v - 0.1 * (n % 2)}
            event = Event(event_id=f"{place}{n}", x=x, occurred_at=0.0, y=place)
            messages = loop.on_event(event, 0.0)
            for challenge in messages:
                if isinstance(challenge, Challenge):  # a new place looks suspicious at first
                    loop.on_answer(answer(challenge, place, f"again {place}{n}"), 0.0)
    return loop


def answer(request, y, answer_id="a1", at=5.0):
    return Answer(
        answer_id=answer_id,
        request_id=request.request_id,
        event_id=request.event_id,
        y=y,
        annotator="ann",
        answered_at=at,
    )


def test_a_delayed_answer_is_judged_by_what_the_learner_believes_when_it_comes():
    loop = around(("hall", (0.0, 0.0)), ("den", (9.0, 9.0)))
    # Nothing is known of this corner: an annotator asked at once is believed.
    corner = {"u": 9.0, "v": 0.0}
    request = next(
        message
        for n in range(40)
        for message in loop.on_event(Event(event_id=f"c{n}", x=corner, occurred_at=1.0), 1.0)
        if isinstance(message, LabelRequest)
    )
    assert not loop.model.challenge_one(corner, "attic").ask
    # While the answer is on its way, others say that it is the kitchen.
    for n in range(8):
        x = {"u": 9.0 + 0.1 * n, "v": 0.1 * n}
        for message in loop.on_event(
            Event(event_id=f"k{n}", x=x, occurred_at=2.0, y="kitchen"), 2.0
        ):
            if isinstance(message, Challenge):
                loop.on_answer(answer(message, "kitchen", f"k{n}!"), 2.0)
    [challenge] = loop.on_answer(answer(request, "attic"), 5.0)
    assert isinstance(challenge, Challenge)
    assert (challenge.given, challenge.suggested) == ("attic", "kitchen")
    [example] = loop.on_answer(answer(challenge, "kitchen", "a2"), 6.0)
    assert (example.y, example.origin, example.probability_wrong) == ("kitchen", "revised", 1.0)


def test_with_three_classes_an_unsure_question_can_meet_an_unlikely_answer():
    loop = around(("hall", (0.0, 0.0)), ("den", (9.0, 0.0)), ("loft", (4.0, 9.0)))
    # Between hall and den; the loft is far away.
    between = {"u": 4.5, "v": 0.0}
    request = next(
        message
        for n in range(40)
        for message in loop.on_event(Event(event_id=f"b{n}", x=between, occurred_at=1.0), 1.0)
        if isinstance(message, LabelRequest)
    )
    [challenge] = loop.on_answer(answer(request, "loft"), 1.0)
    assert isinstance(challenge, Challenge)
    assert challenge.given == "loft"
    # More than the record of the annotator alone says.
    assert challenge.probability_wrong > 0.3


def test_a_label_that_nobody_asked_for_can_be_challenged():
    loop = around(("hall", (0.0, 0.0)), ("den", (9.0, 9.0)))
    event = Event(event_id="e", x={"u": 0.1, "v": 0.0}, occurred_at=1.0, y="den")
    prediction, challenge = loop.on_event(event, 1.0)
    assert prediction.y == "hall"
    assert (challenge.given, challenge.suggested) == ("den", "hall")
    assert {n.y for n in challenge.neighbours} == {"hall"}
    [example] = loop.on_answer(answer(challenge, "den"), 2.0)
    assert isinstance(example, LabelledExample)
    assert (example.y, example.origin, example.probability_wrong) == ("den", "upheld", 0.0)
