import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import metrics

from streamgp.common.annotator_error import ErrorRate
from streamgp.interactive import (
    Answer,
    Cancel,
    Event,
    Expired,
    LabelledExample,
    Rejected,
    Retraction,
    RunStatistics,
)
from tests.helpers import messages as made
from tests.helpers.messages import label_request


def event(event_id, truth, key=None):
    return made.event(event_id, truth=truth, key=key)


def prediction(event_id, y, key=None):
    return made.prediction(event_id, y, key=key)


def challenge(event_id, given, annotator=None):
    return made.challenge(event_id, given=given, suggested="z", annotator=annotator)


def example(event_id, y, origin="asked", revision=0, annotator=None, w=0.5):
    return LabelledExample(
        event_id=event_id,
        sequence=1,
        revision=revision,
        x={},
        y=y,
        origin=origin,
        annotator=annotator,
        learned_at=0.0,
        probability_wrong=None if revision else w,
    )


def tally_of(truths, *messages):
    statistics = RunStatistics()
    for event_id, truth in truths.items():
        statistics.event(event(event_id, truth))
    for message in messages:
        statistics.message(message)
    return statistics


@given(
    st.lists(
        st.tuples(st.sampled_from("abcd") | st.none(), st.sampled_from("abcde") | st.none()),
        min_size=1,
        max_size=80,
    )
)
def test_scores_equal_those_of_river(pairs):
    statistics, accuracy, macro_f1 = RunStatistics(), metrics.Accuracy(), metrics.MacroF1()
    for n, (truth, guess) in enumerate(pairs):
        statistics.event(event(str(n), truth))
        statistics.message(prediction(str(n), guess))
        if truth is not None and guess is not None:
            accuracy.update(truth, guess)
            macro_f1.update(truth, guess)
    scored = [p for p in pairs if None not in p]
    assert statistics.n_scored == len(scored)
    if scored:
        assert statistics.accuracy == pytest.approx(accuracy.get(), abs=1e-12)
        assert statistics.macro_f1 == pytest.approx(macro_f1.get(), abs=1e-12)
    else:
        assert (statistics.accuracy, statistics.macro_f1) == (None, None)


def test_every_kind_of_message_is_counted():
    statistics = RunStatistics()
    statistics.event(event("e", "a"))
    statistics.answer(Answer(answer_id="1", event_id="e", y="a", answered_at=0.0))
    statistics.answer(Answer(answer_id="2", event_id="e", declined=True, answered_at=0.0))
    statistics.message(label_request("e"))
    statistics.message(challenge("e", "a"))
    statistics.message(Cancel(request_id="e/label", why="", at=0.0))
    statistics.message(Expired(request_id="e/label", event_id="e", at=0.0))
    statistics.message(Rejected(subject="e", fault="unknown", reason="", at=0.0))
    counts = {k: v for k, v in statistics.summary().items() if k.startswith("n_") and v}
    assert counts == {
        "n_events": 1,
        "n_asked": 1,
        "n_challenges": 1,
        "n_answered": 1,
        "n_declined": 1,
        "n_expired": 1,
        "n_rejected": 1,
    }
    assert statistics.label_rate == 1.0


@pytest.mark.parametrize(
    ("given", "final", "precision", "repaired", "spoiled", "wrong"),
    [
        ("b", "a", 1.0, 1, 0, 0),
        ("b", "b", 1.0, 0, 0, 1),
        ("b", "c", 1.0, 0, 0, 1),
        ("a", "a", 0.0, 0, 0, 0),
        ("a", "b", 0.0, 0, 1, 1),
    ],
)
def test_challenges_are_judged_by_the_truth(given, final, precision, repaired, spoiled, wrong):
    statistics = tally_of({"e": "a"}, challenge("e", given))
    assert statistics.challenge_precision is None  # not resolved yet
    statistics.message(example("e", final, "revised"))
    assert statistics.challenge_precision == precision
    assert (statistics.n_repaired, statistics.n_spoiled, statistics.n_wrong_kept) == (
        repaired,
        spoiled,
        wrong,
    )
    assert statistics.wrong_kept == wrong


