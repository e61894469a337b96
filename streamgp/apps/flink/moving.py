"""Moving a deployment from workers to Flink, and back, with everything that was learned.

To Flink: a job loads the topics `state` and `consensus` into Flink's state and ends with a
savepoint, from which the main job continues. Back: the main job processes the inputs up to their
current ends, is drained, and writes the state of each key to the topic `state`; then the group
continues at these ends. In between, the topics say that Flink keeps what is learned, and no worker
starts.

"""

from __future__ import annotations

import logging
import shutil
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from connectors.keyed_state import (
    CONFIGURATION_KEY,
    FORGOTTEN_KEY,
    failed_in_partition,
    failed_of,
)
from connectors.storage.snapshots import write_snapshot
from connectors.topics import COMPACTED, WORKER_INPUTS, Outgoing, Place, Record, TopicName
from connectors.wire import state_records
from connectors.wire.state_records import CONFIGURATION, FORGOTTEN, is_request, value_of
from connectors.worker.compatibility import (
    ON_FLINK,
    ChangedConfigurationError,
    UnfitTopicsError,
    check_signed,
    is_on_flink,
    signature,
)
from connectors.worker.logging import say
from connectors.worker.settings import LoopSettings
from streamgp.apps.console import Stop
from streamgp.apps.deployment.deployment import (
    Deployment,
    check_idle,
    everything,
    marks,
    write_all,
)
from streamgp.apps.flink.cluster import (
    ENDED,
    HANDING,
    TAKEN_OVER,
    TAKING,
    TAKING_OVER,
    TEMPORARY,
    Cluster,
    FlinkJob,
    last_savepoint,
    name_of,
    reason_in,
    was_taken_over,
)
from streamgp.config.validation import ConfigError

if TYPE_CHECKING:
    from connectors.kafka.topics import KafkaTopics

_HANDED_BACK = "handed-back"
_LOOK_EVERY_S = 0.5
_RUNNING_WITHIN_S = 120.0


class Stopped(Exception):  # noqa: N818
    """A signal has arrived."""


_Offsets: TypeAlias = list[tuple[TopicName, int, int]]
"""Topics, partitions and offsets."""
_BEGAN_AT = "positions"
"""Name of the start positions in the record that says that Flink keeps what is learned. For a
partition of which nothing has been read, a checkpoint does not contain them.
"""
_LEARNED_AS = "learned as"
"""Name of the learner's fingerprint in the same record; earlier versions left it out."""
_N_PARTITIONS = "partitions"
"""Name of the number of partitions that the topics had then; likewise."""


class _TakingOver(msgspec.Struct, frozen=True):
    """Progress of a move to Flink on a remote cluster, which no directory shows.

    Parameters
    ----------
    working
        The job that continues from the savepoint of the loading one.

    """

    loading: str
    savepoint: str | None = None
    working: str | None = None


class _HandingBack(msgspec.Struct, frozen=True):
    """Progress of a move back to workers.

    Parameters
    ----------
    ends
        The ends of the inputs.
    begin_at
        Checkpoint or savepoint from which the job continued.
    group
        Kafka group of the job.

    """

    ends: _Offsets
    begin_at: str | None = None
    group: str = ""
    job: str | None = None


_Progress = TypeVar("_Progress", _TakingOver, _HandingBack)


