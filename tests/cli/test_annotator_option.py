"""The value of `--annotator`."""

from __future__ import annotations

import pytest

from streamgp.cli.config import parse_annotator
from streamgp.cli.settings import Annotator
from streamgp.cli.validation import ConfigError


def test_all_settings_are_read() -> None:
    text = "error_rate=0.2, delay=300,decline_rate=5e-2 ,seed=1,stubborn=true"
    assert parse_annotator(text) == Annotator(
        error_rate=0.2, delay=300.0, decline_rate=0.05, seed=1, stubborn=True
    )


def test_settings_not_named_keep_the_value_of_the_file() -> None:
    base = Annotator(error_rate=0.1, delay=60.0)
    assert parse_annotator("error_rate=0.3", base) == Annotator(error_rate=0.3, delay=60.0)


def test_nothing_named_changes_nothing() -> None:
    assert parse_annotator("", Annotator(delay=5.0)) == Annotator(delay=5.0)


WRONG = {
    "error_rate=2": "error_rate = 2 is not allowed, expected a number from 0 to 1",
    "error_rate=-0.1": "error_rate = -0.1 is not allowed, expected a number from 0 to 1",
    "error_rate=nan": "error_rate = nan is not allowed",
    "delay=5m": 'delay = "5m" is not allowed, expected a number >= 0',
    "delay=": 'delay = "" is not allowed',
    "seed=1.5": "seed = 1.5 is not allowed, expected a whole number",
    "stubborn=yes": 'stubborn = "yes" is not allowed, expected true or false',
    "eror_rate=0.1": (
        'eror_rate is not known, did you mean "error_rate"? '
        "(allowed: error_rate, delay, decline_rate, stubborn, seed)"
    ),
    "0.2": "'0.2' is not a setting, expected name=value pairs separated by commas",
    "=0.2": "'=0.2' is not a setting",
    "delay=1,,seed=1": "'' is not a setting",
    "delay=1,delay=2": "delay is given twice",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_setting_is_told_with_name_value_and_what_is_allowed(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_annotator(text)
    assert str(caught.value).startswith("--annotator: " + WRONG[text])
