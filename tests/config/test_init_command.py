"""`streamgp init`: the file it prints is the default, and every line of it can be used."""

from __future__ import annotations

import inspect
import re

import msgspec
import pytest
from click.testing import CliRunner

from streamgp.cli.main import cli
from streamgp.config.load import parse_worker
from streamgp.config.rules import find
from streamgp.config.settings import (
    Broker,
    Config,
    Loop,
    Page,
    People,
    Questions,
    Security,
    Topics,
    Worker,
    replay_part,
    resolved,
)
from streamgp.config.templates import _SHORT
from streamgp.config.validation import shown as shown_in_toml
from streamgp.query.registry import LEARNERS, Kind, rules
from tests.helpers.configurations import parse

PRINTED = [("default", "label"), ("paper", "label"), ("default", "number")]


def printed(*arguments: str, short: bool = False) -> str:
    result = CliRunner().invoke(cli, ["init", *arguments, *["--all"][: not short]])
    assert result.exit_code == 0
    return result.stdout


@pytest.mark.parametrize(("preset", "target"), PRINTED)
def test_printed_file_is_the_default(preset: str, target: str) -> None:
    text = printed("--preset", preset, "--target", target)
    expected = resolved(Config(preset=preset, target=target))  # type: ignore[arg-type]
    assert resolved(parse(text, source="init")) == expected


@pytest.mark.parametrize(("preset", "target"), PRINTED)
@pytest.mark.parametrize("options", [(), ("--worker",)], ids=["replay", "worker"])
def test_short_file_means_the_same_in_fewer_lines(
    preset: str, target: str, options: tuple[str, ...]
) -> None:
    given = ("--preset", preset, "--target", target, *options)
    short, complete = printed(*given, short=True), printed(*given)

    def meaning(text: str) -> object:
        if not options:
            return resolved(parse(text, source="init"))
        found = parse_worker(text, source="init")
        return resolved(replay_part(found)), found.broker, found.topics, found.worker, found.observe

    assert meaning(short) == meaning(complete)
    limited = [text.replace("#per_day = ", "per_day = ") for text in (short, complete)]
    assert meaning(limited[0]) == meaning(limited[1]) != meaning(short)
    # As it was called, also with a preset or a target.
    told = "# `streamgp init` with the same options and `--all` prints all settings."
    assert set(short.splitlines()) - set(complete.splitlines()) == {told}
    assert len(short.splitlines()) < len(complete.splitlines()) / 2
    assert meaning(re.sub(r"(?m)^#(?! )", "", short)) != meaning(short)


def test_what_is_often_changed_is_in_the_short_file() -> None:
    names = re.findall(r"(?m)^#?(\w+) = ", printed("--worker", short=True))
    wanted = "url prefix keyed per_day at_start label supervisors keys_file bind length_s"
    assert set(wanted.split()) < set(names)
    assert len(names) == len(set(names) - {"features"}) + 2  # of windows, and of the log
    assert "#unit = " in printed("--worker", "--target", "number", short=True)


def test_every_setting_meant_for_short_files_is_in_one() -> None:
    found: set[tuple[str, str]] = set()
    for target in ("label", "number"):
        for options in ((), ("--worker",)):
            section = ""
            for line in printed("--target", target, *options, short=True).splitlines():
                if header := re.match(r"#?\[(.+)\]$", line):
                    section = header[1]
                elif setting := re.match(r"#?(\w+) = ", line):
                    found.add((section, setting[1]))
    assert {(section, name) for section, names in _SHORT.items() for name in names} <= found


def test_default_preset_is_printed_without_options() -> None:
    assert printed() == printed("--preset", "default")


def test_every_setting_switched_on_is_a_valid_file() -> None:
    text = re.sub(r"(?m)^#(?! )", "", printed())
    config = parse(text, source="init")
    others = {"window"}  # in place of max_points
    sections = (config, config.learner, config.log, config.windows, config.loop, config.annotator)
    for section in sections:
        for name in set(section.__struct_fields__) - others:
            assert getattr(section, name) is not None, name


def test_every_section_and_setting_is_there() -> None:
    text = printed()
    config = resolved(Config())
    assert "#[windows]" in text
    sections = "learner query challenge budget questions annotator people log loop"
    of_workers = {"keys_file", "keys_env", "max_early_answers"}
    for section in sections.split():
        assert f"[{section}]" in text
        for name in set(getattr(config, section).__struct_fields__) - of_workers:
            in_place = r"|\bwindow = 200 instead\b" if name == "window" else ""
            pattern = rf"(?m)^#?{name} = |\.{name}\]{in_place}"
            assert re.search(pattern, text), (section, name)


