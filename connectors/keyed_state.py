r"""State of one key in a stream engine's store: loaded, processed, written back.

A stream engine (`connectors.flink`) delivers the records of a key one after the other, stores some
bytes for each key, and calls back at a requested time. `KeyedState` builds a loop from these bytes
and passes it the records through the worker's own `Batch`, so that an engine and a worker write and
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
    FORGOTTEN,
    RETRACTED,
    SEPARATOR,
    UNHEEDED,
    History,
    parts_of,
    state,
    value_of,
)
from connectors.worker.batch import Batch
from connectors.worker.compatibility import ENVIRONMENT, check_signed
from connectors.worker.losses import failed_in
from connectors.worker.partition import Partition
from connectors.worker.settings import SETTINGS, LoopSettings

Kept: TypeAlias = tuple[TopicName, bytes, bytes]
"""`state` or `consensus`, key and value of a record."""


class KeyStore(Protocol):
    """An engine's store for one key; it changes in the same transaction as the outputs."""

    def items(self) -> Iterable[Kept]:
        """Return everything, in any order."""

    def put(self, topic: TopicName, key: bytes, value: bytes | None) -> None:
        """Replace a record; None removes it."""

    def clear(self) -> None:
        """Drop everything."""


class KeyedState:
    r"""The loop of one key of one partition, with everything that is stored for it.

    An object is valid only while its store holds what the object wrote: after a failure, when the
    store returns to an earlier state, the engine must create a new object.

    Parameters
    ----------
    number
        The partition from which the key's records come, and to which results are written.
    settings
        Settings of the loop. A total budget applies to many keys and is refused.
    store
        Records stored for the key.
    group
        Group that the written records name as their source.
    names
        Names of the topics on the broker.
    now
        The time, POSIX seconds.

    Raises
    ------
    ValueError
        If there is a total budget.
    UnfitTopicsError
        If another configuration or group has written the store, or its records do not belong
        together.

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

    # _partition  the loop, as on a worker, in a partition with only this key
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
        # The engine takes care of the other keys.
        self._settings = replace(settings, max_keys=None)
        self._store = store
        self._group = group
        self._names = names
        self._number = number
        self._load(now)

    def step(self, record: Record, now: float) -> list[Outgoing]:
        """Process one record of the key, and return the records to write.

        The store has been updated when it returns.
        """
        batch = self._batch(now)
        batch.take(record, batch.decode(record))
        out = self._finish(batch, now)
        if record.topic == "consensus" and record.value is None and record.key is not None:
            self._store.put("consensus", record.key, None)  # its producer has deleted the line
        return out

    def on_time(self, now: float) -> list[Outgoing]:
        """End everything that is due before `now`, and return the records to write."""
        batch = self._batch(now)
        # Whether events are waiting is not known here; an answer has waited long enough by now.
        batch.pass_time(lambda _: False)
        return self._finish(batch, now)

    def next_deadline(self) -> float | None:
        """Return the earliest time after which `on_time` has something to do, or None."""
        held = self._partition
        deadlines = [held.loops.next_deadline(), held.early.next_deadline()]
        if held.windows is not None:
            deadlines.append(held.windows.next_deadline())
        return min((at for at in deadlines if at is not None), default=None)

    # --- internal

    def _load(self, now: float) -> None:
        self._partition = Partition(
            self._number, self._settings, None, now=now, note=_ignore, group=self._group
        )
        history = self._history()
        if history.ends:
            self._partition.bring_up(history)
            # A key does not record its environment; see `_of_key`.
            self._partition.is_signed = history.configuration is not None

    def _history(self) -> History:
        history = History()
        # In an order that does not depend on the engine's.
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
        """Replace a record; None removes it."""
        if value is None:
            self._kept.pop((topic, key), None)
        else:
            self._kept[topic, key] = value

    def clear(self) -> None:
        """Drop everything."""
        self._kept.clear()


def entity_of(topic: TopicName, key: bytes | None, *, keyed: bool) -> bytes:
    r"""Return the entity of a record, from its key alone: records of one entity share a state.

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
# key; in an engine every key has its own copy.

CONFIGURATION_KEY, FORGOTTEN_KEY = (
    f"{SEPARATOR}{name}".encode() for name in (CONFIGURATION, FORGOTTEN)
)


def shared_records(configuration: bytes, failed: Mapping[str, int], entity: str) -> list[Kept]:
    r"""Return a key's copies of the records that a worker keeps for a whole partition.

    Parameters
    ----------
    configuration
        The record of the configuration and group that have processed the partition.
    failed
        By entity, the number of nulls that could not be carried out, as in the record `forgotten`.
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
    """Return a key's copy of the record `configuration`, shortened, as every key stores one.

    An engine processes its keys in the environment of its own processes; none is compared.
    """
    signed = value_of("", CONFIGURATION, configuration)
    left_out = (ENVIRONMENT, SETTINGS)
    short = {name: value for name, value in signed.items() if name not in left_out}
    return state("", CONFIGURATION, short, partition=0).value or b""


def state_for_workers(items: Iterable[Kept]) -> list[tuple[bytes, bytes]]:
    r"""Return the records that a key adds to the topic `state` when workers take it over.

    The partition's own records are not among them. The nulls that could not be carried out are in a
    record of the key instead of the partition's: compaction would keep only one key's record of the
    partition. `failed_in_partition` merges them again.

    Parameters
    ----------
    items
        Records stored for the key.

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


def check_kept(number: int, items: Iterable[Kept], settings: LoopSettings, group: str) -> None:
    r"""Check that a key's records were written with these settings, without building its loop.

    Parameters
    ----------
    number
        The key's partition.
    items
        Records stored for the key.

    Raises
    ------
    UnfitTopicsError
        If another configuration or group has written them.

    Examples
    --------
    >>> from streamgp import isgp
    >>> there = state("", CONFIGURATION, {"fingerprint": "5f", "keyed": True}, 2).value
    >>> check_kept(2, shared_records(there, {}, "ann"), LoopSettings(model=isgp(seed=1)), "rooms")
    Traceback (most recent call last):
    connectors.worker.compatibility.ChangedConfigurationError: partition 2 was processed with ...

    """
    for _, key, value in items:
        if key == CONFIGURATION_KEY:
            check_signed(number, value_of("", CONFIGURATION, value), settings.configuration, group)


def failed_in_partition(
    kept: Mapping[bytes, bytes | None],
) -> tuple[dict[str, int], list[bytes]]:
    r"""Return how many nulls could not be carried out, by entity, and the keys' records of them.

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
    """Return how many nulls could not be carried out, by entity, from the record `forgotten`.

    Examples
    --------
    >>> failed_of(None)
    {}

    """
    return {} if forgotten is None else failed_in(value_of("", FORGOTTEN, forgotten) or {})


def _is_for_all(record: Outgoing) -> bool:
    """Return whether a record of state is also written to the topic, besides being stored.

    From the records of labels taken back, `streamgp retract --undo` knows which keys to ask.
    """
    _, *name = parts_of(record.key)
    return bool(name) and name[0].startswith(RETRACTED)


def _ignore(_: str) -> None:
    """Ignore why a snapshot is not used: there is none."""
