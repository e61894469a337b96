import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import evaluate, naive_bayes

from streamgp import isgp
from streamgp.metrics import ChallengePrecision, LabelRate

ALL = [ChallengePrecision, LabelRate]


def test_label_rate_is_the_share_of_events_asked():
    metric = LabelRate()
    assert metric.get() == 0.0
    for asked in (True, False, False, True, False):
        metric.update(asked)
    assert metric.get() == 0.4
    assert repr(metric) == str(metric) == "LabelRate: 40.00%"


def test_reverting_undoes_an_update():
    metric = LabelRate()
    metric.update(True)
    metric.update(False)
    metric.revert(True)
    assert metric.get() == 0.0


def test_fewer_labels_are_better():
    modest, greedy = LabelRate(), LabelRate()
    modest.update(False)
    greedy.update(True)
    assert not modest.bigger_is_better
    assert modest.is_better_than(greedy)
    assert modest > greedy


@pytest.mark.parametrize("kind", ALL)
def test_metrics_start_at_0_and_judge_no_model(kind):
    metric = kind()
    assert metric.get() == 0.0
    assert not metric.works_with(naive_bayes.GaussianNB())
    assert not metric.works_with(isgp())
    assert not metric.works_with_weights


@pytest.mark.parametrize("kind", ALL)
def test_river_refuses_to_judge_predictions_by_them(kind):
    sentence = f"{kind.__name__} metric is not compatible with GaussianNB"
    with pytest.raises(ValueError, match=sentence):
        evaluate.progressive_val_score([({"a": 1.0}, "b")], naive_bayes.GaussianNB(), kind())


def test_clone_starts_from_nothing():
    metric = LabelRate()
    metric.update(True)
    assert metric.clone().get() == 0.0
    assert metric.get() == 1.0


@given(st.lists(st.tuples(st.booleans(), st.booleans())), st.data())
def test_precision_equals_brute_force(answers, data):
    precision = ChallengePrecision()
    for challenged, wrong in answers:
        precision.update(challenged, wrong)
    n_reverted = data.draw(st.integers(0, len(answers)))
    for answer in answers[:n_reverted]:
        precision.revert(*answer)
    contested = [wrong for challenged, wrong in answers[n_reverted:] if challenged]
    assert precision.get() == (sum(contested) / len(contested) if contested else 0.0)


def test_more_precision_is_better():
    good, bad = ChallengePrecision(), ChallengePrecision()
    good.update(True, True)
    bad.update(True, False)
    bad.update(False, True)
    assert good.bigger_is_better
    assert good.is_better_than(bad)
    assert not bad > good


def test_importing_the_metrics_spares_the_slow_ones_of_river():
    code = "import sys, streamgp.metrics; print('river.metrics' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
