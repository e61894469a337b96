"""Results of a replay: the summary, the timing, the text for the terminal, and the web page.

Only `timing.json` contains durations, and no file contains a path or the time of day, so that
otherwise the same log and seed give the same bytes.

"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import click
import msgspec

from connectors.jsonl import FILES, read_messages
from connectors.storage.snapshots import state_error, write_snapshot
from connectors.wire.codec import DecodeError
from streamgp import __version__
from streamgp.apps.console import number
from streamgp.apps.replay.engine import Played, Points, baseline_rows, row_of
from streamgp.common.annotator_error import Reliability
from streamgp.common.printable import cut, path_text, printable
from streamgp.common.private_files import make_directory, write_private
from streamgp.config.settings import Config, resolved
from streamgp.evaluation import RunStatistics
from streamgp.evaluation.agreement import agreement_lines
from streamgp.evaluation.counts import FirstAnswers
from streamgp.evaluation.stopping import Fall, Gain, expected_gain, found_fall
from streamgp.interactive.messages import (
    Answer,
    Challenge,
    Input,
    LabelledExample,
    Message,
    Rejected,
)
from streamgp.report.run import Outcomes, Refusal, Run, Summary
from streamgp.report.tables import percent, table

_WIDEST_KEY = 20
SUMMARY = "summary.json"
TIMING = "timing.json"
FILE_NAMES = (*dict.fromkeys(FILES.values()), SUMMARY, TIMING)

N_KEYS_SHOWN = 20
N_CLASSES_SHOWN = 5

# Largest share of events without a prediction that the text does not mention.
_MOST_UNSCORED = 0.05


def write_results(
    out: Path, *, log: Path, config: Config, notes: list[str], played: Played, wall_s: float
) -> None:
    """Write `summary.json` and `timing.json` beside the messages, each atomically.

    Of the log only the name is written.

    Parameters
    ----------
    config
        The configuration; written with everything that the preset determines.
    wall_s
        How long everything took, reading and writing included.

    Raises
    ------
    StateError
        If one of them cannot be written.

    """
    summary: dict[str, Any] = {
        "streamgp": __version__,
        "log": path_text(log.name),
        "configuration": _configuration(config),
        "notes": notes,
        "interrupted": played.result.interrupted,
        **counts_of(played.statistics, played.points),
    }
    if played.drifts is not None:
        summary["drifts"] = asdict(played.drifts)
        summary.pop("gain", None)  # as in `results_text`
    if played.weights:
        summary["weights"] = dict(played.weights)
    if played.forms:
        summary["forms"] = dict(played.forms)
    for annotator in summary["annotators"]:
        known = played.reliability.get(annotator["name"])
        if known is not None:
            annotator |= {"by_all_answers": known.error_rate, "insistence": known.insistence}
    if config.log.key is not None:
        summary["keys"] = counts_of_keys(played.by_key)
    timing = {
        "n_events": played.result.n_events,
        "loop_s": played.result.loop_s,
        "microseconds_per_event": played.result.microseconds_per_event,
        "wall_s": wall_s,
    }
    for name, content in ((SUMMARY, summary), (TIMING, timing)):
        write_snapshot(out / name, laid_out(content).encode(), mode=_mode(out))


def _mode(out: Path) -> int:
    """Return the permissions of the message files, for files written beside them."""
    first, *_ = FILES.values()
    return (out / first).stat().st_mode & 0o777


def counts_of(statistics: RunStatistics, points: Points) -> dict[str, Any]:
    """Return the parts of the summary that count all events."""
    of_classes = statistics.target == "label"
    gain = _gain(statistics, points)
    return {
        "results": statistics.summary(),
        "baselines": statistics.baselines(),
        "curve": points.summary(),
        **({} if gain is None else {"gain": asdict(gain)}),
        "confusion": statistics.confusion.summary(),
        **({"calibration": statistics.calibration.summary()} if of_classes else {}),
        **({} if of_classes else {"distributions": statistics.errors.summary()}),
        "annotators": [
            {"name": name, **answers.summary()} for name, answers in statistics.annotators.items()
        ],
        **({"agreement": agreement} if (agreement := statistics.agreement.summary()) else {}),
    }


def _gain(statistics: RunStatistics, points: Points) -> Gain | None:
    """Return the expected gain of further labels; None if unknown, and for numbers."""
    if statistics.target != "label":
        return None
    curve = points.summary()
    return expected_gain(
        curve["n_events"],
        curve["accuracy"],
        curve["n_asked"],
        n_scored=statistics.n_scored,
    )


def _fall(statistics: RunStatistics, points: Points) -> Fall | None:
    """Return whether the accuracy fell along the run; None for numbers, too."""
    if statistics.target != "label":
        return None
    curve = points.summary()
    return found_fall(curve["n_events"], curve["accuracy"], n_scored=statistics.n_scored)


def _against_drift(config: Config) -> str:
    """Return which setting is for concept drift, if it is not in use."""
    if resolved(config).drift_test.enabled:
        return ""
    return "\nif it is concept drift, enabled = true in [drift_test] may help"


def counts_of_keys(by_key: Mapping[str | None, RunStatistics]) -> dict[str, Any]:
    """Return the results of each key."""
    return {str(key): statistics.summary() for key, statistics in by_key.items()}


def _configuration(config: Config) -> dict[str, Any]:
    """Return the effective configuration: one annotator or several, not both."""
    settings: dict[str, Any] = msgspec.to_builtins(resolved(config))
    for name in ("per_day", "at_start", "per_hour", "availability"):
        del settings["questions"][name]  # they are part of the budget
    del settings["annotator" if config.annotators else "annotators"]
    if config.windows is None:
        del settings["windows"]
    return settings


def laid_out(content: dict[str, Any]) -> str:
    """Return JSON that people can read too: a list of numbers is on one line.

    Examples
    --------
    >>> print(laid_out({"n_events": [1, 2], "accuracy": [None, 0.5]}), end="")
    {
      "n_events": [1, 2],
      "accuracy": [null, 0.5]
    }

    """
    text = json.dumps(content, indent=2, allow_nan=False)
    # Strings in JSON contain no line breaks, so this matches no part of one.
    text = re.sub(r'\[\n([^][{}"]*)\]', lambda found: f"[{' '.join(found[1].split())}]", text)
    return text + "\n"


def results_text(config: Config, played: Played) -> str:
    """Return the table, with a row for each key if there are keys, and the counts below it."""
    numbers = config.target == "number"
    baselines = baseline_rows(played.statistics)
    if config.log.key is None:
        text = table([played.row(learner_name(config)), *baselines], numbers=numbers)
    else:
        first = list(played.by_key.items())[:N_KEYS_SHOWN]
        n_keys = len(played.by_key)
        shown = "" if n_keys <= N_KEYS_SHOWN else f", {N_KEYS_SHOWN} of them shown"
        # Time is only measured for the loop as a whole.
        names = _apart([str(key) for key, _ in first])
        rows = [row_of(name, of, None) for name, (_, of) in zip(names, first, strict=True)]
        rows += [played.row(f"all {number(n_keys, 'key')}{shown}"), *baselines]
        text = table(rows, first=config.log.key, numbers=numbers)
    statistics, points = played.statistics, played.points
    gain, fall = _gain(statistics, points), _fall(statistics, points)
    # After a drift the record is no learning curve, and a fit to it would tell nothing.
    advice = [str(each) for each in (played.drifts or gain,) if each is not None]
    if fall is not None:
        advice.append(f"{fall}{_against_drift(config)}")
    agreement = agreement_lines(statistics.agreement)
    return "\n".join([text, _counts(played), *_annotators(played), *agreement, *advice])


def _on_one_line(name: str) -> str:
    """Return a key or label for a table: without line breaks, and not too long."""
    return cut(printable(name), _WIDEST_KEY)


def _apart(keys: Sequence[str]) -> list[str]:
    """Return keys on one line each; those that only end differently lose their beginnings."""
    begin = [_on_one_line(key) for key in keys]
    end = [cut(printable(key)[::-1], _WIDEST_KEY)[::-1] for key in keys]
    return end if len(set(begin)) < len(set(end)) else begin


def learner_name(config: Config) -> str:
    """Return the learner's name in tables."""
    name = config.learner.name
    return "skeptical GP" if name == "gp" else f"skeptical {re.split('[.:]', name)[-1]}"


