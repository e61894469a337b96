"""The loop around a learner of numbers."""

import json
import math
import random
from dataclasses import replace

import pytest

from streamgp import GPRegressor, SimulatedMeasurer, SkepticalRegressor, isgp
from streamgp.interactive import (
    Answer,
    AnswerQueue,
    Cancel,
    Challenge,
    Event,
    InteractiveLoop,
    KeyedLoops,
    LabelledExample,
    LabelRequest,
    People,
    Prediction,
    Rejected,
    RunStatistics,
)
from streamgp.interactive.teaching import teach
from streamgp.query import (
    AlwaysAsk,
    LeaveOneOutReview,
    NeverAsk,
    NeverChallenge,
    PacedBudget,
    RateBudget,
    Variance,
)


def model(**options):
    options = {"warm_up": 20, "seed": 1, **options}
    return SkepticalRegressor(
        GPRegressor(noise_variance=0.05, learn_hyperparameters=False), **options
    )


def log(n, seed=1):
    rng = random.Random(seed)
    for i in range(n):
        x = {"a": rng.uniform(-3.0, 3.0), "b": rng.uniform(-3.0, 3.0)}
        y = 20.0 + 10.0 * math.sin(x["a"]) + 3.0 * x["b"] + rng.gauss(0.0, 0.3)
        yield Event(event_id=f"e{i}", x=x, occurred_at=float(i), truth=y)


def converse(loop, n=150, annotator=None, cut=None):
    """Play a log; with `cut`, the loop is saved and restored before every `cut`-th event."""
    queue = AnswerQueue(annotator or SimulatedMeasurer(0.15, noise=0.5, delay=3.0, seed=2))
    statistics, said = RunStatistics("number"), []

    def hear(messages, now):
        for message in messages:
            said.append(message)
            statistics.message(message)
            if isinstance(message, LabelRequest | Challenge):
                queue.ask(message, now)

    for i, event in enumerate(log(n)):
        if cut and i % cut == cut - 1:
            loop = InteractiveLoop.restore(loop.snapshot(), loop.model.clone())
        for answer in queue.due(event.occurred_at):
            statistics.answer(answer)
            hear(loop.on_answer(answer, answer.answered_at), answer.answered_at)
        queue.see(event)
        statistics.event(event)
        hear(loop.on_event(event, event.occurred_at), event.occurred_at)
    return loop, statistics, said


def test_a_prediction_has_mean_and_standard_deviation_and_no_probabilities():
    loop, _, said = converse(InteractiveLoop(model()), n=20)
    predictions = [m for m in said if isinstance(m, Prediction)]
    assert (predictions[0].y, predictions[0].mean, predictions[0].std) == (None, None, None)
    last = predictions[-1]
    assert last.proba == {}
    assert last.y == last.mean
    assert last.std > 0.0
    event = Event(event_id="new", x={"a": 0.5, "b": 0.5}, occurred_at=30.0)
    prediction = loop.on_event(event, now=30.0)[0]
    forecast = loop.model.predict_one(event.x, with_dist=True)
    assert (prediction.mean, prediction.std) == (forecast.mu, forecast.sigma)


def test_wrong_numbers_are_contested_and_put_right():
    _, statistics, said = converse(InteractiveLoop(model()))
    assert statistics.challenge_precision > 0.6
    assert statistics.challenge_recall > 0.7
    assert statistics.n_repaired > 10
    assert statistics.n_spoiled == 0
    assert statistics.wrong_kept < 0.06
    challenge = next(m for m in said if isinstance(m, Challenge))
    assert challenge.reason == "OutsideInterval"
    assert challenge.std > 0.0
    assert abs(challenge.given - challenge.suggested) > challenge.std
    origins = {m.origin for m in said if isinstance(m, LabelledExample)}
    assert origins >= {"asked", "revised"}


def test_challenging_lowers_the_error():
    from streamgp.query import NeverChallenge

    _, believed, _ = converse(InteractiveLoop(model(challenge=NeverChallenge())))
    _, doubted, _ = converse(InteractiveLoop(model()))
    assert doubted.nmse < believed.nmse
    assert doubted.mae < 0.8 * believed.mae


@pytest.mark.parametrize("cut", [1, 7])
def test_restarts_change_no_message(cut):
    options = {"budget": RateBudget(0.5)}
    annotator = {"error_rate": 0.2, "noise": 0.5, "states_noise": True, "delay": 4.0, "seed": 2}
    n = 60
    whole, _, said = converse(InteractiveLoop(model(**options)), n, SimulatedMeasurer(**annotator))
    again, _, said_again = converse(
        InteractiveLoop(model(**options)), n, SimulatedMeasurer(**annotator), cut
    )
    assert said_again == said
    assert again.snapshot() == whole.snapshot()


