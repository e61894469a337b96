"""From a configuration to objects: learner, rules, budget, loop, annotator.

The only module that knows which class a name in the configuration stands for.

"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
from river.base import Classifier, Regressor

from streamgp import query as rules
from streamgp.base import Budget
from streamgp.config import settings
from streamgp.config.validation import ConfigError, unknown
from streamgp.interactive import InteractiveLoop, KeyedLoops
from streamgp.interactive.loop_cache import Shelf
from streamgp.kernels import SquaredExponential
from streamgp.learners.boosting import (
    ConfidenceBoostingClassifier,
    OnlineGradientBoostingClassifier,
)
from streamgp.learners.ensemble_gp import EnsembleGPClassifier, EnsembleGPRegressor
from streamgp.learners.forest import OnlineForestClassifier
from streamgp.learners.gp_classifier import GPClassifier
from streamgp.learners.gp_regressor import GPRegressor
from streamgp.learners.privileged_gp import PrivilegedGPClassifier
from streamgp.query import budgets, skeptical_classifier, skeptical_regressor
from streamgp.query.budgets import AllOf
from streamgp.query.retrospective import LeavingOneOut
from streamgp.query.skeptical_base import check_reservoir
from streamgp.simulation import (
    AnnotatorPanel,
    SimulatedAnnotator,
    SimulatedMeasurer,
    TiredAnnotator,
)

_QUERIES: Mapping[type, Any] = {
    settings.Paper: rules.PaperAsk,
    settings.SkepticalQuery: rules.SkepticalAsk,
    settings.Always: rules.AlwaysAsk,
    settings.Never: rules.NeverAsk,
    settings.Random: rules.RandomAsk,
    settings.Entropy: rules.Entropy,
    settings.LeastConfidence: rules.LeastConfidence,
    settings.BestVersusSecond: rules.BestVersusSecond,
    settings.Variance: rules.Variance,
    settings.KL: rules.KL,
    settings.Deterministic: rules.Deterministic,
    settings.EqualError: rules.EqualErrorAsk,
}
_CHALLENGES: Mapping[type, Any] = {
    settings.Paper: rules.PaperChallenge,
    settings.SkepticalChallenge: rules.SkepticalChallenge,
    settings.OutsideInterval: rules.OutsideInterval,
    settings.Always: rules.AlwaysChallenge,
    settings.Never: rules.NeverChallenge,
}
_BUDGETS: Mapping[type, Any] = {
    settings.Unlimited: budgets.Unlimited,
    settings.AtMost: budgets.AtMost,
    settings.AtMostPer: budgets.AtMostPer,
    settings.Adaptive: rules.AdaptiveThreshold,
}


Model: TypeAlias = skeptical_classifier.SkepticalClassifier | skeptical_regressor.SkepticalRegressor
Learner: TypeAlias = Classifier | Regressor


def build_model(config: settings.Config, *, source: str = "configuration") -> Model:
    """Build the skeptical classifier or regressor that a configuration describes.

    Parameters
    ----------
    config
        What to build.
    source
        Where the configuration came from, named in front of error messages.

    Raises
    ------
    ConfigError
        If the learner cannot be found or does not take its options.

    Examples
    --------
    >>> model = build_model(settings.Config(challenge=settings.Never()))
    >>> model.warm_up, type(model.challenge).__name__
    (200, 'NeverChallenge')

    """
    config = settings.resolved(config)
    learner = build_learner(config.learner, config.seed, target=config.target, source=source)
    shared: dict[str, Any] = {
        "query": _construct(_QUERIES, config.query),
        "challenge": _construct(_CHALLENGES, config.challenge),
        "budget": _build_budget(config.budget, config.seed),
        "warm_up": 0 if config.warm_up is None else config.warm_up,
        "seed": config.seed,
    }
    if isinstance(learner, Regressor):
        return skeptical_regressor.SkepticalRegressor(learner, **shared)
    review = _build_review(config, learner, source=source)
    reservoir = _build_reservoir(config, learner, source=source)
    return skeptical_classifier.SkepticalClassifier(
        learner, review=review, reservoir=reservoir, **shared
    )


def build_learner(
    learner: settings.Learner, seed: int, *, target: settings.TargetName = "label", source: str
) -> Learner:
    """Build one of the learners of streamgp, or find and build one of River."""
    if learner.name == "gp":
        return _gaussian_process(learner, GPClassifier if target == "label" else GPRegressor)
    cls = find_learner(learner.name, target=target, source=source)
    options = dict(learner.options)
    # Kernels and weak learners are objects, which a file cannot hold.
    objects = _OBJECTS if learner.name in _OWN else ("kernels",)
    allowed = [name for name in inspect.signature(cls).parameters if name not in objects]
    for name in options:
        if name not in allowed:
            raise ConfigError(f"{source}: {unknown(f'learner.options.{name}', name, allowed)}")
    if "seed" in allowed:  # otherwise no two runs would be alike
        options.setdefault("seed", seed)
    try:
        return cls(**options)
    except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ConfigError(
            f"{source}: learner.options: {learner.name} cannot be built with them: {error}"
        ) from None


_OWN: Mapping[str, Mapping[settings.TargetName, type[Learner]]] = {
    "ensemble": {"label": EnsembleGPClassifier, "number": EnsembleGPRegressor},
    "forest": {"label": OnlineForestClassifier},
    "confidence_boosting": {"label": ConfidenceBoostingClassifier},
    "gradient_boosting": {"label": OnlineGradientBoostingClassifier},
    "privileged": {"label": PrivilegedGPClassifier},
}
_OBJECTS = ("kernel", "privileged_kernel", "kernels", "model")


def _gaussian_process(
    learner: settings.Learner, cls: type[GPClassifier] | type[GPRegressor]
) -> Learner:
    learner = settings.resolved(settings.Config(learner=learner)).learner
    scale, noise = learner.length_scale, learner.noise_variance
    assert noise is not None  # the preset says it
    # Settings that a regressor does not have are refused with the configuration.
    changing: dict[str, Any] = {}
    if cls is GPClassifier:
        changing = {"window": learner.window, "drift": learner.drift}
    return cls(
        None if scale is None else SquaredExponential(length_scale=scale),
        noise,
        None if learner.max_points == "all" else learner.max_points,
        learner.learn_hyperparameters,
        **changing,
    )


_KINDS: Mapping[settings.TargetName, tuple[type[Learner], str, str]] = {
    "label": (Classifier, "classifier", "river.naive_bayes.GaussianNB"),
    "number": (Regressor, "regressor", "river.tree.HoeffdingTreeRegressor"),
}


def find_learner(name: str, *, target: settings.TargetName = "label", source: str) -> type[Learner]:
    """Find a learner of streamgp by its name, or import one of River by its path.

    Nothing is imported that is not a River classifier, or regressor.

    Examples
    --------
    >>> find_learner("river.naive_bayes.GaussianNB", source="my.toml").__name__
    'GaussianNB'

    """
    wanted, kind, example = _KINDS[target]
    where = f'{source}: learner.name = "{name}"'
    if name in _OWN:
        if target not in _OWN[name]:
            raise ConfigError(f'{where} is not allowed with target = "number": it is for labels')
        return _OWN[name][target]
    module_name, _, class_name = name.rpartition(".")
    if module_name.split(".")[0] != "river" or not name.replace(".", "").isidentifier():
        raise ConfigError(
            f'{where} is not allowed, expected "gp", {", ".join(_named(target))} or the path of '
            f'a River {kind}, as in "{example}"'
        )
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ConfigError(f"{where} is not allowed: {error}") from None
    cls = getattr(module, class_name, None)
    if not (isinstance(cls, type) and issubclass(cls, wanted)) or inspect.isabstract(cls):
        there = ", ".join(
            key
            for key, value in vars(module).items()
            if isinstance(value, type)
            and issubclass(value, wanted)
            and not inspect.isabstract(value)
        )
        raise ConfigError(f"{where} is not a River {kind}; {module_name} has {there or 'none'}")
    return cls


def _named(target: settings.TargetName) -> list[str]:
    return [f'"{name}"' for name, kinds in _OWN.items() if target in kinds]


def build_loop(
    config: settings.Config,
    *,
    source: str = "configuration",
    shelf: Shelf | None = None,
    snapshot: bytes | None = None,
) -> InteractiveLoop | KeyedLoops:
    """Build one loop, or, where the log has a key column, one loop per key.

    Parameters
    ----------
    config
        What to build.
    source
        Where the configuration came from, named in front of error messages.
    shelf
        Where the loops of keys wait that are not held ready; None for memory.
    snapshot
        Snapshot of such a loop to go on with, or None to begin anew.

    Raises
    ------
    ConfigError
        If the learner cannot be found or does not take its options.
    SnapshotError
        If the snapshot is not of such a loop.

    """
    model, spans = build_model(config, source=source), config.loop
    total = build_total_budget(config)
    if config.log.key is None:
        if total is not None:
            raise ConfigError(
                f"{source}: total_budget is for a learner of each key, and there is no key column; "
                "name one (--key COLUMN), or put the limit into [budget]"
            )
        if snapshot is not None:
            return InteractiveLoop.restore(snapshot, model)
        return InteractiveLoop(
            model,
            expires_after_s=spans.expires_after_s,
            answer_horizon_s=spans.answer_horizon_s,
        )
    if snapshot is not None:
        return KeyedLoops.restore(
            snapshot, model, max_keys=spans.max_keys, shelf=shelf, total_budget=total
        )
    return KeyedLoops(
        model,
        expires_after_s=spans.expires_after_s,
        answer_horizon_s=spans.answer_horizon_s,
        max_keys=spans.max_keys,
        shelf=shelf,
        total_budget=total,
    )


def build_annotator(config: settings.Config) -> SimulatedAnnotator | AnnotatorPanel:
    """Build the simulated annotator, or a panel of several.

    An annotator without a seed of its own gets that of the rules.

    Examples
    --------
    >>> build_annotator(settings.Config(annotator=settings.Annotator(error_rate=0.2))).error_rate
    0.2

    """
    if not config.annotators:
        annotator = config.annotator
        return _one_annotator(config, annotator, annotator.name or "simulated")
    several = [_one_annotator(config, one, name) for name, one in config.annotators.items()]
    return AnnotatorPanel(several, seed=config.seed)


def _one_annotator(
    config: settings.Config, annotator: settings.Annotator, name: str
) -> SimulatedAnnotator:
    seed = config.seed
    options: dict[str, Any] = msgspec.structs.asdict(annotator)
    tiring = {key: options.pop(key) for key in settings.OF_TIRED}
    measuring = {key: options.pop(key) for key in ("noise", "outlier", "states_noise")}
    options["name"] = name
    if annotator.seed is None:
        options["seed"] = seed
    if config.target == "number":
        del options["classes"]
        return SimulatedMeasurer(**options, **measuring)
    return (
        TiredAnnotator(**options, **tiring)
        if annotator.tiring_rate
        else SimulatedAnnotator(**options)
    )


def _build_review(
    config: settings.Config, learner: Learner, *, source: str
) -> rules.LeaveOneOutReview | None:
    review = config.review
    if isinstance(review, settings.Never):
        return None
    if not isinstance(learner, LeavingOneOut):
        raise ConfigError(
            f'{source}: review.rule = "leave_one_out" is not allowed with learner.name = '
            f'"{config.learner.name}", which cannot leave an example out; expected "never"'
        )
    return rules.LeaveOneOutReview(
        threshold=review.threshold,
        every=review.every,
        budget=_build_budget(review.budget, config.seed),
    )


def _build_reservoir(
    config: settings.Config, learner: Learner, *, source: str
) -> rules.ReservoirAsk | None:
    reservoir = config.reservoir
    if isinstance(reservoir, settings.Never):
        return None
    rule = rules.ReservoirAsk(
        criterion=reservoir.criterion,
        size=reservoir.size,
        every=reservoir.every,
        max_age_s=reservoir.max_age_s,
        budget=_build_budget(reservoir.budget, config.seed),
    )
    try:
        check_reservoir(rule, learner)
    except (TypeError, ValueError) as error:
        raise ConfigError(f'{source}: reservoir.rule = "latest" is not allowed: {error}') from None
    return rule


def build_total_budget(config: settings.Config) -> Budget | None:
    """Build the budget for all keys together, None for none."""
    if isinstance(config.total_budget, settings.Unlimited):
        return None
    built: Budget = _build_budget(config.total_budget, config.seed)
    return built


def _build_budget(budget: settings.Budget, seed: int) -> Any:
    if isinstance(budget, settings.AllOf):
        return AllOf(*(_build_budget(one, seed) for one in budget.budgets))
    if isinstance(budget, settings.Rate):  # the only one that draws
        return budgets.RateBudget(
            budget.rate,
            window=budget.window,
            horizon=budget.horizon,
            seed=seed,
            gives_back=budget.gives_back,
        )
    return _construct(_BUDGETS, budget)


def _construct(classes: Mapping[type, Any], rule: msgspec.Struct | None) -> Any:
    return None if rule is None else classes[type(rule)](**msgspec.structs.asdict(rule))
