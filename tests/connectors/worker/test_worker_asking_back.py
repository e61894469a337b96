"""A worker whose learners ask about earlier events."""

from contextlib import suppress

import pytest

from connectors.embedded.topics import EmbeddedTopics
from connectors.memory import MemoryTopics
from connectors.topics import BrokerError
from streamgp import GPClassifier, SkepticalClassifier
from streamgp.interactive import Answer, Expired, LabelledExample, LabelRequest, Rejected
from streamgp.query import AtMostPer, NeverAsk, RecentEventsAsk
from tests.helpers.topics import said
from tests.helpers.workbench import Failing, answer, contents, event, idle, put, work, worker

HORIZON = {"expires_after_s": 1000.0, "answer_horizon_s": 5000.0}


def model(**options):
    rule = {"size": 20, "every": 3, "budget": AtMostPer(40, 1000.0)} | options
    return SkepticalClassifier(
        GPClassifier(), NeverAsk(), warm_up=5, reservoir=RecentEventsAsk(**rule), seed=1
    )


def inputs(n=40, keys=("ann", "bob")):
    """Events of two keys, and answers to whatever may have been asked about them."""
    for i in range(n):
        yield event(i, key=keys[i % 2])
        if i >= 12:
            about = i - 12
            yield Answer(
                answer_id=f"a{about}",
                request_id=f"e{about}/label",
                event_id=f"e{about}",
                key=keys[about % 2],
                y="home" if about % 4 < 2 else "work",
                answered_at=float(i),
            )


def requests(topics):
    return [m for m in said(topics, "requests") if isinstance(m, LabelRequest)]


@pytest.fixture(params=[pytest.param("memory", marks=pytest.mark.nightly), "files"])
def make(request, tmp_path):
    """Return topics, new ones each time."""
    count = iter(range(9))

    def made():
        if request.param == "memory":
            return MemoryTopics(1)
        topics = EmbeddedTopics(tmp_path / str(next(count)), clock=lambda: 1000.0)
        topics.create()
        return topics

    return made


def test_workers_that_end_after_every_input_ask_as_one_that_never_does(make):
    whole, cut = make(), make()
    current = None
    for message in inputs():
        put(whole, message)
        if current is None:
            current = worker(whole, model=model(), **HORIZON)
        current.run(idle(whole))
        put(cut, message)
        work(cut, model=model(), **HORIZON)
    assert contents(cut) == contents(whole)
    asked = requests(whole)
    assert len(asked) > 8
    assert len({request.request_id for request in asked}) == len(asked)
    assert sum(request.occurred_at is not None for request in asked) > 2
    learned = {m.event_id for m in said(whole, "consensus") if isinstance(m, LabelledExample)}
    assert learned & {r.event_id for r in asked if r.occurred_at is not None}


def test_a_failed_commit_asks_no_annotator_twice():
    calm, stormy = MemoryTopics(1), Failing(["before", None, "after", None, "before"] * 40)
    for message in inputs():
        for topics in (calm, stormy):
            put(topics, message)
            while any(topics.lags("streamgp").values()):
                with suppress(BrokerError):
                    work(topics, model=model(), **HORIZON)
    assert contents(stormy) == contents(calm)
    asked = [request.request_id for request in requests(stormy)]
    assert len(set(asked)) == len(asked) > 8


def test_a_question_about_an_earlier_event_ends_with_the_horizon_of_that(make):
    topics = make()
    now = [0.0]
    for i in range(3):
        put(topics, event(i, at=10.0 * i))
    spans = {"expires_after_s": 70.0, "answer_horizon_s": 90.0}
    work(topics, model=model(), clock=lambda: now[0], **spans)
    [request] = requests(topics)
    assert request.expires_at == 90.0
    at = request.requested_at if request.occurred_at is None else request.occurred_at
    now[0] = 91.0
    work(topics, model=model(), clock=lambda: now[0], **spans)
    put(topics, answer(int(request.event_id[1:]), at=at + 91.0))
    work(topics, model=model(), clock=lambda: now[0], **spans)
    assert [type(m) for m in said(topics, "requests")] == [LabelRequest, Expired]
    assert not [m for m in said(topics, "consensus") if not isinstance(m, Rejected)]
