"""The order of a transaction, and what is taken for a failure although the client reports none."""

from types import SimpleNamespace

import pytest

from connectors.kafka import worker_client
from connectors.kafka.client import Connection, check_sizes, within
from connectors.kafka.client_import import TopicPartition, kafka_errors
from connectors.kafka.worker_client import prepare_transactions, transact
from connectors.topics import BrokerError, RefusedError
from tests.helpers.kafka_cases import out

CONNECTION = Connection("nowhere", names={"predictions": "p", "state": "s"})


class Producer:
    """Writes down what is asked of it; may fail at a step, be silent, or change its epoch there."""

    def __init__(self, fails_at=None, ended_at=None, silent_at=None):
        self.steps = []
        self._fails_at, self._ended_at, self._silent_at = fails_at, ended_at, silent_at
        self._transaction_manager = SimpleNamespace(
            producer_id_and_epoch=SimpleNamespace(producer_id=7, epoch=0),
            send_offsets_to_transaction=self._positions,
            begin_commit=lambda: self._result("commit"),
        )
        self._sender = SimpleNamespace(wakeup=lambda: None)

    def _step(self, name):
        self.steps.append(name)
        if name == self._fails_at:
            raise RuntimeError(name)
        if name == self._ended_at:
            identity = SimpleNamespace(producer_id=7, epoch=1)
            self._transaction_manager.producer_id_and_epoch = identity

    def _result(self, name):
        self._step(name)
        return SimpleNamespace(wait=lambda timeout_ms: self._waited(name, timeout_ms))

    def _waited(self, name, timeout_ms):
        assert 0.0 < timeout_ms <= 60_000.0
        self._step(f"{name} done")
        return f"{name} done" != self._silent_at

    def _positions(self, offsets, membership):
        assert (offsets, membership) == ({"place": 3}, "member")
        return self._result("positions")

    def begin_transaction(self):
        self._step("begin")

    def put(self, topics, records):
        assert topics == ["p", "s", "p"]
        self._step("records")
        places = [(topic, record.partition) for topic, record in zip(topics, records, strict=True)]
        return [(TopicPartition(*place), self._last(*place)) for place in places]

    def _last(self, topic, number):
        return SimpleNamespace(get=lambda timeout: self._got(topic, number, timeout))

    def _got(self, topic, number, timeout):
        assert 0.0 < timeout <= 60.0
        self._step(f"{topic} {number} done")
        return SimpleNamespace(offset=len(self.steps))


RECORDS = [out("predictions", b"1", 0), out("state", b"2", 1), out("predictions", b"3", 0)]
STEPS = [
    "begin",
    "records",
    "positions",
    "p 0 done",
    "s 1 done",
    "p 0 done",
    "positions done",
    "commit",
    "commit done",
]


@pytest.fixture(autouse=True)
def records_are_put(monkeypatch):
    monkeypatch.setattr(worker_client, "put", Producer.put)


def run(producer):
    return transact(producer, CONNECTION, RECORDS, {"place": 3}, "member", timeout_s=60.0)


def test_all_records_and_the_positions_are_waited_for_before_the_commit():
    producer = Producer()
    assert run(producer) == {("predictions", 0): 5, ("state", 1): 6}  # of two batches the later
    assert producer.steps == STEPS


@pytest.mark.parametrize("step", STEPS)
def test_after_a_step_that_fails_none_follows(step):
    producer = Producer(fails_at=step)
    with pytest.raises(RuntimeError, match=step):
        run(producer)
    assert producer.steps == STEPS[: STEPS.index(step) + 1]


@pytest.mark.parametrize("step", ["positions done", "commit done"])
def test_a_broker_that_does_not_answer_is_told_and_nothing_follows(step):
    producer = Producer(silent_at=step)
    with pytest.raises(BrokerError, match=r"^broker did not answer in time to commit$"):
        run(producer)
    assert producer.steps == STEPS[: STEPS.index(step) + 1]


@pytest.mark.parametrize("step", STEPS[:-1])
def test_a_commit_after_the_broker_has_ended_the_transaction_is_an_error(step):
    with pytest.raises(BrokerError, match=r"^broker has ended the transaction of its own accord$"):
        run(Producer(ended_at=step))


def test_a_broker_without_a_coordinator_of_transactions_is_told_with_what_to_look_at():
    def init_transactions():
        raise kafka_errors.KafkaTimeoutError("Timeout expired while initializing")

    with pytest.raises(BrokerError) as caught:
        prepare_transactions(SimpleNamespace(init_transactions=init_transactions), CONNECTION)
    assert str(caught.value) == (
        "broker nowhere:9092 did not answer in time to prepare transactions; if it is new, start "
        "again, else look at the topic __transaction_state, which needs as many brokers as "
        "transaction.state.log.replication.factor and transaction.state.log.min.isr say"
    )


@pytest.mark.parametrize(
    ("error", "text"),
    [
        # The client wraps the broker's answer.
        (
            kafka_errors.KafkaError("Unexpected error: [Error 50] InvalidTransactionTimeoutError"),
            r"^broker nowhere:9092 refuses transactions that may last 15 s; set its "
            r"transaction\.max\.timeout\.ms to 15000 or more$",
        ),
        (
            kafka_errors.TransactionalIdAuthorizationFailedError(),
            "^this client has no right to prepare transactions at nowhere:9092: ",
        ),
    ],
)
def test_a_broker_that_allows_no_such_transactions_is_not_asked_again(error, text):
    def init_transactions():
        raise error

    with pytest.raises(RefusedError, match=text):
        prepare_transactions(SimpleNamespace(init_transactions=init_transactions), CONNECTION)


def test_key_and_headers_count_for_the_size_of_a_record():
    limit = 16842752
    check_sizes([out("state", b"x" * (limit - 2000))])
    with pytest.raises(ValueError, match="expected at most 16842752"):
        check_sizes([out("state", b"x" * (limit - 2000), key=b"k" * 1000)])
    with pytest.raises(ValueError, match="expected at most 16842752"):
        check_sizes([out("state", b"x" * (limit - 2000), headers=(("h", b"v" * 1000),))])


def test_a_call_that_fails_in_time_fails_as_it_would_without_a_deadline():
    with pytest.raises(ZeroDivisionError):
        within(1.0, "divide", lambda: 1 / 0)
    assert within(1.0, "say nothing", lambda: None) is None
