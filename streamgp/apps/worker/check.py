"""Checks of `streamgp check`, one after the other, and their report."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from tempfile import TemporaryFile
from typing import Literal, TypeAlias

import click

from connectors.stalls import STALL_S
from connectors.storage.snapshots import state_error
from connectors.topics import COMPACTED, BrokerError, Topics, partition_of
from connectors.wire.state_records import History, HistoryError
from connectors.worker.compatibility import (
    UnfitTopicsError,
    check_signed,
    environment_in,
    interrupted_command,
)
from connectors.worker.settings import LoopSettings
from streamgp.apps.console import DONE, NEEDS_OPERATOR, WRONG_USE, number, progress, span
from streamgp.apps.deployment.contents import (
    InputProgress,
    drifts_in,
    empty_partition,
    errors_of,
)
from streamgp.apps.deployment.deployment import (
    address_of,
    broker_of,
    build_loops,
    damage,
    load_deployed,
    make_topics,
    open_topics,
    topic_problems,
)
from streamgp.apps.worker.observe import check_installed
from streamgp.common.environment import differences, differences_text
from streamgp.common.printable import printable
from streamgp.common.private_files import others_can
from streamgp.config.broker_url import FileAddress, KafkaAddress
from streamgp.config.settings import Topics as TopicSettings
from streamgp.config.settings import WorkerConfig, resolved
from streamgp.config.validation import ConfigError
from streamgp.evaluation.counts import Drifts
from streamgp.interactive.quarantine import Quarantine
from streamgp.interactive.state.serialize import HEAD
from streamgp.interactive.state.snapshot import SnapshotError

Verdict: TypeAlias = Literal["ok", "warning", "alert", "wrong"]
# A few learners' worth, which a disk that is nearly full has no room for.
_SNAPSHOT_BYTES = 2**16
_LOOK_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class Finding:
    verdict: Verdict
    what: str
    text: str


def check_deployment(
    config_file: Path, *, broker: str | None, timeout_s: float, create_topics: bool = False
) -> int:
    """Print the findings, one line each, and return the exit status.

    Parameters
    ----------
    timeout_s
        The longest time to spend reading `state` and `consensus`, and restoring what they hold.

    """
    status = DONE
    for finding in findings(
        config_file, broker=broker, timeout_s=timeout_s, create_topics=create_topics
    ):
        text = printable(" ".join(finding.text.split()))
        click.echo(f"{finding.verdict:<8} {finding.what + ':':<15} {text}")
        if finding.verdict == "wrong":
            status = WRONG_USE
        elif finding.verdict == "alert" and status == DONE:
            status = NEEDS_OPERATOR
    return status


def findings(
    config_file: Path, *, broker: str | None, timeout_s: float, create_topics: bool = False
) -> Iterator[Finding]:
    """Yield the results of all checks, up to the first failure that makes the others impossible."""
    try:
        config = load_deployed(config_file, broker=broker)
        loops = build_loops(config, source=str(config_file))
        if config.observe.bind is not None:
            check_installed()
    except ConfigError as error:
        yield Finding("wrong", "configuration", str(error))
        return
    yield Finding("ok", "configuration", _told(config, config_file))
    yield from _of_memory(config)
    yield _of_state(Path(config.worker.state))
    yield from _of_security(config)
    yield from _of_files(config_file, config)
    try:
        topics = open_topics(config)
    except (ConfigError, BrokerError) as error:
        yield Finding("wrong", "broker", str(error))
        return
    try:
        if create_topics:
            yield from (Finding("ok", "created", done) for done in make_topics(topics, config))
        yield from _of_topics(topics, config, loops, timeout_s)
    except (ConfigError, BrokerError) as error:
        yield Finding("wrong", "broker", str(error))
    except HistoryError as error:
        yield Finding("wrong", "learned", damage(error, config))
    finally:
        with suppress(OSError):
            topics.close()


def _told(config: WorkerConfig, path: Path) -> str:
    whole = resolved(config)
    learners = "a learner for each key" if config.worker.keyed else "one learner for all keys"
    rules = ", ".join(
        f"{name} {rule.rule()}"
        for name, rule in (("query", whole.query), ("challenge", whole.challenge))
        if rule is not None
    )
    return f"{path}: {config.learner.name}, {learners}, {rules}"


def _of_memory(config: WorkerConfig) -> Iterator[Finding]:
    if config.loop.answer_horizon_s is None:
        yield Finding(
            "warning",
            "memory",
            "without loop.answer_horizon_s every event is remembered forever; one day is "
            "answer_horizon_s = 86400.0",
        )
    if config.loop.expires_after_s is None:
        yield Finding(
            "warning",
            "memory",
            "without loop.expires_after_s an unanswered request stays open"
            + (" for ever" if config.loop.answer_horizon_s is None else " as long as its event")
            + "; one hour is expires_after_s = 3600.0",
        )


def _of_state(root: Path) -> Finding:
    """Check that snapshots can be written, by a file without a name: nothing of it is left."""
    there = root
    while not os.path.lexists(there) and there != there.parent:
        there = there.parent
    try:
        with suppress(FileNotFoundError):
            root.lstat()  # its name may be too long
        # Permissions are not enough: some directories refuse all writes, and disks are full.
        with TemporaryFile(dir=there) as file:
            file.write(bytes(_SNAPSHOT_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except NotADirectoryError:
        trouble = f"{there} is not a directory; name another place"
    except OSError as error:
        trouble = str(state_error(f"cannot keep state in {root}", error))
    else:
        return Finding("ok", "state", f"snapshots go into {root}")
    return Finding(
        "warning",
        "state",
        f"{trouble}: a worker runs without snapshots, and reads the topics from the start at every "
        "start",
    )


def _of_security(config: WorkerConfig) -> Iterator[Finding]:
    security = broker_of(config).security
    is_kafka = isinstance(address_of(config), KafkaAddress)
    if is_kafka and security.protocol == "SASL_PLAINTEXT" and security.mechanism == "PLAIN":
        yield Finding(
            "warning",
            "security",
            'the password crosses the network in plain text; write protocol = "SASL_SSL" or '
            'mechanism = "SCRAM-SHA-512"',
        )


def _of_files(config_file: Path, config: WorkerConfig) -> Iterator[Finding]:
    """Warn of secrets, stored data and settings that every user of the machine can access."""
    security, address = broker_of(config).security, address_of(config)
    # By their settings: a file's name may be a secret that was pasted there by mistake.
    named = {
        "people.keys_file": config.people.keys_file,
        "broker.security.password_file": security.password_file,
        "broker.security.key_file": security.key_file,
        "broker.security.key_password_file": security.key_password_file,
    }
    found = [
        (f"the file of {name}", others_can(Path(file)))
        for name, file in named.items()
        if file is not None
    ]
    directories = [Path(config.worker.state)]
    if isinstance(address, FileAddress):
        directories.append(address.directory)
    for path in (config_file, *directories):
        found.append((str(path), "write" if others_can(path) == "write" else None))
    for directory in directories:
        with suppress(OSError):
            found += [(str(path), others_can(path)) for path in sorted(directory.iterdir())]
    for what, can in found:
        if can is not None:
            yield Finding(
                "warning",
                "files",
                f"every user of this machine can {can} {what}; take the right away, by chmod o-rwx",
            )


def _of_topics(
    topics: Topics, config: WorkerConfig, loops: LoopSettings, timeout_s: float
) -> Iterator[Finding]:
    problems = topic_problems(topics, config)
    if problems:
        # The problem may be the broker itself: then its own line says so.
        for problem in problems:
            yield Finding("wrong", "topics", problem)
        return
    yield Finding("ok", "broker", broker_of(config).url)
    n = topics.n_partitions()
    asked, default = config.topics.partitions, TopicSettings().partitions
    differs = asked not in (n, default) and isinstance(address_of(config), KafkaAddress)
    besides = f"; topics.partitions = {asked} is for new topics alone" if differs else ""
    yield Finding("ok", "topics", f"all seven exist, with {number(n, 'partition')}{besides}")
    yield from (Finding("warning", "topics", warning) for warning in topics.warnings())
    yield from _of_questions(topics, config)
    yield from _of_inputs(topics, config)
    yield from _of_learned(topics, config, loops, timeout_s)


def _of_questions(topics: Topics, config: WorkerConfig) -> Iterator[Finding]:
    """Warn of questions that are deleted while they are open."""
    limits = (config.loop.expires_after_s, config.loop.answer_horizon_s)
    open_s = min((limit for limit in limits if limit is not None), default=inf)
    kept_s = topics.requests_kept_s()
    if kept_s < open_s:
        least = "-1 (for ever)" if open_s == inf else f"at least {1e3 * open_s:.0f}"
        yield Finding(
            "warning",
            "topics",
            f"topic {config.topics.names()['requests']} keeps a question for {span(kept_s)}, and "
            "annotators do not see it after that, though it may still be open; set retention.ms "
            f"there to {least}, or loop.expires_after_s to {kept_s:.0f} or less",
        )


def _of_inputs(topics: Topics, config: WorkerConfig) -> Iterator[Finding]:
    """Report running workers and waiting inputs; wait for progress in partitions with inputs."""
    group = config.worker.group
    inputs = InputProgress(topics, config.topics.names(), group)
    topics.check_writing(group)
    troubles = inputs.troubles()
    with progress() as show:
        began = time.monotonic()
        while not (troubles or inputs.is_settled):
            show("waiting for progress", (time.monotonic() - began) / STALL_S)
            time.sleep(_LOOK_EVERY_S)
            inputs.look()
            troubles = inputs.troubles()
    workers = f"{number(inputs.n_workers, 'worker')} running in group {group!r}"
    yield Finding("ok", "group", f"{workers}, {number(inputs.n_waiting, 'input')} waiting")
    if besides := topics.read_besides(group):
        yield Finding(
            "warning",
            "group",
            f"other members of group {group!r} read {', '.join(besides[:3])}: give each deployment "
            "and each program that is no worker a group of its own; such a program takes inputs "
            "from the workers, and of two workers with the same group and instance name the "
            "earlier one is stopped",
        )
    yield from (Finding("alert", "inputs", trouble) for trouble in troubles)


def _of_learned(
    topics: Topics, config: WorkerConfig, loops: LoopSettings, timeout_s: float
) -> Iterator[Finding]:
    """Check that what was learned fits the configuration; report quarantined annotators."""
    histories, is_whole = _histories(topics, timeout_s)
    learned = _compared(topics, config, loops, timeout_s, histories, is_whole=is_whole)
    yield learned
    for partition, history in sorted(histories.items()):
        for offset in history.foreign.values():
            yield Finding(
                "warning",
                "learned",
                f"state:{partition}:{offset} has a key of no streamgp, and is left out: another "
                "program has written it; take away its right to, and remove the record with "
                "`streamgp recover`",
            )
    if learned.verdict != "wrong":
        if loops.keyed:
            yield from _of_places(histories, topics.n_partitions())
        yield from _of_quarantine(histories, loops)
        yield from _of_drifts(histories, loops)


def _of_places(histories: Mapping[int, History], n_partitions: int) -> Iterator[Finding]:
    """Yield how many keys are not where Kafka's own clients put them, if any."""
    found = [
        (entity, partition, expected)
        for partition, history in sorted(histories.items())
        for entity in history.entities()
        if (expected := partition_of(entity.encode(), n_partitions)) != partition
        and history.part(entity, HEAD) is not None
    ]
    if found:
        entity, partition, expected = found[0]
        yield Finding(
            "warning",
            "partitions",
            f"{number(len(found), 'learner')} in other partitions than Kafka's own clients choose, "
            f"such as that of {entity!r} in {partition}, not in {expected}; let every producer "
            "choose as they do, by murmur2 (librdkafka: partitioner=murmur2_random): a key in two "
            "partitions has two learners, and answers miss its events",
        )


