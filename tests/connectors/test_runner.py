import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from connectors.broker import MemoryBroker, Received
from connectors.runner import RunResult, run
from streamgp import GPClassifier, KeyedLoops, SkepticalClassifier
from streamgp.interactive.messages import Answer, Cancel, Event, Expired, Rejected
from streamgp.query import NeverAsk, NeverChallenge


class Deadlines:
    """A loop that says what it was told, and ends every event five seconds after it occurred."""

    def __init__(self, lasting=5.0):
        self.lasting = lasting
        self.told = []
        self.open = {}

    def on_event(self, event, now, **_):
        self.told.append((event.event_id, now))
        self.open[event.event_id] = event.occurred_at + self.lasting
        return [said(event.event_id, now)]

    def on_answer(self, answer, now, **_):
        self.told.append((answer.answer_id, now))
        self.open.pop(answer.event_id, None)
        return [said(answer.answer_id, now)]

    def on_cancel(self, request_id, now, *, key=None, why=""):
        self.told.append((request_id, now, key, why))
        return []

    def on_time(self, now):
        over = [e for e, at in self.open.items() if at < now]
        self.told += [(f"{e} over", now) for e in over]
        for event_id in over:
            del self.open[event_id]
        return [said(e, now) for e in over]

    def next_deadline(self):
        return min(self.open.values(), default=None)


def said(name, now):
    return Expired(request_id=f"{name}/label", event_id=name, at=now)


def event(i, at=None):
    return Event(event_id=f"e{i}", x={}, occurred_at=float(i if at is None else at))


class Batches:
    """A source of given batches that notes what happens to it."""

    def __init__(self, *batches, diary=None):
        self.batches = list(batches)
        self.diary = [] if diary is None else diary
        self.waits = []

    def poll(self, timeout_s=0.0):
        self.waits.append(timeout_s)
        self.diary.append("poll")
        return [
            m if isinstance(m, Received) else Received(message=m, at=m.occurred_at)
            for m in self.batches.pop(0)
        ]

    @property
    def exhausted(self):
        return not self.batches

    def commit(self):
        self.diary.append("commit")

    def close(self):
        pass


class Diary:
    """A sink that notes what happens to it."""

    def __init__(self):
        self.diary = []
        self.causes = []

    def send(self, message, *, cause=None):
        self.diary.append(getattr(message, "event_id", None) or message.subject)
        self.causes.append(cause)

    def flush(self):
        self.diary.append("flush")

    def close(self):
        pass


def play(*batches, loop=None, **options):
    sink = Diary()
    source = Batches(*batches, diary=sink.diary)
    loop = loop if loop is not None else Deadlines()
    return run(loop, source, sink, **options), loop, source, sink


def test_every_batch_is_sent_then_flushed_then_committed():
    _, _, _, sink = play([event(1), event(2)], [event(3)])
    assert sink.diary == [
        *["poll", "e1", "e2", "flush", "commit"],
        *["poll", "e3", "flush", "commit"],
    ]


def test_a_poll_without_records_flushes_and_commits_nothing():
    _, _, _, sink = play([], [event(1)])
    assert sink.diary == ["poll", "poll", "e1", "flush", "commit"]


def test_every_input_goes_to_its_method_at_its_own_time():
    answer = Answer(answer_id="a1", event_id="e1", y=1, answered_at=2.0)
    cancel = Cancel(request_id="e1/label", key="ann", why="gone", at=3.0)
    result, loop, _, _ = play(
        [event(1), Received(message=answer, at=2.0), Received(message=cancel, at=3.0)]
    )
    assert loop.told == [("e1", 1.0), ("a1", 2.0), ("e1/label", 3.0, "ann", "gone")]
    assert (result.n_events, result.n_answers, result.n_cancels) == (1, 1, 1)
    assert result.last_at == 3.0


def test_rejected_records_go_straight_to_the_sink_and_move_no_time():
    rejected = Rejected(subject="row 2", fault="malformed", reason="why", at=99.0)
    received = Received(message=rejected, original=b"bytes", at=99.0)
    result, loop, _, sink = play([event(1), received])
    assert loop.told == [("e1", 1.0)]
    assert sink.diary[1:3] == ["e1", "row 2"]
    assert sink.causes[1] is received
    assert (result.n_events, result.n_rejected, result.n_sent) == (1, 1, 2)
    assert result.last_at == 1.0


def test_messages_carry_their_cause_and_timers_have_none():
    _, _, _, sink = play([event(1), event(20)])
    assert [c and c.message.event_id for c in sink.causes] == ["e1", None, "e20"]


def test_log_time_ends_what_was_due_before_a_record_just_after_it_was_due():
    _, loop, _, _ = play([event(1), event(3), event(20)])
    assert loop.told == [
        *[("e1", 1.0), ("e3", 3.0)],
        *[("e1 over", 6.001), ("e3 over", 8.001)],
        ("e20", 20.0),
    ]


