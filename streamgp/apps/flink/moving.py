"""Moving a deployment from workers to Flink, and back, with everything that was learned.

There, a job loads the topics `state` and `consensus` into Flink's state and ends with a savepoint,
from which the job that works goes on. Back, the job takes the inputs up to their present ends, is
drained, and writes the state of each key to the topic `state`; then the group reads on at these
ends. In between the topics say that Flink keeps what is learned, and no worker starts.

"""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connectors.keyed_state import (
    CONFIGURATION_KEY,
    FORGOTTEN_KEY,
    failed_in_partition,
    failed_of,
)
from connectors.storage.snapshots import write_snapshot
from connectors.topics import COMPACTED, WORKER_INPUTS, Outgoing, Place, Record, TopicName
from connectors.wire import state_records
from connectors.wire.state_records import CONFIGURATION, ERASED_BY, value_of
from connectors.worker.compatibility import (
    ON_FLINK,
    UnfitTopicsError,
    check_signed,
    signature,
)
from connectors.worker.losses import FORGOTTEN
from connectors.worker.settings import LoopSettings
from streamgp.apps.console import Stop
from streamgp.apps.deployment.deployment import Deployment, everything, write_all
from streamgp.apps.flink.cluster import (
    HANDING,
    TAKEN_OVER,
    TAKING,
    TAKING_OVER,
    TEMPORARY,
    Cluster,
    last_savepoint,
    name_of,
    reason_in,
    stop_with_savepoint,
    was_taken_over,
)
from streamgp.apps.maintenance.rebuild import check_idle, marks
from streamgp.apps.worker.logging import say
from streamgp.config.validation import ConfigError

_HANDED_BACK = "handed-back"
_LOOK_EVERY_S = 0.5
_RUNNING_WITHIN_S = 120.0


class Stopped(Exception):  # noqa: N818
    """A signal has come."""


