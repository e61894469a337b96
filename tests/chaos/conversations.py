"""Results that must follow from the answers about one event, derived from the topics alone.

The conversation is held again by an independent implementation of the table at the head of
`streamgp/interactive/loop.py`. What the table leaves to the learner and to the clock (whether a
label was contested, whether a question expired) is looked up in the topic of requests; everything
else follows from the order of the answers.

"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Verdict: TypeAlias = Literal["accepted", "repeated", "refused"]


@dataclass(slots=True)
class Asked:
    """Contents of the topic of requests about one event.

    Parameters
    ----------
    expires_at
        Expiry time of each question.
    expired, cancelled
        How often each question ended in this way.
    n_twice
        Questions that were asked twice.
    asked_at, expired_at
        When each question, and its expiry, was written.
    contested
        The label that each challenge doubts, and the time of the input in which it was given.

    """

    expires_at: dict[str, float | None] = field(default_factory=dict)
    expired: Counter[str] = field(default_factory=Counter)
    cancelled: Counter[str] = field(default_factory=Counter)
    n_twice: int = 0
    asked_at: dict[str, float] = field(default_factory=dict)
    expired_at: dict[str, float] = field(default_factory=dict)
    contested: dict[str, tuple[Any, float]] = field(default_factory=dict)

    def ask(
        self,
        request_id: str,
        expires_at: float | None,
        at: float = 0.0,
        given: Any = None,
        given_at: float = 0.0,
    ) -> None:
        """Record a question."""
        self.n_twice += request_id in self.expires_at
        self.expires_at[request_id] = expires_at
        self.asked_at[request_id] = at
        self.contested[request_id] = given, given_at

    def expire(self, request_id: str, at: float) -> None:
        """Record that a question has expired."""
        self.expired[request_id] += 1
        self.expired_at[request_id] = at


class Talk:
    """The conversation about one event.

    Parameters
    ----------
    event_id
        The event.
    y
        The label that came with it.
    asked
        Contents of the topic of requests about it.
    at
        When it occurred.
    unlearnable
        Ids of answers whose label the learner refused when the challenge of it expired; the event's
        id for the label that came with it, whenever that was refused.

    Attributes
    ----------
    n_lines
        Number of lines of the consensus log that must follow from it.
    ended
        How often each question was ended by an answer or a cancellation.
    cancelled
        How often by a cancellation.

    Examples
    --------
    >>> asked = Asked()
    >>> asked.ask("e1/label", 60.0)
    >>> talk = Talk("e1", None, asked)
    >>> answer = {"answer_id": "a1", "request_id": "e1/label", "y": "hall"}
    >>> talk.answer(answer), talk.answer(answer), talk.answer({**answer, "answer_id": "a2"})
    ('accepted', 'repeated', 'refused')
    >>> talk.n_lines, talk.state
    (1, 'learned')

    """

    # state       as in the table
    # _word       the label that stands
    # _standing   id of the answer that may be superseded
    # _by         its annotator
    # _challenges number of challenges so far
    # _accepted   ids of answers
    def __init__(
        self,
        event_id: str,
        y: Any,
        asked: Asked,
        at: float = 0.0,
        unlearnable: Container[str] = (),
    ) -> None:
        self.n_lines = 0
        self.ended: Counter[str] = Counter()
        self.cancelled: Counter[str] = Counter()
        self.state = "seen"
        self._asked = asked
        self._unlearnable = unlearnable
        self._event_id = event_id
        self._label = f"{event_id}/label"
        self._word: Any = None
        self._standing: str | None = None
        self._by: str | None = None
        self._challenges = 0
        self._accepted: set[str] = set()
        if y is not None:
            self._contest({"y": y, "answer_id": event_id, "answered_at": at})
        elif self._label in asked.expires_at:
            self.state = "expired" if asked.expired[self._label] else "asked"

    def answer(self, answer: dict[str, Any]) -> Verdict:
        """Add the next answer about the event, as found in the topic."""
        answer_id = answer["answer_id"]
        if answer_id in self._accepted:
            return "repeated"
        request_id, supersedes = answer.get("request_id"), answer.get("supersedes")
        if request_id is not None and not self._was_made(request_id):
            return "refused"
        if supersedes is not None:
            taken = supersedes == self._standing and self._correct(answer)
        elif answer.get("declined"):
            taken = self._decline(request_id, answer_id)
        else:
            taken = self._take(request_id, answer)
        if taken:
            self._accepted.add(answer_id)
        return "accepted" if taken else "refused"

    def refuse(self, said: dict[str, Any]) -> None:
        """Add an answer or a cancellation from which the learner could learn nothing.

        It is a dead letter, but otherwise counts: it ends its question, and may be superseded. Only
        a label that is in the log stays as it was.
        """
        before = self.state, self._word, self._standing, self._by
        n_lines = self.n_lines
        if said["type"] == "label.cancel":
            self.cancel(said["request_id"])
        else:
            self.answer(said)
        if self.n_lines == n_lines:
            return
        self.n_lines = n_lines
        if before[0] in ("learned", "kept"):
            self.state, self._word, self._standing, self._by = before
        else:
            self._leave_unlearned()

    def cancel(self, request_id: str) -> Verdict:
        """Add the next cancellation."""
        if not self._was_made(request_id) or request_id != self._open:
            return "refused"
        self._end()
        self.cancelled[request_id] += 1
        if self.state == "challenged":
            self._learn("learned")
        else:
            self.state = "cancelled"
        return "accepted"

    @property
    def _challenge(self) -> str:
        return f"{self._event_id}/challenge/{self._challenges}"

    @property
    def _open(self) -> str | None:
        return {"asked": self._label, "challenged": self._challenge}.get(self.state)

    def _was_made(self, request_id: str) -> bool:
        if request_id == self._label:
            return request_id in self._asked.expires_at
        made = range(1, self._challenges + 1)
        return request_id in {f"{self._event_id}/challenge/{n}" for n in made}

    def _end(self) -> None:
        request_id = self._open
        if request_id is not None:
            self.ended[request_id] += 1

    def _learn(self, state: str) -> None:
        self.state = state
        self.n_lines += 1

    def _leave_unlearned(self) -> None:
        self.state, self._word = "declined", None

    def _contest(self, answer: dict[str, Any]) -> bool:
        """Add a first label, which is contested if the topic of requests has a challenge of it.

        A challenge that doubts another label, or one given at another time, is about a later one.
        """
        self._end()
        self._stand(answer)
        contested = f"{self._event_id}/challenge/{self._challenges + 1}"
        given = answer["y"], answer.get("answered_at", 0.0)
        is_unlearnable = answer["answer_id"] in self._unlearnable
        if self._asked.contested.get(contested) != given:
            if is_unlearnable:
                self._leave_unlearned()
            else:
                self._learn("learned")
            return True
        self._challenges += 1
        if self._asked.expired[contested] and is_unlearnable:
            self._leave_unlearned()
        elif self._asked.expired[contested]:
            self._learn("kept")
        else:
            self.state = "challenged"
        return True

    def _resolve(self, answer: dict[str, Any]) -> bool:
        self._end()
        self._stand(answer)
        self._learn("learned")
        return True

    def _revise(self, answer: dict[str, Any]) -> bool:
        is_new = answer["y"] != self._word or answer.get("annotator") not in (None, self._by)
        self._stand(answer)
        if is_new:
            self._learn("learned")
        else:
            self.state = "learned"
        return True

    def _stand(self, answer: dict[str, Any]) -> None:
        self._word, self._standing = answer["y"], answer["answer_id"]
        self._by = answer.get("annotator")

    def _take(self, request_id: str | None, answer: dict[str, Any]) -> bool:
        if self.state == "challenged" and request_id in (None, self._challenge):
            return self._resolve(answer)
        if self.state == "kept" and request_id == self._challenge:
            return self._revise(answer)
        names_label = request_id == self._label
        if self.state == "asked" or (
            names_label and self.state in ("expired", "cancelled", "withdrawn")
        ):
            return self._contest(answer)
        if request_id is not None or self._word is not None:
            return False
        return self._contest(answer)

    def _decline(self, request_id: str | None, answer_id: str) -> bool:
        if self.state in ("expired", "cancelled", "kept"):
            # The question had ended by then: there is nothing left to decline.
            last = self._challenge if self.state == "kept" else self._label
            if request_id not in (None, last):
                return False
            if self.state != "kept":
                self._standing = answer_id
            return True
        if self._open is None or request_id not in (None, self._open):
            return False
        self._end()
        if self.state == "challenged":
            self._learn("learned")
        else:
            self.state, self._standing = "declined", answer_id
        return True

    def _correct(self, answer: dict[str, Any]) -> bool:
        answer_id, is_taken_back = answer["answer_id"], bool(answer.get("declined"))
        if self.state in ("learned", "kept"):
            if not is_taken_back:
                return self._revise(answer)
            self._learn("withdrawn")
        elif not is_taken_back:
            if self.state == "challenged":
                return self._resolve(answer)
            return self._contest(answer)
        else:
            self._end()
            if self.state not in ("withdrawn", "expired", "cancelled"):
                self.state = "declined"
        self._word, self._standing = None, answer_id
        return True
