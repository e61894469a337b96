"""Annotators judged by all answers together."""

import copy
import json
from collections import Counter
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from river.naive_bayes import GaussianNB

from streamgp import GPClassifier, SkepticalClassifier, isgp
from streamgp.base import Example, SettledAnswer
from streamgp.common.annotator_error import ErrorRate
from streamgp.common.annotator_quarantine import FEWEST, HEAD_START, THRESHOLD
from streamgp.query import annotator_evidence
from streamgp.query.annotator_evidence import AnnotatorJudge
from streamgp.query.example_store import ClassExampleStore
from streamgp.scaling import NoScaling


def taught(model, n, *, wrong=(), upheld=(), ids=True, first=0):
    """Teach two classes that are far apart; some first answers are wrong, of these some upheld.

    The other wrong answers are changed after a challenge.
    """
    for i in range(first, first + n):
        y = "day" if i % 2 else "night"
        x = {"light": 10.0 * (i % 2) + i % 7 / 7}
        given = y if i not in wrong else "day" if y == "night" else "night"
        model.settle_one(
            x,
            given if i in upheld else y,
            given=given,
            challenged=i in wrong,
            annotator="ann",
            event_id=str(i) if ids else None,
        )
    return model


def model(learner=None, **options):
    return SkepticalClassifier(learner or GPClassifier(), warm_up=0, seed=1, **options)


WRONG = range(0, 30, 3)


def against(learner, annotator, without=()):
    return learner.annotator_judge().evidence_against(annotator, without)


def n_answers(learner, annotator):
    return learner.annotator_judge().n_answers(annotator)


@pytest.mark.parametrize(("n", "n_expected"), [(FEWEST - 1, 0), (FEWEST, 1)])
def test_a_first_and_a_second_answer_each_count_for_the_annotator_who_gave_it(n, n_expected):
    second = SettledAnswer(y="day", annotator="bob")
    answer = SettledAnswer(y="day", annotator="ann", second=second)
    examples = [
        Example(event_id=None, x={}, y="day"),
        *n * [Example(event_id=None, x={}, y="day", answer=answer)],
    ]
    store = SimpleNamespace(examples=lambda: examples)
    judge = AnnotatorJudge(store, ["ann", "bob"])
    assert judge._n_witnesses("ann", []) == judge._n_witnesses("bob", []) == n_expected
    assert judge._n_witnesses("ann", ["bob"]) == 0


def test_an_annotator_who_insists_on_wrong_labels_is_found_out():
    """By the running sums an annotator who upholds every answer passes for careful."""
    learner = taught(model(), 64, wrong=WRONG, upheld=WRONG)
    known = learner.estimate_annotators()["ann"]
    assert known.error_rate == pytest.approx(10 / 64, abs=0.06)
    assert known.insistence > 0.6
    assert learner.error_rate("ann") < known.error_rate - 0.05
    assert taught(model(), 64, wrong=WRONG).estimate_annotators()["ann"].insistence < 0.25


def lied_to(annotators, n=96):
    """Teach three classes; `liar` names the next one each time, and upholds that."""
    learner = model()
    for i in range(n):
        annotator, room = annotators[i % len(annotators)], i // 3 % 3
        x = {"a": 9.0 * (room == 1) + i % 5 / 5, "b": 9.0 * (room == 2) + i % 4 / 4}
        y = (room + 1) % 3 if annotator == "liar" else room
        challenged = learner.challenge_one(x, y, annotator=annotator).ask
        learner.settle_one(
            x, y, given=y, challenged=challenged, annotator=annotator, event_id=str(i)
        )
    return learner


def test_one_of_three_who_always_lies_and_insists_is_found_out():
    known = lied_to(["ann", "bob", "liar"]).estimate_annotators()
    assert known["liar"].error_rate > 0.5
    assert known["liar"].insistence > 0.5
    assert max(known["ann"].error_rate, known["bob"].error_rate) < 0.15


