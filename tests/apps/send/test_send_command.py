"""`streamgp send`: rows of logs become events, each once, at their pace."""

from __future__ import annotations

import gzip
import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from connectors.memory import MemoryTopics
from connectors.topics import BrokerError, Outgoing, RefusedError
from connectors.wire.codec import decode
from streamgp.apps.send import MOST_IN_FLIGHT, EventProducer, Pace, RowRead
from streamgp.interactive import Event, Rejected
from tests.helpers.deskwork import Broken, Clock, program
from tests.helpers.topics import everything

ROWS = """\
at,who,wap1,wap2,note,room
100,ann,-64,-56,x,kitchen
160,bob,-60,,y,hall
220,ann,-70,-50,z,
280,ann,-71,-51,z,kitchen
"""


class Folder:
    """A directory with a configuration and a log, and the topics behind it."""

    def __init__(self) -> None:
        self.topics = MemoryTopics(2)
        self.broken = Broken(self.topics)
        Path("w.toml").write_text(
            'broker = "file://topics"\n[log]\nlabel = "room"\nkey = "who"\nignore = ["note"]\n'
        )
        Path("rooms.csv").write_text(ROWS)

    def records(self) -> list[Any]:
        return everything(self.topics, "events")

    def events(self) -> list[Any]:
        found = [decode(record.value) for record in self.records() if record.value is not None]
        return sorted(found, key=lambda event: event.occurred_at)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Folder:
    monkeypatch.chdir(tmp_path)
    folder = Folder()
    monkeypatch.setattr(
        "streamgp.apps.deployment.deployment.open_topics", lambda _config: folder.broken
    )
    return folder


def send(*options: str, logs: tuple[str, ...] = ("rooms.csv",)) -> Result:
    return CliRunner().invoke(program, ["send", "w.toml", *logs, *options])


def done(*options: str, logs: tuple[str, ...] = ("rooms.csv",)) -> str:
    """Run what must succeed; return what it says, without the seconds."""
    result = send(*options, logs=logs)
    assert (result.exit_code, result.stdout) == (0, ""), result.output
    return re.sub(r"in \d+\.\d s", "in some s", result.stderr)


def wrong(*options: str, logs: tuple[str, ...] = ("rooms.csv",), status: int = 2) -> str:
    """Run what must fail with one line on stderr; return it."""
    result = send(*options, logs=logs)
    assert (result.exit_code, result.stderr.count("\n")) == (status, 1), result.output
    return result.stderr.removeprefix("Error: ").rstrip("\n")


def test_rows_become_events_that_happen_now_with_the_label_as_truth(folder: Folder) -> None:
    assert done() == "4 events sent (rows 1 to 4) in some s\n"
    first, second, third, _ = folder.events()
    assert (first.event_id, first.key, first.x) == (
        "1",
        "ann",
        {"at": 100, "wap1": -64, "wap2": -56},
    )
    assert (second.x, second.y, second.truth) == ({"at": 160, "wap1": -60}, None, "hall")
    assert (third.y, third.truth) == (None, None)
    assert first.occurred_at > 1.7e9
    for record in folder.records():
        assert record.key.decode() == decode(record.value).key
        assert dict(record.headers)["ce_source"] == b"/streamgp/send"


def test_events_keep_the_times_of_the_log_if_told_to(folder: Folder) -> None:
    done("--time", "at", "--keep-times")
    assert [event.occurred_at for event in folder.events()] == [100.0, 160.0, 220.0, 280.0]
    assert "at" not in folder.events()[0].x


def test_first_rows_bring_their_label_to_be_learned(folder: Folder) -> None:
    done("--teach", "3")
    assert [event.y for event in folder.events()] == ["kitchen", "hall", None, None]


def test_options_replace_what_the_configuration_says(folder: Folder) -> None:
    done(
        "--label", "note", "--key", "room", "--ignore", "who", "--features", "wap1", "--limit", "2"
    )
    assert [(e.key, e.x, e.truth) for e in folder.events()] == [
        ("kitchen", {"wap1": -64}, "x"),
        ("hall", {"wap1": -60}, "y"),
    ]


