"""What a person sees of a question."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from connectors.annotation.explain import CODES, TEXTS, Averages
from connectors.annotation.open_questions import Question
from streamgp.apps.annotate import question_view as looks
from streamgp.apps.annotate.choices import Choices
from streamgp.apps.annotate.question_view import View, cut
from streamgp.base import Neighbour
from streamgp.common.fingerprint import recorded_name
from streamgp.interactive import Challenge, LabelledExample, LabelRequest
from streamgp.interactive.messages import ASKED_AGAIN, SAME_ANNOTATOR, SECOND_ANNOTATOR
from streamgp.query.registry import rules
from tests.helpers import deskwork
from tests.helpers.deskwork import challenge, label_request

NOW = 1250.0


def view(question: Question | None, **fields: Any) -> View:
    return deskwork.view(question, **{"now": NOW, **fields})


def printed(renderable: Any, width: int = 90) -> str:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None, highlight=False).print(renderable)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def averages(*examples: tuple[dict[Any, Any], Any], key: str | None = "k") -> Averages:
    found = Averages()
    for n, (x, y) in enumerate(examples, start=1):
        found.learn(
            LabelledExample(
                event_id=f"e{n}", key=key, sequence=n, x=x, y=y, origin="asked", learned_at=0.0
            )
        )
    return found


def test_label_request_says_whose_it_is_why_and_how_long_it_waits() -> None:
    question = Question(request=label_request("e1", expires_at=1500.0))
    assert printed(looks.heading(view(question))).splitlines() == [
        "Which is it?",
        "event e1 of k, asked 4 min 10 s ago",
        "because the prediction is uncertain",
        "waits for 4 min 10 s more",
    ]


def test_question_and_guidelines_of_the_configuration_take_the_place_of_ours() -> None:
    asks, guidelines = "Where\nwas it?\u200b", "a:\tb\n\x1bb\n"
    told = view(Question(request=label_request("e1")), asks=asks, guidelines=guidelines)
    assert printed(looks.heading(told)).splitlines()[0] == "Where was it?\\u200b"
    assert looks.help_text(told) == f"a:  b\n\\x1bb\n\n{looks.HELP}"


def test_help_about_numbers_names_what_can_be_typed_then_and_no_labels() -> None:
    told = looks.help_text(view(Question(request=label_request("e1")), of_numbers=True))
    for key in (*"dsumxqk", "21.5", "21.5 +- 2", "21.5 ?4"):
        assert f"\n  {key} " in told
    assert not re.search("label|class|rename", told)
    assert all(len(line) < 80 for line in told.splitlines())


def test_a_question_about_an_earlier_event_says_when_that_was() -> None:
    request = {**_fields(label_request("e1")), "occurred_at": NOW - 2400.0, "requested_at": NOW}
    request["reason"] = "ReservoirAsk"
    heading = looks.heading(view(Question(request=LabelRequest(**request))))
    assert printed(heading).splitlines()[1:3] == [
        "event e1 of k, which was 40 min ago, asked just now",
        "because of the latest events, its label would help most",
    ]
    earlier = Challenge(**{**_fields(challenge()), "occurred_at": NOW - 2400.0})
    assert printed(looks.heading(view(Question(request=earlier)))).splitlines()[2] == (
        "event e1 of k, which was 40 min ago"
    )


def test_challenge_shows_both_labels_who_gave_one_and_the_nearest_examples() -> None:
    near = (
        Neighbour(event_id="e7", x={"light": 0.25}, y="hall", distance=0.1),
        Neighbour(event_id=None, x={}, y="den", distance=0.2),
    )
    text = printed(looks.whole(view(Question(request=challenge(neighbours=near)))))
    title, *lines, end = text.splitlines()
    assert title.startswith("╭─ Are you sure? ───")
    assert end.startswith("╰───")
    assert [line.strip("│").rstrip()[1:] for line in lines] == [
        "You said den 4 min 10 s ago.",
        "Earlier examples like this were hall (86 % likely). Were they?",
        "event e1 of k",
        "no hurry",
        "",
        "                           hall      den",
        "  feature  this event  event e7  earlier",
        "  light           0.5      0.25        -",
        "",
        "k keep den   c change to hall",
        "n another   d don't know   s skip   u undo   ? help   q quit",
    ]


def test_challenge_shows_only_the_features_that_differ() -> None:
    x = {"light": 0.5, "noise": 2.0, "wifi": 1}
    near = tuple(
        Neighbour(event_id=f"e{i}", x={**x, "noise": 2.0 + i}, y="hall", distance=0.1)
        for i in range(2)
    )
    asked = Question(request=challenge(x=x, neighbours=near))
    rows = printed(looks.features(view(asked))).splitlines()[2:]
    assert [row.split() for row in rows] == [["noise", "2", "2", "3"]]
    alike = Question(request=challenge(x=x, neighbours=near[:1]))
    assert printed(looks.features(view(alike))) == (
        "the examples most like it are the same in every feature"
    )


def test_challenge_that_is_likely_needless_does_not_say_what_the_examples_were() -> None:
    asked = Challenge(**{**_fields(challenge()), "probability_wrong": 0.12})
    assert "It may have been hall (12 % likely). Was it?\n" in printed(
        looks.heading(view(Question(request=asked)))
    )


def test_numbers_of_the_rule_are_for_experts() -> None:
    shown = view(Question(request=label_request()))
    assert "SkepticalAsk" not in printed(looks.whole(shown))
    assert looks.expert(shown) == "the prediction is uncertain (SkepticalAsk 0.32 > 0.1)"


@pytest.mark.parametrize(
    ("annotator", "words"),
    [("ann", "You said den "), ("bob", "bob said den "), (None, "It came with the label den ")],
)
def test_challenge_says_whose_label_is_doubted(annotator: str | None, words: str) -> None:
    assert words in printed(looks.heading(view(Question(request=challenge(annotator=annotator)))))


def test_challenge_of_an_old_label_says_so() -> None:
    fields = {**_fields(challenge()), "reason": "LeaveOneOutReview"}
    text = printed(looks.whole(view(Question(request=Challenge(**fields)))))
    assert "Are you still sure?" in text
    assert "Examples since then like this were hall" in text


def test_every_rule_that_asks_has_words() -> None:
    named = {
        recorded_name(rule.cls)
        for kind in ("query", "challenge", "review", "reservoir")
        for rule in rules(kind).values()
    }
    asking = named - {"NeverAsk", "NeverChallenge", "NoneType"}
    others = {"DriftTest", ASKED_AGAIN, SECOND_ANNOTATOR, SAME_ANNOTATOR}
    assert asking | others == set(CODES)
    assert set(CODES.values()) <= set(TEXTS)
    assert "because two labels are about equally likely\n" in printed(
        looks.heading(view(Question(request=_because("BestVersusSecond"))))
    )


def test_question_that_is_asked_again_has_no_numbers_of_a_rule() -> None:
    shown = view(Question(request=_because(ASKED_AGAIN)))
    assert looks.expert(shown) == "asked again because an annotator is in quarantine"
    assert f"because {looks.expert(shown)}\n" in printed(looks.heading(shown))


def _because(reason: str) -> Any:
    request = label_request()
    return type(request)(**{**_fields(request), "reason": reason})


def test_rule_without_words_is_called_by_its_name() -> None:
    question = Question(request=_because("MyRule"))
    assert "because a rule of this deployment asks\n" in printed(looks.heading(view(question)))
    assert looks.expert(view(question)) == "MyRule 0.32 > 0.1"


def _fields(request: Any) -> dict[str, Any]:
    return {name: getattr(request, name) for name in request.__slots__}


def test_question_whose_answer_was_taken_back_says_so_and_is_in_no_hurry() -> None:
    question = Question(request=label_request(expires_at=1.0), supersedes="a1")
    assert printed(looks.heading(view(question))).endswith("no hurry\nYou took your answer back.")


def test_features_far_from_the_average_of_a_class_come_first_with_the_averages() -> None:
    examples = [
        ({"a": 0.0, "b": 1.0, "c": 5.0}, "den"),
        ({"a": 2.0, "b": 1.0, "c": 5.0}, "den"),
        ({"a": 1.0, "b": 9.0}, "hall"),
    ]
    x = {"t": "text", "c": 5, "a": 1.0, "b": 8.5}
    question = Question(request=label_request(x=x))
    text = printed(looks.features(view(question, averages=averages(*examples))))
    assert text.splitlines() == [
        "                     average  average",
        "feature  this event      den     hall",
        "b               8.5        1        9",
        "c                 5        5        -",
        "a                 1        1        1",
        "t              text        -        -",
    ]


def test_feature_that_never_varied_and_does_now_comes_first_of_all() -> None:
    found = averages(({"a": 1.0, "b": 0.0}, "den"), ({"a": 1.0, "b": 9.0}, "den"))
    assert found.order("k", {"b": 9.0, "a": 2.0}) == ["a", "b"]
    assert found.order("another", {"b": 9.0, "a": 2.0}) == ["b", "a"]


def test_averages_are_kept_for_so_many_keys_and_not_for_forgotten_ones() -> None:
    found = Averages(max_keys=2)
    for key in ("a", "b", "a", "c"):
        for line in [{"x": 1.0}]:
            found.learn(
                LabelledExample(
                    event_id="e", key=key, sequence=1, x=line, y="den", origin="asked",
                    learned_at=0.0,
                )
            )  # fmt: skip
    assert [found.mean(key, "den", "x") for key in "abc"] == [1.0, None, 1.0]
    found.forget("a")
    assert found.mean("a", "den", "x") is None


def test_example_that_was_taken_back_is_not_counted() -> None:
    assert averages(({"x": 1.0}, None)).mean("k", "den", "x") is None


def test_many_features_are_cut_and_it_says_how_to_see_more() -> None:
    question = Question(request=label_request(x={f"f{i}": i for i in range(30)}))
    text = printed(looks.features(view(question), most=10))
    assert text.splitlines()[10].startswith("f9 ")
    assert text.splitlines()[11:] == ["features 1 to 10 of 30; m: all"]


def test_narrow_terminal_shows_fewer_averages_rather_than_cut_numbers() -> None:
    x = {"a": -50.5, "b": -1234.0}
    found = averages(*((x, label) for label in ("den", "hall", "kitchen", "study")))
    choices = Choices().offer("k", ["den", "hall", "kitchen", "study"], [])
    shown = view(Question(request=label_request(x=x)), averages=found, choices=choices)
    for width, n_beside in ((70, 4), (40, 2), (20, 0), (8, 0)):
        text = printed(looks.features(shown), width)
        assert text.count("-50.5") == 1 + n_beside or width == 8
        assert ("…" in text) == (width == 8)


def test_averages_for_which_there_is_room_are_those_of_the_nearest_classes() -> None:
    labels = ["den", "hall", "kitchen", "study"]
    found = averages(*(({"a": 10.5 * n}, label) for n, label in enumerate(labels)))
    choices = Choices().offer("k", labels, [])
    shown = view(Question(request=label_request(x={"a": 31.0})), averages=found, choices=choices)
    assert printed(looks.features(shown), 40).splitlines()[1].split()[3:] == ["kitchen", "study"]


def test_event_without_features_says_so() -> None:
    assert printed(looks.features(view(Question(request=label_request(x={}))))) == "no features"


def test_labels_known_elsewhere_are_told_apart() -> None:
    choices = Choices().offer("k", ["den"], ["attic"])
    text = printed(looks.labels(view(Question(request=label_request()), choices=choices)))
    assert text.splitlines()[:2] == [
        "1 den",
        "known elsewhere: 2 attic",
    ]


def test_integer_and_text_labels_are_told_apart_in_a_challenge() -> None:
    choices = Choices().offer("k", [1, "1"], [])
    question = Question(request=challenge(given=1, suggested="1"))
    text = printed(looks.labels(view(question, choices=choices)))
    assert text.startswith('k keep 1   c change to "1"\n')


@given(width=st.integers(20, 100), data=st.data())
def test_no_label_is_torn_from_its_key_however_narrow_the_terminal(width: int, data: Any) -> None:
    words = st.lists(st.sampled_from(["den", "hall", "living", "room", "厨房"]), min_size=1)
    label = words.map(" ".join).filter(lambda text: cell_len(text) <= width - 4)
    labels = data.draw(st.lists(label, min_size=1, max_size=12, unique=True))
    choices = Choices().offer("k", labels, ["elsewhere"])
    text = printed(looks.labels(view(Question(request=label_request()), choices=choices)), width)
    lines = text.splitlines()
    assert all(cell_len(line) <= width for line in lines)
    entries = [f"{choice.character} {cut(str(choice.label))}" for choice in choices]
    for entry in [*entries, "n new label", "d don't know", "q quit"]:
        assert any(f"   {entry}   " in f"   {line}   ".replace(": ", "   ") for line in lines)


def test_nothing_from_outside_reaches_the_terminal_as_it_is() -> None:
    bad = "\x1b[2J[red]\x07"
    request = challenge(
        bad,
        key=bad,
        x={bad: bad},
        given=bad,
        suggested=bad + "x",
        annotator=bad,
        neighbours=(Neighbour(event_id=bad, x={bad: 1.0}, y=bad, distance=1.0),),
    )
    shown = view(
        Question(request=request),
        annotator=bad,
        choices=Choices().offer("k", [bad, bad + "x"], [bad + "y"]),
        trouble=bad,
    )
    text = printed(looks.whole(shown)) + printed(looks.status(shown))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert text.count("[red]") >= 6


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"n_open": 0}, "ann: nothing waits, 0 answers given"),
        ({"n_answered": 1}, "ann: 1 waits, 1 answer given"),
        ({"n_open": 7, "n_unsent": 2}, "ann: 7 wait, 0 answers given, 2 not sent yet"),
        ({"n_unsent": 1}, "ann: 1 waits, 0 answers given"),
        (
            {"n_unsent": 1, "trouble": "gone"},
            "ann: 1 waits, 0 answers given, 1 not sent yet\ngone; trying again",
        ),
        ({"n_read": 12}, "reading what was asked and answered so far: 12 records"),
        ({"trouble": "gone"}, "ann: 1 waits, 0 answers given\ngone; trying again"),
    ],
)
def test_status_tells_how_many_wait_and_what_is_wrong(fields: Any, words: str) -> None:
    assert printed(looks.status(view(None, **fields))) == words


def test_without_a_question_it_says_that_new_ones_appear() -> None:
    assert printed(looks.whole(view(None))) == "no question is open; new ones appear here"
