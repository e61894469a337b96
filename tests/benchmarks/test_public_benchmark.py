"""The public logs and how they are fetched and read; what is learned from them, and how scored."""

import hashlib
import json
import random
import re
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import dummy

from benchmarks import _harness as harness
from benchmarks.comparison.public import benchmark, logs, rivals
from tests.helpers.benchmark_runs import document

pytest.importorskip("sklearn", reason="two of the learners are scikit-learn's")

LABELS = ["hall", "hall", None, "kitchen", "hall", "kitchen", "kitchen", "hall"]
XS = [{"light": float(i)} for i in range(len(LABELS))]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with two small logs, one of them without a header, and name only these."""
    rows = [f"{i % 7},{'ab'[i // 20 % 2]}" for i in range(100)]
    files = {"r/one.csv": "light,room\n" + "\n".join(rows), "s/two.data": "\n".join(rows)}
    named = []
    for name, text in files.items():
        path = tmp_path / "o" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
        repository, file = name.split("/")
        header = "yes" if "room" in text else "no"
        named.append(
            logs.PublicLog(
                repository=f"o/{repository}",
                file=file,
                label="room" if header == "yes" else "c2",
                header=header,
                sha256=hashlib.sha256(text.encode()).hexdigest()[:12],
            )
        )
    monkeypatch.setattr(benchmark, "manifest", lambda: named)
    return tmp_path


# --- logs


def test_the_logs_are_listed_once_each_in_order_with_all_that_is_needed_to_find_them():
    listed = logs.manifest()
    places = [(log.repository, log.file) for log in listed]
    assert places == sorted(set(places))
    copies = {(log.sha256, log.label) for log in listed}
    assert len(copies) == len(listed) > 250
    for log in listed:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", log.repository)
        assert not PurePosixPath(log.file).is_absolute()
        assert ".." not in PurePosixPath(log.file).parts
        assert re.fullmatch(r"[0-9a-f]{12}", log.sha256)
        assert log.label.strip()
        assert log.header in {"yes", "no"}


def test_each_repository_is_cloned_once_to_where_its_logs_are_looked_for(capsys):
    assert benchmark.main(["--clones"]) == 0
    commands = capsys.readouterr().out.splitlines()
    targets = [line.removeprefix("git clone --depth 1 https://github.com/") for line in commands]
    names = [target.split(" ") for target in targets]
    assert names == [[name, name] for name, _ in names]
    assert {name for name, _ in names} == {log.repository for log in logs.manifest()}
    assert len({name for name, _ in names}) == len(names)


def test_logs_that_are_missing_or_changed_are_left_out_and_named(folder):
    one, two = benchmark.manifest()
    found, said = logs.available([one, two, replace(one, file="three.csv")], folder)
    assert found == [one, two]
    assert said == ["1 logs that are not there, of o/r"]
    (folder / two.name).write_text("1,a\n")
    found, said = logs.available([one, two], folder)
    assert found == [one]
    assert said == ["1 logs that have changed since: o/s/two.data"]
    assert logs.available([one, two], None) == ([], ["2 logs that are not there, of o/r, o/s"])


def test_a_file_without_a_header_is_read_like_one_with_a_header(folder):
    one, two = (logs.events_of(log, folder, 50) for log in benchmark.manifest())
    assert len(one) == len(two) == 50
    assert [event.truth for event in one] == [event.truth for event in two]
    assert [event.x["light"] for event in one] == [event.x["c1"] for event in two]


def test_cells_may_be_separated_by_spaces_and_rows_of_another_length_are_left_out(tmp_path):
    path = tmp_path / "glass.data"
    path.write_text("  1.5  2 a\n 1 2\n1.0 3   b\n")
    assert list(logs._named(path)) == [["c1", "c2", "c3"], ["1.5", "2", "a"], ["1.0", "3", "b"]]


@pytest.mark.parametrize("options", [[], ["--logs", "nowhere"], ["--quick", "--logs", "nowhere"]])
def test_without_any_log_the_command_says_how_to_fetch_them(options):
    with pytest.raises(
        SystemExit, match=r"found none of the logs.*; expected --logs DIR.*--clones"
    ):
        benchmark.main(options)


# --- learners


def streamed(model, asks, answers=LABELS):
    return rivals.streamed(model, XS, LABELS, answers, asks)


def test_the_last_and_the_most_frequent_answer_predict_from_what_was_learned_before():
    asked = []

    def asks(i, _proba):
        asked.append(i)
        return i in {1, 2, 3, 5}

    last = streamed(dummy.NoChangeClassifier(), asks)
    assert last == [None, None, "hall", "hall", "kitchen", "kitchen", "kitchen", "kitchen"]
    assert asked == [0, 1, 3, 4, 5, 6, 7]  # the truth of event 2 is unknown
    most = streamed(dummy.PriorClassifier(), asks)
    assert most == [None, None, "hall", "hall", "hall", "hall", "kitchen", "kitchen"]


def test_answers_are_learned_not_truths():
    wrong = ["cellar" if truth else None for truth in LABELS]
    predicted = streamed(dummy.NoChangeClassifier(), lambda i, _proba: i == 0, wrong)
    assert predicted == [None, *["cellar"] * 7]


@given(st.data())
def test_the_smallest_margins_get_all_labels(data):
    n_events = data.draw(st.integers(1, 300))
    n_labels = data.draw(st.integers(0, n_events))
    proba = st.dictionaries(st.sampled_from("abc"), st.sampled_from([0.0, 0.2, 0.5, 1.0]))
    few = data.draw(st.lists(proba, min_size=1, max_size=9))
    asks = rivals.SmallestMargin(n_labels, n_events, seed=1)
    assert sum(asks(i, few[i % len(few)]) for i in range(n_events)) == n_labels


def test_labels_go_where_the_margin_is_small():
    asks = rivals.SmallestMargin(20, 400, seed=1)
    unsure = range(9, 400, 10)
    asked = [i for i in range(400) if asks(i, {"a": 0.6 if i in unsure else 0.9, "b": 0.4})]
    assert len(asked) == 20
    assert len(set(asked) & set(unsure)) >= 18  # the first have nothing to be compared with


class Nearest:
    """Predict the label of the closest point."""

    def fit(self, X, labels):
        self.X, self.labels = X, np.array(labels)
        self.classes_ = np.unique(labels)

    def predict_proba(self, X):
        closest = self.labels[np.abs(X - self.X.T).argmin(axis=1)]
        return (closest[:, None] == self.classes_).astype(float)


def retrained(build, X, answers, learned):
    model = rivals.Retrained(build, X)
    return rivals.streamed(model, range(len(X)), answers, answers, lambda i, _proba: i in learned)


def test_retrained_learners_predict_by_what_they_were_fitted_to_before():
    X = np.arange(6.0)[:, None]
    answers = ["a", "a", "b", "b", "b", "b"]
    assert retrained(Nearest, X, answers, {1, 3}) == [None, None, "a", "a", "b", "b"]
    assert retrained(Nearest, X, answers, {5}) == [None] * 6
    assert retrained(Nearest, X, answers, ()) == [None] * 6


def test_they_are_fitted_again_when_the_labels_are_a_third_more():
    fitted = []

    class Noted(Nearest):
        def fit(self, X, labels):
            fitted.append(len(labels))
            super().fit(X, labels)

    retrained(Noted, np.arange(30.0)[:, None], ["a", "b"] * 15, range(30))
    assert fitted == [2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 29]  # before, a single label


def test_they_are_as_unsure_as_their_last_fit():
    X = np.array([[0.0], [1.0], [0.4], [0.9]])
    model = rivals.Retrained(rivals.RETRAINED["logistic regression, retrained"], X)
    assert model.predict_proba_one(2) == {}
    model.learn_one(0, "a")
    assert model.predict_proba_one(2) == {"a": 1.0}
    model.learn_one(1, "b")
    assert model.predict_proba_one(3)["b"] > model.predict_proba_one(2)["b"]
    assert sum(model.predict_proba_one(2).values()) == pytest.approx(1.0)


def test_a_number_may_be_larger_than_others_can_take():
    xs = [rivals.bounded({"power": value}) for value in (1e300, -np.inf, 1e300, 2.0)]
    labels = ["hall", "kitchen", "hall", "hall"]
    for name, build in rivals.STREAMING.items():
        predicted = rivals.streamed(build(), xs, labels, labels, lambda _i, _proba: True)
        assert predicted[1] == "hall", name
    for build in rivals.RETRAINED.values():
        assert retrained(build, rivals.matrix(xs), labels, {0, 1})[2] == "hall"


def test_answers_are_wrong_at_the_given_rate_and_never_another_label():
    truths = ["a", "b", "c", None] * 500
    assert benchmark.answered(truths, 0.0, random.Random(1)) == truths
    always = benchmark.answered(truths, 1.0, random.Random(1))
    assert set(zip(truths, always, strict=True)) == {
        (None, None), *((truth, y) for truth in "abc" for y in "abc" if y != truth)
    }  # fmt: skip
    some = benchmark.answered(truths, 0.2, random.Random(1))
    wrong = sum(truth != y for truth, y in zip(truths, some, strict=True))
    assert wrong == pytest.approx(300, abs=4 * (1500 * 0.2 * 0.8) ** 0.5)
    assert benchmark.answered(["a", None], 1.0, random.Random(1)) == ["a", None]


# --- rows


def test_all_learners_get_as_many_labels(folder, monkeypatch):
    learned = []

    class Counting(dummy.NoChangeClassifier):
        def __init__(self):
            super().__init__()
            learned.append(0)

        def learn_one(self, x, y):
            learned[-1] += 1
            super().learn_one(x, y)

    monkeypatch.setattr(benchmark, "STREAMING", {"one": Counting, "two": Counting})
    monkeypatch.setattr(benchmark, "UNSURE", ("two",))
    monkeypatch.setattr(benchmark, "RETRAINED", {})
    events = logs.events_of(benchmark.manifest()[0], folder, 100)
    numbers = benchmark.numbers_of("one", events, seed=1)
    expected = [numbers[rate]["asked"] + numbers[rate]["challenges"] for rate in benchmark.RATES]
    assert learned == [n for n in expected for _ in range(3)]
    assert min(expected) > 0
    assert numbers["events"] == 100
    assert numbers["same"] == pytest.approx(95 / 99)
    assert not numbers["sorted"]


def log_of(same, ours, theirs):
    names = (benchmark.UNFILTERED, *rivals.NAMES)
    of_rate = {"asked": 10, "challenges": 2, "isgp()": ours} | dict.fromkeys(names, theirs)
    return {
        "events": 100, "same": same, "sorted": same > 0.97,
        "0%": of_rate, "20%": of_rate | {"isgp()": ours - 0.25},
    }  # fmt: skip


def test_rows_are_means_of_leads_and_count_where_another_is_ahead():
    numbers = [log_of(0.95, 0.75, 0.5), log_of(0.5, 0.5, 0.625)]
    rows = list(benchmark.rows_of(numbers))
    asked = next(row for row in rows if row["logs"] == "all" and row.get("wrong") == "20%")
    assert asked == {
        "logs": "all", "wrong": "20%", "n": 2, "events": 100, "asked": 10, "challenges": 2,
        "isgp()": 0.375,
    }  # fmt: skip
    arf = {row["logs"]: row for row in rows if row.get("learner") == "River ARF"}
    assert arf["all"] == {
        "learner": "River ARF", "logs": "all",
        "behind_0%": 0.0625, "behind_0%_se": 0.1875, "ahead_0%": 1,
        "behind_20%": -0.1875, "behind_20%_se": 0.1875, "ahead_20%": 1, "ahead_both": 1,
    }  # fmt: skip
    assert arf["labels last"]["behind_0%"] == 0.25
    assert arf["labels last"]["ahead_both"] == 0
    assert arf["others"]["ahead_both"] == 1
    assert arf.keys() == {"all", "labels last", "labels last and return", "others"}
    assert arf["labels last and return"]["behind_0%"] == 0.25
    in_order = list(benchmark.rows_of([log_of(0.98, 0.75, 0.5)]))
    assert {
        row["behind_0%"] for row in in_order if row["logs"] == "sorted" and "learner" in row
    } == {0.25}
    within = list(benchmark.rows_of([log_of(0.5, 0.5, 0.52)]))
    assert {row["ahead_0%"] for row in within if "learner" in row} == {0}
    assert {row["ahead_20%"] for row in within if "learner" in row} == {1}


@pytest.mark.nightly
def test_a_quick_run_needs_no_folder(tmp_path):
    result, status = document(tmp_path, "public", benchmark.measure, "--quick")
    assert status == 0
    learners = {row["learner"] for row in result["rows"] if "learner" in row}
    assert learners == {benchmark.UNFILTERED, *rivals.NAMES}
    assert {row["n"] for row in result["rows"] if "n" in row} == {1}


def test_numbers_that_were_kept_are_not_measured_again(folder, monkeypatch):
    kept = folder / "kept.jsonl"
    played = []

    def numbers_of(name, events, seed):
        played.append((name, len(events), seed))
        return log_of(0.5, 0.5, 0.25)

    monkeypatch.setattr(benchmark, "numbers_of", numbers_of)
    measure = partial(benchmark.measure, logs=folder, kept=kept)
    first = measure(harness.Options())
    assert played == [("o/r/one.csv", 100, 1), ("o/s/two.data", 100, 1)]
    assert measure(harness.Options()) == first
    assert len(played) == 2
    kept.write_text(kept.read_text().splitlines()[0] + "\n")  # stopped after the first
    assert measure(harness.Options()) == first
    assert played[2:] == [("o/s/two.data", 100, 1)]
    measure(harness.Options(seed=2))
    assert len(played) == 5
    assert len({json.loads(line)[0] for line in kept.read_text().splitlines()}) == 4


@pytest.mark.parametrize("line", ['["o/r/one.csv, room", {"events": 1', '{"benchmark": "public"}'])
def test_a_line_that_is_cut_off_or_of_another_file_is_named(folder, line):
    kept = folder / "kept.jsonl"
    kept.write_text('["o/r/one.csv, room", {}]\n' + line)
    with pytest.raises(SystemExit, match=r"^line 2 of .*kept\.jsonl is none .*; remove it"):
        benchmark.measure(harness.Options(), logs=folder, kept=kept)
