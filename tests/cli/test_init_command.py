"""`streamgp init`: the file it prints is the default, and every line of it can be used."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from streamgp.cli.config import parse
from streamgp.cli.main import cli
from streamgp.cli.settings import Config, resolved


def printed(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["init", *arguments])
    assert result.exit_code == 0
    return result.stdout


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_printed_file_is_the_default(preset: str) -> None:
    text = printed("--preset", preset)
    assert resolved(parse(text, source="init")) == resolved(Config(preset=preset))  # type: ignore[arg-type]


def test_default_preset_is_printed_without_options() -> None:
    assert printed() == printed("--preset", "default")


def test_every_setting_switched_on_is_a_valid_file() -> None:
    text = re.sub(r"(?m)^#(?! )", "", printed())
    config = parse(text, source="init")
    for section in (config, config.learner, config.log, config.loop, config.annotator):
        for name in section.__struct_fields__:
            assert getattr(section, name) is not None, name


def test_every_section_and_setting_is_there() -> None:
    text = printed()
    config = resolved(Config())
    for section in ("learner", "query", "challenge", "budget", "annotator", "log", "loop"):
        assert f"[{section}]" in text
        for name in getattr(config, section).__struct_fields__:
            assert re.search(rf"(?m)^#?{name} = |\.{name}\]", text), (section, name)


def test_each_rule_that_the_comments_show_is_valid() -> None:
    text = printed()
    section = ""
    seen = 0
    for line in text.splitlines():
        if line.startswith("["):
            section = line
        shown = re.match(r'#   ("\w+") +(.*)', line)
        if shown:
            name, rest = shown.groups()
            settings = re.findall(r"\w+ = [\d.]+", rest)
            parse("\n".join([section, f"rule = {name}", *settings]), source="comment")
            seen += 1
    assert seen == 13


def test_wrong_preset_names_the_choices() -> None:
    result = CliRunner().invoke(cli, ["init", "--preset", "papers"])
    assert result.exit_code == 2
    assert "'papers' is not one of 'default', 'paper'" in result.stderr
    assert result.stderr.count("\n") == 1
