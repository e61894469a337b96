"""Conversations as records, for engines that must write the same: a worker, and Flink.

Built from a list of moves, so that a law can draw them, with every kind of input: events with and
without labels, answers that are in time, late, early, declined or corrections, cancelled requests,
deletions of an example, of a line that was corrected since, or of a whole key, labels of one
annotator that are taken back or restored, and records that cannot be read.

"""

import json
from collections import defaultdict

from connectors.keyed_state import MemoryKeyStore, entity_of
from connectors.topics import COMPACTED, Record
from connectors.wire.inbound import retraction_key
from connectors.wire.state_records import History
from connectors.worker.batch import Batch
from connectors.worker.partition import Partition

MOVES = (
    *("event", "event", "event", "labelled", "labelled", "answer", "answer", "correct", "early"),
    *("decline", "cancel", "again", "withdraw", "forget", "bad", "wait", "wait long"),
    *("retract", "reinstate", "supersede", "supersede", "withdraw"),
)
ANNOTATORS = ("ada", "ben")
SHORT_S, LONG_S = 7.0, 100.0
TRACE = "trace"
"""Header of a pseudo dead letter, which tells what an engine has taken, and when."""


def conversation(moves, *, partition=0, start=1000.0):
    """Return pairs of a record, or None where only time passes, and a time.

    Parameters
    ----------
    moves
        Pairs of a key and one of `MOVES`.
    partition
        The partition of all records.
    start
        Start time, POSIX seconds.

    """
    now, n_events, offsets, steps = start, {}, {}, []
    standing = {}  # the last answer about each event

    def add(topic, key, value, at=None, **fields):
        if topic == "answers" and "answer_id" in value:
            fields["annotator"] = ANNOTATORS[int(value["event_id"][1:]) % 2]
            standing[key, value["event_id"]] = value["answer_id"]
        offset = offsets[topic] = offsets.get(topic, -1) + 1
        data = json.dumps({**value, **fields}).encode() if isinstance(value, dict) else value
        record = Record(
            topic=topic,
            partition=partition,
            offset=offset,
            key=key,
            value=data,
            at=now if at is None else at,
        )
        steps.append((record, now))

    for key, move in moves:
        now += 1.0
        n = n_events.setdefault(key, 0)
        x = {"light": 0.37 * n % 1.0, "noise": float(n % 3)}
        label = "home" if x["light"] < 0.5 else "work"
        event_id, last = f"e{n}", f"e{max(n - 1, 0)}"
        name, record_key = f"a{len(steps)}", key.encode()
        match move:
            case "event" | "labelled":
                n_events[key] += 1
                given = {"y": label} if move == "labelled" else {}
                add("events", record_key, {"event_id": event_id, "x": x, **given})
            case "answer":
                answer = {"answer_id": name, "event_id": last, "y": label}
                add("answers", record_key, answer, request_id=f"{last}/label")
            case "correct":
                add("answers", record_key, {"answer_id": name, "event_id": last, "y": "shop"})
            case "supersede":
                answer = {"answer_id": name, "event_id": last, "y": ("den", "shop")[n % 2]}
                add(
                    "answers", record_key, answer, supersedes=standing.get((record_key, last), last)
                )
            case "early":
                add("answers", record_key, {"answer_id": name, "event_id": event_id, "y": label})
            case "decline":
                answer = {"answer_id": name, "event_id": last, "declined": True}
                add("answers", record_key, answer, request_id=f"{last}/label")
            case "cancel":
                cancel = {"type": "label.cancel", "request_id": f"{last}/label", "why": "enough"}
                add("answers", record_key, cancel)
            case "again":
                add("events", record_key, {"event_id": last, "x": x})
            case "withdraw":
                add("consensus", record_key + b"\x1f" + last.encode() + b"\x1f0", None)
            case "forget":
                add("consensus", record_key, None)
            case "retract" | "reinstate":
                name, undo = ANNOTATORS[len(steps) % 2], move == "reinstate"
                add("consensus", retraction_key(key, name, len(steps), undo=undo), None)
            case "bad":
                add("events", record_key, b"{")
            case "wait":
                now += SHORT_S
                steps.append((None, now))
            case "wait long":
                now += LONG_S
                steps.append((None, now))
    return steps


class OnWorker:
    """A worker's partition: batches of one record, and everything that it has written."""

    def __init__(self, settings, group, number=0, names=None):
        self.settings, self.group, self.number, self.names = settings, group, number, names or {}
        self.partition = Partition(number, settings, None, now=0.0, note=str, group=group)
        self.store = MemoryKeyStore()
        self.written = []

    def step(self, record, now):
        self.step_all([] if record is None else [record], now)

    def step_all(self, records, now):
        """Take records as one batch; without any, only time passes.

        What a null deletes is gone from the topic before a worker reads the null.
        """
        for record in records:
            if record.topic == "consensus":
                self.store.put("consensus", record.key, None)
        held = {self.number: self.partition}
        batch = Batch(held, self.settings, self.group, self.names, self.history, now)
        if not records:
            batch.pass_time(lambda _: False)
        self.take(batch, records)
        for each in batch.finish():
            self.written.append(each)
            if each.topic in COMPACTED:
                self.store.put(each.topic, each.key, each.value)

    def take(self, batch, records):
        batch.take_all(records, list(map(batch.decode, records)), lambda _: None)

    def history(self, _):
        history = History()
        for n, (topic, key, value) in enumerate(self.store.items()):
            history.take(
                Record(topic=topic, partition=self.number, offset=n, key=key, value=value, at=0.0)
            )
        return history


def by_entity(written):
    """Return the records written for each entity; erased lines come last, in no fixed order."""
    found, erased = defaultdict(list), defaultdict(list)
    for each in written:
        if each.topic != "state":
            to = erased if each.topic == "consensus" and each.value is None else found
            to[entity_of(each.topic, each.key, keyed=True)].append(each)
    for entity, those in erased.items():
        found[entity] += sorted(those, key=lambda each: each.key)
    return dict(found)
