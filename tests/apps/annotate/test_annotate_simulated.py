"""A simulated annotator on a deployment: a real worker asks, it answers, the worker learns."""

from __future__ import annotations

import json
import random
import time
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import click
import pytest
from click.testing import CliRunner, Result

from connectors.annotation.feed import Told, TopicFeed
from connectors.annotation.inbox import AnnotationInbox
from connectors.topics import BrokerError, LockedOutError, RefusedError
from connectors.wire.codec import decode
from connectors.wire.outbound import Outbound
from connectors.wire.signatures import signature
from streamgp.apps.annotate import simulated
from streamgp.apps.annotate.simulated import Simulation, Truths, progress_of, read_truths
from streamgp.apps.console import StatusLine
from streamgp.interactive import Answer, Event, SimulatedAnnotator
from streamgp.interactive.event_windows import EventWindows
from tests.helpers.deskwork import Broken, Clock, Town, challenge, label_request, program
from tests.helpers.topics import write


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread waits for what cannot come: everything happens in one thread."""
    monkeypatch.setattr("connectors.worker.worker.LONGEST_WAIT_S", 0.0)
    monkeypatch.setattr("streamgp.apps.annotate.simulated.LOOK_S", 0.0)


def simulation(town: Town, topics: Any = None, given: Any = None, **options: Any) -> Simulation:
    only_key, windows = options.pop("only_key", None), options.pop("windows", None)
    annotator = SimulatedAnnotator(**{"seed": 1, **options})
    return Simulation(
        town.topics if topics is None else topics,
        annotator,
        Truths(given),
        keyed=town.keyed,
        only_key=only_key,
        windows=windows,
        clock=town.clock,
    )


def settle(*simulations: Simulation) -> None:
    """Let simulated annotators answer everything they can now."""
    while sum(one.step(0.0) for one in simulations):
        pass


def go_on(town: Town, *simulations: Simulation) -> None:
    """Let worker and annotators go on until nothing happens any more."""
    while True:
        town.work()
        if not sum(one.step(0.0) for one in simulations):
            return
        settle(*simulations)


def feed(town: Town, n: int, *, start: int = 1) -> None:
    for i in range(start, start + n):
        town.clock.now += 1.0
        town.event(f"e{i}", float(i % 5), key=f"k{i % 3}", truth="den" if i % 5 < 3 else "hall")


def test_everything_asked_is_answered_and_learned() -> None:
    town = Town(n_partitions=3)
    one = simulation(town)
    feed(town, 40)
    go_on(town, one)
    assert town.said("dead-letters") == []
    assert len(town.said("consensus")) == 40
    assert {line.y for line in town.said("consensus")} == {"den", "hall"}
    assert all(line.y == ("den" if int(line.event_id[1:]) % 5 < 3 else "hall")
               for line in town.said("consensus"))  # fmt: skip
    assert (one.scheduled.n_answered, one.scheduled.n_declined) == (len(town.said("answers")), 0)
    assert one.scheduled.n_challenges > 0
    assert (len(one.scheduled), one.n_untold) == (0, 0)


def windows(label: Literal["y", "truth"], **options: Any) -> EventWindows:
    return EventWindows(label=label, length_s=10.0, features=["mean"], idle_s=60.0, **options)


def test_windows_over_raw_rows_are_answered_with_the_label_of_most_rows() -> None:
    town = Town(n_partitions=2, windows=windows("y", keep_changes=True))
    one = simulation(town, windows=windows("truth"))
    start = town.clock.now
    for i in range(30):
        at = start + i
        town.clock.now = at
        most = "den" if at // 10.0 % 2.0 else "hall"
        town.event(f"r{i}", float(i), key=f"k{i % 2}", truth=most if i % 5 else "odd")
    go_on(town, one)
    assert one.n_untold == 0
    n_closed = len(town.said("consensus"))
    for _ in range(2):  # no further row of their keys closes the last windows
        town.clock.now += 80.0
        town.event("r", 0.0, key="other")
        go_on(town, one)
    asked = [said.event_id for said in town.said("predictions") if said.key != "other"]
    assert n_closed < len(asked) == len(town.said("consensus"))
    assert one.n_untold == 0
    for line in town.said("consensus"):
        assert line.y == ("den" if float(line.event_id.split("@")[1]) // 10.0 % 2.0 else "hall")


def test_windows_that_the_clock_has_closed_are_answered_at_once() -> None:
    town = Town(windows=windows("y", keep_changes=True))
    one = simulation(town, windows=windows("truth"))
    for i in range(15):
        town.event(f"r{i}", float(i), truth="den")
        town.clock.now += 1.0
    town.work()
    town.clock.now += 80.0
    town.event("r", 0.0, key="other")
    go_on(town, one)  # rows are read only now that questions wait for them
    assert one.n_untold == 0
    assert [line.y for line in town.said("consensus")] == ["den"] * len(town.said("predictions"))
    assert len(town.said("predictions")) > 1


def test_windows_are_found_again_after_the_broker_was_away() -> None:
    town = Town(windows=windows("y", keep_changes=True))
    broken = Broken(town.topics)
    one = simulation(town, broken, windows=windows("truth"))
    for i in range(25):
        town.clock.now += 1.0
        town.event(f"r{i}", float(i), truth="den")
        if i == 15:
            go_on(town, one)
            broken.reads_fail = True
            one.step(0.0)
            broken.reads_fail = False
            town.clock.now += 2.0
    go_on(town, one)
    assert (len(town.said("consensus")), one.n_untold) == (len(town.said("predictions")), 0)


def test_wrong_answers_and_declines_come_at_the_given_rates_and_stay_the_same() -> None:
    runs = []
    for _ in range(2):
        town = Town()
        one = simulation(
            town, error_rate=0.3, decline_rate=0.2, classes=["den", "hall"], name="ann"
        )
        feed(town, 60)
        go_on(town, one)
        runs.append([(a.answer_id, a.y) for a in town.said("answers")])
        assert 0 < one.scheduled.n_declined < 30
        first = [a for a in town.said("answers") if (a.request_id or "").endswith("/label")]
        wrong = [a for a in first if a.y == ("hall" if int(a.event_id[1:]) % 5 < 3 else "den")]
        assert 5 < len(wrong) < 30
        assert {a.annotator for a in first} == {"ann"}
    assert sorted(runs[0]) == sorted(runs[1])


def test_answers_come_after_their_delay() -> None:
    town = Town()
    one = simulation(town, delay=5.0)
    feed(town, 1)
    town.work()
    settle(one)
    assert (town.said("answers"), len(one.scheduled)) == ([], 1)
    town.clock.now += 4.9
    settle(one)
    assert town.said("answers") == []
    town.clock.now += 0.1
    settle(one)
    assert [a.answered_at for a in town.said("answers")] == [town.clock.now]


def test_what_was_asked_long_ago_is_answered_with_the_truth_of_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("streamgp.apps.annotate.simulated.MAX_TRUTHS", 5)
    town = Town(contests=False)
    feed(town, 50)
    town.work()
    one = simulation(town)
    go_on(town, one)
    assert one.scheduled.n_answered == 50
    assert one.scheduled.n_declined == 0


def test_another_session_answers_what_is_left_and_nothing_twice() -> None:
    town = Town(contests=False)
    feed(town, 10)
    town.work()
    go_on(town, simulation(town))
    feed(town, 10, start=11)
    go_on(town, simulation(town))
    answers = [a.answer_id for a in town.said("answers")]
    assert len(answers) == len(set(answers)) == 20


def test_two_sessions_at_once_leave_no_dead_letters() -> None:
    town = Town(n_partitions=2)
    both = simulation(town), simulation(town)
    feed(town, 20)
    go_on(town, *both)
    assert town.said("dead-letters") == []
    assert len({(line.key, line.event_id) for line in town.said("consensus")}) == 20


def test_question_that_another_annotator_answers_meanwhile_is_not_answered() -> None:
    town = Town(contests=False)
    one = simulation(town, delay=5.0)
    feed(town, 2)
    town.work()
    settle(one)
    town.put(
        Answer(
            answer_id="a",
            request_id="e1/label",
            event_id="e1",
            key="k1",
            y="spa",
            annotator="joe",
            answered_at=town.clock.now,
        )
    )
    town.clock.now += 5.0
    settle(one)
    assert [a.event_id for a in town.said("answers")] == ["e1", "e2"]


def test_events_nobody_knows_the_label_of_are_declined() -> None:
    town = Town()
    town.event("e1")
    one = simulation(town)
    go_on(town, one)
    assert [(a.y, a.declined) for a in town.said("answers")] == [(None, True)]
    assert one.scheduled.n_declined == 1


def test_label_that_came_along_counts_as_true_where_there_is_no_other() -> None:
    town = Town()
    town.event("e1", 1.0, y="den")
    town.event("e2", 1.0, y="hall")
    town.event("e3", 1.0, y="hall", truth="den")
    one = simulation(town)
    go_on(town, one)
    answers = {a.request_id: a.y for a in town.said("answers")}
    assert answers == {"e2/challenge/1": "hall", "e3/challenge/1": "den"}


def test_question_waits_for_its_event_and_goes_when_it_ends() -> None:
    town = Town()
    outbox = Outbound("/streamgp/test", keyed=True)
    questions = (
        label_request("e1", expires_at=town.clock.now + 60.0), challenge("e2", annotator=None)
    )  # fmt: skip
    write(town.topics, *(outbox.message(question, None) for question in questions))
    one = simulation(town)
    settle(one)
    assert (one.n_untold, one.scheduled.n_answered) == (2, 0)
    assert progress_of(one).endswith("0 under way, 2 wait for their event")
    town.put(Event(event_id="e2", key="k", x={}, occurred_at=town.clock.now, truth="hall"))
    settle(one)
    assert (one.n_untold, one.scheduled.n_answered) == (1, 1)
    town.clock.now += 61.0
    settle(one)
    assert one.n_untold == 0


def test_challenge_of_an_answer_that_came_late_is_answered() -> None:
    town = Town(expires_after_s=10.0)
    one = simulation(town, delay=5.0)
    town.event("e1", truth="den", y="den")
    town.event("e2", truth="den")
    town.work()
    settle(one)
    town.clock.now += 11.0  # the annotator's machine was asleep
    town.work()
    late = Answer(
        answer_id="late", request_id="e2/label", event_id="e2", key="k", y="hall",
        answered_at=town.clock.now,
    )  # fmt: skip
    town.put(late)
    town.work()
    settle(one)
    assert (len(one.scheduled), one.n_untold) == (1, 0)
    town.clock.now += 5.0
    settle(one)
    assert [answer.y for answer in town.said("answers")] == ["hall", "den"]


def test_only_the_wanted_key_is_answered() -> None:
    town = Town(contests=False)
    feed(town, 9)
    one = simulation(town, only_key="k1")
    go_on(town, one)
    assert {a.key for a in town.said("answers")} == {"k1"}


def test_truths_that_will_not_be_asked_for_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("streamgp.apps.annotate.simulated.MAX_TRUTHS", 20)
    town = Town(contests=False)
    one = simulation(town)
    feed(town, 200)
    go_on(town, one)
    assert one.scheduled.n_answered == 200
    assert len(one._truths) <= 40
    assert len(one._truths._asked) == 0


def test_the_truth_of_an_event_whose_label_was_learned_is_kept_for_doubts_to_come() -> None:
    truths = Truths()
    truths.see(Event(event_id="e1", key="k", x={}, occurred_at=0.0, truth="hall"))
    truths.ask("k", "e1")
    truths.settle("k", "e1")
    truths.settle("k", "e1")
    assert truths.knows("k", "e1")
    assert truths.ask("k", "e1") == "hall"
    assert len(truths) == 1


def test_truths_come_from_a_file_without_reading_the_events() -> None:
    town = Town(contests=False)
    feed(town, 6)
    one = simulation(town, given={f"e{i}": "spa" for i in range(1, 5)})
    go_on(town, one)
    assert sorted((a.event_id, a.y) for a in town.said("answers")) == [
        *((f"e{i}", "spa") for i in range(1, 5)),
        ("e5", None),
        ("e6", None),
    ]


def test_broker_that_is_away_costs_nothing_but_time() -> None:
    town = Town(contests=False)
    broken = Broken(town.topics)
    one = simulation(town, topics=broken)
    feed(town, 3)
    town.work()
    broken.writes_fail = True
    while one.trouble is None:
        one.step(0.0)
    assert one.trouble == "the broker does not answer"
    assert town.said("answers") == []
    broken.reads_fail = True
    for _ in range(3):
        town.clock.now += 2.0
        assert not one.step(0.0)
    broken.reads_fail = broken.writes_fail = False
    town.clock.now += 2.0
    settle(one)
    assert one.trouble is None
    assert sorted(a.event_id for a in town.said("answers")) == ["e1", "e2", "e3"]
    assert one.scheduled.n_answered == 3
    one.close()


def test_broker_that_is_not_there_at_the_beginning_is_an_error() -> None:
    broken = Broken(Town().topics)
    broken.reads_fail = True
    with pytest.raises(BrokerError):
        simulation(Town(), topics=broken)


def test_key_that_is_forgotten_is_not_waited_for() -> None:
    from connectors.topics import Outgoing

    town = Town()
    write(town.topics, Outbound("/streamgp/test", keyed=True).message(label_request("e1"), None))
    one = simulation(town)
    settle(one)
    town.clock.now += 1.0
    write(town.topics, Outgoing(topic="consensus", key=b"k", value=None))
    settle(one)
    assert one.n_untold == 0


def test_any_order_of_reading_gives_the_same_answers() -> None:
    """Events of many partitions are read in any order; what was asked tells the answer."""
    given = []
    for n_partitions in (1, 4):
        town = Town(contests=False, n_partitions=n_partitions)
        rng = random.Random(5)
        one = simulation(town, error_rate=0.5, classes=["den", "hall", "spa"])
        for i in range(1, 31):
            feed(town, 1, start=i)
            if rng.random() < 0.3:
                go_on(town, one)
        go_on(town, one)
        given.append({(a.key, a.event_id): a.y for a in town.said("answers")})
    assert given[0] == given[1]
    assert len(given[0]) == 30


# --- truths in files


def test_truths_are_read_by_row_number_or_by_id(tmp_path: Path) -> None:
    log = tmp_path / "rooms.csv"
    log.write_text("wap1,room\n-64,kitchen\n-60,\n-62,hall\n")
    assert read_truths([log], label="room") == {"1": "kitchen", "3": "hall"}
    named = tmp_path / "named.jsonl"
    named.write_text('{"event_id": "e7", "y": 1}\n{"event_id": 8, "y": "b"}\n{"y": true}\n')
    truths = read_truths([named], label="y")
    assert truths == {"e7": 1, "8": "b", "3": True}


def test_integer_labels_of_a_text_file_are_integers_if_all_are(tmp_path: Path) -> None:
    log = tmp_path / "a.csv"
    log.write_text("x,y\n0,1\n0,2\n")
    assert read_truths([log], label="y") == {"1": 1, "2": 2}
    log.write_text("x,y\n0,1\n0,two\n")
    assert read_truths([log], label="y") == {"1": "1", "2": "two"}
    log.write_text("x;y\n1,5;21,5\n2,5;-3\n")
    assert read_truths([log], label="y", numbers=True) == {"1": 21.5, "2": -3.0}


def test_rows_of_several_files_are_told_apart_by_their_names(tmp_path: Path) -> None:
    logs = [tmp_path / "may.csv", tmp_path / "june.csv"]
    for log in logs:
        log.write_text(f"x,y\n0,{log.stem}\n")
    assert read_truths(logs, label="y") == {"may:1": "may", "june:1": "june"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x,z\n0,1\n", r"a.csv has no column 'y' \(label\); columns: x, z"),
        ("x,y\n", r"a.csv has no column 'y' \(label\); columns: none"),
        ("event_id,y\n1,a\n1,b\n", "a.csv has two labels for event '1'; give every event one"),
        ("", "a.csv is empty"),
        ('{"event_id": [1], "y": 1}\n', "a.csv: row 1: must be a key"),
    ],
)
def test_file_that_holds_no_truths_is_refused(tmp_path: Path, content: str, message: str) -> None:
    log = tmp_path / "a.csv"
    log.write_text(content)
    with pytest.raises(click.ClickException, match=message):
        read_truths([log], label="y")


# --- the command


@pytest.fixture
def town(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Town:
    town = Town(contests=False)
    feed(town, 4)
    return town.behind_an_address(monkeypatch, tmp_path, '[log]\nlabel = "room"\n')


def annotate(*options: str) -> Result:
    arguments = ["annotate", "w.toml", "--stop-when-idle", "0.05", *options]
    return CliRunner().invoke(program, arguments)


def test_command_answers_until_nothing_is_asked_for_a_while(town: Town) -> None:
    result = annotate("--simulate", "error_rate=0.5,seed=3", "--as", "robo")
    assert result.exit_code == 0, result.output
    assert result.stderr == ("4 answers, 0 of them to challenges, 0 declined; 0 under way\n")
    assert {a.annotator for a in town.said("answers")} == {"robo"}


def test_command_waits_for_topics_that_come_late(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = count()
    monkeypatch.setattr(
        simulated,
        "time",
        SimpleNamespace(time=time.time, sleep=time.sleep, monotonic=lambda: next(seconds)),
    )
    read_into = TopicFeed.read_into

    def late(feed: TopicFeed, inbox: AnnotationInbox, timeout_s: float) -> list[Told]:
        return [] if next(seconds) < 100 else read_into(feed, inbox, timeout_s)

    monkeypatch.setattr(TopicFeed, "read_into", late)
    assert annotate("--simulate", "", "--stop-when-idle", "9").exit_code == 0
    assert len(town.said("answers")) == 4


@pytest.mark.usefixtures("town")
def test_command_ends_if_the_topics_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count(1)

    def fails(_feed: TopicFeed, _inbox: AnnotationInbox, _timeout_s: float) -> list[Told]:
        if next(calls) % 3:
            return []
        raise BrokerError("nothing could be read")

    monkeypatch.setattr(simulated, "RETRY_S", 0.0)
    monkeypatch.setattr(TopicFeed, "read_into", fails)
    result = annotate("--simulate", "")
    assert result.exit_code == 75
    assert result.stderr.endswith("Error: nothing could be read\n")


def test_command_takes_the_truth_from_a_file(town: Town) -> None:
    rows = [{"event_id": f"e{i}", "room": "spa"} for i in range(1, 5)]
    Path("truth.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert annotate("--simulate", "", "--truth", "truth.jsonl").exit_code == 0
    assert {a.y for a in town.said("answers")} == {"spa"}


def test_several_annotators_share_the_questions(town: Town) -> None:
    assert annotate("--simulate", "name=ann", "--simulate", "name=bob").exit_code == 0
    assert {a.annotator for a in town.said("answers")} == {"ann", "bob"}


def test_answers_are_signed_with_keys_of_their_annotators(town: Town) -> None:
    with Path("w.toml").open("a") as config:
        config.write('[people]\nkeys_file = "keys.json"\n')
    assert annotate("--simulate", "name=ann", "--simulate", "name=bob").exit_code == 0
    file = json.loads(Path("keys.json").read_text())
    keys = {name: bytes.fromhex(key) for name, key in file.items()}
    assert set(keys) == {"ann", "bob"}
    for record in town.topics.reader(["answers"]).poll(0.0):
        answer = decode(record.value)
        assert dict(record.headers)["signature"] == signature(answer, keys[answer.annotator])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--simulate", "error_rate=2"], "--simulate: error_rate = 2 is not allowed"),
        (["--simulate", "name=a", "--simulate", "name=b", "--as", "c"], "--as names one annotator"),
        (["--simulate", "", "--truth", "none.csv"], "none.csv"),
    ],
)
def test_wrong_settings_are_said_in_a_line(town: Town, options: Any, message: str) -> None:
    result = annotate(*options)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert message in result.stderr
    assert town.said("answers") == []


def test_label_column_of_the_truth_has_to_be_named(town: Town) -> None:
    Path("w.toml").write_text('broker = "file://topics"\n')
    result = annotate("--simulate", "", "--truth", "t.csv")
    assert "name the column that holds the labels: --label COLUMN" in result.stderr
    assert town.said("answers") == []


def test_broker_that_is_away_is_reported_once_and_when_it_is_back(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Broken(town.topics)
    monkeypatch.setattr("streamgp.apps.deployment.deployment.open_topics", lambda _config: broken)
    monkeypatch.setattr("streamgp.apps.annotate.simulated.RETRY_S", 0.0)
    n_steps = 0

    def fail_for_a_while(one: Simulation, timeout_s: float = 0.0) -> bool:
        nonlocal n_steps
        n_steps += 1
        broken.writes_fail = n_steps < 4
        return step(one, timeout_s)

    step = Simulation.step
    monkeypatch.setattr(Simulation, "step", fail_for_a_while)
    result = annotate("--simulate", "")
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        "the broker does not answer; trying again",
        "the broker is back",
        "4 answers, 0 of them to challenges, 0 declined; 0 under way",
    ]


def test_broker_that_is_away_at_the_start_is_reported_with_its_status(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Broken(town.topics)
    broken.reads_fail = True
    monkeypatch.setattr("streamgp.apps.deployment.deployment.open_topics", lambda _config: broken)
    result = annotate("--simulate", "")
    assert (result.exit_code, result.stderr) == (75, "Error: the broker does not answer\n")


@pytest.mark.parametrize(
    ("error", "options", "status", "said"),
    [
        (
            BrokerError,
            ("--simulate", "delay=100"),
            75,
            ["the broker does not answer; trying again"],
        ),
        (LockedOutError, ("--simulate", ""), 75, []),
        (RefusedError, ("--simulate", ""), 2, []),
    ],
)
def test_broker_that_stays_away_or_refuses_is_not_waited_for_for_ever(
    error: type[BrokerError],
    options: tuple[str, ...],
    status: int,
    said: list[str],
    town: Town,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither a question nor an answer under way is a reason to stay."""
    broken = Broken(town.topics)
    broken.error = error
    monkeypatch.setattr("streamgp.apps.deployment.deployment.open_topics", lambda _config: broken)
    monkeypatch.setattr("streamgp.apps.annotate.simulated.RETRY_S", 0.0)
    step = Simulation.step

    def fail_from_then_on(one: Simulation, timeout_s: float = 0.0) -> bool:
        is_moved = step(one, timeout_s)
        broken.reads_fail = True
        return is_moved

    monkeypatch.setattr(Simulation, "step", fail_from_then_on)
    result = annotate(*options)
    assert result.exit_code == status
    *before, progress, last = result.stderr.splitlines()
    assert before == said
    assert progress.endswith(" under way")
    assert last == "Error: the broker does not answer"


