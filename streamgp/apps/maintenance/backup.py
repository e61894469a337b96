"""Backup and restore of what workers have learned (`streamgp backup`, `streamgp restore`).

For each partition, a backup contains the current records of `state` and `consensus` at a time when
no batch was half written, the questions open then, and the positions at which the workers continue.
Restored on any broker, the same inputs from there on get the same predictions, bitwise, and
annotators see the same questions.

A restore first marks every partition, and signs it with the configuration at the end: whatever
happens in between, no worker continues with an incomplete restore, and the same command completes
it. Where it was interrupted among the marks, workers of the partitions without one see those of the
others.

"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from time import time, time_ns
from typing import Any, TypeAlias

import click
from msgspec.structs import replace

from connectors.storage.backups import (
    REQUESTS,
    BackupError,
    Contents,
    Manifest,
    check_free,
    read_backup,
    write_backup,
)
from connectors.topics import (
    COMPACTED,
    WORKER_INPUTS,
    Checkpoint,
    Outgoing,
    Place,
    Record,
    partition_of,
)
from connectors.wire import state_records
from connectors.wire.codec import DecodeError, message_in
from connectors.wire.outbound import Outbound
from connectors.wire.state_records import (
    CONFIGURATION,
    EARLY,
    FORGOTTEN,
    History,
    HistoryError,
    is_foreign,
    is_request,
    line_of,
    parts_of,
)
from connectors.worker.compatibility import (
    BEING_RESTORED,
    UnfitTopicsError,
    check_signed,
)
from connectors.worker.losses import failed_in, forgotten_in, losses_in
from connectors.worker.settings import LoopSettings, source_of
from streamgp import __version__
from streamgp.apps.console import agreed, clock_time, in_one_line, number
from streamgp.apps.deployment.contents import empty_partition, histories_of, loops_in
from streamgp.apps.deployment.deployment import (
    Deployment,
    all_of,
    build_loops,
    check_idle,
    everything,
    marks,
    readable_topics,
    visit,
    write_all,
    write_state,
)
from streamgp.interactive.keyed import BUDGET
from streamgp.interactive.messages import Challenge, LabelRequest
from streamgp.interactive.state.serialize import HEAD

_N_TRIES = 6
_BACKUP = "backup"
"""Name of the checksum of the backup in the mark of a partition that is being restored."""


# --- taking a backup

_Waiting: TypeAlias = tuple[int, str, str]
"""An open question: its partition, the entity of its learner, and its id."""


def back_up(config_file: Path, directory: Path, *, broker: str | None) -> None:
    """Write a backup of what the workers of a deployment have learned.

    Raises
    ------
    click.ClickException
        If the directory is not empty, or the topics belong to another group or configuration, or
        have lost records.

    """
    with in_one_line(BackupError):
        check_free(directory)  # before all topics are read
    with visit(config_file, broker) as there:
        loops = build_loops(there.config, source=str(config_file))
        at = time()
        with readable_topics(there.config), in_one_line(UnfitTopicsError):
            checkpoint, contents, histories, waiting = _consistent_contents(there, loops, at)
        if not any(contents.values()):
            raise click.ClickException(
                f"no worker of group {there.group} has learned anything; there is nothing to back "
                "up"
            )
        questions = _questions(there, loops, waiting)
        contents |= questions
        n_lost = len(waiting) - sum(map(len, questions.values()))
        if n_lost:
            click.echo(
                f"{number(n_lost, 'open question')} no longer in topic {there.name_of(REQUESTS)}, "
                "and not in the backup: after a restore no annotator sees them"
            )
        manifest = Manifest(
            group=there.group,
            streamgp=__version__,
            at=at,
            # Topics that were given more partitions have keys where the former number puts them.
            n_partitions=1 + max(partition for _, partition in checkpoint.ends),
            configuration=_configuration(histories.values()),
            positions=_by_topic(checkpoint.positions),
        )
        with in_one_line(BackupError):
            beside = {"positions.csv": _positions_file(there, manifest)}
            written = write_backup(directory, manifest, contents, beside)
        n_bytes = sum(file.n_bytes for file in written.files)
        click.echo(
            f"{_told(histories.values(), contents)} in "
            f"{number(manifest.n_partitions, 'partition')} "
            f"backed up to {directory} ({n_bytes / 1e6:.1f} MB)"
        )


def _positions_file(there: Deployment, manifest: Manifest) -> bytes:
    """Return the positions for `kafka-consumer-groups.sh --reset-offsets --from-file`.

    Where the group had none, it had read nothing, but may have since: it is set to the start.

    """
    lines = [
        f"{there.name_of(topic)},{partition},{manifest.positions[topic].get(partition, 0)}\n"
        for topic in WORKER_INPUTS
        if topic != "consensus"
        for partition in range(manifest.n_partitions)
    ]
    return "".join(lines).encode()


def _consistent_contents(
    there: Deployment, loops: LoopSettings, at: float
) -> tuple[Checkpoint, dict[Place, list[Outgoing]], dict[int, History], set[_Waiting]]:
    """Return a checkpoint, its records, and the questions open then, once they belong together.

    A broker that compacts may remove records that were replaced between the checkpoint and the
    reading. Therefore nearly everything is read before the checkpoint; if something is missing from
    the rest, another checkpoint is taken.
    """
    for n in range(1, _N_TRIES + 1):
        with closing(there.topics.reader(COMPACTED)) as reader:
            contents = _Contents()
            for record in all_of(reader, what="reading"):
                contents.take(record)
            checkpoint = there.topics.checkpoint(there.group)
            contents.begin_rest(checkpoint)
            reader.look_again()
            for record in all_of(reader, what="reading"):
                contents.take(record)
        are_at_work = there.n_workers() > 0
        if are_at_work and contents.has_gaps():
            continue
        found = contents.found()
        histories = _histories(found)
        with contents.naming_places():
            for partition, history in histories.items():
                check_signed(partition, history.configuration, loops.configuration, there.group)
            try:
                _check_complete(histories)
                return checkpoint, found, histories, _waiting(histories, loops, at)
            except (HistoryError, UnfitTopicsError):
                if n == _N_TRIES or not are_at_work:
                    raise
    raise click.ClickException(
        "the broker compacts state and consensus faster than they can be read; try again when less "
        "comes in, or stop the workers first"
    )


class _Contents:
    """Current records before a checkpoint, which comes after most of them were read."""

    # _last        by place and key, the last record before the checkpoint, in their order
    # _checkpoint  the checkpoint, None before it
    # _latest      by place, the last record before the checkpoint
    # _rest        the places with records in the rest
    # _n_gaps      how often records are missing before a record of the rest
    def __init__(self) -> None:
        self._last: dict[Place, dict[bytes, Record]] = {}
        self._checkpoint: Checkpoint | None = None
        self._latest: dict[Place, Record] = {}
        self._rest: set[Place] = set()
        self._n_gaps = 0

    def begin_rest(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint

    def take(self, record: Record) -> None:
        place = (record.topic, record.partition)
        checkpoint = self._checkpoint
        if checkpoint is not None:
            if record.offset >= checkpoint.ends.get(place, 0):
                return
            before = self._latest.get(place)
            self._n_gaps += before is not None and _is_gap(before, record.offset, record.at)
            self._rest.add(place)
        self._latest[place] = record
        if record.key is not None:
            last = self._last.setdefault(place, {})
            last.pop(record.key, None)
            last[record.key] = record

    def has_gaps(self) -> bool:
        """Return whether records may be missing that were written shortly before the checkpoint."""
        assert self._checkpoint is not None
        ends = self._checkpoint.ends
        return self._n_gaps > 0 or any(
            _is_gap(self._latest[place], ends[place], None) for place in self._rest
        )

    @contextmanager
    def naming_places(self) -> Iterator[None]:
        """Let errors about records name their places in the topic, not those in the backup."""
        try:
            yield
        except (HistoryError, UnfitTopicsError):
            records = (record for last in self._last.values() for record in last.values())
            for history in histories_of(records).values():
                for topic, key, what in history.unreadable():
                    if topic == "consensus" or not is_foreign(key):
                        raise HistoryError(what) from None
            raise

    def found(self) -> dict[Place, list[Outgoing]]:
        """Return the records that count."""
        checkpoint = self._checkpoint
        assert checkpoint is not None
        contents = {
            place: [
                _outgoing(record)
                for record in self._last.get(place, {}).values()
                if _counts(record, checkpoint)
            ]
            for place in checkpoint.ends
        }
        for request in checkpoint.waiting:
            contents["consensus", request.partition or 0].append(request)
        return contents


def _is_gap(before: Record, offset: int, at: float | None) -> bool:
    """Return whether records are missing between a record and the next offset.

    The end of a transaction takes an offset, too; the records of one have the same time.
    """
    return offset - before.offset - 1 > (at != before.at)


def _counts(record: Record, checkpoint: Checkpoint) -> bool:
    """Return whether a record is kept; of tombstones, only unprocessed requests."""
    if record.value is not None:
        if record.topic == "state":
            return not is_foreign(record.key)
        return len(parts_of(record.key)) == 3
    is_waiting = record.topic == "consensus" and is_request(record)
    return is_waiting and record.offset >= checkpoint.heeded[record.partition]


def _outgoing(record: Record) -> Outgoing:
    return Outgoing(
        topic=record.topic, partition=record.partition, key=record.key, value=record.value
    )


def _waiting(histories: Mapping[int, History], loops: LoopSettings, at: float) -> set[_Waiting]:
    """Return the questions that wait for an answer, according to the loops."""
    found: set[_Waiting] = set()
    for n, history in histories.items():
        partition = empty_partition(n, loops, at)
        partition.bring_up(history)
        found |= {
            (n, loops.entity(key), request_id)
            for key, request_id, _ in partition.loops.open_events()
        }
    return found


def _questions(
    there: Deployment, loops: LoopSettings, waiting: Collection[_Waiting]
) -> dict[Place, list[Outgoing]]:
    """Return the last record of each open question."""
    if not waiting:
        return {}
    last: dict[_Waiting, Record] = {}
    for record in everything(there.topics, REQUESTS, what="reading questions"):
        request = _request_of(record.value)
        if request is not None:
            place = record.partition, loops.entity(request.key), request.request_id
            if place in waiting:
                last.pop(place, None)
                last[place] = record
    found: dict[Place, list[Outgoing]] = {}
    for record in last.values():
        found.setdefault((REQUESTS, record.partition), []).append(_outgoing(record))
    return found


def _request_of(value: bytes | None) -> LabelRequest | Challenge | None:
    """Return the question in a record, None if it contains none, such as the end of a question."""
    request = message_in(value)
    return request if isinstance(request, LabelRequest | Challenge) else None


def _histories(contents: Contents) -> dict[int, History]:
    """Return the histories of records, by partition."""
    histories: dict[int, History] = {}
    for (topic, partition), records in sorted(contents.items(), reverse=True):
        if topic == REQUESTS:
            continue
        history = histories.setdefault(partition, History())
        for record in records:
            history.append(record)
    return dict(sorted(histories.items()))


def _check_complete(histories: Mapping[int, History]) -> None:
    for partition, history in histories.items():
        if (lost := losses_in(partition, history).error()) is not None:
            raise lost


def _configuration(histories: Iterable[History]) -> dict[str, Any] | None:
    found = (history.configuration for history in histories)
    return next((each for each in found if each is not None), None)


def _by_topic(positions: Mapping[Place, int]) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {topic: {} for topic in WORKER_INPUTS}
    for (topic, partition), offset in sorted(positions.items()):
        found[topic][partition] = offset
    return found


def _told(histories: Iterable[History], contents: Contents) -> str:
    n_learners = n_lines = 0
    n_questions = sum(len(kept) for (topic, _), kept in contents.items() if topic == REQUESTS)
    for history in histories:
        for entity in history.entities():
            n_learners += HEAD in history.names(entity)
            n_lines += len(history.consensus_keys(entity))
    return (
        f"{number(n_learners, 'learner')} with {number(n_lines, 'line')} of consensus and "
        f"{number(n_questions, 'open question')}"
    )


# --- restoring a backup


def restore(config_file: Path, directory: Path, *, yes: bool, broker: str | None) -> None:
    """Write a backup into the empty topics of a deployment.

    Raises
    ------
    click.ClickException
        If the backup is damaged or of another configuration, the topics are not empty, workers are
        running, or their group has processed inputs that the backup does not cover.

    """
    with in_one_line(BackupError):
        manifest, contents = read_backup(directory)
    with visit(config_file, broker) as there:
        if manifest.group != there.group:
            raise click.ClickException(
                f"{directory} is a backup of group {manifest.group!r}, and {config_file} names "
                f"{there.group!r}; set worker.group to {manifest.group!r}, and restore into a "
                "directory, or to another broker, if workers of that group go on"
            )
        loops = build_loops(there.config, source=str(config_file))
        check_idle(there, "restore")
        n_partitions = there.topics.n_partitions()
        try:
            histories = _histories(contents)
            _check_complete(histories)
            target = _Target(n_partitions=n_partitions, is_alike=len(histories) == n_partitions)
            signed = _signed(histories, loops, there.group, target)
            if not target.is_alike:
                _check_apart(histories, loops, directory)
            records = _moved(histories, contents, loops, there.group, target)
        except (HistoryError, DecodeError, UnfitTopicsError) as error:
            raise click.ClickException(f"{directory}: {error}") from None
        completed = _completed(there, manifest.checksum, n_partitions)
        _check_positions(there, manifest, directory, completed, is_alike=target.is_alike)
        click.echo(
            f"{directory}: {_told(histories.values(), contents)}, of {clock_time(manifest.at)}\n"
            f"it covers the inputs before these offsets: {_offsets_told(manifest)}\n"
            "it still holds what was forgotten or taken back since then: once workers run, repeat "
            "these commands"
        )
        if loops.total_budget is not None and not target.is_alike:
            click.echo(
                "the total budget of each partition starts over: the number of partitions has "
                "changed"
            )
        if completed:
            click.echo(
                f"an interrupted restore has completed {number(len(completed), 'partition')} of "
                f"{n_partitions}; only the others are written"
            )
        if not agreed(f"write this to {there.url}?", yes=yes):
            return
        check_idle(there, "restore")
        _write(
            there,
            {n: each for n, each in signed.items() if n not in completed},
            [record for record in records if record.partition not in completed],
            manifest.checksum,
        )
        click.echo(f"restored to {number(n_partitions, 'partition')}; now start the workers")


def _write(
    there: Deployment,
    signed: Mapping[int, Mapping[str, Any]],
    records: Sequence[Outgoing],
    backup: str,
) -> None:
    """Write records to partitions, which are marked before and signed afterwards."""
    mark = {"fingerprint": BEING_RESTORED, _BACKUP: backup}
    write_state(there, marks(list(signed), {**next(iter(signed.values())), **mark}))
    write_state(there, [record for record in records if record.value is not None])
    # Workers will read these as inputs.
    write_all(there, [record for record in records if record.value is None], program="upkeep")
    write_state(there, [mark for n, each in signed.items() for mark in marks([n], each)])


def _signed(
    histories: Mapping[int, History], loops: LoopSettings, group: str, target: _Target
) -> dict[int, dict[str, Any]]:
    """Return the signature of every future partition, after checking that all belong to us."""
    for partition, history in histories.items():
        check_signed(partition, history.configuration, loops.configuration, group)
    any_one = _configuration(histories.values())
    if any_one is None:  # no worker leaves such topics, but a manifest can be edited
        raise UnfitTopicsError("no partition has a record of its configuration")
    numbers = range(target.n_partitions)
    return {n: (target.is_alike and histories[n].configuration) or any_one for n in numbers}


def _check_apart(histories: Mapping[int, History], loops: LoopSettings, directory: Path) -> None:
    """Refuse a backup in which a key has several learners: they cannot move to one partition."""
    learner_in: dict[str, int] = {}
    for loop in loops_in(histories, keyed=loops.keyed):
        other = learner_in.setdefault(loop.entity, loop.partition)
        if other != loop.partition:
            raise click.ClickException(
                f"{directory}: {loop.name!r} has a learner in each of the partitions {other} and "
                f"{loop.partition}, as its producers choose partitions differently; restore it "
                f"into topics with {number(len(histories), 'partition')}, as in the backup"
            )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """Partitions of the topics to which a backup is restored.

    Parameters
    ----------
    is_alike
        Whether they are as many as in the backup; if not, each entity moves to the partition of its
        key.

    """

    n_partitions: int
    is_alike: bool

    def of(self, entity: str, partition: int) -> int:
        """Return the partition to which the records of an entity move."""
        if self.is_alike:
            return partition
        return partition_of(entity.encode() if entity else None, self.n_partitions)


def _moved(
    histories: Mapping[int, History],
    contents: Contents,
    loops: LoopSettings,
    group: str,
    target: _Target,
) -> list[Outgoing]:
    """Return the records to write, except the configuration."""
    outbound = Outbound(source_of(group), keyed=loops.keyed)
    records: list[Outgoing] = []
    for (topic, partition), kept in sorted(contents.items(), reverse=True):
        for record in kept:
            if topic == REQUESTS:
                question = _request_of(record.value)
                if question is not None:
                    to = target.of(loops.entity(question.key), partition)
                    records.append(outbound.message(question, to))
                continue
            entity, *names = parts_of(record.key)
            to = target.of(entity, partition)
            if topic == "consensus":
                records.append(_line(record, outbound, to))
            elif not _is_converted(entity, names[0], target.is_alike):
                records.append(replace(record, partition=to))
    if not target.is_alike:
        records += _moved_early(histories, target)
    return records + _forgotten(histories, target)


def _moved_early(histories: Mapping[int, History], target: _Target) -> Iterator[Outgoing]:
    """Yield the answers that wait for their event; their names are their positions."""
    for partition, history in histories.items():
        for entity, name, value in history.early():
            to = target.of(entity, partition)
            # Offsets of different partitions must remain distinct.
            offset = int(name.rpartition(":")[2]) * len(histories) + partition
            yield from state_records.records_of_part(
                entity, f"{EARLY}answers:{to}:{offset}", value, to
            )


def _forgotten(histories: Mapping[int, History], target: _Target) -> list[Outgoing]:
    """Return the record `forgotten` of each partition."""
    failed: list[dict[str, int]] = [{} for _ in range(target.n_partitions)]
    for partition, history in histories.items():
        for entity, n in failed_in(forgotten_in(history)).items():
            failed[target.of(entity, partition)][entity] = n
    # Offsets start again. The time is a number that no worker has counted to: no earlier snapshot
    # can be merged.
    began = time_ns() // 1_000_000
    return [
        state_records.state("", FORGOTTEN, {"n": began, "heeded": 0, "failed": entities}, partition)
        for partition, entities in enumerate(failed)
    ]


def _is_converted(entity: str, name: str, is_alike: bool) -> bool:
    """Return whether a record of state is not copied unchanged."""
    if not entity and name in (CONFIGURATION, FORGOTTEN):
        return True
    return not is_alike and ((not entity and name == BUDGET) or name.startswith(EARLY))


def _line(record: Outgoing, outbound: Outbound, partition: int) -> Outgoing:
    """Return a line of the consensus log with a worker's headers."""
    if record.value is None:
        return replace(record, partition=partition)
    written = outbound.message(line_of(record.key, record.value), partition)
    return replace(record, partition=partition, headers=written.headers)