def test_what_is_due_at_the_time_of_a_record_is_still_in_time():
    answer = Received(message=Answer(answer_id="a", event_id="e1", y=1, answered_at=6.0), at=6.0)
    _, loop, _, _ = play([event(1), answer])
    assert loop.told == [("e1", 1.0), ("a", 6.0)]


def test_timers_never_run_ahead_of_the_record():
    _, loop, _, _ = play([event(1), event(2, at=6.0005)])
    assert loop.told[1] == ("e1 over", 6.0005)


def test_after_the_end_of_a_log_nothing_more_is_due():
    _, loop, _, _ = play([event(1), event(2)])
    assert set(loop.open) == {"e1", "e2"}


def test_a_log_out_of_order_ends_what_was_due_by_its_last_time():
    _, loop, _, sink = play([event(20), event(1)])
    assert loop.told == [("e20", 20.0), ("e1", 1.0), ("e1 over", 6.001)]
    assert sink.diary[-3:] == ["e1", "flush", "commit"]


def test_times_too_large_for_milliseconds_still_pass():
    _, loop, _, _ = play([event(1, at=1.7e18), event(2, at=1.8e18)])
    assert loop.told[1][0] == "e1 over"
    assert 1.7e18 < loop.told[1][1] < 1.8e18


def test_a_clock_ends_what_is_due_also_without_input():
    now = iter([100.0, 100.5, 100.5, 200.0])
    _, loop, source, sink = play([event(1, at=99.0)], [], [], clock=lambda: next(now))
    assert loop.told == [("e1", 99.0), ("e1 over", pytest.approx(104.001))]
    assert source.waits == [1.0, 1.0, 1.0]
    assert sink.diary[-3:] == ["poll", "flush", "commit"]


def test_a_poll_waits_no_longer_than_the_next_deadline():
    now = iter([100.0, 103.5, 103.75])
    _, _, source, _ = play([event(1, at=99.0)], [], clock=lambda: next(now))
    assert source.waits == [1.0, pytest.approx(0.251)]


def test_time_inside_the_loop_is_measured():
    class Slow(Deadlines):
        def on_event(self, event, now, **_):
            end = time.perf_counter() + 0.002
            while time.perf_counter() < end:
                pass
            return super().on_event(event, now)

    result, _, _, _ = play([event(1), event(2)], loop=Slow())
    assert result.loop_s >= 0.004
    assert result.microseconds_per_event == pytest.approx(1e6 * result.loop_s / 2)


def test_a_run_without_events_has_no_time_per_event():
    result, _, _, _ = play([])
    assert result == RunResult(
        n_events=0,
        n_answers=0,
        n_cancels=0,
        n_rejected=0,
        n_sent=0,
        loop_s=0.0,
        last_at=None,
        interrupted=False,
    )
    assert result.microseconds_per_event is None


def test_observers_see_every_record_before_the_loop_does():
    seen = []
    loop = Deadlines()
    play(
        [event(1), event(2)],
        loop=loop,
        on_input=lambda r: seen.append((r.message.event_id, len(loop.told))),
    )
    assert seen == [("e1", 0), ("e2", 1)]


def test_a_run_stops_when_told():
    stops = iter([False, True])
    result, _, source, _ = play([event(1)], [event(2)], should_stop=lambda: next(stops))
    assert result.n_events == 1
    assert not result.interrupted
    assert not source.exhausted


def test_outputs_are_no_inputs():
    with pytest.raises(
        TypeError, match=r"^source must deliver Event, .* or Rejected, got Expired$"
    ):
        play([Received(message=said("e1", 0.0), at=0.0)])


def test_an_event_that_is_not_wrapped_is_refused_in_words():
    class Bare(Batches):
        def poll(self, timeout_s=0.0):  # noqa: ARG002
            return self.batches.pop(0)

    with pytest.raises(TypeError, match=r"^source must deliver Received\(.*\), got Event$"):
        run(Deadlines(), Bare([event(1)]), Diary())


@pytest.mark.parametrize("polled", [None, Received(message=event(1), at=1.0)])
def test_a_poll_that_returns_no_list_is_refused_in_words(polled):
    class Single(Batches):
        def poll(self, timeout_s=0.0):  # noqa: ARG002
            return polled

    with pytest.raises(TypeError, match=r"^source.poll must return a list of Received, .*, got"):
        run(Deadlines(), Single([event(1)]), Diary())


def test_an_error_of_the_loop_passes_through_without_commit():
    class Broken(Deadlines):
        def on_event(self, event, now, **_):
            raise ZeroDivisionError(event.event_id, now)

    sink = Diary()
    with pytest.raises(ZeroDivisionError):
        run(Broken(), Batches([event(1)], diary=sink.diary), sink)
    assert sink.diary == ["poll"]


