"""A run read back from what `streamgp replay --out DIR` left in its directory.

Only the summary and the conversation are read, line by line: the predictions, by far the largest
file, are in the summary's curve and confusion matrix already.

"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec

from connectors.files.messages import FILES, read_messages
from connectors.wire.codec import DecodeError
from streamgp.cli.replay.results import SUMMARY
from streamgp.interactive.messages import (
    Answer,
    Challenge,
    Input,
    LabelledExample,
    Message,
    Rejected,
)
from streamgp.report.outcomes import Outcomes
from streamgp.report.run import (
    AnnotatorCounts,
    Calibration,
    Confusion,
    Counts,
    Distributions,
    Progress,
    Refusal,
    Run,
)

N_KEYS_SHOWN = 200
N_REFUSALS_SHOWN = 10
N_ESTIMATES_SHOWN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class _Summary:
    """What a page needs of `summary.json`."""

    streamgp: str
    log: str
    configuration: dict[str, Any]
    notes: list[str]
    interrupted: bool
    results: Counts
    curve: Progress
    confusion: Confusion
    annotators: list[AnnotatorCounts]
    keys: dict[str, Counts] | None = None
    calibration: Calibration | None = None
    distributions: Distributions | None = None


def read_run(directory: Path) -> Run:
    """Read a run.

    Raises
    ------
    click.ClickException
        If a file is missing, damaged, or of another run than the rest.

    """
    try:
        summary = _read_summary(directory / SUMMARY)
        outcomes = Outcomes()
        refusals: list[Refusal] = []
        n_rejected = 0
        for message in _messages(directory):
            outcomes.tell(message)
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
    keys = list((summary.keys or {}).items())
    return Run(
        log=summary.log,
        version=summary.streamgp,
        configuration=summary.configuration,
        notes=summary.notes,
        interrupted=summary.interrupted,
        results=summary.results,
        keys=None if summary.keys is None else keys[:N_KEYS_SHOWN],
        n_keys=len(keys),
        curve=summary.curve,
        confusion=summary.confusion,
        calibration=summary.calibration,
        distributions=summary.distributions,
        annotators=summary.annotators,
        estimates=outcomes.estimates(N_ESTIMATES_SHOWN),
        challenges=outcomes.challenges(),
        outcomes=outcomes.counts(),
        refusals=refusals,
    )


def _read_summary(path: Path) -> _Summary:
    data = path.read_bytes()
    try:
        return msgspec.json.decode(data, type=_Summary)
    except msgspec.ValidationError as error:
        raise click.ClickException(
            f"{path} is not as this version writes it ({_in_words(error)}); "
            "run `streamgp replay` again"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise click.ClickException(
            f"{path} is damaged: it holds no JSON; run `streamgp replay` again"
        ) from None


def _in_words(error: msgspec.ValidationError) -> str:
    return str(error).replace("Object missing required field", "there is no").replace("`", "'")


def _messages(directory: Path) -> Iterator[Input | Message]:
    # Questions before answers before what was learned: the order that `Outcomes` asks for.
    for kind in (Challenge, Answer, Rejected, LabelledExample):
        yield from read_messages(directory / FILES[kind])


def _check(directory: Path, what: str, found: int, expected: int) -> None:
    if found != expected:
        raise click.ClickException(
            f"{directory} holds {found} {what} and its {SUMMARY} tells of {expected}: damaged, or "
            "of two runs; run `streamgp replay` again"
        )
