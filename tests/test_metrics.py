import subprocess
import sys

from river import linear_model, naive_bayes

from streamgp.metrics import LabelRate


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


def test_label_rate_judges_classifiers_only():
    metric = LabelRate()
    assert metric.works_with(naive_bayes.GaussianNB())
    assert not metric.works_with(linear_model.LinearRegression())
    assert not metric.works_with_weights


def test_clone_starts_from_nothing():
    metric = LabelRate()
    metric.update(True)
    assert metric.clone().get() == 0.0
    assert metric.get() == 1.0


def test_importing_the_metrics_spares_the_slow_ones_of_river():
    code = "import sys, streamgp.metrics; print('river.metrics' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
