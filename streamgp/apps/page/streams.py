"""Event streams to the browsers: new card, card gone, progress, other annotators.

These are server-sent events. A stream mostly tells that there is something to fetch, not what: a
browser that was disconnected fetches the same afterwards, and has missed nothing.

"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from streamgp.apps.page.invites import Person
from streamgp.common.latest import Latest

MOST_GIVEN = 20
"""Number of recent cards for which a browser is told when they are gone."""
MOST_UNREAD = 200
"""The largest number of events that a browser may leave unread before it must reconnect."""
BEAT_S = 15.0
"""The longest silence, so that no proxy takes a stream for dead."""
TICK_S = 1.0
PROGRESS_S = 1.0
_LEAST_PAUSE_S = 0.05
_SHARE = 10.0


class StreamSource(Protocol):
    """Protocol of the data behind the streams."""

    def is_gone(self, person: Person, card_id: str) -> bool:
        """Return whether a card can no longer be answered by an annotator."""

    def why_gone(self, card_id: str) -> Mapping[str, str]:
        """Return why the question of a card was taken back: nothing, or `why` and its `code`."""

    def upcoming(self, person: Person, after: str | None) -> str | None:
        """Return the id of the card after another one, None if there is none."""

    def progress(self, person: Person) -> Mapping[str, Any]: ...

    def others(self, person: Person) -> list[str]:
        """Return the other active annotators whom this one may see."""

    def stats_mark(self) -> object:
        """Return a value that changes whenever the statistics do."""

    def may_stay(self, person: Person) -> bool:
        """Return whether an annotator still has access."""


class Stream:
    """Queue of events for one browser."""

    # _queue  unsent events; None ends the stream
    # told    the last state sent, by kind of event
    def __init__(self, person: Person) -> None:
        self.person = person
        self.told: dict[str, Any] = {}
        self.progress_at = -PROGRESS_S
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()

    def tell(self, kind: str, data: Any) -> None:
        encoded = msgspec.json.encode(data)
        self._queue.put_nowait(b"event: %b\ndata: %b\n\n" % (kind.encode(), encoded))
        if self._queue.qsize() > MOST_UNREAD:
            self.end()

    def tell_new(self, kind: str, data: Any) -> None:
        """Send a state if it differs from the last one sent."""
        if kind not in self.told or self.told[kind] != data:
            self.told[kind] = data
            self.tell(kind, data)

    def tell_progress(self, progress: Mapping[str, Any]) -> None:
        """Send the progress, unless only time has passed."""
        counts = {name: value for name, value in progress.items() if name != "oldest_s"}
        if self.told.get("progress") != counts:
            self.told["progress"] = counts
            self.tell("progress", progress)

    def end(self) -> None:
        self._queue.put_nowait(None)

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b"retry: 1000\n\n"
        while True:
            try:
                chunk = await asyncio.wait_for(self._queue.get(), BEAT_S)
            except TimeoutError:
                chunk = b":\n\n"
            if chunk is None:
                return
            yield chunk


class Herald:
    """Notifies all streams of changes."""

    # _given    the last cards given to each annotator, the current one last but one
    # _streams  open streams
    def __init__(self, source: StreamSource) -> None:
        self.news = asyncio.Event()
        self._source = source
        self._given: dict[str, Latest[str, None]] = {}
        self._streams: set[Stream] = set()

    def gave(self, person: Person, *card_ids: str) -> None:
        """Record cards that a reply has given to an annotator's browser.

        It may have told another progress than the streams did, which is told again.
        """
        given = self._given.setdefault(person.name, Latest(MOST_GIVEN))
        for card_id in card_ids:
            given.put(card_id, None)
        for stream in self._streams:
            if stream.person.name == person.name:
                stream.told.pop("progress", None)

    def open(self, person: Person) -> Stream:
        stream = Stream(person)
        self._streams.add(stream)
        self.news.set()
        return stream

    def close(self, stream: Stream) -> None:
        self._streams.discard(stream)
        if all(other.person.name != stream.person.name for other in self._streams):
            self._given.pop(stream.person.name, None)

    def end_all(self) -> None:
        """End all streams: the server is about to stop."""
        for stream in self._streams:
            stream.end()

    async def run(self) -> None:
        """Notify until cancelled; changes are batched, with a pause after each batch."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.news.wait(), TICK_S)
            self.news.clear()
            start = time.monotonic()
            self.tell_all()
            took_s = time.monotonic() - start
            await asyncio.sleep(max(_LEAST_PAUSE_S, _SHARE * took_s))

    def tell_all(self) -> None:
        """Notify every stream of changes since its last notification."""
        by_name: dict[str, list[Stream]] = {}
        for stream in list(self._streams):
            if self._source.may_stay(stream.person):
                by_name.setdefault(stream.person.name, []).append(stream)
            else:
                stream.end()
                self.close(stream)
        for streams in by_name.values():
            self._tell(streams)

    def _tell(self, streams: list[Stream]) -> None:
        person = streams[0].person
        given = self._given.setdefault(person.name, Latest(MOST_GIVEN))
        gone = []
        for card_id in [each for each in given if self._source.is_gone(person, each)]:
            del given[card_id]
            gone.append({"id": card_id, **self._source.why_gone(card_id)})
        upcoming = None
        if len(given) < 2:
            upcoming = self._source.upcoming(person, next(iter(given), None))
        now = time.monotonic()
        for stream in streams:
            for data in gone:
                stream.tell("gone", data)
            if upcoming is None:
                stream.told.pop("card", None)
            elif upcoming not in given:
                stream.tell_new("card", {"id": upcoming})
            stream.tell_new("others", self._source.others(person))
            if (mark := self._source.stats_mark()) is not None:
                stream.tell_new("stats", {"mark": mark})
            if now - stream.progress_at >= PROGRESS_S:
                stream.progress_at = now
                stream.tell_progress(self._source.progress(person))
