"""Parsing of configurations, from TOML files and `--annotator`, and checks for contradictions.

Any mistake raises one ConfigError that names the file, the key, the value and what is allowed.

"""

from __future__ import annotations

import re
import tomllib
from codecs import BOM_UTF16_LE
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from connectors.tables.cells import is_integer_text
from streamgp.base import Label, Target
from streamgp.config.broker_url import parse_address
from streamgp.config.rules import RuleSection, rule_of
from streamgp.config.settings import (
    TOPIC_FIELDS,
    Annotator,
    Config,
    Learner,
    Name,
    Security,
    Topics,
    WorkerConfig,
    replay_part,
)
from streamgp.config.validation import (
    ConfigError,
    check,
    convert,
    one_of,
    parse_bind,
    shown,
    type_of,
)
from streamgp.query.registry import Kind, rules

# --- Contradictory settings of a worker.
#
# Types and ranges are in `settings`; here are the relations between settings.


_LONGEST_TOPIC = 249  # Kafka's limit
_MAX_BYTES = 1 << 20  # of a file
_MAX_DOTS = 1000  # of a line: the parser's time grows with the square of the parts of a key
_TLS_SETTINGS = ("ca_file", "cert_file", "key_file", "key_password_env", "key_password_file")
_SASL_SETTINGS = ("mechanism", "username", "password_env", "password_file")


def check_worker(config: WorkerConfig, *, source: str) -> None:
    """Raise ConfigError if settings of a worker contradict each other."""
    if config.broker is not None:
        check_url(config.broker.url, where=f"{source}: broker.url")
        _check_security(config.broker.security, source)
    _check_topics(config.topics, source)
    _check_page(config, source)
    if config.observe.bind is not None:
        check_bind(config.observe.bind, where=f"{source}: observe.bind")


def check_bind(bind: str, *, where: str) -> None:
    """Raise ConfigError if a text is not an address to listen on."""
    try:
        parse_bind(bind)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None


def _check_page(config: WorkerConfig, source: str) -> None:
    page = config.page
    if page.labels and config.target == "number":
        raise ConfigError(f'{source}: page.labels is not allowed with target = "number"')
    if page.labels:
        _check_offered(page.labels, source)
    if len(page.labels) > config.people.max_labels:
        raise ConfigError(
            f"{source}: page.labels has {len(page.labels)} labels, but a learner knows at most "
            f"people.max_labels = {config.people.max_labels}"
        )
    if config.target != "number":
        for name in ("unit", "low", "high"):
            if getattr(page, name) is not None:
                raise ConfigError(f"{source}: page.{name} {_FOR_NUMBERS}")
    if (page.low is None) != (page.high is None):
        raise ConfigError(f"{source}: page.low and page.high belong together; give both or neither")
    if page.low is not None and page.high is not None and not page.low < page.high:
        raise ConfigError(
            f"{source}: page.low = {shown(page.low)} must be below page.high = {shown(page.high)}"
        )


def _check_offered(labels: Sequence[Label], source: str) -> None:
    # Most commands have no labels to check, and need not load this.
    from connectors.annotation.replies import MAX_NEW_LABEL, can_be_offered

    for label in labels:
        if not can_be_offered(label):
            raise ConfigError(
                f"{source}: page.labels has {shown(label)}, expected texts of 1 to {MAX_NEW_LABEL} "
                "characters that show, composed (NFC) and without blanks around, numbers, true or "
                "false"
            )


def check_url(url: str, *, where: str) -> None:
    """Raise ConfigError if the address of a broker is malformed."""
    try:
        parse_address(url)
    except ValueError as error:
        raise ConfigError(f"{where} {error}") from None


def check_name(name: str, *, where: str) -> None:
    """Raise ConfigError if a text from the command line is not a valid name.

    Examples
    --------
    >>> check_name("../up", where="--instance")
    Traceback (most recent call last):
    streamgp.config.validation.ConfigError: --instance = "../up" is not ...

    """
    check(name, type_of(Name), where)


