"""Sections of a configuration whose `rule` determines their further keys.

The settings of a rule are the arguments of its constructor (`streamgp.query.registry`). A rule from
outside streamgp is named as `module:name`; that module is imported, and so executed, when the rule
is built, not when the file is read.

"""

from __future__ import annotations

import copy
import importlib
import inspect
import typing
from abc import ABC
from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from functools import cache, partial
from keyword import iskeyword
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NoReturn, TypeAlias

import msgspec
from msgspec import Meta

from streamgp.base import Budget as BudgetProtocol
from streamgp.common.signatures import lacking, parameters
from streamgp.config.validation import (
    ConfigError,
    check,
    converted,
    not_allowed,
    one_of,
    type_of,
    unknown,
)
from streamgp.query.registry import Kind, Rule, rules

# Protocols of the kinds of rules that users may write themselves.
_METHODS: dict[Kind, str] = {
    "query": "streamgp.query.strategies:AskRule",
    "challenge": "streamgp.query.strategies:ChallengeRule",
    "review": "streamgp.query.retrospective:Review",
    "budget": "streamgp.base:Budget",
}


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A section of the file; unknown keys are an error."""


class RuleSection(Section, frozen=True, kw_only=True, tag_field="rule"):
    """A section whose `rule` determines its further keys; each rule has a class of its own."""

    # Builds the rule; None if that is found by name. No setting has this name.
    _made_by_: ClassVar[Callable[..., Any] | None] = None

    @classmethod
    def rule(cls) -> str:
        return str(cls.__struct_config__.tag)


class _AnyRule(ABC):
    """Type of a setting that is the section of a rule, for msgspec and for `check`."""

    kind: ClassVar[Kind]
    left_out: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def check(cls, value: object, path: str) -> None:
        """Raise ConfigError, beginning with the key path, if a value is not such a section."""
        if not isinstance(value, dict):
            raise not_allowed(path, value, f"a section [{path}]")
        if "rule" not in value:
            # In the section of a learner, the key is called `name`.
            meant = ["name"] if "name" in value else get_close_matches("rule", list(value), n=1)
            if meant:
                raise ConfigError(f'{path}.{meant[0]} is not known, did you mean "rule"?')
            raise ConfigError(f"{path}.rule is missing, expected {cls._expected_with(value)}")
        name = value["rule"]
        if isinstance(name, str) and ":" in name and cls.kind in _METHODS:
            _split(name, f'{path}.rule = "{name}"')
            for key in value:
                if not key.isidentifier() or iskeyword(key) or key.startswith("_"):
                    raise ConfigError(f"{path}.{key} is not allowed, expected names of arguments")
        elif isinstance(name, str) and name in cls.names():
            check(value, type_of(section_class(cls.kind, name)), path)
        else:
            raise not_allowed(f"{path}.rule", name, cls._expected(), cls.names())

    @classmethod
    def convert(cls, value: dict[str, Any]) -> RuleSection:
        """Return the section for checked data."""
        name = value["rule"]
        keys = tuple(key for key in value if key != "rule")
        found = _own_class(name, keys) if ":" in name else section_class(cls.kind, name)
        return msgspec.convert(value, found, dec_hook=converted)

    @classmethod
    def names(cls) -> list[str]:
        return [name for name in rules(cls.kind) if name not in cls.left_out]

    @classmethod
    def _expected_with(cls, settings: Collection[str]) -> str:
        """Return the rules that have these settings, or all of them if none has."""
        fitting = [
            name
            for name in cls.names()
            if {*settings} <= {*section_class(cls.kind, name).__struct_fields__}
        ]
        if not settings or not fitting:
            return cls._expected()
        have = "have" if len(fitting) > 1 else "has"
        return f"{one_of(fitting)}, which {have} {', '.join(settings)}"

    @classmethod
    def _expected(cls) -> str:
        own = ', or one of your own, as in "my_rules:MyRule"' if cls.kind in _METHODS else ""
        return f"{one_of(cls.names())}{own}"


def _sections_of(kind: Kind, *left_out: str) -> Any:
    members = {"kind": kind, "left_out": frozenset(left_out)}
    cls = type(kind.capitalize(), (_AnyRule,), members)
    cls.register(RuleSection)  # type: ignore[attr-defined]
    return cls


if TYPE_CHECKING:
    Query: TypeAlias = RuleSection
    Challenge: TypeAlias = RuleSection
    Review: TypeAlias = RuleSection
    Reservoir: TypeAlias = RuleSection
    Budget: TypeAlias = RuleSection
    OneBudget: TypeAlias = RuleSection
else:
    Query = _sections_of("query")
    Challenge = _sections_of("challenge")
    Review = _sections_of("review")
    Reservoir = _sections_of("reservoir")
    Budget = _sections_of("budget")
    OneBudget = _sections_of("budget", "unlimited", "all_of")


def section(kind: Kind, name: str, **settings: Any) -> RuleSection:
    """Return the section of a rule; omitted settings have their defaults.

    Examples
    --------
    >>> section("query", "skeptical", c=2.0)
    SkepticalAsk(c=2.0, at_least=0.0, pending=True)

    """
    if ":" in name:
        return _own_class(name, tuple(settings))(**settings)
    return section_class(kind, name)(**settings)


@cache
def section_class(kind: Kind, name: str) -> type[RuleSection]:
    """Return the section class of a rule of streamgp."""
    return _section_class(name, rules(kind)[name].cls)


@cache
def _own_class(name: str, keys: tuple[str, ...]) -> type[RuleSection]:
    """Return the section class of a rule from outside streamgp, with these keys."""
    return _defined(name, name, [(key, Any) for key in keys])


def _section_class(name: str, makes: Callable[..., Any]) -> type[RuleSection]:
    # A callable object, such as a partial, has no name.
    called = getattr(makes, "__name__", type(makes).__name__)
    called = "Never" if makes is type(None) else called
    return _defined(called, name, _fields(makes), _made_by_=staticmethod(makes))


def _defined(called: str, tag: str, fields: Iterable[Any], **members: object) -> type[RuleSection]:
    bases = (RuleSection,)
    found: Any = msgspec.defstruct(
        called, fields, bases=bases, namespace=members, tag=tag, frozen=True, kw_only=True
    )
    cls: type[RuleSection] = found
    return cls


def _fields(makes: Callable[..., Any]) -> Iterable[tuple[str, Any] | tuple[str, Any, Any]]:
    """Yield name, type and, if it has one, default of each setting of a rule."""
    # The fields of a dataclass are annotated where they are declared, perhaps in another module.
    is_plain = isinstance(makes, type) and "__dataclass_fields__" not in vars(makes)
    declared_in: Any = vars(makes).get("__init__") if is_plain else makes
    try:
        hints = typing.get_type_hints(declared_in, include_extras=True) if declared_in else {}
    except (NameError, TypeError):  # annotations that only a type checker can resolve
        hints = {}
    for name, parameter in _arguments(makes).items():
        hint = hints.get(name, Any)
        if parameter.kind is parameter.VAR_POSITIONAL:
            several = tuple[OneBudget, ...] if hint is BudgetProtocol else tuple[Any, ...]
            yield name, Annotated[several, Meta(min_length=1)]
        elif hint in (BudgetProtocol, BudgetProtocol | None):
            yield name, Budget, section("budget", "unlimited")
        elif parameter.default is parameter.empty:
            yield name, _known(hint)
        elif isinstance(parameter.default, list | dict | set):
            kept = partial(copy.deepcopy, parameter.default)
            yield name, _known(hint), msgspec.field(default_factory=kept)
        else:
            yield name, _known(hint), parameter.default


def _arguments(makes: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the arguments of a constructor that are settings."""
    if not parameters(makes):
        return {}
    return {
        name: parameter
        for name, parameter in inspect.signature(makes).parameters.items()
        if name != "seed" and parameter.kind is not parameter.VAR_KEYWORD
    }


