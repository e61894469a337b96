"""Errors of the page as clients see them."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from connectors.annotation.own_answers import CannotUndoError
from connectors.annotation.replies import BadReplyError, CardGoneError, DifferentBodyError
from connectors.storage.snapshots import StateError
from streamgp.apps.page.access import Refused
from streamgp.apps.page.live import NotReadyError, NotSavedError


def gone() -> Refused:
    """Return the refusal of a card that can no longer be answered, or may not be seen."""
    return Refused(409, "card_gone", "this question waits for no answer any more", "the next card")


def other_key() -> Refused:
    """Return the refusal of what belongs to another key than that of the invite."""
    return Refused(403, "other_key", "this invite is for another key", "the key in /api/me")


async def refuse(request: Request, error: Exception) -> Response:
    """Answer with what an error means to a client."""
    refused = error if isinstance(error, Refused) else _meaning(error)
    request.scope["streamgp.error"] = refused.error
    return refused.response()


def _meaning(error: Exception) -> Refused:
    match error:
        case HTTPException(status_code=404):
            return Refused(404, "not_found", "there is nothing here", "/api/openapi.json tells")
        case HTTPException():
            return Refused(
                error.status_code, "http", "this cannot be done here", "/api/openapi.json tells"
            )
        case CardGoneError():
            return gone()
        case DifferentBodyError():
            return Refused(
                409,
                "different_body",
                "another answer came under this answer_id",
                "an answer_id of its own for each answer",
            )
        case BadReplyError():
            return Refused(400, "bad_reply", error.what, error.expected)
        case CannotUndoError():
            return Refused(409, "cannot_undo", str(error), "an answer that still stands")
        case NotReadyError():
            return Refused(
                503,
                "reading",
                "the server has just started and reads the topics",
                "the same request again, soon",
                retry_after_s=1.0,
            )
        case NotSavedError():
            return Refused(
                503,
                "no_broker",
                "the broker has not confirmed the answer",
                "the same request again, soon; it counts once",
                retry_after_s=2.0,
            )
        case _:  # StateError
            return Refused(503, "no_disk", "preferences cannot be kept", "tell who runs this page")


ERRORS: tuple[type[Exception], ...] = (
    CardGoneError,
    DifferentBodyError,
    BadReplyError,
    CannotUndoError,
    NotReadyError,
    NotSavedError,
    StateError,
)
"""What the parts below the routes raise, and `refuse` translates."""
