"""Registry of what a configuration can name: query strategies, other rules, budgets and learners.

A rule registers itself where it is defined. From that entry come the settings of its section (the
annotated arguments of its constructor) and the comment in the file that `streamgp init` prints.
Learners take long to load, so they are listed in a table, with the modules they are in.

"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal, TypeAlias, TypeVar

from msgspec import Meta

from streamgp.base import Target

# --- Types of settings: what an argument of a rule may be, for its section in a configuration.


# 30 000 years, so that sums of times stay finite.
LONGEST_S = 10**12
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Remainder: TypeAlias = Annotated[float, Meta(gt=0, le=1)]
NonNegative: TypeAlias = Annotated[float, Meta(ge=0)]
Positive: TypeAlias = Annotated[float, Meta(gt=0)]
Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=LONGEST_S)]
Count: TypeAlias = Annotated[int, Meta(ge=1)]
Limit: TypeAlias = Annotated[int, Meta(ge=0)]

# --- Rules.

Kind: TypeAlias = Literal["query", "challenge", "review", "reservoir", "budget"]
LABELS: tuple[Target, ...] = ("label",)
NUMBERS: tuple[Target, ...] = ("number",)
BOTH: tuple[Target, ...] = ("label", "number")

# The modules of `streamgp.query` that have rules; they load as quickly as this one.
_MODULES = ("strategies", "equal_error", "retrospective", "budgets")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Entry of a rule that a configuration can name.

    Parameters
    ----------
    name
        Its name in a configuration.
    cls
        Its class; the class of None if the name stands for no rule at all.
    example
        Settings to try and their meaning, for the comment in a new configuration file.
    targets
        The kinds of targets that it supports.
    compares_experts
        Whether it needs a learner with several experts.

    """

    name: str
    cls: type
    example: str = ""
    targets: tuple[Target, ...] = LABELS
    compares_experts: bool = False


_RULES: dict[Kind, dict[str, Rule]] = {
    "query": {},
    "challenge": {},
    "review": {"never": Rule(name="never", cls=type(None), targets=BOTH)},
    "reservoir": {"never": Rule(name="never", cls=type(None), targets=BOTH)},
    "budget": {},
}


def rule(
    kind: Kind,
    name: str,
    *,
    example: str = "",
    targets: tuple[Target, ...] = LABELS,
    compares_experts: bool = False,
) -> Callable[[type[T]], type[T]]:
    """Register the class below as a rule; see `Rule`.

    The arguments of its constructor are the settings of its section, in that order, with their
    defaults; their annotations say what is allowed. `seed` is not a setting: a
    rule that takes one gets that of the configuration.
    """

    def registered(cls: type[T]) -> type[T]:
        _RULES[kind][name] = Rule(
            name=name,
            cls=cls,
            example=example,
            targets=targets,
            compares_experts=compares_experts,
        )
        return cls

    return registered


@cache
def rules(kind: Kind) -> Mapping[str, Rule]:
    """Return the rules of a kind by their names in a configuration.

    Examples
    --------
    >>> rules("query")["entropy"].cls.__name__
    'Entropy'
    >>> list(rules("review"))
    ['never', 'leave_one_out']

    """
    modules = [f"streamgp.query.{module}" for module in _MODULES]
    for module in modules:
        importlib.import_module(module)
    # In an order that does not depend on earlier imports.
    order = {"builtins": -1, **{module: i for i, module in enumerate(modules)}}
    entries = sorted(_RULES[kind].values(), key=lambda one: order[one.cls.__module__])
    return {one.name: one for one in entries}


@cache
def classes_only_for(kind: Kind, target: Target) -> tuple[type, ...]:
    """Return the classes of the rules for a kind of target and no other."""
    return tuple(one.cls for one in rules(kind).values() if one.targets == (target,))


@cache
def _of_experts() -> tuple[type, ...]:
    return tuple(one.cls for one in rules("query").values() if one.compares_experts)


def compares_experts(value: object) -> bool:
    """Whether a rule compares the experts of an ensemble."""
    return isinstance(value, _of_experts())


# --- Learners.


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerEntry:
    """Entry of a learner that a configuration can name.

    Parameters
    ----------
    about
        What it is, for the comment in a new configuration file.
    options
        Its settings with their defaults, likewise.
    classes
        Its classes for labels and for numbers, as `module:name`.

    """

    about: str
    options: str
    classes: Mapping[Target, str]


LEARNERS: Mapping[str, LearnerEntry] = {
    "ensemble": LearnerEntry(
        about="Gaussian processes with random features, whose cost per label stays constant",
        options='n_features = 50, forgetting = 1.0, refit = true, preset = "default", '
        "noise_variance = 0.1, n_initial = 10, and for labels "
        'likelihood = "regression" (or "logistic"), for numbers drop_experts = true',
        classes={
            "label": "streamgp.learners.ensemble_gp:EnsembleGPClassifier",
            "number": "streamgp.learners.ensemble_gp:EnsembleGPRegressor",
        },
    ),
    "forest": LearnerEntry(
        about="random trees, for labels",
        options="n_models = 10, n_tests = 50, min_weight = 30, max_nodes = 2000, inherit = true",
        classes={"label": "streamgp.learners.forest:OnlineForestClassifier"},
    ),
    "confidence_boosting": LearnerEntry(
        about="boosted forests, for labels",
        options='n_models = 10, uncertainty = "bvsb" (or "entropy"), normalise_weights = false, '
        'preset = "default"',
        classes={"label": "streamgp.learners.boosting:ConfidenceBoostingClassifier"},
    ),
    "gradient_boosting": LearnerEntry(
        about="boosted forests, for labels",
        options='n_models = 10, uncertainty = "bvsb" (or "entropy"), normalise_weights = false, '
        'preset = "default"',
        classes={"label": "streamgp.learners.boosting:OnlineGradientBoostingClassifier"},
    ),
    "privileged": LearnerEntry(
        about="a Gaussian process that trusts an answer as far as its accompanying data suggest, "
        "for labels",
        options='max_points = 300, n_replays = 3, preset = "default", learn_hyperparameters = true',
        classes={"label": "streamgp.learners.privileged_gp:PrivilegedGPClassifier"},
    ),
}
"""The learners of streamgp except "gp", whose settings are keys of `[learner]` itself."""
