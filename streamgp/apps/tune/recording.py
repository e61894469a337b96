"""A recorded log in memory: what was seen, what is true, and what an annotator says of it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import click

from connectors.tables.compression import TableError
from streamgp.apps.console import tell
from streamgp.apps.recorded_logs import N_REASONS_SHOWN, Notes, open_log
from streamgp.base import Features, Label
from streamgp.config import build
from streamgp.config.settings import Config
from streamgp.interactive.messages import Event, LabelRequest, Rejected
from streamgp.scaling import check_finite
from streamgp.simulation.annotators import Annotator


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One event of a log.

    Parameters
    ----------
    x
        Features as recorded.
    truth
        The true label, None where there is none.
    given
        What the annotator says, None where there is no answer.

    """

    x: Features
    truth: Label | None
    given: Label | None


@dataclass(slots=True)
class Recording:
    """A log, every key for itself.

    Attributes
    ----------
    by_key
        The events of each key, in their order; of all together where there are no keys.
    rejected
        Why events could not be used, one line each.

    """

    by_key: dict[str | None, list[Recorded]] = field(default_factory=dict)
    rejected: list[str] = field(default_factory=list)

    @property
    def n_events(self) -> int:
        """Number of events."""
        return sum(map(len, self.by_key.values()))

    @property
    def n_examples(self) -> int:
        """Number of events that somebody labels."""
        return sum(event.given is not None for events in self.by_key.values() for event in events)

    @property
    def labels(self) -> list[Label]:
        """The true labels, in order of appearance."""
        events = (event for events in self.by_key.values() for event in events)
        return list(dict.fromkeys(event.truth for event in events if event.truth is not None))


def read_recording(path: Path, config: Config) -> Recording:
    """Read the log that a configuration describes, and let its annotator label every event.

    How long the annotator takes does not matter here.

    Raises
    ------
    click.ClickException
        If the log cannot be read, or there is nothing in it to tell apart.

    """
    recording, notes, annotator = Recording(), Notes(), build.build_annotator(config)
    with closing(open_log(path, config, notes)) as log:
        try:
            while not log.exhausted:
                for received in log.poll():
                    message = received.message
                    if isinstance(message, Event):
                        _note(recording, message, annotator)
                    elif isinstance(message, Rejected):
                        recording.rejected.append(f"rejected {message.subject}: {message.reason}")
        except TableError as error:
            raise click.ClickException(str(error)) from None
    _check(recording, path, config)
    notes.show()
    _tell_what_was_rejected(recording)
    return recording


def _note(recording: Recording, event: Event, annotator: Annotator) -> None:
    try:
        check_finite(event.x)
    except ValueError as error:
        recording.rejected.append(f"rejected row {event.event_id}: {error}")
        return
    given = None
    if event.truth is not None:
        annotator.see(event.truth)
        given = annotator.answer(_request(event), event.truth, event.occurred_at).y
    events = recording.by_key.setdefault(event.key, [])
    events.append(Recorded(x=event.x, truth=event.truth, given=given))


def _request(event: Event) -> LabelRequest:
    # With the id that a replay would give it, so that the annotator errs at the same events.
    return LabelRequest(
        request_id=f"{event.event_id}/label",
        event_id=event.event_id,
        key=event.key,
        x=event.x,
        reason="",
        score=1.0,
        threshold=0.0,
        requested_at=event.occurred_at,
    )


def _tell_what_was_rejected(recording: Recording) -> None:
    for reason in recording.rejected[:N_REASONS_SHOWN]:
        tell(reason)
    more = len(recording.rejected) - N_REASONS_SHOWN
    if more > 0:
        tell(f"and {more} more rejected")


def _check(recording: Recording, path: Path, config: Config) -> None:
    n, labels, column = recording.n_events, recording.labels, config.log.label
    if not n:
        raise click.ClickException(
            f"no row of {path} could be used, the first because: {recording.rejected[0]}"
        )
    if not labels:
        raise click.ClickException(
            f"column {column!r} holds no label in {n} rows; name another one with --label, or read "
            "more rows with --limit"
        )
    if len(labels) == 1:
        raise click.ClickException(
            f"column {column!r} holds one label only, {labels[0]!r}, in {n} rows; expected two or "
            "more to tell apart: read more rows with --limit, or name another column with --label"
        )
    if not recording.n_examples:
        raise click.ClickException(
            "the annotator answers no question about this log; lower decline_rate"
        )
    if all(sum(event.given is not None for event in of) < 2 for of in recording.by_key.values()):
        whose = "" if config.log.key is None else f"of the same key, in column {config.log.key!r}, "
        raise click.ClickException(
            f"no two events {whose}are labelled in {n} rows; expected one to learn from and one to "
            "predict: read more rows with --limit, or name another column"
        )
