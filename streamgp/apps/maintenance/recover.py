"""Recovery of the topic `state` from the consensus log (`streamgp recover`).

Every partition with losses is first marked as being recovered, and signed with the configuration at
the end: whatever happens in between, no worker continues with an incomplete recovery, and the same
command completes it. A learner with complete state keeps it.

"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from time import time_ns
from typing import Any

import click

from connectors.topics import COMPACTED, Outgoing, Record, Topics
from connectors.wire import state_records
from connectors.wire.inbound import read
from connectors.wire.outbound import Outbound
from connectors.wire.state_records import (
    APART,
    FORGOTTEN,
    WINDOWS,
    History,
    HistoryError,
    Unreadable,
    is_foreign,
    window_name,
    window_part,
)
from connectors.worker.compatibility import (
    BEING_RECOVERED,
    OtherGroupError,
    UnfitTopicsError,
    check_alone,
    check_signed,
    interrupted_command,
    signature,
    without_learner,
)
from connectors.worker.early_answers import EarlyAnswers
from connectors.worker.losses import Losses, forgotten_in
from connectors.worker.settings import LoopSettings, source_of
from streamgp.apps.console import agreed, in_one_line, number, progress
from streamgp.apps.deployment.contents import (
    StoredLoop,
    histories_of,
    loops_in,
    losses_of,
    vanished_in,
)
from streamgp.apps.deployment.deployment import (
    Deployment,
    all_of,
    build_loops,
    check_idle,
    check_still_idle,
    marks,
    readable_topics,
    visit,
    write_state,
)
from streamgp.apps.maintenance.dead_letters import Wanted, letters
from streamgp.common.printable import printable
from streamgp.interactive.keyed import BUDGET
from streamgp.interactive.loop import InteractiveLoop
from streamgp.interactive.messages import Answer, LabelledExample
from streamgp.interactive.quarantine import Quarantine
from streamgp.interactive.rebuild import recovered_parts, renumbered
from streamgp.interactive.state.serialize import HEAD
from streamgp.interactive.state.snapshot import SnapshotError
from streamgp.windows import open_rows

_ABOUT = """\
comes back: {n} with their sequence and revisions; questions and challenges that ended in a label;
  how often each annotator errs, from the challenged answers; who is in quarantine, from retracted
  and refused answers; the scaling, from the labelled events; concept drifts, from the labels
cannot come back: open questions and events without a label (answers to them become dead letters,
  and the ids of these events are no longer known); names of answers (a label that came with its
  event can be corrected, others cannot); spent budgets, what rules have seen, answers
  that wait for their event, raw rows in open windows, and all counts: these start over
