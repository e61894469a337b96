"""Replacement of learners (`streamgp rebuild`), after a comparison on the same examples.

The replacement writes a new head for every loop; the conversations and the consensus log are
unchanged. Every partition is first marked as being rebuilt, and signed with the new configuration
at the end: whatever happens in between, no worker continues with an incomplete replacement, and the
same command completes it.

"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import click
from msgspec.structs import replace

from connectors.topics import COMPACTED, Outgoing
from connectors.wire import state_records
from connectors.wire.state_records import History
from connectors.worker.compatibility import (
    BEING_REBUILT,
    UnfitTopicsError,
    check_signed,
    signature,
    without_learner,
)
from connectors.worker.settings import configuration_of
from streamgp.apps.console import agreed, aligned, in_one_line, number, progress, tell
from streamgp.apps.deployment.contents import StoredLoop, check_complete, histories_of, loops_in
from streamgp.apps.deployment.deployment import (
    all_of,
    check_idle,
    check_still_idle,
    marks,
    readable_topics,
    total_budget_of,
    visit,
    write_state,
)
from streamgp.apps.maintenance.recover import outdated
from streamgp.base import State
from streamgp.common.budget_account import fingerprint_with
from streamgp.common.feature_values import is_number
from streamgp.common.printable import cut, printable
from streamgp.config.build import Model, build_model, build_windows
from streamgp.config.load import check_config, load_worker, text_of
from streamgp.config.settings import WorkerConfig
from streamgp.config.validation import ConfigError
from streamgp.interactive.keyed import BUDGET
from streamgp.interactive.learner import SkepticalLearner
from streamgp.interactive.messages import LabelledExample
from streamgp.interactive.rebuild import head_around
from streamgp.interactive.state.serialize import HEAD
from streamgp.interactive.state.snapshot import SnapshotError
from streamgp.interactive.teaching import Taught, teach
from streamgp.report.tables import amount

# --- Two learners taught the same examples, and their comparison.


N_SHOWN = 20
_WIDEST = 20
_TITLES = [
    ["", "", "accuracy", "", "", "refused", "", "ms an example", ""],
    ["key", "examples", "old", "new", "agree", "old", "new", "old", "new"],
]
_NUMBER_TITLES = [
    ["", "", "mean abs. error", "", "refused", "", "ms an example", ""],
    ["key", "examples", "old", "new", "old", "new", "old", "new"],
]


@dataclass(slots=True)
class Score:
    """Score of one learner.

    Attributes
    ----------
    n_hits
        Number of examples predicted correctly before they were learned.
    errors
        Sum of absolute errors of predicted numbers.
    refusal
        Why it could not learn the first of them.

    """

    n_hits: int = 0
    errors: float = 0.0
    n_guessed: int = 0
    n_refused: int = 0
    seconds: float = 0.0
    refusal: str | None = None

    def note(self, taught: Taught) -> None:
        self.n_hits += taught.predicted == taught.y
        if is_number(taught.predicted) and is_number(taught.y):
            self.errors += abs(float(taught.predicted) - float(taught.y))  # type: ignore[arg-type]
            self.n_guessed += 1
        if taught.refusal is not None:
            self.n_refused += 1
            self.refusal = self.refusal or f"{taught.event_id}: {taught.refusal}"

    def add(self, other: Score) -> None:
        self.n_hits += other.n_hits
        self.errors += other.errors
        self.n_guessed += other.n_guessed
        self.n_refused += other.n_refused
        self.seconds += other.seconds


@dataclass(slots=True, kw_only=True)
class Comparison:
    """Scores of two learners on the same examples.

    Attributes
    ----------
    name
        Name of the loop with the examples.
    n_agreed
        Number of examples with equal predictions of both.

    """

    name: str
    n_examples: int = 0
    n_agreed: int = 0
    old: Score = field(default_factory=Score)
    new: Score = field(default_factory=Score)

    def add(self, other: Comparison) -> None:
        self.n_examples += other.n_examples
        self.n_agreed += other.n_agreed
        self.old.add(other.old)
        self.new.add(other.new)


def compare(
    row: Comparison,
    lines: Sequence[LabelledExample],
    old: SkepticalLearner,
    new: SkepticalLearner,
) -> Iterator[int]:
    """Teach two new learners the same examples, and count.

    Yields
    ------
    The number of examples so far.

    Examples
    --------
    >>> from streamgp import isgp
    >>> row = Comparison(name="ann")
    >>> log = [
    ...     LabelledExample(
    ...         event_id=str(n), sequence=n, x={"light": n % 2}, y="on" if n % 2 else "off",
    ...         origin="asked", learned_at=0.0, probability_wrong=0.1,
    ...     )
    ...     for n in range(4)
    ... ]
    >>> list(compare(row, log, isgp(seed=1), isgp(seed=1)))
    [1, 2, 3, 4]
    >>> row.old.n_hits, row.new.n_hits, row.n_agreed
    (2, 2, 4)

    """
    olds, news = teach(old, lines), teach(new, lines)
    while True:
        start = perf_counter()
        one = next(olds, None)
        between = perf_counter()
        other = next(news, None)
        end = perf_counter()
        if one is None or other is None:
            return
        row.n_examples += 1
        row.n_agreed += one.predicted == other.predicted
        for score, taught, seconds in (
            (row.old, one, between - start),
            (row.new, other, end - between),
        ):
            score.note(taught)
            score.seconds += seconds
        yield row.n_examples


def comparison_text(rows: Sequence[Comparison], *, numbers: bool = False) -> str:
    """Return a table with an explanation; `numbers` says that targets are numbers."""
    total = Comparison(name=f"all {number(len(rows), 'key')}")
    for row in rows:
        total.add(row)
    shown = sorted(rows, key=lambda row: -row.n_examples)[:N_SHOWN]
    lines = [_cells(row, numbers) for row in shown]
    if len(rows) > 1:
        rest = "" if len(shown) == len(rows) else f", {len(shown)} of them shown"
        lines.append([total.name + rest, *_cells(total, numbers)[1:]])
    titles = _NUMBER_TITLES if numbers else _TITLES
    text = [aligned([*titles, *lines], right=range(1, len(titles[0]))), _about(numbers)]
    for which in ("old", "new"):
        row_of = next((row for row in rows if getattr(row, which).refusal is not None), None)
        if row_of is not None:
            reason = printable(f"{row_of.name}, event {getattr(row_of, which).refusal}")
            text.append(f"first refusal of the {which} learner: {reason}")
    return "\n".join(text)


def _about(numbers: bool) -> str:
    if numbers:
        return "error: of predictions before the examples were learned, by the current number"
    return (
        "accuracy: examples predicted correctly before they were learned, by the current label; "
        "agree: predicted alike"
    )


def _cells(row: Comparison, numbers: bool) -> list[str]:
    n = row.n_examples
    return [
        cut(printable(row.name), _WIDEST),
        str(n),
        *(
            [_mean(row.old), _mean(row.new)]
            if numbers
            else [
                _percent(row.old.n_hits, n),
                _percent(row.new.n_hits, n),
                _percent(row.n_agreed, n),
            ]
        ),
        str(row.old.n_refused),
        str(row.new.n_refused),
        _milliseconds(row.old.seconds, n),
        _milliseconds(row.new.seconds, n),
    ]


def _mean(score: Score) -> str:
    return amount(score.errors / score.n_guessed if score.n_guessed else None)


def _percent(n: int, of: int) -> str:
    return f"{100 * n / of:.1f} %" if of else "-"


def _milliseconds(seconds: float, n: int) -> str:
    return f"{1e3 * seconds / n:.2f}" if n else "-"


LEARNER_SETTINGS = (
    "preset", "seed", "warm_up", "rescale", "learner", "temporal", "drift_test", "query",
    "challenge", "review", "reservoir", "budget", "total_budget", "questions",
)  # fmt: skip
"""Sections of a worker's configuration that define a learner."""


