"""Streams for tests of scaling, and scalings that have seen them."""

import json

import numpy as np
from hypothesis import strategies as st

# Marks, which are always 1, have tests of their own.
values = st.floats(-1e6, 1e6).filter(lambda value: value != 1.0)
events = st.fixed_dictionaries({"a": values}, optional={"b": values, "c": values})


def watched(scaling, xs):
    return [scaling.observe(x) for x in xs]


def whole_and_resumed(kind, warm_up, xs, n):
    """Return a scaling that has observed all events, and one that was restored after n of them."""
    whole, first, second = kind(warm_up), kind(warm_up), kind(warm_up)
    watched(whole, xs)
    watched(first, xs[:n])
    second.load_state(json.loads(json.dumps(first.state())))
    watched(second, xs[n:])
    return whole, second


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    return [{"a": a, "b": 100 + 5 * b} for a, b in rng.normal(size=(n, 2)).tolist()]
