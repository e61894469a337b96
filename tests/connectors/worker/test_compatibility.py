"""Workers refuse topics that belong to another group or to another configuration."""

import json

import pytest

from connectors.memory import MemoryTopics
from connectors.topics import partition_of
from connectors.wire.state_records import state
from connectors.worker.compatibility import (
    ChangedConfigurationError,
    OtherGroupError,
    UnfitTopicsError,
    check_signed,
)
from connectors.worker.settings import LoopSettings, WorkerSettings
from connectors.worker.worker import Worker
from streamgp import isgp
from streamgp.apps.deployment.deployment import build_loops
from streamgp.config.load import parse_worker
from tests.helpers.topics import everything, said
from tests.helpers.workbench import GROUP, event, newest, put, work, worker

OURS = {"fingerprint": "1f", "keyed": True}


def of_group(topics, group):
    loops = LoopSettings(model=isgp(seed=1))
    return Worker(topics, loops, WorkerSettings(group=group, instance=group), clock=lambda: 0.0)


def signed(topics):
    return json.loads(newest(topics, "state")[b"\x1fconfiguration"])["value"]


@pytest.mark.parametrize(
    ("theirs", "error", "text"),
    [
        (
            {**OURS, "group": "phones"},
            OtherGroupError,
            "partition 2 belongs to the group 'phones', this worker is in 'rooms', and two "
            "groups would corrupt each other's learners; use the group name 'phones', or "
            "other topics",
        ),
        (
            {**OURS, "fingerprint": "2e", "group": "rooms"},
            ChangedConfigurationError,
            "partition 2 was processed with another configuration (fingerprint 2e; here "
            "fingerprint 1f); go back to it, or take the new one over with `streamgp rebuild`; "
            "if you changed nothing, the defaults of this version of streamgp differ: its "
            "changelog says how to set the former ones",
        ),
        (
            {"fingerprint": "2e"},
            ChangedConfigurationError,
            "partition 2 was processed with another configuration (fingerprint 2e, keyed None; "
            "here fingerprint 1f, keyed True); go back to it, or use other topics",
        ),
    ],
)
def test_what_does_not_fit_is_reported_with_what_to_do(theirs, error, text):
    with pytest.raises(error) as caught:
        check_signed(2, theirs, OURS, "rooms")
    assert str(caught.value) == text
    assert isinstance(caught.value, UnfitTopicsError)


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ("seed = 2\n", "seed"),
        ("warm_up = 9\n", "warm_up"),
        ("rescale = false\n", "rescale"),
        ("[learner]\nnoise_variance = 0.4\n", "learner"),
        ("[temporal]\nenabled = false\n", "temporal"),
        ("[drift_test]\nat_least = 0.1\n", "drift_test"),
        ('[query]\nrule = "always"\n[challenge]\nrule = "never"\n', "query, challenge"),
        ('[review]\nrule = "leave_one_out"\n', "review"),
        ('[reservoir]\nrule = "latest"\n', "reservoir"),
        ("[questions]\nper_day = 3\n", "budget"),
        ('[total_budget]\nrule = "at_most"\nn = 3\n', "total_budget"),
        ('[learner]\nname = "forest"\n', "learner, drift_test, rescale"),
    ],
)
def test_settings_that_differ_are_named(changed, names):
    theirs, ours = (
        build_loops(parse_worker(text, source="f"), source="f").configuration
        for text in ("", changed)
    )
    with pytest.raises(ChangedConfigurationError, match=rf"; different: {names}\); go back to it"):
        check_signed(2, theirs, ours, None)
    with pytest.raises(ChangedConfigurationError, match=r"here fingerprint \w+\); go back to it"):
        check_signed(2, {**theirs, "settings": "unknown"}, ours, None)


@pytest.mark.parametrize("group", ["rooms", None])
def test_who_works_there_already_may_go_on(group):
    check_signed(2, {**OURS, "group": "rooms", "streamgp": "0.1.0"}, OURS, group)
    check_signed(2, OURS, OURS, group)


