"""`streamgp forget CONFIG.toml KEY`: one person is gone from a deployment, the others stay."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from connectors.topics import Outgoing, Record
from connectors.wire.codec import encode
from connectors.wire.state_records import History, parts_of
from streamgp.apps.maintenance.forget import NOT_YET, Traces
from tests.helpers.small_deployment import COMMANDS, Small
from tests.helpers.topics import write

KEPT = (
    "these topics keep what they hold of this person until their retention time: events, "
    "predictions, requests, answers, dead-letters; the others until the broker compacts "
    "them: a day later, with the next record there"
)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    return Small(tmp_path, monkeypatch)


def with_people(small: Small) -> None:
    """Let a worker learn two labels of ann, one of anna and one of bob, and ask each again."""
    small.put(small.event("e1", "ann", y="hall"), small.event("e2", "ann", y="hall"))
    small.put(*(small.event("e1", key, y="hall") for key in ("anna", "bob")))
    small.put(*(small.event("e3", key) for key in ("ann", "anna", "bob")))
    small.work()


def left_of(small: Small, key: str) -> list[bytes]:
    """Return the keys of the records that still say something about a person."""
    found: dict[bytes, Record] = {}
    for record in small.records("state", "consensus"):
        if record.key is not None and parts_of(record.key)[0] == key:
            found[record.key] = record
    return [name for name, record in found.items() if record.value is not None]


def test_person_is_gone_once_the_command_returns(small: Small) -> None:
    with_people(small)
    others = {key: left_of(small, key) for key in ("anna", "bob")}
    with small.working():
        said = small.done("forget", "ann", "--yes")
        assert left_of(small, "ann") == []
    assert said == f"forgot 'ann': 2 labels and 1 record of state\n{KEPT}\n"
    assert {key: left_of(small, key) for key in others} == others
    assert all(others.values())


def test_person_who_comes_again_begins_with_a_learner_that_knows_nothing(small: Small) -> None:
    with_people(small)
    with small.working():
        small.done("forget", "ann", "--yes")
    small.put(small.event("e4", "ann"))
    small.work()
    last = [m for m in small.said("predictions") if m.key == "ann"][-1]
    assert (last.event_id, last.n_learned) == ("e4", 0)  # type: ignore[union-attr]


def test_person_whose_producers_choose_partitions_differently_is_gone_from_all(
    small: Small,
) -> None:
    with_people(small)
    event = encode(small.event("e4", "ann", y="den"))
    write(small.topics, Outgoing(topic="events", key=b"ann", value=event, partition=1))
    small.work()
    lines = [r for r in small.records("consensus") if (r.key or b"").startswith(b"ann\x1f")]
    assert {line.partition for line in lines} == {1, 2}
    with small.working():
        assert small.done("forget", "ann", "--yes").startswith("forgot 'ann': 3 labels and ")
        assert left_of(small, "ann") == []


def test_restarted_worker_does_not_know_the_person(small: Small) -> None:
    with_people(small)
    with small.working():
        small.done("forget", "ann", "--yes")
    small.work()
    history = History()
    for record in small.records("state", "consensus"):
        if record.partition == 2:
            history.take(record)
    assert set(history.parts("ann").values()) == {None}
    assert history.lines("ann") == []


def test_without_a_worker_it_is_done_when_one_runs(small: Small) -> None:
    with_people(small)
    result = small.call("forget", "ann", "--yes")
    assert (result.exit_code, result.stdout) == (
        NOT_YET,
        f"request sent: 'ann' will be forgotten when a worker runs; none is running now\n{KEPT}\n",
    )
    assert left_of(small, "ann")
    small.work()
    assert left_of(small, "ann") == []


def test_command_does_not_wait_for_ever(small: Small) -> None:
    with_people(small)
    link = small.topics.client(group="streamgp", instance="stopped", max_records=1)
    result = small.call("forget", "ann", "--yes", "--wait", "0.1")
    link.close()
    assert (result.exit_code, result.stdout) == (
        NOT_YET,
        "request sent: the worker has not forgotten 'ann' after 0.1 s; it will when it reads the "
        f"request\n{KEPT}\n",
    )


def test_forgetting_an_unknown_key_is_refused(small: Small) -> None:
    with_people(small)
    before = small.records("consensus")
    assert small.wrong("forget", "an", "--yes") == (
        "no worker of group streamgp has learned anything of the key 'an'; nothing was forgotten; "
        f"{KEPT}"
    )
    assert small.records("consensus") == before


def test_a_key_that_was_forgotten_is_unknown(small: Small) -> None:
    with_people(small)
    with small.working():
        small.done("forget", "ann", "--yes")
        assert "has learned anything of the key 'ann'" in small.wrong("forget", "ann", "--yes")


def test_no_key_is_forgotten_unless_the_user_confirms(small: Small) -> None:
    with_people(small)
    before = small.records("consensus", "state")
    text = small.done("forget", "ann", answer="n\n")
    assert "forget 'ann' (2 labels and 1 record of state) for good?" in text
    assert text.endswith("forgot nothing\n")
    assert small.records("consensus", "state") == before


def test_names_of_topics_are_those_of_the_configuration(small: Small) -> None:
    with_people(small)
    small.add('[topics]\nprefix = "rooms."\nanswers = "replies"\n')
    with small.working():
        said = small.done("forget", "ann", "--yes")
    assert "rooms.events, rooms.predictions, rooms.requests, rooms.replies, rooms.dead" in said


def test_one_learner_for_all_forgets_nobody(small: Small) -> None:
    small.add("[worker]\nkeyed = false\n")
    assert small.wrong("forget", "ann").endswith(
        "one learner serves all keys (worker.keyed = false), so no key can be removed from it; "
        "withdraw the person's labels one by one instead"
    )


@pytest.mark.parametrize(
    ("key", "flaw"),
    [
        ("", "KEY must have at least one character, got none"),
        ("ann\x1fe1\x1f0", "KEY must have no control characters"),
        ("a\udcff", "KEY must be valid Unicode, got 'a\\udcff'"),
        ("a" * 1025, "KEY must have at most 1024 characters, got 1025"),
    ],
)
def test_key_that_no_event_can_have_is_refused(small: Small, key: str, flaw: str) -> None:
    assert small.wrong("forget", key).startswith(flaw)


def test_broker_is_of_no_use_with_a_directory(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        COMMANDS, ["forget", str(tmp_path), "ann", "--broker", "file://here"]
    )
    assert result.exit_code == 2
    assert "--broker can be used only with CONFIG.toml, not with a directory" in result.stderr


def test_directory_of_topics_keeps_the_rest_for_good_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Small.in_directory(tmp_path, monkeypatch)
    with_people(small)
    result = small.call("forget", "ann", "--yes", "--broker", f"file://{tmp_path}/topics")
    assert (result.exit_code, result.stdout.splitlines()[1]) == (
        NOT_YET,
        "these topics keep what they hold of this person, as nothing in a directory expires: "
        "events, predictions, requests, answers, dead-letters; the others until a worker next "
        "starts",
    )
    small.work()
    small.work()  # at its start it removes what was forgotten, all but that it was
    assert [r.key for r in small.records("events") if r.key == b"ann"] == [b"ann"] * 3
    left = [r for r in small.records("state", "consensus") if (r.key or b"").startswith(b"ann\x1f")]
    assert left
    assert [r for r in left if r.value is not None] == []


# --- what counts as forgotten


def record(topic: str, name: str, value: bytes | None) -> Record:
    key = f"ann\x1f{name}".encode()
    return Record(topic=topic, partition=3, offset=0, key=key, value=value, at=0.0)  # type: ignore[arg-type]


def test_life_that_begins_after_forgetting_does_not_count() -> None:
    traces = Traces("ann")
    for found in (record("state", "head", b"1"), record("consensus", "e1\x1f0", b"1")):
        traces.take(found)
    assert (traces.n_labels, len(traces.left)) == (1, 2)
    assert traces.tell() == [Outgoing(topic="consensus", partition=3, key=b"ann", value=None)]
    traces.take(record("state", "events/1", b"1"))  # written before the worker heard of it
    traces.take(record("state", "head", None))
    traces.take(record("state", "head", b"2"))  # the person is there again
    assert [key for _, _, key in traces.left] == [b"ann\x1fe1\x1f0", b"ann\x1fevents/1"]
    traces.take(record("state", "events/1", None))
    traces.take(record("consensus", "e1\x1f0", None))
    assert traces.left == {}


def test_life_after_an_earlier_forgetting_counts() -> None:
    traces = Traces("ann")
    for value in (b"1", None, b"2"):
        traces.take(record("state", "head", value))
    assert traces.left == {("state", 3, b"ann\x1fhead"): None}


def test_others_whose_keys_begin_alike_do_not_count() -> None:
    traces = Traces("an")
    traces.take(record("state", "head", b"1"))
    assert traces.left == {}