def _completed(there: Deployment, backup: str, n_partitions: int) -> set[int]:
    """Return the partitions that an interrupted restore of a backup has completed.

    Partitions are signed only once everything is written, so signed ones beside marked ones are
    complete, and workers may have continued there. Topics in which anything else was learned are
    refused.
    """
    records = everything(there.topics, *COMPACTED, what="looking")
    held = histories_of(record for record in records if record.value is not None)
    signed = {n: history.configuration or {} for n, history in held.items()}
    marked = {n for n, each in signed.items() if each.get("fingerprint") == BEING_RESTORED}
    if any(signed[n].get(_BACKUP) != backup for n in marked):
        raise click.ClickException(
            "an earlier `streamgp restore` of another backup was interrupted: run it again with "
            f"that one, or delete topics {there.name_of('state')} and {there.name_of('consensus')} "
            "and make them again with --create-topics"
        )
    others = sorted(held.keys() - marked)
    is_last_step = bool(marked) and len(held) == n_partitions and all(signed.values())
    if others and not is_last_step:
        raise click.ClickException(
            f"topics {there.name_of('state')} and {there.name_of('consensus')} are not empty "
            f"(partition {others[0]}): restore into new topics (another prefix in [topics], or "
            "another directory), or delete both and make them again with --create-topics"
        )
    return set(others)


def _check_positions(
    there: Deployment,
    manifest: Manifest,
    directory: Path,
    completed: Collection[int],
    *,
    is_alike: bool,
) -> None:
    """Refuse a group that has processed inputs that the backup does not cover."""
    for (topic, partition), position in sorted(there.topics.positions(there.group).items()):
        if partition in completed:
            continue
        known = manifest.positions.get(topic, {}).get(partition, 0) if is_alike else 0
        if topic != "consensus" and position > known:
            raise click.ClickException(
                f"{directory} is older than the positions of group {there.group}: of topic "
                f"{there.name_of(topic)} partition {partition} it has worked off everything before "
                f"offset {position}, and the backup knows what came before {known}; restore a "
                "newer backup, or into new topics, or first set the group back to the offsets of "
                "the backup, so that what came since is worked off once more"
            )


def _offsets_told(manifest: Manifest) -> str:
    """Return the positions of `events` and `answers` on one line."""
    return ", ".join(
        f"{topic} " + " ".join(f"{n}:{offset}" for n, offset in manifest.positions[topic].items())
        for topic in WORKER_INPUTS
        if topic != "consensus" and manifest.positions.get(topic)
    )