def _check_topics(topics: Topics, source: str) -> None:
    if topics.replication == 0:
        raise ConfigError(
            f"{source}: topics.replication = 0 is not allowed, expected -1 (what the broker is set "
            "to) or a whole number >= 1"
        )
    names: dict[str, str] = {}
    for role, name in topics.names().items():
        field = TOPIC_FIELDS[role]
        if len(name) > _LONGEST_TOPIC:
            raise ConfigError(
                f"{source}: topics.{field} has {len(name)} characters with the prefix, expected at "
                f"most {_LONGEST_TOPIC}"
            )
        if re.fullmatch(r"\.{1,2}", name):
            raise ConfigError(f"{source}: topics.{field} = {name!r} is not a valid topic name")
        # Kafka itself refuses names that differ only in this: they share one metric.
        alike = name.replace(".", "_")
        if alike in names:
            raise ConfigError(
                f'{source}: topics.{names[alike]} and topics.{field} are both called "{name}" '
                '("." and "_" count as the same); give each its own name'
            )
        names[alike] = field


def _check_security(security: Security, source: str) -> None:
    where = f"{source}: broker.security"
    given = {name for name in Security.__struct_fields__ if getattr(security, name) is not None}
    with_sasl = security.protocol.startswith("SASL_")
    with_tls = security.protocol.endswith("SSL")
    for wanted, names, which in (
        (with_sasl, _SASL_SETTINGS, '"SASL_SSL" or "SASL_PLAINTEXT"'),
        (with_tls, _TLS_SETTINGS, '"SSL" or "SASL_SSL"'),
    ):
        for name in names:
            if name in given and not wanted:
                raise ConfigError(
                    f'{where}.{name} has no meaning with protocol = "{security.protocol}"; write '
                    f"protocol = {which}, or leave it out"
                )
    for name in ("password", "key_password"):
        if {f"{name}_env", f"{name}_file"} <= given:
            raise ConfigError(f"{where}: give {name}_env or {name}_file, not both")
    if with_sasl:
        for name in ("mechanism", "username"):
            if name not in given:
                raise ConfigError(
                    f'{where}.{name} is missing, which protocol = "{security.protocol}" needs'
                )
        if not {"password_env", "password_file"} & given:
            raise ConfigError(
                f"{where}: the password is missing; write password_env = the name of an "
                "environment variable, or password_file = the path of a file that holds it"
            )
    for name in ("key_file", "key_password_env", "key_password_file"):
        if name in given and "cert_file" not in given:
            raise ConfigError(f"{where}.{name} can be used only with cert_file; give both")


def parse_worker(text: str, *, source: str, target: Target | None = None) -> WorkerConfig:
    """Parse the configuration of a worker from TOML text; `target` as in `load`.

    Examples
    --------
    >>> parse_worker('broker = "file://topics"', source="my.toml").broker.url
    'file://topics'

    """
    try:
        data = tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError, or a number of thousands of digits
        raise ConfigError(f"{source}: not valid TOML: {error}{_advice(text, error)}") from None
    except RecursionError:
        raise ConfigError(
            f"{source}: lists or tables are nested hundreds of levels deep; no setting needs that"
        ) from None
    if target is not None:
        data["target"] = target
    if isinstance(data.get("broker"), str):
        check_url(data["broker"], where=f"{source}: broker")
        data["broker"] = {"url": data["broker"]}
    elif not isinstance(data.get("broker", {}), dict):
        raise ConfigError(
            f"{source}: broker = {shown(data['broker'])} is not allowed, expected an address, as "
            'in "kafka://host:9092"'
        )
    windows = data.get("windows")
    if isinstance(windows, dict) and isinstance(windows.get("features"), str):
        windows["features"] = [windows["features"]]
    config = convert(data, WorkerConfig, source=source)
    check_config(config, source=source)
    check_worker(config, source=source)
    return config


