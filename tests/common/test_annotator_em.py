import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.base import SettledAnswer
from streamgp.common import annotator_em
from streamgp.common.annotator_em import (
    SHARPENINGS,
    estimate,
    estimate_mean,
    witnessed,
    wrong_of_two,
)
from streamgp.common.annotator_error import Reliability
from tests.helpers.laws import examples

LABELS = ["a", "b", "c"]
NOTHING = [0.0, 0.0, 0.0]


def sure(label, share=1.0):
    """Return a belief in one label."""
    return [share if label == known else (1.0 - share) / 2.0 for known in LABELS]


def people(rng, *, n, annotators, power=1.0):
    """Draw answers of annotators with error rates and insistences, and calibrated beliefs.

    The beliefs are then raised to a power and normalised.
    """
    answers, beliefs, wrong = [], [], []
    names = list(annotators)
    for i in range(n):
        q = rng.dirichlet([0.2] * 3)
        truth = rng.choice(3, p=q)
        name = names[i % len(names)]
        e, s = annotators[name]
        y = truth
        if rng.random() < e:
            y = rng.choice([other for other in range(3) if other != truth])
        upheld = None
        if q[y] < 0.3:
            upheld = bool(y == truth or rng.random() < s)
        answers.append(SettledAnswer(y=LABELS[y], annotator=name, upheld=upheld))
        beliefs.append(q**power / (q**power).sum())
        wrong.append((name, y != truth))
    realised = {
        name: sum(w for other, w in wrong if other == name) / n * len(annotators)
        for name in annotators
    }
    return answers, np.array(beliefs), realised


def log_posterior(answers, beliefs, rates, power):
    """Return what EM maximises, answer by answer as it is defined."""
    total = 0.0
    for answer, belief in zip(answers, beliefs, strict=True):
        e, s = rates[answer.annotator]
        norm = sum(belief)
        shares = [0.999 * (b / norm if norm else 1 / 3) + 0.001 / 3 for b in belief]
        sharp = [share**power for share in shares]
        q = sharp[LABELS.index(answer.y)] / sum(sharp)
        right, wrong = (1 - e) * q, e * (1 - q) / 2
        if answer.upheld is not None:
            right *= 0.98 if answer.upheld else 0.02
            wrong *= s if answer.upheld else 1 - s
        total += math.log(right + wrong)
    for e, s in rates.values():
        total += math.log(e) + 4 * math.log(1 - e) + math.log(s) + 3 * math.log(1 - s)
    return total


def test_beliefs_that_say_nothing_leave_what_was_known_before():
    found = estimate([SettledAnswer(y="a")] * 50, np.array([NOTHING] * 50), LABELS)
    assert found.reliability[None].error_rate == pytest.approx(0.2)


def test_even_beliefs_are_left_as_they_are():
    """An even belief says nothing of an answer: e = (1 + e) / 6."""
    found = estimate([SettledAnswer(y="a")], np.array([[0.5, 0.5]]), ["a", "b"])
    assert found.reliability[None].error_rate == pytest.approx(0.2, abs=1e-9)
    assert found.reliability[None].insistence == 0.25
    assert found.sharpening == 1.0  # all are as likely


@given(st.integers(0, 1000))
@examples(10)
def test_rounding_does_not_choose_a_power(seed):
    noise = 1e-12 * np.random.default_rng(seed).random((5, 3))
    found = estimate([SettledAnswer(y="a", upheld=True)] * 5, 1.0 + noise, LABELS)
    assert found.sharpening == 1.0


def test_sure_beliefs_count_the_answers_that_they_contradict():
    answers = [SettledAnswer(y=y, annotator="ann") for y in "aab" * 40]
    found = estimate(answers, np.array([sure("a")] * 120), LABELS)
    assert found.reliability["ann"].error_rate == pytest.approx((1 + 40) / (5 + 120), abs=0.02)
    assert found.wrong.reshape(40, 3).mean(axis=0) == pytest.approx([0, 0, 1], abs=0.08)


def test_insistence_is_the_share_of_wrong_answers_upheld():
    answers = [SettledAnswer(y="b", upheld=upheld) for upheld in [True] * 30 + [False] * 10]
    answers += [SettledAnswer(y="a")] * 100
    beliefs = np.array([sure("a")] * 140)
    assert estimate(answers, beliefs, LABELS).reliability[None].insistence == pytest.approx(
        (1 + 30) / (4 + 40), abs=0.03
    )


def test_a_changed_answer_was_wrong_whatever_is_believed():
    changed, kept = (SettledAnswer(y="a", upheld=upheld) for upheld in (False, True))
    found = estimate([changed, kept], np.array([sure("a", 0.5)] * 2), LABELS)
    assert found.wrong[0] > 0.8 > 0.1 > found.wrong[1]


