"""Another learner is taught what the log leaves, in order, and can go on where the old one was."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river.compose import FuncTransformer
from river.naive_bayes import GaussianNB

from streamgp import (
    GPClassifier,
    GPRegressor,
    PrivilegedGPClassifier,
    SkepticalClassifier,
    SkepticalRegressor,
)
from streamgp.base import SettledAnswer
from streamgp.interactive import (
    Answer,
    Challenge,
    Event,
    InteractiveLoop,
    LabelledExample,
    LabelRequest,
    SnapshotError,
)
from streamgp.interactive.rebuild import head_around
from streamgp.interactive.teaching import teach
from streamgp.query import (
    AlwaysAsk,
    AlwaysChallenge,
    EqualErrorAsk,
    NeverChallenge,
    RecentEventsAsk,
    SkepticalChallenge,
)
from tests.helpers.laws import examples
from tests.interactive.scripted import ScriptedLearner


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
    assert [taught.predicted for taught in teach(learner, log)] == [None, "den", "den"]
    assert learner.told == [("e1", "den"), ("e2", "hall"), ("e3", "hall")]
    assert learner.n_observed == 3


def test_the_order_is_that_of_learning_whatever_that_of_the_lines():
    learner = ScriptedLearner()
    list(teach(learner, [line("e2", "hall", 2), line("e1", "den", 1)]))
    assert [name for name, _ in learner.told] == ["e1", "e2"]


def test_the_label_is_the_one_that_stands_at_the_end():
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
    assert (taught.predicted, taught.refusal) == (None, "no such feature")


def test_refusal_of_text_names_the_feature():
    def subtract(x):
        return {name: value - 0.5 for name, value in x.items()}

    model = SkepticalClassifier(FuncTransformer(subtract) | GaussianNB(), seed=1)
    log = [
        LabelledExample(
            event_id="e1", x={"near": 1.5, "phone": "a"}, y="den", sequence=1, origin="asked",
            learned_at=0.0,
        )
    ]  # fmt: skip
    [taught] = teach(model, log)
    assert taught.refusal == "unsupported operand type(s) for -: 'str' and 'float'; 'phone' is text"


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


# --- judgements of the learner, and updates of its rule


def privileged():
    gp = PrivilegedGPClassifier(learn_hyperparameters=False)
    return SkepticalClassifier(gp, AlwaysAsk(), NeverChallenge(), warm_up=0, seed=1)


def numbers():
    return SkepticalRegressor(GPRegressor(), AlwaysAsk(), NeverChallenge(), warm_up=0, seed=1)


@pytest.mark.parametrize(("build", "y", "first"), [(model, "den", "loft"), (numbers, 1.0, 7.5)])
def test_a_label_that_was_given_up_is_read_from_its_line(build, y, first):
    """And the judgement is about the annotator who gave it, not the one who changed it."""
    told = line("e1", y, 1, "revised", 1.0, annotator="flo")
    learner = build()
    list(teach(learner, [replace(told, given=first, challenged=True, given_by="eve")]))
    [example] = learner.examples()
    if build is model:
        assert example.answer == SettledAnswer(y=first, annotator="eve", upheld=False)
    [(name, n, total, *_)] = learner.state()["annotators"]
    assert (name, n, total) == ("eve", 1, 1.0)


HASTY, SLOW = {"seconds": 0.5}, {"seconds": 3.0}
CORRECTIONS = {
    "of another label, with features of its own": (privileged, HASTY, SLOW),
    "that alone knows more": (privileged, None, HASTY),
    "that knows no more": (privileged, HASTY, None),
    "that says that it knows nothing": (privileged, HASTY, {}),
    "of another number, stated as exact": (numbers, None, None),
}


@pytest.mark.parametrize(("build", "first", "second"), CORRECTIONS.values(), ids=CORRECTIONS.keys())
def test_an_answer_is_judged_as_it_was_given_and_not_as_it_was_corrected(build, first, second):
    loop, log = InteractiveLoop(build()), []
    labels = (0.0, 1.0) if build is numbers else ("asleep", "awake")

    def answer(n, y, known, name="", **more):
        told = Answer(
            answer_id=f"a{n}{name}", event_id=f"e{n}", y=y, annotator="eve", answered_at=n,
            privileged=known, **more,
        )  # fmt: skip
        log.extend(loop.on_answer(told, n))

    for n in range(40):
        light, hasty = (n * 0.618) % 2 - 1, n % 3 == 0
        loop.on_event(Event(event_id=f"e{n}", x={"light": light}, occurred_at=n), n)
        right = (light > 0) != (hasty and n % 2 == 0)
        answer(n, labels[right], HASTY if hasty else SLOW)
    loop.on_event(Event(event_id="e40", x={"light": 0.3}, occurred_at=40.0), 40.0)
    stated = {"std": 0.2} if build is numbers else {}
    answer(40, labels[0], first, **stated)
    answer(40, labels[1], second, "again", supersedes="a40")
    assert [line.origin for line in log[-2:]] == ["asked", "revised"]
    again = build()
    list(teach(again, log))
    assert again.state()["annotators"] == loop.model.state()["annotators"]
    assert again.examples() == loop.model.examples()


def test_a_correction_changes_nothing_of_how_its_answer_was_judged():
    log = []
    for n in range(41):
        light, hasty = (n * 0.618) % 2 - 1, n % 3 == 0
        y = "awake" if (light > 0) != (hasty and n % 2 == 0) else "asleep"
        known = HASTY if hasty else SLOW
        log.append(replace(line(f"e{n}", y, n, privileged=known), x={"light": light}))
    last = log[-1]
    y = "awake" if last.y == "asleep" else "asleep"
    final = {"y": y, "origin": "revised", "revision": 1, "probability_wrong": None}
    log.append(replace(last, sequence=41, privileged=HASTY, **final))
    corrected, uncorrected = privileged(), privileged()
    list(teach(corrected, log))
    list(teach(uncorrected, log[:-1]))
    assert corrected.examples()[-1].y == y
    assert corrected.state()["annotators"] == uncorrected.state()["annotators"]


def test_a_correction_is_learned_although_what_came_with_the_answer_is_of_no_use():
    log = [
        line("e1", "den", 1),
        line("e2", "hall", 2, privileged={"why": [1]}),
        line("e2", "den", 3, "revised", None, revision=1, privileged={"seconds": 1.0}),
    ]
    learner, without = privileged(), privileged()
    assert [taught.refusal for taught in teach(learner, log)] == [None, None]
    assert learner.examples()[1].privileged == {"seconds": 1.0}
    list(teach(without, [log[0], replace(log[1], privileged=None), log[2]]))
    assert learner.state() == without.state()


RULES = {
    "doubted": (lambda: SkepticalChallenge(0.3), 0.0),
    "all contested": (AlwaysChallenge, 0.0),
    "some came along": (NeverChallenge, 0.2),
}


@pytest.mark.parametrize(("challenge", "along"), RULES.values(), ids=RULES)
@examples(2)
@given(seed=st.integers(0, 10**6), every=st.integers(1, 12))
def test_a_rule_that_learns_has_heard_what_it_had_heard_with_a_reservoir_beside_it(
    challenge, along, seed, every
):
    """Bitwise, and so has the rest of the learner; where no label is retracted."""

    def build():
        return SkepticalClassifier(
            GPClassifier(noise_variance=0.3),
            EqualErrorAsk(at_least=0.2),
            challenge(),
            warm_up=0,
            reservoir=RecentEventsAsk(size=20, every=3),
            seed=3,
        )

    rng, loop, log, waiting = random.Random(seed), InteractiveLoop(build()), [], []

    def take(messages):
        waiting.extend(m for m in messages if isinstance(m, LabelRequest | Challenge))
        log.extend(m for m in messages if isinstance(m, LabelledExample))

    for n in range(90):
        place = rng.randrange(3)
        x = {name: rng.gauss(3.0 * place, 1.0) for name in "uv"}
        y = place if rng.random() < along else None
        take(loop.on_event(Event(event_id=f"e{n}", x=x, y=y, occurred_at=n), n))
        for _ in range(min(rng.randrange(3), len(waiting))):
            about = waiting.pop(rng.randrange(len(waiting)))
            heard = None if rng.random() < 0.1 else rng.randrange(3)
            told = Answer(
                answer_id=f"to {about.request_id}", event_id=about.event_id, y=heard,
                declined=heard is None, request_id=about.request_id, answered_at=n,
                annotator="ab"[int(about.event_id[1:]) % 2],
            )  # fmt: skip
            take(loop.on_answer(told, n))
        if n % every == 0:
            loop = InteractiveLoop.restore(loop.snapshot(), build())

    def rebuilt(lines):
        model = build()
        assert not any(taught.refusal for taught in teach(model, lines))
        return model.state()

    found, expected = rebuilt(log), loop.model.state()
    for part in ("query", "annotators", "taught"):
        assert found[part] == expected[part]
    assert any(line.asked_back for line in log)
    deaf = rebuilt([replace(line, asked_back=False) for line in log])
    assert deaf["query"] != expected["query"]


def test_learner_of_the_same_configuration_becomes_what_it_was():
    """Where all events were labelled at once and no label was challenged."""
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
