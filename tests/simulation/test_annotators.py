import json

import numpy as np
import pytest

from streamgp.interactive import SimulatedAnnotator
from tests.helpers.messages import challenge, label_request


def ask(event_id="e", key=None):
    return label_request(event_id, 100.0, key=key)


def contest(given, event_id="e", number=1):
    return challenge(event_id, 100.0, request_id=f"{event_id}/challenge/{number}", given=given)


def labels(annotator, requests, truth="a"):
    return [annotator.answer(r, truth, 100.0).y for r in requests]


MANY = [ask(str(n)) for n in range(2000)]


def test_answer_is_signed_timed_and_named_after_its_request():
    annotator = SimulatedAnnotator(delay=30.0, name="eve")
    answer = annotator.answer(ask("e", key="ann"), "a", 105.0)
    assert (answer.answer_id, answer.request_id, answer.event_id, answer.key) == (
        "e/label/answer",
        "e/label",
        "e",
        "ann",
    )
    assert (answer.y, answer.declined, answer.annotator) == ("a", False, "eve")
    assert answer.answered_at == 135.0
    assert SimulatedAnnotator().answer(ask(), "a", 1.0).annotator == "simulated"


def test_unknown_truth_is_declined():
    answer = SimulatedAnnotator().answer(ask(), None, 0.0)
    assert answer.declined
    assert answer.y is None


@pytest.mark.parametrize("rate", [0.0, 0.2, 1.0])
def test_errors_come_at_their_rate(rate):
    annotator = SimulatedAnnotator(error_rate=rate, classes=["a", "b"], seed=1)
    wrong = sum(y != "a" for y in labels(annotator, MANY)) / len(MANY)
    assert wrong == pytest.approx(rate, abs=0.03)  # over three standard errors


def test_wrong_labels_are_uniform_over_the_other_classes():
    annotator = SimulatedAnnotator(error_rate=1.0, classes=["b", "a", "c", "d"], seed=1)
    given = labels(annotator, MANY)
    assert set(given) == {"b", "c", "d"}
    for y in "bcd":
        assert given.count(y) / len(given) == pytest.approx(1 / 3, abs=0.035)


def test_declining_comes_at_its_rate():
    annotator = SimulatedAnnotator(decline_rate=0.1, seed=1)
    declined = sum(y is None for y in labels(annotator, MANY)) / len(MANY)
    assert declined == pytest.approx(0.1, abs=0.02)


def test_annotator_errs_among_the_labels_seen_so_far():
    annotator = SimulatedAnnotator(error_rate=1.0, seed=1)
    assert labels(annotator, MANY[:5]) == ["a"] * 5
    annotator.see("a")
    assert labels(annotator, MANY[:5]) == ["a"] * 5
    annotator.see("b")
    assert labels(annotator, MANY[:5]) == ["b"] * 5


def test_given_classes_are_not_added_to():
    annotator = SimulatedAnnotator(error_rate=1.0, classes=("a", "b"), seed=1)
    annotator.see("c")
    assert set(labels(annotator, MANY)) == {"b"}


def test_contested_truth_is_upheld():
    annotator = SimulatedAnnotator(error_rate=1.0, classes=["a", "b", "c"], seed=1)
    assert labels(annotator, [contest("a", str(n)) for n in range(50)]) == ["a"] * 50


def test_contested_error_is_made_again_at_the_error_rate():
    annotator = SimulatedAnnotator(error_rate=0.4, classes=["a", "b", "c"], seed=1)
    second = labels(annotator, [contest("b", str(n)) for n in range(2000)])
    assert sum(y != "a" for y in second) / 2000 == pytest.approx(0.4, abs=0.035)
    assert set(second) == {"a", "b", "c"}


def test_stubborn_annotator_repeats_the_contested_label():
    annotator = SimulatedAnnotator(stubborn=True, classes=["a", "b"], seed=1)
    assert labels(annotator, [contest(y) for y in ("b", "a", "q")]) == ["b", "a", "q"]


def test_suggestible_annotator_gives_in_at_its_rate_right_or_wrong():
    annotator = SimulatedAnnotator(suggestible=0.3, classes=["a", "b", "c"], seed=1)
    contested = [
        challenge(str(n), 100.0, request_id=f"{n}/challenge/1", given=given, suggested="c")
        for n, given in enumerate("ab" * 1000)
    ]
    given_in = [y == "c" for y in labels(annotator, contested)]
    for which in (given_in[::2], given_in[1::2]):
        assert sum(which) / 1000 == pytest.approx(0.3, abs=0.045)  # three standard errors
    assert labels(annotator, contested[::-1])[::-1] == labels(annotator, contested)