def test_labels_kept_are_judged_by_their_last_revision():
    statistics = tally_of({"e": "a", "f": "a"}, example("e", "b"), example("f", "a"))
    assert (statistics.n_learned, statistics.n_wrong_kept, statistics.wrong_kept) == (2, 1, 0.5)
    statistics.message(example("e", "a", "revised", 1))
    assert (statistics.n_learned, statistics.n_wrong_kept, statistics.wrong_kept) == (2, 0, 0.0)
    statistics.message(example("f", None, "withdrawn", 1))
    assert (statistics.n_learned, statistics.n_wrong_kept, statistics.wrong_kept) == (1, 0, 0.0)


def test_late_answer_to_a_challenge_moves_the_judgement():
    statistics = tally_of({"e": "a"}, challenge("e", "b"), example("e", "b"))
    assert (statistics.n_repaired, statistics.n_wrong_kept) == (0, 1)
    statistics.message(example("e", "a", "revised", 1))
    assert (statistics.n_repaired, statistics.n_wrong_kept) == (1, 0)
    assert statistics.challenge_precision == 1.0
    statistics.message(example("e", None, "withdrawn", 2))
    assert (statistics.n_repaired, statistics.n_wrong_kept, statistics.n_learned) == (0, 0, 0)


@pytest.mark.parametrize(
    ("given", "final", "origin", "precision", "recall", "repaired", "spoiled"),
    [
        ("b", "a", "revised", 1.0, 1.0, 1, 0),
        ("b", "b", "upheld", 1.0, 1.0, 0, 0),
        ("a", "a", "upheld", 0.0, None, 0, 0),
        ("a", "b", "revised", 0.0, None, 0, 1),
    ],
)
def test_the_challenge_of_a_label_in_the_log_counts_for_the_first_answer(
    given, final, origin, precision, recall, repaired, spoiled
):
    statistics = tally_of({"e": "a"}, example("e", given, annotator="ann", w=0.1))
    statistics.message(challenge("e", given, "ann"))
    assert statistics.challenge_precision is None  # not resolved yet
    statistics.message(example("e", final, origin, 1, annotator="ann"))
    assert (statistics.challenge_precision, statistics.challenge_recall) == (precision, recall)
    assert (statistics.n_repaired, statistics.n_spoiled) == (repaired, spoiled)
    ann = statistics.annotators["ann"]
    assert (ann.n_answers, ann.n_contested, ann.sum_wrong) == (1, 1, 0.1)


def test_an_answer_challenged_twice_counts_once():
    statistics = tally_of(
        {"e": "a"}, challenge("e", "b", "ann"), example("e", "b", annotator="ann")
    )
    statistics.message(challenge("e", "b", "ann"))
    statistics.message(example("e", "a", "revised", 1, annotator="ann"))
    ann = statistics.annotators["ann"]
    assert (statistics.n_challenges, ann.n_answers, ann.n_contested, ann.n_justified) == (
        2,
        1,
        1,
        1,
    )
    assert (statistics.n_repaired, statistics.n_wrong_kept) == (1, 0)


def test_a_label_withdrawn_while_it_is_doubted_leaves_no_challenge_for_the_next():
    statistics = tally_of({"e": "a"}, example("e", "b"), challenge("e", "b"))
    statistics.message(example("e", None, "withdrawn", 1))
    statistics.message(
        LabelledExample(
            event_id="e", sequence=3, revision=2, x={}, y="a", origin="asked", learned_at=0.0,
            probability_wrong=0.1,
        )
    )  # fmt: skip
    assert statistics.annotators[None].n_contested == 0


def test_an_event_with_the_id_of_a_forgotten_one_is_judged_by_its_own_truth():
    statistics = RunStatistics(horizon_s=10.0)
    for truth, at in (("a", 0.0), ("b", 100.0)):
        statistics.event(made.event("e", at=at, truth=truth))
        statistics.message(prediction("e", None))
        statistics.message(challenge("e", truth, "ann"))
        statistics.message(example("e", truth, "upheld", annotator="ann"))
        assert (statistics.n_judged, statistics.n_wrong_kept) == (1, 0)
        assert (statistics.n_repaired, statistics.n_spoiled) == (0, 0)
    assert statistics.annotators["ann"].n_contested == 2


