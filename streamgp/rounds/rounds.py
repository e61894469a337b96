"""Rounds of active learning from a pool, one after the other."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Sequence

from streamgp.arguments import check_whole
from streamgp.base import Preset
from streamgp.draws import check_seed
from streamgp.query.equal_error import EqualErrorRounds
from streamgp.query.rules import AskRule
from streamgp.rounds.game import Game, Learner, Pair, Round
from streamgp.rounds.plan import plan_of


def active_learning_rounds(
    model: Learner,
    pool: Sequence[Pair],
    test: Sequence[Pair],
    rule: AskRule | None = None,
    *,
    n_rounds: int = 10,
    preset: Preset = "default",
    initial: float | None = None,
    per_round: float | Sequence[int] | None = None,
    replay: bool | None = None,
    uncertainty: str = "bvsb",
    seed: int | None = None,
) -> list[Round]:
    """Play rounds of active learning with a pool.

    The model learns a random share of the pool. In each round others are drawn from what has no
    label yet, the model predicts them, the rule decides about which of them to ask, and the model
    learns their labels. What was not asked about goes back to the pool.

    Parameters
    ----------
    model
        A classifier, which learns in place.
    pool
        Events that may be asked about, with their labels.
    test
        Events that the model is judged by, with their labels.
    rule
        Decides about what to ask; a rule that learns is a template. None stands for
        `EqualErrorRounds`, which asks about all drawn in the first round, and later below a
        threshold of confidence that adapts. For passive learning take `AlwaysAsk()`, with numbers
        for `per_round` if it is to be compared at equal labels.
    n_rounds
        Number of rounds after the initial set; there are fewer if the pool is used up.
    preset
        `default`: 2 % of the pool at first, 14 % drawn in each round, all labels replayed. `paper`:
        6 %, 14 %, every label learned once.
    initial, per_round, replay
        What is to differ from the preset: see `Plan`.
    uncertainty
        Measure of over- and underconfidence: `bvsb` or `entropy`.
    seed
        Seed of all that is drawn. None draws one.

    Returns
    -------
    The initial set as round 0, and the rounds.

    Raises
    ------
    TypeError
        If a share or the number of rounds is no number, or the seed no whole one.
    ValueError
        If there is no such preset or uncertainty, a share is not between 0 and 1, the number of
        rounds is not whole or negative, there are fewer numbers than rounds, or pool or test set
        are empty.

    Examples
    --------
    >>> from river.naive_bayes import GaussianNB
    >>> from streamgp.datasets import WiFiRooms
    >>> rooms = list(WiFiRooms())
    >>> rounds = active_learning_rounds(GaussianNB(), rooms[::4], rooms[1::4], n_rounds=3, seed=1)
    >>> [(r.n_asked, r.n_labels, round(r.error, 3)) for r in rounds]
    [(0, 10, 0.462), (70, 80, 0.02), (38, 118, 0.016), (30, 148, 0.016)]

    References
    ----------
    [^1]: Mund, D., Triebel, R. and Cremers, D., 2015. Active online confidence boosting for
        efficient object classification. ICRA, Sec. II-A.

    """
    check_seed(seed)
    n_rounds = check_whole("n_rounds", n_rounds, 0)
    plan = plan_of(preset, initial=initial, per_round=per_round, replay=replay)
    if not pool or not test:
        raise ValueError(f"pool and test must not be empty, got {len(pool)} and {len(test)} events")
    if isinstance(plan.per_round, Sequence) and len(plan.per_round) < n_rounds:
        raise ValueError(
            f"per_round must have a number for each of {n_rounds} rounds, got {plan.per_round!r}"
        )
    game = Game(model, pool, test, uncertainty, secrets.randbits(32) if seed is None else seed)
    rule = EqualErrorRounds(uncertainty) if rule is None else copy.deepcopy(rule)
    given = game.drawn(0, round(plan.initial * len(pool)))
    game.learn(0, given, replay=False)
    rounds = [game.judged(0, n_drawn=len(given), labelled=given, threshold=None)]
    for number in range(1, n_rounds + 1):
        if game.is_used_up:
            break
        drawn = game.drawn(number, plan.n_drawn(number, len(pool)))
        threshold = getattr(rule, "threshold", None)
        asked = game.asked(number, drawn, rule)
        game.learn(number, asked, replay=plan.replay)
        rounds.append(game.judged(number, n_drawn=len(drawn), labelled=asked, threshold=threshold))
    return rounds