def _known(hint: Any) -> Any:
    """Return a type if its values can be checked, else Any."""
    parts = (
        typing.get_args(hint) if typing.get_origin(hint) in (UnionType, typing.Union) else (hint,)
    )
    simple = (bool, int, float, str, type(None))
    for part in parts:
        bare = typing.get_args(part)[0] if typing.get_origin(part) is Annotated else part
        if bare not in simple and typing.get_origin(bare) is not typing.Literal:
            return Any
    return hint


# --- From sections to rules.


def build_rule(kind: Kind, rule: RuleSection | None, *, seed: int, source: str, path: str) -> Any:
    """Build the rule of a section; None for None.

    Parameters
    ----------
    source, path
        Where the section is, a file and a key in it; error messages begin with them.

    Raises
    ------
    ConfigError
        If the rule cannot be found, does not take its settings, or is not a rule of that kind.

    Examples
    --------
    >>> build_rule("query", section("query", "random", rate=0.1), seed=1, source="f", path="query")
    RandomAsk(rate=0.1)

    """
    if rule is None:
        return None
    if rule._made_by_ is not None:
        return _made(rule._made_by_, rule, seed=seed, source=source, path=path)
    name = rule.rule()
    where = f'{source}: {path}.rule = "{name}"'
    makes = find(name, where)
    data = {"rule": name, **{key: getattr(rule, key) for key in rule.__struct_fields__}}
    try:
        cls = _section_class(name, makes)
        check(data, msgspec.inspect.type_info(cls), path)
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None
    whole = msgspec.convert(data, cls, dec_hook=converted)
    try:
        made = _made(makes, whole, seed=seed, source=source, path=path)
    except ConfigError:  # from a nested budget
        raise
    except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ConfigError(f"{where} cannot be built with its settings: {error}") from None
    missing = lacking(made, find(_METHODS[kind], where))
    if missing:
        raise ConfigError(
            f"{where} gives {made!r}, which is not a rule for [{path}]: it lacks "
            f"{', '.join(missing)}"
        )
    return made