def test_another_group_is_refused_before_it_writes_anything():
    topics = MemoryTopics()
    put(topics, event(1, y="home"))
    work(topics)
    before = everything(topics, "predictions", "consensus", "state", "dead-letters")
    with pytest.raises(OtherGroupError, match="use the group name 'streamgp', or other topics"):
        of_group(topics, "other").run(lambda: not any(topics.lags("other").values()))
    assert everything(topics, "predictions", "consensus", "state", "dead-letters") == before


def test_topics_that_name_no_group_are_signed_by_the_first_to_write():
    topics = MemoryTopics()
    link = topics.client(group=GROUP, instance="older", max_records=1)
    link.poll(0.0)
    older = LoopSettings(model=isgp(seed=1)).configuration
    link.commit([state("", "configuration", {**older, "streamgp": "0.0.9"}, 0)])
    link.close()
    work(topics)
    assert "group" not in signed(topics)
    put(topics, event(1))
    work(topics)
    assert signed(topics)["group"] == GROUP
    put(topics, event(2))
    work(topics)
    assert sum(r.key == b"\x1fconfiguration" for r in everything(topics, "state")) == 2


def test_topics_of_an_earlier_version_get_the_settings_with_the_next_input():
    topics = MemoryTopics()
    put(topics, event(1))
    work(topics)
    settings = (value := signed(topics)).pop("settings")
    link = topics.client(group=GROUP, instance="older", max_records=1)
    link.poll(0.0)
    link.commit([state("", "configuration", value, 0)])
    link.close()
    work(topics)
    assert "settings" not in signed(topics)
    put(topics, event(2))
    work(topics)
    assert signed(topics) == {**value, "settings": settings}


def test_a_group_may_take_over_what_an_older_one_has_not_signed():
    topics = MemoryTopics()
    put(topics, event(1, y="home"))
    of_group(topics, "older").run(lambda: not any(topics.lags("older").values()))
    link = topics.client(group="older", instance="older", max_records=1)
    link.poll(0.0)
    link.commit([state("", "configuration", LoopSettings(model=isgp(seed=1)).configuration, 0)])
    link.close()
    put(topics, event(2))
    work(topics)  # reads the lines of the older group as well
    assert [m.n_learned for m in said(topics, "predictions")] == [0, 1]
    assert signed(topics)["group"] == GROUP


def test_another_configuration_is_refused_where_nothing_was_learned_yet():
    """Else no worker could have all partitions: some would belong to each configuration."""
    topics = MemoryTopics(n_partitions=2)
    key = next(key for key in "abcdef" if partition_of(key.encode(), 2) == 0)
    turns = iter(range(10))

    def stop():
        turn = next(turns)
        if turn == 3:
            other = worker(topics, instance="z", model=isgp(seed=2))  # is assigned partition 1
            with pytest.raises(ChangedConfigurationError, match="partition 0 was processed with"):
                other.run(iter([False] * 4 + [True]).__next__)
        return turn == 9

    put(topics, event(1, key=key, y="home"))
    worker(topics, instance="a").run(stop)


def test_two_groups_that_begin_at_once_find_each_other_out():
    """Neither had signed when the other one looked."""
    topics = MemoryTopics()
    turns = iter(range(10))

    def stop():
        turn = next(turns)
        if turn == 3:  # this one has its partition and nothing to do, and then comes the other
            put(topics, event(1, y="home"))
            of_group(topics, "other").run(lambda: not any(topics.lags("other").values()))
        return turn == 9

    with pytest.raises(OtherGroupError) as caught:
        worker(topics).run(stop)
    assert str(caught.value) == (
        "'/streamgp/other' writes what it learns into the same topics as '/streamgp/streamgp' "
        "(consensus:0:0), and two groups would corrupt each other's learners; stop one of them, "
        "and give it other topics"
    )
