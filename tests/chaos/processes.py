"""Processes under chaos, which end with the process that started them, and the plan of harm."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

ROOT = Path(__file__).resolve().parents[2]
FINAL = frozenset({2, 65, 70, 76})
"""Exit statuses after which a supervisor must not restart a worker."""
Harm: TypeAlias = Literal["kill", "term", "stop"]
HARMS: tuple[Harm, ...] = ("kill", "term", "stop")
_SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "stop": signal.SIGSTOP}
_RESTART_S = 0.5
ENVIRONMENT = {
    **os.environ,
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONUNBUFFERED": "1",
}
"""Of every program."""


class Program:
    """A process that ends with the thread that started it, if `setpriv` is available.

    Parameters
    ----------
    name
        Name of its log.
    arguments
        Arguments of Python.
    logs
        Folder of the log.

    """

    def __init__(self, name: str, arguments: Sequence[str], logs: Path) -> None:
        self.name = name
        self.log = logs / f"{name}.log"
        guard = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*guard, sys.executable, *arguments],
                cwd=ROOT,
                env=ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for us, who end it
            )

    @property
    def status(self) -> int | None:
        """The exit status; None while it runs."""
        return self._process.poll()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def wait(self, timeout_s: float) -> int | None:
        """Wait until it ends; return the status, or None if it had to be killed."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()

    def tail(self, n_lines: int = 20) -> str:
        """Return the last lines of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-n_lines:])


class Workers:
    """Workers of one group, restarted as by a supervisor.

    Parameters
    ----------
    config
        The configuration of all.
    n_workers
        Number of workers.
    logs
        Folder of their logs.

    Attributes
    ----------
    statuses
        How often workers ended with each exit status; None for those that had to be killed.

    """

    # _stopped  when a stopped worker continues, by its index
    # _fallen   when a worker that has ended is restarted
    def __init__(self, config: Path, n_workers: int, logs: Path) -> None:
        self.statuses: Counter[int | None] = Counter()
        self._config = config
        self._logs = logs
        self._stopped: dict[int, float] = {}
        self._fallen: dict[int, float] = {}
        self._given_up: set[int] = set()
        self._addresses = [f"127.0.0.1:{port}" for port in _free_ports(n_workers)]
        self._programs = [self._start(n) for n in range(n_workers)]

    def observed(self) -> list[tuple[str, str]]:
        """Return each life of a running worker, and the address of its metrics."""
        both = zip(self._programs, self._addresses, strict=True)
        return [
            (f"{program.name}/{program.pid}", address)
            for program, address in both
            if program.status is None
        ]

    @property
    def n_given_up(self) -> int:
        """Number of workers with an exit status after which no supervisor restarts them."""
        return len(self._given_up)

    def watch(self) -> None:
        """Continue stopped workers whose time has come, and restart those that have ended."""
        now = time.monotonic()
        for n, program in enumerate(self._programs):
            if self._stopped.get(n, now) < now:
                del self._stopped[n]
                program.send(signal.SIGCONT)
            if program.status is None or n in self._given_up:
                continue
            if n not in self._fallen:
                self.statuses[program.status] += 1
                self._fallen[n] = now + _RESTART_S
                if program.status in FINAL:
                    self._given_up.add(n)
            elif self._fallen[n] < now:
                del self._fallen[n]
                self._programs[n] = self._start(n)

    def hurt(self, harm: Harm, rng: random.Random, stop_s: float) -> str | None:
        """Do harm to a worker at work; return its name, or None if there is none."""
        able = [
            n
            for n, program in enumerate(self._programs)
            if program.status is None and n not in self._stopped
        ]
        if not able:
            return None
        n = rng.choice(able)
        self._programs[n].send(_SIGNALS[harm])
        if harm == "stop":
            self._stopped[n] = time.monotonic() + stop_s
        return self._programs[n].name

    def wake(self) -> None:
        """Continue all stopped workers."""
        for n in self._stopped:
            self._programs[n].send(signal.SIGCONT)
        self._stopped.clear()

    def end(self, timeout_s: float) -> list[int | None]:
        """Terminate all workers; return the exit statuses."""
        self.wake()
        for program in self._programs:
            program.send(signal.SIGTERM)
        return [program.wait(timeout_s) for program in self._programs]

    def kill(self) -> None:
        """Kill all workers."""
        for program in self._programs:
            program.kill()

    def tail(self) -> str:
        """Return the last line of each log."""
        return "\n".join(program.tail(1) for program in self._programs)

    def said(self) -> Iterator[dict[str, object]]:
        """Return all lines of their logs."""
        for path in sorted(self._logs.glob("worker-*.log")):
            for line in path.read_text(errors="replace").splitlines():
                try:
                    yield json.loads(line)
                except ValueError:  # a line that was cut off by a kill
                    continue

    def _start(self, n: int) -> Program:
        name = f"worker-{n}"
        arguments = ["-m", "streamgp", "run", str(self._config), "--instance", name]
        arguments += ["--observe", self._addresses[n], "--log-format", "json"]
        return Program(name, arguments, self._logs)


def _free_ports(n: int) -> list[int]:
    with ExitStack() as open_ones:
        sockets = [open_ones.enter_context(socket.socket()) for _ in range(n)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Schedule of harm, in seconds from the start.

    Parameters
    ----------
    harms
        Harm to a worker, with how long a stopped one sleeps.
    restarts
        Restarts of the broker, and whether it is killed rather than terminated.

    Examples
    --------
    >>> plan = Plan.drawn(seed=1, seconds=60.0)
    >>> len(plan.harms), len(plan.restarts), sorted({harm for _, harm, _ in plan.harms})
    (9, 2, ['kill', 'stop', 'term'])

    """

    harms: list[tuple[float, Harm, float]] = field(default_factory=list)
    restarts: list[tuple[float, bool]] = field(default_factory=list)

    @classmethod
    def drawn(cls, *, seed: int, seconds: float) -> Plan:
        """Draw a plan: every harm about equally often, at any time."""
        rng = random.Random(seed)
        n_harms = max(3, round(seconds / 20.0) * 3)
        kinds = [HARMS[n % 3] for n in range(n_harms)]
        rng.shuffle(kinds)
        # Longer than the session timeout, and half of them longer than that of a transaction.
        times = sorted(rng.uniform(0.05, 0.95) * seconds for _ in kinds)
        harms = [(at, kind, rng.uniform(11.0, 20.0)) for at, kind in zip(times, kinds, strict=True)]
        n_restarts = max(2, round(seconds / 120.0))
        restarts = [
            ((n + rng.uniform(0.2, 0.8)) / n_restarts * seconds, n % 2 == 0)
            for n in range(n_restarts)
        ]
        return cls(harms=harms, restarts=restarts)
