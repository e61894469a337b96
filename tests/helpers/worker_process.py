"""A worker in a process of its own, for tests of signals, exit statuses and logs."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from types import MappingProxyType
from typing import Any, ClassVar

from connectors.topics import Topics
from streamgp.apps.console import Stop

MAIN = "from streamgp.cli.main import main\nmain()"
ENVIRONMENT = {**os.environ, "PYTHONHASHSEED": "0"}
_PATIENCE_S = 120.0


class Process:
    """A worker in a process of its own; `conftest.py` kills it if the test has not ended it."""

    running: ClassVar[list[Process]] = []

    def __init__(
        self,
        *arguments: str | Path,
        code: str = "",
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"{code}\n{MAIN}", "run", *map(str, arguments)],
            env={**ENVIRONMENT, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._log = b""
        self.running.append(self)

    def wait_for(self, event: str) -> None:
        """Return once an event has been logged."""
        assert self.process.stderr is not None
        while f'"event":"{event}"'.encode() not in self._log:
            ready, _, _ = select.select([self.process.stderr], [], [], _PATIENCE_S)
            assert ready, f"no {event!r} in time; {self._log!r}"
            data = os.read(self.process.stderr.fileno(), 65536)
            assert data, f"ended before {event!r}; {self._log!r}"
            self._log += data

    @property
    def url(self) -> str:
        """Address of its metrics, once it has started."""
        found = re.search(rb'"observe":"(http:[^"]+)"', self._log)
        assert found
        return found[1].decode()

    def end(self) -> tuple[int, list[dict[str, Any]]]:
        """Wait for the end, and return the status and the log."""
        assert self.process.stderr is not None
        status = self.process.wait(_PATIENCE_S)
        log = self._log + self.process.stderr.read()
        self.kill()
        return status, [json.loads(line) for line in log.splitlines()]

    def kill(self) -> None:
        """Kill it if it still runs, and close its streams."""
        self.running.remove(self)
        self.process.kill()
        with self.process:
            pass


class Until(Stop):
    """Stops a worker once nothing waits."""

    def __init__(self, topics: Topics, group: str) -> None:
        super().__init__()
        self._topics, self._group = topics, group
        self._end = monotonic() + 120.0

    def __call__(self) -> bool:
        assert monotonic() < self._end, "not worked off in time"
        return not any(self._topics.lags(self._group).values())
