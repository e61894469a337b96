"""`streamgp watch`: what is shown of a deployment at work, on a terminal and in a file."""

from __future__ import annotations

import io
import re
import time
from contextlib import closing
from pathlib import Path
from shlex import quote

import pytest
from rich.console import Console

from connectors.topics import BrokerError, RefusedError
from connectors.wire.codec import encode
from streamgp.apps.console import span
from streamgp.apps.deployment import deployment as visiting
from streamgp.apps.deployment.deployment import Deployment, visit
from streamgp.apps.watch import statistics, view
from streamgp.apps.watch.statistics import Watching
from streamgp.apps.watch.view import Around, Follower, parts, show_live, text
from streamgp.interactive.messages import Challenge, LabelRequest
from tests.helpers.messages import challenge
from tests.helpers.small_deployment import Small
from tests.helpers.topics import PATIENCE_S, wait_until


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    return Small(tmp_path, monkeypatch)


def shown(screen: str) -> dict[str, list[str]]:
    """Return the lines of each thing that is shown."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in screen.rstrip("\n").splitlines():
        name = line[:14].strip() or name
        found.setdefault(name, []).append(line[15:])
    return found


def with_history(small: Small) -> None:
    """Let a worker ask about two events, learn one label and refuse a record."""
    small.put(small.event("e1", truth="hall"), small.event("e2", "bob", truth="den"))
    small.put_bytes("events", "ann", b"\x1b[2J not JSON")
    small.work()
    for request in small.said("requests"):
        assert isinstance(request, LabelRequest)
        if request.key == "ann":
            small.answer(request, "den")
    small.work()
    small.put(small.event("e3", truth="den"))
    small.work()


def test_everything_that_the_topics_hold_is_counted_from_the_start(small: Small) -> None:
    with_history(small)
    screen = shown(small.done("watch", "--once", "--from-start"))
    assert screen["workers"] == ["0 in group streamgp at kafka://nowhere"]
    assert screen["predictions"] == ["3"]
    assert screen["accuracy"] == ["100.0 % of 1 prediction whose truth is known"]
    assert screen["label rate"] == ["100.0 %: 3 label requests for 3 predictions"]
    assert re.fullmatch(
        r"2 label requests and 0 challenges wait, the oldest for 1 min( \d+ s)?", screen["open"][0]
    )
    assert screen["challenges"] == ["0 made, 0 revised, 0 upheld, 0 expired"]
    assert screen["labels"] == [
        "1 learned, 0 corrected, 0 withdrawn",
        "1 of 1 whose truth is known are wrong",
    ]
    assert screen["dead letters"][0] == "1: 1 decode"
    assert screen["dead letters"][1].endswith(
        "decode: message must be JSON, got malformed text: Expecting value: line 1 column 1 "
        "(char 0)"
    )


def test_records_that_no_worker_has_written_are_shown_with_their_topic(small: Small) -> None:
    small.put_bytes("consensus", "ann", b"?")
    screen = shown(small.done("watch", "--once", "--from-start"))
    assert screen["dead letters"] == ["0", "1 record that no worker has written in consensus"]


def test_what_was_there_before_counts_only_as_far_as_it_is_open(small: Small) -> None:
    with_history(small)
    screen = shown(small.done("watch", "--once", "--interval", "0.1"))
    assert screen["predictions"][0] == "0, 0.0 a second"
    assert screen["label rate"] == ["-: 0 label requests for 0 predictions"]
    assert screen["labels"] == ["0 learned, 0 corrected, 0 withdrawn"]
    assert screen["dead letters"] == ["0"]
    assert screen["open"][0].startswith("2 label requests and 0 challenges wait")


def test_no_challenge_has_waited_for_longer_than_since_its_event(small: Small) -> None:
    """It has the time of an answer, which a device without a clock dates to 1970."""
    doubt = challenge(at=3.0, occurred_at=time.time() - 60.0, key="ann")
    small.put_bytes("requests", "ann", encode(doubt))
    screen = shown(small.done("watch", "--once", "--from-start"))
    assert re.fullmatch(r".* 1 challenge wait, the oldest for 1 min( \d+ s)?", screen["open"][0])


def test_an_answer_that_is_not_signed_ends_no_question(small: Small) -> None:
    keys = small.path / "keys.json"
    keys.write_text(f'{{"eve": "{"ab" * 16}"}}')
    small.add(f'[people]\nkeys_file = "{keys}"\n')
    small.put(small.event("e1"))
    small.work()
    [request] = small.said("requests")
    assert isinstance(request, LabelRequest)
    small.answer(request, "den")
    small.answer(request, "den", "no key", annotator="ida")
    small.work()
    result = small.call("watch", "--once", "--from-start")
    screen = shown(result.stdout)
    assert screen["dead letters"][0] == "2: 2 correlate"
    assert screen["open"][0].startswith("1 label request and 0 challenges wait")
    assert result.stderr == ""
    for damage, flaw in (
        (lambda: keys.write_text("no keys"), "no keys found in "),
        (keys.unlink, "there is no file "),
    ):
        damage()
        result = small.call("watch", "--once", "--from-start")
        assert shown(result.stdout)["open"] == ["no question is waiting"]
        assert result.stderr.startswith(f"warning: people.keys_file: {flaw}{keys}")
        assert result.stderr.endswith("are not checked, refused answers seem to count\n")


def test_what_comes_while_watching_is_counted(small: Small) -> None:
    with_history(small)
    with visit(small.config_file) as deployment:
        follower = Follower(deployment, from_start=False)
        while not follower.caught_up:
            follower.read_on(0.0)
        small.put(small.event("e4", truth="den"))
        small.work()
        wait_until(lambda: bool(follower.read_on(0.1) or follower.watching.n_predictions))
        screen = shown(follower.text())
        follower.close()
    assert re.match(r"1, [01]\.\d a second", screen["predictions"][0])
    assert "█" in screen["predictions"][1]
    assert screen["accuracy"] == ["100.0 % of 1 prediction whose truth is known"]
    assert screen["open"][0].startswith("3 label requests")


def test_lag_is_told_for_every_partition_that_is_behind(small: Small) -> None:
    small.put(*(small.event(f"e{n}", key) for n in range(3) for key in ("ann", "bob", "eve")))
    small.put_bytes("consensus", "ann", b"{}")  # as of a worker that has stopped: it is no input
    screen = shown(small.done("watch", "--once", "--from-start"))
    lags = [(p, n) for (topic, p), n in small.topics.lags("streamgp").items() if topic == "events"]
    assert sorted(n for _, n in lags) == [0, 0, 3, 6]
    each = ", ".join(f"{n} in partition {partition}" for partition, n in sorted(lags) if n)
    assert screen["lag"] == ["answers 0", f"events 9: {each}"]


def test_workers_are_counted_while_they_work(small: Small) -> None:
    with small.working():
        screen = shown(small.done("watch", "--once", "--interval", "0.1"))
    assert screen["workers"] == ["1 in group streamgp at kafka://nowhere"]


def test_challenges_are_shown_with_what_became_of_them(small: Small) -> None:
    text = small.config_file.read_text().replace('rule = "never"', 'rule = "always"')
    small.config_file.write_text(text)
    small.put(small.event("e1", truth="hall", y="hall"))
    small.put(small.event("e2", truth="hall", y="den"), small.event("e3", truth="hall"))
    small.work()
    [challenge] = [request for request in small.said("requests") if isinstance(request, Challenge)]
    small.answer(challenge, "hall")
    small.work()
    screen = shown(small.done("watch", "--once", "--from-start"))
    assert screen["challenges"] == [
        "1 made, 1 revised, 0 upheld, 0 expired",
        "1 of 1 were about wrong labels; 1 repaired, 0 spoiled by it",
    ]


def test_a_challenge_from_before_what_was_read_is_not_counted_as_made(small: Small) -> None:
    text = small.config_file.read_text().replace('rule = "never"', 'rule = "always"')
    small.config_file.write_text(text)
    small.put(small.event("e1", truth="hall", y="hall"), small.event("e2", truth="hall", y="den"))
    small.work()
    [challenge] = [request for request in small.said("requests") if isinstance(request, Challenge)]
    with visit(small.config_file) as deployment:
        follower = Follower(deployment, from_start=False)
        while not follower.caught_up:
            follower.read_on(0.0)
        small.answer(challenge, "hall")
        small.work()
        wait_until(lambda: bool(follower.read_on(0.1) or follower.watching.challenges["revised"]))
        screen = shown(follower.text())
        follower.close()
    assert screen["challenges"][:2] == [
        "0 made, 1 revised, 0 upheld, 0 expired",
        "some were made before what was read, and are not counted as made",
    ]


# --- how it is shown


def test_nothing_from_outside_reaches_the_terminal_raw(small: Small) -> None:
    headers = (
        ("dlq.stage", b"decode\x1b[2J"),
        ("dlq.error", b"\x1b]0;title\x07 and [red]markup[/red]"),
        ("dlq.at", b"2026-08-01T14:30:00Z"),
    )
    small.put_bytes("dead-letters", "ann", b"?", headers)
    screen = small.done("watch", "--once", "--from-start")
    assert "\x1b" not in screen
    assert "\x07" not in screen
    assert "and [red]markup[/red]" in screen
    assert "\x1b]0" not in on_terminal(small)


def on_terminal(small: Small) -> str:
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with visit(small.config_file) as deployment:
        follower = Follower(deployment, from_start=True)
        while not follower.caught_up:
            follower.read_on(0.0)
        console.print(follower.picture())
        follower.close()
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_terminal_shows_what_the_text_says(small: Small) -> None:
    with_history(small)
    lines = small.done("watch", "--once", "--from-start").splitlines()
    words = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", on_terminal(small)).split())
    for line in lines:
        if "second" in line or "watched" in line or "wait" in line:
            continue  # the time goes on
        for word in line.split():
            assert word in words, line


def test_what_needs_attention_is_marked() -> None:
    around = Around(url="kafka://a", group="g", n_workers=0, lags={})
    watching = Watching(since=0.0)
    alarming = [part.name for part in parts(watching, around, 1.0) if part.is_alarming]
    assert alarming == ["workers"]


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.0, "0 s"), (60.0, "1 min"), (3661.0, "1 h 1 min"), (86_400.0, "1 d")]
)
def test_spans_are_shown_in_their_two_largest_units(seconds: float, words: str) -> None:
    assert span(seconds) == words


def test_screen_is_not_wider_than_a_terminal_but_for_reasons(small: Small) -> None:
    with_history(small)
    lines = small.done("watch", "--once", "--from-start").splitlines()
    assert [line for line in lines if len(line) > 80 and "decode:" not in line] == []


def test_without_a_terminal_it_is_printed_in_every_interval(
    small: Small, capsys: pytest.CaptureFixture[str]
) -> None:
    with_history(small)
    with visit(small.config_file) as deployment:
        follower = Follower(deployment, from_start=True)
        end, printed = time.monotonic() + PATIENCE_S, ""

        def is_over() -> bool:
            nonlocal printed
            printed += capsys.readouterr().out
            return printed.count("workers") >= 2 or time.monotonic() > end

        show_live(follower, 0.1, is_over)
        follower.close()
    assert printed.count("workers") >= 2


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_it_is_drawn_again_and_again(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stdout", screen)
    for name, value in (("TERM", "xterm"), ("COLUMNS", "80"), ("LINES", "50")):
        monkeypatch.setenv(name, value)
    with visit(small.config_file) as deployment:
        follower = Follower(deployment, from_start=True)
        end = time.monotonic() + PATIENCE_S

        def n_drawn() -> int:
            return screen.getvalue().count("Ctrl-C to leave")

        show_live(follower, 0.1, lambda: n_drawn() >= 2 or time.monotonic() > end)
        follower.close()
    assert n_drawn() >= 2
    assert screen.getvalue().count("\x1b[?25h") == 1  # the cursor is back


def test_desk_is_cleared_once_a_minute(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    now, turns = [1000.0], []
    with visit(small.config_file) as deployment:
        follower = Follower(deployment, from_start=True, clock=lambda: now[0])
        monkeypatch.setattr(follower.watching.inbox, "turn_over", lambda: turns.append(now[0]))
        for now[0] in (1030.0, 1061.0, 1062.0, 1122.0):
            follower.read_on(0.0)
        follower.close()
    assert turns == [1061.0, 1122.0]


# --- what can be wrong


def test_missing_topics_are_named(small: Small) -> None:
    small.topics.said = [
        "topics events, answers are missing; --create-topics makes them",
        "no right to write topic predictions",
    ]
    assert small.wrong("watch", "--once") == (
        "topics events, answers are missing; --create-topics makes them: "
        f"`streamgp check {quote(str(small.config_file))} --create-topics`"
    )


def test_rights_that_only_workers_need_are_not_asked_of_a_visitor(small: Small) -> None:
    small.topics.said = ["no right to write topic predictions"]
    assert small.done("watch", "--once", "--interval", "0.1")


def test_directory_without_topics_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = Small(tmp_path, monkeypatch)
    monkeypatch.undo()
    broker = f"file://{tmp_path}/nowhere"
    assert small.wrong("watch", "--broker", broker) == (
        f"directory {tmp_path}/nowhere is not there; make the topics with --create-topics: "
        f"`streamgp check {quote(str(small.config_file))} --broker {quote(broker)} --create-topics`"
    )


def test_broker_that_is_gone_ends_it_with_its_own_status(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_group: str) -> int:
        raise BrokerError("broker does not answer")

    monkeypatch.setattr(small.topics, "n_members", gone)
    result = small.call("watch", "--once")
    assert (result.exit_code, result.stderr) == (75, "Error: broker does not answer\n")


@pytest.mark.parametrize("is_terminal", [False, True])
def test_live_view_waits_for_a_broker_that_is_away_and_says_so(
    small: Small,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    is_terminal: bool,
) -> None:
    with_history(small)
    away = BrokerError("broker one:9092 did not answer in time")
    refused = RefusedError("no right to describe group streamgp")
    answers = iter([1, 1, 2, away, away, 3, refused])

    def n_members(_group: str) -> int:
        answer = next(answers)
        if isinstance(answer, BrokerError):
            raise answer
        return answer

    screen = Screen() if is_terminal else io.StringIO()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(small.topics, "n_members", n_members)
    with (
        visit(small.config_file) as deployment,
        closing(Follower(deployment, from_start=True)) as follower,
    ):
        while not follower.caught_up:
            follower.read_on(0.0)
        with pytest.raises(RefusedError):
            show_live(follower, 0.01, lambda: False)
    shown = screen.getvalue()
    words = "broker one:9092 did not answer in time; waiting for it", "the broker is back"
    if is_terminal:  # above the view
        assert [shown.count(f"{line}\n") for line in words] == [1, 1]
    else:
        assert capsys.readouterr().err == "{}\n{}\n".format(*words)
    # A terminal is drawn once more at the end.
    assert [*dict.fromkeys(re.findall(r"(\d) in group", shown))] == ["1", "2", "3"]


def test_directory_of_topics_can_be_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Small.in_directory(tmp_path, monkeypatch)
    with_history(small)
    url = f"file://{tmp_path}/topics"
    screen = shown(small.done("watch", "--once", "--from-start", "--broker", url))
    assert screen["predictions"] == ["3"]
    assert screen["workers"][0].startswith("0 in group streamgp at file:")


def test_watching_changes_nothing(small: Small) -> None:
    with_history(small)
    everything = ("events", "answers", "predictions", "requests", "consensus", "state")
    before, lags = small.records(*everything), small.topics.lags("streamgp")
    small.done("watch", "--once", "--from-start")
    assert (small.records(*everything), small.topics.lags("streamgp")) == (before, lags)


def test_text_of_nothing_is_complete() -> None:
    around = Around(url="file://d", group="g", n_workers=0, lags={})
    assert list(shown(text(Watching(since=0.0), around, 1.0))) == [
        "workers", "watched", "predictions", "accuracy", "label rate", "open", "challenges",
        "labels", "dead letters", "lag",
    ]  # fmt: skip


def test_without_any_truth_it_says_what_was_predicted() -> None:
    around = Around(url="file://d", group="g", n_workers=0, lags={})
    screen = shown(text(Watching(since=0.0, target="number"), around, 1.0))
    assert screen["error"] == [
        "unknown: no number was predicted for an event that brings its truth"
    ]


def test_truths_that_come_too_long_before_their_predictions_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (statistics, view):
        monkeypatch.setattr(module, "N_REMEMBERED", 2)
    watching = Watching(since=0.0)
    for name in ("e1", "e2", "e3"):
        watching.note_truth(("ann", name), "hall")
    watching.note_prediction(("ann", "e1"), "hall")
    around = Around(url="file://d", group="g", n_workers=0, lags={})
    assert shown(text(watching, around, 1.0))["accuracy"] == [
        "unknown: no label was predicted for an event of the last 2 that brings its truth"
    ]


def test_deployment_is_what_a_visitor_gets(small: Small) -> None:
    with visit(small.config_file) as deployment:
        assert isinstance(deployment, Deployment)
        assert (deployment.url, deployment.group) == ("kafka://nowhere", "streamgp")
        assert deployment.name_of("dead-letters") == "dead-letters"
    assert visiting.number(1, "key") == "1 key"
