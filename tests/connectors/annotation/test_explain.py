"""Reasons in words, and features compared with the averages of classes, in closed forms."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from connectors.annotation.explain import (
    MAX_CLASSES,
    Averages,
    Shares,
    differing,
    feature_rows,
    percent,
    track,
    why,
)
from streamgp.base import Neighbour
from streamgp.interactive import LabelledExample, LabelRequest


def averages(*examples: tuple[dict[Any, Any], Any]) -> Averages:
    found = Averages()
    for n, (x, y) in enumerate(examples):
        found.learn(
            LabelledExample(event_id=f"e{n}", sequence=n, x=x, y=y, origin="asked", learned_at=0.0)
        )
    return found


def test_averages_are_those_of_the_labels_in_force():
    """Whatever was corrected, taken back, or read twice."""
    rng = random.Random(1)
    lines = []
    for n in range(300):
        event, y = rng.randrange(30), rng.choice(["den", "hall", "attic", None])
        x = {"light": 1e3 * event + 0.1, "noise": event % 3, "door": "open"}
        lines.append(
            LabelledExample(
                event_id=f"e{event}", sequence=n, revision=n, x=x, y=y, learned_at=0.0,
                origin="withdrawn" if y is None else "asked",
            )
        )  # fmt: skip
    lines += lines[-5:]
    found, last = Averages(), {line.event_id: line for line in lines}
    for line in lines:
        found.learn(line)
    left = averages(*((line.x, line.y) for line in last.values() if line.y is not None))
    for y in ("den", "hall", "attic"):
        for name in ("light", "noise"):
            assert found.mean(None, y, name) == pytest.approx(left.mean(None, y, name))
    for x in ({"light": 100.0, "noise": 2}, {"light": 29e3, "noise": 0}):
        assert found.order(None, x) == left.order(None, x)
        assert found.is_unlike_all(None, x) == left.is_unlike_all(None, x)
    for n, line in enumerate(last.values()):
        found.learn(replace(line, y=None, origin="withdrawn", sequence=400 + n))
    assert found.nearest(None, {"light": 1.0}, 3) == []
    assert found.order(None, {"noise": 1.0, "light": 1.0}) == ["noise", "light"]


def request(reason: str = "SkepticalAsk", **x: Any) -> LabelRequest:
    return LabelRequest(
        request_id="e/label", event_id="e", x=x, reason=reason, score=0.3, threshold=0.1,
        requested_at=0.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "shares", "is_new", "code", "text"),
    [
        ("SkepticalAsk", None, False, "unsure", "the prediction is uncertain"),
        ("SkepticalAsk", None, True, "new", "nothing like this was seen before"),
        (
            "SkepticalAsk",
            Shares((), 0, None),
            False,
            "first",
            "nothing was known when this was asked",
        ),
        ("SkepticalAsk", Shares((("a", 0.97),), 2, "a"), False, "random", "a random check"),
        ("BestVersusSecond", Shares((("a", 0.5), ("b", 0.3)), 3, "a"), False, "two",
         "not sure: a 50 %, b 30 %"),
        ("Entropy", Shares((("a", 0.5),), 1, "a"), False, "several", "not sure: a 50 %"),
        ("RandomAsk", Shares((("a", 0.5),), 1, "a"), True, "random", "a random check"),
        ("AlwaysAsk", None, True, "every", "every event is asked about"),
        ("MyRule", None, False, "rule", "a rule of this deployment asks"),
    ],
)  # fmt: skip
def test_a_reason_goes_by_what_is_known(
    reason: str, shares: Shares | None, is_new: bool, code: str, text: str
) -> None:
    found = why(request(reason), shares, is_new=is_new)
    assert (found["code"], found["text"]) == (code, text)


def test_a_share_is_never_shown_as_none_or_all() -> None:
    assert [percent(share) for share in (0.0, 0.004, 0.495, 1.0)] == ["1 %", "1 %", "50 %", "99 %"]


def test_features_that_tell_classes_apart_come_first() -> None:
    # Variance between the classes as a share of all: "apart" 1, "some" 1/2, "same" 0.
    found = averages(
        ({"same": 1.0, "some": 0.0, "apart": 1.0}, "den"),
        ({"same": 3.0, "some": 2.0, "apart": 1.0}, "den"),
        ({"same": 1.0, "some": 2.0, "apart": 5.0}, "hall"),
        ({"same": 3.0, "some": 4.0, "apart": 5.0}, "hall"),
    )
    asked = request(text="t", same=2.0, some=9.0, apart=1.0)
    rows = feature_rows(asked, found)
    assert [row["name"] for row in rows] == ["apart", "some", "same", "text"]
    assert rows[0] == {
        "name": "apart", "value": 1.0, "mean_by_class": [["den", 1.0], ["hall", 5.0]],
    }  # fmt: skip


def test_an_event_far_from_every_class_is_new() -> None:
    # Both classes have the standard deviation 1; 4 of them away is not yet far.
    examples = [
        ({"a": m + d}, y) for m, y in ((0.0, "den"), (20.0, "hall")) for d in (-1, 1, -1, 1)
    ]
    found = averages(*examples)
    unlike = [x for x in range(-6, 27) if found.is_unlike_all(None, {"a": float(x)})]
    assert unlike == [-6, -5, *range(5, 16), 25, 26]
    assert not found.is_unlike_all("another", {"a": 1e9})
    assert not found.is_unlike_all(None, {"text": "t"})


def test_an_event_is_measured_by_the_spread_of_all_where_a_class_has_none() -> None:
    found = averages(*(({"a": m}, y) for m, y in 3 * [(0.0, "den"), (20.0, "hall")]))
    # The standard deviation of all is between 10 and 11; 4 of them away is not yet far.
    unlike = [x for x in (-50, -30, 5, 10, 50, 70) if found.is_unlike_all(None, {"a": float(x)})]
    assert unlike == [-50, 70]


def test_features_equal_in_all_examples_are_left_out() -> None:
    x = {"a": 1, "b": 2.0, "c": "t"}
    near = [
        Neighbour(event_id="e1", x={"a": 1.0, "b": 2.0, "c": "t"}, y="den", distance=0.0),
        Neighbour(event_id="e2", x={"a": 1, "b": 2.5}, y="den", distance=0.0),
    ]
    assert differing(x, near, ["a", "b", "c"]) == ["b", "c"]
    assert differing(x, near[:1], ["a", "b", "c"]) == []


@pytest.mark.parametrize(
    ("x", "excerpt", "found"),
    [
        ({"latitude": 1.0, "longitude": 2.0}, None, [[1.0, 2.0]]),
        ({"LAT": 1, "Lon": 2}, {"acc": [1.0]}, [[1, 2]]),
        ({"lat": 91.0, "lon": 2.0}, None, None),
        ({"lat": True, "lon": 2.0}, None, None),
        ({"lat": 1.0}, {"lon": [1.0]}, None),
        ({}, {"lat": [1.0, 99.0, 3.0], "lng": [4.0, 5.0, 6.0]}, [[1.0, 4.0], [3.0, 6.0]]),
        ({}, {"lat": [1.0, None, 3.0], "lng": [4.0, 5.0, 6.0]}, [[1.0, 4.0], [3.0, 6.0]]),
    ],
)
def test_a_track_needs_two_channels_or_features_within_their_bounds(
    x: Any, excerpt: Any, found: Any
) -> None:
    assert track(x, excerpt) == found


def test_averages_of_the_classes_nearest_to_the_event_are_shown() -> None:
    found = averages(*(({"a": float(i)}, f"c{i:02}") for i in range(20)))
    assert found.nearest(None, {"a": 11.1}, 3) == ["c10", "c11", "c12"]
    [row] = feature_rows(request(a=0.0), found)
    assert row["mean_by_class"] == [[f"c{i:02}", float(i)] for i in range(MAX_CLASSES)]
