"""Arguments that the methods of some learners accept in addition to the usual ones."""

import pytest

from streamgp.common import label_context
from streamgp.common.label_context import AcceptedOptions, LabelContext
from streamgp.interactive import Answer, Event, InteractiveLoop

ALL = LabelContext(
    annotator="ann",
    std=0.5,
    privileged={"s": 1.0},
    given_privileged={},
    asked=False,
    asked_at=3.0,
    event_id="e",
    n_since=2,
)


class Learner:
    """Takes some of a context in each of its methods."""

    def challenge_one(self, x, y, *, annotator=None, event_id=None, std=None):
        pass

    def probability_wrong_one(self, x, y, *, annotator=None, privileged=None, std=None):
        pass

    def settle_one(
        self, x, y, *, given, challenged, asked=True, given_privileged=None, n_since=None, **_
    ):
        pass

    def relabel_one(self, event_id, y):
        pass

    def note_query(self, decision, *, asked, now, event_id=None):
        pass

    def note_unanswered(self, now, asked_at=None):
        pass


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("challenge_one", {"std": 0.5}),
        ("probability_wrong_one", {"std": 0.5, "privileged": {"s": 1.0}}),
        ("settle_one", {"given_privileged": {}, "asked": False, "n_since": 2}),
        ("relabel_one", {}),
        ("note_query", {"event_id": "e"}),
        ("note_unanswered", {"asked_at": 3.0}),
    ],
)
def test_a_method_is_given_what_it_names_and_no_more(method, expected):
    assert AcceptedOptions(Learner()).of(method, ALL) == expected


def test_what_is_not_known_is_not_said():
    assert AcceptedOptions(Learner()).of("settle_one", LabelContext(std=0.5)) == {}


def test_signatures_are_looked_at_once_for_each_learner(monkeypatch):
    from streamgp import isgp

    loop = InteractiveLoop(isgp(seed=1), expires_after_s=10.0)

    def looked(_function):
        raise AssertionError("a signature was looked at after the learner was handed over")

    monkeypatch.setattr(label_context, "parameters", looked)
    loop.on_event(Event(event_id="e", x={"f": 1.0}, occurred_at=0.0), 0.0)
    answer = Answer(answer_id="a", request_id="e/label", event_id="e", y="hall", answered_at=1.0)
    [line] = loop.on_answer(answer, 1.0)
    assert line.y == "hall"
    loop.on_event(Event(event_id="f", x={"f": 9.0}, occurred_at=2.0), 2.0)
    loop.on_time(100.0)
