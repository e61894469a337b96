"""Keyed function: the loop of each key, with its state in Flink's keyed state."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pyflink.common import Row, Types
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import MapState, MapStateDescriptor

from connectors.keyed_state import (
    Kept,
    KeyedState,
    check_kept,
    entity_of,
    shared_records,
    state_for_workers,
)
from connectors.topics import COMPACTED, Outgoing, Record, TopicName
from connectors.worker.settings import LoopSettings
from streamgp.common.environment import use_one_thread

BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
HEADERS = Types.MAP(Types.STRING(), BYTES)
OUTPUT = Types.ROW_NAMED(
    ["partition", "topic", "key", "value", "headers"],
    [Types.INT(), Types.STRING(), BYTES, BYTES, HEADERS],
)
"""A record to write: its partition, and the columns of the sink."""
END = 2**63 - 1
"""The event time at which the inputs end: a key's state is then handed back to workers."""
_LOADED_WITHIN_MS = 60_000


def record_of(row: Row, roles: Mapping[str, TopicName]) -> Record:
    topic, partition, offset, at, headers, key, value = row
    return Record(
        topic=roles[topic],
        partition=partition,
        offset=offset,
        key=key,
        value=value,
        headers=list((headers or {}).items()),
        at=(at.seconds * 1000 + at.nanos // 1_000_000) / 1e3,
    )


def row_of(record: Outgoing, names: Mapping[TopicName, str]) -> Row:
    headers = dict(record.headers)
    return Row(record.partition, names[record.topic], record.key, record.value, headers)


def state_key(row: Row, roles: Mapping[str, TopicName], *, keyed: bool) -> str:
    """Return the key of Flink's state to which a row of the source belongs: partition and entity.

    As on a worker, a key that occurs in two partitions has a loop in each.
    """
    # Keys that are not UTF-8 remain distinct; their records become dead letters.
    entity = entity_of(roles[row[0]], row[5], keyed=keyed).decode(errors="backslashreplace")
    return f"{row[1]}:{entity}"


class FlinkStore:
    """The records of the current key in Flink's keyed state."""

    def __init__(self, context: RuntimeContext) -> None:
        self._maps: dict[TopicName, MapState] = {
            topic: context.get_map_state(MapStateDescriptor(topic, BYTES, BYTES))
            for topic in COMPACTED
        }

    def items(self) -> Iterator[Kept]:
        """Return everything, in any order."""
        for topic, records in self._maps.items():
            for key, value in records.items():
                yield topic, bytes(key), bytes(value)

    def put(self, topic: TopicName, key: bytes, value: bytes | None) -> None:
        """Keep a record in place of what was there; None: nothing is there any longer."""
        if value is None:
            self._maps[topic].remove(key)
        else:
            self._maps[topic].put(key, value)

    def clear(self) -> None:
        for records in self._maps.values():
            records.clear()


class LoopFunction(KeyedProcessFunction):  # type: ignore[misc]
    """Processes the records and timers of each key, and returns the records to write.

    Parameters
    ----------
    make_settings
        Returns the settings of the loops; called once in each process of the operator.
    group
        Group that the written records name as their source.
    names
        Names of the topics on the broker.
    hands_back
        Whether each key's state is written to the topic `state` when the inputs end.
    is_drained
        Whether that has been done. Then no records and no timers are processed: the job only
        commits what was written.

    """

    # _live    loops of the last used keys, the oldest first; empty after a failure, when Flink
    #          creates another function and resets its state to the last checkpoint
    # _timers  the timer set for each of these keys, in milliseconds
    def __init__(
        self,
        make_settings: Callable[[], LoopSettings],
        *,
        group: str,
        names: Mapping[TopicName, str],
        hands_back: bool = False,
        is_drained: bool = False,
    ) -> None:
        self._make_settings = make_settings
        self._is_drained = is_drained
        self._hands_back = hands_back
        self._group = group
        self._names = dict(names)
        self._roles = {name: topic for topic, name in names.items()}

    def open(self, runtime_context: RuntimeContext) -> None:
        use_one_thread()
        self._settings = self._make_settings()
        self._store = FlinkStore(runtime_context)
        self._live: OrderedDict[str, KeyedState] = OrderedDict()
        self._timers: dict[str, int] = {}

    def process_element(self, value: Row, ctx: Any) -> Iterable[Row]:
        """Pass one record to the loop of its key."""
        record = record_of(value, self._roles)
        now = time.time()
        state = self._state(ctx, now)
        return self._done(state, state.step(record, now), ctx)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Row]:
        """End everything that is due for a key."""
        if self._is_drained:
            return []
        key = ctx.get_current_key()
        if timestamp == END:
            return self._handed_back(key) if self._hands_back else []
        if self._timers.get(key) == timestamp:
            del self._timers[key]
        # The clock of this process may be behind the clock of Flink's.
        now = max(time.time(), timestamp / 1e3)
        state = self._state(ctx, now)
        return self._done(state, state.on_time(now), ctx)

    # --- internal

    def _state(self, ctx: Any, now: float) -> KeyedState:
        key = ctx.get_current_key()
        state = self._live.get(key)
        if state is None:
            ctx.timer_service().register_event_time_timer(END)
            number = int(key.partition(":")[0])
            state = KeyedState(
                number,
                self._settings,
                self._store,
                group=self._group,
                names=self._names,
                now=now,
            )
            self._live[key] = state
            most = self._settings.max_keys
            if most is not None and len(self._live) > most:
                oldest, _ = self._live.popitem(last=False)
                self._timers.pop(oldest, None)
        else:
            self._live.move_to_end(key)
        return state

    def _done(self, state: KeyedState, written: list[Outgoing], ctx: Any) -> list[Row]:
        self._set_timer(ctx.get_current_key(), state.next_deadline(), ctx.timer_service())
        return [row_of(record, self._names) for record in written]

    def _handed_back(self, key: str) -> list[Row]:
        number = int(key.partition(":")[0])
        items = list(self._store.items())
        # A key without inputs since the start has not been compared with this configuration.
        check_kept(number, items, self._settings, self._group)
        kept = state_for_workers(items)
        return [
            row_of(Outgoing(topic="state", partition=number, key=name, value=value), self._names)
            for name, value in kept
        ]

    def _set_timer(self, key: str, deadline: float | None, timers: Any) -> None:
        """Keep one timer for a key, at the first millisecond after its next deadline."""
        at = None if deadline is None else int(deadline * 1e3) + 1
        before = self._timers.get(key)
        if at == before:
            return
        if before is not None:
            timers.delete_processing_time_timer(before)
            del self._timers[key]
        if at is not None:
            timers.register_processing_time_timer(at)
            self._timers[key] = at


