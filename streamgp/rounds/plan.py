"""How a pool is played: what is known at first, how much is drawn, what is learned again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamgp.arguments import check_rate
from streamgp.base import Preset, check_preset


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a pool is played.

    Parameters
    ----------
    initial
        Share of the pool whose labels are given.
    per_round
        Share of the pool that is drawn in each round; or how many events, round by round.
    replay
        Whether all labels known are learned once more in each round, in random order, and not the
        new ones only.

    """

    initial: float
    per_round: float | Sequence[int]
    replay: bool

    def __post_init__(self) -> None:
        check_rate("initial", self.initial)
        if isinstance(self.per_round, float | int):
            check_rate("per_round", self.per_round)

    def n_drawn(self, number: int, n: int) -> int:
        """Return how many of a pool of `n` are drawn in a round, 1 the first."""
        if isinstance(self.per_round, float | int):
            return round(self.per_round * n)
        return self.per_round[number - 1]


PLANS: Mapping[Preset, Plan] = {
    "default": Plan(initial=0.02, per_round=0.14, replay=True),
    "paper": Plan(initial=0.06, per_round=0.14, replay=False),
}
"""How a pool is played, by preset; the paper gives no numbers, which were measured."""


def plan_of(
    preset: Preset,
    *,
    initial: float | None,
    per_round: float | Sequence[int] | None,
    replay: bool | None,
) -> Plan:
    """Return the plan of a preset, but for what is given.

    Raises
    ------
    ValueError
        If there is no such preset, or a share is not between 0 and 1.

    """
    check_preset(preset)
    plan = PLANS[preset]
    return Plan(
        initial=plan.initial if initial is None else initial,
        per_round=plan.per_round if per_round is None else per_round,
        replay=plan.replay if replay is None else replay,
    )