def _advice(text: str, error: ValueError) -> str:
    """Explain TOML errors: of paths, and of `broker = "..."` with a section [broker.security]."""
    if str(error).startswith(("Unescaped '\\'", "Invalid hex value")):
        return "; write a path of Windows with / or between single quotes"
    if re.search(r"(?m)^\s*broker\s*=", text) and re.search(r"(?m)^\s*\[broker\b", text):
        return "; with a section [broker...] the address is url = ... in the section [broker]"
    return ""


def load(path: Path, *, target: Target | None = None) -> Config:
    """Read the configuration file of a replay; any mistake in it raises one ConfigError.

    A target that is given takes the place of the file's, by which its rules are judged.
    """
    return replay_part(parse_worker(text_of(path), source=str(path), target=target))


def load_worker(path: Path) -> WorkerConfig:
    """Read a configuration file; any mistake in it raises one ConfigError."""
    return parse_worker(text_of(path), source=str(path))


def text_of(path: Path) -> str:
    """Return the text of a configuration file.

    Raises
    ------
    ConfigError
        If it cannot be read, is not UTF-8 text, or is too long for a configuration.

    """
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > _MAX_BYTES:
        raise ConfigError(f"{path}: has more than {_MAX_BYTES} bytes; expected a configuration")
    try:
        # Windows PowerShell writes `streamgp init > FILE` so, some editors a byte order mark.
        text = data.decode("utf-16" if data.startswith(BOM_UTF16_LE) else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: not UTF-8 text (byte {error.start}); save it as UTF-8"
        ) from None
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > _MAX_DOTS:
            raise ConfigError(
                f"{path}: line {number} has more than {_MAX_DOTS} dots, which no key needs; "
                "write a long list on several lines"
            )
    return text


def with_annotators(config: Config, texts: Sequence[str]) -> Config:
    """Return a configuration updated by `--annotator`, given once or several times.

    Settings that are not named keep their values from the configuration: from the annotator's own
    section, or from [annotator].

    Examples
    --------
    >>> with_annotators(Config(), ["error_rate=0.2"]).annotator.error_rate
    0.2
    >>> several = with_annotators(Config(), ["name=ann,error_rate=0.2", "name=bob"]).annotators
    >>> {name: annotator.error_rate for name, annotator in several.items()}
    {'ann': 0.2, 'bob': 0.0}

    """
    if not texts:
        return config
    if len(texts) == 1 and not config.annotators:
        return replace(config, annotator=parse_annotator(texts[0], config.annotator))
    annotators = dict(config.annotators)
    named: set[str] = set()
    for text in texts:
        name = parse_annotator(text).name
        if name is None:
            raise ConfigError(
                f"--annotator: {text!r} has no name; if there are several annotators, give each a "
                "name, as in name=ann,error_rate=0.2"
            )
        if name in named:
            raise ConfigError(f"--annotator: two annotators are called {name!r}")
        named.add(name)
        base = config.annotators.get(name, config.annotator)
        annotators[name] = replace(parse_annotator(text, base), name=None)
    return replace(config, annotator=Annotator(), annotators=annotators)


def parse_annotator(text: str, base: Annotator = Annotator()) -> Annotator:  # noqa: B008 (frozen)
    """Parse one value of `--annotator`; settings that it does not name stay as in `base`.

    Examples
    --------
    >>> parse_annotator("error_rate=0.2,delay=300").delay
    300.0
    >>> parse_annotator("classes=1|2|3").classes
    (1, 2, 3)
    >>> parse_annotator("error_rate=2")
    Traceback (most recent call last):
    streamgp.config.validation.ConfigError: --annotator: error_rate = 2 is not ...

    """
    try:
        text.encode()
    except UnicodeEncodeError:  # bytes in an encoding other than the terminal's
        raise ConfigError(
            f"--annotator must be valid Unicode, got {text!r}; type it in the encoding of the "
            "terminal (LC_ALL)"
        ) from None
    found: dict[str, object] = {}
    for part in text.split(",") if text.strip() else ():
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name:
            raise ConfigError(
                f"--annotator: {part.strip()!r} is not a setting, expected name=value pairs "
                "separated by commas, as in error_rate=0.2,delay=300"
            )
        if name in found:
            raise ConfigError(f"--annotator: {name} is given twice")
        found[name] = _WORDS.get(name, _plain)(value)
    convert(found, Annotator, source="--annotator")
    return msgspec.convert({**msgspec.structs.asdict(base), **found}, Annotator)


