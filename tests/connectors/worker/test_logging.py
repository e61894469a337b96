"""Log lines of a worker, and the file that shows that it is alive."""

from __future__ import annotations

from pathlib import Path

from connectors.storage.snapshots import StateDirectory
from connectors.worker.logging import ALIVE, WorkerLog


def test_file_that_shows_life_is_for_its_owner_alone(tmp_path: Path) -> None:
    with StateDirectory(tmp_path / "state") as state:
        log = WorkerLog(state)
        log.show_life()
        log.show_life()
        assert f"{state.file(ALIVE).stat().st_mode & 0o777:o}" == "600"