def test_second_answers_have_an_error_rate_of_their_own():
    annotator = SimulatedAnnotator(
        error_rate=1.0, second_error_rate=0.0, classes=["a", "b"], seed=1
    )
    assert labels(annotator, [ask(), contest("b"), contest("a")]) == ["b", "a", "a"]


def test_an_annotator_who_does_not_give_in_draws_as_before():
    plain, told = (
        SimulatedAnnotator(error_rate=0.5, classes=["a", "b", "c"], seed=7, **options)
        for options in ({}, {"suggestible": 0.0, "second_error_rate": 0.5})
    )
    contested = [contest("b", str(n)) for n in range(100)]
    assert labels(plain, contested) == labels(told, contested)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"suggestible": 1.5}, "suggestible must be between 0 and 1, got 1.5"),
        ({"second_error_rate": -1}, "second_error_rate must be between 0 and 1, got -1"),
        ({"suggestible": 0.1, "stubborn": True}, "suggestible must be 0 for a stubborn annotator"),
    ],
)
def test_refuses_rates_that_are_none(options, message):
    with pytest.raises(ValueError, match=message):
        SimulatedAnnotator(**options)


def test_challenge_is_declined_like_any_question():
    annotator = SimulatedAnnotator(stubborn=True, decline_rate=1.0)
    assert annotator.answer(contest("b"), "a", 0.0).declined


def test_answer_depends_on_the_question_and_not_on_the_order():
    one, other = (
        SimulatedAnnotator(error_rate=0.5, decline_rate=0.1, classes=["a", "b", "c"], seed=7)
        for _ in range(2)
    )
    assert labels(one, MANY[:200]) == labels(other, MANY[:200][::-1])[::-1]


def test_seeds_keys_and_challenges_draw_independently():
    def pattern(requests, seed=1):
        annotator = SimulatedAnnotator(error_rate=0.5, classes=["a", "b"], seed=seed)
        return labels(annotator, requests)

    first = pattern(MANY[:100])
    assert first == pattern(MANY[:100])
    assert first != pattern(MANY[:100], seed=2)
    assert first != pattern([ask(str(n), key="ann") for n in range(100)])
    again = [contest("b", str(n)) for n in range(100)]
    assert pattern(again) != pattern([contest("b", str(n), number=2) for n in range(100)])


def test_unseeded_annotator_draws_a_seed_once():
    one, other = (SimulatedAnnotator(error_rate=0.5, classes=["a", "b"]) for _ in range(2))
    assert one.seed is None
    assert labels(one, MANY[:200]) == labels(one, MANY[:200])
    assert labels(one, MANY[:200]) != labels(other, MANY[:200])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"error_rate": 1.5}, "error_rate must be between 0 and 1, got 1.5"),
        ({"error_rate": float("nan")}, "error_rate must be between 0 and 1, got nan"),
        ({"decline_rate": -0.1}, "decline_rate must be between 0 and 1, got -0.1"),
        ({"delay": -1.0}, r"delay must be from 0 to 1e\+12 seconds, got -1.0"),
        ({"delay": 1.1e12}, r"delay must be from 0 to 1e\+12 seconds, got 1100000000000.0"),
        ({"classes": []}, r"classes must be a sequence of at least one label, got \[\]"),
        ({"classes": "ab"}, "classes must be a sequence of at least one label, got 'ab'"),
        ({"classes": [None]}, "a label must be a finite number, a bool or a string, got None"),
    ],
)
def test_impossible_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        SimulatedAnnotator(**arguments)


def test_classes_come_in_any_sequence():
    listed = SimulatedAnnotator(error_rate=0.5, classes=[1, 2, 3], seed=1)
    for classes in (np.array([1, 2, 3]), iter([1, 2, 3]), range(1, 4), {1: 0, 2: 0, 3: 0}.keys()):
        one = SimulatedAnnotator(error_rate=0.5, classes=classes, seed=1)
        assert labels(one, MANY[:50]) == labels(listed, MANY[:50])
    with pytest.raises(ValueError, match="classes must be a sequence of at least one label"):
        SimulatedAnnotator(classes=np.array([]))


def test_annotator_taken_up_again_answers_as_before():
    one = SimulatedAnnotator(error_rate=0.5, decline_rate=0.1)  # without a seed
    for label in ("c", "a", "b"):
        one.see(label)
    other = SimulatedAnnotator(error_rate=0.5, decline_rate=0.1)
    other.load_state(json.loads(json.dumps(one.state())))
    assert labels(one, MANY[:200]) == labels(other, MANY[:200])
