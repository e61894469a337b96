"""No record stops a worker or affects the output of other keys: on the embedded broker.

Every learner sees every kind of hostile record in one run, between the inputs of honest keys.

"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.embedded.topics import EmbeddedTopics
from connectors.storage.snapshots import StateDirectory
from connectors.topics import Outgoing, Record
from connectors.wire.inbound import read
from connectors.wire.state_records import parts_of
from connectors.worker import worker as session
from connectors.worker.settings import LoopSettings, WorkerSettings
from connectors.worker.worker import Worker
from streamgp.interactive.messages import Event
from tests.helpers import hostile
from tests.helpers.hostile import (
    KINDS,
    LEARNERS,
    NOW,
    Script,
    honest,
    many_features,
    many_labels,
    phases,
)
from tests.helpers.laws import examples
from tests.helpers.topics import everything

# What numpy warns of in a worker's process is no error there.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

GROUP = "streamgp"
HONEST = ("ann", "bob", "zoe")
OUTPUTS = ("predictions", "requests", "consensus")
HOUR_S = 3600.0
WEEK_S = 168 * HOUR_S


class Deployment:
    """Topics in a directory, a clock that is set, and one worker after the other."""

    def __init__(self, home: Path, model: Any, *, keyed: bool = True) -> None:
        self.now = NOW
        self.topics = EmbeddedTopics(home / "topics", clock=lambda: self.now)
        self.topics.create()
        self._loops = LoopSettings(
            model=model, keyed=keyed, expires_after_s=HOUR_S, answer_horizon_s=WEEK_S
        )
        self._state = home / "state"
        self._gone: set[bytes | None] = set()

    def work(self, script: Iterable[list[Outgoing]], *, with_disk: bool = False) -> None:
        """Start a worker, send one phase after the other, and end the worker when it is idle."""
        waiting = iter(script)

        def is_over() -> bool:
            while not any(self.topics.lags(GROUP).values()):
                phase = next(waiting, None)
                if phase is None:
                    return True
                self.send(phase)
            return False

        self._run(is_over, with_disk=with_disk)
        # The next worker leaves out of the log what was taken out of it, and in the end the nulls.
        self._gone |= {record.key for record in self.read("consensus") if record.value is None}

    def pass_time(self, seconds: float) -> None:
        """Set the clock ahead, and have a worker end what is due."""
        self.now += seconds
        turns = iter(range(3))
        self._run(lambda: next(turns, None) is None)

    def send(self, records: Iterable[Outgoing]) -> None:
        writer = self.topics.writer("test")
        for record in records:
            writer.send(record)
        writer.close()

    def read(self, *names: Any) -> list[Record]:
        return everything(self.topics, *names)

    def said(self, *keys: str) -> dict[str, list[Any]]:
        """Return of each topic what it holds of some keys, all if none is named.

        Lines that were taken out of the consensus log are left out, whether or not a worker has
        compacted it.
        """
        return {
            topic: [
                (record.key, record.value, record.headers)
                for record in self.read(topic)
                if (topic != "consensus" or record.key not in self._gone)
                and (not keys or parts_of(record.key)[0] in keys)
            ]
            for topic in OUTPUTS
        }

    def _run(self, is_over: Any, *, with_disk: bool = False) -> None:
        settings = WorkerSettings(group=GROUP, max_bad_share=1.0, save_every_s=0.0)
        state = StateDirectory(self._state) if with_disk else None
        try:
            Worker(self.topics, self._loops, settings, state=state, clock=lambda: self.now).run(
                is_over
            )
        finally:
            if state is not None:
                state.close()


def flaws(deployment: Deployment) -> Iterator[str]:
    """Find inputs that are lost, and those that have come out twice.

    An event has one prediction or one dead letter, and both only if its label cannot be learned;
    an answer has one dead letter at most. A dead letter has the bytes of its input.
    """
    letters: dict[tuple[str, int], list[Record]] = defaultdict(list)
    for letter in deployment.read("dead-letters"):
        headers = dict(letter.headers)
        if "dlq.topic" in headers:
            letters[headers["dlq.topic"].decode(), int(headers["dlq.offset"])].append(letter)
    predicted: Counter[tuple[str, str]] = Counter()
    for record in deployment.read("predictions"):
        prediction = json.loads(record.value or b"")
        predicted[prediction["key"], prediction["event_id"]] += 1
    silent: Counter[tuple[str, str]] = Counter()
    unlearned: Counter[tuple[str, str]] = Counter()
    for record in deployment.read("events", "answers"):
        place = f"{record.topic}:{record.offset}"
        found = letters.pop((record.topic, record.offset), [])
        if len(found) > 1:
            yield f"{place}: {len(found)} dead letters"
        for letter in found:
            if (letter.key, letter.value) != (record.key, record.value):
                yield f"{place}: the dead letter has other bytes"
        message = read(record, keyed=True)
        if not isinstance(message, Event):
            if record.topic == "events" and not found:
                yield f"{place}: no event, and no dead letter"
            continue
        name = message.key or "", message.event_id
        if not found:
            silent[name] += 1
        elif dict(found[0].headers)["dlq.stage"] == b"learn":
            unlearned[name] += 1
        predicted.setdefault(name, 0)
    for (topic, offset), _ in letters.items():
        if topic != "consensus":
            yield f"{topic}:{offset}: a dead letter of no input"
    for name, n in predicted.items():
        if not silent[name] <= n <= min(1, silent[name] + unlearned[name]):
            yield f"{name}: {n} predictions, {silent[name]} times without a dead letter"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits for an idle worker."""
    monkeypatch.setattr(session, "LONGEST_WAIT_S", 0.001)


