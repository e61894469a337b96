"""`streamgp annotate` in a pipe: questions go out as text, answers come in as lines."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from connectors.annotation.open_questions import Question
from connectors.annotation.sender import AnswerSender
from connectors.topics import BrokerError, LockedOutError, RefusedError
from streamgp.apps.annotate import question_view as looks
from streamgp.apps.annotate.commands import line_of
from streamgp.apps.annotate.line_ui import LineFace, Lines
from streamgp.apps.annotate.question_view import View
from streamgp.cli.annotate import login_name
from streamgp.common.printable import printable
from tests.helpers.deskwork import Broken, Town, annotate, challenge, program, view
from tests.helpers.topics import wait_until

CONFIG = 'broker = "file://topics"\n'


@pytest.fixture
def town(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Town:
    """Topics behind an address, with three questions."""
    town = Town(contests=False)
    for i in range(1, 4):
        town.event(f"e{i}", float(i))
    return town.behind_an_address(monkeypatch, tmp_path)


def done(*options: str, lines: str = "") -> list[str]:
    """Run what must succeed; return the lines printed."""
    result = annotate(*options, lines=lines)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def wrong(*options: str, status: int = 2) -> str:
    """Run what must fail with one line on stderr; return it."""
    result = annotate(*options)
    assert (result.exit_code, result.stderr.count("\n")) == (status, 1), result.output
    return result.stderr.removeprefix("Error: ").rstrip("\n")


def answers(town: Town) -> list[tuple[Any, Any]]:
    return [(answer.event_id, answer.y) for answer in town.said("answers")]


def test_each_line_answers_one_question(town: Town) -> None:
    out = done(lines="n den\nd\nden\n")
    assert answers(town) == [("e1", "den"), ("e2", None), ("e3", "den")]
    assert out.count("Which is it?") == 3
    assert "event e1: den" in out
    assert "1 den" in out


def test_what_is_done_is_told_at_the_end(town: Town) -> None:  # noqa: ARG001
    result = annotate(lines="n den\n")
    assert result.stderr == "1 answer given; 2 questions left\n"


def test_typed_lines_that_mean_nothing_are_said_and_change_nothing(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    def typed(stream: Any) -> Lines:
        lines = Lines(stream)
        lines.is_typed = True
        return lines

    monkeypatch.setattr(Lines, "is_waiting", False)  # each is typed once the question is shown
    monkeypatch.setattr("streamgp.apps.annotate.session.Lines", typed)
    out = done(lines="\nhal\nn\nq\nn den\n")
    assert "'hal' is neither a key nor a known label; write n LABEL for a new one" in out
    assert "a label has at least one character" in out
    assert answers(town) == []


def test_line_of_a_pipe_that_means_nothing_ends_it_before_another_question_is_answered(
    town: Town,
) -> None:
    result = annotate(lines="n den\n\nhal\nden\nden\n")
    assert (result.exit_code, answers(town)) == (2, [("e1", "den")])
    assert result.stderr.splitlines() == [
        "1 answer given; 2 questions left",
        "Error: line 3 of the input: 'hal' is neither a key nor a known label; write n LABEL for a "
        "new one; nothing after it was read",
    ]


def test_help_and_all_features_are_printed_on_demand(town: Town) -> None:
    out = done(lines="?\nm\n")
    assert any("don't know: no label; in a frame the label stays" in line for line in out)
    assert sum(line.startswith("a ") for line in out) == 1
    assert answers(town) == []


def test_undo_behind_skip_brings_the_skipped_question_back(town: Town) -> None:
    out = done(lines="n den\ns\ns\nu\nn spa\n")
    assert answers(town) == [("e1", "den"), ("e3", "spa")]
    assert "event e3: here again" in out


def test_undo_takes_an_answer_back_once_no_skipped_question_is_left(town: Town) -> None:
    done(lines="n den\ns\nu\nu\n")
    assert answers(town) == [("e1", "den"), ("e1", None)]


def test_a_misspelt_label_is_renamed(town: Town) -> None:
    out = done(lines="n hlal\nn hall\nr hlal -> hall\n")
    assert [(a.event_id, a.y, a.supersedes) for a in town.said("answers")][2:] == [
        ("e1", "hall", "e1/label/answer/ann/1")
    ]
    assert "1 example of yours: hlal is hall now" in out
    assert "1 hlal   2 hall" in out
    assert out[out.index("1 example of yours: hlal is hall now") :].count("1 hlal   2 hall") == 0


def test_a_renaming_that_finds_no_example_says_so(town: Town) -> None:
    Path("w.toml").write_text(f'{CONFIG}[page]\nlabels = ["attic"]\n')
    out = done(lines="n den\nr attic -> loft\n")
    assert "nothing renamed: no example of yours that you can change is attic" in out
    assert answers(town) == [("e1", "den")]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("r spa -> den", "'spa' is not a label here; write r OLD -> NEW"),
        ("r den -> den", "'den' already has that name"),
        ("r den -> ", "a label has at least one character"),
    ],
)
def test_a_renaming_that_cannot_be_is_refused(town: Town, line: str, words: str) -> None:
    result = annotate(lines=f"n den\n{line}\n")
    assert result.exit_code == 2
    assert f"line 2 of the input: {words}" in result.stderr
    assert answers(town) == [("e1", "den")]


def test_the_rule_is_printed_on_demand(town: Town) -> None:  # noqa: ARG001
    assert any("AlwaysAsk 1 > 0" in line for line in done(lines="x\n"))


def test_a_pipe_at_its_end_leaves_when_there_is_no_question(town: Town) -> None:
    result = annotate(lines="n den\nden\nden\nden\nden\n")
    assert result.exit_code == 0
    assert len(answers(town)) == 3
    assert result.stderr == "3 answers given; 0 questions left\n"


def test_undo_and_skip_work_line_by_line(town: Town) -> None:
    out = done(lines="n den\nu\nn spa\ns\nd\n")
    assert answers(town) == [("e1", "den"), ("e1", None), ("e1", "spa"), ("e3", None)]
    assert "You took your answer back." in out
    assert "event e2: skipped" in out


def test_end_of_the_input_ends_it(town: Town) -> None:
    assert done() != []
    assert answers(town) == []


@pytest.mark.parametrize(
    ("error", "options", "status"),
    [(BrokerError, ("--stop-when-idle", "0"), 75), (LockedOutError, (), 75), (RefusedError, (), 2)],
)
def test_topics_that_are_gone_end_it_although_lines_wait(
    error: type[BrokerError],
    options: tuple[str, ...],
    status: int,
    town: Town,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = Broken(town.topics)
    broken.error = error
    monkeypatch.setattr("streamgp.apps.deployment.deployment.open_topics", lambda _config: broken)
    read = LineFace.read

    def read_and_lose(face: LineFace, *arguments: Any) -> Any:
        broken.reads_fail = True
        return read(face, *arguments)

    monkeypatch.setattr(LineFace, "read", read_and_lose)
    result = annotate(*options, lines="n den\nden\n")
    assert result.exit_code == status
    assert result.stderr.splitlines() == [
        "1 answer given; 2 questions left",
        "Error: the broker does not answer",
    ]
    assert answers(town) == [("e1", "den")]


def test_without_a_question_it_leaves_after_so_many_seconds(town: Town) -> None:
    assert annotate("--stop-when-idle", "0", lines="d\nd\nd\nd\n").exit_code == 0
    assert len(answers(town)) == 3


def test_only_one_key_is_asked_about(town: Town) -> None:
    town.event("o1", key="other")
    town.work()
    done("--key", "other", lines="n den\n")
    assert answers(town) == [("o1", "den")]


@pytest.mark.parametrize("name", ["", " ann", "a\tb", "x" * 101, "a\u3164", "b\u202eb"])
def test_invalid_name_is_refused(town: Town, name: str) -> None:  # noqa: ARG001
    assert "expected 1 to 100 characters that can be seen, without" in wrong("--as", name)


@pytest.mark.parametrize(
    "name", ["\u7530\u4e2d\u3000\u82b1\u5b50", "\u0639\u0644\u06cc\u200c\u0631\u0636\u0627"]
)
def test_names_are_written_as_in_japanese_and_persian(town: Town, name: str) -> None:
    done("--as", name, lines="n den\n")
    assert town.said("answers")[0].annotator == name


def test_without_a_name_it_is_that_of_the_login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "Ann B")
    assert login_name() == "Ann B"

    def no_login() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", no_login)
    assert login_name() == f"user-{os.getuid()}"


def test_options_of_the_simulation_are_refused_without_it(town: Town) -> None:  # noqa: ARG001
    assert wrong("--truth", "x.csv").startswith("--truth and --label can be used only with")


def test_missing_configuration_is_reported_in_one_line(town: Town) -> None:  # noqa: ARG001
    result = CliRunner().invoke(program, ["annotate", "none.toml"])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)


def test_answers_that_cannot_be_sent_are_reported_with_a_status_of_their_own(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Broken(town.topics)
    broken.writes_fail = True
    monkeypatch.setattr("streamgp.apps.deployment.deployment.open_topics", lambda _config: broken)
    monkeypatch.setattr("streamgp.apps.annotate.session.SEND_FOR_S", 0.2)
    monkeypatch.setattr("streamgp.apps.annotate.session.SOON_S", 0.0)
    result = annotate(lines="n den\n")
    assert result.exit_code == 75
    assert result.stderr.splitlines() == [
        "sending 1 answer, for 0 s at most",
        "1 answer given; 2 questions left",
        "Error: the broker does not answer; 1 answer not sent, the questions come again",
    ]
    assert answers(town) == []


@pytest.mark.parametrize("lines", ["n den\nden\nden\n", "n den\n"])
def test_first_answer_that_may_not_be_written_ends_it(
    lines: str, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it is the last one."""
    broken = Broken(town.topics)
    broken.writes_fail, broken.error = True, RefusedError
    monkeypatch.setattr("streamgp.apps.deployment.deployment.open_topics", lambda _config: broken)
    send = AnswerSender.send

    def send_and_wait(sender: AnswerSender, *arguments: Any) -> None:
        send(sender, *arguments)
        wait_until(lambda: sender.trouble is not None)

    monkeypatch.setattr(AnswerSender, "send", send_and_wait)
    result = annotate(lines=lines)
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "1 answer given; 2 questions left",
        "Error: the broker does not answer; 1 answer not sent, the questions come again",
    ]