def test_a_label_that_is_the_only_one_is_never_wrong():
    found = estimate([SettledAnswer(y="a")] * 9, np.ones((9, 1)), ["a"])
    assert found.reliability[None].error_rate == pytest.approx(1 / 14)


@pytest.mark.parametrize("seed", range(2))
def test_no_other_rates_are_more_probable(seed):
    """A grid of rates and all powers, by the definition, finds nothing better."""
    rng = np.random.default_rng(seed)
    answers, beliefs, _ = people(rng, n=16, annotators={"ann": (0.3, 0.5)})
    found = estimate(answers, beliefs, LABELS)
    rate = found.reliability["ann"]
    best = log_posterior(
        answers, beliefs, {"ann": (rate.error_rate, rate.insistence)}, found.sharpening
    )
    grid = np.linspace(0.05, 0.95, 13)
    others = max(
        log_posterior(answers, beliefs, {"ann": (e, s)}, power)
        for e, s, power in itertools.product(grid, grid, SHARPENINGS)
    )
    assert best >= others - 1e-6


@pytest.mark.parametrize("are_shares", [False, True])
def test_the_mean_weighs_each_power_by_what_it_makes_of_the_answers(monkeypatch, are_shares):
    answers, beliefs, _ = people(
        np.random.default_rng(3), n=40, annotators={"ann": (0.3, 0.5), "bob": (0.1, 0.2)}
    )
    found = estimate_mean(answers, beliefs, LABELS, are_shares=are_shares)
    weights, rates = [], []
    for power in SHARPENINGS:
        monkeypatch.setattr(annotator_em, "SHARPENINGS", (power,))
        alone = estimate(answers, beliefs, LABELS).reliability
        by = {name: (one.error_rate, one.insistence) for name, one in alone.items()}
        usual = math.exp(-2.0 * math.log(power / 2.5) ** 2) if are_shares else 1.0
        weights.append(math.exp(log_posterior(answers, beliefs, by, power) + 60.0) * usual)
        rates.append(list(by.values()))
        assert estimate_mean(answers, beliefs, LABELS, are_shares=are_shares) == alone
    mean = np.average(rates, axis=0, weights=weights)
    assert len({round(weight, 9) for weight in weights}) > 1
    for one, (e, s) in zip(found.values(), mean, strict=True):
        assert (one.error_rate, one.insistence) == (pytest.approx(e), pytest.approx(s))


@pytest.mark.parametrize(
    ("annotators", "n"),
    [
        ({"ann": (0.06, 0.1)}, 600),
        ({"ann": (0.2, 0.9)}, 600),
        ({"ann": (0.02, 0.1), "bob": (0.2, 0.2), "cleo": (0.4, 0.9)}, 1500),
    ],
)
@pytest.mark.parametrize("power", [1.0, 0.5])
def test_simulated_people_are_found_out(annotators, n, power):
    """Also where beliefs are under-confident, which the sharpening makes up for."""
    answers, beliefs, realised = people(
        np.random.default_rng(7), n=n, annotators=annotators, power=power
    )
    found = estimate(answers, beliefs, LABELS)
    assert found.sharpening == pytest.approx(1 / power, rel=0.51)
    for name, (e, s) in annotators.items():
        assert found.reliability[name].error_rate == pytest.approx(realised[name], abs=0.05)
        if e * n / len(annotators) > 100:  # enough wrong answers to tell
            assert found.reliability[name].insistence == pytest.approx(s, abs=0.15)


@given(st.integers(0, 1000), st.integers(1, 30))
@examples(20)
def test_the_order_of_answers_changes_nothing_but_rounding(seed, n):
    rng = np.random.default_rng(seed)
    answers, beliefs, _ = people(rng, n=n, annotators={"ann": (0.3, 0.5), "bob": (0.1, 0.1)})
    found = estimate(answers, beliefs, LABELS)
    order = rng.permutation(n)
    again = estimate([answers[i] for i in order], beliefs[order], LABELS)
    assert again.sharpening == found.sharpening
    assert again.wrong == pytest.approx(found.wrong[order], abs=1e-6)
    for name, rate in found.reliability.items():
        assert again.reliability[name].error_rate == pytest.approx(rate.error_rate, abs=1e-6)


def test_an_unknown_annotator_errs_in_one_of_five():
    assert Reliability() == Reliability(error_rate=0.2, insistence=0.25)


# --- second answers