def _counts(played: Played) -> str:
    run = played.statistics
    return (
        f"{number(run.n_events, 'event')}, {number(run.n_answered, 'answer')}, "
        f"{run.n_declined} declined, "
        f"{run.n_expired} expired, {run.n_rejected} rejected\n"
        f"{number(run.n_learned, 'label')} learned; {_challenge_counts(run)}{_unmeasured(run)}"
        f"{_never_predicted(run)}"
    )


def _challenge_counts(run: RunStatistics) -> str:
    if not run.n_challenges:
        return "none was challenged"
    if not run.is_judged:
        return "whether a challenged one was wrong is not known"
    repaired, spoiled = number(run.n_repaired, "wrong one"), number(run.n_spoiled, "right one")
    return f"challenges repaired {repaired} and spoiled {spoiled}"


def _unmeasured(run: RunStatistics) -> str:
    """Return a note on which events the metrics cover, if not all."""
    measures = "accuracy and F1" if run.target == "label" else "the errors"
    if run.n_known and not run.n_scored:
        why = "the first label was learned after them" if run.n_learned else "no label was learned"
        return f"\nno event with a label was predicted: {why}"
    if run.n_known == run.n_events:
        unscored = run.n_known - run.n_scored
        if unscored <= _MOST_UNSCORED * run.n_known:
            return ""
        return (
            f"\n{measures} leave out {number(unscored, 'event')} without a prediction, such as "
            "those before the first label"
        )
    if not run.n_known:
        return (
            f"\nno event has a label: {measures}, challenge precision and wrong labels are not "
            "measured"
        )
    return (
        f"\n{run.n_known} of the events {'has' if run.n_known == 1 else 'have'} a label; "
        f"{measures}, challenge precision and wrong labels are measured on these only"
    )