@dataclass(frozen=True, kw_only=True)
class Move:
    """Moves between workers and Flink, in both directions."""

    there: Deployment
    loops: LoopSettings
    cluster: Cluster
    stop: Stop

    # --- from workers to Flink

    def take_over(
        self,
        build: Callable[[str, Mapping[int, Any]], Callable[[Any], None]],
        *,
        saved_at: str | None,
    ) -> str:
        """Load what workers have learned; return the savepoint from which to continue.

        The same call completes an interrupted move. Until the topics say that Flink keeps what is
        learned, workers may learn more, and everything is loaded again; from then on the savepoint
        counts.

        Parameters
        ----------
        build
            Function of a group's name and of each partition's own records; returns a function that
            adds the loading job to an environment.
        saved_at
            Existing checkpoint or savepoint, of an earlier call or of a main job.

        Raises
        ------
        ConfigError
            If the move is impossible.

        """
        check_idle(self.there, "take over")
        directory = self.cluster.checkpoints / TAKING_OVER
        kept = self._marked()
        began_at = _began_at(kept) or self._at()
        if kept:
            found = saved_at or last_savepoint(directory) or self._loaded(began_at)
            if found is None:
                raise ConfigError(
                    "Flink has already taken over; give the savepoint that the log line "
                    "`taken-over` names with --from"
                )
        else:
            if saved_at is not None and not was_taken_over(saved_at):
                raise ConfigError(
                    f"there is {saved_at} to continue from; start without --take-over, or remove "
                    "it first"
                )
            self._end_loading()
            for path in (directory, self.cluster.checkpoints / TAKEN_OVER):
                shutil.rmtree(path, ignore_errors=True)
            found = self._load(build)
        self.mark(began_at)
        if directory.exists():
            directory.rename(self.cluster.checkpoints / TAKEN_OVER)
        return found.replace(f"/{TAKING_OVER}/", f"/{TAKEN_OVER}/")

    def _load(self, build: Callable[[str, Mapping[int, Any]], Callable[[Any], None]]) -> str:
        shared = self.learned()
        group = self._new_group("to-flink")
        progress = _TakingOver(_new_job())
        self._write(self._taking_over, progress)
        job = self.cluster.start(
            name_of(self.there.group, TAKING),
            build(group, shared),
            begin_at=None,
            directory=TAKING_OVER,
            job_id=progress.loading,
        )
        self._wait_until_read(job, group, COMPACTED)
        savepoint = self._savepoint(job, TAKING_OVER, drain=False)
        say(logging.INFO, "taken-over", savepoint=savepoint)
        self._write(self._taking_over, replace(progress, savepoint=savepoint))
        return savepoint

    def left_behind(self) -> list[str]:
        """Return the jobs that earlier calls may have left on a remote cluster."""
        taking, handing = self._read(_TakingOver), self._read(_HandingBack)
        jobs = [] if taking is None else [taking.loading]
        return jobs if handing is None or handing.job is None else [*jobs, handing.job]

    def new_working_job(self) -> str | None:
        """Return the id for the job that continues after the takeover; None for any."""
        progress = self._read(_TakingOver)
        if progress is None:
            return None
        progress = replace(progress, working=_new_job())
        self._write(self._taking_over, progress)
        return progress.working

    def working_job(self) -> str | None:
        """Return the job that continues after the takeover, if an earlier call submitted it.

        Raises
        ------
        ConfigError
            If it has since ended.

        """
        progress = self._read(_TakingOver)
        if progress is None or progress.working is None:
            return None
        status = self.cluster.status_of(progress.working)
        if status in ENDED:
            raise ConfigError(
                f"job {progress.working} has gone on from what was taken over, and has ended "
                f"({status}); go on without --take-over, and with its last checkpoint or savepoint "
                "as --from"
            )
        return None if status is None else progress.working

    def has_taken_over(self) -> None:
        """Delete the progress of the move: the main job exists."""
        self._taking_over.unlink(missing_ok=True)

    def _end_loading(self) -> None:
        """Cancel the loading job of an earlier call: workers may have learned more since."""
        progress = self._read(_TakingOver)
        if progress is not None:
            if self.cluster.status_of(progress.loading) not in (None, *ENDED):
                self.cluster.attach(progress.loading).cancel()
                say(logging.INFO, "cancelled", job=progress.loading)
            self._taking_over.unlink()

    def _loaded(self, began_at: _Offsets) -> str | None:
        """Return an earlier call's savepoint on a remote cluster, unless a job has continued."""
        progress = self._read(_TakingOver)
        if progress is None or progress.savepoint is None:
            return None
        if began_at != self._at():
            raise ConfigError(
                "Flink has worked on what was taken over; go on without --take-over, and with the "
                "last checkpoint or savepoint of its job as --from"
            )
        return progress.savepoint

    def _at(self) -> _Offsets:
        positions = self.there.topics.positions(self.there.group)
        return [(*place, at) for place, at in sorted(positions.items())]

    @property
    def _taking_over(self) -> Path:
        """File with the progress of an unfinished move to Flink on a remote cluster."""
        return self.cluster.checkpoints / "take-over.json"

    def _marked(self) -> dict[int, dict[str, Any]]:
        """Return the marks of these partitions."""
        marked: dict[int, dict[str, Any]] = {}
        for record in everything(self.there.topics, "state", what="looking"):
            if record.key == CONFIGURATION_KEY:
                marked.pop(record.partition, None)
                if is_mark(record):
                    found = value_of("", CONFIGURATION, record.value or b"")
                    marked[record.partition] = found
        return marked

    def mark(self, began_at: _Offsets | None = None) -> None:
        """Mark all partitions as kept by Flink.

        Parameters
        ----------
        began_at
            Where it began to read the inputs; None for the start of each partition, before
            anything is learned.

        """
        configuration = signature(self.loops.configuration, self.there.group)
        configuration[_LEARNED_AS] = configuration["fingerprint"]
        configuration[_N_PARTITIONS] = self.there.topics.n_partitions()
        if began_at is not None:
            marked = self._marked()
            for kept in marked.values():
                configuration[_LEARNED_AS] = kept.get(_LEARNED_AS)
                configuration[_N_PARTITIONS] = _partitions_in(marked)
        self._sign({**configuration, "fingerprint": ON_FLINK, _BEGAN_AT: began_at or []})

    def check_configuration(self) -> None:
        """Check that what Flink keeps was learned with this configuration, if the topics tell.

        Raises
        ------
        ConfigError
            If it was another one, or that of another group.

        """
        for number, kept in self._marked().items():
            learned_as = kept.get(_LEARNED_AS)
            if learned_as is None:
                continue
            theirs = {**kept, "fingerprint": learned_as}
            try:
                check_signed(number, theirs, self.loops.configuration, self.there.group)
            except ChangedConfigurationError as error:
                raise ConfigError(
                    f"{error}; before `streamgp rebuild`, hand back what Flink keeps, with the "
                    "former configuration (`streamgp flink --hand-back`), and afterwards continue "
                    "with --take-over"
                ) from None
            except UnfitTopicsError as error:
                raise ConfigError(str(error)) from None

    def check_partitions(self) -> None:
        """Check that the topics have not been given more partitions since Flink began.

        Raises
        ------
        ConfigError
            If they were: keys would begin with new learners.

        """
        marked = self._marked()
        then, now = _partitions_in(marked), self.there.topics.n_partitions()
        if marked and then != now:
            raise more_partitions(then, now)

    def learned(self) -> dict[int, tuple[bytes, dict[str, int]]]:
        """Return each partition's own records, after checking that they are this deployment's."""
        configurations: dict[int, bytes] = {}
        failed: dict[int, dict[str, int]] = {}
        nulls: set[int] = set()
        positions = self.there.topics.positions(self.there.group)
        for record in everything(self.there.topics, *COMPACTED, what="looking"):
            if record.topic == "state" and record.value is not None:
                if record.key == CONFIGURATION_KEY:
                    configurations[record.partition] = record.value
                elif record.key == FORGOTTEN_KEY:
                    failed[record.partition] = failed_of(record.value)
            elif _is_behind(record, positions):
                nulls.add(record.partition)
        for number, value in configurations.items():
            found = value_of("", CONFIGURATION, value)
            try:
                check_signed(number, found, self.loops.configuration, self.there.group)
            except UnfitTopicsError as error:
                raise ConfigError(str(error)) from None
        if not configurations:
            raise ConfigError(
                f"no worker of group {self.there.group} has learned anything; start without "
                "--take-over"
            )
        if nulls:
            raise ConfigError(
                f"partition {min(nulls)}: the workers have not yet processed a deletion; start "
                "them, wait until they have read everything, stop them, and try again"
            )
        return {n: (value, failed.get(n, {})) for n, value in configurations.items()}

    # --- from Flink to workers

    def hand_back(
        self,
        build: Callable[[str, Mapping[Place, int], bool], Callable[[Any], None]],
        *,
        begin_at: str | None,
    ) -> None:
        """Write the state of each key to the topic `state`, so that workers continue from there.

        The same call completes an interrupted move.

        Parameters
        ----------
        build
            Function of a group's name, the ends of the inputs, and whether only written results are
            to be committed; returns a function that adds the job to an environment.
        begin_at
            Checkpoint or savepoint to go on from.

        Raises
        ------
        ConfigError
            If there is nothing to hand back.

        """
        check_idle(self.there, "hand back")
        progress = self._read(_HandingBack)
        kept = self._marked()
        if progress is not None and (not kept or len(kept) < _partitions_in(kept)):
            self._sign_for_workers()  # the group's positions are set, and may have advanced
            return
        if not kept:
            raise ConfigError(
                "there is nothing to hand back: according to the topics, the workers hold what was "
                "learned; start them"
            )
        job = None
        if progress is not None and progress.job is not None:
            job, begin_at = self._left(progress, progress.job, begin_at)
        if progress is None or job is None:
            progress, job = self._start_handing(build, progress, kept, begin_at)
        ends = _by_place(progress.ends)
        self._wait_until_read(job, progress.group, WORKER_INPUTS, ends)
        self._savepoint(job, _HANDED_BACK, drain=True)
        self._wait_for_end(job)
        self._put_workers(ends, _partitions_in(kept))
        self._sign_for_workers()

    def _start_handing(
        self,
        build: Callable[[str, Mapping[Place, int], bool], Callable[[Any], None]],
        before: _HandingBack | None,
        marked: Mapping[int, Mapping[str, Any]],
        begin_at: str | None,
    ) -> tuple[_HandingBack, FlinkJob]:
        """Start the job that hands back; `before` is the progress of an earlier call."""
        began_at = _began_at(marked)
        drained = self._drained()
        if drained is None and begin_at is None:
            raise ConfigError(
                "there is no checkpoint or savepoint to hand back; name it with --from"
            )
        ends = self._begin(began_at, _partitions_in(marked)) if before is None else before.ends
        progress = _HandingBack(
            ends,
            begin_at=begin_at,
            group=self._new_group("to-workers", began_at),
            job=None if self.cluster.remote is None else _new_job(),
        )
        self._write(self._plan, progress)
        job = self.cluster.start(
            name_of(self.there.group, HANDING),
            build(progress.group, _by_place(ends), drained is not None),
            begin_at=drained or begin_at,
            is_taken_over=drained is None and was_taken_over(begin_at),
            job_id=progress.job,
        )
        return progress, job

    def _left(
        self, progress: _HandingBack, job_id: str, begin_at: str | None
    ) -> tuple[FlinkJob | None, str | None]:
        """Return the job that an earlier call left on a remote cluster, and where to start.

        The job is None if it must be started again; its results count together with its savepoint.
        """
        begin_at = begin_at or progress.begin_at
        status = self.cluster.status_of(job_id)
        if status in ("CANCELED", "FAILED"):
            return None, self.cluster.saved_by(job_id) or progress.begin_at
        if status is not None:
            say(logging.INFO, "goes-on", job=job_id, status=status)
            return self.cluster.attach(job_id), begin_at
        # It was never submitted, or the cluster has forgotten it.
        if begin_at == progress.begin_at and self._topics.positions(progress.group):
            raise ConfigError(
                f"the cluster no longer knows job {job_id}, which an earlier `streamgp flink "
                "--hand-back` has left there; run it again with the last checkpoint or savepoint "
                f"of that job as --from (.../{job_id}/chk-N), no earlier one"
            )
        return None, begin_at

    def check_not_begun(self) -> None:
        """Refuse to run the main job if a move back was interrupted.

        Raises
        ------
        ConfigError
            If there is an unfinished move back.

        """
        if self._plan.exists():
            raise ConfigError(
                "an earlier `streamgp flink --hand-back` was interrupted; run it again"
            )

    @property
    def _plan(self) -> Path:
        """File with the ends of the inputs, while a move back is unfinished."""
        return self.cluster.checkpoints / "hand-back.json"

    def erase_state(self) -> None:
        """Delete everything in the topic `state` except the marks."""
        old = {
            (record.partition, record.key)
            for record in everything(self.there.topics, "state", what="looking")
            if record.key is not None and record.value is not None
        }
        erased = (
            Outgoing(topic="state", partition=number, key=key, value=None)
            for number, key in sorted(old)
            if key != CONFIGURATION_KEY
        )
        write_all(self.there, erased, program="upkeep")

    def _begin(self, began_at: _Offsets, n_partitions: int) -> _Offsets:
        """Decide up to where Flink processes the inputs, now that only its state counts.

        Of partitions that the topics were given since it began, it processes nothing.
        """
        backlog = self.there.topics.backlog(self.there.group)
        ends = [
            (topic, number, of.end if number < n_partitions else 0)
            for (topic, number), of in backlog.items()
        ]
        self.mark(began_at)
        self.erase_state()
        self._write(self._plan, _HandingBack(ends))
        return ends

    def _put_workers(self, ends: Mapping[Place, int], n_partitions: int) -> None:
        """Set the group's positions to the ends of what Flink has processed.

        Workers refuse topics with another number of partitions than Flink began with.
        """
        self._topics.set_positions(self.there.group, ends, n_partitions=n_partitions)
        write_all(self.there, self.forgotten(ends), program="upkeep")

    def forgotten(self, ends: Mapping[Place, int]) -> list[Outgoing]:
        """Return the record `forgotten` of each partition, with the nulls counted by its keys.

        The keys' own records are deleted afterwards.
        """
        numbers = range(self.there.topics.n_partitions())
        kept: dict[int, dict[bytes, bytes | None]] = {number: {} for number in numbers}
        for record in everything(self.there.topics, "state", what="looking"):
            kept[record.partition][record.key or b""] = record.value
        n = time.time_ns() // 1_000_000  # unlike any worker's snapshot: workers count from 0
        records = []
        for number, those in kept.items():
            failed, own = failed_in_partition(those)
            value = {"n": n, "heeded": ends["consensus", number], "failed": failed}
            records.append(state_records.state("", FORGOTTEN, value, number))
            records += [
                Outgoing(topic="state", partition=number, key=key, value=None) for key in own
            ]
        return records

    def _sign_for_workers(self) -> None:
        """Sign all partitions for workers; the checkpoints are void from then on."""
        self._sign(signature(self.loops.configuration, self.there.group))
        for path in self.cluster.checkpoints.iterdir():
            if path.is_dir() and path.name != TEMPORARY:
                shutil.rmtree(path)
        self._plan.unlink()  # last: while it exists, the move is unfinished
        say(logging.INFO, "handed-back", group=self.there.group)

    # --- both directions

    def _sign(self, configuration: Mapping[str, Any]) -> None:
        numbers = range(self.there.topics.n_partitions())
        write_all(self.there, marks(numbers, configuration), program="upkeep")

    def _new_group(self, direction: str, began_at: _Offsets | None = None) -> str:
        # A new group: only this job's positions count.
        group = f"{self.there.group}-{direction}-{time.time_ns() // 1_000_000}"
        if began_at:
            self._topics.set_positions(group, _by_place(began_at))
        return group

    def _wait_until_read(
        self,
        job: FlinkJob,
        group: str,
        topics: Sequence[TopicName],
        ends: Mapping[Place, int] | None = None,
    ) -> None:
        """Wait until a job has committed positions at the ends of all inputs, or at given ends."""
        numbers = range(self.there.topics.n_partitions())
        left = {(topic, n) for topic in topics for n in numbers}
        while not job.has_ended():  # drained by an earlier call
            # Before the first checkpoint, everything is still to be read.
            found = self._topics.positions(group, topics)
            left = {
                place
                for place in self.there.topics.readable(
                    {place: found.get(place, 0) for place in left}
                )
                if ends is None or found.get(place, 0) < ends[place]
            }
            if not left:
                return
            self._pause(job)

    def _pause(self, job: FlinkJob) -> None:
        if self.stop():
            job.cancel()
            raise Stopped
        time.sleep(_LOOK_EVERY_S)

    def _savepoint(self, job: FlinkJob, kind: str, *, drain: bool) -> str:
        """Stop a job with a savepoint once all of its tasks are running."""
        until = time.monotonic() + _RUNNING_WITHIN_S
        while not (drain and job.has_ended()):  # by an earlier call
            future = job.stop_with_savepoint(self.cluster.savepoints(kind), drain=drain)
            while not future.done():
                time.sleep(_LOOK_EVERY_S)
            error = future.exception()
            if error is None:
                return str(future.result())
            if time.monotonic() > until:
                raise ConfigError(f"no savepoint could be made: {reason_in(str(error))}")
            self._pause(job)
            job.has_ended()
        return ""

    def _wait_for_end(self, job: FlinkJob) -> None:
        while not job.has_ended():
            time.sleep(_LOOK_EVERY_S)

    @property
    def _topics(self) -> KafkaTopics:
        """The topics: Flink runs only on Kafka."""
        from connectors.kafka.topics import KafkaTopics

        assert isinstance(self.there.topics, KafkaTopics)
        return self.there.topics

    def _read(self, kind: type[_Progress]) -> _Progress | None:
        """Read the progress of a move, which is stored beside the checkpoints."""
        path = self._plan if kind is _HandingBack else self._taking_over
        if not path.exists() or (kind is _TakingOver and self.cluster.remote is None):
            return None
        return msgspec.json.decode(path.read_bytes(), type=kind)

    def _write(self, path: Path, progress: _TakingOver | _HandingBack) -> None:
        if path == self._plan or self.cluster.remote is not None:
            write_snapshot(path, msgspec.json.encode(progress))

    def _drained(self) -> str | None:
        if self.cluster.remote is not None:
            return None
        return last_savepoint(self.cluster.checkpoints / _HANDED_BACK)