def weights(belief, first, second, rates, insistence):
    """Return the weight of each label being the true one, label by label as it is defined."""
    shares = [0.999 * b / sum(belief) + 0.001 / 3 for b in belief]
    (e, e2), m, found = rates, len(LABELS) - 1, []
    for label, q in zip(LABELS, shares, strict=True):
        is_first = label == first.y
        weight = q * ((1 - e) if is_first else e / m)
        if first.upheld is not None:
            s = 0.98 if is_first else insistence
            weight *= s if first.upheld else 1 - s
        if second is not None:
            weight *= (1 - e2) if label == second.y else e2 / m
        found.append(weight)
    return found


RATE = st.floats(0.01, 0.99)


@given(
    st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3).filter(lambda q: sum(q) > 0.1),
    st.sampled_from(LABELS),
    st.sampled_from(LABELS),
    st.sampled_from([None, True, False]),
    st.tuples(RATE, RATE),
)
def test_two_answers_are_judged_by_the_posterior_of_each_label(belief, y, said, upheld, rates):
    first = SettledAnswer(y=y, annotator="ann", upheld=upheld)
    second = SettledAnswer(y=said, annotator="bob")
    found = wrong_of_two(first, second, rates, belief, LABELS)
    of_label = dict(zip(LABELS, weights(belief, first, second, rates, 0.25), strict=True))
    total = sum(of_label.values())
    expected = [1 - of_label[label] / total for label in (y, said)]
    assert found == pytest.approx(expected, abs=1e-9)


def test_rates_are_the_means_of_what_is_wrong_where_some_have_a_second_answer():
    """At the end of EM each rate is what the posteriors by these rates say."""
    rng = np.random.default_rng(5)
    answers, beliefs, _ = people(rng, n=200, annotators={"ann": (0.1, 0.2), "bob": (0.4, 0.6)})
    for n in range(0, 200, 3):
        other = "bob" if answers[n].annotator == "ann" else "ann"
        said = SettledAnswer(y=LABELS[rng.integers(3)], annotator=other)
        answers[n] = replace(answers[n], second=said)
    found = estimate(answers, beliefs, LABELS)
    sums = {"ann": [1.0, 5.0], "bob": [1.0, 5.0]}
    for answer, belief in zip(answers, beliefs, strict=True):
        sharp = [(0.999 * b + 0.001 / 3) ** found.sharpening for b in belief]
        spread = [(q / sum(sharp) - 0.001 / 3) / 0.999 for q in sharp]  # `weights` spreads again
        names = [answer.annotator, answer.second.annotator if answer.second else "ann"]
        rates = [found.reliability[name].error_rate for name in names]
        insistence = found.reliability[answer.annotator].insistence
        of_label = weights(spread, answer, answer.second, rates, insistence)
        for one in filter(None, (answer, answer.second)):
            z = 1 - of_label[LABELS.index(one.y)] / sum(of_label)
            sums[one.annotator][0] += z
            sums[one.annotator][1] += 1
    for name, (wrong, n) in sums.items():
        assert found.reliability[name].error_rate == pytest.approx(wrong / n, abs=1e-6)
        assert found.reliability[name].n_answers == n - 5


def test_a_second_answer_is_evidence_on_both_annotators():
    """Where the learner knows nothing, two who agree are right, and two who differ are not both."""
    belief = [1 / 3] * 3
    one, other = SettledAnswer(y="a"), SettledAnswer(y="b")
    alone = 1 - weights(belief, one, None, (0.2, 0.2), 0.25)[0] / sum(
        weights(belief, one, None, (0.2, 0.2), 0.25)
    )
    agreed = wrong_of_two(one, one, (0.2, 0.2), belief, LABELS)
    differed = wrong_of_two(one, other, (0.2, 0.2), belief, LABELS)
    assert agreed[0] == agreed[1] < alone < differed[0] == pytest.approx(differed[1])


@given(
    st.lists(st.floats(0.01, 1.0), min_size=1, max_size=5),
    st.floats(0.01, 0.99),
    st.data(),
)
def test_a_witness_changes_beliefs_as_a_second_answer_does(weights, rate, data):
    """Bayes: of the label said, and of every other one that an error brings as easily."""
    belief = [weight / sum(weights) for weight in weights]
    said = data.draw(st.integers(0, len(belief) - 1))
    n_others = max(1, len(belief) - 1)
    likely = [1 - rate if k == said else rate / n_others for k in range(len(belief))]
    joint = [q * one for q, one in zip(belief, likely, strict=True)]
    found = witnessed(np.array([belief, belief]), [(said, rate), None])
    assert found[0] == pytest.approx([one / sum(joint) for one in joint])
    assert found[1].tolist() == belief
