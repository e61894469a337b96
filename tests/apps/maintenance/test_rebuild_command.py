"""`streamgp rebuild`: two learners compared on what people said, and one in place of the other."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from connectors.storage.snapshots import StateDirectory
from connectors.topics import Outgoing
from connectors.wire import state_records
from connectors.wire.state_records import History
from connectors.worker.compatibility import BEING_REBUILT, ChangedConfigurationError
from streamgp.apps.maintenance import rebuild
from streamgp.cli.main import cli
from streamgp.common.environment import environment
from streamgp.config.build import build_model
from streamgp.config.load import load_worker
from streamgp.interactive.messages import LabelledExample, LabelRequest, Prediction
from streamgp.interactive.teaching import teach
from tests.helpers.small_deployment import Cut, Small
from tests.helpers.topics import write

BAYES = '[learner]\nname = "river.naive_bayes.GaussianNB"\n'
PRIVILEGED = '[learner]\nname = "privileged"\n'
LABELS = ("hall", "den")
ASKING_BACK = """\
broker = "kafka://nowhere"
warm_up = 0
[query]
rule = "equal_error"
at_least = 0.2
[challenge]
rule = "never"
[reservoir]
rule = "latest"
every = 2
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    return Small(tmp_path, monkeypatch)


def with_labels(small: Small, *, n: int = 12, keys: tuple[str, ...] = ("ann", "bob")) -> None:
    """Let a worker learn some labels of each key, and leave one question open."""
    for key in keys:
        for i in range(n):
            x = {"light": i % 2 + 0.01 * i, "noise": float(i % 3)}
            small.put(small.event(f"e{i}", key, x=x, y=LABELS[i % 2]))
        small.put(small.event("open", key, x={"light": 0.4, "noise": 1.0}))
    small.work()


def new_file(small: Small, text: str = BAYES) -> Path:
    path = small.path / "new.toml"
    path.write_text(text)
    return path


def with_both(small: Small, text: str = BAYES) -> Path:
    """Return a configuration of the worker with the other learner."""
    path = small.path / "both.toml"
    path.write_text(small.config_file.read_text() + text)
    return path


def rows_of(text: str) -> dict[str, list[str]]:
    """Return the numbers of each row of the table, by key."""
    found = {}
    for line in text.splitlines()[2:]:
        if line.startswith("accuracy:"):
            break
        cells = line.replace(" %", "%").split()
        found[" ".join(cells[:-8])] = cells[-8:]
    return found


def heads(small: Small) -> dict[str, Any]:
    history = History()
    for record in small.records("state"):
        if state_records.parts_of(record.key)[0]:
            history.take(record.__class__(**{**fields(record), "partition": 0}))
    return {entity: history.parts(entity)["head"] for entity in history.entities()}


def fields(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__slots__}


# --- the comparison


def test_same_learner_agrees_with_itself(small: Small) -> None:
    with_labels(small)
    text = small.done("rebuild", "--learner", new_file(small, "warm_up = 0\n"))
    rows = rows_of(text)
    assert list(rows) == ["ann", "bob", "all 2 keys"]
    for n, old, new, agree, *refused, _, _ in rows.values():
        assert (old, agree, refused) == (new, "100.0%", ["0", "0"])
        assert n in ("12", "24")


def test_mark_at_the_start_of_the_file_is_passed_over(small: Small) -> None:
    with_labels(small, keys=("ann",))
    file = new_file(small)
    file.write_text(BAYES, encoding="utf-8-sig")
    assert list(rows_of(small.done("rebuild", "--learner", file))) == ["ann"]


def test_accuracy_is_that_of_predictions_before_learning(small: Small) -> None:
    with_labels(small, keys=("ann",))
    before = [m for m in small.said("predictions") if isinstance(m, Prediction)]
    truth = {f"e{i}": LABELS[i % 2] for i in range(12)}
    hits = sum(m.y == truth[m.event_id] for m in before if m.event_id in truth)
    [row] = rows_of(small.done("rebuild", "--learner", new_file(small))).values()
    assert row[:2] == ["12", f"{100 * hits / 12:.1f}%"]