def test_the_loop_comes_back_from_its_parts_and_the_log():
    loop, _, said = converse(InteractiveLoop(model()), n=60)
    lines = [m for m in said if isinstance(m, LabelledExample)]
    parts = json.loads(json.dumps(loop.parts()))
    again = InteractiveLoop.from_parts(parts, lines, model())
    assert again.snapshot() == loop.snapshot()


def test_a_stated_uncertainty_reaches_model_log_and_snapshot():
    loop, _, _ = converse(InteractiveLoop(model()), n=60)
    x = {"a": 0.0, "b": 0.0}
    event = Event(event_id="new", x=x, occurred_at=100.0)
    loop.on_event(event, 100.0)
    off = loop.model.predict_one(x) + 25.0

    def answered(std):
        answer = Answer(answer_id="a", event_id="new", y=off, answered_at=100.0, std=std)
        twin = InteractiveLoop.restore(loop.snapshot(), model())
        return twin, twin.on_answer(answer, 100.0)[0]

    assert isinstance(answered(None)[1], Challenge)
    twin, line = answered(20.0)
    assert isinstance(line, LabelledExample)
    assert line.std == 20.0
    twin, challenge = answered(0.01)
    assert isinstance(challenge, Challenge)
    assert InteractiveLoop.restore(twin.snapshot(), model()).snapshot() == twin.snapshot()
    line = twin.on_cancel(challenge.request_id, 101.0)[1]
    assert (line.origin, line.std) == ("asked", 0.01)


@pytest.mark.parametrize(
    ("by", "off", "stated", "expected"),
    [
        ("ann", 0.0, None, 0.01),
        ("ann", 0.0, 0.5, 0.5),
        ("ann", 1.0, None, None),
        ("sue", 0.0, None, None),
        ("sue", 0.0, 0.5, 0.5),
    ],
)
@pytest.mark.parametrize("is_learned", [False, True])
def test_a_number_that_its_annotator_confirms_is_as_exact_as_was_said(
    by, off, stated, expected, is_learned
):
    loop, _, _ = converse(
        InteractiveLoop(model(), people=People(supervisors=frozenset(["sue"]))), n=60
    )
    x = {"a": 0.0, "b": 0.0}
    loop.on_event(Event(event_id="new", x=x, occurred_at=100.0), 100.0)
    first = Answer(
        answer_id="a", event_id="new", y=loop.model.predict_one(x) + 25.0, annotator="ann",
        answered_at=100.0, std=0.01,
    )  # fmt: skip
    [challenge] = loop.on_answer(first, 100.0)
    second = replace(
        first, answer_id="b", y=first.y + off, std=stated, annotator=by, supersedes="a"
    )
    if is_learned:
        loop.on_cancel(challenge.request_id, 100.0)
    lines = loop.on_answer(second, 100.0)
    if is_learned and by == "ann" and not off:
        assert lines == []
        return
    [line] = lines
    assert (line.y, line.std) == (second.y, expected)


def test_a_learner_that_is_taught_a_confirmed_number_knows_how_exact_it_was():
    rest = {"sequence": 1, "x": {"a": 0.0}, "learned_at": 0.0, "probability_wrong": 0.0}
    known = [
        LabelledExample(event_id=f"e{n}", y=float(n), origin="asked", **(rest | {"sequence": n}))
        for n in range(6)
    ]

    def scatter(**line):
        learner, last = model(), {"event_id": "new", **rest, "sequence": 9, "y": 60.0, **line}
        list(teach(learner, [*known, LabelledExample(**last)]))
        return learner.scatter("ann")

    about = {"annotator": "ann", "std": 40.0}
    challenged = {"challenged": True, "given_by": "ann", "origin": "upheld"}
    without = scatter(annotator="ann", **challenged)
    assert scatter(**about, **challenged) < without
    # What came with another number, or another annotator's, says nothing about the first answer.
    assert scatter(**{**about, **challenged, "annotator": "sue"}) == without
    changed = {**challenged, "origin": "revised", "given": 60.0, "y": 61.0}
    assert scatter(**about, **changed) == scatter(annotator="ann", **changed)


@pytest.mark.parametrize(("y", "shown"), [("many", "'many'"), (True, "True")])
def test_a_label_that_is_no_number_cannot_be_learned(y, shown):
    loop, _, _ = converse(InteractiveLoop(model()), n=30)
    [rejected] = loop.on_answer(
        Answer(answer_id="a", event_id="e29", request_id="e29/label", y=y, answered_at=30.0), 30.0
    )
    assert isinstance(rejected, Rejected)
    assert rejected.fault == "unlearnable"
    assert f"must be a number, got {shown}" in rejected.reason