def _made(
    makes: Callable[..., Any], rule: RuleSection, *, seed: int, source: str, path: str
) -> Any:
    def whole(value: Any, key: str) -> Any:
        if isinstance(value, RuleSection):
            return build_rule("budget", value, seed=seed, source=source, path=key)
        if isinstance(value, tuple):
            return [whole(each, f"{key}[{i}]") for i, each in enumerate(value)]
        return value

    arguments = _arguments(makes)
    options = {key: whole(getattr(rule, key), f"{path}.{key}") for key in arguments}
    several = [key for key, one in arguments.items() if one.kind is one.VAR_POSITIONAL]
    if "seed" in parameters(makes):
        options["seed"] = seed
    given = [each for key in several for each in options.pop(key)]
    return makes(*given, **options)


# --- Rules and learners of other packages.


def find(name: str, where: str) -> Callable[..., Any]:
    """Import the object named by `module:name`: a class, or a function that returns an object.

    Parameters
    ----------
    where
        Beginning of error messages: the file, the key and the name.

    Raises
    ------
    ConfigError
        If there is no such module, no such name in it, or it is not callable.

    Examples
    --------
    >>> find("streamgp.query:NeverAsk", "my.toml: query.rule").__name__
    'NeverAsk'
    >>> find("rules:Mine", "my.toml: query.rule")
    Traceback (most recent call last):
    streamgp.config.validation.ConfigError: my.toml: query.rule is not allowed: No module named ...

    """
    module_name, attribute = _split(name, where)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        _missing(module_name, error, where)
    except (ImportError, SyntaxError) as error:
        raise ConfigError(f"{where}: {module_name} cannot be imported: {error}") from None
    except (Exception, SystemExit) as error:  # it is the user's code, which importing executes
        raise ConfigError(
            f"{where}: {module_name} cannot be imported, it raises {type(error).__name__}: {error}"
        ) from error
    try:
        found = getattr(module, attribute)
    except AttributeError:
        # Without what the module imports from elsewhere.
        at = {key: getattr(getattr(module, key), "__module__", "") for key in dir(module)}
        names = [
            key
            for key, home in at.items()
            if key[0] != "_" and f"{home}.".startswith(f"{module_name}.")
        ]
        raise ConfigError(
            f"{where} is not allowed: {unknown(attribute, attribute, names)} in {module_name}"
        ) from None
    if not callable(found):
        raise ConfigError(
            f"{where} is not allowed: {attribute} of {module_name} is a {type(found).__name__}, "
            "expected a class, or a function that returns an object"
        )
    made: Callable[..., Any] = found
    return made


def _missing(module_name: str, error: ModuleNotFoundError, where: str) -> NoReturn:
    if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
        advice = "; install it, or name the directory that it is in with PYTHONPATH"
        raise ConfigError(f"{where} is not allowed: {error}{advice}") from None
    raise ConfigError(f"{where}: {module_name} cannot be imported: {error}") from None


def _split(name: str, where: str) -> tuple[str, str]:
    module_name, _, attribute = name.partition(":")
    parts = module_name.split(".")
    if not all(map(str.isidentifier, parts)) or not attribute.isidentifier():
        raise ConfigError(
            f'{where} is not allowed, expected a module and a name in it, as in "my_rules:MyRule"'
        )
    return module_name, attribute


def rule_of(kind: Kind, section: RuleSection) -> Rule | None:
    """Return the registry entry of a section's rule, None if it is not from streamgp."""
    return rules(kind).get(section.rule())
