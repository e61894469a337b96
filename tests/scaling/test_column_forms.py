import itertools
import json
import math
from collections import Counter
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.scaling.column_forms import (
    FAR,
    ColumnForms,
    NormalScores,
    classes_of,
    forms_of,
    has_enough,
    has_heavy_tail,
    is_name,
    weights_of,
)


@given(st.integers(20, 60), st.integers(1, 5), st.integers(2, 4), st.integers(0, 99))
def test_weights_leave_distances_as_long_on_average(n, d, m, seed):
    rng = np.random.default_rng(seed)
    weights = weights_of(
        rng.normal(size=(n, d)), [*range(m), *rng.integers(m, size=n - m).tolist()]
    )
    assert np.square(weights).mean() == pytest.approx(1.0)


@given(st.floats(0.01, 100.0), st.floats(-5.0, 5.0), st.integers(0, 99))
def test_weights_depend_on_neither_units_nor_names_of_labels(unit, at, seed):
    """They do on the origin of a feature, whose square counts as well: the mean, once scaled."""
    rng = np.random.default_rng(seed)
    Z, y = rng.normal(size=(40, 3)), [*"pqr", *rng.choice(list("pqr"), size=37).tolist()]
    expected = weights_of(Z, y)
    assert weights_of(Z * unit, y) == pytest.approx(expected)
    assert weights_of(Z, [{"p": 7, "q": "at", "r": at}[label] for label in y]) == pytest.approx(
        expected
    )


def test_a_feature_that_tells_the_label_by_its_square_weighs_most():
    """Of 40 labels: shares of variance 1, 0 and 0, chance 1/39, mean told 1/3."""
    inner, outer = [0.5, -0.5] * 10, [1.5, -1.5] * 10
    others = [1.0, 1.0, -1.0, -1.0] * 10
    Z = np.array([inner + outer, others, [0.0] * 40]).T
    least = 0.3 / 3.0 + 1.0 / 39.0 + 0.05
    squares = np.array([1.0 + least, least, least])
    assert weights_of(Z, ["in"] * 20 + ["out"] * 20) == pytest.approx(
        np.sqrt(squares / squares.mean())
    )


@pytest.mark.parametrize(
    "labels", [["p"] * 40, ["p", "q"] * 9, list(range(14)) * 2], ids=["one", "few", "many classes"]
)
def test_too_few_labels_weigh_nothing(labels):
    assert weights_of(np.ones((len(labels), 2)), labels) is None


@pytest.mark.parametrize("labels", [["p"] + ["q"] * 19, list(range(14)) * 3], ids=["20", "3 each"])
def test_no_label_fewer_is_enough(labels):
    assert has_enough(labels)
    assert not has_enough(labels[1:] if len(labels) > 20 else labels[:-1])


def test_what_varies_by_rounding_errors_only_tells_nothing():
    Z = np.array([[1e-6, 1.0], [-1e-6, 1.0], [1e-6, -1.0], [-1e-6, -1.0]] * 10)
    weights = weights_of(Z, ["in", "out"] * 20)
    assert weights[0] == weights[1]


def test_no_features_have_no_weights():
    assert weights_of(np.empty((40, 0)), ["p", "q"] * 20) is None


# --- ranks


columns = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=80)


def test_scores_are_normal_quantiles_of_ranks_in_the_middle_of_their_share():
    quantile = NormalDist().inv_cdf
    scores = NormalScores.of(np.array([5.0, 2.0, 5.0, 7.0, 100.0]))
    expected = [quantile(rank / 5) for rank in (0.5, 2.0, 3.5, 4.5)]
    assert list(map(scores, (2.0, 5.0, 7.0, 100.0))) == pytest.approx(expected)
    assert scores(6.0) == pytest.approx((expected[1] + expected[2]) / 2)
    assert (scores(-9999.0), scores(1e9)) == (scores(2.0), scores(100.0))
    many = NormalScores.of(np.arange(100.0))
    assert (len(many.values), many.values[0], many.values[-1]) == (33, 0.0, 99.0)


