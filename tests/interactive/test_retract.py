"""Labels of one annotator taken back: as if that annotator had never said anything."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from streamgp import (
    DriftTest,
    GPClassifier,
    GPRegressor,
    PrivilegedGPClassifier,
    SkepticalClassifier,
    SkepticalRegressor,
    isgp,
)
from streamgp.base import MixedLabelsError, SettledAnswer
from streamgp.interactive import (
    Answer,
    Cancel,
    Challenge,
    Event,
    InteractiveLoop,
    KeyedLoops,
    LabelledExample,
    Rejected,
    Relearned,
    Retraction,
    examples_in,
)
from streamgp.interactive.consensus_log import in_force
from streamgp.interactive.people import People
from streamgp.interactive.retracted_log import without
from streamgp.query import AlwaysAsk, LeaveOneOutReview, NeverChallenge
from streamgp.scaling import RenewedScaling, standard_scaling
from tests.helpers.laws import examples
from tests.interactive.scripted import ScriptedLearner
from tests.interactive.stories import MIXED, SPANS, Story, told

PEOPLE = ("ann", "bob")
seeds = st.integers(0, 10**6)


def model():
    review = LeaveOneOutReview(0.2, every=3)
    # Drifts are found now and then where there are none.
    return SkepticalClassifier(
        GPClassifier(),
        warm_up=16,
        rescale=True,
        review=review,
        drift_test=DriftTest(run_length=1.05),
        seed=3,
    )


def played(seed, n=80):
    """A loop in the middle of a random conversation, its story and its log."""
    loop, messages, log = InteractiveLoop(model(), **SPANS), [], []
    story = Story(seed, labels=MIXED)
    for _ in range(n):
        messages = told(loop, story.next(messages))
        log += [m for m in messages if isinstance(m, LabelledExample)]
    return loop, story, log


def rebuilt(known, words):
    """A model with the scaling of another one, weighed by and taught `words`: x, first word, ..."""
    fresh, state = known.clone(), known.state()
    scaling = standard_scaling(known.warm_up, rescale=known.rescale)
    scaling.load_state(state["taught"]["scaling"])
    scaling.weigh([(x, last) for _, x, _, last, *_ in words])
    taught = {**fresh.state()["taught"], "scaling": scaling.state()}
    drift = fresh.state()["drift"]
    fresh.load_state({**state, "annotators": [], "drift": drift, "taught": taught}, ())
    for event_id, x, (annotator, first), last, challenged, privileged, asked, answer in words:
        fresh.settle_one(
            x,
            last,
            given=first,
            challenged=challenged,
            annotator=annotator,
            event_id=event_id,
            privileged=privileged,
            asked=asked,
            answer=answer,
        )
    return fresh


def words_without(log, annotator):
    """What others have said of each event, first and last, in the order of their first words."""
    said = {}
    for line in sorted(log, key=lambda line: line.sequence):
        if line.y is None or line.revision == 0:
            said.pop(line.event_id, None)
        if line.y is None:
            continue
        spoken = said.setdefault(line.event_id, [])
        if line.challenged:
            first = line.y if line.given is None else line.given
            spoken.append((line.given_by, first, "contested", line, None))
        kind = "answer" if line.challenged else "alone"
        spoken.append((line.annotator, line.y, kind, line, line.privileged))
    found = []
    for event_id, spoken in said.items():
        left = [word for word in spoken if word[0] != annotator]
        if left:
            first, last = left[0], left[-1]
            challenged = first[2] == "contested" and left[1:2] == spoken[1:2] != []
            y, answer = first[1], None
            line = first[3]
            is_upheld = line.given is None
            # The log does not tell of what was left that it was not asked for.
            unasked = line.volunteered if first[2] == "contested" else line.origin == "volunteered"
            asked = not (first is spoken[0] and unasked) and not line.asked_back
            if challenged:
                answer = SettledAnswer(y=y, annotator=first[0], upheld=is_upheld, was_asked=asked)
                # Upheld or given up, it counts as that whatever it was corrected to.
                y = last[1] if is_upheld else y
            changed = [
                word
                for word in left[1:]
                if word[0] == first[0] is not None and not (word[3] is line and is_upheld)
            ]
            if changed:
                answer = answer or SettledAnswer.settled(
                    y, last[1], first[0], challenged=False, was_asked=asked
                )
                answer = replace(answer, corrected=changed[-1][1])
            found.append(
                (line.sequence, event_id, line.x, (first[0], y), last[1], challenged, last[4],
                 asked, answer)
            )  # fmt: skip
    return [word[1:] for word in sorted(found, key=lambda word: word[0])]


def known_of(learner):
    """What labels have taught a model, to compare bitwise."""
    probe = {"u": 1.0, "v": 2.0, "n": 1}
    state = learner.state()
    of_labels = state["annotators"], state["drift"], state["taught"].get("n_outdated")
    return repr((learner.examples(), of_labels, learner.own_proba_one(probe)))


@examples(4)
@given(seed=seeds, who=st.sampled_from(PEOPLE), n=st.sampled_from((80, 250)))
def test_learner_and_reliability_are_those_rebuilt_from_the_log_without_the_annotator(seed, who, n):
    """Long stories have enough labels for weights of features: those by what is left."""
    loop, _, log = played(seed, n)
    try:
        expected = rebuilt(loop.model, words_without(log, who))
    except MixedLabelsError:  # 1 was gone when True came: now one of them is on record only
        reject()
    done = loop.retract(who, log, now=loop_time(log))
    if done.retraction is not None:
        assert known_of(loop.model) == known_of(expected)
    assert who not in dict(zip(*[iter(annotators_of(loop.model))] * 2, strict=True))
    assert not [e for e in done.log if e.y is not None and who in (e.annotator, e.given_by)]
    held = [(e.event_id, e.y) for e in loop.model.examples()]
    assert repr([(e.event_id, e.y) for e in examples_in(done.log)]) == repr(held)
    assert all(a.sequence < b.sequence for a, b in pairwise(done.log))


def loop_time(log):
    return max((line.learned_at for line in log), default=0.0) + 1.0


def annotators_of(learner):
    return [part for name, *rest in learner.state()["annotators"] for part in (name, rest)]


@examples(2)
@given(seed=seeds, who=st.sampled_from(PEOPLE), is_undone=st.booleans())
def test_a_restart_after_a_retraction_changes_no_message(seed, who, is_undone):
    loop, story, log = played(seed)
    done = loop.retract(who, log, now=story.now)
    log = done.log
    if is_undone and done.retraction is not None:
        log = loop.reinstate(done.retraction, log, now=story.now).log
    again = InteractiveLoop.from_parts(loop.parts(), log, model(), **SPANS)
    third = InteractiveLoop.restore(loop.snapshot(), model())
    assert again.snapshot() == third.snapshot() == loop.snapshot()
    messages = []
    for _ in range(30):
        step = story.next(messages)
        messages = told(loop, step)
        assert repr(told(again, step)) == repr(messages) == repr(told(third, step))
        log = [*log, *(m for m in messages if isinstance(m, LabelledExample))]
    assert again.snapshot() == third.snapshot() == loop.snapshot()
    loop.retract(who, log, now=story.now)  # and it can be done again


@examples(3)
@given(seed=seeds, who=st.sampled_from(PEOPLE))
def test_what_was_undone_is_what_the_whole_log_teaches(seed, who):
    loop, story, log = played(seed)
    lines = in_force(log)
    done = loop.retract(who, log, now=story.now)
    if done.retraction is None:
        assert list(done.log) == lines
        return
    undone = loop.reinstate(done.retraction, done.log, now=story.now)
    assert repr(undone.log) == repr(lines)
    assert known_of(loop.model) == known_of(rebuilt(loop.model, words_without(log, "-")))


@examples(2)
@given(seed=seeds)
def test_two_annotators_are_taken_back_in_either_order(seed):
    found = []
    for order in (PEOPLE, PEOPLE[::-1]):
        loop, story, log = played(seed)
        for who in order:
            log = loop.retract(who, log, now=story.now).log
        found.append(known_of(loop.model))
    assert found[0] == found[1]


@examples(2)
@given(seed=seeds, n=st.integers(1, 60))
def test_the_learner_is_as_if_the_annotator_had_never_spoken(seed, n):
    """Where nothing is contested and no statistics change, so that no one heard of the answers."""
    loops = [
        InteractiveLoop(
            SkepticalClassifier(
                GPClassifier(),
                query=AlwaysAsk(),
                challenge=NeverChallenge(),
                drift_test=DriftTest(run_length=1.05),
                warm_up=0,
                seed=1,
            )
        )
        for _ in range(2)
    ]
    log, story = [], Story(seed, labels=("a", "b", "c"))
    for i in range(n):
        x = {name: story.rng.gauss(0.0, 3.0) for name in ("u", "v")}
        event = Event(event_id=f"e{i}", x=x, occurred_at=float(i))
        y, who = story.rng.choice("abc"), story.rng.choice(PEOPLE)
        answer = Answer(
            answer_id=f"a{i}", event_id=f"e{i}", y=y, annotator=who, answered_at=float(i)
        )
        for loop in loops:
            loop.on_event(event, float(i))
        log += loops[0].on_answer(answer, float(i))
        if who != "bob":
            loops[1].on_answer(answer, float(i))
    loops[0].retract("bob", log, now=float(n))
    assert known_of(loops[0].model) == known_of(loops[1].model)


# --- single cases


def spoken(*words, learner=None):
    """A loop in which labels of one event were given one after the other, and its log."""
    loop, log, last = (
        InteractiveLoop(learner or isgp(seed=1), people=People(owners=False)),
        [],
        None,
    )
    for n in range(3):
        event = Event(event_id=f"e{n}", x={"u": 3.0 * n}, occurred_at=0.0)
        loop.on_event(event, 0.0)
    for n, (who, y) in enumerate(words):
        answer = Answer(
            answer_id=f"a{n}", event_id="e1", y=y, annotator=who, answered_at=float(n),
            supersedes=last,
        )  # fmt: skip
        log += loop.on_answer(answer, float(n))
        last = f"a{n}"
    return loop, log


def test_a_label_that_nothing_is_left_of_is_withdrawn_and_others_may_give_one():
    loop, log = spoken(("bob", "hall"))
    done = loop.retract("bob", log, now=9.0)
    [line] = done.messages
    assert (line.y, line.origin, line.revision, line.sequence) == (None, "withdrawn", 1, 2)
    assert loop.model.n_learned == 0
    answer = Answer(answer_id="late", event_id="e1", y="den", annotator="ann", answered_at=10.0)
    [learned] = loop.on_answer(answer, 10.0)
    assert (learned.y, learned.revision, learned.sequence) == ("den", 2, 3)


def test_the_label_that_was_superseded_stands_again():
    loop, log = spoken(("ann", "hall"), ("bob", "den"))
    done = loop.retract("bob", log, now=9.0)
    [line] = done.messages
    assert (line.y, line.annotator, line.origin, line.revision) == ("hall", "ann", "revised", 2)
    assert [e.y for e in loop.model.examples()] == ["hall"]
    assert [each.revision for each in done.log] == [0, 2]


def test_a_correction_of_a_retracted_label_stays_and_is_a_first_answer():
    loop, log = spoken(("bob", "hall"), ("ann", "den"))
    done = loop.retract("bob", log, now=9.0)
    assert done.messages == []
    [line] = done.log
    assert (line.y, line.revision, line.sequence, line.origin) == ("den", 1, 2, "asked")
    assert line.probability_wrong is not None
    assert [name for name, *_ in loop.model.state()["annotators"]] == ["ann"]


def test_a_label_that_another_annotator_has_confirmed_stays_when_the_first_is_retracted():
    loop, log = spoken(("bob", "hall"), ("ann", "hall"))
    assert [(line.y, line.annotator, line.revision) for line in log] == [
        ("hall", "bob", 0),
        ("hall", "ann", 1),
    ]
    assert log[1].origin == "revised"
    done = loop.retract("bob", log, now=9.0)
    assert done.messages == []
    assert [(line.y, line.annotator) for line in done.log] == [("hall", "ann")]
    assert [e.y for e in loop.model.examples()] == ["hall"]
    assert [name for name, *_ in loop.model.state()["annotators"]] == ["ann"]


def test_a_label_belongs_to_the_annotator_who_gave_it_and_counts_once():
    loop, log = spoken(("bob", "hall"), ("ann", "hall"))
    bobs = loop.retract("bob", log, now=9.0)
    assert len(bobs.retraction.taken) == 2  # the confirmation is a first answer now
    assert [(line.annotator, line.y) for line in bobs.retraction.own] == [("bob", "hall")]
    loop, log = spoken(("ann", "hall"), ("bob", "den"))
    bobs = loop.retract("bob", log, now=9.0)
    anns = loop.retract("ann", bobs.log, now=10.0)
    assert [line.y for line in anns.retraction.taken] == ["hall", "hall"]  # it stood again
    assert [line.sequence for line in anns.retraction.own] == [1]
    loop, log = spoken(("ann", "hall"), ("bob", "den"), ("ann", "hall"))
    assert len(loop.retract("ann", log, now=9.0).retraction.own) == 2


def test_who_says_what_has_corrected_them_keeps_it_when_the_correction_is_retracted():
    loop, log = spoken(("ann", "hall"), ("sue", "den"), ("ann", "den"))
    assert loop.retract("sue", log, now=9.0).messages == []
    assert [e.y for e in loop.model.examples()] == ["den"]


def test_a_label_said_again_by_its_own_annotator_leaves_no_line():
    loop, log = spoken(("ann", "hall"), ("ann", "hall"), (None, "hall"))
    assert len(log) == 1
    assert loop.retract("ann", log, now=9.0).messages[0].y is None


def test_only_labels_since_a_moment_are_taken_back():
    loop, log = spoken(("bob", "hall"), ("bob", "den"))
    done = loop.retract("bob", log, now=9.0, since=1.0)
    assert [e.y for e in loop.model.examples()] == ["hall"]
    assert [line.sequence for line in done.retraction.taken] == [2]


def test_a_contested_label_that_was_not_learned_yet_is_never_learned():
    learner = SkepticalClassifier(GPClassifier(), warm_up=0, seed=1)
    loop, log = InteractiveLoop(learner, expires_after_s=100.0, people=People(owners=False)), []
    for n, y in enumerate(["hall"] * 8 + ["den"]):
        loop.on_event(Event(event_id=f"e{n}", x={"u": 0.1 * n}, occurred_at=0.0), 0.0)
        answer = Answer(answer_id=f"a{n}", event_id=f"e{n}", y=y, annotator="bob", answered_at=1.0)
        *_, said = loop.on_answer(answer, 1.0)
        log += [said] if isinstance(said, LabelledExample) else []
    assert isinstance(said, Challenge)
    done = loop.retract("bob", log, now=2.0)
    assert isinstance(done.messages[0], Cancel)
    assert done.messages[0].request_id == said.request_id
    assert loop.on_time(1000.0)[-1:] == []
    assert loop.model.n_learned == 0 == len(examples_in(done.log))
    assert loop.open_requests() == []


def test_nothing_changes_where_the_annotator_has_said_nothing():
    loop, log = spoken(("ann", "hall"))
    before = loop.snapshot()
    done = loop.retract("bob", log, now=9.0)
    assert (done.messages, done.retraction, list(done.log)) == ([], None, log)
    assert loop.snapshot() == before


def test_a_log_that_is_not_whole_is_refused():
    loop, log = spoken(("ann", "hall"))
    with pytest.raises(ValueError, match="log must hold every line that the loop has returned"):
        loop.retract("ann", [], now=9.0)
    assert loop.model.n_learned == len(log)


def test_a_retraction_that_fails_changes_nothing(monkeypatch):
    loop, log = spoken(("bob", "hall"), ("ann", "den"))
    before = loop.snapshot()

    def failing(*_):
        raise ArithmeticError("no")

    with monkeypatch.context() as patched:
        patched.setattr(SkepticalClassifier, "state_taught_as", failing)
        with pytest.raises(ArithmeticError):
            loop.retract("bob", log, now=9.0)
    assert loop.snapshot() == before
    assert loop.retract("bob", log, now=9.0).retraction is not None


def test_a_learner_that_cannot_unlearn_is_refused():
    loop, log = spoken(("bob", "hall"), learner=ScriptedLearner())
    with pytest.raises(TypeError, match="ScriptedLearner"):
        loop.retract("bob", log, now=9.0)


def test_numbers_are_taken_back():
    def regressor():
        return SkepticalRegressor(GPRegressor(), challenge=None, warm_up=0, seed=1)

    loops = [InteractiveLoop(regressor()) for _ in range(2)]
    log = []
    for n, (who, y) in enumerate([("ann", 1.0), ("bob", 70.0), ("ann", 1.5), ("ann", 1.2)]):
        event = Event(event_id=f"e{n}", x={"u": float(n)}, occurred_at=float(n))
        answer = Answer(
            answer_id=f"a{n}", event_id=f"e{n}", y=y, annotator=who, answered_at=float(n)
        )
        for loop in loops:
            loop.on_event(event, float(n))
        said = loops[0].on_answer(answer, float(n))
        log += [m for m in said if isinstance(m, LabelledExample)]
        if who == "ann":
            loops[1].on_answer(answer, float(n))
    loops[0].retract("bob", log, now=9.0)
    one, two = (loop.model for loop in loops)
    assert [e.event_id for e in one.examples()] == ["e0", "e2", "e3"]
    assert one.predict_one({"u": 1.1}) == two.predict_one({"u": 1.1})


@pytest.mark.parametrize("is_undone", [False, True])
def test_features_are_weighed_by_the_labels_that_are_there_then(is_undone):
    """Ann's labels follow u, and bob's room; that this is a name is a trace of bob."""
    rng = np.random.default_rng(1)
    xs = [{"u": float(rng.normal()), "room": int(rng.integers(6))} for _ in range(120)]
    model = SkepticalClassifier(
        GPClassifier(), AlwaysAsk(), NeverChallenge(), warm_up=15, rescale=True, seed=1
    )
    loop, log, labels = InteractiveLoop(model), [], {}
    for n, x in enumerate(xs):
        event_id, who = f"e{n}", "ann" if n % 2 else "bob"
        loop.on_event(Event(event_id=event_id, x=x, occurred_at=float(n)), float(n))
        labels[event_id] = "high" if (x["u"] > 0.0 if n % 2 else x["room"] % 2) else "low"
        answer = Answer(
            answer_id=event_id, event_id=event_id, y=labels[event_id], annotator=who,
            answered_at=float(n),
        )  # fmt: skip
        log += loop.on_answer(answer, float(n))
    assert model.feature_forms == {"room": ["name"]}
    done = loop.retract("bob", log, now=199.0)
    if is_undone:
        assert done.retraction is not None
        loop.reinstate(done.retraction, done.log, now=199.0)
    scaling = RenewedScaling(15)
    for x in xs:
        scaling.observe(x)
    left = range(120) if is_undone else range(1, 120, 2)
    scaling.weigh([(xs[n], labels[f"e{n}"]) for n in left])
    assert loop.model.state()["taught"]["scaling"] == scaling.state() | {"labels": 120}
    assert loop.model.feature_forms == ({"room": ["name"]} if is_undone else {})
    assert is_undone or scaling.weights["u"] > 1.2 * scaling.weights["room"]
    again = GPClassifier()
    for n in left:
        again.learn_one(scaling.transform(xs[n]), labels[f"e{n}"])
    assert loop.model.own_proba_one(xs[0]) == again.predict_proba_one(scaling.transform(xs[0]))


def test_of_many_keys_only_those_with_such_labels_change():
    loops, log = KeyedLoops(isgp(seed=1), keep_changes=True), []
    for n, (key, who) in enumerate([("k1", "ann"), ("k1", "bob"), ("k2", "ann")]):
        event = Event(event_id=f"e{n}", key=key, x={"u": 0.0 + n}, occurred_at=0.0)
        loops.on_event(event, 0.0)
        answer = Answer(
            answer_id=f"a{n}", event_id=f"e{n}", key=key, y="hall", annotator=who, answered_at=1.0
        )
        log += loops.on_answer(answer, 1.0)
    loops.changes()
    done = loops.retract("bob", log, now=2.0)
    assert list(done) == ["k1"] == list(loops.changes())
    assert loops.loops["k1"].model.n_learned == 1
    undone = loops.reinstate("k1", done["k1"].retraction, done["k1"].log, now=3.0)
    assert [line.event_id for line in undone.log] == ["e0", "e1"]
    with pytest.raises(ValueError, match="key must be one that was seen, got 'k3'"):
        loops.reinstate("k3", done["k1"].retraction, done["k1"].log, now=3.0)


def test_what_an_input_asks_for_is_done_or_rejected_and_never_half_done():
    loops, log = KeyedLoops(model()), []
    for n, who in enumerate(["ann", "bob"]):
        loops.on_event(Event(event_id=f"e{n}", key="k1", x={"u": 0.0 + n}, occurred_at=0.0), 0.0)
        answer = Answer(
            answer_id=f"a{n}", event_id=f"e{n}", key="k1", y="hall", annotator=who, answered_at=1.0
        )
        log += loops.on_answer(answer, 1.0)
    learner = loops.learner("k1")
    before = learner.state(), learner.examples()
    flaw = loops.retract_or_reject("k1", "bob", log[:1], now=900.0, subject="consensus:0:7")
    assert isinstance(flaw, Rejected)
    assert (flaw.subject, flaw.key, flaw.fault) == ("consensus:0:7", "k1", "failed")
    assert "log must hold every line that the loop has returned" in flaw.reason
    assert (learner.state(), learner.examples()) == before
    done = loops.retract_or_reject("k1", "bob", log, now=900.0, subject="consensus:0:8")
    assert isinstance(done, Relearned)
    assert learner.n_learned == 1
    back = loops.retract_or_reject(
        "k1", "bob", done.log, now=901.0, subject="consensus:0:9", undone=done.retraction
    )
    assert isinstance(back, Relearned)
    assert back.log == in_force(log)
    flaw = loops.retract_or_reject("k9", "bob", log, now=900.0, subject="consensus:0:7")
    assert isinstance(flaw, Rejected)
    assert flaw.fault == "unknown"


def test_the_first_label_stands_where_the_answer_to_its_challenge_is_taken_back():
    line = LabelledExample(
        event_id="e1", sequence=1, x={}, y="hall", annotator="bob", origin="upheld",
        learned_at=0.0, probability_wrong=0.0, challenged=True, given_by="ann", std=2.0,
        privileged={"confidence": 1.0},
    )  # fmt: skip
    [left], taken = without([line], "bob")
    assert (left.y, left.annotator, left.origin) == ("hall", "ann", "asked")
    assert (left.challenged, left.std, left.privileged) == (False, None, None)
    assert taken == [line]
    assert without([line], "ann")[0][0].annotator == "bob"


# --- what is left of the lines about one event, case by case

MINE, OURS = {"confidence": 0.9}, {"confidence": 0.1}


def lines(*told):
    """The lines about one event, each a dictionary of what it tells besides its place."""
    return [
        LabelledExample(
            event_id="e1", revision=n, sequence=n + 1, x={}, learned_at=float(n), **each
        )
        for n, each in enumerate(told)
    ]  # fmt: skip


def first(annotator, y, **rest):
    return {"annotator": annotator, "y": y, "origin": "asked", "probability_wrong": 0.3, **rest}


def correction(annotator, y, **rest):
    return {"annotator": annotator, "y": y, "origin": "revised", **rest}


def contested(annotator, y, given_by, given, **rest):
    """A first answer that its challenge has changed to `y`, or not if `given` is None."""
    about = {"challenged": True, "given_by": given_by, "given": given, **rest}
    return first(annotator, y, **about) | {"origin": "upheld" if given is None else "revised"}


def second(annotator, y, given=None, **rest):
    """A second answer that has prevailed; or not, if `given` is what it says."""
    origin = {"origin": "aggregated"}
    return {"annotator": annotator, "y": y, "given": given, **origin, **rest}


def left_by(told, who="bob", since=None):
    """Label, annotator, origin, second label given up and details of each line left."""
    left, taken = without(lines(*told), who, since)
    assert all(line in left or line in taken for line in lines(*told))
    return [(one.y, one.annotator, one.origin, one.given, one.privileged) for one in left]


@pytest.mark.parametrize(
    ("line", "left"),
    [
        (first("ann", "a"), ("a", "ann", "asked", 0.3)),
        (first("bob", "a"), None),
        (contested("ann", "a", "ann", "b"), ("a", "ann", "revised", 0.3)),
        (contested("bob", "a", "bob", "b"), None),
        (contested("ann", "a", "bob", "b"), ("a", "ann", "asked", 0.0)),
        (contested("bob", "a", "ann", "b"), ("b", "ann", "asked", 0.0)),
        (contested("bob", "a", "ann", None), ("a", "ann", "asked", 0.0)),
        ({"annotator": "bob", "y": None, "origin": "withdrawn"}, (None, "bob", "withdrawn", None)),
    ],
)
def test_a_line_loses_the_answers_of_the_annotator_alone(line, left):
    found, taken = without(lines(line), "bob")
    assert [(one.y, one.annotator, one.origin, one.probability_wrong) for one in found] == (
        [left] if left else []
    )
    assert taken == ([] if found == lines(line) else lines(line))


@pytest.mark.parametrize(
    ("told", "labels"),
    [
        ([contested("ann", "a", "bob", "b")], ["b"]),
        ([contested("bob", "a", "ann", "b")], ["a"]),
        ([contested("bob", "a", "bob", "b")], ["a"]),
        ([first("ann", "a"), second("bob", "a", "b")], ["b"]),
        ([first("ann", "a"), second("bob", "b")], ["b"]),
        ([first("bob", "a"), second("ann", "a", "b")], ["a"]),
        ([first("bob", "a"), second("ann", "b"), second(None, "a")], ["a"]),
        ([first("bob", "a"), correction("ann", "b"), correction("bob", "a")], ["a", "a"]),
        ([first("bob", "a"), correction("ann", "b"), correction("bob", "b")], ["a", "b"]),
    ],
)
def test_a_retraction_tells_the_labels_that_the_annotator_has_lost(told, labels):
    _, taken = without(lines(*told), "bob")
    own = Retraction(annotator="bob", since=None, at=9.0, taken=tuple(taken)).own
    assert [line.said_by("bob") for line in own] == labels


def test_a_label_given_before_the_moment_is_not_lost():
    told = lines(first("bob", "a"), correction("bob", "b"))
    early = replace(told[1], learned_at=0.5)
    _, taken = without([replace(told[0], learned_at=2.0), early], "bob", 1.0)
    assert len(taken) == 2
    [own] = Retraction(annotator="bob", since=1.0, at=9.0, taken=tuple(taken)).own
    assert own.y == "a"


def test_details_stay_with_the_answer_with_which_they_came():
    details = {"privileged": MINE, "std": 2.0}
    for line, left in (
        (contested("bob", 1.0, "ann", 2.0, **details), (None, None)),
        (contested("ann", 1.0, "bob", 2.0, **details), (MINE, 2.0)),
    ):
        [found], _ = without(lines(line), "bob")
        assert (found.privileged, found.std) == left


@pytest.mark.parametrize(
    ("told", "left"),
    [
        ([first("ann", "a"), correction("ann", "b")], [("a", "asked"), ("b", "revised")]),
        ([first("bob", "a"), correction("ann", "b")], [("b", "asked")]),
        ([first("ann", "a"), correction("bob", "b")], [("a", "asked")]),
        (
            [first("bob", "a"), correction("ann", "b"), correction("sue", "c")],
            [("b", "asked"), ("c", "revised")],
        ),
        (
            [first("ann", "a"), correction("bob", "b"), correction("sue", "c")],
            [("a", "asked"), ("c", "revised")],
        ),
    ],
)
def test_the_first_correction_that_is_left_is_a_first_answer_where_that_is_gone(told, left):
    assert [(y, origin) for y, _, origin, *_ in left_by(told)] == left


A, B = {"confidence": 0.3}, {"confidence": 0.5}


@pytest.mark.parametrize(
    ("told", "left"),
    [
        # Taken over from the one whose answers are gone, or from one before.
        ([first("bob", "a", privileged=B), correction("ann", "b", privileged=B)], [None]),
        (
            [
                first("ann", "a", privileged=A),
                correction("bob", "b", privileged=B),
                correction("sue", "c", privileged=B),
                correction("ann", "d", privileged=B),
            ],
            [A, A, A],
        ),
        (
            [
                first("ann", "a", privileged=A),
                correction("bob", "b", privileged=A),
                correction("sue", "c", privileged=A),
            ],
            [A, A],
        ),
        (
            [
                first("ann", "a"),
                second("bob", "b", privileged=B),
                correction("ann", "c", privileged=B),
            ],
            [None, None],
        ),
        # Their own.
        ([first("bob", "a", privileged=B), correction("ann", "b", privileged=A)], [A]),
        ([first("bob", "a"), correction("ann", "b", privileged=A)], [A]),
        # The log does not tell with which of two answers to a challenge they came.
        ([contested("ann", "a", "bob", "b", privileged=B)], [B]),
    ],
)
def test_details_that_a_correction_took_over_go_with_the_answer_with_which_they_came(told, left):
    assert [details for *_, details in left_by(told)] == left


def test_a_learner_forgets_the_details_of_an_annotator_in_the_corrections_of_others():
    learner = SkepticalClassifier(
        PrivilegedGPClassifier(), query=AlwaysAsk(), challenge=NeverChallenge(), warm_up=0, seed=1
    )
    loop, log = InteractiveLoop(learner, people=People(owners=False)), []
    loop.on_event(Event(event_id="e1", x={"u": 0.0}, occurred_at=0.0), 0.0)
    about = {"event_id": "e1", "answered_at": 1.0}
    log += loop.on_answer(
        Answer(answer_id="a", y="hall", annotator="bob", privileged=B, **about), 1.0
    )
    log += loop.on_answer(
        Answer(answer_id="b", y="den", annotator="ann", supersedes="a", **about), 1.0
    )
    assert [line.privileged for line in log] == [B, B]
    done = loop.retract("bob", log, now=2.0)
    assert [(e.y, e.privileged) for e in loop.model.examples()] == [("den", None)]
    assert all(line.privileged is None for line in done.log)
    undone = loop.reinstate(done.retraction, done.log, now=3.0)
    assert undone.log == log
    assert [(e.y, e.privileged) for e in loop.model.examples()] == [("den", B)]


PREVAILED = second("sue", "b", privileged=MINE)
AGREED = second("sue", "a", privileged=OURS)
GAVE_WAY = second("sue", "a", "b", privileged=OURS)
TAKEN_BACK = second(None, "a", privileged=OURS)


@pytest.mark.parametrize("line", [PREVAILED, AGREED, GAVE_WAY, TAKEN_BACK])
def test_a_second_answer_stays_as_it_is_where_the_first_one_does(line):
    told = [first("ann", "a", privileged=OURS), line]
    assert left_by(told) == left_by(told, "zoe")
    # Also where another second answer before it is gone.
    others = [told[0], second("bob", "c"), line]
    assert left_by(others) == left_by(told)


@pytest.mark.parametrize(
    ("line", "left"),
    [
        (PREVAILED, ("b", "sue", "aggregated", None, MINE)),
        # Both have said the same, and the details came with the first answer, which is gone.
        (AGREED, ("a", "sue", "aggregated", None, None)),
        (GAVE_WAY, ("d", "sue", "aggregated", "b", MINE)),
        # The second answer and the one that stands now are the same.
        (second("sue", "a", "d", privileged=OURS), ("d", "sue", "aggregated", None, MINE)),
        (TAKEN_BACK, ("d", None, "aggregated", None, MINE)),
    ],
)
@pytest.mark.parametrize("was", ["corrected", "contested"])
def test_a_second_answer_that_has_prevailed_still_does_where_another_first_one_stands(
    line, left, was
):
    told = {
        "corrected": [first("ann", "d", privileged=MINE), correction("bob", "a", privileged=OURS)],
        "contested": [contested("bob", "a", "ann", "d", privileged=OURS)],
    }[was]
    if was == "contested" and left[-1] is MINE and line is not PREVAILED:
        left = (*left[:-1], None)  # nothing came with the first answer of a challenge
    assert left_by([*told, line])[-1] == left


@pytest.mark.parametrize(
    ("line", "left"),
    [
        (PREVAILED, [("b", "sue", "asked", None, MINE)]),
        (AGREED, [("a", "sue", "asked", None, None)]),
        (GAVE_WAY, [("b", "sue", "asked", None, None)]),
        (TAKEN_BACK, []),
    ],
)
def test_a_second_answer_stands_alone_where_the_first_one_is_gone(line, left):
    told = [first("bob", "a", privileged=OURS), line]
    assert left_by(told) == left
    corrected = [*told, second("sue", "c", privileged=MINE)]
    assert left_by(corrected)[len(left) :] == [
        ("c", "sue", "revised" if left else "asked", None, MINE)
    ]
    # Taken back after all, it leaves nothing.
    assert left_by([*corrected, TAKEN_BACK]) == []
    # A correction of the first answer by another annotator stands as that.
    *_, last = left_by([*told, correction("ann", "d")])
    assert last[:3] == ("d", "ann", "revised" if left else "asked")


def test_a_second_answer_that_was_taken_back_can_be_put_back_in_a_log_without_its_first_one():
    told = [second("ann", "c"), correction("bob", "b"), second(None, "b")]
    assert left_by(told) == []


def test_labels_learned_before_a_moment_count_as_those_of_another_annotator():
    told = [first("bob", "a"), second("sue", "b"), correction("bob", "c"), second("sue", "b")]
    assert left_by(told, since=2.0) == [
        ("a", "bob", "asked", None, None),
        ("b", "sue", "aggregated", None, None),
        ("b", "sue", "aggregated", None, None),
    ]
