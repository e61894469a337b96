"""The order of a transaction, and what is taken for a failure although the client reports none."""

from types import SimpleNamespace

import pytest
from kafka_cases import out

from connectors.kafka.client import within
from connectors.kafka.transaction import check_sizes, transact
from connectors.records import LinkError

NAMES = {"predictions": "p", "state": "s"}


class Producer:
    """Writes down what is asked of it; may fail at a step, or change its epoch there."""

    def __init__(self, fails_at=None, ended_at=None):
        self.config = {"delivery_timeout_ms": 1000}
        self.steps = []
        self._fails_at, self._ended_at = fails_at, ended_at
        self._transaction_manager = SimpleNamespace(
            producer_id_and_epoch=SimpleNamespace(producer_id=7, epoch=0),
            maybe_add_partition_to_transaction=lambda place: self._places.add(place),
        )
        self._places = set()
        self._accumulator = SimpleNamespace(append=self._append)
        self._sender = SimpleNamespace(wakeup=lambda: None)

    def _step(self, name):
        self.steps.append(name)
        if name == self._fails_at:
            raise RuntimeError(name)
        if name == self._ended_at:
            identity = SimpleNamespace(producer_id=7, epoch=1)
            self._transaction_manager.producer_id_and_epoch = identity

    def begin_transaction(self):
        self._step("begin")

    def partitions_for(self, topic):
        assert topic in NAMES.values()

    def _partition(self, topic, partition, *_):
        return partition if topic in NAMES.values() else None

    def _append(self, place, timestamp_ms, key, value, headers):
        assert place in self._places
        assert (timestamp_ms, key, len(value), headers) == (None, b"ann", 1, ())
        self._step(f"send {place.topic} {place.partition}")
        offset = len(self.steps)
        future = SimpleNamespace(get=lambda **_: self._got(place.partition, offset))
        return future, True, False, False

    def _got(self, partition, offset):
        self._step("get")
        return SimpleNamespace(partition=partition, offset=offset)

    def flush(self, timeout):
        assert timeout == 1.0
        self._step("flush")

    def send_offsets_to_transaction(self, offsets, membership):
        assert (offsets, membership) == ({"place": 3}, "member")
        self._step("offsets")

    def commit_transaction(self):
        self._step("commit")


RECORDS = [out("predictions", b"1", 0), out("state", b"2", 1), out("predictions", b"3", 0)]
STEPS = [
    "begin",
    "send p 0",
    "send s 1",
    "send p 0",
    "flush",
    "get",
    "get",
    "get",
    "offsets",
    "commit",
]


def run(producer):
    return transact(producer, NAMES, RECORDS, {"place": 3}, "member")


def test_every_record_is_waited_for_before_the_positions_and_these_before_the_commit():
    producer = Producer()
    assert run(producer) == {("predictions", 0): 5, ("state", 1): 4}
    assert producer.steps == STEPS


@pytest.mark.parametrize("step", sorted(set(STEPS)))
def test_after_a_step_that_fails_none_follows(step):
    producer = Producer(fails_at=step)
    with pytest.raises(RuntimeError, match=step):
        run(producer)
    assert producer.steps == STEPS[: STEPS.index(step) + 1]


@pytest.mark.parametrize("step", STEPS[:-1])
def test_a_commit_that_succeeds_after_the_broker_has_ended_the_transaction_is_none(step):
    with pytest.raises(LinkError, match=r"^broker has ended the transaction of its own accord$"):
        run(Producer(ended_at=step))


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
