"""Bodies of requests: what they may hold, and how they are read."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta
from starlette.requests import ClientDisconnect, Request

from streamgp.apps.page.access import MAX_BODY, Refused, too_large

BODY_S = 10.0
"""How long a body may take to come."""
_MAX_NAME = 10_000

Id = Annotated[str, Meta(min_length=1, max_length=_MAX_NAME)]
AnswerId = Annotated[str, Meta(min_length=1, max_length=200)]
PlainLabel = bool | int | float | Annotated[str, Meta(min_length=1, max_length=_MAX_NAME)]
Finite = Annotated[float, Meta(gt=-1e300, lt=1e300)]
Body = TypeVar("Body", bound=msgspec.Struct)


class _Said(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What stands beside an answer; see `connectors.annotation.replies.Reply`."""

    label: PlainLabel | None = None
    number: Finite | None = None
    std: Annotated[float, Meta(gt=0, lt=1e300)] | None = None
    confidence: Annotated[float, Meta(ge=1, le=5)] | None = None
    response_s: Annotated[float, Meta(ge=0, lt=1e9)] | None = None
    shown: Annotated[tuple[Annotated[str, Meta(max_length=100)], ...], Meta(max_length=20)] = ()
    flag: bool = False
    note: Annotated[str, Meta(max_length=2000)] | None = None
    why_not: Annotated[str, Meta(max_length=100)] | None = None


class AnswerBody(_Said, kw_only=True, forbid_unknown_fields=True):
    """Body of `POST /api/answers`; how sure it is from 1 (guessed) to 5 (certain)."""

    card: Id
    answer_id: AnswerId
    action: Literal["label", "number", "keep", "change", "decline"]


class ReviseBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of `POST /api/answers/{answer_id}/revise`; one of them."""

    label: PlainLabel | None = None
    number: Finite | None = None


class SkipBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of `POST /api/skip`."""

    card: Id


class RenameBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of `POST /api/labels/rename`."""

    key: Annotated[str, Meta(max_length=_MAX_NAME)] | None
    old: PlainLabel
    new: PlainLabel


class NoBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of a request that says everything in its path: an empty object."""


async def read_body(request: Request, kind: type[Body]) -> Body:
    """Return the body of a request.

    Raises
    ------
    Refused
        If it is too large, too slow, or something else than expected.

    """
    data = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                data += chunk
                if len(data) > MAX_BODY:
                    raise too_large()
    except TimeoutError:
        raise Refused(
            408, "too_slow", "the body did not come", f"all of it in {BODY_S:g} s"
        ) from None
    except ClientDisconnect:
        raise Refused(400, "cut_off", "the body has ended early", "all of it") from None
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise Refused(400, "bad_body", str(error), "a body as in /api/openapi.json") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Refused(400, "bad_json", "the body is no JSON", "a JSON object, in UTF-8") from None
