"""A worker whose events are raw rows: windows are cut inside of its transactions."""

from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.memory import MemoryTopics
from connectors.storage.snapshots import StateDirectory
from connectors.topics import BrokerError
from connectors.worker.compatibility import UnfitTopicsError
from streamgp.interactive.event_windows import EventWindows
from streamgp.interactive.messages import Answer, Event, Prediction
from tests.helpers.laws import examples
from tests.helpers.topics import everything, said
from tests.helpers.workbench import (
    Failing,
    contents,
    idle,
    letters,
    lose_positions,
    put,
    raw,
    work,
    worker,
)


def windows(**more):
    given = {"length_s": 10.0, "hop_s": 5.0, "features": ["mean", "slope"]} | more
    return EventWindows(label="y", keep_changes=True, **given)


def row(t, key="ann", **x):
    return Event(event_id=f"{key}{t}", key=key, x=x or {"v": t % 7.0}, occurred_at=float(t))


ROWS = [row(t, key) for t in range(60) for key in ("ann", "bob")]


@cache
def told():
    topics = MemoryTopics(n_partitions=2)
    put(topics, *ROWS)
    work(topics, windows=windows())
    return contents(topics)


def test_one_row_is_no_event_and_one_window_is():
    topics = MemoryTopics()
    put(topics, *(row(t) for t in range(21)))
    work(topics, windows=windows())
    predictions = said(topics, "predictions")
    assert [(p.event_id, p.start, p.end) for p in predictions] == [
        ("ann@-5", -5.0, 5.0),
        ("ann@0", 0.0, 10.0),
        ("ann@5", 5.0, 15.0),
        ("ann@10", 10.0, 20.0),
    ]
    assert [p.at for p in predictions] == [p.end for p in predictions]


@examples(8)
@given(
    batch=st.integers(1, 300),
    cuts=st.lists(st.integers(0, len(ROWS)), max_size=3),
    saves=st.booleans(),
)
def test_neither_batches_nor_restarts_change_anything(tmp_path_factory, batch, cuts, saves):
    state = StateDirectory(tmp_path_factory.mktemp("state")) if saves else None
    topics = MemoryTopics(n_partitions=2)
    for start, stop in pairwise([0, *sorted(cuts), len(ROWS)]):
        put(topics, *ROWS[start:stop])
        work(topics, windows=windows(), batch=batch, state=state)
    assert contents(topics) == told()


@pytest.mark.parametrize("fails", [["before"], ["after"], [None, "before", None, "after"]])
def test_a_failed_commit_loses_and_duplicates_nothing(fails):
    topics = Failing(fails, n_partitions=2)
    put(topics, *ROWS)
    for _ in range(8):
        try:
            work(topics, windows=windows(), batch=17)
        except BrokerError:
            continue
        break
    assert contents(topics) == told()


def test_rows_that_are_delivered_again_make_no_window_twice():
    topics = MemoryTopics(n_partitions=2)
    put(topics, *ROWS)
    work(topics, windows=windows())
    lose_positions(topics)
    work(topics, windows=windows())
    assert contents(topics) == told()


def test_state_of_rows_is_bounded_by_the_open_windows():
    topics = MemoryTopics()
    put(topics, *(row(t) for t in range(200)))
    work(topics, windows=windows(), batch=7)
    kept = {}
    for record in everything(topics, "state"):
        kept[record.key] = record.value
    parts = [k for k, v in kept.items() if k.startswith(b"ann\x1fwindows/") and v is not None]
    assert len(parts) <= 1 + 10


def test_the_clock_closes_windows_only_when_no_row_waits():
    topics = MemoryTopics()
    put(topics, *(row(t) for t in range(8)))
    now = [1000.0]
    stage = {"windows": windows(hop_s=None, idle_s=30.0), "batch": 3, "clock": lambda: now[0]}
    work(topics, **stage)
    assert said(topics, "predictions") == []
    # Long after, rows that wait come first, and then the window that has them all.
    put(topics, row(8.0))
    now[0] = 9000.0
    work(topics, **stage)
    assert said(topics, "predictions") == []
    now[0] = 9100.0
    turns = iter([False, False, True])
    worker(topics, **stage).run(lambda: next(turns))
    [prediction] = said(topics, "predictions")
    assert prediction.event_id == "ann@0"


