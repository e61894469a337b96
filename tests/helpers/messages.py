"""Messages for tests; fields that a test does not name have arbitrary valid values."""

from __future__ import annotations

from typing import Any

from streamgp.base import Decision
from streamgp.interactive import Answer, Challenge, Event, LabelRequest, Prediction


def event(event_id: str = "e", at: float = 0.0, **fields: Any) -> Event:
    return Event(**{"event_id": event_id, "x": {"f": 1.0}, "occurred_at": at, **fields})


def answer(y: Any = "a", at: float = 1.0, **fields: Any) -> Answer:
    """Return an answer to no request; one without a label declines."""
    values = {"answer_id": "a1", "event_id": "e", "declined": y is None, "answered_at": at}
    return Answer(**{"y": y, **values, **fields})


def answer_to(request: LabelRequest | Challenge, y: Any, at: float = 1.0, **fields: Any) -> Answer:
    about = {name: getattr(request, name) for name in ("request_id", "event_id", "key")}
    return answer(y, at, **{**about, **fields})


def label_request(event_id: str = "e1", at: float = 0.0, **fields: Any) -> LabelRequest:
    return LabelRequest(**{**_question(event_id, at), "request_id": f"{event_id}/label", **fields})


def challenge(event_id: str = "e1", at: float = 0.0, **fields: Any) -> Challenge:
    doubt = {"given": "den", "suggested": "hall", "probability_wrong": 0.86, "score": 0.86}
    kind = {"request_id": f"{event_id}/challenge/1", "reason": "SkepticalChallenge"}
    return Challenge(**{**_question(event_id, at), **kind, **doubt, **fields})


def prediction(event_id: str = "e", y: Any = "a", at: float = 0.0, **fields: Any) -> Prediction:
    decision = Decision.of(0.0, 0.1, "SkepticalAsk")
    values = {"proba": {}, "decision": decision, "n_learned": 0, **fields}
    return Prediction(event_id=event_id, y=y, at=at, **values)


def _question(event_id: str, at: float) -> dict[str, Any]:
    return {
        "event_id": event_id,
        "x": {"light": 0.5},
        "reason": "SkepticalAsk",
        "score": 0.32,
        "threshold": 0.1,
        "requested_at": at,
    }