def test_broker_that_is_away_at_the_start_is_reported_in_one_line(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Broken(town.topics)
    broken.reads_fail = True
    monkeypatch.setattr("streamgp.apps.deployment.deployment.open_topics", lambda _config: broken)
    assert wrong(status=75) == "the broker does not answer"


# --- lines


def test_lines_come_as_they_are_written() -> None:
    read, write = os.pipe()
    with os.fdopen(read) as stream:
        lines = Lines(stream)
        assert lines.first(0.0) is None
        assert not lines.has_ended
        os.write(write, b"one\ntw")
        assert lines.first(1.0) == "one"
        assert lines.first(1.0) == "one"
        lines.drop()
        assert lines.first(0.0) is None
        os.write(write, b"o")
        os.close(write)
        assert lines.first(1.0) == "two"
        lines.drop()
        assert lines.first(0.0) is None
        assert lines.has_ended


def test_lines_of_what_is_no_file_are_read_at_once() -> None:
    lines = Lines(io.StringIO("one\n\ntwo"))
    seen = []
    while (line := lines.first(0.0)) is not None:
        seen.append(line)
        lines.drop()
    assert seen == ["one", "", "two"]
    assert lines.has_ended


def test_face_of_lines_holds_nothing() -> None:
    out = io.StringIO()
    with LineFace(Lines(io.StringIO("")), out) as face:
        face.question_ended()
    assert out.getvalue() == ""


def test_a_label_that_hides_something_is_written_out_and_warned_of_once(town: Town) -> None:
    hidden = "d\u202een\u200b"
    town.event("e4", 4.0)
    town.work()
    out = done(lines=f"n {hidden}\n1\nd\n")
    shown = r"d\u202een\u200b"
    warnings = [line for line in out if "holds what cannot be seen" in line]
    assert warnings == [
        f"label {shown} holds what cannot be seen (U+202E, U+200B); it may look like another one"
    ]
    assert f"event e1: {shown}" in out
    assert f"1 {shown}" in [line.strip()[: len(shown) + 2] for line in out]
    assert answers(town)[:2] == [("e1", hidden), ("e2", hidden)]
    assert all(printable(line) == line for line in out)


def test_a_line_in_another_encoding_is_no_new_label() -> None:
    reading, writing = os.pipe()
    os.write(writing, "n K\u00fcche\n".encode("cp1252"))
    os.close(writing)
    with open(reading) as pipe:
        line = Lines(pipe).first(0.0)
    assert line is not None
    with pytest.raises(ValueError, match="'n K\ufffdche' is not UTF-8"):
        line_of(line, contested())


@pytest.mark.parametrize(
    ("line", "y"), [("k", "den"), ("c", "hall"), ("hall", "hall"), ("n spa", "spa"), ("d", None)]
)
def test_a_line_answers_a_challenge(line: str, y: Any) -> None:
    assert line_of(line, contested()).label == y


@pytest.mark.parametrize("line", ["1", "2"])
def test_the_key_of_a_label_does_not_answer_a_challenge(line: str) -> None:
    with pytest.raises(ValueError, match="is the key of a label, which does not answer a chall"):
        line_of(line, contested())


def test_a_label_that_is_written_as_a_key_of_a_challenge_has_to_be_told_apart() -> None:
    with pytest.raises(ValueError, match="'c' is both a key and a label; write n c, or n hall"):
        line_of("c", contested("c"))
    assert line_of("n c", contested("c")).label == "c"


def contested(*more: str) -> View:
    question = Question(request=challenge(given="den", suggested="hall"))
    return view(question, ["den", "hall", *more])


def test_an_annotator_in_quarantine_is_told_once_also_without_a_question() -> None:
    out, aside = io.StringIO(), replace(contested(), question=None, is_set_aside=True)
    with LineFace(Lines(io.StringIO()), out) as face:
        face.show(replace(aside, n_read=7))  # not settled while the topics are read
        assert out.getvalue() == ""
        face.show(replace(aside, is_set_aside=False))
        assert out.getvalue() == ""
        face.show(aside)
        face.show(aside)
    assert " ".join(out.getvalue().split()) == looks.SET_ASIDE
