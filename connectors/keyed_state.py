r"""State of one key under an engine that keeps it: loaded, worked on, given back.

A stream engine (`connectors.flink`) delivers the records of a key one after the other, keeps some
bytes for each key, and calls back at a time that is asked for. `KeyedState` makes a loop of these
bytes and hands it the records by the worker's own batch, so that an engine and a worker say and
learn the same. The bytes are the records that a worker writes to the topics `state` and
`consensus`.

"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol, TypeAlias

from connectors.topics import COMPACTED, Outgoing, Record, TopicName
from connectors.wire.state_records import (
    CONFIGURATION,
    RETRACTED,
    SEPARATOR,
    UNHEEDED,
    History,
    parts_of,
    state,
    value_of,
)
from connectors.worker.batch import Batch
from connectors.worker.compatibility import ENVIRONMENT
from connectors.worker.losses import FORGOTTEN, failed_in
from connectors.worker.partition import Partition
from connectors.worker.settings import LoopSettings

Kept: TypeAlias = tuple[TopicName, bytes, bytes]
"""`state` or `consensus`, key and value of a record."""


class KeyStore(Protocol):
    """What an engine keeps of one key, in one transaction with what is written for it."""

    def items(self) -> Iterable[Kept]:
        """Return everything, in any order."""

    def put(self, topic: TopicName, key: bytes, value: bytes | None) -> None:
        """Keep a record in place of what was there; None: nothing is there any longer."""

    def clear(self) -> None:
        """Drop everything."""


class KeyedState:
    r"""The loop of one key of one partition, with everything that is kept for it.

    An object is good for as long as its store is what it has made of it: after a failure, where the
    store goes back to an earlier moment, the engine makes another one.

    Parameters
    ----------
    number
        The partition from which the records of the key come, and into which results go.
    settings
        What the loop is made of. A total budget counts for many keys and is refused.
    store
        What is kept of the key.
    group
        Names the source of the records written.
    names
        What the topics are called on the broker.
    now
        The time, POSIX seconds.

    Raises
    ------
    ValueError
        If there is a total budget.
    UnfitTopicsError
        If the store holds what another configuration or another group has learned, or what does not
        belong together.

    Examples
    --------
    >>> from streamgp import isgp
    >>> store = MemoryKeyStore()
    >>> settings = LoopSettings(model=isgp(seed=1))
    >>> state = KeyedState(2, settings, store, group="rooms", names={}, now=60.0)
    >>> event = Record(
    ...     topic="events", partition=2, offset=7, key=b"ann", value=b'{"x": {"light": 0.5}}',
    ...     at=60.0,
    ... )
    >>> [(record.topic, record.key) for record in state.step(event, now=60.0)]
    [('predictions', b'ann'), ('requests', b'ann')]
    >>> [key for _, key, _ in store.items()]
    [b'\x1fconfiguration', b'ann\x1fhead']

    """

    # _partition  the loop as the worker holds it, in a partition of this key alone
    def __init__(
        self,
        number: int,
        settings: LoopSettings,
        store: KeyStore,
        *,
        group: str,
        names: Mapping[TopicName, str],
        now: float,
    ) -> None:
        if settings.total_budget is not None:
            raise ValueError(
                "a total budget counts for all keys of a worker's partition, and an engine holds "
                "each key apart; leave total_budget out, and put the limit into [budget]"
            )
        # Other keys are the engine's business.
        self._settings = replace(settings, max_keys=None)
        self._store = store
        self._group = group
        self._names = names
        self._number = number
        self._load(now)

    def step(self, record: Record, now: float) -> list[Outgoing]:
        """Take one record of the key, and return what is to be written.

        What changed is in the store by then.
        """
        batch = self._batch(now)
        batch.take(record, batch.decode(record))
        out = self._finish(batch, now)
        if record.topic == "consensus" and record.value is None and record.key is not None:
            self._store.put("consensus", record.key, None)  # its producer has deleted the line
        return out

    def on_time(self, now: float) -> list[Outgoing]:
        """End what is due before `now`, and return what is to be written."""
        batch = self._batch(now)
        # Whether events wait to be read is not known; an answer has had its time by now.
        batch.pass_time(lambda _: False)
        return self._finish(batch, now)

    def next_deadline(self) -> float | None:
        """Return the earliest moment after which `on_time` has something to do, or None."""
        held = self._partition
        deadlines = [held.loops.next_deadline(), held.early.next_deadline()]
        if held.windows is not None:
            deadlines.append(held.windows.next_deadline())
        return min((at for at in deadlines if at is not None), default=None)

    # --- inside

    def _load(self, now: float) -> None:
        self._partition = Partition(
            self._number, self._settings, None, now=now, note=_ignore, group=self._group
        )
        history = self._history()
        if history.ends:
            self._partition.bring_up(history)
            # In which environment no key says; see `_of_key`.
            self._partition.is_signed = history.configuration is not None

    def _history(self) -> History:
        history = History()
        # In an order that does not hang on the engine's.
        for offset, (topic, key, value) in enumerate(sorted(self._store.items())):
            history.take(
                Record(
                    topic=topic,
                    partition=self._number,
                    offset=offset,
                    key=key,
                    value=value,
                    at=0.0,
                )
            )
        return history

    def _batch(self, now: float) -> Batch:
        return Batch(
            {self._number: self._partition},
            self._settings,
            self._group,
            self._names,
            lambda _: self._history(),
            now,
        )

    def _finish(self, batch: Batch, now: float) -> list[Outgoing]:
        written = batch.finish()
        if batch.forgotten_in:
            self._store.clear()
            self._load(now)
        else:
            for record in written:
                if record.topic in COMPACTED:
                    value = record.value
                    if record.key == CONFIGURATION_KEY and value is not None:
                        value = _of_key(value)
                    self._store.put(record.topic, record.key or b"", value)
        return [record for record in written if record.topic != "state" or _is_for_all(record)]


class MemoryKeyStore:
    """A store in memory, for tests and examples."""

    def __init__(self) -> None:
        self._kept: dict[tuple[TopicName, bytes], bytes] = {}

    def items(self) -> list[Kept]:
        """Return everything."""
        return [(topic, key, value) for (topic, key), value in self._kept.items()]

    def put(self, topic: TopicName, key: bytes, value: bytes | None) -> None:
        """Keep a record in place of what was there; None: nothing is there any longer."""
        if value is None:
            self._kept.pop((topic, key), None)
        else:
            self._kept[topic, key] = value

    def clear(self) -> None:
        """Drop everything."""
        self._kept.clear()


def entity_of(topic: TopicName, key: bytes | None, *, keyed: bool) -> bytes:
    r"""Return whose a record is, from its key alone: records of one entity share a state.

    Examples
    --------
    >>> entity_of("consensus", b"ann\x1fe1\x1f0", keyed=True)
    b'ann'
    >>> entity_of("events", b"ann", keyed=False)
    b''

    """
    if not keyed or key is None:
        return b""
    return key.split(SEPARATOR.encode(), 1)[0] if topic in COMPACTED else key


# --- Moving between workers and an engine: a worker's partition has two records that belong to no
# key, which every key of an engine has for itself.

CONFIGURATION_KEY, FORGOTTEN_KEY = (
    f"{SEPARATOR}{name}".encode() for name in (CONFIGURATION, FORGOTTEN)
)


def shared_records(configuration: bytes, failed: Mapping[str, int], entity: str) -> list[Kept]:
    r"""Return what a key's state holds of the records of a worker's partition.

    Parameters
    ----------
    configuration
        The record that says by which configuration and group the partition was worked on.
    failed
        By entity the nulls that could not be heeded, as the record `forgotten` has them.
    entity
        The entity of the key.

    Examples
    --------
    >>> configuration = state("", CONFIGURATION, {"keyed": True, "environment": {}}, 0).value
    >>> for _, key, value in shared_records(configuration, {"ann": 1}, "ann"):
    ...     print(key, value_of("", key[1:].decode(), value))
    b'\x1fconfiguration' {'keyed': True}
    b'\x1fforgotten' {'n': 0, 'heeded': 0, 'failed': {'ann': 1}}
    >>> [key for _, key, _ in shared_records(configuration, {"ann": 1}, "bob")]
    [b'\x1fconfiguration']

    """
    found: list[Kept] = [("state", CONFIGURATION_KEY, _of_key(configuration))]
    if entity in failed:
        value = {"n": 0, "heeded": 0, "failed": {entity: failed[entity]}}
        record = state("", FORGOTTEN, value, partition=0)
        found.append(("state", FORGOTTEN_KEY, record.value or b""))
    return found


def _of_key(configuration: bytes) -> bytes:
    """Return what each key keeps of the record `configuration`: each has it, so that it be short.

    An engine's keys are worked on in the environment of its processes; none is compared.
    """
    signed = value_of("", CONFIGURATION, configuration)
    short = {name: value for name, value in signed.items() if name != ENVIRONMENT}
    return state("", CONFIGURATION, short, partition=0).value or b""


def state_for_workers(items: Iterable[Kept]) -> list[tuple[bytes, bytes]]:
    r"""Return the records that a key adds to the topic `state` when workers go on with it.

    Those that belong to the partition are not among them. Nulls that could not be heeded have a
    record of the key in place of the partition's: of several keys, compaction would leave one.
    `failed_in_partition` puts them together again.

    Parameters
    ----------
    items
        What is kept of the key.

    Examples
    --------
    >>> configuration = state("", CONFIGURATION, {"keyed": True}, 0).value
    >>> [key for key, _ in state_for_workers(shared_records(configuration, {"ann": 1}, "ann"))]
    [b'ann\x1funheeded']

    """
    found = []
    for topic, key, value in items:
        if topic != "state" or key == CONFIGURATION_KEY:
            continue
        if key == FORGOTTEN_KEY:
            for entity, n in failed_of(value).items():
                record = state(entity, UNHEEDED, n, partition=0)
                found.append((record.key or b"", record.value or b""))
        else:
            found.append((key, value))
    return found


def failed_in_partition(
    kept: Mapping[bytes, bytes | None],
) -> tuple[dict[str, int], list[bytes]]:
    r"""Return the nulls that could not be heeded, by entity, and the keys' own records of them.

    Parameters
    ----------
    kept
        The records of a partition in the topic `state`, the last one of each key.

    Examples
    --------
    >>> configuration, kept = state("", CONFIGURATION, {"keyed": True}, 0).value, {}
    >>> for name in ("ann", "bob"):
    ...     kept.update(state_for_workers(shared_records(configuration, {name: 2}, name)))
    >>> failed_in_partition(kept)
    ({'ann': 2, 'bob': 2}, [b'ann\x1funheeded', b'bob\x1funheeded'])

    """
    failed, own = failed_of(kept.get(FORGOTTEN_KEY)), []
    for key, value in kept.items():
        entity, *name = parts_of(key)
        if name == [UNHEEDED] and value is not None:
            failed[entity] = int(value_of(entity, UNHEEDED, value))
            own.append(key)
    return failed, own


def failed_of(forgotten: bytes | None) -> dict[str, int]:
    """Return the nulls that could not be heeded, by entity, as the bytes of `forgotten` say it.

    Examples
    --------
    >>> failed_of(None)
    {}

    """
    return {} if forgotten is None else failed_in(value_of("", FORGOTTEN, forgotten) or {})


def _is_for_all(record: Outgoing) -> bool:
    """Whether a record of state is written to the topic, too, beside being kept.

    By what was taken back, `streamgp retract --undo` knows which keys to ask.
    """
    _, *name = parts_of(record.key)
    return bool(name) and name[0].startswith(RETRACTED)


def _ignore(_: str) -> None:
    """Be told why a snapshot is not used: there is none."""