@dataclass(frozen=True, kw_only=True)
class Move:
    """What both ways need.

    Parameters
    ----------
    there
        The deployment.
    loops
        What its loops are made of.
    cluster
        Where jobs run.
    stop
        Says whether a signal has come.

    """

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
        """Load what workers have learned; return the savepoint to go on from.

        What was interrupted is brought to its end by the same call. Until the topics say that Flink
        keeps what is learned, workers may have learned more, and it is loaded once more; from then
        on what is saved counts.

        Parameters
        ----------
        build
            Given the name of a group and what of each partition belongs to no key, returns what
            adds the loading job to an environment.
        saved_at
            What there is to go on from: of an earlier call, or of a job that has worked.

        Raises
        ------
        ConfigError
            If it cannot be taken over.

        """
        check_idle(self.there, "take over")
        directory = self.cluster.checkpoints / TAKING_OVER
        if self.kept_by_flink():
            found = saved_at or last_savepoint(directory)
            if found is None:
                raise ConfigError(
                    "Flink has taken over already; name what was saved by then with --from, as the "
                    "line `taken-over` of the log has it"
                )
        else:
            if saved_at is not None and not was_taken_over(saved_at):
                raise ConfigError(
                    f"there is {saved_at} to go on from; start without --take-over, or take that "
                    "away first"
                )
            for path in (directory, self.cluster.checkpoints / TAKEN_OVER):
                shutil.rmtree(path, ignore_errors=True)
            found = self._load(build)
        self.mark()
        if directory.exists():
            directory.rename(self.cluster.checkpoints / TAKEN_OVER)
        return found.replace(f"/{TAKING_OVER}/", f"/{TAKEN_OVER}/")

    def _load(self, build: Callable[[str, Mapping[int, Any]], Callable[[Any], None]]) -> str:
        shared = self.learned()
        group = self._new_group("to-flink")
        job = self.cluster.start(
            name_of(self.there.group, TAKING),
            build(group, shared),
            begin_at=None,
            directory=TAKING_OVER,
        )
        self._wait_until_read(job, group, COMPACTED)
        savepoint = self._savepoint(job, TAKING_OVER, drain=False)
        say(logging.INFO, "taken-over", savepoint=savepoint)
        return savepoint

    def kept_by_flink(self) -> set[int]:
        """Return the partitions of which the topics say that Flink keeps what is learned."""
        kept = {}
        for record in everything(self.there.topics, "state", what="looking"):
            if record.key == CONFIGURATION_KEY:
                kept[record.partition] = is_mark(record)
        return {number for number, is_kept in kept.items() if is_kept}

    def mark(self) -> None:
        """Have the topics say that Flink keeps what is learned."""
        configuration = signature(self.loops.configuration, self.there.group)
        self._sign({**configuration, "fingerprint": ON_FLINK})

    def learned(self) -> dict[int, tuple[bytes, dict[str, int]]]:
        """Return what belongs to no key, once all was found to be of this deployment."""
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
            elif record.value is None and _is_behind(record, positions):
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
                f"partition {min(nulls)}: something was deleted that the workers have not heeded; "
                "start them, wait until they have read everything, stop them, and try again"
            )
        return {n: (value, failed.get(n, {})) for n, value in configurations.items()}

    # --- from Flink to workers

    def hand_back(
        self,
        build: Callable[[str, Mapping[Place, int], bool], Callable[[Any], None]],
        *,
        begin_at: str | None,
    ) -> None:
        """Write the state of each key to the topic `state`, and have workers go on from there.

        What was interrupted is brought to its end by the same call.

        Parameters
        ----------
        build
            Given the name of a group, the ends of the inputs, and whether only what was written
            for them is to be committed, returns what adds the job to an environment.
        begin_at
            Checkpoint or savepoint to go on from.

        Raises
        ------
        ConfigError
            If there is nothing to hand back.

        """
        check_idle(self.there, "hand back")
        ends = _read(self._plan)
        kept = self.kept_by_flink()
        if ends is not None and len(kept) < self.there.topics.n_partitions():
            self._sign_for_workers()  # the group's positions are set, and may have gone on since
            return
        if not kept:
            raise ConfigError(
                "nothing is to be handed back: the topics say that workers keep what is learned; "
                "start them"
            )
        drained = self._drained()
        if drained is None and begin_at is None:
            raise ConfigError(
                "there is no checkpoint or savepoint to hand back; name it with --from"
            )
        if ends is None:
            ends = self._begin()
        group = self._new_group("to-workers")
        job = self.cluster.start(
            name_of(self.there.group, HANDING),
            build(group, ends, drained is not None),
            begin_at=drained or begin_at,
            is_taken_over=drained is None and was_taken_over(begin_at),
        )
        self._wait_until_read(job, group, WORKER_INPUTS, ends)
        self._savepoint(job, _HANDED_BACK, drain=True)
        self._wait_for_end(job)
        self._put_workers(ends)
        self._sign_for_workers()

    def check_not_begun(self) -> None:
        """Refuse to go on working where the way back was interrupted.

        Raises
        ------
        ConfigError
            If it was.

        """
        if self._plan.exists():
            raise ConfigError(
                "an earlier `streamgp flink --hand-back` was interrupted; run it again"
            )

    @property
    def _plan(self) -> Path:
        """The file with the ends of the inputs, as long as the way back is not at its end."""
        return self.cluster.checkpoints / "hand-back.json"

    def erase_state(self) -> None:
        """Take out what the topic `state` holds from before, all but the marks."""
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

    def _begin(self) -> dict[Place, int]:
        """Decide up to where Flink takes the inputs, once its state is all that counts."""
        backlog = self.there.topics.backlog(self.there.group)
        ends = {place: of.position + of.n_missed + of.n_waiting for place, of in backlog.items()}
        self.mark()
        self.erase_state()
        plan = json.dumps([[*place, n] for place, n in ends.items()])
        write_snapshot(self._plan, plan.encode())
        return ends

    def _put_workers(self, ends: Mapping[Place, int]) -> None:
        """Have the group read on at the ends of what Flink has taken."""
        from connectors.kafka.topics import KafkaTopics

        assert isinstance(self.there.topics, KafkaTopics)  # or it would not be on Flink
        self.there.topics.set_positions(self.there.group, ends)
        write_all(self.there, self.forgotten(ends), program="upkeep")

    def forgotten(self, ends: Mapping[Place, int]) -> list[Outgoing]:
        """Return the record `forgotten` of each partition, with what keys have told of nulls.

        Their own records of it are taken away behind that.
        """
        numbers = range(self.there.topics.n_partitions())
        kept: dict[int, dict[bytes, bytes | None]] = {number: {} for number in numbers}
        for record in everything(self.there.topics, "state", what="looking"):
            kept[record.partition][record.key or b""] = record.value
        n = time.time_ns() // 1_000_000  # no snapshot of a worker has that: it counts from 0
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
        """Have the topics say that workers keep what is learned; the checkpoints are void then."""
        self._sign(signature(self.loops.configuration, self.there.group))
        for path in self.cluster.checkpoints.iterdir():
            if path.is_dir() and path.name != TEMPORARY:
                shutil.rmtree(path)
        self._plan.unlink()  # last, as long as it is there this is not at its end
        say(logging.INFO, "handed-back", group=self.there.group)

    # --- both

    def _sign(self, configuration: Mapping[str, Any]) -> None:
        numbers = range(self.there.topics.n_partitions())
        write_all(self.there, marks(numbers, configuration), program="upkeep")

    def _new_group(self, direction: str) -> str:
        # One that has read nothing yet: only what this job has read counts.
        return f"{self.there.group}-{direction}-{time.time_ns() // 1_000_000}"

    def _wait_until_read(
        self,
        job: Any,
        group: str,
        topics: Iterable[TopicName],
        ends: Mapping[Place, int] | None = None,
    ) -> None:
        """Wait until a job has committed that it has read everything, up to some ends or all."""
        from connectors.kafka.topics import KafkaTopics

        there = self.there.topics
        assert isinstance(there, KafkaTopics)
        topics = tuple(topics)
        left = {(topic, n) for topic in topics for n in range(there.n_partitions())}
        while True:
            # Before the first checkpoint everything is left, if there is anything.
            found = there.positions(group, topics)
            left = {
                place
                for place in there.readable({place: found.get(place, 0) for place in left})
                if ends is None or found.get(place, 0) < ends[place]
            }
            if not left:
                return
            self._look_at(job)

    def _look_at(self, job: Any) -> None:
        result = job.get_job_execution_result()
        if result.done():
            raise ConfigError(f"the job has failed: {reason_in(str(result.exception()))}")
        if self.stop():
            job.cancel().result()
            raise Stopped
        time.sleep(_LOOK_EVERY_S)

    def _savepoint(self, job: Any, kind: str, *, drain: bool) -> str:
        """Stop a job with a savepoint, as soon as all of its tasks are running."""
        until = time.monotonic() + _RUNNING_WITHIN_S
        while True:
            future = stop_with_savepoint(job, self.cluster.savepoints(kind), drain=drain)
            while not future.done():
                time.sleep(_LOOK_EVERY_S)
            error = future.exception()
            if error is None:
                return str(future.result())
            if time.monotonic() > until:
                raise ConfigError(f"no savepoint could be made: {reason_in(str(error))}")
            self._look_at(job)

    def _wait_for_end(self, job: Any) -> None:
        result = job.get_job_execution_result()
        while not result.done():
            time.sleep(_LOOK_EVERY_S)
        if (error := result.exception()) is not None:
            raise ConfigError(f"the job has failed: {reason_in(str(error))}")

    def _drained(self) -> str | None:
        if self.cluster.remote is not None:
            return None
        return last_savepoint(self.cluster.checkpoints / _HANDED_BACK)


def is_mark(record: Record) -> bool:
    """Return whether a record of the topic `state` says that Flink keeps what is learned."""
    return (
        record.key == CONFIGURATION_KEY
        and record.value is not None
        and value_of("", CONFIGURATION, record.value).get("fingerprint") == ON_FLINK
    )


def _is_behind(record: Record, positions: Mapping[Place, int]) -> bool:
    """Return whether a null asks for something that the group has not read."""
    return (
        record.topic == "consensus"
        and record.offset >= positions.get((record.topic, record.partition), 0)
        and all(name != ERASED_BY for name, _ in record.headers)
    )


def _read(plan: Path) -> dict[Place, int] | None:
    if not plan.exists():
        return None
    return {(topic, number): n for topic, number, n in json.loads(plan.read_bytes())}
