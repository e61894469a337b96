"""Invites: who may answer in a browser, kept in a file as hashes of secrets.

An invite is a link that works once. Opening it gives the browser a token, which it sends with every
request. Links and tokens are 256 random bits, so a plain hash protects them; the file tells nothing
with which a reader of it could come in.

"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec.structs import replace

from connectors.storage.snapshots import (
    StateError,
    file_version,
    locked,
    read_snapshot,
    write_snapshot,
)
from streamgp.config.settings import WorkerConfig

INVITES = "invites.json"
"""The file, in the directory of the workers' state unless another one is named."""
LINK_VALID_S = 7 * 86_400.0
"""For how long a link can be opened."""
_VERSION = 1
_N_BYTES = 32
_LONGEST_SECRET = 100


class InviteError(Exception):
    """An invite that cannot be made or revoked; the text says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """An annotator at a browser.

    Parameters
    ----------
    name
        How the answers are signed.
    key
        The only key whose events they may see; None for all.
    token_id
        What tells their browser from others: part of a hash, no secret.

    """

    name: str
    key: str | None = None
    token_id: str = "local"


class _Link(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sha256: str
    until: float


class _Invite(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    key: str | None
    links: tuple[_Link, ...] = ()
    tokens: tuple[str, ...] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int = _VERSION
    invites: tuple[_Invite, ...] = ()


class Invites:
    """The invites of a deployment, in a file that the page and `streamgp invite` share.

    The file is replaced as a whole and looked at with every question, so that what another process
    has changed counts at once. One that is there and cannot be read lets no annotator in.

    Parameters
    ----------
    path
        The file; made, for its owner alone, with the first invite.
    clock
        Tells the time, POSIX seconds.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     invites = Invites(Path(directory, "invites.json"))
    ...     link = invites.invite("ann", key="phone-3")
    ...     token = invites.redeem(link)
    ...     invites.redeem(link), invites.person(token).name, invites.person("guess")
    (None, 'ann', None)

    """

    # _seen     what tells the file as it was read from the one that lies there now
    # _people   annotators by the hash of their token, as of then
    # _trouble  why the file could not be read, None if it could
    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        self._seen: tuple[int, int, int] | None = None
        self._people: dict[str, Person] = {}
        self._trouble: str | None = None

    @property
    def trouble(self) -> str | None:
        """Why no invite is accepted, None if the file can be read."""
        self._look()
        return self._trouble

    @property
    def seen(self) -> tuple[int, int, int] | None:
        """Mark of the file as it is now; another one when it has changed."""
        self._look()
        return self._seen

    def person(self, token: str) -> Person | None:
        """Return the annotator to whom a token belongs, or None."""
        self._look()
        return self._people.get(_hash(token))

    def holds(self, person: Person) -> bool:
        """Say whether a browser that was let in still may be here."""
        self._look()
        return person in self._people.values()

    def names(self) -> list[str]:
        """Return the names that are invited."""
        return [] if self.trouble is not None else [each.name for each in self._read().invites]

    def invite(self, name: str, *, key: str | None = None) -> str:
        """Return the secret of a new link; those that the name has already stay as they are.

        Raises
        ------
        InviteError
            If the name is invited to other events.
        StateError
            If the file cannot be read or written.

        """
        link = secrets.token_urlsafe(_N_BYTES)
        until = self._clock() + LINK_VALID_S
        with self._changing() as invites:
            there = invites.get(name, _Invite(name, key))
            if there.key != key:
                limit = "all keys" if there.key is None else f"the key {there.key!r}"
                raise InviteError(
                    f"{name!r} is invited to {limit}; revoke that first, or give the same --key"
                )
            links = (*self._valid(there.links), _Link(_hash(link), until))
            invites[name] = replace(there, links=links)
        return link

    def revoke(self, name: str) -> bool:
        """Take the links and tokens of a name back; return whether there were any."""
        with self._changing() as invites:
            return invites.pop(name, None) is not None

    def redeem(self, link: str) -> str | None:
        """Return the token for which a link stands; None if it is unknown, too old, or was used."""
        digest = _hash(link)
        if not any(digest == each.sha256 for i in self._read().invites for each in i.links):
            return None
        with self._changing() as invites:
            for name, invite in invites.items():
                valid = self._valid(invite.links)
                if digest in [each.sha256 for each in valid]:
                    token = secrets.token_urlsafe(_N_BYTES)
                    invites[name] = replace(
                        invite,
                        links=tuple(each for each in valid if each.sha256 != digest),
                        tokens=(*invite.tokens, _hash(token)),
                    )
                    return token
        return None

    # --- inside

    def _valid(self, links: tuple[_Link, ...]) -> tuple[_Link, ...]:
        return tuple(link for link in links if self._clock() <= link.until)

    def _look(self) -> None:
        """Read the file if it is not the one that was read last."""
        seen = file_version(self.path)
        if seen == self._seen and self._trouble is None:
            return
        try:
            file = self._read()
        except StateError as error:
            self._seen, self._people, self._trouble = None, {}, str(error)
            return
        self._seen, self._trouble = seen, None
        self._people = {
            token: Person(name=invite.name, key=invite.key, token_id=token[:16])
            for invite in file.invites
            for token in invite.tokens
        }

    def _read(self) -> _File:
        data = read_snapshot(self.path)
        if data is None:
            return _File()
        try:
            file = msgspec.json.decode(data, type=_File)
        except msgspec.DecodeError as error:
            raise StateError(
                f"{self.path} is not a file of invites ({error}); remove it, and invite again"
            ) from None
        if file.version != _VERSION:
            raise StateError(
                f"{self.path} has version {file.version}, expected {_VERSION}; it was written by "
                "another streamgp"
            )
        return file

    @contextmanager
    def _changing(self) -> Iterator[dict[str, _Invite]]:
        """Give the invites by name, to be changed, and keep them; other processes wait."""
        with locked(self.path):
            before = self._read()
            invites = {invite.name: invite for invite in before.invites}
            yield invites
            after = _File(invites=tuple(invites.values()))
            if after != before:
                write_snapshot(self.path, msgspec.json.encode(after))


def state_of(config: WorkerConfig) -> Path:
    """Return the directory of the workers' state."""
    return Path(config.worker.state)


def invites_of(config: WorkerConfig, file: Path | None) -> Invites:
    """Return the invites of a deployment, from a file or from where they are usually."""
    return Invites(state_of(config) / INVITES if file is None else file)


def _hash(secret: str) -> str:
    # What is longer than any secret of ours is not worth hashing.
    return sha256(secret[:_LONGEST_SECRET].encode("utf-8", "replace")).hexdigest()
