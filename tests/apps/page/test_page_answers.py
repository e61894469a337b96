"""What the page has accepted is in the topic, once, under the right name; whatever happens."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from http.client import HTTPException
from pathlib import Path
from typing import Any, cast

import pytest

from connectors.embedded.topics import EmbeddedTopics
from connectors.memory import MemoryTopics
from connectors.topics import ALL_TOPICS, Outgoing, Topics
from connectors.wire.inbound import read
from connectors.wire.outbound import Outbound
from connectors.wire.signatures import Signatures
from streamgp.apps.page import live
from streamgp.apps.page.invites import Invites, Person
from streamgp.apps.page.server import PageSettings
from streamgp.apps.page.streams import PROGRESS_S, Herald, StreamSource
from streamgp.interactive.messages import MORE_USEFUL, Answer, Cancel
from streamgp.interactive.people import DEFAULT_PEOPLE, People
from tests.helpers.deskwork import Broken
from tests.helpers.kafka_cases import PATIENT
from tests.helpers.messages import challenge
from tests.helpers.page_scene import PageScene
from tests.helpers.page_server import Browser, Served, answers, events_of, request, write
from tests.helpers.topics import everything, wait_until

N_PEOPLE, N_QUESTIONS = 20, 200


def kafka_topics(request: pytest.FixtureRequest) -> Topics:
    from connectors.kafka.topics import KafkaTopics, Timeouts

    prefix = request.getfixturevalue("kafka_prefix")
    return KafkaTopics(
        request.getfixturevalue("kafka"),
        names={name: prefix + name for name in ALL_TOPICS},
        partitions=2,
        replication=1,
        timeouts=Timeouts(**PATIENT),
    )


@pytest.fixture(params=["memory", "embedded", "kafka"])
def topics(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Topics]:
    made: Topics
    if request.param == "memory":
        made = MemoryTopics()
    elif request.param == "embedded":
        made = EmbeddedTopics(tmp_path / "topics")
    else:
        made = kafka_topics(request)
    made.create()
    with closing(made):
        yield made


@pytest.fixture
def served() -> Iterator[Served]:
    topics = MemoryTopics()
    write(topics, request("e1", at=1.0), request("e2", at=2.0), request("e3", at=3.0))
    with Served(topics) as served:
        yield served


@pytest.mark.parametrize(
    "topics",
    ["embedded", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("memory", "kafka"))],
    indirect=True,
)
def test_twenty_people_answer_two_hundred_questions_each_once(
    topics: Topics, tmp_path: Path
) -> None:
    invites = Invites(tmp_path / "invites.json")
    write(topics, *(request(f"e{n}") for n in range(N_QUESTIONS)))
    took_s: list[float] = []
    given: list[tuple[str, str]] = []

    def work(name: str, browser: Browser) -> None:
        n = 0
        card = browser.get("/api/next").body["card"]
        while card is not None:
            n += 1
            start = time.perf_counter()
            reply = browser.answer(card["id"], f"label of {name}", f"a{n}")
            took_s.append(time.perf_counter() - start)
            assert reply.status == 200
            given.append((card["event_id"], name))
            card = reply.body["next"]

    with Served(topics, invites=invites) as served:
        people = {}
        for name in (f"person {n}" for n in range(N_PEOPLE)):
            people[name] = served.browser()
            people[name].join(invites.invite(name))
        threads = [threading.Thread(target=work, args=each) for each in people.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = answers(topics)
    assert Counter(answer.event_id for answer in found) == Counter(
        f"e{n}" for n in range(N_QUESTIONS)
    )
    assert sorted((answer.event_id, answer.annotator) for answer in found) == sorted(given)
    assert all(answer.y == f"label of {answer.annotator}" for answer in found)


def test_the_same_answer_again_counts_once_and_another_is_refused(served: Served) -> None:
    browser = served.browser()
    first = browser.answer("k/e1/label", "hall", "a1", note="as said", flag=True)
    assert (first.status, first.body["accepted"], first.body["again"]) == (200, True, False)
    assert first.body["next"]["event_id"] == "e2"
    assert first.body["ahead"]["event_id"] == "e3"
    again = browser.answer("k/e1/label", "hall", "a1", note="as said", flag=True)
    assert (again.status, again.body["again"]) == (200, True)
    for other in (
        browser.answer("k/e1/label", "den", "a1", note="as said", flag=True),
        browser.answer("k/e1/label", "hall", "a1"),
        browser.answer("k/e2/label", "hall", "a1", note="as said", flag=True),
    ):
        assert (other.status, other.body["error"]) == (409, "different_body")
    gone = browser.answer("k/e1/label", "hall", "a2")
    assert (gone.status, gone.body["error"]) == (409, "card_gone")
    [answer] = answers(served.topics)
    assert (answer.y, answer.annotator, answer.flag, answer.note) == (
        "hall",
        "ann",
        True,
        "as said",
    )


def test_a_server_that_starts_anew_knows_what_was_answered(served: Served) -> None:
    assert served.browser().answer("k/e1/label", "hall", "a1").status == 200
    with Served(served.topics) as other:
        browser = other.browser()
        assert browser.answer("k/e1/label", "hall", "a1").body["again"]
        assert browser.answer("k/e1/label", "den", "a1").status == 409
        [past] = browser.get("/api/history").body["history"]
        assert (past["answer_id"], past["label"], past["can_change"]) == ("a1", "hall", True)
    assert len(answers(served.topics)) == 1


def test_an_answer_is_taken_back_changed_and_renamed(served: Served) -> None:
    browser = served.browser()
    browser.answer("k/e1/label", "hall", "a1")
    undone = browser.post("/api/answers/a1/undo", {})
    assert undone.status == 200
    assert undone.body["next"]["event_id"] == "e1"
    assert browser.post("/api/answers/a1/undo", {}).body["again"]
    browser.answer("k/e1/label", "halll", "a2")
    assert browser.post("/api/answers/a2/revise", {"label": "den"}).status == 200
    assert browser.post("/api/answers/a2/revise", {}).body["error"] == "bad_body"
    renamed = browser.post("/api/labels/rename", {"key": "k", "old": "den", "new": "study"})
    assert (renamed.status, renamed.body["changed"]) == (200, 1)
    assert [answer.y for answer in answers(served.topics)] == [
        "hall",
        None,
        "halll",
        "den",
        "study",
    ]
    day = "/api/timeline?key=k&day=1970-01-01&tz=Europe/Berlin"
    [moment] = browser.get(day).body["moments"]
    assert (moment["event_id"], moment["label"], moment["mine"]) == ("e1", "study", True)
    assert browser.get("/api/timeline?key=k&day=x").body["error"] == "bad_day"
    assert browser.get("/api/timeline?key=k&day=1970-01-01&tz=Nowhere").status == 400


def test_nobody_fills_the_topic_by_changing_one_label_again_and_again(served: Served) -> None:
    browser, most = served.browser(), DEFAULT_PEOPLE.max_corrections
    browser.answer("k/e1/label", "hall", "a0")
    for n in range(most):
        reply = browser.post(f"/api/answers/a{n}/undo", {})
        if reply.status != 200:
            break
        assert browser.answer("k/e1/label", "hall", f"a{n + 1}").status == 200
    assert (reply.status, reply.body["error"]) == (409, "cannot_undo")
    [past] = browser.get("/api/history").body["history"]
    assert past["why_not"]["code"] == "too_often"
    assert len(answers(served.topics)) <= most + 1


def test_response_time_is_noted_unless_it_is_not_wanted() -> None:
    for settings, known in (
        (PageSettings(), {"response_s": 2.5, "confidence": 0.75}),
        (PageSettings(notes_response_time=False), {"confidence": 0.75}),
    ):
        topics = MemoryTopics()
        write(topics, request("e1"))
        with Served(topics, settings=settings) as served:
            browser = served.browser()
            browser.answer("k/e1/label", "hall", "a1", response_s=2.5, confidence=4)
        assert answers(topics)[0].privileged == known


def test_skipped_cards_come_last_and_those_of_others_not_at_all(tmp_path: Path) -> None:
    invites = Invites(tmp_path / "invites.json")
    topics = MemoryTopics()
    write(topics, request("e1", at=1.0), request("e2", at=2.0), request("e3", at=3.0))
    with Served(topics, invites=invites) as served:
        ann, ben = served.browser(), served.browser()
        ann.join(invites.invite("ann"))
        ben.join(invites.invite("ben"))
        assert ann.card()["event_id"] == "e1"
        assert ben.card()["event_id"] == "e2"
        skipped = ann.post("/api/skip", {"card": "k/e1/label"})
        assert skipped.body["next"]["event_id"] == "e3"
        skipped = ann.post("/api/skip", {"card": "k/e3/label"})
        assert skipped.body["next"]["event_id"] == "e1"  # there is nothing else for her
        assert ann.post("/api/skip", {"card": "k/gone/label"}).status == 200
        # What two say about one question: the first counts.
        assert ben.answer("k/e1/label", "hall", "b1").status == 200
        assert ann.answer("k/e1/label", "den", "a1").body["error"] == "card_gone"


def test_stream_tells_the_progress_again_after_a_reply_with_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Source:
        def progress(self, _person: Person) -> dict[str, Any]:
            return {"waiting": 2}

        def others(self, _person: Person) -> list[str]:
            return []

        def may_stay(self, _person: Person) -> bool:
            return True

        def upcoming(self, _person: Person, _after: str | None) -> None: ...

        def stats_mark(self) -> None: ...

    herald, ann = Herald(cast(StreamSource, Source())), Person(name="ann")
    stream = herald.open(ann)
    told: list[str] = []
    monkeypatch.setattr(stream, "tell", lambda kind, _data: told.append(kind))

    def look_later() -> None:
        stream.progress_at = -PROGRESS_S
        herald.tell_all()

    look_later()
    look_later()
    assert told == ["others", "progress"]
    # A question was withdrawn, which a reply has told, and another one asked since.
    herald.gave(ann)
    look_later()
    assert told == ["others", "progress", "progress"]


def test_streams_tell_of_new_and_gone_cards_and_of_progress(tmp_path: Path) -> None:
    invites = Invites(tmp_path / "invites.json")
    topics = MemoryTopics()
    with Served(topics, invites=invites) as served:
        ann, ben = served.browser(), served.browser()
        ann.join(invites.invite("ann"))
        ben.join(invites.invite("ben"))
        import http.client

        with closing(
            http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
        ) as connection:
            connection.request("GET", "/api/stream", headers={"Cookie": ann.cookie or ""})
            events = events_of(connection.getresponse())

            def next_of(kind: str) -> Any:
                return next(data for found, data in events if found == kind)

            assert next_of("progress")["waiting"] == 0
            write(topics, request("e1"))
            assert next_of("card") == {"id": "k/e1/label"}
            assert ann.card()["id"] == "k/e1/label"
            assert ben.answer("k/e1/label", "hall", "b1").status == 200
            assert next_of("gone") == {"id": "k/e1/label"}
            write(topics, request("e2"))
            assert next_of("card") == {"id": "k/e2/label"}
            assert ann.card()["id"] == "k/e2/label"
            write(topics, Cancel(request_id="e2/label", key="k", why="it is clear", at=2000.0))
            assert next_of("gone") == {"id": "k/e2/label", "why": "it is clear"}
            write(topics, request("e3"))
            assert next_of("card") == {"id": "k/e3/label"}
            assert ann.card()["id"] == "k/e3/label"
            why = f"{MORE_USEFUL}, about event 'e4'"
            write(topics, Cancel(request_id="e3/label", key="k", why=why, at=2000.0))
            assert next_of("gone") == {"id": "k/e3/label", "why": why, "code": "more_useful"}


def test_while_the_broker_is_away_nothing_is_confirmed_and_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "SAVE_S", 0.3)
    topics = MemoryTopics()
    write(topics, request("e1"), request("e2"))
    broken = Broken(topics)
    with Served(broken) as served:  # type: ignore[arg-type]
        browser = served.browser()
        broken.writes_fail = True
        for _ in range(2):
            reply = browser.answer("k/e1/label", "hall", "a1")
            assert (reply.status, reply.body["error"]) == (503, "no_broker")
            assert int(reply.headers["retry-after"]) >= 1
        assert browser.get("/healthz").status == 503
        assert browser.get("/api/next").body["progress"]["unsent"] == 1
        broken.reads_fail = True
        wait_until(lambda: served.live.trouble is not None)
        broken.writes_fail = broken.reads_fail = False
        wait_until(lambda: browser.get("/healthz").status == 200)
        assert browser.answer("k/e1/label", "hall", "a1").body["again"]
        assert browser.card()["event_id"] == "e2"
    assert [answer.event_id for answer in answers(topics)] == ["e1"]


def test_an_answer_about_a_forgotten_key_stays_forgotten_after_an_outage() -> None:
    topics = MemoryTopics()
    write(topics, request("e1"))
    broken = Broken(topics)
    with Served(broken) as served:  # type: ignore[arg-type]
        browser = served.browser()
        assert browser.answer("k/e1/label", "hall", "a1").status == 200
        before = served.live.desk
        assert [past.answer_id for past in before.history("ann", time.time())] == ["a1"]
        with closing(topics.writer("forget")) as writer:
            writer.send(Outgoing(topic="consensus", partition=0, key=b"k", value=None))
            writer.flush()
        wait_until(lambda: not before.history("ann", time.time()))
        broken.reads_fail = True
        wait_until(lambda: served.live.trouble is not None)
        broken.reads_fail = False
        wait_until(lambda: served.live.desk is not before)
        assert served.live.desk.history("ann", time.time()) == []
        assert served.live.desk.timeline.classes("k") == []


@pytest.mark.parametrize("fails", ["reads_fail", "writes_fail"])
def test_the_log_says_once_why_the_broker_is_away_and_that_it_is_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fails: str
) -> None:
    monkeypatch.setattr(live, "SAVE_S", 0.3)
    topics = MemoryTopics()
    write(topics, request("e1"))
    broken = Broken(topics)

    def logged() -> list[tuple[str, str | None]]:
        lines = [(line.message, line.__dict__["fields"].get("reason")) for line in caplog.records]
        return [line for line in lines if line[0] != "refused"]

    with (
        caplog.at_level(logging.INFO, "streamgp.page"),
        Served(broken) as served,  # type: ignore[arg-type]
    ):
        browser = served.browser()
        setattr(broken, fails, True)
        if fails == "writes_fail":
            browser.answer("k/e1/label", "hall", "a1")
        wait_until(logged)
        wait_until(lambda: browser.get("/healthz").status == 503)
        setattr(broken, fails, False)
        wait_until(lambda: browser.get("/healthz").status == 200)
        wait_until(lambda: len(logged()) > 1)
    assert logged() == [("broker-away", "the broker does not answer"), ("broker-back", None)]


def test_a_question_waits_for_quiet_hours_and_limits(served: Served) -> None:
    browser = served.browser()
    wanted = {"quiet_from": None, "quiet_to": None, "per_day": 1, "gap_s": None}
    put = browser.send("PUT", "/api/preferences", {**wanted, "time_zone": "Europe/Berlin"})
    assert put.status == 200
    assert browser.get("/api/me").body["preferences"]["per_day"] == 1
    # A browser would go on to it at once.
    assert browser.get("/api/next").body["ahead"] is None
    reply = browser.answer("k/e1/label", "hall", "a1").body
    assert (reply["next"], reply["ahead"], reply["pause"]["why"]) == (None, None, "per_day")
    assert browser.get("/api/next").body["card"] is None
    bad = browser.send("PUT", "/api/preferences", {**wanted, "time_zone": "Nowhere"})
    assert (bad.status, bad.body["error"]) == (400, "bad_preferences")
    assert browser.send("PUT", "/api/preferences", {"per_day": -1}).status == 400
    browser.send("PUT", "/api/preferences", {"gap_s": 0.0})
    assert browser.card()["event_id"] == "e2"


def test_a_hundred_answers_survive_a_server_that_is_killed(tmp_path: Path) -> None:
    n_questions = N_QUESTIONS // 2
    scene = PageScene(tmp_path)
    scene.write(*(request(f"e{n}") for n in range(n_questions)))
    scene.start()
    browser = Browser(int(scene.url.rpartition(":")[2]))
    n_kills = 0
    try:
        for n in range(n_questions):
            killer = None
            if n % 40 == 17:
                killer = threading.Timer(0.004 * (n_kills + 1), scene.kill)
                killer.start()
                n_kills += 1
            while True:
                try:
                    reply = browser.answer(f"k/e{n}/label", f"l{n % 7}", f"a{n}")
                except (OSError, HTTPException):
                    reply = None
                if reply is not None and reply.status == 200:
                    break
                assert reply is None or reply.status == 503
                if killer is not None:
                    killer.join()
                    scene.start()
                    killer = None
            if killer is not None:  # it was answered before; the next ones find no process
                killer.join()
                scene.start()
    finally:
        scene.close()
    found = scene.answers()
    assert [answer.event_id for answer in found] == [f"e{n}" for n in range(n_questions)]
    assert [answer.y for answer in found] == [f"l{n % 7}" for n in range(n_questions)]
    assert n_kills == 3


def test_a_failure_of_the_streams_ends_the_page(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ArithmeticError

    monkeypatch.setattr(Herald, "tell_all", fail)
    wait_until(lambda: not served.is_running)
    assert isinstance(served.live.failure, ArithmeticError)


def test_a_failure_beside_the_requests_ends_the_page_and_tells_where(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ArithmeticError("a label of hers")

    monkeypatch.setattr(served.live.desk, "take", fail)
    write(served.topics, request("e4"))
    wait_until(lambda: served.live.has_failed)
    assert isinstance(served.live.failure, ArithmeticError)
    wait_until(lambda: not served.is_running)


def test_the_truth_stands_on_cards_only_where_the_server_knows_it() -> None:
    topics = MemoryTopics()
    write(topics, request("e1", at=1.0), request("e2", at=2.0))
    with Served(topics) as served:
        found = served.browser().get("/api/next").body
        assert "truth" not in found["card"]
        assert "truth" not in found["ahead"]
    rooms = {"e1": "hall"}
    with Served(topics, settings=PageSettings(truth=rooms.get)) as served:
        browser = served.browser()
        found = browser.get("/api/next").body
        assert (found["card"]["truth"], found["ahead"]["truth"]) == ("hall", None)
        assert browser.get("/api/card/k%2Fe1%2Flabel").body["card"]["truth"] == "hall"
        assert browser.answer("k/e1/label", "hall", "a1").body["next"]["truth"] is None


def test_a_challenge_is_for_the_annotator_of_its_label_and_for_supervisors(tmp_path: Path) -> None:
    invites, topics = Invites(tmp_path / "invites.json"), MemoryTopics()
    write(topics, challenge("e1", key="k", at=time.time(), annotator="ann"))
    people = People(supervisors=frozenset(["eve"]))
    keep = {"card": "k/e1/challenge/1", "answer_id": "1", "action": "keep"}
    with Served(topics, invites=invites, people=people) as served:
        browsers = [served.browser() for _ in range(3)]
        for browser, name in zip(browsers, ("bob", "ann", "eve"), strict=True):
            browser.join(invites.invite(name))
        bob, ann, eve = browsers
        assert ann.card()["id"] == keep["card"]
        assert bob.get("/api/next").body["card"] is None
        assert bob.get("/api/next").body["progress"]["waiting"] == 0
        for action in ("keep", "change", "decline"):
            refused = bob.post("/api/answers", {**keep, "action": action})
            assert (refused.status, refused.body["error"]) == (409, "card_gone")
        assert eve.post("/api/answers", keep).status == 200
    assert [(given.annotator, given.y) for given in answers(topics)] == [("eve", "den")]


def test_the_page_signs_what_is_said_to_it_and_believes_nothing_that_is_not_signed(
    topics: Topics,
) -> None:
    signatures = Signatures({"ann": [b"a" * 32]}.get)
    write(topics, request("e1", at=1.0))
    forged = Answer(
        answer_id="f", event_id="e1", request_id="e1/label", key="k", y="den", annotator="ann",
        answered_at=time.time(),
    )  # fmt: skip
    with closing(topics.writer("forger")) as writer:
        writer.send(Outbound("/forger", keyed=True).message(forged, None))
    with Served(topics, signatures=signatures) as served:
        ann = served.browser()
        assert ann.answer(ann.card()["id"], "hall", "1").status == 200
        assert ann.post("/api/answers/1/undo", {}).status == 200
    records = everything(topics, "answers")
    read_back = [read(record, keyed=True, signatures=signatures) for record in records]
    assert [getattr(each, "fault", None) for each in read_back] == ["unauthorised", None, None]
    assert [getattr(each, "y", None) for each in read_back] == [None, "hall", None]


def test_who_has_no_key_any_more_answers_nothing_and_keeps_nobody_else_from_answering(
    tmp_path: Path,
) -> None:
    keys = {"ann": [b"a" * 32], "bob": [b"b" * 32]}
    topics, invites = MemoryTopics(), Invites(tmp_path / "invites.json")
    write(topics, request("e1"))
    with Served(topics, invites=invites, signatures=Signatures(keys.get)) as served:
        ann, bob = served.browser(), served.browser()
        ann.join(invites.invite("ann"))
        bob.join(invites.invite("bob"))
        card = ann.card()["id"]
        del keys["ann"]
        rename = {"key": "k", "old": "hall", "new": "den"}
        for refused in (
            ann.answer(card, "hall", "1"),
            ann.post("/api/answers/1/undo", {}),
            ann.post("/api/answers/1/revise", {"label": "den"}),
            ann.post("/api/labels/rename", rename),
        ):
            assert (refused.status, refused.body["error"]) == (401, "no_token")
        keys["ann"] = [b"c" * 32]
        assert ann.answer(card, "hall", "1").status == 200
        del keys["ann"]
        assert bob.get("/api/next").body["progress"]["unsent"] == 0
        write(topics, request("e2"))
        assert ann.card()["id"] == "k/e2/label"
        assert ann.answer("k/e2/label", "hall", "2").status == 401
        assert bob.answer("k/e2/label", "hall", "3").status == 200
    assert [(given.annotator, given.event_id) for given in answers(topics)] == [
        ("ann", "e1"),
        ("bob", "e2"),
    ]


def test_those_concerned_are_told_whose_answers_are_set_aside(tmp_path: Path) -> None:
    topics, invites = MemoryTopics(), Invites(tmp_path / "invites.json")
    topics.create()
    names = ("ann", "eve", "zoe")
    settings = PageSettings(supervisors=frozenset(["zoe"]))

    def told(browser: Browser) -> dict[str, Any]:
        found = browser.get("/api/next").body
        return {"is_asked": found["card"] is not None, **found["progress"]["set_aside"]}

    with Served(topics, invites=invites, settings=settings) as served:
        browsers = {name: served.browser() for name in names}
        for name, browser in browsers.items():
            browser.join(invites.invite(name))
        only_k = served.browser()
        only_k.join(invites.invite("eva", key="k"))
        only_another = served.browser()
        only_another.join(invites.invite("fay", key="another"))
        write(topics, request("e1", key="k"))
        first = browsers["eve"].card()
        body = {"card": first["id"], "answer_id": "1", "action": "label", "label": "hall"}
        assert browsers["eve"].post("/api/answers", body).status == 200
        write(topics, replace(request("e2", key="k"), excluded=("eve", "eva", "fay")))
        wait_until(lambda: told(browsers["zoe"])["of"])
        assert told(browsers["eve"]) == {"is_asked": False, "mine": "all", "of": []}
        assert told(only_k) == {"is_asked": False, "mine": "all", "of": []}
        assert told(browsers["zoe"]) == {
            "is_asked": True,
            "mine": None,
            "of": ["eva", "eve", "fay"],
        }
        assert told(only_another) == {"is_asked": False, "mine": None, "of": []}
        assert told(browsers["ann"]) == {"is_asked": False, "mine": None, "of": []}  # leased
        [past] = browsers["eve"].get("/api/history").body["history"]
        assert (past["can_change"], past["why_not"]["code"]) == (False, "set_aside")
        undo = browsers["eve"].post("/api/answers/1/undo", {})
        revise = browsers["eve"].post("/api/answers/1/revise", {"label": "den"})
        assert [(reply.status, "set aside" in reply.body["what"]) for reply in (undo, revise)] == [
            (409, True)
        ] * 2
        write(topics, request("e9", key="another"))
        wait_until(lambda: told(browsers["eve"])["mine"] == "some")
        assert told(only_k)["mine"] == "all"
        write(topics, request("e3", key="k"))  # heard again
        wait_until(lambda: not told(browsers["zoe"])["of"])
        assert told(browsers["eve"]) == {"is_asked": True, "mine": None, "of": []}
    assert len(answers(topics)) == 1


def test_a_reserve_is_of_the_key_of_the_invite_and_only_without_limits(tmp_path: Path) -> None:
    invites, topics = Invites(tmp_path / "invites.json"), MemoryTopics()
    write(topics, request("e1"), request("e2"), request("e3", key="other"))
    with Served(topics, invites=invites) as served:
        browser = served.browser()
        browser.join(invites.invite("ann", key="k"))

        def reserve() -> list[str]:
            return [card["event_id"] for card in browser.get("/api/reserve").body["cards"]]

        assert sorted(reserve()) == ["e1", "e2"]
        for limit in ({"per_day": 5}, {"gap_s": 10.0}):
            assert browser.send("PUT", "/api/preferences", limit).status == 200
            assert reserve() == []
            assert browser.get("/api/next").body["ahead"] is None
        assert browser.send("PUT", "/api/preferences", {}).status == 200
        assert len(reserve()) == 2
        assert browser.get("/api/next").body["ahead"] is not None


def test_a_supervisor_sees_the_answers_of_others_and_takes_one_back(tmp_path: Path) -> None:
    invites, topics = Invites(tmp_path / "invites.json"), MemoryTopics()
    write(topics, request("e1"), request("e2"), request("e3", key="other"))
    people = People(supervisors=frozenset(["eve", "eva"]))
    settings = PageSettings(supervisors=people.supervisors)
    with Served(topics, invites=invites, people=people, settings=settings) as served:
        browsers = {name: served.browser() for name in ("ann", "bob", "eve")}
        for name, browser in browsers.items():
            browser.join(invites.invite(name))
        ann, bob, eve = browsers.values()
        eva = served.browser()
        eva.join(invites.invite("eva", key="other"))
        ann.answer("k/e1/label", "hall", "c/1")
        ann.post("/api/answers", {"card": "k/e2/label", "answer_id": "2", "action": "decline"})
        bob.answer("other/e3/label", "den", "1")
        eve_sees = eve.get("/api/others").body["answers"]
        assert [(one["annotator"], one["label"], one["can_change"]) for one in eve_sees] == [
            ("bob", "den", True), ("ann", "hall", True),
        ]  # fmt: skip
        assert eva.get("/api/others").body["answers"] == eve_sees[:1]
        named = {name: eve_sees[1][name] for name in ("annotator", "answer_id")}
        for browser, body, status, error in (
            (bob, named, 403, "no_supervisor"),
            (ann, named, 403, "no_supervisor"),
            (eva, named, 409, "cannot_undo"),
            (eve, {**named, "annotator": "bob"}, 409, "cannot_undo"),
            (eve, {**named, "answer_id": "c/1"}, 409, "cannot_undo"),
            (eve, {**named, "key": "k"}, 400, "bad_body"),
        ):
            refused = browser.post("/api/others/undo", body)
            assert (refused.status, refused.body["error"]) == (status, error)
        assert bob.get("/api/others").body["error"] == "no_supervisor"
        assert len(answers(topics)) == 3
        assert [eve.post("/api/others/undo", named).body["again"] for _ in range(2)] == [
            False, True,
        ]  # fmt: skip
        assert [one["annotator"] for one in eve.get("/api/others").body["answers"]] == ["bob"]
        assert eve.get("/api/history").body["history"] == []
        past = ann.get("/api/history").body["history"][1]
        assert (past["can_change"], past["why_not"]["code"]) == (False, "answered_since")
    first, last = answers(topics)[0], answers(topics)[-1]
    assert len(answers(topics)) == 4
    assert (last.annotator, last.event_id, last.y, last.declined) == ("eve", "e1", None, True)
    assert last.supersedes == first.answer_id
