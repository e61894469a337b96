"""`streamgp dead-letters`: what could not be used is listed, shown, and sent again as it was."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner

from connectors.memory import MemoryTopics
from connectors.topics import ALL_TOPICS, Outgoing, Record
from connectors.wire import outbound
from connectors.wire.outbound import Outbound
from streamgp.apps.deployment import deployment
from streamgp.apps.maintenance.dead_letters import moment_of
from streamgp.cli import maintenance
from streamgp.config.settings import Config
from streamgp.interactive.messages import Answer, LabelledExample, Rejected, Stage
from tests.helpers.small_deployment import COMMANDS, Small
from tests.helpers.topics import write

BAD = b'\xff\x00 "ann was here"'
HEADERS = (("trace", b"17"), ("ce_type", b"streamgp.event.v9"))
LIST = "list"


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    return Small(tmp_path, monkeypatch)


def put_bad(small: Small) -> None:
    """Let a worker refuse bytes, another version, and an answer to a request that was not made."""
    small.put_bytes("events", "ann", BAD)
    small.put_bytes("events", "ann", b'{"x": {"light": 0.5}}', HEADERS)
    fields = {"event_id": "e1", "request_id": "e1/label", "answered_at": small.sent_at + 1.0}
    small.put(Answer(answer_id="a1", key="ann", y="hall", **fields))
    small.work()


def numbers(small: Small, *options: str) -> list[str]:
    lines = small.done("dead-letters", LIST, *options).splitlines()
    return [line.split()[0] for line in lines[1:-1]]


def test_every_stage_that_a_worker_writes_can_be_chosen(small: Small) -> None:
    written = {*outbound._STAGES.values(), *get_args(Stage)}
    assert {*maintenance._STAGES} == written
    put_bad(small)
    assert {stage: len(numbers(small, "--stage", stage)) for stage in written} == {
        **dict.fromkeys(written, 0),
        "decode": 2,
        "correlate": 1,
    }


def number_of(small: Small, what: str) -> str:
    lines = small.done("dead-letters", LIST).splitlines()
    [found] = [line.split()[0] for line in lines if what in line]
    return found


def test_broker_is_named_behind_the_command_or_beside_the_file(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def open_topics(config: Config) -> MemoryTopics:
        assert config.broker is not None
        opened.append(config.broker.url)
        return small.topics

    monkeypatch.setattr(deployment, "open_topics", open_topics)
    small.done("dead-letters", LIST, "--broker", "kafka://a")
    small.wrong("dead-letters", "show", "0:0", "--broker", "kafka://b")
    small.done("dead-letters", "resend", "--all", "--broker", "kafka://c")
    words = ["dead-letters", "--broker", "kafka://d", str(small.config_file), LIST]
    assert CliRunner().invoke(COMMANDS, words).exit_code == 0
    words = ["dead-letters", str(small.config_file), "--broker", "kafka://e", LIST]
    assert CliRunner().invoke(COMMANDS, words).exit_code == 0
    assert opened == ["kafka://a", "kafka://b", "kafka://c", "kafka://d", "kafka://e"]


def test_help_and_options_of_a_command_before_it_are_told_apart(small: Small) -> None:
    shown = CliRunner().invoke(COMMANDS, ["dead-letters", str(small.config_file), "--help"])
    assert shown.exit_code == 0
    assert "resend  Put dead letters back" in shown.stdout
    words = ["dead-letters", str(small.config_file), "--stage", "learn", LIST]
    assert "No such option" in CliRunner().invoke(COMMANDS, words).stderr


# --- list


def test_list_says_where_why_and_how_far_but_not_what(small: Small) -> None:
    put_bad(small)
    text = small.done("dead-letters", LIST)
    head, *lines, end = text.splitlines()
    assert head.split() == ["number", "when", "from", "stage", "error"]
    assert [line.split()[5] for line in lines] == ["correlate", "decode", "decode"]
    assert [line.split()[3] for line in lines] == ["answers", "events", "events"]
    assert "no event of key 'ann' was ever seen" in lines[0]
    assert "must be JSON in UTF-8, got a zero byte at position 1" in lines[1]
    assert "unknown major version" in lines[2]
    assert end == "3 dead letters"
    assert "here" not in text


def test_a_topic_is_listed_by_the_name_that_it_has_on_the_broker(small: Small) -> None:
    names = {name: f"rooms.{name}" for name in ALL_TOPICS}
    small.topics.names = lambda: names  # type: ignore[method-assign]
    put_bad(small)
    *lines, _ = small.done("dead-letters", LIST).splitlines()[1:]
    assert [line.split()[3] for line in lines] == ["rooms.answers", "rooms.events", "rooms.events"]
    text = small.done("dead-letters", "show", number_of(small, "major"))
    assert "dlq.topic      rooms.events" in text.splitlines()
    assert "dlq.role       events" in text.splitlines()
    sent = small.done("dead-letters", "resend", number_of(small, "major"), "--yes")
    assert "1 record: 1 to events" in sent


def test_list_can_be_narrowed(small: Small) -> None:
    put_bad(small)
    assert len(numbers(small, "--stage", "decode")) == 2
    assert len(numbers(small, "--stage", "learn")) == 0
    assert len(numbers(small, "--since", "1h")) == 3
    assert len(numbers(small, "--since", "2100-01-01T00:00:00Z")) == 0
    assert small.done("dead-letters", LIST, "--last", "1").splitlines()[-1] == (
        "3 dead letters, the last 1 of them shown"
    )


def test_only_letters_that_are_shown_are_kept_while_all_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Small.in_directory(tmp_path, monkeypatch)
    n, size = 40, 2**20
    for _ in range(n):
        small.put_bytes("events", "ann", bytes(size))
    small.work()
    there = ("--broker", f"file://{tmp_path}/topics")
    tracemalloc.start()
    try:
        listed = small.done("dead-letters", LIST, *there, "--last", "3").splitlines()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [line.split()[0] for line in listed[1:-1]] == ["0:37", "0:38", "0:39"]
    assert listed[-1] == f"{n} dead letters, the last 3 of them shown"
    assert peak < n * size / 2


def test_a_letter_is_as_old_as_its_record_whatever_the_time_of_its_input(small: Small) -> None:
    """Inputs may have waited, or bring the times of a recorded log."""
    fields = {"event_id": "e1", "request_id": "e1/label", "answered_at": small.sent_at - 86400.0}
    small.put(Answer(answer_id="a1", key="ann", y="hall", **fields))
    small.work()
    assert len(numbers(small, "--since", "1h")) == 1


def test_empty_topic_is_an_empty_list(small: Small) -> None:
    assert small.done("dead-letters", LIST) == "0 dead letters\n"


def test_letters_of_others_are_left_out_of_the_list(small: Small) -> None:
    small.put_bytes("dead-letters", "ann", b"?", (("dlq.stage", b"other"),))
    assert small.done("dead-letters", LIST) == "0 dead letters\n"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("30s", 9_970.0),
        ("15 min", 9_100.0),
        ("15m", 9_100.0),
        ("2h", 2_800.0),
        ("0.1 d", 1_360.0),
        ("60", 60.0),
    ],
)
def test_moments_are_times_or_how_long_ago(text: str, moment: float) -> None:
    assert moment_of(text, now=10_000.0) == pytest.approx(moment)


def test_what_is_no_moment_is_refused(small: Small) -> None:
    assert small.wrong("dead-letters", LIST, "--since", "yesterday").startswith(
        "'yesterday' is not a time, expected how long ago (30s, 15min, 2h, 7d) or a time, as in "
        "2026-08-01T14:30:00Z"
    )


# --- show


def test_bytes_that_are_no_text_are_shown_as_digits(small: Small) -> None:
    put_bad(small)
    text = small.done("dead-letters", "show", number_of(small, "UTF-8"))
    assert "payload        17 bytes" in text
    assert '00000000  ff 00 20 22 61 6e 6e 20 77 61 73 20 68 65 72 65  .. "ann was here' in text
    assert "00000010  22" in text
    assert "\x00" not in text


def test_names_of_headers_can_do_nothing_to_a_terminal(small: Small) -> None:
    small.put_bytes("events", "ann", b"?", (("a\x1b[2Jb", b"7"), ("caf\\xe9", b"8")))
    small.work()
    text = small.done("dead-letters", "show", number_of(small, "JSON"))
    assert "\x1b" not in text
    assert "caf\\xe9        8" in text.splitlines()


def test_text_is_shown_as_it_is_with_key_and_headers(small: Small) -> None:
    put_bad(small)
    text = small.done("dead-letters", "show", number_of(small, "major"))
    for line in ("key            ann", "trace          17", "dlq.topic      events"):
        assert line in text.splitlines()
    assert text.endswith('\n\n{"x": {"light": 0.5}}\n')


@pytest.mark.parametrize("data", ["a\x1b[2Jb", "a\u202eb", "a\x9bb", "a\u2028b"])
def test_what_could_change_a_terminal_is_no_text(small: Small, data: str) -> None:
    small.put_bytes("events", "ann", data.encode())
    small.work()
    text = small.done("dead-letters", "show", number_of(small, "decode"))
    assert data not in text
    assert data.encode().hex(" ") in text


def test_key_that_is_no_text_is_shown_as_digits(small: Small) -> None:
    write(small.topics, Outgoing(topic="events", key=b"\xff\n", value=b"{}"))
    small.work()
    text = small.done("dead-letters", "show", number_of(small, "decode"))
    assert "key            ff 0a" in text.splitlines()


def test_number_that_is_not_there_is_refused(small: Small) -> None:
    assert small.wrong("dead-letters", "show", "1:99") == (
        "there is no dead letter 1:99; `list` prints the numbers"
    )
    assert small.wrong("dead-letters", "show", "99").startswith(
        "'99' is not the number of a dead letter, expected PARTITION:OFFSET, as in 2:17"
    )


# --- resend


def last(small: Small, topic: str) -> Record:
    return max(small.records(topic), key=lambda record: record.at)  # type: ignore[arg-type]


def test_what_is_sent_again_is_what_came(small: Small) -> None:
    put_bad(small)
    before = small.records("events", "answers")
    said = small.done("dead-letters", "resend", number_of(small, "major"), "--yes")
    assert said == "sent 1 record: 1 to events\n"
    [again] = [record for record in small.records("events", "answers") if record not in before]
    [first] = [record for record in before if ("trace", b"17") in record.headers]
    assert (again.topic, again.key, again.value) == (first.topic, first.key, first.value)
    assert tuple(again.headers) == tuple(first.headers)
    assert again.partition == first.partition


def test_exactly_the_chosen_ones_are_sent(small: Small) -> None:
    put_bad(small)
    n = len(small.records("events", "answers"))
    assert small.done("dead-letters", "resend", "--all", "--stage", "decode", "--yes") == (
        "sent 2 records: 2 to events\n"
    )
    assert len(small.records("events", "answers")) == n + 2
    one = number_of(small, "ever seen")
    assert small.done("dead-letters", "resend", one, one, "--yes") == (
        "sent 1 record: 1 to answers\n"
    )
    assert len(small.records("events", "answers")) == n + 3


def test_answer_that_came_too_early_is_learned_once_however_often_it_is_sent(small: Small) -> None:
    put_bad(small)
    small.put(small.event("e1"))
    small.work()
    for _ in range(2):
        small.done("dead-letters", "resend", "--all", "--stage", "correlate", "--yes")
    small.work()
    learned = [m for m in small.said("consensus") if isinstance(m, LabelledExample)]
    assert [(line.event_id, line.y) for line in learned] == [("e1", "hall")]
    assert len(numbers(small)) == 3  # the old ones; a second answer of the same id is dropped


def test_event_that_names_its_id_is_predicted_once_however_often_it_is_sent(small: Small) -> None:
    small.put(small.event("e1"), small.event("e1"))
    small.work()
    small.done("dead-letters", "resend", "--all", "--yes")
    small.work()
    assert len(small.said("predictions")) == 1
    assert len(numbers(small)) == 2


def test_nothing_is_sent_unless_the_user_confirms(small: Small) -> None:
    put_bad(small)
    before = small.records("events", "answers")
    text = small.done("dead-letters", "resend", "--all", answer="n\n")
    assert "send 3 records: 1 to answers, 2 to events?" in text
    assert text.endswith("sent nothing\n")
    assert small.records("events", "answers") == before
    assert "sent 3 records" in small.done("dead-letters", "resend", "--all", answer="y\n")


def put_timer(small: Small) -> None:
    why = Rejected(subject="e1", key="ann", fault="unlearnable", reason="repeated", at=10.0)
    out = Outbound("/streamgp/test", keyed=True).dead_letter(why, None, 0)
    small.put_bytes("dead-letters", "ann", out.value, tuple(out.headers))


def test_what_a_timer_brought_about_is_listed_and_cannot_be_sent(small: Small) -> None:
    put_timer(small)
    assert "a timer" in small.done("dead-letters", LIST)
    assert "came of no input that could be sent again: repeated" in small.wrong(
        "dead-letters", "resend", number_of(small, "timer"), "--yes"
    )
    assert small.done("dead-letters", "resend", "--all", "--yes") == (
        "1 dead letter left out: caused by a timer, or only the beginning was kept\nsent nothing\n"
    )


def test_what_was_cut_is_shown_and_cannot_be_sent(small: Small) -> None:
    small.put_bytes("events", "ann", BAD)
    small.put_bytes("events", "ann", b"x" * (16 * 2**20))
    small.work()
    cut = number_of(small, "bytes")
    text = small.done("dead-letters", "show", cut)
    assert "dlq.truncated  16777219" in text.splitlines()
    assert "payload        1048576 bytes" in text.splitlines()
    assert small.wrong("dead-letters", "resend", cut, "--yes") == (
        f"dead-letters:{cut} holds only the beginning of an input of 16777219 bytes, more than any "
        "that could be used"
    )
    assert small.done("dead-letters", "resend", "--all", "--yes") == (
        "1 dead letter left out: caused by a timer, or only the beginning was kept\n"
        "sent 1 record: 1 to events\n"
    )


def test_numbers_or_all_must_be_given_and_not_both(small: Small) -> None:
    for wrong in ([], ["0:1", "--all"]):
        assert small.wrong("dead-letters", "resend", *wrong).startswith(
            "name the dead letters to send again, or give --all"
        )
    assert small.wrong("dead-letters", "resend", "0:1", "--stage", "learn").startswith(
        "--stage and --since go with --all, not with numbers"
    )