def test_what_the_new_learner_cannot_learn_is_counted_with_a_reason(small: Small) -> None:
    small.add(BAYES)
    small.put(*(small.event(f"e{i}", x={"light": 1.0}, y="hall") for i in range(3)))
    small.work()
    paper = new_file(small, "[learner]\nlength_scale = 2.0\nnoise_variance = 1e-16\n")
    text = small.done("rebuild", "--learner", paper)
    [row] = rows_of(text).values()
    assert row[4:6] == ["0", "2"]
    assert "first refusal of the new learner: ann, event e1: new point leaves residual" in text


def test_comparing_changes_nothing_while_workers_run(small: Small) -> None:
    with_labels(small)
    before = small.records("state", "consensus")
    with small.working():
        small.done("rebuild", "--learner", new_file(small))
    assert small.records("state", "consensus") == before


def test_only_the_largest_keys_are_shown(small: Small) -> None:
    small.put(*(small.event("e1", f"key {n:02}", y="hall") for n in range(25)))
    small.put(small.event("e2", "key 24", y="hall"))
    small.work()
    rows = rows_of(small.done("rebuild", "--learner", new_file(small)))
    assert len(rows) == 21
    assert next(iter(rows)) == "key 24"
    assert rows["all 25 keys, 20 of them shown"][0] == "26"


def test_rules_alone_can_be_other_ones(small: Small) -> None:
    with_labels(small)
    rules = new_file(small, '[challenge]\nrule = "skeptical"\n')
    assert rows_of(small.done("rebuild", "--learner", rules))["ann"][3] == "100.0%"


