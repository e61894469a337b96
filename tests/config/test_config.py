"""The configuration file: what it means, and what is said about a wrong one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec import inspect

from streamgp.config import settings
from streamgp.config.load import load, parse_worker
from streamgp.config.rules import section, section_class
from streamgp.config.settings import Config, WorkerConfig, resolved
from streamgp.config.validation import ConfigError
from tests.helpers.configurations import parse

WRONG = {
    '[query]\nrule = "entropi"': (
        'query.rule = "entropi" is not allowed, expected one of "skeptical", "paper", "always", '
    ),
    "[query]\nrule = 3": "query.rule = 3 is not allowed, expected one of",
    "[query]\nc = 2.0": 'query.rule is missing, expected "skeptical", which has c',
    "[query]": 'query.rule is missing, expected one of "skeptical", "paper"',
    "[query]\nc = 2.0\nn = 3": 'query.rule is missing, expected one of "skeptical", "paper"',
    "[budget]\nn = 2\nspan_s = 9": (
        'budget.rule is missing, expected one of "at_most_per", "paced", which have n, span_s'
    ),
    '[query]\nname = "entropy"': 'query.name is not known, did you mean "rule"?',
    '[query]\nrul = "entropy"': 'query.rul is not known, did you mean "rule"?',
    '[query]\nrule = "random"': "query.rate is missing, expected a number from 0 to 1",
    '[query]\nrule = "skeptical"\nc = "two"': (
        'query.c = "two" is not allowed, expected a number >= 0'
    ),
    '[query]\nrule = "skeptical"\nc = nan': "query.c = nan is not allowed, expected a number >= 0",
    '[query]\nrule = "skeptical"\nc = inf': "query.c = inf is not allowed",
    '[query]\nrule = "skeptical"\nc = true': "query.c = true is not allowed",
    '[query]\nrule = "random"\nrate = -0.1': (
        "query.rate = -0.1 is not allowed, expected a number from 0 to 1"
    ),
    '[query]\nrule = "random"\nrate = 1.5': "query.rate = 1.5 is not allowed",
    '[query]\nrule = "kl"': (
        'query.rule = "kl" compares the experts of an ensemble; it needs learner.name = '
        '"ensemble", got "gp"; "variance" is for any learner'
    ),
    'target = "number"\n[query]\nrule = "deterministic"\n[learner]\nname = "river.tree.X"': (
        'query.rule = "deterministic" compares the experts of an ensemble; it needs learner.name = '
        '"ensemble", got "river.tree.X"'
    ),
    'target = "number"\n[query]\nrule = "entropy"\nthreshold = 0': (
        'query.rule = "entropy" is not allowed with target = "number", expected one of '
        '"always", "never", "random", '
    ),
    '[query]\nrule = "equal_error"\nuncertainty = "margin"': (
        'query.uncertainty = "margin" is not allowed, expected one of "bvsb", "entropy"'
    ),
    '[query]\nrule = "equal_error"\nforgetting = 0': (
        "query.forgetting = 0 is not allowed, expected a number > 0 and <= 1"
    ),
    'target = "number"\n[query]\nrule = "equal_error"': (
        'query.rule = "equal_error" is not allowed with target = "number", expected one of'
    ),
    '[query]\nrule = "kl"\nleast_weight = 2': (
        "query.least_weight = 2 is not allowed, expected a number from 0 to 1"
    ),
    '[budget]\nrule = "adaptive"\nrate = 0.1\nstep = 0': (
        "budget.step = 0 is not allowed, expected a number > 0"
    ),
    '[learner]\nname = "ensemble"\nnoise_variance = 1': (
        'learner.noise_variance belongs to the learner "gp", not to "ensemble"; its settings go '
        "into [learner.options]"
    ),
    '[challenge]\nrule = "skeptical"\ntreshold = 0.2': (
        'challenge.treshold is not known, did you mean "threshold"? (allowed: rule, threshold, '
        "doubts_new)"
    ),
    '[challenge]\nrule = "entropy"': (
        'challenge.rule = "entropy" is not allowed, expected one of "skeptical", "paper", '
        '"always", "never", "outside_interval"'
    ),
    '[budget]\nrule = "at_most"\nn = 2.5': (
        "budget.n = 2.5 is not allowed, expected a whole number >= 0"
    ),
    f'[budget]\nrule = "rate"\nrate = 0.1\nwindow = {10**21}': (
        "budget.window = 1000000000000000000000 is not allowed, expected a whole number of at most "
        "9223372036854775807"
    ),
    f"[learner]\nmax_points = {10**26}": (
        "learner.max_points = 100000000000000000000000000 is not allowed, expected a whole "
        "number of at most 9223372036854775807"
    ),
    "[windows]\nlength_s = 5\ngrace_s = 1e308": (
        "windows.grace_s = 1e+308 is not allowed, expected a number from 0 to 1000000000000"
    ),
    "[windows]\nlength_s = 5\nidle_s = 1e308": (
        "windows.idle_s = 1e+308 is not allowed, expected a number from 0 to 1000000000000"
    ),
    "[questions]\nper_day = 30\nat_start = -1": (
        "questions.at_start = -1 is not allowed, expected a whole number >= 0"
    ),
    "[questions]\nper_day = 30\nat_start = 7.5": (
        "questions.at_start = 7.5 is not allowed, expected a whole number >= 0"
    ),
    "[questions]\nper_hour = 5\nat_start = 30": (
        "questions.at_start = 30 comes on top of questions.per_day, which is missing; give both, "
        "or only per_day"
    ),
    '[budget]\nrule = "at_most_per"\nn = 5\nspan_s = 0': (
        "budget.span_s = 0 is not allowed, expected a number > 0"
    ),
    "warmup = 10": 'warmup is not known, did you mean "warm_up"? (allowed: preset, target, seed,',
    "colour = 1": "colour is not known (allowed: preset, target, seed,",
    '[log]\nlabel = "room"\nseed = 3': (
        "log.seed is not known (allowed: label, time, key, ignore, features, limit); seed belongs "
        "above the first section"
    ),
    "[log]\nbudget = 5": (
        "log.budget is not known (allowed: label, time, key, ignore, features, limit); budget is a "
        "section of its own, [budget]"
    ),
    '[log.query]\nrule = "never"': (
        "log.query is not known (allowed: label, time, key, ignore, features, limit); query is a "
        "section of its own, [query]"
    ),
    'preset = "papers"': ('preset = "papers" is not allowed, expected one of "default", "paper"'),
    "seed = -1": "seed = -1 is not allowed, expected a whole number from 0 to 4294967295",
    "seed = 1.0": "seed = 1.0 is not allowed, expected a whole number",
    "query = 7": "query = 7 is not allowed, expected a section [query]",
    "learner = 7": "learner = 7 is not allowed, expected a section [learner]",
    "[learner]\noptions = 7": "learner.options = 7 is not allowed, expected a section",
    "[annotator]\nstubborn = 1": ("annotator.stubborn = 1 is not allowed, expected true or false"),
    "[annotator]\ndelay = 1e999": "annotator.delay = inf is not allowed",
    "[annotator]\ndelay = 1" + "0" * 400: "annotator.delay = 1000",
    "[annotator]\ndelay = 2024-01-01": "annotator.delay = 2024-01-01 is not allowed",
    "[annotator]\nclasses = []": (
        "annotator.classes = [] is not allowed, expected a list of labels, "
        '["like", "this"] or [1, 2]'
    ),
    '[annotator]\nclasses = "ab"': 'annotator.classes = "ab" is not allowed, expected a list of',
    "[annotator]\nclasses = [1, 2024-01-01]": (
        "annotator.classes[1] = 2024-01-01 is not allowed, expected a string, a number, true or "
        "false"
    ),
    "[annotator]\nclasses = [nan]": "annotator.classes[0] = nan is not allowed",
    "annotators = 7": "annotators = 7 is not allowed, expected sections, each with a name",
    "[annotators]\nann = 7": (
        "annotators.ann = 7 is not allowed, expected a section [annotators.ann]"
    ),
    "[annotators.ann]\ndealy = 7": 'annotators.ann.dealy is not known, did you mean "delay"?',
    '[annotators.""]\ndelay = 7': (
        'the name of a section in annotators = "" is not allowed, expected a string'
    ),
    "[annotator]\ndelay = 1\n[annotators.ann]\ndelay = 7": (
        "there is one annotator in [annotator] and several in [annotators]; keep one of the two"
    ),
    '[annotators.ann]\nname = "bob"': (
        "annotators.ann.name is the name of the section; leave it out"
    ),
    "[log]\nlabel = 3": "log.label = 3 is not allowed, expected a string",
    '[log]\nlabel = ""': 'log.label = "" is not allowed, expected a string',
    '[log]\nfeatures = "a"': (
        'log.features = "a" is not allowed, expected a list of strings, ["like", "this"]'
    ),
    '[log]\nignore = ["a", 1]': "log.ignore[1] = 1 is not allowed, expected a string",
    "[learner]\nlength_scale = 0": "learner.length_scale = 0 is not allowed, expected a number > 0",
    '[learner]\nname = "river.tree.X"\nlength_scale = 1': (
        'learner.length_scale belongs to the learner "gp", not to "river.tree.X"; its settings go '
        "into [learner.options]"
    ),
    '[learner]\nname = "river.tree.X"\nwindow = 9': (
        'learner.window belongs to the learner "gp", not to "river.tree.X"'
    ),
    '[learner]\nname = "river.tree.X"\ndrift = true': 'learner.drift belongs to the learner "gp"',
    '[learner]\nlearn_hyperparameters = "leave_one_out"': (
        'learner.learn_hyperparameters = "leave_one_out" is not allowed, expected true or false'
    ),
    "[learner]\nwindow = 0": "learner.window = 0 is not allowed, expected a whole number >= 1",
    "[learner]\ndrift = 1": "learner.drift = 1 is not allowed, expected true or false",
    "[learner]\nwindow = 200\nmax_points = 100": (
        "learner.window = 200 and learner.max_points = 100 exclude each other; leave one of them "
        "out"
    ),
    '[learner]\nwindow = 200\nmax_points = "all"': (
        'learner.window = 200 and learner.max_points = "all" exclude each other'
    ),
    f'[learner]\nname = "\\u202e{"x" * 100}"\nwindow = 3': (
        f'learner.window belongs to the learner "gp", not to "\\u202e{"x" * 51}..."; its settings'
    ),
    "[learner.options]\ndepth = 2": (
        'learner.options is for other learners; the settings of "gp" are '
        "length_scale, noise_variance, max_points, learn_hyperparameters, window and drift"
    ),
    '[log]\nlabel = "y"\ntime = "y"': (
        "column 'y' is both label and time; give each its own column"
    ),
    '[log]\nlabel = "y"\nfeatures = ["y"]': (
        "column 'y' is the label; remove it from the features columns"
    ),
    '[log]\nkey = "k"\nignore = ["k"]': (
        "column 'k' is the key; remove it from the ignore columns"
    ),
    '[log]\nfeatures = ["a"]\nignore = ["a"]': (
        "column 'a' is both a feature and ignored; name it only once"
    ),
    "seed = x": "not valid TOML: Invalid value (at line 1, column 8)",
    "\n\n[query\n": "not valid TOML: Expected ']' at the end of a table declaration (at line 3",
    "seed = 1" + "0" * 5000: "not valid TOML: Exceeds the limit",
    r'broker = "file://C:\users"': "not valid TOML: Invalid hex value (at line 1, column 22);",
    r'broker = "file://C:\data"': (
        r"not valid TOML: Unescaped '\' in a string (at line 1, column 22); write a path of"
    ),
    "seed = 0x1" + "0" * 5000: "seed = a number of thousands of digits is not allowed, expected",
    "seed = 1" + "0" * 100: f"seed = 1{'0' * 56}... is not allowed, expected a whole number",
    "seed = " + "[" * 5000 + "]" * 5000: "lists or tables are nested hundreds of levels deep",
}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ('[query]\nrule = "entropi"', "entropy"),
        ('[budget]\nrule = "unlimted"', "unlimited"),
        ('preset = "papr"', "paper"),
        ('target = "nubmer"', "number"),
    ],
)
def test_a_misspelt_value_is_reported_with_the_nearest_name(text: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=rf'expected .*; did you mean "{meant}"\?$'):
        parse(text, source="my.toml")


@pytest.mark.parametrize("text", ['preset = "x"', "preset = 3", '[query]\nrule = "zzz"'])
def test_no_name_is_proposed_where_none_is_near(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected [^;]*$"):
        parse(text, source="my.toml")


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:40])
def test_wrong_file_is_reported_in_one_line_with_file_key_value_and_what_is_allowed(
    text: str,
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, source="my.toml")
    message = str(caught.value)
    assert message.startswith("my.toml: " + WRONG[text])
    assert "\n" not in message


def test_no_setting_is_said_to_belong_where_its_value_is_wrong() -> None:
    with pytest.raises(ConfigError, match=r"log\.target is not known \(allowed: .*, limit\)$"):
        parse('[log]\ntarget = "room"', source="my.toml")


def test_empty_file_is_the_default() -> None:
    assert parse("", source="my.toml") == Config()


def test_whole_numbers_stand_for_floats() -> None:
    config = parse('[query]\nrule = "skeptical"\nc = 2', source="my.toml")
    assert config.query == section("query", "skeptical", c=2.0)


def test_classes_keep_their_types() -> None:
    text = '[annotator]\nclasses = ["a", 1, 0.5, true]'
    classes = parse(text, source="my.toml").annotator.classes
    assert classes is not None
    assert [repr(label) for label in classes] == ["'a'", "1", "0.5", "True"]


def test_several_annotators_have_a_section_each() -> None:
    text = "[annotators.ann]\nerror_rate = 0.1\n[annotators.bob]\ntiring_rate = 0.01"
    assert parse(text, source="my.toml").annotators == {
        "ann": settings.Annotator(error_rate=0.1),
        "bob": settings.Annotator(tiring_rate=0.01),
    }


@pytest.mark.parametrize("name", ["response_s", "slowing", "response_spread"])
def test_an_annotator_who_never_gets_tired_shows_no_tiredness(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"annotator\.{name} needs a tiring_rate above 0"):
        parse(f"[annotator]\n{name} = 1.0", source="my.toml")
    annotator = parse(f"[annotator]\n{name} = 1.0\ntiring_rate = 0.1", source="my.toml").annotator
    assert getattr(annotator, name) == 1.0


def test_every_rule_is_known_under_its_snake_case_name() -> None:
    text = """
    [query]
    rule = "{}"
    {}
    """
    rules = {
        "paper": "",
        "skeptical": "c = 1",
        "always": "",
        "never": "",
        "random": "rate = 0.1",
        "entropy": "threshold = 1",
        "least_confidence": "threshold = 1",
        "best_versus_second": "threshold = 1",
        "variance": "",
        "kl": "least_weight = 0.1",
        "deterministic": "threshold = 1",
        "equal_error": "at_least = 0.2",
    }
    for name, parameters in rules.items():
        ensemble = '[learner]\nname = "ensemble"' if name in ("kl", "deterministic") else ""
        config = parse(ensemble + text.format(name, parameters), source="my.toml")
        assert msgspec.to_builtins(config.query)["rule"] == name


@pytest.mark.parametrize("value", ["0", '"some"', "2.5", "true"])
def test_a_bound_is_a_number_of_points_or_none_at_all(value: str) -> None:
    with pytest.raises(ConfigError, match=r'learner\.max_points = .* >= 1, or "all"'):
        parse(f"[learner]\nmax_points = {value}", source="my.toml")
    assert parse('[learner]\nmax_points = "all"', source="my.toml").learner.max_points == "all"
    assert parse("[learner]\nmax_points = 7", source="my.toml").learner.max_points == 7


def test_preset_fills_only_what_the_file_leaves_out() -> None:
    text = 'preset = "paper"\n[learner]\nnoise_variance = 0.1\n[challenge]\nrule = "never"'
    config = resolved(parse(text, source="my.toml"))
    assert config.learner == settings.Learner(
        length_scale=2.0, noise_variance=0.1, max_points="all", learn_hyperparameters=False
    )
    assert config.challenge == section("challenge", "never")
    assert config.query == section("query", "paper")


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_a_window_takes_the_place_of_the_bound_of_a_preset(preset: str) -> None:
    text = f'preset = "{preset}"\n[learner]\nwindow = 90\ndrift = true'
    learner = resolved(parse(text, source="my.toml")).learner
    assert (learner.window, learner.max_points, learner.drift) == (90, None, True)


def test_preset_does_not_touch_a_river_learner() -> None:
    learner = settings.Learner(name="river.naive_bayes.GaussianNB")
    assert resolved(Config(preset="paper", learner=learner)).learner == learner


def test_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text("seed = 9")
    assert load(path).seed == 9


def test_mark_at_the_start_of_a_file_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text("seed = 7", encoding="utf-8-sig")
    assert load(path).seed == 7


def test_file_that_powershell_has_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_bytes(b"\xff\xfe" + "seed = 7\r\n".encode("utf-16-le"))
    assert load(path).seed == 7


def test_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no\.toml: cannot be read: No such file or directory$"):
        load(tmp_path / "no.toml")


def test_directory_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be read: Is a directory$"):
        load(tmp_path)


def test_binary_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_bytes(b"seed = 1\n\xff\xfe")
    with pytest.raises(ConfigError, match=r"my\.toml: not UTF-8 text \(byte 9\); save it as"):
        load(path)


def test_file_that_is_too_long_is_reported_without_reading_it() -> None:
    with pytest.raises(ConfigError, match=r"/dev/zero: has more than 1048576 bytes; expected a"):
        load(Path("/dev/zero"))


@pytest.mark.parametrize("line", ["a" + ".a" * 100_000 + " = 1", "[a" + ".a" * 100_000 + "]"])
def test_a_key_of_very_many_parts_is_reported_without_parsing_it(tmp_path: Path, line: str) -> None:
    """The parser would need a minute for it."""
    path = tmp_path / "my.toml"
    path.write_text(f"seed = 1\n{line}\n")
    with pytest.raises(
        ConfigError, match=r"my\.toml: line 2 has more than 1000 dots, which no key"
    ):
        load(path)


# --- values that are not numbers


def _numbers(kind: inspect.Type, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield a file for each setting that takes a fraction, to be filled with its value."""
    if isinstance(kind, inspect.Metadata):
        yield from _numbers(kind.type, path)
    elif isinstance(kind, inspect.UnionType):
        for each in kind.types:
            yield from _numbers(each, path)
    elif isinstance(kind, inspect.CustomType):
        for name in kind.cls.names():
            yield from _numbers(inspect.type_info(section_class(kind.cls.kind, name)), path)
    elif isinstance(kind, inspect.DictType):
        yield from _numbers(kind.value_type, (*path, "ann"))
    elif isinstance(kind, inspect.StructType):
        rest = f'{kind.tag_field} = "{kind.tag}"\n' if kind.tag_field else ""
        for field in kind.fields:
            others = [f.encode_name for f in kind.fields if f.required and f is not field]
            lines = "".join(f"{name} = 1\n" for name in others if kind.tag_field)
            for found in _numbers(field.type, (*path, field.encode_name)):
                section = f"[{'.'.join(path)}]\n"
                if found.startswith(section):
                    yield found + rest + lines
                else:
                    yield (section + rest + lines if rest else "") + found
    elif isinstance(kind, inspect.FloatType):
        yield f"[{'.'.join(path[:-1])}]\n{path[-1]} = %s\n"


FRACTIONS = list(_numbers(inspect.type_info(WorkerConfig)))


def test_there_are_such_settings() -> None:
    assert len(FRACTIONS) > 20
    assert "[worker]\nsave_every_s = %s\n" in FRACTIONS


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (text, number)
        for text in FRACTIONS
        for number in ("nan", "inf", "-inf", "-1.0")
        if number != "-1.0" or not text.startswith("[page]")  # the ends of a slider may be negative
    ],
)
def test_what_is_no_number_within_bounds_is_refused(text: str, number: str) -> None:
    [name] = [line.split()[0] for line in text.splitlines() if line.endswith("%s")]
    with pytest.raises(
        ConfigError, match=rf"{name} = {number} is not allowed, expected a number (>|from)"
    ):
        parse_worker(text % number, source="my.toml")
