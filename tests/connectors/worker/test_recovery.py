"""A worker's memory after a commit equals what another worker restores from the topics."""

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from connectors.memory import MemoryTopics
from connectors.wire.codec import decode, encode
from connectors.wire.state_records import History, consensus_key
from connectors.worker.early_answers import PATIENCE_S
from connectors.worker.partition import Partition
from connectors.worker.settings import LoopSettings, WorkerSettings
from connectors.worker.worker import Session
from streamgp import isgp
from streamgp.interactive.messages import Answer
from tests.helpers.laws import examples
from tests.helpers.topics import everything
from tests.helpers.workbench import GROUP, answer, event, idle, put, raw

HORIZON_S = 3 * PATIENCE_S
KINDS = ["event", "answer", "correction", "taken back", "forgotten", "written over", "note"]

steps = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        st.integers(0, 4),
        st.sampled_from("ab"),
        st.sampled_from(["home", "work", None]),
        st.sampled_from([0.0, 1.0, PATIENCE_S, HORIZON_S]),
    ),
    max_size=25,
)


def line_in_force(topics, event_id, key):
    """Return the record key of the line that gives an example its label, or of the first one."""
    lines = [decode(r.value) for r in everything(topics, "consensus") if r.headers and r.value]
    mine = [line for line in lines if (line.event_id, line.key) == (event_id, key)]
    last = max(mine, key=lambda line: line.sequence, default=None)
    return consensus_key(key, event_id, 0 if last is None else last.revision)


def take(topics, now, kind, i, key, y):
    line = line_in_force(topics, f"e{i}", key)
    if kind == "event":
        put(topics, event(i, key=key, y=y, at=now))
    elif kind == "answer":
        put(topics, answer(i, y or "shop", key=key, at=now))
    elif kind == "correction":
        fields = {"event_id": f"e{i}", "key": key, "supersedes": f"a{i}", "answered_at": now}
        put(topics, Answer(answer_id=f"c{i}", y=y, declined=y is None, **fields))
    elif kind == "taken back":
        raw(topics, "consensus", key=line, value=None)
    elif kind == "forgotten":
        raw(topics, "consensus", key=key.encode(), value=None)
    elif kind == "written over":
        raw(topics, "consensus", key=line, value=encode(event(i)))
    else:
        raw(topics, "consensus", key=key.encode(), value=b"note to self")


def restored(topics, number, loops):
    """Return what a worker would begin with."""
    partition = Partition(number, loops, None, now=0.0, note=print, group=GROUP)
    history = History()
    for record in everything(topics, "state", "consensus"):
        if record.partition == number:
            history.take(record)
    partition.bring_up(history)
    return partition


def held(partition):
    """Return everything that a partition holds."""
    return {
        "loops": {
            key: partition.loops.loops[key].snapshot() for key in sorted(partition.loops.loops)
        },
        "early": partition.early.state(),
        "forgotten": partition.n_forgotten,
        "heeded": (partition.n_heeded, partition.heeded_at),
        "failed": dict(partition.n_failed),
        "signed": partition.is_signed,
    }


@examples(25)
@given(steps, st.integers(1, 5), st.integers(1, 4))
def test_memory_after_a_commit_is_what_the_topics_make(steps, batch, chunk):
    now = [0.0]
    topics = MemoryTopics(clock=lambda: now[0])
    loops = LoopSettings(model=isgp(seed=1), answer_horizon_s=HORIZON_S)
    settings = WorkerSettings(group=GROUP, instance="w", batch=batch)
    session = Session(topics, loops, settings, state=None, clock=lambda: now[0], recent=deque())
    session._wait = lambda: 0.0
    session.turn()
    for n, (*step, seconds) in enumerate(steps):
        now[0] += seconds
        take(topics, now[0], *step)
        if n % chunk == 0:
            while True:
                was_idle = idle(topics)()
                session.turn()
                live = session._partitions[0]
                # What is written over a line is refused at a start until a worker has read it.
                if not topics.lags(GROUP)["consensus", 0]:
                    assert held(restored(topics, 0, loops)) == held(live)
                if was_idle:
                    break
