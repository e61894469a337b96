"""Topics that version 1 wrote are read, and work resumes where its workers stopped."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from connectors.wire.codec import decode
from streamgp.interactive.messages import Answer, Event, Prediction
from tests.helpers.small_deployment import OpenTopics, Small

GOLDEN = Path(__file__).parents[2] / "golden" / "v1" / "deployment"


@pytest.mark.parametrize("n_partitions", [1, 2])
def test_a_deployment_of_version_1_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_partitions: int
) -> None:
    small = Small(tmp_path, monkeypatch)
    small.topics = OpenTopics(n_partitions)
    shutil.copy(GOLDEN / "worker.toml", small.config_file)
    assert "2 learners with 16 lines" in small.done("restore", GOLDEN / "backup", "--yes")
    for line in (GOLDEN / "inputs.jsonl").read_bytes().splitlines():
        message = decode(line)
        assert isinstance(message, Event | Answer)
        small.put(message)
    small.work()
    assert small.records("dead-letters") == []
    found = {m.event_id: m for m in small.said("predictions") if isinstance(m, Prediction)}
    lines = (GOLDEN / "predictions.jsonl").read_bytes().splitlines()
    assert len(found) == len(lines)
    for line in lines:
        expected = decode(line)
        assert isinstance(expected, Prediction)
        one = found[expected.event_id]
        assert (one.y, one.n_learned, one.key) == (expected.y, expected.n_learned, expected.key)
        # On another machine sums are rounded in another way.
        assert one.proba == pytest.approx(expected.proba, abs=1e-9)
        assert one.decision.ask == expected.decision.ask
