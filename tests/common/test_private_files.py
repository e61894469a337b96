"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamgp.common.private_files import write_private


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
def test_half_a_file_does_not_stay(tmp_path: Path, is_new: bool, by_link: bool) -> None:
    path = tmp_path / "page.html"
    if not is_new:
        path.write_bytes(b"old")
    given = tmp_path / "link" if by_link else path
    if by_link:
        given.symlink_to(path)
    with small_files(), pytest.raises(OSError, match="too large"):
        write_private(given, bytes(2000))
    assert not path.exists()
    write_private(given, bytes(900))
    assert path.read_bytes() == bytes(900)
    assert by_link == given.is_symlink()


def test_a_device_stays() -> None:
    with pytest.raises(OSError, match="No space left"):
        write_private("/dev/full", b"page")
    assert os.path.exists("/dev/full")
