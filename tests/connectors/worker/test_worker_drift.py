"""What a worker tells of the concept drifts that its learners find."""

import random
from itertools import product

import pytest

from connectors.memory import MemoryTopics
from connectors.worker.metrics import WorkerMetrics
from connectors.worker.settings import LoopSettings, WorkerSettings
from connectors.worker.worker import Worker
from streamgp import isgp
from streamgp.interactive.messages import Event
from tests.helpers.workbench import GROUP, idle, put

CHANGE, END = 150, 250


def labelled(numbers, *, changing="ann", staying="bob"):
    """Labelled events of two keys, ten of each in turn; the world of one of them changes."""
    blocks = (numbers[start : start + 10] for start in range(0, len(numbers), 10))
    for block, key in product(blocks, (changing, staying)):
        for n in block:
            light = random.Random(n).uniform(-1.0, 1.0)
            is_turned = key == changing and n >= CHANGE
            y = ("day", "night")[(light > 0.0) ^ is_turned]
            yield Event(event_id=f"{key}{n}", key=key, x={"light": light}, occurred_at=0.0, y=y)


def work(topics, metrics=None, **options):
    loops = LoopSettings(model=isgp(seed=1), **options)
    settings = WorkerSettings(group=GROUP, instance="w", leave=True, batch=40)
    Worker(topics, loops, settings, state=None, clock=lambda: 0.0, metrics=metrics).run(
        idle(topics)
    )


@pytest.mark.parametrize("max_keys", [None, 1])
def test_a_drift_is_told_once_by_log_and_metrics(caplog, max_keys):
    caplog.set_level("INFO")
    topics = MemoryTopics()
    for numbers in (range(CHANGE + 2), range(CHANGE + 2, END), range(END, END + 5)):
        metrics = WorkerMetrics()
        put(topics, *labelled(numbers))
        work(topics, metrics, max_keys=max_keys)  # each time another worker
        lines = [record for record in caplog.records if record.message == "drift"]
        assert len(lines) == metrics.drifts["labels"] == (numbers.start == CHANGE + 2)
        for line in lines:
            fields = line.fields
            assert fields["n_outdated"] == pytest.approx(CHANGE, abs=5)
            assert 2 <= fields["n_kept"] <= 20
            assert "ann" not in str(fields)
        caplog.clear()


def test_a_worker_whose_learners_do_not_test_tells_of_no_drift(caplog):
    caplog.set_level("INFO")
    topics, metrics = MemoryTopics(), WorkerMetrics()
    put(topics, *labelled(range(END)))
    loops = LoopSettings(model=isgp(seed=1, drift_test=None))
    settings = WorkerSettings(group=GROUP, instance="w", leave=True)
    Worker(topics, loops, settings, state=None, clock=lambda: 0.0, metrics=metrics).run(
        idle(topics)
    )
    assert metrics.drifts["labels"] == 0
    assert "drift" not in {record.message for record in caplog.records}