@given(columns, st.floats(-2e6, 2e6), st.floats(-2e6, 2e6))
def test_scores_never_fall_and_leave_no_bounds(numbers, one, other):
    scores = NormalScores.of(np.array(numbers))
    low, high = sorted((one, other))
    assert scores(low) <= scores(high) + 1e-12
    assert scores(min(numbers)) <= scores(low)
    assert scores(high) <= scores(max(numbers))
    assert len(scores.values) <= 33


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=80))
def test_scores_do_not_depend_on_the_unit_or_its_logarithm(numbers):
    plain = NormalScores.of(np.array(numbers, dtype=float))
    powers = NormalScores.of(10.0 ** np.array(numbers))
    assert powers.scores == plain.scores


def test_a_tail_is_heavy_beside_the_distance_of_most():
    rng = np.random.default_rng(1)
    for n in (40, 400):
        normal = rng.normal(size=(100, n))
        assert not any(map(has_heavy_tail, normal))
        assert all(map(has_heavy_tail, np.exp(2.5 * normal)))
        assert all(map(has_heavy_tail, -np.exp(2.5 * normal)))
        assert not any(map(has_heavy_tail, rng.random((100, n))))


def test_tails_of_columns_are_those_of_each():
    X = np.random.default_rng(1).normal(size=(40, 30)) ** np.arange(1, 31)
    found = has_heavy_tail(X).tolist()
    assert found == [bool(has_heavy_tail(X[:, j])) for j in range(30)]
    assert 1 < sum(found) < 30


@pytest.mark.parametrize("rare", [[], [1.0] * 9, [1.0, 50.0, 1000.0]])
def test_what_is_mostly_equal_has_no_heavy_tail(rare):
    assert not has_heavy_tail(np.array([0.0] * 31 + rare))


def test_twenty_numbers_have_ranks_and_nineteen_none():
    x = np.exp(3.0 * np.random.default_rng(1).normal(size=60))
    labels = np.where(x > 1.0, "high", "low").tolist()
    for n, found in ((20, ["a"]), (19, [])):
        X = np.where(np.arange(60) % 3 == 0, x, np.nan)[:, None]
        X[3 * n :] = np.nan
        Z = np.nan_to_num(X / 100.0).clip(-FAR, FAR)
        assert [*forms_of(["a"], X, Z, labels, with_names=True).scores] == found


# --- names


def is_name_of(numbers, labels):
    return is_name(numbers, classes_of(labels))


def is_name_by_pairs(numbers, labels):
    """Brute-force twin: of each number that is there twice, how often two events agree."""
    values = sorted(set(numbers))
    if any(v != round(v) for v in numbers) or not 3 <= len(values) <= len(numbers) / 2:
        return False
    of = [[y for w, y in zip(numbers, labels, strict=True) if w == v] for v in values]
    gaps, likes, per_pair = [], [], []
    for i, mine in enumerate(of):
        if len(mine) < 2:
            continue
        others = [y for k in (i - 1, i + 1) if 0 <= k < len(of) for y in of[k]]
        equal = [a == b for a, b in itertools.combinations(mine, 2)]
        beside = [a == b for a in mine for b in others]
        gaps.append(np.mean(equal) - np.mean(beside))
        likes.append(np.mean(equal))
        per_pair.append(
            1 / min(len(equal), len(mine)) + 1 / min(len(beside), len(mine) + len(others))
        )
    if len(gaps) < 3:
        return False
    anywhere = np.mean([a == b for a, b in itertools.combinations(labels, 2)])
    by_chance = math.sqrt(anywhere * (1 - anywhere) * sum(per_pair)) / len(gaps)
    least = 3 * by_chance, (np.mean(likes) - anywhere) / 2, 0.3 * (1 - anywhere)
    return np.mean(gaps) > max(least)