def test_an_annotator_who_is_alone_and_always_lies_looks_careful():
    """Nothing contradicts: the labels are as consistent as those of another world."""
    assert lied_to(["liar"]).estimate_annotators()["liar"].error_rate < 0.1


def test_estimating_changes_nothing():
    learner = taught(model(), 20, wrong=WRONG)
    before = json.dumps(learner.state())
    assert learner.estimate_annotators() == learner.estimate_annotators()
    assert json.dumps(learner.state()) == before


def test_a_corrected_answer_counts_as_first_given():
    learner = taught(model(), 20)
    answers = [example.answer for example in learner.examples()]
    learner.relabel_one("3", "night")
    assert [example.answer for example in learner.examples()] == answers
    assert learner.examples()[3].y == "night"
    assert learner.examples()[3].answer == SettledAnswer(y="day", annotator="ann")


def corrected(first, last, by="eve"):
    """Return the evidence against eve, all of whose answers are corrected."""
    learner = model()
    for i in range(90):
        room, name = i // 3 % 3, ("ann", "bob", "eve")[i % 3]
        x = {"a": 9.0 * (room == 1) + i % 5 / 5, "b": 9.0 * (room == 2) + i % 4 / 4}
        y = first(room) if name == "eve" else room
        learner.settle_one(x, y, given=y, challenged=False, annotator=name, event_id=str(i))
        if name == "eve":
            learner.relabel_one(str(i), last(room), annotator=by)
    return against(learner, "eve")


def test_who_corrects_right_answers_to_wrong_ones_misleads():
    def right(room):
        return room

    assert corrected(right, lie) > THRESHOLD
    # The reverse counts as first given, and what another annotator has changed, too.
    assert corrected(lie, right) > THRESHOLD
    assert corrected(right, lie, by="bob") == corrected(right, right) < 1.0
    # A label that none of the others gives cannot be judged, unlike the correction.
    assert corrected(lambda room: 7 + room, right) == corrected(right, right)
    assert corrected(right, lambda room: 7 + room) == corrected(right, right)


def test_a_forgotten_label_counts_no_longer():
    learner, without = taught(model(), 20, wrong=[3]), model()
    taught(without, 3)
    taught(without, 16, first=4)
    learner.forget_one("3")
    for found, expected in zip(
        learner.estimate_annotators().items(), without.estimate_annotators().items(), strict=True
    ):
        assert found == expected or found[1].error_rate == pytest.approx(expected[1].error_rate)


def test_examples_without_an_event_id_are_left_out_of_themselves_too():
    named, unnamed = (taught(model(), 30, wrong=WRONG, ids=ids) for ids in (True, False))
    assert named.estimate_annotators() == unnamed.estimate_annotators()


@pytest.mark.parametrize("learner", [GaussianNB(), GPClassifier(max_points=4)])
def test_what_is_not_left_out_is_judged_by_what_was_believed_before(learner):
    wrapper = taught(model(learner), 12, wrong=WRONG)
    before, twin = {}, copy.deepcopy(learner).clone()
    if isinstance(twin, GPClassifier):
        twin.know(["night", "day"])
    options = {"with_dist": True} if isinstance(twin, GPClassifier) else {}
    for example in wrapper.examples():
        before[example.event_id] = twin.predict_proba_one(example.x, **options)
        twin.learn_one(example.x, example.y)
    if hasattr(wrapper.learner, "leave_one_out"):
        before |= wrapper.learner.leave_one_out()
    answers, beliefs, labels = wrapper.annotator_judge().answered()
    assert beliefs == list(before.values())
    assert answers == [example.answer for example in wrapper.examples()]
    assert labels == ["night", "day"]
    store = wrapper._store
    assert store.judged_apart(store.current()) == (before, {})
    # What was taught to the fresh learner is not judged as a mere event.
    others, own = store.judged_apart({"0": store.current()["0"]}, about=["0", "1"])
    assert (list(others), list(own)) == (["0"], ["1"])


