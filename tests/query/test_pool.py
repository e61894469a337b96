import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp import GPClassifier, PoolSampler, kernels
from streamgp.query.pool_criteria import CRITERIA
from tests.helpers.laws import examples

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 2))
Y = np.where(X[:, 0] > 0.5, "right", np.where(X[:, 1] > 0, "up", "down")).tolist()


def played(pool, n, labels=Y):
    """Pick and tell `n` labels one by one; return the picks."""
    picks = []
    for _ in range(n):
        [i] = pool.pick()
        pool.tell(i, labels[i])
        picks.append(i)
    return picks


def test_without_a_name_the_criterion_is_hvar_and_the_noise_a_tenth():
    pool = PoolSampler(X)
    assert (pool.criterion, pool.noise_variance, pool.kernel, pool.seed) == (
        "hvar",
        0.1,
        None,
        None,
    )
    assert len(pool) == 40


@examples(25)
@given(
    order=st.permutations(range(40)),
    n=st.integers(1, 25),
    noise_variance=st.sampled_from([0.01, 0.1, 0.5]),
)
def test_it_predicts_what_a_classifier_taught_the_same_labels_predicts(order, n, noise_variance):
    kernel = kernels.SquaredExponential(0.7)
    pool = PoolSampler(X, kernel=kernel, noise_variance=noise_variance)
    classifier = GPClassifier(kernel, noise_variance=noise_variance)
    for i in order[:n]:
        pool.tell(i, Y[i])
        classifier.learn_one(dict(enumerate(X[i].tolist())), Y[i])
    for x, label in zip(X.tolist(), pool.predict(), strict=True):
        means = classifier.predict_proba_one(dict(enumerate(x)), with_dist=True).mean
        assert means[label] == pytest.approx(max(means.values()), abs=1e-9)


@pytest.mark.parametrize(
    "kernel",
    [
        kernels.Linear() + kernels.Constant(),
        kernels.Matern52(0.5) * kernels.Constant(2.0),
        kernels.RationalQuadratic(0.7),
        kernels.SquaredExponential({0: 0.5, 1: 2.0}),
        kernels.On([1], kernels.SquaredExponential(0.5)),
    ],
)
def test_it_takes_every_kernel_that_a_classifier_takes(kernel):
    pool = PoolSampler(X, kernel=kernel, seed=1)
    classifier = GPClassifier(kernel, noise_variance=0.1)
    for i in played(pool, 15):
        classifier.learn_one(dict(enumerate(X[i].tolist())), Y[i])
    expected = [classifier.predict_one(dict(enumerate(x))) for x in X.tolist()]
    assert pool.predict() == expected
    assert len(set(expected)) > 1


@pytest.mark.parametrize("criterion", CRITERIA)
def test_each_point_is_picked_once_until_none_is_left(criterion):
    pool = PoolSampler(X, criterion, seed=1)
    assert sorted(played(pool, 40)) == list(range(40))
    assert pool.labels == dict(enumerate(Y))
    with pytest.raises(ValueError, match="all 40 points have a label; there is none to pick"):
        pool.pick()


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("n", [1, 7])
def test_picking_changes_nothing(criterion, n):
    pool, other = PoolSampler(X, criterion, seed=1), PoolSampler(X, criterion, seed=1)
    for _ in range(12):
        picks = [pool.pick(n) for _ in range(3)]
        assert picks[0] == picks[1] == picks[2]
        [i] = other.pick()
        pool.tell(i, Y[i])
        other.tell(i, Y[i])
    assert pool.predict() == other.predict()


