"""The commit of a checkout, read without git."""

from __future__ import annotations

from pathlib import Path

import pytest

import streamgp
from streamgp.apps import release as module
from streamgp.apps.release import commit_of, release

COMMIT = "0123456789abcdef0123456789abcdef01234567"
BRANCH = "ref: refs/heads/main\n"


def write(directory: Path, **files: str) -> None:
    for name, text in files.items():
        path = directory / name.replace("__", "/").replace("_refs", "-refs")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_branch_is_followed(tmp_path: Path) -> None:
    write(tmp_path / ".git", HEAD=BRANCH, refs__heads__main=f"{COMMIT}\n")
    assert commit_of(tmp_path) == COMMIT


def test_a_packed_branch_is_found(tmp_path: Path) -> None:
    other = COMMIT[::-1]
    packed = f"# pack-refs with: peeled\n{other} refs/heads/x/refs/heads/main\n"
    packed += f"{COMMIT} refs/heads/main\n^{other}\n"
    write(tmp_path / ".git", HEAD=BRANCH, packed_refs=packed)
    assert commit_of(tmp_path) == COMMIT


def test_a_commit_without_a_branch_is_taken(tmp_path: Path) -> None:
    write(tmp_path / ".git", HEAD=f"{COMMIT}\n")
    assert commit_of(tmp_path) == COMMIT


def test_a_worktree_shares_the_branches_of_another(tmp_path: Path) -> None:
    git = tmp_path / "main" / ".git"
    write(git, refs__heads__main=COMMIT)
    write(git / "worktrees" / "one", HEAD=BRANCH, commondir="../..\n")
    write(tmp_path / "one", **{".git": "gitdir: ../main/.git/worktrees/one\n"})
    assert commit_of(tmp_path / "one") == COMMIT


@pytest.mark.parametrize("head", ["", "ref: refs/heads/gone\n", "\ufffd", f"{COMMIT}0;x"])
def test_what_is_no_checkout_has_no_commit(tmp_path: Path, head: str) -> None:
    assert commit_of(tmp_path) is None
    write(tmp_path / ".git", HEAD=head)
    assert commit_of(tmp_path) is None


@pytest.mark.parametrize("commit", [None, COMMIT])
def test_the_release_has_a_commit_if_it_is_known(
    monkeypatch: pytest.MonkeyPatch, commit: str | None
) -> None:
    monkeypatch.setattr(module, "commit_of", lambda _checkout: commit)
    monkeypatch.setattr(module, "_commit_of_wheel", lambda: None)
    release.cache_clear()
    known = "" if commit is None else " (commit 0123456789ab)"
    assert release() == f"{streamgp.__version__}{known}"
    release.cache_clear()