def is_for_numbers(name: str) -> bool:
    return name.endswith("numbers")


def honest_scripts(name: str) -> list[list[Outgoing]]:
    return [honest(key, numbers=is_for_numbers(name)) for key in HONEST]


def in_turns(scripts: list[list[Outgoing]], n: int) -> list[list[list[Outgoing]]]:
    """Split scripts into the phases of `n` workers, one after the other."""
    whole = list(phases(*scripts))
    size = -(-len(whole) // n)
    return [whole[start : start + size] for start in range(0, len(whole), size)]


# Seconds each: learners like them are played by day, also in the tests below; the law draws all.
BY_NIGHT = {
    *("gp", "gp, bounded", "ensemble", "forest", "river.naive_bayes.GaussianNB"),
    *(
        "gp, leave one out",
        "privileged",
        "privileged, all challenged",
        "pipeline",
        "ensemble, logistic",
    ),
    *("gp, paper", "gp, looking back", "gp, all challenged", "one against the rest"),
    *("confidence_boosting", "gradient_boosting", "ensemble, numbers"),
    *("river.forest.ARFClassifier", "river.forest.AMFClassifier", "river.neighbors.KNNClassifier"),
    *("river.forest.AMFRegressor, numbers", "river.neighbors.KNNRegressor, numbers"),
    *("river.linear_model.LinearRegression, numbers", "river.tree.HoeffdingTreeRegressor, numbers"),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.nightly if name in BY_NIGHT else ())
        for name in LEARNERS
    ],
)
def test_hostile_records_stop_no_worker_and_change_nothing_for_other_keys(name, tmp_path):
    model = LEARNERS[name]()
    calm, rough = Deployment(tmp_path / "calm", model), Deployment(tmp_path / "rough", model)
    calm.work(phases(*honest_scripts(name)))
    attacks = [hostile.hostile(kind, numbers=is_for_numbers(name)) for kind in KINDS]
    for turn, script in enumerate(in_turns([*attacks, *honest_scripts(name)], 3)):
        rough.work(script, with_disk=turn > 0)
    assert rough.said(*HONEST) == calm.said(*HONEST)
    for seconds in (2 * HOUR_S, 2 * WEEK_S):
        rough.pass_time(seconds)
    rough.work([[Script(key, numbers=False).plain() for key in ("ann", "hostile, constant")]])
    assert list(flaws(rough)) == []


