"""`streamgp replay` in other numerical environments: threads change nothing, kernels are told."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import Result

from connectors.storage.snapshots import StateDirectory
from streamgp.apps.replay import checkpoint
from streamgp.common.environment import environment
from tests.helpers.blas_kernels import other_kernel
from tests.helpers.commands import streamgp

MAIN = "from streamgp.cli.main import main; main()"
ALWAYS = '[query]\nrule = "always"\n[learner]\n'
# With fewer events no product is large enough for OpenBLAS to share it out among threads.
LEARNERS = {
    "gp": (540, 'name = "gp"\n'),
    "ensemble": (25, 'name = "ensemble"\noptions = {n_features = 200}\n'),
    "privileged": (140, 'name = "privileged"\n'),
}


@dataclass
class Bench:
    """A directory with a log, and the command in a process of its own."""

    path: Path

    def replay(
        self, *arguments: str | Path, before: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", f"{before}\n{MAIN}", "replay", "rooms.csv", "--label", "room"]
            + [str(argument) for argument in arguments],
            cwd=self.path,
            env={**os.environ, "PYTHONHASHSEED": "0", **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    def replayed(self, *arguments: str | Path, before: str = "", **variables: str) -> str:
        """Replay successfully; return what was printed besides the results."""
        done = self.replay(*arguments, before=before, **variables)
        assert done.returncode == 0, done.stderr
        return done.stderr


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    draw = random.Random(1)
    rows = [",".join([*(f"f{i}" for i in range(8)), "room"])]
    for _ in range(540):
        room = draw.randrange(4)
        values = [draw.gauss(float(i % 4 == room), 1.0) for i in range(8)]
        rows.append(",".join([*(f"{value:.6f}" for value in values), f"r{room}"]))
    (tmp_path / "rooms.csv").write_text("\n".join(rows) + "\n")
    return Bench(tmp_path)


# --- threads


# By day, tests/common/test_environment.py and tests/cli/test_main.py see that one thread is left.
@pytest.mark.nightly
@pytest.mark.parametrize("learner", LEARNERS)
def test_threads_change_no_byte(learner: str, bench: Bench) -> None:
    n, text = LEARNERS[learner]
    (bench.path / "my.toml").write_text(ALWAYS + text)
    for threads in ("1", "2"):
        bench.replayed(
            *("--config", "my.toml", "--limit", str(n), "--out", threads),
            OPENBLAS_NUM_THREADS=threads,
            OMP_NUM_THREADS=threads,
        )
    for name in ("predictions.jsonl", "requests.jsonl", "consensus.jsonl", "summary.json"):
        assert (bench.path / "1" / name).read_bytes() == (bench.path / "2" / name).read_bytes()


# --- going on with a state


OPTIONS = ("--limit", "60", "--state", "state", "--out", "out")


def without_record(path: Path) -> None:
    """Turn a state into one saved by a streamgp that did not record the environment."""
    with StateDirectory(path) as directory:
        found = checkpoint.read(directory)
        assert found is not None
        origin, cut = found
        del origin["environment"]
        checkpoint.write(directory, origin, cut)


def test_another_kernel_is_reported_once_and_refused_where_that_is_wanted(bench: Bench) -> None:
    kernel = other_kernel()
    here = environment()["blas_kernel"]
    bench.replayed(*OPTIONS, OPENBLAS_NUM_THREADS="2")
    with StateDirectory(bench.path / "state") as directory:
        found = checkpoint.read(directory)
    assert found is not None
    assert found[0]["environment"] == {**environment(), "blas_threads": "1"}
    assert "environment" not in bench.replayed(*OPTIONS, "--strict", OPENBLAS_NUM_THREADS="1")
    outputs = (bench.path / "out" / "predictions.jsonl").read_bytes()
    there = f"state was saved in another numerical environment (blas_kernel {here}, here {kernel})"

    refused = bench.replay(*OPTIONS, "--strict", OPENBLAS_CORETYPE=kernel)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        f"Error: {there}, and --strict demands the same; go back to it, leave out --strict, or "
        "name another directory to start over\n"
    )
    assert (bench.path / "out" / "predictions.jsonl").read_bytes() == outputs

    told = bench.replayed(*OPTIONS, OPENBLAS_CORETYPE=kernel)
    assert f"note: {there}; results from here on agree to about 1e-9, not bitwise\n" in told

    again = bench.replayed(*OPTIONS, "--strict", OPENBLAS_CORETYPE=kernel)
    assert "environment" not in again


def test_a_state_without_the_record_goes_on_unless_strictness_is_wanted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(bench.path)

    def replay(*more: str) -> Result:
        return streamgp("replay", "rooms.csv", "--label", "room", *OPTIONS, *more)

    assert replay().exit_code == 0
    without_record(bench.path / "state")
    refused = replay("--strict")
    assert refused.exit_code == 2
    assert refused.stderr == (
        "Error: state does not record the numerical environment in which it was saved, so --strict "
        "cannot check it; leave out --strict, or name another directory to start over\n"
    )
    for more in ((), ("--strict",)):
        done = replay(*more)
        assert done.exit_code == 0
        assert "environment" not in done.stderr


def test_strictness_without_a_state_is_wrong_use(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(bench.path)
    refused = streamgp("replay", "rooms.csv", "--label", "room", "--strict")
    assert refused.exit_code == 2
    assert "give --state DIR as well" in refused.stderr
