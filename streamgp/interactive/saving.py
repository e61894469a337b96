"""A loop as a snapshot and back.

It holds the labelled examples, which are in the consensus log as well, and what `plain_state.py`
names. How a snapshot is laid out in bytes is told in `snapshot.py`.

"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from struct import Struct
from typing import Any, Protocol

from streamgp.base import Example, Features, State
from streamgp.interactive.conversation import Moderator
from streamgp.interactive.learner import SkepticalLearner
from streamgp.interactive.memory import Memory
from streamgp.interactive.messages import LabelledExample
from streamgp.interactive.plain_state import head_of, plain_record, record_of, resume
from streamgp.interactive.snapshot import Snapshot
from streamgp.plain import features_of, plain_features

KIND = "a loop"


class Resumable(SkepticalLearner, Protocol):
    """A skeptical learner that can be taken up again after a restart, equal to the last bit."""

    def fingerprint(self) -> str:
        """Return what stands for its configuration."""

    def examples(self) -> list[Example]:
        """Return the labelled examples that it holds, in the order learned."""

    def state(self) -> State:
        """Return what its decisions depend on beside the examples, as plain JSON values."""

    def load_state(self, state: State, examples: Sequence[Example]) -> None:
        """Become what `state` and `examples` were taken from."""


def save(
    model: Any,
    memory: Memory,
    moderator: Moderator,
    spans: State,
    fingerprint: str,
    environment: Mapping[str, Any] | None,
) -> bytes:
    """Return a loop as a snapshot.

    Parameters
    ----------
    model, memory, moderator
        What the loop consists of.
    spans
        The other arguments of the loop.
    fingerprint
        That of the model.
    environment
        The numerical environment, None to leave it out.

    """
    examples = model.examples()
    held = {example.event_id for example in examples}
    plain, blob = plain_examples(examples)
    records = []
    for record in memory:
        event_id = record.event.event_id
        # The features of what was learned in this conversation are those of its example.
        with_x = not (record.is_learned and event_id in held)
        alarm = moderator.deadlines.number(event_id)
        records.append([record.page, *plain_record(record, alarm, with_x=with_x)])
    body = {
        "spans": spans,
        "head": head_of(model, memory, moderator),
        "examples": plain,
        "records": records,
    }
    return Snapshot(
        kind=KIND, fingerprint=fingerprint, body=body, blobs=[blob], environment=environment
    ).to_bytes()


def load(snapshot: Snapshot, model: Any, memory: Memory, moderator: Moderator) -> None:
    """Make a new loop what a snapshot was taken from."""
    body = snapshot.body
    examples = examples_of(body["examples"], *snapshot.blobs)
    learned = {example.event_id: example for example in examples}
    records = [(page, *record_of(plain, learned.get)) for page, *plain in body["records"]]
    resume(body["head"], records, examples, model, memory, moderator)


def check_resumable(model: Any) -> None:
    """Refuse a model that cannot be saved."""
    missing = [
        m for m in ("fingerprint", "examples", "state", "load_state") if not hasattr(model, m)
    ]
    if missing:
        raise TypeError(
            f"{type(model).__name__} cannot be saved; give it the methods {', '.join(missing)}, "
            "or use SkepticalClassifier"
        )


def examples_in(log: Iterable[LabelledExample]) -> list[Example]:
    """Return what a consensus log leaves of one key's examples, in the order learned.

    Parameters
    ----------
    log
        The lines of one key, in any order; `sequence` says how they follow each other.

    Examples
    --------
    >>> line = dict(event_id="e1", x={"light": 0.5}, learned_at=0.0)
    >>> log = [
    ...     LabelledExample(sequence=1, y="home", origin="asked", **line),
    ...     LabelledExample(sequence=2, y="work", origin="revised", revision=1, **line),
    ... ]
    >>> [example.y for example in examples_in(log)]
    ['work']

    """
    held: dict[str, Example] = {}
    read_on(held, log)
    return list(held.values())


def read_on(held: dict[str, Example], log: Iterable[LabelledExample]) -> None:
    """Apply further lines of a consensus log to the examples that a model holds, by event id."""
    for line in sorted(log, key=lambda line: line.sequence):
        if line.y is None or line.revision == 0:
            # The first line about an event: if an earlier conversation left some in a compacted
            # log, they are no longer about an example that is held.
            held.pop(line.event_id, None)
        if line.y is not None:
            held[line.event_id] = Example(
                event_id=line.event_id, x=line.x, y=line.y, privileged=line.privileged
            )


def plain_examples(examples: Sequence[Example]) -> tuple[State, bytes]:
    """Return examples as plain values, and their features in binary where that is possible."""
    body: State = {"ids": [e.event_id for e in examples], "labels": [e.y for e in examples]}
    if any(e.privileged is not None for e in examples):
        # Without any as it was before there were some: snapshots stay what they are.
        body["privileged"] = [e.privileged and plain_features(e.privileged) for e in examples]
    names = _common_names(examples)
    if names is None:
        return {**body, "x": [plain_features(e.x) for e in examples]}, b""
    pack = Struct(f"<{len(names)}d").pack
    return {**body, "names": names}, b"".join([pack(*e.x.values()) for e in examples])


def _common_names(examples: Sequence[Example]) -> list[str] | None:
    """Return the names of the features, if all examples have the same and all are floats."""
    if not examples:
        return None
    names = list(examples[0].x)
    alike = all(list(e.x) == names for e in examples) and all(type(n) is str for n in names)
    values = chain.from_iterable(e.x.values() for e in examples)
    return names if names and alike and all(type(v) is float for v in values) else None


def examples_of(body: State, blob: bytes) -> list[Example]:
    """Return the examples that plain values stand for."""
    xs: list[Features]
    if "names" in body:
        names = body["names"]
        rows = Struct(f"<{len(names)}d").iter_unpack(blob)
        xs = [dict(zip(names, row, strict=True)) for row in rows]
    else:
        xs = [features_of(x) for x in body["x"]]
    privileged = body.get("privileged", [None] * len(xs))
    return [
        Example(event_id=event_id, x=x, y=y, privileged=known and features_of(known))
        for event_id, x, y, known in zip(body["ids"], xs, body["labels"], privileged, strict=True)
    ]
