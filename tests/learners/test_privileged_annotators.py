"""An annotator who gets tired, and a learner that sees it in how long the answers take."""

import random
from statistics import fmean

import pytest

from streamgp import PrivilegedGPClassifier, TiredAnnotator
from tests.helpers.messages import label_request

# By day test_privileged_gp.py learns whose answers are noisy, and that it helps to know.
pytestmark = pytest.mark.nightly

SLOW_S, RESTED_S = 5.0, 2.0


def truth(x):
    return "yes" if x["a"] + x["b"] ** 2 > 0.5 else "no"


def point(rng):
    return {"a": rng.uniform(-1.5, 1.5), "b": rng.uniform(-1.5, 1.5)}


def sittings(seed, n=180, questions=40):
    """An hour of rest, then a question every ten seconds: the last of them are half guessed."""
    rng = random.Random(seed)
    annotator = TiredAnnotator(
        classes=["no", "yes"], seed=seed, tiring_rate=0.02, half_life_s=600.0
    )
    now = 0.0
    for i in range(n):
        now += 10.0 if i % questions else 3600.0
        x = point(rng)
        yield x, annotator.answer(label_request(str(i), now, x=x), truth(x), now)


AT_LUNCH = (20, 41, 100)


@pytest.fixture(scope="module")
def taught():
    """Learners for each of two streams: told the response times, not told, told wild ones too."""
    found = []
    for seed in range(2):
        told, untold, wild = (PrivilegedGPClassifier() for _ in range(3))
        for i, (x, answer) in enumerate(sittings(seed)):
            told.learn_one(x, answer.y, privileged=answer.privileged)
            untold.learn_one(x, answer.y)
            away = {"response_s": 1800.0}
            wild.learn_one(x, answer.y, privileged=away if i in AT_LUNCH else answer.privileged)
        found.append((told, untold, wild))
    return found


def error(model):
    """Percent of 1000 clean points."""
    rng = random.Random(99)
    tests = [point(rng) for _ in range(1000)]
    return fmean(100.0 * (model.predict_one(x) != truth(x)) for x in tests)


def test_slow_answers_of_a_tired_annotator_are_learned_to_be_noisier(taught):
    for told, untold, wild in taught:
        slow, rested = ({"response_s": seconds} for seconds in (SLOW_S, RESTED_S))
        assert told.noise_one(slow) > 3.0 * told.noise_one(rested)
        assert wild.noise_one(slow) > 3.0 * wild.noise_one(rested)
        assert untold.noise_one(slow) == untold.noise_one(rested)


def test_response_times_of_a_tired_annotator_make_fewer_errors(taught):
    """Also if some say how long lunch took: 10.8, 16.0 and 10.8 % over six such streams."""
    told, untold, wild = (fmean(map(error, models)) for models in zip(*taught, strict=True))
    assert told < untold - 1.0
    assert wild < untold - 1.0
