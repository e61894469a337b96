"""Server of the page: its routes.

A Starlette application. `access` decides who may use it, and the desk what is asked and answered.
`openapi.json` beside this module describes every route for other clients; see `http.openapi`.

"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from connectors.annotation.annotators import Progress
from connectors.annotation.cards import Card, as_json, left_as_json, request_of
from connectors.annotation.desk import AnnotationDesk, Past
from connectors.annotation.replies import Accepted, CardGoneError, Reply
from streamgp import __version__
from streamgp.apps.page.access import (
    MAX_STREAMS,
    Door,
    Guard,
    Refused,
    Traffic,
    is_form,
    json_response,
)
from streamgp.apps.page.http import (
    ERRORS,
    JoinBody,
    NoBody,
    OverruleBody,
    RenameBody,
    ReviseBody,
    SkipBody,
    gone,
    openapi,
    other_key,
    read_body,
    refused_by,
    static_files,
)
from streamgp.apps.page.invites import Invites, Person
from streamgp.apps.page.join import ask, refusal, replaced, to_questions
from streamgp.apps.page.live import LiveDesk
from streamgp.apps.page.preferences import (
    BadPreferencesError,
    PreferenceFile,
    Preferences,
    pause_of,
)
from streamgp.apps.page.streams import Herald
from streamgp.base import Label
from streamgp.common.printable import printable
from streamgp.common.running_stats import Histogram
from streamgp.interactive.messages import CLEAR_SINCE, MORE_USEFUL, SET_ASIDE

BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Bounds of the durations of answers."""
_WITHDRAWN = {CLEAR_SINCE: "clear", MORE_USEFUL: "more_useful", SET_ASIDE: "set_aside"}
"""How reasons begin for which a loop takes questions back by itself, and their codes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSettings:
    """Settings of a page.

    Parameters
    ----------
    keyed
        Whether the workers have a learner for each key.
    of_numbers
        Whether the answers are numbers instead of names of classes.
    asks_confidence
        Whether to ask for the confidence of an answer.
    notes_response_time
        Whether answers contain the response time.
    open_at_most
        How many questions of each key the workers keep open; None without a limit.
    question, guidelines
        What annotators are asked, and told before their first answer; None for "Which is it?", and
        for nothing.
    supervisors
        Names of annotators who may see, take back and rename labels that others gave.
    accuracy
        Returns pairs of a number of events and the accuracy up to there; None if the truth is not
        known.
    truth
        Returns the true label of an event, None if not known; every card then shows it. Only for
        demonstrations, as it gives away the answer.

    """

    keyed: bool = True
    of_numbers: bool = False
    asks_confidence: bool = False
    notes_response_time: bool = True
    open_at_most: int | None = None
    question: str | None = None
    guidelines: str | None = None
    supervisors: frozenset[str] = frozenset()
    accuracy: Callable[[], list[tuple[int, float]]] | None = None
    truth: Callable[[str], Label | None] | None = None


class Page:
    """The page of a deployment.

    Parameters
    ----------
    invites
        The invites; None if there is no login.

    Attributes
    ----------
    app
        The ASGI application.
    traffic
        Counts of requests.

    """

    # _herald     notifies the browsers of changes
    # _durations  durations of answers, from the request to the response
    def __init__(
        self,
        live: LiveDesk,
        settings: PageSettings,
        *,
        door: Door,
        invites: Invites | None,
        preferences: PreferenceFile,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.traffic = Traffic()
        self._live = live
        self._settings = settings
        self._door = door
        self._invites = invites
        self._preferences = preferences
        self._clock = clock
        self._herald = Herald(self)
        self._durations = Histogram(BOUNDS_S)
        self._static = static_files()
        self._openapi = openapi()
        routes = self._routes()
        self.app = Starlette(
            routes=routes,
            middleware=[
                Middleware(
                    Guard,
                    door=door,
                    invites=invites,
                    traffic=self.traffic,
                    routes=routes,
                    refusal=refusal,
                )
            ],
            exception_handlers=dict.fromkeys((HTTPException, Refused, *ERRORS), _refuse),
            lifespan=self._lifespan,
        )
        self.app.router.redirect_slashes = False

    def end_streams(self) -> None:
        """End all event streams, so that the server can stop."""
        self._herald.end_all()

    def _routes(self) -> list[Route]:
        return [
            Route("/", partial(self.file, name="index.html")),
            Route("/static/{name:path}", self.file),
            # Only from this path may the service worker control the whole page.
            Route("/sw.js", partial(self.file, name="sw.js")),
            Route("/manifest.webmanifest", partial(self.file, name="manifest.webmanifest")),
            Route("/join/{link}", self.link),
            Route("/join/{link}", self.join, methods=["POST"]),
            Route("/healthz", self.health),
            Route("/metrics", self.metrics),
            Route("/api/openapi.json", self.openapi),
            Route("/api/me", self.me),
            Route("/api/preferences", self.prefer, methods=["PUT"]),
            Route("/api/next", self.next),
            Route("/api/reserve", self.reserve),
            Route("/api/card/{card_id:path}", self.card),
            Route("/api/skip", self.skip, methods=["POST"]),
            Route("/api/answers", self.answer, methods=["POST"]),
            Route("/api/answers/{answer_id:path}/undo", self.undo, methods=["POST"]),
            Route("/api/answers/{answer_id:path}/revise", self.revise, methods=["POST"]),
            Route("/api/labels/rename", self.rename, methods=["POST"]),
            Route("/api/history", self.history),
            Route("/api/others", self.answers_of_others),
            Route("/api/others/undo", self.overrule, methods=["POST"]),
            Route("/api/timeline", self.timeline),
            Route("/api/stats", self.stats),
            Route("/api/stream", self.stream),
        ]

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        self._live.start()
        self._live.listen(self._herald.news)
        telling = asyncio.create_task(self._herald.run())
        telling.add_done_callback(self._live.watch)
        try:
            yield
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)

    # --- files, login, and requests of other machines

    async def file(self, request: Request, name: str | None = None) -> Response:
        """Return a file of the page; without a name, that of the path."""
        if (name := name or request.path_params["name"]) not in self._static:
            raise HTTPException(404)
        file = self._static[name]
        headers = {"etag": file.etag, "cache-control": "no-cache", "vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == file.etag:
            return Response(status_code=304, headers=headers)
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(file.content, media_type=file.media_type, headers=headers)
        headers["content-encoding"] = "gzip"
        return Response(file.compressed, media_type=file.media_type, headers=headers)

    async def link(self, request: Request) -> Response:
        """Return a page that says for whom the link is; only the button there uses it up."""
        link, invites = request.path_params["link"], self._required_invites()
        attempt = self._door.attempt(request)
        name = await asyncio.to_thread(invites.invited, link, attempt)
        person = self._person(request)
        if name is None or (person is not None and person.name == name):
            # The page goes on for a browser that has a cookie, or says that an invite is needed.
            return to_questions()
        response = ask(request, name, person)
        if attempt is None:
            self._door.set_attempt(response, secrets.token_urlsafe(32))
        return response

    async def join(self, request: Request) -> Response:
        """Exchange a link that works once for a cookie, by the button or by a program."""
        link, invites = request.path_params["link"], self._required_invites()
        if is_form(request.headers):
            return await self._join_by_button(request, link, invites)
        attempt = (await read_body(request, JoinBody)).attempt
        token = await asyncio.to_thread(invites.redeem, link, attempt)
        if token is None:
            raise Refused(
                403,
                "bad_link",
                "this link was used before, is too old, or was revoked",
                "a new one, as `streamgp invite` prints it",
            )
        response = json_response({})
        self._door.let_in(response, token)
        return response

    async def _join_by_button(self, request: Request, link: str, invites: Invites) -> Response:
        replaces, attempt = await replaced(request), self._door.attempt(request)
        name = await asyncio.to_thread(invites.invited, link, attempt)
        response = to_questions()
        # The page itself did not get this cookie if another site, such as a mail's, led to it.
        person = self._person(request)
        if person is not None and person.name == name:
            return response  # the link remains for another device
        if name is not None and person is not None and person.token_id != replaces:
            return ask(request, name, person)
        token = await asyncio.to_thread(invites.redeem, link, attempt)
        if token is not None:
            self._door.end_attempt(response)
            self._door.let_in(response, token)
        return response

    def _person(self, request: Request) -> Person | None:
        """Return as whom a browser answers that requests a page."""
        token = self._door.token(request.headers)
        return None if token is None or self._invites is None else self._invites.person(token)

    def _required_invites(self) -> Invites:
        if self._invites is None:
            raise Refused(
                403,
                "no_invites",
                "this page was started with --as, so that everybody answers as one annotator",
                "a page that was started without --as",
            )
        return self._invites

    async def health(self, _request: Request) -> Response:
        """Report whether questions and answers get through."""
        live = self._live
        if not live.is_ready:
            return json_response({"status": "reading"}, status=503)
        if live.trouble is not None or live.sending_trouble is not None:
            return json_response({"status": "no broker"}, status=503)
        return json_response({"status": "ok"})

    async def metrics(self, _request: Request) -> Response:
        """Return counts for Prometheus; none of them names a person or a label."""
        live, desk = self._live, self._desk_or_none()
        text = prometheus(
            self.traffic,
            self._durations,
            {
                "ready": live.is_ready,
                "broker_up": live.trouble is None and live.sending_trouble is None,
                "unsent_answers": live.n_unsent,
                "open_questions": 0 if desk is None else desk.n_open(self._clock()),
            },
        )
        return Response(text, media_type="text/plain; version=0.0.4")

    async def openapi(self, _request: Request) -> Response:
        return Response(self._openapi, media_type="application/json")

    # --- the annotator and their preferences

    async def me(self, request: Request) -> Response:
        """Return the annotator and the settings of the page."""
        person, settings = person_of(request), self._settings
        return json_response(
            {
                "name": person.name,
                "key": person.key,
                "language": _language(request),
                "of_numbers": settings.of_numbers,
                "asks_confidence": settings.asks_confidence,
                "open_at_most": settings.open_at_most,
                "notes_response_time": settings.notes_response_time,
                "question": settings.question,
                "guidelines": settings.guidelines,
                "supervisor": person.name in settings.supervisors,
                "preferences": self._preferences.get(person.name),
                "version": __version__,
            }
        )

    async def prefer(self, request: Request) -> Response:
        """Store when, how often and how much an annotator wants to be asked."""
        person = person_of(request)
        preferences = await read_body(request, Preferences)
        try:
            await asyncio.to_thread(self._preferences.put, person.name, preferences)
        except BadPreferencesError as error:
            raise Refused(
                400, "bad_preferences", str(error), "see /api/openapi.json", reason=error.code
            ) from None
        self._live.notify()
        return json_response({"accepted": True, "preferences": preferences})

    # --- cards

    async def next(self, request: Request) -> Response:
        """Return the next card, leased to this annotator, and the one after."""
        person = person_of(request)
        if not self._live.is_ready:
            return json_response(
                {
                    "card": None,
                    "ahead": None,
                    "pause": None,
                    "progress": self.progress(person),
                    "reading": self._live.n_read,
                }
            )
        upcoming = self._upcoming(person)
        return json_response({"card": upcoming.pop("next"), **upcoming, "reading": None})

    async def reserve(self, request: Request) -> Response:
        """Return cards to go on with while there is no connection, unless limits are set."""
        person = person_of(request)
        found = []
        if not self._has_limit(person) and self._pause(person) is None:
            for card_id in self._desk.reserve(person.name, self._clock(), only_key=person.key):
                card = self._desk.card(person.name, card_id, self._clock(), only_key=person.key)
                if card is not None:
                    found.append(self._json_of(card))
                await asyncio.sleep(0)  # answers, which people wait for, go first
        return json_response({"cards": found})

    async def card(self, request: Request) -> Response:
        person, card_id = person_of(request), request.path_params["card_id"]
        self._check_key(person, card_id)
        card = self._desk.card(person.name, card_id, self._clock(), only_key=person.key)
        if card is None:
            raise gone()
        self._herald.gave(person, card_id)
        return json_response({"card": self._json_of(card)})

    async def skip(self, request: Request) -> Response:
        """Move a card behind all others."""
        person = person_of(request)
        body = await read_body(request, SkipBody)
        self._check_key(person, body.card)
        with suppress(CardGoneError):  # the skipped card is no longer open
            self._desk.skip(person.name, body.card, self._clock())
        self._live.notify()
        return self._accept(person)

    # --- answers

    async def answer(self, request: Request) -> Response:
        """Accept an answer; it is in the topic when this returns."""
        start = time.perf_counter()
        person = self._answering(request)
        reply = await read_body(request, Reply)
        self._check_key(person, reply.card)
        if not self._settings.notes_response_time:
            reply = msgspec.structs.replace(reply, response_s=None)
        accepted = self._desk.reply(person.name, reply, self._clock(), only_key=person.key)
        await self._live.save([accepted])
        response = self._accept(person, accepted, answer_id=reply.answer_id)
        self._durations.observe(time.perf_counter() - start)
        return response

    async def undo(self, request: Request) -> Response:
        """Take back an answer, and reopen its question."""
        person, answer_id = self._answering(request), request.path_params["answer_id"]
        await read_body(request, NoBody)
        past = self._own(person, answer_id)
        accepted = self._desk.undo(person.name, answer_id, self._clock())
        await self._live.save([accepted])
        return self._accept(
            person, accepted, answer_id=answer_id, first=None if past is None else past.card_id
        )

    async def revise(self, request: Request) -> Response:
        """Replace an earlier label or number."""
        person, answer_id = self._answering(request), request.path_params["answer_id"]
        body = await read_body(request, ReviseBody)
        label = body.label if body.number is None else body.number
        if label is None or (body.label is not None and body.number is not None):
            raise Refused(400, "bad_body", "the body contains no answer", "a label, or a number")
        self._own(person, answer_id)
        accepted = self._desk.revise(person.name, answer_id, label, self._clock())
        await self._live.save([accepted])
        return self._accept(person, accepted, answer_id=answer_id)

    async def rename(self, request: Request) -> Response:
        """Rename a label in all its examples."""
        person = self._answering(request)
        body = await read_body(request, RenameBody)
        if not person.sees(body.key):
            raise other_key()
        changed = self._desk.rename(
            person.name,
            body.key,
            body.old,
            body.new,
            self._clock(),
            of_everyone=person.name in self._settings.supervisors,
        )
        await self._live.save(changed)
        return json_response({"accepted": True, "changed": len(changed), **self._upcoming(person)})

    async def overrule(self, request: Request) -> Response:
        """Take back an answer of another annotator."""
        person = self._answering(request)
        self._check_supervisor(person)
        body = await read_body(request, OverruleBody)
        accepted = self._desk.overrule(
            person.name, body.annotator, body.answer_id, self._clock(), only_key=person.key
        )
        await self._live.save([accepted])
        return self._accept(person, accepted, answer_id=body.answer_id)

    # --- history and progress

    async def answers_of_others(self, request: Request) -> Response:
        """Return the last labels that other annotators gave."""
        person = person_of(request)
        self._check_supervisor(person)
        past = self._desk.answers_of_others(person.name, self._clock(), only_key=person.key)
        return json_response({"answers": past})

    async def history(self, request: Request) -> Response:
        person = person_of(request)
        past = [
            {**msgspec.to_builtins(each), "labels": self._desk.timeline.classes(each.key)}
            for each in self._desk.history(person.name, self._clock())
            if person.sees(each.key)
        ]
        return json_response({"history": past})

    async def timeline(self, request: Request) -> Response:
        """Return the labels of one day of a key."""
        person, query = person_of(request), request.query_params
        key = query.get("key") or None
        if not person.sees(key):
            raise other_key()
        start, end = _day(query.get("day", ""), query.get("tz", "UTC"))
        moments = [
            {
                "event_id": moment.event_id,
                "at": moment.occurred_at,
                "label": moment.label,
                "mine": moment.annotator == person.name,
            }
            for moment in self._desk.timeline.between(key, start, end)
        ]
        return json_response({"moments": moments})

    async def stats(self, request: Request) -> Response:
        """Return the accuracy of predictions, if the truth is known."""
        person = person_of(request)
        accuracy = self._settings.accuracy
        return json_response(
            {
                "accuracy": None if accuracy is None else accuracy(),
                "progress": self.progress(person),
            }
        )

    async def stream(self, request: Request) -> Response:
        person, streams = person_of(request), self.traffic.streams
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        if request.method == "HEAD":
            # There is nothing to write, and so nothing by which it is noticed that a client left.
            return Response(headers=headers, media_type="text/event-stream")
        if streams[person.token_id] >= MAX_STREAMS:
            raise Refused(
                429,
                "too_many_streams",
                "this browser is already listening several times",
                f"at most {MAX_STREAMS} streams of one browser",
                retry_after_s=10.0,
            )
        streams[person.token_id] += 1
        stream = self._herald.open(person)

        async def chunks() -> AsyncIterator[bytes]:
            try:
                async for chunk in stream.chunks():
                    yield chunk
            finally:
                self._herald.close(stream)
                streams[person.token_id] -= 1

        return StreamingResponse(
            chunks(),
            media_type="text/event-stream",
            headers=headers,
        )

    # --- the view of the herald

    def is_gone(self, person: Person, card_id: str) -> bool:
        desk = self._desk_or_none()
        return desk is not None and not desk.is_open(person.name, card_id, self._clock())

    def why_gone(self, card_id: str) -> Mapping[str, str]:
        """Return why a card's question was cancelled, with a code if the loop did it by itself."""
        desk = self._desk_or_none()
        why = None if desk is None else desk.why_ended(card_id)
        if why is None:
            return {}
        code = next((code for words, code in _WITHDRAWN.items() if why.startswith(words)), None)
        return {"why": printable(why), **({} if code is None else {"code": code})}

    def upcoming(self, person: Person, after: str | None) -> str | None:
        desk = self._desk_or_none()
        if desk is None or self._pause(person) is not None:
            return None
        card = desk.peek(person.name, self._clock(), after=after, only_key=person.key)
        return None if card is None else card.id

    def progress(self, person: Person) -> Mapping[str, Any]:
        desk = self._desk_or_none()
        progress = Progress()
        set_aside: Mapping[str, Any] = {"mine": None, "of": []}
        if desk is not None:
            now = self._clock()
            day_start = self._preferences.get(person.name).day_start(now)
            progress = desk.progress(person.name, now, only_key=person.key, day_start=day_start)
            set_aside = self._set_aside(person, desk)
        found: dict[str, Any] = msgspec.to_builtins(progress)
        return {
            **found,
            "budget_left": left_as_json(progress.budget_left),
            "unsent": self._live.n_unsent,
            "set_aside": set_aside,
        }

    def _set_aside(self, person: Person, desk: AnnotationDesk) -> dict[str, Any]:
        """Return whether the annotator is quarantined and, for a supervisor, who else is."""
        counts = desk.quarantined.counts(person.key)
        mine: str | None = None
        if person.name in counts:
            # With a learner for each key, answers for other keys may be learned.
            is_all = person.key is not None or all(
                desk.quarantined.holds(person.name, key) for key in desk.timeline.known_keys()
            )
            mine = "all" if is_all else "some"
        is_supervisor = person.name in self._settings.supervisors
        return {"mine": mine, "of": sorted(counts) if is_supervisor else []}

    def others(self, person: Person) -> list[str]:
        """Return the other active annotators; for one invited to one key, only those who see it."""
        desk, invites, key = self._desk_or_none(), self._invites, person.key
        if desk is None:
            return []
        names = desk.others(self._clock(), than=person.name)
        if key is None or invites is None:
            return names
        seen = invites.names_of(key)
        return [name for name in names if name in seen]

    def stats_mark(self) -> object:
        accuracy = self._settings.accuracy
        return None if accuracy is None else len(accuracy())

    def may_stay(self, person: Person) -> bool:
        return self._invites is None or self._invites.holds(person)

    # --- internal

    def _answering(self, request: Request) -> Person:
        """Return the annotator of a request, unless the workers would refuse all their answers.

        Before the desk takes the answer: the desk would wait for the broker, and ask no other
        annotator.
        """
        person = person_of(request)
        if not self._live.can_send(person.name):
            raise Refused(
                401,
                "no_token",
                "there is no key to sign the answers of this annotator with",
                "a link as `streamgp invite` prints it, which creates the key",
            )
        return person

    @property
    def _desk(self) -> AnnotationDesk:
        return self._live.desk

    def _desk_or_none(self) -> AnnotationDesk | None:
        return self._live.desk if self._live.is_ready else None

    def _pause(self, person: Person) -> Any:
        preferences = self._preferences.get(person.name)
        return pause_of(preferences, person.name, self._live.desk.times, self._clock())

    def _has_limit(self, person: Person) -> bool:
        return self._preferences.get(person.name).has_limit

    def _upcoming(self, person: Person, *, first: str | None = None) -> dict[str, Any]:
        """Return the next card, or a requested one, with its context."""
        now, desk = self._clock(), self._desk
        pause = self._pause(person)
        card: Card | None = None
        ahead: Card | None = None
        if first is not None:
            card = desk.card(person.name, first, now, only_key=person.key)
        if card is None and pause is None:
            card = desk.next(person.name, now, only_key=person.key)
        # The browser goes on to it before the answer is here.
        if card is not None and pause is None and not self._has_limit(person):
            ahead = desk.peek(person.name, now, after=card.id, only_key=person.key)
        self._herald.gave(person, *(each.id for each in (card, ahead) if each is not None))
        return {
            "next": None if card is None else self._json_of(card),
            "ahead": None if ahead is None else self._json_of(ahead),
            "pause": pause,
            "progress": self.progress(person),
        }

    def _json_of(self, card: Card) -> dict[str, Any]:
        """Return a card as sent to clients."""
        truth = self._settings.truth
        found = as_json(card)
        return found if truth is None else {**found, "truth": truth(card.event_id)}

    def _accept(
        self,
        person: Person,
        accepted: Accepted | None = None,
        *,
        answer_id: str | None = None,
        first: str | None = None,
    ) -> Response:
        body: dict[str, Any] = {
            "accepted": True,
            "again": accepted is not None and accepted.again,
            "answer_id": answer_id,
        }
        return json_response({**body, **self._upcoming(person, first=first)})

    def _check_supervisor(self, person: Person) -> None:
        if person.name not in self._settings.supervisors:
            raise Refused(
                403,
                "no_supervisor",
                "only supervisors may see and take back the answers of others",
                "an annotator in [people] supervisors",
            )

    def _check_key(self, person: Person, card_id: str) -> None:
        """Refuse a card of a key that the annotator may not see, as if it did not exist."""
        key, _ = request_of(card_id, keyed=self._settings.keyed)
        if not person.sees(key):
            raise gone()

    def _own(self, person: Person, answer_id: str) -> Past | None:
        """Return one of the annotator's answers, None if it is not known."""
        past = self._desk.past(person.name, answer_id, self._clock())
        if person.key is not None and (past is None or past.key != person.key):
            raise gone()
        return past


