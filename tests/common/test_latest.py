from collections import OrderedDict

from hypothesis import given
from hypothesis import strategies as st

from streamgp.common.latest import LatestByKey

KEYS = st.sampled_from(["ann", "bob", None])
NAMES = st.tuples(KEYS, st.sampled_from(["e1", "e2", "e3", "e4"]))
STEPS = st.one_of(
    st.tuples(st.just("put"), NAMES),
    st.tuples(st.just("pop"), NAMES),
    st.tuples(st.just("forget"), KEYS),
)


@given(most=st.integers(1, 6), steps=st.lists(STEPS, max_size=40))
def test_what_is_kept_is_what_a_search_through_all_items_keeps(most, steps):
    latest = LatestByKey(most)
    plain = OrderedDict()
    for n, (what, name) in enumerate(steps):
        if what == "put":
            latest.put(name, n)
            plain.pop(name, None)
            plain[name] = n
            if len(plain) > most:
                plain.popitem(last=False)
        elif what == "pop":
            assert latest.pop(name, None) == plain.pop(name, None)
        else:
            latest.forget(name)
            plain = OrderedDict((each, at) for each, at in plain.items() if each[0] != name)
        assert list(latest.items()) == list(plain.items())
    for key in ("ann", "bob", None):
        latest.forget(key)
    assert not latest._of
