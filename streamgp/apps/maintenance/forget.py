"""Forgetting a person in a deployment: a request on the consensus topic, and its progress.

Only a worker writes state, so the worker deletes everything, in one transaction with its input
positions; this module only checks whether that has happened.

"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click

from connectors.topics import BrokerError, Outgoing, Reader, Record, RefusedError, TopicName
from connectors.wire.inbound import flaw_of_name
from connectors.wire.state_records import (
    CONFIGURATION,
    SEPARATOR,
    History,
    HistoryError,
    parts_of,
)
from connectors.worker.compatibility import is_on_flink
from connectors.worker.losses import RECOVER
from streamgp.apps.console import INTERRUPTED, agreed, in_one_line, number, progress, tell
from streamgp.apps.deployment.deployment import (
    PATIENCE_S,
    Deployment,
    all_of,
    visit,
    write_all,
)
from streamgp.common.printable import printable
from streamgp.interactive.state.serialize import HEAD

NOT_YET = 3
"""Exit status: the worker has received the request to forget, but not carried it out yet."""
_KEPT_BY: tuple[TopicName, ...] = ("events", "predictions", "requests", "answers", "dead-letters")


@dataclass(slots=True)
class Traces:
    """Traces of one key in the topics of labels and state.

    They may be in several partitions: where its producers choose partitions differently, a key has
    a learner in each.

    Attributes
    ----------
    left
        The remaining records, by topic, partition and key.
    on_flink
        Whether Flink keeps what is learned, and the topic `state` does not count.

    Examples
    --------
    >>> traces = Traces("ann")
    >>> place = {"topic": "state", "partition": 2, "at": 0.0, "key": b"ann\\x1fhead"}
    >>> traces.take(Record(offset=0, value=b"{}", **place))
    >>> traces.left
    {('state', 2, b'ann\\x1fhead'): None}
    >>> traces.take(Record(offset=1, value=None, **place))
    >>> traces.left
    {}

    """

    # _is_sent  whether the request to forget was sent
    # _over_in  where the head has since been deleted: later records belong to a new learner
    entity: str
    left: dict[tuple[TopicName, int, bytes], None] = field(default_factory=dict)
    on_flink: bool = False
    _is_sent: bool = False
    _over_in: set[int] = field(default_factory=set)

    @property
    def n_labels(self) -> int:
        """Number of labelled examples; each correction counts separately."""
        return sum(topic == "consensus" for topic, _, _ in self.left)

    @property
    def has_head(self) -> bool:
        """Whether its learners have state, or no labels."""
        labelled_in = {place for topic, place, _ in self.left if topic == "consensus"}
        head = self._key_of(HEAD)
        return self.on_flink or all(("state", place, head) in self.left for place in labelled_in)

    def take(self, record: Record) -> None:
        """Process the next record of either topic."""
        key = record.key or b""
        if record.topic == "state" and parts_of(key) == ("", CONFIGURATION):
            history = History()
            history.take(record)
            with in_one_line(HistoryError):
                self.on_flink = is_on_flink(history.configuration or {})
        if not key.startswith(self._key_of("")):
            return
        place = record.partition
        if record.value is None:
            self.left.pop((record.topic, place, key), None)
            if self._is_sent and (record.topic, key) == ("state", self._key_of(HEAD)):
                self._over_in.add(place)
        elif place not in self._over_in:
            self.left[record.topic, place, key] = None

    def tell(self) -> list[Outgoing]:
        """Return the records that tell workers, or Flink, to forget.

        On Flink, records that workers left in the topic `state` are deleted too, since the job does
        not read that topic.
        """
        self._is_sent = True
        key = self.entity.encode()
        places = sorted({place for _, place, _ in self.left})
        old = [(place, name) for topic, place, name in self.left if topic == "state"]
        return [
            *(Outgoing(topic="consensus", partition=n, key=key, value=None) for n in places),
            *(
                Outgoing(topic="state", partition=place, key=name, value=None)
                for place, name in (old if self.on_flink else ())
            ),
        ]

    def _key_of(self, name: str) -> bytes:
        return f"{self.entity}{SEPARATOR}{name}".encode()


def forget_in_topics(
    config_file: Path, key: str, *, yes: bool, wait_s: float, broker: str | None
) -> None:
    """Have a worker forget a key, and report the result.

    Raises
    ------
    click.ClickException
        If there is no such key, or the broker cannot be used.

    """
    if flaw := flaw_of_name(key):
        raise click.UsageError(f"KEY {flaw}")
    with visit(config_file, broker) as there:
        if not there.config.worker.keyed:
            raise click.ClickException(
                f"{config_file}: one learner serves all keys (worker.keyed = false), so no key can "
                "be removed from it; withdraw the person's labels one by one instead"
            )
        with closing(there.topics.reader(("consensus", "state"))) as reader:
            _forget(there, reader, Traces(key), yes=yes, wait_s=wait_s)


def _forget(there: Deployment, reader: Reader, traces: Traces, *, yes: bool, wait_s: float) -> None:
    for record in all_of(reader, what="looking for the key"):
        traces.take(record)
    if not traces.left:
        raise click.ClickException(
            f"no worker of group {there.group} has learned anything of the key "
            f"{traces.entity!r}; nothing was forgotten; {_still_there(there)}"
        )
    if not traces.has_head:
        raise click.ClickException(
            f"state has no record of the {number(traces.n_labels, 'label')} of {traces.entity!r}: "
            f"it was deleted, emptied or cut, and no worker runs without it; {RECOVER}"
        )
    entity = printable(repr(traces.entity))
    n_state = len(traces.left) - traces.n_labels
    what = f"{number(traces.n_labels, 'label')} and {number(n_state, 'record')} of state"
    question = f"forget {traces.entity!r} ({what}) for good?"
    if not agreed(question, yes=yes, otherwise="forgot nothing"):
        return
    with interruptible(f"the request to forget {entity}"):
        write_all(there, traces.tell(), program="forget")
        _wait(there, reader, traces, entity, wait_s)
    click.echo(f"forgot {entity}: {what}\n{_still_there(there)}")


def _wait(there: Deployment, reader: Reader, traces: Traces, entity: str, wait_s: float) -> None:
    """Return when the key is forgotten; end the command where that is not so yet."""
    if not (traces.on_flink or there.n_workers()):
        click.echo(
            f"request sent: {entity} will be forgotten when a worker runs; none is running now\n"
            f"{_still_there(there)}"
        )
        raise click.exceptions.Exit(NOT_YET)
    end = time.monotonic() + wait_s
    with progress() as show:
        while traces.left and time.monotonic() < end:
            for record in reader.poll(PATIENCE_S):
                traces.take(record)
            show("waiting for the worker", None)
    if traces.left:
        click.echo(
            f"request sent: {'Flink' if traces.on_flink else 'the worker'} has not forgotten "
            f"{entity} after {wait_s:g} s; it will when it reads the request\n"
            f"{_still_there(there)}"
        )
        raise click.exceptions.Exit(NOT_YET)


@contextmanager
def interruptible(request: str) -> Iterator[None]:
    """Say after Ctrl-C or an error of the broker that a request, which stays, is on its way."""
    rest = (
        f"{request} may be on its way, and is carried out when it is read; call the command again "
        "to see whether it was"
    )
    try:
        yield
    except KeyboardInterrupt:
        tell(f"interrupted; {rest}")
        raise click.exceptions.Exit(INTERRUPTED) from None
    except BrokerError as error:
        kind = RefusedError if isinstance(error, RefusedError) else BrokerError
        raise kind(f"{error}; {rest}") from error


def _still_there(there: Deployment) -> str:
    names = ", ".join(there.name_of(topic) for topic in _KEPT_BY)
    if there.is_in_directory:
        return (
            "these topics keep what they hold of this person, as nothing in a directory expires: "
            f"{names}; the others until a worker next starts"
        )
    return (
        f"these topics keep what they hold of this person until their retention time: {names}; the "
        "others until the broker compacts them: a day later, with the next record there"
    )