def test_ctrl_c_finishes_the_records_at_hand():
    def press(received):
        if received.message.event_id == "e2":
            os.kill(os.getpid(), signal.SIGINT)

    result, _, source, sink = play([event(1), event(2), event(3)], [event(4)], on_input=press)
    assert result.interrupted
    assert result.n_events == 3
    assert sink.diary == ["poll", "e1", "e2", "e3", "flush", "commit"]
    assert not source.exhausted
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_ends_at_once_without_commit():
    def press(received):
        if received.message.event_id != "e1":
            os.kill(os.getpid(), signal.SIGINT)

    result, _, _, sink = play([event(1), event(2), event(3), event(4)], on_input=press)
    assert result.interrupted
    assert result.n_events == 2
    assert sink.diary == ["poll", "e1", "e2", "flush"]


def test_an_interrupt_between_records_leaves_everything_sent_flushed():
    def press(received):
        if received.message.event_id == "e2":
            raise KeyboardInterrupt

    result, _, _, sink = play([event(1), event(2)], on_input=press)
    assert result.interrupted
    assert sink.diary == ["poll", "e1", "flush"]


def test_runs_in_other_threads_leave_signals_alone():
    results = []
    thread = threading.Thread(target=lambda: results.append(play([event(1)])[0]))
    thread.start()
    thread.join()
    assert results[0].n_events == 1


def test_a_program_with_its_own_handler_keeps_it():
    def own(_signal, _frame):
        pass

    before = signal.signal(signal.SIGINT, own)
    try:
        play([event(1)], on_input=lambda _: os.kill(os.getpid(), signal.SIGINT))
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_worker_on_a_memory_broker_works_off_what_is_there_when_it_closes():
    broker = MemoryBroker()
    producer = broker.publisher()
    for i in range(5):
        producer.send(event(i))
    producer.flush()
    broker.publish("events", b"junk")
    broker.close()
    result = run(Deadlines(lasting=1000.0), broker.source(), broker.sink())
    assert (result.n_events, result.n_rejected, result.n_sent) == (5, 1, 6)
    assert len(broker.topic("requests")) == 5
    assert broker.topic("dead-letters") == [b"junk"]
    assert broker.source().poll() == []


def test_an_interrupted_process_ends_cleanly_with_what_was_done(tmp_path):
    code = f"""
import sys
sys.path[:0] = {sys.path!r}
from tests.connectors.test_runner import *
from connectors.jsonl import MessageFiles
class Endless(Batches):
    exhausted = False
    def poll(self, timeout_s=0.0):
        print("polled", flush=True)
        time.sleep(0.01)
        self.n = getattr(self, "n", 0) + 1
        return [Received(message=event(self.n), at=float(self.n))]
files = MessageFiles({str(tmp_path)!r})
result = run(Deadlines(1e9), Endless(), files)
print(result.n_events, result.interrupted)
"""
    path = os.path.dirname(__file__)
    worker = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=path
    )
    with worker:
        for _ in range(3):
            assert worker.stdout.readline() == "polled\n"
        worker.send_signal(signal.SIGINT)
        lines = worker.stdout.read().splitlines()
    assert worker.returncode == 0
    n_events, interrupted = lines[-1].split()
    assert interrupted == "True"
    assert len((tmp_path / "requests.jsonl").read_text().splitlines()) == int(n_events)


def test_evicted_loops_miss_no_time_and_say_the_same():
    """Their events are forgotten as if they had been in memory: answers come too late alike."""

    x = {"f": 1.0}
    rows = [
        Event(event_id="e1", key="ann", x=x, occurred_at=0.0, y="p"),
        Event(event_id="e1", key="bob", x=x, occurred_at=1.0, y="p"),
        Answer(answer_id="a", event_id="e1", key="ann", y="q", answered_at=12.5),
    ]
    said = []
    for max_keys in (None, 1):
        # Without open requests, nothing announces that the time of an event is over.
        model = SkepticalClassifier(GPClassifier(), NeverAsk(), NeverChallenge(), seed=1)
        loop = KeyedLoops(model, answer_horizon_s=12.0, max_keys=max_keys)
        sink = Everything()
        run(loop, Batches(*([record(row)] for row in rows)), sink)
        said.append(sink.sent)
    assert said[0] == said[1]
    assert said[0][-1].fault == "unknown"


class Everything(Diary):
    """A sink that keeps the messages."""

    def __init__(self):
        super().__init__()
        self.sent = []

    def send(self, message, *, cause=None):  # noqa: ARG002
        self.sent.append(message)


def record(row):
    at = row.occurred_at if isinstance(row, Event) else row.answered_at
    return Received(message=row, at=at)