def test_label_without_known_truth_is_learned_and_not_judged():
    statistics = tally_of({"e": None}, challenge("e", "b"), example("e", "b"))
    assert (statistics.n_challenges, statistics.n_learned) == (1, 1)
    assert (statistics.challenge_precision, statistics.wrong_kept) == (None, None)


def test_keys_are_kept_apart():
    statistics = RunStatistics()
    for key, truth in (("ann", "a"), ("bob", "b")):
        statistics.event(event("e", truth, key))
    for key in ("ann", "bob"):
        statistics.message(prediction("e", "a", key))
    assert (statistics.n_scored, statistics.accuracy) == (2, 0.5)


def test_false_is_a_truth_and_a_label():
    statistics = tally_of({"e": False}, prediction("e", False), challenge("e", True))
    statistics.message(example("e", False, "revised"))
    assert (statistics.accuracy, statistics.n_repaired, statistics.n_learned) == (1.0, 1, 1)


def test_summary_is_plain_json_in_a_fixed_order():
    assert list(RunStatistics().summary()) == [
        "n_events",
        "n_scored",
        "accuracy",
        "macro_f1",
        "n_asked",
        "n_challenges",
        "challenge_precision",
        "challenge_recall",
        "n_answered",
        "n_declined",
        "n_expired",
        "n_rejected",
        "n_learned",
        "n_repaired",
        "n_spoiled",
        "n_wrong_kept",
        "wrong_kept",
        "label_rate",
    ]
    empty = json.dumps(RunStatistics().summary(), allow_nan=False)
    assert '"accuracy": null' in empty
    full = tally_of({"e": "a"}, prediction("e", "a"), challenge("e", "b"), example("e", "a"))
    assert json.loads(json.dumps(full.summary(), allow_nan=False)) == full.summary()


def test_confusion_counts_predictions_by_truth():
    statistics = tally_of({"e": "a", "f": "b", "g": "b", "h": None})
    for event_id, y in (("e", "b"), ("f", "b"), ("g", "c"), ("h", "a")):
        statistics.message(prediction(event_id, y))
    assert statistics.confusion.summary() == {
        "labels": ["a", "b", "c"],
        "counts": [[0, 1, 0], [0, 1, 1], [0, 0, 0]],
    }


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab") | st.none(),  # truth
            st.sampled_from("ab"),  # first answer
            st.sampled_from(["ann", "bob", None]),
            st.none() | st.sampled_from("ab"),  # second answer, if it was challenged
            st.floats(0.0, 1.0),
        ),
        max_size=40,
    )
)
def test_first_answers_are_judged_as_by_hand(answers):
    statistics = tally_of({str(n): truth for n, (truth, *_) in enumerate(answers)})
    for n, (_, given_y, who, second, w) in enumerate(answers):
        if second is None:
            statistics.message(example(str(n), given_y, annotator=who, w=w))
        else:
            # Another annotator may have the last word; the answer contested counts.
            statistics.message(challenge(str(n), given_y, who))
            statistics.message(example(str(n), second, "revised", annotator="zoe", w=w))
            statistics.message(example(str(n), "a", "revised", 1, annotator="zoe"))
    known = [(t != y, s is not None) for t, y, _, s, _ in answers if t is not None]
    challenged = [wrong for wrong, contested in known if contested]
    wrong_ones = [contested for wrong, contested in known if wrong]
    assert statistics.challenge_precision == (
        sum(challenged) / len(challenged) if challenged else None
    )
    assert statistics.challenge_recall == (
        sum(wrong_ones) / len(wrong_ones) if wrong_ones else None
    )
    for name, counts in statistics.annotators.items():
        own = [answer for answer in answers if answer[2] == name]
        judged = [t != y for t, y, *_ in own if t is not None]
        assert counts.summary() == {
            "n_answers": len(own),
            "n_wrong": sum(judged),
            "error_rate": sum(judged) / len(judged) if judged else None,
            "estimate": pytest.approx((1 + sum(a[4] for a in own)) / (5 + len(own))),
        }
    assert set(statistics.annotators) == {answer[2] for answer in answers}


