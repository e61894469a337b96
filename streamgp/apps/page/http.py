"""HTTP requests and responses: bodies, error responses, their description, and the page's files."""

from __future__ import annotations

import asyncio
import gzip
from hashlib import sha256
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

import msgspec
from msgspec import Meta
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from connectors.annotation.own_answers import CannotUndoError
from connectors.annotation.replies import (
    BadReplyError,
    CardGoneError,
    DifferentBodyError,
    Finite,
    Id,
    PlainLabel,
)
from connectors.storage.snapshots import StateError
from streamgp.apps.page.access import MAX_BODY, MIN_ATTEMPT, Refused, no_disk, too_large
from streamgp.apps.page.live import NotReadyError, NotSavedError

BODY_S = 10.0
"""How long a body may take to arrive."""
Body = TypeVar("Body", bound=msgspec.Struct)


class ReviseBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of `POST /api/answers/{answer_id}/revise`; either a label or a number."""

    label: PlainLabel | None = None
    number: Finite | None = None


class OverruleBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of `POST /api/others/undo`: who gave the answer, and its id in `/api/others`."""

    annotator: Id
    answer_id: Id


class SkipBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of `POST /api/skip`."""

    card: Id


class RenameBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of `POST /api/labels/rename`."""

    key: Annotated[str, Meta(max_length=10_000)] | None
    old: PlainLabel
    new: PlainLabel


class JoinBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of `POST /join/{link}` by a program: with a random secret, it can repeat it."""

    attempt: Annotated[str, Meta(min_length=MIN_ATTEMPT, max_length=200)] | None = None


class NoBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of a request whose path says everything: an empty object."""


async def read_body(request: Request, kind: type[Body]) -> Body:
    """Return the body of a request.

    Raises
    ------
    Refused
        If it is too large, too slow, or not as expected.

    """
    data = await read_bytes(request)
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise Refused(400, "bad_body", str(error), "a body as in /api/openapi.json") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Refused(400, "bad_json", "the body is not JSON", "a JSON object, in UTF-8") from None


async def read_bytes(request: Request) -> bytearray:
    """Return the body of a request as it came; raise Refused if it is too large or too slow."""
    data = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                data += chunk
                if len(data) > MAX_BODY:
                    raise too_large()
    except TimeoutError:
        raise Refused(
            408, "too_slow", "the body did not arrive", f"all of it in {BODY_S:g} s"
        ) from None
    except ClientDisconnect:
        raise Refused(400, "cut_off", "the body ended early", "all of it") from None
    return data


# --- errors


def gone() -> Refused:
    """Return the refusal of a card that can no longer be answered, or may not be seen."""
    return Refused(
        409, "card_gone", "this question is no longer waiting for an answer", "the next card"
    )


def other_key() -> Refused:
    """Return the refusal of a request for another key than the invite's."""
    return Refused(403, "other_key", "this invite is for another key", "the key in /api/me")


def refused_by(error: Exception) -> Refused:
    """Return the refusal that an error means for the client."""
    match error:
        case Refused():
            return error
        case HTTPException(status_code=404):
            return Refused(404, "not_found", "there is nothing here", "see /api/openapi.json")
        case HTTPException():
            return Refused(
                error.status_code, "http", "this cannot be done here", "see /api/openapi.json"
            )
        case CardGoneError():
            return gone()
        case DifferentBodyError():
            return Refused(
                409,
                "different_body",
                "another answer has this answer_id",
                "an answer_id of its own for each answer",
            )
        case BadReplyError():
            return Refused(400, "bad_reply", error.what, error.expected, reason=error.code)
        case CannotUndoError():
            return Refused(
                409, "cannot_undo", str(error), "an answer that still stands", reason=error.code
            )
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
            return no_disk()


ERRORS: tuple[type[Exception], ...] = (
    CardGoneError,
    DifferentBodyError,
    BadReplyError,
    CannotUndoError,
    NotReadyError,
    NotSavedError,
    StateError,
)
"""Errors that the layers below the routes raise and `refused_by` translates."""


# --- the description of the interface


_REFUSALS = {"401": "NoToken", "403": "Forbidden", "429": "TooMany", "503": "TryAgain"}
_REFUSALS_OF_WRITING = {"400": "BadBody", "409": "Conflict", "413": "TooLarge", "415": "NoJson"}


def openapi() -> bytes:
    """Return the description of the interface, as JSON.

    `openapi.json` has what each request is for; here comes what all of them have in common: how the
    guard and `refused_by` answer, and the headers that requests need which change something.
    """
    document = msgspec.json.decode((Path(__file__).parent / "openapi.json").read_bytes())
    for path, operations in document["paths"].items():
        if not path.startswith("/api/") or path == "/api/openapi.json":
            continue
        for method, operation in operations.items():
            names = _REFUSALS if method == "get" else {**_REFUSALS, **_REFUSALS_OF_WRITING}
            for status, name in names.items():
                operation["responses"][status] = {"$ref": f"#/components/responses/{name}"}
            if method != "get":
                headers = [{"$ref": f"#/components/parameters/{h}"} for h in ("Header", "Origin")]
                operation["parameters"] = headers + operation.get("parameters", [])
    return msgspec.json.encode(document)


# --- files


_FILES = Path(__file__).parent / "static"


class StaticFile(NamedTuple):
    """A file of the page; its ETag is weak, as both encodings of the content share it."""

    content: bytes
    compressed: bytes
    media_type: str
    etag: str


def static_files() -> dict[str, StaticFile]:
    """Return the files of the page by name.

    They are read and compressed once, so that no request can name any other file, nor costs a
    compression. Responses of the API are not compressed: with secrets and labels of annotators in
    one response, their lengths would tell something about the secrets (BREACH).
    """
    files = {}
    for path in sorted(_FILES.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            content = path.read_bytes()
            files[path.relative_to(_FILES).as_posix()] = StaticFile(
                content=content,
                compressed=gzip.compress(content, mtime=0),
                media_type=_KINDS[path.suffix],
                etag=f'W/"{sha256(content).hexdigest()[:32]}"',
            )
    return files


_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}
