import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from streamgp import GPClassifier, OnlineForestClassifier, isgp
from streamgp.common.feature_values import as_number, is_missing, plain_features, text_code


@given(st.text() | st.text(min_size=101), st.text())
def test_the_code_of_a_text_is_a_whole_number_and_no_other_texts(text, other):
    code = text_code(text)
    assert code.is_integer()
    assert 1.0 <= code <= 2.0**53
    assert (text_code(other) == code) == (other == text)


def test_codes_are_the_same_for_ever():
    """Recorded when codes were introduced: learners on record depend on them."""
    assert text_code("hall") == 2762829288079104.0
    assert text_code("\ud800") == 2323332625223586.0


def test_the_missing_value_of_pandas_is_missing_everywhere():
    x, plain = {"light": pd.NA, "noise": 1.0}, {"light": None, "noise": 1.0}
    assert is_missing(pd.NA)
    assert as_number("light", pd.NA) == 0.0
    assert plain_features(x) == plain
    for make in (GPClassifier, lambda: OnlineForestClassifier(seed=1), lambda: isgp(seed=1)):
        one, other = make(), make()
        for n in range(40):
            one.learn_one({"light": float(n % 3), "noise": n % 2}, n % 2)
            other.learn_one({"light": float(n % 3), "noise": n % 2}, n % 2)
            one.learn_one(x, 1)
            other.learn_one(plain, 1)
        assert one.predict_proba_one(x) == other.predict_proba_one(plain)


def test_names_of_numpy_are_saved_as_plain_ones():
    plain = plain_features({np.str_("light"): 1.0, np.int64(3): 2.0})
    assert plain == [["light", 1.0], [3, 2.0]]
    assert [type(name) for name, _ in plain] == [str, int]