@pytest.mark.nightly  # by day workers end twice while hostile records come
@pytest.mark.parametrize("name", ["gp", "gp, numbers", "river.naive_bayes.GaussianNB"])
def test_restarts_change_nothing_of_what_hostile_keys_are_told(name, tmp_path):
    model = LEARNERS[name]()
    at_once = Deployment(tmp_path / "at once", model)
    in_pieces = Deployment(tmp_path / "in pieces", model)
    scripts = [hostile.hostile(kind, numbers=is_for_numbers(name)) for kind in KINDS]
    at_once.work(phases(*scripts))
    for turn, script in enumerate(in_turns(scripts, 6)):
        in_pieces.work(script, with_disk=turn % 2 == 1)
    assert in_pieces.said() == at_once.said()
    letters = [deployment.read("dead-letters") for deployment in (in_pieces, at_once)]
    assert [(r.key, r.value, r.headers) for r in letters[0]] == [
        (r.key, r.value, r.headers) for r in letters[1]
    ]


@pytest.mark.parametrize(
    "name",
    [
        "forest",
        pytest.param("gp, numbers", marks=pytest.mark.nightly),
        pytest.param("river.naive_bayes.GaussianNB", marks=pytest.mark.nightly),
    ],
)
def test_thousands_of_features_and_hundreds_of_classes_stop_no_worker(name, tmp_path):
    numbers = is_for_numbers(name)
    wide, rich = Script("wide", numbers=numbers), Script("rich", numbers=numbers)
    many_features(10_000)(wide)
    many_labels(400)(rich)
    deployment = Deployment(tmp_path, LEARNERS[name]())
    deployment.work(phases(wide.records, rich.records, *honest_scripts(name)))
    assert list(flaws(deployment)) == []


def test_one_loop_for_all_keys_goes_on_as_well(tmp_path):
    """What one key sends is learned for all of them; yet nothing stops the worker."""
    deployment = Deployment(tmp_path, LEARNERS["pipeline"](), keyed=False)
    for turn in in_turns([hostile.hostile(kind, numbers=False) for kind in KINDS], 3):
        deployment.work(turn)
    assert deployment.topics.lags(GROUP)["events", 0] == 0


# --- at random

_NUMBERS = st.one_of(
    st.sampled_from([*hostile.EXTREMES, 0.0, -0.0, 1.0]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**63), 2**63 - 1),
)
_VALUES = st.one_of(_NUMBERS, st.text(max_size=4), st.booleans(), st.none())
_FEATURES = st.dictionaries(st.sampled_from("uvw"), _VALUES, max_size=3)
_LABELS = st.one_of(st.sampled_from([0.5, 2.5, "a", "b", True, 1]), _VALUES)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("event"), _FEATURES, st.one_of(st.none(), _LABELS)),
        st.tuples(st.just("answer"), st.integers(0, 30), _LABELS),
        st.tuples(st.just("challenge/1"), st.integers(0, 30), _LABELS),
        st.tuples(st.just("supersede"), st.integers(0, 30), _LABELS),
        st.tuples(st.just("null"), st.integers(0, 30), st.integers(0, 2)),
    ),
    max_size=30,
)


def drawn(steps: list[tuple[Any, Any, Any]], *, numbers: bool) -> list[Outgoing]:
    """Return the script of steps that were drawn."""
    script = Script("hostile", numbers=numbers)
    for kind, about, y in steps:
        if kind == "event":
            script.event(about, y)
        elif kind == "supersede":
            script.answer(f"e{about}", y, supersedes=f"e{about}")
        elif kind == "null":
            script.raw("consensus", None, key=f"hostile\x1fe{about}\x1f{y}".encode())
        else:
            script.answer(f"e{about}", y, to="label" if kind == "answer" else kind)
    return script.records


@examples(6)
@given(data=st.data(), name=st.sampled_from(list(LEARNERS)))
def test_no_mixture_of_records_stops_a_worker(data, name, tmp_path_factory):
    numbers = is_for_numbers(name)
    attacks = drawn(data.draw(_STEPS), numbers=numbers)
    friendly = honest("ann", numbers=numbers, n=8)
    calm, rough = (Deployment(tmp_path_factory.mktemp("mix"), LEARNERS[name]()) for _ in "ab")
    calm.work(phases(friendly))
    for turn in in_turns([attacks, friendly], 2):
        rough.work(turn)
    assert rough.said("ann") == calm.said("ann")
    assert list(flaws(rough)) == []