def _of_quarantine(histories: Mapping[int, History], loops: LoopSettings) -> Iterator[Finding]:
    """Yield the annotators whose answers are not learned, if any."""
    n_keys: Counter[str] = Counter()
    for history in histories.values():
        for entity in history.entities():
            head = history.part(entity, HEAD) or {}
            n_keys.update(Quarantine.of(head.get("quarantine", {})).in_force(loops.people))
    if n_keys:
        names = ", ".join(
            f"{name} in {number(n, 'key')}" if loops.keyed else name
            for name, n in sorted(n_keys.items())
        )
        yield Finding(
            "warning",
            "quarantine",
            f"answers of {names} are not learned; to have them learned again, name the annotator "
            "in people.trusted",
        )


def _of_drifts(histories: Mapping[int, History], loops: LoopSettings) -> Iterator[Finding]:
    """Yield how many concept drifts the learners have found, if any."""
    found = [
        drifts
        for history in histories.values()
        for entity in history.entities()
        if (drifts := drifts_in(history, entity)) is not None
    ]
    if found:
        drifts = Drifts(
            n_found=sum(each.n_found for each in found),
            n_outdated=sum(each.n_outdated for each in found),
            n_keys=len(found) if loops.keyed else None,
        )
        yield Finding("ok", "drift", str(drifts))