@pytest.mark.parametrize(("preset", "target"), PRINTED)
def test_file_for_a_worker_is_the_default_but_for_what_it_remembers_and_awaits(
    preset: str, target: str
) -> None:
    text = printed("--worker", "--preset", preset, "--target", target)
    config = parse_worker(text, source="init")
    assert (config.topics, config.worker) == (Topics(), Worker())
    assert config.broker == Broker(url="kafka://localhost:9092")
    spans = Loop(expires_after_s=3600.0, answer_horizon_s=86400.0, max_keys=10_000)
    assert config.loop == spans
    assert config.questions == Questions(open_at_most=20)
    expected = Config(
        preset=preset,  # type: ignore[arg-type]
        target=target,  # type: ignore[arg-type]
        loop=config.loop,
        questions=config.questions,
    )
    assert resolved(replay_part(config)) == resolved(expected)


def test_every_setting_of_a_worker_switched_on_is_a_valid_file() -> None:
    of_labels, _, of_numbers = re.sub(r"(?m)^#(?! )", "", printed("--worker")).partition("[page]")
    config = parse_worker(of_labels, source="init")
    offered = 'labels = ["sitting", "walking"]'
    assert parse_worker(f"[page]\n{offered}", source="init").page.labels == ("sitting", "walking")
    of_numbers = of_numbers.replace(offered, "")
    numbers = parse_worker(f'target = "number"\n[page]{of_numbers}', source="init")
    told = {"question": numbers.page.question, "guidelines": numbers.page.guidelines}
    assert numbers.page == Page(**told, unit="°C", low=-10.0, high=40.0)
    assert None not in told.values()
    assert config.broker is not None
    others = {"password_file", "key_password_file", "keys_env"}  # in place of one another
    assert config.people.keys_file is not None
    for section in (
        config,
        config.broker.security,
        config.loop,
        config.people,
        config.worker,
        config.topics,
    ):
        for name in set(section.__struct_fields__) - others:
            assert getattr(section, name) is not None, name


def test_every_section_and_setting_of_a_worker_is_there() -> None:
    text = printed("--worker")
    sections: dict[str, type[msgspec.Struct]] = {
        "broker": Broker,
        "broker.security": Security,
        "topics": Topics,
        "worker": Worker,
        "page": Page,
        "people": People,
    }
    for section, cls in sections.items():
        assert re.search(rf"(?m)^#?\[{section}\]$", text)
        for name in set(cls.__struct_fields__) - {"security"}:
            assert re.search(rf"(?m)^#?{name} = |\b{name}\b", text), (section, name)
    assert "[annotator]" not in text


@pytest.mark.parametrize("options", [(), ("--worker",)], ids=["replay", "worker"])
def test_each_rule_that_the_comments_show_is_valid(options: tuple[str, ...]) -> None:
    text = printed(*options)
    section = ""
    seen = 0
    for line in text.splitlines():
        if line.startswith("["):
            section = line
        shown = re.match(r'#   ("\w+") +(.*)', line)
        if shown and section != "[learner]":
            name, rest = shown.groups()
            settings = re.findall(r"\w+ = [\d.]+", rest)
            settings += ['budgets = [{rule = "at_most", n = 1}]'] * (name == '"all_of"')
            target = 'target = "number"' if name == '"outside_interval"' else ""
            learner = '[learner]\nname = "ensemble"' if name in ('"kl"', '"deterministic"') else ""
            parse(
                "\n".join([target, learner, section, f"rule = {name}", *settings]),
                source=f"`example` of the rule {name}",
            )
            seen += 1
    kinds: tuple[Kind, ...] = ("query", "challenge", "review", "reservoir", "budget")
    # But for what is in force: no review, no reservoir, no limit.
    assert seen == sum(len(rules(kind)) for kind in kinds) - 3


@pytest.mark.parametrize("name", LEARNERS)
def test_the_comments_say_what_options_a_learner_has_and_their_defaults(name: str) -> None:
    text = " ".join(line.lstrip("# ") for line in printed().splitlines())
    assert f'"{name}"' in text
    options = LEARNERS[name].options
    assert options in re.sub(r" +", " ", text)
    told = dict(re.findall(r"(\w+) = ([\w.\"]+)", options))
    objects = {"kernel", "kernels", "privileged_kernel", "model", "seed"}
    has: dict[str, str] = {}
    for path in LEARNERS[name].classes.values():
        for option, one in inspect.signature(find(path, "learner")).parameters.items():
            if option not in objects:
                has[option] = shown_in_toml(one.default)
    assert told == has


def test_a_file_for_numbers_has_an_example_of_a_question_about_one() -> None:
    options: list[list[str]] = [[], ["--target", "number"]]
    files = [CliRunner().invoke(cli, ["init", "--worker", *more]).stdout for more in options]
    asked = [re.findall('(?m)^#question = "(.*)"$', file) for file in files]
    assert asked == [["What were you doing?"], ["How warm is it?"]]


def test_the_paper_has_no_file_for_numbers() -> None:
    result = CliRunner().invoke(cli, ["init", "--preset", "paper", "--target", "number"])
    assert result.exit_code == 2
    assert "--preset paper is for labels; leave it out" in result.stderr


def test_wrong_preset_names_the_choices() -> None:
    result = CliRunner().invoke(cli, ["init", "--preset", "papers"])
    assert result.exit_code == 2
    assert "'papers' is not one of 'default', 'paper'" in result.stderr
    assert result.stderr.count("\n") == 1
