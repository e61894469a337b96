"""The demo's stream asks a newcomer a few questions at a time, and doubts a wrong answer."""

from __future__ import annotations

from contextlib import closing

from connectors.annotation.feed import TopicFeed
from connectors.annotation.inbox import AnnotationInbox
from connectors.wire.outbound import Outbound
from streamgp.apps.replay.demo_data import ACTIVITIES
from streamgp.apps.replay.demo_stream import MOST_OPEN, DemoStream, shuffled
from streamgp.interactive.messages import Challenge
from tests.helpers.topics import wait_until

WRONG_AT = 7


def test_a_wrong_answer_is_challenged_within_twenty_questions() -> None:
    rooms = {str(n): room for n, (_, room, _) in enumerate(shuffled(), 1)}
    stream = DemoStream(pace_s=0.0, gap_s=0.0)
    stream.start()
    inbox, outbound = AnnotationInbox(), Outbound("/streamgp/test", keyed=False)
    n_asked, wrong, challenged = 0, "", 0
    with closing(stream.topics.writer("test")) as writer:
        feed = TopicFeed(stream.topics, keyed=False)
        while n_asked < 20 and not challenged:
            wait_until(
                lambda: feed.read_into(inbox, 0.05) is not None and inbox.n_open(0.0, "ann") > 0
            )
            assert inbox.n_open(0.0, "ann") <= MOST_OPEN
            question = inbox.next(0.0, "ann")
            assert question is not None
            event_id = question.request.event_id
            room = rooms[event_id]
            assert stream.truth(event_id) == room
            if isinstance(question.request, Challenge):
                challenged += event_id == wrong
            else:
                n_asked += 1
                if n_asked == WRONG_AT:
                    wrong, room = event_id, "kitchen" if room != "kitchen" else "hall"
            answer = inbox.answer(question, room, 1.0 + n_asked, annotator="ann")
            assert answer is not None
            writer.send(outbound.message(answer, question.partition))
            writer.flush()
        feed.close()
    assert stream.trouble is None
    assert challenged
    assert stream.accuracy()[-1][1] > 0.5
    assert stream.truth("2000") is None
    stream.close()


def test_raw_rows_of_a_walk_are_asked_about_with_their_signal() -> None:
    stream = DemoStream(raw=True, pace_s=0.0, gap_s=0.0)
    stream.start()
    inbox = AnnotationInbox()
    feed = TopicFeed(stream.topics, keyed=False)
    wait_until(lambda: feed.read_into(inbox, 0.05) is not None and inbox.n_open(0.0, "ann") > 0)
    question = inbox.next(0.0, "ann")
    assert question is not None
    request = question.request
    assert stream.truth(request.event_id) in ACTIVITIES
    assert request.excerpt is not None
    assert {len(values) for values in request.excerpt.values()} == {200}
    feed.close()
    stream.close()
    assert stream.trouble is None


def test_a_stream_that_was_never_started_can_be_closed() -> None:
    DemoStream().close()
