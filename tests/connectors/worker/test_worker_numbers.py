"""The worker where targets are numbers, and budgets for all keys of a partition."""

import math
import random

import pytest

from connectors.embedded.topics import EmbeddedTopics
from connectors.memory import MemoryTopics
from connectors.storage.snapshots import StateDirectory
from connectors.worker.compatibility import ChangedConfigurationError
from streamgp import GPRegressor, SimulatedMeasurer, SkepticalRegressor
from streamgp.apps.deployment.contents import histories_of, loops_in
from streamgp.budgets import AtMost, AtMostPer
from streamgp.interactive import (
    AnswerQueue,
    Challenge,
    Event,
    LabelledExample,
    LabelRequest,
    Prediction,
)
from streamgp.query import LeaveOneOutReview, NeverChallenge
from tests.helpers.topics import everything, said
from tests.helpers.workbench import idle, put, work, worker

KEYS = ("ann", "bob")


def model(**options):
    return SkepticalRegressor(GPRegressor(noise_variance=0.05), warm_up=10, seed=1, **options)


def events(n, keys=KEYS):
    rng = random.Random(1)
    for i in range(n):
        a, b = rng.uniform(-3.0, 3.0), rng.uniform(-3.0, 3.0)
        yield Event(
            event_id=f"e{i}",
            key=keys[i % len(keys)],
            x={"a": a, "b": b},
            occurred_at=float(i),
            truth=20.0 + 10.0 * math.sin(a) + 3.0 * b,
        )


def converse(topics, n=120, **options):
    """Ask a simulated annotator until nothing is open any more, a restart after every batch."""
    queue = AnswerQueue(SimulatedMeasurer(0.15, noise=0.4, states_noise=True, seed=2))
    asked = set()
    for event in events(n):
        queue.see(event)
        put(topics, event)
        if int(event.event_id[1:]) % 20 != 19:
            continue
        for _ in range(3):
            worker(topics, **options).run(idle(topics))
            for message in said(topics, "requests"):
                if isinstance(message, LabelRequest | Challenge):
                    if message.request_id not in asked:
                        queue.ask(message, event.occurred_at)
                    asked.add(message.request_id)
            put(topics, *queue.due(math.inf))
    work(topics, **options)


@pytest.fixture(params=["memory", "file"])
def topics(request, tmp_path):
    if request.param == "memory":
        yield MemoryTopics(n_partitions=2)
        return
    topics = EmbeddedTopics(tmp_path / "topics", clock=lambda: 0.0)
    topics.create()
    yield topics
    topics.close()


# By day each broker once, and each way of restarting.
topics_and_state = pytest.mark.parametrize(
    ("topics", "with_state"),
    [
        *(("memory", False), ("file", True)),
        *(
            pytest.param(name, with_state, marks=pytest.mark.nightly)
            for name, with_state in (("memory", True), ("file", False))
        ),
    ],
    indirect=["topics"],
)


@pytest.mark.parametrize(
    ("topics", "with_state"),
    [("file", True), pytest.param("file", False, marks=pytest.mark.nightly)],
    indirect=["topics"],
)
def test_numbers_are_reviewed_over_restarts_as_without_them(topics, tmp_path, with_state):
    review = LeaveOneOutReview(0.1, every=2)
    options = {"model": model(challenge=NeverChallenge(), review=review)}
    converse(topics, **options, **({"state": StateDirectory(tmp_path / "s")} if with_state else {}))
    challenges = [m for m in said(topics, "requests") if isinstance(m, Challenge)]
    assert {m.reason for m in challenges} == {"LeaveOneOutReview"}
    lines = [m for m in said(topics, "consensus") if isinstance(m, LabelledExample)]
    reviewed = {m.event_id for m in challenges}
    assert {m.event_id for m in lines if m.origin in ("revised", "upheld")} == reviewed
    in_memory = MemoryTopics(n_partitions=2)
    converse(in_memory, **options, state=StateDirectory(tmp_path / "other"))
    for key in KEYS:
        # Brokers pass partitions on in different orders, so only the times may differ.
        decided, again = (
            [
                (m.event_id, m.score, m.suggested)
                for m in said(one, "requests")
                if isinstance(m, Challenge) and m.key == key
            ]
            for one in (topics, in_memory)
        )
        assert decided == again


