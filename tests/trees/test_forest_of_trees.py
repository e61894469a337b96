import importlib
import math
import os
import pickle
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamgp.trees import forest as home
from streamgp.trees.forest import Forest
from streamgp.trees.numpy_backend import probabilities
from streamgp.trees.storage import Limits, bag, draw
from tests.helpers.laws import examples
from tests.trees import brute_forest

seeds = st.integers(0, 10**6)
limits = st.builds(
    Limits,
    n_tests=st.integers(1, 8),
    min_weight=st.integers(2, 12),
    max_nodes=st.sampled_from([1, 2, 3, 9, 200]),
    inherit=st.integers(0, 1),
)
thorough = settings(examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
SMALL = Limits(n_tests=5, min_weight=6, max_nodes=200, inherit=1)


def stream(seed, n=150, gaps=0.2, n_classes=4):
    """Numbers, truth values and texts with gaps, of classes that come one after the other."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        y = int(rng.integers(min(n_classes, 1 + 4 * n_classes * i // n)))
        x = np.array([rng.normal(y, 0.7), rng.integers(2), 10.0 + rng.integers(3), 7.0, -0.0])
        x[2] = x[2] if rng.random() > gaps / 2 * (y + 1) else 0.0
        x[rng.permutation([0, 1, 3, 4])[: rng.binomial(4, gaps)]] = math.nan
        yield x, y, float(rng.choice([0.3, 1.0, 2.5, 20.25]))


IS_TEXT = [False, False, True, False, False]


def planted(own_limits, kernels, of=(5,), n_trees=3, n_classes=4):
    forest = Forest(n_trees, own_limits, of, kernels)
    forest.widen(IS_TEXT)
    for _ in range(n_classes):
        forest.add_class()
    return forest


def teach(forest, examples):
    """Teach all forests the same weights, and return what the first says."""
    said = []
    for x, y, w in examples:
        forest.meet(x, y)
        answers = [forest.learn(m, w) for m in range(len(forest.n_learned))]
        said.append(answers[0])
    return np.array(said)


def tables(forest):
    return [a.tobytes() for a in forest._tables if isinstance(a, np.ndarray)]


# --- what it is


@thorough
@given(seed=seeds, own_limits=limits, gaps=st.sampled_from([0.0, 0.3]))
def test_it_grows_as_trees_of_objects_do(kernels, seed, own_limits, gaps):
    forest = planted(own_limits, kernels, of=[seed])
    brute = brute_forest.Forest(3, own_limits, seed, IS_TEXT)
    for x, y, w in stream(seed, 90, gaps):
        brute.learn(x, y, w)
        assert teach(forest, [(x, y, w)])[0].tolist() == brute.probabilities(x, 4)
    probes = [x for x, _, _ in stream(seed + 1, 20, gaps)]
    expected = [brute.probabilities(x, 4) for x in probes]
    assert forest.predict(np.array(probes))[:, 0].tolist() == expected
    assert forest.n_nodes.tolist() == [tree.n_nodes for tree in brute.trees]


@thorough
@given(seed=seeds, own_limits=limits, n_groups=st.integers(1, 3))
def test_compiled_and_vectorised_trees_are_equal_bitwise(seed, own_limits, n_groups):
    pytest.importorskip("numba")
    ways = [
        importlib.import_module(f"streamgp.trees.{way}")
        for way in ("numpy_backend", "numba_backend")
    ]
    forests = [planted(own_limits, way, of=range(n_groups)) for way in ways]
    examples, rng = list(stream(seed)), np.random.default_rng(seed)
    weights = rng.exponential(2.0, size=(len(examples), n_groups)) * rng.integers(3)
    for (x, y, _), ws in zip(examples, weights, strict=True):
        for forest in forests:
            forest.meet(x, y)
        for m, w in enumerate(ws.tolist()):
            a, b = (forest.learn(m, w) for forest in forests)
            assert a.tobytes() == b.tobytes()
    assert tables(forests[0]) == tables(forests[1])
    X = np.array([x for x, _, _ in stream(seed + 1, 300)])
    assert forests[0].predict(X).tobytes() == forests[1].predict(X).tobytes()


def test_forests_that_share_examples_grow_as_they_would_alone(kernels):
    together = planted(SMALL, kernels, of=[3, 4, 5])
    alone = [planted(SMALL, kernels, of=[seed]) for seed in (3, 4, 5)]
    for i, (x, y, w) in enumerate(stream(0)):
        together.meet(x, y)
        for m, one in enumerate(alone):
            one.meet(x, y)
            own = w * m if i % 2 else w
            assert together.learn(m, own).tolist() == one.learn(0, own).tolist()
    X = np.array([x for x, _, _ in stream(1)])
    assert together.predict(X).tolist() == np.hstack([one.predict(X) for one in alone]).tolist()
    assert together.n_learned == [75, 150, 150]


def test_leaves_are_pure_where_a_test_can_make_them_so(kernels):
    forest = planted(SMALL._replace(n_tests=30), kernels)
    examples = [(np.array([y, 0, 10.0, 0, 0]), y, 1.0) for y in (0, 1) * 200]
    teach(forest, examples)
    p = forest.predict(np.array([examples[0][0], examples[1][0]]))[:, 0]
    assert p[0, 0] > 0.99
    assert p[1, 1] > 0.99
    assert forest.n_nodes.tolist() == [3, 3, 3]


def test_where_nothing_tells_classes_apart_no_leaf_is_split(kernels):
    x = np.array([1.0, 0.0, 10.0, math.nan, 3.0])
    forest = planted(SMALL, kernels)
    p = teach(forest, [(x, i % 2, 1.0) for i in range(300)])[-1]
    assert forest.n_nodes.tolist() == [1, 1, 1]
    assert p[0] == pytest.approx(0.5, abs=0.1)


def test_that_a_number_is_missing_can_tell_classes_apart(kernels):
    forest = planted(SMALL, kernels)
    rng = np.random.default_rng(0)

    def example(y):
        x = np.zeros(5)
        x[0] = math.nan if y else rng.normal()
        return x, y, 1.0

    teach(forest, [example(i % 2) for i in range(200)])
    p = forest.predict(np.array([example(0)[0], example(1)[0]]))[:, 0]
    assert p[0, 0] > 0.95
    assert p[1, 1] > 0.95


@pytest.mark.parametrize("inherit", [0, 1])
def test_trees_that_inherit_examples_are_larger(kernels, inherit):
    """Of 600 examples, each counts once, or for several splits one after the other."""
    forest = planted(SMALL._replace(min_weight=40, inherit=inherit), kernels)
    teach(forest, [(x, y, 1.0) for x, y, _ in stream(0, 600, gaps=0.0)])
    assert (forest.n_nodes.mean() > 32) == bool(inherit)


# --- what it keeps


@pytest.mark.parametrize("n", [0, 40])
def test_a_copy_goes_its_own_way_from_the_same_bits(kernels, n):
    forest, examples = planted(SMALL, kernels), list(stream(0))
    teach(forest, examples[:n])
    twin = pickle.loads(pickle.dumps(forest))
    assert teach(twin, examples[n:]).tolist() == teach(forest, examples[n:]).tolist()
    assert tables(twin) == tables(forest)


def test_a_class_that_is_known_changes_no_tree(kernels):
    few, many = (planted(SMALL, kernels, n_classes=n) for n in (4, 40))
    teach(few, stream(0))
    teach(many, stream(0))
    assert few._tables.nodes.tobytes() == many._tables.nodes.tobytes()
    assert few._tables.counts[:, :4].tolist() == many._tables.counts[:, :4].tolist()


def test_columns_may_come_later(kernels):
    """What was learned before has none of them."""
    early, late = planted(SMALL, kernels), Forest(3, SMALL, [5], kernels)
    late.widen(IS_TEXT[:2])
    for _ in range(4):
        late.add_class()
    examples = list(stream(0))
    for x, y, w in examples[:70]:
        x[2:] = [0.0, math.nan, math.nan]
        early.meet(x, y)
        late.meet(x[:2], y)
        assert early.learn(0, w).tolist() == late.learn(0, w).tolist()
    late.widen(IS_TEXT[2:])
    assert teach(late, examples[70:]).tolist() == teach(early, examples[70:]).tolist()


def test_an_example_of_weight_0_changes_no_tree(kernels):
    forest, examples = planted(SMALL, kernels), list(stream(0))
    teach(forest, examples)
    before, n_learned = tables(forest), forest.n_learned
    x = examples[7][0]
    forest.meet(x, 0)
    assert forest.learn(0, 0.0).tolist() == forest.predict(x[None])[0, 0].tolist()
    assert forest.n_learned == n_learned
    nodes_to_used = slice(0, 8)
    assert tables(forest)[nodes_to_used] == before[nodes_to_used]


def test_no_forest_learns_an_example_twice(kernels):
    forest = planted(SMALL, kernels, of=[1, 2])
    with pytest.raises(RuntimeError, match="forest 1 has learned this example; meet another one"):
        forest.learn(1, 1.0)
    forest.meet(np.zeros(5), 0)
    forest.learn(1, 1.0)
    with pytest.raises(RuntimeError, match="forest 1 has learned this example; meet another one"):
        forest.learn(1, 1.0)
    forest.learn(0, 1.0)


def test_memory_is_flat_once_all_trees_are_full(kernels):
    forest = planted(Limits(n_tests=3, min_weight=10, max_nodes=40, inherit=1), kernels)
    rng, sizes = np.random.default_rng(0), []
    n = 50_000 if kernels.__name__.endswith("compiled") else 6000
    X, labels = rng.normal(size=(n, 5)), rng.integers(4, size=n).tolist()
    for i in range(n):
        forest.meet(X[i], labels[i])
        forest.learn(0, 1.0)
        if i % 500 == 499:
            sizes.append((sum(map(len, tables(forest))), len(pickle.dumps(forest))))
    assert forest.n_nodes.tolist() == [39] * 3
    assert len(set(sizes[2:])) == 1
    assert sizes[-1][0] < 40_000


def test_examples_are_given_up_with_the_last_leaf_that_remembers_them(kernels):
    """A single leaf that never splits remembers its latest examples, and the pool no more."""
    forest = planted(SMALL, kernels)
    for i in range(500):
        forest.meet(np.array([i, 0.0, 10.0, 0.0, 0.0]), 0)
        forest.learn(0, 1.0)
    assert len(forest._tables.X) <= 32
    remembered = set(forest._tables.X[forest._tables.rings[:3, :, 0].ravel(), 0].tolist())
    assert min(remembered) >= 470


def test_room_is_made_for_many_classes_and_columns(kernels):
    forest = Forest(2, SMALL, [1], kernels)
    for i in range(70):
        forest.widen([i % 3 == 0])
        forest.add_class()
        x = np.where(np.arange(i + 1) % 3 == 0, 5.0, i / 70)
        forest.meet(x, i)
        p = forest.learn(0, 1.0)
        assert p.shape == (i + 1,)
        assert math.isclose(p.sum(), 1.0, abs_tol=1e-12)
    assert forest.predict(np.full((3, 70), math.nan)).shape == (3, 1, 70)


def test_of_no_events_there_are_no_probabilities(kernels):
    forest = planted(SMALL, kernels, of=[1, 2])
    for x, y, w in list(stream(0))[:30]:
        forest.meet(x, y)
        forest.learn(0, w)
    assert forest.predict(np.zeros((0, 5))).shape == (0, 2, 4)


def test_before_the_first_class_there_is_no_probability(kernels):
    forest = Forest(2, SMALL, [1, 2], kernels)
    assert forest.predict(np.zeros((3, 0))).shape == (3, 2, 0)


# --- draws


def test_draws_are_those_of_splitmix64():
    """The first numbers from 1234567, as published with its reference implementation."""
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    drawn = draw(np.full(3, 1234567, np.uint64), np.arange(3))
    assert drawn.tolist() == [((z >> 11) + 0.5) / 2**53 for z in published]


@pytest.mark.parametrize("w", [0.01, 0.3, 1.0, 5.0, 16.0])
def test_weights_are_poisson_variables(w):
    from scipy.stats import poisson

    u = np.random.default_rng(0).uniform(size=2000)
    assert bag(u, w, math.exp(-w), 0).tolist() == poisson.ppf(u, w).tolist()


def test_the_mean_weight_is_the_one_given_however_large_it_is(kernels):
    once = Limits(n_tests=1, min_weight=2, max_nodes=1, inherit=1)
    n = 4000
    for w in (0.5, 2.0, 40.5, 1e5):
        forest = planted(once, kernels, n_trees=n)
        forest.meet(np.zeros(5), 1)
        forest.learn(0, w)
        weights = forest._tables.counts[:n, 1]
        assert weights.mean() == pytest.approx(w, abs=4 * math.sqrt(min(w, 17.0) / n))


def test_trees_and_forests_draw_each_for_itself(kernels):
    forest = planted(SMALL, kernels, of=[1, 2], n_trees=4)
    teach(forest, stream(0, gaps=0.0))
    firsts = [
        (forest._tables.nodes[t]["feature"], forest._tables.nodes[t]["threshold"]) for t in range(8)
    ]
    assert len(set(firsts)) == 8


def test_probabilities_are_smoothed_by_one_example():
    forest = planted(SMALL, None, n_trees=2, n_classes=2)
    forest._tables.counts[:2] = [[3, 0], [0, 0]]
    forest._tables.leaves[:2, 3] = [3, 0]
    p = probabilities(np.array([[0, 1]], np.int32), 2, 2, forest._tables)
    assert p.tolist() == [[[(3.5 / 4 + 0.5) / 2, (0.5 / 4 + 0.5) / 2]]]


# --- either way


@pytest.fixture
def chosen_again(monkeypatch):
    """Nothing is known of numba, before the test and after it."""
    monkeypatch.delitem(sys.modules, "streamgp.trees.numba_backend", raising=False)
    home.fastest.cache_clear()
    yield
    home.fastest.cache_clear()


@pytest.mark.usefixtures("chosen_again")
def test_without_numba_trees_grow_in_numpy(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    assert home.fastest().__name__ == "streamgp.trees.numpy_backend"


def test_with_numba_trees_grow_compiled():
    pytest.importorskip("numba")
    assert home.fastest().__name__ == "streamgp.trees.numba_backend"


@pytest.mark.usefixtures("chosen_again")
def test_with_numba_switched_off_trees_grow_in_numpy(monkeypatch):
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert home.fastest().__name__ == "streamgp.trees.numpy_backend"


def test_trees_are_compiled_where_nothing_can_be_kept(monkeypatch):
    pytest.importorskip("numba")
    compiled = importlib.import_module("streamgp.trees.numba_backend")

    def refuses(_function):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(compiled, "_Cache", refuses)
    assert compiled._compiled(lambda x: x + 1)(1) == 2


CACHED = """
import sys
import numpy as np
from streamgp.trees import numba_backend
print(numba_backend._bag(0.5, 1.0, 0.36, 0), sum(numba_backend._bag.stats.cache_hits.values()))
"""


@pytest.mark.parametrize("harm", ["index", "code", "disk"])
def test_a_cache_that_is_damaged_or_full_costs_the_compilation_alone(tmp_path, harm):
    pytest.importorskip("numba")

    def ran():
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        command = [sys.executable, "-c", CACHED]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout

    first = ran()
    assert first.split()[1] == "0"
    assert ran().split() == [first.split()[0], "1"]
    for file in tmp_path.rglob("*.nb?"):
        if harm == "disk":
            file.unlink()
            file.mkdir()
        elif file.suffix == {"index": ".nbi", "code": ".nbc"}[harm]:
            file.write_bytes(b"junk")
    assert ran() == first


def test_tables_double_at_most():
    forest = planted(SMALL, None)
    sizes = []
    for x, y, w in stream(0, 400):
        teach(forest, [(x, y, w)])
        sizes.append(len(forest._tables.nodes))
    assert all(b <= 2 * a + 6 for a, b in pairwise(sizes))
    assert len(set(sizes)) < 8
