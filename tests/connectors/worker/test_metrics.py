"""Metrics of a worker: equal to what was committed, and never ahead of it."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.memory import MemoryTopics
from connectors.topics import BrokerError
from connectors.worker import worker as working
from connectors.worker.batch import Batch
from connectors.worker.metrics import PHASES, Histogram, WorkerMetrics, result_of
from streamgp.interactive.messages import Rejected
from tests.helpers.workbench import Failing, answer, event, everything, idle, put, raw, worker


def mixed(topics):
    """Put events, good and bad, and answers of every kind."""
    put(topics, *[event(i, y="home" if i % 3 else None) for i in range(1, 20)])
    put(topics, event(4))  # seen before
    raw(topics)  # no JSON
    put(topics, answer(3, "work"), answer(3, "work"), answer(6, "work"))
    put(topics, replace(answer(2), supersedes="none"))  # of an answer that was never given


def committed(topics):
    letters = everything(topics, "dead-letters")
    return {
        "predictions": len(everything(topics, "predictions")),
        "dead_letters": Counter(dict(r.headers)["dlq.stage"].decode() for r in letters),
    }


def run(topics, metrics, **settings):
    worker(topics, metrics=metrics, **settings).run(idle(topics))


def test_counters_say_what_was_committed():
    topics, metrics = MemoryTopics(), WorkerMetrics()
    mixed(topics)
    run(topics, metrics, batch=7)
    assert metrics.events == 20
    there = committed(topics)
    assert (metrics.predictions, metrics.dead_letters) == (
        there["predictions"],
        there["dead_letters"],
    )
    assert metrics.duplicates == metrics.answers["duplicate"] == 1
    assert metrics.answers["refused"] == 1
    assert metrics.answers.total() == 4
    assert metrics.committed_at == 0.0
    assert metrics.keys == {"ready": 0, "evicted": 0}  # not yet looked at


@pytest.mark.parametrize("fails", ["before", "after"])
@pytest.mark.parametrize("nth", range(4))
def test_counters_are_never_ahead_of_what_is_committed(fails, nth):
    topics = Failing([None] * nth + [fails])
    mixed(topics)
    metrics = WorkerMetrics()
    with pytest.raises(BrokerError):
        run(topics, metrics, batch=5)
    there = committed(topics)
    n_lost = there["predictions"] - metrics.predictions
    assert n_lost == 0 if fails == "before" else n_lost > 0
    assert metrics.dead_letters <= there["dead_letters"]
    assert metrics.durations["commit"].cumulated()[-1] == nth
    again = WorkerMetrics()  # of the worker that is started in its place
    run(topics, again, batch=5)
    there = committed(topics)
    assert metrics.predictions + again.predictions + n_lost == there["predictions"]


def test_every_batch_is_timed_in_all_phases():
    topics, metrics = MemoryTopics(), WorkerMetrics()
    mixed(topics)
    run(topics, metrics, batch=7)
    counts = {name: each.cumulated()[-1] for name, each in metrics.durations.items()}
    assert list(counts) == list(PHASES)
    assert len(set(counts.values())) == 1
    assert counts["loop"] >= 3
    assert all(histogram.total > 0.0 for histogram in metrics.durations.values())


def test_nothing_is_kept_for_metrics_that_are_not_wanted(monkeypatch):
    kept = []
    finish = Batch.finish
    monkeypatch.setattr(Batch, "finish", lambda self: kept.append(self.heard) or finish(self))
    topics = MemoryTopics()
    put(topics, event(1))
    run(topics, None)
    assert any(each == [] for each in kept)
    assert not any(kept)
    put(topics, event(2))
    run(topics, WorkerMetrics())
    assert any(kept)


def test_keys_lag_and_readiness_follow_the_worker(monkeypatch):
    monkeypatch.setattr(working, "LONGEST_WAIT_S", 0.01)
    now = [0.0]
    metrics = WorkerMetrics(lambda: now[0])
    topics = MemoryTopics(n_partitions=2)
    put(topics, *[event(i, key=key) for i, key in enumerate("abcdef")])
    seen = []

    def after_some_turns():
        now[0] += 2.0
        seen.append((metrics.is_ready, sum(metrics.lags.values()), sum(metrics.keys.values())))
        return len(seen) > 8

    worker(topics, metrics=metrics, batch=2, max_keys=2).run(after_some_turns)
    assert seen[0] == (False, 0, 0)
    assert seen[-1][0]
    lags, keys = ([each[i] for each in seen] for i in (1, 2))
    assert max(lags) > 0
    assert lags[-1] == 0
    assert keys[-1] == 6
    assert 2 <= metrics.keys["ready"] <= 4
    assert metrics.lags == dict.fromkeys(metrics.lags, 0)
    assert metrics.rebalances == 1
    assert metrics.restores.cumulated()[-1] == 1


def test_health_is_a_cycle_within_a_minute():
    now = [100.0]
    metrics = WorkerMetrics(lambda: now[0])
    now[0] = 160.0
    assert metrics.is_alive
    now[0] = 160.1
    assert not metrics.is_alive
    metrics.show_life()
    assert metrics.is_alive


def test_stuck_partitions_are_those_of_the_warnings():
    now = [0.0]
    metrics = WorkerMetrics(lambda: now[0])
    topics = MemoryTopics(n_partitions=1)
    client = topics.client(group="g", instance="i", max_records=1)
    client.poll(0.0)
    now[0] = 1.0
    metrics.look(client, [], [("events", 0)], {name: f"my.{name}" for name in topics.names()})
    assert metrics.stuck == {("my.events", 0)}
    assert ("my.events", 0) in metrics.lags
    now[0] = 1.5  # too soon to look again
    metrics.look(client, [], [], {})
    assert metrics.stuck


def test_what_became_of_an_answer():
    rejected = Rejected(subject="a", fault="duplicate", reason="", at=0.0)
    assert result_of([rejected]) == "duplicate"
    assert result_of([]) == "noted"


@given(st.lists(st.floats(0.0, 20.0)))
def test_a_histogram_counts_as_sorting_does(values):
    histogram = Histogram((0.5, 1.0, 10.0))
    for value in values:
        histogram.observe(value)
    bounds = [0.5, 1.0, 10.0, float("inf")]
    assert histogram.cumulated() == [sum(v <= bound for v in values) for bound in bounds]
    assert histogram.total == pytest.approx(sum(values))