@examples(30)
@given(
    criterion=st.sampled_from(sorted(CRITERIA)),
    n_told=st.integers(0, 20),
    n=st.integers(1, 20),
    seed=st.integers(0, 99),
)
def test_a_batch_has_different_points_without_a_label_and_begins_as_a_smaller_one(
    criterion, n_told, n, seed
):
    pool = PoolSampler(X, criterion, seed=seed)
    for i in range(n_told):
        pool.tell(i, Y[i])
    batch = pool.pick(n)
    assert len(set(batch)) == n
    assert min(batch) >= n_told
    assert batch[: n // 2] == (pool.pick(n // 2) if n > 1 else [])


@pytest.mark.parametrize("criterion", sorted(set(CRITERIA) - {"rand"}))
@pytest.mark.parametrize("n_told", [0, 1, 6])
def test_a_batch_has_no_near_duplicates(criterion, n_told):
    centres = np.array(list(itertools.product([-3.0, 0.0, 3.0], repeat=2)))
    rng = np.random.default_rng(5)
    points = np.repeat(centres, 5, axis=0) + 1e-3 * rng.normal(size=(45, 2))
    pool = PoolSampler(points, criterion, kernel=kernels.SquaredExponential(1.0), seed=1)
    for k in range(n_told):
        pool.tell(5 * k, ("odd", "even")[k % 2])
    heaps = [i // 5 for i in pool.pick(9 - n_told)]
    assert sorted(heaps) == list(range(n_told, 9))


def test_a_batch_is_what_would_be_picked_if_the_expected_labels_were_told():
    pool, twin = PoolSampler(X, "l2fm", seed=1), PoolSampler(X, "l2fm", seed=1)
    for sampler in (pool, twin):
        for i in range(8):
            sampler.tell(i, Y[i])
    batch = pool.pick(6)
    for i in batch:
        assert twin.pick() == [i]
        twin.tell(i, twin.predict()[i])


def test_lots_decide_where_all_are_alike_and_belong_to_the_seed():
    firsts = {PoolSampler(X, seed=seed).pick()[0] for seed in range(30)}
    assert len(firsts) > 10
    assert PoolSampler(X, seed=4).pick() == PoolSampler(X, seed=4).pick()
    assert played(PoolSampler(X, "rand", seed=2), 9) == played(PoolSampler(X, "rand", seed=2), 9)
    assert played(PoolSampler(X, "rand", seed=2), 9) != played(PoolSampler(X, "rand", seed=3), 9)


def test_without_a_seed_one_is_drawn_and_kept():
    pool = PoolSampler(X)
    assert [pool.pick() for _ in range(5)] == [pool.pick()] * 5


def test_sqsm_and_l2fm_pick_the_same():
    assert played(PoolSampler(X, "sqsm", seed=1), 20) == played(PoolSampler(X, "l2fm", seed=1), 20)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_two_classes_are_picked_as_labels_of_one_function(criterion):
    """With the classes in the other order the second function leads, and nothing changes."""
    labels = ["a" if y == "right" else "b" for y in Y]
    first, second = (PoolSampler(X, criterion, seed=1) for _ in range(2))
    swapped = {"a": "b", "b": "a"}
    assert played(first, 20, labels) == played(second, 20, [swapped[y] for y in labels])
    assert first.predict() == [swapped[y] for y in second.predict()]


def test_dictionaries_and_an_array_are_the_same_pool():
    xs = [{"a": a, "b": b} for a, b in X.tolist()]
    assert played(PoolSampler(xs, seed=1), 25) == played(PoolSampler(X, seed=1), 25)


def test_labels_may_be_anything_that_can_be_told_apart():
    for labels in ((True, False), (1, 2), (0.5, 1.5), tuple(np.array(["a", "b"]))):
        pool = PoolSampler([[0.0], [1.0]], seed=1)
        pool.tell(0, labels[0])
        pool.tell(np.int64(1), labels[1])
        assert pool.predict() == list(labels)


def test_one_class_is_predicted_everywhere():
    pool = PoolSampler(X)
    pool.tell(3, "up")
    assert pool.predict() == ["up"] * 40


def test_a_wrong_label_among_many_is_outvoted():
    pool = PoolSampler([[0.0]] * 9 + [[9.0]])
    for i in range(8):
        pool.tell(i, "wrong" if i == 0 else "right")
    pool.tell(9, "wrong")
    assert pool.predict() == ["right"] * 9 + ["wrong"]
    assert pool.labels[0] == "wrong"


@pytest.mark.parametrize("criterion", ["bald", ["hvar"]])
def test_an_unknown_criterion_is_refused(criterion):
    with pytest.raises(
        ValueError, match=r"one of rand, mvar, rkhs, hvar, sqsm, l2fm, got "
    ) as error:
        PoolSampler(X, criterion)
    assert str(error.value).endswith(repr(criterion))


@pytest.mark.parametrize("n", [0, -1, 41, 1.5, None])
def test_impossible_batches_are_refused(n):
    with pytest.raises(ValueError, match="n must be a whole number from 1 to 40"):
        PoolSampler(X).pick(n)


@pytest.mark.parametrize("index", [-1, 40])
def test_a_point_that_does_not_exist_is_refused(index):
    with pytest.raises(IndexError, match=f"index must be from 0 to 39, got {index}"):
        PoolSampler(X).tell(index, "up")


def test_an_index_that_is_no_number_is_refused():
    with pytest.raises(TypeError, match=r"whole number, got \[3\]"):
        PoolSampler(X).tell([3], "up")


@pytest.mark.parametrize("y", [None, float("nan")])
def test_no_label_is_refused(y):
    with pytest.raises(TypeError, match="y must be a label"):
        PoolSampler(X).tell(0, y)


def test_a_second_label_for_a_point_is_refused_and_changes_nothing():
    pool = PoolSampler(X)
    pool.tell(3, "up")
    with pytest.raises(ValueError, match="point 3 has the label 'up' already; make a new"):
        pool.tell(3, "down")
    assert pool.labels == {3: "up"}


def test_nothing_is_predicted_before_the_first_label():
    with pytest.raises(ValueError, match="nothing is known of any class; tell a label first"):
        PoolSampler(X).predict()


def test_a_seed_that_is_no_number_is_refused():
    with pytest.raises(TypeError, match="seed must be a whole number or None, got '1'"):
        PoolSampler(X, seed="1")


def test_strict_interpolation_is_refused():
    with pytest.raises(ValueError, match="a millionth of the prior variance"):
        PoolSampler(X, noise_variance=0.0)
