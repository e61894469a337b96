"""Invites: who may answer in a browser, stored in a file as hashes of secrets.

An invite is a link that works once. Redeeming it gives the browser a token, which it sends with
every request. Links and tokens have 256 random bits, so a plain hash protects them; a reader of the
file cannot log in with its contents.

"""

from __future__ import annotations

import hmac
import secrets
import time
from base64 import urlsafe_b64encode
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
"""How long a link is valid."""
_VERSION = 1
_N_BYTES = 32
_LONGEST_SECRET = 100


class InviteError(Exception):
    """An invite that cannot be created or revoked; the text says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """An annotator in a browser.

    Parameters
    ----------
    name
        The annotator's name in answers.
    key
        The only key whose events they may see; None for all.
    token_id
        Id of their browser: part of a hash, not a secret.

    """

    name: str
    key: str | None = None
    token_id: str = "local"

    def sees(self, key: str | None) -> bool:
        """Return whether they may see the events of a key."""
        return self.key in (None, key)


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

    The file is replaced as a whole and checked at every request, so that another process's changes
    take effect at once. If it exists and cannot be read, no annotator is let in.

    Parameters
    ----------
    path
        The file; created with the first invite, with access for its owner only.

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

    # _invites  what the file held when it was last read
    # _people   annotators in it, by the hash of their token
    # _seen     version of the file at that time; set last, as threads look, too
    # _trouble  why the file could not be read, None if it could
    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        self._invites: tuple[_Invite, ...] = ()
        self._people: dict[str, Person] = {}
        self._seen: tuple[int, int, int] | None = None
        self._trouble: str | None = None

    @property
    def trouble(self) -> str | None:
        """Why no invite is accepted, None if the file can be read."""
        self._look()
        return self._trouble

    def person(self, token: str) -> Person | None:
        """Return the annotator to whom a token belongs, or None."""
        self._look()
        return self._people.get(_hash(token))

    def holds(self, person: Person) -> bool:
        """Return whether a browser that was let in still has access."""
        self._look()
        return person in self._people.values()

    def names_of(self, key: str) -> set[str]:
        """Return the names that are invited to the events of a key, and have used a link."""
        self._look()
        return {each.name for each in self._people.values() if each.sees(key)}

    def names(self) -> list[str]:
        self._look()
        return [each.name for each in self._invites]

    def invite(self, name: str, *, key: str | None = None) -> str:
        """Create a link and return its secret; existing links of the name stay valid.

        Raises
        ------
        InviteError
            If the name is invited to another key's events.
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
        """Revoke the links and tokens of a name; return whether there were any."""
        with self._changing() as invites:
            return invites.pop(name, None) is not None

    def invited(self, link: str, attempt: str | None = None) -> str | None:
        """Return whose link it is, None if it cannot be redeemed; looking does not use it up.

        Raises
        ------
        StateError
            If the file cannot be read.

        """
        if (trouble := self.trouble) is not None:
            raise StateError(trouble)
        if attempt is not None and (person := self.person(_token(link, attempt))) is not None:
            return person.name
        hashed = _hash(link)
        found = (each.name for each in self._invites if self._is_for(each, hashed))
        return next(found, None)

    def redeem(self, link: str, attempt: str | None = None) -> str | None:
        """Exchange a link for a token; None if the link is unknown, expired or used.

        The same attempt, a secret of the browser, gets the same token again: the first reply may
        have been lost on the way.
        """
        if self.invited(link, attempt) is None:
            return None
        token, hashed = _token(link, attempt), _hash(link)
        with self._changing() as invites:
            for name, invite in invites.items():
                if _hash(token) in invite.tokens:
                    return token
                if self._is_for(invite, hashed):
                    others = (each for each in self._valid(invite.links) if each.sha256 != hashed)
                    invites[name] = replace(
                        invite,
                        links=tuple(others),
                        tokens=(*invite.tokens, _hash(token)),
                    )
                    return token
        return None

    # --- internal

    def _valid(self, links: tuple[_Link, ...]) -> tuple[_Link, ...]:
        return tuple(link for link in links if self._clock() <= link.until)

    def _is_for(self, invite: _Invite, hashed: str) -> bool:
        """Return whether an invite has a valid link, told by its hash."""
        return any(each.sha256 == hashed for each in self._valid(invite.links))

    def _look(self) -> None:
        """Read the file if it has changed since it was last read."""
        seen = file_version(self.path)
        if seen == self._seen and self._trouble is None:
            return
        try:
            file = self._read()
        except StateError as error:
            self._invites, self._people, self._trouble, self._seen = (), {}, str(error), None
            return
        self._invites = file.invites
        self._people = {
            token: Person(name=invite.name, key=invite.key, token_id=token[:16])
            for invite in file.invites
            for token in invite.tokens
        }
        self._trouble, self._seen = None, seen

    def _read(self) -> _File:
        data = read_snapshot(self.path)
        if data is None:
            return _File()
        try:
            file = msgspec.json.decode(data, type=_File)
        except msgspec.DecodeError as error:
            raise StateError(
                f"{self.path} is not a file of invites ({error}); name another one or, if it is "
                "damaged, restore it from a backup, or remove it and invite again"
            ) from None
        if file.version != _VERSION:
            raise StateError(
                f"{self.path} has version {file.version}, expected {_VERSION}; it was written by "
                "another streamgp"
            )
        return file

    @contextmanager
    def _changing(self) -> Iterator[dict[str, _Invite]]:
        """Yield the invites by name for changes, and store them; other processes wait."""
        with locked(self.path):
            before = self._read()
            invites = {invite.name: invite for invite in before.invites}
            yield invites
            after = _File(invites=tuple(invites.values()))
            if after != before:
                write_snapshot(self.path, msgspec.json.encode(after))


def invites_of(config: WorkerConfig, file: Path | None) -> Invites:
    """Return the invites of a deployment, from a file or from the usual place."""
    return Invites(Path(config.worker.state) / INVITES if file is None else file)


def _token(link: str, attempt: str | None) -> str:
    """Return a new token, or the one that follows from two secrets: link and attempt."""
    if attempt is None:
        return secrets.token_urlsafe(_N_BYTES)
    key, said = (secret.encode("utf-8", "replace") for secret in (link, attempt))
    return urlsafe_b64encode(hmac.digest(key, said, "sha256")).decode().rstrip("=")


def _hash(secret: str) -> str:
    # Longer input than our secrets is not worth hashing.
    return sha256(secret[:_LONGEST_SECRET].encode("utf-8", "replace")).hexdigest()
