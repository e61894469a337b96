"""Invites are kept as hashes, for their owner alone, and count at once in every process."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from connectors.storage.snapshots import StateError
from streamgp.apps.page import invites as module
from streamgp.apps.page.invites import LINK_VALID_S, InviteError, Invites


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "invites.json"


def test_the_file_is_private_and_holds_no_secret(path: Path) -> None:
    invites = Invites(path)
    link = invites.invite("ann")
    token = invites.redeem(link)
    assert token is not None
    text = path.read_text()
    assert link not in text
    assert token not in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_what_one_process_changes_counts_in_another_at_once(path: Path) -> None:
    page, command = Invites(path), Invites(path)
    token = page.redeem(command.invite("ann", key="phone-3"))
    assert token is not None
    person = page.person(token)
    assert person is not None
    assert (person.name, person.key) == ("ann", "phone-3")
    assert page.holds(person)
    assert command.revoke("ann")
    assert not page.holds(person)  # asked first: it looks at the file itself
    assert page.person(token) is None
    assert not command.revoke("ann")


def test_a_name_may_have_several_browsers_of_the_same_key(path: Path) -> None:
    invites = Invites(path)
    links = [invites.invite("ann") for _ in range(3)]
    tokens = [invites.redeem(link) for link in links]
    assert len(set(tokens)) == 3
    assert all(token and invites.person(token) for token in tokens)
    with pytest.raises(InviteError, match="invited to all keys; revoke that first"):
        invites.invite("ann", key="phone-3")
    assert len(invites.names()) == 1


def test_a_link_is_of_no_use_twice_or_after_a_week_or_after_a_revocation(path: Path) -> None:
    clock = Clock()
    invites = Invites(path, clock=clock)
    used, late, revoked = (invites.invite(name) for name in ("ann", "ben", "eve"))
    assert invites.redeem(used)
    assert invites.redeem(used) is None
    clock.now += LINK_VALID_S + 1.0
    assert invites.redeem(late) is None
    clock.now = 1000.0
    invites.revoke("eve")
    assert invites.redeem(revoked) is None
    assert invites.redeem("") is None
    attempt, repeated = 16 * "a", invites.invite("eve")
    assert invites.redeem(repeated, attempt) is not None
    assert invites.invited(repeated, attempt) == "eve"
    invites.revoke("eve")
    assert (invites.invited(repeated, attempt), invites.redeem(repeated, attempt)) == (None, None)


def test_links_that_strangers_guess_are_looked_up_without_reading_the_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Invites(path)
    link = page.invite("ann")
    read: list[Path] = []

    def read_snapshot(path: Path) -> bytes:
        read.append(path)
        return path.read_bytes()

    monkeypatch.setattr(module, "read_snapshot", read_snapshot)
    assert [page.invited(each) for each in ("guess", link, "", link)] == [None, "ann", None, "ann"]
    assert page.redeem("guess") is None
    assert len(read) == 1
    Invites(path).revoke("ann")
    assert page.invited(link) is None


def test_a_damaged_file_lets_nobody_in_until_it_is_repaired(path: Path) -> None:
    invites = Invites(path)
    token = invites.redeem(invites.invite("ann"))
    assert token is not None
    kept = path.read_bytes()
    path.write_bytes(b"{")
    assert invites.person(token) is None
    assert "is not a file of invites" in str(invites.trouble)
    # It may be another file that was named by mistake, and must not be removed.
    with pytest.raises(StateError, match=r"is not a file of invites .*; name another one or, if"):
        invites.invite("ben")
    with pytest.raises(StateError, match="is not a file of invites"):
        invites.invited("guess")
    assert invites.names() == []
    path.write_bytes(kept.replace(b'"version":1', b'"version":9'))
    assert "version 9, expected 1" in str(invites.trouble)
    path.write_bytes(kept)
    assert invites.trouble is None
    assert invites.person(token) is not None
    path.unlink()
    assert invites.person(token) is None
