"""Active learning from a pool, by rounds: draw, ask, learn, test, and again.

The pool is fixed and its labels are known to whoever plays, not to the model, which learns those
that it asks for. For streams see `streamgp.evaluate`.

"""

from __future__ import annotations

from streamgp.rounds.game import Pair as Pair
from streamgp.rounds.game import Round
from streamgp.rounds.plan import PLANS, Plan
from streamgp.rounds.rounds import active_learning_rounds

__all__ = ["PLANS", "Plan", "Round", "active_learning_rounds"]