def is_mark(record: Record) -> bool:
    """Return whether a record of the topic `state` marks a partition as kept by Flink."""
    return (
        record.key == CONFIGURATION_KEY
        and record.value is not None
        and is_on_flink(value_of("", CONFIGURATION, record.value))
    )


def _is_behind(record: Record, positions: Mapping[Place, int]) -> bool:
    """Return whether a record is a request to delete that the group has not read."""
    place = (record.topic, record.partition)
    is_new = record.offset >= positions.get(place, 0)
    return record.topic == "consensus" and is_request(record) and is_new


def _by_place(offsets: _Offsets) -> dict[Place, int]:
    return {(topic, number): n for topic, number, n in offsets}


def _began_at(marked: Mapping[int, Mapping[str, Any]]) -> _Offsets:
    """Return where Flink began to read, from the mark of any partition."""
    for value in marked.values():
        if _BEGAN_AT in value:
            return [(topic, number, n) for topic, number, n in value[_BEGAN_AT]]
    return []


def _partitions_in(marked: Mapping[int, Mapping[str, Any]]) -> int:
    """Return the number of partitions when Flink began; earlier versions marked each, no more."""
    return max((int(value.get(_N_PARTITIONS, len(marked))) for value in marked.values()), default=0)


def more_partitions(then: int, now: int) -> ConfigError:
    """Return why a job does not work on topics with more partitions than before."""
    return ConfigError(
        f"the topics have {now} partitions, but had {then} when Flink began: keys have moved to "
        "other partitions than what was learned of them; hand it back (`streamgp flink "
        "--hand-back`), make seven new topics ([topics] prefix), and move it there by streamgp "
        "backup and restore"
    )


def _new_job() -> str:
    return uuid.uuid4().hex
