from hypothesis import given
from hypothesis import strategies as st

from streamgp.common.feature_values import text_code


@given(st.text() | st.text(min_size=101), st.text())
def test_the_code_of_a_text_is_a_whole_number_and_no_other_texts(text, other):
    code = text_code(text)
    assert code.is_integer()
    assert 1.0 <= code <= 2.0**53
    assert (text_code(other) == code) == (other == text)


def test_codes_are_the_same_for_ever():
    """Recorded when codes were introduced: learners on record depend on them."""
    assert text_code("hall") == 2762829288079104.0
    assert text_code("\ud800") == text_code("\ud800")
