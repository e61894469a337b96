"""The value of `--annotator`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from connectors.tables.log_source import LogSource
from streamgp.config.load import parse_annotator, with_annotators
from streamgp.config.settings import Annotator, Config
from streamgp.config.validation import ConfigError
from streamgp.interactive import Event


def test_all_settings_are_read() -> None:
    text = "error_rate=0.2, delay=300,decline_rate=5e-2 ,seed=1,stubborn=true"
    assert parse_annotator(text) == Annotator(
        error_rate=0.2, delay=300.0, decline_rate=0.05, seed=1, stubborn=True
    )
    text = "name=7,tiring_rate=0.01,half_life_s=600,classes=a|b"
    assert parse_annotator(text) == Annotator(
        name="7", tiring_rate=0.01, half_life_s=600.0, classes=("a", "b")
    )


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("1|2|3", (1, 2, 3)),
        (" 1 | -2 ", (1, -2)),
        ("1|2a", ("1", "2a")),
        ("007|8", ("007", "8")),
        ("0.5|1.5", ("0.5", "1.5")),
        ("hall", ("hall",)),
    ],
)
def test_classes_are_read_as_the_labels_of_a_csv_log_are(
    text: str, classes: tuple[int | str, ...], tmp_path: Path
) -> None:
    assert parse_annotator(f"classes={text}").classes == classes
    log = tmp_path / "log.csv"
    log.write_text("a,label\n" + "".join(f"1,{label}\n" for label in text.split("|")))
    received = LogSource(log, label="label").poll()
    truths = [r.message.truth for r in received if isinstance(r.message, Event)]
    assert tuple(map(repr, truths)) == tuple(map(repr, classes))


def test_one_annotator_replaces_settings_of_the_only_one() -> None:
    config = Config(annotator=Annotator(delay=5.0))
    changed = with_annotators(config, ["error_rate=0.1,name=ann"])
    assert changed.annotator == Annotator(delay=5.0, error_rate=0.1, name="ann")
    assert changed.annotators == {}
    assert with_annotators(config, []) == config


def test_several_annotators_start_from_the_only_one_of_the_file() -> None:
    config = Config(annotator=Annotator(delay=5.0))
    changed = with_annotators(config, ["name=ann,error_rate=0.1", "name=bob,delay=9"])
    assert changed.annotator == Annotator()
    assert changed.annotators == {
        "ann": Annotator(delay=5.0, error_rate=0.1),
        "bob": Annotator(delay=9.0),
    }


def test_named_annotators_of_the_file_are_changed_or_joined() -> None:
    config = Config(annotators={"ann": Annotator(delay=5.0), "bob": Annotator(delay=6.0)})
    changed = with_annotators(config, ["name=bob,error_rate=0.1", "name=cleo"])
    assert changed.annotators == {
        "ann": Annotator(delay=5.0),
        "bob": Annotator(delay=6.0, error_rate=0.1),
        "cleo": Annotator(),
    }
    assert with_annotators(config, ["name=ann,seed=3"]).annotators["ann"].seed == 3


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["delay=1", "name=bob"], "--annotator: 'delay=1' has no name; if there are several"),
        (["name=bob", "name=bob"], "--annotator: two annotators are called 'bob'"),
        (["name=bob", "delay=x"], '--annotator: delay = "x" is not allowed'),
    ],
)
def test_wrong_annotators_are_reported(texts: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        with_annotators(Config(), texts)
    assert str(caught.value).startswith(message)


def test_annotator_without_a_name_among_those_of_a_file_is_reported() -> None:
    with pytest.raises(ConfigError, match=r"has no name; if there are several annotators"):
        with_annotators(Config(annotators={"ann": Annotator()}), ["delay=1"])


def test_settings_not_named_keep_the_value_of_the_file() -> None:
    base = Annotator(error_rate=0.1, delay=60.0)
    assert parse_annotator("error_rate=0.3", base) == Annotator(error_rate=0.3, delay=60.0)


def test_nothing_named_changes_nothing() -> None:
    assert parse_annotator("", Annotator(delay=5.0)) == Annotator(delay=5.0)


WRONG = {
    "error_rate=2": "error_rate = 2 is not allowed, expected a number from 0 to 1",
    "error_rate=-0.1": "error_rate = -0.1 is not allowed, expected a number from 0 to 1",
    "error_rate=nan": "error_rate = nan is not allowed",
    "delay=5m": 'delay = "5m" is not allowed, expected a number from 0 to 1000000000000',
    "delay=1e308": "delay = 1e+308 is not allowed, expected a number from 0 to 1000000000000",
    "half_life_s=2e12": (
        "half_life_s = 2000000000000.0 is not allowed, expected a number > 0 and <= 1000000000000"
    ),
    "delay=": 'delay = "" is not allowed',
    "seed=1.5": "seed = 1.5 is not allowed, expected a whole number",
    "stubborn=yes": 'stubborn = "yes" is not allowed, expected true or false',
    "eror_rate=0.1": (
        'eror_rate is not known, did you mean "error_rate"? '
        "(allowed: name, error_rate, tiring_rate, half_life_s, response_s, slowing, "
        "response_spread, delay, decline_rate, stubborn, "
        "classes, noise, outlier, states_noise, hours, seed)"
    ),
    "name=": 'name = "" is not allowed, expected a string',
    "half_life_s=0": "half_life_s = 0 is not allowed, expected a number > 0",
    "0.2": "'0.2' is not a setting, expected name=value pairs separated by commas",
    "=0.2": "'=0.2' is not a setting",
    "delay=1,,seed=1": "'' is not a setting",
    "delay=1,delay=2": "delay is given twice",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_setting_is_reported_with_name_value_and_what_is_allowed(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_annotator(text)
    assert str(caught.value).startswith("--annotator: " + WRONG[text])


def test_bytes_of_another_encoding_are_refused_in_words() -> None:
    with pytest.raises(ConfigError, match=r"^--annotator must be valid Unicode, got 'name=J"):
        parse_annotator(os.fsdecode(b"name=J\xfcrgen"))
