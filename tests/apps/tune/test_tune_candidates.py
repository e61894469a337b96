"""Which hyperparameters are tried, which are replayed, and which is called the best."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from statistics import fmean

import click
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as replace_struct

from streamgp.apps.tune import MOST
from streamgp.apps.tune.scoring import By, Score
from streamgp.apps.tune.search import (
    N_REPLAYED,
    Replayed,
    Trial,
    best_of,
    candidates,
    edges,
    finalists,
    ranking,
)
from streamgp.config.load import check_config
from streamgp.config.settings import Config, Learner
from streamgp.interactive.messages import EventKey
from streamgp.query import NeverAsk


def test_the_configuration_itself_is_tried_first_and_only_once() -> None:
    tried = candidates(Config(), 2.0)
    assert (tried[0].length_scale, tried[0].noise_variance) == (None, 0.5)
    assert len(tried) == 25
    scales = {learner.length_scale for learner in tried}
    assert scales == {0.5, 1.0, None, 4.0, 8.0}


def test_values_lie_around_the_length_scale_of_the_configuration() -> None:
    config = Config(learner=Learner(length_scale=3.0, max_points="all"))
    tried = candidates(config, 2.0)
    assert {learner.length_scale for learner in tried} == {0.75, 1.5, 3.0, 6.0, 12.0}
    assert {learner.max_points for learner in tried} == {"all"}


def test_the_best_at_an_edge_of_what_was_tried_is_said() -> None:
    tried = candidates(Config(), 2.0)
    told = {(each.length_scale, each.noise_variance): edges(each, tried) for each in tried}
    assert sum(map(bool, told.values())) == 25 - 9
    assert told[None, 0.5] == told[4.0, 0.1] == []
    assert told[8.0, 0.02] == [
        "its length scale is the largest tried; a larger one may be better: --length-scales",
        "its noise variance is the smallest tried; a smaller one may be better: --noise-variances",
    ]
    one = candidates(Config(), 2.0, length_scales=[1.0], noise_variances=[0.1])
    assert [edges(each, one) for each in one] == [[], []]  # two values are no range


def test_of_a_kernel_with_length_scales_of_its_own_only_the_noise_is_tried() -> None:
    learner = Learner(options={"kernel": "streamgp.kernels:Matern32"})
    config = Config(learner=learner)
    tried = candidates(config, 2.0)
    assert [each.noise_variance for each in tried] == [0.5, 0.02, 0.1, 0.25, 1.0]
    for each in tried:
        assert each.length_scale is None
        check_config(replace_struct(config, learner=each), source="best.toml")
    with pytest.raises(click.UsageError, match="--length-scales and learner"):
        candidates(config, 2.0, length_scales=[1.0])


def test_too_many_pairs_are_refused() -> None:
    many = [float(i) for i in range(1, 22)]
    with pytest.raises(click.UsageError, match=f"441 pairs, expected {MOST} at most"):
        candidates(Config(), 2.0, length_scales=many, noise_variances=many)


def trial(n_right: int, n_asked: int, loss: float, n: int = 100) -> Trial:
    score = Score(
        query=NeverAsk(),
        seed=1,
        n=n,
        n_right=n_right,
        n_asked=n_asked,
        loss=loss,
        squared_loss=2.0 * loss * loss / n,
    )
    return Trial(learner=Learner(), score=score, is_given=False)


REFUSED = Trial(learner=Learner(), score=None, is_given=True)


@pytest.mark.parametrize(
    ("by", "expected"), [("accuracy", [2, 1, 0, 3]), ("log-loss", [0, 2, 1, 3])]
)
def test_ranking_is_by_one_measure_and_then_the_other(by: By, expected: list[int]) -> None:
    trials = [trial(80, 5, 10.0), trial(90, 5, 30.0), trial(90, 5, 20.0), REFUSED]
    assert [trials.index(each) for each in ranking(trials, by)] == expected


def test_finalists_are_within_one_standard_error_of_the_first() -> None:
    # Of 90 %: sqrt(.9 * .1 / 100) = 3 points.
    first, near, far = trial(90, 40, 20.0), trial(87, 10, 20.0), trial(86, 0, 20.0)
    assert finalists([first, near, far], "accuracy") == [first, near]
    # 20 / 100 nats, with a standard deviation of as much: .02 nats.
    first, near, far = trial(90, 40, 20.0), trial(90, 10, 21.9), trial(90, 0, 22.1)
    assert finalists([first, near, far], "log-loss") == [first, near]


def test_the_configuration_is_replayed_first_whatever_its_rank() -> None:
    ranked = [trial(90, 0, 20.0) for _ in range(N_REPLAYED + 1)]
    configured = replace(trial(50, 0, 20.0), is_given=True)
    assert finalists([*ranked, configured], "accuracy") == [configured, *ranked[:-1]]


def test_there_is_no_finalist_of_those_that_could_not_learn() -> None:
    assert finalists([REFUSED], "accuracy") == []
    able = trial(90, 10, 20.0)
    assert finalists([able, REFUSED], "accuracy") == [able]


def named(hits: Iterable[float]) -> dict[EventKey, float]:
    return {(None, str(i)): hit for i, hit in enumerate(hits)}


def with_questions(
    accuracy: float, n_questions: float, *, error: float = 0.0, is_given: bool = False
) -> Trial:
    """Return a trial whose difference from one without an `error` has this standard error."""
    # Ten blocks above the mean and ten below, all by the same: sqrt(20 / 19) / sqrt(20).
    block = math.sqrt(19) * error
    replayed = Replayed(
        n_events=100,
        accuracy=accuracy,
        hits=named(accuracy + (block if i // 5 % 2 else -block) for i in range(100)),
        n_questions=n_questions,
        n_labels=n_questions,
    )
    return Trial(learner=Learner(), score=None, is_given=is_given, replayed=replayed)


def test_a_question_costs_as_much_as_a_wrong_prediction() -> None:
    # .86 against .87 and .84
    assert best_of([tried := with_questions(0.9, 4), with_questions(0.92, 5)]) is not tried
    assert best_of([tried := with_questions(0.9, 4), with_questions(0.92, 8)]) is tried


def test_what_asks_nothing_and_errs_is_not_proposed() -> None:
    configured = with_questions(0.9, 40, is_given=True)
    far, near = (with_questions(accuracy, 0, error=0.03) for accuracy in (0.86, 0.88))
    assert best_of([configured, far]) is configured
    assert best_of([configured, near]) is near
    assert best_of([configured, with_questions(0.88, 0, error=0.01)]) is configured
    # Without a configuration that could learn there is nothing to be worse than.
    assert best_of([replace(configured, is_given=False), far]) is far


def test_the_error_counts_events_that_depend_on_their_neighbours() -> None:
    """Two learners, each of which is right or wrong in runs of 10 events in the mean."""
    rng, n, p, ends = np.random.default_rng(1), 3000, 0.8, 0.1

    def replayed() -> Replayed:
        starts = np.where(rng.random(n) < ends, range(n), 0)
        hits = (rng.random(n) < p).astype(float)[np.maximum.accumulate(starts)].tolist()
        return Replayed(
            n_events=n, accuracy=fmean(hits), hits=named(hits), n_questions=0, n_labels=0
        )

    stated = fmean(replayed().error_of_difference(replayed()) for _ in range(100))
    # Events k apart correlate by (1 - ends) ** k. Neighbouring blocks do, too, a little.
    n_in_effect = n / (2.0 / ends - 1.0)
    assert stated == pytest.approx(math.sqrt(2.0 * p * (1.0 - p) / n_in_effect), rel=0.08)


def test_of_too_few_events_no_error_is_known() -> None:
    of_one = Replayed(n_events=1, accuracy=1.0, hits=named([1.0]), n_questions=1, n_labels=1)
    assert of_one.error_of_difference(of_one) == 0.0


def test_an_event_that_only_one_learner_predicts_shifts_no_others() -> None:
    all_of_them = with_questions(0.9, 40, error=0.03).replayed
    assert all_of_them is not None
    refusing = replace(all_of_them, hits=dict([*all_of_them.hits.items()][1:]))
    assert refusing.error_of_difference(all_of_them) == 0.0
    assert all_of_them.error_of_difference(refusing) == 0.0


results = st.tuples(st.floats(0.0, 1.0), st.integers(0, 100), st.floats(0.0, 0.1))


@given(results, st.lists(results, max_size=5))
def test_the_best_is_worth_as_much_and_not_worse_than_the_configuration(
    configured: tuple[float, int, float], others: list[tuple[float, int, float]]
) -> None:
    def replayed(result: tuple[float, int, float], *, is_given: bool = False) -> Trial:
        accuracy, n_questions, error = result
        return with_questions(accuracy, n_questions, error=error, is_given=is_given)

    first = replayed(configured, is_given=True)
    best = best_of([first, *map(replayed, others)])
    assert first.replayed is not None
    assert best.replayed is not None
    assert best.replayed.worth >= first.replayed.worth
    error = first.replayed.error_of_difference(best.replayed)
    assert best.replayed.accuracy >= first.replayed.accuracy - error
    if best.replayed.worth == first.replayed.worth:
        assert best is first