def _compared(
    topics: Topics,
    config: WorkerConfig,
    loops: LoopSettings,
    timeout_s: float,
    histories: Mapping[int, History],
    *,
    is_whole: bool,
) -> Finding:
    """Compare configuration and group with those of the workers that wrote the topics."""
    elsewhere: set[str] = set()
    for partition, history in sorted(histories.items()):
        theirs = history.configuration
        try:
            if theirs is not None and interrupted_command(theirs) is None:
                check_signed(partition, theirs, loops.configuration, config.worker.group)
                elsewhere.add(differences_text(differences(environment_in(theirs))))
        except UnfitTopicsError as error:  # a worker would stop with this error
            return Finding("wrong", "learned", str(error))
    if not is_whole:
        return Finding(
            "warning",
            "learned",
            f"the topics state and consensus could not be read completely in {timeout_s:g} s, so "
            "it is unknown whether they are complete and were written with this configuration; "
            "give a longer --timeout",
        )
    for lost in errors_of(topics, config.worker.group, histories):
        return Finding("wrong", "learned", str(lost))
    if not topics.n_members(config.worker.group):  # they would know, and may have written meanwhile
        try:
            if not _restored(histories, loops, timeout_s):
                return Finding(
                    "warning",
                    "learned",
                    f"what was learned could not be restored completely in {timeout_s:g} s, so it "
                    "is unknown whether a worker can; give a longer --timeout",
                )
        except UnfitTopicsError as error:
            return Finding("wrong", "learned", str(error))
    if not histories:
        return Finding("ok", "learned", "nothing yet")
    # Not a warning: the check may run on a machine without a worker.
    others = "".join(
        f"; in another numerical environment than here ({text})"
        for text in sorted(elsewhere)
        if text
    )
    return Finding("ok", "learned", f"with this configuration{others}")


