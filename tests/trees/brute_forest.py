"""An online random forest as one would write it down: one object per node, no arrays.

It shares nothing with `streamgp.trees` but what a draw is a function of.

"""

import math
from collections import Counter
from hashlib import blake2b

WHOLE = 2**64


def key(seed, purpose, tree):
    digest = blake2b(f"{seed}\x1f{purpose}\x1f{tree}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def drawn(its_key, n):
    """The n-th number of SplitMix64, from 0, as a number between 0 and 1."""
    z = (its_key + (n + 1) * 0x9E3779B97F4A7C15) % WHOLE
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % WHOLE
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % WHOLE
    z ^= z >> 31
    return ((z >> 11) + 0.5) / 2**53


def poisson(u, w):
    whole = max(math.floor(w - 16.0), 0)
    w -= whole
    k, p = 0, math.exp(-w)
    total = p
    while u > total:
        k += 1
        p = p * w / k
        total += p
    return k + whole


class Leaf:
    def __init__(self, examples=(), inherit=True):
        self.counts = Counter()
        for _, y, k in examples:
            self.counts[y] += k
        self.examples = list(examples) if inherit else []
        self.fresh = sum(k for _, _, k in self.examples)
        self.oldest = 0

    def child(self, _):
        return None


class Split:
    """Numbers from the threshold on go right, and texts that are equal."""

    def __init__(self, column, threshold, is_text, missing_right):
        self.column = column
        self.threshold = threshold
        self.is_text = is_text
        self.missing_right = missing_right
        self.children = []

    def side(self, x):
        value = x[self.column]
        if self.is_text:
            return value == self.threshold
        return self.missing_right if math.isnan(value) else value >= self.threshold

    def child(self, x):
        return self.children[int(self.side(x))]


class Tree:
    def __init__(self, seed, number, limits, is_text):
        self.limits = limits
        self.is_text = is_text
        self.bag_key = key(seed, "bag", number)
        self.split_key = key(seed, "split", number)
        self.root = Leaf()
        self.n_nodes = 1
        self.n_met = 0
        self.n_tried = 0

    def leaf(self, x):
        parent, node = None, self.root
        while node.child(x) is not None:
            parent, node = node, node.child(x)
        return parent, node

    def learn(self, x, y, w):
        k = poisson(drawn(self.bag_key, self.n_met), w)
        self.n_met += 1
        parent, leaf = self.leaf(x)
        leaf.counts[y] += k
        if k == 0 or self.n_nodes + 2 > self.limits.max_nodes:
            return
        if len(leaf.examples) < self.limits.min_weight:
            leaf.examples.append((x, y, k))
        else:
            leaf.examples[leaf.oldest] = x, y, k
            leaf.oldest = (leaf.oldest + 1) % self.limits.min_weight
        leaf.fresh += k
        if leaf.fresh >= self.limits.min_weight:
            self.split(parent, leaf, x)

    def split(self, parent, leaf, x):
        leaf.fresh = 0
        best = self.best(leaf.examples)
        if best is None:
            return
        for side in (False, True):
            mine = [e for e in leaf.examples if best.side(e[0]) == side]
            best.children.append(Leaf(mine, self.limits.inherit))
        self.n_nodes += 2
        if parent is None:
            self.root = best
        else:
            parent.children[int(parent.side(x))] = best

    def best(self, examples):
        first = 2 * self.limits.n_tests * self.n_tried
        self.n_tried += 1
        columns = [j for j in range(len(self.is_text)) if self.varied(examples, j)]
        best, most = None, purity(examples) * (1 + 1e-9)
        for i in range(self.limits.n_tests if columns else 0):
            u, v = drawn(self.split_key, first + 2 * i), drawn(self.split_key, first + 2 * i + 1)
            j = columns[int(u * len(columns))]
            for test in self.tests(examples, j, v):
                sides = [[e for e in examples if test.side(e[0]) == side] for side in (0, 1)]
                if all(sides) and sum(map(purity, sides)) > most:
                    best, most = test, sum(map(purity, sides))
        return best

    def varied(self, examples, j):
        values = [x[j] for x, _, _ in examples]
        present = {value for value in values if not math.isnan(value)}
        return len(present) > 1 or (len(present) == 1 and len(values) > sum(v == v for v in values))

    def tests(self, examples, j, v):
        values = [x[j] for x, _, _ in examples]
        if self.is_text[j]:
            return [Split(j, values[int(v * len(values))], True, False)]
        present = [value for value in values if not math.isnan(value)]
        threshold = min(present) + v * (max(present) - min(present))
        if len(present) < len(values):
            return [Split(j, threshold, False, side) for side in (True, False)]
        right = sum(k for x, _, k in examples if x[j] >= threshold)
        return [Split(j, threshold, False, 2 * right > sum(k for _, _, k in examples))]

    def probabilities(self, x, n_classes):
        counts = self.leaf(x)[1].counts
        n = sum(counts.values())
        return [(counts[c] + 1.0 / n_classes) * (1.0 / (n + 1.0)) for c in range(n_classes)]


def purity(examples):
    """Total weight times 1 minus the Gini impurity."""
    counts = Counter()
    for _, y, k in examples:
        counts[y] += k
    return sum(c * c for c in counts.values()) / sum(counts.values())


class Forest:
    def __init__(self, n_trees, limits, seed, is_text):
        self.trees = [Tree(seed, t, limits, is_text) for t in range(n_trees)]

    def learn(self, x, y, w):
        for tree in self.trees:
            tree.learn(x, y, w)

    def probabilities(self, x, n_classes):
        mean = [0.0] * n_classes
        for tree in self.trees:
            mean = [a + b for a, b in zip(mean, tree.probabilities(x, n_classes), strict=True)]
        return [m / len(self.trees) for m in mean]
