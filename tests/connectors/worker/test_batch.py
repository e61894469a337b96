"""Records of one poll: events are taken key by key, and what they lead to is written in order."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.worker.batch import Batch
from connectors.worker.settings import LoopSettings
from streamgp import isgp
from streamgp.budgets import AtMost
from tests.helpers.conversations import MOVES, OnWorker, conversation
from tests.helpers.laws import examples

SETTINGS = LoopSettings(model=isgp(seed=1), answer_horizon_s=50.0, expires_after_s=10.0)
KEYS = ("ann", "bob", "eve")
moves = st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(MOVES)), max_size=60)


class OneByOne(OnWorker):
    def take(self, batch, records):
        for record in records:
            batch.take(record, batch.decode(record))


def batches(steps):
    """Yield the records between two times at which nothing comes, and the second time."""
    records = []
    for record, now in steps:
        if record is None:
            yield records, now
            yield [], now
            records = []
        else:
            records.append(record)
    yield records, now


@examples(30)
@given(moves)
def test_records_taken_together_lead_to_what_they_do_one_by_one(moves):
    together, apart = OnWorker(SETTINGS, "g"), OneByOne(SETTINGS, "g")
    for records, now in batches(conversation([*moves, ("ann", "event")])):
        together.step_all(records, now)
        apart.step_all(records, now)
    assert together.written == apart.written


def order_of(settings, keys):
    """Return the keys of events in the order in which a batch begins them."""
    worker, begun = OnWorker(settings, "g"), []
    records = [record for record, _ in conversation([(key, "event") for key in keys])]
    batch = Batch({0: worker.partition}, settings, "g", {}, worker.history, 0.0)
    batch.take_all(records, list(map(batch.decode, records)), begun.append)
    written = [out.key.decode() for out in batch.results.out if out.topic == "predictions"]
    return "".join(record.key.decode()[0] for record in begun), [key[0] for key in written]


def test_events_are_taken_key_by_key_and_written_in_their_order():
    keys = ("ann", "bob", "ann", "eve", "bob", "ann")
    begun, written = order_of(SETTINGS, keys)
    assert begun == "aaabbe"
    assert "".join(written) == "abaeba"


@pytest.mark.parametrize("shared", [{"keyed": False}, {"total_budget": AtMost(2)}])
def test_events_that_depend_on_those_of_other_keys_are_taken_in_their_order(shared):
    begun, _ = order_of(replace(SETTINGS, **shared), ("ann", "bob", "ann"))
    assert begun == "aba"