def rebuild_learners(
    config_file: Path, learner_file: Path, *, take_over: bool, yes: bool, broker: str | None
) -> None:
    """Compare two learners on the topics' examples, and replace the old one if requested.

    Raises
    ------
    ConfigError
        If one of the files is wrong.
    click.ClickException
        If workers are running, or the topics belong to another group or cannot be read.

    """
    with visit(config_file, broker) as there, ExitStack() as stack:
        # The file of the workers may name nothing: then it means the defaults of this version.
        is_same = learner_file == config_file
        config = there.config if is_same else with_learner(there.config, learner_file)
        old = build_model(there.config, source=str(config_file))
        new = build_model(config, source=str(learner_file))
        if take_over:
            check_idle(there, "take over")
        reader = stack.enter_context(closing(there.topics.reader(COMPACTED)))
        histories = histories_of(all_of(reader, what="reading"))
        with readable_topics(there.config):
            check_complete(there.topics, there.group, histories)
            found = {n: history.configuration for n, history in histories.items()}
            total = total_budget_of(config, source=str(learner_file))
            windows = build_windows(config, label="y", source=str(config_file))
            settings = configuration_of(new, total, windows, keyed=config.worker.keyed)
            if take_over:
                _check_signed(found, settings, there.group)
            old_total = total_budget_of(there.config, source=str(config_file))
            _note_others(found.values(), fingerprint_with(old, old_total), config_file)
            rows, heads = _compared(
                histories, old, new, keyed=config.worker.keyed, with_heads=take_over
            )
        if not rows:
            raise click.ClickException(
                f"no worker of group {there.group} has written any state; start one first"
            )
        click.echo(comparison_text(rows, numbers=config.target == "number"))
        if not take_over:
            return
        if not agreed(f"let {number(len(heads), 'new learner')} take over?", yes=yes):
            return
        check_still_idle(there, reader, "take over")
        configuration = signature(settings, there.group)
        partitions = [n for n in histories if found[n] is not None]
        write_state(there, marks(partitions, {**configuration, "fingerprint": BEING_REBUILT}))
        # What was spent of a total budget means nothing to one of another kind.
        spent = [n for n in partitions if histories[n].part("", BUDGET) is not None]
        unspent = [state_records.state("", BUDGET, None, n) for n in spent]
        drops = outdated({n: histories[n] for n in partitions})
        write_state(there, [*heads, *unspent, *drops, *marks(partitions, configuration)])
        to_copy = f"copy the settings of {learner_file} into {config_file}, and "
        click.echo(
            f"{number(len(heads), 'new learner')} took over in "
            f"{number(len(partitions), 'partition')}; now "
            f"{'' if is_same else to_copy}start the workers"
        )