def prometheus(traffic: Traffic, answers: Histogram, gauges: Mapping[str, float]) -> str:
    """Return all metrics in Prometheus's text format; none of them names a person or a label.

    Parameters
    ----------
    answers
        How long answers took, from the request until the broker had stored them.

    Examples
    --------
    >>> text = prometheus(Traffic(), Histogram(BOUNDS_S), {"ready": 1.0})
    >>> [line for line in text.splitlines() if "ready" in line]
    ['# TYPE streamgp_page_ready gauge', 'streamgp_page_ready 1']

    """
    lines = ["# TYPE streamgp_page_requests_total counter"]
    for (route, method, status), n in sorted(traffic.requests.items()):
        labels = f'route="{route}",method="{method}",status="{status}"'
        lines.append(f"streamgp_page_requests_total{{{labels}}} {n}")
    lines.append("# TYPE streamgp_page_refused_total counter")
    for error, n in sorted(traffic.refused.items()):
        lines.append(f'streamgp_page_refused_total{{error="{error}"}} {n}')
    lines.append("# TYPE streamgp_page_answer_seconds histogram")
    buckets = answers.buckets()
    for bound, n in buckets:
        lines.append(f'streamgp_page_answer_seconds_bucket{{le="{bound}"}} {n}')
    lines.append(f"streamgp_page_answer_seconds_sum {answers.total:.6f}")
    lines.append(f"streamgp_page_answer_seconds_count {buckets[-1][1]}")
    for name, value in {"streams": traffic.streams.total(), **gauges}.items():
        lines.append(f"# TYPE streamgp_page_{name} gauge")
        lines.append(f"streamgp_page_{name} {value:g}")
    return "\n".join(lines) + "\n"


async def _refuse(request: Request, error: Exception) -> Response:
    refused = refused_by(error)
    request.scope["streamgp.error"] = refused.error
    return refusal(request, refused)


def person_of(request: Request) -> Person:
    """Return the annotator of a request, as determined by the guard."""
    person: Person = request.scope["streamgp.person"]
    return person


def _language(request: Request) -> str:
    """Return the first language that the browser requests, or English."""
    first = request.headers.get("accept-language", "").partition(",")[0].partition(";")[0].strip()
    return first[:20] if first and first.replace("-", "").isalnum() and first.isascii() else "en"


def _day(day: str, zone: str) -> tuple[float, float]:
    try:
        midnight = datetime.combine(date.fromisoformat(day), datetime.min.time(), ZoneInfo(zone))
        return midnight.timestamp(), (midnight + timedelta(days=1)).timestamp()
    except (ValueError, OSError, LookupError, OverflowError):
        raise Refused(
            400,
            "bad_day",
            "day or tz is not valid",
            "day as 2026-11-23, tz as a name of the IANA database, as in Europe/Berlin",
        ) from None