def test_bad_rows_are_counted_and_end_nothing(caplog):
    topics = MemoryTopics()
    put(topics, *(row(t) for t in range(12)), row(0.5), row(11), row(12.0, v="loud"))
    raw(topics, value=b"no JSON")
    put(topics, row(30.0))
    with caplog.at_level("WARNING", logger="streamgp.worker"):
        work(topics, windows=windows(hop_s=None))
    assert [p.event_id for p in said(topics, "predictions")] == ["ann@0", "ann@10"]
    assert len(letters(topics)) == 1
    [line] = caplog.records
    assert line.fields["reasons"] == {"too late": 1, "repeated": 1, "no number in 'v'": 1}
    assert line.fields["of"] == 16


def test_a_window_is_answered_by_its_id_also_before_it_is_closed():
    topics = MemoryTopics()
    put(
        topics,
        Answer(answer_id="a1", event_id="ann@0", key="ann", y="walk", answered_at=20.0),
        *(row(t) for t in range(12)),
    )
    work(topics, windows=windows(hop_s=None))
    [line] = said(topics, "consensus")
    assert (line.event_id, line.y) == ("ann@0", "walk")


def test_labels_of_rows_are_learned_as_that_of_their_window():
    topics = MemoryTopics()
    taught = [row(t) for t in range(12)]
    taught[:3] = [
        Event(event_id=f"t{t}", key="ann", x={"v": 1.0}, occurred_at=t, y="walk")
        for t in (0.0, 1.0, 2.0)
    ]
    put(topics, *taught)
    work(topics, windows=windows(hop_s=None))
    [line] = said(topics, "consensus")
    assert (line.event_id, line.y, line.origin) == ("ann@0", "walk", "volunteered")


def test_one_learner_for_all_keys_cuts_the_windows_of_each():
    topics = MemoryTopics()
    put(topics, *(row(t, key) for t in range(12) for key in ("ann", "b/b")))
    work(topics, windows=windows(hop_s=None), keyed=False)
    put(topics, *(row(t, key) for t in range(12, 22) for key in ("ann", "b/b")))
    work(topics, windows=windows(hop_s=None), keyed=False)
    predictions = [m for m in said(topics, "predictions") if isinstance(m, Prediction)]
    ids = [p.event_id for p in predictions]
    assert ids == ["ann@0", "b/b@0", "ann@10", "b/b@10"]


def test_a_forgotten_key_takes_its_rows_along():
    topics = MemoryTopics()
    put(topics, *(row(t) for t in range(8)))
    work(topics, windows=windows(hop_s=None))
    raw(topics, topic="consensus", key=b"ann", value=None)
    work(topics, windows=windows(hop_s=None))
    kept = {}
    for record in everything(topics, "state"):
        kept[record.key] = record.value
    assert not [k for k, v in kept.items() if k.startswith(b"ann\x1f") and v is not None]
    put(topics, row(11))
    work(topics, windows=windows(hop_s=None))
    assert said(topics, "predictions") == []


@pytest.mark.parametrize("saves", [True, False])
@pytest.mark.parametrize(
    ("first", "second"),
    [(windows(), windows(features=["mean"])), (windows(), None), (None, windows())],
)
def test_other_windows_are_another_configuration(first, second, saves, tmp_path):
    state = StateDirectory(tmp_path) if saves else None
    topics = MemoryTopics()
    put(topics, *(row(t) for t in range(12)))
    work(topics, windows=first, state=state)
    put(topics, row(12))
    with pytest.raises(UnfitTopicsError, match=r"with another configuration \(windows .*use other"):
        work(topics, windows=second, state=state)


def test_the_group_is_idle_at_the_end():
    topics = MemoryTopics()
    put(topics, *ROWS[:50])
    work(topics, windows=windows())
    assert idle(topics)()