@given(
    st.lists(
        st.tuples(st.integers(-3, 3), st.sampled_from("ppqr")), min_size=20, max_size=60
    ).filter(lambda rows: len({v for v, _ in rows}) >= 3)
)
def test_names_are_found_by_the_labels_of_pairs(rows):
    numbers, labels = [float(v) for v, _ in rows], [y for _, y in rows]
    assert is_name_of(np.array(numbers), labels) == is_name_by_pairs(numbers, labels)


def test_a_sensor_that_is_often_at_its_ends_is_still_a_range():
    """It is at 0 or 60 in half of the events, with labels of their own: most pairs are there."""
    rng = np.random.default_rng(0)
    numbers = np.clip(rng.integers(-60, 121, size=300), 0, 60).astype(float)
    labels = np.select([numbers == 0, numbers == 60, numbers < 30], ["off", "full", "low"], "high")
    assert np.mean(np.isin(numbers, (0, 60))) > 0.5
    assert not is_name_of(numbers, labels.tolist())


def states(n, seed=0):
    """Return states 0 to 11, of which every other one is `on`, with a tenth of wrong labels."""
    rng = np.random.default_rng(seed)
    state = rng.integers(12, size=n)
    on = (state % 2 == 0) ^ (rng.random(n) < 0.1)
    return state.astype(float), np.where(on, "on", "off").tolist()


def test_every_other_state_makes_names_and_a_range_of_them_numbers():
    numbers, labels = states(200)
    assert is_name_of(numbers, labels)
    assert is_name_of(1000.0 - 7.0 * numbers, labels)
    assert not is_name_of(numbers, np.where(numbers < 6, "on", "off").tolist())
    assert not is_name_of(numbers, np.where(abs(numbers - 6) < 3, "on", "off").tolist())
    assert not is_name_of(numbers, labels[::-1])
    assert not is_name_of(numbers, ["on"] * 200)
    assert is_name_of(np.arange(60.0) % 3, ["on", "off", "on"] * 20)


def test_names_tell_at_least_twice_what_their_neighbours_do():
    """Neighbours tell .47 and .55 of it; labels by number."""
    for label_of, expected in (("00011100", True), ("001111100", False)):
        numbers = np.arange(60 * len(label_of)) % len(label_of)
        assert is_name_of(numbers + 0.0, [label_of[n] for n in numbers]) == expected


def test_names_tell_three_tenths_of_all_that_there_is_to_tell():
    """Equal numbers agree more often than neighbours by .140 and .172, and .150 is needed."""
    numbers, nth = np.arange(1200) % 12, np.arange(1200) // 12
    for n_alike, expected in ((69, False), (71, True)):
        labels = (numbers % 2 == 0) == (nth < n_alike)
        assert is_name_of(numbers + 0.0, labels.tolist()) == expected


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v + 0.25,
        lambda v: v % 2,
        lambda v: np.argsort(v) + 0.0,
        lambda v: v[:0],
    ],
    ids=["not whole", "two values", "no value twice", "none"],
)
def test_what_cannot_be_a_name_is_none(change):
    numbers, labels = states(200)
    changed = change(numbers)
    assert not is_name_of(changed, labels[: len(changed)])


# --- where numbers are missing


def given_by(is_given, labels, *, seed=0):
    """Return the forms of a column of noise with gaps."""
    noise = np.random.default_rng(seed).normal(size=(len(labels), 1))
    X = np.where(np.asarray(is_given)[:, None], noise, np.nan)
    return forms_of(["a"], X, np.nan_to_num(X), labels, with_names=True)


def test_where_a_number_is_missing_counts_if_it_tells_the_label():
    rng = np.random.default_rng(0)
    labels = rng.choice(["in", "out"], size=100).tolist()
    is_given = rng.random(100) < np.where(np.array(labels) == "in", 0.9, 0.1)
    assert abs(given_by(is_given, labels).missing["a"]) == FAR
    assert not given_by(is_given, rng.permutation(labels).tolist()).missing
    assert not given_by([True] * 100, labels).missing
    assert not given_by([False] * 100, labels).missing


