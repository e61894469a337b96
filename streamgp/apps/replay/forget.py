"""Removal of one key from the state and the files of a replay (`streamgp forget`)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import click

from connectors.jsonl import check_beginning, count_lines, remove_lines
from connectors.storage.snapshots import StateDirectory, read_snapshot, write_snapshot
from connectors.tables.cells import key_of
from streamgp.apps.console import number
from streamgp.apps.replay.checkpoint import (
    REPLAY,
    Cut,
    check_version,
    config_of,
    open_store,
    out_of,
    read,
    state_in_one_line,
    write,
)
from streamgp.apps.replay.engine import CountingSink
from streamgp.apps.replay.results import SUMMARY, counts_of, counts_of_keys, laid_out
from streamgp.apps.replay.run import ReplaySink, be_alone_in
from streamgp.base import State, Target
from streamgp.common.printable import printable
from streamgp.common.private_files import remove_left_over
from streamgp.config.build import build_loop
from streamgp.interactive import KeyedLoops

_NOT_TOUCHED = "the log itself and pages made by --report are not touched"


def forget_key(directory: Path, key: str) -> str:
    """Remove a key from the state in a directory and from the files of its replay.

    Returns
    -------
    A line for the user about what was removed.

    Raises
    ------
    click.ClickException
        If there is no such state or no such key, or something cannot be read or written.

    """
    # Checked first: StateDirectory would create the directory.
    if not (directory / REPLAY).is_file():
        raise click.ClickException(
            f"{directory} holds no state of a replay; give the directory of --state"
        )
    with state_in_one_line(directory), StateDirectory(directory) as state, ExitStack() as stack:
        found = read(state)
        assert found is not None  # it was there before, and is never removed
        origin, cut = found
        check_version(directory, origin)
        config = config_of(origin)
        if config.log.key is None:
            raise click.ClickException(
                f"{directory} holds a replay without --key: one learner of all rows; "
                "to forget it, delete the directory"
            )
        if (out := out_of(origin)) is not None and out.is_dir():
            be_alone_in(out, until=stack)
        store = open_store(state, config)
        if store is not None:
            stack.enter_context(closing(store))
        loops = build_loop(config, source=str(directory), store=store, snapshot=cut.loop)
        assert isinstance(loops, KeyedLoops)  # there is a key column
        return _forget(state, origin, cut, loops, _key_of(key))


def _forget(state: StateDirectory, origin: State, cut: Cut, loops: KeyedLoops, key: str) -> str:
    pending = sorted({*cut.forgetting, key})
    out = out_of(origin)
    files = {} if out is None else _message_files(out, cut)
    n_messages = sum(count_lines(path, [key]) for path in files)
    target = config_of(origin).target
    around, counter, what = _without(cut.around, pending, key, target)
    if not (what or n_messages or key in cut.forgetting):
        raise click.ClickException(f"{state.path} has no key {key!r}; nothing was removed")
    if out is not None and files:
        what.append(f"{number(n_messages, 'message')} in {_shown(out)}")
    # First record which keys are being forgotten: meanwhile no replay resumes with a partial
    # deletion. Then everything else, in steps that can be repeated. The state comes last: while it
    # contains the key, `forget` knows what to remove.
    write(state, origin, replace(cut, forgetting=pending))
    for each in pending:
        loops.forget(each)
    rest = loops.snapshot(with_environment=False)
    sizes = {path.name: remove_lines(path, pending, size) for path, size in files.items()}
    if out is not None and files:
        _rewrite_summary(out / SUMMARY, counter)
    write(state, origin, Cut(loop=rest, around=around, sizes=sizes if files else None))
    return f"forgot {printable(repr(key))}: {', '.join(what)}; {_NOT_TOUCHED}"


def _key_of(text: str) -> str:
    try:
        return key_of(text)
    except ValueError as error:
        raise click.ClickException(f"KEY {error}") from None


def _message_files(out: Path, cut: Cut) -> Mapping[Path, int]:
    """Return the message files with their sizes, after checking that they have not changed."""
    files = {out / name: size for name, size in (cut.sizes or {}).items()}
    if not cut.forgetting:  # otherwise some of them have already shrunk
        try:
            for path, size in files.items():
                check_beginning(path, size)
        except ValueError as error:
            raise click.ClickException(f"{error}; nothing was removed") from None
    return files


def _without(
    around: State, keys: Collection[str], key: str, target: Target
) -> tuple[State, CountingSink, list[str]]:
    """Remove keys from everything around the loops; describe what was removed of one of them."""
    played, source = around["game"], around["game"]["source"]
    queue = source["queue"]
    counter, sink = CountingSink(target=target), ReplaySink(None)
    counter.load_state(played["counts"])
    sink.load_state(around["sink"])
    answers = [*source["given"], *(answer for _, answer in queue["waiting"])]
    n_answers = sum(answer["key"] == key for answer in answers)
    what = [f"{number(n_answers, 'answer')} under way"] if n_answers else []
    for each in keys:
        own = counter.forget(each)
        if own is not None:
            sink.forget(each, counter.statistics.n_rejected)
            if each == key:
                what.insert(0, f"a learner with {number(own.n_learned, 'label')}")
    source = {
        **source,
        "given": [answer for answer in source["given"] if answer["key"] not in keys],
        "queue": {
            **queue,
            "waiting": [[n, answer] for n, answer in queue["waiting"] if answer["key"] not in keys],
        },
    }
    played = {**played, "source": source, "counts": counter.state()}
    return {**around, "game": played, "sink": sink.state()}, counter, what


def _rewrite_summary(path: Path, counter: CountingSink) -> None:
    """Update the summary of a finished run."""
    remove_left_over(path)  # of a summary that was being written when the run was killed
    data = read_snapshot(path)
    if data is None:
        return
    try:
        summary = dict(json.loads(data))
    except (ValueError, TypeError):
        path.unlink()  # a key cannot be removed from a damaged file; the next run writes a new one
        return
    mode = path.stat().st_mode & 0o777
    summary.pop("drifts", None)  # of all keys together, the forgotten ones included
    # Notes on the log quote its cells, those of the forgotten included.
    counts = counts_of(counter.statistics, counter.points)
    summary |= {"notes": [], **counts, "keys": counts_of_keys(counter.by_key)}
    write_snapshot(path, laid_out(summary).encode())
    path.chmod(mode)


def _shown(out: Path) -> str:
    """Return a path as the user would type it."""
    here = Path.cwd()
    return str(out.relative_to(here) if out.is_relative_to(here) else out)
