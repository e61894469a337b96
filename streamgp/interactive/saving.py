"""What a loop must not forget, as plain values and back.

Beside the labelled examples, which the consensus log holds as well: the state of the model, the
conversations within the answer horizon, the open requests and their deadlines. How a snapshot is
laid out in bytes is told in `snapshot.py`.

"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from struct import Struct
from typing import Any, Protocol

from streamgp.base import Example, Features, State
from streamgp.interactive.consensus import SkepticalLearner
from streamgp.interactive.conversation import Moderator
from streamgp.interactive.memory import Memory
from streamgp.interactive.messages import Event, LabelledExample
from streamgp.interactive.records import Question, Record, Word
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


def save(model: Any, memory: Memory, moderator: Moderator, spans: State) -> bytes:
    """Return a loop as a snapshot.

    Parameters
    ----------
    model, memory, moderator
        What the loop consists of.
    spans
        The other arguments of the loop.

    """
    check_resumable(model)
    examples = model.examples()
    learned = {example.event_id: example for example in examples}
    plain, blob = plain_examples(examples)
    body = {
        "spans": spans,
        "sequence": moderator.consensus.sequence,
        "model": model.state(),
        "examples": plain,
        "records": [plain_record(record, learned.get) for record in memory],
        "deadlines": moderator.deadlines.items(),
    }
    return Snapshot(kind=KIND, fingerprint=model.fingerprint(), body=body, blobs=[blob]).to_bytes()


def load(snapshot: Snapshot, model: Any, memory: Memory, moderator: Moderator) -> None:
    """Make a new loop what a snapshot was taken from."""
    body = snapshot.body
    examples = examples_of(body["examples"], *snapshot.blobs)
    model.load_state(body["model"], examples)
    learned = {example.event_id: example for example in examples}
    for plain in body["records"]:
        memory.take_over(record_of(plain, learned.get))
    for event_id, at in body["deadlines"]:
        moderator.deadlines.set(event_id, at)
    moderator.consensus.sequence = body["sequence"]


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
    for line in sorted(log, key=lambda line: line.sequence):
        if line.y is None:
            held.pop(line.event_id, None)
        else:
            held[line.event_id] = Example(event_id=line.event_id, x=line.x, y=line.y)
    return list(held.values())


def plain_examples(examples: Sequence[Example]) -> tuple[State, bytes]:
    """Return examples as plain values, and their features in binary where that is possible."""
    body: State = {"ids": [e.event_id for e in examples], "labels": [e.y for e in examples]}
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
    return [
        Example(event_id=event_id, x=x, y=y)
        for event_id, x, y in zip(body["ids"], xs, body["labels"], strict=True)
    ]


def plain_record(record: Record, learned: Callable[[str], Example | None]) -> list[Any]:
    """Return a conversation as plain values; features that an example has are left to it."""
    event, request, word = record.event, record.request, record.word
    example = learned(event.event_id)
    return [
        event.event_id,
        event.key,
        event.occurred_at,
        None if example is not None and example.x == event.x else plain_features(event.x),
        record.state,
        record.standing,
        record.was_asked,
        record.n_challenges,
        record.revision,
        record.answer_ids,
        None if request is None else [request.request_id, request.expires_at],
        None
        if word is None
        else [
            word.y,
            word.origin,
            word.answer_id,
            word.annotator,
            word.late,
            None if word.privileged is None else dict(word.privileged),
        ],
    ]


def record_of(plain: list[Any], learned: Callable[[str], Example | None]) -> Record:
    """Return the conversation that plain values stand for."""
    event_id, key, occurred_at, x, state, standing, asked, n, revision, ids, request, word = plain
    if x is None:
        example = learned(event_id)
        if example is None:
            raise ValueError(f"event {event_id!r} has neither features nor a labelled example")
        x = example.x
    else:
        x = features_of(x)
    record = Record(Event(event_id=event_id, key=key, x=x, occurred_at=occurred_at))
    record.state = state
    record.standing = standing
    record.was_asked = asked
    record.n_challenges = n
    record.revision = revision
    record.answer_ids = ids
    if request is not None:
        record.request = Question(request_id=request[0], expires_at=request[1])
    if word is not None:
        y, origin, answer_id, annotator, late, privileged = word
        record.word = Word(
            y=y,
            origin=origin,
            answer_id=answer_id,
            annotator=annotator,
            late=late,
            privileged=privileged,
        )
    return record
