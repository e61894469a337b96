"""`streamgp rebuild` where targets are numbers: errors in place of accuracies."""

from __future__ import annotations

import re

from streamgp import GPRegressor, SkepticalRegressor
from streamgp.apps.maintenance.rebuild import Comparison, Score, compare, comparison_text
from streamgp.interactive.messages import LabelledExample

LOG = [
    LabelledExample(
        event_id=f"e{n}",
        sequence=n,
        x={"a": float(n % 7)},
        y=3.0 * (n % 7) + 5.0,
        origin="asked",
        learned_at=float(n),
        probability_wrong=0.1,
    )
    for n in range(1, 40)
]


def learner(noise_variance: float) -> SkepticalRegressor:
    return SkepticalRegressor(GPRegressor(noise_variance=noise_variance), warm_up=0, seed=1)


def test_two_learners_of_numbers_are_compared_by_how_far_they_were_off() -> None:
    row = Comparison(name="ann")
    assert list(compare(row, LOG, learner(10.0), learner(0.01))) == list(range(1, 40))
    assert row.old.n_guessed == row.new.n_guessed == 38
    assert row.new.errors < 0.5 * row.old.errors
    text = comparison_text([row, row], numbers=True)
    assert "mean abs. error" in text
    assert "accuracy" not in text
    old, new = row.old.errors / 38, row.new.errors / 38
    assert re.search(rf"ann +39 +{old:.3g} +{new:.3g} +0 +0 ", text)
    assert re.search(rf"all 2 keys +78 +{old:.3g} +{new:.3g} ", text)


def test_the_last_row_counts_the_examples_of_all_keys_together() -> None:
    ann = Comparison(
        name="ann", n_examples=10, n_agreed=4,
        old=Score(n_hits=5, n_refused=1, seconds=0.4),
        new=Score(n_hits=8, n_refused=3, seconds=0.8),
    )  # fmt: skip
    bob = Comparison(
        name="bob", n_examples=30, n_agreed=26,
        old=Score(n_hits=25, n_refused=4, seconds=1.2),
        new=Score(n_hits=12, n_refused=0, seconds=1.6),
    )  # fmt: skip
    [*_, last, _] = comparison_text([ann, bob]).splitlines()
    assert last.split("  ")[0] == "all 2 keys"
    shares = ["40", "75.0", "%", "50.0", "%", "75.0", "%"]
    assert last.split()[3:] == [*shares, "5", "3", "40.00", "60.00"]
