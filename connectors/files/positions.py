"""How far a worker has come in a directory of topics: one small file, replaced as a whole.

Its replacement is the moment at which everything that a worker has written and read counts.

"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec

from connectors.files.layout import in_words
from connectors.storage.snapshots import StateError, read_snapshot, write_snapshot
from connectors.topics import WORKER_INPUTS, LinkError, RefusedError, TopicName

POSITION = "position.json"
"""The name of the file."""
LOGS: dict[TopicName, str] = {
    "answers": "answers.jsonl",
    "events": "events.jsonl",
    "predictions": "predictions.jsonl",
    "requests": "requests.jsonl",
    "consensus": "consensus.jsonl",
    "state": "state.jsonl",
    "dead-letters": "dead-letters.jsonl",
}
"""Where the records of each topic lie."""
INPUT_LOGS: dict[TopicName, str] = {
    topic: "taken-back.jsonl" if topic == "consensus" else LOGS[topic] for topic in WORKER_INPUTS
}
"""What a worker reads, and others write: examples taken back have a file of their own."""
OUTPUT_LOGS: dict[TopicName, str] = {
    topic: name for topic, name in LOGS.items() if name not in INPUT_LOGS.values()
}
"""What a worker writes, and nobody else."""

Offset: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class Position(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far everything has come.

    Parameters
    ----------
    version
        Of this description.
    identity
        Drawn when the topics were made.
    ends
        The end of what counts, of each topic that a worker writes.
    groups
        Of each group of workers, where it reads on in each of its inputs.

    """

    version: Literal[1] = 1
    identity: str
    ends: dict[TopicName, Offset]
    groups: dict[str, dict[TopicName, Offset]] = {}

    def of(self, group: str) -> dict[TopicName, int]:
        """Return where a group reads on."""
        return {topic: self.groups.get(group, {}).get(topic, 0) for topic in INPUT_LOGS}


_decoder = msgspec.json.Decoder(Position)


def beginning() -> Position:
    """Return the position of new topics."""
    return Position(identity=secrets.token_hex(8), ends=dict.fromkeys(OUTPUT_LOGS, 0))


def read_position(directory: Path) -> Position:
    """Return what the file says.

    Raises
    ------
    LinkError
        If it cannot be read; RefusedError if it is not there or damaged.

    """
    path = directory / POSITION
    try:
        data = read_snapshot(path)
    except StateError as error:
        raise LinkError(str(error)) from error
    if data is None:
        raise RefusedError(f"{path} is not there; make the topics with --create-topics")
    try:
        position = _decoder.decode(data)
    except (msgspec.MsgspecError, ValueError) as error:
        raise RefusedError(
            f"{path} is damaged ({error}); bring it back, or begin anew in another directory"
        ) from None
    if position.ends.keys() != OUTPUT_LOGS.keys():
        raise RefusedError(
            f"{path} is damaged (ends of {', '.join(sorted(position.ends))}, expected "
            f"{', '.join(sorted(OUTPUT_LOGS))}); bring it back, or begin anew in another directory"
        )
    return position


def write_position(directory: Path, position: Position) -> None:
    """Replace the file.

    Raises
    ------
    LinkError
        If that is not possible, or not certain.

    """
    try:
        write_snapshot(directory / POSITION, msgspec.json.encode(position) + b"\n")
    except StateError as error:
        raise in_words("cannot write", error) from error