learners may predict slightly differently than before"""


_ABOUT_UNREADABLE = """\
if a later version of streamgp wrote these, do not go on: use that version. Else they will be
  removed; a label that was overwritten is withdrawn, and state that was overwritten is lost"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """Rebuilt state.

    Parameters
    ----------
    out
        The records to write, except the marks.
    n_learners, n_kept
        Number of learners that were rebuilt, and that were left unchanged.
    n_examples
        Number of labelled examples of the rebuilt learners.
    n_renumbered
        Number of lines of the log that were renumbered.
    n_quarantined
        For each annotator, in how many of these learners they are quarantined.

    """

    out: list[Outgoing]
    n_learners: int
    n_kept: int
    n_examples: int
    n_renumbered: int
    n_quarantined: Mapping[str, int]


def recover_state(config_file: Path, *, yes: bool, broker: str | None) -> None:
    """Rebuild lost state, and report what was recovered.

    Raises
    ------
    click.ClickException
        If workers are running, nothing is lost, or it cannot be recovered this way.

    """
    with visit(config_file, broker) as there:
        loops = build_loops(there.config, source=str(config_file))
        check_idle(there, "recover")
        with closing(there.topics.reader(COMPACTED)) as reader:
            records = all_of(reader, what="reading")
            histories = histories_of(_of_group(records, there.group))
            nulls = _without_unreadable(there, loops, histories)
            with readable_topics(there.config):
                broken = _broken(there, loops, histories)
                empty = vanished_in(there.topics, there.group, histories)
                histories |= dict.fromkeys(empty, History())
                broken |= {partition: str(lost) for partition, lost in empty.items()}
                if not (broken or nulls):
                    raise click.ClickException(_nothing_lost(there, histories))
                refused = _refused(there.topics, loops)
                found = _recovered({n: histories[n] for n in broken}, loops, there.group, refused)
            for reason in broken.values():
                click.echo(reason)
            if broken:
                click.echo(_told(found))
            if empty:
                click.echo(f"{number(len(empty), 'partition')} will begin with nothing")
            rebuilt = f"the state of {number(found.n_learners, 'learner')}"
            removed = number(len(nulls), "record")
            todo = [f"remove {removed}"] * bool(nulls) + [f"rebuild {rebuilt}"] * bool(broken)
            if not agreed(f"{' and '.join(todo)}?", yes=yes):
                return
            check_still_idle(there, reader, "recover")
        configuration = signature(loops.configuration, there.group)
        cut = {**configuration, "fingerprint": BEING_RECOVERED}
        ours = [null for null in nulls if null.topic == "state" and not is_foreign(null.key)]
        touched = {*broken, *(null.partition or 0 for null in ours)}
        # Before the nulls: whatever is interrupted, no snapshot is merged with them.
        first = [*marks(list(broken), cut), *outdated({n: histories[n] for n in sorted(touched)})]
        write_state(there, first)
        written = {(record.partition, record.key) for record in first}
        gone = [null for null in nulls if (null.partition, null.key) not in written]
        write_state(there, [*gone, *found.out, *marks(list(broken), configuration)])
        done = [f"removed {removed}"] * bool(nulls)
        done += [f"rebuilt {rebuilt} in {number(len(broken), 'partition')}"] * bool(broken)
        click.echo(f"{'; '.join(done)}; now start the workers")


def _without_unreadable(
    there: Deployment, loops: LoopSettings, histories: Mapping[int, History]
) -> list[Outgoing]:
    """Report the records that no worker can have written, and return nulls that remove them.

    The histories are as they will be afterwards. Where inputs cannot be written to `consensus`, a
    null is a worker's own, which no worker reads as a request; then the learner is rebuilt.
    """
    outbound = Outbound(source_of(there.group), keyed=there.config.worker.keyed)
    nulls = []
    flaws: dict[str, None] = {}  # all rows of a key have the same one
    for partition, history in histories.items():
        # The second ones can be read only once the first ones are gone.
        every = chain(history.unreadable(), _unusable(loops, partition, history))
        for topic, key, what in every:
            null = Outgoing(topic=topic, partition=partition, key=key, value=None)
            if topic == "consensus" and there.is_in_directory:
                null = outbound.erase(key, partition)
            history.append(null)
            nulls.append(null)
            flaws[printable(what)] = None
    for flaw in flaws:
        click.echo(flaw)
    if nulls:
        click.echo(_ABOUT_UNREADABLE)
    return nulls


def _unusable(loops: LoopSettings, partition: int, history: History) -> Iterator[Unreadable]:
    """Yield the records, besides those of learners, that a worker would refuse.

    They are about waiting answers, open windows, nulls that were processed, and the total budget.
    """
    own = [("", name, history.part("", name)) for name in (FORGOTTEN, BUDGET)]
    parts = [*history.early(), *own]
    if loops.windows is not None:
        parts += history.windows(keyed=loops.keyed)
    present = {(entity, name): value for entity, name, value in parts if value is not None}
    for (entity, name), value in present.items():
        try:
            if name.startswith(WINDOWS):
                assert loops.windows is not None
                key, part = window_part(name)
                # Without the head no other part of the key is of use.
                head = present.get((entity, window_name(key, open_rows.HEAD)))
                loops.windows.clone().take_over([(key, open_rows.HEAD, head), (key, part, value)])
            elif name == FORGOTTEN:
                forgotten_in(history)
            elif name == BUDGET:
                if loops.total_budget is not None:
                    loops.new(None).take_over_budget(value)
            else:
                answers = EarlyAnswers(partition, keyed=loops.keyed)
                answers.take_over([(entity, name, value)])
        except (SnapshotError, HistoryError) as error:
            what = error.what if isinstance(error, HistoryError) else str(error)
            null = state_records.state(entity, name, None, partition)
            yield Unreadable("state", null.key or b"", what)


def _of_group(records: Iterable[Record], group: str) -> Iterator[Record]:
    """Yield records, and refuse labelled examples of another group: its workers may be running."""
    for record in records:
        if record.topic == "consensus" and record.value is not None:
            with in_one_line(OtherGroupError):
                check_alone(record, group)
        yield record


def _broken(
    there: Deployment, loops: LoopSettings, histories: Mapping[int, History]
) -> dict[int, str]:
    """Return the partitions whose state must be rebuilt, with the reason."""
    for partition, history in histories.items():
        theirs, ours = history.configuration, loops.configuration
        if interrupted_command(theirs) is not None:
            ours = without_learner(ours)
        with in_one_line(UnfitTopicsError):
            check_signed(partition, theirs, ours, there.group)
    lost = losses_of(there.topics, there.group, histories)
    broken = {}
    for partition, history in histories.items():
        losses = lost.get(partition)
        if losses is not None:
            if losses.is_empty or losses.cut == "restore":
                raise click.ClickException(str(losses.error()))
            broken[partition] = str(losses.error())
        elif (flaw := _unfit(loops, partition, history)) is not None:
            broken[partition] = f"partition {partition}: {flaw}"
    return broken


def _nothing_lost(there: Deployment, histories: Mapping[int, History]) -> str:
    if histories:
        return (
            "state and consensus belong together, and nothing is lost; there is nothing to recover"
        )
    return f"no worker of group {there.group} has learned anything; there is nothing to recover"


def outdated(histories: Mapping[int, History]) -> list[Outgoing]:
    """Return the records that make workers drop earlier snapshots.

    Neither configuration nor offsets show a recovery, or a rebuild with the same settings, so a
    snapshot would be merged with the rebuilt state. The time is a number that no worker has counted
    to.
    """
    records = []
    for partition, history in histories.items():
        old = forgotten_in(history)
        n = max(int(old.get("n", 0)) + 1, time_ns() // 1_000_000)
        # The log may have lost its end since nulls were processed there.
        heeded = min(int(old.get("heeded", 0)), history.ends.get("consensus", 0))
        value = {**old, "heeded": heeded, "n": n}
        records.append(state_records.state("", FORGOTTEN, value, partition))
    return records


def _unfit(loops: LoopSettings, partition: int, history: History) -> str | None:
    """Return why a worker could not continue a partition, None if it can."""
    for loop in loops_in({partition: history}, keyed=loops.keyed):
        flaw = _flaw(loops, loop, history)
        if flaw is not None:
            return flaw
    return None


def _flaw(loops: LoopSettings, loop: StoredLoop, history: History) -> str | None:
    """Return why the state of one learner cannot be restored, None if it can."""
    flaw = Losses(loop.partition, history).look(loop.entity, loop.parts, loop.lines)
    if flaw is not None:
        return flaw
    try:
        InteractiveLoop.from_parts(loop.parts, loop.lines, loops.model.clone(), **loops.arguments)
    except SnapshotError as error:
        return str(error)
    return None


_Refused = Mapping[tuple[int, str], Sequence[tuple[float, str]]]


def _refused(topics: Topics, loops: LoopSettings) -> _Refused:
    """Return which annotators' answers were refused because of a quarantine, and when.

    By partition and entity, in the order of the dead letters.
    """
    found: dict[tuple[int, str], list[tuple[float, str]]] = {}
    for record, letter in letters(topics, Wanted(stage="quarantine")):
        if letter.cause is None or letter.cause.topic != "answers":
            continue
        answer = read(letter.cause, keyed=loops.keyed)
        if isinstance(answer, Answer) and answer.annotator is not None:
            owner = record.partition, loops.entity(answer.key)
            found.setdefault(owner, []).append((letter.at, answer.annotator))
    return found


def _quarantine(loop: StoredLoop, history: History, refused: _Refused) -> Quarantine:
    """Reconstruct the quarantine of a learner from all remaining evidence.

    The evidence is the head, even of an older state; labels that were taken back; and answers
    refused since the first label (earlier ones may belong to a learner that was forgotten).
    """
    known = Quarantine.of((loop.parts.get(HEAD) or {}).get("quarantine", {}))
    first = min((line.learned_at for line in loop.lines), default=0.0)
    letters = refused.get((loop.partition, loop.entity), ())
    names = dict.fromkeys(
        [
            *known.names,
            *history.quarantined(loop.entity),
            *(annotator for at, annotator in letters if at >= first),
        ]
    )
    return replace(known, names=tuple(names))


def _recovered(
    histories: Mapping[int, History], loops: LoopSettings, group: str, refused: _Refused
) -> Recovered:
    """Rebuild the state of all learners that have lost it."""
    out: list[Outgoing] = []
    outbound = Outbound(source_of(group), keyed=loops.keyed)
    n_learners = n_kept = n_examples = n_renumbered = 0
    n_quarantined: Counter[str] = Counter()
    with progress() as show:
        for loop in loops_in(histories, keyed=loops.keyed):
            history = histories[loop.partition]
            show(f"teaching: {number(n_learners + 1, 'learner')}", None)
            if _flaw(loops, loop, history) is None:
                n_kept += 1
                continue
            written = history.lines_as_written(loop.entity)
            lines = [
                replace(line, sequence=sequence)
                for line, sequence in zip(written, renumbered(written), strict=True)
            ]
            kept = [new == old for new, old in zip(lines, written, strict=True)]
            # All from the first changed one on, so that they are stored in the order of their
            # numbers.
            rewritten = lines[kept.index(False) :] if False in kept else []
            quarantine = _quarantine(loop, history, refused)
            parts = _recovered_parts(loops, loop, lines, quarantine)
            out += [outbound.message(line, loop.partition) for line in rewritten]
            out += _state(loop, parts, history.names(loop.entity))
            n_learners += 1
            n_examples += int(parts[HEAD]["learned"])
            n_renumbered += kept.count(False)
            n_quarantined.update(quarantine.in_force(loops.people))
    return Recovered(
        out=out,
        n_learners=n_learners,
        n_kept=n_kept,
        n_examples=n_examples,
        n_renumbered=n_renumbered,
        n_quarantined=n_quarantined,
    )


def _recovered_parts(
    loops: LoopSettings,
    loop: StoredLoop,
    lines: Sequence[LabelledExample],
    quarantine: Quarantine,
) -> dict[str, Any]:
    try:
        return recovered_parts(
            lines,
            loops.model.clone(),
            loops.model.clone(),
            at_least=int((loop.parts.get(HEAD) or {}).get("sequence", 0)),
            **loops.arguments,
            quarantine=quarantine,
        )
    except (SnapshotError, TypeError) as error:
        raise click.ClickException(f"{loop.name!r}: {error}; nothing was changed") from None


def _state(loop: StoredLoop, parts: Mapping[str, Any], names: Sequence[str]) -> list[Outgoing]:
    """Return the records of a learner's state, and nulls for its other records."""
    partition, entity = loop.partition, loop.entity
    records = [
        record
        for name, value in parts.items()
        for record in state_records.records_of_part(entity, name, value, partition)
    ]
    written = {record.key for record in records}
    gone = [
        state_records.state(entity, name, None, partition)
        for name in names
        if not name.startswith(APART)
    ]
    # The head comes last, as when a worker writes.
    return [*(record for record in gone if record.key not in written), *records]


def _told(found: Recovered) -> str:
    lines = [_ABOUT.format(n=number(found.n_examples, "labelled example"))]
    if found.n_quarantined:
        names = (
            f"{printable(repr(name))} in {number(n, 'learner')}"
            for name, n in found.n_quarantined.items()
        )
        lines.append(f"in quarantine: {', '.join(names)}")
    if found.n_renumbered:
        lines.append(
            f"{number(found.n_renumbered, 'line')} of consensus whose number was given twice will "
            "be renumbered, in the order of writing"
        )
    if found.n_kept:
        lines.append(
            f"{number(found.n_kept, 'learner')} whose state is complete will be left alone"
        )
    return "\n".join(lines)