def test_sending_goes_on_with_any_row(folder: Folder) -> None:
    assert done("--limit", "2").startswith("2 events sent (rows 1 to 2)")
    assert done("--from", "3", "--teach", "3").startswith("2 events sent (rows 3 to 4)")
    assert "there is no row 9: the logs end before it" in done("--from", "9")
    assert [event.event_id for event in folder.events()] == ["1", "2", "3", "4"]


def test_limit_of_the_configuration_holds_and_is_replaced(folder: Folder) -> None:
    Path("w.toml").write_text(Path("w.toml").read_text() + "limit = 3\n")
    done()
    assert len(folder.events()) == 3
    done("--limit", "1", "--prefix", "again-")
    assert [event.event_id for event in folder.events()][3:] == ["again-1"]


def test_any_limit_that_a_configuration_allows_works_from_any_row(folder: Folder) -> None:
    Path("w.toml").write_text(Path("w.toml").read_text() + f"limit = {2**63 - 1}\n")
    done("--from", "3")
    assert [event.event_id for event in folder.events()] == ["3", "4"]


def test_rows_of_several_logs_have_ids_of_their_own_and_count_on(folder: Folder) -> None:
    with gzip.open("june.csv.gz", "wt") as file:
        file.write(ROWS)
    logs = ("rooms.csv", "june.csv.gz")
    assert done("--from", "4", "--limit", "3", logs=logs).startswith("3 events sent (rows 4 to 6)")
    assert [event.event_id for event in folder.events()] == ["rooms:4", "june:1", "june:2"]
    done("--prefix", "v2/", "--limit", "1", logs=logs)
    assert folder.events()[-1].event_id == "v2/rooms:1"


def test_logs_of_the_same_name_are_refused(folder: Folder) -> None:  # noqa: ARG001
    assert wrong(logs=("rooms.csv", "sub/rooms.csv")) == (
        "two logs are called rooms, so their event ids would be the same; rename one, or send them "
        "one by one with --prefix"
    )


def test_rows_that_cannot_be_sent_are_counted_with_reasons(folder: Folder) -> None:
    rows = "".join(f"{i % 7},ann,{'warm' if i % 2 else i % 97},1,x,hall\n" for i in range(300))
    Path("rooms.csv").write_text(ROWS.splitlines()[0] + "\n" + rows)
    lines = done().splitlines()
    assert lines[:3] == [
        "note: taken for numbers, so rows with a text there are rejected, unless the column is "
        "ignored: wap1 (for example 'warm')",
        "note: 150 of 300 rows are rejected for their cells in 'wap1'; ignore this column to use "
        "them",
        "rejected row 2: line 3: 'wap1' must be a number or empty, got 'warm'",
    ]
    assert lines[-2:] == [
        "and 145 more rejected",
        "150 events sent (rows 1 to 300), 150 rows rejected in some s",
    ]
    assert len(folder.events()) == 150


def test_event_that_is_too_large_is_rejected_alone(folder: Folder) -> None:
    names = [f"{'f' * 200}{i}" for i in range(5500)]
    rows = [",".join([*names, "who", "note", "room"])]
    rows += [",".join([*("1" if i < most else "" for i in range(5500)), "ann", "x", "hall"])
             for most in (5, 5500, 7)]  # fmt: skip
    Path("rooms.csv").write_text("\n".join(rows) + "\n")
    lines = done().splitlines()
    assert lines[0].startswith("rejected row 2: message must have at most 1048576 bytes, got")
    assert len(folder.events()) == 2