@pytest.mark.parametrize("learner", [GaussianNB(), GPClassifier(), GPClassifier(max_points=4)])
def test_the_latest_answers_count(learner, monkeypatch):
    """Nothing that a fresh learner would have to be taught again grows with the stream."""
    monkeypatch.setattr(annotator_evidence, "_MOST_ANSWERS", 9)
    wrapper = taught(model(learner), 16, wrong=WRONG)
    answers, beliefs, _ = wrapper.annotator_judge().answered()
    assert answers == [example.answer for example in wrapper.examples()[-9:]]
    assert len(beliefs) == wrapper.estimate_annotators()["ann"].n_answers == 9


def test_a_changed_answer_of_an_old_log_stands_for_another_label():
    learner = taught(model(), 4)
    state, examples = learner.state(), learner.examples()
    old = SettledAnswer(y=None, annotator="ann", upheld=False)
    examples[1] = replace(examples[1], answer=old)
    again = model()
    again.load_state(state, examples)
    answers, _, _ = again.annotator_judge().answered()
    assert answers[1].y in ("night", "day")
    assert len(answers) == 4


def test_labels_given_and_taken_back_count_among_the_labels():
    learner = model()
    learner.settle_one({"light": 1.0}, "day", given="noon", challenged=True, event_id="1")
    assert learner.annotator_judge().answered()[2] == ["day", "noon"]


def test_without_answers_nothing_is_known():
    assert model().estimate_annotators() == {}


def test_state_and_examples_bring_the_estimates_back():
    """Also after a few more labels: the next estimate is bitwise the same."""
    one = taught(model(), 20, wrong=WRONG, upheld=[3])
    other = model()
    other.load_state(json.loads(json.dumps(one.state())), one.examples())
    for learner in (one, other):
        taught(learner, 13, wrong=WRONG, upheld=[3], first=20)
    assert one.estimate_annotators() == other.estimate_annotators()


# --- second answers


def test_the_answer_of_larger_posterior_stands_by_its_own_formula():
    learner = taught(model(), 30)
    learner.settle_one(
        {"light": 0.3}, "day", given="day", challenged=False, annotator="ann", event_id="e"
    )
    learner._error_estimates["bob"] = ErrorRate(n=50, sum=5.0)
    [q_day, q_night] = learner._believed_of("e", ("day", "night"))
    assert q_night > q_day  # by all but its own label
    odds = q_night * (1 - learner.error_rate("bob")) / learner.error_rate("bob")
    against = q_day * (1 - learner.error_rate("ann")) / learner.error_rate("ann")
    found = learner.aggregate_one("e", "day", "night", given_by="ann", annotator="bob")
    assert found == ("night" if odds > against else "day") == "night"
    # Of an annotator who nearly always errs not even that is believed.
    learner._error_estimates["bob"] = ErrorRate(n=5000, sum=4999.9)
    assert learner.aggregate_one("e", "day", "night", given_by="ann", annotator="bob") == "day"


def test_a_label_of_another_type_is_refused_as_a_second_answer():
    learner = model()
    learner.settle_one({"light": 0.3}, 1, given=1, challenged=False, event_id="e")
    with pytest.raises(ValueError, match="True"):
        learner.aggregate_one("e", 1, True)


@pytest.mark.parametrize("said", ["night", "day"])
def test_a_second_answer_moves_both_running_estimates(said):
    learner = taught(model(), 30)
    x = {"light": 0.3}
    w = learner.settle_one(x, "day", given="day", challenged=False, annotator="eve", event_id="e")
    learner.note_second("e", said, annotator="bob", probability_wrong=w)
    first, second = learner._error_estimates["eve"], learner._error_estimates["bob"]
    assert (first.n, second.n) == (1, 1)
    # The others speak for night: bob, who says so, is right, and eve the more wrong for it.
    assert (first.sum > w, second.sum < 0.1) == (said == "night",) * 2
    assert learner.examples()[-1].answer.second == SettledAnswer(y=said, annotator="bob")
    joint = learner.estimate_annotators()
    assert joint["bob"].n_answers == 1


