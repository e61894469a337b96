"""A worker over topics in memory, run by hand: its inputs, and what it has written."""

from connectors.memory import MemoryTopics
from connectors.topics import BrokerError, Outgoing
from connectors.wire.codec import encode
from connectors.worker.settings import LoopSettings, WorkerSettings
from connectors.worker.worker import Worker
from streamgp import isgp
from streamgp.interactive.messages import Answer, Event
from tests.helpers.topics import everything

GROUP = "streamgp"


def event(i, key="ann", y=None, at=None, x=None):
    x = {"light": 0.1 * i, "noise": float(i % 3)} if x is None else x
    return Event(event_id=f"e{i}", key=key, x=x, y=y, occurred_at=float(i if at is None else at))


def answer(i, y="home", key="ann", at=None):
    return Answer(
        answer_id=f"a{i}",
        event_id=f"e{i}",
        key=key,
        y=y,
        answered_at=float(i if at is None else at),
    )


def put(topics, *messages):
    writer = topics.writer("test")
    for message in messages:
        topic = "events" if isinstance(message, Event) else "answers"
        writer.send(Outgoing(topic=topic, key=message.key.encode(), value=encode(message)))
    writer.close()


def raw(topics, topic="events", key=b"ann", value=b"hello", headers=()):
    writer = topics.writer("test")
    writer.send(Outgoing(topic=topic, key=key, value=value, headers=headers))
    writer.close()


def idle(topics):
    return lambda: not any(topics.lags(GROUP).values())


def worker(topics, *, model=None, state=None, clock=lambda: 0.0, instance="w", metrics=None, **kw):
    of_loops = {"keyed", "expires_after_s", "answer_horizon_s", "max_keys", "total_budget"}
    of_loops |= {"windows", "people"}
    loops = LoopSettings(
        model=isgp(seed=1) if model is None else model,
        **{name: value for name, value in kw.items() if name in of_loops},
    )
    rest = {name: value for name, value in kw.items() if name not in of_loops}
    return Worker(
        topics,
        loops,
        WorkerSettings(group=GROUP, instance=instance, **rest),
        state=state,
        clock=clock,
        metrics=metrics,
    )


def work(topics, **kw):
    worker(topics, **kw).run(idle(topics))


def contents(topics):
    """Return everything committed, by topic and partition, without the times of writing."""
    return [
        (r.topic, r.partition, r.key, r.value)
        for name in ("predictions", "requests", "consensus", "dead-letters")
        for r in everything(topics, name)
    ]


class Failing(MemoryTopics):
    """Topics whose clients fail in their n-th commit, before or after it has taken place."""

    def __init__(self, fails, **kw):
        super().__init__(**kw)
        self.fails = list(fails)

    def client(self, **kw):
        link = super().client(**kw)
        commit = link.commit

        def failing(outgoing):
            fails = self.fails.pop(0) if self.fails else None
            if fails == "before":
                raise BrokerError("broker is gone")
            ends = commit(outgoing)
            if fails == "after":
                raise BrokerError("broker is gone")
            return ends

        link.commit = failing
        return link


def lose_positions(topics):
    """Let the broker forget the positions of the group, so that everything is delivered again."""
    del topics._groups[GROUP]


def letters(topics):
    """Return the errors of all dead letters."""
    return [dict(r.headers)["dlq.error"].decode() for r in everything(topics, "dead-letters")]


def newest(topics, topic):
    """Return the last value of each key of a topic."""
    return {record.key: record.value for record in everything(topics, topic)}