def test_a_number_that_is_missing_while_labels_stay_the_same_tells_nothing():
    """It has started once, as most sensors do, when something else happened, too."""
    labels = ["in"] * 50 + ["out"] * 50
    assert not given_by([y == "out" for y in labels], labels).missing
    comes_and_goes = (["in"] * 5 + ["out"] * 5) * 10
    assert given_by([y == "out" for y in comes_and_goes], comes_and_goes).missing


def test_the_side_is_chosen_on_which_the_others_are_not():
    """Small values are `in`, and so is where one is missing: it counts as very small."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    is_given = (rng.random(200) < 0.5) | (x > 0)
    labels = np.where(x > 0, "out", "in").tolist()
    for sign in (1.0, -1.0):
        X = np.where(is_given, sign * x, np.nan)[:, None]
        assert forms_of(["a"], X, np.nan_to_num(X), labels, with_names=True).missing == {
            "a": -sign * FAR
        }


def test_a_number_that_comes_and_goes_all_the_time_tells_no_more_than_events_do():
    """Of 40 labels it tells .066; .02 and two standard deviations are .093."""
    X = np.array([[0.0], [np.nan]] * 20)
    labels = [*["in", "out"] * 13, *["out", "in"] * 7]
    assert not forms_of(["a"], X, np.zeros((40, 1)), labels, with_names=True).missing


@pytest.mark.parametrize("n", [2, 3])
def test_three_numbers_or_gaps_may_matter_and_two_not(n):
    labels = ["rare" if 5 < i <= 5 + 3 * n and i % 3 == 0 else "often" for i in range(40)]
    is_rare = np.array([y == "rare" for y in labels])
    assert is_rare.sum() == n
    for is_given in (is_rare, ~is_rare):
        X = np.where(is_given, 7.0, np.nan)[:, None]
        found = forms_of(["a"], X, np.zeros((40, 1)), labels, with_names=True).missing
        assert found == ({"a": -FAR} if n == 3 else {})  # either side tells it: the first


def told_by_definition(z, labels):
    """Brute-force twin of the correlation ratio, less chance, of a column or its square."""
    z, chance = np.asarray(z), (len(set(labels)) - 1) / (len(labels) - 1)
    ratios = []
    for v in (z, z * z):
        classes = [v[[y == label for y in labels]] for label in set(labels)]
        between = sum(len(c) * (c.mean() - v.mean()) ** 2 for c in classes)
        ratios.append(between / ((v - v.mean()) ** 2).sum())
    return max((max(ratios) - chance) / (1 - chance), 0.0)


def persistence(series):
    """Brute-force twin: how much more often two successive values are equal than any two."""
    is_equal = np.asarray(series)[:, None] == np.asarray(series)
    anywhere = is_equal.mean()
    return (is_equal.diagonal(1).mean() - anywhere) / (1 - anywhere)


def kinds_by_definition(x, z, labels):
    """Brute-force twin of `forms_of` for one column."""
    is_given = ~np.isnan(x)
    x_given = x[is_given]
    if is_name_by_pairs(x_given.tolist(), [y for y, g in zip(labels, is_given, strict=True) if g]):
        return ["name"]
    found, told = [], told_by_definition(z, labels)
    low, first, median, third, high = np.quantile(x_given, (0.05, 0.25, 0.5, 0.75, 0.95))
    tail = max(high - median, median - low) / ((third - first) / 2)
    if len(x_given) >= 20 and tail > 3 + 9 / math.sqrt(len(x_given)):
        ranked = z.copy()
        ranked[is_given] = list(map(NormalScores.of(x_given), x_given))
        if (by := told_by_definition(ranked, labels)) > told + 0.02:
            found, z, told = ["ranks"], ranked, by
    if 3 <= len(x_given) <= len(x) - 3:
        together = max(persistence(is_given), 0) * max(persistence(labels), 0)
        n = len(x) * (1 - together) / (1 + together)
        least = 0.02 + 2 * math.sqrt(2 * (len(set(labels)) - 1)) / n
        low, high = (told_by_definition(np.where(is_given, z, far), labels) for far in (-3, 3))
        if max(low, high) > told + least:
            found.append(f"missing {'high' if high > low else 'low'}")
    return found


def test_forms_are_those_by_definition():
    """Columns of all kinds, many of which tell about as much as is needed."""
    rng, n, d = np.random.default_rng(3), 50, 600
    labels = rng.choice(["in", "out", "away"], p=[0.4, 0.5, 0.1], size=n).tolist()
    is_out, kind = np.array([[y == "out"] for y in labels]), np.arange(d) % 3
    x = rng.normal(size=(n, d)) + rng.uniform(-1.5, 1.5, d) * is_out
    x = np.where(kind == 1, np.exp(rng.uniform(0.3, 2.5, d) * x), x)
    whole, random = 2.0 * rng.integers(4, size=(n, d)) + is_out, rng.integers(8, size=(n, d))
    whole = np.where(rng.random((n, d)) < rng.uniform(0.2, 0.9, d), random, whole)
    x = np.where(kind == 2, whole, x)
    n_gaps = np.where(is_out, rng.random(d), rng.random(d) ** 3) * (np.arange(d) % 5 > 1)
    x[rng.random((n, d)) < n_gaps] = np.nan
    x[:3] = np.arange(3.0)[:, None]  # at least three numbers
    z = np.nan_to_num((x - np.nanmean(x, axis=0)) / np.nanstd(x, axis=0)).clip(-3.0, 3.0)
    forms = forms_of(range(d), x, z, labels, with_names=True)
    kinds, found = forms.kinds(), []
    for j in range(d):
        side = "high" if forms.missing.get(j, 0.0) > 0.0 else "low"
        found.append([f"missing {side}" if k == "missing" else k for k in kinds.get(j, [])])
    expected = [kinds_by_definition(x[:, j], z[:, j], labels) for j in range(d)]
    assert found == expected
    assert min(Counter(map(str, expected)).values()) >= 5
    assert len(set(map(str, expected))) == 7  # names, ranks, low and high, these with ranks, none


def test_columns_that_tell_nothing_count_as_they_are():
    """But for one in 25 of those with gaps, and one in 100 of whole numbers."""
    rng = np.random.default_rng(0)
    labels = rng.choice(["in", "out", "away"], size=80).tolist()
    whole = rng.integers(8, size=(80, 1000)).astype(float)
    gaps = np.where(rng.random((80, 1000)) < 0.3, np.nan, rng.normal(size=(80, 1000)))
    for X, most in ((whole, 10), (gaps, 40)):
        forms = forms_of(range(1000), X, np.nan_to_num(X), labels, with_names=True)
        assert len(forms.kinds()) <= most


def test_gaps_and_classes_that_both_last_are_not_taken_for_each_other():
    """But for one column in 25: each class comes twice, and gaps last for a dozen events."""
    rng, labels = np.random.default_rng(0), np.repeat([0, 1, 2, 3, 2, 0, 3, 1], 25).tolist()
    is_given = np.cumsum(rng.random((200, 300)) < 1 / 12, axis=0) % 2 == 0
    X = np.where(is_given, rng.normal(size=(200, 300)), np.nan)
    forms = forms_of(range(300), X, np.nan_to_num(X), labels, with_names=True)
    assert len(forms.missing) <= 12


def test_few_labels_have_no_forms():
    numbers, labels = states(19)
    X = numbers[:, None]
    assert forms_of(["a"], X, X, labels, with_names=True) == ColumnForms()


def test_what_columns_count_as_is_the_same_after_a_restart():
    forms = ColumnForms(
        {"a": NormalScores.of(np.array([1.0, 2.0, 9.0]))}, ("b", 3), {"a": FAR, 4: -FAR}
    )
    again = ColumnForms.of_state(json.loads(json.dumps(forms.state())))
    assert again.state() == forms.state()
    assert again.kinds() == {"b": ["name"], 3: ["name"], "a": ["ranks", "missing"], 4: ["missing"]}