def _never_predicted(run: RunStatistics) -> str:
    """Return a note on the classes that were never predicted, which accuracy hides if rare.

    Where there is but one class, accuracy means nothing; events without a prediction may have more.
    """
    labels = run.confusion.summary()["labels"]
    if len(labels) == 1 < run.n_scored:
        only = _on_one_line(str(labels[0]))
        return f"\nevery label that is measured is {only}: accuracy and F1 say nothing"
    missed = sorted(run.confusion.never_predicted().items(), key=lambda item: -item[1])
    if not missed:
        return ""
    shown = [f"{_on_one_line(str(y))} ({number(n, 'event')})" for y, n in missed[:N_CLASSES_SHOWN]]
    others = len(missed) - len(shown)
    more = f", and {others} more" if others else ""
    return f"\nnever predicted: {', '.join(shown)}{more}"


def _annotators(played: Played) -> list[str]:
    """Return a line about each annotator, if there are several."""
    annotators = played.statistics.annotators
    if len(annotators) < 2:
        return []
    return [
        f"{'unnamed' if name is None else _on_one_line(name)}: "
        f"{percent(answers.error_rate)} wrong, estimated {percent(answers.estimate)}, "
        f"of {number(answers.n_answers, 'answer')}{_by_all_answers(played.reliability.get(name))}"
        f"{_quarantine(answers)}"
        for name, answers in annotators.items()
    ]


def _by_all_answers(known: Reliability | None) -> str:
    if known is None:
        return ""
    return (
        f"; by all answers together {percent(known.error_rate)} wrong, and "
        f"{percent(known.insistence)} of the wrong ones insisted on"
    )


def _quarantine(answers: FirstAnswers) -> str:
    if not answers.n_quarantines:
        return ""
    return f"; then in quarantine, {number(answers.n_taken_back, 'label')} taken back"


# --- A run read back from the directory of `streamgp replay --out DIR`.
#
# Only the summary and the conversation are read, line by line: the predictions, by far the largest
# file, are already summarized in its curve and confusion matrix.


N_REFUSALS_SHOWN = 10
N_ESTIMATES_SHOWN = 6


def read_run(directory: Path) -> Run:
    """Read a run.

    Raises
    ------
    click.ClickException
        If a file is missing, damaged, or from another run.

    """
    try:
        summary = _read_summary(directory / SUMMARY)
        outcomes = Outcomes()
        refusals: list[Refusal] = []
        n_rejected = 0
        for message in _messages(directory):
            outcomes.add(message)
            if isinstance(message, Rejected):
                n_rejected += 1
                if n_rejected <= N_REFUSALS_SHOWN:
                    refusals.append(Refusal(subject=message.subject, reason=message.reason))
    except OSError as error:
        raise click.ClickException(
            f"cannot read {error.filename or directory}: {error.strerror or error}; "
            "name a directory that `streamgp replay --out` wrote"
        ) from None
    except DecodeError as error:
        raise click.ClickException(f"{error}; run `streamgp replay` again") from None
    _check(directory, "challenges", outcomes.n_challenges, summary.results.n_challenges)
    _check(directory, "rejected inputs", n_rejected, summary.results.n_rejected)
    return Run(
        **{each.name: getattr(summary, each.name) for each in fields(summary)},
        estimates=outcomes.estimates(N_ESTIMATES_SHOWN),
        challenges=outcomes.challenges(),
        outcomes=outcomes.counts(),
        refusals=refusals,
    )


def _read_summary(path: Path) -> Summary:
    data = path.read_bytes()
    try:
        return msgspec.json.decode(data, type=Summary)
    except msgspec.ValidationError as error:
        raise click.ClickException(
            f"{path} is not in the format of this version ({_in_words(error)}); run "
            "`streamgp replay` again"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise click.ClickException(
            f"{path} is damaged: it is not JSON; run `streamgp replay` again"
        ) from None


def _in_words(error: msgspec.ValidationError) -> str:
    return str(error).replace("Object missing required field", "there is no").replace("`", "'")


def _messages(directory: Path) -> Iterator[Input | Message]:
    # Questions, then answers, then what was learned: the order that `Outcomes` needs.
    for kind in (Challenge, Answer, Rejected, LabelledExample):
        yield from read_messages(directory / FILES[kind])


def _check(directory: Path, what: str, found: int, expected: int) -> None:
    if found != expected:
        raise click.ClickException(
            f"{directory} holds {found} {what} and its {SUMMARY} tells of {expected}: damaged, or "
            "of two runs; run `streamgp replay` again"
        )


def write_report(directory: Path, path: Path) -> None:
    """Write the report page of the run in a directory.

    Raises
    ------
    click.ClickException
        If the files cannot be read or the page cannot be written.

    """
    from streamgp.report.page import page

    text = page(read_run(directory))
    try:
        make_directory(path.parent)
        write_private(path, text.encode())
    except OSError as error:
        raise click.ClickException(str(state_error(f"cannot write {path}", error))) from None
