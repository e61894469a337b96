"""Gwet's AC1: numbers by hand, closed forms, and laws."""

import random
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.evaluation.agreement import AgreementCounts, agreement_lines
from streamgp.interactive import LabelledExample
from streamgp.metrics import AnnotatorAgreement

PAIRS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=40)


def agreement(pairs, n_labels=None):
    metric = AnnotatorAgreement(n_labels)
    for one, other in pairs:
        metric.update(one, other)
    return metric


def test_a_small_table_by_hand():
    """118 and 2 alike of 125, 5 apart: p_a = .96, π = .972, p_e = 2 · .972 · .028 = .054432."""
    table = [("+", "+")] * 118 + [("+", "-")] * 5 + [("-", "-")] * 2
    metric = agreement(table)
    chance = 2.0 * (241 / 250) * (9 / 250)
    assert metric.raw == 120 / 125
    assert metric.get() == pytest.approx((0.96 - chance) / (1.0 - chance))
    assert metric.get() == pytest.approx(0.957, abs=5e-4)


def test_three_labels_by_hand():
    """Of 4 events 2 alike; shares 3/8, 3/8, 1/4: p_e = (15/64 + 15/64 + 3/16) / 2 = 21/64."""
    pairs = [("a", "a"), ("b", "b"), ("a", "c"), ("b", "c")]
    metric = agreement(pairs)
    assert (metric.raw, metric.get()) == (0.5, pytest.approx((0.5 - 21 / 64) / (1 - 21 / 64)))


def test_nothing_alike_of_two_equal_labels_is_minus_one():
    assert agreement([("a", "b"), ("b", "a")]).get() == -1.0


def test_all_alike_is_one_and_nothing_is_nothing():
    assert agreement([("a", "a")] * 3).get() == agreement([("a", "a"), ("b", "b")]).get() == 1.0
    assert (AnnotatorAgreement().get(), AnnotatorAgreement().standard_error) == (0.0, 0.0)


@given(PAIRS)
def test_which_of_the_two_is_first_does_not_matter(pairs):
    one, other = agreement(pairs), agreement([pair[::-1] for pair in pairs])
    assert one.get() == pytest.approx(other.get())
    assert one.standard_error == pytest.approx(other.standard_error)


@given(PAIRS, PAIRS)
def test_what_is_taken_back_was_never_there(kept, gone):
    metric = agreement([*kept, *gone])
    for pair in gone:
        metric.revert(*pair)
    assert metric.cells == agreement(kept).cells
    assert metric.get() == pytest.approx(agreement(kept).get())


@given(PAIRS)
def test_of_two_labels_either_has_the_agreement_of_both(pairs):
    two = [(one.replace("c", "a"), other.replace("c", "a")) for one, other in pairs]
    metric = agreement(two, 2)
    for label in "ab":
        assert metric.of_class(label).get() == pytest.approx(metric.get())


def test_the_standard_error_is_that_of_many_samples():
    rng = random.Random(3)

    def sample():
        pairs = []
        for _ in range(200):
            one = rng.choice("aaabc")
            pairs.append((one, one if rng.random() < 0.8 else rng.choice("abc")))
        return agreement(pairs, 3)

    found = [sample() for _ in range(400)]
    mean = sum(one.get() for one in found) / 400
    spread = sqrt(sum((one.get() - mean) ** 2 for one in found) / 399)
    stated = sum(one.standard_error for one in found) / 400
    assert stated == pytest.approx(spread, rel=0.12)  # of 400 samples the spread is known to 4 %


# --- counted off the log


def line(event, revision, y, annotator, **fields):
    return LabelledExample(
        event_id=event, revision=revision, sequence=1, x={}, y=y, annotator=annotator,
        learned_at=0.0, **fields,
    )  # fmt: skip


def first(event, y, annotator):
    return line(event, 0, y, annotator, origin="asked", probability_wrong=0.1)


def second(event, y, annotator, said=None):
    return line(event, 1, y, annotator, origin="aggregated", given=said)


def test_pairs_repeats_and_classes_are_told_apart():
    counts = AgreementCounts()
    for n, (y, said) in enumerate([("a", "a"), ("a", "b"), ("b", "b")]):
        counts.take(first(f"e{n}", y, "bob"))
        counts.take(second(f"e{n}", y, "ann", said if said != y else None))
    counts.take(first("f", "a", "ann"))
    counts.take(second("f", "a", "ann"))
    assert {names: one.cells for names, one in counts.pairs().items()} == {
        ("ann", "bob"): {("a", "a"): 1, ("b", "a"): 1, ("b", "b"): 1}
    }
    assert {name: one.raw for name, one in counts.repeats().items()} == {"ann": 1.0}
    assert {y: one.raw for y, one in counts.classes().items()} == {"a": 2 / 3, "b": 2 / 3}
    assert counts.n == 4
    assert len(agreement_lines(counts)) == 3


def test_a_challenged_answer_counts_as_it_was_given():
    counts = AgreementCounts()
    counts.take(
        line("e", 0, "b", "sue", origin="revised", probability_wrong=1.0, challenged=True,
             given="a", given_by="ann")
    )  # fmt: skip
    counts.take(second("e", "b", "bob"))
    assert counts.pairs()["ann", "bob"].cells == {("a", "b"): 1}


def test_a_second_answer_counts_as_it_was_corrected_last():
    counts = AgreementCounts()
    counts.take(first("e", "a", "ann"))
    counts.take(second("e", "a", "bob", "c"))
    counts.take(second("e", "a", "bob"))
    assert counts.pairs()["ann", "bob"].raw == 1.0
    counts.take(second("e", "a", None))
    assert (counts.n, counts.summary(), agreement_lines(counts)) == (0, {}, [])


def test_counts_survive_a_restart_and_parts_are_taken_out():
    counts, part = AgreementCounts(), AgreementCounts()
    lines = [first("e", "a", "ann"), second("e", "a", "bob"), first("f", "a", "bob")]
    for one in lines:
        counts.take(one)
    again = AgreementCounts()
    again.load_state(counts.state())
    later = second("f", "a", "ann", "b")
    for one in (counts, again):
        one.take(later)
    assert again.summary() == counts.summary()
    for one in lines[:2]:
        part.take(one)
    counts.remove(part)
    assert counts.pairs()["ann", "bob"].cells == {("b", "a"): 1}