class LoadFunction(KeyedProcessFunction):  # type: ignore[misc]
    """Stores, for each key, what workers have written to the topics `state` and `consensus`.

    Parameters
    ----------
    names
        Names of the topics on the broker.
    shared
        For each partition, what belongs to no key: the record of its configuration, and by entity
        the number of nulls that could not be carried out.

    """

    def __init__(
        self,
        names: Mapping[TopicName, str],
        shared: Mapping[int, tuple[bytes, Mapping[str, int]]],
    ) -> None:
        self._roles = {name: topic for topic, name in names.items()}
        self._shared = dict(shared)

    def open(self, runtime_context: RuntimeContext) -> None:
        self._store = FlinkStore(runtime_context)
        self._later = int(1e3 * time.time()) + _LOADED_WITHIN_MS

    def process_element(self, value: Row, ctx: Any) -> Iterable[Row]:
        record = record_of(value, self._roles)
        self._store.put(record.topic, record.key or b"", record.value)
        if record.value is not None:
            number, _, entity = ctx.get_current_key().partition(":")
            for kept in shared_records(*self._shared[int(number)], entity):
                self._store.put(*kept)
            # Once the loops run, it fires at once and sets each key's own timer.
            ctx.timer_service().register_processing_time_timer(self._later)
            ctx.timer_service().register_event_time_timer(END)
        return []

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Row]:
        """Postpone the timer, which is for the loops."""
        later = timestamp + _LOADED_WITHIN_MS
        ctx.timer_service().register_processing_time_timer(later)
        return []