def test_a_number_cannot_become_a_truth_value():
    loop = InteractiveLoop(model(query=NeverAsk()))
    loop.on_event(Event(event_id="e", x={"a": 1.0}, occurred_at=0.0), 0.0)
    given = {"event_id": "e", "annotator": "ann", "answered_at": 1.0}
    loop.on_answer(Answer(answer_id="one", y=5.0, **given), 1.0)
    [rejected] = loop.on_answer(Answer(answer_id="two", y=True, supersedes="one", **given), 1.0)
    assert rejected.fault == "unlearnable"
    assert loop.model.predict_one({"a": 1.0}) == 5.0


def test_a_number_that_replaced_a_truth_value_is_taught_from_an_old_log():
    line = LabelledExample(
        event_id="e",
        sequence=1,
        x={"a": 1.0},
        y=5.0,
        origin="revised",
        annotator="ann",
        learned_at=1.0,
        probability_wrong=1.0,
        given=True,
        challenged=True,
        given_by="ann",
    )
    learner = model()
    [taught] = teach(learner, [line])
    assert (taught.refusal, learner.predict_one({"a": 1.0})) == (None, 5.0)


@pytest.mark.parametrize(
    ("y", "std", "reason"),
    [
        (1.0, 0.0, "std must be a positive finite number or None, got 0.0"),
        (1.0, -1.0, "std must be a positive"),
        (1.0, math.nan, "std must be a positive"),
        (1.0, "much", "std must be a positive"),
        ("hall", 1.0, "std is for numbers, got 1.0 for the label 'hall'"),
        (True, 1.0, "std is for numbers"),
        (None, 1.0, "std is for numbers"),
    ],
)
def test_an_invalid_uncertainty_is_refused(y, std, reason):
    loop = InteractiveLoop(model())
    loop.on_event(Event(event_id="e", x={"a": 1.0}, occurred_at=0.0), 0.0)
    answer = Answer(answer_id="a", event_id="e", y=y, declined=y is None, answered_at=0.0, std=std)
    [rejected] = loop.on_answer(answer, 0.0)
    assert rejected.fault == "malformed"
    assert reason in rejected.reason


def test_a_model_of_classes_takes_no_notice_of_an_uncertainty():
    loop = InteractiveLoop(isgp(seed=1))
    loop.on_event(Event(event_id="e", x={"a": 1.0}, occurred_at=0.0), 0.0)
    answer = Answer(answer_id="a", event_id="e", y=3, answered_at=0.0, std=0.5)
    [line] = loop.on_answer(answer, 0.0)
    assert (line.y, line.std) == (3, 0.5)


def test_features_that_cannot_be_used_are_rejected_and_the_stream_goes_on():
    loop, _, _ = converse(InteractiveLoop(model()), n=10)
    bad = Event(event_id="bad", x={"a": math.inf}, occurred_at=11.0)
    [rejected] = loop.on_event(bad, 11.0)
    assert rejected.fault == "malformed"
    good = Event(event_id="good", x={"a": 1.0}, occurred_at=12.0)
    assert isinstance(loop.on_event(good, 12.0)[0], Prediction)


def test_another_learner_is_taught_what_the_log_holds_and_trusts_as_before():
    loop, _, said = converse(InteractiveLoop(model()), n=120)
    lines = [m for m in said if isinstance(m, LabelledExample)]
    other = model()
    found = list(teach(other, lines))
    # A number that a review has changed is taught once, as it is in the end.
    assert [taught.refusal for taught in found] == [None] * len({line.event_id for line in lines})
    assert found[0].predicted is None
    assert isinstance(found[-1].predicted, float)
    challenged = [line for line in lines if line.origin == "revised"]
    assert challenged
    assert other.error_rate("simulated") == pytest.approx(
        loop.model.error_rate("simulated"), rel=0.1
    )
    assert other.scatter("simulated") == pytest.approx(loop.model.scatter("simulated"), rel=0.3)


def test_every_key_has_a_learner_of_numbers_of_its_own():
    loops = KeyedLoops(model(query=NeverAsk()), max_keys=1)
    for n in range(10):
        for key, scale in (("ann", 1.0), ("bob", 100.0)):
            event = Event(
                event_id=str(n), key=key, x={"a": float(n)}, occurred_at=float(n), y=scale * n
            )
            prediction, *_ = loops.on_event(event, now=float(n))
    assert prediction.mean > 100.0


