"""Another learner is taught what the log leaves, in order, and can go on where the old one was."""

import pytest
from scripted import ScriptedLearner

from streamgp import GPClassifier, SkepticalClassifier
from streamgp.interactive import Answer, Event, InteractiveLoop, LabelledExample, SnapshotError
from streamgp.interactive.rebuilding import head_around, teach
from streamgp.query import AlwaysAsk, AlwaysChallenge, NeverChallenge


def line(name, y, sequence, origin="asked", w=0.1, **more):
    return LabelledExample(
        event_id=name, x={"light": float(sequence)}, y=y, sequence=sequence, origin=origin,
        learned_at=0.0, probability_wrong=w, **more,
    )  # fmt: skip


def model(challenge=None, **options):
    gp = GPClassifier(noise_variance=0.5)
    challenge = NeverChallenge() if challenge is None else challenge
    return SkepticalClassifier(gp, query=AlwaysAsk(), challenge=challenge, seed=1, **options)


def test_each_is_predicted_before_it_is_learned():
    learner = ScriptedLearner()
    log = [line("e1", "den", 1), line("e2", "hall", 2), line("e3", "hall", 3)]
    assert [taught.guess for taught in teach(learner, log)] == [None, "den", "den"]
    assert learner.told == [("e1", "den"), ("e2", "hall"), ("e3", "hall")]
    assert learner.n_observed == 3


def test_the_order_is_that_of_learning_whatever_that_of_the_lines():
    learner = ScriptedLearner()
    list(teach(learner, [line("e2", "hall", 2), line("e1", "den", 1)]))
    assert [name for name, _ in learner.told] == ["e1", "e2"]


def test_the_label_is_the_one_that_stands_in_the_end():
    log = [
        line("e1", "den", 1),
        line("e2", "den", 2),
        line("e1", "hall", 3, "revised", None, revision=1),
        line("e2", None, 4, "withdrawn", None, revision=1),
    ]
    learner = ScriptedLearner()
    assert [taught.y for taught in teach(learner, log)] == ["hall"]
    assert learner.told == [("e1", "hall")]


def test_what_is_refused_is_told_and_the_rest_is_learned():
    learner = ScriptedLearner(refuses=lambda name: name == "e2")
    found = list(teach(learner, [line(f"e{n}", "den", n) for n in (1, 2, 3)]))
    assert [taught.refusal is None for taught in found] == [True, False, True]
    assert [name for name, _ in learner.told] == ["e1", "e3"]


def test_event_that_cannot_be_predicted_is_refused():
    bad = LabelledExample(
        event_id="e1", x={"bad": ValueError("no such feature")}, y="den", sequence=1,
        origin="asked", learned_at=0.0,
    )  # fmt: skip
    [taught] = teach(ScriptedLearner(), [bad])
    assert (taught.guess, taught.refusal) == (None, "no such feature")


def test_annotators_keep_the_reputation_that_challenges_gave_them():
    log = [
        line("e1", "den", 1, annotator="eve"),
        line("e2", "hall", 2, "revised", 1.0, annotator="eve"),
        line("e3", "den", 3, "upheld", 0.0, annotator="flo"),
    ]
    learner = model()
    list(teach(learner, log))
    state = {name: (n, total) for name, n, total in learner.state()["annotators"]}
    n, total = state["eve"]
    assert n == 2
    assert 1.0 <= total < 2.0
    assert state["flo"] == (1, 0.0)


def test_revised_label_without_any_other_counts_as_uncontested():
    learner = model()
    [taught] = teach(learner, [line("e1", "den", 1, "revised", 1.0, annotator="eve")])
    assert taught.refusal is None


def test_learner_of_the_same_configuration_becomes_what_it_was():
    """Where all events were labelled at once and nobody was contested."""
    loop, log = InteractiveLoop(model()), []
    for n in range(30):
        event = Event(
            event_id=f"e{n}", x={"a": n % 7, "b": n % 3}, y="ab"[n % 2], occurred_at=float(n)
        )
        log += [m for m in loop.on_event(event, float(n)) if isinstance(m, LabelledExample)]
    again = model()
    list(teach(again, log))
    assert again.examples() == loop.model.examples()
    for n in range(5):
        x = {"a": n + 0.5, "b": 1}
        assert again.predict_proba_one(x) == loop.model.predict_proba_one(x)


def a_loop():
    """Return a loop with labels, an open request and an open challenge, and its log."""
    loop = InteractiveLoop(model(AlwaysChallenge()), expires_after_s=1000.0)
    log = []

    def say(messages):
        log.extend(m for m in messages if isinstance(m, LabelledExample))

    for n in range(12):
        x = {"a": float(n % 4), "b": float(n % 3)}
        say(loop.on_event(Event(event_id=f"e{n}", x=x, occurred_at=float(n)), float(n)))
        if n < 10:
            answer = Answer(
                answer_id=f"a{n}", request_id=f"e{n}/label", event_id=f"e{n}", y="ab"[n % 2],
                answered_at=n + 0.5,
            )  # fmt: skip
            say(loop.on_answer(answer, n + 0.5))
    return loop, log


def test_loop_goes_on_with_the_other_model():
    loop, log = a_loop()
    parts = loop.parts()
    assert loop.n_open >= 3
    other = model(warm_up=2)
    list(teach(other, log))
    head = head_around(other, parts, log, model(warm_up=2))
    again = InteractiveLoop.from_parts(
        {**parts, "head": head}, log, model(warm_up=2), expires_after_s=1000.0
    )
    assert (again.n_open, again.next_deadline()) == (loop.n_open, loop.next_deadline())
    x = {"a": 1.5, "b": 0.5}
    assert again.model.predict_proba_one(x) == other.predict_proba_one(x)
    answer = Answer(
        answer_id="new", request_id="e10/label", event_id="e10", y="b", answered_at=20.0
    )
    [learned] = again.on_answer(answer, 20.0)
    assert (learned.sequence, learned.y) == (len(log) + 1, "b")
    assert InteractiveLoop.restore(again.snapshot(), model(warm_up=2)).snapshot() == (
        again.snapshot()
    )


def test_what_the_other_model_refused_stays_on_record():
    log = [line(f"e{n}", "den", n) for n in (1, 2)]
    log.append(LabelledExample(**{**_fields(line("e3", "hall", 3)), "x": {"light": 1e200}}))
    loop = InteractiveLoop(model())
    for each in log[:2]:
        loop.on_event(Event(event_id=each.event_id, x=each.x, y=each.y, occurred_at=0.0), 0.0)
    parts = loop.parts()
    parts["head"]["sequence"] = 3
    other = model(warm_up=1)
    assert [taught.refusal is None for taught in teach(other, log)] == [True, True, False]
    head = head_around(other, parts, log, model(warm_up=1))
    again = InteractiveLoop.from_parts({**parts, "head": head}, log, model(warm_up=1))
    assert head["learned"] == again.model.n_learned == 3


def _fields(example):
    return {name: getattr(example, name) for name in example.__slots__}


def test_loop_without_a_head_is_refused():
    with pytest.raises(SnapshotError, match="has no head; bring it back first"):
        head_around(model(), {}, [], model())


def test_model_that_cannot_be_saved_is_refused():
    class Unsaved:
        n_learned = 0

    with pytest.raises(TypeError, match="cannot be saved"):
        head_around(Unsaved(), {"head": {}}, [], Unsaved())
