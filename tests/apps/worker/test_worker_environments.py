"""Workers in other numerical environments: said once for each change, or refused."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from connectors.embedded.topics import EmbeddedTopics
from connectors.topics import Outgoing
from connectors.wire.codec import encode
from connectors.wire.state_records import CONFIGURATION, state
from streamgp.apps import console
from streamgp.common.environment import environment
from streamgp.interactive import Event
from tests.helpers.blas_kernels import other_kernel
from tests.helpers.topics import everything
from tests.helpers.worker_process import ENVIRONMENT, MAIN, Process

CONSEQUENCE = "results agree to about 1e-9, not bitwise"


class Site:
    """Topics in files, and workers one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "worker.toml"
        self.config.write_text(
            f'broker = "file://{path}/topics"\n[worker]\nstate = "{path}/state"\n'
        )
        EmbeddedTopics(path / "topics").create()
        self.n_sent = 0

    def send(self) -> None:
        """Send one labelled event."""
        self.n_sent += 1
        n = float(self.n_sent)
        event = Event(event_id=f"e{n}", key="ann", x={"light": n}, y="home", occurred_at=n)
        topics = EmbeddedTopics(self.path / "topics")
        writer = topics.writer("test")
        writer.send(Outgoing(topic="events", key=b"ann", value=encode(event)))
        writer.flush()
        writer.close()

    def work(
        self, *options: str, until: str = "batch", **variables: str
    ) -> tuple[int, list[dict[str, Any]]]:
        """Run a worker until it has said something; return its status and its log."""
        process = Process(self.config, *options, environment=variables)
        process.wait_for(until)
        process.process.send_signal(signal.SIGTERM)
        return process.end()

    def check(self, **variables: str) -> str:
        """Return what `streamgp check` prints; that inputs wait for a worker is status 1."""
        done = subprocess.run(
            [sys.executable, "-c", MAIN, "check", str(self.config)],
            env={**ENVIRONMENT, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (console.DONE, console.NEEDS_OPERATOR), done.stdout
        return done.stdout

    def record(self) -> dict[str, Any]:
        """Return the record about who works on the partition."""
        found: dict[str, Any] = {}
        for record in everything(EmbeddedTopics(self.path / "topics"), "state"):
            if record.key == b"\x1fconfiguration" and record.value is not None:
                found = json.loads(record.value)["value"]
        return found

    def elsewhere(self) -> None:
        """Go on as if on another machine: nothing is on the local disk."""
        shutil.rmtree(self.path / "state")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def said(log: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines about environments, without their times."""
    return [
        {name: value for name, value in line.items() if name != "at"}
        for line in log
        if line["event"] == "environment-differs"
    ]


@pytest.mark.parametrize("on_one_machine", [pytest.param(True, marks=pytest.mark.nightly), False])
def test_a_change_is_said_until_something_is_learned_after_it(
    site: Site, on_one_machine: bool
) -> None:
    kernel, here = other_kernel(), environment()["blas_kernel"]
    there = {"OPENBLAS_CORETYPE": kernel}
    site.send()
    assert said(site.work()[1]) == []
    line = {
        "level": "warning",
        "event": "environment-differs",
        "partitions": [0],
        "fields": {"blas_kernel": {"was": here, "is": kernel}},
        "consequence": CONSEQUENCE,
    }
    if not on_one_machine:
        site.elsewhere()
    # Nothing comes, and the topics still are what the first one has written.
    assert said(site.work(until="restored", **there)[1]) == [line]
    site.send()
    assert said(site.work(**there)[1]) == [line]
    if not on_one_machine:
        site.elsewhere()
    site.send()
    assert said(site.work(**there)[1]) == []
    recorded = site.record()["environment"]
    assert (recorded["blas_kernel"], recorded["blas_threads"]) == (kernel, "1")
    site.send()
    assert said(site.work()[1]) == [
        {**line, "fields": {"blas_kernel": {"was": kernel, "is": here}}}
    ]


def test_strict_refuses_another_kernel_and_changes_nothing(site: Site) -> None:
    kernel, here = other_kernel(), environment()["blas_kernel"]
    site.send()
    assert site.work("--strict")[0] == console.DONE  # a new partition is nobody's
    site.send()
    status, log = site.work(
        "--strict", until="failed", OPENBLAS_CORETYPE=kernel, OPENBLAS_NUM_THREADS="2"
    )
    assert status == console.WRONG_USE
    assert log[-1]["reason"] == (
        f"partition 0 was processed in another numerical environment (blas_kernel {here}, here "
        f"{kernel}), and --strict demands the same; go back to it, or continue without --strict: "
        "results agree to about 1e-9, not bitwise"
    )
    told = f"in another numerical environment than here (blas_kernel {here}, here {kernel})"
    assert told in site.check(OPENBLAS_CORETYPE=kernel)
    assert "environment" not in site.check(OPENBLAS_NUM_THREADS="2")
    status, log = site.work("--strict", OPENBLAS_NUM_THREADS="2")
    assert (status, said(log)) == (0, [])
    assert site.record()["environment"]["blas_kernel"] == here


def test_what_older_workers_have_left_is_taken_up_unless_strictness_is_wanted(site: Site) -> None:
    site.send()
    site.work()
    signed = site.record()
    older = {name: value for name, value in signed.items() if name != "environment"}
    topics = EmbeddedTopics(site.path / "topics")
    link = topics.client(group="streamgp", instance="older", max_records=1)
    link.poll(0.0)
    link.commit([state("", CONFIGURATION, older, 0)])
    link.close()
    site.elsewhere()
    assert site.record() == older
    status, log = site.work("--strict", until="failed")
    assert status == console.WRONG_USE
    assert log[-1]["reason"] == (
        "partition 0 was processed by a streamgp that did not record its numerical environment, so "
        "--strict cannot check it; continue without --strict, which records it with the next input"
    )
    site.send()
    assert said(site.work()[1]) == []
    assert site.record() == signed
    assert site.work("--strict", until="restored")[0] == console.DONE
