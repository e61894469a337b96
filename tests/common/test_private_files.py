"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamgp.common.private_files import (
    make_directory,
    others_can,
    part_of,
    remove_left_over,
    write_private,
)


@contextmanager
def small_files() -> Iterator[None]:
    """Let no file grow beyond a thousand bytes, as if the disk were full.

    Not for a whole test: the runner may write what passes to a file, which is longer.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("by_link", [True, False])
def test_a_file_that_cannot_be_written_whole_stays_as_it_was(
    tmp_path: Path, is_new: bool, by_link: bool
) -> None:
    path = tmp_path / "page.html"
    if not is_new:
        path.write_bytes(b"old")
        path.chmod(0o640)
    given = tmp_path / "link" if by_link else path
    if by_link:
        given.symlink_to(path)
    with small_files(), pytest.raises(OSError, match="too large"):
        write_private(given, bytes(2000))
    assert (not path.exists()) if is_new else path.read_bytes() == b"old"
    write_private(given, bytes(900))
    assert path.read_bytes() == bytes(900)
    assert path.stat().st_mode & 0o777 == (0o600 if is_new else 0o640)
    assert by_link == given.is_symlink()
    assert {each.name for each in tmp_path.iterdir()} == {path.name, given.name}


@pytest.mark.parametrize("name", ["page.html", "p" * 255, "ä" * 127])
def test_parts_of_a_killed_process_go_once_they_are_old(tmp_path: Path, name: str) -> None:
    """A young one may be that of a process that writes the same file just now."""
    path = tmp_path / name
    others = {part_of(tmp_path / f"{prefix}page.html") for prefix in ("my", "page.html.")}
    old, young = part_of(path), part_of(path)
    for part in (old, young, *others):
        part.write_bytes(b"half")
        os.utime(part, (0, 0))
    os.utime(young)
    write_private(path, b"page")
    assert {*tmp_path.iterdir()} == {path, young, *others}
    remove_left_over(path)
    assert {*tmp_path.iterdir()} == {path, *others}


def test_a_file_that_is_missing_its_directory_is_named(tmp_path: Path) -> None:
    path = tmp_path / "no" / "page.html"
    with pytest.raises(FileNotFoundError) as raised:
        write_private(path, b"page")
    assert raised.value.filename == str(path)


def test_a_file_in_a_directory_that_cannot_be_written_to_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(b"old")
    before = path.stat().st_ino
    monkeypatch.setattr(os, "access", lambda where, _mode: where != str(tmp_path))
    write_private(path, b"page")
    assert (path.read_bytes(), path.stat().st_ino) == (b"page", before)


def test_a_file_that_others_reach_in_another_way_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "page.html", tmp_path / "other"
    path.write_bytes(b"old page")
    before = path.stat().st_ino
    os.link(path, other)
    write_private(path, b"page")
    assert (other.read_bytes(), path.stat().st_ino) == (b"page", before)
    other.unlink()
    for name, result in (
        ("getegid", lambda: path.stat().st_gid + 1),  # it was given to another group
        ("listxattr", lambda _: ["system.posix_acl_access"]),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(os, "getgroups", list)
            patch.setattr(os, name, result)
            write_private(path, name.encode())
        assert (path.read_bytes(), path.stat().st_ino) == (name.encode(), before)


def test_a_file_that_is_replaced_keeps_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(b"old")
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "chown", lambda _, *ids: given.append(ids))
    write_private(path, b"page")
    assert given == [(-1, path.stat().st_gid)]


def test_a_file_that_is_a_mount_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As is a single file of the host in a container."""

    def busy(*_: object) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    path = tmp_path / "page.html"
    path.write_bytes(b"old page")
    monkeypatch.setattr(os, "replace", busy)
    write_private(path, b"page")
    assert path.read_bytes() == b"page"
    assert [*tmp_path.iterdir()] == [path]


def test_what_goes_to_the_output_comes_between_what_is_printed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """As of `streamgp labels --out /dev/stdout`, where the output is a file."""
    assert stat.S_ISREG(os.fstat(1).st_mode)
    print("first")
    for path in ("/dev/stdout", "/dev/fd/1"):
        write_private(path, b"labels\n")
    print("last")
    assert capfd.readouterr().out == "first\nlabels\nlabels\nlast\n"


def test_a_device_stays() -> None:
    with pytest.raises(OSError, match="No space left"):
        write_private("/dev/full", b"page")
    assert os.path.exists("/dev/full")


def test_the_directories_that_were_made_are_told(tmp_path: Path) -> None:
    made = [tmp_path / "a", tmp_path / "a" / "b"]
    assert make_directory(made[-1]) == made
    assert make_directory(made[-1]) == []


def test_a_directory_on_a_drive_that_is_not_there_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such as D: on Windows, which is its own parent."""

    def mkdir(path: Path, _mode: int) -> None:
        raise FileNotFoundError(errno.ENOENT, "not there", str(path))

    monkeypatch.setattr(Path, "is_dir", lambda _path: False)
    monkeypatch.setattr(os, "mkdir", mkdir)
    with pytest.raises(FileNotFoundError, match="not there: '/topics'"):
        make_directory("/topics/new")


def test_a_link_to_itself_gives_others_no_right(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(link)
    assert others_can(link) is None