def _plain(text: str) -> object:
    """Convert a word of the command line to the bool, int or float it spells, or leave it."""
    if text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _labels(text: str) -> list[Label]:
    """Parse labels as in a CSV log: as integers if all of them are, else as strings."""
    words = [word.strip() for word in text.split("|")]
    return [int(word) for word in words] if all(map(is_integer_text, words)) else [*words]


def _spans(text: str) -> list[str]:
    return [word.strip() for word in text.split("|")]


_WORDS: Mapping[str, Callable[[str], object]] = {
    "name": str, "classes": _labels, "hours": _spans,
}  # fmt: skip


# The settings of "gp".
_OF_GP = [name for name in Learner.__struct_fields__ if name not in ("name", "options")]


def check_config(config: Config, *, source: str) -> None:
    """Raise ConfigError if settings contradict each other."""
    _check_annotators(config, source)
    _check_target(config, source)
    _check_learner(config.learner, source)
    _check_experts(config, source)
    if config.questions.at_start and config.questions.per_day is None:
        raise ConfigError(
            f"{source}: questions.at_start = {config.questions.at_start} comes on top of "
            "questions.per_day, which is missing; give both, or only per_day"
        )
    log = config.log
    roles: dict[str, str] = {}
    for role in ("label", "time", "key"):
        column = getattr(log, role)
        if column in roles:
            raise ConfigError(
                f"{source}: column {column!r} is both {roles[column]} and {role}; "
                "give each its own column"
            )
        if column is not None:
            roles[column] = role
    for name, columns in (("features", log.features or ()), ("ignore", log.ignore)):
        for column in columns:
            if column in roles:
                raise ConfigError(
                    f"{source}: column {column!r} is the {roles[column]}; remove it from the "
                    f"{name} columns"
                )
    both = sorted(set(log.features or ()) & set(log.ignore))
    if both:
        raise ConfigError(
            f"{source}: column {both[0]!r} is both a feature and ignored; name it only once"
        )


def _check_learner(learner: Learner, source: str) -> None:
    if learner.name != "gp":
        for name in _OF_GP:
            if getattr(learner, name):
                raise ConfigError(
                    f'{source}: learner.{name} belongs to the learner "gp", not to '
                    f"{shown(learner.name)}; its settings go into [learner.options]"
                )
    elif learner.options.keys() - {"kernel"}:
        raise ConfigError(
            f"{source}: learner.options is for other learners; the settings "
            f'of "gp" are {", ".join(_OF_GP[:-1])} and {_OF_GP[-1]}, and options.kernel'
        )
    elif learner.options and learner.length_scale is not None:
        raise ConfigError(
            f"{source}: learner.length_scale = {learner.length_scale} and learner.options.kernel, "
            "which has length scales of its own, exclude each other; leave one of them out"
        )
    if learner.window is not None and learner.max_points is not None:
        raise ConfigError(
            f"{source}: learner.window = {learner.window} and learner.max_points = "
            f"{shown(learner.max_points)} exclude each other; leave one of them out"
        )


def _check_experts(config: Config, source: str) -> None:
    rule, learner = config.query, config.learner.name
    known = None if rule is None else rule_of("query", rule)
    if known is None or not known.compares_experts or learner == "ensemble" or ":" in learner:
        return
    raise ConfigError(
        f'{source}: query.rule = "{known.name}" compares the experts of an ensemble; it needs '
        f'learner.name = "ensemble", got {shown(learner)}; "variance" is for any learner'
    )