@pytest.mark.parametrize("learner", [GaussianNB(), GPClassifier(max_points=5)])
def test_any_learner_compares_answers(learner):
    learner = taught(model(learner), 30)
    assert learner.aggregate_one("3", "day", "night", given_by="ann", annotator="bob") == "day"
    learner.note_second("3", "night", annotator="bob", probability_wrong=0.1)
    assert learner.error_rate("bob") > 0.2


# --- evidence that an annotator misleads


def asked_twice(first, second, *, n=60, says, learner=None, overrules=False, place=0.0):
    """Teach labels of one or several annotators; each event is put to a second one as well.

    Which of three rooms it is shows in the features as far as `place` is above 0.
    """
    learner = model(learner)
    for i in range(n):
        room = i % 3
        x = {"a": place * (room == 1) + i % 5 / 5, "b": place * (room == 2) + i % 4 / 4}
        by, then = first[i % len(first)], second[i % len(second)]
        said, y = (says.get(name, lambda truth: truth)(room) for name in (by, then))
        learner.settle_one(x, said, given=said, challenged=False, annotator=by, event_id=str(i))
        learner.note_second(str(i), y, annotator=then)
        if overrules and y != said:
            learner.relabel_one(str(i), y)
    return learner


def lie(room):
    return (room + 1) % 3


@pytest.mark.parametrize("learner", [None, GaussianNB()])
@pytest.mark.parametrize("overrules", [False, True])
def test_lies_in_second_answers_alone_are_evidence(learner, overrules):
    """Where features tell nothing, what others have said of the same events tells it all."""
    told = {"says": {"eve": lie}, "learner": learner, "overrules": overrules}
    found = asked_twice(["ann", "bob", "cyd"], ["eve"], **told)
    assert against(found, "eve") > THRESHOLD
    honest = asked_twice(["ann", "bob", "cyd"], ["dot"], **told)
    assert against(honest, "dot") < 10


def test_second_answers_of_others_are_evidence_on_first_ones():
    says = {"eve": lie}
    found = asked_twice(["ann", "bob", "eve", "eve"], ["cyd"], says=says)
    assert against(found, "eve") > THRESHOLD
    assert max(against(found, name) for name in ("ann", "bob", "cyd")) < 100
    # Who is left out is no witness: the features alone tell nothing.
    assert against(found, "eve", without=["cyd"]) < THRESHOLD
    assert against(found, "eve", without=["ann", "bob"]) == 0  # one other is left


@pytest.mark.parametrize(("n", "head_start"), [(199, HEAD_START), (200, 0.0)])
def test_evidence_has_a_head_start_only_where_all_answers_are_judged(n, head_start, monkeypatch):
    found = asked_twice(["ann", "bob"], ["cyd"], n=10, says={}, learner=GaussianNB())
    for i in range(n):
        x = {"a": i % 5 / 5, "b": i % 4 / 4}
        found.settle_one(x, 0, given=0, challenged=False, annotator="eve", event_id=f"eve{i}")
    judged = Mock(return_value=0.0)
    monkeypatch.setattr(annotator_evidence, "evidence", judged)
    against(found, "eve")
    beliefs, _, start = judged.call_args.args
    assert (len(beliefs), start) == (n, head_start)


def test_more_is_known_of_who_is_asked_about_what_others_have_labelled():
    """With informative features, the evidence of the learner and of the other annotator adds up."""
    found = asked_twice(["ann", "bob"], ["eve"], says={"eve": lie}, place=9.0)
    alone = asked_twice(["ann", "bob"], ["eve"], says={"eve": lie})
    assert against(found, "eve") > against(alone, "eve") > THRESHOLD


