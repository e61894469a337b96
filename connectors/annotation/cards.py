"""Cards: questions with everything shown beside them, as plain JSON values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias
from urllib.parse import quote, unquote

from connectors.annotation import explain
from connectors.annotation.explain import Averages, Shares, Why
from connectors.annotation.open_questions import Question
from connectors.annotation.timeline import Moment, Timeline
from streamgp.base import Label, QuestionsLeft
from streamgp.interactive.messages import Challenge, Excerpt, Request

CardKind: TypeAlias = Literal["label", "challenge", "number"]
YOU = "you"
"""Value of `Card.given_by` for a label that the card's annotator gave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A question as an annotator sees it; times are POSIX seconds.

    Parameters
    ----------
    id
        The id of the request, preceded by the quoted key and a slash if workers are keyed.
    kind
        `label` (which is it?), `number` (how much is it?) or `challenge` (was it that?).
    of_numbers
        Whether the answer is a number; that of a challenge may be one too.
    asked_at, occurred_at, expires_at
        When the question was asked, when the event occurred, and until when an answer counts (None:
        as long as the event is remembered).
    labels
        The labels to choose from, in an order that probabilities never change.
    labels_elsewhere
        Labels that only other keys have, likewise; none if the annotator sees only one key.
    given, given_at, given_by
        Of a challenge: the doubted label, when it was given, and by whom: `you`, a name, or None if
        it is not known.
    suggested, suggested_share
        The learner's prediction, and its probability, between 0 and 1; None if not known. For a
        label request it must not be shown unless the annotator asks for it. For a challenge the
        share is the probability that `given` is wrong.
    std
        Standard deviation of an observation around `suggested`, if that is a number.
    why
        Reason for the question: `code`, parameters, and the English `text`.
    expert
        The `reason`, `score` and `threshold` of the rule.
    x
        Features, those that best distinguish classes first: `name`, `value`, `mean_by_class`.
    excerpt
        Raw values of the event by channel, None if it has none.
    track
        Where the event took place: `[latitude, longitude]` pairs in degrees, None if not known.
    examples
        Of a challenge: the closest earlier examples, at most three, with the features that differ,
        and the `answer_id` of the annotator's own answer, None if it cannot be changed.
    previous, following
        The labelled events of the same key just before and after: `event_id`, `label`, `at`.
    lease_until
        Until when it is leased to this annotator, None if it is not.
    supersedes
        Whether the annotator has taken back an answer to it.
    unit, range
        Of a number: its unit, and the lowest and highest value, None if not known.
    budget_left
        How many questions may still be asked about this key: `left`, `of`, `span_s` (within this
        many seconds; None: ever). None if no budget tells.

    """

    id: str
    kind: CardKind
    of_numbers: bool
    event_id: str
    key: str | None
    asked_at: float
    occurred_at: float
    expires_at: float | None
    labels: tuple[Label, ...]
    labels_elsewhere: tuple[Label, ...]
    given: Label | None
    given_at: float | None
    given_by: str | None
    suggested: Label | None
    suggested_share: float | None
    std: float | None
    why: Why
    expert: Mapping[str, Any]
    x: Sequence[Mapping[str, Any]]
    excerpt: Excerpt | None
    track: Sequence[Sequence[float]] | None
    examples: Sequence[Mapping[str, Any]]
    previous: Mapping[str, Any] | None
    following: Mapping[str, Any] | None
    lease_until: float | None
    supersedes: bool
    unit: str | None
    range: tuple[float, float] | None
    budget_left: QuestionsLeft | None


def as_json(card: Card) -> dict[str, Any]:
    """Return a card as a JSON object, with its fields by their names."""
    found = {field.name: getattr(card, field.name) for field in fields(card)}
    return {**found, "budget_left": left_as_json(card.budget_left)}


def left_as_json(left: QuestionsLeft | None) -> dict[str, Any] | None:
    """Return the rest of a budget as a JSON object."""
    return None if left is None else left._asdict()


def card_id(key: str | None, request_id: str, *, keyed: bool) -> str:
    """Return the id of the card of a request.

    Examples
    --------
    >>> card_id("phone/3", "e1/label", keyed=True), card_id(None, "e1/label", keyed=False)
    ('phone%2F3/e1/label', 'e1/label')

    """
    return f"{quote(key or '', safe='')}/{request_id}" if keyed else request_id


def request_of(card_id: str, *, keyed: bool) -> tuple[str | None, str]:
    """Return the key and the request id of a card; the inverse of `card_id`.

    Examples
    --------
    >>> request_of("phone%2F3/e1/label", keyed=True)
    ('phone/3', 'e1/label')

    """
    if not keyed:
        return None, card_id
    key, _, request_id = card_id.partition("/")
    return unquote(key) or None, request_id


@dataclass(frozen=True, slots=True, kw_only=True)
class CardMaker:
    """Builds the cards of questions from everything known.

    Parameters
    ----------
    keyed
        Whether the workers have a learner for each key.
    of_numbers
        Whether the answers are numbers instead of names of classes.
    unit, value_range
        Of a number: its unit, and the lowest and highest value; None if not known.
    averages
        The usual values of each class.
    timeline
        The labels of the events of each key.

    """

    keyed: bool
    of_numbers: bool
    averages: Averages
    timeline: Timeline
    unit: str | None = None
    value_range: tuple[float, float] | None = None

    def card(
        self,
        question: Question,
        annotator: str,
        *,
        labels: Sequence[Label],
        labels_elsewhere: Sequence[Label],
        shares: Shares | None,
        budget_left: QuestionsLeft | None,
        lease_until: float | None,
        changeable: Callable[[str], str | None],
    ) -> Card:
        """Return the card of a question.

        Parameters
        ----------
        annotator
            The annotator who sees it.
        labels, labels_elsewhere
            The labels to choose from, of its key and of other keys.
        shares
            The prediction of its event, None if not known.
        budget_left
            How many questions may still be asked about its key, None if not known.
        lease_until
            Until when it is leased to them, None if it is not.
        changeable
            Returns the id of their answer about an event of the same key, None if there is none
            that can be changed.

        """
        request = question.request
        challenge = request if isinstance(request, Challenge) else None
        previous, following = self.timeline.neighbours(
            request.key, request.event_id, question.occurred_at
        )
        suggested, share, std = _suggestion(request, shares)
        return Card(
            id=card_id(request.key, request.request_id, keyed=self.keyed),
            kind="challenge" if challenge else "number" if self.of_numbers else "label",
            of_numbers=self.of_numbers,
            event_id=request.event_id,
            key=request.key,
            asked_at=request.requested_at,
            occurred_at=question.occurred_at,
            expires_at=request.expires_at,
            labels=tuple(labels),
            labels_elsewhere=tuple(labels_elsewhere),
            given=None if challenge is None else challenge.given,
            given_at=None if challenge is None else self.timeline.given_at(challenge),
            given_by=None if challenge is None else _given_by(challenge, annotator),
            suggested=suggested,
            suggested_share=share,
            std=std,
            why=explain.why(
                request, shares, is_new=self.averages.is_unlike_all(request.key, request.x)
            ),
            expert={
                "reason": request.reason,
                "score": request.score,
                "threshold": request.threshold,
            },
            x=explain.feature_rows(request, self.averages),
            excerpt=request.excerpt,
            track=explain.track(request.x, request.excerpt),
            examples=[] if challenge is None else self._examples(challenge, changeable),
            previous=_beside(previous),
            following=_beside(following),
            lease_until=lease_until,
            supersedes=question.supersedes is not None,
            unit=self.unit,
            range=self.value_range,
            budget_left=budget_left,
        )

    def _examples(
        self, challenge: Challenge, changeable: Callable[[str], str | None]
    ) -> list[dict[str, Any]]:
        found = explain.examples(challenge, self.averages)
        for one in found:
            event_id = one["event_id"]
            moment = None if event_id is None else self.timeline.find(challenge.key, event_id)
            one["when"] = None if moment is None else moment.occurred_at
            one["answer_id"] = None if event_id is None else changeable(event_id)
        return found


def _given_by(challenge: Challenge, annotator: str) -> str | None:
    return YOU if challenge.annotator == annotator else challenge.annotator


def _suggestion(
    request: Request, shares: Shares | None
) -> tuple[Label | None, float | None, float | None]:
    """Return the learner's prediction, its probability, and the deviation of a number."""
    if isinstance(request, Challenge):
        return request.suggested, explain.likely(request), request.std
    if shares is None or shares.y is None:
        return None, None, None
    return shares.y, dict(shares.ranked).get(shares.y), shares.std


def _beside(moment: Moment | None) -> dict[str, Any] | None:
    if moment is None:
        return None
    return {"event_id": moment.event_id, "label": moment.label, "at": moment.occurred_at}