def test_estimate_is_that_of_the_learner():
    rate, statistics = ErrorRate(), RunStatistics()
    for n, w in enumerate((0.1, 1.0, 0.0, 0.7)):
        rate.note(w)
        statistics.message(example(str(n), "a", w=w))
        assert statistics.annotators[None].estimate == rate.estimate


def test_challenge_that_is_not_resolved_counts_for_nobody():
    statistics = tally_of({"e": "a"}, challenge("e", "b", "ann"))
    assert statistics.annotators == {}
    assert statistics.challenge_recall is None


EVENT_IDS = st.integers(0, 5).map(str)
LABELS = st.sampled_from(["a", "b", 3, False])
KEYS = st.sampled_from([None, "k"])
PEOPLE = st.sampled_from(["ann", None])
INPUTS = st.lists(
    st.one_of(
        st.builds(event, EVENT_IDS, LABELS | st.none(), KEYS),
        st.builds(prediction, EVENT_IDS, LABELS | st.none(), KEYS),
        st.builds(challenge, EVENT_IDS, LABELS, PEOPLE),
        st.builds(example, EVENT_IDS, LABELS, annotator=PEOPLE, w=st.floats(0.0, 1.0)),
        st.builds(example, EVENT_IDS, LABELS | st.none(), revision=st.just(1)),
        st.builds(lambda e: Expired(request_id=e, event_id=e, at=0.0), EVENT_IDS),
        st.builds(lambda e: Rejected(subject=e, fault="late", reason="", at=0.0), EVENT_IDS),
        st.builds(label_request, EVENT_IDS),
        st.builds(lambda e: Answer(answer_id=e, event_id=e, y="a", answered_at=0.0), EVENT_IDS),
    ),
    max_size=60,
)


def tell(statistics, message):
    if isinstance(message, Event):
        statistics.event(message)
    elif isinstance(message, Answer):
        statistics.answer(message)
    else:
        statistics.message(message)


def everything(statistics):
    people = [(name, answers.summary()) for name, answers in statistics.annotators.items()]
    return statistics.summary(), statistics.confusion.summary(), people


@given(INPUTS, st.integers(0, 60), st.booleans())
def test_cut_anywhere_counts_the_same(inputs, cut, see_first):
    whole, first, second = RunStatistics(), RunStatistics(), RunStatistics()
    for message in inputs:
        tell(whole, message)
    for message in inputs[:cut]:
        tell(first, message)
    state = json.loads(json.dumps(first.state(), allow_nan=False))
    if not see_first:
        second.load_state(state)
    for message in inputs[:cut]:
        if isinstance(message, Event):
            second.see(message)
    if see_first:
        second.load_state(state)
    assert everything(second) == everything(first)
    for message in inputs[cut:]:
        tell(second, message)
    assert everything(second) == everything(whole)
    assert second.state() == whole.state()


def test_quarantines_are_counted_with_the_labels_taken_back():
    whole, part = RunStatistics(), RunStatistics()
    for n_labels, statistics in ((2, [whole]), (3, [whole, part])):
        taken = tuple(example(str(n), "b", annotator="eve") for n in range(n_labels))
        changed = example("0", "b", annotator="ann", revision=1)
        for each in statistics:
            each.message(taken[0])
            each.message(Retraction(annotator="eve", since=None, at=9.0, taken=(*taken, changed)))
    eve = whole.annotators["eve"]
    assert (eve.n_quarantines, eve.n_taken_back) == (2, 5)
    assert (eve.summary()["n_quarantines"], eve.summary()["n_taken_back"]) == (2, 5)
    whole.remove(part)
    assert (eve.n_quarantines, eve.n_taken_back) == (1, 2)
