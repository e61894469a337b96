"""Rest of a question budget, according to the topics.

Copies of the workers' budgets count each written label request once, and are told which requests
ended without an answer. If the topics no longer hold enough of the past, or many other keys were
asked about since, the rest is overestimated.

"""

from __future__ import annotations

import copy
from weakref import ref

from connectors.annotation.open_questions import RequestKey
from streamgp.base import CountingBudget, Decision, QuestionsLeft
from streamgp.common.budget_account import BudgetAccount
from streamgp.common.latest import Latest, LatestByKey
from streamgp.interactive.messages import (
    Answer,
    Cancel,
    Expired,
    Input,
    LabelRequest,
    Message,
    event_time,
)

N_REQUESTS = 100_000
"""Number of requests remembered as counted or ended, so that they count once."""
N_KEYS = 10_000
"""Number of keys whose budgets are counted, those asked about last."""
_ASKED_BACK = "ReservoirAsk"  # such questions have their own budget
_WISH = Decision(ask=True, score=1.0, threshold=0.0, criterion="LabelRequest")


class _Counted:
    def __init__(self, budget: CountingBudget) -> None:
        self.budget = copy.deepcopy(budget)
        self.account = BudgetAccount(self.budget)


class QuestionBudget:
    """The number of questions that annotators can still be asked.

    Parameters
    ----------
    of_key
        The budget of each key, or of all events if workers are not keyed; None if its rest cannot
        be computed.
    total
        The budget of all keys together, likewise.

    Examples
    --------
    >>> from streamgp.budgets import AtMost
    >>> budget = QuestionBudget(of_key=AtMost(3))
    >>> for event_id in ("e1", "e2"):
    ...     budget.take(
    ...         LabelRequest(
    ...             request_id=f"{event_id}/label", event_id=event_id, x={}, reason="", score=1.0,
    ...             threshold=0.0, requested_at=100.0,
    ...         )
    ...     )
    >>> budget.left(None, now=101.0)
    QuestionsLeft(left=1, of=3, span_s=None)

    """

    # _counted  the budget of each key with a question
    # _asked    when each request was made, as counted by the budgets, if these are still there
    # _ended    for each ended request, whether it was answered; the end may be read first
    def __init__(
        self, of_key: CountingBudget | None = None, total: CountingBudget | None = None
    ) -> None:
        self._of_key = of_key
        self._total = None if total is None else _Counted(total)
        self._counted: Latest[str | None, _Counted] = Latest(N_KEYS)
        self._asked: LatestByKey[str | None, tuple[float, tuple[ref[_Counted], ...]]] = LatestByKey(
            N_REQUESTS
        )
        self._ended: LatestByKey[str | None, bool] = LatestByKey(N_REQUESTS)

    def take(self, message: Input | Message) -> None:
        """Process a message from the topics; messages that cost no question change nothing."""
        if self._of_key is None and self._total is None:
            return
        if isinstance(message, LabelRequest):
            if not message.is_second:  # which need no budget
                self._ask(message)
        elif isinstance(message, Expired | Cancel):
            self._end(message.key, message.request_id, is_answered=False)
        elif isinstance(message, Answer) and message.supersedes is None:
            self._end(message.key, message.request_id, is_answered=not message.declined)

    def left(self, key: str | None, now: float) -> QuestionsLeft | None:
        """Return how many questions are left for a key; None if that is not known."""
        counted = self._counted.get(key)
        of_key = self._of_key if counted is None else counted.budget
        budgets = (of_key, None if self._total is None else self._total.budget)
        found = [left for one in budgets if one is not None if (left := one.left(now)) is not None]
        return min(found, key=lambda each: each.left, default=None)

    def forget(self, key: str | None) -> None:
        """Forget a key, whose budget starts over; its share of the total budget remains spent."""
        self._counted.pop(key, None)
        self._asked.forget(key)
        self._ended.forget(key)

    def _ask(self, request: LabelRequest) -> None:
        name = (request.key, request.request_id)
        if name in self._asked:
            return
        at = request.requested_at
        paying = []
        if self._of_key is not None and request.reason != _ASKED_BACK:
            at = event_time(request)
            counted = self._counted.get(request.key) or _Counted(self._of_key)
            self._counted.put(request.key, counted)
            paying.append(counted)
        if self._total is not None:
            paying.append(self._total)
        for counted in paying:
            counted.account.note(_WISH, asked=True, now=at)
        self._asked.put(name, (at, tuple(map(ref, paying))))
        if self._ended.get(name) is False:
            self._give_back(name)

    def _end(self, key: str | None, request_id: str | None, *, is_answered: bool) -> None:
        if request_id is None or (key, request_id) in self._ended:
            return
        self._ended.put((key, request_id), is_answered)
        if not is_answered and (key, request_id) in self._asked:
            self._give_back((key, request_id))

    def _give_back(self, name: RequestKey) -> None:
        at, paying = self._asked[name]
        for counted in filter(None, (one() for one in paying)):
            counted.account.refund(at, asked_at=at)