def test_key_or_label_that_no_worker_takes_is_rejected_here(folder: Folder) -> None:
    rows = [ROWS.splitlines()[0], '100,ann,1,1,x,"living\nroom"', '100,"a\tnn",1,1,x,hall']
    rows += [f"100,ann,1,1,x,{'h' * 1025}", "100,ann,1,1,x,hall"]
    Path("rooms.csv").write_text("\n".join(rows) + "\n")
    assert done().splitlines() == [
        "rejected row 1: label must have no control characters, got 'living\\nroom'",
        "rejected row 2: key must have no control characters, got 'a\\tnn'",
        f"rejected row 3: label must have at most 1024 characters, got 1025: {'h' * 40!r}...",
        "1 event sent (rows 1 to 4), 3 rows rejected in some s",
    ]
    assert [event.truth for event in folder.events()] == ["hall"]


def test_columns_and_times_that_no_worker_takes_are_rejected_here(folder: Folder) -> None:
    Path("rooms.csv").write_text(ROWS.replace("wap2", "w" * 1025))
    assert done().splitlines() == [
        f"rejected row 1: a column must have at most 1024 characters, got 1025: {'w' * 40!r}...",
        f"rejected row 3: a column must have at most 1024 characters, got 1025: {'w' * 40!r}...",
        f"rejected row 4: a column must have at most 1024 characters, got 1025: {'w' * 40!r}...",
        "1 event sent (rows 1 to 4), 3 rows rejected in some s",
    ]
    Path("rooms.csv").write_text(ROWS.replace("280,", "1e305,"))
    assert "rejected row 4: time must be within the years 1 to 9999, got 1e+305 POSIX s" in done(
        "--time", "at", "--keep-times"
    )
    assert sorted(event.event_id for event in folder.events()) == ["1", "2", "2", "3"]


def test_log_of_bad_rows_only_is_an_error(folder: Folder) -> None:
    Path("rooms.csv").write_text(ROWS.replace("ann", "").replace("bob", ""))
    result = send()
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == ("Error: no row could be read; see the reasons above")
    assert folder.events() == []


