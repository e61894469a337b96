"""Compatibility of topics with a worker: same configuration, and no other group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connectors.topics import Record
from connectors.worker.settings import SETTINGS, WINDOWS, source_of
from streamgp import __version__
from streamgp.common.environment import differences, differences_text, environment

GROUP = "group"
"""Name of the group in a partition's record `configuration`."""
ENVIRONMENT = "environment"
"""Name of the numerical environment in the same record; earlier versions left it out."""


BEING_RECOVERED = "being recovered"
"""Replaces the fingerprint while state is recovered; no configuration has this one."""
BEING_RESTORED = "being restored"
"""Replaces the fingerprint while a backup is restored."""
BEING_REBUILT = "being rebuilt"
"""Replaces the fingerprint while learners are exchanged."""
ON_FLINK = "on Flink"
"""Replaces the fingerprint while Flink keeps what is learned, and the topic `state` does not
count."""
FLINK_KEEPS_IT = (
    "Flink holds what was learned; continue with `streamgp flink`, or hand it back to the workers "
    "with `streamgp flink --hand-back`"
)


class UnfitTopicsError(ValueError):
    """The topics do not fit the worker; the text says why, and what to do."""


class ChangedConfigurationError(UnfitTopicsError):
    """The topics hold what a worker with another configuration has learned."""


class OtherGroupError(UnfitTopicsError):
    """Workers of another group write what they learn into the same topics."""


class DifferentEnvironmentError(UnfitTopicsError):
    """The topics were written in another numerical environment, or in one that is not recorded."""


def signature(configuration: Mapping[str, Any], group: str) -> dict[str, Any]:
    """Return a worker's signature of a partition: its record `configuration` in `state`."""
    return {
        **configuration,
        GROUP: group,
        "streamgp": __version__,
        ENVIRONMENT: environment(),
    }