def test_a_second_word_that_has_prevailed_is_not_taught_to_the_learner_of_the_others():
    first, second = ["ann", "bob"], ["eve"]
    one = asked_twice(first, second, says={"eve": lie}, place=9.0)
    other = asked_twice(first, second, says={"eve": lie}, place=9.0, overrules=True)
    assert against(one, "eve") == against(other, "eve")
    # Of one who was challenged and gave in it is not known by whom the label is.
    for learner in (one, other):
        x = {"a": 0.0, "b": 0.0}
        learner.settle_one(x, 0, given=1, challenged=True, annotator="ann", event_id="e")
        learner.note_second("e", 0, annotator="eve")
    assert against(one, "eve") == against(other, "eve")


def volunteered(truths, *, n, says, unasked, seconds=(), place=0.0):
    """Teach labels that were asked for, of ann and bob, then those that one annotator volunteers.

    Of these each is put to one of `seconds` in turn; `truths` are the rooms of both parts.
    """
    learner = model()
    for i in range(2 * n):
        late = i >= n
        rooms = truths[late]
        room = rooms[i % len(rooms)]
        by = unasked if late else ("ann", "bob")[i % 2]
        y = says(room) if late else room
        x = {"a": place * (room == 1) + i % 5 / 5, "b": place * (room == 2) + i % 4 / 4}
        learner.settle_one(
            x, y, given=y, challenged=False, annotator=by, event_id=str(i), asked=not late
        )
        if late and seconds:
            learner.note_second(str(i), room, annotator=seconds[i % len(seconds)])
    return learner


@pytest.mark.parametrize("is_challenged", [False, True])
def test_labels_that_were_not_asked_for_are_evidence_only_where_others_have_answered(is_challenged):
    rooms = [0, 1, 2]
    told = {"n": 40, "says": lie, "unasked": "eve", "place": 9.0}
    alone = volunteered([rooms, rooms], **told)
    # Which ones are challenged depends on what they say.
    x = {"a": 0.5, "b": 0.5}
    alone.settle_one(
        x, 1, given=1, challenged=is_challenged, annotator="eve", event_id="e", asked=False
    )
    assert (n_answers(alone, "eve"), against(alone, "eve")) == (0, 0.0)
    # Nor is who gives them a witness against others.
    assert against(alone, "ann") == 0.0
    both = volunteered([rooms, rooms], seconds=("ann", "bob"), **told)
    assert n_answers(both, "eve") == 40
    assert against(both, "eve") > THRESHOLD
    # One who is left out is no witness; with ann alone there is no judgement either.
    assert against(both, "eve", without=["bob"]) == 0.0


@pytest.mark.parametrize("seconds", [(), ("bob",)])
def test_labels_that_were_taken_back_are_no_answers_on_record(seconds):
    """An annotator could otherwise seem to be checked by what no other has answered about."""
    found = volunteered([[0, 1], [0, 1]], n=20, says=lie, unasked="eve", seconds=seconds)
    assert (n_answers(found, "ann"), n_answers(found, "eve")) == (10, 20 if seconds else 0)
    for i in range(20, 40):
        found.forget_one(str(i))
    assert (n_answers(found, "ann"), n_answers(found, "bob"), n_answers(found, "eve")) == (
        10,
        10,
        0,
    )


def test_lies_in_labels_that_no_other_has_given_count_where_others_have_answered():
    told = {"n": 20, "says": lie, "unasked": "eve"}
    found = volunteered([[0], [0]], seconds=("ann", "bob"), **told)
    assert against(found, "eve") > THRESHOLD


def test_who_gives_labels_unasked_is_no_evidence_against_who_is_asked_about_them():
    rooms = [0, 1, 2]
    told = {"n": 40, "says": lie, "unasked": "eve", "place": 9.0}
    found = volunteered([rooms, rooms], seconds=("dot", "ann"), **told)
    assert against(found, "eve") > THRESHOLD
    assert (n_answers(found, "dot"), against(found, "dot")) == (0, 0.0)


