"""Counts of a replay: over all events, for each key, and how they went on."""

from __future__ import annotations

from connectors.broker import Received, Sink
from streamgp.base import State
from streamgp.cli.replay.points import Points
from streamgp.interactive import Tally
from streamgp.interactive.judge import Target
from streamgp.interactive.messages import Answer, Event, Input, Message, Prediction, Rejected


class CountingSink:
    """A sink that counts everything on its way to another.

    Tell it every event before the messages that come of it.

    Parameters
    ----------
    sink
        The other one; None to drop everything.
    target
        What the labels are: `label`, names of classes, or `number`.

    Attributes
    ----------
    tally
        Counts over all events.
    by_key
        The same for each key, in order of appearance.
    points
        How the run went on.

    """

    def __init__(self, sink: Sink | None = None, target: Target = "label") -> None:
        self._sink = sink
        self._target = target
        self.tally = Tally(target)
        self.by_key: dict[str | None, Tally] = {}
        self.points = Points(target=target)

    def event(self, event: Event) -> None:
        """Count an event."""
        self._of(event.key).event(event)
        self.tally.event(event)

    def see(self, event: Event) -> None:
        """Remember the truth of an event that is part of a state taken over."""
        own = self.by_key.get(event.key)
        if own is not None:  # else the key was forgotten since
            own.see(event)
            self.tally.see(event)

    def forget(self, key: str | None) -> Tally | None:
        """Take a key out of all counts, as if nobody had heard of it; return what it had."""
        own = self.by_key.pop(key, None)
        if own is not None:
            self.tally.remove(own)
            self.points.cut_back(self.tally)
        return own

    def send(self, message: Input | Message, *, cause: Received | None = None) -> None:
        """Count a message and pass it on."""
        for tally in self._tallies(message):
            if isinstance(message, Answer):
                tally.answer(message)
            elif not isinstance(message, Event):
                tally.message(message)
        if isinstance(message, Prediction):
            self.points.note(self.tally)
        if self._sink is not None:
            self._sink.send(message, cause=cause)

    def state(self) -> State:
        """Return all counts; not the truths of the events, see `Tally.state`."""
        return {
            "tally": self.tally.state(),
            "by_key": [[key, tally.state()] for key, tally in self.by_key.items()],
            "points": self.points.state(),
        }

    def load_state(self, state: State) -> None:
        """Become what the state was taken from; tell `see` its events again afterwards."""
        self.tally.load_state(state["tally"])
        for key, tally in state["by_key"]:
            self._of(key).load_state(tally)
        self.points.load_state(state["points"])

    def _tallies(self, message: Input | Message) -> tuple[Tally, ...]:
        if isinstance(message, Rejected) and message.key is not None:
            own: Tally | None = self._of(message.key)  # a row of its may be the first of the key
        else:
            own = self.by_key.get(message.key)  # none for a row whose key could not be read
        return (self.tally,) if own is None else (self.tally, own)

    def _of(self, key: str | None) -> Tally:
        return self.by_key.setdefault(key, Tally(self._target))

    def flush(self) -> None:
        """Flush the other sink."""
        if self._sink is not None:
            self._sink.flush()

    def close(self) -> None:
        """Close the other sink."""
        if self._sink is not None:
            self._sink.close()
