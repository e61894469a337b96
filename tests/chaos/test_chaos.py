"""The checks of the workers under chaos find every fault, and nothing without a fault."""

import dataclasses
import itertools
import json
import socket
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest
from msgspec.structs import replace

from connectors.memory import MemoryTopics
from connectors.storage.snapshots import StateDirectory
from connectors.topics import ALL_TOPICS, Outgoing, Record
from connectors.wire.codec import decode
from connectors.wire.outbound import Outbound
from connectors.worker.early_answers import PATIENCE_S
from connectors.worker.settings import LoopSettings, WorkerSettings
from connectors.worker.worker import Worker
from streamgp import GPClassifier, SkepticalClassifier
from streamgp.apps.worker.observe import observed
from streamgp.budgets import AtMostPer
from streamgp.interactive import SimulatedAnnotator
from streamgp.interactive.messages import Challenge, LabelRequest
from streamgp.interactive.people import People
from streamgp.query import AlwaysChallenge, SkepticalAsk
from tests.helpers.topics import everything

from . import senders, traffic
from .checks import GRACE_S
from .conversations import Asked, Talk
from .learners import StateOfTopics, explain
from .ledger import Findings, Ledger
from .processes import FINAL, ROOT, Plan, Workers
from .scraping import Scraper, Written
from .traffic import (
    HOSTILE,
    HOSTILE_KEYS,
    HOSTILE_MARK,
    KINDS,
    MARK,
    Traffic,
)

HORIZON_S = 1000.0
EXPIRES_S = 25.0
START = 1_700_000_000.0
N_ROUNDS, N_EVENTS, STEP_S = 12, 240, 10.0
N_KEYS, MAX_KEYS = 28, 3
HOSTILE_SHARE = 0.3
MODEL = SkepticalClassifier(
    GPClassifier(),
    query=SkepticalAsk(pending=False),  # what is open is not in the log
    challenge=AlwaysChallenge(),
    budget=AtMostPer(3, 20.0),
    warm_up=0,
    seed=1,
)
LOOPS = LoopSettings(
    model=MODEL,
    expires_after_s=EXPIRES_S,
    answer_horizon_s=HORIZON_S,
    max_keys=MAX_KEYS,
    people=People(owners=False),  # the meddler corrects the answers of others
)


class Stage:
    """Topics, a clock that is set, and workers that work when told to."""

    def __init__(self, home):
        self.now = START
        self.state = home
        self.topics = MemoryTopics(n_partitions=2, clock=lambda: self.now)

    def write(self, records):
        writer = self.topics.writer("chaos")
        for record in records:
            writer.send(record)
        writer.flush()

    def work(self, n_turns=0):
        """Process what is pending, in at least `n_turns` turns."""
        turns = itertools.count()
        settings = WorkerSettings(group="chaos", instance="worker-0", max_bad_share=1.0)
        with StateDirectory(self.state / "worker-0") as state:
            worker = Worker(self.topics, LOOPS, settings, state=state, clock=lambda: self.now)
            worker.run(
                lambda: next(turns) >= n_turns and not any(self.topics.lags("chaos").values())
            )

    def read(self):
        return everything(self.topics, *ALL_TOPICS)