def _check_target(config: Config, source: str) -> None:
    """Refuse rules and annotators that are for the other kind of target."""
    if config.target == "number":
        _check_numbers(config, source)
    else:
        for path, annotator in _annotators(config):
            for name in ("noise", "states_noise"):
                if getattr(annotator, name):
                    raise ConfigError(f"{source}: {path}.{name} {_FOR_NUMBERS}")
    kinds: tuple[Kind, ...] = ("query", "challenge", "review", "reservoir")
    for kind in kinds:
        _check_rule(kind, getattr(config, kind), config.target, source)


_FOR_NUMBERS = 'is for numbers; it needs target = "number" (on the command line --target number)'


def _check_rule(kind: Kind, rule: RuleSection | None, target: Target, source: str) -> None:
    known = None if rule is None else rule_of(kind, rule)
    if known is None or target in known.targets:
        return
    where = f'{source}: {kind}.rule = "{known.name}"'
    if target == "label":
        raise ConfigError(f"{where} {_FOR_NUMBERS}")
    expected = one_of(name for name, one in rules(kind).items() if target in one.targets)
    raise ConfigError(f'{where} is not allowed with target = "number", expected {expected}')


def _check_numbers(config: Config, source: str) -> None:
    where = 'is not allowed with target = "number"'
    if config.preset != "default":
        raise ConfigError(f'{source}: preset = "{config.preset}" {where}, expected "default"')
    for name, value, why in (
        ("learner.window", config.learner.window, "it is for labels"),
        ("learner.drift", config.learner.drift, "it is for labels"),
        ("windows", config.windows, "that of a window is the most frequent one"),
        ("temporal.enabled", config.temporal.enabled, "it is for labels"),
        ("drift_test.enabled", config.drift_test.enabled, "it is for labels"),
        ("rescale", config.rescale, "it is for labels"),
    ):
        if value:
            raise ConfigError(f"{source}: {name} {where}: {why}")
    for path, annotator in _annotators(config):
        for name in ("classes", "tiring_rate"):
            if getattr(annotator, name):
                raise ConfigError(f"{source}: {path}.{name} {where}: it is for labels")
        if annotator.states_noise and not annotator.noise:
            raise ConfigError(f"{source}: {path}.states_noise needs a noise above 0")


def _annotators(config: Config) -> list[tuple[str, Annotator]]:
    several = [(f"annotators.{name}", one) for name, one in config.annotators.items()]
    return several or [("annotator", config.annotator)]


def _check_annotators(config: Config, source: str) -> None:
    for path, annotator in _annotators(config):
        for name in ("response_s", "slowing", "response_spread"):
            is_given = getattr(annotator, name) != getattr(Annotator(), name)
            if is_given and not annotator.tiring_rate:
                raise ConfigError(f"{source}: {path}.{name} needs a tiring_rate above 0")
        for span in annotator.hours or ():
            first, last = span.split("-")
            if first == last:
                raise ConfigError(
                    f'{source}: {path}.hours has "{span}", expected two different hours; leave '
                    "hours out for an annotator who is always available"
                )
    if config.annotators and config.annotator != Annotator():
        raise ConfigError(
            f"{source}: there is one annotator in [annotator] and several in [annotators]; "
            "keep one of the two"
        )
    for name, annotator in config.annotators.items():
        if annotator.name is not None:
            raise ConfigError(
                f"{source}: annotators.{name}.name is the name of the section; leave it out"
            )


def with_options(config: Config, *, annotator: Sequence[str] = (), **options: Any) -> Config:
    """Let command-line options override the file.

    Parameters
    ----------
    config
        Configuration from the file.
    annotator
        The values of `--annotator`.
    options
        Settings of the top level, of [log] or of [loop], by name; None, or an empty tuple, where an
        option was not given.

    Examples
    --------
    >>> with_options(Config(seed=3), label="room", seed=7).seed
    7
    >>> with_options(Config(seed=3), label="room").seed
    3

    """
    given = {name: value for name, value in options.items() if value not in (None, ())}
    config = with_annotators(config, annotator)
    for section in ("log", "loop"):
        old = getattr(config, section)
        own = {name: given.pop(name) for name in old.__struct_fields__ if name in given}
        config = replace(config, **{section: replace(old, **own)})
    return replace(config, **given)