# --- the line that tells how it goes


class Screen:
    def __init__(self, *, is_terminal: bool) -> None:
        self.is_terminal = is_terminal
        self.text = ""

    def isatty(self) -> bool:
        return self.is_terminal

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass


def test_line_is_rewritten_on_a_terminal_and_repeated_in_a_log() -> None:
    for is_terminal, text in [
        (True, "\r\x1b[K0\r\x1b[K1\r\x1b[K10\r\x1b[K11\r\x1b[Kover\n"),
        (False, "10\nover\n"),
    ]:
        clock, screen = Clock(0.0), Screen(is_terminal=is_terminal)
        line = StatusLine(screen, clock=clock)  # type: ignore[arg-type]
        for now in (0.0, 0.1, 1.0, 10.0, 11.0):
            clock.now = now
            line.show(lambda now=now: f"{now:.0f}")  # type: ignore[misc]
        line.say("over")
        assert screen.text == text


def test_what_stands_in_a_log_already_is_not_said_once_more() -> None:
    clock, screen = Clock(0.0), Screen(is_terminal=False)
    line = StatusLine(screen, clock=clock)  # type: ignore[arg-type]
    for now, said in [(10.0, "the broker is gone"), (20.0, None), (30.0, "2 answers")]:
        clock.now = now
        line.show(lambda: "2 answers")
        if said is not None:
            line.say(said)
    assert screen.text == "2 answers\nthe broker is gone\n2 answers\n"