class Run(Stage):
    """A few minutes with undisturbed workers: the contents of the topics, and the snapshots.

    Every question about an event with an even number is answered; the meddler is busy.
    """

    def __init__(self, home, *, seed=1, hostile_share=HOSTILE_SHARE):
        super().__init__(home)
        self.annotator = SimulatedAnnotator(
            error_rate=0.3, decline_rate=0.1, classes=["hall", "kitchen", "study"], seed=seed
        )
        self.meddler = senders.Meddler(seed=seed)
        feed = Traffic(seed, N_EVENTS, hostile_share=hostile_share)
        asked = self.topics.reader(["requests"])
        said = self.topics.reader(["requests", "answers"])
        each = N_EVENTS // N_ROUNDS
        for n in range(N_ROUNDS):
            records = [
                record
                for number in range(n * each, (n + 1) * each)
                for record in feed.next(number, self.now)
            ]
            self.write(records)
            self.work()
            self.write([answer for record in asked.poll(0.0) for answer in self.answers(record)])
            for _ in range(2):  # also in response to what was just written
                self.write(
                    [
                        out
                        for record in said.poll(0.0)
                        for out in self.meddler.respond(record, self.now)
                    ]
                )
            self.now += STEP_S
        self.work()
        self.records = self.read()

    def answers(self, record):
        request = decode(record.value)
        if not isinstance(request, LabelRequest | Challenge) or request.event_id[-1] in "13579":
            return []
        answer = self.annotator.answer(request, "hall", self.now)
        return [Outbound("/streamgp/annotate", keyed=True).message(answer, record.partition)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        meddle_often(patch)
        patch.setattr(traffic, "_LABELLED_SHARE", 0.1)
        patch.setattr(traffic, "N_KEYS", N_KEYS)
        return Run(tmp_path_factory.mktemp("state"))


def meddle_often(patch):
    for rate in ("_TWICE", "_CORRECTED", "_CANCELLED", "_LATE", "_TAKEN_BACK"):
        patch.setattr(senders, rate, 0.3)


def test_a_transaction_is_ended_by_hand_only_if_no_coordinator_knows_it():
    from kafka.admin import PartitionProducerState, ProducerState, TransactionListing
    from kafka.admin import TransactionState as State

    from tests.kafka_hanging import hanging

    rest = {"last_sequence": 0, "last_timestamp": 0, "coordinator_epoch": 5}
    states = {
        place: PartitionProducerState(
            [
                ProducerState(
                    producer_id=number,
                    producer_epoch=3,
                    current_transaction_start_offset=at,
                    **rest,
                )
            ]
        )
        for place, number, at in [("lost", 7, 0), ("going on", 8, 40), ("over", 9, -1)]
    }
    known = [
        TransactionListing("a", 7, State.COMPLETE_ABORT),
        TransactionListing("b", 8, State.ONGOING),
        TransactionListing("c", 9, State.COMPLETE_COMMIT),
    ]
    assert [tuple(spec) for spec in hanging(states, known)] == [("lost", 7, 3, 5)]


def test_a_challenge_of_another_label_is_about_a_later_answer():
    asked = Asked()
    asked.ask("e/label", 60.0)
    asked.expire("e/label", 61.0)
    asked.ask("e/challenge/1", 90.0, given="lounge")
    talk = Talk("e", None, asked)
    first = {"answer_id": "a1", "request_id": "e/label"}
    assert talk.answer({**first, "y": "hall"}) == "accepted"
    assert talk.state == "learned"
    assert talk.answer({"answer_id": "a2", "supersedes": "a1", "declined": True}) == "accepted"
    assert talk.answer({**first, "answer_id": "a3", "y": "lounge"}) == "accepted"
    assert (talk.state, talk.n_lines) == ("challenged", 2)


def test_a_challenge_of_a_label_that_was_given_twice_is_about_the_time_it_names():
    asked = Asked()
    asked.ask("e/challenge/1", 90.0, given="hall", given_at=30.0)
    talk = Talk("e", None, asked)
    assert talk.answer({"answer_id": "a1", "y": "hall", "answered_at": 10.0}) == "accepted"
    assert talk.state == "learned"
    gone = {"answer_id": "a2", "supersedes": "a1", "declined": True, "answered_at": 20.0}
    assert talk.answer(gone) == "accepted"
    assert talk.answer({"answer_id": "a3", "y": "hall", "answered_at": 30.0}) == "accepted"
    assert (talk.state, talk.n_lines) == ("challenged", 2)
    confirmed = {"answer_id": "a4", "request_id": "e/challenge/1", "y": "hall"}
    assert talk.answer(confirmed) == "accepted"


def test_declining_a_question_that_has_ended_is_taken_and_changes_nothing():
    asked = Asked()
    asked.ask("e/label", 60.0)
    asked.expire("e/label", 61.0)
    talk = Talk("e", None, asked)
    late = {"request_id": "e/label", "declined": True}
    assert talk.answer({**late, "answer_id": "a1"}) == "accepted"
    assert talk.answer({**late, "answer_id": "a2", "request_id": None}) == "accepted"
    assert talk.answer({"answer_id": "a3", "supersedes": "a2", "declined": True}) == "accepted"
    assert (talk.state, talk.n_lines, talk.ended) == ("expired", 0, {})
    assert talk.answer({"answer_id": "a4", "supersedes": "a3", "y": "hall"}) == "accepted"
    assert (talk.state, talk.n_lines) == ("learned", 1)
    assert talk.answer({**late, "answer_id": "a5"}) == "refused"


def test_an_answer_that_the_learner_refuses_ends_its_question_without_a_line():
    asked = Asked()
    asked.ask("e/challenge/1", 90.0, given=1.0)
    to_it = {"type": "answer", "answer_id": "a1", "request_id": "e/challenge/1"}
    for said, standing in (
        ({**to_it, "y": 1.0}, "a1"),
        ({"type": "answer", "answer_id": "a1", "supersedes": "e", "y": True}, "a1"),
        ({**to_it, "declined": True}, "e"),
        ({"type": "label.cancel", "request_id": "e/challenge/1"}, "e"),
    ):
        talk = Talk("e", 1.0, asked)
        talk.refuse({"type": "answer", "answer_id": "a0", "request_id": "e/label", "y": 2})
        assert talk.state == "challenged"
        talk.refuse(said)
        talk.refuse(said)
        assert (talk.ended["e/challenge/1"], talk.n_lines) == (1, 0)
        assert talk.answer({**to_it, "answer_id": "a2", "y": "hall"}) == "refused"
        correction = {"answer_id": "a3", "supersedes": standing, "y": "hall"}
        assert talk.answer(correction) == "accepted"
        assert (talk.state, talk.n_lines) == ("learned", 1)


def test_a_late_answer_that_the_learner_refuses_may_be_superseded():
    asked = Asked()
    asked.ask("e/label", 60.0)
    asked.expire("e/label", 61.0)
    talk = Talk("e", None, asked)
    late = {"answer_id": "a1", "request_id": "e/label", "y": True}
    talk.refuse({"type": "answer", **late})
    assert (talk.answer(late), talk.ended, talk.n_lines) == ("repeated", {}, 0)
    assert talk.answer({**late, "answer_id": "a2"}) == "refused"
    assert talk.answer({"answer_id": "a3", "supersedes": "a1", "y": "hall"}) == "accepted"


def test_a_correction_that_the_learner_refuses_leaves_the_label_as_it_was():
    talk = Talk("e", "hall", Asked())
    talk.refuse({"type": "answer", "answer_id": "a1", "supersedes": "e", "y": True})
    assert (talk.state, talk.n_lines) == ("learned", 1)
    assert talk.answer({"answer_id": "a2", "supersedes": "e", "y": "study"}) == "accepted"
    assert talk.n_lines == 2


def test_a_label_that_comes_with_its_event_and_is_refused_has_no_line():
    talk = Talk("e", True, Asked(), unlearnable={"e"})
    assert (talk.state, talk.n_lines) == ("declined", 0)
    assert talk.answer({"answer_id": "a1", "supersedes": "e", "y": "hall"}) == "accepted"
    assert talk.n_lines == 1


def test_a_label_that_the_learner_refuses_when_its_challenge_expires_has_no_line():
    asked = Asked()
    asked.ask("e/challenge/1", 90.0, given=True)
    asked.expire("e/challenge/1", 91.0)
    talk = Talk("e", True, asked, unlearnable={"e"})
    assert talk.n_lines == 0
    late = {"answer_id": "a1", "request_id": "e/challenge/1", "y": "hall"}
    assert talk.answer(late) == "refused"
    assert talk.answer({"answer_id": "a2", "supersedes": "e", "y": "hall"}) == "accepted"
    assert talk.n_lines == 1


@pytest.mark.nightly  # whoever judges does so by night; by day one run is judged
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_key_most_of_whose_inputs_fail_is_judged_like_any_other(seed, tmp_path, monkeypatch):
    meddle_often(monkeypatch)
    kind = "labels that are nearly the same"
    monkeypatch.setattr(traffic, "HOSTILE", {kind: HOSTILE[kind]})
    monkeypatch.setattr(traffic, "_CLASSES", 0.0)
    run = Run(tmp_path, seed=seed, hostile_share=1.0)
    findings = judged(run.records, run.now)
    assert findings.examples == []
    assert findings.hostile > findings.hostile_dead > 0


def judged(records, stopped_at):
    ledger = Ledger(horizon_s=HORIZON_S, expires_after_s=EXPIRES_S)
    for record in records:
        ledger.add(record)
    return ledger.findings(stopped_at)


def flaws(run, records, stopped_at=None):
    """Return what the forged records change in the findings, except for plain counts."""
    stopped_at = run.now if stopped_at is None else stopped_at
    before, after = judged(run.records, run.now), judged(records, stopped_at)
    only_counted = (
        "events", "answers", "requests", "challenges", "learned", "open", "fed", "waiting",
        "hostile", "hostile_dead",
    )  # fmt: skip
    return {
        field.name: getattr(after, field.name) - getattr(before, field.name)
        for field in dataclasses.fields(Findings)
        if field.name not in (*only_counted, "examples", "longest_stall_s")
        and getattr(after, field.name) != getattr(before, field.name)
    }


def found(run, topic, condition=None):
    """Return the last good record of a topic whose value meets a condition."""
    return [
        record
        for record in run.records
        if record.topic == topic
        and record.value is not None
        and MARK not in record.value
        and (condition is None or condition(json.loads(record.value)))
    ][-1]


def changed(record, **fields):
    value = json.dumps({**json.loads(record.value), **fields}).encode()
    return replace(record, value=value)


def without(run, record):
    return [other for other in run.records if other is not record]


def twice(run, record):
    return [*run.records, replace(record, offset=10**6)]


def replaced(run, record, other):
    return [other if one is record else one for one in run.records]


def explained(records):
    ledger = Ledger(horizon_s=HORIZON_S, expires_after_s=EXPIRES_S)
    for record in records:
        ledger.add(record)
    total = Counter()
    for key, features in ledger.features.items():
        parts = explain(MODEL, ledger.lines.of_key[key], ledger.predictions[key], features)
        total.update(dataclasses.asdict(parts))
    return total


def n_predicted(run):
    """Return the number of predictions: for all good events, and some hostile ones."""
    findings = judged(run.records, run.now)
    return N_EVENTS + findings.hostile - findings.hostile_dead


def differences(run, records):
    state = StateOfTopics()
    for record in records:
        if record.topic in ("state", "consensus"):
            state.add(record)
    return state.differences(LOOPS, run.state, now=run.now)


# --- nothing is wrong


def test_nothing_is_found_where_nothing_is_wrong(run):
    findings = judged(run.records, run.now)
    assert findings.examples == []
    assert (findings.lost, findings.duplicated, findings.dead_too_many) == (0, 0, 0)
    assert findings.dead_found == findings.dead_expected > 2 * len(KINDS)
    assert findings.events == findings.fed == N_EVENTS
    assert findings.hostile > findings.hostile_dead > 0
    assert min(findings.challenges, findings.learned, findings.open) > 0


def test_the_run_has_everything_that_can_happen_to_a_question(run):
    told = [record for record in run.records if record.topic in ("requests", "consensus")]
    said = [json.loads(record.value) for record in told if record.value is not None]
    assert {value["type"] for value in said} == {
        "label.request", "label.challenge", "label.cancel", "expired", "consensus"
    }  # fmt: skip
    origins = {value["origin"] for value in said if value["type"] == "consensus"}
    assert origins == {"asked", "upheld", "revised", "volunteered", "withdrawn"}
    assert any(value.get("revision") for value in said)


def test_the_log_explains_every_prediction_bitwise(run):
    total = explained(run.records)
    assert total["same"] == n_predicted(run)
    assert total["close"] == total["unexplained"] == 0


def test_the_snapshots_equal_the_state_rebuilt_from_the_topics(run):
    n_keys, flaws = differences(run, run.records)
    assert n_keys > 2 * 2 * MAX_KEYS  # on two partitions, so that some are evicted
    assert flaws == []


# --- hostile events


def hostile(run, *, dead):
    """Return a hostile event that was sent once, and is a dead letter (`dead`) or was predicted."""
    places = {
        (headers["dlq.topic"], int(headers["dlq.partition"]), int(headers["dlq.offset"])): record
        for record in run.records
        if record.topic == "dead-letters" and "dlq.topic" in (headers := dict(record.headers))
    }
    for record in run.records:
        if record.topic == "events" and HOSTILE_MARK in (record.value or b""):
            letter = places.get((b"events", record.partition, record.offset))
            if (letter is not None) is dead:
                return record, letter
    raise AssertionError("there is none")


def test_hostile_events_are_of_every_kind():
    traffic_ = Traffic(1, 1000, hostile_share=1.0)
    sent = [record for n in range(1000) for record in traffic_.next(n, START)]
    notes = {json.loads(r.value)["note"] for r in sent if HOSTILE_MARK in (r.value or b"")}
    assert notes == {f"{HOSTILE_MARK.decode()} {kind}" for kind in HOSTILE}
    at_home = [r for r in sent if HOSTILE_MARK in (r.value or b"") and r.key.startswith(b"key-")]
    assert 0 < len(at_home) < 200


def test_the_share_of_hostile_events_changes_no_good_event():
    calm, rough = (Traffic(1, 200, hostile_share=share) for share in (0.0, 1.0))
    for n in range(200):
        mixed = rough.next(n, START)
        assert [r for r in mixed if HOSTILE_MARK not in (r.value or b"")] == calm.next(n, START)


def test_a_hostile_event_that_is_lost_is_found(run):
    _, letter = hostile(run, dead=True)
    assert flaws(run, without(run, letter))["lost"] == 1
    event, _ = hostile(run, dead=False)
    name = json.loads(event.value)["event_id"]
    prediction = found(run, "predictions", lambda value: value["event_id"] == name)
    assert flaws(run, without(run, prediction))["lost"] == 1


def test_a_hostile_event_with_two_outputs_is_found(run):
    event, letter = hostile(run, dead=True)
    assert flaws(run, twice(run, letter)) == {"dead_found": -1, "dead_too_many": 2}
    predicted, _ = hostile(run, dead=False)
    name = json.loads(predicted.value)["event_id"]
    prediction = found(run, "predictions", lambda value: value["event_id"] == name)
    assert flaws(run, twice(run, prediction))["duplicated"] == 1
    both = [*run.records, replace(prediction, key=event.key, value=prediction.value.replace(
        name.encode(), json.loads(event.value)["event_id"].encode()
    ))]  # fmt: skip
    assert flaws(run, both)["dead_too_many"] == 1


# --- a correction that is read after its event was forgotten


class Forgotten(Stage):
    """A label that came with its event, and its correction, read after the answer horizon."""

    def __init__(self, home, *, answered_s):
        super().__init__(home)
        event = {"event_id": "e1", "x": {"light": 0.5}, "occurred_at": START, "y": "hall", "n": 0}
        self.say("events", event)
        self.work()
        self.now = START + HORIZON_S + 1.0
        self.work(n_turns=3)
        correction = {"answer_id": "a1", "event_id": "e1", "supersedes": "e1", "y": "study"}
        at = {"answered_at": START + answered_s}
        self.say("answers", {"type": "answer", "version": 1, **correction, **at})
        self.work()

    def say(self, topic, value):
        self.write([Outgoing(topic=topic, key=b"ann", value=json.dumps(value).encode())])

    def told(self, *, after_s):
        """Return what is expected, found and waiting, if there is nothing else to report."""
        self.now += after_s
        findings = judged(self.read(), self.now)
        assert (findings.lines_wrong, findings.ends_wrong, findings.dead_too_many) == (0, 0, 0)
        return findings.dead_expected, findings.dead_found, findings.waiting


@pytest.fixture(params=[HORIZON_S - 1.0, HORIZON_S + 0.5], ids=["in time", "late"])
def forgotten(request, tmp_path, monkeypatch):
    monkeypatch.setattr("connectors.worker.worker.LONGEST_WAIT_S", 0.0)
    return Forgotten(tmp_path, answered_s=request.param)


def test_a_late_correction_waits_for_its_event_before_it_is_a_dead_letter(forgotten):
    assert forgotten.told(after_s=0.0) == forgotten.told(after_s=PATIENCE_S) == (0, 0, 1)
    forgotten.now += 1.0
    forgotten.work(n_turns=3)
    assert forgotten.told(after_s=0.0) == (1, 1, 0)


def test_a_correction_that_waits_too_long_is_found(forgotten):
    assert forgotten.told(after_s=PATIENCE_S + GRACE_S) == (1, 0, 0)


def test_a_correction_that_neither_waits_nor_is_a_dead_letter_is_found(forgotten):
    (waits,) = [r for r in forgotten.read() if r.topic == "state" and b"early/" in r.key]
    records = [*forgotten.read(), replace(waits, offset=10**6, value=None)]
    findings = judged(records, forgotten.now)
    n_missing = findings.dead_expected - findings.dead_found
    # A correction sent in time may have been read in time: then a line is missing.
    assert (n_missing + findings.lines_wrong, findings.waiting) == (1, 0)


def test_a_correction_that_waits_and_is_a_dead_letter_as_well_is_found(forgotten):
    (answer,) = [record for record in forgotten.read() if record.topic == "answers"]
    where = {"topic": answer.topic, "partition": answer.partition, "offset": answer.offset}
    headers = [(f"dlq.{name}", str(value).encode()) for name, value in where.items()]
    letter = replace(answer, topic="dead-letters", offset=10**6, headers=headers)
    findings = judged([*forgotten.read(), letter], forgotten.now)
    assert (findings.waiting, findings.dead_too_many) == (1, 1)


# --- each of these is found


def test_a_lost_prediction_is_found(run):
    assert flaws(run, without(run, found(run, "predictions"))) == {"lost": 1}


def test_a_duplicated_prediction_is_found(run):
    assert flaws(run, twice(run, found(run, "predictions"))) == {"duplicated": 1}


def test_a_prediction_of_no_event_is_found(run):
    prediction = found(run, "predictions")
    forged = replaced(run, prediction, changed(prediction, event_id="unknown"))
    assert flaws(run, forged) == {"lost": 1, "duplicated": 1}


@pytest.mark.parametrize("topic", ["events", "answers", "consensus"])
def test_a_missing_dead_letter_is_found(run, topic):
    letter = next(
        record
        for record in run.records
        if record.topic == "dead-letters" and dict(record.headers)["dlq.topic"] == topic.encode()
    )
    assert flaws(run, without(run, letter)) == {"dead_found": -1}


def test_a_duplicated_dead_letter_is_found(run):
    letter = next(record for record in run.records if record.topic == "dead-letters")
    assert flaws(run, twice(run, letter)) == {"dead_found": -1, "dead_too_many": 2}


def test_a_dead_letter_with_other_bytes_is_found(run):
    letter = next(record for record in run.records if record.topic == "dead-letters")
    for other in (
        replace(letter, value=(letter.value or b"") + b" "),
        replace(letter, key=b"other"),
        replace(letter, headers=[("more", b""), *letter.headers]),
    ):
        forged = replaced(run, letter, other)
        assert flaws(run, forged) == {"dead_found": -1, "dead_too_many": 1}


def test_a_dead_letter_of_a_good_input_is_found(run):
    event = found(run, "events", lambda value: "event_id" in value)
    where = [("dlq.topic", b"events"), ("dlq.partition", b"%d" % event.partition)]
    headers = [*where, ("dlq.offset", b"%d" % event.offset)]
    letter = replace(event, topic="dead-letters", offset=10**6, headers=headers)
    assert flaws(run, [*run.records, letter]) == {"dead_too_many": 1}


def test_a_dead_letter_of_a_timer_is_found(run):
    letter = found(run, "events")
    letter = replace(letter, topic="dead-letters", headers=())
    assert flaws(run, [*run.records, letter]) == {"dead_too_many": 1}


def test_a_question_without_end_is_found(run):
    expired = found(run, "requests", lambda value: value["type"] == "expired")
    forged = without(run, expired)
    assert flaws(run, forged)["ends_wrong"] == 1


def test_a_question_with_two_ends_is_found(run):
    for kind in ("expired", "label.cancel"):
        end = found(run, "requests", lambda value, kind=kind: value["type"] == kind)
        assert flaws(run, twice(run, end)) == {"ends_wrong": 1}


def test_a_question_that_expires_after_its_answer_is_found(run):
    line = found(run, "consensus", lambda value: value["origin"] == "asked")
    event_id = json.loads(line.value)["event_id"]
    question = found(run, "requests", lambda value: value["request_id"] == f"{event_id}/label")
    value = {"type": "expired", "request_id": f"{event_id}/label"}
    expired = replace(question, offset=10**6, value=json.dumps(value).encode(), at=line.at + 1.0)
    assert flaws(run, [*run.records, expired]) == {"ends_wrong": 1}


def test_a_question_asked_twice_is_found(run):
    question = found(run, "requests", lambda value: value["type"] == "label.request")
    assert flaws(run, twice(run, question)) == {"ends_wrong": 1}


def test_a_question_may_be_open_only_within_its_time(run):
    n_open = judged(run.records, run.now).open
    assert n_open > 0
    assert flaws(run, run.records, run.now + 2 * EXPIRES_S)["ends_wrong"] == n_open


def test_an_answer_learned_twice_is_found(run):
    line = found(run, "consensus")
    again = changed(line, sequence=json.loads(line.value)["sequence"] + 1)
    assert flaws(run, twice(run, again)) == {"lines_wrong": 1}


def test_a_repeated_number_of_a_line_is_found(run):
    assert flaws(run, twice(run, found(run, "consensus"))) == {"lines_wrong": 1, "gaps": 1}


def test_a_missing_line_is_found(run):
    first = next(
        record
        for record in run.records
        if record.topic == "consensus"
        and record.value
        and not record.key.startswith(HOSTILE_KEYS)
        and json.loads(record.value)["sequence"] == 1
    )
    found_flaws = flaws(run, without(run, first))
    assert found_flaws["lines_wrong"] == found_flaws["gaps"] == 1


def nulls(run):
    """Return the nulls that workers wrote."""
    return [r for r in run.records if r.topic == "consensus" and r.value is None and not bad(r)]


def bad(record):
    return MARK in (record.key or b"")


def test_a_line_of_a_withdrawn_example_that_stays_in_the_log_is_found(run):
    assert len(nulls(run)) > 1
    for null in nulls(run):
        assert flaws(run, without(run, null)) == {"nulls_wrong": 1}


def test_a_line_that_is_needlessly_removed_from_the_log_is_found(run):
    null = nulls(run)[0]
    line = found(run, "consensus", lambda value: value["origin"] != "withdrawn")
    for forged in (null, replace(line, value=None)):
        assert flaws(run, twice(run, forged)) == {"nulls_wrong": 1}


def test_a_line_that_is_removed_before_its_example_is_withdrawn_is_found(run):
    null = nulls(run)[0]
    assert flaws(run, [null, *without(run, null)]) == {"nulls_wrong": 2}


def test_a_number_of_examples_that_contradicts_the_log_is_found(run):
    prediction = found(run, "predictions", lambda value: value["n_learned"] > 0)
    forged = replaced(run, prediction, changed(prediction, n_learned=1000))
    assert flaws(run, forged) == {"counts_wrong": 1}
    assert explained(forged)["unexplained"] == 1


def test_a_wrong_probability_is_found(run):
    prediction = found(run, "predictions", lambda value: value["n_learned"] > 0)
    (label, p), *others = json.loads(prediction.value)["proba"]
    for by, expected in ((1e-6, "unexplained"), (1e-12, "close")):
        forged = changed(prediction, proba=[[label, p + by], *others])
        total = explained(replaced(run, prediction, forged))
        assert (total["same"], total[expected]) == (n_predicted(run) - 1, 1)


def test_a_wrong_draw_is_found(run):
    prediction = found(run, "predictions")
    decision = json.loads(prediction.value)["decision"]
    forged = changed(prediction, decision={**decision, "threshold": decision["threshold"] / 2})
    assert explained(replaced(run, prediction, forged))["unexplained"] == 1


def test_state_that_differs_from_the_snapshot_is_found(run):
    head = found(run, "state", lambda value: value["name"] == "head")
    value = json.loads(head.value)["value"]
    value["model"]["annotators"] = [["stranger", 7, 0.5]]
    _, flaws = differences(run, replaced(run, head, changed(head, value=value)))
    key = head.key.decode().partition("\x1f")[0]
    assert flaws == [f"key {key} is not in the snapshot what the topics make of it"]


def test_state_that_no_worker_can_restore_is_found(run):
    head = found(run, "state", lambda value: value["name"] == "configuration")
    forged = changed(head, value={"fingerprint": "another", "keyed": True})
    _, flaws = differences(run, replaced(run, head, forged))
    assert len(flaws) == 1
    assert "was processed with another configuration" in flaws[0]


def test_a_snapshot_behind_the_topics_is_brought_up_to_date(run):
    head = found(run, "state", lambda value: value["name"] == "head")
    again = replace(head, offset=10**6)
    assert differences(run, [*run.records, again])[1] == []
    value = json.loads(head.value)["value"]
    value["model"]["annotators"] = [["stranger", 7, 0.5]]
    assert differences(run, [*run.records, changed(again, value=value)])[1] == []


def test_a_missing_snapshot_is_found(run, tmp_path):
    state = StateOfTopics()
    for record in run.records:
        if record.topic in ("state", "consensus"):
            state.add(record)
    _, flaws = state.differences(LOOPS, tmp_path, now=run.now)
    assert flaws == ["partition 0 has no snapshot", "partition 1 has no snapshot"]


def test_a_stall_is_the_time_without_output_while_an_event_waits(run):
    last = max(record.at for record in run.records if record.topic == "predictions")
    late = [
        replace(record, at=record.at + 7.0)
        if record.topic == "predictions" and record.at == last
        else record
        for record in run.records
    ]
    assert judged(run.records, run.now).longest_stall_s == 0.0
    assert judged(late, run.now).longest_stall_s == 7.0


# --- harm


def test_a_plan_has_every_kind_of_harm_and_kills_and_stops_the_broker():
    plan = Plan.drawn(seed=3, seconds=60.0)
    assert plan == Plan.drawn(seed=3, seconds=60.0) != Plan.drawn(seed=4, seconds=60.0)
    assert Counter(harm for _, harm, _ in plan.harms) == {"kill": 3, "term": 3, "stop": 3}
    assert {is_kill for _, is_kill in plan.restarts} == {True, False}
    assert all(0.0 < at < 60.0 for at, *_ in [*plan.harms, *plan.restarts])
    assert all(stop_s > 10.0 for _, _, stop_s in plan.harms)


@pytest.mark.nightly
def test_a_worker_that_must_not_be_restarted_is_given_up(tmp_path):
    workers = Workers(tmp_path / "missing.toml", 1, tmp_path)
    until = time.monotonic() + 60.0
    try:
        while not workers.n_given_up and time.monotonic() < until:
            workers.watch()
        assert set(workers.statuses) <= FINAL
        assert (workers.n_given_up, sum(workers.statuses.values())) == (1, 1)
        assert "missing.toml" in workers.tail()
    finally:
        workers.kill()


@pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="needs what benchmarks share")
@pytest.mark.nightly
@pytest.mark.parametrize("command", ["tests.chaos", "benchmarks.chaos"])
def test_an_impossible_size_is_refused(command):
    arguments = [sys.executable, "-m", command, "--events", "0"]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, check=False, text=True)
    assert done.returncode == 2
    assert "--seconds, --events and --workers must be greater than 0" in done.stderr