def test_damaged_log_is_an_error_after_what_came_before_it(folder: Folder) -> None:
    with gzip.open("rooms.csv.gz", "wt") as file:
        file.write(ROWS.splitlines()[0] + "\n")
        file.writelines(f"{i},ann,{i},{i * 7919 % 1000},x,hall\n" for i in range(20_000))
    whole = Path("rooms.csv.gz").read_bytes()
    Path("rooms.csv.gz").write_bytes(whole[: len(whole) // 2])
    result = send(logs=("rooms.csv.gz",))
    assert result.exit_code == 2
    n = len(folder.events())
    assert n > 1000
    assert result.stderr.splitlines()[-1].endswith(f"(the rows before it were sent: 1 to {n})")
    result = send("--from", str(n + 1), logs=("rooms.csv.gz",))
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].endswith("(no row was sent)")
    assert len(folder.events()) == n


def test_a_log_that_names_no_keys_is_of_one_called_like_it(folder: Folder) -> None:
    Path("w.toml").write_text('broker = "file://topics"\n[log]\nlabel = "room"\n')
    assert "note: without --key all rows of a log have its name as their key: 'rooms'\n" in done()
    assert {event.key for event in folder.events()} == {"rooms"}
    assert {record.key for record in folder.records()} == {b"rooms"}


def test_a_log_without_labels_is_sent_when_that_is_said(folder: Folder) -> None:
    Path("w.toml").write_text('broker = "file://topics"\n[log]\nkey = "who"\nignore = ["room"]\n')
    done("--unlabelled")
    assert {event.truth for event in folder.events()} == {None}


@pytest.mark.parametrize(
    ("options", "config", "message"),
    [
        ([], 'key = "who"', "name the column that holds the true label (or give --unlabelled"),
        (["--speed", "2"], 'label = "room"\nkey = "who"', "name the column that holds the time"),
        (
            ["--keep-times"],
            'label = "room"\nkey = "who"',
            "which --speed, --keep-times and windows",
        ),
        (["--label", "rom"], 'key = "who"', "rooms.csv has no column 'rom' (label)"),
        (["--prefix", "\n"], 'label = "room"\nkey = "who"', "--prefix must be printable"),
        (["--label", "room", "--unlabelled"], "", "--label and --unlabelled contradict"),
    ],
)
def test_what_is_missing_is_reported_in_one_line(
    folder: Folder, options: list[str], config: str, message: str
) -> None:
    Path("w.toml").write_text(f'broker = "file://topics"\n[log]\n{config}\n')
    assert message in wrong(*options)
    assert folder.records() == []


def test_log_that_cannot_be_read_is_reported_before_anything_is_sent(folder: Folder) -> None:
    assert "none.csv" in wrong(logs=("rooms.csv", "none.csv"))
    assert folder.records() == []


def test_one_learner_for_all_needs_no_key(folder: Folder) -> None:
    Path("w.toml").write_text(
        'broker = "file://topics"\n[worker]\nkeyed = false\n[log]\nlabel = "room"\n'
    )
    assert "key" not in done("--ignore", "who,note")
    assert [record.key for record in folder.records()] == [None] * 4


def test_what_columns_are_is_noted(folder: Folder) -> None:
    Path("w.toml").write_text('broker = "file://topics"\n[log]\nlabel = "room"\nkey = "who"\n')
    assert done().startswith("note: features that are texts: note (at least 3 different)\n")
    assert len(folder.events()) == 4


def test_lost_broker_is_reported_with_the_row_to_go_on_with(folder: Folder) -> None:
    folder.broken.writes_fail = True
    assert wrong(status=75) == "the broker does not answer"


def test_broker_lost_on_the_way_tells_which_rows_are_safe(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamgp.apps.send.MOST_IN_FLIGHT", 10)
    monkeypatch.setattr("streamgp.apps.send.UNSAFE_FOR_S", 1e9)
    rows = "".join(f"{i % 7},ann,{i % 5},1,x,hall\n" for i in range(100))
    Path("rooms.csv").write_text(ROWS.splitlines()[0] + "\n" + rows)
    check = folder.broken.check
    monkeypatch.setattr(
        folder.broken, "check", lambda fails: check(fails or folder.broken.n_flushes > 3)
    )
    assert wrong(status=75) == (
        "the broker does not answer; rows up to 30 are safe, continue with --from 31"
    )
    assert len(folder.events()) == 30
    folder.broken.n_flushes = 0
    said = wrong("--from", "41", "--limit", "50", status=75)
    assert said.endswith("rows up to 70 are safe, continue with --from 71 --limit 20")


def test_broker_that_refuses_is_not_one_to_wait_for(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamgp.apps.send.MOST_IN_FLIGHT", 1)
    folder.broken.error = RefusedError
    check = folder.broken.check
    monkeypatch.setattr(
        folder.broken, "check", lambda fails: check(fails or folder.broken.n_flushes > 2)
    )
    assert "rows up to 2 are safe, continue with --from 3" in wrong(status=2)


# --- the producer alone


class Writer:
    """Keeps what it is given, and when; fails when told to."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.sent: list[tuple[float, Outgoing]] = []
        self.flushed: list[int] = []
        self.fails = False

    def send(self, record: Outgoing) -> None:
        self.sent.append((self.clock.now, record))

    def flush(self) -> None:
        if self.fails:
            raise BrokerError("gone")
        self.flushed.append(len(self.sent))

    def close(self) -> None:
        pass


def rows(*times: float) -> Any:
    return (
        RowRead(
            number=n,
            message=Event(event_id=str(n), key="k", x={}, occurred_at=at, truth="hall"),
            share=0.0,
        )
        for n, at in enumerate(times, start=1)
    )


def producer(pace: Pace) -> tuple[EventProducer, Writer, Clock]:
    clock = Clock(1000.0)
    writer = Writer(clock)

    def sleep(seconds: float) -> None:
        assert 0.0 < seconds <= 0.05
        clock.now += seconds

    return EventProducer(writer, pace, keyed=True, clock=clock, sleep=sleep), writer, clock


def run(one: EventProducer, found: Any, stop: Any = lambda: False) -> None:
    one.run(found, stop, lambda _line, _share: None)


def test_rows_go_at_so_many_times_their_pace_and_are_safe_meanwhile() -> None:
    one, writer, _ = producer(Pace(speed=60.0))
    run(one, rows(500.0, 560.0, 555.0, 620.0))
    assert [at for at, _ in writer.sent] == pytest.approx([1000.0, 1001.0, 1001.0, 1002.0])
    assert [decode(r.value or b"").occurred_at for _, r in writer.sent] == pytest.approx(  # type: ignore[union-attr]
        [1000.0, 1001.0, 1001.0, 1002.0]
    )
    assert writer.flushed == [1, 2, 3, 4]


def test_a_long_wait_is_reported() -> None:
    """A night in the log does not look like a command that hangs."""
    one, _, _ = producer(Pace(speed=60.0))
    said: list[str] = []
    one.run(rows(0.0, 60.0, 960.0), lambda: False, lambda line, _share: said.append(line))
    waiting = [line for line in dict.fromkeys(said) if "next" in line]
    assert waiting[0] == "2 events sent, the next one in 15 s"
    assert waiting[-1] == "2 events sent, the next one in 5 s"
    assert said[-1] == "3 events sent"


def test_rows_that_cannot_be_read_do_not_set_the_pace() -> None:
    one, writer, _ = producer(Pace(speed=1.0))
    bad = Rejected(subject="row 1", fault="malformed", reason="line 2: no", at=1e9)
    run(one, iter([RowRead(number=1, message=bad, share=0.0), *rows(5.0, 6.0)]))
    assert [at for at, _ in writer.sent] == pytest.approx([1000.0, 1001.0])
    assert (one.n_rejected, one.reasons) == (1, ["rejected row 1: line 2: no"])


def test_no_more_than_so_many_rows_are_unsafe_at_once() -> None:
    one, writer, _ = producer(Pace())
    run(one, rows(*map(float, range(2 * MOST_IN_FLIGHT + 5))))
    assert writer.flushed == [1000, 2000, 2005]
    sender = one.sender
    assert (sender.last, sender.safe, sender.n_sent) == (2005, 2005, 2005)


def test_asked_to_stop_it_stops_before_the_next_row_with_all_safe() -> None:
    one, writer, clock = producer(Pace(speed=1.0))
    run(one, rows(0.0, 1.0, 100.0), lambda: clock.now >= 1005.0)
    sender = one.sender
    assert (sender.last, sender.safe, sender.n_sent) == (2, 2, 2)
    assert writer.flushed[-1] == 2
    assert clock.now < 1006.0


def test_what_is_not_safe_is_not_said_to_be() -> None:
    one, writer, _ = producer(Pace())
    writer.fails = True
    with pytest.raises(BrokerError):
        run(one, rows(1.0, 2.0))
    assert (one.sender.last, one.sender.safe) == (2, 0)


@pytest.mark.parametrize(
    ("options", "rest"),
    [
        ([], "continue with --from 3"),
        (["--limit", "3"], "continue with --from 3 --limit 1"),
        (["--limit", "2"], "nothing is left to send"),
    ],
)
def test_interrupted_command_says_with_which_row_to_go_on(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, options: list[str], rest: str
) -> None:
    import signal

    sends = 0

    def send_some(self: Any, record: Outgoing) -> None:
        nonlocal sends
        sends += 1
        if sends == 2:
            signal.raise_signal(signal.SIGINT)
        real(self, record)

    from tests.helpers import deskwork

    real = deskwork._Writer.send
    monkeypatch.setattr(deskwork._Writer, "send", send_some)
    result = send(*options)
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == f"interrupted; {rest}"
    assert len(folder.events()) == 2
    assert done("--from", "3").startswith("2 events sent (rows 3 to 4)")


def test_terminal_shows_a_bar(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    from streamgp.apps import send as sending

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with sending._shown() as say:
        say("7 events sent", 0.5)
    assert "7 events sent" in screen.getvalue()
    assert folder.records() == []