def test_a_tally_of_numbers_survives_a_restart():
    _, statistics, _ = converse(InteractiveLoop(model()), n=80)
    again = RunStatistics("number")
    again.load_state(json.loads(json.dumps(statistics.state())))
    for event in log(80):
        again.see(event)
    assert again.summary() == statistics.summary()
    assert set(statistics.summary()) >= {"mae", "nmse"}
    assert "accuracy" not in statistics.summary()


# --- numbers that were learned before


def reviews(said):
    return [m for m in said if isinstance(m, Challenge) and m.reason == "LeaveOneOutReview"]


def test_a_number_that_was_wrong_before_any_scale_was_known_is_put_right_later():
    class Careless(SimulatedMeasurer):
        """Is far off about the second event, and about no other."""

        def answer(self, request, truth, now):
            answer = super().answer(request, truth, now)
            is_wrong = request.request_id == "e1/label"
            return replace(answer, y=answer.y + 60.0) if is_wrong else answer

    loops, said = zip(
        *(
            converse(
                InteractiveLoop(model(query=AlwaysAsk(), review=review)),
                n=60,
                annotator=Careless(noise=0.3, seed=2),
            )[::2]
            for review in (LeaveOneOutReview(), None)
        ),
        strict=True,
    )
    truth = list(log(2))[1].truth
    kept = [next(e.y for e in loop.model.examples() if e.event_id == "e1") for loop in loops]
    assert kept == [pytest.approx(truth, abs=1.2), pytest.approx(truth + 60.0, abs=1.2)]
    challenge = next(m for m in reviews(said[0]) if m.event_id == "e1")
    assert challenge.given == kept[1]
    assert challenge.std > 0.0
    assert abs(challenge.suggested - truth) < 30.0
    line = next(m for m in said[0] if isinstance(m, LabelledExample) and m.revision == 1)
    assert (line.event_id, line.y, line.origin) == ("e1", kept[0], "revised")
    assert reviews(said[1]) == []


@pytest.mark.parametrize("cut", [1, 7])
def test_restarts_change_no_review(cut):
    review = LeaveOneOutReview(0.1, every=2, budget=RateBudget(0.7, seed=3))
    options = {"budget": RateBudget(0.5), "challenge": NeverChallenge(), "review": review}
    annotator = {"error_rate": 0.2, "noise": 0.5, "states_noise": True, "delay": 4.0, "seed": 2}
    whole, _, said = converse(InteractiveLoop(model(**options)), 80, SimulatedMeasurer(**annotator))
    again, _, said_again = converse(
        InteractiveLoop(model(**options)), 80, SimulatedMeasurer(**annotator), cut
    )
    assert len(reviews(said)) > 3
    assert said_again == said
    assert again.snapshot() == whole.snapshot()


def test_a_number_is_doubted_less_the_less_exact_its_annotator_has_said_it_is():
    def doubts(std):
        loop = InteractiveLoop(model(query=NeverAsk(), review=LeaveOneOutReview(every=1)))
        said = []
        for n in range(12):
            x, at = {"a": float(n % 4), "b": 0.0}, float(n)
            loop.on_event(Event(event_id=f"e{n}", x=x, occurred_at=at), at)
            y = 100.0 if n == 1 else x["a"] + 0.1 * (n % 3)
            answer = Answer(answer_id=f"a{n}", event_id=f"e{n}", y=y, answered_at=at)
            said += loop.on_answer(replace(answer, std=std if n == 1 else None), at)
        return {m.event_id for m in reviews(said)}

    assert "e1" in doubts(None)
    assert "e1" not in doubts(200.0)


@pytest.mark.parametrize(
    "options",
    [{"budget": PacedBudget(10, span_s=50.0)}, {"query": Variance(4.0)}],
    ids=["paced", "threshold"],
)
def test_which_questions_are_taken_back_does_not_depend_on_the_unit(options):
    """Answers are late, so that the first questions are open when the scale becomes known."""

    def said(unit):
        rule = options.get("query")
        own = options if rule is None else {"query": Variance(rule.threshold * unit * unit)}
        loop = InteractiveLoop(model(**own), open_at_most=20)
        queue, found = AnswerQueue(SimulatedMeasurer(delay=12.0, seed=2)), []
        for event in log(100):
            truth = event.truth * unit
            queue.see(replace(event, truth=truth))
            messages = loop.on_event(event, event.occurred_at)
            for answer in queue.due(event.occurred_at):
                messages += loop.on_answer(answer, answer.answered_at)
            for message in messages:
                if isinstance(message, LabelRequest):
                    queue.ask(message, event.occurred_at)
                if isinstance(message, LabelRequest | Cancel):
                    found.append((type(message), message.request_id))
        return found

    assert said(2.0**-20) == said(1.0) == said(2.0**20)