def test_counters_of_several_lives_add_up_including_those_of_ended_lives():
    with observed("127.0.0.1:0") as one, observed("127.0.0.1:0") as other:
        lives = [("worker-0/1", one.url.removeprefix("http://"))]
        scraper = Scraper(lambda: lives)
        one.metrics.predictions = 3
        one.metrics.learned.update(asked=1, upheld=1)
        scraper.scrape()
        lives[:] = [("worker-0/2", other.url.removeprefix("http://")), ("worker-1/3", "[::1]:1")]
        other.metrics.predictions = 2
        scraper.scrape()
        assert scraper.totals() == {"predictions": 5, "labels_learned": 2}
        assert (scraper.n_scrapes, scraper.n_backwards) == (2, 0)
        other.metrics.predictions = 1
        scraper.scrape()
        assert scraper.n_backwards == 1


def test_counters_of_another_life_at_the_same_address_do_not_count():
    with observed("127.0.0.1:0") as there:
        address = there.url.removeprefix("http://")
        lives = iter([[("worker-0/1", address)], [("worker-0/2", address)]])
        scraper = Scraper(lambda: next(lives))
        scraper.scrape()
        assert (scraper.n_scrapes, scraper.totals()) == (0, Counter())


def test_a_worker_that_is_killed_while_it_responds_does_not_end_the_scrapes():
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()

        def respond():
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")

        killed = threading.Thread(target=respond)
        killed.start()
        scraper = Scraper(lambda: [("worker-0/1", f"{host}:{port}")])
        scraper.scrape()
        killed.join()
    assert (scraper.n_scrapes, scraper.totals()) == (0, Counter())


def test_records_that_no_worker_counts_are_not_counted():
    written, before = Written(), Written(until=START)
    for topic in ALL_TOPICS:
        for value in (None, b'{"type": "label.cancel"}'):
            record = Record(topic=topic, partition=0, offset=0, key=b"k", value=value, at=START + 1)
            written.add(record)
            before.add(record)
    assert written.counts == {"predictions": 1, "labels_learned": 1, "dead_letters": 2}
    assert not before.counts