def _restored(histories: Mapping[int, History], loops: LoopSettings, timeout_s: float) -> bool:
    """Restore every loop, and a learner of each partition; return whether there was time enough.

    All learners are of one kind: another version of streamgp restores all of them, or none.

    Raises
    ------
    UnfitTopicsError
        With which a worker would stop.

    """
    until = time.monotonic() + timeout_s
    n_restored = 0
    with progress() as show:
        for n, history in histories.items():
            partition = empty_partition(n, loops, time.time())
            for _ in partition.bring_up_by_key(history):
                left_s = until - time.monotonic()
                if left_s < 0.0:
                    return False
                n_restored += 1
                show(f"{number(n_restored, 'learner')} restored", 1.0 - left_s / timeout_s)
            try:
                next(iter(partition.loops.loops.values()), None)
            except SnapshotError as error:
                raise partition.unusable(error) from error
    return True


def _histories(topics: Topics, timeout_s: float) -> tuple[dict[int, History], bool]:
    """Return the topics' contents by partition, and whether everything was read."""
    histories: dict[int, History] = {}
    deadline = time.monotonic() + timeout_s
    n_read = 0
    with closing(topics.reader(COMPACTED)) as reader, progress() as show:
        while not reader.caught_up and time.monotonic() < deadline:
            for record in reader.poll(1.0):
                n_read += 1
                histories.setdefault(record.partition, History()).take(record)
            left_s = deadline - time.monotonic()
            show(
                f"{number(n_read, 'record')} of state and consensus",
                1.0 - max(0.0, left_s) / timeout_s,
            )
        return histories, reader.caught_up