def with_learner(config: WorkerConfig, learner_file: Path) -> WorkerConfig:
    """Return a configuration with the learner, or the rules, of another file.

    Raises
    ------
    ConfigError
        If the file contains neither, or is not valid.

    """
    new = load_worker(learner_file)
    named = tomllib.loads(text_of(learner_file))
    changes = {name: getattr(new, name) for name in LEARNER_SETTINGS if name in named}
    if not changes:
        raise ConfigError(
            f"{learner_file}: names no other learner; expected one or more of "
            f"{', '.join(LEARNER_SETTINGS)}"
        )
    changed = replace(config, **changes)
    check_config(changed, source=str(learner_file))
    return changed


def _check_signed(
    found: Mapping[int, Mapping[str, Any] | None], settings: Mapping[str, Any], group: str
) -> None:
    """Refuse the topics of another group, or of workers with other keys or windows.

    Another group's workers may be running; and this group, which has no positions yet, would read
    everything again.
    """
    for partition, configuration in found.items():
        with in_one_line(UnfitTopicsError):
            check_signed(partition, configuration, without_learner(settings), group)


def _note_others(
    found: Iterable[Mapping[str, Any] | None], fingerprint: str, config_file: Path
) -> None:
    """Report if workers with another configuration wrote the topics."""
    others = {str(each.get("fingerprint")) for each in found if each is not None} - {fingerprint}
    if BEING_REBUILT in others:
        tell("note: an earlier take-over was interrupted; this one can complete it")
    elif others:
        tell(
            f"note: the workers did not learn with the settings of {config_file}; `old` is a "
            "learner with these settings, not theirs"
        )


def _compared(
    histories: Mapping[int, History],
    old: Model,
    new: Model,
    *,
    keyed: bool,
    with_heads: bool,
) -> tuple[list[Comparison], list[Outgoing]]:
    """Teach both learners; return their comparison and, if requested, the new learners' heads."""
    n_all = sum(
        len(history.consensus_keys(entity))
        for history in histories.values()
        for entity in history.entities()
    )
    n_done = 0
    rows: list[Comparison] = []
    heads: list[Outgoing] = []
    with progress() as show:
        for loop in loops_in(histories, keyed=keyed):
            row, taught = Comparison(name=loop.name), new.clone()
            for n in compare(row, loop.lines, old.clone(), taught):
                show(f"teaching: {number(len(rows) + 1, 'key')}", (n_done + n) / n_all)
            rows.append(row)
            n_done += len(loop.lines)
            if with_heads:
                head = _head(loop, taught, new.clone())
                heads += state_records.records_of_part(loop.entity, HEAD, head, loop.partition)
    return rows, heads


def _head(loop: StoredLoop, model: Model, fresh: Model) -> State:
    try:
        return head_around(model, loop.parts, loop.lines, fresh)
    except (SnapshotError, TypeError) as error:
        raise click.ClickException(f"{loop.name!r}: {error}; nothing was changed") from None
