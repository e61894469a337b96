"""Metrics of a worker: equal to what was committed, and never ahead of it."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.memory import MemoryTopics
from connectors.topics import BrokerError
from connectors.wire.codec import encode
from connectors.worker import metrics as counting
from connectors.worker import worker as working
from connectors.worker.batch import Batch
from connectors.worker.metrics import (
    PHASES,
    Quarantined,
    QuestionTracker,
    RecentShares,
    WorkerMetrics,
    result_of,
)
from streamgp import GPClassifier, SkepticalClassifier, isgp
from streamgp.base import Decision
from streamgp.interactive import KeyedLoops, People
from streamgp.interactive.conversation_record import event_id_of
from streamgp.interactive.messages import Answer, Cancel, Event, Prediction, Rejected
from streamgp.query import AlwaysAsk, AlwaysChallenge, NeverChallenge
from tests.helpers.messages import challenge, label_request
from tests.helpers.topics import everything, said
from tests.helpers.workbench import Failing, answer, event, idle, put, raw, worker
from tests.interactive.scripted import JudgingLearner


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


def test_answers_to_ended_questions_are_dead_letters_but_not_unusable():
    topics, metrics = MemoryTopics(), WorkerMetrics()
    put(topics, event(1))
    run(topics, metrics)
    raw(topics)  # no JSON
    put(topics, answer(1), *(replace(answer(1), answer_id=f"slow-{n}") for n in range(3)))
    run(topics, metrics)
    assert metrics.dead_letters.total() == 4
    assert metrics.unusable == 1


@pytest.mark.parametrize("fails", ["before", "after"])
@pytest.mark.parametrize("nth", range(2))
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
    assert metrics.durations["commit"].buckets()[-1][1] == nth
    again = WorkerMetrics()  # of the worker that is started in its place
    run(topics, again, batch=5)
    there = committed(topics)
    assert metrics.predictions + again.predictions + n_lost == there["predictions"]


def test_every_batch_is_timed_in_all_phases():
    topics, metrics = MemoryTopics(), WorkerMetrics()
    mixed(topics)
    run(topics, metrics, batch=7)
    counts = {name: each.buckets()[-1][1] for name, each in metrics.durations.items()}
    assert list(counts) == list(PHASES)
    assert len(set(counts.values())) == 1
    assert counts["loop"] >= 3
    assert all(histogram.total > 0.0 for histogram in metrics.durations.values())


def test_no_challenge_is_older_than_its_event():
    """It has the time of an answer, which a device without a clock dates to 1970."""
    questions = QuestionTracker(KeyedLoops(isgp(seed=1)))
    questions.take(None, [challenge("e1", at=3.0, occurred_at=60.0)])
    assert questions.oldest() == 60.0
    questions.take(None, [challenge("e1", at=70.0, occurred_at=60.0)])
    assert questions.oldest() == 70.0


def test_nothing_is_kept_for_metrics_that_are_not_wanted(monkeypatch):
    kept = []
    finish = Batch.finish
    monkeypatch.setattr(
        Batch, "finish", lambda self: kept.append(self.results.exchanges) or finish(self)
    )
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
    assert metrics.restores.buckets()[-1][1] == 1


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
    metrics.look(client, [], [("events", 0)], 7, {name: f"my.{name}" for name in topics.names()})
    assert metrics.stuck == {("my.events", 0)}
    assert metrics.missed == 7
    assert ("my.events", 0) in metrics.lags
    now[0] = 1.5  # too soon to look again
    metrics.look(client, [], [], 7, {})
    assert metrics.stuck


def test_what_became_of_an_answer():
    rejected = Rejected(subject="a", fault="duplicate", reason="", at=0.0)
    assert result_of([rejected]) == "duplicate"
    assert result_of([]) == "noted"


# --- the conversation


class Followed(WorkerMetrics):
    """Metrics that are compared with the loops in every cycle."""

    def look(self, client, partitions, stuck, n_missed, names):
        for partition in partitions:
            open_now = set()
            for key, loop in partition.loops.loops.items():
                open_now |= {(key, event_id_of(name)) for name in loop.open_requests()}
            assert set(self.questions[partition.number]._open) == open_now
            apart = [name for loop in partition.loops.loops.values() for name in loop.quarantined]
            assert sorted(self.quarantined[partition.number]) == sorted(apart)
        super().look(client, partitions, stuck, n_missed, names)


def step(topics, rng, i, asked):
    """Put an event, and answers of any kind to what is open, or may have been asked."""
    put(topics, event(i, key=rng.choice("ab"), at=10.0 * i, y=rng.choice([None, None, "den"])))
    for n in range(2):
        key, about = rng.choice("ab"), f"e{rng.randrange(max(1, i - 8), i + 1)}"
        kind = rng.choice(["label", "challenge/1", None])
        if n and asked:
            (key, about), kind = rng.choice(asked)
        reply = Answer(
            answer_id=f"a{i}-{n}",
            event_id=about,
            request_id=kind and f"{about}/{kind}",
            key=key,
            supersedes=rng.choice([None, None, None, f"a{about[1:]}-0"]),
            answered_at=10.0 * i + 1.0,
            annotator=rng.choice(["eve", "bob"]),
            **rng.choice([{"declined": True}, {"y": "den"}, {"y": "hall"}]),
        )
        put(topics, reply)
    if rng.random() < 0.1:
        cancel = Cancel(
            request_id=f"{about}/{kind or 'label'}", key=reply.key, why="", at=10.0 * i + 2.0
        )
        raw(topics, "answers", reply.key.encode(), encode(cancel))


def chat(topics, rng, steps, metrics):
    """Run a worker that is given a step in each of its cycles."""
    left, now = list(steps), [0.0]

    def is_over():
        if not left:
            return idle(topics)()
        now[0] = 10.0 * left[0] + 5.0
        asked = [
            (place, "label" if kind == "label" else "challenge/1")
            for each in metrics.questions.values()
            for place, (kind, _) in each._open.items()
        ]
        step(topics, rng, left.pop(0), asked)
        return False

    worker(topics, metrics=metrics, clock=lambda: now[0], **curious()).run(is_over)


def curious():
    model = SkepticalClassifier(GPClassifier(), AlwaysAsk(), AlwaysChallenge(), warm_up=0, seed=1)
    return {"model": model, "expires_after_s": 40.0, "answer_horizon_s": 200.0}


@pytest.mark.parametrize("seed", range(2))
def test_the_conversation_is_counted_as_the_topics_have_it(seed, monkeypatch):
    monkeypatch.setattr(working, "LONGEST_WAIT_S", 0.0)
    rng, topics = Random(seed), MemoryTopics(n_partitions=2)
    counts = {"requests": Counter(), "learned": Counter(), "challenges": Counter()}
    n_open = 0
    for part in range(3):  # each with a worker of its own, which takes over what is open
        metrics = Followed(names_annotators=True)
        chat(topics, rng, range(60 * part + 1, 60 * part + 61), metrics)
        for name, count in counts.items():
            count.update(getattr(metrics, name))
        n_open = sum(each.n("challenge") for each in metrics.questions.values())
    asked = Counter(type(each).__name__ for each in said(topics, "requests"))
    lines = said(topics, "consensus")
    assert counts["requests"] == {"AlwaysAsk": asked["LabelRequest"]}
    assert counts["learned"] == Counter(line.origin for line in lines)
    assert counts["challenges"].total() + n_open == asked["Challenge"] > 20
    assert {"upheld", "revised", "expired", "declined"} <= set(counts["challenges"])
    assert set(metrics.errors) == {None, "eve", "bob"}


def test_annotators_are_not_named_unless_wanted():
    topics, metrics = MemoryTopics(), WorkerMetrics()
    chat(topics, Random(1), range(1, 20), metrics)
    assert list(metrics.errors) == [None]
    lines = [line.probability_wrong for line in said(topics, "consensus")]
    wrong = [each for each in lines if each is not None]
    # From 3.12 on Python's `sum` makes up for what is rounded off; a running sum does not.
    expected = (1.0 + sum(wrong)) / (5.0 + len(wrong))
    assert metrics.errors[None].estimate == pytest.approx(expected, rel=1e-14)


def test_made_up_names_are_no_series_without_end(monkeypatch):
    monkeypatch.setattr(counting, "MOST_NAMES", 3)
    topics, metrics = MemoryTopics(), WorkerMetrics(names_annotators=True)
    names = ["", "eve", "bob", "", "ann", "mal", "eve"]
    put(topics, *(event(i) for i in range(1, 8)))
    put(topics, *(replace(answer(i, "a"), annotator=who) for i, who in enumerate(names, 1)))
    run(topics, metrics, batch=7)
    # The empty name is that of all annotators: a second series of it would make all unreadable.
    assert list(metrics.errors) == [None, "eve", "bob", "ann"]


def test_labels_that_read_alike_have_one_share():
    shares = RecentShares(10)
    shares.count({7: 1, "7": 2, "(others)": 3, "b": 2, "c": 2})
    assert shares.of(most=2) == {"7": 0.3, "(others)": 0.7}
    assert shares.of(most=9) == {"7": 0.3, "(others)": 0.3, "b": 0.2, "c": 0.2}


def test_confidence_and_shares_are_those_of_the_predictions():
    topics, metrics = MemoryTopics(), WorkerMetrics()
    put(topics, *[event(i, y="home" if i % 3 else "work") for i in range(1, 40)])
    run(topics, metrics, batch=7)
    predicted = [each for each in said(topics, "predictions") if each.y is not None]
    sure = [each.proba[each.y] for each in predicted]
    bounds = [i / 10 for i in range(1, 11)]
    assert [n for _, n in metrics.confidence.buckets()] == [
        *(sum(p <= bound for p in sure) for bound in bounds),
        len(sure),
    ]
    counts = Counter(each.y for each in predicted)
    expected = {label: n / len(predicted) for label, n in counts.items()}
    assert metrics.shares.of(most=50) == pytest.approx(expected)


@given(st.lists(st.lists(st.sampled_from("abcd"), max_size=5)), st.integers(1, 6))
def test_shares_are_those_of_the_last_values(blocks, n):
    shares, before = RecentShares(n), []
    for block in blocks:
        shares.count(Counter(block))
        before += block
    found = shares.of(most=4)
    assert sum(found.values()) == pytest.approx(1.0 if before else 0.0)
    lengths = [k for k in range(len(before) + 1) if found == shares_of(before[-k:] if k else [])]
    assert any(min(n, len(before)) <= k for k in lengths)


def shares_of(values):
    return {label: n / len(values) for label, n in Counter(values).most_common()}


@pytest.mark.parametrize("signal", ["confidence", "requests"])
def test_a_drift_of_a_signal_is_detected(signal):
    metrics = WorkerMetrics()
    for block in range(140):
        shares = {"confidence": 0.9, "requests": 0.9}
        if block >= 100:
            shares[signal] = 0.5
        prediction = Prediction(
            event_id="e",
            y="a",
            proba={"a": shares["confidence"], "b": 1.0 - shares["confidence"]},
            decision=Decision.of(0.0, 1.0, "NeverAsk"),
            n_learned=1,
            at=0.0,
        )
        for n in range(100):
            is_asked = n < 100 * shares["requests"]
            metrics._count([(0, None, [prediction, *[label_request("e")] * is_asked])])
    assert metrics.drifts == {"confidence": 0, "requests": 0, "labels": 0, signal: 1}


@pytest.mark.parametrize("max_keys", [None, 1])
def test_annotators_in_quarantine_are_counted_once_for_each_key_also_after_a_restart(max_keys):
    def run_of(*messages, **options):
        put(topics, *messages)
        metrics = (Followed if max_keys is None else WorkerMetrics)(**options)
        learner = JudgingLearner(proba={"b": 0.6, "a": 0.4})
        worker(topics, metrics=metrics, model=learner, max_keys=max_keys).run(idle(topics))
        return metrics.n_quarantined

    topics = MemoryTopics(n_partitions=1)
    assert run_of(event(1, key="k"), event(1, key="l"), event(1, key="m")) == {None: 0}
    lies = [replace(answer(1, "a", key=key), annotator="eve") for key in "kl"]
    assert run_of(*lies) == {None: 2}
    if max_keys is None:
        assert run_of(event(1, key="n"), names_annotators=True) == {None: 0, "eve": 2}
    # A loop that was evicted tells at its next question.
    later = [event(i, key=key) for i in (2, 3) for key in "klm"]
    assert run_of(*later, names_annotators=True) == {None: 0, "eve": 2}
    raw(topics, "consensus", key=b"k", value=None)
    assert run_of(event(4, key="l")) == {None: 1}


@pytest.mark.parametrize(("keyed", "n"), [(True, 2), (False, 1)])
def test_an_annotator_is_in_quarantine_once_for_each_loop(keyed, n):
    quarantined = Quarantined(KeyedLoops(isgp(seed=1), keyed=keyed))
    for key in "klkl":
        refused = Rejected(subject="a", key=key, fault="quarantined", reason="", at=1.0)
        quarantined.take(replace(answer(1, key=key), annotator="eve"), [refused])
    assert list(quarantined) == n * ["eve"]


def test_a_second_question_is_open_until_it_is_answered_itself():
    loops = KeyedLoops(
        SkepticalClassifier(GPClassifier(), AlwaysAsk(), NeverChallenge(), seed=1),
        people=People(overlap=1.0),
    )
    questions, quarantined = QuestionTracker(loops), Quarantined(loops)

    def hear(given_, method):
        messages = method(given_, 1.0)
        questions.take(given_, messages)
        quarantined.take(given_, messages)

    def open_after(y, annotator, request, supersedes=None):
        given_ = Answer(
            answer_id=f"{annotator}/{y}", event_id="e", key="k", request_id=request, y=y,
            annotator=annotator, answered_at=1.0, supersedes=supersedes,
        )  # fmt: skip
        hear(given_, loops.on_answer)
        return questions.n("label"), questions.n("challenge")

    hear(Event(event_id="e", key="k", x={"light": 0.5}, occurred_at=1.0), loops.on_event)
    assert open_after("hall", "ann", "e/label") == (1, 0)
    assert list(quarantined) == []  # who may not answer a second question need not be in it
    assert open_after("den", "ann", "e/label", "ann/hall") == (1, 0)
    assert open_after("hall", "bob", "e/label/second") == (0, 0)