def environment_in(signed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numerical environment in a signature, {} if it is not recorded.

    Examples
    --------
    >>> environment_in({"keyed": True}), environment_in({"environment": {"numpy": "2.4.6"}})
    ({}, {'numpy': '2.4.6'})

    """
    found = signed.get(ENVIRONMENT)
    return found if isinstance(found, dict) else {}


def check_environment(partition: int, theirs: Mapping[str, Any] | None) -> None:
    """Check that a partition was processed in the numerical environment of this process.

    Parameters
    ----------
    theirs
        Environment of its last worker, {} if not recorded; None if there was no worker.

    Raises
    ------
    DifferentEnvironmentError
        If it was another one, or is not recorded.

    Examples
    --------
    >>> check_environment(2, {"numpy": "1.26.4"})
    Traceback (most recent call last):
    connectors.worker.compatibility.DifferentEnvironmentError: partition 2 was processed in ...

    """
    if theirs is None:
        return
    if not theirs:
        raise DifferentEnvironmentError(
            f"partition {partition} was processed by a streamgp that did not record its numerical "
            "environment, so --strict cannot check it; continue without --strict, which records it "
            "with the next input"
        )
    found = differences(theirs)
    if found:
        raise DifferentEnvironmentError(
            f"partition {partition} was processed in another numerical environment "
            f"({differences_text(found)}), and --strict demands the same; go back to it, or "
            "continue without --strict: results agree to about 1e-9, not bitwise"
        )


def without_learner(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration as far as a command that replaces all learners cannot change it.

    Examples
    --------
    >>> without_learner({"fingerprint": "2e", "keyed": True})
    {'keyed': True}

    """
    left_out = ("fingerprint", SETTINGS)
    return {name: value for name, value in configuration.items() if name not in left_out}


def is_on_flink(signed: Mapping[str, Any] | None) -> bool:
    """Return whether a partition's signature says that Flink keeps what is learned.

    Examples
    --------
    >>> is_on_flink({"fingerprint": ON_FLINK}), is_on_flink({}), is_on_flink(None)
    (True, False, False)

    """
    return (signed or {}).get("fingerprint") == ON_FLINK


def interrupted_command(signed: Mapping[str, Any] | None) -> str | None:
    """Return the command that was interrupted while it wrote to a partition, None if none was.

    Examples
    --------
    >>> interrupted_command({"fingerprint": BEING_RESTORED}), interrupted_command(None)
    ('restore', None)

    """
    commands = {BEING_RECOVERED: "recover", BEING_RESTORED: "restore"}
    return commands.get(str((signed or {}).get("fingerprint")))


def check_signed(
    partition: int, theirs: Mapping[str, Any] | None, ours: Mapping[str, Any], group: str | None
) -> None:
    """Check a partition's signature.

    Parameters
    ----------
    theirs
        The signature in the topics, None if there is none. Those of earlier versions name no group.
    ours
        This worker's configuration.
    group
        This worker's group; None if it does not matter.

    Raises
    ------
    OtherGroupError
        If another group has processed the partition.
    ChangedConfigurationError
        If the configuration was another one.
    UnfitTopicsError
        If Flink processes the partition.

    Examples
    --------
    >>> check_signed(2, {"keyed": True, "group": "rooms"}, {"keyed": True}, "phones")
    Traceback (most recent call last):
    connectors.worker.compatibility.OtherGroupError: partition 2 belongs to the group 'rooms', ...

    """
    if theirs is None:
        return
    if is_on_flink(theirs):
        raise UnfitTopicsError(f"partition {partition}: {FLINK_KEEPS_IT}")
    check_group(partition, theirs, group)
    names = dict.fromkeys([*ours, WINDOWS])  # only one side may have windows
    differing = [name for name in names if name != SETTINGS and theirs.get(name) != ours.get(name)]
    if differing == ["fingerprint"] and theirs.get("fingerprint") == BEING_REBUILT:
        raise ChangedConfigurationError(
            f"partition {partition} is being rebuilt: an earlier `streamgp rebuild` was "
            "interrupted; run it again"
        )
    if differing:
        there = ", ".join(f"{name} {theirs.get(name)!s:.16}" for name in differing)
        here = ", ".join(f"{name} {ours.get(name)}" for name in differing)
        named, own = theirs.get(SETTINGS), ours.get(SETTINGS, {})
        known = named if isinstance(named, dict) else {}
        changed = ", ".join(name for name in own if name in known and known[name] != own[name])
        raise ChangedConfigurationError(
            f"partition {partition} was processed with another configuration ({there}; here "
            f"{here}{changed and f'; different: {changed}'}); go back to it, or "
            + (
                "use other topics"
                if {"keyed", WINDOWS} & set(differing)
                else "take the new one over with `streamgp rebuild`; if you changed nothing, the "
                "defaults of this version of streamgp differ: its changelog says how to set the "
                "former ones"
            )
        )


def check_group(partition: int, theirs: Mapping[str, Any], group: str | None) -> None:
    """Check that a partition's signature names a group.

    Raises
    ------
    OtherGroupError
        If it names another one.

    """
    other = theirs.get(GROUP, group)
    if group is not None and other != group:
        raise OtherGroupError(
            f"partition {partition} belongs to the group {other!r}, this worker is in {group!r}, "
            f"and two groups would corrupt each other's learners; use the group name {other!r}, or "
            "other topics"
        )


def check_alone(record: Record, group: str) -> None:
    """Check that our own group wrote a line of the consensus log since the restore.

    Two groups may have started at the same time, when neither had signed yet.

    Raises
    ------
    OtherGroupError
        If it names another one.

    """
    ours = source_of(group)
    theirs = next((v.decode(errors="replace") for k, v in record.headers if k == "ce_source"), ours)
    # Other programs' records with headers of CloudEvents are no lines, and of no group.
    if theirs != ours and theirs.startswith(source_of("")):
        raise OtherGroupError(
            f"{theirs!r:.80} writes what it learns into the same topics as {ours!r} "
            f"(consensus:{record.partition}:{record.offset}), and two groups would corrupt each "
            "other's learners; stop one of them, and give it other topics"
        )
