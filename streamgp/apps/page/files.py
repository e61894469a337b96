"""Files of the page, read once: no request can name anything else."""

from __future__ import annotations

import mimetypes
from hashlib import sha256
from pathlib import Path


def static_files(directory: Path) -> dict[str, tuple[bytes, str, str]]:
    """Return the files of a directory by their names: their bytes, their kind, and an ETag.

    They are read once: no request can name anything else.
    """
    files = {}
    for path in sorted(directory.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            data = path.read_bytes()
            tag = f'"{sha256(data).hexdigest()[:32]}"'
            files[path.relative_to(directory).as_posix()] = (data, _kind_of(path), tag)
    return files


_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}


def _kind_of(path: Path) -> str:
    guessed = mimetypes.guess_type(path.name)[0]
    return _KINDS.get(path.suffix, guessed or "application/octet-stream")