@topics_and_state
def test_numbers_are_learned_and_contested_over_restarts(topics, tmp_path, with_state):
    options = {"model": model()}
    if with_state:
        options["state"] = StateDirectory(tmp_path / "state")
    converse(topics, **options)
    predictions = [m for m in said(topics, "predictions") if isinstance(m, Prediction)]
    assert len(predictions) == 120
    assert predictions[-1].mean is not None
    assert predictions[-1].std > 0.0
    lines = [m for m in said(topics, "consensus") if isinstance(m, LabelledExample)]
    truths = {event.event_id: event.truth for event in events(120)}
    assert len({line.event_id for line in lines}) == 120
    assert {line.std for line in lines} == {0.4}
    assert "revised" in {line.origin for line in lines}
    wrong = [line for line in lines if abs(line.y - truths[line.event_id]) > 5.0]
    assert len(wrong) < 6
    assert not said(topics, "dead-letters")


def test_restarts_change_nothing_of_what_is_written():
    options = {"model": model()}
    one, other = MemoryTopics(), MemoryTopics()
    for topics in (one, other):
        for i, event in enumerate(events(40)):
            put(topics, Event(**{f: getattr(event, f) for f in event.__slots__}))
            if topics is other and i % 7 == 6:
                work(topics, **options)
        work(topics, **options)
    for name in ("predictions", "requests"):
        assert sorted(map(repr, said(one, name))) == sorted(map(repr, said(other, name)))


# --- a budget for all keys


def asked(topics):
    predictions = [m for m in said(topics, "predictions") if isinstance(m, Prediction)]
    return [(p.key, p.decision.ask, p.decision.budget) for p in predictions]


@pytest.mark.parametrize("with_state", [False, True])
@pytest.mark.parametrize("max_keys", [None, 1])
def test_a_budget_for_all_keys_survives_restarts(tmp_path, with_state, max_keys):
    options = {
        "model": model(budget=AtMostPer(2, 1000.0)),
        "total_budget": AtMost(3),
        "max_keys": max_keys,
    }
    if max_keys is not None or with_state:
        options["state"] = StateDirectory(tmp_path / "state")
    topics = MemoryTopics()
    for event in events(20, keys=("a", "b", "c")):
        put(topics, event)
        work(topics, **options)
    found = asked(topics)
    assert sum(ask for _, ask, _ in found) == 3
    assert {budget for *_, budget in found} == {None, "total AtMost"}


def test_every_partition_has_a_budget_of_its_own():
    topics = MemoryTopics(n_partitions=8)
    put(topics, *events(60, keys=[str(n) for n in range(20)]))
    work(topics, model=model(), total_budget=AtMost(1))
    home = {r.key: r.partition for r in everything(topics, "events")}
    per_partition = {}
    for key, ask, _ in asked(topics):
        number = home[key.encode()]
        per_partition[number] = per_partition.get(number, 0) + ask
    assert set(per_partition.values()) == {1}


def test_a_worker_with_another_budget_for_all_keys_does_not_go_on():
    topics = MemoryTopics()
    first, *_, last = events(4)
    put(topics, first)
    work(topics, model=model(), total_budget=AtMost(1))
    put(topics, last)
    with pytest.raises(ChangedConfigurationError):
        work(topics, model=model(), total_budget=AtMost(2))


def test_one_loop_for_all_keys_has_the_budget_of_its_model():
    with pytest.raises(ValueError, match="a total budget is for the loops of many keys"):
        worker(MemoryTopics(), model=model(), keyed=False, total_budget=AtMost(1))


def test_other_programs_take_the_budget_for_no_loop():
    topics = MemoryTopics()
    put(topics, *events(6))
    work(topics, model=model(), total_budget=AtMost(2))
    histories = histories_of(everything(topics, "state", "consensus"))
    assert histories[0].part("", "budget") == {"spent": 2}
    assert {loop.entity for loop in loops_in(histories, keyed=True)} == set(KEYS)
