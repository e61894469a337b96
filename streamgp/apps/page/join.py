"""The page that an invite's link opens: it says for whom the link is, and has one button.

It needs no script, and runs none: programs that follow links and run scripts press no buttons, so
they do not use the link up, and no other site can use it in an annotator's browser unseen.

"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from streamgp.apps.page.access import JOIN, SECURITY_HEADERS, Refused, is_form
from streamgp.apps.page.http import read_bytes
from streamgp.apps.page.invites import Person
from streamgp.common.printable import printable

_TEXTS = Path(__file__).parent / "static" / "texts"
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": SECURITY_HEADERS["content-security-policy"].replace(
        "form-action 'none'", "form-action 'self'"
    ),
    # With no-referrer, browsers leave the origin out of forms, too.
    "referrer-policy": "strict-origin",
}


def ask(request: Request, name: str, instead_of: Person | None) -> Response:
    """Return the page that asks whether this browser is to answer as an annotator.

    Parameters
    ----------
    name
        For whom the link is.
    instead_of
        As whom the browser answers so far; None if it answers for none.

    """
    values = {"name": name, "other": "" if instead_of is None else instead_of.name}
    kind = "join" if instead_of is None else "join.instead"
    return _page(
        request,
        values,
        title=f"{kind}.title",
        words=kind,
        button="join.do",
        stay=None if instead_of is None else "join.stay",
        replaces=None if instead_of is None else instead_of.token_id,
    )


def to_questions() -> Response:
    """Return a response that leads to the questions; it depends on cookies, and may have one."""
    return RedirectResponse("/", 303, headers={"cache-control": "no-store"})


async def replaced(request: Request) -> str | None:
    """Return whose token the form replaces, as the annotator was told."""
    data = await read_bytes(request)
    try:
        found = parse_qs(data.decode("ascii", "replace"), max_num_fields=10)
    except ValueError as error:
        raise Refused(400, "bad_body", str(error), "the form of the page") from None
    return found.get("replaces", [None])[0]


def refusal(request: Request, refused: Refused) -> Response:
    """Return the response to a refused request: for those who open a link, a page."""
    is_read = is_form(request.headers) or "text/html" in request.headers.get("accept", "")
    if not (request.scope["path"].startswith(JOIN) and is_read):
        return refused.response()
    texts = _texts(_language(request))
    code = refused.reason or refused.error
    why = texts.get(f"because.{code}") or texts["because.other"].format(code=code)
    response = _page(request, {"why": why}, title="join.refused.title", words="refused.page")
    response.status_code = refused.status
    response.headers.update(refused.headers)
    return response


def _page(
    request: Request,
    values: dict[str, str],
    *,
    title: str,
    words: str,
    button: str | None = None,
    stay: str | None = None,
    replaces: str | None = None,
) -> Response:
    language = _language(request)
    texts = _texts(language)
    # Names come from outside; a direction of writing ends with the name.
    given = {name: Markup("<bdi>{}</bdi>").format(printable(x)) for name, x in values.items()}
    said = {
        name: None if text is None else Markup.escape(texts[text]).format(**given)
        for name, text in (("title", title), ("words", words), ("button", button), ("stay", stay))
    }
    content = _template().render(language=language, replaces=replaces, **said)
    return Response(content, media_type="text/html", headers=_HEADERS)


@cache
def _template() -> Any:
    loader = FileSystemLoader(Path(__file__).parent)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined).get_template(
        "join.html"
    )


@cache
def _texts(language: str) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode((_TEXTS / f"{language}.json").read_bytes())
    return found


@cache
def _languages() -> frozenset[str]:
    return frozenset(path.stem for path in _TEXTS.glob("*.json"))


def _language(request: Request) -> str:
    """Return the first language that the browser wants and that there is, or English."""
    wanted = request.headers.get("accept-language", "").lower().split(",")
    codes = (one.partition(";")[0].strip().partition("-")[0] for one in wanted)
    return next((code for code in codes if code in _languages()), "en")