def test_one_learner_for_all_is_one_row(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.helpers.small_deployment import OpenTopics

    monkeypatch.setattr(small, "topics", OpenTopics(1))
    small.add("[worker]\nkeyed = false\n")
    small.put(*(small.event(f"{key}-{i}", key, y="hall") for key in ("ann", "bob") for i in (1, 2)))
    small.work()
    rows = rows_of(small.done("rebuild", "--learner", new_file(small)))
    assert {name: row[0] for name, row in rows.items()} == {"all keys": "4"}
    small.done("rebuild", "--learner", new_file(small), "--take-over", "--yes")
    small.work(with_both(small))


# --- taking over


def test_workers_go_on_with_the_new_learners(small: Small) -> None:
    with_labels(small)
    said = small.done("rebuild", "--learner", new_file(small), "--take-over", "--yes")
    assert said.splitlines()[-1] == (
        f"2 new learners took over in 1 partition; now copy the settings of {small.path}/new.toml "
        f"into {small.config_file}, and start the workers"
    )
    with pytest.raises(ChangedConfigurationError, match="was processed with another configuration"):
        small.work()
    small.put(small.event("late", "ann", x={"light": 1.0, "noise": 1.0}))
    small.work(with_both(small))
    last = [m for m in small.said("predictions") if isinstance(m, Prediction)][-1]
    assert (last.event_id, last.n_learned) == ("late", 12)


def test_open_questions_stay_open(small: Small) -> None:
    with_labels(small)
    [question] = [
        m
        for m in small.said("requests")
        if isinstance(m, LabelRequest) and (m.key, m.event_id) == ("ann", "open")
    ]
    small.done("rebuild", "--learner", new_file(small), "--take-over", "--yes")
    small.answer(question, "hall")
    small.work(with_both(small))
    learned = [m for m in small.said("consensus") if isinstance(m, LabelledExample)]
    assert (learned[-1].event_id, learned[-1].sequence) == ("open", 13)


def test_only_heads_and_what_belongs_to_the_partition_are_written(small: Small) -> None:
    with_labels(small)
    before = small.records("state", "consensus", "predictions", "requests")
    small.done("rebuild", "--learner", new_file(small), "--take-over", "--yes")
    after = small.records("state", "consensus", "predictions", "requests")
    names = [state_records.parts_of(r.key) for r in after if r not in before]
    own = [("", "forgotten"), ("", "configuration")]
    assert names == [("", "configuration"), ("ann", "head"), ("bob", "head"), *own]


def test_what_came_with_answers_reaches_the_learner_that_takes_over(small: Small) -> None:
    small.put(*(small.event(f"e{i}", x={"light": i % 2 + 0.01 * i}) for i in range(8)))
    small.work()
    for i, request in enumerate(m for m in small.said("requests") if isinstance(m, LabelRequest)):
        known = {"response_s": 0.5 + i} if i % 3 else None
        small.answer(request, LABELS[i % 2], privileged=known)
    small.work()
    assert "privileged" not in str(heads(small))
    small.done("rebuild", "--learner", new_file(small, PRIVILEGED), "--take-over", "--yes")
    small.put(small.event("late", x={"light": 0.5}))
    small.work(with_both(small, PRIVILEGED))
    last = [m for m in small.said("predictions") if isinstance(m, Prediction)][-1]
    expected = build_model(load_worker(with_both(small, PRIVILEGED)))
    lines = [m for m in small.said("consensus") if isinstance(m, LabelledExample)]
    assert all(taught.refusal is None for taught in teach(expected, lines))
    assert [example.privileged for example in expected.examples()] == [
        {"response_s": 0.5 + i} if i % 3 else None for i in range(8)
    ]
    assert last.proba == expected.predict_proba_one({"light": 0.5})
    gp = build_model(load_worker(with_both(small, PRIVILEGED.replace("privileged", "gp"))))
    assert [taught for taught in teach(gp, lines) if taught.refusal] == []
    assert last.proba != gp.predict_proba_one({"light": 0.5})


def test_a_rule_that_learns_hears_once_more_what_it_has_heard(small: Small) -> None:
    """And not what a reservoir beside it has asked for."""
    small.config_file.write_text(ASKING_BACK)
    n_asked = 0
    for first in range(0, 24, 4):
        names = range(first, first + 4)
        small.put(*(small.event(f"e{i}", x={"light": i % 2 + 0.3 * (i % 5)}) for i in names))
        small.work()
        requests = [m for m in small.said("requests") if isinstance(m, LabelRequest)]
        for request in requests[n_asked:]:
            small.answer(request, LABELS[int(request.event_id[1:]) % 2])
        n_asked = len(requests)
        small.work()
    lines = [m for m in small.said("consensus") if isinstance(m, LabelledExample)]
    assert {line.asked_back for line in lines} == {False, True}
    before = heads(small)["ann"]["model"]
    small.done("rebuild", "--learner", new_file(small, "warm_up = 0\n"), "--take-over", "--yes")
    after = heads(small)["ann"]["model"]
    assert (after["query"], after["annotators"]) == (before["query"], before["annotators"])
    small.work()


WINDOWS = '[windows]\nlength_s = 10\nfeatures = ["mean"]\n'


def with_windows(small: Small) -> None:
    """Let a worker learn the labels of windows; the last of them is open."""
    small.add(WINDOWS)
    small.put(*(small.event(f"e{at}", occurred_at=at, y=LABELS[at % 20 // 10]) for at in range(41)))
    small.work()


def test_learners_of_windows_can_be_replaced(small: Small) -> None:
    with_windows(small)
    small.done("rebuild", "--learner", new_file(small), "--take-over", "--yes")
    small.put(small.event("late", occurred_at=50.0))
    small.work(with_both(small))
    last = [m for m in small.said("predictions") if isinstance(m, Prediction)][-1]
    assert (last.event_id, last.n_learned) == ("ann@40", 4)


@pytest.mark.parametrize("others", ["", WINDOWS.replace("10", "20")])
def test_other_windows_cannot_be_taken_over(small: Small, others: str) -> None:
    with_windows(small)
    before = small.records("state")
    small.config_file.write_text(small.config_file.read_text().replace(WINDOWS, others))
    text = small.wrong("rebuild", "--learner", new_file(small), "--take-over", "--yes")
    assert "another configuration (windows " in text
    assert text.endswith("go back to it, or use other topics")
    assert small.records("state") == before


@pytest.mark.parametrize("new", ['rule = "at_most"\nn = 0\n', 'rule = "rate"\nrate = 0.5\n'])
def test_another_total_budget_starts_from_zero(small: Small, new: str) -> None:
    text = small.config_file.read_text()
    small.add('[total_budget]\nrule = "at_most"\nn = 30\n')
    with_labels(small)
    small.put(*(small.event(f"asked{i}") for i in range(40)))
    small.work()
    assert len(small.said("requests")) == 30
    file = new_file(small, f"[total_budget]\n{new}")
    small.done("rebuild", "--learner", file, "--take-over", "--yes")
    small.config_file.write_text(text + file.read_text())
    small.work()
    back = new_file(small, '[total_budget]\nrule = "at_most"\nn = 30\n')
    small.done("rebuild", "--learner", back, "--take-over", "--yes")
    small.config_file.write_text(text + back.read_text())
    n = len(small.said("requests"))
    small.put(*(small.event(f"late{i}") for i in range(40)))
    small.work()
    assert len(small.said("requests")) - n == 30


@pytest.mark.parametrize("between", ["", BAYES])
def test_a_worker_uses_no_snapshot_from_before(small: Small, between: str) -> None:
    state = small.path / "state"
    small.add('[total_budget]\nrule = "at_most"\nn = 3\n')
    small.put(*(small.event(f"e{i}") for i in range(5)))
    small.put(*(small.event(f"taught{i}", y=LABELS[i % 2]) for i in range(4)))
    with StateDirectory(state) as directory:
        small.work(state=directory)
    for text in filter(None, [between, "warm_up = 0\n"]):
        small.done("rebuild", "--learner", new_file(small, text), "--take-over", "--yes")
    assert heads(small)["ann"]["model"]["n_events"] == 4
    small.put(*(small.event(f"late{i}") for i in range(5)))
    with StateDirectory(state) as directory:
        small.work(state=directory)
    assert heads(small)["ann"]["model"]["n_events"] == 4 + 5
    assert len(small.said("requests")) == 3 + 3


def test_a_total_budget_needs_a_learner_for_each_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Small(tmp_path, monkeypatch, n_partitions=1)
    small.add("[worker]\nkeyed = false\n")
    with_labels(small, keys=("ann",))
    file = new_file(small, '[total_budget]\nrule = "at_most"\nn = 3\n')
    assert small.wrong("rebuild", "--learner", file, "--take-over", "--yes").startswith(
        f"{file}: total_budget needs a learner for each key"
    )


def test_old_learner_can_take_over_again(small: Small) -> None:
    with_labels(small)
    before = heads(small)
    small.done("rebuild", "--learner", new_file(small), "--take-over", "--yes")
    assert heads(small) != before
    back = new_file(small, '[learner]\nname = "gp"\n')
    small.done("rebuild", "--learner", back, "--take-over", "--yes")
    small.work()
    for entity, head in heads(small).items():
        assert head["fingerprint"] == before[entity]["fingerprint"]
        assert head["sequence"] == before[entity]["sequence"]


def test_nothing_is_taken_over_unless_the_user_confirms(small: Small) -> None:
    with_labels(small)
    before = small.records("state")
    text = small.done("rebuild", "--learner", new_file(small), "--take-over", answer="n\n")
    assert "let 2 new learners take over?" in text
    assert text.endswith("changed nothing\n")
    assert small.records("state") == before


def test_nothing_is_taken_over_while_a_worker_runs(small: Small) -> None:
    with_labels(small)
    before = small.records("state")
    with small.working():
        assert small.wrong("rebuild", "--learner", new_file(small), "--take-over", "--yes") == (
            "1 worker of group streamgp still running; stop them all, then take over (one that "
            "was stopped or killed counts for ten seconds)"
        )
    assert small.records("state") == before


def test_nothing_is_taken_over_from_another_group(small: Small) -> None:
    """Its workers may be at work, and the new group would read all events again."""
    with_labels(small)
    before = small.records("state")
    small.add('[worker]\ngroup = "rooms"\n')
    assert small.wrong("rebuild", "--learner", new_file(small), "--take-over", "--yes") == (
        "partition 2 belongs to the group 'streamgp', this worker is in 'rooms', and two "
        "groups would corrupt each other's learners; use the group name 'streamgp', or "
        "other topics"
    )
    assert small.records("state") == before
    assert "new learners" not in small.done("rebuild", "--learner", new_file(small))


def test_topics_stay_those_of_the_group_and_say_where_they_were_rebuilt(small: Small) -> None:
    with_labels(small)
    small.done("rebuild", "--learner", new_file(small), "--take-over", "--yes")
    marks = [r.value for r in small.records("state") if r.key == b"\x1fconfiguration"]
    signed = [json.loads(mark or b"")["value"] for mark in marks]
    assert [value["group"] for value in signed] == ["streamgp"] * 3
    assert [value["environment"] for value in signed] == [environment()] * 3


def test_what_a_worker_learns_while_the_user_thinks_is_not_lost(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_labels(small)

    def think(_question: str) -> bool:
        small.put(small.event("meanwhile", "ann", y="hall"))
        small.work()
        return True

    monkeypatch.setattr("streamgp.apps.console.confirm", think)
    assert small.wrong("rebuild", "--learner", new_file(small), "--take-over") == (
        "a worker has learned something in the meantime; stop all workers, then run this again"
    )
    small.work()


@pytest.mark.parametrize("n_written", [1, 2, 3])
def test_cut_take_over_stops_all_workers_until_it_is_repeated(
    small: Small, monkeypatch: pytest.MonkeyPatch, n_written: int
) -> None:
    with_labels(small)
    cut = Cut(small.topics.writer, n_written)
    with monkeypatch.context() as patched:
        patched.setattr(small.topics, "writer", cut)
        result = small.call("rebuild", "--learner", new_file(small), "--take-over", "--yes")
    assert (result.exit_code, result.stderr) == (75, "Error: broker is gone\n")
    for config in (small.config_file, with_both(small)):
        with pytest.raises(ChangedConfigurationError, match=r"being rebuilt.*; run it again$"):
            small.work(config)
    again = small.call("rebuild", "--learner", new_file(small), "--take-over", "--yes")
    assert again.stderr == "note: an earlier take-over was interrupted; this one can complete it\n"
    assert again.exit_code == 0
    small.work(with_both(small))


def test_directory_of_topics_can_be_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Small.in_directory(tmp_path, monkeypatch)
    with_labels(small)
    small.put(small.event("late", "ann", x={"light": 1.0, "noise": 1.0}))
    url = f"file://{tmp_path}/topics"
    options = ("--learner", new_file(small), "--take-over", "--yes", "--broker", url)
    assert "2 new learners took over in 1 partition" in small.done("rebuild", *options)
    small.work(with_both(small))
    last = [m for m in small.said("predictions") if isinstance(m, Prediction)][-1]
    assert (last.event_id, last.n_learned) == ("late", 12)


# --- what can be wrong


def test_file_that_names_no_other_learner_is_refused(small: Small) -> None:
    with_labels(small, n=2)
    path = new_file(small, "[loop]\nexpires_after_s = 60\n")
    assert small.wrong("rebuild", "--learner", path) == (
        f"{path}: names no other learner; expected one or more of preset, seed, warm_up, rescale, "
        "learner, temporal, drift_test, query, challenge, review, reservoir, budget, "
        "total_budget, questions"
    )


def test_learner_that_does_not_fit_its_settings_is_refused(small: Small) -> None:
    path = new_file(small, '[learner]\nname = "river.naive_bayes.GaussianNB"\nlength_scale = 2.0\n')
    assert small.wrong("rebuild", "--learner", path).startswith(
        f'{path}: learner.length_scale belongs to the learner "gp"'
    )


def test_topics_without_any_state_are_refused(small: Small) -> None:
    assert small.wrong("rebuild", "--learner", new_file(small)) == (
        "no worker of group streamgp has written any state; start one first"
    )


def test_other_kind_of_worker_is_reported(small: Small) -> None:
    with_labels(small, n=2)
    small.add("[worker]\nkeyed = false\n")
    assert small.wrong("rebuild", "--learner", new_file(small)) == (
        "the topics were written by workers with worker.keyed = true; set it in the configuration"
    )


def test_with_the_file_of_the_workers_there_is_nothing_to_copy(small: Small) -> None:
    with_labels(small, n=2)
    small.add(BAYES)
    said = small.done("rebuild", "--learner", small.config_file, "--take-over", "--yes")
    assert said.endswith("took over in 1 partition; now start the workers\n")


def test_the_file_of_the_workers_need_not_name_what_has_its_default(small: Small) -> None:
    """An operator updates streamgp, whose defaults have changed, and has set none of them."""
    text, small_file = small.config_file.read_text(), 'broker = "kafka://nowhere"\n'
    small.config_file.write_text(f"{small_file}[temporal]\nenabled = false\n")
    with_labels(small, n=2)
    small.config_file.write_text(small_file)
    small.done("rebuild", "--learner", small.config_file, "--take-over", "--yes")
    small.work()
    small.config_file.write_text(text)
    small.done("rebuild", "--learner", small.config_file, "--take-over", "--yes")
    small.work()


def test_configuration_that_is_not_that_of_the_workers_is_reported(small: Small) -> None:
    with_labels(small, n=2)
    small.add(BAYES)
    result = small.call("rebuild", "--learner", new_file(small, "warm_up = 5\n"))
    assert result.exit_code == 0
    assert result.stderr == (
        f"note: the workers did not learn with the settings of {small.config_file}; `old` is a "
        "learner with these settings, not theirs\n"
    )


def test_record_that_no_worker_wrote_is_reported(small: Small) -> None:
    with_labels(small, n=2)
    write(small.topics, Outgoing(topic="state", partition=2, key=b"ann\x1fhead", value=b"?"))
    assert "is nothing that this streamgp writes" in small.wrong(
        "rebuild", "--learner", new_file(small)
    )


def test_loop_whose_state_is_gone_cannot_be_taken_over(small: Small) -> None:
    with_labels(small, n=2)
    before = small.records("state")
    write(small.topics, Outgoing(topic="state", partition=2, key=b"ann\x1fhead", value=None))
    result = small.call("rebuild", "--learner", new_file(small), "--take-over", "--yes")
    assert result.exit_code == 2
    assert result.stderr.startswith(
        "Error: partition 2: consensus holds labelled examples of 1 of 2 learners, and state has "
        "no record of them"
    )
    assert len(small.records("state")) == len(before) + 1
    assert BEING_REBUILT not in str(heads(small))


def test_the_help_names_all_sections_that_define_a_learner() -> None:
    text = CliRunner().invoke(cli, ["rebuild", "--help"]).stdout
    _, _, named = text.partition("any of")
    named = named.partition("Each")[0]
    assert set(re.findall(r"\w+", named)) - {"and"} == set(rebuild.LEARNER_SETTINGS)