def test_second_answers_teach_the_learner_of_the_others():
    """What changes is known to it from answers to second questions alone."""
    told = {"n": 40, "says": lambda room: room, "unasked": "dot", "place": 9.0}
    found = volunteered([[0, 1], [2]], seconds=("ann", "bob"), **told)
    own, others, labels = found.annotator_judge().answered_by("dot")
    assert (len(own), len(others), labels) == (40, 80, [0, 1, 2])
    assert against(found, "dot") < 1.0


def test_an_annotator_is_judged_by_what_the_others_have_said_without_the_excluded():
    taught = ClassExampleStore(GPClassifier(), NoScaling())
    second = SettledAnswer(y="b", annotator="ann")
    answers = [
        SettledAnswer(y="a", annotator="ann"),
        SettledAnswer(y="a", annotator="bob"),
        SettledAnswer(y="c", annotator="eve"),
        # Ann's answer has prevailed: over bob's, or over a label that bob had changed before.
        SettledAnswer(y="a", annotator="bob", second=second),
        SettledAnswer(y="c", annotator="bob", upheld=False, second=second),
    ]
    for n, (one, y) in enumerate(zip(answers, "aacbb", strict=True)):
        taught.teach({"u": float(n)}, y, f"e{n}", answer=one)
    judge = AnnotatorJudge(taught, annotators=())
    own, others, labels = judge.answered_by("ann", without=["eve"])
    assert [(one.y, one.second and one.second.y) for one, _ in own.values()] == [
        ("a", None), ("b", "a"), ("b", None),
    ]  # fmt: skip
    assert [(one.y, one.annotator) for one, _ in others.values()] == [("a", "bob")] * 2
    # Bob has answered about an event that ann calls "b"; without eve no one says "c".
    assert labels == ["a", "b"]
    others = judge.answered_by("ann")[1]
    assert [one.annotator for one, _ in others.values()] == ["bob", "eve", "bob"]


def accused(seconds):
    """Return the evidence against an honest annotator who labels unasked."""
    learner = model()
    for i in range(80):
        room, late = i % 3, i >= 40
        x = {"a": 9.0 * (room == 1) + i % 5 / 5, "b": 9.0 * (room == 2) + i % 4 / 4}
        by = "dot" if late else ("ann", "bob")[i % 2]
        learner.settle_one(
            x, room, given=room, challenged=False, annotator=by, event_id=str(i), asked=not late
        )
        if late:
            name = seconds[i % len(seconds)]
            learner.note_second(str(i), lie(room), annotator=name)
    return against(learner, "dot")


def test_no_annotator_accuses_another_alone_by_answers_to_second_questions():
    """Of two, it cannot be told who misleads; five more answers than those of others count."""
    assert accused(["eve"]) < THRESHOLD < accused(["eve", "fay"])


def test_of_what_one_annotator_has_told_of_unasked_labels_five_more_count_than_of_the_others():
    told = {"n": 40, "says": lie, "unasked": "eve", "place": 9.0}
    for seconds, n in ((["bob"], 5), (["bob", "ann"], 40), (["bob"] * 4 + ["ann"], 8 + 13)):
        found = volunteered([[0, 1, 2]] * 2, seconds=seconds, **told)
        assert len(found.annotator_judge().answered_by("eve")[0]) == n


def test_without_the_one_who_misleads_the_others_do_not_contradict_each_other():
    """The busiest, who errs in one answer of four, looks worse than who always lies."""
    model = isgp(seed=1)
    rooms, shares = ["hall", "attic", "yard", "lab"], ["ann"] * 9 + ["eve"] * 3 + ["ben"]
    said = Counter()
    for n in range(260):
        x, room = {"light": float(n % 12)}, rooms[n % 12 // 3]
        name = shares[5 * n % 13]
        said[name] += 1
        wrong = name == "eve" or (name == "ann" and said["ann"] % 4 == 0)
        y = rooms[(rooms.index(room) + 1) % 4] if wrong else room
        model.observe_one(x)
        model.settle_one(x, y, given=y, challenged=False, annotator=name, event_id=f"e{n}")
    assert against(model, "ann") > against(model, "eve") > THRESHOLD
    judge = model.annotator_judge()
    left = {name: judge.contradiction_without(name) for name in said}
    assert left["eve"] < HEAD_START < THRESHOLD < min(left["ann"], left["ben"])
    assert judge.contradiction_without("ann", without=["ben", "eve"]) == 0.0


def test_answers_that_cannot_be_judged_count_as_such_that_tell_nothing():
    """Nobody else gives the only label that eve ever gives: neither can judge the other."""
    model = isgp(seed=1)
    for n in range(60):
        light, name = 5 * n % 12, ("ann", "ben", "eve")[7 * n % 13 % 3]
        x, y = {"light": float(light)}, "lab" if name == "eve" else ("hall", "attic")[light // 6]
        model.observe_one(x)
        model.settle_one(x, y, given=y, challenged=False, annotator=name, event_id=f"e{n}")
    judge = model.annotator_judge()
    n_ann, n_ben = map(judge.n_answers, ("ann", "ben"))
    assert judge.contradiction_without("ben") == HEAD_START + n_ann
    assert judge.contradiction_without("ann") == HEAD_START + n_ben
    assert 0.0 < judge.contradiction_without("eve") < 2.0


def shifts(learner, shift, second=None, labels=("off", "on")):
    """Teach labels of two who work by day, and of eve, who alone does by night.

    By day nearly all labels are the first one, by night eve gives the other one, and the light is
    more by `shift`. For some of these events ann gives `second`, if there is one.
    """
    model = learner or isgp(seed=1)
    for i in range(160):
        is_night = i % 4 == 3
        name = "eve" if is_night else ("ann", "bob")[i % 2]
        x, y = {"light": i * 7 % 10 / 10 + shift * is_night}, labels[is_night or i % 10 == 4]
        model.observe_one(x)
        told = {"given": y, "challenged": False, "annotator": name, "event_id": str(i)}
        model.settle_one(x, y, **told)
        if second is not None and i % 12 == 11:
            model.note_second(str(i), second, annotator="ann")
    return model


@pytest.mark.parametrize(
    ("learner", "shift"), [(lambda: None, 0.5), (lambda: model(GaussianNB()), 1.0)]
)
def test_who_alone_answers_about_events_of_a_kind_is_not_named_for_these(learner, shift):
    """The others have taught little about such events, however sure a learner is of them."""

    def evidence(**options):
        return against(shifts(learner(), **{"shift": shift, **options}), "eve")

    assert evidence() == evidence(labels=(False, True)) == THRESHOLD  # eve would be named beyond it
    assert evidence(second="on") < 10  # another one confirms
    assert evidence(second="off") > THRESHOLD  # another one contradicts
    assert evidence(shift=0.0) > THRESHOLD  # the others answer about such events


@pytest.mark.parametrize("seed", range(3))
def test_who_misleads_about_most_events_is_named_though_nearly_alone_with_some(seed):
    """Of someone who answers most questions of every kind, nothing else would be left to judge."""
    random, found = Random(seed), isgp(seed=1)
    for i in range(80):
        is_night, y = i % 5 < 2, random.randrange(3)
        is_eve = random.random() < (0.95 if is_night else 0.6)
        x = {"a": random.gauss(y, 0.25), "b": random.gauss(is_night, 0.3)}
        found.observe_one(x)
        given, name = ((y + 1) % 3, "eve") if is_eve else (y, ("ann", "bob")[i % 2])
        told = {"given": given, "challenged": False, "annotator": name, "event_id": str(i)}
        found.settle_one(x, given, **told)
    assert against(found, "eve") > THRESHOLD
